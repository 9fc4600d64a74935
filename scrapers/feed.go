package scrapers

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"assay/corpus"
	"assay/fetch"
)

// A Feed is what an RSS, Atom or JSON feed, a sitemap, a sitemap index or a list of WordPress posts says.
type Feed struct {
	Kind    string   `json:"kind"` // see Feed*
	Title   string   `json:"title,omitzero"`
	Entries []Entry  `json:"entries"`
	Maps    []Entry  `json:"maps,omitzero"`  // the sitemaps that an index names
	Next    string   `json:"next,omitzero"`  // address of the next page, where the feed has pages
	Notes   []string `json:"notes,omitzero"` // entries that lead nowhere, dates that are none
}

// Kinds of feeds.
const (
	FeedRSS   = "rss" // 0.9 to 2.0, RDF included
	FeedAtom  = "atom"
	FeedURLs  = "urlset" // a sitemap, a news sitemap included
	FeedIndex = "sitemapindex"
	FeedPosts = "posts" // wp-json/wp/v2/posts
	FeedJSON  = "json"  // jsonfeed.org, and what rss2json makes of RSS
)

// An Entry is one item of a feed. Text has its white space folded and is otherwise as printed: a title
// may hold markup, and the title in a news sitemap may be cut. The page itself is to be believed.
type Entry struct {
	URL       string `json:"url"`            // canonical; a redirect that the feed's maker put around it is undone
	Found     string `json:"found,omitzero"` // the address as written, where URL does not show it
	ID        string `json:"id,omitzero"`    // guid or id: it names the entry and need not lead anywhere
	Title     string `json:"title,omitzero"` //
	Lang      string `json:"lang,omitzero"`  // as a news sitemap says
	Publisher string `json:"site,omitzero"`  // as a news sitemap says
	Published Stamp  `json:"published,omitzero"`
	Modified  Stamp  `json:"modified,omitzero"`
}

// Changed returns the newest thing that is known about when the entry changed: an instant or a day, ""
// if the feed says neither when it was modified nor when it was published.
func (e Entry) Changed() string {
	if e.Modified.Date.Value != "" {
		return e.Modified.Date.Value
	}
	return e.Published.Date.Value
}

// GetFeed fetches a feed of any kind as listings are fetched, and reads it.
func GetFeed(ctx context.Context, f Fetcher, address string) (Feed, error) {
	r, err := listingResponse(ctx, f, address)
	if err != nil {
		return Feed{}, err
	}
	return ReadFeed(r.address, r.header, r.body)
}

// ReadFeed reads a feed that was found at an address; the body says of which kind it is. Feeds are read
// as their makers write them: blanks before the XML declaration or none at all, entities of HTML, bytes
// that are not in the encoding that is declared, control characters. The error of a body that is no
// feed is a *MarkupError, that of one that breaks off names the entry after which it does.
func ReadFeed(address string, header http.Header, body []byte) (Feed, error) {
	if !utf8.Valid(body) {
		p, err := fetch.NewPage(address, http.Header{"Content-Type": {header.Get("Content-Type")}}, body, time.Time{})
		if err != nil {
			return Feed{}, fmt.Errorf("read feed: %w", err)
		}
		body = []byte(p.Text())
	}
	if s := withoutRemarks(string(body)); strings.HasPrefix(s, "[") || strings.HasPrefix(s, "{") {
		return readJSONFeed(address, header, s)
	}
	return readXML(address, body)
}

// wantFeed is what a body that is no feed does not have.
const wantFeed = "rss, feed, urlset, sitemapindex or a list of posts"

// readXML reads feeds and sitemaps.
func readXML(address string, body []byte) (Feed, error) {
	r := xmlReader{base: address, d: xml.NewDecoder(bytes.NewReader(printable(body))), out: Feed{Entries: []Entry{}}}
	r.d.Strict, r.d.Entity = false, xml.HTMLEntity
	r.d.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return in, nil } // the body is UTF-8 by now
	err := r.read()
	switch {
	case r.out.Kind == "" && err != nil:
		return Feed{}, &MarkupError{Doing: "discover", URL: address, Want: wantFeed, Has: err.Error()}
	case err != nil:
		return Feed{}, fmt.Errorf("discover %s: the feed breaks off after entry %d: %w", address, r.number, err)
	}
	return r.out, nil
}

// An xmlReader reads the tokens of one feed. It matches end tags to start tags itself: an unclosed <br>
// in a description ends with the description, and an end tag without a start is passed over.
type xmlReader struct {
	base   string
	d      *xml.Decoder
	out    Feed
	item   string // what an entry is called
	number int    // of entries so far
}

// An element is one element of an entry or of a feed's head.
type element struct {
	name xml.Name // Space is the prefix as written
	attr []xml.Attr
	text strings.Builder
	kids []*element
}

