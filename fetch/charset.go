package fetch

import (
	"bytes"
	"mime"
	"net/http"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/gogs/chardet"
	"golang.org/x/net/html/charset"
)

// Where the name of a charset came from, in order of precedence.
const (
	fromBOM    = "bom"
	fromHeader = "header"
	fromMeta   = "meta" // a meta element, or the encoding of an XML declaration
	fromGuess  = "guess"
)

// metaWindow is how far into a page a declaration is looked for. Standards say 1,024 bytes; archives
// and tag managers put more than that before the page's own head.
const metaWindow = 16 << 10

// guessWindow is how much of a page the detector reads.
const guessWindow = 256 << 10

// strayBytes is how many sequences of UTF-8 outweigh one byte that belongs to none. In text of a code
// page that is dense above 0x7F there are fewer sequences than such bytes.
const strayBytes = 20

// findCharset says which charset the bytes of a page are in and where that name came from; both are
// empty for what is no text. Precedence is byte order mark, header, meta, guess, but a declaration
// that the bytes refute is passed over: many servers name one charset for every page they hold, and
// many pages were converted after their declaration was written.
func findCharset(contentType string, body []byte) (name, from string) {
	if name, _ := byteOrderMark(body); name != "" {
		return name, fromBOM
	}
	if binary(contentType, body) {
		return "", ""
	}
	if name := wideText(body); name != "" {
		if strings.HasPrefix(strings.ToLower(headerCharset(contentType)), "utf-16") {
			return name, fromHeader
		}
		return name, fromGuess
	}
	var named []declaration
	for _, d := range []declaration{
		{charsetName(headerCharset(contentType)), fromHeader},
		{charsetName(metaCharset(contentType, body)), fromMeta},
	} {
		if d.name != "" {
			named = append(named, d)
		}
	}
	if utf8.Valid(body) {
		d := validAs(named, body)
		return d.name, d.from
	}
	good, bad := countUTF8(body)
	if good >= strayBytes*bad { // read as anything else, the whole page would suffer for a byte
		d := validAs(named, body)
		return d.name, d.from
	}
	for _, d := range named {
		if fits(d.name, body, good, bad) {
			return d.name, d.from
		}
	}
	return guessCharset(body, good, bad), fromGuess
}

// declaration is a charset and the place that named it.
type declaration struct{ name, from string }

// validAs picks the charset of bytes that are valid UTF-8, but for stray ones.
func validAs(named []declaration, body []byte) declaration {
	guess := declaration{"utf-8", fromGuess}
	if len(named) == 0 {
		return guess
	}
	first := named[0]
	if first.name == "utf-8" || first.name == "iso-2022-jp" && bytes.IndexByte(body, '\x1b') >= 0 {
		return first
	}
	// Two pairs of bytes may be UTF-8 by accident in a code page that is dense above 0x7F. In a western
	// one they never are: they would read as "Ã©".
	if n, _ := countUTF8(body); n == 0 || n < 3 && !western(first.name) {
		return first
	}
	if len(named) > 1 && named[1].name == "utf-8" {
		return named[1]
	}
	return guess
}

// decodeText turns the bytes of a page in a charset, as findCharset names it, into UTF-8. The text
// does not start with U+FEFF.
func decodeText(name string, body []byte) string {
	if mark, n := byteOrderMark(body); mark == name {
		body = body[n:]
	}
	return strings.TrimLeft(decodeAs(name, body), "\ufeff") // programs that join files leave several
}

// binary reports whether a body is no text, by its type or, where that says little, by its bytes.
func binary(contentType string, body []byte) bool {
	kind := mediaType(contentType)
	switch major, _, _ := strings.Cut(kind, "/"); {
	case major == "image" && !strings.HasSuffix(kind, "xml"), major == "audio", major == "video", major == "font":
		return true
	case kind == "application/pdf", kind == "application/zip", kind == "application/zstd":
		return true
	case kind == "application/octet-stream", strings.HasSuffix(kind, "gzip"):
		return !strings.HasPrefix(http.DetectContentType(body), "text/")
	}
	return false
}

// western reports code pages whose upper half is mostly accented Latin letters.
func western(name string) bool {
	return name == "windows-1252" || name == "macintosh" || strings.HasPrefix(name, "iso-8859-1")
}

// fits reports whether the bytes of a page, which are not valid UTF-8, can be in a charset. A few
// errors do not speak against it: pages carry stray bytes from elsewhere.
func fits(name string, body []byte, good, bad int) bool {
	if name == "utf-8" {
		return bad <= good || bad*8000 <= len(body)
	}
	foreign, broken := 0, 0
	for _, r := range decodeAs(name, body) {
		switch {
		case r == utf8.RuneError:
			broken++
		case r >= utf8.RuneSelf:
			foreign++
		}
	}
	return broken*5 <= foreign
}

// countUTF8 counts the sequences longer than one byte and the bytes that belong to none.
func countUTF8(b []byte) (good, bad int) {
	for i := 0; i < len(b); {
		if b[i] < utf8.RuneSelf {
			i++
			continue
		}
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 {
			bad++
		} else {
			good++
		}
		i += n
	}
	return good, bad
}

// byteOrderMark returns the charset that a byte order mark names and the length of the mark.
func byteOrderMark(b []byte) (name string, n int) {
	switch {
	case bytes.HasPrefix(b, []byte("\xef\xbb\xbf")):
		return "utf-8", 3
	case bytes.HasPrefix(b, []byte("\xfe\xff")):
		return "utf-16be", 2
	case bytes.HasPrefix(b, []byte("\xff\xfe")):
		return "utf-16le", 2
	}
	return "", 0
}

