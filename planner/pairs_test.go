package planner

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"assay/corpus"

	"github.com/google/go-cmp/cmp"
)

// pairLine is what a test says of a pair.
type pairLine struct {
	Row            int
	Key, Document  string
	Label          corpus.StanceLabel
	Number, Rank   int
	Status         corpus.BodyStatus
	Text           string // of the document, its length
	URL, Source    string
	Verdict, Notes string
}

func readPairs(t *testing.T, name string, data []byte) (lines []pairLine, faults []string, end error) {
	t.Helper()
	for p, err := range ReadPairs(name, bytes.NewReader(data)) {
		var record *RecordError
		switch {
		case errors.As(err, &record):
			faults = append(faults, fmt.Sprintf("%d: %v", record.Number, record.Err))
			continue
		case err != nil:
			end = err
			continue
		}
		d := p.Document
		if d.SHA256 != d.Seal().SHA256 {
			t.Errorf("row %d: %s is not sealed", p.Row, d.ID)
		}
		if diff := cmp.Diff(corpus.Link{Row: p.RowKey(), DocumentID: d.ID, Label: p.Label, Number: p.Number, Rank: p.Rank}, p.Link()); diff != "" {
			t.Errorf("row %d: Link: %s", p.Row, diff)
		}
		lines = append(lines, pairLine{p.Row, p.RowKey(), d.ID, p.Label, p.Number, p.Rank, d.BodyStatus, fmt.Sprint(len(d.Text)), d.URL, d.Source, p.Verdict, strings.Join(p.Notes, ";")})
	}
	return lines, faults, end
}

