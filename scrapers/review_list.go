package scrapers

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"assay/corpus"

	"github.com/PuerkitoBio/goquery"
)

// cards tells how the HTML lists of a site show its items.
type cards struct {
	card string          // one item
	link string          // in a card, the link to the item
	date string          // in a card, when it was published, as a place of a Field; "" where none is shown
	form corpus.DateForm // of the date
	next string          // the link to the next page; "" where lists have one page
}

// discover reads one listing of any kind.
func (s reviewSite) discover(ctx context.Context, f Fetcher, address string) (Listing, error) {
	r, err := listingResponse(ctx, f, address)
	if err != nil && pastEnd(address, err) {
		return Listing{Refs: []corpus.Ref{}}, nil // the list grew shorter while we paged
	}
	if err != nil {
		return Listing{}, err
	}
	item := func(u string) bool { return s.isItem(u) && (ofOrigin(u, r.address) || ofOrigin(u, s.origins...)) }
	body := r.body
	if bytes.Contains(body[:min(len(body), 4096)], []byte(`"dataFeedElement"`)) {
		return s.claimFeed(r, item)
	}
	if !showsHTML(body) {
		pieces := embeddedHTML(body)
		if pieces == nil {
			feed, err := ReadFeed(r.address, r.header, r.body)
			if err != nil {
				return Listing{}, err
			}
			var mapped func(string) bool
			if s.mapped != nil {
				mapped = s.mapped.MatchString
			}
			return feed.listing(s.name, r.address, item, mapped), nil
		}
		body = pieces
	}
	doc, err := goquery.NewDocumentFromReader(bytes.NewReader(body))
	if err != nil {
		return Listing{}, fmt.Errorf("discover %s: %w", r.address, err)
	}
	return s.listed(r.address, doc, item)
}

// claimFeed reads a feed of ClaimReviews of many publishers: its references are the reviews of this site.
func (s reviewSite) claimFeed(r response, item func(string) bool) (Listing, error) {
	out := Listing{Refs: []corpus.Ref{}, Unsorted: true}
	seen := map[string]bool{}
	for review, err := range ReadClaimFeed(bytes.NewReader(r.body)) {
		if err != nil {
			out.Notes = append(out.Notes, err.Error())
			continue
		}
		ref, ok := lead(s.name, review.URL, review.URLPrinted, item)
		if !ok || seen[ref.URL] {
			continue
		}
		seen[ref.URL] = true
		out.Refs = append(out.Refs, ref)
		if when := review.Created.Date.Value; when != "" {
			if out.Modified == nil {
				out.Modified = map[string]string{}
			}
			out.Modified[ref.URL] = when
		}
	}
	if len(out.Refs) == 0 && len(out.Notes) > 0 {
		return Listing{}, &MarkupError{Doing: "discover", URL: r.address, Want: "reviews of " + s.name, Has: out.Notes[0]}
	}
	return out, nil
}

// listed reads an HTML list.
func (s reviewSite) listed(address string, doc *goquery.Document, item func(string) bool) (Listing, error) {
	later := pageOf(address) > 1
	if s.cards.card == "" {
		return Listing{}, &MarkupError{Doing: "discover", URL: address, Want: wantFeed, Has: "a page, " + pageTitle(doc)}
	}
	found := doc.Find(s.cards.card)
	if found.Length() == 0 {
		if later {
			return Listing{Refs: []corpus.Ref{}}, nil // a page past the end
		}
		return Listing{}, markupError("discover", address, s.cards.card, doc)
	}
	out := Listing{Refs: []corpus.Ref{}}
	seen := map[string]bool{}
	links := 0
	found.Each(func(_ int, card *goquery.Selection) {
		link := card
		if s.cards.link != "" {
			link = firstOf(card, s.cards.link)
		}
		href, ok := link.Attr("href")
		if ok {
			links++
		}
		ref, isItem := lead(s.name, corpus.ResolveURL(address, href), href, item)
		u := ref.URL
		if !ok || !isItem || seen[u] {
			return // an article, which some pages list beside the checks
		}
		seen[u] = true
		out.Refs = append(out.Refs, ref)
		day, note := s.cards.changed(card)
		if day != "" {
			if out.Modified == nil {
				out.Modified = map[string]string{}
			}
			out.Modified[u] = day
		}
		if note != "" {
			out.Notes = append(out.Notes, u+": "+note)
		}
	})
	if links == 0 {
		return Listing{}, markupError("discover", address, s.cards.card+" "+s.cards.link+"[href]", doc)
	}
	if s.cards.next != "" {
		href, _ := firstOf(doc, s.cards.next).Attr("href")
		next := corpus.ResolveURL(address, href)
		if href != "" && corpus.IdentityURL(next) != corpus.IdentityURL(address) && (ofOrigin(next, address) || ofOrigin(next, s.origins...)) {
			out.Next = next
		}
	}
	return out, nil
}

// changed returns the date that a card shows, or what is wrong with it.
func (c cards) changed(card *goquery.Selection) (value, note string) {
	if c.date == "" {
		return "", ""
	}
	p := readPlace(c.date)
	printed := p.of(firstOf(card, p.selector))
	if printed == "" {
		return "", ""
	}
	d, err := c.form.Read(printed)
	if err != nil {
		return "", err.Error()
	}
	return d.Value, ""
}

var pagePath = regexp.MustCompile(`/page/(\d+)/?$`)

// pageOf returns the number of a page of a list, by its parameter or its path; 1 where neither tells.
func pageOf(address string) int {
	if m := pagePath.FindStringSubmatch(strings.SplitN(address, "?", 2)[0]); m != nil {
		return max(1, number(m[1]))
	}
	return pageNumber(address)
}

// showsHTML reports whether a listing is a page, or pieces of one, and neither XML nor JSON.
func showsHTML(body []byte) bool {
	s := strings.ToLower(strings.TrimLeft(string(body[:min(len(body), 4096)]), " \t\r\n\ufeff"))
	for _, start := range []string{"<?xml", "<rss", "<feed", "<urlset", "<sitemapindex", "<rdf"} {
		if strings.HasPrefix(s, start) {
			return strings.HasPrefix(start, "<?xml") && strings.Contains(s, "<html")
		}
	}
	s = withoutRemarks(s)
	return !strings.HasPrefix(s, "{") && (!strings.HasPrefix(s, "[") || strings.HasPrefix(s, "[<"))
}

// embeddedHTML returns the HTML inside a list in JSON: the insert commands of a Drupal view, or the
// blocks of a theme of WordPress. It is nil for any other JSON.
func embeddedHTML(body []byte) []byte {
	var reply any
	if json.Unmarshal([]byte(withoutRemarks(string(body))), &reply) != nil {
		return nil
	}
	var out []byte
	piece := func(v any, key string) {
		if n, ok := v.(node); ok {
			if s, ok := n[key].(string); ok && strings.Contains(s, "<") {
				out = append(append(out, s...), '\n')
			}
		}
	}
	switch reply := reply.(type) {
	case []any:
		for _, c := range reply {
			if n, ok := c.(node); ok && n["command"] == "insert" {
				piece(n, "data")
			}
		}
	case node:
		items, _ := reply["items"].([]any)
		for _, i := range items {
			piece(i, "html")
		}
		if next, ok := reply["next"].(string); ok && out != nil && next != "" {
			out = append(out, `<a rel="next" href="`+strings.ReplaceAll(next, `"`, "%22")+`"></a>`...)
		}
	}
	return out
}
