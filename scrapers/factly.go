package scrapers

import (
	"regexp"
	"time"

	"assay/corpus"
)

// factly reads FACTLY, as pages and as posts of its WordPress interface. A quotation at the end holds claim and fact; the
// fact ends with the verdict in capitals.
var factly = reviewSite{
	name:      "factly",
	version:   1,
	doc:       "FACTLY: viral posts and public data in India, in English and Telugu",
	proven:    "captured",
	reference: "a capture of an article of 2020, as a page and as a post",
	delay:     3 * time.Second,
	lang:      "en",

	origins: []string{"https://factly.in"},
	item:    regexp.MustCompile(`^/(?:telugu-)?(?:[^/-]+-){3,}[^/]+/?$|^/wp-json/wp/v2/posts/\d+$`),
	lists:   []string{"/category/fake-news/", wordPressPosts},
	cards:   cards{card: "article, .posts-list .post", link: "a[href]", next: "a.next.page-numbers"},
	mixed:   true,

	pages: []Layout{
		{Name: "2020", Mark: `.post-content, .post-header blockquote`, Fields: []Field{
			{Name: FieldClaim, Need: Required, From: []string{".post-content blockquote p :: Claim:"}},
			{Name: FieldRating, Need: Required, From: []string{`.post-content blockquote p :: Fact: => \b([A-Z]{4,}(?: [A-Z]{4,})?)\.?$`}},
			{Name: FieldTitle, Need: Expected, From: []string{".post-header h1.post-title"}},
			{Name: FieldAuthors, Need: Expected, From: []string{".post-header .reviewer a"}},
			{Name: FieldDate, Need: Expected, From: []string{".post-header time@datetime", "head meta[property='article:published_time']@content"}},
			{Name: FieldBody, Need: Expected, From: []string{"article .post-content p"}},
		}},
		{Name: "post", Mark: "[data-json] [data-key=content]", Fields: []Field{
			{Name: FieldClaim, Need: Required, From: []string{"[data-key=content] blockquote p :: Claim:"}},
			{Name: FieldRating, Need: Required, From: []string{`[data-key=content] blockquote p :: Fact: => \b([A-Z]{4,}(?: [A-Z]{4,})?)\.?$`}},
			{Name: FieldTitle, Need: Expected, From: []string{"[data-key=title] [data-key=rendered]"}},
			{Name: FieldAuthors, From: []string{"[data-key=author_meta] [data-key=display_name]"}},
			{Name: FieldDate, Need: Expected, From: []string{"article [data-key=date_gmt]"}},
		}},
	},
	ratings: &corpus.RatingMap{Source: "factly", Version: 1,
		Ratings: map[string]corpus.Rating{
			"false": is(corpus.False, "https://factly.in/the-man-speaking-about-the-criminalization-of-politics-in-this-video-is-not-ips-officer-shailja-kant-mishra/"),
		}},
}.site()
