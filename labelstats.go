package assay

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	"assay/annotate"
	"assay/corpus"
	"assay/pipeline"
	"assay/scrapers"
	"assay/stats"
)

// LabelStatistics is what the labels of a corpus are worth, over the pairs that a walk met. Numbers that the
// data does not define are null with a reason beside them, never NaN.
type LabelStatistics struct {
	Labels stats.Table `json:"labels"` // label by the claim's binary verdict
	// ImpliedFalse is the share of the supporting and misleading pairs whose document implies "false". Far from the
	// share of false claims, it lets an annotator who always says "false" look as if it could read.
	ImpliedFalse Share              `json:"implied_false"`
	Claims       ClaimCounts        `json:"claims"`
	Effects      stats.Table        `json:"effects"`        // by verdict; see corpus.Effect
	Constants    []ConstantEffects  `json:"constants"`      // what constant answers do to the same pairs
	Outcomes     []StratumOutcomes  `json:"outcomes"`       // what came of asking, by stratum
	Zero         map[string]int     `json:"zero,omitempty"` // claims by what came of asking about them alone: answered, undecided, or the outcome of the call
	Stability    *StabilityCounts   `json:"stability"`      // nil where every pair was asked about once
	Control      *ControlStatistics `json:"control"`        // nil where none was asked
	Panel        *PanelStatistics   `json:"panel"`          // nil where there is none
	Agreement    *Agreement         `json:"agreement"`      // with the labels of imported tables; nil where they have none
	Tables       []TableStatistics  `json:"tables"`         // imported tables with labels, as they were published
}

// A Share is a part of a whole with its Wilson interval.
type Share struct {
	N        int            `json:"n"`
	Of       int            `json:"of"`
	Value    *float64       `json:"value"` // nil of nothing
	Interval stats.Interval `json:"interval"`
}

func shareOf(n, of int) Share {
	s := Share{N: n, Of: of, Interval: stats.Wilson(n, of, 0.95)}
	if of > 0 {
		v := float64(n) / float64(of)
		s.Value = &v
	}
	return s
}

// String is a share for people.
func (s Share) String() string {
	if s.Value == nil {
		return "none of 0"
	}
	return fmt.Sprintf("%.1f %% (%d of %d) %v", 100**s.Value, s.N, s.Of, s.Interval)
}

// ClaimCounts counts claims by the labels of their documents. Its shares are of the claims with a labelled pair:
// of others nobody knows what their documents do.
type ClaimCounts struct {
	Claims      int   `json:"claims"` // with a labelled pair
	Supporting  Share `json:"supporting"`
	Misleading  Share `json:"misleading"`
	Both        int   `json:"both"`
	Unrelated   int   `json:"only_unrelated"`
	MisleadTrue int   `json:"misleading_true"` // of Misleading, claims that are true
}

// StratumOutcomes is what came of asking the annotator about the pairs of one stratum.
type StratumOutcomes struct {
	By       string         `json:"by"`    // verdict, verdict6, category, source, published label, document
	Value    string         `json:"value"` // "" where it is not known
	Outcomes map[string]int `json:"outcomes"`
	Asked    int            `json:"asked"` // exclusions, such as unusable bodies, are not
	Refused  Share          `json:"refused"`
	Filtered Share          `json:"filtered"`
	Failed   Share          `json:"failed"` // no answer for any other reason: unreadable, cut off, no reply
}

// StabilityCounts is how repeated samples came out.
type StabilityCounts struct {
	Samples  int             `json:"samples"`
	Unstable Share           `json:"unstable"` // margin under annotate.UnstableBelow
	Margin   stats.MeanValue `json:"margin"`
	ByLabel  stats.Table     `json:"by_label"`  // label by stable, unstable
	ByMargin stats.Table     `json:"by_margin"` // margin, in two digits and from the largest, by verdict
}

// ConstantEffects is what an annotator does who gives one answer with every document: of the pairs, and of their
// answers without one.
type ConstantEffects struct {
	Answer  string         `json:"answer"`
	Effects map[string]int `json:"effects"`
}

