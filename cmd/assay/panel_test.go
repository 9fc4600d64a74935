package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// panelLab is a lab with two annotators beside that of the corpus, a control of 5 claims and 3 samples a pair. Every
// model is the stub under a name of its own.
func panelLab(t *testing.T, n int, change ...string) *lab {
	t.Helper()
	l := newLab(t, n, "")
	path := filepath.Join(l.dir, "assay.yaml")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer(
		"label: {zero_context: false, quote_check: false}",
		"label: {zero_context: true, quote_check: false, samples: 3, shuffled: 5, panel: {annotators: [second, third], pairs: 0}}",
		"  models:\n", "  models:\n    second: {endpoint: stub, model: stub-2, temperature: 0, max_tokens: 200}\n    third: {endpoint: stub, model: stub-3, temperature: 0, max_tokens: 200}\n",
	).Replace(string(data))
	text = strings.NewReplacer(change...).Replace(text)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return l
}

// annotators answers by the model that is asked: the zero-context question with true, an exam by the function.
func (l *lab) annotators(answer func(model, body string) string) {
	l.model.set(func(m *modelStub) {
		m.reply = func(body string) (int, string, string) {
			var q struct{ Model string }
			if err := json.Unmarshal([]byte(body), &q); err != nil {
				return http.StatusBadRequest, `{"error":{"message":"no JSON"}}`, ""
			}
			if !strings.Contains(body, "I counted the wells") {
				return http.StatusOK, `{"answer":"true"}`, "stop"
			}
			switch said := answer(q.Model, body); said {
			case "refuse":
				return http.StatusOK, "I cannot help with that.", "content_filter"
			case "cut":
				return http.StatusOK, "", "length"
			default:
				return http.StatusOK, fmt.Sprintf(`{"quote":"","reason":"r","answer":%q}`, said), "stop"
			}
		}
	})
}

type statistics struct {
	Statistics struct {
		Stability struct {
			Samples  int
			Unstable struct{ N, Of int }
		}
		Control struct {
			Outcomes       map[string]int
			Effects        map[string]int
			Related, Flips struct{ N, Of int }
		}
		Panel struct {
			Pairs      int
			Annotators []struct {
				Annotator string
				Outcomes  map[string]int
				Effects   map[string]int
			}
			Pairwise []struct {
				Reference, Other string
				Readings         []struct {
					Kappa  *float64
					Reason string
					N      int
					Raw    *float64 `json:"raw_agreement"`
				}
			}
			MeanKappa []struct {
				Value        *float64
				N, Undefined int
			} `json:"mean_kappa"`
			Coefficients []struct {
				Name   string
				Value  *float64
				Reason string
			}
			Disputes int
		}
		Outcomes []struct {
			By, Value string
			Asked     int
			Outcomes  map[string]int
			Refused   struct{ N, Of int }
			Filtered  struct{ N, Of int }
			Failed    struct{ N, Of int }
		}
	}
}

func statisticsOf(t *testing.T, l *lab, code int) (statistics, report) {
	t.Helper()
	out, _ := l.must(code, "build", "--json")
	var s statistics
	var r report
	for _, into := range []any{&s, &r} {
		if err := json.Unmarshal([]byte(out), into); err != nil {
			t.Fatalf("report: %v\n%s", err, out)
		}
	}
	if strings.Contains(out, "NaN") {
		t.Errorf("the report has a NaN: %s", out)
	}
	return s, r
}

