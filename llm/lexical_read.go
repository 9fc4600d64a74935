package llm

import (
	"fmt"
	"maps"
	"math"
	"strings"
	"unicode/utf8"
)

// A Reading is what a text says about a claim, as far as words tell.
type Reading struct {
	Answer string  // "true", "false" or "unrelated"
	Quote  string  // the deciding sentence, a substring of title or text; empty when unrelated
	Reason string  // one sentence for people
	Score  float64 // 0 to 1: how strongly the deciding sentence bears on the claim
}

// Longest quote and reason in characters, as the label protocols ask for (methods 3.1).
const (
	lexQuoteRunes  = 300
	lexReasonRunes = 400
)

// Read answers whether a document makes a claim true or false, by words alone: which of the claim's
// words a sentence shares, whether both deny or affirm, whether directions and numbers agree, and
// what verdict words beside them say. A document without a sentence that shares enough of the
// claim is unrelated, and so is one whose sentences contradict each other evenly. Equal arguments
// give equal readings.
func Read(claim, title, text string) Reading {
	titles := lexSentences(title)
	for i := range titles {
		titles[i].title = true
	}
	parsed := lexParse(lexSentences(claim), titles, lexSentences(text))
	c := lexClaimOf(parsed[0])
	doc := append(parsed[1].sentences, parsed[2].sentences...)
	source := func(s lexSentence) string {
		if s.title {
			return title[s.start:s.end]
		}
		return text[s.start:s.end]
	}

	c.need = c.share(doc)
	if c.weight == 0 {
		return Reading{Answer: "unrelated", Reason: "The claim has no words to compare."}
	}
	var best [2]lexStance // against, for
	nearest := 0.0
	for i := range doc {
		st := c.stance(doc, i)
		nearest = math.Max(nearest, st.cover)
		if st.sign == 0 {
			continue
		}
		side := (st.sign + 1) / 2
		if st.score > best[side].score {
			best[side] = st
		}
	}
	against, in := best[0], best[1]
	switch {
	case against.score == 0 && in.score == 0:
		return Reading{Answer: "unrelated", Score: nearest,
			Reason: fmt.Sprintf("No sentence settles the claim; the nearest shares %.0f %% of its words.", 100*nearest)}
	case math.Abs(against.score-in.score) < lexMargin*math.Max(against.score, in.score):
		return Reading{Answer: "unrelated", Score: nearest, Reason: "Sentences for and against the claim weigh the same."}
	case against.score > in.score:
		return Reading{Answer: "false", Quote: lexCut(source(doc[against.sentence]), lexQuoteRunes), Reason: lexCut(against.why, lexReasonRunes), Score: math.Min(1, against.score)}
	}
	return Reading{Answer: "true", Quote: lexCut(source(doc[in.sentence]), lexQuoteRunes), Reason: lexCut(in.why, lexReasonRunes), Score: math.Min(1, in.score)}
}

// How much of a claim's weight a sentence must share: short claims need more, for two shared words
// of four are less telling than six of twelve.
const (
	lexShareShort  = 0.45 // up to lexShortWeight
	lexShareLong   = 0.25 // from lexLongWeight on
	lexShortWeight = 4
	lexLongWeight  = 9
	lexContext     = 0.5 // what a word counts that stands in the title or the sentence before
	lexMargin      = 0.1 // sides closer than this share of the larger are even
	lexMissing     = 0.4 // a sentence that lacks this share of one end of the claim speaks of something else
	lexAsserts     = 0.5 // a sentence that asserts less than this settles nothing
)

// lexCut shortens s to n characters at a blank.
func lexCut(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	end := 0
	for range n {
		_, size := utf8.DecodeRuneInString(s[end:])
		end += size
	}
	if k := strings.LastIndexAny(s[:end], " \n\t"); k > 0 {
		end = k
	}
	return strings.TrimSpace(s[:end])
}

// A lexTerm is one thing that the claim speaks of.
type lexTerm struct {
	stems   []string // of a name, all its words
	concept string
	pole    lexPole
	near    map[string]bool // concepts around a pole, which tell what rises or falls
	number  *lexNumber
	name    bool
	negated bool
	aside   bool // alone in its clause behind a negation: burned, not recycled
	weight  float64
}

