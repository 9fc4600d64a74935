package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// agentWays are the actions that the stub's model takes for each claim, and what it looks for.
var (
	agentWays  = []string{"wells", "register", "council", "drought"}
	agentClaim = regexp.MustCompile(`Village number (\d+) `)
	agentQuery = regexp.MustCompile(`^Village number (\d+) (\w+)`)
	agentTaken = regexp.MustCompile(`web_(?:support|refute) for s1 `)
)

// agentLab is a workspace of n claims for which a stub of a model searches step by step, four actions each,
// through a stub of SearXNG; each search finds a page, which the model reads and labels.
func agentLab(t *testing.T, n, workers int) (*lab, *book, string) {
	t.Helper()
	b, w := newBook(), newWeb(t)
	for i := range n {
		for _, word := range agentWays {
			w.on(fmt.Sprintf("pages.example/%d/%s", i, word), shows(fmt.Sprintf("<html><head><title>The %s of village number %d</title></head><body><article><p>In village number %d somebody looked at the %s on Sunday and wrote a long report about it.</p>"+
				"<p>The report of village number %d names the %s %d times, and nobody has read it to the end so far.</p></article></body></html>", word, i, i, word, i, word, i+3)))
		}
	}
	search := b.over(t, "search", http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "application/json")
		m := agentQuery.FindStringSubmatch(r.URL.Query().Get("q"))
		if m == nil {
			fmt.Fprint(rw, `{"results":[]}`)
			return
		}
		fmt.Fprintf(rw, `{"results":[{"url":"http://pages.example/%s/%s"}]}`, m[1], m[2])
	}))
	address := strings.TrimPrefix(search.URL, "http://")
	l := newSite(t, w, nil, setup{
		"recipe.discover":        "[imported]",
		"recipe.models":          stubbed,
		"recipe.planner":         fmt.Sprintf(`{policy: gpe, follow_links: false, agent: {tools: [web_support, web_refute], engines: {"*": searxng}, per_action: 1, max_actions: %d}}`, len(agentWays)),
		"recipe.label":           "{quote_check: false}",
		"runtime.workers":        fmt.Sprint(workers),
		"runtime.searxng":        fmt.Sprintf("{base: %q, at_once: 4}", search.URL),
		"runtime.allow_private":  fmt.Sprintf("[%q]", address),
		"runtime.resolve":        fmt.Sprintf("{pages.example: %q}", b.over(t, "web", w).Listener.Addr().String()),
		"runtime.endpoints.stub": `{provider: openai, base_url: "http://127.0.0.1:1/v1", concurrency: 4}`,
	})
	l.model.set(func(m *modelStub) {
		m.reply = func(body string) (int, string, string) {
			answer := map[string]any{"answer": "unknown"}
			switch {
			case strings.Contains(body, "Actions so far:"):
				taken := len(agentTaken.FindAllString(body[strings.Index(body, "Actions so far:"):], -1))
				answer = map[string]any{"action": []string{"web_support", "web_refute"}[taken%2], "subclaim_id": "s1", "why": "nothing settles it yet",
					"query": "Village number " + agentClaim.FindStringSubmatch(body)[1] + " " + agentWays[taken%len(agentWays)]}
			case strings.Contains(body, "credibility_shift"):
				answer = map[string]any{"quote": "", "stance": "neutral", "relevance": 1, "credibility_shift": 0, "attribution": "none", "attributed_to": "", "event_date": ""}
			case strings.Contains(body, "Sunday"):
				answer = map[string]any{"quote": "", "reason": "says nothing of the kind", "answer": "unrelated"}
			}
			text, err := json.Marshal(answer)
			if err != nil {
				return http.StatusInternalServerError, err.Error(), ""
			}
			return http.StatusOK, string(text), "stop"
		}
	})
	var pairs strings.Builder
	for i := range n {
		fmt.Fprintf(&pairs, `{"claim": "Village number %d has %d wells.", "verdict": "true", "date": "2021-06-01", "title": "Village %d", "text": "Somebody counted the wells of village number %d.", "url": "https://a.example/%d", "label": "supporting"}`+"\n", i, i+2, i, i, i)
	}
	model := b.over(t, "model", l.model).URL
	l.env = b.env(0, model)
	l.must(0, "import", "pairs", l.write(filepath.Join(l.dir, "pairs.jsonl"), pairs.String()))
	return l, b, model
}

