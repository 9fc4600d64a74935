package scrapers

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"assay/corpus"
	"assay/fetch"

	"github.com/PuerkitoBio/goquery"
)

// An Alarm says that a site is not as it was when its selectors were written. Want is what was looked
// for, Has what is there now.
type Alarm struct {
	Site  string `json:"site"`
	URL   string `json:"url,omitzero"` // "" for what only many pages together show
	Kind  string `json:"kind"`
	Field string `json:"field,omitzero"`
	Want  string `json:"want"`
	Has   string `json:"has"`
}

// Kinds of alarms.
const (
	AlarmBlock       = "block"       // a wall instead of the page
	AlarmLayout      = "layout"      // an item page of no known generation
	AlarmMissing     = "missing"     // a field is not there
	AlarmMoved       = "moved"       // a field is there, in another part of the page
	AlarmEmptied     = "emptied"     // a listing without items
	AlarmRating      = "rating"      // a word that the scale does not have
	AlarmClaimReview = "claimreview" // the ClaimReview is gone
	AlarmMarkup      = "markup"      // the ClaimReview is there and cannot be read
	AlarmDisagrees   = "disagrees"   // page and ClaimReview tell another rating
	AlarmDate        = "date"        // a date is printed that cannot be read
)

func (a Alarm) String() string {
	at, field := a.URL, ""
	if at == "" {
		at = "all pages"
	}
	if a.Field != "" {
		field = " " + a.Field
	}
	return fmt.Sprintf("%s: %s%s at %s: want %s; has %s", a.Site, a.Kind, field, at, a.Want, a.Has)
}

// CheckPage returns what about an item page of a site is not as expected, in the order of the fields.
// A page of another kind, which is no claim, raises nothing.
func CheckPage(site Site, p *fetch.Page) []Alarm { return Observe(site, p).Alarms }

// An Observation is what a canary keeps of one item page.
type Observation struct {
	Site    string          `json:"site"`
	URL     string          `json:"url"`
	Layout  string          `json:"layout,omitzero"`  // "" for a page that tells no claim
	Fields  map[string]bool `json:"fields,omitzero"`  // that the layout expects: whether the page has them at every place
	Ratings []string        `json:"ratings,omitzero"` // as printed, for each claim
	Unknown []string        `json:"unknown,omitzero"` // of these, words that the scale does not have
	Reviews int             `json:"reviews,omitzero"` // ClaimReviews of the page
	Told    []string        `json:"told,omitzero"`    // where pages rate nothing: what this one tells, see SiteSum
	Bad     []BadMarkup     `json:"bad,omitzero"`
	Alarms  []Alarm         `json:"alarms,omitzero"`
}

