package scrapers

import (
	"regexp"
	"time"
)

// factcheckorg reads FactCheck.org. It prints no verdict and no claim apart from the headline, which tells
// the judgement in words: its claims say so by a flag, and no recipe takes them.
var factcheckorg = reviewSite{
	name:      "factcheckorg",
	version:   1,
	doc:       "FactCheck.org: US politics and science; prints no claim but its headline, and judges in words: its reviews are left out and counted",
	proven:    "captured",
	reference: "captures of two articles and of a listing, all of 2023",
	delay:     3 * time.Second,
	lang:      "en",

	origins: []string{"https://www.factcheck.org", "https://factcheck.org"},
	item:    regexp.MustCompile(`^/\d{4}/\d{2}/[^/]+/?$`),
	lists:   []string{wordPressPosts, "/feed/"},
	cards: cards{
		card: "main article.post, #content article.post, article.post",
		link: "h3.entry-title a[href]",
		date: "header .entry-meta",
		next: ".pagination .page-item-next a",
	},
	headline: true,
	pages: []Layout{
		{Name: "2023", Mark: "h1.entry-title", Fields: []Field{
			{Name: FieldTitle, Need: Required, From: []string{"header.entry-header h1.entry-title"}},
			{Name: FieldAuthors, Need: Expected, From: []string{"header .byline a"}},
			// The time that search engines are given is UTC: it puts late posts on another day.
			{Name: FieldDate, Need: Expected, From: []string{"header .entry-meta time.entry-date@datetime"}},
			{Name: FieldTags, From: []string{".entry-header .breadcrumb-category a"}},
			{Name: FieldBody, Need: Expected, From: []string{"#content .entry-content p"}},
		}},
	},
}.site()
