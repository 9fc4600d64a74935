package llm

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

// A lexRealClaim is one claim of the published sample with its documents.
type lexRealClaim struct {
	ID        string `json:"claim_id"`
	Claim     string `json:"claim"`
	Verdict   string `json:"verdict"`
	Documents []struct {
		ID    string `json:"Document ID"`
		Title string `json:"Title"`
		Text  string `json:"Full Text"`
		Label string `json:"Document Label"`
	} `json:"documents"`
}

// lexRealPairs reads the captured sample and leaves out documents without a body (methods 3.1, stage 2).
func lexRealPairs(t *testing.T) []lexRealClaim {
	t.Helper()
	dir := os.Getenv("ASSAY_REAL")
	if dir == "" {
		t.Skip("skipped: ASSAY_REAL is not set")
	}
	data, err := os.ReadFile(filepath.Join(dir, "raguard", "sample-20-claims.json"))
	if err != nil {
		t.Fatal(err)
	}
	var claims []lexRealClaim
	if err := json.Unmarshal(data, &claims); err != nil {
		t.Fatal(err)
	}
	link := regexp.MustCompile(`https?://\S+`)
	for i := range claims {
		kept := claims[i].Documents[:0]
		for _, d := range claims[i].Documents {
			n := 0
			for _, r := range link.ReplaceAllString(d.Text, "") {
				if unicode.IsLetter(r) || unicode.IsDigit(r) {
					n++
				}
			}
			if text := strings.TrimSpace(d.Text); n >= 30 && text != "[Link Post]" && text != "[deleted]" && text != "[removed]" {
				kept = append(kept, d)
			}
		}
		claims[i].Documents = kept
	}
	return claims
}

// lexRealNegations turn the claims of the sample into their opposites: what to replace, by what.
var lexRealNegations = map[string][2]string{
	"2620": {"have a higher deficit", "do not have a higher deficit"},
	"457":  {"she had a majority", "she did not have a majority"},
	"103":  {"had a budget surplus", "did not have a budget surplus"},
	"1127": {"We spend", "We do not spend"},
	"1004": {"have kept", "have not kept"},
	"915":  {"has dropped", "has not dropped"},
	"572":  {"have gained", "have not gained"},
	"420":  {"your taxes are … lower", "your taxes are … not lower"},
	"2234": {"was not fast enough", "was fast enough"},
	"357":  {"I supported", "I never supported"},
	"2419": {"went down", "did not go down"},
	"1729": {"I want to abolish", "I do not want to abolish"},
	"131":  {"was pushed away", "was not pushed away"},
	"123":  {"oil's filling", "oil is not filling"},
	"384":  {"I've always said", "I've never said"},
	"896":  {"is significantly higher", "is not significantly higher"},
	"953":  {"allowed bad", "did not allow bad"},
	"2070": {"has made", "has not made"},
	"2466": {"sort of had a mandate because they were giving the vaccine, they were demanding", "never had a mandate because they were giving the vaccine, they were not demanding"},
	"109":  {"there was no such thing as", "there was"},
}

func TestLexReadRealPairs(t *testing.T) {
	claims := lexRealPairs(t)
	pairs, decided, flipped := 0, 0, 0
	swapped, unrelated, foreign, related := 0, 0, 0, 0
	for i, c := range claims {
		edit, ok := lexRealNegations[c.ID]
		if !ok || !strings.Contains(c.Claim, edit[0]) {
			t.Fatalf("claim %s has no negation", c.ID)
		}
		negated := strings.Replace(c.Claim, edit[0], edit[1], 1)
		for _, d := range c.Documents {
			pairs++
			got := Read(c.Claim, d.Title, d.Text)
			if !strings.Contains(d.Title+"\n"+d.Text, got.Quote) {
				t.Errorf("document %s does not hold the quote %q", d.ID, got.Quote)
			}
			for k, other := range claims {
				if k == i {
					continue
				}
				r := Read(other.Claim, d.Title, d.Text)
				foreign++
				if r.Answer != "unrelated" {
					related++
				}
				if got.Answer != "unrelated" {
					swapped++
					if r.Answer == "unrelated" {
						unrelated++
					}
				}
			}
			if got.Answer == "unrelated" {
				continue
			}
			decided++
			turned := Read(negated, d.Title, d.Text)
			if turned.Answer != "unrelated" && turned.Answer != got.Answer {
				flipped++
			}
			t.Logf("claim %s (%s), document %s published as %s: %s, negated %s, %.2f %q", c.ID, c.Verdict, d.ID, d.Label, got.Answer, turned.Answer, got.Score, got.Quote)
		}
	}
	t.Logf("%d pairs, %d not unrelated; negating flips %d; swapping turns %d of %d to unrelated; of all foreign pairs %d of %d are not unrelated",
		pairs, decided, flipped, unrelated, swapped, related, foreign)
	if pairs != 74 {
		t.Errorf("%d usable pairs, want 74", pairs)
	}
	if 10*unrelated < 7*swapped {
		t.Errorf("swapping documents turns %d of %d answers to unrelated, want at least 70 %%", unrelated, swapped)
	}
	if 10*flipped < 6*decided {
		t.Errorf("negating the claim flips %d of %d answers, want at least 60 %%", flipped, decided)
	}
	if decided > 0 && related*pairs >= decided*foreign {
		t.Errorf("foreign documents decide as often (%d of %d) as the claims' own (%d of %d)", related, foreign, decided, pairs)
	}
}

// TestLexReadRealRenamed gives every name of a claim another name, in the claim and in its documents.
func TestLexReadRealRenamed(t *testing.T) {
	names := []string{"Velmar", "Torquil", "Ansgar", "Belvoir", "Corvane", "Delmont", "Estrid", "Fenlow", "Garrick", "Hesper"}
	word := regexp.MustCompile(`\pL+`)
	for _, c := range lexRealPairs(t) {
		to := map[string]string{}
		for _, s := range lexParse(lexSentences(c.Claim))[0].sentences {
			for _, tok := range s.tokens {
				if _, known := to[tok.text]; tok.name && !tok.initial && len(tok.text) > 3 && !known {
					to[tok.text] = names[len(to)]
				}
			}
		}
		other := func(s string) string {
			return word.ReplaceAllStringFunc(s, func(w string) string {
				if n, ok := to[w]; ok {
					return n
				}
				return w
			})
		}
		for _, d := range c.Documents {
			want, got := Read(c.Claim, d.Title, d.Text), Read(other(c.Claim), other(d.Title), other(d.Text))
			if got.Answer != want.Answer {
				t.Errorf("claim %s, document %s: %q after renaming %v, want %q", c.ID, d.ID, got.Answer, to, want.Answer)
			}
		}
	}
}
