package kv

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	dataPattern  = "data-%06d"
	freshPattern = "new-%06d"
)

func dataDir(dir string, generation int) string {
	return filepath.Join(dir, fmt.Sprintf(dataPattern, generation))
}

func freshDir(dir string, generation int) string {
	return filepath.Join(dir, fmt.Sprintf(freshPattern, generation))
}

// settle finds the generation that counts, 0 if there is none, removes unfinished copies that a killed
// process left, and lists older generations. A data folder gets its name only when it is complete, but
// a disk may damage it later: what is older stays until the newest was opened.
func settle(dir string) (generation int, older []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, nil, err
	}
	for _, e := range entries {
		var n int
		if isNumbered(e.Name(), freshPattern, &n) {
			if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
				return 0, nil, err
			}
		}
	}
	return newest(dir)
}

// newest finds the generation that counts, 0 if there is none, and lists older ones.
func newest(dir string) (generation int, older []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, nil, err
	}
	for _, e := range entries {
		var n int
		if isNumbered(e.Name(), dataPattern, &n) {
			if generation > 0 {
				older = append(older, dataDir(dir, min(n, generation)))
			}
			generation = max(n, generation)
		}
	}
	return generation, older, nil
}

func removeAll(folders []string) error {
	for _, dir := range folders {
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	return nil
}

func isNumbered(name, pattern string, n *int) bool {
	_, err := fmt.Sscanf(name, pattern, n)
	return err == nil && *n > 0 && name == fmt.Sprintf(pattern, *n)
}

// publish makes a complete folder durable and gives it its name.
func publish(from, to string) error {
	if err := syncTree(from); err != nil {
		return err
	}
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return syncFile(filepath.Dir(to))
}

func syncTree(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return syncFile(path)
	})
}

func syncFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// diskBytes is what the files below dir take on disk. Log files are sparse while they are written, so
// their length says nothing.
func diskBytes(dir string) (n int64, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			var size int64
			size, err = fileBytes(path)
			n += size
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil // Badger removed it meanwhile
		}
		return err
	})
	return n, err
}

func fileBytes(path string) (int64, error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return info.Size(), nil
	}
	return min(info.Size(), st.Blocks*512), nil
}

// FreeBytes is how much room the disk that holds a folder has for us.
func FreeBytes(dir string) (int64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, err
	}
	return int64(st.Bavail) * int64(st.Bsize), nil //nolint:unconvert // the types differ between systems
}
