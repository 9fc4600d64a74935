package llm

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"assay/kv"
)

// Buckets of what is ordered from batch APIs.
const (
	BucketOrders = "llm.order"      // (request key) => a request that is collected or ordered, and not answered
	BucketBodies = "llm.order.body" // (request key) => the bytes of its body
	BucketJobs   = "llm.batch"      // (job) => one file of requests, from its plan to its answers
	BucketQuotas = "llm.quota"      // (endpoint, model) => tokens that one job may have, as refusals taught
)

// order is a request that a batch API is to answer. Without a job it is collected and not sent; what
// was sent belongs to one job until that has answered it or given it back.
type order struct {
	Job             string   `json:"job,omitzero"`
	Role            string   `json:"role"`
	Endpoint        string   `json:"endpoint"`
	Model           string   `json:"model"`
	Params          Params   `json:"params"`
	Sample          int      `json:"sample"`
	Template        string   `json:"template,omitzero"`
	TemplateVersion int      `json:"template_version,omitzero"`
	TemplateHash    string   `json:"template_sha256,omitzero"`
	Input           string   `json:"input_sha256"`
	MaxTokens       int      `json:"max_tokens"`
	Bytes           int      `json:"bytes"`  // of its line
	Tokens          int      `json:"tokens"` // that it may take at most, prompt and answer
	Attempt         int      `json:"attempt"`
	Tries           int      `json:"tries,omitzero"` // that came to nothing
	Failed          *refusal `json:"failed,omitempty"`
}

// refusal is why a request will not be ordered again by itself.
type refusal struct {
	Reason string `json:"reason"`
	Status int    `json:"status,omitzero"`
	Detail string `json:"detail,omitzero"`
}

// Job is one file of requests to one model.
type Job struct {
	ID       string     `json:"id"` // ours; it names the file and stands in the batch's metadata
	Endpoint string     `json:"endpoint"`
	Model    string     `json:"model"`
	Requests int        `json:"requests"`
	Bytes    int64      `json:"bytes"`
	Tokens   int        `json:"tokens"` // at most
	Planned  time.Time  `json:"planned"`
	File     string     `json:"file,omitzero"`   // id of the uploaded file
	Asked    time.Time  `json:"asked,omitzero"`  // when the service was asked to make the batch, and did not say whether it did
	Undone   bool       `json:"undone,omitzero"` // the file was taken back, since no batch had turned up
	Batch    string     `json:"batch,omitzero"`  // id that the service gave
	State    BatchState `json:"state,omitzero"`  // as last seen
	Answered int        `json:"answered"`        // answers taken
	Refused  int        `json:"refused"`         // requests that came back with an error
	Returned int        `json:"returned"`        // requests that came back without any answer
	Taken    bool       `json:"taken,omitzero"`  // what it answered is stored
	Unread   int        `json:"unread,omitzero"` // runs in which lines of its answers could not be read
	Note     string     `json:"note,omitzero"`
}

// askGrace is how long a batch that was asked for and is in no list may still turn up: the service can take in
// what a run asked for after that run was killed, and after the next one looked. After it the file is taken back.
const askGrace = 15 * time.Minute

// window is how long a service works on a batch. One that is in no list after it answers nothing any more.
const window = 24 * time.Hour

// mostTries is how often a request is ordered before its item fails.
const mostTries = 3

// orders is the part of a Client that orders batches.
type orders struct {
	meta   kv.Bucket[order]
	bodies kv.Bucket[[]byte]
	jobs   kv.Bucket[Job]
	quotas kv.Bucket[int]
	stand  bool // some order was stored when the client was made
}

func openOrders(s *kv.Store) (o orders, err error) {
	o = orders{
		meta: kv.In[order](s, BucketOrders, BucketVersion), bodies: kv.In[[]byte](s, BucketBodies, BucketVersion),
		jobs: kv.In[Job](s, BucketJobs, BucketVersion), quotas: kv.In[int](s, BucketQuotas, BucketVersion),
	}
	for _, err := range o.meta.Keys("", "") {
		o.stand = true
		return o, err
	}
	return o, nil
}

// BatchOf says whether requests to an endpoint can be ordered, else why not.
func (c *Client) BatchOf(endpoint string) (ok bool, why string) {
	r, known := c.endpoints[endpoint]
	switch {
	case !known:
		return false, "endpoint " + endpoint + " is not configured"
	case r.at.Provider == ProviderBuiltin:
		return false, "endpoint " + endpoint + " is the builtin model, which answers at once and costs nothing"
	case r.profile.Batch == nil:
		return false, fmt.Sprintf("endpoint %s (profile %s) has no batch API that is known: its calls are sent one by one", endpoint, r.profile.Name)
	}
	return true, ""
}

