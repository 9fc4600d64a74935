package scrapers

import (
	"regexp"
	"time"

	"assay/corpus"
)

// thequint reads WebQoof of The Quint. Classes are hashes of a build, so fields are those for machines.
var thequint = reviewSite{
	name:      "thequint",
	version:   1,
	doc:       "The Quint, WebQoof: viral posts in India",
	proven:    "captured",
	reference: "a capture of an article of 2020",
	delay:     3 * time.Second,
	lang:      "en",

	origins: []string{"https://www.thequint.com", "https://hindi.thequint.com"},
	item:    regexp.MustCompile(`^/(?:news/)?webqoof/[^/]+/?$`),
	lists:   []string{"/news/webqoof"},
	cards:   cards{card: ".listing-page article, [class*=story-card], article", link: "a[href]"},

	pages: []Layout{
		{Name: "2020", Mark: ".story-element-text, .headline", ClaimReview: true, Fields: []Field{
			{Name: FieldClaim, Need: Required, From: []string{"review:claim"}},
			{Name: FieldRating, Need: Required, From: []string{"review:rating"}},
			{Name: FieldTitle, Need: Expected, From: []string{"head meta[property='og:title']@content"}},
			{Name: FieldSpeaker, From: []string{"review:speaker"}},
			{Name: FieldStated, From: []string{"review:stated"}},
			{Name: FieldAuthors, Need: Expected, From: []string{"head meta[name=author]@content"}},
			{Name: FieldDate, Need: Expected, From: []string{"head meta[property='article:published_time']@content", "review:date"}},
			{Name: FieldBody, Need: Expected, From: []string{"#story-body-wrapper .story-element-text p"}},
		}},
	},
	ratings: &corpus.RatingMap{Source: "thequint", Version: 1,
		Ratings: map[string]corpus.Rating{
			"false": is(corpus.False, "https://www.thequint.com/news/webqoof/are-these-last-tweets-of-sushant-singh-rajput-no-images-are-fake-fact-check"),
		}},
}.site()