// A lexClaim is a claim made ready for comparison.
type lexClaim struct {
	terms  []lexTerm
	weight float64
	words  float64        // the weight without the names
	need   float64        // share of the weight that a sentence of this document must share
	denied bool           // the claim itself says of something that it is false
	cues   map[string]int // the verdict words it says so with, and their sign
	hedged bool
	poles  bool
	names  bool
}

func lexClaimOf(t lexText) lexClaim {
	c := lexClaim{cues: map[string]int{}}
	seen := map[string]int{}
	for n := range t.sentences {
		s := &t.sentences[n]
		negated := lexNegated(s, func(i int) bool { return lexContent(&s.tokens[i]) })
		for i := 0; i < len(s.tokens); i++ {
			tok := &s.tokens[i]
			if lexHedges[tok.lower] && !tok.name {
				c.hedged = true
			}
			if sign, _, ok := lexCueAt(s, i); ok {
				c.denied = c.denied || sign < 0
				c.cues[tok.concept] = sign
				continue
			}
			if !lexContent(tok) {
				continue
			}
			term := lexTerm{concept: tok.concept, pole: tok.pole, number: tok.number, name: tok.name, negated: negated[i], weight: 1}
			switch {
			case tok.name:
				for ; i < len(s.tokens) && s.tokens[i].name; i++ {
					term.stems = append(term.stems, s.tokens[i].stem)
				}
				i--
				term.concept = "name " + strings.Join(term.stems, " ")
				c.names = true
			case tok.number != nil:
				term.concept = fmt.Sprintf("number %c %g", tok.number.kind, tok.number.value)
				if tok.number.kind == 'y' {
					term.weight = 0.7
				}
			case tok.pole.axis != "":
				term.near = lexNear(s, i)
				if tok.stop || lexWeak[tok.concept] {
					term.weight = 0.5
				} else {
					c.poles = true
				}
			case lexWeak[tok.concept]:
				term.weight = 0.4
			}
			if k, ok := seen[term.concept]; ok {
				if c.terms[k].near != nil {
					maps.Copy(c.terms[k].near, term.near)
				}
				continue
			}
			term.aside = term.negated && lexAlone(s, i, func(k int) bool { return lexContent(&s.tokens[k]) })
			seen[term.concept] = len(c.terms)
			c.terms = append(c.terms, term)
			c.weight += term.weight
			if !term.name {
				c.words += term.weight
			}
		}
	}
	return c
}

// lexAlone reports whether token i is the only one of its clause that counts.
func lexAlone(s *lexSentence, i int, counts func(int) bool) bool {
	for k := range s.tokens {
		if k != i && s.tokens[k].clause == s.tokens[i].clause && counts(k) {
			return false
		}
	}
	return true
}

// lexContent reports whether a token takes part in the comparison: everything but marks and stop
// words, and stop words that are one end of a pair of opposites.
func lexContent(t *lexToken) bool {
	return !t.mark && (t.number != nil || t.name || !t.stop || t.pole.axis != "")
}

// lexNear returns the concepts of the words around token i in its clause.
func lexNear(s *lexSentence, i int) map[string]bool {
	near := map[string]bool{}
	for step := -1; step <= 1; step += 2 {
		for k, n := i+step, 0; k >= 0 && k < len(s.tokens) && n < 5 && s.tokens[k].clause == s.tokens[i].clause; k += step {
			t := &s.tokens[k]
			if lexContent(t) && t.number == nil {
				near[lexKey(t)] = true
				n++
			}
		}
	}
	return near
}

func lexKey(t *lexToken) string {
	if t.name {
		return t.stem
	}
	return t.concept
}

// A lexStance is what one sentence of a document does to a claim.
type lexStance struct {
	sentence int
	cover    float64 // share of the claim's weight, context counted in part
	score    float64
	sign     int
	why      string
}

// A lexMatch relates one term of the claim to a sentence.
type lexMatch struct {
	weight   float64
	turned   bool // opposite, or negated on one side alone
	decides  bool // an opposite or a negation is involved
	number   bool // both give a number
	differs  bool // and it is another
	negated  bool // the sentence denies it
	token    int
	opposite bool
}

