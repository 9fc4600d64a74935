package scrapers

import (
	"regexp"
	"time"
)

// nbc reads NBC News. A page may show only how long ago it was published; time elements have the date.
var nbc = Site{
	Name:      "nbc",
	Version:   1,
	Doc:       "NBC News: top stories by its feed",
	Host:      "www.nbcnews.com",
	Hosts:     nbcPages.hosts(),
	Proven:    "captured",
	Reference: "captures of three articles (2016, 2019); the feed is from its documentation",
	Delay:     time.Second,
	Recognise: nbcPages.recognise,
	Start:     nbcPages.start,
	Discover:  nbcPages.discover("nbc"),
	Read:      readArticle(nbcForm),
	form:      &nbcForm,
}

var nbcPages = newsPages{
	Origins: []string{"https://www.nbcnews.com", "https://nbcnews.com"},
	Feeds: []string{
		"https://feeds.nbcnews.com/nbcnews/public/news",
	},
	Item: regexp.MustCompile(`^/.+-(?:n|rcna|ncna)\d+/?$`),
}

var nbcForm = articleForm{
	Title: "h1[itemprop=headline], h1",
	Body:  ".article-body__content p, section.articlebody p",
	Drop:  regexp.MustCompile(`^This site is protected by recaptcha`),
}
