package index

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"math/bits"
	"strings"

	"assay/corpus"

	"github.com/blevesearch/bleve/v2/document"
	bleveindex "github.com/blevesearch/bleve_index_api"
)

// entry prepares a document for a batch. The words are counted here, because the head of the batch
// must hold their total before bleve sees the documents.
func (x *Index) entry(d corpus.Document) (entry, error) {
	if d.ID == "" {
		return entry{}, errors.New("it has no id")
	}
	body := &analysed{document.NewTextFieldCustom(fieldBody, nil, []byte(d.Content()), bleveindex.IndexField, x.analyzer)}
	body.TextField.Analyze()
	words := body.AnalyzedLength()
	if words == 0 {
		return entry{id: d.ID}, nil
	}
	domain := Domain(d)
	rec := record{Words: uint64(words), Sum: sumOf(d.ID, d.Kind, d.URL, domain, d.Title, d.Text)}
	doc := document.NewDocument(d.ID)
	doc.AddField(body)
	doc.AddField(document.NewTextFieldCustom(fieldURL, nil, []byte(d.URL), bleveindex.StoreField, nil))
	doc.AddField(document.NewTextFieldCustom(fieldRecord, nil, rec.bytes(), bleveindex.StoreField, nil))
	// Without an analyzer a value is one term.
	doc.AddField(document.NewTextFieldCustom(fieldDomain, nil, []byte(domain), bleveindex.IndexField, nil))
	doc.AddField(document.NewTextFieldCustom(fieldKind, nil, []byte(d.Kind), bleveindex.IndexField, nil))
	return entry{id: d.ID, doc: doc, rec: rec}, nil
}

// analysed is a field whose words are made already; bleve would make them a second time.
type analysed struct{ *document.TextField }

// Analyze does nothing, see entry.
func (*analysed) Analyze() {}

// Domain is where a document counts as found: the registrable domain of its address. A post or
// comment is on Reddit even where only its row in a table is known.
func Domain(d corpus.Document) string {
	if d.Kind == corpus.KindRedditPost || d.Kind == corpus.KindRedditComment {
		return "reddit.com"
	}
	return corpus.RegistrableDomain(corpus.Host(d.URL))
}

// A record is what must be known of a document to take it out of the totals again.
type record struct {
	Words uint64
	Sum   sum
}

func (r record) bytes() []byte {
	b := binary.BigEndian.AppendUint64(nil, r.Words)
	for _, w := range r.Sum {
		b = binary.BigEndian.AppendUint64(b, w)
	}
	return b
}

func parseRecord(b []byte) (r record, ok bool) {
	if len(b) != 8*(1+len(r.Sum)) {
		return r, false
	}
	r.Words = binary.BigEndian.Uint64(b)
	for i := range r.Sum {
		r.Sum[i] = binary.BigEndian.Uint64(b[8*(1+i):])
	}
	return r, true
}

// record reads what is stored of a document; false if the index does not hold it.
func (x *Index) record(id string) (r record, had bool, err error) {
	if x.head.Docs == 0 {
		return r, false, nil
	}
	d, err := x.idx.Document(id)
	if err != nil || d == nil {
		return r, false, err
	}
	d.VisitFields(func(f bleveindex.Field) {
		if f.Name() == fieldRecord {
			r, had = parseRecord(f.Value())
		}
	})
	if !had {
		return r, false, errors.New("its record is unreadable; delete the index folder to build it again")
	}
	return r, true, nil
}

// A sum is a number modulo 2^256, most significant word first. The hashes of all documents are
// added: addition needs no order and can be undone, so a digest costs one addition per change.
type sum [4]uint64

func (s sum) plus(t sum) sum {
	var carry uint64
	for i := len(s) - 1; i >= 0; i-- {
		s[i], carry = bits.Add64(s[i], t[i], carry)
	}
	return s
}

func (s sum) minus(t sum) sum {
	var borrow uint64
	for i := len(s) - 1; i >= 0; i-- {
		s[i], borrow = bits.Sub64(s[i], t[i], borrow)
	}
	return s
}

// sumOf hashes length-prefixed parts, so that moving a character between parts changes it.
func sumOf(parts ...string) (s sum) {
	var b strings.Builder
	var n [8]byte
	for _, p := range parts {
		binary.BigEndian.PutUint64(n[:], uint64(len(p)))
		b.Write(n[:])
		b.WriteString(p)
	}
	h := sha256.Sum256([]byte(b.String()))
	for i := range s {
		s[i] = binary.BigEndian.Uint64(h[8*i:])
	}
	return s
}
