package fetch

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"time"

	"assay/corpus"
	"assay/kv"
)

// hostState is what is remembered about a host group between runs.
type hostState struct {
	NotBefore time.Time `json:"not_before"` // nothing is sent before this instant
	Reason    string    `json:"reason,omitzero"`
}

// The adaptive gap grows by doubling from minGap to maxGap. An answer slower than slowAnswer counts
// as a sign that the host is loaded.
const (
	minGap     = 100 * time.Millisecond
	maxGap     = time.Minute
	slowAnswer = 2 * time.Second
)

// A limiter lets requests through host by host: at most perHost at once, and with a gap between
// them. One limiter is shared by everything that a client does, so two users of it share its slots.
// It starts no goroutine: the request at the head of a queue waits for its time, those behind it wait
// on a channel.
type limiter struct {
	perHost   int
	delay     time.Duration
	hostDelay map[string]time.Duration
	archive   *archive
	now       func() time.Time
	sleep     func(context.Context, time.Duration) error
	stats     *counters
	next      sender

	mu       sync.Mutex
	lanes    map[string]*lane
	breakers map[string]*breaker      // by host:port, of hosts that could not be reached
	slow     map[string]string        // request key => how slowly its body came
	crawl    map[string]time.Duration // host => Crawl-delay of its robots.txt
	gaps     map[string]time.Duration // host => what its interface asks for
	rooms    map[string]int           // host group => requests at once that its interface takes
}

// A lane is the queue of one host group.
type lane struct {
	busy   int        // slots in use
	turn   bool       // a request holds the turn: it will be the next to start
	room   int        // slots
	queue  *list.List // of *waiter, in order of arrival
	last   time.Time  // when the host was last asked, or last answered
	gap    time.Duration
	held   time.Time // a Retry-After that is waited for
	parked hostState // a Retry-After that is not
}

type waiter struct {
	ready chan struct{} // gets one value with the turn
	given bool
}

// send waits for the host, sends, and gives the slot back whatever happens.
func (l *limiter) send(ctx context.Context, c *call) (answer, error) { return l.sendTo(ctx, c, l.next) }

func (l *limiter) sendTo(ctx context.Context, c *call, next sender) (answer, error) {
	group := hostGroup(c.url)
	waited, err := l.acquire(ctx, group, c)
	l.stats.waited(hostOf(c.url), waited)
	if err != nil {
		return answer{}, err
	}
	start := l.now()
	c.waited, c.answered, c.wait = waited, time.Time{}, 0
	var ans answer
	defer func() { l.release(group, c, start, ans) }()
	ans, err = next.send(ctx, c)
	return ans, err
}

// acquire waits for a slot and for the gap, and returns how long that took. A parked host is refused
// at once.
func (l *limiter) acquire(ctx context.Context, group string, c *call) (time.Duration, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	began := l.now()
	l.mu.Lock()
	ln, err := l.lane(group)
	if err != nil {
		l.mu.Unlock()
		return 0, err
	}
	if e := l.refusal(ln, c, l.now()); e != nil {
		l.mu.Unlock()
		return 0, e
	}
	if ln.turn || ln.busy >= ln.room || ln.queue.Len() > 0 {
		w := &waiter{ready: make(chan struct{}, 1)}
		at := ln.queue.PushBack(w)
		l.mu.Unlock()
		select {
		case <-w.ready:
		case <-ctx.Done():
			l.mu.Lock()
			if w.given {
				ln.turn = false
				l.pass(ln)
			} else {
				ln.queue.Remove(at)
			}
			l.mu.Unlock()
			return l.now().Sub(began), ctx.Err()
		}
		l.mu.Lock()
	}
	ln.turn = true
	for {
		now := l.now()
		if e := l.refusal(ln, c, now); e != nil {
			ln.turn = false
			l.pass(ln)
			l.mu.Unlock()
			return now.Sub(began), e
		}
		wait := l.start(ln, c.url).Sub(now)
		if wait <= 0 {
			ln.turn = false
			ln.busy++
			ln.last = now
			l.breaker(c.url).begin(c)
			l.pass(ln)
			l.mu.Unlock()
			return now.Sub(began), nil
		}
		l.mu.Unlock()
		err := l.sleep(ctx, wait)
		l.mu.Lock()
		if err != nil {
			ln.turn = false
			l.pass(ln)
			l.mu.Unlock()
			return l.now().Sub(began), err
		}
	}
}

// release gives a slot back and lets the lane learn from what came of it.
func (l *limiter) release(group string, c *call, start time.Time, ans answer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ln := l.lanes[group]
	ln.busy--
	// The gap counts from the answer, not from the request: only then has the host itself seen that
	// much time between two requests.
	if c.answered.After(ln.last) {
		ln.last = c.answered
	}
	if ans.ex.Class != "" {
		ln.learn(ans.ex, c.answered.Sub(start), l.base(c.url), ln.room)
	}
	if ans.ex.Reason == ReasonTooSlow {
		l.slow[c.key] = ans.ex.Detail
	}
	l.note(c, ans.ex, start)
	l.pass(ln)
}

// learn widens the gap after errors and slow answers and narrows it slowly after good ones.
func (ln *lane) learn(ex Exchange, took, base time.Duration, room int) {
	switch {
	case ex.Class == ClassThrottled || troubled(ex):
		ln.gap = min(max(2*max(ln.gap, base), minGap), maxGap)
	case took > slowAnswer:
		if target := min(took/time.Duration(room), maxGap); target > ln.gap {
			ln.gap = (max(ln.gap, base) + target) / 2
		}
	default:
		ln.gap -= ln.gap / 10
	}
	if ln.gap <= max(base, minGap/2) {
		ln.gap = 0
	}
}

