package fetch

import (
	"net/http"
	"testing"
	"time"
)

func TestDated(t *testing.T) {
	const text = "<p>The council of Eastvale met and raised the tolls of the harbor by a third, which is said here at some length.</p>"
	block := func(json string) string { return `<script type="application/ld+json">` + json + `</script>` }
	retrieved := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		address, head, body string
		header              http.Header
		want                Dating
	}{
		"nothing": {body: text},
		"an article of a graph, not the site or a comment": {
			head: block(`{"@graph":[{"@type":"WebPage","datePublished":"2019-01-01"},{"@type":["NewsArticle"],"datePublished":"2024-03-05T10:15:00+01:00","comment":{"@type":"Comment","datePublished":"2025-01-01"}}]}`),
			want: Dating{"2024-03-05T09:15:00Z", DateByJSONLD, "high"},
		},
		"a page that is no article": {head: block(`{"@type":"WebPage","datePublished":"2019-01-01"}`), want: Dating{"2019-01-01", DateByJSONLD, "high"}},
		"a broken block, then a meta": {
			head: block(`{"datePublished": "2019-01-01"`) + `<meta name="date" content="2020-02-02"><meta property="article:published_time" content="2020-01-31">`,
			want: Dating{"2020-01-31", DateByMeta, "high"},
		},
		"a meta that holds no date": {head: `<meta name="pubdate" content="soon">`, body: text},
		"a marked time":             {body: `<time datetime="2018-01-01">x</time><time itemprop="datePublished" datetime="2018-04-05">5 April</time>`, want: Dating{"2018-04-05", DateByTime, "medium"}},
		"the one day of the article": {
			body: `<article><time datetime="2018-04-05T08:00:00Z">5 April</time>` + text + `<time>April 5, 2018</time></article><aside><time datetime="2020-01-01">x</time></aside>`,
			want: Dating{"2018-04-05", DateByTime, "medium"},
		},
		"two days of the article are none": {body: `<article><time datetime="2018-04-05">a</time>` + text + `<time datetime="2019-04-05">b</time></article>`},
		"the address":                      {address: "https://news.example/2024/oct/29/tolls/", want: Dating{"2024-10-29", DateByURL, "medium"}},
		"the address in digits":            {address: "https://news.example/world/tolls-2024-10-09.html", want: Dating{"2024-10-09", DateByURL, "medium"}},
		"a month alone":                    {address: "https://news.example/2024/10/tolls/"},
		"a day that is none":               {address: "https://news.example/2024/13/45/tolls/"},
		"the server":                       {header: http.Header{"Last-Modified": {"Tue, 05 Mar 2024 09:15:00 GMT"}}, want: Dating{"2024-03-05", DateByHTTP, "low"}},
		"a server that writes pages anew":  {header: http.Header{"Last-Modified": {"Fri, 01 May 2026 11:59:00 GMT"}}},
		"the zero value of a program":      {head: `<meta name="date" content="1970-01-01">`},
	} {
		if c.header == nil {
			c.header = http.Header{}
		}
		if c.address == "" {
			c.address = "https://news.example/tolls"
		}
		c.header.Set("Content-Type", "text/html; charset=utf-8")
		p, err := NewPage(c.address, c.header, []byte("<!doctype html><head><title>Tolls</title>"+c.head+"</head><body>"+c.body), retrieved)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Dated(); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	plain, err := NewPage("https://port.example/2024/01/02/notice.txt", http.Header{"Content-Type": {"text/plain"}}, []byte("<meta name=date content=2011-01-01> some words"), retrieved)
	if err != nil {
		t.Fatal(err)
	}
	if got := plain.Dated(); got != (Dating{"2024-01-02", DateByURL, "medium"}) {
		t.Errorf("plain text: %+v", got)
	}
	file := pdfPageOf(t, "application/pdf", pdfOf("", lines("Some words of a page that is whole.")))
	if got := file.Dated(); got != (Dating{"2024-03-05T09:15:00Z", DateByFile, "medium"}) {
		t.Errorf("a PDF: %+v", got)
	}
}
