package planner

import (
	"bufio"
	"bytes"
	"compress/bzip2"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	"assay/corpus"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// A Dump is a format in which documents come by the file.
type Dump struct {
	Name      string
	Doc       string
	Proven    string // captured, documented or unproven
	Reference string
	Match     func(name string, head []byte) bool // from the file's name and first decompressed bytes
	Read      func(name string, r io.Reader) iter.Seq2[Entry, error]
}

// Dumps lists the formats by name. At most one of them matches a file.
var Dumps = []Dump{
	redditArray,
	redditListing,
	redditNDJSON,
	redditPushshift,
}

// An Entry is one thing of a dump: a document, or something else that is counted.
type Entry struct {
	Number   int             // line of the file, or place in the reply, from 1
	Document corpus.Document // zero where Skipped is set
	Skipped  string          // what it is instead of a document: more, subreddit, ...
	More     int             // comments that a "more" entry stands for
}

// A RecordError is one thing of a dump or row of a table that could not be read. Reading goes on
// after it, unlike after any other error.
type RecordError struct {
	Name   string // of the file
	Number int    // line, place in the reply or row, from 1
	Err    error
}

func (e *RecordError) Error() string {
	return fmt.Sprintf("read %s: record %d: %v", e.Name, e.Number, e.Err)
}

// Unwrap returns the cause.
func (e *RecordError) Unwrap() error { return e.Err }

// FailureClass is permanent: the same file gives the same error.
func (e *RecordError) FailureClass() string { return "permanent" }

const (
	// headBytes is what Match sees of a file.
	headBytes = 64 << 10
	// recordBytes bounds the memory that one record may take.
	recordBytes = 32 << 20
)

// ReadDump reads a dump in any format of Dumps, plain or compressed (.gz, .zst with windows of up to
// 2 GiB, .bz2), told by its content. It takes the memory of one record beside the decompressor's
// window. A *RecordError stands for one record and is not the end; any other error is.
func ReadDump(name string, r io.Reader) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		plain, closed, err := decompress(r)
		if err != nil {
			yield(Entry{}, fmt.Errorf("open dump %s: %w", name, err))
			return
		}
		defer closed()
		head, err := peek(plain)
		if err != nil {
			yield(Entry{}, fmt.Errorf("read dump %s: %w", name, err))
			return
		}
		if len(bytes.TrimSpace(head)) == 0 {
			yield(Entry{}, fmt.Errorf("read dump %s: it is empty", name))
			return
		}
		for _, d := range Dumps {
			if d.Match(name, head) {
				d.Read(name, plain)(yield)
				return
			}
		}
		yield(Entry{}, fmt.Errorf("read dump %s: %s is no known format (%s)", name, excerpt(head), strings.Join(dumpNames(), ", ")))
	}
}

func dumpNames() []string {
	var out []string
	for _, d := range Dumps {
		out = append(out, d.Name)
	}
	return out
}

// Decompress returns what is inside a file packed by gzip, zstd or bzip2, or the file itself. closed
// gives back what reading took.
func Decompress(r io.Reader) (plain *bufio.Reader, closed func(), err error) { return decompress(r) }

// decompress looks at the first bytes, not at the name: archives are renamed more often than
// recompressed.
func decompress(r io.Reader) (plain *bufio.Reader, closed func(), err error) {
	in := bufio.NewReaderSize(r, headBytes)
	magic, err := in.Peek(6)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, err
	}
	switch {
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil, nil, err
		}
		return bufio.NewReaderSize(z, headBytes), func() { _ = z.Close() }, nil // a reader's Close reports nothing new
	case bytes.HasPrefix(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}), len(magic) >= 4 && magic[0]&0xf0 == 0x50 && bytes.Equal(magic[1:4], []byte{0x2a, 0x4d, 0x18}):
		// Monthly archives are packed with a window of 2 GiB, which decoders refuse by default.
		z, err := zstd.NewReader(in, zstd.WithDecoderMaxWindow(1<<31), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
		if err != nil {
			return nil, nil, err
		}
		return bufio.NewReaderSize(z, headBytes), z.Close, nil
	case bytes.HasPrefix(magic, []byte("BZh")):
		return bufio.NewReaderSize(bzip2.NewReader(in), headBytes), func() {}, nil
	case bytes.HasPrefix(magic, []byte{0xfd, '7', 'z', 'X', 'Z', 0}):
		return nil, nil, errors.New("it is packed by xz; unpack it, or pack it by zstd")
	}
	return in, func() {}, nil
}

