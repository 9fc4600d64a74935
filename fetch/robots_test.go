package fetch

import (
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestRobotsRules(t *testing.T) {
	tests := []struct {
		name, file, path string
		want             string // the rule that refuses, "" if allowed
	}{
		{"no rules", "", "/a", ""},
		{"no group", "Disallow: /\n", "/a", ""},
		{"empty disallow", "User-agent: *\nDisallow:\n", "/a", ""},
		{"everything", "User-agent: *\nDisallow: /\n", "/a", "line 2: Disallow: /"},
		{"robots.txt itself", "User-agent: *\nDisallow: /\n", "/robots.txt", ""},
		{"byte-order mark", "\ufeffUser-agent: *\nDisallow: /p\n", "/p/1", "line 2: Disallow: /p"},
		{"CRLF", "User-agent: *\r\nDisallow: /p\r\n", "/p/1", "line 2: Disallow: /p"},
		{"old Mac line ends", "User-agent: *\rDisallow: /p\r", "/p/1", "line 2: Disallow: /p"},
		{"no last line end", "User-agent: *\nDisallow: /p", "/p", "line 2: Disallow: /p"},
		{"comment behind a value", "User-agent: * # all\nDisallow: /p # private\n", "/p", "line 2: Disallow: /p"},
		{"comment line and blank in a group", "User-agent: *\n# note\n\nDisallow: /p\n", "/p", "line 4: Disallow: /p"},
		{"names in any case", "USER-AGENT: *\ndisALLOW: /p\n", "/p", "line 2: disALLOW: /p"},
		{"spaces around", "  User-agent :  * \n Disallow :  /p \n", "/p", "line 2: Disallow :  /p"},
		{"paths keep their case", "User-agent: *\nDisallow: /P\n", "/p", ""},
		{"no blank line between groups", "User-agent: other\nDisallow: /o\nUser-agent: *\nDisallow: /p\n", "/o", ""},
		{"two agents, one group", "User-agent: other\nUser-agent: assay\nDisallow: /p\n", "/p", "line 3: Disallow: /p"},
		{"a named group replaces *", "User-agent: *\nDisallow: /\n\nUser-agent: assay\nDisallow: /p\n", "/a", ""},
		{"a named group with nothing in it", "User-agent: *\nDisallow: /\n\nUser-agent: Assay/1.0\nDisallow:\n", "/a", ""},
		{"another's name inside ours", "User-agent: assaying\nDisallow: /\n", "/a", ""},
		{"groups of one name add up", "User-agent: assay\nDisallow: /a\n\nUser-agent: x\nDisallow: /x\n\nUser-agent: assay\nDisallow: /b\n", "/b", "line 8: Disallow: /b"},
		{"the longest match decides", "User-agent: *\nAllow: /p/open\nDisallow: /p\n", "/p/open/1", ""},
		{"the longest match decides, other order", "User-agent: *\nDisallow: /p\nAllow: /p/open\n", "/p/open/1", ""},
		{"allow wins a tie", "User-agent: *\nDisallow: /page\nAllow: /page\n", "/page", ""},
		{"a wildcard counts with its length", "User-agent: *\nAllow: /page\nDisallow: /*.htm\n", "/page.htm", "line 3: Disallow: /*.htm"},
		{"wildcard in the middle", "User-agent: *\nDisallow: /a/*/c\n", "/a/b/b/c/d", "line 2: Disallow: /a/*/c"},
		{"end", "User-agent: *\nDisallow: /*.php$\n", "/x.php", "line 2: Disallow: /*.php$"},
		{"end does not match inside", "User-agent: *\nDisallow: /*.php$\n", "/x.php?a=1", ""},
		{"end needs its own letters", "User-agent: *\nDisallow: /ab*ba$\n", "/aba", ""},
		{"only the root", "User-agent: *\nAllow: /$\nDisallow: /\n", "/", ""},
		{"dollar inside is a letter", "User-agent: *\nDisallow: /a$b\n", "/a$b", "line 2: Disallow: /a$b"},
		{"many wildcards", "User-agent: *\nDisallow: /***a***b\n", "/xxaxxb", "line 2: Disallow: /***a***b"},
		{"query", "User-agent: *\nDisallow: /s?q=\n", "/s?q=x", "line 2: Disallow: /s?q="},
		{"escapes are one spelling", "User-agent: *\nDisallow: /a%3cd\n", "/a%3Cd", "line 2: Disallow: /a%3cd"},
		{"escaped letters are letters", "User-agent: *\nDisallow: /%70rivate\n", "/private", "line 2: Disallow: /%70rivate"},
		{"an escaped slash is not a slash", "User-agent: *\nDisallow: /a%2fb\n", "/a/b", ""},
		{"an escaped star is not a wildcard", "User-agent: *\nDisallow: /a%2Ab\n", "/axxb", ""},
		{"letters outside ASCII", "User-agent: *\nDisallow: /ツ\n", "/%E3%83%84", "line 2: Disallow: /ツ"},
		{"a path without slash", "User-agent: *\nDisallow: private\n", "/private", "line 2: Disallow: private"},
		{"unknown lines between", "User-agent: *\nNoindex: /x\nHost: y\nDisallow: /p\n", "/p", "line 4: Disallow: /p"},
		{"sitemap does not end the agents", "User-agent: *\nSitemap: https://x.example/s.xml\nUser-agent: b\nDisallow: /p\n", "/p", "line 4: Disallow: /p"},
		{"a page instead of a file", "<html><body>Disallow: /</body></html>", "/a", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := parseRobots([]byte(tt.file)).refusal("assay", tt.path); got != tt.want {
				t.Errorf("refusal(%q) = %q, want %q", tt.path, got, tt.want)
			}
		})
	}
}

