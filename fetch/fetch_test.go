package fetch

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay/kv"
)

func TestNewChecksOptions(t *testing.T) {
	store := memory(t)
	good := Credential{Name: "api", Hosts: []string{"api.example"}, Header: "Authorization", Secret: "0123456789"}
	tests := []struct {
		name string
		o    Options
		want string // part of the error, "" if none
	}{
		{"no store", Options{Contact: "x"}, "no store"},
		{"live without contact", Options{Store: store}, "contact"},
		{"replay without contact", Options{Store: store, Mode: Replay}, ""},
		{"live with contact", Options{Store: store, Contact: "mailto:a@b.example"}, ""},
		{"only listed hosts", Options{Store: store, AllowPrivate: []string{"127.0.0.1:80"}}, ""},
		{"only resolved hosts", Options{Store: store, Resolve: map[string]string{"a.example": "127.0.0.1:80"}}, ""},
		{"unknown mode", Options{Store: store, Contact: "x", Mode: 7}, "mode 7"},
		{"allow-list entry without port", Options{Store: store, Contact: "x", AllowPrivate: []string{"127.0.0.1"}}, "host:port"},
		{"resolve to a name", Options{Store: store, Contact: "x", Resolve: map[string]string{"a.example": "localhost:80"}}, "ip:port"},
		{"contact in two lines", Options{Store: store, Contact: "x\r\nCookie: y"}, "one line"},
		{"credential", Options{Store: store, Contact: "x", Credentials: []Credential{good}}, ""},
		{"credential without name", Options{Store: store, Contact: "x", Credentials: []Credential{{Hosts: good.Hosts, Header: "A", Secret: good.Secret}}}, "name"},
		{"credential without host", Options{Store: store, Contact: "x", Credentials: []Credential{{Name: "a", Header: "A", Secret: good.Secret}}}, "host"},
		{"credential for nowhere", Options{Store: store, Contact: "x", Credentials: []Credential{{Name: "a", Hosts: good.Hosts, Secret: good.Secret}}}, "header or a query"},
		{"credential that is short", Options{Store: store, Contact: "x", Credentials: []Credential{{Name: "a", Hosts: good.Hosts, Query: "k", Secret: "hunter2"}}}, "shorter"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c, err := New(tt.o)
			if tt.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				c.Close()
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("error = %v, want one about %q", err, tt.want)
			}
		})
	}
}

func TestGet(t *testing.T) {
	w := newWeb(t)
	w.pages["h.example"] = shows("page")
	c := w.client(t, memory(t))
	page, err := c.Get(t.Context(), Request{URL: "HTTP://H.example:80/a b?q=1#part"})
	if err != nil {
		t.Fatal(err)
	}
	if page.URL != "http://h.example/a%20b?q=1" || page.Final != page.URL || page.Status != 200 || page.Source != SourceNetwork || !page.Retrieved.Equal(w.clock.Now()) {
		t.Errorf("page = %s, final %s, status %d, source %s, retrieved %v", page.URL, page.Final, page.Status, page.Source, page.Retrieved)
	}
	if got := string(page.Bytes()); got != article("page") {
		t.Errorf("body has %d bytes, want those of the article", len(got))
	}
	h := w.seen("h.example/a%20b?q=1")[0].header
	want := http.Header{
		"User-Agent": {"assay/1.2 (+mailto:crawl@assay.example)"}, "Accept": {defaultAccept}, "Accept-Language": {"en"}, "Accept-Encoding": {"gzip, br, zstd"},
	}
	if diff := cmp.Diff(want, h); diff != "" {
		t.Errorf("request headers (-want +got):\n%s", diff)
	}
	// A second Get, and one in another spelling, ask nobody.
	before := c.Stats().Requests
	for _, url := range []string{"http://h.example/a%20b?q=1", "http://h.example/a b?q=1#other"} {
		again, err := c.Get(t.Context(), Request{URL: url})
		if err != nil {
			t.Fatal(err)
		}
		if again.Sum() != page.Sum() || !again.Retrieved.Equal(page.Retrieved) {
			t.Errorf("the stored page differs from the fetched one")
		}
	}
	s := c.Stats()
	if s.Requests != before || s.Hits != 2 || s.ByHost["h.example"].Requests != 2 || s.Bytes != int64(len(article("page")))+int64(len("404 page not found\n")) {
		t.Errorf("stats = %+v, want no more requests, 2 hits", s)
	}
}

