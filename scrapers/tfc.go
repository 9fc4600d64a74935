package scrapers

import (
	"regexp"
	"time"

	"assay/corpus"
)

// tfc reads the Taiwan FactCheck Center. The verdict stands in the headline, in brackets, among the categories and in the
// ClaimReview.
var tfc = reviewSite{
	name:      "tfc",
	version:   1,
	doc:       "Taiwan FactCheck Center: viral posts in Taiwan",
	proven:    "captured",
	reference: "a capture of an article of 2022",
	delay:     3 * time.Second,
	lang:      "zh-TW",

	origins: []string{"https://tfc-taiwan.org.tw"},
	item:    regexp.MustCompile(`^/articles/\d+/?$`),
	lists:   []string{"/articles/report"},
	cards:   cards{card: ".view-content .views-row", link: "a[href]", next: "li.pager-next a"},

	pages: []Layout{
		{Name: "2019", Mark: ".node-article", ClaimReview: true, Fields: []Field{
			{Name: FieldClaim, Need: Required, From: []string{"review:claim"}},
			{Name: FieldRating, Need: Required, From: []string{".content-header h1.page-title => ^【([^】]+)】", ".node-tags .field-name-field-article-category .odd a", "review:rating"}},
			{Name: FieldTitle, Need: Expected, From: []string{".content-header h1.page-title"}},
			{Name: FieldSpeaker, From: []string{"review:speaker"}},
			{Name: FieldStated, From: []string{"review:stated"}},
			{Name: FieldAuthors, Need: Expected, From: []string{"review:authors"}},
			{Name: FieldDate, Need: Expected, From: []string{"review:date"}},
		}},
	},
	ratings: &corpus.RatingMap{Source: "tfc", Version: 1,
		Ratings: map[string]corpus.Rating{
			"錯誤": is(corpus.False, "https://tfc-taiwan.org.tw/articles/7177"),
		}},
}.site()
