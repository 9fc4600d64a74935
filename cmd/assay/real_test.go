package main

import (
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay/output"
)

// The tests of this file use the program on captures of the real web, as its users do. They print one
// line "passed N of M, skipped K" for every set of captures and for every field.

// realFolder is the folder of captures; the test is skipped where there is none.
func realFolder(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("ASSAY_REAL")
	switch {
	case dir == "":
		t.Skip("skipped: ASSAY_REAL is not set")
	case testing.Short():
		t.Skip("skipped: captures take longer than -short allows")
	}
	return dir
}

// realWARC packs all captured pages into one web archive.
func realWARC(t *testing.T, dir string) string {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("skipped: no python3 to write the captures as one web archive")
	}
	name := filepath.Join(t.TempDir(), "web.warc.gz")
	out, err := exec.CommandContext(t.Context(), python, filepath.Join(dir, "make-warc.py"), name).CombinedOutput()
	if err != nil {
		t.Fatalf("write the captures as one web archive: %v\n%s", err, out)
	}
	return name
}

// A capture is a row of the folder's index. want holds only what was checked against the file.
type capture struct {
	file, kind, url string
	want            map[string]any
}

func (c capture) text(key string) string {
	s, _ := c.want[key].(string)
	return s
}

// number is 0 where the index claims nothing.
func (c capture) number(key string) int {
	f, _ := c.want[key].(float64)
	return int(f)
}

// part is the object under a key, empty where there is none.
func (c capture) part(key string) capture {
	m, _ := c.want[key].(map[string]any)
	return capture{want: m}
}

// captures reads the rows whose kind starts with one of the prefixes.
func captures(t *testing.T, dir string, kinds ...string) []capture {
	t.Helper()
	var out []capture
	for _, row := range tableRows(t, filepath.Join(dir, "INDEX.tsv")) {
		c := capture{file: row["file"], kind: row["kind"], url: row["captured_url"]}
		if !slices.ContainsFunc(kinds, func(k string) bool { return strings.HasPrefix(c.kind, k) }) {
			continue
		}
		if err := json.Unmarshal([]byte(row["expected"]), &c.want); err != nil {
			t.Fatalf("INDEX.tsv, %s: %v", c.file, err)
		}
		out = append(out, c)
	}
	if len(out) == 0 {
		t.Fatalf("INDEX.tsv knows no capture of %v", kinds)
	}
	return out
}

// tableRows reads tab-separated values without quotes, by the names in the first line.
func tableRows(t *testing.T, path string) []map[string]string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	header := strings.Split(lines[0], "\t")
	var rows []map[string]string
	for _, line := range lines[1:] {
		row := map[string]string{}
		for i, cell := range strings.Split(line, "\t") {
			row[header[i]] = cell
		}
		rows = append(rows, row)
	}
	return rows
}

// newShop makes a workspace with init and gives it a recipe.
func newShop(t *testing.T, recipe string) *lab {
	t.Helper()
	l := &lab{t: t, dir: filepath.Join(t.TempDir(), "shop")}
	l.must(0, "init", l.dir)
	l.recipe(recipe)
	return l
}

func (l *lab) recipe(text string) {
	l.t.Helper()
	if err := os.WriteFile(filepath.Join(l.dir, "assay.yaml"), []byte("recipe:\n"+text), 0o644); err != nil {
		l.t.Fatal(err)
	}
}

// facts runs assay with --json and returns what it printed and the peak of its memory.
func facts[T any](l *lab, code int, args ...string) (v T, peakMiB int) {
	l.t.Helper()
	cmd := l.command(append([]string{"--json"}, args...)...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if got := cmd.ProcessState.ExitCode(); got != code {
		l.t.Fatalf("assay %s: exit %d (%v), want %d\n%s", strings.Join(args, " "), got, err, code, errs.String())
	}
	if err := json.Unmarshal(out.Bytes(), &v); err != nil {
		l.t.Fatalf("assay %s: %v\n%.500s", strings.Join(args, " "), err, out.String())
	}
	usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return v, 0
	}
	unit := 1 << 10 // KiB, but bytes on macOS
	if runtime.GOOS == "darwin" {
		unit = 1 << 20
	}
	return v, int(usage.Maxrss) / unit
}

