// Package output writes a release: one folder that holds the same snapshot in several formats, with
// a manifest, the recipe, a card and the hash of every file.
//
// A release is written to a temporary folder beside its place, checked, and renamed, so no reader
// ever sees half of one. It holds no run-time fact: the same tables give the same bytes. Rows are
// sorted by id in every table. The package stores nothing else and decides nothing about what is
// released; that is the walk of the caller.
package output

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sort"
	"strings"

	"assay/corpus"
)

// A ClaimRow is one row of the table claims.
type ClaimRow struct {
	ID            string   `json:"id"`
	Text          string   `json:"text"`
	Speaker       string   `json:"speaker"`
	RatingRaw     string   `json:"rating_raw"`
	Rating        string   `json:"rating"`
	Verdict6      string   `json:"verdict6"`
	VerdictBinary string   `json:"verdict_binary"` // by the recipe's projection
	VerdictStatus string   `json:"verdict_status"`
	DraftVerdict6 string   `json:"draft_verdict6"` // that a judge proposes, see VerdictRow; "" where none did. Never gold
	StatedDate    string   `json:"stated_date"`
	Medium        string   `json:"medium"`
	ReviewURL     string   `json:"review_url"`
	ReviewDate    string   `json:"review_date"`
	Title         string   `json:"title"`
	Authors       []string `json:"authors"`
	Tags          []string `json:"tags"`
	Flags         []string `json:"flags"`
	Source        string   `json:"source"`   // site or table
	Category      string   `json:"category"` // one of six, "" where it is not known
	CategoryFrom  string   `json:"category_from"`
	// CategoryConfidence is 0 to 1: of a rule, how often it is right; of a model, what it says.
	CategoryConfidence float64 `json:"category_confidence"`
	// Where a claim without a review stands: an address, and a stretch of the document's text in
	// characters from its start. Of others they are "", 0 and 0.
	StatedURL   string `json:"stated_url"`
	StatedStart int    `json:"stated_start"`
	StatedEnd   int    `json:"stated_end"`
	Cluster     string `json:"cluster"` // smallest id of the claims that tell the same statement; "" for a claim alone

	Supersedes string          `json:"supersedes"` // id of the claim in whose place on the page this one came, "" mostly
	Earlier    []corpus.Ruling `json:"earlier"`    // what was ruled on this wording before, oldest first

	Number int `json:"-"` // row number in the table it was imported from, 0 if none
}

// NewClaimRow makes a row of a claim and its projected verdict.
func NewClaimRow(c corpus.Claim, binary string) ClaimRow {
	return ClaimRow{
		ID: c.ID, Text: c.Text, Speaker: c.Speaker, RatingRaw: c.RatingRaw, Rating: c.Rating,
		Verdict6: string(c.Verdict6), VerdictBinary: binary, VerdictStatus: string(c.Status),
		StatedDate: c.StatedDate, Medium: c.Medium, ReviewURL: c.ReviewURL, ReviewDate: c.ReviewDate,
		Title: c.Title, Authors: list(c.Authors), Tags: list(c.Tags), Flags: list(c.Flags),
		Supersedes: c.Supersedes, Earlier: list(c.Earlier), Number: c.Number,
		Source: c.Source, Category: string(c.Category), CategoryFrom: c.CategoryFrom, CategoryConfidence: c.CategoryConfidence,
		StatedURL: c.StatedURL, StatedStart: c.StatedSpan.Start, StatedEnd: c.StatedSpan.End,
	}
}

// A DocumentRow is one row of the table documents.
type DocumentRow struct {
	ID          string `json:"id"`
	Kind        string `json:"kind"`
	Title       string `json:"title"`
	Text        string `json:"text"`
	URL         string `json:"url"`
	Source      string `json:"source"`
	PublishedAt string `json:"published_at"`
	// PublishedBy is what told the date: json_ld, meta, time, url, file or http; "" for a date that came with
	// the document, and for none. PublishedConfidence is high, medium, low, or "" likewise.
	PublishedBy         string `json:"published_by"`
	PublishedConfidence string `json:"published_confidence"`
	RetrievedAt         string `json:"retrieved_at"`
	Via                 string `json:"via"`         // wayback or commoncrawl for a capture of a page that is gone, "" for the page itself
	CapturedAt          string `json:"captured_at"` // of the capture
	Revision            string `json:"revision"`    // of the text, as its source numbers it
	Licence             string `json:"licence"`     // under which its source gives the text, "" where it does not say
	BodyStatus          string `json:"body_status"`
	SHA256              string `json:"sha256"`
}

