package assay

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sort"
	"strings"
	"sync/atomic"

	"assay/annotate"
	"assay/corpus"
	"assay/fetch"
	"assay/kv"
	"assay/llm"
	"assay/pipeline"
	"assay/planner"
	"assay/scrapers"
)

// A walk goes from the live references through the stages. Build, Status, Release and GC are walks
// over engines in different modes, so they cannot disagree about what belongs to the corpus.
type walk struct {
	w       *Workspace
	e       *pipeline.Engine
	until   string // last kind of stage; "" means label
	explain bool   // nothing runs and nothing is written
	below   bool   // go on under stale items with their last output
	visit   visitor
	stages  stages
	voices  voices

	told   *spool[toldClaim] // the claims met, for what is done on all of them
	derive *pipeline.Engine  // runs the stages that rest on the walk alone; nil means e

	rowsWithPairs map[string][]string // by claim id, see rowsOf

	met      atomic.Int64     // claims of the corpus
	left     leftClaims       // and of those that are none, what a hint is made of
	labelled *spool[labelled] // the labelled pairs met, where something is drawn from them
	missing  atomic.Int64     // labels that are not there yet
	drawable int              // labelled pairs that were met, known once all are

	shelf *shelf // where the documents of sites go, nil where no search finds them
}

// A visitor is told what a walk meets. Nil functions are left out. They are called from many
// goroutines; an error ends the walk.
type visitor struct {
	page     func(source string, ref corpus.Ref, claims []corpus.Claim, err error) error // of a site; claims of the corpus, see present too, or why there are none
	document func(id, url string) error                                                  // of which a claim may make evidence
	claim    func(ref corpus.Ref, c corpus.Claim, binary string) error
	trace    func(c corpus.Claim, t corpus.Trace, links []corpus.Link) error
	extract  func(d corpus.Document, x annotate.Extraction) error
	named    func(x annotate.Extraction, ofClaim bool) error
	draft    func(c corpus.Claim, d corpus.Draft, docs []sourced) error
	pair     func(c corpus.Claim, d corpus.Document, l corpus.Label, ev evidence) error
	zero     func(c corpus.Claim, outcome string) error // of every claim that the annotator was asked about alone; see zeroOutcome
	asked    func(a askedPair) error                    // every pair that the annotator was asked about, labelled or not
	panel    func(p panelled) error                     // of pairs that every annotator of the panel was asked about
	control  func(c controlled) error
	withheld func(what, id, reason string) error // id names the item, so that one met twice counts once
	calls    func(ids ...string) error
	clusters func(c Clusters) error // once, in the end
}

// evidence is one document of one claim with what led to it.
type evidence struct {
	documentID string
	url        string
	hits       []corpus.Hit
	link       *corpus.Link // the imported pair, if there is one
	leaks      []string     // see corpus.Leaks; filled where the document is known
}

func (k *walk) reaches(kind string) bool {
	for _, s := range Stages() {
		if s.Kind == kind {
			return true
		}
		if s.Kind == k.until {
			return false
		}
	}
	return false
}

// run walks everything that is live. The error is one that ends the run.
func (k *walk) run(ctx context.Context) (err error) {
	if k.reaches(KindCluster) {
		if k.told, err = newSpool[toldClaim](k.w.spoolDir()); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, k.told.close()) }()
	}
	if err := k.openLabelled(); err != nil {
		return err
	}
	if k.labelled != nil {
		defer func() { err = errors.Join(err, k.labelled.close()) }()
	}
	if err := k.spine(ctx); err != nil {
		return err
	}
	if err := k.afterLabels(ctx); err != nil {
		return err
	}
	return k.cluster(ctx)
}

