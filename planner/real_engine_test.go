package planner

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

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
		if want.First.ID == "" {
			continue // counts
		}
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
		if lookup.Meta == nil { // a lookup by ids is no search
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
