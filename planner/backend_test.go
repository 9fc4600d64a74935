package planner

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"assay/corpus"
	"assay/fetch"
	"assay/index"
	"assay/kv"
	"assay/llm"

	"github.com/google/go-cmp/cmp"
)

// A play is what a test knows about a backend: how its interface answers, with invented contents. Every
// backend has one, and every test of this file goes over all of them.
type play struct {
	query   Query // that found answers
	found   http.HandlerFunc
	nothing http.HandlerFunc

	// leads answers with results that lead to some addresses; nil for a backend that writes the addresses
	// of its results itself.
	leads func(urls []string) http.HandlerFunc

	// unsearched are replies of status 200 that look as if nothing were found, by which the interface says
	// that it did not search, besides those of every interface.
	unsearched map[string]string
	nought     string // the one reply of those of every interface that means here that nothing was found
	offline    bool   // it asks nobody
}

func answers(body string) http.HandlerFunc {
	return func(rw http.ResponseWriter, _ *http.Request) { reply(rw, 200, body) }
}

const (
	emptyWiki = `{"batchcomplete": true, "query": {"pages": [{"ns": 0, "title": "Harbor tolls", "missing": true}], "search": []}}`
	emptyFeed = `<feed xmlns="http://www.w3.org/2005/Atom"><opensearch:totalResults xmlns:opensearch="http://a9.com/-/spec/opensearch/1.1/">%d</opensearch:totalResults></feed>`
)

// plays are those of the backends that are no web searches; the others have forms.
var plays = map[string]play{
	"arctic_shift": {
		query:   Query{Text: "harbor tolls", Subreddits: []string{"harborville"}, K: 5},
		found:   answers(`{"data": [{"id": "aa1", "title": "Tolls", "selftext": "They rose.", "subreddit": "harborville", "author": "ina", "created_utc": 1767225600, "permalink": "/r/harborville/comments/aa1/tolls/"}]}`),
		nothing: answers(`{"data": []}`), unsearched: map[string]string{"no list": `{"data": null}`, "a list of another name": `{"posts": []}`},
	},
	"arxiv": {
		query: Query{Text: "harbor tolls", K: 5}, found: answers(feed(1, 0, 1)), nothing: answers(fmt.Sprintf(emptyFeed, 0)),
		unsearched: map[string]string{"papers that are announced": fmt.Sprintf(emptyFeed, 17), "a feed of something else": `<rss version="2.0"><channel/></rss>`},
	},
	"commoncrawl": {
		query: Query{Text: "https://a.example/", K: 5}, found: crawls(captureLine("20260112030405", "200", 100, 900)), nothing: crawls(""),
		unsearched: map[string]string{"a capture without a place": `{"timestamp": "20260112030405", "url": "https://a.example/", "status": "200"}`, "another message": `{"message": "Page 1 invalid"}`},
	},
	"local": {query: Query{Text: "harbor tolls", K: 5}, offline: true},
	"reddit": {
		query: Query{Text: "harbor tolls", K: 5}, found: answers(listing(apiPost("aa1", ""))), nothing: answers(listing()),
		unsearched: map[string]string{"no children": `{"kind": "Listing", "data": {"after": null}}`, "one thing": `{"kind": "t5", "data": {"id": "x"}}`, "an error": `{"error": 500}`},
	},
	"searxng": {
		query: Query{Text: "harbor tolls", K: 1}, found: answers(searxPage("", postURLs(0, 1)...)), nothing: answers(searxPage("")),
		leads: func(urls []string) http.HandlerFunc {
			return func(rw http.ResponseWriter, r *http.Request) {
				if r.URL.Query().Get("pageno") == "1" {
					reply(rw, 200, searxPage("", urls...))
					return
				}
				reply(rw, 200, searxPage(""))
			}
		},
		unsearched: map[string]string{"an engine that throttles": searxPage(`["mojeek", "too many requests"]`), "an engine that is suspended": searxPage(`["mojeek", "Suspended: CAPTCHA"]`)},
	},
	"wayback": {
		query:   Query{Text: "https://a.example/", K: 5},
		found:   answers(`[["urlkey", "timestamp", "original", "mimetype", "statuscode", "digest", "length"], ["example,a)/", "20240102030405", "http://a.example/", "text/html", "200", "X", "9"]]`),
		nothing: answers(`[]`), nought: `[]`,
	},
	"wikipedia": {
		query: Query{Text: "Marl", K: 5}, found: playWiki, nothing: answers(emptyWiki),
		unsearched: map[string]string{"no list": `{"batchcomplete": true}`, "no pages": `{"batchcomplete": true, "query": {"search": []}}`, "no search": `{"batchcomplete": true, "query": {"pages": [{"ns": 0, "title": "Harbor tolls", "missing": true}]}}`,
			"a search engine that is down": `{"error": {"code": "cirrussearch-backend-error", "info": "We could not complete your search due to a temporary problem."}}`},
	},
}

