package scrapers

import (
	"encoding/json"
	"fmt"
	"html"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"assay/corpus"
	"assay/fetch"

	"github.com/PuerkitoBio/goquery"
)

// A Review is one schema.org ClaimReview, as its publisher filled it in. Text has its entities decoded
// once and white space folded; what is named "raw" or "printed" is as it stands. An empty field was
// not there.
type Review struct {
	Claim string `json:"claim"`

	// Rating is the verdict that people read: alternateName, else the words where a number is due, else
	// the rating's name, with a note. RatingRaw is the same untrimmed.
	Rating    string `json:"rating,omitzero"`
	RatingRaw string `json:"rating_raw,omitzero"`
	// The numbers as printed: "1", "-1", "". What they mean differs from site to site; see Position.
	Value       string `json:"rating_value,omitzero"`
	Best        string `json:"best_rating,omitzero"`
	Worst       string `json:"worst_rating,omitzero"`
	Explanation string `json:"rating_explanation,omitzero"`

	URLPrinted string `json:"url_printed,omitzero"`
	URL        string `json:"url,omitzero"` // canonical address of the review; "" if none is given
	Title      string `json:"title,omitzero"`
	Published  Stamp  `json:"published,omitzero"`
	Created    Stamp  `json:"created,omitzero"` // when a feed took the review up

	Authors       []string `json:"authors,omitzero"`     // who reviewed
	AuthorType    string   `json:"author_type,omitzero"` // Person or Organization, as the first author is typed
	Publisher     string   `json:"publisher,omitzero"`   // who published the review, where that is told apart
	PublisherSite string   `json:"publisher_site,omitzero"`
	License       string   `json:"license,omitzero"`
	Lang          string   `json:"lang,omitzero"`

	Claimants   []string `json:"claimants,omitzero"` // the first is who made the claim; what follows are roles and others
	Claimed     Stamp    `json:"claimed,omitzero"`   // when the claim was made
	Appearances []string `json:"appearances,omitzero"`

	Notes []string `json:"notes,omitzero"` // what was done to read it; see Note*
}

// Notes that a review may carry. A date that could not be read has one that names it.
const (
	NoteRepaired    = "markup repaired"
	NoteSeveral     = "one review names several claims"
	NoteFromValue   = "rating from ratingValue"
	NoteFromName    = "rating from the rating's name"
	NoteFromPage    = "address from mainEntityOfPage"
	NoteClaimInItem = "claim from itemReviewed"
)

// decimal is a number that a scale may have. It has few digits, so that no sum of them overflows.
var decimal = regexp.MustCompile(`^[+-]?\d{1,9}(?:\.\d{1,9})?$`)

// A Stamp is a date as printed and, where it is one, as read.
type Stamp struct {
	Printed string      `json:"printed"`
	Date    corpus.Date `json:"date,omitzero"`
}

// Author returns the first author of the review, "" for none.
func (r Review) Author() string { return first(r.Authors) }

// Claimant returns who made the claim, "" for nobody named.
func (r Review) Claimant() string { return first(r.Claimants) }

func first(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}

// A label is at most this long; some sites fill the field with the sentence that explains the verdict.
const (
	labelRunes = 40
	labelWords = 5
)

// Label returns the rating where it is short enough to be a word of a scale. A sentence is no label:
// it is kept in Rating and looked up nowhere.
func (r Review) Label() (string, bool) {
	if r.Rating == "" || utf8.RuneCountInString(r.Rating) > labelRunes || len(strings.Fields(r.Rating)) > labelWords {
		return "", false
	}
	return r.Rating, true
}

// Position returns where the number lies between worst (0) and best (1). It has no answer unless all
// three are printed, differ and fit each other: a number alone says nothing, 4 of 6 being false on one
// site and 1 true on another, and -1 stands for "no number" in all three.
func (r Review) Position() (float64, bool) {
	var n [3]float64
	for i, s := range []string{r.Value, r.Best, r.Worst} {
		x, err := strconv.ParseFloat(s, 64)
		if err != nil || !decimal.MatchString(s) {
			return 0, false
		}
		n[i] = x
	}
	value, best, worst := n[0], n[1], n[2]
	if best == worst || value < min(best, worst) || value > max(best, worst) {
		return 0, false
	}
	return (value - worst) / (best - worst), true
}

