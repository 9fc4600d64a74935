package assay

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"assay/annotate"
	"assay/corpus"
	"assay/fetch"
	"assay/kv"
	"assay/llm"
	"assay/pipeline"
	"assay/planner"
	"assay/scrapers"
	"assay/stats"
)

// BuildOptions says what a build does. The zero value runs everything that is stale and releases.
type BuildOptions struct {
	Until       string // last stage: a kind or kind/plugin
	Only        string // the one stage that may run: a kind or kind/plugin
	RetryFailed bool
	DryRun      bool // explain what would run
	Batch       bool // take answers from batch APIs and order what is missing; the workspace was opened with Batch
	As          string
	MaxDuration time.Duration
	Progress    pipeline.Progress
	Foreseen    *Forecast // of a dry run before this one, to be set beside what happens

	// Stop, when closed, lets what is in flight finish and starts nothing new: calls that are being
	// paid for are stored. The build then ends with ErrInterrupted.
	Stop <-chan struct{}

	// first runs before the walk; its error ends the build.
	first func(ctx context.Context, e *pipeline.Engine, stopped func() error) error
	notes func() map[string]string // remarks on sources, for SourceRun
	began time.Time                // of the run that this build is part of; zero means now
}

// BuildReport is what a build did. Labels, Agreement and Recall are over what the walk met, fresh or new.
type BuildReport struct {
	Pipeline   pipeline.Report   `json:"pipeline"`
	Fetch      fetch.Stats       `json:"fetch"`
	LLM        llm.Stats         `json:"llm"`
	Labels     map[string]int    `json:"labels"`
	Examples   map[string]string `json:"examples"` // for each label the pair with the smallest id
	Effects    map[string]int    `json:"effects"`
	Named      map[string]int    `json:"named,omitempty"`      // mentions by type, events, and refused proposals by reason; each text once
	Drafts     map[string]int    `json:"drafts,omitempty"`     // verdicts that a judge drafted
	Candidates map[string]int    `json:"candidates,omitempty"` // claims found in documents: "found", and refused ones by reason
	Agreement  *Agreement        `json:"agreement,omitempty"`
	Statistics *LabelStatistics  `json:"statistics,omitempty"` // without the imported tables; nil where the walk came to no label
	Recall     *Recall           `json:"recall,omitempty"`
	Release    *ReleaseResult    `json:"release,omitempty"`
	Canaries   []llm.Canary      `json:"canaries,omitempty"` // what the models in use were found to do
	Corrupt    []string          `json:"corrupt"`            // records that could not be read and were made again
	Hints      []string          `json:"hints,omitempty"`    // settings that left out what may have been meant
	Waiting    Waiting           `json:"waiting,omitzero"`   // for a person, once the walk is through
	Unclaimed  int               `json:"unclaimed"`          // imported pages that belong to no site of the recipe
	Alarms     []scrapers.Alarm  `json:"alarms"`             // signs that a site is not as its scraper expects
	BadMarkup  []string          `json:"bad_markup"`         // pages read in this run of which markup was given up, by address
	TimeUp     bool              `json:"time_up"`
	Batches    *Batches          `json:"batches,omitempty"`
	Forecast   *Forecast         `json:"forecast,omitempty"` // of a dry run
	Fact       *Fact             `json:"fact,omitempty"`     // of a run that a forecast was made for
}

// Waiting counts what waits for a person.
type Waiting struct {
	Candidates int `json:"candidates,omitzero"` // see assay ls candidates
	Ratings    int `json:"ratings,omitzero"`    // see assay ls ratings
}

// Agreement compares labels with those of a reference: of an imported table, or of another annotator.
type Agreement struct {
	Reference string            `json:"reference,omitzero"` // annotators of a panel
	Other     string            `json:"other,omitzero"`
	Readings  []stats.Agreement `json:"readings"`          // over all pairs; where the reference is supporting or misleading; where both are
	Majority  float64           `json:"majority_baseline"` // share of the reference's most frequent label
	Baselines []Baseline        `json:"baselines"`
}

