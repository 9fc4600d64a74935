package stats

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// Ratings are what any number of raters said of the same items: of each item, how many gave it each
// label. Who said what is not in it, since no coefficient over several raters asks. Raters may have
// rated different items; an item with fewer than two ratings says nothing about agreement.
type Ratings struct {
	Labels   []string  `json:"labels"`
	patterns []pattern // sorted, so that a resample does not depend on the order of items
}

// A pattern is a way in which items were rated: counts by label, and how many items were rated so.
type pattern struct {
	counts []int
	items  int
}

// NewRatings counts the labels of items; items[i] holds the ratings of item i, in any order, "" for a
// rater who did not rate it. Labels are in their order the ordinal scale, and the label set where
// chance depends on its size (Gwet); one that occurs and was not named comes after them, in
// alphabetical order. Items without a rating are left out.
func NewRatings(items [][]string, labels ...string) Ratings {
	said := func(l string) bool { return l != "" }
	var occurring []string
	for _, ratings := range items {
		for _, l := range ratings {
			if said(l) {
				occurring = append(occurring, l)
			}
		}
	}
	r := Ratings{Labels: allLabels(occurring, nil, labels)}
	index := make(map[string]int, len(r.Labels))
	for i, l := range r.Labels {
		index[l] = i
	}
	of := map[string]*pattern{}
	for _, ratings := range items {
		counts, n := make([]int, len(r.Labels)), 0
		for _, l := range ratings {
			if said(l) {
				counts[index[l]]++
				n++
			}
		}
		if n == 0 {
			continue
		}
		key := fmt.Sprint(counts)
		if of[key] == nil {
			of[key] = &pattern{counts: counts}
		}
		of[key].items++
	}
	for _, p := range of {
		r.patterns = append(r.patterns, *p)
	}
	slices.SortFunc(r.patterns, func(a, b pattern) int { return slices.Compare(a.counts, b.counts) })
	return r
}

// N is the number of items with at least two ratings.
func (r Ratings) N() int {
	n := 0
	for _, p := range r.patterns {
		if sum(p.counts) >= 2 {
			n += p.items
		}
	}
	return n
}

// Ratings is the number of single ratings, those of items with one rating included.
func (r Ratings) Ratings() int {
	n := 0
	for _, p := range r.patterns {
		n += p.items * sum(p.counts)
	}
	return n
}

// Counts is how often each label was given, in the order of Labels.
func (r Ratings) Counts() []int {
	counts := make([]int, len(r.Labels))
	for _, p := range r.patterns {
		for i, k := range p.counts {
			counts[i] += p.items * k
		}
	}
	return counts
}

func sum(counts []int) int {
	n := 0
	for _, k := range counts {
		n += k
	}
	return n
}

// A Coefficient is an agreement among raters, corrected for chance, with what is needed to read it.
type Coefficient struct {
	Name     string    `json:"name"`
	Value    *float64  `json:"value"` // nil when undefined, then Reason says why
	Reason   string    `json:"reason,omitzero"`
	Items    int       `json:"items"`    // with at least two ratings
	Ratings  int       `json:"ratings"`  // single ratings, also of items with one
	Observed *float64  `json:"observed"` // agreement seen, weighted where the coefficient is; nil when there is none to see
	Expected *float64  `json:"expected"` // agreement that chance explains, as the coefficient has it
	Interval *Interval `json:"interval,omitzero"`

	of      Ratings
	compute func([]pattern) (value, observed, expected float64, reason string)
}

// String is the coefficient in one line.
func (c Coefficient) String() string {
	var b strings.Builder
	if c.Value == nil {
		fmt.Fprintf(&b, "%s undefined (%s)", c.Name, c.Reason)
	} else {
		fmt.Fprintf(&b, "%s %.3f", c.Name, *c.Value)
		if c.Interval != nil {
			fmt.Fprintf(&b, " %v", *c.Interval)
		}
	}
	if c.Observed != nil && (c.Value == nil || *c.Observed != *c.Value) {
		fmt.Fprintf(&b, ", observed agreement %.3f", *c.Observed)
	}
	fmt.Fprintf(&b, ", n %d", c.Items)
	return b.String()
}

// WithInterval adds the percentile bootstrap interval over items, those with one rating included. The
// order of the items does not matter to it. An undefined coefficient gets an interval without bounds,
// for the same reason.
func (c Coefficient) WithInterval(rng *rand.Rand, replicates int, level float64) Coefficient {
	i := Interval{Level: level, Reason: c.Reason}
	if c.Value != nil {
		var items []int // index of the pattern of each item
		drawn := slices.Clone(c.of.patterns)
		for k, p := range c.of.patterns {
			items = append(items, slices.Repeat([]int{k}, p.items)...)
		}
		i = Bootstrap(rng, len(items), replicates, level, func(sample []int) (float64, bool) {
			for k := range drawn {
				drawn[k].items = 0
			}
			for _, s := range sample {
				drawn[items[s]].items++
			}
			v, _, _, reason := c.compute(drawn)
			return v, reason == ""
		})
	}
	c.Interval = &i
	return c
}

