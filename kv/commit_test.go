package kv

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWriteIsInOrderAndWhole(t *testing.T) {
	for name, s := range stores(t) {
		t.Run(name, func(t *testing.T) {
			b, other := In[string](s, "b", 1), In[string](s, "other", 1)
			op := func(b Bucket[string], key, v string) Op {
				op, err := b.PutOp(key, v)
				if err != nil {
					t.Fatal(err)
				}
				return op
			}
			if err := s.Write(op(b, "a", "1"), op(b, "a", "2"), op(b, "gone", "x"), b.DeleteOp("gone"), op(other, "a", "3")); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{"a=2"}, contents(b, "", "")); diff != "" {
				t.Errorf("bucket b (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{"a=3"}, contents(other, "", "")); diff != "" {
				t.Errorf("bucket other (-want +got):\n%s", diff)
			}
			if err := s.Write(op(b, "new", "1"), b.DeleteOp(strings.Repeat("k", maxKeyBytes))); err == nil {
				t.Error("Write with a bad op succeeded")
			}
			if ok, err := b.Has("new"); ok || err != nil {
				t.Errorf("Has after a refused Write = %t, %v, want false", ok, err)
			}
		})
	}
}

func TestWriteTooLarge(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{})
	b := In[[]byte](s, "b", 1)
	var ops []Op
	for i := range 8000 { // 1000 bytes each stay below the value threshold
		op, err := b.PutOp(fmt.Sprintf("%05d", i), noise(uint64(i), 1000))
		if err != nil {
			t.Fatal(err)
		}
		ops = append(ops, op)
	}
	if err := s.Write(ops...); err == nil || !strings.Contains(err.Error(), "too large for one atomic write") {
		t.Errorf("Write of 8 MB of small values: %v, want an error that says why", err)
	}
	if n, err := b.Count(""); n != 0 || err != nil {
		t.Errorf("Count = %d, %v, want nothing written", n, err)
	}
	// The largest that is accepted really fits, with and without values.
	fits := int(s.maxTxn / ops[0].txnBytes(s.threshold))
	if err := s.Write(ops[:fits]...); err != nil {
		t.Errorf("Write of %d ops: %v", fits, err)
	}
	deletes := make([]Op, s.maxOps)
	for i := range deletes {
		deletes[i] = b.DeleteOp(fmt.Sprintf("%05d", i))
	}
	if err := s.Write(deletes...); err != nil {
		t.Errorf("Write of %d deletes: %v", len(deletes), err)
	}
	if n, err := b.Count(""); n != 0 || err != nil {
		t.Errorf("Count = %d, %v, want all deleted", n, err)
	}
}

func TestManyWriters(t *testing.T) {
	for name, s := range stores(t) {
		t.Run(name, func(t *testing.T) {
			b := In[[]byte](s, "b", 1)
			var wg sync.WaitGroup
			const writers, each = 32, 40
			for w := range writers {
				wg.Go(func() {
					for i := range each {
						// 900 bytes stay in the tree: groups pass the size of one transaction.
						key := Key(fmt.Sprint(w), fmt.Sprint(i))
						var ops []Op
						for _, k := range []string{"x", "y"} {
							op, err := b.PutOp(key+k, noise(uint64(i), 900*(1+w%2*60)))
							if err != nil {
								t.Error(err)
							}
							ops = append(ops, op)
						}
						if err := s.Write(ops...); err != nil {
							t.Errorf("Write: %v", err)
						}
						if ok, err := b.Has(key + "y"); !ok || err != nil {
							t.Errorf("Has after Write = %t, %v", ok, err)
						}
					}
				})
			}
			wg.Wait()
			if n, err := b.Count(""); n != 2*writers*each || err != nil {
				t.Errorf("Count = %d, %v, want %d", n, err, 2*writers*each)
			}
		})
	}
}

func TestGroupIsSplit(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{})
	b := In[[]byte](s, "b", 1)
	var group []*request
	for i := range 12 { // each nearly a third of what one transaction takes
		r := &request{done: make(chan error, 1)}
		for j := range 1500 {
			op, err := b.PutOp(Key(fmt.Sprint(i), fmt.Sprint(j)), noise(uint64(j), 1000))
			if err != nil {
				t.Fatal(err)
			}
			r.ops = append(r.ops, op)
			r.txn += op.txnBytes(s.threshold)
			r.bytes += op.bytes()
		}
		group = append(group, r)
	}
	s.commitGroup(group)
	for i, r := range group {
		if err := <-r.done; err != nil {
			t.Errorf("request %d: %v", i, err)
		}
	}
	if n, err := b.Count(""); n != 12*1500 || err != nil {
		t.Errorf("Count = %d, %v, want %d", n, err, 12*1500)
	}
}

