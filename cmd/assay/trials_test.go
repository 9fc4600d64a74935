package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A killed build goes on where it was: no label is lost, no finished call is made again, and the
// release is that of an uninterrupted build.
func TestHD16ResumeAfterKill(t *testing.T) {
	calm := newLab(t, 50, "")
	want := sums(t, calm.build(0).Release.Dir)

	l := newLab(t, 50, "")
	l.model.set(func(m *modelStub) { m.delay = 20 * time.Millisecond })
	cmd := l.command("build")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	hook := func(n int) {
		if n >= 20 {
			cmd.Process.Signal(syscall.SIGKILL)
		}
	}
	l.model.set(func(m *modelStub) { m.onAnswer = hook })
	if err := cmd.Wait(); err == nil {
		t.Fatal("the build was not killed")
	}
	l.model.set(func(m *modelStub) { m.onAnswer = nil })
	r := l.build(0)
	all, distinct := l.model.requests()
	if distinct != 50 || all > 54 {
		t.Errorf("the stub saw %d requests, %d different; want 50 different and at most 54", all, distinct)
	}
	if got := sums(t, r.Release.Dir); got != want {
		t.Errorf("release after a kill:\n%s\nuninterrupted:\n%s", got, want)
	}
	again := l.build(0)
	if after, _ := l.model.requests(); after != all || again.LLM.Calls != 0 {
		t.Errorf("the third build made %d requests", after-all)
	}
}

