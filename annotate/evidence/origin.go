package evidence

import (
	"regexp"
	"strings"

	"assay/corpus"
)

// How documents of one origin were matched.
const (
	MatchAddress = "address"   // one address, reached twice
	MatchText    = "near_text" // nearly the same words
	MatchCited   = "cites"     // both rest on the same document or the same wire report
)

// Origins tells for each item which documents go back to one: those with nearly the same text, and those
// that cite the same source (methods, decision 7). An origin is named by the first of its documents.
func Origins(items []corpus.Evidence, docs []corpus.Document) []corpus.Evidence {
	origin, match := map[string]string{}, map[string]string{}
	for i, d := range docs {
		origin[d.ID] = d.ID
		for _, e := range docs[:i] {
			if by := sameOrigin(e, d); by != "" {
				origin[d.ID], match[d.ID] = origin[e.ID], by
				break
			}
		}
	}
	out := make([]corpus.Evidence, len(items))
	for i, item := range items {
		item.Origin, item.Match = origin[item.DocumentID], match[item.DocumentID]
		out[i] = item
	}
	return out
}

func sameOrigin(a, b corpus.Document) string {
	switch {
	case a.ID == b.ID || a.URL != "" && b.URL != "" && corpus.IdentityURL(a.URL) == corpus.IdentityURL(b.URL):
		return MatchAddress
	case a.SHA256 != "" && a.SHA256 == b.SHA256, alike(a.Text, b.Text):
		return MatchText
	case a.Outbound != "" && b.Outbound != "" && corpus.IdentityURL(a.Outbound) == corpus.IdentityURL(b.Outbound),
		a.Outbound != "" && corpus.IdentityURL(a.Outbound) == corpus.IdentityURL(b.URL),
		b.Outbound != "" && corpus.IdentityURL(b.Outbound) == corpus.IdentityURL(a.URL):
		return MatchCited
	}
	if w := wire(a.Text); w != "" && w == wire(b.Text) && alikeAt(a.Text, b.Text, 0.4) {
		return MatchCited
	}
	return ""
}

// wires are how a report says which agency it is from.
var wires = regexp.MustCompile(`\((AP|AFP|Reuters|UPI|dpa)\)|\b(Associated Press|Agence France-Presse)\b`)

func wire(text string) string {
	return strings.ToLower(wires.FindString(text))
}

// A text is as good as another where four fifths of its runs of five words are the other's.
func alike(a, b string) bool { return alikeAt(a, b, 0.8) }

func alikeAt(a, b string, share float64) bool {
	x, y := runs(a), runs(b)
	if len(x) == 0 || len(y) == 0 {
		return false
	}
	both := 0
	for r := range x {
		if y[r] {
			both++
		}
	}
	return float64(both) >= share*float64(min(len(x), len(y)))
}

func runs(text string) map[string]bool {
	words := strings.Fields(strings.ToLower(corpus.Fold(text)))
	const n = 5
	out := map[string]bool{}
	for i := 0; i+n <= len(words); i++ {
		out[strings.Join(words[i:i+n], " ")] = true
	}
	return out
}
