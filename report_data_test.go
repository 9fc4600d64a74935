package assay

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"assay/corpus"
	"assay/output"
	"assay/output/report"
)

// The published counts of RAGuard, read from its table (methods 3.1).
func TestReportOfRAGuard(t *testing.T) {
	real := os.Getenv("ASSAY_REAL")
	if real == "" {
		t.Skip("ASSAY_REAL is not set")
	}
	f := newFolder(t, t.TempDir())
	f.write(ConfigName, "recipe:\n  profile: raguard\n  discover: [imported]\n  evidence: [pairs]\n")
	f.with(func(w *Workspace) error {
		if _, err := w.Import(t.Context(), "claims-table", filepath.Join(real, "raguard", "claims.csv"), ImportOptions{}); err != nil {
			return err
		}
		dir, _, err := w.WriteReport(t.Context(), "")
		if err != nil {
			return err
		}
		text, err := os.ReadFile(filepath.Join(dir, "labels.md"))
		if err != nil {
			return err
		}
		for _, want := range []string{
			"| claims | 2,648 |", "verdict true | 1,333 |", "verdict false | 1,315 |", "| words a claim | 17.65 |", "| documents a claim | 6.2 |",
			"| supporting | 475 | 2,210 | 2,685 |", "| misleading | 1,365 | 447 | 1,812 |", "| 11,834 | 72.5 % |",
			"| supporting | 243 | 712 | 955 | 36.1 % |", "| misleading | 549 | 239 | 788 | 29.8 % |", "| 350 |", "| 1,255 |", "| always false | 79.5 % | 24.7 % |",
		} {
			if !strings.Contains(string(text), want) {
				t.Errorf("the report lacks %q:\n%s", want, text)
			}
		}
		return nil
	})
}

// A report of what was built counts it as the release does, its costs are the records', and it says
// nothing of a workspace that is empty.
func TestReport(t *testing.T) {
	f := newFolder(t, t.TempDir())
	f.with(func(w *Workspace) error {
		if _, _, err := w.WriteReport(t.Context(), ""); err == nil || !strings.Contains(err.Error(), "nothing to report") {
			t.Errorf("of an empty workspace: %v", err)
		}
		return nil
	})
	f.load("pairs", f.write("lines.jsonl", pairLine(1, "true")+pairLine(2, "false")+pairLine(3, "true")))
	built := f.build()
	f.with(func(w *Workspace) error {
		d, err := w.ReportData(t.Context())
		if err != nil {
			return err
		}
		ours := d.Corpora[0]
		if ours.Name != "ours" || ours.Claims != built.Release.Counts["claims"] || ours.Labels.Total() != built.Release.Counts["pairs"] || ours.Verdicts["true"] != 2 || ours.Words != 8 {
			t.Errorf("ours: %+v of %v", ours, built.Release.Counts)
		}
		if len(d.Corpora) != 2 || d.Corpora[1].Labels.Count("supporting", "true") != 2 || len(d.Agreement) != 1 || d.Agreement[0].Readings[0].N != 3 {
			t.Errorf("published: %+v, agreement %+v", d.Corpora[1:], d.Agreement)
		}
		spent, err := w.llm.Spend()
		if err != nil {
			return err
		}
		calls, usd := 0, 0.0
		for _, c := range d.Costs {
			calls, usd = calls+c.Calls, usd+c.USD
		}
		if calls != spent.Calls || calls == 0 || math.Abs(usd-spent.USD) > 1e-9 {
			t.Errorf("costs are of %d calls for %v, records of %d for %v", calls, usd, spent.Calls, spent.USD)
		}
		// The builtin model has no belief of its own, so what a document does to it is not known.
		if d.Zero.Total() != 0 || d.Effects.Count("unknown", "supporting")+d.Effects.Count("unknown", "misleading") != 3 {
			t.Errorf("controls of %d claims, effects:\n%s", d.Zero.Total(), d.Effects)
		}
		return nil
	})
}

// No path leads a report into a release, which would not verify any more.
func TestReportIntoARelease(t *testing.T) {
	f := newFolder(t, t.TempDir())
	f.load("pairs", f.write("lines.jsonl", pairLine(1, "true")+pairLine(2, "false")))
	release := f.build().Release.Dir
	elsewhere := t.TempDir()
	link := filepath.Join(elsewhere, "link")
	if err := os.Symlink(release, link); err != nil {
		t.Fatal(err)
	}
	t.Chdir(release)
	f.with(func(w *Workspace) error {
		for _, c := range []struct{ release, to string }{
			{release, "report"}, {".", filepath.Join(release, "report")}, {release, filepath.Join(link, "new", "report")}, {link, filepath.Join(release, "report")},
		} {
			if _, err := WriteReportOfRelease(t.Context(), c.release, c.to); err == nil || !strings.Contains(err.Error(), "lies in the release") {
				t.Errorf("of %s to %s: %v", c.release, c.to, err)
			}
			if _, _, err := w.WriteReport(t.Context(), c.to); err == nil || !strings.Contains(err.Error(), "lies in the release") {
				t.Errorf("of the workspace to %s: %v", c.to, err)
			}
		}
		_, err := WriteReportOfRelease(t.Context(), link, filepath.Join(elsewhere, "new", "report"))
		return err
	})
	if problems, err := output.Verify(t.Context(), release); err != nil || len(problems) > 0 {
		t.Errorf("the release afterwards: %v, %v", problems, err)
	}
}

// Terminal and report share claims out among those with a labelled pair, and say so: a crawl is mostly claims that
// nobody has searched for yet.
func TestSharesAreOfClaimsWithALabelledPair(t *testing.T) {
	c, count := newTabulation(), newTallying()
	claims := map[string]claimTold{}
	for i := range 100 {
		id := fmt.Sprintf("c_%03d", i)
		claims[id] = claimTold{"Five words make a claim.", "true"}
		if i < 5 {
			label := []corpus.StanceLabel{corpus.Supporting, corpus.Unrelated}[min(i, 1)]
			c.claim("", "true", label)
			count.asked[id] = askedPair{claim: corpus.Claim{ID: id}, binary: "true", label: corpus.Label{Label: label}, outcome: outcomeLabelled}
		}
	}
	if text := c.byClaim().Text(); !strings.HasPrefix(text, "of 5 claims with a labelled pair: with supporting documents 20.0 % (1 of 5) ") {
		t.Errorf("the terminal says %q", text)
	}
	if text := count.statistics().Text(); !strings.Contains(text, c.byClaim().Text()) {
		t.Errorf("statistics say %q", text)
	}
	dir := filepath.Join(t.TempDir(), "report")
	if _, err := report.Write(dir, count.report(claims)); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "labels.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| claims | 100 |", "| claims with a labelled pair | 5 |", "| words a claim | 5.00 |", "share of claims with a labelled pair", "| supporting | 1 | 0 | 1 | 20.0 % |", "| unrelated alone |  |  | 4 | 80.0 % |"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the report lacks %s:\n%s", want, text)
		}
	}
}