// ControlStatistics is what the annotator said of claims with documents of other claims.
type ControlStatistics struct {
	Outcomes map[string]int `json:"outcomes"`
	Claims   int            `json:"claims"`  // fewer than the pairs where there are not as many claims as were asked for
	Answers  stats.Table    `json:"answers"` // by verdict
	// Related is the rate of answers other than unrelated: how often the annotator finds a bearing where there is
	// none. Corpus is the same rate over the pairs of the corpus.
	Related Share          `json:"related"`
	Corpus  Share          `json:"corpus"`
	Effects map[string]int `json:"effects"`
	// Flips are answers that were right without the document and are wrong with one that has nothing to do with the
	// claim, of those whose answer without a document is known. CorpusFlips is the same rate over the pairs of the
	// corpus.
	Flips       Share             `json:"flips"`
	CorpusFlips Share             `json:"corpus_flips"`
	Constants   []ConstantEffects `json:"constants"` // over the labelled pairs of the control
}

// PanelStatistics is how the annotators of a panel agree. The first is the annotator of the corpus.
type PanelStatistics struct {
	Pairs        int                   `json:"pairs"` // that all were asked about
	Annotators   []AnnotatorStatistics `json:"annotators"`
	Pairwise     []Agreement           `json:"pairwise"`     // every two; the reference comes first
	MeanKappa    []stats.MeanValue     `json:"mean_kappa"`   // over Pairwise, by reading
	Coefficients []stats.Coefficient   `json:"coefficients"` // over all, on the labels
	Consensus    stats.Table           `json:"consensus"`    // label of the corpus by the panel's
	Unanimous    Share                 `json:"unanimous"`
	Disputes     int                   `json:"disputes"` // assay ls disputes lists them
}

// AnnotatorStatistics is what one annotator of a panel said.
type AnnotatorStatistics struct {
	Annotator string         `json:"annotator"`
	Model     string         `json:"model"`
	Outcomes  map[string]int `json:"outcomes"`
	Labels    stats.Table    `json:"labels"`  // by verdict
	Effects   map[string]int `json:"effects"` // by its own answer without a document
}

// TableStatistics is an imported table with labels, counted as it was published: whatever the recipe takes of it.
type TableStatistics struct {
	Table        string      `json:"table"`
	Claims       int         `json:"claims"`
	Verdicts     stats.Table `json:"verdicts"` // rating by binary verdict
	Words        float64     `json:"mean_words"`
	Documents    float64     `json:"documents_a_claim"`
	Labels       stats.Table `json:"labels"` // by verdict
	ImpliedFalse Share       `json:"implied_false"`
	ByClaim      ClaimCounts `json:"by_claim"`
	Baselines    []Baseline  `json:"baselines"`
}

// A Baseline is an annotator that gives one answer whatever it is shown, scored against labels in each reading of
// kappa. It knows nothing: what it scores, a model has not earned.
type Baseline struct {
	Answer   string        `json:"answer"`
	Readings []stats.Score `json:"readings"`
}

// Columns of tables by verdict; verdicts that are neither are not labelled.
var verdictColumns = []string{"true", "false"}

func stanceNames() []string {
	return names(corpus.StanceLabels, func(l corpus.StanceLabel) string { return string(l) })
}

func answerNames() []string {
	return names(constantAnswers, func(a corpus.Answer) string { return string(a) })
}

// compared are two labels of one pair, and the claim's verdict.
type compared struct{ reference, other, verdict string }

// agreementOf compares labels in the readings of methods 3.1, beside constant answers.
func agreementOf(pairs []compared) *Agreement {
	if len(pairs) == 0 {
		return nil
	}
	// The order of workers must not change a resample.
	slices.SortFunc(pairs, func(a, b compared) int {
		return cmp.Or(strings.Compare(a.reference, b.reference), strings.Compare(a.other, b.other), strings.Compare(a.verdict, b.verdict))
	})
	var reference, other, verdicts []string
	counts, most := map[string]int{}, 0
	for _, p := range pairs {
		reference, other, verdicts = append(reference, p.reference), append(other, p.other), append(verdicts, p.verdict)
		counts[p.reference]++
		most = max(most, counts[p.reference])
	}
	a := &Agreement{Majority: float64(most) / float64(len(pairs)), Baselines: baselines(reference, verdicts)}
	readings := stats.Readings(string(corpus.Supporting), string(corpus.Misleading))
	a.Readings = make([]stats.Agreement, len(readings))
	var wg sync.WaitGroup
	for i, r := range readings {
		wg.Go(func() { // each draws for itself, a second for tens of thousands of pairs
			a.Readings[i] = stats.KappaReading(r, reference, other, stanceNames()...).WithInterval(resampling(), replicates, 0.95)
		})
	}
	wg.Wait()
	return a
}