// Observe looks at an item page as a canary does. It reads the page as Parse or Read does and stores nothing.
func Observe(site Site, p *fetch.Page) Observation {
	o := Observation{Site: site.Name, URL: p.Final}
	alarm := func(kind, field, want, has string) {
		o.Alarms = append(o.Alarms, Alarm{Site: site.Name, URL: p.Final, Kind: kind, Field: field, Want: want, Has: has})
	}
	if wall := p.Wall(); wall != "" {
		title := ""
		if node, err := p.Doc(); err == nil {
			title = ", " + pageTitle(goquery.NewDocumentFromNode(node))
		}
		alarm(AlarmBlock, "", "a page of "+site.Host, "a wall of the sort "+wall+title)
		return o
	}
	if site.Parse == nil {
		o.documents(site, p, alarm)
		return o
	}
	r, err := readPage(site.Layouts, p)
	if err != nil {
		alarm(AlarmLayout, "", "a page", err.Error())
		return o
	}
	o.Reviews, o.Bad = len(r.reviews), r.bad
	for _, b := range r.bad {
		alarm(AlarmMarkup, "", fmt.Sprintf("ld+json script %d", b.Script), b.Reason)
	}
	_, err = site.Parse(p)
	if ex := excludedReason(err); ex == "not_a_fact_check" || ex == "redirected_elsewhere" {
		return o
	}
	if r.layout == nil {
		var marks []string
		for _, l := range site.Layouts {
			marks = append(marks, l.Mark)
		}
		has := pageTitle(r.doc)
		for _, m := range marks {
			if where := r.elsewhere(m); where != "" {
				has += "; " + where
			} else {
				has += "; " + r.around(m)
			}
		}
		alarm(AlarmLayout, "", strings.Join(marks, " or "), has)
		return o
	}
	o.Layout, o.Fields = r.layout.Name, map[string]bool{}
	gone := r.layout.ClaimReview && len(r.reviews) == 0
	if gone && len(r.bad) == 0 {
		alarm(AlarmClaimReview, "", "a ClaimReview", fmt.Sprintf("%d ld+json scripts without one", r.doc.Find(`script[type="application/ld+json"]`).Length()))
	}
	for i := range r.layout.Fields {
		f := &r.layout.Fields[i]
		if f.Need == Optional {
			continue
		}
		boxes := r.boxes
		if !boxed(f.Name) {
			boxes = boxes[:1]
		}
		o.Fields[f.Name] = true
		for _, b := range boxes {
			if !slices.ContainsFunc(f.From, func(from string) bool { return !readPlace(from).optional }) && len(r.values(f.Name, b)) == 0 {
				o.Fields[f.Name] = false
				alarm(AlarmMissing, f.Name, strings.Join(f.From, " or "), r.around(f.From[0]))
			}
			for _, place := range f.From {
				p := readPlace(place)
				of := p.review != ""
				if p.optional || of && b.review == nil || !of && r.in(f, b) == nil || len(r.at(f, place, b)) > 0 {
					o.Fields[f.Name] = o.Fields[f.Name] && (!of || !gone)
					continue
				}
				o.Fields[f.Name] = false
				where := ""
				there := !of && firstOf(r.in(f, b), p.selector).Length() > 0
				if !of && !there {
					where = r.elsewhere(place)
				}
				switch {
				case there:
					at := firstOf(r.in(f, b), p.selector)
					alarm(AlarmMissing, f.Name, place, fmt.Sprintf("%s, which says %q", elementPath(at), cut(saidAt(p, at), 60)))
				case of:
					alarm(AlarmMissing, f.Name, place, "a ClaimReview with "+strings.Join(filled(*b.review), ", "))
				case where != "":
					alarm(AlarmMoved, f.Name, place, r.around(place)+"; "+where)
				default:
					alarm(AlarmMissing, f.Name, place, r.around(place))
				}
			}
		}
	}
	r.ratings(site, &o, alarm)
	for _, name := range []string{FieldDate, FieldStated} {
		var c corpus.Claim
		if r.day(&c, name, r.boxes[0]) == "" && corpus.HasFlag(c.Flags, corpus.FlagDateUnread) {
			alarm(AlarmDate, name, "a date", fmt.Sprintf("%q", first(r.values(name, r.boxes[0]))))
		}
	}
	return o
}

// documents looks at an item page of a newsroom or an institution. Such a page is read also where it is built
// otherwise than its form expects, so that a single one is reported and the share of them counts, see Canary.Since.
func (o *Observation) documents(site Site, p *fetch.Page, alarm func(kind, field, want, has string)) {
	docs, err := site.Read(p)
	switch m := asMarkupError(err); {
	case excludedReason(err) != "":
		return
	case m != nil:
		alarm(AlarmLayout, "", m.Want, m.Has)
		return
	case err != nil:
		alarm(AlarmLayout, "", "a document", err.Error())
		return
	case len(docs) == 0:
		return // an interface that had nothing to tell
	}
	o.Layout = "documents"
	for name, has := range map[string]func(corpus.Document) bool{
		FieldDate:    func(d corpus.Document) bool { return d.PublishedAt != "" },
		FieldAuthors: func(d corpus.Document) bool { return len(d.Authors) > 0 },
		FieldTags:    func(d corpus.Document) bool { return len(d.Tags) > 0 },
	} {
		if slices.ContainsFunc(docs, has) {
			o.Told = append(o.Told, name)
		}
	}
	defer func() { slices.Sort(o.Told) }()
	root, err := p.Doc()
	if site.form == nil || err != nil {
		return
	}
	r := &reading{doc: goquery.NewDocumentFromNode(root)}
	look := func(field, place string, found bool) {
		if found {
			o.Told = append(o.Told, field)
			return
		}
		if where := r.elsewhere(place); where != "" {
			alarm(AlarmMoved, field, place, r.around(place)+"; "+where)
			return
		}
		alarm(AlarmMissing, field, place, r.around(place))
	}
	if place := cmp.Or(site.form.Title, "h1"); place != ogTitle {
		look(FieldTitle, place, len(texts(r.doc.Find(place))) > 0)
	}
	if place := site.form.Body; place != "" {
		look(FieldBody, place, site.form.text(r.doc) != "")
	}
	if printed := newArticleMarkup(r.doc).dates(); len(printed) > 0 && !slices.Contains(o.Told, FieldDate) {
		alarm(AlarmDate, FieldDate, "a date", fmt.Sprintf("%q", printed[0]))
	}
}

