// Package similar finds texts that say the same in nearly the same words: near-duplicate documents,
// the same claim as several sources word it, and documents of one origin.
//
// A text is a set of shingles, hashed runs of words. Sets are compared by their Jaccard similarity, the
// share of the shingles of either that both have. MinHash (Broder 1997) finds the pairs worth comparing:
// for each of 64 hash functions the least value over a set agrees between two sets with a probability that
// is their similarity. Locality-sensitive hashing (Leskovec, Rajaraman and Ullman, Mining of Massive
// Datasets, 3.4) cuts the 64 values into bands of rows; a pair of similarity j meets in one of b bands of
// r rows with probability 1-(1-j^r)^b, see Scheme.Recall. Every pair that meets is then compared exactly,
// so that no two texts below a scheme's similarity are ever linked.
//
// Clusters are the connected components of the links and are named by their smallest id. They are a
// function of the set of texts: hash functions are fixed and the order of arrival is of no matter.
//
// The package keeps no text. A Finder holds about 150 bytes beside the id of each; what it needs again
// it asks of its caller. It stores nothing and starts no goroutine.
package similar

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"sort"
)

// permutations is the number of hash functions.
const permutations = 64

// A Scheme says which texts are alike.
type Scheme struct {
	Name    string
	Version int     // another number may cluster the same texts otherwise
	Jaccard float64 // least similarity of a link
	Bands   int     // of Rows rows each; at most 64 rows in all
	Rows    int
	Widths  []int // of the shingles, in words

	// Agree decides about two texts that are similar enough; nil agrees with all. It must not depend on
	// the order of its arguments.
	Agree func(a, b string) bool
}

// Documents finds texts that were copied, cut or lightly edited. Random texts share next to no run of
// three words, which keeps a million of them apart.
var Documents = Scheme{Name: "documents", Version: 1, Jaccard: 0.7, Bands: 16, Rows: 4, Widths: []int{3}}

// Claims finds one claim in several wordings. A claim is a sentence: one changed word of ten costs a third
// of its runs of three words, so single words and pairs are compared, and one word can turn the claim into
// another, which SameStatement looks after.
var Claims = Scheme{Name: "claims", Version: 1, Jaccard: 0.6, Bands: 21, Rows: 3, Widths: []int{1, 2}, Agree: SameStatement}

// Recall is the probability that two texts of a similarity are compared at all: 1-(1-j^Rows)^Bands.
func (s Scheme) Recall(jaccard float64) float64 {
	return 1 - math.Pow(1-math.Pow(jaccard, float64(s.Rows)), float64(s.Bands))
}

// Similarity is the Jaccard similarity of two texts, from 0 to 1. A text without words is similar to none.
func (s Scheme) Similarity(a, b string) float64 {
	return jaccard(s.set(a), s.set(b))
}

// A Link is a pair of texts that were found to be alike; A is less than B.
type Link struct {
	A       string  `json:"a"`
	B       string  `json:"b"`
	Jaccard float64 `json:"jaccard,omitzero"`
	Source  string  `json:"source,omitzero"` // identity address of what both cite, where that is the match
}

// A Cluster is two texts or more that links connect.
type Cluster struct {
	ID      string   `json:"id"`      // the smallest of Members
	Members []string `json:"members"` // sorted
	Links   []Link   `json:"links"`   // as many as connect the members, not every one that holds
}

// Result is what a Finder found.
type Result struct {
	Clusters []Cluster `json:"clusters"` // by id
	Compared int       `json:"compared"` // pairs compared exactly

	// Uncompared counts pairs that met but were left, because more than crowd texts met in one place: the
	// recall of a scheme does not hold for these. It is 0 unless somebody made so many unlike texts meet.
	Uncompared int `json:"uncompared,omitzero"`
}

// crowd bounds with how many of the texts before it in its place a text is compared.
const crowd = 1000

// A Finder collects texts and then finds the clusters among them. It is for one goroutine.
type Finder struct {
	scheme Scheme
	ids    []string
	blocks []block
	cites  []cite
	perms  [permutations]perm
	words  []uint64 // of the text in work
	set    []uint64
}

// A block holds what is known of blockTexts texts: a slice that grows by copying would take twice the
// memory for a moment.
type block struct {
	bands    []uint32             // hashes, band after band, so that one band is read in a row
	sketches [][permutations]byte // low bits of the least values, to leave hopeless pairs uncompared
	empty    []bool               // no shingle
}