// imported is what import prints of one file.
type imported struct {
	Path     string
	Counts   map[string]int
	Problems []string
	Table    map[string]any
}

// built is what build prints, as far as these tests read it.
type built struct {
	report
	Agreement *struct {
		Readings []struct {
			Reading   string
			Kappa     *float64
			N         int
			Interval  struct{ Low, High *float64 }
			Confusion struct {
				Labels []string
				Counts [][]int
			}
		}
		Majority float64 `json:"majority_baseline"`
	}
	Recall *struct {
		At, Claims int
		Mean       float64
	}
	Release struct {
		Dir, ID  string
		Counts   map[string]int
		Withheld map[string]int
	} `json:"release"`
}

// listedItem is what ls prints of one item.
type listedItem struct{ Key, State, Reason string }

// A tally counts by set or field what came out as expected, and keeps what did not.
type tally struct {
	t                  *testing.T
	right, total, left map[string]int
	short              []string
}

func newTally(t *testing.T) *tally {
	return &tally{t: t, right: map[string]int{}, total: map[string]int{}, left: map[string]int{}}
}

// check compares and reports whether the two agree.
func (y *tally) check(name, where, got, want string) bool {
	y.total[name]++
	if got == want {
		y.right[name]++
		return true
	}
	y.short = append(y.short, fmt.Sprintf("%s of %s\n    got  %q\n    want %q", name, where, got, want))
	return false
}

// skip counts what the index says nothing about.
func (y *tally) skip(name string) { y.left[name]++ }

// print logs the counts, lists what falls short, and fails where a name has less than its bar.
func (y *tally) print(title string, bar func(name string) float64) {
	y.t.Helper()
	for _, name := range slices.Sorted(maps.Keys(y.total)) {
		right, total := y.right[name], y.total[name]
		y.t.Logf("%s, %s: passed %d of %d, skipped %d", title, name, right, total, y.left[name])
		if float64(right) < bar(name)*float64(total) {
			y.t.Errorf("%s, %s: %d of %d is less than %.1f %%", title, name, right, total, 100*bar(name))
		}
	}
	for _, s := range y.short {
		y.t.Logf("falls short: %s", s)
	}
}

// every is the bar of what must hold without exception.
func every(string) float64 { return 1 }

var blanks = regexp.MustCompile(`\s+`)

// folded is a text as the index compares it.
func folded(s string) string { return strings.TrimSpace(blanks.ReplaceAllString(s, " ")) }

// truthRatings says what becomes of a label that PolitiFact prints: our rating and verdict, and what
// the projection raguard_release makes of it.
var truthRatings = map[string][3]string{
	"True":          {"true", "true", "true"},
	"Mostly True":   {"mostly_true", "mostly_true", "true"},
	"Half True":     {"half_true", "half_true", "true"},
	"Mostly False":  {"mostly_false", "mostly_false", "false"},
	"False":         {"false", "false", "false"},
	"Pants on Fire": {"pants_on_fire", "false", "false"},
}

// A checkedPage is a captured page of PolitiFact with what stands on it.
type checkedPage struct {
	set, url    string
	want        map[string]string
	firstAuthor bool // the index names only the first
}

// flip reports whether the page is about a change of mind, not about a truth.
func (f checkedPage) flip() bool {
	return strings.HasSuffix(f.want["rating_alt"], "-flop") || strings.HasSuffix(f.want["rating_alt"], "-flip")
}

