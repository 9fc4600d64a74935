package scrapers

import (
	"regexp"
	"time"

	"assay/corpus"
)

// ftc reads the Federal Trade Commission.
var ftc = Site{
	Name:      "ftc",
	Version:   1,
	Doc:       "Federal Trade Commission: press releases by its feed",
	Host:      "www.ftc.gov",
	Hosts:     ftcPages.hosts(),
	Proven:    "documented",
	Reference: "the feed that its site names; no page is captured",
	Delay:     30 * time.Second, // its robots.txt asks for that
	Recognise: ftcPages.recognise,
	Start:     ftcPages.start,
	Discover:  ftcPages.discover("ftc"),
	Read:      readArticle(ftcForm),
	form:      &ftcForm,
	Category:  corpus.Commonsense,
}

var ftcPages = newsPages{
	Origins: []string{"https://www.ftc.gov", "https://ftc.gov"},
	Feeds: []string{
		"https://www.ftc.gov/feeds/press-release.xml",
	},
	Item: regexp.MustCompile(`^/news-events/(?:news/)?press-releases/\d{4}/\d{2}/[^/]+/?$`),
}

var ftcForm = articleForm{Body: ".field--name-body p, article .node__content p"}
