package fetch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// A Credential is a secret that is sent to some hosts, in a header or in the query. It is added after
// everything that is stored or logged was taken from the request: keys and records know its name only.
// It is never sent over plain http, except to hosts of AllowPrivate and Resolve.
type Credential struct {
	Name   string
	Hosts  []string // exact hosts, or *.domain for all below it
	Header string   // e.g. Authorization; empty for a credential in the query
	Prefix string   // before the secret in the header, e.g. "Bearer "
	Query  string   // parameter name; empty for a credential in a header
	Secret string   // at least 8 bytes: shorter ones could not be told from ordinary text
}

// shortestSecret is the shortest secret that can be masked in a body without damaging it.
const shortestSecret = 8

// check reports what is wrong with a credential, without its secret.
func (c Credential) check() error {
	switch {
	case c.Name == "":
		return errors.New("a credential has no name")
	case len(c.Hosts) == 0:
		return fmt.Errorf("credential %s names no host", c.Name)
	case (c.Header == "") == (c.Query == ""):
		return fmt.Errorf("credential %s needs a header or a query parameter, one of them", c.Name)
	case len(c.Secret) < shortestSecret:
		return fmt.Errorf("the secret of credential %s is shorter than %d bytes", c.Name, shortestSecret)
	}
	return nil
}

// fits reports whether the credential is for a host.
func (c Credential) fits(host string) bool {
	return slices.ContainsFunc(c.Hosts, func(rule string) bool {
		if domain, ok := strings.CutPrefix(rule, "*."); ok {
			return strings.HasSuffix(host, "."+strings.ToLower(domain))
		}
		return strings.EqualFold(rule, host)
	})
}

// credentials adds secrets to requests and removes them from responses.
type credentials struct {
	list  []Credential
	guard *guard
	limit int64 // decompressed bytes
	next  http.RoundTripper
}

// An attemptNote collects what the inner links of the chain know about one attempt.
type attemptNote struct {
	credential string
	secret     *Credential // of an interface's caller, to be sent
	masked     bool
	dialled    string
	hangUp     func() // ends the attempt
}

type noteKey struct{}

func noteOf(ctx context.Context) *attemptNote {
	if n, ok := ctx.Value(noteKey{}).(*attemptNote); ok {
		return n
	}
	return &attemptNote{}
}

// find returns the credential for a request, if there is one that may be sent.
func (s *credentials) find(u *url.URL) (Credential, bool) {
	host := strings.ToLower(u.Hostname())
	if u.Scheme != "https" && !s.guard.listed(host, hostPort(u.Scheme+"://"+strings.ToLower(u.Host)+"/")) {
		return Credential{}, false
	}
	i := slices.IndexFunc(s.list, func(c Credential) bool { return c.fits(host) })
	if i < 0 {
		return Credential{}, false
	}
	return s.list[i], true
}

// RoundTrip adds the credential of the host and masks it in what comes back.
func (s *credentials) RoundTrip(req *http.Request) (*http.Response, error) {
	note := noteOf(req.Context())
	cred, ok := s.find(req.URL)
	if note.secret != nil { // apiCall has seen to it that it may be sent there
		cred, ok = *note.secret, true
	}
	if !ok {
		return s.next.RoundTrip(req)
	}
	note.credential = cred.Name
	req = req.Clone(req.Context())
	if cred.Header != "" {
		req.Header.Set(cred.Header, cred.Prefix+cred.Secret)
	} else {
		req.URL.RawQuery = setParameter(req.URL.RawQuery, cred.Query, cred.Secret)
	}
	// Only what we can read can be searched for the secret.
	req.Header.Set("Accept-Encoding", "identity")
	resp, err := s.next.RoundTrip(req)
	m := masker{cred.spellings(), note}
	if err != nil {
		return nil, m.error(err)
	}
	return s.masked(resp, req.URL, m)
}

// masked makes a response that holds no secret.
func (s *credentials) masked(resp *http.Response, u *url.URL, m masker) (*http.Response, error) {
	for name, values := range resp.Header {
		for i, v := range values {
			resp.Header[name][i] = string(m.mask([]byte(v)))
		}
	}
	if len(contentCodings(resp.Header)) == 0 {
		resp.Body = &maskedBody{masker: m, body: resp.Body}
		return resp, nil
	}
	decoded, err := decodeContent(resp.Header, u.Scheme+"://"+u.Host+u.EscapedPath(), resp.Body, s.limit)
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		return nil, m.error(err)
	}
	resp.Header.Del("Content-Encoding")
	resp.Header.Del("Content-Length")
	resp.ContentLength = int64(len(decoded))
	resp.Body = io.NopCloser(bytes.NewReader(m.mask(decoded)))
	return resp, nil
}

// setParameter sets a parameter of a query as it is written, leaving the others untouched.
func setParameter(query, name, value string) string {
	var kept []string
	for p := range strings.SplitSeq(query, "&") {
		key, _, _ := strings.Cut(p, "=")
		if plain, err := url.QueryUnescape(key); p == "" || err == nil && plain == name {
			continue
		}
		kept = append(kept, p)
	}
	return strings.Join(append(kept, url.QueryEscape(name)+"="+url.QueryEscape(value)), "&")
}

// spellings are the forms in which a secret may come back, longest first.
func (c Credential) spellings() [][]byte {
	var out [][]byte
	for _, s := range []string{c.Secret, url.QueryEscape(c.Secret), url.PathEscape(c.Secret)} {
		if !slices.ContainsFunc(out, func(b []byte) bool { return string(b) == s }) {
			out = append(out, []byte(s))
		}
	}
	slices.SortFunc(out, func(a, b []byte) int { return len(b) - len(a) })
	return out
}

// A masker overwrites a secret with as many asterisks and notes that it did.
type masker struct {
	secrets [][]byte
	note    *attemptNote
}

func (m masker) mask(b []byte) []byte {
	for _, secret := range m.secrets {
		for at := 0; ; {
			i := bytes.Index(b[at:], secret)
			if i < 0 {
				break
			}
			at += i
			for j := range secret {
				b[at+j] = '*'
			}
			m.note.masked = true
		}
	}
	return b
}

// error takes the secret out of an error's text, which may hold the address that was requested. An
// error that does not hold it stays what it is.
func (m masker) error(err error) error {
	text := []byte(err.Error())
	if clean := string(m.mask(bytes.Clone(text))); clean != string(text) {
		return errors.New(clean)
	}
	return err
}

// A maskedBody masks a body as it is read. The last bytes are held back until it is known that no
// secret begins in them.
type maskedBody struct {
	masker masker
	body   io.ReadCloser
	buf    []byte
	ready  int // bytes of buf that are masked and may be given out
	err    error
}

func (r *maskedBody) Read(p []byte) (int, error) {
	for r.ready == 0 {
		if r.err != nil {
			return 0, r.err
		}
		chunk := make([]byte, 32<<10)
		n, err := r.body.Read(chunk)
		r.buf = r.masker.mask(append(r.buf, chunk[:n]...))
		r.err = err
		if r.ready = len(r.buf) - len(r.masker.secrets[0]) + 1; err != nil {
			r.ready = len(r.buf)
		}
		r.ready = max(r.ready, 0)
	}
	n := copy(p, r.buf[:r.ready])
	r.buf, r.ready = r.buf[n:], r.ready-n
	return n, nil
}

func (r *maskedBody) Close() error { return r.body.Close() }
