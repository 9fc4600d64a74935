package scrapers

import (
	"regexp"
	"time"

	"assay/corpus"
)

// polygraph reads Polygraph.info. Its ClaimReview writes the type of the rating in lower case, and a change in the year 1.
var polygraph = reviewSite{
	name:      "polygraph",
	version:   1,
	doc:       "Polygraph.info: statements of officials, mostly Russian and Chinese (Voice of America)",
	proven:    "captured",
	reference: "a capture of an article of 2019",
	delay:     3 * time.Second,
	lang:      "en",

	origins: []string{"https://www.polygraph.info"},
	item:    regexp.MustCompile(`^/a/(?:[^/]+/)?\d+\.html$`),
	lists:   []string{"/api/zmg_qme_qq"},
	cards:   cards{card: ".media-block", link: "a[href]"},

	pages: []Layout{
		{Name: "2019", Mark: ".fc__body", ClaimReview: true, Fields: []Field{
			{Name: FieldClaim, Need: Required, From: []string{".statement-content .wsw p", "review:claim"}},
			{Name: FieldRating, Need: Required, From: []string{".verdict-head .title > span:not(.ico)", "review:rating"}},
			{Name: FieldTitle, Need: Expected, From: []string{".hdr-container h1.pg-title"}},
			{Name: FieldSpeaker, Need: Expected, From: []string{".statement-head h4.author", "review:speaker"}},
			{Name: FieldStated, From: []string{"review:stated"}},
			{Name: FieldAuthors, Need: Expected, From: []string{"review:authors"}},
			{Name: FieldDate, Need: Expected, From: []string{".published time@datetime", "review:date"}},
		}},
	},
	ratings: &corpus.RatingMap{Source: "polygraph", Version: 1,
		Ratings: map[string]corpus.Rating{
			"false": is(corpus.False, "https://www.polygraph.info/a/fact-check-russia-us-al-tanf-rukban/30279001.html"),
		}},
}.site()