const (
	blockBits  = 8
	blockTexts = 1 << blockBits
)

// perm is one hash function, x -> (a*x + b) mod 2^64 / 2^32, with odd a (Dietzfelbinger et al. 1997).
type perm struct{ a, b uint64 }

// NewFinder returns an empty Finder.
func NewFinder(s Scheme) *Finder {
	f := &Finder{scheme: s}
	seed := uint64(0x5eed)
	for i := range f.perms {
		f.perms[i] = perm{splitmix(&seed) | 1, splitmix(&seed)}
	}
	return f
}

// splitmix is the generator of Steele, Lea and Flood (2014): fixed for ever, unlike math/rand's default.
func splitmix(state *uint64) uint64 {
	*state += 0x9e3779b97f4a7c15
	return mix(*state)
}

// mix spreads a number over all 64 bits.
func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// Len is the number of texts added.
func (f *Finder) Len() int { return len(f.ids) }

// Add takes a text in. An id must not come twice; Clusters says so if one does.
func (f *Finder) Add(id, text string) {
	f.words = appendWords(f.words[:0], text)
	f.set = f.scheme.appendShingles(f.set[:0], f.words)
	least := f.signature(f.set)
	n := len(f.ids) % blockTexts
	if n == 0 {
		f.blocks = append(f.blocks, block{
			bands: make([]uint32, blockTexts*f.scheme.Bands), sketches: make([][permutations]byte, blockTexts), empty: make([]bool, blockTexts),
		})
	}
	at := &f.blocks[len(f.blocks)-1]
	f.ids, at.empty[n] = append(f.ids, id), len(f.set) == 0
	for i, v := range least {
		at.sketches[n][i] = byte(v)
	}
	for b := range f.scheme.Bands {
		h := uint64(b)
		for _, v := range least[b*f.scheme.Rows : (b+1)*f.scheme.Rows] {
			h = (h ^ uint64(v)) * 0x9e3779b97f4a7c15
			h ^= h >> 29
		}
		at.bands[b*blockTexts+n] = uint32(h >> 32)
	}
}

// signature is the least value of each hash function over a set.
func (f *Finder) signature(set []uint64) (least [permutations]uint32) {
	for i := range least {
		least[i] = math.MaxUint32
	}
	for _, x := range set {
		for i := range least {
			p := &f.perms[i]
			least[i] = min(least[i], uint32((p.a*x+p.b)>>32))
		}
	}
	return least
}

// Clusters compares what meets and returns the clusters. Text gives a text again by its id, as it was added;
// its error ends the search.
func (f *Finder) Clusters(text func(id string) (string, error)) (Result, error) {
	s := &search{Finder: f, text: text, order: f.byID(), parent: make([]uint32, len(f.ids))}
	rankOf := make([]uint32, len(f.ids))
	for i := range s.parent {
		s.parent[i], rankOf[s.order[i]] = uint32(i), uint32(i)
		if i > 0 && f.ids[s.order[i]] == f.ids[s.order[i-1]] {
			return Result{}, fmt.Errorf("find similar texts: the id %s came twice", f.ids[s.order[i]])
		}
	}
	s.linkCiting(rankOf)
	places := make([]uint64, 0, len(f.ids)) // hash of the band, then rank of the text by id
	spare := make([]uint64, len(f.ids))
	for b := range f.scheme.Bands {
		places = places[:0]
		for i, rank := range rankOf {
			if at := &f.blocks[i>>blockBits]; !at.empty[i%blockTexts] {
				places = append(places, uint64(at.bands[b*blockTexts+i%blockTexts])<<32|uint64(rank))
			}
		}
		places, spare = sortByHash(places, spare[:len(places)])
		for start := 0; start < len(places); {
			end := start + 1
			for end < len(places) && places[end]>>32 == places[start]>>32 {
				end++
			}
			if end-start > 1 {
				slices.Sort(places[start:end])
				if err := s.meet(b, places[start:end]); err != nil {
					return Result{}, err
				}
			}
			start = end
		}
	}
	return s.result(), nil
}

