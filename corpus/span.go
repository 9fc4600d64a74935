package corpus

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// A Span is a stretch of a text, in characters (Unicode code points) from its start; End is the place
// after the last one.
type Span struct {
	Start int `json:"start"`
	End   int `json:"end"`
}

// Of returns what a span covers; ok is false for a span that the text does not have.
func (s Span) Of(text string) (cut string, ok bool) {
	if s.Start < 0 || s.End <= s.Start {
		return "", false
	}
	from, at := -1, 0
	for i := range text {
		if at == s.Start {
			from = i
		}
		if at == s.End {
			return text[from:i], true
		}
		at++
	}
	if at == s.End && from >= 0 {
		return text[from:], true
	}
	return "", false
}

// FindSpan finds a quote in a text: exactly, else with white space folded, quotation marks straightened
// and invisible characters left out on both sides (methods, decision 18). The span is of the text as it is.
func FindSpan(text, quote string) (Span, bool) {
	quote = strings.TrimSpace(quote)
	if quote == "" {
		return Span{}, false
	}
	if i := strings.Index(text, quote); i >= 0 {
		start := utf8.RuneCountInString(text[:i])
		return Span{Start: start, End: start + utf8.RuneCountInString(quote)}, true
	}
	folded := []rune(Fold(quote))
	if len(folded) == 0 {
		return Span{}, false
	}
	hay, places := foldedRunes(text)
	i := indexRunes(hay, folded)
	if i < 0 {
		return Span{}, false
	}
	return Span{Start: places[i].Start, End: places[i+len(folded)-1].End}, true
}

// FindSpans finds every place of a quote in a text, one after the other, as FindSpan finds the first.
func FindSpans(text, quote string) (spans []Span) {
	quote = strings.TrimSpace(quote)
	if quote == "" {
		return nil
	}
	at, length := 0, utf8.RuneCountInString(quote)
	for rest := text; ; {
		i := strings.Index(rest, quote)
		if i < 0 {
			break
		}
		at += utf8.RuneCountInString(rest[:i])
		spans = append(spans, Span{Start: at, End: at + length})
		at, rest = at+length, rest[i+len(quote):]
	}
	if spans != nil {
		return spans
	}
	folded := []rune(Fold(quote))
	if len(folded) == 0 {
		return nil
	}
	hay, places := foldedRunes(text)
	for from := 0; from < len(hay); {
		i := indexRunes(hay[from:], folded)
		if i < 0 {
			break
		}
		i += from
		spans = append(spans, Span{Start: places[i].Start, End: places[i+len(folded)-1].End})
		from = i + len(folded)
	}
	return spans
}

// foldedRunes is Fold with the place that each character has in the text.
func foldedRunes(text string) (out []rune, places []Span) {
	at := 0
	for len(text) > 0 {
		// A letter and the marks on it compose to what Fold makes of them together.
		size := norm.NFC.NextBoundaryInString(text, true)
		if size <= 0 {
			size = len(text)
		}
		n := utf8.RuneCountInString(text[:size])
		place := Span{Start: at, End: at + n}
		r, _ := utf8.DecodeRuneInString(text)
		if unicode.IsSpace(r) {
			if len(out) > 0 && out[len(out)-1] != ' ' {
				out, places = append(out, ' '), append(places, place)
			}
		} else {
			for _, f := range Fold(text[:size]) {
				out, places = append(out, f), append(places, place)
			}
		}
		at += n
		text = text[size:]
	}
	return out, places
}

func indexRunes(hay, needle []rune) int {
	for i := 0; i+len(needle) <= len(hay); i++ {
		if slices.Equal(hay[i:i+len(needle)], needle) {
			return i
		}
	}
	return -1
}
