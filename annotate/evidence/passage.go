package evidence

import (
	"sort"
	"strings"
	"unicode/utf8"

	"assay/corpus"
	"assay/llm"
)

// spanOf turns bytes into characters.
func spanOf(text string, start, end int) corpus.Span {
	from := utf8.RuneCountInString(text[:start])
	return corpus.Span{Start: from, End: from + utf8.RuneCountInString(text[start:end])}
}

// A Passage is one sentence of a document that bears on a statement.
type Passage struct {
	Span corpus.Span // of the document's text
	Text string
}

// Relevant returns the sentences of a text that are most like a statement, in the order of the text and
// of at most chars characters. Each stands with the sentence before it, which its pronouns lean on. A text
// none of whose sentences shares a word with the statement gives its beginning: that the words are others
// is for the reader to say.
func Relevant(statement, text string, chars int) []Passage {
	type scored struct {
		start, end int
		score      float64
	}
	var all []scored
	for _, s := range llm.Sentences(text) {
		all = append(all, scored{start: s.Start, end: s.End})
	}
	if utf8.RuneCountInString(text) > chars { // else all are taken, and none need be compared
		want := llm.HashEmbed(statement, 0)
		for i, s := range all {
			all[i].score = max(0, dot(want, llm.HashEmbed(text[s.start:s.end], 0)))
		}
	}
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	sort.SliceStable(order, func(i, j int) bool { return all[order[i]].score > all[order[j]].score })
	take := map[int]bool{}
	left := chars
	add := func(i int) bool {
		if i < 0 || take[i] {
			return true
		}
		size := utf8.RuneCountInString(text[all[i].start:all[i].end])
		if size > left {
			return false
		}
		take[i], left = true, left-size
		return true
	}
	for _, i := range order {
		if add(i) {
			add(i - 1)
		}
	}
	var out []Passage
	for i, s := range all {
		if take[i] {
			out = append(out, Passage{Span: spanOf(text, s.start, s.end), Text: text[s.start:s.end]})
		}
	}
	if len(out) == 0 && len(all) > 0 {
		// One sentence without an end, longer than all that is allowed.
		cut, _ := llm.CutSentences(text[all[order[0]].start:all[order[0]].end], chars)
		start := all[order[0]].start
		out = append(out, Passage{Span: spanOf(text, start, start+len(cut)), Text: cut})
	}
	return out
}

func dot(a, b []float32) float64 {
	sum := 0.0
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}

// join writes passages as one text, with a mark where something is left out.
func join(passages []Passage) string {
	var b strings.Builder
	for i, p := range passages {
		switch {
		case i == 0:
		case passages[i-1].Span.End+2 >= p.Span.Start:
			b.WriteString(" ")
		default:
			b.WriteString(" […] ")
		}
		b.WriteString(p.Text)
	}
	return b.String()
}
