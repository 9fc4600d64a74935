package evidence

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"assay/corpus"
	"assay/llm"
)

// A voice answers requests with what it was told, or by the builtin function of the template.
type voice struct {
	says    string
	outcome llm.Outcome
	asked   []llm.Request
}

func (v *voice) Complete(_ context.Context, q llm.Request) (llm.Reply, error) {
	v.asked = append(v.asked, q)
	reply := llm.Reply{Outcome: llm.OutcomeAnswered, Call: "call", JSON: json.RawMessage(v.says)}
	if v.outcome != "" {
		return llm.Reply{Outcome: v.outcome, Call: "call"}, nil
	}
	if v.says == "" {
		b, err := q.Template.Builtin(q.Vars)
		if err != nil {
			return llm.Reply{}, err
		}
		reply.JSON = b
	}
	parsed, status, err := q.Template.Parse(string(reply.JSON))
	if err != nil || parsed == nil {
		return llm.Reply{}, errors.New("the answer does not fit: " + string(status))
	}
	return reply, nil
}

func TestTemplates(t *testing.T) {
	for _, p := range Templates {
		if err := p.Check(); err != nil {
			t.Error(err)
		}
	}
}

func TestSubclaims(t *testing.T) {
	const claim = "Governor Lane Ostrow cut the school budget by 12 percent and raised his own salary in 2019."
	for name, tt := range map[string]struct {
		says string
		want []string
	}{
		"faithful parts": {`{"subclaims":["Governor Lane Ostrow cut the school budget by 12 percent.","Governor Lane Ostrow raised his own salary in 2019."]}`,
			[]string{"Governor Lane Ostrow cut the school budget by 12 percent.", "Governor Lane Ostrow raised his own salary in 2019."}},
		"a figure of its own":   {`{"subclaims":["Ostrow cut the school budget by 12 percent.","Ostrow raised his salary by 30 percent in 2019."]}`, []string{claim}},
		"a figure is lost":      {`{"subclaims":["Ostrow cut the school budget.","Ostrow raised his own salary in 2019."]}`, []string{claim}},
		"another matter":        {`{"subclaims":["Ostrow cut the school budget by 12 percent in 2019.","Unemployment among teachers doubled afterwards."]}`, []string{claim}},
		"one twice":             {`{"subclaims":["Ostrow cut the school budget by 12 percent in 2019","Ostrow cut the school budget by 12 percent in 2019"]}`, []string{claim}},
		"none":                  {`{"subclaims":[]}`, []string{claim}},
		"more than are allowed": {`{"subclaims":["Ostrow cut","Ostrow cut the budget","school budget","by 12 percent","his salary","salary in 2019","Governor Lane Ostrow"]}`, []string{claim}},
		"the builtin model": {"",
			[]string{"Governor Lane Ostrow cut the school budget by 12 percent", "Governor Lane Ostrow raised his own salary in 2019"}},
	} {
		t.Run(name, func(t *testing.T) {
			parts, call, err := Subclaims(t.Context(), &voice{says: tt.says}, Settings{}, corpus.Claim{ID: "c_1", Text: claim})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, p := range parts {
				got = append(got, p.Text)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" || call != "call" || parts[0].ID != "s1" {
				t.Errorf("parts (-want +got):\n%s", diff)
			}
		})
	}
	for _, one := range []string{"Salt and pepper cost more than gold.", "Unemployment is at a record low.", "Ada Brill and Tom Quist won."} {
		if parts, _, err := Subclaims(t.Context(), &voice{}, Settings{}, corpus.Claim{Text: one}); err != nil || len(parts) != 1 || parts[0].Text != one {
			t.Errorf("%q falls into %v, %v", one, parts, err)
		}
	}
	_, call, err := Subclaims(t.Context(), &voice{outcome: llm.OutcomeRefused}, Settings{}, corpus.Claim{ID: "c_1", Text: claim})
	var failed *Failure
	if !errors.As(err, &failed) || failed.FailureReason() != string(llm.OutcomeRefused) || call != "call" {
		t.Errorf("a refusal gives %v", err)
	}
}

// matter is the statement that the crafted documents are about.
var matter = Matter{
	Subclaim: corpus.Subclaim{ID: "s1", Text: "The Marsh Bridge in Ostrow was closed for 14 months."},
	Claim:    "The Marsh Bridge in Ostrow was closed for 14 months.",
	Date:     "2021-06-01",
}

func document(url, text string) corpus.Document {
	return corpus.Document{ID: corpus.DocumentID(url), URL: url, Title: "On the Marsh Bridge", Text: text, PublishedAt: "2021-05-20T09:00:00Z"}
}

