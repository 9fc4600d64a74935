package assay

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Two labels of one pair are told, and neither is kept, in whatever order and from however many files they
// come.
func TestContradictingLabels(t *testing.T) {
	line := func(n int, label string) string {
		return fmt.Sprintf(`{"claim":"The toll doubled.","text":"The reader of number %[1]d writes about the toll.","url":"https://news%[1]d.example/","label":%[2]q,"verdict":"false"}`+"\n", n, label)
	}
	alone := func(label string) string {
		return fmt.Sprintf(`{"claim":"The toll doubled.","text":"A text without address.","label":%q,"verdict":"false"}`+"\n", label)
	}
	for _, tt := range []struct {
		name     string
		files    []string
		problems []string // of each file
		labels   []string // stored
	}{
		{"in one file", []string{line(1, "supporting") + line(2, "unrelated") + line(1, "misleading") + line(1, "supporting")},
			[]string{`row 3: the pair of claim "The toll doubled." and https://news1.example/ is misleading here and is supporting in row 1; neither label is used`}, []string{"", "unrelated"}},
		{"of one text", []string{alone("supporting") + alone("misleading")}, []string{"is misleading here and is supporting in row 1"}, []string{""}},
		{"in two files", []string{line(1, "supporting"), line(1, "misleading"), line(1, "supporting")},
			[]string{"", "is misleading here and is supporting in the one imported before; neither", "is supporting here and has no label because imports contradicted each other"}, []string{""}},
		{"the same label twice", []string{line(1, "supporting") + line(1, "supporting"), line(1, "supporting")}, []string{"", ""}, []string{"supporting"}},
		{"an address with two texts", []string{line(1, "supporting") + strings.Replace(line(1, "supporting"), "writes", "says nothing at all of worth", 1)}, []string{"that came before for https://news1.example/; the first stays"}, []string{"supporting"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFolder(t, t.TempDir())
			f.with(func(w *Workspace) error {
				for i, text := range tt.files {
					r, err := w.Import(t.Context(), "pairs", f.write(fmt.Sprintf("f%d", i), text), ImportOptions{})
					if err != nil {
						return err
					}
					if got := strings.Join(r.Problems, "\n"); tt.problems[i] == "" && got != "" || !strings.Contains(got, tt.problems[i]) || len(r.Problems) > 1 {
						t.Errorf("file %d: problems %q, want %q", i, got, tt.problems[i])
					}
				}
				var labels []string
				for e, err := range w.tables.Links.Scan("", "") {
					if err != nil {
						return err
					}
					labels = append(labels, string(e.Value.Label))
				}
				slices.Sort(labels)
				if diff := cmp.Diff(tt.labels, labels); diff != "" {
					t.Errorf("labels (-want +got):\n%s", diff)
				}
				for e, err := range w.tables.Pool.Scan("", "") {
					if err != nil || strings.Contains(e.Value.Document.Text, "nothing at all") {
						t.Errorf("document %q, %v", e.Value.Document.Text, err)
					}
				}
				return nil
			})
		})
	}
}

// RAGuard tells a label twice, in its claims and in its documents: where they differ the pair is named and has
// none, whichever came first.
func TestLabelsOfClaimsAndDocuments(t *testing.T) {
	const claims = "Claim ID,Claim,Verdict,Document IDs,Document Labels,Original Verdict\n3,The village has three wells.,True,\"[7, 8]\",\"['supporting', 'unrelated']\",true\n"
	const documents = "Document ID,Title,Full Text,Claim ID,Document Label,Link\n7,Wells,We dug the third well of the village in spring.,3,misleading,\n8,Bridge,The bridge of the village was painted green.,3,unrelated,\n"
	for _, order := range [][2]string{{"claims-table", "pairs"}, {"pairs", "claims-table"}} {
		f := newFolder(t, t.TempDir())
		f.with(func(w *Workspace) error {
			var problems []string
			for _, kind := range order {
				text := map[string]string{"claims-table": claims, "pairs": documents}[kind]
				r, err := w.Import(t.Context(), kind, f.write(kind+".csv", text), ImportOptions{})
				if err != nil {
					return err
				}
				problems = append(problems, r.Problems...)
			}
			if len(problems) != 1 || !strings.HasPrefix(problems[0], "row 1") || !strings.Contains(problems[0], "claim 3") || !strings.HasSuffix(problems[0], "neither label is used") {
				t.Errorf("%v: problems %q", order, problems)
			}
			labels := map[string]string{}
			for e, err := range w.tables.Links.Scan("", "") {
				if err != nil {
					return err
				}
				labels[e.Value.DocumentID] = string(e.Value.Label)
			}
			if diff := cmp.Diff(map[string]string{"raguard:7": "", "raguard:8": "unrelated"}, labels); diff != "" {
				t.Errorf("%v: labels (-want +got):\n%s", order, diff)
			}
			return nil
		})
	}
}
