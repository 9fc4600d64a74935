package planner

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"assay/fetch"

	"github.com/google/go-cmp/cmp"
)

func apiComment(id, parent, body string, replies ...string) string {
	under := `""`
	if len(replies) > 0 {
		under = listing(replies...)
	}
	author := `"invented_author"`
	if body == "[deleted]" {
		author = "null"
	}
	return fmt.Sprintf(`{"kind": "t1", "data": {"id": %q, "name": "t1_%s", "parent_id": %q, "link_id": "t3_aa1", "subreddit": "harborville", "author": %s, "body": %q, "created_utc": 1552909000.0, "replies": %s}}`,
		id, id, parent, author, body, under)
}

func apiMore(parent, id string, count int, children ...string) string {
	ids := `[]`
	if len(children) > 0 {
		ids = `["` + strings.Join(children, `", "`) + `"]`
	}
	return fmt.Sprintf(`{"kind": "more", "data": {"id": %q, "name": "t1_%s", "parent_id": %q, "count": %d, "depth": 0, "children": %s}}`, id, id, parent, count, ids)
}

func thread(post string, comments ...string) string {
	return "[" + listing(post) + ", " + listing(comments...) + "]"
}

func moreReply(things ...string) string {
	return `{"json": {"errors": [], "data": {"things": [` + strings.Join(things, ",") + `]}}}`
}

const (
	realBody  = "The tolls rose by a third; the board's own minutes of March say so."
	laterBody = "They did not rise for residents, which the minutes leave out."
)

// threadOf plays a thread: its page, what each set of ids brings, and its branches.
func threadOf(page string, more, branches map[string]string) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		switch q := r.URL.Query(); {
		case r.URL.Path == "/api/morechildren":
			body, ok := more[q.Get("children")]
			if !ok {
				body = moreReply()
			}
			reply(rw, 200, body)
		case q.Get("comment") != "":
			body, ok := branches[q.Get("comment")]
			if !ok {
				reply(rw, 404, `{"message": "Not Found", "error": 404}`)
				return
			}
			reply(rw, 200, body)
		default:
			reply(rw, 200, page)
		}
	}
}

func ids(t Thread) (out []string) {
	for _, c := range t.Comments {
		line := strings.TrimPrefix(c.ID, "reddit:t1_")
		if strings.Contains(strings.Join(c.Flags, " "), FlagParentMissing) {
			line += " without parent"
		}
		out = append(out, line)
	}
	return out
}

