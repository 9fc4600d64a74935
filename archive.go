package assay

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"assay/corpus"
	"assay/fetch"
	"assay/kv"
	"assay/llm"
	"assay/scrapers"
)

// An archive is a WARC 1.1 file, or a WACZ file around one, from which a workspace can be made again. It
// holds, in this order:
//
//	warcinfo                         what made it; the line archiveLine tells the version of this layout
//	metadata urn:assay:recipe        the recipe with every default filled in, as a release carries it
//	metadata urn:assay:file:NAME     assay.yaml and the prompts of the workspace
//	... urn:assay:table:NAME:V:N     part N of a table of the store in its version V, as lines of JSON
//	request, response, ...           every exchange; see fetch.WriteExchanges
//	metadata urn:assay:end           how many records there are before it, so that a cut is seen
//
// Tables that describe (calls, canaries) are metadata, what was imported is resource. What is not here is
// made again by a build from what is: see carried.
const (
	archiveVersion = 1
	archiveLine    = "assay-archive"

	urnRecipe = "urn:assay:recipe"
	urnFile   = "urn:assay:file:"
	urnTable  = "urn:assay:table:"
	urnEnd    = "urn:assay:end"

	// partBytes is how many bytes of lines make a record; a longer line is a record of its own.
	partBytes = 1 << 20
)

// A carrier moves one table of the store through an archive.
type carrier struct {
	name string
	kind string // WARC type
	put  func(w *Workspace, yield func(line) error) error
	take func(ctx context.Context, t *archiveTaker, l line) error
}

// carried lists every table that an archive carries, in the order in which it is read back. Of the
// store's other buckets, a build makes again: items, leads, ratings, voices, arrivals, shelved, fetch.head,
// fetch.address and fetch.alias; body comes with the exchanges. These are about runs and machines, and
// stay: reports, refreshes, runs, holds, published, drift, fetch.host, fetch.digest, and what is ordered
// from batch APIs (llm.order, llm.order.body, llm.batch, llm.quota). files is what lies in the folder.
func carried() []carrier {
	return []carrier{
		carry("rows", "resource", 1, func(w *Workspace) kv.Bucket[scrapers.Row] { return w.tables.Rows }),
		carry("links", "resource", 1, func(w *Workspace) kv.Bucket[corpus.Link] { return w.tables.Links }),
		carry("shown", "resource", 1, func(w *Workspace) kv.Bucket[corpus.Ref] { return w.tables.Shown }),
		carry("memories", "resource", 1, func(w *Workspace) kv.Bucket[memorised] { return w.tables.Memories }),
		carry("commits", "resource", 1, func(w *Workspace) kv.Bucket[commit] { return w.tables.Commits }),
		carry("decisions", "resource", 1, func(w *Workspace) kv.Bucket[corpus.Decision] { return w.tables.Decisions }),
		{name: "pool:1", kind: "resource", put: putPool, take: takePool},
		{name: "notes:1", kind: "resource", put: putNotes, take: takeNotes},
		carry(llm.BucketCalls, "metadata", llm.BucketVersion, func(w *Workspace) kv.Bucket[llm.Record] {
			return kv.In[llm.Record](w.store, llm.BucketCalls, llm.BucketVersion)
		}),
		carry(llm.BucketRaw, "metadata", llm.BucketVersion, func(w *Workspace) kv.Bucket[[]byte] {
			return kv.In[[]byte](w.store, llm.BucketRaw, llm.BucketVersion)
		}),
		carry(llm.BucketAnswers, "metadata", llm.BucketVersion, func(w *Workspace) kv.Bucket[json.RawMessage] {
			return kv.In[json.RawMessage](w.store, llm.BucketAnswers, llm.BucketVersion)
		}),
		carry(llm.BucketCanaries, "metadata", llm.BucketVersion, func(w *Workspace) kv.Bucket[llm.Canary] {
			return kv.In[llm.Canary](w.store, llm.BucketCanaries, llm.BucketVersion)
		}),
	}
}

// A line is one record of a table. Of Key and Name one is set: the parts of a key, or a key that is no more than a
// name. Of Value, Text and Base64 one is set; the latter two are bytes.
type line struct {
	Key    []string        `json:"key,omitempty"`
	Name   string          `json:"name,omitzero"`
	Value  json.RawMessage `json:"value,omitempty"`
	Text   *string         `json:"text,omitempty"`
	Base64 []byte          `json:"base64,omitempty"`
}