func checkedPages(t *testing.T, dir string) []checkedPage {
	t.Helper()
	var out []checkedPage
	for _, c := range captures(t, dir, "politifact-claim") {
		f := checkedPage{set: "single pages", url: c.url, want: map[string]string{}}
		for _, key := range []string{"claim", "speaker", "rating", "rating_alt", "stated_date", "date", "title", "medium"} {
			f.want[key] = c.text(key)
		}
		if f.want["rating_alt"] == "" { // the markup before 2020 prints the label
			f.set, f.want["rating_alt"] = "markup before 2020", f.want["rating"]
		}
		var authors []string
		if list, ok := c.want["authors"].([]any); ok {
			for _, a := range list {
				authors = append(authors, fmt.Sprint(a))
			}
		} else if f.firstAuthor = true; c.text("author") != "" {
			authors = []string{c.text("author")}
		}
		f.want["authors"] = strings.Join(authors, "; ")
		out = append(out, f)
	}
	tables, err := filepath.Glob(filepath.Join(dir, "politifact", "bulk", "*.expected.tsv"))
	if err != nil || len(tables) == 0 {
		t.Fatalf("no tables of expected values: %v", err)
	}
	for _, table := range tables {
		for _, row := range tableRows(t, table) {
			out = append(out, checkedPage{set: "bulk pages", url: "https://www.politifact.com/" + strings.TrimSuffix(row["page"], ".html") + "/", want: row})
		}
	}
	return out
}

// politiFactFields are compared on every released claim, and on the one that is held back.
var politiFactFields = []string{"rating", "claim", "speaker", "stated_date", "date", "title", "authors", "medium"}

// compare holds a row of claims.jsonl against the page that it is of.
func (f checkedPage) compare(y *tally, row output.ClaimRow, binary bool) bool {
	rating := truthRatings[f.want["rating"]]
	authors := row.Authors
	if f.firstAuthor && len(authors) > 1 {
		authors = authors[:1]
	}
	got := map[string]string{
		"rating": strings.Join([]string{row.RatingRaw, row.Rating, row.Verdict6, row.VerdictStatus}, " "),
		"claim":  row.Text, "speaker": row.Speaker, "stated_date": row.StatedDate, "date": row.ReviewDate,
		"title": row.Title, "authors": strings.Join(authors, "; "), "medium": row.Medium,
	}
	want := maps.Clone(f.want)
	want["rating"] = strings.Join([]string{f.want["rating_alt"], rating[0], rating[1], "source"}, " ")
	if binary {
		got["rating"] += " " + row.VerdictBinary
		want["rating"] += " " + rating[2]
	}
	whole := true
	for _, field := range politiFactFields {
		whole = y.check(field, f.url, folded(got[field]), folded(want[field])) && whole
	}
	return whole
}

