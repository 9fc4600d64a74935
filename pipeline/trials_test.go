package pipeline

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay/kv"
)

const (
	victimStore = "ASSAY_TEST_VICTIM_STORE" // names the store of the process that is killed
	victimItems = 50
	victimAtOne = 4 // items at once
)

// TestMain lets the test binary be the process that TestHD16 kills.
func TestMain(m *testing.M) {
	if dir := os.Getenv(victimStore); dir != "" {
		if err := victim(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// victim labels items, tells the model's log of every call, and tells its output of every item that
// it was handed; then it waits for a line before it takes the next one.
func victim(dir string) error {
	store, err := kv.Open(dir, kv.Options{})
	if err != nil {
		return err
	}
	calls, err := os.OpenFile(filepath.Join(dir, "calls"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	e := New(Options{Store: store, Current: func(_ context.Context, key string) (Sum, bool, error) { return SumOf(key), true, nil }})
	label := Stage[int, string]{Name: "label/x", Do: func(ctx context.Context, in int) (string, error) {
		e.Answered(ctx, fmt.Sprintf("llm/%d", in), SumOf(fmt.Sprintf("llm/%d", in)))
		_, err := fmt.Fprintf(calls, "%d\n", in)
		return fmt.Sprintf("label %d", in), err
	}}
	next := bufio.NewScanner(os.Stdin)
	for out, err := range Each(ctx, victimAtOne, numbers(victimItems, nil), func(ctx context.Context, in int) (string, error) {
		return Run(ctx, e, label, strconv.Itoa(in), in)
	}) {
		if err != nil {
			return err
		}
		fmt.Println(out)
		next.Scan()
	}
	return store.Close()
}

// runVictim lets the victim go on until it handed over killAfter items, then kills it; a negative
// number lets it end. It returns what it handed over, sorted.
func runVictim(t *testing.T, dir string, killAfter int) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), victimStore+"="+dir)
	cmd.Stderr = os.Stderr
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var handed []string
	for lines := bufio.NewScanner(out); len(handed) != killAfter && lines.Scan(); {
		handed = append(handed, lines.Text())
		if len(handed) == killAfter {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			break
		}
		if _, err := io.WriteString(in, "\n"); err != nil {
			t.Fatal(err)
		}
	}
	if err := cmd.Wait(); (err == nil) != (killAfter < 0) {
		t.Fatalf("the victim ended with %v", err)
	}
	slices.Sort(handed)
	return handed
}

// TestHD16 is the whole kind: a process that is killed at any moment is resumed by the same start,
// nothing that it handed over is done again, and what it did twice is at most what was in flight.
func TestHD16(t *testing.T) {
	var want []string
	for i := range victimItems {
		want = append(want, fmt.Sprintf("label %d", i))
	}
	slices.Sort(want)
	tests := map[string][]int{
		"after the 20th":                     {20},
		"after the first":                    {1},
		"after the last, before it ends":     {victimItems},
		"four times":                         {5, 15, 25, 45},
		"while it only reads what is stored": {30, 10},
	}
	for name, kills := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			calls := func() []string {
				log, err := os.ReadFile(filepath.Join(dir, "calls"))
				if err != nil {
					t.Fatal(err)
				}
				return strings.Fields(string(log))
			}
			handed := map[string]bool{}
			for _, after := range kills {
				for _, out := range runVictim(t, dir, after) {
					handed[out] = true
				}
			}
			before := calls()
			if diff := cmp.Diff(want, runVictim(t, dir, -1)); diff != "" {
				t.Errorf("after the kills (-want +got):\n%s", diff)
			}
			all := calls()
			for _, again := range all[len(before):] {
				if handed["label "+again] {
					t.Errorf("item %s was handed over and done again", again)
				}
			}
			distinct := slices.Compact(slices.Sorted(slices.Values(all)))
			if len(distinct) != victimItems || len(all) > victimItems+victimAtOne*len(kills) {
				t.Errorf("%d calls for %d items, want at most %d for %d", len(all), len(distinct), victimItems+victimAtOne*len(kills), victimItems)
			}
			if diff := cmp.Diff(want, runVictim(t, dir, -1)); diff != "" {
				t.Errorf("the third start (-want +got):\n%s", diff)
			}
			if n := len(calls()) - len(all); n != 0 {
				t.Errorf("the third start made %d calls", n)
			}
		})
	}
}