// carry moves a bucket whose records travel as they are.
func carry[V any](name, kind string, version int, in func(*Workspace) kv.Bucket[V]) carrier {
	return carrier{
		name: name + ":" + strconv.Itoa(version), kind: kind,
		put: func(w *Workspace, yield func(line) error) error {
			for e, err := range in(w).Scan("", "") {
				if err != nil {
					return err
				}
				l := line{Key: kv.Parts(e.Key)}
				if len(l.Key) == 0 {
					l.Name = e.Key
				}
				if !utf8.ValidString(e.Key) || e.Key == "" {
					return fmt.Errorf("the key %q of %s is no text", e.Key, name)
				}
				if raw, ok := any(e.Value).([]byte); ok {
					l = l.holding(raw)
				} else if l.Value, err = json.Marshal(e.Value); err != nil {
					return err
				}
				if err := yield(l); err != nil {
					return err
				}
			}
			return nil
		},
		take: func(_ context.Context, t *archiveTaker, l line) error {
			var v V
			if raw, ok := any(&v).(*[]byte); ok {
				*raw = l.bytes()
			} else if err := json.Unmarshal(l.Value, &v); err != nil {
				return fmt.Errorf("read a record of %s: %w", name, err)
			}
			return takeInto(t, in(t.w), cmp.Or(l.Name, kv.Key(l.Key...)), v)
		},
	}
}

func (l line) holding(raw []byte) line {
	if utf8.Valid(raw) {
		text := string(raw)
		l.Text = &text
	} else {
		l.Base64 = raw
	}
	return l
}

func (l line) bytes() []byte {
	if l.Text != nil {
		return []byte(*l.Text)
	}
	return append([]byte{}, l.Base64...)
}

// putPool yields the imported documents by id. Their order of arrival is nobody's concern but the index's.
func putPool(w *Workspace, yield func(line) error) error {
	for e, err := range w.tables.Pool.Scan("", "") {
		if err != nil {
			return err
		}
		if e.Value.Read {
			continue // it is read again
		}
		value, err := json.Marshal(e.Value.Document)
		if err != nil {
			return err
		}
		if err := yield(line{Key: []string{e.Key}, Value: value}); err != nil {
			return err
		}
	}
	return nil
}

// takePool imports a document as any other.
func takePool(ctx context.Context, t *archiveTaker, l line) error {
	var d corpus.Document
	if err := json.Unmarshal(l.Value, &d); err != nil {
		return fmt.Errorf("read a document: %w", err)
	}
	if len(l.Key) != 1 || d.ID != l.Key[0] {
		return fmt.Errorf("read a document: it has the id %q under the key %q", d.ID, l.Key)
	}
	return t.pool.add(ctx, d)
}

// putNotes yields the remarks beside imported documents.
func putNotes(w *Workspace, yield func(line) error) error {
	for e, err := range w.tables.Pool.Scan("", "") {
		if err != nil {
			return err
		}
		if len(e.Value.Notes) == 0 {
			continue
		}
		value, err := json.Marshal(e.Value.Notes)
		if err != nil {
			return err
		}
		if err := yield(line{Key: []string{e.Key}, Value: value}); err != nil {
			return err
		}
	}
	return nil
}

// takeNotes puts remarks beside their document; those that stand there already stay.
func takeNotes(_ context.Context, t *archiveTaker, l line) error {
	var notes []string
	if err := json.Unmarshal(l.Value, &notes); err != nil {
		return fmt.Errorf("read remarks: %w", err)
	}
	if len(l.Key) != 1 {
		return fmt.Errorf("read remarks: %q is no document", l.Key)
	}
	pooled, ok, err := t.w.tables.Pool.Get(l.Key[0])
	if err != nil || !ok || len(pooled.Notes) > 0 {
		return err
	}
	pooled.Notes = notes
	return t.w.tables.Pool.Put(l.Key[0], pooled)
}

// ArchiveOptions says how an archive is written.
type ArchiveOptions struct {
	Force    bool                               // replace a file that is there
	Progress func(what string, done, total int) // called now and then; nil means that nobody looks
}

