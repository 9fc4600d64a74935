package scrapers

import (
	"regexp"
	"time"

	"assay/corpus"
)

// billboard reads Billboard.
var billboard = Site{
	Name:      "billboard",
	Version:   1,
	Doc:       "Billboard: music news by its feed",
	Host:      "www.billboard.com",
	Proven:    "captured",
	Reference: "a capture of an article (2019); the feed is that of its content system, WordPress",
	Delay:     time.Second,
	Recognise: billboardPages.recognise,
	Start:     billboardPages.start,
	Discover:  billboardPages.discover("billboard"),
	Read:      readArticle(billboardForm),
	form:      &billboardForm,
	Category:  corpus.Celebrity,
}

var billboardPages = newsPages{
	Origins: []string{"https://www.billboard.com"},
	Feeds: []string{
		"https://www.billboard.com/feed/",
	},
	Item: regexp.MustCompile(`^/(?:articles/(?:[a-z-]+/)+\d+/[^/]+|[a-z-]+/(?:[a-z-]+/)?[a-z0-9-]+-\d{6,})/?$`),
}

var billboardForm = articleForm{}
