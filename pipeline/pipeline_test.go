package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay/kv"
)

// A world is what stages of tests live in: a store, a clock that stands still, answers that may
// change, and a count of calls of Do per item.
type world struct {
	t     *testing.T
	store *kv.Store
	e     *Engine // of the current run

	mu      sync.Mutex
	answers map[string]string
	calls   map[string]int
	corrupt []error
}

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func newWorld(t *testing.T) *world {
	t.Helper()
	store, err := kv.OpenMemory()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return &world{t: t, store: store, answers: map[string]string{}, calls: map[string]int{}}
}

// run begins a new run and forgets the calls of the one before.
func (w *world) run(change ...func(*Options)) *Engine {
	o := Options{
		Store: w.store, Workers: 4, Now: func() time.Time { return noon },
		Current: func(_ context.Context, key string) (Sum, bool, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			answer, ok := w.answers[key]
			return SumOf(answer), ok, nil
		},
		Corrupt: func(err error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.corrupt = append(w.corrupt, err)
		},
	}
	for _, c := range change {
		c(&o)
	}
	w.e, w.calls, w.corrupt = New(o), map[string]int{}, nil
	return w.e
}

func explain(o *Options)     { o.Explain = true }
func retryFailed(o *Options) { o.RetryFailed = true }

// ask is what a client does: it answers and says so to the engine.
func (w *world) ask(ctx context.Context, key string) string {
	w.mu.Lock()
	answer := w.answers[key]
	w.mu.Unlock()
	w.e.Answered(ctx, key, SumOf(answer))
	return answer
}

func (w *world) called(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls[what]++
}

func (w *world) total() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, c := range w.calls {
		n += c
	}
	return n
}

// recorded counts the calls and otherwise does what f does.
func recorded[In, Out any](w *world, s Stage[In, Out], f func(context.Context, In) (Out, error)) Stage[In, Out] {
	s.Do = func(ctx context.Context, in In) (Out, error) {
		w.called(fmt.Sprintf("%s %v", s.Name, in))
		return f(ctx, in)
	}
	return s
}

// shout is the plainest stage: it asks for one page and joins it to the input.
func (w *world) shout() Stage[string, string] {
	s := Stage[string, string]{Name: "parse/shout", Version: 1, Recipe: map[string]int{"loud": 1}}
	return recorded(w, s, func(ctx context.Context, in string) (string, error) {
		return strings.ToUpper(in + w.ask(ctx, "fetch/"+in)), nil
	})
}

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// outcomeError is an error as clients make them.
type outcomeError struct {
	text, excluded, class string
	attempts              int
	stops                 bool
	wraps                 error
}

func (e *outcomeError) Error() string        { return e.text }
func (e *outcomeError) Excluded() string     { return e.excluded }
func (e *outcomeError) FailureClass() string { return e.class }
func (e *outcomeError) Attempts() int        { return e.attempts }
func (e *outcomeError) StopsRun() bool       { return e.stops }
func (e *outcomeError) Unwrap() error        { return e.wraps }

type codedError struct{}

func (codedError) Error() string         { return "declined" }
func (codedError) FailureReason() string { return "refused" }

func TestSumOf(t *testing.T) {
	type small struct {
		A int     `json:"a"`
		B *int    `json:"b,omitzero"`
		C float64 `json:"c,omitzero"`
	}
	zero, third := 0, 0.1
	third += 0.2
	same := []struct{ a, b any }{
		{map[string]int{"a": 1, "b": 2}, map[string]int{"b": 2, "a": 1}},
		{small{A: 1}, map[string]int{"a": 1}},
		{third, 0.30000000000000004},
		{json.RawMessage(`{ "a" : [1, 2] }`), json.RawMessage(`{"a":[1,2]}`)},
		{[]byte("x"), "eA=="},
	}
	for _, c := range same {
		if SumOf(c.a) != SumOf(c.b) {
			t.Errorf("SumOf(%v) and SumOf(%v) differ", c.a, c.b)
		}
	}
	different := []struct{ a, b any }{
		{small{A: 1}, small{A: 1, B: &zero}},
		{[]string{"ab", "c"}, []string{"a", "bc"}},
		{[]string(nil), []string{}},
		{0.3, third},
		{json.RawMessage(`{"a":1,"b":2}`), json.RawMessage(`{"b":2,"a":1}`)},
	}
	for _, c := range different {
		if SumOf(c.a) == SumOf(c.b) {
			t.Errorf("SumOf(%v) and SumOf(%v) are equal", c.a, c.b)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("SumOf(NaN) did not panic")
		}
	}()
	SumOf(math.NaN())
}

