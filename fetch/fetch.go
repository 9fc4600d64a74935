// Package fetch is the one polite HTTP client. It obeys robots.txt, spaces the requests to a host,
// dials nothing that it has not checked, and keeps every exchange and every body as they came, so
// that a corpus can be rebuilt without the network. It reads pages too: content coding, character
// set, the shared parse and the article text, and it takes in archives made by others.
//
// A request goes through a chain, outermost first:
//
//	cassette   answers from the store (live, replay) or confirms it (AskAgain); one request at a time per key
//	authorizer the bearer token of a Call
//	robots     RFC 9309, and the Crawl-delay of the group that applies
//	retry      another attempt after errors that pass; Retry-After holds or parks the host
//	payer      the price of a paid attempt, held until its record says what it cost
//	limiter    so many at once and so much time between them, per host group; gives up a host that cannot be reached
//	recorder   one attempt: body within limits, classified and on disk before anyone reads it
//	credentials, guard, network
//
// so that every attempt is polite, guarded and recorded, and no secret is ever stored.
//
// It keeps, each bucket by the keys in brackets:
//
//	fetch.exchange  [domain, request key, number]  one request and what came of it; only ever added to
//	fetch.head      [domain, request key]          newest exchange and newest answer; made again from exchanges
//	body            [sha256, number]               4 MiB parts of a body, content coding kept
//	fetch.address   [domain, address]              addresses that something is stored for
//	fetch.alias     [final address, address]       addresses that were redirected there
//	fetch.digest    [payload digest]               which exchange first had this payload; may be dropped
//	fetch.host      [host group]                   until when a host asked to be left alone
//	fetch.payment   [request key, number]          what a paid request cost
//
// WriteExchanges puts all of it into WARC records, and ReadArchive puts it back; see archivewrite.go.
//
// It runs no JavaScript, keeps no cookies, and knows no site.
package fetch

import (
	"bytes"
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"assay/corpus"
	"assay/kv"
)

// Mode says where answers may come from.
type Mode int

// The values of Mode.
const (
	Live   Mode = iota // a stored answer is used, anything else is asked for; see AskAgain
	Replay             // only what is stored; nothing leaves the machine
)

// String returns the name that the command line uses.
func (m Mode) String() string {
	switch m {
	case Live:
		return "live"
	case Replay:
		return "replay"
	}
	return "mode " + strconv.Itoa(int(m))
}

// Limits bound what one request may cost. A zero field means the value in brackets.
type Limits struct {
	PageBytes         int64         // as sent, content coding included (8 MiB)
	DecompressedBytes int64         // after content decoding (32 MiB)
	FeedBytes         int64         // both, for a Request that is Large (1 GiB)
	Redirects         int           // hops of one Get (5)
	Timeout           time.Duration // of one attempt, connection and body included; twenty times that for Large, where the body comes on (60 s)
}

// Options say how a client behaves. The zero value of every field but Store and Contact is useful.
type Options struct {
	Store         *kv.Store
	Mode          Mode
	Version       string                   // of the program, for the User-Agent
	Contact       string                   // address or page where somebody answers for the requests, for the User-Agent
	Delay         time.Duration            // least gap between requests to one host; 0 means 1 s, below 0 none
	HostDelay     map[string]time.Duration // by host or registrable domain, instead of Delay; 0 means none
	PerHost       int                      // requests to one host at once; 0 means 1
	Retries       int                      // attempts after the first; 0 means 3, below 0 none
	RetryAfterCap time.Duration            // longest Retry-After that is waited for, 0 means 5 min; a longer one parks the host
	CrawlDelayCap time.Duration            // longest Crawl-delay that is honoured; 0 means 1 min
	AllowPrivate  []string                 // exact host:port that may be dialled wherever they are
	Resolve       map[string]string        // host, or *.domain, => ip:port to dial instead
	Limits        Limits
	Credentials   []Credential
	Unstored      []string // canonical addresses of token endpoints: HTTP reaches them, nothing of it is kept

	Roots *x509.CertPool // certificate authorities; nil means the system's

	Now    func() time.Time                           // nil means time.Now
	Sleep  func(context.Context, time.Duration) error // waits, or returns the context's error
	Jitter func() float64                             // in [0,1), for the time between attempts
	// Reserve holds money for a paid request, and settle says what it cost in the end. Its error refuses the
	// request. Nil means that there is no limit.
	Reserve func(ctx context.Context, usd float64) (settle func(usd float64), err error)
	// Answered is told, in the context of each Get or request, what a request key answered. A key that
	// is followed through a redirect is told about once per hop.
	Answered func(ctx context.Context, key string, sum [32]byte)
}

