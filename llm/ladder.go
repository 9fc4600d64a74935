package llm

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// ParseStatus says which rung of the ladder read an answer; empty for templates whose answer is free text.
type ParseStatus string

// The rungs, in the order in which they are tried (methods 3.0).
const (
	ParseStrict   ParseStatus = "strict"   // the whole reply is the object
	ParseFenced   ParseStatus = "fenced"   // a fenced block holds it
	ParseBalanced ParseStatus = "balanced" // it stands between other words
	ParseComma    ParseStatus = "comma"    // as above, with a comma before a closing bracket
	ParseLabel    ParseStatus = "label"    // only the last line could be read, and it is a label
	ParseRepaired ParseStatus = "repaired" // the model was shown its reply and the schema
	ParseFailed   ParseStatus = "failed"
)

// VerdictAliases maps spellings of verdicts to the six-way scale (methods 3.0).
var VerdictAliases = map[string]string{
	"pants_on_fire":       "false",
	"pants_fire":          "false",
	"barely_true":         "mostly_false",
	"half_false":          "half_true",
	"mixture":             "half_true",
	"unverified":          "uncertain",
	"nei":                 "uncertain",
	"not_enough_evidence": "uncertain",
	"unproven":            "uncertain",
}

// NormaliseLabel brings a label to the form in which alias tables are keyed: trimmed, lower case,
// without brackets, quotes, emphasis and a final stop, with underscores for blanks and hyphens.
func NormaliseLabel(s string) string {
	s = strings.Trim(s, " \t\r\n\"'`*_()[]{}<>.!,;:“”‘’«»")
	s = strings.NewReplacer("-", " ", "‑", " ", "–", " ", "_", " ").Replace(strings.ToLower(s))
	return strings.Join(strings.Fields(s), "_")
}

// label returns the allowed label that s spells, if it spells one.
func (t *compiled) label(s string) (string, bool) {
	n := NormaliseLabel(s)
	if to, ok := t.labels.Aliases[n]; ok {
		n = to
	}
	for _, l := range t.allowed {
		if l == n || NormaliseLabel(l) == n {
			return l, true
		}
	}
	return "", false
}

// read judges a reply that reached its end: the outcome, the answer, and the rung that read it.
func (t *compiled) read(raw string) (Outcome, json.RawMessage, ParseStatus) {
	text := answerText(raw)
	if !t.structured() {
		switch {
		case text == "":
			return OutcomeParseFailed, nil, ParseFailed
		case onlyRefuses(text):
			return OutcomeRefused, nil, ""
		}
		return OutcomeAnswered, nil, ""
	}
	b, status := t.parse(raw)
	switch {
	case b != nil:
		return OutcomeAnswered, b, status
	case onlyRefuses(text):
		return OutcomeRefused, nil, ""
	}
	return OutcomeParseFailed, nil, ParseFailed
}

// parse climbs the local rungs. The whole reply comes before thoughts are taken away, because an
// answer may speak of the marks that enclose thoughts.
func (t *compiled) parse(raw string) (json.RawMessage, ParseStatus) {
	if b := t.accept(raw); b != nil {
		return b, ParseStrict
	}
	text := answerText(raw)
	if b := t.accept(text); b != nil {
		return b, ParseStrict
	}
	block, fenced := fencedBlock(text)
	if fenced {
		if b := t.accept(block); b != nil {
			return b, ParseFenced
		}
	}
	candidates := []string{text, block}
	for _, span := range balancedObjects(text) {
		object := text[span[0]:span[1]]
		if b := t.accept(object); b != nil {
			return b, ParseBalanced
		}
		candidates = append(candidates, object)
	}
	for _, s := range candidates {
		if b := t.accept(dropCommas(s)); b != nil {
			return b, ParseComma
		}
	}
	if b := t.lastLine(text); b != nil {
		return b, ParseLabel
	}
	// A block counts as a last line only where it is the whole reply.
	if fenced && strings.HasPrefix(text, "```") && strings.HasSuffix(text, "```") && strings.Count(text, "```") == 2 {
		if b := t.lastLine(block); b != nil {
			return b, ParseLabel
		}
	}
	return nil, ParseFailed
}