// ratings looks at the words of the verdicts.
func (r *reading) ratings(site Site, o *Observation, alarm func(kind, field, want, has string)) {
	if site.Ratings == nil || len(site.Ratings.Ratings)+len(site.Ratings.Queued) == 0 {
		return // a scale that is not known has no words outside
	}
	for _, b := range r.boxes {
		f := r.field(FieldRating)
		if f == nil {
			return
		}
		slugs := map[string]string{}
		for _, place := range f.From {
			raw := first(r.at(f, place, b))
			if raw == "" {
				continue
			}
			if _, label := (Review{Rating: raw}).Label(); !label {
				continue // a sentence is queued, not looked up
			}
			if !site.Ratings.Knows(raw) {
				o.Unknown = append(o.Unknown, raw)
				alarm(AlarmRating, FieldRating, "a word of the scale of "+site.Ratings.Source+" at "+place, fmt.Sprintf("%q", raw))
				continue
			}
			slug := corpus.Slug(raw)
			if rating, ok := site.Ratings.Map(raw); ok {
				slug = rating.Slug
			}
			slugs[slug] = place
		}
		if len(slugs) > 1 {
			words := slices.Sorted(maps.Keys(slugs))
			alarm(AlarmDisagrees, FieldRating, "one rating at "+strings.Join(f.From, " and "), strings.Join(words, " against "))
		}
		if raw := first(r.values(FieldRating, b)); raw != "" {
			o.Ratings = append(o.Ratings, raw)
		}
	}
}

// saidAt returns what an element says where a place looks.
func saidAt(p place, s *goquery.Selection) string {
	if p.attribute != "" {
		return s.AttrOr(p.attribute, "")
	}
	return text(s)
}

// filled names the properties of a ClaimReview that say something.
func filled(r Review) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(reviewFields)) {
		if len(distinct(reviewFields[name](r))) > 0 {
			out = append(out, name)
		}
	}
	if out == nil {
		return []string{"nothing"}
	}
	return out
}

// elsewhere tells where on the page the last part of a selector finds something, "" if nowhere.
func (r *reading) elsewhere(place string) string {
	selector := readPlace(place).selector
	if strings.Contains(selector, ",") {
		return ""
	}
	parts := strings.Fields(selector)
	last := parts[len(parts)-1]
	if len(parts) < 2 || !strings.ContainsAny(last, ".#[") {
		return ""
	}
	at := firstOf(r.doc, last)
	if at.Length() == 0 {
		return ""
	}
	return fmt.Sprintf("%s under %s: %q", last, elementPath(at.Parent()), cut(text(at), 60))
}

// around tells what is there now in the innermost part of a selector that still finds something.
func (r *reading) around(place string) string {
	selector, _, _ := strings.Cut(readPlace(place).selector, ",")
	parts := strings.Fields(selector)
	for n := len(parts) - 1; n > 0; n-- {
		if parts[n-1] == ">" || parts[n-1] == "+" || parts[n-1] == "~" {
			continue
		}
		in := firstOf(r.doc, strings.Join(parts[:n], " "))
		if in.Length() == 0 {
			continue
		}
		var kids []string
		in.Children().EachWithBreak(func(i int, s *goquery.Selection) bool {
			kids = append(kids, elementName(s))
			return i < 7
		})
		if kids == nil {
			return fmt.Sprintf("%s with the text %q", strings.Join(parts[:n], " "), cut(text(in), 60))
		}
		return fmt.Sprintf("%s with %s", strings.Join(parts[:n], " "), strings.Join(kids, ", "))
	}
	body := firstOf(r.doc, "body")
	var kids []string
	body.Children().EachWithBreak(func(i int, s *goquery.Selection) bool {
		kids = append(kids, elementName(s))
		return i < 7
	})
	return fmt.Sprintf("%s, body with %s", pageTitle(r.doc), strings.Join(kids, ", "))
}

