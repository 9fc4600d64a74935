package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// A batchServer speaks OpenAI's Files and Batches, in the markup of recorded replies. Its jobs run when
// the server is told to, and it bills every request that it answers.
type batchServer struct {
	t      *testing.T
	server *httptest.Server

	mu       sync.Mutex
	files    map[string]batchFile
	order    []string // ids of files
	batches  []*batchRun
	billed   map[string]int // request body => how often it was answered for money
	requests int            // of any kind

	most  int // tokens that its queue takes, by bytes of the file; 0: no bound
	fate  func(n int, b *batchRun) string
	line  func(id, body string) (status int, reply string) // 0: no line at all
	after func(what string)                                // a request is done, and its reply not sent yet
	cut   func(text string) string                         // what is sent of a file of answers; nil: all of it
	chat  func() (status int, reply string)                // what a call beside the batches gets; nil: there is to be none
}

type batchFile struct{ name, purpose, text string }

type batchRun struct {
	id, file, job string
	status        string
	answers       int
	failures      int
	output, fails string
	code, message string // of a file that is refused
}

func newBatchServer(t *testing.T) *batchServer {
	s := &batchServer{t: t, files: map[string]batchFile{}, billed: map[string]int{}}
	s.fate = func(int, *batchRun) string { return "completed" }
	s.line = func(_, _ string) (int, string) { return 200, batchChat }
	s.server = httptest.NewServer(s)
	t.Cleanup(s.server.Close)
	return s
}

const batchChat = `{"id":"chatcmpl-1","object":"chat.completion","model":"gpt-4o-mini-2024-07-18","choices":[{"index":0,"message":{"role":"assistant","content":"{\"quote\":\"\",\"reason\":\"says nothing of the kind\",\"answer\":\"unrelated\"}","refusal":null},"finish_reason":"stop"}],"usage":{"prompt_tokens":100,"completion_tokens":20,"total_tokens":120,"prompt_tokens_details":{"cached_tokens":40},"completion_tokens_details":{"reasoning_tokens":5}}}`

func (s *batchServer) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer sk-batch" {
		rw.WriteHeader(http.StatusUnauthorized)
		return
	}
	path := strings.TrimPrefix(r.URL.Path, "/v1")
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client is dead
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	s.mu.Lock()
	s.requests++
	status, reply := s.handle(r, path)
	after := s.after
	s.mu.Unlock()
	if after != nil {
		after(r.Method + " " + strings.Split(path, "/")[1])
	}
	rw.WriteHeader(status)
	io.WriteString(rw, reply)
}

func (s *batchServer) handle(r *http.Request, path string) (int, string) {
	switch {
	case r.Method == "POST" && path == "/files":
		if err := r.ParseMultipartForm(1 << 28); err != nil {
			return 400, `{"error":{"message":"no form"}}`
		}
		f, head, err := r.FormFile("file")
		if err != nil {
			return 400, `{"error":{"message":"no file"}}`
		}
		text, err := io.ReadAll(f)
		if err != nil {
			return 400, `{"error":{"message":"no file"}}`
		}
		return 200, s.fileJSON(s.keep(batchFile{head.Filename, r.FormValue("purpose"), string(text)}))
	case r.Method == "GET" && path == "/files":
		return 200, page(s.order, r.URL.Query().Get("after"), s.fileJSON)
	case r.Method == "GET" && strings.HasPrefix(path, "/files/"):
		f, ok := s.files[strings.TrimSuffix(strings.TrimPrefix(path, "/files/"), "/content")]
		if !ok {
			return 404, `{"error":{"message":"No such File object","type":"invalid_request_error","param":"id","code":null}}`
		}
		if s.cut != nil {
			return 200, s.cut(f.text)
		}
		return 200, f.text
	case r.Method == "POST" && path == "/batches":
		var w struct {
			File     string            `json:"input_file_id"`
			Endpoint string            `json:"endpoint"`
			Window   string            `json:"completion_window"`
			Metadata map[string]string `json:"metadata"`
		}
		if err := json.NewDecoder(r.Body).Decode(&w); err != nil || w.Endpoint != "/v1/chat/completions" || w.Window != "24h" || s.files[w.File].purpose != "batch" {
			return 400, `{"error":{"message":"bad batch"}}`
		}
		b := &batchRun{id: fmt.Sprintf("batch_%03d", len(s.batches)), file: w.File, job: w.Metadata["assay_job"], status: "validating"}
		s.batches = append(s.batches, b)
		return 200, s.batchJSON(b.id)
	case r.Method == "GET" && path == "/batches":
		var ids []string
		for _, b := range slices.Backward(s.batches) {
			ids = append(ids, b.id)
		}
		return 200, page(ids, r.URL.Query().Get("after"), s.batchJSON)
	case r.Method == "GET" && strings.HasPrefix(path, "/batches/"):
		if reply := s.batchJSON(strings.TrimPrefix(path, "/batches/")); reply != "" {
			return 200, reply
		}
		return 404, `{"error":{"message":"No batch found with id","type":"invalid_request_error","param":null,"code":null}}`
	}
	if r.Method == "POST" && path == "/chat/completions" && s.chat != nil {
		return s.chat()
	}
	s.t.Errorf("%s %s is no request of Files or Batches", r.Method, path)
	return 404, ""
}

