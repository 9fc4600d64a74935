package llm

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

var answerOK = chat(`{"label":"supporting","why":"x"}`)

func failing(status int, body string, header ...string) stubReply {
	r := stubReply{status: status, body: body, header: map[string]string{}}
	for i := 0; i < len(header); i += 2 {
		r.header[header[i]] = header[i+1]
	}
	return r
}

func TestRetry(t *testing.T) {
	now := newClock().now()
	limited := `{"error":{"code":"rate_limit_exceeded","message":"slow down"}}`
	for _, tt := range []struct {
		name    string
		replies []stubReply
		calls   int
		reason  string        // of the error, "" for none
		wait    time.Duration // the first sleep is at least this, and at most half a second more
	}{
		{"500 once", []stubReply{failing(500, `{"error":{"message":"oops"}}`), answerOK}, 2, "", 0},
		{"503 without a body", []stubReply{failing(503, ""), answerOK}, 2, "", 0},
		{"529 overloaded", []stubReply{failing(529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`), answerOK}, 2, "", 0},
		{"408", []stubReply{failing(408, ""), answerOK}, 2, "", 0},
		{"409", []stubReply{failing(409, ""), answerOK}, 2, "", 0},
		{"425", []stubReply{failing(425, ""), answerOK}, 2, "", 0},
		{"500 for ever", []stubReply{failing(500, "")}, 4, ReasonServer, 0},
		{"seconds", []stubReply{failing(429, limited, "Retry-After", "7"), answerOK}, 2, "", 7 * time.Second},
		{"a part of a second", []stubReply{failing(429, limited, "Retry-After", "1.5"), answerOK}, 2, "", 1500 * time.Millisecond},
		{"date", []stubReply{failing(429, limited, "Retry-After", now.Add(90*time.Second).Format(http.TimeFormat)), answerOK}, 2, "", 90 * time.Second},
		{"date gone by", []stubReply{failing(429, limited, "Retry-After", now.Add(-time.Hour).Format(http.TimeFormat)), answerOK}, 2, "", 0},
		{"milliseconds", []stubReply{failing(429, limited, "Retry-After-Ms", "1200"), answerOK}, 2, "", 1200 * time.Millisecond},
		{"two that disagree", []stubReply{failing(429, limited, "Retry-After-Ms", "0", "Retry-After", "1"), answerOK}, 2, "", time.Second},
		{"reset of the tokens that are used up", []stubReply{failing(429, limited, "X-Ratelimit-Remaining-Requests", "9", "X-Ratelimit-Reset-Requests", "14m24s", "X-Ratelimit-Remaining-Tokens", "0", "X-Ratelimit-Reset-Tokens", "8.64s"), answerOK}, 2, "", 8640 * time.Millisecond},
		{"reset as seconds", []stubReply{failing(429, limited, "X-Ratelimit-Remaining", "0", "X-Ratelimit-Reset", "2"), answerOK}, 2, "", 2 * time.Second},
		{"reset as milliseconds since 1970", []stubReply{failing(429, limited, "X-Ratelimit-Reset", "1793707230000"), answerOK}, 2, "", 30 * time.Second},
		{"reset as seconds since 1970", []stubReply{failing(429, limited, "X-Ratelimit-Reset", "1793707230"), answerOK}, 2, "", 30 * time.Second},
		{"delay in the body", []stubReply{failing(429, `[{"error":{"code":429,"details":[{"@type":"x"},{"retryDelay":"48s"}]}}]`), answerOK}, 2, "", 48 * time.Second},
		{"beyond the cap", []stubReply{failing(429, limited, "Retry-After", "301")}, 1, ReasonRateLimit, 0},
		{"at the cap", []stubReply{failing(429, limited, "Retry-After", "300"), answerOK}, 2, "", 300 * time.Second},
		{"absurd", []stubReply{failing(429, limited, "Retry-After", "1e300")}, 1, ReasonRateLimit, 0},
		{"nonsense", []stubReply{failing(429, limited, "Retry-After", "soon"), answerOK}, 2, "", 0},
		{"no JSON", []stubReply{failing(200, "<html>log in</html>"), answerOK}, 2, "", 0},
		{"no choices", []stubReply{failing(200, `{"choices":[],"usage":{"prompt_tokens":3}}`), answerOK}, 2, "", 0},
		{"error in a 200", []stubReply{failing(200, `{"error":{"code":502,"message":"upstream"}}`), answerOK}, 2, "", 0},
		{"error in a choice", []stubReply{failing(200, `{"choices":[{"error":{"code":429,"message":"upstream"},"finish_reason":"error"}]}`), answerOK}, 2, "", 0},
		{"quota", []stubReply{failing(429, `{"error":{"type":"insufficient_quota","code":"insufficient_quota"}}`)}, 1, ReasonQuota, 0},
		{"no balance", []stubReply{failing(402, `{"error":{"message":"Insufficient Balance"}}`)}, 1, ReasonQuota, 0},
		{"401", []stubReply{failing(401, `{"detail":"Invalid API Key"}`)}, 1, ReasonCredentials, 0},
		{"403", []stubReply{failing(403, "")}, 1, ReasonCredentials, 0},
		{"bad key as 400", []stubReply{failing(400, `{"error":"Incorrect API key provided"}`)}, 1, ReasonCredentials, 0},
		{"404", []stubReply{failing(404, `{"error":{"code":"model_not_found"}}`)}, 1, ReasonRejected, 0},
		{"400", []stubReply{failing(400, `{"error":{"code":"unsupported_parameter","message":"no"}}`)}, 1, ReasonRejected, 0},
		{"422 of a framework", []stubReply{failing(422, `{"detail":[{"loc":["body","x"],"msg":"bad"}]}`)}, 1, ReasonRejected, 0},
		{"too long", []stubReply{failing(400, `{"error":{"code":"context_length_exceeded"}}`)}, 1, ReasonContext, 0},
		{"too long as 500", []stubReply{failing(500, `{"error":{"code":500,"type":"exceed_context_size_error","message":"x"}}`)}, 1, ReasonContext, 0},
		{"too long in a 200", []stubReply{failing(200, `{"error":{"code":400,"type":"exceed_context_size_error","message":"x"}}`)}, 1, ReasonContext, 0},
		{"flat error", []stubReply{failing(400, `{"object":"error","message":"This model's maximum context length is 10","code":400}`)}, 1, ReasonContext, 0},
		{"redirect", []stubReply{failing(307, "", "Location", "/elsewhere")}, 1, ReasonRejected, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			clk := newClock()
			s := serve(t, inTurn(tt.replies...))
			store := memory(t)
			c := client(t, s, Options{Store: store, Retries: 3, Now: clk.now, Sleep: clk.sleep})
			r, err := c.Complete(t.Context(), ask(1))
			if s.requests() != tt.calls {
				t.Errorf("%d requests, want %d", s.requests(), tt.calls)
			}
			checkReason(t, r, err, tt.reason, tt.calls)
			if len(clk.slept) > 0 && (clk.slept[0] < tt.wait || clk.slept[0] > tt.wait+firstBackoff) {
				t.Errorf("slept %s, want %s", clk.slept[0], tt.wait)
			}
			recs := records(t, c)
			if len(recs) != tt.calls {
				t.Errorf("%d records of %d attempts", len(recs), tt.calls)
			}
			for i, rec := range recs {
				if (rec.Outcome == "") == (rec.Failure == "") || rec.Seen.Attempt != i+1 {
					t.Errorf("record %d: outcome %q, failure %q, attempt %d", i, rec.Outcome, rec.Failure, rec.Seen.Attempt)
				}
			}
			if tt.reason != "" { // failures are never served again
				client(t, s, Options{Store: store, Retries: -1}).Complete(t.Context(), ask(1))
				if s.requests() == tt.calls {
					t.Error("a failure was answered from the store")
				}
			}
		})
	}
}

func checkReason(t *testing.T, r Reply, err error, reason string, tries int) {
	t.Helper()
	if reason == "" {
		if err != nil || r.Outcome != OutcomeAnswered {
			t.Errorf("got %+v, %v, want an answer", r, err)
		}
		return
	}
	var e *Error
	if !errors.As(err, &e) || e.Reason != reason || e.Tries != tries {
		t.Fatalf("got %v after %d tries, want %s after %d", err, e.Tries, reason, tries)
	}
	want := map[string]struct {
		class string
		stops bool
	}{
		ReasonQuota: {"budget", true}, ReasonCredentials: {"permanent", true}, ReasonContext: {"permanent", false}, ReasonRejected: {"permanent", false},
		ReasonServer: {"transient", false}, ReasonRateLimit: {"transient", false}, ReasonBadReply: {"transient", false},
	}[reason]
	if e.FailureClass() != want.class || e.StopsRun() != want.stops {
		t.Errorf("%s is %s, stops %v; want %s, %v", reason, e.FailureClass(), e.StopsRun(), want.class, want.stops)
	}
}

func TestNoRetries(t *testing.T) {
	s := serve(t, always(failing(500, "")))
	if _, err := client(t, s, Options{Retries: -1}).Complete(t.Context(), ask(1)); err == nil || s.requests() != 1 {
		t.Errorf("%v after %d requests, want one", err, s.requests())
	}
}

func TestBackoff(t *testing.T) {
	for try := range 40 {
		if d := backoff(try, 0); d < 0 || d > min(firstBackoff<<min(try, 16), lastBackoff) {
			t.Errorf("backoff(%d) = %s", try, d)
		}
	}
}

// A server that hangs up, one that is not there, and one that says nothing in time.
func TestConnectionFailures(t *testing.T) {
	price := PriceTable{Models: map[string]Price{"stub": {Input: 1, Output: 1}}}
	stop := make(chan struct{})
	hangUp := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) }))
	halfway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "1000")
		w.Write([]byte(`{"choices":[`))
	}))
	silent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { <-stop }))
	t.Cleanup(func() { hangUp.Close(); halfway.Close(); close(stop); silent.Close() })
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone := "http://" + l.Addr().String()
	l.Close()
	for name, tt := range map[string]struct {
		address, reason string
		charged         bool
	}{
		"not there":    {gone, ReasonNetwork, false},
		"hangs up":     {hangUp.URL, ReasonNetwork, true},
		"half a reply": {halfway.URL, ReasonNetwork, true},
		"silent":       {silent.URL, ReasonTimeout, true},
	} {
		t.Run(name, func(t *testing.T) {
			clk := newClock()
			c, err := New(Options{Store: memory(t), Retries: 1, Sleep: clk.sleep, Prices: price, MaxUSD: 1,
				Endpoints: map[string]Endpoint{"main": {Provider: ProviderOpenAI, BaseURL: tt.address, Timeout: 100 * time.Millisecond}}})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			_, err = c.Complete(t.Context(), ask(1))
			var e *Error
			if !errors.As(err, &e) || e.Reason != tt.reason || e.Tries != 2 || e.FailureClass() != "transient" {
				t.Fatalf("got %v, want %s after 2 tries", err, tt.reason)
			}
			cl, err := c.prepare(ask(1))
			if err != nil {
				t.Fatal(err)
			}
			want := Usage{}
			if tt.charged {
				want = cl.reserve()
			}
			for _, rec := range records(t, c) {
				if rec.Failure != tt.reason || rec.Usage != want || rec.Estimated != tt.charged || *rec.USD != (Price{Input: 1, Output: 1}).Cost(want) {
					t.Errorf("record %+v, want usage %+v", rec, want)
				}
			}
		})
	}
}

// A run that is stopped while a call is out keeps what the call may cost, and says that it was stopped.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := serve(t, func(n int, _ string) stubReply {
		cancel()
		<-ctx.Done()
		return failing(500, "")
	})
	c := client(t, s, Options{})
	_, err := c.Complete(ctx, ask(1))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want it cancelled", err)
	}
	for _, rec := range records(t, c) {
		if rec.Failure == ReasonInterrupted && (!rec.Estimated || rec.Usage.Completion != 512) {
			t.Errorf("record %+v, want the worst case", rec)
		}
	}
}

func TestKeys(t *testing.T) {
	var got []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Method+" "+r.URL.Path+" "+r.Header.Get("Authorization"))
		w.WriteHeader(401)
		w.Write([]byte(`{"error":{"message":"Incorrect API key provided: secret-123."}}`))
	}))
	defer s.Close()
	c, err := New(Options{Store: memory(t), Endpoints: map[string]Endpoint{
		"with":    {Provider: ProviderOpenAI, BaseURL: s.URL + "/v1/", KeyEnv: "KEY"},
		"without": {Provider: ProviderOpenAI, BaseURL: s.URL + "/v1"},
		"unset":   {Provider: ProviderOpenAI, BaseURL: s.URL + "/v1", KeyEnv: "UNSET"},
	}, Getenv: func(name string) string { return map[string]string{"KEY": "secret-123"}[name] }})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, name := range []string{"with", "without", "unset"} {
		q := ask(1)
		q.Endpoint = name
		_, err := c.Complete(t.Context(), q)
		var e *Error
		if !errors.As(err, &e) || e.Reason != ReasonCredentials || !e.StopsRun() {
			t.Errorf("%s: got %v, want the run to stop for its credentials", name, err)
		}
		if name == "with" && strings.Contains(err.Error(), "secret") {
			t.Errorf("the error shows the key: %v", err)
		}
		if name == "unset" && !strings.Contains(err.Error(), "UNSET") {
			t.Errorf("the error does not name the variable: %v", err)
		}
	}
	want := "POST /v1/chat/completions Bearer secret-123|POST /v1/chat/completions "
	if strings.Join(got, "|") != want {
		t.Errorf("requests %q, want %q", got, want)
	}
	for _, rec := range records(t, c) {
		if strings.Contains(rec.Detail, "secret") && rec.Endpoint == "with" {
			t.Errorf("the record shows the key: %s", rec.Detail)
		}
	}
}

// An endpoint that never answers ends the run after a few calls, one that answered once does not.
func TestDeadEndpointEndsTheRun(t *testing.T) {
	s := serve(t, func(int, string) stubReply { return stubReply{status: http.StatusBadGateway} })
	c := client(t, s, Options{Retries: 1})
	var stops []bool
	for i := range silentCalls + 1 {
		_, err := c.Complete(t.Context(), ask(i))
		var e *Error
		if !errors.As(err, &e) {
			t.Fatalf("call %d: %v", i, err)
		}
		stops = append(stops, e.StopsRun())
	}
	if want := []bool{false, false, true, true}; !slices.Equal(stops, want) {
		t.Errorf("stops = %v, want %v", stops, want)
	}
}
