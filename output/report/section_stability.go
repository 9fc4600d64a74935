package report

import (
	"fmt"

	"assay/stats/plot"
)

var stability = Section{
	Name: "stability",
	Doc: "The annotator asked several times about the same pair. The margin is the share of samples with the first answer less that of the second; under 0.6 a label is " +
		"flagged unstable. A constant answer has a margin of 1 on every pair: stable is not right.",
	Of: func(d Data) []Table {
		s := d.Stability
		if s == nil {
			return nil
		}
		labels := Table{Name: "labels", Caption: fmt.Sprintf("Pairs by label and by how %d samples came out", s.Samples), Head: append(append([]string{"label"}, s.ByLabel.Columns...), "unstable of", "rate", "95 % interval")}
		for _, l := range s.ByLabel.Rows {
			stable, unstable := s.ByLabel.Count(l, "stable"), s.ByLabel.Count(l, "unstable")
			labels.Rows = append(labels.Rows, append([]string{l, thousands(stable), thousands(unstable)}, Share{unstable, stable + unstable}.cells()...))
		}
		labels.Rows = append(labels.Rows, append([]string{"all", thousands(s.Unstable.Of - s.Unstable.N), thousands(s.Unstable.N)}, s.Unstable.cells()...))
		if s.Margin.Value != nil {
			labels.Note = fmt.Sprintf("Mean margin: %.3f.", *s.Margin.Value)
		}
		margins := byVerdict(s.ByMargin, "margins", "Pairs by margin and by the claim's verdict")
		margins.Head[0] = "margin"
		return []Table{labels, margins}
	},
	Plots: func(d Data) []Plot {
		if d.Stability == nil {
			return nil
		}
		m := d.Stability.ByMargin
		p := Plot{Name: "margins", Bars: plot.Bars{Title: "Pairs by margin", Axis: "pairs", Categories: m.Rows}}
		for _, v := range m.Columns {
			s := plot.Series{Name: "claim is " + v}
			for _, r := range m.Rows {
				s.Values = append(s.Values, float64(m.Count(r, v)))
			}
			p.Series = append(p.Series, s)
		}
		return []Plot{p}
	},
}