// spine walks from the references to the labels.
func (k *walk) spine(ctx context.Context) error {
	recipe := k.w.Config.Recipe
	if err := k.feeds(ctx); err != nil {
		return err
	}
	type lane = func(context.Context) iter.Seq2[struct{}, error]
	var reading, lanes []lane // what documents searches find is known when the first are through
	waits := recipe.shelves() && k.reaches(KindPlan)
	for _, sr := range recipe.Sites {
		site, err := scrapers.SiteNamed(sr.Name)
		if err != nil {
			return err
		}
		base := strings.TrimSuffix(sr.Base, "/")
		walk := func(ctx context.Context) iter.Seq2[struct{}, error] {
			return pipeline.Each(ctx, k.w.workers(), k.refs(ctx, site, base), k.item(site, recipe.source(sr)))
		}
		switch {
		case site.Read != nil && recipe.shelves():
			reading = append(reading, walk)
		case waits:
			var met []corpus.Ref
			reading = append(reading, func(ctx context.Context) iter.Seq2[struct{}, error] {
				return pipeline.Each(ctx, k.w.workers(), noted(k.refs(ctx, site, base), &met), k.ahead(site))
			})
			lanes = append(lanes, func(ctx context.Context) iter.Seq2[struct{}, error] {
				return pipeline.Each(ctx, k.w.workers(), again(met), k.item(site, recipe.source(sr)))
			})
		default:
			lanes = append(lanes, walk)
		}
	}
	if slices.Contains(recipe.Discover, DiscoverImported) && k.reaches(KindParse) {
		if k.reaches(KindPlan) {
			var err error
			if k.rowsWithPairs, err = k.rowsOf(ctx); err != nil {
				return err
			}
		}
		for _, table := range scrapers.Tables {
			lanes = append(lanes, func(ctx context.Context) iter.Seq2[struct{}, error] {
				return pipeline.Each(ctx, k.w.workers(), k.rows(table), k.row(table))
			})
		}
	}
	lanes = append(lanes, func(ctx context.Context) iter.Seq2[struct{}, error] {
		return pipeline.Each(ctx, k.w.workers(), k.accepted(), k.candidate)
	})
	along := func(lanes []lane) error {
		for _, err := range pipeline.Lanes(ctx, lanes...) {
			if err != nil {
				return err
			}
		}
		return nil
	}
	if err := k.shelved(ctx, func() error { return along(reading) }); err != nil {
		return err
	}
	return along(lanes)
}

// settled turns the outcome of one item into the walk's: a run-ending error is returned, an item
// without output is left out and counted, and ok says whether there is an output to go on with.
func (k *walk) settled(ctx context.Context, what string, err error) (_ context.Context, ok bool, _ error) {
	if k.below {
		ctx, err = pipeline.Below(ctx, err)
	}
	var item *pipeline.ItemError
	var blocked *pipeline.BlockedError
	switch {
	case err == nil:
		return ctx, true, nil
	case pipeline.Ends(err):
		return ctx, false, err
	case errors.As(err, &item) && item.Excl != nil:
		return ctx, false, k.withhold(what, item.Stage+" "+item.Key, item.Excl.Reason)
	case errors.As(err, &item):
		return ctx, false, k.withhold(what, item.Stage+" "+item.Key, "failed: "+item.Fail.Class)
	}
	reason, id := "stale", ""
	if errors.As(err, &blocked) {
		id = blocked.Stage + " " + blocked.Key
		switch blocked.Reason {
		case pipeline.FailedBefore:
			reason = "failed, tried again by the next build"
		case pipeline.Waiting:
			reason = "an answer is ordered from a batch API and not there yet"
		}
	}
	return ctx, false, k.withhold(what, id, reason)
}

func (k *walk) withhold(what, id, reason string) error {
	if k.visit.withheld == nil {
		return nil
	}
	return k.visit.withheld(what, id, reason)
}

// refs yields the references of a site once each: what its listings show, then stored pages, as the
// recipe says. Leads to one page differ by how they were found; the page is fetched by its clean address.
func (k *walk) refs(ctx context.Context, site scrapers.Site, base string) iter.Seq2[corpus.Ref, error] {
	return func(yield func(corpus.Ref, error) bool) {
		seen := map[string]bool{}
		emit := func(ref corpus.Ref) bool {
			id := corpus.IdentityURL(ref.URL)
			if seen[id] {
				return true
			}
			seen[id] = true
			if k.reaches(KindParse) {
				k.e.Expect(k.stages.of(site), 1)
			}
			var err error
			ref.URL, err = k.w.storedAs(ref.URL)
			return yield(ref, err)
		}
		// A write that waits for the disk for each reference would be the slowest part of a crawl.
		emitAll := func(refs []corpus.Ref, on string) bool {
			for batch := range slices.Chunk(refs, leadBatch) {
				if !k.explain {
					if err := k.w.noteLeads(on, batch); err != nil {
						yield(corpus.Ref{}, err)
						return false
					}
				}
				for _, ref := range batch {
					if !emit(ref) {
						return false
					}
				}
			}
			return true
		}
		if slices.Contains(k.w.Config.Recipe.Discover, DiscoverListing) {
			for _, start := range site.Start(base, k.w.Config.Recipe.Speakers) {
				read, waiting := map[string]bool{}, []string{start}
				for len(waiting) > 0 {
					next, barren := waiting[0], 0
					for waiting = waiting[1:]; next != "" && !read[next] && barren < maxBarrenListings; {
						page := next
						read[page] = true
						before := len(seen)
						listing, err := pipeline.Run(ctx, k.e, k.stages.discover(site), page, page)
						_, ok, err := k.settled(ctx, "listing", err)
						if err != nil {
							yield(corpus.Ref{}, err)
							return
						}
						if !ok {
							// A listing that cannot be read tonight takes no claim away: what it showed last stands.
							if listing, ok, err = k.lastListing(site, page); err != nil {
								yield(corpus.Ref{}, err)
								return
							}
							if !ok {
								break
							}
						}
						shown, err := k.shown(page, listing.Refs)
						if err != nil {
							yield(corpus.Ref{}, err)
							return
						}
						if !emitAll(listing.Refs, page) {
							return
						}
						if barren++; len(seen) > before {
							barren = 0
						}
						if !emitAll(shown, page) {
							return
						}
						waiting = append(waiting, listing.More...)
						next = listing.Next
					}
				}
			}
		}
		if slices.Contains(k.w.Config.Recipe.Discover, DiscoverStored) {
			var batch []corpus.Ref
			for _, host := range siteHosts(site, base) {
				for address, err := range k.w.fetch.Stored(ctx, host) {
					if err != nil {
						yield(corpus.Ref{}, err)
						return
					}
					if site.Recognise(base, address) {
						batch = append(batch, corpus.Ref{Source: site.Name, URL: address})
					}
					if len(batch) == leadBatch {
						if !emitAll(batch, DiscoverStored) {
							return
						}
						batch = batch[:0]
					}
				}
			}
			emitAll(batch, DiscoverStored)
		}
	}
}