// page gives two things at a time, so that whoever looks for one has to turn pages.
func page(ids []string, after string, of func(string) string) string {
	i := slices.Index(ids, after) + 1
	end := min(i+2, len(ids))
	var data []string
	for _, id := range ids[i:end] {
		data = append(data, of(id))
	}
	return fmt.Sprintf(`{"object":"list","data":[%s],"has_more":%t}`, strings.Join(data, ","), end < len(ids))
}

func (s *batchServer) keep(f batchFile) string {
	id := fmt.Sprintf("file-%03d", len(s.order))
	s.files[id] = f
	s.order = append(s.order, id)
	return id
}

func (s *batchServer) fileJSON(id string) string {
	f := s.files[id]
	return fmt.Sprintf(`{"object":"file","id":%q,"purpose":%q,"filename":%q,"bytes":%d,"created_at":1787150473,"status":"processed","status_details":null}`, id, f.purpose, f.name, len(f.text))
}

func (s *batchServer) batchJSON(id string) string {
	for _, b := range s.batches {
		if b.id != id {
			continue
		}
		errs := "null"
		if b.code != "" {
			errs = fmt.Sprintf(`{"object":"list","data":[{"code":%q,"message":%q,"param":null,"line":null}]}`, b.code, b.message)
		}
		orNull := func(v string) string {
			if v == "" {
				return "null"
			}
			return fmt.Sprintf("%q", v)
		}
		return fmt.Sprintf(`{"id":%q,"object":"batch","endpoint":"/v1/chat/completions","errors":%s,"input_file_id":%q,"completion_window":"24h","status":%q,"output_file_id":%s,"error_file_id":%s,"created_at":1787150474,"request_counts":{"total":%d,"completed":%d,"failed":%d},"metadata":{"assay_job":%q}}`,
			b.id, errs, b.file, b.status, orNull(b.output), orNull(b.fails), b.answers+b.failures, b.answers, b.failures, b.job)
	}
	return ""
}

// run ends every job that is not ended, by its fate: completed, expired and cancelled ones answer and
// bill, of the latter every other request.
func (s *batchServer) run() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for n, b := range s.batches {
		if b.status != "validating" {
			continue
		}
		b.status = s.fate(n, b)
		if b.status == "in_progress" {
			b.status = "validating"
			continue
		}
		if s.most > 0 && len(s.files[b.file].text) > s.most {
			b.status, b.code, b.message = "failed", "token_limit_exceeded", "Enqueued token limit reached"
		}
		if b.status == "failed" {
			continue
		}
		var out, fails []string
		lines := strings.Split(strings.TrimSpace(s.files[b.file].text), "\n")
		for i, line := range lines {
			var w struct {
				ID   string          `json:"custom_id"`
				Body json.RawMessage `json:"body"`
			}
			if err := json.Unmarshal([]byte(line), &w); err != nil {
				s.t.Errorf("line %d of %s: %v", i, b.file, err)
			}
			if b.status != "completed" && i%2 == 1 {
				fails = append(fails, fmt.Sprintf(`{"id":"batch_req_x","custom_id":%q,"response":null,"error":{"code":"batch_%s","message":"This request could not be executed before the completion window expired."}}`, w.ID, b.status))
				continue
			}
			status, reply := s.line(w.ID, string(w.Body))
			entry := fmt.Sprintf(`{"id":"batch_req_x","custom_id":%q,"response":{"status_code":%d,"request_id":"r","body":%s},"error":null}`, w.ID, status, reply)
			switch {
			case status == 0:
				s.billed[string(w.Body)]++ // the answer is lost, the money too
			case status < 300:
				s.billed[string(w.Body)]++
				out = append(out, entry)
			default:
				fails = append(fails, entry)
			}
		}
		b.answers, b.failures = len(out), len(fails)
		slices.Reverse(out) // output order is not input order
		if len(out) > 0 {
			b.output = s.keep(batchFile{"output.jsonl", "batch_output", strings.Join(out, "\n") + "\n"})
		}
		if len(fails) > 0 {
			b.fails = s.keep(batchFile{"errors.jsonl", "batch_output", strings.Join(fails, "\n") + "\n"})
		}
	}
}

