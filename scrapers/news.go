package scrapers

import (
	"context"
	"net/url"
	"regexp"
	"strings"

	"assay/corpus"
)

// newsPages say where the pages of a newsroom or an institution are and how they are found. They are
// listed by feeds and news sitemaps; the title in these is not believed, since it may be cut.
type newsPages struct {
	Origins []string // the site's own; pages elsewhere are none of its items
	Feeds   []string
	Item    *regexp.Regexp // path of an item page
	Not     *regexp.Regexp // what Item matches and is none, may be nil
}

// recognise is Site.Recognise. A feed itself is no item, whatever its path.
func (n newsPages) recognise(base, address string) bool {
	path, _, ok := pathOf(base, address, n.Origins...)
	return ok && n.Item.MatchString(path) && (n.Not == nil || !n.Not.MatchString(path))
}

// hosts is Site.Hosts: those of the origins behind the first.
func (n newsPages) hosts() []string {
	var out []string
	for _, o := range n.Origins[1:] {
		out = append(out, corpus.Host(o))
	}
	return out
}

// start is Site.Start; a mirror has the feeds at their paths below its own origin.
func (n newsPages) start(base string, _ []string) []string {
	var out []string
	for _, feed := range n.Feeds {
		u, err := url.Parse(feed)
		if base == "" || err != nil {
			out = append(out, corpus.CanonicalURL(feed))
			continue
		}
		out = append(out, mirrored(base, "", strings.TrimPrefix(feed, u.Scheme+"://"+u.Host)))
	}
	return out
}

// discover is the Site.Discover of a source.
func (n newsPages) discover(source string) func(context.Context, Fetcher, string) (Listing, error) {
	return func(ctx context.Context, f Fetcher, address string) (Listing, error) {
		return feedListing(ctx, f, source, address, func(item string) bool { return n.recognise(address, item) }, nil)
	}
}