// noted yields references and notes them.
func noted(refs iter.Seq2[corpus.Ref, error], met *[]corpus.Ref) iter.Seq2[corpus.Ref, error] {
	return func(yield func(corpus.Ref, error) bool) {
		for ref, err := range refs {
			if err == nil {
				*met = append(*met, ref)
			}
			if !yield(ref, err) {
				return
			}
		}
	}
}

// again yields references that were noted.
func again(met []corpus.Ref) iter.Seq2[corpus.Ref, error] {
	return func(yield func(corpus.Ref, error) bool) {
		for _, ref := range met {
			if !yield(ref, nil) {
				return
			}
		}
	}
}

// leadBatch is how many leads are written at once.
const leadBatch = 100

// maxBarrenListings ends a crawl whose listings go on but show nothing new: a pager without an end.
const maxBarrenListings = 20

// lastListing is what a listing showed when it could last be read.
func (k *walk) lastListing(site scrapers.Site, page string) (scrapers.Listing, bool, error) {
	var l scrapers.Listing
	item, ok, err := k.e.Item(k.stages.discover(site).Name, page)
	if err != nil || !ok || item.Fail == nil || len(item.Out) == 0 {
		return l, false, err
	}
	// An output of another version says nothing.
	return l, json.Unmarshal(item.Out, &l) == nil, nil
}

// shown returns what a listing showed earlier, and notes what it shows now.
func (k *walk) shown(page string, refs []corpus.Ref) (earlier []corpus.Ref, err error) {
	known := map[string]bool{}
	for entry, err := range k.w.tables.Shown.Scan(kv.Prefix(shortened(page)), "") {
		if err != nil {
			return nil, fmt.Errorf("read what %s showed: %w", page, err)
		}
		known[entry.Key] = true
		earlier = append(earlier, entry.Value)
	}
	if k.explain {
		return earlier, nil
	}
	return earlier, k.w.noteShown(page, refs, known)
}

// noteShown remembers references of a listing.
func (w *Workspace) noteShown(page string, refs []corpus.Ref, known map[string]bool) error {
	var ops []kv.Op
	for _, ref := range refs {
		key := kv.Key(shortened(page), shortened(corpus.IdentityURL(ref.URL)))
		if known[key] {
			continue
		}
		op, err := w.tables.Shown.PutOp(key, ref)
		if err != nil {
			return err
		}
		ops = append(ops, op)
	}
	for batch := range slices.Chunk(ops, 10*leadBatch) {
		if err := w.store.Write(batch...); err != nil {
			return err
		}
	}
	return nil
}

// siteHosts are the hosts under which the pages of a site are stored: those of its mirror, if it has one.
func siteHosts(site scrapers.Site, base string) []string {
	if base != "" {
		return []string{corpus.Host(base)}
	}
	return append([]string{site.Host}, site.Hosts...)
}

// rows yields the imported rows of a table in key order.
func (k *walk) rows(table scrapers.Table) iter.Seq2[scrapers.Row, error] {
	return func(yield func(scrapers.Row, error) bool) {
		for entry, err := range k.w.tables.Rows.Scan(kv.Prefix(table.Name), "") {
			if err == nil {
				k.e.Expect(k.stages.row(table).Name, 1)
			}
			if !yield(entry.Value, err) {
				return
			}
		}
	}
}

// item works on one item page, by whichever reader its site has.
func (k *walk) item(site scrapers.Site, source string) func(context.Context, corpus.Ref) (struct{}, error) {
	if !k.reaches(KindParse) { // what the listings show is noted, and that is all
		return func(context.Context, corpus.Ref) (struct{}, error) { return struct{}{}, nil }
	}
	if site.Read != nil {
		return k.reading(site, source)
	}
	return k.page(site, source)
}

