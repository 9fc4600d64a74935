package scrapers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"regexp"
	"strings"

	"assay/corpus"
)

// snopesScrape reads what people scraped off Snopes. One scraper writes its JSON by hand and leaves
// quotation marks inside texts as they are; since it puts every field on a line of its own, the lines say
// where a text ends, and only this table reads them so.
var snopesScrape = Table{
	Name:      "snopes_scrape",
	Version:   1,
	Doc:       "scrapes of Snopes in two published sets of columns; CSV, or JSON whose texts hold bare quotation marks",
	Proven:    "captured",
	Reference: "two public scrapes: 126 claims of 2018, and 275 mostly true ones of 2020 in broken JSON",
	Shapes: []Shape{
		{Form: FormCSV, Columns: []string{"date", "title", "claim", "verasity", "url"}},
		{Form: FormJSON, Columns: []string{"url", "evaluation", "title"}},
	},
	Read:  snopesRead,
	Parse: snopesTable.parse,
}

var snopesTable = claimTable{
	name: "snopes_scrape",
	columns: []Columns{
		{"claim": "claim", "rating": "verasity", "review_date": "date", "title": "title", "url": "url", "tags": "category"},
		{"claim": "statement", "rating": "evaluation", "speaker": "post_author", "review_date": "date_posted", "title": "title", "url": "url", "author": "author"},
	},
	ratings: []corpus.RatingMap{corpus.SnopesRatings},
}

// NoteQuotes says that a text held quotation marks which JSON does not allow there.
const NoteQuotes = "bare quotation marks in a text"

func snopesRead(name string, r io.Reader) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		m := &quoteMender{r: r}
		mended := 0
		for row, err := range snopesTable.read(name, m) {
			if m.err != nil && err != nil {
				err = fmt.Errorf("read snopes_scrape table: %w", &EndError{m.err})
			}
			// Lines are read ahead of rows, so that a note may stand with a row before its own.
			for ; mended < m.mended && err == nil; mended++ {
				row.Notes = append(row.Notes, NoteQuotes)
			}
			if !yield(row, err) {
				return
			}
		}
	}
}

// fieldLine is a line that holds one field whose value is a text.
var fieldLine = regexp.MustCompile(`^(\s*"[A-Za-z_]+":\s*")(.*)("\s*,?\s*)$`)

// A quoteMender escapes quotation marks inside the texts of JSON that has one field a line. It changes no
// line that is a field as it stands. One that could be read as two fields, or whose last quotation mark
// is escaped, has no one reading and is an error.
type quoteMender struct {
	r      io.Reader
	next   func() (textLine, error, bool)
	stop   func()
	rest   []byte
	mended int
	err    error
}

func (m *quoteMender) Read(p []byte) (int, error) {
	if m.next == nil {
		m.next, m.stop = iter.Pull2(lines(m.r))
	}
	for len(m.rest) == 0 {
		l, err, ok := m.next()
		switch {
		case !ok:
			m.stop()
			return 0, io.EOF
		case err != nil:
			m.err = fmt.Errorf("line %d: %w", l.number, err)
		default:
			m.rest, m.err = m.line(l)
		}
		if m.err != nil {
			m.stop()
			return 0, m.err
		}
	}
	n := copy(p, m.rest)
	m.rest = m.rest[n:]
	return n, nil
}

func (m *quoteMender) line(l textLine) ([]byte, error) {
	asIs := append([]byte(l.text), '\n')
	parts := fieldLine.FindStringSubmatch(l.text)
	if parts == nil || json.Valid([]byte("{"+strings.TrimRight(l.text, ", \t\r")+"}")) {
		return asIs, nil
	}
	text := parts[2]
	if twoFields.MatchString(text) || strings.HasSuffix(text, `\`) {
		return nil, fmt.Errorf("line %d: quotation marks in %.60q can be read in several ways", l.number, text)
	}
	var b bytes.Buffer
	b.WriteString(parts[1])
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '\\' && i+1 < len(text):
			b.WriteByte(text[i])
			i++
		case text[i] == '"':
			b.WriteByte('\\')
		}
		b.WriteByte(text[i])
	}
	b.WriteString(parts[3] + "\n")
	m.mended++
	return b.Bytes(), nil
}

// twoFields is where one field could end and another begin.
var twoFields = regexp.MustCompile(`"\s*(?::|,\s*")`)