// What a browser would send is sent, even where net/url would write it differently.
func TestRequestURL(t *testing.T) {
	for _, url := range []string{
		"http://h.example/", "http://h.example/100%", "http://h.example/a|b", "http://h.example/%zz?x=%y", "http://h.example/a?b=c|d", "http://h.example/x?",
		"http://h.example//two", "http://h.example/a%2Fb", "http://h.example/[x]'y'",
	} {
		w := newWeb(t)
		w.pages["h.example"] = shows("page")
		u, err := requestURL(url)
		if err != nil {
			t.Errorf("requestURL(%s): %v", url, err)
			continue
		}
		if _, want := splitOrigin(url); u.RequestURI() != want || u.Host != "h.example" {
			t.Errorf("requestURL(%s) asks %s for %s, want %s", url, u.Host, u.RequestURI(), want)
		}
	}
	_, err := requestURL("http://h.example//two%")
	wantReason(t, err, ReasonBadURL)
	w := newWeb(t)
	w.server.Config.Handler = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		w.visits = append(w.visits, visit{host: r.Host, path: r.RequestURI})
		w.mu.Unlock()
		shows("page")(rw, r)
	})
	if _, err := w.client(t, memory(t)).Get(t.Context(), Request{URL: "http://h.example/a|b?c|d"}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"h.example/a|b?c|d"}, w.paths()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func TestHD04Redirects(t *testing.T) {
	var visits atomic.Int32
	w := newWeb(t)
	w.pages = map[string]http.HandlerFunc{
		"h.example/loop": func(rw http.ResponseWriter, _ *http.Request) {
			http.SetCookie(rw, &http.Cookie{Name: "visit", Value: fmt.Sprint(visits.Add(1))})
			rw.Header().Set("Location", "/loop")
			rw.WriteHeader(http.StatusFound)
		},
		"h.example/a": redirects(302, "/b"), "h.example/b": redirects(302, "/a"),
		"h.example/old": redirects(301, "/final"), "h.example/older": redirects(308, "http://H.example/old#x"),
		"h.example/final":  shows("final"),
		"h.example/spin/0": redirects(302, "/spin/1"),
	}
	for i := range 20 {
		w.pages[fmt.Sprintf("h.example/chain/%d", i)] = redirects(302, fmt.Sprintf("/chain/%d", i+1))
		w.pages[fmt.Sprintf("h.example/spin/%d", i)] = redirects(307, fmt.Sprintf("/spin/%d", (i+1)%4))
	}
	w.pages["h.example/chain/20"] = shows("end of the chain")
	for _, order := range [][]string{{"/old", "/older", "/final"}, {"/final", "/older", "/old"}} {
		t.Run("final reached by "+order[0]+" first", func(t *testing.T) {
			w.visits = nil
			store := memory(t)
			c := w.client(t, store)
			for _, path := range []string{"/loop", "/a", "/spin/0"} {
				_, err := c.Get(t.Context(), Request{URL: "http://h.example" + path})
				e := wantReason(t, err, ReasonRedirectLoop)
				if e.Excluded() != "" || e.FailureClass() != "permanent" || e.URL != "http://h.example"+path {
					t.Errorf("%s: %+v, want a permanent failure", path, e)
				}
			}
			for _, path := range []string{"/loop", "/a", "/b", "/spin/0"} {
				if n := len(w.seen("h.example" + path)); n != 1 {
					t.Errorf("%s was asked for %d times, want once", path, n)
				}
			}
			_, err := c.Get(t.Context(), Request{URL: "http://h.example/chain/14"})
			wantReason(t, err, ReasonTooManyRedirects)
			page, err := c.Get(t.Context(), Request{URL: "http://h.example/chain/15"})
			if err != nil || page.Final != "http://h.example/chain/20" {
				t.Errorf("five redirects: %v", err)
			}

			finals := map[string]bool{}
			for _, path := range order {
				page, err := c.Get(t.Context(), Request{URL: "http://h.example" + path})
				if err != nil {
					t.Fatal(err)
				}
				finals[page.Final+" "+string(page.Bytes())] = true
				if first, last := page.Addresses[0], page.Addresses[len(page.Addresses)-1]; first != "http://h.example"+path || last != page.Final {
					t.Errorf("addresses of %s = %v", path, page.Addresses)
				}
			}
			if len(finals) != 1 {
				t.Errorf("%d different pages, want one", len(finals))
			}
			if n := len(w.seen("h.example/final")); n != 1 {
				t.Errorf("/final was asked for %d times, want once", n)
			}
			list, err := c.Exchanges("http://h.example/final")
			if err != nil || len(list) != 1 {
				t.Errorf("%d exchanges with /final, %v; want it stored once", len(list), err)
			}
			got, err := c.Addresses("http://h.example/final")
			if diff := cmp.Diff([]string{"http://h.example/final", "http://h.example/old", "http://h.example/older"}, got); diff != "" || err != nil {
				t.Errorf("addresses of /final (-want +got), %v:\n%s", err, diff)
			}
			// Another run finds all of it stored, the loops too.
			c = w.client(t, store)
			_, err = c.Get(t.Context(), Request{URL: "http://h.example/a"})
			wantReason(t, err, ReasonRedirectLoop)
			if _, err := c.Get(t.Context(), Request{URL: "http://h.example/older"}); err != nil {
				t.Error(err)
			}
			if n := c.Stats().Requests; n != 0 {
				t.Errorf("the second run sent %d requests", n)
			}
		})
	}
}

