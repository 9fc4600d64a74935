package llm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"assay/kv"
)

// HD-14: a label is not lost because the model wraps its JSON. Beside the named four items: other
// wrappings by other routes, and the boundary, where nothing is there to be read.
func TestHD14(t *testing.T) {
	good := `{"label":"supporting","why":"x"}`
	for _, tt := range []struct {
		name, reply, label, why string
		parse                   ParseStatus
	}{
		{"fence", "```json\n" + good + "\n```", "supporting", "x", ParseFenced},
		{"sentences", "Here is my answer:\n" + good + "\nHope this helps", "supporting", "x", ParseBalanced},
		{"comma", `{"label":"supporting","why":"x",}`, "supporting", "x", ParseComma},
		{"comma-brace in text", `{"label":"misleading","why":"it lists a, b,} and stops, }"}`, "misleading", "it lists a, b,} and stops, }", ParseStrict},
		{"tilde fence without language", "~~~\n" + good + "\n~~~\n", "supporting", "x", ParseFenced},
		{"fence that never closes", "Sure!\n```json\n" + good, "supporting", "x", ParseFenced},
		{"comma and comma-brace in a fence", "```\n{\"label\":\"misleading\",\"why\":\"a,}\",\n}\n```", "misleading", "a,}", ParseComma},
		{"braces in the prose", "The set {a, b} decides. " + good, "supporting", "x", ParseBalanced},
		{"escaped quotes", `so {"label":"misleading","why":"he said \"no, }\" twice"} done`, "misleading", `he said "no, }" twice`, ParseBalanced},
		{"label in another spelling", `{"label":"Supports.","why":"x"}`, "supporting", "x", ParseStrict},
		{"thoughts first", "<think>{\"label\":\"unrelated\",\"why\":\"draft\"}</think>\n" + good, "supporting", "x", ParseStrict},
		{"label alone", "I weighed it.\n**Label: misleading**", "misleading", "", ParseLabel},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, always(chat(tt.reply)))
			c := client(t, s, Options{})
			r := complete(t, c, ask(1))
			var got struct{ Label, Why string }
			if err := json.Unmarshal(r.JSON, &got); err != nil {
				t.Fatalf("JSON %q: %v", r.JSON, err)
			}
			if got.Label != tt.label || got.Why != tt.why || r.Parse != tt.parse || r.Outcome != OutcomeAnswered {
				t.Errorf("got %+v by %s (%s), want %s %q by %s", got, r.Parse, r.Outcome, tt.label, tt.why, tt.parse)
			}
			if s.requests() != 1 || len(r.Calls) != 1 {
				t.Errorf("%d requests, calls %v, want one", s.requests(), r.Calls)
			}
			rec, ok, err := c.Record(r.Call)
			if err != nil || !ok || rec.Raw != tt.reply || r.Raw != tt.reply {
				t.Errorf("raw reply %q, record %q (%v, %v), want %q", r.Raw, rec.Raw, ok, err, tt.reply)
			}
		})
	}
	t.Run("repaired", func(t *testing.T) {
		s := serve(t, inTurn(chat("It supports the claim, I would say."), chat(good)))
		c := client(t, s, Options{})
		r := complete(t, c, ask(1))
		if r.Parse != ParseRepaired || r.Outcome != OutcomeAnswered || len(r.Calls) != 2 || r.Usage.Total != 240 {
			t.Errorf("got %+v, want an answer by repair from two calls and 240 tokens", r)
		}
		messages := s.sent(t, 2)["messages"].([]any)
		last := messages[len(messages)-1].(map[string]any)["content"].(string)
		if !strings.Contains(last, `"additionalProperties":false`) || !strings.Contains(encodeText(messages), "I would say") {
			t.Errorf("the repair shows neither schema nor reply: %v", messages)
		}
	})
	t.Run("nothing to read", func(t *testing.T) {
		s := serve(t, always(chat("I think {this} is not true")))
		r := complete(t, client(t, s, Options{}), ask(1))
		if r.Outcome != OutcomeParseFailed || r.Parse != ParseFailed || r.JSON != nil || s.requests() != 2 {
			t.Errorf("got %s by %s, JSON %q, %d requests; want parse_failed after one repair", r.Outcome, r.Parse, r.JSON, s.requests())
		}
	})
}

func encodeText(v any) string { return string(encode(v)) }

