package scrapers

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"assay/corpus"
)

// claimreview reads dumps of schema.org ClaimReview: the feed of Data Commons, lists of its items, and
// reviews one after the other. A row is an item as it stands.
var claimreview = Table{
	Name:      "claimreview",
	Version:   1,
	Doc:       "schema.org ClaimReview: the Data Commons feed, lists of its items, JSON lines of reviews",
	Proven:    "captured",
	Reference: "one item of the Data Commons feed; the feed as a whole by its documentation",
	Shapes: []Shape{
		{Form: FormJSON, Columns: []string{"dataFeedElement"}},
		{Form: FormJSON, Columns: []string{"@type", "item"}},
		{Form: FormJSON, Columns: []string{"@type", "claimReviewed"}},
		{Form: FormJSON, Columns: []string{"@type", "reviewRating"}},
	},
	Read:  claimreviewRead,
	Parse: claimreviewParse,
}

// Fields of a row: its item, and what was done to read that.
const (
	claimreviewItem = "item"
	claimreviewNote = "note"
)

func claimreviewRead(_ string, r io.Reader) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		for item, err := range feedItems(withoutBOM(r)) {
			row := Row{At: item.at}
			if err == nil {
				row, err = claimreviewRow(item)
			}
			if !yield(row, err) {
				return
			}
		}
	}
}

// claimreviewRow makes a row of an item. What names it is what it reviews, where, and by whom, so that a
// changed rating is another version of the same row.
func claimreviewRow(item feedItem) (Row, error) {
	refuse := func(err error) (Row, error) { return Row{At: item.at}, &fault{at: item.at, err: err} }
	reviews := item.reviews()
	if len(reviews) == 0 {
		return refuse(corpus.Exclude("no_review", "the item holds none"))
	}
	var id strings.Builder
	row := Row{At: item.at, Fields: map[string]string{claimreviewItem: string(item.raw)}}
	if item.mended {
		row.Fields[claimreviewNote] = NoteRepaired
	}
	for _, r := range reviews {
		if r.Claim == "" {
			return refuse(errors.New("it names no claim"))
		}
		if strings.ContainsRune(r.Claim, 0) {
			return refuse(errNUL)
		}
		id.WriteString(corpus.ClaimID(r.Claim, r.Author(), r.URL, ""))
		row.Notes = append(row.Notes, r.Notes...)
	}
	row.Key = rowKey(strings.TrimPrefix(id.String(), "c_"))
	return row, nil
}

func claimreviewParse(row Row) ([]corpus.Claim, error) {
	n, err := nodeOf([]byte(row.Fields[claimreviewItem]))
	if err != nil {
		return nil, fmt.Errorf("parse row %s of claimreview: %w", row.Key, err)
	}
	var out []corpus.Claim
	var left error
	for i, r := range (feedItem{n: n}).reviews() {
		c, err := r.claim("claimreview")
		if err != nil {
			left = err // an outcome of this review alone
			continue
		}
		c.Position = i
		if row.Fields[claimreviewNote] == NoteRepaired {
			c.Flags = corpus.AddFlag(c.Flags, corpus.FlagRepaired)
		}
		out = append(out, c)
	}
	if len(out) == 0 {
		return nil, left
	}
	return out, nil
}

// claim is the claim of a review, rated by the map of its publisher where there is one, else by the words
// that mean the same everywhere.
func (r Review) claim(source string) (corpus.Claim, error) {
	c := corpus.Claim{
		Source: source, Text: r.Claim, Speaker: r.Claimant(), RatingRaw: r.Rating, StatedDate: r.Claimed.Date.Day,
		ReviewURL: r.URL, ReviewDate: r.Published.Date.Day, Title: r.Title, Authors: r.Authors,
	}
	if len(c.Authors) == 0 && r.Publisher != "" {
		c.Authors = []string{r.Publisher}
	}
	c.ID = corpus.ClaimID(c.Text, c.Speaker, c.ReviewURL, c.StatedDate)
	known := []corpus.RatingMap{corpus.ClaimReviewRatings}
	if m, ok := ratingsAt(r.URL, r.PublisherSite); ok {
		known = []corpus.RatingMap{m}
	}
	return c, rate(&c, r.Rating, known...)
}

// ratingsAt is the rating map of the site that published a review, by the review's address or by the site
// that is named as its publisher.
func ratingsAt(url, publisher string) (corpus.RatingMap, bool) {
	at := []string{bare(corpus.Host(url)), bare(strings.ToLower(publisher))}
	for _, s := range All {
		if s.Ratings != nil && slices.ContainsFunc(append([]string{s.Host}, s.Hosts...), func(host string) bool { return slices.Contains(at, bare(host)) }) {
			return *s.Ratings, true
		}
	}
	return corpus.RatingMap{}, false
}

func bare(host string) string { return strings.TrimPrefix(host, "www.") }
