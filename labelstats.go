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
	Effects      stats.Table        `json:"effects"`   // by verdict; see corpus.Effect
	Outcomes     []StratumOutcomes  `json:"outcomes"`  // what came of asking, by stratum
	Stability    *StabilityCounts   `json:"stability"` // nil where every pair was asked about once
	Control      *ControlStatistics `json:"control"`   // nil where none was asked
	Panel        *PanelStatistics   `json:"panel"`     // nil where there is none
	Agreement    *Agreement         `json:"agreement"` // with the labels of imported tables; nil where they have none
	Tables       []TableStatistics  `json:"tables"`    // imported tables with labels, as they were published
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

// ClaimCounts counts claims by the labels of their documents.
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
	ByLabel  stats.Table     `json:"by_label"` // label by stable, unstable
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
	// claim, of those whose answer without a document is known.
	Flips Share `json:"flips"`
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
	for _, r := range stats.Readings(string(corpus.Supporting), string(corpus.Misleading)) {
		k := stats.KappaReading(r, reference, other, stanceNames()...)
		a.Readings = append(a.Readings, k.WithInterval(resampling(), replicates, 0.95))
	}
	return a
}

// replicates of an interval, drawn in the same order whenever the data is the same.
const replicates = 2000

func resampling() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }

// baselines scores constant answers against labels.
func baselines(reference, verdicts []string) (out []Baseline) {
	for _, answer := range []corpus.Answer{corpus.AnswerTrue, corpus.AnswerFalse, corpus.AnswerUnrelated} {
		given := make([]string, len(reference))
		for i, v := range verdicts {
			given[i] = string(annotate.LabelOf(answer, v == "true"))
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
}

func newTallying() *tallying {
	return &tallying{asked: map[string]askedPair{}, panel: map[string]panelled{}, control: map[string]controlled{}, compared: map[string]compared{}}
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
	s := LabelStatistics{Labels: stats.NewTable(stanceNames(), verdictColumns), Effects: stats.NewTable(effectNames, verdictColumns), Tables: []TableStatistics{}}
	var found claimCounter
	margins, samples, unstable := []*float64{}, 0, 0
	byLabel := stats.NewTable(stanceNames(), []string{"stable", "unstable"})
	for _, id := range sortedKeys(t.asked) {
		a := t.asked[id]
		if a.outcome != outcomeLabelled {
			continue
		}
		s.Labels.Add(string(a.label.Label), a.binary, 1)
		s.Effects.Add(string(cmp.Or(a.label.Effect, corpus.EffectUnknown)), a.binary, 1)
		found.add(a.claim.ID, a.label.Label, a.binary)
		if st := a.label.Stability; st != nil {
			margins, samples = append(margins, &st.Margin), max(samples, st.Samples)
			word := "stable"
			if corpus.HasFlag(a.label.Flags, corpus.FlagUnstable) {
				word = "unstable"
				unstable++
			}
			byLabel.Add(string(a.label.Label), word, 1)
		}
	}
	s.ImpliedFalse, s.Claims = impliedFalse(s.Labels), found.counts()
	if len(margins) > 0 {
		s.Stability = &StabilityCounts{Samples: samples, Unstable: shareOf(unstable, len(margins)), Margin: stats.Mean(margins), ByLabel: byLabel}
	}
	s.Outcomes = t.outcomes()
	s.Control, s.Panel = t.controls(s.Labels), t.panels()
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

// claimCounter counts claims by what their documents do.
type claimCounter struct{ of map[string]*[2]bool } // supporting, misleading; key: claim and verdict

func (c *claimCounter) add(claim string, l corpus.StanceLabel, verdict string) {
	if c.of == nil {
		c.of = map[string]*[2]bool{}
	}
	key := claim + "\x00" + verdict
	if c.of[key] == nil {
		c.of[key] = &[2]bool{}
	}
	switch l {
	case corpus.Supporting:
		c.of[key][0] = true
	case corpus.Misleading:
		c.of[key][1] = true
	}
}

func (c *claimCounter) counts() ClaimCounts {
	out := ClaimCounts{Claims: len(c.of)}
	supporting, misleading := 0, 0
	for key, has := range c.of {
		switch *has {
		case [2]bool{true, true}:
			out.Both++
		case [2]bool{}:
			out.Unrelated++
		}
		if has[0] {
			supporting++
		}
		if has[1] {
			misleading++
			if strings.HasSuffix(key, "\x00true") {
				out.MisleadTrue++
			}
		}
	}
	out.Supporting, out.Misleading = shareOf(supporting, out.Claims), shareOf(misleading, out.Claims)
	return out
}

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
func (t *tallying) controls(labels stats.Table) *ControlStatistics {
	if len(t.control) == 0 {
		return nil
	}
	answers := []corpus.Answer{corpus.AnswerTrue, corpus.AnswerFalse, corpus.AnswerUnrelated}
	c := &ControlStatistics{
		Outcomes: map[string]int{}, Effects: map[string]int{},
		Answers: stats.NewTable(names(answers, func(a corpus.Answer) string { return string(a) }), verdictColumns),
	}
	related, answered, known, flips := 0, 0, 0, 0
	claims := map[string]bool{}
	for _, id := range sortedKeys(t.control) {
		o := t.control[id]
		claims[o.pair.Claim.ID] = true
		c.Outcomes[o.outcome]++
		if o.outcome != outcomeLabelled {
			continue
		}
		answered++
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
	c.Claims = len(claims)
	c.Related, c.Flips, c.Corpus = shareOf(related, answered), shareOf(flips, known), shareOf(labels.Total()-unrelated, labels.Total())
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
	for _, table := range scrapers.Tables {
		counted, ok, err := w.tableStatistics(ctx, table)
		if err != nil {
			return s, fmt.Errorf("count the table %s: %w", table.Name, err)
		}
		if ok {
			s.Tables = append(s.Tables, counted)
		}
	}
	return s, nil
}

// tableStatistics counts a table as it was imported; ok is false where it has no labels.
func (w *Workspace) tableStatistics(ctx context.Context, table scrapers.Table) (s TableStatistics, ok bool, _ error) {
	projection, err := corpus.ProjectionByName(w.Config.Recipe.Projection)
	if err != nil {
		return s, false, err
	}
	k := &walk{w: w, e: w.newEngine(pipeline.Options{Explain: true}), stages: stages{w}}
	s.Table, s.Labels = table.Name, stats.NewTable(stanceNames(), verdictColumns)
	ratings := map[[2]string]int{}
	words, documents := 0, 0
	var found claimCounter
	var reference, verdicts []string
	for row, err := range k.rows(table) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return s, false, err
		}
		key := table.Name + "/" + row.Key
		links, err := w.links(key)
		if err != nil {
			return s, false, err
		}
		claims, err := table.Parse(row)
		if err != nil {
			continue // the stage of the row tells of it
		}
		for _, c := range claims {
			c = w.Config.Recipe.rated(c)
			binary, ok := projection.Apply(c)
			if !ok || !slices.Contains(verdictColumns, binary) {
				binary = ""
			}
			s.Claims++
			words += len(strings.Fields(c.Text))
			documents += len(links)
			ratings[[2]string{c.Rating, binary}]++
			for _, l := range links {
				if l.Label == "" || binary == "" {
					continue
				}
				s.Labels.Add(string(l.Label), binary, 1)
				found.add(c.ID, l.Label, binary)
				reference, verdicts = append(reference, string(l.Label)), append(verdicts, binary)
			}
		}
	}
	if len(reference) == 0 {
		return s, false, nil
	}
	s.Words, s.Documents = float64(words)/float64(s.Claims), float64(documents)/float64(s.Claims)
	var names []string
	columns := verdictColumns
	for key := range ratings {
		if !slices.Contains(names, key[0]) {
			names = append(names, key[0])
		}
		if key[1] == "" {
			columns = []string{"true", "false", ""}
		}
	}
	slices.Sort(names)
	s.Verdicts = stats.NewTable(names, columns)
	for key, n := range ratings {
		s.Verdicts.Add(key[0], key[1], n)
	}
	s.ImpliedFalse, s.ByClaim, s.Baselines = impliedFalse(s.Labels), found.counts(), baselines(reference, verdicts)
	return s, true, nil
}
