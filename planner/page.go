package planner

import (
	"cmp"
	"time"

	"assay/corpus"
	"assay/fetch"
)

// PageVersion is that of PageDocument; a new one reads every page again.
const PageVersion = 1

// PageDocument turns a page that a post or a search leads to into a document: its article without
// the frame around it. The document's address is the one after redirects.
func PageDocument(p *fetch.Page) (corpus.Document, error) {
	a, err := p.Article()
	if err != nil {
		return corpus.Document{}, err
	}
	d := corpus.Document{
		ID: corpus.DocumentID(p.Final), Kind: corpus.KindLinkedArticle, Title: a.Title, Text: a.Text,
		URL: p.Final, Source: cmp.Or(corpus.RegistrableDomain(corpus.Host(p.Final)), p.Final),
		PublishedAt: a.Published, RetrievedAt: p.Retrieved.UTC().Format(time.RFC3339),
		BodyStatus: corpus.BodyFull,
	}
	if a.Partial {
		d.BodyStatus = corpus.BodyPartial
	}
	if status := BodyStatusOf(d.Title, d.Text, ""); status != corpus.BodyFull {
		d.BodyStatus = status
	}
	return d.Seal(), nil
}