func (s *batchServer) set(f func(s *batchServer)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s)
}

// batchLab is a lab of n pairs whose model is reached by batches, and by calls that fail the test.
func batchLab(t *testing.T, n int) (*lab, *batchServer) {
	t.Helper()
	l := newLab(t, n, "")
	s := newBatchServer(t)
	l.env = []string{"BATCH_KEY=sk-batch"}
	text, err := os.ReadFile(filepath.Join(l.dir, "assay.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	with := strings.Replace(string(text), fmt.Sprintf("base_url: %q", l.model.server.URL+"/v1"),
		fmt.Sprintf("base_url: %q, key_env: BATCH_KEY, profile: openai, price: {input: 10, cached: 5, output: 100}", s.server.URL+"/v1"), 1)
	if err := os.WriteFile(filepath.Join(l.dir, "assay.yaml"), []byte(with), 0o644); err != nil {
		t.Fatal(err)
	}
	return l, s
}

// spent is what the records of a workspace sum to.
func (l *lab) spent() (calls int, usd float64) {
	l.t.Helper()
	out, _ := l.must(0, "status", "--json")
	var r struct {
		Spent struct {
			Calls int
			USD   float64
		}
	}
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		l.t.Fatal(err)
	}
	return r.Spent.Calls, r.Spent.USD
}

// perBatch is what one answer of batchChat costs at half the usual price.
const perBatch = (60*10.0 + 40*5 + 20*100) / 1e6 / 2

// What a model takes is asked before anything is ordered, by calls that answer at once. A deployment that takes
// batches alone refuses them, and is ordered from all the same.
func TestBatchAfterCanary(t *testing.T) {
	for name, chat := range map[string]func() (int, string){
		"answered": func() (int, string) { return 200, batchChat },
		"refused": func() (int, string) {
			return 400, `{"error":{"message":"this deployment takes batches","code":"OperationNotSupported"}}`
		},
	} {
		t.Run(name, func(t *testing.T) {
			l, s := batchLab(t, 2)
			s.chat = chat
			path := filepath.Join(l.dir, "assay.yaml")
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, bytes.ReplaceAll(text, []byte("key_env:"), []byte("canary: true, key_env:")), 0o644); err != nil {
				t.Fatal(err)
			}
			l.build(75, "--batch")
			s.run()
			if r := l.build(0, "--batch"); r.Labels["unrelated"] != 2 {
				t.Errorf("labels %v", r.Labels)
			}
		})
	}
}

func TestBatch(t *testing.T) {
	l, s := batchLab(t, 9)
	out, errs := l.must(75, "build", "--batch", "--json")
	if !strings.Contains(errs, "run the same command again") {
		t.Errorf("stderr says %q", errs)
	}
	var first struct {
		Batches  struct{ Jobs []struct{ Requests int } }
		Pipeline struct{ Waiting, Failed int }
	}
	if err := json.Unmarshal([]byte(out), &first); err != nil {
		t.Fatal(err)
	}
	if len(first.Batches.Jobs) != 1 || first.Batches.Jobs[0].Requests != 9 || first.Pipeline.Waiting != 9 || first.Pipeline.Failed != 0 {
		t.Errorf("first run: %+v", first)
	}
	// A run before the answers orders nothing again, and neither does one that would ask by calls.
	l.build(75, "--batch")
	l.build(75)
	if len(s.batches) != 1 || len(s.order) != 1 {
		t.Fatalf("%d batches of %d files", len(s.batches), len(s.order))
	}
	s.run()
	r := l.build(0, "--batch")
	if r.LLM.Calls != 9 || r.LLM.Hits != 0 || r.Labels["unrelated"] != 9 || math.Abs(r.LLM.USD-9*perBatch) > 1e-9 || r.Release.Counts["pairs"] != 9 {
		t.Errorf("the run that took the answers: %+v", r)
	}
	if calls, usd := l.spent(); calls != 9 || math.Abs(usd-9*perBatch) > 1e-9 {
		t.Errorf("the records sum to %d calls and $%v, want 9 and %v", calls, usd, 9*perBatch)
	}
	again := l.build(0, "--batch")
	if again.LLM.Calls != 0 || again.LLM.USD != 0 || again.LLM.Hits != 9 || again.LLM.SavedTokens != 9*120 {
		t.Errorf("the run after it: %+v", again.LLM)
	}
	// The same corpus by single calls is the same, but for what it cost.
	if got := len(s.billed); got != 9 {
		t.Errorf("%d requests were billed", got)
	}
}

