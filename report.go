package assay

import (
	"fmt"
	"strings"
	"time"

	"assay/corpus"
	"assay/fetch"
	"assay/llm"
	"assay/pipeline"
)

// Text is the report of a run for people.
func (r BuildReport) Text(dryRun bool) string {
	var b strings.Builder
	if dryRun {
		b.WriteString(r.Pipeline.Folded().Status())
		if r.Forecast != nil {
			b.WriteString(r.Forecast.Text())
		}
		return b.String()
	}
	b.WriteString(r.Pipeline.Text())
	if fmt.Fprintf(&b, "%d requests%s, ", r.Fetch.Requests, paid(r.Fetch)); r.LLM.Calls == 0 {
		b.WriteString("0 calls")
	} else {
		b.WriteString(Cost(r.LLM.Spend))
	}
	if r.LLM.Hits > 0 {
		fmt.Fprintf(&b, "; %d answers reused, %d tokens saved", r.LLM.Hits, r.LLM.SavedTokens)
	}
	b.WriteString("\n" + Unbilled(r.LLM.Spend))
	for _, o := range r.Fetch.Outages {
		fmt.Fprintf(&b, "host down: %s\n", o)
	}
	if r.Batches != nil {
		b.WriteString(r.Batches.Text())
	}
	if r.Fact != nil {
		b.WriteString(r.Fact.Text())
	}
	if n := total(r.Labels); n > 0 {
		fmt.Fprintf(&b, "labels: %s\n", tally(r.Labels))
		if n := r.Effects[string(corpus.EffectUnknown)]; n == total(r.Effects) {
			b.WriteString("effects: none to tell, since no claim has an answer without a document" + r.whyNoZero() + "\n")
		} else {
			fmt.Fprintf(&b, "effects: %s\n", tally(r.Effects))
			if r.Statistics != nil && zeroText(r.Statistics.Zero) != "" {
				b.WriteString(zeroText(r.Statistics.Zero) + "\n")
			}
		}
	}
	if total(r.Named) > 0 {
		fmt.Fprintf(&b, "named: %s\n", tally(r.Named))
	}
	if total(r.Drafts) > 0 {
		fmt.Fprintf(&b, "drafted verdicts, for people: %s\n", tally(r.Drafts))
	}
	if r.Statistics != nil {
		b.WriteString(r.Statistics.Text())
	}
	if a := r.Agreement; a != nil {
		b.WriteString(a.Text())
	}
	if r.Recall != nil {
		fmt.Fprintf(&b, "search: recall@%d of imported documents %.3f over %d claims\n", r.Recall.At, r.Recall.Mean, r.Recall.Claims)
	}
	for _, k := range r.Canaries {
		fmt.Fprintf(&b, "model %s at %s: %s\n", k.Model, k.Endpoint, k.Text())
	}
	var alarms []string
	for _, a := range r.Alarms {
		alarms = append(alarms, a.String())
	}
	some(&b, "drift", alarms, len(alarms))
	if n := len(r.BadMarkup); n > 0 {
		fmt.Fprintf(&b, "bad markup: %d pages\n", n)
		some(&b, "bad markup", r.BadMarkup, n)
	}
	for _, c := range r.Corrupt {
		fmt.Fprintf(&b, "unreadable and made again: %s\n", c)
	}
	b.WriteString(UnclaimedText(r.Unclaimed))
	for _, h := range r.Hints {
		fmt.Fprintf(&b, "mind: %s\n", h)
	}
	b.WriteString(waitingText(r.Waiting.Candidates, r.Waiting.Ratings))
	if r.Release != nil {
		for _, k := range sortedKeys(r.Release.Withheld) {
			fmt.Fprintf(&b, "left out of the release: %s: %d\n", k, r.Release.Withheld[k])
		}
		for _, w := range r.Release.Warnings {
			fmt.Fprintf(&b, "mind: %s\n", w)
		}
	}
	return b.String()
}

// whyNoZero says why no claim has an answer without a document.
func (r BuildReport) whyNoZero() string {
	switch {
	case r.Statistics == nil || total(r.Statistics.Zero) == 0:
		return " (nobody was asked; see recipe.label.zero_context)"
	case r.Statistics.Zero[zeroUndecided] == total(r.Statistics.Zero):
		return " (what was said is neither true nor false; the builtin model says nothing else)"
	}
	return " (" + zeroText(r.Statistics.Zero) + ")"
}

// UnclaimedText tells how many imported pages belong to no site of the recipe, as a line, "" for none.
func UnclaimedText(n int) string {
	switch n {
	case 0:
		return ""
	case 1:
		return "1 stored page belongs to no site of the recipe (assay ls unclaimed)\n"
	}
	return fmt.Sprintf("%d stored pages belong to no site of the recipe (assay ls unclaimed)\n", n)
}

