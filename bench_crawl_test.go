//go:build unix

package assay

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/PuerkitoBio/goquery"
	"github.com/klauspost/compress/zstd"
)

// The crawl of bar 1: one page at a time from each of 16 hosts is 16 in flight.
const benchHosts = 16

func crawlPages() int {
	if testing.Short() {
		return 10 * benchHosts
	}
	return 90 * benchHosts
}

// BenchmarkCrawl is bar 1: a build from listings to claims, with robots.txt, leads, records and all,
// against a loop of net/http and goquery over the same listings and pages, which hashes each body and
// appends it compressed. The web is a process of its own, so that its work is not counted.
//
//	cpu-x-raw   our CPU seconds, of the loop's (bar: at most 1.20)
//	wall-x-raw  bar: at most 1.25
func BenchmarkCrawl(b *testing.B) {
	if os.Getenv("ASSAY_BENCH_WEB") != "" {
		benchWeb()
		return
	}
	n := crawlPages()
	address := startBenchWeb(b)
	var r ratios
	var pages, each []float64
	for b.Loop() {
		for range pairsOf(b) {
			raw := measure(b, func() { rawCrawl(b, address, n) })
			w := benchWorkspace(b, crawlConfig(), crawlOverrides(address)...)
			ours := measure(b, func() {
				ourCrawl(b, w, n)
				if err := w.Close(); err != nil {
					b.Fatal(err)
				}
			})
			r.add(ours, raw)
			pages, each = append(pages, float64(n)/ours.wall), append(each, ours.cpu/float64(n)*1e3)
			if err := os.RemoveAll(w.Dir); err != nil {
				b.Fatal(err)
			}
		}
	}
	r.report(b, "raw")
	b.ReportMetric(median(pages), "pages/s")
	b.ReportMetric(median(each), "cpu-ms/page")
	b.ReportMetric(0, "ns/op")
}

func benchHost(i int) string { return fmt.Sprintf("bench%02d.example", i) }

func crawlConfig() string {
	var b strings.Builder
	b.WriteString("recipe:\n  name: bench\n  discover: [listing]\n  speakers: []\n  dates: {from: \"\", to: \"\"}\n  sites:\n")
	for i := range benchHosts {
		fmt.Fprintf(&b, "    - {name: politifact, base: \"http://%s\"}\n", benchHost(i))
	}
	b.WriteString("runtime:\n  contact: bench@bench.example\n  delay: 0s\n  workers: 1\n")
	return b.String()
}

func crawlOverrides(address string) []Override {
	var to []string
	for i := range benchHosts {
		to = append(to, fmt.Sprintf("%s: %q", benchHost(i), address))
	}
	return []Override{{Key: "runtime.resolve", Value: "{" + strings.Join(to, ", ") + "}"}}
}

func ourCrawl(b *testing.B, w *Workspace, n int) {
	rep, err := w.Build(b.Context(), BuildOptions{Until: KindParse})
	if err != nil {
		b.Fatal(err)
	}
	ran, failed := 0, 0
	for _, s := range rep.Pipeline.Stages {
		if strings.HasPrefix(s.Name, KindParse) {
			ran, failed = s.Ran, s.Failed
		}
	}
	if ran != n || failed > 0 {
		b.Fatalf("%d pages parsed, %d failed, want %d and 0", ran, failed, n)
	}
}

