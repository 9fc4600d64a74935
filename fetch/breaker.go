package fetch

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// An Outage is a host that could not be reached so often in a row that the client stopped asking it.
type Outage struct {
	Host   string    `json:"host"`  // host:port
	Since  time.Time `json:"since"` // the first attempt that failed
	Cause  string    `json:"cause"` // of that attempt
	Failed int       `json:"failed"`
	Unsent int       `json:"unsent"`        // requests that failed at once instead of being sent
	Back   bool      `json:"back,omitzero"` // it answered later
}

// String tells an outage on one line.
func (o Outage) String() string {
	end := "; it is asked again by the next run"
	if o.Back {
		end = "; then it answered again"
	}
	return fmt.Sprintf("%s could not be reached %d times (first: %s), and %d requests to it were not sent%s", o.Host, o.Failed, o.Cause, o.Unsent, end)
}

// A host is given up after failuresInRow attempts that did not reach it, and asked again, by one request,
// after a pause that doubles from firstPause to lastPause.
const (
	failuresInRow = 5
	firstPause    = 30 * time.Second
	lastPause     = 10 * time.Minute
)

// A breaker is what the limiter knows of one host that could not be reached. The limiter's lock guards it.
type breaker struct {
	outage  Outage
	row     int    // failures since an answer
	first   string // address of the first of them
	sure    bool   // they say something of the host: no connection came about, or several addresses timed out
	open    bool   // given up
	pause   time.Duration
	until   time.Time
	probing bool // one request is on its way to see whether the host is back
}

// refusal returns the error for a host that is given up, nil for any other. Of each request the first attempt
// that is refused counts.
func (b *breaker) refusal(c *call, now time.Time) error {
	if b == nil || !b.open || !b.probing && !now.Before(b.until) {
		return nil
	}
	if c.attempt <= 1 {
		b.outage.Unsent++
	}
	return &Error{
		URL: c.url, Reason: ReasonHostDown, Wait: max(b.until.Sub(now), 0),
		Detail: fmt.Sprintf("%s could not be reached %d times in a row, first: %s", b.outage.Host, b.row, b.outage.Cause),
	}
}

// begin makes a request to a host that is given up the probe.
func (b *breaker) begin(c *call) {
	c.probe = b != nil && b.open
	if c.probe {
		b.probing = true
	}
}

// learn takes in what came of an attempt; one that was cut off by us says nothing.
func (b *breaker) learn(c *call, ex Exchange, at, now time.Time) {
	if c.probe {
		b.probing = false
	}
	switch {
	case ex.Status != 0:
		b.outage.Back = b.outage.Back || b.open
		b.row, b.sure, b.open, b.pause = 0, false, false, 0
		return
	case !unreached(ex), b.open && !c.probe: // what was sent before the host was given up
		return
	}
	if b.row == 0 {
		b.first = c.url
		if b.outage.Cause == "" {
			b.outage.Since, b.outage.Cause = at.UTC(), causeOf(ex)
		}
	}
	b.row++
	b.outage.Failed++
	b.sure = b.sure || ex.Dialled == "" || c.url != b.first
	if b.open || b.row >= failuresInRow && b.sure {
		b.open, b.outage.Back = true, false
		b.pause = min(max(2*b.pause, firstPause), lastPause)
		b.until = now.Add(b.pause)
	}
}

// unreached reports an attempt that did not reach its host, or that it did not answer in time.
func unreached(ex Exchange) bool {
	if ex.Class != ClassFailed || ex.Status != 0 {
		return false
	}
	return ex.Reason == ReasonTimeout || ex.Reason == ReasonNoHost || ex.Reason == ReasonNetwork && ex.Dialled == ""
}

// causeOf is what the network said, on one line.
func causeOf(ex Exchange) string {
	return strings.TrimSuffix(ex.Reason+": "+strings.Join(strings.Fields(ex.Detail), " "), ": ")
}

// breaker returns what is known of the host of an address, nil where nothing went wrong; the caller holds the lock.
func (l *limiter) breaker(url string) *breaker { return l.breakers[hostPort(url)] }

// note lets the breaker of a host learn; the caller holds the lock.
func (l *limiter) note(c *call, ex Exchange, at time.Time) {
	host := hostPort(c.url)
	b := l.breakers[host]
	if b == nil {
		if !unreached(ex) {
			return
		}
		b = &breaker{outage: Outage{Host: host}}
		l.breakers[host] = b
	}
	b.learn(c, ex, at, l.now())
	if ex.Status != 0 && b.outage.Unsent == 0 && !b.outage.Back {
		delete(l.breakers, host) // it was never given up
	}
}

// outages lists the hosts that were given up, by name.
func (l *limiter) outages() (out []Outage) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, b := range l.breakers {
		if b.open || b.outage.Back {
			out = append(out, b.outage)
		}
	}
	slices.SortFunc(out, func(a, b Outage) int { return strings.Compare(a.Host, b.Host) })
	return out
}
