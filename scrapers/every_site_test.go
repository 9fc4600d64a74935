package scrapers

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"assay/corpus"
	"assay/fetch"

	"github.com/PuerkitoBio/goquery"
	gocmp "github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"
)

// The trials HD-02, HD-06 and HD-08 hold for every site. Which form of a trial a site is given is told by its
// registration and its fixtures alone, so that a new site is tried without a word here. What a trial is about
// and a site does not have is no reason to leave it out: a page whose site reads no ClaimReview gets a broken
// one, and a site that lists by pages has to refuse a feed.
func TestTrialsOfEverySite(t *testing.T) {
	for _, site := range All {
		var items []fixture
		for _, f := range fixtures(t, site.Name) {
			if got := readItem(site, f.page(t)); !f.listing() && ids(got) != nil {
				items = append(items, f)
			}
		}
		if items == nil {
			t.Errorf("%s has no fixture of an item", site.Name)
			continue
		}
		t.Run(site.Name+"/HD-02", func(t *testing.T) { brokenMarkupOf(t, site, items) })
		t.Run(site.Name+"/HD-06", func(t *testing.T) { datesOf(t, site, items) })
		t.Run(site.Name+"/HD-08", func(t *testing.T) { leadsOf(t, site, items) })
	}
}

// ids are those of what an item page tells, in its order; nil for a page that tells nothing.
func ids(o outcome) (out []string) {
	for _, c := range o.Claims {
		out = append(out, c.ID)
	}
	for _, d := range o.Documents {
		out = append(out, d.ID)
	}
	return out
}

// reply reports whether a fixture is the reply of an interface, which is no page and names its own records.
func (f fixture) reply() bool {
	return filepath.Ext(f.file) == ".reply" || bytes.HasPrefix(f.body, []byte("{"))
}

// with returns a fixture with another body.
func (f fixture) with(body string) fixture { f.body = []byte(body); return f }

// at returns a fixture at another address.
func (f fixture) at(address string) fixture { f.address = address; return f }

// inHead returns a page with something at the start of its head, ok is false for what is no page.
func (f fixture) inHead(what string) (_ fixture, ok bool) {
	before, after, ok := strings.Cut(string(f.body), "<head>")
	return f.with(before + "<head>" + what + after), ok
}

// readsReviews reports whether a site looks for anything of a claim in a ClaimReview.
func readsReviews(site Site) bool {
	return slices.ContainsFunc(site.Layouts, func(l Layout) bool {
		return l.ClaimReview || slices.ContainsFunc(l.Fields, func(f Field) bool {
			return slices.ContainsFunc(f.From, func(from string) bool { return readPlace(from).review != "" })
		})
	})
}

var (
	ldScript    = regexp.MustCompile(`(?s)(<script type="application/ld\+json">)(.*?)(</script>)`)
	spokenClaim = regexp.MustCompile(`("claimReviewed"\s*:\s*\[?\s*"(?:[^ "]+ )?)`)
)

const cutReview = `<script type="application/ld+json">{"@context":"https://schema.org","@type":"ClaimReview","claim</script>`

