package scrapers

import (
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"assay/corpus"
	"assay/fetch"

	"github.com/PuerkitoBio/goquery"
)

// A reviewSite is a fact-checker whose pages can be told in a table: what of a claim stands where. From
// it come Discover, Parse, the drift check and the columns of assay list sites.
type reviewSite struct {
	name, doc, proven, reference string
	version                      int
	delay                        time.Duration
	lang                         string // BCP 47, of most pages
	category                     corpus.Category

	origins []string       // of its pages, the first one is where lists are relative to
	item    *regexp.Regexp // the path of an item page
	other   *regexp.Regexp // paths that look like one and are none; nil for none
	lists   []string       // first listings: feeds, sitemaps, lists of WordPress, HTML; absolute on other origins
	mapped  *regexp.Regexp // of a sitemap index, the sitemaps that hold items; nil for all
	cards   cards          // how HTML lists show items

	pages     []Layout          // tried in order
	ratings   *corpus.RatingMap // nil for a site that prints no verdict
	elsewhere *regexp.Regexp    // titles of pages that are no fact-check of a claim; nil for none
	headline  bool              // no claim is printed: the headline stands for it, and says so by a flag
	mixed     bool              // addresses of items are those of other articles too: a page without a layout is one
}

// A Layout is one generation of a site's item pages.
type Layout struct {
	Name        string
	Mark        string // selector of what pages of this layout have and others have not
	Each        string // selector of the box of one claim, where pages hold several
	Pairs       bool   // pages hold several claims one after the other: the second rating is of the second claim
	ClaimReview bool   // pages carry one
	Fields      []Field
}

// A Field is one part of a claim and the places where the pages of a layout keep it. All places are
// looked at, since the loss of any is drift; the first that says something is believed. A place is
//
//	SELECTOR            the text of what it finds
//	SELECTOR@ATTRIBUTE  an attribute
//	SELECTOR :: LABEL   what follows a label at the start of a text, or else the next element
//	review:NAME         a field of the ClaimReview
//
// with " => PATTERN" for the first group of a pattern in it. One that starts with "?" need not be there.
type Field struct {
	Name  string
	From  []string
	Need  Need
	Clean func(string) string // nil keeps what is printed; "" means that it says nothing
	Split string              // what stands between authors that are printed as one text; "" where each has an element
	Form  corpus.DateForm     // of dates
}

// Need says what follows if a page does not have a field.
type Need int

// The values of Need.
const (
	Optional Need = iota // nothing
	Expected             // the claim is read without it; the page is not as it was
	Required             // there is no claim without it
)

// Names of fields. Those of the box are looked for inside Layout.Each, the others on the whole page.
const (
	FieldClaim   = "claim"   // box
	FieldRating  = "rating"  // box
	FieldSpeaker = "speaker" // box: who made the claim
	FieldStated  = "stated"  // box: when the claim was made
	FieldTitle   = "title"
	FieldAuthors = "authors" // of the review
	FieldDate    = "date"    // of the review
	FieldTags    = "tags"
	FieldBody    = "body" // is looked at and not kept
)

func boxed(field string) bool {
	return field == FieldClaim || field == FieldRating || field == FieldSpeaker || field == FieldStated
}

// reviewFields are what a place "review:NAME" reads.
var reviewFields = map[string]func(Review) []string{
	FieldClaim:   func(r Review) []string { return []string{r.Claim} },
	FieldRating:  func(r Review) []string { return []string{r.Rating} },
	FieldSpeaker: func(r Review) []string { return []string{r.Claimant()} },
	FieldStated:  func(r Review) []string { return []string{r.Claimed.Printed} },
	FieldTitle:   func(r Review) []string { return []string{r.Title} },
	FieldAuthors: func(r Review) []string { return r.Authors },
	FieldDate:    func(r Review) []string { return []string{r.Published.Printed} },
}