// HD-15: temperature 0 is sent, and an answer that was all thoughts is truncated, never a label.
func TestHD15(t *testing.T) {
	thoughts := stubReply{body: `{"model":"stub-1","choices":[{"message":{"role":"assistant","content":""},"finish_reason":"length"}],"usage":{"prompt_tokens":100,"completion_tokens":512,"total_tokens":612,"completion_tokens_details":{"reasoning_tokens":512}}}`}
	for _, tt := range []struct {
		name    string
		replies []stubReply
		outcome Outcome
		calls   int
		again   int // requests of a retry
	}{
		{"label", []stubReply{chat(`{"label":"supporting","why":"x"}`)}, OutcomeAnswered, 1, 0},
		{"empty twice", []stubReply{thoughts}, OutcomeTruncated, 2, 2},
		{"empty once", []stubReply{thoughts, chat(`{"label":"supporting","why":"x"}`)}, OutcomeAnswered, 2, 1},
		{"thoughts in the text", []stubReply{finished("<think>hmm, well", "length", 100, 512)}, OutcomeTruncated, 2, 2},
		{"cut answer", []stubReply{finished(`{"label":"supporting","why":"it go`, "length", 100, 512)}, OutcomeTruncated, 2, 0},
		{"whole answer at the bound", []stubReply{finished(`{"label":"supporting","why":"x"}`, "length", 100, 512)}, OutcomeTruncated, 2, 0},
		{"max_tokens, Anthropic's word", []stubReply{finished("", "max_tokens", 100, 512)}, OutcomeTruncated, 2, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, inTurn(tt.replies...))
			retry := false
			c := client(t, s, Options{Retried: func(context.Context) bool { return retry }})
			q := ask(1)
			q.Temperature = ptr(0.0)
			r := complete(t, c, q)
			if r.Outcome != tt.outcome || s.requests() != tt.calls {
				t.Errorf("outcome %s after %d requests, want %s after %d", r.Outcome, s.requests(), tt.outcome, tt.calls)
			}
			if r.Outcome != OutcomeAnswered && r.JSON != nil {
				t.Errorf("a %s reply has an answer: %s", r.Outcome, r.JSON)
			}
			for n := 1; n <= s.requests(); n++ {
				body := s.sent(t, n)
				if v, ok := body["temperature"]; !ok || v != 0.0 {
					t.Errorf("request %d has temperature %v", n, v)
				}
				if want := []float64{512, 2048}[n-1]; body["max_tokens"] != want {
					t.Errorf("request %d has max_tokens %v, want %v", n, body["max_tokens"], want)
				}
			}
			spend, err := c.Spend()
			if err != nil || spend.Usage.Total != r.Usage.Total || spend.Usage.Total == 0 {
				t.Errorf("spend %+v (%v), reply %+v: every token counts", spend, err, r.Usage)
			}
			before := s.requests()
			if again := complete(t, c, q); s.requests() != before || again.Outcome != r.Outcome {
				t.Errorf("what goes on where it was killed asks %d times and gets %s", s.requests()-before, again.Outcome)
			}
			retry = true
			complete(t, c, q)
			if got := s.requests() - before; got != tt.again {
				t.Errorf("asked again: %d requests, want %d", got, tt.again)
			}
		})
	}
}

// HD-17: the key sees every word and every setting, and an old answer is back when they are back.
func TestHD17(t *testing.T) {
	s := serve(t, always(chat(`{"label":"supporting","why":"x"}`)))
	c := client(t, s, Options{})
	p1 := exam()
	p2 := exam()
	p2.System = strings.Replace(p2.System, "judge", "weigh", 1)
	p3 := exam()
	p3.Schema = json.RawMessage(strings.Replace(string(p3.Schema), `"why"`, `"because"`, 2))
	hashes := map[string]bool{}
	for _, run := range []struct {
		name  string
		t     *Template
		set   func(*Request)
		calls int
	}{
		{"A", p1, nil, 20},
		{"B: one word", p2, nil, 20},
		{"C: temperature", p1, func(q *Request) { q.Temperature = ptr(0.7) }, 20},
		{"D: as A", p1, nil, 0},
		{"no temperature", p1, func(q *Request) { q.Temperature = nil }, 20},
		{"top_p", p1, func(q *Request) { q.TopP = ptr(0.5) }, 20},
		{"seed", p1, func(q *Request) { q.Seed = ptr(0) }, 20},
		{"model", p1, func(q *Request) { q.Model = "other" }, 20},
		{"sample", p1, func(q *Request) { q.Sample = 1 }, 20},
		{"bound", p1, func(q *Request) { q.MaxTokens = 511 }, 20},
		{"follow", p1, func(q *Request) { q.Follow = []Message{{Role: "user", Content: "Quote exactly."}} }, 20},
		{"schema, answers do not fit", p3, nil, 40},
		{"role alone changes nothing", p1, func(q *Request) { q.Role = "other" }, 0},
		{"A again", p1, nil, 0},
	} {
		before := s.requests()
		for i := range 20 {
			q := ask(i)
			q.Template, q.Temperature = run.t, ptr(0.0)
			if run.set != nil {
				run.set(&q)
			}
			r := complete(t, c, q)
			rec, ok, err := c.Record(r.Calls[0])
			if err != nil || !ok {
				t.Fatalf("record %s: %v, %v", r.Call, ok, err)
			}
			if rec.TemplateHash != run.t.Hash() {
				t.Errorf("%s: record has template %s, want %s", run.name, rec.TemplateHash, run.t.Hash())
			}
			if diff := cmp.Diff(q.Temperature, rec.Params.Temperature); diff != "" {
				t.Errorf("%s: temperature (-want +got)\n%s", run.name, diff)
			}
			hashes[rec.TemplateHash] = true
		}
		if got := s.requests() - before; got != run.calls {
			t.Errorf("%s: %d calls, want %d", run.name, got, run.calls)
		}
	}
	if len(hashes) != 3 {
		t.Errorf("%d template hashes, want 3", len(hashes))
	}
}

