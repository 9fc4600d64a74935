package fetch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// jsonReply serves a JSON text.
func jsonReply(status int, body string, headers ...string) http.HandlerFunc {
	return answers(status, body, append([]string{"Content-Type", "application/json; charset=UTF-8"}, headers...)...)
}

func TestCall(t *testing.T) {
	w := newWeb(t)
	store := memory(t)
	w.pages["api.example/robots.txt"] = answers(200, "User-agent: *\nDisallow: /\n")
	w.pages["api.example/ok"] = jsonReply(200, `{"a":1}`)
	w.pages["api.example/private"] = jsonReply(403, `{"reason":"private"}`)
	w.pages["api.example/gone"] = jsonReply(404, `{"reason":"NONE"}`)
	w.pages["api.example/moved"] = redirects(301, "http://api.example/ok")
	w.pages["api.example/down"] = jsonReply(503, `{"error":503}`)
	c := w.client(t, store)
	for _, tt := range []struct {
		path, body string
		status     int
		class      Class
		tries      int
	}{
		{"/ok", `{"a":1}`, 200, ClassOK, 1},
		{"/private", `{"reason":"private"}`, 403, ClassBlocked, 1},
		{"/gone", `{"reason":"NONE"}`, 404, ClassGone, 1},
		{"/moved", "", 301, ClassOK, 1},
		{"/down", `{"error":503}`, 503, ClassFailed, 4},
	} {
		for i, client := range []*Client{c, w.client(t, store, func(o *Options) { o.Mode = Replay })} {
			got, err := client.Call(t.Context(), Call{URL: "http://api.example" + tt.path, UserAgent: "test:assay:1 (by /u/nobody)"})
			if err != nil {
				t.Fatalf("%s: %v", tt.path, err)
			}
			tries := tt.tries * (1 - i)
			if got.Status != tt.status || string(got.Body) != tt.body || got.Class != tt.class || got.Tries != tries || got.Retrieved.IsZero() {
				t.Errorf("%s in client %d: %d %s %q after %d tries", tt.path, i, got.Status, got.Class, got.Body, got.Tries)
			}
		}
	}
	seen := w.seen("api.example/ok")
	if len(seen) != 1 || seen[0].header.Get("User-Agent") != "test:assay:1 (by /u/nobody)" || seen[0].header.Get("Accept") != "application/json" {
		t.Errorf("asked %d times with %v", len(seen), seen)
	}
	if n := len(w.seen("api.example/robots.txt")); n != 0 {
		t.Errorf("robots.txt was asked for %d times", n)
	}
	if _, err := c.Call(t.Context(), Call{URL: "http://api.example/private"}); err != nil || len(w.seen("api.example/private")) != 2 {
		t.Errorf("a refusal was taken for an answer: %v", err)
	}
	if _, err := c.Get(t.Context(), Request{URL: "http://api.example/ok"}); err == nil {
		t.Error("a page was fetched against robots.txt")
	}
	_, err := w.client(t, memory(t), func(o *Options) { o.Mode = Replay }).Call(t.Context(), Call{URL: "http://api.example/ok"})
	wantReason(t, err, ReasonNotStored)
	_, err = c.Call(t.Context(), Call{URL: "http://127.0.0.1:9/"})
	wantReason(t, err, ReasonBlockedAddress)
}

