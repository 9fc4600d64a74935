package similar

import (
	"cmp"
	"slices"

	"assay/corpus"
)

// Documents are independent evidence unless they have one origin: the text is nearly the same, or all they
// rest on is the same source. A Finder that was given both finds both; each Link names the match.

// AddCiting is Add for a text that rests on one source, see SoleSource; an empty source is none.
func (f *Finder) AddCiting(id, text, source string) {
	if source != "" {
		f.cites = append(f.cites, cite{source, uint32(len(f.ids))})
	}
	f.Add(id, text)
}

type cite struct {
	source string
	text   uint32
}

// SoleSource returns the identity address of the source that a document rests on, out of the addresses that
// it cites: where a link post leads, or the only other page that a text links to. A document that cites several
// rests on none alone, and a home page is nobody's source.
func SoleSource(own string, cited ...string) string {
	own, sole := corpus.IdentityURL(own), ""
	for _, address := range cited {
		id := corpus.IdentityURL(address)
		switch {
		case id == own || id == sole || corpus.Host(id) == "" || corpus.IsHome(id):
		case sole != "":
			return ""
		default:
			sole = id
		}
	}
	return sole
}

// linkCiting links the texts of each source, one to the next.
func (s *search) linkCiting(rankOf []uint32) {
	slices.SortFunc(s.cites, func(a, b cite) int {
		return cmp.Or(cmp.Compare(a.source, b.source), cmp.Compare(rankOf[a.text], rankOf[b.text]))
	})
	for i := 1; i < len(s.cites); i++ {
		if one, other := s.cites[i-1], s.cites[i]; one.source == other.source {
			s.link(rankOf[one.text], rankOf[other.text], rankLink{source: one.source})
		}
	}
}
