package kv

import (
	"errors"
	"fmt"
	"time"

	"github.com/dgraph-io/badger/v4"
)

const (
	maxKeyBytes   = 60_000    // Badger stores key lengths in 16 bits and adds its own suffix
	maxValueBytes = 256 << 20 // of one record before compression
	groupBytes    = 32 << 20  // a group is closed at this size, whoever waits
	groupWrites   = 4096

	// A sync costs a millisecond or two of processor and disk, however much it carries. Where several
	// write at once, the next group waits groupPause for more of them; who writes alone waits for nobody.
	groupPause   = 2 * time.Millisecond
	groupWriters = 3
)

// An Op is one change of one record, made by Bucket.PutOp and Bucket.DeleteOp and done by
// Store.Write. It holds the encoded record, so the value may change afterwards.
type Op struct {
	key    []byte
	value  []byte
	delete bool
	err    error
}

// bytes is what the op adds to the log files, txnBytes what Badger counts against a transaction.
func (o Op) bytes() int64 { return int64(len(o.key)+len(o.value)) + 64 }

func (o Op) txnBytes(threshold int64) int64 {
	v := int64(len(o.value))
	if v >= threshold {
		v = 12
	}
	return int64(len(o.key)) + v + 16
}

// A request is one Write on its way to the committer.
type request struct {
	ops   []Op
	bytes int64 // on disk
	txn   int64 // in a transaction
	done  chan error
}

// Write does all ops or none, in their order, and returns when they are durable. Writes of several
// goroutines share a disk sync, so many writers are faster than one. One Write holds at most about
// 5 MB of keys and small values and 50,000 ops; values above 1 KiB hardly count.
// ErrDiskFull means that nothing was written.
func (s *Store) Write(ops ...Op) error {
	if len(ops) == 0 {
		return nil
	}
	if s.looks {
		return ErrReadOnly
	}
	r := &request{ops: ops, done: make(chan error, 1)}
	for _, op := range ops {
		switch {
		case op.err != nil:
			return op.err
		case len(op.key) == 0:
			return errors.New("write to store: an op that no bucket made")
		}
		r.bytes += op.bytes()
		r.txn += op.txnBytes(s.threshold)
	}
	if len(ops) > s.maxOps || r.txn > s.maxTxn {
		return fmt.Errorf("write %d records to store: too large for one atomic write (at most %d records and %d bytes of keys and small values)",
			len(ops), s.maxOps, s.maxTxn)
	}
	select {
	case s.requests <- r:
		return <-r.done
	case <-s.quit:
		return ErrClosed
	}
}

// commitLoop is the one committer. The channel has no buffer: a writer that could not hand over its
// request before Close sees quit, and one that could gets an answer.
func (s *Store) commitLoop() {
	defer close(s.committed)
	var next time.Time
	for {
		select {
		case r := <-s.requests:
			select {
			case <-time.After(time.Until(next)):
			case <-s.quit:
			}
			group := s.collect(r)
			s.commitGroup(group)
			if len(group) >= groupWriters {
				next = time.Now().Add(groupPause)
			}
		case <-s.quit:
			return
		}
	}
}

// collect takes in whoever waits already.
func (s *Store) collect(first *request) []*request {
	group, bytes := []*request{first}, first.bytes
	for len(group) < groupWrites && bytes < groupBytes {
		select {
		case r := <-s.requests:
			group = append(group, r)
			bytes += r.bytes
		default:
			return group
		}
	}
	return group
}

func (s *Store) commitGroup(group []*request) {
	s.commitMu.Lock() // GC holds it while it copies
	defer s.commitMu.Unlock()
	for len(group) > 0 {
		n, ops, txn, bytes := 0, 0, int64(0), int64(0)
		for n < len(group) && (n == 0 || ops+len(group[n].ops) <= s.maxOps && txn+group[n].txn <= s.maxTxn) {
			ops += len(group[n].ops)
			txn += group[n].txn
			bytes += group[n].bytes
			n++
		}
		err := s.commitTxn(group[:n], bytes)
		for _, r := range group[:n] {
			r.done <- err
		}
		group = group[n:]
	}
}

func (s *Store) commitTxn(group []*request, bytes int64) error {
	if s.broken != nil {
		return s.broken
	}
	if err := s.room(bytes); err != nil {
		return err
	}
	txn := s.db.NewTransaction(true)
	defer txn.Discard()
	for _, r := range group {
		for _, op := range r.ops {
			var err error
			if op.delete {
				err = txn.Delete(op.key)
			} else {
				err = txn.SetEntry(badger.NewEntry(op.key, op.value))
			}
			if err != nil {
				return &stopError{fmt.Errorf("write to store %s: %w", s.dir, err)}
			}
		}
	}
	err := txn.Commit()
	if err == nil {
		err = s.log.syncError()
	}
	if err != nil {
		// What is on disk is uncertain now, and a second sync would not tell: only opening again does.
		s.broken = &stopError{fmt.Errorf("write to store %s: %w", s.dir, err)}
		return s.broken
	}
	s.wrote = true
	return nil
}

// room refuses a write that would eat into the reserve: a full disk kills the process inside Badger,
// whose files are memory maps.
func (s *Store) room(bytes int64) error {
	if s.dir == "" {
		return nil
	}
	free, err := s.opt.Free(s.dir)
	if err != nil {
		return &stopError{fmt.Errorf("ask for the free space of store %s: %w", s.dir, err)}
	}
	if free-bytes < s.opt.Reserve {
		return fmt.Errorf("write to store %s: %d MiB are free, of which %d MiB are the reserve: %w",
			s.dir, free>>20, s.opt.Reserve>>20, ErrDiskFull)
	}
	return nil
}