// The client for crawlers ends redirects in the same way.
func TestHD04RedirectsOfCrawlers(t *testing.T) {
	w := newWeb(t)
	w.pages["h.example/a"], w.pages["h.example/b"] = redirects(302, "/b"), redirects(302, "/a")
	w.pages["h.example/old"], w.pages["h.example/final"] = redirects(301, "/final"), shows("final")
	for i := range 20 {
		w.pages[fmt.Sprintf("h.example/chain/%d", i)] = redirects(302, fmt.Sprintf("/chain/%d", i+1))
	}
	c := w.client(t, memory(t)).HTTP()
	for path, reason := range map[string]string{"/a": ReasonRedirectLoop, "/chain/0": ReasonTooManyRedirects} {
		_, err := c.Get("http://h.example" + path)
		var e *Error
		if !errors.As(err, &e) || e.Reason != reason {
			t.Errorf("%s: %v, want %s", path, err, reason)
		}
	}
	resp, err := c.Get("http://h.example/old")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.Request.URL.Path != "/final" {
		t.Errorf("ended at %s", resp.Request.URL)
	}
	if n := len(w.paths()); n > 10 {
		t.Errorf("%d requests", n)
	}
}

func TestSizeLimits(t *testing.T) {
	// Numbers do not compress well enough to pass one limit by way of the other.
	var b strings.Builder
	for i := range 20000 {
		fmt.Fprintf(&b, "%d ", i*i)
	}
	big := b.String()
	w := newWeb(t)
	w.pages["h.example/big"] = answers(200, big, "Content-Type", "text/plain")
	w.pages["h.example/packed"] = gzipped(strings.Repeat("a", 200<<10))
	w.pages["h.example/ok"] = shows("page")
	store := memory(t)
	limits := func(o *Options) {
		o.Limits = Limits{PageBytes: 64 << 10, DecompressedBytes: 100 << 10, FeedBytes: 1 << 20}
	}
	c := w.client(t, store, limits)
	for _, path := range []string{"/big", "/packed"} {
		for range 2 {
			_, err := c.Get(t.Context(), Request{URL: "http://h.example" + path})
			if e := wantReason(t, err, ReasonTooLarge); e.Excluded() != ReasonTooLarge {
				t.Errorf("%s is no exclusion", path)
			}
		}
		list, err := c.Exchanges("http://h.example" + path)
		if err != nil || len(list) == 0 || list[0].Body != "" {
			t.Errorf("%s: %d exchanges, %v, or a body was kept", path, len(list), err)
		}
	}
	if _, err := c.Get(t.Context(), Request{URL: "http://h.example/ok"}); err != nil {
		t.Error(err)
	}
	// The same address within the limits of a feed.
	page, err := c.Get(t.Context(), Request{URL: "http://h.example/big", Large: true})
	if err != nil || string(page.Bytes()) != big {
		t.Errorf("as a feed: %v", err)
	}
	// In replay a smaller limit holds for what is stored.
	c = w.client(t, store, func(o *Options) { o.Mode, o.Limits.DecompressedBytes = Replay, 1000 })
	_, err = c.Get(t.Context(), Request{URL: "http://h.example/ok"})
	wantReason(t, err, ReasonTooLarge)
}

