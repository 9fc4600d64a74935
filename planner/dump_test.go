package planner

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"assay/corpus"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
)

var update = flag.Bool("update", false, "rewrite golden files")

// readAll collects a dump: its entries, the faults of records, and the error that ended it.
func readAll(name string, r io.Reader) (entries []Entry, faults []string, end error) {
	for e, err := range ReadDump(name, r) {
		var record *RecordError
		switch {
		case errors.As(err, &record):
			faults = append(faults, fmt.Sprintf("%d: %v", record.Number, record.Err))
		case err != nil:
			end = err
		default:
			entries = append(entries, e)
		}
	}
	return entries, faults, end
}

func documents(entries []Entry) (docs []corpus.Document) {
	for _, e := range entries {
		if e.Skipped == "" {
			docs = append(docs, e.Document)
		}
	}
	return docs
}

// Every format has a fixture testdata/dump_<name>.*, is the only one that matches it, and reads it as
// the golden file says. A file dump_<name>.go without its line in Dumps fails here.
func TestDumps(t *testing.T) {
	checkListed(t, "dump", len(Dumps), func(i int) (string, string, string) { return Dumps[i].Name, Dumps[i].Proven, Dumps[i].Reference })
	for _, d := range Dumps {
		t.Run(d.Name, func(t *testing.T) {
			files, err := filepath.Glob("testdata/dump_" + d.Name + ".*son")
			if err != nil || len(files) != 1 {
				t.Fatalf("fixtures of %s: %v, %v", d.Name, files, err)
			}
			data, err := os.ReadFile(files[0])
			if err != nil {
				t.Fatal(err)
			}
			for _, other := range Dumps {
				if got := other.Match("x", data); got != (other.Name == d.Name) {
					t.Errorf("%s.Match = %v", other.Name, got)
				}
			}
			entries, faults, end := readAll(files[0], bytes.NewReader(data))
			var b bytes.Buffer
			out := json.NewEncoder(&b)
			out.SetEscapeHTML(false)
			out.SetIndent("", " ")
			if err := out.Encode(map[string]any{"entries": entries, "faults": faults, "end": fmt.Sprint(end)}); err != nil {
				t.Fatal(err)
			}
			got := b.Bytes()
			golden := "testdata/dump_" + d.Name + ".golden"
			if *update {
				if err := os.WriteFile(golden, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("(-golden +got):\n%s", diff)
			}
			if bytes.Contains(got, []byte("invented_author")) {
				t.Error("an author's name is kept")
			}
		})
	}
}

// checkListed compares the files of a door with its slice.
func checkListed(t *testing.T, door string, n int, at func(int) (name, proven, reference string)) {
	t.Helper()
	var listed, files []string
	for i := range n {
		name, proven, reference := at(i)
		listed = append(listed, name)
		if !slices.Contains([]string{"captured", "documented", "unproven"}, proven) || reference == "" {
			t.Errorf("%s %s: proven %q by %q", door, name, proven, reference)
		}
	}
	names, err := filepath.Glob(door + "_*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range names {
		if f = strings.TrimSuffix(strings.TrimPrefix(f, door+"_"), ".go"); f != "test" && !strings.HasSuffix(f, "_test") {
			files = append(files, f)
		}
	}
	slices.Sort(files)
	if diff := cmp.Diff(files, listed); diff != "" {
		t.Errorf("files of %s_ and what is listed, by name (-files +listed):\n%s", door, diff)
	}
}

// The same bytes packed in any way give the same entries.
func TestReadDumpCompressed(t *testing.T) {
	data, err := os.ReadFile("testdata/dump_reddit_ndjson.ndjson")
	if err != nil {
		t.Fatal(err)
	}
	want, wantFaults, _ := readAll("a", bytes.NewReader(data))
	for name, packed := range map[string][]byte{
		"gzip":                 gzipped(t, data),
		"gzip of two members":  append(gzipped(t, data[:700]), gzipped(t, data[700:])...),
		"zstd":                 zstandard(t, data),
		"zstd of two frames":   append(zstandard(t, data[:700]), zstandard(t, data[700:])...),
		"zstd behind metadata": append([]byte{0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3}, zstandard(t, data)...),
		"zstd, window 2 GiB":   wideFrame(data),
		"byte order mark":      append([]byte("\ufeff"), data...),
		"CRLF":                 bytes.ReplaceAll(data, []byte("\n"), []byte("\r\n")),
		"no last line end":     bytes.TrimRight(data, "\n"),
	} {
		got, faults, end := readAll("some.bin", bytes.NewReader(packed))
		if diff := cmp.Diff(want, got); diff != "" || end != nil {
			t.Errorf("%s: end %v (-plain +packed):\n%s", name, end, diff)
		}
		if diff := cmp.Diff(wantFaults, faults); diff != "" {
			t.Errorf("%s: faults (-plain +packed):\n%s", name, diff)
		}
	}
}

func gzipped(t testing.TB, data []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zstandard(t testing.TB, data []byte) []byte {
	w, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	return w.EncodeAll(data, nil)
}

// wideFrame packs data as the monthly archives are: a frame that asks for a window of 2 GiB.
func wideFrame(data []byte) []byte {
	out := []byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, (31 - 10) << 3}
	for len(data) > 0 {
		part := data[:min(len(data), 100<<10)]
		data = data[len(part):]
		header := uint32(len(part)) << 3 // a raw block
		if len(data) == 0 {
			header |= 1 // the last
		}
		out = append(out, byte(header), byte(header>>8), byte(header>>16))
		out = append(out, part...)
	}
	return out
}

func TestReadDumpErrors(t *testing.T) {
	line := `{"id":"aa1","title":"A","selftext":"a","created_utc":1552908000}` + "\n"
	many := strings.Repeat(line, 2000)
	incompressible := make([]byte, 40000)
	rand.New(rand.NewSource(1)).Read(incompressible)
	for _, c := range []struct {
		name, file string
		data       []byte
		entries    int
		faults     []string
		end        string
	}{
		{"empty", "a.ndjson", nil, 0, nil, "it is empty"},
		{"a page", "a.html", []byte("<!DOCTYPE html><title>whoa</title>"), 0, nil, "is no known format (reddit_array, reddit_listing"},
		{"an error reply", "a.json", []byte(`{"reason": "private", "message": "Forbidden", "error": 403}`), 0, nil, "is no known format"},
		{"other lines", "a.ndjson", []byte(`{"case":"x","status":401,"body":"{}"}` + "\n"), 0, nil, "is no known format"},
		{"xz", "RS_2015-01.xz", []byte("\xfd7zXZ\x00rest"), 0, nil, "pack it by zstd"},
		{"noise named gzip", "a.gz", append([]byte{0x1f, 0x8b}, incompressible...), 0, nil, "open dump a.gz"},
		{"gzip cut off", "a.gz", gzipped(t, []byte(many))[:300], -1, nil, "unexpected EOF"},
		{"zstd cut off", "a.zst", wideFrame([]byte(many))[:100<<10+5], -1, nil, "unexpected EOF"},
		{"every line broken", "RS_2015-01.ndjson", []byte("{\"id\":\n{\n"), 0, []string{"1: unexpected end of JSON input", "2: unexpected end of JSON input"}, ""},
		{"broken lines", "a", []byte(line + "{\"id\":\"aa2\"\n" + "null\n[1]\n" + `{"id":{"a":1},"title":"x"}` + "\n" + line + line[:20]), 2,
			[]string{
				"2: unexpected end of JSON input", `3: "null" is no post or comment`, `4: "[1]" is no post or comment`,
				`5: {"a":1} is no text or number`, "7: unexpected end of JSON input",
			}, ""},
		{"neither post nor comment", "a", []byte(line + `{"id":"aa2"}` + "\n"), 1, []string{"2: it is neither a post nor a comment: no title, no body"}, ""},
		{"two objects in a line", "a", []byte(line + line[:len(line)-1] + line), 1, []string{"2: invalid character '{' after top-level value"}, ""},
		{"array cut off", "a.json", []byte(`[{"id":"aa1","title":"A"},{"id":"aa2","ti`), 1, nil, "after record 1: unexpected EOF"},
		{"array with a wrong comma", "a.json", []byte(`[{"id":"aa1","title":"A"},,{"id":"aa2","title":"B"}]`), 1, nil, "after record 1: invalid character ','"},
		{"listing cut off", "a.json", []byte(`{"kind":"Listing","data":{"children":[{"kind":"t3","data":{"id":"aa1","title":"A"}},`), 1, nil, "after record 1: unexpected EOF"},
		{"listing with odd children", "a.json", []byte(`{"kind":"Listing","data":{"children":[3,{"kind":"t9","data":{}},{"kind":"t3","data":null},{"kind":"t3"},{"kind":"t1","data":{"id":"c1","body":"b"}}]}}`), 1,
			[]string{"1: json: cannot unmarshal number into Go value of type planner.child", `2: kind "t9" is unknown`, `3: "null" is no post or comment`, `4: "" is no post or comment`}, ""},
		{"listing without children", "a.json", []byte(`{"kind":"Listing","data":{"children":null}}`), 0, nil, "children of a listing start with <nil>"},
		{"an archive's error", "a.json", []byte(`{"data":null,"error":"Query timed out"}`), 0, nil, "the reply is an error: Query timed out"},
		{"an archive's error after some", "a.json", []byte(`{"data":[{"id":"aa1","title":"A"}],"error":"shards failed"}`), 1, nil, "the reply is an error: shards failed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			entries, faults, end := readAll(c.file, bytes.NewReader(c.data))
			if c.entries >= 0 && len(entries) != c.entries {
				t.Errorf("%d entries, want %d", len(entries), c.entries)
			}
			if diff := cmp.Diff(c.faults, faults); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
			if c.end == "" && end != nil || c.end != "" && (end == nil || !strings.Contains(end.Error(), c.end)) {
				t.Errorf("ended by %v, want %q", end, c.end)
			}
		})
	}
}

