package fetch

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"assay/kv"
)

// An archive of ours holds every stored exchange as WARC records:
//
//	request    what was sent, where that is known; its body where there was one
//	response   what came, or
//	revisit    the same with a payload that stands earlier in the file, or a 304
//	resource   a page that came as a file, without HTTP
//	metadata   an attempt that brought no HTTP answer
//
// What the field exchangeField of a record tells beside that is what WARC has no name for. Bodies lie in the
// store as the host sent them, with their content coding and without the transfer coding, and so they are
// archived. Heads are as the store keeps them: names in canonical spelling and sorted, without
// the fields of unkept and without the reason phrase.
const (
	exchangeField = "Assay-Exchange"

	profilePayload  = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
	profileModified = "http://netpreserve.org/warc/1.1/revisit/server-not-modified"
)

// told is the value of exchangeField. What WARC tells by itself is not repeated.
type told struct {
	Key         string        `json:"key"`
	At          time.Time     `json:"at"`
	Proto       string        `json:"proto,omitzero"`
	Status      int           `json:"status,omitzero"`
	Body        string        `json:"body,omitzero"` // sha256; empty: no body is stored
	Length      int64         `json:"length,omitzero"`
	Encoding    string        `json:"encoding,omitzero"`
	RequestBody string        `json:"request_body,omitzero"`
	Credential  string        `json:"credential,omitzero"`
	Truncated   bool          `json:"truncated,omitzero"`
	Masked      bool          `json:"masked,omitzero"`
	Class       Class         `json:"class"`
	Reason      string        `json:"reason,omitzero"`
	Detail      string        `json:"detail,omitzero"`
	Attempt     int           `json:"attempt,omitzero"`
	Waited      time.Duration `json:"waited,omitzero"`
	Source      string        `json:"source"`
	Dialled     string        `json:"dialled,omitzero"`
	USD         float64       `json:"usd,omitzero"`
	PriceDate   string        `json:"price_date,omitzero"`
	Estimated   bool          `json:"usd_estimated,omitzero"`
	Confirms    int           `json:"confirms,omitzero"` // of a 304: the place, from 1, of what it confirms among the records of its key
}

// A Survey says what there is to archive.
type Survey struct {
	Exchanges int
	Bytes     int64     // of bodies, those that repeat counted again
	Newest    time.Time // retrieval
}

// SurveyExchanges counts what WriteExchanges would write.
func SurveyExchanges(ctx context.Context, store *kv.Store) (s Survey, err error) {
	for e, err := range openArchive(store).exchanges.Scan("", "") {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return s, fmt.Errorf("list the exchanges: %w", err)
		}
		s.Exchanges++
		s.Bytes += e.Value.Length
		if e.Value.At.After(s.Newest) {
			s.Newest = e.Value.At
		}
	}
	return s, nil
}

// A Capture is one written answer, for indexes.
type Capture struct {
	Placed
	URL     string
	At      time.Time
	Status  int    // 0: none, as of a resource
	MIME    string // media type, or warc/revisit
	Digest  string // of the payload
	Page    bool   // it is a page that a person would look at
	Size    int64  // of the payload
	Revisit bool
}

// WriteExchanges writes every exchange of a store, ordered by domain, request and time, so that the same
// exchanges give the same records in whatever order they came to be stored. Each hears of every answer.
// An exchange or body that cannot be read is a *kv.CorruptError. Memory holds some forty bytes for each
// different body.
func WriteExchanges(ctx context.Context, store *kv.Store, out *WARCWriter, each func(Capture) error) (err error) {
	x := &exchangeWriter{archive: openArchive(store), out: out, each: each, first: map[[16]byte]int64{}}
	if x.firsts, err = os.CreateTemp("", "assay-archive-*"); err != nil {
		return fmt.Errorf("archive the exchanges: %w", err)
	}
	defer func() { err = errors.Join(err, x.firsts.Close(), os.Remove(x.firsts.Name())) }()
	var group []Exchange
	for e, err := range x.archive.exchanges.Scan("", "") {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("archive the exchanges: %w", err)
		}
		if len(group) > 0 && group[0].Key() != e.Value.Key() {
			if err := x.request(group); err != nil {
				return err
			}
			group = group[:0]
		}
		group = append(group, e.Value)
	}
	return x.request(group)
}

