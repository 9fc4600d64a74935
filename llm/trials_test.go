package llm

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// onEveryProfile runs a trial once for each endpoint profile, over a stub of its own.
func onEveryProfile(t *testing.T, answer func() func(int, string) stubReply, o Options, trial func(t *testing.T, p Profile, s *stub, c *Client)) {
	store := memory(t)
	for _, p := range Profiles {
		t.Run(p.Name, func(t *testing.T) {
			s := serve(t, answer())
			with := o
			// Keys of answers name the endpoint, so that profiles share the store and no answer.
			with.Store, with.Endpoints = store, map[string]Endpoint{p.Name: {Provider: ProviderOpenAI, BaseURL: s.URL + "/v1", Profile: p.Name, Price: &Price{Input: 10, Output: 100}}}
			trial(t, p, s, client(t, s, with))
		})
	}
}

func askAt(p Profile, i int) Request {
	q := ask(i)
	q.Endpoint = p.Name
	return q
}

// HD-14 by every profile: also where the schema stands in the prompt, a wrapped label is read from one call.
func TestHD14EveryProfile(t *testing.T) {
	good := `{"label":"supporting","why":"x"}`
	replies := []struct{ reply, label, why string }{
		{"```json\n" + good + "\n```", "supporting", "x"},
		{"Here is my answer:\n" + good + "\nHope this helps", "supporting", "x"},
		{`{"label":"supporting","why":"x",}`, "supporting", "x"},
		{`{"label":"misleading","why":"it lists a, b,} and stops, }"}`, "misleading", "it lists a, b,} and stops, }"},
	}
	onEveryProfile(t, func() func(int, string) stubReply {
		return func(n int, _ string) stubReply { return chat(replies[n-1].reply) }
	}, Options{}, func(t *testing.T, p Profile, s *stub, c *Client) {
		for i, want := range replies {
			r := complete(t, c, askAt(p, i))
			var got struct{ Label, Why string }
			if err := json.Unmarshal(r.JSON, &got); err != nil || got.Label != want.label || got.Why != want.why || r.Raw != want.reply || s.requests() != i+1 {
				t.Errorf("%q: %+v (%v) after %d requests, want %s %q after %d", want.reply, got, err, s.requests(), want.label, want.why, i+1)
			}
		}
	})
}

// HD-15 by every profile: temperature 0 is sent, or for models that take none left out; what was all
// thoughts is truncated, and asked with the larger bound in the field that the profile names.
func TestHD15EveryProfile(t *testing.T) {
	thoughts := stubReply{body: `{"model":"stub-1","choices":[{"message":{"role":"assistant","content":""},"finish_reason":"length"}],"usage":{"prompt_tokens":100,"completion_tokens":512,"total_tokens":612,"completion_tokens_details":{"reasoning_tokens":512}}}`}
	onEveryProfile(t, func() func(int, string) stubReply { return always(thoughts) }, Options{}, func(t *testing.T, p Profile, s *stub, c *Client) {
		for i, model := range []string{"stub", "gpt-5-nano"} {
			q := askAt(p, i)
			q.Model, q.Temperature = model, ptr(0.0)
			r := complete(t, c, q)
			if r.Outcome != OutcomeTruncated || r.JSON != nil || r.Usage.Total != 2*612 || s.requests() != 2*(i+1) {
				t.Errorf("%s: %+v after %d requests, want a truncated reply after two", model, r, s.requests())
			}
			for n, bound := range []float64{512, 2048} {
				sent := s.sent(t, 2*i+n+1)
				if sent[p.TokenField] != bound {
					t.Errorf("%s: %s is %v, want %v", model, p.TokenField, sent[p.TokenField], bound)
				}
				if temperature, ok := sent["temperature"]; ok != (p.Sampling == nil || p.Sampling(model)) || ok && temperature != 0.0 {
					t.Errorf("%s: temperature %v, sent %v", model, temperature, ok)
				}
			}
		}
	})
}

