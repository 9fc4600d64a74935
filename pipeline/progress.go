package pipeline

import (
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"
)

// A Progress is told about a stage whenever one of its items is done. Update must be quick and must
// not call the engine.
type Progress interface{ Update(Tally) }

// A Tally is how far a stage is.
type Tally struct {
	Stage  string
	Done   int // items that have an outcome, fresh ones included
	Ran    int // of Done: what this run worked for; rate and time left go by these
	Failed int // in this run
	Total  int // as far as Engine.Expect was told; 0 when nobody knows
}

// DisplayOptions say how progress is shown. Only W is required.
type DisplayOptions struct {
	// W gets everything. If it is a terminal, and the environment has no TERM=dumb, it gets a bar
	// per stage, else one log line per tick.
	W io.Writer

	Note   func() string       // what to add, as the money spent so far; nil means nothing
	Getenv func(string) string // nil means os.Getenv; NO_COLOR and TERM are read
	Now    func() time.Time    // nil means time.Now
	Tick   <-chan time.Time    // draws; nil means five times a second for bars, once a minute for lines
}

// A Display shows progress: it is the Progress of an Engine. Close ends it.
type Display struct {
	o      DisplayOptions
	bars   *mpb.Progress // nil: log lines
	draw   chan any      // makes bars draw
	drawn  chan any      // closed when bars has ended
	colour bool
	quit   chan struct{}
	ended  sync.WaitGroup

	noteBar *mpb.Bar // of the goroutine that draws
	writing sync.Mutex

	mu     sync.Mutex
	stages []*gauge // in the order in which they were first heard of
	note   string
}

// A gauge is a stage on the display.
type gauge struct {
	Tally
	bar     *mpb.Bar // of the goroutine that draws
	ran     int      // at the last tick
	at      time.Time
	items   float64 // that ran, and
	seconds float64 // that it took, both fading out
	changed bool    // since the last log line
}

// NewDisplay starts to show progress. Its goroutine ends with Close.
func NewDisplay(o DisplayOptions) *Display {
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	f, isFile := o.W.(*os.File)
	return newDisplay(o, isFile && term.IsTerminal(int(f.Fd())) && o.Getenv("TERM") != "dumb")
}

func newDisplay(o DisplayOptions, terminal bool) *Display {
	if o.Now == nil {
		o.Now = time.Now
	}
	d := &Display{o: o, colour: o.Getenv("NO_COLOR") == "", quit: make(chan struct{})}
	show, every := d.writeLine, time.Minute
	if terminal {
		d.draw, d.drawn = make(chan any), make(chan any)
		d.bars = mpb.New(mpb.WithOutput(o.W), mpb.ForceTTY(), mpb.WithManualRefresh(d.draw), mpb.WithShutdownNotifier(d.drawn))
		show, every = d.drawBars, time.Second/5
	}
	d.ended.Go(func() { d.loop(show, every) })
	return d
}

func (d *Display) loop(show func(), every time.Duration) {
	tick := d.o.Tick
	if tick == nil {
		t := time.NewTicker(every)
		defer t.Stop()
		tick = t.C
	}
	for {
		select {
		case <-tick:
			show()
		case <-d.quit:
			return
		}
	}
}

// Update takes in how far a stage is. It may be called from many goroutines.
func (d *Display) Update(t Tally) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, g := range d.stages {
		if g.Stage == t.Stage {
			g.Tally, g.changed = t, true
			return
		}
	}
	d.stages = append(d.stages, &gauge{Tally: t, changed: true, at: d.o.Now()})
}

// Write puts whole lines, as those of a log, above the bars or between the log lines.
func (d *Display) Write(lines []byte) (int, error) {
	if d.bars != nil {
		if n, err := d.bars.Write(lines); err == nil {
			return n, nil
		}
		// The bars have ended: the writer is free.
	}
	d.writing.Lock()
	defer d.writing.Unlock()
	return d.o.W.Write(lines)
}

// Close draws the bars a last time and ends the display. The writer is free after that.
func (d *Display) Close() {
	close(d.quit)
	d.ended.Wait()
	if d.bars != nil {
		d.drawBars()
		d.bars.Shutdown()
	}
}

// measure takes the time: rates are means over about the last half minute.
func (d *Display) measure() {
	note := ""
	if d.o.Note != nil {
		note = d.o.Note() // before the lock: it may ask the engine, which may be telling us
	}
	now := d.o.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.note = note
	for _, g := range d.stages {
		seconds := now.Sub(g.at).Seconds()
		if seconds <= 0 {
			continue
		}
		fade := math.Exp(-seconds / 30)
		g.items = fade*g.items + float64(g.Ran-g.ran)
		g.seconds = fade*g.seconds + seconds
		g.ran, g.at = g.Ran, now
	}
}

