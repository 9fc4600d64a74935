package annotate

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"assay/corpus"
	"assay/llm"
)

// Claims finds the check-worthy statements of a document, each understood without it. A proposal counts
// only if its quote stands in the text and nothing in it comes from elsewhere; the others are kept with
// the reason for which they were refused.
var Claims = Extractor{
	Name:    claimsName,
	Version: 2,
	Doc:     "self-contained, check-worthy statements with span, speaker and date; candidates until a person accepts them",
	Gives:   GivesCandidates,
	Extract: extractClaims,
	Prompt:  claimsTemplate,
}

const claimsName = "claims"

// Passage is what the prompt of the extractor and its builtin answer read.
type Passage struct {
	Title  string `json:"title,omitzero"`
	Source string `json:"source,omitzero"`
	Date   string `json:"date,omitzero"` // of publication, 2006-01-02
	Text   string `json:"text"`
	Most   int    `json:"most"`
}

type claimsReply struct {
	Claims []proposal `json:"claims"`
}

type proposal struct {
	Quote   string `json:"quote"`
	Claim   string `json:"claim"`
	Speaker string `json:"speaker"`
	Date    string `json:"date"`
}

var claimsTemplate = llm.MustLoadTemplate(prompts, llm.Template{
	Name:    "extract_claims",
	Version: 1,
	Schema: json.RawMessage(`{"type":"object","properties":{"claims":{"type":"array","items":{"type":"object","properties":{` +
		`"quote":{"type":"string"},"claim":{"type":"string"},"speaker":{"type":"string"},"date":{"type":"string"}},` +
		`"required":["quote","claim","speaker","date"],"additionalProperties":false}}},"required":["claims"],"additionalProperties":false}`),
	Builtin:        builtinClaims,
	BuiltinVersion: 2,
})

func builtinClaims(vars any) (json.RawMessage, error) {
	p, ok := vars.(Passage)
	if !ok {
		return nil, fmt.Errorf("read passage: variables are %T", vars)
	}
	return json.Marshal(claimsReply{Claims: readClaims(p)})
}

// extractClaims asks for the statements of one document and checks what comes back.
func extractClaims(ctx context.Context, m Model, s ExtractSettings, d corpus.Document) (Extraction, error) {
	out := Extraction{DocumentID: d.ID, Candidates: []corpus.CandidateClaim{}}
	chars, most := s.DocumentChars, s.PerDocument
	if chars <= 0 {
		chars = DefaultDocumentChars
	}
	if most <= 0 {
		most = DefaultPerDocument
	}
	text, cut := llm.CutSentences(d.Text, chars)
	if cut {
		out.Flags = corpus.AddFlag(out.Flags, corpus.FlagTruncated)
	}
	reply, err := m.Complete(ctx, s.request("extract", claimsTemplate, Passage{Title: d.Title, Source: d.Source, Date: dayOf(d.PublishedAt), Text: text, Most: most}))
	if err != nil {
		return Extraction{}, fmt.Errorf("extract from %s: %w", d.ID, err)
	}
	out.Call, out.Calls = reply.Call, slices.Clone(reply.Calls)
	if reply.Outcome != llm.OutcomeAnswered {
		return Extraction{}, &ExtractionFailure{DocumentID: d.ID, Reason: failed("", reply, nil).Reason, Call: reply.Call, Calls: out.Calls}
	}
	var answer claimsReply
	if err := json.Unmarshal(reply.JSON, &answer); err != nil {
		return Extraction{}, fmt.Errorf("extract from %s: %w", d.ID, err) // unreachable: the reply fits the schema
	}
	check := newChecker(d)
	for _, p := range answer.Claims {
		c, reason := check.candidate(p)
		if reason == "" && len(out.Candidates) == most {
			reason = RefusedSurplus
		}
		if reason != "" {
			out.Refused = append(out.Refused, Refusal{Text: p.Claim, Quote: p.Quote, Reason: reason})
			continue
		}
		c.Call = reply.Call
		out.Candidates = append(out.Candidates, c)
	}
	slices.SortStableFunc(out.Candidates, func(a, b corpus.CandidateClaim) int { return a.Span.Start - b.Span.Start })
	return out, nil
}