// ArchiveReport is what an archive holds.
type ArchiveReport struct {
	Path      string         `json:"path"`
	Bytes     int64          `json:"bytes"`
	Records   int            `json:"records"`
	Exchanges int            `json:"exchanges"`
	Revisits  int            `json:"revisits"` // of these, answers whose body stands elsewhere in the file
	Pages     int            `json:"pages"`
	Tables    map[string]int `json:"tables"` // records of each table
	Files     []string       `json:"files"`
}

// Archive writes everything that a build needs as one WARC file, or as a WACZ file if the name ends in
// .wacz. The file appears whole or not at all. Its bytes depend on what is stored alone.
func (w *Workspace) Archive(ctx context.Context, out string, o ArchiveOptions) (rep ArchiveReport, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("archive %s: %w", out, err)
		}
	}()
	if err := CheckArchiveName(out); err != nil {
		return rep, err
	}
	if _, err := os.Lstat(out); err == nil && !o.Force {
		return rep, errors.New("the file exists; choose another name, or replace it with --force")
	}
	dir := filepath.Dir(out)
	tmp, err := os.CreateTemp(dir, ".archive-*")
	if err != nil {
		return rep, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, tmp.Close(), os.Remove(tmp.Name()))
		}
	}()
	a := &archiver{w: w, o: o, out: &roomyWriter{w: tmp, room: w.room(dir)}, rep: ArchiveReport{Path: out, Tables: map[string]int{}, Files: []string{}}}
	if err := a.write(ctx, strings.HasSuffix(out, ".wacz")); err != nil {
		return rep, err
	}
	if err := tmp.Chmod(0o644); err != nil {
		return rep, err
	}
	if err := errors.Join(tmp.Sync(), tmp.Close()); err != nil {
		return rep, err
	}
	if err := os.Rename(tmp.Name(), out); err != nil {
		return rep, err
	}
	a.rep.Bytes = a.out.n
	return a.rep, syncFolder(dir)
}

// CheckArchiveName reports whether a file may be called so; the name says what it will be.
func CheckArchiveName(out string) error {
	if !strings.HasSuffix(out, ".warc.gz") && !strings.HasSuffix(out, ".wacz") {
		return errors.New("the name of an archive ends in .warc.gz or .wacz")
	}
	return nil
}

// syncFolder makes a rename in a folder durable.
func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// A roomyWriter asks before every few MiB whether the disk has room for them.
type roomyWriter struct {
	w     io.Writer
	room  func() error
	n     int64
	asked int64 // the next place to ask at
}

func (r *roomyWriter) Write(p []byte) (int, error) {
	if r.n >= r.asked {
		if err := r.room(); err != nil {
			return 0, err
		}
		r.asked = r.n + 4<<20
	}
	n, err := r.w.Write(p)
	r.n += int64(n)
	return n, err
}

// An archiver is one run of Archive.
type archiver struct {
	w    *Workspace
	o    ArchiveOptions
	out  *roomyWriter
	warc *fetch.WARCWriter
	date time.Time // of the newest thing in the archive: what has no date of its own gets this
	rep  ArchiveReport
}

func (a *archiver) write(ctx context.Context, zipped bool) (err error) {
	survey, err := fetch.SurveyExchanges(ctx, a.w.store)
	if err != nil {
		return err
	}
	if a.date, err = a.newest(ctx, survey); err != nil {
		return err
	}
	each := func(fetch.Capture) error { return nil }
	buffered := bufio.NewWriterSize(a.out, 1<<20)
	var wacz *fetch.WACZ
	var warc io.Writer = buffered
	if zipped {
		if wacz, err = fetch.NewWACZ(buffered, fetch.WACZOptions{Title: a.w.Config.Recipe.Name, Software: software, Created: a.date}); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, wacz.Discard()) }()
		warc, each = wacz.WARC, wacz.Add
	}
	a.warc = fetch.NewWARCWriter(warc)
	if err := a.head(); err != nil {
		return err
	}
	for _, c := range carried() {
		if err := a.table(ctx, c); err != nil {
			return fmt.Errorf("archive the table %s: %w", c.name, err)
		}
	}
	if err := a.exchanges(ctx, survey, each); err != nil {
		return err
	}
	if err := a.end(); err != nil {
		return err
	}
	if wacz != nil {
		if err := wacz.Close(); err != nil {
			return err
		}
	}
	return buffered.Flush()
}

