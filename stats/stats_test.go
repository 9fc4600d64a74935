package stats

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

var near = cmpopts.EquateApprox(0, 5e-7)

func ptr(v float64) *float64 { return &v }

func panics(f func()) (did bool) {
	defer func() { did = recover() != nil }()
	f()
	return false
}

func TestWilson(t *testing.T) {
	// Bounds to six digits from the closed form, worked out apart from this code.
	for _, c := range []struct {
		successes, n int
		level        float64
		want         Interval
	}{
		{0, 10, 0.95, Interval{Low: ptr(0), High: ptr(0.277533), Level: 0.95}},
		{10, 10, 0.95, Interval{Low: ptr(0.722467), High: ptr(1), Level: 0.95}},
		{5, 10, 0.95, Interval{Low: ptr(0.236593), High: ptr(0.763407), Level: 0.95}},
		{1, 1, 0.95, Interval{Low: ptr(0.206549), High: ptr(1), Level: 0.95}},
		{81, 263, 0.95, Interval{Low: ptr(0.255289), High: ptr(0.366210), Level: 0.95}},
		{5, 10, 0.99, Interval{Low: ptr(0.184226), High: ptr(0.815774), Level: 0.99}},
		{0, 0, 0.95, Interval{Level: 0.95, Reason: NoItems}},
	} {
		if diff := cmp.Diff(c.want, Wilson(c.successes, c.n, c.level), near); diff != "" {
			t.Errorf("Wilson(%d, %d, %v) (-want +got):\n%s", c.successes, c.n, c.level, diff)
		}
	}
	for _, bad := range []func(){
		func() { Wilson(2, 1, 0.95) }, func() { Wilson(-1, 1, 0.95) },
		func() { Wilson(1, 2, 0) }, func() { Wilson(1, 2, 1) }, func() { Wilson(1, 2, math.NaN()) },
	} {
		if !panics(bad) {
			t.Error("Wilson took what is no proportion or no level")
		}
	}
}

func TestBootstrap(t *testing.T) {
	data := make([]float64, 400)
	source := rand.New(rand.NewPCG(1, 1))
	for i := range data {
		data[i] = source.NormFloat64()
	}
	mean := func(sample []int) (float64, bool) {
		sum := 0.0
		for _, i := range sample {
			sum += data[i]
		}
		return sum / float64(len(sample)), true
	}
	run := func(seed uint64, level float64) Interval {
		return Bootstrap(rand.New(rand.NewPCG(seed, 0)), len(data), 4000, level, mean)
	}
	got := run(7, 0.95)
	if diff := cmp.Diff(got, run(7, 0.95)); diff != "" {
		t.Errorf("the same seed gives another interval:\n%s", diff)
	}
	// The normal approximation of a mean of 400 is good to a tenth of its width.
	all := make([]int, len(data))
	for i := range all {
		all[i] = i
	}
	centre, _ := mean(all)
	variance := 0.0
	for _, v := range data {
		variance += (v - centre) * (v - centre) / float64(len(data))
	}
	half := 1.959964 * math.Sqrt(variance/float64(len(data)))
	want := Interval{Low: ptr(centre - half), High: ptr(centre + half), Level: 0.95, Replicates: 4000}
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(0, half/5)); diff != "" {
		t.Errorf("Bootstrap of a mean (-normal +got):\n%s", diff)
	}
	if wide := run(7, 0.99); *wide.Low >= *got.Low || *wide.High <= *got.High {
		t.Errorf("interval at 0.99 %v is not wider than at 0.95 %v", wide, got)
	}
}

