package kv

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// look opens a store as Open does where the folder may not be written. Whoever runs the tests may be one
// whom no mode of a file stops.
func look(t *testing.T, dir string) (*Store, error) {
	t.Helper()
	s := newStore(dir, Options{Look: true})
	s.looks = true
	lock, clean, err := lockShared(dir, 1)
	if err != nil {
		return nil, err
	}
	s.lock, s.dirty = lock, !clean
	if err := s.openFiles(current); err != nil {
		return nil, errors.Join(err, s.abandon())
	}
	return s, nil
}

// sums are the files of a folder by their contents.
func sums(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		out[path] = fmt.Sprintf("%d %x", len(data), sha256.Sum256(data))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// A store that may not be written is read by as many as like, and no file of it changes.
func TestLook(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	words := In[string](s, "words", 1)
	for i := range 3000 {
		if err := words.Put(fmt.Sprint(i), fmt.Sprintf("%0600d", i)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := look(t, dir); !errors.As(err, new(*LockedError)) {
		t.Errorf("look at a store that is held: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	before := sums(t, dir)
	for range 2 {
		s, err := look(t, dir)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if got, ok, err := In[string](s, "words", 1).Get("2999"); err != nil || !ok || got != fmt.Sprintf("%0600d", 2999) {
			t.Errorf("Get = %.20q, %v, %v", got, ok, err)
		}
		n := 0
		for _, err := range In[string](s, "words", 1).Scan("", "") {
			if n++; err != nil {
				t.Fatal(err)
			}
		}
		if n != 3000 {
			t.Errorf("scanned %d records", n)
		}
		if err := In[string](s, "words", 1).Put("1", "x"); !errors.Is(err, ErrReadOnly) || !s.ReadOnly() {
			t.Errorf("Put: %v, read only %v", err, s.ReadOnly())
		}
		op, err := In[string](s, "words", 1).PutOp("x", "beside it")
		if err != nil {
			t.Fatal(err)
		}
		if n, err := s.Backup(t.Context(), io.Discard, op); n != 3001 || err != nil {
			t.Errorf("Backup = %d, %v", n, err)
		}
		if _, err := s.GC(t.Context(), func(string, string) bool { return true }); !errors.Is(err, ErrReadOnly) {
			t.Errorf("GC: %v", err)
		}
		if _, err := Open(dir, Options{}); !errors.As(err, new(*LockedError)) {
			t.Errorf("open a store that somebody looks at: %v", err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	// The lock's own file is touched by the writers that were refused alone.
	if d := cmp.Diff(before, sums(t, dir)); d != "" {
		t.Errorf("files (-before +after):\n%s", d)
	}
}

func TestLookAtNothing(t *testing.T) {
	dir := t.TempDir()
	if _, err := look(t, dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a lock: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, lockName), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := look(t, dir); err == nil {
		t.Error("an empty folder is a store")
	}
}
