// Package evidence turns claims into subclaims and documents into analysed items: what the planner
// looks at between two searches, what the judge weighs, and what the benchmark's verifiers may reuse
// (GPE, III-B).
//
// A document is read for one subclaim at a time, from the sentences that bear on it. What a model says of
// it is checked here: words that do not stand in the document carry no stance and no attribution, a
// credibility moves by one step from that of the source's class, and times and origins are computed.
//
// The package stores nothing, searches for nothing and gives no verdict.
package evidence

import (
	"context"
	"embed"
	"fmt"

	"assay/corpus"
	"assay/llm"
)

//go:embed prompts/*.txt
var prompts embed.FS

// A Model answers requests; *llm.Client is one.
type Model interface {
	Complete(context.Context, llm.Request) (llm.Reply, error)
}

// Templates lists the prompts of this package by name.
var Templates = []*llm.Template{Analyse, Decompose}

// Settings are the part of the Recipe that analysis reads. The zero value but for Endpoint and Model
// has the defaults that the fields name.
type Settings struct {
	Endpoint    string   `json:"endpoint"`
	Model       string   `json:"model"`
	Temperature *float64 `json:"temperature,omitempty"`
	TopP        *float64 `json:"top_p,omitempty"`
	Seed        *int     `json:"seed,omitempty"`
	MaxTokens   int      `json:"max_tokens,omitzero"`

	Subclaims int `json:"subclaims,omitzero"`  // most of a claim; 0 means 6
	TextChars int `json:"text_chars,omitzero"` // of a document, of the sentences that bear on a subclaim; 0 means 2,400
	Window    int `json:"window,omitzero"`     // days around the claim's date that are within its time; 0 means 365
}

func (s Settings) complete() Settings {
	for _, n := range []struct {
		value *int
		usual int
	}{{&s.Subclaims, 6}, {&s.TextChars, 2400}, {&s.Window, 365}} {
		if *n.value <= 0 {
			*n.value = n.usual
		}
	}
	return s
}

func (s Settings) request(role string, t *llm.Template, vars any) llm.Request {
	return llm.Request{
		Role: role, Endpoint: s.Endpoint, Model: s.Model, Template: t, Vars: vars,
		Temperature: s.Temperature, TopP: s.TopP, Seed: s.Seed, MaxTokens: s.MaxTokens,
	}
}

// TooLong is the outcome where a model refused a request since it is longer than it reads.
const TooLong = "too_long"

// A Failure says that a reply was no answer: declined, withheld, cut off or unreadable; or that the request was too
// long for the model. It is the item's and never an analysis.
type Failure struct {
	Doing   string // "decompose c_…", "analyse d_… for s1"
	Outcome string // of the reply, or TooLong
	Call    string // the call record of the reply
	Err     error  // the refusal, of TooLong
}

func (e *Failure) Error() string {
	if e.Err != nil {
		return e.Doing + ": " + e.Err.Error()
	}
	return fmt.Sprintf("%s: the model's reply is %s (call %s)", e.Doing, e.Outcome, e.Call)
}

// Unwrap returns the refusal.
func (e *Failure) Unwrap() error { return e.Err }

// FailureClass is permanent: the reply is stored, and asking again gives it again.
func (e *Failure) FailureClass() string { return "permanent" }

// FailureReason is the outcome of the reply.
func (e *Failure) FailureReason() string { return e.Outcome }

// A Matter is what a document is read for: one subclaim of a claim.
type Matter struct {
	Subclaim corpus.Subclaim
	Claim    string // the whole claim
	Speaker  string // who made it
	Date     string // when it was made, 2006-01-02; "" if nobody knows
}
