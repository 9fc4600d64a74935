package fetch

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	tests := []struct {
		name, value, date string
		want              time.Duration
		named             bool
	}{
		{"none", "", "", 0, false},
		{"seconds", "120", "", 2 * time.Minute, true},
		{"zero", "0", "", 0, true},
		{"with spaces", " 7 ", "", 7 * time.Second, true},
		{"a part of a second", "1.5", "", 1500 * time.Millisecond, true},
		{"negative", "-3", "", 0, false},
		{"not finite", "NaN", "", 0, false},
		{"beyond any number", "99999999999999999999", "", longestPark, true},
		{"words", "later", "", 0, false},
		{"date by our clock", "Sun, 01 Mar 2026 12:00:04 GMT", "", 4 * time.Second, true},
		{"date by the host's clock", "Sun, 01 Mar 2026 09:30:04 GMT", "Sun, 01 Mar 2026 09:30:00 GMT", 4 * time.Second, true},
		{"date behind the host's clock", "Sun, 01 Mar 2026 09:29:00 GMT", "Sun, 01 Mar 2026 09:30:00 GMT", 0, true},
		{"date that is past", "Sun, 01 Mar 2020 12:00:04 GMT", "", 0, true},
		{"date in the form of RFC 850", "Sunday, 01-Mar-26 12:00:04 GMT", "", 4 * time.Second, true},
		{"date in the form of C", "Sun Mar  1 12:00:04 2026", "", 4 * time.Second, true},
		{"own Date is unreadable", "Sun, 01 Mar 2026 12:00:04 GMT", "today", 4 * time.Second, true},
		{"far date", "Sun, 01 Mar 2126 12:00:04 GMT", "", longestPark, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := http.Header{}
			for name, v := range map[string]string{"Retry-After": tt.value, "Date": tt.date} {
				if v != "" {
					h.Set(name, v)
				}
			}
			got, named := retryAfter(h, now)
			if got != tt.want || named != tt.named {
				t.Errorf("retryAfter = %v, %v, want %v, %v", got, named, tt.want, tt.named)
			}
		})
	}
}

// inTurn serves one answer after the other, and the last one for ever.
func inTurn(list ...http.HandlerFunc) http.HandlerFunc {
	var n atomic.Int32
	return func(rw http.ResponseWriter, r *http.Request) {
		list[min(int(n.Add(1)), len(list))-1](rw, r)
	}
}

func TestRetries(t *testing.T) {
	hangUp := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	short := func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Length", "100000")
		shows("cut")(rw, r)
	}
	tests := []struct {
		name     string
		page     http.HandlerFunc
		requests int
		reason   string // "" if a page comes of it
		class    string
	}{
		{"at once", shows("x"), 1, "", ""},
		{"after two bad gateways", inTurn(answers(502, ""), answers(502, ""), shows("x")), 3, "", ""},
		{"after a hang-up", inTurn(hangUp, shows("x")), 2, "", ""},
		{"after half a body", inTurn(short, shows("x")), 2, "", ""},
		{"after a timeout of the proxy", inTurn(answers(524, ""), answers(408, ""), shows("x")), 3, "", ""},
		{"never", answers(503, ""), 4, ReasonStatus, "transient"},
		{"always too many", answers(429, ""), 4, ReasonStatus, "transient"},
		{"always half", short, 4, ReasonTruncated, "transient"},
		{"always hung up", hangUp, 4, ReasonNetwork, "transient"},
		{"not found", answers(404, ""), 1, ReasonGone, "permanent"},
		{"gone", answers(410, ""), 1, ReasonGone, "permanent"},
		{"for legal reasons", answers(451, ""), 1, ReasonGone, "permanent"},
		{"forbidden", answers(403, "no"), 1, ReasonBlocked, "blocked"},
		{"unauthorised", answers(401, "no"), 1, ReasonBlocked, "blocked"},
		{"bad request", answers(400, "no"), 1, ReasonStatus, "permanent"},
		{"not implemented", answers(501, "no"), 1, ReasonStatus, "transient"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWeb(t)
			w.pages["h.example/page"] = tt.page
			// On a connection that was used before, net/http itself sends again, once, when it is hung up on.
			w.pages["h.example/robots.txt"] = answers(404, "", "Connection", "close")
			c := w.client(t, memory(t))
			_, err := c.Get(t.Context(), Request{URL: "http://h.example/page"})
			if n := len(w.seen("h.example/page")); n != tt.requests {
				t.Errorf("%d requests, want %d", n, tt.requests)
			}
			list, lerr := c.Exchanges("http://h.example/page")
			if lerr != nil || len(list) != tt.requests {
				t.Errorf("%d exchanges (error %v), want every one of the %d attempts", len(list), lerr, tt.requests)
			}
			if tt.reason == "" {
				if err != nil {
					t.Errorf("Get: %v", err)
				}
				return
			}
			if e := wantReason(t, err, tt.reason); e.FailureClass() != tt.class || e.Attempts() != tt.requests {
				t.Errorf("class %s after %d attempts, want %s after %d", e.FailureClass(), e.Attempts(), tt.class, tt.requests)
			}
		})
	}
}

// The time between attempts is a random part of a bound that doubles.
func TestBackoff(t *testing.T) {
	w := newWeb(t)
	w.pages["h.example/page"] = answers(500, "")
	c := w.client(t, memory(t), func(o *Options) { o.Retries, o.HostDelay = 7, map[string]time.Duration{} })
	c.limiter.sleep = func(context.Context, time.Duration) error { return nil }
	c.limiter.now = func() time.Time { return w.clock.Now().Add(time.Duration(len(w.paths())) * time.Hour) } // no gap stands in the way
	if _, err := c.Get(t.Context(), Request{URL: "http://h.example/page"}); err == nil {
		t.Fatal("no error")
	}
	want := []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 15 * time.Second, 15 * time.Second}
	if diff := cmp.Diff(want, w.clock.slept); diff != "" {
		t.Errorf("waits with a jitter of one half (-want +got):\n%s", diff)
	}
}

