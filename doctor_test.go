package assay

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"assay/llm"
)

// A patient is a workspace with one endpoint, a server that can be made ill.
type patient struct {
	t      *testing.T
	dir    string
	server *httptest.Server
	calls  atomic.Int32
	chat   func(body string) (int, string) // status and content, or body for an error
	models func() (int, string)
	date   time.Time
	robots string
}

func newPatient(t *testing.T) *patient {
	p := &patient{t: t, dir: t.TempDir(), date: time.Now()}
	p.chat = func(string) (int, string) { return 200, `{"zone":"north","name":"Hollin"}` }
	p.models = func() (int, string) { return 200, `{"data":[{"id":"m-1"}]}` }
	p.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Date", p.date.UTC().Format(http.TimeFormat))
		body, _ := io.ReadAll(r.Body)
		switch {
		case r.URL.Path == "/robots.txt":
			io.WriteString(w, p.robots)
		case strings.HasSuffix(r.URL.Path, "/models"):
			status, text := p.models()
			w.WriteHeader(status)
			io.WriteString(w, text)
		default:
			p.calls.Add(1)
			status, content := p.chat(string(body))
			w.WriteHeader(status)
			if status == 200 {
				text, _ := json.Marshal(content)
				content = fmt.Sprintf(`{"model":"m-1-2026","choices":[{"message":{"content":%s},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":9,"total_tokens":18}}`, text)
			}
			io.WriteString(w, content)
		}
	}))
	t.Cleanup(p.server.Close)
	p.configure("")
	return p
}

func (p *patient) configure(endpoint string) {
	p.write("assay.yaml", fmt.Sprintf(`recipe:
  discover: [listing]
  sites: [{name: politifact, base: %q}]
  speakers: [nobody]
  models:
    annotate: {endpoint: main, model: m-1, temperature: 0.1}
    keywords: {endpoint: main, model: m-1}
    zero: {endpoint: main, model: m-1}
runtime:
  contact: you@example.org
  delay: 0s
  allow_private: [%q]
  endpoints:
    main: {provider: openai, base_url: %q%s}
`, p.server.URL, strings.TrimPrefix(p.server.URL, "http://"), p.server.URL+"/v1", endpoint))
}

func (p *patient) write(name, text string) {
	p.t.Helper()
	path := filepath.Join(p.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		p.t.Fatal(err)
	}
}

func (p *patient) examine(o DoctorOptions) Checkup {
	p.t.Helper()
	o.Open.Sleep = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	c, err := Examine(p.t.Context(), p.dir, o)
	if err != nil {
		p.t.Fatal(err)
	}
	for _, k := range c.Checks {
		if (k.State == CheckFail || k.State == CheckWarn) == (k.Help == "") {
			p.t.Errorf("%s is %s and its help is %q", k.Name, k.State, k.Help)
		}
		if strings.Contains(k.Help, "\n") {
			p.t.Errorf("the help of %s is longer than a line", k.Name)
		}
	}
	return c
}

// state is how the first check whose name begins with prefix came out, with what it says.
func state(c Checkup, prefix string) (state, says string) {
	for _, k := range c.Checks {
		if strings.HasPrefix(k.Name, prefix) {
			return k.State, k.Detail + " / " + k.Help
		}
	}
	return "", ""
}

func TestDoctorOfAHealthyWorkspace(t *testing.T) {
	p := newPatient(t)
	c := p.examine(DoctorOptions{})
	for _, name := range []string{"configuration", "contact", "keys", "disk", "lock", "prompts", "store", "index", "endpoint main", "canary main m-1", "robots politifact", "clock"} {
		if s, says := state(c, name); s != CheckOK {
			t.Errorf("%s is %s: %s", name, s, says)
		}
	}
	if c.Failed() != 0 || len(c.Canaries) != 1 || p.calls.Load() != 2 {
		t.Errorf("%d failed, canaries %+v, %d calls", c.Failed(), c.Canaries, p.calls.Load())
	}
	// What was found out is kept, and asked again only if told to.
	if c = p.examine(DoctorOptions{}); len(c.Canaries) != 1 || p.calls.Load() != 2 {
		t.Errorf("a second examination made %d calls", p.calls.Load()-2)
	}
	if c = p.examine(DoctorOptions{Offline: true}); len(c.Canaries) != 1 || p.calls.Load() != 2 || c.Failed() != 0 {
		t.Errorf("offline: %s", c.Text())
	}
	c = p.examine(DoctorOptions{Model: true})
	if p.calls.Load() < 50 || c.Injection == nil || c.Canaries[0].Round != 1 {
		t.Errorf("with the model: %d calls, %+v", p.calls.Load(), c.Canaries)
	}
	if s, _ := state(c, "injection, control"); s != CheckOK {
		t.Error("there is no control")
	}
}

