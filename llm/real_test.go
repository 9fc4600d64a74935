package llm

import (
	"bytes"
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

// profileOf is the profile that an endpoint of a provider is set up with.
var profileOf = map[string]string{
	"anthropic": "anthropic", "azure": "azure", "deepseek": "deepseek", "gemini": "gemini", "litellm": "litellm",
	"llamacpp": "llama_cpp", "ollama": "ollama", "openai": "openai", "vllm": "vllm",
}

// underProfile sets the stub up as an endpoint of a provider.
func underProfile(provider string, o Options) Options {
	o.Endpoints = map[string]Endpoint{"main": {Profile: profileOf[provider]}}
	return o
}

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
	passed := 0
	for _, line := range strings.Split(strings.TrimSpace(string(index)), "\n")[1:] {
		cols := strings.Split(line, "\t")
		file, provider, kind := cols[0], cols[1], cols[2]
		ok := t.Run(file, func(t *testing.T) {
			b, err := os.ReadFile(filepath.Join(dir, file))
			if err != nil {
				t.Fatal(err)
			}
			var rec recorded
			if err := json.Unmarshal(b, &rec); err != nil {
				t.Fatal(err)
			}
			reply := stubReply{status: rec.Response.Status, body: rec.Response.Body, header: rec.Response.Headers}
			answer := strings.HasPrefix(kind, "error") || strings.HasPrefix(kind, "chat-") || kind == "embeddings"
			var want expected
			if answer {
				if err := json.Unmarshal([]byte(cols[6]), &want); err != nil {
					t.Fatal(err)
				}
			}
			switch {
			case !answer:
				realLook(t, kind, reply, []byte(cols[6]))
			case kind == "embeddings":
				realEmbedding(t, provider, reply, want)
			case strings.HasPrefix(kind, "error"):
				realError(t, file, provider, reply, want)
			default:
				realChat(t, kind, provider, reply, want)
			}
		})
		if ok {
			passed++
		}
	}
	t.Logf("recorded replies: %d passed", passed)
}

func realChat(t *testing.T, kind, provider string, reply stubReply, want expected) {
	s := serve(t, always(reply))
	c := client(t, s, underProfile(provider, Options{}))
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

func realError(t *testing.T, file, provider string, reply stubReply, want expected) {
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
	c := client(t, s, underProfile(provider, Options{Now: clk.now, Sleep: clk.sleep}))
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
	_, err = client(t, serve(t, always(reply)), underProfile(provider, Options{Retries: -1, Now: clk.now})).Complete(t.Context(), q)
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

func realEmbedding(t *testing.T, provider string, reply stubReply, want expected) {
	c := client(t, serve(t, always(reply)), underProfile(provider, Options{}))
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

// looked is what the index says about replies that are no answers: lists and batches.
type looked struct {
	Items     int            `json:"items"`
	First     string         `json:"first_id"`
	ID        string         `json:"id"`
	Purpose   string         `json:"purpose"`
	File      string         `json:"file_status"`
	Bytes     int64          `json:"bytes"`
	State     string         `json:"batch_status"`
	Counts    map[string]int `json:"request_counts"`
	Total     int            `json:"total_requests"`
	Succeeded int            `json:"succeeded_requests"`
	Failed    int            `json:"failed_requests"`
	OutputID  string         `json:"output_file_id"`
	Output    string         `json:"output_file"`
	Outputs   int            `json:"outputs"`
	Usage     map[string]any `json:"usage"`
	States    []string       `json:"statuses"`
	More      bool           `json:"has_more"`
	Lines     int            `json:"jsonl_lines"`
	CustomIDs []string       `json:"custom_ids"`
}

// realLook reads what is no answer to a question: the list of models, files, batch jobs and their output.
func realLook(t *testing.T, kind string, reply stubReply, facts []byte) {
	var want looked
	if err := json.Unmarshal(facts, &want); err != nil {
		t.Fatal(err)
	}
	c := client(t, serve(t, always(reply)), Options{})
	if kind == "models" {
		l, err := c.Models(t.Context(), "main")
		if err != nil || len(l.Models) != want.Items || l.Models[0] != want.First {
			t.Errorf("%d models, %v, want %d from %s on", len(l.Models), err, want.Items, want.First)
		}
		date, _ := time.Parse(time.RFC1123, reply.header["date"])
		if !l.Date.Equal(date) {
			t.Errorf("the endpoint's clock says %s, want %s", l.Date, date)
		}
		return
	}
	res, err := c.get(t.Context(), c.endpoints["main"], "/anything")
	if err != nil || res.status != 200 {
		t.Fatalf("status %d, %v", res.status, err)
	}
	switch kind {
	case "files-upload":
		f, err := ReadBatchFile(res.body)
		if diff := cmp.Diff(BatchFile{want.ID, want.Purpose, want.File, want.Bytes}, f); err != nil || diff != "" {
			t.Errorf("%v (-want +got)\n%s", err, diff)
		}
	case "batch":
		j, err := ReadBatchJob(res.body)
		if err != nil {
			t.Fatal(err)
		}
		total, done, failed := want.Total, want.Succeeded, want.Failed
		if want.Counts != nil {
			total, done, failed = want.Counts["total"], want.Counts["completed"], want.Counts["failed"]
		}
		if j.State != BatchDone || j.Total != total || j.Succeeded != done || j.Failed != failed || j.Output != want.OutputID+want.Output || j.Errors != "" || len(j.Lines) != want.Outputs {
			t.Errorf("got %+v, want %+v", j, want)
		}
		if in, ok := want.Usage["input_tokens"].(float64); ok && j.Usage.Prompt != int(in) {
			t.Errorf("usage %+v, want %v", j.Usage, want.Usage)
		}
		for _, raw := range j.Lines {
			checkAnswered(t, raw)
		}
	case "batch-list":
		jobs, more, err := ReadBatchJobs(res.body)
		if err != nil || len(jobs) != want.Items || more != want.More {
			t.Fatalf("%d jobs, more: %v, %v, want %d", len(jobs), more, err, want.Items)
		}
		for i, j := range jobs {
			if j.State != batchStates[want.States[i]] {
				t.Errorf("job %d is %s, want %s", i, j.State, want.States[i])
			}
		}
	case "batch-output":
		var ids []string
		for l, err := range ReadBatchOutput(bytes.NewReader(res.body), nil) {
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, l.CustomID)
		}
		if diff := cmp.Diff(want.CustomIDs, ids); diff != "" {
			t.Errorf("lines (-want +got)\n%s", diff)
		}
		for raw := range bytes.Lines(res.body) {
			checkAnswered(t, raw)
		}
	default:
		t.Errorf("nothing is known about kind %s", kind)
	}
}

// checkAnswered reads a line of a batch that went well.
func checkAnswered(t *testing.T, raw []byte) {
	t.Helper()
	l, err := ReadBatchLine(raw, nil)
	if err != nil || l.Err != nil || l.Outcome != OutcomeAnswered || l.Text == "" || l.Finish != "stop" || l.Model == "" {
		t.Errorf("line is read as %+v, %v", l, err)
	}
	if l.Usage.Prompt == 0 || l.Usage.Total < l.Usage.Prompt+l.Usage.Completion {
		t.Errorf("usage %+v", l.Usage)
	}
}
