package scrapers

import "assay/corpus"

// buzzfeed reads the ratings of BuzzFeed's 2016 study. It rates posts of Facebook and gives their
// addresses; it does not quote them, so no claim comes of it.
var buzzfeed = Table{
	Name:      "buzzfeed",
	Version:   1,
	Doc:       "BuzzFeed's facebook-fact-check.csv: ratings of posts that it does not quote, so every row is left out",
	Proven:    "captured",
	Reference: "the published table of 2,282 posts",
	Shapes:    []Shape{{Form: FormCSV, Columns: []string{"account_id", "post_id", "Page", "Post URL", "Date Published", "Rating"}}},
	Read:      buzzfeedTable.read,
	Parse:     buzzfeedTable.parse,
}

var buzzfeedTable = claimTable{
	name:    "buzzfeed",
	columns: []Columns{{"rating": "Rating", "date": "Date Published", "id": "post_id"}},
	dates:   corpus.DateForm{},
}
