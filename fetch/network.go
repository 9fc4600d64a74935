package fetch

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"time"
)

// acceptEncoding is what decodeContent can undo. We ask for it ourselves, so that the body reaches the
// store as the host sent it.
const acceptEncoding = "gzip, br, zstd"

// feedPatience is how many times longer a feed may take than a page.
const feedPatience = 20

// A recorder sends one attempt over the network and stores what came of it, before anything looks at
// it. It is where the chain of senders meets net/http.
type recorder struct {
	client  *Client
	archive *archive
	next    http.RoundTripper
}

func (r *recorder) send(ctx context.Context, c *call) (answer, error) {
	ctx, end := onItsWay(ctx, c.api != nil && c.api.Charge != nil)
	defer end()
	timeout := r.client.limits.Timeout
	if c.large {
		timeout *= feedPatience
	}
	note := &attemptNote{secret: c.secret()}
	attempt, cancel := context.WithTimeout(context.WithValue(ctx, noteKey{}, note), timeout)
	defer cancel()
	note.hangUp = cancel
	attempt = httptrace.WithClientTrace(attempt, &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) {
		note.dialled = i.Conn.RemoteAddr().String()
	}})
	req, err := r.request(attempt, c)
	if err != nil {
		return answer{}, err
	}
	ex := Exchange{Method: c.method, URL: c.url, RequestHeader: flat(req.Header), At: r.client.now(), Attempt: c.attempt, Waited: c.waited, Source: SourceNetwork}
	if len(c.body) > 0 {
		ex.RequestBody = bodySum(c.body)
		if err := r.archive.keepRequest(ex.RequestBody, c.body); err != nil {
			return answer{}, err
		}
	}
	r.client.stats.request(hostOf(c.url))
	if req.Header.Get("If-None-Match") != "" || req.Header.Get("If-Modified-Since") != "" {
		r.client.stats.conditional()
	}
	resp, err := r.next.RoundTrip(req)
	c.answered = r.client.now()
	ex.Credential, ex.Dialled = note.credential, note.dialled
	if note.dialled != "" {
		c.sent = ex.At
		c.priced(&ex)
	}
	if err != nil {
		return r.broken(ctx, c, ex, err)
	}
	defer resp.Body.Close()
	ex.At = c.answered
	ex.Proto, ex.Status, ex.Header = resp.Proto, resp.StatusCode, resp.Header
	if resp.StatusCode == http.StatusNotModified {
		return r.confirmed(ctx, c, ex)
	}
	return r.read(ctx, c, ex, resp, note)
}

// request makes the net/http request of a call.
func (r *recorder) request(ctx context.Context, c *call) (*http.Request, error) {
	u, err := requestURL(c.url)
	if err != nil {
		return nil, err
	}
	req := (&http.Request{Method: c.method, URL: u, Host: u.Host, Header: c.header.Clone(), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}).WithContext(ctx)
	if len(c.body) > 0 {
		req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(c.body)), int64(len(c.body))
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(c.body)), nil }
	}
	req.Header.Set("User-Agent", cmp.Or(c.userAgent, r.client.userAgent))
	req.Header.Set("Accept-Encoding", acceptEncoding)
	if c.robots {
		req.Header.Set("Accept-Encoding", "identity") // so that a long one can be cut
	}
	if p := c.prior; p != nil {
		if tag := p.Header.Get("Etag"); tag != "" {
			req.Header.Set("If-None-Match", tag)
		}
		if at := p.Header.Get("Last-Modified"); at != "" {
			req.Header.Set("If-Modified-Since", at)
		}
	}
	return req, nil
}