// stance compares sentence i of a document with the claim.
func (c lexClaim) stance(doc []lexSentence, i int) lexStance {
	s := &doc[i]
	matches, own, words := c.match(s)
	st := lexStance{sentence: i, cover: own / c.weight}
	if own == 0 {
		return st
	}
	st.cover = math.Min(1, (own+lexContext*c.around(doc, i, matches))/(c.weight-c.unsaid(matches)))
	if st.cover < c.need || own < 0.5*c.need*c.weight || words < math.Min(2, 0.6*c.words) {
		return st
	}
	if c.partial(doc, i, matches) {
		return st
	}
	sign, why := c.agree(s, matches)
	if sign == 0 {
		return st
	}
	sign, factor, cue := c.voice(doc, i, matches, sign)
	if sign == 0 || factor < lexAsserts {
		return st
	}
	st.score = st.cover * factor
	if cue != "" {
		why = cue
	}
	st.sign = sign
	st.why = fmt.Sprintf("The sentence shares %.0f %% of the claim's words; %s.", 100*st.cover, why)
	return st
}

// share is the part of its weight that a sentence must share. A document that never uses a name
// of the claim must share more.
func (c lexClaim) share(doc []lexSentence) float64 {
	t := (c.weight - lexShortWeight) / (lexLongWeight - lexShortWeight)
	share := lexShareShort + (lexShareLong-lexShareShort)*math.Max(0, math.Min(1, t))
	if c.names && !c.named(doc) {
		share += 0.15
	}
	return share
}

func (c lexClaim) named(doc []lexSentence) bool {
	for i := range doc {
		for k := range c.terms {
			if c.terms[k].name && lexNameIn(&c.terms[k], &doc[i]) > 0 {
				return true
			}
		}
	}
	return false
}

// lexNameIn returns how much of a name occurs in a sentence: all of it 1, part of it 0.6.
func lexNameIn(term *lexTerm, s *lexSentence) float64 {
	found := 0
	for _, stem := range term.stems {
		for i := range s.tokens {
			if !s.tokens[i].mark && s.tokens[i].stem == stem {
				found++
				break
			}
		}
	}
	switch found {
	case 0:
		return 0
	case len(term.stems):
		return 1
	}
	return 0.6
}

// match finds every term of the claim in a sentence. own is the weight found, words the number of
// terms that are no names and not weak.
func (c lexClaim) match(s *lexSentence) (matches []lexMatch, own float64, words float64) {
	matches = make([]lexMatch, len(c.terms))
	for k := range c.terms {
		term := &c.terms[k]
		m := &matches[k]
		m.token = -1
		switch {
		case term.name:
			m.weight = term.weight * lexNameIn(term, s)
		case term.number != nil:
		default:
			c.matchWord(term, s, m)
		}
		own += m.weight
		if m.weight > 0 && !term.name {
			words += term.weight
		}
	}
	akin := own >= 0.5*c.weight
	for k := range c.terms {
		term := &c.terms[k]
		if term.number == nil {
			continue
		}
		m := &matches[k]
		c.matchNumber(term, s, m, akin)
		own += m.weight
		if m.weight > 0 {
			words += m.weight
		}
	}
	relevant := make([]bool, len(s.tokens))
	for k := range matches {
		if t := matches[k].token; t >= 0 {
			relevant[t] = true
		}
	}
	negated := lexNegated(s, func(i int) bool { return relevant[i] })
	for k := range matches {
		m := &matches[k]
		if m.token < 0 {
			continue
		}
		m.negated = negated[m.token]
		if m.number && m.negated && !m.differs && lexAlone(s, m.token, func(i int) bool { return relevant[i] }) {
			m.differs, m.negated = true, false // 312, not 900
		}
		m.turned = m.opposite != (m.negated != c.terms[k].negated)
		m.decides = m.opposite || m.negated || c.terms[k].negated || c.terms[k].pole.axis != "" && c.terms[k].weight >= 1
	}
	return matches, own, words
}

