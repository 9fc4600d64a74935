package pipeline

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// numbers yields 0..n-1 and counts how many were taken.
func numbers(n int, taken *atomic.Int64) iter.Seq2[int, error] {
	return func(yield func(int, error) bool) {
		for i := range n {
			if taken != nil {
				taken.Add(1)
			}
			if !yield(i, nil) {
				return
			}
		}
	}
}

// peak counts how many are inside at once.
type peak struct{ now, most atomic.Int64 }

func (p *peak) enter() {
	n := p.now.Add(1)
	for {
		m := p.most.Load()
		if n <= m || p.most.CompareAndSwap(m, n) {
			return
		}
	}
}

func (p *peak) leave() { p.now.Add(-1) }

func TestAll(t *testing.T) {
	for _, workers := range []int{1, 3, 16} {
		w := newWorld(t)
		var inside peak
		s := recorded(w, Stage[int, string]{Name: "parse/x"}, func(_ context.Context, in int) (string, error) {
			inside.enter()
			defer inside.leave()
			runtime.Gosched()
			switch in % 10 {
			case 3:
				return "", errors.New("no")
			case 7:
				return "", &outcomeError{text: "x", excluded: "gone"}
			}
			return strconv.Itoa(in), nil
		})
		var ins []int
		var want []string
		for i := range 100 {
			ins = append(ins, i)
			if i%10 != 3 && i%10 != 7 {
				want = append(want, strconv.Itoa(i))
			}
		}
		for range 2 {
			e := w.run(func(o *Options) { o.Workers = workers })
			base := runtime.NumGoroutine()
			outs, missing, err := All(t.Context(), e, s, strconv.Itoa, ins)
			if missing != 20 || err != nil {
				t.Errorf("%d workers: %d missing, %v", workers, missing, err)
			}
			if diff := cmp.Diff(want, outs); diff != "" {
				t.Errorf("%d workers (-want +got):\n%s", workers, diff)
			}
			if got := inside.most.Load(); got > int64(workers) {
				t.Errorf("%d workers: %d at once", workers, got)
			}
			goroutines(t, base)
		}
	}
	w := newWorld(t)
	if outs, n, err := All(t.Context(), w.run(), w.shout(), func(s string) string { return s }, nil); outs != nil || n != 0 || err != nil {
		t.Errorf("All of nothing = %v, %d, %v", outs, n, err)
	}
}

