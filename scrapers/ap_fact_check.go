package scrapers

import (
	"regexp"
	"time"

	"assay/corpus"
)

// apFactCheck reads the fact checks of the Associated Press. They are articles like any other, told by two labelled
// paragraphs; the weekly summary holds several pairs of them.
var apFactCheck = reviewSite{
	name:      "ap_fact_check",
	version:   1,
	doc:       "AP Fact Check: labelled paragraphs in articles of the agency, several a page in the weekly summary",
	proven:    "documented",
	reference: "the labels as the agency explains them; of its articles, captures of 2019 and 2023 that are no fact checks",
	delay:     5 * time.Second,
	lang:      "en",

	origins: []string{"https://apnews.com", "https://www.apnews.com"},
	item:    regexp.MustCompile(`^/article/[^/]+/?$`),
	lists:   []string{"/ap-fact-check", "/hub/ap-fact-check"},
	cards:   cards{card: ".PagePromo, .FeedCard", link: "a[href]", next: "a[rel=next], .Pagination-nextPage a"},

	mixed: true,
	pages: []Layout{
		// The body has had two classes, the labels one wording.
		{Name: "2020", Mark: `p:contains("CLAIM:")`, Pairs: true, Fields: []Field{
			{Name: FieldClaim, Need: Required, From: []string{"?.Article p :: CLAIM:", "?.RichTextStoryBody p :: CLAIM:"}},
			{Name: FieldRating, Need: Required, From: []string{"?.Article p => ^AP[’']S ASSESSMENT: (.+)$", "?.RichTextStoryBody p => ^AP[’']S ASSESSMENT: (.+)$"}, Clean: firstWords},
			{Name: FieldTitle, Need: Expected, From: []string{"?.CardHeadline h1", "?.Page-content h1"}},
			{Name: FieldAuthors, From: []string{".CardHeadline [class*=byline]", ".Page-authors a"}, Clean: withoutBy},
			{Name: FieldDate, Need: Expected, From: []string{"head meta[property='article:published_time']@content"}},
		}},
	},
	// No page that prints its words was seen, so every one of them waits for a person.
	ratings: &corpus.RatingMap{Source: "ap_fact_check", Version: 1},
}.site()
