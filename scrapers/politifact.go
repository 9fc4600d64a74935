package scrapers

import (
	"context"
	"errors"
	"net/url"
	"path"
	"regexp"
	"strings"
	"time"

	"assay/corpus"
	"assay/fetch"

	"github.com/PuerkitoBio/goquery"
)

// politifact reads PolitiFact: listings of 2020 and later, claim pages of both markup generations.
var politifact = Site{
	Name:    "politifact",
	Version: 2,
	Doc:     "PolitiFact's truth-o-meter: US politics since 2007, six ratings, filter by speaker",
	Host:    "www.politifact.com",
	Hosts:   []string{"politifact.com"},
	Proven:  "captured",
	Reference: "captures of 1,017 claim pages (2007 to 2023, one of them in the markup before 2020), " +
		"of six listings and of the home page",
	Delay:     3 * time.Second,
	Lang:      "en",
	Layouts:   politifactLayouts,
	Cards:     "article.m-statement",
	Ratings:   &corpus.PolitiFactRatings,
	Recognise: politifactRecognise,
	Start:     politifactStart,
	Discover:  politifactDiscover,
	Parse:     politifactParse,
	Category:  corpus.Politics,
}

// politifactLayouts tells a canary where Parse finds what it reads. The site has no ClaimReview.
var politifactLayouts = []Layout{
	{Name: "2020", Mark: "article.m-statement.m-statement--is-xlarge", Fields: []Field{
		{Name: FieldClaim, Need: Required, From: []string{".m-statement--is-xlarge .m-statement__quote"}},
		{Name: FieldSpeaker, Need: Required, From: []string{".m-statement--is-xlarge a.m-statement__name"}},
		{Name: FieldRating, Need: Required, From: []string{".m-statement--is-xlarge .m-statement__meter picture img.c-image__original@alt"}},
		{Name: FieldTitle, Need: Expected, From: []string{"body h2.c-title"}},
		{Name: FieldStated, From: []string{".m-statement--is-xlarge .m-statement__desc => on (\\w+ \\d+, \\d{4})"}},
		// One page of a thousand has neither byline nor date.
		{Name: FieldAuthors, From: []string{".m-author__content a"}},
		{Name: FieldDate, From: []string{".m-author__content .m-author__date"}},
		{Name: FieldBody, Need: Expected, From: []string{"article.m-textblock p"}},
	}},
	{Name: "2007", Mark: ".statement .statement__text", Fields: []Field{
		{Name: FieldClaim, Need: Required, From: []string{".statement .statement__text"}},
		{Name: FieldSpeaker, Need: Required, From: []string{".statement .statement__meta a"}},
		{Name: FieldRating, Need: Required, From: []string{".statement .meter img.statement-detail@alt"}},
		{Name: FieldTitle, Need: Expected, From: []string{"body h1.article__title"}},
	}},
}

const politifactBase = "https://www.politifact.com"

var politifactOrigins = []string{politifactBase, "https://politifact.com"}

var (
	// The edition before /statements/ is truth-o-meter, punditfact, global-news or a state's.
	politifactItem = regexp.MustCompile(`^/(?:factchecks|[a-z-]+/statements)/\d{4}/[a-z]{3}/\d{1,2}/([^/]+)/[^/]+/?$`)

	politifactPerson = regexp.MustCompile(`/personalities/([^/?#]+)`)
	politifactTest   = regexp.MustCompile(`(?i)\btest of the fact-checking widget\b`)
	politifactDate   = regexp.MustCompile(`([A-Z][a-z]+)\.? (\d{1,2})(?:st|nd|rd|th)?, (\d{4})`)
)

// politifactPath reports whether an address has the path of an item, with the speaker's slug in it.
func politifactPath(address string) (slug string, ok bool) {
	u, err := url.Parse(address)
	if err != nil {
		return "", false
	}
	m := politifactItem.FindStringSubmatch(u.Path)
	if m == nil {
		return "", false
	}
	return m[1], true
}

func politifactRecognise(base, address string) bool {
	_, ok := politifactPath(corpus.CanonicalURL(address))
	return ok && (ofOrigin(address, base) || ofOrigin(address, politifactOrigins...))
}

