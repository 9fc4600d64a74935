package evidence

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"assay/corpus"
	"assay/llm"
)

// AnalyseVars is what the analyse template and its builtin answer read.
type AnalyseVars struct {
	Statement string `json:"statement"`
	Claim     string `json:"claim,omitzero"` // where the statement is not the whole of it
	Speaker   string `json:"speaker,omitzero"`
	Date      string `json:"date,omitzero"`
	Title     string `json:"title,omitzero"`
	Source    string `json:"source,omitzero"`
	Class     string `json:"class"`
	Published string `json:"published,omitzero"`
	Text      string `json:"text"`
}

type analyseReply struct {
	Quote       string             `json:"quote"`
	Stance      corpus.Stance      `json:"stance"`
	Relevance   int                `json:"relevance"`
	Credibility int                `json:"credibility_shift"`
	Attribution corpus.Attribution `json:"attribution"`
	Attributed  string             `json:"attributed_to"`
	EventDate   string             `json:"event_date"`
}

// Analyse asks what one document says about one statement.
var Analyse = llm.MustLoadTemplate(prompts, llm.Template{
	Name:    "analyse",
	Version: 1,
	Schema: json.RawMessage(`{"type":"object","properties":{"quote":{"type":"string"},"stance":{"type":"string","enum":["supports","refutes","neutral"]},` +
		`"relevance":{"type":"integer","enum":[0,1,2,3]},"credibility_shift":{"type":"integer","enum":[-1,0,1]},` +
		`"attribution":{"type":"string","enum":["primary","named","anonymous","none"]},"attributed_to":{"type":"string"},"event_date":{"type":"string"}},` +
		`"required":["quote","stance","relevance","credibility_shift","attribution","attributed_to","event_date"],"additionalProperties":false}`),
	Builtin:        builtinAnalyse,
	BuiltinVersion: 1,
})

// FlagAttributionUnverified marks an attribution whose words do not stand in the document.
const FlagAttributionUnverified = "attribution_unverified"

// FlagDateUnverified marks an event date of which nothing stands in the document.
const FlagDateUnverified = "event_date_unverified"

// Read reads a document for one subclaim. A stance whose quote does not stand in the document becomes
// neutral, an attribution whose words do not becomes none, an event date whose year does not stand there is
// dropped; each is flagged. Origin is left to Origins, which needs all documents of the claim.
func Read(ctx context.Context, m Model, s Settings, q Matter, d corpus.Document) (corpus.Evidence, error) {
	s = s.complete()
	class := ClassOf(d)
	e := corpus.Evidence{DocumentID: d.ID, SubclaimID: q.Subclaim.ID, Stance: corpus.Neutral, Attribution: corpus.AttributionNone,
		SourceClass: class.Name, Credibility: class.Credibility}
	passages := Relevant(q.Subclaim.Text, d.Text, s.TextChars)
	vars := AnalyseVars{
		Statement: q.Subclaim.Text, Speaker: corpus.Space(q.Speaker), Date: q.Date,
		Title: d.Title, Source: d.Source, Class: class.Doc, Published: day(d.PublishedAt), Text: join(passages),
	}
	if whole := corpus.Space(q.Claim); whole != q.Subclaim.Text {
		vars.Claim = whole
	}
	doing := "analyse " + d.ID + " for " + q.Subclaim.ID
	reply, err := m.Complete(ctx, s.request("analyse", Analyse, vars))
	var refused *llm.Error
	switch {
	case errors.As(err, &refused) && refused.Reason == llm.ReasonContext:
		return corpus.Evidence{}, &Failure{Doing: doing, Outcome: TooLong, Err: err}
	case err != nil:
		return corpus.Evidence{}, fmt.Errorf("%s: %w", doing, err)
	}
	if reply.Outcome != llm.OutcomeAnswered {
		return corpus.Evidence{}, &Failure{Doing: doing, Outcome: string(reply.Outcome), Call: reply.Call}
	}
	var answer analyseReply
	if err := json.Unmarshal(reply.JSON, &answer); err != nil {
		return corpus.Evidence{}, fmt.Errorf("%s: %w", doing, err) // unreachable: it fits the schema
	}
	e.Call = reply.Call
	check(&e, answer, d)
	e.Temporal = Fit(q.Date, e.EventDate, d.PublishedAt, s.Window)
	return e, nil
}