// page parses one item page and walks on from each of its claims.
func (k *walk) page(site scrapers.Site, source string) func(context.Context, corpus.Ref) (struct{}, error) {
	return func(ctx context.Context, ref corpus.Ref) (struct{}, error) {
		claims, err := pipeline.Run(ctx, k.e, k.stages.parse(site), ref.URL, ref.URL)
		if k.visit.page != nil && !pipeline.Ends(err) {
			if err := k.visit.page(source, ref, k.w.Config.Recipe.ours(claims), err); err != nil {
				return struct{}{}, err
			}
		}
		return struct{}{}, k.claims(ctx, ref, "", claims, err)
	}
}

// ahead fetches and parses one item page whose claims wait until searches may begin, so that the hosts of those who
// are waited for and of those who wait are asked side by side. What it says may be evidence on claims of other pages.
func (k *walk) ahead(site scrapers.Site) func(context.Context, corpus.Ref) (struct{}, error) {
	return func(ctx context.Context, ref corpus.Ref) (struct{}, error) {
		claims, err := pipeline.Run(ctx, k.e, k.stages.parse(site), ref.URL, ref.URL)
		switch {
		case pipeline.Ends(err):
			return struct{}{}, err
		case len(claims) > 0 && k.w.Config.Recipe.consults():
			return struct{}{}, k.consult(ctx, ref.URL)
		}
		return struct{}{}, nil // a failure is the item's, and page meets it again
	}
}

// ours are the claims of a page that are of the recipe's corpus, as the recipe rates them.
func (r Recipe) ours(claims []corpus.Claim) (out []corpus.Claim) {
	projection, err := corpus.ProjectionByName(r.Projection)
	if err != nil {
		return nil // unreachable: the configuration was checked
	}
	for _, c := range claims {
		c = r.rated(c)
		if _, ok := projection.Apply(c); ok && r.leavesOut(c, false) == "" {
			out = append(out, c)
		}
	}
	return out
}

// source names a site of the recipe: by its host too where it is there twice.
func (r Recipe) source(s SiteRecipe) string {
	for _, other := range r.Sites {
		if other.Name == s.Name && other.Base != s.Base {
			return s.Name + "@" + cmp.Or(corpus.Host(s.Base), "own")
		}
	}
	return s.Name
}

// row parses one imported row and walks on from each of its claims.
func (k *walk) row(table scrapers.Table) func(context.Context, scrapers.Row) (struct{}, error) {
	return func(ctx context.Context, row scrapers.Row) (struct{}, error) {
		key := table.Name + "/" + row.Key
		claims, err := pipeline.Run(ctx, k.e, k.stages.row(table), key, row)
		return struct{}{}, k.claims(ctx, corpus.Ref{Source: table.Name, Row: key}, key, claims, err)
	}
}

func (k *walk) claims(ctx context.Context, ref corpus.Ref, row string, claims []corpus.Claim, err error) error {
	ctx, ok, err := k.settled(ctx, "page", err)
	if err != nil || !ok {
		return err
	}
	for _, c := range claims {
		if err := k.claim(ctx, ref, row, c); err != nil {
			return err
		}
	}
	return nil
}

// claim decides whether a claim is part of the corpus and walks on to its evidence.
func (k *walk) claim(ctx context.Context, ref corpus.Ref, row string, c corpus.Claim) error {
	recipe := k.w.Config.Recipe
	c = recipe.rated(c)
	if reason := recipe.leavesOut(c, row != ""); reason != "" {
		switch {
		case reason == leftUnmapped && !k.explain: // a claim that a map would not bring in waits for none
			if err := k.w.queueRating(c); err != nil {
				return err
			}
		case reason == leftSpeaker:
			k.left.speaker(speakerSlug(c, row != ""))
		}
		return k.withhold("claim", c.ID, reason)
	}
	projection, err := corpus.ProjectionByName(recipe.Projection)
	if err != nil {
		return err
	}
	binary, ok := projection.Apply(c)
	if !ok {
		return k.withhold("claim", c.ID, "dropped by projection "+projection.Name)
	}
	done, ok, err := k.speak(ref, c)
	if err != nil {
		return err
	}
	if !ok {
		return k.withhold("claim", ref.URL+ref.Row, "another page or row speaks for it")
	}
	defer done()
	if c, ok, err = k.categorised(ctx, c); err != nil || !ok {
		return err
	}
	k.met.Add(1)
	if k.visit.claim != nil {
		if err := k.visit.claim(ref, c, binary); err != nil {
			return err
		}
	}
	if k.told != nil {
		if err := k.told.add(c.ID, "", toldClaim{c.ID, corpus.Wording(c.Text)}); err != nil {
			return err
		}
	}
	if !k.reaches(KindPlan) {
		return nil
	}
	links, err := k.pairs(row, c.ID)
	if err != nil {
		return err
	}
	found, trace, ctx, err := k.evidence(ctx, ref, c, links)
	if err != nil {
		return err
	}
	if !k.reaches(KindDocument) {
		return nil
	}
	docs, err := k.documents(ctx, c, found)
	if err != nil || !k.reaches(KindEntity) {
		return err
	}
	if err := k.entities(ctx, c, docs); err != nil || !k.reaches(KindZero) {
		return err
	}
	bound := ""
	if recipe.agentic() {
		if bound, err = k.w.asOf(ref, c); err != nil {
			return err
		}
	}
	for i, s := range docs {
		docs[i].ev.leaks = recipe.leaks(c, s.doc, bound)
	}
	if binary == "true" || binary == "false" {
		err = k.label(ctx, c, binary, docs)
	} else {
		err = k.undecidable(c, docs)
	}
	if err != nil || trace == nil || !recipe.judges() || !k.reaches(KindJudge) {
		return err
	}
	return k.judge(ctx, c, *trace, docs)
}

