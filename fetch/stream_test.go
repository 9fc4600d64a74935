package fetch

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"assay/kv"
)

// A body of many chunks is read in pieces, coded or not, from the network and from the store.
func TestStream(t *testing.T) {
	long := strings.Repeat("a row of the feed, and then another one\n", 300_000) // 12 MB
	web := newWeb(t)
	web.pages["feeds.example/plain.json"] = func(rw http.ResponseWriter, _ *http.Request) { fmt.Fprint(rw, long) }
	web.pages["feeds.example/coded.json"] = func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(rw)
		fmt.Fprint(z, long)
		z.Close()
	}
	web.pages["feeds.example/moved.json"] = func(rw http.ResponseWriter, r *http.Request) {
		http.Redirect(rw, r, "/plain.json", http.StatusFound)
	}
	store, err := kv.OpenMemory()
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	for _, mode := range []Mode{Live, Replay} {
		c := web.client(t, store, func(o *Options) { o.Mode = mode })
		for _, path := range []string{"plain", "coded", "moved"} {
			s, err := c.Stream(t.Context(), Request{URL: "http://feeds.example/" + path + ".json"})
			if err != nil {
				t.Fatalf("%s, %v: %v", path, mode, err)
			}
			got, err := io.ReadAll(s)
			if err != nil || string(got) != long {
				t.Errorf("%s, %v: %d bytes, %v; want %d", path, mode, len(got), err, len(long))
			}
			if path == "moved" && s.URL != "http://feeds.example/plain.json" {
				t.Errorf("moved to %s", s.URL)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestStreamFailures(t *testing.T) {
	web := newWeb(t)
	web.pages["feeds.example/large.json"] = func(rw http.ResponseWriter, _ *http.Request) { fmt.Fprint(rw, strings.Repeat("x", 3000)) }
	web.pages["feeds.example/bomb.json"] = func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(rw)
		fmt.Fprint(z, strings.Repeat("x", 300_000))
		z.Close()
	}
	web.pages["feeds.example/cut.json"] = func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Encoding", "gzip")
		var b strings.Builder
		z := gzip.NewWriter(&b)
		fmt.Fprint(z, strings.Repeat("abc", 100))
		z.Close()
		fmt.Fprint(rw, b.String()[:b.Len()-12])
	}
	store, err := kv.OpenMemory()
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	c := web.client(t, store, func(o *Options) { o.Limits.FeedBytes = 2000; o.Retries = -1 })
	for path, want := range map[string]string{"large": ReasonTooLarge, "bomb": ReasonTooLarge, "cut": ReasonTruncated, "none": ReasonGone} {
		s, err := c.Stream(t.Context(), Request{URL: "http://feeds.example/" + path + ".json"})
		var failed *Error
		if !errors.As(err, &failed) || failed.Reason != want {
			t.Errorf("%s: %v, %v; want %s", path, s, err, want)
		}
	}
}
