package llm

import (
	"hash/fnv"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// Fewest and most keywords of one search variant (methods 3.1, stage 2).
const (
	lexFewest = 2
	lexMost   = 6
)

// lexSilent are words that speak about a statement rather than about its subject; a search that holds
// them finds reviews of the statement. Verdict words are left out with them.
var lexSilent = lexConceptSet(`claim fact check rating rate verdict statement quote post rumour rumor allege allegedly insist`)

// A lexKeyword is one thing to search for, in the spelling of the text.
type lexKeyword struct {
	at   int
	text string
}

// Keywords returns up to so many variants of search words for a text, each of up to perVariant words
// (2 to 6), in the order of the text. Names and numbers stand in every variant as far as there is
// room, the other words take turns. There are no quotation marks, stop words or verdict words. A name
// of several words counts as one keyword. Equal texts give equal variants.
func Keywords(text string, variants, perVariant int) [][]string {
	perVariant = max(lexFewest, min(perVariant, lexMost))
	fixed, words := lexKeywords(text)
	room := perVariant - len(fixed)
	if len(words) > 0 && room < 1 {
		room = 1
	}
	room = max(0, min(room, len(words)))
	fixed = fixed[:min(len(fixed), perVariant-room)]

	var out [][]string
	seen := map[string]bool{}
	for n := 0; len(out) < variants && n < 2*len(words)+1; n++ {
		picked := append(slices.Clone(fixed), lexTurn(words, n, room)...)
		slices.SortFunc(picked, func(a, b lexKeyword) int { return a.at - b.at })
		var variant []string
		for _, k := range picked {
			variant = append(variant, k.text)
		}
		if key := strings.Join(variant, "\n"); len(variant) > 0 && !seen[key] {
			seen[key] = true
			out = append(out, variant)
		}
	}
	return out
}

// lexTurn picks so many words for the nth variant: one stretch after another, then every second word
// from a moving start.
func lexTurn(words []lexKeyword, n, room int) []lexKeyword {
	if room == 0 {
		return nil
	}
	var out []lexKeyword
	stretches := (len(words) + room - 1) / room
	for k := range room {
		i := n*room + k
		if n >= stretches {
			i = n - stretches + 2*k
		}
		if w := words[i%len(words)]; !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	return out
}

// lexKeywords splits what is worth searching for into names and numbers, and other words, the telling
// ones before the common ones.
func lexKeywords(text string) (fixed, words []lexKeyword) {
	var common []lexKeyword
	seen := map[string]bool{}
	for _, s := range lexParse(lexSentences(text))[0].sentences {
		for i := 0; i < len(s.tokens); i++ {
			t := &s.tokens[i]
			if !lexContent(t) || t.stop || t.number == nil && !t.name && lexStop[t.lower] || !t.name && (lexCues[t.concept] != 0 || lexSilent[t.concept] || lexHedges[t.lower] || lexNegators[t.lower]) {
				continue
			}
			k := lexKeyword{at: t.start, text: t.text}
			key := t.concept
			switch {
			case t.name:
				for i+1 < len(s.tokens) && s.tokens[i+1].name {
					i++
					k.text += " " + s.tokens[i].text
				}
				key = "name " + k.text
			case t.number != nil:
				start := t.start
				if i > 0 && s.tokens[i-1].mark && s.tokens[i-1].end == start && t.number.kind == '$' {
					start = s.tokens[i-1].start
				}
				i = t.number.last
				k.text = text[start:s.tokens[i].end]
				key = "number " + k.text
			}
			if seen[key] {
				continue
			}
			seen[key] = true
			switch {
			case t.name || t.number != nil:
				fixed = append(fixed, k)
			case lexWeak[t.concept]:
				common = append(common, k)
			default:
				words = append(words, k)
			}
		}
	}
	if len(fixed)+len(words) < lexMost {
		words = append(words, common...)
	}
	return fixed, words
}

// HashEmbed returns an embedding of text by hashed words, pairs of words and letter triples, of length
// 1; a text without words gives zeros. dims below 1 means 256. It measures shared wording, not meaning.
func HashEmbed(text string, dims int) []float32 {
	if dims < 1 {
		dims = 256
	}
	features := map[string]float64{}
	add := func(feature string, weight float64) { features[feature] += weight }
	for _, s := range lexParse(lexSentences(text))[0].sentences {
		last := ""
		for i := range s.tokens {
			t := &s.tokens[i]
			if t.mark || t.stop && t.number == nil {
				continue
			}
			add("w "+t.concept, 1)
			if last != "" {
				add("p "+last+" "+t.concept, 0.5)
			}
			last = t.concept
			runes := []rune("^" + t.stem + "$")
			for k := 0; k+3 <= len(runes); k++ {
				add("t "+string(runes[k:k+3]), 0.25)
			}
		}
	}
	sums := make([]float64, dims)
	for _, f := range slices.Sorted(maps.Keys(features)) {
		h := fnv.New64a()
		h.Write([]byte(f))
		sum := h.Sum64()
		v := math.Log1p(features[f])
		if sum>>63 == 1 {
			v = -v
		}
		sums[sum%uint64(dims)] += v
	}
	norm := 0.0
	for _, v := range sums {
		norm += v * v
	}
	out := make([]float32, dims)
	if norm == 0 {
		return out
	}
	for i, v := range sums {
		out[i] = float32(v / math.Sqrt(norm))
	}
	return out
}

// CutSentences shortens text to at most chars characters, at the end of a sentence where one ends in
// the second half of what is allowed, else at a blank. The bool tells whether anything was cut.
func CutSentences(text string, chars int) (string, bool) {
	if utf8.RuneCountInString(text) <= chars {
		return text, false
	}
	if chars <= 0 {
		return "", true
	}
	end := 0
	for range chars {
		_, size := utf8.DecodeRuneInString(text[end:])
		end += size
	}
	cut := 0
	for _, s := range lexSentences(text) {
		if s.end > end {
			break
		}
		cut = s.end
	}
	if cut < end/2 {
		cut = len(lexCut(text, chars))
	}
	return text[:cut], true
}
