package annotate

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"assay/corpus"
	"assay/llm"
)

// Entities finds what a text names, and where (methods, decision 14). A model lists names; the places are
// found here, so that every span is one of the text. A name that the text does not have is refused.
var Entities = Extractor{
	Name:    entitiesName,
	Version: 1,
	Doc:     "mentions of persons, organisations, locations, products, laws, datasets and concepts, with their places in characters",
	Gives:   GivesMentions,
	Extract: extractEntities,
	Prompt:  entitiesTemplate,
}

const entitiesName = "entities"

// Bounds of what an extractor of names takes, of one text.
const (
	mostMentions  = 80  // names
	mentionWords  = 14  // of a name
	mentionRunes  = 120 // of a name
	entitiesBound = 2048
)

type entitiesReply struct {
	Mentions []namedEntity `json:"mentions"`
}

type namedEntity struct {
	Text string            `json:"text"`
	Type corpus.EntityType `json:"type"`
}

var entitiesTemplate = llm.MustLoadTemplate(prompts, llm.Template{
	Name:    "extract_entities",
	Version: 1,
	Schema: json.RawMessage(`{"type":"object","properties":{"mentions":{"type":"array","items":{"type":"object","properties":{"text":{"type":"string"},` +
		`"type":{"type":"string","enum":["person","organisation","location","product","law","dataset","concept"]}},"required":["text","type"],"additionalProperties":false}}},` +
		`"required":["mentions"],"additionalProperties":false}`),
	Builtin:        builtinEntities,
	BuiltinVersion: 1,
})

func builtinEntities(vars any) (json.RawMessage, error) {
	p, ok := vars.(Passage)
	if !ok {
		return nil, fmt.Errorf("read passage: variables are %T", vars)
	}
	return json.Marshal(entitiesReply{Mentions: readEntities(p)})
}

// extractEntities asks for the names of one text and finds their places.
func extractEntities(ctx context.Context, m Model, s ExtractSettings, d corpus.Document) (Extraction, error) {
	out := Extraction{DocumentID: d.ID, Mentions: []corpus.Mention{}}
	text, cut := llm.CutSentences(d.Text, cmp.Or(s.DocumentChars, DefaultDocumentChars))
	if cut {
		out.Flags = corpus.AddFlag(out.Flags, corpus.FlagTruncated)
	}
	s.MaxTokens = cmp.Or(s.MaxTokens, entitiesBound)
	var answer entitiesReply
	err := ask(ctx, m, s, &out, entitiesTemplate, Passage{Title: d.Title, Source: d.Source, Date: dayOf(d.PublishedAt), Text: text, Most: mostMentions}, &answer)
	if err != nil {
		return Extraction{}, err
	}
	out.Mentions, out.Refused = locate(answer.Mentions, d.Title, text)
	return out, nil
}

// ask fills answer with the reply to one request of an extractor.
func ask(ctx context.Context, m Model, s ExtractSettings, out *Extraction, t *llm.Template, p Passage, answer any) error {
	reply, err := m.Complete(ctx, s.request("extract", t, p))
	if err != nil {
		return fmt.Errorf("extract from %s: %w", out.DocumentID, err)
	}
	out.Call, out.Calls = reply.Call, slices.Clone(reply.Calls)
	if reply.Outcome != llm.OutcomeAnswered {
		return &ExtractionFailure{DocumentID: out.DocumentID, Reason: failed("", reply, nil).Reason, Call: reply.Call, Calls: out.Calls}
	}
	if err := json.Unmarshal(reply.JSON, answer); err != nil {
		return fmt.Errorf("extract from %s: %w", out.DocumentID, err) // unreachable: the reply fits the schema
	}
	return nil
}

// locate finds every place of the names in title and text, those of longer names first: a place belongs to
// one mention. A name without a place is refused.
func locate(names []namedEntity, title, text string) (found []corpus.Mention, refused []Refusal) {
	found = []corpus.Mention{}
	refuse := func(n namedEntity, reason string) {
		refused = append(refused, Refusal{Text: n.Text, Quote: string(n.Type), Reason: reason})
	}
	typeOf := map[string]corpus.EntityType{}
	var wanted []namedEntity
	for i, n := range names {
		n.Text = corpus.Space(n.Text)
		have, twice := typeOf[n.Text]
		switch {
		case i >= mostMentions:
			refuse(n, RefusedSurplus)
		case !strings.ContainsFunc(n.Text, unicode.IsLetter) || leaning[strings.ToLower(n.Text)] && !abbreviated(n.Text):
			refuse(n, RefusedNoName)
		case len(strings.Fields(n.Text)) > mentionWords || utf8.RuneCountInString(n.Text) > mentionRunes:
			refuse(n, RefusedLength)
		case twice && have == n.Type:
			refuse(n, RefusedRepeated)
		case twice:
			refuse(n, RefusedOtherType)
		default:
			typeOf[n.Text] = n.Type
			wanted = append(wanted, n)
		}
	}
	longest := slices.Clone(wanted)
	slices.SortStableFunc(longest, func(a, b namedEntity) int { return utf8.RuneCountInString(b.Text) - utf8.RuneCountInString(a.Text) })
	fields := []struct {
		name  string
		runes []rune
		text  string
		taken []corpus.Span
	}{{name: corpus.FieldTitle, text: title, runes: []rune(title)}, {name: corpus.FieldText, text: text, runes: []rune(text)}}
	for _, n := range longest {
		stands, taken := false, false
		for i := range fields {
			f := &fields[i]
			for _, span := range corpus.FindSpans(f.text, n.Text) {
				if !whole(f.runes, span) {
					continue
				}
				if slices.ContainsFunc(f.taken, func(t corpus.Span) bool { return span.Start < t.End && t.Start < span.End }) {
					taken = true
					continue
				}
				stands = true
				f.taken = append(f.taken, span)
				found = append(found, corpus.Mention{Field: f.name, Span: span, Text: string(f.runes[span.Start:span.End]), Type: n.Type})
			}
		}
		switch {
		case stands:
		case taken:
			refuse(n, RefusedInside)
		default:
			refuse(n, RefusedSpan)
		}
	}
	slices.SortFunc(found, func(a, b corpus.Mention) int {
		return cmp.Or(-strings.Compare(a.Field, b.Field), a.Span.Start-b.Span.Start) // the title first
	})
	return found, refused
}

// whole reports whether a span does not cut a word. Scripts that are written without blanks have no ends of
// words to see.
func whole(text []rune, s corpus.Span) bool {
	cuts := func(outer, inner rune) bool {
		return wordRune(outer) && wordRune(inner) && !unicode.In(outer, unspaced...) && !unicode.In(inner, unspaced...)
	}
	return (s.Start == 0 || !cuts(text[s.Start-1], text[s.Start])) && (s.End == len(text) || !cuts(text[s.End], text[s.End-1]))
}

func wordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) }

var unspaced = []*unicode.RangeTable{unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar}
