package assay

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"assay/llm"
)

// zeroStub answers about pairs, and about claims alone with what a test says.
func zeroStub(t *testing.T, alone func(n int) string) *httptest.Server {
	t.Helper()
	n := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if !strings.Contains(string(body), `_tokens":200`) && !strings.Contains(string(body), `_tokens":400`) {
			io.WriteString(w, stubAnswer(len(body)))
			return
		}
		n++
		content, _ := json.Marshal(alone(n))
		fmt.Fprintf(w, `{"id":"x","model":"stub-1","choices":[{"index":0,"message":{"role":"assistant","content":%s},"finish_reason":"stop"}],"usage":{"prompt_tokens":50,"completion_tokens":20,"total_tokens":70}}`, content)
	}))
	t.Cleanup(s.Close)
	return s
}

// zeroBuild is an open workspace and what a build of it says.
func zeroBuild(t *testing.T, f folder) (*Workspace, BuildReport) {
	t.Helper()
	t.Setenv("STUB_KEY", "secret")
	w, err := Open(t.Context(), f.dir, OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	rep, err := w.Build(t.Context(), BuildOptions{})
	if err != nil {
		closed(t, w)
		t.Fatal(err)
	}
	return w, rep
}

// Answers to claims alone that could not be read are told as what they are, by the build and by the report, and the
// release names every reply that was paid for.
func TestZeroAnswersThatCannotBeRead(t *testing.T) {
	stub := zeroStub(t, func(int) string { return "It depends on whom you ask." })
	f := newFolder(t, t.TempDir())
	f.write(ConfigName, strings.Replace(fmt.Sprintf(modelConfig, stub.URL), "rpm: 6000", "rpm: 6000, concurrency: 1", 1))
	var lines strings.Builder
	for i := range 5 {
		lines.WriteString(pairLine(i, "true"))
	}
	f.load("pairs", f.write("lines.jsonl", lines.String()))
	w, rep := zeroBuild(t, f)
	defer closed(t, w)
	want := "answers of 5 claims without a document: parse_failed 5"
	if text := rep.Text(false); !strings.Contains(text, "no claim has an answer without a document ("+want+")") || strings.Contains(text, "builtin") {
		t.Errorf("the build says:\n%s", text)
	}
	data, err := w.ReportData(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, section := range []string{"controls", "effects"} {
		if told := strings.Join(data.Missing[section], "\n"); !strings.Contains(told, want) {
			t.Errorf("section %s says %q, want %q", section, told, want)
		}
	}
	paid := namesWhatWasPaid(t, w, rep.Release.Dir)
	if paid["zero"] != 10 {
		t.Errorf("paid %v; want 2 attempts for each claim", paid)
	}
}

// Of replies that were asked for once more, the release names both.
func TestReleaseNamesEveryCall(t *testing.T) {
	stub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		content := `"I would rather tell you a story."`
		switch again := strings.Contains(string(body), `"assistant"`); {
		case again && strings.Contains(string(body), `_tokens":300`):
			content = `"{\"variants\": [\"wells of Averil\", \"deep wells\", \"water of Averil\"]}"`
		case again && strings.Contains(string(body), `_tokens":900`):
			content = `"{\"category\": \"science\", \"confidence\": 0.9}"`
		case again:
			content = `"{\"answer\": \"true\"}"`
		}
		fmt.Fprintf(w, `{"id":"x","model":"stub-1","choices":[{"index":0,"message":{"role":"assistant","content":%s},"finish_reason":"stop"}],"usage":{"prompt_tokens":50,"completion_tokens":20,"total_tokens":70}}`, content)
	}))
	defer stub.Close()
	f := newFolder(t, t.TempDir())
	config := strings.Replace(fmt.Sprintf(modelConfig, stub.URL), "evidence: [pairs]", "evidence: [search, pairs]\n  category_by: [rule, model]", 1)
	f.write(ConfigName, strings.Replace(config, "  models:\n", "  models:\n    category: {endpoint: stub, model: stub-1, max_tokens: 900}\n", 1))
	f.load("pairs", f.write("lines.jsonl", pairLine(1, "true")+pairLine(2, "false")))
	w, rep := zeroBuild(t, f)
	defer closed(t, w)
	paid := namesWhatWasPaid(t, w, rep.Release.Dir)
	for _, role := range []string{"keywords", "category", "zero", "annotate"} {
		if paid[role] < 2 || paid[role]%2 != 0 {
			t.Errorf("paid %v, want two of each role", paid)
		}
	}
}

// namesWhatWasPaid fails the test unless a release names every reply in the store, and counts them by role.
func namesWhatWasPaid(t *testing.T, w *Workspace, dir string) map[string]int {
	t.Helper()
	named := map[string]bool{}
	file, err := os.Open(filepath.Join(dir, "data", "annotations.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for in := bufio.NewScanner(file); in.Scan(); {
		var row struct {
			ID string `json:"id"`
		}
		if err := json.Unmarshal(in.Bytes(), &row); err != nil {
			t.Fatal(err)
		}
		named[row.ID] = true
	}
	paid := map[string]int{}
	for rec, err := range w.llm.Calls() {
		if err != nil {
			t.Fatal(err)
		}
		if rec.Outcome == "" || rec.Role == llm.RoleCanary {
			continue
		}
		paid[rec.Role]++
		if !named[rec.ID] {
			t.Errorf("the release does not name call %s of %s (%s)", rec.ID, rec.Role, rec.Outcome)
		}
	}
	total := 0
	for _, n := range paid {
		total += n
	}
	if len(named) != total {
		t.Errorf("the release names %d calls, paid for were %v", len(named), paid)
	}
	return paid
}