// wideText recognises UTF-16 without a mark by the zero half of its ASCII characters.
func wideText(b []byte) string {
	b = b[:min(len(b), 1024)&^1]
	if len(b) < 8 {
		return ""
	}
	even, odd := 0, 0
	for i := 0; i < len(b); i += 2 {
		if b[i] == 0 && b[i+1] != 0 {
			even++
		}
		if b[i] != 0 && b[i+1] == 0 {
			odd++
		}
	}
	switch pairs := len(b) / 2; {
	case odd*4 > pairs*3 && even == 0:
		return "utf-16le"
	case even*4 > pairs*3 && odd == 0:
		return "utf-16be"
	}
	return ""
}

// headerCharset returns the charset parameter of a Content-Type, however badly the rest is written.
func headerCharset(contentType string) string {
	if _, p, err := mime.ParseMediaType(contentType); err == nil {
		return p["charset"]
	}
	if m := charsetParam.FindStringSubmatch(contentType); m != nil {
		return m[1]
	}
	return ""
}

var (
	charsetParam = regexp.MustCompile(`(?i)charset\s*=\s*["']?\s*([a-z0-9_:.-]+)`)
	xmlEncoding  = regexp.MustCompile(`^\s*<\?xml[^>]*?\sencoding\s*=\s*["']([A-Za-z0-9_:.-]+)`)
)

// metaCharset returns the charset that a page names in its own bytes. Only meta elements count:
// scripts that an archive puts before the page have a charset attribute too.
func metaCharset(contentType string, body []byte) string {
	if kind := mediaType(contentType); strings.HasSuffix(kind, "json") {
		return ""
	}
	head := body[:min(len(body), metaWindow)]
	if m := xmlEncoding.FindSubmatch(head); m != nil {
		return string(m[1])
	}
	for {
		i := bytes.IndexByte(head, '<')
		if i < 0 {
			return ""
		}
		head = head[i:]
		switch {
		case bytes.HasPrefix(head, []byte("<!--")):
			head = after(head, "-->")
		case startsTag(head, "script"):
			head = after(head, "</script")
		case startsTag(head, "meta"):
			tag, _, _ := bytes.Cut(head, []byte(">"))
			if m := charsetParam.FindSubmatch(tag); m != nil {
				return string(m[1])
			}
			head = head[len("<meta"):]
		default:
			head = head[1:]
		}
	}
}

// startsTag reports whether b starts with the tag <name, in any case.
func startsTag(b []byte, name string) bool {
	if len(b) < len(name)+2 || !bytes.EqualFold(b[1:1+len(name)], []byte(name)) {
		return false
	}
	switch b[1+len(name)] {
	case ' ', '\t', '\n', '\r', '\f', '/', '>':
		return true
	}
	return false
}

// after returns what follows the first mark, which is in lower case, in any case; nil if there is none.
func after(b []byte, mark string) []byte {
	for i := 0; ; i++ {
		j := bytes.IndexByte(b[i:], mark[0])
		if j < 0 || i+j+len(mark) > len(b) {
			return nil
		}
		if i += j; bytes.EqualFold(b[i:i+len(mark)], []byte(mark)) {
			return b[i+len(mark):]
		}
	}
}

// charsetName returns the standard name of a charset label, "" for an unknown one and for those that
// the encoding standard decodes to nothing.
func charsetName(label string) string {
	switch _, name := charset.Lookup(label); name {
	case "replacement", "x-user-defined":
		return ""
	case "utf-16be", "utf-16le":
		// A declaration that could be read was not written in UTF-16; wideText finds pages that are.
		return "utf-8"
	default:
		return name
	}
}

// guessCharset names the charset of undeclared bytes that are not valid UTF-8.
func guessCharset(body []byte, good, bad int) string {
	if bad <= good {
		return "utf-8"
	}
	// The detector works on frequencies, and a handful of bytes has none.
	if good+bad >= 8 {
		results, err := chardet.NewHtmlDetector().DetectAll(body[:min(len(body), guessWindow)])
		best, name := 0, ""
		for _, r := range results {
			n := charsetName(r.Charset)
			// The detector runs its recognisers at once, so that equals come in any order.
			if n == "" || r.Confidence < best || r.Confidence == best && n > name {
				continue
			}
			best, name = r.Confidence, n
		}
		if err == nil && best >= 10 && name != "utf-8" && fits(name, body, good, bad) {
			return name
		}
	}
	return "windows-1252"
}

// decodeAs decodes bytes in a charset by its standard name; what does not decode becomes U+FFFD.
func decodeAs(name string, body []byte) string {
	switch name {
	case "utf-8", "":
		if text := string(body); utf8.ValidString(text) { // much faster than the search for what is not
			return text
		}
		return strings.ToValidUTF8(string(body), "\ufffd")
	case "gbk":
		name = "gb18030" // a superset: pages labelled gb2312 use it without saying so
	}
	enc, _ := charset.Lookup(name)
	if enc == nil {
		return strings.ToValidUTF8(string(body), "\ufffd") // unreachable: names come from charsetName
	}
	out, err := enc.NewDecoder().Bytes(body)
	if err != nil {
		return strings.ToValidUTF8(string(body), "\ufffd") // unreachable: decoders replace, they do not fail
	}
	return string(out)
}

// mediaType returns the type of a Content-Type in lower case, without parameters.
func mediaType(contentType string) string {
	kind, _, _ := strings.Cut(contentType, ";")
	return strings.ToLower(strings.TrimSpace(kind))
}
