// Package index is full-text search over documents: BM25 by bleve, the same results for the same
// documents, however they came in.
//
// It stores a cache beside the store of records, one folder, which can be deleted at any time: it
// catches up from the sequence of stored documents by position, position and documents in one
// batch, so that a crash loses nothing and a damaged index is built again. It keeps a document's
// words, id, address, domain and kind, not its text. It does not fetch, rank by meaning or decide
// what is evidence.
package index

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"sync"

	"assay/corpus"

	"github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/analysis"
	"github.com/blevesearch/bleve/v2/analysis/lang/en"
	"github.com/blevesearch/bleve/v2/document"
	"github.com/blevesearch/bleve/v2/index/scorch"
	bleveindex "github.com/blevesearch/bleve_index_api"
)

// layout names what is stored and how words are made of text. It is part of the digest: an index
// of another layout answers differently and is built again.
const layout = 1

// Scope is what a search depends on: every document in the index, since each of them moves the
// frequencies that BM25 weighs words by. The key of a recorded answer is "index/" and the scope.
const Scope = "documents"

// Names of the fields of a stored document.
const (
	fieldBody   = "body"   // words of title and text
	fieldDomain = "domain" // registrable domain, one term
	fieldKind   = "kind"   // one term
	fieldURL    = "url"    // stored only
	fieldRecord = "record" // stored only, see record
)

// headKey is the internal record that is committed with every batch.
var headKey = []byte("assay head")

// An Index may be used from many goroutines. Close it once, after the last search.
type Index struct {
	// Answered, when set, is told by every Search which state of the index answered.
	Answered func(ctx context.Context, key string, sum [32]byte)
	// Batch is how many documents are committed together; 0 means 1000. It changes speed only.
	Batch int

	catchUp  sync.Mutex   // one CatchUp at a time
	mu       sync.RWMutex // held for reading by searches, for writing while a batch is committed
	idx      bleve.Index
	analyzer analysis.Analyzer
	head     head
	rebuilt  string
}

// head is the state of the index as a whole: position and content in one record, so that both are
// committed or neither.
type head struct {
	Layout   int    `json:"layout"`
	Position uint64 `json:"position"`
	Docs     uint64 `json:"docs"`
	Words    uint64 `json:"words"` // of all documents together, for the average length
	Sum      sum    `json:"sum"`
}

// A Sequenced is a stored document with its place in the order of storing. A later document with
// the same id replaces the earlier one.
type Sequenced struct {
	Seq uint64
	Doc corpus.Document
}

// Open opens the index in a folder, which it creates where there is none. An index that is damaged
// or of another layout is replaced by an empty one, which the next CatchUp fills; Rebuilt tells why.
// The error is for what building again does not cure: no permission, or another process holds it.
func Open(dir string) (*Index, error) {
	path := filepath.Join(dir, "bleve")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("open index %s: %w", dir, err)
	}
	x, err := openAt(path)
	if err == nil {
		return x, nil
	}
	var damaged *damagedError
	if !errors.As(err, &damaged) {
		return nil, fmt.Errorf("open index %s: %w", dir, err)
	}
	if err := os.RemoveAll(path); err != nil {
		return nil, fmt.Errorf("replace damaged index %s: %w", dir, err)
	}
	x, err = create(path)
	if err != nil {
		return nil, fmt.Errorf("create index %s: %w", dir, err)
	}
	x.rebuilt = damaged.reason
	return x, nil
}

// OpenToLook opens the index in dir for searches alone and changes no file. Where there is none, it is empty.
func OpenToLook(dir string) (*Index, error) {
	path := filepath.Join(dir, "bleve")
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return OpenMemory()
	}
	x, err := openFiles(path, true)
	if err != nil {
		return nil, fmt.Errorf("open index %s for reading alone: %w", dir, err)
	}
	return x, nil
}

// OpenMemory makes an empty index that is gone when it is closed.
func OpenMemory() (*Index, error) { return create("") }

// create makes an empty index at path, in memory where path is empty.
func create(path string) (*Index, error) {
	m := bleve.NewIndexMapping()
	m.ScoringModel = bleveindex.BM25Scoring
	idx, err := bleve.NewUsing(path, m, scorch.Name, scorch.Name, nil)
	if err != nil {
		return nil, err
	}
	x, err := newIndex(idx)
	if err != nil {
		return nil, errors.Join(err, idx.Close())
	}
	x.head.Layout = layout
	first, err := json.Marshal(x.head)
	if err != nil {
		return nil, err // unreachable: head is plain numbers
	}
	if err := idx.SetInternal(headKey, first); err != nil {
		return nil, errors.Join(err, idx.Close())
	}
	return x, nil
}

func newIndex(idx bleve.Index) (*Index, error) {
	a := idx.Mapping().AnalyzerNamed(en.AnalyzerName)
	if a == nil {
		return nil, fmt.Errorf("analyzer %q is not compiled in", en.AnalyzerName)
	}
	return &Index{idx: idx, analyzer: a}, nil
}

