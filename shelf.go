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

	"assay/corpus"
	"assay/kv"
	"assay/pipeline"
	"assay/planner"
	"assay/scrapers"
)

// shelves reports whether what sites of the recipe say is searched as imported documents are: newsrooms and
// institutions, and fact-checkers that are consulted.
func (r Recipe) shelves() bool {
	return r.consults() || r.agentic() && slices.Contains(r.engines(), "local") && slices.ContainsFunc(r.Sites, func(s SiteRecipe) bool {
		site, err := scrapers.SiteNamed(s.Name)
		return err == nil && site.Read != nil
	})
}

// consults reports whether the articles of the recipe's own fact-checkers are searched for evidence on other claims.
func (r Recipe) consults() bool {
	if !r.agentic() {
		return false
	}
	a := r.Planner.Agent
	engine, named := a.Engines[planner.FactCheckTool]
	if !named {
		engine = a.Engines["*"]
	}
	return engine == "local" && a.FactChecks != "drop" && (len(a.Tools) == 0 || slices.Contains(a.Tools, planner.FactCheckTool)) && len(r.checkers()) > 0
}

// checkers are the domains of the recipe's fact-checkers.
func (r Recipe) checkers() (hosts []string) {
	for _, s := range r.Sites {
		if site, err := scrapers.SiteNamed(s.Name); err == nil && site.Parse != nil {
			for _, host := range siteHosts(site, strings.TrimSuffix(s.Base, "/")) {
				hosts = append(hosts, cmp.Or(corpus.RegistrableDomain(host), host))
			}
		}
	}
	slices.Sort(hosts)
	return slices.Compact(hosts)
}

// A shelf is the part of the pool that the sites of the recipe fill. It holds what one walk read, whatever was
// there before: searches begin when the walk is through with these sites, so that they all find the same.
// It may be used from many goroutines.
type shelf struct {
	w *Workspace

	ahead bool // nothing is written, and what would be stays in pending: see foresee

	mu      sync.Mutex
	seen    map[string]bool
	pending map[string]Pooled
	next    uint64
}

func (w *Workspace) newShelf() *shelf {
	return &shelf{w: w, seen: map[string]bool{}, pending: map[string]Pooled{}, next: w.index.Position()}
}