// peek returns the first bytes of a text without its byte order mark. A file that ends early or
// breaks off has a head too; reading on tells what is wrong with it.
func peek(r *bufio.Reader) ([]byte, error) {
	if mark, err := r.Peek(3); err == nil && bytes.Equal(mark, []byte("\ufeff")) {
		if _, err := r.Discard(3); err != nil {
			return nil, err
		}
	}
	head, err := r.Peek(headBytes)
	if err != nil && len(head) == 0 && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return head, nil
}

func excerpt(head []byte) string {
	line, _, _ := bytes.Cut(bytes.TrimSpace(head), []byte("\n"))
	return fmt.Sprintf("%.80q", line)
}

// outline is what the head of a JSON text shows of its first object.
type outline struct {
	array  bool            // the object is an element of an array
	empty  bool            // an array without elements
	values map[string]byte // by key: '{', '[', 's' for strings, 'v' for other values
	kind   string          // value of "kind"
}

// outlineOf reads as far as the head goes; false if it is no JSON object or array.
func outlineOf(head []byte) (o outline, ok bool) {
	dec := json.NewDecoder(bytes.NewReader(head))
	t, err := dec.Token()
	if t == json.Delim('[') && err == nil {
		o.array = true
		t, err = dec.Token()
		if err == nil && t == json.Delim(']') {
			o.empty = true
			return o, true
		}
	}
	if err != nil || t != json.Delim('{') {
		return o, false
	}
	o.values = map[string]byte{}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			break
		}
		name, _ := key.(string)
		v, err := dec.Token()
		if err != nil {
			break
		}
		switch v := v.(type) {
		case json.Delim:
			o.values[name] = byte(v)
			if skipOpen(dec) != nil {
				return o, true
			}
		case string:
			o.values[name] = 's'
			if name == "kind" {
				o.kind = v
			}
		default:
			o.values[name] = 'v'
		}
	}
	return o, true
}

// skipOpen reads to the end of the object or array that was just opened.
func skipOpen(dec *json.Decoder) error {
	for depth := 1; depth > 0; {
		t, err := dec.Token()
		if err != nil {
			return err
		}
		switch t {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
	}
	return nil
}

// A gauge stops a reader that is asked for more than one record may take, since a JSON decoder holds
// a value in memory whole.
type gauge struct {
	r    io.Reader
	left int
}

var errTooLarge = fmt.Errorf("it takes more than %d MiB", recordBytes>>20)

func (g *gauge) Read(p []byte) (int, error) {
	if g.left <= 0 {
		return 0, errTooLarge
	}
	n, err := g.r.Read(p)
	g.left -= n
	return n, err
}

// records is the state of reading one JSON text: where we are and who listens.
type records struct {
	name   string
	gauge  *gauge
	dec    *json.Decoder
	number int
	yield  func(Entry, error) bool
	seen   escaping // what the records so far tell about the text as a whole
	raw    bool     // seen is known: the request had raw_json=1
}

func newRecords(name string, r io.Reader, yield func(Entry, error) bool) *records {
	g := &gauge{r: r, left: recordBytes}
	return &records{name: name, gauge: g, dec: json.NewDecoder(g), yield: yield}
}

// errStop means that the listener wants no more.
var errStop = errors.New("stop")

// entry hands on a record, fault one that cannot be read.
func (r *records) entry(e Entry) error {
	e.Number = r.number
	if !r.yield(e, nil) {
		return errStop
	}
	return nil
}

func (r *records) fault(err error) error {
	if !r.yield(Entry{Number: r.number}, &RecordError{r.name, r.number, err}) {
		return errStop
	}
	return nil
}

// elements decodes the values of the array that was just opened, one at a time.
func (r *records) elements(each func(json.RawMessage) error) error {
	for r.dec.More() {
		r.gauge.left = recordBytes
		var raw json.RawMessage
		if err := r.dec.Decode(&raw); err != nil {
			return err
		}
		if err := each(raw); err != nil {
			return err
		}
	}
	_, err := r.dec.Token()
	return err
}

// keys walks the object that was just opened; each must consume the value.
func (r *records) keys(each func(key string) error) error {
	for r.dec.More() {
		t, err := r.dec.Token()
		if err != nil {
			return err
		}
		key, _ := t.(string)
		if err := each(key); err != nil {
			return err
		}
	}
	_, err := r.dec.Token()
	return err
}

func (r *records) skip() error {
	t, err := r.dec.Token()
	if err != nil {
		return err
	}
	if d, ok := t.(json.Delim); ok && (d == '{' || d == '[') {
		return skipOpen(r.dec)
	}
	return nil
}

// end reports how reading ended.
func (r *records) end(err error) {
	if err == nil || errors.Is(err, errStop) {
		return
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	r.yield(Entry{Number: r.number}, fmt.Errorf("read %s after record %d: %w", r.name, r.number, err))
}
