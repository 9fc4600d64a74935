package planner

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"assay/corpus"
	"assay/fetch"
)

const (
	crawlFile = "crawl-data/CC-MAIN-2026-05/segments/1.2/warc/CC-MAIN-1.warc.gz"
	twoCrawls = `[{"id": "CC-MAIN-2026-05", "from": "2026-01-10T00:00:00", "to": "2026-01-24T00:00:00"}, {"id": "CC-MAIN-2025-47", "from": "2025-11-02T00:00:00", "to": "2025-11-16T00:00:00"}]`
	noCapture = `{"message": "No Captures found for: https://a.example/"}`
)

func captureLine(at, status string, offset, length int) string {
	return fmt.Sprintf(`{"urlkey": "example,a)/", "timestamp": %q, "url": "https://a.example/", "mime": "text/html", "status": %q, "digest": "X", "length": "%d", "offset": "%d", "filename": %q}`, at, status, length, offset, crawlFile)
}

// crawls plays Common Crawl: its list of crawls, and an index of each that says the same or nothing.
func crawls(index string) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/collinfo.json"):
			reply(rw, 200, twoCrawls)
		case strings.Contains(r.URL.Path, "2026-05-index") && index != "":
			reply(rw, 200, index, "Content-Type", "text/x-ndjson")
		default:
			reply(rw, 404, noCapture)
		}
	}
}

// record is one member of a WARC file with a page of invented content.
func record(kind, status, page string) []byte {
	head := "HTTP/1.1 " + status + "\r\nContent-Type: text/html; charset=utf-8\r\n\r\n"
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	fmt.Fprintf(z, "WARC/1.0\r\nWARC-Type: %s\r\nWARC-Date: 2026-01-12T03:04:05Z\r\nWARC-Target-URI: https://a.example/tolls\r\nContent-Type: application/http; msgtype=response\r\nContent-Length: %d\r\n\r\n%s%s\r\n\r\n", kind, len(head)+len(page), head, page)
	_ = z.Close() // it writes to memory
	return b.Bytes()
}

// Captures are found crawl by crawl, the newest first; one is read by the place of its record.
func TestCommonCrawl(t *testing.T) {
	article := "<!doctype html><title>Tolls of the harbor</title><article><h1>Tolls of the harbor</h1>" + strings.Repeat("<p>The tolls of the harbor of Ostrow rose by four crowns in spring, the port office said on Monday.</p>", 6) + "</article>"
	files := map[string][]byte{
		"bytes=100-" + fmt.Sprint(100+len(record("response", "200 OK", article))-1): record("response", "200 OK", article),
		"bytes=1-300": record("request", "200 OK", article), "bytes=2-301": record("response", "403 Forbidden", article), "bytes=3-302": record("response", "200 OK", article)[:150],
		"bytes=4-303": []byte("<html>Slow Down</html>"),
	}
	size := len(record("response", "200 OK", article))
	index := strings.Join([]string{captureLine("20260112030405", "200", 100, size), captureLine("20260113030405", "301", 1, 300), captureLine("20260114030405", "200", 1, 300)}, "\n") + "\n"
	o := newOutside(t, nil)
	o.serve = func(rw http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, crawlFile) {
			reply(rw, 206, string(files[r.Header.Get("Range")]), "Content-Type", "application/octet-stream")
			return
		}
		crawls(index)(rw, r)
	}
	env := o.everything(fetch.Live)
	find := func(q Query) []Result {
		t.Helper()
		got, err := commoncrawl.Find(t.Context(), env, q)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	got := find(Query{Text: "https://a.example/", K: 5})
	if len(got) != 2 || got[0].Seen != "2026-01-14T03:04:05Z" || got[1].Seen != "2026-01-12T03:04:05Z" || got[0].Published != "" || got[0].URL != "https://a.example/" || len(o.visits) != 3 {
		t.Fatalf("%+v after %v", got, o.visits)
	}
	for i := 1; i < len(o.at); i++ {
		if gap := o.at[i].Sub(o.at[i-1]); gap < time.Second {
			t.Errorf("asked again after %v", gap)
		}
	}
	if got := find(Query{Text: "https://a.example/", K: 5, To: "2026-01-13"}); len(got) != 1 {
		t.Errorf("until a day: %+v", got)
	}
	before := len(o.visits)
	if got := find(Query{Text: "https://b.example/", K: 5, To: "2025-11-10"}); len(got) != 0 || len(o.visits) != before+1 || !strings.Contains(o.visits[before], "2025-47-index") {
		t.Errorf("in an older crawl: %+v after %v", got, o.visits[before:])
	}
	_, err := commoncrawl.Find(t.Context(), env, Query{Text: "harbor tolls", K: 5})
	wantError(t, err, ReasonNotConfigured)

	for range 2 {
		d, err := commoncrawl.Document(t.Context(), env, got[1].DocumentID, nil)
		if err != nil || d.ID != got[1].DocumentID || !strings.Contains(d.Text, "rose by four crowns") || d.URL != "https://a.example/tolls" || d.RetrievedAt != "2026-01-12T03:04:05Z" || !corpus.HasFlag(d.Flags, FlagCommonCrawl) || d.Via != corpus.ViaCommonCrawl || d.CapturedAt != d.RetrievedAt {
			t.Fatalf("%+v, %v", d, err)
		}
	}
	if at, ok := SourceOf(got[1].DocumentID); !ok || at.Name != "commoncrawl" {
		t.Errorf("%s is read by %q", got[1].DocumentID, at.Name)
	}
	for id, reason := range map[string]string{
		"1+300": ReasonBadReply, "2+300": ReasonBadReply, "4+300": ReasonBadReply, "x+1": ReasonBadRequest,
	} {
		_, err := commoncrawl.Document(t.Context(), env, "commoncrawl:"+id+":"+crawlFile, nil)
		if e := wantError(t, err, reason); e.Excluded() != "" {
			t.Errorf("%s is taken for gone", id)
		}
	}
	var cut *fetch.Error
	if _, err := commoncrawl.Document(t.Context(), env, "commoncrawl:3+300:"+crawlFile, nil); !errors.As(err, &cut) || cut.Reason != fetch.ReasonTruncated {
		t.Errorf("a record that is cut: %v", err)
	}
	var x *corpus.ExcludedError
	if _, err := commoncrawl.Document(t.Context(), env, "commoncrawl:1+99999999:"+crawlFile, nil); !errors.As(err, &x) || x.Excluded() != fetch.ReasonTooLarge {
		t.Errorf("a record that is too large: %v", err)
	}
	if _, err := commoncrawl.Document(t.Context(), env, "commoncrawl:1+1:crawl-data/../../etc/passwd.warc.gz?x", nil); err == nil {
		t.Error("a place that is none")
	}
}

