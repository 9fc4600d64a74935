package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
)

// What the thread of HD-11 says, and what was taken away from it. An archive may hold the latter still.
const (
	threadAddress = "https://www.reddit.com/r/harborville/comments/th1/herring/"
	threadClaim   = "The herring tolls of the harbor doubled in spring."
	keptRemark    = "The herring tolls of the harbor rose by a third in spring, says the board's own table."
	lateRemark    = "For residents the herring tolls of the harbor did not rise, which the minutes of spring leave out."
	takenRemark   = "Herring tolls of the harbor: my neighbour Zebedee pays them in spring and told me how much."
)

// A remark is a comment of the thread: c1 and c2 were taken away, c5 answers one that is nowhere, c6 never comes.
type remark struct{ id, parent, body string }

var (
	remarks = []remark{{"c1", "t3_th1", "[deleted]"}, {"c2", "t3_th1", "[removed]"}, {"c3", "t3_th1", keptRemark}}
	late    = remark{"c5", "t1_zz9", lateRemark}
)

// fields are those of Reddit; an archive tells those of a comment that it read before it was taken away.
func (r remark) fields(archive bool) map[string]any {
	f := map[string]any{
		"id": r.id, "name": "t1_" + r.id, "parent_id": r.parent, "link_id": "t3_th1", "subreddit": "harborville", "author": "invented_author", "body": r.body,
		"created_utc": 1552909000, "permalink": strings.TrimPrefix(threadAddress, "https://www.reddit.com") + r.id + "/", "replies": "",
	}
	switch {
	case r.body == "[deleted]":
		f["author"] = nil
		if archive {
			f["body"], f["_meta"] = takenRemark, map[string]any{"was_deleted_later": true, "removal_type": "deleted"}
		}
	case r.body == "[removed]" && archive:
		f["body"], f["removed_by_category"] = takenRemark, "moderator"
	}
	return f
}

func threadPost() map[string]any {
	return map[string]any{
		"id": "th1", "name": "t3_th1", "subreddit": "harborville", "author": "invented_author", "title": "Harbor board", "selftext": "", "is_self": true, "num_comments": 7,
		"created_utc": 1552908000, "permalink": strings.TrimPrefix(threadAddress, "https://www.reddit.com"), "url": threadAddress,
	}
}

func thing(kind string, data map[string]any) map[string]any {
	return map[string]any{"kind": kind, "data": data}
}

func redditListing(children ...map[string]any) map[string]any {
	return thing("Listing", map[string]any{"after": nil, "children": children})
}

func more(id string, count int, children ...string) map[string]any {
	return thing("more", map[string]any{"id": id, "name": "t1_" + id, "parent_id": "t3_th1", "count": count, "depth": 0, "children": append([]string{}, children...)})
}

// wholeThread is the thread as Reddit's interface gives it, with further comments and what is folded away.
func wholeThread(further ...map[string]any) []map[string]any {
	var list []map[string]any
	for _, r := range remarks {
		list = append(list, thing("t1", r.fields(false)))
	}
	return []map[string]any{redditListing(thing("t3", threadPost())), redditListing(append(append(list, further...), more("_", 0))...)}
}

func encoded(v any) string { return string(must(json.Marshal(v))) }

