//go:build unix

package assay

import (
	"bufio"
	"errors"
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

	"assay/annotate"
)

// The corpus of the published RAGuard release by size, and the endpoint that labels it.
const (
	labelClaims    = 2648
	labelDocuments = 16331
	labelAtOnce    = 64
	labelLatency   = 200 * time.Millisecond
)

// BenchmarkLabels labels a corpus of RAGuard's size through the program's own build, on disk, over a stub that
// takes 200 ms and 64 calls at once, builds it again, and then reads every stored reply again because the
// protocol has a new version.
//
//	rate/ideal        calls a second, of 64 / 200 ms; bar: at least 0.95
//	anon-MiB          most memory of its own during the three builds, the stub's included; bar: at most 500
//	peak-MiB          the same with the store's files, which are mapped
//	again-calls       calls of the second build; bar: 0
//	again-s           its time
//	relabel-calls     calls of the build with the new version; bar: 0
//	relabel-s         its time
func BenchmarkLabels(b *testing.B) {
	claims, documents := labelClaims, labelDocuments
	if testing.Short() {
		claims, documents = 100, 617
	}
	for b.Loop() {
		stub := &labelStub{}
		w := stub.workspace(b, claims, documents)
		most := watchMemory()
		first := measure(b, func() { buildUntil(b, w, KindLabel) })
		calls := stub.calls.Load()
		if want := int64(claims + documents); calls != want {
			b.Fatalf("%d calls, want %d", calls, want)
		}
		again := measure(b, func() { buildUntil(b, w, KindLabel) })
		extra := stub.calls.Load() - calls

		protocol := &annotate.Protocols[0]
		protocol.Version++
		relabel := measure(b, func() { buildUntil(b, w, KindLabel) })
		protocol.Version--
		b.ReportMetric(float64(calls)*labelLatency.Seconds()/labelAtOnce/first.wall, "rate/ideal")
		b.ReportMetric(1000*first.cpu/float64(calls), "cpu-ms/call")
		b.ReportMetric(most(), "anon-MiB")
		b.ReportMetric(statusMiB("VmHWM"), "peak-MiB")
		b.ReportMetric(float64(extra), "again-calls")
		b.ReportMetric(again.wall, "again-s")
		b.ReportMetric(float64(stub.calls.Load()-calls-extra), "relabel-calls")
		b.ReportMetric(relabel.wall, "relabel-s")
		if err := w.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(0, "ns/op")
}

// A labelStub is the model: it takes its time, and answers by what is asked.
type labelStub struct{ calls atomic.Int64 }

func (s *labelStub) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(rw, err.Error(), http.StatusBadRequest)
		return
	}
	n := s.calls.Add(1)
	time.Sleep(labelLatency)
	answer := `{\"answer\":\"false\"}`
	if strings.Contains(string(body), "Village number") && strings.Contains(string(body), `"quote"`) {
		answer = `{\"quote\":\"wrote down how many there were\",\"reason\":\"It says so.\",\"answer\":\"` + []string{"true", "false", "unrelated"}[n%3] + `\"}`
	}
	rw.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(rw, `{"id":"x","object":"chat.completion","model":"bench","choices":[{"index":0,"message":{"role":"assistant","content":"%s"},"finish_reason":"stop"}],"usage":{"prompt_tokens":100,"completion_tokens":20,"total_tokens":120}}`, answer)
}

// workspace holds so many imported claims with as many documents each as they give.
func (s *labelStub) workspace(b *testing.B, claims, documents int) *Workspace {
	b.Helper()
	server := httptest.NewServer(s)
	b.Cleanup(server.Close)
	w := benchWorkspace(b, fmt.Sprintf(`recipe:
  name: bench
  discover: [imported]
  evidence: [pairs]
  speakers: []
  dates: {from: "", to: ""}
  models:
    annotate: {endpoint: stub, model: bench, max_tokens: 600}
    zero: {endpoint: stub, model: bench, max_tokens: 200}
runtime:
  contact: bench@bench.example
  workers: %d
  endpoints:
    stub: {provider: openai, base_url: %q, concurrency: %d}
`, labelAtOnce+16, server.URL+"/v1", labelAtOnce))
	path := filepath.Join(w.Dir, "documents.jsonl")
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	out := bufio.NewWriter(f)
	for i := range documents {
		n := i % claims
		text := strings.Repeat(fmt.Sprintf("Somebody counted the wells of village number %d for the register of year %d and wrote down how many there were. ", n, i), 10)
		fmt.Fprintf(out, `{"claim": "Village number %d has %d wells.", "verdict": "true", "date": "2021-06-01", "title": "Post %d", "text": %q, "url": "https://a.example/%d", "label": "supporting"}`+"\n", n, n+2, i, text, i)
	}
	if err := errors.Join(out.Flush(), f.Close()); err != nil {
		b.Fatal(err)
	}
	if _, err := w.Import(b.Context(), "pairs", path, ImportOptions{}); err != nil {
		b.Fatal(err)
	}
	return w
}
