package fetch

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"codeberg.org/readeck/go-readability/v2"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"

	"assay/corpus"
)

const bridgePage = `<!doctype html><html lang="en"><head><title>Bridge to be rebuilt - Harbour Times</title>
<meta property="og:title" content="Bridge to be rebuilt"><meta property="og:site_name" content="Harbour Times">
<meta name="author" content="Ada Quill"><meta property="article:published_time" content="2026-02-03T18:30:00+02:00"></head>
<body><nav><a href="/">Home</a> <a href="/sport">Sport</a></nav><article><h1>Bridge to be rebuilt</h1>
<p>The council of the harbour town voted on Tuesday, by a narrow margin, to rebuild its old bridge before winter comes.</p>
<p>Boats could no longer pass below it at high water, the master of the harbour said, and three of its nine arches had moved.</p>
<p>The work is to cost four million and to last, if the river stays low, until the end of October at the latest.</p></article>
<footer>All rights reserved</footer></body></html>`

func TestPage(t *testing.T) {
	at := time.Date(2026, 2, 4, 10, 0, 0, 0, time.UTC)
	p, err := NewPage("HTTPS://News.example:443/a/../bridge#top", http.Header{"Content-Type": {"text/html"}, "Content-Encoding": {"gzip"}}, encode(t, "gzip", []byte(bridgePage)), at)
	if err != nil {
		t.Fatal(err)
	}
	if p.URL != "https://news.example/bridge" || p.Final != p.URL || len(p.Addresses) != 1 || p.Status != 200 || !p.Retrieved.Equal(at) {
		t.Errorf("page = %+v", p)
	}
	if string(p.Bytes()) != bridgePage || p.Text() != bridgePage || p.Sum() != sha256.Sum256([]byte(bridgePage)) {
		t.Errorf("bytes, text or sum are not those of the decoded body")
	}
	a, err := p.Article()
	if err != nil {
		t.Fatal(err)
	}
	paragraphs := strings.Split(a.Text, "\n\n")
	if len(paragraphs) != 3 || !strings.HasPrefix(paragraphs[0], "The council") || !strings.HasSuffix(a.Text, "at the latest.") {
		t.Errorf("article text = %q", a.Text)
	}
	a.Text = ""
	want := Article{Title: "Bridge to be rebuilt", Byline: "Ada Quill", Published: "2026-02-03T16:30:00Z", SiteName: "Harbour Times", Lang: "en"}
	if diff := cmp.Diff(want, a); diff != "" {
		t.Errorf("article (-want +got):\n%s", diff)
	}
}

