package llm

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"assay/kv"
)

// A stub is an OpenAI-compatible server on loopback that answers by a function and remembers what it
// was asked.
type stub struct {
	*httptest.Server
	mu     sync.Mutex
	bodies []string
}

// stubReply is what a stub sends. Status 0 means 200.
type stubReply struct {
	status int
	header map[string]string
	body   string
}

// chat is a plain reply with 100 prompt and 20 completion tokens.
func chat(content string) stubReply { return finished(content, "stop", 100, 20) }

func finished(content, finish string, prompt, completion int) stubReply {
	return stubReply{body: fmt.Sprintf(`{"id":"x","model":"stub-1","choices":[{"index":0,"message":{"role":"assistant","content":%s},"finish_reason":%q}],"usage":{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}}`,
		encode(content), finish, prompt, completion, prompt+completion)}
}

// serve starts a stub; answer gets the number of the request, from 1, and its body.
func serve(t testing.TB, answer func(n int, body string) stubReply) *stub {
	t.Helper()
	s := &stub{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("read request: %v", err)
		}
		s.mu.Lock()
		s.bodies = append(s.bodies, string(b))
		n := len(s.bodies)
		s.mu.Unlock()
		reply := answer(n, string(b))
		for k, v := range reply.header {
			w.Header().Set(k, v)
		}
		if reply.status != 0 {
			w.WriteHeader(reply.status)
		}
		io.WriteString(w, reply.body)
	}))
	t.Cleanup(s.Close)
	return s
}

// always answers every request alike.
func always(r stubReply) func(int, string) stubReply {
	return func(int, string) stubReply { return r }
}

// inTurn answers the n-th request with the n-th reply, and the last one from then on.
func inTurn(replies ...stubReply) func(int, string) stubReply {
	return func(n int, _ string) stubReply { return replies[min(n, len(replies))-1] }
}

func (s *stub) requests() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.bodies)
}

// sent returns the n-th request body, from 1.
func (s *stub) sent(t testing.TB, n int) map[string]any {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	var v map[string]any
	if err := json.Unmarshal([]byte(s.bodies[n-1]), &v); err != nil {
		t.Fatalf("request %d is no JSON: %v", n, err)
	}
	return v
}

// A clock stands still until somebody sleeps.
type clock struct {
	mu    sync.Mutex
	t     time.Time
	slept []time.Duration
}

func newClock() *clock { return &clock{t: time.Date(2026, 11, 3, 12, 0, 0, 0, time.UTC)} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) sleep(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
	c.slept = append(c.slept, d)
	return ctx.Err()
}

func memory(t testing.TB) *kv.Store {
	t.Helper()
	s, err := kv.OpenMemory()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close store: %v", err)
		}
	})
	return s
}

// client makes a client whose endpoint "main" is the stub and "inside" the builtin model.
func client(t testing.TB, s *stub, o Options) *Client {
	t.Helper()
	if o.Store == nil {
		o.Store = memory(t)
	}
	main := o.Endpoints["main"]
	main.Provider = ProviderOpenAI
	if s != nil {
		main.BaseURL = s.URL + "/v1"
	} else {
		main.BaseURL = "http://127.0.0.1:1/v1"
	}
	o.Endpoints = maps.Clone(o.Endpoints)
	if o.Endpoints == nil {
		o.Endpoints = map[string]Endpoint{}
	}
	o.Endpoints["main"] = main
	o.Endpoints["inside"] = Endpoint{Provider: ProviderBuiltin}
	if o.Sleep == nil {
		c := newClock()
		o.Sleep = c.sleep
	}
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// exam is a template as protocols have them: a label among other fields.
func exam() *Template {
	return &Template{
		Name:   "exam",
		System: "Say what the text does to the claim. Lines between the markers are material to judge.",
		User:   "Claim: {{.Claim}}\n{{fence \"text\" .Text}}",
		Schema: json.RawMessage(`{"type":"object","properties":{"label":{"type":"string","enum":["supporting","misleading","unrelated"]},"why":{"type":"string"}},"required":["label","why"],"additionalProperties":false}`),
		Labels: Labels{Field: "label", Aliases: map[string]string{"supports": "supporting"}},
		Builtin: func(vars any) (json.RawMessage, error) {
			return json.RawMessage(`{"label":"unrelated","why":"nothing of it"}`), nil
		},
	}
}

type examVars struct{ Claim, Text string }

func ask(i int) Request {
	return Request{Role: "annotator", Endpoint: "main", Model: "stub", Template: exam(), MaxTokens: 512,
		Vars: examVars{fmt.Sprintf("claim %d", i), "some text"}}
}

func complete(t testing.TB, c *Client, q Request) Reply {
	t.Helper()
	r, err := c.Complete(t.Context(), q)
	if err != nil {
		t.Fatalf("Complete: %v", err)
	}
	return r
}

func records(t testing.TB, c *Client) []Record {
	t.Helper()
	var all []Record
	for r, err := range c.Calls() {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	slices.SortStableFunc(all, func(a, b Record) int { return a.Seen.Attempt - b.Seen.Attempt })
	return all
}

func ptr[T any](v T) *T { return &v }
