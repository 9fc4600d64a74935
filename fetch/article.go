package fetch

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"codeberg.org/readeck/go-readability/v2"
	"golang.org/x/net/html"

	"assay/corpus"
)

// An Article is the main text of a page with what the page says about it. A field is empty when the
// page does not say.
type Article struct {
	Title     string
	Text      string // paragraphs, with an empty line between them
	Byline    string
	Published string // RFC 3339 in UTC, or a date when the page gives no time
	SiteName  string
	Lang      string // as the page declares it
	Partial   bool   // a teaser before a paywall, or a body that was cut
}

// Reasons why an answer that is no PDF gives no text.
const (
	ReasonNoPage     = "no_page"     // a picture, data, or anything else that nobody reads
	ReasonPageBroken = "page_broken" // markup that no parser gets through
)

// extract makes the article of a page from a copy of its tree. What gives none is a *corpus.ExcludedError: whatever
// bytes a host sends, they are that page's concern.
func (p *Page) extract() (Article, error) {
	switch kind := mediaType(p.Header.Get("Content-Type")); {
	case isPDF(kind, p.body):
		return p.pdfArticle(maxPDFTime)
	case kind == "text/plain":
		return Article{Text: paragraphs(p.text()), Partial: p.truncated}, nil
	case !readsAsPage(kind, p.body):
		return Article{}, corpus.Exclude(ReasonNoPage, fmt.Sprintf("%s is %q", p.Final, kind))
	}
	broken := func(err error) error {
		return corpus.Exclude(ReasonPageBroken, fmt.Sprintf("extract the article of %s: %v", p.Final, err))
	}
	doc, err := p.Doc()
	if err != nil {
		return Article{}, broken(err)
	}
	base, err := url.Parse(p.Final)
	if err != nil {
		return Article{}, broken(err)
	}
	// The reader takes the tree apart, so it gets a copy; notices never come into that.
	parser := readability.NewParser()
	found, err := parser.ParseAndMutate(clone(doc, notices(doc)), base)
	if err != nil {
		return Article{}, broken(err)
	}
	a := Article{
		Title:    corpus.Space(found.Title()),
		Byline:   corpus.Space(found.Byline()),
		SiteName: corpus.Space(found.SiteName()),
		Lang:     found.Language(),
		Partial:  p.truncated || paywalled(doc),
	}
	if t, err := found.PublishedTime(); err == nil {
		a.Published = dateOrTime(t)
	}
	if found.Node != nil {
		var text strings.Builder
		if err := found.RenderText(&text); err != nil {
			return Article{}, broken(err)
		}
		a.Text = paragraphs(text.String())
	}
	return a, nil
}

// dateOrTime writes a time as the documents of a corpus do. Midnight in UTC is a date without a time.
func dateOrTime(t time.Time) string {
	if t = t.UTC(); t.Equal(t.Truncate(24 * time.Hour)) {
		return t.Format(time.DateOnly)
	}
	return t.Format(time.RFC3339)
}

// paragraphs folds the white space of each line and leaves one empty line between paragraphs.
func paragraphs(s string) string {
	var out []string
	for line := range strings.Lines(s) {
		if line = corpus.Space(line); line != "" {
			out = append(out, line)
		}
	}
	return strings.Join(out, "\n\n")
}

// clone copies a tree without the subtrees in drop.
func clone(n *html.Node, drop []*html.Node) *html.Node {
	c := &html.Node{Type: n.Type, DataAtom: n.DataAtom, Data: n.Data, Namespace: n.Namespace, Attr: slices.Clone(n.Attr)}
	for child := range n.ChildNodes() {
		if !slices.Contains(drop, child) {
			c.AppendChild(clone(child, drop))
		}
	}
	return c
}

// maxNotice is the number of words above which an element is not taken for a notice.
const maxNotice = 150

// consentPhrase is what a notice that is taken out of an article must speak of.
var consentPhrase = regexp.MustCompile(`(?i)\bcookies?\b|\bconsent\b`)

// notices returns the elements of a page that ask for consent.
func notices(doc *html.Node) []*html.Node {
	var found []*html.Node
	for n := range doc.Descendants() {
		if n.Type != html.ElementNode || !answersNotice(n) {
			continue
		}
		if notice := noticeAround(n); notice != nil && !slices.Contains(found, notice) {
			found = append(found, notice)
		}
	}
	return found
}

// noticeAround returns the element around a button that speaks of cookies or consent, with the boxes
// around it that add hardly a word or more of the same; nil if the button belongs to something else.
// Class names decide nothing here: there are recipes for cookies.
func noticeAround(button *html.Node) (notice *html.Node) {
	for e := button.Parent; e != nil && e.Type == html.ElementNode && !holdsPage(e); e = e.Parent {
		text, words := textOf(e, notice, maxNotice)
		speaks := consentPhrase.MatchString(text)
		switch {
		case words >= maxNotice:
			return notice
		case notice != nil && words > 10 && (!speaks || words > 60):
			return notice
		case notice != nil || speaks:
			notice = e
		}
	}
	return notice
}

// answersNotice reports whether an element is a button or link to accept or decline.
func answersNotice(n *html.Node) bool {
	switch {
	case n.Data == "button", n.Data == "a", nodeAttr(n, "role") == "button":
		text, words := textOf(n, nil, 8)
		return words > 0 && words < 8 && noticeAnswer.MatchString(text)
	case n.Data == "input":
		return noticeAnswer.MatchString(nodeAttr(n, "value"))
	}
	return false
}

// holdsPage reports elements that hold the page itself.
func holdsPage(n *html.Node) bool {
	switch n.Data {
	case "html", "body", "main", "article":
		return true
	}
	return false
}

// textOf returns the folded text under a node, without that under skip, and its number of words. It
// stops reading at about max words.
func textOf(n, skip *html.Node, max int) (string, int) {
	var b strings.Builder
	words := 0
	var walk func(*html.Node)
	walk = func(n *html.Node) {
		for c := range n.ChildNodes() {
			switch {
			case words >= max || c == skip:
			case c.Type == html.TextNode:
				b.WriteString(c.Data)
				b.WriteByte(' ')
				words += countWords(c.Data)
			case c.Type == html.ElementNode && c.Data != "script" && c.Data != "style":
				walk(c)
			}
		}
	}
	walk(n)
	return corpus.Space(b.String()), words
}

// lockedJSON matches the statement of a page that its text is for subscribers.
var lockedJSON = regexp.MustCompile(`"isAccessibleForFree"\s*:\s*"?(?i:false)`)

// paywalled reports whether a page says that its article is not all there.
func paywalled(doc *html.Node) bool {
	for n := range doc.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		switch n.Data {
		case "script":
			if n.FirstChild != nil && nodeAttr(n, "type") == "application/ld+json" && lockedJSON.MatchString(n.FirstChild.Data) {
				return true
			}
		case "meta":
			if nodeAttr(n, "property") == "article:content_tier" && nodeAttr(n, "content") == "locked" {
				return true
			}
		}
	}
	return false
}

func nodeAttr(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}
