package llm

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestUsage(t *testing.T) {
	for body, want := range map[string]Usage{
		`{"usage":{"prompt_tokens":-5,"completion_tokens":1e300,"total_tokens":0}}`: {Completion: 1e10, Total: 1e10},
		`{}`:             {},
		`{"usage":null}`: {},
		`{"usage":{"prompt_tokens":3,"completion_tokens":2}}`:                                                                      {Prompt: 3, Completion: 2, Total: 5},
		`{"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":9}}`:                                                     {Prompt: 3, Completion: 2, Total: 9},
		`{"usage":{"promptTokens":4,"completionTokens":3,"totalTokens":7}}`:                                                        {Prompt: 4, Completion: 3, Total: 7},
		`{"usage":{"prompt_tokens":12,"completion_tokens":1,"total_tokens":13,"prompt_cache_hit_tokens":8}}`:                       {Prompt: 12, Completion: 1, Total: 13, Cached: 8},
		`{"usage":{"prompt_tokens":12,"completion_tokens":1,"total_tokens":13,"cached_tokens":20}}`:                                {Prompt: 12, Completion: 1, Total: 13, Cached: 12},
		`{"usage":{"prompt_tokens":1,"completion_tokens":9,"total_tokens":10,"completion_tokens_details":{"reasoning_tokens":7}}}`: {Prompt: 1, Completion: 9, Total: 10, Reasoning: 7},
		`{"usage":{"prompt_tokens":0,"completion_tokens":2,"total_tokens":2,"prompt_tokens_details":null}}`:                        {Completion: 2, Total: 2},
	} {
		c := newTestCall(t)
		full := body[:len(body)-1]
		if full != "{" {
			full += ","
		}
		f, err := c.interpret(&result{status: 200, body: []byte(full + `"choices":[{"message":{"content":"x"}}]}`)}, time.Time{})
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		if diff := cmp.Diff(want, f.usage); diff != "" {
			t.Errorf("%s (-want +got)\n%s", body, diff)
		}
	}
}

func newTestCall(t testing.TB) *call {
	t.Helper()
	c, err := client(t, nil, Options{}).prepare(ask(1))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Whatever a server sends, reading it ends in facts or in an error with a known reason.
func FuzzReply(f *testing.F) {
	for _, seed := range []string{
		chat("x").body, `[{"error":{"code":429,"details":[{"retryDelay":"1s"}]}}]`, `{"error":"text"}`, `{"error":[{"message":"x"}]}`, `{"detail":[{"msg":"x"}]}`,
		`{"choices":[{"message":{"content":[{"type":"text","text":"x"}]}}]}`, `{"choices":[{"error":{"code":1e9}}]}`, `null`, `[]`, `[[]]`, "<html>", `{"usage":{"prompt_tokens":1e300}}`,
		`{"object":"error","message":"x","code":400}`, `{"error":{"metadata":{"reasons":[1]}}}`, `{"choices":[{"message":null}]}`,
	} {
		f.Add(200, seed)
		f.Add(429, seed)
	}
	c := newTestCall(f)
	f.Fuzz(func(t *testing.T, status int, body string) {
		r := &result{status: status, header: http.Header{"Retry-After": {body}, "X-Ratelimit-Reset": {body}}, body: []byte(body)}
		facts, err := c.interpret(r, time.Unix(0, 0))
		if err == nil {
			if facts.outcome == "" {
				c.template.read(facts.text)
			}
			if u := facts.usage; u.Prompt < 0 || u.Completion < 0 || u.Cached < 0 || u.Reasoning < 0 || u.Total < 0 {
				t.Fatalf("interpret(%d, %q) counts %+v", status, body, u)
			}
			return
		}
		if reasons[err.Reason].class == "" || err.Wait < 0 {
			t.Fatalf("interpret(%d, %q) = %+v", status, body, err)
		}
	})
}
