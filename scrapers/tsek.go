package scrapers

import (
	"regexp"
	"time"

	"assay/corpus"
)

// tsek reads Tsek.ph, a project of newsrooms and universities in the Philippines. The verdict is the category of a post, which
// WordPress writes into its class; no claim is printed apart from the headline.
var tsek = reviewSite{
	name:      "tsek",
	version:   1,
	doc:       "Tsek.ph: elections in the Philippines, in English and Filipino",
	proven:    "documented",
	reference: "a capture of a list of 2022 with twenty posts; pages as WordPress marks them",
	delay:     3 * time.Second,
	lang:      "fil",

	origins:  []string{"https://www.tsek.ph", "https://tsek.ph"},
	item:     regexp.MustCompile(`^/(?:[^/-]+-){3,}[^/]+/?$`),
	lists:    []string{"/wp-json/newspack-blocks/v1/articles?postsToShow=20&page=1", "/feed/?paged=1"},
	cards:    cards{card: "article.type-post", link: ".entry-title a[href]", date: ".entry-meta time.entry-date@datetime", next: "a[rel=next]"},
	headline: true,

	pages: []Layout{
		{Name: "2022", Mark: "article.type-post, body.single-post", Fields: []Field{
			{Name: FieldRating, Need: Required, From: []string{"main article@class => category-([a-z-]+)"}},
			{Name: FieldTitle, Need: Expected, From: []string{".entry-header h1.entry-title"}},
			{Name: FieldAuthors, From: []string{".entry-header .author a"}},
			{Name: FieldDate, Need: Expected, From: []string{".entry-header time.entry-date@datetime"}},
		}},
	},
	ratings: &corpus.RatingMap{Source: "tsek", Version: 1,
		Ratings: map[string]corpus.Rating{
			"false": is(corpus.False, "https://www.tsek.ph/70-million-katao-dumalo-sa-leni-kiko-grand-rally-sa-bacolod/"),
		},
		Queued: map[string]string{
			"misleading": "https://www.tsek.ph/ito-raw-ay-listahan-ng-accomplishments-ni-bongbong-marcos/",
			"no_basis":   "https://www.tsek.ph/no-basis-to-support-claim-that-robredos-cavite-sortie-attendees-were-paid/",
		}},
}.site()
