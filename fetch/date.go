package fetch

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/net/html"

	"assay/corpus"
)

// A Dating is when a page says that it was published, and how it says so. The zero value is a page whose
// date is not known: nothing is guessed.
type Dating struct {
	At         string // RFC 3339 in UTC, or a date where the page gives no time or no zone
	By         string // one of the DateBy constants
	Confidence string // one of the corpus.Confidence constants
}

// Where a page's date is from, in the order in which they are asked.
const (
	DateByJSONLD = "json_ld" // datePublished of the page's own schema.org block
	DateByMeta   = "meta"    // a meta element that names the date of publication
	DateByTime   = "time"    // a time element that is marked as the date, or the only day that the article names so
	DateByURL    = "url"     // year, month and day in the address
	DateByFile   = "file"    // what a PDF says of its making
	DateByHTTP   = "http"    // Last-Modified: the latest day on which it can have been written, if the server is right
)

// confidences say how far each source is believed: who writes markup means a date; who writes an address
// often does; a file may be printed anew, and a server answers with the day of its last deployment.
var confidences = map[string]string{
	DateByJSONLD: corpus.ConfidenceHigh, DateByMeta: corpus.ConfidenceHigh, DateByTime: corpus.ConfidenceMedium, DateByURL: corpus.ConfidenceMedium,
	DateByFile: corpus.ConfidenceMedium, DateByHTTP: corpus.ConfidenceLow,
}

// Dated returns when the page was published, by what it says itself.
func (p *Page) Dated() Dating {
	by := func(method, at string) (Dating, bool) {
		return Dating{At: at, By: method, Confidence: confidences[method]}, at != ""
	}
	kind := mediaType(p.Header.Get("Content-Type"))
	switch {
	case isPDF(kind, p.body):
		if a, err := p.Article(); err == nil {
			if d, ok := by(DateByFile, a.Published); ok {
				return d
			}
		}
	case readsAsPage(kind, p.body) && kind != "text/plain":
		if doc, err := p.Doc(); err == nil {
			for _, try := range []struct {
				method string
				read   func(*html.Node) string
			}{{DateByJSONLD, datedJSON}, {DateByMeta, datedMeta}, {DateByTime, datedTime}} {
				if d, ok := by(try.method, try.read(doc)); ok {
					return d
				}
			}
		}
	}
	if d, ok := by(DateByURL, datedURL(p.Final)); ok {
		return d
	}
	d, _ := by(DateByHTTP, datedHTTP(p.Header, p.Retrieved))
	if d.At == "" {
		return Dating{}
	}
	return d
}

// publishedOn reads a printed date; "" for none, and for a day that the zero value of a program gives.
func publishedOn(printed string) string {
	d, err := corpus.ReadDate(printed)
	if err != nil || d.Day < "1990" {
		return ""
	}
	return d.Value
}

// datedJSON is the datePublished of a page's own item: of its first article, else of its first block. Dates
// of comments and of other articles stand deeper and are not read.
func datedJSON(doc *html.Node) string {
	var article, page string
	for n := range doc.Descendants() {
		if n.Type != html.ElementNode || n.Data != "script" || n.FirstChild == nil || !strings.EqualFold(mediaType(nodeAttr(n, "type")), "application/ld+json") {
			continue
		}
		var block any
		if json.Unmarshal([]byte(n.FirstChild.Data), &block) != nil {
			continue
		}
		for _, item := range jsonItems(block) {
			printed, _ := item["datePublished"].(string)
			at := publishedOn(printed)
			switch kind := jsonTypes(item); {
			case at == "":
			case strings.Contains(kind, "Article") || strings.Contains(kind, "Report") || strings.Contains(kind, "BlogPosting"):
				article = cmp.Or(article, at)
			default:
				page = cmp.Or(page, at)
			}
		}
	}
	return cmp.Or(article, page)
}

// jsonItems are the items of a block: itself, the parts of a list, and of a graph.
func jsonItems(block any) (out []map[string]any) {
	switch v := block.(type) {
	case []any:
		for _, e := range v[:min(len(v), 100)] {
			if m, ok := e.(map[string]any); ok {
				out = append(out, m)
			}
		}
	case map[string]any:
		out = append(out, v)
		if graph, ok := v["@graph"].([]any); ok {
			out = append(out, jsonItems(graph)...)
		}
	}
	return out
}

