package llm

import (
	"fmt"
	"net/http"
	"testing"
	"time"
)

func headers(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Set(pairs[i], pairs[i+1])
	}
	return h
}

// What a reply says is left is waited for before the limit is met.
func TestAllowances(t *testing.T) {
	now := newClock().now()
	for _, tt := range []struct {
		name   string
		h      http.Header
		tokens int           // that the next call needs
		after  time.Duration // since the reply
		wait   time.Duration
	}{
		{"nothing told", headers(), 100, 0, 0},
		{"plenty", headers("X-Ratelimit-Remaining-Requests", "9999", "X-Ratelimit-Reset-Requests", "6ms", "X-Ratelimit-Remaining-Tokens", "49999982", "X-Ratelimit-Reset-Tokens", "0s"), 100, 0, 0},
		{"no request left", headers("X-Ratelimit-Remaining-Requests", "0", "X-Ratelimit-Reset-Requests", "8.64s"), 100, 0, 8640 * time.Millisecond},
		{"no request left, later", headers("X-Ratelimit-Remaining-Requests", "0", "X-Ratelimit-Reset-Requests", "8.64s"), 100, 8 * time.Second, 640 * time.Millisecond},
		{"full again", headers("X-Ratelimit-Remaining-Requests", "0", "X-Ratelimit-Reset-Requests", "8.64s"), 100, 9 * time.Second, 0},
		{"one of ten is back after a tenth", headers("X-Ratelimit-Limit-Requests", "10", "X-Ratelimit-Remaining-Requests", "0", "X-Ratelimit-Reset-Requests", "60s"), 100, 0, 6 * time.Second},
		{"tokens enough", headers("X-Ratelimit-Remaining-Tokens", "100", "X-Ratelimit-Reset-Tokens", "30s"), 100, 0, 0},
		{"tokens short by one", headers("X-Ratelimit-Remaining-Tokens", "99", "X-Ratelimit-Reset-Tokens", "30s"), 100, 0, 30 * time.Second},
		{"half of the missing tokens", headers("X-Ratelimit-Limit-Tokens", "1000", "X-Ratelimit-Remaining-Tokens", "0", "X-Ratelimit-Reset-Tokens", "60s"), 500, 0, 30 * time.Second},
		{"more than the limit holds", headers("X-Ratelimit-Limit-Tokens", "1000", "X-Ratelimit-Remaining-Tokens", "0", "X-Ratelimit-Reset-Tokens", "60s"), 5000, 0, time.Minute},
		{"more than the limit holds, full", headers("X-Ratelimit-Limit-Tokens", "1000", "X-Ratelimit-Remaining-Tokens", "1000", "X-Ratelimit-Reset-Tokens", "60s"), 5000, 61 * time.Second, 0},
		{"none of the minute", headers("X-Ratelimit-Remaining-Req-Minute", "0"), 100, 0, time.Minute},
		{"few tokens of the minute", headers("X-Ratelimit-Remaining-Tokens-Minute", "10", "X-Ratelimit-Limit-Tokens-Minute", "100010"), 50010, 0, 30 * time.Second},
		{"plain names", headers("X-Ratelimit-Limit", "2", "X-Ratelimit-Remaining", "0", "X-Ratelimit-Reset", "2"), 100, 0, time.Second},
		{"a point in time", headers("X-Ratelimit-Remaining", "0", "X-Ratelimit-Reset", fmt.Sprint(now.Add(30*time.Second).UnixMilli())), 100, 0, 30 * time.Second},
		{"no reset", headers("X-Ratelimit-Remaining-Requests", "0", "X-Ratelimit-Remaining-Tokens", "0"), 100, 0, 0},
		{"masked", headers("X-Ratelimit-Remaining-Requests", "X-RATELIMIT-REMAINING-REQUESTS-XXX", "X-Ratelimit-Reset-Requests", "1s"), 100, 0, 0},
		{"below nothing", headers("X-Ratelimit-Remaining-Requests", "-4", "X-Ratelimit-Reset-Requests", "1s"), 100, 0, 0},
	} {
		requests, tokens := allowances(tt.h, now)
		if got := max(requests.wait(1, now.Add(tt.after)), tokens.wait(tt.tokens, now.Add(tt.after))); got.Round(time.Millisecond) != tt.wait {
			t.Errorf("%s: wait %s, want %s", tt.name, got, tt.wait)
		}
	}
}

// A limit that replies tell is kept through the client: no 429 is needed to learn it.
func TestGovernorLearns(t *testing.T) {
	clk := newClock()
	fine := answerOK
	fine.header = map[string]string{"X-Ratelimit-Limit-Requests": "3", "X-Ratelimit-Remaining-Requests": "2", "X-Ratelimit-Reset-Requests": "20s"}
	last := answerOK
	last.header = map[string]string{"X-Ratelimit-Limit-Requests": "3", "X-Ratelimit-Remaining-Requests": "0", "X-Ratelimit-Reset-Requests": "60s"}
	s := serve(t, inTurn(fine, last, answerOK))
	c := client(t, s, Options{Now: clk.now, Sleep: clk.sleep})
	start := clk.now()
	for i := range 3 {
		complete(t, c, ask(i))
	}
	if took := clk.now().Sub(start); took != 20*time.Second {
		t.Errorf("three calls took %s, want the third of a minute after which one is back", took)
	}
}

// What is in flight is not in what a reply says is left.
func TestGovernorCountsWhatIsOut(t *testing.T) {
	clk := newClock()
	g := newGate(Endpoint{Concurrency: 3}, 5*time.Minute, clk.now, clk.sleep)
	var tickets []*ticket
	for range 3 {
		ticket, err := g.enter(t.Context(), 100)
		if err != nil {
			t.Fatal(err)
		}
		tickets = append(tickets, ticket)
	}
	g.learn(tickets[0], headers("X-Ratelimit-Remaining-Tokens", "250", "X-Ratelimit-Reset-Tokens", "40s"))
	g.leave()
	start := clk.now()
	if _, err := g.enter(t.Context(), 100); err != nil {
		t.Fatal(err)
	}
	if took := clk.now().Sub(start); took != 40*time.Second {
		t.Errorf("waited %s: 250 are left, 200 of them are promised", took)
	}
	// A limit that comes back later than a run waits parks the endpoint.
	g.learn(tickets[1], headers("X-Ratelimit-Remaining-Requests", "0", "X-Ratelimit-Reset-Requests", "14m24s"))
	g.leave()
	if _, err := g.enter(t.Context(), 1); err == nil {
		t.Error("a call went out although none is left for a quarter of an hour")
	}
}
