package llm

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
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
	if err := b.reserve(t.Context(), 8, 1); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.reserve(ctx, 5, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("reserve = %v, want it cancelled", err)
	}
	b.settle(8, 1, 3, 1)
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
}

func TestParsePrices(t *testing.T) {
	table, err := ParsePrices([]byte("date: \"2026-09-01\"\nsource: a list\nmodels:\n  a: {input: 2, output: 8}\n  b: {input: 2, cached: 0, output: 8, date: \"2026-08-01\"}\n"))
	want := PriceTable{Date: "2026-09-01", Source: "a list", Models: map[string]Price{"a": {2, 2, 8, "2026-09-01", nil}, "b": {2, 0, 8, "2026-08-01", nil}}}
	if diff := cmp.Diff(want, table); diff != "" || err != nil {
		t.Fatalf("table (-want +got), %v:\n%s", err, diff)
	}
	again, err := ParsePrices(table.YAML())
	if diff := cmp.Diff(table, again); diff != "" || err != nil {
		t.Errorf("written and read again (-want +got), %v:\n%s", err, diff)
	}
	below := PriceTable{Date: "2025-01-01", Models: map[string]Price{"a": {1, 1, 1, "2025-01-01", nil}, "c": {3, 3, 3, "2025-01-01", nil}}}
	over := table.Over(below)
	if p, ok := over.Lookup("vendor/c-2025-10-10"); !ok || p.Date != "2025-01-01" || over.Models["a"].Input != 2 || len(below.Models) != 2 {
		t.Errorf("laid over another it is %+v", over)
	}
	for text, says := range map[string]string{
		"date: \"2026-06-01\"\nmodel: {}":                                      "model",
		"date: \"2026-06-01\"\nmodels: {a: {input: -1, output: 1}}":            "a: -1 USD",
		"date: \"2026-06-01\"\nmodels: {a: {input: .nan, output: 1}}":          "a: NaN USD",
		"date: \"2026-06-01\"\nmodels: {a: {input: 1, output: .inf}}":          "a: +Inf USD",
		"date: \"2026-06-01\"\nmodels: {a: {input: 1}}":                        "line 2: a price needs input and output",
		"date: \"2026-06-01\"\nmodels: {a: {input: 1, outpt: 1}}":              `line 2: a price has no "outpt"`,
		"date: \"2026-06-01\"\nmodels: {a: 3}":                                 "line 2: a price is {input: X",
		"date: \"2026-06-01\"\nmodels: {a: {input: 1, output: 1, date: June}}": `a: "June" is no date`,
		"date: June 2026\nmodels: {a: {input: 1, output: 1}}":                  `date: "June 2026" is no date such as`,
		"models: {a: {input: 1, output: 1}}":                                   "needs a date",
		"\t":                                                                   "read price table",
		"":                                                                     "read price table",
	} {
		if _, err := ParsePrices([]byte(text)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("ParsePrices(%q) = %v, want an error that says %q", text, err, says)
		}
	}
}

