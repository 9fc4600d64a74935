package scrapers

import (
	"regexp"
	"time"

	"assay/corpus"
)

// variety reads Variety.
var variety = Site{
	Name:      "variety",
	Version:   1,
	Doc:       "Variety: film, television and music news by its feed",
	Host:      "variety.com",
	Hosts:     varietyPages.hosts(),
	Proven:    "documented",
	Reference: "the feed and the markup of its content system, WordPress; no page is captured",
	Delay:     time.Second,
	Recognise: varietyPages.recognise,
	Start:     varietyPages.start,
	Discover:  varietyPages.discover("variety"),
	Read:      readArticle(varietyForm),
	form:      &varietyForm,
	Category:  corpus.Celebrity,
}

var varietyPages = newsPages{
	Origins: []string{"https://variety.com", "https://www.variety.com"},
	Feeds: []string{
		"https://variety.com/feed/",
	},
	Item: regexp.MustCompile(`^/\d{4}/[a-z-]+/[a-z-]+/[a-z0-9-]+-\d{6,}/?$`),
}

var varietyForm = articleForm{Body: ".vy-cx-page-content p, .entry-content p, .a-content p"}