// The kind of HD-11: a thread whose "more" leads to comments without a parent, to nothing, or back to
// itself, and whose comments were taken away. It ends, and says what it has.
func TestHD11Threads(t *testing.T) {
	post := apiPost("aa1", "")
	gone := []string{apiComment("c1", "t3_aa1", "[deleted]"), apiComment("c2", "t3_aa1", "[removed]")}
	named := append(append([]string{}, gone...), apiComment("c3", "t3_aa1", realBody), apiMore("t3_aa1", "c5", 2, "c5", "c6"), apiMore("t3_aa1", "_", 0))
	page := thread(post, named...)
	for _, tt := range []struct {
		name           string
		serve          http.HandlerFunc
		comments       []string
		record         string
		deleted        int
		removed        int
		unresolved     []string
		branches       []string
		requests       int // at most
		faults, broken int
	}{
		{
			name: "as it was told", serve: threadOf(page, map[string]string{"c5,c6": moreReply(apiComment("c5", "t1_zz9", laterBody))}, nil),
			comments: []string{"c3", "c5 without parent"}, record: "complete: no, 2 of 7", deleted: 1, removed: 1, unresolved: []string{"t1_c6"}, requests: 6,
		},
		{
			name: "nothing ever comes", serve: threadOf(page, nil, nil),
			comments: []string{"c3"}, record: "complete: no, 1 of 7", deleted: 1, removed: 1, unresolved: []string{"t1_c5", "t1_c6"}, requests: 3,
		},
		{
			name: "the same answer for ever", serve: threadOf(page, map[string]string{
				"c5,c6": moreReply(apiComment("c3", "t3_aa1", realBody), apiMore("t3_aa1", "c5", 2, "c5", "c6")),
			}, nil),
			comments: []string{"c3"}, record: "complete: no, 1 of 7", deleted: 1, removed: 1, unresolved: []string{"t1_c5", "t1_c6"}, requests: 3,
		},
		{
			name: "a more within the answer, and a deleted and a removed comment", serve: threadOf(page, map[string]string{
				"c5,c6": moreReply(apiComment("c5", "t1_c3", laterBody), apiComment("c6", "t1_c5", `\[deleted\]`), apiMore("t1_c6", "c7", 1, "c7")),
				"c7":    moreReply(apiComment("c7", "t1_c6", "[ Removed by Reddit ]")),
			}, nil),
			comments: []string{"c3", "c5"}, record: "complete: no, 2 of 7", deleted: 2, removed: 2, requests: 3,
		},
		{
			name: "a branch that goes on", serve: threadOf(thread(post, append(gone, apiComment("c3", "t3_aa1", realBody, apiMore("t1_c3", "_", 0), apiMore("t1_c3", "_", 0)))...), nil, map[string]string{
				"c3": thread(post, apiComment("c3", "t3_aa1", realBody, apiComment("c4", "t1_c3", laterBody, apiComment("c8", "t1_c4", laterBody), apiComment("c9", "t1_c4", laterBody), apiComment("c10", "t1_c4", laterBody)), apiMore("t1_c3", "_", 0))),
			}),
			comments: []string{"c3", "c4", "c8", "c9", "c10"}, record: "complete: yes, 5 of 7", deleted: 1, removed: 1, requests: 2,
		},
		{
			name: "a branch that is not to be had", serve: threadOf(thread(post, append(gone, apiComment("c3", "t3_aa1", realBody, apiMore("t1_c3", "_", 0)))...), nil, nil),
			comments: []string{"c3"}, record: "complete: no, 1 of 7", deleted: 1, removed: 1, branches: []string{"t1_c3"}, requests: 2, faults: 1,
		},
		{
			name: "an answer that is no answer", serve: threadOf(page, map[string]string{"c5,c6": `{"json": {"errors": [["BAD", "x", "y"]]}}`}, nil),
			comments: []string{"c3"}, record: "complete: no, 1 of 7", deleted: 1, removed: 1, unresolved: []string{"t1_c5", "t1_c6"}, requests: 3,
		},
		{
			name: "an answer that is no JSON", serve: threadOf(page, map[string]string{"c5,c6": `<html>`}, nil),
			comments: []string{"c3"}, record: "complete: no, 1 of 7", deleted: 1, removed: 1, unresolved: []string{"t1_c5", "t1_c6"}, requests: 3, faults: 2,
		},
		{
			name: "entries that are none", serve: threadOf(thread(post, append(gone, `{"kind": "t9", "data": {}}`, `{"kind": "t1", "data": []}`, `{"kind": "more", "data": 1}`)...), nil, nil),
			record: "complete: no, 0 of 7", deleted: 1, removed: 1, requests: 1, broken: 3,
		},
		{
			name: "all of it", serve: threadOf(thread(apiPost("aa1", `, "num_comments": 3`), append(gone, apiComment("c3", "t3_aa1", realBody))...), nil, nil),
			comments: []string{"c3"}, record: "complete: yes, 1 of 3", deleted: 1, removed: 1, requests: 1,
		},
		{
			name: "nobody answered", serve: threadOf(thread(apiPost("aa1", `, "num_comments": 0`)), nil, nil),
			record: "complete: yes, 0 of 0", requests: 1,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := newOutside(t, tt.serve)
			got, err := o.reddit(fetch.Live).Thread(t.Context(), "t3_aa1")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.comments, ids(got)); diff != "" {
				t.Errorf("comments (-want +got):\n%s", diff)
			}
			if got.Record() != tt.record || got.Deleted != tt.deleted || got.Removed != tt.removed || len(got.Faults) != tt.faults || got.Unreadable != tt.broken {
				t.Errorf("%s, %d deleted, %d removed, faults %q, %d unreadable", got.Record(), got.Deleted, got.Removed, got.Faults, got.Unreadable)
			}
			if diff := cmp.Diff(tt.unresolved, got.Unresolved) + cmp.Diff(tt.branches, got.Branches); diff != "" {
				t.Errorf("not to be had (-want +got):\n%s", diff)
			}
			if len(o.visits) > tt.requests || got.Requests > tt.requests || got.Requests < len(o.visits) {
				t.Errorf("%d requests, %d counted, want at most %d:\n%s", len(o.visits), got.Requests, tt.requests, strings.Join(o.visits, "\n"))
			}
			asks := 0
			for _, v := range o.visits {
				if strings.Contains(v, "c6") {
					asks++
				}
			}
			if asks > 2 {
				t.Errorf("c6 was asked for %d times", asks)
			}
			all, err := json.Marshal(got)
			if err != nil {
				t.Fatal(err)
			}
			for _, placeholder := range []string{"[deleted]", "[removed]", "Removed by Reddit", "invented_author"} {
				if bytes.Contains(all, []byte(placeholder)) {
					t.Errorf("the thread holds %q", placeholder)
				}
			}
			again, err := o.reddit(fetch.Replay).Thread(t.Context(), "t3_aa1")
			if diff := cmp.Diff(got.Comments, again.Comments); err != nil || diff != "" || again.Record() != tt.record {
				t.Errorf("in replay: %v, %s (-live +replay):\n%s", err, again.Record(), diff)
			}
			o.noSecrets()
		})
	}
}

