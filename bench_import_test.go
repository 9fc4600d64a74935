//go:build unix

package assay

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"assay/corpus"
	"assay/pipeline"
)

// BenchmarkImportClaims imports generated ClaimReview feeds of three sizes, each into a store of its own, as
// `assay import claims-table` does. The feed is made while it is read, so that it takes no memory.
//
//	us/item-N     microseconds an item in a feed of N; the largest over the smallest is growth-x
//	anon-MiB-N    most memory of its own that the process had during the import; bar: at most 400 with 1,000,000
//	peak-MiB-N    the same with the store's files, which are mapped: pages that the system takes back when it
//	              wants them, so this grows with the store until there is no more memory
//	again-us/item  the largest feed imported again, of which nothing is written
func BenchmarkImportClaims(b *testing.B) {
	sizes := []int{10_000, 100_000, 1_000_000}
	if testing.Short() {
		sizes = []int{2_000, 20_000}
	}
	for b.Loop() {
		var each []float64
		for i, n := range sizes {
			w := benchWorkspace(b, "recipe:\n  name: bench\n  discover: [imported]\nruntime:\n  contact: bench@bench.example\n")
			took, peak, anon := importFeed(b, w, n, "rows stored")
			each = append(each, took)
			b.ReportMetric(took, fmt.Sprintf("us/item-%d", n))
			b.ReportMetric(peak, fmt.Sprintf("peak-MiB-%d", n))
			b.ReportMetric(anon, fmt.Sprintf("anon-MiB-%d", n))
			b.Logf("%d items: %.1f us each, peak %.0f MiB, %.0f of them its own", n, took, peak, anon)
			if i == len(sizes)-1 {
				again, _, _ := importFeed(b, w, n, "rows known")
				b.ReportMetric(again, "again-us/item")
			}
			if err := w.Close(); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(each[len(each)-1]/each[0], "growth-x")
	}
	b.ReportMetric(0, "ns/op")
}

// importFeed imports a feed of n items and returns microseconds an item and the peaks in MiB.
func importFeed(b *testing.B, w *Workspace, n int, counted string) (took, peak, anon float64) {
	b.Helper()
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(ImportMemory)) // as the command does
	feed := generateFeed(n)
	defer feed.Close()
	most := watchMemory()
	r := newImportReport("claims-table", "feed.json")
	start := time.Now()
	err := w.importTable(b.Context(), r, "feed.json", feed, ImportOptions{})
	took = float64(time.Since(start).Microseconds()) / float64(n)
	anon = most()
	if err != nil {
		b.Fatal(err)
	}
	if r.Counts[counted] != n || r.Counts["problems"] != 0 {
		b.Fatalf("import of %d items: %v %q", n, r.Counts, r.Problems)
	}
	return took, statusMiB("VmHWM"), anon
}

// generateFeed writes a feed of n invented items, of the size that real ones have.
func generateFeed(n int) io.ReadCloser {
	r, w := io.Pipe()
	go func() {
		out := bufio.NewWriterSize(w, 1<<20)
		ratings := []string{"False", "True", "Mostly True", "Half True", "Misleading", "Falso"}
		fmt.Fprint(out, `{"@context":"http://schema.org","@type":"DataFeed","dataFeedElement":[`)
		for i := range n {
			if i > 0 {
				fmt.Fprint(out, ",")
			}
			_, err := fmt.Fprintf(out, `{"@type":"DataFeedItem","dateCreated":"2021-05-05T10:00:00.000000+00:00","item":[{"@context":"http://schema.org","@type":"ClaimReview",`+
				`"author":{"@type":"Organization","image":"https://checks%02d.example/logo.png","name":"Checks %02d","url":"https://checks%02d.example/"},`+
				`"claimReviewed":"The council of district %d spent %d coins on lamps in the year before the bridge was closed, as a post says.","datePublished":"2021-%02d-%02d",`+
				`"itemReviewed":{"@type":"Claim","appearance":[{"@type":"CreativeWork","url":"https://social.example/post/%d"}],"author":{"@type":"Person","name":"Speaker %d"},"datePublished":"2021-01-%02d"},`+
				`"reviewRating":{"@type":"Rating","alternateName":"%s","bestRating":"5","ratingValue":"1","worstRating":"1"},`+
				`"sdPublisher":{"@type":"Organization","name":"Google Fact Check Tools","url":"https://g.co/factchecktools"},"url":"https://checks%02d.example/review/%d/"}],"url":"https://checks%02d.example/review/%d/"}`,
				i%40, i%40, i%40, i, i*7, 1+i%12, 1+i%28, i, i%5000, 1+i%28, ratings[i%len(ratings)], i%40, i, i%40, i)
			if err != nil {
				return // nobody reads on
			}
		}
		fmt.Fprint(out, `]}`)
		w.CloseWithError(out.Flush())
	}()
	return r
}

// watchMemory begins to watch, and the function that it returns tells the most memory of its own, in MiB, that
// the process had since. The most of all its memory is VmHWM from then on.
func watchMemory() (most func() float64) {
	debug.FreeOSMemory()
	resetPeak()
	done, high := make(chan struct{}), make(chan float64)
	go func() {
		for most := 0.0; ; {
			select {
			case <-done:
				high <- most
				return
			case <-time.After(50 * time.Millisecond):
				most = max(most, statusMiB("RssAnon"))
			}
		}
	}()
	return func() float64 {
		close(done)
		return <-high
	}
}

// resetPeak makes the system count the peak from now on, where it can.
func resetPeak() { _ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) }

// statusMiB is a figure of the process's memory; 0 where the system does not tell.
func statusMiB(name string) float64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		var kib float64
		if n, _ := fmt.Sscanf(line, name+": %f kB", &kib); n == 1 {
			return kib / 1024
		}
	}
	return 0
}

// BenchmarkWalkRows is how much the heap of a walk grows with each imported claim: rows are a scan, but a
// walk remembers which items it asked for, what they rest on, and who speaks for each claim. The rows are
// those of the feed above; they are parsed, and no further.
//
//	bytes/claim  of live heap
func BenchmarkWalkRows(b *testing.B) {
	from, to := 2_000, 20_000
	if testing.Short() {
		from, to = from/10, to/10
	}
	var growth float64
	for b.Loop() {
		w := benchWorkspace(b, "recipe:\n  name: bench\n  discover: [imported]\n  speakers: []\nruntime:\n  contact: bench@bench.example\n")
		importFeed(b, w, to, "rows stored")
		e := w.newEngine(pipeline.Options{})
		done := w.runs(e)
		met := 0
		var before, after uint64
		var mu sync.Mutex
		k := &walk{w: w, e: e, until: KindParse, stages: stages{w: w}, visit: visitor{
			claim: func(corpus.Ref, corpus.Claim, string) error {
				mu.Lock()
				defer mu.Unlock()
				switch met++; met {
				case from:
					before = liveHeap()
				case to / 6 * 5: // a sixth has a rating that waits for a person
					after = liveHeap()
				}
				return nil
			},
		}}
		if err := k.run(b.Context()); err != nil {
			b.Fatal(err)
		}
		if after == 0 {
			b.Fatalf("met %d claims of %d rows", met, to)
		}
		growth = (float64(after) - float64(before)) / float64(to/6*5-from)
		done()
		if err := w.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(growth, "bytes/claim")
	b.ReportMetric(0, "ns/op")
}
