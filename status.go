package assay

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
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
)

// A Reader answers questions about a workspace: the workspace itself, or the process that holds it.
type Reader interface {
	Status(ctx context.Context) (StatusReport, error)
	Sources(ctx context.Context) ([]SourceState, error)
	Why(ctx context.Context, item string) ([]pipeline.Explanation, error)
	List(ctx context.Context, q ListQuery) ([]Listed, error)
	Show(ctx context.Context, id string) (json.RawMessage, error)
	Backup(ctx context.Context, out io.Writer) (records int, err error)
}

// StatusReport says how fresh every stage is.
type StatusReport struct {
	pipeline.Report
	Withheld   map[string]int `json:"withheld"` // what a release would leave out, by reason
	Building   bool           `json:"building"` // a build runs in the process that answered
	Ratings    int            `json:"ratings_waiting"`
	Candidates int            `json:"candidates_waiting"`
	Unclaimed  int            `json:"unclaimed"`         // imported pages that belong to no site of the recipe
	Spent      llm.Spend      `json:"spent"`             // over the life of the workspace: the sum of the call records
	Searches   fetch.Spend    `json:"searches,omitzero"` // likewise, the sum of the records of paid requests
	Sources    []SourceState  `json:"sources"`
	Held       []Stop         `json:"held"` // guard rails that wait for a person
	Unsearched Unsearched     `json:"unsearched,omitzero"`
	Batches    []llm.Job      `json:"batches,omitempty"` // ordered from batch APIs, and not taken in yet
}

// SourceState is when a source of the recipe was released last.
type SourceState struct {
	Source string `json:"source"`
	Site   string `json:"site"`
	SourceRun
}

// Text tells the last good run in a few words.
func (s SourceState) Text() string {
	switch {
	case s.Good.IsZero() && s.Note != "":
		return "last good run: never; " + s.Note
	case s.Good.IsZero():
		return "last good run: never"
	case s.Note != "":
		return fmt.Sprintf("last good run %s; since then %s", s.Good.Format(time.RFC3339), s.Note)
	}
	return "last good run " + s.Good.Format(time.RFC3339)
}

// SourcesText tells when sources were released last, a line each. Unless all is set, several that no run has
// anything to tell of are one line.
func SourcesText(list []SourceState, all bool) string {
	var b strings.Builder
	silent := slices.DeleteFunc(slices.Clone(list), func(s SourceState) bool { return !s.Good.IsZero() || s.Note != "" })
	several := len(silent) > 1 && !all
	for _, s := range list {
		if !several || !s.Good.IsZero() || s.Note != "" {
			fmt.Fprintf(&b, "%s: %s\n", s.Source, s.Text())
		}
	}
	if several {
		fmt.Fprintf(&b, "%d sources: %s (--all names them)\n", len(silent), silent[0].Text())
	}
	return b.String()
}

// Sources says when each source of the recipe was released last.
func (w *Workspace) Sources(_ context.Context) ([]SourceState, error) {
	out := []SourceState{}
	for _, s := range w.Config.Recipe.Sites {
		name := w.Config.Recipe.source(s)
		run, _, err := w.tables.Runs.Get(name)
		if err != nil {
			return nil, fmt.Errorf("read the last run of %s: %w", name, err)
		}
		out = append(out, SourceState{name, s.Name, run})
	}
	return out, nil
}

