package assay

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"assay/kv"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
)

// A badTable is a file with something wrong in it, and what an import has to say of it.
type badTable struct {
	name    string
	text    string
	options ImportOptions
	stored  []string // claims of the rows that are stored
	refused []string // what each problem has to hold, the row's place included
	left    map[string]int
	ends    string // what the error that ends it has to hold; "" for none
}

const (
	mappedCSV = "claim=statement,rating=label,date=said,url=check"
	csvHead   = "statement,label,said,check\n"
	liarTail  = "\teconomy\tada-quill\t\t\tnone\t1\t0\t1\t0\t0\ta speech\n"
	review    = `{"@type":"ClaimReview","claimReviewed":%q,"reviewRating":{"alternateName":%q},"url":"https://checks.example/%s/"}`
)

func badTables() []badTable {
	big := strings.Repeat("gulls ", 10<<20/6)
	by := ImportOptions{Map: mappedCSV}
	av := func(claim, date string) string {
		return fmt.Sprintf(`{"claim": %q, "claim_date": %q, "label": "Refuted", "speaker": null, "fact_checking_article": "https://checks.example/x", "reporting_source": "", "fact_checking_strategies": [], "questions": []}`, claim, date)
	}
	return []badTable{
		{name: "too few and too many columns", options: by, text: csvHead + "One.,true,,\nTwo.,true\nThree.,true,,,,\nFour.,false,,\n",
			stored: []string{"One.", "Four."}, refused: []string{"row 2: record on line 3: wrong number of fields", "row 3: record on line 4: wrong number of fields"}},
		{name: "too few columns between tabs", text: "1.json\ttrue\tOne." + liarTail + "2.json\ttrue\tTwo.\n" + "3.json\tfalse\tThree." + liarTail,
			stored: []string{"One.", "Three."}, refused: []string{"row 2 (line 2): wrong number of fields: 3"}},
		{name: "an id that is none", text: "1.json\ttrue\tOne." + liarTail + "2.xml\ttrue\tTwo." + liarTail,
			stored: []string{"One."}, refused: []string{`row 2, column "id": "2.xml" is not like 12134.json`}},
		{name: "a quote that is not closed", options: by, text: csvHead + "One.,true,,\n\"Two.,true,,\nThree.,true,,\n",
			stored: []string{"One."}, ends: "row 2: record on line 3; parse error on line"},
		{name: "quotes between tabs are text", options: by, text: strings.ReplaceAll(csvHead, ",", "\t") + "\"One.\ttrue\t\t\nTwo \"2\".\ttrue\t\t\n", stored: []string{"\"One.", "Two \"2\"."}},
		{name: "a stray quote", options: by, text: csvHead + "One \"1\".,true,,\nTwo.,true,,\n", stored: []string{"Two."}, refused: []string{"row 1: parse error on line 2"}},
		{name: "a NUL byte", options: by, text: csvHead + "One\x00.,true,,\nTwo.,true,,\n", stored: []string{"Two."}, refused: []string{`row 1 (line 2), column "statement": it holds a NUL byte`}},
		{name: "an escaped NUL", text: fmt.Sprintf(review, "One", "True", "1") + "\n" + `{"text":"Two\u0000.","claimReview":[]}` + "\n",
			stored: []string{"One"}, refused: []string{"item 2 is neither a DataFeedItem nor a ClaimReview"}},
		{name: "no UTF-8 in a CSV", options: by, text: csvHead + "Caf\xe9.,true,,\nTwo.,true,,\n", stored: []string{"Two."}, refused: []string{`row 1 (line 2), column "statement": not UTF-8; if the file is in another character set`}},
		{name: "no UTF-8 in JSON", text: fmt.Sprintf(review, "One", "True", "1") + "\n{\"@type\":\"ClaimReview\",\"claimReviewed\":\"Caf\xe9\"}\n", stored: []string{"One"}, refused: []string{"item 2 not UTF-8"}},
		{name: "UTF-16", text: "\xff\xfec\x00l\x00a\x00i\x00m\x00", ends: "it is UTF-16; save it as UTF-8"},
		{name: "one id with two contents", text: "1.json\ttrue\tOne." + liarTail + "1.json\tfalse\tOne." + liarTail + "1.json\ttrue\tOne." + liarTail,
			stored: []string{"One."}, refused: []string{`row 2: it is row 1 of the file again, with another "label"`}},
		{name: "one review with two ratings", text: fmt.Sprintf(review, "One", "True", "1") + "\n" + fmt.Sprintf(review, "One", "False", "1") + "\n",
			stored: []string{"One"}, refused: []string{`row 2: it is row 1 of the file again, with another "item"`}},
		{name: "a rating of no vocabulary", options: by, text: csvHead + "One.,perhaps,,\nTwo.,\"It is hard to say whether any of this holds, and nobody tried\",,\nThree.,,,\n", stored: []string{"One.", "Two.", "Three."}},
		{name: "dates that are none", options: by, text: csvHead + "One.,true,31 February 2021,\nTwo.,true,03-04-2020,\nThree.,true,never,\nFour.,true,2021-05-06,\n", stored: []string{"Four."},
			refused: []string{`row 1 (line 2), column "said": read date "31 February 2021"`, "either way round", "no known form"}},
		{name: "a day of no month", text: "[" + av("One.", "31-11-2020") + "," + av("Two.", "3-11-2020") + "]", stored: []string{"Two."}, refused: []string{`row 1 (line 1), column "claim_date": read date`}},
		{name: "no claim", options: by, text: csvHead + " ,true,,\nTwo.,true,,\n", stored: []string{"Two."}, refused: []string{`row 1 (line 2), column "statement": empty`}},
		{name: "no claim in a review", text: `{"@type":"ClaimReview","claimReviewed":"","reviewRating":{"alternateName":"True"}}`, refused: []string{"row 1: it names no claim"}},
		{name: "an address of no web", options: by, text: csvHead + "One.,true,,javascript:x\nTwo.,true,,https://checks.example/\n", stored: []string{"Two."}, refused: []string{`column "check": "javascript:x" is no address of the web`}},
		{name: "a field of 10 MB", options: by, text: csvHead + big + ",true,,\nTwo.,true,,\n", stored: []string{"Two."}, refused: []string{"row 1: 10485"}},
		{name: "a field of 40 MB", options: by, text: csvHead + strings.Repeat(big, 4) + ",true,,\nTwo.,true,,\n", ends: "it takes more than 32 MiB"},
		{name: "a line of 40 MB", text: "1.json\ttrue\tOne." + liarTail + "2.json\ttrue\t" + strings.Repeat(big, 4) + liarTail + "3.json\ttrue\tThree." + liarTail, stored: []string{"One.", "Three."}, refused: []string{"row 2 (line 2): it takes more than 32 MiB"}},
		{name: "a bracket that is not closed", text: `[` + av("One.", "3-11-2020") + `,{"claim": "Two."`, stored: []string{"One."}, ends: "unexpected EOF; nothing after it is read"},
		{name: "quotation marks inside JSON", text: "[" + av("One.", "3-11-2020") + ",\n{\"claim\": \"Two \"2\".\"}]", stored: []string{"One."}, ends: "row 2 (line 2): invalid character '2' after object key:value pair"},
		{name: "a bad line between lines", text: `{"id":1,"label":"SUPPORTS","verifiable":"VERIFIABLE","evidence":[],"claim":"One."}` + "\n{\"id\":2,\n" + `{"id":3,"label":"SUPPORTS","verifiable":"VERIFIABLE","evidence":[[[1,2]]],"claim":"Three."}` + "\n" + `{"id":4,"label":"REFUTES","verifiable":"VERIFIABLE","evidence":[],"claim":"Four."}` + "\n",
			stored: []string{"One.", "Four."}, refused: []string{"row 2 (line 2): unexpected end of JSON input", `row 3 (line 3), column "evidence": an item has 2 parts, not 4`}},
		{name: "quotation marks with two readings", text: "[\n  {\n    \"url\": \"https://www.snopes.com/fact-check/a/\",\n    \"evaluation\": \"true\",\n    \"title\": \"A \"b\", \"c\" d\",\n    \"author\": \"\",\n    \"statement\": \"One.\",\n    \"post_author\": \"\",\n    \"date_posted\": \"\"\n  }\n]\n",
			options: ImportOptions{As: "snopes_scrape"}, ends: "can be read in several ways; nothing after it is read"},
		{name: "no reviews", text: `{"@type":"DataFeed","dataFeedElement":[{"@type":"DataFeedItem","item":null},` + fmt.Sprintf(review, "Two", "True", "2") + `]}`, stored: []string{"Two"}, left: map[string]int{"no_review": 1}},
		{name: "an error for a reply", options: ImportOptions{As: "factcheck_tools"}, text: `{}` + "\n" + `{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"Quota exceeded"}}` + "\n", refused: []string{"row 1: the service says 429 RESOURCE_EXHAUSTED: Quota exceeded"}},
		{name: "an empty file", text: " \n", ends: "the file is empty"},
		{name: "a web page", text: "<!DOCTYPE html>\n<p>No table.</p>\n", ends: "fits none"},
		{name: "a target that is none", options: ImportOptions{Map: "claim=statement,verdict=label"}, text: csvHead, ends: `a claim has no "verdict"; column "label" can be author, claim, date`},
		{name: "a column that is not there", options: ImportOptions{Map: "claim=statement,rating=labl"}, text: csvHead + "One.,true,,\n", ends: `there is no column "labl" (its rating); the file has ["statement" "label" "said" "check"]`},
		{name: "a map without a rating", options: ImportOptions{Map: "claim=statement"}, text: csvHead, ends: "it names no column for rating"},
		{name: "a map beside a format", options: ImportOptions{Map: mappedCSV, As: "liar"}, text: csvHead, ends: "--as liar"},
		{name: "a format that is none", options: ImportOptions{As: "liars"}, text: csvHead, ends: `table "liars" is unknown; known are averitec`},
		{name: "a format without its columns", options: ImportOptions{As: "fever"}, text: csvHead + "One.,true,,\n", ends: `there is no column "claim" (its claim)`},
		{name: "no UTF-8 in the plainest table", text: "claim,verdict\nCaf\xe9.,true\nTwo.,true\n", stored: []string{"Two."}, refused: []string{`row 1: column "claim": not UTF-8`}},
		{name: "a NUL in the plainest table", text: "claim,verdict\nOne.,tr\x00ue\nTwo.,true\n", stored: []string{"Two."}, refused: []string{`row 1: column "verdict": it holds a NUL byte`}},
		{name: "claims that are no text", options: ImportOptions{Map: "claim=c,rating=r"}, text: `[{"c":["One."],"r":"true"},{"c":{"x":"Two."},"r":"true"},{"c":3,"r":"true"},{"c":true,"r":"true"},{"c":null,"r":"true"},{"c":"Six.","r":["true"]},{"c":"Seven.","r":true}]`, stored: []string{"Seven."},
			refused: []string{`row 1 (line 1), column "c": a claim is text, and this is a list`, "row 2 (line 1), column \"c\": a claim is text, and this is an object", "this is a number", "this is a bool", `row 5 (line 1), column "c": empty`, `row 6 (line 1), column "r": a rating is a word, and this is a list`}},
		{name: "a column twice", options: ImportOptions{Map: "claim=c,rating=r"}, text: "c,r,c\nOne.,true,Two.\n", ends: `column "c" stands twice in the header`},
		{name: "a column twice between tabs", options: ImportOptions{Map: "claim=c,rating=r"}, text: "c\tr\tc\nOne.\ttrue\tTwo.\n", ends: `column "c" stands twice in the header`},
		{name: "a column twice in JSON", options: ImportOptions{Map: "claim=c,rating=r"}, text: `{"c":"One.","r":"true","c":"Two."}`, ends: `column "c" stands twice in the header`},
		{name: "a column twice in the plainest table", text: "claim,verdict,verdict\nOne.,true,false\n", ends: `column "verdict" stands twice in the header`},
		{name: "one column for two", options: ImportOptions{Map: "claim=c,rating=c"}, text: "c\nOne.\n", ends: `column "c" cannot be both the claim and the rating`},
		{name: "two formats that fit", text: `{"text":"One.","claimReview":[],"@type":"ClaimReview","claimReviewed":"One."}`, ends: "fits claimreview and factcheck_tools equally well; say which with --as"},
	}
}