func TestRobotsCrawlDelay(t *testing.T) {
	tests := []struct {
		name, file string
		want       time.Duration
	}{
		{"none", "User-agent: *\nDisallow: /p\n", 0},
		{"seconds", "User-agent: *\nCrawl-delay: 2\n", 2 * time.Second},
		{"a part of a second", "User-agent: *\nCrawl-delay: 0.5 # gentle\n", 500 * time.Millisecond},
		{"another robot's", "User-agent: *\nDisallow: /x\nUser-agent: OtherBot\nCrawl-delay: 60\n", 0},
		{"another robot's, first and without rules", "User-agent: OtherBot\nCrawl-delay: 60\nUser-agent: *\nDisallow: /x\n", 0},
		{"ours before that of all", "User-agent: *\nCrawl-delay: 60\nUser-agent: assay\nCrawl-delay: 1\n", time.Second},
		{"ours without one", "User-agent: *\nCrawl-delay: 60\nUser-agent: assay\nDisallow: /x\n", 0},
		{"not a number", "User-agent: *\nCrawl-delay: soon\n", 0},
		{"negative", "User-agent: *\nCrawl-delay: -5\n", 0},
		{"not finite", "User-agent: *\nCrawl-delay: NaN\nCrawl-delay: 3\n", 3 * time.Second},
		{"before any group", "Crawl-delay: 9\nUser-agent: *\nDisallow: /x\n", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := parseRobots([]byte(tt.file)).crawlDelay("assay"); got != tt.want {
				t.Errorf("crawlDelay = %v, want %v", got, tt.want)
			}
		})
	}
}

func TestRobotsSizeLimit(t *testing.T) {
	long := "User-agent: *\nDisallow: /early\n" + strings.Repeat("# filling the file up to its limit and beyond it\n", 11000) + "Disallow: /late\n"
	rules := parseRobots([]byte(long))
	if rules.refusal("assay", "/early") == "" || rules.refusal("assay", "/late") != "" {
		t.Errorf("a file of %d bytes: early %q, late %q; want only the first %d bytes read", len(long), rules.refusal("assay", "/early"), rules.refusal("assay", "/late"), robotsBytes)
	}
	// A rule that the limit cuts in two must not become a shorter one, which would forbid more.
	head := "User-agent: *\n"
	cut := head + strings.Repeat("#", robotsBytes-len(head)-len("\nDisallow: /")) + "\nDisallow: /private\n"
	if got := parseRobots([]byte(cut)).refusal("assay", "/open"); got != "" {
		t.Errorf("a rule cut in two refuses by %q", got)
	}
}

