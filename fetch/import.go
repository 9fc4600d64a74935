package fetch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"assay/corpus"
	"assay/kv"
)

// An ImportReport says what an import read and what became of it. Responses is the sum of Stored,
// Present and all of Skipped.
type ImportReport struct {
	Records   int            `json:"records"`            // records of a WARC file, files of a folder
	Types     map[string]int `json:"types,omitzero"`     // records by WARC type
	Responses int            `json:"responses"`          // records and files that could be answers
	Stored    int            `json:"stored"`             // exchanges that are new
	Present   int            `json:"present,omitzero"`   // exchanges that were stored before
	Skipped   map[string]int `json:"skipped,omitzero"`   // by reason
	Classes   map[string]int `json:"classes,omitzero"`   // of stored and present exchanges
	Truncated int            `json:"truncated,omitzero"` // of these, bodies that end early
	Notes     []string       `json:"notes,omitzero"`     // damage, and files that are not in the store now
}

const (
	// maxImport bounds one response; more is no page and no feed.
	maxImport = 1 << 30
	// maxClassified is how much of a body is looked at for its class. No wall is larger.
	maxClassified = 8 << 20
)

// An importer puts exchanges into the store that somebody else made.
type importer struct {
	archive *archive
	source  string
	report  ImportReport
	told    int // answers that unreadable left out
}

func newImporter(store *kv.Store, source string) *importer {
	in := newReport(source)
	in.archive = openArchive(store)
	return in
}

// newReport makes an importer that has nowhere to store anything yet.
func newReport(source string) *importer {
	return &importer{source: source, report: ImportReport{Types: map[string]int{}, Skipped: map[string]int{}, Classes: map[string]int{}}}
}

func (in *importer) skip(reason string) { in.report.Skipped[reason]++ }

// unreadable skips an answer that stands in a WARC file but cannot be read, and says where.
func (in *importer) unreadable(reason, address string, rec *warcRecord) {
	in.skip(reason)
	if in.told++; in.told <= maxNotes {
		in.note("%s at %d: %s: %s", rec.kind, rec.offset, reason, cmp.Or(address, "no address"))
	}
}

func (in *importer) note(format string, args ...any) {
	in.report.Notes = append(in.report.Notes, fmt.Sprintf(format, args...))
}

// add classifies an exchange and stores it with its body, which stays open. A nil body is that of
// ex.SameAs. The error is one of the store or the disk.
func (in *importer) add(ctx context.Context, ex Exchange, body *spool) (Exchange, error) {
	ex.Source = in.source
	switch {
	case body == nil:
	case body.over:
		ex.Class, ex.Reason, ex.Detail = ClassFailed, ReasonTooLarge, fmt.Sprintf("more than %d bytes", maxImport)
	default:
		if err := in.classify(&ex, body); err != nil {
			return Exchange{}, err
		}
	}
	if ex.Reason == ReasonTooLarge {
		body = nil // as for a request: what may not be read is not kept
	}
	known, _, err := in.archive.head(tidy(ex).Key())
	if err != nil {
		return Exchange{}, err
	}
	stored, err := in.archive.append(ctx, ex, body)
	if err != nil {
		return Exchange{}, err
	}
	if stored.Seq > known.Count {
		in.report.Stored++
	} else {
		in.report.Present++
	}
	in.report.Classes[string(stored.Class)]++
	if stored.Truncated {
		in.report.Truncated++
	}
	return stored, nil
}

// classify sets class and reason from what a body holds when decoded.
func (in *importer) classify(ex *Exchange, body *spool) error {
	r, err := body.reader()
	if err != nil {
		return fmt.Errorf("read the body of %s: %w", ex.URL, err)
	}
	decoded, err := decodeContent(ex.Header, ex.URL, io.LimitReader(r, maxClassified), maxDecompressed)
	var bad *Error
	switch errors.As(err, &bad); {
	case err != nil && bad == nil:
		return err
	case ex.Status/100 == 2 && strings.HasSuffix(ex.URL, "/robots.txt"), bad != nil && body.size > maxClassified:
		ex.Class, ex.Reason = statusClass(ex.Status, ex.Header)
	case bad != nil && (bad.Reason == ReasonTooLarge || len(decoded) == 0):
		ex.Class, ex.Reason, ex.Detail = ClassFailed, bad.Reason, bad.Detail
	default:
		ex.Truncated = ex.Truncated || bad != nil
		ex.Class, ex.Reason = classify(ex.Status, ex.Header, decoded)
	}
	return nil
}

