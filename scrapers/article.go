package scrapers

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"assay/corpus"
	"assay/fetch"

	"github.com/PuerkitoBio/goquery"
)

// An articleForm says where the pages of one site differ from what pages of news usually are. The zero
// value reads the usual ones.
type articleForm struct {
	Title string // selector of the headline, where h1 is something else; ogTitle takes the page's own meta
	Body  string // selector of the paragraphs; without it, or where it finds nothing, the article as readers see it
	Drop  *regexp.Regexp
}

// articleFields are what readArticle finds on pages; a page without a star's is no article.
var articleFields = []string{"title*", "text*", "date", "authors", "tags"}

// ogTitle is an articleForm.Title for sites whose h1 is the name of the site.
const ogTitle = "og:title"

// shortArticle is the number of characters below which what readers see is no article but what a page
// has around one.
const shortArticle = 200

// readArticle returns a reader of item pages of one form: one document a page. Dates are told by the
// markup for machines where there is any, because what people see is often relative ("4 hours ago").
func readArticle(form articleForm) func(*fetch.Page) ([]corpus.Document, error) {
	return func(p *fetch.Page) ([]corpus.Document, error) {
		root, err := p.Doc()
		if err != nil {
			return nil, fmt.Errorf("read an article: %w", err)
		}
		doc := goquery.NewDocumentFromNode(root)
		found, err := p.Article()
		if err != nil {
			return nil, err
		}
		m := newArticleMarkup(doc)
		address, err := p.Address()
		if err != nil {
			return nil, fmt.Errorf("read an article: %w", err)
		}
		d := corpus.Document{
			ID: corpus.DocumentID(address), Kind: corpus.KindPage, URL: address, Source: corpus.SourceName(address),
			Title: form.title(doc, m, found.Title), Text: form.text(doc), RetrievedAt: p.Retrieved.UTC().Format(time.RFC3339),
			Authors: m.authors(found.Byline), Tags: m.tags(), BodyStatus: corpus.BodyFull,
		}
		if d.Text == "" && utf8.RuneCountInString(found.Text) >= shortArticle {
			d.Text = found.Text
		}
		if d.Title == "" || d.Text == "" {
			return nil, markupError("read", p.Final, "a headline with a text below it", doc)
		}
		if found.Partial {
			d.BodyStatus = corpus.BodyPartial
		}
		return []corpus.Document{dated(d, m.dates()).Seal()}, nil
	}
}

// dated gives a document the first of the printed dates that is one. A time whose zone is unknown is
// kept as its day, and a document whose dates are all unreadable says so: it is not left out for that.
func dated(d corpus.Document, printed []string) corpus.Document {
	for _, s := range printed {
		if date, err := corpus.ReadDate(s); err == nil {
			d.PublishedAt = date.Value
			if date.ZoneUnknown {
				d.Flags = corpus.AddFlag(d.Flags, corpus.FlagZoneUnknown)
			}
			return d
		}
	}
	if len(printed) > 0 {
		d.Flags = corpus.AddFlag(d.Flags, corpus.FlagDateUnread)
	}
	return d
}

func (f articleForm) title(doc *goquery.Document, m articleMarkup, found string) string {
	if f.Title != ogTitle {
		selector := f.Title
		if selector == "" {
			selector = "h1"
		}
		if t := first(texts(doc.Find(selector))); t != "" {
			return t
		}
	}
	if t := first(m.meta("og:title")); t != "" {
		return t
	}
	return found
}

// text joins the paragraphs that the form selects; those of teasers inside links are none.
func (f articleForm) text(doc *goquery.Document) string {
	if f.Body == "" {
		return ""
	}
	paragraphs := texts(doc.Find(f.Body).FilterFunction(func(_ int, s *goquery.Selection) bool {
		return s.Closest("figure, figcaption, aside, nav, footer").Length() == 0
	}))
	paragraphs = slices.DeleteFunc(paragraphs, func(s string) bool { return f.Drop != nil && f.Drop.MatchString(s) })
	return strings.Join(paragraphs, "\n\n")
}

// articleMarkup is what a page says about its article in markup for machines.
type articleMarkup struct {
	doc  *goquery.Document
	node node // the JSON-LD node of the article; nil without one
	m    markup
}

