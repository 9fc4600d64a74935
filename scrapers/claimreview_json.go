package scrapers

import (
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"regexp"
	"strings"
)

// readMarkup returns the values of one ld+json script, text still to be decoded once. Sites write JSON
// by templates, so what a strict parser refuses is repaired where only one reading is possible: raw
// control characters and wrong escapes inside strings; comments, CDATA marks, commas before a closing
// bracket outside of them; a semicolon after the value; values side by side; the whole block escaped as
// HTML or as a string. Repaired says that this was needed. A value that ends too early, or that
// only a guess would mend, is an error; values before it are returned with it.
func readMarkup(script string) (values []any, repaired bool, err error) {
	s := strings.Trim(script, " \t\r\n\f\u00a0\ufeff")
	if s == "" {
		return nil, false, nil
	}
	strict, err := decodeAll(s)
	if err == nil && len(strict) == 1 {
		inner, ok := strict[0].(string)
		if inner = strings.TrimSpace(inner); !ok || !strings.HasPrefix(inner, "{") && !strings.HasPrefix(inner, "[") {
			return strict, false, nil
		}
		s = inner
	}
	if slashedJSON.MatchString(s) { // a string whose quotes were lost
		if inner, err := mend(`"` + s + `"`); err == nil {
			if v, err := decodeAll(inner); err == nil && len(v) == 1 {
				s, _ = v[0].(string)
			}
		}
	}
	escaped := escapedJSON.MatchString(s)
	if escaped {
		s = html.UnescapeString(s)
	}
	mended, err := mend(s)
	if err != nil {
		return strict, false, err
	}
	values, err = decodeAll(mended)
	if escaped {
		for i := range values {
			values[i] = escapeAll(values[i]) // decoded with the block; once is enough
		}
	}
	return values, true, err
}

var (
	// escapedJSON is the start of a block that a template has escaped as if it were text.
	escapedJSON = regexp.MustCompile(`^[\s{\[]*[{\[]\s*&(?:quot|#0*34|#[xX]0*22);`)
	// slashedJSON is the start of one that was escaped for a string of JavaScript.
	slashedJSON = regexp.MustCompile(`^[\s{\[]*[{\[]\s*\\"`)
)

// decodeAll decodes values that follow each other, numbers as they are written.
func decodeAll(s string) ([]any, error) {
	d := json.NewDecoder(strings.NewReader(s))
	d.UseNumber()
	var out []any
	for {
		var v any
		switch err := d.Decode(&v); {
		case errors.Is(err, io.EOF):
			return out, nil
		case errors.Is(err, io.ErrUnexpectedEOF):
			return out, errors.New("the JSON ends too early")
		case err != nil:
			return out, err
		}
		out = append(out, v)
	}
}

// escapeAll escapes every text of a value as HTML.
func escapeAll(v any) any {
	switch v := v.(type) {
	case string:
		return html.EscapeString(v)
	case []any:
		for i := range v {
			v[i] = escapeAll(v[i])
		}
	case node:
		for k := range v {
			v[k] = escapeAll(v[k])
		}
	}
	return v
}

// mend writes JSON anew without what a strict parser trips over. It changes no text inside a string
// but for the spelling of control characters and escapes.
func mend(s string) (string, error) {
	var out strings.Builder
	depth, started := 0, false
	remarks := remarkReader{}
	comma := false // one is due before the next value
	put := func(c byte) {
		started = true
		if comma {
			out.WriteByte(',')
			comma = false
		}
		out.WriteByte(c)
	}
	for i := 0; i < len(s); {
		rest := s[i:]
		if n := remarks.length(rest, !started); n > 0 {
			out.WriteByte(' ')
			i += n
			continue
		}
		switch c := s[i]; c {
		case '"':
			n, text := mendString(rest)
			if n == 0 {
				return "", errors.New("a string does not end")
			}
			put('"')
			out.WriteString(text)
			out.WriteByte('"')
			i += n
			continue
		case ',':
			comma = depth > 0 // between values at the top it says nothing
		case '{', '[':
			put(c)
			depth++
		case '}', ']':
			comma = false
			out.WriteByte(c)
			depth--
		case ';':
			if depth > 0 {
				put(c) // not ours to mend: the decoder says where
			}
		case ' ', '\t', '\r', '\n':
			out.WriteByte(' ')
		case 0xc2, 0xe2, 0xef: // white space that JSON does not know, and the byte order mark
			n := foreignSpace(rest)
			if n > 0 {
				out.WriteByte(' ')
				i += n
				continue
			}
			put(c)
		default:
			if c < ' ' {
				out.WriteByte(' ')
			} else {
				put(c)
			}
		}
		i++
	}
	return out.String(), nil
}