func TestReadPairs(t *testing.T) {
	ferries, tolls := Pair{ClaimText: "Ferries are free.", Table: tableLines}.RowKey(), Pair{ClaimText: "The harbor board lowered tolls.", Table: tableLines}.RowKey()
	const aa01 = "reddit:t3_aa01"
	for _, c := range []struct {
		file   string
		want   []pairLine
		faults []string
	}{
		{
			"pairs_documents.csv",
			[]pairLine{
				{1, "raguard/1", aa01, "supporting", 1, 1, "full", "75", "https://www.reddit.com/r/harborville/comments/aa01/harbor_tolls", "reddit.com/r/harborville", "", ""},
				{2, "raguard/1", "reddit:t3_bb02", "unrelated", 2, 2, "missing", "11", "https://www.reddit.com/gallery/bb02", "reddit.com", "", ""},
				{3, "raguard/1", "raguard:3", "unrelated", 3, 3, "missing", "11", "", "reddit.com", "", ""},
				{4, "raguard/2", "raguard:4", "misleading", 4, 1, "full", "60", "", "reddit.com", "", ""},
				{5, "raguard/2", aa01, "unrelated", 5, 2, "full", "75", "https://www.reddit.com/r/harborville/comments/aa01/harbor_tolls", "reddit.com/r/harborville", "", "two texts for reddit:t3_aa01: kept the one of 89 bytes, not the one of 32"},
				{9, "raguard/3", "reddit:t3_dd04", "supporting", 9, 1, "full", "51", "https://www.reddit.com/comments/dd04/my_page/", "reddit.com", "", ""},
				{10, "raguard/3", "reddit:t1_ee05", "unrelated", 10, 2, "full", "50", "https://www.reddit.com/r/harborville/comments/aa01/harbor_tolls/ee05/", "reddit.com/r/harborville", "", ""},
				{11, "raguard/3", aa01, "supporting", 11, 3, "full", "99", "https://www.reddit.com/r/harborville/comments/aa01/", "reddit.com/r/harborville", "", "two texts for reddit:t3_aa01: kept the one of 113 bytes, not the one of 89"},
			},
			[]string{
				`6: label "refuting" is none of supporting, misleading, unrelated`,
				`7: Document ID "seven" is no number`,
				`8: it has 3 fields, the header 6`,
			},
		},
		{
			"pairs_nested.json",
			[]pairLine{
				{1, "raguard/1", aa01, "supporting", 1, 1, "full", "57", "https://www.reddit.com/r/harborville/comments/aa01/harbor_tolls/", "reddit.com/r/harborville", "pants-on-fire", ""},
				{2, "raguard/1", "raguard:2", "unrelated", 2, 2, "deleted", "9", "", "reddit.com", "pants-on-fire", ""},
				{4, "raguard/2", aa01, "unrelated", 4, 1, "full", "57", "https://www.reddit.com/r/harborville/comments/aa01/harbor_tolls/", "reddit.com/r/harborville", "half-true", ""},
			},
			[]string{
				"3: document 3 says claim 9 and stands under claim 1",
				`5: claim 2: ["odd"] is no text or number`,
				`6: claim 3: claim_id "three" is no number`,
			},
		},
		{
			"pairs_lines.jsonl",
			[]pairLine{
				{1, ferries, corpus.DocumentID("https://news.example.org/fares"), "supporting", 1, 1, "full", "51", "https://news.example.org/fares?utm_source=x", "news.example.org", "False", ""},
				{2, tolls, aa01, "unrelated", 2, 1, "short", "18", "https://www.reddit.com/comments/aa01/", "reddit.com", "", ""},
				{4, ferries, "d_95c82b856e4b95e4", "misleading", 4, 2, "full", "39", "", "", "False", ""},
				{9, ferries, aa01, "unrelated", 9, 3, "short", "18", "https://www.reddit.com/comments/aa01/", "reddit.com", "", ""},
			},
			[]string{
				`5: label "true" is none of supporting, misleading, unrelated`,
				"6: it has no claim",
				"7: it has neither document nor address",
				"8: unexpected end of JSON input",
				"9: its text of 54 bytes is another than the one of 32 bytes that came before for https://www.reddit.com/comments/aa01/; the first stays",
			},
		},
	} {
		t.Run(c.file, func(t *testing.T) {
			data, err := os.ReadFile("testdata/" + c.file)
			if err != nil {
				t.Fatal(err)
			}
			for name, packed := range map[string][]byte{c.file: data, "x.gz": gzipped(t, data), "x.zst": zstandard(t, data), "bom": append([]byte("\ufeff"), data...)} {
				got, faults, end := readPairs(t, name, packed)
				if diff := cmp.Diff(c.want, got); diff != "" || end != nil {
					t.Errorf("%s: end %v (-want +got):\n%s", name, end, diff)
				}
				if diff := cmp.Diff(c.faults, faults); diff != "" {
					t.Errorf("%s: faults (-want +got):\n%s", name, diff)
				}
			}
		})
	}
}

func TestReadPairsErrors(t *testing.T) {
	for _, c := range []struct{ name, data, want string }{
		{"empty", "", "it is empty"},
		{"a page", "<html>", "is no known form"},
		{"a claims table", "Claim ID,Claim,Verdict\n1,x,True\n", "is no known form"},
		{"a column missing", "Document ID,Title,Claim ID,Document Label\n1,x,1,unrelated\n", "no column Full Text, Link"},
		{"array cut off", `[{"claim_id":"1","claim":"x","documents":[]},{"claim`, "unexpected EOF"},
	} {
		lines, _, end := readPairs(t, c.name, []byte(c.data))
		if len(lines) != 0 || end == nil || !strings.Contains(end.Error(), c.want) {
			t.Errorf("%s: %d pairs, end %v, want %q", c.name, len(lines), end, c.want)
		}
	}
	for range ReadPairs("stop", strings.NewReader("Document ID,Title,Full Text,Claim ID,Document Label,Link\n1,x,y,1,unrelated,\n2,x,y,1,unrelated,\n")) {
		break // a reader that went on would panic
	}
}

