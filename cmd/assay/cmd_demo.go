package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"assay"
)

func (a *app) demoCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "demo [DIR]",
		Short:   "Run the whole pipeline on a small embedded web, offline, in seconds",
		Example: "  assay demo\n  assay demo /tmp/demo",
		Long: help(`Serve a small web of invented fact-checks and news on loopback, import a dump of invented posts, and build a
corpus from them with the builtin model: real HTTP, real stages, a real release. DIR is assay-demo unless given; run it
twice and nothing is done again. A broken page, a blocked page and a deleted post are part of the show.`,
			statusError, statusUsage, "3  partial: a page that is not broken on purpose failed", statusLocked, statusInterrupted),
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := "assay-demo"
			if len(args) == 1 {
				dir = args[0]
			}
			return a.demo(cmd.Context(), dir)
		},
	}
}

func (a *app) demo(ctx context.Context, dir string) (err error) {
	start := time.Now()
	web, err := assay.LoadDemoWeb()
	if err != nil {
		return err
	}
	address, stop, err := serveLoopback(ctx, web)
	if err != nil {
		return err
	}
	defer closing(stop, &err)
	if err := writeDemo(dir, web); err != nil {
		return err
	}
	a.dir = dir
	open := assay.OpenOptions{Overrides: assay.DemoOverrides(address)}
	w, err := a.open(ctx, open)
	if err != nil {
		return err
	}
	if _, err := w.Import(ctx, "reddit", filepath.Join(dir, demoDump), assay.ImportOptions{}); err != nil {
		return closeAfter(w, err)
	}
	if err := w.Close(); err != nil {
		return err
	}
	rep, err := a.build(ctx, assay.BuildOptions{}, open)
	if err != nil {
		return err
	}
	if unplanned := web.Unplanned(rep.Pipeline); len(unplanned) > 0 {
		fmt.Fprintf(screen{a.err}, "failed without being planned: %v\n", unplanned)
		return errPartial
	}
	if !a.json {
		fmt.Fprint(a.out, rep.DemoText(dir, since(start)))
	}
	return nil
}

const demoDump = "posts.ndjson"

func closeAfter(w *assay.Workspace, err error) error {
	closing(w.Close, &err)
	return err
}

// writeDemo makes the demo's workspace, once.
func writeDemo(dir string, web *assay.DemoWeb) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	dump, err := web.Dump()
	if err != nil {
		return err
	}
	if text, err := os.ReadFile(filepath.Join(dir, assay.ConfigName)); err == nil && !assay.IsDemoConfig(text) {
		return usagef("%s is a workspace of its own; the demo would mix invented posts into it, so give it another folder", dir)
	}
	for name, data := range map[string][]byte{assay.ConfigName: assay.DemoConfig(), demoDump: dump} {
		path := filepath.Join(dir, name)
		if exists(path) {
			continue
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// serveLoopback serves h on a free port of loopback until stop.
func serveLoopback(ctx context.Context, h http.Handler) (address string, stop func() error, err error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, fmt.Errorf("serve the demo's web: %w", err)
	}
	s := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	done := make(chan error, 1)
	go func() { done <- s.Serve(l) }()
	return l.Addr().String(), func() error {
		err := s.Close()
		if served := <-done; !errors.Is(served, http.ErrServerClosed) {
			err = errors.Join(err, served)
		}
		return err
	}, nil
}
