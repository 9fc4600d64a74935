package fetch

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"hash/maphash"
	"io"
	"iter"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"assay/corpus"
	"assay/kv"
)

// Class says what an exchange is good for.
type Class string

// The values of Class. Only ok and gone are answers that a live client uses again: anything else
// would replay a captcha or an outage for ever.
const (
	ClassOK        Class = "ok"
	ClassGone      Class = "gone"
	ClassBlocked   Class = "blocked"
	ClassThrottled Class = "throttled"
	ClassFailed    Class = "failed"
)

// answers reports whether an exchange of this class is used instead of asking again.
func (c Class) answers() bool { return c == ClassOK || c == ClassGone }

// An Exchange is one request and what came of it, as it is kept. It is never changed afterwards.
type Exchange struct {
	Seq           int               `json:"seq,omitzero"` // position among the exchanges of its request, from 1, in order of arrival
	Method        string            `json:"method"`
	URL           string            `json:"url"`
	RequestHeader map[string]string `json:"request_header,omitzero"` // what shapes the answer, never a secret
	RequestBody   string            `json:"request_body,omitzero"`   // sha256 hex of the body sent, stored like any other
	Credential    string            `json:"credential,omitzero"`     // name of the credential that was sent
	At            time.Time         `json:"at"`                      // when it was retrieved, UTC
	Proto         string            `json:"proto,omitzero"`
	Status        int               `json:"status,omitzero"` // 0: no HTTP answer
	Header        http.Header       `json:"header,omitzero"`
	Body          string            `json:"body,omitzero"`   // sha256 hex: transfer coding removed, content coding kept
	Length        int64             `json:"length,omitzero"` // of that body, bytes
	Encoding      string            `json:"encoding,omitzero"`
	Truncated     bool              `json:"truncated,omitzero"`
	Masked        bool              `json:"masked,omitzero"` // a secret was echoed and overwritten
	Class         Class             `json:"class"`
	Reason        string            `json:"reason,omitzero"`
	Detail        string            `json:"detail,omitzero"`  // what the network said, for a person
	Attempt       int               `json:"attempt,omitzero"` // of its request, from 1
	Waited        time.Duration     `json:"waited,omitzero"`  // for the host's turn before it was sent
	SameAs        string            `json:"same_as,omitzero"` // ID of an earlier exchange with this body
	Source        string            `json:"source"`           // network, warc:<name> or dir:<name>
	Dialled       string            `json:"dialled,omitzero"` // address of the peer
	USD           float64           `json:"usd,omitzero"`     // what the request cost, see Charge
	PriceDate     string            `json:"price_date,omitzero"`
	Estimated     bool              `json:"usd_estimated,omitzero"` // USD is the worst case
}

// What Get sends; a response imported without its request is stored as the answer to these.
const (
	defaultAccept         = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
	defaultAcceptLanguage = "en"
)

// depPrefix starts the keys that a Client reports through Options.Answered.
const depPrefix = "fetch/"