// withDefaults fills in what is zero.
func (o Options) withDefaults() Options {
	o.Version = cmp.Or(o.Version, "dev")
	o.Delay = cmp.Or(o.Delay, time.Second)
	o.PerHost = max(o.PerHost, 1)
	o.Retries = cmp.Or(o.Retries, 3)
	o.RetryAfterCap = cmp.Or(o.RetryAfterCap, 5*time.Minute)
	o.CrawlDelayCap = cmp.Or(o.CrawlDelayCap, time.Minute)
	delays := map[string]time.Duration{}
	for host, d := range o.HostDelay {
		delays[strings.ToLower(host)] = d
	}
	o.HostDelay = delays
	o.Limits.PageBytes = cmp.Or(o.Limits.PageBytes, 8<<20)
	o.Limits.DecompressedBytes = cmp.Or(o.Limits.DecompressedBytes, 32<<20)
	o.Limits.FeedBytes = cmp.Or(o.Limits.FeedBytes, 1<<30)
	o.Limits.Redirects = cmp.Or(o.Limits.Redirects, 5)
	o.Limits.Timeout = cmp.Or(o.Limits.Timeout, time.Minute)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Sleep == nil {
		o.Sleep = sleep
	}
	if o.Jitter == nil {
		o.Jitter = rand.Float64
	}
	if o.Reserve == nil {
		o.Reserve = func(context.Context, float64) (func(float64), error) { return func(float64) {}, nil }
	}
	if o.Answered == nil {
		o.Answered = func(context.Context, string, [32]byte) {}
	}
	return o
}

// sleep waits by the clock of the machine.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// check reports options that cannot work.
func (o Options) check() error {
	if o.Store == nil {
		return errors.New("make the fetch client: it has no store")
	}
	if o.Mode < Live || o.Mode > Replay {
		return fmt.Errorf("make the fetch client: there is no %v", o.Mode)
	}
	if o.Mode != Replay && o.Contact == "" && len(o.AllowPrivate) == 0 && len(o.Resolve) == 0 {
		return errors.New("make the fetch client: a live build needs a contact (an address or a page where you can be reached) for its User-Agent")
	}
	if strings.ContainsAny(o.Contact+o.Version, "\r\n") {
		return errors.New("make the fetch client: contact and version must be one line")
	}
	for _, hp := range o.AllowPrivate {
		if _, port, err := net.SplitHostPort(hp); err != nil || port == "" {
			return fmt.Errorf("make the fetch client: allow-list entry %q is not host:port", hp)
		}
	}
	for host, to := range o.Resolve {
		if _, err := netip.ParseAddrPort(to); err != nil {
			return fmt.Errorf("make the fetch client: %s cannot be dialled at %q, which is not ip:port", host, to)
		}
	}
	for _, c := range o.Credentials {
		if err := c.check(); err != nil {
			return fmt.Errorf("make the fetch client: %w", err)
		}
	}
	return nil
}