// threadSite is a workspace with the thread's claim, whose web plays Reddit's interface, the archive and a
// SearXNG that finds posts which link to its comments.
func threadSite(t *testing.T, planner string) (*lab, *web) {
	t.Helper()
	w := newWeb(t)
	w.on("oauth.example/token", says("application/json", `{"access_token": "token-0123456789", "token_type": "bearer", "expires_in": 86400}`))
	asJSON := func(v any) http.HandlerFunc { return says("application/json; charset=UTF-8", encoded(v)) }
	w.on("oauth.example/search", asJSON(redditListing(thing("t3", threadPost()))))
	w.on("oauth.example/comments/th1", asJSON(wholeThread(more("c5", 2, "c5", "c6"))))
	w.on("oauth.example/api/morechildren", func(rw http.ResponseWriter, r *http.Request) {
		things := []map[string]any{}
		if strings.Contains(r.URL.Query().Get("children"), "c5") {
			things = append(things, thing("t1", late.fields(false)))
		}
		asJSON(map[string]any{"json": map[string]any{"errors": []string{}, "data": map[string]any{"things": things}}})(rw, r)
	})
	// byID are the things that a request names: comments of the thread, its post, and posts that link to a comment.
	byID := func(r *http.Request, archive bool) []map[string]any {
		out := []map[string]any{}
		for _, name := range strings.Split(r.URL.Query().Get("id")+r.URL.Query().Get("ids"), ",") {
			kind, id, _ := strings.Cut(name, "_")
			for _, c := range append(slices.Clone(remarks), late) {
				if kind == "t1" && id == c.id {
					out = append(out, thing(kind, c.fields(archive)))
				}
			}
			if to, ok := strings.CutPrefix(id, "to"); ok {
				link := threadPost()
				link["id"], link["name"], link["is_self"], link["num_comments"] = id, name, false, 0
				link["permalink"], link["url"] = "/r/links/comments/"+id+"/x/", threadAddress+to+"/"
				out = append(out, thing(kind, link))
			}
			if id == "th1" {
				out = append(out, thing(kind, threadPost()))
			}
		}
		return out
	}
	w.on("oauth.example/api/info", func(rw http.ResponseWriter, r *http.Request) { asJSON(redditListing(byID(r, false)...))(rw, r) })
	archive := func(rw http.ResponseWriter, r *http.Request) {
		out := []any{}
		for _, c := range byID(r, true) {
			out = append(out, c["data"])
		}
		asJSON(map[string]any{"data": out})(rw, r)
	}
	w.on("archive.example/api/posts/ids", archive)
	w.on("archive.example/api/comments/ids", archive)
	var hits []map[string]string
	for _, id := range []string{"c1", "c2", "c3", "c5", "c6"} {
		hits = append(hits, map[string]string{"url": "https://www.reddit.com/r/links/comments/to" + id + "/x/"})
	}
	w.on("searx.example/search", asJSON(map[string]any{"results": hits}))
	l := newSite(t, w, []string{"oauth.example", "archive.example", "searx.example"}, setup{
		"recipe.discover": "[imported]", "recipe.models": stubbed, "recipe.label": "{zero_context: false, quote_check: false}", "recipe.planner": planner,
		"runtime.reddit":       `{client_id_env: THREAD_ID, client_secret_env: THREAD_SECRET, user_agent: "test:example.assay:1.0 (by /u/nobody)", base: "http://oauth.example", token_url: "http://oauth.example/token"}`,
		"runtime.arctic_shift": `{base: "http://archive.example"}`,
		"runtime.searxng":      `{base: "http://searx.example"}`,
	})
	l.env = []string{"THREAD_ID=client-0123456789", "THREAD_SECRET=secret-0123456789"}
	l.model.set(func(m *modelStub) {
		m.reply = func(body string) (int, string, string) {
			answer := `{"quote":"","reason":"says nothing of the kind","answer":"unrelated"}`
			switch {
			case strings.Contains(body, "Actions so far:"):
				tool := "reddit"
				if strings.Contains(planner, "web_support") {
					tool = "web_support"
				}
				answer = `{"action":"` + tool + `","subclaim_id":"s1","why":"nobody was asked yet","query":"herring tolls of the harbor"}`
			case strings.Contains(body, "credibility_shift"):
				answer = `{"quote":"","stance":"neutral","relevance":1,"credibility_shift":0,"attribution":"none","attributed_to":"","event_date":""}`
			}
			return http.StatusOK, answer, "stop"
		}
	})
	l.must(0, "import", "claims-table", l.write(filepath.Join(l.dir, "claims.csv"), "claim,verdict\n"+threadClaim+",true\n"))
	return l, w
}

// threadLines are the comments as a dump has them that was made before or after they were taken away.
func threadLines(archive bool) string {
	var b strings.Builder
	for _, r := range append(slices.Clone(remarks), late) {
		b.WriteString(encoded(r.fields(archive)) + "\n")
	}
	return b.String()
}

// importCount is a count that an import told.
func importCount(t *testing.T, out, name string) int {
	t.Helper()
	var reports []struct{ Counts map[string]int }
	if err := json.Unmarshal([]byte(out), &reports); err != nil || len(reports) != 1 {
		t.Fatalf("import: %v\n%s", err, out)
	}
	return reports[0].Counts[name]
}

