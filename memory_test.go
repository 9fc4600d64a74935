package assay

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"assay/corpus"
	"assay/kv"
	"assay/pipeline"
	"assay/planner"
)

// What searches keep is remembered by a commit for the claims of later runs, and a claim stays with the
// snapshot of the run that first met it.
func TestMemoryIsCommittedByRuns(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write(ConfigName, "recipe:\n  name: memory\n  discover: [imported]\n  evidence: [search]\n  speakers: []\n  dates: {from: \"\", to: \"\"}\n"+
		"  planner: {policy: gpe, agent: {engines: {\"*\": local}}}\nruntime:\n  contact: tests@assay.example\n")
	w, err := Open(t.Context(), dir, OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}()
	pair := func(n int, claim, text string) {
		t.Helper()
		line := fmt.Sprintf(`{"claim": %q, "verdict": "true", "date": "2021-06-01", "title": "Report %d", "text": %q, "url": "https://s%d.example/", "label": "supporting"}`, claim, n, text, n)
		if _, err := w.Import(t.Context(), "pairs", write(fmt.Sprintf("%d.jsonl", n), line+"\n"), ImportOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	build := func() BuildReport {
		t.Helper()
		rep, err := w.Build(t.Context(), BuildOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return rep
	}
	traces := func() map[string]corpus.Trace { // by the first word of the claim
		t.Helper()
		out := map[string]corpus.Trace{}
		e := w.newEngine(pipeline.Options{Explain: true})
		defer w.runs(e)()
		k := &walk{w: w, e: e, explain: true, stages: stages{w}, until: KindPlan, visit: visitor{trace: func(c corpus.Claim, tr corpus.Trace, _ []corpus.Link) error {
			out[strings.Fields(c.Text)[0]] = tr
			return nil
		}}}
		w.Config.Runtime.Workers = 1
		if err := k.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		return out
	}
	pair(1, "Harbor fees in Ostrow doubled in 2020.", "Harbor fees in Ostrow doubled in 2020, as the list of the port office shows. Fishers were not amused.")
	build()
	first := traces()["Harbor"]
	if first.Memory != "" || len(first.Kept()) != 1 {
		t.Fatalf("the first search reads memory %q and keeps %+v", first.Memory, first.Candidates)
	}
	// A run that was killed leaves memories without a commit; nobody reads them, and the next run throws them away.
	if err := w.tables.Memories.Put("c_killed", memorised{Met: 2, Kept: 2, Documents: []planner.Recollection{{DocumentID: "d_killed", Words: []uint32{1}}}}); err != nil {
		t.Fatal(err)
	}
	if known, err := w.recollections(); err != nil || known.Len(9) != 1 {
		t.Errorf("%d documents are remembered, %v; want 1", known.Len(9), err)
	}
	pair(2, "Ostrow harbor fees rose for fishers.", "The choir sang on the quay at noon, and everybody who had come by boat stayed for the cake.")
	build()
	second := traces()
	if id := second["Ostrow"].Memory; !strings.HasPrefix(id, "m_") || second["Harbor"].Memory != "" {
		t.Errorf("the searches read %q and %q", id, second["Harbor"].Memory)
	}
	if rep := build(); rep.Pipeline.Ran != 0 {
		t.Errorf("a build with nothing new runs %d items", rep.Pipeline.Ran)
	}
	n := 0
	for _, err := range w.tables.Commits.Scan("", "") {
		if n++; err != nil {
			t.Fatal(err)
		}
	}
	if has, err := w.tables.Memories.Has("c_killed"); err != nil || has {
		t.Errorf("what the killed run left is there: %v, %v", has, err)
	}
	if n != 2 {
		t.Errorf("%d commits of three builds, the last of which found nothing new", n)
	}
	if has, err := w.tables.Commits.Has(kv.Key(fmt.Sprintf("%020d", 2))); err != nil || !has {
		t.Errorf("commit 2 is there: %v, %v", has, err)
	}
}
