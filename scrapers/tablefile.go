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
	"strings"
	"unicode/utf8"
)

// recordBytes bounds the memory that one record of a file may take: a quotation mark or a bracket that
// is never closed would make one of all that follows.
const recordBytes = 32 << 20

// lineBytes is the buffer of a reader of lines.
const lineBytes = 64 << 10

var (
	errRecordTooLarge = fmt.Errorf("it takes more than %d MiB", recordBytes>>20)
	errUTF16          = errors.New("it is UTF-16; save it as UTF-8")
	errNotUTF8        = errors.New("not UTF-8; if the file is in another character set, save it as UTF-8")
	errNUL            = errors.New("it holds a NUL byte")
	errEmpty          = errors.New("empty")
)

// A fileRow is one thing of a file, before its table reads it.
type fileRow struct {
	at     int               // from 1, without the header
	line   int               // of the file, from 1; 0 where lines do not count
	fields map[string]string // JSON values that are no text stand as JSON, null as ""
	kinds  map[string]string // of JSON values that are no text: what they are
}

// An EndError is one after which nothing of a file is read.
type EndError struct{ Err error }

func (e *EndError) Error() string { return e.Err.Error() + "; nothing after it is read" }

// Unwrap returns the cause.
func (e *EndError) Unwrap() error { return e.Err }

// A fault is a record that cannot be read.
type fault struct {
	at, line int
	column   string
	err      error
}

func (f *fault) Error() string {
	at := fmt.Sprintf("row %d", f.at)
	if f.line > 0 {
		at += fmt.Sprintf(" (line %d)", f.line)
	}
	if f.column != "" {
		at += fmt.Sprintf(", column %q", f.column)
	}
	return fmt.Sprintf("%s: %v", at, f.err)
}

func (f *fault) Unwrap() error { return f.err }

// fileRows yields the things of a file in any form, told by its start, which is the sample.
func fileRows(r io.Reader) (Sample, iter.Seq2[fileRow, error], error) {
	br := bufio.NewReaderSize(r, headBytes)
	head, err := br.Peek(headBytes)
	if err != nil && !errors.Is(err, io.EOF) {
		return Sample{}, nil, err
	}
	s, err := sampleOf(head)
	if err != nil {
		return Sample{}, nil, err
	}
	in := withoutBOM(br)
	switch s.Form {
	case FormJSON:
		return s, objects(in), nil
	case FormTSV:
		return s, tabbed(in, nil), nil
	}
	return s, commas(in), nil
}

// commas yields the records of a comma-separated file with a header.
func commas(r io.Reader) iter.Seq2[fileRow, error] {
	return func(yield func(fileRow, error) bool) {
		g := &gauge{r: r, left: recordBytes}
		cr := csv.NewReader(g)
		header, err := cr.Read()
		if err != nil {
			yield(fileRow{}, &EndError{fmt.Errorf("header: %w", err)})
			return
		}
		cr.ReuseRecord = true
		for n := 1; ; n++ {
			g.left = recordBytes
			values, err := cr.Read()
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				err, goesOn := unreadable(err)
				if !yield(fileRow{}, &fault{at: n, err: err}) || !goesOn {
					return
				}
				continue
			}
			line, _ := cr.FieldPos(0)
			if !yield(fileRow{at: n, line: line, fields: fieldsBy(header, values)}, nil) {
				return
			}
		}
	}
}

// tabbed yields the records of a tab-separated file; nil columns stand in its first line. Nothing is
// quoted: quotation marks are text.
func tabbed(r io.Reader, columns func(fields int) []string) iter.Seq2[fileRow, error] {
	return func(yield func(fileRow, error) bool) {
		var header []string
		at := 0
		for l, err := range lines(r) {
			if err == nil && header == nil && columns == nil {
				header = strings.Split(l.text, "\t")
				continue
			}
			if err == nil && strings.TrimSpace(l.text) == "" {
				continue
			}
			at++
			if err != nil {
				goesOn := errors.Is(err, errRecordTooLarge)
				if !goesOn {
					err = &EndError{err}
				}
				if !yield(fileRow{}, &fault{at: at, line: l.number, err: err}) || !goesOn {
					return
				}
				continue
			}
			values := strings.Split(l.text, "\t")
			names := header
			if columns != nil {
				names = columns(len(values))
			}
			if len(names) != len(values) {
				err := fmt.Errorf("wrong number of fields: %d", len(values))
				if columns == nil {
					err = fmt.Errorf("wrong number of fields: %d, the header has %d", len(values), len(header))
				}
				if !yield(fileRow{}, &fault{at: at, line: l.number, err: err}) {
					return
				}
				continue
			}
			if !yield(fileRow{at: at, line: l.number, fields: fieldsBy(names, values)}, nil) {
				return
			}
		}
	}
}