func TestResults(t *testing.T) {
	w := newWorld(t)
	do := func(_ context.Context, in int) (int, error) {
		if in == 2 {
			return 0, errors.New("no")
		}
		return in * in, nil
	}
	s := recorded(w, Stage[int, int]{Name: "parse/x"}, do)
	e := w.run()
	if _, err := Results(t.Context(), e, s, strconv.Itoa, []int{1, 2}); err != nil {
		t.Fatal(err)
	}
	s.Version++
	e = w.run(explain)
	got, err := Results(t.Context(), e, s, strconv.Itoa, []int{1, 2, 3})
	want := []Result[int]{
		{1, &BlockedError{"parse/x", "1", VersionChanged, true}},
		{0, &BlockedError{"parse/x", "2", VersionChanged, false}},
		{0, &BlockedError{"parse/x", "3", Missing, false}},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// TestAllEnds: an error that ends the run is returned as it is, nothing further begins, what runs
// is cancelled and waited for, and nothing of it is recorded as a failure.
func TestAllEnds(t *testing.T) {
	stop := &outcomeError{text: "no money", stops: true}
	w := newWorld(t)
	base := runtime.NumGoroutine()
	s := recorded(w, Stage[int, int]{Name: "parse/x"}, func(ctx context.Context, in int) (int, error) {
		if in == 3 {
			return 0, fmt.Errorf("ask: %w", stop)
		}
		if in < 3 {
			return in, nil
		}
		<-ctx.Done()
		return 0, fmt.Errorf("get: %w", ctx.Err())
	})
	e := w.run()
	ins := make([]int, 1000)
	for i := range ins {
		ins[i] = i
	}
	outs, _, err := All(t.Context(), e, s, strconv.Itoa, ins)
	if !errors.Is(err, stop) || outs != nil {
		t.Errorf("All = %v, %v", outs, err)
	}
	if n := w.total(); n > 7 {
		t.Errorf("%d items were begun, want at most 7", n)
	}
	if r := e.Report(); r.Failed != 0 || r.Ran > 3 {
		t.Errorf("report: %+v", r.Counts)
	}
	goroutines(t, base)
}

// TestCancelAndResume: a run that is stopped in the middle is resumed by the same call, which does
// the rest and no more.
func TestCancelAndResume(t *testing.T) {
	const n = 60
	for _, after := range []int{1, 20, n - 1} {
		w := newWorld(t)
		ctx, cancel := context.WithCancel(t.Context())
		done := 0
		s := recorded(w, Stage[int, int]{Name: "label/x"}, func(ctx context.Context, in int) (int, error) {
			w.mu.Lock()
			done++
			full := done > after
			w.mu.Unlock()
			if full && ctx.Done() != nil && ctx.Value(stoppable{}) != nil {
				cancel()
				<-ctx.Done()
				return 0, errors.New("connection closed")
			}
			return in * 2, nil
		})
		e := w.run()
		work := func(ctx context.Context, in int) (int, error) { return Run(ctx, e, s, strconv.Itoa(in), in) }
		var last error
		for _, err := range Each(context.WithValue(ctx, stoppable{}, true), 4, numbers(n, nil), work) {
			last = err
		}
		if !errors.Is(last, context.Canceled) {
			t.Errorf("stopped after %d: the last error is %v", after, last)
		}
		stored, err := e.Count("label/x")
		if err != nil || stored != after {
			t.Errorf("stopped after %d: %d are stored, %v", after, stored, err)
		}
		if r := e.Report(); r.Failed != 0 {
			t.Errorf("stopped after %d: %d failed", after, r.Failed)
		}

		e = w.run()
		sum := 0
		for out, err := range Each(t.Context(), 4, numbers(n, nil), work) {
			if err != nil {
				t.Fatal(err)
			}
			sum += out
		}
		if sum != n*(n-1) || w.total() != n-after {
			t.Errorf("stopped after %d: resumed with %d calls, sum %d", after, w.total(), sum)
		}
	}
}

type stoppable struct{}

func TestEach(t *testing.T) {
	double := func(_ context.Context, in int) (int, error) { return 2 * in, nil }
	bad := errors.New("bad input")
	stop := errors.New("stop")
	item := &ItemError{Stage: "x", Key: "k", Fail: &Failure{}}
	withErrors := func(yield func(int, error) bool) {
		_ = yield(1, nil) && yield(0, bad) && yield(2, nil)
	}
	tests := []struct {
		name    string
		workers int
		source  iter.Seq2[int, error]
		work    func(context.Context, int) (int, error)
		want    []string
		ordered bool
	}{
		{"nothing", 3, numbers(0, nil), double, nil, true},
		{"one worker keeps order", 1, numbers(4, nil), double, []string{"0", "2", "4", "6"}, true},
		{"many", 3, numbers(4, nil), double, []string{"0", "2", "4", "6"}, false},
		{"default workers", 0, numbers(4, nil), double, []string{"0", "2", "4", "6"}, false},
		{"source errors pass", 1, withErrors, double, []string{"2", "bad input", "4"}, true},
		{"item errors pass", 1, numbers(3, nil), func(_ context.Context, in int) (int, error) {
			if in == 1 {
				return 0, fmt.Errorf("claim: %w", item)
			}
			return in, nil
		}, []string{"0", "claim: x k: : ", "2"}, true},
		{"other errors end", 1, numbers(9, nil), func(_ context.Context, in int) (int, error) {
			if in == 1 {
				return 0, stop
			}
			return in, nil
		}, []string{"0", "stop"}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // fails if a goroutine is left
				stream := Each(t.Context(), tt.workers, tt.source, tt.work)
				for range 2 { // a stream can be consumed again if its source can
					var got []string
					for out, err := range stream {
						if err != nil {
							got = append(got, err.Error())
							continue
						}
						got = append(got, strconv.Itoa(out))
					}
					if !tt.ordered {
						slices.Sort(got)
					}
					if diff := cmp.Diff(tt.want, got); diff != "" {
						t.Errorf("(-want +got):\n%s", diff)
					}
				}
			})
		})
	}
}

