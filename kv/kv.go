// Package kv is the store: typed buckets of records over Badger, and nothing else of Badger.
//
// A bucket is named and versioned (In), its records are JSON or bytes behind one version byte, all but
// small ones zstd-compressed. Keys are text in byte order; Key makes tuples of it. A write returns when
// it is on disk: one committer goroutine puts the writes of all goroutines that wait into one
// transaction and one sync. Scans go page by page and hold nothing of the store while they yield.
//
// A store is a folder that one process owns:
//
//	lock          held by flock; names the process that runs, empty after a clean Close. Where the folder
//	              may not be written, it is held together with others that only look
//	data-000007   the Badger folder; the highest number counts, lower ones are leftovers
//	new-000008    a copy that was not finished; removed by the next Open
//
// In Badger a record is bucket 0x00 key => version byte, zstd frame; or, for a small record, version
// byte, 0x00, CRC-32C, JSON. The record 0x00 "schema" holds the version of this layout.
//
// Space comes back only by copying what lives to a fresh folder, which replaces the old one by a
// rename: GC does it while the store is open, Close when too much is dead. Badger's own value log
// collection and backup are not used. The package does not cache, expire, replicate or lock records.
package kv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/dgraph-io/badger/v4"
	"github.com/klauspost/compress/zstd"
	"golang.org/x/sys/unix"
)

const (
	defaultReserve = 256 << 20
	openReserve    = 64 << 20 // opening makes log and table files, so it needs some space itself
	deadBytes      = 64 << 20 // Close compacts when more than this and more than half is dead
)

// Options says how a store is opened. The zero value is fit for use.
type Options struct {
	Reserve int64                           // bytes of free disk space that writes leave alone; 0 means 256 MiB
	Holder  string                          // what another run is told about this one, such as a socket path
	Free    func(dir string) (int64, error) // free bytes of the disk that holds dir; nil asks the system
	Look    bool                            // a folder that may not be written is opened for reading alone
	Warn    func(string)                    // gets warnings, one line each, from any goroutine; nil drops them
}

// A Store is an open store. All methods may be called from many goroutines.
type Store struct {
	dir string // empty: in memory
	opt Options
	log *logger

	lock  *dirLock
	dirty bool // the last holder was killed
	looks bool // nothing is written
	enc   *zstd.Encoder
	fast  *zstd.Encoder // of values up to smallBytes
	dec   *zstd.Decoder

	threshold   int64 // values from this size on lie in the value log
	maxOps      int   // of one transaction
	maxTxn      int64
	requests    chan *request
	quit        chan struct{} // closed by Close
	committed   chan struct{} // closed when the committer has ended
	closeOnce   sync.Once
	closeErr    error
	maintenance chan struct{} // one slot: Backup, GC and Close exclude each other
	commitMu    sync.Mutex    // guards wrote, broken, and db against change by GC; held over a commit
	wrote       bool
	broken      error
	mu          sync.RWMutex // guards db and generation: readers hold it for a page, GC for the swap
	db          *badger.DB   // nil once closed
	generation  int
	afterCopy   func() // test seam: runs in GC and compaction between the finished copy and the rename
}

// Open opens the store in dir and makes it if there is none. It removes what a killed process left.
// It returns a *LockedError within two seconds when another run holds the store, a *SchemaError when
// its layout is not this program's, and ErrDiskFull when there is too little space even to open.
func Open(dir string, o Options) (*Store, error) { return open(dir, o, current) }

func open(dir string, o Options, want schema) (*Store, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open store %s: %w", dir, err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	s := newStore(dir, o)
	hold := func() (*dirLock, bool, error) { return lockDir(dir, o.Holder, lockTries) }
	if o.Look && unix.Access(dir, unix.W_OK) != nil {
		s.looks = true
		hold = func() (*dirLock, bool, error) { return lockShared(dir, lockTries) }
	}
	lock, clean, err := hold()
	if err != nil {
		return nil, err
	}
	s.lock, s.dirty = lock, !clean
	if err := s.openFiles(want); err != nil {
		return nil, errors.Join(err, s.abandon())
	}
	return s, nil
}