// Reviews are what the markup of one page holds.
type Reviews struct {
	Items []Review    `json:"items"`        // JSON-LD in the order of the scripts, then microdata; repeats are dropped
	Bad   []BadMarkup `json:"bad,omitzero"` // scripts that are no JSON and could not be made JSON
}

// BadMarkup is a script that was given up. A page whose markup is bad may still show the claim: the
// caller falls back to its selectors.
type BadMarkup struct {
	URL    string `json:"url"`    // of the page
	Script int    `json:"script"` // which ld+json script of the page, from 1
	Reason string `json:"reason"`
}

func (b BadMarkup) String() string {
	return fmt.Sprintf("bad markup on %s: ld+json script %d: %s", b.URL, b.Script, b.Reason)
}

// ClaimReviews returns every ClaimReview of a page: of its JSON-LD scripts, however they are nested,
// and of its microdata. Broken JSON is repaired where that takes no guess, see readMarkup. The error
// is the page's own; bad markup is no error.
func ClaimReviews(p *fetch.Page) (Reviews, error) {
	root, err := p.Doc()
	if err != nil {
		return Reviews{}, fmt.Errorf("read claim reviews: %w", err)
	}
	doc := goquery.NewDocumentFromNode(root)
	base := p.Final
	if href := doc.Find("base[href]").First().AttrOr("href", ""); href != "" {
		if u := corpus.ResolveURL(base, href); u != "" {
			base = u
		}
	}
	m := markup{base: base, ids: map[string]node{}}
	out := Reviews{Items: []Review{}}
	var scripts [][]any
	var notes [][]string
	number := 0
	doc.Find("script[type]").Each(func(_ int, s *goquery.Selection) {
		if kind, _, _ := strings.Cut(s.AttrOr("type", ""), ";"); !strings.EqualFold(strings.TrimSpace(kind), "application/ld+json") {
			return
		}
		number++
		values, repaired, err := readMarkup(s.Text())
		if err != nil {
			out.Bad = append(out.Bad, BadMarkup{URL: p.Final, Script: number, Reason: err.Error()})
		}
		var note []string
		if repaired {
			note = []string{NoteRepaired}
		}
		scripts, notes = append(scripts, values), append(notes, note)
	})
	for _, item := range microdata(doc) {
		scripts, notes = append(scripts, []any{item}), append(notes, nil)
	}
	for _, values := range scripts {
		m.index(values)
	}
	seen := repeats{}
	for i, values := range scripts {
		m.find(values, func(n node) {
			for _, r := range m.reviews(n, notes[i]) {
				if !seen.has(r) {
					out.Items = append(out.Items, r)
				}
			}
		})
	}
	return out, nil
}

// repeats recognises a review that a page holds twice: in a block for each screen width, or as JSON-LD
// and again as microdata.
type repeats map[[4]string]bool

func (s repeats) has(r Review) bool {
	key := [4]string{corpus.Fold(r.Claim), corpus.Slug(r.Rating), corpus.Fold(r.Claimant()), ""}
	anywhere, at := key, key
	anywhere[3], at[3] = "any", "at "+r.URL
	if s[at] || r.URL == "" && s[anywhere] || s[[4]string{key[0], key[1], key[2], "at "}] {
		return true
	}
	s[anywhere], s[at] = true, true
	return false
}

// A node is a JSON-LD object, or a microdata item in the same form.
type node = map[string]any

// markup reads the nodes of one page.
type markup struct {
	base string          // that relative addresses count from
	ids  map[string]node // nodes by @id, which others refer to
}