// playOf is what is known about a backend; the test fails where nothing is.
func playOf(t *testing.T, b Backend) play {
	t.Helper()
	if p, ok := plays[b.Name]; ok {
		return p
	}
	f, ok := forms[b.Name]
	if !ok {
		t.Fatalf("no test knows how %s answers: add it to forms (an engine) or plays", b.Name)
	}
	p := play{query: Query{Text: "harbor tolls", K: 1}, found: answers(f.results(false, postURLs(0, 1)...)), nothing: answers(f.empty), unsearched: f.unsearched}
	if b.Name == "gdelt" || b.Name == "factcheck_tools" {
		p.nought = `{}`
	}
	if b.Name != "x" {
		p.leads = func(urls []string) http.HandlerFunc { return answers(f.results(false, urls...)) }
	}
	return p
}

// asksOut are the backends that ask somebody.
func asksOut(t *testing.T, each func(*testing.T, Backend, play)) {
	for _, b := range Backends {
		if p := playOf(t, b); !p.offline {
			t.Run(b.Name, func(t *testing.T) { each(t, b, p) })
		}
	}
}

// everything sets every backend up at a server, each below its own name.
func everything(web Web, base string, now func() time.Time) Env {
	env := Env{Web: web, Access: Accesses(), Now: now, Getenv: func(name string) string {
		return map[string]string{"TEST_ID": testID, "TEST_SECRET": testSecret}[name] + map[bool]string{true: testKey}[strings.HasSuffix(name, "_KEY") || strings.HasSuffix(name, "_TOKEN")]
	}}
	for name, at := range env.Access {
		at.Base, at.On, at.EngineID = base+"/"+name, true, "engine-1"
		env.Access[name] = at
	}
	env.Reddit = NewReddit(RedditOptions{Web: web, ClientID: "TEST_ID", ClientSecret: "TEST_SECRET", UserAgent: testAgent, Base: base + "/reddit", Token: base + "/api/v1/access_token", Now: now, Getenv: env.Getenv})
	env.ArcticShift, env.SearXNG = NewArcticShift(web, base+"/arctic_shift"), NewSearXNG(web, base+"/searxng")
	return env
}

func (o *outside) everything(mode fetch.Mode) Env {
	return everything(o.client(mode), o.server.URL, o.Now)
}

// Every backend finds what is there, answers the second time from the store, and does so in a replay.
func TestBackendsFind(t *testing.T) {
	asksOut(t, func(t *testing.T, b Backend, p play) {
		o := newOutside(t, p.found)
		for _, mode := range []fetch.Mode{fetch.Live, fetch.Live, fetch.Replay} {
			got, err := b.Find(t.Context(), o.everything(mode), p.query)
			if err != nil || len(got) != 1 || got[0].URL == "" {
				t.Fatalf("%v: %+v, %v", mode, got, err)
			}
			if len(o.visits) == 0 {
				t.Fatal("it asked nobody")
			}
			before := len(o.visits)
			defer func() {
				if len(o.visits) != before {
					t.Errorf("%d requests more for what is stored", len(o.visits)-before)
				}
			}()
		}
		o.noSecrets()
	})
	if _, err := local.Find(t.Context(), Env{}, Query{Text: "x", K: 1}); err == nil {
		t.Error("local: a search without an index found nothing, which is no failure")
	}
	x, err := index.OpenMemory()
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	if got, err := local.Find(t.Context(), Env{Index: x}, Query{Text: "harbor tolls", K: 1}); err != nil || len(got) != 0 {
		t.Errorf("local, with an empty index: %v, %v", got, err)
	}
}