// replicates of an interval, drawn in the same order whenever the data is the same.
const replicates = 2000

func resampling() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }

// baselines scores constant answers against labels.
func baselines(reference, verdicts []string) (out []Baseline) {
	for _, answer := range constantAnswers {
		given := make([]string, len(reference))
		for i, v := range verdicts {
			given[i] = string(corpus.LabelOf(answer, v == "true"))
		}
		b := Baseline{Answer: string(answer)}
		for _, r := range stats.Readings(string(corpus.Supporting), string(corpus.Misleading)) {
			ref, con := stats.Filter(reference, given, r.Keep)
			b.Readings = append(b.Readings, stats.Scores(r.Name, ref, con, stanceNames()...))
		}
		out = append(out, b)
	}
	return out
}

// tally gathers what LabelStatistics are made of.
type tallying struct {
	mu       sync.Mutex
	asked    map[string]askedPair // by pair; without texts
	panel    map[string]panelled
	control  map[string]controlled
	compared map[string]compared // by row and document
	zero     map[string]string   // outcome by claim
}

func newTallying() *tallying {
	return &tallying{asked: map[string]askedPair{}, panel: map[string]panelled{}, control: map[string]controlled{}, compared: map[string]compared{}, zero: map[string]string{}}
}

// watch has a visitor tell the tally too.
func (t *tallying) watch(v visitor) visitor {
	v.asked = func(a askedPair) error {
		t.mu.Lock()
		defer t.mu.Unlock()
		a.claim = corpus.Claim{ID: a.claim.ID, Verdict6: a.claim.Verdict6, Category: a.claim.Category, Source: a.claim.Source}
		a.doc = corpus.Document{ID: a.doc.ID, Kind: a.doc.Kind}
		a.label.Quote, a.label.Reason, a.label.Calls, a.ev.hits = "", "", nil, nil
		t.asked[corpus.PairID(a.claim.ID, a.doc.ID)] = a
		if link := a.ev.link; link != nil && link.Label != "" && a.outcome == outcomeLabelled {
			t.compared[linkKey(*link)] = compared{string(link.Label), string(a.label.Label), a.binary}
		}
		return nil
	}
	v.zero = func(c corpus.Claim, outcome string) error {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.zero[c.ID] = outcome
		return nil
	}
	v.panel = func(p panelled) error {
		t.mu.Lock()
		defer t.mu.Unlock()
		p.pair.Input = annotate.Input{}
		t.panel[p.pair.Label.ID] = p
		return nil
	}
	v.control = func(c controlled) error {
		t.mu.Lock()
		defer t.mu.Unlock()
		id := corpus.PairID(c.pair.Claim.ID, c.pair.Document.ID)
		c.pair = annotate.Input{Claim: corpus.Claim{ID: c.pair.Claim.ID}, Zero: c.pair.Zero}
		t.control[id] = c
		return nil
	}
	return v
}

