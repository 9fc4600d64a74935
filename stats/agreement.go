package stats

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"text/tabwriter"
)

// A Confusion counts how two raters labelled the same items.
type Confusion struct {
	Labels []string `json:"labels"`
	Counts [][]int  `json:"counts"` // Counts[i][j]: items that the first called Labels[i] and the second Labels[j]
}

// NewConfusion counts the pairs a[i], b[i]. Rows and columns are in the order of labels; a label that
// occurs and was not named comes after them, in alphabetical order, so that no item is lost. It panics
// when a and b differ in length.
func NewConfusion(a, b []string, labels ...string) Confusion {
	checkPaired(a, b)
	c := Confusion{Labels: allLabels(a, b, labels)}
	index := make(map[string]int, len(c.Labels))
	c.Counts = make([][]int, len(c.Labels))
	for i, l := range c.Labels {
		index[l] = i
		c.Counts[i] = make([]int, len(c.Labels))
	}
	for i := range a {
		c.Counts[index[a[i]]][index[b[i]]]++
	}
	return c
}

func allLabels(a, b, named []string) []string {
	labels := []string{}
	seen := map[string]bool{}
	add := func(l string) {
		if !seen[l] {
			seen[l] = true
			labels = append(labels, l)
		}
	}
	for _, l := range named {
		add(l)
	}
	for _, l := range slices.Sorted(slices.Values(slices.Concat(a, b))) {
		add(l)
	}
	return labels
}

func checkPaired(a, b []string) {
	if len(a) != len(b) {
		panic(fmt.Sprintf("stats: %d labels of one rater, %d of the other", len(a), len(b)))
	}
}

// N is the number of items.
func (c Confusion) N() int {
	n := 0
	for _, row := range c.Counts {
		for _, k := range row {
			n += k
		}
	}
	return n
}

// Agreed is the number of items that both raters gave the same label.
func (c Confusion) Agreed() int {
	n := 0
	for i := range c.Counts {
		n += c.Counts[i][i]
	}
	return n
}

// Count is the number of items that the first called a and the second b.
func (c Confusion) Count(a, b string) int {
	i, j := slices.Index(c.Labels, a), slices.Index(c.Labels, b)
	if i < 0 || j < 0 {
		return 0
	}
	return c.Counts[i][j]
}

// String is the table for people: a row for each label of the first rater, a column for each of the
// second.
func (c Confusion) String() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, l := range c.Labels {
		fmt.Fprintf(w, "\t%s", l)
	}
	fmt.Fprint(w, "\t\n")
	for i, l := range c.Labels {
		fmt.Fprint(w, l)
		for _, k := range c.Counts[i] {
			fmt.Fprintf(w, "\t%d", k)
		}
		fmt.Fprint(w, "\t\n")
	}
	w.Flush() // a strings.Builder takes everything
	return b.String()
}

// kappa is (observed - expected) / (1 - expected), Cohen (1960), in whole numbers until the division:
// the undefined case, expected = 1, is then exact.
func (c Confusion) kappa() (float64, bool) {
	rows, cols := make([]int, len(c.Labels)), make([]int, len(c.Labels))
	n := 0
	for i := range c.Counts {
		for j, k := range c.Counts[i] {
			rows[i] += k
			cols[j] += k
			n += k
		}
	}
	chance := 0
	for i := range rows {
		chance += rows[i] * cols[i]
	}
	if n*n == chance { // so too when there are no items
		return 0, false
	}
	return float64(n*c.Agreed()-chance) / float64(n*n-chance), true
}

// An Agreement is Cohen's kappa with what is needed to read it.
type Agreement struct {
	Reading   string    `json:"reading,omitzero"` // which pairs, see Reading
	Value     *float64  `json:"kappa"`            // nil when undefined, then Reason says why
	Reason    string    `json:"reason,omitzero"`
	N         int       `json:"n"`
	Raw       *float64  `json:"raw_agreement"` // share of items with the same label; nil when there are none
	Interval  *Interval `json:"interval,omitzero"`
	Confusion Confusion `json:"confusion"`
}

