package llm

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// An azureBatches is the Files and Batches interface as Azure has it: below /openai of the resource, with an
// api-version and the key in a header of its own, a file that is pending for a while, and deployments as models.
type azureBatches struct {
	t  *testing.T
	mu sync.Mutex

	reads     int    // looks at a file until it is processed
	status    string // of a file that was read
	lines     string
	job       string   // metadata of the batch that was asked for
	batches   []string // ids, by state below
	state     map[string]string
	created   int
	withdrawn bool   // its file is deleted
	onDelete  func() // what happens just before
	keeps     bool   // does not let a file be deleted
	hang      bool   // takes a request to make a batch and says nothing
	none      bool   // has no batches
	answers   string // of the file of answers, "" for one to each line; %[1]s is the last request
	asked     []string
}

func (a *azureBatches) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked = append(a.asked, r.Method+" "+r.URL.Path)
	if r.Header.Get("Api-Key") != "azure-key" || r.Header.Get("Authorization") != "" || r.URL.Query().Get("api-version") != "2024-10-21" {
		a.t.Errorf("%s %s with %v", r.Method, r.URL, r.Header)
	}
	reply := func(format string, args ...any) { fmt.Fprintf(rw, format, args...) }
	switch path := r.Method + " " + r.URL.Path; {
	case path == "POST /openai/files":
		f, _, err := r.FormFile("file")
		if err != nil || r.FormValue("purpose") != "batch" {
			a.t.Errorf("a file for %q: %v", r.FormValue("purpose"), err)
			return
		}
		text, err := io.ReadAll(f)
		if err != nil {
			a.t.Error(err)
		}
		a.lines = string(text)
		reply(`{"status":"pending","bytes":%d,"purpose":"batch","filename":"x.jsonl","id":"file-in","created_at":1,"object":"file"}`, len(text))
	case path == "GET /openai/files":
		reply(`{"data":[],"object":"list"}`)
	case path == "GET /openai/files/file-in":
		status := "pending"
		if a.reads--; a.reads < 0 {
			status = a.status
		}
		reply(`{"status":%q,"purpose":"batch","filename":"x.jsonl","id":"file-in","object":"file"}`, status)
	case path == "POST /openai/batches":
		var w struct {
			File     string            `json:"input_file_id"`
			Endpoint string            `json:"endpoint"`
			Window   string            `json:"completion_window"`
			Metadata map[string]string `json:"metadata"`
		}
		if err := json.NewDecoder(r.Body).Decode(&w); err != nil || w.File != "file-in" || w.Endpoint != "/chat/completions" || w.Window != "24h" {
			a.t.Errorf("a batch of %+v: %v", w, err)
		}
		a.job = w.Metadata[metadataKey]
		switch a.created++; {
		case a.none:
			rw.WriteHeader(http.StatusNotFound)
		case a.hang:
			panic(http.ErrAbortHandler)
		default:
			reply("%s", a.batch(a.add("validating")))
		}
	case path == "GET /openai/batches":
		var list []string
		for _, id := range a.batches {
			list = append(list, a.batch(id))
		}
		reply(`{"data":[%s],"has_more":false}`, strings.Join(list, ","))
	case path == "DELETE /openai/files/file-in":
		if a.keeps {
			rw.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		a.withdrawn = true
		if a.onDelete != nil {
			a.onDelete()
		}
		rw.WriteHeader(http.StatusNoContent)
	case strings.HasPrefix(path, "GET /openai/batches/"):
		reply("%s", a.batch(strings.TrimPrefix(path, "GET /openai/batches/")))
	case path == "GET /openai/files/file-out/content" && a.answers != "":
		var w struct {
			ID string `json:"custom_id"`
		}
		if err := json.Unmarshal([]byte(a.lines), &w); err != nil {
			a.t.Error(err)
		}
		reply(a.answers, w.ID)
	case path == "GET /openai/files/file-out/content":
		for line := range strings.Lines(a.lines) {
			var w struct {
				ID   string `json:"custom_id"`
				URL  string `json:"url"`
				Body struct{ Model string }
			}
			if err := json.Unmarshal([]byte(line), &w); err != nil || w.URL != "/chat/completions" || w.Body.Model != "my-batch-deployment" {
				a.t.Errorf("line %s: %v", line, err)
			}
			reply(`{"custom_id":%q,"response":{"body":%s,"request_id":"r","status_code":200},"error":null}`+"\n", w.ID, chat(`{"label":"supporting","why":"x"}`).body)
		}
	default:
		a.t.Errorf("%s is no request of Azure's Files or Batches", path)
		rw.WriteHeader(http.StatusNotFound)
	}
}

