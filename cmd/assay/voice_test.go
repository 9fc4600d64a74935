package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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

// One row speaks for a claim that two tables tell; the pairs of both are its evidence, each document once.
func TestPairsOfEveryRowOfAClaimCount(t *testing.T) {
	var want map[string]string
	for _, workers := range []string{"1", "8"} {
		l := newLab(t, 6, "")
		l.env = []string{"ASSAY_RUNTIME_WORKERS=" + workers}
		var claims, documents strings.Builder
		claims.WriteString("Claim ID,Claim,Verdict,Document IDs,Document Labels,Original Verdict\n")
		documents.WriteString("Document ID,Title,Full Text,Claim ID,Document Label,Link\n")
		for i := range 6 {
			verdict, original := "True", "true"
			if i%2 == 1 {
				verdict, original = "False", "false"
			}
			fmt.Fprintf(&claims, "%d,Village number %d has %d wells.,%s,\"[%d, %d]\",\"['misleading', 'unrelated']\",%s\n", i+1, i, i+2, verdict, 2*i+1, 2*i+2, original)
			// The first document is the post that the pairs have, under its own number here.
			fmt.Fprintf(&documents, "%d,Wells of village %d,I counted the wells of village number %d on Sunday and there were %d of them.,%d,misleading,https://www.reddit.com/r/wells/comments/w%04d/wells/\n", 2*i+1, i, i, i+2, i+1, i)
			fmt.Fprintf(&documents, "%d,The fair,The fair of village number %d was on Sunday and there were many visitors from the whole valley.,%d,unrelated,https://www.reddit.com/r/wells/comments/f%04d/fair/\n", 2*i+2, i, i+1, i)
		}
		for kind, text := range map[string]string{"claims-table": claims.String(), "pairs": documents.String()} {
			l.must(0, "import", kind, l.write(filepath.Join(l.dir, kind+".csv"), text))
		}
		first := l.build(0)
		second := l.build(0)
		if second.Pipeline.Ran != 0 || second.LLM.Calls != 0 || second.Release.ID != first.Release.ID {
			t.Errorf("%s workers: the second build ran %d items", workers, second.Pipeline.Ran)
		}
		got := map[string]string{}
		for _, p := range released(t, first.Release.Dir, "pairs") {
			var from []string
			for _, h := range p["hits"].([]any) {
				from = append(from, h.(map[string]any)["source"].(string))
			}
			got[p["claim_id"].(string)+" "+p["document_id"].(string)] = strings.Join(from, " ")
		}
		if want == nil {
			want = got
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s workers: other pairs:\n%s", workers, d)
		}
		sources := map[string]int{}
		for _, s := range got {
			sources[s]++
		}
		if d := cmp.Diff(map[string]int{"pairs raguard": 6, "raguard": 6}, sources); d != "" || first.Release.Counts["claims"] != 6 {
			t.Errorf("%s workers: %d claims, pairs by source:\n%s", workers, first.Release.Counts["claims"], d)
		}
	}
}