func TestItemJSON(t *testing.T) {
	item := Item{
		FP: SumOf(1), Version: 3, RecipeSum: SumOf(2), InputSum: SumOf(3),
		Deps: []Dep{{"fetch/a", SumOf("a")}}, Out: json.RawMessage(`null`), OutSum: SumOf(nil),
		Fail: &Failure{Class: ClassTransient, Reason: "timeout", Attempts: 2},
		Seen: Seen{Started: noon, Duration: time.Second, Attempts: 4, Why: Missing, Stack: "f x.go:1"},
	}
	raw := must[[]byte](t)(json.Marshal(item))
	var back Item
	if err := json.Unmarshal(raw, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(item, back); diff != "" {
		t.Errorf("an item changed on its way through JSON (-want +got):\n%s", diff)
	}
	if !strings.Contains(string(raw), fmt.Sprintf("%x", item.FP)) {
		t.Errorf("sums are not hexadecimal in %s", raw)
	}
	for _, bad := range []string{`{"fp":"zz"}`, `{"fp":"00"}`, `{"deps":[{"key":1}]}`, `[]`} {
		if err := json.Unmarshal([]byte(bad), &back); err == nil {
			t.Errorf("Unmarshal(%s) gave no error", bad)
		}
	}
}

func TestKind(t *testing.T) {
	for name, want := range map[string]string{"label/raguard": "label", "release": "release", "a/b/c": "a"} {
		if got := (Stage[int, int]{Name: name}).Kind(); got != want {
			t.Errorf("Kind of %s = %q, want %q", name, got, want)
		}
	}
}

// TestReasons walks through every reason why an item runs or does not.
func TestReasons(t *testing.T) {
	fails := func(class string) error { return &outcomeError{text: "no luck", class: class, attempts: 3} }
	excluded := func(reason string) error { return &outcomeError{text: "not for us", excluded: reason} }
	tests := []struct {
		name    string
		first   error // how the first run ends; nil for an output
		never   bool  // there is no first run
		version int   // 0 means as before
		recipe  string
		input   string
		answer  string // "-" takes it away
		decided bool
		options []func(*Options)

		reason Reason
		runs   bool
		// what a run that explains says, where it is not the same
		explained Reason
	}{
		{name: "nothing changed", reason: Fresh},
		{name: "never ran", never: true, reason: Missing, runs: true},
		{name: "version", version: 2, reason: VersionChanged, runs: true},
		{name: "older version", version: -1, reason: VersionChanged, runs: true},
		{name: "recipe", recipe: "other", reason: RecipeChanged, runs: true},
		{name: "input", input: "other", reason: InputChanged, runs: true},
		{name: "answer", answer: "other", reason: AnswerChanged, runs: true},
		{name: "answer gone", answer: "-", reason: AnswerChanged, runs: true},
		{name: "decision", decided: true, reason: Decided, runs: true},
		{name: "version goes before recipe and input", version: 2, recipe: "other", input: "other", reason: VersionChanged, runs: true},
		{name: "recipe goes before input", recipe: "other", input: "other", reason: RecipeChanged, runs: true},

		{name: "transient", first: fails(ClassTransient), reason: FailedBefore, runs: true},
		{name: "budget", first: fails(ClassBudget), reason: FailedBefore, runs: true},
		{name: "waiting", first: fails(ClassWaiting), reason: Waiting, runs: true},
		{name: "permanent", first: fails(ClassPermanent), reason: FailedBefore},
		{name: "blocked failure", first: fails(ClassBlocked), reason: FailedBefore},
		{name: "class nobody knows", first: fails("strange"), reason: FailedBefore},
		{name: "plain error", first: errors.New("no luck"), reason: FailedBefore},
		{name: "permanent, retried", first: fails(ClassPermanent), options: []func(*Options){retryFailed}, reason: FailedBefore, runs: true},
		{name: "blocked failure, retried", first: fails(ClassBlocked), options: []func(*Options){retryFailed}, reason: FailedBefore, runs: true},
		{name: "permanent, version", first: fails(ClassPermanent), version: 2, reason: VersionChanged, runs: true},
		{name: "permanent, recipe", first: fails(ClassPermanent), recipe: "other", reason: RecipeChanged, runs: true},
		{name: "permanent, input", first: fails(ClassPermanent), input: "other", reason: InputChanged, runs: true},
		{name: "permanent, answer", first: fails(ClassPermanent), answer: "other", reason: AnswerChanged, runs: true},
		{name: "transient, answer", first: fails(ClassTransient), answer: "other", reason: FailedBefore, runs: true},

		{name: "excluded", first: excluded("robots"), reason: Fresh},
		{name: "excluded, retried", first: excluded("robots"), options: []func(*Options){retryFailed}, reason: Fresh},
		{name: "excluded, answer", first: excluded("robots"), answer: "other", reason: AnswerChanged, runs: true},
		{name: "excluded, version", first: excluded("robots"), version: 2, reason: VersionChanged, runs: true},
		{name: "blocked exclusion", first: excluded("blocked"), reason: Fresh},
		{name: "blocked exclusion, retried", first: excluded("blocked"), options: []func(*Options){retryFailed}, reason: FailedBefore, runs: true},
		{name: "blocked address, retried", first: excluded("blocked_address"), options: []func(*Options){retryFailed}, reason: FailedBefore, runs: true},

		{name: "stage may not run, fresh", options: []func(*Options){onlyOthers}, reason: Fresh},
		{name: "stage may not run, stale", version: 2, options: []func(*Options){onlyOthers}, reason: Blocked},
		{name: "stage may not run, missing", never: true, options: []func(*Options){onlyOthers}, reason: Blocked},
		{name: "nobody knows answers", options: []func(*Options){func(o *Options) { o.Current = nil }}, reason: AnswerChanged, runs: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ctx := t.Context()
			w := newWorld(t)
			w.answers["fetch/page"], w.answers["decision/item"] = "hello", "none"
			result := tt.first
			type input struct{ Text string }
			s := Stage[input, string]{Name: "parse/x", Version: 1, Recipe: "recipe"}
			s.Do = func(ctx context.Context, in input) (string, error) {
				w.called("do")
				w.ask(ctx, "decision/item")
				return w.ask(ctx, "fetch/page"), result
			}
			in := input{"in"}
			if !tt.never {
				if _, err := Run(ctx, w.run(), s, "k", in); Ends(err) {
					t.Fatal(err)
				}
			}

			result = nil
			s.Version += tt.version
			if tt.recipe != "" {
				s.Recipe = tt.recipe
			}
			if tt.input != "" {
				in.Text = tt.input
			}
			if tt.answer == "-" {
				delete(w.answers, "fetch/page")
			} else if tt.answer != "" {
				w.answers["fetch/page"] = tt.answer
			}
			if tt.decided {
				w.answers["decision/item"] = "drop"
			}
			e := w.run(append(tt.options, explain)...)
			out, err := Run(ctx, e, s, "k", in)
			checkReason(t, "explained", e, tt.reason)
			var blocked *BlockedError
			if stale := tt.runs || tt.reason == Blocked; errors.As(err, &blocked) != stale {
				t.Errorf("explained: Run = %q, %v; blocked should be %v", out, err, stale)
			}
			if w.total() != 0 {
				t.Error("the explaining engine ran the stage")
			}

			e = w.run(tt.options...)
			out, err = Run(ctx, e, s, "k", in)
			checkReason(t, "run", e, tt.reason)
			if got := w.total() == 1; got != tt.runs {
				t.Errorf("ran = %v, want %v", got, tt.runs)
			}
			if tt.runs && (err != nil || out != w.answers["fetch/page"]) {
				t.Errorf("Run = %q, %v", out, err)
			}
			if tt.runs {
				e = w.run()
				if _, err := Run(ctx, e, s, "k", in); err != nil && tt.answer != "-" {
					t.Errorf("run again: %v", err)
				}
				if want := Fresh; tt.answer != "-" {
					checkReason(t, "run again", e, want)
				}
			}
		})
	}
}

