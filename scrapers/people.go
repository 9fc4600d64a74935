package scrapers

import (
	"regexp"
	"time"

	"assay/corpus"
)

// people reads People.
var people = Site{
	Name:      "people",
	Version:   1,
	Doc:       "People: celebrity news of the last two days by its news sitemap",
	Host:      "people.com",
	Hosts:     peoplePages.hosts(),
	Proven:    "captured",
	Reference: "a capture of an article (2016); the sitemap is from its documentation",
	Delay:     time.Second,
	Recognise: peoplePages.recognise,
	Start:     peoplePages.start,
	Discover:  peoplePages.discover("people"),
	Read:      readArticle(peopleForm),
	form:      &peopleForm,
	Category:  corpus.Celebrity,
}

var peoplePages = newsPages{
	Origins: []string{"https://people.com", "https://www.people.com"},
	Feeds: []string{
		"https://people.com/google-news-sitemap.xml",
	},
	Item: regexp.MustCompile(`^/(?:[a-z0-9-]+-\d{6,}|(?:babies|books|bodies|celebrity|country|crime|food|health|home|human-interest|movies|music|parents|pets|politics|royals|sports|style|theater|tv)/[a-z0-9-]+)/?$`),
}

var peopleForm = articleForm{}
