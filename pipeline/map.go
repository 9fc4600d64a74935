package pipeline

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// A Result is how one item of Results ended: Out with no Err, or an *ItemError, or a
// *BlockedError with the last output in Out if it says Known.
type Result[Out any] struct {
	Out Out
	Err error
}

// Results runs the stage over ins, at most Options.Workers at once, and returns what became of
// each, in the order of ins. The error is one that ends the run: then no further item is begun,
// the context of those that run is cancelled, and all of them have returned.
func Results[In, Out any](ctx context.Context, e *Engine, s Stage[In, Out], key func(In) string, ins []In) ([]Result[Out], error) {
	results := make([]Result[Out], len(ins))
	group, ctx := errgroup.WithContext(ctx)
	var taken atomic.Int64
	for range min(e.opt.Workers, len(ins)) {
		group.Go(func() error {
			for {
				i := int(taken.Add(1)) - 1
				if i >= len(ins) {
					return nil
				}
				out, err := Run(ctx, e, s, key(ins[i]), ins[i])
				if Ends(err) {
					return err
				}
				results[i] = Result[Out]{Out: out, Err: err}
			}
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return results, nil
}

// All is Results for a caller who only wants outputs: it returns them in the order of ins without
// what failed or is excluded, and how many that were. If items are stale and may not run, it
// returns the first *BlockedError; the outputs then have the last one of every such item that had
// one, and Below goes on with them. Results tells which those are.
func All[In, Out any](ctx context.Context, e *Engine, s Stage[In, Out], key func(In) string, ins []In) ([]Out, int, error) {
	results, err := Results(ctx, e, s, key, ins)
	if err != nil {
		return nil, 0, err
	}
	var outs []Out
	var first *BlockedError
	missing := 0
	for _, r := range results {
		var b *BlockedError
		switch {
		case r.Err == nil:
			outs = append(outs, r.Out)
		case !errors.As(r.Err, &b):
			missing++
		default:
			if b.Known {
				outs = append(outs, r.Out)
			}
			if first == nil {
				first = &BlockedError{Stage: b.Stage, Key: b.Key, Reason: b.Reason, Known: true}
			}
		}
	}
	if first != nil {
		return outs, missing, first
	}
	return outs, missing, nil
}

// Each calls work for every input of source and yields what it returns, in the order in which the
// calls end. It streams with back-pressure: at most workers inputs (0 means one per CPU) are taken
// and not yet handed to the consumer, and no goroutine waits for an input that is not taken.
//
// An error of the source is yielded and the stream goes on as long as the source does. So does an
// error of work that is one item's outcome. One that ends the run (see Ends) is the last thing
// yielded, and so is the error of ctx once it is done. When the stream ends, also because the
// consumer stops, the context of the calls that still run is cancelled, and Each waits for them and
// for the source; a source that waits for something must watch a context itself. A panic in work
// or in the source is raised again where the stream is consumed.
func Each[In, Out any](ctx context.Context, workers int, source iter.Seq2[In, error], work func(context.Context, In) (Out, error)) iter.Seq2[Out, error] {
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	return func(yield func(Out, error) bool) {
		next, stop := iter.Pull2(source)
		defer stop()
		var turn sync.Mutex // to take an input
		stream(ctx, workers, yield, func(ctx context.Context, send func(Out, error, bool) bool) {
			take := func() (In, error, bool) {
				turn.Lock()
				defer turn.Unlock()
				if ctx.Err() != nil {
					var none In
					return none, nil, false
				}
				return next()
			}
			for in, err, ok := take(); ok; in, err, ok = take() {
				var out Out
				ends := false
				if err == nil {
					out, err = work(ctx, in)
					ends = Ends(err)
				}
				if !send(out, err, ends) {
					return
				}
			}
		})
	}
}

// Lanes runs several streams at once and merges them in the order in which they have something to
// yield, so that a slow one holds up no other. Each lane gets a context that ends when the consumer
// stops, for its source and its work. An error is yielded and ends nothing but what its lane ends;
// the error of ctx is the last thing yielded. Lanes waits for all lanes.
func Lanes[Out any](ctx context.Context, lanes ...func(context.Context) iter.Seq2[Out, error]) iter.Seq2[Out, error] {
	return func(yield func(Out, error) bool) {
		var taken atomic.Int64
		stream(ctx, len(lanes), yield, func(ctx context.Context, send func(Out, error, bool) bool) {
			for out, err := range lanes[taken.Add(1)-1](ctx) {
				if !send(out, err, false) {
					return
				}
			}
		})
	}
}

// stream runs n producers at once and yields what they send, which waits until the consumer takes
// it. send returns false once the producer is to return; last ends the stream.
func stream[Out any](ctx context.Context, n int, yield func(Out, error) bool, produce func(context.Context, func(Out, error, bool) bool)) {
	type message struct {
		out  Out
		err  error
		last bool
	}
	inner, cancel := context.WithCancel(ctx)
	messages := make(chan message)
	send := func(out Out, err error, last bool) bool {
		if done := inner.Err(); done != nil && errors.Is(err, done) {
			return false // said once, below, and not by every producer
		}
		select {
		case messages <- message{out, err, last}:
			return inner.Err() == nil
		case <-inner.Done():
			return false
		}
	}
	var producers sync.WaitGroup
	var left atomic.Int64
	var crash atomic.Pointer[string]
	left.Store(int64(n))
	for range n {
		producers.Go(func() {
			defer func() {
				if v := recover(); v != nil {
					text := fmt.Sprintf("%v\n\n%s", v, debug.Stack())
					crash.CompareAndSwap(nil, &text)
					cancel()
				}
				if left.Add(-1) == 0 {
					close(messages)
				}
			}()
			produce(inner, send)
		})
	}
	if n == 0 {
		close(messages)
	}
	defer func() {
		cancel()
		producers.Wait()
		if text := crash.Load(); text != nil {
			panic(*text)
		}
	}()
	for m := range messages {
		if !yield(m.out, m.err) || m.last {
			return
		}
	}
	if err := ctx.Err(); err != nil {
		var none Out
		yield(none, err)
	}
}