func TestCallToken(t *testing.T) {
	w := newWeb(t)
	store := memory(t)
	good := "token-2-abcdefgh"
	w.pages["api.example"] = func(rw http.ResponseWriter, r *http.Request) {
		switch got := r.Header.Get("Authorization"); {
		case r.URL.Path == "/never", got != "Bearer "+good:
			jsonReply(401, `{"error":401,"sent":"`+got+`"}`, "Www-Authenticate", `Bearer realm="x", error="invalid_token"`)(rw, r)
		default:
			jsonReply(200, `{"sent":"`+got+`"}`)(rw, r)
		}
	}
	c := w.client(t, store)
	var asked []string
	token := func(_ context.Context, rejected string) (string, error) {
		asked = append(asked, rejected)
		if rejected == "" {
			return "token-1-abcdefgh", nil
		}
		return good, nil
	}
	for range 2 {
		got, err := c.Call(t.Context(), Call{URL: "http://api.example/a", Token: token})
		if err != nil || got.Status != 200 || got.Tries > 2 || strings.Contains(string(got.Body), "token") {
			t.Fatalf("got %+v, %v", got, err)
		}
	}
	if diff := cmp.Diff([]string{"", "token-1-abcdefgh"}, asked); diff != "" || len(w.seen("api.example/a")) != 2 {
		t.Errorf("asked for tokens (-want +got):\n%s", diff)
	}
	got, err := c.Call(t.Context(), Call{URL: "http://api.example/never", Token: token})
	if err != nil || got.Status != 401 || len(w.seen("api.example/never")) != 2 {
		t.Errorf("a token that is never good: %+v, %v", got, err)
	}
	if all := everything(t, store); strings.Contains(all, "token-1") || strings.Contains(all, good) {
		t.Error("the store holds a token")
	}
	failed := errors.New("no credentials")
	if _, err := c.Call(t.Context(), Call{URL: "http://api.example/b", Token: func(context.Context, string) (string, error) { return "", failed }}); !errors.Is(err, failed) {
		t.Errorf("error = %v", err)
	}
	_, err = c.Call(t.Context(), Call{URL: "http://api.example/c", Token: func(context.Context, string) (string, error) { return "short", nil }})
	wantReason(t, err, ReasonBlocked)
	_, err = c.Call(t.Context(), Call{URL: "http://open.test/", Token: token})
	wantReason(t, err, ReasonBadScheme)
	if n := len(w.seen("api.example/b")) + len(w.seen("api.example/c")); n != 0 {
		t.Errorf("%d requests without a token", n)
	}
}

