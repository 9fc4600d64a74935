package scrapers

import (
	"regexp"
	"time"
)

// altnews reads Alt News. It prints neither a verdict nor a claim apart from the headline.
var altnews = reviewSite{
	name:      "altnews",
	version:   1,
	doc:       "Alt News: viral posts and media in India; prints no claim but its headline, and judges in words: its reviews are left out and counted",
	proven:    "captured",
	reference: "a capture of an article of 2016",
	delay:     3 * time.Second,
	lang:      "en",

	origins:  []string{"https://www.altnews.in", "https://altnews.in"},
	item:     regexp.MustCompile(`^/(?:[^/-]+-){3,}[^/]+/?$`),
	lists:    []string{wordPressPosts, "/feed/"},
	headline: true,

	pages: []Layout{
		{Name: "2016", Mark: "h1.entry-title", Fields: []Field{
			{Name: FieldTitle, Need: Required, From: []string{".entry-header h1.entry-title"}},
			{Name: FieldAuthors, Need: Expected, From: []string{".herald-author .author a"}},
			{Name: FieldDate, Need: Expected, From: []string{".entry-meta .herald-date", "head meta[property='article:published_time']@content"}},
			{Name: FieldBody, Need: Expected, From: []string{"article .herald-entry-content p"}},
		}},
	},
}.site()
