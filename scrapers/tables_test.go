package scrapers

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"assay/corpus"

	"github.com/google/go-cmp/cmp"
)

// A tableOutcome is what a table makes of its fixture: the golden file beside it.
type tableOutcome struct {
	Rows    []Row          `json:"rows"`
	Claims  []corpus.Claim `json:"claims"`
	Refused []string       `json:"refused,omitempty"`
	LeftOut []string       `json:"left_out,omitempty"` // rows whose claims are excluded
	Notes   []string       `json:"notes,omitempty"`
}

func readTable(t *testing.T, table Table, name string, r io.Reader) tableOutcome {
	t.Helper()
	var got tableOutcome
	for row, err := range table.Read(name, r) {
		if err != nil {
			got.Refused = append(got.Refused, err.Error())
			continue
		}
		for _, note := range row.Notes {
			got.Notes = append(got.Notes, fmt.Sprintf("row %d: %s", row.At, note))
		}
		row.At, row.Notes = 0, nil
		claims, err := table.Parse(row)
		if ex := (*corpus.ExcludedError)(nil); errors.As(err, &ex) {
			got.LeftOut = append(got.LeftOut, row.Key+": "+ex.Error())
		} else if err != nil {
			t.Fatal(err)
		}
		got.Rows, got.Claims = append(got.Rows, row), append(got.Claims, claims...)
	}
	return got
}

func TestTables(t *testing.T) {
	if !slices.IsSortedFunc(Tables, func(a, b Table) int { return strings.Compare(a.Name, b.Name) }) {
		t.Error("Tables is not sorted by name")
	}
	for _, table := range Tables {
		t.Run(table.Name, func(t *testing.T) {
			if table.Version < 1 || table.Doc == "" || table.Reference == "" || (len(table.Shapes) == 0) != (table.Name == "mapped") {
				t.Errorf("version, doc, reference or columns are missing: %+v", table)
			}
			if !slices.Contains([]string{"captured", "documented", "unproven"}, table.Proven) {
				t.Errorf("proven = %q", table.Proven)
			}
			files, err := os.ReadDir(filepath.Join("testdata", "tables", table.Name))
			if err != nil {
				t.Fatalf("table %s has no fixture: %v", table.Name, err)
			}
			fixtures := 0
			for _, f := range files {
				if !strings.HasSuffix(f.Name(), goldenSuffix) {
					fixtures++
					tableFixture(t, table, f.Name())
				}
			}
			if fixtures == 0 {
				t.Errorf("table %s has no fixture", table.Name)
			}
		})
	}
}

// goldenSuffix follows the name of a fixture.
const goldenSuffix = ".golden.json"

func tableFixture(t *testing.T, table Table, name string) {
	t.Helper()
	file := filepath.Join("testdata", "tables", table.Name, name)
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	whole := io.Reader(strings.NewReader(string(raw)))
	if table.Name == "mapped" {
		table = Mapped(Columns{"claim": "statement", "rating": "label", "date": "said on", "speaker": "who", "url": "check"})
	} else {
		var found Table
		if found, whole, err = DetectReader(whole); err != nil || found.Name != table.Name {
			t.Fatalf("DetectReader(%s) = %q, %v", file, found.Name, err)
		}
	}
	got := readTable(t, table, name, whole)
	if again := readTable(t, table, name, iotest.OneByteReader(strings.NewReader("\ufeff"+string(raw)))); !cmp.Equal(got, again) {
		t.Errorf("%s: a byte order mark or short reads change the rows:\n%s", file, cmp.Diff(got, again))
	}
	keys := map[string]bool{}
	for _, row := range got.Rows {
		if row.Key == "" || keys[row.Key] {
			t.Errorf("%s: key %q of row %d is empty or comes twice", file, row.Key, row.At)
		}
		keys[row.Key] = true
		for i, l := range row.Links {
			if l.Row != row.Key || l.Rank != i+1 || table.Pages != (l.URL != "") {
				t.Errorf("%s: link %d of row %s is %+v", file, i, row.Key, l)
			}
		}
	}
	for _, c := range got.Claims {
		if c.Source != table.Name || c.ID != corpus.ClaimID(c.Text, c.Speaker, c.ReviewURL, c.StatedDate) || c.Text == "" {
			t.Errorf("%s: claim %+v has another source or id, or no text", file, c)
		}
	}
	goldenTable(t, file+goldenSuffix, got)
}

