package assay

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"sync"

	"assay/annotate"
	"assay/corpus"
	"assay/kv"
	"assay/llm"
	"assay/output"
	"assay/pipeline"
	"assay/planner"
	"assay/scrapers"
)

// ReleaseDir is the folder of releases in a workspace.
const ReleaseDir = "release"

// ReleaseResult is what Release made.
type ReleaseResult struct {
	Dir       string         `json:"dir"`
	ID        string         `json:"id"` // 12 hex digits of the content
	Unchanged bool           `json:"unchanged"`
	Counts    map[string]int `json:"counts"`
	Labels    map[string]int `json:"labels"`
	Withheld  map[string]int `json:"withheld"`
	Warnings  []string       `json:"warnings"`
}

// numbered carries a row's table number past the spool, which is not part of the row.
type numbered[T any] struct {
	Row    T   `json:"row"`
	Number int `json:"number,omitzero"`
}

// collector gathers what a release walk meets.
type collector struct {
	claims    *spool[numbered[output.ClaimRow]]
	documents *spool[output.DocumentRow]
	pairs     *spool[numbered[output.PairRow]]
	verdicts  *spool[output.VerdictRow]
	mentions  *spool[output.MentionRow]
	events    *spool[output.EventRow]
	controls  *spool[output.ControlRow]

	withheld omissions
	cluster  map[string]string // claim => its cluster, where it has one

	mu     sync.Mutex
	calls  map[string]bool
	drafts map[string]corpus.Verdict // by claim
	panel  map[string]panelled       // by claim and document

	unbounded map[string]bool // claims that were searched for step by step without an as-of date
}

// withheldAction is what an action of a search that its engine refused counts as among what a release lacks.
const withheldAction = "action"

// omissions count what a walk leaves out, by what it is and why, each item once.
type omissions struct {
	mu    sync.Mutex
	seed  maphash.Seed
	items map[string]map[uint64]struct{} // hashes of items
}

func (o *omissions) add(what, id, reason string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.items == nil {
		o.items, o.seed = map[string]map[uint64]struct{}{}, maphash.MakeSeed()
	}
	key := what + ": " + reason
	if o.items[key] == nil {
		o.items[key] = map[uint64]struct{}{}
	}
	o.items[key][maphash.String(o.seed, id)] = struct{}{}
	return nil
}

func (o *omissions) counts() map[string]int {
	o.mu.Lock()
	defer o.mu.Unlock()
	out := map[string]int{}
	for reason, items := range o.items {
		out[reason] = len(items)
	}
	return out
}

