package scrapers

import (
	"slices"
	"strings"
	"testing"

	"assay/corpus"
)

// articleForms are the forms that captured pages of news and institutions are read with, by kind.
var articleForms = map[string]articleForm{
	"bbc-article": bbcForm, "ap-article": apForm, "reuters-article": reutersNewsForm, "billboard-article": billboardForm, "people-article": peopleForm,
	"nbc-article": nbcForm, "npr-article": nprForm, "npr-factcheck": nprForm, "cdc-html": cdcForm, "nasa-html": nasaForm,
	"nature-article": {}, "tmz-article": {}, "deadline-article": {}, "indiewire-article": {Body: ".entry-content > p"},
	"epa-html": {Title: "h1.page-title, main h1"}, "clinicaltrials-html": {Title: "h1.tr-h1", Body: ".tr-indent1 p, .tr-indent2, .ct-body3, p"}, "whitehouse-html": {},
}

func TestRealArticles(t *testing.T) {
	dir := realFolder(t)
	y := &tally{right: map[string]int{}, total: map[string]int{}}
	pages := 0
	for kind, form := range articleForms {
		for _, c := range captures(t, dir, kind) {
			if c.url == "" || strings.HasPrefix(c.url, "/") {
				c.url = "https://example.org" + c.url
			}
			pages++
			docs, err := readArticle(form)(realPage(t, c.url, c.body))
			if err != nil || len(docs) != 1 {
				t.Errorf("%s: %d documents, %v", c.file, len(docs), err)
				continue
			}
			d := docs[0]
			body := corpus.Space(d.Text)
			for field, got := range map[string]string{"title": d.Title, "author": strings.Join(d.Authors, ", "), "date": d.PublishedAt} {
				want, ok := c.str(field)
				if !ok {
					continue
				}
				if field == "date" && len(got) > 10 {
					got = got[:10]
				}
				if field == "author" && slices.Contains(d.Authors, want) {
					got = want
				}
				if c.kind == "nasa-html" {
					want = strings.ReplaceAll(want, " !", "!") // the index has a blank where an element ends
				}
				y.check(field, c.file, got, want)
			}
			if want, ok := c.str("body_contains"); ok {
				got := body
				if strings.Contains(body, corpus.Space(want)) {
					got = want
				}
				y.check("body_contains", c.file, got[:min(len(got), 300)], want)
			}
			if want, ok := c.str("body_starts"); ok {
				y.check("body_starts", c.file, body[:min(len(body), len(want))], want)
			}
			if len(body) < 400 {
				t.Logf("%s: only %d bytes of text: %q", c.file, len(body), body)
			}
		}
	}
	for _, s := range y.short {
		t.Error(s)
	}
	t.Logf("%d pages: %v of %v", pages, y.right, y.total)
}
