package planner

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"assay/corpus"
	"assay/fetch"
)

// A tape is a recorded reply with what it must be read as.
type tape struct {
	file, kind, url string
	expected        string // JSON
	body            string
}

// tapes reads the recorded replies of some kinds.
func tapes(t *testing.T, kinds ...string) []tape {
	t.Helper()
	lines := bufio.NewScanner(capture(t, "INDEX.tsv"))
	lines.Buffer(nil, 1<<20)
	var out []tape
	for lines.Scan() {
		row := strings.Split(lines.Text(), "\t")
		if len(row) < 8 || !slices.Contains(kinds, row[1]) {
			continue
		}
		body, err := io.ReadAll(capture(t, row[0]))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, tape{row[0], row[1], row[6], row[7], string(body)})
	}
	if lines.Err() != nil || len(out) == 0 {
		t.Fatalf("%d tapes of %v, %v", len(out), kinds, lines.Err())
	}
	return out
}

func (tp tape) expect(t *testing.T, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(tp.expected), into); err != nil {
		t.Fatalf("%s: %v", tp.file, err)
	}
}

// tapeDrivers say what drives the tapes of a kind: a function here, or the name of the test that does.
var tapeDrivers = map[string]any{
	"arxiv-atom":           "TestRealArxiv",
	"bot-check-html":       foreignPage,
	"commoncrawl-collinfo": realCommonCrawl, "commoncrawl-error": realCommonCrawl, "commoncrawl-index": realCommonCrawl,
	"gdelt-articles": "TestRealEngines", "gdelt-error": "TestRealEngineRefusals", "gdelt-timeline": realTimeline,
	"mediawiki-error": "TestRealWikipedia", "mediawiki-extract": "TestRealWikipedia", "mediawiki-missing": "TestRealWikipedia", "mediawiki-query": "TestRealWikipedia", "mediawiki-search": "TestRealWikipedia",
	"mediawiki-opensearch": foreignWiki, "mediawiki-prefixsearch": foreignWiki, "wikipedia-rest-summary": realSummary, "wikipedia-html": realArticle,
	"pushshift-api": "TestRealArchives", "pushshift-ndjson": "TestRealDumps",
	"reddit-comments": "TestRealRedditReplies", "reddit-comments-listing": "TestRealDumps", "reddit-error": "TestRealRedditReplies", "reddit-error-replies": "TestRealRedditErrors", "reddit-html": realArticle,
	"reddit-info": "TestRealRedditReplies", "reddit-listing": realListing, "reddit-mixed": realListing, "reddit-posts": "TestRealDumps", "reddit-search": realListing,
	"serp-bing-html": foreignPage, "serp-bing-json": foreignPage, "serp-ddg-html": "TestRealEngineRefusals", "serp-google-captcha": "TestRealEngineRefusals", "serp-google-html": "TestRealEngineRefusals", "serp-mojeek-html": foreignPage,
	"serp-brave-json": "TestRealEngines", "serp-google-cse": "TestRealEngines", "serp-google-cse-error": "TestRealEngineRefusals", "serp-serpapi-error": "TestRealEngineRefusals", "serp-serpapi-json": "TestRealEngines", "serp-serper-json": "TestRealEngines", "serp-tavily-json": "TestRealEngines",
	"wayback-available": foreignPage, "wayback-cdx": realCaptures, "wayback-cdx-json": "TestRealWayback", "wayback-error": "TestRealWayback", "wayback-error-page": realWall,
	"wikidata-entities": realEntities, "wikidata-entity": realEntities,
	"x-api-v2": "TestRealX", "x-api-v2-split": realSplit,
}

