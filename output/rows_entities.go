package output

import (
	"fmt"
	"unicode/utf8"

	"assay/corpus"
)

// Kinds of what a mention stands in.
const (
	OfClaim    = "claim"
	OfDocument = "document"
)

// A MentionRow is one row of the table mentions: one place where a claim or a document names an entity.
// Rows are sorted by the id of the text, then title before text, then place.
type MentionRow struct {
	Of    string `json:"of"` // claim or document
	ID    string `json:"id"` // of it
	Field string `json:"field"`
	Start int    `json:"start"` // in characters (Unicode code points) of that field, from 0
	End   int    `json:"end"`   // the place after the last one
	Text  string `json:"text"`  // what stands there
	Type  string `json:"type"`
	Call  string `json:"call"`
}

// NewMentionRow makes a row of a mention in a claim or document.
func NewMentionRow(of, id, call string, m corpus.Mention) MentionRow {
	return MentionRow{Of: of, ID: id, Field: m.Field, Start: m.Span.Start, End: m.Span.End, Text: m.Text, Type: string(m.Type), Call: call}
}

// Key is the row's place in the table.
func (r MentionRow) Key() string {
	order := "1"
	if r.Field == corpus.FieldTitle {
		order = "0"
	}
	return fmt.Sprintf("%s\x00%s\x00%012d", r.ID, order, r.Start)
}

func (r MentionRow) check() error {
	switch {
	case !corpus.EntityType(r.Type).Known():
		return fmt.Errorf("mention %q of %s: type %q is none of %v", r.Text, r.ID, r.Type, corpus.EntityTypes)
	case r.Start < 0 || r.End-r.Start != utf8.RuneCountInString(r.Text) || r.Text == "":
		return fmt.Errorf("mention %q of %s: it has %d characters and stands from %d to %d", r.Text, r.ID, utf8.RuneCountInString(r.Text), r.Start, r.End)
	case r.Field != corpus.FieldText && r.Field != corpus.FieldTitle, r.Of != OfClaim && r.Of != OfDocument:
		return fmt.Errorf("mention %q of %s: it stands in the %s of a %s", r.Text, r.ID, r.Field, r.Of)
	}
	return nil
}

// An EventRow is one row of the table events: a proposition that a claim asserts. Rows are sorted by claim and
// event.
type EventRow struct {
	ClaimID   string `json:"claim_id"`
	EventID   string `json:"event_id"` // e1, e2, ... of the claim
	Text      string `json:"text"`
	Start     int    `json:"start"` // of the words that assert it, in characters of the claim's text
	End       int    `json:"end"`
	When      string `json:"when"` // the words that tell its time, "" for none
	WhenStart int    `json:"when_start"`
	WhenEnd   int    `json:"when_end"`
	From      string `json:"from"` // first day, 2006-01-02, "" where it is not known
	To        string `json:"to"`
	TimeFrom  string `json:"time_from"` // text, or claim where its words count from the claim's day
	Call      string `json:"call"`
}

// NewEventRow makes a row of an event of a claim.
func NewEventRow(claimID, call string, e corpus.Event) EventRow {
	return EventRow{ClaimID: claimID, EventID: e.ID, Text: e.Text, Start: e.Span.Start, End: e.Span.End, When: e.When, WhenStart: e.WhenSpan.Start, WhenEnd: e.WhenSpan.End,
		From: e.From, To: e.To, TimeFrom: e.TimeFrom, Call: call}
}

// Key is the row's place in the table.
func (r EventRow) Key() string { return r.ClaimID + "\x00" + r.EventID }

func (r EventRow) check() error {
	switch {
	case r.Start < 0 || r.End <= r.Start || r.WhenStart < 0 || r.WhenEnd-r.WhenStart != utf8.RuneCountInString(r.When):
		return fmt.Errorf("event %s of %s: it stands from %d to %d, and its time %q from %d to %d", r.EventID, r.ClaimID, r.Start, r.End, r.When, r.WhenStart, r.WhenEnd)
	case (r.From == "") != (r.To == "") || r.From > r.To || (r.From == "") != (r.TimeFrom == ""):
		return fmt.Errorf("event %s of %s: from %q to %q by %q", r.EventID, r.ClaimID, r.From, r.To, r.TimeFrom)
	}
	return nil
}
