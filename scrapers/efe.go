package scrapers

import (
	"regexp"
	"time"

	"assay/corpus"
)

// efe reads EFE Verifica. The page tells the verdict in a sentence, the ClaimReview in a word, with a full stop.
var efe = reviewSite{
	name:      "efe",
	version:   1,
	doc:       "EFE Verifica: politics and viral posts in Spain",
	proven:    "captured",
	reference: "a capture of an article of 2022",
	delay:     3 * time.Second,
	lang:      "es",

	origins: []string{"https://verifica.efe.com"},
	item:    regexp.MustCompile(`^/(?:[^/-]+-){3,}[^/]+/?$`),
	lists:   []string{wordPressPosts, "/feed/"},

	pages: []Layout{
		{Name: "2022", Mark: ".post_content", ClaimReview: true, Fields: []Field{
			{Name: FieldClaim, Need: Required, From: []string{"review:claim", "article .post_content blockquote p"}},
			{Name: FieldRating, Need: Required, From: []string{"review:rating"}},
			{Name: FieldTitle, Need: Expected, From: []string{".sc_layouts_title_title h1"}},
			{Name: FieldSpeaker, From: []string{"review:speaker"}},
			{Name: FieldStated, From: []string{"review:stated"}},
			{Name: FieldAuthors, Need: Expected, From: []string{`article .post_content > p > strong => ^(\p{Lu}[^.]+)\.$`}, Split: " y "},
			{Name: FieldDate, Need: Expected, From: []string{"head meta[property='article:published_time']@content", "review:date"}},
			{Name: FieldBody, Need: Expected, From: []string{"article .post_content p"}},
		}},
	},
	ratings: &corpus.RatingMap{Source: "efe", Version: 1,
		Ratings: map[string]corpus.Rating{
			"falso": is(corpus.False, "https://verifica.efe.com/detenidos-mayoria-espanoles-no-extranjeros-como-asegura-ferris/"),
		}},
}.site()
