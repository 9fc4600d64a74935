package scrapers

import (
	"regexp"
	"time"

	"assay/corpus"
)

// cdc reads the CDC. The page's own meta title may be in another language than its h1.
var cdc = Site{
	Name:      "cdc",
	Version:   1,
	Doc:       "Centers for Disease Control and Prevention: newsroom by its syndication feed",
	Host:      "www.cdc.gov",
	Hosts:     cdcPages.hosts(),
	Proven:    "captured",
	Reference: "a capture of a page (2020, in Japanese); the feed is from the documentation of the syndication interface",
	Delay:     time.Second,
	Recognise: cdcPages.recognise,
	Start:     cdcPages.start,
	Discover:  cdcPages.discover("cdc"),
	Read:      readArticle(cdcForm),
	form:      &cdcForm,
	Category:  corpus.Medical,
}

var cdcPages = newsPages{
	Origins: []string{"https://www.cdc.gov", "https://cdc.gov"},
	Feeds: []string{
		"https://tools.cdc.gov/api/v2/resources/media/403372.rss",
	},
	Item: regexp.MustCompile(`^/.+\.html?$`),
}

var cdcForm = articleForm{}
