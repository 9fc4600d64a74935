package llm

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// limiter keeps an endpoint's calls in flight, requests a minute and tokens a minute within bounds.
type limiter struct {
	gate *gate
	next caller
}

func (l *limiter) call(ctx context.Context, c *call) (*result, error) {
	ticket, err := l.gate.enter(ctx, c.reserve().Tokens())
	var away *parked
	if errors.As(err, &away) {
		e := c.fail(ReasonRateLimit, away.Error())
		e.Wait, e.unsent = away.left, true
		return nil, e
	}
	if err != nil {
		return nil, fmt.Errorf("wait for endpoint %s: %w", c.route.name, err)
	}
	c.release = sync.OnceFunc(l.gate.leave)
	defer c.release()
	res, err := l.next.call(ctx, c)
	if res != nil {
		l.gate.settle(ticket, res.record.Usage.Tokens())
	}
	l.gate.learn(ticket, c.header)
	var e *Error
	if errors.As(err, &e) && e.Reason == ReasonRateLimit {
		l.gate.pause(e.Wait)
	}
	return res, err
}

// gate is the governor of one endpoint. For the limits of the configuration it looks back over the
// last minute, so no minute, wherever it starts, sees more than the limit. For those that the endpoint
// tells with its replies it counts what is left, less what is still out, so that a limit is waited for
// before it is met.
type gate struct {
	slots    chan struct{}
	rpm, tpm int
	patience time.Duration // longest pause that is waited for
	now      func() time.Time
	sleep    func(context.Context, time.Duration) error

	mu     sync.Mutex
	sent   []*ticket // of the last minute, oldest first
	tokens int       // of sent
	until  time.Time // the endpoint asked to be left alone until then

	requests, left *allowance // of requests and of tokens, as the last reply told; nil: it did not
	out, outTokens int        // admitted and not yet answered
}

type ticket struct {
	at       time.Time
	tokens   int
	reserved int // tokens, as they were counted when the call was let through
}

// parked says that an endpoint wants to be left alone for longer than a run waits.
type parked struct{ left time.Duration }

func (p *parked) Error() string {
	return fmt.Sprintf("the endpoint asked to be left alone for another %s", p.left.Round(time.Second))
}

func newGate(at Endpoint, patience time.Duration, now func() time.Time, sleep func(context.Context, time.Duration) error) *gate {
	return &gate{slots: make(chan struct{}, at.Concurrency), rpm: at.RPM, tpm: at.TPM, patience: patience, now: now, sleep: sleep}
}

func (g *gate) enter(ctx context.Context, tokens int) (*ticket, error) {
	select {
	case g.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	for {
		t, wait, err := g.admit(tokens)
		if t != nil {
			return t, nil
		}
		if err == nil {
			err = g.sleep(ctx, wait)
		}
		if err != nil {
			g.leave()
			return nil, err
		}
	}
}

func (g *gate) leave() { <-g.slots }

// admit lets a call through or says how long it must wait. A call that is larger than a whole
// minute's tokens passes when nothing else went through.
func (g *gate) admit(tokens int) (*ticket, time.Duration, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	switch wait := g.until.Sub(now); {
	case wait > g.patience:
		return nil, 0, &parked{wait}
	case wait > 0:
		return nil, wait, nil
	}
	switch wait := max(g.requests.wait(1, now), g.left.wait(tokens, now)); {
	case wait > g.patience:
		return nil, 0, &parked{wait}
	case wait > 0:
		return nil, wait, nil
	case g.rpm <= 0 && g.tpm <= 0:
		return g.pass(&ticket{tokens: tokens}), 0, nil
	}
	for len(g.sent) > 0 && now.Sub(g.sent[0].at) >= time.Minute {
		g.tokens -= g.sent[0].tokens
		g.sent = g.sent[1:]
	}
	full := g.rpm > 0 && len(g.sent) >= g.rpm
	if over := g.tpm > 0 && len(g.sent) > 0 && g.tokens+tokens > g.tpm; full || over {
		return nil, time.Minute - now.Sub(g.sent[0].at), nil
	}
	t := g.pass(&ticket{at: now, tokens: tokens})
	g.sent = append(g.sent, t)
	g.tokens += tokens
	return t, 0, nil
}

// pass counts a call as out; the caller holds the lock.
func (g *gate) pass(t *ticket) *ticket {
	t.reserved = t.tokens
	g.out++
	g.outTokens += t.reserved
	g.requests.take(1)
	g.left.take(t.reserved)
	return t
}

// learn takes a call back and reads what its reply says is left. What other calls in flight will use
// is not in that yet.
func (g *gate) learn(t *ticket, h http.Header) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.out--
	g.outTokens -= t.reserved
	requests, tokens := allowances(h, g.now())
	if requests != nil {
		requests.take(g.out)
		g.requests = requests
	}
	if tokens != nil {
		tokens.take(g.outTokens)
		g.left = tokens
	}
}

// settle corrects the tokens of a call that is still within the minute.
func (g *gate) settle(t *ticket, tokens int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.sent) > 0 && !t.at.Before(g.sent[0].at) {
		g.tokens += tokens - t.tokens
		t.tokens = tokens
	}
}

// pause holds every call to the endpoint back, so that one worker's 429 is not repeated by all. Beyond
// the cap the endpoint is parked: its calls fail at once, as transient failures.
func (g *gate) pause(d time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if at := g.now().Add(d); d > 0 && at.After(g.until) {
		g.until = at
	}
}