// What a batch does not answer is ordered again; what it refuses for good fails its item, and every
// line is paid for once by its record.
func TestBatchOddities(t *testing.T) {
	for name, tt := range map[string]struct {
		set    func(s *batchServer)
		rounds int // runs until the end
		code   int // of the last one
		billed int
		labels int
	}{
		"expired with half of it":   {func(s *batchServer) { s.fate = once("expired") }, 3, 0, 8, 8},
		"cancelled with half of it": {func(s *batchServer) { s.fate = once("cancelled") }, 3, 0, 8, 8},
		"a file of answers that is cut at first": {func(s *batchServer) {
			reads := 0
			s.cut = func(text string) string {
				if reads++; reads > 1 {
					return text
				}
				return strings.Join(strings.SplitAfter(text, "\n")[:5], "")
			}
		}, 3, 0, 8, 8},
		"a line of answers without an end": {func(s *batchServer) {
			reads := 0
			s.cut = func(text string) string {
				if reads++; reads > 1 {
					return text
				}
				return strings.Join(strings.SplitAfter(text, "\n")[:5], "") + strings.Repeat("x", 9<<20)
			}
		}, 3, 0, 8, 8},
		"a queue that takes a third": {func(s *batchServer) { s.most = 6000 }, 9, 0, 8, 8},
		"refused as a whole": {func(s *batchServer) {
			s.fate = func(_ int, b *batchRun) string {
				b.code, b.message = "invalid_json_line", "A line is no JSON"
				return "failed"
			}
		}, 2, 3, 0, 0},
		"lines in the error file": {func(s *batchServer) {
			s.line = func(_, body string) (int, string) {
				if strings.Contains(body, "village number 3 ") {
					return 400, `{"error":{"message":"no","type":"invalid_request_error","param":null,"code":null}}`
				}
				return 200, batchChat
			}
		}, 2, 3, 7, 7},
		"lines that pass": {func(s *batchServer) {
			seen := map[string]bool{}
			s.line = func(id, _ string) (int, string) {
				if !seen[id] {
					seen[id] = true
					return 500, `{"error":{"message":"The server had an error","type":"server_error","param":null,"code":null}}`
				}
				return 200, batchChat
			}
		}, 3, 0, 8, 8},
		"an answer that is no answer": {func(s *batchServer) {
			s.line = func(_, body string) (int, string) {
				if strings.Contains(body, "village number 3 ") && !strings.Contains(body, "JSON schema") {
					return 200, strings.Replace(batchChat, `\"answer\":\"unrelated\"`, `\"answer\":\"perhaps\"`, 1)
				}
				return 200, batchChat
			}
		}, 3, 0, 9, 8},
	} {
		t.Run(name, func(t *testing.T) {
			l, s := batchLab(t, 8)
			s.set(tt.set)
			l.must(75, "build", "--batch")
			last, runs := report{}, 1
			for code := 75; code == 75 && runs < 20; runs++ {
				s.run()
				cmd := l.command("build", "--batch", "--json")
				var out, errs bytes.Buffer
				cmd.Stdout, cmd.Stderr = &out, &errs
				_ = cmd.Run() // its code says how it went
				if code = cmd.ProcessState.ExitCode(); code != 75 {
					last = report{}
					if err := json.Unmarshal(out.Bytes(), &last); err != nil || code != tt.code {
						t.Fatalf("exit %d, want %d (%v)\n%s%s", code, tt.code, err, out.String(), errs.String())
					}
				}
			}
			if runs > tt.rounds {
				t.Errorf("it took %d runs, want at most %d", runs, tt.rounds)
			}
			times := 0
			for _, n := range s.billed {
				times += n
			}
			if times != tt.billed || last.Labels["unrelated"] != tt.labels {
				t.Errorf("billed %d times for %d labels, want %d for %d", times, last.Labels["unrelated"], tt.billed, tt.labels)
			}
			if _, usd := l.spent(); math.Abs(usd-float64(tt.billed)*perBatch) > 1e-9 {
				t.Errorf("records sum to $%v, billed was %v", usd, float64(tt.billed)*perBatch)
			}
		})
	}
}

