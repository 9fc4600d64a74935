package pipeline

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"unicode/utf8"

	"assay/kv"
)

// An ItemError is one item's recorded outcome that is no output: exactly one of Fail and Excl is
// set. The run goes on.
type ItemError struct {
	Stage, Key string
	Fail       *Failure
	Excl       *Exclusion
}

func (e *ItemError) Error() string {
	switch {
	case e.Excl != nil && e.Excl.Detail != "":
		return fmt.Sprintf("%s %s: excluded (%s): %s", e.Stage, e.Key, e.Excl.Reason, e.Excl.Detail)
	case e.Excl != nil:
		return fmt.Sprintf("%s %s: excluded (%s)", e.Stage, e.Key, e.Excl.Reason)
	case e.Fail != nil:
		return fmt.Sprintf("%s %s: %s: %s", e.Stage, e.Key, e.Fail.Class, e.Fail.Reason)
	}
	return fmt.Sprintf("%s %s: no outcome", e.Stage, e.Key)
}

// A BlockedError says that an item is stale and may not run: the engine explains, or its stage is
// not among those that may run, or it lies below such an item. The run goes on; see Below.
type BlockedError struct {
	Stage, Key string
	Reason     Reason // why the item is stale; Blocked where it lies below another
	Known      bool   // the item's last output, which is not current, was returned with this error
}

func (e *BlockedError) Error() string {
	return fmt.Sprintf("%s %s: not up to date and not run (%s)", e.Stage, e.Key, e.Reason)
}

// Ends says whether err ends the run: it is neither nil nor the outcome of one item.
func Ends(err error) bool {
	if err == nil {
		return false
	}
	if endsRun(err) {
		return true
	}
	var item *ItemError
	var blocked *BlockedError
	return !errors.As(err, &item) && !errors.As(err, &blocked)
}

// ErrLocal is what an Executor returns for a stage that this process has to run itself.
var ErrLocal = errors.New("pipeline: the stage runs in this process")

// A panicError is a panic in Do.
type panicError struct{ text, stack string }

func (e *panicError) Error() string        { return "panic: " + e.text }
func (e *panicError) FailureClass() string { return ClassPermanent }

// endsRun says whether an error that Do returned ends the run whatever the context says: a broken
// store, bad credentials and the like say so themselves. A deadline does not: clients put one on a
// single request.
func endsRun(err error) bool {
	stops := inChain(err, func(e error) bool {
		s, ok := e.(interface{ StopsRun() bool })
		return ok && s.StopsRun()
	})
	return stops || errors.Is(err, context.Canceled)
}

// unreadable says whether err is about one stored record, which can be made again, and not about
// the store.
func unreadable(err error) bool {
	var corrupt *kv.CorruptError
	return errors.As(err, &corrupt)
}

// outcome turns an error that does not end the run into the outcome that is recorded.
func outcome(err error) (*Failure, *Exclusion) {
	var reason string
	inChain(err, func(e error) bool {
		x, ok := e.(interface{ Excluded() string })
		if ok {
			reason = x.Excluded()
		}
		return reason != ""
	})
	if reason != "" {
		return nil, &Exclusion{Reason: reason, Detail: clip(err.Error())}
	}
	fail := &Failure{Reason: clip(err.Error())}
	inChain(err, func(e error) bool {
		c, ok := e.(interface{ FailureClass() string })
		if ok {
			fail.Class = c.FailureClass()
		}
		return fail.Class != ""
	})
	inChain(err, func(e error) bool {
		r, ok := e.(interface{ FailureReason() string })
		if ok {
			fail.Code = r.FailureReason()
		}
		return fail.Code != ""
	})
	inChain(err, func(e error) bool {
		a, ok := e.(interface{ Attempts() int })
		if ok {
			fail.Attempts = a.Attempts()
		}
		return fail.Attempts > 0
	})
	if fail.Class == "" {
		fail.Class = ClassPermanent
		if errors.Is(err, context.DeadlineExceeded) {
			fail.Class = ClassTransient
		}
	}
	fail.Attempts = max(fail.Attempts, 1)
	return fail, nil
}

// inChain calls f with err and what it wraps, depth first, until f says true. errors.As would stop
// at the first error that has the method, although that one may answer "not me".
func inChain(err error, f func(error) bool) bool {
	if err == nil {
		return false
	}
	if f(err) {
		return true
	}
	switch w := any(err).(type) {
	case interface{ Unwrap() error }:
		return inChain(w.Unwrap(), f)
	case interface{ Unwrap() []error }:
		for _, e := range w.Unwrap() {
			if inChain(e, f) {
				return true
			}
		}
	}
	return false
}

// clip bounds what an error may put into a record: some carry whole pages.
func clip(text string) string {
	const most = 1000
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= most {
		return text
	}
	end := most
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}

// panicStack is the stack of the panic that is being recovered, innermost call first, without the
// runtime, the engine and the folders of files. Call it from the deferred function itself.
func panicStack() string {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	var lines []string
	panicked := false
	for {
		f, more := frames.Next()
		inRuntime := strings.HasPrefix(f.Function, "runtime.")
		switch {
		case f.Function == "runtime.gopanic":
			panicked = true
			lines = lines[:0]
		case panicked && strings.HasPrefix(f.Function, "assay/pipeline.(*Engine)."):
			more = false
		case panicked && !inRuntime && len(lines) < 12:
			lines = append(lines, fmt.Sprintf("%s %s:%d", f.Function, f.File[strings.LastIndex(f.File, "/")+1:], f.Line))
		}
		if !more {
			return strings.Join(lines, "\n")
		}
	}
}