// ReadOnly reports whether the folder may not be written, so that writes return ErrReadOnly.
func (s *Store) ReadOnly() bool { return s.looks }

// OpenMemory opens an empty store that lives in memory and ends with Close.
func OpenMemory() (*Store, error) {
	s := newStore("", Options{})
	if err := s.openMemory(); err != nil {
		return nil, errors.Join(err, s.abandon())
	}
	return s, nil
}

func newStore(dir string, o Options) *Store {
	if o.Reserve == 0 {
		o.Reserve = defaultReserve
	}
	if o.Free == nil {
		o.Free = FreeBytes
	}
	return &Store{
		dir: dir, opt: o, log: &logger{warn: o.Warn},
		requests: make(chan *request), quit: make(chan struct{}), committed: make(chan struct{}),
		maintenance: make(chan struct{}, 1),
	}
}

func (s *Store) openMemory() error {
	if err := s.openCodec(); err != nil {
		return err
	}
	db, err := openMemoryBadger(s.log)
	if err != nil {
		return fmt.Errorf("open store in memory: %w", err)
	}
	s.start(db)
	return s.Write(current.op())
}

func (s *Store) openFiles(want schema) error {
	if err := s.openCodec(); err != nil {
		return err
	}
	if s.looks {
		return s.openToLook(want)
	}
	free, err := s.opt.Free(s.dir)
	if err != nil {
		return fmt.Errorf("open store %s: ask for free space: %w", s.dir, err)
	}
	if free < min(openReserve, s.opt.Reserve) {
		return fmt.Errorf("open store %s: %d MiB are free: %w", s.dir, free>>20, ErrDiskFull)
	}
	generation, older, err := settle(s.dir)
	if err != nil {
		return fmt.Errorf("open store %s: %w", s.dir, err)
	}
	if s.generation = generation; generation == 0 {
		if err := s.create(want); err != nil {
			return fmt.Errorf("make store %s: %w", s.dir, err)
		}
	}
	data := dataDir(s.dir, s.generation)
	if err := checkFiles(data); err != nil {
		return fmt.Errorf("open store %s: %w", s.dir, err)
	}
	db, err := openBadger(data, s.log, true)
	if err != nil {
		return fmt.Errorf("open store %s: %w", s.dir, err)
	}
	s.start(db)
	if err := s.checkSchema(want); err != nil {
		return err
	}
	if err := removeAll(older); err != nil {
		return fmt.Errorf("open store %s: remove an older generation: %w", s.dir, err)
	}
	return nil
}

// openToLook opens what is there and changes no file.
func (s *Store) openToLook(want schema) error {
	generation, _, err := newest(s.dir)
	if err != nil {
		return fmt.Errorf("open store %s: %w", s.dir, err)
	}
	if s.generation = generation; generation == 0 {
		return fmt.Errorf("open store %s: there is none in it yet, and it may not be written", s.dir)
	}
	data := dataDir(s.dir, generation)
	if err := checkFiles(data); err != nil {
		return fmt.Errorf("open store %s: %w", s.dir, err)
	}
	o := diskOptions(data, s.log, false)
	o.ReadOnly = true
	var db *badger.DB
	err = sound(func() (err error) {
		db, err = badger.Open(o)
		return err
	})
	switch {
	case err != nil && s.dirty:
		return fmt.Errorf("open store %s: the last run that held it was killed, and what that left has to be written before it can be read: "+
			"copy the workspace to where it may be written, and look there: %w", s.dir, err)
	case err != nil:
		return fmt.Errorf("open store %s for reading alone (a copy of the workspace that may be written can be looked at too): %w", s.dir, err)
	}
	s.start(db)
	return s.checkSchema(want)
}

// create makes an empty store beside the place where it will be, so that a kill while Badger makes
// its files leaves nothing that would be taken for a store.
func (s *Store) create(want schema) error {
	tmp := freshDir(s.dir, 1)
	f, err := newFiller(tmp, s.log, s.room)
	if err != nil {
		return err
	}
	op := want.op()
	err = f.add(op.key, op.value)
	if err = errors.Join(err, f.close()); err != nil {
		return err
	}
	s.generation = 1
	return publish(tmp, dataDir(s.dir, 1))
}

