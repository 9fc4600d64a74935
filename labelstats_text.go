package assay

import (
	"fmt"
	"strings"

	"assay/corpus"
	"assay/stats"
)

// Text is the statistics for people: what a run prints after its counts.
func (s LabelStatistics) Text() string {
	var b strings.Builder
	if s.Labels.Total() > 0 {
		fmt.Fprintf(&b, "labels by verdict:\n%s", s.Labels)
		b.WriteString(s.Claims.Text())
		if s.ImpliedFalse.Value != nil {
			fmt.Fprintf(&b, "of the documents that bear on a claim, those that imply \"false\": %v\n", s.ImpliedFalse)
		}
		if s.Effects.Count(string(corpus.EffectUnknown), "true")+s.Effects.Count(string(corpus.EffectUnknown), "false") < s.Effects.Total() {
			fmt.Fprintf(&b, "effects by verdict:\n%s", s.Effects)
		}
	}
	for _, o := range s.Outcomes {
		if o.Asked > 0 && o.Refused.N+o.Filtered.N+o.Failed.N > 0 {
			fmt.Fprintf(&b, "%s %s: refused %v, filtered %v, failed %v\n", o.By, known(o.Value), o.Refused, o.Filtered, o.Failed)
		}
	}
	if st := s.Stability; st != nil {
		fmt.Fprintf(&b, "%d samples a pair: unstable %v", st.Samples, st.Unstable)
		if st.Margin.Value != nil {
			fmt.Fprintf(&b, ", mean margin %.3f", *st.Margin.Value)
		}
		b.WriteString("\n")
	}
	if c := s.Control; c != nil {
		fmt.Fprintf(&b, "control with documents of other claims: %s; of %d claims\n", tally(c.Outcomes), c.Claims)
		fmt.Fprintf(&b, "  not unrelated %v; in the corpus %v\n", c.Related, c.Corpus)
		if c.Flips.Of > 0 {
			fmt.Fprintf(&b, "  flips %v; in the corpus %v\n", c.Flips, c.CorpusFlips)
		}
		fmt.Fprint(&b, c.Answers)
	}
	if s.Panel != nil {
		b.WriteString(s.Panel.Text())
	}
	return b.String()
}

// Text is the claims in a line that names what shares are of.
func (c ClaimCounts) Text() string {
	return fmt.Sprintf("of %d claims with a labelled pair: with supporting documents %v, with misleading ones %v, with both %d, with unrelated ones alone %d\n",
		c.Claims, c.Supporting, c.Misleading, c.Both, c.Unrelated)
}

func known(value string) string {
	if value == "" {
		return "not known"
	}
	return value
}

// Text is the panel for people.
func (p PanelStatistics) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "panel over %d pairs, unanimous %v, %d for a person (assay ls disputes)\n", p.Pairs, p.Unanimous, p.Disputes)
	for _, a := range p.Annotators {
		fmt.Fprintf(&b, "%s (%s): %s; labels by verdict:\n%s", a.Annotator, a.Model, tally(a.Outcomes), a.Labels)
	}
	fmt.Fprintf(&b, "agreement of all, over labels:\n")
	for _, c := range p.Coefficients {
		fmt.Fprintf(&b, "  %s\n", c)
	}
	for _, a := range p.Pairwise {
		b.WriteString(a.Text())
	}
	for i, r := range stats.Readings(string(corpus.Supporting), string(corpus.Misleading)) {
		if len(p.Pairwise) < 2 {
			break
		}
		m := p.MeanKappa[i]
		if m.Value == nil {
			fmt.Fprintf(&b, "mean kappa, %s: undefined (%s), %d left out\n", r.Name, m.Reason, m.Undefined)
			continue
		}
		fmt.Fprintf(&b, "mean kappa, %s: %.3f over %d pairs of annotators, %d undefined left out\n", r.Name, *m.Value, m.N, m.Undefined)
	}
	return b.String()
}

// Text is a table as it was published, for people.
func (t TableStatistics) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "table %s: %d claims, %.2f words a claim, %.1f documents a claim\n", t.Table, t.Claims, t.Words, t.Documents)
	fmt.Fprintf(&b, "ratings by verdict:\n%slabels by verdict:\n%s", t.Verdicts, t.Labels)
	b.WriteString(t.ByClaim.Text())
	fmt.Fprintf(&b, "of the documents that bear on a claim, those that imply \"false\": %v\n", t.ImpliedFalse)
	b.WriteString("constant answers against these labels, over all, over supporting and misleading ones, and over pairs where both are:\n" + baselineText(t.Baselines))
	return b.String()
}

// baselineText is a line for each constant answer: its kappa and accuracy in the readings of the lines before.
func baselineText(list []Baseline) string {
	number := func(v *float64) string {
		if v == nil {
			return "-"
		}
		return fmt.Sprintf("%.3f", *v)
	}
	var b strings.Builder
	for _, c := range list {
		var kappas, accuracies []string
		for _, s := range c.Readings {
			kappas, accuracies = append(kappas, number(s.Kappa)), append(accuracies, number(s.Accuracy))
		}
		fmt.Fprintf(&b, "  always %q: kappa %s; accuracy %s\n", c.Answer, strings.Join(kappas, ", "), strings.Join(accuracies, ", "))
	}
	return b.String()
}
