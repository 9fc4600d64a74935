package llm

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestRequestsPerMinute(t *testing.T) {
	for _, tt := range []struct {
		name     string
		rpm, tpm int
		tokens   int
		took     time.Duration // for ten calls
	}{
		{"no limit", 0, 0, 100, 0},
		{"enough", 10, 0, 100, 0},
		{"five a minute", 5, 0, 100, time.Minute},
		{"three a minute", 3, 0, 100, 3 * time.Minute},
		{"tokens for four", 0, 400, 100, 2 * time.Minute},
		{"tokens for half a call", 0, 50, 100, 9 * time.Minute},
		{"both, the tighter one counts", 5, 400, 100, 2 * time.Minute},
	} {
		clk := newClock()
		start := clk.now()
		g := newGate(Endpoint{Concurrency: 1, RPM: tt.rpm, TPM: tt.tpm}, time.Minute, clk.now, clk.sleep)
		for range 10 {
			if _, err := g.enter(t.Context(), tt.tokens); err != nil {
				t.Fatal(err)
			}
			g.leave()
		}
		if took := clk.now().Sub(start); took != tt.took {
			t.Errorf("%s: ten calls took %s, want %s", tt.name, took, tt.took)
		}
	}
}

// What a call did not use is free again within its minute.
func TestTokensSettle(t *testing.T) {
	clk := newClock()
	start := clk.now()
	g := newGate(Endpoint{Concurrency: 1, TPM: 1000}, time.Minute, clk.now, clk.sleep)
	for range 10 {
		ticket, err := g.enter(t.Context(), 900)
		if err != nil {
			t.Fatal(err)
		}
		g.settle(ticket, 10)
		g.leave()
	}
	if took := clk.now().Sub(start); took != 0 {
		t.Errorf("ten calls of 10 tokens took %s", took)
	}
	old, _ := g.enter(t.Context(), 900)
	g.leave()
	clk.sleep(t.Context(), 2*time.Minute)
	if _, err := g.enter(t.Context(), 1000); err != nil {
		t.Fatal(err)
	}
	g.settle(old, 0) // its minute is over
	if g.tokens != 1000 {
		t.Errorf("%d tokens in the minute, want 1000", g.tokens)
	}
}

// A 429 holds the whole endpoint back, not only the call that met it.
func TestPause(t *testing.T) {
	clk := newClock()
	s := serve(t, inTurn(failing(429, "", "Retry-After", "20"), answerOK))
	c := client(t, s, Options{Now: clk.now, Sleep: clk.sleep, Retries: -1})
	if _, err := c.Complete(t.Context(), ask(1)); err == nil {
		t.Fatal("the first call succeeded")
	}
	start := clk.now()
	complete(t, c, ask(2))
	if waited := clk.now().Sub(start); waited != 20*time.Second {
		t.Errorf("the next call waited %s, want 20s", waited)
	}
}

// An endpoint that wants to be left alone for longer than the cap is parked: its calls fail without
// being sent, and go out again when the time has come near.
func TestParked(t *testing.T) {
	clk := newClock()
	s := serve(t, inTurn(failing(429, "", "Retry-After", "3600"), answerOK))
	c := client(t, s, Options{Now: clk.now, Sleep: clk.sleep})
	for i := range 3 {
		_, err := c.Complete(t.Context(), ask(i))
		var e *Error
		if !errors.As(err, &e) || e.Reason != ReasonRateLimit || e.Wait != time.Hour || e.FailureClass() != "transient" {
			t.Errorf("call %d: got %v, want a rate limit for an hour", i, err)
		}
	}
	if recs := records(t, c); s.requests() != 1 || len(recs) != 1 || len(clk.slept) != 0 {
		t.Errorf("%d requests, %d records, slept %v; want one and no waiting", s.requests(), len(recs), clk.slept)
	}
	clk.sleep(t.Context(), 56*time.Minute)
	complete(t, c, ask(5))
	if got := clk.now().Sub(newClock().now()); got != time.Hour {
		t.Errorf("the next call went out after %s, want an hour", got)
	}
}

func TestConcurrency(t *testing.T) {
	for _, limit := range []int{1, 4} {
		var now, most atomic.Int32
		gate := make(chan struct{}, 100)
		s := serve(t, func(int, string) stubReply {
			n := now.Add(1)
			for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
			}
			gate <- struct{}{}
			defer now.Add(-1)
			return answerOK
		})
		c := client(t, s, Options{Endpoints: map[string]Endpoint{"main": {Concurrency: limit}}})
		var wg sync.WaitGroup
		for i := range 40 {
			wg.Go(func() {
				if _, err := c.Complete(t.Context(), ask(i)); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if got := int(most.Load()); got > limit {
			t.Errorf("%d calls in flight, limit %d", got, limit)
		}
	}
}

func TestEnterStops(t *testing.T) {
	clk := newClock()
	g := newGate(Endpoint{Concurrency: 1, RPM: 1}, time.Minute, clk.now, clk.sleep)
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := g.enter(ctx, 1); err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := g.enter(ctx, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("waiting for a slot: %v", err)
	}
	g.leave()
	if _, err := g.enter(ctx, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("waiting for the minute: %v", err)
	}
	if g.busy != 0 || g.queue.Len() != 0 {
		t.Error("a caller that gave up keeps its slot")
	}
}