// The endpoint's name is in the key, its address is not.
func TestMovedEndpoint(t *testing.T) {
	store := memory(t)
	answer := always(chat(`{"label":"supporting","why":"x"}`))
	complete(t, client(t, serve(t, answer), Options{Store: store}), ask(1))
	moved := serve(t, answer)
	complete(t, client(t, moved, Options{Store: store}), ask(1))
	if moved.requests() != 0 {
		t.Errorf("%d requests to the new address, want none", moved.requests())
	}
	other := client(t, moved, Options{Store: store, Endpoints: map[string]Endpoint{"second": {Provider: ProviderOpenAI, BaseURL: moved.URL}}})
	q := ask(1)
	q.Endpoint = "second"
	complete(t, other, q)
	if moved.requests() != 1 {
		t.Errorf("%d requests under another name, want 1", moved.requests())
	}
}

// HD-27: a run that is answered from the store reports no calls, no tokens, no money, and what it saved.
func TestHD27(t *testing.T) {
	prices := PriceTable{Date: "2026-01-01", Models: map[string]Price{"stub": {Input: 10, Output: 100}}}
	store := memory(t)
	s := serve(t, always(chat(`{"label":"supporting","why":"x"}`)))
	run := func(ask40 func(*Client)) Stats {
		c := client(t, s, Options{Store: store, Prices: prices})
		ask40(c)
		return c.Stats()
	}
	var ids []string
	all := func(c *Client) {
		ids = nil
		for i := range 40 {
			r := complete(t, c, ask(i))
			ids = append(ids, r.Call)
			if r.Usage != (Usage{Prompt: 100, Completion: 20, Total: 120}) {
				t.Errorf("reply shows usage %+v, want that of the call that made it", r.Usage)
			}
		}
	}
	usd := 40 * (100*10 + 20*100) / 1e6
	fresh := Stats{Spend: Spend{Calls: 40, Usage: Usage{Prompt: 4000, Completion: 800, Total: 4800}, USD: usd}, Tokens: 4800}
	saved := Stats{Hits: 40, SavedTokens: 4800, SavedUSD: usd}
	near := cmpopts.EquateApprox(1e-9, 0)
	for _, tt := range []struct {
		name string
		ask  func(*Client)
		want Stats
	}{
		{"run 1", func(c *Client) {
			all(c)
			if err := c.Saved(ids...); err != nil { // bought in this run: nothing is saved
				t.Error(err)
			}
		}, fresh},
		{"run 2, from the cache", all, saved},
		{"run 3, items fresh", func(c *Client) {
			if err := c.Saved(append(ids, ids[0], "unknown")...); err != nil {
				t.Error(err)
			}
		}, saved},
		{"run 4, half each", func(c *Client) {
			if err := c.Saved(ids[:20]...); err != nil {
				t.Error(err)
			}
			for i := 20; i < 40; i++ {
				complete(t, c, ask(i))
			}
		}, saved},
		{"run 5, the caller names every call", func(c *Client) {
			all(c)
			if err := c.Saved(ids...); err != nil {
				t.Error(err)
			}
		}, saved},
		{"nothing asked", func(*Client) {}, Stats{}},
	} {
		if diff := cmp.Diff(tt.want, run(tt.ask), near); diff != "" {
			t.Errorf("%s (-want +got)\n%s", tt.name, diff)
		}
	}
	spend, err := client(t, s, Options{Store: store, Prices: prices}).Spend()
	want := Spend{Calls: 40, Usage: fresh.Usage, USD: usd}
	if diff := cmp.Diff(want, spend, near); diff != "" || err != nil {
		t.Errorf("project total (%v, -want +got)\n%s", err, diff)
	}
}

// Fifty workers that ask the same buy it once.
func TestSameKeyAtOnce(t *testing.T) {
	release := make(chan struct{})
	s := serve(t, func(int, string) stubReply {
		<-release
		return chat(`{"label":"supporting","why":"x"}`)
	})
	var told atomic.Int32
	c := client(t, s, Options{Answered: func(context.Context, string, [32]byte) { told.Add(1) }})
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if r, err := c.Complete(t.Context(), ask(1)); err != nil || r.Outcome != OutcomeAnswered {
				t.Errorf("got %+v, %v", r, err)
			}
		})
	}
	close(release)
	wg.Wait()
	st := c.Stats()
	if s.requests() != 1 || st.Calls != 1 || st.Hits != 49 || told.Load() != 50 {
		t.Errorf("%d requests, %+v, %d answers told; want 1 call, 49 hits, 50 told", s.requests(), st, told.Load())
	}
}