// undecidable counts what a claim whose verdict is neither true nor false has no labels for: a label compares an answer
// with a verdict, and there is none to compare with.
func (k *walk) undecidable(c corpus.Claim, docs []sourced) error {
	if len(docs) == 0 {
		return k.withhold("labels of a claim", c.ID, "its verdict is neither true nor false, and no document was kept for it")
	}
	for _, s := range docs {
		if err := k.withhold("pair", corpus.PairID(c.ID, s.doc.ID), "the verdict is neither true nor false"); err != nil {
			return err
		}
	}
	return nil
}

// Why a claim is not of the recipe's corpus, where the walk reacts to it.
const (
	leftUnmapped = "rating unmapped, queued"
	leftSpeaker  = "speaker not in the recipe"
	leftUnknown  = "its category is not known"
)

// speakerSlug is what recipe.speakers names the speaker of a claim by: the source's slug, or of an imported row without
// one that of the name. It is "" where nothing tells who spoke, and on pages that give a name alone.
func speakerSlug(c corpus.Claim, imported bool) string {
	if c.SpeakerSlug == "" && imported {
		return corpus.NameSlug(c.Speaker)
	}
	return c.SpeakerSlug
}

// leavesOut says why a claim is not of the recipe's corpus, or "". Imported says that it is of a row.
func (r Recipe) leavesOut(c corpus.Claim, imported bool) string {
	speaker := speakerSlug(c, imported)
	switch {
	case corpus.HasFlag(c.Flags, corpus.FlagSiteTest):
		return "the site's own test entry"
	case corpus.HasFlag(c.Flags, corpus.FlagHeadline):
		return "the review prints no claim, and a headline may tell the opposite of what was claimed"
	case corpus.HasFlag(c.Flags, corpus.FlagUnmapped):
		return leftUnmapped
	case len(r.Speakers) > 0 && speaker != "" && !slices.Contains(r.Speakers, speaker):
		return leftSpeaker
	case c.StatedDate != "" && (r.Dates.From != "" && c.StatedDate < r.Dates.From || r.Dates.To != "" && c.StatedDate > r.Dates.To):
		return "date not in the recipe"
	}
	return ""
}

