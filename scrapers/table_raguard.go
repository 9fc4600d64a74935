package scrapers

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"assay/corpus"
)

// The columns of RAGuard's claims.csv.
const (
	raguardID       = "Claim ID"
	raguardClaim    = "Claim"
	raguardVerdict  = "Verdict"
	raguardDocs     = "Document IDs"
	raguardLabels   = "Document Labels"
	raguardOriginal = "Original Verdict"
)

var raguardColumns = []string{raguardID, raguardClaim, raguardVerdict, raguardDocs, raguardLabels, raguardOriginal}

// raguard reads the claims table of RAGuard. It names neither speakers nor dates nor reviews.
var raguard = Table{
	Name:      "raguard",
	Version:   1,
	Doc:       "RAGuard's claims.csv: claims with PolitiFact ratings, ids and labels of Reddit documents",
	Proven:    "captured",
	Reference: "the published table of 2,648 claims, huggingface.co/datasets/UCSC-IRKM/RAGuard",
	Shapes:    []Shape{{Form: FormCSV, Columns: raguardColumns}},
	Read:      raguardRead,
	Parse:     raguardParse,
}

func raguardRead(_ string, r io.Reader) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		cr := csv.NewReader(withoutBOM(r))
		header, err := cr.Read()
		if err != nil {
			yield(Row{}, fmt.Errorf("read raguard table: header: %w", err))
			return
		}
		for _, c := range raguardColumns {
			if !slices.Contains(header, c) {
				yield(Row{}, fmt.Errorf("read raguard table: header has no column %q; it has %q", c, header))
				return
			}
		}
		if err := twice(header); err != nil {
			yield(Row{}, fmt.Errorf("read raguard table: %w", &EndError{err}))
			return
		}
		seen := map[int]int{}
		for n := 1; ; n++ {
			record, err := cr.Read()
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				err, goesOn := unreadable(err)
				if !yield(Row{}, fmt.Errorf("read raguard table: row %d: %w", n, err)) || !goesOn {
					return
				}
				continue
			}
			row, column, err := raguardRow(header, record)
			if first := seen[row.Number]; err == nil && first > 0 {
				column, err = raguardID, fmt.Errorf("%d is taken by row %d", row.Number, first)
			}
			if err != nil {
				at, _ := cr.FieldPos(slices.Index(header, column))
				if !yield(Row{}, fmt.Errorf("read raguard table: row %d (line %d), column %q: %w", n, at, column, err)) {
					return
				}
				continue
			}
			seen[row.Number], row.At = n, n
			if !yield(row, nil) {
				return
			}
		}
	}
}

// raguardRow reads one record; an error comes with the column that it is about.
func raguardRow(header, record []string) (row Row, column string, err error) {
	row.Fields = map[string]string{}
	for i, name := range header {
		if !utf8.ValidString(record[i]) {
			return row, name, errors.New("not UTF-8")
		}
		if strings.IndexByte(record[i], 0) >= 0 {
			return row, name, errNUL
		}
		row.Fields[name] = record[i]
	}
	row.Number, err = strconv.Atoi(row.Fields[raguardID])
	if err == nil && row.Number < 1 {
		err = fmt.Errorf("%d is not positive", row.Number)
	}
	if err != nil {
		return row, raguardID, err
	}
	row.Key = strconv.Itoa(row.Number)
	if strings.TrimSpace(row.Fields[raguardClaim]) == "" {
		return row, raguardClaim, errors.New("empty")
	}
	if v := row.Fields[raguardVerdict]; v != "True" && v != "False" {
		return row, raguardVerdict, fmt.Errorf("%q is neither True nor False", v)
	}
	if row.Fields[raguardOriginal] == "" {
		return row, raguardOriginal, errors.New("empty")
	}
	docs, err := pythonInts(row.Fields[raguardDocs])
	if err != nil {
		return row, raguardDocs, err
	}
	labels, err := pythonStrings(row.Fields[raguardLabels])
	if err != nil {
		return row, raguardLabels, err
	}
	if len(labels) != len(docs) {
		return row, raguardLabels, fmt.Errorf("%d labels for %d documents", len(labels), len(docs))
	}
	for i, n := range docs {
		if n < 1 {
			return row, raguardDocs, fmt.Errorf("%d is not positive", n)
		}
		if slices.Contains(docs[:i], n) {
			return row, raguardDocs, fmt.Errorf("%d comes twice", n)
		}
		label := corpus.StanceLabel(labels[i])
		if !slices.Contains(corpus.StanceLabels, label) {
			return row, raguardLabels, fmt.Errorf("%q is no label", labels[i])
		}
		row.Links = append(row.Links, corpus.Link{
			Row: row.Key, DocumentID: corpus.RowID("raguard", n), Label: label, Number: n, Rank: i + 1,
		})
	}
	return row, "", nil
}