// TestRobotsCaptures checks the parser against real files and what is known to hold for them.
func TestRobotsCaptures(t *testing.T) {
	dir := os.Getenv("ASSAY_REAL")
	if dir == "" {
		t.Skip("skipped: ASSAY_REAL is not set")
	}
	f, err := os.Open(filepath.Join(dir, "INDEX.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.Comma, r.LazyQuotes, r.FieldsPerRecord = '\t', true, -1
	rows, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	files := 0
	for _, row := range rows {
		if len(row) < 8 || row[1] != "robots" {
			continue
		}
		files++
		t.Run(row[0], func(t *testing.T) { checkCapture(t, filepath.Join(dir, row[0]), row[7]) })
	}
	if files == 0 {
		t.Error("no robots.txt among the captures")
	}
}

func checkCapture(t *testing.T, file, expected string) {
	body, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var want struct {
		Allowed  [][3]any `json:"allowed"`
		Delay    float64  `json:"crawl_delay_star"`
		Sitemaps []string `json:"sitemaps"`
	}
	if err := json.Unmarshal([]byte(expected), &want); err != nil {
		t.Fatal(err)
	}
	rules := parseRobots(body)
	for _, a := range want.Allowed {
		agent, path, allowed := a[0].(string), a[1].(string), a[2].(bool)
		if rule := rules.refusal(agent, path); (rule == "") != allowed {
			t.Errorf("%s for %s: rule %q, want allowed = %v", path, agent, rule, allowed)
		}
	}
	if got := rules.crawlDelay("*").Seconds(); got != want.Delay {
		t.Errorf("Crawl-delay = %v s, want %v", got, want.Delay)
	}
	if diff := cmp.Diff(want.Sitemaps, append([]string{}, rules.sitemaps...)); diff != "" {
		t.Errorf("sitemaps (-want +got):\n%s", diff)
	}
}

func TestHD09RobotsWithMarkAndForeignDelay(t *testing.T) {
	w := newWeb(t)
	w.pages["a.example/robots.txt"] = answers(200, "\ufeffUser-agent: *\r\nDisallow: /private\r\nCrawl-delay: 2\r\n")
	w.pages["a.example"] = shows("A")
	w.pages["b.example/robots.txt"] = answers(200, "User-agent: *\nDisallow: /x\nUser-agent: OtherBot\nCrawl-delay: 60\n")
	w.pages["b.example"] = shows("B")
	// Two more ways to the same mistakes: a delay before the group that applies, and a mark on a file
	// whose first line is a comment.
	w.pages["c.example/robots.txt"] = answers(200, "User-agent: OtherBot\nCrawl-delay: 60\nUser-agent: *\nDisallow: /x\n")
	w.pages["c.example"] = shows("C")
	w.pages["d.example/robots.txt"] = answers(200, "\ufeff# hello\nUser-agent: *\nDisallow: /private # keep out\n")
	w.pages["d.example"] = shows("D")
	c := w.client(t, memory(t))

	got := map[string]string{}
	began := w.clock.Now()
	for _, url := range []string{"a.example/private/1", "a.example/ok/1", "a.example/ok/2", "b.example/1", "b.example/2", "c.example/1", "c.example/2", "d.example/private", "d.example/privat"} {
		_, err := c.Get(t.Context(), Request{URL: "http://" + url})
		got[url] = "ok"
		var e *Error
		if errors.As(err, &e) {
			got[url] = e.Excluded() + " " + e.Rule
		}
	}
	want := map[string]string{
		"a.example/private/1": "robots line 2: Disallow: /private", "a.example/ok/1": "ok", "a.example/ok/2": "ok",
		"b.example/1": "ok", "b.example/2": "ok", "c.example/1": "ok", "c.example/2": "ok",
		"d.example/private": "robots line 3: Disallow: /private", "d.example/privat": "ok",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
	for _, p := range w.paths() {
		if strings.Contains(p, "/private") {
			t.Errorf("the host was asked for %s", p)
		}
	}
	one, two := w.seen("a.example/ok/1"), w.seen("a.example/ok/2")
	if len(one) != 1 || len(two) != 1 || two[0].at.Sub(one[0].at) < 2*time.Second {
		t.Errorf("requests to a.example: %v then %v, want one each and 2 s between them", one, two)
	}
	if took := w.clock.Now().Sub(began); took > 10*time.Second {
		t.Errorf("all took %v; the delay of another robot was applied", took)
	}
}

// gzipped serves a text compressed.
func gzipped(text string) http.HandlerFunc {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(text)); err != nil {
		panic(err) // not reached: a buffer takes everything
	}
	if err := z.Close(); err != nil {
		panic(err)
	}
	return answers(200, b.String(), "Content-Encoding", "gzip")
}

func TestRobotsFileStatus(t *testing.T) {
	tests := []struct {
		name   string
		file   http.HandlerFunc
		reason string // "" if the page is fetched
		class  string
	}{
		{"absent", answers(404, "no"), "", ""},
		{"gone", answers(410, "no"), "", ""},
		{"forbidden", answers(403, "no"), "", ""},
		{"empty", answers(200, ""), "", ""},
		{"a page", shows("not a robots.txt"), "", ""},
		{"broken", answers(500, "oh"), ReasonStatus, "transient"},
		{"overloaded", answers(503, "oh"), ReasonStatus, "transient"},
		{"too many requests", answers(429, "oh"), ReasonStatus, "transient"},
		{"elsewhere and strict", redirects(301, "http://files.example/robots.txt"), ReasonRobots, "blocked"},
		{"in a circle", redirects(302, "http://h.example/robots.txt"), "", ""},
		{"compressed without being asked", gzipped("User-agent: *\nDisallow: /\n"), ReasonRobots, "blocked"},
		{"long", answers(200, "User-agent: *\nDisallow: /\n"+strings.Repeat("# x\n", 300000)), ReasonRobots, "blocked"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWeb(t)
			w.pages["h.example/robots.txt"] = tt.file
			w.pages["files.example/robots.txt"] = answers(200, "User-agent: assay\nDisallow: /page\n")
			w.pages["h.example/page"] = shows("page")
			_, err := w.client(t, memory(t)).Get(t.Context(), Request{URL: "http://h.example/page"})
			if tt.reason == "" {
				if err != nil {
					t.Fatalf("Get: %v", err)
				}
				return
			}
			e := wantReason(t, err, tt.reason)
			if e.FailureClass() != tt.class || len(w.seen("h.example/page")) != 0 {
				t.Errorf("class %q, %d requests for the page; want %q and none", e.FailureClass(), len(w.seen("h.example/page")), tt.class)
			}
		})
	}
}

// A robots.txt is asked for once a day, and an unreachable one not for every page.
func TestRobotsFileIsKept(t *testing.T) {
	w := newWeb(t)
	w.pages["h.example"] = shows("page")
	w.pages["h.example/robots.txt"] = answers(200, "User-agent: *\nDisallow: /private\n")
	store := memory(t)
	c := w.client(t, store)
	for i := range 5 {
		if _, err := c.Get(t.Context(), Request{URL: fmt.Sprintf("http://h.example/%d", i)}); err != nil {
			t.Fatal(err)
		}
	}
	// Another client on the same store within the day asks neither.
	c = w.client(t, store)
	if _, err := c.Get(t.Context(), Request{URL: "http://h.example/6"}); err != nil {
		t.Fatal(err)
	}
	if n := len(w.seen("h.example/robots.txt")); n != 1 {
		t.Errorf("robots.txt was asked for %d times within its day, want once", n)
	}
	// The next day the file has changed.
	w.clock.at = w.clock.at.Add(robotsFresh)
	w.pages["h.example/robots.txt"] = answers(200, "User-agent: *\nDisallow: /\n")
	_, err := c.Get(t.Context(), Request{URL: "http://h.example/7"})
	wantReason(t, err, ReasonRobots)
	// And the day after it cannot be had: the old copy still holds.
	w.clock.at = w.clock.at.Add(robotsFresh)
	w.pages["h.example/robots.txt"] = answers(503, "")
	_, err = c.Get(t.Context(), Request{URL: "http://h.example/8"})
	wantReason(t, err, ReasonRobots)

	w.pages["down.example/robots.txt"] = answers(503, "")
	for i := range 5 {
		_, err := c.Get(t.Context(), Request{URL: fmt.Sprintf("http://down.example/%d", i)})
		wantReason(t, err, ReasonStatus)
	}
	if n := len(w.seen("down.example/robots.txt")); n != 4 {
		t.Errorf("a broken robots.txt was asked for %d times, want one attempt and three more", n)
	}
}

// A robots.txt can be a page, and those of two hosts can lead to each other's pages, without anyone
// waiting for himself.
func TestRobotsFileAsPage(t *testing.T) {
	w := newWeb(t)
	w.pages["a.example/robots.txt"], w.pages["b.example/robots.txt"] = redirects(302, "http://b.example/page"), redirects(302, "http://a.example/page")
	w.pages["a.example/page"], w.pages["b.example/page"] = shows("a"), shows("b")
	w.pages["c.example/robots.txt"] = answers(200, "User-agent: *\nDisallow: /\n", "Content-Type", "text/plain")
	c := w.client(t, memory(t))
	var wg sync.WaitGroup
	for range 4 {
		for _, url := range []string{"http://a.example/page", "http://b.example/page", "http://a.example/robots.txt", "http://c.example/robots.txt"} {
			wg.Go(func() {
				if _, err := c.Get(t.Context(), Request{URL: url}); err != nil {
					t.Errorf("Get: %v", err)
				}
			})
		}
	}
	wg.Wait()
}

func TestRobotsInReplay(t *testing.T) {
	w := newWeb(t)
	w.pages["h.example/robots.txt"] = answers(200, "User-agent: *\nDisallow: /private\n")
	w.pages["h.example/open"] = shows("open")
	store := memory(t)
	if _, err := w.client(t, store).Get(t.Context(), Request{URL: "http://h.example/open"}); err != nil {
		t.Fatal(err)
	}
	w.server.Close()
	w.clock.at = w.clock.at.Add(365 * 24 * time.Hour)
	c := w.client(t, store, func(o *Options) { o.Mode = Replay })
	if _, err := c.Get(t.Context(), Request{URL: "http://h.example/open"}); err != nil {
		t.Errorf("Get of a stored page in replay: %v", err)
	}
	_, err := c.Get(t.Context(), Request{URL: "http://h.example/private/1"})
	wantReason(t, err, ReasonRobots)
	_, err = c.Get(t.Context(), Request{URL: "http://other.example/1"})
	wantReason(t, err, ReasonNotStored)
	if n := c.Stats().Requests; n != 0 {
		t.Errorf("replay sent %d requests", n)
	}
}

func FuzzRobots(f *testing.F) {
	f.Add([]byte("User-agent: *\nDisallow: /private\nCrawl-delay: 2\n"), "/private/1")
	f.Add([]byte("\xef\xbb\xbfUser-agent: assay\r\nAllow: /*a$\r\nDisallow: /\r\n"), "/a%20a")
	f.Add([]byte("user-agent:*\ndisallow:/%e3%83%84*%\nallow:/%2"), "/%E3%83%84?x=%")
	f.Add([]byte("Disallow: $\nUser-agent:\nDisallow: *$*\n"), "")
	f.Fuzz(func(t *testing.T, file []byte, path string) {
		rules := parseRobots(file)
		rule := rules.refusal("assay", path)
		if rule != "" && !strings.HasPrefix(rule, "line ") {
			t.Errorf("rule %q does not name its line", rule)
		}
		if d := rules.crawlDelay("assay"); d < 0 {
			t.Errorf("Crawl-delay %v", d)
		}
		if again := rules.refusal("assay", normalEscapes(path)); again != rule {
			t.Errorf("refusal depends on the spelling of escapes: %q and %q", rule, again)
		}
	})
}