// writeLine writes one log line: the stages that moved since the last one, or all.
func (d *Display) writeLine() {
	d.measure()
	d.mu.Lock()
	var moved, all []string
	for _, g := range d.stages {
		all = append(all, g.line())
		if g.changed {
			moved = append(moved, g.line())
		}
		g.changed = false
	}
	note := d.note
	d.mu.Unlock()
	text := strings.Join(moved, "; ")
	switch {
	case len(all) == 0:
		text = "nothing done yet"
	case len(moved) == 0:
		text = "nothing new; " + strings.Join(all, "; ")
	}
	if note != "" {
		text += "; " + note
	}
	d.writing.Lock()
	defer d.writing.Unlock()
	// A display that cannot be written to is no reason to end a run.
	_, _ = fmt.Fprintf(d.o.W, "%s %s\n", d.o.Now().UTC().Format(time.RFC3339), text)
}

func (g *gauge) line() string {
	text := g.Stage + " " + g.count()
	for _, more := range []string{g.pace(), g.left(), g.failures()} {
		if more != "" {
			text += ", " + more
		}
	}
	return text
}

func (g *gauge) count() string {
	if g.Total == 0 {
		return fmt.Sprint(g.Done)
	}
	return fmt.Sprintf("%d/%d", g.Done, max(g.Done, g.Total))
}

// slowest is the rate, in items a second, under which nothing is said about it.
const slowest = 0.001

func (g *gauge) rate() float64 {
	if g.seconds == 0 {
		return 0
	}
	return g.items / g.seconds
}

func (g *gauge) pace() string {
	switch rate := g.rate(); {
	case rate < slowest:
		return ""
	case rate < 0.95:
		return fmt.Sprintf("%.1f/min", rate*60)
	default:
		return fmt.Sprintf("%.1f/s", rate)
	}
}

// left is the time that the rest takes if all of it has to run.
func (g *gauge) left() string {
	rest, rate := g.Total-g.Done, g.rate()
	if rest <= 0 || rate < slowest {
		return ""
	}
	left := time.Duration(float64(rest) / rate * float64(time.Second))
	return left.Round(time.Second).String() + " left"
}

func (g *gauge) failures() string {
	if g.Failed == 0 {
		return ""
	}
	return fmt.Sprintf("%d failed", g.Failed)
}

// drawBars hands the state to the bars and lets them draw. The lock is not held meanwhile: bars
// ask for their texts while they draw.
func (d *Display) drawBars() {
	d.measure()
	d.mu.Lock()
	stages := slices.Clone(d.stages)
	d.mu.Unlock()
	if d.o.Note != nil && d.noteBar == nil {
		d.noteBar = d.newNoteBar()
	}
	for _, g := range stages {
		t := d.tally(g)
		if g.bar == nil {
			g.bar = d.newBar(g, t.Stage)
		}
		// No total is given when the bar is made, so that it never counts as complete: a stage
		// may get more work until the run ends.
		if t.Total > 0 {
			g.bar.SetTotal(int64(max(t.Done, t.Total)), false)
		}
		g.bar.SetCurrent(int64(t.Done))
	}
	select {
	case d.draw <- d.o.Now():
	case <-d.drawn: // drawing failed: the terminal went away
	}
}

func (d *Display) tally(g *gauge) Tally {
	d.mu.Lock()
	defer d.mu.Unlock()
	return g.Tally
}

func (d *Display) newBar(g *gauge, name string) *mpb.Bar {
	text := func(f func(*gauge) string) decor.DecorFunc {
		return func(decor.Statistics) string {
			d.mu.Lock()
			defer d.mu.Unlock()
			return f(g)
		}
	}
	column := decor.WC{C: decor.DSyncSpace}
	style := mpb.BarStyle().Lbound("[").Filler("=").Tip(">").Padding(" ").Rbound("]")
	failures := decor.Any(text((*gauge).failures), column)
	if d.colour {
		style = style.FillerMeta(green).TipMeta(green)
		failures = decor.Meta(failures, red)
	}
	return d.bars.New(0, style,
		mpb.PrependDecorators(
			decor.Any(func(decor.Statistics) string { return name }, decor.WCSyncWidthR),
			decor.Any(text((*gauge).count), column)),
		mpb.AppendDecorators(
			decor.Any(text((*gauge).pace), column),
			decor.Any(text((*gauge).left), column),
			failures))
}

// newNoteBar is a bar without a bar, under the others.
func (d *Display) newNoteBar() *mpb.Bar {
	return d.bars.New(0, mpb.NopStyle(), mpb.BarPriority(math.MaxInt), mpb.BarFillerTrim(),
		mpb.PrependDecorators(decor.Any(func(decor.Statistics) string {
			d.mu.Lock()
			defer d.mu.Unlock()
			return d.note
		})))
}

func green(s string) string { return "\x1b[32m" + s + "\x1b[0m" }
func red(s string) string   { return "\x1b[31m" + s + "\x1b[0m" }