func (s *Store) openCodec() (err error) {
	if s.enc, err = zstd.NewWriter(nil, zstd.WithZeroFrames(true)); err != nil {
		return fmt.Errorf("open compressor: %w", err)
	}
	if s.fast, err = zstd.NewWriter(nil, zstd.WithZeroFrames(true), zstd.WithEncoderLevel(zstd.SpeedFastest)); err != nil {
		return fmt.Errorf("open compressor: %w", err)
	}
	if s.dec, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(maxValueBytes+1024)); err != nil {
		return fmt.Errorf("open decompressor: %w", err)
	}
	return nil
}

// start takes the open database and starts the committer.
func (s *Store) start(db *badger.DB) {
	s.db = db
	s.threshold = db.Opts().ValueThreshold // in memory the largest number: all values count
	s.maxOps = int(db.MaxBatchCount()) - 10
	s.maxTxn = db.MaxBatchSize() - 1024
	go s.commitLoop()
}

// abandon undoes a half done Open.
func (s *Store) abandon() error {
	if s.db != nil {
		close(s.quit)
		<-s.committed
		if err := s.db.Close(); err != nil {
			return fmt.Errorf("close store: %w", err)
		}
	}
	return s.closeRest()
}

func (s *Store) closeRest() error {
	if s.dec != nil {
		s.dec.Close()
	}
	if s.enc != nil {
		s.enc.Close() // an encoder without a writer has nothing to flush
	}
	if s.fast != nil {
		s.fast.Close()
	}
	if s.lock == nil {
		return nil
	}
	return s.lock.release()
}

// Close ends the store: it waits for the writes that were handed over, for GC and for Backup, and
// gives disk space back by a copy when more than 64 MiB and more than half of the store is dead. Scans
// that still run end with ErrClosed. No goroutine of the store is left. Further calls return the same.
func (s *Store) Close() error {
	s.closeOnce.Do(func() { s.closeErr = s.close() })
	return s.closeErr
}

func (s *Store) close() error {
	s.maintenance <- struct{}{}
	close(s.quit)
	<-s.committed
	tmp := s.compacted()
	s.mu.Lock()
	db := s.db
	s.db = nil
	s.mu.Unlock()
	err := db.Close()
	if err != nil {
		err = fmt.Errorf("close store %s: %w", s.dir, err)
	}
	if tmp != "" {
		// The copy is complete whatever the old files say now.
		err = errors.Join(err, s.replace(tmp))
	}
	return errors.Join(err, s.closeRest())
}

// Size returns the bytes that the store takes on disk now, or the size of the records in memory.
func (s *Store) Size() (int64, error) {
	s.mu.RLock()
	generation, open := s.generation, s.db != nil
	s.mu.RUnlock()
	switch {
	case !open:
		return 0, ErrClosed
	case s.dir == "":
		return s.live()
	}
	n, err := diskBytes(dataDir(s.dir, generation))
	if err != nil {
		return 0, fmt.Errorf("measure store %s: %w", s.dir, err)
	}
	return n, nil
}

// Buckets returns the names of the buckets that hold a record, sorted. After Close it returns nil.
func (s *Store) Buckets() []string {
	var names []string
	err := s.view(func(txn *badger.Txn) error {
		it := txn.NewIterator(badger.IteratorOptions{})
		defer it.Close()
		for it.Seek([]byte{1}); it.Valid(); {
			name, _, _ := bytes.Cut(it.Item().Key(), []byte{0})
			names = append(names, string(name))
			it.Seek(append([]byte(names[len(names)-1]), 1)) // past every key of this bucket
		}
		return nil
	})
	if err != nil {
		return nil
	}
	return names
}

// hold takes the one maintenance slot.
func (s *Store) hold(ctx context.Context) (release func(), err error) {
	select {
	case <-s.quit:
		return nil, ErrClosed
	default:
	}
	select {
	case s.maintenance <- struct{}{}:
		return func() { <-s.maintenance }, nil
	case <-s.quit:
		return nil, ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
