package annotate

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"

	"assay/corpus"
	"assay/llm"
)

// This file is how the builtin model picks statements out of a document: sentence by sentence, by what
// stands in them. It knows no names and nothing about the world.

func wordSet(words string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(words) {
		m[w] = true
	}
	return m
}

var (
	// leaning words, as the first of a statement, mean something that stands before it.
	leaning = wordSet(`he she it they him her them his hers its their theirs this that these those i we you me us my our your here there such both neither either
another others one which who whom whose although though because so`)
	// firstPerson and secondPerson words keep a quotation from being understood without its speaker.
	firstPerson = wordSet(`i me my mine we us our ours you your yours i'm we're i've we've i'd we'd`)

	attributing = wordSet(`said says say told tells added adds claimed claims claim stated states announced announces wrote writes reported reports argued argues insisted insists
warned warns noted notes confirmed confirms alleged alleges declared declares testified testifies estimated estimates found finds showed shows tweeted asserted asserts`)
	comparing = wordSet(`more less fewer most least higher lower highest lowest largest smallest biggest best worst first last only never always every all none no than
double doubled triple tripled half twice record majority minority`)
	changing = wordSet(`cause causes caused increase increases increased decrease decreased reduce reduces reduced rise rises rose fall falls fell grow grows grew drop drops dropped
kill kills killed prevent prevents prevented cure cures cured approve approves approved ban bans banned pass passed sign signed win won wins lost lose elect elected
arrest arrested charge charged convict convicted recall recalls recalled contain contains contained die died cost costs paid pay spend spent build built create created
release released open opened close closed start started end ended discover discovered launch launched struck recorded issued classified diagnosed vaccinated married divorced`)
	being   = wordSet(`is are was were be been being am has have had does do did will would can could may might must shall should isn't aren't wasn't weren't hasn't haven't hadn't won't`)
	hedging = wordSet(`may might could perhaps possibly maybe if whether would should likely unlikely expected hopes hope plans plan`)
	holding = wordSet(`think thinks thought believe believes believed feel feels felt hope hopes hoped love loves loved great beautiful wonderful amazing terrible sad happy proud`)

	// linking words open a sentence and mean what was said before; without them it says the same.
	linking = regexp.MustCompile(`(?i)^(?:but|and|so|yet|however|meanwhile|moreover|furthermore|also|still|then|indeed|in fact|in addition|for example|for instance|of course)\b,? +`)
	// frames are sentences of the page, not of its article.
	frames = regexp.MustCompile(`(?i)\b(?:subscribe|newsletter|cookies?|sign up|log in|follow us|click here|all rights reserved|copyright|getty images|read more|share this|advertisement|terms of use|privacy policy|download the app|reporting by|editing by|opens new tab|external links|e-?mail us|call toll.free)\b|©|https?://|@\w|&lt;|&#|[<>=]`)

	// headed lines are entries of a form, as weather services write them: WHEN...From 11 AM.
	headed = regexp.MustCompile(`^[\s*.]*\p{Lu}[\p{Lu} /-]{2,}(?:\.\.\.|…|:)`)

	// datelines open the first sentence of a report: VIENNA (AP) -
	datelines = regexp.MustCompile(`^\p{Lu}[\p{Lu}\p{L}.,' -]{1,40}(?: \((?:AP|AFP|Reuters|UPI|dpa)\))? [—–-]{1,2} `)
	bareHead  = regexp.MustCompile(`^(?:\p{Lu}[\p{Lu}.,' -]{2,40}|.{2,40}\((?:AP|AFP|Reuters|UPI|dpa)\)) [—–-]{1,2} $`)
)

// leansOn reports whether a statement is about somebody or something that it does not name.
func leansOn(sentences []llm.Sentence) bool {
	if len(sentences) == 0 {
		return true
	}
	words := spoken(sentences[0])
	for i, w := range words {
		switch {
		case firstPerson[w.Lower] && !w.Name:
			return true
		case i > 0:
		case w.Lower == "it", w.Lower == "there":
			// "It is illegal to", "There are 12" lean on nothing; "It rose by" does.
			if !(len(words) > 1 && being[words[1].Lower] && (w.Lower == "there" || expletive(words))) {
				return true
			}
		case w.Lower == "that" || w.Lower == "this" || w.Lower == "these" || w.Lower == "those" || w.Lower == "such":
			return true
		case leaning[w.Lower] && !w.Name:
			return true
		}
	}
	return len(words) == 0
}

