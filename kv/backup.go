package kv

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dgraph-io/badger/v4"
)

// A backup is
//
//	magic, stream version, schema major, schema minor      header
//	'R', key length, key, value length, value              one per record, in key order
//	'E', number of records, SHA-256 of all before it       trailer
//
// with numbers as uvarints. Values are as stored, so they are compressed.
const (
	backupMagic   = "assay-store-backup\n"
	backupVersion = 1
	tagRecord     = 'R'
	tagEnd        = 'E'
)

// errTruncated is the cause of every error that more bytes could have prevented.
var errTruncated = errors.New("the backup is cut off")

// Backup writes the whole store, as it is at one moment, and returns the number of records. Reads and
// writes go on meanwhile; GC and Close wait. The backup has the store as it would be after the ops, which
// change nothing in the store itself. A record that cannot be read ends the backup with a *CorruptError:
// rebuild or delete it first, or let GC leave it out.
func (s *Store) Backup(ctx context.Context, w io.Writer, after ...Op) (records int, err error) {
	for _, op := range after {
		if op.err != nil {
			return 0, fmt.Errorf("back up store %s: %w", s.dir, op.err)
		}
	}
	slices.SortStableFunc(after, func(a, b Op) int { return bytes.Compare(a.key, b.key) })
	release, err := s.hold(ctx)
	if err != nil {
		return 0, err
	}
	defer release()
	// The maintenance slot keeps GC and Close away, so the database stays while this reads it. The
	// transaction is the moment; it pins no files as an iterator would.
	txn := s.db.NewTransaction(false)
	defer txn.Discard()
	out := newBackupWriter(w)
	out.ops = after
	have, err := schemaIn(txn)
	if err != nil {
		return 0, fmt.Errorf("back up store %s: read its schema: %w", s.dir, err)
	}
	err = out.header(have)
	if err == nil {
		err = out.records(ctx, txn)
	}
	if err == nil {
		err = out.trailer()
	}
	if err != nil {
		return out.count, fmt.Errorf("back up store %s: %w", s.dir, err)
	}
	return out.count, nil
}

type backupWriter struct {
	w     *bufio.Writer
	sum   hash.Hash
	buf   []byte
	count int
	ops   []Op // what is still to be done, by key
}

func newBackupWriter(w io.Writer) *backupWriter {
	sum := sha256.New()
	return &backupWriter{w: bufio.NewWriterSize(io.MultiWriter(w, sum), 1<<16), sum: sum}
}

func (b *backupWriter) header(v schema) error {
	b.buf = append(b.buf[:0], backupMagic...)
	for _, n := range []int{backupVersion, v.Major, v.Minor} {
		b.buf = binary.AppendUvarint(b.buf, uint64(n))
	}
	_, err := b.w.Write(b.buf)
	return err
}

func (b *backupWriter) records(ctx context.Context, txn *badger.Txn) error {
	for from := []byte{1}; ; { // the schema record lies below
		if err := ctx.Err(); err != nil {
			return err
		}
		p, more := readPage(txn, nil, from, pageRecords, true)
		for _, r := range p {
			replaced, err := b.upTo(r.key)
			if err == nil && !replaced {
				err = b.record(r)
			}
			if err != nil {
				return err
			}
		}
		if !more {
			_, err := b.upTo("\xff") // above every key
			return err
		}
		from = append([]byte(p[len(p)-1].key), 0)
	}
}

// upTo does the ops up to a key and reports whether one of them was about the key itself.
func (b *backupWriter) upTo(key string) (replaced bool, err error) {
	for len(b.ops) > 0 && string(b.ops[0].key) <= key {
		op := b.ops[0]
		b.ops = b.ops[1:]
		replaced = string(op.key) == key
		if len(b.ops) > 0 && bytes.Equal(b.ops[0].key, op.key) || op.delete {
			continue
		}
		if err := b.record(stored{key: string(op.key), value: op.value}); err != nil {
			return replaced, err
		}
	}
	return replaced, nil
}

func (b *backupWriter) record(r stored) error {
	if r.err != nil {
		bucket, key, _ := strings.Cut(r.key, "\x00")
		return &CorruptError{bucket, key, r.err}
	}
	b.buf = binary.AppendUvarint(append(b.buf[:0], tagRecord), uint64(len(r.key)))
	b.buf = append(b.buf, r.key...)
	b.buf = binary.AppendUvarint(b.buf, uint64(len(r.value)))
	b.buf = append(b.buf, r.value...)
	b.count++
	_, err := b.w.Write(b.buf)
	return err
}

func (b *backupWriter) trailer() error {
	b.buf = binary.AppendUvarint(append(b.buf[:0], tagEnd), uint64(b.count))
	_, err := b.w.Write(b.buf)
	if err == nil {
		err = b.w.Flush() // the sum is of what has gone out
	}
	if err == nil {
		_, err = b.w.Write(b.sum.Sum(nil))
	}
	if err == nil {
		err = b.w.Flush()
	}
	return err
}

// Restore makes a store in dir, which must be absent or empty, from a backup, and returns the number
// of records. The store appears whole or not at all: a backup that is cut off, damaged or newer than
// this program is refused. It is built in a folder beside dir, which the next Restore clears when this
// one is killed.
func Restore(ctx context.Context, dir string, r io.Reader) (records int, err error) {
	dir, err = filepath.Abs(dir)
	if err != nil {
		return 0, fmt.Errorf("restore store: %w", err)
	}
	records, err = restore(ctx, dir, r)
	if err != nil {
		return 0, fmt.Errorf("restore store %s: %w", dir, err)
	}
	return records, nil
}

