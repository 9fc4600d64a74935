package fetch

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay/kv"
)

func TestRequestKey(t *testing.T) {
	plain := requestKey("", "https://h.example/a", "", "", "", "")
	if plain != "GET https://h.example/a" || requestKey("GET", "https://h.example/a", defaultAccept, defaultAcceptLanguage, "", "") != plain {
		t.Errorf("key = %q, want the plain one for what Get sends", plain)
	}
	keys := map[string]bool{plain: true}
	for _, key := range []string{
		requestKey("POST", "https://h.example/a", "", "", "", ""), requestKey("", "https://h.example/b", "", "", "", ""),
		requestKey("", "https://h.example/a", "text/plain", "", "", ""), requestKey("", "https://h.example/a", "", "de", "", ""),
		requestKey("", "https://h.example/a", "", "", "bytes=0-9", ""), requestKey("", "https://h.example/a", "", "", "", "00"),
		requestKey("", "https://h.example/a", "de", "", "", ""),
	} {
		if keys[key] {
			t.Errorf("two requests have the key %q", key)
		}
		keys[key] = true
		if u := keyURL(key); !strings.HasPrefix(u, "https://h.example/") || strings.Contains(u, " ") {
			t.Errorf("keyURL(%q) = %q", key, u)
		}
	}
}

var day = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

// imported makes an exchange of an archive.
func imported(days, status int, class Class, body string) (Exchange, io.Reader) {
	return Exchange{URL: "http://H.example/p#x", At: day.AddDate(0, 0, days), Status: status, Class: class, Source: "warc:test", Header: http.Header{
		"content-type": {"text/html"}, "Set-Cookie": {"a=b"}, "Transfer-Encoding": {"chunked"}, "X-Other": {"1", "2"},
	}, RequestHeader: map[string]string{"accept": defaultAccept, "Cookie": "a=b"}}, strings.NewReader(body)
}

func record(t *testing.T, a *archive, ex Exchange, body io.Reader) Exchange {
	t.Helper()
	got, err := a.record(t.Context(), ex, body)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestRecord(t *testing.T) {
	a := openArchive(memory(t))
	ex, body := imported(0, 200, ClassOK, "hello")
	got := record(t, a, ex, body)
	want := Exchange{
		Seq: 1, Method: "GET", URL: "http://h.example/p", At: day, Status: 200, Class: ClassOK, Source: "warc:test", Length: 5,
		Body:          "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824",
		Header:        http.Header{"Content-Type": {"text/html"}, "X-Other": {"1", "2"}},
		RequestHeader: map[string]string{"Accept": defaultAccept},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("stored (-want +got):\n%s", diff)
	}
	for name, find := range map[string]func(string) (Exchange, bool, error){"latest": a.latest, "usable": a.usable} {
		ex, ok, err := find("GET http://h.example/p")
		if diff := cmp.Diff(want, ex); !ok || err != nil || diff != "" {
			t.Errorf("%s: %v, %v (-want +got):\n%s", name, ok, err, diff)
		}
	}
	r, err := a.body(got)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(r); err != nil || string(b) != "hello" {
		t.Errorf("body = %q, %v", b, err)
	}
	// The same import again stores nothing.
	ex, body = imported(0, 200, ClassOK, "hello")
	if again := record(t, a, ex, body); again.Seq != 1 {
		t.Errorf("the same import became number %d", again.Seq)
	}
	if _, ok, err := a.latest("GET http://h.example/other"); ok || err != nil {
		t.Errorf("latest of nothing = %v, %v", ok, err)
	}
	if _, err := a.record(t.Context(), ex, iotest.ErrReader(io.ErrUnexpectedEOF)); err == nil {
		t.Error("a body that breaks off was stored")
	}
}

// What answers does not depend on the order in which archives are imported.
func TestRecordOrder(t *testing.T) {
	type step struct {
		days, status int
		class        Class
		body         string
	}
	tests := []struct {
		name           string
		steps          []step
		latest, usable int // index of the step
	}{
		{"newest ok", []step{{0, 200, ClassOK, "a"}, {1, 200, ClassOK, "b"}, {2, 200, ClassOK, "c"}}, 2, 2},
		{"equal bodies keep the first", []step{{0, 200, ClassOK, "x"}, {1, 200, ClassOK, "a"}, {2, 200, ClassOK, "a"}, {3, 200, ClassOK, "a"}}, 3, 1},
		{"an equal body after another is new", []step{{0, 200, ClassOK, "a"}, {1, 200, ClassOK, "b"}, {2, 200, ClassOK, "a"}}, 2, 2},
		{"a wall keeps the last good", []step{{0, 200, ClassOK, "a"}, {1, 403, ClassBlocked, "no"}, {2, 503, ClassFailed, ""}}, 2, 0},
		{"gone once is not believed", []step{{0, 200, ClassOK, "a"}, {1, 404, ClassGone, "no"}}, 1, 0},
		{"gone a day later is", []step{{0, 200, ClassOK, "a"}, {1, 404, ClassGone, "no"}, {2, 404, ClassGone, "no, again"}}, 2, 2},
		{"gone in another way too", []step{{0, 200, ClassOK, "a"}, {1, 404, ClassGone, "no"}, {2, 410, ClassGone, "no more"}, {3, 410, ClassGone, ""}}, 3, 2},
		{"an outage between is no answer", []step{{0, 200, ClassOK, "a"}, {1, 404, ClassGone, "no"}, {2, 503, ClassFailed, ""}, {3, 404, ClassGone, "no"}}, 3, 3},
		{"a page between begins the count again", []step{{0, 200, ClassOK, "a"}, {1, 404, ClassGone, "no"}, {2, 200, ClassOK, "a"}, {3, 404, ClassGone, "no"}}, 3, 0},
		{"gone from the first on is an answer", []step{{0, 404, ClassGone, "no"}}, 0, 0},
		{"back from gone", []step{{0, 404, ClassGone, "no"}, {1, 200, ClassOK, "a"}, {2, 429, ClassThrottled, ""}}, 2, 1},
		{"nothing good", []step{{0, 403, ClassBlocked, "a"}, {1, 500, ClassFailed, "b"}}, 1, -1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for seed := range uint64(6) {
				a := openArchive(memory(t))
				for _, i := range rand.New(rand.NewPCG(seed, 1)).Perm(len(tt.steps)) {
					s := tt.steps[i]
					ex, body := imported(s.days, s.status, s.class, s.body)
					record(t, a, ex, body)
				}
				latest, _, err := a.latest("GET http://h.example/p")
				if err != nil || !latest.At.Equal(day.AddDate(0, 0, tt.steps[tt.latest].days)) {
					t.Errorf("latest is of %v, %v; want step %d", latest.At, err, tt.latest)
				}
				usable, ok, err := a.usable("GET http://h.example/p")
				if err != nil || ok != (tt.usable >= 0) || ok && !usable.At.Equal(day.AddDate(0, 0, tt.steps[max(tt.usable, 0)].days)) {
					t.Errorf("usable is of %v, %v, %v; want step %d", usable.At, ok, err, tt.usable)
				}
			}
		})
	}
}