// Panel, samples and control are paid once, stand in the release with their calls, and are free the second time.
func TestHD27PanelAndControlCostOnce(t *testing.T) {
	l := panelLab(t, 8)
	l.annotators(func(model, body string) string {
		if model == "stub-3" && strings.Contains(body, "Village number 3 has") {
			return "false"
		}
		if strings.Contains(body, "Village number 1 has") {
			return "unrelated"
		}
		return "true"
	})
	s, first := statisticsOf(t, l, 0)
	// 8 claims and pairs: 8 zero-context answers of each of three annotators, 8 x 3 samples, 2 x 8 of the panel, and 5 x 3 of the control.
	want := 3*8 + 8*3 + 2*8 + 5*3
	if all, distinct := l.model.requests(); all != want || first.LLM.Calls != want || first.LLM.Hits != 0 || first.LLM.Tokens != 120*want {
		t.Errorf("run 1: %d requests (%d distinct), %+v, want %d calls and no hit", all, distinct, first.LLM, want)
	}
	if p := s.Statistics.Panel; p.Pairs != 8 || len(p.Annotators) != 3 || len(p.Pairwise) != 3 || p.Annotators[2].Outcomes["labelled"] != 8 {
		t.Errorf("panel = %+v", p)
	}
	if st := s.Statistics.Stability; st.Samples != 3 || st.Unstable.N != 0 || st.Unstable.Of != 8 {
		t.Errorf("stability = %+v", st)
	}
	if c := s.Statistics.Control; c.Outcomes["labelled"] != 5 || c.Related.Of != 5 || c.Flips.Of != 5 {
		t.Errorf("control = %+v", c)
	}
	// Village 3 is false, and "true" misleads: of three, one annotator says otherwise, and the consensus is that of the corpus.
	if s.Statistics.Panel.Disputes != 0 {
		t.Errorf("%d disputes, want none: the majority stands", s.Statistics.Panel.Disputes)
	}
	second := l.build(0)
	if second.LLM.Calls != 0 || second.LLM.Tokens != 0 || second.LLM.Hits != want || second.LLM.SavedTokens != 120*want {
		t.Errorf("run 2: %+v, want 0 calls and %d hits", second.LLM, want)
	}
	if first.Release.ID != second.Release.ID {
		t.Errorf("releases %s and %s", first.Release.ID, second.Release.ID)
	}
	calls := map[string]string{}
	for _, row := range released(t, second.Release.Dir, "annotations") {
		calls[row["id"].(string)] = row["role"].(string)
	}
	if len(calls) != want {
		t.Errorf("%d calls in the release, want %d", len(calls), want)
	}
	for _, row := range released(t, second.Release.Dir, "pairs") {
		panel := row["panel"].([]any)
		if len(panel) != 3 || row["consensus"] != row["label"] || row["role"] != row["label"] || row["samples"] != 3.0 || row["margin"] != 1.0 {
			t.Errorf("pair %v", row)
		}
		for _, a := range panel {
			if role := calls[a.(map[string]any)["call"].(string)]; role == "" {
				t.Errorf("annotation %v leads to no call", a)
			}
		}
	}
	controls := released(t, second.Release.Dir, "controls")
	if len(controls) != 5 || second.Release.Counts["controls"] != 5 {
		t.Errorf("%d controls, counts %v", len(controls), second.Release.Counts)
	}
	for _, row := range controls {
		if row["role"] != "random" || calls[row["call"].(string)] != "control:annotate" {
			t.Errorf("control %v by %s", row, calls[row["call"].(string)])
		}
	}
	l.must(0, "verify", second.Release.Dir)
	l.must(0, "gc")
	if again := l.build(0); again.LLM.Calls != 0 {
		t.Errorf("after gc: %d calls", again.LLM.Calls)
	}
}

// Annotators who use one label only have no kappa, and the mean says how many it left out.
func TestHD25PanelOfOneLabel(t *testing.T) {
	l := panelLab(t, 6)
	l.annotators(func(model, _ string) string {
		if model == "stub-3" {
			return "refuse"
		}
		return "unrelated"
	})
	s, _ := statisticsOf(t, l, 3)
	p := s.Statistics.Panel
	if len(p.Pairwise) != 3 || p.Pairs != 6 {
		t.Fatalf("panel = %+v", p)
	}
	if k := p.Pairwise[0].Readings[0]; k.Kappa != nil || k.Reason != "single label" || k.Raw == nil || *k.Raw != 1 || k.N != 6 {
		t.Errorf("annotate and second: %+v, want no kappa for a single label, raw agreement 1, n 6", k)
	}
	if k := p.Pairwise[1].Readings[0]; k.Kappa != nil || k.Reason != "no common items" || k.N != 0 {
		t.Errorf("annotate and third: %+v, want no kappa without common items", k)
	}
	if m := p.MeanKappa[0]; m.Value != nil || m.N != 0 || m.Undefined != 3 {
		t.Errorf("mean kappa %+v, want none of 3", m)
	}
	if p.Annotators[2].Outcomes["filtered"] != 6 {
		t.Errorf("third: %v, want 6 filtered", p.Annotators[2].Outcomes)
	}
	for _, c := range p.Coefficients {
		if (c.Value == nil) != (c.Reason != "") {
			t.Errorf("%s: value %v, reason %q", c.Name, c.Value, c.Reason)
		}
	}
	// Two of three is a majority.
	if p.Disputes != 0 {
		t.Errorf("%d disputes", p.Disputes)
	}
}

