package fetch

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"assay/kv"
)

const secret = "s3cr3t+key/of=ours"

// everything returns all that a store holds, as text.
func everything(t *testing.T, s *kv.Store) string {
	t.Helper()
	var b strings.Builder
	a := openArchive(s)
	for e, err := range a.exchanges.Scan("", "") {
		if err != nil {
			t.Fatal(err)
		}
		line, err := json.Marshal(e.Value)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s %s\n", e.Key, line)
	}
	for e, err := range a.heads.Scan("", "") {
		if err != nil {
			t.Fatal(err)
		}
		line, err := json.Marshal(e.Value)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s %s\n", e.Key, line)
	}
	for _, bucket := range []kv.Bucket[[]byte]{a.bodies, a.addresses, a.aliases} {
		for e, err := range bucket.Scan("", "") {
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&b, "%s %s\n", e.Key, e.Value)
		}
	}
	return b.String()
}

func TestCredentials(t *testing.T) {
	header := Credential{Name: "header-key", Hosts: []string{"api.example"}, Header: "Authorization", Prefix: "Bearer ", Secret: secret}
	query := Credential{Name: "query-key", Hosts: []string{"*.q.example"}, Query: "key", Secret: secret}
	echo := func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("X-Echo", r.Header.Get("Authorization")+r.URL.RawQuery)
		answers(200, strings.Repeat("padding ", 9000)+"you sent "+r.Header.Get("Authorization")+" and "+r.URL.RawQuery+" and "+r.URL.Query().Get("key")+" twice "+r.URL.Query().Get("key"), "Content-Type", "text/plain")(rw, r)
	}
	w := newWeb(t)
	w.pages["api.example"], w.pages["a.q.example"], w.pages["q.example"], w.pages["other.example"] = echo, echo, echo, echo
	w.pages["api.example/away"] = redirects(302, "http://other.example/landed")
	w.pages["a.q.example/moved"] = func(rw http.ResponseWriter, r *http.Request) {
		redirects(302, "/here?"+r.URL.RawQuery)(rw, r)
	}
	w.pages["api.example/packed"] = func(rw http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Accept-Encoding"); got != "identity" {
			t.Errorf("with a credential, Accept-Encoding = %q", got)
		}
		gzipped("packed "+r.Header.Get("Authorization"))(rw, r)
	}
	store := memory(t)
	c := w.client(t, store, func(o *Options) { o.Credentials = []Credential{header, query} })
	tests := []struct {
		url, name      string
		header, query  string // what the host must have got
		masked, reason string
	}{
		{url: "http://api.example/v1", name: "header-key", header: "Bearer " + secret, masked: "you sent Bearer " + strings.Repeat("*", len(secret))},
		{url: "http://api.example/packed", name: "header-key", header: "Bearer " + secret, masked: "packed Bearer " + strings.Repeat("*", len(secret))},
		{url: "http://a.q.example/v1?x=%41&key=old", name: "query-key", query: "x=%41&key=s3cr3t%2Bkey%2Fof%3Dours", masked: "and x=%41&key="},
		{url: "http://q.example/v1?x=1", query: "x=1"},
		{url: "http://other.example/v1"},
	}
	for _, tt := range tests {
		page, err := c.Get(t.Context(), Request{URL: tt.url})
		if err != nil {
			t.Fatalf("%s: %v", tt.url, err)
		}
		host, path, _ := strings.Cut(strings.TrimPrefix(tt.url, "http://"), "/")
		path, _, _ = strings.Cut(path, "?")
		v := w.seen(host + "/" + path)
		if tt.query != "" {
			v = w.seen(host + "/" + path + "?" + tt.query)
		}
		if len(v) != 1 || v[0].header.Get("Authorization") != tt.header {
			t.Errorf("%s: the host saw %v", tt.url, v)
		}
		if text := string(page.Bytes()); strings.Contains(text, secret) || !strings.Contains(text, tt.masked) {
			t.Errorf("%s: body ends in %q, want the secret overwritten", tt.url, text[max(0, len(text)-150):])
		}
		list, err := c.Exchanges(tt.url)
		if err != nil || len(list) != 1 {
			t.Fatalf("%s: %d exchanges, %v", tt.url, len(list), err)
		}
		if list[0].Credential != tt.name || list[0].Masked != (tt.masked != "") {
			t.Errorf("%s: credential %q, masked %v", tt.url, list[0].Credential, list[0].Masked)
		}
	}
	// A redirect takes no secret to another host, and one that repeats it still leads on.
	if _, err := c.Get(t.Context(), Request{URL: "http://api.example/away"}); err != nil {
		t.Error(err)
	}
	if v := w.seen("other.example/landed"); len(v) != 1 || v[0].header.Get("Authorization") != "" {
		t.Errorf("after a redirect the other host saw %v", v)
	}
	if _, err := c.Get(t.Context(), Request{URL: "http://a.q.example/moved"}); err != nil {
		t.Error(err)
	}
	packed, _ := archived(t, store)
	unpacked, err := io.ReadAll(newGunzip(t, packed))
	if err != nil {
		t.Fatal(err)
	}
	all := everything(t, store) + string(unpacked)
	for _, s := range []string{secret, "s3cr3t%2Bkey%2Fof%3Dours", "s3cr3t"} {
		if i := strings.Index(all, s); i >= 0 {
			t.Errorf("the store holds %q: ...%q", s, all[max(0, i-80):i+20])
		}
	}
}

