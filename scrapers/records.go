package scrapers

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"

	"assay/corpus"
	"assay/fetch"
)

// Some institutions answer with records instead of pages. A reply of such an interface is listing and
// item in one: Discover leads to the reply itself and to the next one, Read makes a document of each of
// its records. What a record says in fields is told in sentences, so that it reads like any document.

// discoverReplies is the Discover of an interface: count says how many records a reply holds and where
// the next one is. A reply without records leads nowhere.
func discoverReplies(source string, count func(r response) (records int, next string, err error)) func(context.Context, Fetcher, string) (Listing, error) {
	return func(ctx context.Context, f Fetcher, address string) (Listing, error) {
		r, err := listingResponse(ctx, f, address)
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
