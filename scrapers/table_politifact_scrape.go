package scrapers

import (
	"fmt"

	"assay/corpus"
)

// politifactScrape reads what people scraped off PolitiFact's listings, in the sets of columns that are
// about. Dates in them are days of the statement, or sentences that hold one.
var politifactScrape = Table{
	Name:      "politifact_scrape",
	Version:   1,
	Doc:       "scrapes of PolitiFact in four published sets of columns; CSV, JSON or JSON lines",
	Proven:    "captured",
	Reference: "four public scrapes: 7,470 claims of 2025, 5,085 of 2020, ten of 2021, and 3,859 ratings without claims",
	Shapes: []Shape{
		{Form: FormCSV, Columns: []string{"Statement", "Speaker", "Rating", "Date"}},
		{Form: FormJSON, Columns: []string{"statement", "evaluation", "post_author", "meta_description", "date_posted", "author"}, Match: without("url")},
		{Form: FormJSON, Columns: []string{"text", "label", "source", "date", "verify_date", "verify_url"}},
		{Form: FormCSV, Columns: []string{"page_names", "politifact.cat.j."}},
	},
	Read:  politifactTable.read,
	Parse: politifactTable.parse,
}

var politifactTable = claimTable{
	name: "politifact_scrape",
	columns: []Columns{
		{"claim": "Statement", "speaker": "Speaker", "rating": "Rating", "review_date": "Date"},
		{"claim": "statement", "speaker": "post_author", "rating": "evaluation", "date": "meta_description", "review_date": "date_posted", "author": "author"},
		{"claim": "text", "speaker": "source", "rating": "label", "date": "date", "review_date": "verify_date", "url": "verify_url"},
		{"speaker": "page_names", "rating": "politifact.cat.j.", "id": ""},
	},
	ratings: []corpus.RatingMap{corpus.PolitiFactRatings},
	day: func(printed string) (string, error) {
		if day, _ := politifactContext(printed); day != "" {
			return day, nil
		}
		return "", fmt.Errorf("%.60q holds no day like July 10, 2012", printed)
	},
	complete: func(c *corpus.Claim, fields map[string]string) {
		_, c.Medium = politifactContext(corpus.Space(fields["meta_description"]))
	},
}

// without says that a file has none of some columns.
func without(columns ...string) func(Sample) bool {
	return func(s Sample) bool {
		for _, c := range s.Columns {
			for _, not := range columns {
				if c == not {
					return false
				}
			}
		}
		return true
	}
}