func TestRealPolitiFact(t *testing.T) {
	dir := realFolder(t)
	warc := realWARC(t, dir)
	l := newShop(t, "  discover: [stored]\n  speakers: []\n  dates: {from: \"\", to: \"\"}\n")

	files, peak := facts[[]imported](l, 0, "import", "warc", warc)
	t.Logf("import of %d pages: %d MiB at most", files[0].Counts["stored"], peak)
	if got := files[0].Counts; got["stored"] != 1170 || got["records"] != 1171 || got["truncated"] != 0 || len(files[0].Problems) > 0 {
		t.Errorf("import: %v, problems %v; want all 1,170 pages", got, files[0].Problems)
	}
	files, _ = facts[[]imported](l, 0, "import", "warc", warc)
	if got := files[0].Counts; got["stored"] != 0 || got["known"] != 1170 {
		t.Errorf("import again: %v, want nothing new", got)
	}

	pages := checkedPages(t, dir)
	truths, flips := map[string]checkedPage{}, []string{}
	for _, f := range pages {
		if f.flip() {
			flips = append(flips, f.url)
		} else {
			truths[f.url] = f
		}
	}
	slices.Sort(flips)
	if len(truths) != 1008 || len(flips) != 9 {
		t.Fatalf("the index has %d pages with a rating and %d flips; want 1,008 and 9", len(truths), len(flips))
	}

	// Claims first.
	first, peak := facts[built](l, 0, "build", "--replay", "--until", "parse")
	t.Logf("build of %d pages until parse: %d MiB at most", first.ran("parse/politifact"), peak)
	if first.ran("parse/politifact") != 1017 || first.Pipeline.Failed != 0 || first.Fetch.Requests != 0 || first.Release.Dir != "" {
		t.Errorf("build --until parse: %+v", first)
	}
	if found, err := filepath.Glob(filepath.Join(l.dir, "release", "*")); err != nil || len(found) > 0 {
		t.Errorf("build --until parse left %v, %v", found, err)
	}
	items, _ := facts[[]listedItem](l, 0, "ls", "parse", "--state", "done")
	claimed := map[string]bool{}
	for _, i := range items {
		claimed[i.Key] = true
	}
	for url := range truths {
		if !claimed[url] {
			t.Errorf("%s became no claim", url)
		}
	}
	if len(items) != 1008 {
		t.Errorf("%d pages became claims, want 1,008", len(items))
	}
	items, _ = facts[[]listedItem](l, 0, "ls", "parse", "--state", "excluded")
	var excluded []string
	for _, i := range items {
		if i.Reason != "flip_o_meter" {
			t.Errorf("%s is excluded as %s", i.Key, i.Reason)
		}
		excluded = append(excluded, i.Key)
	}
	slices.Sort(excluded)
	if diff := cmp.Diff(flips, excluded); diff != "" {
		t.Errorf("exclusions (-flips +excluded):\n%s", diff)
	}
	items, _ = facts[[]listedItem](l, 0, "ls", "ratings")
	if len(items) != 0 {
		t.Errorf("ratings that wait for a person: %v", items)
	}

	// Then a release.
	second, peak := facts[built](l, 0, "build", "--replay")
	t.Logf("build of the release: %d MiB at most", peak)
	if second.ran("parse/politifact") != 0 || second.Fetch.Requests != 0 || second.Pipeline.Failed != 0 {
		t.Errorf("build after build --until parse: %+v", second)
	}
	if diff := cmp.Diff(map[string]int{"claim: the site's own test entry": 1, "page: flip_o_meter": 9}, second.Release.Withheld); diff != "" {
		t.Errorf("withheld (-want +got):\n%s", diff)
	}
	fields, sets := newTally(t), newTally(t)
	pass := func(f checkedPage, row output.ClaimRow, binary bool) {
		whole := f.compare(fields, row, binary)
		sets.check(f.set, f.url, fmt.Sprint(whole), "true")
	}
	seen := map[string]bool{}
	for _, row := range releasedClaims(t, second.Release.Dir) {
		f, ok := truths[row.ReviewURL]
		if !ok || seen[row.ReviewURL] || len(row.Flags) > 0 {
			t.Errorf("%s is released for %s, flags %v, a second time %v", row.ID, row.ReviewURL, row.Flags, seen[row.ReviewURL])
			continue
		}
		seen[row.ReviewURL] = true
		pass(f, row, true)
	}
	for url, f := range truths {
		if seen[url] {
			continue
		}
		if !strings.HasSuffix(url, "/yes-really-test/") {
			t.Errorf("%s is not in the release", url)
			continue
		}
		// The site's own test entry is parsed and flagged, and stays out.
		shown, _ := facts[struct {
			Claims []output.ClaimRow
		}](l, 0, "show", url)
		if len(shown.Claims) != 1 {
			t.Errorf("%s: show has %d claims, want 1", url, len(shown.Claims))
			continue
		}
		row := shown.Claims[0]
		if !slices.Equal(row.Flags, []string{"site_test"}) {
			t.Errorf("%s has flags %v", url, row.Flags)
		}
		pass(f, row, false)
	}
	sets.print("PolitiFact pages with all fields right", func(string) float64 { return 0.96 }) // seven fields with a bar of 0.995 each
	fields.print("PolitiFact pages", func(field string) float64 {
		if field == "rating" {
			return 1
		}
		return 0.995
	})
	t.Logf("PolitiFact flip-o-meter pages: passed %d of %d, skipped 0", len(excluded), len(flips))

	// And nothing a second time.
	before := sums(t, second.Release.Dir)
	third, _ := facts[built](l, 0, "build", "--replay")
	if third.Fetch.Requests != 0 || third.LLM.Calls != 0 || third.Pipeline.Ran != 0 || third.Release.ID != second.Release.ID || sums(t, third.Release.Dir) != before {
		t.Errorf("the second build did something: %+v", third)
	}
	if _, said := l.must(0, "build", "--replay"); !strings.Contains(said, "0 requests, 0 calls") {
		t.Errorf("the second build does not say that it did nothing:\n%s", said)
	}
	if out, _ := l.must(0, "verify", "--rebuild", second.Release.Dir); !strings.Contains(out, "is sound") {
		t.Errorf("verify --rebuild: %s", out)
	}
}

