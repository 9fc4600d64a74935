package assay

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay/llm"
)

const litellmList = `{"sample_spec": {"mode": "one of"}, "own-model": {"mode": "chat", "input_cost_per_token": 1e-06, "output_cost_per_token": 2e-06},
"gpt-4o": {"mode": "chat", "input_cost_per_token": 9e-06, "output_cost_per_token": 9e-06}, "voice": {"mode": "audio_speech"}%s}`

// Prices of a published list go into the workspace's own file, which has the last word; what is
// imported or written by hand before stays where the list is silent.
func TestImportPrices(t *testing.T) {
	f := newFolder(t, t.TempDir())
	f.write(PricesName, "date: \"2026-01-05\"\nmodels:\n  by-hand: {input: 3, output: 4}\n  own-model: {input: 8, output: 8}\n")
	list := f.write("list.json", strings.Replace(litellmList, "%s", "", 1))
	when := time.Date(2026, 11, 2, 15, 0, 0, 0, time.UTC)
	if err := os.Chtimes(list, when, when); err != nil {
		t.Fatal(err)
	}
	var first []byte
	for range 2 {
		f.with(func(w *Workspace) error {
			r, err := w.Import(t.Context(), "prices", list, ImportOptions{})
			if err != nil {
				return err
			}
			want := map[string]int{"models": 2, "skipped: mode audio_speech": 1, "models in prices.yaml": 3}
			if diff := cmp.Diff(want, r.Counts); diff != "" {
				t.Errorf("report (-want +got):\n%s", diff)
			}
			return nil
		})
		b, err := os.ReadFile(filepath.Join(f.dir, PricesName))
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = b
		}
		if !bytes.Equal(first, b) {
			t.Errorf("imported again it is\n%s\nafter\n%s", b, first)
		}
	}
	table, own, err := readPrices(f.dir)
	if err != nil || !own {
		t.Fatal(own, err)
	}
	for model, want := range map[string]llm.Price{
		"own-model": {Input: 1, Cached: 1, Output: 2, Date: "2026-11-02"}, "gpt-4o": {Input: 9, Cached: 9, Output: 9, Date: "2026-11-02"},
		"by-hand": {Input: 3, Cached: 3, Output: 4, Date: "2026-01-05"}, "gpt-4o-mini": {Input: 0.15, Cached: 0.075, Output: 0.6, Date: "2026-06-01"},
	} {
		if got, _ := table.Lookup(model); got != want {
			t.Errorf("%s costs %+v, want %+v", model, got, want)
		}
	}
	// A backup brings them along.
	var backup bytes.Buffer
	f.with(func(w *Workspace) error { _, err := w.Backup(t.Context(), &backup); return err })
	other := t.TempDir()
	if _, err := Restore(t.Context(), other, &backup); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(other, PricesName)); err != nil || !bytes.Equal(b, first) {
		t.Errorf("restored %s, %v", b, err)
	}
}

func TestImportPricesRefuses(t *testing.T) {
	for name, tt := range map[string]struct{ file, own, says string }{
		"no prices":           {`{"voice": {"mode": "audio_speech"}}`, "", "none of its 1 entries"},
		"no list":             {"<html>", "", "read price table"},
		"cut off":             {strings.Replace(litellmList, "%s}", "", 1), "", "unexpected end"},
		"own table is broken": {strings.Replace(litellmList, "%s", "", 1), "models: [", "which the file would be added to"},
	} {
		f := newFolder(t, t.TempDir())
		list := f.write("list", tt.file)
		f.with(func(w *Workspace) error {
			if tt.own != "" {
				f.write(PricesName, tt.own)
			}
			if _, err := w.Import(t.Context(), "prices", list, ImportOptions{}); err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%s: error %v, want one that says %q", name, err, tt.says)
			}
			return nil
		})
		if b, err := os.ReadFile(filepath.Join(f.dir, PricesName)); string(b) != tt.own || (err == nil) != (tt.own != "") {
			t.Errorf("%s: %s is %q (%v)", name, PricesName, b, err)
		}
		if left, _ := filepath.Glob(filepath.Join(f.dir, ".new-*")); len(left) > 0 {
			t.Errorf("%s leaves %v", name, left)
		}
		if tt.own == "" {
			continue
		}
		if _, err := Open(t.Context(), f.dir, OpenOptions{Replay: true}); err == nil || !strings.Contains(err.Error(), PricesName) {
			t.Errorf("%s: a workspace opens with it: %v", name, err)
		}
	}
	f := newFolder(t, t.TempDir())
	list := f.write("list.json", strings.Replace(litellmList, "%s", `, "odd": {"mode": "chat", "input_cost_per_token": "much", "output_cost_per_token": 1}`, 1))
	f.with(func(w *Workspace) error {
		r, err := w.Import(t.Context(), "prices", list, ImportOptions{})
		if err != nil || r.Counts["problems"] != 1 || r.Counts["models"] != 2 || !strings.HasPrefix(r.Problems[0], `"odd": `) {
			t.Errorf("report %+v, %v; want the others and one problem", r, err)
		}
		return nil
	})
}

// A server on loopback may stand before models that somebody bills: what the table prices costs that, and what
// it does not know is free and said to be.
func TestModelsOfThisMachineCostWhatTheTableSays(t *testing.T) {
	stub, _ := stubModel(t)
	t.Setenv("STUB_KEY", "secret")
	const note = "no price for stub-1, counted as 0 because it runs on this machine\n"
	for model, costs := range map[string]bool{"stub-1": false, "gpt-4o": true, "openai/gpt-4o-2024-08-06": true} {
		f := newFolder(t, t.TempDir())
		f.write(ConfigName, strings.NewReplacer("stub-1", model, ", price: {input: 2, output: 10}", "").Replace(fmt.Sprintf(modelConfig, stub.URL)))
		f.load("pairs", f.write("lines.jsonl", pairLine(1, "true")))
		w, err := Open(t.Context(), f.dir, OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		ahead, err := w.Build(t.Context(), BuildOptions{DryRun: true})
		if err != nil {
			t.Fatal(err)
		}
		rep, err := w.Build(t.Context(), BuildOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if rep.LLM.Calls != 2 || rep.LLM.Unpriced != 0 || (rep.LLM.USD > 0) != costs || (ahead.Forecast.Total.USD.High > 0) != costs {
			t.Errorf("%s: %+v, forecast $%v", model, rep.LLM, ahead.Forecast.Total.USD)
		}
		if text := rep.Text(false); strings.Contains(text, note) == costs {
			t.Errorf("%s: the report:\n%s", model, text)
		}
		if text := ahead.Text(true); strings.Contains(text, strings.TrimSpace(note)) == costs {
			t.Errorf("%s: the forecast:\n%s", model, text)
		}
	}
}
