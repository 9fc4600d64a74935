package assay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"assay/annotate"
	"assay/corpus"
	"assay/kv"
	"assay/llm"
	"assay/pipeline"
	"assay/stats"
)

// Tried is what a prompt or a model as the workspace names it now makes of a sample of labelled pairs.
// Nothing of it is stored in the workspace.
type Tried struct {
	Pairs  int               `json:"pairs"` // of the sample
	Seed   uint64            `json:"seed"`
	Flow   stats.Table       `json:"flow"`    // pairs by the label that they have (rows) and the one that they got
	Moved  []string          `json:"moved"`   // ids of pairs whose label is another one, sorted
	Failed map[string]string `json:"failed"`  // why pairs got no label, by id
	LLM    llm.Stats         `json:"llm"`     // calls of the trial, all of them bought
	All    int               `json:"labeled"` // labelled pairs that the sample is out of
}

// Places of a flow beside the three labels.
const (
	flowHeld   = "held"
	flowFailed = "no label"
)

// tried is one pair of a sample.
type tried struct {
	rank string // its place in the order of the seed
	in   annotate.Input
	old  corpus.Label
}

// Try labels a sample of pairs again, with prompts and models as they are now, in a scratch space that is
// gone afterwards. The sample of a seed is the same as long as the corpus has the same pairs.
func (w *Workspace) Try(ctx context.Context, n int, seed uint64) (t Tried, err error) {
	sample, all, err := w.sample(ctx, n, seed)
	if err != nil {
		return t, err
	}
	if len(sample) == 0 {
		return t, errors.New("--try: no pair has a label yet that another one could be set beside; build first")
	}
	if err := w.clearTrials(); err != nil {
		return t, err
	}
	dir, err := os.MkdirTemp(filepath.Join(w.Dir, stateDir), trialPrefix)
	if err != nil {
		return t, fmt.Errorf("make a scratch space: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	store, err := kv.Open(filepath.Join(dir, "store"), kv.Options{Reserve: w.Config.Runtime.ReserveMiB << 20})
	if err != nil {
		return t, fmt.Errorf("make a scratch space: %w", err)
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	o := w.models
	o.Store, o.Answered, o.Batch = store, nil, false
	model, err := llm.New(o)
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, model.Close()) }()

	flow := append(stanceNames(), flowHeld)
	t = Tried{Pairs: len(sample), Seed: seed, All: all, Flow: stats.NewTable(flow, append(slices.Clone(flow), flowFailed)), Failed: map[string]string{}}
	protocol, settings := w.protocol(), w.labelSettings()
	type outcome struct {
		tried
		label corpus.Label
		err   error
	}
	source := func(yield func(tried, error) bool) {
		for _, s := range sample {
			if !yield(s, nil) {
				return
			}
		}
	}
	for got, err := range pipeline.Each(ctx, w.workers(), iter.Seq2[tried, error](source), func(ctx context.Context, s tried) (outcome, error) {
		l, err := protocol.Annotate(ctx, model, settings, s.in)
		var stops interface{ StopsRun() bool }
		if ctx.Err() != nil || errors.As(err, &stops) && stops.StopsRun() {
			return outcome{}, err
		}
		return outcome{s, l, err}, nil
	}) {
		if err != nil {
			t.LLM = model.Stats()
			return t, err
		}
		was, is := flowOf(got.old), flowFailed
		if got.err == nil {
			is = flowOf(got.label)
		} else {
			t.Failed[got.old.ID] = strings.TrimPrefix(got.err.Error(), "label "+got.old.ID+": ") // named by the key
		}
		t.Flow.Add(was, is, 1)
		if was != is {
			t.Moved = append(t.Moved, got.old.ID)
		}
	}
	slices.Sort(t.Moved)
	t.LLM = model.Stats()
	return t, nil
}

// trialPrefix begins the name of a scratch space.
const trialPrefix = "try-"

// clearTrials takes away the scratch spaces of trials that were killed; one process at a time owns the workspace.
func (w *Workspace) clearTrials() error {
	entries, err := os.ReadDir(filepath.Join(w.Dir, stateDir))
	for _, e := range entries {
		if e.IsDir() && strings.HasPrefix(e.Name(), trialPrefix) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(w.Dir, stateDir, e.Name())))
		}
	}
	if err != nil {
		return fmt.Errorf("take away what killed trials left: %w", err)
	}
	return nil
}

func flowOf(l corpus.Label) string {
	if l.Status == corpus.LabelHeld {
		return flowHeld
	}
	return string(l.Label)
}

// sample takes n of the labelled pairs, by the order that a seed gives their ids. Labels that a changed
// prompt or model made stale are what a trial is about, so they count.
func (w *Workspace) sample(ctx context.Context, n int, seed uint64) (out []tried, all int, err error) {
	e := w.newEngine(pipeline.Options{Explain: true})
	defer w.runs(e)()
	var mu sync.Mutex
	verdicts, met := map[string]string{}, map[string]bool{}
	visit := visitor{
		claim: func(_ corpus.Ref, c corpus.Claim, binary string) error {
			mu.Lock()
			defer mu.Unlock()
			verdicts[c.ID] = binary
			return nil
		},
		pair: func(c corpus.Claim, d corpus.Document, l corpus.Label, _ evidence) error {
			mu.Lock()
			defer mu.Unlock()
			if met[l.ID] {
				return nil
			}
			met[l.ID] = true
			sum := pipeline.SumOf([]any{seed, l.ID})
			s := tried{fmt.Sprintf("%x", sum), labelInput(c, verdicts[c.ID] == "true", d, l.Zero), l}
			i, _ := slices.BinarySearchFunc(out, s, func(a, b tried) int { return cmp.Compare(a.rank, b.rank) })
			if i < n {
				out = slices.Insert(out, i, s)
				out = out[:min(len(out), n)]
			}
			return nil
		},
	}
	k := &walk{w: w, e: e, until: KindLabel, below: true, visit: visit, explain: true, stages: stages{w}}
	if err := k.run(ctx); err != nil {
		return nil, 0, fmt.Errorf("take a sample: %w", err)
	}
	return out, len(met), nil
}

// Text is the trial for people.
func (t Tried) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "tried on %d of %d labelled pairs (seed %d); rows are labels as they are, columns as they would be:\n%s", t.Pairs, t.All, t.Seed, t.Flow)
	fmt.Fprintf(&b, "%d of %d move; %s\n%s", len(t.Moved), t.Pairs, Cost(t.LLM.Spend), Unbilled(t.LLM.Spend))
	for _, id := range sortedKeys(t.Failed) {
		fmt.Fprintf(&b, "no label for %s: %s\n", id, t.Failed[id])
	}
	if t.LLM.Unpriced == 0 && t.LLM.Calls > 0 {
		fmt.Fprintf(&b, "at this rate all %d cost about $%.4f\n", t.All, t.LLM.USD/float64(t.Pairs)*float64(t.All))
	}
	return b.String()
}
