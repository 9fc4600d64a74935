package planner

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"assay/corpus"
	"assay/fetch"

	"github.com/google/go-cmp/cmp"
)

func searxPage(unresponsive string, urls ...string) string {
	var results []string
	for _, u := range urls {
		results = append(results, fmt.Sprintf(`{"url": %q, "title": "A title", "content": "words", "engine": "mojeek", "engines": ["mojeek"], "score": 1.0, "category": "general"}`, u))
	}
	return `{"query": "q", "number_of_results": 0, "results": [` + strings.Join(results, ",") + `], "answers": [], "corrections": [], "infoboxes": [], "suggestions": [], "unresponsive_engines": [` + unresponsive + `]}`
}

func TestSearXNG(t *testing.T) {
	o := newOutside(t, func(rw http.ResponseWriter, r *http.Request) {
		switch r.URL.Query().Get("pageno") {
		case "1":
			reply(rw, 200, searxPage(`["brave", "too many requests"]`, "https://www.reddit.com/r/harborville/comments/aa1/tolls/", "https://www.reddit.com/r/harborville/", "https://elsewhere.example/"))
		case "2":
			reply(rw, 200, searxPage("", "https://www.reddit.com/r/harborville/comments/aa1/tolls/", "https://old.reddit.com/r/harborville/comments/aa2/ferries/"))
		default:
			reply(rw, 200, searxPage(`["brave", "too many requests"]`))
		}
	})
	env := Env{SearXNG: NewSearXNG(o.client(fetch.Live), o.server.URL+"/")}
	trace, err := Plan(t.Context(), env, Settings{Backend: "searxng"}, corpus.Claim{ID: "c_1", Text: "harbor tolls"})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, c := range trace.Candidates {
		got[c.DocumentID] = c.Reason
	}
	want := map[string]string{
		"reddit:t3_aa1": "", "reddit:t3_aa2": "",
		corpus.DocumentID("https://www.reddit.com/r/harborville/"): DropSubredditPage, corpus.DocumentID("https://elsewhere.example/"): DropElsewhere,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var asked []string
	for n := 1; n <= 3; n++ {
		asked = append(asked, fmt.Sprintf("/search?q=harbor+tolls+site%%3Areddit.com&format=json&pageno=%d", n))
	}
	if diff := cmp.Diff(asked, o.visits); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if got := onDomains([]string{"a.example", "b.example"}); got != " (site:a.example OR site:b.example)" {
		t.Errorf("two domains: %q", got)
	}
	_, err = searxng.Search(t.Context(), Env{}, Query{Text: "x", K: 1})
	wantError(t, err, ReasonNotConfigured)
}

func TestSearXNGRefusals(t *testing.T) {
	for _, tt := range []struct {
		name, body, kind string
		status           int
		reason, says     string
		class            string
		requests         int
	}{
		{"no JSON", `<!doctype html><title>403 Forbidden</title><h1>Forbidden</h1>`, "text/html", 403, ReasonForbidden, "search.formats", "permanent", 1},
		{"nobody answered", searxPage(`["google", "Suspended: CAPTCHA"], ["brave"], "odd", 7`), "application/json", 200, ReasonEngines, "google: Suspended: CAPTCHA, brave, odd, one without a name", "transient", 1},
		{"HTML for JSON", `<!doctype html><title>SearXNG</title><main>results</main>`, "text/html", 200, ReasonBadReply, "search.formats", "transient", 1},
		{"a captcha", `<html><title>Verifying your request</title><form>captcha</form>`, "text/html", 200, ReasonBadReply, "JSON", "transient", 1},
		{"too many requests", `Too Many Requests`, "text/plain", 429, ReasonRateLimit, "slow down", "transient", 4},
		{"down", ``, "text/html", 502, ReasonUnavailable, "502", "transient", 4},
		{"not there", `<title>404</title>`, "text/html", 404, ReasonBadRequest, "no SearXNG at", "permanent", 1},
		{"another JSON", `{"error": "x"}`, "application/json", 200, ReasonBadReply, "x", "transient", 1},
		{"cut JSON", `{"results": [`, "application/json", 200, ReasonBadReply, "bad_json", "transient", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := newOutside(t, func(rw http.ResponseWriter, _ *http.Request) { reply(rw, tt.status, tt.body, "Content-Type", tt.kind) })
			s := NewSearXNG(o.client(fetch.Live), o.server.URL)
			for try := 1; try <= 2; try++ { // a failure is not kept as an answer
				got, err := s.Search(t.Context(), "harbor tolls", []string{"reddit.com"}, 10)
				e := wantError(t, err, tt.reason)
				if !strings.Contains(err.Error(), tt.says) || e.FailureClass() != tt.class || e.Excluded() != "" || e.StopsRun() || len(got) != 0 {
					t.Errorf("class %s: %v", e.FailureClass(), err)
				}
				if len(o.visits) != try*tt.requests {
					t.Errorf("%d requests in %d searches, want %d each", len(o.visits), try, tt.requests)
				}
			}
		})
	}
}