// TestAttributes has a crafted document for every value of every attribute.
func TestAttributes(t *testing.T) {
	const told = "The Marsh Bridge in Ostrow was closed for 14 months. Traffic went over the old ferry."
	reply := func(change func(*analyseReply)) string {
		a := analyseReply{Quote: "The Marsh Bridge in Ostrow was closed for 14 months.", Stance: corpus.Supports, Relevance: 3, Attribution: corpus.AttributionNone}
		change(&a)
		b, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	for name, tt := range map[string]struct {
		doc  corpus.Document
		says string // "" leaves the answer to the builtin model
		want func(corpus.Evidence) bool
	}{
		"supports": {document("https://news.example/a", told), "", func(e corpus.Evidence) bool {
			return e.Stance == corpus.Supports && e.Relevance == 3 && e.Span == corpus.Span{Start: 0, End: 52} && e.Usable()
		}},
		"refutes": {document("https://news.example/b", "Ferries still ran. The Marsh Bridge in Ostrow was never closed for 14 months."), "", func(e corpus.Evidence) bool {
			return e.Stance == corpus.Refutes && e.Span.Start == 19 && e.Usable()
		}},
		"neutral": {document("https://news.example/c", "The Marsh Bridge in Ostrow was painted green in spring by volunteers."), "", func(e corpus.Evidence) bool {
			return e.Stance == corpus.Neutral && !e.Usable()
		}},
		"relevance 0":                         {document("https://news.example/d", "Apples are ripe in the orchards of the south."), "", func(e corpus.Evidence) bool { return e.Relevance == 0 }},
		"relevance 1":                         {document("https://news.example/e", "The Marsh Bridge in Ostrow was painted green in spring by volunteers."), "", func(e corpus.Evidence) bool { return e.Relevance == 1 }},
		"relevance 2":                         {document("https://news.example/f", told), reply(func(a *analyseReply) { a.Relevance = 2 }), func(e corpus.Evidence) bool { return e.Relevance == 2 && e.Usable() }},
		"relevance 3":                         {document("https://news.example/g", told), reply(func(*analyseReply) {}), func(e corpus.Evidence) bool { return e.Relevance == 3 }},
		"credibility 0":                       {document("https://www.theonion.com/a", told), reply(func(a *analyseReply) { a.Credibility = -1 }), func(e corpus.Evidence) bool { return e.Credibility == 0 && e.SourceClass == "satire" }},
		"credibility 1":                       {document("https://www.reddit.com/r/x/comments/abc/", told), "", func(e corpus.Evidence) bool { return e.Credibility == 1 && e.SourceClass == "social" }},
		"credibility 2":                       {document("https://arxiv.org/abs/2101.00001v1", told), "", func(e corpus.Evidence) bool { return e.Credibility == 2 && e.SourceClass == "preprint" }},
		"credibility 3":                       {document("https://roads.ostrow.gov/bridges", told), reply(func(a *analyseReply) { a.Credibility = 1 }), func(e corpus.Evidence) bool { return e.Credibility == 3 && e.SourceClass == "official" }},
		"a word of the model moves it by one": {document("https://blog.example/", told), reply(func(a *analyseReply) { a.Credibility = 1 }), func(e corpus.Evidence) bool { return e.Credibility == 2 && e.SourceClass == "other" }},
		"before": {document("https://news.example/h", "In 1974 the Marsh Bridge in Ostrow was closed for 14 months."), "", func(e corpus.Evidence) bool {
			return e.Temporal == corpus.FitBefore && e.EventDate == "1974"
		}},
		"within": {document("https://news.example/i", told), "", func(e corpus.Evidence) bool { return e.Temporal == corpus.FitWithin && e.EventDate == "" }},
		"after": {func() corpus.Document {
			d := document("https://news.example/j", told)
			d.PublishedAt = "2024-02-01"
			return d
		}(), "", func(e corpus.Evidence) bool { return e.Temporal == corpus.FitAfter }},
		"unknown": {func() corpus.Document {
			d := document("https://news.example/k", told)
			d.PublishedAt = ""
			return d
		}(), "", func(e corpus.Evidence) bool { return e.Temporal == corpus.FitUnknown }},
		"primary": {document("https://news.example/l", told+" For immediate release: the road office keeps the record."), "", func(e corpus.Evidence) bool { return e.Attribution == corpus.AttributionPrimary }},
		"named": {document("https://news.example/m", told+" \"It was needed,\" according to Mira Tolland."), "", func(e corpus.Evidence) bool {
			cut, _ := e.AttributionSpan.Of(told + " \"It was needed,\" according to Mira Tolland.")
			return e.Attribution == corpus.AttributionNamed && strings.Contains(cut, "Mira Tolland")
		}},
		"anonymous": {document("https://news.example/n", told+" A senior road official complained on condition of anonymity."), "", func(e corpus.Evidence) bool { return e.Attribution == corpus.AttributionAnonymous }},
		"none":      {document("https://news.example/o", told), "", func(e corpus.Evidence) bool { return e.Attribution == corpus.AttributionNone && len(e.Flags) == 0 }},
		"a quote that is not there": {document("https://news.example/p", told), reply(func(a *analyseReply) { a.Quote = "The bridge was closed for good." }), func(e corpus.Evidence) bool {
			return e.Stance == corpus.Neutral && corpus.HasFlag(e.Flags, corpus.FlagQuoteUnverified) && !e.Usable()
		}},
		"a stance without a quote": {document("https://news.example/q", told), reply(func(a *analyseReply) { a.Quote = "" }), func(e corpus.Evidence) bool {
			return e.Stance == corpus.Neutral && corpus.HasFlag(e.Flags, corpus.FlagQuoteUnverified)
		}},
		"somebody who is not there": {document("https://news.example/r", told), reply(func(a *analyseReply) { a.Attribution, a.Attributed = corpus.AttributionNamed, "Mira Tolland" }), func(e corpus.Evidence) bool {
			return e.Attribution == corpus.AttributionNone && corpus.HasFlag(e.Flags, FlagAttributionUnverified)
		}},
		"a date that is not there": {document("https://news.example/s", told), reply(func(a *analyseReply) { a.EventDate = "1999-01-01" }), func(e corpus.Evidence) bool {
			return e.EventDate == "" && corpus.HasFlag(e.Flags, FlagDateUnverified)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := Read(t.Context(), &voice{says: tt.says}, Settings{}, matter, tt.doc)
			if err != nil {
				t.Fatal(err)
			}
			if !tt.want(e) || e.DocumentID != tt.doc.ID || e.SubclaimID != "s1" {
				t.Errorf("evidence: %+v", e)
			}
			if e.Span != (corpus.Span{}) {
				if cut, ok := e.Span.Of(tt.doc.Text); !ok || cut != e.Quote {
					t.Errorf("the span covers %q, the quote is %q", cut, e.Quote)
				}
			}
		})
	}
	_, err := Read(t.Context(), &voice{outcome: llm.OutcomeFiltered}, Settings{}, matter, document("https://news.example/t", told))
	var failed *Failure
	if !errors.As(err, &failed) || !strings.Contains(err.Error(), "filtered") {
		t.Errorf("a withheld answer gives %v", err)
	}
}

func TestFit(t *testing.T) {
	for _, tt := range []struct {
		claim, event, published string
		want                    corpus.TemporalFit
	}{
		{"2020-07-01", "2020", "", corpus.FitWithin},
		{"2020-07-01", "2019", "", corpus.FitWithin}, // its last day is
		{"2020-07-01", "2018", "2020-07-01", corpus.FitBefore},
		{"2020-07-01", "2021-07", "", corpus.FitWithin},
		{"2020-07-01", "2021-07-02", "", corpus.FitAfter},
		{"2020-07-01", "2021-07-01", "", corpus.FitWithin}, // the 365th day
		{"2020-07-01", "", "2019-07-01T23:59:59Z", corpus.FitBefore},
		{"2020-07-01", "", "2019-07-02", corpus.FitWithin},
		{"2020-07-01", "soon", "", corpus.FitUnknown},
		{"", "2020", "2020-01-01", corpus.FitUnknown},
	} {
		if got := Fit(tt.claim, tt.event, tt.published, 365); got != tt.want {
			t.Errorf("Fit(%q, %q, %q) = %s, want %s", tt.claim, tt.event, tt.published, got, tt.want)
		}
	}
}

func TestRelevant(t *testing.T) {
	text := strings.Repeat("Naïve weather stayed mild in the hills. ", 60) + "It was a long spring. The Marsh Bridge was closed for 14 months. " + strings.Repeat("Rain fell again. ", 90)
	got := Relevant("The Marsh Bridge in Ostrow was closed for 14 months.", text, 300)
	all, size := "", 0
	for _, p := range got {
		cut, ok := p.Span.Of(text)
		if !ok || cut != p.Text {
			t.Errorf("span %+v covers %q, the passage is %q", p.Span, cut, p.Text)
		}
		all += p.Text + " "
		size += utf8.RuneCountInString(p.Text)
	}
	if !strings.Contains(all, "long spring. The Marsh Bridge was closed") || size > 300 {
		t.Errorf("%d characters: %s", size, all)
	}
	if one := Relevant("bridge", strings.Repeat("é", 5000), 100); len(one) != 1 || utf8.RuneCountInString(one[0].Text) > 100 || !utf8.ValidString(one[0].Text) {
		t.Errorf("a text without an end gives %d passages", len(one))
	}
	if Relevant("bridge", "", 100) != nil {
		t.Error("an empty text has passages")
	}
}
