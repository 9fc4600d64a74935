package main

import (
	"errors"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// exits runs a program and checks its exit code: exits CODE PROGRAM ARGS...
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM ARGS...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	if err != nil {
		var code interface{ ExitCode() int }
		if !errors.As(err, &code) {
			ts.Fatalf("%s: %v", args[1], err)
		}
		got = code.ExitCode()
	}
	if got != want {
		ts.Fatalf("%s: exit %d, want %d", strings.Join(args[1:], " "), got, want)
	}
}

// lines checks how many lines a file has: lines N FILE
func lines(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: lines N FILE")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := strings.Count(ts.ReadFile(args[1]), "\n")
	if (got == want) == neg {
		ts.Fatalf("%s has %d lines, want %d", args[1], got, want)
	}
}