// find calls visit with every ClaimReview, wherever it lies: at the top, in an array, in @graph, or as
// the review of an article. Keys are walked in sorted order, since JSON objects have none.
func (m *markup) find(v any, visit func(node)) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			m.find(e, visit)
		}
	case node:
		if isType(v, "ClaimReview") {
			visit(v)
			return
		}
		for _, k := range slices.Sorted(maps.Keys(v)) {
			m.find(v[k], visit)
		}
	}
}

// index notes every node that has an @id and says more than that.
func (m *markup) index(v any) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			m.index(e)
		}
	case node:
		if id, ok := v["@id"].(string); ok && len(v) > 1 {
			if had, ok := m.ids[id]; !ok || len(had) < len(v) {
				m.ids[id] = v
			}
		}
		for _, k := range slices.Sorted(maps.Keys(v)) {
			m.index(v[k])
		}
	}
}

// reviews reads one ClaimReview: a review for each claim that it names, one without a claim if it
// names none.
func (m *markup) reviews(n node, notes []string) []Review {
	r := Review{Notes: slices.Clone(notes)}
	m.rating(&r, get(n, "reviewRating"))

	r.URLPrinted = decodeOnce(m.address(get(n, "url")))
	if r.URL = m.resolve(r.URLPrinted); r.URL == "" {
		if r.URL = m.resolve(decodeOnce(m.address(get(n, "mainEntityOfPage")))); r.URL != "" {
			r.Notes = append(r.Notes, NoteFromPage)
		}
	}
	r.Title = plain(scalar(get(n, "name", "headline")))
	r.Published = r.stamp("datePublished", get(n, "datePublished"))
	author := get(n, "author", "creator")
	r.Authors = m.names(author)
	if people := m.nodes(author); len(people) > 0 {
		r.AuthorType = first(types(people[0]))
	}
	r.Publisher = first(m.names(get(n, "publisher")))
	r.License = decodeOnce(m.address(get(n, "sdLicense", "license")))
	r.Lang = plain(scalar(get(n, "inLanguage")))

	claims := distinct(mapped(scalars(get(n, "claimReviewed")), plain))
	for _, item := range m.nodes(get(n, "itemReviewed")) {
		if len(r.Claimants) == 0 {
			r.Claimants = m.names(get(item, "author", "creator"))
		}
		appearance := append(m.nodes(get(item, "firstAppearance")), m.nodes(get(item, "appearance"))...)
		if r.Claimed.Printed == "" {
			if r.Claimed = r.stamp("datePublished of itemReviewed", get(item, "datePublished")); r.Claimed.Printed == "" && len(appearance) > 0 {
				r.Claimed = r.stamp("datePublished of firstAppearance", get(appearance[0], "datePublished"))
			}
		}
		for _, at := range append([]node{item}, appearance...) {
			r.Appearances = append(r.Appearances, m.resolve(decodeOnce(m.address(get(at, "url")))))
		}
		r.Appearances = distinct(r.Appearances)
		// The name of a Claim is often the place or the page where it was made; its text is the claim.
		if len(claims) == 0 && isType(item, "Claim") {
			if claims = distinct(mapped(scalars(get(item, "text")), plain)); len(claims) > 0 {
				r.Notes = append(r.Notes, NoteClaimInItem)
			}
		}
	}
	if len(claims) > 1 {
		r.Notes = append(r.Notes, NoteSeveral)
	}
	if len(claims) == 0 {
		return []Review{r}
	}
	var out []Review
	for _, c := range claims {
		one := r
		one.Claim, one.Notes = c, slices.Clone(r.Notes)
		out = append(out, one)
	}
	return out
}

