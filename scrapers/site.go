// Package scrapers knows the sites and tables that claims come from. A site turns listing pages into
// references and item pages into claims, or into documents where it rates nothing; a table turns rows
// into claims and links to documents.
//
// It stores nothing. Listings are crawled by colly over the client that the caller hands in, so
// politeness, caching and replay are the caller's; item pages are fetched by the caller, and Parse
// is a pure function of the page.
//
// To add a site, write one file like politifact.go, add one line to All, and put pages with their
// addresses under testdata/<site>/.
package scrapers

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"assay/corpus"
	"assay/fetch"

	"github.com/PuerkitoBio/goquery"
	"github.com/gocolly/colly/v2"
)

// A Site is one fact-checker, newsroom or institution. Base is the origin under which the site is reached, "" for its own;
// a mirror or a test server has another.
type Site struct {
	Name      string
	Version   int // a new one parses every page of the site again
	Doc       string
	Host      string        // under which its pages are stored
	Hosts     []string      // other hosts of its pages, as those of other languages
	Lang      string        // BCP 47, of most pages
	Proven    string        // captured, documented or unproven
	Reference string        // what Proven rests on
	Delay     time.Duration // least time between two requests

	// What a canary looks for: the generations of item pages, what an item of an HTML list is marked
	// by, and the words of the scale; nil where the site prints no verdict.
	Layouts []Layout
	Cards   string
	Ratings *corpus.RatingMap

	// Recognise reports whether an address, as written anywhere, is an item page of this site.
	Recognise func(base, address string) bool
	// Start returns the first listing of every speaker (the site's slugs), or of all.
	Start func(base string, speakers []string) []string
	// Updates returns listings of what was added or changed since an instant, where the site has such: its
	// feeds, WordPress's interface with modified_after. A refresh reads them beside the newest pages of
	// Start, by Discover, and never instead of them. Nil means that the site has none.
	Updates func(base string, speakers []string, since time.Time) []string
	// Discover reads one listing page. It returns what the page shows, in its order: while a crawl
	// pages on, new items push old ones to the next page, so the caller drops repeats by identity.
	Discover func(ctx context.Context, f Fetcher, address string) (Listing, error)
	// Parse returns the claims of an item page. A page that is no claim of this corpus is a
	// corpus.ExcludedError, markup that is not known a *MarkupError.
	Parse func(p *fetch.Page) ([]corpus.Claim, error)
	// Read takes the place of Parse where pages report and rate nothing: news, institutions. It returns
	// the documents of an item page, one of an article, one for each record of an interface's reply, with
	// errors like those of Parse. Exactly one of the two is set.
	Read func(p *fetch.Page) ([]corpus.Document, error)
	// form is what Read reads articles by, nil where it reads replies of an interface. A canary looks for its places.
	form *articleForm
	// Tells is what documents of Read tell, as FieldNames has it; nil is what articles do.
	Tells []string

	// Category is what claims of this site are about unless the tags of their page say otherwise; "" says
	// nothing.
	Category corpus.Category
}

// All lists the sites by name.
var All = []Site{
	minutes20,
	afp,
	africacheck,
	altnews,
	ap,
	apFactCheck,
	bbc,
	billboard,
	boomlive,
	cdc,
	climatefactchecks,
	cpsc,
	desifacts,
	efe,
	estadao,
	factcheckorg,
	factly,
	fda,
	ftc,
	fullfact,
	indiatoday,
	leadstories,
	lupa,
	mafindo,
	nasa,
	nbc,
	newtral,
	noaa,
	npr,
	people,
	politifact,
	polygraph,
	reuters,
	reutersNews,
	sciencefeedback,
	snopes,
	telemundo,
	tfc,
	thequint,
	thip,
	tsek,
	usatoday,
	usgs,
	variety,
	verafiles,
	vishvas,
	who,
}

// SiteNamed finds a site; the error names the known ones.
func SiteNamed(name string) (Site, error) {
	var known []string
	for _, s := range All {
		if s.Name == name {
			return s, nil
		}
		known = append(known, s.Name)
	}
	return Site{}, fmt.Errorf("site %q is unknown; known are %s", name, strings.Join(known, ", "))
}

// FieldNames names what pages of the site tell of a claim, with a star where there is no claim without it, or what
// its documents tell where it rates nothing, with a star for what each of them has.
func (s Site) FieldNames() []string {
	if s.Read != nil {
		if s.Tells == nil {
			return articleFields
		}
		return s.Tells
	}
	need, order := map[string]Need{}, []string{}
	for _, l := range s.Layouts {
		for _, f := range l.Fields {
			if f.Name == FieldBody {
				continue
			}
			if _, ok := need[f.Name]; !ok {
				order = append(order, f.Name)
			}
			need[f.Name] = max(need[f.Name], f.Need)
		}
	}
	for i, name := range order {
		if need[name] == Required {
			order[i] += "*"
		}
	}
	return order
}

