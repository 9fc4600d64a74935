package llm

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay/kv"
)

// A narrow endpoint answers so many requests at once, each in a second, and refuses the rest. It runs
// in a bubble, over pipes, so that seconds are counted and not waited for.
type narrow struct {
	mu       sync.Mutex
	takes    func(answered int) int // at once
	wait     time.Duration          // that a refusal names; 0: none
	now      int
	most     int // at once, since reset
	answered int
	refused  int
}

func (s *narrow) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	if s.now >= s.takes(s.answered) {
		s.refused++
		s.mu.Unlock()
		if s.wait > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(int(s.wait.Seconds())))
		}
		w.WriteHeader(http.StatusTooManyRequests)
		fmt.Fprint(w, `{"error":{"code":"rate_limit_exceeded","message":"too many at once"}}`)
		return
	}
	s.now++
	s.most = max(s.most, s.now)
	s.mu.Unlock()
	time.Sleep(time.Second)
	s.mu.Lock()
	s.now--
	s.answered++
	s.mu.Unlock()
	fmt.Fprint(w, answerOK.body)
}

// pipes is a listener whose connections are made in memory.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}
func (p *pipes) Close() error   { close(p.closed); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.conns <- theirs:
		return ours, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// flood asks s n questions from so many workers, and returns how long that took by the bubble's clock.
func flood(t *testing.T, s *narrow, workers, n int, at Endpoint) time.Duration {
	t.Helper()
	p := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
	server := &http.Server{Handler: s}
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := server.Serve(p); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	})
	store, err := kv.OpenMemory()
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{DialContext: p.dial, MaxIdleConnsPerHost: workers}
	at.Provider, at.BaseURL, at.Concurrency = ProviderOpenAI, "http://model.test/v1", workers
	c, err := New(Options{Store: store, Endpoints: map[string]Endpoint{"main": at}, HTTP: &http.Client{Transport: transport}})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	var asking sync.WaitGroup
	work := make(chan int)
	for range workers {
		asking.Go(func() {
			for i := range work {
				if _, err := c.Complete(t.Context(), ask(i)); err != nil {
					t.Errorf("call %d: %v", i, err)
				}
			}
		})
	}
	for i := range n {
		work <- i
	}
	close(work)
	asking.Wait()
	took := time.Since(began)
	if err := errors.Join(c.Close(), server.Close(), store.Close()); err != nil {
		t.Error(err)
	}
	transport.CloseIdleConnections()
	serving.Wait()
	return took
}

// However few requests an endpoint takes at once, a thousand calls all get their answer. It refuses no
// more than about as many as there are workers, once, and one now and then when it is tried whether it
// takes more; and it is kept busy: calls at once, averaged over the run, come near to what it takes.
func TestWindowFindsWhatAnEndpointTakes(t *testing.T) {
	const workers, calls = 32, 1000
	for _, takes := range []int{1, 2, 3, 4, 8, 16, 31, 32} {
		synctest.Test(t, func(t *testing.T) {
			s := &narrow{takes: func(int) int { return takes }}
			took := flood(t, s, workers, calls, Endpoint{})
			if s.answered != calls || s.refused > 2*workers {
				t.Errorf("taking %d at once it answered %d and refused %d, want %d and at most %d", takes, s.answered, s.refused, calls, 2*workers)
			}
			if atOnce := calls * time.Second.Seconds() / took.Seconds(); atOnce < 0.7*float64(takes) {
				t.Errorf("of %d at once %.1f were used, in %s", takes, atOnce, took)
			}
			if takes == workers && s.refused != 0 {
				t.Errorf("%d refusals by an endpoint that takes all", s.refused)
			}
		})
	}
}

// What an endpoint takes may shrink and grow while a run goes on; the calls in flight follow.
func TestWindowRecovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &narrow{}
		s.takes = func(answered int) int {
			switch {
			case answered < 200:
				return 16
			case answered < 400:
				return 2
			case answered == 400:
				s.most = 0
			}
			return 16
		}
		took := flood(t, s, 16, 1400, Endpoint{})
		if s.answered != 1400 || s.refused > 64 {
			t.Errorf("%d answered, %d refused; want all and at most 64", s.answered, s.refused)
		}
		if s.most < 16 {
			t.Errorf("at most %d at once after it recovered, want 16", s.most)
		}
		// 200 calls sixteen at a time, 200 two at a time, and 1,000 with some time to find out.
		if ideal := 200/16 + 200/2 + 1000/16; took > 2*time.Duration(ideal)*time.Second {
			t.Errorf("it took %s, and %d s at best", took, ideal)
		}
	})
}