func raguardParse(row Row) ([]corpus.Claim, error) {
	c := corpus.Claim{
		Source:    "raguard",
		Text:      row.Fields[raguardClaim],
		RatingRaw: row.Fields[raguardOriginal],
		Number:    row.Number,
	}
	c.ID = corpus.ClaimID(c.Text, "", "", "")
	rating, ok := corpus.PolitiFactRatings.Map(c.RatingRaw)
	switch {
	case rating.Exclude != "":
		return nil, corpus.Exclude(rating.Exclude, fmt.Sprintf("%s in row %d of raguard", c.RatingRaw, row.Number))
	case !ok:
		c.Flags = corpus.AddFlag(c.Flags, corpus.FlagUnmapped)
		return []corpus.Claim{c}, nil
	}
	c.Rating, c.Verdict6, c.Status = rating.Slug, rating.Verdict, corpus.StatusSource
	// The table's own binary verdict is not kept: releases project the rating. So the two must agree.
	release, err := corpus.ProjectionByName("raguard_release")
	if err != nil {
		return nil, fmt.Errorf("parse row %d of raguard: %w", row.Number, err)
	}
	if binary, ok := release.Apply(c); ok && binary != strings.ToLower(row.Fields[raguardVerdict]) {
		return nil, fmt.Errorf("parse row %d of raguard, column %q: %s contradicts the rating %s",
			row.Number, raguardVerdict, row.Fields[raguardVerdict], c.RatingRaw)
	}
	return []corpus.Claim{c}, nil
}

// Numbers are what a RAGuard claims table says about itself; a rebuilt release is held against them.
type Numbers struct {
	Claims               int            `json:"claims"`
	True                 int            `json:"true"` // by the table's binary verdict
	False                int            `json:"false"`
	Links                int            `json:"links"`
	Supporting           int            `json:"supporting"`
	Misleading           int            `json:"misleading"`
	Unrelated            int            `json:"unrelated"`
	ClaimsWithSupporting int            `json:"claims_with_supporting"`
	ClaimsWithMisleading int            `json:"claims_with_misleading"`
	ClaimsWithBoth       int            `json:"claims_with_both"`
	ClaimsOnlyUnrelated  int            `json:"claims_only_unrelated"`
	MisleadingOnTrue     int            `json:"misleading_on_true"`
	MisleadingOnFalse    int            `json:"misleading_on_false"`
	SupportingOnTrue     int            `json:"supporting_on_true"`
	SupportingOnFalse    int            `json:"supporting_on_false"`
	Original             map[string]int `json:"original"` // by the rating as printed
}

// Summary counts the rows of a RAGuard claims table; it stops at the first row that cannot be read.
func Summary(rows iter.Seq2[Row, error]) (Numbers, error) {
	n := Numbers{Original: map[string]int{}}
	for row, err := range rows {
		if err != nil {
			return Numbers{}, err
		}
		count := map[corpus.StanceLabel]int{}
		for _, l := range row.Links {
			count[l.Label]++
		}
		supporting, misleading := count[corpus.Supporting], count[corpus.Misleading]
		n.Claims++
		n.Original[row.Fields[raguardOriginal]]++
		n.Links += len(row.Links)
		n.Supporting += supporting
		n.Misleading += misleading
		n.Unrelated += count[corpus.Unrelated]
		if row.Fields[raguardVerdict] == "True" {
			n.True++
			n.MisleadingOnTrue += misleading
			n.SupportingOnTrue += supporting
		} else {
			n.False++
			n.MisleadingOnFalse += misleading
			n.SupportingOnFalse += supporting
		}
		if supporting > 0 {
			n.ClaimsWithSupporting++
		}
		if misleading > 0 {
			n.ClaimsWithMisleading++
		}
		if supporting > 0 && misleading > 0 {
			n.ClaimsWithBoth++
		}
		if supporting == 0 && misleading == 0 && count[corpus.Unrelated] > 0 {
			n.ClaimsOnlyUnrelated++
		}
	}
	return n, nil
}

