package planner

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"assay/fetch"
	"assay/kv"
)

// A shared host plays Reddit, Arctic Shift and SearXNG at one address, and counts what it serves at once.
type sharedHost struct {
	*httptest.Server
	now, most, served, tokens atomic.Int32
	hold                      chan struct{}    // nil, or what every answer waits for
	instead                   http.HandlerFunc // nil, or what answers everything but a request for a token
	clock                     func() time.Time // of the tools
	sleep                     func(context.Context, time.Duration) error
}

func newSharedHost(t *testing.T) *sharedHost {
	h := &sharedHost{}
	h.Server = httptest.NewServer(h)
	t.Cleanup(h.Close)
	return h
}

func (h *sharedHost) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	n := h.now.Add(1)
	defer h.now.Add(-1)
	for m := h.most.Load(); n > m && !h.most.CompareAndSwap(m, n); m = h.most.Load() {
	}
	if h.hold != nil {
		select {
		case <-h.hold:
		case <-r.Context().Done():
			return
		}
	}
	runtime.Gosched()
	h.served.Add(1)
	switch {
	case h.instead != nil && !strings.HasSuffix(r.URL.Path, "/access_token"):
		h.instead(rw, r)
	case strings.HasSuffix(r.URL.Path, "/access_token"):
		h.tokens.Add(1)
		reply(rw, 200, `{"access_token": "token-number-1-89abcdef", "token_type": "bearer", "expires_in": 86400}`)
	default:
		h.answer(rw, r)
	}
}

// answer is what the interfaces say.
func (h *sharedHost) answer(rw http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/search" && r.URL.Query().Get("format") == "json":
		reply(rw, 200, searxPage("", "https://www.reddit.com/r/harborville/comments/aa1/tolls/"))
	case strings.HasPrefix(r.URL.Path, "/api/posts"):
		reply(rw, 200, `{"data": []}`)
	default:
		reply(rw, 200, `{"kind": "Listing", "data": {"children": [], "after": null}}`)
	}
}

