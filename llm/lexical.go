package llm

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// This file and its lexical_ neighbours are the reading of the builtin model: tokens, sentences,
// numbers, negation and opposites. They compare two texts by their words and know nothing about
// the world. Names are never looked up: a name only ever counts by occurring in both texts, so
// renaming one in claim and document alike changes no answer.

// A lexToken is a word or a mark of a text, with its place in it.
type lexToken struct {
	start, end int
	text       string // as written
	lower      string // lower case, Latin letters without accents
	stem       string // without endings; what names are compared by
	concept    string // stem after irregular forms, synonyms and opposites; what other words are compared by
	pole       lexPole
	number     *lexNumber
	mark       bool // punctuation
	initial    bool // first word of a sentence, a quotation, or after a colon: its capital means nothing
	name       bool
	stop       bool
	clause     int
}

// A lexSentence is a stretch of a text and its tokens.
type lexSentence struct {
	start, end int
	tokens     []lexToken
	question   bool
	title      bool
	headline   bool // every word has a capital, so that capitals say nothing
}

// lexLatin writes accented Latin letters without accents. Combining marks are dropped apart from it,
// so that composed and decomposed spellings of a word are equal.
var lexLatin = func() map[rune]string {
	m := map[rune]string{'ß': "ss", 'æ': "ae", 'œ': "oe", 'þ': "th"}
	for _, row := range []string{"aàáâãäåāăąǎ", "cçćĉċč", "dďđð", "eèéêëēĕėęě", "gĝğġģ", "hĥħ", "iìíîïĩīĭįı", "jĵ", "kķ", "lĺļľł",
		"nñńņňŋ", "oòóôõöøōŏőǒ", "rŕŗř", "sśŝşšș", "tţťŧț", "uùúûüũūŭůűųǔ", "wŵ", "yýÿŷ", "zźżž"} {
		base, size := utf8.DecodeRuneInString(row)
		for _, r := range row[size:] {
			m[r] = string(base)
		}
	}
	return m
}()

// lexLower folds a word for comparison.
func lexLower(s string) string {
	var b strings.Builder
	for _, r := range s {
		r = unicode.ToLower(r)
		switch plain, ok := lexLatin[r]; {
		case ok:
			b.WriteString(plain)
		case r == '’' || r == '‘' || r == 'ʼ':
			b.WriteByte('\'')
		case unicode.Is(unicode.Mn, r) || unicode.Is(unicode.Cf, r):
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

func lexWordRune(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.Is(unicode.M, r)
}

// lexIdeograph tells letters of scripts that are written without blanks; each is a token by itself.
func lexIdeograph(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai)
}

// lexTokens splits text into words, numbers and marks. Addresses and HTML references are skipped,
// contractions give two words, a possessive ending is dropped.
func lexTokens(text string) []lexToken {
	var out []lexToken
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case unicode.IsSpace(r) || unicode.Is(unicode.Cf, r):
			i += size
		case lexAddressAt(text, i) > 0:
			i += lexAddressAt(text, i)
		case r == '&' && lexReferenceAt(text[i:]) > 0:
			i += lexReferenceAt(text[i:])
		case lexIdeograph(r):
			out = append(out, lexToken{start: i, end: i + size})
			i += size
		case lexWordRune(r):
			j := lexWordEnd(text, i)
			out = append(out, lexToken{start: i, end: j})
			i = j
		default:
			out = append(out, lexToken{start: i, end: i + size, mark: true})
			i += size
		}
	}
	var split []lexToken
	for _, t := range out {
		t.text = text[t.start:t.end]
		t.lower = lexLower(t.text)
		if t.mark {
			split = append(split, t)
			continue
		}
		split = append(split, lexContraction(t)...)
	}
	return split
}

