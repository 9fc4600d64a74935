package scrapers

import (
	"regexp"
	"time"
)

// ap reads the Associated Press, on its own site and where it hosts pages for newspapers.
var ap = Site{
	Name:      "ap",
	Version:   1,
	Doc:       "Associated Press: the stories of the last two days by its news sitemap",
	Host:      "apnews.com",
	Hosts:     apPages.hosts(),
	Proven:    "captured",
	Reference: "captures of an article on apnews.com (2023) and of one on hosted.ap.org (2019); the sitemap is the one that robots.txt names",
	Delay:     time.Second,
	Recognise: apPages.recognise,
	Start:     apPages.start,
	Discover:  apPages.discover("ap"),
	Read:      readArticle(apForm),
	form:      &apForm,
}

var apPages = newsPages{
	Origins: []string{"https://apnews.com", "https://hosted.ap.org"},
	Feeds: []string{
		"https://apnews.com/news-sitemap-content.xml",
	},
	Item: regexp.MustCompile(`^/(?:[a-z0-9-]+/)?article/(?:[0-9a-f]{32}/)?[^/]+/?$`),
}

var apForm = articleForm{
	Title: ".Page-headline, h1[class^=Component-heading], .ap-story-headline", // the h1 of hosted pages is the newspaper's name
	Body:  ".Article p, .RichTextStoryBody p, block p",
}
