package planner

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"
	"strings"

	"assay/corpus"
)

// A Pair is a row of a table of pairs: a claim, a document, and what the table says the document does
// to the claim.
type Pair struct {
	Table       string // raguard, or pairs for lines that name no table
	ClaimNumber int    // as the table counts, or the place of the claim among the lines
	ClaimText   string // "" where the table keeps claims elsewhere
	Verdict     string // as printed, "" where the table keeps it elsewhere
	Date        string // of the statement, 2006-01-02; "" where the table does not tell it
	ReviewDate  string // of the verdict, likewise
	Document    corpus.Document
	Label       corpus.StanceLabel
	Number      int      // of the document, as the table counts; the row where it does not
	Rank        int      // of the document among those of its claim, from 1
	Row         int      // of the file, from 1, without the header
	Notes       []string // what a person should know about the row
}

// RowKey names the imported row of the claim, as a claims table of the same name does.
func (p Pair) RowKey() string {
	if p.Table == tableRAGuard {
		return p.Table + "/" + strconv.Itoa(p.ClaimNumber)
	}
	// Lines have no numbers that another file would share; a wording is itself in every file.
	return p.Table + "/" + strings.TrimPrefix(corpus.ClaimID(p.ClaimText, "", "", ""), "c_")
}

// Link is the pair as it is stored.
func (p Pair) Link() corpus.Link {
	return corpus.Link{Row: p.RowKey(), DocumentID: p.Document.ID, Label: p.Label, Number: p.Number, Rank: p.Rank}
}

const (
	tableRAGuard = "raguard"
	tableLines   = "pairs"
)

// ReadPairs reads a table of pairs in any of its forms, told by its content: RAGuard's documents.csv,
// one JSON object a line with claim, title, text, url and label, or RAGuard's claims as JSON with
// their documents inside. Texts are kept as published. It holds the documents in memory, because a post
// that stands in two rows is one document: of RAGuard the longer of the two texts, of lines the first, and
// the other is a *RecordError besides. A row that cannot be read, or
// whose label is none of the three, is a *RecordError and reading goes on; any other error is the end.
func ReadPairs(name string, r io.Reader) iter.Seq2[Pair, error] {
	return func(yield func(Pair, error) bool) {
		plain, closed, err := decompress(r)
		if err != nil {
			yield(Pair{}, fmt.Errorf("open pairs %s: %w", name, err))
			return
		}
		defer closed()
		head, err := peek(plain)
		if err != nil {
			yield(Pair{}, fmt.Errorf("read pairs %s: %w", name, err))
			return
		}
		if len(bytes.TrimSpace(head)) == 0 {
			yield(Pair{}, fmt.Errorf("read pairs %s: it is empty", name))
			return
		}
		p := pairs{name: name, yield: yield, known: map[string]corpus.Document{}, ranks: map[string]int{}, claims: map[string]int{}}
		switch o, ok := outlineOf(head); {
		case ok && o.array:
			err = p.nested(plain)
		case ok && o.values["claim"] != 0:
			err = p.lines(plain)
		case bytes.HasPrefix(bytes.TrimLeft(head, "\" \t"), []byte("Document ID")) || bytes.Contains(firstLine(head), []byte("Document Label")):
			err = p.csv(plain)
		default:
			err = fmt.Errorf("%s is no known form: a CSV with the column Document Label, a JSON array of claims with documents, or JSON lines with a claim", excerpt(head))
		}
		if err != nil && !errors.Is(err, errStop) {
			yield(Pair{}, fmt.Errorf("read pairs %s after row %d: %w", name, p.row, err))
		}
	}
}

func firstLine(head []byte) []byte {
	line, _, _ := bytes.Cut(head, []byte("\n"))
	return line
}

var errNULClaim = errors.New("its claim holds a NUL byte")

// pairs is the state of reading one table.
type pairs struct {
	name   string
	yield  func(Pair, error) bool
	row    int
	known  map[string]corpus.Document
	ranks  map[string]int // by row key of the claim
	claims map[string]int // place of a claim among the lines, by its text
}

