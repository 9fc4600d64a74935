//go:build unix

package llm

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"assay/kv"
)

// The work of bar 7: calls that take 200 ms, 64 at once. Ours has a few workers more than the endpoint
// takes calls, as a build has, so that replies are read and kept while others are out.
const (
	benchCalls   = 3200
	benchAtOnce  = 64
	benchWorkers = 80
	benchLatency = 200 * time.Millisecond
)

// BenchmarkCalls compares our client, with an empty store on disk, to loops of net/http over the same
// requests and the same stub, which runs in a process of its own so that its work is not counted. The
// raw loop does what the raw loop of the crawl does: it hashes each body and appends each reply,
// zstd-compressed, to a file. The bare loop keeps nothing at all.
//
//	rate/ideal   our calls a second, of C / latency (bar: at least 0.95)
//	conns/C      connections that were opened, of C (bar: at most 1.1)
//	cpu/raw      our CPU seconds, of the raw loop's (bar: at most 3)
//	cpu/bare     our CPU seconds, of the bare loop's
//	rate/bare    our calls a second, of the bare loop's
func BenchmarkCalls(b *testing.B) {
	if os.Getenv("ASSAY_BENCH_STUB") != "" {
		benchStub()
		return
	}
	address := startBenchStub(b)
	prompts := benchPrompts(b)
	var ours, raw, bare usage
	for b.Loop() {
		bare = bare.plus(measure(b, address, func() { rawLoop(b, address, prompts, func([]byte, []byte) {}) }))
		keep, closeFile := benchFile(b)
		raw = raw.plus(measure(b, address, func() { rawLoop(b, address, prompts, keep) }))
		closeFile()
		c, closeAll := benchClient(b, address)
		ours = ours.plus(measure(b, address, func() { ourLoop(b, c) }))
		closeAll()
	}
	ideal := float64(benchAtOnce) / benchLatency.Seconds()
	calls := float64(benchCalls * b.N)
	b.ReportMetric(calls/ours.wall/ideal, "rate/ideal")
	b.ReportMetric(bare.wall/ours.wall, "rate/bare")
	b.ReportMetric(ours.conns/float64(b.N)/benchAtOnce, "conns/C")
	b.ReportMetric(ours.cpu/raw.cpu, "cpu/raw")
	b.ReportMetric(ours.cpu/bare.cpu, "cpu/bare")
	b.ReportMetric(ours.cpu/calls*1e3, "cpu-ms/call")
	b.ReportMetric(0, "ns/op")
}

// benchFile opens a file that replies are appended to.
func benchFile(b *testing.B) (keep func(body, reply []byte), closeFile func()) {
	f, err := os.Create(filepath.Join(b.TempDir(), "replies.zst"))
	if err != nil {
		b.Fatal(err)
	}
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		b.Fatal(err)
	}
	var mu sync.Mutex
	keep = func(body, reply []byte) {
		key := sha256.Sum256(body)
		kept := enc.EncodeAll(append(key[:], reply...), nil)
		mu.Lock()
		defer mu.Unlock()
		if _, err := f.Write(kept); err != nil {
			b.Error(err)
		}
	}
	return keep, func() {
		if err := f.Close(); err != nil {
			b.Error(err)
		}
	}
}

type usage struct{ wall, cpu, conns float64 }

func (u usage) plus(v usage) usage { return usage{u.wall + v.wall, u.cpu + v.cpu, u.conns + v.conns} }

func measure(b *testing.B, address string, run func()) usage {
	conns := benchConns(b, address)
	cpu, start := cpuSeconds(b), time.Now()
	run()
	return usage{time.Since(start).Seconds(), cpuSeconds(b) - cpu, benchConns(b, address) - conns}
}

func cpuSeconds(b *testing.B) float64 {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano()).Seconds()
}

func benchRequest(i int) Request {
	q := ask(i)
	q.Template = benchTemplate
	q.Temperature = ptr(0.1)
	q.Vars = examVars{fmt.Sprintf("claim %d", i), strings.Repeat("A sentence of a document that has to be read. ", 60)}
	return q
}

var benchTemplate = exam()