func politifactStart(base string, speakers []string) []string {
	if base == "" {
		base = politifactBase
	}
	first := strings.TrimRight(base, "/") + "/factchecks/list/?page=1&category=truth-o-meter"
	if len(speakers) == 0 {
		return []string{corpus.CanonicalURL(first)}
	}
	var out []string
	for _, s := range speakers {
		out = append(out, corpus.CanonicalURL(first+"&speaker="+url.QueryEscape(s)))
	}
	return out
}

func politifactDiscover(ctx context.Context, f Fetcher, address string) (Listing, error) {
	doc, final, err := listingPage(ctx, f, address)
	if e := (*StatusError)(nil); errors.As(err, &e) && e.gone() && pageNumber(address) > 1 {
		return Listing{Refs: []corpus.Ref{}}, nil // the list grew shorter while we paged
	}
	if err != nil {
		return Listing{}, err
	}
	cards := doc.Find("article.m-statement")
	if cards.Length() == 0 && doc.Find(".o-listicle").Length() == 0 {
		return Listing{}, markupError("discover", final, "article.m-statement", doc)
	}
	out := Listing{Refs: []corpus.Ref{}}
	cards.Each(func(_ int, card *goquery.Selection) {
		s := politifactCard(card)
		ref, ok := lead("politifact", corpus.ResolveURL(final, s.href), s.href, func(u string) bool {
			_, ok := politifactPath(u)
			return ok && (ofOrigin(u, final) || ofOrigin(u, politifactOrigins...))
		})
		if s.href == "" || !ok {
			return // an article, which some pages list beside the checks
		}
		if ref.Speaker = s.slug; s.slug == "" {
			ref.Speaker, _ = politifactPath(ref.URL)
		}
		out.Refs = append(out.Refs, ref)
	})
	if cards.Length() > 0 { // a page past the end still shows a pager
		out.Next = nextPage(final, doc.Find("a.c-button[href]"), "Next", politifactOrigins...)
	}
	return out, nil
}

// A politifactStatement is what both generations print in a claim's box, as printed.
type politifactStatement struct {
	claim   string
	href    string // of the review, in listings
	speaker string
	slug    string
	context string // "stated on July 10, 2012 in a speech:"
	rating  string
}

// politifactCard reads a statement box of 2020 and later, on a claim's own page or in a listing.
func politifactCard(card *goquery.Selection) politifactStatement {
	var s politifactStatement
	quote := firstOf(card, ".m-statement__quote")
	s.claim = text(quote)
	s.href = firstOf(quote, "a[href]").AttrOr("href", "")
	name := firstOf(card, "a.m-statement__name")
	s.speaker = text(name)
	if s.speaker == "" {
		s.speaker = corpus.Space(name.AttrOr("title", ""))
	}
	s.slug = politifactSlug(name)
	s.context = text(firstOf(card, ".m-statement__desc"))
	s.rating = politifactMeter(card)
	return s
}

// politifactMeter reads the verdict, which is an image. The thumbnail in the same box says "true"
// on every claim page, so only the original counts.
func politifactMeter(card *goquery.Selection) string {
	img := firstOf(card, ".m-statement__meter picture img.c-image__original")
	if alt := corpus.Space(img.AttrOr("alt", "")); alt != "" {
		return alt
	}
	for _, class := range strings.Fields(card.AttrOr("class", "")) {
		word, ok := strings.CutPrefix(class, "m-statement--")
		if ok && word != "" && word != "boxed" && !strings.HasPrefix(word, "is-") {
			return word
		}
	}
	return politifactImage(img)
}

// politifactImage reads a verdict out of the name of its image: meter-half-true.jpg,
// tom-mostlytrue.png, tom_ruling_pof.png.
func politifactImage(img *goquery.Selection) string {
	u, err := url.Parse(img.AttrOr("src", ""))
	if err != nil {
		return ""
	}
	name := path.Base(u.Path)
	name = strings.TrimSuffix(name, path.Ext(name))
	for _, prefix := range []string{"meter-", "tom-", "tom_ruling_"} {
		if word, ok := strings.CutPrefix(name, prefix); ok {
			if word = strings.TrimSuffix(word, "-th"); word == "pof" {
				return "pants-fire"
			}
			return word
		}
	}
	return ""
}