const software = "assay/" + Version

// newest is when the newest exchange came or the newest call was made: the archive's date.
func (a *archiver) newest(ctx context.Context, s fetch.Survey) (time.Time, error) {
	date := s.Newest
	for rec, err := range a.w.llm.Calls() {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return date, err
		}
		if rec.Seen.Started.After(date) {
			date = rec.Seen.Started
		}
	}
	if date.IsZero() {
		date = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) // nothing has a date: neither has the archive
	}
	return date.UTC(), nil
}

// head writes what an archive begins with.
func (a *archiver) head() error {
	info := strings.Join([]string{
		"software: " + software,
		"format: WARC File Format 1.1",
		"conformsTo: http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/",
		"robots: obey",
		"isPartOf: " + strings.Join(strings.Fields(a.w.Config.Recipe.Name), " "),
		archiveLine + ": " + strconv.Itoa(archiveVersion),
		"description: Heads have sorted fields and neither cookies nor reason phrases. Payloads have no transfer coding and keep their content coding. The field Assay-Exchange tells what WARC has no name for.",
	}, "\r\n") + "\r\n"
	if err := a.put("warcinfo", "", "application/warc-fields", []byte(info)); err != nil {
		return err
	}
	lock, err := a.w.Config.Recipe.Lock()
	if err != nil {
		return err
	}
	if err := a.put("metadata", urnRecipe, "application/yaml", lock); err != nil {
		return err
	}
	for f, err := range a.w.writtenFiles() {
		if err != nil {
			return err
		}
		kind := "text/plain; charset=utf-8"
		if f.path == ConfigName {
			kind = "application/yaml"
		}
		if err := a.put("metadata", urnFile+f.path, kind, f.data); err != nil {
			return err
		}
		a.rep.Files = append(a.rep.Files, f.path)
	}
	return nil
}

func (a *archiver) put(kind, uri, contentType string, block []byte) error {
	_, err := a.warc.Write(fetch.Record{Type: kind, URI: uri, Date: a.date, ContentType: contentType, Head: block})
	return err
}

// table writes a table in parts.
func (a *archiver) table(ctx context.Context, c carrier) error {
	var part bytes.Buffer
	e := json.NewEncoder(&part)
	e.SetEscapeHTML(false)
	parts, lines := 0, 0
	flush := func() error {
		if part.Len() == 0 {
			return nil
		}
		parts++
		err := a.put(c.kind, fmt.Sprintf("%s%s:%06d", urnTable, c.name, parts), "application/x-ndjson", part.Bytes())
		part.Reset()
		return err
	}
	err := c.put(a.w, func(l line) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := e.Encode(l); err != nil {
			return err
		}
		if lines++; lines%1000 == 0 {
			a.progress(c.name, lines, 0)
		}
		if part.Len() < partBytes {
			return nil
		}
		return flush()
	})
	if err != nil {
		return err
	}
	a.rep.Tables[c.name] = lines
	a.progress(c.name, lines, lines)
	return flush()
}

func (a *archiver) exchanges(ctx context.Context, s fetch.Survey, each func(fetch.Capture) error) error {
	before := a.warc.Records
	done := 0
	err := fetch.WriteExchanges(ctx, a.w.store, a.warc, func(c fetch.Capture) error {
		if done++; done%100 == 0 {
			a.progress("exchanges", done, s.Exchanges)
		}
		if c.Revisit {
			a.rep.Revisits++
		}
		if c.Page {
			a.rep.Pages++
		}
		return each(c)
	})
	a.rep.Exchanges = s.Exchanges
	if a.warc.Records > before {
		a.progress("exchanges", s.Exchanges, s.Exchanges)
	}
	return err
}

func (a *archiver) progress(what string, done, total int) {
	if a.o.Progress != nil {
		a.o.Progress(what, done, total)
	}
}

// archiveEnd is the block of the last record.
type archiveEnd struct {
	Records   int            `json:"records"` // before this one
	Exchanges int            `json:"exchanges"`
	Tables    map[string]int `json:"tables"`
}

