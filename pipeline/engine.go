package pipeline

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"runtime"
	"strings"
	"sync"
	"time"

	"assay/kv"
)

// Options say how an engine works. None of them changes an outcome.
type Options struct {
	Store   *kv.Store // required; the engine does not close it
	Workers int       // items of one All or Results at once; 0 means one per CPU

	// Explain makes Run look only: nothing runs, nothing is written. Reasons are counted, and a
	// stale item comes back as a *BlockedError.
	Explain bool

	// Foresee, with Explain, is handed the Do of every item that would run: sure says that it will, and
	// not only if something above it comes out otherwise. It may call do and returns its error; Do must
	// then write nothing. An output that Do gives is not stored, and the walk goes on with it; with
	// any error of Do the item stays as unknown as it was. Called from many goroutines.
	Foresee func(ctx context.Context, stage string, sure bool, do func(context.Context) error) error

	// RetryFailed tries permanent and blocked failures and blocked exclusions again.
	RetryFailed bool

	Now func() time.Time // nil means time.Now

	// Current is what a recorded question answers now; false means that nobody knows, and then
	// the item that asked is stale. Nil knows nothing. Called from many goroutines.
	Current func(ctx context.Context, depKey string) (Sum, bool, error)

	// MayRun says whether items of a stage may run; nil means all. Of other stages fresh
	// outcomes are used, stale items come back as a *BlockedError. So does an item that failed once its
	// stage may run no more, and nothing is recorded of it.
	MayRun func(stage string) bool

	Executor Executor // runs stages elsewhere; nil means here
	Progress Progress // is told of every item that is done; nil means nobody

	// Corrupt is told of stored records that cannot be read and are made again. It may be nil.
	// Called from many goroutines.
	Corrupt func(error)

	// Why chooses the items that Engine.Why explains; nil means none. It must not call the engine.
	Why func(stage, key string) bool

	Order []string // of stages in reports; what it does not name comes after, by name
}

// An Executor runs the Do of a stage on another machine. It gets the input and returns the output
// as JSON, with what the world answered there. Errors count as if Do had returned them; ErrLocal
// declines. Only stages that are pure given these answers belong elsewhere.
type Executor interface {
	Do(ctx context.Context, stage string, in json.RawMessage) (json.RawMessage, []Dep, error)
}

// An Engine is one run: an item that failed in it is not tried again in it. It may be used from
// many goroutines. It starts none that outlives a call, and needs no Close.
type Engine struct {
	opt     Options
	items   kv.Bucket[itemJSON] // not of Item, whose methods would encode every output twice
	started time.Time
	seed    maphash.Seed

	lockMu sync.Mutex
	locks  map[string]*keyLock

	mu     sync.Mutex
	stages map[string]*stageState
	marks  map[uint64]mark        // items by hash of their key
	deps   map[uint64]struct{}    // answers by hash of their key
	failed map[uint64]Sum         // fingerprints of what failed in this run
	why    map[string]Explanation // by key of the record
}

// New returns an engine over the store.
func New(o Options) *Engine {
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Engine{
		opt:     o,
		items:   kv.In[itemJSON](o.Store, Bucket, BucketVersion),
		started: o.Now(),
		seed:    maphash.MakeSeed(),
		locks:   map[string]*keyLock{},
		stages:  map[string]*stageState{},
		marks:   map[uint64]mark{},
		deps:    map[uint64]struct{}{},
		failed:  map[uint64]Sum{},
		why:     map[string]Explanation{},
	}
}

// Run returns the stage's output for in, from the store when the item is fresh, else from Do. What
// it returns is always the stored form, decoded, so that a first run and a later one cannot differ.
// The item is named by stage and key; asked for twice at once it runs once.
//
// The error is an *ItemError for a failure or an exclusion, a *BlockedError when the item is stale
// and may not run (with its last output, if Known); any other error ends the run and nothing was
// recorded.
func Run[In, Out any](ctx context.Context, e *Engine, s Stage[In, Out], key string, in In) (Out, error) {
	var out Out
	input, err := json.Marshal(in)
	if err != nil {
		return out, fmt.Errorf("encode input of %s %s: %w", s.Name, key, err)
	}
	recipe, err := sumOf(s.Recipe)
	if err != nil {
		return out, fmt.Errorf("encode recipe of %s: %w", s.Name, err)
	}
	err = e.run(ctx, job{
		stage: s.Name, key: key, id: itemKey(s.Name, key), version: s.Version,
		recipe: recipe, inputSum: sha256.Sum256(input), input: input,
		do: func(ctx context.Context) (json.RawMessage, error) {
			made, err := s.Do(ctx, in)
			if err != nil {
				return nil, err
			}
			return encode(made)
		},
		accept: func(raw json.RawMessage) error {
			var read Out
			if err := decode(raw, &read); err != nil {
				return err
			}
			out = read
			return nil
		},
		encode: func() (json.RawMessage, error) { return encode(out) },
	})
	return out, err
}