func TestDoctorFinds(t *testing.T) {
	for _, tt := range []struct {
		name  string
		harm  func(p *patient)
		check string
		state string
		says  string
	}{
		{"broken configuration", func(p *patient) { p.write("assay.yaml", "recipe: {nam: x}") }, "configuration", CheckFail, `did you mean "name"`},
		{"no workspace", func(p *patient) { os.Remove(filepath.Join(p.dir, "assay.yaml")) }, "configuration", CheckFail, "run assay init, or name"},
		{"no contact", func(p *patient) {
			p.write("assay.yaml", strings.Replace(read(p, "assay.yaml"), "contact: you@example.org", `contact: ""`, 1))
		}, "contact", CheckWarn, "runtime.contact"},
		{"missing key", func(p *patient) { p.configure(", key_env: NO_SUCH_KEY") }, "key NO_SUCH_KEY", CheckFail, "export NO_SUCH_KEY"},
		{"server down", func(p *patient) { p.server.Close() }, "endpoint main", CheckFail, "cannot be reached"},
		{"refused key", func(p *patient) {
			p.models = func() (int, string) { return 401, `{"error":{"code":"invalid_api_key"}}` }
		}, "endpoint main", CheckFail, "credentials"},
		{"no list", func(p *patient) { p.models = func() (int, string) { return 404, `not here` } }, "endpoint main", CheckWarn, "no list"},
		{"another model", func(p *patient) { p.models = func() (int, string) { return 200, `{"data":[{"id":"m-2"}]}` } }, "endpoint main", CheckWarn, "none of them (m-2)"},
		{"ignores the schema", func(p *patient) { p.chat = func(string) (int, string) { return 200, "Hollin is in the north." } }, "canary", CheckWarn, "IGNORES the schema"},
		{"other token field", func(p *patient) {
			p.chat = func(body string) (int, string) {
				if strings.Contains(body, `"max_tokens"`) {
					return 400, `{"error":{"message":"Unsupported parameter: 'max_tokens'","code":"unsupported_parameter"}}`
				}
				return 200, `{"zone":"north","name":"x"}`
			}
		}, "canary", CheckFail, "token_field: max_completion_tokens"},
		{"no temperature", func(p *patient) {
			p.chat = func(body string) (int, string) {
				if strings.Contains(body, `"temperature"`) {
					return 400, `{"error":{"message":"temperature is not supported"}}`
				}
				return 200, `{"zone":"north","name":"x"}`
			}
		}, "canary", CheckWarn, "drop the temperature"},
		{"no such model", func(p *patient) {
			p.chat = func(string) (int, string) { return 404, `{"error":{"code":"model_not_found"}}` }
		}, "canary", CheckFail, "model_not_found"},
		{"empty account", func(p *patient) {
			p.chat = func(string) (int, string) { return 429, `{"error":{"code":"insufficient_quota"}}` }
		}, "canary", CheckFail, "quota"},
		{"empty account, told at once", func(p *patient) {
			p.models = func() (int, string) { return 429, `{"error":{"type":"insufficient_quota"}}` }
		}, "endpoint main", CheckFail, "no money left"},
		{"too many requests", func(p *patient) {
			p.models = func() (int, string) { return 429, `{"error":{"code":"rate_limit_exceeded"}}` }
		}, "endpoint main", CheckWarn, "lower rpm, tpm or concurrency"},
		{"too many calls", func(p *patient) {
			p.chat = func(string) (int, string) { return 429, `{"error":{"code":"rate_limit_exceeded"}}` }
		}, "canary", CheckFail, "lower rpm, tpm or concurrency"},
		{"service that fails", func(p *patient) { p.models = func() (int, string) { return 503, `<html>Unavailable` } }, "endpoint main", CheckWarn, "try again later"},
		{"moved", func(p *patient) { p.models = func() (int, string) { return 301, `` } }, "endpoint main", CheckFail, "redirects are not followed"},
		{"a portal before it", func(p *patient) {
			p.chat = func(string) (int, string) { return 203, `<html>Welcome to the portal` }
		}, "canary", CheckFail, "log-in page"},
		{"thoughts alone", func(p *patient) {
			p.chat = func(string) (int, string) {
				return 201, `{"choices":[{"message":{"content":""},"finish_reason":"length"}]}`
			}
		}, "canary", CheckFail, "turned down"},
		{"site on a private address", func(p *patient) {
			p.write("assay.yaml", strings.Replace(read(p, "assay.yaml"), "allow_private: [", "allow_private: [] # [", 1))
		}, "robots", CheckFail, "runtime.allow_private"},
		{"robots", func(p *patient) { p.robots = "User-agent: *\nDisallow: /\n" }, "robots", CheckFail, "may not be read"},
		{"slow clock", func(p *patient) { p.date = time.Now().Add(5 * time.Minute) }, "clock", CheckWarn, "set the clock"},
		{"wrong clock", func(p *patient) { p.date = time.Now().Add(-48 * time.Hour) }, "clock", CheckFail, "-48h"},
		{"full disk", func(p *patient) {
			p.write("assay.yaml", read(p, "assay.yaml")+"  reserve_mib: 900000000\n")
		}, "disk", CheckFail, "make room"},
		{"unknown prompt", func(p *patient) { p.write("prompts/nobody.txt", "--- user\nx") }, "prompts", CheckFail, "nobody.txt"},
		{"prompt without fence", func(p *patient) {
			p.write("prompts/raguard.txt", "--- user\n{{.Claim}} {{.Title}} {{.Text}}\n")
		}, "prompts", CheckWarn, "nothing between markers"},
		{"own prices", func(p *patient) {
			p.write(PricesName, "date: \"2026-09-01\"\nmodels: {m-1: {input: 1, output: 2}}\n")
		}, "prices", CheckOK, "prices.yaml of 2026-09-01"},
		{"prices without a date", func(p *patient) { p.write(PricesName, "models: {m-1: {input: 1, output: 2}}\n") }, "prices", CheckFail, "needs a date"},
		{"cautious profile", func(p *patient) { p.configure(", profile: ollama") }, "profile main", CheckOK, "num_ctx"},
		{"resolve", func(p *patient) {
			p.write("assay.yaml", read(p, "assay.yaml")+"  resolve: {a.example: \"127.0.0.1:1\"}\n")
		}, "resolve", CheckWarn, "a.example at 127.0.0.1:1"},
		{"allow-list", func(*patient) {}, "allow-list", CheckWarn, "127.0.0.1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPatient(t)
			tt.harm(p)
			c := p.examine(DoctorOptions{})
			s, says := state(c, tt.check)
			if s != tt.state || !strings.Contains(says, tt.says) {
				t.Errorf("%s is %s: %s\n%s", tt.check, s, says, c.Text())
			}
			if (c.Failed() > 0) != (tt.state == CheckFail) {
				t.Errorf("%d checks failed:\n%s", c.Failed(), c.Text())
			}
		})
	}
}