func newCollector(dir string) (*collector, error) {
	c := &collector{calls: map[string]bool{}, drafts: map[string]corpus.Verdict{}, panel: map[string]panelled{}, unbounded: map[string]bool{}}
	var errs [7]error
	c.claims, errs[0] = newSpool[numbered[output.ClaimRow]](dir)
	c.documents, errs[1] = newSpool[output.DocumentRow](dir)
	c.pairs, errs[2] = newSpool[numbered[output.PairRow]](dir)
	c.verdicts, errs[3] = newSpool[output.VerdictRow](dir)
	c.mentions, errs[4] = newSpool[output.MentionRow](dir)
	c.events, errs[5] = newSpool[output.EventRow](dir)
	c.controls, errs[6] = newSpool[output.ControlRow](dir)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

func (c *collector) close() error {
	return errors.Join(c.claims.close(), c.documents.close(), c.pairs.close(), c.verdicts.close(), c.mentions.close(), c.events.close(), c.controls.close())
}

func (c *collector) visitor() visitor {
	return visitor{
		claim: func(ref corpus.Ref, claim corpus.Claim, binary string) error {
			return c.claims.add(claim.ID, claimRank(ref, claim), numbered[output.ClaimRow]{output.NewClaimRow(claim, binary), claim.Number})
		},
		pair: func(claim corpus.Claim, d corpus.Document, l corpus.Label, ev evidence) error {
			if l.Status == corpus.LabelHeld {
				return nil
			}
			if err := c.documents.add(d.ID, "", output.NewDocumentRow(d)); err != nil {
				return err
			}
			number := 0
			if ev.link != nil {
				number = ev.link.Number
			}
			if err := c.addCalls(l.Calls...); err != nil {
				return err
			}
			if err := c.addCalls(l.Call); err != nil {
				return err
			}
			rank := fmt.Sprintf("%012d", number)
			for _, leak := range ev.leaks {
				l.Flags = corpus.AddFlag(l.Flags, leak)
			}
			return c.pairs.add(pairKey(claim.ID, d.ID), rank, numbered[output.PairRow]{output.NewPairRow(l, ev.hits, number), number})
		},
		panel: func(p panelled) error {
			c.mu.Lock()
			defer c.mu.Unlock()
			key := pairKey(p.pair.Label.ClaimID, p.pair.Label.DocumentID)
			p.pair = labelled{} // its text is in the tables
			c.panel[key] = p
			return nil
		},
		control: func(o controlled) error {
			if o.outcome == outcomeHeld {
				return nil
			}
			row := output.NewControlRow(o.pair.Claim.ID, o.pair.Document.ID, o.outcome, o.label)
			return c.controls.add(pairKey(row.ClaimID, row.DocumentID), "", row)
		},
		named: func(x annotate.Extraction, ofClaim bool) error {
			for _, m := range x.Mentions {
				of := output.OfDocument
				if ofClaim {
					of = output.OfClaim
				}
				row := output.NewMentionRow(of, x.DocumentID, x.Call, m)
				if err := c.mentions.add(row.Key(), "", row); err != nil {
					return err
				}
			}
			for _, e := range x.Events {
				row := output.NewEventRow(x.DocumentID, x.Call, e)
				if err := c.events.add(row.Key(), "", row); err != nil {
					return err
				}
			}
			return nil
		},
		trace: func(claim corpus.Claim, t corpus.Trace, _ []corpus.Link) error {
			if t.Policy == planner.PolicyAgent && t.AsOf == "" {
				c.mu.Lock()
				c.unbounded[claim.ID] = true
				c.mu.Unlock()
			}
			failed, _ := planner.FailedSearches(t)
			for i, s := range failed {
				if err := c.withheld.add(withheldAction, fmt.Sprint(claim.ID, " ", i), s.Action+" "+s.Outcome); err != nil {
					return err
				}
			}
			for _, cand := range t.Candidates {
				if kind := leakDropped(cand.Reason); kind != "" {
					if err := c.withheld.add("evidence", claim.ID+" "+cand.DocumentID, kind); err != nil {
						return err
					}
				}
			}
			return nil
		},
		draft: func(claim corpus.Claim, d corpus.Draft, docs []sourced) error {
			if corpus.HasFlag(d.Flags, corpus.FlagInjection) {
				return nil // held, as a pair would be
			}
			there := map[string]bool{}
			for _, s := range docs {
				there[s.doc.ID] = true
			}
			for _, e := range d.Exhibits {
				if !there[e.DocumentID] {
					return c.withheld.add("verdict draft", claim.ID, "a document that it was drafted from is not there any more")
				}
			}
			for _, s := range docs {
				if !slices.ContainsFunc(d.Exhibits, func(e corpus.Exhibit) bool { return e.DocumentID == s.doc.ID }) {
					continue
				}
				if err := c.documents.add(s.doc.ID, "", output.NewDocumentRow(s.doc)); err != nil {
					return err
				}
			}
			c.mu.Lock()
			c.drafts[claim.ID] = d.Verdict6
			c.mu.Unlock()
			return c.verdicts.add(claim.ID, "", output.NewVerdictRow(d))
		},
		withheld: c.withheld.add,
		calls:    c.addCalls,
		clusters: func(found Clusters) error {
			c.cluster = map[string]string{}
			for _, cl := range found.Clusters {
				for _, id := range cl.Members {
					c.cluster[id] = cl.ID
				}
			}
			return nil
		},
	}
}

// pairKey sorts pairs by claim and then by document.
func pairKey(claimID, documentID string) string { return claimID + "\x00" + documentID }

// claimRank decides which of two pages with the same claim speaks for it, whatever their order.
func claimRank(ref corpus.Ref, c corpus.Claim) string {
	return fmt.Sprintf("%s\x00%s\x00%012d", ref.URL, ref.Row, c.Number)
}

func (c *collector) addCalls(ids ...string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range ids {
		if id != "" {
			c.calls[id] = true
		}
	}
	return nil
}

// Release writes what is fresh and live as a release folder; name is "" for the content's own.
// Rows that are stale or failed are left out and counted. A *StopError says that a refresh held a source
// back, and nobody has accepted it.
func (w *Workspace) Release(ctx context.Context, name string) (ReleaseResult, error) {
	return w.releaseNoting(ctx, name, nil)
}

// releaseNoting releases and remembers what of. Asked names the sources that the run asked, with a remark on
// those that did not answer as they should.
func (w *Workspace) releaseNoting(ctx context.Context, name string, asked map[string]string) (ReleaseResult, error) {
	if err := w.held(); err != nil {
		return ReleaseResult{}, err
	}
	l := w.newLedger(false)
	res, err := w.release(ctx, filepath.Join(w.Dir, ReleaseDir), name, l.page)
	if err != nil {
		return res, err
	}
	return res, l.publish(w.now(), asked)
}

// release writes a release below root; page, if not nil, is told of the pages of sites.
func (w *Workspace) release(ctx context.Context, root, name string, page func(string, corpus.Ref, []corpus.Claim, error) error) (res ReleaseResult, err error) {
	c, err := newCollector(filepath.Join(w.Dir, stateDir))
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	e := w.newEngine(pipeline.Options{Explain: true})
	defer w.runs(e)()
	// Clusters rest on the rows of this very release and ask nothing of the world, so they are made where they are stale.
	k := &walk{w: w, e: e, derive: w.newEngine(pipeline.Options{}), visit: c.visitor(), explain: true, stages: stages{w}}
	k.visit.page = page
	if err := k.run(ctx); err != nil {
		return res, fmt.Errorf("collect the release: %w", err)
	}
	if c.claims.len() == 0 {
		return res, fmt.Errorf("there is nothing to release: no claim is fresh and of the recipe's corpus (%s); see assay status, and recipe.discover, speakers and dates in %s", cmp.Or(tally(c.withheld.counts()), "no reference was found"), ConfigName)
	}
	formats, err := output.FormatsByName(w.Config.Recipe.Formats)
	if err != nil {
		return res, err
	}
	lock, err := w.Config.Recipe.Lock()
	if err != nil {
		return res, err
	}
	calls, models, err := w.citedCalls(c.calls)
	if err != nil {
		return res, err
	}
	facts, err := w.facts(c, models)
	if err != nil {
		return res, err
	}
	finish := func(r *output.ClaimRow, n int) {
		r.Number, r.Cluster, r.DraftVerdict6 = n, c.cluster[r.ID], string(c.drafts[r.ID])
	}
	tables := output.Tables{
		Claims:      unnumber(c.claims.sorted(), finish),
		Documents:   c.documents.sorted(),
		Pairs:       unnumber(c.pairs.sorted(), c.paired),
		Annotations: calls,
		Claim: func(id string) (output.ClaimRow, error) {
			row, err := c.claims.get(id)
			finish(&row.Row, row.Number)
			return row.Row, err
		},
		Document: c.documents.get,
	}
	if w.Config.Recipe.judges() {
		tables.Verdicts = c.verdicts.sorted()
	}
	if len(w.Config.Recipe.Entities.Of) > 0 {
		tables.Mentions = only(c.mentions.sorted(), func(r output.MentionRow) bool { return r.Of == output.OfClaim || c.documents.has(r.ID) })
	}
	if w.Config.Recipe.Entities.Events {
		tables.Events = c.events.sorted()
	}
	if w.Config.Recipe.Label.Shuffled > 0 {
		tables.Controls = c.controls.sorted()
	}
	out, err := output.Write(ctx, output.Options{
		Root: root, Name: name, Formats: formats, Facts: facts, Recipe: lock, Room: w.room(root), Prompts: w.promptTexts(),
	}, tables)
	if err != nil {
		return res, err
	}
	return ReleaseResult{
		Dir: out.Dir, ID: out.ID, Unchanged: out.Unchanged, Counts: out.Manifest.Counts, Labels: out.Manifest.Labels,
		Withheld: facts.Withheld, Warnings: facts.Warnings,
	}, nil
}

// paired adds to a row what came after it was collected.
func (c *collector) paired(r *output.PairRow, number int) {
	r.Number = number
	if p, ok := c.panel[pairKey(r.ClaimID, r.DocumentID)]; ok {
		r.Panel, r.Consensus = p.annotations, string(p.consensus)
	}
}

// room refuses to write into the space that the store keeps free for itself: where that is gone, the
// store dies in the middle of a write.
func (w *Workspace) room(dir string) func() error {
	reserve := w.Config.Runtime.ReserveMiB << 20
	return func() error {
		free, err := kv.FreeBytes(dir)
		if err != nil {
			return err
		}
		if free < reserve {
			return fmt.Errorf("%s has %d MiB free, and runtime.reserve_mib keeps %d: %w", dir, free>>20, reserve>>20, kv.ErrDiskFull)
		}
		return nil
	}
}

// only leaves out rows that belong to nothing in the release: mentions of documents whose pairs were left out.
func only[T any](rows iter.Seq2[T, error], keep func(T) bool) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for row, err := range rows {
			if (err != nil || keep(row)) && !yield(row, err) {
				return
			}
		}
	}
}