func releasedClaims(t *testing.T, dir string) []output.ClaimRow {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, "data", "claims.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var rows []output.ClaimRow
	for d := json.NewDecoder(f); ; {
		var row output.ClaimRow
		switch err := d.Decode(&row); {
		case errors.Is(err, io.EOF):
			return rows
		case err != nil:
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
}

// compatRows reads a CSV of a release's compat folder, as published: with the apostrophes taken off.
func compatRows(t *testing.T, path string) []map[string]string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	records, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	var rows []map[string]string
	for _, record := range records[1:] {
		row := map[string]string{}
		for i, cell := range record {
			row[records[0][i]] = output.Restore(cell)
		}
		rows = append(rows, row)
	}
	return rows
}

// A sampleClaim is one of the twenty published claims that come with their documents.
type sampleClaim struct {
	ID        string              `json:"claim_id"`
	Claim     string              `json:"claim"`
	Verdict   string              `json:"verdict"`
	Original  string              `json:"original_verdict"`
	Documents []map[string]string `json:"documents"`
}

func TestRealRAGuardSample(t *testing.T) {
	dir := realFolder(t)
	file := filepath.Join(dir, "raguard", "sample-20-claims.json")
	var sample []sampleClaim
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &sample); err != nil {
		t.Fatal(err)
	}
	claims, documents, texts := map[string]sampleClaim{}, map[string]map[string]string{}, map[string][]string{}
	for _, c := range sample {
		claims[c.ID] = c
		for _, d := range c.Documents {
			documents[d["Document ID"]] = d
			texts[d["Link"]] = append(texts[d["Link"]], d["Full Text"])
		}
	}

	labels := []string{"supporting", "misleading", "unrelated"}
	for _, tt := range []struct {
		mode      string
		evidence  string
		own       int   // pairs that the table published and we label
		published []int // of these, by published label
		majority  string
	}{
		{"compat", "pairs", 111, []int{14, 6, 91}, "82.0"},
		{"normal", "pairs", 74, []int{6, 6, 62}, "83.8"},
		{"normal", "search, pairs", 74, []int{6, 6, 62}, "83.8"},
	} {
		name := tt.mode + " mode, evidence " + tt.evidence
		l := newShop(t, fmt.Sprintf("  discover: [imported]\n  evidence: [%s]\n  label: {mode: %s}\n", tt.evidence, tt.mode))
		files, _ := facts[[]imported](l, 0, "import", "pairs", file)
		want := map[string]int{
			"claims": 20, "pairs": 111, "documents": 111, "documents known": 1, "documents stored": 110,
			"label supporting": 14, "label misleading": 6, "label unrelated": 91,
			"body full": 74, "body missing": 33, "body deleted": 3, "body short": 1,
		}
		if diff := cmp.Diff(want, files[0].Counts); diff != "" {
			t.Errorf("%s: import (-want +got):\n%s", name, diff)
		}
		b, _ := facts[built](l, 0, "build")
		if b.Agreement == nil || b.Pipeline.Failed > 0 {
			t.Fatalf("%s: %+v", name, b)
		}
		all := b.Agreement.Readings[0]
		if all.N != tt.own || all.Kappa == nil || all.Interval.Low == nil || all.Interval.High == nil {
			t.Errorf("%s: agreement over %d pairs, kappa %v, interval %v; want %d", name, all.N, all.Kappa, all.Interval, tt.own)
			continue
		}
		var published []int
		for _, row := range all.Confusion.Counts {
			n := 0
			for _, v := range row {
				n += v
			}
			published = append(published, n)
		}
		if diff := cmp.Diff(labels, all.Confusion.Labels); diff != "" || !slices.Equal(published, tt.published) {
			t.Errorf("%s: published labels %v of %v, want %v of %v", name, published, all.Confusion.Labels, tt.published, labels)
		}
		if got := fmt.Sprintf("%.1f", 100*b.Agreement.Majority); got != tt.majority {
			t.Errorf("%s: the majority baseline is %s %%, want %s %%", name, got, tt.majority)
		}
		t.Logf("RAGuard sample, %s: passed %d of %d, skipped %d without a usable body", name, all.N, tt.own, 111-tt.own)
		t.Logf("builtin, %s: kappa %.3f [%.2f, %.2f], always the most frequent label is right in %s %%, confusion (rows published, columns ours, %v) %v",
			name, *all.Kappa, *all.Interval.Low, *all.Interval.High, tt.majority, labels, all.Confusion.Counts)

		// The same numbers for people, when everything is fresh.
		_, said := l.must(0, "build")
		for _, line := range []string{"0 requests, 0 calls", "agreement with the published labels", "confusion, rows published, columns ours"} {
			if !strings.Contains(said, line) {
				t.Errorf("%s: the report has no line %q:\n%s", name, line, said)
			}
		}
		if strings.Contains(tt.evidence, "search") {
			if b.Recall == nil || b.Recall.At != 10 || b.Recall.Claims != 20 || b.Recall.Mean < 0.4 {
				t.Errorf("%s: recall %+v, want at least 0.4 at 10 over 20 claims", name, b.Recall)
			} else {
				t.Logf("builtin, %s: recall@%d of own documents %.3f over %d claims", name, b.Recall.At, b.Recall.Mean, b.Recall.Claims)
			}
		} else if b.Recall != nil || b.Release.Counts["pairs"] != tt.own {
			t.Errorf("%s: %d pairs released, recall %v", name, b.Release.Counts["pairs"], b.Recall)
		}

		// Imported rows keep the numbers they were published with.
		y := newTally(t)
		for _, row := range compatRows(t, filepath.Join(b.Release.Dir, "compat", "raguard", "claims.csv")) {
			c := claims[row["Claim ID"]]
			y.check("claims", "claim "+row["Claim ID"], row["Claim"]+row["Verdict"]+row["Original Verdict"], c.Claim+c.Verdict+c.Original)
		}
		own := 0
		for _, row := range compatRows(t, filepath.Join(b.Release.Dir, "compat", "raguard", "documents.csv")) {
			d, ok := documents[row["Document ID"]]
			if !ok {
				continue // found by the search: it has a number that nobody published
			}
			own++
			y.check("documents", "document "+row["Document ID"], row["Claim ID"]+row["Title"], d["Claim ID"]+d["Title"])
			text := d["Full Text"]
			if d["Link"] != "" { // one post stands under two claims, and the longer of its texts counts
				text = slices.MaxFunc(texts[d["Link"]], func(a, b string) int { return len(a) - len(b) })
			}
			y.check("texts", "document "+row["Document ID"], row["Full Text"], text)
		}
		if own != tt.own || y.total["claims"] != 20 {
			t.Errorf("%s: the compat tables have %d of the published documents and %d claims, want %d and 20", name, own, y.total["claims"], tt.own)
		}
		y.print("RAGuard compat tables, "+name, every)
	}
}