// elementPath names an element and the two around it, outermost first.
func elementPath(s *goquery.Selection) string {
	var out []string
	for ; s.Length() > 0 && len(out) < 3 && goquery.NodeName(s) != "#document"; s = s.Parent() {
		out = append(out, elementName(s))
	}
	slices.Reverse(out)
	return strings.Join(out, " > ")
}

// elementName writes an element with what selectors know it by.
func elementName(s *goquery.Selection) string {
	name := goquery.NodeName(s)
	if id := s.AttrOr("id", ""); id != "" {
		name += "#" + id
	}
	for i, class := range strings.Fields(s.AttrOr("class", "")) {
		if i < 3 {
			name += "." + class
		}
	}
	for _, a := range []string{"data-key", "property", "name", "itemprop", "data-testid"} {
		if v := s.AttrOr(a, ""); v != "" {
			return name + "[" + a + "=" + v + "]"
		}
	}
	return name
}

func cut(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}

func excludedReason(err error) string {
	if ex, ok := err.(interface{ Excluded() string }); ok {
		return ex.Excluded()
	}
	return ""
}

// CheckListing returns what about a listing is not as expected: what Discover returned for the address
// is enough to tell. A later page may be empty, and so may a sitemap of news or a list whose server
// fails; the failure is its own report.
func CheckListing(site Site, address string, l Listing, err error) []Alarm {
	if m := asMarkupError(err); m != nil {
		return []Alarm{{Site: site.Name, URL: address, Kind: AlarmEmptied, Want: m.Want, Has: m.Has}}
	}
	if err != nil || len(l.Refs) > 0 || len(l.More) > 0 || pageOf(address) > 1 || strings.Contains(address, "news") {
		return nil
	}
	want := site.Cards
	if want == "" {
		want = "an entry that is an item"
	}
	has := "no item"
	if len(l.Notes) > 0 {
		has += "; " + strings.Join(l.Notes[:min(3, len(l.Notes))], "; ")
	}
	return []Alarm{{Site: site.Name, URL: address, Kind: AlarmEmptied, Want: want, Has: has}}
}

// A Canary adds up what the pages of a run showed, for what no single page tells: a field that went from
// a share of the pages, a listing that gives fewer items, a scale with new words. It is a value: Add
// returns nothing and reaches nothing, and its JSON can be kept as the baseline of a later run.
type Canary struct {
	Sites map[string]*SiteSum `json:"sites"`
}

// A SiteSum is what a canary knows of one site.
type SiteSum struct {
	Pages    int            `json:"pages"`         // that tell a claim, or a document
	Fields   map[string]int `json:"fields"`        // pages whose layout expects a field
	Has      map[string]int `json:"has"`           // of these, pages that have it
	Reviews  int            `json:"reviews"`       // pages with a ClaimReview
	Told     map[string]int `json:"told,omitzero"` // pages of a newsroom or an institution, by what they tell where it is expected
	Ratings  map[string]int `json:"ratings"`       // claims by printed rating
	Unknown  map[string]int `json:"unknown"`       // of these, ratings that the scale does not have
	Bad      []string       `json:"bad"`           // pages whose markup was given up, as "bad markup" counts them
	Listings int            `json:"listings"`      // listing pages
	Items    int            `json:"items"`         // on them
	Alarms   []Alarm        `json:"alarms"`        // of single pages and listings, in the order in which they were added
}

func (c *Canary) site(name string) *SiteSum {
	if c.Sites == nil {
		c.Sites = map[string]*SiteSum{}
	}
	s := c.Sites[name]
	if s == nil {
		s = &SiteSum{Fields: map[string]int{}, Has: map[string]int{}, Ratings: map[string]int{}, Unknown: map[string]int{}}
		c.Sites[name] = s
	}
	return s
}

