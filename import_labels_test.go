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
