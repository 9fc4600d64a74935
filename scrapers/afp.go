package scrapers

import (
	"regexp"
	"time"

	"assay/corpus"
)

// afp reads AFP's fact-check sites, one for each language. The verdict is in the ClaimReview alone, in the
// page's language and in some languages as a whole sentence.
var afp = reviewSite{
	name:      "afp",
	version:   1,
	doc:       "AFP Fact Check: fact checks of the agency in English, French, Spanish, Portuguese, German, Hindi and more",
	proven:    "captured",
	reference: "captures of five articles of 2020 to 2022 in English, French, Spanish, German and Hindi; lists as others describe them",
	delay:     10 * time.Second, // its robots.txt asks for as much
	lang:      "en",

	origins: []string{
		"https://factcheck.afp.com", "https://factuel.afp.com", "https://factual.afp.com", "https://faktencheck.afp.com",
		"https://checamos.afp.com", "https://factcheckhindi.afp.com", "https://factcheckbangla.afp.com", "https://factcheckkorea.afp.com",
		"https://factcheckthailand.afp.com", "https://periksafakta.afp.com", "https://semakanfakta.afp.com", "https://sprawdzam.afp.com",
		"https://napravoumiru.afp.com", "https://fakty.afp.com", "https://factcheckgreek.afp.com", "https://factchecknederland.afp.com",
	},
	// Some addresses are escaped twice, by the site itself; they are kept so.
	item: regexp.MustCompile(`^/(?:doc\.afp\.com\.[0-9A-Za-z-]+|http%253A%252F%252Fdoc\.afp\.com%252F[0-9A-Za-z-]+|(?:[a-z0-9]+-){3,}[a-z0-9]+)/?$`),
	lists: []string{
		"/list", "https://factuel.afp.com/list", "https://factual.afp.com/list", "https://faktencheck.afp.com/list",
		"https://checamos.afp.com/list", "https://factcheckhindi.afp.com/list",
	},
	cards: cards{card: "main .card", link: "a[href]", next: "li.next a, .pager__item--next a, a[rel=next]"},

	pages: []Layout{
		{Name: "2020", Mark: "h1.content-title", ClaimReview: true, Fields: []Field{
			{Name: FieldClaim, Need: Required, From: []string{"review:claim"}},
			{Name: FieldRating, Need: Required, From: []string{"review:rating"}},
			{Name: FieldTitle, Need: Expected, From: []string{".content-header-single h1.content-title"}},
			{Name: FieldSpeaker, From: []string{"review:speaker"}}, // mostly a stand-in, such as "multiple sources"
			{Name: FieldStated, From: []string{"review:stated"}},
			{Name: FieldAuthors, Need: Expected, From: []string{".content-header-single .meta-author a"}},
			// Three dates compete. The ClaimReview has the one that readers see, which is written in words of
			// the page's language; article:published_time is when it was first saved.
			{Name: FieldDate, Need: Expected, From: []string{"review:date"}},
			{Name: FieldBody, Need: Expected, From: []string{"article .article-entry"}},
		}},
	},

	ratings: &corpus.RatingMap{Source: "afp", Version: 1,
		Ratings: map[string]corpus.Rating{
			"false":  is(corpus.False, "https://factcheck.afp.com/cdc-does-not-add-flu-and-pneumonia-deaths-covid-19-toll"),
			"falso":  is(corpus.False, "https://factual.afp.com/doc.afp.com.32DZ4YE"),
			"faux":   is(corpus.False, "https://factuel.afp.com/doc.afp.com.9XC9W4"),
			"falsch": is(corpus.False, "https://faktencheck.afp.com/http%253A%252F%252Fdoc.afp.com%252F9LK8NN-1"),
		},
		// What misleads or lacks context may be true, and an altered picture is no claim in words.
		Queued: map[string]string{
			"misleading":      "https://factcheck.afp.com/http%253A%252F%252Fdoc.afp.com%252F9FP3CE-1",
			"missing_context": "https://factcheck.afp.com/defend-billionaires-sign-picturing-musk-not-real-ad",
			"altered_image":   "https://factcheck.afp.com/http%253A%252F%252Fdoc.afp.com%252F9G82NF-1",
		}},
}.site()
