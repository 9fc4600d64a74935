package planner

import (
	"fmt"
	"io"
	"strings"

	"assay/corpus"
)

// WriteTrace writes a search for people: what was known, chosen, asked, found, kept and dropped, step by
// step, and why it ended.
func WriteTrace(w io.Writer, t corpus.Trace) error {
	var b strings.Builder
	fmt.Fprintf(&b, "search for %s by policy %s", t.ClaimID, t.Policy)
	if t.AsOf != "" {
		fmt.Fprintf(&b, ", as of %s", t.AsOf)
	}
	if t.Memory != "" {
		fmt.Fprintf(&b, ", with memory %s", t.Memory)
	}
	b.WriteString("\n")
	for _, s := range t.Subclaims {
		fmt.Fprintf(&b, "  %s  %s\n", s.ID, s.Text)
	}
	if len(t.Steps) == 0 {
		writeQueries(&b, t)
	}
	for i, s := range t.Steps {
		fmt.Fprintf(&b, "%2d. %s", i+1, s.Action)
		if s.Query != "" {
			fmt.Fprintf(&b, " %q", s.Query)
		}
		if s.Subclaim != "" {
			fmt.Fprintf(&b, " for %s", s.Subclaim)
		}
		fmt.Fprintf(&b, " -> %s", s.Outcome)
		if s.Answer != "" {
			fmt.Fprintf(&b, ", %s", s.Answer)
		}
		if len(s.Results) > 0 {
			fmt.Fprintf(&b, ", %d of %d kept", kept(s.Results), len(s.Results))
		}
		b.WriteString("\n")
		if s.Refused != "" {
			fmt.Fprintf(&b, "      the model wanted %q, refused: %s\n", s.Wanted, told(s.Refused, refusals))
		}
		if s.Why != "" {
			fmt.Fprintf(&b, "      why (%s): %s\n", s.By, s.Why)
		}
		for _, f := range s.Results {
			writeFind(&b, f.Kept, f.DocumentID, f.URL, f.Reason)
		}
	}
	if len(t.Evidence) > 0 {
		b.WriteString("evidence:\n")
	}
	for _, s := range t.Subclaims {
		if len(t.Evidence) > 0 {
			fmt.Fprintf(&b, "  %s  %d independent items support it, %d refute it\n", s.ID,
				independent(t.Evidence, s.ID, corpus.Supports), independent(t.Evidence, s.ID, corpus.Refutes))
		}
	}
	for _, e := range t.Evidence {
		fmt.Fprintf(&b, "  %s %s %s: relevance %d, credibility %d (%s), %s the claim's time, attribution %s", e.SubclaimID, e.Stance, e.DocumentID,
			e.Relevance, e.Credibility, e.SourceClass, e.Temporal, e.Attribution)
		if e.Match != "" {
			fmt.Fprintf(&b, ", of origin %s (%s)", e.Origin, e.Match)
		}
		if len(e.Flags) > 0 {
			fmt.Fprintf(&b, ", %s", strings.Join(e.Flags, ", "))
		}
		b.WriteString("\n")
		if e.Quote != "" {
			fmt.Fprintf(&b, "     %q\n", e.Quote)
		}
	}
	if t.Stop != "" {
		fmt.Fprintf(&b, "ended: %s after %d steps\n", told(t.Stop, stops), len(t.Steps))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// told is a reason with its meaning.
func told(reason string, meanings map[string]string) string {
	if m := meanings[reason]; m != "" {
		return reason + " (" + m + ")"
	}
	return reason
}

// stops says what reasons why a search ended mean.
var stops = map[string]string{
	StopSufficient: "every statement has two independent items that bear on it, and either side was searched for",
	StopActions:    "the recipe allows no more actions",
	StopDocuments:  "the recipe allows no more documents",
	StopTokens:     "the recipe allows no more tokens",
	StopRepeats:    "the model asked again for what was searched already",
	StopNothing:    "the evidence does not suffice, and no search is left that could find more",
}

// refusals says what reasons why a choice was not followed mean.
var refusals = map[string]string{
	RefusedReply:    "its reply was no answer",
	RefusedTool:     "there is no such tool, or it cannot be used now",
	RefusedSubclaim: "there is no such statement, or no search is left for it",
	RefusedEmpty:    "a search for nothing",
	RefusedRepeat:   "that was searched before, in these or nearly these words",
	RefusedEarly:    "the evidence does not suffice, and more can be searched for",
	RefusedSums:     "nothing to calculate",
	RefusedLong:     "no engine takes a query of that length",
	RefusedAgain:    "it gave its answer before",
	RefusedEnough:   "every statement is resolved, and nothing is missing",
}

func kept(results []corpus.Find) (n int) {
	for _, f := range results {
		if f.Kept {
			n++
		}
	}
	return n
}

// writeQueries writes a search that was no loop: its queries, then what they found.
func writeQueries(b *strings.Builder, t corpus.Trace) {
	for i, q := range t.Queries {
		fmt.Fprintf(b, "%2d. %q\n", i+1, q)
	}
	for _, c := range t.Candidates {
		writeFind(b, c.Kept, c.DocumentID, c.URL, c.Reason)
	}
}

func writeFind(b *strings.Builder, kept bool, id, url, reason string) {
	word := "dropped"
	if kept {
		word = "kept"
	}
	fmt.Fprintf(b, "      %-7s %s %s", word, id, url)
	if reason != "" {
		fmt.Fprintf(b, " (%s)", reason)
	}
	b.WriteString("\n")
}
