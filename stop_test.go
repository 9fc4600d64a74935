package assay

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// A build that is stopped, or whose time is up, waits for no host, and records nothing of what it gave up.
func TestStoppedBuildWaitsForNoHost(t *testing.T) {
	for name, want := range map[string]error{"interrupt": ErrInterrupted, "time": ErrTimeUp} {
		t.Run(name, func(t *testing.T) {
			a, open := newAlmanac(t)
			a.set(map[string]string{"/map": "/item/1\n", "/item/1": item("true", "The well of Averil is deep.")})
			w := open()
			dir := w.Dir
			closed(t, w)
			busy := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/item/1" {
					rw.Header().Set("Retry-After", "120")
					rw.WriteHeader(http.StatusServiceUnavailable)
					return
				}
				a.ServeHTTP(rw, r)
			}))
			defer busy.Close()
			w, err := Open(t.Context(), dir, OpenOptions{Overrides: []Override{{Key: "runtime.resolve", Value: fmt.Sprintf("{almanac.example: %q}", busy.Listener.Addr())}, {Key: "runtime.delay", Value: "10ms"}}})
			if err != nil {
				t.Fatal(err)
			}
			defer closed(t, w)
			stop := make(chan struct{})
			o := BuildOptions{Stop: stop}
			if errors.Is(want, ErrTimeUp) {
				o.MaxDuration = 500 * time.Millisecond
			} else {
				time.AfterFunc(500*time.Millisecond, func() { close(stop) })
			}
			began := time.Now()
			rep, err := w.Build(t.Context(), o)
			if took := time.Since(began); took > time.Minute || !errors.Is(err, want) || rep.TimeUp != errors.Is(want, ErrTimeUp) {
				t.Errorf("error %v after %s, time up %v; want %v at once", err, took, rep.TimeUp, want)
			}
			if rep.Pipeline.Failed != 0 {
				t.Errorf("%d items failed because the build was stopped", rep.Pipeline.Failed)
			}
		})
	}
}
