package scrapers

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"

	"assay/corpus"
	"assay/fetch"
)

// feedListing reads a listing that is a feed or a sitemap. Of its entries only those are references that
// item accepts, in the order of the feed; of the sitemaps of an index only those that mapped accepts,
// all if it is nil. A page past the end of a list that grew shorter is an empty listing.
func feedListing(ctx context.Context, f Fetcher, source, address string, item, mapped func(address string) bool) (Listing, error) {
	feed, err := GetFeed(ctx, f, address)
	if err != nil && pastEnd(address, err) {
		return Listing{Refs: []corpus.Ref{}}, nil
	}
	if err != nil {
		return Listing{}, err
	}
	return feed.listing(source, address, item, mapped), nil
}

// listing makes a listing of a feed that was asked for at an address.
func (f Feed) listing(source, address string, item, mapped func(string) bool) Listing {
	out := Listing{Refs: []corpus.Ref{}, Next: f.Next, Notes: f.Notes, Unsorted: f.Kind == FeedURLs || f.Kind == FeedIndex}
	changed := func(address string, e Entry) {
		if when := e.Changed(); when != "" {
			if out.Modified == nil {
				out.Modified = map[string]string{}
			}
			out.Modified[address] = max(out.Modified[address], when)
		}
	}
	for _, e := range f.Entries {
		ref, ok := lead(source, e.URL, cmp.Or(e.Found, e.URL), item)
		if !ok {
			continue // feeds and sitemaps list the site's other pages too
		}
		out.Refs = append(out.Refs, ref)
		changed(ref.URL, e)
	}
	for _, m := range f.Maps {
		if mapped == nil || mapped(m.URL) {
			out.More = append(out.More, m.URL)
			changed(m.URL, m)
		}
	}
	if corpus.IdentityURL(out.Next) == corpus.IdentityURL(address) || !ofOrigin(out.Next, address) {
		out.Next = ""
	}
	if out.Next == "" && len(f.Entries) > 0 && (f.Kind == FeedRSS || f.Kind == FeedAtom) {
		out.Next = nextPaged(address)
	}
	return out
}

// nextPaged returns the next page of a feed of WordPress, whose pages are counted by the parameter
// paged. A feed that is asked for without it has one page: whether it has more is the site's to say.
func nextPaged(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	q := u.Query()
	page := number(q.Get("paged"))
	if page == 0 {
		return ""
	}
	q.Set("paged", strconv.Itoa(page+1))
	u.RawQuery = q.Encode()
	return corpus.CanonicalURL(u.String())
}

// pastEnd reports whether an error says that a list has no such page: a page beyond the first is gone,
// or refused with 400, as WordPress does.
func pastEnd(address string, err error) bool {
	u, bad := url.Parse(address)
	if bad != nil || number(u.Query().Get("page")) < 2 && number(u.Query().Get("paged")) < 2 {
		return false
	}
	var status *StatusError
	var failed *fetch.Error
	switch {
	case errors.As(err, &status):
		return status.gone() || status.Status == http.StatusBadRequest
	case errors.As(err, &failed):
		return failed.Status == http.StatusBadRequest
	}
	return false
}
