package kv

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"iter"
	"strings"

	"github.com/dgraph-io/badger/v4"
)

const (
	pageRecords = 1000
	firstPage   = 64      // a reader that stops early should not pay for a whole page
	pageBytes   = 8 << 20 // of stored values; a page of bodies is cut here

	// Records up to this size are stored as they are: compressing one costs as much as all the rest of
	// a Put, and saves a few hundred bytes.
	plainBytes = 1 << 10

	// Values up to this size, which records are and bodies are not, are compressed at the fastest level:
	// the tables of the default one are larger than they, and cost as much as all the rest of a Put.
	smallBytes = 4 << 10

	// plainMark begins the form of a record that is not compressed, before its CRC-32C; a zstd frame
	// begins with another byte.
	plainMark = 0
	plainHead = 1 + 4
)

// A Bucket is a named set of records of one type and version. It is a small value: copy it freely.
// All methods may be called from many goroutines.
type Bucket[V any] struct {
	s       *Store
	name    string
	version byte
	raw     bool // V is []byte
}

// An Entry is one record of a scan.
type Entry[V any] struct {
	Key   string
	Value V
}

// In returns the bucket of the store with this name. Values are stored as JSON, a []byte as it is,
// zstd-compressed unless they are small, behind one byte that holds version; a record of another version reads as a
// CorruptError with ErrStale. A name is printable ASCII without space and does not start with '!',
// a version lies in 0..255; In panics otherwise, because both are constants of the program.
func In[V any](s *Store, name string, version int) Bucket[V] {
	if !validBucket(name) || version < 0 || version > 255 {
		panic(fmt.Sprintf("kv: no bucket can be called %q in version %d", name, version))
	}
	_, raw := any(new(V)).(*[]byte)
	return Bucket[V]{s: s, name: name, version: byte(version), raw: raw}
}

func validBucket(name string) bool {
	return name != "" && name[0] != '!' && !strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' })
}

// Name returns the bucket's name.
func (b Bucket[V]) Name() string { return b.name }

func (b Bucket[V]) key(key string) []byte { return append(append([]byte(b.name), 0), key...) }

func (b Bucket[V]) checkedKey(key string) ([]byte, error) {
	k := b.key(key)
	if len(k) > maxKeyBytes {
		return nil, fmt.Errorf("use key %q... of bucket %s: %d bytes are more than a key can have (%d)", key[:min(len(key), 32)], b.name, len(k), maxKeyBytes)
	}
	return k, nil
}

// Get returns the record of key, and whether there is one. A record that cannot be decoded gives a
// *CorruptError.
func (b Bucket[V]) Get(key string) (V, bool, error) {
	var zero V
	k, err := b.checkedKey(key)
	if err != nil {
		return zero, false, err
	}
	var v V
	var damage error
	ok, err := b.s.read(k, func(stored []byte) { v, damage = b.decode(stored) })
	if err != nil || !ok {
		return zero, false, b.readError(key, err)
	}
	if damage != nil {
		return zero, false, &CorruptError{b.name, key, damage}
	}
	return v, true, nil
}

// Has tells whether there is a record of key, without reading it.
func (b Bucket[V]) Has(key string) (bool, error) {
	k, err := b.checkedKey(key)
	if err != nil {
		return false, err
	}
	return b.s.has(k)
}

// Put stores the record and returns when it is durable.
func (b Bucket[V]) Put(key string, v V) error {
	op, err := b.PutOp(key, v)
	if err != nil {
		return err
	}
	return b.s.Write(op)
}

// PutOp encodes a Put for Store.Write.
func (b Bucket[V]) PutOp(key string, v V) (Op, error) {
	k, err := b.checkedKey(key)
	if err != nil {
		return Op{}, err
	}
	value, err := b.encode(v)
	if err != nil {
		return Op{}, fmt.Errorf("encode record %q of bucket %s: %w", key, b.name, err)
	}
	return Op{key: k, value: value}, nil
}

// Delete removes the record, if there is one, and returns when that is durable.
func (b Bucket[V]) Delete(key string) error { return b.s.Write(b.DeleteOp(key)) }

// DeleteOp is a Delete for Store.Write.
func (b Bucket[V]) DeleteOp(key string) Op {
	k, err := b.checkedKey(key)
	return Op{key: k, delete: true, err: err}
}

