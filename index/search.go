package index

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sort"

	"github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/search"
	"github.com/blevesearch/bleve/v2/search/query"
)

// A Query asks for the documents that share most words with a text.
type Query struct {
	Text    string
	Domains []string // registrable domains; empty means everywhere
	Kinds   []string // kinds of documents; empty means all
	K       int      // at most so many hits; 0 means 10
}

// A Hit is one document that was found.
type Hit struct {
	ID    string
	URL   string
	Score float64
}

// Search returns the best documents, best first, ties by id. The score is BM25 as bleve computes it
// (k1 1.2, b 0.75, square root of the term frequency, times the share of the query's words that
// occur), with the totals of the whole index: restricting a query leaves scores as they are. A text
// without words finds nothing.
func (x *Index) Search(ctx context.Context, q Query) (hits []Hit, err error) {
	defer recovered("search index", &err)
	x.mu.RLock()
	defer x.mu.RUnlock()
	if x.Answered != nil {
		x.Answered(ctx, "index/"+Scope, x.head.digest())
	}
	ask, err := x.query(ctx, q)
	if err != nil {
		return nil, &BrokenError{"search index", err}
	}
	if ask == nil {
		return nil, ctx.Err()
	}
	// Left alone, bleve takes the number of different words for the length of all documents, which
	// depends on how they are spread over segments. "*" is what it calls the field of a filter of several
	// terms.
	ctx = context.WithValue(ctx, search.BM25StatsKey, &search.BM25Stats{
		DocCount:         float64(x.head.Docs),
		FieldCardinality: map[string]int{fieldBody: int(x.head.Words), fieldDomain: int(x.head.Docs), fieldKind: int(x.head.Docs), "*": int(x.head.Docs)},
	})
	k := q.K
	if k <= 0 {
		k = 10
	}
	// bleve breaks ties by position in a segment. We ask for more than wanted until the last hit is
	// worse than the last one wanted, and order them ourselves.
	for size := k + 16; ; size *= 4 {
		req := bleve.NewSearchRequestOptions(ask, size, 0, false)
		req.Fields = []string{fieldURL}
		res, err := x.idx.SearchInContext(ctx, req)
		if ctx.Err() != nil {
			return nil, fmt.Errorf("search index: %w", ctx.Err())
		}
		if err != nil {
			return nil, &BrokenError{"search index", err}
		}
		hits = hits[:0]
		for _, h := range res.Hits {
			url, _ := h.Fields[fieldURL].(string)
			hits = append(hits, Hit{ID: h.ID, URL: url, Score: rounded(h.Score)})
		}
		cut := len(hits) == size && hits[size-1].Score == hits[k-1].Score
		if cut {
			continue
		}
		sort.Slice(hits, func(i, j int) bool {
			if hits[i].Score != hits[j].Score {
				return hits[i].Score > hits[j].Score
			}
			return hits[i].ID < hits[j].ID
		})
		return hits[:min(k, len(hits))], nil
	}
}

// rounded drops the digits that depend on the order in which bleve added up a score.
func rounded(score float64) float64 { return math.Round(score*1e6) / 1e6 }

// query builds the search; nil if nothing can be found. A word counts once.
func (x *Index) query(ctx context.Context, q Query) (query.Query, error) {
	seen := map[string]bool{}
	var words []string
	for _, t := range x.analyzer.Analyze([]byte(q.Text)) {
		if w := string(t.Term); !seen[w] {
			seen[w] = true
			words = append(words, w)
		}
	}
	if len(words) == 0 || x.head.Docs == 0 {
		return nil, nil
	}
	sort.Strings(words)
	b := bleve.NewBooleanQuery()
	b.AddMust(oneOf(fieldBody, words))
	var filters []query.Query
	for _, f := range []struct {
		field string
		terms []string
	}{{fieldDomain, q.Domains}, {fieldKind, q.Kinds}} {
		if len(f.terms) == 0 {
			continue
		}
		all, err := x.covers(ctx, f.field, f.terms)
		if err != nil {
			return nil, err
		}
		if !all {
			filters = append(filters, oneOf(f.field, f.terms))
		}
	}
	if len(filters) > 0 {
		b.AddFilter(bleve.NewConjunctionQuery(filters...))
	}
	return b, nil
}

// covers reports whether every document has one of the terms, so that a filter would only cost
// time, more than half of that of the search.
func (x *Index) covers(ctx context.Context, field string, terms []string) (all bool, err error) {
	advanced, err := x.idx.Advanced()
	if err != nil {
		return false, err
	}
	r, err := advanced.Reader()
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	var n uint64
	seen := map[string]bool{}
	for _, t := range terms {
		if seen[t] {
			continue
		}
		seen[t] = true
		postings, err := r.TermFieldReader(ctx, []byte(t), field, false, false, false)
		if err != nil {
			return false, err
		}
		n += postings.Count()
		if err := postings.Close(); err != nil {
			return false, err
		}
	}
	return n == x.head.Docs, nil
}

func oneOf(field string, terms []string) query.Query {
	var each []query.Query
	for _, t := range terms {
		tq := bleve.NewTermQuery(t)
		tq.SetField(field)
		each = append(each, tq)
	}
	return bleve.NewDisjunctionQuery(each...)
}
