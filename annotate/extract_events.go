package annotate

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"assay/corpus"
	"assay/llm"
)

// Events finds the propositions that a claim asserts, each with its time (methods, decision 14). The text
// that it reads is the claim's, its date that of the claim.
var Events = Extractor{
	Name:    eventsName,
	Version: 1,
	Doc:     "propositions that a claim asserts, with the words that assert them and their time",
	Gives:   GivesEvents,
	Extract: extractEvents,
	Prompt:  eventsTemplate,
}

const eventsName = "events"

const mostEvents = 6 // of a claim, as many as it has subclaims at most

type eventsReply struct {
	Events []proposedEvent `json:"events"`
}

type proposedEvent struct {
	Quote string `json:"quote"`
	Event string `json:"event"`
	When  string `json:"when"`
	From  string `json:"from"`
	To    string `json:"to"`
}

var eventsTemplate = llm.MustLoadTemplate(prompts, llm.Template{
	Name:    "extract_events",
	Version: 1,
	Schema: json.RawMessage(`{"type":"object","properties":{"events":{"type":"array","items":{"type":"object","properties":{"quote":{"type":"string"},"event":{"type":"string"},` +
		`"when":{"type":"string"},"from":{"type":"string"},"to":{"type":"string"}},"required":["quote","event","when","from","to"],"additionalProperties":false}}},` +
		`"required":["events"],"additionalProperties":false}`),
	Builtin:        builtinEvents,
	BuiltinVersion: 1,
})

// builtinEvents takes every sentence of a claim for one event.
func builtinEvents(vars any) (json.RawMessage, error) {
	p, ok := vars.(Passage)
	if !ok {
		return nil, fmt.Errorf("read passage: variables are %T", vars)
	}
	reply := eventsReply{Events: []proposedEvent{}}
	for _, s := range llm.Sentences(p.Text) {
		if s.Question || len(reply.Events) == p.Most {
			continue
		}
		sentence := strings.TrimSpace(p.Text[s.Start:s.End])
		e := proposedEvent{Quote: sentence, Event: sentence, When: whenIn(sentence, p.Date)}
		e.From, e.To, _, _ = readWhen(e.When, p.Date)
		reply.Events = append(reply.Events, e)
	}
	return json.Marshal(reply)
}

// extractEvents asks for the events of one claim and checks what comes back against its words.
func extractEvents(ctx context.Context, m Model, s ExtractSettings, d corpus.Document) (Extraction, error) {
	out := Extraction{DocumentID: d.ID, Events: []corpus.Event{}}
	day := dayOf(d.PublishedAt)
	var answer eventsReply
	speaker := strings.Join(d.Authors, ", ")
	if err := ask(ctx, m, s, &out, eventsTemplate, Passage{Source: speaker, Date: day, Text: d.Text, Most: mostEvents}, &answer); err != nil {
		return Extraction{}, err
	}
	check := newChecker(d)
	for _, p := range answer.Events {
		e, reason := check.event(p)
		if reason == "" && len(out.Events) == mostEvents {
			reason = RefusedSurplus
		}
		if reason != "" {
			out.Refused = append(out.Refused, Refusal{Text: p.Event, Quote: p.Quote, Reason: reason})
			continue
		}
		if reason := check.time(&e, p, day); reason != "" {
			out.Refused = append(out.Refused, Refusal{Text: strings.TrimSpace(p.When + " " + p.From + " " + p.To), Quote: p.Quote, Reason: reason})
		}
		out.Events = append(out.Events, e)
	}
	slices.SortStableFunc(out.Events, func(a, b corpus.Event) int { return a.Span.Start - b.Span.Start })
	for i := range out.Events {
		out.Events[i].ID = fmt.Sprintf("e%d", i+1)
	}
	return out, nil
}

// event takes over a proposition whose words stand in the claim and that adds none of its own, or says why
// it is none.
func (k *checker) event(p proposedEvent) (corpus.Event, string) {
	e := corpus.Event{Text: corpus.Space(p.Event)}
	var ok bool
	if e.Span, ok = corpus.FindSpan(k.d.Text, p.Quote); !ok {
		return e, RefusedSpan
	}
	if n := len(strings.Fields(e.Text)); n < 2 || n > MaxClaimWords {
		return e, RefusedLength
	}
	sentences := llm.Sentences(e.Text)
	if slices.ContainsFunc(sentences, func(s llm.Sentence) bool { return s.Question }) {
		return e, RefusedQuestion
	}
	if leansOn(sentences) && !leansOn(llm.Sentences(k.d.Text)) {
		return e, RefusedPronoun
	}
	if k.adds(sentences) {
		return e, RefusedAdded
	}
	if key := strings.ToLower(e.Text); k.seen[key] {
		return e, RefusedRepeated
	} else {
		k.seen[key] = true
	}
	return e, ""
}

// time takes over the time of an event as its words tell it. What a model makes of words that we cannot read
// counts only if these words have its years.
func (k *checker) time(e *corpus.Event, p proposedEvent, day string) (refused string) {
	when := corpus.Space(p.When)
	if when == "" {
		if p.From != "" || p.To != "" {
			return RefusedTime
		}
		return ""
	}
	span, ok := corpus.FindSpan(k.d.Text, when)
	if !ok {
		return RefusedSpan
	}
	e.WhenSpan = span
	e.When, _ = span.Of(k.d.Text)
	from, to, source, ok := readWhen(when, day)
	if !ok {
		if !isDay(p.From) || !isDay(p.To) || p.From > p.To || !strings.Contains(when, p.From[:4]) || !strings.Contains(when, p.To[:4]) {
			if p.From == "" && p.To == "" {
				return ""
			}
			return RefusedTime
		}
		from, to, source = p.From, p.To, corpus.TimeFromText
	}
	e.From, e.To, e.TimeFrom = from, to, source
	return ""
}
