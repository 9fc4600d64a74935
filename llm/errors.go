package llm

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Error says why a call brought no reply.
type Error struct {
	Endpoint string
	Model    string
	Reason   string // one of the Reason constants
	Detail   string // for a person
	Status   int    // HTTP status, 0 without one
	Tries    int
	Wait     time.Duration // what the server asked us to wait, 0 if it did not
	Err      error

	ends    bool  // the endpoint is dead: every other call would fail alike
	unsent  bool  // nothing left the machine: no record, no charge
	charged bool  // the endpoint may bill it although no usage came back
	usage   Usage // what an unusable reply says it used
}

// Reasons of an Error.
const (
	ReasonNetwork     = "network"      // no connection, or it broke
	ReasonTimeout     = "timeout"      // no reply within the endpoint's timeout
	ReasonInterrupted = "interrupted"  // the run was stopped while the call was out
	ReasonRateLimit   = "rate_limit"   // 429, 408, 409, 425
	ReasonServer      = "server"       // 5xx
	ReasonBadReply    = "bad_reply"    // 200, but no reply that can be read
	ReasonQuota       = "quota"        // the account has no money left
	ReasonCredentials = "credentials"  // 401, 403, or no key
	ReasonContext     = "context"      // the prompt is longer than the model reads
	ReasonRejected    = "rejected"     // any other 4xx
	ReasonNotStored   = "not_stored"   // replay mode, and nothing is stored
	ReasonNoPrice     = "no_price"     // a cap in dollars, and no price for the model
	ReasonNoBuiltin   = "no_builtin"   // the template has no builtin answer, or a broken one
	ReasonBadRequest  = "bad_request"  // the request cannot be rendered
	ReasonNoEndpoint  = "no_endpoint"  // the endpoint is not configured
	ReasonStore       = "broken_store" // the reply could not be kept
)

// reasons says what follows from each reason.
var reasons = map[string]struct {
	class string
	stops bool // the run ends
	again bool // another attempt may help
}{
	ReasonNetwork:     {class: "transient", again: true},
	ReasonTimeout:     {class: "transient", again: true},
	ReasonInterrupted: {class: "transient"},
	ReasonRateLimit:   {class: "transient", again: true},
	ReasonServer:      {class: "transient", again: true},
	ReasonBadReply:    {class: "transient", again: true},
	ReasonQuota:       {class: "budget", stops: true},
	ReasonCredentials: {class: "permanent", stops: true},
	ReasonContext:     {class: "permanent"},
	ReasonRejected:    {class: "permanent"},
	ReasonNotStored:   {class: "transient"},
	ReasonNoPrice:     {class: "permanent", stops: true},
	ReasonNoBuiltin:   {class: "permanent"},
	ReasonBadRequest:  {class: "permanent"},
	ReasonNoEndpoint:  {class: "permanent", stops: true},
	ReasonStore:       {class: "permanent", stops: true},
}

func (e *Error) Error() string {
	var b strings.Builder
	if e.Model == "" { // of no call: the list of models was asked for
		fmt.Fprintf(&b, "ask endpoint %s: %s", e.Endpoint, e.Reason)
	} else {
		fmt.Fprintf(&b, "ask %s at %s: %s", e.Model, e.Endpoint, e.Reason)
	}
	if e.Status != 0 {
		fmt.Fprintf(&b, " (status %d)", e.Status)
	}
	if e.Detail != "" {
		b.WriteString(": " + e.Detail)
	}
	if e.Err != nil {
		b.WriteString(": " + e.Err.Error())
	}
	return b.String()
}

func (e *Error) Unwrap() error { return e.Err }

// FailureClass is transient, permanent or budget.
func (e *Error) FailureClass() string { return reasons[e.Reason].class }

// StopsRun reports whether every other call would fail alike.
func (e *Error) StopsRun() bool { return e.ends || reasons[e.Reason].stops }

// Attempts is the number of attempts that were made.
func (e *Error) Attempts() int { return e.Tries }

// ErrBudget is what every error of a spent budget is.
var ErrBudget = errors.New("llm: budget spent")

// BudgetError says which cap the next call would break.
type BudgetError struct {
	MaxUSD, SpentUSD, NextUSD float64 // NextUSD is the worst case of the call that was not made
	MaxCalls, Calls           int
}

func (e *BudgetError) Error() string {
	if e.MaxCalls > 0 && e.Calls >= e.MaxCalls {
		return fmt.Sprintf("%v: %d of %d calls made in this run", ErrBudget, e.Calls, e.MaxCalls)
	}
	return fmt.Sprintf("%v: $%.4f of $%.4f spent in this run, the next call may cost $%.4f", ErrBudget, e.SpentUSD, e.MaxUSD, e.NextUSD)
}

func (e *BudgetError) Unwrap() error { return ErrBudget }

// FailureClass is budget.
func (e *BudgetError) FailureClass() string { return "budget" }

// StopsRun is true: no other call can be paid either.
func (e *BudgetError) StopsRun() bool { return true }

// fail fills in whom we were asking.
func (c *call) fail(reason, detail string) *Error {
	return &Error{Endpoint: c.route.name, Model: c.model, Reason: reason, Detail: detail}
}

// storeError wraps a failure of the store, which ends the run.
func (c *call) storeError(doing string, err error) *Error {
	return &Error{Endpoint: c.route.name, Model: c.model, Reason: ReasonStore, Detail: doing, Err: err, unsent: true}
}

// A WaitingError says that an answer is not there yet: it is ordered from a batch API, or a forecast
// counted the call and did not make it. The item that asks waits.
type WaitingError struct {
	Endpoint, Model string
	Job             string // id of the batch job; empty where none is made yet
}

func (e *WaitingError) Error() string {
	if e.Job == "" {
		return fmt.Sprintf("ask %s at %s: not asked yet", e.Model, e.Endpoint)
	}
	return fmt.Sprintf("ask %s at %s: ordered in batch job %s, and not answered yet", e.Model, e.Endpoint, e.Job)
}

// FailureClass is waiting.
func (e *WaitingError) FailureClass() string { return "waiting" }