// ImportFile stores one file as the page at an address. Its type follows from its name or its bytes,
// its charset from its bytes. A zero time means the file's own.
func ImportFile(ctx context.Context, store *kv.Store, address, file string, retrieved time.Time) (ImportReport, error) {
	in := newImporter(store, "file:"+filepath.Base(file))
	if err := checkAddress(corpus.CanonicalURL(address)); err != nil {
		return in.report, fmt.Errorf("import %s: %w", file, err)
	}
	in.report.Records++
	if err := in.file(ctx, file, filepath.Base(file), placed{URL: address, Retrieved: retrieved}, time.Now); err != nil {
		return in.report, fmt.Errorf("import %s: %w", file, err)
	}
	if len(in.report.Notes) > 0 {
		return in.report, fmt.Errorf("import %s: %s", file, in.report.Notes[0])
	}
	return in.report, nil
}

// DirOptions says which addresses the files of a folder have. Without Base and Table, a urls.tsv in
// the folder is used, or else the top folders are taken for hosts.
type DirOptions struct {
	// Base is the address of the folder: a file's address is Base and its path. index.html is dropped.
	Base string
	// Table names a file of lines: path TAB address [TAB status [TAB content type [TAB retrieved]]], with
	// paths relative to the folder and times as RFC 3339 or dates. It wins over Base, which serves the
	// files that it does not list.
	Table string
	Now   func() time.Time // for files without a time; nil means time.Now
}

// tableName is the table that a folder may bring along.
const tableName = "urls.tsv"

// A placed file is one whose address is known.
type placed struct {
	URL       string
	Status    int    // 0 means 200
	Type      string // "" means by name and bytes
	Retrieved time.Time
}

// ImportDir stores the files of a folder and of all below it as pages. Every file that is not stored, and
// every line of the table that cannot be read, is in the notes, with the reason. The error is one of the
// folder itself, of reading the table, or of the store.
func ImportDir(ctx context.Context, store *kv.Store, dir string, o DirOptions) (ImportReport, error) {
	in := newImporter(store, "dir:"+filepath.Base(filepath.Clean(dir)))
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Base != "" {
		if err := checkAddress(corpus.CanonicalURL(o.Base)); err != nil {
			return in.report, fmt.Errorf("import %s: %w", dir, err)
		}
	}
	table := o.Table
	if table == "" {
		if _, err := os.Stat(filepath.Join(dir, tableName)); err == nil {
			table = filepath.Join(dir, tableName)
		}
	}
	rows, refused, err := in.table(dir, table, o.Now())
	if err != nil {
		return in.report, fmt.Errorf("import %s: %w", dir, err)
	}
	err = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		rel, relErr := filepath.Rel(dir, name)
		if relErr != nil {
			return relErr // unreachable: WalkDir joins names below dir
		}
		rel = filepath.ToSlash(rel)
		switch {
		case err != nil && rel == ".":
			return err
		case err != nil:
			in.leave(rel, "unreadable", err.Error())
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case strings.HasPrefix(d.Name(), ".") && d.Name() != ".well-known" && rel != ".":
			in.leave(rel, "hidden", "its name starts with a dot")
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		case d.IsDir() || sameFile(name, table):
			return nil
		}
		in.report.Records++
		at, ok := rows[rel]
		delete(rows, rel)
		why, bad := refused[rel]
		delete(refused, rel)
		if !ok {
			at.URL = addressOf(o.Base, rel, table != "")
		}
		switch {
		case bad: // not even where Base has an address for it: the table means another
			in.leave(rel, reasonBadLine, why)
		case at.URL == "":
			in.leave(rel, "unmapped", "no address: say with --base or in urls.tsv where it was")
		case !d.Type().IsRegular():
			in.leave(rel, "unreadable", "not a regular file")
		default:
			return in.file(ctx, name, rel, at, o.Now)
		}
		return nil
	})
	if err != nil {
		return in.report, fmt.Errorf("import %s: %w", dir, err)
	}
	for _, rel := range slices.Sorted(maps.Keys(rows)) {
		in.leave(rel, "missing", "in "+filepath.Base(table)+" but not in the folder")
	}
	for _, rel := range slices.Sorted(maps.Keys(refused)) {
		in.leave(rel, reasonBadLine, refused[rel])
	}
	return in.report, nil
}