func (a *archiver) end() error {
	block, err := json.Marshal(archiveEnd{Records: a.warc.Records, Exchanges: a.rep.Exchanges, Tables: a.rep.Tables})
	if err != nil {
		return err
	}
	if err := a.put("metadata", urnEnd, "application/json", append(block, '\n')); err != nil {
		return err
	}
	a.rep.Records = a.warc.Records
	return nil
}

// A writtenFile is one that a person wrote beside the store.
type writtenFile struct {
	path string // with slashes
	data []byte
}

// writtenFiles yields the configuration, the prices and the prompts of the folder.
func (w *Workspace) writtenFiles() iter.Seq2[writtenFile, error] {
	return func(yield func(writtenFile, error) bool) {
		paths := []string{ConfigName}
		if _, err := os.Stat(filepath.Join(w.Dir, PricesName)); err == nil {
			paths = append(paths, PricesName)
		}
		for _, name := range sortedKeys(w.prompts) {
			paths = append(paths, "prompts/"+name+".txt")
		}
		for _, path := range paths {
			data, err := os.ReadFile(filepath.Join(w.Dir, filepath.FromSlash(path)))
			if !yield(writtenFile{path, data}, err) || err != nil {
				return
			}
		}
	}
}

// importArchive reads what Archive wrote.
func importArchive(ctx context.Context, w *Workspace, path string, _ ImportOptions) (r *ImportReport, err error) {
	zipped, err := fetch.IsZip(path)
	if err != nil {
		return nil, err
	}
	r = newImportReport("archive", path)
	t := &archiveTaker{w: w, r: r}
	if t.pool, err = w.newPool(r); err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, t.flush()) }()
	if zipped {
		_, err := fetch.OpenWARCs(path, func(name string, in io.Reader) error { return t.read(ctx, name, in) })
		return r, err
	}
	f, err := os.Open(path)
	if err != nil {
		return r, err
	}
	defer f.Close()
	return r, t.read(ctx, filepath.Base(path), bufio.NewReaderSize(f, 1<<20))
}

// An archiveTaker is one run of importArchive.
type archiveTaker struct {
	w    *Workspace
	r    *ImportReport
	pool *pool
	ops  []kv.Op

	begun, ended bool
	end          archiveEnd     // what the last record says
	tables       map[string]int // records that were read, by table
	recipe       []byte
}

// errForeign refuses what others made.
var errForeign = errors.New("it does not begin as an archive of assay does; assay import warc takes files of other programs")

// read takes in one WARC file.
func (t *archiveTaker) read(ctx context.Context, name string, in io.Reader) error {
	t.begun, t.ended, t.end, t.tables = false, false, archiveEnd{}, map[string]int{}
	got, err := fetch.ReadArchive(ctx, t.w.store, name, in, func(rec fetch.ArchivedRecord) error { return t.record(ctx, rec) })
	exchangeCounts(t.r, got)
	if flushErr := t.flush(); err == nil {
		err = flushErr
	}
	switch {
	case err != nil:
		return err
	case !t.ended:
		return fmt.Errorf("%w: its end is missing, so it is cut off after %d records; what was read is stored", fetch.ErrDamaged, got.Records)
	}
	if missing := t.end.differs(got, t.tables); missing != "" {
		return fmt.Errorf("%w: %s; what was read is stored", fetch.ErrDamaged, missing)
	}
	return t.checkRecipe()
}

// differs says in what an archive that was read to its end is another one than was written, or "".
func (e archiveEnd) differs(got fetch.ImportReport, tables map[string]int) string {
	var is []string
	count := func(what string, was, now int) {
		if was != now {
			is = append(is, fmt.Sprintf("%d %s where %d were written", now, what, was))
		}
	}
	count("records", e.Records, got.Records-1) // without the last
	count("exchanges", e.Exchanges, got.Responses)
	names := maps.Clone(tables)
	maps.Copy(names, e.Tables)
	for _, name := range sortedKeys(names) {
		count("lines of table "+name, e.Tables[name], tables[name])
	}
	if len(is) == 0 {
		return ""
	}
	return "it has " + strings.Join(is, ", ")
}

