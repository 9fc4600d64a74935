package planner

import (
	"cmp"
	"hash/fnv"
	"math"
	"slices"
	"sort"

	"assay/corpus"
	"assay/llm"
)

// A Snapshot names what was remembered at one time: everything that runs up to a number committed. Number
// 0 is the memory of nothing, and has no id.
type Snapshot struct {
	Number uint64 `json:"number"`
	ID     string `json:"id"` // of the content, the same wherever the same was remembered
}

// A Recollection is one document that a finished search kept for a claim. Of the words that the document
// was kept for it has the hashes alone: a document may be withdrawn, and what was remembered stays.
type Recollection struct {
	DocumentID string   `json:"document_id"`
	URL        string   `json:"url,omitzero"`
	Words      []uint32 `json:"words"`
}

// Recollect is what there is to remember of a finished search: the documents that bear on the claim.
func Recollect(t corpus.Trace) []Recollection {
	statements := map[string]string{}
	for _, s := range t.Subclaims {
		statements[s.ID] = s.Text
	}
	text := map[string]string{}
	for _, e := range t.Evidence {
		if e.Relevance > 0 {
			text[e.DocumentID] += statements[e.SubclaimID] + "\n\n" + e.Quote + "\n\n"
		}
	}
	var out []Recollection
	for _, c := range t.Kept() {
		if words := text[c.DocumentID]; words != "" {
			out = append(out, Recollection{c.DocumentID, c.URL, hashWords(words)})
		}
	}
	return out
}

// hashWords hashes the words of a text that say something by themselves, once each, in order of the hash.
func hashWords(text string) []uint32 {
	var out []uint32
	for _, s := range llm.Sentences(text) {
		for _, w := range s.Words {
			if !w.Mark && (!w.Stop || w.Number) {
				h := fnv.New32a()
				h.Write([]byte(w.Lower))
				out = append(out, h.Sum32())
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// A Memory holds what earlier runs committed, for searching; a few hundred bytes for each document. The
// nil memory remembers nothing. It may be used from many goroutines.
type Memory struct {
	documents []Recollection     // without their words, the earliest committed first
	length    []int              // how many words each has
	ends      map[uint64]int     // how many documents a snapshot has
	places    map[uint32][]int32 // of documents, by word, ascending
	last      uint64
}

// NewMemory makes a memory. Commits must be added in the order of their numbers, without a gap, and what a
// commit holds always in the same order.
func NewMemory() *Memory { return &Memory{ends: map[uint64]int{}, places: map[uint32][]int32{}} }

// Add commits documents under a number.
func (m *Memory) Add(number uint64, list []Recollection) {
	for _, r := range list {
		for _, w := range r.Words {
			m.places[w] = append(m.places[w], int32(len(m.documents)))
		}
		m.length = append(m.length, len(r.Words))
		m.documents = append(m.documents, Recollection{DocumentID: r.DocumentID, URL: r.URL})
	}
	m.ends[number], m.last = len(m.documents), max(m.last, number)
}

// Len is how many documents a snapshot remembers, one that several claims kept counted for each.
func (m *Memory) Len(snapshot uint64) int {
	if m == nil {
		return 0
	}
	return m.ends[min(snapshot, m.last)]
}

// Search returns the documents of a snapshot whose words are most like a query's, best first. Rare words
// count more (their inverse document frequency within the snapshot), long lists of words less. A document
// that shares fewer than half of the query's words, or only one of several, is about something else.
func (m *Memory) Search(snapshot uint64, query string, k int) []Result {
	end := int32(m.Len(snapshot))
	words := hashWords(query)
	if end == 0 || len(words) == 0 {
		return nil
	}
	score, shared := map[int32]float64{}, map[int32]int{}
	for _, w := range words {
		places := m.places[w]
		n, _ := slices.BinarySearch(places, end)
		weight := math.Log(1 + float64(end)/float64(max(n, 1)))
		for _, at := range places[:n] {
			score[at] += weight
			shared[at]++
		}
	}
	var found []int32
	for at, n := range shared {
		if 2*n >= len(words) && n >= min(2, len(words)) {
			score[at] /= math.Sqrt(float64(m.length[at]))
			found = append(found, at)
		}
	}
	sort.Slice(found, func(i, j int) bool {
		return cmp.Or(cmp.Compare(score[found[j]], score[found[i]]), cmp.Compare(found[i], found[j])) < 0
	})
	var out []Result
	known := map[string]bool{}
	for _, at := range found {
		d := m.documents[at]
		if len(out) < k && !known[d.DocumentID] {
			known[d.DocumentID] = true
			out = append(out, Result{DocumentID: d.DocumentID, URL: d.URL})
		}
	}
	return out
}