// requestURL turns a canonical address into what net/http sends, byte for byte: a browser leaves
// characters alone that net/url would escape, and sends escapes that net/url refuses.
func requestURL(canonical string) (*url.URL, error) {
	origin, target := splitOrigin(canonical)
	if u, err := url.Parse(canonical); err == nil && u.RequestURI() == target {
		return u, nil
	}
	u, err := url.Parse(origin)
	if err != nil || strings.HasPrefix(target, "//") {
		return nil, &Error{URL: canonical, Reason: ReasonBadURL, Detail: "it cannot be written as a request"}
	}
	u.Opaque, u.RawQuery, u.ForceQuery = target, "", false
	if path, query, ok := strings.Cut(target, "?"); ok {
		u.Opaque, u.RawQuery, u.ForceQuery = path, query, query == ""
	}
	return u, nil
}

// broken stores an attempt that brought no HTTP answer.
func (r *recorder) broken(ctx context.Context, c *call, ex Exchange, err error) (answer, error) {
	if ctx.Err() != nil {
		return answer{}, ctx.Err() // we hung up; that says nothing about the host
	}
	ex.Class, ex.Reason, ex.Detail = ClassFailed, ReasonNetwork, err.Error()
	final := false
	var refused *Error
	var dns *net.DNSError
	var cert *tls.CertificateVerificationError
	var unknown x509.UnknownAuthorityError
	switch {
	case errors.As(err, &refused):
		ex.Class, ex.Reason, ex.Detail, final = ClassBlocked, refused.Reason, refused.Detail, true
	case isTimeout(err):
		ex.Reason = ReasonTimeout
	case errors.As(err, &dns) && dns.IsNotFound:
		ex.Reason, final = ReasonNoHost, true
	case errors.As(err, &cert), errors.As(err, &unknown):
		final = true
	}
	ex, err = r.archive.record(ctx, ex, nil)
	return answer{ex: ex, final: final}, err
}

// confirmed stores a 304: the body is the one that is stored already.
func (r *recorder) confirmed(ctx context.Context, c *call, ex Exchange) (answer, error) {
	p := c.prior
	if p == nil {
		ex.Class, ex.Reason, ex.Detail = ClassFailed, ReasonStatus, "304 to a request that was not conditional"
		ex, err := r.archive.record(ctx, ex, nil)
		return answer{ex: ex, final: true}, err
	}
	r.client.stats.notModified()
	ex.Header = withValidators(p.Header, ex.Header)
	ex.Class, ex.SameAs, ex.Body, ex.Length, ex.Encoding = p.Class, p.ID(), p.Body, p.Length, p.Encoding
	ex, err := r.archive.record(ctx, ex, nil)
	return answer{ex: ex}, err
}

// read takes the body of a response within the limits, classifies it and stores it.
func (r *recorder) read(ctx context.Context, c *call, ex Exchange, resp *http.Response, note *attemptNote) (answer, error) {
	limit, decodedLimit := r.client.limitsOf(c.large)
	if c.robots {
		limit, decodedLimit = robotsBytes, robotsBytes
	}
	began := time.Now() // as time-outs, by the clock of the machine
	body := pace(resp.Body, r.client.limits.Timeout, note.hangUp)
	defer body.end.Stop()
	sp, err := readSpoolOf(body, limit, resp.ContentLength)
	if err != nil {
		return answer{}, fmt.Errorf("hold the body of %s: %w", c.url, err)
	}
	defer sp.close()
	if sp.cut != nil && ctx.Err() != nil {
		return answer{}, ctx.Err() // we hung up; a whole body is kept all the same
	}
	sp.rewrite = c.again
	ex.Masked = note.masked
	r.client.stats.read(hostOf(c.url), sp.size)
	var decoded []byte
	final := false
	switch {
	case sp.cut != nil:
		ex.Class, ex.Reason, ex.Detail, ex.Truncated = ClassFailed, ReasonTruncated, sp.cut.Error(), true
		if isTimeout(sp.cut) || body.slow.Load() {
			ex.Reason, final = ReasonTooSlow, true
			ex.Detail = fmt.Sprintf("%d bytes of the body came in %s", sp.size, time.Since(began).Round(time.Second))
		}
	case sp.over && !c.robots:
		ex.Class, ex.Reason, ex.Truncated = ClassFailed, ReasonTooLarge, true
		ex.Detail, final = fmt.Sprintf("more than %d bytes", limit), true
	default:
		if sp.over { // the rest of a robots.txt does not count
			sp.truncate(limit)
			ex.Truncated = true
		}
		if decoded, final, err = r.judge(c, &ex, sp, decodedLimit); err != nil {
			return answer{}, err
		}
	}
	if sp.cut != nil || ex.Reason == ReasonTooLarge {
		ex, err = r.archive.record(ctx, ex, nil) // a part of a body is no body
	} else {
		ex, err = r.archive.append(ctx, ex, sp)
	}
	return answer{ex: ex, decoded: decoded, final: final}, err
}