// statistics is what was gathered.
func (t *tallying) statistics() LabelStatistics {
	s := LabelStatistics{Effects: stats.NewTable(effectNames, verdictColumns), Tables: []TableStatistics{}}
	margins, samples, unstable := []*float64{}, 0, 0
	byLabel, byMargin := stats.NewTable(stanceNames(), []string{"stable", "unstable"}), map[[2]string]int{}
	var answered []answeredPair
	for _, id := range sortedKeys(t.asked) {
		a := t.asked[id]
		if a.outcome != outcomeLabelled {
			continue
		}
		s.Effects.Add(string(cmp.Or(a.label.Effect, corpus.EffectUnknown)), a.binary, 1)
		answered = append(answered, answeredPair{a.label.Zero, a.binary})
		if st := a.label.Stability; st != nil {
			margins, samples = append(margins, &st.Margin), max(samples, st.Samples)
			word := "stable"
			if corpus.HasFlag(a.label.Flags, corpus.FlagUnstable) {
				word = "unstable"
				unstable++
			}
			byLabel.Add(string(a.label.Label), word, 1)
			byMargin[[2]string{fmt.Sprintf("%.2f", st.Margin), a.binary}]++
		}
	}
	all := newTabulation()
	for _, of := range t.byClaim() {
		all.claim("", of.binary, of.labels...)
	}
	s.Labels, s.ImpliedFalse, s.Claims, s.Constants = all.labels, impliedFalse(all.labels), all.byClaim(), constantEffects(answered)
	if len(margins) > 0 {
		s.Stability = &StabilityCounts{Samples: samples, Unstable: shareOf(unstable, len(margins)), Margin: stats.Mean(margins), ByLabel: byLabel, ByMargin: marginTable(byMargin)}
	}
	s.Outcomes = t.outcomes()
	for _, outcome := range t.zero {
		if s.Zero == nil {
			s.Zero = map[string]int{}
		}
		s.Zero[outcome]++
	}
	s.Control, s.Panel = t.controls(s.Labels, s.Effects), t.panels()
	var pairs []compared
	for _, id := range sortedKeys(t.compared) {
		pairs = append(pairs, t.compared[id])
	}
	s.Agreement = agreementOf(pairs)
	return s
}

var effectNames = []string{
	string(corpus.EffectConfirm), string(corpus.EffectCorrect), string(corpus.EffectFlip), string(corpus.EffectInherit),
	string(corpus.EffectAbstain), string(corpus.EffectUnknown),
}

// impliedFalse are the documents that imply "false": supporting ones of false claims, misleading ones of true.
func impliedFalse(labels stats.Table) Share {
	n := labels.Count(string(corpus.Supporting), "false") + labels.Count(string(corpus.Misleading), "true")
	of := n + labels.Count(string(corpus.Supporting), "true") + labels.Count(string(corpus.Misleading), "false")
	return shareOf(n, of)
}

// labelledClaim is the verdict of a claim, and the labels of its pairs.
type labelledClaim struct {
	binary string
	labels []corpus.StanceLabel
}

// byClaim gathers the labelled pairs of every claim that has one.
func (t *tallying) byClaim() map[string]*labelledClaim {
	out := map[string]*labelledClaim{}
	for _, a := range t.asked {
		if a.outcome != outcomeLabelled {
			continue
		}
		c := out[a.claim.ID]
		if c == nil {
			c = &labelledClaim{binary: a.binary}
			out[a.claim.ID] = c
		}
		c.labels = append(c.labels, a.label.Label)
	}
	return out
}

// A tabulation counts claims and the labels of their pairs: those of the corpus, or those that a table published.
type tabulation struct {
	claims, words, pairs int            // pairs of a claim and a document, labelled or not
	labelled             int            // claims with a labelled pair
	both, unrelated      int            // claims with supporting and misleading pairs, with unrelated ones alone
	labels               stats.Table    // pairs, by verdict
	claimed              stats.Table    // claims that have a label at least once, by verdict
	verdicts             map[string]int // claims
	reference, given     []string       // label and verdict of every labelled pair
}

func newTabulation() *tabulation {
	return &tabulation{labels: stats.NewTable(stanceNames(), verdictColumns), claimed: stats.NewTable(stanceNames(), verdictColumns), verdicts: map[string]int{}}
}

// claim counts a claim with the labels of its pairs, "" for one without. A label says something of a claim that is
// true or false, and is passed over beside any other verdict.
func (t *tabulation) claim(text, verdict string, labels ...corpus.StanceLabel) {
	t.claims++
	t.words += len(strings.Fields(text))
	t.verdicts[verdict]++
	t.pairs += len(labels)
	has := map[corpus.StanceLabel]bool{}
	for _, l := range labels {
		if !slices.Contains(corpus.StanceLabels, l) || !slices.Contains(verdictColumns, verdict) {
			continue
		}
		has[l] = true
		t.labels.Add(string(l), verdict, 1)
		t.reference, t.given = append(t.reference, string(l)), append(t.given, verdict)
	}
	for l := range has {
		t.claimed.Add(string(l), verdict, 1)
	}
	if len(has) > 0 {
		t.labelled++
	}
	if has[corpus.Supporting] && has[corpus.Misleading] {
		t.both++
	}
	if len(has) == 1 && has[corpus.Unrelated] {
		t.unrelated++
	}
}

