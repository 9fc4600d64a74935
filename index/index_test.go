package index

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"assay/corpus"

	"github.com/google/go-cmp/cmp"
)

// sequence numbers documents from first on.
func sequence(first uint64, docs ...corpus.Document) iter.Seq2[Sequenced, error] {
	return func(yield func(Sequenced, error) bool) {
		for i, d := range docs {
			if !yield(Sequenced{first + uint64(i), d}, nil) {
				return
			}
		}
	}
}

func post(id, title, text string) corpus.Document {
	return corpus.Document{ID: "reddit:t3_" + id, Kind: corpus.KindRedditPost, Title: title, Text: text, URL: "https://www.reddit.com/r/x/comments/" + id + "/t/"}
}

func page(url, title, text string) corpus.Document {
	return corpus.Document{ID: corpus.DocumentID(url), Kind: corpus.KindPage, Title: title, Text: text, URL: url}
}

// invented makes n documents of words with the frequencies of a language, some of them equal, some
// changed later.
func invented(n int) []corpus.Document {
	rng := rand.New(rand.NewSource(7))
	zipf := rand.NewZipf(rng, 1.1, 3, 4000)
	words := func(k int) string {
		var b strings.Builder
		for range k {
			fmt.Fprintf(&b, "w%dq ", zipf.Uint64())
		}
		return b.String()
	}
	var docs []corpus.Document
	for i := range n {
		d := post(fmt.Sprintf("a%05d", i), words(8), words(5+rng.Intn(120)))
		switch {
		case i%17 == 3:
			d.Title, d.Text = docs[i-1].Title, docs[i-1].Text // a repost
		case i%29 == 5:
			d.ID = docs[rng.Intn(i)].ID // an edit
		}
		docs = append(docs, d)
	}
	return docs
}

func open(t testing.TB) *Index {
	t.Helper()
	x, err := OpenMemory()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	})
	return x
}

func fill(t testing.TB, x *Index, first uint64, docs ...corpus.Document) {
	t.Helper()
	if err := x.CatchUp(t.Context(), sequence(first, docs...)); err != nil {
		t.Fatal(err)
	}
}

func ids(hits []Hit) []string {
	var out []string
	for _, h := range hits {
		out = append(out, h.ID)
	}
	return out
}

func TestSearch(t *testing.T) {
	x := open(t)
	fill(t, x, 1,
		post("aaa", "Harbor tolls rise", "The harbor board raised tolls by 12 percent in 2019."),
		post("bbb", "Fishing season", "Nothing about charges here, only herring."),
		page("https://news.example.org/tolls", "Harbor tolls explained", "Tolls at the harbor pay for dredging."),
		corpus.Document{ID: "raguard:17", Kind: corpus.KindRedditPost, Title: "Harbor tolls again", Text: "[Link Post]"},
		corpus.Document{ID: "reddit:t1_ccc", Kind: corpus.KindRedditComment, Text: "harbor tolls are theft", URL: "https://www.reddit.com/r/x/comments/aaa/_/ccc/"},
	)
	for _, c := range []struct {
		name string
		q    Query
		want []string
	}{
		{"inflected words", Query{Text: "harbors toll"}, []string{"raguard:17", "reddit:t1_ccc", corpus.DocumentID("https://news.example.org/tolls"), "reddit:t3_aaa"}},
		{"domain", Query{Text: "harbor tolls", Domains: []string{"reddit.com"}}, []string{"raguard:17", "reddit:t1_ccc", "reddit:t3_aaa"}},
		{"domain and kind", Query{Text: "harbor tolls", Domains: []string{"reddit.com"}, Kinds: []string{corpus.KindRedditPost}}, []string{"raguard:17", "reddit:t3_aaa"}},
		{"two domains", Query{Text: "dredging herring", Domains: []string{"example.org", "reddit.com"}}, []string{corpus.DocumentID("https://news.example.org/tolls"), "reddit:t3_bbb"}},
		{"unknown domain", Query{Text: "harbor", Domains: []string{"example.com"}}, nil},
		{"number", Query{Text: "2019"}, []string{"reddit:t3_aaa"}},
		{"at most", Query{Text: "harbor tolls theft", K: 1}, []string{"reddit:t1_ccc"}},
		{"only stop words, restricted", Query{Text: "the of and", Domains: []string{"reddit.com"}}, nil},
		{"no words", Query{Text: " ?! "}, nil},
		{"no such word", Query{Text: "zeppelin", Domains: []string{"reddit.com"}}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			hits, err := x.Search(t.Context(), c.q)
			if err != nil {
				t.Fatal(err)
			}
			got := ids(hits)
			if c.name == "inflected words" || strings.HasPrefix(c.name, "domain") || strings.HasPrefix(c.name, "two") {
				slices.Sort(got)
				slices.Sort(c.want)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("Search(%+v) (-want +got):\n%s", c.q, diff)
			}
		})
	}
}

