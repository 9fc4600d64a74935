package assay

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay/corpus"
)

// What a claim is left out for decides what waits for a person and what a hint says; a row tells its speaker by name.
func TestLeftClaims(t *testing.T) {
	f := newFolder(t, t.TempDir())
	f.with(func(w *Workspace) error {
		w.Config.Recipe.Speakers, w.Config.Recipe.Projection = []string{"jose-nunez"}, "three_way"
		var left omissions
		k := &walk{w: w, visit: visitor{withheld: left.add}}
		unmapped := []string{corpus.FlagUnmapped}
		for i, x := range []struct {
			row   string
			claim corpus.Claim
		}{
			{"", corpus.Claim{Source: "politifact", RatingRaw: "hm", Flags: unmapped}},
			{"", corpus.Claim{Source: "politifact", RatingRaw: "judged in words", Flags: []string{corpus.FlagHeadline, corpus.FlagUnmapped}}},
			{"mapped/1", corpus.Claim{Verdict6: corpus.True, Speaker: "Ida Quist"}},
			{"mapped/2", corpus.Claim{Verdict6: corpus.True, Speaker: "Dr. Ida  QUIST"}},
			{"mapped/3", corpus.Claim{Verdict6: corpus.True, Speaker: "Ida Quist"}},
		} {
			x.claim.ID = corpus.ClaimID(string(rune('a'+i)), "", "", "")
			if err := k.claim(t.Context(), corpus.Ref{Row: x.row}, x.row, x.claim); err != nil {
				return err
			}
		}
		for name, x := range map[string]struct {
			claim    corpus.Claim
			imported bool
			want     string
		}{
			"a row's name":            {corpus.Claim{Speaker: "José  Núñez"}, true, ""},
			"a row without a speaker": {corpus.Claim{}, true, ""},
			"a row with a slug":       {corpus.Claim{Speaker: "José Núñez", SpeakerSlug: "somebody"}, true, leftSpeaker},
			"a page's name":           {corpus.Claim{Speaker: "Ida Quist"}, false, ""},
		} {
			if got := w.Config.Recipe.leavesOut(x.claim, x.imported); got != x.want {
				t.Errorf("%s is left out for %q, want %q", name, got, x.want)
			}
		}
		doc := []sourced{{doc: corpus.Document{ID: "d_1"}}, {doc: corpus.Document{ID: "d_2"}}}
		for id, docs := range map[string][]sourced{"c_1": nil, "c_2": nil, "c_3": doc} {
			if err := k.undecidable(corpus.Claim{ID: id}, docs); err != nil {
				return err
			}
		}
		want := map[string]int{
			"claim: " + leftUnmapped: 1,
			"claim: the review prints no claim, and a headline may tell the opposite of what was claimed": 1,
			"claim: " + leftSpeaker:                       3,
			"pair: the verdict is neither true nor false": 2,
			"labels of a claim: its verdict is neither true nor false, and no document was kept for it": 2,
		}
		if diff := cmp.Diff(want, left.counts()); diff != "" {
			t.Errorf("left out (-want +got):\n%s", diff)
		}
		if list, err := w.listRatings(ListQuery{}); err != nil || len(list) != 1 || list[0].Key != "politifact/hm" {
			t.Errorf("ratings that wait: %+v, %v", list, err)
		}
		hint := []string{"no claim is of recipe.speakers, and 3 claims were left out for that; most are by ida-quist (2), dr-ida-quist (1); speakers: [] takes everybody"}
		if diff := cmp.Diff(hint, k.hints()); diff != "" {
			t.Errorf("hints (-want +got):\n%s", diff)
		}
		k.met.Add(1)
		if got := k.hints(); got != nil {
			t.Errorf("with a claim of the speakers it says %q", got)
		}
		return nil
	})
}