func (t *tabulation) byClaim() ClaimCounts {
	with := func(l corpus.StanceLabel) Share {
		return shareOf(t.claimed.Count(string(l), "true")+t.claimed.Count(string(l), "false"), t.labelled)
	}
	return ClaimCounts{
		Claims: t.labelled, Supporting: with(corpus.Supporting), Misleading: with(corpus.Misleading),
		Both: t.both, Unrelated: t.unrelated, MisleadTrue: t.claimed.Count(string(corpus.Misleading), "true"),
	}
}

// each is a claim's share of what there is so many of.
func (t *tabulation) each(n int) float64 { return float64(n) / float64(max(t.claims, 1)) }

// marginTable lays margins out by verdict, the largest first.
func marginTable(counts map[[2]string]int) stats.Table {
	var rows []string
	for key := range counts {
		if !slices.Contains(rows, key[0]) {
			rows = append(rows, key[0])
		}
	}
	slices.SortFunc(rows, func(a, b string) int { return strings.Compare(b, a) })
	t := stats.NewTable(rows, verdictColumns)
	for key, n := range counts {
		t.Add(key[0], key[1], n)
	}
	return t
}

// answeredPair is the answer without a document to the claim of a pair, and the claim's verdict.
type answeredPair struct {
	zero   corpus.Answer
	binary string
}

// constantEffects is what constant answers do to pairs.
func constantEffects(pairs []answeredPair) (out []ConstantEffects) {
	for _, answer := range constantAnswers {
		c := ConstantEffects{Answer: string(answer), Effects: map[string]int{}}
		for _, p := range pairs {
			c.Effects[string(corpus.EffectOf(p.zero, answer, p.binary == "true"))]++
		}
		out = append(out, c)
	}
	return out
}

// constantAnswers are those that an annotator can give without reading anything.
var constantAnswers = []corpus.Answer{corpus.AnswerTrue, corpus.AnswerFalse, corpus.AnswerUnrelated}

// outcomes counts what came of asking, by stratum.
func (t *tallying) outcomes() []StratumOutcomes {
	type key struct{ by, value string }
	counts := map[key]map[string]int{}
	var order []string // of dimensions
	for _, id := range sortedKeys(t.asked) {
		a := t.asked[id]
		published := ""
		if a.ev.link != nil {
			published = string(a.ev.link.Label)
		}
		order = order[:0]
		for _, d := range []key{
			{"verdict", a.binary}, {"verdict6", string(a.claim.Verdict6)}, {"category", string(a.claim.Category)},
			{"source", a.claim.Source}, {"published label", published}, {"document", a.doc.Kind},
		} {
			order = append(order, d.by)
			if counts[d] == nil {
				counts[d] = map[string]int{}
			}
			counts[d][a.outcome]++
		}
	}
	out := []StratumOutcomes{}
	for k, outcomes := range counts {
		s := StratumOutcomes{By: k.by, Value: k.value, Outcomes: outcomes}
		failed := 0
		for reason, n := range outcomes {
			switch reason {
			case annotate.ReasonAnnotationFailed, annotate.ReasonTruncated, outcomeFailed:
				failed += n
				s.Asked += n
			case outcomeLabelled, outcomeHeld, annotate.ReasonRefused, annotate.ReasonFiltered:
				s.Asked += n
			}
		}
		s.Refused, s.Filtered, s.Failed = shareOf(outcomes[annotate.ReasonRefused], s.Asked), shareOf(outcomes[annotate.ReasonFiltered], s.Asked), shareOf(failed, s.Asked)
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b StratumOutcomes) int {
		return cmp.Or(slices.Index(order, a.By)-slices.Index(order, b.By), strings.Compare(a.Value, b.Value))
	})
	return out
}

