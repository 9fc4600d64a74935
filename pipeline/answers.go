package pipeline

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"sync"
)

// Answered records what the world answered to a question of the item that runs in ctx. Clients
// call it through a field that the program sets, so that they need not know the engine. Outside an
// item it only marks the answer as touched. Of two answers to one question the first counts: if
// the second differs, the item is stale and will be asked for again.
func (e *Engine) Answered(ctx context.Context, key string, sum Sum) {
	if a := answersIn(ctx); a != nil {
		a.add(key, sum)
		return
	}
	e.touchDeps([]Dep{{Key: key}})
}

// answers collects what one running item was answered.
type answers struct {
	item  string // for a person
	retry bool   // it is run again although it failed for good

	mu     sync.Mutex
	heard  map[string]Sum
	closed bool // the item is done; what still comes is of no use
}

func (a *answers) add(key string, sum Sum) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, known := a.heard[key]; known || a.closed {
		return
	}
	if a.heard == nil {
		a.heard = map[string]Sum{}
	}
	a.heard[key] = sum
}

func (a *answers) close() []Dep {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	var deps []Dep
	for key, sum := range a.heard {
		deps = append(deps, Dep{Key: key, Sum: sum})
	}
	slices.SortFunc(deps, func(x, y Dep) int { return strings.Compare(x.Key, y.Key) })
	return deps
}

type answersKey struct{}

func withAnswers(ctx context.Context, a *answers) context.Context {
	return context.WithValue(ctx, answersKey{}, a)
}

func answersIn(ctx context.Context) *answers {
	a, _ := ctx.Value(answersKey{}).(*answers)
	return a
}

// Retried reports whether the item that runs in ctx is run again although it failed for good before (RetryFailed). An
// answer that it failed by may then be asked for again.
func Retried(ctx context.Context) bool {
	a := answersIn(ctx)
	return a != nil && a.retry
}

// StageOf names the stage of the item that runs in ctx, "" outside one.
func StageOf(ctx context.Context) string {
	if a := answersIn(ctx); a != nil {
		stage, _, _ := strings.Cut(a.item, " ")
		return stage
	}
	return ""
}

type aboveKey struct{}

func aboveIn(ctx context.Context) string {
	above, _ := ctx.Value(aboveKey{}).(string)
	return above
}

// Below lets a walk go on under an item that is stale and did not run, with the item's last
// output. If err is a *BlockedError with a known output, it returns a context in which nothing
// runs and every item counts as blocked, and no error; else ctx and err as they are.
//
//	trace, err := pipeline.Run(ctx, e, plan, id, claim)
//	ctx, err = pipeline.Below(ctx, err)
//
// So status tells what a stale item holds up, and a walk for gc reaches what is still paid for.
func Below(ctx context.Context, err error) (context.Context, error) {
	var b *BlockedError
	if Ends(err) || !errors.As(err, &b) || !b.Known {
		return ctx, err
	}
	above := aboveIn(ctx)
	if above == "" {
		above = fmt.Sprintf("%s %s (%s)", b.Stage, b.Key, b.Reason)
	}
	return context.WithValue(ctx, aboveKey{}, above), nil
}

type besideKey struct{}

// Beside says of a context that Below made of another one: the item above does not decide which items come below,
// only what they are told. Those that are stale by themselves, by a version or a recipe, run whatever it gives, and a
// forecast counts them as sure.
func Beside(before, below context.Context) context.Context {
	if before == below || aboveIn(before) != "" {
		return below
	}
	return context.WithValue(below, besideKey{}, true)
}

// Touched is what a walk asked for: a live view of its engine, kept as 64-bit hashes, so that one
// in many billion answers of true is false.
type Touched struct{ e *Engine }

// Touched returns what this engine's walk has touched so far: items asked for, and the answers
// that their records rest on.
func (e *Engine) Touched() Touched { return Touched{e} }

// Item says whether the walk asked for an item.
func (t Touched) Item(stage, key string) bool { return t.Record(itemKey(stage, key)) }

// Record says the same by the key of the item's record in Bucket.
func (t Touched) Record(key string) bool {
	t.e.mu.Lock()
	defer t.e.mu.Unlock()
	return t.e.marks[t.e.hash(key)] != unmarked
}

// Dep says whether the outcome of an item that the walk asked for rests on this answer.
func (t Touched) Dep(key string) bool {
	t.e.mu.Lock()
	defer t.e.mu.Unlock()
	_, ok := t.e.deps[t.e.hash(key)]
	return ok
}

// Len returns how many items and answers were touched.
func (t Touched) Len() (items, answers int) {
	t.e.mu.Lock()
	defer t.e.mu.Unlock()
	return len(t.e.marks), len(t.e.deps)
}

func (e *Engine) touchDeps(deps []Dep) {
	if len(deps) == 0 {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, d := range deps {
		e.deps[e.hash(d.Key)] = struct{}{}
	}
}

func (e *Engine) hash(key string) uint64 { return maphash.String(e.seed, key) }

func (e *Engine) failedNow(j job) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	fp, ok := e.failed[e.hash(j.id)]
	return ok && fp == fingerprint(j.stage, j.version, j.recipe, j.inputSum)
}