// Status walks the corpus without running anything and counts items by reason.
func (w *Workspace) Status(ctx context.Context) (StatusReport, error) {
	e := w.newEngine(pipeline.Options{Explain: true})
	var left omissions
	k := &walk{w: w, e: e, below: true, explain: true, stages: stages{w}, visit: visitor{withheld: left.add}}
	ahead := w.newShelf()
	if ahead.ahead = true; w.Config.Recipe.shelves() {
		k.shelf = ahead
	}
	if err := k.run(ctx); err != nil {
		return StatusReport{}, err
	}
	unsearched, err := w.unsearched(ahead, e.Report())
	if err != nil {
		return StatusReport{}, err
	}
	waiting, err := w.waiting()
	if err != nil {
		return StatusReport{}, err
	}
	unclaimed, err := w.countUnclaimed(ctx)
	if err != nil {
		return StatusReport{}, err
	}
	batches, err := w.llm.OpenBatches()
	if err != nil {
		return StatusReport{}, err
	}
	spent, err := w.llm.Spend()
	searches, fetchErr := w.fetch.Spend()
	if err := errors.Join(err, fetchErr); err != nil {
		return StatusReport{}, err
	}
	sources, err := w.Sources(ctx)
	if err != nil {
		return StatusReport{}, err
	}
	held := &StopError{Stops: []Stop{}}
	if err := w.held(); err != nil && !errors.As(err, &held) {
		return StatusReport{}, err
	}
	w.engine.RLock()
	defer w.engine.RUnlock()
	return StatusReport{Sources: sources, Held: held.Stops, Report: e.Report(), Unsearched: unsearched, Withheld: left.counts(), Building: w.engine.Engine != nil, Ratings: waiting.Ratings, Candidates: waiting.Candidates, Unclaimed: unclaimed, Spent: spent, Searches: searches, Batches: batches}, nil
}

// waiting counts what waits for a person.
func (w *Workspace) waiting() (Waiting, error) {
	ratings, err := w.listRatings(ListQuery{})
	if err != nil {
		return Waiting{}, err
	}
	candidates, err := w.listCandidates(ListQuery{State: "waiting"})
	return Waiting{Candidates: len(candidates), Ratings: len(ratings)}, err
}

// BatchesText is a line for each open batch job.
func BatchesText(jobs []llm.Job, now time.Time) string {
	var b strings.Builder
	for _, j := range jobs {
		fmt.Fprintf(&b, "batch %s of %s at %s: %d requests, planned %s (%s ago), %s\n", cmp.Or(j.Batch, j.ID), j.Model, j.Endpoint, j.Requests,
			j.Planned.UTC().Format(time.RFC3339), now.Sub(j.Planned).Round(time.Minute), cmp.Or(string(j.State), "not sent yet"))
	}
	if len(jobs) > 0 {
		b.WriteString("assay build --batch takes in what is there\n")
	}
	return b.String()
}

// Why explains the items whose key is item or, for an address or a claim, that lead to it.
func (w *Workspace) Why(ctx context.Context, item string) ([]pipeline.Explanation, error) {
	clean := corpus.CleanURL(item)
	e := w.newEngine(pipeline.Options{Explain: true, Why: func(_, key string) bool {
		return key == item || key == clean
	}})
	var mu sync.Mutex
	var left []pipeline.Explanation
	k := &walk{w: w, e: e, below: true, explain: true, stages: stages{w}, visit: visitor{
		withheld: func(what, id, reason string) error {
			if id == item || id == clean {
				mu.Lock()
				defer mu.Unlock()
				left = append(left, pipeline.Explanation{Stage: KindRelease, Key: id, Reason: "withheld", Detail: what + ": " + reason})
			}
			return nil
		},
	}}
	if err := k.run(ctx); err != nil {
		return nil, err
	}
	why := append(e.Why(), left...)
	if len(why) == 0 && strings.Contains(clean, "://") && w.showPage(ctx, e, &provenance{}, clean) == nil {
		return nil, fmt.Errorf("%s is stored, and no build by this recipe reads it: no listing leads to it, and it is unclaimed (assay ls unclaimed) or recipe.discover has no %q", clean, DiscoverStored)
	}
	if len(why) == 0 {
		return nil, fmt.Errorf("no live item has the key %q; keys are page addresses, claim ids (c_...), pair ids (p_...) and table rows (raguard/12); assay ls STAGE lists them", item)
	}
	return why, nil
}

