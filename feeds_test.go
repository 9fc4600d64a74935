package assay

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"assay/fetch"
	"assay/pipeline"
	"assay/scrapers"
)

const claimKey = "key-of-nobody-0123456789"

// A claimWeb plays a feed and Fact Check Tools: a query of two pages, one without hits, one for which the
// quota is spent, and one that it does not understand.
type claimWeb struct {
	server *httptest.Server
	mu     sync.Mutex
	asked  []string
	feed   string
	broken bool // the feed ends early
}

func feedItemJSON(claim, rating, url string) string {
	return fmt.Sprintf(`{"@type":"DataFeedItem","item":[{"@type":"ClaimReview","claimReviewed":%q,"reviewRating":{"@type":"Rating","alternateName":%q},"url":%q,"author":{"name":"Quill Checks"}}]}`, claim, rating, url)
}

func newClaimWeb(t *testing.T) *claimWeb {
	w := &claimWeb{feed: `{"@type":"DataFeed","dataFeedElement":[` + feedItemJSON("Gulls are rented.", "False", "https://checks.example/gulls/") + `,{"@type":"DataFeedItem","item":null},17]}`}
	w.server = httptest.NewServer(w)
	t.Cleanup(w.server.Close)
	return w
}

func (w *claimWeb) visits() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.asked
	w.asked = nil
	return out
}

func (w *claimWeb) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r.URL.Path != "/robots.txt" {
		w.asked = append(w.asked, r.URL.RequestURI())
	}
	q := r.URL.Query()
	claim := func(text, url string) string {
		return fmt.Sprintf(`{"text":%q,"claimant":"Ben Otter","claimReview":[{"publisher":{"name":"Quill Checks","site":"checks.example"},"url":%q,"textualRating":"True","languageCode":"en"}]}`, text, url)
	}
	refuse := func(code int, status, message string) {
		rw.WriteHeader(code)
		fmt.Fprintf(rw, `{"error":{"code":%d,"status":%q,"message":%q}}`, code, status, message)
	}
	switch {
	case r.URL.Path == "/feed.json":
		text := w.feed
		if w.broken {
			text = text[:len(text)-8]
		}
		sum := fmt.Sprintf(`"%x"`, len(text))
		if rw.Header().Set("Etag", sum); r.Header.Get("If-None-Match") == sum {
			rw.WriteHeader(http.StatusNotModified)
			return
		}
		rw.Header().Set("Content-Type", "application/json")
		rw.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(rw)
		fmt.Fprint(z, text)
		z.Close()
	case r.URL.Path != "/v1alpha1/claims:search":
		http.NotFound(rw, r)
	case q.Get("key") != claimKey:
		refuse(http.StatusBadRequest, "INVALID_ARGUMENT", "API key not valid: "+q.Get("key"))
	case q.Get("query") == "nothing":
		fmt.Fprint(rw, `{}`)
	case q.Get("query") == "quota":
		refuse(http.StatusTooManyRequests, "RESOURCE_EXHAUSTED", "Quota exceeded")
	case q.Get("query") == "odd":
		refuse(http.StatusBadRequest, "INVALID_ARGUMENT", "Request contains an invalid argument.")
	case q.Get("query") == "circle":
		fmt.Fprintf(rw, `{"claims":[%s],"nextPageToken":"CAE"}`, claim("Circles turn.", "https://checks.example/circle/"))
	case q.Get("pageToken") == "":
		fmt.Fprintf(rw, `{"claims":[%s],"nextPageToken":"CAo"}`, claim("Bells ring.", "https://checks.example/bells/"))
	default:
		fmt.Fprintf(rw, `{"claims":[%s,{"text":"Nobody checked."}]}`, claim("Bells sing.", "https://checks.example/sing/"))
	}
}

func (w *claimWeb) config(feeds string) string {
	addr := w.server.Listener.Addr().String()
	return `recipe:
  name: feeds
  discover: [imported]
  speakers: []
  dates: {from: "", to: ""}
  evidence: [pairs]
  feeds: ` + strings.ReplaceAll(feeds, "$WEB", "http://"+addr) + `
runtime:
  contact: mailto:crawl@assay.example
  delay: 0s
  allow_private: ["` + addr + `"]
  fact_check_tools: {key_env: QUILL_KEY, base: "http://` + addr + `"}
`
}

