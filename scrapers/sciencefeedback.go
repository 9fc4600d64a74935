package scrapers

import (
	"regexp"
	"time"

	"assay/corpus"
)

// sciencefeedback reads Science Feedback and the two sites that it grew out of, Climate Feedback and Health
// Feedback. A review carries a ClaimReview; a page may hold several.
var sciencefeedback = reviewSite{
	name:      "sciencefeedback",
	version:   1,
	doc:       "Science Feedback: scientists review claims about climate, health and energy; a scale of credibility",
	proven:    "documented",
	reference: "the scale that the site explains, and ClaimReview as it publishes it; no page was captured",
	delay:     3 * time.Second,
	category:  corpus.Science,
	lang:      "en",

	origins: []string{"https://science.feedback.org", "https://climatefeedback.org", "https://healthfeedback.org", "https://sciencefeedback.co"},
	item:    regexp.MustCompile(`^/(?:review|claimreview)/[^/]+/?$`),
	lists: []string{"/reviews/", "https://climatefeedback.org/claim-reviews/", "https://healthfeedback.org/claim-reviews/",
		"/feed/?paged=1"},
	cards: cards{card: "article.story, article.type-claimreview, article.post", link: "a[href]", next: "a.next.page-numbers, a[rel=next]"},

	pages: []Layout{
		{Name: "2019", Mark: "article, main", ClaimReview: true, Fields: []Field{
			{Name: FieldClaim, Need: Required, From: []string{"review:claim"}},
			{Name: FieldRating, Need: Required, From: []string{"review:rating"}},
			{Name: FieldTitle, Need: Expected, From: []string{"main h1"}},
			{Name: FieldSpeaker, From: []string{"review:speaker"}},
			{Name: FieldStated, From: []string{"review:stated"}},
			{Name: FieldAuthors, From: []string{"main .reviewers a", "review:authors"}},
			{Name: FieldDate, Need: Expected, From: []string{"review:date"}},
		}},
	},
	ratings: &corpus.RatingMap{Source: "sciencefeedback", Version: 1,
		Ratings: map[string]corpus.Rating{
			"accurate":          is(corpus.True, "https://sciencefeedback.co/claim-reviews-framework/"),
			"correct":           is(corpus.True, "https://sciencefeedback.co/claim-reviews-framework/"),
			"mostly_accurate":   is(corpus.MostlyTrue, "https://sciencefeedback.co/claim-reviews-framework/"),
			"mostly_correct":    is(corpus.MostlyTrue, "https://sciencefeedback.co/claim-reviews-framework/"),
			"partially_correct": is(corpus.HalfTrue, "https://sciencefeedback.co/claim-reviews-framework/"),
			"incorrect":         is(corpus.False, "https://sciencefeedback.co/claim-reviews-framework/"),
			"inaccurate":        is(corpus.False, "https://sciencefeedback.co/claim-reviews-framework/"),
			"unsupported":       is(corpus.Uncertain, "https://sciencefeedback.co/claim-reviews-framework/"),
		},
		Queued: map[string]string{
			"imprecise": "https://sciencefeedback.co/claim-reviews-framework/", "misleading": "https://sciencefeedback.co/claim-reviews-framework/",
			"lacks_context": "https://sciencefeedback.co/claim-reviews-framework/", "flawed_reasoning": "https://sciencefeedback.co/claim-reviews-framework/",
		}},
}.site()
