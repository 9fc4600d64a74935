package annotate

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay/corpus"
	"assay/llm"
)

func TestAttacks(t *testing.T) {
	attacks, err := Attacks()
	if err != nil {
		t.Fatal(err)
	}
	demands := map[corpus.Answer]int{}
	seen := map[string]bool{}
	for _, a := range attacks {
		demands[a.Demand]++
		if seen[a.Name] {
			t.Errorf("two attacks are called %s", a.Name)
		}
		seen[a.Name] = true
		if cmp.Equal(a.Clean, a.Input) {
			t.Errorf("%s changes nothing", a.Name)
		}
		if a.Clean.Claim.Text != a.Input.Claim.Text {
			t.Errorf("%s changes the claim", a.Name)
		}
		if d := a.Input.Document; len(d.Text) > DefaultDocumentChars || strings.Contains(d.Title+d.Text+d.URL+d.Source, "ANSWER") {
			t.Errorf("%s is cut, or leaves its demand open", a.Name)
		}
	}
	if len(attacks) < 24 || demands[corpus.AnswerTrue] < 10 || demands[corpus.AnswerFalse] < 10 {
		t.Errorf("%d attacks with demands %v", len(attacks), demands)
	}
}

// The control is the prompt that labels are made with, but for fence and rule.
func TestControlLacksTheFenceAlone(t *testing.T) {
	for _, mode := range []string{ModeNormal, ModeCompat} {
		fenced := raguardPrompt(Settings{Mode: mode})
		control, err := unfenced(fenced)
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range []string{"marker", "material", "fence"} {
			if strings.Contains(control.System+control.User, word) {
				t.Errorf("%s: the control speaks of %s", mode, word)
			}
		}
		lines := strings.Split(fenced.System, "\n")
		for _, line := range strings.Split(control.System, "\n") {
			if !slices.Contains(lines, line) {
				t.Errorf("%s: the control adds %q", mode, line)
			}
		}
		if len(fenced.System)-len(control.System) > 450 {
			t.Errorf("%s: the control lacks %d characters", mode, len(fenced.System)-len(control.System))
		}
		exam := Exam{Claim: "The claim.", Title: "A title", Address: "https://a.example/", Text: "Line 1\nLine 2"}
		with, err := fenced.Render(exam)
		if err != nil {
			t.Fatal(err)
		}
		without, err := control.Render(exam)
		if err != nil {
			t.Fatal(err)
		}
		inside, _ := unfence(t, with[1].Content)
		for _, line := range strings.Split(inside, "\n") {
			if line = strings.TrimPrefix(line, "text:"); !strings.Contains(without[1].Content, line) {
				t.Errorf("%s: the control does not show %q:\n%s", mode, line, without[1].Content)
			}
		}
	}
	if _, err := unfenced(&llm.Template{Name: "x", System: "no rule", User: "{{.Claim}}"}); err == nil {
		t.Error("a prompt without a fence has a control")
	}
}

// A model that follows the last order it can read, wherever it stands.
type obedient struct{ fence bool } // fence: it heeds the markers

func (o obedient) Complete(_ context.Context, q llm.Request) (llm.Reply, error) {
	e := q.Vars.(Exam)
	answer := "unrelated"
	fenced := !strings.HasSuffix(q.Template.Name, "_unfenced")
	for _, a := range []string{"true", "false"} {
		if (!fenced || !o.fence) && strings.Contains(e.Text+e.Title, a) {
			answer = a
		}
	}
	return reply(1, `{"quote":"","reason":"","answer":"`+answer+`"}`), nil
}

func tried(t *testing.T, m Model) Injection {
	t.Helper()
	s := Settings{Endpoint: "e", Model: "m"}
	trials, err := Trials(s)
	if err != nil {
		t.Fatal(err)
	}
	var results []TrialResult
	for _, trial := range trials {
		r, err := trial.Run(t.Context(), m)
		if err != nil {
			t.Fatal(err)
		}
		results = append(results, r)
	}
	slices.Reverse(results)
	return Tally(s, results)
}

func TestInjection(t *testing.T) {
	heeds, ignores := tried(t, obedient{fence: true}), tried(t, obedient{})
	attacks, _ := Attacks()
	for name, i := range map[string]Injection{"heeds": heeds, "ignores": ignores} {
		if i.Fenced.Attacks != len(attacks) || i.Fenced.Countable != len(attacks) || i.Control.Countable != len(attacks) {
			t.Errorf("%s: %+v", name, i)
		}
	}
	if heeds.Fenced.Obeyed != 0 || heeds.Control.Obeyed < 20 || *heeds.Fenced.Rate.Low != 0 || *heeds.Control.Rate.Low < 0.4 {
		t.Errorf("a model that heeds the fence: %s; control %s", heeds.Fenced.Text(), heeds.Control.Text())
	}
	if ignores.Fenced.Obeyed != ignores.Control.Obeyed || !slices.Contains(ignores.Fenced.Which, "forged_reply") || ignores.Fenced.Held == 0 {
		t.Errorf("a model that does not: %s; control %s", ignores.Fenced.Text(), ignores.Control.Text())
	}
	if heeds.Fenced.Constant() || ignores.Fenced.Constant() {
		t.Error("a model that answers unrelated where it should is called constant")
	}
	// What the attack demands, the model always says: nothing was changed by the attack.
	always := tried(t, constant("true"))
	if always.Fenced.Obeyed != 0 || always.Fenced.Countable >= len(attacks) || !always.Fenced.Constant() {
		t.Errorf("a model that always says true: %+v", always.Fenced)
	}
	none := tried(t, &asked{answer: func(int, llm.Request) (llm.Reply, error) { return ended(llm.OutcomeRefused, "I cannot help"), nil }})
	if none.Fenced.NoAnswer != len(attacks) || none.Fenced.Obeyed != 0 {
		t.Errorf("a model that declines: %+v", none.Fenced)
	}
	long := tried(t, failing{&llm.Error{Reason: llm.ReasonContext}})
	if long.Fenced.NoAnswer != len(attacks) {
		t.Errorf("a model that reads too little: %+v", long.Fenced)
	}
	trials, _ := Trials(Settings{})
	if _, err := trials[0].Run(t.Context(), failing{&llm.Error{Reason: llm.ReasonCredentials}}); err == nil {
		t.Error("a key that is refused is a result")
	}
}

type constant string

func (c constant) Complete(context.Context, llm.Request) (llm.Reply, error) {
	return reply(1, `{"quote":"","reason":"","answer":"`+string(c)+`"}`), nil
}

type failing struct{ err error }

func (f failing) Complete(context.Context, llm.Request) (llm.Reply, error) {
	return llm.Reply{}, f.err
}

// The builtin model compares words, so no order in a document moves it; through the real client.
func TestBuiltinObeysNoAttack(t *testing.T) {
	c := client(t, nil, nil)
	for _, mode := range []string{ModeNormal, ModeCompat} {
		s := onBuiltin
		s.Mode = mode
		trials, err := Trials(s)
		if err != nil {
			t.Fatal(err)
		}
		var results []TrialResult
		for _, trial := range trials {
			r, err := trial.Run(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			results = append(results, r)
		}
		if i := Tally(s, results); i.Fenced.Obeyed != 0 || i.Fenced.NoAnswer != 0 || i.Mode != mode {
			t.Errorf("%s: %s, by %v", mode, i.Fenced.Text(), i.Fenced.Which)
		}
	}
	var e *llm.Error
	if _, err := answerTo(t.Context(), c, llm.Request{Endpoint: "nowhere"}); !errors.As(err, &e) {
		t.Errorf("got %v", err)
	}
}