// Nothing found by engines that answered is an answer.
func TestSearXNGFindsNothing(t *testing.T) {
	o := newOutside(t, func(rw http.ResponseWriter, _ *http.Request) { reply(rw, 200, searxPage("")) })
	s := NewSearXNG(o.client(fetch.Live), o.server.URL)
	for range 2 {
		if got, err := s.Search(t.Context(), "zeppelins", nil, 10); err != nil || len(got) != 0 || len(o.visits) != 1 {
			t.Errorf("%v, %v after %d requests", got, err, len(o.visits))
		}
	}
}

// The kind of HD-10 for a search: a pause asked for as a date is kept to the second.
func TestHD10Search(t *testing.T) {
	for name, pause := range map[string]func(now time.Time) string{
		"a date":  func(now time.Time) string { return now.Add(4 * time.Second).UTC().Format(http.TimeFormat) },
		"seconds": func(time.Time) string { return "4" },
	} {
		o := newOutside(t, nil)
		o.serve = func(rw http.ResponseWriter, _ *http.Request) {
			if len(o.visits) == 1 {
				rw.Header()["Date"] = []string{o.now.UTC().Format(http.TimeFormat)}
				reply(rw, 429, `Too Many Requests`, "Retry-After", pause(o.now), "Content-Type", "text/plain")
				return
			}
			reply(rw, 200, searxPage("", "https://www.reddit.com/r/harborville/comments/aa1/tolls/"))
		}
		got, err := NewSearXNG(o.client(fetch.Live), o.server.URL).Search(t.Context(), "harbor tolls", nil, 1)
		if err != nil || len(got) != 1 || len(o.at) != 2 {
			t.Fatalf("%s: %v, %v after %d requests", name, got, err, len(o.at))
		}
		if wait := o.at[1].Sub(o.at[0]); wait < 4*time.Second || wait > 7*time.Second {
			t.Errorf("%s: asked again after %v", name, wait)
		}
	}
}

// The kind of HD-24 for a search: what a result names is dialled by nobody, unless it is on the
// recipe's domains, and then through the guard.
func TestHD24SearchResults(t *testing.T) {
	links, dialled := innerAddresses(t)
	o := newOutside(t, func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("pageno") != "1" {
			reply(rw, 200, searxPage(""))
			return
		}
		reply(rw, 200, searxPage("", append(links, "https://www.reddit.com/r/harborville/comments/aa1/tolls/")...))
	})
	client := o.client(fetch.Live)
	trace, err := Plan(t.Context(), Env{SearXNG: NewSearXNG(client, o.server.URL)}, Settings{Backend: "searxng", PerVariant: 20}, corpus.Claim{ID: "c_1", Text: "harbor tolls"})
	if err != nil {
		t.Fatal(err)
	}
	dropped := 0
	for _, c := range trace.Candidates {
		if c.Reason == DropElsewhere || c.Reason == DropBadAddress {
			dropped++
		}
	}
	if kept := trace.Kept(); len(kept) != 1 || dropped == 0 || dropped+1 != len(trace.Candidates) {
		t.Errorf("kept %+v of %+v", kept, trace.Candidates)
	}
	for _, link := range links {
		_, err := client.Get(t.Context(), fetch.Request{URL: link})
		var refused *fetch.Error
		if !errors.As(err, &refused) || refused.Excluded() != fetch.ReasonBlockedAddress && refused.Excluded() != fetch.ReasonBadScheme {
			t.Errorf("%s: %v", link, err)
		}
	}
	if n := dialled.Load(); n != 0 {
		t.Errorf("the listener was dialled %d times", n)
	}
}