// ListQuery chooses items of a stage. Empty fields choose all.
type ListQuery struct {
	Stage  string `json:"stage"`           // a kind, kind/plugin, or a queue: "ratings", "candidates", "clusters", "conflicts", "unclaimed", "disputes"
	State  string `json:"state,omitzero"`  // done, excluded, failed, waiting
	Reason string `json:"reason,omitzero"` // of an exclusion or failure
	Label  string `json:"label,omitzero"`  // of label items, or the drafted verdict of judge items
	Source string `json:"source,omitzero"` // part of the key, e.g. a host; of queues also of the site's name
	Sample int    `json:"sample,omitzero"` // so many, drawn with Seed
	Seed   uint64 `json:"seed,omitzero"`
}

// Check reports what is wrong with a query.
func (q ListQuery) Check() error {
	labels := names(corpus.StanceLabels, func(l corpus.StanceLabel) string { return string(l) })
	kinds := append(names(Stages()[:len(Stages())-1], func(s StageKind) string { return s.Kind }), listRatings, candidatesName, listClusters, listConflicts, listUnclaimed, listDisputes)
	kind, _, _ := strings.Cut(q.Stage, "/")
	if kind == KindJudge {
		labels = VerdictNames()
	}
	for _, f := range []struct {
		what, value string
		known       []string
	}{
		{"stage", kind, kinds},
		{"state", q.State, []string{"done", "excluded", "failed", "waiting"}},
		{"label", q.Label, labels},
	} {
		if f.value != "" && !slices.Contains(f.known, f.value) {
			return fmt.Errorf("%s %q is unknown; known are %s", f.what, f.value, strings.Join(f.known, ", "))
		}
	}
	if q.Sample < 0 {
		return fmt.Errorf("a sample of %d is too small", q.Sample)
	}
	return nil
}

// Listed is one line of a listing.
type Listed struct {
	pipeline.ItemInfo
	Label   string `json:"label,omitzero"`
	Summary string `json:"summary,omitzero"`

	Claims []ClaimReview `json:"claims,omitzero"` // of a cluster
}

// List returns the stored items that a query chooses, in key order.
func (w *Workspace) List(ctx context.Context, q ListQuery) ([]Listed, error) {
	if err := q.Check(); err != nil {
		return nil, err
	}
	switch q.Stage {
	case listRatings:
		return w.listRatings(q)
	case candidatesName:
		return w.listCandidates(q)
	case listClusters, listConflicts:
		return w.listClusters(ctx, q)
	case listUnclaimed:
		return w.listUnclaimed(ctx, q)
	case listDisputes:
		return w.disputes(ctx, q)
	}
	e := w.newEngine(pipeline.Options{Explain: true})
	texts := map[string]string{}
	if kind, _, _ := strings.Cut(q.Stage, "/"); slices.Contains([]string{KindLabel, KindJudge, KindPanel, KindControl}, kind) {
		if err := w.claimTexts(e, texts); err != nil {
			return nil, err
		}
	}
	var out []Listed
	for info, err := range e.Items(q.Stage) {
		if err != nil {
			return out, err
		}
		if err := ctx.Err(); err != nil {
			return out, err
		}
		if q.State != "" && info.State != q.State || q.Reason != "" && info.Reason != q.Reason || q.Source != "" && !strings.Contains(info.Key, q.Source) {
			continue
		}
		l := Listed{ItemInfo: info}
		if err := w.describe(e, &l, texts); err != nil {
			return out, err
		}
		if q.Label != "" && l.Label != q.Label {
			continue
		}
		out = append(out, l)
	}
	return q.sampled(out), nil
}

// sampled draws so many of a listing as the query asks for, in their order.
func (q ListQuery) sampled(list []Listed) []Listed {
	if q.Sample <= 0 || q.Sample >= len(list) {
		return list
	}
	rng := rand.New(rand.NewPCG(q.Seed, q.Seed))
	picked := rng.Perm(len(list))[:q.Sample]
	slices.Sort(picked)
	sample := make([]Listed, 0, q.Sample)
	for _, i := range picked {
		sample = append(sample, list[i])
	}
	return sample
}

