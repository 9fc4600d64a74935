package annotate

import (
	"strings"
	"unicode"

	"assay/corpus"
	"assay/llm"
)

// This file is how the builtin model finds names: runs of capitals, and what stands in them and around them.
// It knows countries and some ideas by name, and nobody and nothing else.

var (
	titlesOfPersons = wordSet(`president senator congressman congresswoman representative governor mayor minister chancellor secretary judge justice dr prof professor
mr mrs ms sir king queen pope prince princess general colonel captain sgt rep sen gov`)
	wordsOfLaws     = wordSet(`act bill law amendment treaty directive regulation code constitution proposition section article ordinance statute accord convention ley gesetz loi`)
	wordsOfDatasets = wordSet(`survey census index database dataset registry register barometer panel inventory statistics catalogue catalog`)
	wordsOfBodies   = wordSet(`university universität universidad college school institute academy ministry department agency authority administration commission committee council board bureau
office service court party union association federation alliance society foundation group corp corporation inc ltd company bank fund hospital clinic museum gallery police
army navy times post tribune gazette herald news radio airlines motors industries pharma farms chamber cross organization organisation rovers united club church gmbh ag plc`)
	wordsOfPlaces = wordSet(`river lake county street avenue road bridge island islands mountain mountains valley bay sea ocean park airport city province region district
square desert coast peninsula castle village hills forest canyon`)
	firstOfPlaces  = wordSet(`lake mount port north south east west new san santa cape fort saint`)
	goodsAfterName = wordSet(`vaccine vaccines tablets pills drug syrup app phone phones scooter car cars truck trucks device devices powder cream software console shares toy toys`)
	goodsOfName    = wordSet(`vaccine vaccines tablets pills syrup app scooter`)
	placesBefore   = wordSet(`in at from near to across outside around between into visited`)
	sayingAfter    = wordSet(`said says told wrote writes argues argued claimed claims denied defended voted resigned promised called`)
	joining        = wordSet(`of and & for the de del della da di la le van von der den al bin`)
	joiningNames   = wordSet(`de del della da di la le van von der den al bin`)
	medicines      = []string{"vax", "mab", "vir", "cillin", "statin", "azole", "oradol", "anil"}
	countries      = wordSet(`afghanistan albania algeria angola argentina armenia australia austria azerbaijan bangladesh belarus belgium benin bolivia bosnia botswana brazil
bulgaria burundi cambodia cameroon canada chad chile china colombia congo croatia cuba cyprus czechia denmark ecuador egypt england eritrea estonia ethiopia europe fiji finland france
gabon gambia georgia germany ghana greece guatemala guinea haiti honduras hungary iceland india indonesia iran iraq ireland israel italy jamaica japan jordan kazakhstan kenya kosovo
kuwait laos latvia lebanon liberia libya lithuania luxembourg madagascar malawi malaysia mali malta mauritania mexico moldova monaco mongolia morocco mozambique myanmar namibia nepal
netherlands nicaragua niger nigeria norway oman pakistan panama paraguay peru philippines poland portugal qatar romania russia rwanda scotland senegal serbia singapore slovakia slovenia
somalia spain sudan sweden switzerland syria taiwan tajikistan tanzania thailand togo tunisia turkey uganda ukraine uruguay uzbekistan venezuela vietnam wales yemen zambia zimbabwe
africa asia america antarctica us usa uk alabama alaska arizona arkansas california colorado connecticut delaware florida hawaii idaho illinois indiana iowa kansas kentucky louisiana
maine maryland massachusetts michigan minnesota mississippi missouri montana nebraska nevada ohio oklahoma oregon pennsylvania tennessee texas utah vermont virginia washington
wisconsin wyoming london paris berlin madrid rome vienna geneva brussels moscow beijing tokyo delhi sydney chicago boston houston miami mars venus jupiter`)
	months = wordSet(`january february march april may june july august september october november december monday tuesday wednesday thursday friday saturday sunday`)

	// ideas are named without capitals.
	ideas = []string{"affirmative action", "artificial intelligence", "birthright citizenship", "black holes", "budget deficit", "carbon tax", "climate change", "critical race theory",
		"dark matter", "death penalty", "evolution", "gender pay gap", "gerrymandering", "global warming", "greenhouse effect", "gun control", "herd immunity", "inflation",
		"intermittent fasting", "machine learning", "mail-in voting", "minimum wage", "national debt", "natural immunity", "net neutrality", "nuclear energy", "nuclear fusion",
		"placebo effect", "plate tectonics", "renewable energy", "social distancing", "supply chain", "systemic racism", "trickle-down economics", "unemployment",
		"universal basic income", "universal health care", "voter fraud", "wind power"}
)