func TestBodiesAreSharedAndChunked(t *testing.T) {
	a := openArchive(memory(t))
	long := bytes.Repeat([]byte("0123456789abcdef"), (2*chunkSize+chunkSize/4)/16)
	bodies := map[string]int{"": 0, "short": 1, string(long[:chunkSize]): 1, string(long[:chunkSize+1]): 2, string(long): 3}
	total := 0
	for body, parts := range bodies {
		total += parts
		for i := range 2 {
			ex := record(t, a, Exchange{URL: fmt.Sprintf("http://h.example/%d/%d", len(body), i), At: day, Status: 200, Class: ClassOK, Source: "dir:x"}, strings.NewReader(body))
			r, err := a.body(ex)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := io.ReadAll(r); err != nil || string(got) != body {
				t.Errorf("a body of %d bytes came back with %d, %v", len(body), len(got), err)
			}
		}
	}
	if n, err := a.bodies.Count(""); err != nil || n != total {
		t.Errorf("%d parts stored, %v; want %d, each once", n, err, total)
	}
	// A long body whose parts were not all written, as after a crash, is written again.
	ex := Exchange{URL: "http://h.example/crash", At: day, Status: 200, Class: ClassOK, Source: "dir:x"}
	stored := record(t, a, ex, bytes.NewReader(long))
	if err := a.bodies.Delete(bodyKey(stored.Body, 2)); err != nil {
		t.Fatal(err)
	}
	r, err := a.body(stored)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(r); err == nil {
		t.Error("a body without its last part was read")
	}
	ex.URL += "2"
	record(t, a, ex, bytes.NewReader(long))
	if r, err = a.body(stored); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, long) {
		t.Errorf("after it was written again: %d bytes, %v", len(got), err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := a.record(ctx, ex, bytes.NewReader(append(long, "more"...))); err == nil {
		t.Error("a cancelled write of a long body succeeded")
	}
}

// A head that cannot be read is made again.
func TestDamagedHead(t *testing.T) {
	store := memory(t)
	a := openArchive(store)
	for i := range 3 {
		ex, body := imported(i, 200, ClassOK, fmt.Sprint("body ", i))
		record(t, a, ex, body)
	}
	older := kv.In[head](store, bucketHead, 0)
	key := headKey("GET http://h.example/p")
	if err := older.Put(key, head{}); err != nil { // a record of another version
		t.Fatal(err)
	}
	got, ok, err := a.usable("GET http://h.example/p")
	if err != nil || !ok || got.Seq != 3 {
		t.Errorf("usable = number %d, %v, %v; want the third", got.Seq, ok, err)
	}
	ex, body := imported(3, 200, ClassOK, "body 3")
	if got := record(t, a, ex, body); got.Seq != 4 {
		t.Errorf("the next exchange is number %d, want 4", got.Seq)
	}
	list, err := a.all("http://h.example/p")
	if err != nil || len(list) != 4 {
		t.Errorf("%d exchanges, %v; want all 4", len(list), err)
	}
}

func TestStored(t *testing.T) {
	a := openArchive(memory(t))
	for url, class := range map[string]Class{
		"http://www.check.example/b": ClassOK, "https://www.check.example/a": ClassGone, "https://check.example/c": ClassBlocked, "https://check.example/failed": ClassFailed,
		"https://check.example/slow": ClassThrottled, "https://mycheck.example/x": ClassOK, "https://check.example.org/x": ClassOK,
	} {
		record(t, a, Exchange{URL: url, At: day, Status: 200, Class: class, Source: "dir:x"}, strings.NewReader("x"))
	}
	record(t, a, Exchange{URL: "https://check.example/huge", At: day, Status: 200, Class: ClassFailed, Reason: ReasonTooLarge, Source: "dir:x"}, nil)
	record(t, a, Exchange{Method: "POST", URL: "https://check.example/search", At: day, Status: 200, Class: ClassOK, Source: "dir:x"}, strings.NewReader("x"))
	for host, want := range map[string][]string{
		"www.check.example": {"http://www.check.example/b", "https://www.check.example/a"},
		"Check.example":     {"http://www.check.example/b", "https://check.example/c", "https://check.example/huge", "https://www.check.example/a"},
		"other.example":     nil,
		"": {"http://www.check.example/b", "https://check.example/c", "https://check.example/huge", "https://www.check.example/a",
			"https://check.example.org/x", "https://mycheck.example/x"},
	} {
		var got []string
		for url, err := range a.stored(t.Context(), host) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, url)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("stored(%s) (-want +got):\n%s", host, diff)
		}
	}
}

