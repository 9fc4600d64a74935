//go:build unix

package fetch

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"codeberg.org/readeck/go-readability/v2"
	"github.com/PuerkitoBio/goquery"
	"golang.org/x/net/html"
	"golang.org/x/sys/unix"
)

// articlePages makes news pages of about 65 KB with the parts that such pages have: scripts, menus, a
// notice, an article, teasers, comments and a footer.
func articlePages(n int) [][]byte {
	rng := rand.New(rand.NewPCG(1, 1))
	lexicon := make([]string, 4000)
	for i := range lexicon {
		w := make([]byte, 2+rng.IntN(9))
		for j := range w {
			w[j] = 'a' + byte(rng.IntN(26))
		}
		lexicon[i] = string(w)
	}
	say := func(n int) string {
		w := make([]string, n)
		for i := range w {
			w[i] = lexicon[min(rng.IntN(len(lexicon)), rng.IntN(len(lexicon)))]
		}
		return strings.Join(w, " ")
	}
	pages := make([][]byte, n)
	for i := range pages {
		var b bytes.Buffer
		fmt.Fprintf(&b, "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>%s - The Bench Times</title>\n"+
			"<meta property=\"og:title\" content=\"Story %d\"><meta name=\"author\" content=\"Ada Quill\"><meta property=\"article:published_time\" content=\"2026-02-03T18:30:00Z\">\n", say(6), i)
		for range 6 {
			fmt.Fprintf(&b, "<script>window.dataLayer=window.dataLayer||[];dataLayer.push({\"page\":\"%s\"})</script>\n", say(300))
		}
		b.WriteString("</head><body><nav><ul>\n")
		for range 60 {
			fmt.Fprintf(&b, "<li class=\"menu__item\"><a class=\"menu__link\" href=\"/%s/\">%s</a></li>\n", say(1), say(2))
		}
		b.WriteString("</ul></nav><div class=\"banner\"><p>We use cookies to make this site work.</p><button>Accept all</button></div>\n<main><article><header><h1 class=\"story__title\">Story</h1><p class=\"story__lead\">" + say(25) + ".</p></header>\n")
		for range 35 {
			fmt.Fprintf(&b, "<p>%s, <a href=\"/%s\">%s</a> %s. %s.</p>\n", say(25), say(1), say(3), say(20), say(15))
		}
		b.WriteString("</article></main><aside><ul>\n")
		for b.Len() < 58_000 {
			fmt.Fprintf(&b, "<li class=\"teaser\"><a href=\"/%s/\" class=\"teaser__link\"><span class=\"teaser__title\">%s</span></a><div class=\"teaser__meta\">By <span>%s</span></div></li>\n", say(1), say(8), say(2))
		}
		b.WriteString("</ul></aside><section class=\"comments\">\n")
		for range 25 {
			fmt.Fprintf(&b, "<div class=\"comment\"><span class=\"comment__by\">%s</span><p>%s</p></div>\n", say(1), say(18))
		}
		b.WriteString("</section><footer><p>All rights reserved</p></footer></body></html>\n")
		pages[i] = b.Bytes()
	}
	return pages
}

// BenchmarkPage is bar 4: selectors and main text of a page against go-readability alone on the same
// bytes, one goroutine each, in pairs of which the median counts.
//
//	parses/page   how often html.Parse runs (bar: 1)
//	docs-x-raw    our pages a CPU second, of the extractor's by its own Parse (bar: at least 0.9)
//	docs-x-least  of html.Parse with the extractor behind it, which looks for no charset, keeps no tree
//	              and takes no notice of notices
func BenchmarkPage(b *testing.B) {
	n, pairs := 200, 5
	if testing.Short() {
		n, pairs = 20, 1
	}
	pages := articlePages(n)
	parses := 0
	var rates, least []float64
	for b.Loop() {
		for range pairs {
			raw := cpuOf(b, func() {
				for _, body := range pages {
					extractAlone(b, body)
				}
			})
			bare := cpuOf(b, func() {
				for _, body := range pages {
					extractBare(b, body)
				}
			})
			ours := cpuOf(b, func() {
				for _, body := range pages {
					readPage(b, body, &parses)
				}
			})
			rates, least = append(rates, raw/ours), append(least, bare/ours)
		}
	}
	slices.Sort(rates)
	slices.Sort(least)
	b.ReportMetric(float64(parses)/float64(len(rates)*n), "parses/page")
	b.ReportMetric(rates[len(rates)/2], "docs-x-raw")
	b.ReportMetric(least[len(least)/2], "docs-x-least")
	b.ReportMetric(0, "ns/op")
}

// readPage does what a build does with a page that is a claim's and a document too.
func readPage(b *testing.B, body []byte, parses *int) {
	p, err := newPage(Exchange{Method: http.MethodGet, URL: "https://news.example/story", At: time.Unix(0, 0), Status: http.StatusOK, Header: htmlType, Class: ClassOK}, body, nil)
	if err != nil {
		b.Fatal(err)
	}
	p.parse = func(r io.Reader) (*html.Node, error) { *parses++; return html.Parse(r) }
	node, err := p.Doc()
	if err != nil {
		b.Fatal(err)
	}
	doc := goquery.NewDocumentFromNode(node)
	for _, selector := range []string{"title", "h1.story__title", ".story__lead", "main article p", ".teaser__link", "footer p"} {
		if doc.Find(selector).First().Text() == "" {
			b.Fatalf("%s finds nothing", selector)
		}
	}
	if a, err := p.Article(); err != nil || len(a.Text) < 5000 {
		b.Fatalf("article of %d bytes, %v", len(a.Text), err)
	}
}

var storyURL = &url.URL{Scheme: "https", Host: "news.example", Path: "/story"}

func extractAlone(b *testing.B, body []byte) {
	parser := readability.NewParser()
	a, err := parser.Parse(bytes.NewReader(body), storyURL)
	if err != nil {
		b.Fatal(err)
	}
	renderArticle(b, a)
}

func extractBare(b *testing.B, body []byte) {
	doc, err := html.Parse(bytes.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	parser := readability.NewParser()
	a, err := parser.ParseAndMutate(doc, storyURL)
	if err != nil {
		b.Fatal(err)
	}
	renderArticle(b, a)
}

func renderArticle(b *testing.B, a readability.Article) {
	var text strings.Builder
	if err := a.RenderText(&text); err != nil || text.Len() < 5000 {
		b.Fatalf("article of %d bytes, %v", text.Len(), err)
	}
}

// cpuOf is the CPU time of do in seconds, all threads of the process counted.
func cpuOf(b *testing.B, do func()) float64 {
	b.Helper()
	now := func() float64 {
		var u unix.Rusage
		if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
	}
	start := now()
	do()
	return now() - start
}
