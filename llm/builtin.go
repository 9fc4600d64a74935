package llm

import (
	"context"
	"encoding/json"
	"fmt"
)

// Providers of an endpoint.
const (
	ProviderOpenAI  = "openai"
	ProviderBuiltin = "builtin"
)

// builtinProvider is the model inside the binary. It answers by the function that stands beside a
// prompt, from the prompt's variables; it never parses prose, needs no network and costs nothing. Its
// replies take the shape and the way of all others.
type builtinProvider struct{}

// builtinEmbedding is the version of the embedding; raise it when vectors change.
const builtinEmbedding = 1

// builtinKey is what the builtin model reads, so that its answers are stored under exactly that.
type builtinKey struct {
	Vars    string `json:"vars,omitzero"` // SHA-256 of the variables as JSON
	Version int    `json:"version"`
}

func builtinInput(t *Template, vars any) (*builtinKey, error) {
	b, err := json.Marshal(vars)
	if err != nil {
		return nil, fmt.Errorf("read variables of template %s: %w", t.Name, err)
	}
	return &builtinKey{Version: t.BuiltinVersion, Vars: hashParts(string(b))}, nil
}

func (builtinProvider) call(_ context.Context, c *call) (*result, error) {
	if c.template == nil {
		return builtinReply(embeddingBody(c))
	}
	refuse := func(detail string, err error) (*result, error) {
		e := c.fail(ReasonNoBuiltin, detail)
		e.Err, e.unsent = err, true
		return nil, e
	}
	if c.builtin == nil {
		return refuse("template "+c.template.name+" has no builtin answer", nil)
	}
	answer, err := c.builtin(c.vars)
	if err != nil {
		return refuse("answer template "+c.template.name, err)
	}
	if c.template.structured() && c.template.accept(string(answer)) == nil {
		return refuse(fmt.Sprintf("the answer of template %s does not fit its schema: %.200s", c.template.name, answer), nil)
	}
	return builtinReply(map[string]any{
		"choices": []any{map[string]any{
			"index": 0, "finish_reason": "stop",
			"message": map[string]any{"role": "assistant", "content": string(answer)},
		}},
		"model": ProviderBuiltin, "object": "chat.completion",
	})
}

func builtinReply(body any) (*result, error) {
	return &result{status: 200, body: encode(body)}, nil
}
