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
	"assay/scrapers"
	"assay/stats"
)

// Labels and verdicts in the order of tables.
var (
	stanceRows  = []string{string(corpus.Supporting), string(corpus.Misleading), string(corpus.Unrelated)}
	verdictCols = []string{"true", "false"}
	effectRows  = []string{string(corpus.EffectConfirm), string(corpus.EffectCorrect), string(corpus.EffectFlip), string(corpus.EffectInherit), string(corpus.EffectAbstain), string(corpus.EffectUnknown)}
	answerRows  = []string{string(corpus.AnswerTrue), string(corpus.AnswerFalse), string(corpus.AnswerUnrelated)}
)

// corpusCount adds up one set of labels.
type corpusCount struct {
	report.Corpus
	words int
}

func newCorpusCount(name string) *corpusCount {
	return &corpusCount{Corpus: report.Corpus{Name: name, Labels: stats.NewTable(stanceRows, verdictCols), Claimed: stats.NewTable(stanceRows, verdictCols), Verdicts: map[string]int{}}}
}

// claim counts a claim with the labels of its pairs.
func (c *corpusCount) claim(text, verdict string, labels []string) {
	c.Claims++
	c.words += len(strings.Fields(text))
	c.Verdicts[verdict]++
	c.Pairs += len(labels)
	has := map[string]bool{}
	for _, l := range labels {
		if !slices.Contains(stanceRows, l) || !slices.Contains(verdictCols, verdict) {
			continue // a pair that its table did not label, or a claim that is neither true nor false
		}
		has[l] = true
		c.Labels.Add(l, verdict, 1)
	}
	for l := range has {
		c.Claimed.Add(l, verdict, 1)
	}
	if has[string(corpus.Supporting)] && has[string(corpus.Misleading)] {
		c.Both++
	}
	if len(has) == 1 && has[string(corpus.Unrelated)] {
		c.Unrelated++
	}
}

func (c *corpusCount) done() report.Corpus {
	if c.Claims > 0 {
		c.Words = float64(c.words) / float64(c.Claims)
	}
	return c.Corpus
}

// published counts what imported tables say, row by row, as the recipe projects their verdicts. Nothing
// has to be built for it.
func (w *Workspace) published(ctx context.Context) (out []report.Corpus, err error) {
	projection, err := corpus.ProjectionByName(w.Config.Recipe.Projection)
	if err != nil {
		return nil, err
	}
	for _, table := range scrapers.Tables {
		c := newCorpusCount("published " + table.Name)
		labelled := false
		for entry, err := range w.tables.Rows.Scan(kv.Prefix(table.Name), "") {
			if err = cmp.Or(err, ctx.Err()); err != nil {
				return nil, fmt.Errorf("read rows of %s: %w", table.Name, err)
			}
			claims, err := table.Parse(entry.Value)
			if err != nil {
				continue // an exclusion; the build tells of it
			}
			links, err := w.links(table.Name + "/" + entry.Value.Key)
			if err != nil {
				return nil, err
			}
			var labels []string
			for _, l := range links {
				labels = append(labels, string(l.Label))
				labelled = labelled || l.Label != ""
			}
			for _, claim := range claims {
				if verdict, ok := projection.Apply(w.Config.Recipe.rated(claim)); ok {
					c.claim(claim.Text, verdict, labels)
				}
			}
		}
		if labelled {
			out = append(out, c.done())
		}
	}
	return out, nil
}

// ReportData collects what a report tells: the fresh part of the corpus, as a release would hold it, the
// labels of imported tables, and the cost of all calls. It asks and writes nothing.
func (w *Workspace) ReportData(ctx context.Context) (d report.Data, err error) {
	d.Name = w.Config.Recipe.Name
	ours := newCorpusCount("ours")
	effects := stats.NewTable(effectRows, stanceRows)
	zero := stats.NewTable(answerRows, verdictCols)
	type seen struct {
		text, verdict string
		labels        []string
		zero          corpus.Answer
	}
	var mu sync.Mutex
	claims, pairs := map[string]*seen{}, map[string]bool{}
	count := newTallying()
	visit := visitor{
		claim: func(_ corpus.Ref, c corpus.Claim, binary string) error {
			mu.Lock()
			defer mu.Unlock()
			if claims[c.ID] == nil {
				claims[c.ID] = &seen{text: c.Text, verdict: binary}
			}
			return nil
		},
		pair: func(c corpus.Claim, _ corpus.Document, l corpus.Label, _ evidence) error {
			mu.Lock()
			first := !pairs[l.ID]
			pairs[l.ID] = true
			if s := claims[c.ID]; first && s != nil && l.Status != corpus.LabelHeld {
				s.labels, s.zero = append(s.labels, string(l.Label)), l.Zero
				if l.Effect != "" && slices.Contains(effects.Rows, string(l.Effect)) {
					effects.Add(string(l.Effect), string(l.Label), 1)
				}
			}
			mu.Unlock()
			return nil
		},
	}
	e := w.newEngine(pipeline.Options{Explain: true})
	defer w.runs(e)()
	k := &walk{w: w, e: e, until: KindControl, visit: count.watch(visit), explain: true, stages: stages{w}}
	if err := k.run(ctx); err != nil {
		return d, fmt.Errorf("collect the report: %w", err)
	}
	for _, id := range sortedKeys(claims) {
		s := claims[id]
		ours.claim(s.text, s.verdict, s.labels)
		if slices.Contains(answerRows, string(s.zero)) && slices.Contains(verdictCols, s.verdict) {
			zero.Add(string(s.zero), s.verdict, 1)
		}
	}
	if ours.Claims > 0 {
		d.Corpora = append(d.Corpora, ours.done())
	}
	others, err := w.published(ctx)
	if err != nil {
		return d, err
	}
	d.Corpora = append(d.Corpora, others...)
	labels := count.statistics()
	if a := labels.Agreement; a != nil {
		d.Agreement = append(d.Agreement, report.Agreement{Between: "published and ours", Majority: a.Majority, Readings: a.Readings})
	}
	if labels.Panel != nil {
		for _, a := range labels.Panel.Pairwise {
			d.Agreement = append(d.Agreement, report.Agreement{Between: a.Reference + " and " + a.Other, Majority: a.Majority, Readings: a.Readings})
		}
	}
	d.Effects, d.Zero = &effects, &zero
	d.Costs, err = w.costs()
	return d, err
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
	files, err := report.Write(dir, d)
	return dir, files, err
}
