package fetch

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

const (
	// maxCodings bounds how many content codings may lie on top of each other.
	maxCodings = 4
	// zstdWindow is the largest window that the registration of the coding for HTTP allows.
	zstdWindow = 8 << 20
)

// decodeContent undoes the content codings of a body (gzip, br, zstd, deflate, also stacked) and the
// gzip of a body that is nothing else, as sitemap.xml.gz is. Codings that are named but absent are
// passed over, because archives decode bodies and keep headers. It fails with *Error: too_large as
// soon as a coding has produced more than limit bytes; truncated when the body is not what its header
// says, or when it ends early, and then together with what could be read. Any other error is the body's.
// Memory stays below about twice the limit.
func decodeContent(header http.Header, address string, body io.Reader, limit int64) ([]byte, error) {
	r, err := openContent(header, address, body, limit)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	out, err := readAll(r.bounded)
	switch {
	case err == nil:
		return out, nil
	case errors.Is(err, gzip.ErrHeader) && len(out) > 0:
		// Servers pad compressed bodies. What follows a whole member and is no member is not content.
		return out, nil
	case errors.Is(err, io.ErrUnexpectedEOF):
		return out, r.failed(err)
	}
	return nil, r.failed(err)
}

// A contentReader reads a body with its content codings undone. Its errors are those of decodeContent.
type contentReader struct {
	*bounded
	address string
	limit   int64
	coding  string // the outermost that was undone
	raw     *countReader
	close   []func() error
	read    bool // something was
}

// openContent opens a body for reading, a piece at a time, in the memory that its decompressors take.
func openContent(header http.Header, address string, body io.Reader, limit int64) (*contentReader, error) {
	c := &contentReader{address: address, limit: limit, coding: "identity", raw: &countReader{r: body}}
	codings := contentCodings(header)
	if len(codings) > maxCodings {
		return nil, &Error{URL: address, Reason: ReasonTooLarge, Detail: fmt.Sprintf("%d content codings on top of each other", len(codings))}
	}
	r := bufio.NewReader(c.raw)
	for _, name := range slices.Backward(codings) {
		decoded, err := undo(name, r)
		if err != nil {
			c.coding = name
			_ = c.Close()
			return nil, c.failed(err)
		}
		if decoded != nil {
			c.close = append(c.close, decoded.Close)
			r, c.coding = bufio.NewReader(&bounded{r: decoded, left: limit}), name
		}
	}
	if magic, _ := r.Peek(2); string(magic) == "\x1f\x8b" && gzipFile(header, address) {
		c.coding = "gzip"
		z, err := gzip.NewReader(r)
		if err != nil {
			_ = c.Close()
			return nil, c.failed(err)
		}
		c.close = append(c.close, z.Close)
		r = bufio.NewReader(z)
	}
	c.bounded = &bounded{r: r, left: limit}
	return c, nil
}

// Read reads decoded bytes. The padding that some servers put behind a compressed body ends it.
func (c *contentReader) Read(p []byte) (int, error) {
	n, err := c.bounded.Read(p)
	switch {
	case err == nil, errors.Is(err, io.EOF):
	case errors.Is(err, gzip.ErrHeader) && (n > 0 || c.read):
		err = io.EOF
	default:
		err = c.failed(err)
	}
	c.read = c.read || n > 0
	return n, err
}

// Close gives back what the decompressors took; the body stays the caller's.
func (c *contentReader) Close() error {
	for _, end := range slices.Backward(c.close) {
		_ = end() // a reader's Close reports nothing new
	}
	c.close = nil
	return nil
}

// failed says what an error of reading means.
func (c *contentReader) failed(err error) error {
	switch {
	case errors.Is(err, errTooLarge):
		return &Error{URL: c.address, Reason: ReasonTooLarge, Detail: fmt.Sprintf("more than %d bytes when decoded", c.limit)}
	case c.raw.err != nil && !errors.Is(c.raw.err, io.ErrUnexpectedEOF):
		return fmt.Errorf("read the body of %s: %w", c.address, c.raw.err)
	}
	return &Error{URL: c.address, Reason: ReasonTruncated, Detail: c.coding + ": " + err.Error(), Err: err}
}