// NewDocumentRow makes a row of a document.
func NewDocumentRow(d corpus.Document) DocumentRow {
	return DocumentRow{
		ID: d.ID, Kind: d.Kind, Title: d.Title, Text: d.Text, URL: d.URL, Source: d.Source,
		PublishedAt: d.PublishedAt, PublishedBy: d.PublishedBy, PublishedConfidence: d.Confidence, RetrievedAt: d.RetrievedAt,
		Via: d.Via, CapturedAt: d.CapturedAt, Revision: d.Revision, Licence: d.Licence, BodyStatus: string(d.BodyStatus), SHA256: d.SHA256,
	}
}

// A PairRow is one row of the table pairs, sorted by claim and then by document.
type PairRow struct {
	ClaimID    string       `json:"claim_id"`
	DocumentID string       `json:"document_id"`
	Label      string       `json:"label"`
	Answer     string       `json:"answer"`
	ZeroAnswer string       `json:"zero_answer"`
	Effect     string       `json:"effect"`
	Quote      string       `json:"quote"`
	Flags      []string     `json:"flags"`
	Hits       []corpus.Hit `json:"hits"`
	Call       string       `json:"call"`
	Role       string       `json:"role"` // what the document is to the claim, see corpus.Role

	Samples int      `json:"samples"` // times that the annotator was asked
	Margin  *float64 `json:"margin"`  // see corpus.Stability; null where it was asked once
	// Panel is what every annotator said, the one whose label this is first; empty for a pair that was not drawn.
	Panel     []corpus.Annotation `json:"panel"`
	Consensus string              `json:"consensus"` // label that the panel comes to, "" for none

	Number int `json:"-"` // row number in the table it was imported from, 0 if none
}

// NewPairRow makes a row of a label and the hits that found its document.
func NewPairRow(l corpus.Label, hits []corpus.Hit, number int) PairRow {
	row := PairRow{
		ClaimID: l.ClaimID, DocumentID: l.DocumentID, Label: string(l.Label), Answer: string(l.Answer),
		ZeroAnswer: string(l.Zero), Effect: string(l.Effect), Quote: l.Quote, Flags: list(l.Flags),
		Hits: list(hits), Call: l.Call, Number: number, Role: string(corpus.RoleOf(l.Label)), Samples: 1, Panel: []corpus.Annotation{},
	}
	if l.Stability != nil {
		row.Samples, row.Margin = l.Stability.Samples, &l.Stability.Margin
	}
	return row
}

// A ControlRow is one row of the table controls, sorted by claim and then by document: a claim with a document
// that was found for another claim, and what the annotator said. It is no pair of the corpus.
type ControlRow struct {
	ClaimID    string   `json:"claim_id"`
	DocumentID string   `json:"document_id"`
	Role       string   `json:"role"`    // random
	Outcome    string   `json:"outcome"` // labelled; else why there is no label, such as refused
	Label      string   `json:"label"`
	Answer     string   `json:"answer"`
	ZeroAnswer string   `json:"zero_answer"`
	Effect     string   `json:"effect"`
	Flags      []string `json:"flags"`
	Call       string   `json:"call"`
}

// NewControlRow makes a row of what came of a control; l has no label unless outcome is "labelled".
func NewControlRow(claimID, documentID, outcome string, l corpus.Label) ControlRow {
	return ControlRow{
		ClaimID: claimID, DocumentID: documentID, Role: string(corpus.RoleRandom), Outcome: outcome, Label: string(l.Label),
		Answer: string(l.Answer), ZeroAnswer: string(l.Zero), Effect: string(l.Effect), Flags: list(l.Flags), Call: l.Call,
	}
}