// A list in LiteLLM's form: what is billed by tokens of text is read, everything else is counted.
func TestReadLiteLLMPrices(t *testing.T) {
	models, skipped, problems, err := ReadLiteLLMPrices([]byte(`{
		"sample_spec": {"mode": "one of: chat, embedding", "input_cost_per_token": 0.0},
		"plain": {"litellm_provider": "x", "mode": "chat", "input_cost_per_token": 2.5e-06, "output_cost_per_token": 1e-05, "input_cost_per_token_above_200k_tokens": 5e-06},
		"vendor/cheap": {"mode": "responses", "input_cost_per_token": 1.5e-07, "cache_read_input_token_cost": 7.5e-08, "output_cost_per_token": 6e-07},
		"old": {"mode": "completion", "input_cost_per_token": 2e-06, "output_cost_per_token": 2e-06},
		"free": {"mode": "chat", "input_cost_per_token": 0, "output_cost_per_token": 0},
		"vectors": {"mode": "embedding", "input_cost_per_token": 2e-08},
		"half a price": {"mode": "chat", "input_cost_per_token": 2e-08},
		"by second": {"mode": "chat", "input_cost_per_second": 0.001},
		"pictures": {"mode": "image_generation", "input_cost_per_token": 5e-06, "output_cost_per_token": 1e-05},
		"nothing": {},
		"words": {"mode": "chat", "input_cost_per_token": "a lot", "output_cost_per_token": 1e-05},
		"below nothing": {"mode": "chat", "input_cost_per_token": -1e-06, "output_cost_per_token": 1e-05},
		"a list": []
	}`))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]Price{
		"plain": {Input: 2.5, Cached: 2.5, Output: 10}, "vendor/cheap": {Input: 0.15, Cached: 0.075, Output: 0.6}, "old": {Input: 2, Cached: 2, Output: 2}, "free": {}, "vectors": {Input: 0.02, Cached: 0.02},
	}
	if diff := cmp.Diff(want, models); diff != "" {
		t.Errorf("prices (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]int{"no price by token": 2, "mode image_generation": 1, "no mode": 1}, skipped); diff != "" {
		t.Errorf("skipped (-want +got):\n%s", diff)
	}
	if len(problems) != 3 || !strings.HasPrefix(problems[0], `"a list": `) || problems[1] != `"below nothing": -1 USD per million tokens is no price` || !strings.HasPrefix(problems[2], `"words": `) {
		t.Errorf("problems %q", problems)
	}
	for _, text := range []string{"", "[]", "{}", `{"a": {"mode": "chat"}}`, `{"sample_spec": {}}`} {
		if _, _, _, err := ReadLiteLLMPrices([]byte(text)); err == nil {
			t.Errorf("%q was read as a list", text)
		}
	}
}

// A call is told with the date of the price that it has, wherever that comes from.
func TestPriceDates(t *testing.T) {
	s := serve(t, always(answerOK))
	own := PriceTable{Date: "2026-10-01", Models: map[string]Price{"stub": {Output: 1, Date: "2026-10-01"}}}
	shipped := PriceTable{Date: "2026-06-01", Models: map[string]Price{"stub": {Output: 7, Date: "2026-06-01"}, "other": {Output: 5, Date: "2026-06-01"}}}
	for _, tt := range []struct {
		model string
		price *Price
		date  string
		usd   float64
	}{
		{"stub", nil, "2026-10-01", 20e-6}, {"other", nil, "2026-06-01", 100e-6}, {"unknown", &Price{Output: 2}, "", 40e-6}, {"stub", &Price{Output: 2, Date: "2026-11-05"}, "2026-11-05", 40e-6},
	} {
		c := client(t, s, Options{Prices: own.Over(shipped), MaxUSD: 5, Endpoints: map[string]Endpoint{"main": {Price: tt.price}}})
		q := ask(1)
		q.Model = tt.model
		rec, _, err := c.Record(complete(t, c, q).Call)
		if err != nil || rec.USD == nil || math.Abs(*rec.USD-tt.usd) > 1e-12 || rec.PriceDate != tt.date {
			t.Errorf("%s: record %+v, %v; want %g of %q", tt.model, rec, err, tt.usd, tt.date)
		}
	}
}

// Money that something else spends is money of the run: it is held, settled, and refused beyond the
// cap, and takes no place of a call.
func TestReserve(t *testing.T) {
	s := serve(t, always(answerOK))
	worst := 512.0 / 20
	c := client(t, s, Options{Prices: perCall, MaxUSD: worst + 4, MaxCalls: 2})
	settle, err := c.Reserve(t.Context(), 4)
	if err != nil {
		t.Fatal(err)
	}
	settle(3)
	if _, err := c.Complete(t.Context(), ask(0)); err != nil { // 1 of the 26.6 that are left
		t.Fatal(err)
	}
	if _, err = c.Complete(t.Context(), ask(1)); err != nil { // just what it reserves
		t.Fatal(err)
	}
	if _, err = c.Reserve(t.Context(), worst); !errors.Is(err, ErrBudget) {
		t.Errorf("$%g more: %v", worst, err)
	}
	if settle, err = c.Reserve(t.Context(), 1); err != nil {
		t.Errorf("a search counts as a call: %v", err)
	} else {
		settle(0)
	}
	if s.requests() != 2 {
		t.Errorf("%d calls", s.requests())
	}
}