func onlyOthers(o *Options) { o.MayRun = func(stage string) bool { return stage != "parse/x" } }

func checkReason(t *testing.T, when string, e *Engine, want Reason) {
	t.Helper()
	var got map[Reason]int
	for _, s := range e.Report().Stages {
		got = s.Reasons
	}
	if diff := cmp.Diff(map[Reason]int{want: 1}, got); diff != "" {
		t.Errorf("%s: reasons (-want +got):\n%s", when, diff)
	}
}

// TestOutcomes says what is recorded for every kind of error, and what ends the run instead.
func TestOutcomes(t *testing.T) {
	disk := fmt.Errorf("put page: %w", kv.ErrDiskFull)
	tests := []struct {
		name string
		err  error
		fail *Failure
		excl *Exclusion
		ends bool
	}{
		{name: "plain", err: errors.New("no verdict on the page"), fail: &Failure{ClassPermanent, "no verdict on the page", 1, ""}},
		{name: "transient", err: &outcomeError{text: "503", class: ClassTransient, attempts: 4}, fail: &Failure{ClassTransient, "503", 4, ""}},
		{name: "wrapped", err: fmt.Errorf("get a: %w", &outcomeError{text: "503", class: ClassTransient, attempts: 4}), fail: &Failure{ClassTransient, "get a: 503", 4, ""}},
		{name: "joined", err: errors.Join(errors.New("a"), &outcomeError{text: "b", class: ClassBlocked}), fail: &Failure{ClassBlocked, "a\nb", 1, ""}},
		{name: "outer has no class", err: &outcomeError{text: "x", wraps: &outcomeError{class: ClassBudget, attempts: 2}}, fail: &Failure{ClassBudget, "x", 2, ""}},
		{name: "deadline of a client", err: fmt.Errorf("get a: %w", context.DeadlineExceeded), fail: &Failure{ClassTransient, "get a: context deadline exceeded", 1, ""}},
		{name: "deadline with class", err: &outcomeError{text: "late", class: ClassPermanent, wraps: context.DeadlineExceeded}, fail: &Failure{ClassPermanent, "late", 1, ""}},
		{name: "record of a client cannot be read", err: &kv.CorruptError{Bucket: "b", Key: "k", Err: errors.New("x")}, fail: &Failure{ClassPermanent, `read record "k" of bucket b: x`, 1, ""}},
		{name: "excluded", err: fmt.Errorf("parse a: %w", &outcomeError{text: "flip", excluded: "flip_o_meter", class: ClassPermanent}), excl: &Exclusion{"flip_o_meter", "parse a: flip"}},
		{name: "with a code", err: fmt.Errorf("label a: %w", codedError{}), fail: &Failure{ClassPermanent, "label a: declined", 1, "refused"}},
		{name: "stops", err: fmt.Errorf("ask: %w", &outcomeError{text: "no money", stops: true}), ends: true},
		{name: "stops, deep", err: &outcomeError{text: "x", class: ClassTransient, wraps: &outcomeError{text: "bad key", stops: true}}, ends: true},
		{name: "stops, excluded", err: &outcomeError{text: "x", excluded: "gone", stops: true}, ends: true},
		{name: "disk full", err: disk, ends: true},
		{name: "store closed", err: fmt.Errorf("put: %w", kv.ErrClosed), ends: true},
		{name: "cancelled", err: fmt.Errorf("get a: %w", context.Canceled), ends: true},
		{name: "cancelled, with class", err: &outcomeError{text: "x", class: ClassTransient, wraps: context.Canceled}, ends: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			w.answers["fetch/in"] = "x"
			s := recorded(w, Stage[string, string]{Name: "parse/x"}, func(ctx context.Context, _ string) (string, error) {
				w.ask(ctx, "fetch/in")
				return "ignored", tt.err
			})
			e := w.run()
			for i := range 2 { // the second time from the record
				out, err := Run(t.Context(), e, s, "k", "in")
				if out != "" {
					t.Errorf("Run returned the output %q", out)
				}
				if tt.ends {
					if !errors.Is(err, tt.err) || !Ends(err) {
						t.Errorf("Run = %v, want %v as it is", err, tt.err)
					}
					continue
				}
				want := &ItemError{"parse/x", "k", tt.fail, tt.excl}
				if diff := cmp.Diff(error(want), err); diff != "" || Ends(err) {
					t.Errorf("call %d (-want +got):\n%s", i, diff)
				}
			}
			item, ok, err := e.Item("parse/x", "k")
			if err != nil || ok == tt.ends {
				t.Fatalf("Item = %v, %v, want %v", ok, err, !tt.ends)
			}
			if tt.ends {
				if n := len(e.Report().Stages); n != 0 {
					t.Errorf("the report has %d stages, want none", n)
				}
				return
			}
			if w.total() != 1 {
				t.Errorf("Do was called %d times", w.total())
			}
			if diff := cmp.Diff([]Dep{{"fetch/in", SumOf("x")}}, item.Deps); diff != "" {
				t.Errorf("answers of the record (-want +got):\n%s", diff)
			}
		})
	}
}