// Bad input of every kind is a refused row with its place, or an error that ends the import: never a row
// that is not what stands in the file.
func TestBadTables(t *testing.T) {
	for _, tt := range badTables() {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r, stored, err := importText(t, "file", tt.text, tt.options)
			if tt.ends == "" && err != nil || tt.ends != "" && (err == nil || !strings.Contains(err.Error(), tt.ends)) {
				t.Errorf("the import ends with %v, want %q", err, tt.ends)
			}
			if diff := cmp.Diff(slices.Sorted(slices.Values(tt.stored)), stored); diff != "" && len(tt.stored)+len(stored) > 0 {
				t.Errorf("stored (-want +got):\n%s", diff)
			}
			if r.Counts["rows refused"] != len(tt.refused) || len(r.Problems) != len(tt.refused) {
				t.Fatalf("refused %d: %.300q, want %q", r.Counts["rows refused"], r.Problems, tt.refused)
			}
			for i, want := range tt.refused {
				if !strings.Contains(r.Problems[i], want) {
					t.Errorf("problem %d is %.300q, want %q", i, r.Problems[i], want)
				}
			}
			left := 0
			for reason, n := range tt.left {
				left += n
				if r.Counts["rows left out: "+reason] != n {
					t.Errorf("left out %v, want %d for %s", r.Counts, n, reason)
				}
			}
			if sum := r.Counts["rows stored"] + r.Counts["rows repeated"] + len(tt.refused) + left; tt.ends == "" && r.Counts["rows read"] != sum {
				t.Errorf("read %d, but stored, refused and left out are %d", r.Counts["rows read"], sum)
			}
		})
	}
}