// tools are the three interfaces over one client: each asks one question by its number.
func (h *sharedHost) tools(t *testing.T, perHost int) map[string]func(ctx context.Context, n int) error {
	store, err := kv.OpenMemory()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	var mu sync.Mutex
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	now := func() time.Time { mu.Lock(); defer mu.Unlock(); return at }
	h.clock = now
	h.sleep = func(ctx context.Context, d time.Duration) error {
		mu.Lock()
		defer mu.Unlock()
		at = at.Add(d)
		return ctx.Err()
	}
	web, err := fetch.New(fetch.Options{
		Store: store, Version: "1.0", Contact: "mailto:crawl@assay.example", Delay: -1, PerHost: perHost, AllowPrivate: []string{h.Listener.Addr().String()}, Unstored: []string{h.URL + "/access_token"}, Now: now,
		Sleep: h.sleep,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(web.Close)
	reddit := NewReddit(RedditOptions{
		Web: web, ClientID: "TEST_ID", ClientSecret: "TEST_SECRET", UserAgent: testAgent, Base: h.URL, Token: h.URL + "/access_token", Now: now,
		Getenv: func(string) string { return "client-secret-4567" },
	})
	arctic, searxng := NewArcticShift(web, h.URL), NewSearXNG(web, h.URL)
	return map[string]func(ctx context.Context, n int) error{
		"reddit": func(ctx context.Context, n int) error {
			_, err := reddit.Search(ctx, fmt.Sprintf("tolls %d", n), nil, 10)
			return err
		},
		"arctic_shift": func(ctx context.Context, n int) error {
			_, err := arctic.Search(ctx, fmt.Sprintf("tolls %d", n), []string{"harborville"}, 10)
			return err
		},
		"searxng": func(ctx context.Context, n int) error {
			_, err := searxng.Search(ctx, fmt.Sprintf("tolls %d", n), []string{"reddit.com"}, 10)
			return err
		},
		"page": func(ctx context.Context, n int) error {
			_, err := web.Get(ctx, fetch.Request{URL: fmt.Sprintf("%s/page/%d", h.URL, n)})
			var e *fetch.Error
			if errors.As(err, &e) {
				return nil // an empty listing is no page; that it was asked for is what counts
			}
			return err
		},
	}
}

// HD-28 for the interfaces: whoever asks shares the limit of the host with everybody, the request for a
// token too, which is made while its caller waits; nobody waits for ever, and nothing is left running.
func TestHD28SharedLimitOfInterfaces(t *testing.T) {
	for _, perHost := range []int{1, 2} {
		before := runtime.NumGoroutine()
		t.Run(fmt.Sprint(perHost), func(t *testing.T) {
			h := newSharedHost(t)
			var wg sync.WaitGroup
			for name, ask := range h.tools(t, perHost) {
				work := make(chan int)
				for range 8 {
					wg.Go(func() {
						for n := range work {
							if err := ask(t.Context(), n); err != nil {
								t.Errorf("%s %d: %v", name, n, err)
							}
						}
					})
				}
				wg.Go(func() {
					defer close(work)
					for n := range 50 {
						work <- n
					}
				})
			}
			wg.Wait()
			if h.most.Load() > int32(perHost) || h.tokens.Load() != 1 || h.served.Load() < 200 {
				t.Errorf("%d at once of %d requests, %d for tokens; want %d at once and one", h.most.Load(), h.served.Load(), h.tokens.Load(), perHost)
			}
		})
		ended(t, before)
	}
}

// Whoever gives up while it waits for a host gives its place back: the others are answered after it.
func TestHD28CancelledQueueOfInterfaces(t *testing.T) {
	before := runtime.NumGoroutine()
	t.Run("", func(t *testing.T) {
		h := newSharedHost(t)
		h.hold = make(chan struct{})
		tools := h.tools(t, 1)
		ctx, cancel := context.WithCancel(t.Context())
		var giving, staying sync.WaitGroup
		for _, ask := range tools {
			for n := range 20 {
				giving.Go(func() {
					if err := ask(ctx, n); !errors.Is(err, context.Canceled) {
						t.Errorf("it did not give up: %v", err)
					}
				})
			}
		}
		for h.now.Load() == 0 { // one is out, the others wait
			runtime.Gosched()
		}
		for name, ask := range tools {
			for n := range 5 {
				staying.Go(func() {
					if err := ask(t.Context(), 100+n); err != nil {
						t.Errorf("%s: %v", name, err)
					}
				})
			}
		}
		cancel()
		giving.Wait()
		close(h.hold)
		staying.Wait()
		if h.most.Load() > 2 { // the server learns later than we that a request was given up
			t.Errorf("%d at once, want 1", h.most.Load())
		}
	})
	ended(t, before)
}

// interfaces are the tools that ask by fetch.Call.
var interfaces = []string{"arctic_shift", "reddit", "searxng"}

// HD-04 by every interface: a redirect is an answer, so that none of it leads round and round; a loop
// costs one request, and so does a way to somewhere else.
func TestHD04RedirectsOfInterfaces(t *testing.T) {
	for _, to := range []string{"", "/other", "https://elsewhere.example/"} { // "": to itself
		for _, name := range interfaces {
			h := newSharedHost(t)
			h.instead = func(rw http.ResponseWriter, r *http.Request) {
				where := to
				if to == "" {
					where = r.URL.String()
				}
				reply(rw, 302, "", "Location", where)
			}
			if err := h.tools(t, 1)[name](t.Context(), 1); err == nil {
				t.Errorf("%s to %q: no error", name, to)
			}
			if n := h.served.Load() - h.tokens.Load(); n != 1 {
				t.Errorf("%s to %q: %d requests, want one", name, to, n)
			}
		}
	}
}

// HD-05 by every interface: a small body that grows without end is too large, and not half an answer.
func TestHD05BombsOfInterfaces(t *testing.T) {
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	for range 64 {
		if _, err := z.Write(bytes.Repeat([]byte(" "), 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range interfaces {
		h := newSharedHost(t)
		h.instead = func(rw http.ResponseWriter, _ *http.Request) {
			reply(rw, 200, bomb.String(), "Content-Encoding", "gzip")
		}
		err := h.tools(t, 1)[name](t.Context(), 1)
		if err == nil || !strings.Contains(err.Error(), fetch.ReasonTooLarge) {
			t.Errorf("%s: error %v, want too large", name, err)
		}
		if n := h.served.Load() - h.tokens.Load(); n != 1 {
			t.Errorf("%s: %d requests, want one", name, n)
		}
	}
}

// HD-10 by every interface: a pause is kept to the second, as a number or as a date, and asked for once.
func TestHD10PausesOfInterfaces(t *testing.T) {
	for _, date := range []bool{false, true} {
		for _, name := range interfaces {
			h := newSharedHost(t)
			tools := h.tools(t, 1)
			var at []time.Time
			h.instead = func(rw http.ResponseWriter, r *http.Request) {
				at = append(at, h.clock())
				if len(at) > 1 {
					h.answer(rw, r)
					return
				}
				pause := "4"
				if date {
					pause = at[0].Add(4 * time.Second).Format(http.TimeFormat)
				}
				rw.Header()["Date"] = []string{at[0].Format(http.TimeFormat)}
				reply(rw, 429, "Too Many Requests", "Retry-After", pause, "Content-Type", "text/plain")
			}
			if err := tools[name](t.Context(), 1); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if len(at) < 2 || at[1].Sub(at[0]) < 4*time.Second || at[1].Sub(at[0]) > 7*time.Second {
				t.Errorf("%s, date %v: asked at %v", name, date, at)
			}
		}
	}
}

// HD-01 by every interface: JSON is UTF-8 whatever its header says, with or without a mark before it.
func TestHD01CharsetsOfInterfaces(t *testing.T) {
	for _, kind := range []string{"application/json", "application/json; charset=iso-8859-1", "text/plain"} {
		for _, mark := range []string{"", "\ufeff"} {
			for _, name := range interfaces {
				h := newSharedHost(t)
				h.instead = func(rw http.ResponseWriter, r *http.Request) {
					rec := httptest.NewRecorder()
					h.answer(rec, r)
					reply(rw, 200, mark+rec.Body.String(), "Content-Type", kind)
				}
				if err := h.tools(t, 1)[name](t.Context(), 1); err != nil {
					t.Errorf("%s as %s, mark %q: %v", name, kind, mark, err)
				}
			}
		}
	}
}

// ended waits for what a test made to be gone; connections of a server close a moment after it.
func ended(t *testing.T, before int) {
	t.Helper()
	for range 10_000 {
		if runtime.NumGoroutine() <= before+5 {
			return
		}
		runtime.Gosched()
		runtime.GC()
	}
	t.Errorf("%d goroutines after the run, %d before", runtime.NumGoroutine(), before)
}

// innerAddresses are results that lead into this machine, and the count of connections that anybody makes
// to it.
func innerAddresses(t *testing.T) (addresses []string, dialled *atomic.Int32) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dialled = &atomic.Int32{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			dialled.Add(1)
			c.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	port := l.Addr().(*net.TCPAddr).Port
	return []string{
		"http://169.254.169.254/latest/meta-data/", fmt.Sprintf("http://127.0.0.1:%d/", port), fmt.Sprintf("http://[::1]:%d/", port),
		fmt.Sprintf("http://2130706433:%d/", port), fmt.Sprintf("http://0x7f000001:%d/", port), "file:///etc/passwd",
	}, dialled
}
