package fetch

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestHostGroup(t *testing.T) {
	tests := map[string]string{
		"https://www.check.co.uk/a":     "check.co.uk",
		"http://check.co.uk:8080/a":     "check.co.uk",
		"https://old.reddit.com/":       "reddit.com",
		"http://127.0.0.1:8080/":        "127.0.0.1:8080",
		"http://127.0.0.1/":             "127.0.0.1:80",
		"https://[2001:db8::1]/x":       "[2001:db8::1]:443",
		"http://localhost:99/?q=a:b@c":  "localhost:99",
		"https://x.github.io/page@home": "x.github.io",
	}
	for url, want := range tests {
		if got := hostGroup(url); got != want {
			t.Errorf("hostGroup(%s) = %q, want %q", url, got, want)
		}
	}
}

func TestDelays(t *testing.T) {
	tests := []struct {
		name   string
		change func(*Options)
		robots string
		want   time.Duration // least gap at the host
	}{
		{"the default", func(o *Options) { o.Delay = 0 }, "", time.Second},
		{"another default", func(o *Options) { o.Delay = 3 * time.Second }, "", 3 * time.Second},
		{"none", func(o *Options) { o.Delay = -1 }, "", 0},
		{"of the host", func(o *Options) { o.HostDelay = map[string]time.Duration{"WWW.h.example": 4 * time.Second} }, "", 4 * time.Second},
		{"of the domain", func(o *Options) { o.HostDelay = map[string]time.Duration{"h.example": 4 * time.Second} }, "", 4 * time.Second},
		{"none for the host", func(o *Options) { o.Delay, o.HostDelay = 0, map[string]time.Duration{"h.example": 0} }, "", 0},
		{"of robots.txt", func(o *Options) { o.Delay = 0 }, "User-agent: *\nCrawl-delay: 5\n", 5 * time.Second},
		{"of robots.txt up to the cap", func(o *Options) { o.Delay = 0 }, "User-agent: *\nCrawl-delay: 3600\n", time.Minute},
		{"the configured one where robots.txt asks for less", func(o *Options) { o.Delay = 5 * time.Second }, "User-agent: *\nCrawl-delay: 1\n", 5 * time.Second},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWeb(t)
			w.pages["www.h.example"] = shows("page")
			w.pages["www.h.example/robots.txt"] = answers(200, tt.robots)
			c := w.client(t, memory(t), tt.change)
			for i := range 4 {
				if _, err := c.Get(t.Context(), Request{URL: fmt.Sprintf("http://www.h.example/%d", i)}); err != nil {
					t.Fatal(err)
				}
			}
			for i := range 3 {
				a, b := w.seen(fmt.Sprintf("www.h.example/%d", i))[0], w.seen(fmt.Sprintf("www.h.example/%d", i+1))[0]
				if got := b.at.Sub(a.at); got != tt.want {
					t.Errorf("between requests %d and %d: %v, want %v", i, i+1, got, tt.want)
				}
			}
		})
	}
}

func TestAdaptiveGap(t *testing.T) {
	base := time.Second
	bad, good := Exchange{Class: ClassThrottled}, Exchange{Class: ClassOK, Status: 200}
	ln := &lane{}
	for i, want := range []time.Duration{2 * time.Second, 4 * time.Second, 8 * time.Second} {
		if ln.learn(bad, 0, base, 1); ln.gap != want {
			t.Errorf("gap after %d errors = %v, want %v", i+1, ln.gap, want)
		}
	}
	for range 20 {
		ln.learn(bad, 0, base, 1)
	}
	if ln.gap != maxGap {
		t.Errorf("gap after many errors = %v, want %v", ln.gap, maxGap)
	}
	for _, ex := range []Exchange{{Class: ClassBlocked, Status: 403}, {Class: ClassGone, Status: 404}, good} {
		before := ln.gap
		if ln.learn(ex, 0, base, 1); ln.gap >= before || ln.gap < before*8/10 {
			t.Errorf("gap after %s went from %v to %v, want a little less", ex.Class, before, ln.gap)
		}
	}
	for range 60 {
		ln.learn(good, 0, base, 1)
	}
	if ln.gap != 0 {
		t.Errorf("gap after many good answers = %v, want none beside the configured delay", ln.gap)
	}
	if ln.learn(good, 10*time.Second, base, 1); ln.gap != 5500*time.Millisecond {
		t.Errorf("gap after one answer in 10 s = %v, want half way from %v", ln.gap, base)
	}
	ln = &lane{}
	if ln.learn(bad, 0, 0, 1); ln.gap != minGap {
		t.Errorf("gap after an error of a host without delay = %v, want %v", ln.gap, minGap)
	}
	if ln.learn(good, 3*time.Second, 0, 16); ln.gap >= 3*time.Second {
		t.Errorf("a slow answer among 16 at once widens the gap to %v", ln.gap)
	}
}

