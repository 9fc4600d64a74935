package assay

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay/corpus"
	"assay/kv"
	"assay/pipeline"
)

const (
	redditID     = "approved-client-id"
	redditSecret = "approved-client-secret"
	redditToken  = "token-of-the-day-0123456789"
	takenAway    = "What its author took back about the herring."
)

// A redditWeb plays Reddit's interface, the archive and a SearXNG, each with the same posts.
type redditWeb struct {
	server *httptest.Server
	mu     sync.Mutex
	visits []string
	engine string // what SearXNG answers
	gone   string // id of a post that Reddit knows no more
}

func newRedditWeb(t *testing.T) *redditWeb {
	w := &redditWeb{}
	w.server = httptest.NewServer(w)
	t.Cleanup(w.server.Close)
	return w
}

func (w *redditWeb) addr() string { return w.server.Listener.Addr().String() }

// asked takes the requests since the last time, without those for a token.
func (w *redditWeb) asked() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.visits
	w.visits = nil
	return out
}

func herringPost(id, fields string) string {
	return `{"id": "` + id + `", "name": "t3_` + id + `", "subreddit": "harborville", "author": "invented_author", "title": "Herring tolls", "num_comments": 2,
		"selftext": "The herring tolls of the harbor doubled in spring, says post ` + id + ` of the harbor board.", "is_self": true, "created_utc": 1552908000,
		"permalink": "/r/harborville/comments/` + id + `/herring/"` + fields + `}`
}

var herring = map[string]string{
	"aa1": herringPost("aa1", ""), "aa2": herringPost("aa2", ""),
	"aa3": herringPost("aa3", `, "selftext": "[deleted]"`),
	"aa4": herringPost("aa4", `, "selftext": "[removed]", "removed_by_category": "moderator"`),
}

