package planner

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"assay/fetch"
)

// A recorded reply of Reddit's.
type recorded struct {
	Case    string            `json:"case"`
	Method  string            `json:"method"`
	URL     string            `json:"url"`
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
}

func (r recorded) serve(o *outside, rw http.ResponseWriter) {
	for name, value := range r.Headers {
		switch strings.ToLower(name) {
		case "content-length", "transfer-encoding", "connection":
		default:
			rw.Header().Set(name, strings.Replace(value, "https://oauth.reddit.com", o.server.URL, 1))
		}
	}
	rw.WriteHeader(r.Status)
	_, _ = io.WriteString(rw, r.Body)
}

// Every recorded error reply leads to the reaction that it must: what is excluded, what ends the run,
// what is tried again, and how often.
func TestRealRedditErrors(t *testing.T) {
	type reaction struct {
		Reason   string
		Excluded bool
		Stops    bool
		Class    string
		Asked    int // requests with this reply
	}
	want := map[string]reaction{
		"TestSession.test_request__with_invalid_access_token":                  {ReasonCredentials, false, true, "permanent", 2}, // once more with a new token
		"TestSession.test_request__with_insufficient_scope":                    {ReasonScope, false, true, "permanent", 1},
		"TestSession.test_request__forbidden":                                  {ReasonForbidden, true, false, "permanent", 1},
		"TestSession.test_request__not_found":                                  {ReasonGone, true, false, "permanent", 1},
		"TestSession.test_request__too__many_requests__with_retry_headers":     {ReasonRateLimit, false, false, "transient", 4},
		"TestSession.test_request__too__many_requests__without_retry_headers":  {ReasonRateLimit, false, false, "transient", 4},
		"TestSession.test_request__unavailable_for_legal_reasons":              {ReasonGone, true, false, "permanent", 1},
		"TestSession.test_request__service_unavailable":                        {ReasonUnavailable, false, false, "transient", 4},
		"TestSession.test_request__bad_json":                                   {ReasonBadReply, false, false, "transient", 1},
		"TestSession.test_request__redirect_301":                               {"", false, false, "", 1}, // followed
		"TestAuthorizer.test_refresh__with_invalid_token":                      {ReasonCredentials, false, true, "permanent", 1},
		"TestScriptAuthorizer.test_refresh__with_invalid_username_or_password": {ReasonCredentials, false, true, "permanent", 1},
		"TestSubredditQuarantine.test_opt_in":                                  {ReasonForbidden, true, false, "permanent", 1},
		"TestUser.test_pin__removed_submission":                                {ReasonBadRequest, false, false, "permanent", 1},
	}
	lines := bufio.NewScanner(capture(t, "reddit/oauth-error-replies.ndjson"))
	lines.Buffer(nil, 1<<20)
	met := 0
	for lines.Scan() {
		var rec recorded
		if err := json.Unmarshal(lines.Bytes(), &rec); err != nil {
			t.Fatal(err)
		}
		met++
		t.Run(rec.Case, func(t *testing.T) {
			want, ok := want[rec.Case]
			if !ok {
				t.Fatal("nobody said what it leads to")
			}
			asked := 0
			o := newOutside(t, nil)
			o.serve = func(rw http.ResponseWriter, r *http.Request) {
				if strings.HasPrefix(r.URL.Path, "/r/") {
					if r.URL.RawQuery != "raw_json=1" {
						t.Errorf("it was followed to %s", r.URL)
					}
					reply(rw, 200, listing(apiPost("aa1", "")))
					return
				}
				asked++
				rec.serve(o, rw)
			}
			if strings.HasSuffix(rec.URL, "/access_token") {
				o.token = func(rw http.ResponseWriter, _ *http.Request) { asked++; rec.serve(o, rw) }
			}
			r := o.reddit(fetch.Live)
			var err error
			if rec.Status == 301 {
				_, err = r.ask(t.Context(), r.call("/t/bird?raw_json=1", nil), "a subreddit", true)
			} else {
				_, err = r.Document(t.Context(), "t3_aa1", nil)
			}
			got := reaction{Asked: asked}
			var e *APIError
			if errors.As(err, &e) {
				got = reaction{e.Reason, e.Excluded() != "", e.StopsRun(), e.FailureClass(), asked}
			} else if err != nil {
				t.Fatal(err)
			}
			if got != want {
				t.Errorf("reaction %+v, want %+v: %v", got, want, err)
			}
			if retry := rec.Headers["retry-after"]; retry == "4" && o.at[1].Sub(o.at[0]).Seconds() < 4 {
				t.Errorf("asked at %v", o.at)
			}
			o.noSecrets()
		})
	}
	if met != len(want) || lines.Err() != nil {
		t.Errorf("%d replies, %v", met, lines.Err())
	}
}

