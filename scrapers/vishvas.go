package scrapers

import (
	"regexp"
	"time"

	"assay/corpus"
)

// vishvas reads Vishvas News. The page tells the verdict in its language, the ClaimReview in English.
var vishvas = reviewSite{
	name:      "vishvas",
	version:   1,
	doc:       "Vishvas News: viral posts in India, in Hindi, English and ten more languages",
	proven:    "captured",
	reference: "captures of an English and a Hindi article of 2022",
	delay:     3 * time.Second,
	lang:      "hi",

	origins: []string{"https://www.vishvasnews.com"},
	item:    regexp.MustCompile(`^/(?:[a-z-]+/){1,2}(?:[^/-]+-){3,}[^/]+/?$`),
	lists:   []string{"/feed/?paged=1", "/english/feed/?paged=1"},

	pages: []Layout{
		{Name: "2022", Mark: ".reviews", ClaimReview: true, Fields: []Field{
			{Name: FieldClaim, Need: Required, From: []string{".reviews .claim-review li:nth-child(1) span", "review:claim"}},
			{Name: FieldSpeaker, Need: Expected, From: []string{".reviews .claim-review li:nth-child(2) span", "review:speaker"}},
			{Name: FieldRating, Need: Required, From: []string{".reviews .claim-review li:nth-child(3) span", "review:rating"}},
			{Name: FieldStated, From: []string{"review:stated"}},
			{Name: FieldTitle, Need: Expected, From: []string{".repeated_article_area h1.article-heading"}},
			{Name: FieldAuthors, Need: Expected, From: []string{".lhs-area ul.updated li span"}},
			// The ClaimReview adds the offset of India twice, which moves late posts to the next day.
			{Name: FieldDate, Need: Expected, From: []string{"head meta[property='article:published_time']@content"}},
			{Name: FieldBody, Need: Expected, From: []string{".lhs-area .view-full p"}},
		}},
	},
	ratings: &corpus.RatingMap{Source: "vishvas", Version: 1,
		Ratings: map[string]corpus.Rating{
			"false": is(corpus.False, "https://www.vishvasnews.com/english/viral/fact-check-rishi-sunak-did-not-make-a-viral-statement-about-former-pm-manmohan-singh-viral-post-is-fake/"),
			"झूठ":   is(corpus.False, "https://www.vishvasnews.com/politics/fact-check-priyanka-gandhi-and-robert-vadras-marriage-was-officiated-by-kashmiri-priest-fake-claim-viral/"),
			"true":  is(corpus.True, "https://www.vishvasnews.com/english/viral/fact-check-rishi-sunak-did-not-make-a-viral-statement-about-former-pm-manmohan-singh-viral-post-is-fake/"),
			"सच":    is(corpus.True, "https://www.vishvasnews.com/politics/fact-check-priyanka-gandhi-and-robert-vadras-marriage-was-officiated-by-kashmiri-priest-fake-claim-viral/"),
		},
		Queued: map[string]string{
			"misleading": "https://www.vishvasnews.com/english/viral/fact-check-rishi-sunak-did-not-make-a-viral-statement-about-former-pm-manmohan-singh-viral-post-is-fake/",
			"भ्रामक":     "https://www.vishvasnews.com/politics/fact-check-priyanka-gandhi-and-robert-vadras-marriage-was-officiated-by-kashmiri-priest-fake-claim-viral/",
		}},
}.site()