func (w *redditWeb) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	rw.Header().Set("Content-Type", "application/json; charset=UTF-8")
	if r.URL.Path == "/token" {
		if id, secret, _ := r.BasicAuth(); id != redditID || secret != redditSecret {
			rw.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(rw, `{"message": "Unauthorized", "error": 401, "error_description": "%s is not %s"}`, secret, redditSecret)
			return
		}
		fmt.Fprintf(rw, `{"access_token": %q, "token_type": "bearer", "expires_in": 86400}`, redditToken)
		return
	}
	w.visits = append(w.visits, r.URL.RequestURI())
	q := r.URL.Query()
	var ids []string
	for _, id := range strings.FieldsFunc(q.Get("id")+q.Get("ids"), func(r rune) bool { return r == ',' }) {
		if id = strings.TrimPrefix(id, "t3_"); id != w.gone {
			ids = append(ids, id)
		}
	}
	switch r.URL.Path {
	case "/searx/search":
		fmt.Fprint(rw, w.engine)
		return
	case "/brave/res/v1/web/search":
		if r.Header.Get("X-Subscription-Token") != redditSecret {
			rw.WriteHeader(http.StatusUnauthorized)
			return
		}
		fmt.Fprint(rw, `{"query": {"more_results_available": false}, "web": {"results": [{"url": "https://www.reddit.com/r/harborville/comments/aa2/herring/"}, {"url": "https://elsewhere.example/"}]}}`)
		return
	case "/wiki/w/api.php":
		page := `{"pageid": 7, "ns": 0, "title": "Herring toll", "canonicalurl": "https://en.wikipedia.org/wiki/Herring_toll", "extract": "The herring tolls of the harbor doubled in spring, as its articles tell.", "revisions": [{"revid": 70, "timestamp": "2026-01-02T03:04:05Z"}]}`
		switch {
		case q.Get("titles") != "":
			page = `{"ns": 0, "title": "x", "missing": true}`
		case q.Get("list") != "":
			fmt.Fprint(rw, `{"batchcomplete": true, "query": {"search": [{"ns": 0, "pageid": 7, "title": "Herring toll"}]}}`)
			return
		}
		fmt.Fprintf(rw, `{"batchcomplete": true, "query": {"pages": [%s]}}`, page)
		return
	case "/archive/api/posts/ids":
		known := map[string]string{"aa1": herring["aa1"], "aa2": herring["aa2"], "aa3": herringPost("aa3", `, "selftext": "`+takenAway+`", "_meta": {"was_deleted_later": true, "removal_type": "deleted"}`)}
		fmt.Fprintf(rw, `{"data": [%s]}`, strings.Join(things(ids, known, "%s"), ","))
		return
	case "/archive/api/posts/search":
		fmt.Fprintf(rw, `{"data": [%s]}`, strings.Join(things([]string{"aa1", "aa2"}, herring, "%s"), ","))
		return
	}
	if r.Header.Get("Authorization") != "Bearer "+redditToken {
		rw.Header().Set("WWW-Authenticate", `Bearer realm="reddit", error="invalid_token"`)
		rw.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(rw, `{"error": 401}`)
		return
	}
	child := `{"kind": "t3", "data": %s}`
	listing := `{"kind": "Listing", "data": {"after": null, "children": [%s]}}`
	switch r.URL.Path {
	case "/reddit/search":
		gone := `{"kind": "t3", "data": {"id": "aa5", "title": "Herring", "selftext": "", "subreddit": "harborville"}}`
		fmt.Fprintf(rw, listing, strings.Join(append(things([]string{"aa1", "aa2", "aa3", "aa4"}, herring, child), gone), ","))
	case "/reddit/api/info":
		fmt.Fprintf(rw, listing, strings.Join(things(ids, herring, child), ","))
	case "/reddit/comments/aa1":
		comment := `{"kind": "t1", "data": {"id": "%s", "parent_id": "t3_aa1", "link_id": "t3_aa1", "subreddit": "harborville", "body": %q, "replies": ""}}`
		fmt.Fprintf(rw, "["+listing+","+listing+"]", things([]string{"aa1"}, herring, child)[0],
			fmt.Sprintf(comment, "cc1", "They doubled for strangers alone, as the board's own table of herring tolls shows.")+","+fmt.Sprintf(comment, "cc2", "[removed]"))
	default:
		rw.WriteHeader(http.StatusNotFound)
		fmt.Fprint(rw, `{"message": "Not Found", "error": 404}`)
	}
}

func things(ids []string, known map[string]string, form string) (out []string) {
	for _, id := range ids {
		if p, ok := known[id]; ok {
			out = append(out, fmt.Sprintf(form, p))
		}
	}
	return out
}

func (w *redditWeb) config(planner string) string {
	return `recipe:
  name: herring
  discover: [imported]
  speakers: []
  dates: {from: "", to: ""}
  evidence: [search]
  planner: {variants: 0, ` + planner + `}
runtime:
  contact: mailto:crawl@assay.example
  delay: 0s
  allow_private: ["` + w.addr() + `"]
  reddit:
    client_id_env: HERRING_ID
    client_secret_env: HERRING_SECRET
    user_agent: "test:example.assay:1.0 (by /u/nobody)"
    base: http://` + w.addr() + `/reddit
    token_url: http://` + w.addr() + `/token
  arctic_shift: {base: "http://` + w.addr() + `/archive"}
  searxng: {base: "http://` + w.addr() + `/searx"}
  search: {brave: {base: "http://` + w.addr() + `/brave", key_env: HERRING_SECRET}, wikipedia: {base: "http://` + w.addr() + `/wiki"}}
`
}

