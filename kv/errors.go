package kv

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// storeError is a sentinel after which a run cannot go on.
type storeError string

func (e storeError) Error() string { return string(e) }

// StopsRun tells the engine that this is no failure of one item.
func (storeError) StopsRun() bool { return true }

var (
	// ErrDiskFull is returned by writes, Open and GC when they would eat into the reserve of free
	// disk space. Nothing was written; after space was made the same store accepts writes again.
	ErrDiskFull error = storeError("kv: disk is full")
	// ErrReadOnly is returned by writes to a store whose folder may not be written.
	ErrReadOnly error = storeError("kv: the store may be read and not written; copy the workspace to where it may be")
	// ErrClosed is returned by every use of a store after Close.
	ErrClosed error = storeError("kv: store is closed")
	// ErrStale is inside the CorruptError of a record that another bucket version wrote.
	ErrStale = errors.New("record of another version")
)

// stopError is a failure of the store as a whole: it keeps its text and ends the run.
type stopError struct{ err error }

func (e *stopError) Error() string { return e.err.Error() }
func (e *stopError) Unwrap() error { return e.err }

// StopsRun tells the engine that this is no failure of one item.
func (*stopError) StopsRun() bool { return true }

// A LockedError says that another process, or another Open in this one, holds the store.
type LockedError struct {
	Dir    string
	PID    int    // 0 when the holder could not be read
	Host   string // empty when the holder could not be read
	Holder string // what the holder gave as Options.Holder
	Since  time.Time
}

// Error is one line that names the store and who holds it.
func (e *LockedError) Error() string {
	var who []string
	if e.PID != 0 {
		who = append(who, fmt.Sprintf("pid %d", e.PID))
	}
	if e.Host != "" {
		who = append(who, "host "+e.Host)
	}
	if !e.Since.IsZero() {
		who = append(who, "since "+e.Since.Format(time.RFC3339))
	}
	if e.Holder != "" {
		who = append(who, e.Holder)
	}
	if len(who) == 0 {
		who = append(who, "holder unknown")
	}
	line := fmt.Sprintf("another run holds the store %s (%s)", e.Dir, strings.Join(who, ", "))
	return strings.Join(strings.Fields(line), " ")
}

// StopsRun tells the engine that this is no failure of one item.
func (*LockedError) StopsRun() bool { return true }

// A CorruptError is a record that is there but cannot be used: damaged bytes, or a record of another
// bucket version (then errors.Is(err, ErrStale)). The caller rebuilds the record and puts it again.
type CorruptError struct {
	Bucket, Key string
	Err         error
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("read record %q of bucket %s: %v", e.Key, e.Bucket, e.Err)
}

func (e *CorruptError) Unwrap() error { return e.Err }

// A SchemaError is a store whose layout this program cannot use. Hint says what to do.
type SchemaError struct {
	Dir        string
	Have, Want string // "major.minor"; Have is empty when the folder holds records without a marker
	Hint       string
}

func (e *SchemaError) Error() string {
	have := e.Have
	if have == "" {
		have = "unknown"
	}
	return fmt.Sprintf("open store %s: its schema is %s, this program needs %s: %s", e.Dir, have, e.Want, e.Hint)
}

// StopsRun tells the engine that this is no failure of one item.
func (*SchemaError) StopsRun() bool { return true }
