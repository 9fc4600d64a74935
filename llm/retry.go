package llm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// retrier repeats attempts that failed for a reason that passes. It waits as long as the server asks,
// and otherwise a random part of a doubling time, so that workers do not come back together.
type retrier struct {
	retries  int
	patience time.Duration // longest wait that a server may ask for
	sleep    func(context.Context, time.Duration) error
	next     caller
}

const (
	firstBackoff = 500 * time.Millisecond
	lastBackoff  = 30 * time.Second
)

func (r *retrier) call(ctx context.Context, c *call) (*result, error) {
	for try := 0; ; try++ {
		res, err := r.next.call(ctx, c)
		if err == nil {
			c.route.answered.Add(1)
			return res, nil
		}
		var e *Error
		if !errors.As(err, &e) {
			return nil, err
		}
		e.Tries = try + 1
		if !reasons[e.Reason].again || try >= r.retries || e.Wait > r.patience {
			return nil, c.dead(e)
		}
		if err := waiting(ctx, func(ctx context.Context) error { return r.sleep(ctx, backoff(try, e.Wait)) }); err != nil {
			return nil, err
		}
	}
}

// silentCalls ends a run whose endpoint never brought a reply: so many calls are given up, with all
// their attempts, before it is believed.
const silentCalls = 3

// dead turns the failure of a call into one that ends the run, if the endpoint has not answered once.
func (c *call) dead(e *Error) *Error {
	switch e.Reason {
	case ReasonNetwork, ReasonTimeout, ReasonServer, ReasonBadReply:
	default:
		return e
	}
	if c.route.answered.Load() > 0 || c.route.silent.Add(1) < silentCalls {
		return e
	}
	e.Detail = strings.TrimPrefix(e.Detail+fmt.Sprintf("; it has not answered once in this run, so the run ends: check runtime.endpoints.%s", c.route.name), "; ")
	e.ends = true
	return e
}

// backoff never falls short of what the server asked for.
func backoff(try int, asked time.Duration) time.Duration {
	if asked > 0 {
		return asked + rand.N(firstBackoff)
	}
	return rand.N(min(firstBackoff<<min(try, 16), lastBackoff))
}

// waitAsked reads how long a server wants to be left alone: Retry-After in seconds or as a date,
// retry-after-ms, else the reset times of the limits that are used up, else the delay that Google
// writes into the body. Where several disagree the longest counts.
func waitAsked(h http.Header, body []byte, now time.Time) time.Duration {
	wait := max(retryAfter(h.Get("Retry-After"), now), milliseconds(h.Get("Retry-After-Ms")))
	if wait > 0 {
		return wait
	}
	for _, unit := range []string{"-Requests", "-Tokens", ""} {
		if left := h.Get("X-Ratelimit-Remaining" + unit); left == "" || left == "0" {
			wait = max(wait, resetIn(h.Get("X-Ratelimit-Reset"+unit), now))
		}
	}
	if wait > 0 {
		return wait
	}
	return retryDelay(body)
}

func retryAfter(s string, now time.Time) time.Duration {
	if n, err := strconv.ParseFloat(s, 64); err == nil {
		return seconds(n)
	}
	if at, err := http.ParseTime(s); err == nil {
		return max(at.Sub(now), 0)
	}
	return 0
}

func milliseconds(s string) time.Duration {
	n, _ := strconv.ParseFloat(s, 64) // no number: no wait
	return seconds(n / 1000)
}

// seconds keeps absurd numbers from overflowing; a day is more than any caller waits.
func seconds(n float64) time.Duration {
	if !(n > 0) {
		return 0
	}
	return time.Duration(min(n, 86400) * float64(time.Second))
}

// resetIn reads a reset time in its four spellings: 8.64s, seconds, and a point in time in seconds or
// milliseconds since 1970.
func resetIn(s string, now time.Time) time.Duration {
	if d, err := time.ParseDuration(s); err == nil {
		return max(d, 0)
	}
	n, err := strconv.ParseFloat(s, 64)
	switch {
	case err != nil:
		return 0
	case n > 1e11:
		return seconds(time.UnixMilli(int64(n)).Sub(now).Seconds())
	case n > 1e8:
		return seconds(time.Unix(int64(n), 0).Sub(now).Seconds())
	}
	return seconds(n)
}

// retryDelay finds error.details[].retryDelay, e.g. "48s".
func retryDelay(body []byte) time.Duration {
	if !strings.Contains(string(body), "retryDelay") {
		return 0
	}
	var reply struct {
		Error struct {
			Details []struct {
				RetryDelay string `json:"retryDelay"`
			} `json:"details"`
		} `json:"error"`
	}
	if json.Unmarshal(unwrapArray(body), &reply) != nil {
		return 0
	}
	for _, d := range reply.Error.Details {
		if wait, err := time.ParseDuration(d.RetryDelay); err == nil && wait > 0 {
			return wait
		}
	}
	return 0
}