// byID lists the texts in the order of their ids.
func (f *Finder) byID() []uint32 {
	type key struct {
		head uint64 // of the id; most comparisons need no more
		text uint32
	}
	keys := make([]key, len(f.ids))
	for i, id := range f.ids {
		var head [8]byte
		copy(head[:], id)
		keys[i] = key{binary.BigEndian.Uint64(head[:]), uint32(i)}
	}
	slices.SortFunc(keys, func(a, b key) int {
		if a.head != b.head {
			return cmp.Compare(a.head, b.head)
		}
		return cmp.Compare(f.ids[a.text], f.ids[b.text])
	})
	order := make([]uint32, len(keys))
	for i, k := range keys {
		order[i] = k.text
	}
	return order
}

// sortByHash sorts by the upper half: three passes of a radix sort, which take a million places a fifth of
// the time of a comparing one. It returns both slices, the sorted one first.
func sortByHash(places, spare []uint64) (sorted, rest []uint64) {
	const digit = 11
	for shift := 32; shift < 64; shift += digit {
		var at [1 << digit]int
		for _, p := range places {
			at[p>>shift&(1<<digit-1)]++
		}
		sum := 0
		for i, n := range at {
			at[i], sum = sum, sum+n
		}
		for _, p := range places {
			d := p >> shift & (1<<digit - 1)
			spare[at[d]] = p
			at[d]++
		}
		places, spare = spare, places
	}
	return places, spare
}

func (f *Finder) band(i uint32, b int) uint32 {
	return f.blocks[i>>blockBits].bands[b*blockTexts+int(i%blockTexts)]
}

// search is the state of one call of Clusters. Texts go by their rank in the order of ids.
type search struct {
	*Finder
	text     func(id string) (string, error)
	order    []uint32 // rank -> place in Finder
	parent   []uint32 // union-find; the parent of a root is itself
	links    []rankLink
	near     [2]known // texts asked for last
	compared int
	left     int
}

type rankLink struct {
	a, b    uint32
	jaccard float64
	source  string
}

// known is a text that was asked for; its buffers are used again.
type known struct {
	rank       uint32
	read       bool
	text       string
	words, set []uint64
}

// meet compares the texts of one place with those before them. Those that are connected already need no
// comparison, so that a thousand copies take a thousand comparisons and not half a million.
func (s *search) meet(band int, places []uint64) error {
	if len(places) == 2 { // as most are
		a, b := uint32(places[0]), uint32(places[1])
		if s.root(a) == s.root(b) {
			return nil
		}
		_, err := s.alike(band, a, b)
		return err
	}
	var groups [][]uint32 // of texts that are connected
	for n, p := range places {
		rank := uint32(p)
		looked, into := 0, -1
		for g := 0; g < len(groups); g++ {
			joins := s.root(groups[g][0]) == s.root(rank)
			for i := len(groups[g]) - 1; i >= 0 && !joins; i-- {
				if looked == crowd {
					break
				}
				looked++
				var err error
				if joins, err = s.alike(band, groups[g][i], rank); err != nil {
					return err
				}
			}
			if !joins {
				continue
			}
			if into < 0 {
				into = g
				continue
			}
			groups[into] = append(groups[into], groups[g]...)
			groups = slices.Delete(groups, g, g+1)
			g--
		}
		if looked == crowd && n > crowd {
			s.left += n - crowd
		}
		if into < 0 {
			groups = append(groups, []uint32{rank})
		} else {
			groups[into] = append(groups[into], rank)
		}
	}
	return nil
}

// alike compares two texts and links them if they are alike.
func (s *search) alike(band int, a, b uint32) (bool, error) {
	i, j := s.order[a], s.order[b]
	for earlier := range band {
		if s.band(i, earlier) == s.band(j, earlier) {
			return false, nil // compared then
		}
	}
	if !s.hopeful(i, j) {
		return false, nil
	}
	s.compared++
	if s.near[0].rank != b || !s.near[0].read { // b is compared with one after the other
		s.near[0], s.near[1] = s.near[1], s.near[0]
	}
	if err := s.read(&s.near[0], b); err != nil {
		return false, err
	}
	if err := s.read(&s.near[1], a); err != nil {
		return false, err
	}
	one, other := &s.near[1], &s.near[0]
	similarity := jaccard(one.set, other.set)
	if similarity < s.scheme.Jaccard || s.scheme.Agree != nil && !s.scheme.Agree(one.text, other.text) {
		return false, nil
	}
	s.link(a, b, rankLink{jaccard: similarity})
	return true, nil
}