func brokenMarkupOf(t *testing.T, site Site, items []fixture) {
	tried := 0
	for _, f := range items {
		body, sound := string(f.body), readItem(site, f.page(t))
		switch {
		case readsReviews(site):
			if !spokenClaim.MatchString(body) {
				continue // a page of a layout without one
			}
			tried++
			// Raw control characters and a semicolon are mended, and the claim says so.
			mended := f.with(spokenClaim.ReplaceAllString(ldScript.ReplaceAllString(body, "$1$2;$3"), "$1\n\t"))
			got := readItem(site, mended.page(t))
			if diff := gocmp.Diff(ids(sound), ids(got)); diff != "" {
				t.Errorf("%s mended: %s%s", f.file, got.Error, diff)
			}
			for i, c := range got.Claims {
				if c.Text != sound.Claims[i].Text || !corpus.HasFlag(c.Flags, corpus.FlagRepaired) {
					t.Errorf("%s mended: claim %q with flags %q, want %q", f.file, c.Text, c.Flags, sound.Claims[i].Text)
				}
			}
			// What is cut off is read by the selectors, or is a failure that names the page.
			cut := f.with(ldScript.ReplaceAllStringFunc(body, func(s string) string {
				m := ldScript.FindStringSubmatch(s)
				return m[1] + m[2][:min(40, len(m[2]))] + m[3]
			}))
			got = readItem(site, cut.page(t))
			if p := cut.page(t); got.Claims == nil && !strings.Contains(got.Error, p.Final) {
				t.Errorf("%s cut off: %+v, want claims or an error that names %s", f.file, got, p.Final)
			}
			for _, c := range got.Claims {
				if !corpus.HasFlag(c.Flags, corpus.FlagBadMarkup) || c.RatingRaw == "" {
					t.Errorf("%s cut off: claim %q, rating %q, flags %q", f.file, c.Text, c.RatingRaw, c.Flags)
				}
			}
			counted(t, site, cut)
		case site.Parse != nil:
			// The page tells the claim by itself: a broken ClaimReview on it is counted and takes nothing away.
			broken, page := f.inHead(cutReview)
			if !page {
				continue // a post as an interface gives it, which has no head
			}
			tried++
			got := readItem(site, broken.page(t))
			if diff := gocmp.Diff(sound.Claims, unflagged(got.Claims)); diff != "" {
				t.Errorf("%s beside a broken ClaimReview: %s (-sound +broken)\n%s", f.file, got.Error, diff)
			}
			counted(t, site, broken)
		case f.reply():
			// A reply that breaks off is a failure that names it, and no record.
			tried++
			cut := f.with(body[:len(body)/2])
			if got := readItem(site, cut.page(t)); got.Documents != nil || !strings.Contains(got.Error, cut.page(t).Final) {
				t.Errorf("%s cut off: %+v, want an error that names %s", f.file, got, cut.page(t).Final)
			}
		default:
			// An article's markup is mended, or passed over.
			tried++
			broken, _ := f.inHead(`<script type="application/ld+json">{"@type":"NewsArticle","datePublished":"19</script>`)
			body := strings.ReplaceAll(string(broken.body), `}</script>`, "};\n</script>")
			got := readItem(site, f.with(strings.ReplaceAll(body, `"headline":"`, "\"headline\":\"\t")).page(t))
			if diff := gocmp.Diff(sound, got); diff != "" {
				t.Errorf("%s with broken markup (-sound +broken):\n%s", f.file, diff)
			}
		}
	}
	if tried == 0 {
		t.Errorf("none of %d items has the markup that the site reads (ClaimReview: %v)", len(items), readsReviews(site))
	}
}

// unflagged are claims without the flag of bad markup.
func unflagged(claims []corpus.Claim) []corpus.Claim {
	for i := range claims {
		claims[i].Flags = slices.DeleteFunc(claims[i].Flags, func(s string) bool { return s == corpus.FlagBadMarkup })
		if len(claims[i].Flags) == 0 {
			claims[i].Flags = nil
		}
	}
	return claims
}

// counted holds that the bad markup of a page is counted under its address, and raises an alarm.
func counted(t *testing.T, site Site, f fixture) {
	t.Helper()
	p := f.page(t)
	var canary Canary
	canary.Add(Observe(site, p))
	if bad := canary.Sites[site.Name].Bad; !slices.Equal(bad, []string{p.Final}) {
		t.Errorf("%s: counted %v, want %s", f.file, bad, p.Final)
	}
	if !slices.ContainsFunc(canary.Alarms(), func(a Alarm) bool { return a.Kind == AlarmMarkup && a.URL == p.Final }) {
		t.Errorf("%s: no alarm about the markup in %v", f.file, canary.Alarms())
	}
}

// zoned are the dates of HD-06: as printed, the day that stands there, and what is known of the moment.
var zoned = []struct{ printed, day, value string }{
	{"Tue, 03 Jun 2025 21:30:00 EDT", "2025-06-03", "2025-06-04T01:30:00Z"},
	{"Wed, 15 Jan 2025 23:10:00 PST", "2025-01-15", "2025-01-16T07:10:00Z"},
	{"Sat, 01 Mar 2025 08:00:00 XQT", "2025-03-01", "2025-03-01"},
}

func datesOf(t *testing.T, site Site, items []fixture) {
	before := time.Local
	defer func() { time.Local = before }()
	for _, f := range items {
		time.Local = time.UTC
		want := readItem(site, f.page(t))
		for _, zone := range []*time.Location{time.FixedZone("Asia/Tokyo", 9*3600), time.FixedZone("Pacific/Honolulu", -10*3600)} {
			time.Local = zone
			if diff := gocmp.Diff(want, readItem(site, f.page(t))); diff != "" {
				t.Errorf("%s in %s:\n%s", f.file, zone, diff)
			}
		}
		switch {
		case site.Parse != nil:
			daysOf(t, site, f, want.Claims)
		case !f.reply(): // the dates of records are told by their interfaces' formats, which have no names of zones
			for _, d := range zoned {
				page, _ := f.inHead(`<script type="application/ld+json">{"@type":"NewsArticle","datePublished":"` + d.printed + `"}</script>`)
				got := readItem(site, page.page(t))
				if len(got.Documents) != 1 || got.Documents[0].PublishedAt != d.value || corpus.HasFlag(got.Documents[0].Flags, corpus.FlagZoneUnknown) != (d.day == d.value) {
					t.Errorf("%s with %q: %+v", f.file, d.printed, got)
				}
			}
		}
	}
	feedDatesOf(t, site, items)
}

