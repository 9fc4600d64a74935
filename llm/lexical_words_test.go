package llm

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLexSentences(t *testing.T) {
	tests := []struct {
		name string
		text string
		want []string
	}{
		{"marks", "It rained. Did it? It did! Well…", []string{"It rained.", "Did it?", "It did!", "Well…"}},
		{"abbreviations", "Dr. Orr met Gen. Vance in the U.S. capital at 9 a.m. today. J. Hale spoke.", []string{"Dr. Orr met Gen. Vance in the U.S. capital at 9 a.m. today.", "J. Hale spoke."}},
		{"decimals", "Prices rose 3.5 percent. Wages 1,200.50 more.", []string{"Prices rose 3.5 percent.", "Wages 1,200.50 more."}},
		{"quotation", `He said "It is over." Then he left.`, []string{`He said "It is over."`, "Then he left."}},
		{"wrapped line", "The dam\nheld all night.", []string{"The dam\nheld all night."}},
		{"paragraphs and lists", "First point\n\n* second one\n* third one\n1. fourth", []string{"First point", "second one", "third one", "1. fourth"}},
		{"address", "See https://a.example/x.Y?q=1. It is there.", []string{"See https://a.example/x.Y?q=1.", "It is there."}},
		{"other scripts", "水が出た。本当か？はい。", []string{"水が出た。", "本当か？", "はい。"}},
		{"nothing", " \n\n ", nil},
	}
	for _, tt := range tests {
		var got []string
		for _, s := range lexSentences(tt.text) {
			got = append(got, tt.text[s.start:s.end])
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: sentences of %q differ (-want +got):\n%s", tt.name, tt.text, diff)
		}
	}
}

func TestLexTokens(t *testing.T) {
	tests := []struct{ text, want string }{
		{"The dam's gates didn’t open", "the dam gates did not open"},
		{"can't cannot won't dont", "can not cannot will not do not"},
		{"Café café CAFE", "cafe cafe cafe"},
		{"U.S. officials, S.C. voters", "us officials , sc voters"},
		{"[text](https://x.example/a_b) &amp; &#x200B;more", "[ text ] ( ) more"},
		{"well-known 3.5 1,200 40k", "well - known 3.5 1,200 40k"},
		{"зима 東京", "зима 東 京"},
	}
	for _, tt := range tests {
		var got []string
		for _, tok := range lexTokens(tt.text) {
			got = append(got, tok.lower)
			if tt.text[tok.start:tok.end] == "" {
				t.Errorf("tokens of %q: %q has no place", tt.text, tok.lower)
			}
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("tokens of %q = %q, want %q", tt.text, strings.Join(got, " "), tt.want)
		}
	}
}

func TestLexConcept(t *testing.T) {
	alike := [][]string{
		{"close", "closed", "closes", "closing", "closure"}, {"inspect", "inspected", "inspection", "inspections"},
		{"plan", "planned", "planning", "plans"}, {"supply", "supplies", "supplied"}, {"rise", "rose", "risen", "rising", "rises"},
		{"contaminate", "contaminated", "contamination", "polluted"}, {"city", "cities"}, {"legalise", "legalize", "legalised"},
		{"control", "controlled", "controls"}, {"colour", "color"}, {"pay", "paid", "payment", "payments"}, {"car", "vehicles"},
	}
	for _, row := range alike {
		for _, w := range row[1:] {
			if lexConcept(w) != lexConcept(row[0]) {
				t.Errorf("lexConcept(%q) = %q, want that of %q, %q", w, lexConcept(w), row[0], lexConcept(row[0]))
			}
		}
	}
	apart := [][2]string{{"close", "open"}, {"policy", "police"}, {"pay", "play"}, {"sick", "healthy"}, {"find", "fine"}}
	for _, p := range apart {
		if lexConcept(p[0]) == lexConcept(p[1]) {
			t.Errorf("lexConcept does not tell %q from %q", p[0], p[1])
		}
	}
}

