package assay

import (
	"errors"
	"fmt"

	"assay/corpus"
	"assay/kv"
	"assay/planner"
)

// pairLabels stores the pairs of one file. Two labels of one pair leave it without any: nobody knows which
// of them holds, whatever their order, so a pair that lost its label in the store stays without.
type pairLabels struct {
	w    *Workspace
	r    *ImportReport
	said map[string]*saidLabel // by claim and document
}

// A saidLabel is what a file said of a pair first.
type saidLabel struct {
	row   int
	label corpus.StanceLabel // "" once it was contradicted
	links []corpus.Link
}

func (p *pairLabels) add(pair planner.Pair) error {
	link := pair.Link()
	p.r.Counts["pairs"]++
	key := kv.Key(link.Row, link.DocumentID)
	said := p.said[key]
	if said == nil {
		said = &saidLabel{row: pair.Row, label: pair.Label}
		stored, has, err := p.w.tables.Links.Get(linkKey(link))
		if corrupt := (*kv.CorruptError)(nil); err != nil && !errors.As(err, &corrupt) {
			return fmt.Errorf("read pair of %s and %s: %w", link.Row, link.DocumentID, err)
		}
		if has && err == nil && stored.Label != pair.Label {
			before := "has no label because imports contradicted each other"
			if stored.Label != "" {
				before = "is " + string(stored.Label) + " in the one imported before"
			}
			p.contradicted(pair, before)
			said.label = ""
		}
		p.said[key] = said
	} else if said.label != "" && said.label != pair.Label {
		p.contradicted(pair, fmt.Sprintf("is %s in row %d", said.label, said.row))
		p.r.Counts["label "+string(said.label)] -= len(said.links)
		said.label = ""
		for _, l := range said.links {
			l.Label = ""
			if err := p.w.tables.Links.Put(linkKey(l), l); err != nil {
				return err
			}
		}
	}
	if link.Label = said.label; link.Label != "" {
		p.r.Counts["label "+string(link.Label)]++
	}
	said.links = append(said.links, link)
	return p.w.tables.Links.Put(linkKey(link), link)
}

func (p *pairLabels) contradicted(pair planner.Pair, before string) {
	p.r.Counts["conflicts"]++
	claim := fmt.Sprintf("claim %d", pair.ClaimNumber)
	if pair.ClaimText != "" {
		claim = fmt.Sprintf("claim %.120q", pair.ClaimText)
	}
	document := pair.Document.URL
	if document == "" {
		document = pair.Document.ID
	}
	p.r.problem("row %d: the pair of %s and %s is %s here and %s; neither label is used", pair.Row, claim, document, pair.Label, before)
}