func TestRealClaimsTable(t *testing.T) {
	dir := realFolder(t)
	file := filepath.Join(dir, "raguard", "claims.csv")
	l := newShop(t, "  discover: [imported]\n  evidence: [pairs]\n")
	files, _ := facts[[]imported](l, 0, "import", "claims-table", file)
	y := newTally(t)
	row := captures(t, dir, "raguard-claims")[0]
	for _, key := range slices.Sorted(maps.Keys(row.want)) {
		y.check("numbers", key, fmt.Sprint(files[0].Table[key]), fmt.Sprint(row.want[key]))
	}
	y.check("numbers", "rows", strconv.Itoa(files[0].Counts["rows stored"]), fmt.Sprint(row.want["claims"]))

	b, _ := facts[built](l, 0, "build", "--until", "parse")
	items, _ := facts[[]listedItem](l, 0, "ls", "parse", "--state", "done")
	y.check("claims after parse", "build", fmt.Sprint(b.ran("parse/raguard"), len(items), b.Pipeline.Failed), "2648 2648 0")

	// Claims come out as they went in, number and all; pairs need their documents, which are not there.
	b, _ = facts[built](l, 0, "build")
	out := compatRows(t, filepath.Join(b.Release.Dir, "compat", "raguard", "claims.csv"))
	in := compatRows(t, file)
	if len(out) != len(in) {
		t.Fatalf("%d claims released, %d imported", len(out), len(in))
	}
	for i := range in {
		for _, column := range []string{"Claim ID", "Claim", "Verdict", "Original Verdict"} {
			y.check("released claims, "+column, "row "+in[i]["Claim ID"], out[i][column], in[i][column])
		}
	}
	if diff := cmp.Diff(map[string]int{"document: not imported": row.number("links")}, b.Release.Withheld); diff != "" {
		t.Errorf("withheld (-want +got):\n%s", diff)
	}
	y.print("RAGuard claims table", every)
}

