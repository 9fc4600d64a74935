package corpus

// A Subclaim is one part of a claim that can be checked by itself, in words that need no other part.
type Subclaim struct {
	ID   string `json:"id"` // s1, s2, ... in the order of the claim
	Text string `json:"text"`
}

// Stance is which way a document points on a claim or subclaim.
type Stance string

// The values of Stance (methods, decision 7).
const (
	Supports Stance = "supports"
	Refutes  Stance = "refutes"
	Neutral  Stance = "neutral"
)

// TemporalFit says where the time that a document speaks of lies, seen from the claim's.
type TemporalFit string

// The values of TemporalFit (methods, decision 7).
const (
	FitBefore  TemporalFit = "before"
	FitWithin  TemporalFit = "within"
	FitAfter   TemporalFit = "after"
	FitUnknown TemporalFit = "unknown"
)

// Attribution says on whose word a document rests what it says.
type Attribution string

// The values of Attribution (methods, decision 7).
const (
	AttributionPrimary   Attribution = "primary"   // the document itself is the record: a law, a table, a study, the speaker's own words
	AttributionNamed     Attribution = "named"     // somebody who is named
	AttributionAnonymous Attribution = "anonymous" // somebody who is not
	AttributionNone      Attribution = "none"      // nobody
)

// Evidence is one document read for one claim or subclaim: the analysed item of GPE's evidence state
// (III-B). It guides the search and the annotators; a release carries documents, not this.
type Evidence struct {
	DocumentID string `json:"document_id"`
	SubclaimID string `json:"subclaim_id"`

	// Of the document, see Document.
	Title       string `json:"title,omitzero"`
	URL         string `json:"url,omitzero"`
	Source      string `json:"source,omitzero"`
	PublishedAt string `json:"published_at,omitzero"`
	PublishedBy string `json:"published_by,omitzero"`
	Confidence  string `json:"published_confidence,omitzero"`
	RetrievedAt string `json:"retrieved_at,omitzero"`
	Via         string `json:"via,omitzero"`
	CapturedAt  string `json:"captured_at,omitzero"`

	Stance      Stance `json:"stance"`
	Span        Span   `json:"span,omitzero"` // of the document's text: the words that decide
	Quote       string `json:"quote,omitzero"`
	Relevance   int    `json:"relevance"`   // 0 other matter, 1 same subject, 2 bears on it, 3 settles it
	Credibility int    `json:"credibility"` // 0-3: that of SourceClass, moved by the model by at most 1
	SourceClass string `json:"source_class"`

	Temporal  TemporalFit `json:"temporal_fit"`
	EventDate string      `json:"event_date,omitzero"` // that the words speak of, 2006, 2006-01 or 2006-01-02

	Attribution     Attribution `json:"attribution"`
	AttributionSpan Span        `json:"attribution_span,omitzero"` // of the document's text

	Origin string `json:"origin,omitzero"` // cluster of documents that go back to one; the id of its first
	Match  string `json:"match,omitzero"`  // by what it was put there

	Flags []string `json:"flags,omitzero"`
	Call  string   `json:"call,omitzero"`
}

// Usable reports whether an item says something about its subclaim that can be weighed.
func (e Evidence) Usable() bool { return e.Stance != Neutral && e.Relevance >= 2 }

// A Step is one action of an agentic search, as it was taken: what the planner saw, who chose it and what
// came of it.
type Step struct {
	Action   string `json:"action"` // name of a tool
	Query    string `json:"query,omitzero"`
	Subclaim string `json:"subclaim,omitzero"` // that it was taken for
	Why      string `json:"why,omitzero"`
	By       string `json:"by"`               // model, or guard where the model's choice was not to be followed
	Wanted   string `json:"wanted,omitzero"`  // the model's choice, where the guard chose
	Refused  string `json:"refused,omitzero"` // why it was not followed
	Call     string `json:"call,omitzero"`    // the model call that chose

	Outcome string `json:"outcome"`          // done, empty, or failed: and the reason
	Answer  string `json:"answer,omitzero"`  // of a tool that answers itself: a sum, a date
	Results []Find `json:"results,omitzero"` // of a search, best first
}

// A Find is one result of a search, kept or dropped.
type Find struct {
	DocumentID string `json:"document_id"`
	URL        string `json:"url,omitzero"`
	Kept       bool   `json:"kept"`
	Reason     string `json:"reason,omitzero"` // why it was dropped, or "known" for one that another step found
	Thread     string `json:"thread,omitzero"` // of a post whose comments were read too: how many of them, and what is gone
}