// site makes the plugin of a table.
func (s reviewSite) site() Site {
	u, _ := url.Parse(s.origins[0])
	out := Site{
		Name: s.name, Version: s.version, Doc: s.doc, Host: u.Hostname(), Proven: s.proven, Reference: s.reference, Delay: s.delay,
		Lang: s.lang, Category: s.category, Layouts: s.pages, Ratings: s.ratings, Cards: s.cards.card,
		Recognise: s.recognise, Start: s.start, Updates: s.updates, Discover: s.discover, Parse: s.parse,
	}
	for _, o := range s.origins[1:] {
		out.Hosts = append(out.Hosts, corpus.Host(o))
	}
	return out
}

func (s reviewSite) recognise(base, address string) bool {
	return s.isItem(corpus.CanonicalURL(address)) && (ofOrigin(address, base) || ofOrigin(address, s.origins...))
}

// isItem reports whether an address has the path of an item.
func (s reviewSite) isItem(address string) bool {
	u, err := url.Parse(address)
	return err == nil && s.item.MatchString(u.EscapedPath()) && (s.other == nil || !s.other.MatchString(u.EscapedPath()))
}

func (s reviewSite) start(base string, _ []string) []string {
	var out []string
	for _, list := range s.lists {
		switch absolute := strings.Contains(list, "://"); {
		case absolute && base != "":
			continue // a mirror has one origin
		case !absolute && base != "":
			list = strings.TrimRight(base, "/") + list
		case !absolute:
			list = s.origins[0] + list
		}
		out = append(out, corpus.CanonicalURL(list))
	}
	return out
}

// updates lists what the interface of WordPress says was changed since an instant, and the feeds, which
// begin with what is newest.
func (s reviewSite) updates(base string, speakers []string, since time.Time) []string {
	var out []string
	for _, list := range s.start(base, speakers) {
		switch i := strings.Index(list, "/wp-json/wp/v2/posts"); {
		case i >= 0:
			out = append(out, WordPressPosts(list[:i], since))
		case strings.Contains(list, "/feed") || strings.Contains(list, "/rss") || strings.HasSuffix(list, "/atom.xml"):
			out = append(out, list)
		}
	}
	return out
}

func (s reviewSite) parse(p *fetch.Page) ([]corpus.Claim, error) {
	if !ofOrigin(p.Final, p.URL) && !ofOrigin(p.Final, s.origins...) {
		return nil, corpus.Exclude("redirected_elsewhere", p.URL+" leads to "+p.Final)
	}
	r, err := readPage(s.pages, p)
	if err != nil {
		return nil, err
	}
	if r.layout == nil {
		var marks []string
		for _, l := range s.pages {
			marks = append(marks, l.Mark)
		}
		if !s.mixed && (s.isItem(r.page.Final) || !ofOrigin(p.Final, s.origins...)) {
			return nil, markupError("parse", p.Final, strings.Join(marks, " or "), r.doc)
		}
		return nil, corpus.Exclude("not_a_fact_check", p.Final+": "+pageTitle(r.doc))
	}
	if title := r.shared(FieldTitle); s.elsewhere != nil && s.elsewhere.MatchString(first(title)) {
		return nil, corpus.Exclude("not_a_fact_check", p.Final+": "+first(title))
	}
	return s.claims(r)
}

