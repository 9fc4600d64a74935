package planner

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"regexp"
)

// redditListing reads what Reddit's own API answers: a listing, the two listings of a thread, the
// things asked for by id. Comments nest in their parents; "more" stands for comments left out.
var redditListing = Dump{
	Name:      "reddit_listing",
	Doc:       "replies of Reddit's API: listings, threads, /api/info",
	Proven:    "captured",
	Reference: "recorded replies of 2015 to 2020, with and without raw_json=1",
	Match: func(_ string, head []byte) bool {
		o, ok := outlineOf(head)
		return ok && (o.values["data"] == '{' || o.kind != "" && thingKind.MatchString(o.kind))
	},
	Read: func(name string, r io.Reader) iter.Seq2[Entry, error] {
		return func(yield func(Entry, error) bool) {
			rec := newRecords(name, r, yield)
			rec.end(rec.replies())
		}
	},
}

var thingKind = regexp.MustCompile(`^(Listing|more|t[1-6])$`)

// maxDepth bounds nested replies; Reddit stops at ten and goes on behind a "more".
const maxDepth = 100

// replies reads one reply or several in a row, as people keep them in one file.
func (r *records) replies() error {
	for {
		t, err := r.dec.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch t {
		case json.Delim('['):
			err = r.elements(r.child)
		case json.Delim('{'):
			err = r.listing()
		default:
			return fmt.Errorf("a reply starts with %v", t)
		}
		if err != nil {
			return err
		}
	}
}

// listing reads the object that was just opened without holding more than one of its children.
func (r *records) listing() error {
	var kind string
	return r.keys(func(key string) error {
		switch {
		case key == "kind":
			return r.dec.Decode(&kind)
		case key == "data" && (kind == "" || kind == "Listing"):
			t, err := r.dec.Token()
			if err != nil {
				return err
			}
			if t != json.Delim('{') {
				return fmt.Errorf("data of a listing starts with %v", t)
			}
			return r.keys(r.listingData)
		case key == "data":
			var raw json.RawMessage
			if err := r.dec.Decode(&raw); err != nil {
				return err
			}
			return r.thing(child{Kind: kind, Data: raw}, 0)
		}
		return r.skip()
	})
}

func (r *records) listingData(key string) error {
	if key != "children" {
		return r.skip()
	}
	t, err := r.dec.Token()
	if err != nil {
		return err
	}
	if t != json.Delim('[') {
		return fmt.Errorf("children of a listing start with %v", t)
	}
	return r.elements(r.child)
}

// A child is a thing with its kind.
type child struct {
	Kind string          `json:"kind"`
	Data json.RawMessage `json:"data"`
}

func (r *records) child(raw json.RawMessage) error {
	var c child
	if err := json.Unmarshal(raw, &c); err != nil {
		r.number++
		return r.fault(err)
	}
	return r.thing(c, 0)
}

// thing hands on one thing and what answers it.
func (r *records) thing(c child, depth int) error {
	if c.Kind == "Listing" {
		return r.nested(c.Data, depth)
	}
	r.number++
	switch c.Kind {
	case "t1", "t3":
	case "more":
		var more struct {
			Children []json.RawMessage `json:"children"`
		}
		if err := json.Unmarshal(c.Data, &more); err != nil {
			return r.fault(fmt.Errorf("more: %w", err))
		}
		return r.entry(Entry{Skipped: "more", More: len(more.Children)})
	case "t2":
		return r.entry(Entry{Skipped: "user"})
	case "t4":
		return r.entry(Entry{Skipped: "message"})
	case "t5":
		return r.entry(Entry{Skipped: "subreddit"})
	case "t6":
		return r.entry(Entry{Skipped: "award"})
	default:
		return r.fault(fmt.Errorf("kind %.40q is unknown", c.Kind))
	}
	t, err := parseThing(c.Data)
	if err != nil {
		return r.fault(err)
	}
	if now := t.escaping(); now != escapingUnknown && !r.raw {
		r.seen = now
	}
	d, err := t.document(c.Kind, r.seen)
	if err != nil {
		err = r.fault(err)
	} else {
		err = r.entry(Entry{Document: d})
	}
	if err != nil || len(t.Replies) == 0 || t.Replies[0] != '{' {
		return err
	}
	var replies child
	if err := json.Unmarshal(t.Replies, &replies); err != nil {
		r.number++
		return r.fault(fmt.Errorf("replies: %w", err))
	}
	return r.thing(replies, depth+1)
}

// nested reads a listing within a thing or an array.
func (r *records) nested(data json.RawMessage, depth int) error {
	var listing struct {
		Children []child `json:"children"`
	}
	err := json.Unmarshal(data, &listing)
	if err == nil && depth > maxDepth {
		err = fmt.Errorf("replies nest deeper than %d", maxDepth)
	}
	if err != nil {
		r.number++
		return r.fault(fmt.Errorf("listing: %w", err))
	}
	for _, c := range listing.Children {
		if err := r.thing(c, depth); err != nil {
			return err
		}
	}
	return nil
}