// describe adds what a person wants to see in a line: a claim's text, a label, why something is left out.
func (w *Workspace) describe(e *pipeline.Engine, l *Listed, texts map[string]string) error {
	kind, _, _ := strings.Cut(l.Stage, "/")
	if l.State == "excluded" {
		item, ok, err := e.Item(l.Stage, l.Key)
		if err == nil && ok && item.Excl != nil {
			l.Summary = item.Excl.Detail
		}
		return err
	}
	if l.State != "done" || !slices.Contains([]string{KindParse, KindRead, KindExtract, KindCategory, KindPlan, KindLabel, KindJudge, KindEntity, KindPanel, KindControl}, kind) || strings.HasSuffix(l.Stage, "/"+KindZero) {
		return nil
	}
	item, ok, err := e.Item(l.Stage, l.Key)
	if err != nil || !ok {
		return err
	}
	switch kind {
	case KindLabel, KindPanel, KindControl:
		var label corpus.Label
		if err := json.Unmarshal(item.Out, &label); err != nil {
			return fmt.Errorf("read %s %s: %w", l.Stage, l.Key, err)
		}
		l.Label, l.Summary = string(label.Label), label.ClaimID+" "+label.DocumentID
		if text := texts[label.ClaimID]; text != "" {
			l.Summary = label.DocumentID + " on: " + text
		}
	case KindEntity:
		var x annotate.Extraction
		if err := json.Unmarshal(item.Out, &x); err != nil {
			return fmt.Errorf("read %s %s: %w", l.Stage, l.Key, err)
		}
		l.Summary = namedText(x)
	case KindJudge:
		var d corpus.Draft
		if err := json.Unmarshal(item.Out, &d); err != nil {
			return fmt.Errorf("read %s %s: %w", l.Stage, l.Key, err)
		}
		l.Label, l.Summary = string(d.Verdict6), strings.TrimSpace(strings.Join(d.Flags, ",")+" "+texts[d.ClaimID])
	case KindParse:
		var claims []corpus.Claim
		if err := json.Unmarshal(item.Out, &claims); err != nil {
			return fmt.Errorf("read %s %s: %w", l.Stage, l.Key, err)
		}
		for _, c := range claims {
			l.Summary = strings.TrimSpace(l.Summary + " " + c.ID + " " + c.Rating + " " + c.Text)
		}
	case KindRead:
		var docs []corpus.Document
		if err := json.Unmarshal(item.Out, &docs); err != nil {
			return fmt.Errorf("read %s %s: %w", l.Stage, l.Key, err)
		}
		for _, d := range docs {
			l.Summary = strings.TrimSpace(l.Summary + " " + d.ID + " " + d.Title)
		}
	case KindExtract:
		var x annotate.Extraction
		if err := json.Unmarshal(item.Out, &x); err != nil {
			return fmt.Errorf("read %s %s: %w", l.Stage, l.Key, err)
		}
		l.Summary = fmt.Sprintf("%d candidates, %d refused", len(x.Candidates), len(x.Refused))
	case KindCategory:
		var c annotate.Categorised
		if err := json.Unmarshal(item.Out, &c); err != nil {
			return fmt.Errorf("read %s %s: %w", l.Stage, l.Key, err)
		}
		l.Summary = fmt.Sprintf("%s %.2f", cmp.Or(string(c.Category), "none"), c.Confidence)
	case KindPlan:
		var trace corpus.Trace
		if err := json.Unmarshal(item.Out, &trace); err != nil {
			return fmt.Errorf("read %s %s: %w", l.Stage, l.Key, err)
		}
		l.Summary = fmt.Sprintf("%d kept of %d: %s", len(trace.Kept()), len(trace.Candidates), strings.Join(trace.Queries, " | "))
	}
	return nil
}

