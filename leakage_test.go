package assay

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay/corpus"
	"assay/planner"
)

// A crafted document for each kind of leak, and for none.
func TestLeaks(t *testing.T) {
	r := Recipe{}
	r.Planner.Agent.Mirrors = []string{"huggingface.co"}
	c := corpus.Claim{ID: "c_1", Text: "The Marsh Bridge in Ostrow was closed for 14 months.", ReviewURL: "https://www.politifact.com/factchecks/2021/jul/01/x/marsh/", StatedURL: "https://www.origin.example/a"}
	page := func(url, text, published string) corpus.Document {
		return corpus.Document{ID: corpus.DocumentID(url), URL: url, Text: text, PublishedAt: published}
	}
	captured := page("https://gone.example/a", "Words.", "")
	captured.CapturedAt = "2021-03-01T00:00:00Z"
	for name, x := range map[string]struct {
		doc  corpus.Document
		asOf string
		want []string
	}{
		"where the claim is from":        {page("http://www.origin.example/a?utm_source=x#top", c.Text, "2021-01-01"), "2021-06-01", []string{corpus.LeakOwnSource}},
		"none":                           {page("https://paper.example/a", c.Text, "2021-01-01"), "2021-06-01", nil},
		"its review, by another address": {page(c.ReviewURL+"?utm_source=x", "We rate this true.", "2021-01-01"), "2021-06-01", []string{corpus.LeakOwnCheck}},
		"a checker who quotes it":        {page("https://www.snopes.com/fact-check/marsh/", "Claim: the marsh  bridge in Ostrow was closed for 14 months. Rating: true", "2021-01-01"), "2021-06-01", []string{corpus.LeakOwnCheck}},
		"a checker about something else": {page("https://www.snopes.com/fact-check/levy/", "Claim: the levy rose.", "2021-01-01"), "2021-06-01", []string{corpus.LeakOtherCheck}},
		"a mirror":                       {page("https://huggingface.co/datasets/x", "rows", "2021-01-01"), "2021-06-01", []string{corpus.LeakMirror}},
		"late":                           {page("https://paper.example/a", "Words.", "2021-06-02T00:00:00Z"), "2021-06-01", []string{corpus.LeakLate}},
		"on the day":                     {page("https://paper.example/a", "Words.", "2021-06-01T23:00:00Z"), "2021-06-01", nil},
		"in a year that has begun":       {page("https://paper.example/a", "Words.", "2021"), "2021-06-01", nil},
		"undated":                        {page("https://paper.example/a", "Words.", ""), "2021-06-01", []string{corpus.LeakUndated}},
		"undated, and captured before":   {captured, "2021-06-01", nil},
		"undated without a bound":        {page("https://paper.example/a", "Words.", ""), "", nil},
		"a late check of something else": {page("https://fullfact.org/levy", "Words.", "2022-01-01"), "2021-06-01", []string{corpus.LeakOtherCheck, corpus.LeakLate}},
	} {
		if diff := cmp.Diff(x.want, r.leaks(c, x.doc, x.asOf)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	late, mirror := page("https://paper.example/late", "Words.", "2022-01-01"), page("https://huggingface.co/datasets/x", "rows", "2021-01-01")
	trace := corpus.Trace{AsOf: "2021-06-01", Candidates: []corpus.Candidate{
		{DocumentID: late.ID, Kept: true},
		{DocumentID: "d_seen", Kept: true},
		{DocumentID: mirror.ID, Reason: planner.DropMirror},
		{DocumentID: "d_2", Reason: planner.DropLate + ": published 2022-01-01 by meta, confidence high"},
		{DocumentID: "d_4", Reason: planner.DropOwnSource},
		{DocumentID: "d_3", Reason: planner.DropOther},
	}, Evidence: []corpus.Evidence{{DocumentID: "d_seen", URL: "https://www.snopes.com/fact-check/levy/", PublishedAt: "2021-01-01"}}}
	got, err := r.leakReport(c, trace, func(id string) (corpus.Document, bool, error) { return late, id == late.ID, nil })
	want := LeakReport{AsOf: "2021-06-01", Kept: map[string]int{corpus.LeakLate: 1, corpus.LeakOtherCheck: 1},
		Dropped:   map[string]int{planner.DropMirror: 1, planner.DropLate: 1, planner.DropOwnSource: 1},
		Documents: map[string][]string{late.ID: {corpus.LeakLate}, "d_seen": {corpus.LeakOtherCheck}}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}