// evidence plans the search for a claim and joins what it keeps with the imported pairs. The trace is that
// of the search, nil where there is none.
func (k *walk) evidence(ctx context.Context, ref corpus.Ref, c corpus.Claim, links []corpus.Link) (_ []evidence, searched *corpus.Trace, _ context.Context, _ error) {
	recipe := k.w.Config.Recipe
	byID := map[string]*evidence{}
	var order []string
	add := func(id, url string, hits ...corpus.Hit) *evidence {
		ev, ok := byID[id]
		if !ok {
			ev = &evidence{documentID: id, url: url}
			byID[id], order = ev, append(order, id)
		}
		ev.hits = append(ev.hits, hits...)
		return ev
	}
	if slices.Contains(recipe.Evidence, EvidenceSearch) {
		stage := k.stages.plan()
		k.e.Expect(stage.Name, 1)
		in := planInput{ID: c.ID, Text: corpus.Wording(c.Text), Speaker: c.Speaker, Date: c.StatedDate}
		if recipe.agentic() {
			in.Category, in.Stated, in.Review = c.Category, c.StatedURL, c.ReviewURL
			var err error
			if in.AsOf, err = k.w.asOf(ref, c); err != nil {
				return nil, nil, ctx, err
			}
			if recipe.remembers() {
				known, err := k.w.snapshot(c.ID)
				if err != nil {
					return nil, nil, ctx, err
				}
				if known.Number > 0 {
					in.Memory = &known
				}
			}
		}
		trace, err := pipeline.Run(ctx, k.e, stage, c.ID, in)
		var ok bool
		if ctx, ok, err = k.settled(ctx, "search", err); err != nil {
			return nil, nil, ctx, err
		}
		if recipe.remembers() && !k.explain {
			kept := &trace
			if !ok {
				kept = nil
			}
			if err := k.w.memorise(c.ID, kept); err != nil {
				return nil, nil, ctx, err
			}
		}
		if ok {
			searched = &trace
			if calls := trace.ModelCalls(); k.visit.calls != nil && len(calls) > 0 {
				if err := k.visit.calls(calls...); err != nil {
					return nil, nil, ctx, err
				}
			}
			if k.visit.trace != nil {
				if err := k.visit.trace(c, trace, links); err != nil {
					return nil, nil, ctx, err
				}
			}
			for _, cand := range trace.Kept() {
				add(cand.DocumentID, cand.URL, cand.Hits...)
			}
		}
	}
	if slices.Contains(recipe.Evidence, EvidencePairs) {
		for _, l := range links {
			ev := add(l.DocumentID, l.URL, corpus.Hit{Variant: -1, Rank: l.Rank, Source: tableOf(l.Row)})
			if ev.link == nil || ev.link.Row == l.Row {
				ev.link = &l // of two rows, the one that comes first
			}
		}
	}
	out := make([]evidence, 0, len(order))
	for _, id := range order {
		out = append(out, *byID[id])
	}
	return out, searched, ctx, nil
}

func tableOf(row string) string {
	table, _, _ := strings.Cut(row, "/")
	return table
}

// sourced is a document with what led to it.
type sourced struct {
	doc corpus.Document
	ev  evidence
}

// documents reads the documents of a claim, each once, and what link posts lead to where the recipe
// wants it. A document is a function of its address, so claims share it.
func (k *walk) documents(ctx context.Context, c corpus.Claim, found []evidence) ([]sourced, error) {
	byID := map[string]int{}
	var out []sourced
	add := func(d corpus.Document, ev evidence) {
		if i, ok := byID[d.ID]; ok {
			out[i].ev.hits = append(out[i].ev.hits, ev.hits...)
			if out[i].ev.link == nil {
				out[i].ev.link = ev.link
			}
			return
		}
		byID[d.ID] = len(out)
		out = append(out, sourced{d, ev})
	}
	beside, err := k.unread(found)
	if err != nil {
		return nil, err
	}
	for _, ev := range found {
		d, ok, err := k.found(ctx, ev.documentID, ev.url, beside)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		add(d, ev)
		target := d.Outbound
		if target == "" || !k.w.Config.Recipe.Planner.FollowLinks {
			continue
		}
		if k.w.Config.Recipe.agentic() && c.TakenFrom(target) {
			if err := k.withhold("evidence", c.ID+" "+documentAt(target), planner.DropOwnSource); err != nil {
				return nil, err
			}
			continue
		}
		if d, ok, err = k.found(ctx, documentAt(target), target, nil); err != nil {
			return nil, err
		}
		if ok {
			add(d, evidence{documentID: d.ID, url: target, hits: slices.Clone(ev.hits)})
		}
	}
	for i := range out {
		sortHits(out[i].ev.hits)
	}
	return out, nil
}

func sortHits(hits []corpus.Hit) {
	sort.Slice(hits, func(i, j int) bool {
		a, b := hits[i], hits[j]
		if a.Variant != b.Variant {
			return a.Variant < b.Variant
		}
		if a.Rank != b.Rank {
			return a.Rank < b.Rank
		}
		return a.Source < b.Source
	})
}

// fetched is the document behind an address that is not in the pool.
func (k *walk) fetched(ctx context.Context, url string) (corpus.Document, bool, error) {
	stage := k.stages.document()
	key, err := k.w.storedAs(url)
	if err != nil {
		return corpus.Document{}, false, err
	}
	k.e.Expect(stage.Name, 1)
	d, err := pipeline.Run(ctx, k.e, stage, key, key)
	_, ok, err := k.settled(ctx, "document", err)
	return d, ok, err
}

