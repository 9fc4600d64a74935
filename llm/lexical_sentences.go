package llm

// A Sentence is one sentence as the builtin model sees it, for builtin answers that stand beside a
// prompt elsewhere. Offsets are bytes of the text that was read.
type Sentence struct {
	Start, End int
	Words      []Word
	Question   bool
	Headline   bool // every word has a capital, so that capitals say nothing
}

// A Word is a word, a number or a mark.
type Word struct {
	Start, End int
	Text       string
	Lower      string // in lower case, Latin letters without accents
	Mark       bool   // punctuation
	Name       bool   // by its capital, over the whole text; names are never looked up
	Initial    bool   // first of a sentence or a quotation: its capital means nothing
	Stop       bool   // says nothing by itself: the, of, it
	Number     bool
	Finite     bool // a past form that endings do not show: rose, won, was
}

// Sentences reads a text sentence by sentence. A sentence mark before white space ends one, a blank line
// does, the point of an abbreviation or an initial does not.
func Sentences(text string) []Sentence {
	parsed := lexParse(lexSentences(text))[0]
	out := make([]Sentence, 0, len(parsed.sentences))
	for i := range parsed.sentences {
		s := &parsed.sentences[i]
		read := Sentence{Start: s.start, End: s.end, Question: s.question, Headline: s.headline, Words: make([]Word, 0, len(s.tokens))}
		for k := range s.tokens {
			t := &s.tokens[k]
			base, irregular := lexIrregular[t.lower]
			read.Words = append(read.Words, Word{
				Start: t.start, End: t.end, Text: t.text, Lower: t.lower, Mark: t.mark, Name: t.name, Initial: t.initial, Stop: t.stop,
				Number: t.number != nil || lexDigit(t.lower), Finite: irregular && base != t.lower,
			})
		}
		out = append(out, read)
	}
	return out
}