func TestCredentialsNeedTLS(t *testing.T) {
	g := newGuard(Options{Contact: "x", AllowPrivate: []string{"127.0.0.1:9"}})
	s := &credentials{guard: g, list: []Credential{{Name: "k", Hosts: []string{"api.test", "127.0.0.1"}, Header: "X-Key", Secret: secret}}}
	for url, want := range map[string]bool{
		"https://api.test/": true, "https://API.test:8443/": true, "http://api.test/": false, "https://x.api.test/": false, "https://api.test.evil.test/": false,
		"http://127.0.0.1:9/": true, "http://127.0.0.1:10/": false,
	} {
		u, err := requestURL(url)
		if err != nil {
			t.Fatal(err)
		}
		if _, got := s.find(u); got != want {
			t.Errorf("%s: sent = %v, want %v", url, got, want)
		}
	}
}

// A secret is found wherever reads cut it.
func TestMaskedBody(t *testing.T) {
	text := strings.Repeat("x", 100) + secret + secret + "s3cr3t" + secret[:5] + "yy" + secret
	want := strings.ReplaceAll(text, secret, strings.Repeat("*", len(secret)))
	readers := map[string]func(io.Reader) io.Reader{
		"whole": func(r io.Reader) io.Reader { return r }, "byte by byte": iotest.OneByteReader, "halves": iotest.HalfReader, "error with data": iotest.DataErrReader,
	}
	for name, wrap := range readers {
		m := masker{Credential{Secret: secret}.spellings(), &attemptNote{}}
		got, err := io.ReadAll(&maskedBody{masker: m, body: io.NopCloser(wrap(strings.NewReader(text)))})
		if err != nil || string(got) != want {
			t.Errorf("%s: %q, %v; want %q", name, got, err, want)
		}
		if !m.note.masked {
			t.Errorf("%s: not flagged", name)
		}
	}
	m := masker{Credential{Secret: secret}.spellings(), &attemptNote{}}
	got, err := io.ReadAll(&maskedBody{masker: m, body: io.NopCloser(iotest.TimeoutReader(strings.NewReader("short")))})
	if string(got) != "short" && err == nil {
		t.Errorf("a broken body: %q, %v", got, err)
	}
	if e := m.error(fmt.Errorf("Get https://h.example/?key=%s: refused", secret)); strings.Contains(e.Error(), secret) {
		t.Errorf("error tells the secret: %v", e)
	}
}

func TestTokenEndpointIsNotStored(t *testing.T) {
	w := newWeb(t)
	w.pages["auth.example/token"] = func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		answers(200, `{"access_token":"`+secret+`","sent":"`+string(body)+" "+r.Header.Get("Authorization")+`"}`, "Content-Type", "application/json")(rw, r)
	}
	store := memory(t)
	change := func(o *Options) { o.Unstored = []string{"http://auth.example/token"} }
	c := w.client(t, store, change)
	for range 2 {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://auth.example/token", strings.NewReader("grant"))
		if err != nil {
			t.Fatal(err)
		}
		req.SetBasicAuth("id", secret)
		resp, err := c.HTTP().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		if err != nil || !strings.Contains(string(body), secret) || !strings.Contains(string(body), "grant Basic ") {
			t.Errorf("reply = %s, %v", body, err)
		}
		resp.Body.Close()
	}
	if n := len(w.paths()); n != 2 {
		t.Errorf("%d requests, want 2: nothing of it is kept", n)
	}
	if all := everything(t, store); all != "" {
		t.Errorf("the store holds %q", all)
	}
	_, err := c.Get(t.Context(), Request{URL: "http://auth.example/token"})
	wantReason(t, err, ReasonBadURL)
	if _, err := w.client(t, store, change, func(o *Options) { o.Mode = Replay }).HTTP().Post("http://auth.example/token", "text/plain", strings.NewReader("x")); err == nil {
		t.Error("replay asked a token endpoint")
	}
}