// matchWord looks for a word, then for its opposite.
func (c lexClaim) matchWord(term *lexTerm, s *lexSentence, m *lexMatch) {
	for i := range s.tokens {
		t := &s.tokens[i]
		if !lexContent(t) || t.number != nil {
			continue
		}
		if t.concept == term.concept || t.stem == term.concept {
			m.weight, m.token = term.weight, i
			return
		}
	}
	for i := range s.tokens {
		t := &s.tokens[i]
		if t.name || !lexContent(t) || t.number != nil {
			continue
		}
		switch {
		case term.pole.axis != "" && t.pole.axis == term.pole.axis:
			if t.pole.sign != term.pole.sign && !lexShared(term.near, lexNear(s, i)) {
				continue
			}
			m.weight, m.token, m.opposite = term.weight, i, t.pole.sign != term.pole.sign
			return
		case lexPrefixed(t.concept, term.concept) || lexPrefixed(term.concept, t.concept):
			m.weight, m.token, m.opposite = term.weight, i, true
			return
		}
	}
}

func lexShared(a, b map[string]bool) bool {
	for w := range a {
		if b[w] {
			return true
		}
	}
	return false
}

// lexPrefixed reports whether a is b with a prefix that makes the opposite.
func lexPrefixed(a, b string) bool {
	if len(b) < 4 || !strings.HasSuffix(a, b) {
		return false
	}
	for _, p := range lexPrefixes {
		if a == p+b {
			return true
		}
	}
	return false
}

// matchNumber looks for a number that says the same, then for one that says otherwise.
func (c lexClaim) matchNumber(term *lexTerm, s *lexSentence, m *lexMatch, akin bool) {
	for i := range s.tokens {
		n := s.tokens[i].number
		if n == nil {
			continue
		}
		same, differs := lexCompare(term.number, n, akin)
		if same {
			m.weight, m.token, m.number, m.differs = term.weight, i, true, false
			return
		}
		if differs && !m.number && !c.states(n, akin) {
			m.weight, m.token, m.number, m.differs = 0.5*term.weight, i, true, true
		}
	}
}

// states reports whether some number of the claim says what n says; n then contradicts no other.
func (c lexClaim) states(n *lexNumber, akin bool) bool {
	for k := range c.terms {
		if c.terms[k].number != nil {
			if same, _ := lexCompare(c.terms[k].number, n, akin); same {
				return true
			}
		}
	}
	return false
}

// partial reports whether a sentence shares only the beginning or only the end of the claim, and a
// good part is missing: it speaks of the same thing, or of the same place and time, and says
// something else about it.
func (c lexClaim) partial(doc []lexSentence, i int, matches []lexMatch) bool {
	first, last, found, missing := -1, -1, 0, 0.0
	for k := range matches {
		if matches[k].weight == 0 && !c.nearby(doc, i, k) {
			missing += c.terms[k].weight
			continue
		}
		if first < 0 {
			first = k
		}
		last = k
		found++
	}
	atEnd := first == 0 || last == len(matches)-1
	return atEnd && last-first+1 == found && missing >= lexMissing*c.weight
}

// unsaid is what the claim's numbers weigh less where a sentence gives none: whoever affirms or
// denies a thing seldom repeats its figures.
func (c lexClaim) unsaid(matches []lexMatch) float64 {
	sum := 0.0
	for k := range c.terms {
		if c.terms[k].number != nil && matches[k].token < 0 {
			sum += 0.5 * c.terms[k].weight
		}
	}
	return sum
}

// around returns the weight of terms that are missing in sentence i and stand in the title or in
// the sentence before.
func (c lexClaim) around(doc []lexSentence, i int, matches []lexMatch) float64 {
	sum := 0.0
	for k := range c.terms {
		if matches[k].weight == 0 && c.nearby(doc, i, k) {
			sum += c.terms[k].weight
		}
	}
	return sum
}

// nearby reports whether the title or the sentence before sentence i holds term k, numbers apart.
func (c lexClaim) nearby(doc []lexSentence, i, k int) bool {
	term := &c.terms[k]
	if term.number != nil {
		return false
	}
	for n := range doc {
		if n == i || !doc[n].title && n != i-1 {
			continue
		}
		if term.name && lexNameIn(term, &doc[n]) > 0 || !term.name && lexHolds(&doc[n], term.concept) {
			return true
		}
	}
	return false
}

