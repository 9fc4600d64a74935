package kv

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestGC(t *testing.T) {
	for name, s := range stores(t) {
		t.Run(name, func(t *testing.T) {
			a, b := In[string](s, "a", 1), In[string](s, "b", 1)
			var ops []Op
			for i := range 2500 {
				key := fmt.Sprintf("%04d", i)
				op, err := a.PutOp(key, strings.Repeat("v", i))
				if err != nil {
					t.Fatal(err)
				}
				ops = append(ops, op)
				if i%500 == 0 {
					put(t, b, key, "w")
				}
			}
			if err := s.Write(ops...); err != nil {
				t.Fatal(err)
			}
			r, err := s.GC(t.Context(), func(bucket, key string) bool { return bucket == "b" || key < "0003" })
			if err != nil || r.Kept != 8 || r.Dropped != 2497 || r.BytesAfter <= 0 || r.BytesBefore <= 0 {
				t.Errorf("GC = %+v, %v, want 8 kept and 2497 dropped", r, err)
			}
			want := []string{"0000=", "0001=v", "0002=vv"}
			if diff := cmp.Diff(want, contents(a, "", "")); diff != "" {
				t.Errorf("bucket a (-want +got):\n%s", diff)
			}
			put(t, a, "new", "x") // the same store goes on
			if n, err := b.Count(""); n != 5 || err != nil {
				t.Errorf("Count of b = %d, %v, want 5", n, err)
			}
			if s.dir == "" {
				return
			}
			closeTest(t, s)
			s = openTest(t, s.dir, Options{})
			if diff := cmp.Diff(append(want, "new=x"), contents(In[string](s, "a", 1), "", "")); diff != "" {
				t.Errorf("bucket a after reopening (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{"data-000002", "lock"}, folders(t, s.dir)); diff != "" {
				t.Errorf("folders (-want +got):\n%s", diff)
			}
		})
	}
}

func TestGCStopsCleanly(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir, Options{})
	b := In[string](s, "b", 1)
	for i := range 20 {
		put(t, b, fmt.Sprint(i), "v")
	}
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := s.GC(ctx, func(string, string) bool { cancel(); return true }); err != nil {
		t.Errorf("GC whose context ended in its last page: %v, want it done", err)
	}
	if _, err := s.GC(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("GC with an ended context: %v", err)
	}
	// Something that cannot be removed lies where the copy should go.
	s.afterCopy = func() {
		if err := os.MkdirAll(dataDir(dir, 3)+"/x", 0o755); err != nil {
			t.Error(err)
		}
	}
	r, err := s.GC(t.Context(), nil)
	if err == nil || r.Kept != 0 {
		t.Errorf("GC whose rename fails = %+v, %v, want an error", r, err)
	}
	if err := os.RemoveAll(dataDir(dir, 3)); err != nil {
		t.Fatal(err)
	}
	// The copy got its name and cannot be opened.
	s.afterCopy = func() {
		if err := os.WriteFile(freshDir(dir, 3)+"/MANIFEST", []byte("damaged"), 0o644); err != nil {
			t.Error(err)
		}
	}
	if r, err := s.GC(t.Context(), nil); err == nil || r.Kept != 0 {
		t.Errorf("GC whose copy is damaged = %+v, %v, want an error", r, err)
	}
	s.afterCopy = nil
	put(t, b, "more", "v")
	closeTest(t, s)
	if diff := cmp.Diff([]string{"data-000002", "lock"}, folders(t, dir)); diff != "" {
		t.Errorf("folders after failed GCs (-want +got):\n%s", diff)
	}
	s = openTest(t, dir, Options{})
	if n, err := In[string](s, "b", 1).Count(""); n != 21 || err != nil {
		t.Errorf("Count after failed GCs = %d, %v, want 21", n, err)
	}
}

func TestGCWhileWorking(t *testing.T) {
	for name, s := range stores(t) {
		t.Run(name, func(t *testing.T) {
			b := In[string](s, "b", 1)
			ctx, cancel := context.WithCancel(t.Context())
			var acked [4]atomic.Int64
			var wg sync.WaitGroup
			for w := range acked {
				wg.Go(func() {
					for i := 0; ctx.Err() == nil; i++ {
						key := Key(fmt.Sprint(w), fmt.Sprintf("%06d", i))
						if err := b.Put(key, "v"); err != nil {
							t.Errorf("Put while collecting: %v", err)
							return
						}
						if _, ok, err := b.Get(key); !ok || err != nil {
							t.Errorf("Get while collecting: %t, %v", ok, err)
							return
						}
						acked[w].Add(1)
					}
				})
				wg.Go(func() {
					for ctx.Err() == nil {
						before := acked[w].Load()
						n := 0
						for _, err := range b.Scan(Prefix(fmt.Sprint(w)), "") {
							if err != nil {
								t.Errorf("Scan while collecting: %v", err)
								return
							}
							n++
						}
						if int64(n) < before {
							t.Errorf("Scan yields %d of %d records", n, before)
						}
					}
				})
			}
			for range 5 {
				if _, err := s.GC(t.Context(), nil); err != nil {
					t.Errorf("GC: %v", err)
				}
			}
			cancel()
			wg.Wait()
			for w := range acked {
				if n, err := b.Count(Prefix(fmt.Sprint(w))); int64(n) != acked[w].Load() || err != nil {
					t.Errorf("writer %d: %d records, %d acknowledged (%v)", w, n, acked[w].Load(), err)
				}
			}
		})
	}
}

// countGoroutines uses stores in every way in a fresh process, and prints what is left of them.
func countGoroutines(dir string) error {
	before := runtime.NumGoroutine()
	for i := range 3 {
		err := useStore(filepath.Join(dir, fmt.Sprint(i)))
		if err != nil {
			return err
		}
	}
	// Badger tells some of its goroutines to end without waiting for them.
	deadline := time.Now().Add(10 * time.Second)
	for runtime.NumGoroutine() > before && time.Now().Before(deadline) {
		runtime.Gosched()
	}
	if after := runtime.NumGoroutine(); after > before {
		buf := make([]byte, 1<<20)
		fmt.Printf("%d goroutines before, %d after: %q\n", before, after, buf[:runtime.Stack(buf, true)])
	}
	return nil
}

func useStore(dir string) error {
	s, err := Open(dir, Options{})
	if err != nil {
		return err
	}
	b := In[string](s, "b", 1)
	if err := b.Put("a", "1"); err != nil {
		return err
	}
	if _, err := s.GC(context.Background(), nil); err != nil {
		return err
	}
	if _, err := s.GC(context.Background(), func(string, string) bool { return false }); err != nil {
		return err
	}
	for range b.Scan("", "") {
		break
	}
	if _, err := Open(dir, Options{}); err == nil {
		return errors.New("second Open succeeded")
	}
	if err := s.Close(); err != nil {
		return err
	}
	if _, err := open(dir, Options{}, schema{Major: 7}); err == nil {
		return errors.New("Open of another schema succeeded")
	}
	if s, err = OpenMemory(); err != nil {
		return err
	}
	if err := In[string](s, "b", 1).Put("a", "1"); err != nil {
		return err
	}
	if _, err := s.GC(context.Background(), nil); err != nil {
		return err
	}
	return s.Close()
}

func TestNoGoroutineLeft(t *testing.T) {
	if left := startChild(t, "count goroutines", t.TempDir()).wait(t, 0); left != nil {
		t.Errorf("goroutines are left: %q", left)
	}
}
