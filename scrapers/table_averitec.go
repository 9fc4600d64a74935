package scrapers

import (
	"encoding/json"
	"strings"

	"assay/corpus"
)

// averitec reads AVeriTeC. A claim's documents are the pages that its answers cite. Its reviews are given by
// their archived copies, which are kept as they stand.
var averitec = Table{
	Name:      "averitec",
	Version:   1,
	Doc:       "AVeriTeC: claims with the pages that answers about them cite; a JSON array",
	Proven:    "captured",
	Reference: "AVeriTeC's dev.json of 500 claims",
	Shapes:    []Shape{{Form: FormJSON, Columns: []string{"claim", "claim_date", "fact_checking_strategies", "label", "questions"}}},
	Pages:     true,
	Read:      averitecTable.read,
	Parse:     averitecTable.parse,
}

var averitecTable = claimTable{
	name: "averitec",
	columns: []Columns{{
		"claim": "claim", "rating": "label", "speaker": "speaker", "date": "claim_date", "medium": "reporting_source", "url": "fact_checking_article",
	}},
	ratings: []corpus.RatingMap{corpus.AVeriTeCRatings},
	dates:   corpus.DateForm{DayFirst: true},
	apart:   "questions", // some claims were given to two annotators
	links:   averitecLinks,
}

func averitecLinks(fields map[string]string) ([]corpus.Link, string, error) {
	if fields["questions"] == "" {
		return nil, "", nil // a split without evidence
	}
	var questions []struct {
		Answers []struct {
			Source string `json:"source_url"`
		} `json:"answers"`
	}
	if err := json.Unmarshal([]byte(fields["questions"]), &questions); err != nil {
		return nil, "questions", err
	}
	var out []corpus.Link
	for _, q := range questions {
		for _, a := range q.Answers {
			out = addPage(out, a.Source)
		}
	}
	return out, "", nil
}

// addPage adds a page to links unless it is there. What is no address is none: a table also cites
// "Metadata".
func addPage(links []corpus.Link, address string) []corpus.Link {
	address = strings.TrimSpace(address)
	if !strings.HasPrefix(address, "http://") && !strings.HasPrefix(address, "https://") {
		return links
	}
	url := corpus.CanonicalURL(address)
	l := corpus.Link{DocumentID: documentAt(url), URL: url}
	for _, had := range links {
		if had.DocumentID == l.DocumentID {
			return links
		}
	}
	return append(links, l)
}

// documentAt is the id of the document at an address.
func documentAt(url string) string {
	if fullname, ok := corpus.RedditFullname(url); ok {
		return corpus.RedditID(fullname)
	}
	return corpus.DocumentID(url)
}