func unnumber[T any](rows iter.Seq2[numbered[T], error], set func(*T, int)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for row, err := range rows {
			set(&row.Row, row.Number)
			if !yield(row.Row, err) {
				return
			}
		}
	}
}

// citedCalls yields the records of the calls that the release rests on, without run-time fields, and
// counts who answered in which role.
func (w *Workspace) citedCalls(cited map[string]bool) (iter.Seq2[output.Call, error], []output.Model, error) {
	ids := sortedKeys(cited)
	type who struct{ role, endpoint, provider, model string }
	counts := map[who]map[string]int{} // calls by the name that the endpoint gave itself
	for _, id := range ids {
		rec, ok, err := w.llm.Record(id)
		if err != nil {
			return nil, nil, err
		}
		if !ok {
			return nil, nil, fmt.Errorf("model call %s is cited but not stored; run assay build again", id)
		}
		by := who{rec.Role, rec.Endpoint, rec.Provider, rec.Model}
		if counts[by] == nil {
			counts[by] = map[string]int{}
		}
		counts[by][rec.Returned]++
	}
	var models []output.Model
	for by, names := range counts {
		m := output.Model{Role: by.role, Endpoint: by.endpoint, Provider: by.provider, Model: by.model}
		for _, n := range names {
			m.Calls += n
		}
		if len(names) > 1 {
			m.Names = names
		}
		models = append(models, m)
	}
	sort.Slice(models, func(i, j int) bool {
		a, b := models[i], models[j]
		return cmp.Or(strings.Compare(a.Role, b.Role), strings.Compare(a.Endpoint, b.Endpoint), strings.Compare(a.Model, b.Model), strings.Compare(a.Provider, b.Provider)) < 0
	})
	return func(yield func(output.Call, error) bool) {
		for _, id := range ids {
			rec, _, err := w.llm.Record(id)
			if err != nil {
				yield(output.Call{}, err)
				return
			}
			data, err := releasedCall(id, rec)
			if !yield(output.Call{ID: id, JSON: data}, err) || err != nil {
				return
			}
		}
	}, models, nil
}

