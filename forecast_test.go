package assay

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"assay/kv"
	"assay/llm"
	"assay/pipeline"
)

// modelConfig has imported pairs labelled by a stub at an address.
const modelConfig = `recipe:
  discover: [imported]
  evidence: [pairs]
  label: {mode: compat}
  models:
    keywords: {endpoint: stub, model: stub-1, max_tokens: 300}
    annotate: {endpoint: stub, model: stub-1, max_tokens: 600}
    zero: {endpoint: stub, model: stub-1, max_tokens: 200}
runtime:
  endpoints:
    stub: {provider: openai, base_url: "%s/v1", key_env: STUB_KEY, profile: openai, price: {input: 2, output: 10}, rpm: 6000}
`

// stubModel answers every exam with true, and bills what a prompt of its length costs.
func stubModel(t *testing.T) (*httptest.Server, *atomic.Int64) {
	t.Helper()
	asked := &atomic.Int64{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		asked.Add(1)
		io.WriteString(w, stubAnswer(len(body)))
	}))
	t.Cleanup(s.Close)
	return s, asked
}

func stubAnswer(sent int) string {
	in := sent / 5
	return fmt.Sprintf(`{"id":"x","model":"stub-1","choices":[{"index":0,"message":{"role":"assistant","content":"{\"answer\":\"true\"}"},"finish_reason":"stop"}],"usage":{"prompt_tokens":%d,"completion_tokens":20,"total_tokens":%d}}`, in, in+20)
}

// dump is everything that a store holds.
func dump(t *testing.T, w *Workspace) string {
	t.Helper()
	var b strings.Builder
	for _, name := range []string{"items", "llm.raw", "llm.call", "llm.answer", "reports", "leads", "ratings", "voices"} {
		for key, err := range kv.In[[]byte](w.store, name, 1).Keys("", "") {
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&b, "%s %q\n", name, key)
		}
	}
	return b.String()
}