func lexHolds(s *lexSentence, concept string) bool {
	for i := range s.tokens {
		if t := &s.tokens[i]; lexContent(t) && (t.concept == concept || t.stem == concept) {
			return true
		}
	}
	return false
}

// agree weighs the matches: does the sentence say what the claim says, or the opposite? It is 0
// where the claim turns on a direction or a denial that the sentence does not take up.
func (c lexClaim) agree(s *lexSentence, matches []lexMatch) (int, string) {
	var with, against float64
	negatedClaim, takenUp := false, !c.poles
	why := "both say the same"
	for k, m := range matches {
		term := &c.terms[k]
		if term.negated && !term.name && !term.aside {
			negatedClaim = true
		}
		if m.token < 0 || term.number != nil {
			continue
		}
		if term.pole.axis != "" || m.opposite {
			takenUp = true
		}
		if !m.decides {
			continue
		}
		w := math.Max(term.weight, 0.5)
		if m.turned {
			against += w
			if why == "both say the same" {
				why = "it denies what the claim affirms, or the reverse"
			}
			if m.opposite {
				why = fmt.Sprintf("%q is the opposite of what the claim says", s.tokens[m.token].lower)
			}
		} else {
			with += w
		}
	}
	for k, m := range matches {
		if !m.differs {
			continue
		}
		if m.negated || c.terms[k].number.kind == 'y' && with+against == 0 && !c.dense(matches) {
			continue // a denied other number says nothing; another year may be another occasion
		}
		why = fmt.Sprintf("it gives another number (%s)", s.tokens[m.token].lower)
		if c.terms[k].negated {
			return 1, why
		}
		return -1, why
	}
	for k, m := range matches {
		if m.number && !m.differs && m.negated != c.terms[k].negated {
			against++
		}
	}
	if negatedClaim && with+against == 0 || !takenUp {
		return 0, ""
	}
	// One clear opposite outweighs a word or two that agree: they stand around it on either side.
	if against > 0 && against >= 0.5*with {
		return -1, why
	}
	return 1, "both say the same"
}

// dense reports whether all but a little of the claim stands in the sentence.
func (c lexClaim) dense(matches []lexMatch) bool {
	sum := 0.0
	for _, m := range matches {
		sum += m.weight
	}
	return sum >= 0.6*c.weight
}

// voice reads how sentence i says what it says: verdict words in it or behind it, questions and
// their answers, hedges, hearsay. It returns the sign after verdicts, and how much the sentence
// asserts.
func (c lexClaim) voice(doc []lexSentence, i int, matches []lexMatch, sign int) (int, float64, string) {
	s := &doc[i]
	factor, why := 1.0, ""
	if s.title {
		factor = 0.9
	}
	cue, own, open := c.cue(s, matches)
	asked := s.question
	if i+1 < len(doc) {
		if answer, found := lexAnswer(&doc[i+1], asked); found {
			asked = false
			if cue == 0 || answer < 0 {
				cue = answer
			}
		}
	}
	switch {
	case cue < 0:
		sign, factor, why = -sign, math.Max(factor, 1)*1.3, "and a verdict beside it says that this is not so"
	case cue > 0:
		factor, why = math.Max(factor, 1)*1.3, "and a verdict beside it says that this is so"
	}
	if own < 0 || own == 0 && c.denied {
		sign = -sign
	}
	if asked || open && cue == 0 {
		return 0, 0, ""
	}
	if cue == 0 {
		factor *= c.hedge(s, matches)
	}
	return sign, factor, why
}

