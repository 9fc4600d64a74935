package assay

import (
	"context"
	"strings"

	"assay/annotate"
	"assay/corpus"
	"assay/fetch"
	"assay/pipeline"
	"assay/scrapers"
)

// reading reads one item page of a site that rates nothing, and looks for claims in its documents. What
// it finds is stored and waits; nothing goes on from here without a person, see candidate.
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
		if k.shelf != nil && !pipeline.Ends(err) {
			if err := k.shelve(site, ref.URL, docs, err); err != nil {
				return struct{}{}, err
			}
		}
		ctx, ok, err := k.settled(ctx, "page", err)
		if err != nil || !ok || !k.reaches(KindExtract) || k.w.Config.Recipe.Extract.Extractor == "" {
			return struct{}{}, err
		}
		stage := k.stages.extract()
		for _, d := range docs {
			if corpus.HasFlag(d.Flags, corpus.FlagSiteTest) || d.Text == "" {
				continue // the site's own test, or nothing to read; the document says which
			}
			k.e.Expect(stage.Name, 1)
			x, err := pipeline.Run(ctx, k.e, stage, d.ID, extractInput(site, d))
			_, ok, err := k.settled(ctx, "document", err)
			if err != nil {
				return struct{}{}, err
			}
			if ok && k.visit.extract != nil {
				if err := k.visit.extract(d, x); err != nil {
					return struct{}{}, err
				}
			}
		}
		return struct{}{}, nil
	}
}

// extraction is what the extractor reads of a document, with the site that it is from.
type extraction struct {
	Site     string          `json:"site"`
	Document corpus.Document `json:"document"`
}

// extractInput leaves out what changes from one retrieval to the next.
func extractInput(site scrapers.Site, d corpus.Document) extraction {
	return extraction{Site: site.Name, Document: corpus.Document{
		ID: d.ID, Kind: d.Kind, Title: d.Title, Text: d.Text, URL: d.URL, Source: d.Source, PublishedAt: d.PublishedAt,
		Authors: d.Authors, Tags: d.Tags, BodyStatus: d.BodyStatus, SHA256: d.SHA256,
	}}
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
			free, err := s.w.readers.take(ctx)
			if err != nil {
				return nil, err
			}
			defer free()
			s.w.watch.read(site, page)
			return site.Read(page)
		},
	}
}

func (s stages) extract() pipeline.Stage[extraction, annotate.Extraction] {
	x, settings := s.w.extractor(), s.w.extractSettings()
	return pipeline.Stage[extraction, annotate.Extraction]{
		Name: KindExtract + "/" + x.Name, Version: x.Version, Recipe: settings,
		Do: func(ctx context.Context, in extraction) (annotate.Extraction, error) {
			out, err := x.Extract(ctx, s.w.llm, settings, in.Document)
			for i := range out.Candidates {
				out.Candidates[i].Source = in.Site
			}
			return out, err
		},
	}
}

func (w *Workspace) extractor() annotate.Extractor {
	for _, x := range annotate.Extractors {
		if x.Name == w.Config.Recipe.Extract.Extractor {
			return x
		}
	}
	return annotate.Extractors[0]
}

// extractSettings is the extractor's part of the recipe.
func (w *Workspace) extractSettings() annotate.ExtractSettings {
	s := w.askSettings("extract", w.extractor().Prompt.Name)
	s.PerDocument, s.DocumentChars = w.Config.Recipe.Extract.PerDocument, w.Config.Recipe.Extract.DocumentChars
	return s
}

// askSettings is the part of the recipe that a role reads which is no labelling.
func (w *Workspace) askSettings(role, prompt string) annotate.ExtractSettings {
	m, ok := w.Config.Recipe.Models[role]
	if !ok {
		m = w.Config.Recipe.Models["annotate"]
		m.MaxTokens = 0 // a label is shorter than a list of claims
	}
	return annotate.ExtractSettings{
		Endpoint: m.Endpoint, Model: m.Model, Temperature: m.Temperature, TopP: m.TopP, Seed: m.Seed, MaxTokens: m.MaxTokens,
		PromptHash: w.promptHash(prompt),
	}
}