var (
	today = regexp.MustCompile(`(?i)\b(?:today|tonight|tomorrow|yesterday|(?:this|next|last) (?:morning|afternoon|evening|night|week|weekend|month|year|spring|summer|autumn|fall|winter)|(?:mon|tues|wednes|thurs|fri|satur|sun)day)\b`)
	year  = regexp.MustCompile(`\b(?:1[5-9]|20)\d\d\b`)
)

// countsFromToday reports whether a statement tells a time that nobody knows without the day on which it was said.
func countsFromToday(text string) bool {
	return today.MatchString(text) && !year.MatchString(text)
}

// expletive reports whether "it" only holds the place of a clause: it is illegal to, it was found that.
func expletive(words []llm.Word) bool {
	for i := 2; i < min(len(words), 6); i++ {
		if words[i].Lower == "to" || words[i].Lower == "that" {
			return true
		}
	}
	return false
}

// spoken are the words of a sentence without its marks.
func spoken(s llm.Sentence) []llm.Word {
	var out []llm.Word
	for _, w := range s.Words {
		if !w.Mark {
			out = append(out, w)
		}
	}
	return out
}

// signsOf lists what in a text could be looked up.
func signsOf(sentences []llm.Sentence) []string {
	found := map[string]bool{}
	for _, s := range sentences {
		for _, w := range spoken(s) {
			switch {
			case w.Number:
				found["number"] = true
			case w.Name:
				found["name"] = true
			case comparing[w.Lower]:
				found["comparison"] = true
			case changing[w.Lower]:
				found["event"] = true
			}
		}
	}
	// An event or a comparison without anybody and without an amount could be anything.
	if !found["number"] && !found["name"] {
		if !found["comparison"] || !found["event"] {
			return nil
		}
	}
	var out []string
	for _, sign := range []string{"number", "name", "comparison", "event"} {
		if found[sign] {
			out = append(out, sign)
		}
	}
	return out
}

// A reading is a document with its sentences and the names that it gives.
type reading struct {
	text      string
	day       string
	sentences []llm.Sentence
	full      map[string]string // last word of a name => the longest name that ends with it
}

// readClaims proposes the most check-worthy statements of a passage, in the order of the text.
func readClaims(p Passage) []proposal {
	r := reading{text: p.Text, day: p.Date, sentences: llm.Sentences(p.Text), full: map[string]string{}}
	for _, s := range r.sentences {
		for _, n := range nameRuns(s, p.Text) {
			words := strings.Fields(n.text)
			last := words[len(words)-1]
			if len(n.text) > len(r.full[last]) {
				r.full[last] = n.text
			}
		}
	}
	type scored struct {
		proposal
		score, at int
	}
	var found []scored
	for i := range r.sentences {
		prop, score := r.propose(i)
		if score >= worthwhile {
			found = append(found, scored{prop, score, i})
		}
	}
	slices.SortStableFunc(found, func(a, b scored) int { return cmp.Or(b.score-a.score, a.at-b.at) })
	found = found[:min(len(found), p.Most)]
	slices.SortStableFunc(found, func(a, b scored) int { return a.at - b.at })
	out := []proposal{}
	for _, f := range found {
		out = append(out, f.proposal)
	}
	return out
}

// worthwhile is the score from which a sentence is proposed: an amount and a name, or one of them with
// an event and somebody who says it.
const worthwhile = 4

// propose turns a sentence into a proposal with its score; 0 is none.
func (r reading) propose(i int) (proposal, int) {
	s := r.sentences[i]
	whole := r.text[s.Start:s.End]
	if s.Question || s.Headline || frames.MatchString(whole) || headed.MatchString(whole) || strings.ContainsAny(whole, "|{}") {
		return proposal{}, 0
	}
	claim, speaker := r.attribution(i)
	claim = r.standalone(i, claim)
	if claim == "" {
		return proposal{}, 0
	}
	read := llm.Sentences(claim)
	words := []llm.Word{}
	for _, part := range read {
		words = append(words, spoken(part)...)
	}
	if len(words) < 5 || len(words) > 50 || !prose(words) || leansOn(read) || !finite(words) || len(signsOf(read)) == 0 {
		return proposal{}, 0
	}
	score := worthOf(words)
	if speaker != "" {
		score++
	}
	when := r.when(s)
	if when == "" && r.day == "" && countsFromToday(claim) {
		return proposal{}, 0
	}
	return proposal{Quote: whole, Claim: claim, Speaker: speaker, Date: when}, score
}

