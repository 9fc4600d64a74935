// Command assay builds fact-verification corpora. See the README for a tour and each command's help
// for its exit status.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"assay"
)

func main() { os.Exit(run(nil)) }

// run is main with a value and a clock, so that tests can call it; nil is the machine's clock.
func run(now func() time.Time) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	out := &checked{w: os.Stdout}
	a := &app{in: os.Stdin, out: out, err: os.Stderr, environ: os.Environ(), now: now, stop: make(chan struct{})}
	go a.interrupt(signals, cancel)
	cmd := a.root()
	cmd.SetArgs(os.Args[1:])
	err := cmd.ExecuteContext(ctx)
	if err == nil {
		err = out.err
	}
	if err == nil {
		return exitDone
	}
	code := exitCode(ctx, err)
	switch {
	case code == exitInterrupted:
		fmt.Fprintln(os.Stderr, "assay: interrupted; everything that was done is kept, run the same command to go on")
	case !errors.Is(err, errPartial):
		fmt.Fprintln(screen{os.Stderr}, "assay:", err)
	}
	return code
}

// interrupt ends the command on the first signal. A build first lets what is in flight finish, since
// a call that is cut off is paid for and lost; a second signal ends it at once.
func (a *app) interrupt(signals <-chan os.Signal, cancel context.CancelFunc) {
	<-signals
	close(a.stop)
	if a.drains.Load() {
		fmt.Fprintln(a.err, "assay: finishing what is in flight; interrupt again to end at once")
		select {
		case <-signals:
		case <-time.After(assay.Grace):
		}
	}
	cancel()
}