// politifactOld reads the statement box of the markup before 2020.
func politifactOld(doc *goquery.Document) politifactStatement {
	var s politifactStatement
	s.claim = text(firstOf(doc, ".statement__text"))
	meta := firstOf(doc, ".statement__meta")
	name := firstOf(meta, "a")
	s.speaker = text(name)
	s.slug = politifactSlug(name)
	s.context = strings.TrimSpace(strings.TrimPrefix(strings.TrimLeft(text(meta), "—–- "), s.speaker))
	img := firstOf(doc, ".statement .meter img.statement-detail")
	s.rating = corpus.Space(img.AttrOr("alt", ""))
	if s.rating == "" {
		s.rating = politifactImage(img)
	}
	return s
}

func politifactSlug(link *goquery.Selection) string {
	if m := politifactPerson.FindStringSubmatch(link.AttrOr("href", "")); m != nil {
		return m[1]
	}
	return ""
}

func politifactParse(p *fetch.Page) ([]corpus.Claim, error) {
	node, err := p.Doc()
	if err != nil {
		return nil, err
	}
	if !ofOrigin(p.Final, p.URL) && !ofOrigin(p.Final, politifactOrigins...) {
		return nil, corpus.Exclude("redirected_elsewhere", p.URL+" leads to "+p.Final)
	}
	claim, err := politifactClaim(p.Final, goquery.NewDocumentFromNode(node))
	if err != nil {
		return nil, err
	}
	return []corpus.Claim{claim}, nil
}

// politifactClaim reads the one claim of a page that stands at an address.
func politifactClaim(address string, doc *goquery.Document) (corpus.Claim, error) {
	const newBox, oldBox = "article.m-statement.m-statement--is-xlarge", ".statement .statement__text"
	var s politifactStatement
	var c corpus.Claim
	want := map[string]string{
		"claim":   newBox + " .m-statement__quote",
		"speaker": newBox + " a.m-statement__name",
		"rating":  newBox + " .m-statement__meter picture img.c-image__original[alt]",
	}
	box := firstOf(doc, newBox)
	switch {
	case box.Length() > 0:
		s = politifactCard(box)
		c.Title = text(firstOf(doc, "h2.c-title"))
		byline := doc.Find(".m-author__content") // one for every author
		c.Authors = texts(byline.Find("a"))
		if printed := text(firstOf(byline, ".m-author__date")); printed != "" {
			if c.ReviewDate = politifactDay(printed); c.ReviewDate == "" {
				if d, err := corpus.ReadDate(printed); err == nil {
					c.ReviewDate = d.Day
				} else {
					c.Flags = corpus.AddFlag(c.Flags, corpus.FlagDateUnread)
				}
			}
		}
		c.Tags = texts(box.Find(".m-list__item .c-tag"))
	case doc.Find(oldBox).Length() > 0 && doc.Find("h1.article__title").Length() > 0: // lists have boxes, too
		s = politifactOld(doc)
		want = map[string]string{
			"claim":   oldBox,
			"speaker": ".statement__meta a",
			"rating":  ".statement .meter img.statement-detail[alt]",
		}
		c.Title = text(firstOf(doc, "h1.article__title"))
		byline := firstOf(doc, "p.article__meta")
		c.Authors = texts(byline.Find("a"))
		c.ReviewDate = politifactDay(text(byline))
		c.Tags = politifactSubjects(doc)
	default:
		return corpus.Claim{}, politifactNoClaim(address, newBox+" or "+oldBox, doc)
	}
	switch {
	case s.claim == "":
		return corpus.Claim{}, markupError("parse", address, want["claim"], doc)
	case s.speaker == "":
		return corpus.Claim{}, markupError("parse", address, want["speaker"], doc)
	case s.rating == "":
		return corpus.Claim{}, markupError("parse", address, want["rating"], doc)
	}
	c.Source = "politifact"
	c.Text, c.Speaker, c.SpeakerSlug = s.claim, s.speaker, s.slug
	if c.SpeakerSlug == "" {
		c.SpeakerSlug, _ = politifactPath(address)
	}
	c.StatedDate, c.Medium = politifactContext(s.context)
	c.ReviewURL = politifactReview(address, doc)
	c.ID = corpus.ClaimID(c.Text, c.Speaker, c.ReviewURL, c.StatedDate)
	c.RatingRaw = s.rating
	rating, ok := politifactRating(s.rating)
	if rating.Exclude != "" {
		return corpus.Claim{}, corpus.Exclude(rating.Exclude, s.rating+" on "+c.ReviewURL)
	}
	if ok {
		c.Rating, c.Verdict6, c.Status = rating.Slug, rating.Verdict, corpus.StatusSource
	} else {
		c.Flags = corpus.AddFlag(c.Flags, corpus.FlagUnmapped)
	}
	if politifactIsTest(s, doc) {
		c.Flags = corpus.AddFlag(c.Flags, corpus.FlagSiteTest)
	}
	return c, nil
}