// cue sums up the verdict words of a sentence: those in a clause with the claim's words, and those
// in a clause that says nothing else. Where the claim gives a verdict with the same word, own tells
// whether the sentence gives it (1) or its opposite (-1), and that word is not counted again. Several
// verdicts in one sentence are taken to repeat each other.
func (c lexClaim) cue(s *lexSentence, matches []lexMatch) (sign, own int, open bool) {
	about := map[int]bool{}
	for _, m := range matches {
		if m.token >= 0 {
			about[s.tokens[m.token].clause] = true
		}
	}
	for i := range s.tokens {
		v, o, ok := lexCueAt(s, i)
		if !ok || !about[s.tokens[i].clause] && !lexBare(s, s.tokens[i].clause) {
			continue
		}
		if given, yes := c.cues[s.tokens[i].concept]; yes && own == 0 && v != 0 {
			own = v * given
			continue
		}
		open = open || o
		if sign == 0 || v < 0 {
			sign = v
		}
	}
	return sign, own, open
}

// lexBare reports whether a clause says nothing but a verdict.
func lexBare(s *lexSentence, clause int) bool {
	for i := range s.tokens {
		t := &s.tokens[i]
		if t.clause != clause || t.mark || t.stop || lexNouns[t.concept] || lexGrounds[t.concept] || lexCues[t.concept] != 0 || t.initial {
			continue
		}
		if _, _, ok := lexCueAt(s, i); ok {
			continue
		}
		return false
	}
	return true
}

// lexAnaphors begin a sentence about the sentence before it.
var lexAnaphors = lexSet("this that it these those which the not no completely totally false true wrong untrue debunked confirmed correct incorrect hoax never fake")

// lexAnswer reads a short sentence that judges the one before it: This is false. No. Confirmed.
func lexAnswer(s *lexSentence, asked bool) (sign int, ok bool) {
	words, content := 0, 0
	for i := range s.tokens {
		t := &s.tokens[i]
		if t.mark {
			continue
		}
		words++
		if !t.stop && !lexNouns[t.concept] && lexCues[t.concept] == 0 && !lexGrounds[t.concept] {
			content++
		}
	}
	if words == 0 {
		return 0, false
	}
	first := s.tokens[0].lower
	for _, t := range s.tokens {
		if !t.mark {
			first = t.lower
			break
		}
	}
	switch {
	case asked && (first == "no" || first == "nope") && lexEndsEarly(s):
		return -1, true
	case asked && (first == "yes" || first == "yep" || first == "yeah") && lexEndsEarly(s):
		return 1, true
	}
	if words > 14 || content > 2 || s.question {
		return 0, false
	}
	if !lexAnaphors[first] {
		return 0, false
	}
	for i := range s.tokens {
		v, _, found := lexCueAt(s, i)
		if found && (sign == 0 || v < 0) {
			sign = v
		}
		if lexOccurs[lexBase(s.tokens[i].lower)] && sign == 0 {
			for k := max(0, i-3); k < i; k++ {
				if lexNegators[s.tokens[k].lower] {
					sign = -1
				}
			}
		}
	}
	return sign, sign != 0
}

// lexEndsEarly reports whether the first word of a sentence stands alone: "No.", "No, it did not".
func lexEndsEarly(s *lexSentence) bool {
	for i, t := range s.tokens {
		if !t.mark {
			return i+1 >= len(s.tokens) || s.tokens[i+1].mark
		}
	}
	return false
}

// hedge returns how much a sentence asserts what it says, 1 for a plain statement.
func (c lexClaim) hedge(s *lexSentence, matches []lexMatch) float64 {
	about := map[int]bool{}
	for _, m := range matches {
		if m.token >= 0 {
			about[s.tokens[m.token].clause] = true
		}
	}
	factor := 1.0
	for i := range s.tokens {
		t := &s.tokens[i]
		if t.mark || t.name || !about[t.clause] {
			continue
		}
		if lexHedges[t.lower] && !c.hedged && !lexCalendarUse(s, i) {
			factor = math.Min(factor, 0.3)
		}
		if lexHearsay[t.concept] && !lexHasTerm(c, t.concept) {
			factor = math.Min(factor, 0.7)
		}
	}
	return factor
}

// lexCalendarUse tells the month from the verb: May has a capital.
func lexCalendarUse(s *lexSentence, i int) bool {
	return s.tokens[i].lower == "may" && lexCapital(s.tokens[i].text)
}

func lexHasTerm(c lexClaim, concept string) bool {
	for k := range c.terms {
		if c.terms[k].concept == concept {
			return true
		}
	}
	return false
}