// herringWorkspace opens a workspace with two imported claims; closed closes it before the test's end.
func herringWorkspace(t *testing.T, dir, config string) (w *Workspace, closed func()) {
	t.Helper()
	t.Setenv("HERRING_ID", redditID)
	t.Setenv("HERRING_SECRET", redditSecret)
	table := filepath.Join(dir, "claims.csv")
	if err := os.WriteFile(filepath.Join(dir, ConfigName), []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(table, []byte("claim,verdict\nThe herring tolls of the harbor doubled.,true\nHerring tolls of the harbor rose in spring.,false\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	var passed time.Duration // nobody waits: time passes when somebody would
	var mu sync.Mutex
	w, err := Open(t.Context(), dir, OpenOptions{
		Now: func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			return time.Now().Add(passed)
		},
		Sleep: func(ctx context.Context, d time.Duration) error {
			mu.Lock()
			defer mu.Unlock()
			passed += d
			return ctx.Err()
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	closed = sync.OnceFunc(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(closed)
	if _, err := w.Import(t.Context(), "claims-table", table, ImportOptions{}); err != nil {
		t.Fatal(err)
	}
	return w, closed
}

func stageOf(t *testing.T, rep BuildReport, name string) pipeline.StageReport {
	t.Helper()
	for _, s := range rep.Pipeline.Stages {
		if s.Name == name {
			return s
		}
	}
	return pipeline.StageReport{}
}

// Posts that a search finds are read by their ids, once for all claims, with one request; what was
// taken away is an outcome; the next build asks for nothing, and another source of the same posts
// labels nothing again.
func TestPostsReadByID(t *testing.T) {
	web := newRedditWeb(t)
	dir := t.TempDir()
	w, closed := herringWorkspace(t, dir, web.config("backend: reddit, posts: oauth"))
	rep, err := w.Build(t.Context(), BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	doc := stageOf(t, rep, "document/reddit")
	if diff := cmp.Diff(map[string]int{"deleted": 1, "removed": 1, "gone": 1}, doc.Exclusions); diff != "" || doc.Ran != 5 || doc.Failed != 0 {
		t.Errorf("documents %+v (-want +got):\n%s", doc, diff)
	}
	if n := stageOf(t, rep, "label/raguard").Ran; n != 4 {
		t.Errorf("%d labels, want 4", n)
	}
	searches, infos := 0, 0
	for _, v := range web.asked() {
		switch {
		case strings.HasPrefix(v, "/reddit/search?"):
			searches++
		case strings.HasPrefix(v, "/reddit/api/info?id=t3_"):
			infos++
		default:
			t.Errorf("%s was asked for", v)
		}
	}
	if searches != 2 || infos > 2 { // both claims may be at it at once
		t.Errorf("%d searches, %d requests for posts", searches, infos)
	}
	noSecretsIn(t, w, rep)
	again, err := w.Build(t.Context(), BuildOptions{})
	if err != nil || len(web.asked()) != 0 || stageOf(t, again, "document/reddit").Ran != 0 || stageOf(t, again, "label/raguard").Ran != 0 {
		t.Errorf("a second build ran %+v, %v", again.Pipeline.Stages, err)
	}
	closed()
	w, _ = herringWorkspace(t, dir, web.config("backend: reddit, posts: arctic_shift"))
	other, err := w.Build(t.Context(), BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	doc = stageOf(t, other, "document/reddit")
	if diff := cmp.Diff(map[string]int{"deleted": 1, "gone": 2}, doc.Exclusions); diff != "" || doc.Ran != 5 {
		t.Errorf("documents of the archive %+v (-want +got):\n%s", doc, diff)
	}
	if n := stageOf(t, other, "label/raguard").Ran; n != 0 || other.LLM.Calls != 0 {
		t.Errorf("%d labels and %d calls for posts that read the same", n, other.LLM.Calls)
	}
	for _, v := range web.asked() {
		if !strings.HasPrefix(v, "/archive/api/posts/ids?ids=t3_") {
			t.Errorf("%s was asked for", v)
		}
	}
	noSecretsIn(t, w, other)
}

// noSecretsIn looks for secrets wherever a workspace writes, and for what an author took back wherever
// it is read from: the release, the records of calls, the reports.
func noSecretsIn(t *testing.T, w *Workspace, rep BuildReport) {
	t.Helper()
	status, err := w.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	settings, err := json.Marshal([]any{rep, status, w.Settings})
	if err != nil {
		t.Fatal(err)
	}
	written := map[string][]byte{"reports": settings}
	err = filepath.WalkDir(w.Dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		written[path], err = os.ReadFile(path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, bucket := range w.store.Buckets() { // what is compressed in the files
		var b bytes.Buffer
		for e, err := range kv.In[json.RawMessage](w.store, bucket, 1).Scan("", "") {
			if err == nil {
				b.WriteString(e.Key)
				b.Write(e.Value)
			}
		}
		for e, err := range kv.In[[]byte](w.store, bucket, 1).Scan("", "") {
			if err == nil {
				b.Write(e.Value)
			}
		}
		written["bucket "+bucket] = b.Bytes()
	}
	var calls bytes.Buffer
	for r, err := range w.llm.Calls() {
		if err != nil {
			t.Fatal(err)
		}
		if err := json.NewEncoder(&calls).Encode(r); err != nil {
			t.Fatal(err)
		}
	}
	written["calls"] = calls.Bytes()
	archive := filepath.Join(t.TempDir(), "x.warc.gz")
	if _, err := w.Archive(t.Context(), archive, ArchiveOptions{}); err != nil {
		t.Fatal(err)
	}
	packed, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	unpacked, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	if written["archive"], err = io.ReadAll(unpacked); err != nil || !bytes.Contains(written["archive"], []byte("/reddit/search?")) {
		t.Fatalf("the archive holds no search: %v", err)
	}
	basic := base64.StdEncoding.EncodeToString([]byte(redditID + ":" + redditSecret))
	released := false
	for name, data := range written {
		for _, secret := range []string{redditID, redditSecret, redditToken, basic} {
			if bytes.Contains(data, []byte(secret)) {
				t.Errorf("%s holds %q", name, secret)
			}
		}
		readable := strings.Contains(name, string(filepath.Separator)+"release"+string(filepath.Separator)) || name == "calls" || name == "reports"
		released = released || readable && strings.HasSuffix(name, "documents.jsonl")
		for _, gone := range []string{takenAway, "invented_author", "[deleted]", "[removed]"} {
			if readable && bytes.Contains(data, []byte(gone)) {
				t.Errorf("%s holds %q", name, gone)
			}
		}
	}
	if !released {
		t.Error("there is no release")
	}
}

// A wrong secret ends the run, and the error says which variable it stands in, not what.
func TestWrongRedditCredentials(t *testing.T) {
	web := newRedditWeb(t)
	w, _ := herringWorkspace(t, t.TempDir(), web.config("backend: reddit, posts: oauth"))
	t.Setenv("HERRING_SECRET", "a-wrong-one-that-is-long")
	rep, err := w.Build(t.Context(), BuildOptions{})
	if err == nil || !strings.Contains(err.Error(), "credentials") {
		t.Errorf("error = %v, report %+v", err, rep.Pipeline.Stages)
	}
	t.Setenv("HERRING_SECRET", "")
	if err == nil || strings.Contains(err.Error(), "a-wrong-one") || strings.Contains(err.Error(), redditID) || len(web.asked()) != 0 {
		t.Errorf("error = %v", err)
	}
}

// A search that nobody carried out fails and is done again; one that finds nothing is an answer.
func TestSearXNGInABuild(t *testing.T) {
	web := newRedditWeb(t)
	w, _ := herringWorkspace(t, t.TempDir(), web.config("backend: searxng, posts: oauth"))
	web.engine = `{"results": [], "unresponsive_engines": [["brave", "too many requests"]]}`
	rep, err := w.Build(t.Context(), BuildOptions{})
	plan := stageOf(t, rep, "plan/raguard")
	if err != nil || plan.Failed != 2 || plan.Excluded != 0 {
		t.Errorf("plans %+v, %v", plan, err)
	}
	web.asked()
	web.engine = `{"results": [{"url": "https://www.reddit.com/r/harborville/comments/aa2/herring/"}, {"url": "http://169.254.169.254/latest/meta-data/"}, {"url": "http://` + web.addr() + `/inside"}], "unresponsive_engines": [["brave", "too many requests"]]}`
	if rep, err = w.Build(t.Context(), BuildOptions{}); err != nil || stageOf(t, rep, "plan/raguard").Failed != 0 || stageOf(t, rep, "label/raguard").Ran != 2 {
		t.Errorf("stages %+v, %v", rep.Pipeline.Stages, err)
	}
	for _, v := range web.asked() {
		if !strings.HasPrefix(v, "/searx/search?") && v != "/reddit/api/info?id=t3_aa2&raw_json=1" {
			t.Errorf("%s was asked for", v)
		}
	}
}

// A paid search is money of the run: it stands in the report and in the status, a cap stops it, and what
// is stored costs nothing.
func TestPaidSearchInABuild(t *testing.T) {
	web := newRedditWeb(t)
	dir := t.TempDir()
	config := web.config("backend: brave, posts: oauth")
	w, closed := herringWorkspace(t, dir, config+"  max_usd: 0.0075\n")
	rep, err := w.Build(t.Context(), BuildOptions{}) // $0.005 for each of two claims
	var spent interface{ FailureClass() string }
	if !errors.As(err, &spent) || spent.FailureClass() != pipeline.ClassBudget || rep.Fetch.Paid != 1 || rep.Fetch.USD != 0.005 {
		t.Fatalf("%d searches for $%g, %v", rep.Fetch.Paid, rep.Fetch.USD, err)
	}
	if got := w.Spending(); !strings.Contains(got, "1 of them for $0.0050") {
		t.Errorf("spending: %s", got)
	}
	closed()
	w, _ = herringWorkspace(t, dir, config)
	if rep, err = w.Build(t.Context(), BuildOptions{}); err != nil || rep.Fetch.Paid != 1 || stageOf(t, rep, "plan/raguard").Failed != 0 || stageOf(t, rep, "label/raguard").Ran != 2 {
		t.Errorf("%d searches, %v, stages %+v", rep.Fetch.Paid, err, rep.Pipeline.Stages)
	}
	if !strings.Contains(rep.Text(false), "1 of them for $0.0050") {
		t.Error(rep.Text(false))
	}
	if again, err := w.Build(t.Context(), BuildOptions{}); err != nil || again.Fetch.Requests != rep.Fetch.Requests || again.Fetch.USD != 0.005 {
		t.Errorf("after another build: %d requests for $%g in all, %v", again.Fetch.Requests, again.Fetch.USD, err)
	}
	if s, err := w.Status(t.Context()); err != nil || s.Searches.Requests != 2 || s.Searches.USD != 0.01 {
		t.Errorf("searches %+v, %v", s.Searches, err)
	}
}

// Articles of an encyclopedia are documents by their own ids, read through its interface, with revision
// and licence.
func TestWikipediaInABuild(t *testing.T) {
	web := newRedditWeb(t)
	w, _ := herringWorkspace(t, t.TempDir(), web.config("backend: wikipedia"))
	rep, err := w.Build(t.Context(), BuildOptions{})
	if err != nil || stageOf(t, rep, "document/wikipedia").Ran != 1 || stageOf(t, rep, "label/raguard").Ran != 2 {
		t.Errorf("stages %+v, %v", rep.Pipeline.Stages, err)
	}
	shown, err := w.Show(t.Context(), "wikipedia:en:7")
	if err != nil || !strings.Contains(string(shown), `"revision":"70"`) && !strings.Contains(string(shown), `"revision": "70"`) || !strings.Contains(string(shown), "CC BY-SA 4.0") {
		t.Errorf("%s, %v", shown, err)
	}
}

func TestArcticShiftInABuild(t *testing.T) {
	web := newRedditWeb(t)
	w, _ := herringWorkspace(t, t.TempDir(), web.config("backend: arctic_shift, posts: arctic_shift, subreddits: [harborville]"))
	rep, err := w.Build(t.Context(), BuildOptions{})
	if err != nil || stageOf(t, rep, "label/raguard").Ran != 4 {
		t.Errorf("stages %+v, %v", rep.Pipeline.Stages, err)
	}
	for _, v := range web.asked() {
		if !strings.HasPrefix(v, "/archive/") {
			t.Errorf("%s was asked for", v)
		}
	}
}

// A thread is imported by the id or the address of its post; of what was removed the pool holds no word.
func TestImportThread(t *testing.T) {
	web := newRedditWeb(t)
	dir := t.TempDir()
	w, _ := herringWorkspace(t, dir, web.config("backend: reddit, posts: oauth"))
	for _, name := range []string{"t3_aa1", "aa1", "https://old.reddit.com/r/harborville/comments/aa1/herring/"} {
		r, err := w.Import(t.Context(), "thread", name, ImportOptions{})
		if err != nil || len(r.Problems) != 0 || r.Counts["comments"] != 1 || r.Counts["comments removed"] != 1 {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
	pooled, ok, err := w.tables.Pool.Get("reddit:t3_aa1")
	if diff := cmp.Diff([]string{"complete: yes, 1 of 2"}, pooled.Notes); err != nil || !ok || diff != "" {
		t.Errorf("%v, %v, notes (-want +got):\n%s", ok, err, diff)
	}
	for id, want := range map[string]corpus.BodyStatus{"reddit:t1_cc1": corpus.BodyFull, "reddit:t1_cc2": corpus.BodyRemoved} {
		if d, ok, err := w.pooled(id); !ok || err != nil || d.BodyStatus != want || (d.Text == "") != (want == corpus.BodyRemoved) {
			t.Errorf("%s in the pool: %+v, %v, %v", id, d, ok, err)
		}
	}
	for _, name := range []string{"https://www.reddit.com/r/harborville/", "t3_zz9"} {
		if _, err := w.Import(t.Context(), "thread", name, ImportOptions{}); err == nil {
			t.Errorf("%s was imported", name)
		}
	}
}

func TestInterfaceSettings(t *testing.T) {
	agent := `user_agent: "linux:org.example.assay:1.0 (by /u/nobody)"`
	for _, tt := range []struct{ name, yaml, want string }{
		{"defaults", ``, ""},
		{"reddit", "recipe:\n  planner: {backend: reddit, posts: oauth}\nruntime:\n  reddit: {" + agent + "}\n", ""},
		{"an unknown source", "recipe:\n  planner: {posts: scraped}\n", `"scraped" is none of pool, oauth, arctic_shift`},
		{"an unknown backend", "recipe:\n  planner: {backend: bong}\n", `"bong" is none of arctic_shift, `},
		{"a backend that is no more", "recipe:\n  planner: {backend: bing}\n", "retired on 2025-08-11"},
		{"a tool of an engine that is no more", "recipe:\n  planner: {policy: gpe, agent: {engines: {news: bing}}}\n", "retired on 2025-08-11"},
		{"a newsroom by its host", "recipe:\n  planner: {policy: gpe, agent: {newsrooms: [www.bbc.com]}}\n", "without www and path"},
		{"a newsroom by its page", "recipe:\n  planner: {policy: gpe, agent: {newsrooms: [bbc.com/news]}}\n", "without www and path"},
		{"a search by key", "recipe:\n  planner: {backend: brave}\n", ""},
		{"a free plan", "recipe:\n  planner: {backend: brave}\nruntime:\n  search: {brave: {usd_per_1000: 0}}\n", ""},
		{"a negative price", "runtime:\n  search: {tavily: {usd_per_1000: -1}}\n", "runtime.search.tavily.usd_per_1000"},
		{"a price of no day", "runtime:\n  search: {tavily: {price_date: yesterday}}\n", "runtime.search.tavily.price_date"},
		{"a key in the place of its name", "runtime:\n  search: {brave: {key_env: BSA-secret/0123}}\n", "take it out of the file"},
		{"no name for the key", "recipe:\n  planner: {backend: brave}\nruntime:\n  search: {brave: {key_env: \"\"}}\n", "runtime.search.brave.key_env"},
		{"an engine that is none", "runtime:\n  search: {brabe: {base: \"https://x.example\"}}\n", "is no backend with settings here"},
		{"a typo in its settings", "runtime:\n  search: {brave: {key: X}}\n", `unknown key "key"`},
		{"a key over plain http", "recipe:\n  planner: {backend: serper}\nruntime:\n  search: {serper: {base: \"http://search.example\"}}\n", "over https alone"},
		{"Google without an engine", "recipe:\n  planner: {backend: google_cse}\n", "runtime.search.google_cse.engine_id"},
		{"Google with one", "recipe:\n  planner: {backend: google_cse}\nruntime:\n  search: {google_cse: {engine_id: e1}}\n", ""},
		{"a language that is none", "recipe:\n  planner: {backend: wikipedia, language: English}\n", "recipe.planner.language"},
		{"German", "recipe:\n  planner: {backend: wikipedia, language: de}\n", ""},
		{"X by mistake", "recipe:\n  planner: {backend: x}\n", "runtime.search.x.on"},
		{"X on purpose", "recipe:\n  planner: {backend: x}\nruntime:\n  search: {x: {on: true}}\n", ""},
		{"no User-Agent", "recipe:\n  planner: {posts: oauth}\n", "runtime.reddit.user_agent"},
		{"a browser's User-Agent", "recipe:\n  planner: {backend: reddit}\nruntime:\n  reddit: {user_agent: Mozilla/5.0}\n", "is not what Reddit asks for"},
		{"no variable", "recipe:\n  planner: {posts: oauth}\nruntime:\n  reddit: {client_secret_env: \"\", " + agent + "}\n", "runtime.reddit.client_secret_env"},
		{"plain http", "recipe:\n  planner: {posts: oauth}\nruntime:\n  reddit: {base: \"http://api.example\", " + agent + "}\n", "over https alone"},
		{"a subreddit with a prefix", "recipe:\n  planner: {subreddits: [r/politics]}\n", "recipe.planner.subreddits"},
		{"an archive without subreddits", "recipe:\n  planner: {backend: arctic_shift}\n", "named subreddits alone"},
		{"no SearXNG", "recipe:\n  planner: {backend: searxng}\n", "runtime.searxng.base"},
		{"a private SearXNG", "recipe:\n  planner: {backend: searxng}\nruntime:\n  searxng: {base: \"http://127.0.0.1:8888\"}\n", "runtime.allow_private"},
		{"a private SearXNG that is listed", "recipe:\n  planner: {backend: searxng}\nruntime:\n  searxng: {base: \"http://127.0.0.1:8888\"}\n  allow_private: [\"127.0.0.1:8888\"]\n", ""},
		{"what is not used is not checked", "recipe:\n  evidence: [pairs]\n  planner: {backend: searxng}\n", ""},
	} {
		_, settings, err := parseConfig([]byte(tt.yaml), nil, nil)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: error = %v, want one with %q", tt.name, err, tt.want)
		}
		known := map[string]bool{}
		for _, s := range settings {
			known[s.Key] = true
		}
		for _, key := range []string{"recipe.planner.posts", "recipe.planner.subreddits", "runtime.reddit.client_secret_env", "runtime.arctic_shift.base", "runtime.searxng.base", "runtime.search.brave.key_env", "runtime.search.gdelt.base"} {
			if err == nil && !known[key] {
				t.Errorf("%s: config show does not list %s", tt.name, key)
			}
		}
	}
}
