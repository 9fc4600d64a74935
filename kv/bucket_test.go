package kv

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// page is a record as callers have them.
type page struct {
	URL   string
	Links []string       `json:",omitzero"`
	Meta  map[string]int `json:",omitzero"`
}

func openTest(t *testing.T, dir string, o Options) *Store {
	t.Helper()
	s, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeTest(t, s) })
	return s
}

func openMemoryTest(t *testing.T) *Store {
	t.Helper()
	s, err := OpenMemory()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeTest(t, s) })
	return s
}

func closeTest(t *testing.T, s *Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}

func put[V any](t *testing.T, b Bucket[V], key string, v V) {
	t.Helper()
	if err := b.Put(key, v); err != nil {
		t.Fatalf("Put(%q): %v", key, err)
	}
}

// contents reads a bucket by Scan; an error stands in the place of its record.
func contents(b Bucket[string], prefix, after string) []string {
	var got []string
	for e, err := range b.Scan(prefix, after) {
		if err != nil {
			got = append(got, e.Key+": "+err.Error())
			continue
		}
		got = append(got, e.Key+"="+e.Value)
	}
	return got
}

// noise is data that no compressor makes smaller.
func noise(seed uint64, n int) []byte {
	b := make([]byte, n)
	var s [32]byte
	s[0], s[1] = byte(seed), byte(seed>>8)
	rand.NewChaCha8(s).Read(b) // never fails
	return b
}

func stores(t *testing.T) map[string]*Store {
	return map[string]*Store{"disk": openTest(t, t.TempDir(), Options{}), "memory": openMemoryTest(t)}
}

func TestBucketKeepsValues(t *testing.T) {
	for name, s := range stores(t) {
		t.Run(name, func(t *testing.T) {
			pages := In[page](s, "page", 1)
			want := page{URL: "https://a.example/", Links: []string{"x", "y"}, Meta: map[string]int{"b": 2, "a": 1}}
			if _, ok, err := pages.Get("p"); ok || err != nil {
				t.Errorf("Get before Put = %t, %v, want no record", ok, err)
			}
			put(t, pages, "p", page{URL: "old"})
			put(t, pages, "p", want)
			got, ok, err := pages.Get("p")
			if !ok || err != nil {
				t.Errorf("Get = %t, %v, want the record", ok, err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("Get (-want +got):\n%s", diff)
			}
			if ok, err := pages.Has("p"); !ok || err != nil {
				t.Errorf("Has = %t, %v, want true", ok, err)
			}
			for range 2 { // the second has nothing to do
				if err := pages.Delete("p"); err != nil {
					t.Errorf("Delete: %v", err)
				}
			}
			if ok, err := pages.Has("p"); ok || err != nil {
				t.Errorf("Has after Delete = %t, %v, want false", ok, err)
			}
			if _, err := In[func()](s, "page", 1).PutOp("f", func() {}); err == nil {
				t.Error("PutOp of a func succeeded, want an error")
			}
		})
	}
}

func TestBucketKeepsBytes(t *testing.T) {
	for name, s := range stores(t) {
		t.Run(name, func(t *testing.T) {
			b := In[[]byte](s, "body", 1)
			for _, want := range [][]byte{
				nil,
				{},
				{0},
				[]byte("text"),
				bytes.Repeat([]byte("compressible "), 1000),
				noise(1, 1000), noise(2, 1023), noise(3, 1024), noise(4, 1100), // around the value threshold
				noise(5, 4<<20),
				bytes.Repeat([]byte{7}, 20<<20),
			} {
				put(t, b, "k", want)
				got, ok, err := b.Get("k")
				if !ok || err != nil || got == nil || !bytes.Equal(got, want) {
					t.Errorf("Get of %d bytes = %d bytes, nil %t, %t, %v", len(want), len(got), got == nil, ok, err)
				}
			}
		})
	}
}

func TestBucketsAreApart(t *testing.T) {
	s := openMemoryTest(t)
	if got := s.Buckets(); got != nil {
		t.Errorf("Buckets of an empty store = %q, want none", got)
	}
	for _, name := range []string{"item", "item/x", "a", "body"} {
		b := In[string](s, name, 1)
		put(t, b, "", "empty key")
		put(t, b, "k", name)
	}
	if diff := cmp.Diff([]string{"a", "body", "item", "item/x"}, s.Buckets()); diff != "" {
		t.Errorf("Buckets (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"=empty key", "k=item"}, contents(In[string](s, "item", 1), "", "")); diff != "" {
		t.Errorf("Scan (-want +got):\n%s", diff)
	}
}

func TestBadNamesAndKeys(t *testing.T) {
	s := openMemoryTest(t)
	for _, c := range []struct {
		name    string
		version int
	}{{"", 1}, {"!x", 1}, {"a b", 1}, {"a\x00", 1}, {"é", 1}, {"a", -1}, {"a", 256}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("In(%q, %d) did not panic", c.name, c.version)
				}
			}()
			In[string](s, c.name, c.version)
		}()
	}
	b := In[string](s, "b", 1)
	long := strings.Repeat("k", maxKeyBytes)
	_, _, getErr := b.Get(long)
	_, hasErr := b.Has(long)
	for what, err := range map[string]error{"Put": b.Put(long, ""), "Delete": b.Delete(long), "Get": getErr, "Has": hasErr} {
		if err == nil || len(err.Error()) > 200 {
			t.Errorf("%s with a key of %d bytes: %v, want a short error", what, len(long), err)
		}
	}
	if err := s.Write(Op{}); err == nil {
		t.Error("Write of an empty op succeeded")
	}
	if err := s.Write(); err != nil {
		t.Errorf("Write of nothing: %v", err)
	}
}