func TestLexNumbers(t *testing.T) {
	open := math.Inf(1)
	tests := []struct {
		text string
		want string // kind, value, what it allows, what is counted
	}{
		{"1,200 jobs were lost", "n 1200 1140..1260 [job los]"},
		{"more than 3 million adults", fmt.Sprintf("n 3000000 2850000..%v [adult]", open)},
		{"no more than two wells", fmt.Sprintf("n 2 %v..2.1 [wel]", -open)},
		{"at least $2.5 billion", fmt.Sprintf("$ 2500000000 2375000000..%v []", open)},
		{"over $2-trillion", fmt.Sprintf("$ 2000000000000 1900000000000..%v []", open)},
		{"nearly 50%", "% 50 44..56 []"},
		{"12 per cent of homes", "% 12 11.4..12.6 [hous]"},
		{"one in five patients", "% 20 19..21 [patient]"},
		{"two thirds of voters", "% 66.66666666666667 63.333333333333336..70 [voter]"},
		{"half of the staff", "% 50 47.5..52.5 [staf]"},
		{"twenty-five trucks", "n 25 23.75..26.25 [truck]"},
		{"three hundred sheep", "n 300 285..315 [sheep]"},
		{"in 2021", "y 2021 2021..2021 []"},
		{"since the 1950s", "y 1950 1950..1959 []"},
		{"the 3rd bridge", "o 3 3..3 [bridg]"},
		{"40 dollars", "$ 40 38..42 []"},
		{"one of them", ""},
		{"at 5pm", ""},
	}
	for _, tt := range tests {
		var got []string
		for _, s := range lexParse(lexSentences(tt.text))[0].sentences {
			for _, tok := range s.tokens {
				if n := tok.number; n != nil {
					got = append(got, fmt.Sprintf("%c %v %v..%v %v", n.kind, lexNumberText(n.value), lexNumberText(n.low), lexNumberText(n.high), n.unit))
				}
			}
		}
		if strings.Join(got, "; ") != tt.want {
			t.Errorf("numbers of %q = %q, want %q", tt.text, strings.Join(got, "; "), tt.want)
		}
	}
}

func lexNumberText(v float64) string {
	if math.IsInf(v, 0) || v != math.Trunc(v) {
		return fmt.Sprint(v)
	}
	return fmt.Sprintf("%.0f", v)
}