// A feed is stored in parts and read back whole.
func TestLargeFeed(t *testing.T) {
	feed := bytes.Repeat([]byte("0123456789abcdef"), (2*spoolMemory+chunkSize/2)/16)
	w := newWeb(t)
	w.pages["h.example/feed"] = answers(200, string(feed), "Content-Type", "application/octet-stream")
	store := memory(t)
	c := w.client(t, store)
	for range 2 {
		page, err := c.Get(t.Context(), Request{URL: "http://h.example/feed", Large: true})
		if err != nil || !bytes.Equal(page.Bytes(), feed) {
			t.Fatalf("Get: %v, or other bytes", err)
		}
		c = w.client(t, store, func(o *Options) { o.Mode = Replay })
	}
	n, err := c.archive.bodies.Count("")
	if err != nil || n < 5 {
		t.Errorf("%d parts stored, %v; want at least 5", n, err)
	}
}

// Every outcome of every hop is told, and Current gives the same sum.
func TestAnswered(t *testing.T) {
	w := newWeb(t)
	w.pages["h.example/robots.txt"] = answers(200, "User-agent: *\nDisallow: /private\n")
	w.pages["h.example/old"], w.pages["h.example/page"] = redirects(301, "/page"), shows("page")
	w.pages["h.example/no"], w.pages["h.example/broken"] = answers(403, "no"), answers(400, "no")
	type told struct{ url, key string }
	store := memory(t)
	got := map[told][32]byte{}
	var mu sync.Mutex
	type item struct{}
	tell := func(o *Options) {
		o.Answered = func(ctx context.Context, key string, sum [32]byte) {
			mu.Lock()
			defer mu.Unlock()
			got[told{ctx.Value(item{}).(string), key}] = sum
		}
	}
	c := w.client(t, store, tell)
	ask := func(c *Client, path string) error {
		_, err := c.Get(context.WithValue(t.Context(), item{}, path), Request{URL: "http://h.example" + path})
		return err
	}
	paths := []string{"/old", "/page", "/no", "/broken", "/absent", "/private/x"}
	for _, path := range paths {
		_ = ask(c, path) // the outcomes are what other tests are about
	}
	want := []string{
		"/absent fetch/GET http://h.example/absent", "/broken fetch/GET http://h.example/broken", "/no fetch/GET http://h.example/no",
		"/old fetch/GET http://h.example/old", "/old fetch/GET http://h.example/page", "/page fetch/GET http://h.example/page",
		"/private/x fetch/GET http://h.example/private/x", "/private/x fetch/GET http://h.example/robots.txt",
	}
	var keys []string
	for k, sum := range got {
		keys = append(keys, k.url+" "+k.key)
		current, ok, err := c.Current(t.Context(), k.key)
		if err != nil || !ok || current != sum {
			t.Errorf("Current(%s) = %x, %v, %v; told was %x", k.key, current[:4], ok, err, sum[:4])
		}
	}
	slices.Sort(keys)
	if diff := cmp.Diff(want, keys); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
	// A run from the store tells the same.
	first := got
	got = map[told][32]byte{}
	c = w.client(t, store, tell, func(o *Options) { o.Mode = Replay })
	for _, path := range paths {
		_ = ask(c, path)
	}
	if diff := cmp.Diff(first, got); diff != "" {
		t.Errorf("told by a replay (-live +replay):\n%s", diff)
	}
	if _, ok, err := c.Current(t.Context(), "llm/x"); ok || err != nil {
		t.Errorf("Current of a key that is not ours = %v, %v", ok, err)
	}
}

