package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// nightly is a workspace whose site is refreshed night after night. Its pages have validators.
type nightly struct {
	*lab
	t      *testing.T
	web    *web
	checks []factCheck

	mu       sync.Mutex
	statuses map[string]int // of pages that answer otherwise, by path
	ahead    int            // hours
}

// night is what the tests read of a refresh's JSON.
type night struct {
	Run     string
	Resumed bool
	Sources []struct {
		Source    string
		Listings  int
		Unread    string
		Due       map[string]int
		Asked     int
		New       int
		Verdicts  []change
		Texts     []change
		Left      []string
		Failed    []string
		Leaving   []string
		Gone      []string
		Kept      map[string]int
		Unchanged int
	}
	Documents struct {
		Due           map[string]int
		Asked         int
		Leaving, Gone []string
		Kept          map[string]int
	}
	Requests map[string]int
	Stops    []struct {
		Source, What string
		Count, Of    int
		Accepted     bool
	}
	Build report
}

type change struct{ URL, ID, Was, Old, New string }

func newNightly(t *testing.T, n int, s setup) *nightly {
	t.Helper()
	w := newWeb(t)
	usual := setup{"recipe.models": stubbed}
	for k, v := range s {
		usual[k] = v
	}
	l := newSite(t, w, nil, usual)
	night := &nightly{lab: l, t: t, web: w, checks: wells(n), statuses: map[string]int{}}
	var list []post
	for i := range n {
		list = append(list, wellPost(i))
	}
	l.posts(list...)
	w.on("check.example/robots.txt", says("text/plain", "User-agent: *\nAllow: /\n"))
	night.serve()
	return night
}

// serve answers with the checks as they are now.
func (n *nightly) serve() {
	for _, f := range n.checks {
		page := f.page()
		n.web.on(f.address("check.example"), n.tagged("/factchecks/"+f.Path, page))
	}
	list := n.checks
	n.web.on("check.example/factchecks/list/", n.tagged("list", listing("", hrefs(list...)...)))
}

// tagged answers with a page and its validator, or with another status.
func (n *nightly) tagged(path, page string) http.HandlerFunc {
	tag := fmt.Sprintf("\"%x\"", sha256.Sum256([]byte(page)))
	return func(rw http.ResponseWriter, r *http.Request) {
		n.mu.Lock()
		status := n.statuses[path]
		n.mu.Unlock()
		switch {
		case status != 0:
			rw.WriteHeader(status)
		case r.Header.Get("If-None-Match") == tag:
			rw.WriteHeader(http.StatusNotModified)
		default:
			rw.Header().Set("Etag", tag)
			shows(page)(rw, r)
		}
	}
}

// answers makes a page answer with a status; 0 is the page itself.
func (n *nightly) answers(i, status int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.statuses["/factchecks/"+n.checks[i].Path] = status
}

// later moves the clock of what runs from now on.
func (n *nightly) later(hours int) {
	n.ahead += hours
	n.env = []string{fmt.Sprintf("%s=%dh", clockEnv, n.ahead)}
}

// refresh refreshes and returns the report and what was asked.
func (n *nightly) refresh(code int, args ...string) (night, int) {
	n.t.Helper()
	before := n.web.total()
	out, errs := n.must(code, append([]string{"refresh", "--json"}, args...)...)
	var r night
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		n.t.Fatalf("report: %v\n%s%s", err, out, errs)
	}
	return r, n.web.total() - before
}

// claims are the rows of the table claims by the address of their review, without its host.
func claimsOf(t *testing.T, r report) map[string]map[string]any {
	t.Helper()
	out := map[string]map[string]any{}
	for _, row := range released(t, r.Release.Dir, "claims") {
		_, path, _ := strings.Cut(row["review_url"].(string), "check.example")
		out[path] = row
	}
	return out
}

func (n *nightly) path(i int) string { return "/factchecks/" + n.checks[i].Path }

func (n *nightly) url(i int) string { return "http://check.example" + n.path(i) }

// everyNight asks for every page every night, and lets half of them change.
var everyNight = setup{
	"runtime.refresh": "{known: 3, ages: [{every: 1}], documents: [{every: 1}]}",
	"publish":         "{changed: 0.5, gone: 0.5, failed: 0.5, least: 2}",
}

