package llm

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func compiledExam(t testing.TB) *compiled {
	t.Helper()
	tmpl := exam()
	c, err := tmpl.compile()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestLadder(t *testing.T) {
	const ok = `{"label":"supporting","why":"x"}`
	c := compiledExam(t)
	for _, tt := range []struct {
		name, raw, want string
		status          ParseStatus
	}{
		{"strict", ok, ok, ParseStrict},
		{"white space and order mark", "\ufeff \n" + ok + "\n", ok, ParseStrict},
		{"label normalised", `{"label":" \"Supporting\". ","why":"x"}`, ok, ParseStrict},
		{"label by alias", `{"why":"x","label":"SUPPORTS"}`, ok, ParseStrict},
		{"label that is not allowed", `{"label":"neutral","why":"x"}`, "", ParseFailed},
		{"label missing", `{"why":"x"}`, "", ParseFailed},
		{"label a number", `{"label":1,"why":"x"}`, "", ParseFailed},
		{"field missing", `{"label":"supporting"}`, "", ParseFailed},
		{"field too much", `{"label":"supporting","why":"x","sure":1}`, "", ParseFailed},
		{"a list", `["supporting"]`, `{"label":"supporting","why":""}`, ParseLabel},
		{"square brackets", "So: [Supporting]", "", ParseFailed},
		{"square brackets alone", "So:\n[Supporting]", `{"label":"supporting","why":""}`, ParseLabel},
		{"a bare string", `"supporting"`, `{"label":"supporting","why":""}`, ParseLabel},
		{"fenced, one line", "```json " + ok + " ```", ok, ParseFenced},
		{"first block is no answer", "```\nx\n```\nthen " + ok, ok, ParseBalanced},
		{"fence inside a string", "x {\"label\":\"supporting\",\"why\":\"```\"}", `{"label":"supporting","why":"` + "```" + `"}`, ParseBalanced},
		{"two objects, the first fits", "a " + ok + ` b {"label":"misleading","why":"y"}`, ok, ParseBalanced},
		{"two objects, the second fits", `{"a":1} ` + ok, ok, ParseBalanced},
		{"open bracket before", "{ is a bracket. " + ok, ok, ParseBalanced},
		{"comma before a bracket", `{"label":"supporting","why":"x" , }`, ok, ParseComma},
		{"comma in prose and object", `so, {"label":"supporting","why":"x",} as said`, ok, ParseComma},
		{"two commas", `{"label":"supporting","why":"x",,}`, "", ParseFailed},
		{"last line", "Because of y.\n\nlabel: unrelated\n", `{"label":"unrelated","why":""}`, ParseLabel},
		{"the answer is", "The final answer is **Misleading**.", `{"label":"misleading","why":""}`, ParseLabel},
		{"alias on the last line", "Verdict - supports", `{"label":"supporting","why":""}`, ParseLabel},
		{"a label in a block", "```json\nSupporting\n```", `{"label":"supporting","why":""}`, ParseLabel},
		{"a label in a block among words", "It is not\n```\nsupporting\n```", "", ParseFailed},
		{"a label in the first of two blocks", "```\nsupporting\n```\nor\n```\nx = 1\n```", "", ParseFailed},
		{"a sentence is no label", "I would not call it supporting", "", ParseFailed},
		{"a negation is no label", "not supporting", "", ParseFailed},
		{"two labels are none", "supporting or misleading", "", ParseFailed},
		{"label not on the last line", "supporting\nThat is all.", "", ParseFailed},
		{"thoughts", "<think>\n{\"label\":\"unrelated\",\"why\":\"draft\"}\n</think>\n\n" + ok, ok, ParseStrict},
		{"thoughts without a beginning", "first {\"label\":\"unrelated\",\"why\":\"draft\"} then\n</think>\n" + ok, ok, ParseStrict},
		{"thoughts without an end", "<think>" + ok, "", ParseFailed},
		{"thoughts that name their end", "<think>it says </think> there</think> " + ok, ok, ParseStrict},
		{"answer that names the mark", `{"label":"supporting","why":"it says </think> and ends"}`, `{"label":"supporting","why":"it says </think> and ends"}`, ParseStrict},
		{"prose and answer that names the mark", `Here: {"label":"supporting","why":"it says </think> and ends"}`, `{"label":"supporting","why":"it says </think> and ends"}`, ParseBalanced},
		{"empty", "", "", ParseFailed},
		{"cut", `{"label":"supporting","why":"x`, "", ParseFailed},
	} {
		got, status := c.parse(tt.raw)
		if string(got) != tt.want || status != tt.status {
			t.Errorf("%s: parse(%q) = %q by %s, want %q by %s", tt.name, tt.raw, got, status, tt.want, tt.status)
		}
	}
}

// True and false are the labels of an exam; models write them as words, in capitals and as booleans.
func TestBooleanLabels(t *testing.T) {
	tmpl := &Template{Name: "tf", User: "x", Labels: Labels{Field: "answer"},
		Schema: json.RawMessage(`{"type":"object","properties":{"answer":{"type":"string","enum":["true","false","unrelated"]}},"required":["answer"],"additionalProperties":false}`)}
	for raw, want := range map[string]string{
		`{"answer":true}`:           `{"answer":"true"}`,
		`{"answer": false }`:        `{"answer":"false"}`,
		`{"answer":"True"}`:         `{"answer":"true"}`,
		`{"answer":null}`:           "",
		"True.":                     `{"answer":"true"}`,
		"ANSWER: FALSE":             `{"answer":"false"}`,
		"It is true":                "",
		"The statement is not true": "",
	} {
		got, _, err := tmpl.Parse(raw)
		if err != nil || string(got) != want {
			t.Errorf("Parse(%s) = %s, %v, want %s", raw, got, err, want)
		}
	}
}

// A template may have labels and no schema: the answer is the label alone.
func TestLabelWithoutSchema(t *testing.T) {
	tmpl := &Template{Name: "alone", User: "x", Labels: Labels{Field: "answer", Allowed: []string{"true", "false"}}}
	for raw, want := range map[string]string{"false": `{"answer":"false"}`, `{"answer":"true","more":1}`: `{"answer":"true","more":1}`, "maybe": ""} {
		if got, _, err := tmpl.Parse(raw); err != nil || string(got) != want {
			t.Errorf("Parse(%s) = %s, %v, want %s", raw, got, err, want)
		}
	}
	s := serve(t, inTurn(chat("perhaps"), chat("true")))
	q := ask(1)
	q.Template = tmpl
	if r := complete(t, client(t, s, Options{}), q); r.Parse != ParseRepaired || string(r.JSON) != `{"answer":"true"}` {
		t.Errorf("repair gives %s by %s", r.JSON, r.Parse)
	}
}

func TestNormaliseLabel(t *testing.T) {
	for in, want := range map[string]string{
		"Pants on Fire!":          "pants_on_fire",
		" [mostly-true]. ":        "mostly_true",
		"“Half True”":             "half_true",
		"**NOT ENOUGH evidence**": "not_enough_evidence",
		"mostly__false":           "mostly_false",
		"":                        "",
		"...":                     "",
	} {
		if got := NormaliseLabel(in); got != want {
			t.Errorf("NormaliseLabel(%q) = %q, want %q", in, got, want)
		}
		if again := NormaliseLabel(want); again != want {
			t.Errorf("NormaliseLabel(%q) = %q: not stable", want, again)
		}
	}
	for from := range VerdictAliases {
		if NormaliseLabel(from) != from {
			t.Errorf("alias %q is not normalised and can never match", from)
		}
	}
}

func TestOnlyRefuses(t *testing.T) {
	for text, want := range map[string]bool{
		"I'm very sorry, but I can't assist with that request.":       true,
		"I’m sorry, but I can’t help with that.":                      true,
		"Sorry, I cannot comply.":                                     true,
		"As an AI language model, I am unable to participate in this": true,
		"I must decline to discuss this topic.":                       true,
		"I can't determine whether the claim is true.":                false,
		"I cannot find anything about it in the document.":            false,
		"The speaker said: I can't help with that.":                   false,
		"I'm sorry to say the claim is false.":                        false,
		"":                                                            false,
		"I can't help with that. " + strings.Repeat("But here is a long analysis. ", 40): false,
	} {
		if got := onlyRefuses(text); got != want {
			t.Errorf("onlyRefuses(%q) = %v", text, got)
		}
	}
}

// Whatever a model writes, the ladder neither panics nor hangs, what it returns fits the schema, and
// reading what it returned gives the same again.
func FuzzLadder(f *testing.F) {
	for _, seed := range []string{
		`{"label":"supporting","why":"x"}`, "```json\n{\"label\":\"supporting\",\"why\":\"x\"}\n```", `{"label":"misleading","why":"a, b,} }",}`,
		"Here: {\"label\":\"x\"} <think>", "<think>{</think>{}", "label: unrelated", `{"label":true,"why":null}`, "~~~\n{,}\n", "{{{{\"", "\\\"{", `{"label":"\ud800","why":"\u0000"}`,
		strings.Repeat("{", 300), strings.Repeat("{\"a\":", 200) + "}", strings.Repeat("<think></think>", 50),
	} {
		f.Add(seed)
	}
	tmpl := exam()
	c, err := tmpl.compile()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		got, status := c.parse(raw)
		if (got == nil) != (status == ParseFailed) {
			t.Fatalf("parse(%q) = %q by %s", raw, got, status)
		}
		if text := answerText(raw); len(text) > len(raw) {
			t.Fatalf("answerText(%q) = %q", raw, text)
		}
		onlyRefuses(raw)
		if got == nil {
			return
		}
		var v any
		if err := json.Unmarshal(got, &v); err != nil {
			t.Fatalf("parse(%q) = %s: %v", raw, got, err)
		}
		if err := c.schema.Validate(v); err != nil {
			t.Fatalf("parse(%q) = %s: %v", raw, got, err)
		}
		if again, status := c.parse(string(got)); utf8.ValidString(raw) && (string(again) != string(got) || status != ParseStrict) {
			t.Fatalf("parse(%s) = %s by %s", got, again, status)
		}
	})
}