// newArticleMarkup finds the JSON-LD node of the article: the first whose type is a sort of article.
// A script that is no JSON and cannot be mended is passed over; the meta elements still speak.
func newArticleMarkup(doc *goquery.Document) articleMarkup {
	a := articleMarkup{doc: doc, m: markup{ids: map[string]node{}}}
	var all []any
	doc.Find(`script[type^="application/ld+json"]`).Each(func(_ int, s *goquery.Selection) {
		if values, _, err := readMarkup(s.Text()); err == nil {
			all = append(all, values...)
		}
	})
	a.m.index(all)
	a.node = articleNode(all)
	return a
}

func articleNode(v any) node {
	for _, e := range listed(v) {
		n, ok := e.(node)
		if !ok {
			if inner, ok := e.([]any); ok {
				if found := articleNode(inner); found != nil {
					return found
				}
			}
			continue
		}
		for _, t := range types(n) {
			if strings.HasSuffix(t, "Article") || strings.HasSuffix(t, "BlogPosting") || t == "Report" || t == "ReportageNewsArticle" {
				return n
			}
		}
		for _, key := range []string{"@graph", "mainEntity"} {
			if found := articleNode(n[key]); found != nil {
				return found
			}
		}
	}
	return nil
}

// meta returns what the meta elements of a name say, in the order of the page. Some archives wrote
// value where content is due.
func (a articleMarkup) meta(names ...string) []string {
	var out []string
	for _, name := range names {
		a.doc.Find("meta").Each(func(_ int, s *goquery.Selection) {
			for _, key := range []string{"property", "name", "itemprop"} {
				if !strings.EqualFold(s.AttrOr(key, ""), name) {
					continue
				}
				if t := corpus.Space(s.AttrOr("content", s.AttrOr("value", ""))); t != "" && !slices.Contains(out, t) {
					out = append(out, t)
				}
			}
		})
	}
	return out
}

// dates are the dates of publication that a page prints for machines, the most telling first.
func (a articleMarkup) dates() []string {
	var out []string
	if a.node != nil {
		out = append(out, scalars(get(a.node, "datePublished"))...)
	}
	out = append(out, a.meta("article:published_time", "og:article:published_time", "article:published", "datePublished",
		"parsely-pub-date", "sailthru.date", "DC.date.created", "DC.date.issued", "dcterms.created", "date", "REVISION_DATE", "published_at")...)
	a.doc.Find(`[itemprop="datePublished"], time[datetime]`).Each(func(_ int, s *goquery.Selection) {
		for _, v := range []string{s.AttrOr("datetime", ""), s.AttrOr("content", ""), text(s.Filter(`[itemprop="datePublished"]`))} {
			// A length of time, as of a recording, is no date.
			if v = corpus.Space(v); v != "" && !strings.HasPrefix(v, "P") {
				out = append(out, v)
			}
		}
	})
	return slices.DeleteFunc(out, func(s string) bool { return corpus.Space(s) == "" })
}

func (a articleMarkup) authors(byline string) []string {
	var out []string
	if a.node != nil {
		out = a.m.names(get(a.node, "author", "creator"))
	}
	if len(out) == 0 {
		for _, s := range a.meta("author", "article:author", "og:article:author", "sailthru.author", "branch:deeplink:authorName1") {
			if !strings.Contains(s, "://") {
				out = append(out, splitNames(s)...)
			}
		}
	}
	if len(out) == 0 {
		out = texts(a.doc.Find(`[rel="author"], [itemprop="author"] [itemprop="name"]`))
	}
	if len(out) == 0 && byline != "" {
		out = splitNames(byline)
	}
	return distinct(out)
}

var (
	bylineStart = regexp.MustCompile(`(?i)^by:?\s+`)
	nameBreak   = regexp.MustCompile(`\s*(?:,|;|\band\b|&)\s*`)
)

func splitNames(s string) []string {
	return nameBreak.Split(bylineStart.ReplaceAllString(corpus.Space(s), ""), -1)
}

// tags are the sections and keywords of the page, sections first.
func (a articleMarkup) tags() []string {
	out := a.meta("article:section", "og:article:section")
	if a.node != nil {
		out = append(out, scalars(get(a.node, "articleSection"))...)
	}
	out = append(out, a.meta("article:tag")...)
	for _, s := range append(a.meta("news_keywords", "sailthru.tags"), scalars(get(a.node, "keywords"))...) {
		out = append(out, strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ';' })...)
	}
	return distinct(mapped(out, plain))
}
