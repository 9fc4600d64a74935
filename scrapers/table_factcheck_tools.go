package scrapers

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	"assay/corpus"
)

// factCheckTools reads replies of Google's Fact Check Tools (claims:search): whole ones one after the
// other, or the claims of one. A row is one review with its claim. A build asks the service itself, see
// recipe.feeds.
var factCheckTools = Table{
	Name:      "factcheck_tools",
	Version:   1,
	Doc:       "Google's Fact Check Tools: replies of claims:search, or claims out of them; JSON",
	Proven:    "captured",
	Reference: "a reply with ten claims, and one claim in Urdu",
	Shapes: []Shape{
		{Form: FormJSON, Columns: []string{"claims"}},
		{Form: FormJSON, Columns: []string{"text", "claimReview"}},
	},
	Read:  factCheckToolsRead,
	Parse: factCheckToolsParse,
}

// NoteMorePages says that a reply has further pages, which are not part of the file.
const NoteMorePages = "the reply has a nextPageToken, whose page is another reply"

func factCheckToolsRead(_ string, r io.Reader) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		at := 0
		for v, err := range values(withoutBOM(r)) {
			if err != nil {
				at++
				if !yield(Row{At: at}, fmt.Errorf("read factcheck_tools table: %w", &fault{at: at, line: v.line, err: err})) {
					return
				}
				continue
			}
			for row, err := range searchRows(v.raw, &at) {
				if err != nil {
					err = fmt.Errorf("read factcheck_tools table: %w", err)
				}
				if !yield(row, err) {
					return
				}
			}
		}
	}
}

// searchRows yields the rows of one reply, or of one claim. at counts claims.
func searchRows(raw []byte, at *int) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		refuse := func(err error) bool { return yield(Row{At: *at}, &fault{at: *at, err: err}) }
		reply, err := nodeOf(raw)
		if err != nil || reply == nil {
			*at++
			refuse(errors.Join(err, errors.New("it is neither a reply nor a claim")))
			return
		}
		if err := searchError(reply); err != nil {
			*at++
			refuse(err)
			return
		}
		claims := []any{reply}
		if _, one := reply["text"]; !one {
			claims = listed(reply["claims"])
		}
		for i, c := range claims {
			*at++
			claim, ok := c.(node)
			reviews, _ := claim["claimReview"].([]any)
			switch {
			case !ok:
				if !refuse(errors.New("the claim is no object")) {
					return
				}
			case len(reviews) == 0:
				if !refuse(corpus.Exclude("no_review", "the claim comes without a review")) {
					return
				}
			}
			for _, review := range reviews {
				row, err := searchRow(claim, review)
				if err != nil {
					err = &fault{at: *at, err: err}
				}
				row.At = *at
				if i == len(claims)-1 && scalar(reply["nextPageToken"]) != "" {
					row.Notes = append(row.Notes, NoteMorePages)
				}
				if !yield(row, err) {
					return
				}
			}
		}
	}
}

// searchRow is the row of one review of a claim.
func searchRow(claim node, review any) (Row, error) {
	one := node{}
	for k, v := range claim {
		one[k] = v
	}
	one["claimReview"] = []any{review}
	raw, err := json.Marshal(one)
	if err != nil {
		return Row{}, err
	}
	r, err := searchReview(raw)
	switch {
	case err != nil:
		return Row{}, err
	case r.Claim == "":
		return Row{}, errors.New("it names no claim")
	case strings.ContainsRune(r.Claim, 0):
		return Row{}, errNUL
	}
	id := corpus.ClaimID(r.Claim, r.Publisher+" "+r.PublisherSite, r.URL, "")
	return Row{Key: strings.TrimPrefix(id, "c_"), Fields: map[string]string{claimreviewItem: string(raw)}, Notes: r.Notes}, nil
}

// searchReview reads the review of a claim that has one.
func searchReview(raw []byte) (Review, error) {
	s, err := ReadClaimSearch(strings.NewReader(`{"claims":[` + string(raw) + `]}`))
	if err != nil {
		return Review{}, err
	}
	if len(s.Reviews) != 1 {
		return Review{}, errors.New("the review is no object")
	}
	return s.Reviews[0], nil
}

func factCheckToolsParse(row Row) ([]corpus.Claim, error) {
	r, err := searchReview([]byte(row.Fields[claimreviewItem]))
	if err != nil {
		return nil, fmt.Errorf("parse row %s of factcheck_tools: %w", row.Key, err)
	}
	c, err := r.claim("factcheck_tools")
	if err != nil {
		return nil, err
	}
	return []corpus.Claim{c}, nil
}
