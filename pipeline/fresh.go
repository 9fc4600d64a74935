package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// A Reason says why an item runs, or why it does not.
type Reason string

// The reasons.
const (
	Fresh          Reason = "fresh"           // nothing changed; the recorded outcome is used
	Missing        Reason = "missing"         // never ran, or its record could not be read
	VersionChanged Reason = "version-changed" // of the stage's code
	RecipeChanged  Reason = "recipe-changed"
	InputChanged   Reason = "input-changed"
	AnswerChanged  Reason = "answer-changed" // the world answers otherwise, or no longer
	Decided        Reason = "decided"        // a person decided since
	FailedBefore   Reason = "failed-before"
	Waiting        Reason = "waiting" // its answer is ordered and not there yet
	Blocked        Reason = "blocked" // below a stale item, or of a stage that may not run
)

// reasons in the order in which people are shown them.
var reasons = []Reason{Fresh, Missing, VersionChanged, RecipeChanged, InputChanged, AnswerChanged,
	Decided, FailedBefore, Waiting, Blocked}

// A finding is what the engine knows about an item before it does anything.
type finding struct {
	item   Item // the stored record, or the zero Item
	stored bool
	reason Reason
	detail string // for a person
	stale  bool   // Do has to run
	failed bool   // it failed in this run, and is not tried again in it
}

// look reads the item's record and finds out whether it stands. A fresh output is decoded into the
// job on the way.
func (e *Engine) look(ctx context.Context, j job) (finding, error) {
	f, err := e.read(j)
	if err != nil || !f.stored {
		return f, err
	}
	if err := e.judge(ctx, j, &f); err != nil {
		return f, err
	}
	if f.stale || f.item.Fail != nil || f.item.Excl != nil {
		return f, nil
	}
	if err := j.accept(f.item.Out); err != nil {
		// The type of the output changed without a version, or the record was damaged in a way
		// that is still JSON.
		e.corrupt(fmt.Errorf("read output of %s %s: %w", j.stage, j.key, err))
		f.reason, f.detail, f.stale = Missing, "the stored output cannot be read", true
	}
	return f, nil
}

func (e *Engine) read(j job) (finding, error) {
	rec, ok, err := e.items.Get(j.id)
	switch {
	case err != nil && unreadable(err):
		e.corrupt(fmt.Errorf("read %s %s: %w", j.stage, j.key, err))
		return finding{reason: Missing, detail: "its record cannot be read", stale: true}, nil
	case err != nil:
		return finding{}, fmt.Errorf("read %s %s: %w", j.stage, j.key, err)
	case !ok:
		return finding{reason: Missing, detail: "never ran", stale: true}, nil
	}
	item := rec.item()
	e.touchDeps(item.Deps)
	return finding{item: item, stored: true}, nil
}

// judge fills reason, detail and stale of a stored item.
func (e *Engine) judge(ctx context.Context, j job, f *finding) error {
	it := f.item
	f.failed = e.failedNow(j)
	switch {
	case it.Version != j.version:
		f.reason, f.detail = VersionChanged, fmt.Sprintf("version %d, now %d", it.Version, j.version)
	case it.RecipeSum != j.recipe:
		f.reason, f.detail = RecipeChanged, fmt.Sprintf("recipe %x, now %x", it.RecipeSum[:6], j.recipe[:6])
	case it.InputSum != j.inputSum:
		f.reason, f.detail = InputChanged, fmt.Sprintf("input %x, now %x", it.InputSum[:6], j.inputSum[:6])
	}
	if f.reason != "" {
		f.stale = true
		return nil
	}
	if recorded := retry(it, e.opt.RetryFailed); recorded != "" {
		f.reason, f.detail, f.stale = recorded, f.outcome(), !f.failed
		return nil
	}
	if !f.failed {
		if err := e.askAgain(ctx, j, f); err != nil || f.stale {
			return err
		}
	}
	f.reason = Fresh
	if it.Fail != nil {
		f.reason = FailedBefore
	}
	f.detail = f.outcome()
	return nil
}

// retry says why a recorded outcome is to be tried again though nothing it rests on changed; ""
// when it stands.
func retry(it Item, retryFailed bool) Reason {
	switch {
	case it.Fail != nil && it.Fail.Class == ClassWaiting:
		return Waiting
	case it.Fail != nil && (it.Fail.Class == ClassTransient || it.Fail.Class == ClassBudget):
		return FailedBefore
	case it.Fail != nil && retryFailed:
		return FailedBefore
	case it.Excl != nil && retryFailed && strings.HasPrefix(it.Excl.Reason, ClassBlocked):
		return FailedBefore
	}
	return ""
}

// askAgain compares what the world answers now with what was recorded.
func (e *Engine) askAgain(ctx context.Context, j job, f *finding) error {
	for _, d := range f.item.Deps {
		now, known, err := e.current(ctx, d.Key)
		switch {
		case err != nil && unreadable(err):
			e.corrupt(fmt.Errorf("check answer %s of %s %s: %w", d.Key, j.stage, j.key, err))
			known = false
		case err != nil:
			return fmt.Errorf("check answer %s of %s %s: %w", d.Key, j.stage, j.key, err)
		}
		if known && now == d.Sum {
			continue
		}
		f.reason, f.detail, f.stale = AnswerChanged, d.Key+" answers otherwise", true
		switch {
		case !known:
			f.detail = d.Key + " has no answer now"
		case strings.HasPrefix(d.Key, DecisionDep):
			f.reason = Decided
		}
		return nil
	}
	return nil
}

func (e *Engine) current(ctx context.Context, key string) (Sum, bool, error) {
	if e.opt.Current == nil {
		return Sum{}, false, nil
	}
	return e.opt.Current(ctx, key)
}

func (f *finding) outcome() string {
	switch it := f.item; {
	case it.Fail != nil:
		return fmt.Sprintf("%s after %d attempt(s): %s", it.Fail.Class, it.Fail.Attempts, it.Fail.Reason)
	case it.Excl != nil && it.Excl.Detail != "":
		return fmt.Sprintf("excluded (%s): %s", it.Excl.Reason, it.Excl.Detail)
	case it.Excl != nil:
		return fmt.Sprintf("excluded (%s)", it.Excl.Reason)
	}
	return ""
}

// standing is what a caller gets for an outcome that is recorded and stands; the output itself is
// already in the job.
func standing(stage, key string, it Item) error {
	if it.Fail == nil && it.Excl == nil {
		return nil
	}
	if it.Fail != nil {
		return &ItemError{Stage: stage, Key: key, Fail: it.Fail}
	}
	return &ItemError{Stage: stage, Key: key, Excl: it.Excl}
}

// last decodes the item's last output, which is not current, into the job.
func (f *finding) last(j job) bool {
	return f.item.Excl == nil && f.item.Out != nil && j.accept(f.item.Out) == nil
}

var errNoOutput = errors.New("the stage returned no JSON")

func decode(raw json.RawMessage, out any) error {
	if len(raw) == 0 {
		return errNoOutput
	}
	return json.Unmarshal(raw, out)
}
