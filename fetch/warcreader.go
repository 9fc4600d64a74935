package fetch

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/klauspost/compress/gzip"
)

const (
	maxHeadLine = 512 << 10 // of one header line, of a record or of HTTP; net/http takes 256 KiB
	maxHead     = 1 << 20   // of a whole head
	maxNotes    = 100       // of one file; damage repeats itself
)

// A warcReader reads the records of one WARC file in order, in memory that depends neither on the file
// nor on its records. It reads what others wrote: gzip members that are not aligned with records, one
// member for everything, bare line feeds, lengths that are wrong, junk between records and after the
// last. What it had to leave out is in notes.
type warcReader struct {
	in    *bufio.Reader
	count *countReader // of what in has read: the uncompressed file
	zip   *gunzip      // nil for a plain file
	last  *warcRecord
	notes []string
	more  int // notes that were not kept
}

// A warcRecord is one record. Its block is read before the next record is asked for, or not at all.
type warcRecord struct {
	kind   string // lower case
	header http.Header
	offset int64 // in the uncompressed file
	end    int64 // of what was read of it, known once next was called again
	block  *warcBlock
}

// get returns a header field without the angle brackets that some programs put around addresses.
func (r *warcRecord) get(name string) string {
	v := strings.TrimSpace(r.header.Get(name))
	if strings.HasPrefix(v, "<") && strings.HasSuffix(v, ">") {
		v = v[1 : len(v)-1]
	}
	return v
}

func newWARCReader(r io.Reader) *warcReader {
	w := &warcReader{}
	file := &tapeReader{countReader: countReader{r: r}}
	in := bufio.NewReaderSize(file, 64<<10)
	if magic, _ := in.Peek(2); string(magic) == "\x1f\x8b" {
		w.zip = &gunzip{in: in, file: file, note: w.note}
		w.count = &countReader{r: w.zip}
		in = bufio.NewReaderSize(w.count, 64<<10)
	} else {
		w.count = &file.countReader
	}
	w.in = in
	return w
}

func (w *warcReader) note(format string, args ...any) {
	if len(w.notes) >= maxNotes {
		w.more++
		return
	}
	w.notes = append(w.notes, fmt.Sprintf(format, args...))
}

// offset is the place in the uncompressed file of the byte that is read next.
func (w *warcReader) offset() int64 { return w.count.n - int64(w.in.Buffered()) }

// next returns the next record, or io.EOF after the last. Any other error is one of reading the file.
func (w *warcReader) next() (*warcRecord, error) {
	if w.last != nil {
		if _, err := io.Copy(io.Discard, w.last.block); err != nil {
			return nil, err
		}
		w.last.end = w.offset()
		w.last = nil
	}
	for {
		err := w.seek()
		if err == nil {
			var rec *warcRecord
			if rec, err = w.head(); err == nil {
				w.last = rec
				return rec, nil
			}
		}
		switch {
		case errors.Is(err, errHead):
			w.note("%s at %d", err, w.offset())
		case errors.Is(err, io.EOF) && w.zip != nil && !w.zip.done:
			w.zip.paused = false
		default:
			return nil, err
		}
	}
}

// damaged reports whether damage reaches into a record that was read. It is known once next was called
// again.
func (w *warcReader) damaged(rec *warcRecord) bool {
	if w.zip == nil {
		return false
	}
	for len(w.zip.bad) > 0 && w.zip.bad[0].to <= rec.offset {
		w.zip.bad = w.zip.bad[1:]
	}
	return len(w.zip.bad) > 0 && w.zip.bad[0].from < rec.end
}

// seek goes to the start of the next record and notes what lies before it, unless that is empty lines.
func (w *warcReader) seek() error {
	for {
		b, err := w.in.ReadByte()
		if err != nil {
			return err
		}
		if b != '\r' && b != '\n' {
			break
		}
	}
	if err := w.in.UnreadByte(); err != nil {
		return err // unreachable: a byte was just read
	}
	start := w.offset()
	for {
		window, err := w.in.Peek(4 << 10)
		i := recordStart(window)
		skip := i
		switch {
		case i < 0 && err != nil:
			skip = len(window)
		case i < 0:
			skip = len(window) - len("WARC/1") // a version may have begun there
		}
		if _, err := w.in.Discard(skip); err != nil {
			return err // unreachable: these bytes were just peeked
		}
		if i < 0 && err == nil {
			continue
		}
		if left := w.offset() - start; left > 0 {
			w.note("not a WARC header at %d: %d bytes left out", start, left)
		}
		if i < 0 {
			return err
		}
		return nil
	}
}