// Recorded answers of Common Crawl: its crawls, a page of its index, that it has nothing, and that a page
// of the index is not there.
func realCommonCrawl(t *testing.T, tp tape) {
	var want struct {
		Status, Collections, Lines int
		Message                    string
		First                      struct{ ID, Timestamp, URL, Status string }
	}
	tp.expect(t, &want)
	o := newOutside(t, nil)
	o.serve = func(rw http.ResponseWriter, r *http.Request) {
		isList := strings.HasSuffix(r.URL.Path, "/collinfo.json")
		switch {
		case isList && tp.kind == "commoncrawl-collinfo", !isList && tp.kind != "commoncrawl-collinfo":
			reply(rw, want.Status, tp.body)
		case isList:
			reply(rw, 200, twoCrawls)
		default:
			reply(rw, 404, noCapture)
		}
	}
	got, err := commoncrawl.Find(t.Context(), o.everything(fetch.Live), Query{Text: "https://commoncrawl.org/", K: 100})
	switch {
	case want.Status == 400:
		if e := wantError(t, err, ReasonBadRequest); e.Detail != want.Message {
			t.Errorf("it says %q", e.Detail)
		}
	case err != nil:
		t.Fatal(err)
	case tp.kind == "commoncrawl-collinfo":
		// The list has 115 crawls; three of them are asked, the newest first.
		if strings.Count(tp.body, `"cdx-api"`) != want.Collections || len(o.visits) != 1+crawlsAsked || !strings.HasPrefix(o.visits[1], "/commoncrawl/"+want.First.ID+"-index?") || len(got) != 0 {
			t.Errorf("asked %v", o.visits)
		}
	case want.Status == 404:
		if len(got) != 0 || len(o.visits) != 3 {
			t.Errorf("%+v after %v", got, o.visits)
		}
	default:
		// Of ten lines some are redirects; the one that is listed first is the oldest, found last. The second
		// index of this play says the same again.
		pages := strings.Count(tp.body, `"status": "200"`)
		at, _ := time.Parse("20060102150405", want.First.Timestamp)
		if lines := strings.Count(strings.TrimSpace(tp.body), "\n") + 1; lines != want.Lines || len(got) != 2*pages || pages == 0 || pages == lines {
			t.Fatalf("%d captures of %d pages in %d lines", len(got), pages, lines)
		}
		if r := got[pages-1]; want.First.Status != "200" || r.Seen != at.Format(time.RFC3339) || r.URL != want.First.URL {
			t.Errorf("the oldest is %+v, want %+v", r, want.First)
		}
	}
}
