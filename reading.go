package assay

import (
	"context"

	"assay/corpus"
	"assay/fetch"
	"assay/pipeline"
	"assay/scrapers"
)

// reading reads one item page of a site that rates nothing.
func (k *walk) reading(site scrapers.Site) func(context.Context, corpus.Ref) (struct{}, error) {
	return func(ctx context.Context, ref corpus.Ref) (struct{}, error) {
		if !k.reaches(KindRead) {
			return struct{}{}, nil
		}
		_, err := pipeline.Run(ctx, k.e, k.stages.read(site), ref.URL, ref.URL)
		_, _, err = k.settled(ctx, "page", err)
		return struct{}{}, err
	}
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