func fieldsBy(names, values []string) map[string]string {
	fields := make(map[string]string, len(names))
	for i, name := range names {
		fields[name] = values[i]
	}
	return fields
}

// objects yields the objects of a JSON text.
func objects(r io.Reader) iter.Seq2[fileRow, error] {
	return func(yield func(fileRow, error) bool) {
		at := 0
		for v, err := range values(r) {
			at++
			rec := fileRow{at: at, line: v.line}
			if err == nil {
				rec.fields, rec.kinds, err = fieldsOf(v.raw)
			}
			if err != nil {
				err = &fault{at: at, line: v.line, err: err}
			}
			if !yield(rec, err) {
				return
			}
		}
	}
}

// fieldsOf returns the fields of an object: texts as text, null as "", anything else as JSON, and what that is.
func fieldsOf(raw []byte) (fields, kinds map[string]string, err error) {
	if !utf8.Valid(raw) {
		return nil, nil, errNotUTF8 // the decoder would put other characters in their place
	}
	var values map[string]json.RawMessage
	if err := json.Unmarshal(raw, &values); err != nil || values == nil {
		return nil, nil, errors.New("it is no object")
	}
	fields = make(map[string]string, len(values))
	for k, v := range values {
		switch {
		case string(v) == "null":
			fields[k] = ""
		case v[0] == '"':
			var s string
			if err := json.Unmarshal(v, &s); err != nil {
				return nil, nil, fmt.Errorf("field %q: %w", k, err) // unreachable: the object was read
			}
			fields[k] = s
		default:
			var b bytes.Buffer
			if err := json.Compact(&b, v); err != nil {
				return nil, nil, fmt.Errorf("field %q: %w", k, err) // unreachable: the object was read
			}
			if kinds == nil {
				kinds = map[string]string{}
			}
			fields[k], kinds[k] = b.String(), kindOf(v[0])
		}
	}
	return fields, kinds, nil
}

// kindOf names a JSON value that is no text by its first byte.
func kindOf(c byte) string {
	switch c {
	case '[':
		return "a list"
	case '{':
		return "an object"
	case 't', 'f':
		return "a bool"
	}
	return "a number"
}

// A value is one value of a JSON text.
type value struct {
	line int // where it begins; of an error, where that is
	raw  []byte
}

// values yields the elements of an array, or values that follow each other, one at a time. Where each
// stands on a line of its own, a bad line is an error and the next one follows; elsewhere nobody knows
// where the next value begins, and an *EndError is the last.
func values(r io.Reader) iter.Seq2[value, error] {
	return func(yield func(value, error) bool) {
		br := bufio.NewReaderSize(r, lineBytes)
		first, _ := br.Peek(lineBytes) // a broken file is told when it is read
		line, _, whole := bytes.Cut(bytes.TrimLeft(first, " \t\r\n"), []byte("\n"))
		line = bytes.TrimRight(line, " \t\r")
		if bytes.HasPrefix(line, []byte("{")) && bytes.HasSuffix(line, []byte("}")) && (whole || json.Valid(line)) ||
			bytes.HasPrefix(line, []byte("{")) && len(line) > 1 && !whole && len(first) == lineBytes {
			lineValues(br, yield)
			return
		}
		s := scanner{r: br, line: 1}
		for {
			v, err := s.next()
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(v, &EndError{err})
				return
			}
			if !yield(v, nil) {
				return
			}
		}
	}
}