// list never returns nil: a column of lists has no null.
func list[T any](in []T) []T {
	if in == nil {
		return []T{}
	}
	return in
}

// A Call is one row of the table annotations: a model call without its run-time fields.
type Call struct {
	ID   string
	JSON json.RawMessage
}

// Tables is what a release is made of. Each sequence may be read more than once and gives its rows
// sorted by id; Claim and Document look one row up.
type Tables struct {
	Claims      iter.Seq2[ClaimRow, error]
	Documents   iter.Seq2[DocumentRow, error]
	Pairs       iter.Seq2[PairRow, error]
	Annotations iter.Seq2[Call, error]
	Verdicts    iter.Seq2[VerdictRow, error] // nil where the recipe has no judge
	Mentions    iter.Seq2[MentionRow, error] // nil where the recipe asks for none
	Events      iter.Seq2[EventRow, error]   // likewise
	Controls    iter.Seq2[ControlRow, error] // nil where no control was asked
	Claim       func(id string) (ClaimRow, error)
	Document    func(id string) (DocumentRow, error)
}

// Facts is what the card and the manifest tell beside the counts. It holds nothing of the run.
type Facts struct {
	Name       string            `json:"name"`
	Profile    string            `json:"profile"`
	Projection string            `json:"projection"`
	Warnings   []string          `json:"warnings"`
	Models     []Model           `json:"models"`
	Stages     map[string]int    `json:"stages"`  // version of every stage that took part
	Prompts    map[string]string `json:"prompts"` // hash of every template
	Withheld   map[string]int    `json:"withheld"`
	RatingMaps map[string]int    `json:"rating_maps"`
}

// A Model says who answered in a role.
type Model struct {
	Role     string `json:"role"`
	Endpoint string `json:"endpoint"`
	Provider string `json:"provider"`
	Model    string `json:"model"`
	Calls    int    `json:"calls"`

	// Names are calls by the name that the endpoint gave itself, where it gave more than one: what answers
	// under an alias may be exchanged for another model between two calls.
	Names map[string]int `json:"names,omitempty"`
}

// NamesText is the names with their calls, most calls first.
func (m Model) NamesText() string {
	names := sortedKeys(m.Names)
	slices.SortStableFunc(names, func(a, b string) int { return m.Names[b] - m.Names[a] })
	for i, n := range names {
		names[i] = fmt.Sprintf("%s (%d)", cmp.Or(n, "no name"), m.Names[n])
	}
	return strings.Join(names, ", ")
}

// A Format writes one view of the snapshot into its files.
type Format struct {
	Name  string
	Doc   string
	Write func(ctx context.Context, dir *Dir, t Tables) error
}

// Formats lists every release format. To add one: a file format_<name>.go and a line here.
var Formats = []Format{formatJSONL, formatRAGuard}

// FormatsByName picks formats in the listed order; the error names the known ones.
func FormatsByName(names []string) ([]Format, error) {
	var out []Format
	for _, name := range names {
		found := false
		for _, f := range Formats {
			if f.Name == name {
				out, found = append(out, f), true
			}
		}
		if !found {
			var known []string
			for _, f := range Formats {
				known = append(known, f.Name)
			}
			return nil, fmt.Errorf("release format %q is unknown; known are %s", name, strings.Join(known, ", "))
		}
	}
	return out, nil
}

// A File is one entry of the manifest.
type File struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256"`
	Bytes  int64  `json:"bytes"`
	Rows   int    `json:"rows"` // -1 where the file is no table
}

// Manifest describes a release; manifest.json.
type Manifest struct {
	Schema int            `json:"schema"`
	Facts  Facts          `json:"facts"`
	Counts map[string]int `json:"counts"`
	Labels map[string]int `json:"labels"`
	// Categories counts claims by category; "" are those whose category is not known.
	Categories map[string]int `json:"categories"`
	// Leakage counts pairs by what may give the verdict away, see corpus.Leaks; a pair may count in two. What the
	// search left out for such a reason is in Facts.Withheld. Releases of earlier versions have none.
	Leakage map[string]int `json:"leakage,omitempty"`
	Files   []File         `json:"files"` // every file but manifest.json and SHA256SUMS
}

