package fetch

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"hash/maphash"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"assay/corpus"
	"assay/kv"
)

// An ArchivedRecord is a record of an archive of ours that is not part of an exchange.
type ArchivedRecord struct {
	Type, URI, ContentType string
	Block                  []byte
}

const (
	// maxArchived bounds the block of an ArchivedRecord; ours are about a MiB, or one reply of a model.
	maxArchived = 256 << 20
	// restoreBytes and restoreOps bound what is written in one durable step.
	restoreBytes = 8 << 20
	restoreOps   = 256
)

// ErrDamaged is what a damaged archive ends with. What could be read is stored, and the notes of the
// report name every place.
var ErrDamaged = errors.New("the archive is damaged")

// ReadArchive stores the exchanges of a WARC file that WriteExchanges made, just as they were stored, and hands
// every other record to other, in the order of the file. Every block is checked against its digest: a
// record that is damaged is noted and left out, and the rest is stored. Reading a file twice adds nothing.
func ReadArchive(ctx context.Context, store *kv.Store, name string, r io.Reader, other func(ArchivedRecord) error) (ImportReport, error) {
	w := &archiveReader{importer: newImporter(store, "archive:"+filepath.Base(name)), other: other, bodies: map[string]bool{}}
	err := w.run(ctx, r)
	if err == nil && w.report.Records == 0 {
		err = errors.New("no WARC record in it")
	}
	if err == nil && len(w.report.Notes) > 0 {
		err = fmt.Errorf("%w: %s", ErrDamaged, w.report.Notes[0])
	}
	if err != nil {
		return w.report, fmt.Errorf("read %s: %w", name, err)
	}
	return w.report, nil
}

// An archiveReader is one run of ReadArchive.
type archiveReader struct {
	*importer
	other   func(ArchivedRecord) error
	request *askedRecord
	group   []restored // answers to one request, in the order of the file
	key     string     // of that request
	ops     []kv.Op    // that wait to be written
	waiting int64      // bytes of their bodies
	bodies  map[string]bool
}

// An askedRecord is a request that waits for its answer.
type askedRecord struct {
	id     string
	header http.Header
	body   []byte
}

// A restored exchange waits for the others of its request.
type restored struct {
	Exchange
	confirms int
}

func (w *archiveReader) run(ctx context.Context, r io.Reader) error {
	in := newWARCReader(r)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		rec, err := in.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return errors.Join(err, w.finish())
		}
		w.report.Records++
		w.report.Types[rec.kind]++
		if err := w.record(ctx, rec); err != nil {
			return err
		}
	}
	w.report.Notes = append(w.report.Notes, in.notes...)
	if in.more > 0 {
		w.note("%d more damaged places", in.more)
	}
	return w.finish()
}

// damaged is what is wrong with one record; any other error is one of the file, the disk or the store.
type damaged struct{ error }

func damagedf(format string, args ...any) error { return damaged{fmt.Errorf(format, args...)} }

// record takes in one record, or notes that it is damaged.
func (w *archiveReader) record(ctx context.Context, rec *warcRecord) error {
	block := &digestReader{r: rec.block, hash: sha256.New()}
	err := w.take(ctx, rec, block)
	var bad damaged
	if errors.As(err, &bad) {
		w.skip("damaged")
		if len(w.report.Notes) < maxNotes {
			w.note("%s record of %s at byte %d: %v", rec.kind, rec.get("WARC-Target-URI"), rec.offset, bad.error)
		}
		return nil
	}
	return err
}

// A digestReader sums what is read.
type digestReader struct {
	r    io.Reader
	hash hash.Hash
}

func (d *digestReader) Read(p []byte) (int, error) {
	n, err := d.r.Read(p)
	d.hash.Write(p[:n])
	return n, err
}

// whole reports what is wrong with a block that was read to its end.
func whole(rec *warcRecord, d *digestReader) error {
	if _, err := io.Copy(io.Discard, d); err != nil {
		return err
	}
	if rec.block.short() {
		return damagedf("it is cut off")
	}
	want := rec.get("WARC-Block-Digest")
	if algorithm, sum, _ := strings.Cut(want, ":"); want != "" && (algorithm != "sha256" || sum != hex.EncodeToString(d.hash.Sum(nil))) {
		return damagedf("its block is not that of its digest %s", want)
	}
	return nil
}

func (w *archiveReader) take(ctx context.Context, rec *warcRecord, block *digestReader) error {
	facts := rec.header.Get(exchangeField)
	switch {
	case rec.kind == "request":
		return w.asked(rec, block)
	case facts != "":
		w.report.Responses++
		return w.answer(ctx, rec, block, facts)
	}
	if rec.block.left > maxArchived {
		return damagedf("a block of %d bytes is none of ours", rec.block.left)
	}
	data, err := io.ReadAll(block)
	if err != nil {
		return err
	}
	if err := whole(rec, block); err != nil {
		return err
	}
	// What other tells of the records so far is to be true, so these are stored first.
	if err := w.finish(); err != nil {
		return err
	}
	return w.other(ArchivedRecord{Type: rec.kind, URI: rec.get("WARC-Target-URI"), ContentType: rec.get("Content-Type"), Block: data})
}