// claimTexts collects the texts of the stored claims by id.
func (w *Workspace) claimTexts(e *pipeline.Engine, texts map[string]string) error {
	for info, err := range e.Items(KindParse) {
		if err != nil {
			return err
		}
		item, ok, err := e.Item(info.Stage, info.Key)
		if err != nil {
			return err
		}
		var claims []corpus.Claim
		if !ok || len(item.Out) == 0 {
			continue
		}
		if err := json.Unmarshal(item.Out, &claims); err != nil {
			return fmt.Errorf("read %s %s: %w", info.Stage, info.Key, err)
		}
		for _, c := range claims {
			texts[c.ID] = c.Text
		}
	}
	return nil
}

// listRatings is what ls lists printed ratings under that no map names.
const listRatings = "ratings"

// listRatings lists the ratings that wait for a verdict.
func (w *Workspace) listRatings(q ListQuery) ([]Listed, error) {
	var out []Listed
	for entry, err := range w.tables.Ratings.Scan("", "") {
		if err != nil {
			return out, err
		}
		if strings.TrimSpace(entry.Value.Raw) == "" {
			continue // a page that printed none has nothing to map
		}
		waits := corpus.Claim{Source: entry.Value.Source, RatingRaw: entry.Value.Raw, Flags: []string{corpus.FlagUnmapped}}
		if waits = w.Config.Recipe.rated(waits); len(waits.Flags) == 0 {
			continue // decided
		}
		l := Listed{
			ItemInfo: pipeline.ItemInfo{Stage: listRatings, Key: entry.Value.Source + "/" + entry.Value.Raw, State: "waiting"},
			Summary:  strings.TrimSpace(entry.Value.Example + fmt.Sprintf(" (decide with recipe.ratings: {%s: {%q: <verdict>}})", entry.Value.Source, entry.Value.Raw)),
		}
		if (q.State == "" || q.State == l.State) && q.Reason == "" && strings.Contains(l.Key+" "+l.Summary, q.Source) {
			out = append(out, l)
		}
	}
	return q.sampled(out), nil
}

// provenance is what Show tells of a record: the record, and what led to it.
type provenance struct {
	ID         string                 `json:"id"`
	Claim      *corpus.Claim          `json:"claim,omitempty"`
	Former     string                 `json:"former,omitzero"`  // why the claim is not there any more
	Claims     []corpus.Claim         `json:"claims,omitempty"` // of a page or a row
	Candidate  *corpus.CandidateClaim `json:"candidate,omitempty"`
	Decisions  []corpus.Decision      `json:"decisions,omitempty"`
	Documents  []corpus.Document      `json:"documents,omitempty"` // of a page of news or an institution
	Extraction *annotate.Extraction   `json:"extraction,omitempty"`
	Document   *corpus.Document       `json:"document,omitempty"`
	Notes      []string               `json:"notes,omitzero"` // on an imported document: how much of its thread was read
	Trace      *corpus.Trace          `json:"trace,omitempty"`
	Leakage    *LeakReport            `json:"leakage,omitempty"` // of a claim that was searched for
	Zero       json.RawMessage        `json:"zero,omitempty"`
	Label      *corpus.Label          `json:"label,omitempty"`
	Labels     []corpus.Label         `json:"labels,omitempty"`
	Named      []annotate.Extraction  `json:"named,omitempty"` // mentions and events
	Draft      *corpus.Draft          `json:"draft,omitempty"` // for people; never gold
	Items      []shownItem            `json:"items,omitempty"`
	Exchanges  []fetch.Exchange       `json:"exchanges,omitempty"`
	Leads      []Lead                 `json:"leads,omitempty"`
	Links      []corpus.Link          `json:"links,omitempty"`
	Calls      []llm.Record           `json:"calls,omitempty"`
}

type shownItem struct {
	Stage string `json:"stage"`
	Key   string `json:"key"`
	pipeline.Item
}