// Recall says how many of the claims' own documents the search found among its first ten.
type Recall struct {
	At     int     `json:"at"`
	Claims int     `json:"claims"`
	Mean   float64 `json:"mean"`
}

// Partial reports whether items failed in this run.
func (r BuildReport) Partial() bool { return r.Pipeline.Failed > 0 }

// ErrInterrupted ends a build that was stopped; what is done is kept.
var ErrInterrupted = errors.New("interrupted; run the same command to go on")

// Grace is how long a build that was stopped, or whose time is up, waits for calls in flight that are paid for. Hosts
// are not waited for.
const Grace = 30 * time.Second

// ErrTimeUp ends a build whose MaxDuration has passed; what is done is kept.
var ErrTimeUp = errors.New("the time given with --max-duration is up; run the same command to go on")

// stageFilter turns --until and --only into what may run and how far to walk.
func stageFilter(o BuildOptions) (mayRun func(string) bool, until string, err error) {
	kind := func(name string) (string, error) {
		k, _, _ := strings.Cut(name, "/")
		for _, s := range Stages() {
			if s.Kind == k && k != KindRelease {
				return k, nil
			}
		}
		return "", fmt.Errorf("stage %q is unknown; stages are %s", name, strings.Join(names(Stages()[:len(Stages())-1], func(s StageKind) string { return s.Kind }), ", "))
	}
	if o.Until != "" && o.Only != "" {
		return nil, "", errors.New("--until and --only exclude each other")
	}
	if o.Only != "" {
		k, err := kind(o.Only)
		if err != nil {
			return nil, "", err
		}
		return func(stage string) bool { return stage == o.Only || strings.HasPrefix(stage, o.Only+"/") }, k, nil
	}
	if o.Until != "" {
		k, err := kind(o.Until)
		if err != nil {
			return nil, "", err
		}
		if !strings.Contains(o.Until, "/") {
			return nil, k, nil
		}
		return func(stage string) bool { return !strings.HasPrefix(stage, k+"/") || stage == o.Until }, k, nil
	}
	return nil, "", nil
}