// However many read a page, it is parsed once, and nobody sees another's changes.
func TestPageParsedOnce(t *testing.T) {
	p, err := NewPage("https://news.example/bridge", htmlType, []byte(bridgePage), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	parses := 0
	p.parse = func(r io.Reader) (*html.Node, error) { parses++; return html.Parse(r) }
	before, err := p.Doc()
	if err != nil {
		t.Fatal(err)
	}
	var was strings.Builder
	if err := html.Render(&was, before); err != nil {
		t.Fatal(err)
	}
	var readers sync.WaitGroup
	for range 8 {
		readers.Go(func() {
			doc, err := p.Doc()
			if err != nil || doc != before {
				t.Errorf("Doc gave another tree, %v", err)
			}
			if a, err := p.Article(); err != nil || a.Title == "" || p.Text() == "" {
				t.Errorf("Article = %+v, %v", a, err)
			}
		})
	}
	readers.Wait()
	var is strings.Builder
	if err := html.Render(&is, before); err != nil {
		t.Fatal(err)
	}
	if parses != 1 || is.String() != was.String() {
		t.Errorf("parsed %d times, want once; the tree changed: %v", parses, is.String() != was.String())
	}
}

func TestPageErrors(t *testing.T) {
	if _, err := NewPage("", htmlType, nil, time.Time{}); err == nil {
		t.Error("a page without an address: no error")
	}
	_, err := NewPage("https://a.example/", header("Content-Encoding", "gzip"), readAllOf(t, bomb(t, 64)), time.Time{})
	if e := (*Error)(nil); !errors.As(err, &e) || e.Reason != ReasonTooLarge {
		t.Errorf("a bomb: %v, want %s", err, ReasonTooLarge)
	}
	broken := errors.New("no memory")
	p, err := NewPage("https://a.example/x", htmlType, []byte("<p>x"), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	p.parse = func(io.Reader) (*html.Node, error) { return nil, broken }
	var excluded *corpus.ExcludedError
	if _, err := p.Article(); !errors.As(err, &excluded) || excluded.Reason != ReasonPageBroken || !strings.Contains(err.Error(), "https://a.example/x") {
		t.Errorf("Article of a page that does not parse: %v", err)
	}
	p, err = NewPage("https://a.example/deep", htmlType, []byte(strings.Repeat("<div>", 5000)), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Article(); !errors.As(err, &excluded) || excluded.Reason != ReasonPageBroken || !strings.Contains(err.Error(), "https://a.example/deep") {
		t.Errorf("5000 open elements: %v, want an error rather than a deep recursion", err)
	}
}

func TestArticle(t *testing.T) {
	story := "<article><h1>Ferry</h1><p>" + words(60) + "</p><p>" + words(60) + "</p></article>"
	for _, c := range []struct {
		name, kind, page string
		want             Article
		text             string
	}{
		{"date without a time", "text/html", `<title>Ferry</title><meta property="article:published_time" content="2026-05-06">` + story, Article{Title: "Ferry", Published: "2026-05-06"}, "council"},
		{"date of another kind", "text/html", `<title>Ferry</title><meta property="article:published_time" content="no date">` + story, Article{Title: "Ferry"}, "council"},
		{"behind a paywall", "text/html", `<title>Ferry</title><script type="application/ld+json">{"@type":"NewsArticle","isAccessibleForFree": false}</script>` + story, Article{Title: "Ferry", Partial: true}, "council"},
		{"behind a paywall, in capitals and quotes", "text/html", `<title>Ferry</title><script type="application/ld+json">{"isAccessibleForFree":"False"}</script>` + story, Article{Title: "Ferry", Partial: true}, "council"},
		{"free", "text/html", `<title>Ferry</title><script type="application/ld+json">{"isAccessibleForFree":"True"}</script>` + story, Article{Title: "Ferry"}, "council"},
		{"locked by a meta element", "text/html", `<title>Ferry</title><meta property="article:content_tier" content="locked">` + story, Article{Title: "Ferry", Partial: true}, "council"},
		{"no article", "text/html", `<title>Ferry</title>`, Article{Title: "Ferry"}, ""},
		{"page without a type", "", `<!doctype html><title>Ferry</title>` + story, Article{Title: "Ferry"}, "council"},
		{"plain text", "text/plain; charset=utf-8", "Ferry  sails\r\n\r\n\r\n again. <p>", Article{}, "Ferry sails\n\nagain. <p>"},
	} {
		p, err := NewPage("https://news.example/ferry", http.Header{"Content-Type": {c.kind}}, []byte(c.page), time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		a, err := p.Article()
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if !strings.Contains(a.Text, c.text) {
			t.Errorf("%s: text %q does not contain %q", c.name, a.Text, c.text)
		}
		a.Text = ""
		if diff := cmp.Diff(c.want, a); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
	for _, kind := range []string{"application/pdf", "image/png", "application/json"} {
		p, err := NewPage("https://news.example/x", http.Header{"Content-Type": {kind}}, []byte("%PDF {}"), time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		if a, err := p.Article(); err == nil {
			t.Errorf("%s: article %+v, want an error", kind, a)
		}
	}
	cut, err := newPage(Exchange{URL: "https://news.example/x", Header: htmlType, Truncated: true}, []byte(story), nil)
	if err != nil {
		t.Fatal(err)
	}
	if a, err := cut.Article(); err != nil || !a.Partial {
		t.Errorf("a body that was cut: %+v, %v; want a partial article", a, err)
	}
}

// Captured articles give the text that their collectors saw, and only those before a paywall, or with
// their owner's word for it, are partial.
func TestArticleCaptures(t *testing.T) {
	dir := realDir(t)
	checked := 0
	for _, r := range index(t, dir, "") {
		if !strings.HasSuffix(strings.TrimSuffix(r.file, ".gz"), ".html") || r.kind == "encoding" {
			continue
		}
		address := r.url
		if !strings.HasPrefix(address, "http") {
			address = "https://capture.example/" + filepath.Base(r.file)
		}
		p, err := NewPage(address, http.Header{"Content-Type": {"text/html"}}, r.body(t, dir), time.Time{})
		if err != nil {
			t.Fatalf("%s: %v", r.file, err)
		}
		a, err := p.Article()
		if err != nil {
			t.Errorf("%s: %v", r.file, err)
			continue
		}
		got := strings.Join(strings.Fields(a.Text), " ")
		for _, field := range []string{"body_starts", "body_contains"} {
			if want := strings.Join(strings.Fields(r.text(field)), " "); !strings.Contains(got, want) {
				t.Errorf("%s: the article does not contain %q", r.file, want)
			} else if want != "" {
				checked++
			}
		}
		if free := fmt.Sprint(r.want["accessible_for_free"]); free == "false" && !a.Partial {
			t.Errorf("%s: not partial", r.file)
		}
	}
	t.Logf("%d sentences found", checked)
}

// The whole way from bytes to an article, against the extractor alone with a parse of its own.
func BenchmarkArticle(b *testing.B) {
	page := []byte(strings.Replace(bridgePage, "</article>", strings.Repeat("<p>"+words(80)+"</p><div class=\"box\"><a href=\"/x\">more</a></div>", 80)+"</article>", 1))
	b.Run("page", func(b *testing.B) {
		b.SetBytes(int64(len(page)))
		for b.Loop() {
			p, err := NewPage("https://news.example/bridge", htmlType, page, time.Time{})
			if err != nil {
				b.Fatal(err)
			}
			if _, err := p.Article(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("extractor", func(b *testing.B) {
		base, err := url.Parse("https://news.example/bridge")
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(len(page)))
		for b.Loop() {
			parser := readability.NewParser()
			found, err := parser.Parse(bytes.NewReader(page), base)
			if err != nil {
				b.Fatal(err)
			}
			if err := found.RenderText(io.Discard); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func TestPageWall(t *testing.T) {
	for body, want := range map[string]string{
		"<title>Just a moment...</title><p>Checking your browser before accessing a.example</p><script>window._cf_chl_opt={}</script>": "cloudflare-js",
		"<title>Weir</title><p>The weir of Lower Wend leaks, says the harbour office, and will be mended in June.</p>":                 "",
	} {
		p, err := NewPage("https://a.example/", http.Header{"Content-Type": {"text/html"}}, []byte(body), time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Wall(); got != want {
			t.Errorf("Wall of %q = %q, want %q", body, got, want)
		}
	}
}
