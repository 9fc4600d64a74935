package kv

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// all reads every record of the store in the form in which it is stored.
func all(t *testing.T, s *Store) map[string]string {
	t.Helper()
	m := map[string]string{}
	p, more, err := s.page(nil, nil, 1<<20, true)
	if err != nil || more {
		t.Fatalf("page: more %t, %v", more, err)
	}
	for _, r := range p {
		m[r.key] = string(r.value)
	}
	return m
}

func TestBackupRoundTrip(t *testing.T) {
	for name, s := range stores(t) {
		t.Run(name, func(t *testing.T) {
			text, bodies := In[string](s, "text", 1), In[[]byte](s, "body", 3)
			var ops []Op
			for i := range 1500 {
				op, err := text.PutOp(Key("k", fmt.Sprint(i)), strings.Repeat("v", i))
				if err != nil {
					t.Fatal(err)
				}
				ops = append(ops, op)
			}
			if err := s.Write(ops...); err != nil {
				t.Fatal(err)
			}
			put(t, bodies, "", noise(1, 2<<20))
			put(t, bodies, "\x00\xff", []byte{})
			if err := text.Delete(Key("k", "7")); err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			n, err := s.Backup(t.Context(), &out)
			if n != 1501 || err != nil {
				t.Fatalf("Backup = %d, %v, want 1501 records", n, err)
			}
			var again bytes.Buffer
			if _, err := s.Backup(t.Context(), &again); err != nil || !bytes.Equal(out.Bytes(), again.Bytes()) {
				t.Errorf("a second backup differs (%v)", err)
			}
			dir := filepath.Join(t.TempDir(), "restored")
			n, err = Restore(t.Context(), dir, &out)
			if n != 1501 || err != nil {
				t.Fatalf("Restore = %d, %v, want 1501 records", n, err)
			}
			if diff := cmp.Diff([]string{"data-000001", "lock"}, folders(t, dir)); diff != "" {
				t.Errorf("folders (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(all(t, s), all(t, openTest(t, dir, Options{}))); diff != "" {
				t.Errorf("restored store (-want +got):\n%s", diff)
			}
		})
	}
}

// A backup after some ops is the backup that would be made once they were written; the store stays.
func TestBackupAfterOps(t *testing.T) {
	for name, s := range stores(t) {
		t.Run(name, func(t *testing.T) {
			a, b, c := In[string](s, "a", 1), In[string](s, "b", 1), In[string](s, "c", 1)
			for i := range 2 * pageRecords {
				put(t, b, fmt.Sprintf("%05d", i), strings.Repeat("w", i%50))
			}
			op := func(op Op, err error) Op {
				if err != nil {
					t.Fatal(err)
				}
				return op
			}
			before := all(t, s)
			ops := func() []Op {
				return []Op{
					op(c.PutOp("last", "of all")), op(b.PutOp("00003", "another")), op(b.PutOp("00003x", "between")), b.DeleteOp("00004"),
					b.DeleteOp("none"), op(a.PutOp("first", "of all")), op(a.PutOp("twice", "1")), op(a.PutOp("twice", "2")),
				}
			}
			var out, written bytes.Buffer
			n, err := s.Backup(t.Context(), &out, ops()...)
			if err != nil || n != 2*pageRecords+3 {
				t.Fatalf("Backup = %d, %v", n, err)
			}
			if diff := cmp.Diff(before, all(t, s)); diff != "" {
				t.Errorf("the store has changed:\n%s", diff)
			}
			if err := s.Write(ops()...); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Backup(t.Context(), &written); err != nil || !bytes.Equal(out.Bytes(), written.Bytes()) {
				t.Errorf("a backup after the ops is not that of the store with them (%v)", err)
			}
			if _, err := s.Backup(t.Context(), io.Discard, Op{err: io.ErrShortBuffer}); !errors.Is(err, io.ErrShortBuffer) {
				t.Errorf("Backup with an op that is none: %v", err)
			}
		})
	}
}

func TestBackupOfNothing(t *testing.T) {
	s := openMemoryTest(t)
	var out bytes.Buffer
	if n, err := s.Backup(t.Context(), &out); n != 0 || err != nil {
		t.Errorf("Backup = %d, %v", n, err)
	}
	dir := t.TempDir() // exists and is empty
	if n, err := Restore(t.Context(), dir, &out); n != 0 || err != nil {
		t.Errorf("Restore = %d, %v", n, err)
	}
	if got := openTest(t, dir, Options{}).Buckets(); got != nil {
		t.Errorf("Buckets = %q, want none", got)
	}
}

func TestBackupIsOneMoment(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{})
	first, last := In[int](s, "first", 1), In[int](s, "last", 1)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	write := func(i int) error {
		a, err := first.PutOp(fmt.Sprint(i), i)
		if err != nil {
			return err
		}
		b, err := last.PutOp(fmt.Sprint(i), i)
		if err != nil {
			return err
		}
		return s.Write(a, b)
	}
	for i := range 3000 {
		if i < 100 || i%30 == 0 {
			if err := write(i); err != nil {
				t.Fatal(err)
			}
		}
	}
	wg.Go(func() {
		for i := 10_000; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			if err := write(i); err != nil {
				t.Errorf("Write during Backup: %v", err)
				return
			}
		}
	})
	// A writer that waits for our own writes, so that some fall between two reads of the backup.
	w := writerFunc(func(p []byte) (int, error) { return len(p), write(len(p)) })
	var out bytes.Buffer
	for range 3 {
		out.Reset()
		if _, err := s.Backup(t.Context(), io.MultiWriter(&out, w)); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	wg.Wait()
	dir := filepath.Join(t.TempDir(), "r")
	if _, err := Restore(t.Context(), dir, &out); err != nil {
		t.Fatal(err)
	}
	r := openTest(t, dir, Options{})
	a, b := 0, 0
	for range In[int](r, "first", 1).Keys("", "") {
		a++
	}
	for range In[int](r, "last", 1).Keys("", "") {
		b++
	}
	if a != b || a < 100 {
		t.Errorf("the backup holds %d and %d records of pairs that were written together", a, b)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestBackupFails(t *testing.T) {
	s := openMemoryTest(t)
	b := In[[]byte](s, "b", 1)
	for i := range 10 {
		put(t, b, fmt.Sprint(i), noise(uint64(i), 100_000))
	}
	boom := errors.New("boom")
	for _, at := range []int{0, 1, 7} {
		n := 0
		_, err := s.Backup(t.Context(), writerFunc(func(p []byte) (int, error) {
			if n++; n > at {
				return 0, boom
			}
			return len(p), nil
		}))
		if !errors.Is(err, boom) {
			t.Errorf("Backup to a writer that fails after %d writes: %v", at, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Backup(ctx, io.Discard); !errors.Is(err, context.Canceled) {
		t.Errorf("Backup with an ended context: %v", err)
	}
}

// smallBackup is a backup of three records.
func smallBackup(t *testing.T) []byte {
	t.Helper()
	s := openMemoryTest(t)
	for _, k := range []string{"a", "b", "c"} {
		put(t, In[string](s, "b", 1), k, "value of "+k)
	}
	var out bytes.Buffer
	if _, err := s.Backup(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestBadBackupsAreRefused(t *testing.T) {
	whole := smallBackup(t)
	refused := func(name string, b []byte) error {
		t.Helper()
		parent := t.TempDir()
		dir := filepath.Join(parent, "store")
		n, err := Restore(t.Context(), dir, bytes.NewReader(b))
		if err == nil || n != 0 {
			t.Errorf("Restore of %s = %d, %v, want an error", name, n, err)
		}
		if got := folders(t, parent); got != nil {
			t.Errorf("Restore of %s left %q", name, got)
		}
		return err
	}
	for cut := 0; cut < len(whole); cut += 7 {
		if err := refused(fmt.Sprintf("the first %d bytes", cut), whole[:cut]); !errors.Is(err, errTruncated) {
			t.Errorf("Restore of the first %d bytes: %v, want that it is cut off", cut, err)
		}
	}
	refused("all but a byte", whole[:len(whole)-1])
	refused("one byte more", append(bytes.Clone(whole), 0))
	for at := 0; at < len(whole); at += 5 {
		b := bytes.Clone(whole)
		b[at] ^= 0x41
		refused(fmt.Sprintf("a flipped byte %d", at), b)
	}
	refused("something else", []byte("{\"a\": 1}\nand so on and on and on\n"))
	header := len(backupMagic)
	newer := bytes.Clone(whole)
	newer[header+1] = byte(current.Major + 1)
	var schemaErr *SchemaError
	if err := refused("a newer schema", newer); !errors.As(err, &schemaErr) {
		t.Errorf("Restore of a newer schema: %v, want a *SchemaError", err)
	}
	format := bytes.Clone(whole)
	format[header] = backupVersion + 1
	if err := refused("a newer format", format); !strings.Contains(err.Error(), "format 2") {
		t.Errorf("Restore of a newer format: %v", err)
	}
	huge := append(bytes.Clone(whole[:header+3]), tagRecord, 1, 'k', 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01)
	refused("a value of terabytes", huge)
	boom := errors.New("boom")
	dir := filepath.Join(t.TempDir(), "store")
	if _, err := Restore(t.Context(), dir, io.MultiReader(bytes.NewReader(whole[:60]), errReader{boom})); !errors.Is(err, boom) {
		t.Errorf("Restore from a reader that fails: %v", err)
	}
}

type errReader struct{ err error }

func (r errReader) Read([]byte) (int, error) { return 0, r.err }

func TestRestoreKeepsWhatIsThere(t *testing.T) {
	whole := smallBackup(t)
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "notes.txt"), []byte("mine"))
	if _, err := Restore(t.Context(), dir, bytes.NewReader(whole)); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("Restore into a folder with a file: %v, want an error", err)
	}
	if diff := cmp.Diff([]string{"notes.txt"}, folders(t, dir)); diff != "" {
		t.Errorf("folder (-want +got):\n%s", diff)
	}
	file := filepath.Join(dir, "notes.txt")
	if _, err := Restore(t.Context(), file, bytes.NewReader(whole)); err == nil {
		t.Error("Restore over a file succeeded")
	}
}

func TestRestoreAfterKilledRestore(t *testing.T) {
	whole := smallBackup(t)
	for name, leave := range map[string]func(t *testing.T, tmp string){
		"in the middle": func(t *testing.T, tmp string) { writeDir(t, filepath.Join(tmp, "new-000001"), "MANIFEST") },
		"at the end": func(t *testing.T, tmp string) {
			if _, err := Restore(t.Context(), tmp, bytes.NewReader(whole)); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "store")
			leave(t, dir+".restore")
			if n, err := Restore(t.Context(), dir, bytes.NewReader(whole)); n != 3 || err != nil {
				t.Errorf("Restore = %d, %v, want 3 records", n, err)
			}
			if _, err := os.Stat(dir + ".restore"); !os.IsNotExist(err) {
				t.Errorf("the folder of the killed restore is still there: %v", err)
			}
			if n, err := In[string](openTest(t, dir, Options{}), "b", 1).Count(""); n != 3 || err != nil {
				t.Errorf("Count = %d, %v, want 3", n, err)
			}
		})
	}
	// A restore that runs keeps another one out.
	dir := filepath.Join(t.TempDir(), "store")
	if err := os.Mkdir(dir+".restore", 0o755); err != nil {
		t.Fatal(err)
	}
	l, _, err := lockDir(dir+".restore", "", 1)
	if err != nil {
		t.Fatal(err)
	}
	var locked *LockedError
	if _, err := Restore(t.Context(), dir, bytes.NewReader(whole)); !errors.As(err, &locked) {
		t.Errorf("second Restore at once: %v, want a *LockedError", err)
	}
	if err := l.release(); err != nil {
		t.Error(err)
	}
}