// Every tape of a search engine, an archive, an encyclopedia, Reddit or X drives something to the values
// of its index; one of a new kind fails until somebody says what.
func TestRealTapes(t *testing.T) {
	var sources strings.Builder
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		sources.Write(text)
	}
	n := 0
	for _, tp := range tapesIn(t, "archive/", "arxiv/", "reddit/", "serp/", "wikipedia/", "x/", "agencies/wayback") {
		switch by := tapeDrivers[tp.kind].(type) {
		case nil:
			t.Errorf("nothing drives %s, a %s", tp.file, tp.kind)
		case string:
			if !strings.Contains(sources.String(), "func "+by+"(t") {
				t.Errorf("%s is driven by %s, which is no test", tp.file, by)
			}
		case func(*testing.T, tape):
			t.Run(tp.file, func(t *testing.T) { by(t, tp) })
			n++
		}
	}
	t.Logf("%d tapes driven here", n)
}

// tapesIn reads the recorded replies below some folders.
func tapesIn(t *testing.T, below ...string) []tape {
	t.Helper()
	lines := bufio.NewScanner(capture(t, "INDEX.tsv"))
	lines.Buffer(nil, 1<<20)
	var out []tape
	for lines.Scan() {
		row := strings.Split(lines.Text(), "\t")
		if len(row) >= 8 && slices.ContainsFunc(below, func(dir string) bool { return strings.HasPrefix(row[0], dir) }) {
			out = append(out, tape{row[0], row[1], row[6], row[7], unpacked(t, row[0])})
		}
	}
	if lines.Err() != nil || len(out) == 0 {
		t.Fatalf("%d tapes below %v, %v", len(out), below, lines.Err())
	}
	return out
}

