package scrapers

import (
	"io"
	"iter"
	"path"
	"strings"

	"assay/corpus"
)

// fakeNewsNet reads the lists of FakeNewsNet. What is fake or real is a news item, and a list says which by
// its file's name alone; the item's headline stands in for the claim, which is not quoted.
var fakeNewsNet = Table{
	Name:      "fakenewsnet",
	Version:   1,
	Doc:       "FakeNewsNet's lists politifact_fake.csv, gossipcop_real.csv, ...: headlines; the verdict is the file's name",
	Proven:    "documented",
	Reference: "FakeNewsNet's description of its files",
	Shapes:    []Shape{{Form: FormCSV, Columns: []string{"id", "news_url", "title", "tweet_ids"}}},
	Read:      fakeNewsNetRead,
	Parse:     fakeNewsNetTable.parse,
}

// fakeNewsNetLabel is the field that holds what the file's name says.
const fakeNewsNetLabel = "label"

var fakeNewsNetTable = claimTable{
	name:    "fakenewsnet",
	columns: []Columns{{"claim": "title", "rating": fakeNewsNetLabel, "id": "id"}},
	ratings: []corpus.RatingMap{corpus.FakeNewsNetRatings},
}

func fakeNewsNetRead(name string, r io.Reader) iter.Seq2[Row, error] {
	label := fakeNewsNetVerdict(name)
	reader := claimTable{name: fakeNewsNetTable.name, columns: []Columns{{"claim": "title", "id": "id"}}}
	return func(yield func(Row, error) bool) {
		for row, err := range reader.read(name, r) {
			if err == nil {
				row.Fields[fakeNewsNetLabel] = label
			}
			if !yield(row, err) {
				return
			}
		}
	}
}

// fakeNewsNetVerdict is the last word of a list's name, "" if it is neither fake nor real.
func fakeNewsNetVerdict(name string) string {
	base, _, _ := strings.Cut(strings.ToLower(path.Base(name)), ".")
	for _, word := range []string{"fake", "real"} {
		if base == word || strings.HasSuffix(base, "_"+word) {
			return word
		}
	}
	return ""
}
