package assay

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"time"

	"assay/corpus"
	"assay/fetch"
	"assay/kv"
	"assay/planner"
	"assay/scrapers"
)

// ImportReport says what an import read and stored. Nothing is skipped without a line in Problems.
type ImportReport struct {
	Kind     string         `json:"kind"`
	Path     string         `json:"path"`
	Counts   map[string]int `json:"counts"`
	Problems []string       `json:"problems"`      // the first maxProblems; Counts tells how many there are
	Hint     string         `json:"hint,omitzero"` // what keeps a build from using it, or what to look at before one
	Table    any            `json:"table,omitempty"`
	Asks     []Asked        `json:"asks,omitempty"` // what a build would ask by a configuration that came with an archive
}

// Asked is a setting by which a build reaches an address.
type Asked struct {
	Setting string   `json:"setting"`        // runtime.endpoints.main
	Address string   `json:"address"`        // of allow_private and resolve: what may be dialled
	Keys    []string `json:"keys,omitempty"` // environment variables whose contents are sent there
}

// String tells it on one line.
func (a Asked) String() string {
	if len(a.Keys) > 0 {
		return a.Setting + ": " + a.Address + ", with what is in " + strings.Join(a.Keys, " and ")
	}
	return a.Setting + ": " + a.Address
}

const (
	maxProblems = 100

	// maxDocument bounds what one record may say, in bytes: a hundred times the longest post. A build holds
	// several copies of a document for every pair at work, and a dump is full of what anybody wrote.
	maxDocument = 4 << 20
)

func newImportReport(kind, path string) *ImportReport {
	return &ImportReport{Kind: kind, Path: path, Counts: map[string]int{}, Problems: []string{}}
}

func (r *ImportReport) problem(format string, args ...any) {
	r.Counts["problems"]++
	if len(r.Problems) < maxProblems {
		r.Problems = append(r.Problems, fmt.Sprintf(format, args...))
	}
}

// tolerate enters a record that cannot be read as a problem; any other error is returned.
func (r *ImportReport) tolerate(err error) error {
	var record *planner.RecordError
	if errors.As(err, &record) {
		r.problem("%v", err)
		return nil
	}
	return err
}

// ImportKind is a kind of thing that Import reads.
type ImportKind struct {
	Name string
	Doc  string
	Form string // what a file looks like, for people
	read func(ctx context.Context, w *Workspace, path string, o ImportOptions) (*ImportReport, error)

	Online bool   // it asks the web; a path is what to ask for
	Found  string // the value of Recipe.Discover by which a build finds what is imported
}

// ImportOptions says how to read what does not say it itself.
type ImportOptions struct {
	Base string // dir: address of the folder's root
	As   string // claims-table: name of the format
	Map  string // claims-table: which column is what of a claim, e.g. claim=statement,rating=label
}