func TestScanPages(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{})
	b := In[string](s, "b", 1)
	const n = 2*pageRecords + firstPage + 17
	var ops []Op
	var want []string
	for i := range n {
		op, err := b.PutOp(Key("p", fmt.Sprintf("%05d", i)), fmt.Sprint(i))
		if err != nil {
			t.Fatal(err)
		}
		ops = append(ops, op)
		want = append(want, fmt.Sprintf("%s=%d", Key("p", fmt.Sprintf("%05d", i)), i))
	}
	slices.Reverse(ops)
	if err := s.Write(ops...); err != nil {
		t.Fatal(err)
	}
	put(t, b, Key("o", "x"), "before")
	put(t, b, Key("q"), "after")

	if diff := cmp.Diff(want, contents(b, Prefix("p"), "")); diff != "" {
		t.Errorf("Scan (-want +got):\n%s", diff)
	}
	for _, after := range []int{0, firstPage - 1, firstPage, 1063, n - 2, n - 1} {
		key := Key("p", fmt.Sprintf("%05d", after))
		if diff := cmp.Diff(want[after+1:], contents(b, Prefix("p"), key), cmpEmpty); diff != "" {
			t.Errorf("Scan after %d (-want +got):\n%s", after, diff)
		}
	}
	for _, c := range []struct {
		after string
		want  int
	}{{Key("a"), n}, {Key("p"), n}, {Key("p", "99999"), 0}, {Key("z"), 0}} {
		if got := len(contents(b, Prefix("p"), c.after)); got != c.want {
			t.Errorf("Scan after %q yields %d records, want %d", c.after, got, c.want)
		}
	}
	var keys []string
	for k, err := range b.Keys(Prefix("p"), Key("p", "00000")) {
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, k)
	}
	if len(keys) != n-1 || !slices.IsSorted(keys) {
		t.Errorf("Keys yields %d keys, sorted %t, want %d sorted", len(keys), slices.IsSorted(keys), n-1)
	}
	for prefix, want := range map[string]int{Prefix("p"): n, "": n + 2, Prefix("none"): 0, "p": n, Key("p", "00007"): 1} {
		if got, err := b.Count(prefix); got != want || err != nil {
			t.Errorf("Count(%q) = %d, %v, want %d", prefix, got, err, want)
		}
	}
	for range b.Scan("", "") {
		break // an early end is no error and holds nothing; Close would wait otherwise
	}
	for range b.Keys("", "") {
		break
	}
}

// cmpEmpty makes nil and empty lists equal.
var cmpEmpty = cmp.Transformer("empty", func(s []string) []string { return append([]string{}, s...) })

func TestScanCutsPagesOfLargeValues(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{})
	b := In[[]byte](s, "b", 1)
	for i := range 6 {
		put(t, b, fmt.Sprint(i), noise(uint64(i), 3<<20))
	}
	p, more, err := s.page(b.key(""), b.key(""), pageRecords, true)
	if len(p) != 3 || !more || err != nil {
		t.Errorf("page = %d records, more %t, %v, want the 3 that pass 8 MiB and more", len(p), more, err)
	}
	i := 0
	for e, err := range b.Scan("", "") {
		if err != nil || !bytes.Equal(e.Value, noise(uint64(i), 3<<20)) {
			t.Errorf("record %q differs (%v)", e.Key, err)
		}
		i++
	}
	if i != 6 {
		t.Errorf("Scan yields %d records, want 6", i)
	}
}

func TestScanWhileWriting(t *testing.T) {
	s := openMemoryTest(t)
	b := In[string](s, "b", 1)
	for i := range 300 {
		put(t, b, fmt.Sprintf("%03d", i), "v")
	}
	seen := 0
	for e, err := range b.Scan("", "") {
		if err != nil {
			t.Fatal(err)
		}
		seen++
		if err := b.Delete(e.Key); err != nil {
			t.Fatal(err)
		}
		put(t, b, "!"+e.Key, "behind the scan")
	}
	if n, err := b.Count(""); seen != 300 || n != 300 || err != nil {
		t.Errorf("seen %d, left %d, %v, want 300 and 300", seen, n, err)
	}
}

