package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// ending is a stage whose items end in every way there is; a second version mends most of them.
func ending(w *world, version int) Stage[int, int] {
	s := Stage[int, int]{Name: "label/stance", Version: version}
	return recorded(w, s, func(_ context.Context, in int) (int, error) {
		if version > 1 && in < 30 {
			return in, nil
		}
		switch in % 10 {
		case 1:
			return 0, &outcomeError{text: "status 503\nof the endpoint", class: ClassTransient, attempts: 3}
		case 2:
			return 0, errors.New("no such label: maybe")
		case 3:
			return 0, &outcomeError{text: "captcha", excluded: "blocked"}
		case 4, 5:
			return 0, &outcomeError{text: "/a is disallowed", excluded: "robots"}
		case 6:
			return 0, &outcomeError{text: "batch 7", class: ClassWaiting}
		}
		return in, nil
	})
}

func TestReport(t *testing.T) {
	w := newWorld(t)
	w.answers["fetch/a"] = "page"
	build := func(version, n int, change ...func(*Options)) Report {
		clock := noon
		e := w.run(append(change, func(o *Options) {
			o.Order = []string{"parse/shout", "label/stance", "judge/never"}
			o.Now = func() time.Time { return clock }
		})...)
		clock = clock.Add(3*time.Minute + 12*time.Second + 345678*time.Microsecond)
		ins := make([]int, n)
		for i := range ins {
			ins[i] = i
		}
		key := func(in int) string { return "pair-" + strconv.Itoa(in) }
		if _, _, err := All(t.Context(), e, ending(w, version), key, ins); Ends(err) {
			t.Fatal(err)
		}
		if _, err := Run(t.Context(), e, w.shout(), "k", "a"); Ends(err) {
			t.Fatal(err)
		}
		e.Expect("judge/never", 7) // no item of it was ever asked for
		return e.Report()
	}
	first := build(1, 40)
	golden(t, "report.txt", first.Text())
	want := Counts{Ran: 41, Failed: 8, Excluded: 12, Waiting: 4}
	if diff := cmp.Diff(want, first.Counts); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	raw, err := json.MarshalIndent(first, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "report.json", string(raw)+"\n")
	var back Report
	if err := json.Unmarshal(raw, &back); err != nil {
		t.Fatal(err)
	}
	golden(t, "report.txt", back.Text())

	second := build(2, 45)
	golden(t, "report-second.txt", second.Text())
	third := build(2, 45, explain)
	golden(t, "status.txt", third.Status())
	fourth := build(2, 45)
	golden(t, "report-fourth.txt", fourth.Text())
	if fourth.Failed != 2 || fourth.FailedBefore != 2 {
		// Of pairs 31, 32, 41 and 42 the transient ones are tried again, the permanent ones not.
		t.Errorf("the fourth run: failed %d, before %d", fourth.Failed, fourth.FailedBefore)
	}
	if text := (Report{}).Text(); !strings.Contains(text, "total") {
		t.Errorf("an empty report is %q", text)
	}
}

// TestReportWhileRunning: reports may be asked for at any time, and are the caller's to keep.
func TestReportWhileRunning(t *testing.T) {
	w := newWorld(t)
	e := w.run()
	s := Stage[int, int]{Name: "x", Do: func(_ context.Context, in int) (int, error) {
		r := e.Report()
		for _, st := range r.Stages {
			st.Reasons[Missing] = -1
		}
		return in, nil
	}}
	if _, _, err := All(t.Context(), e, s, strconv.Itoa, []int{1, 2, 3, 4, 5, 6}); err != nil {
		t.Fatal(err)
	}
	if got := e.Report().Stages[0].Reasons[Missing]; got != 6 {
		t.Errorf("missing = %d, want 6", got)
	}
}

// Stages of one kind with one reason are one line, unless they are few or something else stands among them.
func TestFolded(t *testing.T) {
	stage := func(name string, reasons map[Reason]int) StageReport {
		return StageReport{Name: name, Reasons: reasons}
	}
	r := Report{Stages: []StageReport{
		stage("discover/a", map[Reason]int{Missing: 1}), stage("discover/b", map[Reason]int{Missing: 2}), stage("discover/c", map[Reason]int{Fresh: 1, Missing: 1}),
		stage("discover/d", map[Reason]int{Missing: 3}), stage("discover/e", map[Reason]int{Missing: 4}),
		stage("parse/a", map[Reason]int{Fresh: 5}), stage("parse/b", map[Reason]int{Fresh: 5}), stage("parse/c", map[Reason]int{Fresh: 5}),
		stage("read/a", map[Reason]int{FailedBefore: 1}), stage("read/b", map[Reason]int{FailedBefore: 1}), stage("read/c", map[Reason]int{FailedBefore: 1}),
		stage("read/d", map[Reason]int{FailedBefore: 1}),
	}}
	var got []string
	for _, s := range r.Folded().Stages {
		got = append(got, fmt.Sprint(s.Name, " ", s.Reasons[Missing], s.Reasons[Fresh], s.Reasons[FailedBefore]))
	}
	want := []string{"discover/* (4) 10 0 0", "discover/c 1 1 0", "parse/a 0 5 0", "parse/b 0 5 0", "parse/c 0 5 0", "read/a 0 0 1", "read/b 0 0 1", "read/c 0 0 1", "read/d 0 0 1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("stages (-want +got):\n%s", diff)
	}
	if r.Stages[0].Reasons[Missing] != 1 {
		t.Error("the report itself changed")
	}
}