// MarshalJSON shows the item's own form beside its names.
func (s shownItem) MarshalJSON() ([]byte, error) {
	s.Out = nil // it is shown as what it is: a claim, a trace, a label, a document
	item, err := json.Marshal(s.Item)
	if err != nil {
		return nil, err
	}
	head, err := json.Marshal(struct {
		Stage string `json:"stage"`
		Key   string `json:"key"`
	}{s.Stage, s.Key})
	if err != nil {
		return nil, err
	}
	return append(append(head[:len(head)-1], ','), item[1:]...), nil
}

// errNotFound ends a search through items.
var errNotFound = errors.New("not found")

// Show returns one record with its whole provenance: a claim, a pair, a document, a page by its
// address, a row, or a model call.
func (w *Workspace) Show(ctx context.Context, id string) (json.RawMessage, error) {
	p := &provenance{ID: id}
	e := w.newEngine(pipeline.Options{Explain: true})
	var err error
	switch {
	case strings.HasPrefix(id, "c_"):
		err = w.showClaim(ctx, e, p, id)
	case strings.HasPrefix(id, "k_"):
		err = w.showCandidate(ctx, e, p, id)
	case strings.HasPrefix(id, "p_"):
		err = w.showPair(ctx, e, p, id)
	case strings.Contains(id, "://"):
		err = w.showPage(ctx, e, p, id)
	default:
		err = w.showOther(e, p, id)
	}
	if errors.Is(err, errNotFound) {
		return nil, fmt.Errorf("nothing stored has the id %q; ids are claims (c_...), candidates (k_...), pairs (p_...), documents (reddit:t3_..., raguard:..., d_...), page addresses, rows (raguard/12) and model calls", id)
	} else if err != nil {
		return nil, fmt.Errorf("show %s: %w", id, err)
	}
	var b bytes.Buffer
	out := json.NewEncoder(&b)
	out.SetEscapeHTML(false)
	out.SetIndent("", "  ")
	if err := out.Encode(p); err != nil {
		return nil, fmt.Errorf("show %s: %w", id, err)
	}
	return bytes.TrimSpace(b.Bytes()), nil
}

// items adds the stored items with a key, in stage order.
func (w *Workspace) items(e *pipeline.Engine, p *provenance, key string, stages ...string) (found bool, err error) {
	for _, stage := range stages {
		item, ok, err := e.Item(stage, key)
		if err != nil {
			return found, err
		}
		if !ok {
			continue
		}
		p.Items = append(p.Items, shownItem{stage, key, item})
		found = true
		if err := p.take(stage, item); err != nil {
			return found, fmt.Errorf("read %s %s: %w", stage, key, err)
		}
	}
	return found, nil
}

// take shows an item's output as what it is.
func (p *provenance) take(stage string, item pipeline.Item) error {
	if len(item.Out) == 0 {
		return nil // excluded or failed: the item says why
	}
	switch kind, _, _ := strings.Cut(stage, "/"); kind {
	case KindParse:
		return json.Unmarshal(item.Out, &p.Claims)
	case KindRead:
		return json.Unmarshal(item.Out, &p.Documents)
	case KindExtract:
		return json.Unmarshal(item.Out, &p.Extraction)
	case KindPlan:
		return json.Unmarshal(item.Out, &p.Trace)
	case KindZero:
		p.Zero = item.Out
	case KindDocument:
		return json.Unmarshal(item.Out, &p.Document)
	case KindLabel, KindControl:
		return json.Unmarshal(item.Out, &p.Label)
	case KindEntity:
		var x annotate.Extraction
		if err := json.Unmarshal(item.Out, &x); err != nil {
			return err
		}
		p.Named = append(p.Named, x)
	case KindJudge:
		return json.Unmarshal(item.Out, &p.Draft)
	case KindPanel:
		var l corpus.Label
		err := json.Unmarshal(item.Out, &l)
		p.Labels = append(p.Labels, l)
		return err
	}
	return nil
}

