package kv

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// writers writes records of many sizes from several goroutines and prints the key of each that was
// acknowledged, until the process is killed.
func writers(s *Store) error {
	b := In[[]byte](s, "b", 1)
	have, err := b.Count("")
	if err != nil {
		return err
	}
	errs := make(chan error, 4)
	for w := range 4 {
		go func() {
			for i := have; ; i++ {
				key := fmt.Sprintf("%d-%06d", w, i)
				if err := b.Put(key, record(key)); err != nil {
					errs <- err
					return
				}
				os.Stdout.WriteString(key + "\n") // one write call, so never half a line in the pipe
			}
		}()
	}
	return <-errs
}

// record is the value of a key: small ones, ones in the value log, and a few large ones.
func record(key string) []byte {
	rng := rand.New(rand.NewPCG(uint64(len(key)), uint64(key[0])<<32|uint64(key[len(key)-1])<<8|uint64(key[len(key)-2])))
	size := []int{10, 300, 2000, 2000, 40_000, 1 << 20}[rng.IntN(6)]
	return append([]byte(key+"\n"), noise(rng.Uint64(), size)...)
}

func writeForEver(dir string) error {
	s, err := Open(dir, Options{})
	if err != nil {
		return err
	}
	return writers(s)
}

// collectForEver writes and copies the store at the same time.
func collectForEver(dir string) error {
	s, err := Open(dir, Options{})
	if err != nil {
		return err
	}
	errs := make(chan error, 2)
	go func() { errs <- writers(s) }()
	go func() {
		for {
			if _, err := s.GC(context.Background(), nil); err != nil {
				errs <- err
				return
			}
			os.Stdout.WriteString("collected\n")
		}
	}()
	return <-errs
}

// dieAfterCopy fills a store that is mostly dead and kills the process between the finished copy and
// its rename.
func dieAfterCopy(dir string, do func(*Store) error) error {
	s, err := Open(dir, Options{})
	if err != nil {
		return err
	}
	b := In[[]byte](s, "b", 1)
	for range 75 {
		if err := b.Put("a", noise(1, 1<<20)); err != nil {
			return err
		}
	}
	if err := In[string](s, "c", 1).Put("x", "kept"); err != nil {
		return err
	}
	s.afterCopy = func() { syscall.Kill(os.Getpid(), syscall.SIGKILL) }
	return do(s)
}

func TestKilledWritersLoseNothing(t *testing.T) {
	for task, rounds := range map[string]int{"write": 6, "collect": 3} {
		t.Run(task, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(3, 4))
			dir := t.TempDir()
			acked := map[string]bool{}
			if testing.Short() {
				rounds = 2
			}
			for round := range rounds {
				c := startChild(t, task, dir)
				for range 1 + rng.IntN(60) {
					line := c.line()
					if line == "" || strings.HasPrefix(line, "error") {
						t.Fatalf("round %d: child says %q", round, line)
					}
					acked[line] = true
				}
				for _, line := range c.kill(t) {
					acked[line] = true
				}
				delete(acked, "collected")
				s := openTest(t, dir, Options{})
				b := In[[]byte](s, "b", 1)
				for key := range acked {
					got, ok, err := b.Get(key)
					if !ok || err != nil || !bytes.Equal(got, record(key)) {
						t.Fatalf("round %d: acknowledged record %s: %t, %v", round, key, ok, err)
					}
				}
				for e, err := range b.Scan("", "") {
					if err != nil || !bytes.Equal(e.Value, record(e.Key)) {
						t.Fatalf("round %d: record %s is damaged: %v", round, e.Key, err)
					}
				}
				closeTest(t, s)
			}
			if len(acked) < 20 {
				t.Errorf("only %d acknowledged records were tried", len(acked))
			}
		})
	}
}

