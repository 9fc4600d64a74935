package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"assay/stats/plot"
)

var controls = Section{
	Name: "controls",
	Doc: "What the annotator answers to a claim alone, without any document: its own belief, which a label by a document can only be read " +
		"against. And what it says of documents that were found for another claim: whatever is not unrelated was read into them, and a flip is an answer that was " +
		"right without such a document and is wrong with it. Rates stand beside those of the corpus and of constant answers, with 95 % Wilson intervals.",
	Of: func(d Data) (out []Table) {
		if d.Zero != nil && d.Zero.Total() > 0 {
			out = append(out, zeroTable(d))
		}
		if len(d.ZeroOutcomes) > 0 {
			t := Table{Name: "zero_outcomes", Caption: "Claims by what came of asking about them alone", Head: []string{"outcome", "claims"}}
			for _, o := range slices.Sorted(maps.Keys(d.ZeroOutcomes)) {
				t.Rows = append(t.Rows, []string{o, thousands(d.ZeroOutcomes[o])})
			}
			out = append(out, t)
		}
		if c := d.Control; c != nil {
			answers := byVerdict(c.Answers, "shuffled", "Answers to documents of other claims, by verdict")
			answers.Head[0] = "answer"
			out = append(out, shuffledRates(*c), answers)
		}
		return out
	},
	Plots: func(d Data) []Plot {
		c := d.Control
		if c == nil || c.Bears.Of == 0 {
			return nil
		}
		p := Plot{Name: "shuffled", Bars: plot.Bars{Title: "Not unrelated", Axis: "% of labelled pairs", Categories: []string{"documents of other claims", "the corpus"}}}
		p.Series = []plot.Series{{Name: "not unrelated", Values: []float64{100 * float64(c.Bears.N) / float64(c.Bears.Of), 100 * float64(c.CorpusBears.N) / float64(max(c.CorpusBears.Of, 1))}}}
		return []Plot{p}
	},
}

func zeroTable(d Data) Table {
	t := byVerdict(*d.Zero, "zero", "Claims by the answer without evidence and by verdict")
	right, answered := d.Zero.Count("true", "true")+d.Zero.Count("false", "false"), 0
	for _, a := range []string{"true", "false"} {
		for _, v := range d.Zero.Columns {
			answered += d.Zero.Count(a, v)
		}
	}
	t.Head[0], t.Note = "answer", "Right of those that it answered: "+percent(right, answered)+"."
	return t
}

func shuffledRates(c Control) Table {
	t := Table{
		Name: "shuffled_rates", Caption: fmt.Sprintf("Documents of other claims, over %s claims", thousands(c.Claims)),
		Head: []string{"", "not unrelated", "rate", "95 % interval", "flips", "flip rate", "flip 95 % interval"},
	}
	row := func(who string, bears, flips Share) {
		t.Rows = append(t.Rows, append(append([]string{who}, bears.cells()...), flips.cells()...))
	}
	row("documents of other claims", c.Bears, c.Flips)
	row("the pairs of the corpus", c.CorpusBears, c.CorpusFlips)
	for _, k := range c.Constants {
		bears := Share{Of: c.Bears.Of}
		if k.Answer != "unrelated" {
			bears.N = bears.Of
		}
		row("always "+k.Answer+", on documents of other claims", bears, Share{k.Effects["flip"], c.Flips.Of})
	}
	var outcomes []string
	for _, o := range slices.Sorted(maps.Keys(c.Outcomes)) {
		outcomes = append(outcomes, fmt.Sprintf("%s %s", o, thousands(c.Outcomes[o])))
	}
	t.Note = "What came of asking: " + strings.Join(outcomes, ", ") + ". Rates are of labelled pairs; those of flips, of pairs whose answer without a document is known."
	return t
}
