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

// apiPost is a post in the form that Reddit's interface gives it with raw_json=1.
func apiPost(id, fields string) string {
	return `{"kind": "t3", "data": {"id": "` + id + `", "name": "t3_` + id + `", "subreddit": "harborville", "author": "invented_author", "title": "Tolls & <ferries>",
		"selftext": "The harbor board voted to raise the tolls in March; &amp; is how an escape looks.", "is_self": true, "created_utc": 1552908000.0,
		"permalink": "/r/harborville/comments/` + id + `/tolls/", "url": "https://www.reddit.com/r/harborville/comments/` + id + `/tolls/", "num_comments": 7` + fields + `}}`
}

func listing(children ...string) string {
	return `{"kind": "Listing", "data": {"modhash": null, "after": null, "before": null, "children": [` + strings.Join(children, ",") + `]}}`
}

// posts serves /api/info for some posts.
func posts(known map[string]string) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		var found []string
		for _, id := range strings.Split(r.URL.Query().Get("id"), ",") {
			if p, ok := known[id]; ok {
				found = append(found, p)
			}
		}
		reply(rw, 200, listing(found...), "x-ratelimit-used", "2", "x-ratelimit-remaining", "598.0", "x-ratelimit-reset", "104")
	}
}

func TestRedditDocuments(t *testing.T) {
	o := newOutside(t, posts(map[string]string{
		"t3_aa1": apiPost("aa1", ""), "t3_aa2": apiPost("aa2", ""),
		"t3_aa3": apiPost("aa3", `, "selftext": "[deleted]", "author": "[deleted]"`),
		"t3_aa4": apiPost("aa4", `, "selftext": "[removed]", "removed_by_category": "moderator"`),
		"t1_cc1": `{"kind": "t1", "data": {"id": "cc1", "name": "t1_cc1", "link_id": "t3_aa1", "parent_id": "t3_aa1", "subreddit": "harborville", "body": "They rose by a third, not by a half, says the board."}}`,
	}))
	r := o.reddit(fetch.Live)
	beside := []string{"t3_aa2", "t3_aa3", "t3_aa4", "t3_aa5", "t1_cc1"}
	want := corpus.Document{
		ID: "reddit:t3_aa1", Kind: corpus.KindRedditPost, Title: "Tolls & <ferries>", Text: "The harbor board voted to raise the tolls in March; &amp; is how an escape looks.",
		URL: "https://www.reddit.com/r/harborville/comments/aa1/tolls/", Source: "reddit.com/r/harborville", PublishedAt: "2019-03-18T11:20:00Z",
		RetrievedAt: "2026-03-01T12:00:00Z", BodyStatus: corpus.BodyFull, Flags: []string{FlagRedditAPI},
	}.Seal()
	replay := o.reddit(fetch.Replay)
	for _, r := range []*Reddit{r, r, replay} {
		got, err := r.Document(t.Context(), "t3_aa1", beside)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		for id, reason := range map[string]string{"t3_aa3": "deleted", "t3_aa4": "removed", "t3_aa5": "gone"} {
			got, err := r.Document(t.Context(), id, beside)
			var excluded interface{ Excluded() string }
			if !errors.As(err, &excluded) || excluded.Excluded() != reason || got.ID != "" {
				t.Errorf("%s: %+v, %v, want it excluded as %s", id, got, err, reason)
			}
		}
	}
	if diff := cmp.Diff([]string{"/api/info?id=t3_aa1,t3_aa2,t3_aa3,t3_aa4,t3_aa5&raw_json=1"}, o.visits); diff != "" || o.tokens != 1 {
		t.Errorf("%d tokens, requests (-want +got):\n%s", o.tokens, diff)
	}
	if got := o.headers[0]; got.Get("User-Agent") != testAgent || got.Get("Authorization") != "Bearer "+fmt.Sprintf(testToken, 1) {
		t.Errorf("asked with %v", got)
	}
	comment, err := r.Document(t.Context(), "t1_cc1", []string{"t3_aa1"})
	if err != nil || comment.Kind != corpus.KindRedditComment || comment.URL != "https://www.reddit.com/r/harborville/comments/aa1/_/cc1/" {
		t.Errorf("comment %+v, %v", comment, err)
	}
	o.noSecrets()
}

