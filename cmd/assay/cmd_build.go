package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"assay"
	"assay/pipeline"
)

func (a *app) buildCommand() *cobra.Command {
	var o assay.BuildOptions
	var replay, forecast bool
	var try int
	var seed uint64
	var limits runLimits
	cmd := &cobra.Command{
		Use:   "build",
		Short: "Run what is missing or stale, then write the release",
		Example: `  assay build
  assay build --dry-run
  assay build --until parse
  assay build --replay --only label
  assay build --try 50 --seed 1
  assay build --batch
  assay build --max-usd 5 --max-duration 2h`,
		Long: help(`Run every stage whose items are missing or stale, from the live references on, and write the release
unless --until or --only stop before it. What is fresh is not touched and costs nothing; a build that was
killed goes on where it was. --dry-run lists what would run, with calls, tokens, money and time by stage; sites that are alike are one line, --json names each;
what later stages will need is a range, and each assumption is named. Transient failures are tried again by the next build, others with --retry-failed.

--try shows what an edited prompt or another model would do: it labels a sample of pairs again in a scratch space
and tells how labels flow and what that cost; what the workspace holds stays as it is. Pairs without a label end it with 3.

--batch collects the calls that stages make, sends them as files to the batch API of their endpoint, and ends with
75 while answers are outstanding: run the same command again, as often as you like. A plan is stored before it is
sent, so a killed run finds what it had ordered and pays for nothing twice. A search step by step orders one step
at a time; what asks an endpoint without a batch API is asked one by one.

While it runs, "assay status", "ls", "show" and "backup" answer from another terminal.`,
			statusError, statusUsage, statusPartial, statusBudget, statusLocked, statusGuard, statusWaiting, statusInterrupted),
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			overrides, err := limits.overrides(cmd, o.MaxDuration)
			if err != nil {
				return err
			}
			if o.Batch && replay {
				return usagef("--batch and --replay exclude each other: a replay asks nobody")
			}
			if err := o.Check(); err != nil {
				return usageError{err}
			}
			if cmd.Flags().Changed("try") || cmd.Flags().Changed("seed") {
				if try <= 0 || replay || o.DryRun || o.Batch || forecast || o.Until != "" || o.Only != "" {
					return usagef("--try takes a number of pairs above 0, and beside it --seed and limits alone")
				}
				return a.try(cmd.Context(), try, seed, overrides)
			}
			if forecast && !o.DryRun {
				if o.Foreseen, err = a.forecast(cmd.Context(), o, overrides); err != nil {
					return err
				}
			}
			rep, err := a.build(cmd.Context(), o, assay.OpenOptions{Replay: replay, Offline: o.DryRun, Batch: o.Batch, Overrides: overrides})
			if err != nil {
				return err
			}
			if rep.Partial() {
				return errPartial
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Until, "until", "", "stop after this stage (a kind or kind/plugin)")
	f.StringVar(&o.Only, "only", "", "run this stage alone, over what is fresh before it")
	f.BoolVar(&replay, "replay", false, "answer everything from what is stored; nothing leaves the machine")
	f.BoolVar(&o.Batch, "batch", false, "order model calls from the endpoint's batch API, at its price; run the same command again to take the answers in")
	f.BoolVar(&o.DryRun, "dry-run", false, "say what would run and what that would cost, and run nothing: no network, no key, nothing written")
	f.IntVar(&try, "try", 0, "label so many pairs again with prompts and models as they are now, tell which labels move, and keep nothing of it")
	f.Uint64Var(&seed, "seed", 1, "which pairs --try takes")
	f.BoolVar(&forecast, "forecast", false, "make the forecast of --dry-run first, and set what happened beside it")
	f.BoolVar(&o.RetryFailed, "retry-failed", false, "try permanent failures and blocked pages again")
	f.StringVar(&o.As, "as", "", "name of the release folder, e.g. v1.0.0")
	limits.flags(cmd, &o.MaxDuration)
	return cmd
}

// runLimits are the flags that bound what one run may do.
type runLimits struct {
	usd   float64
	calls int
}

func (l *runLimits) flags(cmd *cobra.Command, duration *time.Duration) {
	f := cmd.Flags()
	f.Float64Var(&l.usd, "max-usd", 0, "stop before this run spends more, above 0 (default: runtime.max_usd)")
	f.IntVar(&l.calls, "max-calls", 0, "stop before this run makes more model calls, above 0 (default: runtime.max_calls)")
	f.DurationVar(duration, "max-duration", 0, "stop after this time, above 0 (default: no limit)")
}

// overrides are the settings of the flags that were given. 0 in a file means no limit, which nobody means
// who writes it behind a flag that stops a run; the flags refuse it.
func (l *runLimits) overrides(cmd *cobra.Command, duration time.Duration) (out []assay.Override, err error) {
	for _, limit := range []struct {
		name  string
		above bool
	}{{"max-usd", l.usd > 0}, {"max-calls", l.calls > 0}, {"max-duration", duration > 0}} {
		if f := cmd.Flags().Lookup(limit.name); f.Changed && !limit.above {
			return nil, usagef("--%s %s: a limit is above 0; leave the flag out for a run without it, and use build --replay for one that asks and spends nothing", limit.name, f.Value)
		}
	}
	if cmd.Flags().Changed("max-usd") {
		out = append(out, assay.Override{Key: "runtime.max_usd", Value: strconv.FormatFloat(l.usd, 'g', -1, 64)})
	}
	if cmd.Flags().Changed("max-calls") {
		out = append(out, assay.Override{Key: "runtime.max_calls", Value: strconv.Itoa(l.calls)})
	}
	return out, nil
}

// try labels a sample in a scratch space and prints what moves.
func (a *app) try(ctx context.Context, n int, seed uint64, overrides []assay.Override) (err error) {
	w, err := a.open(ctx, assay.OpenOptions{Overrides: overrides})
	if err != nil {
		return err
	}
	defer closing(w.Close, &err)
	t, err := w.Try(ctx, n, seed)
	if err != nil {
		return err
	}
	if err := a.print(t, func(w io.Writer) { fmt.Fprint(w, t.Text()) }); err != nil {
		return err
	}
	if len(t.Failed) > 0 {
		return errPartial
	}
	return nil
}

// forecast makes the dry run of a build and prints it.
func (a *app) forecast(ctx context.Context, o assay.BuildOptions, overrides []assay.Override) (f *assay.Forecast, err error) {
	w, err := a.open(ctx, assay.OpenOptions{Offline: true, Overrides: overrides})
	if err != nil {
		return nil, err
	}
	defer closing(w.Close, &err)
	o.DryRun = true
	rep, err := w.Build(ctx, o)
	if err != nil {
		return nil, err
	}
	fmt.Fprint(screen{a.err}, rep.Forecast.Text())
	return rep.Forecast, nil
}

// build opens the workspace, serves questions, builds and prints the report.
func (a *app) build(ctx context.Context, o assay.BuildOptions, open assay.OpenOptions) (rep assay.BuildReport, err error) {
	err = a.session(ctx, open, o.DryRun, func(w *assay.Workspace, p pipeline.Progress, end func()) error {
		o.Progress, o.Stop = p, a.stop
		var err error
		rep, err = w.Build(ctx, o)
		end()
		if errors.Is(err, assay.ErrNoBatch) {
			return err // nothing was done that could be told
		}
		return a.reported(rep, rep.Text(o.DryRun), o.DryRun, rep.Release, err)
	})
	return rep, err
}

// session opens the workspace, shows progress and serves questions while f runs. A signal lets what is in
// flight finish until f calls end, which takes the display away too.
func (a *app) session(ctx context.Context, open assay.OpenOptions, dryRun bool, f func(w *assay.Workspace, p pipeline.Progress, end func()) error) (err error) {
	log := a.err
	var progress pipeline.Progress
	var opened atomic.Pointer[assay.Workspace] // for the display, which is there first
	endDisplay := func() {}
	if !a.quiet && !dryRun {
		d := pipeline.NewDisplay(pipeline.DisplayOptions{W: a.err, Note: func() string {
			if w := opened.Load(); w != nil {
				return w.Spending()
			}
			return ""
		}})
		endDisplay = sync.OnceFunc(d.Close)
		defer endDisplay()
		progress, log = d, d
	}
	open.Log = a.log(log)
	w, err := a.open(ctx, open)
	if err != nil {
		return err
	}
	defer closing(w.Close, &err)
	opened.Store(w)
	stop, err := w.Serve(ctx)
	if err != nil {
		return err
	}
	defer closing(stop, &err)
	a.drains.Store(true)
	return f(w, progress, func() {
		a.drains.Store(false)
		endDisplay()
	})
}

// reported prints what a run did, however it ended.
func (a *app) reported(rep any, text string, dryRun bool, release *assay.ReleaseResult, err error) error {
	if a.json {
		return errors.Join(err, a.print(rep, nil))
	}
	to := a.err
	if dryRun {
		to = a.out // there it is what was asked for
	}
	fmt.Fprint(screen{to}, text)
	if err == nil && release != nil {
		printRelease(a.out, *release)
	}
	return err
}

func printRelease(w io.Writer, r assay.ReleaseResult) {
	state := ""
	if r.Unchanged {
		state = " (unchanged)"
	}
	fmt.Fprintf(w, "release %s%s: %d claims, %d documents, %d pairs\n", r.Dir, state, r.Counts["claims"], r.Counts["documents"], r.Counts["pairs"])
}

// since rounds a duration for people.
func since(t time.Time) time.Duration { return time.Since(t).Round(10 * time.Millisecond) }
