package planner

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"assay/fetch"
)

// Replies of a running SearXNG, whose one engine answered with invented pages, found nothing, throttled,
// and was suspended for that.
func TestRecordedSearXNG(t *testing.T) {
	for name, want := range map[string]struct {
		n      int
		reason string
		says   string
	}{
		"page.json":      {n: 3},
		"nothing.json":   {},
		"throttled.json": {reason: ReasonEngines, says: "harbor: too many requests"},
		"suspended.json": {reason: ReasonEngines, says: "harbor: Suspended: too many requests"},
	} {
		body, err := os.ReadFile(filepath.Join("testdata", "searxng", name))
		if err != nil {
			t.Fatal(err)
		}
		o := newOutside(t, func(rw http.ResponseWriter, r *http.Request) {
			if name == "page.json" && r.URL.Query().Get("pageno") != "1" {
				reply(rw, 200, searxPage(""))
				return
			}
			reply(rw, 200, string(body))
		})
		got, err := searxng.Find(t.Context(), o.everything(fetch.Live), Query{Text: "harbor tolls", K: 10})
		if want.reason != "" {
			if e := wantError(t, err, want.reason); !strings.Contains(e.Detail, want.says) || e.FailureClass() != "transient" {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil || len(got) != want.n {
			t.Fatalf("%s: %+v, %v", name, got, err)
		}
		if want.n > 0 {
			first := Result{URL: "https://www.reddit.com/r/harborville/comments/p100/tolls/", Title: "Toll 0", Text: "harbor tolls", Published: "2026-01-05"}
			if got[0] != first {
				t.Errorf("first %+v, want %+v", got[0], first)
			}
		}
	}
}
