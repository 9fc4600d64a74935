package llm

import (
	"container/list"
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
	var ticket *ticket
	err := waiting(ctx, func(ctx context.Context) (err error) {
		ticket, err = l.gate.enter(ctx, c.reserve().Tokens())
		return err
	})
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
	switch {
	case err == nil:
		l.gate.fits(ticket)
	case errors.As(err, &e) && e.Reason == ReasonRateLimit:
		l.gate.exceeded(ticket, e.Wait > 0)
		l.gate.pause(e.Wait)
	}
	return res, err
}

// gate is the governor of one endpoint. For the limits of the configuration it looks back over the
// last minute, so no minute, wherever it starts, sees more than the limit. For those that the endpoint
// tells with its replies it counts what is left, less what is still out, so that a limit is waited for
// before it is met. For the calls that an endpoint takes at once, which none tells, it has a window that
// grows by one a round and is halved by a refusal (AIMD, RFC 5681), never above the configuration's.
type gate struct {
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

	most, window int       // calls at once: as configured, and as of now
	busy         int       // calls that have a slot of the window
	queue        list.List // of chan struct{}, closed with the slot; in order of arrival
	era          int       // how often the window was halved
	good         int       // replies since the window changed
	toomany      int       // the window that was refused last; 0: none since one fitted
	probe        int       // replies that it takes to try so many again
}

// A window that was refused is tried again after firstProbe replies, and after twice as many each time
// that it is refused again.
const firstProbe, lastProbe = 16, 1024

type ticket struct {
	at       time.Time
	tokens   int
	reserved int // tokens, as they were counted when the call was let through
	era      int // of the gate, when the call was let through
}

// parked says that an endpoint wants to be left alone for longer than a run waits.
type parked struct{ left time.Duration }

func (p *parked) Error() string {
	return fmt.Sprintf("the endpoint asked to be left alone for another %s", p.left.Round(time.Second))
}

func newGate(at Endpoint, patience time.Duration, now func() time.Time, sleep func(context.Context, time.Duration) error) *gate {
	return &gate{most: at.Concurrency, window: at.Concurrency, probe: firstProbe, rpm: at.RPM, tpm: at.TPM, patience: patience, now: now, sleep: sleep}
}

// enter waits for a slot and for every limit. Whoever waits for a limit keeps its slot, unless the
// window has become too small for it.
func (g *gate) enter(ctx context.Context, tokens int) (*ticket, error) {
	for held := false; ; held = !g.yield() {
		if !held {
			if err := g.slot(ctx); err != nil {
				return nil, err
			}
		}
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

// slot waits for a slot of the window.
func (g *gate) slot(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	g.mu.Lock()
	if g.busy < g.window && g.queue.Len() == 0 {
		g.busy++
		g.mu.Unlock()
		return nil
	}
	given := make(chan struct{})
	at := g.queue.PushBack(given)
	g.mu.Unlock()
	select {
	case <-given:
		return nil
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-given:
		g.busy--
		g.pass()
	default:
		g.queue.Remove(at)
	}
	return ctx.Err()
}

// leave gives a slot back.
func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.busy--
	g.pass()
}

// yield gives a slot back if the window is too small for all that have one, and reports that it did.
func (g *gate) yield() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.busy <= g.window {
		return false
	}
	g.busy--
	return true
}

// pass hands free slots to those that wait; the caller holds the lock.
func (g *gate) pass() {
	for g.busy < g.window && g.queue.Len() > 0 {
		g.busy++
		close(g.queue.Remove(g.queue.Front()).(chan struct{}))
	}
}

// fits learns that a call was answered. After a round of answers one more may go out at once; to where
// a refusal came last, it takes longer.
func (g *gate) fits(t *ticket) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if t.era != g.era || g.window >= g.most {
		return
	}
	need := g.window
	if g.window+1 >= g.toomany && g.toomany > 0 {
		need = max(need, g.probe)
	}
	if g.good++; g.good < need {
		return
	}
	if g.window >= g.toomany {
		g.toomany, g.probe = 0, firstProbe
	}
	g.window++
	g.good = 0
	g.pass()
}

// exceeded learns that a call was refused because of a limit. The first refusal of those that went out
// together halves the window. Those after it lower it to what is still out, which was taken, unless a
// named wait says that it was too much for a time and not too much at once.
func (g *gate) exceeded(t *ticket, named bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case t.era == g.era:
		if g.window == g.toomany {
			g.probe = min(2*g.probe, lastProbe)
		} else {
			g.toomany, g.probe = g.window, firstProbe
		}
		g.window = max(g.window/2, 1)
		g.era++
		g.good = 0
	case !named && g.good == 0:
		g.window = max(min(g.window, g.out), 1)
	}
}

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
		return g.count(&ticket{tokens: tokens}), 0, nil
	}
	for len(g.sent) > 0 && now.Sub(g.sent[0].at) >= time.Minute {
		g.tokens -= g.sent[0].tokens
		g.sent = g.sent[1:]
	}
	full := g.rpm > 0 && len(g.sent) >= g.rpm
	if over := g.tpm > 0 && len(g.sent) > 0 && g.tokens+tokens > g.tpm; full || over {
		return nil, time.Minute - now.Sub(g.sent[0].at), nil
	}
	t := g.count(&ticket{at: now, tokens: tokens})
	g.sent = append(g.sent, t)
	g.tokens += tokens
	return t, 0, nil
}

// count counts a call as out; the caller holds the lock.
func (g *gate) count(t *ticket) *ticket {
	t.reserved, t.era = t.tokens, g.era
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
