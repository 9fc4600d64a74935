package scrapers

import (
	"slices"
	"strings"

	"assay/corpus"
)

// is makes an entry of a rating map: the verdict that a word stands for, and a page that shows it. Words of
// one verdict share its slug, in whatever language they are printed.
func is(v corpus.Verdict, evidence string) corpus.Rating {
	return corpus.Rating{Slug: string(v), Verdict: v, Evidence: evidence}
}

// RatingMaps lists the rating map of every source: those of the tables and those of the sites, by source.
func RatingMaps() []corpus.RatingMap {
	out := slices.Clone(corpus.RatingMaps)
	for _, s := range All {
		if s.Ratings == nil || slices.ContainsFunc(out, func(m corpus.RatingMap) bool { return m.Source == s.Ratings.Source }) {
			continue
		}
		out = append(out, *s.Ratings)
	}
	slices.SortFunc(out, func(a, b corpus.RatingMap) int { return strings.Compare(a.Source, b.Source) })
	return out
}
