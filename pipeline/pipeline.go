// Package pipeline is the stage engine: a memoised call (Run), the same over a slice (All,
// Results), a streaming map with back-pressure (Each) and its merge (Lanes). It knows that there
// are stages, not what they do; order and fan-in are plain Go in the program that calls it.
//
// A stage is a pure function of its input, its version and its part of the recipe. What it asks
// the world it asks through clients that tell the engine what was answered (Engine.Answered), and
// these answers are stored beside the output. An item, one (stage, key), is fresh when stage
// version, recipe, input and every recorded answer are what they were; then its stored outcome is
// returned and nothing runs. Only the sum of an input counts, never where it came from: a stage
// that runs again with an equal output leaves everything below it fresh.
//
// Stored, in the bucket named Bucket: (kind, plugin, key) => Item, one record per item, on disk
// before Run returns. Items of the stage "parse/politifact" lie under kind "parse" and plugin
// "politifact".
//
// One item's failure is data: it is recorded and comes back as an *ItemError. So is an exclusion,
// which is an outcome and no failure. An item that may not run now comes back as a *BlockedError.
// Every other error ends the run; see Ends.
//
// The package does not retry within a run (the clients do), does not order stages, and keeps no
// queue: what waits is the caller's source, not a goroutine.
package pipeline

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Bucket and BucketVersion are the name and the schema version of the bucket of items.
const (
	Bucket        = "items"
	BucketVersion = 1
)

// A Sum is a SHA-256 digest.
type Sum = [32]byte

// SumOf is the digest of v's JSON as encoding/json writes it: struct fields in their order, map
// keys sorted, floats in the shortest form that reads back equal. So equal values have equal sums
// in every process; a json.RawMessage counts as it is spelled, without its white space. A new
// field changes the sum of old values unless it is tagged omitzero.
//
// It panics when v has no JSON (a func, a channel, NaN), which is a mistake in the program.
func SumOf(v any) Sum {
	sum, err := sumOf(v)
	if err != nil {
		panic(fmt.Sprintf("pipeline: sum of %T: %v", v, err))
	}
	return sum
}

func sumOf(v any) (Sum, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return Sum{}, err
	}
	return sha256.Sum256(raw), nil
}

// A Stage is a named function with what its result depends on. Plugins of a kind share In and
// Out; Out is a slice when a stage fans out. In and Out must survive a round trip through JSON:
// that is the form in which an output is stored, returned and sent to another machine.
type Stage[In, Out any] struct {
	Name    string // "kind/plugin", as "label/raguard", or a kind alone
	Version int    // of the plugin's code; another number reruns its items
	Recipe  any    // the plugin's own part of the Recipe, hashed whole; nil when it has none

	// Do is sequential code. It must not call Run: what an inner item was answered would not be
	// recorded for the outer one. A panic in it is recorded as a permanent failure.
	Do func(context.Context, In) (Out, error)
}

// Kind is the part of the name before the slash.
func (s Stage[In, Out]) Kind() string {
	kind, _, _ := strings.Cut(s.Name, "/")
	return kind
}

// A Dep is one answer of the world that an item's outcome rests on.
type Dep struct {
	Key string // of the question; its first part says who answers it, as "fetch/..."
	Sum Sum    // of the answer
}

// DecisionDep begins the keys of answers that people gave. An item that is stale because such an
// answer changed is reported as Decided.
const DecisionDep = "decision/"

// Classes of failures. The next build tries transient, budget and waiting items again; permanent
// and blocked ones only with RetryFailed, or when what they rest on changed.
const (
	ClassTransient = "transient"
	ClassPermanent = "permanent"
	ClassBlocked   = "blocked"
	ClassBudget    = "budget"
	ClassWaiting   = "waiting" // not a failure: the answer is ordered and not there yet (a batch)
)

// A Failure says why an item has no output.
type Failure struct {
	Class    string `json:"class"`
	Reason   string `json:"reason"`
	Attempts int    `json:"attempts"`      // made within the run that failed
	Code     string `json:"code,omitzero"` // stable slug, as "refused", of an error that has FailureReason
}

// An Exclusion says why an item is left out: an outcome, not a failure.
type Exclusion struct {
	Reason string `json:"reason"` // stable slug, as "robots"
	Detail string `json:"detail,omitzero"`
}

