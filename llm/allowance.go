package llm

import (
	"net/http"
	"strconv"
	"time"
)

// allowance is what an endpoint says is left of one of its limits. Servers fill it up again little by
// little until the time of its reset, so a part is there after a part of the time.
type allowance struct {
	left, limit int // limit 0: not told
	read, full  time.Time
}

// allowanceHeaders names the headers of a limit, by what stands after x-ratelimit-limit-,
// x-ratelimit-remaining- and x-ratelimit-reset-. Without a reset the limit is one of a minute, if its
// name says so.
var allowanceHeaders = []struct {
	unit     string
	tokens   bool
	unspoken time.Duration
}{
	{"-Requests", false, 0},
	{"-Tokens", true, 0},
	{"-Req-Minute", false, time.Minute},
	{"-Tokens-Minute", true, time.Minute},
	{"", false, 0},
}

// allowances reads what the headers of a reply say is left of requests and of tokens; nil for what
// they do not say. A limit without a time at which it is full again says nothing that could be waited for.
func allowances(h http.Header, now time.Time) (requests, tokens *allowance) {
	for _, u := range allowanceHeaders {
		left, err := strconv.Atoi(h.Get("X-Ratelimit-Remaining" + u.unit))
		if err != nil || left < 0 {
			continue
		}
		reset := max(resetIn(h.Get("X-Ratelimit-Reset"+u.unit), now), u.unspoken)
		if reset <= 0 {
			continue
		}
		a := &allowance{left: left, read: now, full: now.Add(reset)}
		a.limit, _ = strconv.Atoi(h.Get("X-Ratelimit-Limit" + u.unit)) // no number: not told
		to := &requests
		if u.tokens {
			to = &tokens
		}
		if *to == nil {
			*to = a
		}
	}
	return requests, tokens
}

// wait is how long it takes until so much is there; 0 for now. What is more than the whole limit waits
// for the whole limit.
func (a *allowance) wait(need int, now time.Time) time.Duration {
	if a == nil || !now.Before(a.full) {
		return 0
	}
	if a.limit > a.left && a.limit > 0 {
		need = min(need, a.limit)
		missing := need - a.left
		if missing <= 0 {
			return 0
		}
		there := a.read.Add(time.Duration(float64(a.full.Sub(a.read)) * float64(missing) / float64(a.limit-a.left)))
		return max(there.Sub(now), 0)
	}
	if a.left >= need {
		return 0
	}
	return a.full.Sub(now)
}

// take counts what has been let through since the headers were read.
func (a *allowance) take(n int) {
	if a != nil {
		a.left -= n
	}
}