func TestRestrictionLeavesScores(t *testing.T) {
	x := open(t)
	fill(t, x, 1, append(invented(200), page("https://news.example.org/a", "w5q", "w6q"))...)
	free, err := x.Search(t.Context(), Query{Text: "w1q w20q w300q", K: 200})
	if err != nil {
		t.Fatal(err)
	}
	bound, err := x.Search(t.Context(), Query{Text: "w1q w20q w300q", K: 200, Domains: []string{"reddit.com"}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(free, bound); diff != "" || len(free) == 0 {
		t.Errorf("restricted to the domain of all %d hits (-free +restricted):\n%s", len(free), diff)
	}
}

// The same documents give the same hits and the same digest, however they were spread over batches,
// and so over bleve's segments.
func TestBatchSizeChangesNothing(t *testing.T) {
	docs := invented(400)
	rng := rand.New(rand.NewSource(11))
	var queries []Query
	for range 100 {
		var words []string
		for range 1 + rng.Intn(14) {
			words = append(words, fmt.Sprintf("w%dq", rng.Intn(300)))
		}
		queries = append(queries, Query{Text: strings.Join(words, " "), K: 10})
	}
	type answer struct {
		Hits   [][]Hit
		Digest [32]byte
		Len    int
	}
	answers := func(size int, disk bool) (a answer) {
		x := open(t)
		if disk {
			var err error
			if x, err = Open(t.TempDir()); err != nil {
				t.Fatal(err)
			}
			defer x.Close()
		}
		x.Batch = size
		fill(t, x, 1, docs...)
		for _, q := range queries {
			hits, err := x.Search(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			a.Hits = append(a.Hits, hits)
		}
		a.Digest, a.Len = x.Digest(), x.Len()
		return a
	}
	want := answers(1000, false)
	for _, c := range []struct {
		size int
		disk bool
	}{{1, false}, {7, false}, {7, true}, {50, true}} {
		if diff := cmp.Diff(want, answers(c.size, c.disk)); diff != "" {
			t.Errorf("batches of %d, on disk %v (-batches of 1000 +got):\n%s", c.size, c.disk, diff)
		}
	}
}

func TestTiesById(t *testing.T) {
	var docs []corpus.Document
	for i := range 300 {
		docs = append(docs, post(fmt.Sprintf("z%03d", 299-i), "Same words", "in every post"))
	}
	x := open(t)
	x.Batch = 13
	fill(t, x, 1, docs...)
	hits, err := x.Search(t.Context(), Query{Text: "words", K: 3})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"reddit:t3_z000", "reddit:t3_z001", "reddit:t3_z002"}, ids(hits)); diff != "" {
		t.Error(diff)
	}
}

func TestDigest(t *testing.T) {
	a, b, c := post("aaa", "One", "first"), post("bbb", "Two", "second"), post("ccc", "Three", "third")
	digest := func(docs ...corpus.Document) [32]byte {
		x := open(t)
		fill(t, x, 1, docs...)
		return x.Digest()
	}
	base := digest(a, b, c)
	later := a
	later.Text = "first, changed"
	empty := a
	empty.Title, empty.Text = "", ""
	seen := a
	seen.RetrievedAt, seen.Number = "2024-01-01T00:00:00Z", 4
	for name, same := range map[string][32]byte{
		"another order": digest(c, a, b), "a repeat": digest(a, b, c, a), "changed and back": digest(later, b, c, a), "another retrieval": digest(seen, b, c),
	} {
		if same != base {
			t.Errorf("%s changes the digest", name)
		}
	}
	moved := a
	moved.Title, moved.Text = "On", "efirst"
	for name, other := range map[string][32]byte{
		"one less": digest(a, b), "a change": digest(a, b, c, later), "a word moved": digest(moved, b, c), "emptied": digest(a, b, c, empty), "none": digest(),
	} {
		if other == base {
			t.Errorf("%s leaves the digest", name)
		}
	}
	if digest(b, c) != digest(a, b, c, empty) {
		t.Error("a document without words stays in the digest")
	}
}

func TestReplace(t *testing.T) {
	x := open(t)
	x.Batch = 2
	fill(t, x, 1, post("aaa", "Harbor", "tolls"), post("bbb", "Herring", "nets"))
	fill(t, x, 3, post("aaa", "Lighthouse", "lamps"), post("aaa", "Lighthouse", "mirrors"), post("bbb", "", ""))
	for text, want := range map[string][]string{"tolls": nil, "lamps": nil, "mirrors": {"reddit:t3_aaa"}, "herring": nil} {
		hits, err := x.Search(t.Context(), Query{Text: text})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, ids(hits)); diff != "" {
			t.Errorf("Search(%s): %s", text, diff)
		}
	}
	if x.Len() != 1 || x.Position() != 5 {
		t.Errorf("Len, Position = %d, %d, want 1, 5", x.Len(), x.Position())
	}
	if n, err := x.idx.DocCount(); n != 1 || err != nil {
		t.Errorf("bleve holds %d documents (%v), want 1", n, err)
	}
}