// reasonBadLine is why a file is left out whose line in the table cannot be read.
const reasonBadLine = "bad line"

// leave reports a file that is not stored.
func (in *importer) leave(name, reason, detail string) {
	in.report.Responses++
	in.skip(reason)
	in.note("%s: %s: %s", reason, name, detail)
}

func sameFile(a, b string) bool {
	if filepath.Base(a) != filepath.Base(b) {
		return false
	}
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// table reads the addresses of files, nothing if there is no table. Of a file whose line cannot be read, or
// that two lines place differently, refused says what is wrong. The error is one of reading the table.
func (in *importer) table(dir, name string, now time.Time) (rows map[string]placed, refused map[string]string, err error) {
	rows, refused = map[string]placed{}, map[string]string{}
	if name == "" {
		return rows, refused, nil
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, nil, err
	}
	lines := map[string]int{} // of the file's first line
	n := 0
	for line := range strings.Lines(strings.TrimPrefix(string(data), "\ufeff")) {
		n++
		line = strings.TrimRight(line, "\r\n")
		if strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#") {
			continue
		}
		cols := append(strings.Split(line, "\t"), "", "", "", "")
		rel := path.Clean(strings.TrimSpace(cols[0]))
		if n == 1 && corpus.Host(strings.TrimSpace(cols[1])) == "" && !isFile(filepath.Join(dir, filepath.FromSlash(rel))) {
			continue // names of columns
		}
		at, err := placedBy(cols, now)
		if strings.TrimSpace(cols[0]) == "" {
			rel, err = fmt.Sprintf("line %d", n), errors.New("it names no file")
		}
		first, again := lines[rel]
		if !again {
			lines[rel] = n
		}
		switch {
		case err != nil:
			refused[rel] = fmt.Sprintf("%s line %d: %s", filepath.Base(name), n, err)
		case again && refused[rel] == "" && rows[rel] != at:
			refused[rel] = fmt.Sprintf("%s line %d: it is in line %d too, with something else", filepath.Base(name), n, first)
		}
		if refused[rel] != "" {
			delete(rows, rel)
			continue
		}
		rows[rel] = at
	}
	return rows, refused, nil
}

func isFile(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular()
}

// placedBy reads what a line of the table says of a file.
func placedBy(cols []string, now time.Time) (at placed, err error) {
	at = placed{URL: strings.TrimSpace(cols[1]), Type: strings.TrimSpace(cols[3])}
	var bad *Error
	if errors.As(checkAddress(corpus.CanonicalURL(at.URL)), &bad) {
		return at, fmt.Errorf("%q is no address of a page: %s", bad.URL, bad.Detail)
	}
	if s := strings.TrimSpace(cols[2]); s != "" {
		if at.Status, err = strconv.Atoi(s); err != nil || at.Status < 100 || at.Status > 599 {
			return at, fmt.Errorf("%q is no status", s)
		}
	}
	if s := strings.TrimSpace(cols[4]); s != "" {
		if at.Retrieved, err = parseTime(s); err != nil {
			return at, fmt.Errorf("%q is no time", s)
		}
		if ahead(at.Retrieved, now) {
			return at, fmt.Errorf("%q has not come yet", s)
		}
	}
	return at, nil
}

// ahead reports whether a time cannot be one of retrieval because it is yet to come. A day is for clocks that
// differ, and for dates that name the day of another zone.
func ahead(t, now time.Time) bool { return t.After(now.Add(24 * time.Hour)) }

func parseTime(s string) (time.Time, error) {
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return t, nil
	}
	return time.Parse(time.DateOnly, s)
}

