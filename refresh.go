package assay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"assay/corpus"
	"assay/fetch"
	"assay/kv"
	"assay/llm"
	"assay/pipeline"
	"assay/scrapers"
)

// A refresh is a build that first asks again: listings from the newest item on, and stored pages that are
// due. What came of that is stored like any response, and the engine sees by itself what it changes. Then
// guard rails compare what the pages say with the last release, before any call is paid for.

// RefreshOptions says what a refresh does.
type RefreshOptions struct {
	All         bool     // ask for every stored page again, due or not
	Accept      []string // sources whose guard rails a person has looked at
	DryRun      bool     // say what would be asked
	As          string
	MaxDuration time.Duration
	Progress    pipeline.Progress
	Stop        <-chan struct{} // see BuildOptions
}

// Check reports sources that the recipe does not have, and a release name that cannot be.
func (o RefreshOptions) Check(r Recipe) error {
	var known []string
	for _, s := range r.Sites {
		known = append(known, r.source(s))
	}
	for _, name := range o.Accept {
		if !slices.Contains(known, name) {
			return fmt.Errorf("--accept %s: the recipe has no such source; it has %s", name, cmp.Or(strings.Join(known, ", "), "none"))
		}
	}
	return BuildOptions{As: o.As}.Check()
}

// RefreshRun is a refresh as it is remembered. One that did not end is gone on with by the next, if that
// comes soon: what was asked since it began is not asked again.
type RefreshRun struct {
	Began   time.Time `json:"began"`
	Ended   time.Time `json:"ended,omitzero"`
	Stopped bool      `json:"stopped,omitzero"` // by a guard rail
	All     bool      `json:"all,omitzero"`     // it asks for every stored page
	Release string    `json:"release,omitzero"` // id
}

// resumable is how old an unfinished refresh may be to be gone on with.
const resumable = 12 * time.Hour

// RefreshReport is what a refresh found, did and spent.
type RefreshReport struct {
	Run       string         `json:"run"`     // when it began, RFC 3339: the name of the run
	Resumed   bool           `json:"resumed"` // it went on with a run that had not ended
	Sources   []SourceReport `json:"sources"`
	Documents AskedReport    `json:"documents"` // pages and posts that are evidence
	Requests  RequestReport  `json:"requests"`
	Stops     []Stop         `json:"stops"` // guard rails, those that were accepted too
	Build     BuildReport    `json:"build"`
}

// Partial reports whether items failed, or what is new on a source could not be seen and nobody accepted
// what a guard rail said of that.
func (r RefreshReport) Partial() bool {
	return r.Build.Partial() || slices.ContainsFunc(r.Sources, func(s SourceReport) bool {
		return s.Unread != "" && !slices.ContainsFunc(r.Stops, func(stop Stop) bool { return stop.Accepted && stop.Source == s.Source })
	})
}

// AskedReport is what became of pages that were asked for again.
type AskedReport struct {
	Due     map[string]int `json:"due"` // by why; in a dry run too
	Asked   int            `json:"asked"`
	Unsent  int            `json:"unsent,omitzero"` // due, and not asked for: the host was down, or wants to be left alone; the last version stands
	Leaving []string       `json:"leaving"`         // gone, for the first time or for less than a day: the last version stands
	Gone    []string       `json:"gone"`            // gone for a day, and out of the release
	Kept    map[string]int `json:"kept"`            // by why the host gave none: the last version stands
	KeptAt  []string       `json:"kept_at"`         // some of their addresses
}

// SourceReport is one source of the recipe against the last release.
type SourceReport struct {
	Source   string `json:"source"`
	Listings int    `json:"listings"`        // listing pages that were read again
	Unread   string `json:"unread,omitzero"` // why a listing could not be read again
	AskedReport
	New       int      `json:"new"`    // pages
	NewAt     []string `json:"new_at"` // some of their addresses
	Verdicts  []Change `json:"verdicts"`
	Texts     []Change `json:"texts"`
	Left      []string `json:"left"`   // in the last release, and excluded now
	Failed    []string `json:"failed"` // with why
	Unchanged int      `json:"unchanged"`
}