func TestCallJudge(t *testing.T) {
	w := newWeb(t)
	judge := func(r Reply) Judgement {
		switch {
		case bytes.Contains(r.Body, []byte("slow down")):
			return Judgement{Class: ClassThrottled, Reason: "slow"}
		case !json.Valid(r.Body):
			return Judgement{Class: ClassFailed, Reason: "no_json"}
		case r.Header.Get("X-Left") == "0.0":
			return Judgement{Wait: time.Minute}
		}
		return Judgement{}
	}
	w.pages["api.example/slow"] = inTurn(jsonReply(422, `{"error":"slow down"}`), jsonReply(200, `{}`))
	w.pages["api.example/html"] = inTurn(answers(200, "<p>hello</p>", "Content-Type", "text/html"), jsonReply(200, `{"a":2}`))
	w.pages["api.example/last"] = jsonReply(200, `{}`, "X-Left", "0.0")
	w.pages["api.example/next"] = jsonReply(200, `{}`)
	c := w.client(t, memory(t))
	ask := func(path string) *Reply {
		t.Helper()
		got, err := c.Call(t.Context(), Call{URL: "http://api.example" + path, Judge: judge, Gap: 600 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got := ask("/slow"); got.Status != 200 || got.Tries != 2 {
		t.Errorf("slow: %+v", got)
	}
	if got := ask("/html"); got.Class != ClassFailed || got.Reason != "no_json" || got.Tries != 1 {
		t.Errorf("html: %+v", got)
	}
	if got := ask("/html"); got.Class != ClassOK || string(got.Body) != `{"a":2}` {
		t.Errorf("html, asked again: %+v", got)
	}
	before := w.clock.Now()
	ask("/last")
	if gap := w.clock.Now().Sub(before); gap < 600*time.Millisecond {
		t.Errorf("%v between two requests", gap)
	}
	before = w.clock.Now()
	ask("/next")
	if waited := w.clock.Now().Sub(before); waited < time.Minute || waited > 2*time.Minute {
		t.Errorf("waited %v after the last request that was left", waited)
	}
}

func TestBatch(t *testing.T) {
	w := newWeb(t)
	store := memory(t)
	w.pages["api.example/info"] = func(rw http.ResponseWriter, r *http.Request) {
		var found []string
		for _, id := range strings.Split(r.URL.Query().Get("id"), ",") {
			if id != "b" {
				found = append(found, `"`+id+`"`)
			}
		}
		jsonReply(200, "["+strings.Join(found, ",")+"]")(rw, r)
	}
	ids := []string{"a", "b", "c"}
	var calls []Call
	for _, id := range ids {
		calls = append(calls, Call{URL: "http://api.example/info?id=" + id})
	}
	join := func(places []int) Call {
		var some []string
		for _, i := range places {
			some = append(some, ids[i])
		}
		return Call{URL: "http://api.example/info?id=" + strings.Join(some, ",")}
	}
	split := func(body []byte, places []int) (out [][]byte, _ error) {
		for _, i := range places {
			one := "[]"
			if bytes.Contains(body, []byte(`"`+ids[i]+`"`)) {
				one = `["` + ids[i] + `"]`
			}
			out = append(out, []byte(one))
		}
		return out, nil
	}
	c := w.client(t, store, func(o *Options) {
		o.Answered = func(_ context.Context, key string, _ [32]byte) {
			if strings.Contains(key, ",") {
				t.Errorf("%s was reported", key)
			}
		}
	})
	for range 2 { // the second time there is nothing left to ask for
		if err := c.Batch(t.Context(), calls, 10, join, split); err != nil {
			t.Fatal(err)
		}
	}
	replay := w.client(t, store, func(o *Options) { o.Mode = Replay })
	for i, want := range []string{`["a"]`, "[]", `["c"]`} {
		for _, client := range []*Client{c, replay} {
			got, err := client.Call(t.Context(), calls[i])
			if err != nil || string(got.Body) != want || got.Status != 200 {
				t.Errorf("%s: %+v, %v", ids[i], got, err)
			}
		}
	}
	if diff := cmp.Diff([]string{"api.example/info?id=a,b,c"}, w.paths()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	w.pages["api.example/info"] = jsonReply(403, `{"reason":"private"}`)
	more := []Call{{URL: "http://api.example/info?id=d"}, {URL: "http://api.example/info?id=e"}}
	refused := func([]int) Call { return Call{URL: "http://api.example/info?id=d,e"} }
	if err := c.Batch(t.Context(), more, 10, refused, split); err != nil {
		t.Fatal(err)
	}
	if got, err := c.Call(t.Context(), more[0]); err != nil || got.Status != 403 {
		t.Errorf("after a refused batch: %+v, %v", got, err)
	}
}

// A token endpoint that asks to slow down is asked again, at its pace.
func TestUnstoredRetries(t *testing.T) {
	w := newWeb(t)
	var agents []string
	w.pages["auth.example/token"] = func(rw http.ResponseWriter, r *http.Request) {
		agents = append(agents, r.Header.Get("User-Agent"))
		body, _ := io.ReadAll(r.Body)
		in := []http.HandlerFunc{jsonReply(429, `{"error":429}`), jsonReply(503, ``), jsonReply(200, `{"got":"`+string(body)+`"}`)}
		in[min(len(agents)-1, 2)](rw, r)
	}
	w.pages["auth.example/refused"] = jsonReply(401, `{"error":401}`)
	c := w.client(t, memory(t), func(o *Options) {
		o.Unstored = []string{"http://auth.example/token", "http://auth.example/refused", "http://auth.test/token"}
	})
	post := func(url string) (*http.Response, error) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader("grant"))
		if err != nil {
			t.Fatal(err)
		}
		req.SetBasicAuth("id", "a-secret-of-length")
		req.Header.Set("User-Agent", "mine")
		return c.HTTP().Do(req)
	}
	resp, err := post("http://auth.example/token")
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil || string(body) != `{"got":"grant"}` || fmt.Sprint(agents) != "[mine mine mine]" {
		t.Errorf("got %s, %v by %v", body, err, agents)
	}
	if resp, err := post("http://auth.example/refused"); err != nil || resp.StatusCode != 401 || len(w.seen("auth.example/refused")) != 1 {
		t.Errorf("a refusal: %v", err)
	}
	_, err = post("http://auth.test/token")
	wantReason(t, err, ReasonBadScheme)
}
