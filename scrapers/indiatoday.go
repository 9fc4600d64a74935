package scrapers

import (
	"regexp"
	"time"

	"assay/corpus"
)

// indiatoday reads India Today Fact Check. Readers see the verdict as a number of crows; the page explains what each says.
var indiatoday = reviewSite{
	name:      "indiatoday",
	version:   1,
	doc:       "India Today Fact Check: viral posts in India",
	proven:    "captured",
	reference: "a capture of an article of 2020",
	delay:     3 * time.Second,
	lang:      "en",

	origins: []string{"https://www.indiatoday.in"},
	item:    regexp.MustCompile(`^/fact-check/story/[^/]+$`),
	lists:   []string{"/fact-check"},
	cards:   cards{card: "article, .story-list li", link: "a[href]", next: "a[rel=next], .pager-next a"},

	pages: []Layout{
		{Name: "2020", Mark: ".factcheck-section", ClaimReview: true, Fields: []Field{
			{Name: FieldClaim, Need: Required, From: []string{"review:claim", ".factcheck-section .factcheck-review => ^Claim ?(.+?) ?Conclusion"}},
			{Name: FieldRating, Need: Required, From: []string{`.factcheck-result .factcheck-result-img img@src => /([123]c)\.gif`, "review:rating"}, Clean: crows},
			{Name: FieldTitle, Need: Expected, From: []string{"#story h1[itemprop=headline]"}},
			{Name: FieldSpeaker, From: []string{"review:speaker"}},
			{Name: FieldStated, From: []string{"review:stated"}},
			{Name: FieldAuthors, Need: Expected, From: []string{".profile-byline [itemprop=author]"}},
			{Name: FieldDate, Need: Expected, From: []string{".profile-byline .pubdata", "review:date"}},
			{Name: FieldBody, Need: Expected, From: []string{"article .description p"}},
		}},
	},
	ratings: &corpus.RatingMap{Source: "indiatoday", Version: 1,
		Ratings: map[string]corpus.Rating{
			"half_true":        is(corpus.HalfTrue, "https://www.indiatoday.in/fact-check/story/dad-spoofs-maternity-shoot-pics-go-viral-misleading-claim-1731271-2020-10-13"),
			"mostly_lies":      is(corpus.MostlyFalse, "https://www.indiatoday.in/fact-check/story/dad-spoofs-maternity-shoot-pics-go-viral-misleading-claim-1731271-2020-10-13"),
			"absolutely_false": is(corpus.False, "https://www.indiatoday.in/fact-check/story/dad-spoofs-maternity-shoot-pics-go-viral-misleading-claim-1731271-2020-10-13"),
		}},
}.site()

// crows returns what a number of crows stands for, as the page tells beside it; any other word as it is.
func crows(s string) string {
	switch s {
	case "1c":
		return "Half True"
	case "2c":
		return "Mostly lies"
	case "3c":
		return "Absolutely false"
	}
	return s
}