const (
	fromPool = `{policy: gpe, agent: {tools: [web_support], engines: {web_support: local}, per_action: 9, max_actions: 1}}`
	byIDs    = "{variants: 0, follow_links: true, backend: searxng, per_variant: 20, keep: 20, posts: "
)

// threadRoutes are the ways by which the thread comes into a workspace that is then built.
var threadRoutes = map[string]func(t *testing.T) *lab{
	"thread": func(t *testing.T) *lab {
		l, w := threadSite(t, fromPool)
		// What an older dump held of the comments is gone with them.
		old := remarks[1]
		old.body = takenRemark
		l.must(0, "import", "reddit", l.write(filepath.Join(t.TempDir(), "old.ndjson"), encoded(old.fields(false))+"\n"))
		out, _ := l.must(3, "import", "thread", "t3_th1", "--json") // what is missing is told, and the rest is there
		counts := map[string]int{"comments": 2, "comments deleted": 1, "comments removed": 1, "comments unresolved": 1, "comments without their parent": 1}
		for name, want := range counts {
			if got := importCount(t, out, name); got != want {
				t.Errorf("%s %d, want %d", name, got, want)
			}
		}
		if !strings.Contains(out, "complete: no, 2 of 7") {
			t.Errorf("the import does not tell what is missing:\n%s", out)
		}
		checkAsks(t, w)
		return l
	},
	"by id": func(t *testing.T) *lab {
		l, _ := threadSite(t, byIDs+"oauth}")
		return l
	},
	"by id, from the archive": func(t *testing.T) *lab {
		l, _ := threadSite(t, byIDs+"arctic_shift}")
		return l
	},
	"linked": func(t *testing.T) *lab {
		l, w := threadSite(t, `{policy: gpe, posts: oauth, agent: {tools: [reddit], engines: {reddit: reddit}, comments: 10, per_action: 1, max_actions: 1}}`)
		l.build(0)
		checkAsks(t, w)
		trace, _ := l.must(0, "show", l.ls("plan")[0].Key)
		if !strings.Contains(trace, "complete: no, 2 of 7; 1 deleted, 1 removed") {
			t.Errorf("the trace does not tell of the thread:\n%s", trace)
		}
		return l
	},
	"as it was dumped":    func(t *testing.T) *lab { return dumped(t, "RC_2019-03", threadLines(false), 1, 0) },
	"dump of the archive": func(t *testing.T) *lab { return dumped(t, "RC.ndjson", threadLines(true), 1, 0) },
	"as a packed dump": func(t *testing.T) *lab {
		z := must(zstd.NewWriter(nil))
		return dumped(t, "RC_2019-03.zst", string(z.EncodeAll([]byte(threadLines(true)), nil)), 1, 0)
	},
	"as an array": func(t *testing.T) *lab {
		return dumped(t, "comments.json", "["+strings.ReplaceAll(strings.TrimSpace(threadLines(true)), "\n", ",")+"]", 1, 0)
	},
	"as a listing": func(t *testing.T) *lab {
		return dumped(t, "thread.json", encoded(wholeThread(thing("t1", late.fields(false)), more("c6", 1, "c6"))), 1, 1)
	},
	"as the archive replies": func(t *testing.T) *lab {
		return dumped(t, "reply.json", `{"data":[`+strings.ReplaceAll(strings.TrimSpace(threadLines(true)), "\n", ",")+`]}`, 1, 0)
	},
	"two dumps, the older one last": func(t *testing.T) *lab {
		l := dumped(t, "RC.ndjson", threadLines(true), 1, 0)
		var before strings.Builder
		for _, r := range remarks[:2] {
			r.body = takenRemark
			before.WriteString(encoded(r.fields(false)) + "\n")
		}
		l.must(0, "import", "reddit", l.write(filepath.Join(t.TempDir(), "before.ndjson"), before.String()))
		return l
	},
}