// unpacked reads a capture; one that is packed is unpacked.
func unpacked(t *testing.T, name string) string {
	t.Helper()
	in := capture(t, name)
	if strings.HasSuffix(name, ".gz") {
		z, err := gzip.NewReader(in)
		if err != nil {
			t.Fatal(err)
		}
		in = z
	}
	body, err := io.ReadAll(in)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// foreignPage is a reply of an engine that is asked no more, a page for people, or the answer of another
// interface: no backend takes it for a page of results, or for one without any.
func foreignPage(t *testing.T, tp tape) {
	if tp.kind == "serp-bing-json" {
		var want struct{ Results int }
		tp.expect(t, &want)
		var bing struct {
			Pages struct{ Value []json.RawMessage } `json:"webPages"`
		}
		if err := json.Unmarshal([]byte(tp.body), &bing); err != nil || len(bing.Pages.Value) != want.Results {
			t.Errorf("the tape holds %d results, want %d: %v", len(bing.Pages.Value), want.Results, err)
		}
		if _, err := BackendNamed("bing"); err == nil || !strings.Contains(err.Error(), "2025-08-11") {
			t.Errorf("whoever names it is told %v", err)
		}
	}
	o := newOutside(t, func(rw http.ResponseWriter, _ *http.Request) {
		kind := "text/html"
		if json.Valid([]byte(tp.body)) {
			kind = "application/json"
		}
		reply(rw, 200, tp.body, "Content-Type", kind)
	})
	env := o.everything(fetch.Live)
	for _, b := range Backends {
		p := playOf(t, b)
		if p.offline {
			continue
		}
		asked := len(o.visits)
		got, err := b.Find(t.Context(), env, p.query)
		var refused *APIError
		if len(got) != 0 || err == nil || errors.As(err, &refused) && refused.Excluded() != "" {
			t.Errorf("%s reads %v, %v", b.Name, got, err)
		}
		if _, err = b.Find(t.Context(), env, p.query); err == nil || len(o.visits) < asked+2 {
			t.Errorf("%s keeps it: %v", b.Name, err)
		}
	}
}

// realTimeline is GDELT's answer in another mode, as its interface wraps it.
func realTimeline(t *testing.T, tp tape) {
	var want struct{ Points int }
	tp.expect(t, &want)
	if n := strings.Count(tp.body, `"date"`); n != want.Points {
		t.Errorf("%d points, want %d", n, want.Points)
	}
	tp.body = `{"query_details": {"title": "fish"}, "timeline": [{"series": "Article Count", "data": ` + tp.body + `}]}`
	foreignPage(t, tp)
}

// foreignWiki is what suggestions look like: what they suggest is never taken for what was asked.
func foreignWiki(t *testing.T, tp tape) {
	var want struct{ Titles, Results int }
	tp.expect(t, &want)
	o := newOutside(t, func(rw http.ResponseWriter, _ *http.Request) { reply(rw, 200, tp.body) })
	got, err := wikipedia.Find(t.Context(), o.everything(fetch.Live), Query{Text: "recorded", K: 5})
	if wantError(t, err, ReasonBadReply); len(got) != 0 || want.Titles+want.Results == 0 {
		t.Errorf("%+v", got)
	}
}

// realSummary is an article by Wikimedia's other interface; the same article by ours has its facts.
func realSummary(t *testing.T, tp tape) {
	var want struct {
		Title, Revision, Timestamp string
		PageID                     int    `json:"pageid"`
		URL                        string `json:"page_url"`
		Item                       string `json:"wikibase_item"`
	}
	tp.expect(t, &want)
	var s struct {
		Extract  string
		PageID   int
		Title    string
		Revision string
		Time     string                                  `json:"timestamp"`
		Item     string                                  `json:"wikibase_item"`
		URLs     struct{ Desktop struct{ Page string } } `json:"content_urls"`
	}
	if err := json.Unmarshal([]byte(tp.body), &s); err != nil {
		t.Fatal(err)
	}
	id := fmt.Sprintf("wikipedia:en:%d", want.PageID)
	o := newOutside(t, func(rw http.ResponseWriter, _ *http.Request) {
		body, _ := json.Marshal(map[string]any{"batchcomplete": true, "query": map[string]any{"pages": []any{map[string]any{"pageid": s.PageID, "ns": 0, "title": s.Title, "canonicalurl": s.URLs.Desktop.Page, "extract": s.Extract,
			"revisions": []any{map[string]any{"revid": json.Number(s.Revision), "timestamp": s.Time}}, "pageprops": map[string]string{"wikibase_item": s.Item}}}}})
		reply(rw, 200, string(body))
	})
	env := o.everything(fetch.Live)
	d, err := wikipedia.Document(t.Context(), env, id, nil)
	if err != nil || d.Title != want.Title || d.Revision != want.Revision || d.PublishedAt != want.Timestamp || d.URL != want.URL || d.BodyStatus != corpus.BodyFull || s.Item != want.Item {
		t.Errorf("%+v, %v; want %+v", d, err, want)
	}
	o.serve = func(rw http.ResponseWriter, _ *http.Request) { reply(rw, 200, tp.body) }
	if got, err := wikipedia.Find(t.Context(), env, Query{Text: "recorded", K: 5}); err == nil {
		t.Errorf("the summary is taken for a search: %+v", got)
	}
}

// realArticle is a page for people, read as a document.
func realArticle(t *testing.T, tp tape) {
	var want struct {
		Title string
		Body  string `json:"body_contains"`
	}
	tp.expect(t, &want)
	p, err := fetch.NewPage(cmp.Or(tp.url, "https://recorded.example/"), http.Header{"Content-Type": {"text/html; charset=utf-8"}}, []byte(tp.body), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	d, err := PageDocument(p)
	if err != nil && want.Body != "" {
		t.Fatal(err)
	}
	if err == nil && (!strings.Contains(strings.ToLower(d.Title), strings.ToLower(want.Title[:min(len(want.Title), 20)])) || !strings.Contains(d.Text, want.Body)) {
		t.Errorf("%q: %q", d.Title, d.Text[:min(len(d.Text), 200)])
	}
}

// realListing is a page of a search or listing of Reddit's.
func realListing(t *testing.T, tp tape) {
	var want struct {
		Children int
		After    string
		Kinds    map[string]int
		First    struct{ ID string }
	}
	tp.expect(t, &want)
	o := newOutside(t, func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("after") != "" {
			reply(rw, 200, listing())
			return
		}
		reply(rw, 200, tp.body)
	})
	got, err := reddit.Find(t.Context(), o.everything(fetch.Live), Query{Text: "recorded", K: 1000})
	if want.Kinds == nil {
		want.Kinds = map[string]int{"t3": want.Children}
	}
	if err != nil || len(got) != want.Kinds["t3"] {
		t.Fatalf("%d posts of %d things, want %v: %v", len(got), want.Children, want.Kinds, err)
	}
	if want.Kinds["t3"] == want.Children && want.Children > 0 && got[0].DocumentID != "reddit:t3_"+want.First.ID {
		t.Errorf("the first is %s, want %s", got[0].DocumentID, want.First.ID)
	}
	if more := len(o.visits) == 2; more != (want.After != "") || more && !strings.Contains(o.visits[1], "after="+want.After) {
		t.Errorf("asked %v, want to go on after %q", o.visits, want.After)
	}
}

// realCaptures are lists of the Wayback Machine without output=json: as they stand they are no answer, and
// as rows of the form that is asked for they are captures, without revisits and redirects.
func realCaptures(t *testing.T, tp tape) {
	var want struct {
		Lines    int
		First    string
		Revisits int
	}
	tp.expect(t, &want)
	body := tp.body
	o := newOutside(t, func(rw http.ResponseWriter, _ *http.Request) { reply(rw, 200, body) })
	env := o.everything(fetch.Live)
	_, err := wayback.Find(t.Context(), env, Query{Text: "http://recorded.example/", K: 2000})
	wantError(t, err, ReasonBadReply)
	rows := [][]string{{"urlkey", "timestamp", "original", "mimetype", "statuscode", "digest", "length"}}
	good, revisits := map[string]bool{}, 0 // a moment may be listed twice
	for line := range strings.Lines(strings.TrimSpace(tp.body)) {
		if row := strings.Fields(line); len(row) == 7 {
			rows = append(rows, row)
			if row[4] == "200" {
				good[row[1]+row[2]] = true
			}
			revisits += strings.Count(row[3], "warc/revisit")
		}
	}
	if lines := strings.Count(strings.TrimSpace(tp.body), "\n") + 1; lines != want.Lines || strings.Join(rows[1], " ") != want.First || want.Revisits > 0 && revisits != want.Revisits {
		t.Errorf("%d lines and %d revisits, first %v", lines, revisits, rows[1])
	}
	packed, err := json.Marshal(rows)
	if err != nil {
		t.Fatal(err)
	}
	body = string(packed)
	got, err := wayback.Find(t.Context(), env, Query{Text: "http://recorded.example/", K: 2000})
	if err != nil || len(got) != len(good) {
		t.Fatalf("%d captures, want %d: %v", len(got), len(good), err)
	}
	for _, r := range got {
		if !strings.HasPrefix(r.URL, "https://web.archive.org/web/") || r.Seen == "" {
			t.Errorf("%+v", r)
		}
	}
}

// realWall is a page of the Wayback Machine's in the place of a capture: it is never a document.
func realWall(t *testing.T, tp tape) {
	var want struct {
		Status int
		Block  string
	}
	tp.expect(t, &want)
	o := newOutside(t, func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/robots.txt" {
			reply(rw, 404, "")
			return
		}
		reply(rw, want.Status, tp.body, "Content-Type", "text/html; charset=utf-8")
	})
	p, err := o.client(fetch.Live).Get(t.Context(), fetch.Request{URL: o.server.URL + "/web/20170929002712id_/https://recorded.example/"})
	var refused *fetch.Error
	if !errors.As(err, &refused) || refused.Excluded() == "" || p != nil || want.Block == "" {
		t.Errorf("%v, want an exclusion because of %s", err, want.Block)
	}
}