// A model without a price is told before a build meets it, with what follows.
func TestDoctorOnPrices(t *testing.T) {
	for _, tt := range []struct{ price, cap, state, says string }{
		{"", "", CheckWarn, "none for m-1: what they cost is not told"},
		{"", "max_usd: 5", CheckWarn, "a build with max_usd ends at their first call / name them in prices.yaml"},
		{", price: {input: 1, output: 2}", "max_usd: 5", CheckOK, "as shipped, of 2026-06-01"},
	} {
		p := newPatient(t)
		far := strings.Replace(read(p, "assay.yaml"), p.server.URL+"/v1", "https://model.example/v1", 1)
		p.write("assay.yaml", strings.Replace(far, "provider: openai", "provider: openai"+tt.price, 1)+"  "+tt.cap+"\n")
		if s, says := state(p.examine(DoctorOptions{Offline: true}), "prices"); s != tt.state || !strings.Contains(says, tt.says) {
			t.Errorf("%q with %q is %s: %s", tt.price, tt.cap, s, says)
		}
	}
}

// An endpoint that cannot be asked is one failure: what an earlier probe met is no second one.
func TestDoctorForgetsFailedProbes(t *testing.T) {
	p := newPatient(t)
	p.chat = func(string) (int, string) { return 404, `{"error":{"code":"model_not_found"}}` }
	if s, says := state(p.examine(DoctorOptions{}), "canary"); s != CheckFail || !strings.Contains(says, "model_not_found") {
		t.Fatalf("canary is %s: %s", s, says)
	}
	p.models = func() (int, string) { return 403, `{"error":{"message":"no access to this project"}}` }
	c := p.examine(DoctorOptions{})
	if s, says := state(c, "canary"); s != CheckSkip || c.Failed() != 1 || len(c.Canaries) != 0 {
		t.Errorf("canary is %s: %s\n%s", s, says, c.Text())
	}
	if c := p.examine(DoctorOptions{Offline: true}); c.Failed() != 0 {
		t.Errorf("offline:\n%s", c.Text())
	}
}

