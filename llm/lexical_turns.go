package llm

import "strings"

// This file reads what turns a statement over: opposites, negations, verdict words.

// lexPoles hangs opposites on the words of a sentence. Up and down are directions only behind a
// verb of motion or before a quantity: not in set up or shut down.
func lexPoles(s *lexSentence) {
	for i := range s.tokens {
		t := &s.tokens[i]
		if t.mark || t.name || t.number != nil {
			continue
		}
		if t.lower == "up" || t.lower == "down" {
			sign := 1
			if t.lower == "down" {
				sign = -1
			}
			if lexMoves(s.tokens, i) {
				t.pole = lexPole{axis: "rise", sign: sign}
				t.concept = "rise " + t.lower
			}
			continue
		}
		if t.lower == "for" || t.lower == "against" {
			if i > 0 && lexSides[s.tokens[i-1].concept] && (t.lower == "against" || !lexBe[s.tokens[i-1].lower]) {
				t.pole = lexPole{axis: "support", sign: 1}
				if t.lower == "against" {
					t.pole.sign = -1
				}
				t.concept, t.stop = "side "+t.lower, false
			}
			continue
		}
		t.pole = lexPoleOf[t.concept]
	}
}

// lexSides are verbs behind which for and against take sides.
var lexSides = lexConceptSet(`vote argue speak stand campaign rule lobby come decide testify be is was are were`)

var lexMotion = lexConceptSet(`go move trend head drive bring push way be been is are was were stay edge creep inch`)

func lexMoves(tokens []lexToken, i int) bool {
	for k := i - 1; k >= 0 && k >= i-2; k-- {
		if tokens[k].mark {
			break
		}
		if lexMotion[tokens[k].concept] || lexBe[tokens[k].lower] {
			return true
		}
	}
	if i+1 < len(tokens) {
		next := tokens[i+1]
		return next.number != nil || next.mark && strings.ContainsAny(next.text, "$€£") || next.lower == "by"
	}
	return false
}

// lexNegated tells for every token of a sentence whether a negation turns it over. Only relevant
// tokens count: what a negation reaches without a relevant token is passed over.
func lexNegated(s *lexSentence, relevant func(int) bool) []bool {
	negated := make([]bool, len(s.tokens))
	flip := func(i int) { negated[i] = !negated[i] }
	for i := range s.tokens {
		t := &s.tokens[i]
		if t.mark || t.name {
			continue
		}
		if lexCancels[t.concept] && !relevant(i) {
			for k := range s.tokens {
				if s.tokens[k].clause == t.clause && !s.tokens[k].name && relevant(k) {
					flip(k)
				}
			}
			continue
		}
		from, short, ok := lexNegatorAt(s, i)
		if !ok {
			continue
		}
		lexReach(s, from, short, relevant, flip)
	}
	return negated
}

// lexNegatorAt reports whether a negation begins at token i, where its reach begins, and whether it
// belongs to the next thing alone.
func lexNegatorAt(s *lexSentence, i int) (from int, short, ok bool) {
	word := func(k int) string {
		if k < 0 || k >= len(s.tokens) || s.tokens[k].mark {
			return ""
		}
		return s.tokens[k].lower
	}
	t := &s.tokens[i]
	if with, avoids := lexAvoiders[t.concept]; avoids && word(i+1) == with {
		return i + 2, t.lower == "instead" || t.lower == "rather", true
	}
	if lexBars[t.concept] {
		for k := i + 1; k < len(s.tokens) && k <= i+6 && s.tokens[k].clause == t.clause; k++ {
			if s.tokens[k].lower == "from" {
				return k + 1, false, true
			}
		}
	}
	if !lexNegators[t.lower] {
		return 0, false, false
	}
	switch next := word(i + 1); {
	case t.lower == "not" && lexNotOnly[next],
		t.lower == "not" && (word(i-1) == "or" || word(i-1) == "why"), // whether or not, why not
		t.lower == "no" && (next == "doubt" || next == "wonder" || next == "matter" || next == "question"),
		t.lower == "nothing" && next == "but":
		return 0, false, false
	}
	if lexCueBehind(s, i) {
		return 0, false, false // it belongs to the verdict word
	}
	return i + 1, t.lower == "no" || t.lower == "without", true
}

// lexCueBehind reports whether a verdict word stands within three words behind token i.
func lexCueBehind(s *lexSentence, i int) bool {
	for k := i + 1; k < len(s.tokens) && k <= i+3 && s.tokens[k].clause == s.tokens[i].clause; k++ {
		t := &s.tokens[k]
		if t.mark || t.name {
			return false
		}
		if lexCues[t.concept] != 0 || s.tokens[i].lower == "no" && lexGrounds[t.concept] {
			return true
		}
		if !t.stop {
			return false
		}
	}
	return false
}

