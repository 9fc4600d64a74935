package kv

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"
)

func diskOptions(dir string, log *logger, syncWrites bool) badger.Options {
	o := badger.DefaultOptions(dir)
	o.Logger = log
	o.SyncWrites = syncWrites
	o.MetricsEnabled = false
	o.DetectConflicts = false // one committer, no reads in its transactions
	o.NumVersionsToKeep = 1
	o.Compression = options.None // values come compressed
	o.BlockCacheSize = 0
	o.IndexCacheSize = 64 << 20
	o.MemTableSize = 32 << 20 // one transaction may hold 15 % of it
	o.NumMemtables = 2
	o.NumCompactors = 2
	o.ValueThreshold = 1 << 10     // key-only work must not read values
	o.ValueLogFileSize = 256 << 20 // a sparse file of twice that while it is written
	o.VerifyValueChecksum = true   // an entry that fails otherwise keeps its file locked and Close hangs
	o.ChecksumVerificationMode = options.OnTableRead
	return o
}

func memoryOptions(log *logger) badger.Options {
	o := diskOptions("", log, false)
	o.InMemory = true
	o.MemTableSize = 48 << 20 // values count against a transaction here, and one may have 4 MiB
	o.VerifyValueChecksum = false
	o.ChecksumVerificationMode = options.NoVerification
	return o
}

// openMemoryBadger opens an empty Badger in memory.
func openMemoryBadger(log *logger) (*badger.DB, error) {
	db, err := badger.Open(memoryOptions(log))
	if err != nil {
		return nil, err
	}
	// In memory every value must lie in the tree, but a fresh Badger refuses values above the
	// threshold, which is 1 MiB at most. Dropping nothing makes it take over the limit that it set
	// itself for this mode: none.
	if err := db.DropAll(); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// openBadger opens the Badger folder dir and makes it if needed.
func openBadger(dir string, log *logger, syncWrites bool) (*badger.DB, error) {
	if err := removeUnborn(dir); err != nil {
		return nil, err
	}
	db, err := badger.Open(diskOptions(dir, log, syncWrites))
	if err != nil && strings.Contains(err.Error(), "checksum") { // Badger does not wrap it
		return nil, fmt.Errorf("the disk damaged the keys of the store, restore a backup: %w", err)
	}
	return db, err
}

// removeUnborn removes log files without a byte: a process was killed between making the file and
// giving it its length, and Badger takes such a file for an error.
func removeUnborn(dir string) error {
	for _, pattern := range []string{"*.vlog", "*.mem"} {
		files, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			return err
		}
		for _, f := range files {
			info, err := os.Stat(f)
			if err == nil && info.Size() == 0 {
				err = os.Remove(f)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// logger takes Badger's messages. A failed sync of the value log is an error that Badger only logs.
type logger struct {
	warn func(string)
	mu   sync.Mutex
	sync error
}

func (l *logger) Errorf(format string, args ...any) {
	if strings.HasPrefix(format, "Error while curlf sync") {
		l.mu.Lock()
		l.sync = errors.New(oneLine(format, args))
		l.mu.Unlock()
	}
	l.Warningf(format, args...)
}

func (l *logger) Warningf(format string, args ...any) {
	if l.warn != nil {
		l.warn("store: " + oneLine(format, args))
	}
}

func (l *logger) Infof(string, ...any)  {}
func (l *logger) Debugf(string, ...any) {}

func oneLine(format string, args []any) string {
	return strings.Join(strings.Fields(fmt.Sprintf(format, args...)), " ")
}

func (l *logger) syncError() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.sync
	l.sync = nil
	return err
}