// A worker that waits for a key gives up when its run ends, and the key stays usable.
func TestCancelWhileLocked(t *testing.T) {
	in, release := make(chan struct{}), make(chan struct{})
	s := serve(t, func(int, string) stubReply {
		in <- struct{}{}
		<-release
		return chat(`{"label":"supporting","why":"x"}`)
	})
	c := client(t, s, Options{})
	done := make(chan error)
	go func() {
		_, err := c.Complete(t.Context(), ask(1))
		done <- err
	}()
	<-in
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Complete(ctx, ask(1)); !errors.Is(err, context.Canceled) {
		t.Errorf("the waiting worker got %v, want it cancelled", err)
	}
	close(release)
	if err := <-done; err != nil {
		t.Error(err)
	}
	complete(t, c, ask(1))
}

func TestRecordFields(t *testing.T) {
	s := serve(t, always(stubReply{body: `{"model":"stub-2026","system_fingerprint":"fp_1","choices":[{"message":{"content":"{\"label\":\"supporting\",\"why\":\"x <b>\"}"},"finish_reason":"stop"}],
		"usage":{"prompt_tokens":90,"completion_tokens":10,"total_tokens":100,"prompt_tokens_details":{"cached_tokens":30},"completion_tokens_details":{"reasoning_tokens":4}}}`}))
	clk := newClock()
	c := client(t, s, Options{Now: clk.now, Prices: PriceTable{Date: "2026-01-01", Models: map[string]Price{"stub": {Input: 1, Cached: 0.5, Output: 2}}}, Salt: "salt"})
	q := ask(1)
	q.Temperature, q.Seed, q.Sample = ptr(0.1), ptr(7), 2
	r := complete(t, c, q)
	messages, err := c.Render(q.Template, q.Vars)
	if err != nil {
		t.Fatal(err)
	}
	want := Record{
		ID: r.Call, Role: "annotator", Endpoint: "main", Provider: "openai", Model: "stub", Returned: "stub-2026", Fingerprint: "fp_1",
		Params: Params{Temperature: ptr(0.1), Seed: ptr(7), MaxTokens: 512, Schema: SchemaJSON}, Sample: 2,
		Template: "exam", TemplateHash: exam().Hash(), Input: hashMessages(messages),
		Outcome: OutcomeAnswered, Finish: "stop", Raw: `{"label":"supporting","why":"x <b>"}`, Parse: ParseStrict,
		Usage: Usage{Prompt: 90, Completion: 10, Cached: 30, Reasoning: 4, Total: 100}, USD: ptr((60*1 + 30*0.5 + 10*2) / 1e6), PriceDate: "2026-01-01",
		Seen: Seen{Started: clk.now(), Attempt: 1},
	}
	got, ok, err := c.Record(r.Call)
	if err != nil || !ok {
		t.Fatalf("Record: %v, %v", ok, err)
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(Record{}, "Parsed")); diff != "" {
		t.Errorf("record (-want +got)\n%s", diff)
	}
	if string(r.JSON) != `{"label":"supporting","why":"x <b>"}` {
		t.Errorf("JSON %s", r.JSON)
	}
	body, ok, err := c.Body(r.Call)
	if err != nil || !ok || !bytes.Contains(body, []byte("fp_1")) {
		t.Errorf("Body = %q, %v, %v", body, ok, err)
	}
	if key := requestKey("main", 2, []byte(s.bodies[0])); key != r.Call {
		t.Errorf("the key is not over the bytes that were sent: %s, want %s", r.Call, key)
	}
}

// A dependency on a call changes when its answer does, and not before.
func TestCurrent(t *testing.T) {
	told := map[string][32]byte{}
	s := serve(t, inTurn(finished("", "length", 10, 512)))
	c := client(t, s, Options{Answered: func(_ context.Context, key string, sum [32]byte) { told[key] = sum }})
	r := complete(t, c, ask(1))
	if len(told) != 2 {
		t.Fatalf("told of %d answers, want both calls", len(told))
	}
	for key, sum := range told {
		if now, ok, err := c.Current(t.Context(), key); now != sum || !ok || err != nil {
			t.Errorf("Current(%s) = %x, %v, %v, want %x", key, now, ok, err, sum)
		}
	}
	for _, key := range []string{"llm/unknown", "fetch/" + r.Call} {
		if _, ok, err := c.Current(t.Context(), key); ok || err != nil {
			t.Errorf("Current(%s) = %v, %v, want nothing", key, ok, err)
		}
	}
}

