package corpus

import "testing"

func TestRuleCategory(t *testing.T) {
	tests := []struct {
		name       string
		tags       []string
		source     Category
		want       Category
		confidence float64
	}{
		{"one tag", []string{"National", "Coronavirus"}, Politics, Medical, 0.7},
		{"two against one", []string{"Elections", "Taxes", "Public Health"}, Politics, Politics, 0.7 * 2 / 3},
		{"as many for each", []string{"Elections", "Public Health"}, Politics, Politics, 0.3},
		{"as many for each, and a source of everything", []string{"Elections", "Public Health"}, "", "", 0},
		{"a rare tag counts double", []string{"History", "Elections"}, Politics, History, 0.7 * 2 / 3},
		{"no tag that says anything", []string{"Texas", "Ilse Brandt"}, Politics, Politics, 0.3},
		{"anybody's post", []string{"Texas", "Facebook posts"}, Politics, "", 0},
		{"anybody's post with a tag", []string{"Climate Change", "Facebook posts"}, Politics, Science, 0.7},
		{"nothing", nil, "", "", 0},
	}
	for _, tt := range tests {
		got, confidence, ok := RuleCategory(tt.tags, tt.source)
		if got != tt.want || ok != (tt.want != "") || confidence < tt.confidence-1e-9 || confidence > tt.confidence+1e-9 {
			t.Errorf("%s: RuleCategory(%q, %q) = %q, %v, %v, want %q, %v", tt.name, tt.tags, tt.source, got, confidence, ok, tt.want, tt.confidence)
		}
	}
}

func TestResolve(t *testing.T) {
	yes := func(by string, v Verdict) Decision {
		return Decision{By: by, Yes: true, Verdict: v, At: "2026-01-02T00:00:00Z"}
	}
	no := func(by string) Decision { return Decision{By: by, At: "2026-01-02T00:00:00Z"} }
	settled := yes("c", MostlyTrue)
	settled.Adjudicate = true
	tests := []struct {
		name string
		list []Decision
		want Resolution // without By and Reason
	}{
		{"nobody", nil, Resolution{}},
		{"one yes", []Decision{yes("a", True)}, Resolution{Decided: true, Verdict: True}},
		{"two agree", []Decision{yes("a", True), yes("b", True)}, Resolution{Decided: true, Verdict: True}},
		{"two disagree", []Decision{yes("a", True), yes("b", False)}, Resolution{Decided: true, Disagree: true, Verdict: True}},
		{"one no is a no", []Decision{yes("a", True), no("b")}, Resolution{Decided: true, No: true, Verdict: True}},
		{"who thinks again", []Decision{no("a"), yes("a", False)}, Resolution{Decided: true, Verdict: False}},
		{"settled", []Decision{yes("a", True), yes("b", False), settled}, Resolution{Decided: true, Adjudicated: true, Verdict: MostlyTrue}},
		{"after that only what comes later counts", []Decision{yes("a", True), settled, yes("b", False)}, Resolution{Decided: true, Disagree: true, Adjudicated: true}},
	}
	for _, tt := range tests {
		got := Resolve(tt.list)
		if got.Disagree != tt.want.Disagree || got.No != tt.want.No || got.Decided != tt.want.Decided || got.Adjudicated != tt.want.Adjudicated ||
			!got.Disagree && !got.No && got.Verdict != tt.want.Verdict {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.want)
		}
		if (got.No || got.Disagree) && got.Reason == "" {
			t.Errorf("%s: no reason", tt.name)
		}
	}
	if s := Resolve([]Decision{settled}).Status(); s != StatusAdjudicated {
		t.Errorf("status %s", s)
	}
}

func TestSpan(t *testing.T) {
	const text = "“Zwölf  Brücken”, sagte\u00a0Ilse. A\u200b bridge cost 12\u00a0million."
	for _, tt := range []struct{ quote, want string }{
		{"Zwölf  Brücken", "Zwölf  Brücken"},
		{"\"Zwölf Brücken\", sagte Ilse", "“Zwölf  Brücken”, sagte\u00a0Ilse"},
		{"Zwo\u0308lf Bru\u0308cken", "Zwölf  Brücken"},
		{"A bridge cost 12 million.", "A\u200b bridge cost 12\u00a0million."},
		{"a tower", ""}, {"", ""}, {" \n", ""},
	} {
		span, ok := FindSpan(text, tt.quote)
		got, covers := span.Of(text)
		if ok != (tt.want != "") || ok != covers || got != tt.want {
			t.Errorf("FindSpan(%q) = %v, %v covers %q, want %q", tt.quote, span, ok, got, tt.want)
		}
	}
	for _, s := range []Span{{}, {3, 3}, {5, 2}, {-1, 4}, {0, 1000}, {1000, 1001}} {
		if got, ok := s.Of(text); ok {
			t.Errorf("span %v of the text = %q", s, got)
		}
	}
}
