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

	ratings: &corpus.SnopesRatings,
}.site()

func snopesRating(s string) string { return strings.TrimSuffix(s, "About this rating") }

// withoutBy drops the word before an author.
func withoutBy(s string) string {
	for _, word := range []string{"By ", "by ", "Por ", "Par ", "Von "} {
		s = strings.TrimPrefix(s, word)
	}
	return s
}