func TestReplay(t *testing.T) {
	store := memory(t)
	s := serve(t, func(_ int, body string) stubReply {
		if strings.Contains(body, "claim 2") {
			return finished("", "length", 10, 512)
		}
		if strings.Contains(body, "claim 4") {
			return stubReply{status: 400, body: `{"error":{"message":"not these words"}}`}
		}
		return chat(`{"label":"supporting","why":"x"}`)
	})
	live := client(t, s, Options{Store: store})
	want := []Reply{complete(t, live, ask(1)), complete(t, live, ask(2))}
	_, rejected := live.Complete(t.Context(), ask(4))
	before := s.requests()
	c := client(t, s, Options{Store: store, Replay: true, MaxUSD: 1, Endpoints: map[string]Endpoint{"main": {KeyEnv: "ASSAY_NO_SUCH_KEY"}}})
	got := []Reply{complete(t, c, ask(1)), complete(t, c, ask(2))}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("replay differs (-live +replay)\n%s", diff)
	}
	_, err := client(t, s, Options{Store: store, Replay: true}).Complete(t.Context(), ask(3))
	var e *Error
	if !errors.As(err, &e) || e.Reason != ReasonNotStored || e.FailureClass() != "transient" || e.StopsRun() {
		t.Errorf("a miss gives %v, want not_stored", err)
	}
	_, err = client(t, s, Options{Store: store, Replay: true}).Complete(t.Context(), ask(4))
	if rejected == nil || err == nil || err.Error() != rejected.Error() || !errors.As(err, &e) || e.FailureClass() != "permanent" {
		t.Errorf("what failed for good gives %v, want %v", err, rejected)
	}
	q := ask(3)
	q.Endpoint = "inside"
	if r := complete(t, c, q); r.Outcome != OutcomeAnswered {
		t.Errorf("builtin in replay: %+v", r)
	}
	if s.requests() != before {
		t.Errorf("replay sent %d requests", s.requests()-before)
	}
}

// A reply that was kept but not read before the process died is read by the next one, not bought again.
func TestUnreadReply(t *testing.T) {
	for _, tt := range []struct {
		name     string
		bodies   []string
		requests int
		attempts []int
		hits     int
	}{
		{"whole", []string{chat(`{"label":"supporting","why":"x"}`).body}, 0, []int{1}, 1},
		{"unusable", []string{"<html>"}, 1, []int{1, 2}, 0},
		{"second attempt", []string{"<html>", chat(`{"label":"supporting","why":"x"}`).body}, 0, []int{2}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, always(chat(`{"label":"supporting","why":"x"}`)))
			c := client(t, s, Options{})
			cl, err := c.prepare(ask(1))
			if err != nil {
				t.Fatal(err)
			}
			for i, b := range tt.bodies {
				if err := c.raw.Put(recordKey(cl.id, i+1), []byte(b)); err != nil {
					t.Fatal(err)
				}
			}
			if r := complete(t, c, ask(1)); r.Outcome != OutcomeAnswered || r.Call != cl.id {
				t.Errorf("got %+v", r)
			}
			var attempts []int
			for _, rec := range records(t, c) {
				attempts = append(attempts, rec.Seen.Attempt)
			}
			if diff := cmp.Diff(tt.attempts, attempts); diff != "" {
				t.Errorf("recorded attempts (-want +got)\n%s", diff)
			}
			if st := c.Stats(); s.requests() != tt.requests || st.Calls != tt.requests || st.Hits != tt.hits {
				t.Errorf("%d requests, %+v, want %d calls and %d hits", s.requests(), st, tt.requests, tt.hits)
			}
			complete(t, c, ask(1))
			if s.requests() != tt.requests {
				t.Errorf("asked again: %d requests", s.requests())
			}
		})
	}
}

// A record or an answer that cannot be decoded is reported and made again from the reply.
func TestCorruptRecords(t *testing.T) {
	for _, bucket := range []string{BucketCalls, BucketAnswers} {
		t.Run(bucket, func(t *testing.T) {
			store := memory(t)
			s := serve(t, always(chat(`{"label":"supporting","why":"x"}`)))
			first := client(t, s, Options{Store: store})
			want := complete(t, first, ask(1))
			var keys []string
			damaged := kv.In[string](store, bucket, 9) // another version cannot be decoded
			for key, err := range damaged.Keys("", "") {
				if err != nil {
					t.Fatal(err)
				}
				keys = append(keys, key)
			}
			for _, key := range keys {
				if err := damaged.Put(key, "damaged"); err != nil {
					t.Fatal(err)
				}
			}
			reports := 0
			c := client(t, s, Options{Store: store, Corrupt: func(error) { reports++ }})
			if bucket == BucketCalls {
				if sp, err := c.Spend(); err != nil || sp.Corrupt != 1 {
					t.Errorf("Spend = %+v, %v, want one corrupt record", sp, err)
				}
			} else if _, ok, err := c.Current(t.Context(), DepPrefix+want.Call); ok || err != nil {
				t.Errorf("Current = %v, %v, want nothing", ok, err)
			}
			got := complete(t, c, ask(1))
			if diff := cmp.Diff(want, got); diff != "" || s.requests() != 1 || reports < 2 {
				t.Errorf("%d requests, %d reports, reply (-want +got)\n%s", s.requests(), reports, diff)
			}
			if sp, err := c.Spend(); err != nil || sp.Calls != 1 || sp.Corrupt != 0 {
				t.Errorf("Spend = %+v, %v, want one call", sp, err)
			}
		})
	}
}