// Every backend tells a search that found nothing from one that was none: an empty answer of a failing
// engine is a failure, it is not kept, and the next run asks again.
func TestEmptyAnswersOfFailingEngines(t *testing.T) {
	asksOut(t, func(t *testing.T, b Backend, p play) {
		o := newOutside(t, p.nothing)
		env := o.everything(fetch.Live)
		for range 2 {
			if got, err := b.Find(t.Context(), env, p.query); err != nil || len(got) != 0 {
				t.Fatalf("nothing found: %v, %v", got, err)
			}
		}
		type answer struct {
			status int
			body   string
		}
		failing := map[string]answer{
			"an empty body": {200, ""}, "an empty object": {200, `{}`}, "an empty list": {200, `[]`}, "null": {200, `null`},
			"no content": {204, ""}, "a page": {200, "<!doctype html><title>Search</title><main>No results</main>"}, "an error": {200, `{"error": "internal"}`},
			"a page of results of Bing's": {200, `{"_type": "SearchResponse", "webPages": {"value": []}}`}, "a proxy's refusal": {502, "<h1>Bad Gateway</h1>"},
			"a server's error": {500, `{}`}, "busy": {503, `{"results": []}`}, "not found": {404, `[]`}, "unpaid": {402, `{}`}, "cut": {200, `{"results": [`},
		}
		for name, body := range p.unsearched {
			failing[name] = answer{200, body}
		}
		for name, a := range failing {
			if a.status == 200 && a.body == p.nought {
				continue
			}
			o = newOutside(t, nil) // what another reply left in the store would be an answer
			env = o.everything(fetch.Live)
			o.serve = func(rw http.ResponseWriter, _ *http.Request) {
				if a.status == 204 {
					rw.WriteHeader(204)
					return
				}
				reply(rw, a.status, a.body)
			}
			asked := len(o.visits)
			for range 2 {
				got, err := b.Find(t.Context(), env, p.query)
				var refused *APIError
				if err == nil || len(got) != 0 || errors.As(err, &refused) && refused.Excluded() != "" && a.status != 404 {
					t.Errorf("%s: %v, %v", name, got, err)
				}
				if len(o.visits) <= asked {
					t.Errorf("%s: it was kept as an answer", name)
				}
				asked = len(o.visits)
			}
		}
	})
}

// The kind of HD-10 for every backend: a pause that is asked for is kept to, as a date and in seconds, and
// costs one request.
func TestHD10EveryBackend(t *testing.T) {
	asksOut(t, func(t *testing.T, b Backend, p play) {
		for name, pause := range map[string]func(now time.Time) string{
			"a date":  func(now time.Time) string { return now.Add(40 * time.Second).UTC().Format(http.TimeFormat) },
			"seconds": func(time.Time) string { return "40" },
		} {
			plain := newOutside(t, p.found)
			if _, err := b.Find(t.Context(), plain.everything(fetch.Live), p.query); err != nil {
				t.Fatal(err)
			}
			o := newOutside(t, nil)
			o.serve = func(rw http.ResponseWriter, r *http.Request) {
				if len(o.visits) == 1 {
					rw.Header()["Date"] = []string{o.now.UTC().Format(http.TimeFormat)}
					reply(rw, 429, `{"message": "Too Many Requests"}`, "Retry-After", pause(o.now))
					return
				}
				p.found(rw, r)
			}
			got, err := b.Find(t.Context(), o.everything(fetch.Live), p.query)
			if err != nil || len(got) != 1 || len(o.at) != len(plain.at)+1 || o.visits[1] != o.visits[0] {
				t.Fatalf("%s: %v, %v after %v", name, got, err, o.visits)
			}
			if wait := o.at[1].Sub(o.at[0]); wait < 40*time.Second || wait > 43*time.Second {
				t.Errorf("%s: asked again after %v", name, wait)
			}
		}
	})
}

