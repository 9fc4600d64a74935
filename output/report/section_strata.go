package report

import (
	"slices"

	"assay/stats/plot"
)

var strata = Section{
	Name: "strata",
	Doc: "What came of asking about the pairs of each stratum. A refusal, a filtered or a failed answer is never a label, so where their rates differ between strata the labels " +
		"are a selection. Rates are of the pairs that were asked about, with 95 % Wilson intervals.",
	Of: func(d Data) (out []Table) {
		for _, by := range dimensions(d) {
			t := Table{Name: slug(by), Caption: "Outcomes by " + by, Head: []string{by, "asked", "labelled", "held", "refused", "refused rate", "refused 95 % interval", "filtered", "filtered rate", "filtered 95 % interval", "failed", "failed rate", "failed 95 % interval"}}
			for _, s := range d.Strata {
				if s.By == by {
					row := []string{s.Value, thousands(s.Asked), thousands(s.Labelled), thousands(s.Held)}
					for _, r := range []Share{s.Refused, s.Filtered, s.Failed} {
						row = append(row, r.cells()...)
					}
					t.Rows = append(t.Rows, row)
				}
			}
			out = append(out, t)
		}
		return out
	},
	Plots: func(d Data) (out []Plot) {
		for _, by := range dimensions(d) {
			p := Plot{Name: slug(by), Bars: plot.Bars{Title: "Without a label, by " + by, Axis: "% of pairs asked about"}}
			series, some := []plot.Series{{Name: "refused"}, {Name: "filtered"}, {Name: "failed"}}, false
			for _, s := range d.Strata {
				if s.By != by {
					continue
				}
				p.Categories = append(p.Categories, s.Value)
				for i, r := range []Share{s.Refused, s.Filtered, s.Failed} {
					series[i].Values = append(series[i].Values, 100*float64(r.N)/float64(max(r.Of, 1)))
					some = some || r.N > 0
				}
			}
			if p.Series = series; some {
				out = append(out, p)
			}
		}
		return out
	},
}

// dimensions are what pairs are told apart by, in the order of the data.
func dimensions(d Data) (out []string) {
	for _, s := range d.Strata {
		if !slices.Contains(out, s.By) {
			out = append(out, s.By)
		}
	}
	return out
}