// lexAddressAt returns the length of an address that starts at i, 0 if there is none.
func lexAddressAt(text string, i int) int {
	rest := text[i:]
	if !strings.HasPrefix(rest, "http://") && !strings.HasPrefix(rest, "https://") && !strings.HasPrefix(rest, "www.") {
		return 0
	}
	end := strings.IndexFunc(rest, func(r rune) bool {
		return unicode.IsSpace(r) || r == ')' || r == ']' || r == '"' || r == '<' || r == '>'
	})
	if end < 0 {
		end = len(rest)
	}
	for end > 0 && strings.ContainsRune(".,;:!?", rune(rest[end-1])) {
		end-- // the mark belongs to the sentence around the address
	}
	return end
}

// lexReferenceAt returns the length of an HTML character reference at the start of s.
func lexReferenceAt(s string) int {
	for i := 1; i < len(s) && i < 10; i++ {
		c := s[i]
		if c == ';' {
			return i + 1
		}
		if c != '#' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return 0
		}
	}
	return 0
}

// lexWordEnd finds the end of the word or number that starts at i. An apostrophe between letters,
// a point or comma between digits and the points of U.S. belong to the word.
func lexWordEnd(text string, i int) int {
	first, _ := utf8.DecodeRuneInString(text[i:])
	digits := unicode.IsDigit(first)
	j, letters := i, 0
	for j < len(text) {
		r, size := utf8.DecodeRuneInString(text[j:])
		if lexIdeograph(r) {
			break
		}
		if lexWordRune(r) {
			if !digits && unicode.IsLetter(r) {
				letters++
			} else if !digits {
				letters = 2 // not an abbreviation with points
			}
			j += size
			continue
		}
		next, _ := utf8.DecodeRuneInString(text[j+size:])
		switch {
		case (r == '\'' || r == '’' || r == 'ʼ') && unicode.IsLetter(next) && !digits:
		case (r == '.' || r == ',') && digits && unicode.IsDigit(next):
		case r == '.' && !digits && letters == 1 && (unicode.IsUpper(next) && lexAbbreviated(text[j+size:]) || strings.Contains(text[i:j], ".")):
			letters = 0
		default:
			return j
		}
		j += size
	}
	return j
}

// lexAbbreviated reports whether s goes on like "S." of U.S.: one letter and a point.
func lexAbbreviated(s string) bool {
	_, size := utf8.DecodeRuneInString(s)
	return strings.HasPrefix(s[size:], ".")
}

// lexContraction splits n't off its verb and drops possessive and verb endings behind an apostrophe.
func lexContraction(t lexToken) []lexToken {
	t.lower = strings.ReplaceAll(t.lower, ".", "")
	if lexDigit(t.lower) {
		t.lower = lexLower(t.text) // the point of 3.5 stays
		return []lexToken{t}
	}
	verb, ok := strings.CutSuffix(t.lower, "n't")
	if !ok {
		verb, ok = lexUnmarked[t.lower]
	}
	if ok {
		if full, irregular := map[string]string{"wo": "will", "ca": "can", "sha": "shall", "ai": "be"}[verb]; irregular {
			verb = full
		}
		not := t
		t.lower, not.lower = verb, "not"
		return []lexToken{t, not}
	}
	if base, end, cut := strings.Cut(t.lower, "'"); cut && base != "" {
		switch end {
		case "s", "", "re", "ve", "ll", "d", "m":
			t.lower = base
			if k := strings.IndexAny(t.text, "'’ʼ"); k > 0 {
				t.text = t.text[:k]
			}
		default:
			t.lower = base + end
		}
	}
	return []lexToken{t}
}

func lexDigit(s string) bool { return s != "" && s[0] >= '0' && s[0] <= '9' }