func goldenTable(t *testing.T, file string, got tableOutcome) {
	t.Helper()
	if *update {
		raw, err := json.MarshalIndent(got, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, append(raw, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var want tableOutcome
	if err := json.Unmarshal(raw, &want); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

func TestDetect(t *testing.T) {
	if got, err := Detect(Sample{Form: FormCSV, Columns: []string{"Original Verdict", "Claim", "Claim ID", "Verdict", "Notes", "Document IDs", "Document Labels"}}); err != nil || got.Name != "raguard" {
		t.Errorf("Detect of reordered columns with one more = %q, %v", got.Name, err)
	}
	_, err := Detect(Sample{Form: FormCSV, Columns: []string{"Claim ID", "Claim", "Verdict", "Document IDs", "Document Labels"}})
	if err == nil || !strings.Contains(err.Error(), `nearest is raguard, which also needs ["Original Verdict"]`) {
		t.Errorf("Detect without a column = %v; want what is missing", err)
	}
	for _, head := range []string{"", "\"open", "a,b\n1,2\n"} {
		if got, r, err := DetectReader(strings.NewReader(head)); err == nil || r == nil {
			t.Errorf("DetectReader(%q) = %q without an error, or without a reader", head, got.Name)
		}
	}
	if _, _, err := DetectReader(iotest.ErrReader(errors.New("disk on fire"))); err == nil || !strings.Contains(err.Error(), "disk on fire") {
		t.Errorf("DetectReader of a broken file = %v", err)
	}
}

const raguardHead = "Claim ID,Claim,Verdict,Document IDs,Document Labels,Original Verdict\n"

func TestRAGuardErrorsNameRowAndColumn(t *testing.T) {
	good := `1,Fares rose.,True,[1],['unrelated'],true` + "\n"
	tests := []struct{ name, row, want string }{
		{"id is no number", `x,C,True,[2],['unrelated'],true`, `row 2 (line 3), column "Claim ID": strconv.Atoi: parsing "x": invalid syntax`},
		{"id is zero", `0,C,True,[2],['unrelated'],true`, `row 2 (line 3), column "Claim ID": 0 is not positive`},
		{"id comes twice", `1,C,True,[2],['unrelated'],true`, `row 2 (line 3), column "Claim ID": 1 is taken by row 1`},
		{"no claim", `2," ",True,[2],['unrelated'],true`, `row 2 (line 3), column "Claim": empty`},
		{"verdict", `2,C,Maybe,[2],['unrelated'],true`, `row 2 (line 3), column "Verdict": "Maybe" is neither True nor False`},
		{"no original verdict", `2,C,True,[2],['unrelated'],`, `row 2 (line 3), column "Original Verdict": empty`},
		{"ids are no list", `2,C,True,2,['unrelated'],true`, `row 2 (line 3), column "Document IDs": byte 0: want [, have '2'`},
		{"ids are strings", `2,C,True,['2'],['unrelated'],true`, `row 2 (line 3), column "Document IDs": byte 1: want an integer, have '\''`},
		{"id below one", `2,C,True,[-2],['unrelated'],true`, `row 2 (line 3), column "Document IDs": -2 is not positive`},
		{"document comes twice", `2,C,True,"[2, 2]","['unrelated', 'unrelated']",true`, `row 2 (line 3), column "Document IDs": 2 comes twice`},
		{"labels are words", `2,C,True,[2],[unrelated],true`, `row 2 (line 3), column "Document Labels": byte 1: want a quoted string, have 'u'`},
		{"unknown label", `2,C,True,[2],['refuting'],true`, `row 2 (line 3), column "Document Labels": "refuting" is no label`},
		{"too few labels", `2,C,True,"[2, 3]",['unrelated'],true`, `row 2 (line 3), column "Document Labels": 1 labels for 2 documents`},
		{"not UTF-8", "2,C\xff,True,[2],['unrelated'],true", `row 2 (line 3), column "Claim": not UTF-8`},
		{"too few fields", `2,C,True,[2]`, `row 2: record on line 3: wrong number of fields`},
	}
	for _, tt := range tests {
		var errs []string
		var numbers []int
		for row, err := range raguard.Read("", strings.NewReader(raguardHead+good+tt.row+"\n"+`9,"Line
break",False,[9],['misleading'],false`+"\n")) {
			if err != nil {
				errs = append(errs, err.Error())
				continue
			}
			numbers = append(numbers, row.Number)
		}
		if len(errs) != 1 || errs[0] != "read raguard table: "+tt.want {
			t.Errorf("%s: errors %q, want %q", tt.name, errs, tt.want)
		}
		if diff := cmp.Diff([]int{1, 9}, numbers); diff != "" {
			t.Errorf("%s: the rows around it (-want +got):\n%s", tt.name, diff)
		}
	}
	for name, table := range map[string]string{"empty file": "", "no such column": "Claim ID,Claim\n", "quote without end": raguardHead + "1,\"C\n"} {
		n := 0
		for _, err := range raguard.Read("", strings.NewReader(table)) {
			if n++; err == nil || n > 1 {
				t.Errorf("%s: item %d has error %v", name, n, err)
			}
		}
		if n != 1 {
			t.Errorf("%s: %d items, want one error", name, n)
		}
	}
	for _, rows := range []string{good, `x,C,True,[2],['unrelated'],true` + "\n", "1,short\n"} {
		for range raguard.Read("", strings.NewReader(raguardHead+rows+rows)) {
			break // a reader may stop at any row
		}
	}
	if _, err := Summary(raguard.Read("", strings.NewReader(raguardHead+"x\n"))); err == nil {
		t.Error("Summary of a broken table gives no error")
	}
}

func TestRAGuardParse(t *testing.T) {
	row := func(verdict, original string) Row {
		return Row{Key: "4", Number: 4, Fields: map[string]string{raguardClaim: "Fares  rose.", raguardVerdict: verdict, raguardOriginal: original}}
	}
	got, err := raguard.Parse(row("False", "mostly-murky"))
	want := []corpus.Claim{{
		ID: corpus.ClaimID("Fares  rose.", "", "", ""), Text: "Fares  rose.", RatingRaw: "mostly-murky", Source: "raguard", Number: 4,
		Flags: []string{corpus.FlagUnmapped},
	}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("an unmapped rating: %v (-want +got):\n%s", err, diff)
	}
	if _, err := raguard.Parse(row("True", "barely-true")); err == nil || !strings.Contains(err.Error(), `row 4 of raguard, column "Verdict": True contradicts the rating barely-true`) {
		t.Errorf("a contradicting verdict: %v", err)
	}
	var ex *corpus.ExcludedError
	if _, err := raguard.Parse(row("True", "full-flop")); !errors.As(err, &ex) || ex.Reason != "flip_o_meter" {
		t.Errorf("a flip-o-meter rating: %v", err)
	}
}

func TestPythonLists(t *testing.T) {
	ints := []struct {
		in   string
		want []int
		err  string
	}{
		{"[]", nil, ""},
		{" [ 1 ,-2,\n30 , ] ", []int{1, -2, 30}, ""},
		{"", nil, "byte 0: want [, have the end"},
		{"(1, 2)", nil, "byte 0: want [, have '('"},
		{"[1 2]", []int{1}, "byte 3: want , or ], have '2'"},
		{"[1,,2]", []int{1}, "byte 3: want an integer, have ','"},
		{"[,]", nil, "byte 1: want an integer, have ','"},
		{"[1", []int{1}, "byte 2: want , or ], have the end"},
		{"[1,", []int{1}, "byte 3: want an integer, have the end"},
		{"[1] x", []int{1}, "byte 4: want the end, have 'x'"},
		{"[1.5]", []int{1}, "byte 2: want , or ], have '.'"},
		{"[[1]]", nil, "byte 1: want an integer, have '['"},
		{"[99999999999999999999]", nil, "byte 1: want an integer, have '9'"},
		{"[None]", nil, "byte 1: want an integer, have 'N'"},
	}
	for _, tt := range ints {
		got, err := pythonInts(tt.in)
		if text := errorText(err); text != tt.err || !slices.Equal(got, tt.want) {
			t.Errorf("pythonInts(%q) = %v, %q, want %v, %q", tt.in, got, text, tt.want, tt.err)
		}
	}
	texts := []struct {
		in   string
		want []string
		err  string
	}{
		{`[]`, nil, ""},
		{`['a', "b"]`, []string{"a", "b"}, ""},
		{`["it's", 'say "so"', 'it\'s', "\"x\""]`, []string{"it's", `say "so"`, "it's", `"x"`}, ""},
		{`['a\\b\n\t\x41\u00e9\U0001F600é, ]']`, []string{"a\\b\n\tA\u00e9\U0001F600é, ]"}, ""},
		{`['']`, []string{""}, ""},
		{`['a`, []string{""}, "byte 3: want the closing quote, have the end"},
		{"['a\nb']", []string{""}, `byte 3: want the closing quote, have '\n'`},
		{`['a\qb']`, []string{""}, `byte 3: want an escape sequence, have '\\'`},
		{`['\ud800']`, []string{""}, `byte 2: want an escape sequence, have '\\'`},
		{`['\x4']`, []string{""}, `byte 2: want an escape sequence, have '\\'`},
		{`['a' 'b']`, []string{"a"}, `byte 5: want , or ], have '\''`},
		{`[b'a']`, []string{""}, "byte 1: want a quoted string, have 'b'"},
		{`[1]`, []string{""}, "byte 1: want a quoted string, have '1'"},
	}
	for _, tt := range texts {
		got, err := pythonStrings(tt.in)
		if text := errorText(err); text != tt.err || !slices.Equal(got, tt.want) {
			t.Errorf("pythonStrings(%q) = %q, %q, want %q, %q", tt.in, got, text, tt.want, tt.err)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// Every list that we read and write again is the same list.
func FuzzPythonStrings(f *testing.F) {
	for _, seed := range []string{`['a', "b"]`, `['it\'s', ]`, `[`, `['\u00e9\x41']`, "[ ]", `["\\"]`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, err := pythonStrings(s)
		if err != nil {
			return
		}
		var b strings.Builder
		escape := strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\n", `\n`, "\r", `\r`)
		for _, item := range got {
			b.WriteString("'" + escape.Replace(item) + "', ")
		}
		again, err := pythonStrings("[" + b.String() + "]")
		if err != nil || !slices.Equal(got, again) {
			t.Errorf("%q reads as %q, written again as %q, %v", s, got, again, err)
		}
	})
}

func TestSummary(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("testdata", "tables", "raguard", "claims.csv"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := Summary(raguard.Read("", strings.NewReader(string(raw))))
	if err != nil {
		t.Fatal(err)
	}
	want := Numbers{
		Claims: 5, True: 3, False: 2, Links: 7, Supporting: 2, Misleading: 2, Unrelated: 3,
		ClaimsWithSupporting: 2, ClaimsWithMisleading: 2, ClaimsWithBoth: 1, ClaimsOnlyUnrelated: 1,
		MisleadingOnTrue: 1, MisleadingOnFalse: 1, SupportingOnTrue: 1, SupportingOnFalse: 1,
		Original: map[string]int{"mostly-false": 1, "half-true": 1, "pants-on-fire": 1, "true": 1, "mostly-true": 1},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Summary (-want +got):\n%s", diff)
	}
}

func TestRealRAGuardClaims(t *testing.T) {
	dir := realFolder(t)
	index := captures(t, dir, "raguard-claims")
	if len(index) != 1 {
		t.Fatalf("%d rows of kind raguard-claims", len(index))
	}
	table, whole, err := DetectReader(strings.NewReader(string(index[0].body)))
	if err != nil {
		t.Fatal(err)
	}
	ids, words, documents := map[string]bool{}, 0, map[string]bool{}
	rows := func(rows iter.Seq2[Row, error]) iter.Seq2[Row, error] {
		return func(yield func(Row, error) bool) {
			for row, err := range rows {
				if !yield(row, err) || err != nil {
					return
				}
				claims, err := table.Parse(row)
				if err != nil || len(claims) != 1 || claims[0].Number != row.Number || claims[0].Verdict6 == "" {
					t.Errorf("row %d gives %v, %v", row.Number, claims, err)
					continue
				}
				ids[claims[0].ID] = true
				words += len(strings.Fields(claims[0].Text))
				for _, l := range row.Links {
					documents[l.DocumentID] = true
				}
			}
		}
	}(table.Read("", whole))
	got, err := Summary(rows)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	var have, want any
	if err := json.Unmarshal(raw, &have); err != nil {
		t.Fatal(err)
	}
	if raw, err = json.Marshal(index[0].want); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("the published numbers (-want +got):\n%s", diff)
	}
	if len(ids) != got.Claims || len(documents) != got.Links {
		t.Errorf("%d claim ids for %d claims, %d documents for %d links", len(ids), got.Claims, len(documents), got.Links)
	}
	t.Logf("%s: %+v; mean claim length %.2f words", table.Name, got, float64(words)/float64(got.Claims))
}

func TestTablesReadOnAfterABadRecord(t *testing.T) {
	header := "Claim ID,Claim,Verdict,Document IDs,Document Labels,Original Verdict\n"
	row := func(n, claim string) string { return n + "," + claim + ",True,[],[],true\n" }
	for name, c := range map[string]struct {
		table Table
		text  string
		want  []string // keys of rows, and what errors hold
	}{
		"a stray quote":        {raguard, header + row("1", `say "hi"`) + row("2", "two"), []string{"! row 1: parse error on line 2", "2"}},
		"too few fields":       {raguard, header + "1,one\n" + row("2", "two"), []string{"! row 1: record on line 2: wrong number of fields", "2"}},
		"a quote inside one":   {raguard, header + row("1", "one") + row("2", `"a"b"`) + row("3", "three"), []string{"1", "! nothing after it is read"}},
		"a stray quote, plain": {pairs, "claim,verdict\nsay \"hi\",true\n,false\ntwo,true\n", []string{"! row 1: parse error", "! row 2: column \"claim\" is empty", PairsRow("two", "true", "", "").Key}},
		"an open quote, plain": {pairs, "claim,verdict\n\"one,true\ntwo,true\n", []string{"! nothing after it is read"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for row, err := range c.table.Read("", strings.NewReader(c.text)) {
				if err != nil {
					row.Key = "! " + err.Error()
				}
				got = append(got, row.Key)
			}
			same := func(want, got string) bool {
				text, isError := strings.CutPrefix(want, "! ")
				return want == got || isError && strings.HasPrefix(got, "! ") && strings.Contains(got, text)
			}
			if !slices.EqualFunc(c.want, got, same) {
				t.Errorf("rows %q, want %q", got, c.want)
			}
		})
	}
}