// requestKey names a request: its method and canonical address, followed by a hash of whatever else
// shapes the answer where that differs from what Get sends. Two requests with one key share an answer.
func requestKey(method, url, accept, acceptLanguage, rng, bodySum string) string {
	key := cmp.Or(method, http.MethodGet) + " " + url
	accept, acceptLanguage = cmp.Or(accept, defaultAccept), cmp.Or(acceptLanguage, defaultAcceptLanguage)
	if accept == defaultAccept && acceptLanguage == defaultAcceptLanguage && rng == "" && bodySum == "" {
		return key
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q", accept, acceptLanguage, rng, bodySum))
	return key + " " + hex.EncodeToString(sum[:8])
}

// keyURL returns the address inside a request key.
func keyURL(key string) string {
	_, rest, _ := strings.Cut(key, " ")
	url, _, _ := strings.Cut(rest, " ")
	return url
}

// Key returns the request key of the exchange; with "fetch/" before it, it is the key under which
// Options.Answered hears of it.
func (ex Exchange) Key() string {
	h := ex.RequestHeader
	return requestKey(ex.Method, ex.URL, h["Accept"], h["Accept-Language"], h["Range"], ex.RequestBody)
}

// ID names this exchange among all of a store.
func (ex Exchange) ID() string { return ex.Key() + " @" + strconv.Itoa(ex.Seq) }

// Sum tells answers apart: class and status, and for an ok answer its body and the headers that say
// how to read or follow it. Retrieval time and the body of an error page are not part of it, so a
// page that stays gone stays the same answer.
func (ex Exchange) Sum() [32]byte {
	status, body := ex.Status, ""
	if status == http.StatusNotModified && ex.SameAs != "" {
		status = http.StatusOK
	}
	var kind, coding, location string
	if ex.Class == ClassOK {
		body, kind, coding, location = ex.Body, ex.Header.Get("Content-Type"), ex.Header.Get("Content-Encoding"), ex.Header.Get("Location")
	}
	return sha256.Sum256(fmt.Appendf(nil, "%s %d %s %q %q %q", ex.Class, status, body, kind, coding, location))
}

// isListed reports whether the exchange puts its address among those that are known to be there.
func (ex Exchange) isListed() bool {
	return ex.Method == http.MethodGet && (ex.Class.answers() || ex.Class == ClassBlocked || ex.Reason == ReasonTooLarge)
}

// absentSum is the answer "nothing is stored": a later import changes it.
var absentSum = sha256.Sum256([]byte("absent"))

// failure turns an exchange that is no page into the error that Get returns for it, nil for a page.
func (ex Exchange) failure() *Error {
	e := &Error{URL: ex.URL, Status: ex.Status, Detail: cmp.Or(ex.Detail, ex.Reason)}
	switch ex.Class {
	case ClassOK:
		return nil
	case ClassGone:
		e.Reason = ReasonGone
	case ClassBlocked:
		e.Reason = ReasonBlocked
	default:
		e.Reason = ReasonStatus
		if ex.Status == 0 {
			e.Reason = ReasonNetwork
		}
	}
	switch ex.Reason {
	case ReasonBlockedAddress, ReasonTooLarge, ReasonTimeout, ReasonTooSlow, ReasonNetwork, ReasonNoHost, ReasonTruncated, ReasonNoContact:
		e.Reason, e.Detail = ex.Reason, ex.Detail
	}
	return e
}

// compare orders the exchanges of one request by retrieval, so that what is newest does not depend on
// the order in which archives were imported.
func (ex Exchange) compare(other Exchange) int {
	return cmp.Or(ex.At.Compare(other.At), strings.Compare(ex.Source, other.Source), cmp.Compare(ex.Seq, other.Seq))
}

// A head is what is known about one request in one place, so that an answer costs one read. It can
// be made again from the exchanges.
type head struct {
	Count  int       `json:"count"`
	Latest Exchange  `json:"latest"`
	Usable *Exchange `json:"usable,omitzero"` // the answer, where that is not Latest
	Listed bool      `json:"listed,omitzero"` // its address is in the list of stored addresses

	GoneSince time.Time `json:"gone_since,omitzero"` // the first of the latest answers that all said gone
	Past      string    `json:"past,omitzero"`       // digest of the different ok answers before this one
}

// GoneAfter is how long an address that was there has to be gone until that is believed: it is the least
// time between the first answer that says so and one that says it again, with no other answer between.
// Until then its last page stands, since a deployment or a rule at the edge makes whole sites vanish for
// an hour.
const GoneAfter = 24 * time.Hour

// usable returns the exchange that answers: the newest ok or gone one, where gone is believed.
func (h head) usable() (Exchange, bool) {
	if h.Usable != nil {
		return *h.Usable, true
	}
	return h.Latest, h.Count > 0 && h.Latest.Class.answers()
}

// answer returns what Get answers with when it may not ask again.
func (h head) answer() Exchange {
	if ex, ok := h.usable(); ok {
		return ex
	}
	return h.Latest
}

// repeats returns the SameAs of the next exchange: its own, or the answer whose body it brings again.
func (h *head) repeats(ex Exchange) string {
	if old, had := h.usable(); had && ex.SameAs == "" && ex.Class == ClassOK && ex.Length > 0 && old.Body == ex.Body {
		return old.ID()
	}
	return ex.SameAs
}

// add takes the next exchange in order of retrieval. An equal answer keeps the older exchange and
// its retrieval time: a release must not change because a page was asked for again.
func (h *head) add(ex Exchange) {
	old, had := h.usable()
	h.Latest = ex
	h.Count++
	h.Usable = nil
	switch ex.Class {
	case ClassOK:
		h.GoneSince = time.Time{}
	case ClassGone:
		if h.GoneSince.IsZero() {
			h.GoneSince = ex.At
		}
	}
	switch {
	case !had:
	case !ex.Class.answers(), h.doubts(old, ex):
		h.Usable = &old
	case old.Sum() == ex.Sum():
		old.Header = withValidators(old.Header, ex.Header)
		h.Usable = &old
	case old.Class == ClassOK:
		sum := old.Sum()
		past := sha256.Sum256(append([]byte(h.Past), sum[:]...))
		h.Past = hex.EncodeToString(past[:])
	}
}

// doubts reports whether an answer that says gone is not yet believed of what was there.
func (h *head) doubts(old, ex Exchange) bool {
	return old.Class == ClassOK && ex.Class == ClassGone && ex.At.Sub(h.GoneSince) < GoneAfter
}

// withValidators copies a header with the validators of a newer one.
func withValidators(old, newer http.Header) http.Header {
	h := old.Clone()
	for _, name := range []string{"Etag", "Last-Modified"} {
		if v := newer.Get(name); v != "" {
			if h == nil {
				h = http.Header{}
			}
			h.Set(name, v)
		}
	}
	return h
}

// chunkSize bounds one stored value; a feed of hundreds of megabytes is many of them.
const chunkSize = 4 << 20

// An archive keeps exchanges and bodies in the store. It only ever appends. Several goroutines may
// use one archive, but a store has one archive that writes at a time.
type archive struct {
	store     *kv.Store
	exchanges kv.Bucket[Exchange]
	heads     kv.Bucket[head]
	bodies    kv.Bucket[[]byte]
	addresses kv.Bucket[[]byte]
	aliases   kv.Bucket[[]byte]
	hosts     kv.Bucket[hostState]
	payments  kv.Bucket[Payment]
	seed      maphash.Seed
	locks     [64]sync.Mutex // by request key: a head is read, changed and written
}

// Buckets of the store that fetch owns.
const (
	bucketExchange = "fetch.exchange" // [domain, request key, seq] => Exchange
	bucketHead     = "fetch.head"     // [domain, request key] => head
	bucketBody     = "body"           // [sha256, n] => chunk n of a body
	bucketAddress  = "fetch.address"  // [domain, canonical address] => nothing
	bucketAlias    = "fetch.alias"    // [final address, address that led to it] => nothing
	bucketHost     = "fetch.host"     // [host group] => hostState
)

func openArchive(s *kv.Store) *archive {
	return &archive{
		store:     s,
		exchanges: kv.In[Exchange](s, bucketExchange, 1),
		heads:     kv.In[head](s, bucketHead, 1),
		bodies:    kv.In[[]byte](s, bucketBody, 1),
		addresses: kv.In[[]byte](s, bucketAddress, 1),
		aliases:   kv.In[[]byte](s, bucketAlias, 1),
		hosts:     kv.In[hostState](s, bucketHost, 1),
		payments:  kv.In[Payment](s, bucketPayment, 1),
		seed:      maphash.MakeSeed(),
	}
}

// latest returns the newest exchange of a request, of any class.
func (a *archive) latest(key string) (Exchange, bool, error) {
	h, ok, err := a.head(key)
	return h.Latest, ok, err
}

// usable returns the newest ok or gone exchange of a request.
func (a *archive) usable(key string) (Exchange, bool, error) {
	h, ok, err := a.head(key)
	if err != nil || !ok {
		return Exchange{}, false, err
	}
	ex, ok := h.usable()
	return ex, ok, nil
}

// head returns what is known about a request. One that cannot be read is made again from the
// exchanges, as long as these can be read.
func (a *archive) head(key string) (head, bool, error) {
	h, ok, err := a.heads.Get(headKey(key))
	var corrupt *kv.CorruptError
	if errors.As(err, &corrupt) {
		h, err = a.fold(key)
		ok = h.Count > 0
	}
	if err != nil {
		return head{}, false, fmt.Errorf("read the exchanges of %s: %w", key, err)
	}
	return h, ok, nil
}

// fold makes a head from the stored exchanges of a request. Unreadable ones are left out but counted,
// so that their place is never taken.
func (a *archive) fold(key string) (head, error) {
	list, last, err := a.list(key)
	if err != nil || len(list) == 0 {
		return head{}, err
	}
	h := fold(list)
	h.Count = last
	return h, nil
}

// fold makes the head of some exchanges of one request, in whatever order they arrived.
func fold(list []Exchange) head {
	var h head
	for _, ex := range slices.SortedFunc(slices.Values(list), Exchange.compare) {
		h.add(ex)
	}
	return h
}

// list returns the readable exchanges of a request in order of arrival, and the highest position.
func (a *archive) list(key string) ([]Exchange, int, error) {
	var list []Exchange
	last := 0
	for e, err := range a.exchanges.Scan(kv.Prefix(domainOf(keyURL(key)), key), "") {
		var corrupt *kv.CorruptError
		switch {
		case errors.As(err, &corrupt):
			last++
			continue
		case err != nil:
			return nil, 0, fmt.Errorf("list the exchanges of %s: %w", key, err)
		}
		list = append(list, e.Value)
		last = max(last+1, e.Value.Seq)
	}
	return list, last, nil
}

// all returns the readable exchanges with an address, whatever else shaped the requests, in order of
// retrieval.
func (a *archive) all(url string) ([]Exchange, error) {
	domain, key := domainOf(url), requestKey("", url, "", "", "", "")
	var list []Exchange
	// A key that names more than method and address sorts right behind the one that does not.
	for e, err := range a.exchanges.Scan(kv.Prefix(domain), kv.Key(domain, key)) {
		var corrupt *kv.CorruptError
		if err != nil && !errors.As(err, &corrupt) {
			return nil, fmt.Errorf("list the exchanges with %s: %w", url, err)
		}
		parts := kv.Parts(e.Key)
		if len(parts) != 3 || parts[1] != key && !strings.HasPrefix(parts[1], key+" ") {
			break
		}
		if err == nil {
			list = append(list, e.Value)
		}
	}
	slices.SortFunc(list, Exchange.compare)
	return list, nil
}

// record stores an exchange and its body and returns it as stored; it is on disk when record returns.
// A nil body keeps ex.Body and ex.Length, which name a body that is stored already. Importing the
// same response twice stores it once.
func (a *archive) record(ctx context.Context, ex Exchange, body io.Reader) (Exchange, error) {
	if body == nil {
		return a.append(ctx, ex, nil)
	}
	sp, err := readSpool(body, 1<<62)
	if err != nil {
		return Exchange{}, fmt.Errorf("read the body of %s: %w", ex.URL, err)
	}
	defer sp.close()
	if sp.cut != nil {
		return Exchange{}, fmt.Errorf("read the body of %s: %w", ex.URL, sp.cut)
	}
	return a.append(ctx, ex, sp)
}

func (a *archive) append(ctx context.Context, ex Exchange, sp *spool) (Exchange, error) {
	ex = tidy(ex)
	var ops []kv.Op
	if sp != nil {
		ex.Body, ex.Length = sp.sum(), sp.size
		var err error
		if ops, err = a.bodyOps(ctx, sp); err != nil {
			return Exchange{}, fmt.Errorf("store the body of %s: %w", ex.URL, err)
		}
	}
	key := ex.Key()
	lock := &a.locks[maphash.String(a.seed, key)%uint64(len(a.locks))]
	lock.Lock()
	defer lock.Unlock()
	h, _, err := a.head(key)
	if err != nil {
		return Exchange{}, err
	}
	if ex.Source != SourceNetwork && h.Count > 0 {
		list, _, err := a.list(key)
		if err != nil {
			return Exchange{}, err
		}
		if i := slices.IndexFunc(list, func(old Exchange) bool { return sameImport(old, ex) }); i >= 0 {
			return list[i], nil
		}
	}
	return a.write(ex, key, h, ops)
}

// write appends one exchange with everything that is derived from it, in one durable step.
func (a *archive) write(ex Exchange, key string, h head, ops []kv.Op) (Exchange, error) {
	ex.Seq = h.Count + 1
	ex.SameAs = h.repeats(ex)
	domain := domainOf(ex.URL)
	if h.Count > 0 && ex.compare(h.Latest) < 0 {
		list, _, err := a.list(key)
		if err != nil {
			return Exchange{}, err
		}
		listed := h.Listed
		h = fold(append(list, ex))
		h.Listed = listed
	} else {
		h.add(ex)
	}
	h.Count = ex.Seq
	if !h.Listed && ex.isListed() {
		h.Listed = true
		op, err := a.addresses.PutOp(kv.Key(domain, ex.URL), nil)
		if err != nil {
			return Exchange{}, fmt.Errorf("store the address %s: %w", ex.URL, err)
		}
		ops = append(ops, op)
	}
	exOp, err := a.exchanges.PutOp(exchangeKey(ex.URL, key, ex.Seq), ex)
	if err != nil {
		return Exchange{}, fmt.Errorf("store the exchange with %s: %w", ex.URL, err)
	}
	headOp, err := a.heads.PutOp(kv.Key(domain, key), h)
	if err != nil {
		return Exchange{}, fmt.Errorf("store the exchange with %s: %w", ex.URL, err)
	}
	if ex.USD > 0 {
		op, err := a.paymentOp(fmt.Sprintf("%08d", ex.Seq), Payment{Key: key, At: ex.At, USD: ex.USD, PriceDate: ex.PriceDate, Estimated: ex.Estimated})
		if err != nil {
			return Exchange{}, err
		}
		ops = append(ops, op)
	}
	if err := a.store.Write(append(ops, exOp, headOp)...); err != nil {
		return Exchange{}, fmt.Errorf("store the exchange with %s: %w", ex.URL, err)
	}
	return ex, nil
}

// SourceNetwork is the Source of what this program asked for itself.
const SourceNetwork = "network"

// sameImport reports whether an imported exchange is stored already.
func sameImport(old, ex Exchange) bool {
	return old.Source == ex.Source && old.At.Equal(ex.At) && old.Status == ex.Status && old.Body == ex.Body
}

// unkept are response headers that are never stored: they are about the connection, or they are
// secrets of a session.
var unkept = []string{
	"Set-Cookie", "Set-Cookie2", "Transfer-Encoding", "Connection", "Keep-Alive", "Trailer", "Upgrade",
	"Authorization", "Proxy-Authorization", "Proxy-Authenticate", "Authentication-Info", "Cookie", "X-Api-Key",
}

// keptRequest are the request headers that are stored.
var keptRequest = []string{"Accept", "Accept-Encoding", "Accept-Language", "Content-Type", "If-Modified-Since", "If-None-Match", "Range", "User-Agent"}

// tidy brings an exchange into the form in which it is stored.
func tidy(ex Exchange) Exchange {
	ex.Method = cmp.Or(strings.ToUpper(ex.Method), http.MethodGet)
	ex.URL = corpus.CanonicalURL(ex.URL)
	ex.At = ex.At.UTC().Round(0)
	ex.Source = cmp.Or(ex.Source, SourceNetwork)
	header := http.Header{}
	for name, values := range ex.Header {
		if name = http.CanonicalHeaderKey(name); !slices.Contains(unkept, name) {
			header[name] = append(header[name], values...)
		}
	}
	ex.Header = header
	ex.Encoding = cmp.Or(ex.Encoding, strings.ToLower(strings.Join(header.Values("Content-Encoding"), ", ")))
	request := map[string]string{}
	for name, value := range ex.RequestHeader {
		if name = http.CanonicalHeaderKey(name); slices.Contains(keptRequest, name) {
			request[name] = value
		}
	}
	ex.RequestHeader = request
	return ex
}

// bodyOps stores all chunks of a body but the last, which is left to the write of the exchange. A
// body that is stored already needs none.
func (a *archive) bodyOps(ctx context.Context, sp *spool) ([]kv.Op, error) {
	n := chunks(sp.size)
	if n == 0 {
		return nil, nil
	}
	sum := sp.sum()
	if have, err := a.bodies.Count(kv.Prefix(sum)); err != nil || have == n && !sp.rewrite {
		return nil, err
	}
	if sp.file == nil && n == 1 {
		op, err := a.bodies.PutOp(bodyKey(sum, 0), sp.head)
		return []kv.Op{op}, err
	}
	r, err := sp.reader()
	if err != nil {
		return nil, err
	}
	for i := range n {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		chunk := make([]byte, min(chunkSize, sp.size-int64(i)*chunkSize))
		if _, err := io.ReadFull(r, chunk); err != nil {
			return nil, err
		}
		op, err := a.bodies.PutOp(bodyKey(sum, i), chunk)
		if err != nil {
			return nil, err
		}
		if i == n-1 {
			return []kv.Op{op}, nil
		}
		if err := a.store.Write(op); err != nil {
			return nil, err
		}
	}
	return nil, nil // not reached: the last chunk returns
}

// keepRequest stores the body of a request, which is one chunk.
func (a *archive) keepRequest(sum string, body []byte) error {
	key := bodyKey(sum, 0)
	known, err := a.bodies.Has(key)
	if err == nil && !known {
		err = a.bodies.Put(key, body)
	}
	if err != nil {
		return fmt.Errorf("store the body of a request: %w", err)
	}
	return nil
}

// body gives the stored body of an exchange, content coding kept.
func (a *archive) body(ex Exchange) (io.Reader, error) {
	switch n := chunks(ex.Length); {
	case n == 0 || ex.Body == "":
		return bytes.NewReader(nil), nil
	case n == 1:
		chunk, err := a.chunk(ex, 0)
		return bytes.NewReader(chunk), err
	}
	return &chunkReader{archive: a, ex: ex}, nil
}

func (a *archive) chunk(ex Exchange, n int) ([]byte, error) {
	chunk, ok, err := a.bodies.Get(bodyKey(ex.Body, n))
	if err != nil {
		return nil, fmt.Errorf("read the body of %s: %w", ex.URL, err)
	}
	if !ok {
		return nil, &kv.CorruptError{Bucket: bucketBody, Key: bodyKey(ex.Body, n), Err: fmt.Errorf("part %d of the body of %s is missing", n, ex.URL)}
	}
	return chunk, nil
}

// A chunkReader reads a long body one chunk after the other.
type chunkReader struct {
	archive *archive
	ex      Exchange
	next    int
	rest    []byte
}

func (r *chunkReader) Read(p []byte) (int, error) {
	if len(r.rest) == 0 {
		if r.next >= chunks(r.ex.Length) {
			return 0, io.EOF
		}
		chunk, err := r.archive.chunk(r.ex, r.next)
		if err != nil {
			return 0, err
		}
		r.next++
		r.rest = chunk
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// stored yields the addresses of a host, and of its subdomains, in order; those of all hosts for "".
func (a *archive) stored(ctx context.Context, host string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		host = strings.ToLower(host)
		prefix := ""
		if host != "" {
			prefix = kv.Prefix(corpus.RegistrableDomain(host))
		}
		for key, err := range a.addresses.Keys(prefix, "") {
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				yield("", fmt.Errorf("list the stored addresses of %s: %w", cmp.Or(host, "all hosts"), err))
				return
			}
			parts := kv.Parts(key)
			url := parts[len(parts)-1]
			if h := hostOf(url); host != "" && h != host && !strings.HasSuffix(h, "."+host) {
				continue
			}
			if !yield(url, nil) {
				return
			}
		}
	}
}

// alias remembers that an address led to another.
func (a *archive) alias(final string, hops []string) error {
	var ops []kv.Op
	for _, hop := range hops {
		key := kv.Key(final, hop)
		known, err := a.aliases.Has(key)
		if err != nil {
			return fmt.Errorf("read the addresses of %s: %w", final, err)
		}
		if known {
			continue
		}
		op, err := a.aliases.PutOp(key, nil)
		if err != nil {
			return fmt.Errorf("store the addresses of %s: %w", final, err)
		}
		ops = append(ops, op)
	}
	if len(ops) == 0 {
		return nil
	}
	if err := a.store.Write(ops...); err != nil {
		return fmt.Errorf("store the addresses of %s: %w", final, err)
	}
	return nil
}

// addressesOf returns a final address and every address known to lead to it, sorted.
func (a *archive) addressesOf(final string) ([]string, error) {
	list := []string{final}
	for key, err := range a.aliases.Keys(kv.Prefix(final), "") {
		if err != nil {
			return nil, fmt.Errorf("list the addresses of %s: %w", final, err)
		}
		parts := kv.Parts(key)
		list = append(list, parts[len(parts)-1])
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

// Keep tells which records of a store a collection of garbage leaves alone, given the dependency keys
// that are still in use: of each, the newest exchange and the newest answer with its body, of an address
// whose versions were read every exchange with a body, and every robots.txt. It says yes to every bucket
// that is not one of fetch.
func Keep(s *kv.Store, keys iter.Seq[string]) (func(bucket, key string) bool, error) {
	a := openArchive(s)
	k := keeper{records: map[string]bool{}, bodies: map[string]bool{}, addresses: map[string]bool{}}
	for key := range keys {
		key, ok := strings.CutPrefix(key, depPrefix)
		if !ok {
			continue
		}
		key, versions := strings.CutPrefix(key, versionsPrefix)
		if err := k.mark(a, key); err != nil {
			return nil, err
		}
		if versions {
			if err := k.markAll(a, key); err != nil {
				return nil, err
			}
		}
	}
	for record, err := range a.heads.Keys("", "") {
		if err != nil {
			return nil, fmt.Errorf("list what is stored: %w", err)
		}
		if parts := kv.Parts(record); len(parts) == 2 && strings.HasSuffix(keyURL(parts[1]), "/robots.txt") {
			if err := k.mark(a, parts[1]); err != nil {
				return nil, err
			}
		}
	}
	return k.keeps, nil
}

// A keeper holds what Keep found to be in use.
type keeper struct {
	records   map[string]bool // keys of exchanges and heads
	bodies    map[string]bool // sums
	addresses map[string]bool
}

func (k keeper) mark(a *archive, key string) error {
	h, ok, err := a.head(key)
	if err != nil || !ok {
		return err
	}
	k.addresses[keyURL(key)] = true
	k.records[headKey(key)] = true
	for _, ex := range []Exchange{h.Latest, h.answer()} {
		k.records[exchangeKey(ex.URL, key, ex.Seq)] = true
		k.bodies[ex.Body], k.bodies[ex.RequestBody] = true, true
	}
	return nil
}

// markAll keeps the exchanges of a request that tell its versions.
func (k keeper) markAll(a *archive, key string) error {
	list, _, err := a.list(key)
	for _, ex := range list {
		if ex.Class.answers() {
			k.records[exchangeKey(ex.URL, key, ex.Seq)] = true
			k.bodies[ex.Body] = true
		}
	}
	return err
}

func (k keeper) keeps(bucket, key string) bool {
	switch bucket {
	case bucketExchange, bucketHead:
		return k.records[key]
	case bucketBody:
		parts := kv.Parts(key)
		return len(parts) > 0 && k.bodies[parts[0]]
	case bucketAddress:
		parts := kv.Parts(key)
		return len(parts) == 2 && k.addresses[parts[1]]
	case bucketAlias:
		parts := kv.Parts(key)
		return len(parts) == 2 && (k.addresses[parts[0]] || k.addresses[parts[1]])
	}
	return true
}

func exchangeKey(url, key string, seq int) string {
	return kv.Key(domainOf(url), key, fmt.Sprintf("%08d", seq))
}

func headKey(key string) string { return kv.Key(domainOf(keyURL(key)), key) }

func bodyKey(sum string, n int) string { return kv.Key(sum, fmt.Sprintf("%06d", n)) }

func chunks(length int64) int { return int((length + chunkSize - 1) / chunkSize) }

// hostOf returns the host of a canonical address, without port.
func hostOf(url string) string {
	_, rest, ok := strings.Cut(url, "://")
	if !ok {
		return ""
	}
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		rest = rest[:i]
	}
	rest = rest[strings.LastIndexByte(rest, '@')+1:]
	if end := strings.IndexByte(rest, ']'); end >= 0 {
		return rest[:end+1]
	}
	host, _, _ := strings.Cut(rest, ":")
	return host
}

// domainOf returns the registrable domain of a canonical address.
func domainOf(url string) string { return corpus.RegistrableDomain(hostOf(url)) }

// spoolMemory is how much of a body is held in memory; the rest waits in a temporary file, because
// its sum is needed before its first chunk can be stored.
const spoolMemory = 8 << 20

// A spool holds a body that was read once, with its sum.
type spool struct {
	head []byte
	file *os.File
	hash hash.Hash
	size int64
	over bool  // the limit was passed: what is held is not the whole body
	cut  error // why reading stopped early

	rewrite bool // the stored copy is damaged: store it again
}

// readSpool reads r to its end or just past limit. The error of r itself is kept in spool.cut when
// something is to be said about what came before it; the error returned is one of the disk.
func readSpool(r io.Reader, limit int64) (*spool, error) { return readSpoolOf(r, limit, 0) }

// readSpoolOf is readSpool for a body whose length is announced; 0 or less means that it is not.
func readSpoolOf(r io.Reader, limit, hint int64) (*spool, error) {
	sp := &spool{hash: sha256.New()}
	most := min(limit+1, spoolMemory)
	var buf bytes.Buffer
	if hint > 0 {
		buf.Grow(int(min(hint, most)) + bytes.MinRead) // what ReadFrom wants free to see the end
	}
	sp.size, sp.cut = buf.ReadFrom(io.LimitReader(r, most))
	sp.head = buf.Bytes()
	sp.hash.Write(sp.head)
	if sp.cut == nil && sp.size == most && sp.size <= limit {
		if err := sp.spill(r, limit); err != nil {
			return nil, errors.Join(err, sp.close())
		}
	}
	sp.over = sp.size > limit
	return sp, nil
}

// spill reads on into a temporary file.
func (sp *spool) spill(r io.Reader, limit int64) error {
	f, err := os.CreateTemp("", "assay-body-*")
	if err != nil {
		return err
	}
	sp.file = f
	w := &diskWriter{w: f}
	n, err := io.Copy(io.MultiWriter(w, sp.hash), io.LimitReader(r, limit+1-sp.size))
	sp.size += n
	if w.err == nil {
		sp.cut = err
	}
	return w.err
}

// A diskWriter tells the error of writing from that of reading.
type diskWriter struct {
	w   io.Writer
	err error
}

func (d *diskWriter) Write(p []byte) (int, error) {
	n, err := d.w.Write(p)
	d.err = err
	return n, err
}

func (sp *spool) sum() string { return hex.EncodeToString(sp.hash.Sum(nil)) }

// reader reads the body from its beginning.
func (sp *spool) reader() (io.Reader, error) {
	if sp.file == nil {
		return bytes.NewReader(sp.head), nil
	}
	if _, err := sp.file.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	return io.MultiReader(bytes.NewReader(sp.head), sp.file), nil
}

// truncate keeps the first n bytes of a body that is held in memory.
func (sp *spool) truncate(n int64) {
	sp.head, sp.size = sp.head[:n], n
	sp.hash = sha256.New()
	sp.hash.Write(sp.head)
}

func (sp *spool) close() error {
	if sp == nil || sp.file == nil {
		return nil
	}
	return errors.Join(sp.file.Close(), os.Remove(sp.file.Name()))
}
