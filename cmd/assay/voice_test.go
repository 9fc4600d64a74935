package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Two tables that tell the same claims with opposite verdicts: one speaks, whatever the order of the
// workers, nothing runs again, and every label agrees with the verdict beside it.
func TestOneRootSpeaksForAClaim(t *testing.T) {
	var ids []string
	for _, workers := range []string{"1", "4", "16"} {
		l := newLab(t, 12, "")
		l.env = []string{"ASSAY_RUNTIME_WORKERS=" + workers}
		l.model.set(func(m *modelStub) {
			m.reply = func(string) (int, string, string) {
				return 200, `{"quote":"","reason":"it says so","answer":"true"}`, "stop"
			}
		})
		var b strings.Builder
		b.WriteString("Claim ID,Claim,Verdict,Document IDs,Document Labels,Original Verdict\n")
		for i := range 12 {
			verdict, original := "True", "true"
			if i%2 == 0 { // the pairs say the opposite
				verdict, original = "False", "false"
			}
			fmt.Fprintf(&b, "%d,Village number %d has %d wells.,%s,[],[],%s\n", i+1, i, i+2, verdict, original)
		}
		table := filepath.Join(l.dir, "claims.csv")
		if err := os.WriteFile(table, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		l.must(0, "import", "claims-table", table)
		l.build(0)
		second := l.build(0)
		if second.Pipeline.Ran != 0 || second.LLM.Calls != 0 {
			t.Errorf("%s workers: the second build ran %d items", workers, second.Pipeline.Ran)
		}
		ids = append(ids, second.Release.ID)
		gold := map[string]any{}
		for _, c := range released(t, second.Release.Dir, "claims") {
			gold[c["id"].(string)] = c["verdict_binary"]
		}
		pairs := released(t, second.Release.Dir, "pairs")
		if len(pairs) != 12 || len(gold) != 12 {
			t.Errorf("%s workers: %d pairs of %d claims, want 12 of 12", workers, len(pairs), len(gold))
		}
		for _, p := range pairs {
			want := "misleading"
			if p["answer"] == gold[p["claim_id"].(string)] {
				want = "supporting"
			}
			if p["label"] != want {
				t.Errorf("pair %v is %v beside the verdict %v", p, p["label"], gold[p["claim_id"].(string)])
			}
		}
	}
	if ids[0] != ids[1] || ids[1] != ids[2] {
		t.Errorf("releases with 1, 4 and 16 workers: %v", ids)
	}
}