// importText imports a text and returns the claims of the rows that are stored then, sorted.
func importText(t *testing.T, name, text string, o ImportOptions) (r *ImportReport, stored []string, err error) {
	t.Helper()
	store, openErr := kv.OpenMemory()
	if openErr != nil {
		t.Fatal(openErr)
	}
	defer store.Close()
	w := &Workspace{store: store, tables: openTables(store)}
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	r, err = importClaims(t.Context(), w, path, o)
	for entry, err := range w.tables.Rows.Scan("", "") {
		if err != nil {
			t.Fatal(err)
		}
		claim := ""
		for _, field := range []string{"claim", "statement"} {
			if v, ok := entry.Value.Fields[field]; ok {
				claim = v
			}
		}
		if item := entry.Value.Fields["item"]; item != "" {
			_, claim, _ = strings.Cut(item, `"claimReviewed":"`)
			claim, _, _ = strings.Cut(claim, `"`)
		}
		stored = append(stored, claim)
	}
	slices.Sort(stored)
	return r, stored, err
}

// Packed files are read by their content whatever their names, and one that breaks off says so after what
// came before.
func TestPackedTables(t *testing.T) {
	var plain strings.Builder
	plain.WriteString(csvHead)
	for i := range 20_000 {
		fmt.Fprintf(&plain, "Gull number %d is rented by the harbour.,true,,https://checks.example/%d\n", i, i*7919)
	}
	var gz, zs bytes.Buffer
	z := gzip.NewWriter(&gz)
	fmt.Fprint(z, plain.String())
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	e, err := zstd.NewWriter(&zs)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(e, plain.String())
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	o := ImportOptions{Map: mappedCSV}
	for name, text := range map[string]string{"plain.csv": plain.String(), "packed.gz": gz.String(), "misnamed.csv": zs.String(), "mark.csv": "\ufeff" + plain.String()} {
		r, stored, err := importText(t, name, text, o)
		if err != nil || len(stored) != 20_000 || r.Counts["rows stored"] != 20_000 {
			t.Errorf("%s: %d rows, %v, %v", name, len(stored), r.Counts, err)
		}
	}
	r, stored, err := importText(t, "cut.gz", gz.String()[:gz.Len()/2], o)
	if err == nil || !strings.Contains(err.Error(), "unexpected EOF; nothing after it is read") || len(stored) == 0 || len(stored) != r.Counts["rows stored"] {
		t.Errorf("a cut file: %d rows, %v, %v", len(stored), r.Counts, err)
	}
	if _, _, err := importText(t, "packed.xz", "\xfd7zXZ\x00rest", o); err == nil || !strings.Contains(err.Error(), "packed by xz; unpack it") {
		t.Errorf("xz: %v", err)
	}
}

