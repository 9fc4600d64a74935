package fetch

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/html"

	"assay/corpus"
)

// A Page is an answer with its body, as Get returns it. Its methods may be called from many goroutines;
// text, tree and article are made when they are first asked for and shared from then on.
type Page struct {
	URL       string   // canonical address that was asked for
	Final     string   // canonical address that answered, after redirects
	Addresses []string // every address on the way, URL first, Final last
	Status    int
	Header    http.Header
	Retrieved time.Time
	Source    string // network, warc:<name> or dir:<name>

	body      []byte
	truncated bool
	head      *head // of a stored page with one address: what else is known about its request
	charset   func() (name, from string)
	text      func() string
	sum       func() [32]byte
	doc       func() (*html.Node, error)
	article   func() (Article, error)
	parse     func(io.Reader) (*html.Node, error) // html.Parse; tests count through it
}

// NewPage makes a page of a body without a store, for tests and tools: the same parse as for a page
// that was fetched. A Content-Encoding in the header is undone.
func NewPage(url string, header http.Header, body []byte, retrieved time.Time) (*Page, error) {
	canonical := corpus.CanonicalURL(url)
	decoded, err := decodeContent(header, canonical, bytes.NewReader(body), maxDecompressed)
	if err != nil {
		return nil, err
	}
	return newPage(Exchange{Method: http.MethodGet, URL: canonical, At: retrieved, Status: http.StatusOK, Header: header, Class: ClassOK}, decoded, nil)
}

// maxDecompressed bounds the decoded size of a page that is made without Limits.
const maxDecompressed = 32 << 20

// newPage makes the page that an exchange answered with. The body is content-decoded; addresses are
// those on the way to it, nil when there was no redirect.
func newPage(ex Exchange, body []byte, addresses []string) (*Page, error) {
	if ex.URL == "" {
		return nil, fmt.Errorf("make a page: no address")
	}
	if len(addresses) == 0 {
		addresses = []string{ex.URL}
	}
	p := &Page{
		URL: addresses[0], Final: ex.URL, Addresses: addresses,
		Status: ex.Status, Header: ex.Header, Retrieved: ex.At, Source: ex.Source,
		body: body, truncated: ex.Truncated, parse: html.Parse,
	}
	p.charset = sync.OnceValues(func() (name, from string) { return findCharset(ex.Header.Get("Content-Type"), body) })
	p.text = sync.OnceValue(func() string {
		name, _ := p.charset()
		return decodeText(name, p.body)
	})
	p.sum = sync.OnceValue(func() [32]byte { return sha256.Sum256(p.body) })
	p.doc = sync.OnceValues(p.parseOnce)
	p.article = sync.OnceValues(p.extract)
	return p, nil
}

// Bytes returns the body with transfer and content codings undone. It is shared: do not change it.
func (p *Page) Bytes() []byte { return p.body }

// Charset returns the standard name of the body's charset, such as utf-8 or windows-1252, and what it
// was found by: bom, header, meta or guess. Both are empty for what is no text.
func (p *Page) Charset() (name, from string) { return p.charset() }

// Wall returns the sort of wall that the body is instead of content (captcha, consent, js-shell, ...), ""
// for content. Pages that Get returns are none; pages that come from elsewhere may be.
func (p *Page) Wall() string { return wallOf(p.Header, p.body) }

// Truncated reports whether the stored body breaks off before its end.
func (p *Page) Truncated() bool { return p.truncated }

// Text returns the body as UTF-8, without a byte order mark. Bytes that do not belong to the charset
// are U+FFFD.
func (p *Page) Text() string { return p.text() }

// Sum is the SHA-256 of Bytes.
func (p *Page) Sum() [32]byte { return p.sum() }

// Doc returns the page as a tree. It is parsed once and shared by all readers: do not change it.
func (p *Page) Doc() (*html.Node, error) { return p.doc() }

func (p *Page) parseOnce() (*html.Node, error) {
	doc, err := p.parse(strings.NewReader(p.text()))
	if err != nil {
		return nil, fmt.Errorf("parse %s: %w", p.Final, err)
	}
	return doc, nil
}

// Address returns the address that the page has, whatever way led to it: what its canonical link tells,
// where that may be believed, else the one that answered; see corpus.PageAddress.
func (p *Page) Address() (string, error) {
	if isPDF(mediaType(p.Header.Get("Content-Type")), p.body) {
		return corpus.PageAddress(p.Final, ""), nil
	}
	doc, err := p.Doc()
	if err != nil {
		return "", err
	}
	return corpus.PageAddress(p.Final, canonicalLink(doc)), nil
}

// canonicalLink is the first canonical link of a page's head. Links in a body may be anybody's.
func canonicalLink(n *html.Node) string {
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		switch {
		case c.Type != html.ElementNode:
			continue
		case c.Data == "html" || c.Data == "head":
			if found := canonicalLink(c); found != "" {
				return found
			}
		case c.Data == "link" && slices.ContainsFunc(strings.Fields(nodeAttr(c, "rel")), func(rel string) bool { return strings.EqualFold(rel, "canonical") }):
			return strings.TrimSpace(nodeAttr(c, "href"))
		}
	}
	return ""
}

// Article returns what the page says: its main text without navigation, notices and advertising.
func (p *Page) Article() (Article, error) { return p.article() }