// TestEachBackPressure: at most workers inputs are taken and not handed over.
func TestEachBackPressure(t *testing.T) {
	for _, workers := range []int{1, 2, 8} {
		synctest.Test(t, func(t *testing.T) {
			var taken atomic.Int64
			handed := int64(0)
			for range Each(t.Context(), workers, numbers(100, &taken), func(_ context.Context, in int) (int, error) { return in, nil }) {
				handed++
				synctest.Wait() // until the workers have done all they can
				if open := taken.Load() - handed; open > int64(workers) {
					t.Fatalf("%d workers: %d inputs are taken and not handed over", workers, open)
				}
				if want := min(handed+int64(workers), 100); taken.Load() != want {
					t.Fatalf("%d workers: %d taken after %d handed over, want %d", workers, taken.Load(), handed, want)
				}
			}
		})
	}
}

// TestEachStopsEarly: when the consumer stops, running work is cancelled and waited for, the source
// is closed, and nothing further is taken.
func TestEachStopsEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var taken, cancelled atomic.Int64
		closed := false
		source := func(yield func(int, error) bool) {
			defer func() { closed = true }()
			numbers(1000, &taken)(yield)
		}
		for out, err := range Each(t.Context(), 4, source, func(ctx context.Context, in int) (int, error) {
			if in == 0 {
				return 0, nil
			}
			<-ctx.Done()
			cancelled.Add(1)
			return 0, ctx.Err()
		}) {
			if out != 0 || err != nil {
				t.Errorf("got %d, %v", out, err)
			}
			synctest.Wait()
			break
		}
		if !closed || cancelled.Load() != 4 || taken.Load() != 5 {
			t.Errorf("closed %v, cancelled %d, taken %d", closed, cancelled.Load(), taken.Load())
		}
	})
}

// TestEachCancelled: the error of the context is the last thing yielded, once, whoever noticed it.
func TestEachCancelled(t *testing.T) {
	waits := func(ctx context.Context, in int) (int, error) {
		<-ctx.Done()
		return 0, fmt.Errorf("get %d: %w", in, ctx.Err())
	}
	ignores := func(ctx context.Context, in int) (int, error) {
		<-ctx.Done()
		return in, nil
	}
	for name, work := range map[string]func(context.Context, int) (int, error){"work notices": waits, "work does not": ignores} {
		for _, cause := range []error{context.Canceled, context.DeadlineExceeded} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					defer cancel()
					if errors.Is(cause, context.Canceled) {
						time.AfterFunc(time.Millisecond, cancel)
					}
					source := func(yield func(int, error) bool) {
						for i := 0; yield(i, ctx.Err()); i++ {
						}
					}
					var errs []error
					for _, err := range Each(ctx, 3, source, work) {
						if err != nil {
							errs = append(errs, err)
						}
					}
					if len(errs) != 1 || !errors.Is(errs[0], cause) {
						t.Errorf("errors: %v, want %v once", errs, cause)
					}
				})
			})
		}
	}
}

