package scrapers

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"assay/corpus"
)

// fever reads FEVER. A claim's documents are the pages of Wikipedia in its evidence, as they are today and
// not as they were in the dump that FEVER was made from.
var fever = Table{
	Name:      "fever",
	Version:   1,
	Doc:       "FEVER: claims about sentences of Wikipedia, with the pages; JSON lines",
	Proven:    "documented",
	Reference: "the FEVER shared task's description of its files",
	Shapes:    []Shape{{Form: FormJSON, Columns: []string{"id", "claim", "evidence", "label", "verifiable"}}},
	Pages:     true,
	Read:      feverTable.read,
	Parse:     feverTable.parse,
}

var feverTable = claimTable{
	name:    "fever",
	columns: []Columns{{"claim": "claim", "rating": "label", "id": "id"}},
	ratings: []corpus.RatingMap{corpus.FEVERRatings},
	links:   feverLinks,
}

// feverTitle undoes how FEVER spells the titles of pages.
var feverTitle = strings.NewReplacer("-LRB-", "(", "-RRB-", ")", "-LSB-", "[", "-RSB-", "]", "-COLON-", ":")

// feverPage is the place of the page in an item of evidence: annotation, evidence, page, sentence.
const feverPage = 2

func feverLinks(fields map[string]string) ([]corpus.Link, string, error) {
	if fields["evidence"] == "" {
		return nil, "", nil
	}
	var sets [][][]any
	if err := json.Unmarshal([]byte(fields["evidence"]), &sets); err != nil {
		return nil, "evidence", err
	}
	var out []corpus.Link
	for _, set := range sets {
		for _, item := range set {
			if len(item) != feverPage+2 {
				return nil, "evidence", fmt.Errorf("an item has %d parts, not %d", len(item), feverPage+2)
			}
			if page, ok := item[feverPage].(string); ok && page != "" { // null where there is not enough
				out = addPage(out, (&url.URL{Scheme: "https", Host: "en.wikipedia.org", Path: "/wiki/" + feverTitle.Replace(page)}).String())
			}
		}
	}
	return out, "", nil
}
