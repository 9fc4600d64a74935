package llm

import (
	"math"
	"strconv"
	"strings"
	"unicode"
)

// A lexNumber is a quantity as a text states it.
type lexNumber struct {
	value     float64
	kind      byte    // 'n' count, '%' share, '$' money, 'y' year, 'o' ordinal
	low, high float64 // what the statement allows, with tolerance; infinite on the open side of a bound
	unit      []string
	last      int // index of its last token
}

// Shares of the value by which two statements of one number may differ: plainly stated, and with
// "about" or "nearly" beside it.
const (
	lexTolerance = 0.05
	lexRough     = 0.12
)

var lexUnits = map[string]float64{"zero": 0, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10, "eleven": 11,
	"twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16, "seventeen": 17, "eighteen": 18, "nineteen": 19}

var lexTens = map[string]float64{"twenty": 20, "thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80, "ninety": 90}

var lexMagnitudes = map[string]float64{"hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "trillion": 1e12, "dozen": 12,
	"k": 1e3, "m": 1e6, "mn": 1e6, "mln": 1e6, "bn": 1e9, "b": 1e9, "tn": 1e12}

var lexShares = map[string]float64{"half": 50, "third": 100.0 / 3, "thirds": 100.0 / 3, "quarter": 25, "quarters": 25, "fifth": 20, "fifths": 20, "tenth": 10}

var lexMoney = lexSet(`dollar dollars euro euros pound pounds cent cents usd eur gbp bucks yen`)

var lexPlaceWords = lexSet(`in on at by for from to since during over under per after before until`)

// lexNumbers finds the numbers of a sentence and hangs each on its first token.
func lexNumbers(s *lexSentence) {
	for i := 0; i < len(s.tokens); i++ {
		n, ok := lexNumberAt(s.tokens, i)
		if !ok {
			continue
		}
		lexKind(s.tokens, i, &n)
		lexBound(s.tokens, i, &n)
		n.unit = lexUnitOf(s.tokens, n.last)
		s.tokens[i].number = &n
		s.tokens[i].stop = false
		for k := i + 1; k <= n.last; k++ {
			s.tokens[k].stop = true
		}
		i = n.last
	}
}

// lexNumberAt reads digits or number words at i, with the magnitudes behind them.
func lexNumberAt(tokens []lexToken, i int) (lexNumber, bool) {
	t := tokens[i]
	n := lexNumber{kind: 'n', last: i}
	switch {
	case t.mark || t.name:
		return n, false
	case lexDigit(t.lower):
		if !lexDigits(t.lower, &n) {
			return n, false
		}
	case t.lower == "one" || t.lower == "a":
		if v, ok := lexShareAt(tokens, i+1); ok {
			n.value, n.kind, n.last = v, '%', i+1
			return n, true
		}
		next := lexNext(tokens, i)
		if next < 0 || lexMagnitudes[tokens[next].lower] < 10 && !lexOutOf(tokens, i) {
			return n, false
		}
		n.value = 1
	case t.lower == "half":
		n.value, n.kind = 50, '%'
		return n, i+1 < len(tokens) && (tokens[i+1].lower == "of" || tokens[i+1].lower == "the")
	default:
		v, ok := lexUnits[t.lower]
		if tens, yes := lexTens[t.lower]; yes {
			v, ok = tens, true
			if next := lexNext(tokens, i); next >= 0 && lexUnits[tokens[next].lower] > 0 && lexUnits[tokens[next].lower] < 10 {
				v += lexUnits[tokens[next].lower]
				n.last = next
			}
		}
		if !ok {
			return n, false
		}
		n.value = v
	}
	if v, ok := lexShareAt(tokens, n.last+1); ok && n.value < 10 {
		n.value, n.kind, n.last = n.value*v, '%', n.last+1
		return n, true
	}
	for n.kind == 'n' {
		next := lexNext(tokens, n.last)
		if next < 0 || lexMagnitudes[tokens[next].lower] == 0 || tokens[next].name {
			break
		}
		n.value *= lexMagnitudes[tokens[next].lower]
		n.last = next
	}
	if n.kind == 'n' && lexOutOf(tokens, n.last) {
		lexRatio(tokens, &n)
	}
	return n, true
}

// lexDigits reads 1,200, 3.5, 12th, 40k, 1950s.
func lexDigits(lower string, n *lexNumber) bool {
	k := strings.IndexFunc(lower, func(r rune) bool { return !unicode.IsDigit(r) && r != '.' && r != ',' })
	digits, suffix := lower, ""
	if k >= 0 {
		digits, suffix = lower[:k], lower[k:]
	}
	v, err := strconv.ParseFloat(strings.ReplaceAll(digits, ",", ""), 64)
	if err != nil {
		return false
	}
	n.value = v
	year := len(digits) == 4 && v >= 1500 && v <= 2100 && !strings.ContainsAny(digits, ".,")
	switch {
	case suffix == "" && year:
		n.kind = 'y'
	case suffix == "s" && year:
		n.kind, n.low, n.high = 'y', v, v+9
	case suffix == "":
	case suffix == "th" || suffix == "st" || suffix == "nd" || suffix == "rd":
		n.kind = 'o'
	case lexMagnitudes[suffix] > 0:
		n.value *= lexMagnitudes[suffix]
	default:
		return false
	}
	return true
}

// lexNext returns the index of the word behind i, over a hyphen; -1 if there is none.
func lexNext(tokens []lexToken, i int) int {
	k := i + 1
	if k < len(tokens) && tokens[k].mark && (tokens[k].text == "-" || tokens[k].text == "‑") {
		k++
	}
	if k >= len(tokens) || tokens[k].mark {
		return -1
	}
	return k
}

func lexShareAt(tokens []lexToken, i int) (float64, bool) {
	if i < len(tokens) && tokens[i].mark && tokens[i].text == "-" {
		i++
	}
	if i >= len(tokens) || tokens[i].mark || tokens[i].name {
		return 0, false
	}
	v, ok := lexShares[tokens[i].lower]
	return v, ok && (i+1 >= len(tokens) || tokens[i+1].mark || tokens[i+1].stop)
}

// lexOutOf reports whether the number at i begins "one in five" or "3 out of 10".
func lexOutOf(tokens []lexToken, i int) bool {
	k := i + 1
	if k+1 < len(tokens) && tokens[k].lower == "out" {
		k++
	}
	if k+1 >= len(tokens) || tokens[k].lower != "in" && tokens[k].lower != "of" || tokens[k].lower == "of" && k == i+1 {
		return false
	}
	var m lexNumber
	v := lexUnits[tokens[k+1].lower]
	if lexDigit(tokens[k+1].lower) && lexDigits(tokens[k+1].lower, &m) && m.kind == 'n' {
		v = m.value
	}
	return v >= 2 && v <= 100
}

func lexRatio(tokens []lexToken, n *lexNumber) {
	k := n.last + 2
	if tokens[k].lower == "of" {
		k++
	}
	of := lexUnits[tokens[k].lower]
	var m lexNumber
	if lexDigit(tokens[k].lower) && lexDigits(tokens[k].lower, &m) {
		of = m.value
	}
	if n.value < of {
		n.value, n.kind, n.last = 100*n.value/of, '%', k
	}
}

// lexKind tells money and shares by the marks and words beside the number.
func lexKind(tokens []lexToken, i int, n *lexNumber) {
	if i > 0 && tokens[i-1].mark && strings.ContainsAny(tokens[i-1].text, "$€£¥") {
		n.kind = '$'
		return
	}
	k := n.last + 1
	if k >= len(tokens) {
		return
	}
	next := tokens[k].lower
	if tokens[k].mark && next == "-" && k+1 < len(tokens) {
		k++
		next = tokens[k].lower
	}
	switch {
	case next == "%" || next == "percent" || next == "percentage" || next == "pct" || next == "pc":
		n.kind, n.last = '%', k
	case next == "per" && k+1 < len(tokens) && tokens[k+1].lower == "cent":
		n.kind, n.last = '%', k+1
	case lexMoney[next] && !tokens[k].name:
		n.kind, n.last = '$', k
		if next == "cent" || next == "cents" {
			n.value /= 100
		}
	}
}

// lexBound reads "more than", "at most" and "nearly" before the number at i, takes these words out
// of the reading, and sets what the statement allows.
func lexBound(tokens []lexToken, i int, n *lexNumber) {
	k := i - 1
	if k >= 0 && tokens[k].mark && strings.ContainsAny(tokens[k].text, "$€£¥") {
		k--
	}
	word := func(back int) string {
		if k-back < 0 || tokens[k-back].mark {
			return ""
		}
		return tokens[k-back].lower
	}
	bound, rough, used := 0, false, 0
	switch one, two, three := word(0), word(1), word(2); {
	case one == "than" && (two == "more" || two == "greater" || two == "higher"):
		bound, used = 1, 2
		if three == "no" || three == "not" {
			bound, used = -1, 3
		}
	case one == "than" && (two == "less" || two == "fewer" || two == "lower"):
		bound, used = -1, 2
		if three == "no" || three == "not" {
			bound, used = 1, 3
		}
	case one == "least" && two == "at", one == "of" && two == "upwards", one == "of" && two == "minimum":
		bound, used = 1, 2
	case one == "most" && two == "at", one == "to" && two == "up", one == "of" && two == "maximum":
		bound, used = -1, 2
	case one == "over" || one == "above" || one == "exceeding" || one == "exceeds" || one == "exceeded" || one == "topped" || one == "surpassed":
		bound, used = 1, 1
	case one == "under" || one == "below":
		bound, used = -1, 1
	case one == "to" && two == "close", one == "of" && two == "some":
		rough, used = true, 2
	case one == "about" || one == "around" || one == "nearly" || one == "almost" || one == "roughly" || one == "approximately" || one == "some" || one == "circa":
		rough, used = true, 1
	}
	for b := range used {
		t := &tokens[k-b]
		t.stop, t.lower, t.concept, t.stem = true, "about", "about", "about"
	}
	if n.high == 0 {
		n.low, n.high = n.value, n.value
	}
	slack := math.Abs(n.value) * lexTolerance
	if rough {
		slack = math.Abs(n.value) * lexRough
	}
	if n.kind == '%' {
		slack = math.Max(slack, 0.6)
	}
	if n.kind == 'y' || n.kind == 'o' {
		slack = 0
	}
	n.low, n.high = n.low-slack, n.high+slack
	switch bound {
	case 1:
		n.high = math.Inf(1)
	case -1:
		n.low = math.Inf(-1)
	}
}

// lexUnitOf returns the concepts of up to two words that say what is counted.
func lexUnitOf(tokens []lexToken, last int) []string {
	var unit []string
	for k := last + 1; k < len(tokens) && k < last+6 && len(unit) < 2; k++ {
		t := tokens[k]
		if t.mark {
			if t.text == "-" {
				continue
			}
			break
		}
		if lexPlaceWords[t.lower] || lexConjunctions[t.lower] {
			break
		}
		if !t.stop && !lexDigit(t.lower) {
			unit = append(unit, t.concept)
		}
	}
	return unit
}

// lexCompare relates a number of a text to one of the claim: same, differs, or neither, where they
// count different things or one leaves room for the other. Where one of them does not say what it
// counts, akin tells whether the sentence is close enough to the claim to take them for the same.
func lexCompare(claim, text *lexNumber, akin bool) (same, differs bool) {
	if claim.kind != text.kind {
		return false, false
	}
	counted := claim.kind != 'n' || akin && (len(claim.unit) == 0 || len(text.unit) == 0)
	for _, a := range claim.unit {
		for _, b := range text.unit {
			counted = counted || a == b
		}
	}
	if !counted {
		return false, false
	}
	if text.low > claim.high || claim.low > text.high {
		return false, true
	}
	if open := math.IsInf(text.low, 0) || math.IsInf(text.high, 0); open {
		alike := math.IsInf(text.low, 0) == math.IsInf(claim.low, 0) && math.IsInf(text.high, 0) == math.IsInf(claim.high, 0)
		return alike && math.Abs(text.value-claim.value) <= lexRough*math.Abs(claim.value), false
	}
	return true, false
}