// RequestReport counts what was sent, robots.txt included.
type RequestReport struct {
	Total       int `json:"total"`
	Listings    int `json:"listings"`     // to find what is new
	Again       int `json:"again"`        // for stored pages
	Rest        int `json:"rest"`         // for what is new
	Conditional int `json:"conditional"`  // that named a stored answer
	NotModified int `json:"not_modified"` // confirmed by 304
}

// A refresh is the state of one.
type refresh struct {
	w       *Workspace
	o       RefreshOptions
	began   time.Time
	rep     *RefreshReport
	stopped func() error
	before  fetch.Stats // of the workspace, when the refresh began

	mu       sync.Mutex
	sources  map[string]*SourceReport
	modified map[string]string // when a listing says that a page changed, by identity
	at       time.Time         // for what is due
}

// Refresh asks what is new, changed and gone, applies the guard rails and releases. A *StopError is a guard
// rail; the report then says everything that is known.
func (w *Workspace) Refresh(ctx context.Context, o RefreshOptions) (rep RefreshReport, err error) {
	if err := o.Check(w.Config.Recipe); err != nil {
		return rep, err
	}
	r := &refresh{w: w, o: o, rep: &rep, sources: map[string]*SourceReport{}, modified: map[string]string{}, at: w.now(), before: w.fetch.Stats()}
	rep.Stops = []Stop{}
	rep.Documents.init()
	for _, s := range w.Config.Recipe.Sites {
		name := w.Config.Recipe.source(s)
		r.sources[name] = &SourceReport{Source: name, NewAt: []string{}, Verdicts: []Change{}, Texts: []Change{}, Left: []string{}, Failed: []string{}}
		r.sources[name].init()
	}
	run, err := r.begin()
	if err != nil {
		return rep, err
	}
	build := BuildOptions{DryRun: o.DryRun, As: o.As, MaxDuration: o.MaxDuration, Progress: o.Progress, Stop: o.Stop, first: r.ask, notes: r.notes, began: r.began}
	rep.Build, err = w.Build(ctx, build)
	r.close()
	if o.DryRun {
		return rep, err
	}
	var stop *StopError
	switch {
	case err == nil:
		run.Ended, run.Release = w.now().UTC(), rep.Build.Release.ID
	case errors.As(err, &stop):
		run.Ended, run.Stopped = w.now().UTC(), true
	case errors.Is(err, ErrInterrupted), errors.Is(err, llm.ErrBudget), ctx.Err() != nil, rep.Build.TimeUp:
		return rep, err // the next run goes on with it
	default:
		run.Ended = w.now().UTC() // what failed is asked for again
	}
	return rep, errors.Join(err, w.tables.Refreshes.Put(kv.Key(rep.Run), run))
}

func (a *AskedReport) init() {
	a.Due, a.Kept, a.Leaving, a.Gone, a.KeptAt = map[string]int{}, map[string]int{}, []string{}, []string{}, []string{}
}

// begin takes up the last run where it did not end, or where a person now accepts what stopped it.
func (r *refresh) begin() (RefreshRun, error) {
	var last RefreshRun
	for entry, err := range r.w.tables.Refreshes.Scan("", "") {
		if err != nil {
			return last, fmt.Errorf("read earlier refreshes: %w", err)
		}
		last = entry.Value
	}
	open := last.Ended.IsZero() || last.Stopped && len(r.o.Accept) > 0
	if age := r.at.Sub(last.Began); !last.Began.IsZero() && open && age >= 0 && age < resumable {
		r.rep.Resumed = true
		r.o.All = r.o.All || last.All
		last.Ended, last.Stopped = time.Time{}, false
	} else {
		last = RefreshRun{Began: r.at.UTC()}
	}
	last.All = r.o.All
	r.began, r.rep.Run = last.Began, last.Began.Format(time.RFC3339Nano)
	if r.o.DryRun {
		return last, nil
	}
	return last, r.w.tables.Refreshes.Put(kv.Key(r.rep.Run), last)
}

