package report

import (
	"fmt"
	"strconv"

	"assay/stats"
)

var agreement = Section{
	Name: "agreement",
	Doc: "Cohen's kappa between raters of the same pairs, under the three readings of \"on the supporting and misleading labels\", with 95 % " +
		"bootstrap intervals over pairs. The majority baseline is what agrees by always giving the most frequent label.",
	Of: func(d Data) (out []Table) {
		for _, a := range d.Agreement {
			t := Table{Name: slug(a.Between), Caption: "Agreement of " + a.Between, Head: []string{"reading", "pairs", "agreed", "kappa", "95 % interval"},
				Note: fmt.Sprintf("Majority baseline: %.1f %%.", 100*a.Majority)}
			for _, r := range a.Readings {
				t.Rows = append(t.Rows, []string{r.Reading, thousands(r.N), agreed(r), number(r.Value, r.Reason), between(r.Interval)})
			}
			out = append(out, t)
			if len(a.Readings) > 0 {
				out = append(out, confusion(a))
			}
		}
		return out
	},
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