// label asks for the zero-context answer and then labels every pair of the claim.
func (k *walk) label(ctx context.Context, c corpus.Claim, binary string, docs []sourced) error {
	zero := corpus.AnswerUnknown
	if k.w.Config.Recipe.Label.ZeroContext && len(docs) > 0 {
		stage := k.stages.zero()
		k.e.Expect(stage.Name, 1)
		z, err := pipeline.Run(ctx, k.e, stage, c.ID, corpus.Claim{ID: c.ID, Text: corpus.Wording(c.Text)})
		asked := err
		below, ok, err := k.settled(ctx, "zero-context answer", err)
		if err != nil {
			return err
		}
		if err := k.tellZero(c, z, asked); err != nil {
			return err
		}
		ctx = pipeline.Beside(ctx, below)
		if ok {
			zero = z.Answer
			if k.visit.calls != nil && z.Call != "" {
				if err := k.visit.calls(append(slices.Clone(z.Calls), z.Call)...); err != nil {
					return err
				}
			}
		}
	}
	if !k.reaches(KindLabel) {
		return nil
	}
	stage := k.stages.label()
	k.e.Expect(stage.Name, len(docs))
	ins := make([]annotate.Input, len(docs))
	for i, s := range docs {
		ins[i] = labelInput(c, binary == "true", s.doc, zero)
	}
	results, err := pipeline.Results(ctx, k.e, stage, func(in annotate.Input) string {
		return corpus.PairID(in.Claim.ID, in.Document.ID)
	}, ins)
	if err != nil {
		return err
	}
	for i, r := range results {
		ok, err := k.came(ctx, askedPair{claim: c, binary: binary, doc: docs[i].doc, ev: docs[i].ev, label: r.Out}, ins[i], r.Err)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		if r.Out.Status == corpus.LabelHeld {
			if err := k.withhold("pair", r.Out.ID, "held for a person"); err != nil {
				return err
			}
		}
		if k.visit.pair != nil {
			if err := k.visit.pair(c, docs[i].doc, r.Out, docs[i].ev); err != nil {
				return err
			}
		}
	}
	return nil
}

// What came of asking about a claim alone, where that is no outcome of the call.
const (
	zeroAnswered  = "answered"  // true or false
	zeroUndecided = "undecided" // it was read, and is neither
)

// tellZero tells the visitor what came of asking about a claim alone: an answer, or why there is none.
func (k *walk) tellZero(c corpus.Claim, z annotate.Zero, err error) error {
	if k.visit.zero == nil {
		return nil
	}
	outcome, known, err := k.outcome(corpus.Label{}, err)
	switch {
	case err != nil || !known:
		return err
	case outcome != outcomeLabelled:
	case z.Answer != corpus.AnswerUnknown:
		outcome = zeroAnswered
	default:
		rec, found, err := k.w.llm.Record(z.Call)
		if err != nil {
			return fmt.Errorf("read the call about %s alone: %w", c.ID, err)
		}
		if outcome = zeroUndecided; found && rec.Outcome != llm.OutcomeAnswered {
			outcome = string(rec.Outcome)
		}
	}
	return k.visit.zero(c, outcome)
}

// zeroText tells what came of asking about claims alone, "" where all answered or nobody was asked.
func zeroText(outcomes map[string]int) string {
	if n := total(outcomes); n > outcomes[zeroAnswered] {
		return fmt.Sprintf("answers of %d claims without a document: %s", n, tally(outcomes))
	}
	return ""
}

// labelInput holds what the protocol reads and nothing else, so that a changed tag or a new
// retrieval time labels nothing again.
func labelInput(c corpus.Claim, gold bool, d corpus.Document, zero corpus.Answer) annotate.Input {
	return annotate.Input{
		Claim:    corpus.Claim{ID: c.ID, Text: corpus.Wording(c.Text)},
		Gold:     gold,
		Document: corpus.Document{ID: d.ID, Kind: d.Kind, Title: d.Title, Text: d.Text, URL: d.URL, Source: d.Source, BodyStatus: d.BodyStatus, SHA256: d.SHA256},
		Zero:     zero,
	}
}

// planInput is what the search for evidence reads of a claim.
type planInput struct {
	ID      string `json:"id"`
	Text    string `json:"text"`
	Speaker string `json:"speaker,omitzero"`
	Date    string `json:"date,omitzero"`

	// Of the agentic search alone.
	Category corpus.Category   `json:"category,omitzero"`
	Stated   string            `json:"stated,omitzero"` // address of the document that the claim was taken from
	Review   string            `json:"review,omitzero"` // address of the review that rules on it
	AsOf     string            `json:"as_of,omitzero"`
	Memory   *planner.Snapshot `json:"memory,omitempty"`
}

// promptRecipe is a stage's part of the recipe together with the wording of its prompts, so that a
// changed word reruns what asks with it.
type promptRecipe[T any] struct {
	Settings T      `json:"settings"`
	Prompt   string `json:"prompt"`
}

// identities is a part of every stage that puts out ids made of addresses: when the rules of identity change,
// the ids are made anew.
var identities = struct {
	Identity int `json:"identity"`
}{corpus.IdentityVersion}

// stages makes the stages of a walk from a workspace's recipe.
type stages struct{ w *Workspace }

