package fetch

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// retryStatus are the statuses that another attempt may cure.
var retryStatus = []int{408, 425, 429, 500, 502, 503, 504, 522, 524}

func retryable(status int) bool { return slices.Contains(retryStatus, status) }

// Waiting between attempts without a Retry-After: a random part of a bound that doubles.
const (
	backoffFirst = time.Second
	backoffLast  = 30 * time.Second
)

// longestPark bounds what a host may ask for.
const longestPark = 24 * time.Hour

// longestHold is how long a host is waited for whose answer was good, but the last one of its window.
const longestHold = 15 * time.Minute

// A retrier sends again what may succeed the next time. A Retry-After holds back the whole host; one
// beyond cap parks it, so that its items fail at once and the run goes on elsewhere.
type retrier struct {
	retries int
	cap     time.Duration
	jitter  func() float64
	now     func() time.Time
	sleep   func(context.Context, time.Duration) error
	limiter *limiter
	next    sender
}

func (r *retrier) send(ctx context.Context, c *call) (answer, error) {
	within, end := stoppable(ctx)
	defer end()
	ans, err := r.attempts(within, c)
	if err != nil && within.Err() != nil && ctx.Err() == nil {
		return answer{}, ErrStopped
	}
	return ans, err
}

// attempts sends until an attempt is not worth another.
func (r *retrier) attempts(ctx context.Context, c *call) (answer, error) {
	for try := 1; ; try++ {
		c.attempt = try
		ans, err := r.next.send(ctx, c)
		ans.tries = try
		if err != nil {
			return ans, withTries(err, try-1)
		}
		again := try <= r.retries && worthRetry(c, ans)
		asked, named := retryAfter(ans.ex.Header, r.now())
		loaded := asksToWait(ans.ex)
		if named = named && loaded; !named && c.wait > 0 {
			asked, named = c.wait, true
		}
		if named {
			if asked > r.cap && (loaded || c.wait > longestHold) {
				asked = min(asked, longestPark)
				if err := r.limiter.park(c.url, asked, "asked to wait by "+c.url); err != nil {
					return ans, err
				}
				if !loaded {
					return ans, nil // the answer is good; there will be no other before long
				}
				return ans, &Error{URL: c.url, Reason: ReasonParked, Detail: "the host asks for a longer pause than we wait", Status: ans.ex.Status, Tries: try, Wait: asked}
			}
			if err := r.limiter.hold(c.url, asked); err != nil {
				return ans, err
			}
		}
		if !again {
			return ans, nil
		}
		if named {
			continue // the limiter lets nothing through before the time
		}
		bound := min(backoffFirst<<min(try-1, 10), backoffLast)
		if err := r.sleep(ctx, time.Duration(r.jitter()*float64(bound))); err != nil {
			return ans, err
		}
	}
}

// withTries notes on an error of the chain how many requests were sent before it.
func withTries(err error, tries int) error {
	var e *Error
	if errors.As(err, &e) && e.Tries == 0 {
		e.Tries = tries
	}
	return err
}

// worthRetry reports whether another attempt may bring another answer.
func worthRetry(c *call, ans answer) bool {
	if ans.final {
		return false
	}
	ex := ans.ex
	if ex.Class == ClassThrottled {
		return true
	}
	if ex.Class != ClassFailed || !safe(c.method) && !c.harmless {
		return false
	}
	return retryable(ex.Status) && ex.Reason != ReasonTooLarge || slices.Contains([]string{ReasonTimeout, ReasonNetwork, ReasonTruncated}, ex.Reason)
}

// safe reports whether a method may be sent twice without harm.
func safe(method string) bool {
	return slices.Contains([]string{http.MethodGet, http.MethodHead, http.MethodOptions}, method)
}

// asksToWait reports whether a Retry-After of this exchange is about load: on a redirect or on a
// finished page it is not.
func asksToWait(ex Exchange) bool {
	return ex.Class == ClassThrottled || ex.Class == ClassFailed && retryable(ex.Status)
}

// retryAfter reads a Retry-After header, which holds seconds or a date. A date is compared with the
// response's own Date where it has one, because the two clocks may differ.
func retryAfter(h http.Header, now time.Time) (time.Duration, bool) {
	value := strings.TrimSpace(h.Get("Retry-After"))
	if value == "" {
		return 0, false
	}
	if seconds, err := strconv.ParseFloat(value, 64); err == nil {
		if !(seconds >= 0) {
			return 0, false
		}
		return time.Duration(min(seconds, longestPark.Seconds()) * float64(time.Second)), true
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0, false
	}
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		now = date
	}
	return min(max(at.Sub(now), 0), longestPark), true
}
