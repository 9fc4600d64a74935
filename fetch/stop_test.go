package fetch

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"
)

func TestStopEndsWaits(t *testing.T) {
	tests := []struct {
		name string
		page http.HandlerFunc
		set  func(*Options)
	}{
		{"for Retry-After", answers(503, "", "Retry-After", "200"), nil},
		{"between attempts", answers(503, ""), nil},
		{"for the host's turn", shows("x"), func(o *Options) { o.Delay = time.Hour }},
		{"for an answer", func(rw http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWeb(t)
			w.pages["h.example"] = tt.page
			c := w.client(t, memory(t), func(o *Options) {
				o.Now, o.Sleep = nil, nil
				o.Jitter = func() float64 { return 100 }
				if tt.set != nil {
					tt.set(o)
				}
			})
			stop, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			began := time.Now()
			_, err := c.Get(StopWith(t.Context(), stop), Request{URL: "http://h.example/page"})
			if took := time.Since(began); !errors.Is(err, ErrStopped) || took > 2*time.Second {
				t.Errorf("error %v after %v, want %v soon after the stop", err, took, ErrStopped)
			}
		})
	}
}

func TestStopWaitsForWhatIsPaid(t *testing.T) {
	w := newWeb(t)
	stop, cancel := context.WithCancel(t.Context())
	w.pages["h.example"] = func(rw http.ResponseWriter, r *http.Request) {
		cancel()
		select {
		case <-time.After(100 * time.Millisecond):
			answers(200, `{"found": 1}`, "Content-Type", "application/json")(rw, r)
		case <-r.Context().Done():
		}
	}
	c := w.client(t, memory(t))
	reply, err := c.Call(StopWith(t.Context(), stop), Call{URL: "http://h.example/search", Charge: &Charge{Worst: 0.01, Date: "2026-01-01", Of: func(Reply) float64 { return 0.005 }}})
	if err != nil || reply.Status != 200 {
		t.Errorf("reply %v, error %v: a request that is paid for was cut off", reply, err)
	}
}