// claims reads the claims of a page. One whose rating is an exclusion is left out; a page that has no
// others is that exclusion.
func (s reviewSite) claims(r *reading) ([]corpus.Claim, error) {
	shared := corpus.Claim{Source: s.name, ReviewURL: s.review(r), Title: first(r.shared(FieldTitle)), Authors: r.shared(FieldAuthors), Tags: r.shared(FieldTags)}
	shared.ReviewDate = r.day(&shared, FieldDate, r.boxes[0])
	if len(r.bad) > 0 {
		shared.Flags = corpus.AddFlag(shared.Flags, corpus.FlagBadMarkup)
	}
	if r.unpaired {
		shared.Flags = corpus.AddFlag(shared.Flags, corpus.FlagDisagrees)
	}
	var out []corpus.Claim
	var excluded error
	for _, b := range r.boxes {
		c := shared
		c.Authors, c.Tags, c.Flags = slices.Clone(c.Authors), slices.Clone(c.Tags), slices.Clone(c.Flags)
		c.Text = first(r.values(FieldClaim, b))
		if c.Text == "" && s.headline && c.Title != "" {
			c.Text, c.Flags = c.Title, corpus.AddFlag(c.Flags, corpus.FlagHeadline)
		}
		c.RatingRaw = first(r.values(FieldRating, b))
		c.Speaker = first(r.values(FieldSpeaker, b))
		c.StatedDate = r.day(&c, FieldStated, b)
		if b.review != nil && slices.Contains(b.review.Notes, NoteRepaired) {
			c.Flags = corpus.AddFlag(c.Flags, corpus.FlagRepaired)
		}
		for _, name := range []string{FieldClaim, FieldRating} {
			if lost := r.missing(name, b); lost != "" && (name == FieldClaim && c.Text == "" || name == FieldRating && c.RatingRaw == "") {
				return nil, markupError("parse", r.asked, lost, r.doc)
			}
		}
		if c.Text == "" {
			return nil, markupError("parse", r.asked, "a claim", r.doc)
		}
		if r.disagree(FieldClaim, b, corpus.Fold) || r.disagree(FieldRating, b, s.word) {
			c.Flags = corpus.AddFlag(c.Flags, corpus.FlagDisagrees)
		}
		c.ID = corpus.ClaimID(c.Text, c.Speaker, c.ReviewURL, c.StatedDate)
		rating, ok := s.rate(c.RatingRaw)
		if rating.Exclude != "" {
			excluded = corpus.Exclude(rating.Exclude, c.RatingRaw+" on "+c.ReviewURL)
			continue
		}
		if ok {
			c.Rating, c.Verdict6, c.Status = rating.Slug, rating.Verdict, corpus.StatusSource
		} else {
			c.Flags = corpus.AddFlag(c.Flags, corpus.FlagUnmapped)
		}
		if slices.ContainsFunc(out, func(had corpus.Claim) bool { return had.ID == c.ID }) {
			continue
		}
		c.Position = len(out)
		out = append(out, c)
	}
	if len(out) == 0 {
		return nil, excluded
	}
	return out, nil
}

// rate looks a rating up. A sentence is no word of a scale.
func (s reviewSite) rate(raw string) (corpus.Rating, bool) {
	if _, label := (Review{Rating: raw}).Label(); !label || s.ratings == nil {
		return corpus.Rating{}, false
	}
	return s.ratings.Map(raw)
}

// word is what two spellings of a rating are compared by: the verdict where it is known.
func (s reviewSite) word(raw string) string {
	if r, ok := s.rate(raw); ok {
		return r.Slug + string(r.Verdict) + r.Exclude
	}
	return corpus.Slug(raw)
}

// review returns the address of the review: the canonical link, where a page has one that names an item,
// else where the page was found. The address in the ClaimReview is not asked: it may be relative, of an
// older address or of another page.
func (s reviewSite) review(r *reading) string {
	if told, ok := firstOf(r.doc, `link[rel="canonical"]`).Attr("href"); ok {
		u := corpus.ResolveURL(r.page.Final, told)
		if s.isItem(u) && (ofOrigin(u, r.page.Final) || ofOrigin(u, s.origins...)) {
			return untracked(u)
		}
	}
	return untracked(r.page.Final)
}

// A reading is an item page with what its layout says of it.
type reading struct {
	asked    string      // the address that answered
	page     *fetch.Page // for JSON, the page that it stands for
	doc      *goquery.Document
	layout   *Layout // nil where none is known
	reviews  []Review
	bad      []BadMarkup
	boxes    []box // at least one
	unpaired bool  // the page shows another number of claims than its markup
}

