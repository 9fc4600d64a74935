package scrapers

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"testing"

	"assay/corpus"
)

// siteOfKind names the site that reads a kind of capture, where the kind does not begin with its name.
var siteOfKind = map[string]string{
	"indiatoday-factcheck": "indiatoday", "reuters-factcheck": "reuters", "telemundo-factcheck": "telemundo", "mafindo-item": "mafindo",
	"factly-wpjson": "factly", "wp-json-post": "thip", "wp-json-list": "tsek", "ap-article": "ap_fact_check",
}

// reviewKinds are the kinds of captures that the sites of this package read, PolitiFact's apart.
var reviewKinds = []string{
	"20minutes-article", "afp-article", "africacheck-article", "altnews-article", "ap-article", "boomlive-article", "climatefactchecks-article",
	"desifacts-article", "efe-article", "estadao-article", "factcheckorg-article", "factly-article", "factly-wpjson", "indiatoday-factcheck",
	"lupa-article", "mafindo-item", "newtral-article", "polygraph-article", "reuters-factcheck", "snopes-claim", "telemundo-factcheck",
	"tfc-article", "thequint-article", "verafiles-article", "vishvas-article", "wp-json-post",
}

var reviewLists = []string{"africacheck-list", "climatefactchecks-list", "factcheckorg-list", "snopes-list", "wp-json-list"}