// recordStart returns the place of the first record version in b, -1 if there is none.
func recordStart(b []byte) int {
	for at := 0; ; {
		i := bytes.Index(b[at:], []byte("WARC/"))
		if i < 0 || at+i+len("WARC/1.") > len(b) {
			return -1
		}
		at += i
		if v := b[at+len("WARC/"):]; (v[0] == '0' || v[0] == '1' || v[0] == '2') && v[1] == '.' {
			return at
		}
		at += len("WARC/")
	}
}

var errHead = errors.New("unreadable WARC header")

// head reads the version line and the header of a record.
func (w *warcReader) head() (*warcRecord, error) {
	rec := &warcRecord{offset: w.offset()}
	_, header, err := readHead(w.in)
	if err != nil {
		return nil, err
	}
	rec.header = header
	rec.kind = strings.ToLower(rec.get("Warc-Type"))
	n, err := strconv.ParseInt(rec.get("Content-Length"), 10, 64)
	if rec.kind == "" || err != nil || n < 0 {
		return nil, fmt.Errorf("%w: type %q, length %q", errHead, rec.kind, rec.get("Content-Length"))
	}
	rec.block = &warcBlock{in: w.in, left: n}
	return rec, nil
}

// A warcBlock reads the block of a record. One that ends early is short.
type warcBlock struct {
	in    *bufio.Reader
	left  int64
	ended bool
}

func (b *warcBlock) Read(p []byte) (int, error) {
	if b.ended || b.left == 0 {
		return 0, io.EOF
	}
	n, err := b.in.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	b.ended = err != nil
	return n, err
}

func (b *warcBlock) short() bool { return b.ended && b.left > 0 }

// readHead reads a first line and the header lines after it, up to an empty line or the end. It takes
// bare line feeds and folded lines, passes over lines without a colon, and reads values that are not
// UTF-8 as windows-1252, as most of them are. A head that never ends is errHead.
func readHead(in *bufio.Reader) (first string, header http.Header, err error) {
	header = http.Header{}
	name, size := "", 0
	for n := 0; ; n++ {
		line, err := readLine(in)
		if err != nil && (!errors.Is(err, io.EOF) || line == "") {
			if errors.Is(err, io.EOF) && n > 0 {
				return first, header, nil
			}
			return "", nil, err
		}
		if size += len(line); size > maxHead {
			return "", nil, fmt.Errorf("%w: longer than %d bytes", errHead, maxHead)
		}
		switch {
		case n == 0:
			first = line
		case line == "":
			return first, header, nil
		case (line[0] == ' ' || line[0] == '\t') && name != "":
			last := header[name]
			last[len(last)-1] += " " + strings.TrimSpace(line)
		default:
			field, value, ok := strings.Cut(line, ":")
			if field = strings.TrimSpace(field); !ok || field == "" || strings.ContainsAny(field, " \t") {
				name = ""
				continue
			}
			name = http.CanonicalHeaderKey(field)
			header[name] = append(header[name], strings.TrimSpace(value))
		}
	}
}

// readLine reads one line without its end.
func readLine(in *bufio.Reader) (string, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			line = bytes.TrimRight(line, "\r\n")
			if !utf8.Valid(line) {
				return decodeAs("windows-1252", line), err
			}
			return string(line), err
		}
		if len(line) > maxHeadLine {
			return "", fmt.Errorf("%w: a line is longer than %d bytes", errHead, maxHeadLine)
		}
	}
}

// A countReader counts what was read and keeps the error that ended it, if that is not io.EOF.
type countReader struct {
	r   io.Reader
	n   int64
	err error
}

func (c *countReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		c.err = err
	}
	return n, err
}

// rewindable is how far back a tapeReader can go.
const rewindable = 128 << 10

// A tapeReader is a countReader that can go back a little.
type tapeReader struct {
	countReader
	tape  []byte // the last bytes read
	again []byte // of these, the ones to be read again
}