// A checker holds proposals against the document that they are to come from.
type checker struct {
	d     corpus.Document
	day   string
	words map[string]bool // of title, text and authors, folded
	seen  map[string]bool
}

func newChecker(d corpus.Document) *checker {
	k := &checker{d: d, day: dayOf(d.PublishedAt), words: map[string]bool{}, seen: map[string]bool{}}
	for _, s := range llm.Sentences(strings.Join(append([]string{d.Title, d.Text}, d.Authors...), "\n\n")) {
		for _, w := range s.Words {
			k.words[w.Lower] = true
		}
	}
	return k
}

// candidate makes a candidate of a proposal, or says why it is none.
func (k *checker) candidate(p proposal) (corpus.CandidateClaim, string) {
	text, speaker := corpus.Space(corpus.Wording(p.Claim)), corpus.Space(p.Speaker)
	span, ok := corpus.FindSpan(k.d.Text, p.Quote)
	if !ok {
		return corpus.CandidateClaim{}, RefusedSpan
	}
	signs, reason := k.worth(text)
	if reason != "" {
		return corpus.CandidateClaim{}, reason
	}
	if speaker != "" && !k.names(speaker) {
		return corpus.CandidateClaim{}, RefusedSpeaker
	}
	quote, ok := span.Of(k.d.Text)
	if !ok {
		return corpus.CandidateClaim{}, RefusedSpan // unreachable: the span was found in the text
	}
	c := corpus.CandidateClaim{
		ID: corpus.CandidateID(k.d.ID, text, speaker), Text: text, Quote: quote, Span: span, Speaker: speaker, Date: k.date(p.Date),
		DocumentID: k.d.ID, URL: k.d.URL, Title: k.d.Title, Tags: k.d.Tags, Extractor: claimsName, Signs: signs,
	}
	if c.Date == "" && countsFromToday(text) {
		return c, RefusedUndated
	}
	if k.seen[c.ID] {
		return c, RefusedRepeated
	}
	k.seen[c.ID] = true
	return c, ""
}

// worth says what in a text can be checked, or why it is no candidate.
func (k *checker) worth(text string) (signs []string, reason string) {
	n := len(strings.Fields(text))
	if n < MinClaimWords || n > MaxClaimWords {
		return nil, RefusedLength
	}
	sentences := llm.Sentences(text)
	if slices.ContainsFunc(sentences, func(s llm.Sentence) bool { return s.Question }) {
		return nil, RefusedQuestion
	}
	if leansOn(sentences) {
		return nil, RefusedPronoun
	}
	if k.adds(sentences) {
		return nil, RefusedAdded
	}
	if signs = signsOf(sentences); len(signs) == 0 {
		return nil, RefusedNothing
	}
	return signs, ""
}

// adds reports whether there is a number or name that the document does not have.
func (k *checker) adds(sentences []llm.Sentence) bool {
	for _, s := range sentences {
		for i, w := range s.Words {
			foreign := w.Number || w.Name && (!w.Initial || i+1 < len(s.Words) && s.Words[i+1].Name)
			if foreign && !w.Mark && !k.words[w.Lower] && !k.words[strings.TrimRight(w.Lower, ".")] {
				return true
			}
		}
	}
	return false
}

// names reports whether the document has the words of a name.
func (k *checker) names(speaker string) bool {
	for _, s := range llm.Sentences(speaker) {
		for _, w := range s.Words {
			if !w.Mark && !w.Stop && !k.words[w.Lower] {
				return false
			}
		}
	}
	return true
}

// date is the day of the statement: as proposed, if it is a day that is not after the document's, else
// the document's.
func (k *checker) date(proposed string) string {
	if _, err := time.Parse(time.DateOnly, proposed); err != nil || k.day != "" && proposed > k.day {
		return k.day
	}
	return proposed
}

// dayOf is the calendar day of a document's date.
func dayOf(published string) string {
	if len(published) < len(time.DateOnly) {
		return ""
	}
	return published[:len(time.DateOnly)]
}
