package assay

import (
	"context"
	"strings"

	"assay/corpus"
	"assay/fetch"
	"assay/pipeline"
	"assay/scrapers"
)

// reading reads one item page of a site that rates nothing.
func (k *walk) reading(site scrapers.Site, source string) func(context.Context, corpus.Ref) (struct{}, error) {
	return func(ctx context.Context, ref corpus.Ref) (struct{}, error) {
		if !k.reaches(KindRead) {
			return struct{}{}, nil
		}
		docs, err := pipeline.Run(ctx, k.e, k.stages.read(site), ref.URL, ref.URL)
		if k.visit.page != nil && !pipeline.Ends(err) {
			if err := k.visit.page(source, ref, present(docs), err); err != nil {
				return struct{}{}, err
			}
		}
		_, _, err = k.settled(ctx, "page", err)
		return struct{}{}, err
	}
}

// present are documents as a ledger compares them: that they are there, not what they say. Articles are
// edited all day, and nothing is ruled in them.
func present(docs []corpus.Document) (out []corpus.Claim) {
	for _, d := range docs {
		day, _, _ := strings.Cut(d.PublishedAt, "T")
		out = append(out, corpus.Claim{ID: d.ID, Text: d.Title, ReviewDate: day})
	}
	return out
}

// of names the stage that reads item pages of a site.
func (s stages) of(site scrapers.Site) string {
	if site.Read != nil {
		return s.read(site).Name
	}
	return s.parse(site).Name
}

func (s stages) read(site scrapers.Site) pipeline.Stage[string, []corpus.Document] {
	return pipeline.Stage[string, []corpus.Document]{
		Name: KindRead + "/" + site.Name, Version: site.Version, Recipe: identities,
		Do: func(ctx context.Context, address string) ([]corpus.Document, error) {
			page, err := s.w.fetch.Get(ctx, fetch.Request{URL: address})
			if err != nil {
				return nil, err
			}
			return site.Read(page)
		},
	}
}
