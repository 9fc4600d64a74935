package scrapers

import (
	"regexp"
	"time"

	"assay/corpus"
)

// estadao reads Estadão Verifica. The address in its ClaimReview is relative, and a script holds the same review again.
var estadao = reviewSite{
	name:      "estadao",
	version:   1,
	doc:       "Estadão Verifica: politics and viral posts in Brazil",
	proven:    "captured",
	reference: "a capture of an article of 2023",
	delay:     3 * time.Second,
	lang:      "pt",

	origins: []string{"https://www.estadao.com.br", "https://politica.estadao.com.br"},
	item:    regexp.MustCompile(`^/estadao-verifica/[^/]+/?$|^/blogs/estadao-verifica/[^/]+/?$`),
	other:   regexp.MustCompile(`/feed/?$`),
	lists:   []string{"/estadao-verifica/"},
	cards:   cards{card: ".noticias-mais-recenter--item, .noticia-single-block, article", link: "a[href]"},

	pages: []Layout{
		{Name: "2023", Mark: ".news-authors", ClaimReview: true, Fields: []Field{
			{Name: FieldClaim, Need: Required, From: []string{"review:claim"}},
			{Name: FieldRating, Need: Required, From: []string{"review:rating"}},
			{Name: FieldTitle, Need: Expected, From: []string{".container h1"}},
			{Name: FieldSpeaker, From: []string{"review:speaker"}},
			{Name: FieldStated, From: []string{"review:stated"}},
			{Name: FieldAuthors, Need: Expected, From: []string{".news-authors .authors-names", "review:authors"}, Clean: withoutBy},
			{Name: FieldDate, Need: Expected, From: []string{`.news-authors time.publish-datetime => (\d\d/\d\d/\d{4})`}, Form: corpus.DateForm{DayFirst: true}},
		}},
	},
	ratings: &corpus.RatingMap{Source: "estadao", Version: 1,
		Ratings: map[string]corpus.Rating{
			"falso": is(corpus.False, "https://www.estadao.com.br/estadao-verifica/yanomamis-desnutricao-venezuelanos-brasileiros-maduro-lula/"),
		}},
}.site()