// Three nights of a site: what is new, what changed, what vanished for a day and for good, what is kept.
func TestRefresh(t *testing.T) {
	t.Parallel()
	n := newNightly(t, 10, everyNight)
	first := claimsOf(t, n.build(0))
	if len(first) != 10 {
		t.Fatalf("%d claims", len(first))
	}
	paths := []string{}
	for i := range n.checks {
		paths = append(paths, n.path(i))
	}
	was := func(i int) string { return first[paths[i]]["id"].(string) }

	// The second night: one verdict, one text, one page missing, one closed, one new.
	n.later(24)
	changedAt, old := n.checks[0], n.checks[1].Claim
	changedAt.Rating = "half-true"
	n.checks[0] = changedAt
	n.checks[1].Claim = "The village of Brenwick has 33 wells, and two of them are dry."
	n.checks = append(wells(11)[10:], n.checks...)
	n.serve()
	at := func(i int) int { return i + 1 } // a check's place now
	n.answers(at(2), http.StatusNotFound)
	n.answers(at(3), http.StatusForbidden)
	second, asked := n.refresh(0)
	want := second.Sources[0]
	if d := cmp.Diff([]change{{URL: n.url(at(0)), ID: was(0), Old: "true", New: "half_true"}}, want.Verdicts); d != "" {
		t.Errorf("verdicts: %s", d)
	}
	rows := claimsOf(t, second.Build)
	edited := rows[n.path(at(1))]
	if d := cmp.Diff([]change{{URL: n.url(at(1)), ID: edited["id"].(string), Was: was(1), Old: old, New: n.checks[at(1)].Claim}}, want.Texts); d != "" {
		t.Errorf("texts: %s", d)
	}
	if d := cmp.Diff([]string{n.url(at(2))}, want.Leaving); d != "" || len(want.Gone) > 0 {
		t.Errorf("leaving: %s; gone %q", d, want.Gone)
	}
	if d := cmp.Diff(map[string]int{"status_403": 1}, want.Kept); d != "" {
		t.Errorf("kept: %s", d)
	}
	if want.New != 1 || want.Unchanged != 8 || want.Asked != 11 || want.Due["age"] != 10 {
		t.Errorf("new %d, unchanged %d, asked %d, due %v", want.New, want.Unchanged, want.Asked, want.Due)
	}
	// robots.txt, the listing, ten pages again and the new one; six pages were as they were.
	if asked != 13 || second.Requests["total"] != 13 || second.Requests["conditional"] != 11 || second.Requests["not_modified"] != 6 || second.Requests["again"] != 10 {
		t.Errorf("%d requests, reported %v", asked, second.Requests)
	}
	if len(rows) != 11 {
		t.Errorf("%d claims released, want the missing and the closed one among 11", len(rows))
	}
	row := rows[n.path(at(0))]
	earlier, _ := row["earlier"].([]any)
	if row["id"] != was(0) || row["rating"] != "half_true" || len(earlier) != 1 || earlier[0].(map[string]any)["rating"] != "true" {
		t.Errorf("the claim of another verdict is %v", row)
	}
	if edited["supersedes"] != was(1) || edited["id"] == was(1) {
		t.Errorf("the edited claim is %v", edited)
	}

	// Within the day nothing is asked again but the listing and what is missing, and nothing is paid for.
	again, asked := n.refresh(0)
	if asked != 2 || again.Requests["listings"] != 1 || again.Sources[0].Due["missing"] != 1 || again.Requests["conditional"] != 2 || again.Build.LLM.Calls != 0 || again.Build.Pipeline.Ran != 0 || again.Build.Release.ID != second.Build.Release.ID {
		t.Errorf("a second refresh: %d requests %v, %d calls, %d ran, release %s after %s", asked, again.Requests, again.Build.LLM.Calls, again.Build.Pipeline.Ran, again.Build.Release.ID, second.Build.Release.ID)
	}

	// The third night: the missing page is still missing, the closed one is open again.
	n.later(24)
	n.answers(at(3), 0)
	third, asked := n.refresh(0)
	source := third.Sources[0]
	if d := cmp.Diff([]string{n.url(at(2))}, source.Gone); d != "" || len(source.Leaving) > 0 || len(source.Kept) > 0 || len(source.Verdicts)+len(source.Texts)+source.New > 0 {
		t.Errorf("gone: %s; %+v", d, source)
	}
	if asked != 13 || third.Requests["not_modified"] != 11 || third.Build.LLM.Calls != 0 {
		t.Errorf("%d requests, reported %v; %d calls", asked, third.Requests, third.Build.LLM.Calls)
	}
	if rows = claimsOf(t, third.Build); len(rows) != 10 || rows[n.path(at(2))] != nil || withheld(t, third.Build.Release.Dir)["page: gone"] != 1 {
		t.Errorf("%d claims released; withheld %v", len(rows), withheld(t, third.Build.Release.Dir))
	}

	// What a refresh stored is enough for the same release, whichever way it is made.
	files := filesOf(t, third.Build.Release.Dir)
	replayed := n.build(0, "--replay")
	if d := cmp.Diff(files, filesOf(t, replayed.Release.Dir)); d != "" || replayed.Fetch.Requests != 0 {
		t.Errorf("a replay: %s", d)
	}
	n.must(0, "gc")
	if d := cmp.Diff(files, filesOf(t, n.build(0, "--replay", "--as", "after-gc").Release.Dir)); d != "" {
		t.Errorf("after gc: %s", d)
	}

	// History is kept, and told.
	for id, note := range map[string]string{was(1): "replaced by " + edited["id"].(string), was(2): "its page is gone since "} {
		out, _ := n.must(0, "show", id)
		var p struct {
			Claim  struct{ ID, Text string }
			Former string
		}
		if err := json.Unmarshal([]byte(out), &p); err != nil || p.Claim.ID != id || !strings.HasPrefix(p.Former, note) {
			t.Errorf("show %s: %v, %+v", id, err, p)
		}
	}
	out, _ := n.must(0, "show", was(0))
	if !strings.Contains(out, `"earlier": [`) {
		t.Errorf("show of a claim with another verdict tells no history:\n%s", out)
	}
	for _, args := range [][]string{{"status"}, {"list", "sites"}} {
		if out, _ := n.must(0, args...); !strings.Contains(out, "politifact: last good run ") {
			t.Errorf("%v does not tell the last good run:\n%s", args, out)
		}
	}
	// A page that comes back brings its claim back.
	n.later(24)
	n.answers(at(2), 0)
	if r, _ := n.refresh(0, "--all"); len(claimsOf(t, r.Build)) != 11 || r.Sources[0].New != 1 || r.Sources[0].Due["all"] != 11 {
		t.Errorf("after it came back: %d claims, %+v", len(claimsOf(t, r.Build)), r.Sources[0])
	}
}