// A box is what tells of one claim: a part of the page, a ClaimReview, or both.
type box struct {
	at     *goquery.Selection // nil where the page does not tell the claims of its markup apart
	review *Review
	nth    int // of Layout.Pairs
}

// readPage finds the layout of a page and the claims on it.
func readPage(layouts []Layout, p *fetch.Page) (*reading, error) {
	asked := p.Final
	p, err := jsonPage(p)
	if err != nil {
		return nil, err
	}
	node, err := p.Doc()
	if err != nil {
		return nil, err
	}
	r := &reading{asked: asked, page: p, doc: goquery.NewDocumentFromNode(node)}
	for i := range layouts {
		if layouts[i].Mark == "" || firstOf(r.doc, layouts[i].Mark).Length() > 0 {
			r.layout = &layouts[i]
			break
		}
	}
	found, err := ClaimReviews(p)
	if err != nil {
		return nil, err
	}
	address, err := p.Address()
	if err != nil {
		return nil, err
	}
	r.bad, r.reviews = found.Bad, ofPage(found.Items, address)
	r.pair()
	return r, nil
}

// ofPage drops the reviews of other pages, which a page lists beside its own.
func ofPage(reviews []Review, address string) []Review {
	own := slices.DeleteFunc(slices.Clone(reviews), func(r Review) bool { return corpus.IdentityURL(r.URL) != corpus.IdentityURL(address) })
	if len(own) == 0 {
		return reviews // an older address of the page, or none
	}
	return slices.DeleteFunc(slices.Clone(reviews), func(r Review) bool {
		return r.URL != "" && corpus.IdentityURL(r.URL) != corpus.IdentityURL(address)
	})
}

// pair finds out which ClaimReview belongs to which part of the page. Where their numbers differ, the
// parts that readers see count; where the page has no parts, the reviews do.
func (r *reading) pair() {
	var parts []*goquery.Selection
	if r.layout != nil && r.layout.Each != "" {
		r.doc.Find(r.layout.Each).Each(func(_ int, s *goquery.Selection) { parts = append(parts, s) })
	}
	switch whole := r.doc.Selection; {
	case len(parts) == 0 && len(r.reviews) == 0:
		r.boxes = []box{{at: whole}}
		if n := r.pairs(); n > 1 {
			for i := 1; i < n; i++ {
				r.boxes = append(r.boxes, box{at: whole, nth: i})
			}
		}
	case len(parts) == 0 && len(r.reviews) == 1:
		r.boxes = []box{{at: whole, review: &r.reviews[0]}}
	case len(parts) == 0:
		for i := range r.reviews {
			r.boxes = append(r.boxes, box{review: &r.reviews[i]})
		}
	default:
		r.unpaired = len(r.reviews) > 0 && len(r.reviews) != len(parts)
		for i, part := range parts {
			b := box{at: part}
			if len(r.reviews) == len(parts) {
				b.review = &r.reviews[i]
			}
			r.boxes = append(r.boxes, b)
		}
	}
}

// pairs counts the claims that a page holds one after the other, as many as it has ratings.
func (r *reading) pairs() int {
	if r.layout == nil || !r.layout.Pairs {
		return 0
	}
	claims, ratings := r.said(FieldClaim), r.said(FieldRating)
	r.unpaired = len(claims) != len(ratings)
	return min(len(claims), len(ratings))
}

// said returns everything that the first place of a field says.
func (r *reading) said(name string) []string {
	f := r.field(name)
	if f == nil {
		return nil
	}
	for _, from := range f.From {
		if all := r.all(f, from, box{at: r.doc.Selection}); len(all) > 0 {
			return all
		}
	}
	return nil
}

// field returns a field of the layout, nil if it has none of that name.
func (r *reading) field(name string) *Field {
	if r.layout == nil {
		return nil
	}
	for i := range r.layout.Fields {
		if r.layout.Fields[i].Name == name {
			return &r.layout.Fields[i]
		}
	}
	return nil
}

