package annotate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay/corpus"
	"assay/llm"
)

const rainText = "It rained for nine days in March.\n\nThe valley got “more rain” than in\u00a0any year  since 1990, says the caf\u00e9 owner."

func rain(gold bool, zero corpus.Answer) Input {
	return Input{
		Claim:    corpus.Claim{ID: "c_1", Text: "March was wet."},
		Gold:     gold,
		Document: corpus.Document{ID: "reddit:t3_abc123", Title: "Rain", Text: rainText, URL: "https://www.reddit.com/r/weather/comments/abc123/rain/", Source: "reddit.com/r/weather"},
		Zero:     zero,
	}
}

func TestAnnotateLabels(t *testing.T) {
	quote := "It rained for nine days"
	tests := []struct {
		answer corpus.Answer
		gold   bool
		zero   corpus.Answer
		label  corpus.StanceLabel
		effect corpus.Effect
	}{
		{corpus.AnswerTrue, true, corpus.AnswerTrue, corpus.Supporting, corpus.EffectConfirm},
		{corpus.AnswerTrue, true, corpus.AnswerFalse, corpus.Supporting, corpus.EffectCorrect},
		{corpus.AnswerTrue, false, corpus.AnswerFalse, corpus.Misleading, corpus.EffectFlip},
		{corpus.AnswerTrue, false, corpus.AnswerTrue, corpus.Misleading, corpus.EffectInherit},
		{corpus.AnswerFalse, false, corpus.AnswerUnknown, corpus.Supporting, corpus.EffectUnknown},
		{corpus.AnswerFalse, true, "", corpus.Misleading, corpus.EffectUnknown},
		{corpus.AnswerUnrelated, true, corpus.AnswerTrue, corpus.Unrelated, corpus.EffectAbstain},
		{corpus.AnswerUnrelated, false, corpus.AnswerTrue, corpus.Unrelated, corpus.EffectAbstain},
	}
	for _, tt := range tests {
		for _, mode := range []string{"", ModeNormal, ModeCompat} {
			want := corpus.Label{
				ID: corpus.PairID("c_1", "reddit:t3_abc123"), ClaimID: "c_1", DocumentID: "reddit:t3_abc123", Protocol: "raguard",
				Label: tt.label, Answer: tt.answer, Zero: tt.zero, Effect: tt.effect, Status: corpus.LabelDone, Call: "call1", Calls: []string{"call1"},
			}
			raw := fmt.Sprintf(`{"answer":%q}`, tt.answer)
			if mode != ModeCompat {
				raw = fmt.Sprintf(`{"quote":%q,"reason":"nine wet days","answer":%q}`, quote, tt.answer)
				want.Reason = "nine wet days"
				if tt.answer != corpus.AnswerUnrelated {
					want.Quote = quote
				}
			}
			m := replies(raw)
			got, err := RAGuard.Annotate(context.Background(), m, Settings{Mode: mode}, rain(tt.gold, tt.zero))
			if err != nil {
				t.Fatalf("%s, gold %v, mode %q: %v", tt.answer, tt.gold, mode, err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s, gold %v, mode %q (-want +got):\n%s", tt.answer, tt.gold, mode, diff)
			}
			if len(m.requests) != 1 {
				t.Errorf("%s, mode %q: %d requests, want 1", tt.answer, mode, len(m.requests))
			}
		}
	}
}

func TestAnnotateFailures(t *testing.T) {
	for outcome, reason := range map[llm.Outcome]string{
		llm.OutcomeParseFailed: ReasonAnnotationFailed,
		llm.OutcomeRefused:     ReasonRefused,
		llm.OutcomeFiltered:    ReasonFiltered,
		llm.OutcomeTruncated:   ReasonTruncated,
	} {
		for _, mode := range []string{ModeNormal, ModeCompat} {
			m := &asked{answer: func(int, llm.Request) (llm.Reply, error) { return ended(outcome, "I would rather not say."), nil }}
			got, err := RAGuard.Annotate(context.Background(), m, Settings{Mode: mode}, rain(true, ""))
			var f *Failure
			if !errors.As(err, &f) || f.FailureReason() != reason || f.FailureClass() != "permanent" || !strings.Contains(err.Error(), reason) {
				t.Errorf("%s, %s: got %v, want a permanent failure %s", outcome, mode, err, reason)
			}
			if diff := cmp.Diff(corpus.Label{}, got); diff != "" {
				t.Errorf("%s, %s gives a label:\n%s", outcome, mode, diff)
			}
			if f != nil && cmp.Diff([]string{"call0", "call1"}, f.Calls) != "" {
				t.Errorf("%s, %s: calls %v", outcome, mode, f.Calls)
			}
		}
	}
	broken := errors.New("the line is down")
	m := &asked{answer: func(int, llm.Request) (llm.Reply, error) { return llm.Reply{}, broken }}
	if _, err := RAGuard.Annotate(context.Background(), m, Settings{}, rain(true, "")); !errors.Is(err, broken) {
		t.Errorf("a call that fails gives %v, want what it failed with", err)
	}
	if _, err := RAGuard.Zero(context.Background(), m, Settings{}, corpus.Claim{}); !errors.Is(err, broken) {
		t.Errorf("a control that fails gives %v, want what it failed with", err)
	}
}

func TestAnnotateQuote(t *testing.T) {
	said := func(quote, answer string) string {
		b, err := json.Marshal(examReply{Quote: quote, Reason: "r", Answer: corpus.Answer(answer)})
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	long := strings.Repeat("rain and ", 60)
	tests := []struct {
		name     string
		replies  []string
		settings Settings
		quote    string
		answer   corpus.Answer
		flags    []string
		calls    []string
	}{
		{"white space, quotation marks and accents", []string{said("the valley got \"more rain\" than in any year since 1990, says the cafe\u0301 owner", "true"), said("It rained", "true")}, Settings{},
			"It rained", "true", nil, []string{"call1", "call2"}}, // the first lacks the capital
		{"folded alike", []string{said("The valley got \"more rain\" than in any year since 1990, says the cafe\u0301 owner.", "true")}, Settings{},
			"The valley got \"more rain\" than in any year since 1990, says the cafe\u0301 owner.", "true", nil, []string{"call1"}},
		{"from the title", []string{said("Rain", "true")}, Settings{}, "Rain", "true", nil, []string{"call1"}},
		{"over title and text", []string{said("Rain It rained", "true")}, Settings{}, "Rain It rained", "true", nil, []string{"call1"}},
		{"second try holds", []string{said("It poured", "true"), said("It rained", "true")}, Settings{}, "It rained", "true", nil, []string{"call1", "call2"}},
		{"second try changes its mind", []string{said("It poured", "true"), said("", "unrelated")}, Settings{}, "", "unrelated", nil, []string{"call1", "call2"}},
		{"never", []string{said("It poured", "true"), said("It drizzled", "true")}, Settings{}, "It drizzled", "true", []string{corpus.FlagQuoteUnverified}, []string{"call1", "call2"}},
		{"empty", []string{said("", "false"), said("  ", "false")}, Settings{}, "  ", "false", []string{corpus.FlagQuoteUnverified}, []string{"call1", "call2"}},
		{"empty where nothing decides", []string{said("", "unrelated")}, Settings{}, "", "unrelated", nil, []string{"call1"}},
		{"not empty where nothing decides", []string{said("It poured", "unrelated")}, Settings{}, "", "unrelated", nil, []string{"call1"}},
		{"switched off", []string{said("It poured", "true")}, Settings{NoQuoteCheck: true}, "It poured", "true", nil, []string{"call1"}},
		{"too long", []string{said(long, "true")}, Settings{NoQuoteCheck: true}, long[:300], "true", nil, []string{"call1"}},
	}
	for _, tt := range tests {
		m := replies(tt.replies...)
		got, err := RAGuard.Annotate(context.Background(), m, tt.settings, rain(true, ""))
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		if got.Quote != tt.quote || got.Answer != tt.answer || cmp.Diff(tt.flags, got.Flags) != "" || cmp.Diff(tt.calls, got.Calls) != "" || got.Call != tt.calls[len(tt.calls)-1] {
			t.Errorf("%s: quote %q, answer %s, flags %v, call %s of %v, want %q, %s, %v, %v", tt.name, got.Quote, got.Answer, got.Flags, got.Call, got.Calls, tt.quote, tt.answer, tt.flags, tt.calls)
		}
		if got.Status != corpus.LabelDone {
			t.Errorf("%s: status %s", tt.name, got.Status)
		}
		if len(m.requests) < 2 {
			continue
		}
		follow := m.requests[1].Follow
		if len(follow) != 2 || follow[0].Role != "assistant" || follow[0].Content != tt.replies[0] || follow[1].Role != "user" || strings.Contains(follow[1].Content, "rained") {
			t.Errorf("%s: the second request goes on with %v, want the rejected reply and a question without the document", tt.name, follow)
		}
		if cmp.Diff(m.requests[0].Vars, m.requests[1].Vars) != "" || m.requests[1].Template != m.requests[0].Template {
			t.Errorf("%s: the second request asks something else", tt.name)
		}
	}
}

// The second request for a quote may itself bring no answer: the first one stays, unverified.
func TestAnnotateQuoteSecondFails(t *testing.T) {
	m := &asked{answer: func(n int, _ llm.Request) (llm.Reply, error) {
		if n == 1 {
			return reply(n, `{"quote":"It poured","reason":"r","answer":"true"}`), nil
		}
		return llm.Reply{Outcome: llm.OutcomeRefused, Raw: "no", Call: "call2", Calls: []string{"call2"}}, nil
	}}
	got, err := RAGuard.Annotate(context.Background(), m, Settings{}, rain(true, ""))
	if err != nil {
		t.Fatal(err)
	}
	if got.Call != "call1" || got.Quote != "It poured" || !corpus.HasFlag(got.Flags, corpus.FlagQuoteUnverified) || len(got.Calls) != 2 {
		t.Errorf("got %+v, want the first answer with an unverified quote", got)
	}
}

func TestAnnotateRequest(t *testing.T) {
	m := replies(`{"quote":"","reason":"","answer":"unrelated"}`)
	in := rain(true, "")
	in.Claim.RatingRaw, in.Claim.Rating, in.Claim.ReviewURL = "Pants on Fire!", "pants_on_fire", "https://review.example/x"
	if _, err := RAGuard.Annotate(context.Background(), m, Settings{Endpoint: "e", Model: "m"}, in); err != nil {
		t.Fatal(err)
	}
	zero, seed := 0.0, 7
	if _, err := RAGuard.Annotate(context.Background(), m, Settings{Mode: ModeCompat, Endpoint: "e", Model: "m", Temperature: &zero, Seed: &seed, MaxTokens: 99}, in); err != nil {
		t.Fatal(err)
	}
	first, second := m.requests[0], m.requests[1]
	if first.Role != "annotate" || first.Endpoint != "e" || first.Model != "m" || *first.Temperature != 0.1 || first.Sample != 0 || first.Template != RAGuard.Prompt(Settings{}) {
		t.Errorf("the request is %+v", first)
	}
	if *second.Temperature != 0 || *second.Seed != 7 || second.MaxTokens != 99 || second.Template != RAGuard.Prompt(Settings{Mode: ModeCompat}) || second.Template == first.Template {
		t.Errorf("the request in compat form is %+v", second)
	}
	for _, q := range m.requests {
		messages, err := q.Template.Render(q.Vars)
		if err != nil {
			t.Fatal(err)
		}
		for _, msg := range messages {
			for _, secret := range []string{"Pants", "pants_on_fire", "review.example"} {
				if strings.Contains(msg.Content, secret) {
					t.Errorf("template %s shows %q", q.Template.Name, secret)
				}
			}
		}
	}
}

func TestAnnotateCutsDocument(t *testing.T) {
	in := rain(true, "")
	in.Document.Text = "One sentence here. Another sentence there. A third sentence that goes on for long."
	m := replies(`{"quote":"goes on for long","reason":"","answer":"true"}`, `{"quote":"Another sentence","reason":"","answer":"true"}`)
	got, err := RAGuard.Annotate(context.Background(), m, Settings{DocumentChars: 50}, in)
	if err != nil {
		t.Fatal(err)
	}
	if text := m.requests[0].Vars.(Exam).Text; text != "One sentence here. Another sentence there." {
		t.Errorf("the model is shown %q", text)
	}
	if !corpus.HasFlag(got.Flags, corpus.FlagTruncated) || len(got.Calls) != 2 || got.Quote != "Another sentence" {
		t.Errorf("got %+v, want the flag, and a quote from what was shown", got)
	}
	in.Document.Text = strings.Repeat("Twelve chars. ", DefaultDocumentChars/14+2)
	m = replies(`{"quote":"","reason":"","answer":"unrelated"}`)
	if got, err = RAGuard.Annotate(context.Background(), m, Settings{}, in); err != nil || !corpus.HasFlag(got.Flags, corpus.FlagTruncated) {
		t.Errorf("got %+v, %v, want the flag", got, err)
	}
	if n := len(m.requests[0].Vars.(Exam).Text); n > DefaultDocumentChars || n < DefaultDocumentChars-20 {
		t.Errorf("the model is shown %d characters", n)
	}
}

func TestZero(t *testing.T) {
	tests := []struct {
		reply llm.Reply
		want  corpus.Answer
	}{
		{reply(1, `{"answer":"true"}`), corpus.AnswerTrue},
		{reply(1, `{"answer":"false"}`), corpus.AnswerFalse},
		{reply(1, `{"answer":"unknown"}`), corpus.AnswerUnknown},
		{reply(1, `{"answer":"unrelated"}`), corpus.AnswerUnknown},
		{ended(llm.OutcomeRefused, "no"), corpus.AnswerUnknown},
		{ended(llm.OutcomeFiltered, ""), corpus.AnswerUnknown},
		{ended(llm.OutcomeTruncated, ""), corpus.AnswerUnknown},
		{ended(llm.OutcomeParseFailed, "perhaps"), corpus.AnswerUnknown},
	}
	for _, tt := range tests {
		m := &asked{answer: func(int, llm.Request) (llm.Reply, error) { return tt.reply, nil }}
		got, err := RAGuard.Zero(context.Background(), m, Settings{}, corpus.Claim{ID: "c_1", Text: "March was wet."})
		want := Zero{ClaimID: "c_1", Answer: tt.want, Call: tt.reply.Call, Calls: tt.reply.Calls}
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s %q: %v (-want +got):\n%s", tt.reply.Outcome, tt.reply.Raw, err, diff)
		}
		q := m.requests[0]
		if q.Role != "zero" || *q.Temperature != DefaultTemperature {
			t.Errorf("the control asks %+v", q)
		}
	}
}

// The control through a real client: bare words are read, a third answer is asked for again and then
// counted as unknown, and the builtin model has no prior knowledge.
func TestZeroThroughClient(t *testing.T) {
	for said, want := range map[string]corpus.Answer{
		"False.":                        corpus.AnswerFalse,
		"```json\n{\"answer\":true}```": corpus.AnswerTrue,
		`{"answer":"unrelated"}`:        corpus.AnswerUnknown,
		"It depends on the year.":       corpus.AnswerUnknown,
	} {
		s := serve(t, func(int, body) (string, string) { return said, "stop" })
		got, err := RAGuard.Zero(context.Background(), client(t, s, nil), onStub, corpus.Claim{ID: "c_1", Text: "March was wet."})
		if err != nil || got.Answer != want || got.Call == "" {
			t.Errorf("%q gives %+v, %v, want %s", said, got, err, want)
		}
	}
	got, err := RAGuard.Zero(context.Background(), client(t, nil, nil), onBuiltin, corpus.Claim{ID: "c_1", Text: "Water is wet."})
	if err != nil || got.Answer != corpus.AnswerUnknown || len(got.Calls) != 1 {
		t.Errorf("the builtin model gives %+v, %v, want unknown from one call", got, err)
	}
}

func TestTemplates(t *testing.T) {
	for _, tmpl := range Templates {
		if err := tmpl.Check(); err != nil {
			t.Errorf("template %s: %v", tmpl.Name, err)
		}
	}
	for _, p := range Protocols {
		if p.Name == "" || p.Version == 0 || p.Doc == "" || p.Annotate == nil || p.Zero == nil || p.Prompt == nil || p.ZeroPrompt == nil {
			t.Errorf("protocol %q is incomplete", p.Name)
		}
	}
	for name, builtin := range map[string]func(any) (json.RawMessage, error){"exam": builtinExam, "compat": builtinExamCompat, "zero": builtinZero} {
		if _, err := builtin(42); err == nil {
			t.Errorf("the builtin answer of %s takes any variables", name)
		}
	}
}

// TestHD14: a label is not lost because the model wraps its JSON, one call each, and words inside the
// reason stay as they are.
func TestHD14(t *testing.T) {
	object := `{"quote":"It rained for nine days","reason":"x","answer":"true"}`
	comma := `{"quote":"It rained for nine days","reason":"it lists a, b,} and stops, }","answer":"false"}`
	for _, tt := range []struct {
		said, reason string
		label        corpus.StanceLabel
	}{
		{"```json\n" + object + "\n```", "x", corpus.Supporting},
		{"Here is my answer:\n" + object + "\nHope this helps", "x", corpus.Supporting},
		{strings.Replace(object, `"}`, `",}`, 1), "x", corpus.Supporting},
		{comma, "it lists a, b,} and stops, }", corpus.Misleading},
	} {
		s := serve(t, func(int, body) (string, string) { return tt.said, "stop" })
		c := client(t, s, nil)
		got, err := RAGuard.Annotate(context.Background(), c, onStub, rain(true, ""))
		if err != nil || got.Label != tt.label || got.Reason != tt.reason || len(s.bodies) != 1 {
			t.Errorf("%q gives %+v, %v after %d calls, want %s", tt.said, got, err, len(s.bodies), tt.label)
		}
		if rec, ok, err := c.Record(got.Call); err != nil || !ok || rec.Raw != tt.said {
			t.Errorf("%q is kept as %q (%v, %v)", tt.said, rec.Raw, ok, err)
		}
	}
}

// TestHD15: an answer that ran into the token bound is no label, and a temperature of 0 is sent.
func TestHD15(t *testing.T) {
	zero := 0.0
	settings := Settings{Endpoint: "stub", Model: "stub-1", Temperature: &zero}
	s := serve(t, func(n int, b body) (string, string) {
		if strings.Contains(b.Messages[len(b.Messages)-1].Content, "March was wet.") {
			return "", "length"
		}
		return `{"quote":"It rained for nine days","reason":"x","answer":"true"}`, "stop"
	})
	c := client(t, s, nil)
	got, err := RAGuard.Annotate(context.Background(), c, settings, rain(true, ""))
	var f *Failure
	if !errors.As(err, &f) || f.Reason != ReasonTruncated || got.Label != "" || len(s.bodies) != 2 {
		t.Errorf("got %+v, %v after %d calls, want no label, truncated, and one more try", got, err, len(s.bodies))
	}
	in := rain(true, "")
	in.Claim.Text = "March had nine wet days."
	if got, err = RAGuard.Annotate(context.Background(), c, settings, in); err != nil || got.Label != corpus.Supporting {
		t.Errorf("got %+v, %v, want supporting", got, err)
	}
	for i, b := range s.bodies {
		if b.Temperature == nil || *b.Temperature != 0 {
			t.Errorf("request %d has temperature %v, want 0", i+1, b.Temperature)
		}
	}
}

// TestHD17: a changed word or setting asks again, the first one does not, and every label names the
// call that holds its prompt and settings.
func TestHD17(t *testing.T) {
	s := serve(t, func(int, body) (string, string) { return `{"quote":"It rained","reason":"x","answer":"true"}`, "stop" })
	store := client(t, s, nil)
	hot := 0.7
	changed := *raguardTemplate
	changed.System = strings.Replace(changed.System, "reading exam", "reading test", 1)
	ask := func(settings Settings, tmpl llm.Template) corpus.Label {
		t.Helper()
		m := &asked{answer: func(_ int, q llm.Request) (llm.Reply, error) {
			q.Template = &tmpl
			return store.Complete(context.Background(), q)
		}}
		l, err := RAGuard.Annotate(context.Background(), m, settings, rain(true, ""))
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	warm := onStub
	warm.Temperature = &hot
	a, b, c, d := ask(onStub, *raguardTemplate), ask(onStub, changed), ask(warm, *raguardTemplate), ask(onStub, *raguardTemplate)
	if len(s.bodies) != 3 || a.Call == b.Call || a.Call == c.Call {
		t.Errorf("%d calls, labels from %s, %s, %s, want three calls", len(s.bodies), a.Call, b.Call, c.Call)
	}
	if diff := cmp.Diff(a, d); diff != "" {
		t.Errorf("the first label is not what it was (-want +got):\n%s", diff)
	}
	hashes := map[string]bool{}
	for _, l := range []corpus.Label{a, b, c} {
		rec, ok, err := store.Record(l.Call)
		if err != nil || !ok || rec.Params.Temperature == nil {
			t.Fatalf("call %s: %v, %v", l.Call, ok, err)
		}
		hashes[fmt.Sprint(rec.TemplateHash, *rec.Params.Temperature)] = true
	}
	if len(hashes) != 3 {
		t.Errorf("the labels' records tell %d prompts and settings apart, want 3", len(hashes))
	}
}