// ofComments reports whether the first thing of a Reddit capture is a comment.
func (c capture) ofComments() bool {
	first := c.part("first")
	return first.text("body")+first.text("body_start") != ""
}

// dumpCounts is what an import of a Reddit capture must count, by its row of the index.
func dumpCounts(c capture) map[string]int {
	want := map[string]int{"posts": 0, "comments": 0}
	some := func(key string, n int) {
		if n > 0 {
			want[key] = n
		}
	}
	kind := "posts"
	if c.ofComments() {
		kind = "comments"
	}
	switch kinds := c.part("kinds"); {
	case c.kind == "reddit-comments":
		want["posts"], want["comments"] = 1, c.number("comments")
		some("skipped: more", c.number("more_stubs"))
		some("comments not in the dump", c.number("more_ids"))
	case kinds.want != nil:
		want["posts"], want["comments"] = kinds.number("t3"), kinds.number("t1")
		some("skipped: subreddit", kinds.number("t5"))
	default: // one sort of thing, by the name that its form has for them
		want[kind] = c.number("children") + c.number("items") + c.number("lines") + c.number("posts")
	}
	some("documents", want["posts"]+want["comments"])
	return want
}

// endsOfDump names the first and the last thing of a capture, with the title where the index gives one.
func endsOfDump(c capture) map[string]string {
	ends := map[string]string{}
	add := func(kind, id, title string) {
		if id != "" && (title != "" || ends[kind+id] == "") {
			ends[kind+id] = title
		}
	}
	first, post := c.part("first"), c.part("post")
	kind := "t3_"
	if c.ofComments() || c.kind == "reddit-mixed" { // this one starts with a subreddit and ends with a comment
		kind = "t1_"
	}
	if c.kind != "reddit-mixed" {
		add(kind, first.text("id"), first.text("title"))
	}
	add("t3_", post.text("id"), post.text("title"))
	add(kind, c.text("first_id"), "")
	add(kind, c.text("last_id"), "")
	return ends
}

func TestRealDumps(t *testing.T) {
	dir := realFolder(t)
	l := newShop(t, "  discover: [imported]\n")
	y := newTally(t)
	var dumps []capture
	args := []string{"import", "reddit"}
	for _, c := range captures(t, dir, "reddit-", "pushshift-") {
		path := filepath.Join(dir, c.file)
		switch c.kind {
		case "reddit-html", "reddit-error", "reddit-error-replies": // pages and refusals: no dumps
			_, said := l.must(1, "import", "reddit", path)
			clear := strings.Contains(said, filepath.Base(c.file)) && strings.Contains(said, "is no known format")
			y.check("files that are no dumps", c.file, fmt.Sprint(clear), "true")
		default:
			dumps, args = append(dumps, c), append(args, path)
		}
	}
	files, _ := facts[[]imported](l, 0, args...)
	if len(files) != len(dumps) {
		t.Fatalf("%d files reported, %d imported", len(files), len(dumps))
	}
	for i, c := range dumps {
		got := map[string]int{}
		for key, n := range files[i].Counts {
			if key == "posts" || key == "comments" || key == "documents" || key == "comments not in the dump" || key == "problems" || strings.HasPrefix(key, "skipped: ") {
				got[key] = n
			}
		}
		y.check("dumps", c.file, fmt.Sprint(got), fmt.Sprint(dumpCounts(c)))
		if with, ok := c.want["with_text"]; ok {
			y.check("posts with a text", c.file, fmt.Sprint(files[i].Counts["documents"]-files[i].Counts["body missing"]), fmt.Sprint(with))
		}
		ends := endsOfDump(c)
		if len(ends) == 0 {
			y.skip("first and last things")
		}
		for id, title := range ends {
			shown, _ := facts[struct{ Document struct{ ID, Title string } }](l, 0, "show", "reddit:"+id)
			got := folded(shown.Document.Title)
			if want := folded(title); strings.HasPrefix(got, want) { // the index cuts long titles
				got = want
			}
			y.check("first and last things", c.file+" "+id, shown.Document.ID+" "+got, "reddit:"+id+" "+folded(title))
		}
	}
	files, _ = facts[[]imported](l, 0, args...)
	for i, c := range dumps {
		y.check("dumps imported again", c.file, fmt.Sprint(files[i].Counts["documents stored"]), "0")
	}
	y.print("Reddit captures", every)
}

