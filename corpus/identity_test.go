package corpus

import (
	"regexp"
	"testing"
)

func TestHD20ComposedAndDecomposedAreOneClaim(t *testing.T) {
	composed, decomposed := "Caf\u00e9 prices rose", "Cafe\u0301 prices rose"
	tests := []struct {
		name string
		a, b string
		same bool
	}{
		{"composed and decomposed", composed, decomposed, true},
		{"hangul syllable and jamo", "\ud55c", "\u1112\u1161\u11ab", true},
		{"two marks in another order", "q\u0307\u0323", "q\u0323\u0307", true},
		{"angstrom sign and letter", "\u212b", "\u00c5", true},
		{"with and without the accent", composed, "Cafe prices rose", false},
		{"compatibility form is another wording", "\ufb01ve percent", "five percent", false},
		{"letter case is another wording", "Prices rose", "prices rose", false},
		{"a line separator counts", "one\u2028two", "one two", false},
	}
	for _, tt := range tests {
		a := ClaimID(tt.a, "Ann Onym", "", "2024-05-01")
		b := ClaimID(tt.b, "Ann Onym", "", "2024-05-01")
		if (a == b) != tt.same {
			t.Errorf("%s: ids %s and %s, want equal %v", tt.name, a, b, tt.same)
		}
	}
	if a, b := ClaimID("x", "Jos\u00e9 R\u00edos", "", ""), ClaimID("x", "JOSE\u0301 RI\u0301OS", "", ""); a != b {
		t.Errorf("one speaker in two forms gives ids %s and %s", a, b)
	}
}

func TestClaimIDLeavesInvisibleCharactersOut(t *testing.T) {
	want := ClaimID("Prices rose by 5%", "", "", "")
	for name, s := range map[string]string{
		"zero width space":       "Prices\u200b rose by 5%",
		"zero width joiner":      "Pri\u200dces rose by 5%",
		"soft hyphen":            "Pri\u00adces rose by 5%",
		"byte order mark":        "\ufeffPrices rose by 5%",
		"right-to-left override": "Prices \u202erose\u202c by 5%",
		"variation selector":     "Prices rose by 5\ufe0f%",
		"variation supplement":   "Prices rose by 5\U000e0101%",
		"grapheme joiner":        "Pri\u034fces rose by 5%",
		"hangul filler":          "Prices\u3164 rose by 5%",
		"tag characters":         "Prices rose by 5%\U000e0061\U000e007f",
	} {
		if got := ClaimID(s, "", "", ""); got != want {
			t.Errorf("%s changes the id", name)
		}
	}
	for name, s := range map[string]string{
		"no-break space": "Prices\u00a0rose by 5%", "line break": "Prices\nrose by 5%", "dash": "Prices\u2013rose by 5%",
	} {
		if got := ClaimID(s, "", "", ""); got == want {
			t.Errorf("%s does not change the id", name)
		}
	}
	// A joiner between letter and mark must not hide that they compose.
	if ClaimID("Cafe\u200d\u0301", "", "", "") != ClaimID("Caf\u00e9", "", "", "") {
		t.Error("an invisible character between letter and accent changes the id")
	}
}

func TestClaimIDParts(t *testing.T) {
	const review = "https://check.example/claims/bridge"
	base := ClaimID("Tolls doubled", "Ann Onym", review, "2024-05-01")
	if !regexp.MustCompile(`^c_[0-9a-f]{16}$`).MatchString(base) {
		t.Errorf("ClaimID = %q, want c_ and 16 hex digits", base)
	}
	tests := []struct {
		name                   string
		text, speaker, url, at string
		same                   bool
	}{
		{"speaker in capitals", "Tolls doubled", "ANN ONYM", review, "2024-05-01", true},
		{"the review counts, so the date does not", "Tolls doubled", "Ann Onym", review, "2024-05-02", true},
		{"tracked review", "Tolls doubled", "Ann Onym", review + "?utm_source=x", "2024-05-01", true},
		{"another speaker", "Tolls doubled", "Bob Onym", review, "2024-05-01", false},
		{"another text", "Tolls halved", "Ann Onym", review, "2024-05-01", false},
		{"another review", "Tolls doubled", "Ann Onym", review + "-2", "2024-05-01", false},
		{"no review", "Tolls doubled", "Ann Onym", "", "2024-05-01", false},
		{"a character moved between parts", "Tolls doubledA", "nn Onym", review, "2024-05-01", false},
	}
	for _, tt := range tests {
		if got := ClaimID(tt.text, tt.speaker, tt.url, tt.at); (got == base) != tt.same {
			t.Errorf("%s: %s against %s, want equal %v", tt.name, got, base, tt.same)
		}
	}
	if ClaimID("x", "", "", "2024-05-01") == ClaimID("x", "", "", "2024-05-02") {
		t.Error("without a review the date does not count")
	}
	for _, pair := range [][2]string{{"Stra\u00dfe AG", "STRASSE AG"}, {"\u039f\u03b4\u03c5\u03c3\u03c3\u03b5\u03cd\u03c2", "\u039f\u0394\u03a5\u03a3\u03a3\u0395\u038e\u03a3"}} {
		if ClaimID("x", pair[0], "", "") != ClaimID("x", pair[1], "", "") {
			t.Errorf("speakers %q and %q differ by more than case", pair[0], pair[1])
		}
	}
}

// The ids of released records may never change; these were computed by hand from the rule: SHA-256
// over the parts, each after its length as eight bytes, big end first.
func TestIDsAreStable(t *testing.T) {
	tests := []struct{ name, got, want string }{
		{"claim with review", ClaimID("Tolls doubled", "Ann Onym", "https://check.example/claims/bridge", ""), "c_ef7139385890df72"},
		{"claim without", ClaimID("Tolls doubled", "", "", "2024-05-01"), "c_3ba1bd83636a7774"},
		{"pair", PairID("c_0000000000000000", "reddit:t3_abc"), "p_f0937299e51094b1"},
		{"document", DocumentID("https://news.example/a?id=7"), "d_c76845def396fa0a"},
		{"post", RedditID("T3_18R2fkv"), "reddit:t3_18r2fkv"},
		{"row", RowID("raguard", 16331), "raguard:16331"},
	}
	for _, tt := range tests {
		if tt.got != tt.want {
			t.Errorf("%s: id %s, want %s", tt.name, tt.got, tt.want)
		}
	}
	if PairID("ab", "c") == PairID("a", "bc") {
		t.Error("a character moved between the parts of a pair does not change its id")
	}
}

func TestFold(t *testing.T) {
	tests := []struct{ in, want string }{
		{"", ""},
		{" \t\n ", ""},
		{"  two\u00a0 words\u2028here\u0085 ", "two words here"},
		{"\u201cIt\u2019s\u201d \u2018so\u2019", `"It's" 'so'`},
		{"\u00abquoted\u00bb \u201elow\u201c \u201asingle\u2018", `"quoted" "low" 'single'`},
		{"Cafe\u0301\u200b", "Caf\u00e9"},
		{"Case Stays", "Case Stays"},
	}
	for _, tt := range tests {
		if got := Fold(tt.in); got != tt.want {
			t.Errorf("Fold(%q) = %q, want %q", tt.in, got, tt.want)
		}
		if twice := Fold(Fold(tt.in)); twice != tt.want {
			t.Errorf("Fold twice of %q = %q, want %q", tt.in, twice, tt.want)
		}
	}
}
