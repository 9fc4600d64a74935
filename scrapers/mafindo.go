package scrapers

import (
	"regexp"
	"time"

	"assay/corpus"
)

// mafindo reads MAFINDO: items of the interface of its hoax database, and the posts of turnbackhoax.id, whose headlines open
// with the classification in brackets.
var mafindo = reviewSite{
	name:      "mafindo",
	version:   1,
	doc:       "MAFINDO, turnbackhoax.id: viral posts in Indonesia",
	proven:    "captured",
	reference: "a capture of an item of the interface of 2021; posts as others describe them",
	delay:     3 * time.Second,
	lang:      "id",

	origins: []string{"https://turnbackhoax.id", "https://yudistira.turnbackhoax.id"},
	item:    regexp.MustCompile(`^/\d{4}/\d{2}/\d{2}/[^/]+/?$|^/api/antihoax/[^/]+/?$`),
	lists:   []string{"/feed/?paged=1"},

	pages: []Layout{
		{Name: "item", Mark: "[data-json] [data-key=classification]", Fields: []Field{
			{Name: FieldClaim, Need: Required, From: []string{"[data-json] [data-key=content]"}},
			{Name: FieldRating, Need: Required, From: []string{"[data-json] [data-key=classification]"}},
			{Name: FieldTitle, Need: Expected, From: []string{"[data-json] [data-key=title]"}},
			{Name: FieldDate, Need: Expected, From: []string{"[data-json] [data-key=tanggal]"}},
		}},
		{Name: "post", Mark: "h1.entry-title", Fields: []Field{
			{Name: FieldClaim, Need: Required, From: []string{`header h1.entry-title => ^\[[^\]]+\]\s*(.+)$`}},
			{Name: FieldRating, Need: Required, From: []string{`header h1.entry-title => ^\[([^\]]+)\]`}},
			{Name: FieldTitle, Need: Expected, From: []string{"header h1.entry-title"}},
			{Name: FieldAuthors, From: []string{".entry-meta .author a"}},
			{Name: FieldDate, From: []string{"head meta[property='article:published_time']@content", "?header time.entry-date@datetime"}},
		}},
	},
	// The database of checks prints these before and below its items.
	ratings: &corpus.RatingMap{Source: "mafindo", Version: 1,
		Ratings: map[string]corpus.Rating{"salah": is(corpus.False, "https://gfd.turnbackhoax.id/")},
		Queued: map[string]string{
			"penipuan":           "https://gfd.turnbackhoax.id/page/48",
			"fabricated_content": "https://gfd.turnbackhoax.id/page/48",
			"false_context":      "https://yudistira.turnbackhoax.id/",
		}},
}.site()