// Scan yields the records whose key starts with prefix and is greater than after ("" for all), in
// key order. It reads page by page and holds nothing of the store while it yields: the body may write
// and delete, and what is written behind the current page is seen or not. A record that cannot be
// decoded is yielded with its key, a zero value and a *CorruptError, and the scan goes on; any other
// error is the last thing yielded.
func (b Bucket[V]) Scan(prefix, after string) iter.Seq2[Entry[V], error] {
	return func(yield func(Entry[V], error) bool) {
		for p, err := range b.pages(prefix, after, true) {
			if err != nil {
				yield(Entry[V]{}, err)
				return
			}
			for _, r := range p {
				e := Entry[V]{Key: r.key}
				err := r.err
				if err == nil {
					e.Value, err = b.decode(r.value)
				}
				if err != nil {
					err = &CorruptError{b.name, r.key, err}
				}
				if !yield(e, err) {
					return
				}
			}
		}
	}
}

// Keys is Scan without the values, which are not read.
func (b Bucket[V]) Keys(prefix, after string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for p, err := range b.pages(prefix, after, false) {
			if err != nil {
				yield("", err)
				return
			}
			for _, r := range p {
				if !yield(r.key, nil) {
					return
				}
			}
		}
	}
}

// Count counts the records whose key starts with prefix, without reading values.
func (b Bucket[V]) Count(prefix string) (int, error) { return b.s.count(b.key(prefix)) }

func (b Bucket[V]) pages(prefix, after string, values bool) iter.Seq2[[]stored, error] {
	return func(yield func([]stored, error) bool) {
		skip := len(b.name) + 1
		from := b.key(prefix)
		if after != "" && after >= prefix {
			from = append(b.key(after), 0) // the smallest key above after
		}
		for size := firstPage; ; size = min(4*size, pageRecords) {
			p, more, err := b.s.page(b.key(prefix), from, size, values)
			if err != nil {
				yield(nil, err)
				return
			}
			if more {
				from = append([]byte(p[len(p)-1].key), 0)
			}
			for i := range p {
				p[i].key = p[i].key[skip:]
			}
			if !yield(p, nil) || !more {
				return
			}
		}
	}
}

func (b Bucket[V]) encode(v V) ([]byte, error) {
	var plain []byte
	if b.raw {
		plain = *any(&v).(*[]byte)
	} else {
		var err error
		if plain, err = json.Marshal(v); err != nil {
			return nil, err
		}
	}
	if len(plain) > maxValueBytes {
		return nil, fmt.Errorf("%d bytes are more than a record can have (%d)", len(plain), maxValueBytes)
	}
	if len(plain) <= plainBytes {
		out := append(make([]byte, 0, 1+plainHead+len(plain)), b.version, plainMark)
		out = binary.LittleEndian.AppendUint32(out, crc32.Checksum(plain, castagnoli))
		return append(out, plain...), nil
	}
	enc := b.s.enc
	if len(plain) <= smallBytes {
		enc = b.s.fast
	}
	return enc.EncodeAll(plain, append(make([]byte, 0, len(plain)/2+32), b.version)), nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// unpack returns what encode packed behind the version byte; it may be a part of packed.
func (b Bucket[V]) unpack(packed []byte) ([]byte, error) {
	if len(packed) == 0 || packed[0] != plainMark {
		plain, err := b.s.dec.DecodeAll(packed, nil)
		if err != nil {
			return nil, fmt.Errorf("decompress: %w", err)
		}
		return plain, nil
	}
	if len(packed) < plainHead {
		return nil, errors.New("record is cut")
	}
	plain := packed[plainHead:]
	if crc32.Checksum(plain, castagnoli) != binary.LittleEndian.Uint32(packed[1:]) {
		return nil, errors.New("checksum of the record does not fit")
	}
	return plain, nil
}

// owned returns plain, copied if it is a part of stored; it is never nil.
func owned(plain, stored []byte) []byte {
	if len(plain) == 0 {
		return []byte{}
	}
	if &plain[len(plain)-1] == &stored[len(stored)-1] {
		return bytes.Clone(plain)
	}
	return plain
}

// decode reads a stored record. The value shares nothing with the bytes.
func (b Bucket[V]) decode(stored []byte) (V, error) {
	var v V
	if len(stored) == 0 {
		return v, errors.New("empty record")
	}
	if stored[0] != b.version {
		return v, fmt.Errorf("version %d, not %d: %w", stored[0], b.version, ErrStale)
	}
	plain, err := b.unpack(stored[1:])
	if err != nil {
		return v, err
	}
	if b.raw {
		*any(&v).(*[]byte) = owned(plain, stored)
		return v, nil
	}
	err = json.Unmarshal(plain, &v)
	return v, err
}

// readError turns a failure to read one value into a CorruptError and leaves others as they are.
func (b Bucket[V]) readError(key string, err error) error {
	var r *recordError
	if errors.As(err, &r) {
		return &CorruptError{b.name, key, r.err}
	}
	return err
}

// A recordError is one value that Badger could not read back.
type recordError struct{ err error }

func (e *recordError) Error() string { return e.err.Error() }

// stored is one record as it lies in Badger: its key with the bucket in front, and its bytes.
type stored struct {
	key   string
	value []byte
	err   error
}

// view runs f in a read transaction of the open database. The read lock keeps GC and Close from
// taking the database away.
func (s *Store) view(f func(*badger.Txn) error) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.db == nil {
		return ErrClosed
	}
	err := sound(func() error { return s.db.View(f) })
	if errors.Is(err, errDamaged) {
		return &stopError{fmt.Errorf("read from store %s: %w", s.dir, err)}
	}
	return err
}

