package fetch

import (
	"archive/zip"
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path"
	"strings"
	"time"
)

// Paths inside a WACZ file.
const (
	waczWARC    = "archive/data.warc.gz"
	waczIndex   = "indexes/index.cdxj"
	waczPages   = "pages/pages.jsonl"
	waczPackage = "datapackage.json"
	waczDigest  = "datapackage-digest.json"
	waczVersion = "1.1.1"
)

// A WACZ writes a WACZ file, a zip of one WARC file with its index and its list of pages. Use WARC to
// its end first, tell Add of every capture, and then Close. The same captures give the same bytes.
type WACZ struct {
	WARC io.Writer // the WARC file inside

	o     WACZOptions
	zip   *zip.Writer
	warc  *waczFile
	index *CDXJ
	pages *os.File
	lines *bufio.Writer
	files []waczResource
}

// WACZOptions describe a WACZ file.
type WACZOptions struct {
	Title    string
	Software string
	Created  time.Time
}

// waczResource is an entry of datapackage.json.
type waczResource struct {
	Name  string `json:"name"`
	Path  string `json:"path"`
	Hash  string `json:"hash"`
	Bytes int64  `json:"bytes"`
}

// A waczFile sums what is written into a file of the zip.
type waczFile struct {
	path string
	w    io.Writer
	hash hash.Hash
	n    int64
}

func (f *waczFile) Write(p []byte) (int, error) {
	n, err := f.w.Write(p)
	f.hash.Write(p[:n])
	f.n += int64(n)
	return n, err
}

// NewWACZ starts a file on out. Discard it or Close it.
func NewWACZ(out io.Writer, o WACZOptions) (*WACZ, error) {
	o.Created = o.Created.UTC().Truncate(time.Second)
	w := &WACZ{o: o, zip: zip.NewWriter(out), index: NewCDXJ(path.Base(waczWARC))}
	var err error
	if w.pages, err = os.CreateTemp("", "assay-pages-*"); err != nil {
		return nil, fmt.Errorf("list the pages: %w", err)
	}
	w.lines = bufio.NewWriter(w.pages)
	if _, err := w.lines.WriteString(`{"format":"json-pages-1.0","id":"pages","title":"All Pages","hasText":false}` + "\n"); err != nil {
		return nil, errors.Join(err, w.Discard())
	}
	if w.warc, err = w.create(waczWARC, zip.Store); err != nil {
		return nil, errors.Join(err, w.Discard())
	}
	w.WARC = w.warc
	return w, nil
}

func (w *WACZ) create(name string, method uint16) (*waczFile, error) {
	f, err := w.zip.CreateHeader(&zip.FileHeader{Name: name, Method: method, Modified: w.o.Created})
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", name, err)
	}
	return &waczFile{path: name, w: f, hash: sha256.New()}, nil
}

// done lists a file that is written.
func (w *WACZ) done(f *waczFile) {
	name := strings.ToLower(path.Base(f.path))
	w.files = append(w.files, waczResource{Name: name, Path: f.path, Hash: "sha256:" + hex.EncodeToString(f.hash.Sum(nil)), Bytes: f.n})
}

// Add puts a capture into the index and, if it is a page, into the list of pages.
func (w *WACZ) Add(c Capture) error {
	if err := w.index.Add(c); err != nil || !c.Page {
		return err
	}
	id := sha256.Sum256([]byte(c.URL + " " + warcDate(c.At)))
	line, err := json.Marshal(struct {
		ID   string `json:"id"`
		URL  string `json:"url"`
		TS   string `json:"ts"`
		Size int64  `json:"size"`
	}{hex.EncodeToString(id[:8]), c.URL, warcDate(c.At.Truncate(time.Second)), c.Size})
	if err != nil {
		return fmt.Errorf("list the page %s: %w", c.URL, err)
	}
	_, err = w.lines.Write(append(line, '\n'))
	return err
}

// Discard removes what Close would have; what was written to out is no WACZ file.
func (w *WACZ) Discard() error {
	if w.pages == nil {
		return nil
	}
	err := errors.Join(w.index.Close(), w.pages.Close(), os.Remove(w.pages.Name()))
	w.pages = nil
	return err
}