func TestClasses(t *testing.T) {
	w := newWeb(t)
	w.pages["h.example/wall"] = answers(200, "<html><head><title>Just a moment...</title></head><body>Checking your browser before accessing</body></html>", "Content-Type", "text/html", "Cf-Mitigated", "challenge")
	w.pages["h.example/no"] = inTurn(answers(403, "no"), shows("open again"))
	w.pages["h.example/gone"] = inTurn(answers(410, "gone"), shows("back"))
	store := memory(t)
	c := w.client(t, store)
	get := func(path string) error {
		_, err := c.Get(t.Context(), Request{URL: "http://h.example" + path})
		return err
	}
	wantReason(t, get("/wall"), ReasonBlocked)
	wantReason(t, get("/wall"), ReasonBlocked)
	if n := len(w.seen("h.example/wall")); n != 2 {
		t.Errorf("a wall was asked for %d times in two Gets; it must not be taken from the store", n)
	}
	wantReason(t, get("/no"), ReasonBlocked)
	if err := get("/no"); err != nil {
		t.Errorf("a page that opened: %v", err)
	}
	wantReason(t, get("/gone"), ReasonGone)
	wantReason(t, get("/gone"), ReasonGone)
	if n := len(w.seen("h.example/gone")); n != 1 {
		t.Errorf("a page that is gone was asked for %d times, want once", n)
	}
	var stored []string
	for url, err := range c.Stored(t.Context(), "h.example") {
		if err != nil {
			t.Fatal(err)
		}
		stored = append(stored, url)
	}
	if diff := cmp.Diff([]string{"http://h.example/gone", "http://h.example/no", "http://h.example/robots.txt", "http://h.example/wall"}, stored); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
}