func jsonTypes(item map[string]any) string {
	switch v := item["@type"].(type) {
	case string:
		return v
	case []any:
		var out []string
		for _, e := range v {
			if s, ok := e.(string); ok {
				out = append(out, s)
			}
		}
		return strings.Join(out, " ")
	}
	return ""
}

// dateMetas are the names of meta elements that hold the date of publication, best first.
var dateMetas = []string{
	"article:published_time", "og:article:published_time", "og:published_time", "datepublished", "publication_date", "citation_publication_date",
	"citation_date", "publishdate", "publish-date", "pubdate", "parsely-pub-date", "sailthru.date", "dc.date.issued", "dcterms.issued", "dcterms.created",
	"dc.date", "date",
}

func datedMeta(doc *html.Node) string {
	found, place := "", len(dateMetas)
	for n := range doc.Descendants() {
		if n.Type != html.ElementNode || n.Data != "meta" {
			continue
		}
		for _, key := range []string{"property", "name", "itemprop"} {
			at := slices.Index(dateMetas, strings.ToLower(strings.TrimSpace(nodeAttr(n, key))))
			if at < 0 || at >= place {
				continue
			}
			if d := publishedOn(nodeAttr(n, "content")); d != "" {
				found, place = d, at
			}
		}
	}
	return found
}

// datedTime is the day of the time element that is marked as the page's date, or of all those inside the
// article, if they agree.
func datedTime(doc *html.Node) string {
	marked := ""
	inside := map[string]string{} // by day
	var walk func(n *html.Node, article bool)
	walk = func(n *html.Node, article bool) {
		for c := range n.ChildNodes() {
			if c.Type != html.ElementNode {
				continue
			}
			if c.Data == "time" || nodeAttr(c, "itemprop") == "datePublished" {
				text, _ := textOf(c, nil, 20)
				at := publishedOn(nodeAttr(c, "datetime"))
				if at == "" {
					at = publishedOn(nodeAttr(c, "content"))
				}
				if at == "" {
					at = publishedOn(text)
				}
				if at != "" {
					if marked == "" && (nodeAttr(c, "itemprop") == "datePublished" || hasAttr(c, "pubdate") || strings.Contains(strings.ToLower(nodeAttr(c, "class")), "publish")) {
						marked = at
					}
					if article {
						inside[at[:len(time.DateOnly)]] = at
					}
				}
			}
			walk(c, article || c.Data == "article" || c.Data == "main")
		}
	}
	walk(doc, false)
	if marked == "" && len(inside) == 1 {
		for _, at := range inside {
			return at
		}
	}
	return marked
}

func hasAttr(n *html.Node, key string) bool {
	return slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == key })
}

// dayInPath is a day in the path of an address: 2024/10/29, 2024/oct/29, 2024-10-29.
var dayInPath = regexp.MustCompile(`(?i)[/_-]((?:19|20)\d\d)([/-])(\d{1,2}|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)([/-])(\d{1,2})(?:[/_.-]|$)`)

func datedURL(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	m := dayInPath.FindStringSubmatch(u.Path)
	if m == nil || m[2] != m[4] {
		return ""
	}
	for _, layout := range []string{"2006/1/2", "2006/Jan/2"} {
		if t, err := time.Parse(layout, m[1]+"/"+m[3]+"/"+m[5]); err == nil {
			return publishedOn(t.Format(time.DateOnly))
		}
	}
	return ""
}

// datedHTTP is the day of Last-Modified. A server that makes pages anew says the time of the request, which
// tells nothing.
func datedHTTP(header http.Header, retrieved time.Time) string {
	t, err := http.ParseTime(header.Get("Last-Modified"))
	if err != nil || retrieved.IsZero() || retrieved.Sub(t) < 24*time.Hour {
		return ""
	}
	return publishedOn(t.UTC().Format(time.DateOnly))
}