func (w *Workspace) showClaim(ctx context.Context, e *pipeline.Engine, p *provenance, id string) error {
	for info, err := range e.Items(KindParse) {
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		item, ok, err := e.Item(info.Stage, info.Key)
		if err != nil {
			return err
		}
		if !ok || !strings.Contains(string(item.Out), id) {
			continue
		}
		var claims []corpus.Claim
		if err := json.Unmarshal(item.Out, &claims); err != nil {
			return err
		}
		for _, c := range claims {
			if c.ID != id {
				continue
			}
			if p.Claim == nil {
				p.Claim = &c
			}
			p.Items = append(p.Items, shownItem{info.Stage, info.Key, item})
			if info.Stage == (stages{w}).candidates().Name {
				if p.Decisions, err = w.decisions(corpus.DecideAcceptClaim, info.Key); err != nil {
					return err
				}
			}
			if err := w.showSources(p, info.Key); err != nil {
				return err
			}
		}
	}
	if p.Claim == nil {
		former, ok, err := w.former(ctx, e, id)
		if err != nil {
			return err
		}
		if !ok {
			return errNotFound
		}
		p.Claim, p.Former = &former.claim, former.note
		if _, err := w.items(e, p, former.item.Key, former.item.Stage); err != nil {
			return err
		}
		p.Claims = nil // what the page says now is another matter
		if err := w.showSources(p, former.item.Key); err != nil {
			return err
		}
	}
	k := stages{w}
	if _, err := w.items(e, p, id, k.plan().Name, k.zero().Name, k.judge().Name, k.entity(annotate.Entities).Name, k.entity(annotate.Events).Name); err != nil {
		return err
	}
	if p.Trace != nil {
		rep, err := w.Config.Recipe.leakReport(*p.Claim, *p.Trace, w.pooled)
		if err != nil {
			return err
		}
		p.Leakage = &rep
	}
	for info, err := range e.Items(k.label().Name) {
		if err != nil {
			return err
		}
		item, ok, err := e.Item(info.Stage, info.Key)
		if err != nil {
			return err
		}
		var l corpus.Label
		if ok && strings.Contains(string(item.Out), id) && json.Unmarshal(item.Out, &l) == nil && l.ClaimID == id {
			p.Labels = append(p.Labels, l)
		}
	}
	return nil
}

// showSources adds where a page or row came from.
func (w *Workspace) showSources(p *provenance, key string) error {
	if !strings.Contains(key, "://") {
		links, err := w.links(key)
		p.Links = append(p.Links, links...)
		return err
	}
	ex, err := w.fetch.Exchanges(key)
	if err != nil {
		return err
	}
	p.Exchanges = append(p.Exchanges, ex...)
	for entry, err := range w.tables.Leads.Scan(kv.Prefix(shortened(corpus.IdentityURL(key))), "") {
		if err != nil {
			return err
		}
		p.Leads = append(p.Leads, entry.Value)
	}
	return nil
}

func (w *Workspace) showPair(ctx context.Context, e *pipeline.Engine, p *provenance, id string) error {
	k := stages{w}
	var panel []string
	for _, role := range w.Config.Recipe.Label.Panel.Annotators {
		panel = append(panel, k.panel(role).Name)
	}
	found, err := w.items(e, p, id, append([]string{k.label().Name, k.control().Name}, panel...)...)
	if err != nil {
		return err
	}
	if !found {
		return errNotFound
	}
	if p.Label == nil {
		return nil
	}
	calls := append([]string{p.Label.Call}, p.Label.Calls...)
	for _, l := range p.Labels {
		calls = append(calls, l.Calls...)
	}
	slices.Sort(calls)
	for _, call := range slices.Compact(calls) {
		rec, ok, err := w.llm.Record(call)
		if err != nil {
			return err
		}
		if ok {
			p.Calls = append(p.Calls, rec)
		}
	}
	d := &provenance{}
	if err := w.showOther(e, d, p.Label.DocumentID); err != nil && !errors.Is(err, errNotFound) {
		return err
	}
	p.Document, p.Exchanges = d.Document, d.Exchanges
	of := &provenance{}
	if err := w.showClaim(ctx, e, of, p.Label.ClaimID); err != nil && !errors.Is(err, errNotFound) {
		return err
	}
	p.Claim, p.Zero = of.Claim, of.Zero
	if of.Trace != nil {
		p.Trace = &corpus.Trace{ClaimID: of.Trace.ClaimID, Policy: of.Trace.Policy, Queries: of.Trace.Queries, Call: of.Trace.Call}
		for _, c := range of.Trace.Candidates {
			if c.DocumentID == p.Label.DocumentID {
				p.Trace.Candidates = append(p.Trace.Candidates, c)
			}
		}
	}
	return nil
}

