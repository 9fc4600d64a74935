package scrapers

import (
	"regexp"
	"time"

	"assay/corpus"
)

// climatefactchecks reads Climate Fact Checks. Claim and fact are headed paragraphs; the fact opens with the verdict.
var climatefactchecks = reviewSite{
	name:      "climatefactchecks",
	version:   1,
	doc:       "Climate Fact Checks: claims about climate in South Asia",
	proven:    "captured",
	reference: "captures of an article and of a listing, both of 2022",
	delay:     3 * time.Second,
	category:  corpus.Science,
	lang:      "en",

	origins: []string{"https://climatefactchecks.org"},
	item:    regexp.MustCompile(`^/(?:[^/-]+-){2,}[^/]+/?$`),
	lists:   []string{"/category/fact-check/", "/feed/"},
	cards:   cards{card: "article.entry-card", link: ".card-content h2 a[href], h2 a[href]", date: "li.meta-date time@datetime", next: "nav.ct-pagination a.next"},
	mixed:   true,

	pages: []Layout{
		{Name: "2022", Mark: `.entry-content p:contains("CLAIM"), article.category-fact-check`, Fields: []Field{
			{Name: FieldClaim, Need: Required, From: []string{"article .entry-content > p :: CLAIM"}},
			{Name: FieldRating, Need: Required, From: []string{`article .entry-content > p :: FACT => ^([A-Z][\w ]{2,24}?)\.`}},
			{Name: FieldTitle, Need: Expected, From: []string{".entry-header h1.page-title"}},
			{Name: FieldAuthors, Need: Expected, From: []string{".entry-header .ct-meta-element-author"}},
			{Name: FieldDate, Need: Expected, From: []string{".entry-header .meta-date time@datetime", "head meta[property='article:published_time']@content"}},
		}},
	},
	ratings: &corpus.RatingMap{Source: "climatefactchecks", Version: 1,
		Queued: map[string]string{
			"misleading_claim": "https://climatefactchecks.org/fact-check-not-enough-lithium-cobalt-for-ev-batteries-to-reach-net-zero/",
		}},
}.site()