// A Client gets pages. All methods may be called from many goroutines. Everything that shares a
// client shares its limits.
type Client struct {
	archive   *archive
	mode      Mode
	limits    Limits
	userAgent string
	unstored  []string
	now       func() time.Time
	answered  func(ctx context.Context, key string, sum [32]byte)
	stats     *counters

	cassette  *cassette
	robots    *robots
	retry     *retrier
	limiter   *limiter
	guard     *guard
	inner     http.RoundTripper // credentials, guard, network
	transport *http.Transport
}

// New makes a client over an open store, which stays the caller's to close. In live mode it
// fails without a contact; when there is none but AllowPrivate or Resolve name hosts, only those
// are asked.
func New(o Options) (*Client, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	c := &Client{
		archive:   openArchive(o.Store),
		mode:      o.Mode,
		limits:    o.Limits,
		userAgent: "assay/" + o.Version,
		now:       o.Now,
		answered:  o.Answered,
		stats:     &counters{hosts: map[string]HostStats{}},
	}
	if o.Contact != "" {
		c.userAgent += " (+" + o.Contact + ")"
	}
	for _, u := range o.Unstored {
		c.unstored = append(c.unstored, corpus.CanonicalURL(u))
	}
	c.guard = newGuard(o)
	c.transport = newTransport(c.guard, o)
	c.guard.next = c.transport
	c.inner = &credentials{list: o.Credentials, guard: c.guard, limit: o.Limits.DecompressedBytes, next: c.guard}
	c.limiter = &limiter{
		perHost: o.PerHost, delay: max(o.Delay, 0), hostDelay: o.HostDelay, archive: c.archive, now: o.Now, sleep: o.Sleep, stats: c.stats,
		lanes: map[string]*lane{}, breakers: map[string]*breaker{}, slow: map[string]string{}, crawl: map[string]time.Duration{}, gaps: map[string]time.Duration{}, rooms: map[string]int{},
		next: &recorder{client: c, archive: c.archive, next: c.inner},
	}
	c.retry = &retrier{retries: max(o.Retries, 0), cap: o.RetryAfterCap, jitter: o.Jitter, now: o.Now, sleep: o.Sleep, limiter: c.limiter, next: &payer{c, o.Reserve, c.limiter}}
	c.robots = &robots{client: c, agent: "assay", delay: o.CrawlDelayCap, limiter: c.limiter, known: map[string]robotsEntry{}, next: c.retry}
	c.cassette = &cassette{client: c, mode: o.Mode, archive: c.archive, next: &authorizer{c.robots}, flights: map[string]*flight{}}
	return c, nil
}

// Close ends idle connections. Requests in flight end by their contexts.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// A Request names a page.
type Request struct {
	URL    string
	Accept string // media types; empty for what a browser asks for
	Large  bool   // a feed or dump: Limits.FeedBytes instead of the limits for pages
}

// Get returns the page at an address, following redirects. An address that gives no page is an *Error.
// Any other error (a cancelled context, a broken store) is not about the address.
func (c *Client) Get(ctx context.Context, r Request) (*Page, error) {
	ans, call, hops, err := c.follow(ctx, r, false)
	if err != nil {
		return nil, err
	}
	page, err := c.page(ctx, call, ans, hops)
	return page, from(hops[0], err)
}

// follow asks for an address and for what it redirects to. It returns the last answer, the call that got
// it, and the addresses on the way, the last one included.
func (c *Client) follow(ctx context.Context, r Request, stream bool) (answer, *call, []string, error) {
	address := corpus.CanonicalURL(r.URL)
	var hops []string
	for url := address; ; {
		call, err := c.pageCall(url, r)
		if err != nil {
			return answer{}, nil, nil, from(address, err)
		}
		call.stream = stream
		ans, err := c.ask(ctx, call)
		if err != nil {
			return answer{}, nil, nil, from(address, err)
		}
		hops = append(hops, url)
		next := redirectOf(ans.ex)
		if next == "" {
			return ans, call, hops, nil
		}
		if slices.Contains(hops, next) {
			return answer{}, nil, nil, &Error{URL: address, Reason: ReasonRedirectLoop, Detail: url + " leads back to " + next, Status: ans.ex.Status, Tries: len(hops)}
		}
		if len(hops) > c.limits.Redirects {
			return answer{}, nil, nil, &Error{URL: address, Reason: ReasonTooManyRedirects, Detail: fmt.Sprintf("more than %d", c.limits.Redirects), Status: ans.ex.Status, Tries: len(hops)}
		}
		url = next
	}
}

