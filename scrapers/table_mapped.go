package scrapers

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"assay/corpus"
)

// Columns says in which column of a table a part of a claim stands, by the names of Targets.
type Columns map[string]string

// Targets are the parts of a claim that a column may hold. A claim without a rating cannot be labelled,
// so both are required of a map.
var Targets = []struct{ Name, Doc string }{
	{"author", "who reviewed it"},
	{"claim", "the statement in its wording; required"},
	{"date", "the day of the statement"},
	{"id", "what names the row in its table; without it the claim itself does"},
	{"medium", "where it was made: a speech, a post"},
	{"rating", "the verdict as printed, a word of the six-way scale or of the truth-o-meter; required"},
	{"review_date", "the day of the review"},
	{"speaker", "who made it"},
	{"tags", "subjects, with commas between them"},
	{"title", "of the review"},
	{"url", "address of the review"},
}

// ParseColumns reads a map as the command line has it: claim=statement,rating=label.
func ParseColumns(s string) (Columns, error) {
	out := Columns{}
	for _, pair := range strings.Split(s, ",") {
		target, column, ok := strings.Cut(pair, "=")
		target = strings.TrimSpace(target)
		if !ok || column == "" {
			return nil, fmt.Errorf("column map %q: %q is not like claim=statement", s, pair)
		}
		var known []string
		for _, t := range Targets {
			known = append(known, t.Name)
		}
		if !slices.Contains(known, target) {
			return nil, fmt.Errorf("column map %q: a claim has no %q; column %q can be %s", s, target, column, strings.Join(known, ", "))
		}
		if had, twice := out[target]; twice {
			return nil, fmt.Errorf("column map %q: both %q and %q are the %s", s, had, column, target)
		}
		for other, had := range out {
			if had == column {
				return nil, fmt.Errorf("column map %q: column %q cannot be both the %s and the %s", s, column, other, target)
			}
		}
		out[target] = column
	}
	for _, target := range []string{"claim", "rating"} {
		if out[target] == "" {
			return nil, fmt.Errorf("column map %q: it names no column for %s", s, target)
		}
	}
	return out, nil
}

// mappedTable is any file whose columns somebody named. Its rows keep what the map names, by its targets.
var mappedTable = Table{
	Name:      "mapped",
	Version:   1,
	Doc:       "any CSV, TSV or JSON whose columns are named: --map claim=statement,rating=label",
	Proven:    "captured",
	Reference: "the column sets of the scrapes that politifact_scrape and snopes_scrape read",
	Read: func(string, io.Reader) iter.Seq2[Row, error] {
		return func(yield func(Row, error) bool) {
			yield(Row{}, errors.New("read mapped table: its columns are not named"))
		}
	},
	Parse: mappedClaims.parse,
}

var mappedClaims = claimTable{name: "mapped", columns: []Columns{targetColumns()}, ratings: []corpus.RatingMap{corpus.PolitiFactRatings, corpus.SixWayRatings}}

// targetColumns is the map of a row that was read by a map: every part stands under its own name.
func targetColumns() Columns {
	out := Columns{}
	for _, t := range Targets {
		out[t.Name] = t.Name
	}
	return out
}

// Mapped is the table of files with these columns.
func Mapped(columns Columns) Table {
	t := mappedTable
	t.Read = func(_ string, r io.Reader) iter.Seq2[Row, error] {
		by := claimTable{name: mappedClaims.name, columns: []Columns{columns}}
		return func(yield func(Row, error) bool) {
			for row, err := range by.read("", r) {
				if err == nil {
					named := map[string]string{}
					for target, column := range columns {
						if v := row.Fields[column]; v != "" {
							named[target] = v
						}
					}
					row.Fields = named
				}
				if !yield(row, err) {
					return
				}
			}
		}
	}
	return t
}

// A claimTable is a table whose columns are the parts of claims.
type claimTable struct {
	name    string
	columns []Columns          // of its forms; a row is of the first whose columns are all there
	ratings []corpus.RatingMap // the first that knows a rating counts
	dates   corpus.DateForm
	apart   string // "", or the column that tells two rows of one claim apart

	// Each may be nil. day reads a column that holds more than a date; links are the documents that a
	// row names; complete adds to a claim what is peculiar to the table.
	day      func(printed string) (string, error)
	links    func(fields map[string]string) ([]corpus.Link, string, error)
	complete func(c *corpus.Claim, fields map[string]string)
}