// lexSentences splits a text into sentences, with offsets into it. A blank line, a list item and a
// sentence mark before white space end one; the point of an abbreviation does not.
func lexSentences(text string) []lexSentence {
	var out []lexSentence
	start := 0
	emit := func(end int) {
		a, b := start, end
		for a < b && lexTrimmed(text[a:b], true) > 0 {
			a += lexTrimmed(text[a:b], true)
		}
		for a < b && lexTrimmed(text[a:b], false) > 0 {
			b -= lexTrimmed(text[a:b], false)
		}
		start = end
		if a == b {
			return
		}
		s := lexSentence{start: a, end: b, tokens: lexTokens(text[a:b])}
		for i := range s.tokens {
			s.tokens[i].start += a
			s.tokens[i].end += a
		}
		s.question = strings.HasSuffix(strings.TrimRight(text[a:b], `"'”’)]*_ `), "?")
		if len(s.tokens) > 0 {
			out = append(out, s)
		}
	}
	for i := 0; i < len(text); {
		if n := lexAddressAt(text, i); n > 0 {
			i += n
			continue
		}
		r, size := utf8.DecodeRuneInString(text[i:])
		i += size
		switch {
		case r == '\n':
			if lexLineEnds(text, i) {
				emit(i)
			}
		case r == '。' || r == '！' || r == '？':
			emit(i)
		case r == '.' || r == '!' || r == '?' || r == '…':
			for i < len(text) && strings.ContainsRune(".!?…", lexRuneAt(text, i)) {
				i += utf8.RuneLen(lexRuneAt(text, i))
			}
			for i < len(text) && strings.ContainsRune(`"'”’»)]*_`, lexRuneAt(text, i)) {
				i += utf8.RuneLen(lexRuneAt(text, i))
			}
			if lexSentenceEnds(text, start, i, r) {
				emit(i)
			}
		}
	}
	emit(len(text))
	return out
}

func lexRuneAt(text string, i int) rune {
	r, _ := utf8.DecodeRuneInString(text[i:])
	return r
}

// lexTrimmed returns how many bytes of white space or list marks to cut at the front or back.
func lexTrimmed(s string, front bool) int {
	if front {
		r, size := utf8.DecodeRuneInString(s)
		if unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) || strings.ContainsRune("#>*-•–—", r) {
			return size
		}
		return 0
	}
	r, size := utf8.DecodeLastRuneInString(s)
	if unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) {
		return size
	}
	return 0
}

// lexLineEnds reports whether the line break before i separates sentences: a blank line or a list
// mark follows. A break inside a paragraph is a blank.
func lexLineEnds(text string, i int) bool {
	line, _, _ := strings.Cut(text[i:], "\n")
	trimmed := strings.TrimSpace(line)
	if trimmed == "" {
		return true
	}
	r, _ := utf8.DecodeRuneInString(trimmed)
	if strings.ContainsRune("#>*-•|", r) {
		return true
	}
	digits := strings.TrimLeft(trimmed, "0123456789")
	return len(digits) < len(trimmed) && (strings.HasPrefix(digits, ". ") || strings.HasPrefix(digits, ") "))
}

// lexSentenceEnds reports whether the mark that ends before i ends the sentence begun at start.
func lexSentenceEnds(text string, start, i int, mark rune) bool {
	if i >= len(text) {
		return true
	}
	next := lexRuneAt(text, i)
	if !unicode.IsSpace(next) {
		return false
	}
	if mark == '!' || mark == '?' {
		return true
	}
	rest := strings.TrimLeftFunc(text[i:], unicode.IsSpace)
	following := lexRuneAt(rest, 0)
	if unicode.IsLower(following) {
		return false // "e.g. this", "and then ... it went on"
	}
	before := strings.TrimRight(text[start:i], `.…"'”’»)]*_`)
	if k := strings.LastIndexFunc(before, func(r rune) bool { return !lexWordRune(r) && r != '.' }); k >= 0 {
		_, size := utf8.DecodeRuneInString(before[k:])
		before = before[k+size:]
	}
	word := lexLower(before)
	if lexAbbreviations[word] {
		return false
	}
	// An initial ("J. Smith") goes on, unless it is the word I or the end of U.S. before a new sentence.
	return !(utf8.RuneCountInString(before) == 1 && unicode.IsUpper(lexRuneAt(before, 0)) && before != "I") && word != "us" || strings.Contains(before, ".")
}

// A lexText is a text that was read: sentences with every token resolved.
type lexText struct {
	sentences []lexSentence
}

// A lexCase counts how words are written over all texts that are compared: a word that has its
// capital where none is due and never lacks it is a name wherever it stands.
type lexCase map[string]*struct{ capital, small int }

