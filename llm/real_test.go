package llm

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// recorded is one file of recorded replies; only what a client sees of it.
type recorded struct {
	Response struct {
		Status  int               `json:"status"`
		Headers map[string]string `json:"headers"`
		Body    string            `json:"body"`
	} `json:"response"`
}

// expected is what the index of the recorded replies says about one.
type expected struct {
	Status       int             `json:"status"`
	Model        string          `json:"model"`
	Choices      int             `json:"choices"`
	Finish       string          `json:"finish_reason"`
	FinishCamel  string          `json:"finishReason"`
	Starts       *string         `json:"content_starts"`
	Length       int             `json:"content_len"`
	Parts        []string        `json:"content_parts"`
	Refusal      string          `json:"refusal"`
	Usage        map[string]int  `json:"usage"`
	Error        map[string]any  `json:"error"`
	ErrorText    string          `json:"error_text"`
	BodyStarts   string          `json:"body_starts"`
	Dim          int             `json:"dim"`
	First        float64         `json:"first"`
	Items        int             `json:"items"`
	ContentPlain json.RawMessage `json:"content"`
}

// later are the kinds of recorded replies that belong to parts of the program that do not exist yet.
var later = map[string]bool{"batch": true, "batch-list": true, "batch-output": true, "files-upload": true, "models": true}

// realErrors says what each recorded error must become, and how long the server wants to be left alone.
var realErrors = map[string]struct {
	reason string // "" for an outcome of filtered
	wait   time.Duration
}{
	"anthropic/native-err-400-prompt-too-long.json": {ReasonContext, 0},
	"azure/chat-200-error-body.json":                {"", 0},
	"azure/err-400-content-filter.json":             {"", 0},
	"azure/err-401.json":                            {ReasonCredentials, 0},
	"azure/err-404-deployment.json":                 {ReasonRejected, 0},
	"azure/err-429-retry-after.json":                {ReasonRateLimit, time.Second},
	"deepseek/err-400-context.json":                 {ReasonContext, 0},
	"gateway/err-429-html-retry-after.json":         {ReasonRateLimit, 4 * time.Second},
	"gemini/native-err-429-quota.json":              {ReasonRateLimit, 48 * time.Second},
	"groq/err-400-tool-use-failed.json":             {ReasonRejected, 0},
	"mistral/err-401.json":                          {ReasonCredentials, 0},
	"ollama/v1-err-400-context.json":                {ReasonContext, 0},
	"openai/err-400-context-length.json":            {ReasonContext, 0},
	"openai/err-400-invalid-json-schema.json":       {ReasonRejected, 0},
	"openai/err-400-max-tokens-unsupported.json":    {ReasonRejected, 0},
	"openai/err-401.json":                           {ReasonCredentials, 0},
	"openai/err-404-chat-model.json":                {ReasonRejected, 0},
	"openai/err-429-insufficient-quota.json":        {ReasonQuota, 0},
	"openai/err-500-server-error.json":              {ReasonServer, 0},
	"openrouter/err-429-ratelimit-headers.json":     {ReasonRateLimit, 30 * time.Second},
	"together/err-401.json":                         {ReasonCredentials, 0},
	"xai/err-400-bad-key.json":                      {ReasonCredentials, 0},
}