// folders lists what lies in the store's folder.
func folders(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestKilledCopies(t *testing.T) {
	for _, task := range []string{"die in gc", "die in close"} {
		t.Run(task, func(t *testing.T) {
			dir := t.TempDir()
			startChild(t, task, dir).wait(t, syscall.SIGKILL)
			if diff := cmp.Diff([]string{"data-000001", "lock", "new-000002"}, folders(t, dir)); diff != "" {
				t.Fatalf("the kill left (-want +got):\n%s", diff)
			}
			s := openTest(t, dir, Options{})
			if diff := cmp.Diff([]string{"data-000001", "lock"}, folders(t, dir)); diff != "" {
				t.Errorf("Open leaves (-want +got):\n%s", diff)
			}
			if got, ok, err := In[[]byte](s, "b", 1).Get("a"); !ok || err != nil || !bytes.Equal(got, noise(1, 1<<20)) {
				t.Errorf("record a after the kill: %t, %v", ok, err)
			}
			if diff := cmp.Diff([]string{"x=kept"}, contents(In[string](s, "c", 1), "", "")); diff != "" {
				t.Errorf("bucket c (-want +got):\n%s", diff)
			}
			// The killed run closed nothing, so a run that only reads gives the space back.
			closeTest(t, s)
			if n := storeBytes(t, dir); n > 20<<20 {
				t.Errorf("after the next run closed the store it takes %d MiB", n>>20)
			}
		})
	}
}

func TestLeftovers(t *testing.T) {
	for name, c := range map[string]struct {
		leave func(t *testing.T, dir string)
		want  []string
	}{
		"unfinished copy": {func(t *testing.T, dir string) {
			if err := os.CopyFS(filepath.Join(dir, "new-000002"), os.DirFS(filepath.Join(dir, "data-000001"))); err != nil {
				t.Fatal(err)
			}
			if err := os.Remove(filepath.Join(dir, "new-000002", "MANIFEST")); err != nil {
				t.Fatal(err)
			}
		}, []string{"data-000001", "lock"}},
		"old one left whole": {func(t *testing.T, dir string) {
			if err := os.CopyFS(filepath.Join(dir, "data-000002"), os.DirFS(filepath.Join(dir, "data-000001"))); err != nil {
				t.Fatal(err)
			}
		}, []string{"data-000002", "lock"}},
		"old one left in part": {func(t *testing.T, dir string) {
			if err := os.Rename(filepath.Join(dir, "data-000001"), filepath.Join(dir, "data-000010")); err != nil {
				t.Fatal(err)
			}
			writeDir(t, filepath.Join(dir, "data-000009"), "000001.vlog")
			writeDir(t, filepath.Join(dir, "data-000002"))
			writeDir(t, filepath.Join(dir, "new-000010"), "MANIFEST")
		}, []string{"data-000010", "lock"}},
		"things of others": {func(t *testing.T, dir string) {
			writeDir(t, filepath.Join(dir, "data-9"), "x")
			writeDir(t, filepath.Join(dir, "data-000009-saved"), "x")
			writeDir(t, filepath.Join(dir, "new"), "x")
			writeDir(t, filepath.Join(dir, "new-00000x"), "x")
		}, []string{"data-000001", "data-000009-saved", "data-9", "lock", "new", "new-00000x"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := openTest(t, dir, Options{})
			put(t, In[string](s, "b", 1), "a", "1")
			closeTest(t, s)
			c.leave(t, dir)
			s = openTest(t, dir, Options{})
			if diff := cmp.Diff(c.want, folders(t, dir)); diff != "" {
				t.Errorf("folders after Open (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{"a=1"}, contents(In[string](s, "b", 1), "", "")); diff != "" {
				t.Errorf("records (-want +got):\n%s", diff)
			}
			put(t, In[string](s, "b", 1), "b", "2")
			if r, err := s.GC(t.Context(), nil); r.Kept != 2 || err != nil {
				t.Errorf("GC = %+v, %v", r, err)
			}
		})
	}
	// A kill while the very first store is made leaves nothing that would be taken for one.
	dir := t.TempDir()
	writeDir(t, filepath.Join(dir, "new-000001"), "MANIFEST", "000001.vlog")
	s := openTest(t, dir, Options{})
	put(t, In[string](s, "b", 1), "a", "1")
}

func writeDir(t *testing.T, dir string, files ...string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		writeFile(t, filepath.Join(dir, f), []byte("rest of "+f))
	}
}

// storeBytes is what a closed store takes on disk.
func storeBytes(t *testing.T, dir string) int64 {
	t.Helper()
	n, err := diskBytes(dir)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestHD18RewritesGiveSpaceBack(t *testing.T) {
	if testing.Short() {
		t.Skip("one writer alone, and hundreds of MiB: nothing for -short")
	}
	for name, c := range map[string]struct {
		run  func(t *testing.T, dir string)
		keep int // records of 1 MiB that must be left
		most int64
	}{
		"one record 300 times": {func(t *testing.T, dir string) {
			s := openTest(t, dir, Options{})
			b := In[[]byte](s, "b", 1)
			for i := range 300 {
				put(t, b, "a", noise(uint64(i), 1<<20))
			}
			put(t, b, "a", noise(0, 1<<20))
			closeTest(t, s)
		}, 1, 20},
		"in thirty runs": {func(t *testing.T, dir string) {
			for range 30 {
				s := openTest(t, dir, Options{})
				b := In[[]byte](s, "b", 1)
				for i := range 10 {
					put(t, b, "a", noise(uint64(9-i), 1<<20))
				}
				closeTest(t, s)
			}
		}, 1, 99},
		"many records deleted": {func(t *testing.T, dir string) {
			s := openTest(t, dir, Options{})
			b := In[[]byte](s, "b", 1)
			for i := range 150 {
				put(t, b, fmt.Sprint(i), noise(0, 1<<20))
			}
			for i := 2; i < 150; i++ {
				if err := b.Delete(fmt.Sprint(i)); err != nil {
					t.Fatal(err)
				}
			}
			closeTest(t, s)
		}, 2, 20},
		"below the threshold nothing is copied": {func(t *testing.T, dir string) {
			s := openTest(t, dir, Options{})
			b := In[[]byte](s, "b", 1)
			for range 60 {
				put(t, b, "a", noise(0, 1<<20))
			}
			closeTest(t, s)
			if got := folders(t, dir)[0]; got != "data-000001" {
				t.Errorf("the store was copied to %s", got)
			}
		}, 1, 64},
		"less than half dead": {func(t *testing.T, dir string) {
			s := openTest(t, dir, Options{})
			b := In[[]byte](s, "b", 1)
			for i := range 170 {
				put(t, b, fmt.Sprint(i%90), noise(0, 1<<20)) // 80 of 170 dead
			}
			closeTest(t, s)
			if got := folders(t, dir)[0]; got != "data-000001" {
				t.Errorf("the store was copied to %s", got)
			}
		}, 90, 180},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			c.run(t, dir)
			if got := storeBytes(t, dir); got > c.most<<20 {
				t.Errorf("the closed store takes %d MiB, want at most %d", got>>20, c.most)
			}
			s := openTest(t, dir, Options{})
			n := 0
			for e, err := range In[[]byte](s, "b", 1).Scan("", "") {
				if err != nil || !bytes.Equal(e.Value, noise(0, 1<<20)) {
					t.Errorf("record %q differs: %v", e.Key, err)
				}
				n++
			}
			if n != c.keep {
				t.Errorf("%d records are left, want %d", n, c.keep)
			}
		})
	}
}

