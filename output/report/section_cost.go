package report

import (
	"fmt"

	"assay/stats/plot"
)

var cost = Section{
	Name: "cost",
	Doc:  "What model calls cost over the life of the workspace: the sum of their records, failed attempts too. Cached tokens are part of the prompt, reasoning tokens part of the completion.",
	Of: func(d Data) []Table {
		if len(d.Costs) == 0 {
			return nil
		}
		t := Table{Name: "calls", Caption: "Model calls", Head: []string{"role", "model", "calls", "in batches", "prompt tokens", "cached", "completion tokens", "reasoning", "USD"}}
		var sum Cost
		row := func(c Cost, role, model string) {
			usd := fmt.Sprintf("%.4f", c.USD)
			if c.Unpriced > 0 {
				usd += fmt.Sprintf(" (without %s calls of no known price)", thousands(c.Unpriced))
			}
			t.Rows = append(t.Rows, []string{role, model, thousands(c.Calls), thousands(c.Batch), thousands(c.Prompt), thousands(c.Cached), thousands(c.Completion), thousands(c.Reasoning), usd})
		}
		for _, c := range d.Costs {
			row(c, c.Role, c.Model+" at "+c.Endpoint)
			sum.Calls, sum.Batch, sum.Prompt, sum.Cached = sum.Calls+c.Calls, sum.Batch+c.Batch, sum.Prompt+c.Prompt, sum.Cached+c.Cached
			sum.Completion, sum.Reasoning, sum.USD, sum.Unpriced = sum.Completion+c.Completion, sum.Reasoning+c.Reasoning, sum.USD+c.USD, sum.Unpriced+c.Unpriced
		}
		row(sum, "all", "")
		return []Table{t}
	},
	Plots: func(d Data) []Plot {
		p := Plot{Name: "usd", Bars: plot.Bars{Title: "Cost by role", Axis: "USD"}}
		s, total := plot.Series{Name: "USD"}, 0.0
		for _, c := range d.Costs {
			p.Categories, s.Values, total = append(p.Categories, c.Role), append(s.Values, c.USD), total+c.USD
		}
		if total == 0 {
			return nil // nothing to draw
		}
		p.Series = []plot.Series{s}
		return []Plot{p}
	},
}