// A sender that a test writes as a function.
type senderFunc func(context.Context, *call) (answer, error)

func (f senderFunc) send(ctx context.Context, c *call) (answer, error) { return f(ctx, c) }

// bare makes a limiter around a sender, without anything else of a client.
func bare(t testing.TB, perHost int, next sender) *limiter {
	return &limiter{
		perHost: perHost, archive: openArchive(memory(t)), now: time.Now, sleep: sleep, stats: &counters{hosts: map[string]HostStats{}},
		lanes: map[string]*lane{}, crawl: map[string]time.Duration{}, next: next,
	}
}

func TestLimiterCancel(t *testing.T) {
	release := make(chan struct{})
	var inside atomic.Int32
	l := bare(t, 1, senderFunc(func(context.Context, *call) (answer, error) {
		inside.Add(1)
		<-release
		return answer{}, nil
	}))
	var wg sync.WaitGroup
	started := make(chan struct{})
	wg.Go(func() {
		close(started)
		if _, err := l.send(t.Context(), &call{url: "http://h.example/1"}); err != nil {
			t.Error(err)
		}
	})
	<-started
	for inside.Load() == 0 {
		runtime.Gosched()
	}
	// These wait behind the first; then they are called off.
	ctx, cancel := context.WithCancel(t.Context())
	for range 50 {
		wg.Go(func() {
			if _, err := l.send(ctx, &call{url: "http://h.example/2"}); !errors.Is(err, context.Canceled) {
				t.Errorf("error = %v, want cancelled", err)
			}
		})
	}
	queued := func() int {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.lanes["h.example"].queue.Len()
	}
	for queued() < 50 {
		runtime.Gosched()
	}
	cancel()
	for queued() > 0 {
		runtime.Gosched()
	}
	close(release)
	wg.Wait()
	// The slot is free again, whether its holder was cancelled, refused or crashed.
	func() {
		defer func() { _ = recover() }()
		_, _ = l.sendTo(t.Context(), &call{url: "http://h.example/3"}, senderFunc(func(context.Context, *call) (answer, error) { panic("lost") }))
	}()
	done, stop := context.WithCancel(t.Context())
	stop()
	if _, err := l.send(done, &call{url: "http://h.example/3"}); !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v, want cancelled", err)
	}
	if _, err := l.send(t.Context(), &call{url: "http://h.example/4"}); err != nil || inside.Load() != 2 {
		t.Errorf("error %v after %d requests, want the second to go through", err, inside.Load())
	}
	if ln := l.lanes["h.example"]; ln.busy != 0 || ln.turn || ln.queue.Len() != 0 {
		t.Errorf("lane = busy %d, turn %v, queue %d; want it idle", ln.busy, ln.turn, ln.queue.Len())
	}
}

// A cancelled wait for the gap hands the turn on.
func TestLimiterCancelDuringGap(t *testing.T) {
	l := bare(t, 1, senderFunc(func(context.Context, *call) (answer, error) { return answer{}, nil }))
	l.delay = time.Hour
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	l.now = func() time.Time { return at }
	asleep := make(chan struct{}, 2)
	l.sleep = func(ctx context.Context, _ time.Duration) error {
		asleep <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	}
	if _, err := l.send(t.Context(), &call{url: "http://h.example/1"}); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 2 {
		ctx, cancel := context.WithCancel(t.Context())
		wg.Go(func() {
			if _, err := l.send(ctx, &call{url: "http://h.example/2"}); !errors.Is(err, context.Canceled) {
				t.Errorf("error = %v, want cancelled", err)
			}
		})
		<-asleep // the first waits for the gap, then, once it is called off, the second
		cancel()
	}
	wg.Wait()
	if ln := l.lanes["h.example"]; ln.busy != 0 || ln.turn {
		t.Errorf("lane = busy %d, turn %v; want it idle", ln.busy, ln.turn)
	}
}

