package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A tree is a small corpus as a program walks it: pages are split into claims, claims are planned
// to documents, which claims share, and pairs are labelled; a judge reads a claim's labels.
type tree struct {
	w       *world
	version map[string]int
	pages   []string // in the order of the walk
	label   func(pair string) error
	below   bool // whether the walk goes on below stale items
}

func newTree(t *testing.T) *tree {
	w := newWorld(t)
	for key, answer := range map[string]string{
		"fetch/p1": "c1 c2", "fetch/p2": "c3", // claims of pages
		"index/c1": "d1 d2", "index/c2": "d2", "index/c3": "d3", // documents of claims
		"fetch/d1": "one", "fetch/d2": "two", "fetch/d3": "three",
	} {
		w.answers[key] = answer
	}
	return &tree{w: w, version: map[string]int{}, pages: []string{"p1", "p2"}, below: true}
}

// stage is one whose Do asks one question; its input names it.
func (tr *tree) stage(name, ask string) Stage[string, []string] {
	s := Stage[string, []string]{Name: name, Version: tr.version[name]}
	return recorded(tr.w, s, func(ctx context.Context, in string) ([]string, error) {
		return strings.Fields(tr.w.ask(ctx, ask+in)), nil
	})
}

func (tr *tree) walk(ctx context.Context) error {
	for _, page := range tr.pages {
		claims, err := Run(ctx, tr.w.e, tr.stage("parse/site", "fetch/"), page, page)
		ctx, err := tr.goOn(ctx, err)
		if err != nil {
			return err
		}
		for _, claim := range claims {
			if err := tr.claim(ctx, claim); err != nil {
				return err
			}
		}
	}
	return nil
}

func (tr *tree) claim(ctx context.Context, claim string) error {
	docs, err := Run(ctx, tr.w.e, tr.stage("plan/local", "index/"), claim, claim)
	ctx, err = tr.goOn(ctx, err)
	if err != nil {
		return err
	}
	results, err := Results(ctx, tr.w.e, tr.stage("document/page", "fetch/"), func(d string) string { return d }, docs)
	if err != nil {
		return err
	}
	label := Stage[[]string, string]{Name: "label/stance", Version: tr.version["label/stance"]}
	label = recorded(tr.w, label, func(_ context.Context, in []string) (string, error) {
		if tr.label != nil {
			if err := tr.label(in[0]); err != nil {
				return "", err
			}
		}
		return strings.Join(in, "+"), nil
	})
	var labels []string
	var above error
	for i, r := range results {
		ctx, err := tr.goOn(ctx, r.Err)
		if err != nil {
			return err
		}
		pair := claim + "-" + docs[i]
		got, err := Run(ctx, tr.w.e, label, pair, append([]string{pair}, r.Out...))
		if Ends(err) {
			return err
		}
		var b *BlockedError
		if errors.As(err, &b) {
			above = err
			if b.Known {
				labels = append(labels, got)
			}
		}
		if err == nil {
			labels = append(labels, got)
		}
	}
	judge := recorded(tr.w, Stage[[]string, int]{Name: "judge/count"}, func(_ context.Context, in []string) (int, error) { return len(in), nil })
	ctx, err = tr.goOn(ctx, above)
	if err != nil {
		return err
	}
	if above != nil && len(labels) == 0 {
		return tr.w.e.Block(judge.Name, claim)
	}
	_, err = Run(ctx, tr.w.e, judge, claim, labels)
	if Ends(err) {
		return err
	}
	return nil
}

// goOn goes below a stale item if it can, and past items that are none.
func (tr *tree) goOn(ctx context.Context, err error) (context.Context, error) {
	if tr.below {
		ctx, err = Below(ctx, err)
	}
	if Ends(err) {
		return ctx, err
	}
	return ctx, nil
}