// add puts documents of one page on the shelf. An imported one of the same address stays in its place; of two of
// this walk the preferred one counts.
func (s *shelf) add(docs []corpus.Document) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range docs {
		if corpus.HasFlag(d.Flags, corpus.FlagSiteTest) || d.Text == "" {
			continue
		}
		have, ok := s.pending[d.ID]
		if !ok {
			var err error
			if have, ok, err = s.w.tables.Pool.Get(d.ID); err != nil {
				return fmt.Errorf("read document %s: %w", d.ID, err)
			}
		}
		if ok && !have.Read {
			continue
		}
		d = d.Seal()
		if s.seen[d.ID] {
			kept, _ := preferred(have.Document, d)
			d = *kept
		}
		s.seen[d.ID] = true
		if ok && sameDocument(have.Document, d) {
			continue
		}
		s.next++
		s.pending[d.ID] = Pooled{Seq: s.next, Read: true, Document: d}
		if len(s.pending) >= 256 && !s.ahead {
			if err := s.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *shelf) flush() error {
	var ops []kv.Op
	for _, id := range sortedKeys(s.pending) {
		doc, err := s.w.tables.Pool.PutOp(id, s.pending[id])
		if err != nil {
			return err
		}
		arrival, err := s.w.tables.Arrivals.PutOp(seqKey(s.pending[id].Seq), id)
		if err != nil {
			return err
		}
		listed, err := s.w.tables.Shelved.PutOp(id, true)
		if err != nil {
			return err
		}
		ops = append(ops, doc, arrival, listed)
	}
	s.pending = map[string]Pooled{}
	if len(ops) == 0 {
		return nil
	}
	if err := s.w.store.Write(ops...); err != nil {
		return fmt.Errorf("store documents of sites: %w", err)
	}
	return nil
}

// close takes off the shelf what this walk did not read, if it read all there is, and lets the index know.
func (s *shelf) close(ctx context.Context, whole bool) error {
	if err := s.flush(); err != nil {
		return err
	}
	for id, err := range s.w.tables.Shelved.Keys("", "") {
		if err != nil {
			return fmt.Errorf("read documents of sites: %w", err)
		}
		if s.seen[id] || !whole {
			continue
		}
		ops := []kv.Op{s.w.tables.Shelved.DeleteOp(id)}
		have, ok, err := s.w.tables.Pool.Get(id)
		if err != nil {
			return fmt.Errorf("read document %s: %w", id, err)
		}
		if ok && have.Read {
			s.next++
			arrival, err := s.w.tables.Arrivals.PutOp(seqKey(s.next), id)
			if err != nil {
				return err
			}
			ops = append(ops, s.w.tables.Pool.DeleteOp(id), arrival)
		}
		if err := s.w.store.Write(ops...); err != nil {
			return fmt.Errorf("take document %s off: %w", id, err)
		}
	}
	return s.w.index.CatchUp(ctx, s.w.arrivals(s.w.index.Position()))
}

// foresee counts the documents that the next build will put on the shelf, change there, or take off, as far as what is
// stored tells. Pages that are still to be read may add to them.
func (s *shelf) foresee(whole bool) (n int, err error) {
	for id, now := range s.pending {
		have, ok, err := s.w.tables.Pool.Get(id)
		if err != nil {
			return 0, fmt.Errorf("read document %s: %w", id, err)
		}
		if !ok || !sameDocument(have.Document, now.Document) {
			n++
		}
	}
	for id, err := range s.w.tables.Shelved.Keys("", "") {
		if err != nil {
			return 0, fmt.Errorf("read documents of sites: %w", err)
		}
		if whole && !s.seen[id] {
			n++
		}
	}
	return n, nil
}

// Unsearched is what searches step by step do not know yet of newsrooms and institutions: what they find may change
// with it, so that a claim whose search is fresh is searched for again.
type Unsearched struct {
	Documents int `json:"documents"` // that are new, changed or gone since the last search
	Unread    int `json:"unread"`    // listings and pages that are still to be read
}

// unsearched tells what became of the shelf in a walk that only explains.
func (w *Workspace) unsearched(s *shelf, r pipeline.Report) (u Unsearched, err error) {
	searched := false
	for _, stage := range r.Stages {
		kind, name, _ := strings.Cut(stage.Name, "/")
		searched = searched || kind == KindPlan && stage.Reasons[pipeline.Fresh] > 0
		site, err := scrapers.SiteNamed(name)
		if !w.Config.Recipe.shelves() || err != nil || site.Read == nil && !w.Config.Recipe.consults() || !slices.Contains(shelving, kind) {
			continue
		}
		for reason, n := range stage.Reasons {
			if reason != pipeline.Fresh && reason != pipeline.FailedBefore {
				u.Unread += n
			}
		}
	}
	if !searched {
		return Unsearched{}, nil
	}
	u.Documents, err = s.foresee(u.Unread == 0)
	return u, err
}

// Text is a line for people, "" where searches know all there is.
func (u Unsearched) Text() string {
	if u == (Unsearched{}) {
		return ""
	}
	return fmt.Sprintf("newsrooms and institutions: %d documents that searches do not know as they are now, %d listings and pages still to be read; a build may search again for claims that are fresh here\n",
		u.Documents, u.Unread)
}

// shelved walks the sites that give documents, and lets searches find what they say. Pages that may not be read
// now, since only a part of the stages runs or the time is up, leave the shelf without deletions.
func (k *walk) shelved(ctx context.Context, read func() error) error {
	if k.explain || !k.reaches(KindPlan) { // k.shelf may be one that looks ahead
		return read()
	}
	if !k.w.Config.Recipe.shelves() {
		return errors.Join(k.w.newShelf().close(ctx, true), read())
	}
	k.shelf = k.w.newShelf()
	if err := read(); err != nil {
		return err
	}
	whole := !slices.ContainsFunc(k.e.Report().Stages, func(s pipeline.StageReport) bool {
		kind, _, _ := strings.Cut(s.Name, "/")
		return slices.Contains(shelving, kind) && s.Blocked > 0
	})
	return k.shelf.close(ctx, whole)
}

// shelving are the kinds of stages that fill the shelf.
var shelving = []string{KindDiscover, KindParse, KindRead, KindDocument}

// consult puts the article of a fact-checker on the shelf, as it is or as it could last be read.
func (k *walk) consult(ctx context.Context, address string) error {
	stage := k.stages.document()
	d, err := pipeline.Run(ctx, k.e, stage, address, address)
	switch {
	case pipeline.Ends(err):
		return err
	case k.shelf == nil:
		return nil
	}
	if err != nil {
		item, ok, err := k.e.Item(stage.Name, address)
		if err != nil || !ok || item.Fail == nil || json.Unmarshal(item.Out, &d) != nil { // an output of another version says nothing
			return err
		}
	}
	d.Kind = corpus.KindFactCheck
	return k.shelf.add([]corpus.Document{d})
}

// shelve puts on the shelf what a page says, or said when it could last be read: what cannot be read tonight takes
// no document away.
func (k *walk) shelve(site scrapers.Site, address string, docs []corpus.Document, failed error) error {
	if failed == nil {
		return k.shelf.add(docs)
	}
	item, ok, err := k.e.Item(k.stages.read(site).Name, address)
	if err != nil || !ok || item.Fail == nil || json.Unmarshal(item.Out, &docs) != nil { // an output of another version says nothing
		return err
	}
	return k.shelf.add(docs)
}

// poolDep begins the keys under which a search hears what a document on the shelf says.
const poolDep = "pool/"

// pooledSum says what such a document says now.
func (w *Workspace) pooledSum(key string) (pipeline.Sum, bool, error) {
	d, _, err := w.pooled(strings.TrimPrefix(key, poolDep))
	return pipeline.SumOf(d), err == nil, err
}
