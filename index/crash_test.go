package index

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"
)

const childDir = "ASSAY_INDEX_CHILD"

// TestMain is also the process that TestKilled kills: it says a line for every document that it
// hands over.
func TestMain(m *testing.M) {
	dir := os.Getenv(childDir)
	if dir == "" {
		os.Exit(m.Run())
	}
	x, err := Open(dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	x.Batch = 3
	err = x.CatchUp(context.Background(), func(yield func(Sequenced, error) bool) {
		for i, d := range invented(400) {
			fmt.Println(i)
			if !yield(Sequenced{uint64(i + 1), d}, nil) {
				return
			}
		}
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if err := x.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// A process killed at any moment leaves an index that opens, holds whole batches and catches up to
// what an index holds that nobody disturbed.
func TestKilled(t *testing.T) {
	docs := invented(400)
	whole := open(t)
	fill(t, whole, 1, docs...)
	dir := t.TempDir()
	var before uint64
	for _, lines := range []int{2, 40, 11, 95, 23, 7, 60} {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), childDir+"="+dir)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		said := bufio.NewScanner(out)
		for n := 0; n < int(before)+lines && said.Scan(); n++ {
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // says only that it was killed

		x, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		if x.Rebuilt() != "" || x.Position() < before {
			t.Errorf("after a kill: rebuilt %q, position %d, before %d", x.Rebuilt(), x.Position(), before)
		}
		before = x.Position()
		part := open(t)
		fill(t, part, 1, docs[:before]...)
		if x.Digest() != part.Digest() {
			t.Errorf("at position %d it does not hold the first %d documents", before, before)
		}
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
	}
	x, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	fill(t, x, 1, docs...)
	if x.Digest() != whole.Digest() {
		t.Error("caught up after kills differs from undisturbed")
	}
}
