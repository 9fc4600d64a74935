package llm

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestStopEndsWaits(t *testing.T) {
	for name, reply := range map[string]stubReply{
		"for the endpoint": failing(429, "", "Retry-After", "100"),
		"for a minute":     answerOK, // one request a minute
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, inTurn(reply))
			stop, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			c := client(t, s, Options{Sleep: sleep, Endpoints: map[string]Endpoint{"main": {RPM: 1, Concurrency: 2}}})
			ctx := StopWith(t.Context(), stop)
			began := time.Now()
			var err error
			for i := range 3 {
				if _, err = c.Complete(ctx, ask(i)); err != nil {
					break
				}
			}
			if took := time.Since(began); !errors.Is(err, ErrStopped) || took > 2*time.Second {
				t.Errorf("error %v after %s, want %v", err, took, ErrStopped)
			}
			if s.requests() != 1 {
				t.Errorf("%d requests, want 1", s.requests())
			}
		})
	}
}

func TestStopWaitsForACallOnItsWay(t *testing.T) {
	stop, cancel := context.WithCancel(t.Context())
	s := serve(t, func(int, string) stubReply {
		cancel()
		return answerOK
	})
	c := client(t, s, Options{})
	if r, err := c.Complete(StopWith(t.Context(), stop), ask(1)); err != nil || r.Outcome != OutcomeAnswered {
		t.Errorf("%+v, %v: a call that is paid for was cut off", r, err)
	}
}
