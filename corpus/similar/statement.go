package similar

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"assay/corpus"
)

// SameStatement reports whether two wordings, similar as they are, can state the same thing. They cannot
// where a number is another, where one is negated and the other is not, where a word was replaced by one
// of another stem ("rose" by "fell", one name by another), or where names come in another order. Words that only
// one of them has besides ("Says", "President", "on Facebook") part nothing.
//
// It reads English; of other languages it compares numbers, names and stems. It would rather leave one
// claim in two clusters than put two claims into one.
func SameStatement(a, b string) bool {
	x, y := read(a), read(b)
	if min(len(x.words), len(y.words)) < fewWords && !slices.Equal(x.words, y.words) {
		return false
	}
	return slices.Equal(x.numbers, y.numbers) && x.negations == y.negations &&
		!replaced(x, y) && slices.Equal(common(x, y), common(y, x))
}

// fewWords is how many words of meaning a wording needs before another may have more: "On abortion" is a
// subject and states nothing.
const fewWords = 3

// A statement is what SameStatement reads of a wording.
type statement struct {
	numbers   []string // sorted
	negations int
	words     []string        // of meaning, in lower case, in their order
	has       map[string]bool // words
	names     map[string]bool // of words, those in capitals other than by their place
}

func read(text string) statement {
	s := statement{has: map[string]bool{}, names: map[string]bool{}}
	for i, w := range fields(text) {
		plain := strings.ToLower(w)
		plain = strings.TrimSuffix(plain, "'s")
		plain = strings.ReplaceAll(plain, "'", "") // tables lose it: dont
		switch {
		case numerals[plain] != "":
			s.numbers = append(s.numbers, numerals[plain])
		case strings.ContainsFunc(plain, unicode.IsNumber):
			s.numbers = append(s.numbers, strings.ReplaceAll(plain, ",", ""))
		case negations[plain]:
			s.negations++
		case function[plain] || plain == "":
		default:
			s.words = append(s.words, plain)
			s.has[plain] = true
			if r, _ := utf8.DecodeRuneInString(w); i > 0 && unicode.IsUpper(r) {
				s.names[plain] = true
			}
		}
	}
	slices.Sort(s.numbers)
	return s
}

// fields splits a text into words as people see them; apostrophes, and commas and points in numbers, stay.
func fields(text string) []string {
	rest := func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r) && r != '\'' && r != ',' && r != '.' && r != '%'
	}
	var out []string
	for _, w := range strings.FieldsFunc(corpus.Fold(text), rest) {
		if w = strings.Trim(w, "',."); w == "" {
			continue
		}
		if number, ok := strings.CutSuffix(w, "%"); ok {
			out = append(out, number, "percent")
			continue
		}
		if !strings.ContainsFunc(w, unicode.IsNumber) {
			// Initials are one word (U.S.), and a full stop or a comma without a blank parts two.
			if n := len(w); n <= 7 && strings.Count(w, ".") == n/2 {
				out = append(out, strings.ReplaceAll(w, ".", ""))
				continue
			}
			out = append(out, strings.FieldsFunc(w, func(r rune) bool { return r == '.' || r == ',' })...)
			continue
		}
		out = append(out, w)
	}
	return out
}

// replaced reports whether each wording has a word that the other has not, and these are no forms of one
// another. Where one has more of them, the fewer must find their counterparts.
func replaced(x, y statement) bool {
	only := func(x, y statement) (out []string) {
		for _, w := range x.words {
			if !y.has[w] {
				out = append(out, w)
			}
		}
		return out
	}
	fewer, more := only(x, y), only(y, x)
	if len(fewer) > len(more) {
		fewer, more = more, fewer
	}
	return slices.ContainsFunc(fewer, func(a string) bool {
		return !slices.ContainsFunc(more, func(b string) bool { return sameStem(a, b) })
	})
}

// sameStem reports whether one word is the other with another ending: all but the last letter of the
// shorter one begin the longer one, and all of it if it is short (Iran is not Iraq).
func sameStem(a, b string) bool {
	if synonyms[a] != "" && synonyms[a] == synonyms[b] {
		return true
	}
	if len(a) > len(b) {
		a, b = b, a
	}
	if utf8.RuneCountInString(a) >= 5 {
		_, n := utf8.DecodeLastRuneInString(a)
		a = a[:len(a)-n]
	}
	return utf8.RuneCountInString(a) >= 3 && strings.HasPrefix(b, a) && len(b)-len(a) <= 4
}

// common lists the names that both wordings have once, in the order of x.
func common(x, y statement) (out []string) {
	once := func(s statement, w string) bool {
		n := 0
		for _, v := range s.words {
			if v == w {
				n++
			}
		}
		return n == 1
	}
	for _, w := range x.words {
		if (x.names[w] || y.names[w]) && y.has[w] && once(x, w) && once(y, w) {
			out = append(out, w)
		}
	}
	return out
}

func wordSet(list string) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields(list) {
		out[w] = true
	}
	return out
}

var (
	negations = wordSet(`not no never none nobody nothing neither nor without cannot false falsely fake hoax untrue
		dont doesnt didnt isnt arent wasnt werent havent hasnt hadnt wont cant couldnt wouldnt shouldnt mustnt neednt aint`)

	// function words carry no statement of their own.
	function = wordSet(`a an the and or but if of to in on at by for from with as into about over under than then that this these those
		there here it its he she they we i you his her their our your my him them us who whom whose which what when where why how
		is are was were be been being am has have had having do does did doing will would shall should can could may might must
		also just very so such too s t re ve ll d`)

	numerals = map[string]string{
		"one": "1", "two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7", "eight": "8", "nine": "9", "ten": "10",
		"eleven": "11", "twelve": "12", "hundred": "hundred", "hundreds": "hundred", "thousand": "thousand", "thousands": "thousand",
		"million": "million", "millions": "million", "billion": "billion", "billions": "billion", "trillion": "trillion", "trillions": "trillion",
		"percent": "percent", "half": "half", "twice": "twice", "double": "twice", "doubled": "twice", "first": "first", "second": "second", "third": "third",
	}

	// synonyms are words by which reports of one claim differ: who tells it, and what is passed around.
	synonyms = func() map[string]string {
		out := map[string]string{}
		for _, line := range []string{
			"says said say claims claimed claim states stated tells told reports reported",
			"photo photograph photos photographs picture pictures image images",
			"video videos clip clips footage",
			"shows show showed showing depicts depicted depict",
			"covid coronavirus covid19",
		} {
			words := strings.Fields(line)
			for _, w := range words {
				out[w] = words[0]
			}
		}
		return out
	}()
)
