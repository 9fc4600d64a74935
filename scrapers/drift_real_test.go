package scrapers

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"assay/corpus"
	"assay/fetch"

	"github.com/PuerkitoBio/goquery"
	"golang.org/x/net/html"
)

// pageOfBytes makes a page again after an edit.
func pageOfBytes(t *testing.T, p *fetch.Page, body []byte) *fetch.Page {
	t.Helper()
	out, err := fetch.NewPage(p.URL, http.Header{"Content-Type": {"text/html; charset=utf-8"}}, body, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	out.Final = p.Final
	return out
}

// tree parses the page that is edited: for JSON the one that it stands for.
func tree(t *testing.T, p *fetch.Page) (*goquery.Document, *fetch.Page) {
	t.Helper()
	q, err := jsonPage(p)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := goquery.NewDocumentFromReader(strings.NewReader(q.Text()))
	if err != nil {
		t.Fatal(err)
	}
	return doc, q
}

func render(t *testing.T, doc *goquery.Document) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := html.Render(&b, doc.Nodes[0]); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// editsOf are the six edits for one page, as far as its layout lets them be made.
func editsOf(t *testing.T, site Site, p *fetch.Page) []struct {
	name, place string
	kinds       []string
	body        []byte
} {
	type made = struct {
		name, place string
		kinds       []string
		body        []byte
	}
	t.Helper()
	r, err := readPage(site.Layouts, p)
	if err != nil || r.layout == nil {
		t.Fatalf("%s has no layout: %v", p.Final, err)
	}
	var out []made
	for i := range r.layout.Fields {
		f := &r.layout.Fields[i]
		if f.Need == Optional {
			continue
		}
		for _, from := range f.From {
			place := readPlace(from)
			if place.review != "" || len(r.at(f, from, r.boxes[0])) == 0 {
				continue
			}
			// A class, or what else the last part of a selector is known by, has another name.
			doc, _ := tree(t, p)
			last := lastPart(place.selector)
			if !place.optional && renamed(doc, place.selector, last) { // what need not be there may go
				// Where another element is known by the same name, the field seems to have moved there.
				out = append(out, made{"renamed", from, []string{AlarmMissing, AlarmMoved, AlarmLayout}, render(t, doc)})
			}
			// The element stands at the end of the page.
			doc, _ = tree(t, p)
			if at := doc.Find(place.selector); !place.optional && place.label == "" && at.Length() > 0 && strings.ContainsAny(last, ".#[") && strings.Contains(place.selector, " ") {
				nodes := slices.Clone(at.Nodes)
				at.Remove()
				aside := &html.Node{Type: html.ElementNode, Data: "aside", Attr: []html.Attribute{{Key: "class", Val: "new-place"}}}
				doc.Find("body").First().Nodes[0].AppendChild(aside)
				for _, n := range nodes {
					if n.Parent == nil {
						aside.AppendChild(n)
					}
				}
				if doc.Find(place.selector).Length() == 0 {
					out = append(out, made{"moved", from, []string{AlarmMoved, AlarmLayout}, render(t, doc)})
				}
			}
			// The verdict is a word that nobody knows.
			if f.Name == FieldRating && site.Ratings != nil && !(place.optional && place.pattern != nil) { // a pattern knows the words
				doc, _ = tree(t, p)
				if reworded(doc, place, first(r.at(&Field{}, from, r.boxes[0]))) {
					kinds := []string{AlarmRating, AlarmDisagrees}
					if place.pattern != nil {
						kinds = append(kinds, AlarmMissing) // a pattern tells a word from other text by its letters
					}
					out = append(out, made{"new rating", from, kinds, render(t, doc)})
				}
			}
		}
		for _, from := range f.From {
			if place := readPlace(from); place.review != "" && !place.optional && r.layout.ClaimReview {
				for name, change := range reviewEdits[f.Name] {
					if body := change(p.Text()); body != p.Text() {
						kinds := []string{AlarmMissing}
						if name == "new rating" {
							kinds = []string{AlarmRating, AlarmDisagrees}
						}
						out = append(out, made{name, from, kinds, []byte(body)})
					}
				}
			}
		}
	}
	if r.layout.ClaimReview {
		doc, _ := tree(t, p)
		doc.Find(`script[type="application/ld+json"]`).Remove()
		doc.Find(`[itemtype*=ClaimReview]`).Remove()
		out = append(out, made{"ClaimReview gone", "a ClaimReview", []string{AlarmClaimReview}, render(t, doc)})
	}
	return out
}

// reviewEdits are what can be done to a property of a ClaimReview in the text of a page.
var reviewEdits = map[string]map[string]func(string) string{
	FieldClaim: {
		"renamed": func(s string) string { return strings.ReplaceAll(s, "claimReviewed", "claimText") },
		"moved":   func(s string) string { return strings.ReplaceAll(s, `"claimReviewed"`, `"text"`) },
	},
	FieldRating: {
		"renamed":    func(s string) string { return strings.ReplaceAll(s, "alternateName", "ratingText") },
		"new rating": newRating,
	},
}

func newRating(s string) string {
	i := strings.Index(s, `"reviewRating"`)
	if i < 0 {
		return s
	}
	j := strings.Index(s[i:], "alternateName")
	if j < 0 {
		return s
	}
	rest := s[i+j:]
	colon := strings.Index(rest, ":")
	open := colon + strings.Index(rest[colon:], `"`)
	end := open + 1 + strings.Index(rest[open+1:], `"`)
	return s[:i+j] + rest[:open+1] + "Wobbly Zigzag" + rest[end:]
}

// lastPart returns the last compound of a selector.
func lastPart(selector string) string {
	parts := strings.Fields(selector)
	return parts[len(parts)-1]
}

// renamed gives what a selector finds another class, id or attribute. Bare elements become another one.
func renamed(doc *goquery.Document, selector, last string) bool {
	at := doc.Find(selector)
	if at.Length() == 0 {
		return false
	}
	for _, n := range at.Nodes {
		for i, a := range n.Attr {
			switch a.Key {
			case "class", "id", "property", "name", "itemprop", "data-key", "data-testid", "rel":
				n.Attr[i].Val = "of-a-new-design"
			}
		}
		if !strings.ContainsAny(last, ".#[") {
			n.Data, n.DataAtom = "x-new", 0
		}
	}
	return doc.Find(selector).Length() == 0
}

// reworded writes another word where a rating stands.
func reworded(doc *goquery.Document, p place, word string) bool {
	if word == "" {
		return false
	}
	done := false
	at := doc.Find(p.selector)
	if p.label != "" && at.Length() > 0 {
		// The text behind the label, or the element that follows it.
		at = at.FilterFunction(func(_ int, s *goquery.Selection) bool { return p.of(s) != "" }).First()
		if next := at.Next(); !strings.Contains(text(at), word) && next.Length() > 0 {
			at = next
		}
	}
	at.Each(func(_ int, s *goquery.Selection) {
		if p.attribute != "" {
			if v := s.AttrOr(p.attribute, ""); strings.Contains(v, word) {
				s.SetAttr(p.attribute, strings.Replace(v, word, "wobbly-zigzag", 1))
				done = true
			}
			return
		}
		if t := text(s); strings.Contains(t, word) {
			s.SetText(strings.Replace(t, word, "Wobbly Zigzag", 1))
			done = true
		}
	})
	return done
}

// driftCaptures are the item pages of every site of which there is a capture.
func driftCaptures(t *testing.T, dir string) map[string][]*fetch.Page {
	t.Helper()
	out := map[string][]*fetch.Page{}
	for _, c := range captures(t, dir, append(slices.Clone(reviewKinds), "politifact-claim")...) {
		site := siteOf(t, c.kind)
		if alt, _ := c.str("rating_alt"); strings.Contains(alt, "fl") || c.kind == "ap-article" || c.strOr("is_claim") == "false" {
			continue
		}
		out[site.Name] = append(out[site.Name], realPage(t, capturedAt(c, site), c.body))
	}
	return out
}

// No page that was captured raises an alarm.
func TestRealUnchangedPagesRaiseNothing(t *testing.T) {
	dir := realFolder(t)
	n := 0
	for name, pages := range driftCaptures(t, dir) {
		site, _ := SiteNamed(name)
		for _, p := range pages {
			n++
			for _, a := range CheckPage(site, p) {
				t.Errorf("%s", a)
			}
		}
	}
	for _, c := range captures(t, dir, "ap-article", "verafiles-article") {
		site := siteOf(t, c.kind)
		for _, a := range CheckPage(site, realPage(t, capturedAt(c, site), c.body)) {
			t.Errorf("a page that tells no claim: %s", a)
		}
	}
	bulk := 0
	bulkPages(t, dir, func(url string, body []byte, want map[string]string) {
		if bulk++; bulk > 300 {
			return
		}
		for _, a := range CheckPage(politifact, realPage(t, url, body)) {
			t.Errorf("%s", a)
		}
	})
	t.Logf("%d captures and %d packed pages", n, min(bulk, 300))
}

// Every edit of every captured page raises an alarm that names the address, what was looked for and what
// is there now.
func TestRealEditsRaiseAlarms(t *testing.T) {
	dir := realFolder(t)
	counts, sites := map[string]int{}, map[string]map[string]bool{}
	block, err := os.ReadFile(filepath.Join(dir, "blocks", "cloudflare-js-challenge-2020-05.html"))
	if err != nil {
		t.Fatal(err)
	}
	for name, pages := range driftCaptures(t, dir) {
		site, _ := SiteNamed(name)
		sites[name] = map[string]bool{}
		for _, p := range pages {
			edits := editsOf(t, site, p)
			edits = append(edits, struct {
				name, place string
				kinds       []string
				body        []byte
			}{"block page", "a page of", []string{AlarmBlock}, block})
			for _, e := range edits {
				counts[e.name]++
				sites[name][e.name] = true
				alarms := CheckPage(site, pageOfBytes(t, p, e.body))
				i := slices.IndexFunc(alarms, func(a Alarm) bool { return slices.Contains(e.kinds, a.Kind) })
				if i < 0 {
					t.Errorf("%s: %s of %s at %s raises %v", name, e.name, e.place, p.Final, alarms)
					continue
				}
				a := alarms[i]
				if a.URL != p.Final || a.Want == "" || a.Has == "" || a.Site != name || !strings.Contains(a.String(), a.URL) {
					t.Errorf("%s: alarm %+v", e.name, a)
				}
				// The place is named, or the mark of a whole layout that went with it.
				if a.Kind != AlarmLayout && !slices.ContainsFunc(alarms, func(a Alarm) bool { return strings.Contains(a.Want, strings.TrimPrefix(e.place, "?")) }) {
					t.Errorf("%s: %s at %s names another place: %v", name, e.name, e.place, alarms)
				}
			}
		}
	}
	for name, kinds := range sites {
		site, _ := SiteNamed(name)
		must := []string{"renamed", "block page"}
		if site.Ratings != nil {
			must = append(must, "new rating")
		}
		must = append(must, "moved")
		for _, k := range must {
			if !kinds[k] {
				t.Errorf("%s: no edit of the sort %q could be made", name, k)
			}
		}
	}
	t.Logf("%d sites, edits that raised an alarm: %v", len(sites), counts)
}

func TestRealListingEditsRaiseAlarms(t *testing.T) {
	dir := realFolder(t)
	block, err := os.ReadFile(filepath.Join(dir, "blocks", "cloudflare-js-challenge-2020-05.html"))
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for _, c := range captures(t, dir, append(slices.Clone(reviewLists), "politifact-list")...) {
		site := siteOf(t, c.kind)
		address := corpus.CanonicalURL(capturedAt(c, site))
		address = strings.NewReplacer("page=2", "page=1", "page=3", "page=1", "page=5", "page=1", "/page/2/", "/").Replace(address) // a first page may not be empty
		check := func(body []byte) []Alarm {
			l, err := site.Discover(t.Context(), folderFetcher{address: body}, address)
			return CheckListing(site, address, l, err)
		}
		if alarms := check(c.body); len(alarms) > 0 {
			t.Errorf("%s, unchanged: %v", c.file, alarms)
		}
		class := strings.TrimPrefix(strings.SplitN(site.Cards, ",", 2)[0], "article.")
		if i := strings.LastIndexAny(class, ". "); i >= 0 {
			class = strings.TrimPrefix(class[i+1:], ".")
		}
		body := string(c.body)
		edits := map[string]string{
			"renamed":    strings.NewReplacer(class, "of-a-new-design").Replace(body),
			"emptied":    strings.NewReplacer("<article", "<i", "</article", "</i", `\u003Carticle`, `\u003Ci`, `\u003C\/article`, `\u003C\/i`).Replace(body),
			"moved":      strings.ReplaceAll(body, "href=", "data-href="),
			"block page": string(block),
		}
		for name, edited := range edits {
			if name != "block page" && edited == body {
				t.Errorf("%s: edit %q changes nothing", c.file, name)
				continue
			}
			counts[name]++
			alarms := check([]byte(edited))
			if len(alarms) == 0 || alarms[0].URL == "" || alarms[0].Want == "" || alarms[0].Has == "" {
				t.Errorf("%s: %s raises %v", c.file, name, alarms)
			}
		}
	}
	t.Logf("edits that raised an alarm: %v", counts)
}

// documentCaptures are the captured pages and replies of newsrooms and institutions, by the site that takes their address.
func documentCaptures(t *testing.T, dir string) map[string][]*fetch.Page {
	t.Helper()
	out := map[string][]*fetch.Page{}
	for _, c := range captures(t, dir, "bbc-article", "ap-article", "reuters-article", "billboard-article", "people-article", "nbc-article", "npr-article",
		"npr-factcheck", "cdc-html", "usgs-event", "usgs-geojson", "nws-alerts", "openfda-food", "openfda-drugsfda", "cpsc-recall", "recalls-api") {
		if bytes.HasPrefix(c.body, []byte{0x1f, 0x8b}) {
			c.body = unpacked(t, c.body)
		}
		for _, site := range All {
			if c.url == "" && strings.HasPrefix(c.kind, site.Name) || c.kind == "recalls-api" && site.Name == "cpsc" || c.kind == "openfda-food" && site.Name == "fda" {
				c.url = site.Start("", nil)[0]
			}
			if site.Read != nil && site.Recognise("", c.url) {
				out[site.Name] = append(out[site.Name], realPage(t, c.url, c.body))
			}
		}
	}
	return out
}

func unpacked(t *testing.T, packed []byte) []byte {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// Pages of newsrooms and institutions raise nothing as they were captured, and an alarm once they are another design's.
func TestRealDocumentsAndDrift(t *testing.T) {
	dir := realFolder(t)
	block, err := os.ReadFile(filepath.Join(dir, "blocks", "cloudflare-js-challenge-2020-05.html"))
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for name, pages := range documentCaptures(t, dir) {
		site, _ := SiteNamed(name)
		for _, p := range pages {
			counts["unchanged"]++
			for _, a := range CheckPage(site, p) {
				t.Errorf("unchanged: %s", a)
			}
			edits := map[string]struct {
				want string // is part of what was looked for
				body []byte
			}{"block page": {"a page of", block}}
			edit := func(name, want string, change func(doc *goquery.Document) bool) {
				doc, err := goquery.NewDocumentFromReader(strings.NewReader(p.Text()))
				if err != nil {
					t.Fatal(err)
				}
				if change(doc) {
					edits[name] = struct {
						want string
						body []byte
					}{want, render(t, doc)}
				}
			}
			switch {
			case site.form == nil: // the reply of an interface
				body := strings.NewReplacer(`"properties"`, `"traits"`, `"results"`, `"outcome"`, `"RecallID"`, `"ID"`, `"RecallNumber"`, `"Number"`, `"URL"`, `"At"`, `"success"`, `"outcome"`).Replace(p.Text())
				if body != p.Text() { // one that lists no record has none to rename
					edits["renamed"] = struct {
						want string
						body []byte
					}{"", []byte(body)}
				}
			default:
				title := site.form.Title
				if title == "" {
					title = "h1"
				}
				edit("title renamed", title, func(doc *goquery.Document) bool {
					return title != ogTitle && renamed(doc, title, lastPart(strings.Split(title, ",")[0]))
				})
				edit("text renamed", site.form.Body, func(doc *goquery.Document) bool {
					if site.form.Body == "" {
						return false
					}
					for _, part := range strings.Split(site.form.Body, ",") {
						doc.Find(strings.Fields(part)[0]).Each(func(_ int, s *goquery.Selection) {
							for _, a := range []string{"class", "id", "data-component", "data-testid"} {
								if _, ok := s.Attr(a); ok {
									s.SetAttr(a, "of-a-new-design")
								}
							}
							if goquery.NodeName(s) == "block" {
								s.Nodes[0].Data = "x-new"
							}
						})
					}
					return doc.Find(site.form.Body).Length() == 0
				})
				edit("date unread", "a date", func(doc *goquery.Document) bool {
					doc.Find(`script[type^="application/ld+json"]`).Remove()
					done := false
					doc.Find("meta, time, [itemprop=datePublished]").Each(func(_ int, s *goquery.Selection) {
						for _, a := range []string{"content", "value", "datetime"} {
							if _, err := corpus.ReadDate(s.AttrOr(a, "")); err == nil {
								s.SetAttr(a, "the other day")
								done = true
							}
						}
						if s.Is("[itemprop=datePublished]:not(meta)") {
							s.SetText("the other day")
						}
					})
					return done
				})
			}
			for edited, e := range edits {
				counts[edited]++
				alarms := CheckPage(site, pageOfBytes(t, p, e.body))
				i := slices.IndexFunc(alarms, func(a Alarm) bool { return strings.Contains(a.Want, e.want) })
				if i < 0 {
					t.Errorf("%s: %q of %s raises %v", name, edited, p.Final, alarms)
					continue
				}
				if a := alarms[i]; a.URL != p.Final || a.Want == "" || a.Has == "" {
					t.Errorf("%s: alarm %+v", edited, a)
				}
			}
		}
	}
	t.Logf("pages by edit: %v", counts)
	for edited, n := range map[string]int{"unchanged": 25, "block page": 25, "title renamed": 14, "text renamed": 14, "date unread": 6, "renamed": 9} {
		if counts[edited] < n {
			t.Errorf("%d pages for %q, want %d", counts[edited], edited, n)
		}
	}
}