// A source that changes, vanishes or fails as a whole stops the release, until it is as it was or a
// person accepts it.
func TestRefreshGuardRails(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(n *nightly)
		what   string
		after  int // claims, once accepted
	}{
		"gone": {func(n *nightly) {
			for i := range 5 {
				n.answers(i, http.StatusNotFound)
			}
		}, "5 of the 8 pages asked for since its last release are gone (62 %; publish.gone allows 50 %)", 8},
		"changed": {func(n *nightly) {
			for i := range n.checks {
				n.checks[i].Rating = "pants-fire"
			}
			n.serve()
		}, "8 of the 8 pages asked for since its last release say something else now (100 %; publish.changed allows 50 %)", 8},
		"failed": {func(n *nightly) {
			for i := range n.checks {
				n.answers(i, http.StatusForbidden)
			}
		}, "8 of the 8 pages asked for since its last release cannot be read (100 %; publish.failed allows 50 %)", 8},
		"redesigned": {func(n *nightly) {
			for _, f := range n.checks {
				n.web.on(f.address("check.example"), shows(news("A new look", "We have moved all that we ever wrote to another place in this site.")))
			}
		}, "cannot be read (100 %", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNightly(t, 8, everyNight)
			before := n.build(0)
			files := filesOf(t, before.Release.Dir)
			n.later(24)
			served := append([]factCheck{}, n.checks...)
			tt.change(n)
			_, said := n.must(6, "refresh")
			for _, part := range []string{"politifact: ", tt.what, n.url(0), "assay refresh --accept politifact", "nothing was released"} {
				if !strings.Contains(said, part) {
					t.Errorf("the message lacks %q:\n%s", part, said)
				}
			}
			releases, err := os.ReadDir(filepath.Join(n.dir, "release"))
			if d := cmp.Diff(files, filesOf(t, before.Release.Dir)); d != "" || err != nil || len(releases) != 1 {
				t.Errorf("the last release: %s; %d releases, %v", d, len(releases), err)
			}
			if calls, _ := n.model.requests(); calls != before.LLM.Calls {
				t.Errorf("%d calls, after %d of the build", calls, before.LLM.Calls)
			}
			// A build does not slip past, and status tells why.
			n.must(6, "build")
			if out, _ := n.must(0, "status"); !strings.Contains(out, "held back: politifact: ") {
				t.Errorf("status: %s", out)
			}
			if tt.after == 0 {
				return // nothing would be left to release
			}
			// A person accepts; the run goes on with what it asked.
			accepted, asked := n.refresh(0, "--accept", "politifact")
			if !accepted.Resumed || asked != 0 || len(accepted.Stops) != 1 || !accepted.Stops[0].Accepted || len(claimsOf(t, accepted.Build)) != tt.after {
				t.Errorf("accepted: %d requests, %+v", asked, accepted)
			}
			// Another night on, the site is as it was.
			n.checks = served
			for i := range n.checks {
				n.answers(i, 0)
			}
			n.serve()
			n.later(24)
			n.refresh(0, "--accept", "politifact")
			n.must(0, "build")
		})
	}
}