// Close ends the index; what was caught up is on disk already.
func (x *Index) Close() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := x.idx.Close(); err != nil {
		return fmt.Errorf("close index: %w", err)
	}
	return nil
}

// Rebuilt says why Open replaced the index by an empty one; "" if it did not.
func (x *Index) Rebuilt() string { return x.rebuilt }

// Position is the sequence number of the last document that was caught up.
func (x *Index) Position() uint64 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.head.Position
}

// Len is the number of documents that can be found.
func (x *Index) Len() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return int(x.head.Docs)
}

// Digest names the documents in the index, in whatever order they came. It is kept up to date by
// CatchUp and costs nothing to ask for.
func (x *Index) Digest() [32]byte {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.head.digest()
}

func (h head) digest() [32]byte {
	var b []byte
	b = binary.BigEndian.AppendUint64(b, uint64(h.Layout))
	b = binary.BigEndian.AppendUint64(b, h.Docs)
	for _, w := range h.Sum {
		b = binary.BigEndian.AppendUint64(b, w)
	}
	return sha256.Sum256(b)
}

// Current answers what a recorded key would be answered now; false for a key that names nothing here.
func (x *Index) Current(_ context.Context, key string) (sum [32]byte, known bool, err error) {
	if key != "index/"+Scope {
		return sum, false, nil
	}
	return x.Digest(), true, nil
}

// CatchUp adds the documents that are newer than the index's position, in the order of their
// sequence numbers, which must rise. A document without words is taken out: nothing can find it.
// After an error the index holds a whole number of batches and says by Position where to go on.
func (x *Index) CatchUp(ctx context.Context, docs iter.Seq2[Sequenced, error]) error {
	x.catchUp.Lock()
	defer x.catchUp.Unlock()
	size := x.Batch
	if size <= 0 {
		size = 1000
	}
	b := batch{x: x, byID: map[string]int{}}
	last := x.Position()
	for s, err := range docs {
		if err != nil {
			return fmt.Errorf("catch up index: read documents after %d: %w", last, errors.Join(err, b.commit()))
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("catch up index: %w", errors.Join(err, b.commit()))
		}
		if s.Seq <= x.head.Position { // written by CatchUp alone, which holds its lock
			continue
		}
		if s.Seq <= last {
			return fmt.Errorf("catch up index: document %s has sequence number %d after %d", s.Doc.ID, s.Seq, last)
		}
		last = s.Seq
		if err := b.add(s); err != nil {
			return fmt.Errorf("catch up index: document %s: %w", s.Doc.ID, err)
		}
		if b.pending >= size {
			if err := b.commit(); err != nil {
				return fmt.Errorf("catch up index: %w", err)
			}
		}
	}
	if err := b.commit(); err != nil {
		return fmt.Errorf("catch up index: %w", err)
	}
	return nil
}

// A batch collects documents until they are committed together with the head that counts them.
type batch struct {
	x       *Index
	docs    []entry // one per id, the latest
	byID    map[string]int
	pending int    // documents read, repeats included
	last    uint64 // sequence number of the latest
}

type entry struct {
	id  string
	doc *document.Document // nil takes the document out
	rec record
}

func (b *batch) add(s Sequenced) error {
	e, err := b.x.entry(s.Doc)
	if err != nil {
		return err
	}
	if at, ok := b.byID[e.id]; ok {
		b.docs[at] = e
	} else {
		b.byID[e.id] = len(b.docs)
		b.docs = append(b.docs, e)
	}
	b.pending++
	b.last = s.Seq
	return nil
}

// commit writes the batch. Searches wait only for the last step, in which documents and head change
// together.
func (b *batch) commit() (err error) {
	defer recovered("commit documents", &err)
	if b.pending == 0 {
		return nil
	}
	x := b.x
	next := x.head
	next.Position = b.last
	out := x.idx.NewBatch()
	for _, e := range b.docs {
		old, had, err := x.record(e.id)
		if err != nil {
			return &BrokenError{"look up " + e.id, err}
		}
		if had {
			next.Docs--
			next.Words -= old.Words
			next.Sum = next.Sum.minus(old.Sum)
		}
		if e.doc == nil {
			if had {
				out.Delete(e.id)
			}
			continue
		}
		next.Docs++
		next.Words += e.rec.Words
		next.Sum = next.Sum.plus(e.rec.Sum)
		if err := out.IndexAdvanced(e.doc); err != nil {
			return fmt.Errorf("add %s: %w", e.id, err)
		}
	}
	encoded, err := json.Marshal(next)
	if err != nil {
		return err // unreachable: head is plain numbers
	}
	out.SetInternal(headKey, encoded)

	x.mu.Lock()
	defer x.mu.Unlock()
	if err := x.idx.Batch(out); err != nil {
		return &BrokenError{"commit documents", err}
	}
	x.head = next
	b.docs, b.byID, b.pending = nil, map[string]int{}, 0
	return nil
}
