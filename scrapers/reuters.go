package scrapers

import (
	"regexp"
	"strings"
	"time"

	"assay/corpus"
)

// reuters reads Reuters Fact Check. It carries no ClaimReview: the verdict is the first word of the first
// paragraph (2020) or of the last section (2020 and later).
var reuters = reviewSite{
	name:      "reuters",
	version:   1,
	doc:       "Reuters Fact Check: viral posts, in English, Portuguese and Spanish; its pages often refuse programs, import them",
	proven:    "captured",
	reference: "captures of an English article of 2020 and a Portuguese one of 2024; the feed as Data Commons describes it",
	delay:     5 * time.Second,
	lang:      "en",

	origins: []string{"https://www.reuters.com", "https://reuters.com", "https://uk.reuters.com"},
	item:    regexp.MustCompile(`^/article/[^/]*fact-?check[^/]*(?:/[^/]+)?/?$|^/fact-check/(?:[a-z-]+/)?[^/]+-\d{4}-\d{2}-\d{2}/?$`),
	lists:   []string{"/fact-check/", "https://storage.googleapis.com/datacommons-feeds/claimreview/latest/data.json"},
	cards:   cards{card: "[data-testid$=StoryCard], li[class*=story-collection]", link: "a[href]"},

	headline: true,
	pages: []Layout{
		{Name: "2020", Mark: ".StandardArticleBody_body", Fields: []Field{
			{Name: FieldClaim, From: []string{".ArticleHeader_content-container h1.ArticleHeader_headline => (?i)^(?:(?:partly )?false |true )?claim: (.+)$"}},
			{Name: FieldRating, Need: Required, From: []string{".StandardArticleBody_body p :: Verdict"}, Clean: firstWords},
			{Name: FieldTitle, Need: Expected, From: []string{".ArticleHeader_content-container h1.ArticleHeader_headline"}},
			{Name: FieldAuthors, From: []string{"meta[name=Author]@content"}},
			{Name: FieldDate, Need: Expected, From: []string{"meta[name=REVISION_DATE]@content", "meta[property='og:article:published_time']@content"}},
			{Name: FieldBody, Need: Expected, From: []string{".StandardArticleBody_container .StandardArticleBody_body p"}},
		}},
		{Name: "2024", Mark: "[data-testid^=paragraph-]", Fields: []Field{
			{Name: FieldRating, Need: Required, From: []string{"?article h2[data-testid=Heading] :: VERDICT", "?article h2[data-testid=Heading] :: VEREDICTO"}, Clean: firstWords},
			{Name: FieldTitle, Need: Expected, From: []string{"header h1[data-testid=Heading]"}},
			{Name: FieldAuthors, Need: Expected, From: []string{"head meta[name='article:author']@content"}},
			{Name: FieldDate, Need: Expected, From: []string{"head meta[name='article:published_time']@content"}},
			{Name: FieldBody, Need: Expected, From: []string{"article [data-testid^=paragraph-]"}},
		}},
	},

	ratings: &corpus.RatingMap{Source: "reuters", Version: 1,
		Ratings: map[string]corpus.Rating{
			"false": is(corpus.False, "https://www.reuters.com/article/uk-factcheck-pelosi-sotu-idUSKBN20J2GK"),
		},
		Queued: map[string]string{
			"enganoso": "https://www.reuters.com/fact-check/portugues/E5RFLOD6IVIAVPSIPV6CY7767Y-2024-02-23/",
		}},
}.site()

// firstWords returns the verdict that a paragraph opens with: "Misleading. The video ...".
func firstWords(s string) string {
	if i := strings.IndexAny(s, ".:;,!"); i > 0 {
		s = s[:i]
	}
	return s
}
