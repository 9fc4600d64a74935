package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// A lab is a workspace with pairs of invented claims and posts, and a counting stub of a model.
type lab struct {
	t     *testing.T
	dir   string
	model *modelStub
	env   []string

	refreshed string // what the refresh of a route said
}

// newLab makes a lab of n claims with one document each. extra is appended to the recipe.
func newLab(t *testing.T, n int, extra string) *lab {
	t.Helper()
	l := &lab{t: t, dir: t.TempDir(), model: newModelStub(t)}
	l.configure(extra)
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	for i := range n {
		verdict := []string{"true", "false"}[i%2]
		if err := e.Encode(map[string]string{
			"claim":   fmt.Sprintf("Village number %d has %d wells.", i, i+2),
			"title":   fmt.Sprintf("Wells of village %d", i),
			"text":    fmt.Sprintf("I counted the wells of village number %d on Sunday and there were %d of them.", i, i+2),
			"url":     fmt.Sprintf("https://www.reddit.com/r/wells/comments/w%04d/wells/", i),
			"label":   "supporting",
			"verdict": verdict,
		}); err != nil {
			t.Fatal(err)
		}
	}
	pairs := filepath.Join(l.dir, "pairs.jsonl")
	if err := os.WriteFile(pairs, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	l.must(0, "import", "pairs", pairs)
	return l
}

// configure writes the lab's assay.yaml: keyword variants, zero-context control and quote check are
// off, so that one call is one label.
func (l *lab) configure(extra string) {
	l.t.Helper()
	text := fmt.Sprintf(`recipe:
  name: lab
  discover: [imported]
  evidence: [pairs]
  planner: {variants: 0}
  label: {zero_context: false, quote_check: false}
  models:
    annotate: {endpoint: stub, model: stub-1, temperature: 0, max_tokens: 200}
    keywords: {endpoint: stub, model: stub-1, max_tokens: 200}
    zero: {endpoint: stub, model: stub-1, max_tokens: 200}
%sruntime:
  workers: 4
  endpoints:
    stub: {provider: openai, base_url: %q, concurrency: 4}
`, extra, l.model.server.URL+"/v1")
	if err := os.WriteFile(filepath.Join(l.dir, "assay.yaml"), []byte(text), 0o644); err != nil {
		l.t.Fatal(err)
	}
}

// command is assay with arguments in the lab's workspace.
func (l *lab) command(args ...string) *exec.Cmd {
	cmd := exec.Command("assay", append([]string{"-q", "-C", l.dir}, args...)...)
	cmd.Env = append(os.Environ(), l.env...)
	return cmd
}

// must runs assay and checks its exit code; it returns what went to stdout and stderr.
func (l *lab) must(code int, args ...string) (stdout, stderr string) {
	l.t.Helper()
	cmd := l.command(args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if got := cmd.ProcessState.ExitCode(); got != code {
		l.t.Fatalf("assay %s: exit %d (%v), want %d\n%s%s", strings.Join(args, " "), got, err, code, out.String(), errs.String())
	}
	return out.String(), errs.String()
}

// build builds and returns the report.
func (l *lab) build(code int, args ...string) report {
	l.t.Helper()
	out, _ := l.must(code, append([]string{"build", "--json"}, args...)...)
	var r report
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		l.t.Fatalf("report: %v\n%s", err, out)
	}
	return r
}

// report is what the tests read of a build's JSON.
type report struct {
	LLM struct {
		Calls       int `json:"calls"`
		Hits        int `json:"hits"`
		Tokens      int `json:"tokens"`
		SavedTokens int `json:"saved_tokens"`
		USD         float64
	} `json:"llm"`
	Fetch    struct{ Requests, Hits int } `json:"fetch"`
	Pipeline struct {
		Ran    int `json:"ran"`
		Failed int `json:"failed"`
		Stages []struct {
			Name       string         `json:"name"`
			Ran        int            `json:"ran"`
			Failed     int            `json:"failed"`
			Reasons    map[string]int `json:"reasons"`
			Exclusions map[string]int `json:"exclusions"`
		} `json:"stages"`
	} `json:"pipeline"`
	Labels    map[string]int `json:"labels"`
	BadMarkup []string       `json:"bad_markup"`
	Release   struct {
		Dir    string         `json:"dir"`
		ID     string         `json:"id"`
		Counts map[string]int `json:"counts"`
	} `json:"release"`
}

// ran is how many items of a stage ran.
func (r report) ran(stage string) int {
	for _, s := range r.Pipeline.Stages {
		if s.Name == stage {
			return s.Ran
		}
	}
	return 0
}

// released reads the pairs of a release.
func released(t *testing.T, dir, table string) []map[string]any {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "data", table+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var rows []map[string]any
	for _, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		if line == "" {
			continue
		}
		var row map[string]any
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
	return rows
}

// A modelStub speaks the chat protocol, counts, and answers as reply says.
type modelStub struct {
	server *httptest.Server

	mu       sync.Mutex
	bodies   []string
	prompts  map[string]int
	answered int

	// How it answers; change it with set alone, for its server may be reading it.
	reply    func(body string) (status int, content, finish string)
	delay    time.Duration
	onAnswer func(n int) // after the n-th answer was written
	names    []string    // of the model that answers, in turn
}

func newModelStub(t *testing.T) *modelStub {
	m := &modelStub{prompts: map[string]int{}, names: []string{"stub-1-2026"}}
	m.reply = func(string) (int, string, string) {
		return http.StatusOK, `{"quote":"","reason":"says nothing of the kind","answer":"unrelated"}`, "stop"
	}
	m.server = httptest.NewServer(m)
	t.Cleanup(m.server.Close)
	return m
}

func (m *modelStub) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	sum := sha256.Sum256(body)
	m.mu.Lock()
	m.bodies = append(m.bodies, string(body))
	m.prompts[hex.EncodeToString(sum[:])]++
	reply, delay, name := m.reply, m.delay, m.names[len(m.bodies)%len(m.names)]
	m.mu.Unlock()
	if delay > 0 {
		time.Sleep(delay)
	}
	status, content, finish := reply(string(body))
	rw.Header().Set("Content-Type", "application/json")
	rw.WriteHeader(status)
	if status == http.StatusOK {
		content, _ := json.Marshal(content)
		fmt.Fprintf(rw, `{"id":"x","object":"chat.completion","model":%q,"choices":[{"index":0,"message":{"role":"assistant","content":%s},"finish_reason":%q}],"usage":{"prompt_tokens":100,"completion_tokens":20,"total_tokens":120}}`, name, content, finish)
	} else {
		io.WriteString(rw, content)
	}
	m.mu.Lock()
	m.answered++
	n, hook := m.answered, m.onAnswer
	m.mu.Unlock()
	if hook != nil {
		hook(n)
	}
}

// set changes how the stub answers.
func (m *modelStub) set(change func(m *modelStub)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change(m)
}

// sent returns the bodies of the requests so far.
func (m *modelStub) sent() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]string{}, m.bodies...)
}

// requests returns how many requests came, and how many different ones.
func (m *modelStub) requests() (all, distinct int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, n := range m.prompts {
		all += n
	}
	return all, len(m.prompts)
}

// sums lists the hashes of a release's files.
func sums(t *testing.T, dir string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