// Spending says in a few words what this run has bought so far, "" for nothing.
func (w *Workspace) Spending() string {
	s, f := w.llm.Stats(), w.fetch.Stats()
	switch {
	case s.Calls == 0 && f.Paid == 0:
		return ""
	case s.Calls == 0:
		return fmt.Sprintf("%d requests%s", f.Requests, paid(f))
	case f.Paid == 0:
		return Cost(s.Spend)
	}
	return fmt.Sprintf("%d requests%s, %s", f.Requests, paid(f), Cost(s.Spend))
}

// paid tells what requests cost, "" for nothing.
func paid(s fetch.Stats) string {
	if s.Paid == 0 {
		return ""
	}
	return fmt.Sprintf(" (%d of them for $%.4f)", s.Paid, s.USD)
}

// Cost tells what calls cost. A model without a known price is said, never priced at nothing.
func Cost(s llm.Spend) string {
	text := fmt.Sprintf("%d calls, %d tokens, $%.4f", s.Calls, s.Usage.Tokens(), s.USD)
	if s.Estimated > 0 {
		text += fmt.Sprintf(" (of which $%.4f for %d calls that told no usage, at their worst)", s.EstimatedUSD, s.Estimated)
	}
	if s.Unpriced > 0 {
		text += fmt.Sprintf(" without %d calls of models that the price table does not know", s.Unpriced)
	}
	return text
}

const unbilledText = "no price for %s, counted as 0 because it runs on this machine"

// Unbilled names the models that count as free although nobody said so, as lines, "" for none.
func Unbilled(s llm.Spend) string {
	var b strings.Builder
	for _, model := range s.Unbilled {
		fmt.Fprintf(&b, unbilledText+"\n", model)
	}
	return b.String()
}

// Text is the agreement for people: kappa with its interval by reading, and the confusion.
func (a Agreement) Text() string {
	var b strings.Builder
	head, rows := "with the published labels", "rows published, columns ours"
	if a.Other != "" {
		head, rows = fmt.Sprintf("of %s with %s", a.Other, a.Reference), fmt.Sprintf("rows %s, columns %s", a.Reference, a.Other)
	}
	fmt.Fprintf(&b, "agreement %s (majority baseline %.3f):\n", head, a.Majority)
	for _, r := range a.Readings {
		fmt.Fprintf(&b, "  %s\n", r)
	}
	if len(a.Baselines) > 0 {
		of := "the published labels"
		if a.Other != "" {
			of = "the labels of " + a.Reference
		}
		fmt.Fprintf(&b, "constant answers against %s, in the readings of the lines above:\n%s", of, baselineText(a.Baselines))
	}
	if len(a.Readings) > 0 {
		fmt.Fprintf(&b, "confusion, %s:\n%s", rows, a.Readings[0].Confusion)
	}
	return b.String()
}

func total(m map[string]int) int {
	n := 0
	for _, v := range m {
		n += v
	}
	return n
}

func tally(m map[string]int) string {
	var parts []string
	for _, k := range sortedKeys(m) {
		parts = append(parts, fmt.Sprintf("%s %d", k, m[k]))
	}
	return strings.Join(parts, ", ")
}

// DemoText ends the demo: what was made, where, and what to try next.
func (r BuildReport) DemoText(dir string, took time.Duration) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\nA corpus of invented claims is built, in %s.\n", took)
	if r.Release != nil {
		fmt.Fprintf(&b, "  %d claims, %d documents, %d labelled pairs: %s\n", r.Release.Counts["claims"], r.Release.Counts["documents"], r.Release.Counts["pairs"], tally(r.Release.Labels))
		fmt.Fprintf(&b, "  release: %s\n", r.Release.Dir)
	}
	if r.Pipeline.Ran == 0 && r.Release != nil && r.Release.Unchanged {
		b.WriteString("  Nothing had changed: 0 requests, 0 calls.\n")
	} else {
		b.WriteString("  A broken page, a blocked page and a deleted post are there on purpose; above stands what became of them.\n")
	}
	fmt.Fprintf(&b, `
Three things to try next:
  assay -C %[1]s ls label --label misleading
      which posts mislead, and on what claim
  assay -C %[1]s show %[2]s
      one of these pairs, with the document, the prompt's hash and the raw reply behind it
  assay init my-corpus
      a workspace of your own, with your own model endpoint
`, dir, r.Examples[string(corpus.Misleading)])
	return b.String()
}

// Unplanned lists failures of a demo run that are not part of the show.
func (w *DemoWeb) Unplanned(r pipeline.Report) []string {
	planned := map[string]bool{}
	for _, c := range w.Oddities {
		if c.Kind == "broken" {
			planned["http://"+DemoFactCheckHost+"/factchecks/"+c.Path+"/"] = true
		}
	}
	var out []string
	for _, s := range r.Stages {
		for _, f := range s.Examples {
			if !planned[f.Key] {
				out = append(out, s.Name+" "+f.Key+": "+f.Reason)
			}
		}
	}
	return out
}
