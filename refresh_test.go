package assay

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay/corpus"
	"assay/fetch"
	"assay/kv"
	"assay/scrapers"
)

// A calendar is a clock that tests set, and that waiting moves.
type calendar struct {
	mu sync.Mutex
	at time.Time
}

func newCalendar() *calendar { return &calendar{at: time.Date(2026, 3, 1, 3, 0, 0, 0, time.UTC)} }

func (c *calendar) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *calendar) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

func (c *calendar) sleep(ctx context.Context, d time.Duration) error {
	c.pass(d)
	return ctx.Err()
}

// An almanac is a site of pages that say "rating: claim", and of listings that say one address a line.
type almanac struct {
	server *httptest.Server
	clock  *calendar

	mu     sync.Mutex
	pages  map[string]string // by path
	visits []string
}

var almanacPage = regexp.MustCompile(`<p>(.*?): (.*?)</p>`)

// site is the almanac as a site; its listings begin with the lines of /map.
func (a *almanac) site(name string) scrapers.Site {
	return scrapers.Site{
		Name: name, Version: 1, Host: "almanac.example",
		Recognise: func(_, address string) bool { return strings.Contains(address, "/item/") },
		Start:     func(base string, _ []string) []string { return []string{base + "/map"} },
		Updates: func(base string, _ []string, since time.Time) []string {
			return []string{base + "/since/" + since.UTC().Format(time.DateOnly)}
		},
		Discover: func(ctx context.Context, f scrapers.Fetcher, address string) (scrapers.Listing, error) {
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
			if err != nil {
				return scrapers.Listing{}, err
			}
			resp, err := f.HTTP().Do(req)
			if err != nil {
				return scrapers.Listing{}, err
			}
			defer resp.Body.Close()
			return readMap(resp, address)
		},
		Parse: func(p *fetch.Page) ([]corpus.Claim, error) {
			var out []corpus.Claim
			for i, m := range almanacPage.FindAllStringSubmatch(p.Text(), -1) {
				rating := corpus.Slug(m[1])
				out = append(out, corpus.Claim{
					ID: corpus.ClaimID(m[2], "", p.URL, ""), Text: m[2], RatingRaw: m[1], Rating: rating, Verdict6: corpus.Verdict(rating),
					Status: corpus.StatusSource, Source: name, ReviewURL: p.URL, Position: i,
				})
			}
			return out, nil
		},
	}
}

// readMap reads lines of an address and a date: of items, and of further maps.
func readMap(resp *http.Response, address string) (scrapers.Listing, error) {
	if resp.StatusCode != http.StatusOK {
		return scrapers.Listing{}, &scrapers.StatusError{URL: address, Status: resp.StatusCode}
	}
	data := make([]byte, 1<<16)
	n, _ := resp.Body.Read(data)
	l := scrapers.Listing{Refs: []corpus.Ref{}, Modified: map[string]string{}, Unsorted: true}
	for _, line := range strings.Split(string(data[:n]), "\n") {
		at, day, _ := strings.Cut(line, " ")
		to := corpus.ResolveURL(address, at)
		switch {
		case strings.HasPrefix(at, "/item/"):
			l.Refs = append(l.Refs, corpus.Ref{URL: to})
		case strings.HasPrefix(at, "/map/"):
			l.More = append(l.More, to)
		default:
			continue
		}
		if day != "" {
			l.Modified[to] = day
		}
	}
	return l, nil
}

func (a *almanac) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if r.URL.Path != "/robots.txt" {
		a.visits = append(a.visits, r.URL.Path)
	}
	body, ok := a.pages[r.URL.Path]
	if !ok {
		http.NotFound(rw, r)
		return
	}
	rw.Header().Set("Content-Type", "text/html; charset=utf-8")
	fmt.Fprint(rw, body)
}

func (a *almanac) set(pages map[string]string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	maps.Copy(a.pages, pages)
}

// asked takes the paths that were asked for since the last time, sorted.
func (a *almanac) asked() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := slices.Sorted(slices.Values(a.visits))
	a.visits = nil
	return out
}