// A entityRun is a run of words that are one name.
type entityRun struct {
	text   string // as it stands
	words  []string
	before string // the word before it, in lower case
	after  string
	titled bool // a person's title stood before it
}

// readEntities lists the names of a text with the types that their words tell.
func readEntities(p Passage) []namedEntity {
	text := strings.TrimSpace(p.Title + "\n\n" + p.Text)
	out := []namedEntity{}
	known := map[string]bool{}
	surnames := map[string]bool{}
	add := func(name string, t corpus.EntityType) {
		if t != "" && !known[name] && len(out) < p.Most {
			known[name] = true
			out = append(out, namedEntity{Text: name, Type: t})
		}
	}
	var runs []entityRun
	for _, s := range llm.Sentences(text) {
		if !s.Headline || len(s.Words) < 4 {
			runs = append(runs, runsOf(text, s)...)
		}
	}
	for _, r := range runs {
		if typeOfRun(r) == corpus.Person && len(r.words) > 1 {
			surnames[r.words[len(r.words)-1]] = true
		}
	}
	for _, r := range runs {
		t := typeOfRun(r)
		if len(r.words) == 1 && surnames[r.words[0]] {
			t = corpus.Person
		}
		add(r.text, t)
	}
	lower := strings.ToLower(text)
	for _, idea := range ideas {
		for _, at := range corpus.FindSpans(lower, idea) {
			if name := []rune(text); len(name) == len([]rune(lower)) && whole(name, at) {
				add(string(name[at.Start:at.End]), corpus.Concept)
			}
		}
	}
	return out
}

// runsOf finds the names of a sentence: words with capitals, and the small words that join them.
func runsOf(text string, s llm.Sentence) (out []entityRun) {
	words := s.Words
	capital := func(i int) bool {
		if i < 0 || i >= len(words) || words[i].Mark || months[words[i].Lower] {
			return false
		}
		r := []rune(words[i].Text)[0]
		return unicode.IsUpper(r)
	}
	number := func(i int) bool {
		return words[i].Number && unicode.IsDigit([]rune(words[i].Text)[0]) && len(words[i].Text) <= 4 && !wordsOfBodies[words[i-1].Lower]
	}
	adjacent := func(i int) bool { // nothing before word i but what stands within names: El-Khoury, Teachers' Union
		if i >= len(words) || words[i].Mark || words[i-1].End > words[i].Start { // don't is two words in one place
			return false
		}
		switch strings.TrimSpace(text[words[i-1].End:words[i].Start]) {
		case "", "-", "'", "’":
			return true
		}
		return false
	}
	empty := func(i int) bool { return words[i].Stop && !abbreviated(words[i].Text) }
	for i := 0; i < len(words); {
		if !capital(i) || empty(i) {
			i++
			continue
		}
		end := i + 1
		for end < len(words) {
			switch {
			case adjacent(end) && capital(end) && !empty(end):
				end++
			case adjacent(end) && number(end) && end-i < 3:
				end++
			case adjacent(end) && joining[words[end].Lower] && adjacent(end+1) && capital(end+1) && joins(words[i:end], words[end].Lower, words[end+1]):
				end += 2
			case words[end].Lower == "der" && adjacent(end+1) && capital(end+1), words[end].Lower == "van" && end+2 < len(words) && words[end+1].Lower == "der" && capital(end+2):
				end += 2
			default:
				goto done
			}
		}
	done:
		start := i
		titled := false
		for start < end-1 && (titlesOfPersons[strings.TrimSuffix(words[start].Lower, ".")] || words[start].Lower == "prime") {
			start, titled = start+1, true
		}
		for end < len(words) && goodsOfName[words[end].Lower] && adjacent(end) && !titled {
			end++
		}
		i = end
		if end-start == 1 && (titlesOfPersons[words[start].Lower] || words[start].Number) {
			continue
		}
		r := entityRun{text: strings.TrimRight(text[words[start].Start:words[end-1].End], ".,"), titled: titled}
		for _, w := range words[start:end] {
			r.words = append(r.words, w.Text)
		}
		if start > 0 {
			r.before = words[start-1].Lower
		}
		if end < len(words) {
			r.after = words[end].Lower
		}
		if words[start].Initial && end-start == 1 && !titled && !r.sure() {
			continue // the first word of a sentence has a capital whatever it is
		}
		out = append(out, r)
	}
	return out
}