// feedBuild builds once by a configuration in a folder.
func feedBuild(t *testing.T, dir, config string, o OpenOptions, change ...func(*Workspace)) (BuildReport, error) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, ConfigName), []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	o.Sleep = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	w, err := Open(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}()
	rep, err := w.Build(t.Context(), BuildOptions{Until: KindParse})
	for _, do := range change {
		do(w)
	}
	return rep, err
}

func storedRows(t *testing.T, table string, want int) func(*Workspace) {
	return func(w *Workspace) {
		t.Helper()
		if n, err := w.tables.Rows.Count(table); n != want || err != nil {
			t.Errorf("%d rows of %s, %v; want %d", n, table, err, want)
		}
	}
}

// A build reads its feeds once, follows the pages of a query, stores no key, and rebuilds from what is stored.
func TestFeedsOfARecipe(t *testing.T) {
	web, dir := newClaimWeb(t), t.TempDir()
	config := web.config(`[{table: claimreview, url: "$WEB/feed.json"}, {table: factcheck_tools, query: bells}, {table: factcheck_tools, query: nothing, publisher: checks.example}]`)
	t.Setenv("QUILL_KEY", claimKey)
	rep, err := feedBuild(t, dir, config, OpenOptions{}, storedRows(t, "claimreview", 1), storedRows(t, "factcheck_tools", 2))
	if err != nil || rep.Partial() {
		t.Fatalf("build: %v, %+v", err, rep.Pipeline)
	}
	asked := web.visits()
	if len(asked) != 4 || !strings.Contains(asked[2], "pageToken=CAo") || !strings.Contains(asked[2], "query=bells") || !strings.Contains(asked[1], claimKey) {
		t.Errorf("asked for %q", asked)
	}
	for name, want := range map[string]int{"discover/claimreview": 1, "discover/factcheck_tools": 2, "parse/claimreview": 1, "parse/factcheck_tools": 2} {
		if s := stageOf(t, rep, name); s.Ran != want || s.Failed != 0 {
			t.Errorf("%s: %+v, want %d to run", name, s, want)
		}
	}
	// Again, and without a web or a key: nothing is asked for, and nothing runs.
	t.Setenv("QUILL_KEY", "")
	for _, o := range []OpenOptions{{}, {Replay: true}} {
		rep, err = feedBuild(t, dir, config, o, func(w *Workspace) {
			for _, u := range asked[1:] {
				ex, err := w.fetch.Exchanges("http://" + web.server.Listener.Addr().String() + strings.Replace(strings.Replace(u, "key="+claimKey+"&", "", 1), "&key="+claimKey, "", 1))
				if err != nil || len(ex) != 1 {
					t.Errorf("%d exchanges with %s, %v", len(ex), u, err)
				}
				if raw, err := json.Marshal(ex); err != nil || bytes.Contains(raw, []byte(claimKey)) {
					t.Errorf("a key is stored: %s, %v", raw, err)
				}
			}
		})
		if err != nil || len(web.visits()) != 0 || stageOf(t, rep, "discover/factcheck_tools").Ran != 0 {
			t.Errorf("replay %v: %v, %+v", o.Replay, err, rep.Pipeline)
		}
	}
}

