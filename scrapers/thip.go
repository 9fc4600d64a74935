package scrapers

import (
	"regexp"
	"time"

	"assay/corpus"
)

// thip reads THIP Media (The Healthy Indian Project), as posts of its WordPress interface and as pages, which hold the
// same text. A quick summary names the verdict.
var thip = reviewSite{
	name:      "thip",
	version:   1,
	doc:       "THIP Media: health claims in India",
	proven:    "captured",
	reference: "a capture of a post of 2022; pages as WordPress shows such posts",
	delay:     3 * time.Second,
	category:  corpus.Medical,
	lang:      "en",

	origins:  []string{"https://www.thip.media"},
	item:     regexp.MustCompile(`^/health-news-fact-check/[^/]+/\d+/?$|^/wp-json/wp/v2/posts/\d+$`),
	lists:    []string{wordPressPosts, "/feed/"},
	headline: true,

	pages: []Layout{
		{Name: "post", Mark: "[data-json] [data-key=content]", Fields: []Field{
			{Name: FieldClaim, Need: Expected, From: []string{"[data-key=content] h3 :: The Claim"}},
			{Name: FieldRating, Need: Required, From: []string{`[data-key=content] p => (?:claim|claims) to be ([A-Z][A-Za-z ]+?)\.?$`, `?[data-key=content] figure img[alt=Rating]@src => /([a-z-]+)\.png$`}},
			{Name: FieldTitle, Need: Expected, From: []string{"[data-key=title] [data-key=rendered]"}},
			{Name: FieldAuthors, From: []string{"[data-key=author_meta] [data-key=display_name]"}},
			{Name: FieldDate, Need: Expected, From: []string{"article [data-key=date_gmt]"}},
		}},
		{Name: "page", Mark: ".entry-content, .post-content", Fields: []Field{
			{Name: FieldClaim, Need: Expected, From: []string{"article h3 :: The Claim"}},
			{Name: FieldRating, Need: Required, From: []string{`article p => (?:claim|claims) to be ([A-Z][A-Za-z ]+?)\.?$`}},
			{Name: FieldTitle, Need: Expected, From: []string{"article h1"}},
			{Name: FieldAuthors, From: []string{"article .author a"}},
			{Name: FieldDate, Need: Expected, From: []string{"head meta[property='article:published_time']@content"}},
		}},
	},
	ratings: &corpus.RatingMap{Source: "thip", Version: 1,
		Ratings: map[string]corpus.Rating{
			"mostly_false": is(corpus.MostlyFalse, "https://www.thip.media/health-news-fact-check/fact-check-can-vitamin-d-cure-cancer/36698/"),
		}},
}.site()
