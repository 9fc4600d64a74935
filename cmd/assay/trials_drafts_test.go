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

// draftKinds are what asks a model beside the label protocols, with words that only its prompt has, the file
// of its prompt, its role, and a good answer.
var draftKinds = []struct {
	stage, words, prompt, role, answer string
}{
	{"judge/gpe", "You draft the verdict of a fact-check", "judge", "judge",
		`{"rationale":"it lists a, b,} and stops, }","evidence":["E1"],"uncertainty":"none","subclaims":[{"id":"s1","label":"true"}],"label":"true"}`},
	{"entity/entities", "list the entities that it names", "extract_entities", "entities", `{"mentions":[{"text":"a, b,} and stops, }","type":"law"},{"text":"wells","type":"concept"}]}`},
	{"entity/events", "list the events or states of affairs", "extract_events", "entities", `{"events":[{"quote":"wells","event":"it lists a, b,} and stops, }","when":"","from":"","to":""}]}`},
}

// newDraftLab is a lab of n claims whose evidence the builtin model finds and reads, and whose judge and
// extractors are the stub: one request of each kind a claim.
func newDraftLab(t *testing.T, n int) *lab {
	t.Helper()
	l := &lab{t: t, dir: t.TempDir(), model: newModelStub(t)}
	l.model.reply = func(body string) (int, string, string) { return http.StatusOK, kindOf(body), "stop" }
	config := fmt.Sprintf(`recipe:
  name: drafts
  discover: [imported]
  evidence: [search]
  speakers: []
  dates: {from: "", to: ""}
  planner:
    policy: gpe
    agent: {engines: {"*": local}}
  label: {zero_context: false}
  judge: gpe
  entities: {of: [claims], events: true}
  models:
    judge: {endpoint: stub, model: stub-1, temperature: 0, max_tokens: 200}
    entities: {endpoint: stub, model: stub-1, temperature: 0, max_tokens: 200}
runtime:
  contact: tests@assay.example
  workers: 4
  endpoints:
    main: {provider: builtin}
    stub: {provider: openai, base_url: %q, concurrency: 4}
`, l.model.server.URL+"/v1")
	var pairs strings.Builder
	for i := range n {
		row, err := json.Marshal(map[string]string{
			"claim": fmt.Sprintf("Village number %d has %d wells.", i, i+2), "title": fmt.Sprintf("Wells of village %d", i),
			"text": fmt.Sprintf("Village number %d has %d wells. The council counted all of them on Sunday.", i, i+2),
			"url":  fmt.Sprintf("https://wells.example/%d", i), "label": "supporting", "verdict": "true",
		})
		if err != nil {
			t.Fatal(err)
		}
		pairs.Write(append(row, '\n'))
	}
	for name, text := range map[string]string{"assay.yaml": config, "pairs.jsonl": pairs.String()} {
		if err := os.WriteFile(filepath.Join(l.dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	l.must(0, "import", "pairs", filepath.Join(l.dir, "pairs.jsonl"))
	return l
}

// kindOf is the good answer to a request.
func kindOf(body string) string {
	for _, k := range draftKinds {
		if strings.Contains(body, k.words) {
			return k.answer
		}
	}
	return ""
}

// asked counts the requests of each stage since from.
func (l *lab) asked(from int) map[string]int {
	out := map[string]int{}
	for _, body := range l.model.sent()[from:] {
		for _, k := range draftKinds {
			if strings.Contains(body, k.words) {
				out[k.stage]++
			}
		}
	}
	return out
}

// HD-14 for the judge and the extractors: wrapped answers give what they hold, in one call each, and the
// raw reply is kept.
func TestHD14WrappedDrafts(t *testing.T) {
	l := newDraftLab(t, 4)
	wrap := func(i int, answer string) string {
		switch i {
		case 0:
			return "```json\n" + answer + "\n```"
		case 1:
			return "Here is my answer:\n" + answer + "\nHope this helps"
		case 2:
			return strings.TrimSuffix(answer, "}") + ",}"
		}
		return answer
	}
	l.model.set(func(m *modelStub) {
		m.reply = func(body string) (int, string, string) {
			for i := range 4 {
				if strings.Contains(body, fmt.Sprintf(`claim: Village number %d has`, i)) || strings.Contains(body, fmt.Sprintf(`text: Village number %d has`, i)) {
					return http.StatusOK, wrap(i, kindOf(body)), "stop"
				}
			}
			return http.StatusBadRequest, `{"error":{"message":"which village?"}}`, ""
		}
	})
	r := l.build(0)
	for _, k := range draftKinds {
		if got := l.asked(0)[k.stage]; got != 4 {
			t.Errorf("%s: %d calls, want 4", k.stage, got)
		}
	}
	for _, row := range released(t, r.Release.Dir, "verdicts") {
		if row["verdict6"] != "true" || row["rationale"] != "it lists a, b,} and stops, }" || row["verdict_status"] != "llm_draft" {
			t.Errorf("draft %v", row)
		}
	}
	if v, m := r.Release.Counts["verdicts"], r.Release.Counts["mentions"]; v != 4 || m != 4 {
		t.Errorf("%d verdicts and %d mentions, want 4 and 4", v, m)
	}
	raw := 0
	for _, row := range released(t, r.Release.Dir, "annotations") {
		if text, _ := row["raw"].(string); strings.Contains(text, "a, b,} and stops, }") {
			raw++
		}
	}
	if raw != 12 {
		t.Errorf("%d raw replies are kept unchanged, want 12", raw)
	}
}

// HD-15 for the judge and the extractors: a reply that ran out of tokens is asked for once more, becomes no
// verdict, mention or event, and its tokens count; temperature 0 is sent.
func TestHD15TruncatedDrafts(t *testing.T) {
	l := newDraftLab(t, 2)
	good := l.model.reply
	l.model.set(func(m *modelStub) {
		m.reply = func(body string) (int, string, string) {
			if strings.Contains(body, "claim: Village number 0 has") || strings.Contains(body, "text: Village number 0 has") {
				return http.StatusOK, "", "length"
			}
			return good(body)
		}
	})
	r := l.build(3)
	for _, k := range draftKinds {
		if got := l.asked(0)[k.stage]; got != 3 {
			t.Errorf("%s: %d requests, want 3", k.stage, got)
		}
	}
	if r.LLM.Tokens != 9*120 || r.Pipeline.Failed != 3 {
		t.Errorf("%d tokens and %d failures, want %d and 3", r.LLM.Tokens, r.Pipeline.Failed, 9*120)
	}
	if c := r.Release.Counts; c["verdicts"] != 1 || c["mentions"] != 1 {
		t.Errorf("released %v; a cut reply became something", c)
	}
	for _, body := range l.model.sent() {
		if !strings.Contains(body, `"temperature":0,`) && !strings.Contains(body, `"temperature":0}`) {
			t.Errorf("temperature 0 is not in the request: %s", body)
		}
	}
	l.model.set(func(m *modelStub) { m.reply = good })
	if again := l.build(0, "--retry-failed"); again.Release.Counts["verdicts"] != 2 || again.Release.Counts["mentions"] != 2 {
		t.Errorf("after a retry: %v", again.Release.Counts)
	}
}

// HD-17 and HD-27 for the judge and the extractors: a changed word or temperature asks the stages again that
// it is about and no other, going back asks nobody, and a run from the cache costs nothing.
func TestHD17HD27DraftsFollowPromptAndSettings(t *testing.T) {
	l := newDraftLab(t, 3)
	first := l.build(0)
	all := len(l.model.sent())
	if all != 9 || first.LLM.Tokens != 9*120 {
		t.Fatalf("%d requests and %d tokens, want 9 and %d", all, first.LLM.Tokens, 9*120)
	}
	second := l.build(0)
	if n := len(l.model.sent()); n != all || second.LLM.Calls != 0 || second.LLM.Tokens != 0 || second.LLM.USD != 0 || second.LLM.SavedTokens != 9*120 {
		t.Errorf("the same again: %d requests, %+v", n-all, second.LLM)
	}
	config, err := os.ReadFile(filepath.Join(l.dir, "assay.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	prompts := filepath.Join(l.dir, "prompts")
	for _, k := range draftKinds {
		shipped, err := os.ReadFile("../../annotate/prompts/" + k.prompt + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		reworded := strings.Replace(string(shipped), "Rules:", "The rules:", 1)
		if k.prompt == "judge" {
			reworded = strings.Replace(string(shipped), "do not count them", "never count them", 1)
		}
		if reworded == string(shipped) {
			t.Fatalf("%s: nothing is reworded", k.prompt)
		}
		if err := os.MkdirAll(prompts, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(prompts, k.prompt+".txt"), []byte(reworded), 0o644); err != nil {
			t.Fatal(err)
		}
		before := len(l.model.sent())
		l.build(0)
		if got := l.asked(before); len(got) != 1 || got[k.stage] != 3 {
			t.Errorf("a word of %s changed: asked %v, want %s 3 times alone", k.prompt, got, k.stage)
		}
		if err := os.RemoveAll(prompts); err != nil {
			t.Fatal(err)
		}
	}
	for role, want := range map[string]map[string]int{"judge": {"judge/gpe": 3}, "entities": {"entity/entities": 3, "entity/events": 3}} {
		warm := strings.Replace(string(config), role+": {endpoint: stub, model: stub-1, temperature: 0,", role+": {endpoint: stub, model: stub-1, temperature: 0.7,", 1)
		if err := os.WriteFile(filepath.Join(l.dir, "assay.yaml"), []byte(warm), 0o644); err != nil {
			t.Fatal(err)
		}
		before := len(l.model.sent())
		l.build(0)
		if got := l.asked(before); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("temperature of %s changed: asked %v, want %v", role, got, want)
		}
		if err := os.WriteFile(filepath.Join(l.dir, "assay.yaml"), config, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	before := len(l.model.sent())
	last := l.build(0)
	if n := len(l.model.sent()) - before; n != 0 || last.Release.ID != first.Release.ID {
		t.Errorf("as at first: %d requests, release %s, want %s", n, last.Release.ID, first.Release.ID)
	}
}

// A cap ends the run and leaves claims without a draft, never with one of less; the next run goes on.
func TestDraftsCountIntoTheCaps(t *testing.T) {
	l := newDraftLab(t, 2)
	price := strings.Replace(l.config(), "concurrency: 4}", "concurrency: 1, price: {input: 0, output: 1000}}", 1)
	if err := os.WriteFile(filepath.Join(l.dir, "assay.yaml"), []byte(price), 0o644); err != nil {
		t.Fatal(err)
	}
	l.must(4, "build", "--max-usd", "0.25")
	if n := len(l.model.sent()); n == 0 || n >= 6 {
		t.Errorf("%d requests under a cap, want some and not all of 6", n)
	}
	r := l.build(0)
	if n := len(l.model.sent()); n != 6 || r.Release.Counts["verdicts"] != 2 {
		t.Errorf("%d requests in both runs, %v, want 6 and 2 verdicts", n, r.Release.Counts)
	}
}

// config is the lab's assay.yaml.
func (l *lab) config() string {
	l.t.Helper()
	text, err := os.ReadFile(filepath.Join(l.dir, "assay.yaml"))
	if err != nil {
		l.t.Fatal(err)
	}
	return string(text)
}
