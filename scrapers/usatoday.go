package scrapers

import (
	"regexp"
	"time"

	"assay/corpus"
)

// usatoday reads the fact checks of USA Today. Claim and verdict are in the ClaimReview.
var usatoday = reviewSite{
	name:      "usatoday",
	version:   1,
	doc:       "USA Today Fact Check: viral posts and politics in the US",
	proven:    "documented",
	reference: "its reviews in a captured reply of Google's Fact Check Tools; no page was captured",
	delay:     3 * time.Second,
	lang:      "en",

	origins: []string{"https://www.usatoday.com", "https://usatoday.com"},
	item:    regexp.MustCompile(`^/story/news/factcheck/\d{4}/\d{2}/\d{2}/[^/]+/\d+/?$`),
	lists:   []string{"/news/factcheck/"},
	cards:   cards{card: "main a[href*='/factcheck/']", next: "a[rel=next]"},

	pages: []Layout{
		{Name: "2020", Mark: "article h1, main h1", ClaimReview: true, Fields: []Field{
			{Name: FieldClaim, Need: Required, From: []string{"review:claim"}},
			{Name: FieldRating, Need: Required, From: []string{"review:rating"}},
			{Name: FieldTitle, Need: Expected, From: []string{"main h1"}},
			{Name: FieldSpeaker, From: []string{"review:speaker"}},
			{Name: FieldStated, From: []string{"review:stated"}},
			{Name: FieldAuthors, From: []string{"review:authors"}},
			{Name: FieldDate, Need: Expected, From: []string{"review:date"}},
		}},
	},
	ratings: &corpus.RatingMap{Source: "usatoday", Version: 1, Ratings: map[string]corpus.Rating{
		"false": is(corpus.False, "https://www.usatoday.com/story/news/factcheck/2022/11/11/fact-check-2020-election-valid-contrary-trumps-latest-claim-pennsylvania/8318157001/"),
	}},
}.site()