// More ids than a request may name are more requests; the one that is needed is always among them.
func TestRedditBatches(t *testing.T) {
	var beside []string
	for i := range 250 {
		beside = append(beside, fmt.Sprintf("t3_a%03d", i))
	}
	o := newOutside(t, func(rw http.ResponseWriter, r *http.Request) {
		ids := strings.Split(r.URL.Query().Get("id"), ",")
		if len(ids) > 100 {
			reply(rw, 414, "")
			return
		}
		var found []string
		for _, id := range ids {
			found = append(found, apiPost(id[3:], ""))
		}
		reply(rw, 200, listing(found...))
	})
	r := o.reddit(fetch.Live)
	for i, id := range beside {
		if _, err := r.Document(t.Context(), id, beside[i:]); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(o.visits); n != 3 {
		t.Errorf("%d requests for 250 posts, want 3", n)
	}
}

func TestRedditToken(t *testing.T) {
	info := posts(map[string]string{"t3_aa1": apiPost("aa1", ""), "t3_aa2": apiPost("aa2", ""), "t3_aa3": apiPost("aa3", "")})
	valid := 2
	o := newOutside(t, nil)
	o.serve = func(rw http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+fmt.Sprintf(testToken, valid) {
			reply(rw, 401, `{"error": 401}`, "www-authenticate", `Bearer realm="reddit", error="invalid_token"`)
			return
		}
		info(rw, r)
	}
	r := o.reddit(fetch.Live)
	if _, err := r.Document(t.Context(), "t3_aa1", nil); err != nil || o.tokens != 2 || len(o.visits) != 2 {
		t.Errorf("a token that was taken back: %v, %d tokens, %d requests", err, o.tokens, len(o.visits))
	}
	if _, err := r.Document(t.Context(), "t3_aa2", nil); err != nil || o.tokens != 2 {
		t.Errorf("the next request: %v, %d tokens", err, o.tokens)
	}
	o.now, valid = o.now.Add(24*time.Hour), 3
	if _, err := r.Document(t.Context(), "t3_aa3", nil); err != nil || o.tokens != 3 || len(o.visits) != 4 {
		t.Errorf("a token of yesterday: %v, %d tokens, %d requests", err, o.tokens, len(o.visits))
	}
	valid = 0
	_, err := r.Document(t.Context(), "t3_aa4", nil)
	if e := wantError(t, err, ReasonCredentials); !e.StopsRun() || o.tokens != 4 || len(o.visits) != 6 {
		t.Errorf("no token is good: %v, %d tokens, %d requests", err, o.tokens, len(o.visits))
	}
	o.noSecrets()
}

func TestRedditTokenRefused(t *testing.T) {
	for _, tt := range []struct {
		name, body, reason string
		status, asked      int
	}{
		{"a wrong secret", `{"message": "Unauthorized", "error": 401}`, ReasonCredentials, 401, 1},
		{"a bad request", `{"error": 400}`, ReasonCredentials, 400, 1},
		{"a wrong grant with a good status", `{"error_description": "Only script apps may use password auth", "error": "unauthorized_client"}`, ReasonCredentials, 200, 1},
		{"a secret in the reply", `{"error": "bad ` + testSecret + `"}`, ReasonCredentials, 401, 1},
		{"too many requests", `{"message": "Too Many Requests", "error": 429}`, ReasonRateLimit, 429, 4},
		{"down", ``, ReasonUnavailable, 503, 4},
		{"no JSON", `<html>`, ReasonBadReply, 200, 1},
		{"no token", `{}`, ReasonBadReply, 200, 1},
		{"a wall", `<html><title>Blocked</title>`, ReasonCredentials, 403, 1},
		{"moved", ``, ReasonCredentials, 301, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := newOutside(t, posts(nil))
			o.token = func(rw http.ResponseWriter, _ *http.Request) { reply(rw, tt.status, tt.body, "Location", "/elsewhere") }
			r := o.reddit(fetch.Live)
			for range 2 { // what failed is not tried again at once
				_, err := r.Document(t.Context(), "t3_aa1", []string{"t3_aa2"})
				e := wantError(t, err, tt.reason)
				if e.StopsRun() != (tt.reason == ReasonCredentials) || e.Excluded() != "" || (e.FailureClass() == "transient") == e.StopsRun() {
					t.Errorf("stops %v, class %s, excluded %q", e.StopsRun(), e.FailureClass(), e.Excluded())
				}
				for _, secret := range []string{testID, testSecret} {
					if strings.Contains(err.Error(), secret) {
						t.Errorf("the error holds %q: %v", secret, err)
					}
				}
			}
			if o.tokens != tt.asked || len(o.visits) != 0 {
				t.Errorf("asked %d times for a token, %d requests without one", o.tokens, len(o.visits))
			}
			o.noSecrets()
		})
	}
	o := newOutside(t, posts(nil))
	r := o.reddit(fetch.Live)
	r.o.Getenv = func(string) string { return "" }
	_, err := r.Document(t.Context(), "t3_aa1", nil)
	if e := wantError(t, err, ReasonCredentials); !e.StopsRun() || !strings.Contains(err.Error(), "TEST_") || o.tokens != 0 {
		t.Errorf("no secret is set: %v", err)
	}
	o.server.Close()
	_, err = o.reddit(fetch.Live).Document(t.Context(), "t3_aa1", nil)
	var web *fetch.Error
	if !errors.As(err, &web) || web.FailureClass() != "transient" || strings.Contains(err.Error(), testSecret) {
		t.Errorf("nobody there: %v", err)
	}
}