// controls is what the annotator said of documents of other claims.
func (t *tallying) controls(labels, effects stats.Table) *ControlStatistics {
	if len(t.control) == 0 {
		return nil
	}
	c := &ControlStatistics{
		Outcomes: map[string]int{}, Effects: map[string]int{},
		Answers: stats.NewTable(answerNames(), verdictColumns),
	}
	related, answered, known, flips := 0, 0, 0, 0
	claims := map[string]bool{}
	var pairs []answeredPair
	for _, id := range sortedKeys(t.control) {
		o := t.control[id]
		claims[o.pair.Claim.ID] = true
		c.Outcomes[o.outcome]++
		if o.outcome != outcomeLabelled {
			continue
		}
		answered++
		pairs = append(pairs, answeredPair{o.pair.Zero, o.binary})
		c.Answers.Add(string(o.label.Answer), o.binary, 1)
		if o.label.Answer != corpus.AnswerUnrelated {
			related++
		}
		c.Effects[string(o.label.Effect)]++
		if o.label.Effect != corpus.EffectUnknown {
			known++
		}
		if o.label.Effect == corpus.EffectFlip {
			flips++
		}
	}
	unrelated := labels.Count(string(corpus.Unrelated), "true") + labels.Count(string(corpus.Unrelated), "false")
	of := func(e corpus.Effect) int { return effects.Count(string(e), "true") + effects.Count(string(e), "false") }
	c.Claims, c.Constants = len(claims), constantEffects(pairs)
	c.Related, c.Flips, c.Corpus = shareOf(related, answered), shareOf(flips, known), shareOf(labels.Total()-unrelated, labels.Total())
	c.CorpusFlips = shareOf(of(corpus.EffectFlip), effects.Total()-of(corpus.EffectUnknown))
	return c
}

// panels is how the annotators agree.
func (t *tallying) panels() *PanelStatistics {
	if len(t.panel) == 0 {
		return nil
	}
	var list []panelled
	for _, id := range sortedKeys(t.panel) {
		list = append(list, t.panel[id])
	}
	s := &PanelStatistics{Pairs: len(list), Consensus: stats.NewTable(stanceNames(), append(stanceNames(), "none")), Pairwise: []Agreement{}}
	annotators := list[0].annotations
	for i, who := range annotators {
		a := AnnotatorStatistics{Annotator: who.Annotator, Model: who.Model, Outcomes: map[string]int{}, Effects: map[string]int{}, Labels: stats.NewTable(stanceNames(), verdictColumns)}
		for _, p := range list {
			said := p.annotations[i]
			if a.Outcomes[said.Outcome]++; said.Label != "" {
				a.Labels.Add(string(said.Label), p.pair.Binary, 1)
				a.Effects[string(cmp.Or(said.Effect, corpus.EffectUnknown))]++
			}
		}
		s.Annotators = append(s.Annotators, a)
	}
	kappas := make([][]*float64, len(stats.Readings()))
	for i, first := range annotators {
		for j := i + 1; j < len(annotators); j++ {
			var pairs []compared
			for _, p := range list {
				if a, b := p.annotations[i].Label, p.annotations[j].Label; a != "" && b != "" {
					pairs = append(pairs, compared{string(a), string(b), p.pair.Binary})
				}
			}
			a := agreementOf(pairs)
			if a == nil {
				a = noAgreement()
			}
			a.Reference, a.Other = first.Annotator, annotators[j].Annotator
			for k, r := range a.Readings {
				kappas[k] = append(kappas[k], r.Value)
			}
			s.Pairwise = append(s.Pairwise, *a)
		}
	}
	for _, values := range kappas {
		s.MeanKappa = append(s.MeanKappa, stats.Mean(values))
	}
	items := make([][]string, len(list))
	unanimous := 0
	for i, p := range list {
		s.Consensus.Add(string(p.pair.Label.Label), string(cmp.Or(p.consensus, "none")), 1)
		if p.disputed() {
			s.Disputes++
		}
		if consensus(ConsensusUnanimous, p.annotations) != "" {
			unanimous++
		}
		for _, a := range p.annotations {
			items[i] = append(items[i], string(a.Label))
		}
	}
	s.Unanimous = shareOf(unanimous, len(list))
	// As a scale: a document that misleads is further from one that supports than from one that does neither.
	r := stats.NewRatings(items, string(corpus.Misleading), string(corpus.Unrelated), string(corpus.Supporting))
	for _, c := range []stats.Coefficient{
		stats.Percent(r), stats.Fleiss(r), stats.Alpha(r, stats.Nominal), stats.Alpha(r, stats.OrdinalScale), stats.AC1(r), stats.AC2(r, stats.Ordinal(len(r.Labels))),
	} {
		s.Coefficients = append(s.Coefficients, c.WithInterval(resampling(), replicates, 0.95))
	}
	return s
}

