package fetch

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/klauspost/compress/gzip"
)

// warcVersion starts every record that we write.
const warcVersion = "WARC/1.1"

// A Record is one WARC record to be written: what its header says and what its block holds. Its id is
// made from its type, address, date and Name, so that the same record has the same id everywhere.
type Record struct {
	Type        string // warcinfo, request, response, revisit, resource or metadata
	URI         string // WARC-Target-URI; empty for a warcinfo
	Date        time.Time
	ContentType string
	Name        string  // tells apart records of one type, address and date
	Fields      []Field // further header fields, in the order in which they are written
	Head        []byte  // the block, or the HTTP head before Payload
	Payload     Payload // may be nil
}

// A Field is one line of a record's header.
type Field struct{ Name, Value string }

// A Payload is the part of a block after the HTTP head. Open is called twice: the digest of a block
// stands before the block.
type Payload interface {
	Open() (io.Reader, error)
	Size() int64
}

// ID returns the record's WARC-Record-ID without angle brackets: a UUID of version 8 (RFC 9562) from
// the first bits of a SHA-256.
func (r Record) ID() string {
	h := sha256.New()
	for _, part := range []string{r.Type, r.URI, warcDate(r.Date), r.Name} {
		fmt.Fprintf(h, "%d %s\n", len(part), part)
	}
	id := h.Sum(nil)[:16]
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}

// warcDate writes a time as WARC 1.1 has it: UTC, with as many digits of a second as it takes.
func warcDate(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// A Placed record is where a record lies in a file.
type Placed struct {
	Offset, Length int64 // of its gzip member
}

// A WARCWriter writes records, each as a gzip member of its own, so that readers can start at any of
// them. The same records give the same bytes. It holds no record in memory.
type WARCWriter struct {
	out     io.Writer
	offset  int64
	zip     *gzip.Writer
	buf     *bufio.Writer
	Records int // written so far
}

// NewWARCWriter writes to w, which stays the caller's to close.
func NewWARCWriter(w io.Writer) *WARCWriter {
	zip := gzip.NewWriter(nil)
	return &WARCWriter{out: w, zip: zip, buf: bufio.NewWriterSize(zip, 64<<10)}
}

// Write writes one record with the digest of its block.
func (w *WARCWriter) Write(r Record) (Placed, error) {
	at, err := w.write(r)
	if err != nil {
		return at, fmt.Errorf("write the %s record of %s: %w", r.Type, r.URI, err)
	}
	w.Records++
	return at, nil
}

func (w *WARCWriter) write(r Record) (Placed, error) {
	block := sha256.New()
	block.Write(r.Head)
	size := int64(len(r.Head))
	if r.Payload != nil {
		body, err := r.Payload.Open()
		if err != nil {
			return Placed{}, err
		}
		n, err := io.Copy(block, body)
		if err != nil {
			return Placed{}, err
		}
		if n != r.Payload.Size() {
			return Placed{}, fmt.Errorf("its payload has %d bytes, not %d", n, r.Payload.Size())
		}
		size += n
	}
	var head bytes.Buffer
	line := func(name, value string) { fmt.Fprintf(&head, "%s: %s\r\n", name, value) }
	head.WriteString(warcVersion + "\r\n")
	line("WARC-Type", r.Type)
	line("WARC-Record-ID", "<"+r.ID()+">")
	line("WARC-Date", warcDate(r.Date))
	if r.URI != "" {
		line("WARC-Target-URI", r.URI)
	}
	for _, f := range r.Fields {
		line(f.Name, f.Value)
	}
	line("WARC-Block-Digest", "sha256:"+hex.EncodeToString(block.Sum(nil)))
	if r.ContentType != "" {
		line("Content-Type", r.ContentType)
	}
	line("Content-Length", strconv.FormatInt(size, 10))
	head.WriteString("\r\n")
	head.Write(r.Head)

	count := &countWriter{w: w.out}
	w.zip.Reset(count)
	w.buf.Reset(w.zip)
	_, err := head.WriteTo(w.buf)
	if err == nil && r.Payload != nil {
		var body io.Reader
		if body, err = r.Payload.Open(); err == nil {
			_, err = io.Copy(w.buf, body)
		}
	}
	if err == nil {
		_, err = w.buf.WriteString("\r\n\r\n")
	}
	if err == nil {
		err = w.buf.Flush()
	}
	if err == nil {
		err = w.zip.Close()
	}
	at := Placed{Offset: w.offset, Length: count.n}
	w.offset += count.n
	return at, err
}

// Size returns the bytes written so far.
func (w *WARCWriter) Size() int64 { return w.offset }

// A countWriter counts what is written.
type countWriter struct {
	w io.Writer
	n int64
}

func (c *countWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}