// lexParse reads texts that belong together, so that they agree on what a name is.
func lexParse(texts ...[]lexSentence) []lexText {
	seen := lexCase{}
	for _, sentences := range texts {
		for i := range sentences {
			lexInitials(&sentences[i])
			seen.count(&sentences[i])
		}
	}
	out := make([]lexText, len(texts))
	for n, sentences := range texts {
		for i := range sentences {
			s := &sentences[i]
			for k := range s.tokens {
				seen.resolve(s, &s.tokens[k])
			}
			lexLeading(s)
			lexNumbers(s)
			lexPoles(s)
			lexClauses(s)
		}
		out[n] = lexText{sentences: sentences}
	}
	return out
}

// lexInitials marks words whose capital comes from their place, and headlines.
func lexInitials(s *lexSentence) {
	first := true
	capitals, small := 0, 0
	for i := range s.tokens {
		t := &s.tokens[i]
		if t.mark {
			if strings.ContainsAny(t.text, ":\"“”„«»([.!?…—|") {
				first = true
			}
			continue
		}
		t.initial = first
		if !first && !lexStop[t.lower] && !lexDigit(t.lower) {
			if lexCapital(t.text) {
				capitals++
			} else {
				small++
			}
		}
		first = false
	}
	s.headline = small == 0 && capitals >= 3
}

func lexCapital(s string) bool { return unicode.IsUpper(lexRuneAt(s, 0)) }

// lexAcronym reports whether a word is all capitals, at least two.
func lexAcronym(s string) bool {
	n := 0
	for _, r := range s {
		if unicode.IsLower(r) {
			return false
		}
		if unicode.IsUpper(r) {
			n++
		}
	}
	return n >= 2
}

func (c lexCase) count(s *lexSentence) {
	for _, t := range s.tokens {
		if t.mark || lexDigit(t.lower) {
			continue
		}
		n := c[t.lower]
		if n == nil {
			n = &struct{ capital, small int }{}
			c[t.lower] = n
		}
		switch {
		case !lexCapital(t.text):
			n.small++
		case !t.initial && !s.headline:
			n.capital++
		}
	}
}

// resolve decides whether a token is a name and gives it its stem and concept.
func (c lexCase) resolve(s *lexSentence, t *lexToken) {
	if t.mark {
		return
	}
	if !lexDigit(t.lower) && lexCapital(t.text) && t.lower != "i" && !lexCalendar[t.lower] {
		n := c[t.lower]
		switch {
		case lexAcronym(t.text) && lexSpecial(t.lower):
			t.name = t.text == "US" || t.text == "U.S" || t.text == "U.S." // otherwise capitals are for emphasis: NOT, NEVER
		case t.initial || s.headline:
			t.name = n.capital > 0 && n.small == 0
		default:
			t.name = true
		}
	}
	t.stop = !t.name && lexStop[t.lower]
	t.stem = lexStem(t.lower)
	t.concept = t.stem
	if !t.name {
		t.concept = lexConcept(t.lower)
	}
}

// lexLeading makes the first word of a sentence part of the name that follows it.
func lexLeading(s *lexSentence) {
	for i := 0; i+1 < len(s.tokens); i++ {
		t := &s.tokens[i]
		if t.initial && !t.name && !t.stop && s.tokens[i+1].name && lexCapital(t.text) && !s.headline && !lexSpecial(t.lower) && !lexCalendar[t.lower] {
			t.name, t.concept = true, t.stem
		}
	}
}

// lexSpecial reports whether a word has a meaning of its own for the reader.
func lexSpecial(lower string) bool {
	return lexStop[lower] || lexNegators[lower] || lexCues[lexConcept(lower)] != 0 || lexPoleOf[lexConcept(lower)].axis != ""
}