// rating reads reviewRating, which is a node, a list of them, or a bare word or number.
func (m *markup) rating(r *Review, v any) {
	ratings := m.nodes(v)
	if len(ratings) == 0 {
		if s := scalar(v); decimal.MatchString(strings.TrimSpace(s)) {
			r.Value = strings.TrimSpace(s)
		} else {
			r.RatingRaw, r.Rating = decodeOnce(s), plain(s)
		}
		return
	}
	rating := ratings[0]
	if i := slices.IndexFunc(ratings, func(n node) bool { return get(n, "alternateName") != nil }); i >= 0 {
		rating = ratings[i]
	}
	r.Value = strings.TrimSpace(scalar(get(rating, "ratingValue")))
	r.Best = strings.TrimSpace(scalar(get(rating, "bestRating")))
	r.Worst = strings.TrimSpace(scalar(get(rating, "worstRating")))
	r.Explanation = plain(scalar(get(rating, "ratingExplanation")))
	printed, note := scalar(get(rating, "alternateName")), ""
	if printed == "" && r.Value != "" && !decimal.MatchString(r.Value) {
		printed, note = r.Value, NoteFromValue
	}
	if printed == "" {
		printed, note = scalar(get(rating, "name")), NoteFromName
	}
	r.RatingRaw, r.Rating = decodeOnce(printed), plain(printed)
	if r.Rating != "" && note != "" {
		r.Notes = append(r.Notes, note)
	}
}

// stamp reads a date; one that is printed and cannot be read is noted.
func (r *Review) stamp(field string, v any) Stamp {
	s := Stamp{Printed: decodeOnce(scalar(v))}
	if strings.TrimSpace(s.Printed) == "" {
		return Stamp{}
	}
	d, err := corpus.ReadDate(s.Printed)
	if err != nil {
		r.Notes = append(r.Notes, field+": "+err.Error())
	}
	s.Date = d
	return s
}

// nodes returns the nodes of a value, with references followed.
func (m *markup) nodes(v any) []node {
	var out []node
	for _, e := range listed(v) {
		switch e := e.(type) {
		case node:
			if _, literal := e["@value"]; !literal {
				out = append(out, m.follow(e))
			}
		case string:
			if n, ok := m.ids[e]; ok {
				out = append(out, n)
			}
		}
	}
	return out
}

// follow returns the node that a mere reference stands for.
func (m *markup) follow(n node) node {
	id, ok := n["@id"].(string)
	if !ok || len(n) > 2 || len(n) == 2 && len(types(n)) == 0 {
		return n
	}
	if full, ok := m.ids[id]; ok && len(full) > len(n) {
		return full
	}
	return n
}

// names returns what people and organisations are called. An address is no name.
func (m *markup) names(v any) []string {
	var out []string
	for _, e := range listed(v) {
		if found := m.nodes(e); len(found) > 0 {
			for _, n := range found {
				out = append(out, mapped(scalars(get(n, "name", "legalName")), plain)...)
			}
		} else if s := scalar(e); !strings.HasPrefix(s, "http://") && !strings.HasPrefix(s, "https://") {
			out = append(out, plain(s))
		}
	}
	return distinct(out)
}

// address returns what a value that is an address, or a node with one, prints.
func (m *markup) address(v any) string {
	for _, e := range listed(v) {
		if n, ok := e.(node); ok {
			if s := scalar(get(n, "url", "@id", "@value")); s != "" {
				return strings.TrimSpace(s)
			}
			continue
		}
		if s := strings.TrimSpace(scalar(e)); s != "" {
			return s
		}
	}
	return ""
}

// resolve makes an address of the web absolute and canonical, "" for anything else. Escapes stay as
// printed: sites exist whose addresses are escaped twice.
func (m *markup) resolve(printed string) string {
	if printed == "" {
		return ""
	}
	u := corpus.CanonicalURL(printed)
	if m.base != "" {
		u = corpus.ResolveURL(m.base, printed)
	}
	if !strings.HasPrefix(u, "http://") && !strings.HasPrefix(u, "https://") {
		return ""
	}
	return u
}

// get returns the first of some properties that a node fills in, nil if it fills in none.
func get(n node, names ...string) any {
	for _, name := range names {
		for _, key := range []string{name, "schema:" + name, "http://schema.org/" + name, "https://schema.org/" + name} {
			if v, ok := n[key]; ok && !vacant(v) {
				return v
			}
		}
		found := ""
		for key := range n {
			if strings.EqualFold(key, name) && !vacant(n[key]) && (found == "" || key < found) {
				found = key
			}
		}
		if found != "" {
			return n[found]
		}
	}
	return nil
}