func TestRedditRefusals(t *testing.T) {
	whoa := "<!doctype html><html><head><title>Too Many Requests</title></head><body><h1>whoa there, pardner!</h1><p>please wait 4 second(s)</p></body></html>"
	for _, tt := range []struct {
		name     string
		status   int
		body     string
		headers  []string
		reason   string
		excluded bool
		class    string
		requests int
		waited   time.Duration // at least, before the last request
	}{
		{"private", 403, `{"reason": "private", "message": "Forbidden", "error": 403}`, nil, ReasonPrivate, true, "permanent", 1, 0},
		{"quarantined", 403, `{"reason": "quarantined", "message": "Forbidden", "error": 403, "quarantine_message": "x"}`, nil, ReasonQuarantined, true, "permanent", 1, 0},
		{"forbidden", 403, `{"message": "Forbidden", "error": 403}`, nil, ReasonForbidden, true, "permanent", 1, 0},
		{"forbidden by a number", 403, `{"error": 403}`, nil, ReasonForbidden, true, "permanent", 1, 0},
		{"scope", 403, `{"error": 403}`, []string{"www-authenticate", `Bearer realm="reddit", error="insufficient_scope"`}, ReasonScope, false, "permanent", 1, 0},
		{"gone", 404, `{"message": "Not Found", "error": 404}`, nil, ReasonGone, true, "permanent", 1, 0},
		{"legal", 451, ``, nil, ReasonGone, true, "permanent", 1, 0},
		{"throttled by a page", 429, whoa, []string{"Content-Type", "text/html; charset=UTF-8", "retry-after", "4"}, ReasonRateLimit, false, "transient", 4, 4 * time.Second},
		{"throttled by JSON", 429, `{"message": "Too Many Requests", "error": 429}`, nil, ReasonRateLimit, false, "transient", 4, 600 * time.Millisecond},
		{"throttled until the reset", 429, `{"message": "Too Many Requests", "error": 429}`, []string{"x-ratelimit-remaining", "0.0", "x-ratelimit-reset", "82.5"}, ReasonRateLimit, false, "transient", 4, 82 * time.Second},
		{"throttled with a good status", 200, `{"message": "Too Many Requests", "error": 429}`, nil, ReasonRateLimit, false, "transient", 4, 0},
		{"a wall with a good status", 200, whoa, []string{"Content-Type", "text/html"}, ReasonRateLimit, false, "transient", 4, 0},
		{"down", 503, ``, nil, ReasonUnavailable, false, "transient", 4, 0},
		{"cut JSON", 200, `{"kind": "Listing", "data": {"children": [], "after": null}`, nil, ReasonBadReply, false, "transient", 1, 0},
		{"a listing of nonsense", 200, listing(`{"kind": "t3", "data": {"id": "!"}}`), nil, ReasonBadReply, false, "transient", 1, 0},
		{"an error with a good status", 200, `{"error": "unauthorized_client"}`, nil, ReasonBadReply, false, "transient", 1, 0},
		{"a bad request", 400, `{"message": "Bad Request", "error": 400}`, nil, ReasonBadRequest, false, "permanent", 1, 0},
		{"moved to a page", 302, ``, []string{"Location", "https://www.reddit.com/login/"}, ReasonGone, true, "permanent", 1, 0},
		{"moved in a circle", 301, ``, []string{"Location", "/api/info"}, ReasonGone, true, "permanent", 1, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := newOutside(t, func(rw http.ResponseWriter, _ *http.Request) { reply(rw, tt.status, tt.body, tt.headers...) })
			_, err := o.reddit(fetch.Live).Document(t.Context(), "t3_aa1", nil)
			e := wantError(t, err, tt.reason)
			if (e.Excluded() != "") != tt.excluded || e.FailureClass() != tt.class || e.StopsRun() != (tt.reason == ReasonScope) {
				t.Errorf("excluded %q, class %s, stops %v", e.Excluded(), e.FailureClass(), e.StopsRun())
			}
			if len(o.visits) != tt.requests || o.at[len(o.at)-1].Sub(o.at[0]) < tt.waited*time.Duration(tt.requests-1) {
				t.Errorf("%d requests at %v, want %d", len(o.visits), o.at, tt.requests)
			}
			// What is to be seen does not pass away when it is read from the store.
			_, again := o.reddit(fetch.Replay).Document(t.Context(), "t3_aa1", nil)
			if e := wantError(t, again, tt.reason); (e.Excluded() != "") != tt.excluded {
				t.Errorf("in replay: %v", again)
			}
		})
	}
}