// HD-17 and HD-27 by every profile: what is asked again costs nothing, another word or setting is bought.
func TestHD17HD27EveryProfile(t *testing.T) {
	onEveryProfile(t, func() func(int, string) stubReply { return always(chat(`{"label":"supporting","why":"x"}`)) }, Options{}, func(t *testing.T, p Profile, s *stub, c *Client) {
		other := exam()
		other.System += " Weigh it."
		for _, run := range []struct {
			name     string
			template *Template
			bound    int
			calls    int
		}{{"A", exam(), 512, 5}, {"B: another word", other, 512, 5}, {"C: another bound", exam(), 511, 5}, {"D: as A", exam(), 512, 0}} {
			before, stats := s.requests(), c.Stats()
			for i := range 5 {
				q := askAt(p, i)
				q.Template, q.MaxTokens = run.template, run.bound
				r := complete(t, c, q)
				if rec, _, err := c.Record(r.Call); err != nil || rec.TemplateHash != run.template.Hash() || r.Usage.Total != 120 {
					t.Errorf("%s: record %+v, %v, usage %+v", run.name, rec, err, r.Usage)
				}
			}
			now := c.Stats()
			got := []int{s.requests() - before, now.Calls - stats.Calls, now.Tokens - stats.Tokens, now.Hits - stats.Hits, now.SavedTokens - stats.SavedTokens}
			if diff := cmp.Diff([]int{run.calls, run.calls, 120 * run.calls, 5 - run.calls, 120 * (5 - run.calls)}, got); diff != "" && run.name != "D: as A" {
				t.Errorf("%s: requests, calls, tokens, hits, saved (-want +got):\n%s", run.name, diff)
			}
			if run.name == "D: as A" && (got[0]+got[1]+got[2] != 0) {
				t.Errorf("%s: %v, want nothing bought", run.name, got)
			}
		}
	})
}

// HD-10 by every profile: a refusal that names a date is waited out, and once; the record tells the attempts.
func TestHD10EveryProfile(t *testing.T) {
	clk := newClock()
	onEveryProfile(t, func() func(int, string) stubReply {
		until := clk.now().Add(4 * time.Second).Format(http.TimeFormat)
		return inTurn(failing(429, `{"error":{"code":"rate_limit_exceeded"}}`, "Retry-After", until), answerOK)
	}, Options{Now: clk.now, Sleep: clk.sleep}, func(t *testing.T, p Profile, s *stub, c *Client) {
		began := clk.now()
		r := complete(t, c, askAt(p, 1))
		until := began.Add(4 * time.Second).Truncate(time.Second) // dates have no parts of seconds
		if late := clk.now().Sub(until); s.requests() != 2 || late < 0 || late > 3*time.Second {
			t.Errorf("%d requests, the second %s after the stated second; want two", s.requests(), late)
		}
		if rec, _, err := c.Record(r.Call); err != nil || rec.Seen.Attempt != 2 {
			t.Errorf("record %+v, %v; want attempt 2", rec, err)
		}
	})
}

// An empty account ends the run by every profile, whatever status it comes with; a rate limit does not.
func TestQuotaEveryProfile(t *testing.T) {
	for _, tt := range []struct {
		reply  stubReply
		reason string
		stops  bool
	}{
		{failing(429, `{"error":{"type":"insufficient_quota","code":"insufficient_quota"}}`), ReasonQuota, true},
		{failing(402, `{"error":{"message":"Insufficient Balance"}}`), ReasonQuota, true},
		{failing(429, `{"error":{"code":"rate_limit_exceeded"}}`), ReasonRateLimit, false},
	} {
		onEveryProfile(t, func() func(int, string) stubReply { return always(tt.reply) }, Options{Retries: -1}, func(t *testing.T, p Profile, s *stub, c *Client) {
			_, err := c.Complete(t.Context(), askAt(p, 1))
			var e *Error
			if !errors.As(err, &e) || e.Reason != tt.reason || e.StopsRun() != tt.stops || s.requests() != 1 {
				t.Errorf("%s: %v after %d requests, want %s", fmt.Sprint(tt.reply.status), err, s.requests(), tt.reason)
			}
		})
	}
}
