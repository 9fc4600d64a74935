package fetch

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httputil"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"assay/corpus"
	"assay/kv"
)

// bucketDigest finds the original of a revisit record that names nothing but its payload:
// [payload digest] => request key and position of the exchange.
const bucketDigest = "fetch.digest"

// digestBatch is how many digests wait to be written together: one durable write each would double the
// time of an import, and a lost one costs at most an unresolved revisit.
const digestBatch = 256

// ImportWARC stores the responses of a WARC file, plain or gzipped, under name. It takes files as others
// wrote them: what is damaged is noted with its place, and everything else is kept. Responses to GET are
// stored as answers to what Get sends, because the request headers of another crawler say nothing about
// which page it was; those of this program keep theirs. A revisit is stored with the body it refers to,
// found by address and date or else by payload digest, in this file or any imported before. Importing
// a file twice adds nothing. Memory does not grow with the file or its records. A record cannot have been
// captured more than a day after now: it is noted, and was retrieved when its HTTP head says; one whose head
// does not say either is left out. The error is one of reading r or of the store, or says that there is no
// record at all.
func ImportWARC(ctx context.Context, store *kv.Store, name string, r io.Reader, now time.Time) (ImportReport, error) {
	w := &warcImport{
		now:      now,
		importer: newImporter(store, "warc:"+filepath.Base(name)),
		digests:  kv.In[original](store, bucketDigest, 1),
		pending:  map[string]original{},
	}
	err := w.run(ctx, r)
	if w.broken != "" && len(w.report.Notes) == w.brokenAt {
		w.note("%s", w.broken)
	}
	if err == nil && w.report.Records == 0 {
		err = errors.New("no WARC record in it")
	}
	if err != nil {
		return w.report, fmt.Errorf("import %s: %w", name, err)
	}
	return w.report, nil
}

// An original is where the exchange with a payload is stored.
type original struct {
	Key string `json:"key"`
	Seq int    `json:"seq"`
}

// A warcImport is one run of ImportWARC.
type warcImport struct {
	*importer
	now     time.Time
	digests kv.Bucket[original]
	pending map[string]original

	held    *capture     // an answer whose request may still come
	request *warcRequest // a request whose answer may still come

	doubted  int    // dates that doubt noted
	broken   string // says where the file ends within a record; "" if it does not
	brokenAt int    // notes before it: the reader may say it too
}

// A capture is an answer that waits to be stored.
type capture struct {
	rec            *warcRecord
	id, concurrent string
	uri            string
	revisit        bool
	refersURI      string
	refersDate     string
	digest         string
	ex             Exchange
	body           *spool
	asked          bool
}

// A warcRequest is what a request record says.
type warcRequest struct {
	id, concurrent, uri string
	method              string
	header              http.Header
}

func (w *warcImport) run(ctx context.Context, r io.Reader) error {
	in := newWARCReader(r)
	defer func() { w.held.close() }()
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		rec, err := in.next()
		if w.held != nil && in.damaged(w.held.rec) {
			w.held.ex.Truncated = true
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		w.report.Records++
		w.report.Types[rec.kind]++
		switch rec.kind {
		case "request":
			err = w.ask(rec)
		case "response", "revisit", "resource":
			w.report.Responses++
			if err = w.flush(ctx); err == nil {
				err = w.hold(rec)
			}
		case "conversion", "continuation":
			w.report.Responses++
			w.skip(rec.kind)
		}
		if err != nil {
			return err
		}
	}
	if err := w.flush(ctx); err != nil {
		return err
	}
	if w.told > maxNotes {
		w.note("%d more answers that cannot be read", w.told-maxNotes)
	}
	if w.doubted > maxNotes {
		w.note("%d more answers with a date that has not come yet", w.doubted-maxNotes)
	}
	w.report.Notes = append(w.report.Notes, in.notes...)
	if in.more > 0 {
		w.note("%d more damaged places", in.more)
	}
	return w.writeDigests()
}

// ask remembers a request, or gives it to the answer before it.
func (w *warcImport) ask(rec *warcRecord) error {
	first, header, err := readHead(bufio.NewReader(rec.block))
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, errHead) {
		return err
	}
	method, _, _ := strings.Cut(first, " ")
	q := &warcRequest{id: rec.get("WARC-Record-ID"), concurrent: rec.get("WARC-Concurrent-To"), uri: rec.get("WARC-Target-URI"), method: strings.ToUpper(method), header: header}
	if w.held != nil && !w.held.asked && q.matches(w.held) {
		w.held.askedBy(q)
		return nil
	}
	w.request = q
	return nil
}

// matches reports whether a request and an answer that stand beside each other belong together.
func (q *warcRequest) matches(c *capture) bool {
	if q.concurrent != "" || c.concurrent != "" {
		return q.concurrent != "" && q.concurrent == c.id || c.concurrent != "" && c.concurrent == q.id
	}
	return q.uri == c.uri
}

// ownAgent starts the User-Agent of this program.
const ownAgent = "assay/"

