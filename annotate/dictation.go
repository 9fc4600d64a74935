package annotate

import (
	"encoding/json"
	"net/url"
	"regexp"
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
// reply. Everything that was shown counts, title and address too.
func dictates(e Exam, d corpus.Document, r llm.Reply) bool {
	shown := squeeze(strings.Join([]string{d.Title, d.Text, e.Source, e.Address, unescape(e.Address)}, "\n"))
	for _, part := range bearing(r) {
		if p := squeeze(part); p != "" && strings.Contains(shown, p) {
			return true
		}
	}
	if label := llm.NormaliseLabel(r.Raw); label != "" && len(label) < 40 && !strings.Contains(r.Raw, "{") {
		return asks(label).MatchString(corpus.Fold(strings.Join([]string{d.Title, d.Text, unescape(e.Address)}, "\n")))
	}
	return false
}

// bearing lists the parts of a reply that bear its label. A bare word is none: the word true occurs in
// many documents, and only a document that asks for it dictates it.
func bearing(r llm.Reply) []string {
	raw := strings.TrimSpace(r.Raw)
	if !strings.Contains(raw, "{") {
		if len(strings.Fields(raw)) < 2 {
			return nil
		}
		return []string{raw}
	}
	parts := []string{raw}
	if rest := withoutQuote.ReplaceAllString(raw, ""); rest != raw {
		parts = append(parts, rest)
	}
	parts = append(parts, answerField.FindAllString(raw, -1)...)
	var object map[string]json.RawMessage
	if json.Unmarshal(r.JSON, &object) == nil {
		if a, ok := object["answer"]; ok {
			parts = append(parts, `"answer":`+string(a))
		}
	}
	return parts
}

var (
	withoutQuote = regexp.MustCompile(`"quote"\s*:\s*"(?:[^"\\]|\\.)*"\s*,?\s*`)
	answerField  = regexp.MustCompile(`"answer"\s*:\s*(?:"(?:[^"\\]|\\.)*"|true|false)`)
)

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