func TestReadDumpStops(t *testing.T) {
	for _, d := range Dumps {
		files, err := filepath.Glob("testdata/dump_" + d.Name + ".*son")
		if err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(files[0])
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for range ReadDump(files[0], bytes.NewReader(data)) {
			if n++; n == 2 {
				break // a reader that went on would panic
			}
		}
		if n != 2 {
			t.Errorf("%s: stopped after %d", d.Name, n)
		}
	}
}

// A line or element beyond the bound is one fault, not the memory of the machine.
func TestRecordTooLarge(t *testing.T) {
	line := `{"id":"aa1","title":"A","selftext":"a","created_utc":1552908000}` + "\n"
	long := io.MultiReader(strings.NewReader(line+`{"id":"aa2","title":"`), io.LimitReader(letters{}, recordBytes+10), strings.NewReader("\"}\n"+line))
	entries, faults, end := readAll("a", long)
	if len(entries) != 2 || len(faults) != 1 || !strings.Contains(faults[0], "2: it takes more than 32 MiB") || end != nil {
		t.Errorf("%d entries, faults %q, end %v", len(entries), faults, end)
	}
	long = io.MultiReader(strings.NewReader(`[{"id":"aa1","title":"A"},{"id":"aa2","title":"`), io.LimitReader(letters{}, 2*recordBytes), strings.NewReader(`"}]`))
	if entries, _, end = readAll("a", long); len(entries) != 1 || end == nil || !strings.Contains(end.Error(), "more than 32 MiB") {
		t.Errorf("array: %d entries, end %v", len(entries), end)
	}
}