// rawCrawl is the least that a crawler does.
func rawCrawl(b *testing.B, address string, n int) {
	dialer := &net.Dialer{}
	transport := &http.Transport{MaxIdleConnsPerHost: 1, DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return dialer.DialContext(ctx, network, address)
	}}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	file, err := os.Create(filepath.Join(b.TempDir(), "raw.zst"))
	if err != nil {
		b.Fatal(err)
	}
	defer os.Remove(file.Name())
	enc, err := zstd.NewWriter(nil)
	if err != nil {
		b.Fatal(err)
	}
	defer enc.Close()
	var mu sync.Mutex // of file and parsed
	parsed := 0
	get := func(address string) (*goquery.Document, error) {
		body, err := rawGet(b.Context(), client, address)
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(body)
		z := enc.EncodeAll(body, append(make([]byte, 0, len(body)/2), sum[:]...))
		mu.Lock()
		_, err = file.Write(z)
		mu.Unlock()
		if err != nil {
			return nil, err
		}
		return goquery.NewDocumentFromReader(bytes.NewReader(body))
	}
	site := func(origin string) error {
		for listing := "/factchecks/list/?page=1&category=truth-o-meter"; listing != ""; {
			doc, err := get(origin + listing)
			if err != nil {
				return err
			}
			for _, link := range doc.Find(".m-statement__quote a").EachIter() {
				page, err := get(origin + link.AttrOr("href", ""))
				if err != nil {
					return err
				}
				if fields := sixFields(page); fields[0] == "" || fields[2] != "false" || fields[5] == "" {
					return fmt.Errorf("%s gives %q", link.AttrOr("href", ""), fields)
				}
				mu.Lock()
				parsed++
				mu.Unlock()
			}
			listing = ""
			if next, ok := doc.Find("a.c-button").Attr("href"); ok {
				listing = "/factchecks/list/" + next
			}
		}
		return nil
	}
	var wg sync.WaitGroup
	for host := range benchHosts {
		wg.Go(func() {
			if err := site("http://" + benchHost(host)); err != nil {
				b.Error(err)
			}
		})
	}
	wg.Wait()
	if parsed != n {
		b.Errorf("the loop parsed %d pages, want %d", parsed, n)
	}
	if err := file.Sync(); err != nil {
		b.Fatal(err)
	}
	if err := file.Close(); err != nil {
		b.Fatal(err)
	}
}

func rawGet(ctx context.Context, client *http.Client, address string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return io.ReadAll(resp.Body)
}

// sixFields reads claim, speaker, rating, context, title and review date.
func sixFields(doc *goquery.Document) []string {
	text := func(selector string) string {
		return strings.Join(strings.Fields(doc.Find(selector).First().Text()), " ")
	}
	return []string{
		text("article.m-statement--is-xlarge .m-statement__quote"),
		text("article.m-statement--is-xlarge a.m-statement__name"),
		doc.Find("article.m-statement--is-xlarge .m-statement__meter picture img.c-image__original").First().AttrOr("alt", ""),
		text("article.m-statement--is-xlarge .m-statement__desc"),
		text("h2.c-title"),
		text(".m-author__date"),
	}
}

// startBenchWeb runs this test binary as the web and returns its address.
func startBenchWeb(b *testing.B) string {
	cmd := exec.CommandContext(b.Context(), os.Args[0], "-test.run=^$", "-test.bench=^BenchmarkCrawl$", "-test.benchtime=1x", fmt.Sprintf("-test.short=%t", testing.Short()))
	cmd.Env = append(os.Environ(), "ASSAY_BENCH_WEB=1")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if _, address, ok := strings.Cut(lines.Text(), "web at "); ok {
			return address
		}
	}
	b.Fatalf("the web did not start: %v", lines.Err())
	return ""
}

// benchWeb serves the pages of all hosts until it is killed. Page n belongs to host n mod benchHosts.
func benchWeb() {
	m := newPageMaker()
	n := crawlPages()
	pages := map[string][]byte{}
	for i := range n {
		pages[benchHost(i%benchHosts)+benchPath(i)] = m.page(i)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Printf("web at %s\n", l.Addr())
	panic(http.Serve(l, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "text/html; charset=utf-8")
		if page, ok := pages[r.Host+r.URL.Path]; ok {
			rw.Write(page)
			return
		}
		if r.URL.Path != "/factchecks/list/" {
			http.NotFound(rw, r)
			return
		}
		number, _ := strconv.Atoi(r.URL.Query().Get("page"))
		host, _ := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(r.Host, "bench"), ".example"))
		rw.Write(m.hostListing(max(number, 1), host, n))
	})))
}