// An exchangeWriter is one run of WriteExchanges.
type exchangeWriter struct {
	archive *archive
	out     *WARCWriter
	each    func(Capture) error

	first  map[[16]byte]int64 // first bytes of a body's sum => place in firsts
	firsts *os.File           // what a revisit tells of the record with its payload
	end    int64
}

// A firstRecord is what a revisit refers to.
type firstRecord struct {
	ID, URL, Date string
}

// inTime orders the exchanges of one request. Where they arrived counts last.
func inTime(a, b Exchange) int {
	return cmp.Or(a.At.Compare(b.At), strings.Compare(a.Source, b.Source), cmp.Compare(a.Status, b.Status),
		strings.Compare(a.Body, b.Body), cmp.Compare(a.Attempt, b.Attempt), cmp.Compare(a.Seq, b.Seq))
}

// request writes the exchanges of one request.
func (x *exchangeWriter) request(group []Exchange) error {
	slices.SortFunc(group, inTime)
	for i, ex := range group {
		if err := x.exchange(ex, i+1, group); err != nil {
			return fmt.Errorf("archive %s: %w", ex.ID(), err)
		}
	}
	return nil
}

func (x *exchangeWriter) exchange(ex Exchange, place int, group []Exchange) error {
	facts := tell(ex)
	if ex.Status == http.StatusNotModified && ex.SameAs != "" {
		facts.Confirms = slices.IndexFunc(group, func(o Exchange) bool { return o.ID() == ex.SameAs }) + 1
	}
	name := fmt.Sprintf("%s %s %d", facts.Key, ex.Source, place)
	concurrent := ""
	if ex.Source == SourceNetwork || len(ex.RequestHeader) > 0 {
		r, err := x.asked(ex, name)
		if err != nil {
			return err
		}
		if _, err := x.out.Write(r); err != nil {
			return err
		}
		concurrent = r.ID()
	}
	value, err := json.Marshal(facts)
	if err != nil {
		return err
	}
	fields := []Field{{exchangeField, string(value)}}
	if concurrent != "" {
		fields = append(fields, Field{"WARC-Concurrent-To", "<" + concurrent + ">"})
	}
	if ip := peer(ex.Dialled); ip != "" {
		fields = append(fields, Field{"WARC-IP-Address", ip})
	}
	if strings.HasPrefix(ex.Proto, "HTTP/2") {
		fields = append(fields, Field{"WARC-Protocol", "h2"})
	}
	r := Record{URI: ex.URL, Date: ex.At, Name: name, Fields: fields}
	if ex.Status == 0 {
		r.Type, r.ContentType = "metadata", "application/warc-fields"
		r.Head = []byte(fmt.Sprintf("class: %s\r\nreason: %s\r\ndetail: %s\r\n", ex.Class, oneLine(ex.Reason), oneLine(ex.Detail)))
		_, err := x.out.Write(r)
		return err
	}
	return x.answer(ex, r)
}

// answer writes what came.
func (x *exchangeWriter) answer(ex Exchange, r Record) error {
	c := Capture{URL: ex.URL, At: ex.At, Status: ex.Status, MIME: mediaType(ex.Header.Get("Content-Type")), Size: ex.Length}
	sum := sha256.Sum256(nil)
	c.Digest = "sha256:" + cmp.Or(ex.Body, hex.EncodeToString(sum[:]))
	r.Type, r.ContentType, r.Head = "response", "application/http; msgtype=response", responseHead(ex)
	var first firstRecord
	var seen bool
	if ex.Length > 0 {
		var err error
		if first, seen, err = x.firstWith(ex.Body); err != nil {
			return err
		}
	}
	switch {
	case ex.Status == http.StatusNotModified && ex.SameAs != "":
		r.Type = "revisit"
		r.Fields = append(r.Fields, Field{"WARC-Profile", profileModified})
	case seen:
		r.Type = "revisit"
		r.Fields = append(r.Fields, Field{"WARC-Profile", profilePayload}, Field{"WARC-Payload-Digest", c.Digest})
	case isResource(ex):
		r.Type, r.ContentType, r.Head, c.Status = "resource", ex.Header.Get("Content-Type"), nil, 0
	}
	if r.Type == "revisit" && seen {
		r.Fields = append(r.Fields, Field{"WARC-Refers-To", "<" + first.ID + ">"}, Field{"WARC-Refers-To-Target-URI", first.URL}, Field{"WARC-Refers-To-Date", first.Date})
	}
	if r.Type != "revisit" {
		r.Fields = append(r.Fields, Field{"WARC-Payload-Digest", c.Digest})
		if ex.Truncated || ex.Body == "" && ex.Reason == ReasonTooLarge {
			r.Fields = append(r.Fields, Field{"WARC-Truncated", truncation(ex.Reason)})
		}
		if ex.Length > 0 {
			r.Payload = &storedPayload{archive: x.archive, ex: ex}
		}
		if r.Type == "response" && ex.Length > 0 {
			if err := x.remember(ex, r); err != nil {
				return err
			}
		}
	}
	var err error
	if c.Placed, err = x.out.Write(r); err != nil {
		return err
	}
	if c.Revisit = r.Type == "revisit"; c.Revisit {
		c.MIME = "warc/revisit"
	}
	c.Page = !c.Revisit && ex.Method == http.MethodGet && ex.Class == ClassOK && ex.Status == http.StatusOK && (c.MIME == "text/html" || c.MIME == "application/xhtml+xml")
	return x.each(c)
}