// TestLexReadTurns holds ways to deny and to oppose: each pair of a claim and a sentence, and the answer.
func TestLexReadTurns(t *testing.T) {
	tests := []struct{ claim, text, want string }{
		{"The council closed the old library.", "The council closed the old library on Friday.", "true"},
		{"The council closed the old library.", "The council did not close the old library.", "false"},
		{"The council closed the old library.", "The council didn’t close the old library.", "false"},
		{"The council closed the old library.", "The council never closed the old library.", "false"},
		{"The council closed the old library.", "The council refused to close the old library.", "false"},
		{"The council closed the old library.", "The council reopened the old library.", "false"},
		{"The council closed the old library.", "The closure of the old library by the council never happened.", "false"},
		{"The council closed the old library.", "There is no truth to the story that the council closed the old library.", "false"},
		{"The council closed the old library.", "It is true that the council closed the old library.", "true"},
		{"The council closed the old library.", "It is not true that the council closed the old library.", "false"},
		{"The council closed the old library.", "The council closed the old library? That is wrong.", "false"},
		{"The council closed the old library.", "Did the council close the old library?", "unrelated"},
		{"The council closed the old library.", "If the council closed the old library, I would cry.", "unrelated"},
		{"The council closed the old library.", "The council might close the old library.", "unrelated"},
		{"The council closed the old library.", "Reports that the council closed the old library have not been confirmed.", "unrelated"},
		{"The council closed the old library.", "The council, in fact, did close the old library.", "true"},
		{"The council closed the old library.", "There is no doubt that the council closed the old library.", "true"},
		{"The council did not close the old library.", "The council closed the old library.", "false"},
		{"The council did not close the old library.", "The council never closed the old library.", "true"},
		{"The council did not close the old library.", "The council kept the old library open.", "true"},
		{"Rents in the harbour rose last year.", "Rents in the harbour fell last year.", "false"},
		{"Rents in the harbour rose last year.", "Rents in the harbour went up last year.", "true"},
		{"Rents in the harbour rose last year.", "Rents in the harbour did not fall last year.", "true"},
		{"Rents in the harbour rose last year.", "Rents in the harbour declined last year, by a lot.", "false"},
		{"The mine lets children work underground.", "The law bans the mine from letting children work underground.", "false"},
		{"The wells are safe to drink from.", "The wells are unsafe to drink from.", "false"},
		{"The port was approved by the court.", "The port was disapproved by the court.", "false"},
		{"The storm killed 30 sailors.", "The storm killed thirty sailors.", "true"},
		{"The storm killed 30 sailors.", "The storm killed 31 sailors, by one count.", "true"},
		{"The storm killed 30 sailors.", "The storm killed three sailors.", "false"},
		{"The storm killed 30 sailors.", "The storm killed 3 sailors, not 30.", "false"},
		{"The storm killed more than 30 sailors.", "The storm killed 300 sailors.", "true"},
		{"The storm killed more than 30 sailors.", "The storm killed fewer than 10 sailors.", "false"},
		{"Officials poisoned the wells.", "Debunked: officials poisoned the wells. That is false and made up.", "false"},
		{"Officials poisoned the wells.", "It is a lie that officials poisoned the wells.", "false"},
		{"The harbour office employs 40 clerks.", "The harbour office has moved to the old mill.", "unrelated"},
		{"Officials poisoned the wells.", "Officials denied that they poisoned the wells.", "false"},
		{"The story that officials poisoned the wells is a hoax.", "Officials poisoned the wells.", "false"},
		{"The story that officials poisoned the wells is a hoax.", "That officials poisoned the wells is a hoax.", "true"},
		{"", "Anything goes.", "unrelated"},
		{"The storm killed 30 sailors.", "", "unrelated"},
		{"and the of", "and the of", "unrelated"},
	}
	for _, tt := range tests {
		if got := Read(tt.claim, "", tt.text); got.Answer != tt.want {
			t.Errorf("Read(%q, %q) = %q (%s), want %q", tt.claim, tt.text, got.Answer, got.Reason, tt.want)
		}
	}
}

func TestLexReadQuoteLength(t *testing.T) {
	long := "The council closed the old library " + strings.Repeat("and the archive beside it ", 40) + "."
	got := Read("The council closed the old library.", "", long)
	if n := len([]rune(got.Quote)); n == 0 || n > lexQuoteRunes || !strings.HasPrefix(long, got.Quote) {
		t.Errorf("quote of a long sentence has %d characters: %q", n, got.Quote)
	}
}

func TestLexKeywords(t *testing.T) {
	tests := []struct {
		text          string
		variants, per int
		want          [][]string
	}{
		{"The Torvin dam released untreated water into Marrow Lake in 2021.", 3, 6, [][]string{
			{"Torvin", "dam", "released", "untreated", "Marrow Lake", "2021"},
			{"Torvin", "dam", "released", "water", "Marrow Lake", "2021"},
			{"Torvin", "dam", "untreated", "Marrow Lake", "2021"},
		}},
		{"The claim that Pell Transit spent $2 million on a fake hoax is false.", 1, 6, [][]string{{"Pell Transit", "spent", "$2 million"}}},
		{"\"Crime is not true.\"", 2, 4, [][]string{{"Crime"}}},
		{"and the of", 3, 6, nil},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, Keywords(tt.text, tt.variants, tt.per)); diff != "" {
			t.Errorf("Keywords(%q, %d, %d) differ (-want +got):\n%s", tt.text, tt.variants, tt.per, diff)
		}
	}
}

