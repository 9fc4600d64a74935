package scrapers

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
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
	Proven    string  // captured, documented or unproven
	Reference string  // what Proven rests on
	Shapes    []Shape // the forms of its files; none for a table that has to be named
	Pages     bool    // its links lead to pages of the web, which a build fetches

	// Read yields the rows of a file, which comes decompressed, in its order. Where the file's name says
	// what its rows do not, the name counts. An error names the row, and the column or line; where the file
	// can still be read after it, the rows that follow come too.
	Read func(name string, r io.Reader) iter.Seq2[Row, error]
	// Parse is pure: the claims of one row.
	Parse func(Row) ([]corpus.Claim, error)
}

// A Shape is one form of a table's files, by which they are recognised.
type Shape struct {
	Form    string            // FormCSV, FormTSV or FormJSON
	Columns []string          // of the header, or keys of the first object; a file may have more
	Match   func(Sample) bool // nil, or what has to be true besides
}

// The forms of files.
const (
	FormCSV  = "csv"  // comma-separated, RFC 4180
	FormTSV  = "tsv"  // tab-separated, without quoting
	FormJSON = "json" // an array of objects, objects one after the other, or one
)

// A Sample is what the start of a file shows.
type Sample struct {
	Form    string
	Columns []string // the fields of the first line, or the keys of the first object
	Broken  error    // why the first object cannot be read to its end; nil also where the start is too short
}

// A Row is one row of a table, as written, with the documents that the table ties to it.
type Row struct {
	Key    string            `json:"key"`    // within the table; a Ref and a Link name the row by it
	Number int               `json:"number"` // as the table counts, 0 where it does not
	Fields map[string]string `json:"fields"`
	Links  []corpus.Link     `json:"links,omitzero"`

	At    int      `json:"-"` // place in the file, from 1
	Notes []string `json:"-"` // what was done to read it
}

// Tables lists the tables by name.
var Tables = []Table{
	averitec,
	buzzfeed,
	claimreview,
	claimskg,
	claimskgGESIS,
	factCheckTools,
	fakeNewsNet,
	fever,
	liar,
	mappedTable,
	pairs,
	politifactScrape,
	raguard,
	snopesScrape,
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

// Detect finds the table whose shape has most columns, of those that fit. The error says what the
// nearest shape misses, or which tables fit equally well.
func Detect(s Sample) (Table, error) {
	var best []Table
	var nearest string
	var missing []string
	columns := -1
	for _, t := range Tables {
		for _, shape := range t.Shapes {
			if shape.Form != s.Form {
				continue
			}
			var lacks []string
			for _, c := range shape.Columns {
				if !slices.Contains(s.Columns, c) {
					lacks = append(lacks, c)
				}
			}
			switch {
			case len(lacks) > 0:
				if nearest == "" || len(lacks) < len(missing) {
					nearest, missing = t.Name, lacks
				}
			case shape.Match != nil && !shape.Match(s) || len(shape.Columns) < columns:
			case len(shape.Columns) == columns:
				if best[len(best)-1].Name != t.Name {
					best = append(best, t)
				}
			default:
				best, columns = []Table{t}, len(shape.Columns)
			}
		}
	}
	const ask = "name its format with --as, or its columns with --map"
	switch {
	case len(best) == 1:
		return best[0], nil
	case len(best) > 1:
		var names []string
		for _, t := range best {
			names = append(names, t.Name)
		}
		return Table{}, fmt.Errorf("detect table: the %s with %.300q fits %s equally well; say which with --as", s.Form, s.Columns, strings.Join(names, " and "))
	case s.Broken != nil:
		return Table{}, fmt.Errorf("detect table: the JSON is broken in its first object: %w; its keys up to there are %.300q", s.Broken, s.Columns)
	case nearest == "":
		return Table{}, fmt.Errorf("detect table: the %s with %.300q fits none; %s", s.Form, s.Columns, ask)
	}
	return Table{}, fmt.Errorf("detect table: the %s with %.300q fits none; nearest is %s, which also needs %.300q; %s", s.Form, s.Columns, nearest, missing, ask)
}

// headBytes bounds how far DetectReader looks for the end of the header or of the first object.
const headBytes = 256 << 10

// DetectReader detects a table by the start of its file and returns a reader of the whole file.
func DetectReader(r io.Reader) (Table, io.Reader, error) {
	br := bufio.NewReaderSize(r, headBytes)
	head, err := br.Peek(headBytes)
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return Table{}, br, fmt.Errorf("detect table: the file breaks off after %d bytes: %w", len(head), err)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return Table{}, br, fmt.Errorf("detect table: %w", err)
	}
	s, err := sampleOf(head)
	if err != nil {
		return Table{}, br, fmt.Errorf("detect table: %w", err)
	}
	t, err := Detect(s)
	return t, br, err
}

// sampleOf reads what the start of a file shows.
func sampleOf(head []byte) (Sample, error) {
	if bytes.HasPrefix(head, []byte{0xff, 0xfe}) || bytes.HasPrefix(head, []byte{0xfe, 0xff}) {
		return Sample{}, errUTF16
	}
	head = bytes.TrimPrefix(head, []byte("\ufeff"))
	text := bytes.TrimSpace(head)
	if len(text) == 0 {
		return Sample{}, errors.New("no header: the file is empty")
	}
	if text[0] == '{' || text[0] == '[' {
		keys, err := firstKeys(text)
		return Sample{Form: FormJSON, Columns: keys, Broken: err}, nil
	}
	line, _, _ := bytes.Cut(head, []byte("\n"))
	if bytes.Count(line, []byte("\t")) > bytes.Count(line, []byte(",")) {
		return Sample{Form: FormTSV, Columns: strings.Split(strings.TrimSuffix(string(line), "\r"), "\t")}, nil
	}
	header, err := csv.NewReader(bytes.NewReader(head)).Read()
	if err != nil {
		return Sample{}, fmt.Errorf("no header: %w", err)
	}
	return Sample{Form: FormCSV, Columns: header}, nil
}

// firstKeys returns the keys of the first object of a JSON text, as far as its start shows them, and
// what is wrong with the object.
func firstKeys(head []byte) (keys []string, broken error) {
	d := json.NewDecoder(bytes.NewReader(head))
	t, err := d.Token()
	if t == json.Delim('[') && err == nil {
		t, err = d.Token()
	}
	if err != nil || t != json.Delim('{') {
		return nil, syntaxOnly(err)
	}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return keys, syntaxOnly(err)
		}
		key, _ := t.(string)
		keys = append(keys, key)
		var skip json.RawMessage
		if err := d.Decode(&skip); err != nil {
			return keys, syntaxOnly(err)
		}
	}
	return keys, nil
}

// syntaxOnly drops the error of a text that was merely cut.
func syntaxOnly(err error) error {
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
		return err
	}
	return nil
}

// unreadable tells whether a table can be read on after a record that could not be. Where a quotation
// mark inside a quoted field is wrong, nobody knows at which line end the next record begins.
func unreadable(err error) (_ error, goesOn bool) {
	if errors.Is(err, csv.ErrFieldCount) || errors.Is(err, csv.ErrBareQuote) {
		return err, true
	}
	return &EndError{err}, false
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
