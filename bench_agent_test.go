//go:build unix

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
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"assay/pipeline"
)

// The agentic search of the benchmarks: actions of a claim, and claims at once, which is also how many
// calls and searches are in flight at most.
const (
	agentActions = 8
	agentAtOnce  = 64
)

// BenchmarkAgent searches step by step for 500 claims, eight actions each, over stubs of a model that takes
// 200 ms and of a search engine that takes 50 ms, 64 claims at once. The ideal is that nothing but the stubs
// takes time: all their time over 64. In "pages" each search finds a page, which is fetched from one of 64
// hosts and read by the model; in "empty" it finds none. Both go through the program's own build, on disk.
//
//	wall-x-ideal  bar: at most 1.15
//	cpu-ms/action processor time of an action, that of the stubs included
func BenchmarkAgent(b *testing.B) {
	claims := 500
	if testing.Short() {
		claims = 64
	}
	for _, pages := range []bool{false, true} {
		name := "empty"
		if pages {
			name = "pages"
		}
		b.Run(name, func(b *testing.B) {
			var r ratios
			var actions int64
			var cpu float64
			for b.Loop() {
				s := &agentStub{model: 200 * time.Millisecond, search: 50 * time.Millisecond, pages: pages}
				w := s.workspace(b, claims)
				took := measure(b, func() { buildUntil(b, w, KindPlan) })
				ideal := s.slept.Load().Seconds() / agentAtOnce
				r.add(took, cost{ideal, 1})
				actions, cpu = s.chosen.Load(), took.cpu
				b.Logf("%d actions, %d model calls, %d searches: %.1f s, ideally %.1f s", actions, s.calls.Load(), s.searches.Load(), took.wall, ideal)
				if err := w.Close(); err != nil {
					b.Fatal(err)
				}
				if want := int64(claims * agentActions); actions != want {
					b.Fatalf("%d actions were taken, want %d", actions, want)
				}
			}
			b.ReportMetric(median(r.wall), "wall-x-ideal")
			b.ReportMetric(1000*cpu/float64(actions), "cpu-ms/action")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkAgentMemory is what the heap grows by from 500 claims to 5,000, with a model that takes 2 ms and
// searches that take 1 ms: what is held for a claim after it is done.
//
//	bytes/claim  of the live heap in the middle of the build
//	MiB-N        the live heap after N claims
func BenchmarkAgentMemory(b *testing.B) {
	from, to := 500, 5000
	if testing.Short() {
		from, to = 50, 500
	}
	for b.Loop() {
		s := &agentStub{model: 2 * time.Millisecond, search: time.Millisecond, pages: true}
		w := s.workspace(b, to)
		p := &heapAt{at: []int{from, to - 2*agentAtOnce}}
		if _, err := w.Build(b.Context(), BuildOptions{Until: KindPlan, Progress: p}); err != nil {
			b.Fatal(err)
		}
		if len(p.heap) != 2 {
			b.Fatalf("the heap was looked at %d times", len(p.heap))
		}
		b.ReportMetric((float64(p.heap[1])-float64(p.heap[0]))/float64(p.at[1]-p.at[0]), "bytes/claim")
		for i, n := range p.at {
			b.ReportMetric(float64(p.heap[i])/(1<<20), fmt.Sprintf("MiB-%d", n))
		}
		if err := w.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(0, "ns/op")
}

// heapAt looks at the live heap when so many claims are done.
type heapAt struct {
	at   []int
	heap []uint64
}

func (h *heapAt) Update(t pipeline.Tally) {
	if strings.HasPrefix(t.Stage, KindPlan+"/") && len(h.heap) < len(h.at) && t.Done == h.at[len(h.heap)] {
		h.heap = append(h.heap, liveHeap())
	}
}

// An agentStub is the model, the search engine and the pages of the benchmarks. Its model takes a new
// action each time, and never finds that the evidence suffices.
type agentStub struct {
	model, search time.Duration
	pages         bool

	slept                   sleeping
	calls, chosen, searches atomic.Int64
}

// sleeping sums what stubs were told to take.
type sleeping struct{ atomic.Int64 }

func (s *sleeping) take(d time.Duration) {
	s.Add(int64(d))
	time.Sleep(d)
}

func (s *sleeping) Load() time.Duration { return time.Duration(s.Int64.Load()) }

// agentWords tell the queries of a claim apart.
var agentWords = [agentActions]string{"wells", "survey", "register", "council", "drought", "pumps", "census", "archive"}

var (
	agentClaim  = regexp.MustCompile(`Village number (\d+) `)
	agentTaken  = regexp.MustCompile(`(?m)^web_(?:support|refute) for s1 `)
	agentNumber = regexp.MustCompile(`^Village number (\d+) (\w+)`)
)

func (s *agentStub) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	rw.Header().Set("Content-Type", "application/json")
	switch {
	case r.URL.Path == "/v1/chat/completions":
		s.complete(rw, r)
	case r.URL.Path == "/search":
		s.searches.Add(1)
		s.slept.take(s.search)
		m := agentNumber.FindStringSubmatch(r.URL.Query().Get("q"))
		if !s.pages || m == nil {
			io.WriteString(rw, `{"results":[]}`)
			return
		}
		n, _ := strconv.Atoi(m[1])
		fmt.Fprintf(rw, `{"results":[{"url":"http://p%02d.example/%s/%s"}]}`, n%agentAtOnce, m[1], m[2])
	case r.URL.Path == "/robots.txt":
		http.NotFound(rw, r)
	default:
		rw.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, rest, _ := strings.Cut(r.URL.Path, "/")
		number, word, _ := strings.Cut(rest, "/")
		fmt.Fprintf(rw, "<html><head><title>The %s of village number %s</title></head><body><article>", word, number)
		for i := range 12 {
			fmt.Fprintf(rw, "<p>In village number %s the %s was looked at %d times, as the %s of year %d tells, and somebody counted what there was to count.</p>",
				number, word, i, agentWords[i%len(agentWords)], 1900+i)
		}
		io.WriteString(rw, "</article></body></html>")
	}
}

func (s *agentStub) complete(rw http.ResponseWriter, r *http.Request) {
	var q struct {
		Messages []struct {
			Content string `json:"content"`
		} `json:"messages"`
	}
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		http.Error(rw, err.Error(), http.StatusBadRequest)
		return
	}
	s.calls.Add(1)
	s.slept.take(s.model)
	answer := map[string]any{"quote": "", "stance": "neutral", "relevance": 1, "credibility_shift": 0, "attribution": "none", "attributed_to": "", "event_date": ""}
	if asked := q.Messages[len(q.Messages)-1].Content; strings.Contains(asked, "Actions so far:") {
		s.chosen.Add(1)
		taken := len(agentTaken.FindAllString(asked, -1))
		tool := []string{"web_support", "web_refute"}[taken%2]
		n := "0"
		if m := agentClaim.FindStringSubmatch(asked); m != nil {
			n = m[1]
		}
		answer = map[string]any{"action": tool, "query": "Village number " + n + " " + agentWords[taken%agentActions] + " " + agentWords[(taken+1)%agentActions], "subclaim_id": "s1", "why": "nothing settles it yet"}
	}
	content, err := json.Marshal(answer)
	if err == nil {
		content, err = json.Marshal(string(content))
	}
	if err != nil {
		http.Error(rw, err.Error(), http.StatusInternalServerError)
		return
	}
	fmt.Fprintf(rw, `{"id":"x","object":"chat.completion","model":"bench","choices":[{"index":0,"message":{"role":"assistant","content":%s},"finish_reason":"stop"}],"usage":{"prompt_tokens":100,"completion_tokens":20,"total_tokens":120}}`, content)
}

// workspace is one of n imported claims that the stub's model searches for.
func (s *agentStub) workspace(b *testing.B, n int) *Workspace {
	b.Helper()
	server := httptest.NewServer(s)
	b.Cleanup(server.Close)
	address := strings.TrimPrefix(server.URL, "http://")
	var hosts []string
	for i := range agentAtOnce {
		hosts = append(hosts, fmt.Sprintf("p%02d.example: %q", i, address))
	}
	w := benchWorkspace(b, fmt.Sprintf(`recipe:
  name: bench
  discover: [imported]
  evidence: [search]
  speakers: []
  dates: {from: "", to: ""}
  planner:
    policy: gpe
    agent: {tools: [web_support, web_refute], engines: {"*": searxng}, per_action: 1, per_subclaim: %d, max_actions: %d}
  models:
    plan: {endpoint: stub, model: bench, max_tokens: 300}
    analyse: {endpoint: stub, model: bench, max_tokens: 300}
runtime:
  contact: bench@bench.example
  workers: %d
  delay: 0s
  host_delay: {}
  searxng: {base: %q, at_once: %d}
  allow_private: [%q]
  resolve: {%s}
  endpoints:
    stub: {provider: openai, base_url: %q, concurrency: %d}
`, agentActions, agentActions, agentAtOnce, server.URL, agentAtOnce, address, strings.Join(hosts, ", "), server.URL+"/v1", agentAtOnce))
	path := filepath.Join(w.Dir, "claims.jsonl")
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	out := bufio.NewWriter(f)
	for i := range n {
		fmt.Fprintf(out, `{"claim": "Village number %d has %d wells.", "verdict": "true", "date": "2021-06-01", "title": "Village %d", "text": "Somebody counted the wells of village number %d and wrote down how many there were.", "url": "https://a.example/%d", "label": "supporting"}`+"\n", i, i+2, i, i, i)
	}
	if err := out.Flush(); err != nil {
		b.Fatal(err)
	}
	if err := f.Close(); err != nil {
		b.Fatal(err)
	}
	if _, err := w.Import(b.Context(), "pairs", path, ImportOptions{}); err != nil {
		b.Fatal(err)
	}
	return w
}