func (s *Store) get(key []byte) (value []byte, ok bool, err error) {
	ok, err = s.read(key, func(v []byte) { value = bytes.Clone(v) })
	return value, ok, err
}

// read hands the value to use, which must not keep it.
func (s *Store) read(key []byte, use func([]byte)) (ok bool, err error) {
	err = s.view(func(txn *badger.Txn) error {
		item, err := txn.Get(key)
		if errors.Is(err, badger.ErrKeyNotFound) {
			return nil
		}
		if err != nil {
			return &stopError{fmt.Errorf("read from store %s: %w", s.dir, err)}
		}
		ok = true
		return withValue(item, use)
	})
	return ok, err
}

// withValue hands the value to use, which must not keep it. Badger gives an empty one, without an error, for what it cannot read from
// its value log; a record has at least its version byte.
func withValue(item *badger.Item, use func([]byte)) error {
	err := item.Value(func(v []byte) error {
		if len(v) == 0 {
			return errors.New("its value cannot be read from the log")
		}
		inside(func() { use(v) })
		return nil
	})
	if err != nil {
		return &recordError{err}
	}
	return nil
}

func (s *Store) has(key []byte) (ok bool, err error) {
	err = s.view(func(txn *badger.Txn) error {
		_, err := txn.Get(key)
		if errors.Is(err, badger.ErrKeyNotFound) {
			return nil
		}
		if err != nil {
			return &stopError{fmt.Errorf("read from store %s: %w", s.dir, err)}
		}
		ok = true
		return nil
	})
	return ok, err
}

func (s *Store) count(prefix []byte) (n int, err error) {
	err = s.view(func(txn *badger.Txn) error {
		it := txn.NewIterator(badger.IteratorOptions{Prefix: prefix})
		defer it.Close()
		for it.Seek(prefix); it.Valid(); it.Next() {
			n++
		}
		return nil
	})
	return n, err
}

// page reads up to size records that start with prefix, from the key from on. more says that the
// page ended before the records did.
func (s *Store) page(prefix, from []byte, size int, values bool) (p []stored, more bool, err error) {
	err = s.view(func(txn *badger.Txn) error {
		p, more = readPage(txn, prefix, from, size, values)
		return nil
	})
	return p, more, err
}

func readPage(txn *badger.Txn, prefix, from []byte, size int, values bool) (p []stored, more bool) {
	it := txn.NewIterator(badger.IteratorOptions{Prefix: prefix})
	defer it.Close()
	held := 0
	for it.Seek(from); it.Valid(); it.Next() {
		if len(p) == size || held >= pageBytes {
			return p, true
		}
		item := it.Item()
		r := stored{key: string(item.Key())}
		if values {
			r.err = withValue(item, func(v []byte) { r.value = bytes.Clone(v) })
			held += len(r.value)
		}
		p = append(p, r)
	}
	return p, false
}