// prose tells a sentence from a line of figures.
func prose(words []llm.Word) bool {
	n := 0
	for _, w := range words {
		if !w.Number && !w.Name && len(w.Text) > 2 {
			n++
		}
	}
	return n >= 3
}

// worthOf adds up what makes a statement worth a check.
func worthOf(words []llm.Word) int {
	numbers, names, events, comparisons, hedges := 0, 0, 0, 0, 0
	last := false
	for _, w := range words {
		switch {
		case w.Number:
			numbers++
		case w.Name && !last:
			names++
		case changing[w.Lower]:
			events++
		case comparing[w.Lower]:
			comparisons++
		}
		if hedging[w.Lower] || holding[w.Lower] {
			hedges++
		}
		last = w.Name
	}
	return min(2*numbers, 4) + min(names, 3) + min(events, 2) + min(comparisons, 2) - 2*min(hedges, 2)
}

// finite reports whether a statement has a verb that says something of its subject.
func finite(words []llm.Word) bool {
	for i, w := range words {
		if i == 0 || w.Name {
			continue
		}
		if being[w.Lower] || w.Finite || changing[w.Lower] || attributing[w.Lower] || strings.HasSuffix(w.Lower, "ed") && len(w.Lower) > 4 {
			return true
		}
	}
	return false
}

// A nameRun is a name of one or more words, with the words that lead to it left out.
type nameRun struct {
	from, to int // indexes of words
	text     string
}

func nameRuns(s llm.Sentence, text string) []nameRun {
	var out []nameRun
	for i := 0; i < len(s.Words); i++ {
		if !s.Words[i].Name {
			continue
		}
		j := i
		for j+1 < len(s.Words) && s.Words[j+1].Name {
			j++
		}
		run := nameRun{i, j, strings.TrimRight(text[s.Words[i].Start:s.Words[j].End], ".,")}
		run.text = strings.TrimSuffix(strings.TrimSuffix(run.text, "'s"), "’s")
		if run.text != "" {
			out = append(out, run)
		}
		i = j
	}
	return out
}

// named writes a name in full where the document does so somewhere.
func (r reading) named(name string) string {
	if full := r.full[name]; full != "" && !strings.Contains(name, " ") {
		return full
	}
	return name
}

// attribution splits a sentence into what is stated and who is said to state it:
//
//	Speaker said (that) STATEMENT.     According to Speaker, STATEMENT.
//	STATEMENT, Speaker said.           "STATEMENT," said Speaker.        STATEMENT, according to Speaker.
//
// A sentence of another build is its own statement, without a speaker.
func (r reading) attribution(i int) (claim, speaker string) {
	s := r.sentences[i]
	whole := r.text[s.Start:s.End]
	runs := nameRuns(s, r.text)
	words := s.Words
	at := func(k int) string {
		if k < 0 || k >= len(words) {
			return ""
		}
		return words[k].Lower
	}
	cut := func(from, to int) string { // words from to, with the marks between
		if from < 0 || to >= len(words) || from > to {
			return ""
		}
		return r.text[words[from].Start:words[to].End]
	}
	for _, n := range runs {
		who := r.named(n.text)
		accord := n.from >= 2 && at(n.from-2) == "according" && at(n.from-1) == "to" || n.from >= 3 && at(n.from-3) == "according" && at(n.from-2) == "to"
		start := n.from - 2
		if at(n.from-2) == "to" {
			start = n.from - 3
		}
		switch {
		case accord && start == 0 && at(n.to+1) == ",":
			return tidy(cut(n.to+2, len(words)-1)), who
		case accord && start > 1 && at(start-1) == "," && n.to+1 >= len(words)-1:
			return tidy(cut(0, start-2)), who
		}
		// The verb stands behind the name, or before it after a quotation.
		verb, rest := n.to+1, n.to+2
		inverted := attributing[at(n.from-1)] && n.from >= 2
		if !attributing[at(verb)] {
			if !inverted {
				continue
			}
			verb = n.from - 1
		}
		front := n.from
		if inverted && verb == n.from-1 {
			front, rest = verb, n.to+1
		}
		if front >= 3 && isQuoteOrComma(at(front-1)) { // STATEMENT, Speaker said
			return tidy(cut(0, front-1)), who
		}
		if front <= 1 && verb == n.to+1 { // Speaker said (that) STATEMENT
			for calendar(at(rest)) || at(rest) == "on" || at(rest) == "in" && calendar(at(rest+1)) {
				rest++
			}
			if at(rest) == "," || at(rest) == ":" {
				rest++
			}
			if at(rest) == "that" {
				rest++
			}
			if statement := tidy(cut(rest, len(words)-1)); len(strings.Fields(statement)) >= MinClaimWords && reportsClause(at(verb), words, rest) {
				return statement, who
			}
		}
	}
	return tidy(whole), ""
}

