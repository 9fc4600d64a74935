package main

import (
	"fmt"
	"io"
	"unicode"
	"unicode/utf8"
)

// A screen takes whole texts for people. What pages, files and models say stands in them, so
// characters that steer a terminal, or turn the direction of a line, are written as JSON would escape
// them; JSON stays JSON.
type screen struct{ w io.Writer }

func (s screen) Write(p []byte) (int, error) {
	if _, err := s.w.Write(harmless(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}

func harmless(p []byte) []byte {
	var out []byte // nil while nothing had to change
	for i := 0; i < len(p); {
		r, n := utf8.DecodeRune(p[i:])
		broken := r == utf8.RuneError && n == 1
		switch {
		case broken:
			r = rune(p[i])
		case r == '\n', r == '\t', !unicode.IsControl(r) && !unicode.Is(unicode.Bidi_Control, r):
			if out != nil {
				out = append(out, p[i:i+n]...)
			}
			i += n
			continue
		}
		if out == nil {
			out = append(make([]byte, 0, len(p)+16), p[:i]...)
		}
		out = fmt.Appendf(out, `\u%04x`, r)
		i += n
	}
	if out == nil {
		return p
	}
	return out
}
