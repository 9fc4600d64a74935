package planner

import (
	"cmp"
	"regexp"
	"strings"
	"time"

	"assay/corpus"
	"assay/fetch"
)

// PageVersion is that of PageDocument; a new one reads every page again.
const PageVersion = 4

// captured is the address of a capture: when it was taken, how it is to be shown, and of what.
var captured = regexp.MustCompile(`^https?://web\.archive\.org/web/(\d{14})(?:[a-z]{2}_)?/(https?:/.+)$`)

// captureOf reads the address of a capture in the Wayback Machine: its time, RFC 3339, and the page's own
// address.
func captureOf(address string) (at, original string, ok bool) {
	m := captured.FindStringSubmatch(address)
	if m == nil {
		return "", "", false
	}
	t, err := time.Parse("20060102150405", m[1])
	if err != nil {
		return "", "", false
	}
	scheme, rest, _ := strings.Cut(m[2], ":/")
	return t.Format(time.RFC3339), corpus.CanonicalURL(scheme + "://" + strings.TrimLeft(rest, "/")), true // a canonical address has no empty segment
}

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
	if at, original, ok := captureOf(p.Final); ok {
		d.ID, d.URL, d.Source = corpus.DocumentID(p.Final), original, cmp.Or(corpus.RegistrableDomain(corpus.Host(original)), original)
		d.Via, d.CapturedAt = corpus.ViaWayback, at
		if dated.By == fetch.DateByHTTP {
			d.PublishedAt, d.PublishedBy, d.Confidence = "", "", "" // the archive's own header
		}
	}
	if a.Partial {
		d.BodyStatus = corpus.BodyPartial
	}
	if status := BodyStatusOf(d.Title, d.Text, ""); status != corpus.BodyFull {
		d.BodyStatus = status
	}
	return d.Seal(), nil
}