// accept returns s in compact form if it is one object that fits the schema, its label normalised.
func (t *compiled) accept(s string) json.RawMessage {
	s = strings.TrimSpace(strings.TrimPrefix(s, "\ufeff"))
	if s == "" || s[0] != '{' {
		return nil
	}
	object, ok := decodeObject(s)
	if !ok {
		return nil
	}
	relabelled := false
	if f := t.labels.Field; f != "" {
		label, ok := t.labelOf(object[f])
		if !ok {
			return nil
		}
		relabelled = object[f] != label
		object[f] = label
	}
	if t.schema != nil && t.schema.Validate(object) != nil {
		return nil
	}
	if relabelled {
		return encode(object)
	}
	var compact bytes.Buffer
	if json.Compact(&compact, []byte(s)) != nil {
		return nil // unreachable: it was decoded above
	}
	return compact.Bytes()
}

// decodeObject reads one object and nothing after it, numbers as they are written.
func decodeObject(s string) (map[string]any, bool) {
	d := json.NewDecoder(strings.NewReader(s))
	d.UseNumber()
	var object map[string]any
	if d.Decode(&object) != nil {
		return nil, false
	}
	_, err := d.Token()
	return object, errors.Is(err, io.EOF)
}

// labelOf reads a label from an answer; models write true and false without quotes, too.
func (t *compiled) labelOf(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return t.label(v)
	case bool:
		return t.label(strconv.FormatBool(v))
	}
	return "", false
}

// lastLine reads a label that stands alone on the last line. What the line does not tell is empty.
func (t *compiled) lastLine(text string) json.RawMessage {
	if t.line == nil {
		return nil
	}
	lines := strings.Split(strings.TrimSpace(text), "\n")
	m := t.line.FindStringSubmatch(strings.TrimSpace(lines[len(lines)-1]))
	if m == nil {
		return nil
	}
	label, ok := t.label(m[1])
	if !ok {
		return nil
	}
	object := map[string]json.RawMessage{t.labels.Field: encode(label)}
	for _, name := range t.shape.required {
		if name == t.labels.Field {
			continue
		}
		empty, ok := t.shape.empty[name]
		if !ok {
			return nil
		}
		object[name] = json.RawMessage(empty)
	}
	return t.accept(string(encode(object)))
}

// labelLine matches a line that is a label, or "Answer: label" in its usual dresses. A longer
// sentence that merely ends in a label does not match: "this is not true" is no label.
func labelLine(field string) *regexp.Regexp {
	return regexp.MustCompile(`(?i)^[\s>#*_"'` + "`" + `\[(-]*(?:(?:(?:the|my|final|correct)\s+)*(?:answer|label|verdict|rating|stance|` +
		regexp.QuoteMeta(field) + `)["'*_` + "`" + `]*\s*(?:is|[:=–-])?[:\s]*)?["'*_` + "`" + `\[(]*([\pL][\pL _-]*?)["'*_` + "`" + `\]).!]*$`)
}

var (
	thoughtsOpen  = regexp.MustCompile(`(?i)^\s*<(think|thinking|reasoning)>`)
	thoughtsClose = regexp.MustCompile(`(?i)</(think|thinking|reasoning)>`)
)

// answerText is a message without the thoughts in front of it. Thoughts that never end leave no
// answer; a closing mark without an opening one, which some chat templates cause, ends them as well,
// unless it stands inside an object.
func answerText(raw string) string {
	text := strings.TrimSpace(strings.TrimPrefix(raw, "\ufeff"))
	for thoughtsOpen.MatchString(text) {
		end := thoughtsClose.FindStringIndex(text)
		if end == nil {
			return ""
		}
		text = strings.TrimSpace(text[end[1]:])
	}
	ends := thoughtsClose.FindAllStringIndex(text, -1)
	if ends == nil {
		return text
	}
	objects := balancedObjects(text)
	for i := len(ends) - 1; i >= 0; i-- {
		inside := slices.ContainsFunc(objects, func(o [2]int) bool { return o[0] < ends[i][0] && ends[i][0] < o[1] })
		if !inside {
			return strings.TrimSpace(text[ends[i][1]:])
		}
	}
	return text
}

