package assay

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay/stats"
)

// TestRealTableStatistics counts the published table of RAGuard and finds what was published of it, or follows from
// it (methods 3.0 and 3.1).
func TestRealTableStatistics(t *testing.T) {
	captures := os.Getenv("ASSAY_REAL")
	if captures == "" {
		t.Skip("ASSAY_REAL is not set")
	}
	f := newFolder(t, t.TempDir())
	f.with(func(w *Workspace) error {
		if _, err := w.Import(t.Context(), "claims-table", filepath.Join(captures, "raguard", "claims.csv"), ImportOptions{}); err != nil {
			return err
		}
		s, err := w.LabelStatistics(t.Context())
		if err != nil {
			return err
		}
		if len(s.Tables) != 1 || s.Labels.Total() != 0 || s.Panel != nil || s.Control != nil || s.Agreement != nil {
			t.Fatalf("statistics of a table alone = %+v", s)
		}
		got := s.Tables[0]
		t.Log("\n" + got.Text())
		verdicts := stats.NewTable([]string{"false", "half_true", "mostly_false", "mostly_true", "pants_on_fire", "true"}, verdictColumns)
		verdicts.Counts = [][]int{{0, 629}, {523, 0}, {0, 447}, {485, 0}, {0, 239}, {325, 0}}
		labels := stats.NewTable(stanceNames(), verdictColumns)
		labels.Counts = [][]int{{475, 2210}, {1365, 447}, got.Labels.Counts[2]}
		if diff := cmp.Diff(verdicts, got.Verdicts); diff != "" {
			t.Errorf("ratings by verdict (-published +got):\n%s", diff)
		}
		if diff := cmp.Diff(labels, got.Labels); diff != "" {
			t.Errorf("labels by verdict (-published +got):\n%s", diff)
		}
		percent := func(s Share) string { return fmt.Sprintf("%.1f %%", 100**s.Value) }
		for _, c := range []struct{ what, got, want string }{
			{"claims", fmt.Sprint(got.Claims), "2648"},
			{"labels", fmt.Sprint(got.Labels.Total()), "16331"},
			{"unrelated", fmt.Sprint(got.Labels.Counts[2][0] + got.Labels.Counts[2][1]), "11834"},
			{"words", fmt.Sprintf("%.2f", got.Words), "17.65"},
			{"documents", fmt.Sprintf("%.1f %.2f", got.Documents, got.Documents), "6.2 6.17"},
			{"with supporting", fmt.Sprint(got.ByClaim.Supporting.N, " ", percent(got.ByClaim.Supporting)), "955 36.1 %"},
			{"with misleading", fmt.Sprint(got.ByClaim.Misleading.N, " ", percent(got.ByClaim.Misleading)), "788 29.8 %"},
			{"with both, with neither", fmt.Sprint(got.ByClaim.Both, got.ByClaim.Unrelated), "350 1255"},
			{"misleading ones that are true, false", fmt.Sprint(got.ByClaim.MisleadTrue, got.ByClaim.Misleading.N-got.ByClaim.MisleadTrue), "549 239"},
			{"implied false", percent(got.ImpliedFalse), "79.5 %"},
		} {
			if c.got != c.want {
				t.Errorf("%s: %s, published %s", c.what, c.got, c.want)
			}
		}
		// What follows: who always says "false" agrees with four of five related labels, and looks as if it could read.
		for _, b := range got.Baselines {
			if reading := b.Readings[1]; b.Answer == "false" && fmt.Sprintf("%.3f %.3f", *reading.Accuracy, *reading.Kappa) != "0.795 0.575" {
				t.Errorf("always false: %v, want accuracy 0.795, kappa 0.575", reading)
			}
		}
		return nil
	})
}
