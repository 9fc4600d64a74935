package corpus

import (
	"fmt"
	"sort"
)

// Kinds of decisions. A kind names the stage that reads it.
const (
	DecideAcceptClaim = "accept-claim" // parse/candidates: a candidate is a claim, with a verdict
)

// A Decision is what one person decided about one thing at one time. Decisions are appended and never
// changed: who thinks again appends another, and the last one of each person counts.
type Decision struct {
	Kind       string  `json:"kind"`
	Target     string  `json:"target"` // id of what is decided on
	Yes        bool    `json:"yes"`
	Verdict    Verdict `json:"verdict,omitzero"`    // of an accepted claim
	Adjudicate bool    `json:"adjudicate,omitzero"` // it settles what others disagree about
	By         string  `json:"by"`
	At         string  `json:"at"` // RFC 3339, UTC
	Note       string  `json:"note,omitzero"`

	// Candidate is what the person saw, so that an accepted claim does not vanish with the listing that
	// once led to its document.
	Candidate *CandidateClaim `json:"candidate,omitempty"`
}

// Resolve returns what the decisions on one thing come to: the last decision of each person counts, one
// no is a no, and an adjudication outweighs everything before it. It is open without decisions.
func Resolve(list []Decision) (r Resolution) {
	last := map[string]Decision{}
	for _, d := range list {
		if d.Adjudicate {
			last = map[string]Decision{}
		}
		last[d.By] = d
	}
	var people []string
	for by := range last {
		people = append(people, by)
	}
	sort.Strings(people)
	for _, by := range people {
		d := last[by]
		r.Decided = true
		switch {
		case !d.Yes:
			r.No = true
			r.Reason = fmt.Sprintf("%s said no on %s", d.By, d.At[:min(len(d.At), 10)])
			return r
		case r.Verdict != "" && r.Verdict != d.Verdict:
			r.Disagree = true
			r.Reason = fmt.Sprintf("%s and %s give different verdicts: %s, %s", r.By.By, d.By, r.Verdict, d.Verdict)
		default:
			r.Verdict = d.Verdict
			r.People = append(r.People, by)
		}
		if d.At >= r.By.At {
			r.By = d
		}
		r.Adjudicated = r.Adjudicated || d.Adjudicate
	}
	return r
}

// A Resolution is what decisions come to.
type Resolution struct {
	Decided     bool
	No          bool
	Disagree    bool // a person has to settle it with an adjudication
	Adjudicated bool
	Verdict     Verdict
	Reason      string   // of No and Disagree
	By          Decision // the last one that says yes
	People      []string // who say so, in order of their names
}

// Status is the status of a verdict that was resolved so.
func (r Resolution) Status() VerdictStatus {
	if r.Adjudicated {
		return StatusAdjudicated
	}
	return StatusHuman
}
