package planner

import (
	"context"
	"errors"
	"fmt"

	"assay/corpus"
	"assay/index"
)

// local searches the documents that were imported, and those that sites of the recipe gave.
var local = Backend{
	Name:      "local",
	Version:   1,
	Doc:       "full-text search over imported documents, and in policy gpe over those of the recipe's newsrooms and institutions, for tool factcheck also over reviews of its fact-checkers; no network",
	Proven:    "captured",
	Reference: "20 RAGuard claims and their documents",
	Search: func(ctx context.Context, env Env, q Query) ([]Result, error) {
		if env.Index == nil {
			return nil, errors.New("search imported documents: there is no index")
		}
		kinds := q.Kinds
		if len(kinds) == 0 { // verdicts are for who asks for them
			kinds = []string{corpus.KindRedditPost, corpus.KindRedditComment, corpus.KindLinkedArticle, corpus.KindPage, corpus.KindRecord}
		}
		hits, err := env.Index.Search(ctx, index.Query{Text: q.Text, Domains: q.Domains, Kinds: kinds, K: q.K})
		if err != nil {
			return nil, fmt.Errorf("search imported documents: %w", err)
		}
		var out []Result
		for _, h := range hits {
			out = append(out, Result{DocumentID: h.ID, URL: h.URL})
		}
		return out, nil
	},
}