// pair completes a row and hands it on.
func (p *pairs) pair(row Pair, label string) error {
	row.Row = p.row
	row.Label = corpus.StanceLabel(label)
	switch row.Label {
	case corpus.Supporting, corpus.Misleading, corpus.Unrelated:
	default:
		return p.fault(fmt.Errorf("label %q is none of supporting, misleading, unrelated", label))
	}
	row.Document = row.Document.Seal()
	if old, ok := p.known[row.Document.ID]; ok {
		longer, note := Longer(old, row.Document)
		switch {
		case note == "":
			row.Document = old
		case row.Table == tableLines && strings.TrimSpace(row.Document.Content()) == "":
			row.Document = old // the address alone refers to it
		case row.Table == tableLines && strings.TrimSpace(old.Content()) != "":
			if err := p.fault(fmt.Errorf("its text of %d bytes is another than the one of %d bytes that came before for %s; the first stays", len(row.Document.Content()), len(old.Content()), cmp.Or(old.URL, old.ID))); err != nil {
				return err
			}
			row.Document = old
		default:
			row.Document = longer
			row.Notes = append(row.Notes, note)
		}
	}
	p.known[row.Document.ID] = row.Document
	key := row.RowKey()
	p.ranks[key]++
	row.Rank = p.ranks[key]
	if !p.yield(row, nil) {
		return errStop
	}
	return nil
}

func (p *pairs) fault(err error) error {
	if !p.yield(Pair{Row: p.row}, &RecordError{p.name, p.row, err}) {
		return errStop
	}
	return nil
}

// Longer decides between two copies of one document: the one that says more, the first of equals.
// The note tells a person that they differ; it is empty where they do not.
func Longer(a, b corpus.Document) (kept corpus.Document, note string) {
	if a.Content() == b.Content() {
		return a, ""
	}
	kept, other := a, b
	if len(b.Content()) > len(a.Content()) {
		kept, other = b, a
		if a.Number != 0 {
			kept.Number = a.Number // a document keeps the number it came with first
		}
	}
	return kept, fmt.Sprintf("two texts for %s: kept the one of %d bytes, not the one of %d", kept.ID, len(kept.Content()), len(other.Content()))
}

// published is a row as RAGuard prints it, in CSV or JSON.
type published struct {
	Document loose `json:"Document ID"`
	Title    loose `json:"Title"`
	Text     loose `json:"Full Text"`
	Claim    loose `json:"Claim ID"`
	Label    loose `json:"Document Label"`
	Link     loose `json:"Link"`
}

// pair makes a Pair of a published row. The id is the post's where the link names one.
func (r published) pair() (Pair, error) {
	number, err := positive("Document ID", string(r.Document))
	if err != nil {
		return Pair{}, err
	}
	claim, err := positive("Claim ID", string(r.Claim))
	if err != nil {
		return Pair{}, err
	}
	d := corpus.Document{
		ID: "raguard:" + strconv.Itoa(number), Kind: corpus.KindRedditPost, Title: string(r.Title), Text: string(r.Text),
		Source: "reddit.com", Number: number,
	}
	notes, err := placed(&d, string(r.Link))
	return Pair{Table: tableRAGuard, ClaimNumber: claim, Number: number, Document: d, Notes: notes}, err
}