func (c *capture) askedBy(q *warcRequest) {
	c.asked = true
	if q.method != "" {
		c.ex.Method = q.method
	}
	if strings.HasPrefix(q.header.Get("User-Agent"), ownAgent) {
		c.ex.RequestHeader = flat(q.header)
	}
}

// hold reads an answer and keeps it until the next one, because its request may follow it.
func (w *warcImport) hold(rec *warcRecord) error {
	c := &capture{
		rec: rec,
		id:  rec.get("WARC-Record-ID"), concurrent: rec.get("WARC-Concurrent-To"), uri: rec.get("WARC-Target-URI"),
		revisit: rec.kind == "revisit", refersURI: rec.get("WARC-Refers-To-Target-URI"), refersDate: rec.get("WARC-Refers-To-Date"),
		digest: rec.get("WARC-Payload-Digest"),
	}
	c.ex = Exchange{Method: http.MethodGet, URL: corpus.CanonicalURL(c.uri), Dialled: rec.get("WARC-IP-Address")}
	if bad := (*Error)(nil); errors.As(checkAddress(c.ex.URL), &bad) {
		if bad.Reason == ReasonBadURL {
			w.unreadable(bad.Reason, bad.URL, rec)
		} else {
			w.skip(bad.Reason) // records about look-ups and settings have addresses of their own kind
		}
		return nil
	}
	block := bufio.NewReader(rec.block)
	if err := w.head(c, rec, block); err != nil {
		return err
	}
	if c.ex.Status == 0 && !c.revisit {
		w.unreadable("no_http_head", c.uri, rec)
		return nil
	}
	at, err := captureTime(rec.get("WARC-Date"), c.ex.Header.Get("Date"), w.now)
	switch {
	case errors.Is(err, errAhead) && at.IsZero():
		w.unreadable("date_ahead", fmt.Sprintf("WARC-Date %q has not come yet, and nothing else says when it was captured: %s", rec.get("WARC-Date"), c.uri), rec)
		return nil
	case errors.Is(err, errAhead):
		w.doubt("%s at %d: WARC-Date %q has not come yet: taken as retrieved %s, when its HTTP head was sent: %s", rec.kind, rec.offset, rec.get("WARC-Date"), at.UTC().Format(time.RFC3339), c.uri)
	case err != nil:
		w.unreadable("no_date", c.uri, rec)
		return nil //nolint:nilerr // counted under its reason
	}
	c.ex.At = at
	if !c.revisit {
		if c.body, err = readSpool(block, maxImport); err != nil {
			return fmt.Errorf("hold the body of %s: %w", c.uri, err)
		}
		if c.body.cut != nil {
			return errors.Join(c.body.cut, c.body.close())
		}
		if rec.block.short() {
			w.broken = fmt.Sprintf("%s at %d: the file ends within it: %s; what there is of it is stored as truncated", rec.kind, rec.offset, c.uri)
			w.brokenAt = len(w.report.Notes)
		}
		c.ex.Truncated = rec.block.short() || rec.get("WARC-Truncated") != "" || rec.get("WARC-Segment-Number") != ""
		if err := c.dechunk(); err != nil {
			return errors.Join(err, c.body.close())
		}
	}
	w.held = c
	if w.request != nil && w.request.matches(c) {
		c.askedBy(w.request)
	}
	w.request = nil
	return nil
}

// doubt notes a date that is not believed.
func (w *warcImport) doubt(format string, args ...any) {
	if w.doubted++; w.doubted <= maxNotes {
		w.note(format, args...)
	}
}

// head reads the HTTP head of an answer. A resource has none: its record says what it is.
func (w *warcImport) head(c *capture, rec *warcRecord, block *bufio.Reader) error {
	if rec.kind == "resource" {
		c.ex.Status, c.ex.Header = http.StatusOK, http.Header{"Content-Type": {rec.get("Content-Type")}}
		return nil
	}
	start, err := block.Peek(len("HTTP/"))
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if !strings.EqualFold(string(start), "HTTP/") {
		return nil
	}
	first, header, err := readHead(block)
	if err != nil && !errors.Is(err, errHead) {
		return err
	}
	fields := strings.Fields(first)
	if err != nil || len(fields) < 2 {
		return nil //nolint:nilerr // no head: the caller counts it
	}
	status, err := strconv.Atoi(fields[1])
	if err != nil || status < 100 || status > 999 {
		return nil //nolint:nilerr // no head: the caller counts it
	}
	c.ex.Proto, c.ex.Status, c.ex.Header = fields[0], status, header
	return nil
}

var (
	errAhead  = errors.New("a date that has not come yet")
	errNoDate = errors.New("no date")
)

// captureTime reads the date of a record, or else that of its HTTP head. With errAhead, the record's date has
// not come yet, and the time is that of the head; it is zero if no date can be believed.
func captureTime(date, header string, now time.Time) (time.Time, error) {
	t, err := time.Parse(time.RFC3339Nano, date)
	switch {
	case err == nil && ahead(t, now):
		err = errAhead
	case err == nil && !t.IsZero():
		return t, nil
	default:
		err = nil // the head tells
	}
	sent, missing := http.ParseTime(header)
	if missing != nil || sent.IsZero() || ahead(sent, now) {
		return time.Time{}, cmp.Or(err, errNoDate)
	}
	return sent, err
}