func TestRowKey(t *testing.T) {
	a := Pair{Table: tableLines, ClaimText: "Ferries are free."}
	b := Pair{Table: tableLines, ClaimText: "Ferries are free", ClaimNumber: 2}
	if a.RowKey() == b.RowKey() || a.RowKey() != (Pair{Table: tableLines, ClaimText: "Ferries are free.", ClaimNumber: 9}).RowKey() {
		t.Errorf("keys %s and %s", a.RowKey(), b.RowKey())
	}
	if got := (Pair{Table: tableRAGuard, ClaimNumber: 2620}).RowKey(); got != "raguard/2620" {
		t.Errorf("RowKey = %s", got)
	}
}

// A line tells when its claim was made and checked; a date that is none refuses the line.
func TestPairsTellDates(t *testing.T) {
	lines := `{"claim":"One.","date":"June 1, 2021","review_date":"2021-06-07T08:00:00Z","text":"It says so.","label":"unrelated"}
{"claim":"Two.","text":"It says so, too.","label":"unrelated"}
{"claim":"Three.","date":"some day","text":"It says that.","label":"unrelated"}
{"claim":"Four.","review_date":"2021-02-30","text":"It says this.","label":"unrelated"}
`
	var got []string
	for p, err := range ReadPairs("lines", strings.NewReader(lines)) {
		var record *RecordError
		switch {
		case errors.As(err, &record):
			got = append(got, fmt.Sprintf("%d: %.40s", record.Number, record.Err))
		case err != nil:
			t.Fatal(err)
		default:
			got = append(got, p.ClaimText+" "+p.Date+" "+p.ReviewDate)
		}
	}
	want := []string{"One. 2021-06-01 2021-06-07", "Two.  ", `3: date: read date "some day": no known for`, `4: review_date: read date "2021-02-30": day`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("pairs (-want +got):\n%s", diff)
	}
}

// Documents keep no secret of an address, no address that is none of the web, and no NUL.
func TestPairsOfHostileDocuments(t *testing.T) {
	for _, c := range []struct{ name, line, url, text, notes, fault string }{
		{"a password", `{"claim":"One.","text":"It says so.","url":"https://u:pw@h.example/x","label":"unrelated"}`, "https://h.example/x", "It says so.", "a user name or password was dropped from an address", ""},
		{"a password with a slash", `{"claim":"One.","text":"It says so.","url":"https://u%2Fv:p%40w@h.example?q=a@b","label":"unrelated"}`, "https://h.example/?q=a@b", "It says so.", "a user name or password was dropped from an address", ""},
		{"a script", `{"claim":"One.","text":"It says so.","url":"javascript:alert(1)","label":"unrelated"}`, "", "", "", `"javascript:alert(1)" is no address of the web`},
		{"another scheme, with a password", `{"claim":"One.","text":"It says so.","url":"ftp://u:pw@h.example/x","label":"unrelated"}`, "", "", "", `"ftp://h.example/x" is no address of the web`},
		{"no scheme", `{"claim":"One.","text":"It says so.","url":"h.example/x","label":"unrelated"}`, "", "", "", `"h.example/x" is no address of the web`},
		{"a NUL in the text", `{"claim":"One.","text":"It\u0000 says so.","url":"https://h.example/x","label":"unrelated"}`, "https://h.example/x", "It says so.", "", ""},
		{"a NUL in the claim", `{"claim":"One\u0000.","text":"It says so.","url":"https://h.example/x","label":"unrelated"}`, "", "", "", "its claim holds a NUL byte"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for p, err := range ReadPairs("lines", strings.NewReader(c.line)) {
				if c.fault != "" || err != nil {
					if err == nil || c.fault == "" || !strings.Contains(err.Error(), c.fault) {
						t.Errorf("pair %+v, error %v; want %q", p, err, c.fault)
					}
					continue
				}
				if d := p.Document; d.URL != c.url || d.Text != c.text || strings.Join(p.Notes, ";") != c.notes {
					t.Errorf("document %q %q, notes %q", d.URL, d.Text, p.Notes)
				}
			}
		})
	}
}