func TestEachPanics(t *testing.T) {
	source := func(yield func(int, error) bool) {
		yield(1, nil)
		panic("source is broken")
	}
	work := func(context.Context, int) (int, error) { panic("work is broken") }
	fine := func(_ context.Context, in int) (int, error) { return in, nil }
	tests := map[string]func(t *testing.T){
		"source is broken": func(t *testing.T) { drain(Each(t.Context(), 3, source, fine)) },
		"work is broken":   func(t *testing.T) { drain(Each(t.Context(), 3, numbers(9, nil), work)) },
		"consumer is broken": func(t *testing.T) {
			for range Each(t.Context(), 3, numbers(9, nil), fine) {
				panic("consumer is broken")
			}
		},
		"lane is broken": func(t *testing.T) {
			drain(Lanes(t.Context(), func(context.Context) iter.Seq2[int, error] { panic("lane is broken") }))
		},
	}
	for want, f := range tests {
		t.Run(want, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				defer func() {
					if v := fmt.Sprint(recover()); !strings.HasPrefix(v, want) {
						t.Errorf("recovered %q", v)
					}
				}()
				f(t)
			})
		})
	}
}

func drain[Out any](s iter.Seq2[Out, error]) (n int) {
	for range s {
		n++
	}
	return n
}

// TestLanes: a slow lane holds up no other, all of every lane comes through, errors too.
func TestLanes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		lane := func(name string, n int, pace time.Duration) func(context.Context) iter.Seq2[string, error] {
			return func(ctx context.Context) iter.Seq2[string, error] {
				return Each(ctx, 1, numbers(n, nil), func(_ context.Context, in int) (string, error) {
					time.Sleep(pace) // of the bubble's clock
					if in == 2 {
						return "", &ItemError{Stage: name, Key: "2", Fail: &Failure{}}
					}
					return name + strconv.Itoa(in), nil
				})
			}
		}
		var got []string
		for out, err := range Lanes(t.Context(), lane("slow", 4, time.Minute), lane("fast", 4, time.Second), lane("none", 0, 0)) {
			if err != nil {
				out = "error"
			}
			got = append(got, out)
		}
		want := []string{"fast0", "fast1", "error", "fast3", "slow0", "slow1", "error", "slow3"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if took := time.Since(start); took != 4*time.Minute {
			t.Errorf("took %v, want the four minutes of the slow lane", took)
		}
	})
	if n := drain(Lanes[int](t.Context())); n != 0 {
		t.Errorf("no lanes yield %d", n)
	}
}

func TestLanesStopEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ended atomic.Int64
		lane := func(ctx context.Context) iter.Seq2[int, error] {
			return Each(ctx, 4, numbers(1000, nil), func(ctx context.Context, in int) (int, error) {
				if in == 0 {
					return 0, nil
				}
				<-ctx.Done()
				ended.Add(1)
				return 0, ctx.Err()
			})
		}
		for range Lanes(t.Context(), lane, lane, lane) {
			synctest.Wait()
			break
		}
		if n := ended.Load(); n < 9 {
			t.Errorf("%d calls were cancelled and waited for, want at least 9", n)
		}
	})
}

func TestLanesCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		lane := func(ctx context.Context) iter.Seq2[int, error] {
			return Each(ctx, 2, numbers(10, nil), func(ctx context.Context, _ int) (int, error) {
				<-ctx.Done()
				return 0, ctx.Err()
			})
		}
		var errs []error
		for _, err := range Lanes(ctx, lane, lane) {
			errs = append(errs, err)
		}
		if len(errs) != 1 || !errors.Is(errs[0], context.Canceled) {
			t.Errorf("errors: %v", errs)
		}
	})
}