func TestErrorTexts(t *testing.T) {
	tests := map[string]error{
		"parse/x k: transient: 503":                               &ItemError{"parse/x", "k", &Failure{ClassTransient, "503", 1, ""}, nil},
		"parse/x k: excluded (robots)":                            &ItemError{"parse/x", "k", nil, &Exclusion{Reason: "robots"}},
		"parse/x k: excluded (robots): /a":                        &ItemError{"parse/x", "k", nil, &Exclusion{"robots", "/a"}},
		"parse/x k: no outcome":                                   &ItemError{Stage: "parse/x", Key: "k"},
		"parse/x k: not up to date and not run (version-changed)": &BlockedError{Stage: "parse/x", Key: "k", Reason: VersionChanged},
	}
	for want, err := range tests {
		if err.Error() != want {
			t.Errorf("got %q, want %q", err, want)
		}
	}
}

func TestEnds(t *testing.T) {
	item, blocked := &ItemError{}, &BlockedError{}
	for _, err := range []error{nil, item, blocked, fmt.Errorf("claim 1: %w", item), errors.Join(item, blocked)} {
		if Ends(err) {
			t.Errorf("Ends(%v) = true", err)
		}
	}
	for _, err := range []error{errors.New("x"), context.Canceled, context.DeadlineExceeded, errors.Join(item, kv.ErrDiskFull)} {
		if !Ends(err) {
			t.Errorf("Ends(%v) = false", err)
		}
	}
}

// TestEarlyCutOff: what runs again with an equal output leaves what is below it fresh.
func TestEarlyCutOff(t *testing.T) {
	w := newWorld(t)
	words := Stage[string, []string]{Name: "split/words", Version: 1}
	count := recorded(w, Stage[[]string, int]{Name: "count/words", Version: 1}, func(_ context.Context, in []string) (int, error) { return len(in), nil })
	judge := recorded(w, Stage[int, string]{Name: "judge/words", Version: 1}, func(_ context.Context, n int) (string, error) {
		return strings.Repeat("i", n), nil
	})
	walk := func(e *Engine) string {
		words := recorded(w, words, func(ctx context.Context, in string) ([]string, error) { return strings.Fields(w.ask(ctx, in)), nil })
		list := must[[]string](t)(Run(t.Context(), e, words, "k", "text"))
		n := must[int](t)(Run(t.Context(), e, count, "k", list))
		return must[string](t)(Run(t.Context(), e, judge, "k", n))
	}
	tests := []struct {
		name   string
		change func()
		runs   []string
		want   string
	}{
		{"first", func() { w.answers["text"] = "a b" }, []string{"count/words [a b]", "judge/words 2", "split/words text"}, "ii"},
		{"nothing", func() {}, nil, "ii"},
		{"white space", func() { w.answers["text"] = "a  b" }, []string{"split/words text"}, "ii"},
		{"one word", func() { w.answers["text"] = "a c" }, []string{"count/words [a c]", "split/words text"}, "ii"},
		{"version", func() { words.Version = 2 }, []string{"split/words text"}, "ii"},
		{"length", func() { w.answers["text"] = "a" }, []string{"count/words [a]", "judge/words 1", "split/words text"}, "i"},
	}
	for _, tt := range tests {
		tt.change()
		e := w.run()
		if got := walk(e); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
		if got := slices.Sorted(maps.Keys(w.calls)); !slices.Equal(got, tt.runs) {
			t.Errorf("%s: ran %q, want %q", tt.name, got, tt.runs)
		}
		r := e.Report()
		if r.Ran+r.Fresh != 3 {
			t.Errorf("%s: ran %d and fresh %d, want 3 together", tt.name, r.Ran, r.Fresh)
		}
		if tt.name == "white space" && r.Equal != 1 {
			t.Errorf("%s: equal = %d, want 1", tt.name, r.Equal)
		}
	}
}

