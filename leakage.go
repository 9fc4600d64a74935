package assay

import (
	"slices"
	"strings"

	analysis "assay/annotate/evidence"
	"assay/corpus"
	"assay/planner"
)

// A LeakReport says what among a claim's evidence may give its verdict away.
type LeakReport struct {
	AsOf      string              `json:"as_of,omitzero"` // "" where the recipe sets no bound, and dates are then no leak
	Kept      map[string]int      `json:"kept"`           // documents by kind of leak, see corpus.Leaks
	Dropped   map[string]int      `json:"dropped"`        // results of searches that the policy left out, by reason
	Documents map[string][]string `json:"documents"`      // kinds by id of a kept document, those with a leak alone
}

// minQuote is how long a wording must be, in bytes, for its occurrence in a page to mean something.
const minQuote = 30

// leaks names the ways in which a document may give away the verdict on a claim, in the order of corpus.Leaks.
func (r Recipe) leaks(c corpus.Claim, d corpus.Document, asOf string) (out []string) {
	fold := func(s string) string { return strings.ToLower(corpus.Fold(s)) }
	own := c.ReviewedAt(d.URL)
	checks := analysis.ClassOf(d).Name == "fact_checker"
	if wording := fold(corpus.Wording(c.Text)); checks && len(wording) >= minQuote {
		own = own || strings.Contains(fold(d.Content()), wording)
	}
	switch {
	case own:
		out = append(out, corpus.LeakOwnCheck)
	case checks:
		out = append(out, corpus.LeakOtherCheck)
	}
	if c.TakenFrom(d.URL) {
		out = append(out, corpus.LeakOwnSource)
	}
	if slices.Contains(r.Planner.Agent.Mirrors, corpus.RegistrableDomain(corpus.Host(d.URL))) {
		out = append(out, corpus.LeakMirror)
	}
	day := func(s string) string { return s[:min(len(s), len(asOf))] }
	switch {
	case asOf == "" || d.CapturedAt != "" && day(d.CapturedAt) <= asOf:
	case d.PublishedAt == "":
		out = append(out, corpus.LeakUndated)
	case day(d.PublishedAt) > asOf[:min(len(asOf), len(d.PublishedAt))]:
		out = append(out, corpus.LeakLate)
	}
	return out
}

// leakDropped is the kind of a reason for which a policy against leaks left a result out, "" for another reason.
func leakDropped(reason string) string {
	switch {
	case strings.HasPrefix(reason, planner.DropLate):
		return planner.DropLate
	case reason == planner.DropFactCheck, reason == planner.DropMirror, reason == planner.DropOwnSource, reason == planner.DropOwnCheck:
		return reason
	}
	return ""
}

// leakReport is the report of one claim, over its search and the documents of its pairs.
func (r Recipe) leakReport(c corpus.Claim, t corpus.Trace, document func(id string) (corpus.Document, bool, error)) (LeakReport, error) {
	rep := LeakReport{AsOf: t.AsOf, Kept: map[string]int{}, Dropped: map[string]int{}, Documents: map[string][]string{}}
	told := map[string]corpus.Evidence{}
	for _, e := range t.Evidence {
		told[e.DocumentID] = e
	}
	for _, cand := range t.Candidates {
		if kind := leakDropped(cand.Reason); kind != "" {
			rep.Dropped[kind]++
		}
		if !cand.Kept {
			continue
		}
		d, ok, err := document(cand.DocumentID)
		if err != nil {
			return rep, err
		}
		if !ok { // it will be read by the next build; the search says what it saw
			e := told[cand.DocumentID]
			d = corpus.Document{ID: cand.DocumentID, URL: e.URL, Title: e.Title, Source: e.Source, PublishedAt: e.PublishedAt, CapturedAt: e.CapturedAt}
		}
		kinds := r.leaks(c, d, t.AsOf)
		if len(kinds) > 0 {
			rep.Documents[d.ID] = kinds
		}
		for _, kind := range kinds {
			rep.Kept[kind]++
		}
	}
	return rep, nil
}
