package output

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay/corpus"
)

func seq[T any](rows []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, r := range rows {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// tables builds tables over the rows given, sorted as a release has them.
func tables(claims []ClaimRow, docs []DocumentRow, pairs []PairRow, calls []Call) Tables {
	slices.SortFunc(claims, func(a, b ClaimRow) int { return strings.Compare(a.ID, b.ID) })
	slices.SortFunc(docs, func(a, b DocumentRow) int { return strings.Compare(a.ID, b.ID) })
	slices.SortFunc(pairs, func(a, b PairRow) int {
		return strings.Compare(a.ClaimID+"\x00"+a.DocumentID, b.ClaimID+"\x00"+b.DocumentID)
	})
	return Tables{
		Claims: seq(claims), Documents: seq(docs), Pairs: seq(pairs), Annotations: seq(calls),
		Claim: func(id string) (ClaimRow, error) {
			for _, c := range claims {
				if c.ID == id {
					return c, nil
				}
			}
			return ClaimRow{}, fmt.Errorf("no claim %s", id)
		},
		Document: func(id string) (DocumentRow, error) {
			for _, d := range docs {
				if d.ID == id {
					return d, nil
				}
			}
			return DocumentRow{}, fmt.Errorf("no document %s", id)
		},
	}
}

func claim(id, text string) ClaimRow {
	return NewClaimRow(corpus.Claim{ID: id, Text: text, Rating: "half_true", Verdict6: corpus.HalfTrue, Status: corpus.StatusSource}, "true")
}

func clustered(c ClaimRow, cluster string) ClaimRow {
	c.Cluster = cluster
	return c
}

func document(id, text string) DocumentRow {
	return NewDocumentRow(corpus.Document{ID: id, Kind: corpus.KindRedditPost, Title: "t " + id, Text: text, BodyStatus: corpus.BodyFull}.Seal())
}

func pair(claimID, docID string, label corpus.StanceLabel) PairRow {
	answer := map[corpus.StanceLabel]corpus.Answer{corpus.Supporting: corpus.AnswerTrue, corpus.Misleading: corpus.AnswerFalse, corpus.Unrelated: corpus.AnswerUnrelated}[label]
	return NewPairRow(corpus.Label{ClaimID: claimID, DocumentID: docID, Label: label, Answer: answer, Zero: corpus.AnswerUnknown, Effect: corpus.EffectUnknown, Call: "k1"},
		[]corpus.Hit{{Variant: 0, Rank: 1, Source: "local"}}, 0)
}

var oneCall = []Call{{ID: "k1", JSON: json.RawMessage(`{"id": "k1", "raw": "{}"}`)}}

func small() Tables {
	return tables(
		[]ClaimRow{clustered(claim("c_2", "two"), "c_1"), clustered(claim("c_1", "one"), "c_1")},
		[]DocumentRow{document("reddit:t3_a", "alpha"), document("reddit:t3_b", "beta")},
		[]PairRow{pair("c_1", "reddit:t3_a", corpus.Supporting), pair("c_2", "reddit:t3_a", corpus.Misleading), pair("c_2", "reddit:t3_b", corpus.Unrelated)},
		oneCall)
}

// drafted is a small release with the draft of a judge, and that of a rule.
func drafted() Tables {
	tab := small()
	tab.Verdicts = seq([]VerdictRow{
		NewVerdictRow(corpus.Draft{ClaimID: "c_1", Judge: "gpe", Verdict6: corpus.False, Status: corpus.StatusDraft, By: corpus.DraftByModel, Weighed: corpus.False, Call: "k1",
			Parts:    []corpus.DraftPart{{ID: "s1", Text: "one", Verdict6: corpus.False, Weighed: corpus.False, Origins: 1}},
			Exhibits: []corpus.Exhibit{{ID: "E1", DocumentID: "reddit:t3_a", Cited: true}}}),
		NewVerdictRow(corpus.Draft{ClaimID: "c_2", Judge: "gpe", Verdict6: corpus.Uncertain, Status: corpus.StatusDraft, By: corpus.DraftByRule, Weighed: corpus.Uncertain}),
	})
	tab.Mentions = seq([]MentionRow{
		NewMentionRow(OfClaim, "c_1", "k1", corpus.Mention{Field: corpus.FieldText, Span: corpus.Span{Start: 0, End: 3}, Text: "one", Type: corpus.Concept}),
		NewMentionRow(OfDocument, "reddit:t3_a", "k1", corpus.Mention{Field: corpus.FieldTitle, Span: corpus.Span{Start: 2, End: 8}, Text: "reddit", Type: corpus.Organisation}),
	})
	tab.Events = seq([]EventRow{NewEventRow("c_1", "k1", corpus.Event{ID: "e1", Text: "one", Span: corpus.Span{End: 3}, From: "2019-01-01", To: "2019-12-31", TimeFrom: corpus.TimeFromText})})
	return tab
}

func write(t *testing.T, root string, tab Tables) Result {
	t.Helper()
	res, err := Write(t.Context(), Options{Root: root, Formats: Formats, Facts: Facts{Name: "sample"}, Recipe: []byte("profile: raguard\n")}, tab)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func read(t *testing.T, res Result, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(res.Dir, filepath.FromSlash(path)))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestWriteIsReproducibleAndAtomic(t *testing.T) {
	a, b := write(t, t.TempDir(), small()), write(t, t.TempDir(), small())
	if a.ID != b.ID || filepath.Base(a.Dir) != a.ID {
		t.Errorf("ids %s and %s in folder %s", a.ID, b.ID, a.Dir)
	}
	again := write(t, filepath.Dir(a.Dir), small())
	if !again.Unchanged || again.Dir != a.Dir {
		t.Errorf("second write = %+v, want the same folder, unchanged", again)
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(a.Dir), ".release-*"))
	if err != nil || len(left) != 0 {
		t.Errorf("left over: %v %v", left, err)
	}
}

func TestWriteRefusesAnotherContentUnderOneName(t *testing.T) {
	root := t.TempDir()
	o := Options{Root: root, Name: "v1.0.0", Formats: Formats, Facts: Facts{Name: "a"}}
	if _, err := Write(t.Context(), o, small()); err != nil {
		t.Fatal(err)
	}
	o.Facts.Name = "b"
	if _, err := Write(t.Context(), o, small()); err == nil || !strings.Contains(err.Error(), "--as") {
		t.Errorf("error = %v, want advice to choose another name", err)
	}
}

func TestWriteReplacesADamagedCopyOfItself(t *testing.T) {
	root := t.TempDir()
	res := write(t, root, small())
	path := filepath.Join(res.Dir, "data", "claims.jsonl")
	if err := os.WriteFile(path, []byte("gone\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	write(t, root, small())
	if problems, err := Verify(t.Context(), res.Dir); err != nil || len(problems) > 0 {
		t.Errorf("after rewriting: %v %v", problems, err)
	}
}

func TestWriteStopsOnAFailingTable(t *testing.T) {
	root := t.TempDir()
	tab := small()
	tab.Pairs = func(yield func(PairRow, error) bool) { yield(PairRow{}, errors.New("store broke")) }
	if _, err := Write(t.Context(), Options{Root: root, Formats: Formats}, tab); err == nil || !strings.Contains(err.Error(), "store broke") {
		t.Errorf("error = %v", err)
	}
	if left, _ := os.ReadDir(root); len(left) != 0 {
		t.Errorf("left over: %v", left)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Write(ctx, Options{Root: root, Formats: Formats}, small()); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled write: %v", err)
	}
}

func TestWriteStopsWhereThereIsNoRoom(t *testing.T) {
	root, full := t.TempDir(), errors.New("no room")
	c := claim("c_1", strings.Repeat("a long text ", 1<<18))
	_, err := Write(t.Context(), Options{Root: root, Formats: Formats, Room: func() error { return full }}, tables([]ClaimRow{c}, nil, nil, nil))
	if !errors.Is(err, full) {
		t.Errorf("error = %v, want that there is no room", err)
	}
	if left, _ := os.ReadDir(root); len(left) != 0 {
		t.Errorf("left over: %v", left)
	}
}

func TestVerifyFindsEveryKindOfDamage(t *testing.T) {
	rewrite := func(path, old, new string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			full := filepath.Join(dir, filepath.FromSlash(path))
			data, err := os.ReadFile(full)
			if err != nil {
				t.Fatal(err)
			}
			changed := bytes.Replace(data, []byte(old), []byte(new), 1)
			if bytes.Equal(changed, data) {
				t.Fatalf("%s holds no %q", path, old)
			}
			if err := os.WriteFile(full, changed, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	remove := func(path string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, filepath.FromSlash(path))); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, test := range []struct {
		name   string
		damage func(t *testing.T, dir string)
		want   string
	}{
		{"a changed text", rewrite("data/documents.jsonl", "alpha", "gamma"), "SHA-256"},
		{"a changed label", rewrite("data/pairs.jsonl", `"supporting"`, `"misleading"`), "the manifest says"},
		{"an unknown label", rewrite("data/pairs.jsonl", `"supporting"`, `"maybe"`), `label "maybe"`},
		{"a changed answer", rewrite("data/pairs.jsonl", `"answer":"true"`, `"answer":"false"`), `the answer "false" to a claim that is true is misleading, and the label is supporting`},
		{"a changed verdict", rewrite("data/claims.jsonl", `"verdict_binary":"true"`, `"verdict_binary":"false"`), `to a claim that is false is misleading`},
		{"a changed effect", rewrite("data/pairs.jsonl", `"effect":"unknown"`, `"effect":"flip"`), `has the effect "unknown", and the row says "flip"`},
		{"a link for a file", func(t *testing.T, dir string) {
			path := filepath.Join(dir, "data", "pairs.jsonl")
			if err := errors.Join(os.Rename(path, filepath.Join(t.TempDir(), "x")), os.Symlink("/dev/zero", path)); err != nil {
				t.Fatal(err)
			}
		}, "data/pairs.jsonl is no file but"},
		{"a link for the list", func(t *testing.T, dir string) {
			path := filepath.Join(dir, "SHA256SUMS")
			if err := errors.Join(os.Remove(path), os.Symlink("/dev/zero", path)); err != nil {
				t.Fatal(err)
			}
		}, "SHA256SUMS is no file but"},
		{"a pair without its claim", rewrite("data/pairs.jsonl", `"c_1"`, `"c_0"`), "does not lead to a row"},
		{"rows out of order", rewrite("data/claims.jsonl", `"c_1"`, `"c_9"`), "not sorted"},
		{"a cluster of a later claim", rewrite("data/claims.jsonl", `"cluster":"c_1"`, `"cluster":"c_2"`), "is no claim before it"},
		{"another verdict in a cluster", rewrite("data/claims.jsonl", `"verdict_binary":"true"`, `"verdict_binary":"false"`), "1 with different verdicts"},
		{"a missing file", remove("data/claims.jsonl"), "is listed but missing"},
		{"a missing list", remove("SHA256SUMS"), "no release"},
		{"a cut table", rewrite("data/claims.jsonl", "}\n", "}"), "does not"},
		{"an added file", func(t *testing.T, dir string) {
			if err := os.WriteFile(filepath.Join(dir, "notes.txt"), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}, "notes.txt is not listed"},
		{"a list that leads outside", rewrite("SHA256SUMS", "README.md", "../README.md"), "is not a hash and a path"},
		{"a mention of another length", rewrite("data/mentions.jsonl", `"end":3`, `"end":4`), "stands from 0 to 4"},
		{"a mention of no type", rewrite("data/mentions.jsonl", `"concept"`, `"thing"`), `type "thing"`},
		{"a mention in another text", rewrite("data/mentions.jsonl", `"id":"reddit:t3_a"`, `"id":"reddit:t3_x"`), "does not lead to a row"},
		{"an event that ends before it begins", rewrite("data/events.jsonl", "2019-12-31", "2018-12-31"), `from "2019-01-01" to "2018-12-31"`},
		{"an event of no claim", rewrite("data/events.jsonl", `"c_1"`, `"c_7"`), "does not lead to a row"},
		{"a draft that calls itself gold", rewrite("data/verdicts.jsonl", `"llm_draft"`, `"human"`), `has the status "human"`},
		{"a draft off the scale", rewrite("data/verdicts.jsonl", `"verdict6":"uncertain"`, `"verdict6":"perhaps"`), `"perhaps" is none of`},
		{"a draft nobody was asked for", rewrite("data/verdicts.jsonl", `"call":"k1"`, `"call":""`), "verdict by model"},
		{"a draft from an unknown call", rewrite("data/verdicts.jsonl", `"call":"k1"`, `"call":"k7"`), "does not lead to a row"},
		{"a draft on an unknown document", rewrite("data/verdicts.jsonl", `"reddit:t3_a"`, `"reddit:t3_x"`), "does not lead to a row"},
		{"a subclaim off the scale", rewrite("data/verdicts.jsonl", `"verdict6":"false","weighed":"false","open"`, `"verdict6":"no","weighed":"false","open"`), `"no" of s1`},
		{"a broken CSV", rewrite("compat/raguard/claims.csv", "two", "\"two"), "claims.csv"},
	} {
		t.Run(test.name, func(t *testing.T) {
			res := write(t, t.TempDir(), drafted())
			if problems, err := Verify(t.Context(), res.Dir); err != nil || len(problems) > 0 {
				t.Fatalf("undamaged: %v %v", problems, err)
			}
			test.damage(t, res.Dir)
			problems, err := Verify(t.Context(), res.Dir)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(strings.Join(problems, "\n"), test.want) && test.name != "a cut table" || len(problems) == 0 {
				t.Errorf("problems %q, want one with %q", problems, test.want)
			}
		})
	}
}

// hard texts of several kinds: quotes, separators, formulas, line ends of other conventions.
var hardTexts = []string{
	"\"Nobody\" said 'we lost 40% of beds''\tthen\nagain",
	"\"an unclosed quote",
	"plain",
	"=1+1", "@sum(a1)", "-check this", "+1", "\tindented", "'=already", "''", "'quoted", "-0.25", "",
	"line\u2028separator\u2029and\u0085next", "carriage\r\nreturn\rhere", " leading blank", "ends in blank ", "comma, semicolon; tab\t.",
}

func hardTables() Tables {
	var claims []ClaimRow
	for i, text := range hardTexts {
		claims = append(claims, claim(fmt.Sprintf("c_%02d", i), text))
	}
	var docs []DocumentRow
	var pairs []PairRow
	for i, text := range hardTexts {
		id := fmt.Sprintf("d_%02d", i)
		docs = append(docs, document(id, text))
		pairs = append(pairs, pair(fmt.Sprintf("c_%02d", i), id, corpus.Unrelated))
	}
	return tables(claims, docs, pairs, oneCall)
}

func readCSV(t *testing.T, data []byte) [][]string {
	t.Helper()
	// Our own reader: encoding/csv folds \r\n inside a cell, other readers do not.
	rows, err := csv.NewReader(bytes.NewReader(bytes.ReplaceAll(data, []byte("\r"), []byte("\x01")))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		for i := range row {
			row[i] = strings.ReplaceAll(row[i], "\x01", "\r")
		}
	}
	return rows
}

func TestHD07TextsComeBackWhole(t *testing.T) {
	res := write(t, t.TempDir(), hardTables())
	var got []string
	for i, line := range strings.Split(strings.TrimSuffix(string(read(t, res, "data/claims.jsonl")), "\n"), "\n") {
		var row map[string]any
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatal(err)
		}
		if len(row) != 27 {
			t.Errorf("row %d has %d columns", i, len(row))
		}
		if row["authors"] == nil || row["earlier"] == nil {
			t.Errorf("row %d: authors or earlier is null", i)
		}
		got = append(got, row["text"].(string))
	}
	if diff := cmp.Diff(hardTexts, got); diff != "" {
		t.Errorf("JSONL (-want +got):\n%s", diff)
	}
	for _, file := range []struct {
		path   string
		column int
	}{{"compat/raguard/claims.csv", 1}, {"compat/raguard/documents.csv", 2}} {
		rows := readCSV(t, read(t, res, file.path))
		got = nil
		for i, row := range rows[1:] {
			if len(row) != 6 {
				t.Errorf("%s row %d has %d columns", file.path, i, len(row))
			}
			got = append(got, Restore(row[file.column]))
		}
		if diff := cmp.Diff(hardTexts, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", file.path, diff)
		}
	}
}

func TestHD20LineSeparatorsDoNotCutRows(t *testing.T) {
	res := write(t, t.TempDir(), hardTables())
	for _, path := range []string{"data/claims.jsonl", "data/documents.jsonl", "data/pairs.jsonl", "data/annotations.jsonl"} {
		data := read(t, res, path)
		for _, c := range lineEnds {
			if bytes.Contains(data, c.raw) {
				t.Errorf("%s holds a raw %q", path, c.raw)
			}
		}
		lf := bytes.Count(data, []byte("\n"))
		other := strings.FieldsFunc(string(data), func(r rune) bool { return strings.ContainsRune("\n\r\v\f\x1c\x1d\x1e\u0085\u2028\u2029", r) })
		if len(other) != lf {
			t.Errorf("%s: %d line feeds, %d lines for a reader that splits everywhere", path, lf, len(other))
		}
	}
}

func TestHD21FormulasAreNeutralisedReversibly(t *testing.T) {
	res := write(t, t.TempDir(), hardTables())
	for _, path := range []string{"compat/raguard/claims.csv", "compat/raguard/documents.csv"} {
		for _, row := range readCSV(t, read(t, res, path))[1:] {
			for _, cell := range row {
				if cell != "" && strings.ContainsRune("=+-@\t\r", rune(cell[0])) {
					t.Errorf("%s: cell %q starts a formula", path, cell)
				}
			}
		}
	}
	if data := string(read(t, res, "data/claims.jsonl")); !strings.Contains(data, `"text":"=1+1"`) {
		t.Error("JSON lines are neutralised too")
	}
	for _, text := range append(hardTexts, "'", "'''-x", "''=") {
		if got := Restore(Neutralise(text)); got != text {
			t.Errorf("Restore(Neutralise(%q)) = %q", text, got)
		}
	}
}

func TestHD19TwoRunsGiveTheSameFiles(t *testing.T) {
	build := func() Tables {
		var claims []ClaimRow
		var docs []DocumentRow
		var pairs []PairRow
		for i := range 60 {
			claims = append(claims, claim(fmt.Sprintf("c_%03d", i*7%60), fmt.Sprint("claim ", i)))
			for j := range 3 {
				id := fmt.Sprintf("d_%03d_%d", i, j)
				docs = append(docs, document(id, fmt.Sprint("text ", i, j)))
				pairs = append(pairs, pair(fmt.Sprintf("c_%03d", i), id, corpus.StanceLabels[(i+j)%3]))
			}
		}
		return tables(claims, docs, pairs, oneCall)
	}
	a, b := write(t, t.TempDir(), build()), write(t, t.TempDir(), build())
	for _, f := range append(a.Manifest.Files, File{Path: "manifest.json"}, File{Path: "SHA256SUMS"}) {
		if !bytes.Equal(read(t, a, f.Path), read(t, b, f.Path)) {
			t.Errorf("%s differs between two runs", f.Path)
		}
	}
}

func TestRAGuardTablesKeepImportedNumbers(t *testing.T) {
	tab := func() Tables {
		c1, c2 := claim("c_1", "one"), claim("c_2", "two")
		c2.Number = 1 // taken: our own first row must make way
		p := []PairRow{pair("c_1", "reddit:t3_a", corpus.Supporting), pair("c_2", "reddit:t3_a", corpus.Misleading), pair("c_2", "reddit:t3_b", corpus.Unrelated)}
		p[2].Number = 7
		return tables([]ClaimRow{c1, c2}, []DocumentRow{document("reddit:t3_a", "alpha"), document("reddit:t3_b", "beta")}, p, oneCall)
	}()
	res := write(t, t.TempDir(), tab)
	want := [][]string{
		{"Claim ID", "Claim", "Verdict", "Document IDs", "Document Labels", "Original Verdict"},
		{"1", "two", "True", "[2, 7]", "['misleading', 'unrelated']", "half-true"},
		{"2", "one", "True", "[1]", "['supporting']", "half-true"},
	}
	if diff := cmp.Diff(want, readCSV(t, read(t, res, "compat/raguard/claims.csv"))); diff != "" {
		t.Errorf("claims.csv (-want +got):\n%s", diff)
	}
	got := readCSV(t, read(t, res, "compat/raguard/documents.csv"))
	if len(got) != 4 || got[3][0] != "7" || got[1][3] != "2" {
		t.Errorf("documents.csv = %q", got)
	}
}

func TestFormatsByName(t *testing.T) {
	if _, err := FormatsByName([]string{"jsonl", "parque"}); err == nil || !strings.Contains(err.Error(), "jsonl, raguard") {
		t.Errorf("error = %v, want the known names", err)
	}
}