// asked remembers a request for its answer.
func (w *archiveReader) asked(rec *warcRecord, block *digestReader) error {
	w.request = nil
	in := bufio.NewReader(block)
	_, header, err := readHead(in)
	if err != nil && !errors.Is(err, io.EOF) {
		return headError(err)
	}
	body, err := io.ReadAll(io.LimitReader(in, maxRequestBody+1))
	if err != nil {
		return err
	}
	if err := whole(rec, block); err != nil {
		return err
	}
	w.request = &askedRecord{id: rec.get("WARC-Record-ID"), header: header, body: body}
	return nil
}

// headError is damage if a head cannot be read as one.
func headError(err error) error {
	if errors.Is(err, errHead) {
		return damaged{err}
	}
	return err
}

// answer reads an answer and lets it wait for the others of its request.
func (w *archiveReader) answer(ctx context.Context, rec *warcRecord, block *digestReader, facts string) (err error) {
	var t told
	if err := json.Unmarshal([]byte(facts), &t); err != nil {
		return damagedf("its %s: %v", exchangeField, err)
	}
	ex, err := w.exchange(rec, t)
	if err != nil {
		return err
	}
	in := bufio.NewReaderSize(block, 64<<10)
	if rec.kind == "response" || rec.kind == "revisit" {
		first, header, err := readHead(in)
		if err != nil {
			return headError(err)
		}
		if fields := strings.Fields(first); len(fields) < 2 || fields[1] != strconv.Itoa(t.Status) {
			return damagedf("its head begins with %q, and its status is %d", first, t.Status)
		}
		ex.Header = header
	}
	ex = tidy(ex)
	if ex.Encoding, ex.At = t.Encoding, t.At.UTC(); ex.Key() != t.Key {
		return damagedf("its request is lost, so that it would answer another one than %s", t.Key)
	}
	var body *spool
	if rec.kind == "response" || rec.kind == "resource" {
		if body, err = readSpool(in, maxImport); err != nil {
			return fmt.Errorf("hold the body of %s: %w", ex.URL, err)
		}
		defer func() { err = errors.Join(err, body.close()) }()
		if body.cut != nil {
			return body.cut
		}
	}
	if err := whole(rec, block); err != nil {
		return err
	}
	if err := w.body(ctx, t, body); err != nil {
		return err
	}
	if w.key != t.Key {
		if err := w.flushGroup(); err != nil {
			return err
		}
		w.key = t.Key
	}
	w.group = append(w.group, restored{ex, t.Confirms})
	return nil
}

// exchange is what a record's header tells of an exchange.
func (w *archiveReader) exchange(rec *warcRecord, t told) (Exchange, error) {
	uri := rec.get("WARC-Target-URI")
	if err := checkAddress(uri); err != nil || corpus.CanonicalURL(uri) != uri {
		return Exchange{}, damagedf("its address is none that is stored: %v", err)
	}
	if !slices.Contains([]Class{ClassOK, ClassGone, ClassBlocked, ClassThrottled, ClassFailed}, t.Class) || t.At.IsZero() || t.Source == "" {
		return Exchange{}, damagedf("its %s lacks class, time or source", exchangeField)
	}
	method, _, _ := strings.Cut(t.Key, " ")
	ex := Exchange{
		Method: method, URL: uri, At: t.At, Proto: t.Proto, Status: t.Status, Body: t.Body, Length: t.Length, RequestBody: t.RequestBody,
		Credential: t.Credential, Truncated: t.Truncated, Masked: t.Masked, Class: t.Class, Reason: t.Reason, Detail: t.Detail,
		Attempt: t.Attempt, Waited: t.Waited, Source: t.Source, Dialled: t.Dialled,
		USD: t.USD, PriceDate: t.PriceDate, Estimated: t.Estimated,
	}
	if rec.kind == "resource" {
		ex.Header = http.Header{"Content-Type": {rec.get("Content-Type")}}
	}
	if id := rec.get("WARC-Concurrent-To"); id != "" && w.request != nil && w.request.id == id {
		ex.RequestHeader = flat(w.request.header)
		if err := w.requestBody(t, w.request.body); err != nil {
			return ex, err
		}
	}
	return ex, nil
}

// requestBody stores the body of a request.
func (w *archiveReader) requestBody(t told, body []byte) error {
	if t.RequestBody == "" || len(body) == 0 {
		return nil
	}
	if bodySum(body) != t.RequestBody {
		return damagedf("its request's body has another SHA-256 than %s", t.RequestBody)
	}
	op, err := w.archive.bodies.PutOp(bodyKey(t.RequestBody, 0), body)
	if err != nil {
		return err
	}
	w.ops, w.waiting = append(w.ops, op), w.waiting+int64(len(body))
	return nil
}