// addressOf returns the address of a file by its path, "" if the layout does not tell. In file names a
// question mark starts a query, as programs that mirror sites write them.
func addressOf(base, rel string, mapped bool) string {
	rel = strings.ReplaceAll(rel, "#", "%23")
	if before, ok := strings.CutSuffix(rel, ".html.gz"); ok {
		rel = before + ".html"
	}
	folder, file := path.Split(rel)
	if name, query, _ := strings.Cut(file, "?"); name == "index.html" || name == "index.htm" {
		file = ""
		if query != "" {
			file = "?" + query
		}
	}
	switch host, _, _ := strings.Cut(rel, "/"); {
	case base != "":
		return corpus.CanonicalURL(strings.TrimSuffix(base, "/") + "/" + folder + file)
	case mapped || folder == "" || !looksLikeHost(host):
		return ""
	}
	return corpus.CanonicalURL("https://" + folder + file)
}

// looksLikeHost reports whether the name of a folder is that of a host, with or without a port.
func looksLikeHost(name string) bool {
	host, _, _ := strings.Cut(name, ":")
	return strings.Contains(strings.Trim(host, "."), ".") && corpus.Host("https://"+name) == strings.ToLower(host) &&
		!strings.ContainsAny(host, " _%")
}

// file stores one file, which reports call rel. What cannot be read is reported; the error is one of
// the store.
func (in *importer) file(ctx context.Context, name, rel string, at placed, now func() time.Time) error {
	f, err := os.Open(name)
	if err != nil {
		in.leave(rel, "unreadable", err.Error())
		return nil
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		in.leave(rel, "unreadable", err.Error())
		return nil
	}
	body, err := readSpool(f, maxImport)
	if err != nil {
		return fmt.Errorf("hold %s: %w", name, err)
	}
	defer body.close()
	if body.cut != nil {
		in.leave(rel, "unreadable", body.cut.Error())
		return nil
	}
	ex := Exchange{Method: http.MethodGet, URL: corpus.CanonicalURL(at.URL), At: at.Retrieved, Status: cmp.Or(at.Status, http.StatusOK), Header: http.Header{}}
	if ex.At.IsZero() {
		if ex.At = info.ModTime(); ex.At.Unix() <= 0 {
			ex.At = now()
		}
		if present := now(); ahead(ex.At, present) {
			in.note("%s: its time %s has not come yet: taken as retrieved now", rel, ex.At.UTC().Format(time.RFC3339))
			ex.At = present
		}
	}
	if inner, ok := strings.CutSuffix(name, ".gz"); ok && !gzipFile(nil, ex.URL) {
		name = inner
		ex.Header.Set("Content-Encoding", "gzip")
	}
	ex.Header.Set("Content-Type", cmp.Or(at.Type, typeOf(name, body.head)))
	in.report.Responses++
	_, err = in.add(ctx, ex, body)
	return err
}

// typeOf returns the media type of a file by its name, or else by its first bytes. It names no
// charset, so that the page's own declaration counts. The system's table of types is not asked, because
// it differs between systems.
func typeOf(name string, head []byte) string {
	switch strings.ToLower(path.Ext(filepath.ToSlash(name))) {
	case ".html", ".htm", ".php", ".asp", ".aspx", ".jsp":
		return "text/html"
	case ".xhtml":
		return "application/xhtml+xml"
	case ".xml", ".rdf":
		return "application/xml"
	case ".rss":
		return "application/rss+xml"
	case ".atom":
		return "application/atom+xml"
	case ".json", ".geojson":
		return "application/json"
	case ".ndjson", ".jsonl":
		return "application/x-ndjson"
	case ".csv":
		return "text/csv"
	case ".tsv":
		return "text/tab-separated-values"
	case ".txt", ".md":
		return "text/plain"
	case ".pdf":
		return "application/pdf"
	case ".gz":
		return "application/gzip"
	case ".zst":
		return "application/zstd"
	case ".css":
		return "text/css"
	case ".js":
		return "text/javascript"
	}
	return mediaType(http.DetectContentType(head))
}