// A forecast counts what a build then does, without a key, a call or a write; of a second build nothing
// is left to forecast.
func TestForecast(t *testing.T) {
	stub, asked := stubModel(t)
	f := newFolder(t, t.TempDir())
	f.write(ConfigName, fmt.Sprintf(modelConfig, stub.URL))
	var lines strings.Builder
	for i := range 30 {
		lines.WriteString(pairLine(i, "true"))
	}
	f.load("pairs", f.write("lines.jsonl", lines.String()))
	forecast := func() (out Forecast) {
		w, err := Open(t.Context(), f.dir, OpenOptions{Offline: true, Environ: []string{}})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		before := dump(t, w)
		rep, err := w.Build(t.Context(), BuildOptions{DryRun: true})
		if err != nil {
			t.Fatal(err)
		}
		if after := dump(t, w); after != before {
			t.Errorf("a forecast wrote: %s", after)
		}
		return *rep.Forecast
	}
	first := forecast()
	if asked.Load() != 0 {
		t.Fatalf("a forecast asked the model %d times", asked.Load())
	}
	t.Setenv("STUB_KEY", "secret")
	build := func(o BuildOptions) BuildReport {
		w, err := Open(t.Context(), f.dir, OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		rep, err := w.Build(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		return rep
	}
	rep := build(BuildOptions{Foreseen: &first})
	if int(first.Total.Calls.Low) != rep.LLM.Calls || rep.LLM.Calls == 0 {
		t.Errorf("foreseen are %v calls, made were %d", first.Total.Calls, rep.LLM.Calls)
	}
	tokens, money := first.Total.Prompt.Add(first.Total.Answer), first.Total.USD
	if n := float64(rep.LLM.Tokens); n < tokens.Low || n > tokens.High || rep.LLM.USD < money.Low || rep.LLM.USD > money.High {
		t.Errorf("foreseen are %v tokens and $%v, it came to %d and %v", tokens, money, rep.LLM.Tokens, rep.LLM.USD)
	}
	if got := first.Total.BatchUSD; got != money.Times(0.5) {
		t.Errorf("with --batch it costs %v, usually %v", got, money)
	}
	if text := rep.Text(false); strings.Count(text, "(within ") != 3 {
		t.Errorf("the report says of its forecast:\n%s", text)
	}
	if text := rep.Text(false); !strings.Contains(text, "every stage made as many calls as were foreseen of it") {
		t.Errorf("the report says of its stages:\n%s", text)
	}
	second := forecast()
	if c := second.Total.Calls; c != (llm.Range{}) || second.Total.USD != (llm.Range{}) || second.Total.Fresh == 0 {
		t.Errorf("a second build is foreseen to make %v calls for %v", c, second.Total.USD)
	}
	// A prompt that says something else asks for every label again, and answers of the past tell how long.
	f.write("prompts/raguard_compat.txt", "--- system\nJudge anew.\n--- user\n{{.Claim}} {{fence \"text\" .Text}}\n")
	third := forecast()
	if c := third.Total.Calls.Low; int(c) != 30 {
		t.Errorf("with another prompt %v calls are foreseen, want one a pair", third.Total.Calls)
	}
	if slices.ContainsFunc(third.Assumptions, func(s string) bool { return strings.Contains(s, "fewer than 20") }) {
		t.Errorf("assumed, with a past: %q", third.Assumptions)
	}
}

// Where the model of the answers without a document changes too, every label is asked for again whatever they come
// out as, and the lower end says so.
func TestForecastOfTwoModelsChanged(t *testing.T) {
	stub, _ := stubModel(t)
	f := newFolder(t, t.TempDir())
	t.Setenv("STUB_KEY", "secret")
	config := fmt.Sprintf(modelConfig, stub.URL)
	f.write(ConfigName, config)
	f.load("pairs", f.write("lines.jsonl", pairLine(1, "true")+pairLine(2, "false")+pairLine(3, "true")))
	build := func(o BuildOptions) BuildReport {
		w, err := Open(t.Context(), f.dir, OpenOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		rep, err := w.Build(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		return rep
	}
	build(BuildOptions{})
	for _, tt := range []struct {
		what, old, new string
		low            float64
	}{
		{"both", "model: stub-1", "model: stub-2", 6},
		{"the label's", "annotate: {endpoint: stub, model: stub-1", "annotate: {endpoint: stub, model: stub-2", 3},
		{"the zero-context answer's", "zero: {endpoint: stub, model: stub-1", "zero: {endpoint: stub, model: stub-2", 3},
	} {
		f.write(ConfigName, strings.ReplaceAll(config, tt.old, tt.new))
		forecast := build(BuildOptions{DryRun: true}).Forecast
		if got := forecast.Total.Calls; got.Low != tt.low || forecast.Total.USD.Low <= 0 {
			t.Errorf("another model, %s: %v calls for $%v, want at least %v", tt.what, got, forecast.Total.USD, tt.low)
		}
	}
	f.write(ConfigName, strings.ReplaceAll(config, "model: stub-1", "model: stub-2"))
	forecast := build(BuildOptions{DryRun: true}).Forecast
	if rep := build(BuildOptions{Foreseen: forecast}); rep.LLM.Calls != 6 || strings.Count(rep.Text(false), "(within ") != 3 {
		t.Errorf("it came to %d calls:\n%s", rep.LLM.Calls, rep.Text(false))
	}
}

// A forecast of nothing says that it knows of nothing.
func TestForecastOfAnEmptyWorkspace(t *testing.T) {
	stub, _ := stubModel(t)
	f := newFolder(t, t.TempDir())
	for config, want := range map[string]string{
		fmt.Sprintf(modelConfig, stub.URL): "assumed: no claim of this recipe is known yet, so nothing that a claim costs is counted",
		strings.Replace(fmt.Sprintf(modelConfig, stub.URL), "discover: [imported]", "discover: [listing]\n  sites: [politifact]", 1): "assumed: nothing is known of claims that are not discovered yet, and none is counted: ",
	} {
		f.write(ConfigName, config)
		w, err := Open(t.Context(), f.dir, OpenOptions{Offline: true})
		if err != nil {
			t.Fatal(err)
		}
		rep, err := w.Build(t.Context(), BuildOptions{DryRun: true})
		if err != nil {
			t.Fatal(err)
		}
		if text := rep.Text(true); !strings.Contains(text, want) {
			t.Errorf("the forecast says\n%s\nwithout %q", text, want)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// What a later stage needs is a range while the stage before it waits for an answer.
func TestForecastOfLaterStages(t *testing.T) {
	for name, tt := range map[string]struct {
		recipe string // its judge and extractors ask the annotator's model where they have none
		want   map[string]string
	}{
		"by keywords": {"evidence: [search]", map[string]string{
			"plan/raguard": "2 items, 2–3 calls", "zero/raguard": "0–2 items, 0–3 calls", "label/raguard": "0–20 items, 0–22 calls",
		}},
		"step by step, with drafts": {"evidence: [search]\n  planner: {policy: gpe, agent: {engines: {\"*\": local}, max_actions: 4, per_action: 2}}\n  judge: gpe", map[string]string{
			"plan/gpe": "2 items, 2–39 calls", "zero/raguard": "0–2 items, 0–3 calls", "label/raguard": "0–60 items, 0–66 calls", "judge/gpe": "0–2 items, 0–3 calls",
		}},
		"what documents name": {"evidence: [search]\n  entities: {of: [claims, documents], events: true}", map[string]string{
			"plan/raguard": "2 items, 2–3 calls", "zero/raguard": "0–2 items, 0–3 calls", "label/raguard": "0–20 items, 0–22 calls",
			"entity/entities": "2–22 items, 2–25 calls", "entity/events": "2 items, 2–3 calls",
		}},
		"claims of a category that no rule tells": {"evidence: [search]\n  categories: [medical]\n  category_by: [rule, model]\n  planner: {policy: gpe, agent: {engines: {\"*\": local}, max_actions: 4, per_action: 2}}\n  judge: gpe\n  entities: {of: [claims], events: true}", map[string]string{
			"category/model": "2 items, 2–3 calls", "plan/gpe": "0–2 items, 0–39 calls", "zero/raguard": "0–2 items, 0–3 calls", "label/raguard": "0–60 items, 0–66 calls", "judge/gpe": "0–2 items, 0–3 calls",
			"entity/entities": "0–2 items, 0–3 calls", "entity/events": "0–2 items, 0–3 calls",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			stub, asked := stubModel(t)
			f := newFolder(t, t.TempDir())
			config := strings.Replace(fmt.Sprintf(modelConfig, stub.URL), "evidence: [pairs]", tt.recipe, 1)
			f.write(ConfigName, config)
			f.load("pairs", f.write("lines.jsonl", pairLine(1, "true")+pairLine(2, "false")))
			w, err := Open(t.Context(), f.dir, OpenOptions{Offline: true})
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			rep, err := w.Build(t.Context(), BuildOptions{DryRun: true})
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for _, s := range rep.Forecast.Stages {
				got[s.Stage] = count(s.Items) + " items, " + count(s.Calls) + " calls"
			}
			if !maps.Equal(got, tt.want) {
				t.Errorf("%v, want %v\n%s", got, tt.want, rep.Forecast.Text())
			}
			if asked.Load() != 0 {
				t.Errorf("asked %d times", asked.Load())
			}
		})
	}
}

// A dry run tells dozens of sites that were never asked in one line, as status does.
func TestDryRunFoldsSites(t *testing.T) {
	var rep BuildReport
	for i := range 40 {
		rep.Pipeline.Stages = append(rep.Pipeline.Stages, pipeline.StageReport{Name: fmt.Sprintf("discover/site%02d", i), Reasons: map[pipeline.Reason]int{pipeline.Missing: 2}})
	}
	want := "stage            items  missing\ndiscover/* (40)     80       80\n"
	if got := rep.Text(true); got != want {
		t.Errorf("a dry run tells:\n%s\nwant:\n%s", got, want)
	}
}

// A replay asks nobody, so its dry run foresees no call and no money, and says what would stay missing.
func TestForecastOfAReplay(t *testing.T) {
	stub, _ := stubModel(t)
	f := newFolder(t, t.TempDir())
	f.write(ConfigName, fmt.Sprintf(modelConfig, stub.URL))
	f.load("pairs", f.write("lines.jsonl", pairLine(1, "true")+pairLine(2, "false")))
	w, err := Open(t.Context(), f.dir, OpenOptions{Offline: true, Replay: true})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	rep, err := w.Build(t.Context(), BuildOptions{DryRun: true})
	if err != nil {
		t.Fatal(err)
	}
	all := rep.Forecast.Total
	if all.Calls != (llm.Range{}) || all.USD != (llm.Range{}) || all.BatchUSD != (llm.Range{}) || all.Wall != 0 || all.Missing.Low < 2 {
		t.Errorf("%+v", all)
	}
	if text := rep.Text(true); !strings.Contains(text, "a replay asks nobody and pays nothing; answers that are not stored stay missing: ") || !strings.Contains(text, "label/raguard 2") {
		t.Errorf("the forecast says:\n%s", text)
	}
}

// What a run did is held against the row of each stage: a total may be within though no row is.
func TestFactNamesStagesOutside(t *testing.T) {
	f := Forecast{Stages: []StageForecast{
		{Stage: "zero/raguard", Calls: llm.Range{Low: 0, High: 19}}, {Stage: "label/raguard", Calls: llm.Range{Low: 20, High: 60}}, {Stage: "plan/gpe", Calls: llm.Range{Low: 4, High: 8}},
	}, Total: StageForecast{Calls: llm.Range{Low: 24, High: 87}}}
	for _, tt := range []struct {
		fact Fact
		want string
	}{
		{Fact{Calls: 43, Stages: map[string]int{"zero/raguard": 10, "label/raguard": 25, "plan/gpe": 8}, Forecast: f}, "every stage made as many calls as were foreseen of it"},
		{Fact{Calls: 70, Stages: map[string]int{"zero/raguard": 26, "judge/gpe": 14, "label/raguard": 25, "plan/gpe": 5}, Forecast: f}, "outside of what was foreseen: judge/gpe 14 calls (above 0), zero/raguard 26 calls (above 0–19)\n"},
		{Fact{Calls: 30, Stages: map[string]int{"zero/raguard": 5, "label/raguard": 24, "plan/gpe": 1}, Forecast: f}, "outside of what was foreseen: plan/gpe 1 calls (below 4–8)\n"},
		{Fact{Calls: 30, Stages: map[string]int{"plan/gpe": 4}, Forecast: f}, "every stage"}, // the rest came by a batch
	} {
		if got := tt.fact.Text(); !strings.Contains(got, "(within ") || !strings.Contains(got, tt.want) {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}
