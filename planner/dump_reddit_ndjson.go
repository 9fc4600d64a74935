package planner

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
)

// redditNDJSON reads the monthly archives: one post or comment a line. Over the years numbers became
// strings and back, and old lines have neither name nor permalink.
var redditNDJSON = Dump{
	Name:      "reddit_ndjson",
	Doc:       "archives of Reddit, one post or comment a line (Pushshift, Arctic Shift)",
	Proven:    "captured",
	Reference: "Pushshift and Arctic Shift lines of 2005 to 2024",
	Match: func(_ string, head []byte) bool {
		lines := bytes.Split(head, []byte("\n"))
		cut := len(head) == headBytes // the last line goes on beyond the head
		if cut && len(lines) > 1 {
			lines, cut = lines[:len(lines)-1], false
		}
		objects := true // whether all lines look like objects, broken as they may be
		for _, line := range lines[:min(len(lines), 20)] {
			if line = bytes.TrimSpace(line); len(line) == 0 {
				continue
			}
			if objects = objects && line[0] == '{'; !cut && !json.Valid(line) {
				continue
			}
			if o, ok := outlineOf(line); ok && !o.array {
				if o.values["id"] != 0 && (o.values["title"] != 0 || o.values["selftext"] != 0 || o.values["body"] != 0 || o.values["link_id"] != 0) {
					return true
				}
			}
			objects = false
		}
		return objects
	},
	Read: func(name string, r io.Reader) iter.Seq2[Entry, error] {
		return func(yield func(Entry, error) bool) {
			in := bufio.NewReaderSize(r, headBytes)
			for number := 1; ; number++ {
				line, err := readLine(in)
				end := errors.Is(err, io.EOF)
				if err != nil && !end && !errors.Is(err, errTooLarge) {
					yield(Entry{Number: number}, fmt.Errorf("read %s line %d: %w", name, number, err))
					return
				}
				if errors.Is(err, errTooLarge) {
					if !yield(Entry{Number: number}, &RecordError{name, number, err}) {
						return
					}
					continue
				}
				if line = bytes.TrimSpace(line); len(line) > 0 {
					e, err := redditLine(line)
					e.Number = number
					if err != nil {
						e, err = Entry{Number: number}, &RecordError{name, number, err}
					}
					if !yield(e, err) {
						return
					}
				}
				if end {
					return
				}
			}
		}
	},
}

func redditLine(line []byte) (Entry, error) {
	t, err := parseThing(line)
	if err != nil {
		return Entry{}, err
	}
	d, err := t.document("", t.escaping())
	return Entry{Document: d}, err
}

// readLine returns a line without its end; errTooLarge after skipping one that is too long.
func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	long := false
	for {
		part, err := in.ReadSlice('\n')
		if len(line)+len(part) > recordBytes {
			long, line = true, nil
		}
		if !long {
			line = append(line, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if long && (err == nil || errors.Is(err, io.EOF)) {
			return nil, errTooLarge
		}
		return line, err
	}
}
