package corpus

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEffectOf(t *testing.T) {
	tests := []struct {
		zero, with Answer
		gold       bool
		want       Effect
	}{
		{AnswerTrue, AnswerTrue, true, EffectConfirm},
		{AnswerFalse, AnswerFalse, false, EffectConfirm},
		{AnswerFalse, AnswerTrue, true, EffectCorrect},
		{AnswerTrue, AnswerFalse, false, EffectCorrect},
		{AnswerTrue, AnswerFalse, true, EffectFlip},
		{AnswerFalse, AnswerTrue, false, EffectFlip},
		{AnswerFalse, AnswerFalse, true, EffectInherit},
		{AnswerTrue, AnswerTrue, false, EffectInherit},
		{AnswerTrue, AnswerUnrelated, true, EffectAbstain},
		{AnswerFalse, AnswerUnrelated, true, EffectAbstain},
		{AnswerUnknown, AnswerTrue, true, EffectUnknown},
		{AnswerUnknown, AnswerUnrelated, false, EffectUnknown},
		{AnswerUnrelated, AnswerFalse, false, EffectUnknown},
		{"", AnswerTrue, true, EffectUnknown},
	}
	for _, tt := range tests {
		if got := EffectOf(tt.zero, tt.with, tt.gold); got != tt.want {
			t.Errorf("EffectOf(%s, %s, gold %v) = %s, want %s", tt.zero, tt.with, tt.gold, got, tt.want)
		}
	}
}

func TestAddFlag(t *testing.T) {
	tests := []struct {
		flags []string
		f     string
		want  []string
	}{
		{nil, "b", []string{"b"}},
		{[]string{"b"}, "a", []string{"a", "b"}},
		{[]string{"a", "c"}, "b", []string{"a", "b", "c"}},
		{[]string{"a", "b"}, "c", []string{"a", "b", "c"}},
		{[]string{"a", "b"}, "b", []string{"a", "b"}},
	}
	for _, tt := range tests {
		before := slices.Clone(tt.flags)
		got := AddFlag(tt.flags, tt.f)
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("AddFlag(%q, %q) (-want +got):\n%s", tt.flags, tt.f, diff)
		}
		if diff := cmp.Diff(before, tt.flags); diff != "" {
			t.Errorf("AddFlag changed its argument:\n%s", diff)
		}
		if !HasFlag(got, tt.f) || HasFlag(got, "z") {
			t.Errorf("HasFlag does not agree with AddFlag(%q, %q)", tt.flags, tt.f)
		}
	}
	// Two records may start from one slice: adding to one must not show in the other.
	shared := make([]string, 1, 8)
	shared[0] = "m"
	first, second := AddFlag(shared, "x"), AddFlag(shared, "y")
	if diff := cmp.Diff([][]string{{"m", "x"}, {"m", "y"}}, [][]string{first, second}); diff != "" {
		t.Errorf("two flags on one slice (-want +got):\n%s", diff)
	}
}

func TestExclude(t *testing.T) {
	err := fmt.Errorf("parse page: %w", Exclude("flip_o_meter", " full-flop "))
	var ex interface{ Excluded() string }
	if !errors.As(err, &ex) || ex.Excluded() != "flip_o_meter" {
		t.Errorf("a wrapped exclusion is not recognised: %v", err)
	}
	if got, want := err.Error(), "parse page: excluded: flip_o_meter: full-flop"; got != want {
		t.Errorf("error = %q, want %q", got, want)
	}
	if got, want := Exclude("gone", "").Error(), "excluded: gone"; got != want {
		t.Errorf("error = %q, want %q", got, want)
	}
}

func TestDocumentContent(t *testing.T) {
	tests := []struct {
		doc  Document
		want string
	}{
		{Document{Title: "Title", Text: "Text"}, "Title\n\nText"},
		{Document{Title: "Title"}, "Title"},
		{Document{Text: "Text"}, "Text"},
	}
	for _, tt := range tests {
		if got := tt.doc.Content(); got != tt.want {
			t.Errorf("Content = %q, want %q", got, tt.want)
		}
		sealed := tt.doc.Seal()
		if len(sealed.SHA256) != 64 || tt.doc.SHA256 != "" {
			t.Errorf("Seal of %q gives %q and leaves %q", tt.want, sealed.SHA256, tt.doc.SHA256)
		}
	}
	if a, b := (Document{Title: "a"}).Seal(), (Document{Title: "b"}).Seal(); a.SHA256 == b.SHA256 {
		t.Error("two contents share a sum")
	}
}

func TestTraceKept(t *testing.T) {
	trace := Trace{Candidates: []Candidate{{DocumentID: "a", Kept: true}, {DocumentID: "b"}, {DocumentID: "c", Kept: true}}}
	var got []string
	for _, c := range trace.Kept() {
		got = append(got, c.DocumentID)
	}
	if diff := cmp.Diff([]string{"a", "c"}, got); diff != "" {
		t.Errorf("Kept (-want +got):\n%s", diff)
	}
}

// HD-20: what looks like a line end inside a text must come back, and must not end a row. The release
// formats escape it; the record itself keeps it.
func TestHD20RecordsKeepTheirText(t *testing.T) {
	for _, text := range []string{"a\u2028b", "a\u2029b", "a\u0085b", "a\nb", "Cafe\u0301"} {
		raw, err := json.Marshal(Claim{Text: text})
		if err != nil {
			t.Fatal(err)
		}
		var back Claim
		if err := json.Unmarshal(raw, &back); err != nil {
			t.Fatal(err)
		}
		if back.Text != text {
			t.Errorf("text %q comes back as %q", text, back.Text)
		}
		if strings.ContainsAny(string(raw), "\n\r\u2028\u2029") {
			t.Errorf("record of %q holds a line end: %s", text, raw)
		}
	}
}
