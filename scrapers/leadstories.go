package scrapers

import (
	"regexp"
	"time"

	"assay/corpus"
)

// leadstories reads Lead Stories. The verdict is in the ClaimReview; the headline opens with "Fact Check:".
var leadstories = reviewSite{
	name:      "leadstories",
	version:   1,
	doc:       "Lead Stories: viral posts, mostly of the US",
	proven:    "documented",
	reference: "ClaimReview as the site publishes it and its Atom feed; no page was captured",
	delay:     3 * time.Second,
	lang:      "en",

	origins: []string{"https://leadstories.com", "https://www.leadstories.com", "https://hoax-alert.leadstories.com"},
	item:    regexp.MustCompile(`^/(?:hoax-alert|analysis)/\d{4}/\d{2}/[^/]+\.html$|^/\d+-[^/]+\.html$`),
	lists:   []string{"/atom.xml"},

	pages: []Layout{
		{Name: "2019", Mark: "h1", ClaimReview: true, Fields: []Field{
			{Name: FieldClaim, Need: Required, From: []string{"review:claim"}},
			{Name: FieldRating, Need: Required, From: []string{"review:rating"}},
			{Name: FieldTitle, Need: Expected, From: []string{"body h1"}},
			{Name: FieldSpeaker, From: []string{"review:speaker"}},
			{Name: FieldStated, From: []string{"review:stated"}},
			{Name: FieldAuthors, From: []string{"review:authors"}},
			{Name: FieldDate, Need: Expected, From: []string{"review:date"}},
		}},
	},
	// No page that prints its words was seen, so every one of them waits for a person.
	ratings: &corpus.RatingMap{Source: "leadstories", Version: 1},
}.site()
