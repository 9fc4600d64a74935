package scrapers

import (
	"fmt"
	"io"
	"iter"
	"regexp"
	"slices"
	"strings"

	"assay/corpus"
)

// liar reads LIAR (14 columns) and LIAR-PLUS (a justification at the end, and in most copies a row number
// in front). Speakers are PolitiFact's slugs, and nothing says when a statement was made.
var liar = Table{
	Name:      "liar",
	Version:   1,
	Doc:       "LIAR and LIAR-PLUS: short statements rated by PolitiFact, tab-separated, without a header",
	Proven:    "captured",
	Reference: "LIAR's valid.tsv of 1,284 statements; LIAR-PLUS by its documentation",
	Shapes:    []Shape{{Form: FormTSV, Match: liarLine}},
	Read:      liarRead,
	Parse:     liarTable.parse,
}

var liarColumns = []string{
	"id", "label", "statement", "subjects", "speaker", "job", "state", "party",
	"barely_true_count", "false_count", "half_true_count", "mostly_true_count", "pants_on_fire_count", "context",
}

var liarTable = claimTable{
	name:    "liar",
	columns: []Columns{{"claim": "statement", "rating": "label", "speaker": "speaker", "medium": "context", "tags": "subjects", "id": "id"}},
	ratings: []corpus.RatingMap{corpus.PolitiFactRatings},
	complete: func(c *corpus.Claim, _ map[string]string) {
		c.SpeakerSlug = c.Speaker
	},
}

// liarID is what LIAR calls a statement: the file that PolitiFact's interface had it in.
var liarID = regexp.MustCompile(`^\d+\.json$`)

// liarLine reports whether the fields of a line are a statement of LIAR's.
func liarLine(s Sample) bool {
	names := liarNames(len(s.Columns))
	i := slices.Index(names, "id")
	return i >= 0 && liarID.MatchString(s.Columns[i])
}

// liarNames are the columns of a line with so many fields, nil where LIAR has no such lines.
func liarNames(fields int) []string {
	switch fields {
	case len(liarColumns):
		return liarColumns
	case len(liarColumns) + 1:
		return append(slices.Clip(liarColumns), "justification")
	case len(liarColumns) + 2:
		return append(append([]string{"row"}, liarColumns...), "justification")
	}
	return nil
}

func liarRead(_ string, r io.Reader) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		for row, err := range liarTable.rows(liarTable.columns[0], tabbed(withoutBOM(r), liarNames)) {
			if id := row.Fields["id"]; err == nil {
				if !liarID.MatchString(id) {
					row, err = Row{}, fmt.Errorf("read liar table: %w", &fault{at: row.At, column: "id", err: fmt.Errorf("%.60q is not like 12134.json", id)})
				}
				row.Key = strings.TrimSuffix(id, ".json")
			}
			if !yield(row, err) {
				return
			}
		}
	}
}