// ImportKinds lists what can be imported.
var ImportKinds = []ImportKind{
	{"archive", "what assay archive wrote", `A .warc.gz or .wacz of assay archive: exchanges, model calls, imported tables and documents, and assay.yaml with the prompts
where the folder has none of its own but what assay init wrote. assay build --replay then gives the archived release.`, importArchive, false, ""},
	{"claims-table", "a published table of claims", claimsForm(), importClaims, false, DiscoverImported},
	{"dir", "a folder of saved pages", `Pages under --base URL by their path, or host folders (www.example.com/path/index.html), or a urls.tsv in the folder:
path TAB address [TAB status [TAB content type [TAB retrieved]]]. A file whose line cannot be read is named and left out.`, importDir, false, DiscoverStored},
	{"pairs", "claims with their documents", `RAGuard's documents.csv (import its claims.csv too), RAGuard's claims as JSON with documents inside, or JSON lines;
verdict, dates and title may be missing, the label may not, and without a verdict a claim cannot be labelled. date is the day of
the statement and review_date that of the verdict; recipe.planner.agent.as_of keeps later documents away from the one or the other:
    {"claim": "...", "verdict": "false", "date": "2021-06-01", "review_date": "2021-06-07", "title": "...", "text": "...", "url": "https://...", "label": "misleading"}`, importPairs, false, DiscoverImported},
	{"prices", "what models cost", `The list that LiteLLM publishes (model_prices_and_context_window.json), or a table such as prices.yaml of the workspace,
which is written: its models have the last word over the table inside the program. Its date is the file's:
    date: "2026-06-01"
    source: the price list of the provider
    models:
      some-model: {input: 0.5, cached: 0.1, output: 1.5}   # USD per million tokens`, importPrices, false, ""},
	{"reddit", "a dump of Reddit posts or comments", `Pushshift or Arctic Shift NDJSON, plain, .gz, .zst or .bz2; a listing or thread as the API gives it; a JSON array of posts.`, importReddit, false, ""},
	{"thread", "a Reddit thread with its comments", `The id (t3_18r2fkv) or the address of its post; asked for through Reddit's interface with the credentials of runtime.reddit.`, importThread, true, ""},
	{"warc", "web archives", `WARC 1.0 and 1.1, plain or .gz, or WACZ, made by anybody. A date that has not come yet is named, and the page was retrieved
when its HTTP head says, or is left out. Pages that no site of the recipe recognises stay unused; assay ls unclaimed lists them.`, importWARC, false, DiscoverStored},
}

// claimsForm says what tables can look like.
func claimsForm() string {
	var b strings.Builder
	b.WriteString("CSV, TSV, JSON or JSON lines, plain, .gz, .zst or .bz2, recognised by columns; --as names the format where they do not tell:\n")
	for _, t := range scrapers.Tables {
		fmt.Fprintf(&b, "    %-18s %s\n", t.Name, t.Doc)
	}
	b.WriteString("The plainest has a verdict of the six-way scale or of the truth-o-meter:\n    claim,verdict\n    The bridge toll doubled in 2022.,mostly-true\n")
	b.WriteString("Of any other file, --map says which column is what:\n")
	for _, t := range scrapers.Targets {
		fmt.Fprintf(&b, "    %-18s %s\n", t.Name, t.Doc)
	}
	return strings.TrimRight(b.String(), "\n")
}

// ImportMemory is the soft limit on memory, in bytes, that an import does well with, see
// runtime/debug.SetMemoryLimit: it streams, so what it holds at once is small, and a limit makes the
// collector take back the rest in time when the store is compacted.
const ImportMemory = 256 << 20

// Import reads one file or folder into the store. Importing the same thing twice changes nothing.
func (w *Workspace) Import(ctx context.Context, kind, path string, o ImportOptions) (*ImportReport, error) {
	for _, k := range ImportKinds {
		if k.Name == kind {
			r, err := k.read(ctx, w, path, o)
			if err != nil {
				return r, fmt.Errorf("import %s %s: %w", kind, path, err)
			}
			if found := w.Config.Recipe.Discover; k.Found != "" && !slices.Contains(found, k.Found) && r.Counts["problems"] < max(r.Counts["records"], 1) {
				r.Hint = fmt.Sprintf("recipe.discover is [%s], so that a build finds this only where these lead to it; add %s", strings.Join(found, ", "), k.Found)
			}
			return r, w.index.CatchUp(ctx, w.arrivals(w.index.Position()))
		}
	}
	return nil, fmt.Errorf("import: kind %q is unknown; known are %s", kind, strings.Join(names(ImportKinds, func(k ImportKind) string { return k.Name }), ", "))
}

// until reads r until ctx ends: a device or a pipe may have no other end, and no record in it.
func until(ctx context.Context, r io.Reader) io.Reader {
	return readFunc(func(p []byte) (int, error) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		return r.Read(p)
	})
}

