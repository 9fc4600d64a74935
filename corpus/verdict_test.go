package corpus

import (
	"strings"
	"testing"
)

func TestPolitiFactRatings(t *testing.T) {
	tests := []struct {
		raw     string
		slug    string
		verdict Verdict
		exclude string
	}{
		// The machine words of the images.
		{"true", "true", True, ""},
		{"mostly-true", "mostly_true", MostlyTrue, ""},
		{"half-true", "half_true", HalfTrue, ""},
		{"barely-true", "mostly_false", MostlyFalse, ""},
		{"false", "false", False, ""},
		{"pants-fire", "pants_on_fire", False, ""},
		{"full-flop", "full_flop", "", "flip_o_meter"},
		{"half-flip", "half_flip", "", "flip_o_meter"},
		{"no-flip", "no_flip", "", "flip_o_meter"},
		// The other words that classes use.
		{"mostly-false", "mostly_false", MostlyFalse, ""},
		{"fire", "pants_on_fire", False, ""},
		// The labels that readers see, in the spellings of the pages, the old API and the tables.
		{"True", "true", True, ""},
		{"Mostly True", "mostly_true", MostlyTrue, ""},
		{"Half True", "half_true", HalfTrue, ""},
		{"Half-True", "half_true", HalfTrue, ""},
		{"Mostly False", "mostly_false", MostlyFalse, ""},
		{"Barely True", "mostly_false", MostlyFalse, ""},
		{"FALSE", "false", False, ""},
		{"Pants on Fire!", "pants_on_fire", False, ""},
		{"Pants on Fire", "pants_on_fire", False, ""},
		{"pants-on-fire", "pants_on_fire", False, ""},
		{"Full Flop", "full_flop", "", "flip_o_meter"},
		{"Half Flip", "half_flip", "", "flip_o_meter"},
		{"No Flip", "no_flip", "", "flip_o_meter"},
		{" [False]. ", "false", False, ""},
	}
	for _, tt := range tests {
		got, ok := PolitiFactRatings.Map(tt.raw)
		want := Rating{Slug: tt.slug, Verdict: tt.verdict, Exclude: tt.exclude, Evidence: got.Evidence}
		if !ok || got != want {
			t.Errorf("Map(%q) = %v, %v, want %v", tt.raw, got, ok, want)
		}
	}
	for _, raw := range []string{"", "Promise Kept", "mostly", "truee", "not true", "Mixture", "Unproven", "4 Pinocchios", "true-ish"} {
		if got, ok := PolitiFactRatings.Map(raw); ok || got != (Rating{}) {
			t.Errorf("Map(%q) = %v, %v; a rating that is not named must not be guessed", raw, got, ok)
		}
	}
}

func TestRatingMapsAreWhole(t *testing.T) {
	for _, m := range RatingMaps {
		if m.Source == "" || m.Version < 1 {
			t.Errorf("map %q has version %d", m.Source, m.Version)
		}
		for word, r := range m.Ratings {
			_, known := ParseVerdict(string(r.Verdict))
			if word != Slug(word) || r.Slug == "" || (r.Exclude == "") != known {
				t.Errorf("%s: entry %q is %+v; want a slug, and either a verdict or an exclusion", m.Source, word, r)
			}
		}
	}
}

func TestParseVerdict(t *testing.T) {
	tests := []struct {
		in   string
		want Verdict
	}{
		{"true", True}, {"mostly_true", MostlyTrue}, {"half_true", HalfTrue}, {"mostly_false", MostlyFalse}, {"false", False}, {"uncertain", Uncertain},
		{"pants_on_fire", False}, {"pants_fire", False}, {"pants-fire", False}, {"Pants on Fire!", False},
		{"barely_true", MostlyFalse}, {"Barely True", MostlyFalse},
		{"half_false", HalfTrue}, {"mixture", HalfTrue}, {"Mixture", HalfTrue},
		{"unverified", Uncertain}, {"NEI", Uncertain}, {"Not enough evidence.", Uncertain}, {"not-enough-evidence", Uncertain}, {"Unproven", Uncertain},
		{"[True]", True}, {`"False".`, False}, {" Half\u00a0True ", HalfTrue}, {"\u201cmostly false\u201d", MostlyFalse}, {"**True**", True}, {"(false)", False},
	}
	for _, tt := range tests {
		if got, ok := ParseVerdict(tt.in); !ok || got != tt.want {
			t.Errorf("ParseVerdict(%q) = %q, %v, want %q", tt.in, got, ok, tt.want)
		}
	}
	for _, in := range []string{"", ".", "truth", "true or false", "mostly", "supports", "4", "untrue"} {
		if got, ok := ParseVerdict(in); ok {
			t.Errorf("ParseVerdict(%q) = %q; want no verdict", in, got)
		}
	}
}

func TestOrdinal(t *testing.T) {
	for v, want := range map[Verdict]int{False: 0, MostlyFalse: 1, HalfTrue: 2, MostlyTrue: 3, True: 4} {
		if got, ok := v.Ordinal(); !ok || got != want {
			t.Errorf("Ordinal(%s) = %d, %v, want %d", v, got, ok, want)
		}
	}
	for _, v := range []Verdict{Uncertain, "", "mixture"} {
		if got, ok := v.Ordinal(); ok {
			t.Errorf("Ordinal(%q) = %d; want none", v, got)
		}
	}
}

func TestProjections(t *testing.T) {
	// One column for each projection: the value, or "" where the claim is dropped.
	tests := []struct {
		rating    string
		verdict   Verdict
		paper     string
		published string
		threeWay  string
	}{
		{"true", True, "true", "true", "true"},
		{"mostly_true", MostlyTrue, "true", "true", "true"},
		{"half_true", HalfTrue, "", "true", "uncertain"},
		{"mostly_false", MostlyFalse, "false", "false", "false"},
		{"false", False, "false", "false", "false"},
		{"pants_on_fire", False, "false", "false", "false"},
		{"unproven", Uncertain, "", "", "uncertain"},
		{"", "", "", "", ""},
		{"full_flop", "", "", "", ""},
	}
	for _, tt := range tests {
		c := Claim{Rating: tt.rating, Verdict6: tt.verdict}
		for name, want := range map[string]string{"raguard_paper_text": tt.paper, "raguard_release": tt.published, "three_way": tt.threeWay} {
			p, err := ProjectionByName(name)
			if err != nil {
				t.Fatal(err)
			}
			if got, ok := p.Apply(c); got != want || ok != (want != "") {
				t.Errorf("%s of %q = %q, %v, want %q", name, tt.rating, got, ok, want)
			}
		}
	}
	for _, p := range Projections {
		if p.Version < 1 || p.Doc == "" {
			t.Errorf("projection %s lacks version or doc", p.Name)
		}
		if _, half := p.Values["half_true"]; half && p.Rating && p.Warning == "" {
			t.Errorf("projection %s counts half_true as a binary verdict without a warning", p.Name)
		}
	}
	_, err := ProjectionByName("raguard")
	if err == nil || !strings.Contains(err.Error(), "raguard_paper_text, raguard_release, three_way") {
		t.Errorf("ProjectionByName of an unknown name = %v; want the known ones", err)
	}
}
