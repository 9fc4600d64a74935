package fetch

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// trickles serves a few bytes at a time until the client hangs up, or a body is there.
func trickles(pieces int, piece string, every time.Duration) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "text/html")
		for range pieces {
			if _, err := io.WriteString(rw, piece); err != nil {
				return
			}
			rw.(http.Flusher).Flush()
			select {
			case <-r.Context().Done():
				return
			case <-time.After(every):
			}
		}
	}
}

// TestTooSlow has bodies that come in drops: each is asked for once in a run, says how slow it was, and is asked for
// again by the next run; a replay repeats it. A feed that comes on may take longer than a page.
func TestTooSlow(t *testing.T) {
	const timeout = 400 * time.Millisecond
	w := newWeb(t)
	drops := trickles(1_000_000, "x", 10*time.Millisecond)
	w.pages["h.example/page"], w.pages["h.example/feed"], w.pages["api.example/ask"] = drops, drops, drops
	w.pages["h.example/long"] = trickles(30, strings.Repeat("x", leastBytes), 40*time.Millisecond)
	w.pages["rules.example/robots.txt"], w.pages["rules.example"] = drops, shows("page")
	store := memory(t)
	change := func(o *Options) { o.Limits.Timeout = timeout }
	c := w.client(t, store, change)
	get := map[string]func(*Client) error{
		"h.example/page": func(c *Client) error {
			_, err := c.Get(t.Context(), Request{URL: "http://h.example/page"})
			return err
		},
		"h.example/feed": func(c *Client) error {
			_, err := c.Stream(t.Context(), Request{URL: "http://h.example/feed"})
			return err
		},
		"api.example/ask": func(c *Client) error {
			_, err := c.Call(t.Context(), Call{URL: "http://api.example/ask"})
			return err
		},
	}
	for url, f := range get {
		for n := range 2 {
			began := time.Now()
			e := wantReason(t, f(c), ReasonTooSlow)
			if took := time.Since(began); e.FailureClass() != "transient" || e.Excluded() != "" || !strings.Contains(e.Detail, "bytes of the body came in") || took > 5*timeout {
				t.Errorf("%s, asked %d times: %v (%s) after %s", url, n+1, e, e.FailureClass(), took)
			}
		}
		if n := len(w.seen(url)); n != 1 {
			t.Errorf("%s was asked for %d times in one run", url, n)
		}
		wantReason(t, f(w.client(t, store, change, func(o *Options) { o.Mode = Replay })), ReasonTooSlow)
		wantReason(t, f(w.client(t, store, change)), ReasonTooSlow)
		if n := len(w.seen(url)); n != 2 {
			t.Errorf("%s was asked for %d times in two runs", url, n)
		}
	}
	began := time.Now()
	s, err := c.Stream(t.Context(), Request{URL: "http://h.example/long"})
	if err != nil || s.Length != 30*leastBytes || time.Since(began) < 2*timeout {
		t.Errorf("a feed that comes on: %v after %s", err, time.Since(began))
	} else if err := s.Close(); err != nil {
		t.Error(err)
	}
	for range 2 {
		_, err = c.Get(t.Context(), Request{URL: "http://rules.example/page"})
		if e := (*Error)(nil); !errors.As(err, &e) || len(w.seen("rules.example/robots.txt")) != 1 || len(w.seen("rules.example/page")) != 0 {
			t.Errorf("robots.txt that comes in drops: %v after %d requests", err, len(w.seen("rules.example/robots.txt")))
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), timeout/4)
	defer cancel()
	if _, err := w.client(t, memory(t), change).Get(ctx, Request{URL: "http://h.example/page"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a request that is called off gives %v", err)
	}
}
