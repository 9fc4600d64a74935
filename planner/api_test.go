package planner

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"assay/fetch"
	"assay/kv"
)

// An outside is a loopback server that plays an interface, with a clock that moves when somebody waits.
type outside struct {
	t       testing.TB
	server  *httptest.Server
	store   *kv.Store
	serve   func(rw http.ResponseWriter, r *http.Request)
	tokens  int // given out
	token   func(rw http.ResponseWriter, r *http.Request)
	mu      sync.Mutex
	now     time.Time
	visits  []string // paths with queries, without those for a token
	at      []time.Time
	headers []http.Header
}

const (
	testID     = "client-id-0123"
	testSecret = "client-secret-4567"
	testAgent  = "test:assay.example:1.0 (by /u/nobody)"
	testToken  = "token-number-%d-89abcdef"
)

func newOutside(t testing.TB, serve http.HandlerFunc) *outside {
	o := &outside{t: t, serve: serve, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	o.server = httptest.NewServer(o)
	t.Cleanup(o.server.Close)
	var err error
	if o.store, err = kv.OpenMemory(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := o.store.Close(); err != nil {
			t.Error(err)
		}
	})
	return o
}

func (o *outside) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if r.URL.Path == "/api/v1/access_token" {
		o.tokens++
		if o.token != nil {
			o.token(rw, r)
			return
		}
		body, _ := io.ReadAll(r.Body)
		want := "Basic " + base64.StdEncoding.EncodeToString([]byte(testID+":"+testSecret))
		if r.Method != http.MethodPost || string(body) != "grant_type=client_credentials" || r.Header.Get("Authorization") != want || r.Header.Get("User-Agent") != testAgent {
			reply(rw, 401, `{"message": "Unauthorized", "error": 401}`)
			return
		}
		reply(rw, 200, fmt.Sprintf(`{"access_token": "`+testToken+`", "token_type": "bearer", "expires_in": 86400, "scope": "*"}`, o.tokens))
		return
	}
	o.visits, o.at, o.headers = append(o.visits, r.URL.RequestURI()), append(o.at, o.now), append(o.headers, r.Header.Clone())
	o.serve(rw, r)
}

func reply(rw http.ResponseWriter, status int, body string, headers ...string) {
	rw.Header().Set("Content-Type", "application/json; charset=UTF-8")
	for i := 0; i+1 < len(headers); i += 2 {
		rw.Header().Set(headers[i], headers[i+1])
	}
	rw.WriteHeader(status)
	_, _ = io.WriteString(rw, body) // a client that hung up fails by itself
}

func (o *outside) Now() time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.now
}

func (o *outside) Sleep(ctx context.Context, d time.Duration) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.now = o.now.Add(d)
	return ctx.Err()
}

func (o *outside) addr() string { return o.server.Listener.Addr().String() }

func (o *outside) client(mode fetch.Mode) *fetch.Client {
	o.t.Helper()
	c, err := fetch.New(fetch.Options{
		Store: o.store, Mode: mode, Version: "1.0", Contact: "mailto:crawl@assay.example", Delay: -1, AllowPrivate: []string{o.addr()},
		Unstored: []string{o.server.URL + "/api/v1/access_token"}, Now: o.Now, Sleep: o.Sleep, Jitter: func() float64 { return 0.5 },
	})
	if err != nil {
		o.t.Fatal(err)
	}
	o.t.Cleanup(c.Close)
	return c
}

func (o *outside) reddit(mode fetch.Mode) *Reddit {
	o.t.Helper()
	return NewReddit(RedditOptions{
		Web: o.client(mode), ClientID: "TEST_ID", ClientSecret: "TEST_SECRET", UserAgent: testAgent,
		Base: o.server.URL, Token: o.server.URL + "/api/v1/access_token", Now: o.Now,
		Getenv: func(name string) string { return map[string]string{"TEST_ID": testID, "TEST_SECRET": testSecret}[name] },
	})
}

// wantError fails the test unless err is an *APIError with a reason.
func wantError(t testing.TB, err error, reason string) *APIError {
	t.Helper()
	var e *APIError
	if !errors.As(err, &e) || e.Reason != reason {
		t.Fatalf("error = %v, want one with reason %s", err, reason)
	}
	return e
}

// noSecrets fails the test where the store holds what must never be stored.
func (o *outside) noSecrets() {
	o.t.Helper()
	o.lacks(testID, testSecret, base64.StdEncoding.EncodeToString([]byte(testID+":"+testSecret)), "token-number-")
}

// lacks fails the test where the store holds one of some texts.
func (o *outside) lacks(secrets ...string) {
	o.t.Helper()
	var all strings.Builder
	if _, err := o.store.Backup(o.t.Context(), &all); err != nil {
		o.t.Fatal(err)
	}
	for _, bucket := range o.store.Buckets() {
		for e, err := range kv.In[[]byte](o.store, bucket, 1).Scan("", "") {
			if err == nil {
				all.Write(e.Value)
			}
			all.WriteString(e.Key)
		}
	}
	for _, secret := range secrets {
		if strings.Contains(all.String(), secret) {
			o.t.Errorf("the store holds %q", secret)
		}
	}
}
