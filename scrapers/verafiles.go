package scrapers

import (
	"regexp"
	"time"
)

// verafiles reads VERA Files. Fact checks tell the judgement in the headline; fact sheets, which check nobody, are left out.
var verafiles = reviewSite{
	name:      "verafiles",
	version:   1,
	doc:       "VERA Files: statements of officials and viral posts in the Philippines; judges in words",
	proven:    "captured",
	reference: "a capture of a fact sheet of 2022; fact checks as the same pages hold them",
	delay:     3 * time.Second,
	lang:      "en",

	origins:   []string{"https://verafiles.org"},
	item:      regexp.MustCompile(`^/articles/[^/]+/?$`),
	lists:     []string{"/feed/?paged=1"},
	headline:  true,
	elsewhere: regexp.MustCompile(`(?i)^(?:VERA FILES )?(?:FACT SHEET|FACT-?SHEET|ANALYSIS|COMMENTARY|WEEKLY)\b`),

	pages: []Layout{
		{Name: "2022", Mark: "h1.article_title", Fields: []Field{
			{Name: FieldTitle, Need: Required, From: []string{".entry-header h1.article_title"}},
			{Name: FieldAuthors, Need: Expected, From: []string{".entry-meta #article_author"}},
			{Name: FieldDate, Need: Expected, From: []string{`.entry-meta #article_date => (\w+ \d+, \d{4})`, "head meta[property='article:published_time']@content"}},
			{Name: FieldBody, Need: Expected, From: []string{"article .entry-content p"}},
		}},
	},
}.site()