// The last request of a window makes the next one wait for the window's end, also where the numbers
// are decimal; requests are never closer than a hundred a minute.
func TestRedditPace(t *testing.T) {
	left := []string{"599.0", "598.5", "0.0", "0.9", "600.0", "NaN"}
	n := 0
	o := newOutside(t, nil)
	o.serve = func(rw http.ResponseWriter, r *http.Request) {
		id := r.URL.Query().Get("id")[3:]
		reply(rw, 200, listing(apiPost(id, "")), "X-Ratelimit-Used", "1", "X-Ratelimit-Remaining", left[n%len(left)], "X-Ratelimit-Reset", "33.25")
		n++
	}
	r := o.reddit(fetch.Live)
	for i := range 6 {
		if _, err := r.Document(t.Context(), fmt.Sprintf("t3_aa%d", i), nil); err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range []time.Duration{redditGap, redditGap, 33250 * time.Millisecond, 33250 * time.Millisecond, redditGap} {
		if got := o.at[i+1].Sub(o.at[i]); got != want {
			t.Errorf("%v after request %d, want %v", got, i+1, want)
		}
	}
}

func TestRedditSearch(t *testing.T) {
	o := newOutside(t, nil)
	o.serve = func(rw http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		switch {
		case r.URL.Path == "/r/oldname/search":
			reply(rw, 301, "", "Location", o.server.URL+"/r/harborville/search/")
		case strings.HasPrefix(r.URL.Path, "/r/nowhere"):
			reply(rw, 302, "", "Location", o.server.URL+"/subreddits/search?q=nowhere")
		case r.URL.Path == "/r/closed/search":
			reply(rw, 403, `{"reason": "private", "message": "Forbidden", "error": 403}`)
		case q.Get("after") == "":
			reply(rw, 200, strings.Replace(listing(apiPost("aa1", ""), apiPost("aa2", ""), `{"kind": "t5", "data": {"id": "zz"}}`), `"after": null`, `"after": "t3_aa2"`, 1))
		case q.Get("after") == "t3_aa2":
			reply(rw, 200, strings.Replace(listing(apiPost("aa2", ""), apiPost("aa3", `, "selftext": "[removed]"`)), `"after": null`, `"after": "t3_aa3"`, 1))
		default:
			reply(rw, 200, listing())
		}
	}
	r := o.reddit(fetch.Live)
	search := func(subreddits ...string) ([]string, error) {
		got, err := reddit.Search(t.Context(), Env{Reddit: r}, Query{Text: "harbor tolls", Subreddits: subreddits, K: 10})
		var ids []string
		for _, res := range got {
			ids = append(ids, res.DocumentID)
		}
		return ids, err
	}
	want := []string{"reddit:t3_aa1", "reddit:t3_aa2", "reddit:t3_aa3"}
	for _, where := range [][]string{nil, {"harborville", "ferries"}, {"oldname"}} {
		got, err := search(where...)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("in %v: %v (-want +got):\n%s", where, err, diff)
		}
	}
	for _, asked := range []string{
		"/search?q=harbor+tolls&type=link&sort=relevance&limit=10&raw_json=1",
		"/r/harborville+ferries/search?q=harbor+tolls&type=link&sort=relevance&limit=10&raw_json=1&restrict_sr=true&after=t3_aa3",
		"/r/harborville/search/?q=harbor+tolls&type=link&sort=relevance&limit=10&raw_json=1&restrict_sr=true",
	} {
		if !strings.Contains(strings.Join(o.visits, "\n")+"\n", asked+"\n") {
			t.Errorf("%s was not asked for; these were:\n%s", asked, strings.Join(o.visits, "\n"))
		}
	}
	_, err := search("nowhere")
	if e := wantError(t, err, ReasonGone); e.Excluded() != "" || e.FailureClass() != "permanent" {
		t.Errorf("a search is no post that may be gone: %v", err)
	}
	_, err = search("closed")
	if e := wantError(t, err, ReasonPrivate); e.Excluded() != "" {
		t.Errorf("a search is no post that may be private: %v", err)
	}
	_, err = reddit.Search(t.Context(), Env{}, Query{Text: "x", K: 1})
	if e := wantError(t, err, ReasonNotConfigured); !e.StopsRun() {
		t.Error("the run goes on")
	}
}

func TestRedditUserAgent(t *testing.T) {
	for ua, want := range map[string]bool{
		"linux:org.example.assay:1.0 (by /u/harbor_research)": true,
		"linux:org.example.assay:v1.2.3 (by u/nobody)":        true,
		"assay/1.0 (+mailto:x@example.org)":                   false,
		"Mozilla/5.0 (X11; Linux x86_64)":                     false,
		"linux:assay:1.0":                                     false,
		"":                                                    false,
	} {
		if got := RedditUserAgent.MatchString(ua); got != want {
			t.Errorf("%q: %v, want %v", ua, got, want)
		}
	}
}