// pageCall makes the call for one hop of a Get.
func (c *Client) pageCall(url string, r Request) (*call, error) {
	if err := checkAddress(url); err != nil {
		return nil, err
	}
	if slices.Contains(c.unstored, url) {
		return nil, &Error{URL: url, Reason: ReasonBadURL, Detail: "it is configured as never stored, so it is no page"}
	}
	call := c.newCall(http.MethodGet, url)
	call.large = r.Large
	if r.Accept != "" {
		call.header.Set("Accept", r.Accept)
		call.key = keyOf(call)
	}
	return call, nil
}

// newCall makes a call with the headers that Get sends.
func (c *Client) newCall(method, url string) *call {
	return &call{
		method: method, url: url, key: requestKey(method, url, "", "", "", ""),
		header: http.Header{"Accept": {defaultAccept}, "Accept-Language": {defaultAcceptLanguage}},
	}
}

func keyOf(c *call) string {
	body := ""
	if len(c.body) > 0 {
		body = bodySum(c.body)
	}
	return requestKey(c.method, c.url, c.header.Get("Accept"), c.header.Get("Accept-Language"), c.header.Get("Range"), body)
}

// ask sends a call through the chain and reports what its key answers from now on, whatever that is.
func (c *Client) ask(ctx context.Context, call *call) (answer, error) {
	ans, err := c.send(ctx, call)
	var failed *Error
	switch {
	case err == nil:
		c.answered(ctx, depPrefix+call.key, ans.ex.Sum())
	case errors.As(err, &failed):
		if err := c.reportKey(ctx, call.key); err != nil {
			return ans, err
		}
	}
	return ans, err
}

func (c *Client) send(ctx context.Context, call *call) (answer, error) {
	if c.mode != Replay {
		// Before robots.txt is asked for: there is nobody to ask at an address that is not dialled.
		if err := c.guard.check(call.url); err != nil && !c.has(call.key) {
			return answer{}, err
		}
	}
	return c.cassette.send(ctx, call)
}

// has reports whether a request is answered by the store.
func (c *Client) has(key string) bool {
	_, ok, err := c.archive.usable(key)
	return ok && err == nil
}

// reportKey tells Answered what the store answers to a request key.
func (c *Client) reportKey(ctx context.Context, key string) error {
	sum, _, err := c.Current(ctx, depPrefix+key)
	if err != nil {
		return err
	}
	c.answered(ctx, depPrefix+key, sum)
	return nil
}

// page reads the final answer of a Get. A stored body that is damaged is asked for again.
func (c *Client) page(ctx context.Context, call *call, ans answer, hops []string) (*Page, error) {
	body, ans, err := c.content(ctx, call, ans)
	if err != nil {
		return nil, err
	}
	if err := c.archive.alias(call.url, hops[:len(hops)-1]); err != nil {
		return nil, err
	}
	page, err := newPage(ans.ex, body, hops)
	if err == nil && len(page.Addresses) == 1 {
		page.head = ans.head
	}
	return page, err
}

// content returns the decoded body of an ok answer, and the answer that it is of.
func (c *Client) content(ctx context.Context, call *call, ans answer) ([]byte, answer, error) {
	if failed := ans.ex.failure(); failed != nil {
		failed.Tries = ans.tries
		return nil, ans, failed
	}
	if ans.decoded != nil {
		return ans.decoded, ans, nil
	}
	_, limit := c.limitsOf(call.large)
	body, err := c.decode(ans.ex, limit)
	var corrupt *kv.CorruptError
	if c.mode == Replay || call.again || !errors.As(err, &corrupt) {
		return body, ans, err
	}
	again := *call
	again.again = true
	if ans, err = c.ask(ctx, &again); err != nil {
		return nil, ans, err
	}
	return c.content(ctx, &again, ans)
}

