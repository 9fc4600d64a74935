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
		fmt.Fprintf(&b, " (%s", s.By)
		if s.Refused != "" {
			fmt.Fprintf(&b, " instead of %q: %s", s.Wanted, s.Refused)
		}
		if s.Why != "" {
			fmt.Fprintf(&b, ": %s", s.Why)
		}
		fmt.Fprintf(&b, ") -> %s", s.Outcome)
		if s.Answer != "" {
			fmt.Fprintf(&b, ", %s", s.Answer)
		}
		b.WriteString("\n")
		for _, f := range s.Results {
			writeFind(&b, f.Kept, f.DocumentID, f.URL, f.Reason)
		}
	}
	if len(t.Evidence) > 0 {
		b.WriteString("evidence:\n")
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
		fmt.Fprintf(&b, "ended: %s after %d steps\n", t.Stop, len(t.Steps))
	}
	_, err := io.WriteString(w, b.String())
	return err
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