func TestRealWARCs(t *testing.T) {
	dir := realFolder(t)
	y := newTally(t)
	for _, c := range captures(t, dir, "warc") {
		l := newShop(t, "  discover: [stored]\n")
		types := map[string]int{}
		for kind := range c.part("types").want {
			types[kind] = c.part("types").number(kind)
		}
		damage := c.text("warc_error") + c.text("gzip_error")
		code := 0
		if damage != "" {
			code = 3
		}
		files, _ := facts[[]imported](l, code, "import", "warc", filepath.Join(dir, c.file))
		got := files[0].Counts
		if damage == "" {
			y.check("records", c.file, fmt.Sprint(got["records"]), fmt.Sprint(c.number("records")))
			y.check("damage", c.file, fmt.Sprint(files[0].Problems), "[]")
		} else {
			// The index counts up to the damage; we name the place and read on.
			y.check("records", c.file, fmt.Sprint(got["records"] >= c.number("records")), "true")
			named := len(files[0].Problems) == 1 && (c.text("warc_error") == "" || strings.Contains(files[0].Problems[0], c.text("warc_error")))
			y.check("damage", c.file, fmt.Sprint(named, files[0].Problems), fmt.Sprint(true, files[0].Problems))
			t.Logf("%s: %v", c.file, files[0].Problems)
		}
		for kind, n := range types {
			y.check("record types", c.file+" "+kind, fmt.Sprint(got["record "+kind]), fmt.Sprint(n))
		}
		// Every answer is stored; what is none has an address that no page has.
		y.check("answers stored", c.file, fmt.Sprint(got["stored"]+got["skipped: bad_scheme"]), fmt.Sprint(types["response"]+types["revisit"]+types["resource"]))
		files, _ = facts[[]imported](l, code, "import", "warc", filepath.Join(dir, c.file))
		y.check("imported again", c.file, fmt.Sprint(files[0].Counts["stored"], files[0].Counts["known"]), fmt.Sprint(0, got["stored"]))

		if !strings.HasSuffix(c.file, ".gz") || c.number("gzip_members") < 3 {
			continue
		}
		// The same file, broken off: everything before the break comes in, and the break is named.
		data, err := os.ReadFile(filepath.Join(dir, c.file))
		if err != nil {
			t.Fatal(err)
		}
		data = data[:len(data)*3/5]
		cut := filepath.Join(t.TempDir(), "cut.warc.gz")
		if err := os.WriteFile(cut, data, 0o644); err != nil {
			t.Fatal(err)
		}
		whole := wholeMembers(t, data)
		l = newShop(t, "  discover: [stored]\n")
		files, _ = facts[[]imported](l, 3, "import", "warc", cut)
		y.check("broken off", c.file, fmt.Sprint(files[0].Counts["records"] >= whole, len(files[0].Problems)), "true 1")
	}
	y.print("web archives", every)
}

// wholeMembers counts the records that a broken file of one gzip member a record holds whole.
func wholeMembers(t *testing.T, data []byte) int {
	t.Helper()
	r := bytes.NewReader(data)
	z, err := gzip.NewReader(r)
	n := 0
	for ; err == nil; n++ {
		z.Multistream(false)
		if _, err := io.Copy(io.Discard, z); err != nil {
			return n
		}
		err = z.Reset(r)
	}
	return n
}