// The second import of a file writes nothing; one that changed replaces what changed, with the pages that a
// row links to.
func TestTablesAgain(t *testing.T) {
	store, err := kv.OpenMemory()
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	w := &Workspace{store: store, tables: openTables(store)}
	path := filepath.Join(t.TempDir(), "train.jsonl")
	line := func(id int, label string, pages ...string) string {
		var evidence []string
		for _, p := range pages {
			evidence = append(evidence, fmt.Sprintf(`[[1,2,%q,0]]`, p))
		}
		return fmt.Sprintf(`{"id":%d,"label":%q,"verifiable":"VERIFIABLE","claim":"Claim %d.","evidence":[%s]}`+"\n", id, label, id, strings.Join(evidence, ","))
	}
	for i, step := range []struct {
		text  string
		want  map[string]int
		links int
	}{
		{line(1, "SUPPORTS", "A", "B") + line(2, "REFUTES", "C"), map[string]int{"rows read": 2, "rows stored": 2, "rows known": 0, "rows changed": 0}, 3},
		{line(1, "SUPPORTS", "A", "B") + line(2, "REFUTES", "C"), map[string]int{"rows read": 2, "rows stored": 0, "rows known": 2, "rows changed": 0}, 3},
		{line(1, "REFUTES", "B") + line(2, "REFUTES", "C") + line(3, "SUPPORTS"), map[string]int{"rows read": 3, "rows stored": 2, "rows known": 1, "rows changed": 1}, 2},
	} {
		if err := os.WriteFile(path, []byte(step.text), 0o644); err != nil {
			t.Fatal(err)
		}
		r, err := importClaims(t.Context(), w, path, ImportOptions{})
		if err != nil {
			t.Fatal(err)
		}
		got := maps.Clone(r.Counts)
		maps.DeleteFunc(got, func(k string, _ int) bool { _, ok := step.want[k]; return !ok })
		for k := range step.want {
			got[k] += 0
		}
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("step %d (-want +got):\n%s", i, diff)
		}
		if n, err := w.tables.Links.Count(""); n != step.links || err != nil {
			t.Errorf("step %d: %d links, %v; want %d", i, n, err, step.links)
		}
	}
}