// A site that was away for a night stops that night alone.
func TestRefreshAfterAnOutage(t *testing.T) {
	t.Parallel()
	n := newNightly(t, 6, everyNight)
	before := n.build(0)
	n.later(24)
	for i := range n.checks {
		n.answers(i, http.StatusGone)
	}
	n.must(6, "refresh")
	n.later(2)
	for i := range n.checks {
		n.answers(i, 0)
	}
	r, asked := n.refresh(0)
	if asked != 7 || r.Resumed || r.Sources[0].Due["missing"] != 6 || r.Build.Release.ID != before.Release.ID {
		t.Errorf("%d requests, %+v", asked, r)
	}
	if out, _ := n.must(0, "status"); strings.Contains(out, "held back") {
		t.Errorf("status: %s", out)
	}
}

// Words that a person gets wrong.
func TestRefreshUsage(t *testing.T) {
	t.Parallel()
	n := newNightly(t, 2, everyNight)
	n.build(0)
	if _, said := n.must(2, "refresh", "--accept", "nobody"); !strings.Contains(said, "the recipe has no such source; it has politifact") {
		t.Error(said)
	}
	for _, command := range []string{"refresh", "build"} {
		for _, limit := range [][2]string{{"--max-calls", "0"}, {"--max-calls", "-1"}, {"--max-usd", "0"}, {"--max-usd", "NaN"}, {"--max-duration", "0"}, {"--max-duration", "-5m"}} {
			if _, said := n.must(2, command, limit[0]+"="+limit[1]); !strings.Contains(said, limit[0]+" "+limit[1]) || !strings.Contains(said, "a limit is above 0") {
				t.Errorf("%s %s: %s", command, limit, said)
			}
		}
	}
	n.later(48)
	before := n.web.total()
	out, _ := n.must(0, "refresh", "--dry-run")
	if !strings.Contains(out, "politifact: its listings from the newest item on, and 2 stored pages (due by age 2)") || n.web.total() != before {
		t.Errorf("%d requests; %s", n.web.total()-before, out)
	}
}

// Items that a listing pushed to pages that are not read again stay in the corpus.
func TestRefreshReadsNewestListingsAlone(t *testing.T) {
	t.Parallel()
	n := newNightly(t, 9, everyNight)
	paged := func() {
		for page := range 3 {
			next := ""
			if page < 2 {
				next = fmt.Sprintf("?page=%d&category=truth-o-meter", page+2)
			}
			from := min(3*page, len(n.checks))
			list := n.checks[from:min(from+3, len(n.checks))]
			n.web.on(fmt.Sprintf("check.example/factchecks/list/?page=%d&category=truth-o-meter", page+1), n.tagged("list", listing(next, hrefs(list...)...)))
		}
	}
	paged()
	n.build(0)
	n.later(2) // no page is due
	n.checks = append(wells(11)[9:], n.checks...)
	n.serve()
	paged()
	r, asked := n.refresh(0)
	// The first page has one known item, the second three in a row; the third is not asked for.
	if asked != 4 || r.Sources[0].Listings != 2 || r.Sources[0].New != 2 || len(claimsOf(t, r.Build)) != 11 {
		t.Errorf("%d requests, %d claims, %+v", asked, len(claimsOf(t, r.Build)), r.Sources[0])
	}
}

