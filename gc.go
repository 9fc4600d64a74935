package assay

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"assay/corpus"
	"assay/fetch"
	"assay/kv"
	"assay/llm"
	"assay/pipeline"
)

// GC drops what neither the live references reach nor a kept release cites nor a person may still decide
// on: items of stages, exchanges
// with their bodies, and model replies. Imported rows, pairs and documents stay, and so does the record
// of every call, since money is the sum of the records.
func (w *Workspace) GC(ctx context.Context) (kv.GCReport, error) {
	if err := w.clearTrials(); err != nil {
		return kv.GCReport{}, fmt.Errorf("gc: %w", err)
	}
	e := w.newEngine(pipeline.Options{Explain: true, RetryFailed: true})
	k := &walk{w: w, e: e, below: true, explain: true, stages: stages{w}}
	if err := k.run(ctx); err != nil {
		return kv.GCReport{}, fmt.Errorf("gc: %w", err)
	}
	touched, waiting := e.Touched(), e.Report().Waiting > 0
	var readErr error
	cited, err := citedByReleases(filepath.Join(w.Dir, ReleaseDir))
	if err != nil {
		return kv.GCReport{}, fmt.Errorf("gc: %w", err)
	}
	if err := cited.follow(e); err != nil {
		return kv.GCReport{}, fmt.Errorf("gc: %w", err)
	}
	// Listings stay, since they are few and say what else there was; so does what a release rests on. News
	// is listed for days only, and what was found in it may wait longer for a person.
	keep := func(stage, key string) bool {
		kind, _, _ := strings.Cut(stage, "/")
		return touched.Item(stage, key) || cited.items[key] || kind == KindDiscover || kind == KindRead || kind == KindExtract
	}
	asked := map[string]bool{}
	for dep := range answersOf(e, func(stage, key string) bool { return keep(stage, key) && strings.HasPrefix(stage, KindExtract+"/") }, &readErr) {
		asked[dep] = true
	}
	exchanges, err := fetch.Keep(w.store, answersOf(e, keep, &readErr))
	err = errors.Join(err, readErr)
	if err != nil {
		return kv.GCReport{}, fmt.Errorf("gc: %w", err)
	}
	return w.store.GC(ctx, func(bucket, key string) bool {
		switch bucket {
		case pipeline.Bucket:
			stage, item := pipeline.ItemName(key)
			return keep(stage, item)
		case llm.BucketRaw, llm.BucketAnswers:
			id := kv.Parts(key)[0]
			// An item that waits does not know yet what answers of a batch it will rest on.
			return waiting || touched.Dep(llm.DepPrefix+id) || cited.calls[id] || asked[llm.DepPrefix+id]
		}
		return exchanges(bucket, key)
	})
}