// Wrapped answers count in the panel, cut ones are no label of anybody, and who disagrees waits for a person.
func TestHD14HD15PanelAndControl(t *testing.T) {
	l := panelLab(t, 4, "samples: 3", "samples: 1")
	l.annotators(func(model, body string) string {
		switch {
		case model == "stub-2" && strings.Contains(body, "Village number 0 has"):
			return "cut"
		case model == "stub-1" && strings.Contains(body, "Village number 2 has") && strings.Contains(body, "village number 2 on"):
			return "cut"
		case model == "stub-3":
			return "false"
		}
		return "true"
	})
	good := l.model.reply
	l.model.set(func(m *modelStub) {
		m.reply = func(body string) (int, string, string) {
			status, text, finish := good(body)
			if strings.Contains(body, "stub-3") && strings.Contains(text, "answer") {
				text = "```json\n" + text + "\n```"
			}
			return status, text, finish
		}
	})
	s, r := statisticsOf(t, l, 3)
	p := s.Statistics.Panel
	if p.Pairs != 3 {
		t.Fatalf("panel over %d pairs, want the 3 with a label", p.Pairs)
	}
	if got := p.Annotators[1].Outcomes; got["truncated"] != 1 || got["labelled"] != 2 {
		t.Errorf("second: %v, want 1 truncated, 2 labelled", got)
	}
	if got := p.Annotators[2].Outcomes; got["labelled"] != 3 {
		t.Errorf("third, in code fences: %v, want 3 labelled", got)
	}
	// Village 0: true, nothing, false. The others: true, true, false.
	if p.Disputes != 1 {
		t.Errorf("%d disputes, want 1", p.Disputes)
	}
	out, _ := l.must(0, "ls", "disputes")
	if !strings.Contains(out, "no consensus") || !strings.Contains(out, "second truncated") || strings.Count(out, "\n") != 1 {
		t.Errorf("ls disputes = %q", out)
	}
	for _, o := range s.Statistics.Outcomes {
		if o.By == "verdict" && o.Value == "true" && (o.Asked != 2 || o.Failed.N != 1 || o.Outcomes["truncated"] != 1) {
			t.Errorf("true claims: %+v, want 1 of 2 failed", o)
		}
	}
	for _, row := range released(t, r.Release.Dir, "pairs") {
		for _, a := range row["panel"].([]any) {
			if a := a.(map[string]any); (a["outcome"] == "labelled") != (a["label"] != "") || (a["call"] == "") != (a["label"] == "") {
				t.Errorf("annotation %v", a)
			}
		}
	}
}

