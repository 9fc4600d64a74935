package llm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// facts is what a reply says, before anybody asks whether its text is an answer.
type facts struct {
	text        string  // the message, or the refusal
	outcome     Outcome // "" while the text must be read
	finish      string
	model       string
	fingerprint string
	usage       Usage
	vectors     [][]float32
}

// envelope is a chat reply in all the spellings that servers have for it.
type envelope struct {
	Model       string          `json:"model"`
	Fingerprint *string         `json:"system_fingerprint"`
	Choices     []choice        `json:"choices"`
	Usage       *wireUsage      `json:"usage"`
	Error       json.RawMessage `json:"error"`
	Detail      json.RawMessage `json:"detail"`
	Object      string          `json:"object"`
}

type choice struct {
	Finish      *string         `json:"finish_reason"`
	FinishCamel *string         `json:"finishReason"`
	Message     *wireMessage    `json:"message"`
	Error       json.RawMessage `json:"error"`
}

type wireMessage struct {
	Content json.RawMessage `json:"content"`
	Refusal *string         `json:"refusal"`
}

type wireUsage struct {
	Prompt          float64 `json:"prompt_tokens"`
	Completion      float64 `json:"completion_tokens"`
	Total           float64 `json:"total_tokens"`
	PromptCamel     float64 `json:"promptTokens"`
	CompletionCamel float64 `json:"completionTokens"`
	TotalCamel      float64 `json:"totalTokens"`
	Input           float64 `json:"input_tokens"` // of the responses endpoint and of batches, with Output
	Output          float64 `json:"output_tokens"`
	CachedFlat      float64 `json:"cached_tokens"`
	CachedHit       float64 `json:"prompt_cache_hit_tokens"`
	PromptDetails   *struct {
		Cached float64 `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionDetails *struct {
		Reasoning float64 `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
	InputDetails *struct {
		Cached float64 `json:"cached_tokens"`
	} `json:"input_tokens_details"`
	OutputDetails *struct {
		Reasoning float64 `json:"reasoning_tokens"`
	} `json:"output_tokens_details"`
}

func (w *wireUsage) usage() Usage {
	if w == nil {
		return Usage{}
	}
	u := Usage{
		Prompt:     tokens(w.Prompt, w.PromptCamel, w.Input),
		Completion: tokens(w.Completion, w.CompletionCamel, w.Output),
		Total:      tokens(w.Total, w.TotalCamel),
		Cached:     tokens(w.CachedFlat, w.CachedHit),
	}
	if w.PromptDetails != nil {
		u.Cached = max(u.Cached, tokens(w.PromptDetails.Cached))
	}
	if w.CompletionDetails != nil {
		u.Reasoning = tokens(w.CompletionDetails.Reasoning)
	}
	if w.InputDetails != nil {
		u.Cached = max(u.Cached, tokens(w.InputDetails.Cached))
	}
	if w.OutputDetails != nil {
		u.Reasoning = max(u.Reasoning, tokens(w.OutputDetails.Reasoning))
	}
	u.Cached = min(u.Cached, u.Prompt)
	if u.Total == 0 {
		u.Total = u.Prompt + u.Completion
	}
	return u
}

// tokens is the largest of some counts; a server that counts below zero or beyond reason must not
// turn a sum around.
func tokens(counts ...float64) int { return int(min(max(slices.Max(counts), 0), 1e10)) }

// interpret reads the envelope of a reply: facts, or why there is no reply in it.
func (c *call) interpret(res *result, now time.Time) (facts, *Error) {
	if res.status < 200 || res.status >= 300 {
		return c.failed(res, now)
	}
	var env envelope
	if err := json.Unmarshal(unwrapArray(res.body), &env); err != nil {
		e := c.fail(ReasonBadReply, "the reply is no JSON object: "+glimpse(res.body))
		e.Status, e.Err, e.charged = res.status, err, true
		return facts{}, e
	}
	f := facts{model: env.Model, usage: env.Usage.usage()}
	if env.Fingerprint != nil {
		f.fingerprint = *env.Fingerprint
	}
	if present(env.Error) || env.Object == "error" {
		return c.failed(res, now)
	}
	if c.template == nil {
		return c.embedded(res, f)
	}
	if env.Object == "response" {
		f, err := responded(f, unwrapArray(res.body))
		if err != nil {
			e := c.fail(ReasonBadReply, glimpse(res.body))
			e.Status, e.Err, e.usage, e.charged = res.status, err, f.usage, true
			return facts{}, e
		}
		return f, nil
	}
	if len(env.Choices) == 0 {
		if present(env.Detail) {
			return c.failed(res, now)
		}
		e := c.fail(ReasonBadReply, "the reply has no choices: "+glimpse(res.body))
		e.Status, e.usage, e.charged = res.status, f.usage, true
		return facts{}, e
	}
	first := env.Choices[0]
	if present(first.Error) && first.Message == nil {
		return c.failed(&result{status: res.status, header: res.header, body: encode(map[string]json.RawMessage{"error": first.Error})}, now)
	}
	return chosen(f, first), nil
}

func (c *call) embedded(res *result, f facts) (facts, *Error) {
	var err error
	if f.vectors, err = readVectors(res.body, len(c.texts)); err != nil {
		e := c.fail(ReasonBadReply, glimpse(res.body))
		e.Status, e.Err, e.usage, e.charged = res.status, err, f.usage, true
		return facts{}, e
	}
	f.outcome = OutcomeAnswered
	return f, nil
}

// chosen reads a choice. Refusals, filters and reached bounds are outcomes whatever the text says.
func chosen(f facts, first choice) facts {
	for _, s := range []*string{first.Finish, first.FinishCamel} {
		if s != nil {
			f.finish = *s
		}
	}
	refusal := ""
	if first.Message != nil {
		f.text, refusal = content(first.Message.Content)
		if first.Message.Refusal != nil && *first.Message.Refusal != "" {
			refusal = *first.Message.Refusal
		}
	}
	switch finish := strings.ToLower(f.finish); {
	case refusal != "" || finish == "refusal":
		f.outcome = OutcomeRefused
		if refusal != "" {
			f.text = refusal
		}
	case filters[finish]:
		f.outcome = OutcomeFiltered
	case finish == "length" || finish == "max_tokens" || finish == "model_length":
		f.outcome = OutcomeTruncated
	}
	return f
}

// responded reads a reply of the responses endpoint, which batches can be made of, as a choice. Of what
// it puts out only messages are text.
func responded(f facts, body []byte) (facts, error) {
	var reply struct {
		Output []struct {
			Type    string          `json:"type"`
			Content json.RawMessage `json:"content"`
		} `json:"output"`
		Incomplete *struct {
			Reason string `json:"reason"`
		} `json:"incomplete_details"`
	}
	if err := json.Unmarshal(body, &reply); err != nil {
		return f, err
	}
	text, refusal := "", ""
	for _, o := range reply.Output {
		if o.Type == "message" {
			said, refused := content(o.Content)
			text, refusal = text+said, refusal+refused
		}
	}
	finish := "stop"
	if reply.Incomplete != nil {
		if finish = reply.Incomplete.Reason; finish == "max_output_tokens" {
			finish = "length"
		}
	}
	return chosen(f, choice{Finish: &finish, Message: &wireMessage{Content: encode(text), Refusal: &refusal}}), nil
}

// filters are the finish reasons, in lower case, of an answer that was withheld.
var filters = map[string]bool{
	"content_filter": true, "safety": true, "prohibited_content": true, "blocklist": true, "recitation": true, "spii": true,
}

// content is the text of a message, which may be a string, null, or a list of parts. Parts of
// thinking are not the answer.
func content(raw json.RawMessage) (text, refusal string) {
	if json.Unmarshal(raw, &text) == nil {
		return text, ""
	}
	var parts []struct {
		Type    string `json:"type"`
		Text    string `json:"text"`
		Refusal string `json:"refusal"`
	}
	if json.Unmarshal(raw, &parts) != nil {
		return "", ""
	}
	for _, p := range parts {
		switch p.Type {
		case "text", "output_text", "":
			text += p.Text
		case "refusal":
			refusal += p.Refusal
		}
	}
	return text, refusal
}

// wireError is an error in any of its envelopes, flattened.
type wireError struct {
	message, kind, code string
	inner               string // Azure's innererror.code
	status              int    // a status inside the envelope, which beats a 200 around it
	flagged             bool   // a router's moderation withheld the prompt
}

// failed turns an error reply into facts, when a filter is what it tells, or into an Error.
func (c *call) failed(res *result, now time.Time) (facts, *Error) {
	w := readError(res.body)
	status := res.status
	if status < 300 && w.status >= 400 {
		status = w.status
	}
	if w.filtered() {
		return facts{outcome: OutcomeFiltered, text: w.message, finish: "content_filter"}, nil
	}
	e := c.fail(w.reason(status), w.describe(res.body))
	if to := res.header.Get("Location"); to != "" && status >= 300 && status < 400 {
		e.Detail = cut("the endpoint moved to " + to + "; set its base address")
	}
	e.Status = res.status
	if e.Reason == ReasonCredentials {
		e.Detail += c.whoseKey()
	}
	if reasons[e.Reason].again {
		e.Wait = waitAsked(res.header, res.body, now)
	}
	return facts{}, e
}

// whoseKey says where a key that was refused came from.
func (c *call) whoseKey() string {
	if env := c.route.at.KeyEnv; env != "" {
		return " (the key is that of the environment variable " + env + ")"
	}
	return " (no key was sent: the endpoint names no key_env)"
}

func readError(body []byte) wireError {
	var w wireError
	var top map[string]json.RawMessage
	if json.Unmarshal(unwrapArray(body), &top) != nil {
		return w
	}
	w.read(top)
	inside := unwrapArray(top["error"])
	var fields map[string]json.RawMessage
	switch {
	case json.Unmarshal(inside, &w.message) == nil && w.message != "":
	case json.Unmarshal(inside, &fields) == nil && fields != nil:
		w.read(fields)
	}
	if w.message == "" && present(top["detail"]) {
		if json.Unmarshal(top["detail"], &w.message) != nil {
			w.message = glimpse(top["detail"])
		}
	}
	return w
}

// read takes what an error object says. Codes are texts or numbers.
func (w *wireError) read(fields map[string]json.RawMessage) {
	for name, to := range map[string]*string{"message": &w.message, "type": &w.kind, "code": &w.code} {
		if s := scalar(fields[name]); s != "" {
			*to = s
		}
	}
	for _, name := range []string{"status", "code"} {
		var n int
		if json.Unmarshal(fields[name], &n) == nil && n >= 400 && n < 600 {
			w.status = n
		}
	}
	var inner struct {
		Code string `json:"code"`
	}
	if json.Unmarshal(fields["innererror"], &inner) == nil && inner.Code != "" {
		w.inner = inner.Code
	}
	var meta struct {
		Reasons []json.RawMessage `json:"reasons"`
		Flagged *string           `json:"flagged_input"`
	}
	if json.Unmarshal(fields["metadata"], &meta) == nil {
		w.flagged = len(meta.Reasons) > 0 || meta.Flagged != nil
	}
}

func scalar(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var n json.Number
	if json.Unmarshal(raw, &n) == nil {
		return n.String()
	}
	return ""
}

// filtered reports whether the prompt was withheld from the model, which is an outcome.
func (w wireError) filtered() bool {
	return w.code == "content_filter" || w.code == "content_policy_violation" || w.inner == "ResponsibleAIPolicyViolation" || w.flagged
}

var (
	tooLong = regexp.MustCompile(`(?i)maximum context length|max context length|context window|context size|prompt (?:is )?too long|input is too long|exceeds? the (?:model'?s )?(?:available )?context|reduce the length of the (?:messages|prompt|input)`)
	badKey  = regexp.MustCompile(`(?i)(?:incorrect|invalid|missing|wrong) api[ _-]?key|api[ _-]?key (?:is )?(?:not valid|invalid|incorrect|expired|missing)`)
)

// quotas are the codes and types of an account without money. Google says "quota" of limits that
// pass, so messages do not count.
var quotas = map[string]bool{
	"insufficient_quota": true, "billing_hard_limit_reached": true, "billing_not_active": true, "insufficient_balance": true,
}

// reason finds out what kind of failure an error reply is.
func (w wireError) reason(status int) string {
	switch {
	case quotas[w.code] || quotas[w.kind] || status == http.StatusPaymentRequired:
		return ReasonQuota
	case status == http.StatusUnauthorized || status == http.StatusForbidden || w.code == "invalid_api_key":
		return ReasonCredentials
	case status != http.StatusTooManyRequests && (w.code == "context_length_exceeded" || w.kind == "exceed_context_size_error" || tooLong.MatchString(w.message)):
		return ReasonContext
	case status < 500 && status != http.StatusTooManyRequests && badKey.MatchString(w.message):
		return ReasonCredentials
	case status == http.StatusTooManyRequests, status == http.StatusRequestTimeout, status == http.StatusConflict, status == http.StatusTooEarly:
		return ReasonRateLimit
	case status >= 500:
		return ReasonServer
	case status < 300:
		return ReasonBadReply
	}
	return ReasonRejected
}

func (w wireError) describe(body []byte) string {
	text := w.message
	if text == "" {
		text = glimpse(body)
	}
	if w.code != "" && w.code != strconv.Itoa(w.status) && !strings.Contains(text, w.code) {
		text = w.code + ": " + text
	}
	return cut(text)
}

// glimpse is the beginning of a body, on one line.
func glimpse(body []byte) string {
	return cut(strings.Join(strings.Fields(string(body[:min(len(body), 2000)])), " "))
}

func cut(s string) string {
	const most = 400
	if len(s) <= most {
		return s
	}
	return fmt.Sprintf("%s... (%d bytes)", strings.ToValidUTF8(s[:most], ""), len(s))
}

// unwrapArray takes an object out of the one-element array that some servers put it in.
func unwrapArray(body []byte) []byte {
	body = bytes.TrimSpace(body)
	if len(body) == 0 || body[0] != '[' {
		return body
	}
	var list []json.RawMessage
	if json.Unmarshal(body, &list) != nil || len(list) == 0 {
		return body
	}
	return list[0]
}

// present reports whether a JSON value says anything.
func present(raw json.RawMessage) bool {
	raw = bytes.TrimSpace(raw)
	return len(raw) > 0 && !bytes.Equal(raw, []byte("null"))
}
