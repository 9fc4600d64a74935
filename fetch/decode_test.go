package fetch

import (
	"bytes"
	"compress/zlib"
	"errors"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// encode applies a coding to a body.
func encode(t testing.TB, coding string, body []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	var w io.WriteCloser
	var err error
	switch coding {
	case "gzip":
		w = gzip.NewWriter(&b)
	case "br":
		w = brotli.NewWriter(&b)
	case "zstd":
		w, err = zstd.NewWriter(&b)
	case "zlib":
		w = zlib.NewWriter(&b)
	case "flate":
		w, err = flate.NewWriter(&b, 6)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(body); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func header(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Add(pairs[i], pairs[i+1])
	}
	return h
}

func TestDecodeContent(t *testing.T) {
	text := []byte("<!doctype html>\n<p>" + words(500))
	pack := func(codings ...string) []byte {
		body := text
		for _, c := range codings {
			body = encode(t, c, body)
		}
		return body
	}
	for _, c := range []struct {
		name, url string
		header    http.Header
		body      []byte
	}{
		{"plain", "https://a.example/", nil, text},
		{"gzip", "https://a.example/", header("Content-Encoding", "gzip"), pack("gzip")},
		{"x-gzip in capitals", "https://a.example/", header("Content-Encoding", " X-GZIP "), pack("gzip")},
		{"brotli", "https://a.example/", header("Content-Encoding", "br"), pack("br")},
		{"zstd", "https://a.example/", header("Content-Encoding", "zstd"), pack("zstd")},
		{"deflate in zlib", "https://a.example/", header("Content-Encoding", "deflate"), pack("zlib")},
		{"deflate bare", "https://a.example/", header("Content-Encoding", "deflate"), pack("flate")},
		{"two codings", "https://a.example/", header("Content-Encoding", "br, gzip"), pack("br", "gzip")},
		{"two lines", "https://a.example/", header("Content-Encoding", "zstd", "Content-Encoding", "gzip"), pack("zstd", "gzip")},
		{"two members", "https://a.example/", header("Content-Encoding", "gzip"), append(encode(t, "gzip", text[:100]), encode(t, "gzip", text[100:])...)},
		{"padding after the member", "https://a.example/", header("Content-Encoding", "gzip"), append(pack("gzip"), make([]byte, 100)...)},
		{"identity", "https://a.example/", header("Content-Encoding", "identity"), text},
		{"a coding that is none", "https://a.example/", header("Content-Encoding", "utf-8"), text},
		{"gzip named but undone", "https://a.example/", header("Content-Encoding", "gzip"), text},
		{"brotli named but undone", "https://a.example/", header("Content-Encoding", "br"), text},
		{"zstd named but undone", "https://a.example/", header("Content-Encoding", "zstd"), text},
		{"deflate named but undone", "https://a.example/", header("Content-Encoding", "deflate"), text},
		{"gzip file by address", "https://a.example/map.xml.GZ?x=1", nil, pack("gzip")},
		{"gzip file by type", "https://a.example/map", header("Content-Type", "application/x-gzip; q=1"), pack("gzip")},
		{"gzip file, coded once more", "https://a.example/map.xml.gz", header("Content-Encoding", "gzip"), pack("gzip", "gzip")},
		{"gzip file that is none", "https://a.example/map.xml.gz", nil, text},
	} {
		for name, r := range map[string]io.Reader{"": bytes.NewReader(c.body), " byte by byte": iotest.OneByteReader(bytes.NewReader(c.body))} {
			got, err := decodeContent(c.header, c.url, r, 1<<20)
			if err != nil || !bytes.Equal(got, text) {
				t.Errorf("%s%s: %d bytes, %v; want %d", c.name, name, len(got), err, len(text))
			}
		}
	}
	got, err := decodeContent(nil, "https://a.example/f.bin", bytes.NewReader(pack("gzip")), 1<<20)
	if err != nil || !bytes.Equal(got, pack("gzip")) {
		t.Errorf("gzip that nothing names was undone: %v", err)
	}
	for _, coding := range []string{"gzip", "br", "zstd", "deflate"} {
		if got, err := decodeContent(header("Content-Encoding", coding), "https://a.example/", strings.NewReader(""), 10); err != nil || len(got) != 0 {
			t.Errorf("empty body with %s: %q, %v", coding, got, err)
		}
	}
}

func TestDecodeContentErrors(t *testing.T) {
	text := []byte(words(3000))
	cut := func(coding string) []byte { b := encode(t, coding, text); return b[:len(b)*2/3] }
	garbled := encode(t, "gzip", text)
	for i := len(garbled) / 2; i < len(garbled)/2+20; i++ {
		garbled[i] ^= 0x5a
	}
	for _, c := range []struct {
		name   string
		header http.Header
		body   []byte
		reason string
		some   bool // what could be read comes with the error
	}{
		{"gzip cut", header("Content-Encoding", "gzip"), cut("gzip"), ReasonTruncated, true},
		{"brotli cut", header("Content-Encoding", "br"), cut("br"), ReasonTruncated, true},
		{"deflate cut", header("Content-Encoding", "deflate"), cut("flate"), ReasonTruncated, true},
		{"zstd cut", header("Content-Encoding", "zstd"), cut("zstd"), ReasonTruncated, false},
		{"gzip cut in its header", header("Content-Encoding", "gzip"), encode(t, "gzip", text)[:5], ReasonTruncated, false},
		{"gzip garbled", header("Content-Encoding", "gzip"), garbled, ReasonTruncated, false},
		{"five codings", header("Content-Encoding", "gzip, gzip, gzip, gzip, gzip"), text, ReasonTooLarge, false},
	} {
		got, err := decodeContent(c.header, "https://a.example/", bytes.NewReader(c.body), 1<<20)
		var e *Error
		if !errors.As(err, &e) || e.Reason != c.reason || e.URL != "https://a.example/" {
			t.Errorf("%s: error %v, want %s", c.name, err, c.reason)
		}
		if c.some && (len(got) == 0 || !bytes.HasPrefix(text, got[:min(len(got), 500)])) {
			t.Errorf("%s: %d bytes were read, want the beginning", c.name, len(got))
		}
	}
	broken := errors.New("disk on fire")
	for _, h := range []http.Header{nil, header("Content-Encoding", "gzip")} {
		_, err := decodeContent(h, "https://a.example/", io.MultiReader(bytes.NewReader(encode(t, "gzip", text)[:60]), iotest.ErrReader(broken)), 1<<20)
		var e *Error
		if !errors.Is(err, broken) || errors.As(err, &e) {
			t.Errorf("a body that cannot be read: %v, want the error of the body itself", err)
		}
	}
}

// A zeros reader yields n zero bytes.
type zeros struct{ n int64 }

func (z *zeros) Read(p []byte) (int, error) {
	if z.n == 0 {
		return 0, io.EOF
	}
	p = p[:min(int64(len(p)), z.n)]
	clear(p)
	z.n -= int64(len(p))
	return len(p), nil
}

// bomb is gzip of n MiB of zeros. It is put together from one compressed megabyte, repeated: after a
// flush the next megabyte compresses to the same bytes.
func bomb(t testing.TB, megabytes int) io.Reader {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	sizes := make([]int, 4)
	for i := range sizes {
		if _, err := io.Copy(w, &zeros{1 << 20}); err != nil {
			t.Fatal(err)
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		sizes[i] = b.Len()
	}
	head, again := b.Bytes()[:sizes[2]], b.Bytes()[sizes[2]:sizes[3]]
	parts := []io.Reader{bytes.NewReader(head)}
	for range megabytes - 3 {
		parts = append(parts, bytes.NewReader(again))
	}
	return io.MultiReader(parts...)
}

// peak returns how many bytes the process has taken from the system at most.
func peak(t testing.TB) int64 {
	t.Helper()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.Sys)
}

// The kind: a small compressed body expands without bound. 2 GiB of zeros as a gzip file and as a coded
// page, then by other codings, stacked, and inside an archive; and the boundary, a body of exactly the
// limit.
func TestHD05Bombs(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine alone, and long: nothing for -short")
	}
	const limit = 10 << 20
	small := int64(300 << 20)
	var br, zs bytes.Buffer
	w := brotli.NewWriterLevel(&br, 1)
	if _, err := io.Copy(w, &zeros{small}); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	z, err := zstd.NewWriter(&zs, zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(z, &zeros{small}); err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	before := peak(t)
	for _, c := range []struct {
		name, url string
		header    http.Header
		body      io.Reader
	}{
		{"gzip file", "https://a.example/sitemap.xml.gz", header("Content-Type", "application/gzip"), bomb(t, 2048)},
		{"coded page", "https://a.example/page", header("Content-Encoding", "gzip"), bomb(t, 2048)},
		{"brotli", "https://a.example/page", header("Content-Encoding", "br"), &br},
		{"zstd", "https://a.example/page", header("Content-Encoding", "zstd"), &zs},
		{"bomb under a coding", "https://a.example/page", header("Content-Encoding", "gzip, deflate"), bytes.NewReader(encode(t, "zlib", readAllOf(t, bomb(t, 2048))))},
		{"bomb in a bomb", "https://a.example/page", header("Content-Encoding", "gzip, gzip"), bytes.NewReader(encode(t, "gzip", readAllOf(t, bomb(t, 2048))))},
		{"plain", "https://a.example/page", nil, &zeros{2 << 30}},
	} {
		runtime.GC() // what building the bomb left behind is not ours
		got, err := decodeContent(c.header, c.url, c.body, limit)
		var e *Error
		if !errors.As(err, &e) || e.Reason != ReasonTooLarge || got != nil {
			t.Errorf("%s: %d bytes, error %v; want none, %s", c.name, len(got), err, ReasonTooLarge)
		}
	}
	if grown := peak(t) - before; grown > 64<<20 {
		t.Errorf("memory grew by %d MiB, want less than 64", grown>>20)
	}
	for _, coding := range []string{"gzip", "br", "zstd"} {
		body := encode(t, coding, make([]byte, limit))
		if got, err := decodeContent(header("Content-Encoding", coding), "https://a.example/", bytes.NewReader(body), limit); err != nil || len(got) != limit {
			t.Errorf("%s of exactly the limit: %d bytes, %v", coding, len(got), err)
		}
		if _, err := decodeContent(header("Content-Encoding", coding), "https://a.example/", bytes.NewReader(body), limit-1); err == nil {
			t.Errorf("%s of the limit and a byte: no error", coding)
		}
	}
}

func readAllOf(t testing.TB, r io.Reader) []byte {
	t.Helper()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func FuzzDecode(f *testing.F) {
	text := []byte("<p>" + words(20))
	for _, coding := range []string{"gzip", "br", "zstd", "zlib", "flate"} {
		f.Add(coding, encode(f, coding, text))
	}
	f.Add("br, gzip", encode(f, "gzip", encode(f, "br", text)))
	f.Add("gzip", text)
	f.Fuzz(func(t *testing.T, coding string, body []byte) {
		const limit = 1 << 16
		h := http.Header{"Content-Encoding": {strings.NewReplacer("zlib", "deflate", "flate", "deflate").Replace(coding)}}
		got, err := decodeContent(h, "https://a.example/x.gz", bytes.NewReader(body), limit)
		var e *Error
		if err != nil && !errors.As(err, &e) {
			t.Errorf("error %v is not an *Error", err)
		}
		if len(got) > limit {
			t.Errorf("%d bytes, more than the limit", len(got))
		}
	})
}