// placed fills in what a document's address tells. A search restricted to Reddit found all of these,
// so a link to anything else is where a link post leads. What is no address of the web is an error; a user
// name or password in one is dropped, with a note.
func placed(d *corpus.Document, link string) (notes []string, err error) {
	d.BodyStatus = BodyStatusOf(d.Title, d.Text, "")
	if link = strings.TrimSpace(link); link == "" {
		return nil, nil
	}
	address, had := withoutUser(corpus.CanonicalURL(link))
	if !strings.HasPrefix(address, "http://") && !strings.HasPrefix(address, "https://") || corpus.Host(address) == "" {
		return nil, fmt.Errorf("%.100q is no address of the web", address)
	}
	if had {
		notes = append(notes, "a user name or password was dropped from an address")
	}
	d.URL = address
	fullname, ok := corpus.RedditFullname(d.URL)
	if !ok {
		if d.Kind == corpus.KindRedditPost {
			d.URL, d.Outbound = "", d.URL
		}
		return notes, nil
	}
	d.ID = corpus.RedditID(fullname)
	d.Kind = corpus.KindRedditPost
	if strings.HasPrefix(fullname, "t1_") {
		d.Kind = corpus.KindRedditComment
	}
	where := placeAt(d.URL, fullname)
	d.Source = where.source()
	// As published, unless it is a mirror's or a short address, or bears an author's name.
	if where.subreddit == "" && !strings.HasPrefix(d.URL, "https://www.reddit.com/gallery/") || corpus.Host(d.URL) != "www.reddit.com" {
		d.URL = where.url(true)
	}
	return notes, nil
}

// withoutUser drops user name and password from an address, and reports whether it had any.
func withoutUser(address string) (string, bool) {
	scheme, rest, ok := strings.Cut(address, "://")
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	at := strings.LastIndexByte(rest[:end], '@')
	if !ok || at < 0 {
		return address, false
	}
	return scheme + "://" + rest[at+1:], true
}

func positive(field, s string) (int, error) {
	n, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(s), ".0")) // a data frame writes whole numbers so
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%s %.40q is no number", field, s)
	}
	return n, nil
}