func siteOf(t *testing.T, kind string) Site {
	t.Helper()
	name := siteOfKind[kind]
	if name == "" {
		name, _, _ = strings.Cut(kind, "-")
	}
	s, err := SiteNamed(name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// capturedAt returns the address of a capture. Where the index has none, the page's own is in the expected
// values or in the page.
func capturedAt(c capture, s Site) string {
	for _, a := range []string{c.url, c.strOr("url"), c.strOr("link")} {
		if strings.HasPrefix(a, "http") {
			return a
		}
	}
	switch c.file {
	case "snopes/claim-2021-design-fragment-fdr.html":
		return "https://www.snopes.com/fact-check/biden-fdr-television/"
	case "factcheckers-other/mafindo-api-item.json":
		return "https://yudistira.turnbackhoax.id/api/antihoax/6897"
	case "factcheckers-other/factly-wp-post.json":
		return "https://factly.in/wp-json/wp/v2/posts/30059"
	case "africacheck/list-drupal-ajax.json":
		return "https://africacheck.org/views/ajax"
	case "factcheckers-other/climate-fact-checks-list.html":
		return "https://climatefactchecks.org/page/2/"
	case "factcheckers-other/tsek-wp-blocks.json":
		return "https://www.tsek.ph/wp-json/newspack-blocks/v1/articles?postsToShow=20&page=2"
	}
	return "https://" + s.Host + "/"
}

func (c capture) strOr(key string) string {
	s, _ := c.str(key)
	return s
}

func TestRealReviewPages(t *testing.T) {
	dir := realFolder(t)
	y := &tally{right: map[string]int{}, total: map[string]int{}}
	pages, claims, excluded := 0, 0, 0
	ids := map[string]string{}
	for _, c := range captures(t, dir, reviewKinds...) {
		site := siteOf(t, c.kind)
		address := capturedAt(c, site)
		p := realPage(t, address, c.body)
		got, err := site.Parse(p)
		pages++
		if c.kind == "ap-article" || c.strOr("is_claim") == "false" {
			var ex *corpus.ExcludedError
			if excluded++; !errors.As(err, &ex) || ex.Reason != "not_a_fact_check" {
				t.Errorf("%s: %d claims, %v, want the exclusion not_a_fact_check", c.file, len(got), err)
			}
			continue
		}
		if err != nil || len(got) != 1 {
			t.Errorf("%s: %d claims, %v", c.file, len(got), err)
			continue
		}
		claim := got[0]
		claims++
		t.Logf("%-14s %-20q %-14s flags %v", site.Name, claim.RatingRaw, claim.Verdict6, claim.Flags)
		if other, ok := ids[claim.ID]; ok {
			t.Logf("%s and %s are one claim", other, c.file) // a page and the post that it is made of
		}
		ids[claim.ID] = c.file
		if !site.Recognise("", claim.ReviewURL) || site.isHost(corpus.Host(claim.ReviewURL)) == false {
			t.Errorf("%s: review %s is no item of %s", c.file, claim.ReviewURL, site.Name)
		}
		checkReview(t, y, site, c, claim)
	}
	report(t, y, 1)
	t.Logf("%d pages: %d claims, %d exclusions", pages, claims, excluded)
	if claims < 34 || excluded != 3 {
		t.Errorf("%d claims and %d exclusions", claims, excluded)
	}
}

// checkReview compares a claim with what the index says of its page.
func checkReview(t *testing.T, y *tally, site Site, c capture, claim corpus.Claim) {
	t.Helper()
	want := func(key string) (string, bool) {
		raw, ok := c.want[key]
		if !ok {
			return "", false
		}
		var list []string
		if json.Unmarshal(raw, &list) == nil {
			return corpus.Space(first(list)), true
		}
		s, _ := c.str(key)
		return corpus.Space(s), true
	}
	check := func(key, got string) {
		if w, ok := want(key); ok {
			y.check(key, c.file, got, w)
		}
	}
	check("title", claim.Title)
	check("claim", claim.Text)
	if starts, ok := want("claim_starts"); ok {
		y.check("claim_starts", c.file, claim.Text[:min(len(claim.Text), len(starts))], starts)
	}
	for _, key := range []string{"rating", "verdict_word"} {
		if w, ok := want(key); ok {
			y.check("rating", c.file, verdictOf(site, claim.RatingRaw), verdictOf(site, w))
		}
	}
	if date, ok := want("date"); ok {
		y.check("date", c.file, claim.ReviewDate, date[:10])
	}
	check("claim_date", claim.StatedDate)
	check("claimant", claim.Speaker)
	for _, key := range []string{"author", "article_author"} {
		if w, ok := want(key); ok {
			y.check("author", c.file, fmt.Sprint(slices.Contains(claim.Authors, w)), "true")
		}
	}
	if w, ok := want("claimreviews"); ok {
		found, err := ClaimReviews(realPage(t, capturedAt(c, site), c.body))
		if err != nil {
			t.Fatal(err)
		}
		y.check("claimreviews", c.file, fmt.Sprint(len(found.Items)), w)
	}
	if w, ok := want("url"); ok && strings.HasPrefix(w, "http") {
		y.check("url", c.file, claim.ReviewURL, w)
	}
}

// verdictOf writes a rating as the site's map has it: readers may see another language than machines.
func verdictOf(site Site, raw string) string {
	if site.Ratings != nil {
		if r, ok := site.Ratings.Map(raw); ok {
			return r.Slug
		}
	}
	return corpus.Slug(raw)
}

func (s Site) isHost(host string) bool { return host == s.Host || slices.Contains(s.Hosts, host) }

// report prints how many values are as expected and fails below a share.
func report(t *testing.T, y *tally, bar float64) {
	t.Helper()
	var fields []string
	for f := range y.total {
		fields = append(fields, f)
	}
	sort.Strings(fields)
	for _, f := range fields {
		share := float64(y.right[f]) / float64(y.total[f])
		t.Logf("%-13s %3d of %3d  %6.2f %%", f, y.right[f], y.total[f], 100*share)
		if share < bar {
			t.Errorf("%s falls below the bar: %d of %d", f, y.right[f], y.total[f])
		}
	}
	sort.Strings(y.short)
	for _, s := range y.short {
		t.Logf("falls short: %s", s)
	}
}

func TestRealReviewListings(t *testing.T) {
	dir := realFolder(t)
	for _, c := range captures(t, dir, reviewLists...) {
		site := siteOf(t, c.kind)
		address := corpus.CanonicalURL(capturedAt(c, site))
		l, err := site.Discover(t.Context(), folderFetcher{address: c.body}, address)
		if err != nil {
			t.Errorf("%s: %v", c.file, err)
			continue
		}
		if len(l.Refs) == 0 {
			t.Errorf("%s: no refs", c.file)
			continue
		}
		if href, ok := c.str("first_href"); ok && l.Refs[0].URL != corpus.ResolveURL(address, href) {
			t.Errorf("%s: first = %s, want %s", c.file, l.Refs[0].URL, href)
		}
		if n, ok := c.str("items"); ok && n != fmt.Sprint(len(l.Refs)+repeated[c.file]) {
			t.Errorf("%s: %d refs, want %s", c.file, len(l.Refs), n)
		}
		t.Logf("%-40s %d refs, %d dates, next %q, notes %v", c.file, len(l.Refs), len(l.Modified), l.Next, l.Notes)
	}
}

// repeated counts the items that a captured list shows twice: they are one reference.
var repeated = map[string]int{"snopes/list-fragment-2018.html": 1}

// Captured sitemaps lead to the items of their sites, in whatever section these stand.
func TestRealSitemapsLeadToItems(t *testing.T) {
	dir := realFolder(t)
	want := map[string]struct {
		site Site
		refs int
		some string
	}{
		"sitemaps/desifacts-urlset.xml": {desifacts, 28, "https://www.desifacts.org/covid-19/omicron-variant-more-deadly"},
		"sitemaps/newtral-urlset.xml":   {newtral, 896, "https://www.newtral.es/montero-el-tc-ha-declarado-en-sus-sucesivas-sentencias-que-las-leyes-fiscales-no-tienen-efectos-retroactivos/20181114/"},
	}
	for _, c := range captures(t, dir, "sitemap-urlset") {
		w, ok := want[c.file]
		if !ok {
			t.Errorf("nothing is said about %s", c.file)
			continue
		}
		address := "https://" + w.site.Host + "/sitemap.xml"
		l, err := w.site.Discover(t.Context(), folderFetcher{address: c.body}, address)
		if err != nil || len(l.Refs) != w.refs || !slices.ContainsFunc(l.Refs, func(r corpus.Ref) bool { return r.URL == w.some }) {
			t.Errorf("%s: %d refs, %v; want %d with %s", c.file, len(l.Refs), err, w.refs, w.some)
		}
	}
}