// dumped imports the thread from a file, which counts what is not in it.
func dumped(t *testing.T, name, data string, orphans, folded int) *lab {
	l, _ := threadSite(t, fromPool)
	out, _ := l.must(0, "import", "reddit", "--json", l.write(filepath.Join(t.TempDir(), name), data))
	for name, want := range map[string]int{"comments": 4, "body deleted": 1, "body removed": 1, "comments without their parent": orphans, "comments not in the dump": folded} {
		if got := importCount(t, out, name); got != want {
			t.Errorf("%s %d, want %d\n%s", name, got, want, out)
		}
	}
	return l
}

// checkAsks looks at what the thread cost.
func checkAsks(t *testing.T, w *web) {
	t.Helper()
	n, again := 0, 0
	for _, v := range w.asked("oauth.example") {
		if strings.HasPrefix(v.path, "/comments/") || strings.HasPrefix(v.path, "/api/morechildren") {
			n++
		}
		if strings.Contains(v.path, "c6") {
			again++
		}
	}
	if n > 6 || again > 2 || again == 0 {
		t.Errorf("the thread took %d requests, %d of them for c6", n, again)
	}
}

// HD-11 by every route: of a thread whose comments were taken away, answer what is nowhere or never come,
// what is there is evidence; the rest is counted, and reaches no prompt, no index and no release. An archive
// of the workspace gives the same.
func TestHD11ThreadsByEveryRoute(t *testing.T) {
	t.Parallel()
	for name, route := range threadRoutes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := route(t)
			first := l.build(0)
			checkThread(t, l, first)
			if strings.HasPrefix(name, "as ") {
				return // what another route brings too, in another form
			}
			again := l.fromArchive("x.wacz")
			r := again.build(0, "--replay")
			if diff := cmp.Diff(filesOf(t, first.Release.Dir), filesOf(t, r.Release.Dir)); diff != "" || r.Fetch.Requests != 0 || r.LLM.Calls != 0 {
				t.Errorf("from the archive: %d requests, %d calls, release (-first +again):\n%s", r.Fetch.Requests, r.LLM.Calls, diff)
			}
			checkThread(t, again, r)
			if name == "thread" {
				for _, of := range []*lab{l, again} {
					if out, _ := of.must(0, "show", "reddit:t3_th1"); !strings.Contains(out, `"complete: no, 2 of 7"`) {
						t.Errorf("the post does not tell how much of its thread was read:\n%s", out)
					}
				}
			}
		})
	}
}

func checkThread(t *testing.T, l *lab, r report) {
	t.Helper()
	got := map[string]string{}
	for _, row := range released(t, r.Release.Dir, "documents") {
		got[strings.TrimPrefix(row["id"].(string), "reddit:t1_")] = row["text"].(string)
	}
	if diff := cmp.Diff(map[string]string{"c3": keptRemark, "c5": lateRemark}, got); diff != "" {
		t.Errorf("documents (-want +got):\n%s", diff)
	}
	seen := strings.Join(l.model.sent(), "\n")
	for path := range filesOf(t, r.Release.Dir) {
		seen += string(must(os.ReadFile(filepath.Join(r.Release.Dir, path))))
	}
	for _, id := range []string{"reddit:t1_c1", "reddit:t1_c2", "reddit:t1_c5"} {
		out, _ := l.command("show", id).Output() // what is not there has nothing to show
		seen += string(out)
		if id != "reddit:t1_c5" {
			continue
		}
		pooled := len(l.ls("document")) == 0 // and not read by its id, when nobody sees the thread
		if !strings.Contains(string(out), `"parent": "reddit:t1_zz9"`) || strings.Contains(string(out), "parent_missing") != pooled {
			t.Errorf("c5 does not say what it answers, and that it is missing:\n%s", out)
		}
	}
	for _, word := range []string{"[deleted]", "[removed]", "Zebedee", "invented_author"} {
		if strings.Contains(seen, word) {
			t.Errorf("%q was sent, shown or released", word)
		}
	}
	if !strings.Contains(seen, "did not rise, which the minutes") {
		t.Error("what is there was neither sent nor released")
	}
	for _, p := range l.ls("plan") { // the index finds nothing of what is gone
		trace, _ := l.must(0, "show", p.Key)
		if strings.Contains(trace, "Zebedee") {
			t.Errorf("the trace holds what was taken away:\n%s", trace)
		}
	}
}