// A parked host refuses what already waits in its queue.
func TestLimiterParksItsQueue(t *testing.T) {
	first := make(chan struct{})
	l := bare(t, 1, nil)
	l.next = senderFunc(func(_ context.Context, c *call) (answer, error) {
		<-first
		return answer{}, l.park(c.url, time.Hour, "test")
	})
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := l.send(t.Context(), &call{url: "http://h.example/1"}); err != nil {
			t.Error(err)
		}
	})
	for {
		l.mu.Lock()
		busy := l.lanes["h.example"] != nil && l.lanes["h.example"].busy == 1
		l.mu.Unlock()
		if busy {
			break
		}
		runtime.Gosched()
	}
	for range 20 {
		wg.Go(func() {
			_, err := l.send(t.Context(), &call{url: "http://h.example/2"})
			var e *Error
			if !errors.As(err, &e) || e.Reason != ReasonParked {
				t.Errorf("error = %v, want parked", err)
			}
		})
	}
	close(first)
	wg.Wait()
}

func TestHD28SharedLimitAndLongQueue(t *testing.T) {
	before := runtime.NumGoroutine()
	t.Run("two users share two slots", func(t *testing.T) {
		w := newWeb(t)
		var now, most atomic.Int32
		w.pages["h.example"] = func(rw http.ResponseWriter, r *http.Request) {
			n := now.Add(1)
			defer now.Add(-1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			runtime.Gosched()
			shows("page")(rw, r)
		}
		c := w.client(t, memory(t), func(o *Options) { o.PerHost = 2 })
		// One user through Get, one through the client for crawlers, which comes when the first is under way.
		half := make(chan struct{})
		var wg sync.WaitGroup
		for user := range 2 {
			urls := make(chan string)
			for range 8 {
				wg.Go(func() {
					for url := range urls {
						if err := visitBy(t.Context(), c, user, url); err != nil {
							t.Errorf("user %d: %v", user, err)
						}
					}
				})
			}
			wg.Go(func() {
				defer close(urls)
				if user == 1 {
					<-half
				}
				for i := range 100 {
					if user == 0 && i == 50 {
						close(half)
					}
					urls <- fmt.Sprintf("http://h.example/%d/%d", user, i)
				}
			})
		}
		wg.Wait()
		if n := len(w.paths()); n != 200 {
			t.Errorf("%d requests, want 200", n)
		}
		if most.Load() > 2 {
			t.Errorf("the host saw %d requests at once, want at most 2", most.Load())
		}
	})
	t.Run("a long queue of one slow host", func(t *testing.T) {
		const queued = 100_000
		var sent atomic.Int32
		l := bare(t, 1, senderFunc(func(context.Context, *call) (answer, error) {
			sent.Add(1)
			return answer{}, nil
		}))
		c := newClock()
		l.delay, l.now, l.sleep = time.Second, c.Now, func(ctx context.Context, d time.Duration) error {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.at = c.at.Add(d)
			return ctx.Err()
		}
		urls := make(chan string)
		var wg sync.WaitGroup
		for range 64 {
			wg.Go(func() {
				for url := range urls {
					if _, err := l.send(t.Context(), &call{url: url}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		most := 0
		for i := range queued {
			if i%1000 == 0 {
				most = max(most, runtime.NumGoroutine())
			}
			urls <- fmt.Sprintf("http://slow.example/%d", i)
		}
		close(urls)
		wg.Wait()
		if most >= 1000 {
			t.Errorf("%d goroutines while %d addresses were queued, want less than 1000", most, queued)
		}
		if sent.Load() != queued {
			t.Errorf("%d sent, want %d", sent.Load(), queued)
		}
		if took := c.Now().Sub(newClock().Now()); took != (queued-1)*time.Second {
			t.Errorf("%d requests took %v of the host's time, want a second between any two", queued, took)
		}
	})
	// What the test made has ended; connections of the server close a moment after it.
	for range 1000 {
		if runtime.NumGoroutine() <= before+5 {
			return
		}
		runtime.Gosched()
		runtime.GC()
	}
	t.Errorf("%d goroutines after the run, %d before", runtime.NumGoroutine(), before)
}

// visitBy gets a page in one of the two ways that a client has.
func visitBy(ctx context.Context, c *Client, way int, url string) error {
	if way == 0 {
		_, err := c.Get(ctx, Request{URL: url})
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := c.HTTP().Do(req)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}
