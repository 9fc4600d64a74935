package assay

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"assay/corpus"
)

// Whatever bytes a search result turns out to be, they are that result's concern: a search reads on.
func TestPagesThatNobodyReads(t *testing.T) {
	f := newFolder(t, t.TempDir())
	pages := filepath.Join(t.TempDir(), "pages")
	for name, want := range map[string]struct{ body, reason string }{
		"deep.html":  {"<html><body>" + strings.Repeat("<div>", 2000) + "toll", "page_broken"},
		"photo.png":  {"\x89PNG\r\n\x1a\n" + strings.Repeat("\x00", 100), "no_page"},
		"data.json":  {"[[[[", "no_page"},
		"report.pdf": {"%PDF-1.7\nnothing", "pdf_broken"},
	} {
		folder{t, pages}.write(name, want.body)
		f.with(func(w *Workspace) error {
			if _, err := w.Import(t.Context(), "dir", pages, ImportOptions{Base: "https://a.example/"}); err != nil {
				return err
			}
			address := "https://a.example/" + name
			_, err := w.readDocument(t.Context(), corpus.DocumentID(address), address)
			var excluded *corpus.ExcludedError
			if !errors.As(err, &excluded) || excluded.Reason != want.reason {
				t.Errorf("%s: %v, want an exclusion for %s", name, err, want.reason)
			}
			return nil
		})
	}
}