// letters never ends.
type letters struct{}

func (letters) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// A dump is read in the memory of a record, however long it is: live memory after many records is
// that after few.
func TestReadDumpMemory(t *testing.T) {
	for name, frame := range map[string][3]string{
		"lines": {"", "\n", ""}, "array": {"[", ",", "]"}, "listing": {`{"kind":"Listing","data":{"children":[`, ",", "]}}"}, "archive": {`{"data":[`, ",", `]}`},
	} {
		item := fmt.Sprintf(`{"id":"aa1","title":"A","selftext":%q,"created_utc":1552908000}`, strings.Repeat("words ", 200))
		if name == "listing" {
			item = `{"kind":"t3","data":` + item + `}`
		}
		const n = 5000
		src := io.MultiReader(strings.NewReader(frame[0]), &repeated{item: item, sep: frame[1], left: n}, strings.NewReader(frame[2]))
		var early, late uint64
		i := 0
		for _, err := range ReadDump(name, src) {
			if err != nil {
				t.Fatal(err)
			}
			if i++; i == 100 {
				early = live()
			} else if i == n-1 {
				late = live()
			}
		}
		if i != n || late > early+4<<20 {
			t.Errorf("%s: %d records, %d KiB live after 100 and %d KiB after all", name, i, early>>10, late>>10)
		}
	}
}

func live() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// repeated is an item many times, made as it is read.
type repeated struct {
	item, sep string
	left      int
	rest      string
}

func (r *repeated) Read(p []byte) (int, error) {
	if r.rest == "" {
		if r.left == 0 {
			return 0, io.EOF
		}
		r.rest = r.item
		if r.left--; r.left > 0 {
			r.rest += r.sep
		}
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

func FuzzReadDump(f *testing.F) {
	for _, d := range Dumps {
		files, err := filepath.Glob("testdata/dump_" + d.Name + ".*son")
		if err != nil {
			f.Fatal(err)
		}
		for _, name := range files {
			data, err := os.ReadFile(name)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	f.Add([]byte(`[{"kind":"t1","data":{"id":"a","body":"b","replies":{"kind":"Listing","data":{"children":[{"kind":"more","data":{"children":["c"]}}]}}}}]`))
	f.Add([]byte(`{"kind":"t3","data":{"id":"a","title":"&amp;lt;","crosspost_parent":"t3_b","_meta":{"was_deleted_later":true}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 4 && bytes.HasPrefix(data, []byte{0x28, 0xb5, 0x2f, 0xfd}) {
			return // the decompressor has fuzzing of its own, and windows that slow ours
		}
		last := 0
		for e, err := range ReadDump("fuzz.ndjson", bytes.NewReader(data)) {
			if e.Number < last {
				t.Errorf("record %d after %d", e.Number, last)
			}
			last = e.Number
			if err != nil || e.Skipped != "" {
				continue
			}
			d := e.Document
			if !strings.HasPrefix(d.ID, "reddit:t") || d.BodyStatus == "" || d.SHA256 != d.Seal().SHA256 {
				t.Errorf("document %+v", d)
			}
			if d.Kind == corpus.KindRedditPost {
				if name, ok := corpus.RedditFullname(d.URL); len(d.ID) > len("reddit:t3_x") && len(d.ID) <= len("reddit:t3_")+12 && (!ok || corpus.RedditID(name) != d.ID) {
					t.Errorf("%s has the address %q, which names %q", d.ID, d.URL, name)
				}
			}
			if (d.BodyStatus == corpus.BodyDeleted || d.BodyStatus == corpus.BodyRemoved) && d.Text != "" {
				t.Errorf("%s is %s and has text", d.ID, d.BodyStatus)
			}
			Usable(d)
		}
	})
}