// releasedCall is a call record as a release shows it: its id first, no run-time field.
func releasedCall(id string, rec llm.Record) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(timeless(rec)); err != nil {
		return nil, fmt.Errorf("write call %s: %w", id, err)
	}
	return b.Bytes(), nil
}

func timeless(rec llm.Record) llm.Record {
	rec.Seen = llm.Seen{}
	return rec
}

// facts is what the manifest and the card tell; nothing of it depends on the run.
func (w *Workspace) facts(c *collector, models []output.Model) (output.Facts, error) {
	r := w.Config.Recipe
	projection, err := corpus.ProjectionByName(r.Projection)
	if err != nil {
		return output.Facts{}, err
	}
	f := output.Facts{
		Name: r.Name, Profile: r.Profile, Projection: r.Projection, Warnings: []string{}, Models: models,
		Stages: map[string]int{}, Prompts: map[string]string{}, Withheld: c.withheld.counts(), RatingMaps: map[string]int{},
	}
	if f.Models == nil {
		f.Models = []output.Model{}
	}
	if projection.Warning != "" {
		f.Warnings = append(f.Warnings, "projection "+projection.Name+": "+projection.Warning)
	}
	missed := 0
	for what, n := range f.Withheld {
		if strings.HasPrefix(what, withheldAction+": ") {
			missed += n
		}
	}
	if missed > 0 {
		f.Warnings = append(f.Warnings, fmt.Sprintf("searches that their engines refused: %d; what these would have found is missing, and assay show CLAIM --trace tells why", missed))
	}
	if n := len(c.unbounded); n > 0 && r.Planner.Agent.AsOf != AsOfNone {
		f.Warnings = append(f.Warnings, fmt.Sprintf("claims without the date that recipe.planner.agent.as_of: %s goes by: %d; nothing was too late for them, and leak_after_as_of and leak_undated are not told of them", r.Planner.Agent.AsOf, n))
	}
	var builtin []string
	for _, m := range models {
		if len(m.Names) > 0 {
			f.Warnings = append(f.Warnings, fmt.Sprintf("what was asked of %s at %s as %s was answered under several names, so perhaps by several models: %s; a dated name under recipe.models keeps to one", m.Model, m.Endpoint, m.Role, m.NamesText()))
		}
		if m.Provider == llm.ProviderBuiltin {
			builtin = append(builtin, m.Role)
		}
	}
	if len(builtin) > 0 {
		f.Warnings = append(f.Warnings, "the builtin model answered as "+strings.Join(builtin, ", ")+": it compares words and knows nothing about the world; such labels show how the pipeline works and are no annotation")
	}
	k := stages{w}
	for _, s := range r.Sites {
		if site, err := scrapers.SiteNamed(s.Name); err == nil {
			f.Stages[k.of(site)] = site.Version
		}
	}
	for _, t := range scrapers.Tables {
		f.Stages[k.row(t).Name] = t.Version
	}
	f.Stages[k.candidates().Name] = k.candidates().Version
	if r.Extract.Extractor != "" {
		f.Stages[k.extract().Name] = k.extract().Version
	}
	if slices.Contains(r.CategoryBy, CategoryModel) {
		f.Stages[k.category().Name] = k.category().Version
	}
	f.Stages[k.plan().Name], f.Stages[k.document().Name] = k.plan().Version, k.document().Version
	f.Stages[k.zero().Name], f.Stages[k.label().Name] = k.zero().Version, k.label().Version
	for _, x := range r.finding() {
		f.Stages[k.entity(x).Name] = k.entity(x).Version
	}
	if r.judges() {
		f.Stages[k.judge().Name] = k.judge().Version
	}
	for _, role := range r.Label.Panel.Annotators {
		f.Stages[k.panel(role).Name] = k.panel(role).Version
	}
	if r.Label.Shuffled > 0 {
		f.Stages[k.control().Name] = k.control().Version
	}
	f.Stages[k.cluster(nil).Name] = k.cluster(nil).Version
	for name := range Prompts() {
		f.Prompts[name] = w.promptHash(name)
	}
	for _, m := range corpus.RatingMaps { // tables carry these, whatever sites the recipe names
		f.RatingMaps[m.Source] = m.Version
	}
	for _, s := range r.Sites {
		if site, err := scrapers.SiteNamed(s.Name); err == nil && site.Ratings != nil {
			f.RatingMaps[site.Ratings.Source] = site.Ratings.Version
		}
	}
	return f, nil
}

const rebuildPrefix = "verify-"

// Rebuild releases again from this workspace and says how the content differs from a release.
func (w *Workspace) Rebuild(ctx context.Context, dir string) (differences []string, err error) {
	state := filepath.Join(w.Dir, stateDir)
	// What a killed run left; the store's lock is ours.
	left, err := fs.Glob(os.DirFS(state), rebuildPrefix+"*")
	if err != nil {
		return nil, fmt.Errorf("rebuild %s: %w", dir, err)
	}
	for _, name := range left {
		if err := os.RemoveAll(filepath.Join(state, name)); err != nil {
			return nil, fmt.Errorf("rebuild %s: %w", dir, err)
		}
	}
	tmp, err := os.MkdirTemp(state, rebuildPrefix)
	if err != nil {
		return nil, fmt.Errorf("rebuild %s: %w", dir, err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	res, err := w.release(ctx, tmp, "", nil)
	if err != nil {
		return nil, fmt.Errorf("rebuild %s: %w", dir, err)
	}
	return output.Compare(dir, res.Dir)
}
