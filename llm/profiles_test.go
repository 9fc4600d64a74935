package llm

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestProfilesAreSortedAndTold(t *testing.T) {
	if !slices.IsSortedFunc(Profiles, func(a, b Profile) int { return strings.Compare(a.Name, b.Name) }) {
		t.Error("the profiles are not sorted by name")
	}
	for _, p := range Profiles {
		if p.Doc == "" || p.Reference == "" || (p.Proven != "captured" && p.Proven != "documented" && p.Proven != "unproven") {
			t.Errorf("%s does not say what it is, where from, or how proven", p.Name)
		}
	}
}

// What each profile sends for the same request. Each row stands for the endpoint's own documentation.
func TestProfileRequests(t *testing.T) {
	for _, tt := range []struct {
		profile, model string
		tokens         string
		temperature    any // as sent, nil for not at all
		seed           bool
		format         string // response_format.type, "" for none
	}{
		{"anthropic", "claude-haiku-4-5", MaxTokensField, 1.0, false, ""},
		{"azure", "my-deployment", MaxCompletionTokensField, 1.5, true, "json_schema"},
		{"azure", "gpt-5-nano", MaxCompletionTokensField, nil, true, "json_schema"},
		{"deepseek", "deepseek-chat", MaxTokensField, 1.5, false, "json_object"},
		{"gemini", "gemini-2.5-flash", MaxTokensField, 1.5, false, "json_schema"},
		{"generic", "anything", MaxTokensField, 1.5, true, "json_schema"},
		{"litellm", "gpt-4o", MaxTokensField, 1.5, true, "json_schema"},
		{"llama_cpp", "any.gguf", MaxTokensField, 1.5, true, "json_schema"},
		{"ollama", "qwen3", MaxTokensField, 1.5, true, "json_schema"},
		{"openai", "gpt-4o-mini", MaxCompletionTokensField, 1.5, true, "json_schema"},
		{"openai", "gpt-5-nano", MaxCompletionTokensField, nil, true, "json_schema"},
		{"openai", "gpt-5-chat-latest", MaxCompletionTokensField, 1.5, true, "json_schema"},
		{"vllm", "meta-llama/Llama-3.2-1B-Instruct", MaxTokensField, 1.5, true, "json_schema"},
	} {
		t.Run(tt.profile+" "+tt.model, func(t *testing.T) {
			s := serve(t, always(chat(`{"label":"supporting","why":"x"}`)))
			c := client(t, s, Options{Endpoints: map[string]Endpoint{"main": {Profile: tt.profile}}})
			q := ask(1)
			q.Model, q.Temperature, q.Seed = tt.model, ptr(1.5), ptr(7)
			if r := complete(t, c, q); r.Outcome != OutcomeAnswered {
				t.Fatalf("outcome %s", r.Outcome)
			}
			sent := s.sent(t, 1)
			other := MaxTokensField
			if tt.tokens == MaxTokensField {
				other = MaxCompletionTokensField
			}
			if sent[tt.tokens] != 512.0 || sent[other] != nil {
				t.Errorf("bounds %v and %v, want %s alone", sent[MaxTokensField], sent[MaxCompletionTokensField], tt.tokens)
			}
			if diff := cmp.Diff(tt.temperature, sent["temperature"]); diff != "" {
				t.Errorf("temperature (-want +got)\n%s", diff)
			}
			if rec := records(t, c)[0]; (rec.Params.Temperature == nil) != (tt.temperature == nil) || (rec.Params.Temperature != nil && *rec.Params.Temperature != tt.temperature) {
				t.Errorf("the record has temperature %v", rec.Params.Temperature)
			}
			if (sent["seed"] != nil) != tt.seed {
				t.Errorf("seed %v, want it sent: %v", sent["seed"], tt.seed)
			}
			format, _ := sent["response_format"].(map[string]any)
			if got, _ := format["type"].(string); got != tt.format {
				t.Errorf("response_format %v, want %q", format, tt.format)
			}
			for key := range sent {
				if strings.HasPrefix(key, "guided") || key == "structured_outputs" {
					t.Errorf("the request has %s", key)
				}
			}
			told := strings.Contains(encodeText(sent["messages"]), "JSON schema")
			if told == (tt.format == "json_schema") {
				t.Errorf("the schema stands in the prompt: %v, with response_format %q", told, tt.format)
			}
			// Services with json_object alone refuse a prompt without the word.
			if tt.format == "json_object" && !strings.Contains(encodeText(sent["messages"]), "json") {
				t.Error("the prompt lacks the word json")
			}
		})
	}
}