// decode reads a stored body and undoes its content codings. Of a body that is known to be cut, what
// can be read is returned.
func (c *Client) decode(ex Exchange, limit int64) ([]byte, error) {
	if chunks(ex.Length) == 1 && ex.Length <= limit && uncoded(ex.Header, ex.URL) {
		return c.archive.chunk(ex, 0)
	}
	r, err := c.archive.body(ex)
	if err != nil {
		return nil, err
	}
	body, err := decodeContent(ex.Header, ex.URL, r, limit)
	var failed *Error
	if ex.Truncated && len(body) > 0 && errors.As(err, &failed) && failed.Reason == ReasonTruncated {
		return body, nil
	}
	return body, err
}

func (c *Client) limitsOf(large bool) (sent, decoded int64) {
	if large {
		return c.limits.FeedBytes, c.limits.FeedBytes
	}
	return c.limits.PageBytes, c.limits.DecompressedBytes
}

// maxAddress is the longest address that is requested, in bytes.
const maxAddress = 16 << 10

// checkAddress refuses what cannot be requested, or must not be stored, as it is written.
func checkAddress(url string) error {
	scheme, rest, ok := strings.Cut(url, ":")
	switch {
	case !ok || scheme == "" || strings.ContainsAny(scheme, "/?#"):
		return &Error{URL: url, Reason: ReasonBadURL, Detail: "it has no scheme"}
	case scheme != "http" && scheme != "https":
		return &Error{URL: url, Reason: ReasonBadScheme, Detail: "only http and https are fetched, not " + scheme}
	case len(url) > maxAddress:
		return &Error{URL: url[:100] + "...", Reason: ReasonBadURL, Detail: fmt.Sprintf("it is longer than %d bytes", maxAddress)}
	case corpus.Host(url) == "":
		return &Error{URL: url, Reason: ReasonBadURL, Detail: "it is no address"}
	}
	authority, _, _ := strings.Cut(strings.TrimPrefix(rest, "//"), "/")
	if before, _, found := strings.Cut(authority, "?"); found {
		authority = before
	}
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		return &Error{URL: scheme + "://" + authority[i+1:], Reason: ReasonBadURL, Detail: "it carries a user name or password, which would be stored"}
	}
	return nil
}

// from makes an error one about the address that was asked for. Flights share their errors, so it is
// a copy.
func from(address string, err error) error {
	var e *Error
	if !errors.As(err, &e) || e.URL == address || e.Reason == ReasonBadURL {
		return err
	}
	mine := *e
	mine.Detail = strings.TrimSuffix("at "+e.URL+": "+e.Detail, ": ")
	mine.URL = address
	return &mine
}

// HTTP returns an http.Client for crawlers. It has no timeout and no cookies; its transport is the
// whole chain. Bodies come decoded, text as UTF-8 and saying so, without content coding. Answers that
// are ok, a redirect, or gone with a status that says so are responses; any other is an *Error inside
// the *url.Error of net/http. Headers of a request other than Accept, Accept-Language, Range and
// Content-Type are dropped, and an Accept of */* is the one that Get sends, so that both share answers.
func (c *Client) HTTP() *http.Client {
	return &http.Client{Transport: crawl{c}, CheckRedirect: c.checkRedirect}
}