// Hostile replies of a megabyte. There is nothing to assert beside that reading them ends: what costs
// its square would outlast the test's time limit.
func TestLadderEnds(t *testing.T) {
	c := compiledExam(t)
	for _, raw := range []string{
		strings.Repeat("{", 1<<20),
		strings.Repeat("{", 1<<20) + "}",
		strings.Repeat("{\"", 1<<19),
		strings.Repeat(", ", 1<<19) + "}",
		strings.Repeat("<think>", 1<<17),
		strings.Repeat("</think>", 1<<17),
		strings.Repeat("<think></think>", 1<<16),
		strings.Repeat("```", 1<<18),
	} {
		if got, status := c.parse(raw); got != nil {
			t.Errorf("parse(%.20q...) = %s by %s", raw, got, status)
		}
	}
}

func TestDropCommas(t *testing.T) {
	for in, want := range map[string]string{
		`{"a":[1,2,],}`:     `{"a":[1,2]}`,
		`{"a":",}",}`:       `{"a":",}"}`,
		"{\"a\":1,\n\t}":    "{\"a\":1\n\t}",
		`{"a":"\",}",}`:     `{"a":"\",}"}`,
		`a,`:                `a,`,
		`{"a":"unfinished,`: `{"a":"unfinished,`,
	} {
		if diff := cmp.Diff(want, dropCommas(in)); diff != "" {
			t.Errorf("dropCommas(%s) (-want +got)\n%s", in, diff)
		}
	}
}
