package scrapers

import (
	"regexp"
	"strings"
	"time"

	"assay/corpus"
)

// africacheck reads Africa Check, before and after its relaunch of 2020. The claim is the one of the
// ClaimReview: the page words it anew in a box for readers, and an id must not change with that box.
var africacheck = reviewSite{
	name:      "africacheck",
	version:   1,
	doc:       "Africa Check: statements of public figures and viral posts in Africa, in English and French",
	proven:    "captured",
	reference: "captures of an article before and one after the relaunch of 2020, and of a listing of 2022, whose form names the scale",
	delay:     5 * time.Second,
	lang:      "en",

	origins: []string{"https://africacheck.org", "https://www.africacheck.org"},
	item:    regexp.MustCompile(`^/(?:fr/)?(?:fact-checks/(?:reports|fbchecks|spotchecks|spot-checks|meta-programme-fact-checks)|reports|spot-check)/[^/]+/?$`),
	lists:   []string{"/fact-checks?page=0", "/fr/fact-checks?page=0"},
	cards:   cards{card: "article.node--view-mode-card", link: ".node__content a[href]", next: ".pager a[rel=next]"},

	pages: []Layout{
		{Name: "2020", Mark: ".article-details", ClaimReview: true, Fields: []Field{
			{Name: FieldClaim, Need: Required, From: []string{"review:claim", ".article-details__claims .field"}},
			// On the page the rating is a class alone.
			{Name: FieldRating, Need: Required, From: []string{".article-details__verdict .rating@class => rating--([a-z_-]+)", "review:rating"}},
			{Name: FieldTitle, Need: Expected, From: []string{".hero__content h1.page-title"}},
			{Name: FieldSpeaker, Need: Expected, From: []string{"review:speaker", ".article-details__source .field"}},
			{Name: FieldStated, From: []string{"review:stated"}},
			{Name: FieldAuthors, From: []string{"aside .author-details h4"}},
			{Name: FieldDate, Need: Expected, From: []string{".hero__content .published => (\\d.*)$", "review:date"}},
			{Name: FieldBody, Need: Expected, From: []string{".node__content .field--name-body"}},
		}},
		{Name: "2012", Mark: ".report-claim, .report-verdict", ClaimReview: true, Fields: []Field{
			{Name: FieldClaim, Need: Required, From: []string{"review:claim", "header .report-claim p"}},
			{Name: FieldRating, Need: Required, From: []string{".report-verdict .verdict-stamp", "review:rating"}, Clean: strings.TrimSpace},
			{Name: FieldTitle, Need: Expected, From: []string{"header.article-header h1.single-title"}},
			{Name: FieldSpeaker, Need: Expected, From: []string{"review:speaker"}},
			{Name: FieldStated, From: []string{"review:stated"}},
			{Name: FieldDate, Need: Expected, From: []string{".time-subscribe-wrapper time@datetime", "review:date"}, Form: corpus.DateForm{Zone: "GMT"}},
			{Name: FieldBody, Need: Expected, From: []string{"article .entry-content"}},
		}},
	},

	ratings: &corpus.RatingMap{Source: "africacheck", Version: 1,
		Ratings: map[string]corpus.Rating{
			"correct":        is(corpus.True, "https://africacheck.org/fact-checks"),
			"mostly_correct": is(corpus.MostlyTrue, "https://africacheck.org/fact-checks"),
			"incorrect":      is(corpus.False, "https://africacheck.org/fact-checks/reports/south-african-mayor-incorrect-about-covid-19-vaccine"),
			"unproven":       is(corpus.Uncertain, "https://africacheck.org/fact-checks"),
		},
		Queued: map[string]string{
			"exaggerated": "https://africacheck.org/fact-checks", "understated": "https://africacheck.org/fact-checks",
			"misleading": "https://africacheck.org/fact-checks", "checked": "https://africacheck.org/fact-checks",
		}},
}.site()