// ordered is asked before a call is made: it collects the call where this run orders batches, and says
// of a call that is ordered that it waits. Nil means that the call is to be made, as those are at once
// that tell how to write the others.
func (k *cacher) ordered(ctx context.Context, c *call) error {
	if c.template == nil || c.role == RoleCanary || c.route.profile.Batch == nil || c.route.at.Provider == ProviderBuiltin || k.c.o.Replay || !k.c.o.Batch && !k.c.orders.stand {
		return nil
	}
	o, known, err := k.c.orders.meta.Get(kv.Key(c.id))
	if err != nil {
		return c.storeError("look for an order", err) // a call that may be paid for already is not made
	}
	waits := &WaitingError{Endpoint: c.route.name, Model: c.model, Job: o.Job}
	switch {
	case known && o.Job != "":
		return waits
	case known && o.Failed != nil:
		e := c.fail(o.Failed.Reason, o.Failed.Detail)
		e.Status, e.unsent, e.Tries = o.Failed.Status, true, max(o.Tries, 1)
		if err := k.c.drop(c.id); err != nil {
			return err
		}
		return e
	case !k.c.o.Batch:
		return nil
	case !k.c.retried(ctx):
		// A search goes on without what the model refused as too long, and comes by it again with each answer it waits for.
		if e, err := k.c.failedBefore(c); err != nil {
			return err
		} else if e != nil && e.Reason == ReasonContext {
			return e
		}
	}
	if err := k.c.holdOrder(ctx, c); err != nil {
		return err
	}
	line, err := json.Marshal(c.id)
	if err != nil {
		return err // unreachable: a string
	}
	next := order{
		Role: c.role, Endpoint: c.route.name, Model: c.model, Params: c.params, Sample: c.sample,
		Template: c.template.name, TemplateVersion: c.template.version, TemplateHash: c.template.hash,
		Input: c.input, MaxTokens: c.maxTokens, Attempt: c.attempts + 1, Tries: o.Tries,
		Bytes: len(batchLine(line, c.route.profile.Batch.URL, c.body)), Tokens: c.reserve().Total,
	}
	meta, err := k.c.orders.meta.PutOp(kv.Key(c.id), next)
	if err != nil {
		return c.storeError("collect a request", err)
	}
	body, err := k.c.orders.bodies.PutOp(kv.Key(c.id), c.body)
	if err == nil {
		err = k.c.o.Store.Write(meta, body)
	}
	if err != nil {
		return c.storeError("collect a request", err)
	}
	k.c.asked.Store(c.id, true)
	return waits
}

// holdOrder takes the worst case of an order out of this run's budget. Nobody knows within the run what
// it will cost.
func (c *Client) holdOrder(ctx context.Context, cl *call) error {
	worst := 0.0
	if c.purse.maxUSD > 0 {
		cl.batch = true
		price, ok := cl.price(c.o.Prices)
		cl.batch = false
		if !ok {
			e := cl.fail(ReasonNoPrice, fmt.Sprintf("a cap of $%g is set, and the price table of %s does not know the model", c.purse.maxUSD, c.o.Prices.Date))
			e.unsent = true
			return e
		}
		worst = price.Cost(cl.reserve())
	}
	if err := c.purse.reserve(ctx, worst, 1); err != nil {
		return err
	}
	c.purse.settle(worst, 1, worst, 1)
	return nil
}

func (c *Client) drop(id string) error {
	return c.o.Store.Write(c.orders.meta.DeleteOp(kv.Key(id)), c.orders.bodies.DeleteOp(kv.Key(id)))
}