func (t *tapeReader) Read(p []byte) (int, error) {
	if len(t.again) > 0 {
		n := copy(p, t.again)
		t.again = t.again[n:]
		t.n += int64(n)
		return n, nil
	}
	n, err := t.countReader.Read(p)
	if t.tape = append(t.tape, p[:n]...); len(t.tape) > 2*rewindable {
		t.tape = append(t.tape[:0], t.tape[len(t.tape)-rewindable:]...)
	}
	return n, err
}

// rewind goes back to a place, or as near to it as it can.
func (t *tapeReader) rewind(to int64) {
	end := t.n + int64(len(t.again))
	back := min(end-to, int64(len(t.tape)))
	t.again = t.tape[int64(len(t.tape))-back:]
	t.n = end - back
}

// A span is a part of the uncompressed file.
type span struct{ from, to int64 }

// doubtful is how much of what a member gave before its damage showed may be wrong.
const doubtful = 64 << 10

// A gunzip reads the gzip members of a file as one stream. Where a member is damaged or something else
// lies between members it notes the place and pauses: it answers io.EOF, so that no record swallows
// what follows it, until the reader clears paused or the file is done. A member that was cut is read
// into the one after it before that shows, so the next is looked for from the start of the damaged one.
type gunzip struct {
	in    *bufio.Reader
	file  *tapeReader
	note  func(format string, args ...any)
	z     *gzip.Reader
	start int64 // of the member that is open
	out   int64 // bytes of the stream so far
	from  int64 // of these, before the member that is open
	bad   []span

	open   bool
	seek   bool // the next member has to be looked for
	lost   bool // no member was whole since the last damage
	paused bool
	done   bool
}

func (g *gunzip) offset() int64 { return g.file.n - int64(g.in.Buffered()) }

func (g *gunzip) Read(p []byte) (int, error) {
	for {
		if g.paused || g.done {
			return 0, io.EOF
		}
		if !g.open {
			if err := g.member(); err != nil {
				return 0, err
			}
		}
		n, err := g.z.Read(p)
		g.out += int64(n)
		switch {
		case err == nil:
			return n, nil
		case errors.Is(err, io.EOF):
			g.open, g.lost = false, false
			if n > 0 {
				return n, nil
			}
		default:
			return n, g.damage(err)
		}
	}
}

// member opens the next member. It returns io.EOF at the end of the file and where it pauses.
func (g *gunzip) member() error {
	if head, err := g.in.Peek(2); len(head) == 0 {
		g.done = g.file.err == nil
		return err
	} else if !g.seek && string(head) == "\x1f\x8b" {
		return g.begin()
	}
	start, padding := g.offset(), true
	for {
		window, err := g.in.Peek(4 << 10)
		i := bytes.Index(window, []byte("\x1f\x8b\x08"))
		skip := i
		switch {
		case i < 0 && err != nil:
			skip = len(window)
		case i < 0:
			skip = len(window) - 2 // a member may have begun there
		}
		padding = padding && len(bytes.Trim(window[:skip], "\x00")) == 0
		if _, err := g.in.Discard(skip); err != nil {
			return err // unreachable: these bytes were just peeked
		}
		if i < 0 && err == nil {
			continue
		}
		if !g.lost && !padding {
			g.note("no gzip member in bytes %d to %d of the file", start, g.offset())
		}
		g.seek = false
		if i < 0 {
			g.done = g.file.err == nil
			return err
		}
		if err := g.begin(); err != nil {
			return err
		}
		g.paused = true
		return io.EOF
	}
}

// begin begins to read the member whose first bytes come next.
func (g *gunzip) begin() error {
	g.start, g.from = g.offset(), g.out
	var err error
	if g.z == nil {
		g.z, err = gzip.NewReader(g.in)
	} else {
		err = g.z.Reset(g.in)
	}
	if err != nil {
		return g.damage(err)
	}
	g.z.Multistream(false)
	g.open = true
	return nil
}

// damage notes an error of a member and pauses; an error of the file is returned.
func (g *gunzip) damage(err error) error {
	if g.file.err != nil {
		return g.file.err
	}
	if !g.lost {
		g.note("gzip member at byte %d of the file is damaged: %s", g.start, err)
	}
	if from := max(g.from, g.out-doubtful); from < g.out {
		g.bad = append(g.bad, span{from, g.out})
	}
	g.open, g.seek, g.lost, g.paused = false, true, true, true
	g.file.rewind(g.start + 1)
	g.in.Reset(g.file)
	return io.EOF
}