// A request that the service's queue does not even take alone fails in the end, and says so.
func TestBatchOfOneThatNoQueueTakes(t *testing.T) {
	l, s := batchLab(t, 1)
	s.most = 1
	for range 4 {
		l.build(75, "--batch")
		s.run()
		if l.command("build", "--batch").Run() == nil {
			t.Fatal("a build without an answer ends well")
		}
		if list := l.ls("label", "--state", "failed"); len(list) == 1 && strings.Contains(list[0].Reason, "batches ended without an answer to it") {
			return
		}
		s.run()
	}
	t.Error("it is ordered for ever")
}

// A batch that is completed and names no file at all, or files that lack lines, answered nothing: what is missing is ordered
// again, and nothing of it is a label.
func TestBatchNullResults(t *testing.T) {
	for name, lost := range map[string]string{"no file at all": "Village number ", "one line": "Village number 3 has"} {
		t.Run(name, func(t *testing.T) {
			l, s := batchLab(t, 6)
			seen := map[string]bool{}
			s.line = func(id, body string) (int, string) {
				if strings.Contains(body, lost) && !seen[id] {
					seen[id] = true
					return 0, ""
				}
				return 200, batchChat
			}
			l.must(75, "build", "--batch")
			s.run()
			if b := s.batches[0]; (b.output == "") != (name == "no file at all") || b.fails != "" {
				t.Fatalf("the stub gives %+v", b)
			}
			l.must(75, "build", "--batch")
			if len(s.batches) != 2 {
				t.Errorf("%d batches", len(s.batches))
			}
			r := s.settle(l, 0)
			if r.Labels["unrelated"] != 6 || len(s.batches) != 2 {
				t.Errorf("labels %v by %d batches", r.Labels, len(s.batches))
			}
		})
	}
}

// once is a fate of the first batch alone.
func once(fate string) func(int, *batchRun) string {
	return func(n int, _ *batchRun) string {
		if n == 0 {
			return fate
		}
		return "completed"
	}
}

// settle runs the server and the build in turn until nothing waits, and returns the last run's report.
func (s *batchServer) settle(l *lab, code int, flags ...string) report {
	l.t.Helper()
	args := append([]string{"build", "--batch", "--json"}, flags...)
	for range 9 {
		cmd := l.command(args...)
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		_ = cmd.Run() // its code says how it went
		if got := cmd.ProcessState.ExitCode(); got == 75 {
			s.run()
			continue
		} else if got != code {
			l.t.Fatalf("exit %d, want %d\n%s%s", got, code, out.String(), errs.String())
		}
		var r report
		if err := json.Unmarshal(out.Bytes(), &r); err != nil {
			l.t.Fatal(err)
		}
		return r
	}
	l.t.Fatal("it waits for ever")
	return report{}
}