func (a *azureBatches) add(state string) string {
	id := fmt.Sprintf("batch_%d", len(a.batches))
	a.batches = append(a.batches, id)
	a.state[id] = state
	return id
}

func (a *azureBatches) batch(id string) string {
	out := "null"
	if a.state[id] == "completed" {
		out = `"file-out"`
	}
	return fmt.Sprintf(`{"id":%q,"object":"batch","status":%q,"endpoint":"/chat/completions","errors":null,"input_file_id":"file-in","completion_window":"24h","output_file_id":%s,"error_file_id":"","metadata":{%q:%q}}`,
		id, a.state[id], out, metadataKey, a.job)
}

// azureLab is a service, its clock, and a function that makes the client of a run.
func azureLab(t *testing.T, base string) (*azureBatches, *clock, func() *Client) {
	a := &azureBatches{t: t, status: "processed", state: map[string]string{}}
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	c, store := newClock(), memory(t)
	return a, c, func() *Client {
		run, err := New(Options{
			Store: store, Batch: true, Now: c.now, Sleep: c.sleep, Getenv: func(string) string { return "azure-key" },
			Endpoints: map[string]Endpoint{"main": {Provider: ProviderOpenAI, BaseURL: server.URL + base, KeyEnv: "KEY", Profile: "azure"}},
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { run.Close() })
		return run
	}
}

// order is one run: what is there is taken, a request is asked for, what is missing is sent.
func (a *azureBatches) order(c *Client) (reply Reply, job Job, err error) {
	b, err := c.TakeBatches(a.t.Context())
	if err != nil {
		return reply, job, err
	}
	q := ask(1)
	q.Model = "my-batch-deployment"
	reply, err = c.Complete(a.t.Context(), q)
	var waits *WaitingError
	if !errors.As(err, &waits) {
		if len(b.Jobs) > 0 {
			job = b.Jobs[0]
		}
		return reply, job, err
	}
	more, err := c.OrderBatches(a.t.Context())
	if jobs := append(b.Jobs, more.Jobs...); len(jobs) > 0 {
		job = jobs[len(jobs)-1]
	}
	return reply, job, err
}

// A request that a file answers twice is answered by the first line, and paid for once. Lines that are none take no
// answer away; what they hide is waited for in two more runs, and then ordered again.
func TestBatchWithOddLines(t *testing.T) {
	line := func(content string) string {
		return `{"custom_id":"%[1]s","response":{"status_code":200,"body":` + chat(content).body + `},"error":null}` + "\n"
	}
	first := line(`{"label":"supporting","why":"first"}`)
	for _, c := range []struct {
		name, answers string
		runs          int // until the answer is there, 0 for never
	}{
		{"answered twice", first + line(`{"label":"misleading","why":"second"}`), 1},
		{"answered and failed", first + `{"custom_id":"%[1]s","response":{"status_code":500,"body":{"error":{"message":"x"}}}}` + "\n", 1},
		{"cut, then answered", `{"custom_id":"%[1]s","resp` + "\n[]\n" + first, 1},
		{"cut", `{"custom_id":"%[1]s","resp` + "\n", 0},
	} {
		a, _, run := azureLab(t, "?api-version=2024-10-21")
		a.answers = c.answers
		if reply, _, err := a.order(run()); err != nil || reply.Text != "" {
			t.Fatalf("%s: %q, %v", c.name, reply.Text, err)
		}
		a.state[a.batches[0]] = "completed"
		for n := 1; n < 3; n++ {
			client := run()
			reply, job, err := a.order(client)
			if err != nil || strings.Contains(reply.Text, "first") != (n >= c.runs && c.runs > 0) {
				t.Errorf("%s, run %d: %q, %v", c.name, n, reply.Text, err)
			}
			if spent, err := client.Spend(); err != nil || c.runs > 0 && spent.Calls != 1 || job.Answered > 1 || job.Refused > 0 {
				t.Errorf("%s, run %d: spent %+v, job %+v, %v", c.name, n, spent, job, err)
			}
			if odd := strings.HasPrefix(c.name, "cut"); n == 1 && odd && !strings.Contains(job.Note, "line 1 of file file-out") {
				t.Errorf("%s, run %d: note %q", c.name, n, job.Note)
			}
		}
		if a.created != 1 {
			t.Errorf("%s: %d batches after two runs", c.name, a.created)
		}
		if _, job, _ := a.order(run()); c.runs == 0 && (a.created != 2 || job.Requests != 1) {
			t.Errorf("%s: %d batches after three runs, the last %+v", c.name, a.created, job)
		}
	}
}

// Azure's dialect, from both forms of a resource's address.
func TestBatchOfAzure(t *testing.T) {
	for _, base := range []string{"?api-version=2024-10-21", "/openai?api-version=2024-10-21", "/openai/deployments/my-batch-deployment?api-version=2024-10-21"} {
		t.Run(base, func(t *testing.T) {
			a, _, run := azureLab(t, base)
			a.with(func() { a.reads = mostReads + 2 })
			if _, job, err := a.order(run()); err != nil || job.Batch != "" || job.State != BatchWaiting || !strings.Contains(job.Note, "still reading the file") {
				t.Fatalf("while the file is read: %+v, %v", job, err)
			}
			if _, job, err := a.order(run()); err != nil || job.Batch != "batch_0" || job.Note != "" {
				t.Fatalf("once it is read: %+v, %v", job, err)
			}
			a.with(func() { a.state["batch_0"] = "completed" })
			reply, job, err := a.order(run())
			if err != nil || string(reply.JSON) != `{"label":"supporting","why":"x"}` || job.Answered != 1 || job.Returned != 0 {
				t.Errorf("the answer: %+v, %+v, %v", reply, job, err)
			}
			a.mu.Lock()
			defer a.mu.Unlock()
			if a.created != 1 {
				t.Errorf("%d batches were asked for", a.created)
			}
		})
	}
}

// What the service never takes is given back, and the error says what to look at.
func TestBatchRefusedForGood(t *testing.T) {
	for name, set := range map[string]func(a *azureBatches) string{
		"no batches":         func(a *azureBatches) string { a.none = true; return "no batch API at this address" },
		"an unreadable file": func(a *azureBatches) string { a.status = "error"; return "" },
	} {
		t.Run(name, func(t *testing.T) {
			a, _, run := azureLab(t, "?api-version=2024-10-21")
			want := set(a)
			c := run()
			_, job, err := a.order(c)
			if want != "" && (err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "status 404: the reply is empty")) || want == "" && err != nil {
				t.Errorf("the error is %v", err)
			}
			if want == "" && !strings.Contains(job.Note, "could not read the file") {
				t.Errorf("the job is %+v", job)
			}
			for entry, err := range c.orders.meta.Scan("", "") {
				if err != nil || entry.Value.Job != "" {
					t.Errorf("a request still belongs to job %q, %v", entry.Value.Job, err)
				}
			}
			for entry, err := range c.orders.jobs.Scan("", "") {
				if err != nil || !entry.Value.Taken {
					t.Errorf("the job is open: %+v, %v", entry.Value, err)
				}
			}
		})
	}
}

