package scrapers

import (
	"regexp"
	"time"

	"assay/corpus"
)

// fullfact reads Full Fact. What was claimed and what is found stand side by side; the finding is a
// sentence, which is kept and mapped to nothing.
var fullfact = reviewSite{
	name:      "fullfact",
	version:   1,
	doc:       "Full Fact: UK politics, health and viral posts; verdicts are sentences, so every claim waits for a person",
	proven:    "documented",
	reference: "rows of a published data set with its pages, and readers that others wrote; no page was captured",
	delay:     3 * time.Second,
	lang:      "en",

	origins: []string{"https://fullfact.org", "https://www.fullfact.org"},
	item:    regexp.MustCompile(`^/(?:[a-z0-9-]+/)+[a-z0-9-]+/?$`),
	other:   regexp.MustCompile(`^/(?:about|accounts|blog|contact|donate|feed|get-involved|jobs|latest|media|news|policy|search|signup|toolkit|training)/`),
	lists:   []string{"/feed/all/", "/latest/"},
	cards:   cards{card: "article .card, .card", link: "a[href]", next: "a[rel=next], .pagination .next a"},

	pages: []Layout{
		{Name: "2020", Mark: "h5.card-title", Fields: []Field{
			{Name: FieldClaim, Need: Required, From: []string{"article h5.card-title :: What was claimed", "?review:claim"}},
			{Name: FieldRating, Need: Required, From: []string{"article h5.card-title :: Our verdict", "?review:rating"}},
			{Name: FieldTitle, Need: Expected, From: []string{"article h1"}},
			{Name: FieldSpeaker, From: []string{"review:speaker"}},
			{Name: FieldStated, From: []string{"review:stated"}},
			{Name: FieldAuthors, From: []string{"article .author a", "review:authors"}},
			{Name: FieldDate, From: []string{"review:date", "head meta[property='article:published_time']@content", "article .published-at"}},
		}, Pairs: true},
	},
	// No page that prints its words was seen, so every one of them waits for a person.
	ratings: &corpus.RatingMap{Source: "fullfact", Version: 1},
}.site()
