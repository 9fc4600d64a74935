package planner

import (
	"cmp"
	"slices"

	"assay/annotate/evidence"
	"assay/corpus"
)

// A state is what an agentic search knows: E_t of the paper, with what was tried for it.
type state struct {
	claim      corpus.Claim
	paid       []string // calls, in order
	asOf       string
	subclaims  []corpus.Subclaim
	decomposed bool
	tried      []trial
	answers    []string
	broken     map[string]bool // tools that failed for this claim
	repeats    int             // queries refused because they were searched before
	tokens     int

	documents []corpus.Document // kept, in order
	items     []corpus.Evidence
	found     []corpus.Candidate
	places    map[string]int // of found, by document id
	unsettled bool           // something was read since the origins were found
}

// A trial is one action that was taken.
type trial struct {
	tool     Tool
	subclaim string
	query    string
	vector   []float32 // of the query, once something was compared with it
}

func newState(c corpus.Claim, asOf string) state {
	return state{claim: c, asOf: asOf, broken: map[string]bool{}, places: map[string]int{},
		subclaims: []corpus.Subclaim{{ID: "s1", Text: corpus.Space(c.Text)}}}
}

// decompose replaces the claim by its parts. What was read for the whole stays with the first: parts that
// it bears on are searched for anyway.
func (s *state) decompose(parts []corpus.Subclaim) {
	s.decomposed = true
	if len(parts) > 1 {
		s.subclaims = parts
	}
}

func (s *state) used(t Tool, subclaim, query string) {
	s.tried = append(s.tried, trial{tool: t, subclaim: subclaim, query: query})
}

func (s *state) document(id string) (corpus.Document, bool) {
	for _, d := range s.documents {
		if d.ID == id {
			return d, true
		}
	}
	return corpus.Document{}, false
}

// add keeps a document with the hit that found it and the address at which it is read again.
func (s *state) add(d corpus.Document, address string, hit corpus.Hit) {
	if _, known := s.document(d.ID); !known {
		s.documents = append(s.documents, d)
	}
	s.note(corpus.Find{DocumentID: d.ID, URL: cmp.Or(address, d.URL), Kept: true}, hit)
}

// note keeps a result, whatever became of it.
func (s *state) note(f corpus.Find, hit corpus.Hit) {
	at, ok := s.places[f.DocumentID]
	if !ok {
		at = len(s.found)
		s.places[f.DocumentID] = at
		s.found = append(s.found, corpus.Candidate{DocumentID: f.DocumentID, URL: f.URL, Kept: f.Kept, Reason: f.Reason})
	}
	c := &s.found[at]
	c.Hits = append(c.Hits, hit)
	if f.Kept {
		c.Kept, c.Reason = true, ""
	}
}

// read keeps what a document says about a subclaim.
func (s *state) read(e corpus.Evidence) {
	s.unsettled = true
	for i, have := range s.items {
		if have.DocumentID == e.DocumentID && have.SubclaimID == e.SubclaimID {
			s.items[i] = e
			return
		}
	}
	s.items = append(s.items, e)
}

// analysed reports whether a document was read for a subclaim.
func (s *state) analysed(id, subclaim string) bool {
	return slices.ContainsFunc(s.items, func(e corpus.Evidence) bool { return e.DocumentID == id && e.SubclaimID == subclaim })
}

// recalled reports whether the memory alone led to a document.
func (s *state) recalled(id string) bool {
	at, ok := s.places[id]
	return ok && !slices.ContainsFunc(s.found[at].Hits, func(h corpus.Hit) bool { return h.Source != sourceMemory })
}

// settle finds the origins of what was read. It is called after each step, so that what follows reads one
// state.
func (s *state) settle() (err error) {
	if !s.unsettled {
		return nil
	}
	s.unsettled = false
	s.items, err = evidence.Origins(s.items, s.documents)
	return err
}

// matter is what documents are read for on behalf of a subclaim.
func (s *state) matter(subclaim string) evidence.Matter {
	m := evidence.Matter{Subclaim: s.subclaims[0], Claim: s.claim.Text, Speaker: s.claim.Speaker, Date: s.claim.StatedDate}
	for _, c := range s.subclaims {
		if c.ID == subclaim {
			m.Subclaim = c
		}
	}
	return m
}

// attempted reports whether a side of a subclaim was searched for.
func (s *state) attempted(subclaim string, side corpus.Stance) bool {
	return slices.ContainsFunc(s.tried, func(t trial) bool { return t.subclaim == subclaim && t.tool.Side == side })
}

func (s *state) searches(subclaim string) int {
	n := 0
	for _, t := range s.tried {
		if t.subclaim == subclaim && t.tool.searches() {
			n++
		}
	}
	return n
}

func (s *state) calls(tool string) int {
	n := 0
	for _, t := range s.tried {
		if t.tool.Name == tool {
			n++
		}
	}
	return n
}

// independent counts the usable items of a subclaim, those of one origin once.
func independent(items []corpus.Evidence, subclaim string, side corpus.Stance) int {
	origins := map[string]bool{}
	for _, e := range items {
		if e.SubclaimID == subclaim && e.Usable() && (side == "" || e.Stance == side) {
			origins[e.Origin] = true
		}
	}
	return len(origins)
}

// enough is how many independent usable items resolve a subclaim (methods 3.13).
const enough = 2

// resolved reports whether the evidence for a subclaim suffices: two independent usable items, and at
// least one search for either side (methods 3.13).
func (s *state) resolved(subclaim string) bool {
	return independent(s.items, subclaim, "") >= enough && s.attempted(subclaim, corpus.Supports) && s.attempted(subclaim, corpus.Refutes)
}

func (s *state) sufficient() bool {
	return !slices.ContainsFunc(s.subclaims, func(c corpus.Subclaim) bool { return !s.resolved(c.ID) })
}

// exhibits are the items with what their documents say of themselves (GPE, III-B: title, address, source,
// publication and retrieval).
func (s *state) exhibits() []corpus.Evidence {
	for i, e := range s.items {
		if d, ok := s.document(e.DocumentID); ok {
			s.items[i].Title, s.items[i].URL, s.items[i].Source = d.Title, d.URL, d.Source
			s.items[i].PublishedAt, s.items[i].PublishedBy, s.items[i].Confidence = d.PublishedAt, d.PublishedBy, d.Confidence
			s.items[i].RetrievedAt, s.items[i].Via, s.items[i].CapturedAt = d.RetrievedAt, d.Via, d.CapturedAt
		}
	}
	return s.items
}