func TestCompactionPutOff(t *testing.T) {
	dir := t.TempDir()
	free := int64(1 << 40)
	var mu sync.Mutex
	var warnings []string
	s := openTest(t, dir, Options{
		Free: func(string) (int64, error) { mu.Lock(); defer mu.Unlock(); return free, nil },
		Warn: func(line string) { mu.Lock(); defer mu.Unlock(); warnings = append(warnings, line) },
	})
	b := In[[]byte](s, "b", 1)
	for range 75 {
		put(t, b, "a", noise(0, 1<<20))
	}
	mu.Lock()
	free = 0
	mu.Unlock()
	closeTest(t, s)
	if len(warnings) != 1 || !strings.Contains(warnings[0], "put off") {
		t.Errorf("warnings = %q, want that compaction was put off", warnings)
	}
	if diff := cmp.Diff([]string{"data-000001", "lock"}, folders(t, dir)); diff != "" {
		t.Errorf("folders (-want +got):\n%s", diff)
	}
	s = openTest(t, dir, Options{})
	if got, ok, err := In[[]byte](s, "b", 1).Get("a"); !ok || err != nil || !bytes.Equal(got, noise(0, 1<<20)) {
		t.Errorf("record: %t, %v", ok, err)
	}
	put(t, In[string](s, "c", 1), "x", "y")
	closeTest(t, s)
	if got := storeBytes(t, dir); got > 20<<20 {
		t.Errorf("once there is space again the store still takes %d MiB", got>>20)
	}
}
