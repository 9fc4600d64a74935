package assay

import (
	"context"
	"slices"

	"assay/annotate"
	"assay/corpus"
	"assay/pipeline"
	"assay/scrapers"
)

// categorised says what a claim is about: by rule, else by a model where the recipe asks for one. ok is
// false for a claim that is not of the recipe's categories.
func (k *walk) categorised(ctx context.Context, c corpus.Claim) (_ corpus.Claim, ok bool, _ error) {
	recipe := k.w.Config.Recipe
	if slices.Contains(recipe.CategoryBy, CategoryRule) {
		c = ruled(c)
	}
	if c.Category == "" && slices.Contains(recipe.CategoryBy, CategoryModel) && k.reaches(KindCategory) {
		stage := k.stages.category()
		k.e.Expect(stage.Name, 1)
		got, err := pipeline.Run(ctx, k.e, stage, c.ID, corpus.Claim{ID: c.ID, Text: corpus.Wording(c.Text), Title: c.Title, Tags: c.Tags})
		_, answered, err := k.settled(ctx, "category", err)
		if err != nil {
			return c, false, err
		}
		if answered && got.Category != "" {
			c.Category, c.CategoryFrom, c.CategoryConfidence = got.Category, corpus.CategoryFromModel, got.Confidence
		}
		if answered && k.visit.calls != nil && got.Call != "" {
			if err := k.visit.calls(append(slices.Clone(got.Calls), got.Call)...); err != nil {
				return c, false, err
			}
		}
	}
	switch {
	case len(recipe.Categories) == 0 || slices.Contains(recipe.Categories, string(c.Category)):
		return c, true, nil
	case c.Category == "":
		k.left.unknown.Add(1)
		return c, false, k.withhold("claim", c.ID, leftUnknown)
	}
	return c, false, k.withhold("claim", c.ID, "category not in the recipe")
}

// ruled gives a claim the category that the tags of its page tell, or its source.
func ruled(c corpus.Claim) corpus.Claim {
	var about corpus.Category // what the source writes about
	if site, err := scrapers.SiteNamed(c.Source); err == nil {
		about = site.Category
	}
	if category, confidence, ok := corpus.RuleCategory(c.Tags, about); ok {
		c.Category, c.CategoryFrom, c.CategoryConfidence = category, corpus.CategoryFromRule, confidence
	}
	return c
}

// category is named by what answers, as every stage is; there is one way to ask.
func (s stages) category() pipeline.Stage[corpus.Claim, annotate.Categorised] {
	settings := s.w.askSettings("category", annotate.CategoryTemplate.Name)
	return pipeline.Stage[corpus.Claim, annotate.Categorised]{
		Name: KindCategory + "/" + CategoryModel, Version: annotate.CategoryVersion, Recipe: settings,
		Do: func(ctx context.Context, c corpus.Claim) (annotate.Categorised, error) {
			return annotate.Categorise(ctx, s.w.llm, settings, c)
		},
	}
}
