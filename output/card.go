package output

import (
	"fmt"
	"sort"
	"strings"

	"assay/corpus"
)

// card writes the README of a release from its manifest, so that its numbers never drift.
func card(m Manifest, formats []Format) []byte {
	var b strings.Builder
	f := m.Facts
	fmt.Fprintf(&b, "# %s\n\n", f.Name)
	fmt.Fprintf(&b, "A corpus of checked claims and evidence documents, built with assay (profile %s).\n\n", f.Profile)
	fmt.Fprintf(&b, "| table | rows |\n|---|---|\n")
	for _, t := range []string{"claims", "documents", "pairs", "annotations", "verdicts", "mentions", "events"} {
		if _, there := m.Counts[t]; !there {
			continue // a table that the recipe does not ask for
		}
		fmt.Fprintf(&b, "| %s | %d |\n", t, m.Counts[t])
	}
	if n, there := m.Counts["controls"]; there {
		fmt.Fprintf(&b, "| controls | %d |\n\nA control is a claim with a document of another claim. It is no pair: its answers tell how often the annotator finds\na bearing where there is none.\n", n)
	}
	if n := m.Counts["clusters"]; n > 0 {
		fmt.Fprintf(&b, "\nClaims that tell one statement in nearly the same words share a `cluster`; none is merged. Of %d clusters, %d hold\nclaims with different verdicts.\n", n, m.Counts["conflicts"])
	}
	fmt.Fprintf(&b, "\n| label | pairs |\n|---|---|\n")
	for _, l := range sortedKeys(m.Labels) {
		fmt.Fprintf(&b, "| %s | %d |\n", l, m.Labels[l])
	}
	if len(m.Categories) > 1 || m.Categories[""] < m.Counts["claims"] {
		fmt.Fprintf(&b, "\n| category | claims |\n|---|---|\n")
		for _, c := range corpus.Categories {
			fmt.Fprintf(&b, "| %s | %d |\n", c, m.Categories[string(c)])
		}
		fmt.Fprintf(&b, "| not known | %d |\n", m.Categories[""])
	}
	fmt.Fprintf(&b, "\nA label says what a document does to a model's verdict on a claim, compared with the fact-checker's verdict;\nit does not say whether the document is true. `verdict_binary` is the projection `%s` of the source's rating.\n", f.Projection)
	if _, drafted := m.Counts["verdicts"]; drafted {
		b.WriteString("\nThe table verdicts and the column `draft_verdict6` hold what a judge proposes to people, out of the evidence that a search\nfound (`verdict_status` llm_draft). They are drafts and no gold: nothing is to be scored against them.\n")
	}
	if _, named := m.Counts["mentions"]; named {
		b.WriteString("\nPlaces in the tables mentions and events are characters (Unicode code points) of the text or title that they name, from 0.\n")
	}
	if len(f.Warnings) > 0 {
		b.WriteString("\n## Mind\n\n")
		for _, w := range f.Warnings {
			fmt.Fprintf(&b, "- %s\n", w)
		}
	}
	b.WriteString("\n## Who answered\n\n")
	if len(f.Models) == 0 {
		b.WriteString("No model took part.\n")
	}
	for _, mod := range f.Models {
		fmt.Fprintf(&b, "- %s: %s (%s, endpoint %s), %d calls", mod.Role, mod.Model, mod.Provider, mod.Endpoint, mod.Calls)
		if len(mod.Names) > 0 {
			fmt.Fprintf(&b, ", answered under the names %s", mod.NamesText())
		}
		b.WriteString("\n")
	}
	b.WriteString("\n## Leakage\n\nPairs whose document may give the claim's verdict away, or may be younger than the day as of which it is checked;\neach has the flag. What a search left out for such a reason is below, under Withheld, as evidence.\n\n| flag | pairs |\n|---|---|\n")
	for _, l := range corpus.Leaks {
		fmt.Fprintf(&b, "| `%s` | %d |\n", l, m.Leakage[l])
	}
	if len(f.Withheld) > 0 {
		b.WriteString("\n## Withheld\n\n")
		for _, reason := range sortedKeys(f.Withheld) {
			fmt.Fprintf(&b, "- %s: %d\n", reason, f.Withheld[reason])
		}
	}
	b.WriteString("\n## Files\n\n")
	for _, fm := range formats {
		fmt.Fprintf(&b, "- `%s`: %s\n", fm.Name, fm.Doc)
	}
	b.WriteString(`
Rows are sorted by id (pairs by claim, then document). JSON lines are UTF-8 with one object a line and every column in
every row. CSV is RFC 4180 with a header and LF line ends; a text cell that a spreadsheet would run as a formula has one
apostrophe in front: take it off where the cell starts with one or more apostrophes followed by = + - @, tab or carriage return.
` + "`recipe.lock`" + ` is the recipe and ` + "`prompts/`" + ` holds the prompts as they were worded, ` + "`manifest.json`" + ` lists files, rows and hashes, ` + "`sha256sum -c SHA256SUMS`" + ` or ` + "`assay verify`" + ` checks them.
The texts belong to their authors and publishers; the labels are machine-made unless ` + "`verdict_status`" + ` says otherwise.
`)
	return []byte(b.String())
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