// daysOf holds that a claim keeps the day that its page prints, whatever zone is printed with it, and that a
// date which is none leaves the claim without one, and says so. A place with a pattern takes a day out of a
// text, so that no zone gets in.
func daysOf(t *testing.T, site Site, f fixture, claims []corpus.Claim) {
	r, err := readPage(site.Layouts, f.page(t))
	if err != nil {
		t.Fatal(err)
	}
	field := r.field(FieldDate)
	if field == nil {
		return
	}
	for _, from := range field.From {
		if len(r.at(field, from, r.boxes[0])) == 0 {
			continue
		}
		if readPlace(from).pattern != nil {
			if claims[0].ReviewDate == "" {
				t.Errorf("%s: the day at %s is not read", f.file, from)
			}
			return
		}
		for _, d := range zoned {
			if got := readItem(site, f.with(redated(t, r.page, from, d.printed)).page(t)); len(got.Claims) != len(claims) || got.Claims[0].ReviewDate != d.day {
				t.Errorf("%s with %q at %s: %s %+v", f.file, d.printed, from, got.Error, got.Claims)
			}
		}
		broken := f.with(r.page.Text())
		for _, from := range field.From {
			broken = f.with(redated(t, broken.page(t), from, "on 2021-13-45"))
		}
		got := readItem(site, broken.page(t))
		if len(got.Claims) != len(claims) || got.Claims[0].ReviewDate != "" || !corpus.HasFlag(got.Claims[0].Flags, corpus.FlagDateUnread) {
			t.Errorf("%s with a date that is none at %s: %s %+v", f.file, from, got.Error, got.Claims)
		}
		return // for the first place that says something is believed
	}
	if claims[0].ReviewDate != "" {
		t.Errorf("%s: %s is read where no place of the layout has a date", f.file, claims[0].ReviewDate)
	}
}