// A search step by step that is killed at any moment goes on from its last finished action: no action is
// paid twice, but for what was in flight, and the release is that of a build that nobody disturbed, with one
// worker as with sixteen.
func TestAgentKillAtRandomMoments(t *testing.T) {
	t.Parallel()
	kills, n := 16, 24
	if testing.Short() {
		kills, n = 4, 12
	}
	limit := map[string]int{"web": 1, "model": 4, "search": 4}
	calm, calmBook, _ := agentLab(t, n, 4)
	first := calm.build(0)
	want := tables(t, first.Release.Dir)
	calls, searches := calmBook.distinct("model"), calmBook.distinct("search")
	if searches != len(agentWays)*n || calls != (3*len(agentWays)+1)*n || first.Release.Counts["pairs"] != len(agentWays)*n {
		t.Fatalf("%d searches, %d calls, %d pairs", searches, calls, first.Release.Counts["pairs"])
	}
	calmBook.check(t, limit)
	for _, workers := range []int{1, 16} {
		l, _, _ := agentLab(t, n, workers)
		if got := tables(t, l.build(0).Release.Dir); got != want {
			t.Errorf("release of %d workers (-4 workers +%d):\n%s", workers, workers, cmp.Diff(want, got))
		}
	}

	rng := rand.New(rand.NewPCG(5, 5))
	moments := []string{"model asked", "model answered", "search asked", "search answered", "web asked", "web answered", "clock"}
	l, b, model := agentLab(t, n, 4)
	run := 0
	for k := 0; k < kills; {
		run++
		l.env = b.env(run, model)
		cmd := l.command("build")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		timer := killAt(b, cmd, moments[rng.IntN(len(moments))], rng)
		err := cmd.Wait()
		timer.Stop()
		b.aim(nil, "", 0)
		if err == nil { // it was done before its moment came
			agentFinish(t, l, b, model, run, want, calls, searches, limit)
			l, b, model = agentLab(t, n, 4)
			run = 0
			continue
		}
		if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
			t.Fatalf("run %d ended by itself: %v", run, err)
		}
		k++
	}
	agentFinish(t, l, b, model, run+1, want, calls, searches, limit)
}

// retrieved is when a page was retrieved, which is another moment in every workspace.
var retrieved = regexp.MustCompile(`"retrieved_at":"[^"]*"`)

// tables are the tables of a release, but for the moments at which pages were retrieved.
func tables(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	files, err := filepath.Glob(filepath.Join(dir, "data", "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s has the tables %v, %v", dir, files, err)
	}
	for _, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&b, "%s\n%s", filepath.Base(path), retrieved.ReplaceAll(data, nil))
	}
	return b.String()
}

// killAt kills a build when its moment comes, or after a while.
func killAt(b *book, cmd *exec.Cmd, moment string, rng *rand.Rand) *time.Timer {
	after := time.Hour
	if moment == "clock" {
		after = time.Duration(rng.IntN(600)) * time.Millisecond
	} else {
		b.aim(cmd, moment, 1+rng.IntN(20))
	}
	return time.AfterFunc(after, func() { cmd.Process.Signal(syscall.SIGKILL) })
}

// agentFinish lets a build come to its end and looks at all that were before it.
func agentFinish(t *testing.T, l *lab, b *book, model string, run int, want string, calls, searches int, limit map[string]int) {
	t.Helper()
	l.env = b.env(run, model)
	r := l.build(0)
	if got := tables(t, r.Release.Dir); got != want {
		t.Errorf("release (-undisturbed +after kills):\n%s", cmp.Diff(want, got))
	}
	b.check(t, limit)
	if got := b.distinct("model"); got != calls {
		t.Errorf("%d different calls, want %d", got, calls)
	}
	if got := b.distinct("search"); got != searches {
		t.Errorf("%d different searches, want %d", got, searches)
	}
	if again := l.build(0); again.LLM.Calls != 0 || again.Fetch.Requests != 0 {
		t.Errorf("the build after it made %d calls and %d requests", again.LLM.Calls, again.Fetch.Requests)
	}
}