func TestBootstrapUndefined(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	odd := 0
	for name, c := range map[string]struct {
		n     int
		value func([]int) (float64, bool)
		want  Interval
	}{
		"never defined": {3, func([]int) (float64, bool) { return 1, false },
			Interval{Level: 0.9, Replicates: 10, Undefined: 10, Reason: NoReplicate}},
		"not a number": {3, func([]int) (float64, bool) { return math.NaN(), true },
			Interval{Level: 0.9, Replicates: 10, Undefined: 10, Reason: NoReplicate}},
		"infinite": {3, func([]int) (float64, bool) { return math.Inf(1), true },
			Interval{Level: 0.9, Replicates: 10, Undefined: 10, Reason: NoReplicate}},
		"every other": {3, func([]int) (float64, bool) { odd++; return 2, odd%2 == 0 },
			Interval{Low: ptr(2), High: ptr(2), Level: 0.9, Replicates: 10, Undefined: 5}},
		"no items": {0, nil,
			Interval{Level: 0.9, Replicates: 10, Undefined: 10, Reason: NoItems}},
	} {
		if diff := cmp.Diff(c.want, Bootstrap(rng, c.n, 10, 0.9, c.value)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if !panics(func() { Bootstrap(rng, 1, 0, 0.9, nil) }) || !panics(func() { Bootstrap(rng, 1, 1, 90, nil) }) {
		t.Error("Bootstrap took no replicates, or a level of 90")
	}
}

func TestQuantile(t *testing.T) {
	for _, c := range []struct {
		sorted  []float64
		p, want float64
	}{
		{[]float64{3}, 0.5, 3}, {[]float64{1, 2}, 0.5, 1.5}, {[]float64{1, 2, 3, 4, 5}, 0.1, 1.4},
		{[]float64{1, 2, 3}, 0, 1}, {[]float64{1, 2, 3}, 1, 3},
	} {
		if got := quantile(c.sorted, c.p); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("quantile(%v, %v) = %v, want %v", c.sorted, c.p, got, c.want)
		}
	}
}

func TestConfusion(t *testing.T) {
	a := []string{"x", "y", "x", "z", "x"}
	b := []string{"x", "x", "y", "z", "x"}
	for name, c := range map[string]struct {
		labels []string
		want   Confusion
	}{
		"given order":        {[]string{"z", "y", "x"}, Confusion{[]string{"z", "y", "x"}, [][]int{{1, 0, 0}, {0, 0, 1}, {0, 1, 2}}}},
		"none given":         {nil, Confusion{[]string{"x", "y", "z"}, [][]int{{2, 1, 0}, {1, 0, 0}, {0, 0, 1}}}},
		"others come after":  {[]string{"y"}, Confusion{[]string{"y", "x", "z"}, [][]int{{0, 1, 0}, {1, 2, 0}, {0, 0, 1}}}},
		"one that is unused": {[]string{"u", "x", "y", "z", "x"}, Confusion{[]string{"u", "x", "y", "z"}, [][]int{{0, 0, 0, 0}, {0, 2, 1, 0}, {0, 1, 0, 0}, {0, 0, 0, 1}}}},
	} {
		got := NewConfusion(a, b, c.labels...)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if got.N() != 5 || got.Agreed() != 3 || got.Count("y", "x") != 1 || got.Count("x", "y") != 1 || got.Count("x", "?") != 0 {
			t.Errorf("%s: N %d, Agreed %d, Count %d %d %d", name, got.N(), got.Agreed(), got.Count("y", "x"), got.Count("x", "y"), got.Count("x", "?"))
		}
	}
	want := "" +
		"            x  unrelated\n" +
		"          x  1          1\n" +
		"  unrelated  0          1\n"
	got := NewConfusion([]string{"x", "x", "unrelated"}, []string{"x", "unrelated", "unrelated"}, "x").String()
	if strings.Join(strings.Fields(got), " ") != strings.Join(strings.Fields(want), " ") {
		t.Errorf("String = \n%s, want\n%s", got, want)
	}
	if !panics(func() { NewConfusion(a, b[1:]) }) || !panics(func() { Filter(a, b[1:], nil) }) {
		t.Error("labels that are not paired were taken")
	}
	if got, err := json.Marshal(NewConfusion(nil, nil)); string(got) != `{"labels":[],"counts":[]}` || err != nil {
		t.Errorf("empty table as JSON = %s, %v", got, err)
	}
}

// repeat makes labels from counts.
func repeat(pairs ...any) (labels []string) {
	for i := 0; i < len(pairs); i += 2 {
		labels = append(labels, slices.Repeat([]string{pairs[i].(string)}, pairs[i+1].(int))...)
	}
	return labels
}

func TestKappa(t *testing.T) {
	for name, c := range map[string]struct {
		a, b       []string
		kappa, raw float64
	}{
		"agree":    {[]string{"x", "y", "z"}, []string{"x", "y", "z"}, 1, 1},
		"opposite": {[]string{"x", "y"}, []string{"y", "x"}, -1, 0},
		// 20 both yes, 5 and 10 apart, 15 both no: observed 0.7, expected 0.5.
		"two by two": {repeat("yes", 25, "no", 25), repeat("yes", 20, "no", 5, "yes", 10, "no", 15), 0.4, 0.7},
		// Rows 40 30 30, columns 45 25 30: observed 0.79, expected 0.345.
		"three by three": {repeat("a", 40, "b", 30, "c", 30),
			repeat("a", 35, "b", 2, "c", 3, "a", 7, "b", 20, "c", 3, "a", 3, "b", 3, "c", 24), (0.79 - 0.345) / (1 - 0.345), 0.79},
	} {
		got := Kappa(c.a, c.b)
		want := Agreement{Value: &c.kappa, Raw: &c.raw, N: len(c.a), Confusion: NewConfusion(c.a, c.b)}
		if diff := cmp.Diff(want, got, near); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		swapped, renamed := Kappa(c.b, c.a), Kappa(c.a, c.b, "no", "c", "unused")
		if *swapped.Value != *got.Value || *renamed.Value != *got.Value {
			t.Errorf("%s: kappa %v depends on the order of raters (%v) or labels (%v)", name, *got.Value, *swapped.Value, *renamed.Value)
		}
	}
}

func TestHD25UndefinedKappa(t *testing.T) {
	supporting := repeat("supporting", 30)
	common, other := Common(map[string]string{"d1": "supporting"}, map[string]string{"d2": "supporting"})
	for name, c := range map[string]struct {
		a, b   []string
		kappa  *float64
		reason string
		raw    *float64
		n      int
	}{
		"both one label":               {supporting, supporting, nil, SingleLabel, ptr(1), 30},
		"one rater half another":       {supporting, repeat("supporting", 15, "misleading", 15), ptr(0), "", ptr(0.5), 30},
		"no common items":              {common, other, nil, NoItems, nil, 0},
		"each one label, not the same": {supporting, repeat("misleading", 30), ptr(0), "", ptr(0), 30},
		"one item":                     {[]string{"x"}, []string{"x"}, nil, SingleLabel, ptr(1), 1},
		"one item, apart":              {[]string{"x"}, []string{"y"}, ptr(0), "", ptr(0), 1},
		"one item away from one label": {repeat("x", 29, "y", 1), repeat("x", 30), ptr(0), "", ptr(29.0 / 30), 30},
		"empty label throughout":       {repeat("", 4), repeat("", 4), nil, SingleLabel, ptr(1), 4},
	} {
		t.Run(name, func(t *testing.T) {
			got := Kappa(c.a, c.b, "supporting", "misleading", "unrelated")
			want := Agreement{Value: c.kappa, Reason: c.reason, Raw: c.raw, N: c.n, Confusion: got.Confusion}
			if diff := cmp.Diff(want, got, near); diff != "" {
				t.Errorf("Kappa (-want +got):\n%s", diff)
			}
			b, err := json.Marshal(got.WithInterval(rand.New(rand.NewPCG(1, 2)), 200, 0.95))
			if err != nil {
				t.Fatalf("as JSON: %v", err)
			}
			var back struct {
				Kappa    *float64
				Reason   string
				Interval struct{ Low, High *float64 }
			}
			if err := json.Unmarshal(b, &back); err != nil || strings.Contains(string(b), "NaN") {
				t.Errorf("JSON %s: %v", b, err)
			}
			if (back.Kappa == nil) != (c.kappa == nil) || back.Reason != c.reason || (back.Interval.Low == nil) != (c.kappa == nil) {
				t.Errorf("JSON %s does not say what is undefined", b)
			}
		})
	}
}

func TestHD25MeansSayWhatTheyLeftOut(t *testing.T) {
	undefined := Kappa(repeat("x", 30), repeat("x", 30)).Value
	for name, c := range map[string]struct {
		values []*float64
		want   MeanValue
	}{
		"some undefined": {[]*float64{ptr(0.5), undefined, ptr(1), nil}, MeanValue{Value: ptr(0.75), N: 2, Undefined: 2}},
		"all undefined":  {[]*float64{undefined, nil}, MeanValue{Undefined: 2, Reason: "no defined values"}},
		"nothing":        {nil, MeanValue{Reason: "no defined values"}},
		"all defined":    {[]*float64{ptr(-1), ptr(1)}, MeanValue{Value: ptr(0), N: 2}},
		"not a number":   {[]*float64{ptr(math.NaN()), ptr(math.Inf(-1)), ptr(3)}, MeanValue{Value: ptr(3), N: 1, Undefined: 2}},
	} {
		got := Mean(c.values)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if b, err := json.Marshal(got); err != nil || !strings.Contains(string(b), `"undefined":`) {
			t.Errorf("%s as JSON: %s, %v", name, b, err)
		}
	}
}

func TestKappaInterval(t *testing.T) {
	a := repeat("yes", 250, "no", 250)
	b := repeat("yes", 200, "no", 50, "yes", 100, "no", 150)
	interval := func(a, b []string) Interval {
		return *Kappa(a, b, "yes", "no").WithInterval(rand.New(rand.NewPCG(5, 6)), 4000, 0.95).Interval
	}
	got := interval(a, b)
	// Large-sample standard error of Fleiss, Cohen and Everitt (1969) for this table: 0.040160.
	want := Interval{Low: ptr(0.4 - 1.96*0.040160), High: ptr(0.4 + 1.96*0.040160), Level: 0.95, Replicates: 4000}
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(0, 0.01)); diff != "" {
		t.Errorf("interval (-large sample +got):\n%s", diff)
	}
	slices.Reverse(a)
	slices.Reverse(b)
	if diff := cmp.Diff(got, interval(a, b)); diff != "" {
		t.Errorf("interval depends on the order of items:\n%s", diff)
	}
	// Three items of which two agree: some samples hold one label only.
	few := interval([]string{"x", "x", "y"}, []string{"x", "x", "x"})
	if few.Undefined == 0 || few.Undefined == few.Replicates || few.Low == nil {
		t.Errorf("interval of three items = %+v, want some samples left out and counted", few)
	}
}

