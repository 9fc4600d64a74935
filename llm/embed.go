package llm

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
)

// EmbedRequest asks for one vector a text.
type EmbedRequest struct {
	Role     string // kept in the record
	Endpoint string
	Model    string
	Texts    []string
}

// embedBatch is the number of texts in one call; larger ones meet the limits of some servers.
const embedBatch = 64

// Embed returns the vectors of texts, in their order and of one length. It goes in calls of 64 texts
// through the same chain as Complete, so that a stored call is free.
func (c *Client) Embed(ctx context.Context, q EmbedRequest) ([][]float32, error) {
	r, ok := c.endpoints[q.Endpoint]
	if !ok {
		return nil, &Error{Endpoint: q.Endpoint, Model: q.Model, Reason: ReasonNoEndpoint, Detail: "the endpoint is not configured"}
	}
	var vectors [][]float32
	for start := 0; start < len(q.Texts); start += embedBatch {
		texts := make([]string, 0, embedBatch)
		for _, t := range q.Texts[start:min(start+embedBatch, len(q.Texts))] {
			texts = append(texts, strings.ToValidUTF8(t, "\ufffd"))
		}
		body := wireBody{Model: q.Model, Input: texts}
		if r.at.Provider == ProviderBuiltin {
			body.Builtin = &builtinKey{Version: builtinEmbedding}
		}
		cl := &call{role: q.Role, route: r, model: q.Model, texts: texts, input: hashParts(texts...), body: encode(body)}
		cl.id = requestKey(r.name, 0, cl.body)
		got, err := c.embed(ctx, cl)
		if err != nil {
			return nil, err
		}
		vectors = append(vectors, got...)
	}
	return vectors, nil
}

func (c *Client) embed(ctx context.Context, cl *call) ([][]float32, error) {
	res, err := cl.route.chain.call(ctx, cl)
	if err != nil {
		return nil, err
	}
	if res.record.Outcome != OutcomeAnswered {
		return nil, cl.fail(ReasonRejected, "the texts were not embedded: "+string(res.record.Outcome))
	}
	if res.body == nil {
		body, ok, err := c.raw.Get(recordKey(cl.id, res.record.Seen.Attempt))
		if err != nil || !ok {
			return nil, cl.storeError("read stored vectors", errors.Join(err, missing(ok)))
		}
		res.body = body
	}
	return readVectors(res.body, len(cl.texts))
}

func missing(ok bool) error {
	if ok {
		return nil
	}
	return errors.New("the reply is gone")
}

// readVectors reads the vectors of a reply; each is a list of numbers or base64 of little-endian float32.
func readVectors(body []byte, texts int) ([][]float32, error) {
	var reply struct {
		Data []struct {
			Index     *int            `json:"index"`
			Embedding json.RawMessage `json:"embedding"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &reply); err != nil {
		return nil, fmt.Errorf("read vectors: %w", err)
	}
	if len(reply.Data) != texts {
		return nil, fmt.Errorf("read vectors: %d for %d texts", len(reply.Data), texts)
	}
	vectors := make([][]float32, texts)
	for i, d := range reply.Data {
		at := i
		if d.Index != nil {
			at = *d.Index
		}
		if at < 0 || at >= texts || vectors[at] != nil {
			return nil, fmt.Errorf("read vectors: index %d of %d texts", at, texts)
		}
		v, err := readVector(d.Embedding)
		if err != nil {
			return nil, fmt.Errorf("read vector %d: %w", at, err)
		}
		vectors[at] = v
	}
	for _, v := range vectors {
		if len(v) != len(vectors[0]) {
			return nil, fmt.Errorf("read vectors: lengths %d and %d", len(vectors[0]), len(v))
		}
	}
	return vectors, nil
}

func readVector(raw json.RawMessage) ([]float32, error) {
	var v []float32
	var text string
	if json.Unmarshal(raw, &text) == nil {
		b, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return nil, err
		}
		if len(b)%4 != 0 {
			return nil, fmt.Errorf("%d bytes are no float32 values", len(b))
		}
		v = make([]float32, len(b)/4)
		for i := range v {
			v[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
		}
	} else if err := json.Unmarshal(raw, &v); err != nil {
		return nil, err
	}
	if len(v) == 0 {
		return nil, errors.New("it is empty")
	}
	for _, x := range v {
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			return nil, errors.New("it holds a value that is no number")
		}
	}
	return v, nil
}

// builtinDims is the length of the builtin model's vectors.
const builtinDims = 256

// embeddingBody is the builtin model's reply to an embedding request.
func embeddingBody(c *call) any {
	type datum struct {
		Embedding []float32 `json:"embedding"`
		Index     int       `json:"index"`
		Object    string    `json:"object"`
	}
	data := make([]datum, len(c.texts))
	for i, t := range c.texts {
		data[i] = datum{HashEmbed(t, builtinDims), i, "embedding"}
	}
	return map[string]any{"data": data, "model": ProviderBuiltin, "object": "list"}
}
