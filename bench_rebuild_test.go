//go:build unix

package assay

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"codeberg.org/readeck/go-readability/v2"
	"github.com/PuerkitoBio/goquery"
	"github.com/klauspost/compress/zstd"

	"assay/corpus"
	"assay/fetch"
	"assay/scrapers"
)

// rebuildPages is how many stored pages BenchmarkRebuild parses again; ASSAY_BENCH_PAGES says another
// number. The bar speaks of 16,000.
func rebuildPages(b *testing.B) int {
	if s := os.Getenv("ASSAY_BENCH_PAGES"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			b.Fatalf("ASSAY_BENCH_PAGES is %q, no number of pages", s)
		}
		return n
	}
	if testing.Short() {
		return 200
	}
	return 2000
}

// BenchmarkRebuild is bar 5: a build with a bumped site version over stored pages, each of which is
// parsed again, against a scan of a file of zstd frames with the same pages.
//
//	parse-wall-x-raw  with the site's own parser, of a scan by one goroutine per CPU that parses each page and
//	                  reads six fields (bar: at most 1.6)
//	text-wall-x-raw   with one that extracts the article, of a scan by one goroutine per CPU that runs the
//	                  extractor on each page (bar: at most 1.2)
//	scan-wall-x-raw   with a parser that does nothing, of a scan by one goroutine that decompresses alone: what
//	                  the records beside a page cost; no bar, for a page that is parsed costs ten such scans
//	requests          bar: 0
func BenchmarkRebuild(b *testing.B) {
	n := rebuildPages(b)
	m := newPageMaker()
	raw := writeFrames(b, m, n)
	w := benchWorkspace(b, "recipe:\n  name: bench\n  discover: [stored]\n  speakers: []\n  dates: {from: \"\", to: \"\"}\n", Override{Key: "runtime.contact", Value: "bench@bench.example"})
	defer w.Close()
	storePages(b, w, m, n)

	site := &scrapers.All[slices.IndexFunc(scrapers.All, func(s scrapers.Site) bool { return s.Name == "politifact" })]
	was := *site
	defer func() { *site = was }()
	nothing := func(*fetch.Page) ([]corpus.Claim, error) { return nil, nil }
	rebuild := func(parse func(*fetch.Page) ([]corpus.Claim, error)) {
		site.Version++
		site.Parse = parse
		ourCrawl(b, w, n)
	}
	rebuild(was.Parse)
	extract := func(p *fetch.Page) ([]corpus.Claim, error) {
		_, err := p.Article()
		return nil, err
	}
	var scan, parse, text ratios
	for b.Loop() {
		for range pairsOf(b) {
			rawScan := measure(b, func() { scanFrames(b, raw, n, 1, func([]byte) error { return nil }) })
			ourScan := measure(b, func() { rebuild(nothing) })
			scan.add(ourScan, rawScan)
			rawParse := measure(b, func() { scanFrames(b, raw, n, runtime.GOMAXPROCS(0), readFields) })
			ourParse := measure(b, func() { rebuild(was.Parse) })
			parse.add(ourParse, rawParse)
			rawText := measure(b, func() { scanFrames(b, raw, n, runtime.GOMAXPROCS(0), readArticle) })
			ourText := measure(b, func() { rebuild(extract) })
			text.add(ourText, rawText)
		}
	}
	b.ReportMetric(median(scan.wall), "scan-wall-x-raw")
	b.ReportMetric(median(scan.cpu), "scan-cpu-x-raw")
	b.ReportMetric(median(parse.wall), "parse-wall-x-raw")
	b.ReportMetric(median(parse.cpu), "parse-cpu-x-raw")
	b.ReportMetric(median(text.wall), "text-wall-x-raw")
	b.ReportMetric(median(text.cpu), "text-cpu-x-raw")
	b.ReportMetric(float64(w.fetch.Stats().Requests), "requests")
	b.ReportMetric(0, "ns/op")
}