func TestReadings(t *testing.T) {
	reference := []string{"supporting", "supporting", "misleading", "misleading", "unrelated", "unrelated"}
	other := []string{"supporting", "unrelated", "misleading", "supporting", "supporting", "unrelated"}
	want := []struct {
		name string
		n    int
		raw  float64
	}{
		{"all labels", 6, 0.5},
		{"reference is supporting/misleading", 4, 0.5},
		{"both are supporting/misleading", 3, 2.0 / 3},
	}
	for i, r := range Readings("supporting", "misleading") {
		got := KappaReading(r, reference, other, "supporting", "misleading", "unrelated")
		if got.Reading != want[i].name || got.N != want[i].n || math.Abs(*got.Raw-want[i].raw) > 1e-12 {
			t.Errorf("reading %d = %q, n %d, raw %v, want %+v", i, got.Reading, got.N, *got.Raw, want[i])
		}
	}
	none := KappaReading(Readings("other")[2], reference, other)
	if none.Value != nil || none.Reason != NoItems {
		t.Errorf("reading of no pair = %+v", none)
	}
}

func TestCommon(t *testing.T) {
	a, b := Common(map[string]string{"2": "x", "1": "y", "3": "z"}, map[string]string{"3": "q", "2": "p", "4": "r"})
	if diff := cmp.Diff([][]string{{"x", "z"}, {"p", "q"}}, [][]string{a, b}); diff != "" {
		t.Errorf("Common (-want +got):\n%s", diff)
	}
}

func TestLines(t *testing.T) {
	g := Kappa(repeat("yes", 25, "no", 25), repeat("yes", 20, "no", 5, "yes", 10, "no", 15))
	withInterval := g
	withInterval.Interval = &Interval{Low: ptr(0.1), High: ptr(0.625), Level: 0.95}
	withInterval.Reading = "all labels"
	undefined := Kappa(repeat("x", 3), repeat("x", 3)).WithInterval(nil, 1, 0.95)
	for _, c := range []struct{ got, want string }{
		{g.String(), "kappa 0.400, raw agreement 0.700, n 50"},
		{withInterval.String(), "all labels: kappa 0.400 [0.10, 0.62], raw agreement 0.700, n 50"},
		{undefined.String(), "kappa undefined (single label), raw agreement 1.000, n 3"},
		{Kappa(nil, nil).String(), "kappa undefined (no common items), n 0"},
		{undefined.Interval.String(), "no interval: single label"},
	} {
		if c.got != c.want {
			t.Errorf("line = %q, want %q", c.got, c.want)
		}
	}
}
