package scrapers

import "assay/corpus"

// claimskg reads the tables of ClaimsKG's extractor. Its column creativeWork_author_name holds now who
// made a claim and now who reviewed it, by site, so no speaker and no author comes of it.
var claimskg = Table{
	Name:      "claimskg",
	Version:   1,
	Doc:       "ClaimsKG: the extractor's CSV of 24 columns",
	Proven:    "captured",
	Reference: "the extractor's five samples, of AFP, Full Fact, PolitiFact, Snopes and Truth or Fiction",
	Shapes:    []Shape{{Form: FormCSV, Columns: []string{"rating_alternateName", "claimReview_claimReviewed", "claimReview_url", "claimReview_datePublished", "creativeWork_datePublished", "extra_title"}}},
	Read:      claimskgTable.read,
	Parse:     claimskgTable.parse,
}

var claimskgTable = claimTable{
	name: "claimskg",
	columns: []Columns{{
		"claim": "claimReview_claimReviewed", "rating": "rating_alternateName", "url": "claimReview_url",
		"date": "creativeWork_datePublished", "review_date": "claimReview_datePublished", "title": "extra_title", "tags": "extra_tags",
	}},
	ratings: []corpus.RatingMap{corpus.ClaimsKGRatings},
}
