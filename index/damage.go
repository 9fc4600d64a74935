package index

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"github.com/blevesearch/bleve/v2"
	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// damagedError means: this is no index of ours that can be read; build it again.
type damagedError struct{ reason string }

func (e *damagedError) Error() string { return "index is damaged: " + e.reason }

func damaged(format string, args ...any) error { return &damagedError{fmt.Sprintf(format, args...)} }

// A BrokenError says that bleve could not answer from its files. Nothing that a single item does
// cures it, so it ends the run; deleting the folder of the index does.
type BrokenError struct {
	Doing string
	Err   error
}

func (e *BrokenError) Error() string {
	return e.Doing + ": index is broken, delete its folder to build it again: " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *BrokenError) Unwrap() error { return e.Err }

// StopsRun is true: every other item would fail alike.
func (e *BrokenError) StopsRun() bool { return true }

// recovered turns a panic of bleve, which trusts its files, into an error.
func recovered(doing string, err *error) {
	if p := recover(); p != nil {
		*err = &BrokenError{doing, fmt.Errorf("panic: %v", p)}
	}
}

// openAt opens an existing index and checks it first, because bleve's own goroutines read its files
// as soon as it is open and a damaged page ends the process there.
func openAt(path string) (*Index, error) {
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return create(path)
	} else if err != nil {
		return nil, err
	}
	return openFiles(path, false)
}

// openFiles opens an existing index, to look at it alone if need be.
func openFiles(path string, look bool) (x *Index, err error) {
	// A page beyond the end of a cut file is a fault, which ends the process unless this is set.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			x, err = nil, damaged("%v", p)
		}
	}()
	if err := checkRoot(filepath.Join(path, "store", "root.bolt")); err != nil {
		return nil, err
	}
	settings := map[string]any{"read_only": true}
	if !look {
		if err := setAsideBroken(filepath.Join(path, "store")); err != nil {
			return nil, err
		}
		settings = map[string]any{"bolt_timeout": "5s"}
	}
	idx, err := bleve.OpenUsing(path, settings)
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return nil, fmt.Errorf("another process holds it: %w", err)
	case errors.Is(err, os.ErrPermission):
		return nil, err
	case err != nil:
		return nil, damaged("%v", err)
	}
	x, err = newIndex(idx)
	if err == nil {
		err = x.loadHead()
	}
	if err != nil {
		return nil, errors.Join(err, idx.Close())
	}
	return x, nil
}

// loadHead reads the head and compares it with what bleve holds.
func (x *Index) loadHead() error {
	raw, err := x.idx.GetInternal(headKey)
	if err != nil {
		return damaged("read head: %v", err)
	}
	if err := json.Unmarshal(raw, &x.head); err != nil {
		return damaged("read head: %v", err)
	}
	if x.head.Layout != layout {
		return damaged("it has layout %d, this program writes %d", x.head.Layout, layout)
	}
	n, err := x.idx.DocCount()
	if err != nil {
		return damaged("count documents: %v", err)
	}
	if n != x.head.Docs {
		return damaged("it holds %d documents, its head says %d", n, x.head.Docs)
	}
	return nil
}

// checkRoot reads every record of the file that lists the segments.
func checkRoot(path string) error {
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return damaged("%s is missing", filepath.Base(path))
	}
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, Timeout: 5 * time.Second})
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return fmt.Errorf("another process holds it: %w", err)
	case errors.Is(err, os.ErrPermission):
		return err
	case err != nil:
		return damaged("open %s: %v", filepath.Base(path), err)
	}
	err = db.View(func(tx *bbolt.Tx) error {
		return tx.ForEach(func(_ []byte, b *bbolt.Bucket) error { return readAll(b) })
	})
	if err := errors.Join(err, db.Close()); err != nil {
		return damaged("read %s: %v", filepath.Base(path), err)
	}
	return nil
}

func readAll(b *bbolt.Bucket) error {
	return b.ForEach(func(k, v []byte) error {
		if v == nil {
			return readAll(b.Bucket(k))
		}
		_ = append([]byte(nil), v...) // touches every byte
		return nil
	})
}

// setAsideBroken renames segments whose checksum is wrong. One that was being written at a crash
// belongs to no state and is not missed; where one is missed bleve goes back to an earlier state,
// from which CatchUp continues, or to none.
func setAsideBroken(store string) error {
	files, err := os.ReadDir(store)
	if err != nil {
		return damaged("list segments: %v", err)
	}
	for _, f := range files {
		name := filepath.Join(store, f.Name())
		if !strings.HasSuffix(f.Name(), ".zap") {
			continue
		}
		ok, err := whole(name)
		if err != nil {
			return fmt.Errorf("read segment %s: %w", f.Name(), err)
		}
		if ok {
			continue
		}
		if err := os.Rename(name, name+".broken"); err != nil {
			return fmt.Errorf("set broken segment aside: %w", err)
		}
	}
	return nil
}

// whole reports whether a segment ends with the checksum of everything before it.
func whole(name string) (bool, error) {
	f, err := os.Open(name)
	if err != nil {
		return false, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return false, err
	}
	const tail = 4
	if info.Size() <= tail {
		return false, nil
	}
	h := crc32.NewIEEE()
	if _, err := io.CopyN(h, f, info.Size()-tail); err != nil {
		return false, err
	}
	var want [tail]byte
	if _, err := io.ReadFull(f, want[:]); err != nil {
		return false, err
	}
	return binary.BigEndian.Uint32(want[:]) == h.Sum32(), nil
}
