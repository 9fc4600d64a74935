package llm

import (
	"errors"
	"strings"
	"testing"
)

// A server that echoes the key, whichever way, does not get it into what is shown or stored.
func TestEchoedKeysAreMasked(t *testing.T) {
	const key = "sk-invented-0123456789"
	for name, reply := range map[string]stubReply{
		"in a redirect":        {status: 307, header: map[string]string{"Location": "http://other.example/?key=" + key}},
		"in an error":          {status: 400, body: `{"error":{"message":"bad key ` + key + `"}}`},
		"escaped in an error":  {status: 400, body: `{"error":{"message":"bad key \u0073k-invented-0123456789"}}`},
		"escaped in an answer": chat(`{"label":"supporting","why":"` + key + `"}`),
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, func(int, string) stubReply { return reply })
			c := client(t, s, Options{Retries: -1, Endpoints: map[string]Endpoint{"main": {KeyEnv: "STUB_KEY"}}, Getenv: func(string) string { return key }})
			r, err := c.Complete(t.Context(), ask(1))
			var e *Error
			if errors.As(err, &e) && strings.Contains(e.Error(), key) || strings.Contains(r.Raw, key) {
				t.Errorf("the key is shown: %v %s", err, r.Raw)
			}
			for rec, err := range c.Calls() {
				if err != nil {
					t.Fatal(err)
				}
				if strings.Contains(rec.Detail+rec.Raw+string(rec.Parsed), key) {
					t.Errorf("the key is stored: %+v", rec)
				}
			}
		})
	}
}

// A chat reply that is longer than any answer is no reply.
func TestHugeAnswersAreRefused(t *testing.T) {
	s := serve(t, func(int, string) stubReply { return chat(strings.Repeat("a", maxAnswer+1)) })
	c := client(t, s, Options{Retries: -1})
	_, err := c.Complete(t.Context(), ask(1))
	var e *Error
	if !errors.As(err, &e) || e.Reason != ReasonBadReply || s.requests() != 1 {
		t.Errorf("error = %v after %d requests", err, s.requests())
	}
}
