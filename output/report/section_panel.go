package report

import (
	"fmt"
	"slices"

	"assay/stats/plot"
)

var panel = Section{
	Name: "panel",
	Doc: "Other annotators on the same pairs: what each said by the verdict of the claim, how every two agree (95 % bootstrap intervals over pairs), how all " +
		"agree, and what they come to. The label of a pair stays that of its annotator; where the panel comes to no label, or to another one, a person should look " +
		"(assay ls disputes).",
	Of: func(d Data) (out []Table) {
		p := d.Panel
		if p == nil {
			return nil
		}
		out = append(out, outcomesOf(*p), overview(*p))
		all := Table{Name: "all", Caption: "Agreement of all annotators on the labels", Head: []string{"coefficient", "pairs", "value", "95 % interval"}}
		for _, c := range p.Coefficients {
			all.Rows = append(all.Rows, []string{c.Name, thousands(c.Items), number(c.Value, c.Reason), between(c.Interval)})
		}
		consensus := Table{Name: "consensus", Caption: "Pairs by label (rows) and by the panel's consensus (columns)", Head: append([]string{"label"}, p.Consensus.Columns...),
			Note: fmt.Sprintf("Unanimous: %d of %d pairs (%s). Disputed: %d (%s).", p.Unanimous.N, p.Unanimous.Of, percent(p.Unanimous.N, p.Unanimous.Of), p.Disputed.N, percent(p.Disputed.N, p.Disputed.Of))}
		for _, r := range p.Consensus.Rows {
			row := []string{r}
			for _, c := range p.Consensus.Columns {
				row = append(row, thousands(p.Consensus.Count(r, c)))
			}
			consensus.Rows = append(consensus.Rows, row)
		}
		out = append(out, all, consensus)
		for _, a := range p.Annotators {
			out = append(out, byVerdict(a.Labels, "labels_"+slug(a.Name), "Pairs by label and by the claim's verdict, as "+a.Name+" has them"))
		}
		for _, a := range p.Pairwise {
			out = append(out, agreements(a)...)
		}
		return out
	},
	Plots: func(d Data) []Plot {
		if d.Panel == nil {
			return nil
		}
		labels := Plot{Name: "labels", Bars: plot.Bars{Title: "Labels by annotator", Axis: "pairs"}}
		for _, a := range d.Panel.Annotators {
			labels.Categories = append(labels.Categories, a.Name)
			for i, l := range a.Labels.Rows {
				if len(labels.Series) <= i {
					labels.Series = append(labels.Series, plot.Series{Name: l})
				}
				n := 0
				for _, v := range a.Labels.Columns {
					n += a.Labels.Count(l, v)
				}
				labels.Series[i].Values = append(labels.Series[i].Values, float64(n))
			}
		}
		return append([]Plot{labels}, kappas("kappa", "Kappa of every two annotators", d.Panel.Pairwise)...)
	},
}

// outcomesOf is what came of asking each annotator.
func outcomesOf(p Panel) Table {
	t := Table{Name: "annotators", Caption: fmt.Sprintf("What came of asking about %s pairs", thousands(p.Pairs)), Head: []string{"annotator", "model"}}
	var outcomes []string
	for _, a := range p.Annotators {
		for o := range a.Outcomes {
			if !slices.Contains(outcomes, o) {
				outcomes = append(outcomes, o)
			}
		}
	}
	slices.Sort(outcomes)
	t.Head = append(t.Head, outcomes...)
	for _, a := range p.Annotators {
		row := []string{a.Name, a.Model}
		for _, o := range outcomes {
			row = append(row, thousands(a.Outcomes[o]))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// overview has a line for every two annotators.
func overview(p Panel) Table {
	t := Table{Name: "pairwise", Caption: "Agreement of every two annotators, over the pairs that both labelled", Head: []string{"annotators", "pairs", "agreed"}}
	for i, a := range p.Pairwise {
		row := []string{a.Between}
		for j, r := range a.Readings {
			if j == 0 {
				row = append(row, thousands(r.N), agreed(r))
			}
			if i == 0 {
				t.Head = append(t.Head, "kappa, "+r.Reading)
			}
			value := number(r.Value, r.Reason)
			if r.Value != nil && r.Interval != nil {
				value += " " + r.Interval.String()
			}
			row = append(row, value)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}
