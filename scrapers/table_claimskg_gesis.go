package scrapers

import (
	"encoding/json"
	"fmt"
	"io"
	"iter"

	"assay/corpus"
)

// claimskgGESIS reads the items of ClaimsKG as the GESIS service gives them: the results of a SPARQL query.
var claimskgGESIS = Table{
	Name:      "claimskg_gesis",
	Version:   1,
	Doc:       "ClaimsKG: items of the GESIS service, with ratings normalised to TRUE, FALSE, MIXTURE and OTHER; JSON",
	Proven:    "captured",
	Reference: "one item of the service",
	Shapes:    []Shape{{Form: FormJSON, Columns: []string{"id", "content"}}},
	Read:      gesisRead,
	Parse:     gesisTable.parse,
}

var gesisTable = claimTable{
	name: "claimskg_gesis",
	columns: []Columns{{
		"claim": "text", "rating": "ratingName", "speaker": "author", "review_date": "date", "url": "link", "id": "id",
	}},
	ratings: []corpus.RatingMap{corpus.ClaimsKGRatings},
}

func gesisRead(_ string, r io.Reader) iter.Seq2[Row, error] {
	return gesisTable.rows(gesisTable.columns[0], func(yield func(fileRow, error) bool) {
		for rec, err := range objects(withoutBOM(r)) {
			if err == nil {
				rec.fields, err = gesisFields(rec.fields)
				if err != nil {
					err = &fault{at: rec.at, line: rec.line, column: "content", err: err}
				}
			}
			if !yield(rec, err) {
				return
			}
		}
	})
}

// gesisFields takes the values out of their SPARQL bindings.
func gesisFields(item map[string]string) (map[string]string, error) {
	var content map[string]struct {
		Value string `json:"value"`
	}
	if err := json.Unmarshal([]byte(item["content"]), &content); err != nil {
		return nil, fmt.Errorf("it holds no bindings: %w", err)
	}
	fields := map[string]string{}
	for name, binding := range content {
		fields[name] = binding.Value
	}
	fields["id"] = item["id"]
	return fields, nil
}
