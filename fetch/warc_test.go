package fetch

import (
	"bytes"
	"context"
	"crypto/sha1"
	"encoding/base32"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"assay/kv"
)

const captured = "2026-02-03T10:00:00Z"

// warc writes one record; fields are lines of its header beside type and length.
func warc(kind string, fields []string, block string) string {
	head := "WARC/1.1\r\nWARC-Type: " + kind + "\r\n"
	for _, f := range fields {
		head += f + "\r\n"
	}
	return fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s\r\n\r\n", head, len(block), block)
}

// at is the header of a record about an address.
func at(url string, more ...string) []string {
	return append([]string{"WARC-Target-URI: " + url, "WARC-Date: " + captured, "Content-Type: application/http"}, more...)
}

// answer is a response record with a small page.
func answerTo(url, text string, more ...string) string {
	return warc("response", at(url, more...), httpAnswer("200 OK", "Content-Type: text/html", "<title>Page</title><p>"+text))
}

func httpAnswer(status, headers, body string) string {
	return "HTTP/1.1 " + status + "\r\n" + strings.ReplaceAll(headers, "\n", "\r\n") + "\r\n\r\n" + body
}

func gz(t testing.TB, records ...string) string {
	t.Helper()
	var b strings.Builder
	for _, r := range records {
		b.Write(encode(t, "gzip", []byte(r)))
	}
	return b.String()
}

func digestOf(payload string) string {
	sum := sha1.Sum([]byte(payload))
	return "sha1:" + base32.StdEncoding.EncodeToString(sum[:])
}

