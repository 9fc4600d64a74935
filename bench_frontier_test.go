//go:build unix

package assay

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"testing"

	"assay/corpus"
	"assay/pipeline"
	"assay/scrapers"
)

// The frontier of bar 3.
const (
	frontierFrom  = 10_000
	frontierTo    = 200_000
	frontierLanes = 16
)

// BenchmarkFrontier is bar 3: how much the heap of a walk grows with each address that its listings
// show. The walk takes addresses from its listings as its workers want them, so nothing queues; what
// it holds for an address is that it has met it, that its lead is written, and that its item was asked
// for. Listings are made up in place, no page is fetched and no item runs; leads go to a store on disk.
//
//	bytes/URL  bar: at most 1,536
func BenchmarkFrontier(b *testing.B) {
	from, to := frontierFrom, frontierTo
	if testing.Short() {
		from, to = from/10, to/10
	}
	var growth float64
	for b.Loop() {
		growth = frontierGrowth(b, from, to)
	}
	b.ReportMetric(growth, "bytes/URL")
	b.ReportMetric(float64(to)/b.Elapsed().Seconds()*float64(b.N), "URLs/s")
	b.ReportMetric(0, "ns/op")
}

func frontierGrowth(b *testing.B, from, to int) float64 {
	w := benchWorkspace(b, "recipe:\n  name: bench\n  discover: [listing]\nruntime:\n  contact: bench@bench.example\n")
	defer w.Close()
	e := w.newEngine(pipeline.Options{})
	defer w.runs(e)()
	k := &walk{w: w, e: e, stages: stages{w: w}}
	// An engine that only looks remembers its items as one that works does, without a write for each.
	looking := w.newEngine(pipeline.Options{Explain: true})
	parse := pipeline.Stage[string, []corpus.Claim]{
		Name: KindParse + "/bench", Version: 1,
		Do: func(context.Context, string) ([]corpus.Claim, error) { return []corpus.Claim{}, nil },
	}
	var lanes []func(context.Context) iter.Seq2[struct{}, error]
	for lane := range frontierLanes {
		site := longSite(fmt.Sprintf("bench%02d", lane), to/frontierLanes)
		lanes = append(lanes, func(ctx context.Context) iter.Seq2[struct{}, error] {
			return pipeline.Each(ctx, 2, k.refs(ctx, site, "http://"+site.Host), func(ctx context.Context, ref corpus.Ref) (struct{}, error) {
				_, err := pipeline.Run(ctx, looking, parse, ref.URL, ref.URL)
				if blocked := (*pipeline.BlockedError)(nil); errors.As(err, &blocked) {
					err = nil
				}
				return struct{}{}, err
			})
		})
	}
	met := 0
	var before, after uint64
	for _, err := range pipeline.Lanes(b.Context(), lanes...) {
		if err != nil {
			b.Fatal(err)
		}
		// While nobody takes the next result, all lanes wait.
		switch met++; met {
		case from:
			before = liveHeap()
		case to:
			after = liveHeap()
		}
	}
	if met != to {
		b.Fatalf("met %d addresses, want %d", met, to)
	}
	return (float64(after) - float64(before)) / float64(to-from)
}

func liveHeap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// longSite is a site whose listings show n claims, a hundred on a page.
func longSite(name string, n int) scrapers.Site {
	const each = 100
	host := name + ".example"
	listing := func(page int) string { return fmt.Sprintf("http://%s/factchecks/list/?page=%d", host, page) }
	return scrapers.Site{
		Name: name, Version: 1, Host: host,
		Start: func(string, []string) []string { return []string{listing(0)} },
		Discover: func(_ context.Context, _ scrapers.Fetcher, address string) (scrapers.Listing, error) {
			var page int
			if _, err := fmt.Sscanf(address, listing(0)[:len(listing(0))-1]+"%d", &page); err != nil {
				return scrapers.Listing{}, err
			}
			var out scrapers.Listing
			for i := page * each; i < min((page+1)*each, n); i++ {
				out.Refs = append(out.Refs, corpus.Ref{Source: name, URL: "http://" + host + benchPath(i), Speaker: "bench-speaker"})
			}
			if (page+1)*each < n {
				out.Next = listing(page + 1)
			}
			return out, nil
		},
	}
}