// The kind of HD-24 for every backend and every tool: what a result names is dialled by nobody but the
// client, which refuses it, and the search goes on.
func TestHD24EveryBackendAndTool(t *testing.T) {
	inner, dialled := innerAddresses(t)
	const good = "https://good.example/tolls"
	asksOut(t, func(t *testing.T, b Backend, p play) {
		serve := p.found
		if p.leads != nil {
			serve = p.leads(append(append([]string{}, inner...), good))
		}
		o := newOutside(t, serve)
		env := o.everything(fetch.Live)
		client := env.Web.(*fetch.Client)
		p.query.K = 20
		got, err := b.Find(t.Context(), env, p.query)
		if err != nil || len(got) == 0 {
			t.Fatalf("%v, %v", got, err)
		}
		if p.leads == nil { // its addresses are its own, whatever the reply names
			for _, r := range got {
				if host := corpus.Host(r.URL); host == "" || !strings.Contains(host, ".") || strings.Trim(host, "0123456789.") == "" {
					t.Errorf("a result at %s", r.URL)
				}
			}
			return
		}
		env.Model, env.Read = &director{}, func(ctx context.Context, id, address string) (corpus.Document, error) {
			if address == good {
				d := corpus.Document{ID: id, URL: address, Title: "The Marsh Bridge", Text: "The Marsh Bridge in Ostrow was closed for 14 months.", Kind: corpus.KindPage, BodyStatus: corpus.BodyFull}
				return d.Seal(), nil
			}
			_, err := client.Get(ctx, fetch.Request{URL: address})
			var refused *fetch.Error
			if !errors.As(err, &refused) || refused.Excluded() != fetch.ReasonBlockedAddress && refused.Excluded() != fetch.ReasonBadScheme || refused.Tries > 0 {
				t.Errorf("%s: %v", address, err)
			}
			return corpus.Document{}, corpus.Exclude(refused.Excluded(), address)
		}
		for _, tool := range Tools {
			if !tool.searches() {
				continue
			}
			caps := &Agent{Tools: []string{tool.Name}, Engines: map[string]string{"*": b.Name}, PerAction: 20, MaxActions: 1, Newsrooms: []string{"good.example"}}
			trace, err := Plan(t.Context(), env, Settings{Policy: PolicyAgent, Agent: caps}, corpus.Claim{ID: "c_1", Text: bridge})
			if err != nil {
				t.Fatalf("%s: %v", tool.Name, err)
			}
			for _, c := range trace.Candidates {
				if c.Kept && c.URL != good {
					t.Errorf("%s keeps %+v", tool.Name, c)
				}
			}
			if len(trace.Steps) > 0 && len(trace.Steps[0].Results) == 0 {
				t.Errorf("%s: %+v", tool.Name, trace.Steps)
			}
		}
	})
	if n := dialled.Load(); n != 0 {
		t.Errorf("the listener was dialled %d times", n)
	}
}

// The kind of HD-28 for every backend: all of them share the limit of a host, nobody waits for ever, and
// nothing is left running.
func TestHD28EveryBackend(t *testing.T) {
	before := runtime.NumGoroutine()
	t.Run("", func(t *testing.T) {
		h := newSharedHost(t)
		serve := map[string]http.HandlerFunc{}
		for _, b := range Backends {
			if p := playOf(t, b); !p.offline {
				serve[b.Name] = p.found
			}
		}
		h.instead = func(rw http.ResponseWriter, r *http.Request) {
			name, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
			r.URL.Path = "/" + rest
			serve[name](rw, r)
		}
		h.tools(t, 2)
		store, err := kv.OpenMemory()
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		web, err := fetch.New(fetch.Options{Store: store, Version: "1.0", Contact: "mailto:crawl@assay.example", Delay: -1, PerHost: 2, AllowPrivate: []string{h.Listener.Addr().String()},
			Unstored: []string{h.URL + "/api/v1/access_token"}, Now: h.clock, Sleep: h.sleep})
		if err != nil {
			t.Fatal(err)
		}
		defer web.Close()
		env := everything(web, h.URL, h.clock)
		var wg sync.WaitGroup
		for _, b := range Backends {
			p := playOf(t, b)
			if p.offline {
				continue
			}
			work := make(chan int)
			for range 6 {
				wg.Go(func() {
					for n := range work {
						q := p.query
						if b.Name != "wikipedia" && b.Name != "wayback" && b.Name != "commoncrawl" {
							q.Text = fmt.Sprintf("harbor tolls %d", n)
						} else if b.Name != "wikipedia" {
							q.Text = fmt.Sprintf("https://a.example/%d", n)
						}
						if _, err := b.Find(t.Context(), env, q); err != nil {
							t.Errorf("%s %d: %v", b.Name, n, err)
						}
					}
				})
			}
			wg.Go(func() {
				defer close(work)
				for n := range 20 {
					work <- n
				}
			})
		}
		wg.Wait()
		if h.most.Load() > 2 || h.served.Load() < int32(20*(len(Backends)-2)) {
			t.Errorf("%d at once of %d requests", h.most.Load(), h.served.Load())
		}
	})
	ended(t, before)
}