// A model is a client that pays once for each distinct request and tells the engine what it said.
type model struct {
	w     *world
	mu    sync.Mutex
	paid  map[Sum]string
	calls int
}

type request struct {
	Prompt      string
	Temperature *float64
	Text        string
}

func (m *model) complete(ctx context.Context, r request) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := SumOf(r)
	if _, ok := m.paid[key]; !ok {
		m.calls++
		m.paid[key] = fmt.Sprintf("answer to %q", r.Text)
	}
	m.w.e.Answered(ctx, fmt.Sprintf("llm/%x", key), SumOf(m.paid[key]))
	return m.paid[key]
}

func (m *model) current(_ context.Context, key string) (Sum, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for k, answer := range m.paid {
		if key == fmt.Sprintf("llm/%x", k) {
			return SumOf(answer), true, nil
		}
	}
	return Sum{}, false, nil
}

// TestHD17 is the whole kind: what an output was made with is never other than what it says it was
// made with, by whatever part of the settings differs, and what was paid for is not paid again.
func TestHD17(t *testing.T) {
	type settings struct {
		Prompt      string
		Temperature *float64
	}
	type label struct {
		Answer string
		By     Sum // of the settings
	}
	zero, warm := 0.0, 0.7
	p1 := settings{"is it true?", &zero}
	w := newWorld(t)
	m := &model{w: w, paid: map[Sum]string{}}
	var first []label
	steps := []struct {
		name    string
		set     settings
		version int
		calls   int // of the model
		runs    int // of the stage
	}{
		{"A", p1, 1, 20, 20},
		{"A again", p1, 1, 0, 0},
		{"B: one word", settings{"is it false?", &zero}, 1, 20, 20},
		{"C: temperature", settings{p1.Prompt, &warm}, 1, 20, 20},
		{"D: as A", p1, 1, 0, 20},
		{"D again", p1, 1, 0, 0},
		{"unset is not zero", settings{p1.Prompt, nil}, 1, 20, 20},
		{"white space", settings{p1.Prompt + " ", &zero}, 1, 20, 20},
		{"version of the code", p1, 2, 0, 20},
	}
	for _, step := range steps {
		e := w.run(func(o *Options) { o.Current = m.current })
		m.calls = 0
		s := recorded(w, Stage[int, label]{Name: "label/x", Version: step.version, Recipe: step.set}, func(ctx context.Context, in int) (label, error) {
			answer := m.complete(ctx, request{step.set.Prompt, step.set.Temperature, strconv.Itoa(in)})
			return label{answer, SumOf(step.set)}, nil
		})
		outs, _, err := All(t.Context(), e, s, strconv.Itoa, slices.Collect(func(yield func(int) bool) {
			for i := range 20 {
				yield(i)
			}
		}))
		if err != nil {
			t.Fatal(err)
		}
		if m.calls != step.calls || w.total() != step.runs {
			t.Errorf("%s: %d calls and %d runs, want %d and %d", step.name, m.calls, w.total(), step.calls, step.runs)
		}
		for _, out := range outs {
			if out.By != SumOf(step.set) {
				t.Errorf("%s: an output of other settings was returned", step.name)
			}
		}
		if first == nil {
			first = outs
		}
		if step.set == p1 {
			if diff := cmp.Diff(first, outs); diff != "" {
				t.Errorf("%s: differs from A (-want +got):\n%s", step.name, diff)
			}
		}
	}
}