func (c *Client) checkRedirect(req *http.Request, via []*http.Request) error {
	first, next := via[0].URL.String(), corpus.CanonicalURL(req.URL.String())
	for _, v := range via {
		if v.Method == req.Method && corpus.CanonicalURL(v.URL.String()) == next {
			return &Error{URL: first, Reason: ReasonRedirectLoop, Detail: "it leads back to " + next, Tries: len(via)}
		}
	}
	if len(via) > c.limits.Redirects {
		return &Error{URL: first, Reason: ReasonTooManyRedirects, Detail: fmt.Sprintf("more than %d", c.limits.Redirects), Tries: len(via)}
	}
	return nil
}

// crawl is the transport of Client.HTTP.
type crawl struct{ c *Client }

// maxRequestBody bounds the body of a request that a crawler sends.
const maxRequestBody = 1 << 20

func (t crawl) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	call, err := t.call(req)
	if err != nil {
		return nil, err
	}
	if slices.Contains(t.c.unstored, call.url) {
		if v := req.Header.Get("Authorization"); v != "" {
			if !strings.HasPrefix(call.url, "https:") && !t.c.guard.listed(hostOf(call.url), hostPort(call.url)) {
				return nil, &Error{URL: call.url, Reason: ReasonBadScheme, Detail: "a secret is sent over https, or to a host of the allow-list"}
			}
			call.header.Set("Authorization", v)
		}
		call.userAgent, call.harmless = req.Header.Get("User-Agent"), true
		return t.pass(ctx, call)
	}
	ans, err := t.c.ask(ctx, call)
	if err != nil {
		return nil, err
	}
	gone := ans.ex.Class == ClassGone && ans.ex.Status >= 400 // a crawler would take any other for a page
	if failed := ans.ex.failure(); failed != nil && !gone {
		failed.Tries = ans.tries
		return nil, failed
	}
	body := ans.decoded
	if body == nil {
		readable := ans
		readable.ex.Class = ClassOK // the body of a page that is gone is given out too
		if body, ans, err = t.c.content(ctx, call, readable); err != nil {
			return nil, err
		}
	}
	return t.response(req, ans.ex, body)
}

// call reads a request of a crawler.
func (t crawl) call(req *http.Request) (*call, error) {
	url := corpus.CanonicalURL(req.URL.String())
	if err := checkAddress(url); err != nil {
		return nil, err
	}
	call := t.c.newCall(cmp.Or(req.Method, http.MethodGet), url)
	for _, name := range []string{"Accept", "Accept-Language", "Range", "Content-Type"} {
		if v := req.Header.Get(name); v != "" && v != "*/*" {
			call.header.Set(name, v)
		}
	}
	if req.Body != nil {
		body, err := io.ReadAll(io.LimitReader(req.Body, maxRequestBody+1))
		if err := errors.Join(err, req.Body.Close()); err != nil {
			return nil, fmt.Errorf("read the request to %s: %w", url, err)
		}
		if len(body) > maxRequestBody {
			return nil, &Error{URL: url, Reason: ReasonTooLarge, Detail: "the request is"}
		}
		call.body = body
	}
	call.key = keyOf(call)
	return call, nil
}

// declaredEncoding finds the encoding that an XML declaration names.
var declaredEncoding = regexp.MustCompile(`^(<\?xml[^>]{0,200}?encoding\s*=\s*["'])[A-Za-z0-9._:-]+`)

// response makes the response that a crawler sees.
func (t crawl) response(req *http.Request, ex Exchange, body []byte) (*http.Response, error) {
	header := ex.Header.Clone()
	if header == nil {
		header = http.Header{}
	}
	if sniffed := mediaType(http.DetectContentType(body)); len(body) > 0 && strings.HasPrefix(sniffed, "text/") {
		if header.Get("Content-Type") == "" || gzipFile(header, "") {
			header.Set("Content-Type", sniffed) // of what was inside
		}
		ex.Header = header
		page, err := newPage(ex, body, []string{ex.URL})
		if err != nil {
			return nil, err
		}
		body = declaredEncoding.ReplaceAll([]byte(page.Text()), []byte("${1}utf-8"))
		header.Set("Content-Type", mediaType(header.Get("Content-Type"))+"; charset=utf-8")
	}
	header.Del("Content-Encoding")
	header.Del("Content-Length")
	status := ex.Status
	if status == http.StatusNotModified {
		status = http.StatusOK
	}
	return &http.Response{
		Status: fmt.Sprintf("%d %s", status, http.StatusText(status)), StatusCode: status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Uncompressed: true, Request: req,
	}, nil
}

