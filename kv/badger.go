package kv

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"
	"github.com/dgraph-io/badger/v4/table"
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
	var db *badger.DB
	err := sound(func() (err error) {
		db, err = badger.Open(diskOptions(dir, log, syncWrites))
		return err
	})
	if err != nil && strings.Contains(err.Error(), "checksum") { // Badger does not wrap it
		return nil, fmt.Errorf("%w: %w", errDamaged, err)
	}
	return db, err
}

// errDamaged is what a disk did to the files that hold the keys.
var errDamaged = errors.New("the disk damaged the keys of the store, restore a backup")

// sound runs a use of Badger, which panics over bytes that it did not write. Such a panic is the damage
// of the disk; one of ours, see inside, stays what it is.
func sound(use func() error) (err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case ownPanic:
			panic(p.value)
		default:
			err = &stopError{fmt.Errorf("%w: %s", errDamaged, oneLine("%v", []any{p}))}
		}
	}()
	return use()
}

// An ownPanic came from a function that we handed to Badger.
type ownPanic struct{ value any }

// inside runs a function of ours inside of Badger.
func inside(f func()) {
	defer func() {
		if p := recover(); p != nil {
			panic(ownPanic{p})
		}
	}()
	f()
}

// checkFiles looks at a Badger folder before Badger does. Where the list of tables is missing, Badger
// makes an empty one and deletes every table; a table that is not whole makes it panic in a goroutine of
// its own, where nobody can recover. Everything else it reports itself, and what the list does not name a killed process left.
func checkFiles(dir string) error {
	f, err := os.Open(filepath.Join(dir, badger.ManifestFilename))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %s is missing from %s", errDamaged, badger.ManifestFilename, dir)
	} else if err != nil {
		return err
	}
	defer f.Close()
	list, _, err := badger.ReplayManifestFile(f, 0, badger.DefaultOptions(dir))
	if err != nil {
		return fmt.Errorf("%w: %w", errDamaged, err)
	}
	for id, t := range list.Tables {
		if err := checkTable(filepath.Join(dir, fmt.Sprintf("%06d.sst", id)), t.Compression); err != nil {
			return err
		}
	}
	return nil
}

// checkTable reads the end of a table: blocks, index, its length, checksum, its length. Then it lets
// Badger verify the index and every block.
func checkTable(path string, compression options.CompressionType) error {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %s is missing", errDamaged, path)
	} else if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	end := info.Size()
	for _, part := range []string{"checksum", "index"} {
		var b [4]byte
		if _, err := f.ReadAt(b[:], end-4); err != nil {
			return fmt.Errorf("%w: %s has no end", errDamaged, path)
		}
		n := int64(binary.BigEndian.Uint32(b[:]))
		if end -= 4 + n; end < 4 || n == 0 {
			return fmt.Errorf("%w: %s names a %s of %d bytes", errDamaged, path, part, n)
		}
	}
	data := make([]byte, info.Size())
	if _, err := f.ReadAt(data, 0); err != nil {
		return fmt.Errorf("%w: read %s: %w", errDamaged, path, err)
	}
	err = sound(func() error {
		t, err := table.OpenInMemoryTable(data, 0, &table.Options{Compression: compression, ChkMode: options.NoVerification})
		if err != nil {
			return err
		}
		return t.VerifyChecksum()
	})
	switch {
	case errors.Is(err, errDamaged):
		return fmt.Errorf("%s: %w", path, err)
	case err != nil:
		return fmt.Errorf("%w: %s does not hold what was written: %s", errDamaged, path, oneLine("%.200v", []any{err}))
	}
	return nil
}

// removeUnborn removes log files without a byte: a process was killed between making the file and
// giving it its length, and Badger takes such a file for an error.
func removeUnborn(dir string) error {
	for _, pattern := range []string{"*.vlog", "*.mem"} {
		files, err := fs.Glob(os.DirFS(dir), pattern) // dir itself may hold what is special in a pattern
		if err != nil {
			return err
		}
		for _, name := range files {
			f := filepath.Join(dir, name)
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
