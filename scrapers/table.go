package scrapers

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"assay/corpus"
)

// A Table is a published format in which claims come as rows.
type Table struct {
	Name      string
	Version   int // a new one parses every row of the table again
	Doc       string
	Proven    string   // captured, documented or unproven
	Reference string   // what Proven rests on
	Columns   []string // by which a file is recognised; it may have more

	// Read yields the rows in file order. An error names row and column; where the file can still be
	// read after it, the rows that follow come too.
	Read func(r io.Reader) iter.Seq2[Row, error]
	// Parse is pure: the claims of one row.
	Parse func(Row) ([]corpus.Claim, error)
}

// A Row is one row of a table, as written, with the documents that the table ties to it.
type Row struct {
	Key    string            `json:"key"`    // within the table; a Ref and a Link name the row by it
	Number int               `json:"number"` // as the table counts
	Fields map[string]string `json:"fields"`
	Links  []corpus.Link     `json:"links,omitzero"`
}

// Tables lists the tables by name.
var Tables = []Table{
	pairs,
	raguard,
}

// TableNamed finds a table; the error names the known ones.
func TableNamed(name string) (Table, error) {
	var known []string
	for _, t := range Tables {
		if t.Name == name {
			return t, nil
		}
		known = append(known, t.Name)
	}
	return Table{}, fmt.Errorf("table %q is unknown; known are %s", name, strings.Join(known, ", "))
}

// Detect finds the table that a header belongs to: the one with most columns of those whose columns
// are all there. The error says what the nearest table misses.
func Detect(header []string) (Table, error) {
	var best, nearest Table
	var missing []string
	for _, t := range Tables {
		var lacks []string
		for _, c := range t.Columns {
			if !slices.Contains(header, c) {
				lacks = append(lacks, c)
			}
		}
		if len(lacks) == 0 {
			if len(t.Columns) > len(best.Columns) {
				best = t
			}
			continue
		}
		if nearest.Name == "" || len(lacks) < len(missing) {
			nearest, missing = t, lacks
		}
	}
	if best.Name != "" {
		return best, nil
	}
	return Table{}, fmt.Errorf("detect table: header %q fits none; nearest is %s, which also needs %q", header, nearest.Name, missing)
}

// headerBytes bounds how far DetectReader looks for the end of the header.
const headerBytes = 64 << 10

// DetectReader detects a table by the first record of a comma-separated file and returns a reader
// of the whole file.
func DetectReader(r io.Reader) (Table, io.Reader, error) {
	br := bufio.NewReaderSize(r, headerBytes)
	head, err := br.Peek(headerBytes)
	if err != nil && !errors.Is(err, io.EOF) {
		return Table{}, br, fmt.Errorf("detect table: %w", err)
	}
	header, err := csv.NewReader(withoutBOM(bytes.NewReader(head))).Read()
	if err != nil {
		return Table{}, br, fmt.Errorf("detect table: no header: %w", err)
	}
	t, err := Detect(header)
	return t, br, err
}

// unreadable tells whether a table can be read on after a record that could not be. Where a quotation
// mark inside a quoted field is wrong, nobody knows at which line end the next record begins.
func unreadable(err error) (_ error, goesOn bool) {
	if errors.Is(err, csv.ErrFieldCount) || errors.Is(err, csv.ErrBareQuote) {
		return err, true
	}
	return fmt.Errorf("%w; nothing after it is read", err), false
}

// withoutBOM drops a byte order mark, which spreadsheets put before the first column's name.
func withoutBOM(r io.Reader) io.Reader {
	br := bufio.NewReader(r)
	if head, err := br.Peek(3); err == nil && string(head) == "\ufeff" {
		if _, err := br.Discard(3); err != nil {
			return r // unreachable: the bytes are buffered
		}
	}
	return br
}