func read(p *patient, name string) string {
	data, err := os.ReadFile(filepath.Join(p.dir, name))
	if err != nil {
		p.t.Fatal(err)
	}
	return string(data)
}

// Keys are looked for by name, and shown nowhere.
func TestDoctorShowsNoKey(t *testing.T) {
	p := newPatient(t)
	p.configure(", key_env: SOME_KEY")
	p.models = func() (int, string) { return 401, `{"error":{"message":"bad key s3cret-value-9"}}` }
	t.Setenv("SOME_KEY", "s3cret-value-9")
	c := p.examine(DoctorOptions{Open: OpenOptions{Environ: []string{"SOME_KEY=s3cret-value-9"}}})
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text)+c.Text(), "s3cret") {
		t.Errorf("the key is shown:\n%s", c.Text())
	}
	if s, _ := state(c, "key SOME_KEY"); s != CheckOK {
		t.Errorf("the key is %s", s)
	}
}

// While another process holds the workspace, everything but the store is looked at.
func TestDoctorWhileLocked(t *testing.T) {
	p := newPatient(t)
	w, err := Open(t.Context(), p.dir, OpenOptions{Offline: true})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	c := p.examine(DoctorOptions{Model: true})
	if s, says := state(c, "lock"); s != CheckWarn || !strings.Contains(says, fmt.Sprint(os.Getpid())) {
		t.Errorf("lock is %s: %s", s, says)
	}
	for check, want := range map[string]string{"store": CheckSkip, "robots": CheckSkip, "injection": CheckSkip, "endpoint main": CheckOK, "canary": CheckOK} {
		if s, says := state(c, check); s != want {
			t.Errorf("%s is %s, want %s: %s", check, s, want, says)
		}
	}
	if c.Failed() != 0 {
		t.Error(c.Text())
	}
}

// A build probes only where it is told to, once, and never in replay; its report says what was found.
func TestBuildProbes(t *testing.T) {
	p := newPatient(t)
	build := func(o OpenOptions, b BuildOptions) BuildReport {
		t.Helper()
		w, err := Open(t.Context(), p.dir, o)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		rep, err := w.Build(t.Context(), b)
		if err != nil {
			t.Fatal(err)
		}
		return rep
	}
	imported := func(endpoint string) {
		p.configure(endpoint)
		p.write("assay.yaml", strings.Replace(read(p, "assay.yaml"), "discover: [listing]", "discover: [imported]", 1))
	}
	imported("")
	if rep := build(OpenOptions{}, BuildOptions{Until: KindLabel}); p.calls.Load() != 0 || len(rep.Canaries) != 0 {
		t.Errorf("unasked: %d calls, %+v", p.calls.Load(), rep.Canaries)
	}
	imported(", canary: true")
	for _, o := range []struct {
		open  OpenOptions
		build BuildOptions
	}{{OpenOptions{Replay: true}, BuildOptions{Until: KindLabel}}, {OpenOptions{Offline: true}, BuildOptions{DryRun: true}}, {OpenOptions{}, BuildOptions{Until: KindParse}}} {
		if build(o.open, o.build); p.calls.Load() != 0 {
			t.Errorf("%+v: %d calls", o, p.calls.Load())
		}
	}
	for range 2 {
		rep := build(OpenOptions{}, BuildOptions{Until: KindLabel})
		if p.calls.Load() != 2 || len(rep.Canaries) != 1 || rep.Canaries[0].Constrains != llm.FindingYes || !strings.Contains(rep.Text(false), "constrains to the schema") {
			t.Errorf("%d calls, %+v", p.calls.Load(), rep.Canaries)
		}
	}
}
