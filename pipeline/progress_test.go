package pipeline

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A paper is a writer that many may write to.
type paper struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (p *paper) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.buf.Write(b)
}

func (p *paper) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.buf.String()
}

func env(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

// TestLines: away from a terminal there is one line a minute, and nothing between.
func TestLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // the bubble's clock begins on 2000-01-01
		var w paper
		var spent atomic.Value
		spent.Store("")
		d := NewDisplay(DisplayOptions{W: &w, Getenv: env(), Note: func() string { return spent.Load().(string) }})
		minute := func(updates ...Tally) string {
			t.Helper()
			before := w.String()
			time.Sleep(59 * time.Second)
			synctest.Wait()
			if now := w.String(); now != before {
				t.Errorf("something was written within the minute: %q", now[len(before):])
			}
			for _, u := range updates {
				d.Update(u)
			}
			time.Sleep(time.Second)
			synctest.Wait()
			return w.String()[len(before):]
		}
		steps := []struct {
			updates []Tally
			note    string
			want    string
		}{
			{nil, "", "2000-01-01T00:01:00Z nothing done yet\n"},
			{[]Tally{{"parse/site", 900, 0, 0, 1000}}, "", "2000-01-01T00:02:00Z parse/site 900/1000\n"},
			{[]Tally{{"parse/site", 960, 60, 2, 1000}, {"label/x", 5, 5, 0, 0}}, "$0.10", "2000-01-01T00:03:00Z parse/site 960/1000, 1.0/s, 40s left, 2 failed; label/x 5, 5.0/s; $0.10\n"},
			{[]Tally{{"label/x", 6, 6, 0, 0}}, "$0.11", "2000-01-01T00:04:00Z label/x 6, 1.7/min; $0.11\n"},
			{nil, "$0.11", "2000-01-01T00:05:00Z nothing new; parse/site 960/1000, 1.0/min, 42m0s left, 2 failed; label/x 6, 0.2/min; $0.11\n"},
			{[]Tally{{"parse/site", 1010, 110, 2, 1000}}, "", "2000-01-01T00:06:00Z parse/site 1010/1010, 43.4/min, 2 failed\n"},
		}
		for _, s := range steps {
			spent.Store(s.note)
			if diff := cmp.Diff(s.want, minute(s.updates...)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		}
		before := w.String()
		if _, err := d.Write([]byte("a warning\n")); err != nil {
			t.Error(err)
		}
		d.Close()
		if got := w.String()[len(before):]; got != "a warning\n" {
			t.Errorf("at the end: %q", got)
		}
	})
}

// TestInjectedTick: clock and ticker may be given.
func TestInjectedTick(t *testing.T) {
	tick := make(chan time.Time)
	var w paper
	d := NewDisplay(DisplayOptions{W: &w, Tick: tick, Now: func() time.Time { return noon }})
	d.Update(Tally{"parse/site", 1, 1, 0, 2})
	tick <- noon
	d.Close()
	if got, want := w.String(), "2026-03-01T12:00:00Z parse/site 1/2\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestBars: on a terminal there is a bar per stage, drawn over again, with colours unless NO_COLOR
// is set, and a last time at the end.
func TestBars(t *testing.T) {
	for _, colour := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			var w paper
			getenv := env()
			if !colour {
				getenv = env("NO_COLOR", "1")
			}
			d := newDisplay(DisplayOptions{W: &w, Getenv: getenv, Note: func() string { return "$0.10 spent" }}, true)
			d.Update(Tally{"parse/site", 100, 0, 0, 200})
			time.Sleep(time.Second)
			d.Update(Tally{"parse/site", 150, 50, 3, 200})
			d.Update(Tally{"label/stance", 7, 7, 0, 0})
			if _, err := d.Write([]byte("a warning\n")); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Second)
			synctest.Wait()
			d.Update(Tally{"label/stance", 9, 9, 0, 0})
			d.Close()
			if _, err := d.Write([]byte("after the end\n")); err != nil {
				t.Error(err)
			}
			got := w.String()
			screen := show(got)
			want := []string{"a warning", "parse/site 150/200", "label/stance 9", "$0.10 spent", "after the end"}
			if len(screen) != len(want) {
				t.Fatalf("the screen shows\n%s", strings.Join(screen, "\n"))
			}
			for i, line := range screen {
				if got := strings.Join(strings.Fields(strings.Split(line, "[")[0]), " "); got != want[i] {
					t.Errorf("line %d is %q, want it to begin with %q", i, line, want[i])
				}
			}
			if !strings.Contains(screen[1], "3 failed") || !strings.Contains(screen[1], " left") || !strings.Contains(screen[1], "=>") {
				t.Errorf("the bar of a stage is %q", screen[1])
			}
			if has := strings.Contains(got, "\x1b[32m"); has != colour {
				t.Errorf("colours: %v, want %v, in %q", has, colour, got)
			}
		})
	}
}