// Close writes the index, the pages and what describes them.
func (w *WACZ) Close() (err error) {
	defer func() { err = errors.Join(err, w.Discard()) }()
	w.done(w.warc)
	if err := w.put(waczIndex, func(out io.Writer) error {
		_, err := w.index.WriteTo(out)
		return err
	}); err != nil {
		return err
	}
	if err := w.lines.Flush(); err != nil {
		return fmt.Errorf("list the pages: %w", err)
	}
	if _, err := w.pages.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("list the pages: %w", err)
	}
	if err := w.put(waczPages, func(out io.Writer) error {
		_, err := io.Copy(out, w.pages)
		return err
	}); err != nil {
		return err
	}
	created := w.o.Created.Format(time.RFC3339)
	pack, err := indented(map[string]any{
		"profile": "data-package", "wacz_version": waczVersion, "title": w.o.Title, "software": w.o.Software,
		"created": created, "modified": created, "resources": w.files,
	})
	if err != nil {
		return fmt.Errorf("write %s: %w", waczPackage, err)
	}
	sum := sha256.Sum256(pack)
	digest, err := indented(map[string]string{"path": waczPackage, "hash": "sha256:" + hex.EncodeToString(sum[:])})
	if err != nil {
		return fmt.Errorf("write %s: %w", waczDigest, err)
	}
	for _, f := range []struct {
		name string
		data []byte
	}{{waczPackage, pack}, {waczDigest, digest}} {
		if err := w.put(f.name, func(out io.Writer) error {
			_, err := out.Write(f.data)
			return err
		}); err != nil {
			return err
		}
	}
	if err := w.zip.Close(); err != nil {
		return fmt.Errorf("write the table of contents: %w", err)
	}
	return nil
}

// put writes a whole file and lists it.
func (w *WACZ) put(name string, write func(io.Writer) error) error {
	f, err := w.create(name, zip.Deflate)
	if err != nil {
		return err
	}
	if err := write(f); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	w.done(f)
	return nil
}

func indented(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(v)
	return b.Bytes(), err
}

// OpenWARCs calls read with every WARC file in a WACZ file, in the order of the zip, and reports how
// many there were. Of a file that is cut, and so has lost its table of contents, what is there of the
// first one is read, and the error is ErrDamaged.
func OpenWARCs(wacz string, read func(name string, r io.Reader) error) (files int, err error) {
	z, err := zip.OpenReader(wacz)
	if errors.Is(err, zip.ErrFormat) {
		files, readErr := salvage(wacz, read)
		return files, errors.Join(fmt.Errorf("open %s: it is cut off: %w", wacz, ErrDamaged), readErr)
	}
	if err != nil {
		return 0, fmt.Errorf("open %s: %w", wacz, err)
	}
	defer func() { err = errors.Join(err, z.Close()) }()
	for _, f := range z.File {
		if !strings.HasPrefix(f.Name, "archive/") || !strings.HasSuffix(f.Name, ".warc.gz") && !strings.HasSuffix(f.Name, ".warc") {
			continue
		}
		files++
		r, err := f.Open()
		if err != nil {
			return files, fmt.Errorf("open %s in %s: %w", f.Name, wacz, err)
		}
		if err := errors.Join(read(path.Base(f.Name), r), r.Close()); err != nil {
			return files, err
		}
	}
	if files == 0 {
		return 0, fmt.Errorf("%s: no WARC file is in its folder archive/", wacz)
	}
	return files, nil
}

// salvage reads the first file of a zip by its local header, if that is a WARC file as it stands.
func salvage(wacz string, read func(name string, r io.Reader) error) (files int, err error) {
	f, err := os.Open(wacz)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	in := bufio.NewReaderSize(f, 1<<20)
	// APPNOTE.TXT 4.3.7: signature, ..., method at 8, ..., length of the name at 26 and of the extra field at 28.
	header := make([]byte, 30)
	if _, err := io.ReadFull(in, header); err != nil || string(header[:4]) != "PK\x03\x04" || header[8] != byte(zip.Store) || header[9] != 0 {
		return 0, nil //nolint:nilerr // nothing to be saved
	}
	name := make([]byte, int(header[26])|int(header[27])<<8)
	if _, err := io.ReadFull(in, name); err != nil || !strings.HasPrefix(string(name), "archive/") {
		return 0, nil //nolint:nilerr // nothing to be saved
	}
	if _, err := in.Discard(int(header[28]) | int(header[29])<<8); err != nil {
		return 0, nil //nolint:nilerr // nothing to be saved
	}
	return 1, read(path.Base(string(name)), in)
}

// IsZip reports whether a file begins as a zip does.
func IsZip(file string) (bool, error) {
	f, err := os.Open(file)
	if err != nil {
		return false, err
	}
	defer f.Close()
	var magic [4]byte
	if _, err := io.ReadFull(f, magic[:]); err != nil {
		return false, nil //nolint:nilerr // shorter than a zip can be
	}
	return string(magic[:2]) == "PK", nil
}