// Kappa is Cohen's kappa of two raters who labelled the same items, a[i] and b[i], each item once. It is
// undefined when there are no items and when both used one and the same label only. Labels give the
// order of the confusion table and change no number. It panics when a and b differ in length.
func Kappa(a, b []string, labels ...string) Agreement {
	g := Agreement{Confusion: NewConfusion(a, b, labels...), N: len(a)}
	if g.N == 0 {
		g.Reason = NoItems
		return g
	}
	raw := float64(g.Confusion.Agreed()) / float64(g.N)
	g.Raw = &raw
	if k, ok := g.Confusion.kappa(); ok {
		g.Value = &k
	} else {
		g.Reason = SingleLabel
	}
	return g
}

// WithInterval adds the percentile bootstrap interval of kappa over items. The order of the items does
// not matter to it. An undefined kappa gets an interval without bounds, for the same reason.
func (g Agreement) WithInterval(rng *rand.Rand, replicates int, level float64) Agreement {
	i := Interval{Level: level, Reason: g.Reason}
	if g.Value != nil {
		i = g.Confusion.interval(rng, replicates, level)
	}
	g.Interval = &i
	return g
}

// interval draws items from the cells of the table.
func (c Confusion) interval(rng *rand.Rand, replicates int, level float64) Interval {
	var cells [][2]int
	for i := range c.Counts {
		for j, k := range c.Counts[i] {
			cells = append(cells, slices.Repeat([][2]int{{i, j}}, k)...)
		}
	}
	drawn := Confusion{Labels: c.Labels, Counts: make([][]int, len(c.Labels))}
	for i := range drawn.Counts {
		drawn.Counts[i] = make([]int, len(c.Labels))
	}
	return Bootstrap(rng, len(cells), replicates, level, func(sample []int) (float64, bool) {
		for i := range drawn.Counts {
			clear(drawn.Counts[i])
		}
		for _, s := range sample {
			drawn.Counts[cells[s][0]][cells[s][1]]++
		}
		return drawn.kappa()
	})
}

// String is the agreement in one line.
func (g Agreement) String() string {
	var b strings.Builder
	if g.Reading != "" {
		fmt.Fprintf(&b, "%s: ", g.Reading)
	}
	if g.Value == nil {
		fmt.Fprintf(&b, "kappa undefined (%s), ", g.Reason)
	} else {
		fmt.Fprintf(&b, "kappa %.3f", *g.Value)
		if g.Interval != nil {
			fmt.Fprintf(&b, " %v", *g.Interval)
		}
		b.WriteString(", ")
	}
	if g.Raw != nil {
		fmt.Fprintf(&b, "raw agreement %.3f, ", *g.Raw)
	}
	fmt.Fprintf(&b, "n %d", g.N)
	return b.String()
}

// A Reading selects the pairs over which an agreement is computed. A published kappa "on" some labels
// can mean several, with different numbers, so reports give all of them by name.
type Reading struct {
	Name string
	Keep func(reference, other string) bool // nil keeps every pair
}

// Readings are the three that a kappa on some of the labels can mean: over all pairs, over those whose
// reference label is one of them, and over those where both labels are.
func Readings(labels ...string) []Reading {
	in := func(l string) bool { return slices.Contains(labels, l) }
	names := strings.Join(labels, "/")
	return []Reading{
		{Name: "all labels"},
		{Name: "reference is " + names, Keep: func(reference, _ string) bool { return in(reference) }},
		{Name: "both are " + names, Keep: func(reference, other string) bool { return in(reference) && in(other) }},
	}
}

// Filter returns the pairs that keep wants, in their order; a nil keep wants all.
func Filter(a, b []string, keep func(a, b string) bool) (as, bs []string) {
	checkPaired(a, b)
	for i := range a {
		if keep == nil || keep(a[i], b[i]) {
			as, bs = append(as, a[i]), append(bs, b[i])
		}
	}
	return as, bs
}

// KappaReading is Kappa over the pairs of one reading, under its name.
func KappaReading(r Reading, reference, other []string, labels ...string) Agreement {
	a, b := Filter(reference, other, r.Keep)
	g := Kappa(a, b, labels...)
	g.Reading = r.Name
	return g
}

// Common pairs the labels that two raters gave to the same items, by item id, in the order of ids.
func Common(a, b map[string]string) (as, bs []string) {
	var ids []string
	for id := range a {
		if _, ok := b[id]; ok {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	for _, id := range ids {
		as, bs = append(as, a[id]), append(bs, b[id])
	}
	return as, bs
}