func encode(out any) (json.RawMessage, error) {
	raw, err := json.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("encode output: %w", err)
	}
	return raw, nil
}

// A job is one call of Run without its types.
type job struct {
	stage, key       string
	id               string // key of the record
	version          int
	recipe, inputSum Sum
	input            json.RawMessage
	do               func(context.Context) (json.RawMessage, error)
	accept           func(json.RawMessage) error     // decodes an output and keeps it for the caller
	encode           func() (json.RawMessage, error) // what accept kept
}

// itemKey keeps the plugins of a kind together, so that a kind can be listed by a prefix. A key
// that is longer than any sensible one (an address with a page in it) is cut and told apart by its
// digest: the store takes no such keys, and one bad item must not end a run.
func itemKey(stage, key string) string {
	const most = 4096
	if len(key) > most {
		key = fmt.Sprintf("%s#%x", key[:most-65], sha256.Sum256([]byte(key)))
	}
	kind, plugin, _ := strings.Cut(stage, "/")
	return kv.Key(kind, plugin, key)
}

func (e *Engine) run(ctx context.Context, j job) error {
	if outer := answersIn(ctx); outer != nil {
		return fmt.Errorf("run %s %s: called from within %s", j.stage, j.key, outer.item)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if !e.opt.Explain {
		unlock, err := e.lock(ctx, j.id)
		if err != nil {
			return err
		}
		defer unlock()
	}
	f, err := e.look(ctx, j)
	if err != nil {
		return err
	}
	if above := aboveIn(ctx); above != "" {
		f.detail = "below " + above
		sure := ctx.Value(besideKey{}) != nil && (f.reason == VersionChanged || f.reason == RecipeChanged || f.reason == Missing)
		_, _ = e.foresee(ctx, j, f, sure, false)
		return e.block(j, f, Blocked)
	}
	if !f.stale {
		e.note(visit{job: j, item: f.item, reason: f.reason, detail: f.detail})
		return standing(j.stage, j.key, f.item)
	}
	if e.opt.MayRun != nil && !e.opt.MayRun(j.stage) {
		f.detail = "its stage may not run; " + string(f.reason) + ": " + f.detail
		return e.block(j, f, Blocked)
	}
	if e.opt.Explain {
		if known, err := e.foresee(ctx, j, f, true, true); known {
			return err
		}
		return e.block(j, f, f.reason)
	}
	return e.work(ctx, j, f)
}

// foresee lets a forecast look at what an item would do. Known says that this is known now: the error is
// then what Run returns. Without goesOn the walk goes on with something else than what it gives.
func (e *Engine) foresee(ctx context.Context, j job, f finding, sure, goesOn bool) (known bool, _ error) {
	if e.opt.Foresee == nil || !e.opt.Explain {
		return false, nil
	}
	err := e.opt.Foresee(ctx, j.stage, sure, func(ctx context.Context) error {
		heard := &answers{item: j.stage + " " + j.key, retry: f.again()}
		defer heard.close()
		raw, err := e.do(withAnswers(ctx, heard), j, heard)
		if err != nil || !goesOn {
			return err
		}
		known = true
		return j.accept(raw)
	})
	var excl *Exclusion
	switch {
	case err != nil && !endsRun(err):
		_, excl = outcome(err)
		known = excl != nil && goesOn
	case err != nil:
		known = false
	}
	if !known {
		return false, nil
	}
	e.note(visit{job: j, item: f.item, reason: f.reason, detail: f.detail})
	return true, standing(j.stage, j.key, Item{Excl: excl})
}

// again reports whether the item is tried again although it failed for good.
func (f finding) again() bool {
	return f.reason == FailedBefore && f.item.Fail != nil && f.item.Fail.Class == ClassPermanent
}

// block counts an item that does not run, although it is stale or lies below a stale one.
func (e *Engine) block(j job, f finding, as Reason) error {
	e.note(visit{job: j, item: f.item, reason: as, detail: f.detail})
	return &BlockedError{Stage: j.stage, Key: j.key, Reason: as, Known: f.last(j)}
}

// work runs a stale item and records how it ended.
func (e *Engine) work(ctx context.Context, j job, f finding) error {
	heard := &answers{item: j.stage + " " + j.key, retry: f.again()}
	started := e.opt.Now()
	raw, err := e.do(withAnswers(ctx, heard), j, heard)
	if err == nil {
		err = j.accept(raw)
	}
	deps := heard.close()
	e.touchDeps(deps)
	if err != nil {
		if endsRun(err) {
			return err
		}
		// What fails while the run is being stopped may fail only because of that.
		if stopped := ctx.Err(); stopped != nil {
			return stopped
		}
		if e.opt.MayRun != nil && !e.opt.MayRun(j.stage) {
			f.detail = "the run was stopped before it was done"
			return e.block(j, f, Blocked)
		}
	}
	item := Item{
		FP:      fingerprint(j.stage, j.version, j.recipe, j.inputSum),
		Version: j.version, RecipeSum: j.recipe, InputSum: j.inputSum,
		Deps: deps,
		Seen: Seen{Started: started.UTC(), Duration: e.opt.Now().Sub(started), Attempts: f.item.Seen.Attempts + 1, Why: f.reason},
	}
	if err == nil {
		item.Out, item.OutSum = raw, sha256.Sum256(raw)
	} else {
		item.Fail, item.Excl = outcome(err)
	}
	if item.Fail != nil {
		item.Out, item.OutSum = f.item.Out, f.item.OutSum
	}
	var panicked *panicError
	if errors.As(err, &panicked) {
		item.Seen.Stack = panicked.stack
	}
	if item, err = e.store(j, item); err != nil {
		return fmt.Errorf("record %s %s: %w", j.stage, j.key, err)
	}
	equal := item.Fail == nil && item.Excl == nil && f.item.Out != nil && f.item.OutSum == item.OutSum
	e.note(visit{job: j, item: item, reason: f.reason, detail: f.detail, ran: true, equal: equal})
	return standing(j.stage, j.key, item)
}

// store puts the record on disk and returns it as it is there: an output that no record can hold
// becomes a failure.
func (e *Engine) store(j job, item Item) (Item, error) {
	put, err := e.items.PutOp(j.id, item.record())
	if err != nil {
		item.Out, item.OutSum, item.Excl = nil, Sum{}, nil
		item.Fail = &Failure{Class: ClassPermanent, Reason: clip(err.Error()), Attempts: 1}
		if put, err = e.items.PutOp(j.id, item.record()); err != nil {
			return item, err
		}
	}
	return item, e.opt.Store.Write(put)
}

// do calls Do, here or elsewhere. A panic comes back as an error.
func (e *Engine) do(ctx context.Context, j job, heard *answers) (raw json.RawMessage, err error) {
	defer func() {
		if v := recover(); v != nil {
			raw, err = nil, &panicError{text: clip(fmt.Sprint(v)), stack: panicStack()}
		}
	}()
	if e.opt.Executor == nil {
		return j.do(ctx)
	}
	raw, deps, err := e.opt.Executor.Do(ctx, j.stage, j.input)
	if errors.Is(err, ErrLocal) {
		return j.do(ctx)
	}
	for _, d := range deps {
		heard.add(d.Key, d.Sum)
	}
	if err != nil {
		return nil, err
	}
	// Spelled again, so that an output has one sum wherever it was made.
	if err := j.accept(raw); err != nil {
		return nil, err
	}
	return j.encode()
}

func (e *Engine) corrupt(err error) {
	if e.opt.Corrupt != nil {
		e.opt.Corrupt(err)
	}
}

// A keyLock is the lock of one item, held in Engine.locks only while somebody wants it.
type keyLock struct {
	held  chan struct{}
	users int
}

func (e *Engine) lock(ctx context.Context, id string) (unlock func(), err error) {
	e.lockMu.Lock()
	l := e.locks[id]
	if l == nil {
		l = &keyLock{held: make(chan struct{}, 1)}
		e.locks[id] = l
	}
	l.users++
	e.lockMu.Unlock()

	leave := func() {
		e.lockMu.Lock()
		defer e.lockMu.Unlock()
		if l.users--; l.users == 0 {
			delete(e.locks, id)
		}
	}
	select {
	case l.held <- struct{}{}:
		return func() { <-l.held; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
}