// An answer that an older ladder could not read is read again for nothing.
func TestReadAgain(t *testing.T) {
	s := serve(t, always(chat("Label: supports")))
	store := memory(t)
	plain := ask(1)
	plain.Template.Labels.Aliases = nil
	if r := complete(t, client(t, s, Options{Store: store}), plain); r.Outcome != OutcomeParseFailed {
		t.Fatalf("got %s, want parse_failed", r.Outcome)
	}
	before := s.requests()
	c := client(t, s, Options{Store: store})
	r := complete(t, c, ask(1))
	rec, _, err := c.Record(r.Call)
	if r.Outcome != OutcomeAnswered || r.Parse != ParseLabel || s.requests() != before || rec.Parse != ParseLabel || err != nil {
		t.Errorf("got %s by %s, record by %s (%v), %d new requests", r.Outcome, r.Parse, rec.Parse, err, s.requests()-before)
	}
	if sum, ok, err := c.Current(t.Context(), DepPrefix+r.Call); err != nil || !ok || sum != sumOf(rec, nil) {
		t.Errorf("the sum does not follow the record: %v, %v", ok, err)
	}
}

func TestOutcomes(t *testing.T) {
	message := func(m string) stubReply {
		return stubReply{body: `{"model":"stub-1","choices":[{"message":` + m + `,"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":5,"total_tokens":10}}`}
	}
	for _, tt := range []struct {
		name    string
		reply   stubReply
		outcome Outcome
		calls   int
		raw     string
	}{
		{"refusal field", message(`{"content":null,"refusal":"I can't do that."}`), OutcomeRefused, 1, "I can't do that."},
		{"refusal beside an answer", message(`{"content":"{\"label\":\"supporting\",\"why\":\"x\"}","refusal":"No."}`), OutcomeRefused, 1, "No."},
		{"refusal part", message(`{"content":[{"type":"refusal","refusal":"No."}]}`), OutcomeRefused, 1, "No."},
		{"refusal in the text", message(`{"content":"I'm sorry, but I can't help with that."}`), OutcomeRefused, 1, "I'm sorry, but I can't help with that."},
		{"no refusal", message(`{"content":"I cannot tell from this document."}`), OutcomeParseFailed, 2, "I cannot tell from this document."},
		{"filter", finished("half an ans", "content_filter", 5, 5), OutcomeFiltered, 1, "half an ans"},
		{"filter over an answer", finished(`{"label":"supporting","why":"x"}`, "content_filter", 5, 5), OutcomeFiltered, 1, `{"label":"supporting","why":"x"}`},
		{"safety", finished("", "SAFETY", 5, 0), OutcomeFiltered, 1, ""},
		{"filtered prompt", stubReply{status: 400, body: `{"error":{"code":"content_filter","message":"withheld"}}`}, OutcomeFiltered, 1, "withheld"},
		{"moderated prompt", stubReply{status: 403, body: `{"error":{"code":403,"message":"flagged","metadata":{"reasons":["violence"],"flagged_input":"x"}}}`}, OutcomeFiltered, 1, "flagged"},
		{"empty", message(`{"content":""}`), OutcomeParseFailed, 2, ""},
		{"null", message(`{"content":null}`), OutcomeParseFailed, 2, ""},
		{"parts", message(`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"{\"label\":\"supporting\",\"why\":\"x\"}"}]}`), OutcomeAnswered, 1, `{"label":"supporting","why":"x"}`},
		{"reasoning beside", message(`{"content":"Label: unrelated","reasoning_content":"{\"label\":\"supporting\",\"why\":\"x\"}","reasoning":"supporting"}`), OutcomeAnswered, 1, "Label: unrelated"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, always(tt.reply))
			c := client(t, s, Options{})
			r := complete(t, c, ask(1))
			if r.Outcome != tt.outcome || s.requests() != tt.calls || r.Raw != tt.raw {
				t.Errorf("got %s %q after %d requests, want %s %q after %d", r.Outcome, r.Raw, s.requests(), tt.outcome, tt.raw, tt.calls)
			}
			if (r.JSON != nil) != (tt.outcome == OutcomeAnswered) {
				t.Errorf("a %s reply has JSON %q", r.Outcome, r.JSON)
			}
			complete(t, c, ask(1))
			if s.requests() != tt.calls {
				t.Errorf("asked again: %d requests, want an outcome from the cache", s.requests())
			}
		})
	}
}