// asked is the request record of an exchange.
func (x *exchangeWriter) asked(ex Exchange, name string) (Record, error) {
	r := Record{Type: "request", URI: ex.URL, Date: ex.At, Name: name, ContentType: "application/http; msgtype=request"}
	var b bytes.Buffer
	origin, target := splitOrigin(ex.URL)
	_, host, _ := strings.Cut(origin, "://")
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\n", ex.Method, target, host)
	for _, field := range keptRequest {
		if v, ok := ex.RequestHeader[field]; ok {
			fmt.Fprintf(&b, "%s: %s\r\n", field, oneLine(v))
		}
	}
	if ex.RequestBody == "" {
		b.WriteString("\r\n")
		r.Head = b.Bytes()
		return r, nil
	}
	body, ok, err := x.archive.bodies.Get(bodyKey(ex.RequestBody, 0))
	switch {
	case err != nil:
		return r, err
	case ok:
		r.Payload = bytesPayload(body)
		r.Fields = append(r.Fields, Field{"WARC-Payload-Digest", "sha256:" + ex.RequestBody})
		fmt.Fprintf(&b, "Content-Length: %d\r\n", len(body))
	default: // of a store that kept the sum alone
		r.Fields = append(r.Fields, Field{"WARC-Truncated", "unspecified"})
	}
	b.WriteString("\r\n")
	r.Head = b.Bytes()
	return r, nil
}

// firstWith returns the record that has this payload.
func (x *exchangeWriter) firstWith(body string) (o firstRecord, ok bool, err error) {
	at, ok := x.first[shortSum(body)]
	if !ok {
		return o, false, nil
	}
	if err := json.NewDecoder(io.NewSectionReader(x.firsts, at, x.end-at)).Decode(&o); err != nil {
		return o, false, fmt.Errorf("read where a payload stands: %w", err)
	}
	return o, true, nil
}

// remember keeps where a payload stands.
func (x *exchangeWriter) remember(ex Exchange, r Record) error {
	line, err := json.Marshal(firstRecord{ID: r.ID(), URL: ex.URL, Date: warcDate(ex.At)})
	if err != nil {
		return err
	}
	x.first[shortSum(ex.Body)] = x.end
	n, err := x.firsts.Write(append(line, '\n'))
	x.end += int64(n)
	return err
}

func shortSum(sum string) (out [16]byte) {
	raw, err := hex.DecodeString(sum)
	if err != nil || len(raw) < len(out) {
		raw = []byte(sum) // no sum of ours: it stands for itself
	}
	copy(out[:], raw)
	return out
}

// tell says of an exchange what its records do not.
func tell(ex Exchange) told {
	return told{
		Key: ex.Key(), At: ex.At, Proto: ex.Proto, Status: ex.Status, Body: ex.Body, Length: ex.Length, Encoding: ex.Encoding, RequestBody: ex.RequestBody,
		Credential: ex.Credential, Truncated: ex.Truncated, Masked: ex.Masked, Class: ex.Class, Reason: ex.Reason, Detail: ex.Detail,
		Attempt: ex.Attempt, Waited: ex.Waited, Source: ex.Source, Dialled: ex.Dialled,
		USD: ex.USD, PriceDate: ex.PriceDate, Estimated: ex.Estimated,
	}
}

