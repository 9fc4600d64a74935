package scrapers

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"assay/corpus"
)

// Columns of the plain table. A verdict may be any word of the six-way scale or of the truth-o-meter.
const (
	pairsClaim   = "claim"
	pairsVerdict = "verdict"
	pairsDate    = "date"        // of the statement; may be missing
	pairsReview  = "review_date" // likewise
)

// pairs is the plainest table: a claim and a verdict. Imported pairs leave their claims in it.
var pairs = Table{
	Name:      "pairs",
	Version:   1,
	Doc:       "claims of imported pairs, or any CSV with the columns claim and verdict, and date and review_date where it has them",
	Proven:    "documented",
	Reference: "this program's README",
	Shapes:    []Shape{{Form: FormCSV, Columns: []string{pairsClaim, pairsVerdict}}},
	Read:      pairsRead,
	Parse:     pairsParse,
}

// PairsRow is the row of a claim that came with imported pairs. The days of the statement and of its review are "" where
// nobody tells them.
func PairsRow(claim, verdict, date, review string) Row {
	fields := map[string]string{pairsClaim: claim, pairsVerdict: verdict}
	for column, day := range map[string]string{pairsDate: date, pairsReview: review} {
		if day != "" {
			fields[column] = day
		}
	}
	// A wording is itself in every file.
	return Row{Key: strings.TrimPrefix(corpus.ClaimID(claim, "", "", ""), "c_"), Fields: fields}
}

// RAGuardRow is the row of a claim of RAGuard that came with its documents.
func RAGuardRow(number int, claim, original string) (Row, error) {
	verdict := "False"
	switch rating, ok := corpus.PolitiFactRatings.Map(original); {
	case !ok:
		return Row{}, fmt.Errorf("claim %d of raguard: verdict %q is in no rating map", number, original)
	case rating.Verdict == corpus.True, rating.Verdict == corpus.MostlyTrue, rating.Verdict == corpus.HalfTrue:
		verdict = "True"
	}
	row, column, err := raguardRow(raguardColumns, []string{fmt.Sprint(number), claim, verdict, "[]", "[]", original})
	if err != nil {
		return Row{}, fmt.Errorf("claim %d of raguard, %q: %w", number, column, err)
	}
	return row, nil
}

func pairsRead(_ string, r io.Reader) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		cr := csv.NewReader(withoutBOM(r))
		header, err := cr.Read()
		if err != nil {
			yield(Row{}, fmt.Errorf("read table: header: %w", err))
			return
		}
		claim, verdict := slices.Index(header, pairsClaim), slices.Index(header, pairsVerdict)
		if claim < 0 || verdict < 0 {
			yield(Row{}, fmt.Errorf("read table: header %q has no columns %s and %s", header, pairsClaim, pairsVerdict))
			return
		}
		if err := twice(header); err != nil {
			yield(Row{}, fmt.Errorf("read table: %w", &EndError{err}))
			return
		}
		for n := 1; ; n++ {
			record, err := cr.Read()
			if errors.Is(err, io.EOF) {
				return
			}
			goesOn := true
			var days [2]string
			if err != nil {
				err, goesOn = unreadable(err)
			} else if strings.TrimSpace(record[claim]) == "" {
				err = fmt.Errorf("column %q is empty", pairsClaim)
			} else if column, bad := checkText(fieldsBy(header, record)); bad != nil {
				err = fmt.Errorf("column %q: %w", column, bad)
			} else {
				for i, column := range []string{pairsDate, pairsReview} {
					at := slices.Index(header, column)
					if at < 0 || strings.TrimSpace(record[at]) == "" {
						continue
					}
					read, bad := corpus.ReadDate(record[at])
					if days[i] = read.Day; bad != nil {
						err = fmt.Errorf("column %q: %w", column, bad)
						break
					}
				}
			}
			if err != nil {
				if !yield(Row{}, fmt.Errorf("read table: row %d: %w", n, err)) || !goesOn {
					return
				}
				continue
			}
			row := PairsRow(record[claim], record[verdict], days[0], days[1])
			row.Number, row.At = n, n
			if !yield(row, nil) {
				return
			}
		}
	}
}

func pairsParse(row Row) ([]corpus.Claim, error) {
	c := corpus.Claim{Source: "pairs", Text: row.Fields[pairsClaim], RatingRaw: row.Fields[pairsVerdict], Number: row.Number,
		StatedDate: row.Fields[pairsDate], ReviewDate: row.Fields[pairsReview]}
	c.ID = corpus.ClaimID(c.Text, "", "", c.StatedDate)
	if strings.TrimSpace(c.RatingRaw) == "" {
		return nil, corpus.Exclude("no_verdict", "the claim came without a verdict, so a label cannot be told")
	}
	if rating, ok := corpus.PolitiFactRatings.Map(c.RatingRaw); ok && rating.Exclude == "" {
		c.Rating, c.Verdict6, c.Status = rating.Slug, rating.Verdict, corpus.StatusSource
		return []corpus.Claim{c}, nil
	}
	if v, ok := corpus.ParseVerdict(c.RatingRaw); ok {
		c.Rating, c.Verdict6, c.Status = string(v), v, corpus.StatusSource
		return []corpus.Claim{c}, nil
	}
	c.Flags = corpus.AddFlag(c.Flags, corpus.FlagUnmapped)
	return []corpus.Claim{c}, nil
}
