package assay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"assay/corpus"
	"assay/kv"
	"assay/llm"
	"assay/output/report"
	"assay/pipeline"
	"assay/stats"
)

// ReportData collects what a report tells: the fresh part of the corpus, as a release would hold it, the
// labels of imported tables, and the cost of all calls. It asks and writes nothing.
func (w *Workspace) ReportData(ctx context.Context) (d report.Data, err error) {
	var mu sync.Mutex
	claims := map[string]claimTold{}
	count := newTallying()
	visit := count.watch(visitor{claim: func(_ corpus.Ref, c corpus.Claim, binary string) error {
		mu.Lock()
		defer mu.Unlock()
		claims[c.ID] = claimTold{c.Text, binary}
		return nil
	}})
	e := w.newEngine(pipeline.Options{Explain: true})
	defer w.runs(e)()
	k := &walk{w: w, e: e, until: KindControl, visit: visit, explain: true, stages: stages{w}}
	if err := k.run(ctx); err != nil {
		return d, fmt.Errorf("collect the report: %w", err)
	}
	d = count.report(claims)
	d.Name = w.Config.Recipe.Name
	tables, err := w.published(ctx)
	if err != nil {
		return d, err
	}
	for _, t := range tables {
		d.Corpora = append(d.Corpora, t.corpus("published "+t.name))
	}
	d.Missing = w.Config.Recipe.missing(d)
	d.Costs, err = w.costs()
	return d, err
}

// claimTold is the wording of a claim and its verdict.
type claimTold struct{ text, binary string }

// report is what was gathered of a corpus of these claims.
func (t *tallying) report(claims map[string]claimTold) (d report.Data) {
	ours, zero, effects := newTabulation(), stats.NewTable(answerNames(), verdictColumns), stats.NewTable(effectNames, stanceNames())
	pairs, zeros := t.byClaim(), map[string]corpus.Answer{}
	for _, id := range sortedKeys(t.asked) {
		if a := t.asked[id]; a.outcome == outcomeLabelled {
			zeros[a.claim.ID] = a.label.Zero
			effects.Add(string(cmp.Or(a.label.Effect, corpus.EffectUnknown)), string(a.label.Label), 1)
		}
	}
	for _, id := range sortedKeys(claims) {
		c := claims[id]
		var labels []corpus.StanceLabel
		if p := pairs[id]; p != nil {
			labels = p.labels
		}
		ours.claim(c.text, c.binary, labels...)
		if z := string(zeros[id]); slices.Contains(zero.Rows, z) && slices.Contains(verdictColumns, c.binary) {
			zero.Add(z, c.binary, 1)
		}
	}
	if ours.claims > 0 {
		d.Corpora = append(d.Corpora, ours.corpus("ours"))
	}
	s := t.statistics()
	d.ZeroOutcomes = s.Zero
	d.Zero, d.Effects, d.EffectsBy, d.Constants = &zero, &effects, &s.Effects, constantsTold(s.Constants)
	if s.Agreement != nil {
		d.Agreement = append(d.Agreement, s.Agreement.told("published and ours"))
	}
	for _, o := range s.Outcomes {
		d.Strata = append(d.Strata, report.Stratum{By: o.By, Value: known(o.Value), Asked: o.Asked, Labelled: o.Outcomes[outcomeLabelled], Held: o.Outcomes[outcomeHeld], Refused: o.Refused.told(), Filtered: o.Filtered.told(), Failed: o.Failed.told()})
	}
	if st := s.Stability; st != nil {
		d.Stability = &report.Stability{Samples: st.Samples, Unstable: st.Unstable.told(), Margin: st.Margin, ByLabel: st.ByLabel, ByMargin: st.ByMargin}
	}
	if c := s.Control; c != nil {
		d.Control = &report.Control{Claims: c.Claims, Outcomes: c.Outcomes, Answers: c.Answers, Bears: c.Related.told(), CorpusBears: c.Corpus.told(), Flips: c.Flips.told(), CorpusFlips: c.CorpusFlips.told(), Constants: constantsTold(c.Constants)}
	}
	if p := s.Panel; p != nil {
		d.Panel = &report.Panel{Pairs: p.Pairs, Coefficients: p.Coefficients, Consensus: p.Consensus, Unanimous: p.Unanimous.told(), Disputed: report.Share{N: p.Disputes, Of: p.Pairs}}
		for _, a := range p.Annotators {
			d.Panel.Annotators = append(d.Panel.Annotators, report.Annotator{Name: a.Annotator, Model: a.Model, Outcomes: a.Outcomes, Labels: a.Labels})
		}
		for _, a := range p.Pairwise {
			d.Panel.Pairwise = append(d.Panel.Pairwise, a.told(a.Reference+" and "+a.Other))
		}
	}
	return d
}

func (s Share) told() report.Share { return report.Share{N: s.N, Of: s.Of} }

func (a Agreement) told(between string) report.Agreement {
	out := report.Agreement{Between: between, Majority: a.Majority, Readings: a.Readings}
	for _, b := range a.Baselines {
		out.Baselines = append(out.Baselines, report.Baseline{Answer: b.Answer, Readings: b.Readings})
	}
	return out
}