func (s stages) discover(site scrapers.Site) pipeline.Stage[string, scrapers.Listing] {
	return pipeline.Stage[string, scrapers.Listing]{
		Name: KindDiscover + "/" + site.Name, Version: site.Version,
		Do: func(ctx context.Context, address string) (scrapers.Listing, error) {
			l, err := site.Discover(ctx, s.w.fetch, address)
			s.w.watch.listing(ctx, site, address, l, err)
			return l, err
		},
	}
}

func (s stages) parse(site scrapers.Site) pipeline.Stage[string, []corpus.Claim] {
	return pipeline.Stage[string, []corpus.Claim]{
		Name: KindParse + "/" + site.Name, Version: site.Version, Recipe: identities,
		Do: func(ctx context.Context, address string) ([]corpus.Claim, error) {
			page, err := s.w.fetch.Get(ctx, fetch.Request{URL: address})
			if err != nil {
				if _, failed := s.w.fetch.Changed(ctx, address); failed != nil { // what is gone has a history too
					return nil, failed
				}
				return nil, err
			}
			free, err := s.w.readers.take(ctx)
			if err != nil {
				return nil, err
			}
			defer free()
			s.w.watch.read(site, page)
			claims, err := site.Parse(page)
			s.w.watch.parsed(page, claims, err)
			if err != nil {
				return nil, err
			}
			if page.Truncated() {
				for i, c := range claims {
					claims[i].Flags = corpus.AddFlag(c.Flags, corpus.FlagPageTruncated)
				}
			}
			return s.remembered(ctx, site, page, claims)
		},
	}
}

func (s stages) row(table scrapers.Table) pipeline.Stage[scrapers.Row, []corpus.Claim] {
	return pipeline.Stage[scrapers.Row, []corpus.Claim]{
		Name: KindParse + "/" + table.Name, Version: table.Version, Recipe: identities,
		Do: func(_ context.Context, row scrapers.Row) ([]corpus.Claim, error) { return table.Parse(row) },
	}
}

func (s stages) plan() pipeline.Stage[planInput, corpus.Trace] {
	settings := s.w.planSettings()
	return pipeline.Stage[planInput, corpus.Trace]{
		Name: KindPlan + "/" + s.w.Config.Recipe.Planner.Policy, Version: planner.Version, Recipe: promptRecipe[planner.Settings]{settings, s.w.planPrompts()},
		Do: func(ctx context.Context, in planInput) (corpus.Trace, error) {
			env := s.w.planEnv()
			env.AsOf = in.AsOf
			if in.Memory != nil {
				known, err := s.w.recollections()
				if err != nil {
					return corpus.Trace{}, err
				}
				env.Memory, env.Snapshot = known, *in.Memory
			}
			return planner.Plan(ctx, env, settings,
				corpus.Claim{ID: in.ID, Text: in.Text, Speaker: in.Speaker, StatedDate: in.Date, Category: in.Category, StatedURL: in.Stated, ReviewURL: in.Review})
		},
	}
}

func (s stages) document() pipeline.Stage[string, corpus.Document] {
	return pipeline.Stage[string, corpus.Document]{
		Name: KindDocument + "/page", Version: planner.PageVersion, Recipe: identities,
		Do: func(ctx context.Context, address string) (corpus.Document, error) {
			page, err := s.w.fetch.Get(ctx, fetch.Request{URL: address})
			if err != nil {
				return corpus.Document{}, err
			}
			free, err := s.w.readers.take(ctx)
			if err != nil {
				return corpus.Document{}, err
			}
			defer free()
			return planner.PageDocument(page)
		},
	}
}

func (s stages) zero() pipeline.Stage[corpus.Claim, annotate.Zero] {
	p, settings := s.w.protocol(), s.w.zeroSettings()
	return pipeline.Stage[corpus.Claim, annotate.Zero]{
		Name: KindZero + "/" + p.Name, Version: p.Version, Recipe: settings,
		Do: func(ctx context.Context, c corpus.Claim) (annotate.Zero, error) {
			return p.Zero(ctx, s.w.llm, settings, c)
		},
	}
}

func (s stages) label() pipeline.Stage[annotate.Input, corpus.Label] {
	p, settings := s.w.protocol(), s.w.labelSettings()
	return pipeline.Stage[annotate.Input, corpus.Label]{
		Name: KindLabel + "/" + p.Name, Version: p.Version, Recipe: settings,
		Do: s.annotate(settings),
	}
}

// annotate labels a pair as some annotator does.
func (s stages) annotate(settings annotate.Settings) func(context.Context, annotate.Input) (corpus.Label, error) {
	p := s.w.protocol()
	return func(ctx context.Context, in annotate.Input) (corpus.Label, error) {
		if settings.Mode != annotate.ModeCompat {
			if ok, reason := planner.Usable(in.Document); !ok {
				return corpus.Label{}, corpus.Exclude("unusable_body", reason)
			}
		}
		return p.Annotate(ctx, s.w.llm, settings, in)
	}
}