// batchReply is batchChat with another content and end.
func batchReply(t *testing.T, content, finish string) string {
	t.Helper()
	var r map[string]any
	if err := json.Unmarshal([]byte(batchChat), &r); err != nil {
		t.Fatal(err)
	}
	choice := r["choices"].([]any)[0].(map[string]any)
	choice["message"].(map[string]any)["content"], choice["finish_reason"] = content, finish
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// HD-14 for batches: wrapped answers give what they hold, by one line each, and the raw reply is kept.
func TestHD14WrappedBatches(t *testing.T) {
	l, s := batchLab(t, 4)
	answer := `{"quote":"","reason":"it lists a, b,} and stops, }","answer":"true"}`
	shapes := []string{"```json\n" + answer + "\n```", "Here is my answer:\n" + answer + "\nHope this helps", strings.Replace(answer, `"true"}`, `"true",}`, 1), answer}
	s.line = func(_, body string) (int, string) {
		for i, shape := range shapes {
			if strings.Contains(body, fmt.Sprintf("Village number %d has", i)) {
				return 200, batchReply(t, shape, "stop")
			}
		}
		return 400, `{"error":{"message":"which village?"}}`
	}
	r := s.settle(l, 0)
	if r.Labels["supporting"] != 2 || r.Labels["misleading"] != 2 || len(s.billed) != 4 || len(s.batches) != 1 {
		t.Errorf("labels %v out of %d lines in %d batches", r.Labels, len(s.billed), len(s.batches))
	}
	for _, row := range released(t, r.Release.Dir, "annotations") {
		if raw, _ := row["raw"].(string); !strings.Contains(raw, "it lists a, b,} and stops, }") {
			t.Errorf("raw reply = %q", raw)
		}
	}
}

// HD-15 for batches: an empty reply that ran out of tokens is ordered once more, with room, becomes no label, and
// both are paid for; temperature 0 stands in every line.
func TestHD15TruncatedBatches(t *testing.T) {
	l, s := batchLab(t, 2)
	cut := batchReply(t, "", "length")
	s.line = func(_, body string) (int, string) {
		if strings.Contains(body, "Village number 0 has") {
			return 200, cut
		}
		return 200, batchChat
	}
	r := s.settle(l, 3)
	if len(s.billed) != 3 || r.Labels["unrelated"] != 1 || len(released(t, r.Release.Dir, "pairs")) != 1 {
		t.Errorf("%d lines, labels %v", len(s.billed), r.Labels)
	}
	for body, times := range s.billed {
		if times != 1 || !strings.Contains(body, `"temperature":0,`) && !strings.Contains(body, `"temperature":0}`) {
			t.Errorf("%d times %s", times, body)
		}
	}
	if calls, usd := l.spent(); calls != 3 || math.Abs(usd-3*perBatch) > 1e-9 {
		t.Errorf("records of %d calls for $%v, want 3 for %v", calls, usd, 3*perBatch)
	}
	// It is no answer for good: a retry orders it again, once, with the larger bound if need be.
	l.build(0, "--batch")
	batches := len(s.batches)
	for range 2 { // the second one waits for the first one's order
		l.must(75, "build", "--batch", "--retry-failed")
	}
	if len(s.batches) != batches+1 {
		t.Errorf("a retry makes %d batches", len(s.batches)-batches)
	}
	s.set(func(s *batchServer) {
		s.line = func(_, body string) (int, string) {
			if strings.Contains(body, "Village number 0 has") && !strings.Contains(body, `:2048`) {
				return 200, cut
			}
			return 200, batchChat
		}
	})
	if again := s.settle(l, 0, "--retry-failed"); again.Labels["unrelated"] != 2 {
		t.Errorf("after a retry: labels %v", again.Labels)
	}
	if calls, usd := l.spent(); calls != 5 || math.Abs(usd-5*perBatch) > 1e-9 {
		t.Errorf("records of %d calls for $%v, want 5 for %v", calls, usd, 5*perBatch)
	}
}

// HD-17 and HD-27 for batches: another word of the prompt or another setting is ordered, going back costs nothing and
// says what it saved, and the release is the one that it was.
func TestHD17HD27BatchesFollowPromptAndSettings(t *testing.T) {
	const n = 20
	l, s := batchLab(t, n)
	lines := func() int {
		all := 0
		for _, times := range s.billed {
			all += times
		}
		return all
	}
	first := s.settle(l, 0)
	if lines() != n {
		t.Errorf("run A: %d lines, want %d", lines(), n)
	}
	prompts := filepath.Join(l.dir, "prompts")
	text, err := os.ReadFile("../../annotate/prompts/raguard.txt")
	if err == nil {
		err = os.MkdirAll(prompts, 0o755)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(prompts, "raguard.txt"), []byte(strings.Replace(string(text), "reading exam", "reading test", 1)), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	if s.settle(l, 0); lines() != 2*n {
		t.Errorf("run B, one word changed: %d lines, want %d more", lines()-n, n)
	}
	if err := os.RemoveAll(prompts); err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(l.dir, "assay.yaml")
	cold, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(config, []byte(strings.Replace(string(cold), "temperature: 0,", "temperature: 0.7,", 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	if s.settle(l, 0); lines() != 3*n {
		t.Errorf("run C, temperature 0.7: %d lines, want %d more", lines()-2*n, n)
	}
	if err := os.WriteFile(config, cold, 0o644); err != nil {
		t.Fatal(err)
	}
	last := s.settle(l, 0)
	if lines() != 3*n || last.LLM.Calls != 0 || last.LLM.USD != 0 || last.LLM.SavedTokens != n*120 || last.Release.ID != first.Release.ID {
		t.Errorf("run D, as A: %d lines more, %+v, release %s for %s", lines()-3*n, last.LLM, last.Release.ID, first.Release.ID)
	}
	if calls, usd := l.spent(); calls != 3*n || math.Abs(usd-3*n*perBatch) > 1e-9 {
		t.Errorf("records of %d calls for $%v, want %d for %v", calls, usd, 3*n, 3*n*perBatch)
	}
}

// Killed at any moment, a workspace orders nothing twice, and its release is that of an undisturbed one.
func TestBatchKilled(t *testing.T) {
	const n = 12
	calm, calmServer := batchLab(t, n)
	calm.must(75, "build", "--batch")
	calmServer.run()
	want := sums(t, calm.build(0, "--batch").Release.Dir)
	kills := 16
	if testing.Short() {
		kills = 4
	}
	rng := rand.New(rand.NewPCG(3, 5))
	moments := []string{"POST files", "POST batches", "GET batches", "GET files"}
	struck := map[string]int{}
	for k := 0; k < kills; {
		l, s := batchLab(t, n)
		for ended := false; !ended; {
			cmd := l.command("build", "--batch")
			moment := moments[rng.IntN(len(moments))]
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			var before map[string]int
			s.set(func(s *batchServer) { s.after, before = s.killing(cmd, moment, struck), maps.Clone(struck) })
			_ = cmd.Wait() // killed, waiting or done
			killed := false
			s.set(func(s *batchServer) { s.after, killed = nil, !maps.Equal(before, struck) })
			if killed {
				k++
				if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
					t.Fatalf("ended by itself: %v", cmd.ProcessState)
				}
			}
			switch cmd.ProcessState.ExitCode() {
			case 0:
				ended = true
			case 75:
				s.run()
			case -1: // killed
				if rng.IntN(2) == 0 {
					s.run()
				}
			default:
				t.Fatalf("exit %d", cmd.ProcessState.ExitCode())
			}
		}
		r := l.build(0, "--batch")
		if got := sums(t, r.Release.Dir); got != want {
			t.Errorf("release after kills:\n%s\nundisturbed:\n%s", got, want)
		}
		for body, times := range s.billed {
			if times != 1 {
				t.Errorf("billed %d times: %s", times, body)
			}
		}
		if calls, usd := l.spent(); len(s.billed) != n || calls != n || math.Abs(usd-n*perBatch) > 1e-9 {
			t.Errorf("%d billed, records of %d calls for $%v", len(s.billed), calls, usd)
		}
	}
	t.Logf("kills: %v", struck)
}

// killing ends a command after the server did what was asked and before it says so.
func (s *batchServer) killing(cmd *exec.Cmd, moment string, struck map[string]int) func(string) {
	var once sync.Once
	return func(what string) {
		if what == moment {
			once.Do(func() {
				s.set(func(*batchServer) {
					if cmd.Process.Signal(syscall.SIGKILL) == nil {
						struck[moment]++
					}
				})
			})
		}
	}
}

// Endpoints without a batch API are told of in a line.
func TestBatchOfNoAPI(t *testing.T) {
	l := newLab(t, 2, "")
	_, errs := l.must(1, "build", "--batch")
	if !strings.Contains(errs, "no endpoint of this recipe has a batch API") || !strings.Contains(errs, "profile generic") || strings.Count(errs, "\n") != 1 {
		t.Errorf("stderr says %q", errs)
	}
	l.must(2, "build", "--batch", "--replay")
}

// What is ordered from a batch API is told by status: by whom, how much, since when, and how it stands.
func TestStatusTellsOpenBatches(t *testing.T) {
	l, s := batchLab(t, 2)
	l.build(75, "--batch")
	out, _ := l.must(0, "status")
	for _, want := range []string{"2 requests, planned 20", " ago), ", "assay build --batch takes in what is there", "an answer is ordered from a batch API and not there yet"} {
		if !strings.Contains(out, want) {
			t.Errorf("status says nothing of %q:\n%s", want, out)
		}
	}
	s.run()
	l.build(0, "--batch")
	if out, _ := l.must(0, "status"); strings.Contains(out, "batch ") {
		t.Errorf("status tells a batch that is taken in:\n%s", out)
	}
}