// Every recorded reply comes out as its index says: outcome, text, usage, and whether to try again.
func TestRealReplies(t *testing.T) {
	real := os.Getenv("ASSAY_REAL")
	if real == "" {
		t.Skip("skipped: ASSAY_REAL is not set")
	}
	dir := filepath.Join(real, "llm")
	index, err := os.ReadFile(filepath.Join(dir, "INDEX.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	passed, skipped := 0, 0
	for _, line := range strings.Split(strings.TrimSpace(string(index)), "\n")[1:] {
		cols := strings.Split(line, "\t")
		file, kind := cols[0], cols[2]
		if later[kind] {
			skipped++
			continue
		}
		ok := t.Run(file, func(t *testing.T) {
			var want expected
			if err := json.Unmarshal([]byte(cols[6]), &want); err != nil {
				t.Fatal(err)
			}
			b, err := os.ReadFile(filepath.Join(dir, file))
			if err != nil {
				t.Fatal(err)
			}
			var rec recorded
			if err := json.Unmarshal(b, &rec); err != nil {
				t.Fatal(err)
			}
			reply := stubReply{status: rec.Response.Status, body: rec.Response.Body, header: rec.Response.Headers}
			switch {
			case kind == "embeddings":
				realEmbedding(t, reply, want)
			case strings.HasPrefix(kind, "error"):
				realError(t, file, reply, want)
			case strings.HasPrefix(kind, "chat-"):
				realChat(t, kind, reply, want)
			default:
				t.Errorf("nothing is known about kind %s", kind)
			}
		})
		if ok {
			passed++
		}
	}
	t.Logf("recorded replies: %d passed, %d of later parts skipped", passed, skipped)
}

func realChat(t *testing.T, kind string, reply stubReply, want expected) {
	s := serve(t, always(reply))
	c := client(t, s, Options{})
	q := ask(1)
	q.Template = &Template{Name: "free", User: "Say something."}
	r := complete(t, c, q)
	rec, ok, err := c.Record(r.Call)
	if err != nil || !ok {
		t.Fatalf("no record: %v", err)
	}
	outcome, calls := OutcomeAnswered, 1
	switch {
	case want.Finish == "content_filter":
		outcome = OutcomeFiltered
	case want.Refusal != "":
		outcome = OutcomeRefused
	case want.Finish == "length":
		outcome, calls = OutcomeTruncated, 2
	case want.Starts == nil && want.Parts == nil:
		outcome = OutcomeParseFailed
	}
	if r.Outcome != outcome || s.requests() != calls || len(r.Calls) != calls {
		t.Errorf("outcome %s after %d requests, want %s after %d", r.Outcome, s.requests(), outcome, calls)
	}
	if want.Starts != nil && (!strings.HasPrefix(r.Raw, *want.Starts) || utf8.RuneCountInString(r.Raw) != want.Length) {
		t.Errorf("text of %d characters %.60q, want %d: %q", utf8.RuneCountInString(r.Raw), r.Raw, want.Length, *want.Starts)
	}
	if want.Parts != nil && r.Raw != "144" {
		t.Errorf("text %q, want the text part alone", r.Raw)
	}
	if want.Refusal != "" && r.Raw != want.Refusal {
		t.Errorf("refusal %q, want %q", r.Raw, want.Refusal)
	}
	if strings.Contains(r.Text, "<think>") {
		t.Errorf("thoughts are taken for the answer: %q", r.Text)
	}
	finish := want.Finish
	if want.FinishCamel != "" {
		finish = want.FinishCamel
	}
	if rec.Returned != want.Model || rec.Finish != finish || rec.Estimated {
		t.Errorf("model %q, finish %q, want %q, %q", rec.Returned, rec.Finish, want.Model, finish)
	}
	usage := Usage{
		Prompt: want.Usage["prompt_tokens"] + want.Usage["promptTokens"], Completion: want.Usage["completion_tokens"] + want.Usage["completionTokens"],
		Total: want.Usage["total_tokens"] + want.Usage["totalTokens"], Reasoning: want.Usage["reasoning_tokens"],
	}
	if diff := cmp.Diff(usage, rec.Usage); diff != "" {
		t.Errorf("usage (-want +got)\n%s", diff)
	}
	if outcome == OutcomeAnswered && strings.HasPrefix(kind, "chat-json") {
		q.Template = &Template{Name: "object", User: "Say something.", Schema: json.RawMessage(`{"type":"object"}`)}
		if r := complete(t, c, q); r.Parse != ParseStrict || !json.Valid(r.JSON) {
			t.Errorf("read by %s as %s", r.Parse, r.JSON)
		}
	}
}

func realError(t *testing.T, file string, reply stubReply, want expected) {
	is, ok := realErrors[file]
	if !ok {
		t.Fatal("nobody said what it must become")
	}
	if reply.status != want.Status {
		t.Errorf("the file has status %d, its index %d", reply.status, want.Status)
	}
	clk := newClock()
	clk.t = time.UnixMilli(1754667660000).Add(-30 * time.Second) // the router's reset is a point in time
	s := serve(t, inTurn(reply, chat("fine")))
	c := client(t, s, Options{Now: clk.now, Sleep: clk.sleep})
	q := ask(1)
	q.Template = &Template{Name: "free", User: "Say something."}
	again := reasons[is.reason].again
	r, err := c.Complete(t.Context(), q)
	if is.reason == "" || again {
		want := map[bool]Outcome{true: OutcomeAnswered, false: OutcomeFiltered}[again]
		if err != nil || r.Outcome != want || s.requests() != map[bool]int{true: 2, false: 1}[again] {
			t.Fatalf("got %s, %v after %d requests, want %s", r.Outcome, err, s.requests(), want)
		}
	}
	if len(clk.slept) > 0 && (clk.slept[0] < is.wait || clk.slept[0] > is.wait+firstBackoff) {
		t.Errorf("waited %s, want %s", clk.slept[0], is.wait)
	}
	if is.reason == "" {
		return
	}
	clk.t = time.UnixMilli(1754667660000).Add(-30 * time.Second)
	_, err = client(t, serve(t, always(reply)), Options{Retries: -1, Now: clk.now}).Complete(t.Context(), q)
	var e *Error
	if !errors.As(err, &e) || e.Reason != is.reason || e.Status != want.Status || e.Wait != is.wait {
		t.Fatalf("got %v, wait %s, want %s and %s", err, e.Wait, is.reason, is.wait)
	}
	message, _ := want.Error["message"].(string)
	for _, text := range []string{message, want.ErrorText} {
		if !strings.Contains(e.Detail, text) {
			t.Errorf("the error says %q, want %q in it", e.Detail, text)
		}
	}
}

func realEmbedding(t *testing.T, reply stubReply, want expected) {
	c := client(t, serve(t, always(reply)), Options{})
	v, err := c.Embed(t.Context(), EmbedRequest{Endpoint: "main", Model: "e", Texts: []string{"x"}})
	if err != nil || len(v) != want.Items || len(v[0]) != want.Dim {
		t.Fatalf("%d vectors, %v, want %d of length %d", len(v), err, want.Items, want.Dim)
	}
	if want.First != 0 && math.Abs(float64(v[0][0])-want.First) > 1e-6 {
		t.Errorf("first value %g, want %g", v[0][0], want.First)
	}
	rec := records(t, c)[0]
	if rec.Returned != want.Model || rec.Usage.Prompt != want.Usage["prompt_tokens"] || rec.Usage.Total != want.Usage["total_tokens"] {
		t.Errorf("record %+v, want model %s, usage %v", rec, want.Model, want.Usage)
	}
}