// link connects two texts. The smaller root stays one, so that the root of a cluster is its smallest id.
func (s *search) link(a, b uint32, l rankLink) {
	one, other := s.root(a), s.root(b)
	if one == other {
		return
	}
	s.parent[max(one, other)] = min(one, other)
	l.a, l.b = min(a, b), max(a, b)
	s.links = append(s.links, l)
}

// hopeful reports whether two sketches agree in so many places that the similarity may be enough: within
// four standard deviations, which leaves out one in thirty thousand of those that just are.
func (s *search) hopeful(i, j uint32) bool {
	same := 0
	other := &s.blocks[j>>blockBits].sketches[j%blockTexts]
	for k, v := range s.blocks[i>>blockBits].sketches[i%blockTexts] {
		if v == other[k] {
			same++
		}
	}
	j0 := s.scheme.Jaccard
	return float64(same) >= permutations*j0-4*math.Sqrt(permutations*j0*(1-j0))
}

// read asks for a text, unless it is the one that k holds.
func (s *search) read(k *known, rank uint32) error {
	if k.read && k.rank == rank {
		return nil
	}
	id := s.ids[s.order[rank]]
	text, err := s.text(id)
	if err != nil {
		return fmt.Errorf("find similar texts: read %s: %w", id, err)
	}
	k.rank, k.read, k.text = rank, true, text
	k.words = appendWords(k.words[:0], text)
	k.set = s.scheme.appendShingles(k.set[:0], k.words)
	slices.Sort(k.set)
	k.set = slices.Compact(k.set)
	return nil
}

func (s *search) root(i uint32) uint32 {
	for s.parent[i] != i {
		s.parent[i] = s.parent[s.parent[i]]
		i = s.parent[i]
	}
	return i
}

func (s *search) result() Result {
	out := Result{Clusters: []Cluster{}, Compared: s.compared, Uncompared: s.left}
	at := map[uint32]int{}
	for rank := range s.parent {
		root := s.root(uint32(rank))
		if root == uint32(rank) {
			continue
		}
		i, ok := at[root]
		if !ok {
			i = len(out.Clusters)
			at[root] = i
			id := s.ids[s.order[root]]
			out.Clusters = append(out.Clusters, Cluster{ID: id, Members: []string{id}})
		}
		out.Clusters[i].Members = append(out.Clusters[i].Members, s.ids[s.order[rank]])
	}
	for _, l := range s.links {
		c := &out.Clusters[at[s.root(l.a)]]
		c.Links = append(c.Links, Link{A: s.ids[s.order[l.a]], B: s.ids[s.order[l.b]], Jaccard: l.jaccard, Source: l.source})
	}
	for _, c := range out.Clusters {
		sortLinks(c.Links)
	}
	sort.Slice(out.Clusters, func(i, j int) bool { return out.Clusters[i].ID < out.Clusters[j].ID })
	return out
}

func sortLinks(links []Link) {
	slices.SortFunc(links, func(a, b Link) int {
		return cmp.Or(cmp.Compare(a.A, b.A), cmp.Compare(a.B, b.B), cmp.Compare(a.Source, b.Source))
	})
}

// set is a text's shingles, sorted and without repeats.
func (s Scheme) set(text string) []uint64 {
	set := s.appendShingles(nil, appendWords(nil, text))
	slices.Sort(set)
	return slices.Compact(set)
}

// appendShingles adds the runs of hashed words. A text that is shorter than a run is one run.
func (s Scheme) appendShingles(set, words []uint64) []uint64 {
	for _, width := range s.Widths {
		if len(words) == 0 || width > len(words) && len(s.Widths) > 1 {
			continue
		}
		width = min(width, len(words))
		for i := 0; i+width <= len(words); i++ {
			h := uint64(width)
			for _, w := range words[i : i+width] {
				h = bits.RotateLeft64(h, 23) ^ w
				h *= 0x9e3779b97f4a7c15
			}
			set = append(set, mix(h))
		}
	}
	return set
}

// jaccard compares two sorted sets.
func jaccard(a, b []uint64) float64 {
	if len(a) == 0 || len(b) == 0 {
		return 0
	}
	both := 0
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case a[i] < b[j]:
			i++
		case a[i] > b[j]:
			j++
		default:
			both, i, j = both+1, i+1, j+1
		}
	}
	return float64(both) / float64(len(a)+len(b)-both)
}
