package scrapers

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"assay/corpus"
	"assay/fetch"

	"github.com/google/go-cmp/cmp"
)

// claimPages calls visit with every fixture of every fact-checker that tells a claim.
func claimPages(t *testing.T, visit func(t *testing.T, site Site, f fixture, claims []corpus.Claim)) {
	t.Helper()
	for _, site := range All {
		if site.Parse == nil {
			continue
		}
		for _, f := range fixtures(t, site.Name) {
			if f.listing() {
				continue
			}
			if claims, err := site.Parse(f.page(t)); err == nil {
				t.Run(site.Name+"/"+f.file, func(t *testing.T) { visit(t, site, f, claims) })
			}
		}
	}
}

// HD-02, the page of the trial: two scripts, one of them broken.
func TestHD02TwoScripts(t *testing.T) {
	const address = "https://leadstories.com/hoax-alert/2021/06/fact-check-tolls.html"
	page := `<h1>Tolls</h1><script type="application/ld+json">{"@type":"ClaimReview","claimReviewed":"Bridge tolls` + "\n" + `doubled` + "\t" + `overnight","reviewRating":{"alternateName":"False"}};</script>` +
		`<script type="application/ld+json">{"@type":"ClaimReview","claimReviewed":"Tolls fell","reviewRating":{"alternateName":"True"}}</script>`
	got, err := leadstories.Parse(fixture{"x.html", address, []byte(page)}.page(t))
	if err != nil || len(got) != 2 {
		t.Fatalf("%d claims, %v", len(got), err)
	}
	var lines []string
	for _, c := range got {
		lines = append(lines, fmt.Sprintf("%d %s/%s repaired %v", c.Position, c.Text, c.RatingRaw, corpus.HasFlag(c.Flags, corpus.FlagRepaired)))
	}
	if diff := cmp.Diff([]string{"0 Bridge tolls doubled overnight/False repaired true", "1 Tolls fell/True repaired false"}, lines); diff != "" {
		t.Errorf("claims (-want +got):\n%s", diff)
	}
}

// A rating that no map has is queued, whatever word it is, and a page without one is no claim.
func TestUnknownRatingsOfSites(t *testing.T) {
	claimPages(t, func(t *testing.T, site Site, f fixture, claims []corpus.Claim) {
		word := claims[0].RatingRaw
		if word == "" {
			return
		}
		body := string(f.body)
		for _, w := range []string{word, strings.ReplaceAll(word, " ", "-"), strings.ToLower(word)} {
			body = strings.ReplaceAll(body, w, "Wobbly zigzag")
		}
		got, err := site.Parse(f.with(body).page(t))
		if err != nil {
			if asMarkupError(err) == nil && excludedReason(err) == "" {
				t.Errorf("%v", err)
			}
			return
		}
		for _, c := range got {
			if c.RatingRaw == "Wobbly zigzag" && (c.Verdict6 != "" || !corpus.HasFlag(c.Flags, corpus.FlagUnmapped)) {
				t.Errorf("rating %q became %q with flags %q", c.RatingRaw, c.Verdict6, c.Flags)
			}
		}
	})
}

// A source's words are consistent: every entry of a site has a page that shows it, no word is both mapped and queued,
// and spellings that differ in marks alone do not part.
func TestRatingLedger(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range RatingMaps() {
		if seen[m.Source] {
			t.Errorf("%s has two maps", m.Source)
		}
		seen[m.Source] = true
		loose := map[string]corpus.Rating{}
		for word, r := range m.Ratings {
			if word != corpus.Slug(word) || r.Slug == "" || (r.Verdict == "") == (r.Exclude == "") {
				t.Errorf("%s: entry %q is %+v", m.Source, word, r)
			}
			if _, err := SiteNamed(m.Source); err == nil && !strings.HasPrefix(r.Evidence, "https://") {
				t.Errorf("%s: %q has no page that shows it", m.Source, word)
			}
			if _, both := m.Queued[word]; both {
				t.Errorf("%s: %q is mapped and queued", m.Source, word)
			}
			key := strings.NewReplacer("_", "", ",", "", ".", "").Replace(word)
			if had, ok := loose[key]; ok && had.Verdict != r.Verdict {
				t.Errorf("%s: spellings of %q stand for %s and %s", m.Source, key, had.Verdict, r.Verdict)
			}
			loose[key] = r
		}
		for word, page := range m.Queued {
			if word != corpus.Slug(word) || !strings.HasPrefix(page, "https://") || !m.Knows(word) {
				t.Errorf("%s: queued %q with page %q", m.Source, word, page)
			}
			if r, ok := m.Map(word); ok {
				t.Errorf("%s: queued %q is mapped to %+v", m.Source, word, r)
			}
		}
	}
	for _, s := range All {
		if s.Ratings != nil && !seen[s.Ratings.Source] {
			t.Errorf("the map of %s is not listed", s.Name)
		}
	}
}