// Free-text templates have outcomes, too, but no ladder and no repair.
func TestFreeText(t *testing.T) {
	for reply, want := range map[string]Outcome{
		"Some text.":                            OutcomeAnswered,
		"<think>hm</think> Some text.":          OutcomeAnswered,
		"":                                      OutcomeParseFailed,
		"I'm sorry, but I can't assist with it": OutcomeRefused,
	} {
		s := serve(t, always(chat(reply)))
		q := ask(1)
		q.Template = &Template{Name: "free", User: "Say something about {{.Claim}}."}
		r := complete(t, client(t, s, Options{}), q)
		if r.Outcome != want || s.requests() != 1 || r.JSON != nil {
			t.Errorf("%q: %s after %d requests, want %s", reply, r.Outcome, s.requests(), want)
		}
		if want == OutcomeAnswered && r.Text != "Some text." {
			t.Errorf("%q: text %q", reply, r.Text)
		}
		if _, ok := s.sent(t, 1)["response_format"]; ok {
			t.Error("a free text was asked for in a format")
		}
	}
}

func TestSchemaModes(t *testing.T) {
	for mode, want := range map[SchemaMode]struct {
		format any
		told   bool
	}{
		"":           {map[string]any{"type": "json_schema"}, false},
		SchemaObject: {map[string]any{"type": "json_object"}, true},
		SchemaNone:   {nil, true},
	} {
		s := serve(t, always(chat(`{"label":"supporting","why":"x"}`)))
		c := client(t, s, Options{Endpoints: map[string]Endpoint{"main": {Schema: mode}}})
		complete(t, c, ask(1))
		body := s.sent(t, 1)
		format, _ := body["response_format"].(map[string]any)
		if mode == "" {
			schema := format["json_schema"].(map[string]any)
			if schema["name"] != "exam" || schema["strict"] != true || schema["schema"] == nil {
				t.Errorf("json_schema is %v", schema)
			}
			delete(format, "json_schema")
		}
		if diff := cmp.Diff(want.format, body["response_format"]); diff != "" {
			t.Errorf("mode %q: response_format (-want +got)\n%s", mode, diff)
		}
		system := body["messages"].([]any)[0].(map[string]any)["content"].(string)
		if strings.Contains(system, "additionalProperties") != want.told {
			t.Errorf("mode %q: system message %q", mode, system)
		}
	}
}