func TestHTTP(t *testing.T) {
	latin := "<html><head><meta charset=iso-8859-1><title>caf\xe9</title></head><body>" + strings.Repeat("<p>caf\xe9 prices rose again in the spring, the council said.</p>", 60) + "</body></html>"
	xml := "<?xml version=\"1.0\" encoding=\"iso-8859-1\"?>\n<feed><title>caf\xe9</title></feed>"
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := io.WriteString(z, xml); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	w := newWeb(t)
	w.pages["h.example/latin"] = answers(200, latin, "Content-Type", "text/html")
	w.pages["h.example/sitemap.xml.gz"] = answers(200, packed.String(), "Content-Type", "application/gzip")
	w.pages["h.example/coded"] = answers(200, packed.String(), "Content-Type", "text/xml", "Content-Encoding", "gzip", "Set-Cookie", "a=b")
	w.pages["h.example/image"] = answers(200, "\x89PNG\r\n\x1a\n\x00\x00", "Content-Type", "image/png")
	w.pages["h.example/no"] = answers(403, "no")
	store := memory(t)
	var keys []string
	c := w.client(t, store, func(o *Options) {
		o.Answered = func(_ context.Context, key string, _ [32]byte) { keys = append(keys, key) }
	})
	wantXML := "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<feed><title>café</title></feed>"
	tests := []struct {
		path, kind, body string
		status           int
	}{
		{"/latin", "text/html; charset=utf-8", strings.ReplaceAll(latin, "\xe9", "é"), 200},
		{"/sitemap.xml.gz", "text/xml; charset=utf-8", wantXML, 200},
		{"/coded", "text/xml; charset=utf-8", wantXML, 200},
		{"/image", "image/png", "\x89PNG\r\n\x1a\n\x00\x00", 200},
		{"/absent", "text/plain; charset=utf-8", "404 page not found\n", 404},
	}
	for _, tt := range tests {
		for _, when := range []string{"fetched", "stored"} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://h.example"+tt.path, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Accept", "*/*")
			req.Header.Set("User-Agent", "somebody else")
			req.Header.Set("Cookie", "a=b")
			resp, err := c.HTTP().Do(req)
			if err != nil {
				t.Fatalf("%s %s: %v", tt.path, when, err)
			}
			body, err := io.ReadAll(resp.Body)
			if err := errors.Join(err, resp.Body.Close()); err != nil {
				t.Fatal(err)
			}
			if resp.StatusCode != tt.status || string(body) != tt.body || resp.Header.Get("Content-Type") != tt.kind {
				t.Errorf("%s %s: status %d, type %q, body %.80q; want %d, %q, %.80q", tt.path, when, resp.StatusCode, resp.Header.Get("Content-Type"), body, tt.status, tt.kind, tt.body)
			}
			if !resp.Uncompressed || resp.Header.Get("Content-Encoding") != "" || resp.Header.Get("Content-Length") != "" || resp.Header.Get("Set-Cookie") != "" || resp.ContentLength != int64(len(body)) {
				t.Errorf("%s %s: uncompressed %v, headers %v, length %d", tt.path, when, resp.Uncompressed, resp.Header, resp.ContentLength)
			}
		}
		if v := w.seen("h.example" + tt.path); len(v) != 1 || v[0].header.Get("Cookie") != "" || !strings.HasPrefix(v[0].header.Get("User-Agent"), "assay/") {
			t.Errorf("%s: requests %v, want one that is ours", tt.path, v)
		}
	}
	if _, err := c.Get(t.Context(), Request{URL: "http://h.example/latin"}); err != nil || len(w.seen("h.example/latin")) != 1 {
		t.Errorf("Get after the crawler asked again, or %v", err)
	}
	_, err := c.HTTP().Get("http://h.example/no")
	var e *Error
	if !errors.As(err, &e) || e.Excluded() != ReasonBlocked {
		t.Errorf("a blocked page: %v, want an exclusion", err)
	}
	if n := len(keys); n != 2*len(tests)+2 || !slices.Contains(keys, "fetch/GET http://h.example/no") {
		t.Errorf("told of %d answers: %v", n, keys)
	}
}

func TestHTTPWithBody(t *testing.T) {
	w := newWeb(t)
	w.pages["h.example/search"] = func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		answers(200, r.Method+" "+r.Header.Get("Content-Type")+" "+string(body), "Content-Type", "text/plain")(rw, r)
	}
	c := w.client(t, memory(t))
	for _, q := range []string{"one", "two", "one"} {
		resp, err := c.HTTP().Post("http://h.example/search", "application/json", strings.NewReader(q))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		if err := errors.Join(err, resp.Body.Close()); err != nil {
			t.Fatal(err)
		}
		if want := "POST application/json " + q; string(body) != want {
			t.Errorf("body = %q, want %q", body, want)
		}
	}
	if n := len(w.paths()); n != 2 {
		t.Errorf("%d requests, want one for each body", n)
	}
	_, err := c.HTTP().Post("http://h.example/search", "text/plain", strings.NewReader(strings.Repeat("x", maxRequestBody+1)))
	var e *Error
	if !errors.As(err, &e) || e.Reason != ReasonTooLarge {
		t.Errorf("a request of more than %d bytes: %v", maxRequestBody, err)
	}
}

