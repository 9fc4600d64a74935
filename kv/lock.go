package kv

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

const (
	lockName  = "lock"
	lockTries = 20
	lockPause = 50 * time.Millisecond // a store that is just being closed is worth a second of waiting
)

// dirLock is a held lock. The file stays for ever: the kernel drops the lock with its process, and
// deleting a locked file would let two processes each lock a file of that name.
type dirLock struct {
	f      *os.File
	shared bool // with others that only read
}

type lockRecord struct {
	PID    int       `json:"pid"`
	Host   string    `json:"host"`
	Holder string    `json:"holder,omitzero"`
	Since  time.Time `json:"since"`
}

// lockDir locks the folder and writes who holds it. clean is false when the last holder was killed:
// Close empties the file.
func lockDir(dir, holder string, tries int) (l *dirLock, clean bool, err error) {
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o644)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.EROFS) {
		return nil, false, fmt.Errorf("lock store %s: %w; copy it to where it may be written", dir, err)
	} else if err != nil {
		return nil, false, fmt.Errorf("lock store %s: %w", dir, err)
	}
	if err := flock(dir, f, unix.LOCK_EX, tries); err != nil {
		return nil, false, err
	}
	info, err := f.Stat()
	if err == nil {
		err = writeHolder(f, holder)
	}
	if err != nil {
		f.Close()
		return nil, false, fmt.Errorf("lock store %s: %w", dir, err)
	}
	return &dirLock{f: f}, info.Size() == 0, nil
}

// lockShared locks a folder that may not be written against those that write, and leaves the file as it is.
func lockShared(dir string, tries int) (l *dirLock, clean bool, err error) {
	f, err := os.Open(filepath.Join(dir, lockName))
	if err != nil {
		return nil, false, fmt.Errorf("lock store %s: %w", dir, err)
	}
	if err := flock(dir, f, unix.LOCK_SH, tries); err != nil {
		return nil, false, err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, false, fmt.Errorf("lock store %s: %w", dir, err)
	}
	return &dirLock{f: f, shared: true}, info.Size() == 0, nil
}

// flock locks f, or closes it.
func flock(dir string, f *os.File, how, tries int) error {
	for {
		err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
		if err == nil {
			return nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			f.Close()
			return fmt.Errorf("lock store %s: %w", dir, err)
		}
		if tries--; tries <= 0 {
			defer f.Close()
			return lockedBy(dir, f)
		}
		time.Sleep(lockPause)
	}
}

func writeHolder(f *os.File, holder string) error {
	host, err := os.Hostname()
	if err != nil {
		host = "" // a machine without a name can hold a store too
	}
	b, err := json.Marshal(lockRecord{os.Getpid(), host, holder, time.Now().UTC().Truncate(time.Second)})
	if err != nil {
		return err
	}
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err = f.WriteAt(append(b, '\n'), 0)
	return err
}

// lockedBy reads who holds the lock. The holder may be writing its line this moment, so a line that
// cannot be read is a holder without a name.
func lockedBy(dir string, f *os.File) *LockedError {
	e := &LockedError{Dir: dir}
	b := make([]byte, 4096)
	n, _ := f.ReadAt(b, 0)
	var r lockRecord
	if json.Unmarshal(b[:n], &r) == nil {
		e.PID, e.Host, e.Holder, e.Since = r.PID, r.Host, r.Holder, r.Since
	}
	return e
}

// release marks a clean end and gives the lock back.
func (l *dirLock) release() error {
	if l.shared {
		return l.f.Close()
	}
	err := l.f.Truncate(0)
	return errors.Join(err, l.f.Close())
}
