package llm

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"
	"time"
)

// BatchState is where a batch job stands, in one vocabulary for all services.
type BatchState string

// The values of BatchState. From BatchDone on a job does not change any more; every one of these may
// have answered, and billed, a part of its requests.
const (
	BatchWaiting   BatchState = "waiting"
	BatchRunning   BatchState = "running"
	BatchDone      BatchState = "done"
	BatchFailed    BatchState = "failed"
	BatchExpired   BatchState = "expired"
	BatchCancelled BatchState = "cancelled"
)

// batchStates maps what services call their states: OpenAI's in lower case, Mistral's in upper case.
var batchStates = map[string]BatchState{
	"validating": BatchWaiting, "queued": BatchWaiting,
	"in_progress": BatchRunning, "running": BatchRunning, "finalizing": BatchRunning, "cancelling": BatchRunning, "cancellation_requested": BatchRunning,
	"completed": BatchDone, "success": BatchDone,
	"failed": BatchFailed, "expired": BatchExpired, "timeout_exceeded": BatchExpired, "cancelled": BatchCancelled,
}

// Ended reports whether the job does not change any more.
func (s BatchState) Ended() bool { return s != BatchWaiting && s != BatchRunning }

// BatchJob is a batch job as its service describes it.
type BatchJob struct {
	ID        string
	State     BatchState
	Model     string // empty where the service does not tell
	Total     int
	Succeeded int
	Failed    int
	Input     string // id of the file with the requests
	Output    string // id of the file with the answers; empty for none
	Errors    string // id of the file with the failed requests; empty for none
	Usage     Usage
	Lines     []json.RawMessage // output lines that came with the job itself
}

// wireBatch is a job in both spellings.
type wireBatch struct {
	ID     string          `json:"id"`
	Object string          `json:"object"`
	Status string          `json:"status"`
	Model  *string         `json:"model"`
	Error  json.RawMessage `json:"error"`
	Counts struct {
		Total     int `json:"total"`
		Completed int `json:"completed"`
		Failed    int `json:"failed"`
	} `json:"request_counts"`
	Total      int               `json:"total_requests"`
	Succeeded  int               `json:"succeeded_requests"`
	Failed     int               `json:"failed_requests"`
	InputFile  string            `json:"input_file_id"`
	InputFiles []string          `json:"input_files"`
	OutputFile *string           `json:"output_file_id"`
	ErrorFile  *string           `json:"error_file_id"`
	OutputName *string           `json:"output_file"`
	ErrorName  *string           `json:"error_file"`
	Usage      *wireUsage        `json:"usage"`
	Outputs    []json.RawMessage `json:"outputs"`
}

// ReadBatchJob reads the description of a batch job.
func ReadBatchJob(body []byte) (BatchJob, error) {
	var w wireBatch
	if err := json.Unmarshal(body, &w); err != nil {
		return BatchJob{}, fmt.Errorf("read batch job: %w", err)
	}
	state, known := batchStates[strings.ToLower(w.Status)]
	if w.ID == "" || !known {
		return BatchJob{}, fmt.Errorf("read batch job: id %q has state %q: %s", w.ID, w.Status, glimpse(body))
	}
	j := BatchJob{
		ID: w.ID, State: state, Usage: w.Usage.usage(), Input: w.InputFile, Lines: w.Outputs,
		Total: max(w.Counts.Total, w.Total), Succeeded: max(w.Counts.Completed, w.Succeeded), Failed: max(w.Counts.Failed, w.Failed),
	}
	if j.Input == "" && len(w.InputFiles) > 0 {
		j.Input = w.InputFiles[0]
	}
	for to, from := range map[*string][]*string{&j.Model: {w.Model}, &j.Output: {w.OutputFile, w.OutputName}, &j.Errors: {w.ErrorFile, w.ErrorName}} {
		for _, s := range from {
			if s != nil {
				*to = *s
			}
		}
	}
	return j, nil
}

// ReadBatchJobs reads a page of jobs, and whether there are more after it.
func ReadBatchJobs(body []byte) (jobs []BatchJob, more bool, err error) {
	var page struct {
		Data []json.RawMessage `json:"data"`
		More bool              `json:"has_more"`
	}
	if err := json.Unmarshal(body, &page); err != nil {
		return nil, false, fmt.Errorf("read batch jobs: %w", err)
	}
	for _, raw := range page.Data {
		j, err := ReadBatchJob(raw)
		if err != nil {
			return nil, false, err
		}
		jobs = append(jobs, j)
	}
	return jobs, page.More, nil
}