// TestSeenIsSkipped: time, attempts and the like are in the record and in no sum.
func TestSeenIsSkipped(t *testing.T) {
	w := newWorld(t)
	s := w.shout()
	e := w.run()
	must[string](t)(Run(t.Context(), e, s, "k", "a"))
	one, _, _ := e.Item(s.Name, "k")
	s.Version = 2
	e = w.run(func(o *Options) {
		clock := noon.Add(time.Hour)
		o.Now = func() time.Time { clock = clock.Add(time.Second); return clock }
	})
	must[string](t)(Run(t.Context(), e, s, "k", "a"))
	two, _, _ := e.Item(s.Name, "k")
	if one.OutSum != two.OutSum || one.InputSum != two.InputSum || one.RecipeSum != two.RecipeSum || one.FP == two.FP {
		t.Errorf("sums: %+v and %+v", one, two)
	}
	if diff := cmp.Diff(Seen{Started: noon, Attempts: 1, Why: Missing}, one.Seen); diff != "" {
		t.Errorf("first Seen (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(Seen{Started: noon.Add(time.Hour + 2*time.Second), Duration: time.Second, Attempts: 2, Why: VersionChanged}, two.Seen); diff != "" {
		t.Errorf("second Seen (-want +got):\n%s", diff)
	}
}

// TestStoredForm: a first run returns what a later one will read.
func TestStoredForm(t *testing.T) {
	type out struct {
		When   time.Time
		List   []int
		Text   string
		hidden int
	}
	w := newWorld(t)
	s := Stage[int, out]{Name: "parse/x"}
	s.Do = func(context.Context, int) (out, error) {
		return out{When: time.Now(), Text: "a\xffb", hidden: 1}, nil
	}
	first := must[out](t)(Run(t.Context(), w.run(), s, "k", 1))
	later := must[out](t)(Run(t.Context(), w.run(), s, "k", 1))
	if diff := cmp.Diff(first, later, cmp.AllowUnexported(out{})); diff != "" || first.hidden != 0 || first.Text != "a\uFFFDb" {
		t.Errorf("first and later (-first +later):\n%s", diff)
	}
}

func TestNilOutputIsAnOutput(t *testing.T) {
	w := newWorld(t)
	s := recorded(w, Stage[int, []int]{Name: "parse/x"}, func(context.Context, int) ([]int, error) { return nil, nil })
	for range 2 {
		if out, err := Run(t.Context(), w.run(), s, "k", 1); out != nil || err != nil {
			t.Errorf("Run = %v, %v", out, err)
		}
	}
	if w.total() != 0 {
		t.Error("the second run ran the stage again")
	}
}

func TestUnencodable(t *testing.T) {
	w := newWorld(t)
	number := Stage[float64, float64]{Name: "x/x", Do: func(_ context.Context, x float64) (float64, error) { return math.Sqrt(x), nil }}
	_, err := Run(t.Context(), w.run(), number, "k", -1)
	want := &ItemError{"x/x", "k", &Failure{ClassPermanent, "encode output: json: unsupported value: NaN", 1, ""}, nil}
	if diff := cmp.Diff(error(want), err); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
	if _, err := Run(t.Context(), w.run(), number, "k", math.NaN()); !Ends(err) {
		t.Errorf("input: Run = %v, want the end of the run", err)
	}
	number.Recipe = func() {}
	if _, err := Run(t.Context(), w.run(), number, "k", 1); !Ends(err) {
		t.Errorf("recipe: Run = %v, want the end of the run", err)
	}
}

func TestPanic(t *testing.T) {
	var none map[string]int
	tests := []struct {
		name, text string
		do         func()
	}{
		{"value", "panic: bad page", func() { panic("bad page") }},
		{"error", "panic: bad page", func() { panic(errors.New("bad page")) }},
		{"runtime", "panic: assignment to entry in nil map", func() { none["a"] = 1 }},
		{"stops the run by its error", "panic: x", func() { panic(&outcomeError{text: "x", stops: true}) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			w.answers["fetch/a"] = "x"
			s := recorded(w, Stage[int, int]{Name: "parse/x"}, func(ctx context.Context, _ int) (int, error) {
				w.ask(ctx, "fetch/a")
				tt.do()
				return 0, nil
			})
			e := w.run()
			_, err := Run(t.Context(), e, s, "k", 1)
			want := &ItemError{"parse/x", "k", &Failure{ClassPermanent, tt.text, 1, ""}, nil}
			if diff := cmp.Diff(error(want), err); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			item, _, _ := e.Item("parse/x", "k")
			stack := item.Seen.Stack
			if !strings.HasPrefix(stack, "assay/pipeline.TestPanic") || !strings.Contains(stack, " pipeline_test.go:") {
				t.Errorf("the stack does not begin where the panic was:\n%s", stack)
			}
			if strings.Contains(stack, "/pipeline_test.go") || strings.Contains(stack, "runtime.") || strings.Count(stack, "\n") > 12 {
				t.Errorf("the stack is not short:\n%s", stack)
			}
			if len(item.Deps) != 1 {
				t.Errorf("answers before the panic: %v", item.Deps)
			}
			if again := w.run(); true {
				if _, err := Run(t.Context(), again, s, "k", 1); err == nil || w.total() != 0 {
					t.Errorf("the next run: %v, %d calls", err, w.total())
				}
			}
		})
	}
}

// TestAtOnce: the same item asked for by many at once runs once; the others get its outcome.
func TestAtOnce(t *testing.T) {
	for _, result := range []error{nil, errors.New("no"), &outcomeError{text: "x", excluded: "gone"}, &outcomeError{text: "y", class: ClassTransient}} {
		w := newWorld(t)
		gate := make(chan struct{})
		s := recorded(w, Stage[int, int]{Name: "parse/x"}, func(_ context.Context, in int) (int, error) {
			<-gate
			return in + 1, result
		})
		e := w.run()
		var wg sync.WaitGroup
		errs := make([]error, 32)
		for i := range errs {
			wg.Go(func() { _, errs[i] = Run(t.Context(), e, s, "k", 1) })
		}
		close(gate)
		wg.Wait()
		if w.total() != 1 {
			t.Errorf("%v: ran %d times", result, w.total())
		}
		for _, err := range errs {
			if diff := cmp.Diff(errs[0], err); diff != "" || Ends(err) || (err == nil) != (result == nil) {
				t.Errorf("%v: outcomes differ:\n%s", result, diff)
			}
		}
		if n := len(e.locks); n != 0 {
			t.Errorf("%d locks are left", n)
		}
		if r := e.Report(); r.Ran != 1 || r.Fresh != 0 {
			t.Errorf("%v: the item counts as ran %d, fresh %d", result, r.Ran, r.Fresh)
		}
	}
}

// TestFailsOncePerRun: what failed is not tried again by the same engine, unless it is asked for
// with something else.
func TestFailsOncePerRun(t *testing.T) {
	w := newWorld(t)
	s := recorded(w, Stage[int, int]{Name: "parse/x"}, func(context.Context, int) (int, error) {
		return 0, &outcomeError{text: "503", class: ClassTransient}
	})
	e := w.run(retryFailed)
	ask := func(in, want int) {
		t.Helper()
		if _, err := Run(t.Context(), e, s, "k", in); err == nil || Ends(err) {
			t.Errorf("Run = %v", err)
		}
		if w.total() != want {
			t.Errorf("%d calls, want %d", w.total(), want)
		}
	}
	ask(1, 1)
	ask(1, 1)
	ask(2, 2)
	ask(2, 2)
	e = w.run()
	ask(2, 1)
	ask(2, 1)
	if r := e.Report(); r.Failed != 1 || r.FailedBefore != 0 {
		t.Errorf("failed = %d, before = %d", r.Failed, r.FailedBefore)
	}
}

// TestCancelled: work that was stopped leaves no record, and the same call resumes it.
func TestCancelled(t *testing.T) {
	tests := []struct {
		name string
		do   func(context.Context) error
		kept bool
	}{
		{"says so", func(ctx context.Context) error { return ctx.Err() }, false},
		{"wraps", func(ctx context.Context) error { return fmt.Errorf("get: %w", ctx.Err()) }, false},
		{"fails otherwise", func(context.Context) error { return errors.New("connection lost") }, false},
		{"is excluded", func(context.Context) error { return &outcomeError{text: "x", excluded: "robots"} }, false},
		{"panics", func(context.Context) error { panic("closed") }, false},
		{"ends well", func(context.Context) error { return nil }, true},
	}
	for _, tt := range tests {
		for _, cause := range []error{context.Canceled, context.DeadlineExceeded} {
			t.Run(tt.name+", "+cause.Error(), func(t *testing.T) {
				w := newWorld(t)
				ctx, cancel := context.WithCancel(t.Context())
				if errors.Is(cause, context.DeadlineExceeded) {
					ctx, cancel = context.WithDeadline(t.Context(), time.Now().Add(10*time.Millisecond))
				}
				defer cancel()
				s := recorded(w, Stage[int, int]{Name: "parse/x"}, func(ctx context.Context, _ int) (int, error) {
					if w.total() > 1 {
						return 7, nil
					}
					if errors.Is(cause, context.Canceled) {
						cancel()
					}
					<-ctx.Done()
					return 7, tt.do(ctx)
				})
				e := w.run()
				_, err := Run(ctx, e, s, "k", 1)
				if tt.kept && err != nil || !tt.kept && !errors.Is(err, cause) {
					t.Errorf("Run = %v", err)
				}
				if _, ok, _ := e.Item("parse/x", "k"); ok != tt.kept {
					t.Errorf("recorded: %v, want %v", ok, tt.kept)
				}
				if _, err := Run(ctx, e, s, "k", 1); !errors.Is(err, cause) {
					t.Errorf("a call after the end = %v", err)
				}
				if out, err := Run(t.Context(), e, s, "k", 1); out != 7 || err != nil {
					t.Errorf("resumed: %v, %v", out, err)
				}
			})
		}
	}
}

// TestWaitForLockIsCancelled: who waits for an item that another runs can be stopped.
func TestWaitForLockIsCancelled(t *testing.T) {
	w := newWorld(t)
	running, gate := make(chan struct{}), make(chan struct{})
	s := Stage[int, int]{Name: "parse/x", Do: func(context.Context, int) (int, error) { close(running); <-gate; return 1, nil }}
	e := w.run()
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := Run(t.Context(), e, s, "k", 1); err != nil {
			t.Error(err)
		}
	})
	<-running
	ctx, cancel := context.WithCancel(t.Context())
	wg.Go(func() {
		if _, err := Run(ctx, e, s, "k", 1); !errors.Is(err, context.Canceled) {
			t.Errorf("Run = %v", err)
		}
		close(gate)
	})
	cancel()
	wg.Wait()
	if n := len(e.locks); n != 0 {
		t.Errorf("%d locks are left", n)
	}
}

