package scrapers

import (
	"regexp"
	"time"

	"assay/corpus"
)

// newtral reads Newtral. The page shows the quotation twice, in full and cut; only the full one is the claim.
var newtral = reviewSite{
	name:      "newtral",
	version:   1,
	doc:       "Newtral: statements of politicians and viral posts in Spain",
	proven:    "captured",
	reference: "captures of an article and of its sitemaps, 2022",
	delay:     3 * time.Second,
	lang:      "es",

	origins: []string{"https://www.newtral.es"},
	item:    regexp.MustCompile(`^/[^/]+/20\d{6}/?$`),
	lists:   []string{"/sitemap_index.xml"},
	mapped:  regexp.MustCompile(`/factcheck-sitemap\d*\.xml$|/fact-check-sitemap\d*\.xml$`),
	mixed:   true,

	pages: []Layout{
		{Name: "2022", Mark: ".o-verification", ClaimReview: true, Fields: []Field{
			{Name: FieldClaim, Need: Required, From: []string{".c-card__verification__main mark.c-card__verification__quote:not(.c-card__verification_quote__small)", "review:claim"}},
			{Name: FieldRating, Need: Required, From: []string{".c-card__verification__main .c-card__verification__rating__text", "review:rating"}},
			{Name: FieldTitle, Need: Expected, From: []string{".entry-header h1.entry-title"}},
			{Name: FieldSpeaker, Need: Expected, From: []string{".c-card__verification__who .c-card__verification__who__name", "review:speaker"}},
			{Name: FieldStated, From: []string{"review:stated"}},
			{Name: FieldAuthors, Need: Expected, From: []string{".c-article__author a.author"}, Clean: withoutBy},
			{Name: FieldDate, Need: Expected, From: []string{".entry-meta time.entry-date@datetime", "review:date"}, Form: corpus.DateForm{DayFirst: true}},
			{Name: FieldBody, Need: Expected, From: []string{".c-article__content .entry-content p"}},
		}},
	},
	ratings: &corpus.RatingMap{Source: "newtral", Version: 1,
		Ratings: map[string]corpus.Rating{
			"falso":           is(corpus.False, "https://www.newtral.es/lista-espera-sanidad-gobierno/20221006/"),
			"verdadero":       is(corpus.True, "https://www.newtral.es/lista-espera-sanidad-gobierno/20221006/"),
			"verdad_a_medias": is(corpus.HalfTrue, "https://www.newtral.es/lista-espera-sanidad-gobierno/20221006/"),
		},
		Queued: map[string]string{
			"engañoso": "https://www.newtral.es/lista-espera-sanidad-gobierno/20221006/",
		}},
}.site()