// Build runs every stale item that live references reach and then writes the release, unless Until
// or Only stop it before. One item's failure is in the report; an error ended the run.
func (w *Workspace) Build(ctx context.Context, o BuildOptions) (rep BuildReport, err error) {
	mayRun, until, err := stageFilter(o)
	if err != nil {
		return rep, err
	}
	stopped := func() error { return nil }
	if !o.DryRun {
		deadline := time.Now().Add(o.MaxDuration)
		stopped = func() error {
			select {
			case <-o.Stop:
				return ErrInterrupted
			default:
			}
			if o.MaxDuration > 0 && !time.Now().Before(deadline) {
				return ErrTimeUp
			}
			return nil
		}
	}
	if o.MaxDuration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, o.MaxDuration+Grace, ErrTimeUp)
		defer cancel()
	}
	if !o.DryRun {
		halt, end := o.halt(ctx)
		defer end()
		ctx = llm.StopWith(fetch.StopWith(ctx, halt), halt)
	}
	if asksModels := until != KindDiscover && until != KindParse && until != KindRead; asksModels {
		if rep.Canaries, err = w.canaries(ctx, !o.DryRun); err != nil {
			rep.LLM = w.llm.Stats()
			return rep, err
		}
	}
	var ahead *foresight
	var foresee func(context.Context, string, bool, func(context.Context) error) error
	if o.DryRun {
		ahead = newForesight()
		foresee = ahead.foresee
	}
	if o.Batch && !o.DryRun {
		rep.Batches = &Batches{}
		if err := rep.Batches.take(ctx, w); err != nil {
			rep.LLM = w.llm.Stats()
			return rep, err
		}
	}
	e := w.newEngine(pipeline.Options{
		Explain: o.DryRun, Foresee: foresee, RetryFailed: o.RetryFailed, Progress: o.Progress,
		MayRun: func(stage string) bool { return stopped() == nil && (mayRun == nil || mayRun(stage)) },
	})
	done := w.runs(e)
	defer done()
	m := newMeasures()
	k := &walk{w: w, e: e, until: until, below: o.DryRun, visit: m.visitor(), explain: o.DryRun, stages: stages{w}}
	began, before := o.began, w.fetch.Stats()
	if began.IsZero() {
		began = w.now()
	}
	w.watch.reset(w.now())
	var walkErr error
	if o.first != nil {
		walkErr = o.first(ctx, e, stopped)
	}
	if walkErr == nil {
		walkErr = k.run(ctx)
	}
	if walkErr == nil || errors.Is(walkErr, fetch.ErrStopped) || errors.Is(walkErr, llm.ErrStopped) {
		walkErr = cmp.Or(stopped(), walkErr)
	}
	if walkErr == nil && rep.Batches != nil {
		walkErr = rep.Batches.order(ctx, w)
	}
	rep.Pipeline, rep.Fetch, rep.LLM = e.Report(), w.fetch.Stats(), w.llm.Stats()
	if f := o.Foreseen; f != nil {
		rep.Fact = &Fact{Calls: rep.LLM.Calls, Tokens: rep.LLM.Tokens, USD: rep.LLM.USD, Wall: rep.Pipeline.Wall, Stages: rep.LLM.Stages, Forecast: *f}
	}
	rep.Corrupt, rep.BadMarkup = w.corrupt.all(), w.watch.badMarkup()
	if rep.Alarms, err = w.alarms(); err != nil {
		return rep, errors.Join(walkErr, err)
	}
	if walkErr != nil {
		if cause := context.Cause(ctx); errors.Is(cause, ErrTimeUp) {
			walkErr = cause
		}
		rep.TimeUp = errors.Is(walkErr, ErrTimeUp)
		return rep, walkErr
	}
	if rep.Unclaimed, err = w.countUnclaimed(ctx); err != nil {
		return rep, err
	}
	if !o.DryRun {
		rep.Hints = k.hints()
		if rep.Waiting, err = w.waiting(); err != nil {
			return rep, err
		}
	}
	if k.reaches(KindPlan) && !o.DryRun && o.Only == "" {
		if err := w.commitMemories(); err != nil {
			return rep, err
		}
	}
	// A fresh item spares the calls that it was made with just as a stored answer does.
	if err := w.llm.Saved(m.ids()...); err != nil {
		return rep, err
	}
	rep.LLM = w.llm.Stats()
	rep.Candidates, rep.Drafts, rep.Named = m.candidates, m.drafts, m.named
	rep.Labels, rep.Examples, rep.Effects, rep.Recall = m.labels, m.examples, m.effects, m.recallAt()
	if s := m.tally.statistics(); len(m.tally.asked) > 0 {
		rep.Statistics, rep.Agreement = &s, s.Agreement
	}
	if o.DryRun {
		rep.Forecast, err = k.forecast(ahead, rep.Pipeline)
		return rep, err
	}
	if rep.Pipeline.Waiting > 0 {
		return rep, errors.Join(w.keepReport(rep), ErrWaiting)
	}
	if o.Until != "" || o.Only != "" {
		return rep, w.keepReport(rep)
	}
	done()
	asked, err := w.asked(began, before)
	if err != nil {
		return rep, err
	}
	if o.notes != nil {
		for source, note := range o.notes() {
			asked[source] = note
		}
	}
	res, err := w.releaseNoting(ctx, o.As, asked)
	if err != nil {
		return rep, err
	}
	rep.Release = &res
	if err := w.noteDrift(); err != nil {
		return rep, err
	}
	return rep, w.keepReport(rep)
}

// keepReport stores the report of a run under its start.
func (w *Workspace) keepReport(rep BuildReport) error {
	data, err := json.Marshal(rep)
	if err != nil {
		return fmt.Errorf("store the run's report: %w", err)
	}
	return w.tables.Reports.Put(kv.Key(time.Now().UTC().Format(time.RFC3339Nano)), data)
}

