package assay

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"assay/annotate"
	analysis "assay/annotate/evidence"
	"assay/corpus"
	"assay/llm"
	"assay/output"
	"assay/planner"
	"assay/scrapers"
)

// An Entry describes one thing that is built in.
type Entry struct {
	Name      string `json:"name"`
	Version   string `json:"version,omitzero"`
	Proven    string `json:"proven,omitzero"` // captured, documented, unproven
	Reference string `json:"reference,omitzero"`
	Doc       string `json:"doc"`

	// Of sites: what their pages tell of a claim, with a star where there is no claim without it, and the
	// least time between two requests to one host.
	Fields string `json:"fields,omitzero"`
	Delay  string `json:"delay,omitzero"`

	// Of rating maps: every word that is known, in order.
	Ratings []RatingWord `json:"ratings,omitzero"`
}

// A RatingWord is what becomes of a printed rating. Without verdict and reason it waits for a person.
type RatingWord struct {
	Word     string `json:"word"` // as corpus.Slug writes it
	Verdict  string `json:"verdict,omitzero"`
	Excluded string `json:"excluded,omitzero"` // why it is no verdict on truth
	Page     string `json:"page,omitzero"`     // prints the word or explains it; "" where the table itself says what it means
}

// catalog lists the kinds of things that assay list shows.
var catalog = []struct {
	kind    string
	entries func() []Entry
}{
	{"backends", func() []Entry {
		return entries(planner.Backends, func(b planner.Backend) Entry {
			return Entry{Name: b.Name, Version: strconv.Itoa(b.Version), Proven: b.Proven, Reference: b.Reference, Doc: b.Doc}
		})
	}},
	{"categories", func() []Entry {
		return entries(corpus.Categories, func(c corpus.Category) Entry {
			return Entry{Name: string(c), Doc: "recipe.categories keeps claims of the named ones"}
		})
	}},
	{"dumps", func() []Entry {
		return entries(planner.Dumps, func(d planner.Dump) Entry {
			return Entry{Name: d.Name, Proven: d.Proven, Reference: d.Reference, Doc: d.Doc}
		})
	}},
	{"endpoint-profiles", func() []Entry {
		return entries(llm.Profiles, func(p llm.Profile) Entry {
			return Entry{Name: p.Name, Proven: p.Proven, Reference: p.Reference, Doc: p.Doc}
		})
	}},
	{"extractors", func() []Entry {
		return entries(annotate.Extractors, func(x annotate.Extractor) Entry {
			return Entry{Name: x.Name, Version: strconv.Itoa(x.Version), Doc: x.Gives + ": " + x.Doc}
		})
	}},
	{"formats", func() []Entry {
		return entries(output.Formats, func(f output.Format) Entry { return Entry{Name: f.Name, Doc: f.Doc} })
	}},
	{"imports", func() []Entry {
		return entries(ImportKinds, func(k ImportKind) Entry { return Entry{Name: k.Name, Doc: k.Doc} })
	}},
	{"judges", func() []Entry {
		return entries(annotate.Judges, func(j annotate.Judge) Entry {
			return Entry{Name: j.Name, Version: strconv.Itoa(j.Version), Doc: j.Doc}
		})
	}},
	{"profiles", func() []Entry {
		return entries(Profiles(), func(p string) Entry { return Entry{Name: p, Doc: "defaults of a corpus; assay init --profile " + p} })
	}},
	{"projections", func() []Entry {
		return entries(corpus.Projections, func(p corpus.Projection) Entry {
			return Entry{Name: p.Name, Version: strconv.Itoa(p.Version), Doc: p.Doc}
		})
	}},
	{"prompts", func() []Entry {
		known := Prompts()
		return entries(sortedKeys(known), func(name string) Entry {
			return Entry{Name: name, Version: known[name].Hash()[:12], Doc: "put prompts/" + name + ".txt into the workspace to reword it"}
		})
	}},
	{"protocols", func() []Entry {
		return entries(annotate.Protocols, func(p annotate.Protocol) Entry {
			return Entry{Name: p.Name, Version: strconv.Itoa(p.Version), Doc: p.Doc}
		})
	}},
	{"rating-maps", func() []Entry {
		return entries(scrapers.RatingMaps(), func(m corpus.RatingMap) Entry {
			return Entry{Name: m.Source, Version: strconv.Itoa(m.Version), Doc: ratingWords(m), Ratings: ratingsOf(m)}
		})
	}},
	{"sites", func() []Entry {
		return entries(scrapers.All, func(s scrapers.Site) Entry {
			return Entry{Name: s.Name, Version: strconv.Itoa(s.Version), Proven: s.Proven, Reference: s.Reference, Doc: s.Doc,
				Fields: strings.Join(s.FieldNames(), " "), Delay: s.Delay.String()}
		})
	}},
	{"stages", func() []Entry {
		return entries(Stages(), func(s StageKind) Entry { return Entry{Name: s.Kind, Doc: s.Doc} })
	}},
	{"source-classes", func() []Entry {
		return entries(analysis.SourceClasses, func(c analysis.SourceClass) Entry {
			return Entry{Name: c.Name, Doc: fmt.Sprintf("credibility %d: %s", c.Credibility, c.Doc)}
		})
	}},
	{"tables", func() []Entry {
		return entries(scrapers.Tables, func(t scrapers.Table) Entry {
			return Entry{Name: t.Name, Version: strconv.Itoa(t.Version), Proven: t.Proven, Reference: t.Reference, Doc: t.Doc}
		})
	}},
	{"tools", func() []Entry {
		return entries(planner.Tools, func(t planner.Tool) Entry {
			return Entry{Name: t.Name, Version: strconv.Itoa(t.Version), Proven: t.Proven, Reference: t.Reference, Doc: t.Doc}
		})
	}},
}