func (tr *tree) status(t *testing.T, change ...func(*Options)) map[string]map[Reason]int {
	t.Helper()
	e := tr.w.run(append(change, explain)...)
	if err := tr.walk(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := tr.w.total(); n != 0 {
		t.Errorf("explaining ran %d items", n)
	}
	return byStage(e.Report())
}

func byStage(r Report) map[string]map[Reason]int {
	got := map[string]map[Reason]int{}
	for _, s := range r.Stages {
		got[s.Name] = s.Reasons
	}
	return got
}

func (tr *tree) build(t *testing.T, change ...func(*Options)) Report {
	t.Helper()
	e := tr.w.run(change...)
	if err := tr.walk(t.Context()); err != nil {
		t.Fatal(err)
	}
	return e.Report()
}

type matrix = map[string]map[Reason]int

// TestExplain: status is the same walk as a build and says what each item waits for; the build then
// runs exactly what it said, less what early cut-off spares.
func TestExplain(t *testing.T) {
	all := func(r Reason) matrix {
		return matrix{"parse/site": {r: 2}, "plan/local": {r: 3}, "document/page": {r: 3}, "label/stance": {r: 4}, "judge/count": {r: 3}}
	}
	with := func(change matrix) matrix {
		m := all(Fresh)
		for name, reasons := range change {
			m[name] = reasons
		}
		return m
	}
	tests := []struct {
		name    string
		prepare func(t *testing.T, tr *tree)
		options []func(*Options)
		want    matrix
		runs    int // Do calls of the build that follows
	}{
		{"nothing stored", nil, nil, matrix{"parse/site": {Missing: 2}}, 15},
		{"all stored", func(t *testing.T, tr *tree) { tr.build(t) }, nil, all(Fresh), 0},
		{"a label prompt", func(t *testing.T, tr *tree) { tr.build(t); tr.version["label/stance"]++ }, nil,
			with(matrix{"label/stance": {VersionChanged: 4}, "judge/count": {Blocked: 3}}), 4},
		{"a site", func(t *testing.T, tr *tree) { tr.build(t); tr.version["parse/site"]++ }, nil,
			matrix{"parse/site": {VersionChanged: 2}, "plan/local": {Blocked: 3}, "document/page": {Blocked: 3}, "label/stance": {Blocked: 4}, "judge/count": {Blocked: 3}}, 2},
		{"one page", func(t *testing.T, tr *tree) { tr.build(t); tr.w.answers["fetch/p2"] = "c3 c1" }, nil,
			matrix{"parse/site": {AnswerChanged: 1, Fresh: 1}, "plan/local": {Fresh: 2, Blocked: 1}, "document/page": {Fresh: 2, Blocked: 1}, "label/stance": {Fresh: 3, Blocked: 1}, "judge/count": {Fresh: 2, Blocked: 1}}, 1},
		{"a document that two claims share", func(t *testing.T, tr *tree) { tr.build(t); tr.w.answers["fetch/d2"] = "zwei" }, nil,
			with(matrix{"document/page": {AnswerChanged: 1, Fresh: 2}, "label/stance": {Fresh: 2, Blocked: 2}, "judge/count": {Fresh: 1, Blocked: 2}}), 5},
		{"a search", func(t *testing.T, tr *tree) { tr.build(t); tr.w.answers["index/c2"] = "d2 d3" }, nil,
			with(matrix{"plan/local": {AnswerChanged: 1, Fresh: 2}, "label/stance": {Fresh: 3, Blocked: 1}, "judge/count": {Fresh: 2, Blocked: 1}}), 3},
		{"labels failed", func(t *testing.T, tr *tree) {
			tr.label = func(pair string) error {
				switch pair {
				case "c1-d1":
					return &outcomeError{text: "503", class: ClassTransient}
				case "c1-d2":
					return errors.New("permanent")
				case "c2-d2":
					return &outcomeError{text: "x", excluded: "blocked"}
				case "c3-d3":
					return &outcomeError{text: "batch", class: ClassWaiting}
				}
				return nil
			}
			tr.build(t)
			tr.label = nil
		}, nil, with(matrix{"label/stance": {FailedBefore: 2, Fresh: 1, Waiting: 1}, "judge/count": {Fresh: 1, Blocked: 2}}), 4},
		{"labels failed, all retried", func(t *testing.T, tr *tree) {
			tr.label = func(pair string) error { return &outcomeError{text: pair, excluded: "blocked"} }
			tr.build(t)
			tr.label = nil
		}, []func(*Options){retryFailed}, with(matrix{"label/stance": {FailedBefore: 4}, "judge/count": {Blocked: 3}}), 7},
		{"only labels may run", func(t *testing.T, tr *tree) {
			tr.build(t)
			tr.version["label/stance"]++
			tr.w.answers["fetch/d3"] = "drei"
		}, []func(*Options){func(o *Options) {
			o.MayRun = func(stage string) bool { return stage == "label/stance" }
		}}, with(matrix{"document/page": {Blocked: 1, Fresh: 2}, "label/stance": {VersionChanged: 3, Blocked: 1}, "judge/count": {Blocked: 3}}), 3},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tr := newTree(t)
			if tt.prepare != nil {
				tt.prepare(t, tr)
			}
			for range 2 { // looking changes nothing
				if diff := cmp.Diff(tt.want, tr.status(t, tt.options...)); diff != "" {
					t.Fatalf("status (-want +got):\n%s", diff)
				}
			}
			r := tr.build(t, tt.options...)
			if got := tr.w.total(); got != tt.runs || r.Ran != tt.runs {
				t.Errorf("the build called Do %d times and reports %d, want %d: %v", got, r.Ran, tt.runs, tr.w.calls)
			}
			if len(tt.options) == 0 {
				again := tr.build(t)
				if got := tr.w.total(); got != 0 {
					t.Errorf("the next build called Do %d times: %v", got, again)
				}
			}
		})
	}
}