func benchPrompts(b *testing.B) []wireBody {
	c := client(b, nil, Options{})
	prompts := make([]wireBody, benchCalls)
	for i := range prompts {
		cl, err := c.prepare(benchRequest(i))
		if err != nil {
			b.Fatal(err)
		}
		if err := json.Unmarshal(cl.body, &prompts[i]); err != nil {
			b.Fatal(err)
		}
	}
	return prompts
}

func atOnce(workers, n int, do func(int)) {
	var wg sync.WaitGroup
	next := make(chan int)
	for range workers {
		wg.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
}

// rawLoop is the least that a program must do: encode, send, read, keep, decode the reply and the
// answer in it. It renders nothing and checks nothing.
func rawLoop(b *testing.B, address string, prompts []wireBody, keep func(body, reply []byte)) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = benchAtOnce
	defer transport.CloseIdleConnections()
	hc := &http.Client{Transport: transport}
	atOnce(benchAtOnce, len(prompts), func(i int) {
		body, err := json.Marshal(prompts[i])
		if err != nil {
			b.Error(err)
			return
		}
		req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, address+"/chat/completions", bytes.NewReader(body))
		if err != nil {
			b.Error(err)
			return
		}
		req.Header.Set("Content-Type", "application/json")
		resp, err := hc.Do(req)
		if err != nil {
			b.Error(err)
			return
		}
		defer resp.Body.Close()
		reply, err := io.ReadAll(resp.Body)
		if err != nil {
			b.Error(err)
			return
		}
		keep(body, reply)
		var env envelope
		if err := json.Unmarshal(reply, &env); err != nil || len(env.Choices) == 0 {
			b.Errorf("no reply: %v", err)
			return
		}
		text, _ := content(env.Choices[0].Message.Content)
		var answer map[string]any
		if err := json.Unmarshal([]byte(text), &answer); err != nil {
			b.Error(err)
		}
	})
}

// benchClient opens a client over an empty store; opening and closing are not part of a call.
func benchClient(b *testing.B, address string) (*Client, func()) {
	store, err := kv.Open(filepath.Join(b.TempDir(), "store"), kv.Options{})
	if err != nil {
		b.Fatal(err)
	}
	c, err := New(Options{Store: store, Endpoints: map[string]Endpoint{"main": {Provider: ProviderOpenAI, BaseURL: address, Concurrency: benchAtOnce}}})
	if err != nil {
		b.Fatal(err)
	}
	return c, func() {
		if err := errors.Join(c.Close(), store.Close()); err != nil {
			b.Fatal(err)
		}
	}
}

func ourLoop(b *testing.B, c *Client) {
	atOnce(benchWorkers, benchCalls, func(i int) {
		if r, err := c.Complete(b.Context(), benchRequest(i)); err != nil || r.Outcome != OutcomeAnswered {
			b.Errorf("got %+v, %v", r, err)
		}
	})
}

// startBenchStub runs this test binary as the stub and returns its address.
func startBenchStub(b *testing.B) string {
	cmd := exec.CommandContext(b.Context(), os.Args[0], "-test.run=^$", "-test.bench=^BenchmarkCalls$", "-test.benchtime=1x")
	cmd.Env = append(os.Environ(), "ASSAY_BENCH_STUB=1")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if _, address, ok := strings.Cut(lines.Text(), "stub at "); ok {
			return address
		}
	}
	b.Fatalf("the stub did not start: %v", lines.Err())
	return ""
}

func benchConns(b *testing.B, address string) float64 {
	resp, err := http.Get(address + "/conns")
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	var n float64
	if _, err := fmt.Fscan(resp.Body, &n); err != nil {
		b.Fatal(err)
	}
	return n
}

// benchStub answers after the latency, until it is killed, and counts connections.
func benchStub() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	var mu sync.Mutex
	conns := 0
	reply := []byte(chat(`{"label":"supporting","why":"The document says so in its second sentence."}`).body)
	mux := http.NewServeMux()
	mux.HandleFunc("/conns", func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintln(w, conns-1) // without the one that asks
	})
	mux.HandleFunc("/chat/completions", func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		time.Sleep(benchLatency)
		w.Header().Set("Content-Type", "application/json")
		w.Write(reply)
	})
	server := &http.Server{Handler: mux, ConnState: func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			mu.Lock()
			conns++
			mu.Unlock()
		}
	}}
	fmt.Printf("stub at http://%s\n", l.Addr())
	panic(server.Serve(l))
}