// A linked page that is evidence leaves the release when it is gone, and stays while its host is in trouble.
func TestRefreshDocuments(t *testing.T) {
	t.Parallel()
	s := setup{"recipe.planner": "{variants: 0, follow_links: true, domains: []}"}
	for k, v := range everyNight {
		s[k] = v
	}
	w := newWeb(t)
	s["recipe.models"] = stubbed
	n := &nightly{lab: newSite(t, w, []string{"news.example"}, s), t: t, web: w, checks: wells(3), statuses: map[string]int{}}
	n.serve()
	for _, name := range []string{"one", "two"} {
		w.on("news.example/"+name, n.tagged(name, news("Wells of Averil", "The village of Averil has two wells, said the mayor of the place, who is called "+name+".")))
	}
	n.posts(post{id: "lk1", title: "Wells in the village of Averil", link: "http://news.example/one"}, post{id: "lk2", title: "The wells of the village of Averil", link: "http://news.example/two"})
	linked := func(r report) (out []string) {
		for _, row := range released(t, r.Release.Dir, "documents") {
			if url := row["url"].(string); strings.Contains(url, "news.example") {
				out = append(out, url)
			}
		}
		slices.Sort(out)
		return out
	}
	both := []string{"http://news.example/one", "http://news.example/two"}
	if d := cmp.Diff(both, linked(n.build(0))); d != "" {
		t.Fatal(d)
	}
	status := func(name string, code int) {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.statuses[name] = code
	}
	n.later(24)
	status("one", http.StatusUnavailableForLegalReasons)
	status("two", http.StatusForbidden)
	r, _ := n.refresh(0)
	if d := cmp.Diff(both, linked(r.Build)); d != "" || r.Documents.Asked != 2 || len(r.Documents.Leaving) != 1 || r.Documents.Kept["status_403"] != 1 {
		t.Errorf("%s; %+v", d, r.Documents)
	}
	n.later(24)
	r, _ = n.refresh(0)
	if d := cmp.Diff(both[1:], linked(r.Build)); d != "" || len(r.Documents.Gone) != 1 || withheld(t, r.Build.Release.Dir)["document: gone"] != 1 {
		t.Errorf("%s; %+v, withheld %v", d, r.Documents, withheld(t, r.Build.Release.Dir))
	}
}

// A refresh that was killed, or interrupted, goes on where it was: no page is asked for twice.
func TestRefreshGoesOn(t *testing.T) {
	t.Parallel()
	seldom := setup{"runtime.refresh": "{known: 3, ages: [{every: 365}], documents: [{every: 365}]}", "publish": everyNight["publish"]}
	for name, tt := range map[string]struct {
		sig  os.Signal
		how  setup
		args []string
	}{
		"killed": {os.Kill, everyNight, nil}, "interrupted": {os.Interrupt, everyNight, nil},
		"interrupted, of all pages": {os.Interrupt, seldom, []string{"--all"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sig := tt.sig
			n := newNightly(t, 8, tt.how)
			n.build(0)
			n.later(24)
			n.checks[6].Rating = "half-true"
			n.serve()
			reached, gate := make(chan struct{}), make(chan struct{})
			let := sync.OnceFunc(func() { close(gate) })
			t.Cleanup(let) // the web waits for its answers
			inner, reach := n.tagged(n.path(4), n.checks[4].page()), sync.OnceFunc(func() { close(reached) })
			n.web.on(n.checks[4].address("check.example"), func(rw http.ResponseWriter, r *http.Request) {
				reach()
				<-gate
				inner(rw, r)
			})
			before := map[string]int{}
			for i := range n.checks {
				before[n.path(i)] = n.web.times("check.example" + n.path(i))
			}
			cmd := n.command(append([]string{"refresh"}, tt.args...)...)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			waitFor(t, reached)
			if err := cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			if sig == os.Interrupt {
				let()
			}
			if err := cmd.Wait(); err == nil || sig == os.Interrupt && cmd.ProcessState.ExitCode() != 130 {
				t.Fatalf("exit %d, %v", cmd.ProcessState.ExitCode(), err)
			}
			let()
			n.later(1)
			r, _ := n.refresh(0)
			if !r.Resumed || len(r.Sources[0].Verdicts) != 1 || r.Sources[0].Asked != 8 {
				t.Errorf("%+v", r)
			}
			for i := range n.checks {
				most := 1
				if i == 4 && sig == os.Kill {
					most = 2 // it was in flight
				}
				if times := n.web.times("check.example"+n.path(i)) - before[n.path(i)]; times != most {
					t.Errorf("%s was asked for %d times, want %d", n.path(i), times, most)
				}
			}
			// A run that ended is not gone on with.
			if r, _ := n.refresh(0); r.Resumed {
				t.Error("it goes on with a run that ended")
			}
		})
	}
}