// A Listing is what one listing page leads to.
type Listing struct {
	Refs []corpus.Ref `json:"refs"`
	Next string       `json:"next,omitzero"` // canonical address of the next page; "" on the last one
	More []string     `json:"more,omitzero"` // further listings that this one names, as a sitemap index does
	// Modified tells when pages and further listings changed, by their addresses: RFC 3339 in UTC, or a day. What
	// the listing says nothing about has no entry.
	Modified map[string]string `json:"modified,omitzero"`
	Notes    []string          `json:"notes,omitzero"` // what the listing holds that leads nowhere
	// Unsorted says that the listing does not begin with what is newest, as most sitemaps, so that a refresh
	// cannot end at what it knows.
	Unsorted bool `json:"unsorted,omitzero"`
}

// A Fetcher makes the HTTP client that listings are crawled with.
type Fetcher interface {
	HTTP() *http.Client
}

// A MarkupError says that a page is not built as its site's pages were when the selectors were written.
type MarkupError struct {
	Doing string // parse, discover
	URL   string
	Want  string // the selector that found nothing
	Has   string // what the page has instead
}

func (e *MarkupError) Error() string {
	return fmt.Sprintf("%s %s: %s finds nothing; the page has %s", e.Doing, e.URL, e.Want, e.Has)
}

// FailureClass says that trying the same bytes again is no use.
func (e *MarkupError) FailureClass() string { return "permanent" }

// A StatusError is a listing that the server did not give.
type StatusError struct {
	URL    string
	Status int
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("discover %s: status %d %s", e.URL, e.Status, http.StatusText(e.Status))
}

// FailureClass tells a server in trouble from an address that is no listing.
func (e *StatusError) FailureClass() string {
	switch {
	case e.Status >= 500, e.Status == http.StatusTooManyRequests, e.Status == http.StatusRequestTimeout:
		return "transient"
	case e.Status == http.StatusUnauthorized, e.Status == http.StatusForbidden:
		return "blocked"
	}
	return "permanent"
}

func (e *StatusError) gone() bool {
	return e.Status == http.StatusNotFound || e.Status == http.StatusGone
}

// A response is a listing as it was answered.
type response struct {
	address string // canonical, after redirects
	header  http.Header
	body    []byte // text is UTF-8
}

// listingPage fetches one HTML page through colly and returns it with the address it was found at.
func listingPage(ctx context.Context, f Fetcher, address string) (*goquery.Document, string, error) {
	r, err := listingResponse(ctx, f, address)
	if err != nil {
		return nil, "", err
	}
	doc, err := goquery.NewDocumentFromReader(bytes.NewReader(r.body))
	if err != nil {
		return nil, "", fmt.Errorf("discover %s: %w", r.address, err)
	}
	return doc, r.address, nil
}

// listingResponse fetches one listing of any kind through colly. The answer to a request that was not
// granted comes beside its *StatusError: interfaces say in it what they have against the request.
func listingResponse(ctx context.Context, f Fetcher, address string) (response, error) {
	c := colly.NewCollector()
	// Set after construction: COLLY_* variables override what is given as an option. Everything that
	// the client already does well (robots, delays, limits, caching, decoding) is off.
	c.SetClient(f.HTTP())
	c.Context = ctx
	c.AllowURLRevisit = true
	c.IgnoreRobotsTxt = true
	c.ParseHTTPErrorResponse = true
	c.MaxBodySize = 0
	c.MaxDepth = 0
	c.MaxRequests = 0
	c.CacheDir = ""
	c.AllowedDomains, c.DisallowedDomains = nil, nil
	c.Async, c.DetectCharset, c.CheckHead, c.TraceHTTP = false, false, false, false
	c.OnRequest(func(r *colly.Request) {
		// The client writes its own, so that a listing has one stored response however it was asked for.
		r.Headers.Del("User-Agent")
		r.Headers.Del("Accept")
	})
	var out *response
	var failed error
	c.OnResponse(func(r *colly.Response) {
		final := corpus.CanonicalURL(r.Request.URL.String())
		if r.StatusCode != http.StatusOK {
			failed = &StatusError{URL: final, Status: r.StatusCode}
		}
		out = &response{address: final, body: r.Body}
		if r.Headers != nil {
			out.header = *r.Headers
		}
	})
	if err := c.Visit(address); err != nil {
		var outer *url.Error // of net/http; what it holds names method and address by itself
		if errors.As(err, &outer) {
			err = outer.Err
		}
		return response{}, fmt.Errorf("discover %s: %w", address, err)
	}
	if out == nil {
		return response{}, fmt.Errorf("discover %s: no response", address)
	}
	return *out, failed
}