// realSplit are the parts of a page of X's, as a library keeps them: put together they are one.
func realSplit(t *testing.T, tp tape) {
	var want struct {
		Tweets int
		First  struct{ ID, Text string }
		Users  int
	}
	tp.expect(t, &want)
	body := `{"data": ` + tp.body + fmt.Sprintf(`, "meta": {"result_count": %d}}`, want.Tweets)
	if want.Users > 0 { // its other part, without which there are no posts
		body = `{"includes": ` + tp.body + `, "meta": {"result_count": 0}}`
	}
	o := newOutside(t, func(rw http.ResponseWriter, _ *http.Request) { reply(rw, 200, body) })
	got, err := xPosts.Find(t.Context(), o.everything(fetch.Live), Query{Text: "recorded", K: 10})
	switch {
	case err != nil:
		t.Fatal(err)
	case want.Users > 0 && len(got) != 0:
		t.Errorf("posts that are only included are found: %+v", got)
	case want.Users == 0 && (len(got) != want.Tweets || got[0].Text != want.First.Text || got[0].URL != "https://x.com/i/web/status/"+want.First.ID):
		t.Errorf("%+v, want %+v", got, want)
	}
}

// Recorded pages of results, served by a local server, are read as their indexes say.
func TestRealEngines(t *testing.T) {
	engines := map[string]string{
		"serp-brave-json": "brave", "serp-google-cse": "google_cse", "serp-serper-json": "serper",
		"serp-serpapi-json": "serpapi", "serp-tavily-json": "tavily", "gdelt-articles": "gdelt",
	}
	for kind, name := range engines {
		for _, tp := range tapes(t, kind) {
			t.Run(tp.file, func(t *testing.T) {
				type hit struct{ Title, Link, URL, SeenDate string }
				var want struct {
					Results, WebResults, Items, Organic, Articles int
					Web                                           int    `json:"web_results"`
					FirstTitle                                    string `json:"first_title"`
					FirstLink                                     string `json:"first_link"`
					LastURL                                       string `json:"last_url"`
					First                                         hit
				}
				tp.expect(t, &want)
				n := max(want.Results, want.Items, want.Organic, want.Articles, want.Web)
				title, link := want.FirstTitle+want.First.Title, want.FirstLink+want.First.Link+want.First.URL
				body := tp.body
				if kind == "gdelt-articles" {
					body = `{"articles": ` + body + `}` // as the interface sends it
				}
				pages := 0
				o := newOutside(t, func(rw http.ResponseWriter, _ *http.Request) {
					if pages++; pages == 1 {
						reply(rw, 200, body)
						return
					}
					reply(rw, 200, forms[name].empty)
				})
				b, err := BackendNamed(name)
				if err != nil {
					t.Fatal(err)
				}
				got, err := b.Find(t.Context(), o.engines(fetch.Live), Query{Text: "recorded", K: 1000})
				if err != nil {
					t.Fatal(err)
				}
				if kind == "gdelt-articles" {
					n = distinct(t, tp.body)
				}
				if len(got) != n || n == 0 && pages != 1 {
					t.Fatalf("%d results in %d pages, want %d", len(got), pages, n)
				}
				if n > 0 && (got[0].Title != plain(title) && got[0].Title != title || got[0].URL != link) {
					t.Errorf("first %+v, want %q %s", got[0], title, link)
				}
				if want.LastURL != "" && !slices.ContainsFunc(got, func(r Result) bool { return r.URL == want.LastURL }) {
					t.Errorf("the last one, %s, is missing", want.LastURL)
				}
				for _, r := range got {
					if kind == "gdelt-articles" && (r.Seen == "" || r.Published != "") {
						t.Errorf("an article was seen at %q and published at %q", r.Seen, r.Published)
					}
				}
			})
		}
	}
}

