package kv

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dgraph-io/badger/v4"
	"github.com/google/go-cmp/cmp"
)

// A damaged folder is refused before Badger touches it: whoever repairs it finds every file there.
func TestDamagedFolder(t *testing.T) {
	table := func(t *testing.T, data string) (path string, size int64) {
		t.Helper()
		files, err := filepath.Glob(filepath.Join(data, "*.sst"))
		if err != nil || len(files) == 0 {
			t.Fatalf("tables: %v, %v", files, err)
		}
		for _, f := range files { // the largest
			info, err := os.Stat(f)
			if err != nil {
				t.Fatal(err)
			}
			if info.Size() > size {
				path, size = f, info.Size()
			}
		}
		return path, size
	}
	cut := func(left func(size int64) int64) func(*testing.T, string) {
		return func(t *testing.T, data string) {
			path, size := table(t, data)
			if err := os.Truncate(path, left(size)); err != nil {
				t.Fatal(err)
			}
		}
	}
	noise := func(at, n int64) func(*testing.T, string) {
		return func(t *testing.T, data string) {
			path, size := table(t, data)
			b, err := os.ReadFile(path)
			if err != nil || at+n > size {
				t.Fatalf("%d bytes at %d of %d: %v", n, at, size, err)
			}
			rng := rand.New(rand.NewPCG(uint64(at), uint64(n)))
			for i := at; i < at+n; i++ {
				b[i] ^= byte(1 + rng.IntN(255))
			}
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, damage := range map[string]func(t *testing.T, data string){
		"no list of tables": func(t *testing.T, data string) {
			if err := os.Remove(filepath.Join(data, "MANIFEST")); err != nil {
				t.Fatal(err)
			}
		},
		"an empty list of tables": func(t *testing.T, data string) {
			if err := os.Truncate(filepath.Join(data, "MANIFEST"), 0); err != nil {
				t.Fatal(err)
			}
		},
		"a table is missing": func(t *testing.T, data string) {
			path, _ := table(t, data)
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		},
		"a table cut at its end": cut(func(size int64) int64 { return size - 100 }),
		"a table cut in half":    cut(func(size int64) int64 { return size / 2 }),
		"a table of a few bytes": cut(func(int64) int64 { return 3 }),
		"a table without a byte": cut(func(int64) int64 { return 0 }),
		"a table that ends in 0s": func(t *testing.T, data string) {
			_, size := table(t, data)
			cut(func(int64) int64 { return size + 1000 })(t, data)
		},
		"noise in a table's blocks":       noise(20<<10, 4<<10),
		"noise where a table begins":      noise(0, 512),
		"a bit of a block's end is wrong": noise(4<<10, 1),
		"noise in the index of a table": func(t *testing.T, data string) {
			_, size := table(t, data)
			noise(size-200, 100)(t, data)
		},
		"noise in every part of a table": func(t *testing.T, data string) {
			_, size := table(t, data)
			for at := int64(0); at+1000 < size; at += 3000 {
				noise(at, 1000)(t, data)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := openTest(t, dir, Options{})
			var ops []Op
			for i := range 1000 { // more blocks than one
				op, err := In[string](s, "b", 1).PutOp(fmt.Sprint("key ", i), strings.Repeat("value ", i%20))
				if err != nil {
					t.Fatal(err)
				}
				ops = append(ops, op)
			}
			if err := s.Write(ops...); err != nil {
				t.Fatal(err)
			}
			closeTest(t, s)
			damage(t, dataDir(dir, 1))
			before := tree(t, dataDir(dir, 1))
			for range 2 {
				if s, err := Open(dir, Options{}); !errors.Is(err, errDamaged) {
					if err == nil {
						closeTest(t, s)
					}
					t.Fatalf("Open = %v, want one that says to restore a backup", err)
				}
			}
			if diff := cmp.Diff(before, tree(t, dataDir(dir, 1))); diff != "" {
				t.Errorf("files (-before +after):\n%s", diff)
			}
		})
	}
}

// What a killed process left half written is no damage: no list names it.
func TestUnlistedTableIsNoDamage(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir, Options{})
	put(t, In[string](s, "b", 1), "a", "1")
	closeTest(t, s)
	if err := os.WriteFile(filepath.Join(dataDir(dir, 1), "000099.sst"), make([]byte, 5000), 0o644); err != nil {
		t.Fatal(err)
	}
	s = openTest(t, dir, Options{})
	if diff := cmp.Diff([]string{"a=1"}, contents(In[string](s, "b", 1), "", "")); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
	closeTest(t, s)
}

// An older generation is removed when the newer one was opened, not before.
func TestOlderGenerationOutlivesADamagedOne(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir, Options{})
	put(t, In[string](s, "b", 1), "a", "1")
	closeTest(t, s)
	if err := os.Mkdir(dataDir(dir, 7), 0o755); err != nil {
		t.Fatal(err)
	}
	if s, err := Open(dir, Options{}); err == nil {
		closeTest(t, s)
		t.Fatal("Open took an empty folder for a store")
	}
	if err := os.Remove(dataDir(dir, 7)); err != nil {
		t.Fatal(err)
	}
	s = openTest(t, dir, Options{})
	if diff := cmp.Diff([]string{"a=1"}, contents(In[string](s, "b", 1), "", "")); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
	closeTest(t, s)
}

// A panic of Badger while it reads is the same error; one of the caller's own stays a panic.
func TestPanicInARead(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{})
	defer closeTest(t, s)
	put(t, In[string](s, "b", 1), "a", "1")
	err := s.view(func(*badger.Txn) error {
		var none []byte
		_ = none[len(s.dir)]
		return nil
	})
	var stops interface{ StopsRun() bool }
	if !errors.Is(err, errDamaged) || !errors.As(err, &stops) || !stops.StopsRun() {
		t.Errorf("view = %v, want one that ends the run and says to restore a backup", err)
	}
	defer func() {
		if p := recover(); p != "ours" {
			t.Errorf("recovered %v", p)
		}
	}()
	_, err = s.read(In[string](s, "b", 1).key("a"), func([]byte) { panic("ours") })
	t.Errorf("read = %v", err)
}
