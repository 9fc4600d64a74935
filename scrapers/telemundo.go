package scrapers

import (
	"regexp"
	"time"

	"assay/corpus"
)

// telemundo reads T Verifica of Noticias Telemundo. The verdict is the first word of the headline; articles of the desk whose
// headline has none are no fact checks that could be used.
var telemundo = reviewSite{
	name:      "telemundo",
	version:   1,
	doc:       "Telemundo, T Verifica: viral posts among Spanish speakers in the US",
	proven:    "captured",
	reference: "a capture of an article of 2021",
	delay:     3 * time.Second,
	lang:      "es",

	origins:   []string{"https://www.telemundo.com"},
	item:      regexp.MustCompile(`^/noticias/(?:[^/]+/)*[^/]+-rcna\d+$`),
	lists:     []string{"/noticias/t-verifica"},
	cards:     cards{card: ".wide-tease-item__wrapper, .alacarte__item, article", link: "a[href]"},
	mixed:     true,
	headline:  true,
	elsewhere: regexp.MustCompile(`^(?:¿|Cómo |Qué |Guía )`),

	pages: []Layout{
		{Name: "2021", Mark: `.article-body:contains("T Verifica")`, Fields: []Field{
			{Name: FieldRating, Need: Required, From: []string{".article-hero-headline h1.article-hero-headline__htag => ^([A-ZÁÉÍÓÚ][a-záéíóúñ]+(?: a medias)?)[,:.] "}},
			{Name: FieldTitle, Need: Expected, From: []string{".article-hero-headline h1.article-hero-headline__htag"}},
			{Name: FieldDate, Need: Expected, From: []string{".article-body__date-source time@content"}},
			{Name: FieldBody, Need: Expected, From: []string{".article-body .article-body__content p"}},
		}},
	},
	ratings: &corpus.RatingMap{Source: "telemundo", Version: 1,
		Ratings: map[string]corpus.Rating{
			"falso": is(corpus.False, "https://www.telemundo.com/noticias/noticias-telemundo/coronavirus/falso-la-corte-suprema-no-cancel-la-vacunacin-contra-el-covid-19-rcna2431"),
		}},
}.site()