func TestDiskFull(t *testing.T) {
	dir := t.TempDir()
	var free atomic.Int64
	free.Store(1 << 40)
	o := Options{Free: func(string) (int64, error) { return free.Load(), nil }}
	s := openTest(t, dir, o)
	b := In[string](s, "b", 1)
	put(t, b, "a", "1")

	free.Store(defaultReserve)
	var stops interface{ StopsRun() bool }
	for what, err := range map[string]error{"Put": b.Put("b", "2"), "Delete": b.Delete("a")} {
		if !errors.Is(err, ErrDiskFull) || !errors.As(err, &stops) || !stops.StopsRun() {
			t.Errorf("%s on a full disk: %v, want ErrDiskFull that stops the run", what, err)
		}
	}
	if _, err := s.GC(t.Context(), nil); !errors.Is(err, ErrDiskFull) {
		t.Errorf("GC on a full disk: %v, want ErrDiskFull", err)
	}
	if diff := cmp.Diff([]string{"a=1"}, contents(b, "", "")); diff != "" {
		t.Errorf("records on a full disk (-want +got):\n%s", diff)
	}
	free.Store(defaultReserve + 1<<20)
	put(t, b, "b", "2") // space was made: the same store goes on

	// Reading a store needs little space; without even that Open says so.
	closeTest(t, s)
	free.Store(openReserve)
	s = openTest(t, dir, o)
	if diff := cmp.Diff([]string{"a=1", "b=2"}, contents(In[string](s, "b", 1), "", "")); diff != "" {
		t.Errorf("records after reopening (-want +got):\n%s", diff)
	}
	closeTest(t, s)
	free.Store(openReserve - 1)
	if _, err := Open(dir, o); !errors.Is(err, ErrDiskFull) {
		t.Errorf("Open on a full disk: %v, want ErrDiskFull", err)
	}
	boom := errors.New("boom")
	if _, err := Open(dir, Options{Free: func(string) (int64, error) { return 0, boom }}); !errors.Is(err, boom) {
		t.Errorf("Open without an answer about space: %v, want its cause", err)
	}
	free.Store(1 << 40)
	openTest(t, dir, o) // the refused ones left no lock behind
}

func TestReserveCountsTheWrite(t *testing.T) {
	o := Options{Reserve: 1 << 20, Free: func(string) (int64, error) { return 3 << 20, nil }}
	s := openTest(t, t.TempDir(), o)
	b := In[[]byte](s, "b", 1)
	if err := b.Put("small", noise(1, 1<<20)); err != nil {
		t.Errorf("Put that fits above the reserve: %v", err)
	}
	if err := b.Put("large", noise(1, 5<<19)); !errors.Is(err, ErrDiskFull) {
		t.Errorf("Put that would eat into the reserve: %v, want ErrDiskFull", err)
	}
}

func TestLostSyncEndsWriting(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir, Options{})
	b := In[string](s, "b", 1)
	put(t, b, "a", "1")
	s.log.Errorf("Error while curlf sync: %v\n", errors.New("input/output error"))
	var stops interface{ StopsRun() bool }
	for what, err := range map[string]error{"Put": b.Put("b", "2"), "second Put": b.Put("c", "3")} {
		if err == nil || !strings.Contains(err.Error(), "input/output error") || !errors.As(err, &stops) {
			t.Errorf("%s after a lost sync: %v, want the cause, and that it stops the run", what, err)
		}
	}
	if _, err := s.GC(t.Context(), nil); err == nil {
		t.Error("GC after a lost sync succeeded")
	}
	if v, ok, err := b.Get("a"); v != "1" || !ok || err != nil {
		t.Errorf("Get after a lost sync = %q, %t, %v, want what was written before", v, ok, err)
	}
	closeTest(t, s)
	s = openTest(t, dir, Options{})
	put(t, In[string](s, "b", 1), "b", "2") // opening again settles it
}

func TestAfterClose(t *testing.T) {
	for name, s := range stores(t) {
		t.Run(name, func(t *testing.T) {
			b := In[string](s, "b", 1)
			put(t, b, "a", "1")
			closeTest(t, s)
			closeTest(t, s)
			_, _, getErr := b.Get("a")
			_, hasErr := b.Has("a")
			_, countErr := b.Count("")
			_, sizeErr := s.Size()
			_, gcErr := s.GC(t.Context(), nil)
			_, backupErr := s.Backup(t.Context(), nil)
			var scanErr error
			for _, err := range b.Scan("", "") {
				scanErr = err
			}
			for what, err := range map[string]error{
				"Put": b.Put("a", "2"), "Get": getErr, "Has": hasErr, "Count": countErr, "Size": sizeErr,
				"GC": gcErr, "Backup": backupErr, "Scan": scanErr,
			} {
				if !errors.Is(err, ErrClosed) {
					t.Errorf("%s after Close: %v, want ErrClosed", what, err)
				}
			}
			if got := s.Buckets(); got != nil {
				t.Errorf("Buckets after Close = %q", got)
			}
		})
	}
}

func TestCloseAnswersWriters(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir, Options{})
	b := In[string](s, "b", 1)
	var done, refused atomic.Int64
	started := make(chan struct{}, 16)
	var wg sync.WaitGroup
	for w := range 16 {
		wg.Go(func() {
			for i := 0; ; i++ {
				err := b.Put(Key(fmt.Sprint(w), fmt.Sprint(i)), "v")
				if err != nil {
					if !errors.Is(err, ErrClosed) {
						t.Errorf("Put while closing: %v", err)
					}
					refused.Add(1)
					return
				}
				done.Add(1)
				if i == 10 {
					started <- struct{}{}
				}
			}
		})
	}
	for range 16 {
		<-started
	}
	closeTest(t, s)
	wg.Wait()
	s = openTest(t, dir, Options{})
	if n, err := In[string](s, "b", 1).Count(""); int64(n) != done.Load() || err != nil || refused.Load() != 16 {
		t.Errorf("%d records after reopening, %d acknowledged, %d writers refused (%v)", n, done.Load(), refused.Load(), err)
	}
}