// stored lists what a replay client gets for addresses: the page's text, or the error.
func stored(t testing.TB, s *kv.Store, urls ...string) []string {
	t.Helper()
	c, err := New(Options{Store: s, Mode: Replay, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var out []string
	for _, url := range urls {
		p, err := c.Get(t.Context(), Request{URL: url})
		if e := (*Error)(nil); errors.As(err, &e) {
			out = append(out, "error "+e.Reason)
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		out = append(out, strings.TrimPrefix(p.Text(), "<title>Page</title><p>"))
	}
	return out
}

func TestImportWARC(t *testing.T) {
	chunked := "Content-Type: text/html\nTransfer-Encoding: chunked"
	page := "<title>Page</title><p>"
	ask := func(line, more string, fields ...string) string {
		return warc("request", append([]string{"WARC-Target-URI: http://a.example/1", "WARC-Date: " + captured}, fields...), line+" HTTP/1.1\r\nHost: a.example\r\n"+more+"\r\n")
	}
	for _, c := range []struct {
		name string
		file string
		want ImportReport
		get  []string // of http://a.example/1, /2, ...
	}{
		{"plain", answerTo("http://a.example/1", "one") + answerTo("http://a.example/2", "two"), ImportReport{Records: 2, Stored: 2}, []string{"one", "two"}},
		{"a member a record", gz(t, answerTo("http://a.example/1", "one"), answerTo("http://a.example/2", "two")), ImportReport{Records: 2, Stored: 2}, []string{"one", "two"}},
		{"one member for all", gz(t, answerTo("http://a.example/1", "one")+answerTo("http://a.example/2", "two")), ImportReport{Records: 2, Stored: 2}, []string{"one", "two"}},
		{"members that split records", gz(t, answerTo("http://a.example/1", "one")[:100], answerTo("http://a.example/1", "one")[100:]+answerTo("http://a.example/2", "two")), ImportReport{Records: 2, Stored: 2}, []string{"one", "two"}},
		{"addresses in angle brackets", answerTo("<http://a.example/1>", "one"), ImportReport{Records: 1, Stored: 1}, []string{"one"}},
		{"bare line feeds", strings.ReplaceAll(warc("response", at("http://a.example/1"), "HTTP/1.0 200 OK\nContent-Type: text/html\n\n"+page+"one"), "\r\n", "\n"), ImportReport{Records: 1, Stored: 1}, []string{"one"}},
		{"an old version", strings.Replace(answerTo("http://a.example/1", "one"), "WARC/1.1", "WARC/0.17", 1), ImportReport{Records: 1, Stored: 1}, []string{"one"}},
		{"folded header lines", warc("response", append(at("http://a.example/1"), "X-Note: a", "\tb"), httpAnswer("200 OK", "Content-Type:\n text/html", page+"one")), ImportReport{Records: 1, Stored: 1}, []string{"one"}},
		{"header lines that are none", warc("response", append(at("http://a.example/1"), "no header"), httpAnswer("200", "broken line\nContent-Type: text/html\nX y: z", page+"one")), ImportReport{Records: 1, Stored: 1}, []string{"one"}},
		{"digest of a kind that is not known", answerTo("http://a.example/1", "one", "WARC-Payload-Digest: blake3:00", "WARC-Block-Digest: x"), ImportReport{Records: 1, Stored: 1}, []string{"one"}},
		{"other records", warc("warcinfo", nil, "software: x\r\n") + answerTo("http://a.example/1", "one") + warc("metadata", at("http://a.example/1"), "fetchTimeMs: 5\r\n") + warc("conversion", at("http://a.example/1"), "text") + warc("strange", nil, "x"),
			ImportReport{Records: 5, Stored: 1, Skipped: map[string]int{"conversion": 1}}, []string{"one"}},
		{"not of the web", warc("response", []string{"WARC-Target-URI: dns:a.example", "WARC-Date: " + captured, "Content-Type: text/dns"}, "a.example. 60 IN A 192.0.2.1\n") + answerTo("urn:x:1", "one") + warc("resource", []string{"WARC-Target-URI: metadata://gnu.org/log", "WARC-Date: " + captured}, "x"),
			ImportReport{Records: 3, Skipped: map[string]int{"bad_scheme": 3}}, nil},
		{"addresses that are none", answerTo("http://", "one") + answerTo("http:// 1", "one") + answerTo("", "one") + answerTo("http://me:secret@a.example/1", "one"), ImportReport{Records: 4, Skipped: map[string]int{"bad_url": 4}, Notes: []string{
			"response at 0: bad_url: http://", "response at 217: bad_url: http:// 1", "response at 436: bad_url: no address", "response at 646: bad_url: http://a.example"}}, []string{"error not_stored"}},
		{"resource", warc("resource", []string{"WARC-Target-URI: http://a.example/1", "WARC-Date: " + captured, "Content-Type: text/html"}, page+"one"), ImportReport{Records: 1, Stored: 1}, []string{"one"}},
		{"response without HTTP", warc("response", at("http://a.example/1"), "<p>one") + warc("response", at("http://a.example/1"), "") + warc("response", at("http://a.example/1"), "HTTP/1.1 abc\r\n\r\n") + answerTo("http://a.example/2", "two"),
			ImportReport{Records: 4, Stored: 1, Skipped: map[string]int{"no_http_head": 3}, Notes: []string{
				"response at 0: no_http_head: http://a.example/1", "response at 164: no_http_head: http://a.example/1", "response at 322: no_http_head: http://a.example/1"}}, []string{"error not_stored", "two"}},
		{"no date at all", warc("response", []string{"WARC-Target-URI: http://a.example/1"}, httpAnswer("200 OK", "Content-Type: text/html", page+"one")), ImportReport{Records: 1, Skipped: map[string]int{"no_date": 1}, Notes: []string{"response at 0: no_date: http://a.example/1"}}, []string{"error not_stored"}},
		{"date of the server", warc("response", []string{"WARC-Target-URI: http://a.example/1", "WARC-Date: yesterday"}, httpAnswer("200 OK", "Content-Type: text/html\nDate: Tue, 03 Feb 2026 10:00:00 GMT", page+"one")), ImportReport{Records: 1, Stored: 1}, []string{"one"}},
		{"date that has not come yet", warc("response", []string{"WARC-Target-URI: http://a.example/1", "WARC-Date: 2199-01-01T00:00:00Z"}, httpAnswer("200 OK", "Content-Type: text/html\nDate: Tue, 03 Feb 2026 10:00:00 GMT", page+"one")) +
			answerTo("http://a.example/1", "newer") + warc("response", []string{"WARC-Target-URI: http://a.example/2", "WARC-Date: 2199-01-01T00:00:00Z"}, httpAnswer("200 OK", "Content-Type: text/html", page+"two")),
			ImportReport{Records: 3, Stored: 2, Skipped: map[string]int{"date_ahead": 1}, Notes: []string{
				`response at 0: WARC-Date "2199-01-01T00:00:00Z" has not come yet: taken as retrieved 2026-02-03T10:00:00Z, when its HTTP head was sent: http://a.example/1`,
				`response at 464: date_ahead: WARC-Date "2199-01-01T00:00:00Z" has not come yet, and nothing else says when it was captured: http://a.example/2`}}, []string{"newer", "error not_stored"}},
		{"statuses", warc("response", at("http://a.example/1"), httpAnswer("404 Not Found", "Content-Type: text/html", "no")) + warc("response", at("http://a.example/2"), httpAnswer("301 Moved", "Location: /3", "")) + answerTo("http://a.example/3", "three") +
			warc("response", at("http://a.example/4"), httpAnswer("403 Forbidden", "Content-Type: text/html", "no")) + warc("response", at("http://a.example/5"), httpAnswer("304 Not Modified", "Etag: x", "")) + warc("response", at("http://a.example/5"), httpAnswer("206 Partial", "Content-Type: text/html", "x")),
			ImportReport{Records: 6, Stored: 4, Skipped: map[string]int{"status_304": 1, "partial": 1}}, []string{"error gone", "three", "three", "error blocked", "error not_stored"}},

		{"chunks", warc("response", at("http://a.example/1"), httpAnswer("200 OK", chunked, "00017;x=y\r\n"+page+"o\r\n2\r\nne\r\n0\r\n\r\n")), ImportReport{Records: 1, Stored: 1}, []string{"one"}},
		{"chunks announced, none there", warc("response", at("http://a.example/1"), httpAnswer("200 OK", chunked, page+"one")), ImportReport{Records: 1, Stored: 1}, []string{"one"}},
		{"chunks announced, hexadecimal words there", warc("response", at("http://a.example/1"), httpAnswer("200 OK", "Content-Type: text/plain\nTransfer-Encoding: chunked", "fade\r\nout, no chunks follow "+words(20))), ImportReport{Records: 1, Stored: 1, Truncated: 1}, []string{"out, no chunks follow " + words(20)}},
		{"last chunk cut", warc("response", at("http://a.example/1"), httpAnswer("200 OK", chunked, "19\r\n"+page+"one\r\n40\r\n and")), ImportReport{Records: 1, Stored: 1, Truncated: 1}, []string{"one and"}},
		{"shorter than announced", warc("response", at("http://a.example/1"), httpAnswer("200 OK", "Content-Type: text/html\nContent-Length: 9999", page+"one")), ImportReport{Records: 1, Stored: 1, Truncated: 1}, []string{"one"}},
		{"marked as truncated", answerTo("http://a.example/1", "one", "WARC-Truncated: length"), ImportReport{Records: 1, Stored: 1, Truncated: 1}, []string{"one"}},
		{"coded body cut", warc("response", at("http://a.example/1"), httpAnswer("200 OK", "Content-Type: text/html\nContent-Encoding: br", string(encode(t, "br", []byte(page+words(300)))[:60]))), ImportReport{Records: 1, Stored: 1, Truncated: 1}, nil},
		{"coding named but undone", warc("response", at("http://a.example/1"), httpAnswer("200 OK", "Content-Type: text/html\nContent-Encoding: gzip", page+"one")), ImportReport{Records: 1, Stored: 1}, []string{"one"}},
		{"bomb", warc("response", at("http://a.example/1"), httpAnswer("200 OK", "Content-Type: text/html\nContent-Encoding: gzip", string(readAllOf(t, bomb(t, 64))))) + answerTo("http://a.example/2", "two"), ImportReport{Records: 2, Stored: 2}, []string{"error too_large", "two"}},

		{"request of another crawler", ask("GET /1", "Accept: */*\r\nUser-Agent: Wget/1.2\r\n") + answerTo("http://a.example/1", "one"), ImportReport{Records: 2, Stored: 1}, []string{"one"}},
		{"request after its answer", answerTo("http://a.example/1", "one", "WARC-Record-ID: <urn:1>") + ask("POST /1", "", "WARC-Concurrent-To: <urn:1>") + answerTo("http://a.example/2", "two"), ImportReport{Records: 3, Stored: 1, Skipped: map[string]int{"method": 1}}, []string{"error not_stored", "two"}},
		{"request before its answer", ask("HEAD /1", "", "WARC-Record-ID: <urn:2>") + answerTo("http://a.example/1", "one", "WARC-Concurrent-To: <urn:2>"), ImportReport{Records: 2, Skipped: map[string]int{"method": 1}}, []string{"error not_stored"}},
		{"request of something else", ask("POST /1", "", "WARC-Concurrent-To: <urn:9>") + answerTo("http://a.example/1", "one", "WARC-Record-ID: <urn:1>"), ImportReport{Records: 2, Stored: 1}, []string{"one"}},
		{"request that is empty", warc("request", at("http://a.example/1"), "") + answerTo("http://a.example/1", "one"), ImportReport{Records: 2, Stored: 1}, []string{"one"}},

		{"revisit by address and date", answerTo("http://a.example/1", "one") + warc("revisit", at("http://a.example/2", "WARC-Refers-To-Target-URI: http://a.example/1", "WARC-Refers-To-Date: "+captured), httpAnswer("200 OK", "Content-Type: text/html", "")), ImportReport{Records: 2, Stored: 2}, []string{"one", "one"}},
		{"revisit by digest", answerTo("http://a.example/1", "one", "WARC-Payload-Digest: "+digestOf("one")) + warc("revisit", at("http://a.example/2", "WARC-Payload-Digest: "+digestOf("one")), httpAnswer("200 OK", "Content-Type: text/html", "")), ImportReport{Records: 2, Stored: 2}, []string{"one", "one"}},
		{"revisit by digest, its date names nothing", answerTo("http://a.example/1", "one", "WARC-Payload-Digest: "+digestOf("one")) + warc("revisit", at("http://a.example/2", "WARC-Refers-To-Target-URI: http://a.example/1", "WARC-Refers-To-Date: 2001-01-01T00:00:00Z", "WARC-Payload-Digest: "+digestOf("one")), ""), ImportReport{Records: 2, Stored: 2}, []string{"one", "one"}},
		{"revisit that was not modified", answerTo("http://a.example/1", "one") + warc("revisit", []string{"WARC-Target-URI: http://a.example/1", "WARC-Date: 2026-02-05T10:00:00Z", "WARC-Refers-To-Date: " + captured}, httpAnswer("304 Not Modified", "Etag: x", "")), ImportReport{Records: 2, Stored: 2}, []string{"one"}},
		{"revisit of nothing", warc("revisit", at("http://a.example/1", "WARC-Payload-Digest: "+digestOf("gone")), httpAnswer("200 OK", "Content-Type: text/html", "")), ImportReport{Records: 1, Skipped: map[string]int{"revisit_unresolved": 1}}, []string{"error not_stored"}},

		{"junk before, between and after", "junk" + answerTo("http://a.example/1", "one") + "\r\n\x00\x00 more WARC/ junk" + answerTo("http://a.example/2", "two") + "\x00\x00\x00", ImportReport{Records: 2, Stored: 2, Notes: []string{
			"not a WARC header at 0: 4 bytes left out", "not a WARC header at 234: 18 bytes left out", "not a WARC header at 480: 3 bytes left out"}}, []string{"one", "two"}},
		{"length too small", strings.Replace(answerTo("http://a.example/1", "one and more"), "Content-Length: 78", "Content-Length: 69", 1) + answerTo("http://a.example/2", "two"), ImportReport{Records: 2, Stored: 2, Notes: []string{"not a WARC header at 224: 13 bytes left out"}}, []string{"one", "two"}},
		{"length too large", answerTo("http://a.example/2", "two") + strings.Replace(answerTo("http://a.example/1", "one"), "Content-Length: 69", "Content-Length: 73", 1), ImportReport{Records: 2, Stored: 2}, []string{"one\r\n\r\n", "two"}},
		{"length past the end", strings.Replace(answerTo("http://a.example/1", "one"), "Content-Length: 69", "Content-Length: 6900", 1), ImportReport{Records: 1, Stored: 1, Truncated: 1, Notes: []string{"response at 0: the file ends within it: http://a.example/1; what there is of it is stored as truncated"}}, []string{"one\r\n\r\n"}},
		{"no length", "WARC/1.0\r\nWARC-Type: response\r\n\r\nabc\r\n\r\n" + answerTo("http://a.example/1", "one"), ImportReport{Records: 1, Stored: 1, Notes: []string{
			`unreadable WARC header: type "response", length "" at 33`, "not a WARC header at 33: 7 bytes left out"}}, []string{"one"}},
		{"negative length", "WARC/1.0\r\nWARC-Type: response\r\nContent-Length: -5\r\n\r\n" + answerTo("http://a.example/1", "one"), ImportReport{Records: 1, Stored: 1, Notes: []string{`unreadable WARC header: type "response", length "-5" at 53`}}, []string{"one"}},
		{"header without end", "WARC/1.0\r\n" + strings.Repeat("X: "+strings.Repeat("y", 1000)+"\r\n", 1100) + "\r\n" + answerTo("http://a.example/1", "one"), ImportReport{Records: 1, Stored: 1, Notes: []string{
			"unreadable WARC header: longer than 1048576 bytes at 1051240", "not a WARC header at 1051240: 54272 bytes left out"}}, []string{"one"}},
		{"cut in a header", answerTo("http://a.example/1", "one") + "WARC/1.0\r\nWARC-Ty", ImportReport{Records: 1, Stored: 1, Notes: []string{`unreadable WARC header: type "", length "" at 245`}}, []string{"one"}},
		{"member garbled", gz(t, answerTo("http://a.example/1", "one")) + strings.Repeat("\x1f\x8b\x08\x00\xff", 3) + gz(t, answerTo("http://a.example/2", "two")), ImportReport{Records: 2, Stored: 2}, []string{"one", "two"}},
		{"member cut", gz(t, answerTo("http://a.example/1", "one")) + gz(t, answerTo("http://a.example/9", words(300)))[:200] + gz(t, answerTo("http://a.example/2", "two"), answerTo("http://a.example/3", "three")), ImportReport{Records: 4, Stored: 4, Truncated: 1}, []string{"one", "two", "three"}},
		{"file cut in a member", gz(t, answerTo("http://a.example/1", "one")) + gz(t, answerTo("http://a.example/2", words(300)))[:150], ImportReport{}, []string{"one"}},
		{"junk after the last member", gz(t, answerTo("http://a.example/1", "one")) + "GARBAGE", ImportReport{Records: 1, Stored: 1}, []string{"one"}},
		{"zeros after the last member", gz(t, answerTo("http://a.example/1", "one")) + strings.Repeat("\x00", 9000), ImportReport{Records: 1, Stored: 1, Notes: []string{}}, []string{"one"}},
	} {
		s := memory(t)
		got, err := ImportWARC(t.Context(), s, "file.warc", strings.NewReader(c.file), time.Now())
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		ignore := []string{"Types", "Responses", "Classes"}
		if c.want.Notes == nil && strings.HasPrefix(c.file, "\x1f\x8b") {
			ignore = append(ignore, "Notes") // places in compressed bytes
		}
		if c.want.Records == 0 {
			ignore = append(ignore, "Records", "Stored", "Truncated", "Skipped") // depends on where deflate puts its blocks
		}
		if diff := cmp.Diff(c.want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(ImportReport{}, ignore...)); diff != "" {
			t.Errorf("%s: report (-want +got):\n%s", c.name, diff)
		}
		if sum := got.Stored + got.Present; sum+total(got.Skipped) != got.Responses || sum != total(got.Classes) {
			t.Errorf("%s: counts do not add up: %+v", c.name, got)
		}
		var urls []string
		for i := range c.get {
			urls = append(urls, fmt.Sprintf("http://a.example/%d", i+1))
		}
		if diff := cmp.Diff(c.get, stored(t, s, urls...)); diff != "" {
			t.Errorf("%s: pages (-want +got):\n%s", c.name, diff)
		}
		again, err := ImportWARC(t.Context(), s, "/other/folder/file.warc", iotest.OneByteReader(strings.NewReader(c.file)), time.Now())
		if err != nil || again.Stored != 0 || again.Present != got.Stored || !slices.Equal(again.Notes, got.Notes) {
			t.Errorf("%s, imported again: %+v, %v; want nothing new", c.name, again, err)
		}
	}
}

func total(m map[string]int) int {
	n := 0
	for _, v := range m {
		n += v
	}
	return n
}

// What is stored is the exchange as it was captured, under the request that Get makes; requests of this
// program keep what shapes their answers.
func TestImportWARCExchange(t *testing.T) {
	s := memory(t)
	file := answerTo("HTTP://A.example/x#y", "one", "WARC-IP-Address: 192.0.2.7", "WARC-Record-ID: <urn:1>") +
		warc("request", []string{"WARC-Concurrent-To: <urn:1>"}, "GET /x HTTP/1.1\r\nUser-Agent: Wget\r\nAccept: text/plain\r\nCookie: secret\r\n\r\n") +
		warc("request", []string{"WARC-Record-ID: <urn:3>"}, "GET /api HTTP/1.1\r\nUser-Agent: assay/1.0\r\nAccept: application/json\r\nAuthorization: secret\r\n\r\n") +
		warc("response", at("http://a.example/api", "WARC-Concurrent-To: <urn:3>"), httpAnswer("200 OK", "Content-Type: application/json\nSet-Cookie: secret", `{"ok": true}`))
	if _, err := ImportWARC(t.Context(), s, "two.warc", strings.NewReader(file), time.Now()); err != nil {
		t.Fatal(err)
	}
	c, err := New(Options{Store: s, Mode: Replay, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var got []Exchange
	for _, url := range []string{"http://a.example/x", "http://a.example/api"} {
		list, err := c.Exchanges(url)
		if err != nil || len(list) != 1 {
			t.Fatalf("%s: %d exchanges, %v", url, len(list), err)
		}
		got = append(got, list[0])
	}
	when := time.Date(2026, 2, 3, 10, 0, 0, 0, time.UTC)
	want := []Exchange{
		{Seq: 1, Method: "GET", URL: "http://a.example/x", RequestHeader: map[string]string{}, At: when, Proto: "HTTP/1.1", Status: 200, Header: http.Header{"Content-Type": {"text/html"}}, Length: 25, Class: ClassOK, Source: "warc:two.warc", Dialled: "192.0.2.7"},
		{Seq: 1, Method: "GET", URL: "http://a.example/api", RequestHeader: map[string]string{"Accept": "application/json", "User-Agent": "assay/1.0"}, At: when, Proto: "HTTP/1.1", Status: 200, Header: http.Header{"Content-Type": {"application/json"}}, Length: 12, Class: ClassOK, Source: "warc:two.warc"},
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(Exchange{}, "Body")); diff != "" {
		t.Errorf("exchanges (-want +got):\n%s", diff)
	}
	if p, err := c.Get(t.Context(), Request{URL: "http://a.example/api", Accept: "application/json"}); err != nil || p.Source != "warc:two.warc" {
		t.Errorf("Get of the API's answer: %+v, %v", p, err)
	}
}

// A revisit finds its original in a file that was imported before, by nothing but the payload.
func TestImportWARCRevisitAcrossFiles(t *testing.T) {
	s := memory(t)
	var first strings.Builder
	for i := range 2*digestBatch + 3 {
		text := fmt.Sprintf("page %d", i)
		first.WriteString(answerTo(fmt.Sprintf("http://a.example/%d", i), text, "WARC-Payload-Digest: "+digestOf(text)))
	}
	if _, err := ImportWARC(t.Context(), s, "1.warc", strings.NewReader(first.String()), time.Now()); err != nil {
		t.Fatal(err)
	}
	var second strings.Builder
	for _, i := range []int{0, digestBatch, 2*digestBatch + 2} {
		second.WriteString(warc("revisit", at(fmt.Sprintf("http://b.example/%d", i), "WARC-Payload-Digest: "+digestOf(fmt.Sprintf("page %d", i))), httpAnswer("200 OK", "Content-Type: text/html", "")))
	}
	if got, err := ImportWARC(t.Context(), s, "2.warc", strings.NewReader(second.String()), time.Now()); err != nil || got.Stored != 3 {
		t.Fatalf("second file: %+v, %v", got, err)
	}
	if diff := cmp.Diff([]string{"page 0", "page 514"}, stored(t, s, "http://b.example/0", "http://b.example/514")); diff != "" {
		t.Errorf("pages (-want +got):\n%s", diff)
	}
}

func TestImportWARCErrors(t *testing.T) {
	broken := errors.New("cable pulled")
	one := answerTo("http://a.example/1", "one")
	for name, r := range map[string]io.Reader{
		"plain": io.MultiReader(strings.NewReader(one), iotest.ErrReader(broken)),
		"gzip":  io.MultiReader(strings.NewReader(gz(t, one, one)[:300]), iotest.ErrReader(broken)),
		"block": io.MultiReader(strings.NewReader(one[:len(one)-10]), iotest.ErrReader(broken)),
	} {
		if _, err := ImportWARC(t.Context(), memory(t), name, r, time.Now()); !errors.Is(err, broken) || !strings.HasPrefix(err.Error(), "import "+name) {
			t.Errorf("%s that cannot be read: %v", name, err)
		}
	}
	for name, file := range map[string]string{"empty": "", "text": words(5000), "gzip of text": gz(t, words(500)), "gzip header alone": "\x1f\x8b\x08"} {
		if got, err := ImportWARC(t.Context(), memory(t), name, strings.NewReader(file), time.Now()); err == nil {
			t.Errorf("%s: %+v, want an error", name, got)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := ImportWARC(ctx, memory(t), "x", strings.NewReader(one), time.Now()); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	s := memory(t)
	var many strings.Builder
	for range 3 * maxNotes {
		many.WriteString("junk " + one)
	}
	got, err := ImportWARC(t.Context(), s, "x", strings.NewReader(many.String()), time.Now())
	if err != nil || got.Records != 3*maxNotes || got.Stored != 1 || len(got.Notes) != maxNotes+1 || got.Notes[maxNotes] != "200 more damaged places" {
		t.Errorf("much damage: %d records, %d stored, %d notes, %v", got.Records, got.Stored, len(got.Notes), err)
	}
}

// Memory depends neither on the number of records nor on their size, whatever their kind.
func TestImportWARCMemory(t *testing.T) {
	const size = 256 << 20
	head := func(kind, fields string) io.Reader {
		return strings.NewReader(fmt.Sprintf("WARC/1.0\r\nWARC-Type: %s\r\nWARC-Target-URI: http://a.example/1\r\nWARC-Date: %s\r\nContent-Type: application/http\r\nContent-Length: %d\r\n%s\r\n", kind, captured, size, fields))
	}
	last := "\r\n\r\n" + answerTo("http://a.example/2", "two")
	for name, block := range map[string]io.Reader{
		"response without a head": io.MultiReader(head("response", ""), &zeros{size}),
		"revisit":                 io.MultiReader(head("revisit", ""), &zeros{size}),
		"request":                 io.MultiReader(head("request", ""), &zeros{size}),
		"metadata":                io.MultiReader(head("metadata", ""), &zeros{size}),
		"junk":                    &zeros{size},
	} {
		s := memory(t)
		runtime.GC()
		before := peak(t)
		got, err := ImportWARC(t.Context(), s, "x.warc", io.MultiReader(strings.NewReader(answerTo("http://a.example/0", "zero")), block, strings.NewReader(last)), time.Now())
		if err != nil || got.Stored != 2 {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		if grown := peak(t) - before; grown > 48<<20 {
			t.Errorf("%s: memory grew by %d MiB", name, grown>>20)
		}
	}
}

// Every captured file gives the records that the index of captures counted, or its error as a note.
func TestImportWARCCaptures(t *testing.T) {
	dir := realDir(t)
	for _, r := range index(t, dir, "warc/") {
		f, err := os.Open(filepath.Join(dir, r.file))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		s := memory(t)
		got, err := ImportWARC(t.Context(), s, r.file, f, time.Now())
		if err != nil {
			t.Errorf("%s: %v", r.file, err)
			continue
		}
		types := map[string]int{}
		for kind, n := range r.want["types"].(map[string]any) {
			types[kind] = int(n.(float64))
		}
		if fault := r.text("warc_error"); fault != "" {
			// The count stops at the fault; we say where it is and read on.
			if !strings.Contains(strings.Join(got.Notes, "\n"), fault) || got.Records < int(r.want["records"].(float64)) {
				t.Errorf("%s: %+v, want the note %q", r.file, got, fault)
			}
		} else if diff := cmp.Diff(types, got.Types); diff != "" || got.Records != int(r.want["records"].(float64)) {
			t.Errorf("%s: %d records, types (-want +got):\n%s", r.file, got.Records, diff)
		}
		if r.text("gzip_error") != "" && len(got.Notes) == 0 {
			t.Errorf("%s: no note of the damage", r.file)
		}
		c, err := New(Options{Store: s, Mode: Replay, Version: "test"})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		statuses := map[string][]int{}
		for _, first := range r.want["first_responses"].([]any) {
			m := first.(map[string]any)
			url := m["uri"].(string)
			if statuses[url] == nil {
				list, err := c.Exchanges(url)
				if err != nil || len(list) == 0 {
					t.Errorf("%s: %s: %d exchanges, %v", r.file, url, len(list), err)
				}
				for _, ex := range list {
					statuses[url] = append(statuses[url], ex.Status)
					if ex.Status == 200 && (ex.Length == 0 || ex.Class != ClassOK) {
						t.Errorf("%s: %s has %d bytes, class %s", r.file, url, ex.Length, ex.Class)
					}
				}
			}
			if !slices.Contains(statuses[url], int(m["status"].(float64))) {
				t.Errorf("%s: %s has statuses %v, want %v", r.file, url, statuses[url], m["status"])
			}
		}
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			t.Fatal(err)
		}
		if again, err := ImportWARC(t.Context(), s, r.file, f, time.Now()); err != nil || again.Stored != 0 {
			t.Errorf("%s, imported again: %+v, %v", r.file, again, err)
		}
		t.Logf("%s: %d records, %d stored, skipped %v, %d truncated, notes %q", r.file, got.Records, got.Stored, got.Skipped, got.Truncated, got.Notes)
	}
}

// The captured pages as one file: all come in, and each opens or is what it was captured as.
func TestImportWARCWhole(t *testing.T) {
	dir := realDir(t)
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("skipped: no python3 to write the captures as one file")
	}
	name := filepath.Join(t.TempDir(), "web.warc.gz")
	if out, err := exec.CommandContext(t.Context(), python, filepath.Join(dir, "make-warc.py"), name).CombinedOutput(); err != nil {
		t.Fatalf("write the captures: %v\n%s", err, out)
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := memory(t)
	got, err := ImportWARC(t.Context(), s, name, f, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	want := ImportReport{Records: 1171, Types: map[string]int{"response": 1170, "warcinfo": 1}, Responses: 1170, Stored: 1170}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(ImportReport{}, "Classes")); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
	t.Logf("classes %v", got.Classes)
	c, err := New(Options{Store: s, Mode: Replay, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	pages := 0
	for url, err := range c.Stored(t.Context(), "www.politifact.com") {
		if err != nil {
			t.Fatal(err)
		}
		if p, err := c.Get(t.Context(), Request{URL: url}); err != nil || len(p.Bytes()) == 0 {
			t.Errorf("%s: %v", url, err)
		}
		pages++
	}
	if pages < 1000 {
		t.Errorf("%d pages of PolitiFact, want at least 1000", pages)
	}
}

func FuzzWARC(f *testing.F) {
	f.Add([]byte(answerTo("http://a.example/1", "one")))
	f.Add([]byte(gz(f, answerTo("http://a.example/1", "one"), answerTo("http://a.example/2", "two"))))
	f.Add([]byte(warc("response", at("http://a.example/1"), httpAnswer("200 OK", "Transfer-Encoding: chunked", "3\r\none\r\n0\r\n\r\n"))))
	f.Add([]byte(answerTo("http://a.example/1", "one") + warc("revisit", at("http://a.example/2", "WARC-Refers-To-Target-URI: http://a.example/1", "WARC-Refers-To-Date: "+captured), "")))
	f.Add([]byte("junk\x1f\x8b\x08WARC/1.0\r\nContent-Length: 5\r\n\r\n"))
	// Without a store, whose own goroutines would look like new coverage.
	f.Fuzz(func(t *testing.T, file []byte) {
		in := newWARCReader(bytes.NewReader(file))
		w := &warcImport{importer: newReport("fuzz")}
		end := int64(0)
		for {
			rec, err := in.next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("a file in memory: %v", err)
			}
			if rec.offset < end {
				t.Fatalf("record at %d, after one that reached to %d", rec.offset, end)
			}
			end = in.offset()
			switch rec.kind {
			case "request":
				err = w.ask(rec)
			default:
				w.held.close()
				w.held = nil
				if err = w.hold(rec); err == nil && w.held != nil && w.held.body != nil {
					err = w.classify(&w.held.ex, w.held.body)
				}
			}
			if err != nil {
				t.Fatal(err)
			}
			if c := w.held; c != nil && (c.ex.URL == "" || c.ex.At.IsZero() || c.ex.Status == 0 && !c.revisit || c.ex.Class == "" && !c.revisit) {
				t.Errorf("held %+v", c.ex)
			}
		}
		w.held.close()
		if len(in.notes) > maxNotes || in.offset() < end {
			t.Errorf("%d notes, end %d after %d", len(in.notes), in.offset(), end)
		}
	})
}