// TestExplainStopsAtStale: a walk that does not go below stale items sees nothing of what is there.
func TestExplainStopsAtStale(t *testing.T) {
	tr := newTree(t)
	tr.build(t)
	tr.below = false
	tr.version["plan/local"]++
	e := tr.w.run(explain)
	claims := must[[]string](t)(Run(t.Context(), e, tr.stage("parse/site", "fetch/"), "p1", "p1"))
	docs, _, err := All(t.Context(), e, tr.stage("plan/local", "index/"), func(s string) string { return s }, claims)
	var b *BlockedError
	if !errors.As(err, &b) || b.Reason != VersionChanged || !b.Known || b.Stage != "plan/local" {
		t.Errorf("All = %v", err)
	}
	if diff := cmp.Diff([][]string{{"d1", "d2"}, {"d2"}}, docs); diff != "" {
		t.Errorf("last outputs (-want +got):\n%s", diff)
	}
	same, err := Below(t.Context(), errors.New("x"))
	if same != t.Context() || err == nil {
		t.Error("Below took an error that ends the run")
	}
	if _, err := Below(t.Context(), &BlockedError{}); err == nil {
		t.Error("Below took an item without an output")
	}
	if _, err := Below(t.Context(), &ItemError{}); err == nil {
		t.Error("Below took an outcome")
	}
	if _, err := Below(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

func TestWhy(t *testing.T) {
	tr := newTree(t)
	tr.label = func(pair string) error {
		switch pair {
		case "c3-d3":
			return &outcomeError{text: "503 of host", class: ClassTransient, attempts: 4}
		case "c2-d2":
			return &outcomeError{text: "captcha", excluded: "blocked"}
		}
		return nil
	}
	tr.build(t)
	tr.version["label/stance"] = 0
	tr.w.answers["fetch/d1"] = "eins"
	tr.w.answers["fetch/p2"] = "c3 c9"
	delete(tr.w.answers, "index/c2")
	tr.status(t, func(o *Options) {
		o.Why = func(stage, key string) bool { return stage != "judge/count" }
		o.Order = []string{"parse/site", "plan/local", "document/page", "label/stance"}
	})
	want := []Explanation{
		{"parse/site", "p1", Fresh, ""},
		{"parse/site", "p2", AnswerChanged, "fetch/p2 answers otherwise"},
		{"plan/local", "c1", Fresh, ""},
		{"plan/local", "c2", AnswerChanged, "index/c2 has no answer now"},
		{"plan/local", "c3", Blocked, "below parse/site p2 (answer-changed)"},
		{"document/page", "d1", AnswerChanged, "fetch/d1 answers otherwise"},
		{"document/page", "d2", Fresh, ""},
		{"document/page", "d3", Blocked, "below parse/site p2 (answer-changed)"},
		{"label/stance", "c1-d1", Blocked, "below document/page d1 (answer-changed)"},
		{"label/stance", "c1-d2", Fresh, ""},
		{"label/stance", "c2-d2", Blocked, "below plan/local c2 (answer-changed)"},
		{"label/stance", "c3-d3", Blocked, "below parse/site p2 (answer-changed)"},
	}
	if diff := cmp.Diff(want, tr.w.e.Why()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	details := map[string]func() []func(*Options){
		"label/stance c3-d3: failed-before: transient after 4 attempt(s): 503 of host": func() []func(*Options) { return nil },
		"label/stance c2-d2: fresh: excluded (blocked): captcha":                       func() []func(*Options) { return nil },
		"label/stance c1-d2: version-changed: version 0, now 7": func() []func(*Options) {
			tr.version["label/stance"] = 7
			return nil
		},
		"document/page d3: blocked: its stage may not run; version-changed: version 0, now 5": func() []func(*Options) {
			tr.version["document/page"] = 5
			return []func(*Options){func(o *Options) { o.MayRun = func(string) bool { return false } }}
		},
		"judge/count c4: blocked: what it works on is not there yet": func() []func(*Options) { return nil },
	}
	for want, prepare := range details {
		tr := newTreeLike(t, tr)
		options := prepare()
		e := tr.w.run(append(options, explain, func(o *Options) {
			o.Why = func(stage, key string) bool { return strings.HasPrefix(want, stage+" "+key+":") }
		})...)
		if err := tr.walk(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := e.Block("judge/count", "c4"); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, x := range e.Why() {
			got = append(got, fmt.Sprintf("%s %s: %s: %s", x.Stage, x.Key, x.Reason, x.Detail))
		}
		if !slices.Equal(got, []string{want}) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// newTreeLike puts the world of a tree back into the state in which it was built.
func newTreeLike(t *testing.T, tr *tree) *tree {
	fresh := newTree(t)
	tr.w.answers = fresh.w.answers
	tr.version = map[string]int{}
	return tr
}

// TestCountsOnce: an item that several others share counts once, and not as blocked if one of them
// reaches it unblocked, in either order.
func TestCountsOnce(t *testing.T) {
	for _, pages := range [][]string{{"p1", "p2"}, {"p2", "p1"}} {
		tr := newTree(t)
		tr.w.answers["index/c3"] = "d2"
		tr.pages = pages
		tr.build(t)
		if r := tr.build(t); r.Fresh != 2+3+2+4+3 {
			t.Errorf("%v: fresh = %d", pages, r.Fresh)
		}
		tr.w.answers["fetch/p2"] = "c3 " // another spelling, stale until it has run
		want := matrix{"parse/site": {AnswerChanged: 1, Fresh: 1}, "plan/local": {Fresh: 2, Blocked: 1}, "document/page": {Fresh: 2}, "label/stance": {Fresh: 3, Blocked: 1}, "judge/count": {Fresh: 2, Blocked: 1}}
		if diff := cmp.Diff(want, tr.status(t)); diff != "" {
			t.Errorf("%v: status (-want +got):\n%s", pages, diff)
		}
	}
}

// TestTouched: a walk that explains touches what is live, also below stale and failed items, with
// the answers it rests on, and nothing else.
func TestTouched(t *testing.T) {
	tr := newTree(t)
	tr.build(t)
	tr.pages = []string{"p1"} // p2 has left the listing; c3, d3 and what hangs on them are dead
	check := func(when string, e *Engine) {
		t.Helper()
		touched := e.Touched()
		for item, want := range map[string]bool{
			"parse/site p1": true, "plan/local c1": true, "document/page d2": true, "label/stance c2-d2": true, "judge/count c2": true,
			"parse/site p2": false, "plan/local c3": false, "document/page d3": false, "label/stance c3-d3": false, "judge/count c3": false,
			"plan/local d1": false,
		} {
			stage, key, _ := strings.Cut(item, " ")
			if touched.Item(stage, key) != want || touched.Record(itemKey(stage, key)) != want {
				t.Errorf("%s: Touched.Item(%s) = %v", when, item, !want)
			}
		}
		for key, want := range map[string]bool{"fetch/p1": true, "index/c2": true, "fetch/d1": true, "fetch/p2": false, "index/c3": false, "fetch/d3": false} {
			if touched.Dep(key) != want {
				t.Errorf("%s: Touched.Dep(%s) = %v", when, key, !want)
			}
		}
		if items, answers := touched.Len(); items != 10 || answers != 5 {
			t.Errorf("%s: touched %d items and %d answers, want 10 and 5", when, items, answers)
		}
	}
	tr.status(t)
	check("fresh", tr.w.e)
	tr.version["parse/site"]++
	tr.status(t)
	check("stale at the root", tr.w.e)
	tr.version["parse/site"]--
	tr.w.answers["index/c1"] += " "
	tr.status(t)
	check("stale in the middle", tr.w.e)
	tr.build(t)
	check("after a build", tr.w.e)

	// A failure of now keeps what a success of then has paid for.
	tr.version["document/page"]++
	e := tr.w.run()
	failing := tr.stage("document/page", "fetch/")
	failing.Do = func(ctx context.Context, in string) ([]string, error) {
		tr.w.ask(ctx, "fetch/"+in)
		return nil, &outcomeError{text: "503", class: ClassTransient}
	}
	if _, n, err := All(t.Context(), e, failing, func(s string) string { return s }, []string{"d1", "d2"}); n != 2 || err != nil {
		t.Fatal(n, err)
	}
	tr.status(t)
	check("documents failed", tr.w.e)
}
