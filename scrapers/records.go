package scrapers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"assay/corpus"
	"assay/fetch"
)

// Some institutions answer with records instead of pages. A reply of such an interface is listing and
// item in one: Discover leads to the reply itself and to the next one, Read makes a document of each of
// its records. What a record says in fields is told in sentences, so that it reads like any document.

// maxReply bounds a reply that is read as a listing, in bytes. The client bounds it too, by the recipe.
const maxReply = 32 << 20

// A reply is what an interface answered.
type reply struct {
	address string // canonical, after redirects
	status  int
	header  http.Header
	body    []byte
}

// ask gets one reply. A status that is none of 2xx is a *StatusError, with the reply beside it: some
// interfaces say in it that nothing was found.
func ask(ctx context.Context, f Fetcher, address string) (reply, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return reply{}, fmt.Errorf("discover %s: %w", address, err)
	}
	resp, err := f.HTTP().Do(req)
	if err != nil {
		return reply{}, fmt.Errorf("discover %s: %w", address, err)
	}
	r := reply{address: corpus.CanonicalURL(address), status: resp.StatusCode, header: resp.Header}
	if resp.Request != nil && resp.Request.URL != nil {
		r.address = corpus.CanonicalURL(resp.Request.URL.String())
	}
	r.body, err = io.ReadAll(io.LimitReader(resp.Body, maxReply))
	if err = errors.Join(err, resp.Body.Close()); err != nil {
		return r, fmt.Errorf("discover %s: %w", address, err)
	}
	if r.status < 200 || r.status > 299 {
		return r, &StatusError{URL: r.address, Status: r.status}
	}
	return r, nil
}

// discoverReplies is the Discover of an interface: count says how many records a reply holds and where
// the next one is. A reply without records leads nowhere.
func discoverReplies(source string, count func(r reply) (records int, next string, err error)) func(context.Context, Fetcher, string) (Listing, error) {
	return func(ctx context.Context, f Fetcher, address string) (Listing, error) {
		r, err := ask(ctx, f, address)
		if err != nil {
			return Listing{}, err
		}
		n, next, err := count(r)
		if err != nil {
			return Listing{}, err
		}
		out := Listing{Refs: []corpus.Ref{}, Next: next}
		if n > 0 {
			out.Refs = append(out.Refs, corpus.Ref{Source: source, URL: r.address})
		}
		return out, nil
	}
}

// decodeReply reads a JSON reply. The error names the address and what stood there instead.
func decodeReply(doing, address string, body []byte, into any) error {
	body = bytes.TrimPrefix(body, []byte("\xef\xbb\xbf"))
	if err := json.Unmarshal(body, into); err != nil {
		has := corpus.Space(strings.ToValidUTF8(string(body[:min(len(body), 80)]), "?"))
		if has == "" {
			has = "nothing"
		}
		return &MarkupError{Doing: doing, URL: address, Want: "the reader of JSON (" + err.Error() + ")", Has: "the beginning " + fmt.Sprintf("%q", has)}
	}
	return nil
}

// noRecords says that a reply is of another kind than the one that is read.
func noRecords(doing, address, want string, body []byte) error {
	return &MarkupError{Doing: doing, URL: address, Want: want, Has: fmt.Sprintf("the beginning %q", corpus.Space(strings.ToValidUTF8(string(body[:min(len(body), 80)]), "?")))}
}

// record starts the document of one record: its address is the record's own, never that of the reply
// which happened to hold it.
func record(p *fetch.Page, address, title string, paragraphs ...string) corpus.Document {
	var text []string
	for _, s := range paragraphs {
		if s = strings.TrimSpace(s); s != "" {
			text = append(text, s)
		}
	}
	d := corpus.Document{
		ID: corpus.DocumentID(address), Kind: corpus.KindRecord, URL: corpus.CanonicalURL(address), Source: corpus.SourceName(address),
		Title: corpus.Space(title), Text: strings.Join(text, "\n\n"), RetrievedAt: p.Retrieved.UTC().Format(time.RFC3339),
		BodyStatus: corpus.BodyFull,
	}
	if d.Text == "" {
		d.BodyStatus = corpus.BodyMissing
	}
	return d
}

// sentence fills a sentence in; it is "" where one of its values is missing, so that nothing is said
// about what a record does not tell.
func sentence(format string, values ...string) string {
	args := make([]any, len(values))
	for i, v := range values {
		if v = corpus.Space(v); v == "" {
			return ""
		}
		args[i] = v
	}
	if n := len(values) - 1; strings.HasSuffix(format, "%s.") && n >= 0 {
		args[n] = strings.TrimSuffix(fmt.Sprint(args[n]), ".")
	}
	s := fmt.Sprintf(format, args...)
	if last := s[len(s)-1]; last == '.' || last == '!' || last == '?' {
		return s
	}
	return s + "."
}

// joined joins what there is with blanks.
func joined(sentences ...string) string {
	return strings.Join(distinct(sentences), " ")
}

// spokenDay writes a printed date as English sentences do, "" for what is none.
func spokenDay(printed string) string {
	d, err := corpus.ReadDate(printed)
	if err != nil {
		return ""
	}
	return spoken(d.Day)
}

func spoken(day string) string {
	t, err := time.Parse(time.DateOnly, day)
	if err != nil {
		return ""
	}
	return t.Format("January 2, 2006")
}

// unwrapped undoes hard line breaks: lines of one paragraph are joined, empty lines part paragraphs.
func unwrapped(s string) string {
	var out []string
	for _, block := range strings.Split(strings.ReplaceAll(s, "\r\n", "\n"), "\n\n") {
		if block = corpus.Space(block); block != "" {
			out = append(out, block)
		}
	}
	return strings.Join(out, "\n\n")
}

// mirrored replaces the origin of an address by a mirror's.
func mirrored(base, origin, rest string) string {
	if base == "" {
		base = origin
	}
	return corpus.CanonicalURL(strings.TrimRight(base, "/") + rest)
}

// pathOf returns path and query of an address at one of the origins, or below base.
func pathOf(base, address string, origins ...string) (path string, query url.Values, ok bool) {
	if !ofOrigin(address, base) && !ofOrigin(address, origins...) {
		return "", nil, false
	}
	u, err := url.Parse(corpus.CanonicalURL(address))
	if err != nil {
		return "", nil, false
	}
	return u.Path, u.Query(), true
}
