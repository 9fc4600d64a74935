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
	version:   2,
	doc:       "desifacts: claims among South Asians in the US, in English, Hindi and Bengali",
	proven:    "captured",
	reference: "captures of an article and of the sitemap, 2021 and 2022",
	delay:     3 * time.Second,
	lang:      "en",

	origins: []string{"https://www.desifacts.org"},
	item:    regexp.MustCompile(`^/[a-z0-9-]+/[^/]+/?$`),
	other:   regexp.MustCompile(`^/[a-z0-9-]+/(?:category|tag)(?:/|$)`),
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
	// Its sitemap names a page for the articles of each word.
	ratings: &corpus.RatingMap{Source: "desifacts", Version: 2,
		Ratings: map[string]corpus.Rating{
			"true":         is(corpus.True, "https://www.desifacts.org/immigration/blog-post-title-one-8b35d"),
			"mostly_true":  is(corpus.MostlyTrue, "https://www.desifacts.org/covid-19/category/Mostly+True"),
			"half_true":    is(corpus.HalfTrue, "https://www.desifacts.org/voting-elections/category/Half+True"),
			"mostly_false": is(corpus.MostlyFalse, "https://www.desifacts.org/covid-19/category/Mostly+False"),
			"false":        is(corpus.False, "https://www.desifacts.org/immigration/category/False"),
		}},
}.site()