// A thread of thousands of comments takes a bounded number of requests, and a service that fails is
// left alone.
func TestHD11Bounds(t *testing.T) {
	var many []string
	for i := range 20000 {
		many = append(many, fmt.Sprintf("d%05d", i))
	}
	page := thread(apiPost("aa1", `, "num_comments": 20000`), apiMore("t3_aa1", "d00000", 20000, many...))
	o := newOutside(t, threadOf(page, nil, nil))
	got, err := o.reddit(fetch.Live).Thread(t.Context(), "t3_aa1")
	if err != nil || got.Requests != threadRequests || len(got.Unresolved) != 20000 || got.Complete() {
		t.Errorf("%d requests, %d unresolved, %v", got.Requests, len(got.Unresolved), err)
	}
	o = newOutside(t, nil)
	o.serve = func(rw http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/morechildren" {
			reply(rw, 403, `{"message": "Forbidden", "error": 403}`)
			return
		}
		reply(rw, 200, page)
	}
	got, err = o.reddit(fetch.Live).Thread(t.Context(), "t3_aa1")
	if err != nil || len(got.Faults) != threadFaults || got.Requests != 1+threadFaults {
		t.Errorf("%d requests, faults %q, %v", got.Requests, got.Faults, err)
	}
}

func TestThreadRefused(t *testing.T) {
	for _, tt := range []struct {
		name, id, body, reason string
		status                 int
	}{
		{"private", "t3_aa1", `{"reason": "private", "error": 403}`, ReasonPrivate, 403},
		{"gone", "t3_aa1", `{"error": 404}`, ReasonGone, 404},
		{"no thread", "t3_aa1", listing(), ReasonBadReply, 200},
		{"one listing", "t3_aa1", "[" + listing() + "]", ReasonBadReply, 200},
		{"no post", "t3_aa1", thread(``), ReasonBadReply, 200},
		{"another thread", "t3_bb1", thread(apiPost("aa1", "")), ReasonBadReply, 200},
		{"a comment", "t1_cc1", ``, ReasonBadRequest, 200},
		{"no id", "t3_aa1/../x", ``, ReasonBadRequest, 200},
	} {
		o := newOutside(t, func(rw http.ResponseWriter, _ *http.Request) { reply(rw, tt.status, tt.body) })
		_, err := o.reddit(fetch.Live).Thread(t.Context(), tt.id)
		e := wantError(t, err, tt.reason)
		if excluded := e.Excluded() != ""; excluded != (tt.status != 200) {
			t.Errorf("%s: excluded %v: %v", tt.name, excluded, err)
		}
	}
}

// FuzzThread reads a thread and the answer that unfolds it. Whatever they hold, it ends within its
// bounds, and no placeholder is a comment.
func FuzzThread(f *testing.F) {
	for _, seed := range []string{
		thread(apiPost("aa1", ""), apiComment("c1", "t3_aa1", "[deleted]"), apiComment("c3", "t3_aa1", realBody, apiComment("c4", "t1_c3", "[removed]")), apiMore("t3_aa1", "c5", 2, "c5", "c6"), apiMore("t1_c3", "_", 0)),
		moreReply(apiComment("c5", "t1_zz9", laterBody), apiMore("t1_c5", "_", 0), apiMore("t1_c5", "c9", 1, "c9")),
		`[{"kind":"Listing","data":{"children":[{"kind":"t3","data":{"id":"aa1","num_comments":"1e3"}}]}},{"kind":"Listing","data":{"children":null}}]`,
		`{"json":{"data":{"things":[{"kind":"more","data":{"children":[1,null,"_"],"parent_id":null}}]}}}`,
	} {
		f.Add([]byte(seed), []byte(seed))
	}
	for _, name := range []string{"dump_reddit_listing.json"} {
		data, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, data)
	}
	f.Fuzz(func(t *testing.T, page, more []byte) {
		u := newUnfolding("aa1")
		_ = u.page(page)
		r := NewReddit(RedditOptions{})
		for n := 0; n < threadRequests; n++ {
			_, read, _, ok := u.next(r)
			if !ok {
				break
			}
			_ = read(more)
		}
		got := u.done()
		for id, n := range u.asks {
			if n > moreAsks {
				t.Errorf("%s was asked for %d times", id, n)
			}
		}
		seen := map[string]bool{}
		for _, c := range got.Comments {
			if c.Text == "" || placeholder(c.Text) != "" || seen[c.ID] {
				t.Errorf("comment %+v", c)
			}
			seen[c.ID] = true
		}
		if got.Record() == "" || len(got.Unresolved) > len(u.queue) {
			t.Errorf("%s, %d unresolved", got.Record(), len(got.Unresolved))
		}
	})
}