func restore(ctx context.Context, dir string, r io.Reader) (records int, err error) {
	if entries, err := os.ReadDir(dir); len(entries) > 0 || err != nil && !errors.Is(err, os.ErrNotExist) {
		return 0, errors.Join(err, errors.New("the folder is not empty"))
	}
	tmp := dir + ".restore"
	if err := os.MkdirAll(tmp, 0o755); err != nil {
		return 0, err
	}
	lock, _, err := lockDir(tmp, "restore", 1)
	if err != nil {
		return 0, err
	}
	s := newStore(tmp, Options{})
	records, err = s.fillFrom(ctx, r)
	if err == nil {
		err = s.moveTo(dir)
	}
	if err != nil {
		err = errors.Join(err, os.RemoveAll(tmp))
		records = 0
	}
	return records, errors.Join(err, lock.release())
}

// moveTo gives a finished folder the name of the empty or absent folder dir.
func (s *Store) moveTo(dir string) error {
	if err := os.Remove(dir); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return publish(s.dir, dir)
}

// fillFrom builds the first generation of a locked folder from a backup.
func (s *Store) fillFrom(ctx context.Context, r io.Reader) (records int, err error) {
	generation, older, err := settle(s.dir)
	if err != nil {
		return 0, err
	}
	if err := removeAll(append(older, dataDir(s.dir, max(generation, 1)))); err != nil {
		return 0, err
	}
	in := newBackupReader(r)
	have, err := in.header()
	if err != nil {
		return 0, err
	}
	if have.Major != current.Major || have.Minor > current.Minor {
		return 0, &SchemaError{Dir: s.dir, Have: have.String(), Want: current.String(), Hint: "another version of the program wrote the backup; restore it with that one"}
	}
	tmp := freshDir(s.dir, 1)
	f, err := newFiller(tmp, s.log, s.room)
	if err != nil {
		return 0, err
	}
	records, err = in.fill(ctx, f, have)
	if err = errors.Join(err, f.close()); err != nil {
		return 0, err
	}
	return records, publish(tmp, dataDir(s.dir, 1))
}

type backupReader struct {
	r   *bufio.Reader
	sum hash.Hash
}

func newBackupReader(r io.Reader) *backupReader {
	return &backupReader{bufio.NewReaderSize(r, 1<<16), sha256.New()}
}

// ReadByte lets binary.ReadUvarint read and sum at once.
func (b *backupReader) ReadByte() (byte, error) {
	c, err := b.r.ReadByte()
	if err != nil {
		return 0, cut(err)
	}
	b.sum.Write([]byte{c})
	return c, nil
}

func cut(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errTruncated
	}
	return err
}

func (b *backupReader) bytes(limit int) ([]byte, error) {
	n, err := binary.ReadUvarint(b)
	if err != nil {
		return nil, err
	}
	if n > uint64(limit) {
		return nil, fmt.Errorf("the backup is damaged: a length of %d bytes", n)
	}
	// Grown as bytes arrive: a damaged length must not take the memory it names.
	var buf bytes.Buffer
	if _, err := io.CopyN(&buf, b.r, int64(n)); err != nil {
		return nil, cut(err)
	}
	b.sum.Write(buf.Bytes())
	return buf.Bytes(), nil
}

func (b *backupReader) header() (v schema, err error) {
	magic := make([]byte, len(backupMagic))
	if _, err := io.ReadFull(b.r, magic); err != nil {
		return v, cut(err)
	}
	if string(magic) != backupMagic {
		return v, errors.New("this is no backup of a store")
	}
	b.sum.Write(magic)
	var n [3]uint64
	for i := range n {
		if n[i], err = binary.ReadUvarint(b); err != nil {
			return v, err
		}
	}
	if n[0] != backupVersion {
		return v, fmt.Errorf("the backup has format %d, this program reads %d", n[0], backupVersion)
	}
	return schema{Major: int(n[1]), Minor: int(n[2])}, nil
}

func (b *backupReader) fill(ctx context.Context, f *filler, have schema) (records int, err error) {
	marker := have.op()
	if err := f.add(marker.key, marker.value); err != nil {
		return 0, err
	}
	for {
		tag, err := b.ReadByte()
		if err != nil {
			return 0, err
		}
		switch tag {
		case tagEnd:
			return records, b.trailer(records)
		case tagRecord:
		default:
			return 0, fmt.Errorf("the backup is damaged after %d records", records)
		}
		key, err := b.bytes(maxKeyBytes)
		if err != nil {
			return 0, err
		}
		value, err := b.bytes(2 * maxValueBytes)
		if err != nil {
			return 0, err
		}
		if err := f.add(key, value); err != nil {
			return 0, err
		}
		if records++; records%pageRecords == 0 && ctx.Err() != nil {
			return 0, ctx.Err()
		}
	}
}

func (b *backupReader) trailer(records int) error {
	n, err := binary.ReadUvarint(b)
	if err != nil {
		return err
	}
	want := b.sum.Sum(nil)
	got := make([]byte, len(want))
	if _, err := io.ReadFull(b.r, got); err != nil {
		return cut(err)
	}
	if n != uint64(records) || !bytes.Equal(got, want) {
		return errors.New("the backup is damaged: count or checksum is wrong")
	}
	if _, err := b.r.ReadByte(); !errors.Is(err, io.EOF) {
		return errors.Join(err, errors.New("the backup is damaged: there are bytes after its end"))
	}
	return nil
}
