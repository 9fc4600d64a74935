package planner

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
)

// redditPushshift reads replies of the archives' search APIs.
var redditPushshift = Dump{
	Name:      "reddit_pushshift",
	Doc:       "replies of the archives' APIs: posts or comments under data (Pushshift, Arctic Shift)",
	Proven:    "captured",
	Reference: "recorded Pushshift replies of 2021 and 2022",
	Match: func(_ string, head []byte) bool {
		o, ok := outlineOf(head)
		return ok && !o.array && (o.values["data"] == '[' || o.values["data"] == 'v' && o.values["error"] == 's')
	},
	Read: func(name string, r io.Reader) iter.Seq2[Entry, error] {
		return func(yield func(Entry, error) bool) {
			rec := newRecords(name, r, yield)
			rec.end(rec.answer())
		}
	},
}

func (r *records) answer() error {
	if t, err := r.dec.Token(); err != nil || t != json.Delim('{') {
		return errors.Join(err, fmt.Errorf("it starts with %v", t))
	}
	return r.keys(func(key string) error {
		switch key {
		case "data":
			t, err := r.dec.Token()
			if err == nil && t == json.Delim('[') {
				err = r.elements(r.flat)
			} else if err == nil && t != nil {
				err = fmt.Errorf("data starts with %v", t)
			}
			return err
		case "error":
			var said any
			if err := r.dec.Decode(&said); err != nil {
				return err
			}
			if said != nil && said != "" {
				return fmt.Errorf("the reply is an error: %v", said)
			}
			return nil
		}
		return r.skip()
	})
}