func item(rating, claim string) string {
	return "<html><body><article><p>" + rating + ": " + claim + "</p></article></body></html>"
}

// newAlmanac makes the almanac a site of this program for one test, and a workspace that reads it.
func newAlmanac(t *testing.T) (*almanac, func() *Workspace) {
	t.Helper()
	a := &almanac{clock: newCalendar(), pages: map[string]string{}}
	a.server = httptest.NewServer(a)
	t.Cleanup(a.server.Close)
	before := scrapers.All
	scrapers.All = append(slices.Clone(before), a.site("almanac"))
	t.Cleanup(func() { scrapers.All = before })
	dir := t.TempDir()
	config := fmt.Sprintf(`recipe:
  name: almanac
  discover: [listing]
  sites: [{name: almanac, base: "http://almanac.example"}]
  speakers: []
  dates: {from: "", to: ""}
  evidence: []
runtime:
  contact: almanac@almanac.example
  resolve: {almanac.example: %q}
  refresh: {ages: [{every: 60}]}
publish: {changed: 1, gone: 1, failed: 1}
`, a.server.Listener.Addr())
	if err := os.WriteFile(filepath.Join(dir, ConfigName), []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	return a, func() *Workspace {
		t.Helper()
		w, err := Open(t.Context(), dir, OpenOptions{Now: a.clock.now, Sleep: a.clock.sleep})
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
}

func refreshed(t *testing.T, w *Workspace, o RefreshOptions) RefreshReport {
	t.Helper()
	rep, err := w.Refresh(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return rep
}

func closed(t *testing.T, w *Workspace) {
	t.Helper()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// Of a sitemap, a refresh reads the parts that changed, and asks again for the pages that did.
func TestRefreshFollowsModified(t *testing.T) {
	a, open := newAlmanac(t)
	a.set(map[string]string{
		"/map":    "/map/a 2026-02-01\n/map/b 2026-02-01\n",
		"/map/a":  "/item/1 2026-02-01\n/item/2 2026-02-01\n",
		"/map/b":  "/item/3\n",
		"/item/1": item("true", "The well of Averil is deep."), "/item/2": item("false", "The well of Holm is dry."), "/item/3": item("true", "Tarnby has a well."),
	})
	w := open()
	refreshed(t, w, RefreshOptions{})
	a.asked()
	a.clock.pass(24 * time.Hour)
	a.set(map[string]string{
		"/map":    "/map/a 2026-03-02T01:00:00Z\n/map/b 2026-02-01\n",
		"/map/a":  "/item/1 2026-02-01\n/item/2 2026-03-02T01:00:00Z\n",
		"/item/2": item("half-true", "The well of Holm is dry."),
		// The well of Corrin is on no map: the site tells of it among its news alone.
		"/since/2026-02-27": "/item/4\n", "/item/4": item("true", "Corrin has a well."),
	})
	rep := refreshed(t, w, RefreshOptions{})
	if d := cmp.Diff([]string{"/item/2", "/item/4", "/map", "/map/a", "/since/2026-02-27"}, a.asked()); d != "" {
		t.Errorf("asked for (-want +got):\n%s", d)
	}
	s := rep.Sources[0]
	if s.New != 1 || len(s.Verdicts) != 1 || s.Due["modified"] != 1 || s.Listings != 3 {
		t.Errorf("%+v", s)
	}
	closed(t, w)

	// Every page is parsed again, from what is stored alone, and the release is the same.
	scrapers.All[len(scrapers.All)-1].Version++
	dir := filepath.Dir(rep.Build.Release.Dir)
	w, err := Open(t.Context(), filepath.Dir(dir), OpenOptions{Replay: true, Now: a.clock.now})
	if err != nil {
		t.Fatal(err)
	}
	defer closed(t, w)
	again, err := w.Build(t.Context(), BuildOptions{As: "again"})
	if err != nil || again.Pipeline.Ran < 4 || again.Fetch.Requests != 0 {
		t.Fatalf("%v, %d ran", err, again.Pipeline.Ran)
	}
	for _, table := range []string{"claims", "documents", "pairs"} {
		var data [2]string
		for i, dir := range []string{rep.Build.Release.Dir, again.Release.Dir} {
			b, err := os.ReadFile(filepath.Join(dir, "data", table+".jsonl"))
			if err != nil {
				t.Fatal(err)
			}
			data[i] = string(b)
		}
		if d := cmp.Diff(data[0], data[1]); d != "" {
			t.Errorf("%s (-refreshed +replayed):\n%s", table, d)
		}
	}
}

// A listing that cannot be read leaves what it showed, and its site without a good run.
func TestRefreshWithoutAListing(t *testing.T) {
	a, open := newAlmanac(t)
	a.set(map[string]string{"/map": "/item/1\n", "/item/1": item("true", "The well of Averil is deep.")})
	w := open()
	first := refreshed(t, w, RefreshOptions{})
	if first.Partial() || first.Sources[0].Listings != 1 {
		t.Errorf("partial %v, %+v", first.Partial(), first.Sources[0])
	}
	good := a.clock.now()
	a.clock.pass(24 * time.Hour)
	a.mu.Lock()
	delete(a.pages, "/map")
	a.mu.Unlock()
	rep := refreshed(t, w, RefreshOptions{})
	if rep.Build.Release.ID != first.Build.Release.ID || rep.Sources[0].Unread != "http://almanac.example/map: status_404" {
		t.Errorf("release %s after %s, unread %q", rep.Build.Release.ID, first.Build.Release.ID, rep.Sources[0].Unread)
	}
	if !rep.Partial() || rep.Sources[0].Listings != 0 || !strings.Contains(rep.Text(false), "no listing could be read again") {
		t.Errorf("partial %v, %d listings read; the report:\n%s", rep.Partial(), rep.Sources[0].Listings, rep.Text(false))
	}
	stands := func(w *Workspace) {
		t.Helper()
		states, err := w.Sources(t.Context())
		want := "last good run " + good.Format(time.RFC3339) + "; since then http://almanac.example/map: status_404"
		if err != nil || len(states) != 1 || states[0].Text() != want {
			t.Errorf("%+v, %v; want %s", states, err, want)
		}
	}
	stands(w)
	dir := w.Dir
	closed(t, w)

	// A release from what is stored does not make the run a good one, nor does a build that may ask and has
	// nothing to ask of the site's listings.
	for _, replay := range []bool{true, false} {
		a.clock.pass(24 * time.Hour)
		w, err := Open(t.Context(), dir, OpenOptions{Replay: replay, Now: a.clock.now, Sleep: a.clock.sleep})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Build(t.Context(), BuildOptions{}); err != nil {
			t.Fatal(err)
		}
		stands(w)
		closed(t, w)
	}
}

// The build that asks a site's listings for the first time is a run of it; one that asks for a page alone is not.
func TestFirstBuildIsARun(t *testing.T) {
	a, open := newAlmanac(t)
	a.set(map[string]string{"/map": "/item/1\n/item/2\n", "/item/1": item("true", "The well of Averil is deep.")})
	w := open()
	defer closed(t, w)
	good := a.clock.now()
	for range 2 {
		if _, err := w.Build(t.Context(), BuildOptions{RetryFailed: true}); err != nil {
			t.Fatal(err)
		}
		states, err := w.Sources(t.Context())
		if err != nil || states[0].Good.Sub(good) > time.Minute || states[0].Good.Before(good) || states[0].Note != "" || !states[0].At.After(good) {
			t.Errorf("%+v, %v; want a good run at about %s", states, err, good)
		}
		a.clock.pass(48 * time.Hour)
		a.set(map[string]string{"/item/2": item("false", "The well of Holm is dry.")})
	}
}

func TestAgeRules(t *testing.T) {
	day := 24 * time.Hour
	rules := []AgeRule{{Days: 14, Every: 1}, {Days: 90, Every: 7}, {Every: 60}}
	for _, tt := range []struct {
		age, asked time.Duration
		want       bool
	}{
		{3 * day, day, true},
		{3 * day, 23 * time.Hour, true}, // a night that begins an hour early
		{3 * day, 12 * time.Hour, false},
		{30 * day, 6 * day, false},
		{30 * day, 7 * day, true},
		{1000 * day, 59 * day, false},
		{1000 * day, 60 * day, true},
	} {
		if got := ageDue(rules, tt.age, tt.asked); got != tt.want {
			t.Errorf("a review of %v that was asked for %v ago is due: %v", tt.age, tt.asked, got)
		}
	}
	if ageDue([]AgeRule{{Every: 0}}, day, 1000*day) || ageDue(nil, day, 1000*day) {
		t.Error("what is never asked again is due")
	}
}

func TestWhyIsItDue(t *testing.T) {
	now := time.Date(2026, 3, 10, 3, 0, 0, 0, time.UTC)
	r := &refresh{began: now, at: now}
	rules := []AgeRule{{Every: 60}}
	asked := func(hours int, s fetch.Standing) fetch.Standing {
		s.Asked = now.Add(-time.Duration(hours) * time.Hour)
		return s
	}
	for name, tt := range map[string]struct {
		s        fetch.Standing
		modified string
		want     string
	}{
		"never asked":               {fetch.Standing{}, "", ""},
		"asked in this run":         {asked(-1, fetch.Standing{Latest: fetch.ClassOK, Answer: fetch.ClassOK}), "2026-03-11", ""},
		"as it was":                 {asked(24, fetch.Standing{Latest: fetch.ClassOK, Answer: fetch.ClassOK}), "", ""},
		"old":                       {asked(60*24, fetch.Standing{Latest: fetch.ClassOK, Answer: fetch.ClassOK}), "", dueAge},
		"missing":                   {asked(24, fetch.Standing{Latest: fetch.ClassGone, Answer: fetch.ClassOK}), "", dueMissing},
		"gone for good":             {asked(24, fetch.Standing{Latest: fetch.ClassGone, Answer: fetch.ClassGone}), "", ""},
		"its host failed":           {asked(1, fetch.Standing{Latest: fetch.ClassFailed, Answer: fetch.ClassOK}), "", dueFailed},
		"nothing, its host failed":  {asked(1, fetch.Standing{Latest: fetch.ClassFailed}), "", ""},
		"a wall":                    {asked(24, fetch.Standing{Latest: fetch.ClassBlocked, Answer: fetch.ClassOK}), "", ""},
		"changed since":             {asked(24, fetch.Standing{Latest: fetch.ClassOK, Answer: fetch.ClassOK}), "2026-03-09T12:00:00Z", dueModified},
		"changed before":            {asked(24, fetch.Standing{Latest: fetch.ClassOK, Answer: fetch.ClassOK}), "2026-03-08T12:00:00Z", ""},
		"changed on the day":        {asked(24, fetch.Standing{Latest: fetch.ClassOK, Answer: fetch.ClassOK}), "2026-03-09", dueModified},
		"changed at a time unknown": {asked(24, fetch.Standing{Latest: fetch.ClassOK, Answer: fetch.ClassOK}), "yesterday", dueModified},
	} {
		if got := r.why(tt.s, rules, "2024-01-01", tt.modified); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// The history of a page is read from its versions, in whatever way it went.
func TestChronicle(t *testing.T) {
	day := func(n int) time.Time { return time.Date(2026, 3, n, 0, 0, 0, 0, time.UTC) }
	said := func(n int, claims ...corpus.Claim) reading { return reading{claims, day(n)} }
	c := func(id, rating string, position int) corpus.Claim {
		return corpus.Claim{ID: id, RatingRaw: strings.ToUpper(rating), Rating: rating, Verdict6: corpus.Verdict(rating), Position: position}
	}
	past := func(rating string, n int) corpus.Ruling {
		return corpus.Ruling{RatingRaw: strings.ToUpper(rating), Rating: rating, Verdict6: corpus.Verdict(rating), Seen: day(n).Format(time.RFC3339)}
	}
	with := func(c corpus.Claim, supersedes string, earlier ...corpus.Ruling) corpus.Claim {
		c.Supersedes, c.Earlier = supersedes, earlier
		return c
	}
	unmapped := func(raw string) corpus.Claim { return corpus.Claim{ID: "a", RatingRaw: raw} }
	for name, tt := range map[string]struct {
		list []reading
		want []corpus.Claim
	}{
		"one version":          {[]reading{said(1, c("a", "true", 0))}, []corpus.Claim{c("a", "true", 0)}},
		"a footnote":           {[]reading{said(1, c("a", "true", 0)), said(2, c("a", "true", 0))}, []corpus.Claim{c("a", "true", 0)}},
		"a verdict":            {[]reading{said(1, c("a", "true", 0)), said(2, c("a", "false", 0))}, []corpus.Claim{with(c("a", "false", 0), "", past("true", 1))}},
		"there and back":       {[]reading{said(1, c("a", "true", 0)), said(2, c("a", "false", 0)), said(3, c("a", "true", 0))}, []corpus.Claim{with(c("a", "true", 0), "", past("true", 1), past("false", 2))}},
		"a text":               {[]reading{said(1, c("a", "true", 0)), said(2, c("b", "true", 0))}, []corpus.Claim{with(c("b", "true", 0), "a")}},
		"a text, then verdict": {[]reading{said(1, c("a", "true", 0)), said(2, c("b", "true", 0)), said(3, c("b", "false", 0))}, []corpus.Claim{with(c("b", "false", 0), "a", past("true", 2))}},
		"a wording returns":    {[]reading{said(1, c("a", "true", 0)), said(2, c("b", "true", 0)), said(3, c("a", "true", 0))}, []corpus.Claim{c("a", "true", 0)}},
		"the second of two":    {[]reading{said(1, c("a", "true", 0), c("b", "false", 1)), said(2, c("a", "true", 0), c("d", "false", 1))}, []corpus.Claim{c("a", "true", 0), with(c("d", "false", 1), "b")}},
		"one more":             {[]reading{said(1, c("a", "true", 0)), said(2, c("a", "true", 0), c("b", "false", 1))}, []corpus.Claim{c("a", "true", 0), c("b", "false", 1)}},
		"another place":        {[]reading{said(1, c("a", "true", 0), c("b", "false", 1)), said(2, c("b", "false", 0), c("a", "true", 1))}, []corpus.Claim{c("b", "false", 0), c("a", "true", 1)}},
		"a mark, no map":       {[]reading{said(1, unmapped("No idea!")), said(2, unmapped("no idea"))}, []corpus.Claim{unmapped("no idea")}},
		"two words, no map":    {[]reading{said(1, unmapped("No idea")), said(2, unmapped("Well"))}, []corpus.Claim{with(unmapped("Well"), "", corpus.Ruling{RatingRaw: "No idea", Seen: day(1).Format(time.RFC3339)})}},
	} {
		if d := cmp.Diff(tt.want, chronicle(tt.list)); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

// The thresholds of the guard rails, and what they count.
func TestStops(t *testing.T) {
	w := &Workspace{}
	store, err := kv.OpenMemory()
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	w.tables = openTables(store)
	released := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	if err := w.tables.Runs.Put("s", SourceRun{At: released}); err != nil {
		t.Fatal(err)
	}
	since, before := released.Add(time.Hour), released.Add(-time.Hour)
	ok := fetch.Standing{Asked: since, Latest: fetch.ClassOK, Answer: fetch.ClassOK}
	kept := fetch.Standing{Asked: since, Latest: fetch.ClassBlocked, Answer: fetch.ClassOK}
	leaving := fetch.Standing{Asked: since, Latest: fetch.ClassGone, Answer: fetch.ClassOK}
	old := fetch.Standing{Asked: before, Latest: fetch.ClassOK, Answer: fetch.ClassOK}
	type group struct {
		n int
		f fate
	}
	same, was := fate{kind: fateUnchanged, was: true, standing: ok}, func(kind string) fate { return fate{kind: kind, was: true, standing: ok} }
	standing := func(s fetch.Standing) fate { return fate{kind: fateUnchanged, was: true, standing: s} }
	for name, tt := range map[string]struct {
		groups []group
		want   []Stop
	}{
		"nothing":               {[]group{{20, same}}, nil},
		"up to the limit":       {[]group{{16, same}, {4, was(fateChanged)}}, nil},
		"beyond it":             {[]group{{15, same}, {5, was(fateChanged)}}, []Stop{{What: fateChanged, Count: 5, Of: 20, Limit: 0.2}}},
		"excluded now":          {[]group{{15, same}, {5, was(fateLeft)}}, []Stop{{What: fateChanged, Count: 5, Of: 20, Limit: 0.2}}},
		"new ones do not count": {[]group{{2, same}, {50, fate{kind: fateNew, standing: ok}}}, nil},
		"not asked":             {[]group{{100, standing(old)}, {2, same}, {3, was(fateGone)}}, []Stop{{What: fateGone, Count: 3, Of: 5, Limit: 0.1}}},
		"gone, both ways":       {[]group{{17, same}, {1, was(fateGone)}, {2, standing(leaving)}}, []Stop{{What: fateGone, Count: 3, Of: 20, Limit: 0.1}}},
		"failed, both ways":     {[]group{{4, same}, {3, was(fateFailed)}, {3, standing(kept)}}, []Stop{{What: fateFailed, Count: 6, Of: 10, Limit: 0.5}}},
		"few":                   {[]group{{2, was(fateGone)}}, nil},
		"all of few enough":     {[]group{{3, was(fateGone)}}, []Stop{{What: fateGone, Count: 3, Of: 3, Limit: 0.1}}},
		"two rails": {[]group{{5, was(fateGone)}, {5, was(fateChanged)}}, []Stop{
			{What: fateChanged, Count: 5, Of: 10, Limit: 0.2}, {What: fateGone, Count: 5, Of: 10, Limit: 0.1}}},
	} {
		l := w.newLedger(true)
		for g, group := range tt.groups {
			for i := range group.n {
				f := group.f
				f.source, f.url = "s", fmt.Sprintf("http://s.example/%d/%d", g, i)
				l.fates[f.url] = f
			}
		}
		got, err := l.stops(Publish{Changed: 0.2, Gone: 0.1, Failed: 0.5, Least: 3})
		if err != nil {
			t.Fatal(err)
		}
		for i := range got {
			if got[i].Source != "s" || len(got[i].Examples) != 3 {
				t.Errorf("%s: %+v", name, got[i])
			}
			got[i].Source, got[i].Examples = "", nil
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

// A post that its author deleted leaves the release once Reddit has said so on two days, whether it was
// imported or read from Reddit.
func TestRefreshLooksForDeletedPosts(t *testing.T) {
	for name, planner := range map[string]string{"imported": "backend: local, posts: oauth", "read": "backend: reddit, posts: oauth"} {
		t.Run(name, func(t *testing.T) {
			web, clock, dir := newRedditWeb(t), newCalendar(), t.TempDir()
			t.Setenv("HERRING_ID", redditID)
			t.Setenv("HERRING_SECRET", redditSecret)
			files := map[string]string{
				ConfigName:     web.config(planner),
				"claims.csv":   "claim,verdict\nThe herring tolls of the harbor doubled.,true\n",
				"posts.ndjson": herring["aa1"] + "\n" + herring["aa2"] + "\n",
			}
			for name, text := range files {
				text = strings.ReplaceAll(text, "\n\t\t", " ") // a dump has a record a line
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			w, err := Open(t.Context(), dir, OpenOptions{Now: clock.now, Sleep: clock.sleep})
			if err != nil {
				t.Fatal(err)
			}
			defer closed(t, w)
			imports := map[string]string{"claims-table": "claims.csv"}
			if name == "imported" {
				imports["reddit"] = "posts.ndjson"
			}
			for kind, file := range imports {
				if _, err := w.Import(t.Context(), kind, filepath.Join(dir, file), ImportOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			if rep, err := w.Build(t.Context(), BuildOptions{}); err != nil || rep.Release.Counts["documents"] != 2 {
				t.Fatalf("%v, %+v", err, rep.Release)
			}
			asked := map[string]int{"imported": 2, "read": 5}[name] // three were never to be had
			for _, night := range []struct {
				gone             string
				documents        int
				leaving, dropped []string
			}{
				{"", 2, []string{}, []string{}},
				{"aa2", 2, []string{"t3_aa2"}, []string{}},
				{"aa2", 1, []string{}, []string{"t3_aa2"}},
			} {
				clock.pass(48 * time.Hour)
				web.mu.Lock()
				web.gone = night.gone
				web.mu.Unlock()
				web.asked()
				rep := refreshed(t, w, RefreshOptions{})
				if rep.Build.Release.Counts["documents"] != night.documents || rep.Documents.Asked != asked {
					t.Errorf("%d documents, %d asked for; want %+v", rep.Build.Release.Counts["documents"], rep.Documents.Asked, night)
				}
				if d := cmp.Diff(night.leaving, rep.Documents.Leaving); d != "" {
					t.Errorf("leaving: %s", d)
				}
				if d := cmp.Diff(night.dropped, rep.Documents.Gone); d != "" {
					t.Errorf("gone: %s", d)
				}
				var infos []string
				for _, v := range web.asked() {
					if strings.HasPrefix(v, "/reddit/api/info?") {
						infos = append(infos, v)
					}
				}
				if len(infos) != 1 {
					t.Errorf("requests for two posts: %q", infos)
				}
			}
		})
	}
}

// A host that is down is asked a few times, not once for every page that is due, and what is stored stands.
func TestRefreshGivesUpAHostThatIsDown(t *testing.T) {
	a, open := newAlmanac(t)
	pages := map[string]string{}
	for i := range 30 {
		at := fmt.Sprintf("/item/%d", i)
		pages["/map"] += at + "\n"
		pages[at] = item("true", fmt.Sprintf("Well %d of Averil is deep.", i))
	}
	a.set(pages)
	w := open()
	defer closed(t, w)
	first := refreshed(t, w, RefreshOptions{})
	a.clock.pass(25 * time.Hour)
	a.server.Close()
	began := a.clock.now()
	rep := refreshed(t, w, RefreshOptions{All: true})
	if rep.Requests.Total > 6 || a.clock.now().Sub(began) > 2*time.Minute {
		t.Errorf("%d requests in %s to a host that refuses connections", rep.Requests.Total, a.clock.now().Sub(began))
	}
	down := rep.Build.Fetch.Outages
	if len(down) != 1 || down[0].Host != "almanac.example:80" || down[0].Unsent < 29 {
		t.Errorf("outages %+v, want the host with at least 29 requests that were not sent", down)
	}
	text := rep.Text(false)
	if rep.Sources[0].Unsent < 29 || strings.Count(text, "host down: almanac.example:80 could not be reached") != 1 || !strings.Contains(text, "not asked for since their host was down") {
		t.Errorf("%d pages not asked for; the report:\n%s", rep.Sources[0].Unsent, text)
	}
	for line := range strings.Lines(text) {
		if n := strings.Count(line, "http://almanac.example/"); n > 1 {
			t.Errorf("a line names its address %d times: %s", n, line)
		}
	}
	if rep.Build.Release.ID != first.Build.Release.ID || !rep.Partial() {
		t.Errorf("release %s after %s, partial %v", rep.Build.Release.ID, first.Build.Release.ID, rep.Partial())
	}
}