// A recorded reply of Google's Fact Check Tools drives the tool factcheck: kept to all its publishers, to PolitiFact alone
// where the service takes no notice of that, and by its token to the next page, which the tape does not hold.
func TestRealFactCheckTools(t *testing.T) {
	for _, tp := range tapes(t, "google-factcheck-response") {
		var want struct {
			Claims, Reviews int
			Next            string `json:"nextPageToken"`
			First           struct {
				Claim  string `json:"claim"`
				Review string `json:"review_date"`
				Site   string `json:"publisher_site"`
			}
			Undated int `json:"without_reviewDate"`
		}
		tp.expect(t, &want)
		o := newOutside(t, nil)
		o.serve = func(rw http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Get("pageToken") != "" {
				reply(rw, 200, `{}`)
				return
			}
			reply(rw, 200, tp.body)
		}
		env := o.engines(fetch.Live)
		ask := func(checkers ...string) []Result {
			got, err := factcheckTool.Run(t.Context(), env, Settings{Agent: &Agent{Engines: map[string]string{"*": "factcheck_tools"}, PerAction: 40, FactCheckers: checkers}}, Ask{Query: "recorded"})
			if err != nil {
				t.Fatal(err)
			}
			return got.Results
		}
		all := ask("usatoday.com", "politifact.com", "apnews.com", "factcheck.org", "leadstories.com")
		undated := 0
		for _, r := range all {
			if r.Published == "" {
				undated++
			}
		}
		if len(all) != want.Reviews || undated != want.Undated || all[0].Text != want.First.Claim || all[0].Published != want.First.Review || corpus.RegistrableDomain(corpus.Host(all[0].URL)) != want.First.Site {
			t.Errorf("%s: %d results, %d without a day, first %+v; want %+v", tp.file, len(all), undated, all[0], want)
		}
		if len(o.visits) != 2 || !strings.Contains(o.visits[1], "pageToken="+want.Next) || strings.Contains(o.visits[0], "reviewPublisherSiteFilter") {
			t.Errorf("%s: asked %v", tp.file, o.visits)
		}
		one := ask("politifact.com")
		if !strings.Contains(o.visits[2], "reviewPublisherSiteFilter=politifact.com") {
			t.Errorf("%s: asked %v", tp.file, o.visits[2:])
		}
		for _, r := range one {
			if elsewhere := !strings.HasPrefix(r.URL, "https://www.politifact.com/"); elsewhere != (r.Drop == DropElsewhere) {
				t.Errorf("%s: %+v", tp.file, r)
			}
		}
	}
}

