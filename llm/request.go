package llm

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
)

// Params are the settings that were sent; what a profile leaves out is nil.
type Params struct {
	Temperature *float64   `json:"temperature,omitempty"`
	TopP        *float64   `json:"top_p,omitempty"`
	Seed        *int       `json:"seed,omitempty"`
	MaxTokens   int        `json:"max_tokens,omitzero"`
	Schema      SchemaMode `json:"schema,omitzero"`
}

// wireBody is the body of a request. Settings are pointers, because 0 is a temperature. Fields stand
// in the order of their names, so that the bytes are the same on every machine.
type wireBody struct {
	Builtin             *builtinKey     `json:"builtin,omitempty"` // never sent anywhere
	Input               []string        `json:"input,omitempty"`   // of an embedding request
	MaxCompletionTokens int             `json:"max_completion_tokens,omitzero"`
	MaxTokens           int             `json:"max_tokens,omitzero"`
	Messages            []Message       `json:"messages,omitempty"`
	Model               string          `json:"model"`
	ResponseFormat      *responseFormat `json:"response_format,omitempty"`
	Seed                *int            `json:"seed,omitempty"`
	Temperature         *float64        `json:"temperature,omitempty"`
	TopP                *float64        `json:"top_p,omitempty"`
}

type responseFormat struct {
	JSONSchema *namedSchema `json:"json_schema,omitempty"`
	Type       SchemaMode   `json:"type"`
}

type namedSchema struct {
	Name   string          `json:"name"`
	Schema json.RawMessage `json:"schema"`
	Strict bool            `json:"strict"`
}

// chatBody lays a request out as the profile wants it and notes what of it is sent.
func chatBody(p Profile, q Request, t *compiled, messages []Message, sent *Params) wireBody {
	b := wireBody{Model: q.Model, Messages: slices.Clone(messages)}
	if p.Sampling == nil || p.Sampling(q.Model) {
		b.Temperature, b.TopP = q.Temperature, q.TopP
	}
	if b.Temperature != nil && p.Hottest > 0 && *b.Temperature > p.Hottest {
		b.Temperature = &p.Hottest
	}
	if p.Seed {
		b.Seed = q.Seed
	}
	if p.TokenField == MaxCompletionTokensField {
		b.MaxCompletionTokens = q.MaxTokens
	} else {
		b.MaxTokens = q.MaxTokens
	}
	*sent = Params{Temperature: b.Temperature, TopP: b.TopP, Seed: b.Seed, MaxTokens: q.MaxTokens}
	if t.schema == nil {
		return b
	}
	sent.Schema = p.Schema
	switch p.Schema {
	case SchemaJSON:
		b.ResponseFormat = &responseFormat{Type: SchemaJSON, JSONSchema: &namedSchema{Name: schemaName(t.name), Schema: t.raw, Strict: true}}
		return b
	case SchemaObject:
		b.ResponseFormat = &responseFormat{Type: SchemaObject}
	}
	b.Messages = tellSchema(b.Messages, t.raw)
	return b
}

// tellSchema writes the schema into the system message, for endpoints that are not given it apart. Some
// of them refuse json_object unless the word json stands in the prompt as they spell it.
func tellSchema(messages []Message, schema json.RawMessage) []Message {
	rule := "Answer in json: one JSON object that fits this JSON schema, and nothing before or after it:\n" + string(schema)
	if len(messages) > 0 && messages[0].Role == "system" {
		messages[0].Content += "\n\n" + rule
		return messages
	}
	return append([]Message{{Role: "system", Content: rule}}, messages...)
}

var notSchemaName = regexp.MustCompile(`[^A-Za-z0-9_-]+`)

// schemaName fits a template's name to what endpoints accept.
func schemaName(name string) string {
	name = notSchemaName.ReplaceAllString(name, "_")
	return name[:min(len(name), 64)]
}

// encode is JSON as we send and hash it: compact, and without escapes that only browsers need.
func encode(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // unreachable: only strings, finite numbers and valid raw JSON are encoded
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// requestKey names a request: SHA-256 over the endpoint's name, the sample index and the body.
func requestKey(endpoint string, sample int, body []byte) string {
	return hashParts(endpoint, strconv.Itoa(sample), string(body))
}

// hashMessages names what was rendered.
func hashMessages(messages []Message) string {
	parts := make([]string, 0, 2*len(messages))
	for _, m := range messages {
		parts = append(parts, m.Role, m.Content)
	}
	return hashParts(parts...)
}

// hashParts is SHA-256, in hex, over length-prefixed parts, so that moving a letter from one part to
// the next changes it.
func hashParts(parts ...string) string {
	size := 0
	for _, s := range parts {
		size += 8 + len(s)
	}
	b := make([]byte, 0, size)
	for _, s := range parts {
		b = binary.BigEndian.AppendUint64(b, uint64(len(s)))
		b = append(b, s...)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
