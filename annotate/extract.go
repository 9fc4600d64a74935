package annotate

import (
	"context"
	"fmt"

	"assay/corpus"
	"assay/llm"
)

// An Extractor is one way to find statements in documents.
type Extractor struct {
	Name    string
	Version int    // raise it when the same replies give other candidates
	Doc     string // one sentence for assay list
	Gives   string // what it finds: one of the Gives constants

	// Extract reads one document. What it returns depends on Settings, document and the model's replies
	// alone. An error with a FailureClass is this document's; see ExtractionFailure.
	Extract func(context.Context, Model, ExtractSettings, corpus.Document) (Extraction, error)

	// Prompt is the template that Extract uses; a stage has its hash in its Recipe.
	Prompt *llm.Template
}

// What an extractor finds.
const (
	GivesCandidates = "candidates" // for claims
	GivesMentions   = "mentions"   // of entities
	GivesEvents     = "events"     // that a claim asserts
)

// Extractors lists the extractors by name.
var Extractors = []Extractor{Claims, Entities, Events}

// An Extraction is what one document, or the text of one claim, gave. It holds no verdict and no label: those
// are for people. Of the three lists it has the one that its extractor gives.
type Extraction struct {
	DocumentID string                  `json:"document_id"`         // or of the claim
	Candidates []corpus.CandidateClaim `json:"candidates,omitzero"` // in the order of the text
	Mentions   []corpus.Mention        `json:"mentions,omitzero"`   // in the order of the text, the title first
	Events     []corpus.Event          `json:"events,omitzero"`     // in the order of the claim
	Refused    []Refusal               `json:"refused,omitzero"`
	Flags      []string                `json:"flags,omitzero"` // corpus.FlagTruncated
	Call       string                  `json:"call,omitzero"`
	Calls      []string                `json:"calls,omitzero"`
}

// A Refusal is a proposal that the checks turned down.
type Refusal struct {
	Text   string `json:"text"`
	Quote  string `json:"quote"`  // of a mention, its type
	Reason string `json:"reason"` // one of the Refused constants
}

// Reasons of a Refusal.
const (
	RefusedSpan     = "span_not_in_text"        // the quote does not occur in the document
	RefusedLength   = "length"                  // fewer than MinClaimWords words, or more than MaxClaimWords
	RefusedQuestion = "question"                // it asks
	RefusedPronoun  = "not_self_contained"      // whom or what it is about stands elsewhere
	RefusedUndated  = "day_not_told"            // its time counts from the day it was said, which the document does not tell
	RefusedNothing  = "nothing_checkable"       // no number, name, date or comparison that could be looked up
	RefusedAdded    = "not_in_document"         // a number or name that the document does not have
	RefusedSpeaker  = "speaker_not_in_document" // the document does not name the one who is said to speak
	RefusedRepeated = "repeated"
	RefusedSurplus  = "more_than_asked"

	RefusedNoName    = "no_name"        // it has no letter, or is a pronoun
	RefusedOtherType = "other_type"     // the same words were given another type before
	RefusedInside    = "inside_another" // it stands within longer names alone
	RefusedTime      = "time_unread"    // the days of an event that its words do not tell
)

// Bounds of a candidate's text, in words.
const (
	MinClaimWords = 4
	MaxClaimWords = 60
)

// Defaults of ExtractSettings.
const (
	DefaultPerDocument = 5
)

// ExtractSettings is the part of the Recipe that extraction reads.
type ExtractSettings struct {
	Endpoint      string   `json:"endpoint"`
	Model         string   `json:"model"`
	Temperature   *float64 `json:"temperature,omitempty"` // nil means DefaultTemperature
	TopP          *float64 `json:"top_p,omitempty"`
	Seed          *int     `json:"seed,omitempty"`
	MaxTokens     int      `json:"max_tokens,omitzero"`
	DocumentChars int      `json:"document_chars,omitzero"` // 0 means DefaultDocumentChars
	PerDocument   int      `json:"per_document,omitzero"`   // candidates of one document at most; 0 means DefaultPerDocument

	// PromptHash is that of the template in use; it is here so that a changed word is a changed Recipe.
	PromptHash string `json:"prompt_sha256,omitzero"`
}

func (s ExtractSettings) request(role string, t *llm.Template, vars any) llm.Request {
	return Settings{Endpoint: s.Endpoint, Model: s.Model, Temperature: s.Temperature, TopP: s.TopP, Seed: s.Seed, MaxTokens: s.MaxTokens}.request(role, t, vars)
}

// ExtractionFailure says that a document gave no candidates, because the model gave no answer.
type ExtractionFailure struct {
	DocumentID string
	Reason     string // one of the Reason constants
	Call       string
	Calls      []string
}

func (e *ExtractionFailure) Error() string {
	return fmt.Sprintf("extract from %s: %s (call %s)", e.DocumentID, e.Reason, e.Call)
}

// FailureClass is permanent: the reply is stored, so asking again would give it again.
func (e *ExtractionFailure) FailureClass() string { return "permanent" }

// FailureReason is the reason slug.
func (e *ExtractionFailure) FailureReason() string { return e.Reason }