func readFields(page []byte) error {
	doc, err := goquery.NewDocumentFromReader(bytes.NewReader(page))
	if err != nil {
		return err
	}
	if fields := sixFields(doc); fields[0] == "" || fields[2] != "false" || fields[5] == "" {
		return fmt.Errorf("a page gives %q", fields)
	}
	return nil
}

// readArticle is the extractor alone, as a raw loop calls it.
func readArticle(page []byte) error {
	at, err := url.Parse("https://www.politifact.com/")
	if err != nil {
		return err
	}
	_, err = readability.FromReader(bytes.NewReader(page), at)
	return err
}

// storePages imports the pages as a web archive.
func storePages(b *testing.B, w *Workspace, m *pageMaker, n int) {
	b.Helper()
	r, pw := io.Pipe()
	go func() {
		out := bufio.NewWriterSize(pw, 1<<20)
		for i := range n {
			page := m.page(i)
			head := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: %d\r\n\r\n", len(page))
			fmt.Fprintf(out, "WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-%012d>\r\nWARC-Target-URI: https://www.politifact.com%s\r\n"+
				"WARC-Date: 2023-04-01T00:00:00Z\r\nContent-Type: application/http; msgtype=response\r\nContent-Length: %d\r\n\r\n%s%s\r\n\r\n",
				i, benchPath(i), len(head)+len(page), head, page)
		}
		pw.CloseWithError(out.Flush()) // nil is the end
	}()
	rep, err := fetch.ImportWARC(b.Context(), w.store, "bench.warc", r, time.Now())
	if err != nil || rep.Stored != n {
		b.Fatalf("import: %+v, %v", rep, err)
	}
}

// writeFrames writes the pages as zstd frames, each behind its length, and returns the file.
func writeFrames(b *testing.B, m *pageMaker, n int) string {
	b.Helper()
	path := filepath.Join(b.TempDir(), "pages.zst")
	f, err := os.Create(path)
	if err != nil {
		b.Fatal(err)
	}
	out := bufio.NewWriterSize(f, 1<<20)
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		b.Fatal(err)
	}
	for i := range n {
		z := enc.EncodeAll(m.page(i), nil)
		out.Write(append(binary.LittleEndian.AppendUint32(nil, uint32(len(z))), z...))
	}
	if err := errors.Join(out.Flush(), f.Close(), enc.Close()); err != nil {
		b.Fatal(err)
	}
	return path
}

// scanFrames reads the file in order and gives each page to one of so many workers, which decodes it.
func scanFrames(b *testing.B, path string, n, workers int, do func(page []byte) error) {
	b.Helper()
	f, err := os.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	in := bufio.NewReaderSize(f, 1<<20)
	var mu sync.Mutex // of in and read
	read := 0
	next := func(buf []byte) ([]byte, bool, error) {
		mu.Lock()
		defer mu.Unlock()
		var size [4]byte
		if _, err := io.ReadFull(in, size[:]); err == io.EOF {
			return nil, false, nil
		} else if err != nil {
			return nil, false, err
		}
		buf = append(buf[:0], make([]byte, binary.LittleEndian.Uint32(size[:]))...)
		read++
		_, err := io.ReadFull(in, buf)
		return buf, true, err
	}
	work := func() error {
		dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1))
		if err != nil {
			return err
		}
		defer dec.Close()
		var frame, page []byte
		for {
			var ok bool
			if frame, ok, err = next(frame); err != nil || !ok {
				return err
			}
			if page, err = dec.DecodeAll(frame, page[:0]); err != nil {
				return err
			}
			if err := do(page); err != nil {
				return err
			}
		}
	}
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			if err := work(); err != nil {
				b.Error(err)
			}
		})
	}
	wg.Wait()
	if read != n {
		b.Errorf("%s holds %d pages, want %d", filepath.Base(path), read, n)
	}
}
