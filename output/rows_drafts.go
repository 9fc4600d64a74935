package output

import (
	"cmp"
	"fmt"

	"assay/corpus"
)

// A VerdictRow is one row of the table verdicts: a verdict that a judge drafted for a claim, for the people
// who rule. It is never gold; a claim's own verdict stands in the table claims.
type VerdictRow struct {
	ClaimID       string            `json:"claim_id"`
	Verdict6      string            `json:"verdict6"`
	VerdictStatus string            `json:"verdict_status"` // llm_draft, always
	Judge         string            `json:"judge"`
	By            string            `json:"by"` // model, or rule where nothing was found that could be weighed
	Rationale     string            `json:"rationale"`
	Uncertainty   string            `json:"uncertainty"`
	Subclaims     []SubclaimVerdict `json:"subclaims"`
	Evidence      []ShownDocument   `json:"evidence"`
	Weighed       string            `json:"weighed"` // by fixed weights, for comparison
	Flags         []string          `json:"flags"`
	Call          string            `json:"call"` // "" of a rule
}

// A SubclaimVerdict is the drafted label of a part of a claim, "" where the judge gave none.
type SubclaimVerdict struct {
	ID       string `json:"id"`
	Text     string `json:"text"`
	Verdict6 string `json:"verdict6"`
	Weighed  string `json:"weighed"`
	Open     string `json:"open"`    // why it is unresolved, "" if it is not
	Origins  int    `json:"origins"` // independent origins that take a side
}

// A ShownDocument is one that the judge was shown; its rationale calls it by ID.
type ShownDocument struct {
	ID         string `json:"id"` // E1, E2, ...
	DocumentID string `json:"document_id"`
	URL        string `json:"url"`
	Cited      bool   `json:"cited"`
}

// NewVerdictRow makes a row of a draft.
func NewVerdictRow(d corpus.Draft) VerdictRow {
	r := VerdictRow{
		ClaimID: d.ClaimID, Verdict6: string(d.Verdict6), VerdictStatus: string(d.Status), Judge: d.Judge, By: d.By, Rationale: d.Rationale, Uncertainty: d.Uncertainty,
		Subclaims: []SubclaimVerdict{}, Evidence: []ShownDocument{}, Weighed: string(d.Weighed), Flags: list(d.Flags), Call: d.Call,
	}
	for _, p := range d.Parts {
		r.Subclaims = append(r.Subclaims, SubclaimVerdict{p.ID, p.Text, string(p.Verdict6), string(p.Weighed), p.Open, p.Origins})
	}
	for _, e := range d.Exhibits {
		r.Evidence = append(r.Evidence, ShownDocument(e))
	}
	return r
}

// check reports what is wrong with a row by itself.
func (r VerdictRow) check() error {
	known := func(v string) bool {
		_, ordinal := corpus.Verdict(v).Ordinal()
		return ordinal || v == string(corpus.Uncertain)
	}
	switch {
	case !known(r.Verdict6):
		return fmt.Errorf("claim %s: drafted verdict %q is none of %v", r.ClaimID, r.Verdict6, corpus.Verdicts)
	case r.VerdictStatus != string(corpus.StatusDraft):
		return fmt.Errorf("claim %s: a drafted verdict has the status %q, want %s", r.ClaimID, r.VerdictStatus, corpus.StatusDraft)
	case (r.Call == "") != (r.By == corpus.DraftByRule):
		return fmt.Errorf("claim %s: verdict by %s with the call %q", r.ClaimID, cmp.Or(r.By, "nobody"), r.Call)
	}
	for _, p := range r.Subclaims {
		if p.Verdict6 != "" && !known(p.Verdict6) {
			return fmt.Errorf("claim %s: drafted verdict %q of %s is none of %v", r.ClaimID, p.Verdict6, p.ID, corpus.Verdicts)
		}
	}
	return nil
}
