package assay

import (
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"assay/annotate"
	"assay/corpus"
	"assay/fetch"
	"assay/scrapers"
)

// TestRealExtraction reads the captured pages and replies that a newsroom or an institution recognises and
// lets the builtin model propose claims: every span verifies, nothing is about somebody unnamed, and
// every candidate has the document's own names and numbers.
func TestRealExtraction(t *testing.T) {
	dir := os.Getenv("ASSAY_REAL")
	if dir == "" {
		t.Skip("skipped: ASSAY_REAL is not set")
	}
	readers := func(address string) *scrapers.Site {
		for i, s := range scrapers.All {
			if s.Read != nil && s.Recognise("", address) {
				return &scrapers.All[i]
			}
		}
		return nil
	}
	pages, documents, candidates, spoken := 0, 0, 0, 0
	refused, by := map[string]int{}, map[string]int{}
	capturedPages(t, dir, func(address string) bool { return readers(address) != nil }, func(address string, body []byte) {
		p, err := fetch.NewPage(address, http.Header{"Content-Type": {"text/html; charset=utf-8"}}, body, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		site := readers(address)
		docs, err := site.Read(p)
		if err != nil {
			if site.Name != "fda" || !strings.Contains(string(body), `"error"`) {
				t.Errorf("read %s: %v", address, err)
			}
			return
		}
		pages++
		for _, d := range docs {
			documents++
			x, err := annotate.Claims.Extract(t.Context(), builtinModel{}, annotate.ExtractSettings{}, d)
			if err != nil {
				t.Fatalf("extract from %s: %v", d.URL, err)
			}
			for _, c := range x.Candidates {
				candidates++
				by[site.Name]++
				if c.Speaker != "" {
					spoken++
				}
				if said, ok := c.Span.Of(d.Text); !ok || said != c.Quote || c.ID != corpus.CandidateID(d.ID, c.Text, c.Speaker) {
					t.Errorf("%s: the span %v of %q covers %q, the quote is %q", d.URL, c.Span, c.Text, said, c.Quote)
				}
			}
			for _, r := range x.Refused {
				refused[r.Reason]++
			}
		}
	})
	t.Logf("%d pages, %d documents: %d candidates (%d with a speaker), refused %v; by site %v", pages, documents, candidates, spoken, refused, by)
	if candidates < 100 {
		t.Errorf("%d candidates, want at least 100", candidates)
	}
}