// Backends and tools are sequential: nothing in this package starts a goroutine, so that work that is
// queued by the hundred thousand is held by whoever queues it.
func TestNothingStartsGoroutines(t *testing.T) {
	sources, err := fs.Glob(os.DirFS("."), "*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range sources {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, filepath.Clean(name), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if _, ok := n.(*ast.GoStmt); ok {
				t.Errorf("%s starts a goroutine", set.Position(n.Pos()))
			}
			if s, ok := n.(*ast.SelectorExpr); ok && (s.Sel.Name == "Go" || s.Sel.Name == "AfterFunc") {
				t.Errorf("%s starts a goroutine", set.Position(n.Pos()))
			}
			return true
		})
	}
}

var errPoor = errors.New("no money left")

// A purse lets paid requests pass while it holds their worst case.
type purse struct{ left float64 }

func (p *purse) reserve(_ context.Context, usd float64) (func(float64), error) {
	if usd > p.left+1e-12 {
		return nil, errPoor
	}
	p.left -= usd
	return func(spent float64) { p.left += usd - spent }, nil
}

// Every paid backend writes what a request cost, and the request that could exceed the money of the run is
// not sent. The others cost nothing.
func TestMoneyOfBackends(t *testing.T) {
	asksOut(t, func(t *testing.T, b Backend, p play) {
		o := newOutside(t, p.found)
		worst, cost := 0.0, 0.0
		if b.Access != nil && b.Access.USDPer1000 > 0 {
			if b.Access.PriceDate == "" {
				t.Error("its price has no date")
			}
			switch cost = b.Access.price(); b.Name {
			case "serper": // more than it asks for would cost two credits
				worst = 2 * cost
			case "x": // it asks for ten posts and gets one
				worst = 10 * cost
			default:
				worst = cost
			}
		}
		money := &purse{left: worst + cost/2}
		client, err := fetch.New(fetch.Options{Store: o.store, Version: "1.0", Contact: "mailto:crawl@assay.example", Delay: -1, AllowPrivate: []string{o.addr()},
			Unstored: []string{o.server.URL + "/api/v1/access_token"}, Now: o.Now, Sleep: o.Sleep, Reserve: money.reserve})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		env := everything(client, o.server.URL, o.Now)
		if _, err := b.Find(t.Context(), env, p.query); err != nil {
			t.Fatal(err)
		}
		asked := len(o.visits)
		spent, err := client.Spend()
		if err != nil || spent.USD < cost-1e-12 || spent.USD > cost+1e-12 || (spent.Requests > 0) != (cost > 0) || spent.Estimated != 0 {
			t.Errorf("it spent %+v, want $%g: %v", spent, cost, err)
		}
		if _, err := b.Find(t.Context(), env, p.query); err != nil || len(o.visits) != asked {
			t.Errorf("what is stored needs money: %v", err)
		}
		other := p.query
		other.Text = strings.Replace(other.Text, "tolls", "fees", 1) + "/2"
		_, err = b.Find(t.Context(), env, other)
		if cost > 0 && (!errors.Is(err, errPoor) || len(o.visits) != asked) {
			t.Errorf("beyond its money: %v after %d requests", err, len(o.visits)-asked)
		}
		if cost == 0 && (errors.Is(err, errPoor) || len(o.visits) == asked) {
			t.Errorf("it costs nothing, and: %v", err)
		}
	})
}

