package fetch

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"
)

// A call is one request on its way through the chain. It belongs to one goroutine.
type call struct {
	method string
	url    string // canonical
	header http.Header
	body   []byte
	key    string // request key

	large  bool          // feed limits instead of page limits
	stream bool          // the body is read in pieces, after it is stored
	robots bool          // a robots.txt, which no robots.txt forbids
	fresh  time.Duration // a stored answer older than this is asked for again; 0: none is
	again  bool          // the stored answer is damaged: ask even if there is one
	prior  *Exchange     // the stored answer that the request may confirm

	api       *Call     // a request to an interface, nil for any other
	userAgent string    // instead of the client's
	harmless  bool      // may be sent twice although its method says nothing of the kind
	token     string    // set by the authorizer
	sent      time.Time // set by the recorder: when the attempt reached a host, zero before

	attempt  int           // set by the retrier
	waited   time.Duration // set by the limiter
	probe    bool          // set by the limiter: it finds out whether a host that was given up is back
	answered time.Time     // set by the recorder: when the host's answer began
	wait     time.Duration // set by the recorder: for which an interface wants to be left alone
}

// An answer is what a link of the chain returns: an exchange of any class. A request that no exchange
// came of is an error instead.
type answer struct {
	ex      Exchange
	decoded []byte    // body with content codings removed, nil unless it was just read
	tries   int       // requests sent, 0 for a stored answer
	final   bool      // another attempt would end the same
	checked time.Time // when the host last confirmed the answer
	head    *head     // of a stored answer: what else is known about the request
}

// A sender is one link of the chain; see Client.
type sender interface {
	send(ctx context.Context, c *call) (answer, error)
}

// A cassette answers from the store. In live mode a miss is sent on, and so is what AskAgain wants to be
// confirmed; in replay a miss is an error.
type cassette struct {
	client  *Client
	mode    Mode
	archive *archive
	next    sender

	mu      sync.Mutex
	flights map[string]*flight
}

type againKey struct{}

// AskAgain returns a context in which a live client confirms stored answers with their hosts, each
// unless it was asked for since that instant, whatever came of it. Requests are conditional where the
// stored answer has a validator. A host that cannot answer leaves what is stored. A run that was
// interrupted goes on where it was when it begins with the same instant again.
func AskAgain(ctx context.Context, since time.Time) context.Context {
	return context.WithValue(ctx, againKey{}, since)
}

// askedAgain reports whether the context wants a request to be sent whose newest exchange is of that time.
func askedAgain(ctx context.Context, at time.Time) bool {
	since, ok := ctx.Value(againKey{}).(time.Time)
	return ok && at.Before(since)
}

// A flight is a request in progress; who wants the same waits for it.
type flight struct {
	done chan struct{}
	ans  answer
	err  error
}

func (s *cassette) send(ctx context.Context, c *call) (answer, error) {
	key := c.key
	if c.robots {
		// Flights for pages wait for flights for robots.txt. If the two could be one, hosts whose
		// robots.txt redirects to a page would make them wait for each other.
		key += " robots"
	}
	for {
		s.mu.Lock()
		f, busy := s.flights[key]
		if !busy {
			f = &flight{done: make(chan struct{})}
			s.flights[key] = f
			s.mu.Unlock()
			return s.fly(ctx, c, key, f)
		}
		s.mu.Unlock()
		select {
		case <-f.done:
		case <-ctx.Done():
			return answer{}, ctx.Err()
		}
		// A flight that was cancelled, or lost to a panic, says nothing about the address.
		if f.err == nil && f.ans.ex.Class == "" || errors.Is(f.err, context.Canceled) || errors.Is(f.err, context.DeadlineExceeded) {
			continue
		}
		if f.err == nil {
			s.client.stats.hit()
		}
		return f.ans, f.err
	}
}

// fly makes the request of a flight and lets the others have its outcome, whatever it is.
func (s *cassette) fly(ctx context.Context, c *call, key string, f *flight) (answer, error) {
	defer func() {
		s.mu.Lock()
		delete(s.flights, key)
		s.mu.Unlock()
		close(f.done)
	}()
	f.ans, f.err = s.answer(ctx, c)
	return f.ans, f.err
}

func (s *cassette) answer(ctx context.Context, c *call) (answer, error) {
	h, _, err := s.archive.head(c.key)
	if err != nil {
		return answer{}, err
	}
	stored, have := h.usable()
	if s.mode == Replay {
		return s.replay(ctx, c, h)
	}
	if have && !s.stale(ctx, c, h) {
		s.client.stats.hit()
		return answer{ex: stored, checked: h.Latest.At, head: &h}, nil
	}
	if have && stored.Status == http.StatusOK && !c.again {
		c.prior = &stored
	}
	ans, err := s.next.send(ctx, c)
	if ctx.Err() != nil {
		return ans, ctx.Err()
	}
	if err != nil {
		// What is stored stays good when the host cannot be asked now.
		var failed *Error
		if have && !c.again && errors.As(err, &failed) {
			s.client.stats.kept()
			return answer{ex: stored, checked: stored.At}, nil
		}
		return ans, err
	}
	return s.settle(c, ans, have)
}

// settle replaces the exchange just recorded by the one that answers the request from now on: an
// equal or confirmed answer is the older exchange, and a failure leaves the last good one.
func (s *cassette) settle(c *call, ans answer, had bool) (answer, error) {
	if !had && ans.ex.Class.answers() {
		ans.checked = ans.ex.At
		return ans, nil // the first answer is the one that counts
	}
	h, ok, err := s.archive.head(c.key)
	if err != nil || !ok {
		return ans, err
	}
	got := ans.ex
	ans.ex, ans.checked = h.answer(), got.At
	if ans.ex.Body != got.Body {
		ans.decoded = nil
	}
	if had && !got.Class.answers() {
		s.client.stats.kept()
		ans.checked = ans.ex.At
	}
	return ans, nil
}

// stale reports whether a stored answer has to be asked for again.
func (s *cassette) stale(ctx context.Context, c *call, h head) bool {
	switch {
	case c.again:
		return true
	case c.fresh > 0:
		return !h.Latest.Class.answers() || s.client.now().Sub(h.Latest.At) >= c.fresh
	}
	return askedAgain(ctx, h.Latest.At)
}

// replay answers from the store alone, with a failure if that is what was last seen.
func (s *cassette) replay(ctx context.Context, c *call, h head) (answer, error) {
	if h.Count > 0 && h.answer().Class != "" {
		s.client.stats.hit()
		return answer{ex: h.answer(), checked: h.Latest.At, head: &h}, nil
	}
	if !c.robots && c.api == nil {
		if err := s.client.robots.stored(ctx, c.url); err != nil {
			return answer{}, err
		}
	}
	return answer{}, &Error{URL: c.url, Reason: ReasonNotStored, Detail: "nothing is stored for it, and replay asks nobody"}
}
