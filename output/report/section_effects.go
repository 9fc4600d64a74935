package report

import "assay/stats/plot"

var effects = Section{
	Name: "effects",
	Doc: "What a document does to the annotator's own answer: confirm (right before and after), correct (wrong before, right after), flip " +
		"(right before, wrong after), inherit (wrong before and after), abstain (it decides nothing). Only a flip is misled by the document. What a constant answer " +
		"would do to the same pairs stands beside: it reads nothing.",
	Of: func(d Data) []Table {
		if d.Effects == nil || known(d) == 0 {
			return nil
		}
		t := byVerdict(*d.Effects, "effects", "Pairs by effect and by label")
		t.Head[0] = "effect"
		out := []Table{t}
		if d.EffectsBy != nil {
			t := byVerdict(*d.EffectsBy, "verdicts", "Pairs by effect and by the claim's verdict")
			t.Head[0] = "effect"
			out = append(out, t)
		}
		if len(d.Constants) > 0 {
			c := Table{Name: "constants", Caption: "What constant answers do to these pairs", Head: append([]string{"answer"}, d.Effects.Rows...)}
			for _, k := range d.Constants {
				row := []string{"always " + k.Answer}
				for _, e := range d.Effects.Rows {
					row = append(row, thousands(k.Effects[e]))
				}
				c.Rows = append(c.Rows, row)
			}
			out = append(out, c)
		}
		return out
	},
	Plots: func(d Data) []Plot {
		if d.Effects == nil || known(d) == 0 {
			return nil
		}
		p := Plot{Name: "effects", Bars: plot.Bars{Title: "Effects by label", Axis: "pairs", Categories: d.Effects.Rows}}
		for _, l := range d.Effects.Columns {
			s := plot.Series{Name: l}
			for _, e := range d.Effects.Rows {
				s.Values = append(s.Values, float64(d.Effects.Count(e, l)))
			}
			p.Series = append(p.Series, s)
		}
		return []Plot{p}
	},
}

// known counts the pairs whose effect is known.
func known(d Data) int {
	n := d.Effects.Total()
	for _, l := range d.Effects.Columns {
		n -= d.Effects.Count("unknown", l)
	}
	return n
}