// with changes what the service has while requests may be under way.
func (a *azureBatches) with(do func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	do()
}

// What a service that did not reply made of an asking for a batch is adopted, however late it turns up, or its file
// is taken back before the requests are ordered again: they are never paid for twice.
func TestBatchTakenInLate(t *testing.T) {
	const never = 0
	for name, tt := range map[string]struct {
		made     time.Duration // after the asking, if the service still can make something of the file
		keeps    bool          // the service does not delete files
		created  int           // askings that the service got
		waits    time.Duration // until the order has a batch
		withdraw bool
	}{
		"within the grace":                     {made: 2 * time.Minute, created: 1, waits: 3 * time.Minute},
		"never":                                {made: never, created: 2, waits: askGrace + time.Minute, withdraw: true},
		"after the file was taken back":        {made: askGrace + 5*time.Minute, created: 2, waits: askGrace + time.Minute, withdraw: true},
		"late, of a file that cannot be taken": {made: 3 * time.Hour, keeps: true, created: 1, waits: 4 * time.Hour},
		"never, of a file that cannot be":      {made: never, keeps: true, created: 2, waits: window + time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			a, now, run := azureLab(t, "?api-version=2024-10-21")
			a.with(func() { a.hang, a.keeps = true, tt.keeps })
			start := now.now()
			if _, _, err := a.order(run()); err == nil {
				t.Fatal("a request without a reply is no error")
			}
			a.with(func() { a.hang = false })
			at := func(d time.Duration) {
				now.mu.Lock()
				defer now.mu.Unlock()
				now.t = start.Add(d)
			}
			late := func(d time.Duration) {
				a.with(func() {
					if tt.made != never && tt.made <= d && !a.withdrawn && len(a.batches) == 0 {
						a.add("validating")
					}
				})
			}
			for _, d := range []time.Duration{time.Minute, min(2*time.Hour, tt.waits-2*time.Minute), tt.waits} {
				at(d)
				late(d)
				_, job, err := a.order(run())
				if err != nil || (job.Batch == "batch_0") != (d == tt.waits) || d < tt.waits && !strings.Contains(job.Note, "if it has not turned up by") {
					t.Fatalf("after %s: %+v, %v", d, job, err)
				}
			}
			late(tt.made)
			a.with(func() { a.state["batch_0"] = "completed" })
			reply, job, err := a.order(run())
			if err != nil || reply.JSON == nil || job.Answered != 1 {
				t.Errorf("the answer: %+v, %+v, %v", reply, job, err)
			}
			a.mu.Lock()
			defer a.mu.Unlock()
			if a.created != tt.created || len(a.batches) != 1 || a.withdrawn != tt.withdraw {
				t.Errorf("asked %d times for %d batches; file taken back: %t", a.created, len(a.batches), a.withdrawn)
			}
		})
	}
}

// A batch that the service made before its file was taken back is adopted; if it fails for want of the file, its
// requests are ordered again.
func TestBatchMadeBeforeItsFileWasTakenBack(t *testing.T) {
	a, now, run := azureLab(t, "?api-version=2024-10-21")
	a.with(func() { a.hang = true })
	if _, _, err := a.order(run()); err == nil {
		t.Fatal("a request without a reply is no error")
	}
	a.with(func() { a.hang, a.onDelete = false, func() { a.add("failed") } })
	now.sleep(t.Context(), askGrace+time.Minute)
	if _, job, err := a.order(run()); err != nil || job.Batch != "batch_1" {
		t.Fatalf("%+v, %v", job, err)
	}
	a.with(func() { a.state["batch_1"] = "completed" })
	if reply, job, err := a.order(run()); err != nil || reply.JSON == nil || job.Answered != 1 {
		t.Errorf("the answer: %+v, %+v, %v", reply, job, err)
	}
}
