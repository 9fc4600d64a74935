package fetch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// dead returns an ip:port at which nobody listens.
func dead(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func TestHostThatCannotBeReachedIsGivenUp(t *testing.T) {
	w := newWeb(t)
	store := memory(t)
	w.pages["up.example"], w.pages["h.example"] = shows("up"), shows("h")
	c := w.client(t, store)
	if _, err := c.Get(t.Context(), Request{URL: "http://h.example/known"}); err != nil {
		t.Fatal(err)
	}
	c = w.client(t, store, func(o *Options) { o.Resolve = map[string]string{"h.example": dead(t), "*.example": w.addr()} })
	began := w.clock.Now()
	for i := range 40 {
		_, err := c.Get(t.Context(), Request{URL: fmt.Sprintf("http://h.example/%d", i)})
		e := wantReason(t, err, map[bool]string{true: ReasonNetwork, false: ReasonHostDown}[i == 0])
		if e.FailureClass() != "transient" {
			t.Fatalf("class %s, want transient", e.FailureClass())
		}
		if i > 1 && (!strings.Contains(e.Error(), "h.example:80") || !strings.Contains(e.Error(), "refused") || e.Tries != 0) {
			t.Fatalf("%v after %d attempts, want host and first cause, and none", e, e.Tries)
		}
	}
	if _, err := c.Get(t.Context(), Request{URL: "http://up.example/page"}); err != nil {
		t.Errorf("another host: %v", err)
	}
	if took := w.clock.Now().Sub(began); took > time.Minute {
		t.Errorf("it took %v to give the host up", took)
	}
	page, err := c.Get(AskAgain(t.Context(), w.clock.Now()), Request{URL: "http://h.example/known"})
	if err != nil || page.URL != "http://h.example/known" {
		t.Errorf("what is stored does not stand: %v", err)
	}
	down := c.Stats().Outages
	if len(down) != 1 || down[0].Host != "h.example:80" || down[0].Failed != failuresInRow || down[0].Unsent != 39 || down[0].Back {
		t.Errorf("outages %+v, want 5 failures and 39 requests that were not sent", down)
	}
	if list, err := c.Exchanges("http://h.example/30"); err != nil || len(list) != 0 {
		t.Errorf("%d exchanges (error %v) of a request that was not sent", len(list), err)
	}
	r := w.client(t, store, func(o *Options) { o.Mode = Replay })
	_, err = r.Get(t.Context(), Request{URL: "http://h.example/30"})
	wantReason(t, err, ReasonNotStored)
}

func TestHostThatComesBackIsAskedAgain(t *testing.T) {
	w := newWeb(t)
	w.pages["h.example"] = shows("h")
	c := w.client(t, memory(t), func(o *Options) { o.Retries = -1 })
	up, dials := c.guard.dial, 0
	c.guard.dial = func(context.Context, string, string) (net.Conn, error) {
		dials++
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("no route to host")}
	}
	call := func() error {
		_, err := c.Call(t.Context(), Call{URL: fmt.Sprintf("http://h.example/%d", dials)})
		return err
	}
	for range failuresInRow {
		wantReason(t, call(), ReasonNetwork)
	}
	for _, pause := range []time.Duration{firstPause, 2 * firstPause, 4 * firstPause} {
		before := dials
		for range 10 {
			wantReason(t, call(), ReasonHostDown)
		}
		w.clock.at = w.clock.at.Add(pause - time.Second)
		wantReason(t, call(), ReasonHostDown)
		w.clock.at = w.clock.at.Add(time.Second)
		wantReason(t, call(), ReasonNetwork)
		wantReason(t, call(), ReasonHostDown)
		if dials != before+1 {
			t.Fatalf("%d probes after %v, want one", dials-before, pause)
		}
	}
	c.guard.dial = up
	w.clock.at = w.clock.at.Add(8 * firstPause)
	for range 3 {
		if err := call(); err != nil {
			t.Fatalf("the host is back: %v", err)
		}
	}
	if down := c.Stats().Outages; len(down) != 1 || !down[0].Back || !strings.Contains(down[0].String(), "answered again") {
		t.Errorf("outages %v, want one that is over", down)
	}
}

func TestNoHostIsGivenUpForItsAnswers(t *testing.T) {
	hangUp := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	slow := func(rw http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	for name, page := range map[string]http.HandlerFunc{"502": answers(502, ""), "hung up on": hangUp, "one slow page": slow} {
		t.Run(name, func(t *testing.T) {
			w := newWeb(t)
			w.pages["h.example/page"], w.pages["h.example/good"] = page, shows("good")
			c := w.client(t, memory(t), func(o *Options) { o.Limits.Timeout, o.Retries = 50*time.Millisecond, 7 })
			if _, err := c.Get(t.Context(), Request{URL: "http://h.example/page"}); err == nil {
				t.Fatal("no error")
			}
			if _, err := c.Get(t.Context(), Request{URL: "http://h.example/good"}); err != nil {
				t.Errorf("a good page of the same host: %v", err)
			}
			if down := c.Stats().Outages; len(down) != 0 {
				t.Errorf("outages %v, want none", down)
			}
		})
	}
}

func TestHostThatNeverAnswersInTimeIsGivenUp(t *testing.T) {
	w := newWeb(t)
	w.pages["h.example"] = func(rw http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	c := w.client(t, memory(t), func(o *Options) { o.Limits.Timeout = 30 * time.Millisecond })
	var reasons []string
	for i := range 4 {
		_, err := c.Get(t.Context(), Request{URL: fmt.Sprintf("http://h.example/%d", i)})
		var e *Error
		if !errors.As(err, &e) {
			t.Fatal(err)
		}
		reasons = append(reasons, e.Reason)
	}
	if want := []string{ReasonTimeout, ReasonHostDown, ReasonHostDown, ReasonHostDown}; !slices.Equal(reasons, want) {
		t.Errorf("reasons %v, want %v", reasons, want)
	}
}