// reportsClause tells "Smith said the tax rose" from "Smith found a purse": what follows has to have a
// verb of its own, or stand in quotation marks.
func reportsClause(verb string, words []llm.Word, from int) bool {
	if from >= len(words) {
		return false
	}
	if words[from].Mark && strings.ContainsAny(words[from].Text, "\"“'‘") || words[from-1].Lower == "that" {
		return true
	}
	switch verb {
	case "told", "tells", "wrote", "writes", "found", "finds", "showed", "shows", "announced", "announces", "reported", "reports", "claimed", "claims":
		return false // these take an object as well
	}
	return finite(words[from:])
}

func isQuoteOrComma(s string) bool {
	return s == "," || s == "\"" || s == "”" || s == "’" || s == "'"
}

var weekdayNames = []string{"sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"}

func calendar(lower string) bool {
	return slices.Contains(weekdayNames, lower) || lower == "yesterday" || lower == "today"
}

var quoteMarks = strings.NewReplacer("“", "", "”", "", "\"", "")

// tidy takes the quotation marks off a statement, gives it a capital and ends it with a stop.
func tidy(s string) string {
	s = corpus.Space(quoteMarks.Replace(s))
	if head := datelines.FindString(s); bareHead.MatchString(head) {
		s = s[len(head):]
	}
	s = linking.ReplaceAllString(s, "")
	s = strings.Trim(s, " ,;:–—-")
	if s == "" {
		return ""
	}
	runes := []rune(s)
	s = strings.ToUpper(string(runes[:1])) + string(runes[1:])
	if !strings.ContainsAny(s[len(s)-1:], ".!?") {
		s += "."
	}
	return s
}

// standalone replaces a leading he or she by the one person whom the sentence before names. Where that
// leaves a doubt the statement stays as it is, and is refused later.
func (r reading) standalone(i int, claim string) string {
	first, rest, ok := strings.Cut(claim, " ")
	if !ok || i == 0 {
		return claim
	}
	switch strings.ToLower(first) {
	case "he", "she":
	default:
		return claim
	}
	before := r.sentences[i-1]
	var people []string
	for _, n := range nameRuns(before, r.text) {
		// What stands after in, at, of or from is a place more often than a person.
		if n.from > 0 && slices.Contains([]string{"in", "at", "of", "from", "near", "to"}, before.Words[n.from-1].Lower) {
			continue
		}
		if full := r.named(n.text); strings.Contains(full, " ") && !slices.Contains(people, full) {
			people = append(people, full)
		}
	}
	if len(people) != 1 {
		return claim
	}
	return people[0] + " " + rest
}

// when is the day that a sentence gives with a verb of saying: "said on Tuesday" is the last Tuesday up
// to the day of publication. It is "" where the sentence says nothing of the kind.
func (r reading) when(s llm.Sentence) string {
	published, err := time.Parse(time.DateOnly, r.day)
	if err != nil {
		return ""
	}
	says := false
	for _, w := range s.Words {
		says = says || attributing[w.Lower]
		if !says {
			continue
		}
		if w.Lower == "yesterday" {
			return published.AddDate(0, 0, -1).Format(time.DateOnly)
		}
		if day := slices.Index(weekdayNames, w.Lower); day >= 0 {
			back := (int(published.Weekday()) - day + 7) % 7
			return published.AddDate(0, 0, -back).Format(time.DateOnly)
		}
	}
	return ""
}