// distinct counts the addresses of a list of articles.
func distinct(t *testing.T, articles string) int {
	t.Helper()
	var list []struct{ URL string }
	if err := json.Unmarshal([]byte(articles), &list); err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, a := range list {
		known[a.URL] = true
	}
	return len(known)
}

// Recorded refusals, and pages that are none of the interface, are failures.
func TestRealEngineRefusals(t *testing.T) {
	for _, tt := range []struct {
		kind, engine string
		statuses     []int
		reason       string
	}{
		{"serp-google-cse-error", "google_cse", []int{429}, fetch.ReasonParked},
		{"serp-serpapi-error", "serpapi", []int{200, 401}, ReasonQuota},
		{"gdelt-error", "gdelt", []int{200, 429}, ReasonRateLimit},
		{"serp-google-captcha", "google_cse", []int{200}, ReasonBadReply},
		{"serp-google-html", "serper", []int{200}, ReasonBadReply},
		{"serp-ddg-html", "brave", []int{200}, ReasonBadReply},
	} {
		for _, tp := range tapes(t, tt.kind) {
			for _, status := range tt.statuses {
				o := newOutside(t, func(rw http.ResponseWriter, _ *http.Request) { reply(rw, status, tp.body, "Content-Type", "text/html") })
				b, err := BackendNamed(tt.engine)
				if err != nil {
					t.Fatal(err)
				}
				got, err := b.Find(t.Context(), o.engines(fetch.Live), Query{Text: "recorded", K: 10})
				if len(got) != 0 || err == nil || !strings.Contains(err.Error(), ": "+tt.reason) {
					t.Errorf("%s with status %d: %v, %v; want %s", tp.file, status, got, err, tt.reason)
				}
			}
		}
	}
}

