package assay

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"

	"assay/fetch"
	"assay/kv"
	"assay/llm"
	"assay/pipeline"
)

// GC drops what neither the live references reach nor a kept release cites: items of stages, exchanges
// with their bodies, and model replies. Imported rows, pairs and documents stay, and so does the record
// of every call, since money is the sum of the records.
func (w *Workspace) GC(ctx context.Context) (kv.GCReport, error) {
	e := w.newEngine(pipeline.Options{Explain: true, RetryFailed: true})
	k := &walk{w: w, e: e, below: true, explain: true, stages: stages{w}}
	if err := k.run(ctx); err != nil {
		return kv.GCReport{}, fmt.Errorf("gc: %w", err)
	}
	touched := e.Touched()
	var readErr error
	cited, err := citedByReleases(filepath.Join(w.Dir, ReleaseDir))
	if err != nil {
		return kv.GCReport{}, fmt.Errorf("gc: %w", err)
	}
	exchanges, err := fetch.Keep(w.store, answersOf(e, touched, &readErr))
	err = errors.Join(err, readErr)
	if err != nil {
		return kv.GCReport{}, fmt.Errorf("gc: %w", err)
	}
	return w.store.GC(ctx, func(bucket, key string) bool {
		switch bucket {
		case pipeline.Bucket:
			return touched.Record(key)
		case llm.BucketRaw, llm.BucketAnswers:
			id := kv.Parts(key)[0]
			return touched.Dep(llm.DepPrefix+id) || cited[id]
		}
		return exchanges(bucket, key)
	})
}

// answersOf yields the keys of the answers that the touched items rest on.
func answersOf(e *pipeline.Engine, touched pipeline.Touched, failed *error) iter.Seq[string] {
	return func(yield func(string) bool) {
		for info, err := range e.Items("") {
			if err != nil {
				continue // unreadable: nothing can rest on it, and the next build makes it again
			}
			if !touched.Item(info.Stage, info.Key) {
				continue
			}
			item, _, err := e.Item(info.Stage, info.Key)
			if err != nil {
				*failed = err
				return
			}
			for _, dep := range item.Deps {
				if !yield(dep.Key) {
					return
				}
			}
		}
	}
}

// citedByReleases reads the request keys of the calls that the releases of a workspace rest on.
func citedByReleases(root string) (map[string]bool, error) {
	cited := map[string]bool{}
	files, err := filepath.Glob(filepath.Join(root, "*", "data", "annotations.jsonl"))
	if err != nil {
		return nil, err
	}
	for _, path := range files {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		d := json.NewDecoder(bufio.NewReader(f))
		for {
			var call struct {
				ID string `json:"id"`
			}
			if err := d.Decode(&call); err == io.EOF {
				break
			} else if err != nil {
				return nil, fmt.Errorf("read %s: %w", path, err)
			}
			cited[call.ID] = true
		}
		if err := f.Close(); err != nil {
			return nil, err
		}
	}
	return cited, nil
}

// Restore makes the store of the workspace in dir from a backup.
func Restore(ctx context.Context, dir string, in io.Reader) (records int, err error) {
	if _, err := os.Stat(filepath.Join(dir, ConfigName)); err != nil {
		return 0, fmt.Errorf("%s has no %s; make the workspace first with: assay init %s", dir, ConfigName, dir)
	}
	state := filepath.Join(dir, stateDir)
	if err := os.MkdirAll(state, 0o755); err != nil {
		return 0, err
	}
	// The index is a cache over another store; it is made again.
	if err := os.RemoveAll(filepath.Join(state, "index")); err != nil {
		return 0, err
	}
	return kv.Restore(ctx, filepath.Join(state, "store"), in)
}
