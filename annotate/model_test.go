package annotate

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"assay/corpus"
	"assay/kv"
	"assay/llm"
)

// canned is a model that answers by a function.
type canned func(n int, q llm.Request) (llm.Reply, error)

// asked is a canned model with what it was asked.
type asked struct {
	answer   canned
	requests []llm.Request
}

func (a *asked) Complete(_ context.Context, q llm.Request) (llm.Reply, error) {
	a.requests = append(a.requests, q)
	return a.answer(len(a.requests), q)
}

// reply is an answered reply in strict form, its calls numbered by n.
func reply(n int, raw string) llm.Reply {
	call := fmt.Sprintf("call%d", n)
	return llm.Reply{Raw: raw, JSON: json.RawMessage(raw), Outcome: llm.OutcomeAnswered, Parse: llm.ParseStrict, Call: call, Calls: []string{call}}
}

func ended(outcome llm.Outcome, raw string) llm.Reply {
	return llm.Reply{Raw: raw, Outcome: outcome, Call: "call1", Calls: []string{"call0", "call1"}}
}

// replies answers the nth request with the nth text.
func replies(texts ...string) *asked {
	return &asked{answer: func(n int, _ llm.Request) (llm.Reply, error) { return reply(n, texts[min(n, len(texts))-1]), nil }}
}

// stub is an OpenAI-compatible server on loopback that answers by a function of the request's body.
type stub struct {
	*httptest.Server
	mu     sync.Mutex
	bodies []body
}

type body struct {
	Messages    []llm.Message `json:"messages"`
	Temperature *float64      `json:"temperature"`
}

func serve(t *testing.T, answer func(n int, b body) (content, finish string)) *stub {
	t.Helper()
	s := &stub{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("read request: %v", err)
		}
		var b body
		if err := json.Unmarshal(raw, &b); err != nil {
			t.Errorf("read request: %v", err)
		}
		s.mu.Lock()
		s.bodies = append(s.bodies, b)
		n := len(s.bodies)
		s.mu.Unlock()
		content, finish := answer(n, b)
		json.NewEncoder(w).Encode(map[string]any{
			"id": "x", "object": "chat.completion", "model": "stub-1",
			"choices": []any{map[string]any{"index": 0, "finish_reason": finish, "message": map[string]any{"role": "assistant", "content": content}}},
			"usage":   map[string]any{"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120},
		})
	}))
	t.Cleanup(s.Close)
	return s
}

// client is a real client on an in-memory store, with the endpoints "stub" and "builtin".
func client(t *testing.T, s *stub, prompts map[string]string) *llm.Client {
	t.Helper()
	store, err := kv.OpenMemory()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	endpoints := map[string]llm.Endpoint{"builtin": {Provider: llm.ProviderBuiltin}}
	if s != nil {
		endpoints["stub"] = llm.Endpoint{Provider: llm.ProviderOpenAI, BaseURL: s.URL + "/v1"}
	}
	c, err := llm.New(llm.Options{Store: store, Endpoints: endpoints, Salt: "test", Prompts: prompts, Retries: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

var (
	onStub    = Settings{Endpoint: "stub", Model: "stub-1"}
	onBuiltin = Settings{Endpoint: "builtin", Model: "builtin"}
)

func pairOf(claim, title, text string) Input {
	return Input{
		Claim:    corpus.Claim{ID: corpus.ClaimID(claim, "", "", ""), Text: claim},
		Gold:     true,
		Document: corpus.Document{ID: "reddit:t3_" + fmt.Sprint(len(title)+len(text)), Title: title, Text: text, Source: "reddit.com/r/weather", URL: "https://www.reddit.com/r/weather/comments/abc123/rain/"},
	}
}