// pythonInts reads a list of integers as Python writes it: [1, 2, 3].
func pythonInts(s string) ([]int, error) {
	var out []int
	err := pythonList(s, func(p *literal) error {
		start := p.at
		if p.peek() == '-' {
			p.at++
		}
		for p.at < len(p.s) && p.s[p.at] >= '0' && p.s[p.at] <= '9' {
			p.at++
		}
		n, err := strconv.Atoi(p.s[start:p.at])
		if err != nil {
			p.at = start
			return p.fail("an integer")
		}
		out = append(out, n)
		return nil
	})
	return out, err
}

// pythonStrings reads a list of strings as Python writes it: ['a', "it's"].
func pythonStrings(s string) ([]string, error) {
	var out []string
	err := pythonList(s, func(p *literal) error {
		item, err := p.quoted()
		out = append(out, item)
		return err
	})
	return out, err
}

// pythonList reads the brackets and commas of a list and lets item read what lies between.
func pythonList(s string, item func(*literal) error) error {
	p := &literal{s: s}
	p.space()
	if !p.take('[') {
		return p.fail("[")
	}
	for p.space(); !p.take(']'); p.space() {
		if err := item(p); err != nil {
			return err
		}
		p.space()
		if !p.take(',') && p.peek() != ']' {
			return p.fail(", or ]")
		}
	}
	p.space()
	if p.at != len(p.s) {
		return p.fail("the end")
	}
	return nil
}

// A literal is a Python literal that is being read.
type literal struct {
	s  string
	at int
}

func (p *literal) peek() byte {
	if p.at < len(p.s) {
		return p.s[p.at]
	}
	return 0
}

func (p *literal) take(c byte) bool {
	if p.at < len(p.s) && p.s[p.at] == c {
		p.at++
		return true
	}
	return false
}

func (p *literal) space() {
	for p.at < len(p.s) && strings.IndexByte(" \t\r\n", p.s[p.at]) >= 0 {
		p.at++
	}
}

func (p *literal) fail(want string) error {
	has := "the end"
	if p.at < len(p.s) {
		r, _ := utf8.DecodeRuneInString(p.s[p.at:])
		has = strconv.QuoteRune(r)
	}
	return fmt.Errorf("byte %d: want %s, have %s", p.at, want, has)
}

var pythonEscapes = map[byte]rune{
	'\\': '\\', '\'': '\'', '"': '"', 'n': '\n', 'r': '\r', 't': '\t', 'a': '\a', 'b': '\b', 'f': '\f', 'v': '\v',
}

// quoted reads a string in single or double quotes.
func (p *literal) quoted() (string, error) {
	quote := p.peek()
	if quote != '\'' && quote != '"' {
		return "", p.fail("a quoted string")
	}
	p.at++
	var b strings.Builder
	for p.at < len(p.s) {
		c := p.s[p.at]
		switch c {
		case quote:
			p.at++
			return b.String(), nil
		case '\n', '\r':
			return "", p.fail("the closing quote")
		case '\\':
			r, err := p.escape()
			if err != nil {
				return "", err
			}
			b.WriteRune(r)
		default:
			b.WriteByte(c)
			p.at++
		}
	}
	return "", p.fail("the closing quote")
}

// escape reads one escape sequence; those that Python would keep as they are, with a warning, are refused.
func (p *literal) escape() (rune, error) {
	start := p.at
	p.at++
	c := p.peek()
	if r, ok := pythonEscapes[c]; ok {
		p.at++
		return r, nil
	}
	digits, ok := map[byte]int{'x': 2, 'u': 4, 'U': 8}[c]
	if ok && p.at+1+digits <= len(p.s) {
		n, err := strconv.ParseUint(p.s[p.at+1:p.at+1+digits], 16, 32)
		if err == nil && utf8.ValidRune(rune(n)) {
			p.at += 1 + digits
			return rune(n), nil
		}
	}
	p.at = start
	return 0, p.fail("an escape sequence")
}
