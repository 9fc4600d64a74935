package scrapers

import (
	"regexp"
	"time"

	"assay/corpus"
)

// nasa reads NASA.
var nasa = Site{
	Name:      "nasa",
	Version:   1,
	Doc:       "NASA: news releases and articles by its feed",
	Host:      "www.nasa.gov",
	Hosts:     nasaPages.hosts(),
	Proven:    "captured",
	Reference: "captures of the feed of breaking news (2021) and of a home page (1996); pages of today have the markup of WordPress",
	Delay:     time.Second,
	Recognise: nasaPages.recognise,
	Start:     nasaPages.start,
	Discover:  nasaPages.discover("nasa"),
	Read:      readArticle(nasaForm),
	form:      &nasaForm,
	Category:  corpus.Science,
}

var nasaPages = newsPages{
	Origins: []string{"https://www.nasa.gov", "https://nasa.gov"},
	Feeds: []string{
		"https://www.nasa.gov/feed/",
	},
	Item: regexp.MustCompile(`^/(?:blogs|centers-and-facilities|directorates|earth|feature|general|humans-in-space|image-article|missions|news-release|press-release|science-research|solar-system|technology|universe)/.+$`),
}

var nasaForm = articleForm{Body: ".entry-content > p, .usa-article-content p"}