func TestHD10RetryAfterDate(t *testing.T) {
	date := func(c *clock, ahead time.Duration) http.HandlerFunc {
		return func(rw http.ResponseWriter, r *http.Request) {
			answers(429, "", "Retry-After", c.Now().Add(ahead).Format(http.TimeFormat))(rw, r)
		}
	}
	tests := []struct {
		name string
		slow func(*clock) http.HandlerFunc
		wait time.Duration
	}{
		{"date", func(c *clock) http.HandlerFunc { return date(c, 4*time.Second) }, 4 * time.Second},
		{"seconds", func(*clock) http.HandlerFunc { return answers(429, "", "Retry-After", "4") }, 4 * time.Second},
		{"date on an overloaded host", func(c *clock) http.HandlerFunc {
			return func(rw http.ResponseWriter, _ *http.Request) {
				answers(503, "", "Retry-After", c.Now().Add(4*time.Second).Format(time.RFC850))(rw, nil)
			}
		}, 4 * time.Second},
		{"just within the cap", func(c *clock) http.HandlerFunc { return date(c, 5*time.Minute) }, 5 * time.Minute},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWeb(t)
			w.server.Config.Handler = undated(w)
			w.pages["search.example/q"] = inTurn(tt.slow(w.clock), shows("results"))
			for _, host := range []string{"a.example", "b.example", "c.example"} {
				w.pages[host] = shows(host)
			}
			// Waiting for the search host ends when the others have been served, so that the test hangs
			// if it holds them up.
			others := make(chan struct{})
			c := w.client(t, memory(t), func(o *Options) {
				o.Sleep = func(ctx context.Context, d time.Duration) error {
					if d >= time.Second {
						<-others
					}
					return w.clock.Sleep(ctx, d)
				}
			})
			began := w.clock.Now()
			var wg sync.WaitGroup
			wg.Go(func() {
				if _, err := c.Get(t.Context(), Request{URL: "http://search.example/q"}); err != nil {
					t.Errorf("Get: %v", err)
				}
			})
			for _, host := range []string{"a.example", "b.example", "c.example"} {
				for i := range 3 {
					if _, err := c.Get(t.Context(), Request{URL: fmt.Sprintf("http://%s/%d", host, i)}); err != nil {
						t.Errorf("Get from another host: %v", err)
					}
				}
			}
			close(others)
			wg.Wait()
			got := w.seen("search.example/q")
			if len(got) != 2 {
				t.Fatalf("%d requests to the search host, want 2", len(got))
			}
			if after := got[1].at.Sub(began); after < tt.wait || after > tt.wait+3*time.Second {
				t.Errorf("the second request came after %v, want %v to 3 s later", after, tt.wait)
			}
			list, err := c.Exchanges("http://search.example/q")
			if err != nil || len(list) != 2 {
				t.Fatalf("%d exchanges, %v; want 2", len(list), err)
			}
			if list[0].Class != ClassThrottled || list[1].Attempt != 2 || list[1].Waited < tt.wait {
				t.Errorf("record: first %s, then attempt %d after %v; want throttled, attempt 2 after at least %v", list[0].Class, list[1].Attempt, list[1].Waited, tt.wait)
			}
		})
	}
}

// undated serves without a Date header: the machine's clock is not the test's.
func undated(h http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header()["Date"] = nil
		h.ServeHTTP(rw, r)
	})
}

// Beyond the cap a host is parked: its items fail at once, in the next run too, until the time is over.
func TestHD10Parked(t *testing.T) {
	w := newWeb(t)
	w.server.Config.Handler = undated(w)
	w.pages["busy.example/1"] = inTurn(answers(429, "", "Retry-After", "301"), shows("1"))
	w.pages["busy.example"] = shows("more")
	w.pages["free.example"] = shows("free")
	store := memory(t)
	c := w.client(t, store)
	_, err := c.Get(t.Context(), Request{URL: "http://busy.example/1"})
	e := wantReason(t, err, ReasonParked)
	if e.FailureClass() != "transient" || e.Wait != 301*time.Second || e.Attempts() != 1 || e.Excluded() != "" {
		t.Errorf("error = %+v, want a transient one after 1 attempt with a wait of 301 s", e)
	}
	_, err = c.Get(t.Context(), Request{URL: "http://busy.example/2"})
	wantReason(t, err, ReasonParked)
	_, err = c.Get(t.Context(), Request{URL: "http://www.busy.example/2"})
	wantReason(t, err, ReasonParked)
	if _, err := c.Get(t.Context(), Request{URL: "http://free.example/1"}); err != nil {
		t.Errorf("another host: %v", err)
	}
	if n := len(w.seen("busy.example/2")); n != 0 {
		t.Errorf("a parked host got %d requests", n)
	}
	if slices.ContainsFunc(w.clock.slept, func(d time.Duration) bool { return d > time.Second }) {
		t.Errorf("somebody waited: %v", w.clock.slept)
	}

	c = w.client(t, store)
	w.clock.at = w.clock.at.Add(300 * time.Second)
	_, err = c.Get(t.Context(), Request{URL: "http://busy.example/2"})
	wantReason(t, err, ReasonParked)
	w.clock.at = w.clock.at.Add(time.Second)
	for _, path := range []string{"1", "2"} {
		if _, err := c.Get(t.Context(), Request{URL: "http://busy.example/" + path}); err != nil {
			t.Errorf("after the time: %v", err)
		}
	}
}