// The kind of HD-12 as the tool meets it, step by step: suggestions are not taken, pages of meanings are no
// evidence and their reason is told, and two titles of one article are one document with both noted.
func TestHD12Tool(t *testing.T) {
	o := newOutside(t, playWiki)
	env := o.everything(fetch.Live)
	env.Read = func(ctx context.Context, id, _ string) (corpus.Document, error) {
		return wikipedia.Document(ctx, env, id, nil)
	}
	titles := []string{"Marl", "Mercury", "UK jab rollout", "British jab rollout", "Nowhere at all"}
	asked := 0
	env.Model = &director{says: func(ActVars) (string, llm.Outcome) {
		asked++
		return jsonOf(t, choice{Action: "wikipedia", Query: titles[min(asked, len(titles))-1], Subclaim: "s1"}), ""
	}}
	caps := &Agent{Tools: []string{"wikipedia"}, Engines: map[string]string{"*": "wikipedia"}, MaxActions: len(titles), PerSubclaim: len(titles)}
	trace, err := Plan(t.Context(), env, Settings{Policy: PolicyAgent, Agent: caps}, corpus.Claim{ID: "c_1", Text: "Vaccination in Britain began in winter, and marl is rich in lime."})
	if err != nil {
		t.Fatal(err)
	}
	via := map[string][]string{}
	for _, c := range trace.Candidates {
		for _, h := range c.Hits {
			via[c.DocumentID] = append(via[c.DocumentID], h.Via)
		}
		if c.DocumentID == "wikipedia:en:13" && (c.Kept || c.Reason != DropDisambiguation) {
			t.Errorf("a page of meanings: %+v", c)
		}
	}
	want := map[string][]string{"wikipedia:en:11": {""}, "wikipedia:en:13": {""}, "wikipedia:en:14": {"UK jab rollout#Rollout", "British jab rollout"}}
	if diff := cmp.Diff(want, via); diff != "" {
		t.Errorf("found (-want +got):\n%s\n%+v", diff, trace.Steps)
	}
}

// The kind of HD-13 where it begins: a first page that is empty and announces papers is no finished search,
// in the tool as in the backend, and the next run asks again.
func TestHD13FirstPage(t *testing.T) {
	o := newOutside(t, answers(fmt.Sprintf(emptyFeed, 17)))
	env := o.everything(fetch.Live)
	for range 2 {
		before := len(o.visits)
		_, err := arxivTool.Run(t.Context(), env, Settings{Agent: &Agent{Engines: map[string]string{"*": "arxiv"}, PerAction: 5}}, Ask{Query: "harbor tolls"})
		if e := wantError(t, err, ReasonIncomplete); e.Detail != "0 of 17" || e.FailureClass() != "transient" || len(o.visits)-before != 4 {
			t.Errorf("%v after %d requests", err, len(o.visits)-before)
		}
	}
	_, err := arxiv.Document(t.Context(), env, "arxiv:2601.00001", nil)
	if e := wantError(t, err, ReasonIncomplete); e.Excluded() != "" {
		t.Errorf("a paper is taken for gone: %v", err)
	}
}

// What interfaces say of money and refusals leads to the same with every backend: a bill ends the run, a
// refusal is asked for once, and a page of an account that is used up is not taken for an empty list.
func TestReactionsOfBackends(t *testing.T) {
	asksOut(t, func(t *testing.T, b Backend, p play) {
		for status, want := range map[int]struct {
			stops bool
			asked int
		}{402: {true, 1}, 400: {false, 1}, 410: {false, 1}, 451: {false, 1}, 500: {false, 4}, 504: {false, 4}} {
			o := newOutside(t, func(rw http.ResponseWriter, _ *http.Request) { reply(rw, status, `{"message": "no"}`) })
			env := o.everything(fetch.Live)
			_, err := b.Find(t.Context(), env, p.query)
			var e *APIError
			if !errors.As(err, &e) || e.StopsRun() != want.stops || len(o.visits) != want.asked {
				t.Errorf("status %d: %v after %d requests, want %+v", status, err, len(o.visits), want)
			}
			if usd := env.Web.(*fetch.Client).Stats().USD; usd != 0 {
				t.Errorf("status %d costs $%g", status, usd)
			}
		}
	})
	// The windows of Brave, and of X, are kept to after an answer too, before they are met.
	for name, tt := range map[string]struct {
		headers func(now time.Time) []string
		wait    time.Duration // before the next request is sent
		parked  bool
	}{
		"brave second": {func(time.Time) []string {
			return []string{"X-RateLimit-Remaining", "0, 1200", "X-RateLimit-Reset", "1, 900000"}
		}, time.Second, false},
		"brave month": {func(time.Time) []string {
			return []string{"X-RateLimit-Remaining", "1, 0", "X-RateLimit-Reset", "1, 900000"}
		}, 0, true},
		"x window": {func(now time.Time) []string {
			return []string{"X-Rate-Limit-Remaining", "0", "X-Rate-Limit-Reset", fmt.Sprint(now.Add(90 * time.Second).Unix())}
		}, 90 * time.Second, false},
	} {
		engine, _, _ := strings.Cut(name, " ")
		b, err := BackendNamed(engine)
		if err != nil {
			t.Fatal(err)
		}
		o := newOutside(t, nil)
		o.serve = func(rw http.ResponseWriter, _ *http.Request) {
			reply(rw, 200, forms[engine].empty, tt.headers(o.now)...)
		}
		env := o.everything(fetch.Live)
		if _, err := b.Find(t.Context(), env, Query{Text: "harbor tolls", K: 1}); err != nil {
			t.Fatal(err)
		}
		_, err = b.Find(t.Context(), env, Query{Text: "herring", K: 1})
		var parked *fetch.Error
		if tt.parked {
			if !errors.As(err, &parked) || parked.Reason != fetch.ReasonParked || len(o.at) != 1 {
				t.Errorf("%s: %v", name, err)
			}
		} else if err != nil || o.at[1].Sub(o.at[0]) < tt.wait {
			t.Errorf("%s: %v, asked at %v", name, err, o.at)
		}
	}
}