const (
	manifestName = "manifest.json"
	sumsName     = "SHA256SUMS"
	recipeName   = "recipe.lock"
	cardName     = "README.md"
	schema       = 1
)

// A Dir is the folder of a release while it is written. Formats create their files through it, so
// that every byte is hashed once.
type Dir struct {
	path  string
	files map[string]File
	room  func() error
	asked int64 // bytes written since room was asked
}

// A Writer is an open file of a Dir. Row counts the rows that its format wrote.
type Writer struct {
	*bufio.Writer
	Rows int

	dir  *Dir
	path string
	file *os.File
	sum  hash.Hash
	n    int64
}

// Create opens a file below the release folder; path uses slashes.
func (d *Dir) Create(path string) (*Writer, error) {
	full := filepath.Join(d.path, filepath.FromSlash(path))
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(full, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	w := &Writer{dir: d, path: path, file: f, sum: sha256.New()}
	w.Writer = bufio.NewWriterSize(counter{w}, 1<<18)
	return w, nil
}

type counter struct{ w *Writer }

func (c counter) Write(p []byte) (int, error) {
	if d := c.w.dir; d.room != nil {
		if d.asked += int64(len(p)); d.asked >= 1<<20 {
			if err := d.room(); err != nil {
				return 0, err
			}
			d.asked = 0
		}
	}
	n, err := c.w.file.Write(p)
	c.w.sum.Write(p[:n])
	c.w.n += int64(n)
	return n, err
}

// Close flushes and syncs the file and enters it in the manifest.
func (w *Writer) Close() error {
	err := errors.Join(w.Flush(), w.file.Sync(), w.file.Close())
	if err != nil {
		return fmt.Errorf("write %s: %w", w.path, err)
	}
	w.dir.files[w.path] = File{Path: w.path, SHA256: hex.EncodeToString(w.sum.Sum(nil)), Bytes: w.n, Rows: w.Rows}
	return nil
}

// put writes a small file that is no table.
func (d *Dir) put(path string, data []byte) error {
	w, err := d.Create(path)
	if err != nil {
		return err
	}
	w.Rows = -1
	_, werr := w.Write(data)
	return errors.Join(werr, w.Close())
}

// Options says where a release goes and how it is named.
type Options struct {
	Root    string // folder of all releases
	Name    string // "" means the first 12 hex digits of the content
	Formats []Format
	Facts   Facts
	Recipe  []byte            // recipe.lock
	Room    func() error      // asked before every MiB is written; nil means there is always room
	Prompts map[string]string // text of every prompt that took part, by template
}

// Result is what Write made.
type Result struct {
	Dir       string
	ID        string // 12 hex digits of the content, whatever the folder is called
	Manifest  Manifest
	Unchanged bool // a release of the same content was there already
}

var releaseName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

// CheckName reports whether a release may be called so; "" stands for the name of its content.
func CheckName(name string) error {
	if name != "" && !releaseName.MatchString(name) {
		return fmt.Errorf("a release cannot be called %q: a name has letters, digits, dots, dashes and underlines and starts with a letter or digit, e.g. v1.0.0", name)
	}
	return nil
}

// Write makes a release of the tables and returns where it is. An existing release of the same name
// and content is left as it is; one of the same name and other content is an error.
func Write(ctx context.Context, o Options, t Tables) (res Result, err error) {
	if err := CheckName(o.Name); err != nil {
		return res, err
	}
	if err := os.MkdirAll(o.Root, 0o755); err != nil {
		return res, fmt.Errorf("write release: %w", err)
	}
	if err := sweep(o.Root); err != nil {
		return res, err
	}
	tmp, err := os.MkdirTemp(o.Root, tmpPrefix)
	if err != nil {
		return res, fmt.Errorf("write release: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(tmp))
		}
	}()
	if err := os.Chmod(tmp, 0o755); err != nil {
		return res, fmt.Errorf("write release: %w", err)
	}
	d := &Dir{path: tmp, files: map[string]File{}, room: o.Room}
	m, err := d.write(ctx, o, t)
	if err != nil {
		return res, fmt.Errorf("write release: %w", err)
	}
	sums, err := os.ReadFile(filepath.Join(tmp, sumsName))
	if err != nil {
		return res, fmt.Errorf("write release: %w", err)
	}
	sum := sha256.Sum256(sums)
	res = Result{ID: hex.EncodeToString(sum[:])[:12], Manifest: m}
	if problems, err := Verify(ctx, tmp); err != nil {
		return res, fmt.Errorf("check the new release: %w", err)
	} else if len(problems) > 0 {
		return res, fmt.Errorf("check the new release: %s", strings.Join(problems, "; "))
	}
	name := o.Name
	if name == "" {
		name = res.ID
	}
	res.Dir = filepath.Join(o.Root, name)
	if old, err := os.ReadFile(filepath.Join(res.Dir, sumsName)); err == nil {
		if string(old) != string(sums) {
			return res, fmt.Errorf("release %s exists with other content; choose another name with --as, a published version is never edited", res.Dir)
		}
		if problems, err := Verify(ctx, res.Dir); err == nil && len(problems) == 0 {
			res.Unchanged = true
			return res, os.RemoveAll(tmp)
		}
		// Same name and hashes but damaged files: the fresh copy takes its place.
		if err := os.RemoveAll(res.Dir); err != nil {
			return res, fmt.Errorf("write release: replace damaged %s: %w", res.Dir, err)
		}
	} else if _, err := os.Stat(res.Dir); err == nil {
		return res, fmt.Errorf("%s exists and is no release; move it away or choose another name with --as", res.Dir)
	}
	if err := syncTree(tmp); err != nil {
		return res, fmt.Errorf("write release: %w", err)
	}
	if err := os.Rename(tmp, res.Dir); err != nil {
		return res, fmt.Errorf("write release: %w", err)
	}
	return res, syncDir(o.Root)
}

func (d *Dir) write(ctx context.Context, o Options, t Tables) (Manifest, error) {
	for _, f := range o.Formats {
		if err := f.Write(ctx, d, t); err != nil {
			return Manifest{}, fmt.Errorf("format %s: %w", f.Name, err)
		}
	}
	m := Manifest{Schema: schema, Facts: o.Facts}
	var err error
	if m.Counts, m.Labels, m.Categories, m.Leakage, err = count(ctx, t); err != nil {
		return m, err
	}
	if err := d.put(recipeName, o.Recipe); err != nil {
		return m, err
	}
	for _, name := range sortedKeys(o.Prompts) {
		if err := d.put("prompts/"+name+".txt", []byte(o.Prompts[name])); err != nil {
			return m, err
		}
	}
	if err := d.put(cardName, card(m, o.Formats)); err != nil {
		return m, err
	}
	for _, f := range d.files {
		m.Files = append(m.Files, f)
	}
	sort.Slice(m.Files, func(i, j int) bool { return m.Files[i].Path < m.Files[j].Path })
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return m, err
	}
	if err := d.put(manifestName, append(data, '\n')); err != nil {
		return m, err
	}
	return m, d.putSums()
}

