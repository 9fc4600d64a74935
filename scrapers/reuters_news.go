package scrapers

import (
	"regexp"
	"time"
)

// reutersNews reads Reuters in four generations of markup. Paragraphs of 2024 are div elements.
var reutersNews = Site{
	Name:      "reuters_news",
	Version:   1,
	Doc:       "Reuters: the stories of the last two days by its news sitemaps; its fact-checks are no news",
	Host:      "www.reuters.com",
	Hosts:     reutersNewsPages.hosts(),
	Proven:    "captured",
	Reference: "captures of articles of 2014, 2016 and 2024; the sitemap is from its documentation",
	Delay:     time.Second,
	Recognise: reutersNewsPages.recognise,
	Start:     reutersNewsPages.start,
	Discover:  reutersNewsPages.discover("reuters_news"),
	Read:      readArticle(reutersNewsForm),
	form:      &reutersNewsForm,
}

var reutersNewsPages = newsPages{
	Origins: []string{"https://www.reuters.com", "https://uk.reuters.com", "https://reuters.com"},
	Feeds: []string{
		"https://www.reuters.com/arc/outboundfeeds/news-sitemap-index/?outputType=xml",
	},
	Item: regexp.MustCompile(`^/(?:article/.+|(?:[a-z0-9-]+/)+[a-z0-9-]+-\d{4}-\d{2}-\d{2}/?)$`),
	Not:  regexp.MustCompile(`(?i)^/(?:fact-check/|article/(?:[a-z]{2}-)?factcheck)`),
}

var reutersNewsForm = articleForm{
	Body: "[data-testid^=paragraph-], .StandardArticleBody_body p, [class^=ArticleBodyWrapper] p, [class*=ArticleBody-container] p, #articleText p",
}