func TestRunWithinDo(t *testing.T) {
	w := newWorld(t)
	e := w.run()
	inner := w.shout()
	outer := Stage[string, string]{Name: "outer", Do: func(ctx context.Context, in string) (string, error) {
		_, err := Run(ctx, e, inner, "k", in)
		if !Ends(err) || !strings.Contains(err.Error(), "called from within outer o") {
			t.Errorf("Run within Do = %v", err)
		}
		return "", nil
	}}
	must[string](t)(Run(t.Context(), e, outer, "o", "a"))
}

// TestAnswers: they go to the item that runs in the context, sorted, the first of each question.
func TestAnswers(t *testing.T) {
	w := newWorld(t)
	e := w.run()
	late := make(chan context.Context, 1)
	s := Stage[string, int]{Name: "parse/x", Do: func(ctx context.Context, in string) (int, error) {
		for _, q := range []string{"b", "a", "b", "c"} {
			e.Answered(ctx, q, SumOf(in+q))
		}
		e.Answered(ctx, "a", SumOf("something else"))
		late <- ctx
		return 0, nil
	}}
	outs, _, err := All(t.Context(), e, s, func(in string) string { return in }, []string{"one"})
	if err != nil || len(outs) != 1 {
		t.Fatal(outs, err)
	}
	e.Answered(<-late, "d", SumOf("too late"))
	e.Answered(t.Context(), "outside", SumOf(1))
	item, _, _ := e.Item("parse/x", "one")
	want := []Dep{{"a", SumOf("onea")}, {"b", SumOf("oneb")}, {"c", SumOf("onec")}}
	if diff := cmp.Diff(want, item.Deps); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	touched := e.Touched()
	for key, want := range map[string]bool{"a": true, "c": true, "outside": true, "d": false, "one": false} {
		if touched.Dep(key) != want {
			t.Errorf("Touched.Dep(%s) = %v", key, !want)
		}
	}
}

func TestCurrentFails(t *testing.T) {
	w := newWorld(t)
	must[string](t)(Run(t.Context(), w.run(), w.shout(), "k", "a"))
	broken := errors.New("store is broken")
	e := w.run(func(o *Options) {
		o.Current = func(context.Context, string) (Sum, bool, error) { return Sum{}, false, broken }
	})
	if _, err := Run(t.Context(), e, w.shout(), "k", "a"); !errors.Is(err, broken) || !Ends(err) {
		t.Errorf("Run = %v", err)
	}
	e = w.run(func(o *Options) {
		o.Current = func(context.Context, string) (Sum, bool, error) {
			return Sum{}, true, &kv.CorruptError{Bucket: "b", Key: "k", Err: broken}
		}
	})
	must[string](t)(Run(t.Context(), e, w.shout(), "k", "a"))
	checkReason(t, "corrupt answer", e, AnswerChanged)
	if len(w.corrupt) != 1 {
		t.Errorf("reported: %v", w.corrupt)
	}
}