// ratingsOf lists what a map says of each word.
func ratingsOf(m corpus.RatingMap) []RatingWord {
	var out []RatingWord
	for word, r := range m.Ratings {
		out = append(out, RatingWord{Word: word, Verdict: string(r.Verdict), Excluded: r.Exclude, Page: r.Evidence})
	}
	for word, page := range m.Queued {
		out = append(out, RatingWord{Word: word, Page: page})
	}
	slices.SortFunc(out, func(a, b RatingWord) int { return cmp.Compare(a.Word, b.Word) })
	return out
}

// ratingWords names the words that a map knows, with the verdict where that is called otherwise.
func ratingWords(m corpus.RatingMap) string {
	var parts []string
	if len(m.Ratings) > 0 {
		var words []string
		for _, w := range sortedKeys(m.Ratings) {
			switch r := m.Ratings[w]; {
			case r.Exclude != "":
				words = append(words, w+" (left out: "+r.Exclude+")")
			case w != string(r.Verdict):
				words = append(words, w+" ("+string(r.Verdict)+")")
			default:
				words = append(words, w)
			}
		}
		parts = append(parts, strings.Join(words, ", "))
	}
	if len(m.Queued) > 0 {
		parts = append(parts, "for a person: "+strings.Join(sortedKeys(m.Queued), ", "))
	}
	if parts == nil {
		return "no word is mapped; each waits for a person"
	}
	return strings.Join(parts, "; ")
}

func entries[T any](list []T, entry func(T) Entry) []Entry {
	out := make([]Entry, len(list))
	for i, v := range list {
		out[i] = entry(v)
	}
	return out
}

// CatalogKinds names what Catalog lists.
func CatalogKinds() []string {
	out := make([]string, len(catalog))
	for i, c := range catalog {
		out[i] = c.kind
	}
	return out
}

// Catalog lists what is built in of one kind.
func Catalog(kind string) ([]Entry, error) {
	for _, c := range catalog {
		if c.kind == kind {
			return c.entries(), nil
		}
	}
	return nil, fmt.Errorf("list: kind %q is unknown; known are %s", kind, strings.Join(CatalogKinds(), ", "))
}
