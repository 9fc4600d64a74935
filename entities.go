package assay

import (
	"context"
	"fmt"
	"slices"

	"assay/annotate"
	"assay/corpus"
	"assay/pipeline"
)

// EntitiesRecipe is what is named in texts, for the knowledge graph (methods, decision 14).
type EntitiesRecipe struct {
	Of     []string `yaml:"of" json:"of"`         // whose mentions are found: EntitiesOfClaims, EntitiesOfDocuments; empty means nobody's
	Events bool     `yaml:"events" json:"events"` // the events that claims assert are found too
}

// Values of EntitiesRecipe.Of.
const (
	EntitiesOfClaims    = "claims"
	EntitiesOfDocuments = "documents" // that claims have for evidence
)

// entities finds what a claim and its documents name, and what the claim asserts.
func (k *walk) entities(ctx context.Context, c corpus.Claim, docs []sourced) error {
	recipe := k.w.Config.Recipe.Entities
	if slices.Contains(recipe.Of, EntitiesOfClaims) {
		if err := k.named(ctx, annotate.Entities, claimText(c), true); err != nil {
			return err
		}
	}
	if recipe.Events {
		if err := k.named(ctx, annotate.Events, claimText(c), true); err != nil {
			return err
		}
	}
	if slices.Contains(recipe.Of, EntitiesOfDocuments) {
		for _, s := range docs {
			if err := k.named(ctx, annotate.Entities, documentText(s.doc), false); err != nil {
				return err
			}
		}
	}
	return nil
}

// named runs one extractor over one text.
func (k *walk) named(ctx context.Context, x annotate.Extractor, text corpus.Document, claim bool) error {
	if text.Text == "" && text.Title == "" {
		return nil // a link post; the document says so
	}
	stage := k.stages.entity(x)
	k.e.Expect(stage.Name, 1)
	got, err := pipeline.Run(ctx, k.e, stage, text.ID, text)
	_, ok, err := k.settled(ctx, x.Gives, err)
	if err != nil || !ok {
		return err
	}
	if k.visit.calls != nil && len(got.Calls) > 0 {
		if err := k.visit.calls(got.Calls...); err != nil {
			return err
		}
	}
	if k.visit.named != nil {
		return k.visit.named(got, claim)
	}
	return nil
}

// claimText is a claim as extractors read it: its text as it is released, so that places are places there.
func claimText(c corpus.Claim) corpus.Document {
	d := corpus.Document{ID: c.ID, Text: c.Text, PublishedAt: c.StatedDate}
	if c.Speaker != "" {
		d.Authors = []string{c.Speaker}
	}
	return d
}

// documentText leaves out what changes from one retrieval to the next.
func documentText(d corpus.Document) corpus.Document {
	return corpus.Document{ID: d.ID, Title: d.Title, Text: d.Text, Source: d.Source, PublishedAt: d.PublishedAt}
}

func (s stages) entity(x annotate.Extractor) pipeline.Stage[corpus.Document, annotate.Extraction] {
	settings := s.w.askSettings("entities", x.Prompt.Name)
	settings.DocumentChars = s.w.Config.Recipe.Label.DocumentChars
	return pipeline.Stage[corpus.Document, annotate.Extraction]{
		Name: KindEntity + "/" + x.Name, Version: x.Version, Recipe: settings,
		Do: func(ctx context.Context, d corpus.Document) (annotate.Extraction, error) {
			return x.Extract(ctx, s.w.llm, settings, d)
		},
	}
}

// finding names the extractors that a build by this recipe runs over claims and their documents.
func (r Recipe) finding() (out []annotate.Extractor) {
	if len(r.Entities.Of) > 0 {
		out = append(out, annotate.Entities)
	}
	if r.Entities.Events {
		out = append(out, annotate.Events)
	}
	return out
}

// namedText tells in a few words what was found in a text.
func namedText(x annotate.Extraction) string {
	if x.Events != nil {
		return fmt.Sprintf("%d events, %d refused", len(x.Events), len(x.Refused))
	}
	return fmt.Sprintf("%d mentions, %d refused", len(x.Mentions), len(x.Refused))
}
