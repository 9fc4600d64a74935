package annotate

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay/corpus"
	"assay/llm"
)

func TestSamples(t *testing.T) {
	for name, c := range map[string]struct {
		answers []string // of the samples; "-" for one that is refused
		answer  corpus.Answer
		label   corpus.StanceLabel
		want    corpus.Stability
		call    string
		flags   []string
	}{
		"all alike":        {[]string{"true", "true", "true", "true", "true"}, "true", corpus.Supporting, corpus.Stability{Samples: 5, Votes: map[corpus.Answer]int{"true": 5}, Margin: 1}, "call1", nil},
		"four of five":     {[]string{"false", "true", "true", "true", "true"}, "true", corpus.Supporting, corpus.Stability{Samples: 5, Votes: map[corpus.Answer]int{"true": 4, "false": 1}, Margin: 0.6}, "call2", nil},
		"three of five":    {[]string{"false", "true", "false", "true", "false"}, "false", corpus.Misleading, corpus.Stability{Samples: 5, Votes: map[corpus.Answer]int{"true": 2, "false": 3}, Margin: 0.2}, "call1", []string{corpus.FlagUnstable}},
		"late winner":      {[]string{"true", "false", "unrelated", "unrelated", "unrelated"}, "unrelated", corpus.Unrelated, corpus.Stability{Samples: 5, Votes: map[corpus.Answer]int{"true": 1, "false": 1, "unrelated": 3}, Margin: 0.4}, "call3", []string{corpus.FlagUnstable}},
		"a tie":            {[]string{"false", "true", "true", "false"}, "false", corpus.Misleading, corpus.Stability{Samples: 4, Votes: map[corpus.Answer]int{"true": 2, "false": 2}}, "call1", []string{corpus.FlagUnstable}},
		"one is refused":   {[]string{"true", "-", "true", "true", "true"}, "true", corpus.Supporting, corpus.Stability{Samples: 5, Votes: map[corpus.Answer]int{"true": 4}, Margin: 0.8}, "call1", nil},
		"most are refused": {[]string{"-", "-", "-", "true", "-"}, "true", corpus.Supporting, corpus.Stability{Samples: 5, Votes: map[corpus.Answer]int{"true": 1}, Margin: 0.2}, "call4", []string{corpus.FlagUnstable}},
	} {
		m := &asked{answer: func(n int, _ llm.Request) (llm.Reply, error) {
			if c.answers[n-1] == "-" {
				call := fmt.Sprintf("call%d", n)
				return llm.Reply{Outcome: llm.OutcomeRefused, Call: call, Calls: []string{call}}, nil
			}
			return reply(n, fmt.Sprintf(`{"quote":"It rained","reason":"r","answer":%q}`, c.answers[n-1])), nil
		}}
		seed := 7
		got, err := RAGuard.Annotate(context.Background(), m, Settings{Samples: len(c.answers), Seed: &seed}, rain(true, ""))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got.Answer != c.answer || got.Label != c.label || got.Call != c.call || len(got.Calls) != len(c.answers) || cmp.Diff(c.flags, got.Flags) != "" {
			t.Errorf("%s: %s, %s by %s of %v, flags %v", name, got.Answer, got.Label, got.Call, got.Calls, got.Flags)
		}
		if diff := cmp.Diff(&c.want, got.Stability); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		for i, q := range m.requests {
			if q.Sample != i || *q.Seed != seed+i {
				t.Errorf("%s: request %d is sample %d with seed %d", name, i, q.Sample, *q.Seed)
			}
		}
	}
}

func TestSamplesWithoutAnAnswer(t *testing.T) {
	m := &asked{answer: func(n int, _ llm.Request) (llm.Reply, error) {
		outcome := llm.OutcomeFiltered
		if n > 1 {
			outcome = llm.OutcomeTruncated
		}
		return llm.Reply{Outcome: outcome, Call: fmt.Sprint(n), Calls: []string{fmt.Sprint(n)}}, nil
	}}
	_, err := RAGuard.Annotate(context.Background(), m, Settings{Samples: 3}, rain(true, ""))
	var f *Failure
	if !errors.As(err, &f) || f.Reason != ReasonFiltered || cmp.Diff([]string{"1", "2", "3"}, f.Calls) != "" {
		t.Errorf("got %v, want the first failure with all calls", err)
	}
	broken := errors.New("the line is down")
	m = &asked{answer: func(n int, _ llm.Request) (llm.Reply, error) {
		if n == 2 {
			return llm.Reply{}, broken
		}
		return reply(n, `{"quote":"It rained","reason":"r","answer":"true"}`), nil
	}}
	if _, err := RAGuard.Annotate(context.Background(), m, Settings{Samples: 3}, rain(true, "")); !errors.Is(err, broken) {
		t.Errorf("a broken sample gives %v, want what broke it and no label of the rest", err)
	}
}

// The samples of a pair are stored apart: asking for more pays for those that are new.
func TestMoreSamplesPayForTheNewOnes(t *testing.T) {
	s := serve(t, func(int, body) (string, string) { return `{"quote":"It rained","reason":"r","answer":"true"}`, "stop" })
	c := client(t, s, nil)
	for _, step := range []struct{ samples, calls int }{{1, 1}, {3, 3}, {5, 5}, {3, 5}} {
		settings := onStub
		settings.Samples = step.samples
		l, err := RAGuard.Annotate(context.Background(), c, settings, rain(true, ""))
		if err != nil {
			t.Fatal(err)
		}
		if len(s.bodies) != step.calls || len(l.Calls) != step.samples {
			t.Errorf("%d samples: %d calls were paid in all, label names %d, want %d, %d", step.samples, len(s.bodies), len(l.Calls), step.calls, step.samples)
		}
	}
}