// record takes in a record that is not part of an exchange.
func (t *archiveTaker) record(ctx context.Context, rec fetch.ArchivedRecord) error {
	if rec.Type == "warcinfo" && !t.begun {
		return t.begin(rec.Block)
	}
	// One whose beginning is damaged, which is noted, is still one.
	if t.begun = t.begun || strings.HasPrefix(rec.URI, "urn:assay:"); !t.begun {
		return errForeign
	}
	switch {
	case rec.URI == urnRecipe:
		t.recipe = rec.Block
	case strings.HasPrefix(rec.URI, urnFile):
		return t.file(strings.TrimPrefix(rec.URI, urnFile), rec.Block)
	case strings.HasPrefix(rec.URI, urnTable):
		return t.table(ctx, strings.TrimPrefix(rec.URI, urnTable), rec.Block)
	case rec.URI == urnEnd:
		if err := json.Unmarshal(rec.Block, &t.end); err != nil {
			return fmt.Errorf("read its end: %w", err)
		}
		t.ended = true
	default:
		t.r.problem("a %s record of %q is none that this program knows; it is left out", rec.Type, rec.URI)
	}
	return nil
}

func (t *archiveTaker) begin(block []byte) error {
	for l := range strings.Lines(string(block)) {
		name, value, _ := strings.Cut(strings.TrimSpace(l), ":")
		if name != archiveLine {
			continue
		}
		if v := strings.TrimSpace(value); v != strconv.Itoa(archiveVersion) {
			return fmt.Errorf("it has layout %s, and this program reads %d; read it with the program that made it, or a newer one", v, archiveVersion)
		}
		t.begun = true
		return nil
	}
	return errForeign
}

