package scrapers

import (
	"regexp"
	"time"
)

// npr reads NPR. Captions are paragraphs too, but lie deeper.
var npr = Site{
	Name:      "npr",
	Version:   1,
	Doc:       "NPR: news by its feed",
	Host:      "www.npr.org",
	Hosts:     nprPages.hosts(),
	Proven:    "captured",
	Reference: "captures of two articles (2016, 2017); the feed is from its documentation",
	Delay:     time.Second,
	Recognise: nprPages.recognise,
	Start:     nprPages.start,
	Discover:  nprPages.discover("npr"),
	Read:      readArticle(nprForm),
	form:      &nprForm,
}

var nprPages = newsPages{
	Origins: []string{"https://www.npr.org", "https://npr.org"},
	Feeds: []string{
		"https://feeds.npr.org/1001/rss.xml",
	},
	Item: regexp.MustCompile(`^/(?:sections/[a-z-]+/)?\d{4}/\d{2}/\d{2}/[\w-]+/[^/]+/?$`),
}

var nprForm = articleForm{Body: "#storytext > p"}