// notes tells of sources whose listings could not be read.
func (r *refresh) notes() map[string]string {
	out := map[string]string{}
	for name, s := range r.sources {
		if s.Unread != "" {
			out[name] = s.Unread
		}
	}
	return out
}

// close fills in what is counted as the run goes on.
func (r *refresh) close() {
	stats := r.w.fetch.Stats()
	q := &r.rep.Requests
	q.Total, q.Conditional, q.NotModified = r.sent(), stats.Conditional-r.before.Conditional, stats.NotModified-r.before.NotModified
	q.Rest = q.Total - q.Listings - q.Again
	r.rep.Sources = []SourceReport{}
	for _, name := range sortedKeys(r.sources) {
		r.rep.Sources = append(r.rep.Sources, *r.sources[name])
	}
}

// sent is how many requests the refresh has sent so far.
func (r *refresh) sent() int { return r.w.fetch.Stats().Requests - r.before.Requests }

// ask is the first part of a build that is a refresh.
func (r *refresh) ask(ctx context.Context, e *pipeline.Engine, stopped func() error) error {
	r.stopped = stopped
	if !r.o.DryRun {
		if err := r.listings(ctx, e); err != nil {
			return err
		}
		r.rep.Requests.Listings = r.sent()
	}
	due, err := r.due(ctx)
	if err != nil || r.o.DryRun {
		return err
	}
	if err := r.again(ctx, due); err != nil {
		return err
	}
	r.rep.Requests.Again = r.sent() - r.rep.Requests.Listings
	l := r.w.newLedger(true)
	k := &walk{w: r.w, e: e, until: KindRead, stages: stages{r.w}, visit: visitor{page: l.page}}
	if err := k.run(ctx); err != nil {
		return err
	}
	if err := stopped(); err != nil {
		return err
	}
	if err := r.account(l, due); err != nil {
		return err
	}
	return r.guard(l)
}

// listings reads every source's listings again, from the newest item on until what it knows.
func (r *refresh) listings(ctx context.Context, e *pipeline.Engine) error {
	if !slices.Contains(r.w.Config.Recipe.Discover, DiscoverListing) {
		return nil
	}
	var lanes []func(context.Context) iter.Seq2[struct{}, error]
	for _, sr := range r.w.Config.Recipe.Sites {
		site, err := scrapers.SiteNamed(sr.Name)
		if err != nil {
			return err
		}
		lanes = append(lanes, func(ctx context.Context) iter.Seq2[struct{}, error] {
			return func(yield func(struct{}, error) bool) {
				yield(struct{}{}, r.site(ctx, e, site, sr))
			}
		})
	}
	return drain(pipeline.Lanes(ctx, lanes...))
}

func drain(lanes iter.Seq2[struct{}, error]) error {
	for _, err := range lanes {
		if err != nil {
			return err
		}
	}
	return nil
}

// site reads the listings of one source.
func (r *refresh) site(ctx context.Context, e *pipeline.Engine, site scrapers.Site, sr SiteRecipe) error {
	source, base := r.w.Config.Recipe.source(sr), strings.TrimSuffix(sr.Base, "/")
	starts := site.Start(base, r.w.Config.Recipe.Speakers)
	for _, start := range starts {
		if err := r.listing(ctx, e, site, source, start, ""); err != nil {
			return err
		}
	}
	run, ok, err := r.w.tables.Runs.Get(source)
	if err != nil || !ok || run.Good.IsZero() || site.Updates == nil || len(starts) == 0 {
		return err
	}
	for _, start := range site.Updates(base, r.w.Config.Recipe.Speakers, run.Good.Add(-overlap)) {
		if err := r.listing(ctx, e, site, source, start, starts[0]); err != nil {
			return err
		}
	}
	return nil
}