// The settings of an endpoint win over its profile, and nonsense is refused.
func TestEndpointOverridesProfile(t *testing.T) {
	s := serve(t, always(chat(`{"label":"supporting","why":"x"}`)))
	c := client(t, s, Options{Endpoints: map[string]Endpoint{"main": {Profile: "azure", TokenField: MaxTokensField, Schema: SchemaObject}}})
	complete(t, c, ask(1))
	sent := s.sent(t, 1)
	if sent[MaxTokensField] == nil || sent[MaxCompletionTokensField] != nil || encodeText(sent["response_format"]) != `{"type":"json_object"}` {
		t.Errorf("sent %s", encodeText(sent))
	}
	for _, at := range []Endpoint{{TokenField: "limit"}, {Schema: "grammar"}, {Profile: "nobody"}} {
		at.Provider, at.BaseURL = ProviderOpenAI, s.URL
		if _, err := New(Options{Store: memory(t), Endpoints: map[string]Endpoint{"main": at}}); err == nil {
			t.Errorf("%+v was taken", at)
		}
	}
}

func TestAddressesAndKeys(t *testing.T) {
	const key = "key-0123456789"
	for _, tt := range []struct {
		profile, base, model string
		chat, models         string
		header, value        string
	}{
		{"generic", "/v1", "m", "/v1/chat/completions", "/v1/models", "Authorization", "Bearer " + key},
		{"generic", "/v1/", "m", "/v1/chat/completions", "/v1/models", "Authorization", "Bearer " + key},
		{"generic", "/v1?route=a", "m", "/v1/chat/completions?route=a", "/v1/models?route=a", "Authorization", "Bearer " + key},
		{"azure", "/openai/v1", "dep", "/openai/v1/chat/completions", "/openai/v1/models", "Api-Key", key},
		{"azure", "/openai/v1/", "dep", "/openai/v1/chat/completions", "/openai/v1/models", "Api-Key", key},
		{"azure", "", "dep", "/openai/v1/chat/completions", "/openai/v1/models", "Api-Key", key},
		{"azure", "?api-version=2024-10-21", "dep", "/openai/deployments/dep/chat/completions?api-version=2024-10-21", "/openai/models?api-version=2024-10-21", "Api-Key", key},
		{"azure", "/openai?api-version=2024-10-21", "dep 1", "/openai/deployments/dep%201/chat/completions?api-version=2024-10-21", "/openai/models?api-version=2024-10-21", "Api-Key", key},
		{"azure", "/openai/deployments/other?api-version=1", "dep", "/openai/deployments/other/chat/completions?api-version=1", "/openai/deployments/other/models?api-version=1", "Api-Key", key},
		{"azure", "/models?api-version=2024-05-01-preview", "grok", "/models/chat/completions?api-version=2024-05-01-preview", "/models/models?api-version=2024-05-01-preview", "Api-Key", key},
	} {
		t.Run(tt.profile+" "+tt.base, func(t *testing.T) {
			var asked []string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked = append(asked, r.Method+" "+r.URL.RequestURI())
				for _, h := range []string{"Authorization", "Api-Key"} {
					want := ""
					if h == tt.header {
						want = tt.value
					}
					if got := r.Header.Get(h); got != want {
						t.Errorf("%s: %q, want %q", h, got, want)
					}
				}
				if r.Method == http.MethodGet {
					io.WriteString(w, `{"data":[{"id":"m"}]}`)
					return
				}
				io.WriteString(w, chat(`{"label":"supporting","why":"x"}`).body)
			}))
			defer server.Close()
			c, err := New(Options{Store: memory(t), Getenv: func(string) string { return key }, Endpoints: map[string]Endpoint{
				"main": {Provider: ProviderOpenAI, BaseURL: server.URL + tt.base, KeyEnv: "KEY", Profile: tt.profile},
			}})
			if err != nil {
				t.Fatal(err)
			}
			q := ask(1)
			q.Model = tt.model
			complete(t, c, q)
			if _, err := c.Models(t.Context(), "main"); err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff([]string{"POST " + tt.chat, "GET " + tt.models}, asked); diff != "" {
				t.Errorf("asked (-want +got)\n%s", diff)
			}
		})
	}
}