// lexClauses numbers the clauses of a sentence: what a negation reaches ends with its clause.
func lexClauses(s *lexSentence) {
	clause := 0
	tokens := s.tokens
	for i := range tokens {
		t := &tokens[i]
		switch {
		case t.mark && strings.ContainsAny(t.text, ",;:()[]—–|"):
			if t.text != "," || !lexAside(tokens, i) {
				clause++
			}
		case t.mark && t.text == "-" && i > 0 && t.start > tokens[i-1].end:
			clause++ // a dash between blanks
		case t.name:
		case lexConjunctions[t.lower]:
			clause++
		case t.lower == "and" && i+1 < len(tokens) && lexPronouns[tokens[i+1].lower]:
			clause++
		case t.lower == "that" && i > 0 && i+1 < len(tokens) && !tokens[i+1].mark && !lexBe[tokens[i+1].lower]:
			clause++
		}
		t.clause = clause
	}
}

// lexAside reports whether the comma at i opens or closes an insertion without content, such as
// ", in fact,": it does not end the clause.
func lexAside(tokens []lexToken, i int) bool {
	empty := func(from, step int) bool {
		for n, k := 0, from; k >= 0 && k < len(tokens) && n < 4; n, k = n+1, k+step {
			t := tokens[k]
			if t.mark {
				return t.text == "," && n > 0
			}
			if !t.stop && !lexFiller[t.lower] {
				return false
			}
			if lexConjunctions[t.lower] || lexNegators[t.lower] || lexPronouns[t.lower] {
				return false
			}
		}
		return false
	}
	return empty(i+1, 1) || empty(i-1, -1)
}

// lexStem takes common English endings off a word in lower case. It is light: it need not give a
// word, only the same letters for forms of one word.
func lexStem(w string) string {
	if len(w) <= 3 {
		return w
	}
	w = lexPlural(w)
	for _, end := range []string{"ingly", "edly", "ing", "ied", "ed"} {
		base, ok := strings.CutSuffix(w, end)
		if !ok || strings.HasSuffix(w, "eed") || len(base) < 3 && !(len(base) == 2 && end != "ingly" && end != "edly" && strings.ContainsAny(base, "aeiou")) || !strings.ContainsAny(base, "aeiouy") {
			continue
		}
		w = base
		if end == "ied" {
			w += "y"
		}
		break
	}
	for _, end := range []string{"ization", "isation", "ation", "ition", "ement", "ment", "ally", "ly", "ure", "al"} {
		if base, ok := strings.CutSuffix(w, end); ok && (len(base) >= 4 || len(base) == 3 && end == "ment") {
			w = base
			if end == "ization" || end == "isation" {
				w += "is"
			}
			break
		}
	}
	if base, ok := strings.CutSuffix(w, "ion"); ok && len(base) >= 4 && strings.HasSuffix(base, "t") {
		w = base
	}
	if base, ok := strings.CutSuffix(w, "ate"); ok && len(base) >= 4 {
		w = base
	} else if base, ok := strings.CutSuffix(w, "at"); ok && len(base) >= 5 {
		w = base // what is left of -ated and -ating
	}
	if base, ok := strings.CutSuffix(w, "e"); ok && len(base) >= 3 {
		w = base
	}
	if base, ok := strings.CutSuffix(w, "iz"); ok && len(base) >= 3 {
		w = base + "is"
	}
	if base, ok := strings.CutSuffix(w, "our"); ok && len(base) >= 3 {
		w = base + "or"
	}
	return lexUndouble(w)
}

func lexPlural(w string) string {
	switch {
	case strings.HasSuffix(w, "ies") && len(w) > 4:
		return w[:len(w)-3] + "y"
	case strings.HasSuffix(w, "sses"), strings.HasSuffix(w, "xes"), strings.HasSuffix(w, "ches"), strings.HasSuffix(w, "shes"), strings.HasSuffix(w, "zzes"):
		return w[:len(w)-2]
	case strings.HasSuffix(w, "ss"), strings.HasSuffix(w, "us"), strings.HasSuffix(w, "is"):
		return w
	case strings.HasSuffix(w, "s"):
		return w[:len(w)-1]
	}
	return w
}

// lexUndouble makes planned, plan, falling and fall agree.
func lexUndouble(w string) string {
	if n := len(w); n > 3 && w[n-1] == w[n-2] && !strings.ContainsRune("aeiou", rune(w[n-1])) {
		return w[:n-1]
	}
	return w
}
