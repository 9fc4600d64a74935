package stats

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// TestInteropAgreement computes what make interop compares with scikit-learn, krippendorff and irrCAC, in the
// folder in which it leaves its questions.
func TestInteropAgreement(t *testing.T) {
	dir := os.Getenv("ASSAY_INTEROP")
	if dir == "" {
		t.Skip("ASSAY_INTEROP is not set: make interop compares us with reference libraries")
	}
	data, err := os.ReadFile(filepath.Join(dir, "ratings.json"))
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Labels []string   `json:"labels"`
		Items  [][]string `json:"items"`
	}
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	out := make([]map[string]any, len(cases))
	for i, c := range cases {
		r, q := NewRatings(c.Items, c.Labels...), len(c.Labels)
		var a, b []string
		for _, item := range c.Items {
			if item[0] != "" && item[1] != "" {
				a, b = append(a, item[0]), append(b, item[1])
			}
		}
		k := Kappa(a, b, c.Labels...)
		s := Scores("", a, b, c.Labels...)
		out[i] = map[string]any{
			"percent": Percent(r).Value, "fleiss": Fleiss(r).Value, "fleiss_pe": Fleiss(r).Expected,
			"ac1": AC1(r).Value, "ac1_pe": AC1(r).Expected,
			"ac2_linear": AC2(r, Linear(q)).Value, "ac2_quadratic": AC2(r, Quadratic(q)).Value, "ac2_ordinal": AC2(r, Ordinal(q)).Value,
			"alpha_nominal": Alpha(r, Nominal).Value, "alpha_ordinal": Alpha(r, OrdinalScale).Value,
			"kappa": k.Value, "confusion": k.Confusion.Counts, "accuracy": s.Accuracy, "macro_f1": s.MacroF1.Value,
		}
	}
	if data, err = json.Marshal(out); err == nil {
		err = os.WriteFile(filepath.Join(dir, "agreement.json"), data, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}