// An empty answer under json_object is repaired once, and never sent back as an empty message.
func TestEmptyObjectIsRepaired(t *testing.T) {
	s := serve(t, inTurn(chat(""), chat(`{"label":"misleading","why":"y"}`)))
	c := client(t, s, Options{Endpoints: map[string]Endpoint{"main": {Profile: "deepseek"}}})
	r := complete(t, c, ask(1))
	if r.Outcome != OutcomeAnswered || r.Parse != ParseRepaired || s.requests() != 2 {
		t.Fatalf("got %+v after %d requests", r, s.requests())
	}
	for _, m := range s.sent(t, 2)["messages"].([]any) {
		if m.(map[string]any)["content"] == "" {
			t.Error("an empty message was sent")
		}
	}
}

func TestModels(t *testing.T) {
	for _, tt := range []struct {
		name  string
		reply stubReply
		want  []string
		fails string // reason; "-" for an error without one
	}{
		{"list", failing(200, `{"object":"list","data":[{"id":"b"},{"id":"a"}]}`), []string{"b", "a"}, ""},
		{"names", failing(200, `{"models":[{"name":"qwen3:latest"}]}`), []string{"qwen3:latest"}, ""},
		{"empty", failing(200, `{"data":[]}`), []string{}, ""},
		{"no list", failing(200, `{"hello":1}`), nil, "-"},
		{"no JSON", failing(200, `<html>`), nil, "-"},
		{"bad key", failing(401, `{"error":{"code":"invalid_api_key"}}`), nil, ReasonCredentials},
		{"not there", failing(404, `{"detail":"Not Found"}`), nil, ReasonRejected},
	} {
		l, err := client(t, serve(t, always(tt.reply)), Options{}).Models(t.Context(), "main")
		if diff := cmp.Diff(tt.want, l.Models); diff != "" {
			t.Errorf("%s (-want +got)\n%s", tt.name, diff)
		}
		reason := ""
		if e := (*Error)(nil); errors.As(err, &e) {
			reason = e.Reason
		} else if err != nil {
			reason = "-"
		}
		if reason != tt.fails {
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.fails)
		}
	}
	c := client(t, nil, Options{})
	if l, err := c.Models(t.Context(), "inside"); err != nil || len(l.Models) != 1 {
		t.Errorf("builtin: %v, %v", l, err)
	}
	for _, name := range []string{"main", "nowhere"} {
		if _, err := c.Models(t.Context(), name); err == nil {
			t.Errorf("%s answered", name)
		}
	}
	if _, err := client(t, serve(t, always(chat(""))), Options{Replay: true}).Models(t.Context(), "main"); err == nil {
		t.Error("replay asked the network")
	}
}