type readFunc func(p []byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

func importWARC(ctx context.Context, w *Workspace, path string, _ ImportOptions) (*ImportReport, error) {
	zipped, err := fetch.IsZip(path)
	if err != nil {
		return nil, err
	}
	if zipped {
		r := newImportReport("warc", path)
		_, err := fetch.OpenWARCs(path, func(name string, in io.Reader) error {
			got, err := fetch.ImportWARC(ctx, w.store, filepath.Base(path)+"#"+name, in, w.now())
			exchangeCounts(r, got)
			return err
		})
		return r, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	got, err := fetch.ImportWARC(ctx, w.store, filepath.Base(path), bufio.NewReaderSize(until(ctx, f), 1<<20), w.now())
	return exchangeReport("warc", path, got), err
}

func importDir(ctx context.Context, w *Workspace, path string, o ImportOptions) (*ImportReport, error) {
	got, err := fetch.ImportDir(ctx, w.store, path, fetch.DirOptions{Base: o.Base, Now: w.now})
	return exchangeReport("dir", path, got), err
}

func exchangeReport(kind, path string, got fetch.ImportReport) *ImportReport {
	r := newImportReport(kind, path)
	exchangeCounts(r, got)
	return r
}

// exchangeCounts adds what was read of one file.
func exchangeCounts(r *ImportReport, got fetch.ImportReport) {
	r.Counts["records"] += got.Records
	r.Counts["responses"] += got.Responses
	r.Counts["truncated"] += got.Truncated
	r.Counts["stored"] += got.Stored
	r.Counts["known"] += got.Present
	for kind, n := range got.Types {
		r.Counts["record "+kind] += n
	}
	for class, n := range got.Classes {
		r.Counts["class "+class] += n
	}
	for reason, n := range got.Skipped {
		r.Counts["skipped: "+reason] += n
	}
	for _, note := range got.Notes {
		r.problem("%s", note)
	}
}

func importReddit(ctx context.Context, w *Workspace, path string, _ ImportOptions) (*ImportReport, error) {
	r := newImportReport("reddit", path)
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r.Counts["posts"], r.Counts["comments"] = 0, 0 // an empty listing is said to be one
	p, err := w.newPool(r)
	if err != nil {
		return r, err
	}
	for entry, err := range planner.ReadDump(filepath.Base(path), until(ctx, f)) {
		if err := r.tolerate(err); err != nil {
			return r, errors.Join(err, p.done()) // what came before the damage counts
		} else if entry.Document.ID == "" && entry.Skipped == "" {
			continue
		}
		if entry.Skipped != "" {
			r.Counts["skipped: "+entry.Skipped]++
			if entry.More > 0 {
				r.Counts["comments not in the dump"] += entry.More
			}
			continue
		}
		if n := len(entry.Document.Content()); n > maxDocument {
			r.problem("%s: its text of %d bytes is no post's", entry.Document.ID, n)
			continue
		}
		if entry.Document.Kind == corpus.KindRedditComment {
			r.Counts["comments"]++
		} else {
			r.Counts["posts"]++
		}
		if err := p.add(ctx, entry.Document); err != nil {
			return r, err
		}
	}
	return r, p.done()
}

func importClaims(ctx context.Context, w *Workspace, path string, o ImportOptions) (*ImportReport, error) {
	r := newImportReport("claims-table", path)
	if isAddress(path) {
		return r, w.importAddress(fetch.AskAgain(ctx, time.Now()), r, path, o) // whoever asks by hand wants what is there now
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return r, w.importTable(ctx, r, filepath.Base(path), until(ctx, f), o)
}

// isAddress reports whether what to import is an address of the web.
func isAddress(path string) bool {
	return strings.HasPrefix(path, "https://") || strings.HasPrefix(path, "http://")
}

// Asks reports whether importing something takes a client that asks the web.
func (k ImportKind) Asks(path string) bool {
	return k.Online || k.Name == "claims-table" && isAddress(path)
}

// importTable stores the rows of a claims table, plain or compressed.
func (w *Workspace) importTable(ctx context.Context, r *ImportReport, name string, file io.Reader, o ImportOptions) error {
	in, closed, err := planner.Decompress(file)
	if err != nil {
		return err
	}
	defer closed()
	table, whole, err := o.table(in)
	if err != nil {
		return err
	}
	r.Counts["table "+table.Name] = 1
	var kept []scrapers.Row // of raguard, whose numbers are told
	err = w.importRows(ctx, r, table, func(yield func(scrapers.Row, error) bool) {
		for row, err := range table.Read(name, whole) {
			if table.Name == "raguard" && err == nil {
				kept = append(kept, row)
			}
			if !yield(row, err) {
				return
			}
		}
	})
	if err != nil {
		return err
	}
	if table.Name == "raguard" {
		sum, err := scrapers.Summary(func(yield func(scrapers.Row, error) bool) {
			for _, row := range kept {
				if !yield(row, nil) {
					return
				}
			}
		})
		if err != nil {
			return err
		}
		r.Table = sum
	}
	return nil
}

// table is the table that the options name, or that the file's start shows, and the whole file.
func (o ImportOptions) table(in io.Reader) (scrapers.Table, io.Reader, error) {
	switch {
	case o.Map != "" && o.As != "" && o.As != "mapped":
		return scrapers.Table{}, nil, fmt.Errorf("--map names the columns of any file, and --as %s a format that has its own", o.As)
	case o.Map != "":
		columns, err := scrapers.ParseColumns(o.Map)
		return scrapers.Mapped(columns), in, err
	case o.As != "":
		table, err := scrapers.TableNamed(o.As)
		return table, in, err
	}
	return scrapers.DetectReader(in)
}

// conflict enters a row of this file that contradicts the stored one of its key. Which file that came from
// is not kept.
func (r *ImportReport) conflict(table string, row scrapers.Row, contradicts string) {
	r.Counts["conflicts"]++
	name := "claim " + row.Key + " of " + table
	if table != "raguard" { // the key is a hash of the wording
		name = fmt.Sprintf("claim %.120q of %s", row.Fields["claim"], table)
	}
	if row.At > 0 {
		name = fmt.Sprintf("row %d of %s: %s", row.At, filepath.Base(r.Path), name)
	}
	r.problem("%s contradicts the one imported before: %s; the stored one stays. If this file is right, import it into a new workspace", name, contradicts)
}

// agree compares a row with the stored one of its key. Where they agree it returns the row with what
// only the stored one says; where not, it says in what.
func agree(stored, row scrapers.Row) (_ scrapers.Row, contradicts string) {
	fields := maps.Clone(row.Fields)
	for _, column := range sortedKeys(stored.Fields) {
		was, is := stored.Fields[column], fields[column]
		switch {
		case unsaid(was):
		case unsaid(is):
			fields[column] = was
		case !sameWords(was, is):
			return row, fmt.Sprintf("its %s is %.80q, not %.80q", column, was, is)
		}
	}
	row.Fields = fields
	return row, ""
}

// unsaid reports a field that says nothing: pairs bring a claim along without its list of documents.
func unsaid(field string) bool { return field == "" || field == "[]" }

// sameWords compares two fields as wordings, and verdicts however their words are joined.
func sameWords(a, b string) bool {
	plain := strings.NewReplacer("-", " ", "_", " ")
	return strings.EqualFold(plain.Replace(corpus.Fold(a)), plain.Replace(corpus.Fold(b)))
}

// linkKey orders the links of a row. A document that its table counts is one link whatever its id; a
// line is not counted so, since every file has a line of that number.
func linkKey(l corpus.Link) string {
	if l.Number > 0 && tableOf(l.Row) == "raguard" {
		return kv.Key(l.Row, fmt.Sprintf("%012d", l.Number))
	}
	return kv.Key(l.Row, l.DocumentID)
}

func sortLinks(links []corpus.Link) {
	sort.Slice(links, func(i, j int) bool {
		if links[i].Rank != links[j].Rank {
			return links[i].Rank < links[j].Rank
		}
		return links[i].DocumentID < links[j].DocumentID
	})
}

func importPairs(ctx context.Context, w *Workspace, path string, _ ImportOptions) (*ImportReport, error) {
	r := newImportReport("pairs", path)
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	p, err := w.newPool(r)
	if err != nil {
		return r, err
	}
	claims := pairedClaims{w: w, r: r, rows: map[string]scrapers.Row{}}
	labels := pairLabels{w: w, r: r, said: map[string]*saidLabel{}}
	for pair, err := range planner.ReadPairs(filepath.Base(path), bufio.NewReaderSize(until(ctx, f), 1<<20)) {
		if err := r.tolerate(err); err != nil {
			return r, errors.Join(err, p.flush()) // what came before the damage counts
		} else if pair.Document.ID == "" {
			continue
		}
		if n := max(len(pair.Document.Content()), len(pair.ClaimText)); n > maxDocument {
			r.problem("row %d: a text of %d bytes is neither a claim's nor a document's", pair.Row, n)
			continue
		}
		for _, note := range pair.Notes {
			r.Counts["note: "+note]++
		}
		if err := p.add(ctx, pair.Document); err != nil {
			return r, err
		}
		if agrees, err := claims.add(pair); err != nil {
			return r, err
		} else if !agrees {
			continue // its label is about another claim
		}
		if err := labels.add(pair); err != nil {
			return r, err
		}
	}
	return r, p.flush()
}

// pairedClaims stores the claims that pairs bring along.
type pairedClaims struct {
	w    *Workspace
	r    *ImportReport
	rows map[string]scrapers.Row // as this file said last, by row key
}

// add stores the claim of a pair, once. It returns false for one that contradicts what is stored.
func (c *pairedClaims) add(pair planner.Pair) (agrees bool, err error) {
	if pair.ClaimText == "" {
		return true, nil
	}
	table, _, _ := strings.Cut(pair.RowKey(), "/")
	row, err := rowOf(pair)
	row.At = pair.Row
	if err != nil {
		if _, told := c.rows[pair.RowKey()]; !told {
			c.rows[pair.RowKey()] = scrapers.Row{}
			c.r.problem("%v", err)
		}
		return true, nil
	}
	if before, ok := c.rows[pair.RowKey()]; ok && maps.Equal(before.Fields, row.Fields) {
		return true, nil
	}
	key := kv.Key(table, row.Key)
	stored, has, err := c.w.tables.Rows.Get(key)
	if corrupt := (*kv.CorruptError)(nil); err != nil && !errors.As(err, &corrupt) {
		return false, fmt.Errorf("read claim %s of %s: %w", row.Key, table, err)
	}
	fuller := row
	if has && err == nil { // one that cannot be read is made again
		var contradicts string
		if fuller, contradicts = agree(stored, row); contradicts != "" {
			c.r.conflict(table, row, contradicts)
			return false, nil
		}
	}
	c.rows[pair.RowKey()] = row
	if has && err == nil && maps.Equal(fuller.Fields, stored.Fields) {
		return true, nil
	}
	c.r.Counts["claims"]++
	return true, c.w.tables.Rows.Put(key, fuller)
}

// rowOf is the row of the claim that a pair brings along.
func rowOf(p planner.Pair) (scrapers.Row, error) {
	if p.Table == "raguard" {
		return scrapers.RAGuardRow(p.ClaimNumber, p.ClaimText, p.Verdict)
	}
	return scrapers.PairsRow(p.ClaimText, p.Verdict, p.Date, p.ReviewDate), nil
}

// pool adds documents to the pool in groups.
type pool struct {
	w       *Workspace
	r       *ImportReport
	next    uint64
	pending map[string]Pooled
	missing map[string]int // by the parent that was not there when they came: comments
}

func (w *Workspace) newPool(r *ImportReport) (*pool, error) {
	last := ""
	for key, err := range w.tables.Arrivals.Keys("", "") {
		if err != nil {
			return nil, err
		}
		last = key
	}
	p := &pool{w: w, r: r, pending: map[string]Pooled{}, missing: map[string]int{}}
	if last != "" {
		p.next = seqOf(last)
	}
	return p, nil
}

// add puts a document into the pool, or keeps the better of two texts of one address.
func (p *pool) add(ctx context.Context, d corpus.Document) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	d = d.Seal()
	p.r.Counts["documents"]++
	p.r.Counts["body "+string(d.BodyStatus)]++
	if _, ok := p.pending[d.Parent]; !ok {
		if orphan, err := p.w.orphaned(d); err != nil {
			return fmt.Errorf("read document %s: %w", d.Parent, err)
		} else if orphan {
			p.missing[d.Parent]++
		}
	}
	have, ok := p.pending[d.ID]
	if !ok {
		var err error
		if have, ok, err = p.w.tables.Pool.Get(d.ID); err != nil {
			return fmt.Errorf("read document %s: %w", d.ID, err)
		}
	}
	if ok && !have.Read {
		kept, other := preferred(have.Document, d)
		if kept.SHA256 != other.SHA256 {
			p.r.Counts["documents with two texts"]++
		}
		if sameDocument(*kept, have.Document) {
			p.r.Counts["documents known"]++
			return nil
		}
		d = *kept
	}
	p.next++
	p.pending[d.ID] = Pooled{Seq: p.next, Document: d, Notes: have.Notes}
	if len(p.pending) >= 256 {
		return p.flush()
	}
	return nil
}

func sameDocument(a, b corpus.Document) bool {
	a.Flags, b.Flags = nil, nil
	return fmt.Sprint(a) == fmt.Sprint(b)
}

// preferred chooses between two texts of one address, whatever their order: what was deleted stays
// deleted, then a longer text, then the smaller hash.
func preferred(a, b corpus.Document) (kept, other *corpus.Document) {
	rank := func(d corpus.Document) int {
		if d.BodyStatus == corpus.BodyDeleted || d.BodyStatus == corpus.BodyRemoved {
			return 1
		}
		return 0
	}
	better := func(a, b corpus.Document) bool {
		if rank(a) != rank(b) {
			return rank(a) > rank(b)
		}
		if len(a.Content()) != len(b.Content()) {
			return len(a.Content()) > len(b.Content())
		}
		if a.SHA256 != b.SHA256 {
			return a.SHA256 < b.SHA256
		}
		return a.RetrievedAt+a.PublishedAt+a.URL+a.Parent >= b.RetrievedAt+b.PublishedAt+b.URL+b.Parent
	}
	if better(a, b) {
		return &a, &b
	}
	return &b, &a
}

// done flushes, and counts the comments that answer one which neither this import brought nor one before.
func (p *pool) done() error {
	if err := p.flush(); err != nil {
		return err
	}
	for parent, n := range p.missing {
		has, err := p.w.tables.Pool.Has(parent)
		if err != nil {
			return fmt.Errorf("read document %s: %w", parent, err)
		}
		if !has {
			p.r.Counts["comments without their parent"] += n
		}
	}
	return nil
}

func (p *pool) flush() error {
	ids := sortedKeys(p.pending)
	sort.Slice(ids, func(i, j int) bool { return p.pending[ids[i]].Seq < p.pending[ids[j]].Seq })
	var ops []kv.Op
	for _, id := range ids {
		doc, err := p.w.tables.Pool.PutOp(id, p.pending[id])
		if err != nil {
			return err
		}
		arrival, err := p.w.tables.Arrivals.PutOp(seqKey(p.pending[id].Seq), id)
		if err != nil {
			return err
		}
		ops = append(ops, doc, arrival)
	}
	if len(ops) == 0 {
		return nil
	}
	if err := p.w.store.Write(ops...); err != nil {
		return fmt.Errorf("store documents: %w", err)
	}
	p.r.Counts["documents stored"] += len(ids)
	p.pending = map[string]Pooled{}
	return nil
}
