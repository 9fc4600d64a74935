package stats

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
)

// A Table counts items by a label and by the class that they are of, such as a stance by a verdict. Where
// labels and classes go together, a rater who only knows the class scores well, and the table shows it.
type Table struct {
	Rows    []string `json:"rows"`
	Columns []string `json:"columns"`
	Counts  [][]int  `json:"counts"` // Counts[i][j]: items labelled Rows[i] in class Columns[j]
}

// NewTable makes an empty table.
func NewTable(rows, columns []string) Table {
	t := Table{Rows: slices.Clone(rows), Columns: slices.Clone(columns)}
	for range rows {
		t.Counts = append(t.Counts, make([]int, len(columns)))
	}
	return t
}

// Add counts n items. It panics when the table has no such row or column, since an item would be lost.
func (t Table) Add(row, column string, n int) {
	i, j := slices.Index(t.Rows, row), slices.Index(t.Columns, column)
	if i < 0 || j < 0 {
		panic(fmt.Sprintf("stats: a table of %v by %v has no place for %q, %q", t.Rows, t.Columns, row, column))
	}
	t.Counts[i][j] += n
}

// Count is the number of items in one cell, 0 for a row or column that is not there.
func (t Table) Count(row, column string) int {
	i, j := slices.Index(t.Rows, row), slices.Index(t.Columns, column)
	if i < 0 || j < 0 {
		return 0
	}
	return t.Counts[i][j]
}

// Total is the number of items.
func (t Table) Total() int {
	n := 0
	for _, row := range t.Counts {
		n += sum(row)
	}
	return n
}

// String is the table for people, with sums.
func (t Table) String() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, c := range t.Columns {
		fmt.Fprintf(w, "\t%s", c)
	}
	fmt.Fprint(w, "\tall\t\n")
	sums := make([]int, len(t.Columns))
	for i, r := range t.Rows {
		fmt.Fprint(w, r)
		for j, k := range t.Counts[i] {
			sums[j] += k
			fmt.Fprintf(w, "\t%d", k)
		}
		fmt.Fprintf(w, "\t%d\t\n", sum(t.Counts[i]))
	}
	fmt.Fprint(w, "all")
	for _, k := range sums {
		fmt.Fprintf(w, "\t%d", k)
	}
	fmt.Fprintf(w, "\t%d\t\n", sum(sums))
	w.Flush() // a strings.Builder takes everything
	return b.String()
}

// A Score is how well labels match a reference.
type Score struct {
	Name     string     `json:"name,omitzero"`
	N        int        `json:"n"`
	Accuracy *float64   `json:"accuracy"` // nil when there are no items
	MacroF1  MeanValue  `json:"macro_f1"` // over the labels of which an F1 is defined
	F1       []*float64 `json:"f1"`       // in the order of Labels; nil for a label that neither side gave
	Labels   []string   `json:"labels"`
	Kappa    *float64   `json:"kappa"` // nil when undefined, then Reason says why
	Reason   string     `json:"reason,omitzero"`
}

// Scores compares labels with a reference, item by item: accuracy, F1 of each label (van Rijsbergen 1979:
// 2 TP / (2 TP + FP + FN)) and its mean, and Cohen's kappa. A label that neither side gave has no F1, and
// the mean counts how many it left out. It panics when reference and given differ in length.
func Scores(name string, reference, given []string, labels ...string) Score {
	return scored(name, Kappa(reference, given, labels...))
}

func scored(name string, g Agreement) Score {
	c := g.Confusion
	s := Score{Name: name, N: g.N, Accuracy: g.Raw, Kappa: g.Value, Reason: g.Reason, Labels: c.Labels, F1: make([]*float64, len(c.Labels))}
	for k := range c.Labels {
		row, column := 0, 0
		for l := range c.Labels {
			row += c.Counts[k][l]
			column += c.Counts[l][k]
		}
		if row+column > 0 {
			f := 2 * float64(c.Counts[k][k]) / float64(row+column)
			s.F1[k] = &f
		}
	}
	s.MacroF1 = Mean(s.F1)
	return s
}

// String is the score in one line.
func (s Score) String() string {
	line := s.Name + ": "
	if s.Accuracy == nil {
		return line + NoItems
	}
	line += fmt.Sprintf("accuracy %.3f", *s.Accuracy)
	if s.MacroF1.Value != nil {
		line += fmt.Sprintf(", macro-F1 %.3f", *s.MacroF1.Value)
	}
	if s.Kappa == nil {
		return line + fmt.Sprintf(", kappa undefined (%s), n %d", s.Reason, s.N)
	}
	return line + fmt.Sprintf(", kappa %.3f, n %d", *s.Kappa, s.N)
}