// entryDepth is deeper than any entry; what lies below it is left out.
const entryDepth = 32

func (r *xmlReader) read() error {
	var open []*element // the root first
	for {
		t, err := r.d.RawToken()
		switch {
		case errors.Is(err, io.EOF) && r.out.Kind == "":
			return errors.New("no element")
		case errors.Is(err, io.EOF) && len(open) > 0:
			return fmt.Errorf("%s is not closed", open[len(open)-1].name.Local)
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		switch t := t.(type) {
		case xml.StartElement:
			e := &element{name: t.Name, attr: slices.Clone(t.Attr)}
			if len(open) == 0 {
				if r.out.Kind != "" {
					return fmt.Errorf("a second root element %s", t.Name.Local)
				}
				if err := r.root(e); err != nil {
					return err
				}
			} else if parent := open[len(open)-1]; r.entry(open) && len(open) < entryDepth {
				parent.kids = append(parent.kids, e)
			}
			open = append(open, e)
		case xml.CharData:
			if len(open) > 0 && r.entry(open) {
				open[len(open)-1].text.Write(t)
			}
		case xml.EndElement:
			i := len(open) - 1
			for i >= 0 && open[i].name != t.Name {
				i--
			}
			if i < 0 {
				continue
			}
			for j := len(open) - 1; j >= i; j-- {
				r.closed(open[:j], open[j])
			}
			open = open[:i]
		}
	}
}

// entry reports whether the elements that are open end inside an entry or a part of the head, whose
// contents are kept. The containers are not: a feed is as long as it likes.
func (r *xmlReader) entry(open []*element) bool {
	e := open[len(open)-1]
	return len(open) > 2 || len(open) == 2 && !strings.EqualFold(e.name.Local, "channel")
}

// root notes of which kind the feed is.
func (r *xmlReader) root(e *element) error {
	switch strings.ToLower(e.name.Local) {
	case "rss", "rdf":
		r.out.Kind, r.item = FeedRSS, "item"
	case "feed":
		r.out.Kind, r.item = FeedAtom, "entry"
	case "urlset":
		r.out.Kind, r.item = FeedURLs, "url"
	case "sitemapindex":
		r.out.Kind, r.item = FeedIndex, "sitemap"
	default:
		return fmt.Errorf("root element %s", e.name.Local)
	}
	r.rebase(e)
	return nil
}

// rebase takes up the address from which a document says that its links count.
func (r *xmlReader) rebase(e *element) {
	if base := e.attribute("xml", "base"); base != "" {
		if u := corpus.ResolveURL(r.base, base); u != "" {
			r.base = u
		}
	}
}

// closed takes up an element with its contents, once it ends; above are the elements that hold it.
func (r *xmlReader) closed(above []*element, e *element) {
	if len(above) == 0 || len(above) > 2 || len(above) == 2 && !strings.EqualFold(above[1].name.Local, "channel") {
		return
	}
	root := above[0]
	switch name := strings.ToLower(e.name.Local); {
	case name == r.item:
		r.number++
		entry, ok := r.entryOf(e)
		switch {
		case !ok:
			r.out.Notes = append(r.out.Notes, fmt.Sprintf("entry %d (%s) leads nowhere", r.number, shown(e.child("title"), e.child("guid"), e.child("id"), e.child("loc"))))
		case r.out.Kind == FeedIndex:
			r.out.Maps = append(r.out.Maps, entry)
		default:
			r.out.Entries = append(r.out.Entries, entry)
		}
	case name == "title" && (e.name.Space == root.name.Space || e.name.Space == ""):
		r.out.Title = corpus.Space(e.all())
	case name == "link" && e.attribute("", "rel") == "next":
		r.out.Next = corpus.ResolveURL(r.base, e.attribute("", "href"))
	}
}

// shown quotes the first of some elements that says anything.
func shown(some ...*element) string {
	for _, e := range some {
		if s := corpus.Space(e.all()); s != "" {
			if r := []rune(s); len(r) > 60 {
				s = string(r[:60]) + "…"
			}
			return fmt.Sprintf("%q", s)
		}
	}
	return "empty"
}

// entryOf reads one entry; ok is false if it names no address of the web.
func (r *xmlReader) entryOf(e *element) (_ Entry, ok bool) {
	out := Entry{Title: corpus.Space(e.child("title").all())}
	link := ""
	switch r.out.Kind {
	case FeedURLs, FeedIndex:
		link = e.child("loc").all()
		out.Modified = r.stamp(e.child("lastmod"))
		news := e.other("news")
		out.Title = corpus.Space(news.child("title").all())
		out.Published = r.stamp(news.child("publication_date"))
		out.Publisher = corpus.Space(news.child("publication").child("name").all())
		out.Lang = corpus.Space(news.child("publication").child("language").all())
	case FeedAtom:
		out.ID = corpus.Space(e.child("id").all())
		link = e.alternate()
		out.Published, out.Modified = r.stamp(e.child("published"), e.child("issued")), r.stamp(e.child("updated"), e.child("modified"))
	default:
		guid := e.child("guid")
		out.ID = corpus.Space(guid.all())
		out.Published, out.Modified = r.stamp(e.child("pubDate"), e.other("date")), r.stamp(e.other("modified"), e.other("updated"))
		if link = e.other("origLink").all(); strings.TrimSpace(link) == "" { // FeedBurner keeps the address that it hides
			link = e.child("link").all()
		}
		if strings.TrimSpace(link) == "" {
			link = e.other("link").attribute("", "href") // Atom inside of RSS
		}
		// A guid is an address unless it is said to be none, and then it may still look like one.
		if strings.TrimSpace(link) == "" && !strings.EqualFold(guid.attribute("", "isPermaLink"), "false") && strings.Contains(out.ID, "://") {
			link = out.ID
		}
	}
	out.URL, out.Found = leadsTo(r.base, link)
	return out, out.URL != ""
}

// stamp reads the first date of some elements.
func (r *xmlReader) stamp(some ...*element) Stamp {
	for _, e := range some {
		printed := corpus.Space(e.all())
		if printed == "" {
			continue
		}
		d, err := corpus.ReadDate(printed)
		if err != nil {
			r.out.Notes = append(r.out.Notes, fmt.Sprintf("entry %d: %v", r.number, err))
		}
		return Stamp{Printed: printed, Date: d}
	}
	return Stamp{}
}

// child returns the element of a name that has its parent's own prefix, nil if there is none: media:title
// is not the title.
func (e *element) child(name string) *element {
	if e == nil {
		return nil
	}
	for _, k := range e.kids {
		if strings.EqualFold(k.name.Local, name) && k.name.Space == e.name.Space {
			return k
		}
	}
	return nil
}

// other returns the element of a name with any prefix but its parent's, nil if there is none.
func (e *element) other(name string) *element {
	if e == nil {
		return nil
	}
	for _, k := range e.kids {
		if strings.EqualFold(k.name.Local, name) && k.name.Space != e.name.Space {
			return k
		}
	}
	return nil
}

// alternate returns the address of the page that an Atom entry stands for.
func (e *element) alternate() string {
	any := ""
	for _, k := range e.kids {
		if k.name.Local != "link" || k.name.Space != e.name.Space {
			continue
		}
		switch href := k.attribute("", "href"); k.attribute("", "rel") {
		case "", "alternate":
			return href
		case "related", "via":
			if any == "" {
				any = href
			}
		}
	}
	return any
}

func (e *element) attribute(prefix, name string) string {
	if e == nil {
		return ""
	}
	for _, a := range e.attr {
		if a.Name.Space == prefix && a.Name.Local == name {
			return strings.TrimSpace(a.Value)
		}
	}
	return ""
}

// all returns the text of an element and of what lies inside.
func (e *element) all() string {
	if e == nil {
		return ""
	}
	if len(e.kids) == 0 {
		return e.text.String()
	}
	out := e.text.String()
	for _, k := range e.kids {
		out += " " + k.all()
	}
	return out
}

// leadsTo returns the page that a link of a feed stands for, and the link as written where that is lost.
func leadsTo(base, link string) (address, found string) {
	link = strings.TrimSpace(link)
	if link == "" {
		return "", ""
	}
	address = corpus.ResolveURL(base, link)
	if target := wrapped(address); target != "" {
		return target, link
	}
	if !strings.HasPrefix(address, "http://") && !strings.HasPrefix(address, "https://") {
		return "", ""
	}
	return address, asFound(address, link)
}

// redirectHost matches the hosts that put their own address around links: Google in Alerts and results.
var redirectHost = regexp.MustCompile(`^(?:www\.)?google\.[a-z.]{2,6}$`)

// wrapped returns the canonical address that a redirect leads to, "" for any other address.
func wrapped(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Path != "/url" || !redirectHost.MatchString(u.Hostname()) {
		return ""
	}
	for _, name := range []string{"url", "q"} {
		if target := u.Query().Get(name); strings.HasPrefix(target, "http://") || strings.HasPrefix(target, "https://") {
			return corpus.CanonicalURL(target)
		}
	}
	return ""
}

// controlReference matches references to characters that XML forbids; feeds of programs carry them.
var controlReference = regexp.MustCompile(`&#(?:0*(?:[0-8]|1[124-9]|2[0-9]|3[01])|[xX]0*(?:[0-8bcefBCEF]|1[0-9a-fA-F]));`)

// printable drops what no XML may hold.
func printable(body []byte) []byte {
	return bytes.Map(func(r rune) rune {
		if r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == '\ufeff' || r == '\ufffe' || r == '\uffff' {
			return -1
		}
		return r
	}, controlReference.ReplaceAll(body, nil))
}