// lexReach turns over what a negation reaches: to the end of its clause, or, for no and without,
// only if the next things are relevant. Where the first relevant word is one end of an opposite,
// the negation is spent on it and on numbers: not fallen in spring says nothing against spring.
func lexReach(s *lexSentence, from int, short bool, relevant func(int) bool, flip func(int)) {
	if from >= len(s.tokens) {
		return
	}
	clause := s.tokens[from-1].clause
	contents, reached, spent := 0, false, false
	for k := from; k < len(s.tokens) && s.tokens[k].clause == clause; k++ {
		t := &s.tokens[k]
		if t.mark || t.name {
			continue
		}
		if relevant(k) && (!spent || t.number != nil) {
			flip(k)
			reached = true
			spent = spent || t.pole.axis != "" && !t.stop
		}
		if !t.stop {
			contents++
		}
		if short && contents >= 2 && !reached {
			return
		}
	}
	if reached {
		if short && s.tokens[from-1].lower == "no" {
			lexReachBack(s, from-1, relevant, flip)
		}
		return
	}
	for k := from; k < len(s.tokens) && k < from+4; k++ {
		if lexOccurs[s.tokens[k].lower] || lexOccurs[lexBase(s.tokens[k].lower)] {
			for b := from - 1; b >= 0; b-- {
				if s.tokens[b].clause >= clause-1 && !s.tokens[b].name && relevant(b) {
					flip(b)
				}
			}
			return
		}
	}
}

// lexReachBack turns over the verb before an object with no: paid no tax is did not pay tax.
func lexReachBack(s *lexSentence, no int, relevant func(int) bool, flip func(int)) {
	for k := no - 1; k >= 0 && s.tokens[k].clause == s.tokens[no].clause; k-- {
		t := &s.tokens[k]
		if t.mark || t.name {
			return
		}
		if !t.stop {
			if relevant(k) {
				flip(k)
			}
			return
		}
	}
}

// lexGrounds are things whose absence speaks against a claim: no evidence, no truth to it.
var lexGrounds = lexConceptSet(`evidence proof truth basis indication merit substance support`)

// lexNouns name a proposition; a clause that holds a cue and nothing else but these is about the
// whole sentence or the one before.
var lexNouns = lexConceptSet(`claim story rumour rumor report fact check statement post video photo picture article headline news allegation assertion thing part idea
completely totally entirely simply utterly absolutely flatly plainly officially turn out been widely long since repeatedly`)

var (
	lexDeny    = lexConcept("deny")
	lexDenied  = lexSet("that any having claims reports rumours rumors it allegations") // denied the permit is another matter
	lexNotOnly = lexSet("only just merely simply solely least")
)

// lexCueAt reads a verdict word at token i, with a negation before it: sign 1 for so, -1 for not
// so; open where the word leaves the matter open, as unconfirmed does.
func lexCueAt(s *lexSentence, i int) (sign int, open, ok bool) {
	t := &s.tokens[i]
	if t.mark || t.name {
		return 0, false, false
	}
	word := func(k int) string {
		if k < 0 || k >= len(s.tokens) || s.tokens[k].mark {
			return ""
		}
		return s.tokens[k].lower
	}
	negated := false
	for k := i - 1; k >= 0 && k >= i-3 && s.tokens[k].clause == t.clause; k-- {
		b := &s.tokens[k]
		if b.mark || !b.stop && k < i-1 {
			break
		}
		if lexNegators[b.lower] && !(b.lower == "not" && lexNotOnly[word(k+1)]) {
			negated = true
			break
		}
	}
	switch {
	case lexGrounds[t.concept] && negated:
		return -1, false, true
	case t.concept == lexDeny && (lexDenied[word(i+1)] || word(i+1) == "the" && lexNouns[lexConcept(word(i+2))]):
		return -1, false, true
	case t.lower == "lie" && word(i-1) == "a", t.lower == "up" && (word(i-1) == "made" || word(i-2) == "made" && lexPronouns[word(i-1)]):
		return -1, false, true
	}
	sign = lexCues[t.concept]
	if sign == 0 {
		return 0, false, false
	}
	if negated {
		open = sign > 0 && lexSoft[t.concept]
		sign = -sign
		if open {
			sign = 0
		}
	}
	return sign, open, true
}
