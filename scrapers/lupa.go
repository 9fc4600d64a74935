package scrapers

import (
	"regexp"
	"time"

	"assay/corpus"
)

// lupa reads Agência Lupa. Its number 4 of 6 stands for false, and no worst number is given: only the words count. An
// article may check several sentences, each with a label under it.
var lupa = reviewSite{
	name:      "lupa",
	version:   1,
	doc:       "Agência Lupa: politics and viral posts in Brazil",
	proven:    "captured",
	reference: "a capture of an article of 2020",
	delay:     3 * time.Second,
	lang:      "pt",

	origins: []string{"https://piaui.folha.uol.com.br", "https://lupa.uol.com.br", "https://www.agencialupa.org"},
	item:    regexp.MustCompile(`^/lupa/\d{4}/\d{2}/\d{2}/[^/]+/?$|^/jornalismo/\d{4}/\d{2}/\d{2}/[^/]+/?$|^/checagem/\d{4}/\d{2}/\d{2}/[^/]+/?$`),
	lists:   []string{"/lupa/feed/?paged=1"},

	pages: []Layout{
		{Name: "2020", Mark: ".post-inner", ClaimReview: true, Fields: []Field{
			{Name: FieldClaim, Need: Required, From: []string{"review:claim", ".post-inner p b => ^(“.+”)$"}},
			{Name: FieldRating, Need: Required, From: []string{".post-inner .etiqueta", "review:rating"}},
			{Name: FieldTitle, Need: Expected, From: []string{"head meta[property='og:title']@content"}},
			{Name: FieldSpeaker, From: []string{"review:speaker"}},
			{Name: FieldStated, From: []string{"review:stated"}},
			{Name: FieldAuthors, Need: Expected, From: []string{".bloco-autor strong a"}},
			{Name: FieldDate, Need: Expected, From: []string{"head meta[property='article:published_time']@content", "review:date"}},
			{Name: FieldBody, Need: Expected, From: []string{".column-main .post-inner p"}},
		}},
	},
	ratings: &corpus.RatingMap{Source: "lupa", Version: 1,
		Ratings: map[string]corpus.Rating{
			"falso":      is(corpus.False, "https://piaui.folha.uol.com.br/lupa/2020/08/31/verificamos-viaduto-obra-bolsonaro/"),
			"verdadeiro": is(corpus.True, "https://piaui.folha.uol.com.br/lupa/2020/08/31/verificamos-viaduto-obra-bolsonaro/"),
		},
		Queued: map[string]string{
			"verdadeiro,_mas":         "https://piaui.folha.uol.com.br/lupa/2020/08/31/verificamos-viaduto-obra-bolsonaro/",
			"ainda_é_cedo_para_dizer": "https://piaui.folha.uol.com.br/lupa/2020/08/31/verificamos-viaduto-obra-bolsonaro/",
			"exagerado":               "https://piaui.folha.uol.com.br/lupa/2020/08/31/verificamos-viaduto-obra-bolsonaro/",
			"contraditório":           "https://piaui.folha.uol.com.br/lupa/2020/08/31/verificamos-viaduto-obra-bolsonaro/",
			"subestimado":             "https://piaui.folha.uol.com.br/lupa/2020/08/31/verificamos-viaduto-obra-bolsonaro/",
			"insustentável":           "https://piaui.folha.uol.com.br/lupa/2020/08/31/verificamos-viaduto-obra-bolsonaro/",
			"de_olho":                 "https://piaui.folha.uol.com.br/lupa/2020/08/31/verificamos-viaduto-obra-bolsonaro/",
		}},
}.site()