// joins reports whether a small word goes on with a name: of after a body or a law, and within one.
func joins(run []llm.Word, small string, next llm.Word) bool {
	if joiningNames[small] {
		return true
	}
	head := strings.ToLower(run[0].Text)
	body := wordsOfBodies[head] || wordsOfLaws[head]
	for _, w := range run {
		body = body || wordsOfBodies[w.Lower] && small != "and"
	}
	return body && !countries[next.Lower] || small == "of" && body
}

// sure reports whether one word with a capital is a name wherever it stands.
func (r entityRun) sure() bool {
	w := r.words[0]
	return countries[strings.ToLower(w)] || abbreviated(w) || sayingAfter[r.after]
}

// abbreviated reports whether a word is all capitals: WHO is a name and who is none.
func abbreviated(w string) bool {
	return len(w) > 1 && strings.ToUpper(w) == w && unicode.IsLetter([]rune(w)[0])
}

// typeOfRun tells a name's type by its words and its neighbours; "" for one that nothing tells.
func typeOfRun(r entityRun) corpus.EntityType {
	last, one := strings.ToLower(r.words[len(r.words)-1]), strings.ToLower(r.words[0])
	head := last
	for i, w := range r.words[1:] {
		if l := strings.ToLower(w); l == "of" || l == "for" {
			head = strings.ToLower(r.words[i])
			break
		}
	}
	digits := strings.ContainsFunc(r.text, unicode.IsDigit)
	switch {
	case r.titled:
		return corpus.Person
	case wordsOfLaws[head] || wordsOfLaws[one] && len(r.words) > 1:
		return corpus.Law
	case wordsOfDatasets[head] || wordsOfDatasets[last]:
		return corpus.Dataset
	case wordsOfBodies[head] || wordsOfBodies[last] || wordsOfBodies[one] && len(r.words) > 1 && !wordsOfPlaces[last]:
		return corpus.Organisation
	case goodsOfName[last] || goodsAfterName[r.after] && r.before != "of":
		return corpus.Product
	case digits:
		return corpus.Product
	case wordsOfPlaces[last] || firstOfPlaces[one] && len(r.words) > 1:
		return corpus.Location
	case countries[strings.ToLower(r.text)]:
		return corpus.Location
	case len(r.words) == 1 && abbreviated(r.text):
		return corpus.Organisation
	}
	for _, end := range medicines {
		if strings.HasSuffix(last, end) {
			return corpus.Product
		}
	}
	switch {
	case len(r.words) == 1 && placesBefore[r.before]:
		return corpus.Location
	case len(r.words) > 1 || sayingAfter[r.after] || r.before == "by":
		return corpus.Person
	}
	return corpus.Location
}