// Seen holds what was true of one run only. No sum and no fingerprint covers it.
type Seen struct {
	Started  time.Time     `json:"started,omitzero"`
	Duration time.Duration `json:"duration_ns,omitzero"`
	Attempts int           `json:"attempts,omitzero"` // how often Do has run for this item, over all runs
	Why      Reason        `json:"why,omitzero"`      // why it ran the last time
	Stack    string        `json:"stack,omitzero"`    // of a panic: function and line, innermost first
}

// An Item is the one record per (stage, key). Its outcome is Fail, or else Excl, or else Out.
type Item struct {
	FP        Sum // over stage name, Version, RecipeSum and InputSum
	Version   int
	RecipeSum Sum
	InputSum  Sum
	Deps      []Dep           // sorted by key
	Out       json.RawMessage // of a failed item: its last good output, which is not current
	OutSum    Sum             // of Out
	Fail      *Failure
	Excl      *Exclusion
	Seen      Seen
}

// State says in one word how the item ended: "done", "excluded", "failed" or "waiting".
func (it Item) State() string {
	switch {
	case it.Fail != nil && it.Fail.Class == ClassWaiting:
		return "waiting"
	case it.Fail != nil:
		return "failed"
	case it.Excl != nil:
		return "excluded"
	}
	return "done"
}

func fingerprint(stage string, version int, recipe, input Sum) Sum {
	return SumOf([]any{stage, version, hex.EncodeToString(recipe[:]), hex.EncodeToString(input[:])})
}

// hexSum is a Sum that JSON shows as 64 hexadecimal digits instead of 32 numbers.
type hexSum Sum

func (s hexSum) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, s[:]), nil }

func (s *hexSum) UnmarshalText(text []byte) error {
	raw, err := hex.DecodeString(string(text))
	if err != nil {
		return fmt.Errorf("read sum: %w", err)
	}
	if len(raw) != len(s) {
		return fmt.Errorf("read sum: %d bytes, want %d", len(raw), len(s))
	}
	copy(s[:], raw)
	return nil
}

// depJSON is the stored form of a Dep.
type depJSON struct {
	Key string `json:"key"`
	Sum hexSum `json:"sum"`
}

// itemJSON is the stored form of an Item, and what people are shown.
type itemJSON struct {
	FP        hexSum          `json:"fp"`
	Version   int             `json:"version"`
	RecipeSum hexSum          `json:"recipe_sum"`
	InputSum  hexSum          `json:"input_sum"`
	Deps      []depJSON       `json:"deps,omitempty"`
	Out       json.RawMessage `json:"out,omitempty"`
	OutSum    hexSum          `json:"out_sum,omitzero"`
	Fail      *Failure        `json:"fail,omitempty"`
	Excl      *Exclusion      `json:"excl,omitempty"`
	Seen      Seen            `json:"seen,omitzero"`
}

func (it Item) record() itemJSON {
	var deps []depJSON
	for _, d := range it.Deps {
		deps = append(deps, depJSON{d.Key, hexSum(d.Sum)})
	}
	return itemJSON{hexSum(it.FP), it.Version, hexSum(it.RecipeSum), hexSum(it.InputSum),
		deps, it.Out, hexSum(it.OutSum), it.Fail, it.Excl, it.Seen}
}

func (j itemJSON) item() Item {
	var deps []Dep
	for _, d := range j.Deps {
		deps = append(deps, Dep{d.Key, Sum(d.Sum)})
	}
	return Item{Sum(j.FP), j.Version, Sum(j.RecipeSum), Sum(j.InputSum),
		deps, j.Out, Sum(j.OutSum), j.Fail, j.Excl, j.Seen}
}

// MarshalJSON writes the stored form; sums are hexadecimal.
func (it Item) MarshalJSON() ([]byte, error) { return json.Marshal(it.record()) }

// UnmarshalJSON reads what MarshalJSON wrote.
func (it *Item) UnmarshalJSON(raw []byte) error {
	var j itemJSON
	if err := json.Unmarshal(raw, &j); err != nil {
		return err
	}
	*it = j.item()
	return nil
}
