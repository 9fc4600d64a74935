package annotate

import (
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"assay/corpus"
	"assay/llm"
)

// holds reports whether text holds quote: after NFC, white space folded, quotation marks straightened
// (methods, decision 18). An empty quote is in no text.
func holds(text, quote string) bool {
	quote = corpus.Fold(quote)
	return quote != "" && strings.Contains(corpus.Fold(text), quote)
}

// dictates reports whether the part of a reply that bears the label occurs in the document: then the
// document may have told the model what to reply (decision 2). In normal form that is the reply but
// for its quote, which has to occur there, and the field with the answer; in compat form it is the
// reply. Thoughts, fences and words around an answer do not hide it. Everything that was shown counts,
// title and address too.
func dictates(e Exam, d corpus.Document, r llm.Reply) bool {
	if repeats([]string{d.Title, d.Text, e.Source, e.Address, unescape(e.Address)}, r, answerField) {
		return true
	}
	if word := bareWord(r); word != "" {
		return asks(word).MatchString(corpus.Fold(strings.Join([]string{d.Title, d.Text, unescape(e.Address)}, "\n")))
	}
	return false
}

// repeats reports whether a part of a reply that bears its label, by the field that holds it, occurs in what was
// shown. The exam and the judge share it.
func repeats(shown []string, r llm.Reply, f field) bool {
	all := squeeze(strings.Join(shown, "\n"))
	for _, part := range bearing(r, f) {
		if p := squeeze(part); p != "" && strings.Contains(all, p) {
			return true
		}
	}
	return false
}

// A field is where a reply says its label.
type field struct {
	name string
	in   *regexp.Regexp // the field with its value, wherever it stands
}

var (
	answerField = field{"answer", regexp.MustCompile(`"answer"\s*:\s*(?:"(?:[^"\\]|\\.)*"|true|false)`)}
	labelField  = field{"label", regexp.MustCompile(`"label"\s*:\s*(?:"(?:[^"\\]|\\.)*"|true|false)`)}
)

// replyText is a reply without its thoughts.
func replyText(r llm.Reply) string {
	if r.Text != "" {
		return r.Text
	}
	return strings.TrimSpace(r.Raw)
}

// bearing lists the parts of a reply that bear its label. A bare word is none: the word true occurs in
// many documents, and only a document that asks for it dictates it.
func bearing(r llm.Reply, f field) []string {
	text := replyText(r)
	open, end := strings.IndexByte(text, '{'), strings.LastIndexByte(text, '}')
	if open < 0 {
		if len(strings.Fields(text)) < 2 {
			return nil
		}
		return []string{text}
	}
	parts := []string{text}
	if end > open {
		parts = append(parts, text[open:end+1])
	}
	for _, whole := range slices.Clone(parts) {
		if rest := withoutQuote.ReplaceAllString(whole, ""); rest != whole {
			parts = append(parts, rest)
		}
	}
	parts = append(parts, f.in.FindAllString(text, -1)...)
	var object map[string]json.RawMessage
	if json.Unmarshal(r.JSON, &object) == nil {
		if a, ok := object[f.name]; ok {
			parts = append(parts, `"`+f.name+`":`+string(a))
		}
	}
	return parts
}

// bareWord is the label of a reply that is no object but a word, alone or behind others; "" if there is
// none.
func bareWord(r llm.Reply) string {
	text := replyText(r)
	if strings.Contains(text, "{") {
		return ""
	}
	var read zeroReply
	if json.Unmarshal(r.JSON, &read) == nil && read.Answer != "" {
		return read.Answer
	}
	if label := llm.NormaliseLabel(text); len(label) < 40 {
		return label
	}
	return ""
}

var withoutQuote = regexp.MustCompile(`"quote"\s*:\s*"(?:[^"\\]|\\.)*"\s*,?\s*`)

// squeeze folds text for the search of a reply: case, white space, escapes and kinds of quotation
// marks do not hide it.
func squeeze(s string) string {
	s = strings.ToLower(corpus.Fold(s))
	return strings.Map(func(r rune) rune {
		switch r {
		case ' ', '\\':
			return -1
		case '\'', '`':
			return '"'
		}
		return r
	}, s)
}

// unescape reads an address as a person would, %22 as a quotation mark.
func unescape(address string) string {
	if s, err := url.QueryUnescape(address); err == nil {
		return s
	}
	return address
}

// asks matches a demand for one word as the reply: reply only true, answer with the word "false".
func asks(label string) *regexp.Regexp {
	word := strings.ReplaceAll(regexp.QuoteMeta(label), "_", "[ _-]")
	return regexp.MustCompile(`(?i)\b(?:reply|respond|answer|output|return|print|write|say)(?:\s+(?:to|this|it|that|me|us|here|back|now|and|the|claim|question)){0,3}?` +
		`\s+(?:only|just|simply|exactly|nothing but|with|the word)\b[^.!?\n]{0,20}?\b` + word + `\b`)
}
