package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"assay"
	"assay/kv"
	"assay/pipeline"
)

// Exit codes; every command's help lists those that it can give.
const (
	exitDone        = 0
	exitError       = 1
	exitUsage       = 2
	exitPartial     = 3
	exitBudget      = 4
	exitLocked      = 5
	exitGuard       = 6
	exitVerify      = 7
	exitWaiting     = 75
	exitInterrupted = 130
)

var (
	errPartial = errors.New("some items failed in this run")
	errVerify  = errors.New("the release failed verification")
)

// usageError is a mistake in the words of the command line.
type usageError struct{ error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

func exitCode(ctx context.Context, err error) int {
	var usage usageError
	var locked *kv.LockedError
	var stop *assay.StopError
	switch {
	case ctx.Err() != nil && errors.Is(err, context.Canceled), errors.Is(err, assay.ErrInterrupted):
		return exitInterrupted
	case errors.Is(err, assay.ErrWaiting):
		return exitWaiting
	case errors.As(err, &usage):
		return exitUsage
	case errors.As(err, &locked):
		return exitLocked
	case errors.Is(err, errPartial):
		return exitPartial
	case errors.As(err, &stop):
		return exitGuard
	case errors.Is(err, errVerify):
		return exitVerify
	case errors.Is(err, assay.ErrTimeUp), isBudget(err):
		return exitBudget
	}
	return exitError
}

// isBudget reports whether money, calls or a provider's quota ended the run.
func isBudget(err error) bool {
	var class interface{ FailureClass() string }
	return errors.As(err, &class) && class.FailureClass() == pipeline.ClassBudget
}

// app is what every command needs: the streams, the environment and the flags that all share.
type app struct {
	in       io.Reader
	out, err io.Writer
	environ  []string

	now func() time.Time // nil means time.Now

	stop   chan struct{} // closed by the first signal
	drains atomic.Bool   // the command ends by itself after stop

	dir   string
	json  bool
	quiet bool
}

func (a *app) root() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "assay",
		Short: "Build fact-verification corpora and keep them alive",
		Long: `assay turns fact-check pages into claims, searches evidence for them, labels every
(claim, document) pair by what it does to a model's verdict, and writes a release.

Try "assay demo": the whole pipeline on a small embedded web, offline, in seconds.`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			text := fmt.Sprintf("unknown command %q", args[0])
			if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
				text += "; did you mean " + strings.Join(near, " or ") + "?"
			}
			return usagef("%s; see assay --help", text)
		},
		SuggestionsMinimumDistance: 2,
	}
	cmd.SetIn(a.in)
	cmd.SetOut(a.out)
	cmd.SetErr(a.err)
	cmd.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return usagef("%s: %w", c.CommandPath(), err) })
	cmd.PersistentFlags().StringVarP(&a.dir, "directory", "C", ".", "the workspace")
	cmd.PersistentFlags().BoolVar(&a.json, "json", false, "print facts as JSON")
	cmd.PersistentFlags().BoolVarP(&a.quiet, "quiet", "q", false, "no progress")
	for _, c := range []*cobra.Command{
		a.initCommand(), a.demoCommand(), a.buildCommand(), a.refreshCommand(), a.statusCommand(), a.lsCommand(), a.showCommand(),
		a.importCommand(), a.decideCommand(), a.releaseCommand(), a.reportCommand(), a.verifyCommand(), a.archiveCommand(), a.gcCommand(), a.backupCommand(),
		a.restoreCommand(),
		a.doctorCommand(), a.listCommand(), a.configCommand(), a.versionCommand(),
	} {
		if args := c.Args; args != nil {
			c.Args = func(cmd *cobra.Command, list []string) error {
				if err := args(cmd, list); err != nil {
					return usagef("%s: %w; see %s --help", cmd.CommandPath(), err, cmd.CommandPath())
				}
				return nil
			}
		}
		cmd.AddCommand(c)
	}
	return cmd
}

// help composes a command's long text: what it does, and how it can end.
func help(text string, statuses ...string) string {
	return strings.TrimSpace(text) + "\n\nEXIT STATUS\n  " + strings.Join(append([]string{"0  done"}, statuses...), "\n  ")
}

// Lines of EXIT STATUS that several commands share.
const (
	statusError       = "1  an error ended the command; the message says what to do"
	statusUsage       = "2  the command line is wrong"
	statusPartial     = "3  partial: at least one item failed in this run; the rest is done"
	statusWaiting     = "75 answers are ordered from a batch API and not there yet; run the same command again"
	statusBudget      = "4  a limit of money, calls or time was reached; what is done is kept"
	statusLocked      = "5  another run holds the workspace"
	statusGuard       = "6  a guard rail stopped the release; the message names the source and what to do"
	statusVerify      = "7  the release failed verification"
	statusInterrupted = "130  interrupted; run the same command to go on"
)

// log is the program's log: warnings and worse on stderr, and more if the workspace asks for it.
func (a *app) log(w io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelInfo, ReplaceAttr: func(_ []string, at slog.Attr) slog.Attr {
		if at.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return at
	}}))
}

// open opens the workspace for writing.
func (a *app) open(ctx context.Context, o assay.OpenOptions) (*assay.Workspace, error) {
	o.Environ, o.Now = a.environ, a.now
	if o.Log == nil {
		o.Log = a.log(a.err)
	}
	return assay.Open(ctx, a.dir, o)
}

// patience is how long a question waits for a process that opens the workspace or has come to its end.
const patience = 5 * time.Second

// reading asks the workspace, or the process that holds it. A question that nobody heard is asked again.
func (a *app) reading(ctx context.Context, question func(assay.Reader) error) error {
	for end := time.Now().Add(patience); ; {
		err := a.readOnce(ctx, question)
		if !errors.Is(err, assay.ErrNoAnswer) || ctx.Err() != nil || time.Now().After(end) {
			return err
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func (a *app) readOnce(ctx context.Context, question func(assay.Reader) error) (err error) {
	w, err := a.open(ctx, assay.OpenOptions{Offline: true, Look: true})
	if err == nil {
		defer closing(w.Close, &err)
		return question(w)
	}
	var locked *kv.LockedError
	if !errors.As(err, &locked) {
		return err
	}
	r, dialErr := assay.Dial(ctx, a.dir)
	if dialErr != nil {
		return fmt.Errorf("%w; %w", err, dialErr)
	}
	defer r.Close()
	return question(r)
}

// print writes facts: v as JSON if asked for, else text.
func (a *app) print(v any, text func(io.Writer)) error {
	if !a.json {
		text(screen{a.out})
		return nil
	}
	e := json.NewEncoder(screen{a.out})
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// closing runs a close after f, so that its error is not lost.
func closing(close func() error, err *error) {
	*err = errors.Join(*err, close())
}

// A checked writer remembers the first error, so that output that was lost is not called done.
type checked struct {
	w   io.Writer
	err error
}

func (c *checked) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	if c.err == nil {
		c.err = err
	}
	return n, err
}

// exists reports whether a path is there.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
