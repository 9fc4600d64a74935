package stats

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// ratings makes items from words: one letter for each rater, a dot where one did not rate.
func ratings(items string, labels ...string) Ratings {
	var out [][]string
	for _, item := range strings.Fields(items) {
		var one []string
		for _, l := range strings.Split(item, "") {
			one = append(one, strings.Trim(l, "."))
		}
		out = append(out, one)
	}
	return NewRatings(out, labels...)
}

func TestCoefficients(t *testing.T) {
	// Worked out by hand, as fractions.
	three := ratings("aaa aab abb bbb aaa", "a", "b") // pairs that agree: 1, 1/3, 1/3, 1, 1
	gaps := ratings("aa. ab. .bb a.. ...", "a", "b")  // the last but one counts for shares alone
	scale := ratings("aa ab bc cc ac", "a", "b", "c") // margins a 4, b 2, c 4
	for _, c := range []struct {
		name string
		got  Coefficient
		want float64
		n    int
	}{
		{"percent", Percent(three), 11.0 / 15, 5},
		// Shares 9/15 and 6/15: chance 117/225.
		{"fleiss", Fleiss(three), (11.0/15 - 117.0/225) / (1 - 117.0/225), 5},
		// Chance 2 * 9/15 * 6/15.
		{"ac1", AC1(three), (11.0/15 - 108.0/225) / (1 - 108.0/225), 5},
		// Disagreement seen: 2 items with 2 ordered pairs of two labels twice over, each by 2: 4; by chance 2*9*6/14.
		{"alpha", Alpha(three, Nominal), 1 - 4/(2*9.0*6/14), 5},
		// A third label that nobody gave makes chance smaller: 108/225 of one in two becomes half of that.
		{"ac1 of three labels", AC1(ratings("aaa aab abb bbb aaa", "a", "b", "c")), (11.0/15 - 54.0/225) / (1 - 54.0/225), 5},
		{"percent with gaps", Percent(gaps), 2.0 / 3, 3},
		// Shares over four rated items: a (1 + 1/2 + 0 + 1)/4.
		{"fleiss with gaps", Fleiss(gaps), (2.0/3 - (25.0+9)/64) / (1 - (25.0+9)/64), 3},
		{"alpha with gaps", Alpha(gaps, Nominal), 1 - 2/(2*3.0*3/5), 3},
		// Differences: a-b (4/2+2/2)² = 9, b-c 9, a-c (2+2+2)² = 36. Seen 2*(9+9+36); by chance 2*(4*2*9+2*4*9+4*4*36)/9.
		{"ordinal alpha", Alpha(scale, OrdinalScale), 1 - 108/(2*(72.0+72+576)/9), 5},
		// Credits: linear 1/2 for neighbours, so seen (1+.5+.5+1+0)/5; chance (3+4*.5) * (.4*.6*2+.2*.8) / 6.
		{"ac2", AC2(scale, Linear(3)), (0.6 - 5*0.64/6) / (1 - 5*0.64/6), 5},
	} {
		if c.got.Value == nil || c.got.Items != c.n {
			t.Errorf("%s = %v, want %v of %d items", c.name, c.got, c.want, c.n)
			continue
		}
		if diff := cmp.Diff(c.want, *c.got.Value, near); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
	if diff := cmp.Diff(Weights{{1, 2.0 / 3, 0}, {2.0 / 3, 1, 2.0 / 3}, {0, 2.0 / 3, 1}}, Ordinal(3), near); diff != "" {
		t.Errorf("Ordinal(3) (-want +got):\n%s", diff)
	}
	if !panics(func() { AC2(scale, Linear(2)) }) || !panics(func() { Alpha(scale, "ratio") }) {
		t.Error("weights of another size, or an unknown metric, were taken")
	}
}

func TestHD25UndefinedCoefficients(t *testing.T) {
	one := 1.0
	for name, c := range map[string]struct {
		of     Ratings
		reason string   // of Fleiss and alpha
		ac1    *float64 // nil means undefined for the same reason
		raw    *float64
		items  int
	}{
		"one label of two":       {ratings(strings.Repeat("ss ", 30), "s", "m"), SingleLabel, &one, &one, 30},
		"one label to give":      {ratings(strings.Repeat("ss ", 30), "s"), SingleLabel, nil, &one, 30},
		"no item twice":          {ratings("s. .m s.", "s", "m"), NoPair, nil, nil, 0},
		"nothing":                {ratings("", "s", "m"), NoPair, nil, nil, 0},
		"one label among paired": {ratings("ss ss m.", "s", "m"), SingleLabel, nil, &one, 2},
	} {
		for _, g := range []Coefficient{Fleiss(c.of), Alpha(c.of, Nominal), Alpha(c.of, OrdinalScale), AC1(c.of), Percent(c.of)} {
			g = g.WithInterval(rand.New(rand.NewPCG(1, 2)), 50, 0.95)
			data, err := json.Marshal(g)
			if err != nil || strings.Contains(string(data), "NaN") {
				t.Errorf("%s: %s as JSON: %s, %v", name, g.Name, data, err)
			}
			if (g.Value == nil) != (g.Reason != "") || (g.Interval.Low == nil) != (g.Interval.Reason != "") || g.Items != c.items {
				t.Errorf("%s: %s does not say what is undefined", name, data)
			}
		}
		// One label among the paired, another beside them: Fleiss and AC1 take their shares from all.
		if name != "one label among paired" {
			if f := Fleiss(c.of); f.Reason != c.reason {
				t.Errorf("%s: Fleiss undefined for %q, want %q", name, f.Reason, c.reason)
			}
			if diff := cmp.Diff(c.ac1, AC1(c.of).Value, near); diff != "" {
				t.Errorf("%s: AC1 (-want +got):\n%s", name, diff)
			}
		}
		if a := Alpha(c.of, Nominal); a.Reason != c.reason || a.Value != nil {
			t.Errorf("%s: alpha %v, want it undefined for %q", name, a, c.reason)
		}
		if diff := cmp.Diff(c.raw, Percent(c.of).Value, near); diff != "" {
			t.Errorf("%s: raw agreement (-want +got):\n%s", name, diff)
		}
	}
}

func TestCoefficientInterval(t *testing.T) {
	var items []string
	for i := range 300 {
		items = append(items, []string{"aaa", "aab", "abb", "bbb", "b.b", "a.."}[i%6])
	}
	interval := func() Interval {
		r := ratings(strings.Join(items, " "), "a", "b")
		return *Fleiss(r).WithInterval(rand.New(rand.NewPCG(3, 4)), 1000, 0.95).Interval
	}
	got := interval()
	value := *Fleiss(ratings(strings.Join(items, " "), "a", "b")).Value
	if *got.Low >= value || *got.High <= value || *got.High-*got.Low > 0.25 {
		t.Errorf("interval of %.3f is %v", value, got)
	}
	slices.Reverse(items)
	if diff := cmp.Diff(got, interval()); diff != "" {
		t.Errorf("interval depends on the order of items:\n%s", diff)
	}
	// Three items of which two agree on one label: some samples hold that label alone.
	few := *Alpha(ratings("aa aa ab"), Nominal).WithInterval(rand.New(rand.NewPCG(3, 4)), 200, 0.95).Interval
	if few.Undefined == 0 || few.Undefined == 200 {
		t.Errorf("interval of three items = %+v, want some samples left out and counted", few)
	}
}

func TestTable(t *testing.T) {
	tb := NewTable([]string{"supporting", "misleading"}, []string{"true", "false"})
	tb.Add("supporting", "true", 475)
	tb.Add("supporting", "false", 2210)
	tb.Add("misleading", "true", 1365)
	tb.Add("misleading", "false", 447)
	if tb.Total() != 4497 || tb.Count("misleading", "true") != 1365 || tb.Count("unrelated", "true") != 0 {
		t.Errorf("table = %+v", tb)
	}
	want := "true false all supporting 475 2210 2685 misleading 1365 447 1812 all 1840 2657 4497"
	if got := strings.Join(strings.Fields(tb.String()), " "); got != want {
		t.Errorf("String = %q, want %q", got, want)
	}
	if !panics(func() { tb.Add("unrelated", "true", 1) }) {
		t.Error("an item without a place was taken")
	}
}

func TestScores(t *testing.T) {
	s := Scores("x", repeat("a", 6, "b", 4), repeat("a", 5, "b", 1, "a", 2, "b", 2), "a", "b", "c")
	// a: 2*5/(6+7); b: 2*2/(4+3); c is nowhere.
	want := []*float64{ptr(10.0 / 13), ptr(4.0 / 7), nil}
	if diff := cmp.Diff(want, s.F1, near); diff != "" {
		t.Errorf("F1 (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(MeanValue{Value: ptr((10.0/13 + 4.0/7) / 2), N: 2, Undefined: 1}, s.MacroF1, near); diff != "" {
		t.Errorf("macro F1 (-want +got):\n%s", diff)
	}
	if got, want := s.String(), "x: accuracy 0.700, macro-F1 0.670, kappa 0.348, n 10"; got != want {
		t.Errorf("line %q, want %q", got, want)
	}
	if got, want := Scores("x", nil, nil).String(), "x: no common items"; got != want {
		t.Errorf("line %q, want %q", got, want)
	}
	if got, want := Scores("x", []string{"a"}, []string{"a"}).String(), "x: accuracy 1.000, macro-F1 1.000, kappa undefined (single label), n 1"; got != want {
		t.Errorf("line %q, want %q", got, want)
	}
}
