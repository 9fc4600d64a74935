package scrapers

import (
	"regexp"
	"time"
)

// bbc reads BBC News, in the markup of 2015 to 2020 and in that of 2024.
var bbc = Site{
	Name:      "bbc",
	Version:   1,
	Doc:       "BBC News: its feeds of top stories, politics, health, science and entertainment",
	Host:      "www.bbc.com",
	Hosts:     bbcPages.hosts(),
	Proven:    "captured",
	Reference: "captures of four articles (2015 to 2024) and of the feed of top stories",
	Delay:     time.Second,
	Recognise: bbcPages.recognise,
	Start:     bbcPages.start,
	Discover:  bbcPages.discover("bbc"),
	Read:      readArticle(bbcForm),
	form:      &bbcForm,
}

var bbcPages = newsPages{
	Origins: []string{"https://www.bbc.com", "https://www.bbc.co.uk", "https://bbc.com", "https://bbc.co.uk"},
	Feeds: []string{
		"https://feeds.bbci.co.uk/news/rss.xml",
		"https://feeds.bbci.co.uk/news/politics/rss.xml",
		"https://feeds.bbci.co.uk/news/health/rss.xml",
		"https://feeds.bbci.co.uk/news/science_and_environment/rss.xml",
		"https://feeds.bbci.co.uk/news/entertainment_and_arts/rss.xml",
	},
	Item: regexp.MustCompile(`^/news/(?:articles/[a-z0-9]+|(?:[a-z_-]+-)?\d{6,})/?$`),
}

var bbcForm = articleForm{
	Body: ".story-body__inner p, [data-component=text-block] p",
	Drop: regexp.MustCompile(`^These are external links and will open in a new window$`),
}