// Add takes up one item page.
func (c *Canary) Add(o Observation) {
	s := c.site(o.Site)
	s.Alarms = append(s.Alarms, o.Alarms...)
	if len(o.Bad) > 0 {
		s.Bad = append(s.Bad, o.URL)
	}
	if o.Layout == "" {
		return
	}
	s.Pages++
	if o.Reviews > 0 {
		s.Reviews++
	}
	for _, f := range o.Told {
		if s.Told == nil {
			s.Told = map[string]int{}
		}
		s.Told[f]++
	}
	for f, has := range o.Fields {
		s.Fields[f]++
		if has {
			s.Has[f]++
		}
	}
	for _, r := range o.Ratings {
		s.Ratings[r]++
	}
	for _, r := range o.Unknown {
		s.Unknown[r]++
	}
}

// AddListing takes up one listing page, as Discover read it.
func (c *Canary) AddListing(site Site, address string, l Listing, err error) {
	s := c.site(site.Name)
	s.Alarms = append(s.Alarms, CheckListing(site, address, l, err)...)
	if err == nil {
		s.Listings++
		s.Items += len(l.Refs)
	}
}

// Thresholds of a canary. They leave room for the odd page of every site.
const (
	canaryPages = 10   // fewer say nothing about a share
	canaryShare = 0.8  // of the pages whose layout expects a field have it
	canaryDrop  = 0.5  // of what the baseline had, in items per listing or pages with ClaimReview
	canaryWords = 0.05 // of the claims may have words that the scale does not know
)

// Alarms returns what single pages raised and what all of them together show, site by site.
func (c Canary) Alarms() []Alarm {
	var out []Alarm
	for _, name := range slices.Sorted(maps.Keys(c.Sites)) {
		s := c.Sites[name]
		out = append(out, s.Alarms...)
		if s.Pages < canaryPages {
			continue
		}
		for _, f := range slices.Sorted(maps.Keys(s.Fields)) {
			if n := s.Fields[f]; n >= canaryPages && float64(s.Has[f]) < canaryShare*float64(n) {
				out = append(out, Alarm{Site: name, Kind: AlarmMissing, Field: f, Want: fmt.Sprintf("on %.0f %% of %d pages", 100*canaryShare, n), Has: fmt.Sprintf("on %d pages", s.Has[f])})
			}
		}
		unknown, claims := 0, 0
		for _, n := range s.Unknown {
			unknown += n
		}
		for _, n := range s.Ratings {
			claims += n
		}
		if float64(unknown) > canaryWords*float64(claims) {
			out = append(out, Alarm{Site: name, Kind: AlarmRating, Field: FieldRating, Want: "words of the scale",
				Has: fmt.Sprintf("%d of %d claims with %s", unknown, claims, strings.Join(slices.Sorted(maps.Keys(s.Unknown)), ", "))})
		}
	}
	return out
}

// Since returns what fell against an earlier run: items per listing, pages with a ClaimReview, documents with what
// they told before.
func (c Canary) Since(before Canary) []Alarm {
	var out []Alarm
	for _, name := range slices.Sorted(maps.Keys(c.Sites)) {
		now, was := c.Sites[name], before.Sites[name]
		if was == nil {
			continue
		}
		fell := func(kind, field, what string, part, whole, oldPart, oldWhole int) {
			if whole == 0 || oldWhole == 0 {
				return
			}
			share, old := float64(part)/float64(whole), float64(oldPart)/float64(oldWhole)
			if share < canaryDrop*old {
				out = append(out, Alarm{Site: name, Kind: kind, Field: field, Want: fmt.Sprintf("%.2f %s, as before", old, what), Has: fmt.Sprintf("%.2f", share)})
			}
		}
		fell(AlarmEmptied, "", "items per listing", now.Items, now.Listings, was.Items, was.Listings)
		if now.Pages >= canaryPages && was.Pages >= canaryPages {
			fell(AlarmClaimReview, "", "ClaimReviews per page", now.Reviews, now.Pages, was.Reviews, was.Pages)
			for _, f := range slices.Sorted(maps.Keys(was.Told)) {
				fell(AlarmMissing, f, "of the pages have it where it is expected", now.Told[f], now.Pages, was.Told[f], was.Pages)
			}
		}
	}
	return out
}
