package kv

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/dgraph-io/badger/v4"
)

const fillBytes = 8 << 20 // of one transaction of a copy; Badger itself does not count large values

// A GCReport says what a GC did. Bytes are those on disk, or of the records of a store in memory.
type GCReport struct {
	Kept        int   `json:"kept"`
	Dropped     int   `json:"dropped"`
	BytesBefore int64 `json:"bytes_before"`
	BytesAfter  int64 `json:"bytes_after"`
}

// GC copies the records that keep wants to a fresh folder, puts it in the place of the old one and
// goes on with it; a nil keep wants all. Reads go on meanwhile, writes wait until the end: keep must
// not write. A kill at any point leaves one good store, before or after; so does an error or the end
// of ctx. A record that cannot be read is kept out and counted as dropped, with a warning.
func (s *Store) GC(ctx context.Context, keep func(bucket, key string) bool) (GCReport, error) {
	if s.looks {
		return GCReport{}, ErrReadOnly
	}
	release, err := s.hold(ctx)
	if err != nil {
		return GCReport{}, err
	}
	defer release()
	s.commitMu.Lock()
	defer s.commitMu.Unlock()
	if s.broken != nil {
		return GCReport{}, s.broken
	}
	var r GCReport
	if r.BytesBefore, err = s.Size(); err != nil {
		return r, err
	}
	var tmp string
	if s.dir != "" {
		tmp = freshDir(s.dir, s.generation+1)
	}
	f, err := newFiller(tmp, s.log, s.room)
	if err != nil {
		return r, fmt.Errorf("collect garbage of store %s: %w", s.dir, err)
	}
	r.Kept, r.Dropped, err = s.copyTo(f, keep, ctx.Err)
	if err == nil {
		err = s.swap(f, tmp)
	} else {
		err = errors.Join(err, f.discard(tmp))
	}
	if err != nil {
		return GCReport{BytesBefore: r.BytesBefore, BytesAfter: r.BytesBefore}, fmt.Errorf("collect garbage of store %s: %w", s.dir, err)
	}
	r.BytesAfter, err = s.Size()
	return r, err
}

// copyTo copies what keep wants until stop gives an error. Nobody writes meanwhile.
func (s *Store) copyTo(f *filler, keep func(bucket, key string) bool, stop func() error) (kept, dropped int, err error) {
	for from := []byte(nil); ; {
		if err := stop(); err != nil {
			return kept, dropped, err
		}
		keys, more, err := s.page(nil, from, pageRecords, false)
		if err != nil {
			return kept, dropped, err
		}
		for _, k := range keys {
			bucket, key, _ := strings.Cut(k.key, "\x00")
			if bucket != "" && keep != nil && !keep(bucket, key) {
				dropped++
				continue
			}
			value, ok, err := s.get([]byte(k.key))
			var broken *recordError
			switch {
			case errors.As(err, &broken):
				s.log.Warningf("leave out record %q of bucket %s, which cannot be read: %v", key, bucket, err)
				dropped++
				continue
			case err != nil:
				return kept, dropped, err
			case !ok:
				continue // unreachable: nobody writes
			}
			if err := f.add([]byte(k.key), value); err != nil {
				return kept, dropped, err
			}
			if bucket != "" {
				kept++
			}
		}
		if !more {
			return kept, dropped, nil
		}
		from = append([]byte(keys[len(keys)-1].key), 0)
	}
}

// swap puts the copy in the place of the open database.
func (s *Store) swap(f *filler, tmp string) error {
	if s.dir == "" {
		if err := f.flush(); err != nil {
			return errors.Join(err, f.discard(""))
		}
		return s.setDB(f.db, 0)
	}
	if err := f.close(); err != nil {
		return errors.Join(err, os.RemoveAll(tmp))
	}
	if s.afterCopy != nil {
		s.afterCopy()
	}
	old, fresh := dataDir(s.dir, s.generation), dataDir(s.dir, s.generation+1)
	if err := publish(tmp, fresh); err != nil {
		return s.takeBack(err, fresh, tmp)
	}
	db, err := openBadger(fresh, s.log, true)
	if err != nil {
		return s.takeBack(err, fresh, tmp)
	}
	return errors.Join(s.setDB(db, s.generation+1), os.RemoveAll(old))
}

// takeBack undoes a copy that cannot be used. If it has its name already and cannot lose it, nothing
// may be written any more: the next Open would take the copy and lose that.
func (s *Store) takeBack(cause error, fresh, tmp string) error {
	if _, err := os.Stat(tmp); errors.Is(err, os.ErrNotExist) {
		if err := os.Rename(fresh, tmp); err != nil {
			s.broken = &stopError{fmt.Errorf("store %s has a newer copy that cannot be opened (%w): restart", s.dir, cause)}
			return s.broken
		}
	}
	return errors.Join(cause, syncFile(s.dir), os.RemoveAll(tmp))
}