func constantsTold(list []ConstantEffects) (out []report.Constant) {
	for _, c := range list {
		out = append(out, report.Constant{Answer: c.Answer, Effects: c.Effects})
	}
	return out
}

func (t *tabulation) corpus(name string) report.Corpus {
	return report.Corpus{
		Name: name, Claims: t.claims, Labelled: t.labelled, Words: t.each(t.words), Pairs: t.pairs, Labels: t.labels, Claimed: t.claimed,
		Both: t.both, Unrelated: t.unrelated, Verdicts: t.verdicts,
	}
}

// missing says of each section what it lacks, and which setting would make it.
func (r Recipe) missing(d report.Data) map[string][]string {
	l, out := r.Label, map[string][]string{}
	lacks := func(section string, there bool, format string, args ...any) {
		if !there {
			out[section] = append(out[section], fmt.Sprintf(format, args...))
		}
	}
	lacks("agreement", len(d.Agreement) > 0, "No imported table labels a pair that is labelled here; assay import pairs and assay import claims-table read tables with labels.")
	switch {
	case len(l.Panel.Annotators) == 0:
		lacks("panel", d.Panel != nil, "Nobody else was asked. recipe.label.panel.annotators names others, each a role of recipe.models; recipe.label.panel.pairs says about how many pairs they are asked.")
	default:
		lacks("panel", d.Panel != nil, "%s of recipe.label.panel.annotators were asked about no pair yet. A panel is drawn once all labels are there; assay build asks.", strings.Join(l.Panel.Annotators, ", "))
	}
	asked, why := d.Zero != nil && d.Zero.Total() > 0, zeroText(d.ZeroOutcomes)
	switch {
	case !l.ZeroContext:
		lacks("controls", asked, "Nobody was asked about claims alone. recipe.label.zero_context: true asks.")
	default:
		if why != "" {
			lacks("controls", asked, "No claim has an answer without a document: %s.", why)
			break
		}
		lacks("controls", asked, "No claim was answered without a document yet; assay build asks (recipe.label.zero_context).")
	}
	switch {
	case l.Shuffled == 0:
		lacks("controls", d.Control != nil, "Nobody was asked about documents of other claims. recipe.label.shuffled: 200 asks about 200 claims, each with one.")
	default:
		lacks("controls", d.Control != nil, "No document of another claim was asked about yet (recipe.label.shuffled: %d). They are dealt once all labels are there; assay build asks.", l.Shuffled)
	}
	switch {
	case l.Samples < 2:
		lacks("stability", d.Stability != nil, "Every pair was asked about once. recipe.label.samples: 5 asks five times and keeps the margin.")
	default:
		lacks("stability", d.Stability != nil, "No pair has %d samples yet; assay build asks (recipe.label.samples).", l.Samples)
	}
	lacks("strata", len(d.Strata) > 0, "No pair was asked about yet; assay build asks.")
	if why == "" {
		why = "recipe.label.zero_context"
	}
	lacks("effects", asked, "Without an answer to the claim alone the effect of a document is not known (%s).", why)
	return out
}

// costs sums the call records by role and model.
func (w *Workspace) costs() ([]report.Cost, error) {
	sums := map[llm.PastKey]*report.Cost{}
	for rec, err := range w.llm.Calls() {
		var corrupt *kv.CorruptError
		if errors.As(err, &corrupt) {
			w.corrupt.add(err)
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("sum call records: %w", err)
		}
		key := llm.PastKey{Role: rec.Role, Endpoint: rec.Endpoint, Model: rec.Model}
		c := sums[key]
		if c == nil {
			c = &report.Cost{Role: rec.Role, Endpoint: rec.Endpoint, Model: rec.Model}
			sums[key] = c
		}
		c.Calls++
		if rec.Batch != "" {
			c.Batch++
		}
		u := rec.Usage
		c.Prompt, c.Cached, c.Completion, c.Reasoning = c.Prompt+u.Prompt, c.Cached+u.Cached, c.Completion+u.Completion, c.Reasoning+u.Reasoning
		if rec.USD == nil {
			c.Unpriced++
		} else {
			c.USD += *rec.USD
		}
	}
	var out []report.Cost
	for _, c := range sums {
		out = append(out, *c)
	}
	slices.SortFunc(out, func(a, b report.Cost) int {
		return cmp.Or(cmp.Compare(a.Role, b.Role), cmp.Compare(a.Endpoint, b.Endpoint), cmp.Compare(a.Model, b.Model))
	})
	return out, nil
}

// ReportDir is where a report goes when nobody says otherwise.
const ReportDir = "report"

// WriteReport writes the report into a folder of the workspace, "" for ReportDir, and returns its files.
func (w *Workspace) WriteReport(ctx context.Context, dir string) (string, []string, error) {
	if dir == "" {
		dir = filepath.Join(w.Dir, ReportDir)
	}
	d, err := w.ReportData(ctx)
	if err != nil {
		return dir, nil, err
	}
	if len(d.Corpora) == 0 && len(d.Costs) == 0 {
		return dir, nil, errors.New("there is nothing to report: no claim is built and no table with labels is imported; see assay status")
	}
	files, err := writeReport(dir, d)
	return dir, files, err
}