// remarkReader finds comments. It is given ever shorter rests of one script.
type remarkReader struct {
	endless bool // no "-->" is left; to look again at every "<!--" would take the square of the length
}

// length returns how much of s is a comment or a mark around the block, 0 for none. At the start "<!--"
// may hide the block itself from old browsers; then only the mark goes.
func (r *remarkReader) length(s string, atStart bool) int {
	for _, mark := range []string{"<![CDATA[", "]]>", "]]&gt;", "-->"} {
		if strings.HasPrefix(s, mark) {
			return len(mark)
		}
	}
	switch {
	case strings.HasPrefix(s, "<!--"):
		if body := strings.TrimLeft(s[len("<!--"):], " \t\r\n"); atStart && (strings.HasPrefix(body, "{") || strings.HasPrefix(body, "[")) || r.endless {
			return len("<!--")
		}
		end := strings.Index(s, "-->")
		if end < 0 {
			r.endless = true
			return len("<!--")
		}
		return end + len("-->")
	case strings.HasPrefix(s, "/*"):
		if end := strings.Index(s[2:], "*/"); end >= 0 {
			return 2 + end + len("*/")
		}
		return len(s)
	case strings.HasPrefix(s, "//"):
		after := strings.TrimLeft(s[2:], " \t")
		for _, mark := range []string{"<![CDATA[", "]]>", "<!--", "-->"} {
			if strings.HasPrefix(after, mark) {
				return len(s) - len(after) // what follows on the line may be the block
			}
		}
		if end := strings.IndexAny(s, "\r\n"); end >= 0 {
			return end
		}
		return len(s)
	}
	return 0
}

// foreignSpace returns the length of a space that JSON does not allow outside strings, 0 for none.
func foreignSpace(s string) int {
	for _, space := range []string{"\u00a0", "\u2028", "\u2029", "\u200b", "\ufeff"} {
		if strings.HasPrefix(s, space) {
			return len(space)
		}
	}
	return 0
}

// mendString returns the length of the string that s starts with, quotes included, and its text in the
// spelling of JSON; 0 if it does not end.
func mendString(s string) (n int, text string) {
	var out strings.Builder
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			return i + 1, out.String()
		case c < ' ':
			fmt.Fprintf(&out, `\u%04x`, c)
		case c != '\\':
			out.WriteByte(c)
		case i+1 == len(s):
			return 0, ""
		default:
			i++
			switch e := s[i]; {
			case strings.IndexByte(`"\/bfnrt`, e) >= 0, e == 'u' && len(s) >= i+5 && isHex(s[i+1:i+5]):
				out.WriteByte('\\')
				out.WriteByte(e)
			case e == '\'':
				out.WriteByte(e) // as JavaScript has it
			case e == '\r' && strings.HasPrefix(s[i+1:], "\n"):
				i++ // a line that goes on
			case e == '\r', e == '\n':
			default:
				out.WriteString(`\\`) // a backslash that was meant
				i--                   // what follows it is read as it stands
			}
		}
	}
	return 0, ""
}

func isHex(s string) bool {
	return strings.Trim(s, "0123456789abcdefABCDEF") == ""
}
