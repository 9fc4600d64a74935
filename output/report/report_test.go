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

// invented is a corpus of ten claims, four of which have a labelled pair.
func invented() Data {
	c := Corpus{
		Name: "ours", Claims: 10, Labelled: 4, Words: 7.25, Pairs: 5, Both: 1, Unrelated: 1, Verdicts: map[string]int{"true": 6, "false": 3, "": 1},
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
	byVerdict := func(rows []string, counts ...[]int) stats.Table {
		x := stats.NewTable(rows, []string{"true", "false"})
		x.Counts = counts
		return x
	}
	stances := []string{"supporting", "misleading", "unrelated"}
	agree := Agreement{Between: "annotate and second", Majority: 0.5, Readings: []stats.Agreement{
		stats.KappaReading(stats.Readings("supporting", "misleading")[0], []string{"supporting", "misleading", "unrelated"}, []string{"supporting", "unrelated", "unrelated"}, stances...),
	}, Baselines: []Baseline{{Answer: "false", Readings: []stats.Score{stats.Scores("all labels", []string{"supporting", "misleading"}, []string{"supporting", "supporting"}, stances...)}}}}
	consensus := stats.NewTable(stances, append(stances, "none"))
	consensus.Add("supporting", "none", 1)
	consensus.Add("unrelated", "unrelated", 2)
	ratings := stats.NewRatings([][]string{{"supporting", "misleading"}, {"unrelated", "unrelated"}, {"unrelated", "unrelated"}}, stances...)
	byLabel := stats.NewTable(stances, []string{"stable", "unstable"})
	byLabel.Add("supporting", "stable", 3)
	byLabel.Add("misleading", "unstable", 1)
	margin := 0.85
	more := Data{
		Panel: &Panel{
			Pairs: 3, Annotators: []Annotator{
				{Name: "annotate", Model: "m", Outcomes: map[string]int{"labelled": 3}, Labels: byVerdict(stances, []int{1, 0}, []int{0, 0}, []int{1, 1})},
				{Name: "second", Model: "n", Outcomes: map[string]int{"labelled": 2, "refused": 1}, Labels: byVerdict(stances, []int{0, 0}, []int{0, 0}, []int{1, 1})},
			}, Pairwise: []Agreement{agree}, Coefficients: []stats.Coefficient{stats.Percent(ratings), stats.AC1(ratings)}, Consensus: consensus, Unanimous: Share{2, 3}, Disputed: Share{1, 3},
		},
		Control: &Control{
			Claims: 20, Outcomes: map[string]int{"labelled": 19, "refused": 1}, Answers: byVerdict([]string{"true", "false", "unrelated"}, []int{3, 1}, []int{0, 1}, []int{10, 4}),
			Bears: Share{5, 19}, CorpusBears: Share{4, 5}, Flips: Share{2, 16}, CorpusFlips: Share{3, 4},
			Constants: []Constant{{"true", map[string]int{"flip": 6}}, {"unrelated", map[string]int{"abstain": 19}}},
		},
		Stability: &Stability{Samples: 5, Unstable: Share{1, 4}, Margin: stats.Mean([]*float64{&margin}), ByLabel: byLabel, ByMargin: byVerdict([]string{"1.00", "0.20"}, []int{2, 1}, []int{1, 0})},
		Strata: []Stratum{
			{By: "verdict", Value: "false", Asked: 10, Labelled: 10, Refused: Share{0, 10}, Filtered: Share{0, 10}, Failed: Share{0, 10}},
			{By: "verdict", Value: "true", Asked: 8, Labelled: 5, Held: 1, Refused: Share{2, 8}, Filtered: Share{0, 8}, Failed: Share{0, 8}},
			{By: "document", Value: "reddit_post", Asked: 18, Labelled: 15, Held: 1, Refused: Share{2, 18}, Filtered: Share{0, 18}, Failed: Share{0, 18}},
		},
		Constants: []Constant{{"false", map[string]int{"flip": 2, "abstain": 1}}},
		Missing:   map[string][]string{"cost": {"Prices of two models are not known: see assay import prices."}},
	}
	return Data{
		Panel: more.Panel, Control: more.Control, Stability: more.Stability, Strata: more.Strata, Constants: more.Constants, Missing: more.Missing,
		Name: "wells <script>alert(1)</script>", Corpora: []Corpus{c}, Effects: &effects, Zero: &zero,
		Agreement: []Agreement{{Between: "published and ours", Majority: 0.5, Readings: []stats.Agreement{
			stats.KappaReading(stats.Readings("supporting", "misleading")[0], []string{"supporting", "misleading"}, []string{"supporting", "unrelated"}, "supporting", "misleading", "unrelated"),
		}, Baselines: agree.Baselines}},
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
	for _, want := range []string{"&lt;script&gt;", `<h2 id="labels">`, `<h2 id="agreement">`, `<h2 id="panel">`, `<h2 id="controls">`, `<h2 id="stability">`, `<h2 id="strata">`, `<h2 id="effects">`, `<h2 id="cost">`, "<svg", "kappa"} {
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
		"labels.md": "| always true | 25.0 % | 100.0 % | 100.0 % | 60.0 % |\n", "effects.md": "| flip | 3 | 0 | 3 | 100.0 % |\n",
		"controls.md": "Right of those that it answered: 66.7 %.", "agreement.md": "Majority baseline: 50.0 %.",
		"cost.md": "| annotate | a\\|b at main | 1,200 | 2 | 1,000 | 10 | 50 | 5 | 1.2500 |\n", "cost_calls.csv": "1.2501 (without 1 calls of no known price)",
	} {
		if !strings.Contains(first[name], want) {
			t.Errorf("%s lacks %q:\n%s", name, want, first[name])
		}
	}
	for name, wants := range map[string][]string{
		"labels.md":    {"| claims with a labelled pair | 4 |\n", "| claims with neither verdict | 1 |\n", "| misleading | 2 | 0 | 2 | 50.0 % |\n", "share of claims with a labelled pair"},
		"agreement.md": {"| always false | all labels | 2 | 50.0 % | 0.000 |\n"},
		"panel.md": {
			"| second | n | 2 | 1 |\n", "| annotate and second | 3 | 66.7 % | 0.500 |\n", "| Gwet's AC1 | 3 | ", "| supporting | 0 | 0 | 0 | 1 |\n",
			"Unanimous: 2 of 3 pairs (66.7 %). Disputed: 1 (33.3 %).", "as second has them", "| always false | all labels |", "panel_labels.svg", "panel_kappa.svg",
		},
		"controls.md": {
			"| documents of other claims | 5 of 19 | 26.3 % | [0.12, 0.49] | 2 of 16 | 12.5 % | [0.03, 0.36] |\n", "| the pairs of the corpus | 4 of 5 | 80.0 % |",
			"| always true, on documents of other claims | 19 of 19 | 100.0 % |", "| always unrelated, on documents of other claims | 0 of 19 | 0.0 % |",
			"labelled 19, refused 1", "| true | 3 | 1 | 4 | 21.1 % |\n", "controls_shuffled.svg",
		},
		"stability.md": {"| misleading | 0 | 1 | 1 of 1 | 100.0 % |", "| all | 3 | 1 | 1 of 4 | 25.0 % |", "Mean margin: 0.850.", "| 0.20 | 1 | 0 | 1 | 25.0 % |\n", "stability_margins.svg"},
		"strata.md":    {"| true | 8 | 5 | 1 | 2 of 8 | 25.0 % |", "Outcomes by document", "strata_verdict.svg"},
		"effects.md":   {"| always false | 2 | 1 |\n", "effects_effects.svg"},
		"cost.md":      {"\nPrices of two models are not known: see assay import prices.\n"},
		"index.html":   {`<p class="note">Prices of two models`},
	} {
		for _, want := range wants {
			if !strings.Contains(first[name], want) {
				t.Errorf("%s lacks %q:\n%s", name, want, first[name])
			}
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
	files, err = Write(filepath.Join(dir, "lacking"), Data{Name: "nothing", Missing: map[string][]string{"panel": {"name annotators"}}})
	if err != nil || len(files) != 2 || files[1] != "panel.md" {
		t.Errorf("of a section that lacks something: %v, %v", files, err)
	}
}
