package fetch

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// One request at a time per key, whatever comes of it.
func TestFlights(t *testing.T) {
	w := newWeb(t)
	var wait sync.WaitGroup
	gate := make(chan struct{})
	held := func(h http.HandlerFunc) http.HandlerFunc {
		return func(rw http.ResponseWriter, r *http.Request) { <-gate; h(rw, r) }
	}
	w.pages["h.example/page"], w.pages["i.example/no"] = held(shows("page")), held(answers(403, "no"))
	c := w.client(t, memory(t))
	var pages, blocked atomic.Int32
	for i := range 40 {
		url := []string{"http://h.example/page", "http://i.example/no"}[i%2]
		wait.Go(func() {
			_, err := c.Get(t.Context(), Request{URL: url})
			var e *Error
			switch {
			case err == nil:
				pages.Add(1)
			case errors.As(err, &e) && e.Reason == ReasonBlocked:
				blocked.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	for len(w.paths()) < 2 {
		runtime.Gosched()
	}
	close(gate)
	wait.Wait()
	if pages.Load() != 20 || blocked.Load() != 20 {
		t.Errorf("%d pages and %d blocked, want 20 and 20", pages.Load(), blocked.Load())
	}
	if n := len(w.seen("h.example/page")); n != 1 {
		t.Errorf("a page was asked for %d times, want once", n)
	}
}

// When the one who asked is called off, the next who waits asks.
func TestFlightsSurviveCancel(t *testing.T) {
	w := newWeb(t)
	first := make(chan struct{})
	w.pages["h.example/page"] = func(rw http.ResponseWriter, r *http.Request) {
		select {
		case <-first:
			shows("page")(rw, r)
		default:
			close(first)
			<-r.Context().Done()
		}
	}
	c := w.client(t, memory(t))
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := c.Get(ctx, Request{URL: "http://h.example/page"}); !errors.Is(err, context.Canceled) {
			t.Errorf("error = %v, want cancelled", err)
		}
	})
	<-first
	wg.Go(func() {
		if _, err := c.Get(t.Context(), Request{URL: "http://h.example/page"}); err != nil {
			t.Errorf("the second: %v", err)
		}
	})
	cancel()
	wg.Wait()
}

func TestAskAgain(t *testing.T) {
	w := newWeb(t)
	version := shows("one")
	tagged := func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Etag", `"1"`)
		rw.Header().Set("Last-Modified", "Sun, 01 Feb 2026 10:00:00 GMT")
		if r.Header.Get("If-None-Match") == `"1"` && r.Header.Get("If-Modified-Since") != "" {
			rw.Header().Set("Etag", `"2"`)
			rw.WriteHeader(http.StatusNotModified)
			return
		}
		version(rw, r)
	}
	w.pages["h.example/tagged"] = tagged
	w.pages["h.example/plain"] = func(rw http.ResponseWriter, r *http.Request) { version(rw, r) }
	w.pages["h.example/changing"] = inTurn(shows("one"), shows("two"))
	w.pages["h.example/failing"] = inTurn(shows("one"), answers(503, ""))
	w.pages["h.example/closing"] = inTurn(shows("one"), answers(403, "no"))
	w.pages["h.example/leaving"] = inTurn(shows("one"), answers(404, "no"))
	paths := []string{"/tagged", "/plain", "/changing", "/failing", "/closing", "/leaving"}
	store := memory(t)
	first := map[string]*Page{}
	sums := map[string][32]byte{}
	tell := func(o *Options) {
		o.Answered = func(_ context.Context, key string, sum [32]byte) { sums[key] = sum }
	}
	c := w.client(t, store, tell)
	for _, path := range paths {
		page, err := c.Get(t.Context(), Request{URL: "http://h.example" + path})
		if err != nil {
			t.Fatal(err)
		}
		first[path] = page
	}
	was := map[string][32]byte{}
	for k, v := range sums {
		was[k] = v
	}
	w.clock.at = w.clock.at.Add(time.Hour)
	began := AskAgain(t.Context(), w.clock.at)
	got := map[string]string{}
	for range 2 { // the second time asks nobody, nor does another client that goes on with the same run
		c = w.client(t, store, tell)
		for _, path := range paths {
			page, err := c.Get(began, Request{URL: "http://h.example" + path})
			var e *Error
			switch {
			case errors.As(err, &e):
				got[path] = e.Reason
			case err != nil:
				t.Fatal(err)
			case page.Sum() == first[path].Sum() && page.Retrieved.Equal(first[path].Retrieved) && page.Status == http.StatusOK:
				got[path] = "same"
			case page.Sum() != first[path].Sum() && page.Retrieved.After(first[path].Retrieved):
				got[path] = "new"
			default:
				got[path] = fmt.Sprintf("status %d, retrieved %v", page.Status, page.Retrieved)
			}
		}
	}
	requests := map[string]int{"/tagged": 2, "/plain": 2, "/changing": 2, "/failing": 5, "/closing": 2, "/leaving": 2}
	for path, want := range map[string]string{"/tagged": "same", "/plain": "same", "/changing": "new", "/failing": "same", "/closing": "same", "/leaving": "same"} {
		if got[path] != want {
			t.Errorf("%s: %s, want %s", path, got[path], want)
		}
		key := "fetch/GET http://h.example" + path
		if same := sums[key] == was[key]; same != (want == "same") {
			t.Errorf("%s: the sum stayed the same = %v", path, same)
		}
		if n := len(w.seen("h.example" + path)); n != requests[path] {
			t.Errorf("%s: %d requests, want %d", path, n, requests[path])
		}
	}
	kept := map[string]string{}
	for _, path := range paths {
		s, err := c.Standing("http://h.example" + path)
		if err != nil || s.Gone() {
			t.Errorf("%s is %+v, %v", path, s, err)
		}
		if s.Kept() || s.Leaving() {
			kept[path] = s.Reason
		}
	}
	if diff := cmp.Diff(map[string]string{"/failing": "status_503", "/closing": "status_403", "/leaving": "status_404"}, kept); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
	list, err := c.Exchanges("http://h.example/tagged")
	if err != nil || len(list) != 2 || list[1].Status != http.StatusNotModified || list[1].SameAs != list[0].ID() || list[1].Body != list[0].Body {
		t.Errorf("exchanges = %+v, %v; want a 304 that is the same as the first", list, err)
	}
	if list, err = c.Exchanges("http://h.example/plain"); err != nil || len(list) != 2 || list[1].SameAs != list[0].ID() {
		t.Errorf("exchanges = %+v, %v; want an equal body noted", list, err)
	}
	// The next refresh offers the newer validator.
	w.pages["h.example/tagged"] = func(rw http.ResponseWriter, r *http.Request) {
		if tag := r.Header.Get("If-None-Match"); tag != `"2"` {
			t.Errorf("If-None-Match = %s", tag)
		}
		rw.WriteHeader(http.StatusNotModified)
	}
	w.clock.at = w.clock.at.Add(time.Hour)
	page, err := c.Get(AskAgain(t.Context(), w.clock.at), Request{URL: "http://h.example/tagged"})
	if err != nil || !page.Retrieved.Equal(first["/tagged"].Retrieved) {
		t.Errorf("after a second 304: %v", err)
	}
}

// A 304 nobody asked for is no page.
func TestUnaskedNotModified(t *testing.T) {
	w := newWeb(t)
	w.pages["h.example/x"] = answers(304, "")
	_, err := w.client(t, memory(t)).Get(t.Context(), Request{URL: "http://h.example/x"})
	wantReason(t, err, ReasonStatus)
}

// What is stored stays when the host may not or cannot be asked again.
func TestAskAgainKeepsWhatItHas(t *testing.T) {
	w := newWeb(t)
	w.pages["h.example/page"] = shows("page")
	store := memory(t)
	if _, err := w.client(t, store).Get(t.Context(), Request{URL: "http://h.example/page"}); err != nil {
		t.Fatal(err)
	}
	w.clock.at = w.clock.at.Add(48 * time.Hour)
	w.pages["h.example/robots.txt"] = answers(200, "User-agent: *\nDisallow: /\n")
	if _, err := w.client(t, store).Get(AskAgain(t.Context(), w.clock.at), Request{URL: "http://h.example/page"}); err != nil {
		t.Errorf("robots.txt closed: %v", err)
	}
	w.server.Close()
	if _, err := w.client(t, store).Get(AskAgain(t.Context(), w.clock.at), Request{URL: "http://h.example/page"}); err != nil {
		t.Errorf("host away: %v", err)
	}
}

func TestReplayGivesStoredFailures(t *testing.T) {
	w := newWeb(t)
	w.pages["h.example/no"], w.pages["h.example/gone"], w.pages["h.example/down"] = answers(403, "no"), answers(404, "no"), answers(503, "")
	store := memory(t)
	want := map[string]string{"/no": ReasonBlocked, "/gone": ReasonGone, "/down": ReasonStatus}
	for _, mode := range []Mode{Live, Replay} {
		c := w.client(t, store, func(o *Options) { o.Mode = mode })
		for path, reason := range want {
			_, err := c.Get(t.Context(), Request{URL: "http://h.example" + path})
			wantReason(t, err, reason)
		}
		if mode == Replay && c.Stats().Requests != 0 {
			t.Errorf("replay sent %d requests", c.Stats().Requests)
		}
	}
	c := w.client(t, store, func(o *Options) { o.Mode = Replay })
	_, err := c.Get(t.Context(), Request{URL: "http://h.example/never"})
	if e := wantReason(t, err, ReasonNotStored); e.FailureClass() != "transient" || e.Excluded() != "" {
		t.Errorf("a miss is %+v, want a failure that an import cures", e)
	}
}

// What stood at a page's addresses before is told once per change, and asking about it is an answer that
// an older capture changes.
func TestVersions(t *testing.T) {
	w := newWeb(t)
	w.pages["h.example/page"] = inTurn(shows("one"), shows("one"), answers(503, ""), answers(503, ""), answers(503, ""), answers(503, ""), shows("two"), shows("one"))
	store := memory(t)
	sums := map[string][32]byte{}
	c := w.client(t, store, func(o *Options) {
		o.Answered = func(_ context.Context, key string, sum [32]byte) { sums[key] = sum }
	})
	told := func() (texts []string) {
		t.Helper()
		page, err := c.Get(t.Context(), Request{URL: "http://h.example/page"})
		if err != nil {
			t.Fatal(err)
		}
		pages, err := c.Versions(t.Context(), page)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range pages {
			texts = append(texts, p.Text())
		}
		return texts
	}
	const key = "fetch/versions GET http://h.example/page"
	var got [][]string
	var last [32]byte
	for range 5 {
		if _, err := c.Get(AskAgain(t.Context(), w.clock.at), Request{URL: "http://h.example/page"}); err != nil {
			t.Fatal(err)
		}
		got = append(got, told())
		w.clock.at = w.clock.at.Add(24 * time.Hour)
		last = sums[key]
	}
	page := func(s string) string { // as shows writes it
		rec := httptest.NewRecorder()
		shows(s)(rec, httptest.NewRequest(http.MethodGet, "/", nil))
		return rec.Body.String()
	}
	one, two := page("one"), page("two")
	if diff := cmp.Diff([][]string{nil, nil, nil, {one}, {one, two}}, got); diff != "" {
		t.Errorf("versions (-want +got):\n%s", diff)
	}
	if sum, known, err := c.Current(t.Context(), key); err != nil || !known || sum != last {
		t.Errorf("the answer about versions is %x, %v, %v; want %x", sum, known, err, last)
	}
	record(t, c.archive, Exchange{URL: "http://h.example/page", At: day.AddDate(-1, 0, 0), Status: 200, Class: ClassOK, Source: "warc:x"}, strings.NewReader("zero"))
	if sum, _, err := c.Current(t.Context(), key); err != nil || sum == last {
		t.Errorf("an older capture leaves the answer about versions as it was: %v", err)
	}
	if got := told(); len(got) != 3 || got[0] != "zero" {
		t.Errorf("with an older capture: %q", got)
	}
	// What versions rest on is kept, bodies and all.
	keep, err := Keep(store, slices.Values([]string{key}))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.GC(t.Context(), keep); err != nil {
		t.Fatal(err)
	}
	if got := told(); len(got) != 3 {
		t.Errorf("after gc: %q", got)
	}
}
