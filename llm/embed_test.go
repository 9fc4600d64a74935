package llm

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEmbed(t *testing.T) {
	s := serve(t, func(_ int, body string) stubReply {
		var data []string
		n := strings.Count(body, "text ")
		for i := n - 1; i >= 0; i-- { // in another order, as some servers do
			data = append(data, fmt.Sprintf(`{"index":%d,"embedding":[%d,0.5]}`, i, i))
		}
		return stubReply{body: `{"model":"e","data":[` + strings.Join(data, ",") + `],"usage":{"prompt_tokens":7,"total_tokens":7}}`}
	})
	c := client(t, s, Options{})
	texts := make([]string, embedBatch+1)
	for i := range texts {
		texts[i] = fmt.Sprintf("text %d", i)
	}
	q := EmbedRequest{Role: "search", Endpoint: "main", Model: "e", Texts: texts}
	for range 2 {
		got, err := c.Embed(t.Context(), q)
		if err != nil || len(got) != len(texts) || got[3][0] != 3 || got[embedBatch][0] != 0 {
			t.Fatalf("Embed gives %d vectors, %v", len(got), err)
		}
	}
	if st := c.Stats(); s.requests() != 2 || st.Calls != 2 || st.Hits != 2 || st.Tokens != 14 {
		t.Errorf("%d requests, %+v, want two calls and two hits", s.requests(), st)
	}
	if got, err := c.Embed(t.Context(), EmbedRequest{Endpoint: "main"}); got != nil || err != nil {
		t.Errorf("no texts: %v, %v", got, err)
	}
	rec := records(t, c)[0]
	if rec.Role != "search" || rec.Outcome != OutcomeAnswered || rec.Model != "e" || rec.Template != "" {
		t.Errorf("record %+v", rec)
	}
}

func TestBuiltinEmbed(t *testing.T) {
	c := client(t, nil, Options{})
	texts := []string{"The city council cut the school budget.", "The council of the city is cutting budgets for schools.", "A penguin swam across the strait.", ""}
	v, err := c.Embed(t.Context(), EmbedRequest{Endpoint: "inside", Model: "builtin", Texts: texts})
	if err != nil {
		t.Fatal(err)
	}
	dot := func(a, b []float32) (sum float64) {
		for i := range a {
			sum += float64(a[i]) * float64(b[i])
		}
		return sum
	}
	if near, far := dot(v[0], v[1]), dot(v[0], v[2]); near <= far || math.Abs(dot(v[0], v[0])-1) > 1e-5 || len(v[3]) != builtinDims {
		t.Errorf("related texts %g, unrelated %g, itself %g", near, far, dot(v[0], v[0]))
	}
	again, err := client(t, nil, Options{}).Embed(t.Context(), EmbedRequest{Endpoint: "inside", Texts: texts})
	if diff := cmp.Diff(v, again); diff != "" || err != nil {
		t.Errorf("another client gives other vectors: %v", err)
	}
	if rec := records(t, c)[0]; rec.Provider != "builtin" || rec.USD == nil || *rec.USD != 0 {
		t.Errorf("record %+v", rec)
	}
}

func TestReadVectors(t *testing.T) {
	for body, want := range map[string]string{
		`{"data":[{"index":0,"embedding":[1,2]}]}`: "",
		`{"data":[{"embedding":"AACAPwAAAEA="}]}`:  "",
		`{"data":[]}`:                                   "0 for 1 texts",
		`{"data":[{"index":1,"embedding":[1]}]}`:        "index 1 of 1",
		`{"data":[{"index":0,"embedding":[]}]}`:         "it is empty",
		`{"data":[{"index":0,"embedding":null}]}`:       "it is empty",
		`{"data":[{"index":0,"embedding":"AAA="}]}`:     "no float32",
		`{"data":[{"index":0,"embedding":"!"}]}`:        "illegal base64",
		`{"data":[{"index":0,"embedding":"AADAfw=="}]}`: "no number",
		`{"data":[{"index":0,"embedding":{"a":1}}]}`:    "cannot unmarshal",
		`{`: "unexpected end",
	} {
		v, err := readVectors([]byte(body), 1)
		if (err == nil) != (want == "") || (err != nil && !strings.Contains(err.Error(), want)) {
			t.Errorf("readVectors(%s) = %v, %v, want %q", body, v, err, want)
		}
		if err == nil && cmp.Diff([][]float32{{1, 2}}, v) != "" {
			t.Errorf("readVectors(%s) = %v", body, v)
		}
	}
	for _, body := range []string{`{"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[1]}]}`, `{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":[1,2]}]}`} {
		if _, err := readVectors([]byte(body), 2); err == nil {
			t.Errorf("readVectors(%s) succeeded", body)
		}
	}
}

func TestEmbedFailures(t *testing.T) {
	for name, tt := range map[string]struct {
		reply  stubReply
		reason string
	}{
		"too few":    {stubReply{body: `{"data":[]}`}, ReasonBadReply},
		"no JSON":    {stubReply{body: `oops`}, ReasonBadReply},
		"credential": {failing(401, ""), ReasonCredentials},
		"filtered":   {failing(400, `{"error":{"code":"content_filter"}}`), ReasonRejected},
	} {
		c := client(t, serve(t, always(tt.reply)), Options{Retries: -1})
		_, err := c.Embed(t.Context(), EmbedRequest{Endpoint: "main", Model: "e", Texts: []string{"x"}})
		var e *Error
		if !errors.As(err, &e) || e.Reason != tt.reason {
			t.Errorf("%s: got %v, want %s", name, err, tt.reason)
		}
	}
	if _, err := client(t, nil, Options{}).Embed(t.Context(), EmbedRequest{Endpoint: "none", Texts: []string{"x"}}); err == nil {
		t.Error("an unknown endpoint embeds")
	}
}