func TestLexKeywordsRules(t *testing.T) {
	p := lexReadPairs(t)
	for _, c := range p.Claims {
		for per := 0; per < 9; per++ {
			for _, v := range Keywords(c.Claim, 3, per) {
				if len(v) < 1 || len(v) > max(lexFewest, min(per, lexMost)) || strings.ContainsAny(strings.Join(v, " "), `"“”`) {
					t.Errorf("Keywords(%q, 3, %d) holds %q", c.Claim, per, v)
				}
			}
		}
		if got, want := len(Keywords(lexRename(p.Names, c.Claim), 3, 6)), len(Keywords(c.Claim, 3, 6)); got != want {
			t.Errorf("Keywords(%q) gives %d variants after renaming, want %d", c.Claim, got, want)
		}
	}
}

func TestLexEmbed(t *testing.T) {
	dot := func(a, b []float32) float64 {
		sum := 0.0
		for i := range a {
			sum += float64(a[i]) * float64(b[i])
		}
		return sum
	}
	dam, water, teachers := HashEmbed("The dam released water into the lake.", 0), HashEmbed("Water was released from the dam.", 256), HashEmbed("Teachers earn less than drivers.", 256)
	if len(dam) != 256 || math.Abs(dot(dam, dam)-1) > 1e-5 {
		t.Errorf("HashEmbed has length %d and norm %v, want 256 and 1", len(dam), dot(dam, dam))
	}
	if near, far := dot(dam, water), dot(dam, teachers); near < 0.5 || far > 0.25 {
		t.Errorf("similar texts are at %.2f, others at %.2f", near, far)
	}
	if diff := cmp.Diff(dam, HashEmbed("The dam released water into the lake.", 256)); diff != "" {
		t.Errorf("HashEmbed is not a function of its text:\n%s", diff)
	}
	if diff := cmp.Diff(make([]float32, 8), HashEmbed("", 8)); diff != "" {
		t.Errorf("HashEmbed of nothing (-want +got):\n%s", diff)
	}
}

func TestLexCutSentences(t *testing.T) {
	text := "One two three. Four five six. Seven eight nine."
	tests := []struct {
		text  string
		chars int
		want  string
		cut   bool
	}{
		{text, 100, text, false},
		{text, 47, text, false},
		{text, 46, "One two three. Four five six.", true},
		{text, 20, "One two three.", true},
		{text, 10, "One two", true},
		{text, 0, "", true},
		{"äöü ÄÖÜ ßßß", 7, "äöü", true},
	}
	for _, tt := range tests {
		got, cut := CutSentences(tt.text, tt.chars)
		if got != tt.want || cut != tt.cut {
			t.Errorf("CutSentences(%q, %d) = %q, %v, want %q, %v", tt.text, tt.chars, got, cut, tt.want, tt.cut)
		}
	}
}

func FuzzLexRead(f *testing.F) {
	f.Add("The storm killed 30 sailors.", "Storm", "No. One in five out of 2, not 3 - million $ & # http://x.")
	f.Add("U.S. not", "五 in 10", "a third of\nhalf\x80 “no” 1950s don’t")
	f.Fuzz(func(t *testing.T, claim, title, text string) {
		got := Read(claim, title, text)
		if !strings.Contains(title, got.Quote) && !strings.Contains(text, got.Quote) {
			t.Errorf("quote %q is not in the document", got.Quote)
		}
		if got.Answer != "true" && got.Answer != "false" && got.Answer != "unrelated" {
			t.Errorf("answer %q", got.Answer)
		}
		Keywords(text, 3, 6)
		HashEmbed(text, 16)
		if cut, _ := CutSentences(text, 20); !strings.HasPrefix(text, cut) {
			t.Errorf("%q is no beginning of %q", cut, text)
		}
	})
}