// columnsOf finds the map whose columns are all there; the error names those that the best one lacks.
func (t claimTable) columnsOf(has func(column string) bool) (Columns, error) {
	var missing []string
	for i, m := range t.columns {
		var lacks []string
		for _, target := range slices.Sorted(maps.Keys(m)) {
			if !has(m[target]) {
				lacks = append(lacks, fmt.Sprintf("%q (its %s)", m[target], target))
			}
		}
		if len(lacks) == 0 {
			return m, nil
		}
		if i == 0 || len(lacks) < len(missing) {
			missing = lacks
		}
	}
	return nil, fmt.Errorf("there is no column %s", strings.Join(missing, ", "))
}

// read yields the rows of a file in any form.
func (t claimTable) read(_ string, r io.Reader) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		head, all, err := fileRows(r)
		var m Columns
		if err == nil {
			err = twice(head.Columns)
		}
		if err == nil {
			if m, err = t.columnsOf(func(c string) bool { return slices.Contains(head.Columns, c) }); err != nil {
				err = fmt.Errorf("%w; the file has %.500q", err, head.Columns)
			}
		}
		if err != nil {
			yield(Row{}, fmt.Errorf("read %s table: %w", t.name, &EndError{err}))
			return
		}
		t.rows(m, all)(yield)
	}
}

// rows makes rows of records whose columns are these.
func (t claimTable) rows(m Columns, all iter.Seq2[fileRow, error]) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		for rec, err := range all {
			var row Row
			if err == nil {
				row, err = t.row(m, rec)
			}
			if err != nil {
				err = fmt.Errorf("read %s table: %w", t.name, err)
			}
			if !yield(row, err) {
				return
			}
		}
	}
}

// row checks a record. What cannot be a claim's is refused here, with its column, so that no row is kept
// that could become a wrong claim.
func (t claimTable) row(m Columns, rec fileRow) (Row, error) {
	refuse := func(column string, err error) (Row, error) {
		return Row{}, &fault{at: rec.at, line: rec.line, column: column, err: err}
	}
	if column, err := checkText(rec.fields); err != nil {
		return refuse(column, err)
	}
	if kind := rec.kinds[m["claim"]]; kind != "" {
		return refuse(m["claim"], fmt.Errorf("a claim is text, and this is %s", kind))
	}
	if kind := rec.kinds[m["rating"]]; kind == "a list" || kind == "an object" {
		return refuse(m["rating"], fmt.Errorf("a rating is a word, and this is %s", kind))
	}
	for _, column := range m {
		if _, ok := rec.fields[column]; !ok {
			rec.fields[column] = "" // objects leave out what they have nothing for
		}
	}
	if !slices.Contains(slices.Collect(maps.Values(m)), "") {
		delete(rec.fields, "") // the row's number, which a data frame leaves when it is saved
	}
	c, target, err := t.claim(m, rec.fields)
	if err != nil {
		return refuse(m[target], err)
	}
	row := Row{Fields: rec.fields, At: rec.at, Key: rowKey(part(m, rec.fields, "id"))}
	if row.Key == "" {
		row.Key = strings.TrimPrefix(c.ID, "c_")
		if t.apart != "" {
			row.Key = rowKey(corpus.ClaimID(row.Key, rec.fields[t.apart], "", ""))
		}
	}
	if t.links != nil {
		var column string
		if row.Links, column, err = t.links(rec.fields); err != nil {
			return refuse(column, err)
		}
		for i := range row.Links {
			row.Links[i].Row, row.Links[i].Rank = row.Key, i+1
		}
	}
	return row, nil
}

// twice refuses a header that names a column twice: nobody knows which of the two is meant.
func twice(columns []string) error {
	for i, c := range columns {
		if c != "" && slices.Contains(columns[:i], c) {
			return fmt.Errorf("column %q stands twice in the header", c)
		}
	}
	return nil
}

// checkText refuses bytes that no text has, with the column that holds them.
func checkText(fields map[string]string) (column string, err error) {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		switch v := fields[name]; {
		case !utf8.ValidString(v):
			return name, errNotUTF8
		case strings.IndexByte(v, 0) >= 0:
			return name, errNUL
		}
	}
	return "", nil
}

// rowKey shortens what names a row to what the store takes as a key.
func rowKey(id string) string {
	if len(id) <= 200 {
		return id
	}
	return strings.TrimPrefix(corpus.ClaimID(id, "", "", ""), "c_")
}

