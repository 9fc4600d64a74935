package assay

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A trial with an edited prompt moves labels of its sample and nothing in the workspace.
func TestTry(t *testing.T) {
	stub, asked := stubModel(t)
	t.Setenv("STUB_KEY", "secret")
	f := newFolder(t, t.TempDir())
	config := fmt.Sprintf(modelConfig, stub.URL)
	f.write(ConfigName, config)
	var lines strings.Builder
	for i := range 12 {
		lines.WriteString(pairLine(i, "true"))
	}
	f.load("pairs", f.write("lines.jsonl", lines.String()))
	open := func() *Workspace {
		w, err := Open(t.Context(), f.dir, OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	w := open()
	if _, err := w.Try(t.Context(), 5, 1); err == nil || !strings.Contains(err.Error(), "build first") {
		t.Errorf("without labels: %v", err)
	}
	if _, err := w.Build(t.Context(), BuildOptions{}); err != nil {
		t.Fatal(err)
	}
	w.Close()
	before := asked.Load()
	f.write("prompts/raguard_compat.txt", "--- system\nJudge anew.\n--- user\n{{.Claim}} {{fence \"text\" .Text}}\n")
	w = open()
	was := dump(t, w)
	killed := f.write(filepath.Join(stateDir, "try-1", "store", "x"), "of a trial that was killed")
	first, err := w.Try(t.Context(), 5, 1)
	if err != nil {
		t.Fatal(err)
	}
	if n := asked.Load() - before; n != 5 || first.LLM.Calls != 5 || first.LLM.USD <= 0 || first.Pairs != 5 || first.All != 12 || first.Flow.Count("supporting", "supporting") != 5 || len(first.Moved) != 0 {
		t.Errorf("asked %d times: %+v", n, first)
	}
	if dump(t, w) != was {
		t.Error("a trial left something in the store")
	}
	if left, err := filepath.Glob(filepath.Join(f.dir, stateDir, "try-*")); err != nil || len(left) > 0 {
		t.Errorf("scratch spaces left: %v, %v", left, err)
	}
	f.write(filepath.Join(stateDir, "try-1", "store", "x"), "of another")
	if _, err := w.GC(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(killed); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("gc leaves %s: %v", killed, err)
	}
	// The builtin model in its place compares words, and says what would move.
	w.Close()
	f.write(ConfigName, strings.Replace(config, "annotate: {endpoint: stub, model: stub-1", "annotate: {endpoint: own, model: builtin", 1)+"    own: {provider: builtin}\n")
	w = open()
	defer w.Close()
	other, err := w.Try(t.Context(), 100, 2)
	if err != nil {
		t.Fatal(err)
	}
	if other.Pairs != 12 || other.Flow.Total() != 12 || other.LLM.USD != 0 || !strings.Contains(other.Text(), "tried on 12 of 12 labelled pairs (seed 2)") {
		t.Errorf("with another model: %s", other.Text())
	}
}