// body stores the body that came with a record, or sees to it that the one it refers to is stored.
func (w *archiveReader) body(ctx context.Context, t told, body *spool) error {
	if body == nil || t.Body == "" {
		if t.Body == "" || t.Length == 0 || w.bodies[t.Body] {
			return nil
		}
		n, err := w.archive.bodies.Count(kv.Prefix(t.Body))
		if err == nil && n != chunks(t.Length) {
			err = damagedf("its body, which an earlier record has, is lost")
		}
		return err
	}
	if sum := body.sum(); sum != t.Body || body.size != t.Length {
		return damagedf("its body has another SHA-256 than %s", t.Body)
	}
	ops, err := w.archive.bodyOps(ctx, body)
	if err != nil {
		return fmt.Errorf("store a body: %w", err)
	}
	if len(ops) > 0 {
		w.bodies[t.Body] = true
		w.ops, w.waiting = append(w.ops, ops...), w.waiting+min(body.size, chunkSize)
	}
	return nil
}

// flushGroup gives the exchanges that wait their places among those of their request.
func (w *archiveReader) flushGroup() error {
	group := w.group
	w.group = nil
	if len(group) == 0 {
		return nil
	}
	a := w.archive
	lock := &a.locks[maphash.String(a.seed, w.key)%uint64(len(a.locks))]
	lock.Lock()
	defer lock.Unlock()
	old, _, err := a.head(w.key)
	if err != nil {
		return err
	}
	list, last, err := a.list(w.key)
	if err != nil {
		return err
	}
	seqs := make([]int, len(group))
	fresh := map[int]bool{}
	for i := range group {
		ex := group[i].Exchange
		if c := group[i].confirms; c > 0 && c <= i {
			ex.SameAs = w.key + " @" + strconv.Itoa(seqs[c-1])
		}
		w.report.Classes[string(ex.Class)]++
		if j := slices.IndexFunc(list, func(have Exchange) bool { return sameArchived(have, ex) }); j >= 0 {
			seqs[i] = list[j].Seq
			w.report.Present++
			continue
		}
		last++
		ex.Seq, seqs[i], fresh[last] = last, last, true
		list = append(list, ex)
		w.report.Stored++
		if ex.Truncated {
			w.report.Truncated++
		}
	}
	if len(fresh) > 0 {
		ops, err := a.restoreOps(w.key, old.Listed, last, list, fresh)
		if err != nil {
			return err
		}
		w.ops = append(w.ops, ops...)
	}
	if len(w.ops) >= restoreOps || w.waiting >= restoreBytes {
		return w.write()
	}
	return nil
}

// sameArchived reports whether an archived exchange is stored already.
func sameArchived(have, ex Exchange) bool {
	return sameImport(have, ex) && have.Class == ex.Class && have.Attempt == ex.Attempt
}

// restoreOps makes the head of a request anew and says how it and the fresh exchanges are stored.
func (a *archive) restoreOps(key string, listed bool, count int, list []Exchange, fresh map[int]bool) ([]kv.Op, error) {
	slices.SortFunc(list, Exchange.compare)
	var h head
	var ops []kv.Op
	add := func(op kv.Op, err error) error {
		ops = append(ops, op)
		return err
	}
	for _, ex := range list {
		if fresh[ex.Seq] {
			ex.SameAs = h.repeats(ex)
			if err := add(a.exchanges.PutOp(exchangeKey(ex.URL, key, ex.Seq), ex)); err != nil {
				return nil, fmt.Errorf("store the exchange with %s: %w", ex.URL, err)
			}
			if !listed && ex.isListed() {
				listed = true
				if err := add(a.addresses.PutOp(kv.Key(domainOf(ex.URL), ex.URL), nil)); err != nil {
					return nil, fmt.Errorf("store the address %s: %w", ex.URL, err)
				}
			}
		}
		h.add(ex)
	}
	h.Count, h.Listed = count, listed
	if err := add(a.heads.PutOp(headKey(key), h)); err != nil {
		return nil, fmt.Errorf("store the exchanges of %s: %w", key, err)
	}
	return ops, nil
}

// finish writes everything that waits.
func (w *archiveReader) finish() error {
	if err := w.flushGroup(); err != nil {
		return err
	}
	w.key = ""
	return w.write()
}

func (w *archiveReader) write() error {
	ops := w.ops
	w.ops, w.waiting = nil, 0
	clear(w.bodies)
	if len(ops) == 0 {
		return nil
	}
	if err := w.archive.store.Write(ops...); err != nil {
		return fmt.Errorf("store exchanges: %w", err)
	}
	return nil
}