// dechunk undoes a chunked transfer coding and compares the body with its announced length. Programs
// that store bodies without their chunks often keep the header that announces chunks: such a body is
// taken as it is.
func (c *capture) dechunk() error {
	if strings.EqualFold(c.ex.Header.Get("Transfer-Encoding"), "chunked") {
		raw, err := c.body.reader()
		if err != nil {
			return fmt.Errorf("read the body of %s: %w", c.uri, err)
		}
		plain, err := readSpool(httputil.NewChunkedReader(raw), maxImport)
		if err != nil {
			return fmt.Errorf("hold the body of %s: %w", c.uri, err)
		}
		if plain.cut == nil || errors.Is(plain.cut, io.ErrUnexpectedEOF) && plain.size > 0 {
			c.ex.Truncated = c.ex.Truncated || plain.cut != nil
			old := c.body
			c.body = plain
			return old.close()
		}
		return plain.close()
	}
	n, err := strconv.ParseInt(c.ex.Header.Get("Content-Length"), 10, 64)
	if err == nil && n > c.body.size {
		c.ex.Truncated = true
	}
	return nil
}

// flush stores the answer that is held.
func (w *warcImport) flush(ctx context.Context) error {
	c := w.held
	if c == nil {
		return nil
	}
	w.held = nil
	defer c.close()
	switch {
	case c.ex.Method != http.MethodGet:
		w.skip("method")
	case c.ex.Status == http.StatusPartialContent && c.ex.RequestHeader["Range"] == "":
		w.skip("partial")
	case c.revisit:
		return w.revisit(ctx, c)
	case c.ex.Status == http.StatusNotModified, c.ex.Status < 200:
		w.skip("status_" + strconv.Itoa(c.ex.Status))
	default:
		ex, err := w.add(ctx, c.ex, c.body)
		if err != nil {
			return err
		}
		if ex.Body != "" && !ex.Truncated && c.digest != "" {
			w.pending[c.digest] = original{Key: ex.Key(), Seq: ex.Seq}
			if len(w.pending) >= digestBatch {
				return w.writeDigests()
			}
		}
	}
	return nil
}

func (c *capture) close() {
	if c != nil && c.body != nil {
		_ = c.body.close() // a temporary file
	}
}

// revisit stores an answer whose body is that of an earlier one.
func (w *warcImport) revisit(ctx context.Context, c *capture) error {
	old, ok, err := w.original(c)
	if err != nil {
		return err
	}
	if !ok {
		w.skip("revisit_unresolved")
		return nil
	}
	if c.ex.Status == 0 || c.ex.Status == http.StatusNotModified {
		c.ex.Status, c.ex.Header = old.Status, old.Header
	}
	c.ex.Body, c.ex.Length, c.ex.Encoding, c.ex.Truncated = old.Body, old.Length, old.Encoding, old.Truncated
	c.ex.Class, c.ex.Reason, c.ex.SameAs = old.Class, old.Reason, old.ID()
	_, err = w.add(ctx, c.ex, nil)
	return err
}

// original finds the exchange that a revisit refers to: by address and date, or else by payload digest.
func (w *warcImport) original(c *capture) (Exchange, bool, error) {
	uri := c.refersURI
	if uri == "" {
		uri = c.uri
	}
	if at, err := time.Parse(time.RFC3339Nano, c.refersDate); err == nil {
		key := Exchange{URL: corpus.CanonicalURL(uri)}.Key()
		list, _, err := w.archive.list(key)
		if err != nil {
			return Exchange{}, false, err
		}
		for _, ex := range list {
			if ex.Body != "" && ex.At.Truncate(time.Second).Equal(at.Truncate(time.Second)) {
				return ex, true, nil
			}
		}
	}
	if c.digest == "" {
		return Exchange{}, false, nil
	}
	at, ok := w.pending[c.digest]
	if !ok {
		var err error
		if at, ok, err = w.digests.Get(kv.Key(c.digest)); err != nil || !ok {
			return Exchange{}, false, err
		}
	}
	list, _, err := w.archive.list(at.Key)
	if err != nil {
		return Exchange{}, false, err
	}
	i := slices.IndexFunc(list, func(ex Exchange) bool { return ex.Seq == at.Seq })
	if i < 0 {
		return Exchange{}, false, nil
	}
	return list[i], true, nil
}

// writeDigests stores the digests that wait.
func (w *warcImport) writeDigests() error {
	var ops []kv.Op
	for digest, at := range w.pending {
		op, err := w.digests.PutOp(kv.Key(digest), at)
		if err != nil {
			return fmt.Errorf("store the digest %s: %w", digest, err)
		}
		ops = append(ops, op)
	}
	clear(w.pending)
	if len(ops) == 0 {
		return nil
	}
	if err := w.archive.store.Write(ops...); err != nil {
		return fmt.Errorf("store the payload digests: %w", err)
	}
	return nil
}
