package planner

import (
	"cmp"
	"time"

	"assay/corpus"
	"assay/fetch"
)

// PageVersion is that of PageDocument; a new one reads every page again.
const PageVersion = 3

// PageDocument turns a page that a post or a search leads to into a document: its article without
// the frame around it, or the text of a PDF. The document's address is the page's own, see fetch.Page.Address.
func PageDocument(p *fetch.Page) (corpus.Document, error) {
	a, err := p.Article()
	if err != nil {
		return corpus.Document{}, err
	}
	address, err := p.Address()
	if err != nil {
		return corpus.Document{}, err
	}
	dated := p.Dated()
	d := corpus.Document{
		ID: corpus.DocumentID(address), Kind: corpus.KindLinkedArticle, Title: a.Title, Text: a.Text,
		URL: address, Source: cmp.Or(corpus.RegistrableDomain(corpus.Host(address)), address),
		PublishedAt: dated.At, PublishedBy: dated.By, Confidence: dated.Confidence, RetrievedAt: p.Retrieved.UTC().Format(time.RFC3339),
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