// csv reads documents.csv. Columns are found by their names.
func (p *pairs) csv(r io.Reader) error {
	in := csv.NewReader(r)
	in.FieldsPerRecord = -1
	header, err := in.Read()
	if err != nil {
		return fmt.Errorf("header: %w", err)
	}
	column := map[string]int{}
	for i, h := range header {
		column[strings.ToLower(strings.TrimSpace(h))] = i
	}
	var missing []string
	for _, h := range []string{"Document ID", "Title", "Full Text", "Claim ID", "Document Label", "Link"} {
		if _, ok := column[strings.ToLower(h)]; !ok {
			missing = append(missing, h)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("header: no column %s", strings.Join(missing, ", "))
	}
	for {
		row, err := in.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		p.row++
		var parse *csv.ParseError
		if errors.As(err, &parse) {
			if err := p.fault(err); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return err
		}
		if len(row) < len(header) {
			if err := p.fault(fmt.Errorf("it has %d fields, the header %d", len(row), len(header))); err != nil {
				return err
			}
			continue
		}
		field := func(name string) loose { return loose(row[column[name]]) }
		pub := published{field("document id"), field("title"), field("full text"), field("claim id"), field("document label"), field("link")}
		if err := p.published(pub, Pair{}); err != nil {
			return err
		}
	}
}

// published hands on a published row, with what the claim around it tells.
func (p *pairs) published(pub published, claim Pair) error {
	row, err := pub.pair()
	if err != nil {
		return p.fault(err)
	}
	if claim.ClaimNumber != 0 && claim.ClaimNumber != row.ClaimNumber {
		return p.fault(fmt.Errorf("document %d says claim %d and stands under claim %d", row.Number, row.ClaimNumber, claim.ClaimNumber))
	}
	row.ClaimText, row.Verdict = claim.ClaimText, claim.Verdict
	return p.pair(row, string(pub.Label))
}

// nested reads claims that hold their documents.
func (p *pairs) nested(r io.Reader) error {
	rec := newRecords(p.name, r, nil)
	if t, err := rec.dec.Token(); err != nil || t != json.Delim('[') {
		return errors.Join(err, fmt.Errorf("it starts with %v", t))
	}
	place := 0
	return rec.elements(func(raw json.RawMessage) error {
		place++
		var c struct {
			Number    loose           `json:"claim_id"`
			Text      loose           `json:"claim"`
			Verdict   loose           `json:"original_verdict"`
			Binary    loose           `json:"verdict"`
			Documents []publishedItem `json:"documents"`
		}
		if err := json.Unmarshal(raw, &c); err != nil {
			p.row++
			return p.fault(fmt.Errorf("claim %d: %w", place, err))
		}
		number, err := positive("claim_id", string(c.Number))
		if err != nil {
			p.row++
			return p.fault(fmt.Errorf("claim %d: %w", place, err))
		}
		if strings.IndexByte(string(c.Text), 0) >= 0 {
			p.row++
			if err := p.fault(fmt.Errorf("claim %d: %w", number, errNULClaim)); err != nil {
				return err
			}
			p.row += max(len(c.Documents)-1, 0)
			return nil
		}
		claim := Pair{ClaimNumber: number, ClaimText: string(c.Text), Verdict: string(c.Verdict)}
		if claim.Verdict == "" {
			claim.Verdict = string(c.Binary)
		}
		for _, d := range c.Documents {
			p.row++
			if d.err != nil {
				err = p.fault(fmt.Errorf("claim %d: %w", number, d.err))
			} else {
				err = p.published(d.published, claim)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// publishedItem keeps the error of one document to itself, so that the others are read.
type publishedItem struct {
	published
	err error
}

// UnmarshalJSON never fails for well-formed JSON.
func (d *publishedItem) UnmarshalJSON(b []byte) error {
	d.err = json.Unmarshal(b, &d.published)
	return nil
}

// lines reads one JSON object a line.
func (p *pairs) lines(in *bufio.Reader) error {
	for {
		p.row++
		line, err := readLine(in)
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, errTooLarge) {
			return err
		}
		end := errors.Is(err, io.EOF)
		if errors.Is(err, errTooLarge) {
			err = p.fault(err)
		} else if line = bytes.TrimSpace(line); len(line) > 0 {
			err = p.line(line)
		} else {
			err = nil
		}
		if err != nil || end {
			return err
		}
	}
}

func (p *pairs) line(line []byte) error {
	var v struct {
		Claim   loose `json:"claim"`
		Title   loose `json:"title"`
		Text    loose `json:"text"`
		URL     loose `json:"url"`
		Label   loose `json:"label"`
		Verdict loose `json:"verdict"`
		Date    loose `json:"date"`
		Review  loose `json:"review_date"`
	}
	err := json.Unmarshal(line, &v)
	if err != nil {
		return p.fault(err)
	}
	text := strings.TrimSpace(string(v.Claim))
	if text == "" {
		return p.fault(errors.New("it has no claim"))
	}
	if strings.IndexByte(text, 0) >= 0 {
		return p.fault(errNULClaim)
	}
	row := Pair{Table: tableLines, ClaimText: text, Verdict: string(v.Verdict), Number: p.row}
	for _, d := range []struct {
		name    string
		printed loose
		into    *string
	}{{"date", v.Date, &row.Date}, {"review_date", v.Review, &row.ReviewDate}} {
		if strings.TrimSpace(string(d.printed)) == "" {
			continue
		}
		read, err := corpus.ReadDate(string(d.printed))
		if err != nil {
			return p.fault(fmt.Errorf("%s: %w", d.name, err))
		}
		*d.into = read.Day
	}
	key := row.RowKey()
	if p.claims[key] == 0 {
		p.claims[key] = len(p.claims) + 1
	}
	row.ClaimNumber = p.claims[key]
	d := corpus.Document{Kind: corpus.KindPage, Title: string(v.Title), Text: string(v.Text), Source: corpus.Host(string(v.URL))}
	d = d.Seal() // before a text names itself
	if row.Notes, err = placed(&d, string(v.URL)); err != nil {
		return p.fault(err)
	}
	if d.Content() == "" && d.URL == "" {
		return p.fault(errors.New("it has neither document nor address"))
	}
	if d.ID == "" {
		address := d.URL
		if address == "" { // a text without address is its own
			sum := sha256.Sum256([]byte(d.Content()))
			address = "urn:sha256:" + hex.EncodeToString(sum[:])
		}
		d.ID = corpus.DocumentID(address)
	}
	row.Document = d
	return p.pair(row, string(v.Label))
}