// whole reads a capture, unpacked.
func whole(t *testing.T, name string) string {
	t.Helper()
	in := capture(t, "reddit/"+name)
	if strings.HasSuffix(name, ".gz") {
		z, err := gzip.NewReader(in)
		if err != nil {
			t.Fatal(err)
		}
		in = z
	}
	data, err := io.ReadAll(in)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestRealRedditReplies(t *testing.T) {
	files := map[string]string{
		"/api/info t1_dma3mi5": "praw-info-of-comment-missing-in-thread.json", "/api/info t1_0": "praw-info-empty.json",
		"/search": "praw-subreddit-search.json", "/r/quarantined/search": "praw-quarantined-listing.json",
		"/comments/3hahrw": "praw-thread-476-comments-more.json.gz", "/comments/3hahrw cu5v5h7": "praw-continue-thread-branch.json",
		"/comments/2gmzqe": "praw-submission-comments.json", "/comments/6vx8n0": "praw-crosspost.json", "/comments/52o2fl": "praw-deleted-comment-thread.json",
		"/comments/huw6vs": "praw-gallery.json", "/comments/6wmniq": "praw-askreddit-thread-removed.json",
	}
	replies := map[string]string{}
	for path, name := range files {
		replies[path] = whole(t, name)
	}
	private := whole(t, "private-subreddit-403.json")
	o := newOutside(t, func(rw http.ResponseWriter, r *http.Request) {
		key := strings.TrimSpace(r.URL.Path + " " + r.URL.Query().Get("id") + r.URL.Query().Get("comment"))
		switch body, ok := replies[key]; {
		case ok && (r.URL.Query().Get("after") == ""):
			reply(rw, 200, body)
		case r.URL.Path == "/api/morechildren":
			reply(rw, 200, moreReply())
		case strings.HasSuffix(r.URL.Path, "/search"):
			reply(rw, 200, listing())
		default:
			reply(rw, 403, private)
		}
	})
	r := o.reddit(fetch.Live)
	d, err := r.Document(t.Context(), "t1_dma3mi5", nil)
	if err != nil || !strings.HasPrefix(d.Text, "For me the issue comes with assuming an event is one without any evidence.") {
		t.Errorf("comment %+v, %v", d, err)
	}
	checkDocument(t, d)
	_, err = r.Document(t.Context(), "t1_0", nil)
	wantError(t, err, ReasonGone)
	_, err = r.Document(t.Context(), "t3_private", nil)
	wantError(t, err, ReasonPrivate)
	for k, want := range map[int]int{100: 6, 3: 3} {
		if got, err := r.Search(t.Context(), "praw oauth search", nil, k); err != nil || len(got) != want || got[0].DocumentID != "reddit:t3_3gpbiu" {
			t.Errorf("%d found, %v", len(got), err)
		}
	}
	if got, err := r.Search(t.Context(), "x", []string{"quarantined"}, 200); err != nil || len(got) != 101 {
		t.Errorf("quarantined: %d found, %v", len(got), err)
	}
	for id, want := range map[string]struct {
		comments, unresolved int
		record               string
	}{
		// 476 comments and two of a branch, 6 of them deleted; the ids that the thread names are asked for in vain.
		"3hahrw": {comments: 472, unresolved: 24, record: "complete: no, 472 of 543"},
		"2gmzqe": {comments: 2, record: "complete: yes, 2 of 2"},
		"6vx8n0": {record: "complete: yes, 0 of 0"}, "huw6vs": {record: "complete: yes, 0 of 0"},
		"52o2fl": {record: "complete: no, 0 of 19"},
		"6wmniq": {unresolved: 2859, record: "complete: no"},
	} {
		got, err := r.Thread(t.Context(), "t3_"+id)
		if err != nil {
			t.Errorf("%s: %v", id, err)
			continue
		}
		t.Logf("%s: %s, %d deleted, %d removed, %d requests, branches %v", id, got.Record(), got.Deleted, got.Removed, got.Requests, got.Branches)
		if want.comments > 0 && len(got.Comments) != want.comments || len(got.Unresolved) != want.unresolved || !strings.HasPrefix(got.Record(), want.record) || got.Unreadable != 0 {
			t.Errorf("%s: %s, %d comments, %d unresolved, %d unreadable", id, got.Record(), len(got.Comments), len(got.Unresolved), got.Unreadable)
		}
		for _, c := range got.Comments {
			checkDocument(t, c)
		}
	}
}

// The archives' recorded replies are those of Pushshift, whose form Arctic Shift has.
func TestRealArchives(t *testing.T) {
	body := whole(t, "pushshift-api-submissions.json")
	o := newOutside(t, func(rw http.ResponseWriter, _ *http.Request) { reply(rw, 200, body) })
	a := NewArcticShift(o.client(fetch.Live), o.server.URL)
	ids := []string{"t3_ztksvq", "t3_ztkj4p"}
	for _, id := range ids {
		d, err := a.Document(t.Context(), id, ids)
		var excluded interface{ Excluded() string }
		if err != nil && !errors.As(err, &excluded) {
			t.Errorf("%s: %v", id, err)
		} else if err == nil {
			checkDocument(t, d)
		}
	}
	if got, err := a.Search(t.Context(), "x", []string{"CoronavirusCirclejerk"}, 10); err != nil || len(got) != 10 {
		t.Errorf("%d found, %v", len(got), err)
	}
}