func TestExchangesOfAnAddress(t *testing.T) {
	a := openArchive(memory(t))
	for i, ex := range []Exchange{
		{URL: "http://h.example/p", At: day.AddDate(0, 0, 2)}, {URL: "http://h.example/p", At: day},
		{URL: "http://h.example/p", At: day.AddDate(0, 0, 1), RequestHeader: map[string]string{"Accept": "text/plain"}},
		{URL: "http://h.example/p/longer", At: day}, {URL: "http://h.example/", At: day}, {URL: "http://www.h.example/p", At: day},
	} {
		ex.Status, ex.Class, ex.Source = 200, ClassOK, "dir:x"
		record(t, a, ex, strings.NewReader(fmt.Sprint(i)))
	}
	list, err := a.all("http://h.example/p")
	if err != nil {
		t.Fatal(err)
	}
	var got []int
	for _, ex := range list {
		got = append(got, ex.At.Day())
	}
	if diff := cmp.Diff([]int{1, 2, 3}, got); diff != "" {
		t.Errorf("days (-want +got):\n%s", diff)
	}
}

func TestKeep(t *testing.T) {
	w := newWeb(t)
	w.pages["h.example/old"], w.pages["h.example/used"] = redirects(301, "/used"), inTurn(shows("one"), shows("two"))
	w.pages["h.example/unused"] = shows("unused")
	store := memory(t)
	var keys []string
	c := w.client(t, store)
	for _, path := range []string{"/used", "/unused"} {
		if _, err := c.Get(t.Context(), Request{URL: "http://h.example" + path}); err != nil {
			t.Fatal(err)
		}
	}
	w.clock.at = w.clock.at.Add(time.Hour)
	c = w.client(t, store, func(o *Options) {
		o.Answered = func(_ context.Context, key string, _ [32]byte) { keys = append(keys, key) }
	})
	if _, err := c.Get(AskAgain(t.Context(), w.clock.at), Request{URL: "http://h.example/old"}); err != nil {
		t.Fatal(err)
	}
	keep, err := Keep(store, slices.Values(append(keys, "llm/x")))
	if err != nil {
		t.Fatal(err)
	}
	if !keep("llm.calls", "anything") {
		t.Error("a bucket of another package is not kept")
	}
	if _, err := store.GC(t.Context(), keep); err != nil {
		t.Fatal(err)
	}
	c = w.client(t, store, func(o *Options) { o.Mode = Replay })
	page, err := c.Get(t.Context(), Request{URL: "http://h.example/old"})
	if err != nil || !strings.Contains(page.Text(), "two") {
		t.Errorf("what is in use: %v", err)
	}
	_, err = c.Get(t.Context(), Request{URL: "http://h.example/unused"})
	wantReason(t, err, ReasonNotStored)
	var counts []int
	for _, count := range []func(string) (int, error){c.archive.exchanges.Count, c.archive.heads.Count, c.archive.bodies.Count, c.archive.addresses.Count, c.archive.aliases.Count} {
		n, err := count("")
		if err != nil {
			t.Fatal(err)
		}
		counts = append(counts, n)
	}
	// old, used and robots.txt; the first body of /used went with its exchange.
	if diff := cmp.Diff([]int{3, 3, 2, 3, 1}, counts); diff != "" {
		t.Errorf("exchanges, heads, bodies, addresses, aliases (-want +got):\n%s", diff)
	}
	if got, err := c.Addresses("http://h.example/used"); err != nil || len(got) != 2 {
		t.Errorf("addresses = %v, %v", got, err)
	}
}
