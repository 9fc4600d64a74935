package output

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"iter"
	"sort"
	"strconv"
	"strings"
)

// formatRAGuard writes the two tables of the RAGuard release with its column names and its Python
// spellings, so that scripts made for it go on working. Numbers run from 1 in the order of our ids;
// a row that was imported keeps its number. A document of two claims stands twice, as it does there.
// Text cells are neutralised against spreadsheet formulas, see Neutralise.
var formatRAGuard = Format{
	Name: "raguard",
	Doc:  "claims.csv and documents.csv as RAGuard published them",
	Write: func(ctx context.Context, d *Dir, t Tables) error {
		claims, pairs, err := numberRows(ctx, t)
		if err != nil {
			return err
		}
		if err := writeCSV(d, "compat/raguard/claims.csv", raguardClaims, raguardClaimRows(ctx, t, claims, pairs)); err != nil {
			return err
		}
		return writeCSV(d, "compat/raguard/documents.csv", raguardDocuments, raguardDocumentRows(ctx, t, pairs))
	},
}

var (
	raguardClaims    = []string{"Claim ID", "Claim", "Verdict", "Document IDs", "Document Labels", "Original Verdict"}
	raguardDocuments = []string{"Document ID", "Title", "Full Text", "Claim ID", "Document Label", "Link"}
)

type numberedClaim struct {
	number int
	id     string
}

type numberedPair struct {
	number, claim     int
	documentID, label string
}

// numberRows gives every claim and every pair its number, both sorted by number.
func numberRows(ctx context.Context, t Tables) ([]numberedClaim, []numberedPair, error) {
	var claims []numberedClaim
	if err := each(ctx, t.Claims, func(c ClaimRow) error {
		claims = append(claims, numberedClaim{c.Number, c.ID})
		return nil
	}); err != nil {
		return nil, nil, err
	}
	assign(len(claims), func(i int) *int { return &claims[i].number })
	numberOf := make(map[string]int, len(claims))
	for _, c := range claims {
		numberOf[c.id] = c.number
	}
	var pairs []numberedPair
	if err := each(ctx, t.Pairs, func(p PairRow) error {
		claim, ok := numberOf[p.ClaimID]
		if !ok {
			return fmt.Errorf("pair of %s and %s: the claim is not in the release", p.ClaimID, p.DocumentID)
		}
		pairs = append(pairs, numberedPair{p.Number, claim, p.DocumentID, p.Label})
		return nil
	}); err != nil {
		return nil, nil, err
	}
	assign(len(pairs), func(i int) *int { return &pairs[i].number })
	sort.Slice(claims, func(i, j int) bool { return claims[i].number < claims[j].number })
	sort.Slice(pairs, func(i, j int) bool { return pairs[i].number < pairs[j].number })
	return claims, pairs, nil
}

// assign fills the numbers that are 0 or taken twice with the lowest free ones, in order.
func assign(n int, at func(int) *int) {
	taken := make(map[int]bool, n)
	for i := range n {
		switch p := at(i); {
		case *p <= 0 || taken[*p]:
			*p = 0
		default:
			taken[*p] = true
		}
	}
	next := 1
	for i := range n {
		if p := at(i); *p == 0 {
			for taken[next] {
				next++
			}
			*p = next
			next++
		}
	}
}

func raguardClaimRows(ctx context.Context, t Tables, claims []numberedClaim, pairs []numberedPair) iter.Seq2[[]string, error] {
	return func(yield func([]string, error) bool) {
		of := make(map[int][]numberedPair, len(claims))
		for _, p := range pairs {
			of[p.claim] = append(of[p.claim], p)
		}
		for _, c := range claims {
			row, err := t.Claim(c.id)
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				yield(nil, err)
				return
			}
			ids, labels := make([]string, 0, len(of[c.number])), make([]string, 0, len(of[c.number]))
			for _, p := range of[c.number] {
				ids = append(ids, strconv.Itoa(p.number))
				labels = append(labels, "'"+p.label+"'")
			}
			if !yield([]string{
				strconv.Itoa(c.number), Neutralise(row.Text), pythonBool(row.VerdictBinary),
				"[" + strings.Join(ids, ", ") + "]", "[" + strings.Join(labels, ", ") + "]",
				Neutralise(strings.ReplaceAll(row.Rating, "_", "-")),
			}, nil) {
				return
			}
		}
	}
}

func raguardDocumentRows(ctx context.Context, t Tables, pairs []numberedPair) iter.Seq2[[]string, error] {
	return func(yield func([]string, error) bool) {
		for _, p := range pairs {
			doc, err := t.Document(p.documentID)
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield([]string{
				strconv.Itoa(p.number), Neutralise(doc.Title), Neutralise(doc.Text),
				strconv.Itoa(p.claim), p.label, Neutralise(doc.URL),
			}, nil) {
				return
			}
		}
	}
}

func pythonBool(verdict string) string {
	switch verdict {
	case "true":
		return "True"
	case "false":
		return "False"
	}
	return Neutralise(verdict)
}

func writeCSV(d *Dir, path string, header []string, rows iter.Seq2[[]string, error]) (err error) {
	w, err := d.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	out := csv.NewWriter(w)
	if err := out.Write(header); err != nil {
		return err
	}
	for row, err := range rows {
		if err != nil {
			return err
		}
		w.Rows++
		if err := out.Write(row); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// Neutralise makes a text cell that a spreadsheet would run as a formula harmless: a cell whose
// first character after any apostrophes is = + - @, a tab or a carriage return gets one apostrophe
// in front. Restore is its exact inverse. Number columns are never neutralised.
func Neutralise(text string) string {
	if startsFormula(text) {
		return "'" + text
	}
	return text
}

// Restore undoes Neutralise.
func Restore(cell string) string {
	if strings.HasPrefix(cell, "'") && startsFormula(cell) {
		return cell[1:]
	}
	return cell
}

func startsFormula(text string) bool {
	rest := strings.TrimLeft(text, "'")
	return rest != "" && strings.ContainsRune("=+-@\t\r", rune(rest[0]))
}
