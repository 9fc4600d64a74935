package similar

import (
	"unicode"
	"unicode/utf8"

	"assay/corpus"
)

// appendWords adds the hashes of a text's words: runs of letters and digits in lower case. Marks inside a
// word do not part it (don't is dont, U.S. is us, 1,000 is 1000). Where a script writes no blanks between
// words, every character is one.
func appendWords(words []uint64, text string) []uint64 {
	const offset, prime = 14695981039346656037, 1099511628211 // FNV-1a
	for i := 0; i < len(text); i++ {
		if text[i] >= utf8.RuneSelf {
			text = corpus.Wording(text)
			break
		}
	}
	h, in := uint64(offset), false
	end := func() {
		if in {
			words = append(words, h)
			h, in = offset, false
		}
	}
	for i := 0; i < len(text); {
		c := text[i]
		if c < utf8.RuneSelf {
			i++
			switch {
			case c >= 'a' && c <= 'z', c >= '0' && c <= '9':
				h, in = (h^uint64(c))*prime, true
			case c >= 'A' && c <= 'Z':
				h, in = (h^uint64(c|0x20))*prime, true
			case in && c == '.' && i < len(text) && text[i] >= '0' && text[i] <= '9':
				h = (h ^ uint64(c)) * prime // 5.2 is not 52
			case in && (c == '\'' || c == '.' || c == ',') && i < len(text) && joins(text[i], c):
			default:
				end()
			}
			continue
		}
		r, n := utf8.DecodeRuneInString(text[i:])
		i += n
		switch {
		case r == '’' && in && i < len(text) && joins(text[i], '\''):
		case unicode.IsLetter(r), unicode.IsNumber(r), unicode.IsMark(r):
			alone := unspaced(r)
			if alone {
				end()
			}
			r = unicode.ToLower(r)
			for ; r > 0; r >>= 8 {
				h = (h ^ uint64(r&0xff)) * prime
			}
			if in = true; alone {
				end()
			}
		default:
			end()
		}
	}
	end()
	return words
}

// joins reports whether a mark before c stands inside a word: an apostrophe or a full stop before a letter,
// a comma before a digit.
func joins(c, mark byte) bool {
	if mark == ',' {
		return c >= '0' && c <= '9'
	}
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= utf8.RuneSelf
}

// unspaced reports characters of scripts that part words by nothing.
func unspaced(r rune) bool {
	return r >= 0xe00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}