func TestOpenAIProfile(t *testing.T) {
	for model, temperature := range map[string]bool{"gpt-4o": true, "gpt-5-nano": false, "o3-mini": false, "gpt-5-chat-latest": true} {
		s := serve(t, always(chat(`{"label":"supporting","why":"x"}`)))
		c := client(t, s, Options{Endpoints: map[string]Endpoint{"main": {Profile: "openai"}}})
		q := ask(1)
		q.Model, q.Temperature = model, ptr(0.5)
		r := complete(t, c, q)
		body := s.sent(t, 1)
		_, has := body["temperature"]
		if has != temperature || body["max_completion_tokens"] != 512.0 || body["max_tokens"] != nil {
			t.Errorf("%s: sent %v", model, body)
		}
		rec, _, err := c.Record(r.Call)
		if err != nil || (rec.Params.Temperature != nil) != temperature {
			t.Errorf("%s: the record says temperature %v (%v)", model, rec.Params.Temperature, err)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	store := memory(t)
	for name, o := range map[string]Options{
		"no store":  {},
		"provider":  {Store: store, Endpoints: map[string]Endpoint{"a": {Provider: "magic"}}},
		"address":   {Store: store, Endpoints: map[string]Endpoint{"a": {Provider: "openai", BaseURL: "localhost:1"}}},
		"profile":   {Store: store, Endpoints: map[string]Endpoint{"a": {Provider: "openai", BaseURL: "http://x/v1", Profile: "none"}}},
		"override":  {Store: store, Prompts: map[string]string{"exam": "no parts"}},
		"no scheme": {Store: store, Endpoints: map[string]Endpoint{"a": {Provider: "openai", BaseURL: "ftp://x"}}},
	} {
		if _, err := New(o); err == nil {
			t.Errorf("%s: New succeeded", name)
		}
	}
}

func TestBadRequests(t *testing.T) {
	c := client(t, serve(t, always(chat("x"))), Options{})
	broken := exam()
	broken.User = "{{.Nothing}}"
	for name, tt := range map[string]struct {
		set    func(*Request)
		reason string
		stops  bool
	}{
		"endpoint":    {func(q *Request) { q.Endpoint = "none" }, ReasonNoEndpoint, true},
		"template":    {func(q *Request) { q.Template = nil }, ReasonBadRequest, false},
		"variable":    {func(q *Request) { q.Template = broken }, ReasonBadRequest, false},
		"temperature": {func(q *Request) { q.Temperature = ptr(nan()) }, ReasonBadRequest, false},
		"builtin":     {func(q *Request) { q.Endpoint, q.Template.Builtin = "inside", nil }, ReasonNoBuiltin, false},
	} {
		q := ask(1)
		tt.set(&q)
		_, err := c.Complete(t.Context(), q)
		var e *Error
		if !errors.As(err, &e) || e.Reason != tt.reason || e.StopsRun() != tt.stops || e.FailureClass() != "permanent" {
			t.Errorf("%s: got %v, want %s", name, err, tt.reason)
		}
	}
	if got := records(t, c); len(got) != 0 {
		t.Errorf("%d records of calls that were never made", len(got))
	}
}

func nan() float64 { var zero float64; return zero / zero }

// kill -9 at a moment when replies are under way: no finished call is repeated, and the records add up.
func TestKill(t *testing.T) {
	if dir := os.Getenv("ASSAY_LLM_CHILD"); dir != "" {
		childRun(t, dir)
		return
	}
	dir := filepath.Join(t.TempDir(), "store")
	const items, inFlight = 30, 4
	ctx, kill := context.WithCancel(t.Context())
	s := serve(t, func(n int, body string) stubReply {
		if n == 12 {
			kill()
		}
		return chat(`{"label":"supporting","why":"x"}`)
	})
	start := func(ctx context.Context) error {
		child := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestKill$", "-test.count=1") // killed with ctx
		child.Env = append(os.Environ(), "ASSAY_LLM_CHILD="+dir, "ASSAY_LLM_STUB="+s.URL)
		out, err := child.CombinedOutput()
		if err != nil && ctx.Err() == nil {
			t.Fatalf("run child: %v\n%s", err, out)
		}
		return err
	}
	if err := start(ctx); err == nil {
		t.Fatal("the first run was not killed")
	}
	before := s.requests()
	if err := start(t.Context()); err != nil {
		t.Fatal("the second run failed")
	}
	distinct := map[string]bool{}
	for _, b := range s.bodies {
		distinct[b] = true
	}
	if len(distinct) != items || s.requests() > items+inFlight {
		t.Errorf("%d distinct requests of %d in all, want %d of at most %d", len(distinct), s.requests(), items, items+inFlight)
	}
	after := s.requests()
	if err := start(t.Context()); err != nil || s.requests() != after {
		t.Errorf("the third run: %v, %d requests", err, s.requests()-after)
	}
	if before >= items {
		t.Errorf("the first run made %d requests before it was killed", before)
	}
	store, err := kv.Open(dir, kv.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	spend, err := client(t, s, Options{Store: store}).Spend()
	if err != nil || spend.Calls != items || spend.Usage.Total != items*120 {
		t.Errorf("Spend = %+v, %v, want %d calls", spend, err, items)
	}
}

func childRun(t *testing.T, dir string) {
	store, err := kv.Open(dir, kv.Options{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := New(Options{Store: store, Endpoints: map[string]Endpoint{"main": {Provider: ProviderOpenAI, BaseURL: os.Getenv("ASSAY_LLM_STUB"), Concurrency: 4}}})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 30 {
		wg.Go(func() {
			if _, err := c.Complete(t.Context(), ask(i)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if err := errors.Join(c.Close(), store.Close()); err != nil {
		t.Fatal(err)
	}
}

// A broken store ends the run, and the reply is not lost in silence.
func TestClosedStore(t *testing.T) {
	store, err := kv.OpenMemory()
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, func(int, string) stubReply {
		store.Close()
		return chat(`{"label":"supporting","why":"x"}`)
	})
	c := client(t, s, Options{Store: store})
	_, err = c.Complete(t.Context(), ask(1))
	var e *Error
	if !errors.As(err, &e) || e.Reason != ReasonStore || !e.StopsRun() || !errors.Is(err, kv.ErrClosed) {
		t.Errorf("got %v, want a broken store that ends the run", err)
	}
}

func TestErrorText(t *testing.T) {
	e := &Error{Endpoint: "main", Model: "m", Reason: ReasonServer, Status: 500, Detail: "overloaded", Err: errors.New("cause"), Tries: 3, Wait: time.Second}
	want := "ask m at main: server (status 500): overloaded: cause"
	if e.Error() != want || e.Attempts() != 3 {
		t.Errorf("Error() = %q, %d attempts, want %q", e.Error(), e.Attempts(), want)
	}
	for name := range reasons {
		if class := (&Error{Reason: name}).FailureClass(); class != "transient" && class != "permanent" && class != "budget" {
			t.Errorf("reason %s has class %q", name, class)
		}
	}
	if got := fmt.Sprint(&BudgetError{MaxUSD: 1, SpentUSD: 0.9, NextUSD: 0.2}); !strings.Contains(got, "$0.9000 of $1.0000") {
		t.Errorf("BudgetError says %q", got)
	}
}