func (s *Store) setDB(db *badger.DB, generation int) error {
	s.mu.Lock()
	old := s.db
	s.db, s.generation = db, generation
	s.mu.Unlock()
	if err := old.Close(); err != nil {
		s.log.Warningf("close the old files: %v", err) // everything they held is in the copy
	}
	return nil
}

// live sums the sizes of the records, without reading values from the value log.
func (s *Store) live() (n int64, err error) {
	err = s.view(func(txn *badger.Txn) error {
		it := txn.NewIterator(badger.IteratorOptions{})
		defer it.Close()
		for it.Rewind(); it.Valid(); it.Next() {
			item := it.Item()
			n += item.EstimatedSize() + item.KeySize()
		}
		return nil
	})
	return n, err
}

// compacted makes a copy of a store that is mostly dead and returns its folder, "" when there is
// nothing to gain or no space to gain it with. The committer has ended.
func (s *Store) compacted() string {
	if s.dir == "" || s.broken != nil || !s.wrote && !s.dirty {
		return ""
	}
	old := dataDir(s.dir, s.generation)
	dead, total, err := s.dead(old)
	if err != nil || dead <= max(deadBytes, total/2) {
		return ""
	}
	tmp := freshDir(s.dir, s.generation+1)
	if err := s.compactTo(tmp); err != nil {
		s.log.Warningf("compaction of %s put off: %v", s.dir, err)
		if err := os.RemoveAll(tmp); err != nil {
			s.log.Warningf("%v", err)
		}
		return ""
	}
	return tmp
}

func (s *Store) compactTo(tmp string) error {
	f, err := newFiller(tmp, s.log, s.room)
	if err != nil {
		return err
	}
	_, _, err = s.copyTo(f, nil, func() error { return nil })
	return errors.Join(err, f.close())
}

// dead returns the bytes of tables and value logs that no record needs, and all of them.
func (s *Store) dead(dir string) (dead, total int64, err error) {
	for _, pattern := range []string{"*.vlog", "*.sst"} {
		files, err := fs.Glob(os.DirFS(dir), pattern) // dir itself may hold what is special in a pattern
		if err != nil {
			return 0, 0, err
		}
		for _, f := range files {
			n, err := fileBytes(filepath.Join(dir, f))
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				return 0, 0, err
			}
			total += n
		}
	}
	if total <= deadBytes {
		return 0, total, nil
	}
	live, err := s.live()
	return total - live, total, err
}

// replace puts a finished copy in the place of a closed database.
func (s *Store) replace(tmp string) error {
	if s.afterCopy != nil {
		s.afterCopy()
	}
	if err := publish(tmp, dataDir(s.dir, s.generation+1)); err != nil {
		return fmt.Errorf("compact store %s: %w", s.dir, err)
	}
	return os.RemoveAll(dataDir(s.dir, s.generation))
}

// A filler writes a fresh Badger folder in large transactions without syncs; who publishes it syncs.
type filler struct {
	db    *badger.DB
	txn   *badger.Txn
	bytes int64
	room  func(int64) error
}

// newFiller opens a fresh folder, or memory when dir is empty.
func newFiller(dir string, log *logger, room func(int64) error) (*filler, error) {
	if dir == "" {
		db, err := openMemoryBadger(log)
		if err != nil {
			return nil, err
		}
		return &filler{db: db, txn: db.NewTransaction(true), room: room}, nil
	}
	if err := room(0); err != nil {
		return nil, err
	}
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	db, err := openBadger(dir, log, false)
	if err != nil {
		return nil, err
	}
	return &filler{db: db, txn: db.NewTransaction(true), room: room}, nil
}

// add keeps key and value until the next flush.
func (f *filler) add(key, value []byte) error {
	err := f.txn.Set(key, value)
	if errors.Is(err, badger.ErrTxnTooBig) {
		if err := f.flush(); err != nil {
			return err
		}
		err = f.txn.Set(key, value)
	}
	if err != nil {
		return err
	}
	if f.bytes += int64(len(key) + len(value)); f.bytes > fillBytes {
		return f.flush()
	}
	return nil
}

func (f *filler) flush() error {
	if err := f.room(f.bytes); err != nil {
		return err
	}
	err := f.txn.Commit()
	f.txn, f.bytes = f.db.NewTransaction(true), 0
	return err
}

// close writes the rest and closes the folder.
func (f *filler) close() error {
	err := f.flush()
	f.txn.Discard()
	return errors.Join(err, f.db.Close())
}

// discard closes and removes what was written.
func (f *filler) discard(dir string) error {
	f.txn.Discard()
	err := f.db.Close()
	if dir == "" {
		return err
	}
	return errors.Join(err, os.RemoveAll(dir))
}
