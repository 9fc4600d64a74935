package kv

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestKeyAndParts(t *testing.T) {
	for _, parts := range [][]string{
		{"page"},
		{"page", "https://a.example/x?y=1"},
		{""},
		{"", ""},
		{"a", "", "b"},
		{"\x00", "\x01", "\x02", "\xff"},
		{"\x01\x00", "\x00\x01\x01\x02"},
		{"žluť", "日本"},
	} {
		key := Key(parts...)
		if diff := cmp.Diff(parts, Parts(key)); diff != "" {
			t.Errorf("Parts(%q) (-want +got):\n%s", key, diff)
		}
		if Prefix(parts...) != key {
			t.Errorf("Prefix(%q) = %q, want %q", parts, Prefix(parts...), key)
		}
	}
	if Key() != "" || Parts("") != nil {
		t.Errorf("Key() = %q and Parts(\"\") = %q, want nothing", Key(), Parts(""))
	}
	for _, bad := range []string{"a", "a\x00b", "\x01", "\x01\x00", "\x01\x03\x00", "a\x00\x01"} {
		if got := Parts(bad); got != nil {
			t.Errorf("Parts(%q) = %q, want nil", bad, got)
		}
	}
}

func TestKeyKeepsOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	// A small alphabet around the two special bytes makes near misses likely.
	alphabet := []byte{0, 0, 1, 1, 2, 3, 'a', 0xff}
	tuple := func() []string {
		parts := make([]string, 1+rng.IntN(3))
		for i := range parts {
			b := make([]byte, rng.IntN(4))
			for j := range b {
				b[j] = alphabet[rng.IntN(len(alphabet))]
			}
			parts[i] = string(b)
		}
		return parts
	}
	for range 200_000 {
		a, b := tuple(), tuple()
		ka, kb := Key(a...), Key(b...)
		if got, want := strings.Compare(ka, kb), slices.Compare(a, b); got != want {
			t.Fatalf("Compare(Key(%q), Key(%q)) = %d, tuples compare as %d", a, b, got, want)
		}
		if got, want := strings.HasPrefix(kb, Prefix(a...)), len(a) <= len(b) && slices.Equal(a, b[:min(len(a), len(b))]); got != want {
			t.Fatalf("Key(%q) has Prefix(%q) = %t, want %t", b, a, got, want)
		}
	}
}