// A site that no longer looks as its scraper expects is a guard rail of a refresh and a warning of a build.
func TestRefreshStopsAtDrift(t *testing.T) {
	t.Parallel()
	n := newNightly(t, 12, everyNight)
	n.build(0)
	whole := append([]factCheck{}, n.checks...)
	n.later(24)
	for i := range 3 {
		n.checks[i].Rating = "wholly-weasel"
	}
	n.serve()
	for range 2 { // it stays so although nothing is read again
		_, said := n.must(6, "refresh")
		for _, part := range []string{"politifact: it does not look as its scraper expects", "wholly-weasel", "assay refresh --accept politifact"} {
			if !strings.Contains(said, part) {
				t.Errorf("the message lacks %q:\n%s", part, said)
			}
		}
	}
	r, _ := n.refresh(0, "--accept", "politifact")
	if len(claimsOf(t, r.Build)) != 9 {
		t.Errorf("%d claims once accepted, want those with a rating", len(claimsOf(t, r.Build)))
	}

	// A listing that shows nothing stops the night, and the next one goes on.
	n.checks = whole
	n.serve()
	n.later(24)
	n.web.on("check.example/factchecks/list/", n.tagged("list", listing("")))
	if _, said := n.must(6, "refresh"); !strings.Contains(said, "emptied") {
		t.Error(said)
	}
	n.later(24)
	n.serve()
	if r, _ := n.refresh(0); len(claimsOf(t, r.Build)) != 12 {
		t.Errorf("%d claims at last", len(claimsOf(t, r.Build)))
	}

	// A build warns.
	other := newNightly(t, 12, everyNight)
	for i := range 3 {
		other.checks[i].Rating = "wholly-weasel"
	}
	other.serve()
	if _, said := other.must(0, "build"); !strings.Contains(said, "drift: politifact: rating") {
		t.Error(said)
	}
}

// A listing page that is no listing any more stops the night. It takes no claim away, not even once a person
// accepted it: what it showed last stands. When the site is itself again the night is, too.
func TestRefreshWithoutAListingPage(t *testing.T) {
	t.Parallel()
	for name, pages := range map[string]int{"one of two": 2, "the only one": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNightly(t, 8, setup{
				"runtime.refresh": "{known: 30, ages: [{every: 1}], documents: [{every: 1}]}",
				"publish":         everyNight["publish"],
			})
			address := func(page int) string {
				return fmt.Sprintf("check.example/factchecks/list/?page=%d&category=truth-o-meter", page+1)
			}
			paged := func() {
				for page := range pages {
					next, per := "", len(n.checks)/pages
					if page+1 < pages {
						next = fmt.Sprintf("?page=%d&category=truth-o-meter", page+2)
					}
					n.web.on(address(page), n.tagged("list", listing(next, hrefs(n.checks[page*per:(page+1)*per]...)...)))
				}
			}
			paged()
			n.build(0)
			n.later(24)
			n.web.on(address(pages-1), shows("<html><title>Moved</title><p>We have moved!</p></html>"))
			n.must(6, "refresh")
			n.must(6, "build")
			n.later(24)
			if r, _ := n.refresh(0, "--accept", "politifact"); len(claimsOf(t, r.Build)) != 8 {
				t.Errorf("%d claims once the page is accepted", len(claimsOf(t, r.Build)))
			}
			n.later(24)
			paged()
			if r, _ := n.refresh(0); len(claimsOf(t, r.Build)) != 8 {
				t.Errorf("%d claims once the site is itself again", len(claimsOf(t, r.Build)))
			}
		})
	}
}

// A refresh that failed is no run to go on with: what it was given is asked for again.
func TestRefreshAfterAFailure(t *testing.T) {
	t.Parallel()
	n := newNightly(t, 8, everyNight)
	n.web.on("check.example/factchecks/list/", shows("<html><title>Moved</title><p>We have moved!</p></html>"))
	n.must(6, "refresh")
	n.serve()
	n.later(1)
	if r, _ := n.refresh(0); r.Resumed || len(claimsOf(t, r.Build)) != 8 {
		t.Errorf("%d claims, %+v", len(claimsOf(t, r.Build)), r)
	}
}
