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
)

func main() { os.Exit(run()) }

// run is main with a value, so that tests can call it in-process.
func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	go func() {
		<-ctx.Done()
		stop() // a second signal ends the process at once
	}()
	a := &app{in: os.Stdin, out: os.Stdout, err: os.Stderr, environ: os.Environ()}
	cmd := a.root()
	cmd.SetArgs(os.Args[1:])
	err := cmd.ExecuteContext(ctx)
	if err == nil {
		return exitDone
	}
	code := exitCode(ctx, err)
	if text := err.Error(); text != "" && !errors.Is(err, errPartial) {
		fmt.Fprintln(os.Stderr, "assay:", text)
	}
	if code == exitInterrupted {
		fmt.Fprintln(os.Stderr, "assay: interrupted; everything that was done is kept, run the same command to go on")
	}
	return code
}