// A row that nothing but its wording names keeps its first rating; one with an id or an address of its own
// may have a newer edition.
func TestMappedRowsAgain(t *testing.T) {
	for _, tt := range []struct {
		name, columns, first, second string
		changed, conflicts           int
		rating                       string
	}{
		{"by its wording", "claim=statement,rating=label", "statement,label\nOne.,false\n", "statement,label\nOne.,true\n", 0, 1, "false"},
		{"by its wording, spelled otherwise", "claim=statement,rating=label", "statement,label\nOne.,mostly-true\n", "statement,label\nOne.,Mostly True\n", 1, 0, "Mostly True"},
		{"by its id", "id=n,claim=statement,rating=label", "n,statement,label\n7,One.,false\n", "n,statement,label\n7,One.,true\n", 1, 0, "true"},
		{"by its address", "url=at,claim=statement,rating=label", "at,statement,label\nhttps://checks.example/1,One.,false\n", "at,statement,label\nhttps://checks.example/1,One.,true\n", 1, 0, "true"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			store, err := kv.OpenMemory()
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			w := &Workspace{store: store, tables: openTables(store)}
			var r *ImportReport
			for i, text := range []string{tt.first, tt.second} {
				path := filepath.Join(t.TempDir(), fmt.Sprintf("c%d.csv", i+1))
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
				if r, err = importClaims(t.Context(), w, path, ImportOptions{Map: tt.columns}); err != nil {
					t.Fatal(err)
				}
			}
			if r.Counts["rows changed"] != tt.changed || r.Counts["conflicts"] != tt.conflicts || r.Counts["problems"] != tt.conflicts {
				t.Errorf("counts %v %q, want %d changed and %d conflicts", r.Counts, r.Problems, tt.changed, tt.conflicts)
			}
			if tt.conflicts > 0 && !strings.Contains(r.Problems[0], `row 1 of c2.csv: claim "One." of mapped contradicts the one imported before: its rating is "false", not "true"`) {
				t.Errorf("problem %q", r.Problems[0])
			}
			for e, err := range w.tables.Rows.Scan("", "") {
				if err != nil || e.Value.Fields["rating"] != tt.rating {
					t.Errorf("stored %v, %v; want %s", e.Value.Fields, err, tt.rating)
				}
			}
		})
	}
}