// vacant reports whether a value says nothing.
func vacant(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case string:
		return strings.TrimSpace(v) == ""
	case []any:
		return !slices.ContainsFunc(v, func(e any) bool { return !vacant(e) })
	case node:
		return len(v) == 0
	}
	return false
}

// listed returns a value as a list; @list and @set are JSON-LD's way to say list.
func listed(v any) []any {
	switch v := v.(type) {
	case nil:
		return nil
	case []any:
		return v
	case node:
		for _, key := range []string{"@list", "@set"} {
			if l, ok := v[key].([]any); ok {
				return l
			}
		}
	}
	return []any{v}
}

// scalars returns the texts of a value, numbers as they are written. Nodes have none.
func scalars(v any) []string {
	var out []string
	for _, e := range listed(v) {
		if n, ok := e.(node); ok {
			e = n["@value"]
		}
		switch e := e.(type) {
		case string:
			out = append(out, e)
		case json.Number:
			out = append(out, e.String())
		case bool:
			out = append(out, strconv.FormatBool(e))
		}
	}
	return out
}

// scalar returns the first text of a value that is not blank.
func scalar(v any) string {
	for _, s := range scalars(v) {
		if strings.TrimSpace(s) != "" {
			return s
		}
	}
	return ""
}

// types returns the names of a node's types without their vocabulary. Some sites write type without @.
func types(n node) []string {
	v, ok := n["@type"]
	if !ok {
		v = n["type"]
	}
	var out []string
	for _, s := range scalars(v) {
		s = strings.TrimSpace(s)
		out = append(out, s[strings.LastIndexAny(s, "/#:")+1:])
	}
	return out
}

func isType(n node, name string) bool {
	return slices.ContainsFunc(types(n), func(t string) bool { return strings.EqualFold(t, name) })
}

func mapped(list []string, f func(string) string) []string {
	var out []string
	for _, s := range list {
		out = append(out, f(s))
	}
	return out
}

// distinct drops blanks and repeats.
func distinct(list []string) []string {
	var out []string
	seen := map[string]bool{"": true}
	for _, s := range list {
		if !seen[s] {
			seen[s] = true
			out = append(out, s)
		}
	}
	return out
}

var (
	entity     = regexp.MustCompile(`&(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});`)
	remark     = regexp.MustCompile(`(?s)<!--.*?-->`)
	breakTag   = regexp.MustCompile(`(?i)</?(?:p|br|div|li|ul|ol|h[1-6]|blockquote)(?:\s[^<>]*)?/?>`)
	formatting = regexp.MustCompile(`(?i)</?(?:a|b|i|u|em|strong|span|font|sub|sup|small|mark)(?:\s[^<>]*)?/?>`)
)

// decodeOnce decodes entities that end in a semicolon. Without one they are mostly parts of addresses:
// ?a=1&copy=2.
func decodeOnce(s string) string { return entity.ReplaceAllStringFunc(s, html.UnescapeString) }

// plain returns text as a reader sees it: formatting and remarks gone, entities decoded once, white
// space folded. Tags go first, so that a tag that the text speaks of (&lt;b&gt;) stays.
func plain(s string) string {
	if strings.Contains(s, "<") {
		if strings.Contains(s, "-->") {
			s = remark.ReplaceAllString(s, "")
		}
		s = formatting.ReplaceAllString(breakTag.ReplaceAllString(s, " "), "")
	}
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, decodeOnce(s))
	return corpus.Space(s)
}

