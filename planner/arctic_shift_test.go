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

// archivedPost is a post in the form that the archives give it: flat, under data.
func archivedPost(id, fields string) string {
	return `{"id": "` + id + `", "subreddit": "harborville", "author": "invented_author", "title": "Tolls", "selftext": "The harbor board voted to raise the tolls in March.",
		"is_self": true, "created_utc": 1552908000, "retrieved_on": 1552909000, "permalink": "/r/harborville/comments/` + id + `/tolls/"` + fields + `}`
}

func archive(things ...string) string { return `{"data": [` + strings.Join(things, ",") + `]}` }

func TestArcticShiftDocuments(t *testing.T) {
	known := map[string]string{
		"t3_aa1": archivedPost("aa1", ""), "t3_aa2": archivedPost("aa2", ""),
		"t3_aa3": archivedPost("aa3", `, "_meta": {"was_deleted_later": true, "removal_type": "deleted"}`),
		"t3_aa4": archivedPost("aa4", `, "selftext": "[removed]"`),
		"t1_cc1": `{"id": "cc1", "link_id": "t3_aa1", "parent_id": "t3_aa1", "subreddit": "harborville", "body": "They rose by a third, not by a half, says the board."}`,
	}
	o := newOutside(t, func(rw http.ResponseWriter, r *http.Request) {
		var found []string
		for _, id := range strings.Split(r.URL.Query().Get("ids"), ",") {
			if p, ok := known[id]; ok {
				found = append(found, p)
			}
		}
		reply(rw, 200, archive(found...), "X-RateLimit-Remaining", "1999", "X-RateLimit-Reset", "60")
	})
	beside := []string{"t3_aa2", "t3_aa3", "t3_aa4", "t3_aa5", "t1_cc1"}
	want := corpus.Document{
		ID: "reddit:t3_aa1", Kind: corpus.KindRedditPost, Title: "Tolls", Text: "The harbor board voted to raise the tolls in March.",
		URL: "https://www.reddit.com/r/harborville/comments/aa1/tolls/", Source: "reddit.com/r/harborville", PublishedAt: "2019-03-18T11:20:00Z",
		RetrievedAt: "2019-03-18T11:36:40Z", BodyStatus: corpus.BodyFull, Flags: []string{FlagArcticShift},
	}.Seal()
	live := NewArcticShift(o.client(fetch.Live), o.server.URL+"/")
	for _, a := range []*ArcticShift{live, live, NewArcticShift(o.client(fetch.Replay), o.server.URL)} {
		got, err := a.Document(t.Context(), "t3_aa1", beside)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		for id, reason := range map[string]string{"t3_aa3": "deleted", "t3_aa4": "removed", "t3_aa5": "gone"} {
			got, err := a.Document(t.Context(), id, beside)
			var excluded interface{ Excluded() string }
			if !errors.As(err, &excluded) || excluded.Excluded() != reason || got.ID != "" {
				t.Errorf("%s: %+v, %v, want it excluded as %s", id, got, err, reason)
			}
		}
	}
	if c, err := live.Document(t.Context(), "t1_cc1", beside); err != nil || c.Kind != corpus.KindRedditComment {
		t.Errorf("comment %+v, %v", c, err)
	}
	if diff := cmp.Diff([]string{"/api/posts/ids?ids=t3_aa1,t3_aa2,t3_aa3,t3_aa4,t3_aa5", "/api/comments/ids?ids=t1_cc1"}, o.visits); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if h := o.headers[0]; h.Get("Authorization") != "" || !strings.HasPrefix(h.Get("User-Agent"), "assay/") {
		t.Errorf("asked with %v", h)
	}
}

func TestArcticShiftRefusals(t *testing.T) {
	for _, tt := range []struct {
		name     string
		status   int
		body     string
		reason   string
		class    string
		requests int
	}{
		{"timed out", 200, `{"data": null, "error": "Query timed out"}`, ReasonUnavailable, "transient", 4},
		{"timed out with a status of its own", 422, `{"data": null, "error": "Timeout. Maybe slow down a bit"}`, ReasonUnavailable, "transient", 4},
		{"slow down", 400, `{"data":null,"error":"Slow down a little"}`, ReasonUnavailable, "transient", 4},
		{"throttled", 429, `too many requests`, ReasonRateLimit, "transient", 4},
		{"down", 502, `<html><title>502 Bad Gateway</title>`, ReasonUnavailable, "transient", 4},
		{"a bad parameter", 400, `{"data": null, "error": "Invalid ID"}`, ReasonBadRequest, "permanent", 1},
		{"an error with a good status", 200, `{"data": null, "error": "Something else"}`, ReasonBadReply, "transient", 1},
		{"no interface", 404, `<html><title>404</title>`, ReasonBadRequest, "permanent", 1},
		{"a wall", 403, `<html><title>Attention Required! | Cloudflare</title>`, ReasonForbidden, "permanent", 1},
		{"HTML", 200, `<html><title>Hello</title><p>hello`, ReasonBadReply, "transient", 1},
		{"cut JSON", 200, `{"data": [`, ReasonBadReply, "transient", 1},
		{"a thing without id", 200, `{"data": [{"title": "x"}]}`, ReasonBadReply, "transient", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := newOutside(t, func(rw http.ResponseWriter, _ *http.Request) {
				kind := "application/json"
				if strings.HasPrefix(tt.body, "<") {
					kind = "text/html"
				}
				reply(rw, tt.status, tt.body, "Content-Type", kind)
			})
			_, err := NewArcticShift(o.client(fetch.Live), o.server.URL).Document(t.Context(), "t3_aa1", nil)
			if e := wantError(t, err, tt.reason); e.FailureClass() != tt.class || e.Excluded() != "" || e.StopsRun() {
				t.Errorf("class %s, excluded %q: %v", e.FailureClass(), e.Excluded(), err)
			}
			if len(o.visits) != tt.requests {
				t.Errorf("%d requests, want %d", len(o.visits), tt.requests)
			}
		})
	}
}

