package assay

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay/corpus"
)

func TestStratified(t *testing.T) {
	var all []stratum
	for i := range 1000 {
		of := "unrelated true"
		switch {
		case i < 3:
			of = "misleading false"
		case i < 300:
			of = "supporting false"
		}
		all = append(all, stratum{fmt.Sprintf("p_%04d", i), of})
	}
	counts := func(ids []string) map[string]int {
		n := map[string]int{}
		for _, s := range all {
			if slices.Contains(ids, s.id) {
				n[s.of]++
			}
		}
		return n
	}
	sample := stratified(all, 100, 1)
	if diff := cmp.Diff(map[string]int{"misleading false": 1, "supporting false": 29, "unrelated true": 70}, counts(sample)); diff != "" {
		t.Errorf("100 of 1000 (-want +got):\n%s", diff)
	}
	slices.Reverse(all)
	if diff := cmp.Diff(sample, stratified(all, 100, 1)); diff != "" {
		t.Errorf("the order of pairs changes the sample:\n%s", diff)
	}
	if slices.Equal(sample, stratified(all, 100, 2)) {
		t.Error("another seed draws the same sample")
	}
	// A corpus that grows by a tenth keeps most of what was drawn.
	grown := slices.Clone(all)
	for i := range 100 {
		grown = append(grown, stratum{fmt.Sprintf("p_9%03d", i), "unrelated true"})
	}
	kept := 0
	for _, id := range stratified(grown, 100, 1) {
		if slices.Contains(sample, id) {
			kept++
		}
	}
	if kept < 80 {
		t.Errorf("of 100 pairs %d stay when the corpus grows by a tenth", kept)
	}
	for n, want := range map[int]int{0: 1000, 5000: 1000, 1: 1} {
		if got := len(stratified(all, n, 1)); got != want {
			t.Errorf("a sample of %d has %d pairs, want %d", n, got, want)
		}
	}
	if got := stratified(nil, 5, 1); len(got) != 0 {
		t.Errorf("a sample of nothing = %v", got)
	}
}

func TestShuffle(t *testing.T) {
	deck := func(seed uint64) *shuffle {
		s := newShuffle(seed)
		for c := range 30 {
			for d := range 3 {
				s.add(fmt.Sprintf("p%02d%d", c, d), fmt.Sprintf("c%02d", c), fmt.Sprintf("text %d", c), fmt.Sprintf("d%02d%d", c, d))
			}
		}
		s.add("p998", "c98", "text 1", "d980")  // the wording of c01 under another id, with a document of its own
		s.add("p999", "c99", "text 99", "d000") // a document that two claims share
		return s
	}
	for _, n := range []int{10, 32, 100} {
		s := deck(1)
		got := s.deal(n)
		if len(got) != n || !slices.Equal(got, deck(1).deal(n)) {
			t.Errorf("%d dealt of %d, or not the same again", len(got), n)
		}
		twice, claims := map[hand]bool{}, map[string]int{}
		for _, h := range got {
			own := h.claimPair[:3] == h.documentPair[:3]
			// By the first pairs that have them: c01 is p010, d980 is p998.
			own = own || h.claimPair == "p010" && h.documentPair == "p998" || h.claimPair == "p998" && strings.HasPrefix(h.documentPair, "p01")
			own = own || h.claimPair == "p999" && h.documentPair == "p000"
			if own || twice[h] {
				t.Errorf("dealt %v: a document of the claim itself, or the same again", h)
			}
			twice[h] = true
			claims[h.claimPair]++
		}
		if most := (n + 31) / 32; len(claims) != min(n, 32) || slices.Max(slices.Collect(mapValues(claims))) != most {
			t.Errorf("%d cards for %d claims, at most %d each: %v", n, len(claims), most, claims)
		}
	}
	if slices.Equal(deck(1).deal(10), deck(2).deal(10)) {
		t.Error("another seed deals the same cards")
	}
	lonely := newShuffle(1)
	lonely.add("p1", "c1", "text", "d1")
	if got := lonely.deal(5); len(got) != 0 {
		t.Errorf("a claim alone got %v", got)
	}
}

func mapValues(m map[string]int) func(func(int) bool) {
	return func(yield func(int) bool) {
		for _, v := range m {
			if !yield(v) {
				return
			}
		}
	}
}

func TestConsensus(t *testing.T) {
	for _, c := range []struct{ rule, labels, want string }{
		{ConsensusMajority, "supporting supporting misleading", "supporting"},
		{ConsensusUnanimous, "supporting supporting misleading", ""},
		{ConsensusUnanimous, "supporting supporting", "supporting"},
		{ConsensusMajority, "supporting misleading", ""},
		{ConsensusMajority, "supporting - supporting -", ""}, // no more than half
		{ConsensusMajority, "- supporting supporting", "supporting"},
		{ConsensusUnanimous, "- supporting supporting", ""},
		{ConsensusMajority, "- - -", ""},
	} {
		var list []corpus.Annotation
		for _, l := range strings.Fields(c.labels) {
			list = append(list, corpus.Annotation{Label: corpus.StanceLabel(strings.Trim(l, "-"))})
		}
		if got := consensus(c.rule, list); string(got) != c.want {
			t.Errorf("%s of %s = %q, want %q", c.rule, c.labels, got, c.want)
		}
	}
}
