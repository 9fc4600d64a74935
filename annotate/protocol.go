// Package annotate labels pairs of a claim and a document by what the document does to a model's
// verdict on the claim. A label protocol is one entry of Protocols, in one file.
//
// The package reaches the world through a Model alone and stores nothing: what a model replied stands
// in the call records of package llm, and a label names these calls. It reads no rating beyond the
// binary verdict it is handed, never shows that verdict to a model, does not search for documents and
// does not judge whether a document's body is worth labelling; the planner does.
//
// A reply that is no answer (declined, withheld, cut off, unreadable) is a failure of the pair and
// never a label. What a document may have told the model to answer is held for a person.
package annotate

import (
	"context"
	"fmt"

	"assay/corpus"
	"assay/llm"
)

// A Protocol is one way to label pairs.
type Protocol struct {
	Name    string
	Version int    // raise it when the same replies give other labels
	Doc     string // one sentence for assay list

	// Annotate labels one pair. The label depends on Settings, Input and the model's replies alone.
	// An error with a FailureClass is this pair's; see Failure.
	Annotate func(context.Context, Model, Settings, Input) (corpus.Label, error)

	// Zero asks the same model about a claim without a document (methods 3.1, extensions).
	Zero func(context.Context, Model, Settings, corpus.Claim) (Zero, error)

	// Prompt is the template that Annotate uses under these settings, ZeroPrompt that of Zero: a stage
	// has their hashes in its Recipe, so that a changed word runs it again.
	Prompt     func(Settings) *llm.Template
	ZeroPrompt *llm.Template
}

// Protocols lists the label protocols by name.
var Protocols = []Protocol{RAGuard}

// Templates lists the prompts of this package by name.
var Templates = []*llm.Template{CategoryTemplate, claimsTemplate, entitiesTemplate, eventsTemplate, judgeTemplate, raguardTemplate, raguardCompatTemplate, zeroTemplate}

// A Model answers requests; *llm.Client is one.
type Model interface {
	Complete(context.Context, llm.Request) (llm.Reply, error)
}

// Input is all that a label depends on beside Settings.
type Input struct {
	Claim    corpus.Claim    `json:"claim"`
	Gold     bool            `json:"gold"` // the claim's binary verdict, by the projection of the Recipe
	Document corpus.Document `json:"document"`
	Zero     corpus.Answer   `json:"zero,omitzero"` // what Zero answered; empty where it was not asked
}

// Zero is the answer of the control without a document.
type Zero struct {
	ClaimID string        `json:"claim_id"`
	Answer  corpus.Answer `json:"answer"` // true, false or unknown
	Call    string        `json:"call"`
	Calls   []string      `json:"calls,omitzero"`
}

// The values of Settings.Mode.
const (
	ModeNormal = "normal" // quote, reason, answer; the quote is checked
	ModeCompat = "compat" // the answer alone, as published
)

// Defaults of Settings.
const (
	DefaultTemperature   = 0.1    // methods 3.1
	DefaultDocumentChars = 12_000 // default where the source is silent
)

// UnstableBelow is the margin below which a label is flagged unstable (methods 3.1, extensions).
const UnstableBelow = 0.6

// MaxSamples is how often one annotator may be asked about one pair.
const MaxSamples = 25

// Settings is the part of the Recipe that labelling reads. Its zero value but for Endpoint and Model
// is the published protocol in normal form.
type Settings struct {
	Mode          string   `json:"mode,omitzero" yaml:"mode"` // ModeNormal if empty
	Endpoint      string   `json:"endpoint" yaml:"endpoint"`
	Model         string   `json:"model" yaml:"model"`
	Temperature   *float64 `json:"temperature,omitempty" yaml:"temperature"` // nil means DefaultTemperature
	TopP          *float64 `json:"top_p,omitempty" yaml:"top_p"`
	Seed          *int     `json:"seed,omitempty" yaml:"seed"`
	MaxTokens     int      `json:"max_tokens,omitzero" yaml:"max_tokens"`         // 0 means the client's default
	DocumentChars int      `json:"document_chars,omitzero" yaml:"document_chars"` // 0 means DefaultDocumentChars
	NoQuoteCheck  bool     `json:"no_quote_check,omitzero" yaml:"no_quote_check"` // keep quotes as the model gives them
	Samples       int      `json:"samples,omitzero" yaml:"samples"`               // times that each pair is asked about; 0 means 1
	Role          string   `json:"role,omitzero" yaml:"role"`                     // in call records, before the protocol's own; "" for the annotator of the corpus

	// PromptHash is that of the template in use; it is here so that a changed word is a changed Recipe.
	PromptHash string `json:"prompt_sha256,omitzero" yaml:"-"`
}

// request starts a request under these settings.
func (s Settings) request(role string, t *llm.Template, vars any) llm.Request {
	temperature := s.Temperature
	if temperature == nil {
		temperature = new(float64)
		*temperature = DefaultTemperature
	}
	if s.Role != "" {
		role = s.Role + ":" + role
	}
	return llm.Request{
		Role: role, Endpoint: s.Endpoint, Model: s.Model, Template: t, Vars: vars,
		Temperature: temperature, TopP: s.TopP, Seed: s.Seed, MaxTokens: s.MaxTokens,
	}
}

// sampled is one of several samples of a request. Each has a seed of its own where the recipe gives one,
// since an endpoint that keeps to its seed would say the same every time.
func sampled(q llm.Request, sample int) llm.Request {
	q.Sample = sample
	if q.Seed != nil {
		seed := *q.Seed + sample
		q.Seed = &seed
	}
	return q
}

// Reasons of a Failure.
const (
	ReasonAnnotationFailed = "annotation_failed" // no rung of the parse ladder could read the reply
	ReasonRefused          = "refused"           // the model declined
	ReasonFiltered         = "filtered"          // the provider withheld the answer
	ReasonTruncated        = "truncated"         // the token bound was reached
)

// Failure says that a pair has no label, because the model gave no answer. The replies are stored, so
// asking again would give them again.
type Failure struct {
	Pair   string   // PairID
	Reason string   // one of the Reason constants
	Call   string   // the call record of the reply
	Calls  []string // every call paid for it
}

func (e *Failure) Error() string {
	return fmt.Sprintf("label %s: %s (call %s)", e.Pair, e.Reason, e.Call)
}

// FailureClass is permanent.
func (e *Failure) FailureClass() string { return "permanent" }

// FailureReason is the reason slug.
func (e *Failure) FailureReason() string { return e.Reason }

// failed turns a reply that is no answer into the failure of its pair.
func failed(pair string, r llm.Reply, calls []string) *Failure {
	f := &Failure{Pair: pair, Reason: ReasonAnnotationFailed, Call: r.Call, Calls: calls}
	switch r.Outcome {
	case llm.OutcomeRefused:
		f.Reason = ReasonRefused
	case llm.OutcomeFiltered:
		f.Reason = ReasonFiltered
	case llm.OutcomeTruncated:
		f.Reason = ReasonTruncated
	}
	return f
}