// TestHD28 is the whole kind: work that shares a limit comes through without a deadlock and within
// the limit, and work that waits is no goroutine, however it is queued.
func TestHD28(t *testing.T) {
	limit := make(chan struct{}, 2)
	var inside peak
	visit := func(ctx context.Context, in int) (int, error) {
		select {
		case limit <- struct{}{}:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
		inside.enter()
		defer func() { inside.leave(); <-limit }()
		runtime.Gosched()
		return in, nil
	}
	checkLimit := func(t *testing.T) {
		t.Helper()
		if most := inside.most.Load(); most > 2 {
			t.Errorf("%d requests at once, want 2", most)
		}
		if len(limit) != 0 {
			t.Errorf("%d places were not given back", len(limit))
		}
	}
	t.Run("two lanes share a limit, one begins later", func(t *testing.T) {
		base := runtime.NumGoroutine()
		started := make(chan struct{})
		var once sync.Once
		first := func(ctx context.Context) iter.Seq2[int, error] {
			return Each(ctx, 8, numbers(100, nil), func(ctx context.Context, in int) (int, error) {
				if in == 50 {
					once.Do(func() { close(started) })
				}
				return visit(ctx, in)
			})
		}
		second := func(ctx context.Context) iter.Seq2[int, error] {
			<-started
			return Each(ctx, 8, numbers(100, nil), visit)
		}
		if n := drain(Lanes(t.Context(), first, second)); n != 200 {
			t.Errorf("%d came through, want 200", n)
		}
		checkLimit(t)
		goroutines(t, base)
	})
	t.Run("one of them is given up while it waits", func(t *testing.T) {
		base := runtime.NumGoroutine()
		for range Each(t.Context(), 8, numbers(100, nil), visit) {
			break
		}
		if n := drain(Each(t.Context(), 8, numbers(100, nil), visit)); n != 100 {
			t.Errorf("%d came through after another was given up, want 100", n)
		}
		checkLimit(t)
		goroutines(t, base)
	})
	w := newWorld(t)
	var most census
	queues := map[string]func(t *testing.T) int{
		"a stream": func(t *testing.T) int {
			return drain(Each(t.Context(), 16, numbers(100_000, nil), func(ctx context.Context, in int) (int, error) {
				most.note()
				return visit(ctx, in)
			}))
		},
		"a stream of a stream": func(t *testing.T) int {
			inner := Each(t.Context(), 16, numbers(100_000, nil), visit)
			return drain(Each(t.Context(), 16, inner, func(ctx context.Context, in int) (int, error) {
				most.note()
				return in, nil
			}))
		},
		"lanes": func(t *testing.T) int {
			lane := func(ctx context.Context) iter.Seq2[int, error] {
				return Each(ctx, 16, numbers(20_000, nil), func(ctx context.Context, in int) (int, error) {
					most.note()
					return visit(ctx, in)
				})
			}
			return drain(Lanes(t.Context(), lane, lane, lane, lane, lane))
		},
		"a slice": func(t *testing.T) int {
			// The first thousand are enough to see how the others wait.
			e := w.run(func(o *Options) { o.Workers = 16 })
			item := Stage[int, int]{Name: "x", Do: func(ctx context.Context, in int) (int, error) {
				most.note()
				if in == 1000 {
					return 0, &outcomeError{text: "no money", stops: true}
				}
				return visit(ctx, in)
			}}
			var ins []int
			for i := range 100_000 {
				ins = append(ins, i)
			}
			if _, _, err := All(t.Context(), e, item, strconv.Itoa, ins); !Ends(err) || e.Report().Ran > 1016 {
				t.Errorf("All = %v after %d", err, e.Report().Ran)
			}
			return len(ins)
		},
	}
	for name, queue := range queues {
		t.Run("100,000 wait in "+name, func(t *testing.T) {
			base := runtime.NumGoroutine()
			most.reset()
			if n := queue(t); n != 100_000 {
				t.Errorf("%d came through", n)
			}
			// At most 90 are the queue's own; the store may start some of its own meanwhile.
			if n := most.load() - base; n > 1000 {
				t.Errorf("%d goroutines while 100,000 items wait", n)
			}
			checkLimit(t)
			goroutines(t, base)
		})
	}
}

// A census keeps the largest number of goroutines that was noted.
type census struct{ n atomic.Int64 }

func (c *census) note() {
	for now := int64(runtime.NumGoroutine()); ; {
		most := c.n.Load()
		if now <= most || c.n.CompareAndSwap(most, now) {
			return
		}
	}
}

func (c *census) reset()    { c.n.Store(0) }
func (c *census) load() int { return int(c.n.Load()) }
