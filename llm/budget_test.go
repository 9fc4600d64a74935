package llm

import (
	"context"
	"errors"
	"sync"
	"testing"
)

// perCall is a table under which one call of ask costs one dollar: 100 prompt and 20 completion tokens.
var perCall = PriceTable{Date: "2026-01-01", Models: map[string]Price{"stub": {Output: 1e6 / 20.0}}}

func TestBudgetUSD(t *testing.T) {
	worst := 512.0 / 20 // dollars that one call reserves
	for _, tt := range []struct {
		name  string
		max   float64
		calls int
	}{
		{"less than a reservation", worst - 1, 0},
		{"just a reservation", worst, 1},
		{"a reservation and two dollars", worst + 2, 3},
		{"no cap", 0, 10},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, always(answerOK))
			c := client(t, s, Options{Prices: perCall, MaxUSD: tt.max})
			var err error
			for i := 0; i < 10 && err == nil; i++ {
				_, err = c.Complete(t.Context(), ask(i))
			}
			if (err == nil) != (tt.calls == 10) || (err != nil && !errors.Is(err, ErrBudget)) || s.requests() != tt.calls {
				t.Errorf("%d requests and %v, want %d", s.requests(), err, tt.calls)
			}
			var b *BudgetError
			if errors.As(err, &b) && (!b.StopsRun() || b.FailureClass() != "budget") {
				t.Errorf("%v does not stop the run", b)
			}
			if got := c.Stats().USD; got > tt.max && tt.max > 0 {
				t.Errorf("spent $%g of $%g", got, tt.max)
			}
			if err != nil && tt.calls > 0 { // what is stored stays free
				if _, err := c.Complete(t.Context(), ask(0)); err != nil {
					t.Errorf("a stored answer after the budget: %v", err)
				}
			}
		})
	}
}

// Workers share the budget: no more than the cap is spent, and a worker whose money is only held by
// calls in flight waits for it rather than ending the run.
func TestBudgetAtOnce(t *testing.T) {
	s := serve(t, always(answerOK))
	worst := 512.0 / 20
	c := client(t, s, Options{Prices: perCall, MaxUSD: worst + 4})
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			if _, err := c.Complete(t.Context(), ask(i)); err != nil && !errors.Is(err, ErrBudget) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if st := c.Stats(); s.requests() != 5 || st.USD > worst+4 {
		t.Errorf("%d requests for $%g, want 5", s.requests(), st.USD)
	}
}

func TestMaxCalls(t *testing.T) {
	store := memory(t)
	for _, tt := range []struct {
		name    string
		replies []stubReply
		max     int
		calls   int
	}{
		{"plain", []stubReply{answerOK}, 3, 3},
		{"retries count", []stubReply{failing(500, "")}, 2, 2},
		{"repairs count", []stubReply{chat("hm")}, 3, 3},
	} {
		s := serve(t, inTurn(tt.replies...))
		c := client(t, s, Options{MaxCalls: tt.max})
		var err error
		for i := 0; i < 10 && !errors.Is(err, ErrBudget); i++ {
			_, err = c.Complete(t.Context(), ask(i))
		}
		if !errors.Is(err, ErrBudget) || s.requests() != tt.calls {
			t.Errorf("%s: %d requests and %v, want %d", tt.name, s.requests(), err, tt.calls)
		}
	}
	// A cap is for one run: the next one has it whole, and stored answers do not count.
	s := serve(t, always(answerOK))
	for run := range 3 {
		c := client(t, s, Options{Store: store, MaxCalls: 2})
		for i := range 2 * (run + 1) {
			complete(t, c, ask(i))
		}
	}
	if s.requests() != 6 {
		t.Errorf("%d requests in three runs of two, want 6", s.requests())
	}
}

func TestNoPrice(t *testing.T) {
	s := serve(t, always(answerOK))
	c := client(t, s, Options{Prices: PriceTable{Models: map[string]Price{}}, MaxUSD: 5})
	_, err := c.Complete(t.Context(), ask(1))
	var e *Error
	if !errors.As(err, &e) || e.Reason != ReasonNoPrice || !e.StopsRun() || s.requests() != 0 {
		t.Errorf("got %v after %d requests, want no_price before any", err, s.requests())
	}
	q := ask(1)
	q.Endpoint = "inside" // free, whatever the table says
	complete(t, c, q)
	c = client(t, s, Options{Prices: PriceTable{Models: map[string]Price{}}})
	r := complete(t, c, ask(1))
	rec, _, err := c.Record(r.Call)
	if err != nil || rec.USD != nil || rec.PriceDate != "" || c.Stats().Unpriced != 1 {
		t.Errorf("record %+v (%v), stats %+v: want no dollar figure", rec, err, c.Stats())
	}
}

// Replies that tell no usage are charged by their size, and say so.
func TestNoUsage(t *testing.T) {
	s := serve(t, always(stubReply{body: `{"choices":[{"message":{"content":"{\"label\":\"supporting\",\"why\":\"x\"}"},"finish_reason":"stop"}]}`}))
	c := client(t, s, Options{Prices: perCall})
	r := complete(t, c, ask(1))
	rec, _, err := c.Record(r.Call)
	if err != nil || !rec.Estimated || rec.Usage.Completion != 11 || rec.Usage.Prompt < 100 || *rec.USD == 0 {
		t.Errorf("record %+v (%v), want an estimate", rec.Usage, err)
	}
}

func TestReserveStops(t *testing.T) {
	b := newBudget(10, 0)
	if err := b.reserve(t.Context(), 8); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.reserve(ctx, 5); !errors.Is(err, context.Canceled) {
		t.Errorf("reserve = %v, want it cancelled", err)
	}
	b.settle(8, &result{record: Record{USD: ptr(3.0)}})
	if b.usd != 3 || b.calls != 1 || b.heldUSD != 0 || b.held != 0 {
		t.Errorf("after settling: $%g spent in %d calls, $%g held by %d", b.usd, b.calls, b.heldUSD, b.held)
	}
}

func TestPrices(t *testing.T) {
	table, err := DefaultPrices()
	if err != nil || table.Date == "" {
		t.Fatalf("DefaultPrices: %v", err)
	}
	for model, known := range map[string]bool{
		"gpt-4o-mini": true, "gpt-4o-2024-08-06": true, "openai/gpt-4o": true, "claude-haiku-4-5-20251001": true, "anthropic/claude-haiku-4-5": true,
		"gpt-4o-other": false, "": false, "llama3": false, "gpt-4o-mini-": false,
	} {
		if _, ok := table.Lookup(model); ok != known {
			t.Errorf("Lookup(%q) = %v", model, ok)
		}
	}
	p := Price{Input: 2, Cached: 1, Output: 10}
	for _, tt := range []struct {
		u    Usage
		want float64
	}{
		{Usage{}, 0},
		{Usage{Prompt: 1e6}, 2},
		{Usage{Prompt: 1e6, Cached: 1e6}, 1},
		{Usage{Completion: 1e6, Reasoning: 1e6}, 10},
		{Usage{Prompt: 35e4, Completion: 12e4, Total: 135e4}, 0.7 + 10}, // thoughts hidden in the total
	} {
		if got := p.Cost(tt.u); got != tt.want {
			t.Errorf("Cost(%+v) = %g, want %g", tt.u, got, tt.want)
		}
	}
	for name, text := range map[string]string{"unknown key": "date: x\nmodel: {}", "negative": "models: {a: {input: -1}}", "no YAML": "\t"} {
		if _, err := ParsePrices([]byte(text)); err == nil {
			t.Errorf("%s: ParsePrices succeeded", name)
		}
	}
}