// TestUnreadableRecord: damaged records, records of another schema and outputs of another type are
// reported and made again, in every mode.
func TestUnreadableRecord(t *testing.T) {
	id := itemKey("parse/shout", "k")
	damage := map[string]func(w *world) error{
		"damaged": func(w *world) error { return kv.In[[]byte](w.store, Bucket, BucketVersion).Put(id, []byte("{")) },
		"older schema": func(w *world) error {
			return kv.In[Item](w.store, Bucket, BucketVersion+1).Put(id, Item{})
		},
		"output of another type": func(w *world) error {
			item, _, err := kv.In[Item](w.store, Bucket, BucketVersion).Get(id)
			item.Out = json.RawMessage(`{"a":1}`)
			return errors.Join(err, kv.In[Item](w.store, Bucket, BucketVersion).Put(id, item))
		},
		"no outcome": func(w *world) error {
			item, _, err := kv.In[Item](w.store, Bucket, BucketVersion).Get(id)
			item.Out = nil
			return errors.Join(err, kv.In[Item](w.store, Bucket, BucketVersion).Put(id, item))
		},
	}
	for name, f := range damage {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.answers["fetch/a"] = "b"
			must[string](t)(Run(t.Context(), w.run(), w.shout(), "k", "a"))
			if err := f(w); err != nil {
				t.Fatal(err)
			}
			e := w.run(explain)
			var blocked *BlockedError
			if _, err := Run(t.Context(), e, w.shout(), "k", "a"); !errors.As(err, &blocked) || blocked.Reason != Missing || blocked.Known {
				t.Errorf("explained: %v", err)
			}
			if len(w.corrupt) != 1 || !strings.Contains(w.corrupt[0].Error(), "parse/shout k") {
				t.Errorf("explained: reported %v", w.corrupt)
			}
			e = w.run()
			if out, err := Run(t.Context(), e, w.shout(), "k", "a"); out != "AB" || err != nil {
				t.Errorf("Run = %q, %v", out, err)
			}
			checkReason(t, name, e, Missing)
			if w.total() != 1 || len(w.corrupt) != 1 {
				t.Errorf("%d calls, reported %v", w.total(), w.corrupt)
			}
			must[string](t)(Run(t.Context(), w.run(func(o *Options) { o.Corrupt = nil }), w.shout(), "k", "a"))
			if w.total() != 0 {
				t.Error("the record was not made again")
			}
		})
	}
}

func TestBrokenStoreEndsRun(t *testing.T) {
	store := must[*kv.Store](t)(kv.OpenMemory())
	e := New(Options{Store: store})
	s := Stage[int, int]{Name: "x", Do: func(context.Context, int) (int, error) { return 1, store.Close() }}
	if _, err := Run(t.Context(), e, s, "k", 1); !errors.Is(err, kv.ErrClosed) || !Ends(err) {
		t.Errorf("write: Run = %v", err)
	}
	if _, err := Run(t.Context(), e, s, "k", 1); !errors.Is(err, kv.ErrClosed) || !Ends(err) {
		t.Errorf("read: Run = %v", err)
	}
	if err := e.Block("x", "k"); !errors.Is(err, kv.ErrClosed) {
		t.Errorf("Block = %v", err)
	}
	if _, err := e.Count(""); !errors.Is(err, kv.ErrClosed) {
		t.Errorf("Count = %v", err)
	}
	if _, _, err := e.Item("x", "k"); !errors.Is(err, kv.ErrClosed) {
		t.Errorf("Item = %v", err)
	}
	if r := e.Report(); r.Ran != 0 {
		t.Errorf("the report counts %d", r.Ran)
	}
}

// TestHugeKeysAndOutputs: no single item may end a run.
func TestHugeKeysAndOutputs(t *testing.T) {
	w := newWorld(t)
	long := strings.Repeat("é", 50_000)
	s := recorded(w, Stage[int, int]{Name: "x"}, func(_ context.Context, in int) (int, error) { return in, nil })
	for i, key := range []string{long + "1", long + "2"} {
		if out, err := Run(t.Context(), w.run(), s, key, i); out != i || err != nil || w.total() != 1 {
			t.Errorf("Run = %v, %v", out, err)
		}
		if out, err := Run(t.Context(), w.run(), s, key, i); out != i || err != nil || w.total() != 0 {
			t.Errorf("Run again = %v, %v", out, err)
		}
	}
	fails := Stage[int, int]{Name: "y", Do: func(context.Context, int) (int, error) { return 0, errors.New(long) }}
	e := w.run()
	_, err := Run(t.Context(), e, fails, "k", 1)
	var item *ItemError
	if !errors.As(err, &item) || len(item.Fail.Reason) > 1100 || !strings.HasSuffix(item.Fail.Reason, "é…") {
		t.Errorf("a long reason: %d bytes", len(err.Error()))
	}
}

// TestStore: an output that no record can hold is a failure of its item.
func TestStore(t *testing.T) {
	w := newWorld(t)
	e := w.run()
	j := job{stage: "x", key: "k", id: itemKey("x", "k")}
	item, err := e.store(j, Item{Version: 3, Out: json.RawMessage("{"), Excl: &Exclusion{}})
	if err != nil || item.Fail == nil || item.Out != nil || item.Excl != nil {
		t.Errorf("store = %+v, %v", item, err)
	}
	stored, ok, err := e.Item("x", "k")
	if diff := cmp.Diff(item, stored); diff != "" || !ok || err != nil {
		t.Errorf("the record, %v, %v (-want +got):\n%s", ok, err, diff)
	}
	j.id = strings.Repeat("k", 100_000)
	if _, err := e.store(j, Item{}); err == nil {
		t.Error("a key that the store does not take was stored")
	}
}

// remote is an Executor that keeps what passed through it.
type remote struct {
	mu    sync.Mutex
	asked []string
	do    func(stage string, in json.RawMessage) (json.RawMessage, []Dep, error)
}

func (r *remote) Do(_ context.Context, stage string, in json.RawMessage) (json.RawMessage, []Dep, error) {
	r.mu.Lock()
	r.asked = append(r.asked, stage+" "+string(in))
	r.mu.Unlock()
	return r.do(stage, in)
}