// check takes over what the document bears out.
func check(e *corpus.Evidence, a analyseReply, d corpus.Document) {
	e.Relevance = min(max(a.Relevance, 0), 3)
	e.Credibility = min(max(e.Credibility+min(max(a.Credibility, -1), 1), 0), 3)
	if quote := corpus.Space(a.Quote); quote != "" && e.Relevance > 0 {
		if span, ok := corpus.FindSpan(d.Text, quote); ok {
			e.Stance, e.Span = a.Stance, span
			e.Quote, _ = span.Of(d.Text)
		} else if _, ok := corpus.FindSpan(d.Title, quote); ok {
			e.Stance, e.Quote = a.Stance, quote // of the title, which has no place in the text
		} else {
			e.Flags = corpus.AddFlag(e.Flags, corpus.FlagQuoteUnverified)
		}
	} else if a.Stance != corpus.Neutral {
		e.Flags = corpus.AddFlag(e.Flags, corpus.FlagQuoteUnverified)
	}
	switch a.Attribution {
	case corpus.AttributionPrimary:
		e.Attribution = a.Attribution // the document as a whole
	case corpus.AttributionNamed, corpus.AttributionAnonymous:
		if span, ok := corpus.FindSpan(d.Text, corpus.Space(a.Attributed)); ok && corpus.Space(a.Attributed) != "" {
			e.Attribution, e.AttributionSpan = a.Attribution, span
		} else {
			e.Flags = corpus.AddFlag(e.Flags, FlagAttributionUnverified)
		}
	}
	if _, _, ok := days(a.EventDate); ok {
		if year := a.EventDate[:4]; strings.Contains(d.Text, year) || strings.Contains(d.Title, year) || strings.HasPrefix(d.PublishedAt, year) {
			e.EventDate = a.EventDate
		} else {
			e.Flags = corpus.AddFlag(e.Flags, FlagDateUnverified)
		}
	}
}

// day cuts a time down to its day.
func day(at string) string { return at[:min(len(at), len("2006-01-02"))] }

var (
	saying    = `(?:said|says|told|tells|wrote|writes|testified|argued|argues|claimed|claims|announced|announces|stated|states|reported|reports)`
	namedBy   = regexp.MustCompile(`(?:[Aa]ccording to )((?:the |Dr\.? |Mr\.? |Ms\.? )?\p{Lu}[\p{L}.'’-]+(?: \p{Lu}[\p{L}.'’-]+)*)|(\p{Lu}[\p{L}.'’-]+(?: \p{Lu}[\p{L}.'’-]+)+),? ` + saying)
	anonymous = regexp.MustCompile(`(?i)\b((?:a|an|one|two|several|some|senior|unnamed|anonymous) (?:\p{L}+ ){0,2}(?:sources?|officials?|experts?|insiders?|witness(?:es)?|people familiar)|sources|people familiar with|on condition of anonymity)\b`)
	recorded  = regexp.MustCompile(`(?i)\b(?:we (?:found|measured|conducted|analy[sz]ed|report)|this (?:study|report|act|bill|dataset|table)|be it enacted|the court (?:finds|holds)|press release|for immediate release)\b`)
	eventYear = regexp.MustCompile(`\b(1[89]\d\d|20\d\d)\b`)
)

// builtinAnalyse reads the document by its words.
func builtinAnalyse(vars any) (json.RawMessage, error) {
	v, ok := vars.(AnalyseVars)
	if !ok {
		return nil, fmt.Errorf("analyse: variables are %T", vars)
	}
	r := llm.Read(v.Statement, v.Title, strings.ReplaceAll(v.Text, " […] ", "\n\n"))
	a := analyseReply{Stance: corpus.Neutral, Attribution: corpus.AttributionNone}
	switch {
	case r.Answer != string(corpus.AnswerUnrelated):
		a.Relevance, a.Quote, a.Stance = 2, r.Quote, corpus.Supports
		if r.Answer == string(corpus.AnswerFalse) {
			a.Stance = corpus.Refutes
		}
		if r.Score >= 0.75 {
			a.Relevance = 3
		}
	case r.Score >= 0.3:
		a.Relevance = 1
	}
	switch by, nobody := namedBy.FindString(v.Text), anonymous.FindString(v.Text); {
	case recorded.MatchString(v.Text):
		a.Attribution = corpus.AttributionPrimary
	case by != "":
		a.Attribution, a.Attributed = corpus.AttributionNamed, by
	case nobody != "":
		a.Attribution, a.Attributed = corpus.AttributionAnonymous, nobody
	}
	a.EventDate = eventYear.FindString(a.Quote)
	return json.Marshal(a)
}