// An endpoint that says for how long it wants to be left alone is left alone by all, whoever was told.
func TestWindowWithNamedWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &narrow{takes: func(int) int { return 5 }, wait: 20 * time.Second}
		took := flood(t, s, 20, 300, Endpoint{})
		if s.answered != 300 || s.refused > 40 || took < 20*time.Second {
			t.Errorf("%d answered, %d refused in %s", s.answered, s.refused, took)
		}
	})
}

// Limits of the configuration hold beside the window.
func TestWindowBesideRequestsPerMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &narrow{takes: func(int) int { return 4 }}
		took := flood(t, s, 16, 300, Endpoint{RPM: 60})
		if s.answered != 300 || s.refused > 32 || took < 4*time.Minute || took > 7*time.Minute {
			t.Errorf("%d answered, %d refused in %s; 60 a minute make 300 in four minutes and a bit", s.answered, s.refused, took)
		}
	})
}

// A wave of refusals halves the window once; stragglers of it lower it to what was taken, and replies
// of it do not widen it.
func TestWindowOfOneWave(t *testing.T) {
	clk := newClock()
	g := newGate(Endpoint{Concurrency: 8}, time.Minute, clk.now, clk.sleep)
	var wave []*ticket
	for range 8 {
		ticket, err := g.enter(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		wave = append(wave, ticket)
	}
	refused := func(ticket *ticket, named bool) int {
		g.learn(ticket, nil)
		g.exceeded(ticket, named)
		g.leave()
		return g.window
	}
	var got []int
	for _, ticket := range wave[:6] {
		got = append(got, refused(ticket, false))
	}
	for _, ticket := range wave[6:] {
		g.learn(ticket, nil)
		g.fits(ticket)
		g.leave()
		got = append(got, g.window)
	}
	if diff := cmp.Diff([]int{4, 4, 4, 4, 3, 2, 2, 2}, got); diff != "" {
		t.Errorf("windows (-want +got):\n%s", diff)
	}
	g.out++
	if refused(wave[0], true) != 2 {
		t.Errorf("a straggler with a named wait makes the window %d", g.window)
	}
}

// Whoever gives up while it waits for a slot takes none with it, and whoever holds one that the window
// has no room for any more queues again.
func TestSlotsOfAShrunkWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(Endpoint{Concurrency: 3}, time.Hour, time.Now, sleep)
		var first *ticket
		for range 3 {
			ticket, err := g.enter(t.Context(), 1)
			if err != nil {
				t.Fatal(err)
			}
			first = ticket
		}
		ctx, cancel := context.WithCancel(t.Context())
		var waiting sync.WaitGroup
		for range 2 {
			waiting.Go(func() {
				if _, err := g.enter(ctx, 1); !errors.Is(err, context.Canceled) {
					t.Errorf("entered: %v", err)
				}
			})
		}
		waiting.Go(func() {
			if _, err := g.enter(t.Context(), 1); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		if g.queue.Len() != 3 {
			t.Fatalf("%d wait, want 3", g.queue.Len())
		}
		g.exceeded(first, false)
		cancel()
		synctest.Wait()
		if g.queue.Len() != 1 || g.window != 1 {
			t.Fatalf("%d wait with a window of %d, want 1 and 1", g.queue.Len(), g.window)
		}
		g.pause(time.Minute)
		g.leave()
		g.leave()
		synctest.Wait()
		if g.queue.Len() != 1 || g.busy != 1 {
			t.Fatalf("%d wait and %d are busy, want 1 and 1", g.queue.Len(), g.busy)
		}
		g.leave()
		waiting.Wait()
		g.leave()
		if g.busy != 0 {
			t.Errorf("%d slots are not given back", g.busy)
		}
	})
}