// answersOf yields the keys of the answers that the kept items rest on.
func answersOf(e *pipeline.Engine, keep func(stage, key string) bool, failed *error) iter.Seq[string] {
	return func(yield func(string) bool) {
		for info, err := range e.Items("") {
			if err != nil {
				continue // unreadable: nothing can rest on it, and the next build makes it again
			}
			if !keep(info.Stage, info.Key) {
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

// A citation is what the releases of a workspace rest on.
type citation struct {
	calls map[string]bool // request keys
	items map[string]bool // keys of items of any stage: claims, pairs, addresses of pages and documents
}

// citedByReleases reads what the kept releases rest on from their tables.
func citedByReleases(root string) (citation, error) {
	c := citation{calls: map[string]bool{}, items: map[string]bool{}}
	type row struct {
		ID        string `json:"id"`
		ReviewURL string `json:"review_url"`
		URL       string `json:"url"`
		Claim     string `json:"claim_id"`
		Document  string `json:"document_id"`
	}
	for table, cite := range map[string]func(row){
		"annotations": func(r row) { c.calls[r.ID] = true },
		"claims":      func(r row) { c.items[r.ID], c.items[corpus.CleanURL(r.ReviewURL)] = true, true },
		"documents":   func(r row) { c.items[r.ID], c.items[corpus.CleanURL(r.URL)] = true, true },
		"pairs":       func(r row) { c.items[corpus.PairID(r.Claim, r.Document)] = true },
		"controls":    func(r row) { c.items[corpus.PairID(r.Claim, r.Document)] = true },
	} {
		// Below root, because a workspace's own path may hold what is special in a pattern.
		files, err := fs.Glob(os.DirFS(root), "*/data/"+table+".jsonl")
		if err != nil {
			return c, err
		}
		for _, path := range files {
			if err := eachRow(filepath.Join(root, filepath.FromSlash(path)), cite); err != nil {
				return c, err
			}
		}
	}
	return c, nil
}

// follow adds the items whose key is another address of what is cited: a page that was redirected.
func (c citation) follow(e *pipeline.Engine) error {
	for _, kind := range []string{KindParse, KindDocument} {
		for info, err := range e.Items(kind) {
			if err != nil {
				continue // unreadable: nothing can rest on it
			}
			item, _, err := e.Item(info.Stage, info.Key)
			if err != nil {
				return err
			}
			for id := range idsIn(item.Out) {
				if c.items[id] {
					c.items[info.Key] = true
				}
			}
		}
	}
	return nil
}

// idsIn yields the ids of the claims or the document that an item put out.
func idsIn(out json.RawMessage) iter.Seq[string] {
	return func(yield func(string) bool) {
		type record struct {
			ID string `json:"id"`
		}
		var list []record
		if json.Unmarshal(out, &list) != nil {
			var one record
			if json.Unmarshal(out, &one) != nil {
				return
			}
			list = []record{one}
		}
		for _, r := range list {
			if !yield(r.ID) {
				return
			}
		}
	}
}

// eachRow reads a table of JSON lines.
func eachRow[T any](path string, f func(T)) (err error) {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	for d := json.NewDecoder(bufio.NewReader(file)); ; {
		var row T
		if err := d.Decode(&row); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read %s: %w", path, err)
		}
		f(row)
	}
}

// keepFiles puts what a person wrote beside the store into a backup of it.
func (w *Workspace) keepFiles() (ops []kv.Op, err error) {
	kept := map[string]bool{}
	for f, err := range w.writtenFiles() {
		if err != nil {
			return nil, fmt.Errorf("keep %s: %w", f.path, err)
		}
		kept[f.path] = true
		op, err := w.tables.Files.PutOp(f.path, f.data)
		if err != nil {
			return nil, err
		}
		ops = append(ops, op)
	}
	for key, err := range w.tables.Files.Keys("", "") { // of an earlier backup
		if err != nil {
			return nil, err
		}
		if !kept[key] {
			ops = append(ops, w.tables.Files.DeleteOp(key))
		}
	}
	return ops, nil
}

// Restore makes the store of a workspace from a backup, and its configuration, prompts and prices where
// dir has none of its own.
func Restore(ctx context.Context, dir string, in io.Reader) (records int, err error) {
	state := filepath.Join(dir, stateDir)
	if err := os.MkdirAll(state, 0o755); err != nil {
		return 0, err
	}
	store := filepath.Join(state, "store")
	// The index is a cache over another store; it is made again. Where there is a store, the backup is
	// refused and somebody may be using both.
	if there, err := os.ReadDir(store); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	} else if len(there) == 0 {
		if err := os.RemoveAll(filepath.Join(state, "index")); err != nil {
			return 0, err
		}
	}
	if records, err = kv.Restore(ctx, store, in); err != nil {
		return records, err
	}
	return records, restoreFiles(dir)
}

// restoreFiles writes the files that a backup brought along and that are not there.
func restoreFiles(dir string) (err error) {
	store, err := kv.Open(filepath.Join(dir, stateDir, "store"), kv.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	for entry, err := range openTables(store).Files.Scan("", "") {
		if err != nil {
			return err
		}
		if !filepath.IsLocal(filepath.FromSlash(entry.Key)) {
			return fmt.Errorf("restore: the backup holds a file %q, which would lie outside the workspace", entry.Key)
		}
		path := filepath.Join(dir, filepath.FromSlash(entry.Key))
		if _, err := os.Lstat(path); err == nil {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, entry.Value, 0o644); err != nil {
			return err
		}
	}
	return nil
}