// putSums lists every file in the form that sha256sum -c reads.
func (d *Dir) putSums() error {
	var paths []string
	for p := range d.files {
		paths = append(paths, p)
	}
	sort.Strings(paths)
	var b strings.Builder
	for _, p := range paths {
		fmt.Fprintf(&b, "%s  %s\n", d.files[p].SHA256, p)
	}
	return d.put(sumsName, []byte(b.String()))
}

// count reads the tables once for the numbers of the manifest.
func count(ctx context.Context, t Tables) (counts, labels, categories, leaks map[string]int, err error) {
	counts, labels, categories = map[string]int{"claims": 0, "documents": 0, "pairs": 0, "annotations": 0}, map[string]int{}, map[string]int{}
	for _, l := range corpus.StanceLabels {
		labels[string(l)] = 0
	}
	leaked := newLeakage()
	var found clusters
	if err := each(ctx, t.Claims, func(c ClaimRow) error { counts["claims"]++; categories[c.Category]++; found.add(c); return nil }); err != nil {
		return nil, nil, nil, nil, err
	}
	counts["clusters"], counts["conflicts"] = found.count()
	if err := each(ctx, t.Documents, func(DocumentRow) error { counts["documents"]++; return nil }); err != nil {
		return nil, nil, nil, nil, err
	}
	if err := errors.Join(rows(ctx, counts, "verdicts", t.Verdicts), rows(ctx, counts, "mentions", t.Mentions), rows(ctx, counts, "events", t.Events)); err != nil {
		return nil, nil, nil, nil, err
	}
	if err := each(ctx, t.Annotations, func(Call) error { counts["annotations"]++; return nil }); err != nil {
		return nil, nil, nil, nil, err
	}
	if t.Controls != nil {
		if err := each(ctx, t.Controls, func(ControlRow) error { counts["controls"]++; return nil }); err != nil {
			return nil, nil, nil, nil, err
		}
	}
	err = each(ctx, t.Pairs, func(p PairRow) error { counts["pairs"]++; labels[p.Label]++; leaked.add(p); return nil })
	return counts, labels, categories, leaked, err
}