func coefficient(name string, r Ratings, compute func([]pattern) (value, observed, expected float64, reason string)) Coefficient {
	c := Coefficient{Name: name, Items: r.N(), Ratings: r.Ratings(), of: r, compute: compute}
	value, observed, expected, reason := compute(r.patterns)
	if c.Items > 0 {
		c.Observed = &observed
	}
	if c.Reason = reason; reason == "" {
		c.Value, c.Expected = &value, &expected
	}
	return c
}

// Percent is the share of pairs of ratings of one item that are the same, averaged over items with at
// least two ratings: the raw agreement, which nothing corrects for chance.
func Percent(r Ratings) Coefficient {
	same := Identity(len(r.Labels))
	return coefficient("percent agreement", r, func(ps []pattern) (float64, float64, float64, string) {
		observed, _, n := observe(ps, same)
		if n == 0 {
			return 0, 0, 0, NoPair
		}
		return observed, observed, 0, ""
	})
}

// Fleiss is the kappa of Fleiss (1971), with chance from the shares of labels, each item counting the
// same. Where items have different numbers of ratings it is the generalisation of Gwet (2014, Handbook
// of Inter-Rater Reliability, 4th ed., chapter 2), as irrCAC computes it. It is undefined when no item
// has two ratings and when only one label was given.
func Fleiss(r Ratings) Coefficient {
	same := Identity(len(r.Labels))
	return coefficient("Fleiss' kappa", r, func(ps []pattern) (float64, float64, float64, string) {
		observed, shares, n := observe(ps, same)
		if n == 0 {
			return 0, 0, 0, NoPair
		}
		if single(ps, 1) {
			return 0, observed, 0, SingleLabel
		}
		expected := 0.0
		for _, p := range shares {
			expected += p * p
		}
		return (observed - expected) / (1 - expected), observed, expected, ""
	})
}

// AC1 is the first-order coefficient of Gwet (2008, Computing inter-rater reliability and its variance
// in the presence of high agreement, British Journal of Mathematical and Statistical Psychology 61). It
// stays near the raw agreement where one label is rare, which kappa does not. Chance depends on how
// many labels there are to give, so name them all. It is undefined when no item has two ratings and
// when there is but one label to give; raters who all give one label out of several have an AC1 of 1.
func AC1(r Ratings) Coefficient { return gwet("Gwet's AC1", r, Identity(len(r.Labels))) }

// AC2 is AC1 with partial credit for labels that are close (Gwet 2014, chapter 3); see Identity, Linear,
// Quadratic and Ordinal for weights over the labels in their order. It panics when weights are of
// another number of labels.
func AC2(r Ratings, w Weights) Coefficient {
	if len(w) != len(r.Labels) {
		panic(fmt.Sprintf("stats: weights for %d labels, and there are %d", len(w), len(r.Labels)))
	}
	return gwet("Gwet's AC2", r, w)
}

func gwet(name string, r Ratings, w Weights) Coefficient {
	q := float64(len(r.Labels))
	total := 0.0
	for _, row := range w {
		for _, v := range row {
			total += v
		}
	}
	return coefficient(name, r, func(ps []pattern) (float64, float64, float64, string) {
		observed, shares, n := observe(ps, w)
		switch {
		case n == 0:
			return 0, 0, 0, NoPair
		case len(shares) < 2:
			return 0, observed, 0, SingleLabel
		}
		spread := 0.0
		for _, p := range shares {
			spread += p * (1 - p)
		}
		expected := total * spread / (q * (q - 1))
		return (observed - expected) / (1 - expected), observed, expected, ""
	})
}

// observe is the weighted agreement over items with at least two ratings, the share of each label with
// each rated item counting the same, and the number of items with two ratings or more.
func observe(ps []pattern, w Weights) (agreement float64, shares []float64, pairs int) {
	if len(ps) > 0 {
		shares = make([]float64, len(ps[0].counts))
	}
	all := 0
	for _, p := range ps {
		n := sum(p.counts)
		all += p.items
		for k, count := range p.counts {
			shares[k] += float64(p.items) * float64(count) / float64(n)
		}
		if n < 2 {
			continue
		}
		pairs += p.items
		same := 0.0
		for k, count := range p.counts {
			near := -1.0 // the rating itself is not another
			for l, other := range p.counts {
				near += w[k][l] * float64(other)
			}
			same += float64(count) * near
		}
		agreement += float64(p.items) * same / float64(n*(n-1))
	}
	for k := range shares {
		shares[k] /= float64(max(all, 1))
	}
	return agreement / float64(max(pairs, 1)), shares, pairs
}