// isResource reports whether an exchange came without HTTP: a file that somebody saved.
func isResource(ex Exchange) bool {
	return ex.Proto == "" && ex.Source != SourceNetwork && ex.Status == http.StatusOK && ex.Body != "" && ex.Method == http.MethodGet &&
		len(ex.Header) == 1 && len(ex.Header["Content-Type"]) == 1 && ex.Header.Get("Content-Type") != "" && len(ex.RequestHeader) == 0
}

// responseHead is the HTTP head of an answer. HTTP/2 has no such text; it is written as HTTP/1.1, which
// is what readers of WARC files know.
func responseHead(ex Exchange) []byte {
	proto := ex.Proto
	if proto != "HTTP/1.0" {
		proto = "HTTP/1.1"
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s\r\n", proto, strings.TrimSpace(strconv.Itoa(ex.Status)+" "+http.StatusText(ex.Status)))
	names := make([]string, 0, len(ex.Header))
	for name := range ex.Header {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		for _, v := range ex.Header[name] {
			fmt.Fprintf(&b, "%s: %s\r\n", name, oneLine(v))
		}
	}
	b.WriteString("\r\n")
	return b.Bytes()
}

var lineEnds = strings.NewReplacer("\r", " ", "\n", " ")

func oneLine(s string) string { return lineEnds.Replace(s) }

// truncation is why a payload is not whole, in WARC's words.
func truncation(reason string) string {
	switch reason {
	case ReasonTooLarge:
		return "length"
	case ReasonTimeout, ReasonTooSlow:
		return "time"
	case ReasonTruncated, ReasonNetwork, ReasonNoHost:
		return "disconnect"
	}
	return "unspecified"
}

// peer is the IP address of a stored peer, which may have a port.
func peer(dialled string) string {
	if at, err := netip.ParseAddrPort(dialled); err == nil {
		return at.Addr().Unmap().String()
	}
	if ip := net.ParseIP(dialled); ip != nil {
		return ip.String()
	}
	return ""
}

// A storedPayload reads a body from the store and checks it against its sum the first time.
type storedPayload struct {
	archive *archive
	ex      Exchange
	chunk   []byte // of a body that is one
	checked bool
}

func (p *storedPayload) Size() int64 { return p.ex.Length }

func (p *storedPayload) Open() (io.Reader, error) {
	if chunks(p.ex.Length) == 1 {
		if p.chunk == nil {
			chunk, err := p.archive.chunk(p.ex, 0)
			if err != nil {
				return nil, err
			}
			p.chunk = chunk
		}
		return p.check(bytes.NewReader(p.chunk)), nil
	}
	r, err := p.archive.body(p.ex)
	if err != nil {
		return nil, err
	}
	return p.check(r), nil
}

func (p *storedPayload) check(r io.Reader) io.Reader {
	if p.checked {
		return r
	}
	p.checked = true
	return &sumReader{r: r, hash: sha256.New(), end: func(sum string) error {
		if sum != p.ex.Body {
			return &kv.CorruptError{Bucket: bucketBody, Key: bodyKey(p.ex.Body, 0), Err: fmt.Errorf("the body of %s has another SHA-256 than its name", p.ex.URL)}
		}
		return nil
	}}
}

// A sumReader hands the sum of what it read to end, whose error it returns in place of io.EOF.
type sumReader struct {
	r    io.Reader
	hash hash.Hash
	end  func(sum string) error
}

func (s *sumReader) Read(b []byte) (int, error) {
	n, err := s.r.Read(b)
	s.hash.Write(b[:n])
	if errors.Is(err, io.EOF) {
		if bad := s.end(hex.EncodeToString(s.hash.Sum(nil))); bad != nil {
			return n, bad
		}
	}
	return n, err
}

// bytesPayload is a payload in memory.
type bytesPayload []byte

func (b bytesPayload) Size() int64              { return int64(len(b)) }
func (b bytesPayload) Open() (io.Reader, error) { return bytes.NewReader(b), nil }