// overlap is how far the time since the last good run is stretched: clocks differ, and some sites show
// late what they dated early.
const overlap = 48 * time.Hour

// listing reads one listing and those that it leads to. Where a build does not read it too, its references
// are noted as shown by another listing, as.
func (r *refresh) listing(ctx context.Context, e *pipeline.Engine, site scrapers.Site, source, start, as string) error {
	known := r.w.Config.Runtime.Refresh.of(source, site.Name).Known
	again := fetch.AskAgain(ctx, r.began)
	read, waiting := map[string]bool{}, []string{start}
	for len(waiting) > 0 {
		page := waiting[0]
		waiting = waiting[1:]
		row := 0 // of known items
		for met, barren := map[string]bool{}, 0; page != "" && !read[page] && barren < maxBarrenListings; {
			if err := r.stopped(); err != nil {
				return err
			}
			read[page] = true
			if err := discoverAgain(again, site, r.w.fetch, page); err != nil {
				return err
			}
			listing, err := pipeline.Run(ctx, e, stages{r.w}.discover(site), page, page)
			if pipeline.Ends(err) {
				return err
			}
			if err != nil {
				why := err.Error()
				if item := (*pipeline.ItemError)(nil); errors.As(err, &item) {
					why = item.Why()
				}
				r.unread(source, page+": "+why)
				break // the build leaves it out too, and says so
			}
			r.count(source, page)
			before := len(met)
			ends := false
			for _, ref := range listing.Refs {
				met[corpus.IdentityURL(ref.URL)] = true
				is, err := r.knows(ref, listing.Modified[ref.URL])
				if err != nil {
					return err
				}
				if row++; !is {
					row = 0
				}
				ends = ends || row >= known
			}
			if as != "" {
				if err := r.w.noteShown(as, listing.Refs, nil); err != nil {
					return err
				}
			}
			for _, more := range listing.More {
				fresh, err := r.newer(more, listing.Modified[more])
				if err != nil {
					return err
				}
				if fresh {
					waiting = append(waiting, more)
				}
			}
			if barren++; len(met) > before {
				barren = 0
			}
			if page = listing.Next; ends && !listing.Unsorted {
				break
			}
		}
	}
	return nil
}

// discoverAgain sends the requests of a listing again. What comes of it is read from the store by the
// engine, which records failures; only what ends a run is an error here.
func discoverAgain(ctx context.Context, site scrapers.Site, f scrapers.Fetcher, page string) (err error) {
	defer func() {
		if recover() != nil {
			err = nil // the engine meets the same panic, and records it
		}
	}()
	_, err = site.Discover(ctx, f, page)
	return itself(ctx, err)
}

// itself drops an error that is about one address.
func itself(ctx context.Context, err error) error {
	var failed interface{ FailureClass() string }
	var excluded interface{ Excluded() string }
	var stops interface{ StopsRun() bool }
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &stops) && stops.StopsRun(), !errors.As(err, &failed) && !errors.As(err, &excluded):
		return err
	}
	return nil
}