// part returns a part of a claim with white space folded, "" where the table has no column for it.
func part(m Columns, fields map[string]string, target string) string {
	column, ok := m[target]
	if !ok {
		return ""
	}
	return corpus.Space(fields[column])
}

// claim reads a row but for its rating; an error comes with the part that it is about.
func (t claimTable) claim(m Columns, fields map[string]string) (c corpus.Claim, target string, err error) {
	get := func(target string) string { return part(m, fields, target) }
	c = corpus.Claim{
		Source: t.name, Text: get("claim"), Speaker: get("speaker"), RatingRaw: get("rating"),
		Medium: get("medium"), ReviewURL: get("url"), Title: get("title"),
	}
	if _, quoted := m["claim"]; quoted && c.Text == "" {
		return c, "claim", errEmpty
	}
	for _, d := range []struct {
		target string
		into   *string
	}{{"date", &c.StatedDate}, {"review_date", &c.ReviewDate}} {
		printed := get(d.target)
		if printed == "" {
			continue
		}
		if t.day != nil && d.target == "date" {
			*d.into, err = t.day(printed)
		} else {
			var read corpus.Date
			read, err = t.dates.Read(printed)
			*d.into = read.Day
		}
		if err != nil {
			return c, d.target, err
		}
	}
	if c.ReviewURL != "" {
		address := corpus.CanonicalURL(c.ReviewURL)
		if !strings.HasPrefix(address, "http://") && !strings.HasPrefix(address, "https://") {
			return c, "url", fmt.Errorf("%.100q is no address of the web", c.ReviewURL)
		}
		c.ReviewURL = address
	}
	if a := get("author"); a != "" {
		c.Authors = []string{a}
	}
	c.Tags = listOf(get("tags"))
	if t.complete != nil {
		t.complete(&c, fields)
	}
	c.ID = corpus.ClaimID(c.Text, c.Speaker, c.ReviewURL, c.StatedDate)
	return c, "", nil
}

// listOf splits what stands between commas.
func listOf(s string) []string {
	var out []string
	for _, e := range strings.Split(s, ",") {
		if e = strings.TrimSpace(e); e != "" {
			out = append(out, e)
		}
	}
	return out
}

// parse returns the claim of a row. A table that rates what it does not quote has none.
func (t claimTable) parse(row Row) ([]corpus.Claim, error) {
	m, err := t.columnsOf(func(c string) bool {
		_, ok := row.Fields[c]
		return ok || t.name == "mapped" // which keeps no empty fields
	})
	if err != nil {
		return nil, fmt.Errorf("parse row %s of %s: %w", row.Key, t.name, err)
	}
	c, target, err := t.claim(m, row.Fields)
	if err != nil {
		return nil, fmt.Errorf("parse row %s of %s, column %q: %w", row.Key, t.name, m[target], err)
	}
	if _, quoted := m["claim"]; !quoted {
		return nil, corpus.Exclude("no_claim", fmt.Sprintf("row %s of %s rates a statement that the table does not quote", row.Key, t.name))
	}
	if err := rate(&c, c.RatingRaw, t.ratings...); err != nil {
		return nil, err
	}
	return []corpus.Claim{c}, nil
}

// rate fills in what the first map that knows a printed rating makes of it. One that no map knows is
// flagged and waits for a person; a claim without one, or with a sentence in its place, has no verdict.
func rate(c *corpus.Claim, printed string, known ...corpus.RatingMap) error {
	label, ok := Review{Rating: printed}.Label()
	if !ok {
		if printed == "" {
			return corpus.Exclude("no_verdict", "the claim came without a verdict, so a label cannot be told")
		}
		return corpus.Exclude("no_verdict", fmt.Sprintf("what stands for a verdict is no word of a scale: %.80q", printed))
	}
	for _, m := range known {
		rating, ok := m.Map(label)
		if !ok {
			continue
		}
		if rating.Exclude != "" {
			return corpus.Exclude(rating.Exclude, fmt.Sprintf("%s is no verdict of truth", label))
		}
		c.Rating, c.Verdict6, c.Status = rating.Slug, rating.Verdict, corpus.StatusSource
		return nil
	}
	c.Flags = corpus.AddFlag(c.Flags, corpus.FlagUnmapped)
	return nil
}