// What a service refuses is a failure of the feed alone, in classes; a key that is not taken ends the run.
func TestFeedFailures(t *testing.T) {
	web := newClaimWeb(t)
	feeds := `[{table: claimreview, url: "$WEB/feed.json"}, {table: claimreview, url: "$WEB/gone.json"}, {table: factcheck_tools, query: quota}, {table: factcheck_tools, query: odd}, {table: factcheck_tools, query: circle}]`
	web.broken = true
	t.Setenv("QUILL_KEY", claimKey)
	dir := t.TempDir()
	rep, err := feedBuild(t, dir, web.config(feeds), OpenOptions{}, storedRows(t, "claimreview", 1), storedRows(t, "factcheck_tools", 1), func(w *Workspace) {
		e := w.newEngine(pipeline.Options{Explain: true})
		for key, want := range map[string]string{
			"query=quota": "transient|quota", "query=odd": "permanent|bad_request", "query=circle": "transient|do not end", "feed.json": "permanent|unexpected EOF",
		} {
			found := false
			for info, err := range e.Items(KindDiscover) {
				if err != nil || !strings.Contains(info.Key, key) {
					continue
				}
				item, _, err := e.Item(info.Stage, info.Key)
				class, reason, _ := strings.Cut(want, "|")
				if err != nil || item.Fail == nil || item.Fail.Class != class || !strings.Contains(item.Fail.Reason, reason) || strings.Contains(item.Fail.Reason, claimKey) {
					t.Errorf("%s: %+v, %v; want %s", key, item.Fail, err, want)
				}
				found = true
			}
			if !found {
				t.Errorf("there is no item %s", key)
			}
		}
	})
	if err != nil || !rep.Partial() || stageOf(t, rep, "discover/claimreview").Excluded != 1 {
		t.Errorf("build: %v, %+v", err, rep.Pipeline)
	}

	for _, key := range []string{"", "some-other-key-0123"} {
		t.Setenv("QUILL_KEY", key)
		_, err := feedBuild(t, t.TempDir(), web.config(`[{table: factcheck_tools, query: bells}]`), OpenOptions{})
		var refused *scrapers.ServiceError
		if !errors.As(err, &refused) || refused.Reason != scrapers.ReasonCredentials || key != "" && strings.Contains(err.Error(), key) {
			t.Errorf("key %q: %v", key, err)
		}
	}
}

func TestImportOfAnAddress(t *testing.T) {
	web, dir := newClaimWeb(t), t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, ConfigName), []byte(web.config("[]")), 0o644); err != nil {
		t.Fatal(err)
	}
	w, err := Open(t.Context(), dir, OpenOptions{Online: true})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	address := web.server.URL + "/feed.json"
	for i, want := range []map[string]int{
		{"rows read": 3, "rows stored": 1, "rows refused": 1, "rows left out: no_review": 1},
		{"rows read": 3, "rows stored": 0, "rows refused": 1, "rows known": 1}, // confirmed, and read again
	} {
		r, err := w.Import(t.Context(), "claims-table", address, ImportOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for name, n := range want {
			if r.Counts[name] != n {
				t.Errorf("import %d: %s = %d, want %d (%v)", i, name, r.Counts[name], n, r.Counts)
			}
		}
	}
	if asked := web.visits(); len(asked) != 2 {
		t.Errorf("asked for %q", asked)
	}
	var failed *fetch.Error
	if _, err := w.Import(t.Context(), "claims-table", web.server.URL+"/gone.json", ImportOptions{}); !errors.As(err, &failed) || failed.Reason != fetch.ReasonGone {
		t.Errorf("import of what is not there: %v", err)
	}
}

func TestFeedSettings(t *testing.T) {
	for feeds, want := range map[string]string{
		`[{table: nobody, url: "https://a.example/"}]`:                                              `recipe.feeds[0].table: "nobody" is none of`,
		`[{table: claimreview}]`:                                                                    `recipe.feeds[0].url: it is empty`,
		`[{table: claimreview, url: "ftp://a.example/"}]`:                                           `is no address`,
		`[{table: claimreview, url: "https://a:b@a.example/"}]`:                                     `user name or password`,
		`[{table: claimreview, url: "https://a.example/", query: x}]`:                               `an address or a query, not both`,
		`[{table: factcheck_tools}]`:                                                                `claims:search wants a query`,
		`[{table: factcheck_tools, query: x, max_age_days: -1}]`:                                    `max_age_days: -1 is not between 0 and`,
		`[{table: factcheck_tools, query: x}, {table: factcheck_tools, query: x}]`:                  `recipe.feeds[1]: it stands twice`,
		`[{table: factcheck_tools, query: x}] # runtime.fact_check_tools.key_env=a b`:               `runtime.fact_check_tools.key_env: it names the environment variable`,
		`[{table: claimreview, url: "https://a.example/"}] # recipe.discover=[stored]`:              `recipe.discover: feeds fill tables`,
		`[{table: factcheck_tools, query: x}] # runtime.fact_check_tools.base=http://plain.example`: `a key is sent over https alone`,
	} {
		config, override, _ := strings.Cut(feeds, " # ")
		var overrides []Override
		if key, value, ok := strings.Cut(override, "="); ok {
			overrides = []Override{{Key: key, Value: value}}
		}
		_, _, err := parseConfig([]byte("recipe: {feeds: "+config+"}\nruntime: {contact: a@a.example}\n"), nil, overrides)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", feeds, err, want)
		}
	}
}