// A damaged body is fetched again in live mode and an error in replay.
func TestDamagedBody(t *testing.T) {
	w := newWeb(t)
	w.pages["h.example/page"] = shows("page")
	store := memory(t)
	c := w.client(t, store)
	page, err := c.Get(t.Context(), Request{URL: "http://h.example/page"})
	if err != nil {
		t.Fatal(err)
	}
	list, err := c.Exchanges("http://h.example/page")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.archive.bodies.Delete(bodyKey(list[0].Body, 0)); err != nil {
		t.Fatal(err)
	}
	var corrupt *kv.CorruptError
	if _, err := w.client(t, store, func(o *Options) { o.Mode = Replay }).Get(t.Context(), Request{URL: "http://h.example/page"}); !errors.As(err, &corrupt) {
		t.Errorf("replay: %v, want a corrupt record", err)
	}
	again, err := c.Get(t.Context(), Request{URL: "http://h.example/page"})
	if err != nil || again.Sum() != page.Sum() {
		t.Fatalf("live: %v, or another page", err)
	}
	if again, err = w.client(t, store, func(o *Options) { o.Mode = Replay }).Get(t.Context(), Request{URL: "http://h.example/page"}); err != nil || again.Sum() != page.Sum() {
		t.Errorf("replay afterwards: %v, or another page", err)
	}
}

func TestCancelled(t *testing.T) {
	w := newWeb(t)
	inside := make(chan struct{})
	w.pages["h.example/slow"] = func(_ http.ResponseWriter, r *http.Request) {
		close(inside)
		<-r.Context().Done()
	}
	c := w.client(t, memory(t))
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-inside; cancel() }()
	_, err := c.Get(ctx, Request{URL: "http://h.example/slow"})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v, want cancelled", err)
	}
	var e *Error
	if errors.As(err, &e) {
		t.Errorf("a cancelled request is a failure of the address: %v", e)
	}
	list, err := c.Exchanges("http://h.example/slow")
	if err != nil || len(list) != 0 {
		t.Errorf("%d exchanges of a request that we called off, %v", len(list), err)
	}
}

func TestTimeout(t *testing.T) {
	w := newWeb(t)
	w.pages["h.example/slow"] = func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	c := w.client(t, memory(t), func(o *Options) { o.Retries, o.Limits.Timeout = 1, 100*time.Millisecond })
	_, err := c.Get(t.Context(), Request{URL: "http://h.example/slow"})
	if e := wantReason(t, err, ReasonTimeout); e.Tries != 2 || e.FailureClass() != "transient" {
		t.Errorf("error = %+v, want 2 attempts", e)
	}
}

func TestTLS(t *testing.T) {
	server := httptest.NewUnstartedServer(shows("page"))
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // the refused handshake is meant
	server.StartTLS()
	t.Cleanup(server.Close)
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	w := newWeb(t)
	change := func(o *Options) { o.Resolve = map[string]string{"example.com": server.Listener.Addr().String()} }
	store := memory(t)
	c := w.client(t, store, change)
	_, err := c.Get(t.Context(), Request{URL: "https://example.com/"})
	if e := wantReason(t, err, ReasonNetwork); e.Tries > 1 || !strings.Contains(e.Detail, "certificate") {
		t.Errorf("an unknown authority: %+v, want one attempt that says so", e)
	}
	c = w.client(t, store, change, func(o *Options) { o.Roots = roots })
	page, err := c.Get(t.Context(), Request{URL: "https://example.com/"})
	if err != nil {
		t.Fatal(err)
	}
	list, err := c.Exchanges("https://example.com/")
	if err != nil || len(list) != 1 || list[0].Dialled != server.Listener.Addr().String() || page.Status != http.StatusOK {
		t.Errorf("exchanges = %+v, %v", list, err)
	}
}