// politifactNoClaim tells a page of another kind, which is an outcome, from a claim's page whose
// markup is not known, which is a failure.
func politifactNoClaim(address, want string, doc *goquery.Document) error {
	_, item := politifactPath(address)
	own := ofOrigin(address, politifactOrigins...) ||
		doc.Find(`meta[property="og:site_name"][content="@politifact"]`).Length() > 0
	if item || !own {
		return markupError("parse", address, want, doc)
	}
	return corpus.Exclude("not_a_fact_check", address+": "+pageTitle(doc))
}

// politifactRating maps a printed rating; image names run words together (mostlytrue).
func politifactRating(raw string) (corpus.Rating, bool) {
	if r, ok := corpus.PolitiFactRatings.Map(raw); ok {
		return r, true
	}
	slug := corpus.Slug(raw)
	for word, r := range corpus.PolitiFactRatings.Ratings {
		if strings.ReplaceAll(word, "_", "") == slug {
			return r, true
		}
	}
	return corpus.Rating{}, false
}

// politifactContext splits "stated on July 10, 2012 in a speech:" into date and medium. The medium
// is everything after the first " in ", as printed; some pages double the preposition, some have none.
func politifactContext(s string) (date, medium string) {
	_, medium, _ = strings.Cut(s, " in ")
	return politifactDay(s), strings.TrimSpace(strings.TrimSuffix(medium, ":"))
}

// politifactDay reads "December 1, 2020" and "Sunday, October 13th, 2019"; "" if there is no date.
// The site prints calendar days without a zone, so no zone is applied.
func politifactDay(s string) string {
	for _, m := range politifactDate.FindAllStringSubmatch(s, -1) {
		for _, layout := range []string{"January 2, 2006", "Jan 2, 2006"} {
			if t, err := time.Parse(layout, m[1]+" "+m[2]+", "+m[3]); err == nil {
				return t.Format(time.DateOnly)
			}
		}
	}
	return ""
}

// politifactSubjects reads the subjects of the old markup's side box.
func politifactSubjects(doc *goquery.Document) []string {
	var out []string
	doc.Find(".widget_about-article p").Each(func(_ int, p *goquery.Selection) {
		if strings.HasPrefix(text(p), "Subjects:") {
			out = append(out, texts(p.Find("a"))...)
		}
	})
	return out
}

// politifactReview returns the address of the review: the page's own, where that is an item's, else where the
// page was found. og:url is not asked: it names the newest address of a moved page, which would part the claim
// from the address that listings and archives know.
func politifactReview(address string, doc *goquery.Document) string {
	page := corpus.PageAddress(address, firstOf(doc, `head link[rel="canonical"]`).AttrOr("href", ""))
	if _, item := politifactPath(page); item {
		return page
	}
	return untracked(address)
}

// politifactIsTest recognises an entry with which the site tries out its own software.
func politifactIsTest(s politifactStatement, doc *goquery.Document) bool {
	if politifactTest.MatchString(s.claim) || politifactTest.MatchString(s.context) {
		return true
	}
	body := text(firstOf(doc, "article.m-textblock p, .article__text p"))
	return strings.HasPrefix(strings.ToLower(body), "lorem ipsum dolor")
}