// The cache key is the whole request: a changed word or temperature asks again, and going back does not.
func TestHD17CacheFollowsPromptAndSettings(t *testing.T) {
	l := newLab(t, 20, "")
	calls := func() int {
		before, _ := l.model.requests()
		l.build(0)
		after, _ := l.model.requests()
		return after - before
	}
	reword := func(old, new string) {
		prompts := filepath.Join(l.dir, "prompts")
		if err := os.MkdirAll(prompts, 0o755); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile("../../annotate/prompts/raguard.txt")
		if err != nil {
			t.Fatal(err)
		}
		changed := strings.Replace(string(text), old, new, 1)
		if changed == string(text) {
			t.Fatalf("the prompt holds no %q", old)
		}
		if err := os.WriteFile(filepath.Join(prompts, "raguard.txt"), []byte(changed), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	first := l.build(0)
	if all, _ := l.model.requests(); all != 20 {
		t.Errorf("run A: %d calls, want 20", all)
	}
	reword("reading exam", "reading test")
	if got := calls(); got != 20 {
		t.Errorf("run B, one word changed: %d calls, want 20", got)
	}
	if err := os.RemoveAll(filepath.Join(l.dir, "prompts")); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(l.dir, "assay.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	warm := strings.Replace(string(text), "temperature: 0,", "temperature: 0.7,", 1)
	if err := os.WriteFile(filepath.Join(l.dir, "assay.yaml"), []byte(warm), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := calls(); got != 20 {
		t.Errorf("run C, temperature 0.7: %d calls, want 20", got)
	}
	if err := os.WriteFile(filepath.Join(l.dir, "assay.yaml"), text, 0o644); err != nil {
		t.Fatal(err)
	}
	if got := calls(); got != 0 {
		t.Errorf("run D, as A: %d calls, want 0", got)
	}
	last := l.build(0)
	if first.Release.ID != last.Release.ID {
		t.Errorf("release of D is %s, of A %s", last.Release.ID, first.Release.ID)
	}
	for _, row := range released(t, last.Release.Dir, "annotations") {
		if row["template_sha256"] == "" || row["params"] == nil {
			t.Errorf("annotation without prompt hash or settings: %v", row)
		}
	}
}

// A second opener ends at once with one line; a lock left by a killed run hurts nobody.
func TestHD18SecondRunAndStaleLock(t *testing.T) {
	l := newLab(t, 60, "")
	l.model.set(func(m *modelStub) { m.delay = 300 * time.Millisecond })
	first := l.command("build")
	started := make(chan struct{})
	hook := func(n int) {
		if n == 1 {
			close(started)
		}
	}
	l.model.set(func(m *modelStub) { m.onAnswer = hook })
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, started)
	begin := time.Now()
	_, stderr := l.must(5, "build")
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("the second build took %s to give up", took)
	}
	if lines := strings.Count(strings.TrimSpace(stderr), "\n"); lines != 0 || !strings.Contains(stderr, "holds the store") {
		t.Errorf("stderr = %q, want one line that says who holds the store", stderr)
	}
	// Watching works while a build runs.
	if out, _ := l.must(0, "status"); !strings.Contains(out, "a build is running") {
		t.Errorf("status while building = %q", out)
	}
	l.must(0, "ls", "parse")
	l.must(0, "backup", filepath.Join(l.dir, "while.backup"))
	if err := first.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	first.Wait()
	l.model.set(func(m *modelStub) { m.delay, m.onAnswer = 0, nil })
	if r := l.build(0); r.Labels["unrelated"] != 60 {
		t.Errorf("after a killed run: labels %v", r.Labels)
	}
}

// waitFor waits for something that a subprocess does.
func waitFor(t *testing.T, happened <-chan struct{}) {
	t.Helper()
	select {
	case <-happened:
	case <-time.After(time.Minute):
		t.Fatal("nothing happened for a minute")
	}
}

// A run from the cache costs nothing and says what it saved.
func TestHD27CachedRunsCostNothing(t *testing.T) {
	l := newLab(t, 40, "")
	first, second := l.build(0), l.build(0)
	if first.LLM.Calls != 40 || first.LLM.Tokens != 4800 || first.LLM.Hits != 0 {
		t.Errorf("run 1: %+v, want 40 calls and 4,800 tokens", first.LLM)
	}
	if second.LLM.Calls != 0 || second.LLM.Tokens != 0 || second.LLM.USD != 0 || second.LLM.Hits != 40 || second.LLM.SavedTokens != 4800 {
		t.Errorf("run 2: %+v, want 0 calls, 40 hits and 4,800 tokens saved", second.LLM)
	}
}

// Replies that wrap the answer still give it, in one call each.
func TestHD14WrappedAnswers(t *testing.T) {
	l := newLab(t, 4, "")
	answer := `{"quote":"","reason":"it lists a, b,} and stops, }","answer":"true"}`
	shapes := []string{
		"```json\n" + answer + "\n```",
		"Here is my answer:\n" + answer + "\nHope this helps",
		strings.Replace(answer, `"true"}`, `"true",}`, 1),
		answer,
	}
	reply := func(body string) (int, string, string) {
		for i, s := range shapes {
			if strings.Contains(body, fmt.Sprintf("Village number %d has", i)) {
				return http.StatusOK, s, "stop"
			}
		}
		return http.StatusBadRequest, `{"error":{"message":"which village?"}}`, ""
	}
	l.model.set(func(m *modelStub) { m.reply = reply })
	r := l.build(0)
	if all, _ := l.model.requests(); all != 4 || r.Labels["supporting"] != 2 || r.Labels["misleading"] != 2 {
		t.Errorf("%d calls, labels %v", all, r.Labels)
	}
	for _, row := range released(t, r.Release.Dir, "annotations") {
		if raw, _ := row["raw"].(string); !strings.Contains(raw, "it lists a, b,} and stops, }") {
			t.Errorf("raw reply = %q", raw)
		}
	}
}

// An empty reply that ran out of tokens is no label, and its tokens are counted.
func TestHD15TruncatedRepliesAreNoLabels(t *testing.T) {
	l := newLab(t, 2, "")
	good := l.model.reply
	reply := func(body string) (int, string, string) {
		if strings.Contains(body, "Village number 0 has") {
			return http.StatusOK, "", "length"
		}
		return good(body)
	}
	l.model.set(func(m *modelStub) { m.reply = reply })
	r := l.build(3)
	all, _ := l.model.requests()
	if all != 3 || r.LLM.Tokens != 360 {
		t.Errorf("%d requests and %d tokens, want 3 and 360", all, r.LLM.Tokens)
	}
	if r.Labels["unrelated"] != 1 || len(released(t, r.Release.Dir, "pairs")) != 1 {
		t.Errorf("labels %v; the cut reply became one", r.Labels)
	}
	for _, body := range l.model.sent() {
		if !strings.Contains(body, `"temperature":0,`) && !strings.Contains(body, `"temperature":0}`) {
			t.Errorf("temperature 0 is not in the request: %s", body)
		}
	}
	// It is not cached as an answer: a retry asks again and gets one.
	l.model.set(func(m *modelStub) { m.reply = good })
	if again := l.build(0, "--retry-failed"); again.Labels["unrelated"] != 2 {
		t.Errorf("after a retry: labels %v", again.Labels)
	}
}

// An answer of a web archive that cannot be read is named, and the import is partial.
func TestUnreadableAnswersOfAnArchiveAreTold(t *testing.T) {
	l := newLab(t, 1, "")
	record := func(address, block string) string {
		return fmt.Sprintf("WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: %s\r\nWARC-Date: 2026-02-03T10:00:00Z\r\nContent-Length: %d\r\n\r\n%s\r\n\r\n", address, len(block), block)
	}
	good := record("http://a.example/1", "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>one")
	for _, tt := range []struct {
		name, file string
		code       int
		problems   []string
	}{
		{"whole", good, 0, []string{}},
		{"no head", good + record("http://a.example/2", "<p>two"), 3, []string{"response at 177: no_http_head: http://a.example/2"}},
		{"a look-up", good + record("dns:a.example", "a.example. 60 IN A 192.0.2.1\n"), 0, []string{}},
	} {
		path := filepath.Join(t.TempDir(), "crawl.warc")
		if err := os.WriteFile(path, []byte(tt.file), 0o644); err != nil {
			t.Fatal(err)
		}
		files, _ := facts[[]imported](l, tt.code, "import", "warc", path)
		if d := cmp.Diff(tt.problems, files[0].Problems); d != "" {
			t.Errorf("%s: %s", tt.name, d)
		}
	}
}
