package llm

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// rejecting is a server that refuses a request while a word stands in it.
func rejecting(word, message string, then stubReply) func(int, string) stubReply {
	return func(_ int, body string) stubReply {
		if strings.Contains(body, word) {
			return failing(400, `{"error":{"message":`+string(encode(message))+`,"type":"invalid_request_error","code":"unsupported_parameter"}}`)
		}
		return then
	}
}

func TestProbe(t *testing.T) {
	fits := chat(`{"zone":"north","name":"Hollin"}`)
	prose := chat("Hollin lies in the north, by the river.")
	for _, tt := range []struct {
		name   string
		at     Endpoint
		answer func(int, string) stubReply
		want   Canary
		asked  int
		change string
		text   string
	}{
		{"constrains", Endpoint{}, always(fits),
			Canary{Schema: SchemaJSON, TokenField: MaxTokensField, Temperature: true, Constrains: FindingYes, Ordered: FindingYes, Steady: FindingYes}, 2, "",
			"constrains to the schema, takes temperature 0, bounded by max_tokens"},
		{"ignores the schema", Endpoint{}, always(prose),
			Canary{Schema: SchemaJSON, TokenField: MaxTokensField, Temperature: true, Constrains: FindingNo, Steady: FindingYes}, 2, "",
			"IGNORES the schema, takes temperature 0, bounded by max_tokens"},
		{"an object of its own", Endpoint{}, always(chat(`{"village":"Hollin"}`)),
			Canary{Schema: SchemaJSON, TokenField: MaxTokensField, Temperature: true, Constrains: FindingNo, Steady: FindingYes}, 2, "", ""},
		{"other order", Endpoint{}, always(chat(`{"name":"Hollin","zone":"north"}`)),
			Canary{Schema: SchemaJSON, TokenField: MaxTokensField, Temperature: true, Constrains: FindingYes, Ordered: FindingNo, Steady: FindingYes}, 2, "", ""},
		{"drops temperature in silence", Endpoint{}, inTurn(fits, chat(`{"zone":"south","name":"Marl"}`)),
			Canary{Schema: SchemaJSON, TokenField: MaxTokensField, Temperature: true, Constrains: FindingYes, Ordered: FindingYes, Steady: FindingNo}, 2, "",
			"constrains to the schema, takes temperature 0 and still answers differently, bounded by max_tokens"},
		{"rejects temperature", Endpoint{}, rejecting(`"temperature"`, "Unsupported value: 'temperature' does not support 0 with this model.", fits),
			Canary{Schema: SchemaJSON, TokenField: MaxTokensField, Constrains: FindingYes, Ordered: FindingYes}, 2, "",
			"constrains to the schema, takes no temperature, bounded by max_tokens"},
		{"wants the newer field", Endpoint{}, rejecting(`"max_tokens"`, "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.", fits),
			Canary{Schema: SchemaJSON, TokenField: MaxCompletionTokensField, Temperature: true, Constrains: FindingYes, Ordered: FindingYes, Steady: FindingYes}, 3, "token_field: max_completion_tokens", ""},
		{"wants the older field", Endpoint{Profile: "azure"}, rejecting(`"max_completion_tokens"`, "Unrecognized request argument supplied: max_completion_tokens", fits),
			Canary{Profile: "azure", Schema: SchemaJSON, TokenField: MaxTokensField, Temperature: true, Constrains: FindingYes, Ordered: FindingYes, Steady: FindingYes}, 3, "token_field: max_tokens", ""},
		{"knows objects alone", Endpoint{}, rejecting(`"json_schema"`, "This response_format type is unavailable now", fits),
			Canary{Schema: SchemaObject, TokenField: MaxTokensField, Temperature: true, Constrains: FindingYes, Ordered: FindingYes, Steady: FindingYes}, 3, "schema: json_object",
			"follows the schema in the prompt, takes temperature 0, bounded by max_tokens"},
		{"knows no response_format", Endpoint{}, rejecting(`"response_format"`, "response_format: extra inputs are not permitted", prose),
			Canary{Schema: SchemaNone, TokenField: MaxTokensField, Temperature: true, Constrains: FindingNo, Steady: FindingYes}, 4, "schema: none",
			"does not follow the schema in the prompt, takes temperature 0, bounded by max_tokens"},
		{"three things at once", Endpoint{}, func(n int, body string) stubReply {
			for _, word := range []string{"temperature", "max_tokens", "json_schema"} {
				if r := rejecting(`"`+word+`"`, "Unsupported: "+word, fits)(n, body); r.status == 400 {
					return r
				}
			}
			return fits
		}, Canary{Schema: SchemaObject, TokenField: MaxCompletionTokensField, Constrains: FindingYes, Ordered: FindingYes}, 4, "token_field: max_completion_tokens, schema: json_object", ""},
		{"thoughts alone", Endpoint{}, always(finished("", "length", 20, canaryTokens)),
			Canary{Schema: SchemaJSON, TokenField: MaxTokensField, Temperature: true, Failure: "all 400 tokens went into thoughts"}, 1, "",
			"not found out: all 400 tokens went into thoughts"},
		{"white space without end", Endpoint{}, always(finished(`{"zone":          `, "length", 20, canaryTokens)),
			Canary{Schema: SchemaJSON, TokenField: MaxTokensField, Temperature: true, Constrains: FindingYes, Steady: FindingYes}, 2, "", ""},
		{"no such model", Endpoint{}, always(failing(404, `{"error":{"message":"the model does not exist","code":"model_not_found"}}`)),
			Canary{Failure: "ask stub at main: rejected (status 404): model_not_found: the model does not exist", Reason: ReasonRejected}, 1, "", ""},
		{"bad key", Endpoint{}, always(failing(401, `{"error":{"message":"no","code":"invalid_api_key"}}`)),
			Canary{Failure: "ask stub at main: credentials (status 401): invalid_api_key: no (no key was sent: the endpoint names no key_env)", Reason: ReasonCredentials}, 1, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := serve(t, tt.answer)
			c := client(t, s, Options{Retries: -1, Endpoints: map[string]Endpoint{"main": tt.at}})
			k, err := c.Probe(t.Context(), "main", "stub")
			if err != nil {
				t.Fatal(err)
			}
			tt.want.Endpoint, tt.want.Model = "main", "stub"
			if tt.want.Profile == "" {
				tt.want.Profile = "generic"
			}
			if diff := cmp.Diff(tt.want, k, cmpopts.IgnoreFields(Canary{}, "Calls", "Probed", "Returned")); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if s.requests() != tt.asked {
				t.Errorf("%d requests, want %d", s.requests(), tt.asked)
			}
			if got := c.Change(k); got != tt.change {
				t.Errorf("change %q, want %q", got, tt.change)
			}
			if tt.text != "" && k.Text() != tt.text {
				t.Errorf("it says %q, want %q", k.Text(), tt.text)
			}
			for _, rec := range records(t, c) {
				if rec.Role != RoleCanary {
					t.Errorf("a record has the role %s", rec.Role)
				}
			}
			kept, ok, err := c.Canary("main", "stub")
			if err != nil || !ok || cmp.Diff(k, kept) != "" {
				t.Errorf("kept is %+v, %v", kept, err)
			}
			before := s.requests()
			again, err := c.Probe(t.Context(), "main", "stub")
			if err != nil || again.Round != 1 || s.requests() != before+tt.asked {
				t.Errorf("a second probe is round %d after %d requests, %v", again.Round, s.requests()-before, err)
			}
		})
	}
}

func TestProbeOfWhatNeedsNone(t *testing.T) {
	s := serve(t, always(answerOK))
	c := client(t, s, Options{})
	for _, name := range []string{"inside", "nowhere"} {
		if k, err := c.Probe(t.Context(), name, "m"); err == nil {
			t.Errorf("%s was probed: %+v", name, k)
		}
		if _, ok, err := c.Canary(name, "m"); ok || err != nil {
			t.Errorf("%s has a canary, %v", name, err)
		}
	}
	quota := serve(t, always(failing(429, `{"error":{"code":"insufficient_quota"}}`)))
	if _, err := client(t, quota, Options{}).Probe(t.Context(), "main", "m"); err == nil {
		t.Error("an empty account did not end the probe")
	}
	if all, err := c.Canaries(); err != nil || len(all) != 0 {
		t.Errorf("canaries %v, %v", all, err)
	}
	if _, err := c.Probe(t.Context(), "main", "m"); err != nil {
		t.Fatal(err)
	}
	if all, err := c.Canaries(); err != nil || len(all) != 1 {
		t.Errorf("canaries %v, %v", all, err)
	}
	if got := c.EndpointNames(); !slices.Equal(got, []string{"inside", "main"}) {
		t.Errorf("endpoints %v", got)
	}
}