// leakage counts pairs by leak.
type leakage map[string]int

func newLeakage() leakage {
	m := leakage{}
	for _, l := range corpus.Leaks {
		m[l] = 0
	}
	return m
}

func (m leakage) add(p PairRow) {
	for _, l := range corpus.Leaks {
		if corpus.HasFlag(p.Flags, l) {
			m[l]++
		}
	}
}

// ReadLeakage reads the leakage report out of a release's manifest; nil for a release that has none.
func ReadLeakage(dir string) (map[string]int, error) {
	data, err := os.ReadFile(filepath.Join(dir, manifestName))
	if err != nil {
		return nil, err
	}
	var m Manifest
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, fmt.Errorf("read the manifest of %s: %w", dir, err)
	}
	return m.Leakage, nil
}

// rows counts the rows of a table that a release need not have.
func rows[T any](ctx context.Context, counts map[string]int, name string, table iter.Seq2[T, error]) error {
	if table == nil {
		return nil
	}
	counts[name] = 0
	return each(ctx, table, func(T) error { counts[name]++; return nil })
}

// clusters counts clusters of claims, and of these the ones whose verdicts differ.
type clusters map[string]clusterVerdicts

type clusterVerdicts struct {
	binary, six string
	differ      bool
}

func (m *clusters) add(c ClaimRow) {
	if c.Cluster == "" {
		return
	}
	if *m == nil {
		*m = clusters{}
	}
	v := (*m)[c.Cluster]
	for _, one := range []struct{ had, has *string }{{&v.binary, &c.VerdictBinary}, {&v.six, &c.Verdict6}} {
		if *one.had != "" && *one.has != "" && *one.had != *one.has {
			v.differ = true
		}
		if *one.had == "" {
			*one.had = *one.has
		}
	}
	(*m)[c.Cluster] = v
}

func (m clusters) count() (all, differ int) {
	for _, v := range m {
		if v.differ {
			differ++
		}
	}
	return len(m), differ
}

// each reads a sequence to its end, to its first error, or until ctx is done.
func each[T any](ctx context.Context, seq iter.Seq2[T, error], f func(T) error) error {
	n := 0
	for v, err := range seq {
		if err != nil {
			return err
		}
		if n++; n%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if err := f(v); err != nil {
			return err
		}
	}
	return ctx.Err()
}

const tmpPrefix = ".release-"

// sweep removes what a killed run left; only one process writes releases of a workspace.
func sweep(root string) error {
	old, err := fs.Glob(os.DirFS(root), tmpPrefix+"*") // root itself may hold what is special in a pattern
	if err != nil {
		return err
	}
	for _, dir := range old {
		if err := os.RemoveAll(filepath.Join(root, dir)); err != nil {
			return fmt.Errorf("remove unfinished release: %w", err)
		}
	}
	return nil
}

func syncTree(root string) error {
	return filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.IsDir() {
			return err
		}
		return syncDir(path)
	})
}

func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

var _ io.Writer = counter{}