// contentCodings lists the codings that we can undo, in the order in which they were applied.
func contentCodings(header http.Header) []string {
	var out []string
	for _, line := range header.Values("Content-Encoding") {
		for _, c := range strings.Split(line, ",") {
			switch c = strings.ToLower(strings.TrimSpace(c)); c {
			case "x-gzip":
				out = append(out, "gzip")
			case "gzip", "br", "zstd", "deflate":
				out = append(out, c)
			}
		}
	}
	return out
}

// gzipFile reports whether a response holds a gzip file: by its type, or by its address.
func gzipFile(header http.Header, address string) bool {
	switch mediaType(header.Get("Content-Type")) {
	case "application/gzip", "application/x-gzip", "application/gzip-compressed", "application/x-gunzip":
		return true
	}
	u, err := url.Parse(address)
	return err == nil && strings.HasSuffix(strings.ToLower(u.Path), ".gz")
}

// undo returns a reader of the decoded body, or nil if the body does not have the coding.
func undo(coding string, r *bufio.Reader) (io.ReadCloser, error) {
	head, _ := r.Peek(512)
	switch coding {
	case "gzip":
		if !bytes.HasPrefix(head, []byte("\x1f\x8b")) {
			return nil, nil
		}
		return gzip.NewReader(r)
	case "zstd":
		// Skippable frames may come first; their magic numbers differ in one half byte.
		if len(head) < 4 || !bytes.Equal(head[:4], []byte("\x28\xb5\x2f\xfd")) && (head[0]&0xf0 != 0x50 || !bytes.Equal(head[1:4], []byte("\x2a\x4d\x18"))) {
			return nil, nil
		}
		z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(zstdWindow))
		if err != nil {
			return nil, err
		}
		return z.IOReadCloser(), nil
	case "deflate":
		switch {
		case len(head) == 0 || plainText(head):
			return nil, nil
		case len(head) > 1 && head[0]&0x0f == 8 && (int(head[0])<<8|int(head[1]))%31 == 0:
			return zlib.NewReader(r)
		default:
			return flate.NewReader(r), nil // many servers send the bare stream
		}
	default: // br has no magic number
		if len(head) == 0 || plainText(head) {
			return nil, nil
		}
		return io.NopCloser(brotli.NewReader(r)), nil
	}
}

// plainText reports whether bytes are the start of a document rather than of a compressed stream.
func plainText(head []byte) bool {
	if t := bytes.TrimLeft(head, "\ufeff \t\r\n"); len(t) == 0 || t[0] != '<' && t[0] != '{' && t[0] != '[' {
		return false
	}
	for i := 0; i < len(head); {
		r, n := utf8.DecodeRune(head[i:])
		if r == utf8.RuneError && n == 1 && len(head)-i >= utf8.UTFMax || r < ' ' && r != '\t' && r != '\n' && r != '\r' && r != '\f' {
			return false
		}
		i += n
	}
	return true
}

var errTooLarge = errors.New("body is larger than its limit")

// bounded reads at most left bytes and fails with errTooLarge when there are more.
type bounded struct {
	r    io.Reader
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.r.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, errTooLarge
	}
	return n, err
}

// readAll reads r to its end without the spare capacity of a growing buffer, so that a body which ends
// as too large never takes more than its limit; nothing of it is returned. What was read before any
// other error is returned with it.
func readAll(r io.Reader) ([]byte, error) {
	var chunks [][]byte
	chunk := make([]byte, 0, 16<<10)
	for {
		n, err := r.Read(chunk[len(chunk):cap(chunk)])
		chunk = chunk[:len(chunk)+n]
		if errors.Is(err, errTooLarge) {
			return nil, err
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			if len(chunks) == 0 {
				return chunk, err
			}
			return bytes.Join(append(chunks, chunk), nil), err
		}
		if len(chunk) == cap(chunk) {
			chunks = append(chunks, chunk)
			chunk = make([]byte, 0, min(2*cap(chunk), 1<<20))
		}
	}
}