// single reports whether one label alone was given to the items with at least so many ratings.
func single(ps []pattern, least int) bool {
	label := -1
	for _, p := range ps {
		if p.items == 0 || sum(p.counts) < least {
			continue
		}
		for k, count := range p.counts {
			if count > 0 && label >= 0 && label != k {
				return false
			}
			if count > 0 {
				label = k
			}
		}
	}
	return true
}

// A Metric is how far apart two labels are, for Alpha.
type Metric string

// The metrics of Alpha.
const (
	Nominal      Metric = "nominal" // 1 for any two labels
	OrdinalScale Metric = "ordinal" // by the number of ratings between them; Labels are the scale
)

// Alpha is Krippendorff's alpha (Krippendorff 2011, Computing Krippendorff's Alpha-Reliability): one
// less the disagreement seen over that expected if the ratings of items with two or more were dealt out
// by chance. Items with one rating do not count. The ordinal difference of two labels is the square of
// the ratings from one to the other, each end counted half. It is undefined when no item has two ratings,
// and when the items that have gave one label only. Observed and Expected are one less the
// disagreements, for the nominal metric; of the ordinal one, whose disagreements have no unit, they are
// nil.
func Alpha(r Ratings, m Metric) Coefficient {
	if m != Nominal && m != OrdinalScale {
		panic(fmt.Sprintf("stats: alpha knows no metric %q", m))
	}
	c := coefficient("Krippendorff's alpha, "+string(m), r, func(ps []pattern) (float64, float64, float64, string) {
		return alpha(ps, len(r.Labels), m)
	})
	if m == OrdinalScale {
		c.Observed, c.Expected = nil, nil
	}
	return c
}

func alpha(ps []pattern, labels int, m Metric) (value, observed, expected float64, reason string) {
	margins, n := make([]int, labels), 0
	for _, p := range ps {
		if sum(p.counts) < 2 {
			continue
		}
		for k, count := range p.counts {
			margins[k] += p.items * count
			n += p.items * count
		}
	}
	if n == 0 {
		return 0, 0, 0, NoPair
	}
	if single(ps, 2) {
		return 0, 1, 0, SingleLabel
	}
	apart := func(c, k int) float64 {
		if c == k {
			return 0
		}
		if m == Nominal {
			return 1
		}
		c, k = min(c, k), max(c, k)
		between := -float64(margins[c]+margins[k]) / 2
		for g := c; g <= k; g++ {
			between += float64(margins[g])
		}
		return between * between
	}
	seen, chance := 0.0, 0.0
	for c := range labels {
		for k := range labels {
			d := apart(c, k)
			if d == 0 {
				continue
			}
			chance += float64(margins[c]) * float64(margins[k]) * d / float64(n-1)
			for _, p := range ps {
				if raters := sum(p.counts); raters >= 2 {
					seen += float64(p.items) * float64(p.counts[c]*p.counts[k]) * d / float64(raters-1)
				}
			}
		}
	}
	return 1 - seen/chance, 1 - seen/float64(n), 1 - chance/float64(n), ""
}

// Weights say how much two labels agree: 1 for the same, less for others. Rows and columns are in the
// order of the labels.
type Weights [][]float64

func weights(q int, of func(k, l int) float64) Weights {
	w := make(Weights, q)
	for k := range w {
		w[k] = make([]float64, q)
		for l := range w[k] {
			w[k][l] = 1
			if k != l {
				w[k][l] = of(k, l)
			}
		}
	}
	return w
}

// Identity gives no credit for another label.
func Identity(q int) Weights { return weights(q, func(int, int) float64 { return 0 }) }

// Linear is 1 - |k-l| / (q-1) (Gwet 2014, chapter 3).
func Linear(q int) Weights {
	return weights(q, func(k, l int) float64 { return 1 - float64(max(k-l, l-k))/float64(q-1) })
}

// Quadratic is 1 - (k-l)² / (q-1)² (Gwet 2014, chapter 3).
func Quadratic(q int) Weights {
	return weights(q, func(k, l int) float64 { return 1 - float64((k-l)*(k-l))/float64((q-1)*(q-1)) })
}

// Ordinal is 1 - C(|k-l|+1, 2) / C(q, 2), which asks for an order alone and no distances (Gwet 2014,
// chapter 3).
func Ordinal(q int) Weights {
	return weights(q, func(k, l int) float64 {
		d := max(k-l, l-k)
		return 1 - float64(d*(d+1))/float64(q*(q-1))
	})
}