// show is what a terminal shows after it was sent this: colours fall away, and "up n lines and
// erase" is obeyed.
func show(sent string) []string {
	var lines []string
	for i, part := range strings.Split(sent, "\x1b[") {
		if i > 0 {
			end := strings.IndexAny(part, "AJmK")
			n, _ := strconv.Atoi(part[:end])
			if part[end] == 'A' {
				lines = lines[:len(lines)-n]
			}
			part = part[end+1:]
		}
		if len(lines) > 0 && !strings.HasSuffix(lines[len(lines)-1], "\n") {
			part = lines[len(lines)-1] + part
			lines = lines[:len(lines)-1]
		}
		if part != "" {
			lines = append(lines, strings.SplitAfter(part, "\n")...)
		}
		if n := len(lines); n > 0 && lines[n-1] == "" {
			lines = lines[:n-1]
		}
	}
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], "\n")
	}
	return lines
}

// broken is a terminal that went away.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("input/output error") }

// TestDisplayWithoutReader: a display nobody can see does not stop a run, and leaves nothing behind.
func TestDisplayWithoutReader(t *testing.T) {
	for _, terminal := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			d := newDisplay(DisplayOptions{W: broken{}, Getenv: env()}, terminal)
			for i := range 5 {
				d.Update(Tally{"parse/site", i, i, 0, 5})
				time.Sleep(time.Minute)
			}
			d.Close()
		})
	}
}

// TestNewDisplay: a file that is no terminal gets lines.
func TestNewDisplay(t *testing.T) {
	f, err := os.Create(t.TempDir() + "/log")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	d := NewDisplay(DisplayOptions{W: f})
	d.Close()
	if d.bars != nil {
		t.Error("a file got bars")
	}
}

// tallies keeps what an engine tells.
type tallies struct {
	mu   sync.Mutex
	last map[string]Tally
	n    int
}

func (p *tallies) Update(t Tally) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last[t.Stage] = t
	p.n++
}

// TestProgress: the engine tells of every item once, and never of more than there are.
func TestProgress(t *testing.T) {
	w := newWorld(t)
	s := recorded(w, Stage[int, int]{Name: "x"}, func(_ context.Context, in int) (int, error) {
		if in == 2 {
			return 0, errors.New("no")
		}
		return in, nil
	})
	for _, want := range []Tally{{"x", 3, 3, 1, 5}, {"x", 3, 0, 0, 5}} {
		p := &tallies{last: map[string]Tally{}}
		e := w.run(func(o *Options) { o.Progress = p })
		e.Expect("x", 2)
		e.Expect("x", 3)
		if _, _, err := All(t.Context(), e, s, strconv.Itoa, []int{1, 2, 3, 1, 2, 3}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]Tally{"x": want}, p.last); diff != "" || p.n != 5 {
			t.Errorf("told %d times (-want +got):\n%s", p.n, diff)
		}
	}
}