// halt is done as soon as a build is stopped or its time is up.
func (o BuildOptions) halt(ctx context.Context) (_ context.Context, end func()) {
	halt, cancel := context.WithCancel(ctx)
	if o.MaxDuration > 0 {
		cancel()
		halt, cancel = context.WithTimeout(ctx, o.MaxDuration)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		select {
		case <-o.Stop:
			cancel()
		case <-halt.Done():
		}
	}()
	return halt, func() { cancel(); <-done }
}

// measures counts what a walk meets.
type measures struct {
	mu              sync.Mutex
	labels, effects map[string]int
	pairs           map[string]bool // met; two pages with one claim lead to the same pairs
	examples        map[string]string
	calls           map[string]bool
	candidates      map[string]int
	drafts, named   map[string]int
	texts           map[string]bool // whose names were counted
	tally           *tallying
	recall          []float64
}

func newMeasures() *measures {
	return &measures{
		labels: map[string]int{}, effects: map[string]int{}, pairs: map[string]bool{}, tally: newTallying(),
		examples: map[string]string{}, calls: map[string]bool{}, candidates: map[string]int{}, drafts: map[string]int{}, named: map[string]int{}, texts: map[string]bool{},
	}
}

func (m *measures) visitor() visitor {
	return m.tally.watch(visitor{
		trace: func(_ corpus.Claim, t corpus.Trace, links []corpus.Link) error {
			own := make([]string, len(links))
			for i, l := range links {
				own[i] = l.DocumentID
			}
			if r, ok := planner.RecallAt(t, own, 10); ok {
				m.mu.Lock()
				defer m.mu.Unlock()
				m.recall = append(m.recall, r)
			}
			return nil
		},
		extract: func(_ corpus.Document, x annotate.Extraction) error {
			m.mu.Lock()
			defer m.mu.Unlock()
			for _, id := range append(slices.Clone(x.Calls), x.Call) {
				m.calls[id] = true
			}
			m.candidates["found"] += len(x.Candidates)
			for _, r := range x.Refused {
				m.candidates["refused: "+r.Reason]++
			}
			return nil
		},
		named: func(x annotate.Extraction, _ bool) error {
			m.mu.Lock()
			defer m.mu.Unlock()
			key := x.DocumentID
			if x.Events != nil {
				key += " events"
			}
			if m.texts[key] {
				return nil
			}
			m.texts[key] = true
			for _, n := range x.Mentions {
				m.named[string(n.Type)]++
			}
			if x.Events != nil {
				m.named["event"] += len(x.Events)
			}
			for _, r := range x.Refused {
				m.named["refused: "+r.Reason]++
			}
			return nil
		},
		draft: func(_ corpus.Claim, d corpus.Draft, _ []sourced) error {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.drafts[string(d.Verdict6)]++
			return nil
		},
		pair: func(_ corpus.Claim, _ corpus.Document, l corpus.Label, _ evidence) error {
			m.mu.Lock()
			defer m.mu.Unlock()
			for _, id := range append(l.Calls, l.Call) {
				m.calls[id] = true
			}
			if l.Status == corpus.LabelHeld {
				return nil // it may have no label at all
			}
			m.label(l)
			return nil
		},
		calls: func(ids ...string) error {
			m.mu.Lock()
			defer m.mu.Unlock()
			for _, id := range ids {
				m.calls[id] = true
			}
			return nil
		},
	})
}

// label counts a pair once; the caller holds the lock.
func (m *measures) label(l corpus.Label) {
	if m.pairs[l.ID] {
		return
	}
	m.pairs[l.ID] = true
	m.labels[string(l.Label)]++
	if first := m.examples[string(l.Label)]; first == "" || l.ID < first {
		m.examples[string(l.Label)] = l.ID
	}
	if l.Effect != "" {
		m.effects[string(l.Effect)]++
	}
}

func (m *measures) ids() []string {
	delete(m.calls, "")
	return sortedKeys(m.calls)
}

func (m *measures) recallAt() *Recall {
	if len(m.recall) == 0 {
		return nil
	}
	sum := 0.0
	for _, r := range m.recall {
		sum += r
	}
	return &Recall{At: 10, Claims: len(m.recall), Mean: sum / float64(len(m.recall))}
}