func (w *Workspace) showPage(_ context.Context, e *pipeline.Engine, p *provenance, id string) error {
	key, err := w.storedAs(id)
	if err != nil {
		return err
	}
	var stageNames []string
	for info, err := range e.Items("") {
		if err != nil {
			return err
		}
		if info.Key == key {
			stageNames = append(stageNames, info.Stage)
		}
	}
	if _, err := w.items(e, p, key, stageNames...); err != nil {
		return err
	}
	if err := w.showSources(p, key); err != nil {
		return err
	}
	ex, err := w.fetch.Exchanges(key)
	if err != nil {
		return err
	}
	if len(p.Items) == 0 && len(ex) == 0 && len(p.Leads) == 0 {
		return errNotFound
	}
	return nil
}

func (w *Workspace) showOther(e *pipeline.Engine, p *provenance, id string) error {
	if pooled, ok, err := w.tables.Pool.Get(id); err != nil {
		return err
	} else if ok {
		p.Document, p.Notes = &pooled.Document, pooled.Notes
		if orphan, err := w.orphaned(pooled.Document); err != nil {
			return err
		} else if orphan {
			p.Document.Flags = corpus.AddFlag(p.Document.Flags, planner.FlagParentMissing)
		}
		return nil
	}
	if rec, ok, err := w.llm.Record(id); err != nil {
		return err
	} else if ok {
		p.Calls = append(p.Calls, rec)
		return nil
	}
	for info, err := range e.Items("") {
		if err != nil {
			return err
		}
		if info.Key == id {
			if _, err := w.items(e, p, id, info.Stage); err != nil {
				return err
			}
			return w.showSources(p, id)
		}
		if kind, _, _ := strings.Cut(info.Stage, "/"); kind != KindDocument {
			continue
		}
		var d corpus.Document
		item, ok, err := e.Item(info.Stage, info.Key)
		if err != nil {
			return err
		}
		if ok && strings.Contains(string(item.Out), id) && json.Unmarshal(item.Out, &d) == nil && d.ID == id {
			if p.Document == nil {
				p.Document = &d
			}
			p.Items = append(p.Items, shownItem{info.Stage, info.Key, item})
			if err := w.showSources(p, info.Key); err != nil {
				return err
			}
		}
	}
	if p.Document == nil && strings.HasPrefix(id, "d_") {
		d, err := w.documentRead(e, id)
		if err != nil {
			return err
		}
		if p.Document = d; d != nil {
			if _, err := w.items(e, p, id, stages{w}.extract().Name); err != nil {
				return err
			}
			return w.showSources(p, d.URL)
		}
	}
	if p.Document == nil {
		return errNotFound
	}
	return nil
}

// Backup writes the whole store as a stream that Restore reads, with the workspace's configuration,
// prompts and prices in it.
func (w *Workspace) Backup(ctx context.Context, out io.Writer) (records int, err error) {
	files, err := w.keepFiles()
	if err != nil {
		return 0, err
	}
	return w.store.Backup(ctx, out, files...)
}
