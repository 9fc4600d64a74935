package index

import (
	"context"
	"encoding/csv"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"assay/corpus"

	"github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/search"
)

// claims returns the published claims as queries, or invented ones of the same length.
func claims(b *testing.B) []string {
	var out []string
	if real := os.Getenv("ASSAY_REAL"); real != "" {
		f, err := os.Open(filepath.Join(real, "raguard", "claims.csv"))
		if err != nil {
			b.Fatal(err)
		}
		defer f.Close()
		rows, err := csv.NewReader(f).ReadAll()
		if err != nil {
			b.Fatal(err)
		}
		for _, r := range rows[1:] {
			out = append(out, r[1])
		}
		return out
	}
	rng := rand.New(rand.NewSource(3))
	for range 2648 {
		var w []string
		for range 17 {
			w = append(w, fmt.Sprintf("w%dq", rng.Intn(2000)))
		}
		out = append(out, strings.Join(w, " "))
	}
	return out
}

// pool makes n documents of 180 words each out of the words of the claims.
func pool(queries []string, n int) []corpus.Document {
	rng := rand.New(rand.NewSource(5))
	var words []string
	for _, q := range queries {
		words = append(words, strings.Fields(q)...)
	}
	var docs []corpus.Document
	for i := range n {
		var text []string
		for range 180 {
			text = append(text, words[rng.Intn(len(words))])
		}
		docs = append(docs, post(fmt.Sprintf("p%06d", i), strings.Join(text[:12], " "), strings.Join(text[12:], " ")))
	}
	return docs
}

// BenchmarkSearch is ours over 16,331 documents, BenchmarkBareSearch the same bleve query alone.
func BenchmarkSearch(b *testing.B) {
	queries := claims(b)
	x := open(b)
	fill(b, x, 1, pool(queries, 16331)...)
	for i := 0; b.Loop(); i++ {
		if _, err := x.Search(b.Context(), Query{Text: queries[i%len(queries)], Domains: []string{"reddit.com"}, Kinds: []string{corpus.KindRedditPost}, K: 10}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkBareSearch(b *testing.B) {
	queries := claims(b)
	x := open(b)
	fill(b, x, 1, pool(queries, 16331)...)
	ctx := context.WithValue(b.Context(), search.BM25StatsKey, &search.BM25Stats{
		DocCount: float64(x.head.Docs), FieldCardinality: map[string]int{fieldBody: int(x.head.Words)}})
	for i := 0; b.Loop(); i++ {
		q := bleve.NewMatchQuery(queries[i%len(queries)])
		q.SetField(fieldBody)
		q.Analyzer = "en"
		if _, err := x.idx.SearchInContext(ctx, bleve.NewSearchRequestOptions(q, 10, 0, false)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCatchUp(b *testing.B) {
	docs := pool(claims(b), 4000)
	for b.Loop() {
		x, err := Open(b.TempDir())
		if err != nil {
			b.Fatal(err)
		}
		fill(b, x, 1, docs...)
		if err := x.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(docs)*b.N)/b.Elapsed().Seconds(), "docs/s")
}
