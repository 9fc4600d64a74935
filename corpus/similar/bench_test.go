//go:build unix

package similar

import (
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// benchDocs is how many documents the benchmark clusters.
func benchDocs(b *testing.B) int {
	if s := os.Getenv("ASSAY_BENCH_DOCS"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n < 100 {
			b.Fatalf("ASSAY_BENCH_DOCS is %q, want a number of documents from 100 up", s)
		}
		return n
	}
	if testing.Short() {
		return 20_000
	}
	return 1_000_000
}

// BenchmarkClusters clusters a million short documents, every tenth an edited copy of another, and gives
// the wall time as a ratio to a loop that only hashes shingles and keeps the least values of each text. Recall
// is over planted pairs of the stated similarity; false merges are links below it by another count. B/doc is what a Finder holds, ids
// included.
func BenchmarkClusters(b *testing.B) {
	n := benchDocs(b)
	texts, pairs := planted(rand.New(rand.NewPCG(7, 8)), n)
	ids := keys(texts)
	rand.New(rand.NewPCG(9, 10)).Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	arriving := make([]string, len(ids))
	for i, id := range ids {
		arriving[i] = texts[id]
	}
	rounds := 3
	if n < 100_000 {
		rounds = 5
	}
	for b.Loop() {
		var walls, cpus []float64
		var got Result
		var held float64
		var ours took
		for range rounds {
			raw := timed(func() { bareMinHash(arriving) })
			var f *Finder
			before := heap()
			ours = timed(func() {
				f = NewFinder(Documents)
				for i, id := range ids {
					f.Add(id, arriving[i])
				}
			})
			held = float64(heap()-before) / float64(len(ids))
			more := timed(func() {
				var err error
				if got, err = f.Clusters(func(id string) (string, error) { return texts[id], nil }); err != nil {
					b.Fatal(err)
				}
			})
			ours.wall, ours.cpu = ours.wall+more.wall, ours.cpu+more.cpu
			walls, cpus = append(walls, ours.wall/raw.wall), append(cpus, ours.cpu/raw.cpu)
		}
		slices.Sort(walls)
		slices.Sort(cpus)
		found, due := recall(got, texts, pairs)
		wrong := falseMerges(got, texts, Documents.Jaccard)
		b.ReportMetric(walls[len(walls)/2], "wall-x-bare-minhash")
		b.ReportMetric(cpus[len(cpus)/2], "cpu-x-bare-minhash")
		b.ReportMetric(float64(found)/float64(due), "recall")
		b.ReportMetric(float64(wrong), "false-merges")
		b.ReportMetric(held, "B/doc")
		b.ReportMetric(float64(due), "planted-pairs")
		b.ReportMetric(float64(got.Compared), "compared")
		b.ReportMetric(ours.wall, "s/ours")
		if share := float64(found) / float64(due); share < 0.98 || wrong > 0 {
			b.Errorf("recall %.4f, %d false merges", share, wrong)
		}
	}
}

// took is what a leg took, in seconds.
type took struct{ wall, cpu float64 }

func timed(do func()) took {
	runtime.GC()
	cpu, start := cpuSeconds(), time.Now()
	do()
	return took{time.Since(start).Seconds(), cpuSeconds() - cpu}
}

func cpuSeconds() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0 // unreachable: the arguments are right
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// bareMinHash is the least that any MinHash does: the least value of 64 functions over the runs of words.
func bareMinHash(texts []string) (sum uint32) {
	f := NewFinder(Documents)
	var words, set []uint64
	for _, text := range texts {
		words = appendWords(words[:0], text)
		set = Documents.appendShingles(set[:0], words)
		least := f.signature(set)
		sum += least[0]
	}
	return sum
}