// BatchFile is a file as the service describes it after an upload.
type BatchFile struct {
	ID      string `json:"id"`
	Purpose string `json:"purpose"`
	Status  string `json:"status"`
	Bytes   int64  `json:"bytes"`
}

// ReadBatchFile reads the description of an uploaded file.
func ReadBatchFile(body []byte) (BatchFile, error) {
	var f BatchFile
	if err := json.Unmarshal(body, &f); err != nil {
		return f, fmt.Errorf("read uploaded file: %w", err)
	}
	if f.ID == "" {
		return f, fmt.Errorf("read uploaded file: it has no id: %s", glimpse(body))
	}
	return f, nil
}

// BatchLine is one line of a batch's output, read like a reply to a single request. Either Outcome is
// set or Err, whose FailureClass says whether asking again may help.
type BatchLine struct {
	CustomID string // of the request that it answers; lines do not come in the order of requests
	Outcome  Outcome
	Text     string          // the message as it came, or the refusal
	JSON     json.RawMessage // valid under the template's schema
	Parse    ParseStatus
	Finish   string
	Model    string
	Usage    Usage
	Err      *Error
}

// ReadBatchLine reads a line by the rules of a template; nil means that the answer is free text. An
// error means that the line itself cannot be read.
func ReadBatchLine(line []byte, t *Template) (BatchLine, error) {
	var w struct {
		CustomID string `json:"custom_id"`
		Response *struct {
			Status int             `json:"status_code"`
			Body   json.RawMessage `json:"body"`
		} `json:"response"`
		Error json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(line, &w); err != nil {
		return BatchLine{}, fmt.Errorf("read batch line: %w", err)
	}
	if w.CustomID == "" {
		return BatchLine{}, fmt.Errorf("read batch line: no custom_id: %s", glimpse(line))
	}
	if t == nil {
		t = &Template{Name: "free"}
	}
	ct, err := t.compile()
	if err != nil {
		return BatchLine{}, err
	}
	l := BatchLine{CustomID: w.CustomID}
	c := &call{route: &route{name: "batch"}, template: ct}
	if w.Response == nil {
		l.Err = c.unanswered(w.Error, line)
		return l, nil
	}
	var f facts
	if f, l.Err = c.interpret(&result{status: w.Response.Status, header: http.Header{}, body: w.Response.Body}, time.Time{}); l.Err == nil {
		l.Outcome, l.Text, l.Finish, l.Model, l.Usage = f.outcome, f.text, f.finish, f.model, f.usage
		if f.outcome == "" {
			l.Outcome, l.JSON, l.Parse = ct.read(f.text)
		}
	}
	return l, nil
}

// unanswered is a request that a batch never sent on: what expired or was cancelled may be asked again.
func (c *call) unanswered(raw json.RawMessage, line []byte) *Error {
	w := readError(encode(map[string]json.RawMessage{"error": raw}))
	e := c.fail(w.reason(http.StatusBadRequest), w.describe(line))
	if w.code == "batch_expired" || w.code == "batch_cancelled" {
		e.Reason = ReasonTimeout
	}
	return e
}

// ReadBatchOutput yields the lines of an output file or an error file. A line that cannot be read is an
// error that names its number, and the rest goes on.
func ReadBatchOutput(r io.Reader, t *Template) iter.Seq2[BatchLine, error] {
	return func(yield func(BatchLine, error) bool) {
		lines := bufio.NewReader(r)
		for n := 1; ; n++ {
			line, err := lines.ReadBytes('\n')
			if err != nil && !errors.Is(err, io.EOF) {
				yield(BatchLine{}, fmt.Errorf("read batch output: %w", err))
				return
			}
			last := err != nil
			if line = bytes.TrimSpace(line); len(line) > 0 {
				l, err := ReadBatchLine(line, t)
				if err != nil {
					err = fmt.Errorf("line %d: %w", n, err)
				}
				if !yield(l, err) {
					return
				}
			}
			if last {
				return
			}
		}
	}
}