// noAgreement is that of annotators who labelled no pair in common.
func noAgreement() *Agreement {
	a := &Agreement{Baselines: []Baseline{}}
	for _, r := range stats.Readings(string(corpus.Supporting), string(corpus.Misleading)) {
		k := stats.KappaReading(r, nil, nil, stanceNames()...)
		a.Readings = append(a.Readings, k.WithInterval(resampling(), replicates, 0.95))
	}
	return a
}

// LabelStatistics counts what is fresh and live, and the imported tables, without running anything.
func (w *Workspace) LabelStatistics(ctx context.Context) (LabelStatistics, error) {
	t := newTallying()
	k := &walk{w: w, e: w.newEngine(pipeline.Options{Explain: true}), explain: true, until: KindControl, stages: stages{w}, visit: t.watch(visitor{})}
	if err := k.run(ctx); err != nil {
		return LabelStatistics{}, fmt.Errorf("count labels: %w", err)
	}
	s := t.statistics()
	tables, err := w.published(ctx)
	for _, p := range tables {
		s.Tables = append(s.Tables, p.statistics())
	}
	return s, err
}

// A publishedTable is an imported table with labels, as it was published: whatever the recipe takes of it.
type publishedTable struct {
	name string
	*tabulation
	ratings map[[2]string]int // claims by rating, and by verdict; "" for one that the projection drops
}

// published counts the imported tables that have labels, row by row, with verdicts as the recipe projects them.
// Nothing has to be built for it.
func (w *Workspace) published(ctx context.Context) (out []publishedTable, _ error) {
	projection, err := corpus.ProjectionByName(w.Config.Recipe.Projection)
	if err != nil {
		return nil, err
	}
	k := &walk{w: w, e: w.newEngine(pipeline.Options{Explain: true}), stages: stages{w}}
	for _, table := range scrapers.Tables {
		p := publishedTable{table.Name, newTabulation(), map[[2]string]int{}}
		for row, err := range k.rows(table) {
			if err = cmp.Or(err, ctx.Err()); err != nil {
				return nil, fmt.Errorf("count the table %s: %w", table.Name, err)
			}
			claims, err := table.Parse(row)
			if err != nil {
				continue // the stage of the row tells of it
			}
			links, err := w.links(table.Name + "/" + row.Key)
			if err != nil {
				return nil, fmt.Errorf("count the table %s: %w", table.Name, err)
			}
			var labels []corpus.StanceLabel
			for _, l := range links {
				labels = append(labels, l.Label)
			}
			for _, c := range claims {
				c = w.Config.Recipe.rated(c)
				binary, ok := projection.Apply(c)
				if !ok || !slices.Contains(verdictColumns, binary) {
					binary = ""
				}
				p.ratings[[2]string{c.Rating, binary}]++
				p.claim(c.Text, binary, labels...)
			}
		}
		if p.labelled > 0 {
			out = append(out, p)
		}
	}
	return out, nil
}

func (p publishedTable) statistics() TableStatistics {
	var ratings []string
	columns := verdictColumns
	for key := range p.ratings {
		if !slices.Contains(ratings, key[0]) {
			ratings = append(ratings, key[0])
		}
		if key[1] == "" {
			columns = []string{"true", "false", ""}
		}
	}
	slices.Sort(ratings)
	s := TableStatistics{
		Table: p.name, Claims: p.claims, Verdicts: stats.NewTable(ratings, columns), Words: p.each(p.words), Documents: p.each(p.pairs),
		Labels: p.labels, ImpliedFalse: impliedFalse(p.labels), ByClaim: p.byClaim(), Baselines: baselines(p.reference, p.given),
	}
	for key, n := range p.ratings {
		s.Verdicts.Add(key[0], key[1], n)
	}
	return s
}