// judge decodes a whole body and fills in the class of its exchange.
func (r *recorder) judge(c *call, ex *Exchange, sp *spool, limit int64) (decoded []byte, final bool, err error) {
	streamed := false
	whole, err := sp.reader()
	if err != nil {
		return nil, false, fmt.Errorf("hold the body of %s: %w", c.url, err)
	}
	if sp.file == nil && sp.size <= limit && uncoded(ex.Header, c.url) {
		decoded = sp.head
	} else if c.stream {
		decoded, err = judgedHead(ex.Header, c.url, whole, limit)
		streamed = true
	} else {
		decoded, err = decodeContent(ex.Header, c.url, whole, limit)
	}
	var failed *Error
	switch {
	case errors.As(err, &failed):
		ex.Class, ex.Reason, ex.Detail = ClassFailed, failed.Reason, failed.Detail
		return nil, true, nil
	case err != nil:
		return nil, false, err
	case redirectOf(*ex) != "", c.robots && ex.Status/100 == 2:
		ex.Class = ClassOK // the text of a robots.txt is no page that could be a wall
	default:
		ex.Class, ex.Reason = classify(ex.Status, ex.Header, decoded)
	}
	c.judged(ex, decoded)
	switch {
	case streamed:
		return nil, false, nil // a part of it
	case decoded == nil:
		decoded = []byte{}
	}
	return decoded, false, nil
}

// judgedBytes is how much of a streamed body its class is told by.
const judgedBytes = 64 << 10

// judgedHead reads a body through without holding it, so that one which is cut or too large is known for
// what it is before it is stored, and returns its start.
func judgedHead(header http.Header, url string, body io.Reader, limit int64) ([]byte, error) {
	r, err := openContent(header, url, body, limit)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	head, err := io.ReadAll(io.LimitReader(r, judgedBytes))
	if err == nil {
		_, err = io.Copy(io.Discard, r)
	}
	return head, err
}

// uncoded reports whether a body is its content as it stands, so that it need not be copied.
func uncoded(header http.Header, url string) bool {
	return len(contentCodings(header)) == 0 && !gzipFile(header, url)
}

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &t) && t.Timeout()
}

// flat joins the values of request headers.
func flat(h http.Header) map[string]string {
	out := map[string]string{}
	for name, values := range h {
		out[name] = strings.Join(values, ", ")
	}
	return out
}

func bodySum(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

// newTransport makes the connection pool of a client. The proxies of the environment are not used: a
// proxy resolves names itself, where no guard looks.
func newTransport(g *guard, o Options) *http.Transport {
	return &http.Transport{
		DialContext:            g.dialContext,
		DisableCompression:     true,
		ForceAttemptHTTP2:      true,
		MaxIdleConns:           256,
		MaxIdleConnsPerHost:    max(o.PerHost, 64), // of those that Call.AtOnce lets more in
		IdleConnTimeout:        90 * time.Second,
		TLSHandshakeTimeout:    10 * time.Second,
		ResponseHeaderTimeout:  o.Limits.Timeout,
		ExpectContinueTimeout:  time.Second,
		MaxResponseHeaderBytes: 256 << 10,
		TLSClientConfig:        &tls.Config{RootCAs: o.Roots, MinVersion: tls.VersionTLS12},
	}
}