func TestCorruptRecords(t *testing.T) {
	s := openMemoryTest(t)
	b := In[string](s, "b", 2)
	for _, k := range []string{"a", "m", "z"} {
		put(t, b, k, "good "+k)
	}
	other := In[int](s, "b", 2)
	put(t, other, "json", 7)
	put(t, In[string](s, "b", 1), "stale", "older")
	good, err := b.PutOp("x", "some text, some text, some text, some text, some text")
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(good.value)
	flipped[len(flipped)-6] ^= 0x10
	for key, value := range map[string][]byte{
		"empty": {}, "version only": {2}, "no zstd": {2, 'x', 'y'}, "cut": good.value[:len(good.value)-3], "flipped": flipped,
	} {
		if err := s.Write(Op{key: b.key(key), value: value}); err != nil {
			t.Fatal(err)
		}
	}
	var corrupt, sound []string
	for e, err := range b.Scan("", "") {
		var c *CorruptError
		switch {
		case err == nil:
			sound = append(sound, e.Key)
		case errors.As(err, &c) && c.Key == e.Key && c.Bucket == "b":
			corrupt = append(corrupt, e.Key)
		default:
			t.Errorf("Scan yields %q with %v, want a *CorruptError", e.Key, err)
		}
		_, ok, getErr := b.Get(e.Key)
		if ok != (err == nil) || fmt.Sprint(getErr) != fmt.Sprint(err) {
			t.Errorf("Get(%q) = %t, %v; Scan said %v", e.Key, ok, getErr, err)
		}
		if stale := errors.Is(err, ErrStale); stale != (e.Key == "stale") {
			t.Errorf("record %q is stale: %t (%v)", e.Key, stale, err)
		}
	}
	// "version only" is an empty zstd input, which is no JSON.
	if diff := cmp.Diff([]string{"cut", "empty", "flipped", "json", "no zstd", "stale", "version only"}, corrupt); diff != "" {
		t.Errorf("corrupt (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"a", "m", "z"}, sound); diff != "" {
		t.Errorf("sound (-want +got):\n%s", diff)
	}
	put(t, b, "flipped", "rebuilt")
	if v, _, err := b.Get("flipped"); v != "rebuilt" || err != nil {
		t.Errorf("Get after rebuilding = %q, %v", v, err)
	}
}

// damage flips a byte in every file of the pattern, at the first place where find stands.
func damage(t *testing.T, pattern string, find []byte) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	hit := false
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if i := bytes.Index(b, find); i >= 0 {
			hit = true
			b[i+len(find)/2] ^= 0xff
			if err := os.WriteFile(f, b, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	if !hit {
		t.Fatalf("nothing to damage in %s", pattern)
	}
}

func TestDamagedValueLog(t *testing.T) {
	for name, c := range map[string]struct {
		reopen bool // Badger checks the newest log when it opens, and cuts it off at the damage
		want   []string
	}{
		"older log":  {true, []string{"0 true", "1 true", "2 true", "3 false", "4 true"}},
		"newest log": {false, []string{"0 true", "1 true", "2 true", "3 false", "4 false"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			var warnings []string
			o := Options{Warn: func(line string) { warnings = append(warnings, line) }}
			s := openTest(t, dir, o)
			b := In[[]byte](s, "b", 1)
			for i := range 5 {
				put(t, b, fmt.Sprint(i), noise(uint64(i), 5000))
			}
			closeTest(t, s)
			if c.reopen {
				s = openTest(t, dir, o)
				put(t, In[[]byte](s, "b", 1), "0", noise(0, 5000))
				closeTest(t, s)
			}
			damage(t, filepath.Join(dir, "data-000001", "*.vlog"), noise(3, 5000)[100:200])

			s = openTest(t, dir, o)
			b = In[[]byte](s, "b", 1)
			var corrupt *CorruptError
			if _, ok, err := b.Get("3"); ok || !errors.As(err, &corrupt) || corrupt.Key != "3" {
				t.Errorf("Get of the damaged record = %t, %v, want a *CorruptError", ok, err)
			}
			var got []string
			bad := 0
			for e, err := range b.Scan("", "") {
				got = append(got, fmt.Sprint(e.Key, " ", err == nil))
				if err != nil {
					bad++
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("Scan (-want +got):\n%s", diff)
			}
			var out bytes.Buffer
			if _, err := s.Backup(t.Context(), &out); !errors.As(err, &corrupt) || corrupt.Key != "3" || corrupt.Bucket != "b" {
				t.Errorf("Backup = %v, want the *CorruptError", err)
			}
			r, err := s.GC(t.Context(), nil)
			if err != nil || r.Kept != 5-bad || r.Dropped != bad {
				t.Errorf("GC = %+v, %v, want %d kept and %d dropped", r, err, 5-bad, bad)
			}
			if !slices.ContainsFunc(warnings, func(w string) bool { return strings.Contains(w, `leave out record "3" of bucket b`) }) {
				t.Errorf("warnings %q do not name the record", warnings)
			}
		})
	}
}

func TestDamagedTable(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir, Options{})
	b := In[[]byte](s, "b", 1)
	for i := range 5 {
		put(t, b, fmt.Sprint(i), noise(uint64(i), 500))
	}
	closeTest(t, s)
	damage(t, filepath.Join(dir, "data-000001", "*.sst"), noise(3, 500)[100:200])
	if _, err := Open(dir, Options{}); err == nil || !strings.Contains(err.Error(), "restore a backup") {
		t.Errorf("Open of a store with a damaged table: %v, want an error that says what to do", err)
	}
}