// redated is a page with another date at a place of a field.
func redated(t *testing.T, p *fetch.Page, from, printed string) string {
	t.Helper()
	place := readPlace(from)
	if place.review != "" {
		return regexp.MustCompile(`("datePublished"\s*:\s*")[^"]*`).ReplaceAllString(p.Text(), "${1}"+printed)
	}
	root, err := html.Parse(strings.NewReader(p.Text()))
	if err != nil {
		t.Fatal(err)
	}
	at := goquery.NewDocumentFromNode(root).Find(place.selector)
	switch {
	case place.attribute != "":
		at.SetAttr(place.attribute, printed)
	case place.label != "":
		at.SetText(place.label + ": " + printed)
	default:
		at.SetText(printed)
	}
	var b bytes.Buffer
	if err := html.Render(&b, root); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// plainItem is an item that a listing can lead to by its address alone.
func plainItem(t *testing.T, site Site, items []fixture) string {
	t.Helper()
	for _, f := range items {
		if site.Recognise("", f.address) {
			return corpus.CanonicalURL(f.address)
		}
	}
	t.Fatal("no item is recognised")
	return ""
}

// listing is what a site makes of a feed with some items at its first listing; ok is false where its listings
// are no feeds, which it has to say, and its fixtures have to bear out.
func listing(t *testing.T, site Site, entries string) (l Listing, ok bool) {
	t.Helper()
	at := site.Start("", nil)[0]
	feed := `<?xml version="1.0"?><rss version="2.0"><channel><title>All</title>` + entries + `</channel></rss>`
	l, err := site.Discover(t.Context(), folderFetcher{at: []byte(feed)}, at)
	if err == nil {
		return l, true
	}
	if m := asMarkupError(err); m == nil || m.URL != at {
		t.Errorf("a feed at %s: %v", at, err)
	}
	for _, f := range fixtures(t, site.Name) {
		if feed, err := ReadFeed(f.address, nil, f.body); f.listing() && err == nil && len(feed.Entries) > 0 {
			t.Errorf("%s is a feed, and the site refuses one", f.file)
		}
	}
	return Listing{}, false
}

func feedDatesOf(t *testing.T, site Site, items []fixture) {
	address := plainItem(t, site, items)
	for _, zone := range []*time.Location{time.UTC, time.FixedZone("Asia/Tokyo", 9*3600)} {
		time.Local = zone
		for _, d := range zoned {
			l, ok := listing(t, site, fmt.Sprintf("<item><link>%s</link><pubDate>%s</pubDate></item>", html.EscapeString(address), d.printed))
			if diff := gocmp.Diff(map[string]string{address: d.value}, l.Modified); ok && diff != "" {
				t.Errorf("in %s, changes by a feed (-want +got):\n%s", zone, diff)
			}
		}
	}
}

// ampTail says that the path of an address is an article's, whose AMP form may hang behind it.
var ampTail = regexp.MustCompile(`/[^/]*-[^/]*-[^/]*/?$|/[^/]*\d{4}[^/]*/?$`)

// leads are other ways of writing an address: with what tells where it was found, and with its AMP forms.
func (f fixture) leads(t *testing.T) (out []string) {
	t.Helper()
	u, err := url.Parse(f.address)
	if err != nil {
		t.Fatal(err)
	}
	change := func(edit func(u *url.URL)) {
		v := *u
		edit(&v)
		out = append(out, v.String())
	}
	query := func(more string) {
		change(func(u *url.URL) { u.RawQuery = strings.TrimPrefix(u.RawQuery+"&"+more, "&") })
	}
	port := map[string]string{"http": ":80", "https": ":443"}[u.Scheme]
	query("ref=rss")
	query("utm_source=x&fbclid=abc")
	change(func(u *url.URL) { u.Fragment = "verdict" })
	out = append(out, strings.ToUpper(u.Scheme)+"://"+strings.ToUpper(u.Host)+port+strings.TrimPrefix(f.address, u.Scheme+"://"+u.Host)+"#verdict")
	if f.reply() {
		return out // an interface has no AMP form
	}
	query("amp=1")
	query("outputType=amp")
	change(func(u *url.URL) { u.Host = "amp." + u.Host })
	change(func(u *url.URL) { u.Host = "m." + u.Host })
	if ampTail.MatchString(u.EscapedPath()) && !strings.HasSuffix(u.Path, ".html") {
		change(func(u *url.URL) {
			path, slash := strings.CutSuffix(u.Path, "/")
			if u.Path, u.RawPath = path+"/amp", ""; slash {
				u.Path += "/"
			}
		})
	}
	return out
}

var canonicalOf = regexp.MustCompile(`<link rel="canonical"[^>]*>`)

func leadsOf(t *testing.T, site Site, items []fixture) {
	for _, f := range items {
		if !site.Recognise("", f.address) {
			continue // the answer of an interface, which stands for a page and is read under its address
		}
		bare := f.with(canonicalOf.ReplaceAllString(string(f.body), ""))
		want := ids(readItem(site, bare.page(t)))
		entries := []string{"<item><link>" + html.EscapeString(f.address) + "</link></item>"}
		for _, lead := range f.leads(t) {
			if !site.Recognise("", corpus.PlainURL(lead)) { // by which listings take it up
				t.Errorf("%s is not recognised", lead)
			}
			if got, want := corpus.IdentityURL(lead), corpus.IdentityURL(f.address); got != want {
				t.Errorf("%s is the page %s, want %s", lead, got, want)
			}
			if diff := gocmp.Diff(want, ids(readItem(site, bare.at(lead).page(t)))); diff != "" {
				t.Errorf("%s by %s (-want +got):\n%s", f.file, lead, diff)
			}
			entries = append(entries, "<item><link>"+html.EscapeString(lead)+"</link></item>")
		}
		for range 2 {
			if l, ok := listing(t, site, strings.Join(entries, "")); ok {
				pages, found := map[string]bool{}, map[string]bool{}
				for _, ref := range l.Refs {
					pages[corpus.CleanURL(ref.URL)] = true // which is what is fetched
					found[cmp.Or(ref.Found, ref.URL)] = true
				}
				if want := map[string]bool{corpus.CleanURL(f.address): true}; !maps.Equal(pages, want) || len(found) != len(entries) {
					t.Errorf("%s: leads to %v, want %v; %d spellings of %d are kept", f.file, pages, want, len(found), len(entries))
				}
			}
			slices.Reverse(entries)
		}
		if f.reply() {
			continue // a record has an address of its own, whichever reply holds it
		}
		// Another host of the domain, whose page says where it belongs.
		u, err := url.Parse(f.address)
		if err != nil {
			t.Fatal(err)
		}
		u.Host = "alias." + corpus.RegistrableDomain(u.Host)
		if linked, page := bare.inHead(`<link rel="canonical" href="` + f.address + `">`); page {
			if diff := gocmp.Diff(want, ids(readItem(site, linked.at(u.String()).page(t)))); diff != "" {
				t.Errorf("%s on %s (-want +got):\n%s", f.file, u.Host, diff)
			}
		}
		// A parameter that names a page parts pages.
		id := func(n string) []string {
			u.Host, u.RawQuery, u.Fragment = corpus.Host(f.address), "id="+n, ""
			return ids(readItem(site, bare.at(u.String()).page(t)))
		}
		if seven, eight := id("7"), id("8"); seven == nil || slices.ContainsFunc(seven, func(id string) bool { return slices.Contains(eight, id) }) {
			t.Errorf("%s: pages ?id=7 and ?id=8 are %v and %v", f.file, seven, eight)
		}
	}
}