func TestExecutor(t *testing.T) {
	type in struct{ A int }
	type out struct {
		B    int
		List []string
	}
	tests := []struct {
		name  string
		raw   string
		deps  []Dep
		err   error
		panic bool
		want  out
		fail  string
		ends  bool
		local bool
	}{
		{name: "output", raw: ` { "List":["<a>"], "B":2, "more":1 } `, deps: []Dep{{"fetch/a", SumOf("x")}}, want: out{2, []string{"<a>"}}},
		{name: "declined", err: fmt.Errorf("not here: %w", ErrLocal), want: out{1, []string{"<a>"}}, local: true},
		{name: "no JSON", raw: ``, fail: "the stage returned no JSON"},
		{name: "bad JSON", raw: `{"B":`, fail: "unexpected end of JSON input"},
		{name: "another type", raw: `{"B":"x"}`, fail: "json: cannot unmarshal string into Go struct field out.B of type int"},
		{name: "failure", err: errors.New("worker says no"), deps: []Dep{{"fetch/a", SumOf("x")}}, fail: "worker says no"},
		{name: "panic", panic: true, fail: "panic: worker"},
		{name: "end", err: &outcomeError{text: "no money", stops: true}, ends: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := newWorld(t)
			w.answers["fetch/a"] = "x"
			r := &remote{do: func(string, json.RawMessage) (json.RawMessage, []Dep, error) {
				if tt.panic {
					panic("worker")
				}
				return json.RawMessage(tt.raw), tt.deps, tt.err
			}}
			s := recorded(w, Stage[in, out]{Name: "parse/x"}, func(context.Context, in) (out, error) { return out{1, []string{"<a>"}}, nil })
			e := w.run(func(o *Options) { o.Executor = r })
			got, err := Run(t.Context(), e, s, "k", in{3})
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("output (-want +got):\n%s", diff)
			}
			var item *ItemError
			switch {
			case tt.ends:
				if !errors.Is(err, tt.err) {
					t.Errorf("err = %v", err)
				}
				return
			case tt.fail != "":
				if !errors.As(err, &item) || item.Fail == nil || item.Fail.Reason != tt.fail {
					t.Errorf("err = %v, want %s", err, tt.fail)
				}
			case err != nil:
				t.Error(err)
			}
			if diff := cmp.Diff([]string{`parse/x {"A":3}`}, r.asked); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
			if (w.total() == 1) != tt.local {
				t.Errorf("%d calls here", w.total())
			}
			rec, _, _ := e.Item("parse/x", "k")
			if diff := cmp.Diff(tt.deps, rec.Deps); diff != "" {
				t.Errorf("answers (-want +got):\n%s", diff)
			}
			// A record of elsewhere is as good as one of here.
			if _, err := Run(t.Context(), w.run(), s, "k", in{3}); w.total() != 0 {
				t.Errorf("ran again: %v", err)
			}
			if tt.fail == "" && rec.OutSum != SumOf(tt.want) {
				t.Errorf("the sum of the output is not that of its canonical form %s", rec.Out)
			}
		})
	}
}

func TestItems(t *testing.T) {
	w := newWorld(t)
	w.answers["fetch/a"] = "x"
	e := w.run()
	for _, name := range []string{"parse/b", "parse/a", "parsed", "release"} {
		s := Stage[string, string]{Name: name, Version: 2, Do: func(ctx context.Context, in string) (string, error) {
			w.ask(ctx, "fetch/a")
			switch in {
			case "gone":
				return "", &outcomeError{text: "404", excluded: "gone"}
			case "late":
				return "", &outcomeError{text: "503", class: ClassTransient}
			case "batch":
				return "", &outcomeError{text: "batch 1", class: ClassWaiting}
			}
			return in, nil
		}}
		for _, key := range []string{"ok", "gone", "late", "batch"} {
			if _, err := Run(t.Context(), e, s, key, key); Ends(err) {
				t.Fatal(err)
			}
		}
	}
	line := func(stage, key, state, class, reason string, bytes int) ItemInfo {
		return ItemInfo{Stage: stage, Key: key, State: state, Class: class, Reason: reason, Version: 2, Bytes: bytes, Deps: 1, Started: noon, Attempts: 1}
	}
	stage := func(name string) []ItemInfo {
		return []ItemInfo{
			line(name, "batch", "waiting", ClassWaiting, "batch 1", 0),
			line(name, "gone", "excluded", "", "gone", 0),
			line(name, "late", "failed", ClassTransient, "503", 0),
			line(name, "ok", "done", "", "", 4),
		}
	}
	for name, want := range map[string][]ItemInfo{
		"parse/a": stage("parse/a"),
		"parse":   slices.Concat(stage("parse/a"), stage("parse/b")),
		"release": stage("release"),
		"":        slices.Concat(stage("parse/a"), stage("parse/b"), stage("parsed"), stage("release")),
		"pars":    nil,
		"parse/":  nil,
	} {
		var got []ItemInfo
		for item, err := range e.Items(name) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, item)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("Items(%q) (-want +got):\n%s", name, diff)
		}
		if n, err := e.Count(name); n != len(want) || err != nil {
			t.Errorf("Count(%q) = %d, %v, want %d", name, n, err, len(want))
		}
	}
	for range e.Items("") {
		break // must not go on
	}

	if err := kv.In[[]byte](w.store, Bucket, BucketVersion).Put(itemKey("parse/a", "late"), []byte("{")); err != nil {
		t.Fatal(err)
	}
	good, bad := 0, 0
	for item, err := range e.Items("parse/a") {
		if err == nil {
			good++
			continue
		}
		bad++
		if item.Stage != "parse/a" || item.Key != "late" {
			t.Errorf("the unreadable item is %+v", item)
		}
	}
	if good != 3 || bad != 1 {
		t.Errorf("%d readable and %d unreadable, want 3 and 1", good, bad)
	}
	if _, ok, err := e.Item("parse/a", "late"); ok || err == nil {
		t.Errorf("Item of an unreadable record = %v, %v", ok, err)
	}
	if _, ok, err := e.Item("parse/a", "nothing"); ok || err != nil {
		t.Errorf("Item of nothing = %v, %v", ok, err)
	}
}

// goroutines waits until no more than base are left; what ends does so without further ado.
func goroutines(t *testing.T, base int) {
	t.Helper()
	for range 1_000_000 {
		if runtime.NumGoroutine() <= base {
			return
		}
		runtime.Gosched()
	}
	buf := make([]byte, 1<<20)
	t.Errorf("%d goroutines are left, %d were there before:\n%s", runtime.NumGoroutine(), base, buf[:runtime.Stack(buf, true)])
}
