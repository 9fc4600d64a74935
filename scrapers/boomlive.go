package scrapers

import (
	"regexp"
	"time"

	"assay/corpus"
)

// boomlive reads BOOM in English, Bangla and Hindi. A box at the end of the article repeats the ClaimReview; its headings
// differ from year to year, its order does not.
var boomlive = reviewSite{
	name:      "boomlive",
	version:   1,
	doc:       "BOOM: viral posts in India, in English, Hindi and Bangla",
	proven:    "captured",
	reference: "captures of an English article of 2019 and a Bangla one of 2021",
	delay:     3 * time.Second,
	lang:      "en",

	origins: []string{"https://www.boomlive.in", "https://bangla.boomlive.in", "https://hindi.boomlive.in", "https://boomlive.in"},
	item:    regexp.MustCompile(`^/(?:[a-z-]+/)*(?:[^/-]+-){3,}[^/]+/?$`),
	other:   regexp.MustCompile(`^/(?:author|amp|search|tags?|topic)/`),
	lists:   []string{"/rss", "https://bangla.boomlive.in/rss", "https://hindi.boomlive.in/rss"},

	pages: []Layout{
		{Name: "2019", Mark: ".claim-review-block", ClaimReview: true, Fields: []Field{
			{Name: FieldClaim, Need: Required, From: []string{".claim-review-block .claim-value:nth-child(1) .value", "review:claim"}},
			{Name: FieldSpeaker, Need: Expected, From: []string{".claim-review-block .claim-value:nth-child(2) .value", "review:speaker"}},
			{Name: FieldRating, Need: Required, From: []string{".claim-review-block .claim-value:nth-child(3) .value", "review:rating"}},
			{Name: FieldTitle, Need: Expected, From: []string{".entry-header h1.entry-title"}},
			{Name: FieldStated, From: []string{"review:stated"}},
			{Name: FieldAuthors, Need: Expected, From: []string{".single-meta-wrapper-top a.author-link"}},
			{Name: FieldDate, Need: Expected, From: []string{"head meta[property='article:published_time']@content", "review:date"}},
		}},
	},
	ratings: &corpus.RatingMap{Source: "boomlive", Version: 1,
		Ratings: map[string]corpus.Rating{
			"false": is(corpus.False, "https://www.boomlive.in/video-claiming-hindu-kids-are-being-taught-namaz-in-karnataka-is-misleading/"),
		}},
}.site()
