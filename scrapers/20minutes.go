package scrapers

import (
	"regexp"
	"time"

	"assay/corpus"
)

// minutes20 reads "Fake Off" of the French daily 20 Minutes. The verdict is in the ClaimReview alone, as a word of its
// editing system; all its numbers are -1.
var minutes20 = reviewSite{
	name:      "20minutes",
	version:   1,
	doc:       "20 Minutes, Fake Off: viral posts and politics in France",
	proven:    "captured",
	reference: "a capture of an article of 2022",
	delay:     3 * time.Second,
	lang:      "fr",

	origins: []string{"https://www.20minutes.fr"},
	item:    regexp.MustCompile(`^/(?:[a-z-]+/)+\d{7}-\d{8}-[^/]+$`),
	lists:   []string{"/societe/desintox/"},
	cards:   cards{card: "article", link: "a[href]"},
	mixed:   true,

	pages: []Layout{
		{Name: "2022", Mark: `.hat-label:contains("FAKE OFF")`, ClaimReview: true, Fields: []Field{
			{Name: FieldClaim, Need: Required, From: []string{"review:claim"}},
			{Name: FieldRating, Need: Required, From: []string{"review:rating"}},
			{Name: FieldTitle, Need: Expected, From: []string{"header h1.nodeheader-title"}},
			{Name: FieldSpeaker, From: []string{"review:speaker"}},
			{Name: FieldStated, From: []string{"review:stated"}},
			{Name: FieldAuthors, Need: Expected, From: []string{".nodeheader-infos .author-name"}},
			{Name: FieldDate, Need: Expected, From: []string{".nodeheader-infos .datetime time@datetime", "review:date"}},
			{Name: FieldBody, Need: Expected, From: []string{"article .lt-endor-body p"}},
		}},
	},
	ratings: &corpus.RatingMap{Source: "20minutes", Version: 1,
		Ratings: map[string]corpus.Rating{
			"really_false": is(corpus.False, "https://www.20minutes.fr/monde/ukraine/3288079-20220511-guerre-ukraine-role-urss-pendant-seconde-guerre-mondiale-sous-estime-enseignement-france"),
		}},
}.site()