// shared returns the values of a field that all claims of a page share.
func (r *reading) shared(name string) []string { return r.values(name, r.boxes[0]) }

// values returns what the first place of a field says that says something.
func (r *reading) values(name string, b box) []string {
	f := r.field(name)
	if f == nil {
		return nil
	}
	for _, place := range f.From {
		if v := r.at(f, place, b); len(v) > 0 {
			return v
		}
	}
	return nil
}

// at returns what a field has at one place: everything of authors and tags, one text of any other.
func (r *reading) at(f *Field, from string, b box) []string {
	all := r.all(f, from, b)
	switch {
	case f.Name == FieldAuthors || f.Name == FieldTags:
		if f.Split != "" {
			all = strings.Split(strings.Join(all, f.Split), f.Split)
		}
		return distinct(all)
	case b.nth >= len(all):
		return nil
	case len(all) > 0:
		return all[b.nth : b.nth+1]
	}
	return nil
}

// all returns every text at one place that says something.
func (r *reading) all(f *Field, from string, b box) []string {
	p := readPlace(from)
	var printed []string
	if p.review != "" {
		if b.review != nil {
			printed = reviewFields[p.review](*b.review)
		}
	} else if in := r.in(f, b); in != nil {
		in.Find(p.selector).Each(func(_ int, s *goquery.Selection) { printed = append(printed, p.of(s)) })
	}
	var out []string
	for _, s := range printed {
		if p.pattern != nil {
			m := p.pattern.FindStringSubmatch(s)
			if m == nil {
				continue
			}
			s = m[1]
		}
		if f.Clean != nil {
			s = f.Clean(s)
		}
		if s = corpus.Space(s); s != "" {
			out = append(out, s)
		}
	}
	return out
}

// in returns the part of the page that a field is looked for in.
func (r *reading) in(f *Field, b box) *goquery.Selection {
	if boxed(f.Name) {
		return b.at
	}
	return r.doc.Selection
}

// A place is one element of Field.From, taken apart.
type place struct {
	optional  bool
	selector  string
	attribute string
	label     string
	review    string
	pattern   *regexp.Regexp
}

func readPlace(s string) (p place) {
	s, p.optional = strings.CutPrefix(s, "?")
	s, pattern, found := strings.Cut(s, " => ")
	if found {
		p.pattern = regexp.MustCompile(pattern) // a table's own, which every test of the site compiles
	}
	if name, ok := strings.CutPrefix(s, "review:"); ok {
		p.review = name
		return p
	}
	s, p.label, _ = strings.Cut(s, " :: ")
	p.selector = s
	if i := strings.LastIndexByte(s, '@'); i >= 0 {
		p.selector, p.attribute = s[:i], s[i+1:]
	}
	return p
}

// editorMark matches marks of an old editor that stayed in the text: [green-label], [/dot-false].
var editorMark = regexp.MustCompile(`\[/?[a-z-]+\]`)

// of returns what an element that the place's selector found says.
func (p place) of(s *goquery.Selection) string {
	switch {
	case p.attribute != "":
		return corpus.Space(s.AttrOr(p.attribute, ""))
	case p.label == "":
		return text(s)
	}
	said := strings.TrimLeft(editorMark.ReplaceAllString(text(s), ""), "*“\" ")
	if len(said) < len(p.label) || !strings.EqualFold(said[:len(p.label)], p.label) {
		return ""
	}
	rest := strings.TrimLeft(said[len(p.label):], ":：|-–— ")
	if rest != "" {
		return rest
	}
	next := s.Next()
	if next.Length() == 0 {
		next = s.Parent().Next()
	}
	return text(next)
}

// missing returns the places of a field that a claim must have and a page does not, "" if it has one.
func (r *reading) missing(name string, b box) string {
	f := r.field(name)
	if f == nil || f.Need != Required || len(r.values(name, b)) > 0 {
		return ""
	}
	return strings.Join(f.From, " or ")
}