// count counts a listing as read, unless what was read is what it said before: the host gave none now.
func (r *refresh) count(source, page string) {
	s, err := r.w.fetch.Standing(page)
	switch {
	case err == nil && (s.Kept() || s.Leaving()):
		r.unread(source, page+": "+s.Reason)
		return
	case err == nil && !s.Asked.IsZero() && s.Asked.Before(r.began):
		r.unread(source, page+": not asked for, since its host was down or wants to be left alone")
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sources[source].Listings++
}

func (r *refresh) unread(source, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sources[source].Unread = cmp.Or(r.sources[source].Unread, why)
}

// knows reports whether a reference was found before, and its page has not changed since it was asked for.
func (r *refresh) knows(ref corpus.Ref, modified string) (bool, error) {
	id := corpus.IdentityURL(ref.URL)
	changed := false
	if modified != "" {
		r.mu.Lock()
		r.modified[id] = max(r.modified[id], modified)
		r.mu.Unlock()
		var err error
		if changed, err = r.newer(ref.URL, modified); err != nil {
			return false, err
		}
	}
	for _, err := range r.w.tables.Leads.Keys(kv.Prefix(shortened(id)), "") {
		return err == nil && !changed, err
	}
	return false, nil
}

// newer reports whether something that is said to have changed at that time was not asked for since.
func (r *refresh) newer(address, modified string) (bool, error) {
	if modified == "" {
		return true, nil
	}
	address, err := r.w.storedAs(address)
	if err != nil {
		return false, err
	}
	s, err := r.w.fetch.Standing(address)
	return err == nil && changedSince(modified, s.Asked), err
}

// changedSince compares a time as listings tell it, an instant or a day, with an instant. A day counts
// to its end.
func changedSince(modified string, at time.Time) bool {
	if t, err := time.Parse(time.RFC3339, modified); err == nil {
		return !t.Before(at)
	}
	t, err := time.Parse(time.DateOnly, modified)
	return err != nil || t.AddDate(0, 0, 1).After(at)
}

// An asking is a stored page or post that is due.
type asking struct {
	source string // "" for a document
	url    string // of a page
	post   string // fullname of a post
	had    bool   // of a document: there is a version to lose
	gone   bool   // it is known to be gone
	why    string
}

// due walks what is stored and lists what has to be asked for again.
func (r *refresh) due(ctx context.Context) ([]asking, error) {
	var mu sync.Mutex
	all := map[asking]bool{}
	met := map[string]bool{}
	add := func(a asking, why string) {
		if why == "" {
			return
		}
		a.why = why
		all[a] = true
		if a.source == "" {
			r.rep.Documents.Due[why]++
		} else {
			r.sources[a.source].Due[why]++
		}
	}
	policy := r.w.Config.Runtime.Refresh
	v := visitor{
		page: func(source string, ref corpus.Ref, claims []corpus.Claim, _ error) error {
			s, err := r.w.fetch.Standing(ref.URL)
			if err != nil {
				return err
			}
			site, _, _ := strings.Cut(source, "@")
			mu.Lock()
			defer mu.Unlock()
			add(asking{source: source, url: ref.URL}, r.why(s, policy.of(source, site).Ages, reviewed(claims), r.modified[corpus.IdentityURL(ref.URL)]))
			return nil
		},
		document: func(id, url string) error {
			a, s, err := r.evidence(id, url)
			if err != nil || a == (asking{}) {
				return err
			}
			rules := policy.Documents
			if a.post != "" {
				rules = policy.Posts
			}
			mu.Lock()
			defer mu.Unlock()
			if !met[a.url+a.post] {
				met[a.url+a.post] = true
				add(a, r.why(s, rules, "", ""))
			}
			return nil
		},
	}
	e := r.w.newEngine(pipeline.Options{Explain: true})
	k := &walk{w: r.w, e: e, until: KindDocument, below: true, explain: true, stages: stages{r.w}, visit: v}
	if err := k.run(ctx); err != nil {
		return nil, err
	}
	return slices.SortedFunc(maps.Keys(all), func(a, b asking) int {
		return cmp.Or(strings.Compare(a.source, b.source), strings.Compare(a.url, b.url), strings.Compare(a.post, b.post))
	}), nil
}

// evidence says how a document is asked for again, if it can be, and what is known of it.
func (r *refresh) evidence(id, url string) (a asking, s fetch.Standing, err error) {
	reader := r.w.postReader()
	if fullname, ok := redditFullname(id); ok && reader != nil {
		s, err = r.w.fetch.CallStanding(reader.Request(fullname))
		if s.Asked.IsZero() {
			// An import never asked: the duty to look counts from the start.
			s.Asked, s.Answer = time.Unix(0, 0), fetch.ClassOK
		}
		_, pooled, poolErr := r.w.pooled(id)
		return asking{post: fullname, had: pooled || s.Answer == fetch.ClassOK, gone: s.Gone()}, s, errors.Join(err, poolErr)
	}
	if has, err := r.w.tables.Pool.Has(id); err != nil || has || url == "" {
		return asking{}, s, err
	}
	url, err = r.w.storedAs(url)
	if err != nil {
		return asking{}, s, err
	}
	s, err = r.w.fetch.Standing(url)
	return asking{url: url, had: s.Answer == fetch.ClassOK, gone: s.Gone()}, s, err
}

// reviewed is the newest date that a page's claims carry, "" where none does.
func reviewed(claims []corpus.Claim) (date string) {
	for _, c := range claims {
		date = max(date, cmp.Or(c.ReviewDate, c.StatedDate))
	}
	return date
}

// Why something is asked for again.
const (
	dueAll      = "all"
	dueMissing  = "missing"  // it was gone the last time
	dueFailed   = "failed"   // its host was in trouble the last time
	dueModified = "modified" // a listing says that it changed
	dueAge      = "age"
)

// why decides whether something is due, "" if it is not. What was never asked for is the build's to get.
func (r *refresh) why(s fetch.Standing, rules []AgeRule, reviewed, modified string) string {
	troubled := s.Latest == fetch.ClassFailed || s.Latest == fetch.ClassThrottled
	switch {
	case s.Asked.IsZero() || !s.Asked.Before(r.began):
		return ""
	case s.Answer == "" && troubled:
		return "" // nothing is there, so the build asks anyway
	case r.o.All:
		return dueAll
	case s.Leaving():
		return dueMissing
	case troubled:
		return dueFailed
	case modified != "" && changedSince(modified, s.Asked):
		return dueModified
	}
	day, err := time.Parse(time.DateOnly, reviewed)
	if err != nil {
		day = s.Retrieved
	}
	if ageDue(rules, r.at.Sub(day), r.at.Sub(s.Asked)) {
		return dueAge
	}
	return ""
}

// slack lets a nightly run that starts a little earlier than the night before find the same things due.
const slack = 6 * time.Hour

// ageDue applies the first rule that an age falls under.
func ageDue(rules []AgeRule, age, asked time.Duration) bool {
	const day = 24 * time.Hour
	for _, rule := range rules {
		if rule.Days == 0 || age <= time.Duration(rule.Days)*day {
			return rule.Every > 0 && asked >= time.Duration(rule.Every)*day-slack
		}
	}
	return false
}

// again asks for what is due, one lane per host.
func (r *refresh) again(ctx context.Context, due []asking) error {
	ctx = fetch.AskAgain(ctx, r.began)
	hosts := map[string][]asking{}
	var posts []string
	for _, a := range due {
		if a.post != "" {
			posts = append(posts, a.post)
			continue
		}
		host := corpus.Host(a.url)
		hosts[host] = append(hosts[host], a)
	}
	var lanes []func(context.Context) iter.Seq2[struct{}, error]
	lane := func(n int, ask func(ctx context.Context, i int) error) {
		lanes = append(lanes, func(ctx context.Context) iter.Seq2[struct{}, error] {
			return func(yield func(struct{}, error) bool) {
				for i := range n {
					err := r.stopped()
					if err == nil {
						err = itself(ctx, ask(ctx, i))
					}
					if !yield(struct{}{}, err) || err != nil {
						return
					}
				}
			}
		})
	}
	for _, host := range sortedKeys(hosts) {
		list := hosts[host]
		lane(len(list), func(ctx context.Context, i int) error {
			page, err := r.w.fetch.Get(ctx, fetch.Request{URL: list[i].url})
			name, _, _ := strings.Cut(list[i].source, "@")
			if site, known := scrapers.SiteNamed(name); err == nil && known == nil {
				r.w.watch.page(site, page) // most are as they were, and no stage reads them
			}
			return err
		})
	}
	lane(len(posts), func(ctx context.Context, i int) error {
		_, err := r.w.postReader().Document(ctx, posts[i], posts[i+1:min(len(posts), i+besides)])
		return err
	})
	return drain(pipeline.Lanes(ctx, lanes...))
}

// besides is how many posts are named beside the one that is asked for; no interface takes more at once.
const besides = 500

// account turns what the ledger met into the report.
func (r *refresh) account(l *ledger, due []asking) error {
	for _, key := range slices.Sorted(maps.Keys(l.fates)) {
		f := l.fates[key]
		s := r.sources[f.source]
		if !f.standing.Asked.Before(r.began) {
			s.Asked++
		}
		switch f.kind {
		case fateNew:
			if s.New++; len(s.NewAt) < examples {
				s.NewAt = append(s.NewAt, f.url)
			}
		case fateGone:
			s.Gone = append(s.Gone, f.url)
		case fateLeft:
			s.Left = append(s.Left, f.url+": "+f.reason)
		case fateFailed:
			s.Failed = append(s.Failed, f.url+": "+f.reason)
		case fateUnchanged:
			s.Unchanged++
		}
		s.Verdicts, s.Texts = append(s.Verdicts, f.verdicts...), append(s.Texts, f.texts...)
		s.stand(f.url, f.standing)
	}
	for _, a := range due {
		s, err := r.standing(a)
		if err != nil {
			return err
		}
		if asked := &r.rep.Documents; s.Asked.Before(r.began) {
			if a.source != "" {
				asked = &r.sources[a.source].AskedReport
			}
			asked.Unsent++
		}
		if a.source != "" {
			continue
		}
		if !s.Asked.Before(r.began) {
			r.rep.Documents.Asked++
		}
		d, name := &r.rep.Documents, a.url+a.post
		switch {
		case a.had && !a.gone && s.Gone():
			d.Gone = append(d.Gone, name)
		case a.had && s.Latest == fetch.ClassGone && !s.Gone():
			d.Leaving = append(d.Leaving, name) // an import stands although Reddit says gone: see withdrawn
		default:
			d.stand(name, s)
		}
	}
	return nil
}

// examples bounds lists in the report that may be as long as the corpus.
const examples = 20

// stand notes a page whose last version stands although it could not be had again.
func (a *AskedReport) stand(name string, s fetch.Standing) {
	switch {
	case s.Leaving():
		a.Leaving = append(a.Leaving, name)
	case s.Kept():
		a.Kept[cmp.Or(s.Reason, string(s.Latest))]++
		if len(a.KeptAt) < examples {
			a.KeptAt = append(a.KeptAt, name)
		}
	}
}

func (r *refresh) standing(a asking) (fetch.Standing, error) {
	if a.post != "" {
		return r.w.fetch.CallStanding(r.w.postReader().Request(a.post))
	}
	return r.w.fetch.Standing(a.url)
}

// guard applies the guard rails.
func (r *refresh) guard(l *ledger) error {
	stops, err := l.stops(r.w.Config.Publish)
	if err != nil {
		return err
	}
	alarms, err := r.w.alarms()
	if err != nil {
		return err
	}
	drifted, err := r.w.driftStops(alarms)
	if err != nil {
		return err
	}
	stops = append(stops, drifted...)
	var standing []Stop
	for i, s := range stops {
		if slices.Contains(r.o.Accept, s.Source) {
			stops[i].Accepted = true
			continue
		}
		standing = append(standing, s)
	}
	r.rep.Stops = append(r.rep.Stops, stops...)
	if err := r.w.hold(standing); err != nil {
		return err
	}
	if len(standing) > 0 {
		return &StopError{Stops: standing}
	}
	return nil
}