var fencedRE = regexp.MustCompile("(?s)(?:```+|~~~+)[ \\t]*[A-Za-z0-9_+.-]*[ \\t]*\\r?\\n?(.*?)(?:```|~~~|\\z)")

// fencedBlock returns the inside of the first fenced block.
func fencedBlock(text string) (string, bool) {
	m := fencedRE.FindStringSubmatch(text)
	if m == nil {
		return "", false
	}
	return m[1], true
}

// balancedObjects returns where the outermost {...} of a text are, in order. Brackets inside strings
// do not count. A reply of nothing but opening brackets must not cost its square, so the search gives
// up after so many brackets that nothing closes.
func balancedObjects(text string) [][2]int {
	var spans [][2]int
	for i, open := 0, 0; open < 64 && len(spans) < 64; {
		start := strings.IndexByte(text[i:], '{')
		if start < 0 {
			break
		}
		start += i
		if end := closing(text, start); end > 0 {
			spans = append(spans, [2]int{start, end})
			i = end
			continue
		}
		open++
		i = start + 1
	}
	return spans
}

// closing returns the end of the object that starts at text[start], or 0.
func closing(text string, start int) int {
	depth, quoted := 0, false
	for i := start; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{':
			depth++
		case c == '}':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return 0
}

// dropCommas removes commas before a closing bracket, outside strings.
func dropCommas(s string) string {
	var b strings.Builder
	quoted := false
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case quoted && c == '\\' && i+1 < len(s):
			b.WriteByte(c)
			i++
			c = s[i]
		case c == '"':
			quoted = !quoted
		case !quoted && c == ',':
			if rest := strings.TrimLeft(s[i+1:], " \t\r\n"); rest != "" && (rest[0] == '}' || rest[0] == ']') {
				continue
			}
		}
		b.WriteByte(c)
	}
	return b.String()
}

// refusalRE matches the usual ways to decline. "I cannot tell from the document" is an answer, so the
// verbs are those of declining the task.
var refusalRE = regexp.MustCompile(`(?i)^(?:(?:i['’]?m|i am|we['’]?re|we are)\s+(?:\w+\s+){0,2}sorry|sorry|apologies|my apologies|i apologi[sz]e|unfortunately)?[\s,.;:—-]*(?:but\s+|however,?\s+)?(?:as an? (?:ai|language|large)[^.,]{0,60},?\s*)?` +
	`(?:i|we)(?:\s+can(?:not|['’]?t)|\s+(?:am|are) (?:not able|unable) to|['’](?:m|re) (?:not able|unable) to|\s+will not|\s+won['’]?t|\s+(?:must|have to) (?:decline|refuse)(?: to)?|\s+decline to|\s+am not comfortable|['’]m not comfortable)\s+` +
	`(?:\w+\s+){0,3}?(?:assist|assisting|help|helping|comply|fulfil+|engage|engaging|participate|discuss|discussing|do that|do this|continue|process|handle|complete (?:this|that|your) (?:request|task)|respond to (?:this|that|your))`)

// onlyRefuses reports whether a short text declines the task and says nothing else of use.
func onlyRefuses(text string) bool {
	return len(text) <= 600 && !strings.Contains(text, "{") && refusalRE.MatchString(text)
}

// repairMessages shows the model what it wrote and what was asked for.
func (t *compiled) repairMessages(bad string) []Message {
	if bad == "" {
		bad = "(empty)"
	}
	want := "Answer with one JSON object that fits this JSON schema, and nothing before or after it:\n" + string(t.raw)
	if t.schema == nil {
		want = "Answer with one of these words and nothing else: " + strings.Join(slices.Clone(t.allowed), ", ")
	}
	return []Message{
		{Role: "assistant", Content: bad},
		{Role: "user", Content: "Your last reply could not be read by a program. Keep its meaning, change its form. " + want},
	}
}