func TestCatchUpGoesOnFromPosition(t *testing.T) {
	dir := t.TempDir()
	docs := invented(60)
	x, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	x.Batch = 20
	stop := errors.New("the store is gone")
	err = x.CatchUp(t.Context(), func(yield func(Sequenced, error) bool) {
		for i, d := range docs[:45] {
			if !yield(Sequenced{uint64(i + 1), d}, nil) {
				return
			}
		}
		yield(Sequenced{}, stop)
	})
	if !errors.Is(err, stop) {
		t.Fatalf("CatchUp = %v, want %v", err, stop)
	}
	if got := x.Position(); got != 45 {
		t.Errorf("Position = %d, want 45", got)
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	x, err = Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	if x.Rebuilt() != "" || x.Position() != 45 {
		t.Errorf("after reopening: rebuilt %q, position %d", x.Rebuilt(), x.Position())
	}
	fill(t, x, 1, docs...)
	whole := open(t)
	fill(t, whole, 1, docs...)
	if x.Digest() != whole.Digest() || x.head.Words != whole.head.Words {
		t.Error("caught up in two steps is not what is caught up in one")
	}
}

func TestCatchUpErrors(t *testing.T) {
	falling := func(yield func(Sequenced, error) bool) {
		_ = yield(Sequenced{5, post("aaa", "A", "a")}, nil) && yield(Sequenced{4, post("bbb", "B", "b")}, nil)
	}
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		name string
		ctx  context.Context
		docs iter.Seq2[Sequenced, error]
		want string
	}{
		{"falling numbers", t.Context(), falling, "sequence number 4 after 5"},
		{"no id", t.Context(), sequence(1, corpus.Document{Title: "x"}), "has no id"},
		{"cancelled", stopped, sequence(1, post("aaa", "A", "a")), "context canceled"},
	} {
		x := open(t)
		if err := x.CatchUp(c.ctx, c.docs); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.name, err, c.want)
		}
		if x.Len() != 0 {
			t.Errorf("%s: %d documents were added", c.name, x.Len())
		}
	}
	x := open(t)
	fill(t, x, 1, invented(3)...)
	if _, err := x.Search(stopped, Query{Text: "w1q"}); !errors.Is(err, context.Canceled) {
		t.Errorf("Search after cancel = %v", err)
	}
}

