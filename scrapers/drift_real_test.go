package scrapers

import (
	"bytes"
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
			if place.review != "" || place.optional || len(r.at(f, from, r.boxes[0])) == 0 {
				continue // what need not be there may go
			}
			// A class, or what else the last part of a selector is known by, has another name.
			doc, _ := tree(t, p)
			last := lastPart(place.selector)
			if renamed(doc, place.selector, last) {
				// Where another element is known by the same name, the field seems to have moved there.
				out = append(out, made{"renamed", from, []string{AlarmMissing, AlarmMoved, AlarmLayout}, render(t, doc)})
			}
			// The element stands at the end of the page.
			doc, _ = tree(t, p)
			if at := doc.Find(place.selector); place.label == "" && at.Length() > 0 && strings.ContainsAny(last, ".#[") && strings.Contains(place.selector, " ") {
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
			if f.Name == FieldRating && site.Ratings != nil {
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
