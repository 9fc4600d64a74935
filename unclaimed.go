package assay

import (
	"context"
	"iter"
	"net/http"
	"strings"

	"assay/corpus"
	"assay/fetch"
	"assay/pipeline"
	"assay/scrapers"
)

// Archives hold more than a recipe asks for. What no site of the recipe reads stays in the store and costs
// nothing but its room; it is counted and listed, so that a site that is missing from the recipe is noticed.

// listUnclaimed is what ls lists these pages under.
const listUnclaimed = "unclaimed"

// Why no site of the recipe reads a stored page.
const (
	unclaimedNoSite    = "no_site"       // no scraper knows the address as an item
	unclaimedNotChosen = "not_in_recipe" // the site that knows it is not one of recipe.sites
	unclaimedListing   = "listing"       // a listing of a site, which stored pages are not found by
)

// An unclaimedPage is an imported page that no site of the recipe recognises, and no stage has read as a
// listing or as evidence.
type unclaimedPage struct {
	url    string
	site   string // the one that would read it, "" for none
	lists  string // the one whose listing it is, "" for none
	source string // the import that brought it
}

// unclaimed yields the imported pages that belong to no site of the recipe, in order of their addresses
// within a domain. Pages that this program asked for are not among them: something wanted those.
func (w *Workspace) unclaimed(ctx context.Context) iter.Seq2[unclaimedPage, error] {
	return func(yield func(unclaimedPage, error) bool) {
		e := w.newEngine(pipeline.Options{Explain: true})
		var sites []claimant
		for _, sr := range w.Config.Recipe.Sites {
			site, err := scrapers.SiteNamed(sr.Name)
			if err != nil {
				yield(unclaimedPage{}, err)
				return
			}
			sites = append(sites, newClaimant(site, strings.TrimSuffix(sr.Base, "/")))
		}
		var others []claimant
		starts := map[string]string{}
		for _, site := range scrapers.All {
			others = append(others, newClaimant(site, ""))
			for _, start := range site.Start("", nil) {
				starts[withoutQuery(start)] = site.Name
			}
		}
		listings, err := w.listingKeys(e)
		if err != nil {
			yield(unclaimedPage{}, err)
			return
		}
		for address, err := range w.fetch.Stored(ctx, "") {
			if err == nil && (recogniser(sites, address) != "" || listings[address]) {
				continue
			}
			var p unclaimedPage
			var is bool
			if err == nil {
				p, is, err = w.unclaimedPage(e, address)
			}
			if err == nil && !is {
				continue
			}
			p.site, p.lists = recogniser(others, address), starts[withoutQuery(address)]
			if !yield(p, err) || err != nil {
				return
			}
		}
	}
}

// withoutQuery is an address without what tells its pages apart.
func withoutQuery(address string) string {
	page, _, _ := strings.Cut(corpus.IdentityURL(address), "?")
	return page
}

// A claimant is a site with its hosts.
type claimant struct {
	site  scrapers.Site
	base  string
	hosts []string
}

func newClaimant(site scrapers.Site, base string) claimant {
	return claimant{site, base, siteHosts(site, base)}
}

// recogniser is the name of the first site that takes an address for one of its items.
func recogniser(sites []claimant, address string) string {
	host := corpus.Host(address)
	for _, c := range sites {
		for _, h := range c.hosts {
			if (host == h || strings.HasSuffix(host, "."+h)) && c.site.Recognise(c.base, address) {
				return c.site.Name
			}
		}
	}
	return ""
}

// listingKeys are the addresses that were read as listings.
func (w *Workspace) listingKeys(e *pipeline.Engine) (map[string]bool, error) {
	keys := map[string]bool{}
	for info, err := range e.Items(KindDiscover) {
		if err != nil {
			return nil, err
		}
		keys[info.Key] = true
	}
	return keys, nil
}

// unclaimedPage tells whether what is stored at an address is a page of an import that no stage has read.
func (w *Workspace) unclaimedPage(e *pipeline.Engine, address string) (p unclaimedPage, is bool, err error) {
	ex, ok, err := w.fetch.Answer(address)
	if err != nil || !ok || ex.Class != fetch.ClassOK || ex.Status != http.StatusOK || ex.Source == fetch.SourceNetwork ||
		strings.HasSuffix(address, "/robots.txt") {
		return p, false, err
	}
	_, read, err := e.Item(stages{w}.document().Name, address)
	return unclaimedPage{url: address, source: ex.Source}, err == nil && !read, err
}

// countUnclaimed counts the imported pages that belong to no site of the recipe.
func (w *Workspace) countUnclaimed(ctx context.Context) (n int, err error) {
	for _, err := range w.unclaimed(ctx) {
		if err != nil {
			return 0, err
		}
		n++
	}
	return n, nil
}

// listUnclaimed lists the imported pages that belong to no site of the recipe.
func (w *Workspace) listUnclaimed(ctx context.Context, q ListQuery) ([]Listed, error) {
	var out []Listed
	if q.State != "" && q.State != "waiting" {
		return out, nil
	}
	for p, err := range w.unclaimed(ctx) {
		if err != nil {
			return nil, err
		}
		l := Listed{ItemInfo: pipeline.ItemInfo{Stage: listUnclaimed, Key: p.url, State: "waiting", Reason: unclaimedNoSite}, Summary: p.source}
		switch {
		case p.site != "":
			l.Reason, l.Summary = unclaimedNotChosen, p.source+": "+p.site+" would read it"
		case p.lists != "":
			l.Reason, l.Summary = unclaimedListing, p.source+": of "+p.lists+"; discover: [listing] reads it"
		}
		if (q.Reason == "" || q.Reason == l.Reason) && strings.Contains(p.url, q.Source) {
			out = append(out, l)
		}
	}
	return q.sampled(out), nil
}
