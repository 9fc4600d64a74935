package main

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

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

// serveFiles serves a folder on loopback, as it is at every moment, and sets WEB to where: serve FOLDER. A host's pages lie in a folder of its name, what
// stands at an address that ends in a slash is its index.html, and what has no file is gone. Pages have validators.
func serveFiles(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: serve FOLDER")
	}
	dir := ts.MkAbs(args[0])
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		host, _, _ := strings.Cut(r.Host, ":")
		name := filepath.Join(dir, host, filepath.Clean("/"+r.URL.Path))
		if strings.HasSuffix(r.URL.Path, "/") {
			name = filepath.Join(name, "index.html")
		}
		page, err := os.ReadFile(name)
		if err != nil {
			http.NotFound(rw, r)
			return
		}
		rw.Header().Set("Etag", fmt.Sprintf("\"%x\"", sha256.Sum256(page)))
		http.ServeContent(rw, r, name, time.Time{}, bytes.NewReader(page))
	}))
	ts.Defer(server.Close)
	ts.Setenv("WEB", server.Listener.Addr().String())
}