// nextPage returns where the button with this label leads, "" if there is none or it leads back here or
// away from the site, whose origins these are beside the listing's own. Pagers give a query alone, which
// counts from the listing's own path.
func nextPage(address string, buttons *goquery.Selection, label string, origins ...string) string {
	next := ""
	buttons.EachWithBreak(func(_ int, b *goquery.Selection) bool {
		if strings.EqualFold(text(b), label) {
			next = corpus.ResolveURL(address, b.AttrOr("href", ""))
			return false
		}
		return true
	})
	if corpus.IdentityURL(next) == corpus.IdentityURL(address) || !ofOrigin(next, address) && !ofOrigin(next, origins...) {
		return ""
	}
	return next
}

// pageNumber returns the parameter page of an address, 1 without one.
func pageNumber(address string) int {
	u, err := url.Parse(address)
	if err != nil {
		return 1
	}
	q := u.Query()
	n, err := strconv.Atoi(cmp.Or(q.Get("page"), q.Get("paged"))) // WordPress counts the pages of a feed by the second
	if err != nil {
		return 1
	}
	return n
}

// ofOrigin reports whether an address lies at one of the origins; http and https are one.
func ofOrigin(address string, origins ...string) bool {
	at := authority(address)
	return at != "" && slices.ContainsFunc(origins, func(o string) bool { return authority(o) == at })
}

// authority returns host and port of an address in their canonical spelling.
func authority(address string) string {
	_, rest, ok := strings.Cut(corpus.IdentityURL(address), "://")
	if !ok {
		return ""
	}
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		rest = rest[:end]
	}
	return rest[strings.LastIndexByte(rest, '@')+1:]
}

// untracked returns the address that a page is fetched by.
func untracked(address string) string { return corpus.CleanURL(address) }

// lead returns the reference that a link of a listing makes, given the address that it leads to; ok is false
// where that is no item. A link to the AMP or the mobile form of a page leads to the page itself.
func lead(source, address, href string, item func(string) bool) (ref corpus.Ref, ok bool) {
	if page := corpus.PlainURL(address); page != corpus.CleanURL(address) && item(page) {
		return corpus.Ref{Source: source, URL: page, Found: cmp.Or(asFound(address, href), address)}, true
	}
	return corpus.Ref{Source: source, URL: address, Found: asFound(address, href)}, item(address)
}

// asFound returns a link as it was written where the address that it leads to does not show it: another
// spelling of the host, a port, a fragment. It is "" where nothing is lost.
func asFound(address, href string) string {
	href = strings.TrimSpace(href)
	if strings.Contains(href, "://") {
		if href == address {
			return ""
		}
		return href
	}
	if i := strings.IndexByte(href, '#'); i >= 0 {
		return address + href[i:]
	}
	return ""
}

// text returns the text of a selection with white space folded.
func text(s *goquery.Selection) string { return corpus.Space(s.Text()) }

// firstOf returns the first element that a selector finds, and looks no further.
func firstOf(s interface {
	FindMatcher(m goquery.Matcher) *goquery.Selection
}, selector string) *goquery.Selection {
	return s.FindMatcher(goquery.Single(selector)).First() // of each child's first
}

// texts returns the texts of the elements of a selection, without empty ones.
func texts(s *goquery.Selection) []string {
	var out []string
	s.Each(func(_ int, e *goquery.Selection) {
		if t := text(e); t != "" {
			out = append(out, t)
		}
	})
	return out
}

// markupError says what a page has where a selector found nothing.
func markupError(doing, address, want string, doc *goquery.Document) error {
	has := pageTitle(doc)
	for _, tag := range []string{"h1", "h2", "article", "form", "p"} {
		if n := doc.Find(tag).Length(); n > 0 {
			has += fmt.Sprintf(", %d %s", n, tag)
		}
	}
	if class := doc.Find("article[class], main[class], main [class]").First().AttrOr("class", ""); class != "" {
		has += fmt.Sprintf(", first of class %q", corpus.Space(class))
	}
	return &MarkupError{Doing: doing, URL: address, Want: want, Has: has}
}

// pageTitle quotes what a page calls itself.
func pageTitle(doc *goquery.Document) string {
	title := text(doc.Find("title").First())
	if title == "" {
		return "no title"
	}
	if r := []rune(title); len(r) > 120 {
		title = string(r[:120]) + "…"
	}
	return fmt.Sprintf("title %q", title)
}