// Recorded replies of X: a page of a search, and that its rate headers are kept to.
func TestRealX(t *testing.T) {
	for _, tp := range tapes(t, "x-api-v2") {
		var want struct {
			Data    int
			First   struct{ ID, Text string }
			Headers map[string]string
			Meta    struct {
				Next string `json:"next_token"`
			}
		}
		tp.expect(t, &want)
		var lookup struct{ Meta json.RawMessage }
		if err := json.Unmarshal([]byte(tp.body), &lookup); err != nil {
			t.Fatal(err)
		}
		o := newOutside(t, nil)
		o.serve = func(rw http.ResponseWriter, _ *http.Request) {
			if len(o.visits) > 1 {
				reply(rw, 200, forms["x"].empty)
				return
			}
			var headers []string
			for name, value := range want.Headers {
				headers = append(headers, name, value)
			}
			reply(rw, 200, tp.body, headers...)
		}
		env := o.engines(fetch.Live)
		got, err := xPosts.Find(t.Context(), env, Query{Text: "Tweepy", K: 1000})
		if lookup.Meta == nil || want.First.ID == "" { // a lookup by ids and counts are no search
			wantError(t, err, ReasonBadReply)
			continue
		}
		if err != nil || len(got) != want.Data || got[0].URL != "https://x.com/i/web/status/"+want.First.ID || got[0].Text != want.First.Text {
			t.Errorf("%s: %d results, %v", tp.file, len(got), err)
		}
		if usd := env.Web.(*fetch.Client).Stats().USD; usd < 0.005*float64(want.Data)-1e-9 || usd > 0.005*float64(want.Data)+1e-9 {
			t.Errorf("%s: %d posts cost $%g", tp.file, want.Data, usd)
		}
		if more := len(o.visits) == 2; more != (want.Meta.Next != "") || more && !strings.Contains(o.visits[1], "next_token="+want.Meta.Next) {
			t.Errorf("%s: asked %v", tp.file, o.visits)
		}
	}
}

// realEntities are things of Wikidata's: an article of another language is found by the title that they
// name for it, and by nothing else.
func realEntities(t *testing.T, tp tape) {
	var want struct {
		ID        string
		Label     string `json:"label_en"`
		Labels    any
		Sitelinks int
		Entities  int
		Missing   []string
	}
	tp.expect(t, &want)
	entities, err := readEntities([]byte(tp.body))
	if err != nil || want.Entities > 0 && len(entities) != want.Entities {
		t.Fatalf("%d entities, want %d: %v", len(entities), want.Entities, err)
	}
	if labels, ok := want.Labels.(map[string]any); ok {
		for id, label := range labels {
			if got := entities[id].Labels["en"].Value; got != label {
				t.Errorf("%s is %q, want %q", id, got, label)
			}
		}
	}
	for _, id := range want.Missing {
		if e, ok := entities[id]; !ok || e.Missing == nil {
			t.Errorf("%s is there", id)
		}
	}
	asked := 0
	o := newOutside(t, func(rw http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		switch {
		case q.Get("action") == "wbgetentities":
			if asked++; q.Get("sites") != "enwiki" || q.Get("titles") != "Shin Jung-hyeon" || q.Get("sitefilter") != "kowiki" {
				t.Errorf("asked %s", r.URL)
			}
			reply(rw, 200, tp.body)
		case q.Get("titles") != "" && q.Get("titles") != "Shin Jung-hyeon":
			reply(rw, 200, fmt.Sprintf(`{"batchcomplete": true, "query": {"pages": [{"pageid": 7, "ns": 0, "title": %q, "canonicalurl": "https://ko.wikipedia.org/wiki/x"}]}}`, q.Get("titles")))
		default:
			reply(rw, 200, emptyWiki)
		}
	})
	env := o.everything(fetch.Live)
	got, err := wikipedia.Find(t.Context(), env, Query{Text: "Shin Jung-hyeon", Language: "ko", K: 5})
	if err != nil || asked != 1 {
		t.Fatalf("%v after %d requests", err, asked)
	}
	if want.Sitelinks == 0 {
		if len(got) != 0 {
			t.Errorf("%+v", got)
		}
		return
	}
	e := entities[want.ID]
	if e.Labels["en"].Value != want.Label || len(e.Sitelinks) != want.Sitelinks || len(got) != 1 || got[0].DocumentID != "wikipedia:ko:7" || got[0].Title != "신중현" || got[0].Via != "Shin Jung-hyeon (Q494290)" {
		t.Errorf("%+v, %+v", e, got)
	}
	if _, err := wikipedia.Find(t.Context(), env, Query{Text: "Shin Jung-hyeon", K: 5}); err != nil || asked != 1 {
		t.Errorf("in English it asks Wikidata: %v", err)
	}
}
