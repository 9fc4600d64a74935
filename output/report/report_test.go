package report

import (
	"bytes"
	"encoding/csv"
	"errors"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"assay/stats"
)

// invented is a corpus of four claims.
func invented() Data {
	c := Corpus{
		Name: "ours", Claims: 4, Words: 7.25, Pairs: 5, Both: 1, Unrelated: 1, Verdicts: map[string]int{"true": 3, "false": 1},
		Labels:  stats.NewTable([]string{"supporting", "misleading", "unrelated"}, []string{"true", "false"}),
		Claimed: stats.NewTable([]string{"supporting", "misleading", "unrelated"}, []string{"true", "false"}),
	}
	c.Labels.Add("supporting", "true", 1)
	c.Labels.Add("misleading", "true", 3)
	c.Labels.Add("unrelated", "false", 1)
	c.Claimed.Add("misleading", "true", 2)
	effects := stats.NewTable([]string{"flip", "abstain"}, []string{"misleading", "unrelated"})
	effects.Add("flip", "misleading", 3)
	zero := stats.NewTable([]string{"true", "false", "unrelated"}, []string{"true", "false"})
	zero.Add("true", "true", 2)
	zero.Add("true", "false", 1)
	return Data{
		Name: "wells <script>alert(1)</script>", Corpora: []Corpus{c}, Effects: &effects, Zero: &zero,
		Agreement: []Agreement{{Between: "published and ours", Majority: 0.5, Readings: []stats.Agreement{
			stats.KappaReading(stats.Readings("supporting", "misleading")[0], []string{"supporting", "misleading"}, []string{"supporting", "unrelated"}, "supporting", "misleading", "unrelated"),
		}}},
		Costs: []Cost{{Role: "annotate", Endpoint: "main", Model: "a|b", Calls: 1200, Batch: 2, Prompt: 1000, Cached: 10, Completion: 50, Reasoning: 5, USD: 1.25}, {Role: "zero", Endpoint: "main", Model: "m", Calls: 1, USD: 0.0001, Unpriced: 1}},
	}
}

func TestWrite(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "report")
	files, err := Write(dir, invented())
	if err != nil {
		t.Fatal(err)
	}
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	first := map[string]string{}
	for _, f := range files {
		first[f] = read(f)
	}
	page := first["index.html"]
	for _, want := range []string{"&lt;script&gt;", `<h2 id="labels">`, `<h2 id="agreement">`, `<h2 id="controls">`, `<h2 id="effects">`, `<h2 id="cost">`, "<svg", "kappa"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	for _, not := range []string{"<script", "src=", "href=\"http", "@import"} {
		if strings.Contains(page, not) {
			t.Errorf("the page has %s", not)
		}
	}
	for name, want := range map[string]string{
		"labels.md": "| always true | 25.0 % | 100.0 % | 100.0 % | 75.0 % |\n", "effects.md": "| flip | 3 | 0 | 3 | 100.0 % |\n",
		"controls.md": "Right of those that it answered: 66.7 %.", "agreement.md": "Majority baseline: 50.0 %.",
		"cost.md": "| annotate | a\\|b at main | 1,200 | 2 | 1,000 | 10 | 50 | 5 | 1.2500 |\n", "cost_calls.csv": "1.2501 (without 1 calls of no known price)",
	} {
		if !strings.Contains(first[name], want) {
			t.Errorf("%s lacks %q:\n%s", name, want, first[name])
		}
	}
	rows, err := csv.NewReader(strings.NewReader(first["labels_ours_pairs.csv"])).ReadAll()
	if err != nil || len(rows) != 5 || rows[2][1] != "3" {
		t.Errorf("pairs as CSV: %v, %v", rows, err)
	}
	if p, err := png.DecodeConfig(bytes.NewReader([]byte(first["labels_ours.png"]))); err != nil || p.Width < 400 {
		t.Errorf("the picture is %v wide, %v", p.Width, err)
	}
	// Again, it is the same to the byte, and replaces what was there.
	if err := os.WriteFile(filepath.Join(dir, "labels_old.csv"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Write(dir, invented()); err != nil {
		t.Fatal(err)
	}
	for name, was := range first {
		if read(name) != was {
			t.Errorf("%s differs the second time", name)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "labels_old.csv")); err == nil {
		t.Error("a file of an older report stayed")
	}
}

// A place that holds something else is left alone, with nothing beside it; sections with nothing to tell are
// left out.
func TestWriteRefuses(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	own := at("own")
	if _, err := Write(own, invented()); err != nil {
		t.Fatal(err)
	}
	put := func(name, text string) {
		if err := errors.Join(os.MkdirAll(filepath.Dir(at(name)), 0o755), os.WriteFile(at(name), []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	put("notes.yaml", "x")
	put("thesis/thesis.tex", "x")
	put("site/index.html", "<title>mine</title>")
	put("photos/index.html", generator)
	put("photos/a/b.jpg", "x")
	put("own/labels.txt", "x")
	for _, name := range []string{"notes.yaml", "thesis", "site", "photos", "own"} {
		if _, err := Write(at(name), invented()); err == nil || !strings.Contains(err.Error(), "--to") {
			t.Errorf("over %s: %v", name, err)
		}
	}
	for _, name := range []string{"notes.yaml", "thesis/thesis.tex", "site/index.html", "photos/a/b.jpg", "own/labels.txt"} {
		if _, err := os.Stat(at(name)); err != nil {
			t.Error(err)
		}
	}
	put("other.next/mine", "x")
	if _, err := Write(at("other"), invented()); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(at("other.next/mine")); err != nil {
		t.Error(err)
	}
	if left, err := filepath.Glob(at(".*-*")); err != nil || len(left) > 0 {
		t.Errorf("left beside: %q, %v", left, err)
	}
	files, err := Write(filepath.Join(dir, "empty"), Data{Name: "nothing"})
	if err != nil || len(files) != 1 {
		t.Errorf("of nothing: %v, %v", files, err)
	}
}
