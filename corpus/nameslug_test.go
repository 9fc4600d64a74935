package corpus

import "testing"

func TestNameSlug(t *testing.T) {
	for name, want := range map[string]string{
		"Joe Biden": "joe-biden", " José  NÚÑEZ ": "jose-nunez", "George W. Bush": "george-w-bush", "Beto O’Rourke": "beto-orourke",
		"Ashley-Jones, M.P.": "ashley-jones-m-p", "Ещё Один": "еще-один", "…": "", "": "",
	} {
		if got := NameSlug(name); got != want {
			t.Errorf("NameSlug(%q) = %q, want %q", name, got, want)
		}
	}
}
