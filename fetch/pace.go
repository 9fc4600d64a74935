package fetch

import (
	"io"
	"sync/atomic"
	"time"
)

// leastBytes is how much of a body has to come in half of Limits.Timeout, and at the beginning in the whole of it. That
// bounds feeds, which may take long; a page has Limits.Timeout for all of it.
const leastBytes = 16 << 10

// A paced body ends its attempt unless it comes on.
type paced struct {
	body   io.Reader
	window time.Duration
	end    *time.Timer // whoever reads the body stops it
	came   int         // since the timer was set
	slow   atomic.Bool // the attempt was ended
}

// pace watches a body, and hangs up where it is too slow.
func pace(body io.Reader, timeout time.Duration, hangUp func()) *paced {
	p := &paced{body: body, window: timeout / 2}
	p.end = time.AfterFunc(timeout, func() {
		p.slow.Store(true)
		hangUp()
	})
	return p
}

func (p *paced) Read(b []byte) (int, error) {
	n, err := p.body.Read(b)
	if p.came += n; p.came >= leastBytes {
		p.came = 0
		p.end.Reset(p.window)
	}
	return n, err
}