// A query that timed out is asked again at once, and what it then finds is kept.
func TestArcticShiftSecondTry(t *testing.T) {
	n := 0
	o := newOutside(t, func(rw http.ResponseWriter, _ *http.Request) {
		if n++; n == 1 {
			reply(rw, 422, `{"data": null, "error": "Query timed out"}`)
			return
		}
		reply(rw, 200, archive(archivedPost("aa1", "")))
	})
	a := NewArcticShift(o.client(fetch.Live), o.server.URL)
	for range 2 {
		if _, err := a.Document(t.Context(), "t3_aa1", nil); err != nil || n != 2 {
			t.Errorf("%d requests, %v", n, err)
		}
	}
}

func TestArcticShiftSearch(t *testing.T) {
	o := newOutside(t, func(rw http.ResponseWriter, r *http.Request) {
		switch r.URL.Query().Get("subreddit") {
		case "harborville":
			reply(rw, 200, archive(archivedPost("aa3", `, "created_utc": 1552908300`), archivedPost("aa1", `, "created_utc": "1552908100"`)))
		case "ferries":
			reply(rw, 200, archive(archivedPost("aa2", `, "created_utc": 1552908200.0`), archivedPost("aa1", `, "created_utc": 1552908100`)))
		default:
			reply(rw, 200, `{"data": []}`)
		}
	})
	env := Env{ArcticShift: NewArcticShift(o.client(fetch.Live), o.server.URL)}
	for _, tt := range []struct {
		in   []string
		k    int
		want []string
	}{
		{[]string{"harborville", "ferries"}, 10, []string{"aa3", "aa2", "aa1"}},
		{[]string{"ferries", "harborville"}, 2, []string{"aa3", "aa2"}},
		{[]string{"nothing"}, 500, nil},
	} {
		got, err := arcticShift.Search(t.Context(), env, Query{Text: "harbor tolls", Subreddits: tt.in, K: tt.k})
		var ids []string
		for _, r := range got {
			ids = append(ids, strings.TrimPrefix(r.DocumentID, "reddit:t3_"))
		}
		if diff := cmp.Diff(tt.want, ids); diff != "" || err != nil {
			t.Errorf("in %v: %v (-want +got):\n%s", tt.in, err, diff)
		}
	}
	for _, asked := range []string{
		"/api/posts/search?subreddit=harborville&query=harbor+tolls&sort=desc&limit=10",
		"/api/posts/search?subreddit=nothing&query=harbor+tolls&sort=desc&limit=auto",
	} {
		if !strings.Contains(strings.Join(o.visits, "\n")+"\n", asked+"\n") {
			t.Errorf("%s was not asked for; these were:\n%s", asked, strings.Join(o.visits, "\n"))
		}
	}
	for _, tt := range []struct {
		env Env
		q   Query
	}{{env, Query{Text: "x", K: 1}}, {Env{}, Query{Text: "x", Subreddits: []string{"a"}, K: 1}}} {
		_, err := arcticShift.Search(t.Context(), tt.env, tt.q)
		if e := wantError(t, err, ReasonNotConfigured); !e.StopsRun() {
			t.Errorf("the run goes on: %v", err)
		}
	}
}

func TestLeftAlone(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		class            fetch.Class
		remaining, reset string
		want             time.Duration
	}{
		{fetch.ClassOK, "598.0", "104", 0},
		{fetch.ClassOK, "0.0", "104", 104 * time.Second},
		{fetch.ClassOK, "0", "1.5", 1500 * time.Millisecond},
		{fetch.ClassOK, "", "104", 0},
		{fetch.ClassOK, "0.0", "", 0},
		{fetch.ClassOK, "0.0", "-3", 0},
		{fetch.ClassOK, "0.0", "NaN", 0},
		{fetch.ClassOK, "0.0", "99999", maxReset},
		{fetch.ClassOK, "0", fmt.Sprint(at.Unix() + 30), 30 * time.Second},
		{fetch.ClassOK, "0", fmt.Sprint(at.UnixMilli() + 30000), 30 * time.Second},
		{fetch.ClassOK, "0", fmt.Sprint(at.Unix() - 30), 0},
		{fetch.ClassThrottled, "", "12", 12 * time.Second},
		{fetch.ClassThrottled, "40", "12", 12 * time.Second},
	} {
		h := http.Header{}
		h.Set("X-Ratelimit-Remaining", tt.remaining)
		h.Set("X-Ratelimit-Reset", tt.reset)
		if got := leftAlone(fetch.Reply{Class: tt.class, Header: h, Retrieved: at}); got != tt.want {
			t.Errorf("%s, remaining %q, reset %q: %v, want %v", tt.class, tt.remaining, tt.reset, got, tt.want)
		}
	}
}
