package llm

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"testing"
)

// lexPairs is a set of our own: invented claims, negated by hand, with documents for, against and
// beside them, and other names for every name in it.
type lexPairs struct {
	Names  map[string]string `json:"names"`
	Claims []struct {
		Claim     string `json:"claim"`
		Negated   string `json:"negated"`
		Documents []struct {
			Title string `json:"title"`
			Text  string `json:"text"`
			Want  string `json:"want"`
		} `json:"documents"`
	} `json:"claims"`
}

func lexReadPairs(t *testing.T) lexPairs {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "lexical_pairs.json"))
	if err != nil {
		t.Fatal(err)
	}
	var p lexPairs
	if err := json.Unmarshal(data, &p); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestLexReadPairs(t *testing.T) {
	right, all := 0, 0
	for _, c := range lexReadPairs(t).Claims {
		for _, d := range c.Documents {
			all++
			got := Read(c.Claim, d.Title, d.Text)
			if got.Answer == d.Want {
				right++
			} else {
				t.Logf("Read(%q, %q) = %q (%.2f, %s %q), want %q", c.Claim, d.Title, got.Answer, got.Score, got.Reason, got.Quote, d.Want)
			}
			if (got.Quote == "") != (got.Answer == "unrelated") || !strings.Contains(d.Title+"\n"+d.Text, got.Quote) {
				t.Errorf("Read(%q, %q).Quote = %q for %q", c.Claim, d.Title, got.Quote, got.Answer)
			}
		}
	}
	t.Logf("%d of %d pairs read as meant", right, all)
	if 20*right < 19*all { // words alone do not reach everything: "does nothing against the fever"
		t.Errorf("%d of %d pairs read as meant, want at least 95 %%", right, all)
	}
}

func TestLexReadNegatedClaim(t *testing.T) {
	decided, flipped := 0, 0
	for _, c := range lexReadPairs(t).Claims {
		for _, d := range c.Documents {
			got, turned := Read(c.Claim, d.Title, d.Text), Read(c.Negated, d.Title, d.Text)
			if got.Answer == "unrelated" {
				continue
			}
			decided++
			if turned.Answer == map[string]string{"true": "false", "false": "true"}[got.Answer] {
				flipped++
			} else {
				t.Logf("%q against %q: %q, then %q (%s)", c.Negated, d.Title, got.Answer, turned.Answer, turned.Reason)
			}
		}
	}
	t.Logf("negating the claim flips %d of %d answers", flipped, decided)
	if 10*flipped < 6*decided || decided == 0 {
		t.Errorf("negating the claim flips %d of %d answers, want at least 60 %%", flipped, decided)
	}
}

func TestLexReadSwappedDocuments(t *testing.T) {
	claims := lexReadPairs(t).Claims
	decided, unrelated := 0, 0
	for i, c := range claims {
		for _, d := range c.Documents {
			if Read(c.Claim, d.Title, d.Text).Answer == "unrelated" {
				continue
			}
			for k, other := range claims {
				if k == i {
					continue
				}
				decided++
				if got := Read(other.Claim, d.Title, d.Text); got.Answer == "unrelated" {
					unrelated++
				} else {
					t.Logf("%q against %q: %q (%s)", other.Claim, d.Title, got.Answer, got.Reason)
				}
			}
		}
	}
	t.Logf("swapping documents turns %d of %d answers to unrelated", unrelated, decided)
	if 10*unrelated < 7*decided || decided == 0 {
		t.Errorf("swapping documents turns %d of %d answers to unrelated, want at least 70 %%", unrelated, decided)
	}
}

// lexRename replaces names by others, the longest first, so that a full name wins over its last word.
func lexRename(names map[string]string, s string) string {
	keys := make([]string, 0, len(names))
	for k := range names {
		keys = append(keys, regexp.QuoteMeta(k))
	}
	sort.Slice(keys, func(i, j int) bool {
		return len(keys[i]) > len(keys[j]) || len(keys[i]) == len(keys[j]) && keys[i] < keys[j]
	})
	return regexp.MustCompile(strings.Join(keys, "|")).ReplaceAllStringFunc(s, func(m string) string { return names[m] })
}

func TestLexReadRenamed(t *testing.T) {
	p := lexReadPairs(t)
	for _, c := range p.Claims {
		for _, d := range c.Documents {
			want := Read(c.Claim, d.Title, d.Text)
			got := Read(lexRename(p.Names, c.Claim), lexRename(p.Names, d.Title), lexRename(p.Names, d.Text))
			if got.Answer != want.Answer || got.Quote != lexRename(p.Names, want.Quote) {
				t.Errorf("Read(%q, %q) = %q %q after renaming, want %q %q", c.Claim, d.Title, got.Answer, got.Quote, want.Answer, want.Quote)
			}
		}
	}
}
