package planner

import (
	"encoding/json"
	"fmt"
	"io"
	"iter"
)

// redditArray reads posts as people's own scripts keep them: one JSON array of flat objects, often
// without permalink and with the text under another name.
var redditArray = Dump{
	Name:      "reddit_array",
	Doc:       "one JSON array of posts or comments",
	Proven:    "captured",
	Reference: "500 top posts of r/politics, 2023 to 2024",
	Match: func(_ string, head []byte) bool {
		o, ok := outlineOf(head)
		return ok && o.array && (o.empty || o.values["data"] != '{' && (o.values["id"] != 0 || o.values["name"] != 0))
	},
	Read: func(name string, r io.Reader) iter.Seq2[Entry, error] {
		return func(yield func(Entry, error) bool) {
			rec := newRecords(name, r, yield)
			t, err := rec.dec.Token()
			if err == nil && t != json.Delim('[') {
				err = fmt.Errorf("it starts with %v", t)
			}
			if err == nil {
				err = rec.elements(rec.flat)
			}
			rec.end(err)
		}
	},
}

// flat hands on a thing that says by its fields what it is.
func (r *records) flat(raw json.RawMessage) error {
	r.number++
	t, err := parseThing(raw)
	if err != nil {
		return r.fault(err)
	}
	if now := t.escaping(); now != escapingUnknown {
		r.seen = now
	}
	d, err := t.document("", r.seen)
	if err != nil {
		return r.fault(err)
	}
	return r.entry(Entry{Document: d})
}