// day returns the calendar day of a date as printed, "" where there is none. One that cannot be read is
// flagged, never guessed.
func (r *reading) day(c *corpus.Claim, name string, b box) string {
	f := r.field(name)
	if f == nil {
		return ""
	}
	unread := false
	for _, place := range f.From {
		for _, printed := range r.at(f, place, b) {
			if d, err := f.Form.Read(printed); err == nil {
				return d.Day
			}
			unread = true
		}
	}
	if unread {
		c.Flags = corpus.AddFlag(c.Flags, corpus.FlagDateUnread)
	}
	return ""
}

// disagree reports whether the page and its ClaimReview say different things of one claim.
func (r *reading) disagree(name string, b box, form func(string) string) bool {
	f := r.field(name)
	if f == nil || b.review == nil || b.at == nil {
		return false
	}
	said := map[string]bool{}
	for _, place := range f.From {
		if v := first(r.at(f, place, b)); v != "" {
			said[form(v)] = true
		}
	}
	return len(said) > 1
}

// jsonPage returns the page that a JSON reply of an interface stands for, and any other page as it is.
// Each key becomes an element with the attribute data-key, in the order of the keys; text that holds
// markup is markup, as in the posts of WordPress. The key link or url names the page.
func jsonPage(p *fetch.Page) (*fetch.Page, error) {
	body := withoutRemarks(p.Text())
	if !strings.HasPrefix(body, "{") {
		return p, nil
	}
	item := firstObject(body)
	if item == nil {
		return p, nil // no JSON: what it is, the layouts say
	}
	var out strings.Builder
	out.WriteString("<!DOCTYPE html><html><head>")
	address := p.Final
	if link := corpus.ResolveURL(p.Final, scalar(get(item, "link", "url"))); strings.HasPrefix(link, "http") && link != p.Final {
		address = link
	}
	fmt.Fprintf(&out, `<link rel="canonical" href="%s"></head><body><article data-json>`, html.EscapeString(address))
	writeJSON(&out, item, 0)
	out.WriteString("</article></body></html>")
	page, err := fetch.NewPage(p.Final, http.Header{"Content-Type": {"text/html; charset=utf-8"}}, []byte(out.String()), p.Retrieved)
	if err != nil {
		return nil, fmt.Errorf("read JSON of %s: %w", p.Final, err)
	}
	page.Final = corpus.CanonicalURL(address)
	return page, nil
}

// firstObject returns the JSON object that a text begins with, nil if it begins with none.
func firstObject(s string) node {
	d := json.NewDecoder(strings.NewReader(s))
	d.UseNumber()
	var item node
	if d.Decode(&item) != nil || len(item) == 0 {
		return nil
	}
	return item
}

// jsonDepth is deeper than any item; what lies below it is left out.
const jsonDepth = 12

func writeJSON(out *strings.Builder, v any, depth int) {
	if depth > jsonDepth {
		return
	}
	switch v := v.(type) {
	case node:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			if k == "_links" || k == "_embedded" || strings.HasPrefix(k, "yoast_") {
				continue // of the machine's, not the reader's
			}
			fmt.Fprintf(out, `<div data-key="%s">`, html.EscapeString(k))
			writeJSON(out, v[k], depth+1)
			out.WriteString("</div>")
		}
	case []any:
		for _, e := range v {
			out.WriteString("<div data-item>")
			writeJSON(out, e, depth+1)
			out.WriteString("</div>")
		}
	case string:
		if strings.Contains(v, "<") && strings.Contains(v, ">") || entity.MatchString(v) {
			out.WriteString(v)
			return
		}
		out.WriteString(html.EscapeString(v))
	default:
		out.WriteString(html.EscapeString(scalar(v)))
	}
}

// asMarkupError returns an error's *MarkupError, nil if it is none.
func asMarkupError(err error) *MarkupError {
	var m *MarkupError
	if errors.As(err, &m) {
		return m
	}
	return nil
}
