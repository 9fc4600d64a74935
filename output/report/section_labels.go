package report

import (
	"fmt"

	"assay/corpus"
	"assay/stats"
	"assay/stats/plot"
)

var labels = Section{
	Name: "labels",
	Doc: "Labels of pairs of a claim and a document, and of claims by the labels that they have at least once. Where labels and verdicts " +
		"go together, whoever answers the same to everything scores well: the constant answers stand beside every table.",
	Of:    labelTables,
	Plots: labelPlots,
}

func labelTables(d Data) (out []Table) {
	for _, c := range d.Corpora {
		if c.Claims > 0 {
			out = append(out, corpusTable(c))
		}
		if c.Labels.Total() > 0 {
			out = append(out, pairsTable(c), claimsTable(c), constants(c))
		}
	}
	return out
}

func corpusTable(c Corpus) Table {
	per := "–"
	if c.Claims > 0 {
		per = fmt.Sprintf("%.1f", float64(c.Pairs)/float64(c.Claims))
	}
	t := Table{Name: slug(c.Name) + "_corpus", Caption: "Claims and documents, " + c.Name, Head: []string{"", "count"}}
	t.Rows = [][]string{{"claims", thousands(c.Claims)}}
	neither := c.Claims
	for _, v := range c.Labels.Columns {
		t.Rows = append(t.Rows, []string{"claims with verdict " + v, thousands(c.Verdicts[v])})
		neither -= c.Verdicts[v]
	}
	if neither > 0 {
		t.Rows = append(t.Rows, []string{"claims with neither verdict", thousands(neither)})
	}
	t.Rows = append(t.Rows, []string{"claims with a labelled pair", thousands(c.Labelled)})
	t.Rows = append(t.Rows, []string{"words a claim", fmt.Sprintf("%.2f", c.Words)}, []string{"pairs of a claim and a document", thousands(c.Pairs)}, []string{"documents a claim", per})
	return t
}

// pairsTable is class-conditional: labels by the verdict of the claim.
func pairsTable(c Corpus) Table {
	return byVerdict(c.Labels, slug(c.Name)+"_pairs", "Pairs by label and by the claim's verdict, "+c.Name)
}

func byVerdict(x stats.Table, name, caption string) Table {
	t := Table{Name: name, Caption: caption, Head: []string{"label"}}
	t.Head = append(append(t.Head, x.Columns...), "all", "share")
	all := 0
	for _, r := range x.Rows {
		for _, v := range x.Columns {
			all += x.Count(r, v)
		}
	}
	sums := make([]int, len(x.Columns))
	for _, r := range x.Rows {
		row, n := []string{r}, 0
		for i, v := range x.Columns {
			row = append(row, thousands(x.Count(r, v)))
			n, sums[i] = n+x.Count(r, v), sums[i]+x.Count(r, v)
		}
		t.Rows = append(t.Rows, append(row, thousands(n), percent(n, all)))
	}
	row := []string{"all"}
	for _, n := range sums {
		row = append(row, thousands(n))
	}
	t.Rows = append(t.Rows, append(row, thousands(all), percent(all, all)))
	return t
}

func claimsTable(c Corpus) Table {
	t := Table{Name: slug(c.Name) + "_claims", Caption: "Claims that have a label at least once, " + c.Name, Head: append(append([]string{"claims with"}, c.Claimed.Columns...), "all", "share of claims with a labelled pair")}
	for _, l := range c.Claimed.Rows {
		row, n := []string{l}, 0
		for _, v := range c.Claimed.Columns {
			row = append(row, thousands(c.Claimed.Count(l, v)))
			n += c.Claimed.Count(l, v)
		}
		t.Rows = append(t.Rows, append(row, thousands(n), percent(n, c.Labelled)))
	}
	blank := make([]string, len(c.Claimed.Columns))
	t.Rows = append(t.Rows,
		append(append([]string{"supporting and misleading"}, blank...), thousands(c.Both), percent(c.Both, c.Labelled)),
		append(append([]string{"unrelated alone"}, blank...), thousands(c.Unrelated), percent(c.Unrelated, c.Labelled)))
	return t
}

// constants says what the labels imply that the annotator answered, and how often an answer that looks
// at nothing is right.
func constants(c Corpus) Table {
	s, m := string(corpus.Supporting), string(corpus.Misleading)
	x := c.Labels
	saidTrue := x.Count(s, "true") + x.Count(m, "false")
	saidFalse := x.Count(s, "false") + x.Count(m, "true")
	misled, backed := x.Count(m, "true")+x.Count(m, "false"), x.Count(s, "true")+x.Count(s, "false")
	return Table{
		Name: slug(c.Name) + "_constants", Caption: "What a constant answer scores, by documents, " + c.Name,
		Head: []string{"answer", "given by the annotator", "right where documents mislead", "right where they support", "right of all claims"},
		Rows: [][]string{
			{"always true", percent(saidTrue, saidTrue+saidFalse), percent(x.Count(m, "true"), misled), percent(x.Count(s, "true"), backed), percent(c.Verdicts["true"], c.Claims)},
			{"always false", percent(saidFalse, saidTrue+saidFalse), percent(x.Count(m, "false"), misled), percent(x.Count(s, "false"), backed), percent(c.Verdicts["false"], c.Claims)},
		},
		Note: "The answer that a label implies: supporting is the verdict, misleading its opposite.",
	}
}

func labelPlots(d Data) (out []Plot) {
	for _, c := range d.Corpora {
		if c.Labels.Total() == 0 {
			continue
		}
		p := Plot{Name: slug(c.Name), Bars: plot.Bars{Title: "Labels by verdict, " + c.Name, Axis: "pairs", Categories: c.Labels.Columns}}
		for _, l := range c.Labels.Rows {
			s := plot.Series{Name: l}
			for _, v := range c.Labels.Columns {
				s.Values = append(s.Values, float64(c.Labels.Count(l, v)))
			}
			p.Series = append(p.Series, s)
		}
		out = append(out, p)
	}
	return out
}