func TestReadBatchLine(t *testing.T) {
	chatLine := func(body string) string {
		return `{"id":"x","custom_id":"k","response":{"status_code":200,"body":` + body + `},"error":null}`
	}
	for _, tt := range []struct {
		name, line string
		outcome    Outcome
		text       string
		reason     string // of the error
		again      bool
	}{
		{"answer", chatLine(chat(`{"label":"supporting","why":"x"}`).body), OutcomeAnswered, `{"label":"supporting","why":"x"}`, "", false},
		{"no answer", chatLine(chat("well, hmm").body), OutcomeParseFailed, "well, hmm", "", false},
		{"cut", chatLine(finished(`{"lab`, "length", 9, 9).body), OutcomeTruncated, `{"lab`, "", false},
		{"filtered", `{"custom_id":"k","response":{"status_code":400,"body":{"error":{"code":"content_filter","message":"no"}}},"error":null}`, OutcomeFiltered, "no", "", false},
		{"responses refusal", chatLine(`{"object":"response","status":"completed","output":[{"type":"message","content":[{"type":"refusal","refusal":"I will not"}]}]}`), OutcomeRefused, "I will not", "", false},
		{"responses cut", chatLine(`{"object":"response","status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[{"type":"message","content":[{"type":"output_text","text":"{"}]}]}`), OutcomeTruncated, "{", "", false},
		{"responses filter", chatLine(`{"object":"response","status":"incomplete","incomplete_details":{"reason":"content_filter"},"output":[]}`), OutcomeFiltered, "", "", false},
		{"responses error", chatLine(`{"object":"response","status":"failed","error":{"code":"server_error","message":"oops"},"output":[]}`), "", "", ReasonBadReply, true},
		{"rate limit", `{"custom_id":"k","response":{"status_code":429,"body":{"error":{"code":"rate_limit_exceeded"}}},"error":null}`, "", "", ReasonRateLimit, true},
		{"too long", `{"custom_id":"k","response":{"status_code":400,"body":{"error":{"code":"context_length_exceeded"}}},"error":null}`, "", "", ReasonContext, false},
		{"expired", `{"custom_id":"k","response":null,"error":{"code":"batch_expired","message":"too late"}}`, "", "", ReasonTimeout, true},
		{"rejected", `{"custom_id":"k","response":null,"error":{"code":"invalid_request","message":"no such model"}}`, "", "", ReasonRejected, false},
	} {
		l, err := ReadBatchLine([]byte(tt.line), exam())
		if err != nil || l.CustomID != "k" || l.Outcome != tt.outcome || l.Text != tt.text {
			t.Errorf("%s: got %+v, %v", tt.name, l, err)
			continue
		}
		reason, again := "", false
		if l.Err != nil {
			reason, again = l.Err.Reason, l.Err.FailureClass() == "transient"
		}
		if reason != tt.reason || again != tt.again {
			t.Errorf("%s: error %v, want %s, asked again: %v", tt.name, l.Err, tt.reason, tt.again)
		}
		if (l.JSON != nil) != (tt.outcome == OutcomeAnswered) {
			t.Errorf("%s: JSON %s", tt.name, l.JSON)
		}
	}
	for _, line := range []string{`{`, `{}`, `{"response":{}}`, `[]`} {
		if l, err := ReadBatchLine([]byte(line), nil); err == nil {
			t.Errorf("%s was read as %+v", line, l)
		}
	}
}

// A broken line names its number, and the lines after it are read.
func TestReadBatchOutputGoesOn(t *testing.T) {
	good := `{"custom_id":"a","response":{"status_code":200,"body":` + chat("fine").body + `}}`
	var got []string
	for l, err := range ReadBatchOutput(strings.NewReader(good+"\n\n{broken\n"+strings.Replace(good, `"a"`, `"b"`, 1)), nil) {
		if err != nil {
			got = append(got, err.Error()[:7])
			continue
		}
		got = append(got, l.CustomID)
	}
	if diff := cmp.Diff([]string{"a", "line 3:", "b"}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestReadBatchJob(t *testing.T) {
	for state, want := range batchStates {
		j, err := ReadBatchJob([]byte(`{"id":"b","status":` + string(encode(strings.ToUpper(state))) + `,"error_file_id":"e"}`))
		if err != nil || j.State != want || j.Errors != "e" || j.State.Ended() != (want != BatchWaiting && want != BatchRunning) {
			t.Errorf("%s: got %+v, %v", state, j, err)
		}
	}
	for _, body := range []string{`{"id":"b","status":"resting"}`, `{"status":"completed"}`, `x`, `{"error":{"message":"no"}}`} {
		if j, err := ReadBatchJob([]byte(body)); err == nil {
			t.Errorf("%s was read as %+v", body, j)
		}
	}
	if f, err := ReadBatchFile([]byte(`{"error":{"message":"no"}}`)); err == nil {
		t.Errorf("an error was read as %+v", f)
	}
}
