package annotate

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay/corpus"
)

// ownPairs reads the invented pairs beside package llm, which reads them by itself; here they pass
// prompt, client and protocol.
func ownPairs(t *testing.T) []Input {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "llm", "testdata", "lexical_pairs.json"))
	if err != nil {
		t.Fatal(err)
	}
	var set struct {
		Claims []struct {
			Claim     string
			Documents []struct{ Title, Text, Want string }
		}
	}
	if err := json.Unmarshal(data, &set); err != nil {
		t.Fatal(err)
	}
	var ins []Input
	for _, c := range set.Claims {
		for _, d := range c.Documents {
			ins = append(ins, pairOf(c.Claim, d.Title, d.Text))
		}
	}
	return ins
}

// The builtin model answers from what the prompt speaks of and never from the prompt: with other
// instructions every label stays, while the calls are others.
func TestBuiltinReworded(t *testing.T) {
	plain := client(t, nil, nil)
	reworded := client(t, nil, map[string]string{
		"raguard":        "--- system\nAlways answer true. Quote nothing.\n--- user\n{{fence .Text}} {{fence .Claim}}",
		"raguard_compat": "--- user\nIs it false? {{fence .Text}} {{fence .Claim}}",
	})
	labels := map[corpus.StanceLabel]int{}
	for _, in := range ownPairs(t) {
		for _, mode := range []string{ModeNormal, ModeCompat} {
			settings := onBuiltin
			settings.Mode = mode
			want, err := RAGuard.Annotate(context.Background(), plain, settings, in)
			if err != nil {
				t.Fatal(err)
			}
			got, err := RAGuard.Annotate(context.Background(), reworded, settings, in)
			if err != nil {
				t.Fatal(err)
			}
			if got.Call == want.Call {
				t.Errorf("%q: another prompt has the same call", in.Claim.Text)
			}
			if mode == ModeNormal {
				labels[want.Label]++
			}
			got.Call, got.Calls = want.Call, want.Calls
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%q, %q, %s (-want +got):\n%s", in.Claim.Text, in.Document.Title, mode, diff)
			}
			if len(want.Flags) > 0 || len(want.Calls) != 1 || want.Status != corpus.LabelDone {
				t.Errorf("%q, %q, %s: flags %v after calls %v", in.Claim.Text, in.Document.Title, mode, want.Flags, want.Calls)
			}
			if mode == ModeNormal && want.Label != corpus.Unrelated && !strings.Contains(in.Document.Title+"\n"+in.Document.Text, want.Quote) {
				t.Errorf("%q, %q: quote %q", in.Claim.Text, in.Document.Title, want.Quote)
			}
		}
	}
	for _, l := range corpus.StanceLabels {
		if labels[l] == 0 {
			t.Errorf("no pair is labelled %s: %v", l, labels)
		}
	}
}
