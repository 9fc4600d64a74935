package assay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"assay/llm"
)

// ErrWaiting ends a build some of whose answers are ordered from a batch API and not there yet.
var ErrWaiting = errors.New("answers are ordered and not there yet; run the same command again to take them in")

// ErrNoBatch is what --batch ends with where no endpoint of the recipe has a batch API.
var ErrNoBatch = errors.New("--batch: no endpoint of this recipe has a batch API; leave it out")

// endpointsInUse are the endpoints that a build by this recipe may ask.
func (w *Workspace) endpointsInUse() (out []string) {
	for _, m := range w.Config.Recipe.Models {
		if !slices.Contains(out, m.Endpoint) {
			out = append(out, m.Endpoint)
		}
	}
	slices.Sort(out)
	return out
}

// batchNotes says of every endpoint in use that has no batch API what that means. Where none has one the
// error says so.
func (w *Workspace) batchNotes() (notes []string, err error) {
	some := false
	for _, name := range w.endpointsInUse() {
		ok, why := w.llm.BatchOf(name)
		if some = some || ok; !ok {
			notes = append(notes, why)
		}
	}
	if !some {
		return nil, fmt.Errorf("%w (%s)", ErrNoBatch, strings.Join(notes, "; "))
	}
	return notes, nil
}

// Batches is what a run ordered from batch APIs and took from them.
type Batches struct {
	llm.Batches
	Notes []string `json:"notes,omitzero"` // on endpoints without a batch API
}

// take is the first part of a run that orders: what is there is stored.
func (b *Batches) take(ctx context.Context, w *Workspace) (err error) {
	if b.Notes, err = w.batchNotes(); err != nil {
		return err
	}
	b.Batches, err = w.llm.TakeBatches(ctx)
	return err
}

// order is the last part: what the walk collected is sent.
func (b *Batches) order(ctx context.Context, w *Workspace) error {
	more, err := w.llm.OrderBatches(ctx)
	b.Jobs, b.Unsent = append(b.Jobs, more.Jobs...), more.Unsent
	return err
}

// Text is a line for each job.
func (b Batches) Text() string {
	var out strings.Builder
	for _, n := range b.Notes {
		fmt.Fprintf(&out, "%s\n", n)
	}
	for _, j := range b.Jobs {
		fmt.Fprintf(&out, "batch %s of %s at %s: %d requests, %s", j.Batch, j.Model, j.Endpoint, j.Requests, j.State)
		if j.Answered+j.Refused+j.Returned > 0 {
			fmt.Fprintf(&out, "; %d answered, %d refused, %d without an answer", j.Answered, j.Refused, j.Returned)
		}
		if j.Note != "" {
			fmt.Fprintf(&out, "; %s", j.Note)
		}
		out.WriteString("\n")
	}
	if b.Unsent > 0 {
		fmt.Fprintf(&out, "%d requests wait for room in the queue of the service; the next run sends what fits\n", b.Unsent)
	}
	return out.String()
}