// The news tool is for any list of newsrooms; an engine that does not keep to it is not believed, and what
// it found elsewhere is dropped with the reason.
func TestNewsToolChecksHosts(t *testing.T) {
	for _, newsrooms := range [][]string{nil, {"nbcnews.com"}, {"courier.example", "abc.net.au"}} {
		caps := &Agent{Tools: []string{"news"}, Engines: map[string]string{"*": "serper"}, PerAction: 20, MaxActions: 1, Newsrooms: newsrooms}
		known := newsrooms
		if known == nil {
			known = []string{"bbc.com", "bbc.co.uk", "nbcnews.com"}
		}
		hits := []string{"https://bbc.com.evil.example/news/1", "https://evil.example/?site=bbc.com", "https://notbbc.com/news/1", "https://user@evil.example/www.bbc.com"}
		for _, d := range known {
			hits = append(hits, "https://"+d+"/news/1", "https://www."+d+"/news/2")
		}
		var sent string
		o := newOutside(t, nil)
		o.serve = func(rw http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			sent += string(body)
			reply(rw, 200, forms["serper"].results(false, hits...))
		}
		env := o.everything(fetch.Live)
		env.Model, env.Read = &director{}, func(_ context.Context, id, address string) (corpus.Document, error) {
			d := corpus.Document{ID: id, URL: address, Title: "The Marsh Bridge", Text: "The Marsh Bridge in Ostrow was closed for 14 months, says " + address, Kind: corpus.KindPage, BodyStatus: corpus.BodyFull}
			return d.Seal(), nil
		}
		trace, err := Plan(t.Context(), env, Settings{Policy: PolicyAgent, Agent: caps}, corpus.Claim{ID: "c_1", Text: bridge})
		if err != nil {
			t.Fatal(err)
		}
		kept := 0
		for _, c := range trace.Candidates {
			domain := corpus.RegistrableDomain(corpus.Host(c.URL))
			if c.Kept {
				kept++
			}
			why := DropElsewhere
			if strings.Contains(c.URL, "@") {
				why = DropUserInfo
			}
			if c.Kept != slices.Contains(known, domain) || !c.Kept && c.Reason != why {
				t.Errorf("%v: %s kept %t, %q", known, c.URL, c.Kept, c.Reason)
			}
		}
		if kept != 2*len(known) {
			t.Errorf("%v: %d kept of %+v", known, kept, trace.Candidates)
		}
		for _, d := range known {
			if !strings.Contains(sent, "site:"+d) {
				t.Errorf("%s is not asked for: %s", d, sent)
			}
		}
	}
}

// What the program says of its backends and tools is true: captured is what a tape or a recorded reply
// drives, and everything names where that is from.
func TestProvenOfBackendsAndTools(t *testing.T) {
	for _, b := range Backends {
		if b.Reference == "" || b.Proven != "captured" && b.Proven != "documented" && b.Proven != "unproven" {
			t.Errorf("backend %s: proven %q, reference %q", b.Name, b.Proven, b.Reference)
		}
	}
	for _, tool := range Tools {
		if tool.Reference == "" || tool.Proven != "captured" && tool.Proven != "documented" {
			t.Errorf("tool %s: proven %q, reference %q", tool.Name, tool.Proven, tool.Reference)
		}
		if tool.searches() != (tool.Proven == "captured") && tool.Source != sourceMemory {
			t.Errorf("tool %s is %s", tool.Name, tool.Proven)
		}
	}
}
