package assay

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"sort"
	"strings"
	"sync"
)

// A spool keeps rows on disk and their keys in memory, so that a table can be collected in any order
// and read in key order. Of two rows with one key that with the smaller rank stays, and of two with one
// rank that with the smaller hash, so that it does not matter which came first.
type spool[T any] struct {
	mu   sync.Mutex
	file *os.File
	out  *bufio.Writer
	at   map[string]place
	end  int64
	keys []string // sorted; made by the first read
}

type place struct {
	offset int64
	length int32
	sum    [8]byte // of SHA-256
	rank   string
}

func newSpool[T any](dir string) (*spool[T], error) {
	f, err := os.CreateTemp(dir, "spool-*")
	if err != nil {
		return nil, fmt.Errorf("spool rows: %w", err)
	}
	// Nobody else needs the name, and a killed process leaves nothing behind.
	if err := os.Remove(f.Name()); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &spool[T]{file: f, out: bufio.NewWriterSize(f, 1<<16), at: map[string]place{}}, nil
}

// has reports whether there is a row with a key.
func (s *spool[T]) has(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.at[key]
	return ok
}

// close gives the file back; a spool that was never made has none.
func (s *spool[T]) close() error {
	if s == nil {
		return nil
	}
	return s.file.Close()
}

// add keeps a row.
func (s *spool[T]) add(key, rank string, row T) error {
	data, err := json.Marshal(row)
	if err != nil {
		return fmt.Errorf("spool row %s: %w", key, err)
	}
	hash := sha256.Sum256(data)
	sum := [8]byte(hash[:])
	s.mu.Lock()
	defer s.mu.Unlock()
	if old, ok := s.at[key]; ok && cmp.Or(strings.Compare(old.rank, rank), bytes.Compare(old.sum[:], sum[:])) <= 0 {
		return nil
	}
	if _, err := s.out.Write(data); err != nil {
		return fmt.Errorf("spool row %s: %w", key, err)
	}
	s.at[key] = place{offset: s.end, length: int32(len(data)), sum: sum, rank: rank}
	s.end += int64(len(data))
	s.keys = nil
	return nil
}

func (s *spool[T]) len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.at)
}

// get returns the row of a key.
func (s *spool[T]) get(key string) (row T, err error) {
	s.mu.Lock()
	p, ok := s.at[key]
	err = s.out.Flush()
	s.mu.Unlock()
	if err != nil {
		return row, fmt.Errorf("read spooled row %s: %w", key, err)
	}
	if !ok {
		return row, fmt.Errorf("read spooled row %s: there is none", key)
	}
	data := make([]byte, p.length)
	if _, err := s.file.ReadAt(data, p.offset); err != nil && !errors.Is(err, io.EOF) {
		return row, fmt.Errorf("read spooled row %s: %w", key, err)
	}
	if err := json.Unmarshal(data, &row); err != nil {
		return row, fmt.Errorf("read spooled row %s: %w", key, err)
	}
	return row, nil
}

// sorted yields the rows in key order; it may be read again.
func (s *spool[T]) sorted() iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		s.mu.Lock()
		if s.keys == nil {
			s.keys = make([]string, 0, len(s.at))
			for k := range s.at {
				s.keys = append(s.keys, k)
			}
			sort.Strings(s.keys)
		}
		keys := s.keys
		s.mu.Unlock()
		for _, k := range keys {
			row, err := s.get(k)
			if !yield(row, err) || err != nil {
				return
			}
		}
	}
}