// troubled reports a failure that says something about the load of the host.
func troubled(ex Exchange) bool {
	return ex.Class == ClassFailed && (retryable(ex.Status) || ex.Reason == ReasonTimeout || ex.Reason == ReasonTooSlow || ex.Reason == ReasonNetwork || ex.Reason == ReasonTruncated)
}

// pass hands the turn to the next in the queue if there is a slot for it.
func (l *limiter) pass(ln *lane) {
	front := ln.queue.Front()
	if ln.turn || ln.busy >= ln.room || front == nil {
		return
	}
	w := ln.queue.Remove(front).(*waiter)
	w.given, ln.turn = true, true
	w.ready <- struct{}{}
}

// start returns the earliest instant at which the next request to an address may be sent.
func (l *limiter) start(ln *lane, url string) time.Time {
	at := ln.held
	if !ln.last.IsZero() {
		if t := ln.last.Add(max(l.base(url), ln.gap)); t.After(at) {
			at = t
		}
	}
	return at
}

// base returns the least gap that was asked for, by the configuration or by the host's robots.txt.
func (l *limiter) base(url string) time.Duration {
	host := hostOf(url)
	delay, ok := l.hostDelay[host]
	if !ok {
		if delay, ok = l.hostDelay[corpus.RegistrableDomain(host)]; !ok {
			delay = l.delay
		}
	}
	return max(delay, l.crawl[host], l.gaps[host], 0)
}

// setCrawlDelay takes the delay that a host's robots.txt asks for.
func (l *limiter) setCrawlDelay(host string, d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if d <= 0 {
		delete(l.crawl, host)
		return
	}
	l.crawl[host] = d
}

// setGap takes the gap that a host's interface asks for.
func (l *limiter) setGap(host string, d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gaps[host] = d
}

// setRoom takes how many requests at once the interface of a host group takes.
func (l *limiter) setRoom(group string, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rooms[group] = n
	if ln := l.lanes[group]; ln != nil {
		ln.room = max(l.perHost, n)
		l.pass(ln)
	}
}

// hold makes every request to the host of an address wait.
func (l *limiter) hold(url string, d time.Duration) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	ln, err := l.lane(hostGroup(url))
	if err != nil {
		return err
	}
	if until := l.now().Add(d); until.After(ln.held) {
		ln.held = until
	}
	return nil
}

// park refuses every request to the host of an address for d, in later runs too. What waits in its
// queue is refused as it gets its turn, which nobody has to wait for any more.
func (l *limiter) park(url string, d time.Duration, reason string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	group := hostGroup(url)
	ln, err := l.lane(group)
	if err != nil {
		return err
	}
	if until := l.now().Add(d); until.After(ln.parked.NotBefore) {
		ln.parked = hostState{NotBefore: until.UTC(), Reason: reason}
		if err := l.archive.hosts.Put(kv.Key(group), ln.parked); err != nil {
			return fmt.Errorf("park %s: %w", group, err)
		}
	}
	return nil
}

// refusal returns the error for a host that is parked or given up, or for what came too slowly in this run, nil for any
// other; the caller holds the lock.
func (l *limiter) refusal(ln *lane, c *call, now time.Time) error {
	if e := ln.refusal(c.url, now); e != nil {
		return e
	}
	if how, slow := l.slow[c.key]; slow {
		return &Error{URL: c.url, Reason: ReasonTooSlow, Detail: how + "; it is asked again by the next run"}
	}
	return l.breaker(c.url).refusal(c, now)
}

// refusal returns the error for a parked host, nil for any other.
func (ln *lane) refusal(url string, now time.Time) error {
	if !ln.parked.NotBefore.After(now) {
		return nil
	}
	return &Error{URL: url, Reason: ReasonParked, Detail: ln.parked.Reason, Wait: ln.parked.NotBefore.Sub(now)}
}

// lane returns the queue of a host group; the caller holds the lock.
func (l *limiter) lane(group string) (*lane, error) {
	if ln := l.lanes[group]; ln != nil {
		return ln, nil
	}
	state, _, err := l.archive.hosts.Get(kv.Key(group))
	var corrupt *kv.CorruptError
	if err != nil && !errors.As(err, &corrupt) { // a lost pause costs one request, which brings it back
		return nil, fmt.Errorf("read what is known about %s: %w", group, err)
	}
	ln := &lane{queue: list.New(), parked: state, room: max(l.perHost, l.rooms[group])}
	l.lanes[group] = ln
	return ln, nil
}

// hostGroup names what shares a limit: a registrable domain, or host and port where there is none.
func hostGroup(url string) string {
	host := hostOf(url)
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil || !strings.Contains(host, ".") {
		return hostPort(url)
	}
	return corpus.RegistrableDomain(host)
}

// hostPort returns host:port of a canonical address, with the port that its scheme implies.
func hostPort(url string) string {
	scheme, rest, _ := strings.Cut(url, "://")
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		rest = rest[:i]
	}
	rest = rest[strings.LastIndexByte(rest, '@')+1:]
	if colon := strings.LastIndexByte(rest, ':'); colon > strings.LastIndexByte(rest, ']') {
		return rest
	}
	if scheme == "https" {
		return rest + ":443"
	}
	return rest + ":80"
}
