package scrapers

import (
	"regexp"
	"time"

	"assay/corpus"
)

// desifacts reads desifacts. The headline is the claim; the verdict stands under the first picture, among the tags and in
// the text.
var desifacts = reviewSite{
	name:      "desifacts",
	version:   1,
	doc:       "desifacts: claims among South Asians in the US, in English, Hindi and Bengali",
	proven:    "captured",
	reference: "captures of an article and of the sitemap, 2021 and 2022",
	delay:     3 * time.Second,
	lang:      "en",

	origins: []string{"https://www.desifacts.org"},
	item:    regexp.MustCompile(`^/(?:[a-z-]+)/[^/]+/?$`),
	other:   regexp.MustCompile(`^/(?:[a-z-]+)/(?:category|tag)(?:/|$)`),
	lists:   []string{"/sitemap.xml"},

	pages: []Layout{
		{Name: "2021", Mark: ".blog-item-title", Fields: []Field{
			{Name: FieldClaim, Need: Required, From: []string{".blog-item-title h1.entry-title => ^Claim: (.+)$"}},
			{Name: FieldRating, Need: Required, From: []string{`.blog-item-content .image-caption p => ^\W*(\w[\w ]{2,20})\W*$`, `?.blog-item-content strong => ^(?i)(true|false|mixed|misleading)\.?$`}},
			{Name: FieldTitle, Need: Expected, From: []string{".blog-item-title h1.entry-title"}},
			{Name: FieldAuthors, Need: Expected, From: []string{".blog-item-author-date-wrapper .blog-author-name"}},
			{Name: FieldDate, Need: Expected, From: []string{"meta[itemprop=datePublished]@content"}},
		}},
	},
	ratings: &corpus.RatingMap{Source: "desifacts", Version: 1,
		Ratings: map[string]corpus.Rating{
			"true": is(corpus.True, "https://www.desifacts.org/immigration/blog-post-title-one-8b35d"),
		}},
}.site()