func lineValues(r io.Reader, yield func(value, error) bool) {
	for l, err := range lines(r) {
		v := value{line: l.number, raw: []byte(l.text)}
		switch {
		case err == nil && strings.TrimSpace(l.text) == "":
			continue
		case err == nil:
			err = validJSON(v.raw)
		case !errors.Is(err, errRecordTooLarge):
			err = &EndError{err}
		}
		if !yield(v, err) {
			return
		}
	}
}

func validJSON(raw []byte) error {
	if json.Valid(raw) {
		return nil
	}
	var v json.RawMessage
	return json.Unmarshal(raw, &v)
}

// A scanner cuts a JSON text into values by its brackets and strings. What it cuts out is checked
// before it is given out.
type scanner struct {
	r       *bufio.Reader
	line    int
	started bool
	array   bool
	ended   bool // the array has
	comma   bool // one has to come before the next value
}

// next returns the next value, or io.EOF after the last.
func (s *scanner) next() (value, error) {
	for {
		c, err := s.read()
		switch {
		case errors.Is(err, io.EOF) && s.array && !s.ended:
			return value{line: s.line}, io.ErrUnexpectedEOF
		case err != nil:
			return value{line: s.line}, err
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
		case s.ended:
			return value{line: s.line}, fmt.Errorf("%q after the end of the array", c)
		case c == '[' && !s.started:
			s.started, s.array = true, true
		case c == ']' && s.array:
			s.ended = true
		case c == ',' && s.array && s.comma:
			s.comma = false
		case s.array && s.comma:
			return value{line: s.line}, fmt.Errorf("%q where a comma is due", c)
		default:
			s.started, s.comma = true, true
			return s.value(c)
		}
	}
}

func (s *scanner) read() (byte, error) {
	c, err := s.r.ReadByte()
	if c == '\n' && err == nil {
		s.line++
	}
	return c, err
}

// value reads the value that begins with c.
func (s *scanner) value(c byte) (value, error) {
	v := value{line: s.line}
	depth, quoted, escaped := 0, false, false
	for {
		v.raw = append(v.raw, c)
		if len(v.raw) > recordBytes {
			return v, errRecordTooLarge
		}
		switch {
		case escaped:
			escaped = false
		case quoted:
			escaped, quoted = c == '\\', c != '"'
		case c == '"':
			quoted = true
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		}
		if depth == 0 && !quoted {
			if c == '}' || c == ']' || c == '"' {
				break
			}
			if next, err := s.r.Peek(1); err != nil || strings.IndexByte(" \t\r\n,]}[{", next[0]) >= 0 {
				break
			}
		}
		var err error
		if c, err = s.read(); err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			v.line = s.line
			return v, err
		}
	}
	if err := validJSON(v.raw); err != nil {
		if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
			v.line += bytes.Count(v.raw[:min(int(syntax.Offset), len(v.raw))], []byte("\n"))
		}
		return v, err
	}
	return v, nil
}

// A textLine is one line of a text, without its end.
type textLine struct {
	number int // from 1
	text   string
}

// lines yields the lines of a text. One that is too long is an error, and the next one follows.
func lines(r io.Reader) iter.Seq2[textLine, error] {
	return func(yield func(textLine, error) bool) {
		br := bufio.NewReaderSize(r, lineBytes)
		for n := 1; ; n++ {
			var line []byte
			long := false
			for {
				part, err := br.ReadSlice('\n')
				if long = long || len(line)+len(part) > recordBytes; !long {
					line = append(line, part...)
				}
				if errors.Is(err, bufio.ErrBufferFull) {
					continue
				}
				if err != nil && !errors.Is(err, io.EOF) {
					yield(textLine{number: n}, err)
					return
				}
				if err != nil && len(line) == 0 && !long {
					return
				}
				break
			}
			var err error
			if long {
				line, err = nil, errRecordTooLarge
			}
			if !yield(textLine{n, string(bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r")))}, err) {
				return
			}
		}
	}
}

// A gauge stops a reader that is asked for more than one record may take.
type gauge struct {
	r    io.Reader
	left int
}

func (g *gauge) Read(p []byte) (int, error) {
	if g.left <= 0 {
		return 0, errRecordTooLarge
	}
	n, err := g.r.Read(p)
	g.left -= n
	return n, err
}
