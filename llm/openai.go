package llm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"

	openai "github.com/sashabaranov/go-openai"
)

// openaiProvider sends a request to an OpenAI-compatible endpoint. go-openai makes the request; the
// address and the key's header are the profile's, the body is ours, because its own drops a temperature
// of zero and its validator rejects models by their names, and the reply is read by us, because its
// types lose half of what servers say.
type openaiProvider struct {
	client *http.Client
	getenv func(string) string
}

func (p *openaiProvider) call(ctx context.Context, c *call) (*result, error) {
	key, missing := keyOf(c, p.getenv)
	if missing != nil {
		return nil, missing
	}
	attempt, cancel := context.WithTimeout(ctx, c.route.at.Timeout)
	defer cancel()
	c.header = nil
	w := &wire{client: p.client, body: c.body, key: key, header: c.route.profile.KeyHeader}
	path := chatPath
	if c.template == nil {
		path = embeddingsPath
	}
	to, err := c.route.address(c.model, path)
	if err != nil {
		e := c.fail(ReasonBadRequest, "the endpoint's address cannot be read")
		e.Err, e.unsent = err, true
		return nil, e
	}
	w.to = to
	config := openai.DefaultConfig(key)
	config.HTTPClient = w
	api := openai.NewClientWithConfig(config)
	if c.template == nil {
		_, err = api.CreateEmbeddings(attempt, openai.EmbeddingRequestStrings{})
	} else {
		_, err = api.CreateChatCompletion(attempt, openai.ChatCompletionRequest{})
	}
	switch {
	case w.reply != nil:
		c.header = w.reply.header
		return w.reply, nil
	case w.err == nil: // unreachable unless go-openai learns to reject an empty request
		e := c.fail(ReasonBadRequest, "the request was not sent")
		e.Err, e.unsent = err, true
		return nil, e
	}
	return nil, p.failure(ctx, attempt, c, w)
}

// keyOf is the endpoint's key, or an error that names the variable which should hold it.
func keyOf(c *call, getenv func(string) string) (string, *Error) {
	env := c.route.at.KeyEnv
	if env == "" {
		return "", nil
	}
	key := getenv(env)
	if key == "" {
		e := c.fail(ReasonCredentials, "the environment variable "+env+" is empty; it should hold the endpoint's key")
		e.unsent = true
		return "", e
	}
	return key, nil
}

// failure says why no reply came. Once a request is written the endpoint may bill it.
func (p *openaiProvider) failure(ctx, attempt context.Context, c *call, w *wire) *Error {
	reason, detail := ReasonNetwork, w.err.Error()
	switch {
	case ctx.Err() != nil:
		reason = ReasonInterrupted
	case attempt.Err() != nil:
		reason, detail = ReasonTimeout, fmt.Sprintf("no reply within %s", c.route.at.Timeout)
	case errors.Is(w.err, errTooLarge):
		reason = ReasonBadReply
	}
	e := c.fail(reason, mask(detail, w.key))
	e.charged = w.written.Load()
	if reason == ReasonInterrupted {
		e.Err = ctx.Err()
		e.unsent = !e.charged
	}
	return e
}

// Paths below an endpoint's base address.
const (
	chatPath       = "/chat/completions"
	embeddingsPath = "/embeddings"
	modelsPath     = "/models"
)

// Bounds of a reply's body. The largest honest one is a batch of vectors; an answer in words that is
// longer than maxAnswer is none, and every rung of the ladder would read it whole.
const (
	maxReply  = 64 << 20
	maxAnswer = 2 << 20
)

var errTooLarge = errors.New("the reply is too large")

// wire is what go-openai takes for an HTTP client during one call.
type wire struct {
	client  *http.Client
	to      *url.URL
	body    []byte
	key     string
	header  string // that carries the key; empty: as go-openai does
	written atomic.Bool
	reply   *result
	err     error
}

// Do sends our body in place of the one that go-openai made, and keeps what comes back.
func (w *wire) Do(req *http.Request) (*http.Response, error) {
	trace := &httptrace.ClientTrace{WroteRequest: func(i httptrace.WroteRequestInfo) {
		if i.Err == nil {
			w.written.Store(true)
		}
	}}
	req = req.WithContext(httptrace.WithClientTrace(req.Context(), trace))
	req.URL, req.Host = w.to, w.to.Host
	if w.header != "" && w.key != "" {
		req.Header.Del("Authorization")
		req.Header.Set(w.header, w.key)
	}
	req.Body = io.NopCloser(bytes.NewReader(w.body))
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(w.body)), nil }
	req.ContentLength = int64(len(w.body))
	resp, err := w.client.Do(req)
	if err != nil {
		w.err = err
		return nil, err
	}
	defer resp.Body.Close()
	limit := maxReply
	if strings.HasSuffix(w.to.Path, chatPath) {
		limit = maxAnswer
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, int64(limit)+1))
	if err == nil && len(body) > limit {
		err = fmt.Errorf("%w: more than %d MiB", errTooLarge, limit>>20)
	}
	if err != nil {
		w.err = fmt.Errorf("read reply: %w", err)
		return nil, w.err
	}
	w.reply = &result{status: resp.StatusCode, header: maskHeader(resp.Header, w.key), body: []byte(maskBody(string(body), w.key))}
	// go-openai gets an empty object: everything it would decode is decoded from the body we keep.
	return &http.Response{StatusCode: http.StatusOK, Header: resp.Header, Body: io.NopCloser(strings.NewReader("{}"))}, nil
}

// maskHeader is mask for every value of a header.
func maskHeader(h http.Header, key string) http.Header {
	out := h.Clone()
	for _, values := range out {
		for i := range values {
			values[i] = mask(values[i], key)
		}
	}
	return out
}

// maskBody is mask for a body of JSON, in which a key may stand with escapes.
func maskBody(body, key string) string {
	body = mask(body, key)
	if len(key) < 4 || !strings.Contains(body, `\`) {
		return body
	}
	var v any
	if json.Unmarshal([]byte(body), &v) != nil {
		return body
	}
	plain, err := json.Marshal(v)
	if err != nil || !strings.Contains(string(plain), key) {
		return body
	}
	return mask(string(plain), key)
}

// mask removes a key from what a server says, before anything is stored or shown.
func mask(s, key string) string {
	if len(key) < 4 {
		return s
	}
	return strings.ReplaceAll(s, key, "[key]")
}
