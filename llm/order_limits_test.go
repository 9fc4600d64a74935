package llm

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Files hold requests to one model each, and no more of them than the service takes, by number and by size. What is
// ordered stands in one file.
func TestBatchFilesKeepToTheLimits(t *testing.T) {
	at := slices.IndexFunc(Profiles, func(p Profile) bool { return p.Name == "openai" })
	was := Profiles[at].Batch
	defer func() { Profiles[at].Batch = was }()
	for name, tt := range map[string]struct {
		limits BatchAPI
		want   []string // requests of a file, by its model
	}{
		"as it comes": {*was, []string{"model-a 7", "model-b 2"}},
		"by number":   {BatchAPI{Requests: 3, Bytes: was.Bytes, URL: was.URL, Discount: was.Discount}, []string{"model-a 1", "model-a 3", "model-a 3", "model-b 2"}},
		"by size":     {BatchAPI{Requests: 50, Bytes: 1, URL: was.URL, Discount: was.Discount}, slices.Concat(slices.Repeat([]string{"model-a 1"}, 7), slices.Repeat([]string{"model-b 1"}, 2))},
	} {
		t.Run(name, func(t *testing.T) {
			Profiles[at].Batch = &tt.limits
			var files []string
			made := 0
			server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				switch r.Method + " " + r.URL.Path {
				case "POST /v1/files":
					f, _, err := r.FormFile("file")
					if err != nil {
						t.Error(err)
						return
					}
					text, err := io.ReadAll(f)
					if err != nil {
						t.Error(err)
					}
					files = append(files, string(text))
					fmt.Fprintf(rw, `{"id":"file-%d","object":"file","purpose":"batch","status":"processed"}`, len(files))
				case "POST /v1/batches":
					made++
					fmt.Fprintf(rw, `{"id":"batch-%d","object":"batch","status":"validating","input_file_id":"file-%d"}`, made, made)
				default:
					io.WriteString(rw, `{"object":"list","data":[],"has_more":false}`)
				}
			}))
			defer server.Close()
			c, err := New(Options{Store: memory(t), Batch: true, Endpoints: map[string]Endpoint{"main": {Provider: ProviderOpenAI, BaseURL: server.URL + "/v1", Profile: "openai", Price: &Price{Input: 1, Output: 1}}}})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			for i := range 9 {
				q := ask(i)
				if q.Model = "model-a"; i >= 7 {
					q.Model = "model-b"
				}
				var waits *WaitingError
				if _, err := c.Complete(t.Context(), q); !errors.As(err, &waits) {
					t.Fatalf("request %d: %v", i, err)
				}
			}
			if _, err := c.OrderBatches(t.Context()); err != nil {
				t.Fatal(err)
			}
			var got []string
			ordered := map[string]bool{}
			for _, text := range files {
				models := map[string]int{}
				lines := bufio.NewScanner(strings.NewReader(text))
				lines.Buffer(nil, 1<<20)
				for lines.Scan() {
					var line struct {
						ID   string `json:"custom_id"`
						Body struct{ Model string }
					}
					if err := json.Unmarshal(lines.Bytes(), &line); err != nil || ordered[line.ID] {
						t.Errorf("line %s: %v, ordered before: %t", line.ID, err, ordered[line.ID])
					}
					ordered[line.ID] = true
					models[line.Body.Model]++
				}
				for model, n := range models {
					got = append(got, fmt.Sprint(model, " ", n))
				}
			}
			slices.Sort(got)
			if diff := cmp.Diff(tt.want, got); diff != "" || made != len(files) {
				t.Errorf("%d batches, files (-want +got):\n%s", made, diff)
			}
		})
	}
}

// What a batch refused as too long is refused again in every later run without an order, since what asks comes by it once
// more with each answer it waits for; what is tried again on purpose orders it.
func TestBatchOrdersNothingTooLongAgain(t *testing.T) {
	a, _, run := azureLab(t, "?api-version=2024-10-21")
	a.answers = `{"custom_id":"%[1]s","response":{"status_code":400,"body":{"error":{"code":"context_length_exceeded"}}},"error":null}` + "\n"
	if _, _, err := a.order(run()); err != nil {
		t.Fatal(err)
	}
	a.state[a.batches[0]] = "completed"
	for n := range 3 {
		_, _, err := a.order(run())
		var refused *Error
		if !errors.As(err, &refused) || refused.Reason != ReasonContext || refused.Status != 400 || a.created != 1 {
			t.Errorf("run %d: %v after %d batches", n, err, a.created)
		}
	}
	again := run()
	again.o.Retried = func(context.Context) bool { return true }
	if _, _, err := a.order(again); err != nil || a.created != 2 {
		t.Errorf("tried again: %v after %d batches", err, a.created)
	}
}
