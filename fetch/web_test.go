package fetch

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"assay/kv"
)

// A clock is time that passes only when somebody waits for it: a Sleep ends at once and moves it.
type clock struct {
	mu    sync.Mutex
	at    time.Time
	slept []time.Duration
}

func newClock() *clock { return &clock{at: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) Sleep(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
	c.slept = append(c.slept, d)
	return ctx.Err()
}

// A visit is one request that reached the web.
type visit struct {
	host, path string
	at         time.Time
	header     http.Header
}

// A web is a loopback server that plays every host under .example. Hosts and paths that a test does
// not fill in are 404.
type web struct {
	server *httptest.Server
	clock  *clock
	pages  map[string]http.HandlerFunc // by host+path, or by host for all paths but /robots.txt

	mu     sync.Mutex
	visits []visit
}

func newWeb(t testing.TB) *web {
	w := &web{clock: newClock(), pages: map[string]http.HandlerFunc{}}
	w.server = httptest.NewServer(w)
	t.Cleanup(w.server.Close)
	return w
}

func (w *web) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	w.visits = append(w.visits, visit{r.Host, r.URL.RequestURI(), w.clock.Now(), r.Header.Clone()})
	w.mu.Unlock()
	for _, key := range []string{r.Host + r.URL.Path, r.Host} {
		if h := w.pages[key]; h != nil && (key != r.Host || r.URL.Path != "/robots.txt") {
			h(rw, r)
			return
		}
	}
	http.NotFound(rw, r)
}

// addr is the ip:port of the server.
func (w *web) addr() string { return w.server.Listener.Addr().String() }

// paths lists the requests so far, without those for robots.txt.
func (w *web) paths() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := []string{}
	for _, v := range w.visits {
		if v.path != "/robots.txt" {
			out = append(out, v.host+v.path)
		}
	}
	return out
}

// seen lists the requests with a host and path.
func (w *web) seen(url string) []visit {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(w.visits), func(v visit) bool { return v.host+v.path != url })
}

// options are those of a client on this web that waits for nothing.
func (w *web) options(store *kv.Store) Options {
	return Options{
		Store: store, Version: "1.2", Contact: "mailto:crawl@assay.example", Delay: -1, Resolve: map[string]string{"*.example": w.addr()},
		Now: w.clock.Now, Sleep: w.clock.Sleep, Jitter: func() float64 { return 0.5 },
	}
}

func (w *web) client(t testing.TB, store *kv.Store, change ...func(*Options)) *Client {
	t.Helper()
	o := w.options(store)
	for _, f := range change {
		f(&o)
	}
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func memory(t testing.TB) *kv.Store {
	t.Helper()
	s, err := kv.OpenMemory()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// article writes a page that is long enough to be taken for one.
func article(title string) string {
	return "<!doctype html><html><head><title>" + title + "</title></head><body><h1>" + title + "</h1><article>" +
		strings.Repeat("<p>The bridge over the harbour was opened in the spring, and the council kept the figures it was built on.</p>", 30) + "</article></body></html>"
}

// shows serves an article.
func shows(title string) http.HandlerFunc {
	return func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "text/html; charset=utf-8")
		if _, err := rw.Write([]byte(article(title))); err != nil {
			return // the client hung up, which its own test notices
		}
	}
}

// answers serves a status with headers given as name, value, name, value.
func answers(status int, body string, headers ...string) http.HandlerFunc {
	return func(rw http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(headers); i += 2 {
			rw.Header().Set(headers[i], headers[i+1])
		}
		rw.WriteHeader(status)
		if _, err := rw.Write([]byte(body)); err != nil {
			return
		}
	}
}

// redirects leads to another address.
func redirects(status int, to string) http.HandlerFunc { return answers(status, "", "Location", to) }

// wantReason fails the test unless err is an *Error with a reason; it returns it.
func wantReason(t *testing.T, err error, reason string) *Error {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || e.Reason != reason {
		t.Fatalf("error = %v, want one with reason %s", err, reason)
	}
	return e
}