// pass sends a request to a token endpoint: guarded and at the host's pace, with nothing kept.
func (t crawl) pass(ctx context.Context, call *call) (*http.Response, error) {
	if t.c.mode == Replay {
		return nil, &Error{URL: call.url, Reason: ReasonNotStored, Detail: "replay asks nobody"}
	}
	direct := &passing{client: t.c}
	again := *t.c.retry
	again.next = direct
	ans, err := again.send(ctx, call)
	if err != nil {
		return nil, err
	}
	if failed := ans.ex.failure(); failed != nil && ans.ex.Status == 0 {
		failed.Tries = ans.tries
		return nil, failed
	}
	return t.response(direct.request, ans.ex, ans.decoded)
}

// passing is a limiter and recorder that records nothing.
type passing struct {
	client  *Client
	request *http.Request
}

func (p *passing) send(ctx context.Context, c *call) (answer, error) {
	return p.client.limiter.sendTo(ctx, c, attempted(p.attempt))
}

// attempted makes a sender of a func.
type attempted func(ctx context.Context, c *call) (answer, error)

func (f attempted) send(ctx context.Context, c *call) (answer, error) { return f(ctx, c) }

func (p *passing) attempt(ctx context.Context, c *call) (answer, error) {
	attempt, cancel := context.WithTimeout(context.WithValue(ctx, noteKey{}, &attemptNote{}), p.client.limits.Timeout)
	defer cancel()
	req, err := (&recorder{client: p.client}).request(attempt, c)
	if err != nil {
		return answer{}, err
	}
	p.request = req
	p.client.stats.request(hostOf(c.url))
	ex := Exchange{Method: c.method, URL: c.url, At: p.client.now()}
	resp, err := p.client.guard.RoundTrip(req)
	c.answered = p.client.now()
	if err != nil {
		return p.unanswered(ctx, ex, err)
	}
	defer resp.Body.Close()
	body, err := decodeContent(resp.Header, c.url, resp.Body, p.client.limits.PageBytes)
	if err != nil {
		return p.unanswered(ctx, ex, err)
	}
	ex.At, ex.Status, ex.Header = c.answered, resp.StatusCode, resp.Header
	ex.Class, ex.Reason = classify(ex.Status, ex.Header, body)
	return answer{ex: ex, decoded: body}, nil
}

// unanswered is an attempt that brought no HTTP answer. An error of our own, such as a refusal of the
// guard, stays what it is.
func (p *passing) unanswered(ctx context.Context, ex Exchange, err error) (answer, error) {
	var own *Error
	if ctx.Err() != nil {
		return answer{}, ctx.Err()
	} else if errors.As(err, &own) && own.Reason != ReasonTruncated {
		return answer{}, own
	}
	ex.Class, ex.Reason, ex.Detail = ClassFailed, ReasonNetwork, err.Error()
	if isTimeout(err) {
		ex.Reason = ReasonTimeout
	}
	return answer{ex: ex}, nil
}

// Current returns what a dependency key answers now, by the store alone. A key that nothing is stored
// for has an answer too, which the next import or request changes. It is false for a key that is not
// one of fetch.
func (c *Client) Current(_ context.Context, key string) ([32]byte, bool, error) {
	key, ok := strings.CutPrefix(key, depPrefix)
	if !ok {
		return [32]byte{}, false, nil
	}
	key, versions := strings.CutPrefix(key, versionsPrefix)
	h, ok, err := c.archive.head(key)
	if err != nil {
		return [32]byte{}, false, err
	}
	if versions {
		return pastSum(h), true, nil
	}
	if !ok || h.answer().Class == "" {
		return absentSum, true, nil
	}
	return h.answer().Sum(), true, nil
}

