package corpus

import "slices"

// EntityType is the kind of thing that a mention names (methods, decision 14).
type EntityType string

// The values of EntityType.
const (
	Person       EntityType = "person"
	Organisation EntityType = "organisation"
	Location     EntityType = "location"
	Product      EntityType = "product"
	Law          EntityType = "law"
	Dataset      EntityType = "dataset"
	Concept      EntityType = "concept"
)

// EntityTypes lists the types in the order in which tables show them.
var EntityTypes = []EntityType{Person, Organisation, Location, Product, Law, Dataset, Concept}

// Known reports whether t is one of EntityTypes.
func (t EntityType) Known() bool { return slices.Contains(EntityTypes, t) }

// Fields of a claim or document that mentions stand in.
const (
	FieldText  = "text"
	FieldTitle = "title"
)

// A Mention is one place where a text names an entity.
type Mention struct {
	Field string     `json:"field"` // FieldText or FieldTitle
	Span  Span       `json:"span"`  // of that field, in characters
	Text  string     `json:"text"`  // what the span covers
	Type  EntityType `json:"type"`
}

// An Event is a proposition that a claim asserts, with its time (methods, decision 14).
type Event struct {
	ID   string `json:"id"`   // e1, e2, ... in the order of the claim
	Text string `json:"text"` // the proposition, understood without the claim
	Span Span   `json:"span"` // of the claim's text: the words that assert it

	When     string `json:"when,omitzero"`      // the words of the claim that tell the time, "" for none
	WhenSpan Span   `json:"when_span,omitzero"` // of the claim's text
	From     string `json:"from,omitzero"`      // first day, 2006-01-02; "" where the time is not known
	To       string `json:"to,omitzero"`        // last day
	TimeFrom string `json:"time_from,omitzero"` // TimeFromText or TimeFromClaim
}

// How the time of an event is known.
const (
	TimeFromText  = "text"  // its words name it
	TimeFromClaim = "claim" // its words count from the day on which the claim was made: last year, today
)
