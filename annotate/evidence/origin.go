package evidence

import (
	"assay/corpus"
	"assay/corpus/similar"
)

// How documents of one origin were matched.
const (
	MatchText  = "near_text" // nearly the same words
	MatchCited = "cites "    // followed by the address of the one source that both rest on
)

// Origins tells for each item which documents go back to one: those with nearly the same text, and those
// that rest on the same source alone (methods, decision 7). Match says by what a document was linked to the
// rest of its origin; it is empty for one that stands alone.
func Origins(items []corpus.Evidence, docs []corpus.Document) ([]corpus.Evidence, error) {
	finder := similar.NewFinder(similar.Documents)
	text := map[string]string{}
	for _, d := range docs {
		text[d.ID] = d.Text
		finder.AddCiting(d.ID, d.Text, similar.SoleSource(d.URL, d.Outbound))
	}
	found, err := finder.Clusters(func(id string) (string, error) { return text[id], nil })
	if err != nil {
		return nil, err
	}
	origin, match := map[string]string{}, map[string]string{}
	for _, c := range found.Clusters {
		for _, id := range c.Members {
			origin[id] = c.ID
		}
		for _, l := range c.Links {
			for _, id := range []string{l.A, l.B} {
				if match[id] = MatchText; l.Source != "" {
					match[id] = MatchCited + l.Source
				}
			}
		}
	}
	out := make([]corpus.Evidence, len(items))
	for i, item := range items {
		if item.Origin = origin[item.DocumentID]; item.Origin == "" {
			item.Origin = item.DocumentID
		}
		item.Match = match[item.DocumentID]
		out[i] = item
	}
	return out, nil
}
