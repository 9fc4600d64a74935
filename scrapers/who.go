package scrapers

import (
	"regexp"
	"time"

	"assay/corpus"
)

// who reads the World Health Organization.
var who = Site{
	Name:      "who",
	Version:   1,
	Doc:       "World Health Organization: news by its feed",
	Host:      "www.who.int",
	Hosts:     whoPages.hosts(),
	Proven:    "documented",
	Reference: "the feed that its site names; no page is captured",
	Delay:     time.Second,
	Recognise: whoPages.recognise,
	Start:     whoPages.start,
	Discover:  whoPages.discover("who"),
	Read:      readArticle(whoForm),
	form:      &whoForm,
	Category:  corpus.Medical,
}

var whoPages = newsPages{
	Origins: []string{"https://www.who.int", "https://who.int"},
	Feeds: []string{
		"https://www.who.int/rss-feeds/news-english.xml",
	},
	Item: regexp.MustCompile(`^/(?:[a-z]{2}/)?(?:news/item|news-room/[a-z-]+/(?:item|detail))/[\w-]+/?$`),
}

var whoForm = articleForm{Body: ".sf-detail-body-wrapper p, .sf_colsIn p"}