// table takes in a part of a table.
func (t *archiveTaker) table(ctx context.Context, part string, block []byte) error {
	i := strings.LastIndexByte(part, ':')
	name := part[:max(i, 0)]
	for _, c := range carried() {
		if c.name != name {
			continue
		}
		d := json.NewDecoder(bytes.NewReader(block))
		for {
			var l line
			if err := d.Decode(&l); errors.Is(err, io.EOF) {
				return t.flush() // the next table may read what this one put
			} else if err != nil {
				return fmt.Errorf("read table %s: %w", part, err)
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := c.take(ctx, t, l); err != nil {
				return fmt.Errorf("read table %s: %w", part, err)
			}
			t.tables[name]++
			t.r.Counts["table "+name]++
		}
	}
	return fmt.Errorf("read table %s: this program has no such table in this version; read the archive with the program that made it, or a newer one", cmp.Or(name, part))
}

// takeInto stores a record unless there is one. One that differs stays, and is told.
func takeInto[V any](t *archiveTaker, b kv.Bucket[V], key string, v V) error {
	have, ok, err := b.Get(key)
	if corrupt := (*kv.CorruptError)(nil); err != nil && !errors.As(err, &corrupt) {
		return err
	}
	if ok && err == nil {
		mine, err := json.Marshal(have)
		if err != nil {
			return err
		}
		theirs, err := json.Marshal(v)
		if err != nil {
			return err
		}
		if !bytes.Equal(mine, theirs) {
			t.r.problem("%s has another record of %q already; it stays, so a build may give another release than the archive's", b.Name(), kv.Parts(key))
		}
		return nil
	}
	op, err := b.PutOp(key, v)
	if err != nil {
		return err
	}
	t.ops = append(t.ops, op)
	t.r.Counts["stored in "+b.Name()]++
	if len(t.ops) >= 256 {
		return t.flush()
	}
	return nil
}

func (t *archiveTaker) flush() error {
	ops := t.ops
	t.ops = nil
	return errors.Join(t.w.store.Write(ops...), t.pool.flush())
}

// file puts a file of the archive into the folder, unless a person wrote another one there: then it is
// put beside it.
func (t *archiveTaker) file(name string, data []byte) error {
	template, isPrompt := strings.CutPrefix(strings.TrimSuffix(name, ".txt"), "prompts/")
	if name != ConfigName && name != PricesName && !(isPrompt && strings.HasSuffix(name, ".txt") && Prompts()[template] != nil) {
		t.r.problem("the archive holds a file %q, which no workspace has; it is left out", name)
		return nil
	}
	path := filepath.Join(t.w.Dir, filepath.FromSlash(name))
	have, err := os.ReadFile(path)
	switch {
	case err == nil && bytes.Equal(have, data):
		t.r.Counts["files known"]++
		return nil
	case errors.Is(err, os.ErrNotExist), err == nil && name == ConfigName && untouched(have):
		t.r.Counts["files written"]++
		if name == ConfigName {
			t.foreign(data)
		}
		return writeWhole(path, data)
	case err != nil:
		return err
	}
	beside := path + ".archived"
	t.r.problem("%s is another one than the archive's, and stays; the archive's is now %s, and a build gives its release with that one alone", name, filepath.Base(beside))
	return writeWhole(beside, data)
}

// foreign tells whom a configuration lets a build ask that is none of the profile's, before anybody builds with it:
// whoever made the archive chose these addresses, and the variables whose contents go there.
func (t *archiveTaker) foreign(config []byte) {
	c, _, err := parseConfig(config, nil, nil)
	if err != nil {
		t.r.Hint = "the archive brought " + ConfigName + ", which cannot be used by itself: look at it before you build without --replay"
		return
	}
	usual, _, err := parseConfig([]byte("recipe: {profile: "+c.Recipe.Profile+"}"), nil, nil)
	if err != nil {
		return // unreachable: the profile was just read
	}
	known := map[string]bool{}
	for _, a := range usual.Runtime.asks() {
		known[a.String()] = true
	}
	for _, a := range c.Runtime.asks() {
		if !known[a.String()] {
			t.r.Asks = append(t.r.Asks, a)
		}
	}
	if len(t.r.Asks) > 0 {
		t.r.Hint = "the archive brought " + ConfigName + " with the addresses above: look at it before you build without --replay, which asks them"
	}
}

// asks lists every address that a run is told to ask or may dial, with the variables whose contents it sends there.
func (rt Runtime) asks() (out []Asked) {
	add := func(setting, address string, keys ...string) {
		keys = slices.DeleteFunc(keys, func(k string) bool { return k == "" })
		if address != "" || len(keys) > 0 {
			out = append(out, Asked{Setting: "runtime." + setting, Address: address, Keys: keys})
		}
	}
	for _, name := range sortedKeys(rt.Endpoints) {
		add("endpoints."+name, rt.Endpoints[name].BaseURL, rt.Endpoints[name].KeyEnv)
	}
	add("reddit.token_url", rt.Reddit.TokenURL, rt.Reddit.ClientIDEnv, rt.Reddit.ClientSecretEnv)
	add("reddit", rt.Reddit.Base)
	add("arctic_shift", rt.ArcticShift.Base)
	add("searxng", rt.SearXNG.Base)
	add("fact_check_tools", rt.FactCheckTools.Base, rt.FactCheckTools.KeyEnv)
	for _, name := range sortedKeys(rt.Search) {
		add("search."+name, rt.Search[name].Base, rt.Search[name].KeyEnv)
	}
	for _, address := range rt.AllowPrivate {
		add("allow_private", address)
	}
	for _, host := range sortedKeys(rt.Resolve) {
		add("resolve."+host, rt.Resolve[host])
	}
	return out
}

// untouched reports whether a configuration is one that assay init wrote and nobody changed.
func untouched(config []byte) bool {
	for _, profile := range Profiles() {
		if text, err := InitConfig(profile); err == nil && bytes.Equal(text, config) {
			return true
		}
	}
	return false
}

// writeWhole writes a file that appears whole or not at all.
func writeWhole(path string, data []byte) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	_, err = tmp.Write(data)
	if err = errors.Join(err, tmp.Chmod(0o644), tmp.Sync(), tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(tmp.Name()))
	}
	return nil
}

// checkRecipe tells where the recipe of this folder is not the archive's.
func (t *archiveTaker) checkRecipe() error {
	config, _, err := LoadConfig(t.w.Dir, t.w.environ)
	if err != nil {
		t.r.problem("the archive's %s cannot be used: %v", ConfigName, err)
		return nil
	}
	lock, err := config.Recipe.Lock()
	if err != nil {
		return err
	}
	if t.recipe != nil && !bytes.Equal(lock, t.recipe) {
		t.r.problem("the recipe here is not the one that was archived (%s); a build gives another release", firstDifference(string(t.recipe), string(lock)))
	}
	return nil
}

// firstDifference shows the first lines in which two texts differ.
func firstDifference(theirs, ours string) string {
	a, b := strings.Split(theirs, "\n"), strings.Split(ours, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("there %q, here %q", strings.TrimSpace(a[i]), strings.TrimSpace(b[i]))
		}
	}
	return "one is longer"
}