// Stored yields the canonical addresses of a host and its subdomains, or of all hosts for "", for which an
// ok, gone, blocked or too large exchange is stored, sorted within a domain: pages that are known to be
// there, or to have been.
func (c *Client) Stored(ctx context.Context, host string) iter.Seq2[string, error] {
	return c.archive.stored(ctx, host)
}

// Answer returns the exchange that answers for an address, by the store alone, and whether there is one.
func (c *Client) Answer(url string) (Exchange, bool, error) {
	return c.archive.usable(requestKey("", corpus.CanonicalURL(url), "", "", "", ""))
}

// Exchanges returns every exchange with an address, in order of retrieval.
func (c *Client) Exchanges(url string) ([]Exchange, error) {
	return c.archive.all(corpus.CanonicalURL(url))
}

// Addresses returns an address and every address known to lead to it by redirects, sorted. It grows
// as the corpus does, so nothing that is released may depend on it.
func (c *Client) Addresses(url string) ([]string, error) {
	return c.archive.addressesOf(corpus.CanonicalURL(url))
}

// Stats count what a client did. Waited is the time that requests spent waiting for their hosts.
type Stats struct {
	Requests int `json:"requests"` // sent over the network, robots.txt and repeated attempts included
	Hits     int `json:"hits"`     // answered from the store
	Kept     int `json:"kept"`     // stored answers that stayed because their host could not confirm them

	Conditional int `json:"conditional"`  // of Requests: those that named a stored answer to confirm
	NotModified int `json:"not_modified"` // of Conditional: confirmed by 304

	Paid int     `json:"paid,omitzero"` // of Requests: those that cost money
	USD  float64 `json:"usd,omitzero"`  // their price

	Bytes  int64                `json:"bytes"` // of bodies read from the network, content coding kept
	Waited time.Duration        `json:"waited_ns"`
	ByHost map[string]HostStats `json:"by_host"`

	Outages []Outage `json:"outages,omitempty"` // hosts that were given up, by name
}

// HostStats are the Stats of one host.
type HostStats struct {
	Requests int           `json:"requests"`
	Bytes    int64         `json:"bytes"`
	Waited   time.Duration `json:"waited_ns"`
}

// Stats returns what the client did so far.
func (c *Client) Stats() Stats {
	s := c.stats.snapshot()
	s.Outages = c.limiter.outages()
	return s
}

// counters hold the Stats of a client.
type counters struct {
	mu    sync.Mutex
	total Stats
	hosts map[string]HostStats
}

func (s *counters) add(host string, f func(total *Stats, host *HostStats)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.hosts[host]
	f(&s.total, &h)
	s.hosts[host] = h
}

func (s *counters) request(host string) {
	s.add(host, func(t *Stats, h *HostStats) { t.Requests++; h.Requests++ })
}

func (s *counters) read(host string, n int64) {
	s.add(host, func(t *Stats, h *HostStats) { t.Bytes += n; h.Bytes += n })
}

func (s *counters) waited(host string, d time.Duration) {
	if d > 0 {
		s.add(host, func(t *Stats, h *HostStats) { t.Waited += d; h.Waited += d })
	}
}

func (s *counters) hit() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total.Hits++
}

func (s *counters) paid(usd float64) {
	if usd > 0 {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.total.Paid++
		s.total.USD += usd
	}
}

func (s *counters) kept() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total.Kept++
}

func (s *counters) conditional() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total.Conditional++
}

func (s *counters) notModified() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total.NotModified++
}

func (s *counters) snapshot() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.total
	out.ByHost = make(map[string]HostStats, len(s.hosts))
	for host, h := range s.hosts {
		out.ByHost[host] = h
	}
	return out
}
