package scrapers

import (
	"regexp"
	"strings"
	"time"

	"assay/corpus"
)

// snopes reads Snopes: three designs of the site, and the articles from before 2016, which were never
// converted and tell claim and status in their text.
var snopes = reviewSite{
	name:    "snopes",
	version: 1,
	doc:     "Snopes: rumours and viral posts since 1994; about twenty ratings, some of them no verdicts",
	proven:  "captured",
	reference: "captures of claim pages of 2019 and 2021 and of a listing of 2018; pages of 2018 and the layouts of the " +
		"articles before 2016 as others describe them",
	delay: 3 * time.Second,
	lang:  "en",

	origins: []string{"https://www.snopes.com", "https://snopes.com"},
	item:    regexp.MustCompile(`^/fact-check/[^/]+/?$`),
	lists:   []string{"/fact-check/"},
	cards: cards{
		card: "article.list-group-item, article.media-wrapper, .article_wrapper",
		link: "a[href]",
		date: ".subheading .date",
		next: "a.btn-next, a.next-button, .next-button a, a[rel=next]",
	},

	pages: []Layout{
		{Name: "2021", Mark: "#fact_check_rating_container, .claim_wrapper", Fields: []Field{
			{Name: FieldClaim, Need: Required, From: []string{".claim_wrapper .claim_cont", "?review:claim"}},
			// A note inside the same element explains the rating to readers.
			{Name: FieldRating, Need: Required, From: []string{".rating_wrapper .rating_title_wrap", "?review:rating"}, Clean: snopesRating},
			{Name: FieldTitle, Need: Expected, From: []string{"section.title-container h1"}},
			{Name: FieldSpeaker, From: []string{"review:speaker"}},
			{Name: FieldAuthors, Need: Expected, From: []string{".author_box .author_name a"}, Clean: withoutBy},
			{Name: FieldDate, Need: Expected, From: []string{"section .publish_date => (\\w+ \\d+, \\d{4})", "?review:date"}},
			{Name: FieldBody, Need: Expected, From: []string{"#article-content p"}},
		}},
		{Name: "2019", Mark: ".claim-wrapper, .rating-wrapper", ClaimReview: true, Fields: []Field{
			{Name: FieldClaim, Need: Required, From: []string{".claim-wrapper .claim p", "review:claim"}},
			{Name: FieldRating, Need: Required, From: []string{".rating-wrapper h5[class^=rating-label-]", "review:rating"}},
			{Name: FieldTitle, Need: Expected, From: []string{"header.post-header h1.title"}},
			{Name: FieldSpeaker, From: []string{"review:speaker"}},
			{Name: FieldAuthors, Need: Expected, From: []string{"header.post-header a.author"}},
			{Name: FieldDate, Need: Expected, From: []string{"header.post-header .date-published", "review:date"}},
			{Name: FieldBody, Need: Expected, From: []string{"article .content p"}},
		}},
		{Name: "2018", Mark: "article p.claim", ClaimReview: true, Fields: []Field{
			{Name: FieldClaim, Need: Required, From: []string{"article p.claim", "review:claim"}},
			{Name: FieldRating, Need: Required, From: []string{"article span.rating-name", "review:rating"}},
			{Name: FieldTitle, Need: Expected, From: []string{"article h1"}},
			{Name: FieldSpeaker, From: []string{"review:speaker"}},
			{Name: FieldAuthors, Need: Expected, From: []string{"article a.author"}},
			{Name: FieldDate, Need: Expected, From: []string{"article span.date-published", "review:date"}},
		}},
		{Name: "before 2016", Mark: `p:contains("Claim:"), p:contains("CLAIM:"), td:contains("Claim:"), p:contains("FACT CHECK:")`, Fields: []Field{
			{Name: FieldClaim, Need: Required, From: []string{"?article p :: Claim:", "?article td :: Claim:", "?article p :: FACT CHECK:"}},
			// Status stands in the text, in the second cell of a table whose first one is a coloured dot, or
			// in a span behind the image of the rating.
			{Name: FieldRating, Need: Required, From: []string{"?article p :: Status:", "?article td :: Status:", "?article p :: Rating:", "?article img + span"},
				Clean: func(s string) string { return strings.Trim(s, " .") }},
			{Name: FieldTitle, Need: Expected, From: []string{"article h1"}},
			{Name: FieldAuthors, From: []string{"article a.author"}},
			{Name: FieldDate, From: []string{"article .date-published", "head meta[property='article:published_time']@content"}},
		}},
	},

	ratings: &corpus.RatingMap{Source: "snopes", Version: 1,
		Ratings: map[string]corpus.Rating{
			"true":         is(corpus.True, "https://www.snopes.com/fact-check/hockey-pucks-shooting-defense/"),
			"mostly_true":  is(corpus.MostlyTrue, "https://www.snopes.com/fact-check/trump-wampanoag-land/"),
			"mixture":      is(corpus.HalfTrue, "https://www.snopes.com/fact-check/matthew-whitaker-judges/"),
			"mostly_false": is(corpus.MostlyFalse, "https://www.snopes.com/fact-check/elizabethtown-college-white-privilege/"),
			"false":        is(corpus.False, "https://www.snopes.com/fact-check/christmas-story-marathon-tbs/"),
			"unproven":     is(corpus.Uncertain, "https://www.snopes.com/fact-check/marie-yovanovitch-net-worth/"),
		},
		// What these say of the truth of a claim depends on how the claim is worded.
		Queued: map[string]string{
			"correct_attribution":  "https://www.snopes.com/fact-check/wallace-american-fascism/",
			"misattributed":        "https://www.snopes.com/fact-check/winston-churchill-on-muslims-and-minority-rights/",
			"miscaptioned":         "https://www.snopes.com/fact-check/walmart-looting-video/",
			"outdated":             "https://www.snopes.com/fact-check/survivors-384th-af-squadron/",
			"legend":               "https://www.snopes.com/fact-check/indianapolis-area-code/",
			"scam":                 "https://www.snopes.com/fact-check-ratings/",
			"fake":                 "https://www.snopes.com/fact-check-ratings/",
			"recall":               "https://www.snopes.com/fact-check-ratings/",
			"labeled_satire":       "https://www.snopes.com/fact-check-ratings/",
			"originated_as_satire": "https://www.snopes.com/fact-check-ratings/",
			"research_in_progress": "https://www.snopes.com/fact-check-ratings/",
			"lost_legend":          "https://www.snopes.com/fact-check-ratings/",
		}},
}.site()

func snopesRating(s string) string { return strings.TrimSuffix(s, "About this rating") }

// withoutBy drops the word before an author.
func withoutBy(s string) string {
	for _, word := range []string{"By ", "by ", "Por ", "Par ", "Von "} {
		s = strings.TrimPrefix(s, word)
	}
	return s
}
