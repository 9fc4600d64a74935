// Package stats computes what annotation, review, benchmark and report all need: agreement between two
// raters and among several, confusion and class-conditional tables, scores, and intervals.
//
// It is pure: no files, no clock, and randomness only from the *rand.Rand that the caller passes, so the
// same input gives the same numbers. A number that the data does not define is a nil pointer with a
// reason beside it, never NaN, so every result is valid JSON. The package does not draw and does not
// know what labels mean.
package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// Reasons why a value is undefined.
const (
	SingleLabel = "single label"    // both raters used one and the same label throughout, so chance explains everything
	NoItems     = "no common items" // there is nothing to compare
	NoReplicate = "no replicate"    // the bootstrap drew no sample that defines the value
	NoPair      = "no item with two ratings"
)

// An Interval is a confidence interval. Low and High are nil together, and then Reason says why.
type Interval struct {
	Low        *float64 `json:"low"`
	High       *float64 `json:"high"`
	Level      float64  `json:"level"`               // coverage that it aims at, such as 0.95
	Replicates int      `json:"replicates,omitzero"` // of a bootstrap: how many samples were drawn
	Undefined  int      `json:"undefined,omitzero"`  // of these, how many did not define the value and were left out
	Reason     string   `json:"reason,omitzero"`
}

// String gives the interval with two digits, or why there is none.
func (i Interval) String() string {
	if i.Low == nil || i.High == nil {
		return "no interval: " + i.Reason
	}
	return fmt.Sprintf("[%.2f, %.2f]", *i.Low, *i.High)
}

// Wilson is the score interval of Wilson (1927) for a proportion of successes among n trials. It keeps
// within 0 and 1 and is usable for small n. It panics unless 0 <= successes <= n and 0 < level < 1.
func Wilson(successes, n int, level float64) Interval {
	checkLevel(level)
	if successes < 0 || successes > n {
		panic(fmt.Sprintf("stats: %d successes in %d trials", successes, n))
	}
	if n == 0 {
		return Interval{Level: level, Reason: NoItems}
	}
	z := math.Sqrt2 * math.Erfinv(level)
	trials := float64(n)
	p := float64(successes) / trials
	scale := 1 / (1 + z*z/trials)
	mid := scale * (p + z*z/(2*trials))
	half := scale * z * math.Sqrt(p*(1-p)/trials+z*z/(4*trials*trials))
	low, high := max(0, mid-half), min(1, mid+half)
	// At the ends the bounds are exact, but floating point misses them.
	if successes == 0 {
		low = 0
	}
	if successes == n {
		high = 1
	}
	return Interval{Low: &low, High: &high, Level: level}
}

// Bootstrap is the percentile interval of Efron (1979): value is computed on samples of n indices
// drawn with replacement from 0..n-1, and the interval spans the middle level of the results. value
// returns false where a sample does not define it; such samples are left out and counted. The slice it
// gets is used again. It panics unless replicates > 0 and 0 < level < 1.
func Bootstrap(rng *rand.Rand, n, replicates int, level float64, value func(sample []int) (float64, bool)) Interval {
	checkLevel(level)
	if replicates <= 0 {
		panic(fmt.Sprintf("stats: %d replicates", replicates))
	}
	i := Interval{Level: level, Replicates: replicates}
	if n == 0 {
		i.Undefined, i.Reason = replicates, NoItems
		return i
	}
	sample := make([]int, n)
	values := make([]float64, 0, replicates)
	for range replicates {
		for j := range sample {
			sample[j] = rng.IntN(n)
		}
		if v, ok := value(sample); ok && !math.IsNaN(v) && !math.IsInf(v, 0) {
			values = append(values, v)
		}
	}
	i.Undefined = replicates - len(values)
	if len(values) == 0 {
		i.Reason = NoReplicate
		return i
	}
	slices.Sort(values)
	low, high := quantile(values, (1-level)/2), quantile(values, (1+level)/2)
	i.Low, i.High = &low, &high
	return i
}

// quantile interpolates linearly between the order statistics of sorted values (type 7 of Hyndman and
// Fan, 1996).
func quantile(sorted []float64, p float64) float64 {
	at := p * float64(len(sorted)-1)
	i := int(at)
	if i+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[i] + (at-float64(i))*(sorted[i+1]-sorted[i])
}

func checkLevel(level float64) {
	if !(level > 0 && level < 1) {
		panic(fmt.Sprintf("stats: a level of %v is not between 0 and 1", level))
	}
}

// A MeanValue is the mean of the values that are defined. Value is nil, with a Reason, when none is.
type MeanValue struct {
	Value     *float64 `json:"value"`
	N         int      `json:"n"`         // values that went in
	Undefined int      `json:"undefined"` // values that were left out because they are undefined
	Reason    string   `json:"reason,omitzero"`
}

// Mean averages values, leaving out and counting those that are nil.
func Mean(values []*float64) MeanValue {
	var m MeanValue
	sum := 0.0
	for _, v := range values {
		if v == nil || math.IsNaN(*v) || math.IsInf(*v, 0) {
			m.Undefined++
			continue
		}
		m.N++
		sum += *v
	}
	if m.N == 0 {
		m.Reason = "no defined values"
		return m
	}
	mean := sum / float64(m.N)
	m.Value = &mean
	return m
}