// Where captures print best and worst numbers, the verdict stands where the number does.
func TestRealRatingsFitTheirNumbers(t *testing.T) {
	dir := realFolder(t)
	n := 0
	for _, c := range captures(t, dir, reviewKinds...) {
		site := siteOf(t, c.kind)
		found, err := ClaimReviews(realPage(t, capturedAt(c, site), c.body))
		if err != nil || site.Ratings == nil {
			continue
		}
		for _, r := range found.Items {
			at, ok := r.Position()
			rating, mapped := site.Ratings.Map(r.Rating)
			point, graded := rating.Verdict.Ordinal()
			if !ok || !mapped || !graded {
				continue
			}
			n++
			if d := at - float64(point)/4; d > 0.3 || d < -0.3 {
				t.Errorf("%s: %q is %s, and its number stands at %.2f", c.file, r.Rating, rating.Verdict, at)
			}
		}
	}
	if n < 10 {
		t.Errorf("%d ratings with numbers were compared", n)
	}
	t.Logf("%d ratings with numbers", n)
}

func TestCanary(t *testing.T) {
	var c Canary
	page := func(i int, has bool, rating string, unknown ...string) Observation {
		return Observation{Site: "x", URL: fmt.Sprintf("https://x.example/%d", i), Layout: "l", Fields: map[string]bool{"claim": true, "date": has}, Ratings: []string{rating}, Unknown: unknown, Reviews: 1}
	}
	for i := range 20 {
		c.Add(page(i, i%10 != 0, "False"))
	}
	c.AddListing(Site{Name: "x"}, "https://x.example/list", Listing{Refs: make([]corpus.Ref, 10)}, nil)
	if got := c.Alarms(); got != nil {
		t.Errorf("a healthy site raises %v", got)
	}
	var later Canary
	for i := range 20 {
		o := page(i, i%2 == 0, "Wobbly", "Wobbly")
		o.Reviews = 0
		later.Add(o)
	}
	later.AddListing(Site{Name: "x"}, "https://x.example/list?page=2", Listing{}, nil)
	later.AddListing(Site{Name: "x"}, "https://x.example/feed/?paged=2", Listing{}, nil)
	later.AddListing(Site{Name: "x", Cards: ".card"}, "https://x.example/list", Listing{}, nil)
	var lines []string
	for _, a := range append(later.Alarms(), later.Since(c)...) {
		lines = append(lines, a.String())
	}
	want := []string{
		"x: emptied at https://x.example/list: want .card; has no item",
		"x: missing date at all pages: want on 80 % of 20 pages; has on 10 pages",
		"x: rating rating at all pages: want words of the scale; has 20 of 20 claims with Wobbly",
		"x: emptied at all pages: want 10.00 items per listing, as before; has 0.00",
		"x: claimreview at all pages: want 1.00 ClaimReviews per page, as before; has 0.00",
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("alarms (-want +got):\n%s", diff)
	}
}

// Documents of a newsroom are read also where a page is built otherwise, so what counts is how many pages have a field
// where it is expected, against the last release.
func TestCanaryOfDocuments(t *testing.T) {
	const page = `<html><head><title>Wells</title>%s</head><body><main><h1>Wells of Averil</h1><div class="%s">` +
		`<p>The village of Averil has 2 wells, the office of the district says in its report of the spring, and one of them is dry.</p>` +
		`<p>The office counted the wells of four villages, and will count those of the others before the next session of the council.</p></div></main></body></html>`
	const published = `<meta property="article:published_time" content="2023-03-07T10:00:00Z">`
	crawl := func(head, class string) (c Canary) {
		for i := range 12 {
			c.Add(Observe(who, fixture{"x.html", fmt.Sprintf("https://www.who.int/news/item/07-03-2023-wells-%d", i), fmt.Appendf(nil, page, head, class)}.page(t)))
		}
		return c
	}
	whole := crawl(published, "sf-detail-body-wrapper")
	if got := append(whole.Alarms(), whole.Since(whole)...); got != nil || whole.Sites["who"].Pages != 12 {
		t.Errorf("pages as expected raise %v", got)
	}
	other := crawl("", "of-a-new-design")
	var lines []string
	for _, a := range append(other.Alarms()[:1], other.Since(whole)...) {
		lines = append(lines, a.String())
	}
	want := []string{
		"who: missing body at https://www.who.int/news/item/07-03-2023-wells-0: want .sf-detail-body-wrapper p, .sf_colsIn p; has title \"Wells\", body with main",
		"who: missing body at all pages: want 1.00 of the pages have it where it is expected, as before; has 0.00",
		"who: missing date at all pages: want 1.00 of the pages have it where it is expected, as before; has 0.00",
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("alarms (-want +got):\n%s", diff)
	}
}

// Every site that reads articles says by what form, for its canary.
func TestFormsOfArticles(t *testing.T) {
	for _, site := range All {
		if articles := site.Read != nil && site.Tells == nil; articles != (site.form != nil) {
			t.Errorf("%s reads articles: %v; has a form: %v", site.Name, articles, site.form != nil)
		}
	}
}

// A wall raises an alarm of its own, for newsrooms too.
func TestObserveWalls(t *testing.T) {
	p, err := fetch.NewPage("https://www.bbc.com/news/x", http.Header{"Content-Type": {"text/html"}}, []byte("<title>Just a moment...</title><p>Checking your browser before accessing bbc.com</p><script>window._cf_chl_opt={}</script>"), time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	for _, site := range All {
		if alarms := CheckPage(site, p); len(alarms) != 1 || alarms[0].Kind != AlarmBlock || alarms[0].URL != p.Final {
			t.Errorf("%s: %v", site.Name, alarms)
		}
	}
}