func TestAnswered(t *testing.T) {
	x := open(t)
	type told struct {
		Key string
		Sum [32]byte
	}
	var got []told
	x.Answered = func(_ context.Context, key string, sum [32]byte) { got = append(got, told{key, sum}) }
	search := func(text string) {
		if _, err := x.Search(t.Context(), Query{Text: text}); err != nil {
			t.Fatal(err)
		}
	}
	search("nothing yet")
	empty := x.Digest()
	fill(t, x, 1, post("aaa", "Harbor", "tolls"))
	search("harbor")
	search("zeppelin")
	want := []told{{"index/documents", empty}, {"index/documents", x.Digest()}, {"index/documents", x.Digest()}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if sum, ok, err := x.Current(t.Context(), "index/documents"); sum != x.Digest() || !ok || err != nil {
		t.Errorf("Current = %x, %v, %v", sum, ok, err)
	}
	if _, ok, err := x.Current(t.Context(), "index/elsewhere"); ok || err != nil {
		t.Errorf("Current of an unknown key = %v, %v", ok, err)
	}
}

func TestSearchWhileCatchingUp(t *testing.T) {
	x := open(t)
	x.Batch = 5
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for range 20 {
				if _, err := x.Search(t.Context(), Query{Text: "w1q w2q w3q"}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	fill(t, x, 1, invented(60)...)
	wg.Wait()
}

// A damaged index is built again, whatever file is damaged and however.
func TestDamagedIsRebuilt(t *testing.T) {
	docs := invented(60)
	whole := open(t)
	fill(t, whole, 1, docs...)
	garbage := []byte(strings.Repeat("not what it was\n", 40))
	for _, c := range []struct {
		name string
		harm func(t *testing.T, store string)
	}{
		{"list of segments overwritten", func(t *testing.T, s string) { write(t, filepath.Join(s, "store", "root.bolt"), garbage) }},
		{"list of segments cut", func(t *testing.T, s string) { cut(t, filepath.Join(s, "store", "root.bolt"), 2) }},
		{"list of segments gone", func(t *testing.T, s string) { remove(t, filepath.Join(s, "store", "root.bolt")) }},
		{"pages of the list overwritten", func(t *testing.T, s string) { scribble(t, filepath.Join(s, "store", "root.bolt"), 8192) }},
		{"store gone", func(t *testing.T, s string) { remove(t, filepath.Join(s, "store")) }},
		{"description gone", func(t *testing.T, s string) { remove(t, filepath.Join(s, "index_meta.json")) }},
		{"description overwritten", func(t *testing.T, s string) { write(t, filepath.Join(s, "index_meta.json"), garbage) }},
		{"segments overwritten", func(t *testing.T, s string) {
			each(t, s, func(name string) { write(t, name, garbage) })
		}},
		{"segments cut", func(t *testing.T, s string) { each(t, s, func(name string) { cut(t, name, 3) }) }},
		{"segments emptied", func(t *testing.T, s string) { each(t, s, func(name string) { write(t, name, nil) }) }},
		{"one byte of a segment", func(t *testing.T, s string) { each(t, s, func(name string) { scribble(t, name, 100) }) }},
		{"segments gone", func(t *testing.T, s string) { each(t, s, func(name string) { remove(t, name) }) }},
		{"a file in its place", func(t *testing.T, s string) { remove(t, s); write(t, s, garbage) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			x, err := Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			fill(t, x, 1, docs...)
			if err := x.Close(); err != nil {
				t.Fatal(err)
			}
			c.harm(t, filepath.Join(dir, "bleve"))
			x, err = Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer x.Close()
			// bleve may still hold its first state, from before the documents; that is as good as new.
			if x.Position() != 0 || x.Len() != 0 {
				t.Errorf("rebuilt %q, position %d, %d documents, want none", x.Rebuilt(), x.Position(), x.Len())
			}
			fill(t, x, 1, docs...)
			if x.Digest() != whole.Digest() {
				t.Error("the index built again differs")
			}
			if hits, err := x.Search(t.Context(), Query{Text: "w1q"}); len(hits) == 0 || err != nil {
				t.Errorf("Search = %v, %v", hits, err)
			}
		})
	}
}

// What a crash leaves half written belongs to no state of the index and costs nothing.
func TestHalfWrittenSegment(t *testing.T) {
	dir := t.TempDir()
	x, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	fill(t, x, 1, invented(40)...)
	want := x.Digest()
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "bleve", "store", "0000000000ff.zap"), []byte("half a segm"))
	if x, err = Open(dir); err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	if x.Rebuilt() != "" || x.Digest() != want {
		t.Errorf("rebuilt: %q", x.Rebuilt())
	}
}

func TestOtherLayoutIsRebuilt(t *testing.T) {
	dir := t.TempDir()
	x, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := x.idx.SetInternal(headKey, []byte(`{"layout":0}`)); err != nil {
		t.Fatal(err)
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	if x, err = Open(dir); err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	if !strings.Contains(x.Rebuilt(), "layout 0") {
		t.Errorf("Rebuilt = %q", x.Rebuilt())
	}
}

// An index that may not be written answers as it did, and no file of it changes.
func TestOpenToLook(t *testing.T) {
	dir := t.TempDir()
	empty, err := OpenToLook(dir)
	if err != nil || empty.Len() != 0 {
		t.Fatalf("of a folder without one: %v", err)
	}
	if err := empty.Close(); err != nil {
		t.Fatal(err)
	}
	x, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	fill(t, x, 1, invented(200)...)
	want := x.Position()
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		x, err := OpenToLook(dir)
		if err != nil {
			t.Fatal(err)
		}
		if x.Position() != want || want == 0 {
			t.Errorf("position %d, want %d", x.Position(), want)
		}
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestOpenErrors(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, nil)
	if _, err := Open(filepath.Join(file, "index")); err == nil || !strings.Contains(err.Error(), "open index") {
		t.Errorf("Open below a file = %v", err)
	}
}

func each(t *testing.T, dir string, harm func(name string)) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "store", "*.zap"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no segments (%v)", err)
	}
	for _, n := range names {
		harm(n)
	}
}

func write(t *testing.T, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(name, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, name string) {
	t.Helper()
	if err := os.RemoveAll(name); err != nil {
		t.Fatal(err)
	}
}

// cut leaves the first part of parts of a file.
func cut(t *testing.T, name string, parts int64) {
	t.Helper()
	info, err := os.Stat(name)
	if err == nil {
		err = os.Truncate(name, info.Size()/parts)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// scribble changes a byte, or a page of bytes where the file has one there.
func scribble(t *testing.T, name string, at int64) {
	t.Helper()
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	for ; at < info.Size(); at += 4096 {
		if _, err := f.WriteAt([]byte{0xa5, 0x5a, 0xff}, at); err != nil {
			t.Fatal(err)
		}
	}
}