// batchLine is one line of a file of requests.
func batchLine(id json.RawMessage, url string, body []byte) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"custom_id":%s,"method":"POST","url":%q,"body":`, id, url)
	b.Write(body)
	b.WriteString("}\n")
	return b.Bytes()
}

// Batches is what ordering did in a run, and what still waits.
type Batches struct {
	Jobs   []Job `json:"jobs"`   // open ones, and those that this run took answers from
	Unsent int   `json:"unsent"` // requests that wait for room in the service's queue
}

// TakeBatches brings every open job forward: a plan that was stored and not sent is sent, a file or
// batch that the service has although no id of it was stored is adopted, and answers are stored and
// paid for by their records. Requests that a job did not answer are collected again when they are
// asked for. Killed at any moment, it goes on where it was.
func (c *Client) TakeBatches(ctx context.Context) (b Batches, err error) {
	if err := c.unplanned(); err != nil {
		return b, err
	}
	for entry, err := range c.orders.jobs.Scan("", "") {
		if err != nil {
			return b, fmt.Errorf("read batch jobs: %w", err)
		}
		j := entry.Value
		if j.Taken {
			continue
		}
		r, ok := c.endpoints[j.Endpoint]
		if !ok || r.profile.Batch == nil {
			return b, fmt.Errorf("batch job %s was ordered from endpoint %s, which has no batch API in this configuration; put it back, or its answers are lost", j.ID, j.Endpoint)
		}
		if j, err = c.take(ctx, r, j); err != nil {
			return b, fmt.Errorf("batch job %s at %s: %w", cmp.Or(j.Batch, j.ID), j.Endpoint, err)
		}
		b.Jobs = append(b.Jobs, j)
	}
	return b, nil
}

// unplanned frees requests whose job was never stored: nothing of it was sent.
func (c *Client) unplanned() error {
	known := map[string]bool{}
	for key, err := range c.orders.jobs.Keys("", "") {
		if err != nil {
			return fmt.Errorf("read batch jobs: %w", err)
		}
		known[kv.Parts(key)[0]] = true
	}
	var ops []kv.Op
	for entry, err := range c.orders.meta.Scan("", "") {
		if err != nil {
			return fmt.Errorf("read orders: %w", err)
		}
		if o := entry.Value; o.Job != "" && !known[o.Job] {
			o.Job = ""
			op, err := c.orders.meta.PutOp(entry.Key, o)
			if err != nil {
				return err
			}
			ops = append(ops, op)
		}
	}
	return c.writeAll(ops)
}

// opsAtOnce bounds one write; an order or a record is some kilobytes.
const opsAtOnce = 400

func (c *Client) writeAll(ops []kv.Op) error {
	for some := range slices.Chunk(ops, opsAtOnce) {
		if err := c.o.Store.Write(some...); err != nil {
			return err
		}
	}
	return nil
}

// take brings one job forward.
func (c *Client) take(ctx context.Context, r *route, j Job) (Job, error) {
	if j.Batch == "" {
		if err := c.adopt(ctx, r, &j); err != nil {
			return j, err
		}
		if err := c.send(ctx, r, &j); err != nil || j.Taken || j.Batch == "" {
			return j, err
		}
	}
	body, status, err := c.batchGet(ctx, r, j.Model, "/batches/"+url.PathEscape(j.Batch))
	if err != nil {
		return j, err
	}
	if status == http.StatusNotFound {
		return c.giveBack(j, "the service does not know the batch any more", nil)
	}
	if status >= 300 {
		return j, refused("look at the batch", status, body)
	}
	at, err := ReadBatchJob(body)
	if err != nil {
		return j, err
	}
	j.State = at.State
	if !at.State.Ended() {
		return j, c.orders.jobs.Put(kv.Key(j.ID), j)
	}
	if at.State == BatchFailed && at.Output == "" && at.Errors == "" {
		return c.failedJob(j, body)
	}
	var odd oddLines
	for _, file := range []string{at.Output, at.Errors} {
		if file == "" {
			continue
		}
		if err := c.download(ctx, r, &j, file, &odd); err != nil {
			return j, err
		}
	}
	if len(at.Lines) > 0 {
		lines := bufio.NewReader(bytes.NewReader(bytes.Join(rawLines(at.Lines), []byte("\n"))))
		if err := c.takeLines(r, &j, "the batch", lines, &odd); err != nil {
			return j, err
		}
	}
	// What it lacks may be what a connection lost; until that is there, nothing of it is ordered again.
	if lacks := at.Succeeded - j.Answered - j.Refused; odd.n == 0 && lacks > 0 {
		odd = oddLines{lacks, fmt.Errorf("the batch tells of %d answers, and its file holds %d", at.Succeeded, at.Succeeded-lacks)}
	}
	if odd.n == 0 {
		return c.giveBack(j, "", nil)
	}
	if j.Unread++; j.Unread < mostTries {
		j.Note = fmt.Sprintf("%d lines of its answers cannot be read, the first %s; all others are stored, and the next run reads it again", odd.n, odd.first)
		return j, c.orders.jobs.Put(kv.Key(j.ID), j)
	}
	if j, err = c.giveBack(j, "", nil); err != nil {
		return j, err
	}
	j.Note = fmt.Sprintf("%d lines of its answers could not be read in %d runs, the first %s; what they would have answered is ordered again", odd.n, j.Unread, odd.first)
	return j, c.orders.jobs.Put(kv.Key(j.ID), j)
}

// oddLines are lines of answers that cannot be read, or are not there.
type oddLines struct {
	n     int
	first error
}

func rawLines(list []json.RawMessage) (out [][]byte) {
	for _, l := range list {
		var b bytes.Buffer
		if json.Compact(&b, l) == nil {
			out = append(out, b.Bytes())
		}
	}
	return out
}

// failedJob is one that the service refused as a whole. A queue that is full teaches how much fits; any
// other reason is one of its requests, and all of them fail with it.
func (c *Client) failedJob(j Job, body []byte) (Job, error) {
	var w struct {
		Errors struct {
			Data []struct {
				Code    string `json:"code"`
				Message string `json:"message"`
			} `json:"data"`
		} `json:"errors"`
	}
	_ = json.Unmarshal(body, &w) // ReadBatchJob read it already
	if j.Undone {
		return c.giveBack(j, "the batch turned up after its file was taken back, and answers nothing", nil)
	}
	why, full := "the service refused the file", false
	for _, e := range w.Errors.Data {
		why += fmt.Sprintf(": %s (%s)", e.Message, e.Code)
		full = full || e.Code == "token_limit_exceeded" || e.Code == "request_limit_exceeded" || e.Code == "rate_limit_exceeded"
	}
	if !full {
		return c.giveBack(j, why, &refusal{Reason: ReasonRejected, Detail: why})
	}
	if err := c.orders.quotas.Put(kv.Key(j.Endpoint, j.Model), max(j.Tokens/2, 1)); err != nil {
		return j, err
	}
	if j.Requests > 1 {
		return c.giveBack(j, why, nil)
	}
	// Nothing less can be ordered, so that it counts as a try.
	j, err := c.giveBack(j, "", nil)
	if err != nil {
		return j, err
	}
	j.Note = why
	return j, c.orders.jobs.Put(kv.Key(j.ID), j)
}

// giveBack ends a job: what it did not answer belongs to no job again.
func (c *Client) giveBack(j Job, note string, failed *refusal) (Job, error) {
	var ops []kv.Op
	for entry, err := range c.orders.meta.Scan("", "") {
		if err != nil {
			return j, fmt.Errorf("read orders: %w", err)
		}
		o := entry.Value
		if o.Job != j.ID {
			continue
		}
		o.Job, o.Failed = "", failed
		if note == "" { // a job that was never begun is no try
			o.Tries++
		}
		if o.Tries >= mostTries && o.Failed == nil {
			o.Failed = &refusal{Reason: ReasonTimeout, Detail: fmt.Sprintf("%d batches ended without an answer to it", o.Tries)}
		}
		op, err := c.orders.meta.PutOp(entry.Key, o)
		if err != nil {
			return j, err
		}
		ops = append(ops, op)
	}
	if err := c.writeAll(ops); err != nil {
		return j, err
	}
	j.Returned, j.Taken, j.Note = len(ops), true, note
	return j, c.orders.jobs.Put(kv.Key(j.ID), j)
}

// download takes the lines of a file of answers or errors.
func (c *Client) download(ctx context.Context, r *route, j *Job, file string, odd *oddLines) error {
	resp, err := c.batchDo(ctx, r, j.Model, http.MethodGet, "/files/"+url.PathEscape(file)+"/content", nil, nil, 0, "")
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 300 {
		body, _ := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
		return refused("read the file "+file, resp.StatusCode, body)
	}
	return c.takeLines(r, j, "file "+file, bufio.NewReader(resp.Body), odd)
}

// takeLines stores what lines say, some hundred at a time. An order is deleted with the same write that
// stores its answer, so a line that is read again after a crash finds none and is passed over; so is one that
// answers a request a second time. A line that cannot be read is counted, and takes no other answer away.
func (c *Client) takeLines(r *route, j *Job, where string, lines *bufio.Reader, odd *oddLines) error {
	key := c.o.Getenv(r.at.KeyEnv)
	var ops []kv.Op
	answered := map[string]bool{} // by ops, which are not written yet
	var records []Record
	flush := func() error {
		if err := c.o.Store.Write(ops...); err != nil {
			return err
		}
		for _, rec := range records {
			c.ledger.delivered(rec)
		}
		ops, records = nil, nil
		clear(answered)
		return c.orders.jobs.Put(kv.Key(j.ID), *j)
	}
	for n := 1; ; n++ {
		line, long, err := readLine(lines, maxAnswer)
		if err != nil && !errors.Is(err, io.EOF) {
			return errors.Join(fmt.Errorf("line %d: %w", n, err), flush())
		}
		last := err != nil
		if long {
			if odd.n++; odd.first == nil {
				odd.first = fmt.Errorf("line %d of %s: it is longer than %d bytes", n, where, maxAnswer)
			}
		} else if line = bytes.TrimSpace(line); len(line) > 0 {
			rec, more, err := c.takeLine(r, j, []byte(maskBody(string(line), key)), answered)
			var unread *json.SyntaxError
			var other *json.UnmarshalTypeError
			switch {
			case errors.As(err, &unread), errors.As(err, &other):
				if odd.n++; odd.first == nil {
					odd.first = fmt.Errorf("line %d of %s: %w", n, where, err)
				}
			case err != nil:
				return errors.Join(fmt.Errorf("line %d: %w", n, err), flush())
			}
			if ops = append(ops, more...); rec != nil {
				records = append(records, *rec)
			}
		}
		if last || len(ops) >= opsAtOnce {
			if err := flush(); err != nil || last {
				return err
			}
		}
	}
}

// readLine reads a line; of one that is longer than most, the rest is passed over.
func readLine(r *bufio.Reader, most int) (line []byte, long bool, err error) {
	for {
		some, err := r.ReadSlice('\n')
		if long = long || len(line)+len(some) > most; !long {
			line = append(line, some...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, long, err
		}
	}
}

// takeLine reads one line into a record and what is to be written, unless its request is answered.
func (c *Client) takeLine(r *route, j *Job, line []byte, answered map[string]bool) (*Record, []kv.Op, error) {
	var w struct {
		ID       string `json:"custom_id"`
		Response *struct {
			Status int             `json:"status_code"`
			Body   json.RawMessage `json:"body"`
		} `json:"response"`
		Error json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(line, &w); err != nil {
		return nil, nil, fmt.Errorf("read batch line: %w", err)
	}
	if answered[w.ID] {
		return nil, nil, nil
	}
	o, ok, err := c.orders.meta.Get(kv.Key(w.ID))
	if err != nil || !ok || o.Job != j.ID {
		return nil, nil, err // answered already, or none of ours
	}
	answered[w.ID] = true
	body, _, err := c.orders.bodies.Get(kv.Key(w.ID))
	if err != nil {
		return nil, nil, err
	}
	free, err := (&Template{Name: cmp.Or(o.Template, "free")}).compile()
	if err != nil {
		return nil, nil, err
	}
	cl := &call{
		id: w.ID, role: o.Role, route: r, model: o.Model, params: o.Params, sample: o.Sample, template: free,
		input: o.Input, body: body, maxTokens: o.MaxTokens, batch: true,
	}
	seen := Seen{Started: j.Planned, Latency: c.o.Now().Sub(j.Planned), Attempt: o.Attempt}
	var rec Record
	var kept answer
	var failed *Error
	res := &result{header: http.Header{}}
	if w.Response == nil {
		failed = cl.unanswered(w.Error, line)
	} else {
		res.status, res.body = w.Response.Status, w.Response.Body
		rec, kept, failed = c.reckon(cl, res, seen)
	}
	if failed != nil {
		rec = c.failure(cl, seen, failed)
	}
	rec.Template, rec.TemplateVersion, rec.TemplateHash, rec.Batch = o.Template, o.TemplateVersion, o.TemplateHash, j.Batch
	put, err := c.calls.PutOp(recordKey(w.ID, o.Attempt), rec)
	if err != nil {
		return nil, nil, err
	}
	ops := []kv.Op{put}
	if failed != nil {
		j.Refused++
		o.Job, o.Attempt, o.Tries = "", o.Attempt+1, o.Tries+1
		if !reasons[failed.Reason].again || o.Tries >= mostTries {
			o.Failed = &refusal{failed.Reason, failed.Status, failed.Detail}
		}
		put, err := c.orders.meta.PutOp(kv.Key(w.ID), o)
		return &rec, append(ops, put), err
	}
	j.Answered++
	raw, err := c.raw.PutOp(recordKey(w.ID, o.Attempt), res.body)
	if err != nil {
		return nil, nil, err
	}
	ans, err := c.answers.PutOp(kv.Key(w.ID), kept)
	if err != nil {
		return nil, nil, err
	}
	return &rec, append(ops, raw, ans, c.orders.meta.DeleteOp(kv.Key(w.ID)), c.orders.bodies.DeleteOp(kv.Key(w.ID))), nil
}

// OrderBatches sends what this run collected: files of requests to one model each, within the limits of
// the endpoint's profile and of what its queue is known to take. A plan is stored before anything of
// it leaves the machine. What was collected by an earlier run and not asked for in this one is dropped.
func (c *Client) OrderBatches(ctx context.Context) (b Batches, err error) {
	type group struct {
		endpoint, model string
		ids             []string
		orders          []order
	}
	groups := map[string]*group{}
	queued := map[string]int{} // tokens of open jobs
	var unwanted []kv.Op
	for entry, err := range c.orders.meta.Scan("", "") {
		if err != nil {
			return b, fmt.Errorf("read orders: %w", err)
		}
		o, id := entry.Value, kv.Parts(entry.Key)[0]
		key := kv.Key(o.Endpoint, o.Model)
		if o.Job != "" {
			queued[key] += o.Tokens
			continue
		}
		if _, asked := c.asked.Load(id); !asked {
			if o.Failed == nil {
				unwanted = append(unwanted, c.orders.meta.DeleteOp(entry.Key), c.orders.bodies.DeleteOp(entry.Key))
			}
			continue
		}
		g := groups[key]
		if g == nil {
			g = &group{endpoint: o.Endpoint, model: o.Model}
			groups[key] = g
		}
		g.ids, g.orders = append(g.ids, id), append(g.orders, o)
	}
	if err := c.writeAll(unwanted); err != nil {
		return b, err
	}
	for _, key := range slices.Sorted(maps.Keys(groups)) {
		g := groups[key]
		r := c.endpoints[g.endpoint]
		quota, taught, err := c.orders.quotas.Get(key)
		if err != nil {
			return b, err
		}
		for start := 0; start < len(g.ids); {
			j := Job{Endpoint: g.endpoint, Model: g.model, Planned: c.o.Now().UTC().Round(0)}
			end := start
			for ; end < len(g.ids); end++ {
				o := g.orders[end]
				fits := j.Requests < r.profile.Batch.Requests && j.Bytes+int64(o.Bytes) <= r.profile.Batch.Bytes
				room := !taught || queued[key]+j.Tokens+o.Tokens <= quota || queued[key]+j.Tokens == 0
				if !fits && j.Requests > 0 || !room {
					break
				}
				j.Requests, j.Bytes, j.Tokens = j.Requests+1, j.Bytes+int64(o.Bytes), j.Tokens+o.Tokens
			}
			if j.Requests == 0 {
				b.Unsent += len(g.ids) - start
				break
			}
			if err := c.plan(&j, g.ids[start:end], g.orders[start:end]); err != nil {
				return b, err
			}
			if err := c.send(ctx, r, &j); err != nil {
				return b, fmt.Errorf("batch job %s at %s: %w", j.ID, j.Endpoint, err)
			}
			b.Jobs = append(b.Jobs, j)
			queued[key] += j.Tokens
			start = end
		}
	}
	return b, nil
}

// plan stores which requests make a job; the job itself comes last and makes the plan valid.
func (c *Client) plan(j *Job, ids []string, list []order) error {
	before := 0
	for _, err := range c.orders.jobs.Keys("", "") {
		if err != nil {
			return err
		}
		before++
	}
	j.ID = hashParts(append([]string{strconv.Itoa(before), j.Planned.Format(time.RFC3339Nano)}, ids...)...)[:24]
	var ops []kv.Op
	for i, id := range ids {
		list[i].Job = j.ID
		op, err := c.orders.meta.PutOp(kv.Key(id), list[i])
		if err != nil {
			return err
		}
		ops = append(ops, op)
	}
	if err := c.writeAll(ops); err != nil {
		return err
	}
	return c.orders.jobs.Put(kv.Key(j.ID), *j)
}

// fileName is how a job's file is called at the service.
func (j Job) fileName() string { return "assay-" + j.ID + ".jsonl" }

// metadataKey holds the id of a job in the metadata of its batch.
const metadataKey = "assay_job"

// send uploads a job's file and makes its batch, as far as that is not done. Without an error and without a batch
// the service needs more time, and the note says for what. What the service will never take is given back.
func (c *Client) send(ctx context.Context, r *route, j *Job) error {
	err := c.create(ctx, r, j)
	var no *refusedError
	if errors.As(err, &no) && no.forGood() {
		back, backErr := c.giveBack(*j, err.Error(), nil)
		*j = back
		return errors.Join(err, backErr)
	}
	return err
}

func (c *Client) create(ctx context.Context, r *route, j *Job) error {
	if j.Batch != "" {
		return nil
	}
	if j.File == "" {
		file, err := c.upload(ctx, r, j)
		if err != nil {
			return err
		}
		j.File = file.ID
		if err := c.orders.jobs.Put(kv.Key(j.ID), *j); err != nil {
			return err
		}
	}
	if !j.Asked.IsZero() {
		return c.undo(ctx, r, j)
	}
	if ready, err := c.read(ctx, r, j); err != nil || !ready {
		return err
	}
	j.Asked, j.Note = c.o.Now().UTC().Round(0), ""
	if err := c.orders.jobs.Put(kv.Key(j.ID), *j); err != nil {
		return err
	}
	body := encode(map[string]any{
		"input_file_id": j.File, "endpoint": r.profile.Batch.URL, "completion_window": "24h",
		"metadata": map[string]string{metadataKey: j.ID},
	})
	resp, err := c.batchDo(ctx, r, j.Model, http.MethodPost, "/batches", nil, func() (io.Reader, error) { return bytes.NewReader(body), nil }, int64(len(body)), "application/json")
	if err != nil {
		return err // whether there is a batch now, the next run finds out
	}
	defer resp.Body.Close()
	reply, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return err
	}
	if resp.StatusCode >= 300 {
		no := refused("make a batch (POST /batches)", resp.StatusCode, reply)
		if resp.StatusCode < 500 { // it says that there is none
			j.Asked = time.Time{}
			return errors.Join(no, c.orders.jobs.Put(kv.Key(j.ID), *j))
		}
		return no
	}
	at, err := ReadBatchJob(reply)
	if err != nil {
		return err
	}
	j.Batch, j.State = at.ID, at.State
	return c.orders.jobs.Put(kv.Key(j.ID), *j)
}

// later leaves a job to a later run.
func (c *Client) later(j *Job, note string) error {
	j.State, j.Note = BatchWaiting, note
	return c.orders.jobs.Put(kv.Key(j.ID), *j)
}

// mostReads is how often a run asks whether the service has read a file.
const mostReads = 6

// read waits until the service has read a job's file, where it has to. What takes longer is left to a later run.
func (c *Client) read(ctx context.Context, r *route, j *Job) (ready bool, err error) {
	if !r.profile.Batch.Reads {
		return true, nil
	}
	for try := range mostReads {
		body, status, err := c.batchGet(ctx, r, j.Model, "/files/"+url.PathEscape(j.File))
		if err != nil {
			return false, err
		}
		if status >= 300 {
			return false, refused("look at the file "+j.File, status, body)
		}
		f, err := ReadBatchFile(body)
		if err != nil {
			return false, err
		}
		switch strings.ToLower(f.Status) {
		case "error", "failed", "deleted", "canceled":
			*j, err = c.giveBack(*j, fmt.Sprintf("the service could not read the file %s: %s", j.File, f.Status), &refusal{Reason: ReasonRejected, Detail: "the service could not read the file of the batch: " + f.Status})
			return false, err
		case "pending", "running", "notrunning":
		default:
			return true, nil
		}
		if err := c.o.Sleep(ctx, backoff(try, 0)); err != nil {
			return false, err
		}
	}
	return false, c.later(j, "the service is still reading the file; the next run makes the batch")
}

// undo ends the doubt whether a batch that was asked for is made. Once its time is over, the file is taken back
// first: of a file that is gone the service makes nothing, however late it takes the asking in. What is in no list
// after that never answers, and its requests can be ordered again without being paid for twice.
func (c *Client) undo(ctx context.Context, r *route, j *Job) error {
	asked := fmt.Sprintf("the batch was asked for at %s and the service did not say whether it made it", j.Asked.Format(time.RFC3339))
	since := c.o.Now().Sub(j.Asked)
	if since < askGrace {
		return c.later(j, fmt.Sprintf("%s; if it has not turned up by %s its file is taken back and its requests are ordered again", asked, j.Asked.Add(askGrace).Format(time.RFC3339)))
	}
	resp, err := c.batchDo(ctx, r, j.Model, http.MethodDelete, "/files/"+url.PathEscape(j.File), nil, nil, 0, "")
	if err != nil {
		return err
	}
	resp.Body.Close()
	if gone := resp.StatusCode < 300 || resp.StatusCode == http.StatusNotFound; !gone && since < window {
		return c.later(j, fmt.Sprintf("%s, and it does not let go of the file (DELETE: status %d); if it has not turned up by %s its requests are ordered again",
			asked, resp.StatusCode, j.Asked.Add(window).Format(time.RFC3339)))
	}
	j.Undone = true
	if err := c.adopt(ctx, r, j); err != nil || j.Batch != "" {
		return err
	}
	*j, err = c.giveBack(*j, asked+"; its file is taken back, so that nothing is made of it any more", nil)
	return err
}

// upload sends a job's requests as a file, streamed from the store in the order of their keys.
func (c *Client) upload(ctx context.Context, r *route, j *Job) (BatchFile, error) {
	const boundary = "assay-batch-file-boundary-9f1c"
	head := "--" + boundary + "\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nbatch\r\n--" + boundary +
		"\r\nContent-Disposition: form-data; name=\"file\"; filename=\"" + j.fileName() + "\"\r\nContent-Type: application/jsonl\r\n\r\n"
	tail := "\r\n--" + boundary + "--\r\n"
	open := func() (io.Reader, error) {
		lines := c.file(r, *j)
		return struct {
			io.Reader
			io.Closer // ends the writer of lines when the request ends before it
		}{io.MultiReader(strings.NewReader(head), lines, strings.NewReader(tail)), lines}, nil
	}
	resp, err := c.batchDo(ctx, r, j.Model, http.MethodPost, "/files", nil, open, int64(len(head)+len(tail))+j.Bytes, "multipart/form-data; boundary="+boundary)
	if err != nil {
		return BatchFile{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return BatchFile{}, err
	}
	if resp.StatusCode >= 300 {
		return BatchFile{}, refused("upload the file (POST /files)", resp.StatusCode, body)
	}
	return ReadBatchFile(body)
}

// file reads a job's lines.
func (c *Client) file(r *route, j Job) io.ReadCloser {
	from, to := io.Pipe()
	go func() { to.CloseWithError(c.writeLines(to, r, j)) }()
	return from
}

func (c *Client) writeLines(to io.Writer, r *route, j Job) error {
	for entry, err := range c.orders.meta.Scan("", "") {
		if err != nil {
			return fmt.Errorf("read orders: %w", err)
		}
		if entry.Value.Job != j.ID {
			continue
		}
		body, ok, err := c.orders.bodies.Get(entry.Key)
		if err != nil || !ok {
			return errors.Join(fmt.Errorf("the body of request %s cannot be read", entry.Key), err)
		}
		if _, err := to.Write(batchLine(encode(kv.Parts(entry.Key)[0]), r.profile.Batch.URL, body)); err != nil {
			return err
		}
	}
	return nil
}

// adopt looks for what the service has of a job that was stored without ids: a run was killed, or lost
// its connection, between asking and hearing.
func (c *Client) adopt(ctx context.Context, r *route, j *Job) error {
	if j.File == "" {
		err := c.pages(ctx, r, j.Model, "/files", url.Values{"purpose": {"batch"}}, func(raw json.RawMessage) bool {
			var f struct {
				ID   string `json:"id"`
				Name string `json:"filename"`
			}
			if json.Unmarshal(raw, &f) == nil && f.Name == j.fileName() {
				j.File = f.ID
			}
			return j.File == ""
		})
		if err != nil || j.File == "" {
			return err
		}
	}
	err := c.pages(ctx, r, j.Model, "/batches", nil, func(raw json.RawMessage) bool {
		var b struct {
			ID       string            `json:"id"`
			File     string            `json:"input_file_id"`
			Metadata map[string]string `json:"metadata"`
		}
		if json.Unmarshal(raw, &b) == nil && (b.Metadata[metadataKey] == j.ID || b.File == j.File) {
			j.Batch, j.Note = b.ID, ""
		}
		return j.Batch == ""
	})
	if err != nil {
		return err
	}
	return c.orders.jobs.Put(kv.Key(j.ID), *j)
}

// pages walks a listing until visit says false.
func (c *Client) pages(ctx context.Context, r *route, model, path string, query url.Values, visit func(json.RawMessage) bool) error {
	after := ""
	for {
		q := url.Values{"limit": {"100"}}
		maps.Copy(q, query)
		if after != "" {
			q.Set("after", after)
		}
		body, status, err := c.batchGet(ctx, r, model, path+"?"+q.Encode())
		if err != nil {
			return err
		}
		if status >= 300 {
			return refused("list "+path, status, body)
		}
		var page struct {
			Data []json.RawMessage `json:"data"`
			More bool              `json:"has_more"`
		}
		if err := json.Unmarshal(body, &page); err != nil {
			return fmt.Errorf("read the list at %s: %w", path, err)
		}
		before := after
		for _, raw := range page.Data {
			if !visit(raw) {
				return nil
			}
			var id struct {
				ID string `json:"id"`
			}
			_ = json.Unmarshal(raw, &id) // without one the list ends here
			after = id.ID
		}
		if !page.More || after == before {
			return nil
		}
	}
}

func (c *Client) batchGet(ctx context.Context, r *route, model, path string) ([]byte, int, error) {
	path, query, _ := strings.Cut(path, "?")
	q, err := url.ParseQuery(query)
	if err != nil {
		return nil, 0, err
	}
	resp, err := c.batchDo(ctx, r, model, http.MethodGet, path, q, nil, 0, "")
	if err != nil {
		return nil, 0, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxReply))
	return []byte(maskBody(string(body), c.o.Getenv(r.at.KeyEnv))), resp.StatusCode, err
}

// batchDo sends one request of the Files and Batches interface. What only reads is tried again; what
// makes something is not, since a lost reply does not say whether it was made.
func (c *Client) batchDo(ctx context.Context, r *route, model, method, path string, query url.Values, body func() (io.Reader, error), size int64, kind string) (*http.Response, error) {
	key, missing := keyOf(&call{route: r, model: model}, c.o.Getenv)
	if missing != nil {
		return nil, missing
	}
	to, err := r.address(model, path)
	if err != nil {
		return nil, err
	}
	q := to.Query()
	maps.Copy(q, query)
	to.RawQuery = q.Encode()
	for try := 0; ; try++ {
		var from io.Reader
		if body != nil {
			if from, err = body(); err != nil {
				return nil, err
			}
		}
		req, err := http.NewRequestWithContext(ctx, method, to.String(), from)
		if err != nil {
			return nil, err
		}
		if body != nil {
			req.ContentLength = size
			req.Header.Set("Content-Type", kind)
		}
		switch {
		case key == "":
		case r.profile.KeyHeader != "":
			req.Header.Set(r.profile.KeyHeader, key)
		default:
			req.Header.Set("Authorization", "Bearer "+key)
		}
		resp, err := c.http.Do(req)
		passes := err != nil && ctx.Err() == nil || err == nil && (resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode >= 500)
		if !passes || method != http.MethodGet || try >= c.o.Retries {
			if err != nil {
				err = errors.New(mask(err.Error(), key))
			}
			return resp, err
		}
		wait := time.Duration(0)
		if err == nil {
			wait = waitAsked(resp.Header, nil, c.o.Now())
			resp.Body.Close()
		}
		if wait > c.o.RetryAfterCap {
			return nil, fmt.Errorf("%s %s: status %d, and it asks to be left alone for %s", method, path, resp.StatusCode, wait)
		}
		if err := c.o.Sleep(ctx, backoff(try, wait)); err != nil {
			return nil, err
		}
	}
}

// refusedError is a refusal of the Files or Batches interface.
type refusedError struct {
	what   string
	status int
	detail string
}

func (e *refusedError) Error() string {
	text := fmt.Sprintf("%s: status %d: %s", e.what, e.status, cmp.Or(e.detail, "the reply is empty"))
	if e.status == http.StatusNotFound || e.status == http.StatusMethodNotAllowed {
		text += "; there seems to be no batch API at this address: look at base_url and, with Azure, api-version and whether the model is a batch deployment, or build without --batch"
	}
	return text
}

// forGood reports whether the same request is never taken: nothing was made, and asking again is no use.
func (e *refusedError) forGood() bool {
	switch e.status {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusGone, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return true
	}
	return false
}

func refused(what string, status int, body []byte) error {
	return &refusedError{what, status, glimpse(body)}
}