// microdata returns the ClaimReview items of a page that are not a property of another.
func microdata(doc *goquery.Document) []node {
	scopes := doc.Find("[itemscope][itemtype]").FilterFunction(func(_ int, s *goquery.Selection) bool { return isType(itemNode(s), "ClaimReview") })
	if scopes.Length() == 0 {
		return nil
	}
	r := itemReader{byID: map[string]*goquery.Selection{}, following: map[string]bool{}, budget: itemBudget}
	doc.Find("[id]").Each(func(_ int, s *goquery.Selection) {
		if id := s.AttrOr("id", ""); r.byID[id] == nil {
			r.byID[id] = s
		}
	})
	var out []node
	inside := map[any]bool{} // elements of reviews; they come in document order, outer ones first
	scopes.Each(func(_ int, s *goquery.Selection) {
		at := s.Get(0)
		inside[at] = true
		if _, property := s.Attr("itemprop"); property {
			for up := at.Parent; up != nil; up = up.Parent {
				if inside[up] {
					return
				}
			}
		}
		out = append(out, r.item(s))
	})
	return out
}

// itemNode returns a node that holds an item's types alone.
func itemNode(s *goquery.Selection) node {
	var list []any
	for _, t := range strings.Fields(s.AttrOr("itemtype", "")) {
		list = append(list, t)
	}
	return node{"@type": list}
}

// itemReader reads microdata (HTML standard, section 5) into nodes. Their text is escaped, because the
// parser of the page has decoded it already and whoever reads nodes decodes once more.
type itemReader struct {
	byID      map[string]*goquery.Selection
	following map[string]bool // ids of the itemrefs on the way; one that leads back is not followed
	budget    int             // bytes of text that may still be read, where an element counts as elementCost
}

// itemBudget bounds the work on one page: nested properties repeat each other's text, and itemrefs can
// lead to each other in any order.
const (
	itemBudget  = 4 << 20
	elementCost = 256
	itemRefs    = 8
)

func (r *itemReader) item(s *goquery.Selection) node {
	n := itemNode(s)
	r.properties(s, n)
	for _, id := range distinct(strings.Fields(s.AttrOr("itemref", ""))) {
		if e := r.byID[id]; e != nil && !r.following[id] && len(r.following) < itemRefs {
			r.following[id] = true
			r.property(e, n)
			delete(r.following, id)
		}
	}
	return n
}

func (r *itemReader) properties(s *goquery.Selection, into node) {
	s.Children().Each(func(_ int, c *goquery.Selection) { r.property(c, into) })
}

func (r *itemReader) property(s *goquery.Selection, into node) {
	if r.budget -= elementCost; r.budget < 0 {
		return
	}
	_, scope := s.Attr("itemscope")
	names := strings.Fields(s.AttrOr("itemprop", ""))
	if len(names) > 0 {
		var value any
		if scope {
			value = r.item(s)
		}
		for _, name := range names {
			v := value
			if !scope {
				text := itemValue(s, name)
				if r.budget -= len(text); r.budget < 0 {
					return
				}
				v = html.EscapeString(text)
			}
			switch had := into[name].(type) {
			case nil:
				into[name] = v
			case []any:
				into[name] = append(had, v)
			default:
				into[name] = []any{had, v}
			}
		}
	}
	if !scope {
		r.properties(s, into)
	}
}

// itemValue returns the value of a property that is no item. A content attribute counts on every
// element, as search engines have it, and a link that carries a name is that name.
func itemValue(s *goquery.Selection, name string) string {
	if v, ok := s.Attr("content"); ok {
		return v
	}
	attribute := ""
	switch goquery.NodeName(s) {
	case "meta":
		return ""
	case "a", "area":
		if slices.Contains([]string{"url", "sameAs", "image", "logo", "license", "sdLicense", "mainEntityOfPage", "appearance", "firstAppearance"}, name) {
			attribute = "href"
		}
	case "link":
		attribute = "href"
	case "img", "audio", "video", "embed", "iframe", "source", "track":
		attribute = "src"
	case "object":
		attribute = "data"
	case "data", "meter":
		attribute = "value"
	case "time":
		attribute = "datetime"
	}
	if v, ok := s.Attr(attribute); ok && attribute != "" {
		return v
	}
	return s.Text()
}
