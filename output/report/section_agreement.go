package report

import (
	"fmt"
	"strconv"

	"assay/stats"
	"assay/stats/plot"
)

var agreement = Section{
	Name: "agreement",
	Doc: "Cohen's kappa of our labels with published ones of the same pairs, under the three readings of \"on the supporting and misleading labels\", with 95 % " +
		"bootstrap intervals over pairs. The majority baseline is what agrees by always giving the most frequent label; what constant answers score stands beside.",
	Of: func(d Data) (out []Table) {
		for _, a := range d.Agreement {
			out = append(out, agreements(a)...)
		}
		return out
	},
	Plots: func(d Data) []Plot { return kappas("kappa", "Kappa with published labels", d.Agreement) },
}

// agreements are the tables of two raters.
func agreements(a Agreement) []Table {
	name := slug(a.Between)
	t := Table{Name: name, Caption: "Agreement of " + a.Between, Head: []string{"reading", "pairs", "agreed", "kappa", "95 % interval"},
		Note: fmt.Sprintf("Majority baseline: %.1f %%.", 100*a.Majority)}
	for _, r := range a.Readings {
		t.Rows = append(t.Rows, []string{r.Reading, thousands(r.N), agreed(r), number(r.Value, r.Reason), between(r.Interval)})
	}
	out := []Table{t}
	if len(a.Readings) > 0 {
		out = append(out, confusion(a))
	}
	if len(a.Baselines) > 0 {
		c := Table{Name: name + "_constants", Caption: "What a constant answer scores against the first of " + a.Between, Head: []string{"answer", "reading", "pairs", "agreed", "kappa"}}
		for _, b := range a.Baselines {
			for _, s := range b.Readings {
				c.Rows = append(c.Rows, []string{"always " + b.Answer, s.Name, thousands(s.N), rate(s.Accuracy), number(s.Kappa, s.Reason)})
			}
		}
		out = append(out, c)
	}
	return out
}

// kappas draws the kappa of every two raters over all labels; one that is undefined, or not above 0, has no bar.
func kappas(name, title string, list []Agreement) []Plot {
	p, s, some := Plot{Name: name, Bars: plot.Bars{Title: title, Axis: "kappa"}}, plot.Series{Name: "all labels"}, false
	for _, a := range list {
		value := 0.0
		if len(a.Readings) > 0 && a.Readings[0].Value != nil {
			value = max(*a.Readings[0].Value, 0)
		}
		p.Categories, s.Values, some = append(p.Categories, a.Between), append(s.Values, value), some || value > 0
	}
	if !some {
		return nil // nothing to draw
	}
	p.Series = []plot.Series{s}
	return []Plot{p}
}

func rate(v *float64) string {
	if v == nil {
		return "–"
	}
	return fmt.Sprintf("%.1f %%", 100**v)
}

func confusion(a Agreement) Table {
	c := a.Readings[0].Confusion
	t := Table{Name: slug(a.Between) + "_confusion", Caption: "Confusion of " + a.Between + " (rows: the first)", Head: append([]string{""}, c.Labels...)}
	for _, x := range c.Labels {
		row := []string{x}
		for _, y := range c.Labels {
			row = append(row, thousands(c.Count(x, y)))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func number(v *float64, reason string) string {
	if v == nil {
		return reason
	}
	return strconv.FormatFloat(*v, 'f', 3, 64)
}

func between(i *stats.Interval) string {
	if i == nil {
		return "–"
	}
	return i.String()
}

func agreed(a stats.Agreement) string { return percent(a.Confusion.Agreed(), a.N) }