// A changed prompt or setting asks panel and control again, and going back does not.
func TestHD17PanelFollowsPromptAndSettings(t *testing.T) {
	l := panelLab(t, 5, "samples: 3", "samples: 1", "zero_context: true", "zero_context: false")
	l.annotators(func(string, string) string { return "unrelated" })
	calls := func() int {
		before, _ := l.model.requests()
		l.build(0)
		after, _ := l.model.requests()
		return after - before
	}
	first := l.build(0)
	if all, _ := l.model.requests(); all != 5+2*5+5 {
		t.Errorf("run A: %d calls, want 20", all)
	}
	path := filepath.Join(l.dir, "assay.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	set := func(s string) {
		if err := os.WriteFile(path, []byte(s), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	set(strings.Replace(string(text), "model: stub-2, temperature: 0", "model: stub-2, temperature: 0.7", 1))
	if got := calls(); got != 5 {
		t.Errorf("another temperature of one annotator: %d calls, want its 5", got)
	}
	set(strings.Replace(string(text), "shuffled: 5", "shuffled: 5, seed: 9", 1))
	if got := calls(); got == 0 || got > 5 {
		t.Errorf("another seed: %d calls, want some of the 5 of the control", got)
	}
	set(string(text))
	if got := calls(); got != 0 {
		t.Errorf("as before: %d calls, want 0", got)
	}
	if last := l.build(0); last.Release.ID != first.Release.ID {
		t.Errorf("release %s, before %s", last.Release.ID, first.Release.ID)
	}
}

// The report tells what panel, control, samples and strata came to, and a release alone tells as much of what it
// holds. What was never asked names its setting.
func TestReportOfPanelAndControl(t *testing.T) {
	l := panelLab(t, 6)
	l.annotators(func(model, body string) string {
		switch {
		case strings.Contains(body, "village number 4 on"):
			return "cut" // of no annotator
		case model == "stub-3" && strings.Contains(body, "Village number 1 has"):
			return "unrelated"
		}
		return "true"
	})
	_, r := statisticsOf(t, l, 3)
	read := func(dir, name string) string {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	ours, theirs := filepath.Join(l.dir, "ours"), filepath.Join(t.TempDir(), "theirs")
	l.must(0, "report", "--to", ours)
	l.must(0, "report", "--release", r.Release.Dir, "--to", theirs)
	for name, wants := range map[string][]string{
		"panel.md":     {"| third | stub-3 | 5 |\n", "| annotate and second | 5 | 100.0 % |", "| annotate and third | 5 | 80.0 % |", "Unanimous: 4 of 5 pairs (80.0 %). Disputed: 0 (0.0 %).", "as third has them"},
		"controls.md":  {"| documents of other claims | ", " | 100.0 % |", "| the pairs of the corpus | 5 of 5 | 100.0 % |", "| always unrelated, on documents of other claims | 0 of "},
		"stability.md": {"| all | 5 | 0 | 0 of 5 | 0.0 % |", "| 1.00 | "},
		"effects.md":   {"| always unrelated | 0 | 0 | 0 | 0 | 5 | 0 |\n"},
		"labels.md":    {"| claims | 6 |\n", "| claims with a labelled pair | 5 |\n"},
	} {
		text, _, _ := strings.Cut(read(ours, name), "Claims and documents, published")
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("%s lacks %q:\n%s", name, want, text)
			}
		}
		got := read(theirs, name)
		if name == "controls.md" { // what came of calls that gave no answer is not in a release
			before, rest, _ := strings.Cut(text, "Claims by what came of asking about them alone")
			_, rest, told := strings.Cut(rest, "Documents of other claims, over")
			if !told {
				t.Errorf("%s does not tell answers to claims alone by outcome:\n%s", name, text)
			}
			text = before + "Documents of other claims, over" + rest
		}
		if name == "labels.md" {
			got, _, _ = strings.Cut(got, "![")
		}
		if got != text {
			t.Errorf("%s of the release:\n%s\nof its workspace:\n%s", name, got, text)
		}
	}
	if text := read(ours, "strata.md"); !strings.Contains(text, "Outcomes by verdict") || !strings.Contains(text, "| 1 of 3 | 33.3 % |") {
		t.Errorf("strata of the workspace:\n%s", text)
	}
	if text := read(theirs, "strata.md"); !strings.Contains(text, "failed: permanent: 1") {
		t.Errorf("strata of the release:\n%s", text)
	}
	_, errs := l.must(1, "report", "--release", r.Release.Dir, "--to", filepath.Join(r.Release.Dir, "report"))
	if !strings.Contains(errs, "lies in the release") {
		t.Errorf("into the release: %q", errs)
	}
	_, errs = l.must(1, "report", "--release", ours, "--to", theirs)
	if !strings.Contains(errs, "is no release") {
		t.Errorf("of no release: %q", errs)
	}

	bare := newLab(t, 2, "")
	bare.build(0)
	bare.must(0, "report", "--to", ours)
	for name, want := range map[string]string{
		"panel.md": "recipe.label.panel.annotators", "controls.md": "recipe.label.shuffled", "stability.md": "recipe.label.samples", "effects.md": "recipe.label.zero_context",
	} {
		if text := read(ours, name); !strings.Contains(text, want) || strings.Contains(text, "|---") {
			t.Errorf("%s with nothing to tell:\n%s", name, text)
		}
	}
}

// A forecast before there is any label counts the panel, its answers without a document and the control, and what then
// happens lies within it; a forecast after it foresees nothing.
func TestForecastCoversPanelAndControl(t *testing.T) {
	const prices = "provider: openai, price: {input: 2, output: 10}, "
	type forecast struct {
		Forecast struct {
			Stages []struct {
				Stage string
				Items struct{ Low, High float64 }
				Calls struct{ Low, High float64 }
				USD   struct{ Low, High float64 }
			}
			Total       struct{ Calls, USD struct{ Low, High float64 } }
			Assumptions []string
		}
	}
	foresee := func(l *lab) (f forecast) {
		out, _ := l.must(0, "build", "--dry-run", "--json")
		if err := json.Unmarshal([]byte(out), &f); err != nil {
			t.Fatal(err)
		}
		return f
	}
	for name, change := range map[string][]string{
		"over all pairs":        nil,
		"over three pairs":      {"pairs: 0", "pairs: 3"},
		"more controls than it": {"shuffled: 5", "shuffled: 500"},
		"without zero context":  {"zero_context: true", "zero_context: false"},
	} {
		t.Run(name, func(t *testing.T) {
			l := panelLab(t, 8, append(change, "provider: openai, ", prices)...)
			l.annotators(func(string, string) string { return "true" })
			first := foresee(l)
			calls, usd := map[string]float64{}, map[string]float64{}
			for _, s := range first.Forecast.Stages {
				calls[s.Stage], usd[s.Stage] = s.Calls.High, s.USD.High
			}
			for _, stage := range []string{"panel/second", "panel/third", "control/shuffled"} {
				if calls[stage] == 0 || usd[stage] == 0 {
					t.Errorf("%s: %v calls for $%v\n%+v", stage, calls[stage], usd[stage], first)
				}
			}
			if (calls["panel/third/zero"] == 0) != (name == "without zero context") {
				t.Errorf("answers without a document: %v", calls)
			}
			_, errs := l.must(0, "build", "--forecast")
			// The stub bills 120 tokens a call, whatever it is asked, so these may lie below.
			_, fact, _ := strings.Cut(errs, "forecast against fact: ")
			if fact, _, _ = strings.Cut(fact, "\n"); !strings.Contains(fact, " calls (within ") || strings.Contains(fact, "(above ") {
				t.Errorf("the forecast does not cover the fact: %s\n%s", fact, errs)
			}
			if again := foresee(l); again.Forecast.Total.Calls.High != 0 || again.Forecast.Total.USD.High != 0 {
				t.Errorf("a forecast of nothing: %+v", again)
			}
		})
	}
}

// Money ends a run in the panel as anywhere, and the next one goes on.
func TestPanelKeepsToTheBudget(t *testing.T) {
	l := panelLab(t, 6, "samples: 3", "samples: 1", "zero_context: true", "zero_context: false")
	l.annotators(func(string, string) string { return "unrelated" })
	l.must(4, "build", "--max-calls", "10")
	if all, _ := l.model.requests(); all != 10 {
		t.Errorf("%d requests, want the 10 that the cap leaves", all)
	}
	if r := l.build(0); r.LLM.Calls != 6+12+5-10 {
		t.Errorf("the second run made %d calls, want the other %d", r.LLM.Calls, 6+12+5-10)
	}
}
