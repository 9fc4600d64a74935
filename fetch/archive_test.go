package fetch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay/kv"
)

// archived writes the exchanges of a store as an archive.
func archived(t testing.TB, s *kv.Store) (data []byte, captures []Capture) {
	t.Helper()
	var b bytes.Buffer
	w := NewWARCWriter(&b)
	if _, err := w.Write(Record{Type: "warcinfo", Date: day, ContentType: "application/warc-fields", Head: []byte("software: test\r\n")}); err != nil {
		t.Fatal(err)
	}
	err := WriteExchanges(t.Context(), s, w, func(c Capture) error {
		captures = append(captures, c)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), captures
}

func ignore(ArchivedRecord) error { return nil }

// unarchived reads an archive into a new store.
func unarchived(t testing.TB, data []byte) (*kv.Store, ImportReport, error) {
	t.Helper()
	s := memory(t)
	r, err := ReadArchive(t.Context(), s, "x.warc.gz", bytes.NewReader(data), ignore)
	return s, r, err
}

// exchangesOf lists the exchanges of a store with their bodies, without what depends on the order of arrival.
func exchangesOf(t testing.TB, s *kv.Store) []string {
	t.Helper()
	a := openArchive(s)
	var out []string
	for e, err := range a.exchanges.Scan("", "") {
		if err != nil {
			t.Fatal(err)
		}
		r, err := a.body(e.Value)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		ex := e.Value
		ex.Seq = 0
		if ex.Status != http.StatusNotModified {
			ex.SameAs = ""
		} else if at, ok, _ := a.exchanges.Get(exchangeKey(ex.URL, ex.Key(), seqIn(ex.SameAs))); ok {
			ex.SameAs = at.At.String()
		}
		out = append(out, fmt.Sprintf("%+v %x", ex, bodySum(body)))
	}
	slices.Sort(out)
	return out
}

func seqIn(id string) (n int) {
	_, _ = fmt.Sscanf(id[strings.LastIndexByte(id, '@')+1:], "%d", &n) // 0 for an id without one
	return n
}

// answersIn are the heads of a store, and the addresses that it lists.
func answersIn(t testing.TB, s *kv.Store) (out []string) {
	t.Helper()
	a := openArchive(s)
	for e, err := range a.heads.Scan("", "") {
		if err != nil {
			t.Fatal(err)
		}
		h := e.Value
		h.Latest.Seq = 0
		if h.Usable != nil {
			h.Usable.Seq = 0
		}
		line, err := json.Marshal(h)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, fmt.Sprintf("%q %s", kv.Parts(e.Key), line))
	}
	for key, err := range a.addresses.Keys("", "") {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, fmt.Sprintf("%q", kv.Parts(key)))
	}
	return out
}

// odd are exchanges of every kind that a store may hold.
func odd(t testing.TB) (list []Exchange, bodies []string) {
	add := func(ex Exchange, body string) {
		ex.Source = cmpOr(ex.Source, SourceNetwork)
		list, bodies = append(list, ex), append(bodies, body)
	}
	html := http.Header{"Content-Type": {"text/html; charset=utf-8"}, "Etag": {`"1"`}, "X-Odd": {"d\u00e9j\u00e0", "two", ""}, "Content-Length": {"5"}}
	ua := map[string]string{"Accept": defaultAccept, "Accept-Language": defaultAcceptLanguage, "Accept-Encoding": acceptEncoding, "User-Agent": "assay/test (+x@y.example)"}
	at := func(n int) time.Time {
		return day.Add(time.Duration(n)*time.Hour + time.Duration(n)*1001*time.Nanosecond)
	}
	add(Exchange{URL: "https://a.example/", At: at(1), Proto: "HTTP/2.0", Status: 200, Class: ClassOK, Header: html, RequestHeader: ua, Dialled: "192.0.2.7:443", Waited: time.Second}, "hello")
	add(Exchange{URL: "https://a.example/same", At: at(2), Proto: "HTTP/1.1", Status: 200, Class: ClassOK, Header: html, RequestHeader: ua, Dialled: "[2001:db8::1]:443"}, "hello")
	add(Exchange{URL: "https://a.example/", At: at(3), Proto: "HTTP/1.1", Status: 503, Class: ClassThrottled, Reason: "status", Header: http.Header{"Retry-After": {"9"}}, RequestHeader: ua, Attempt: 2}, "")
	add(Exchange{URL: "https://a.example/gz", At: at(4), Proto: "HTTP/1.1", Status: 200, Class: ClassOK, Header: http.Header{"Content-Type": {"text/html"}, "Content-Encoding": {"gzip"}}, RequestHeader: ua}, string(encode(t, "gzip", []byte("<p>packed"))))
	add(Exchange{URL: "https://b.example/none", At: at(5), Class: ClassFailed, Reason: ReasonNetwork, Detail: "dial tcp: no\nroute \u2028 \"there\"", RequestHeader: ua, Attempt: 1}, "-")
	add(Exchange{URL: "https://b.example/large", At: at(6), Proto: "HTTP/1.1", Status: 200, Class: ClassFailed, Reason: ReasonTooLarge, Truncated: true, Header: html, RequestHeader: ua}, "-")
	add(Exchange{URL: "https://b.example/form?b=2&a=1", Method: "POST", At: at(7), Proto: "HTTP/1.1", Status: 200, Class: ClassOK, RequestBody: bodySum([]byte("q=wells")), Header: html, RequestHeader: map[string]string{"Accept": "application/json", "Content-Type": "application/x-www-form-urlencoded"}, Credential: "shop", Masked: true, USD: 0.005, PriceDate: "2026-11-30", Estimated: true}, "{}")
	add(Exchange{URL: "https://www.b.example/moved", At: at(8), Proto: "HTTP/1.0", Status: 302, Class: ClassOK, Header: http.Header{"Location": {"/x"}}, RequestHeader: ua}, "")
	add(Exchange{URL: "http://c.example:8080/saved", At: at(9), Status: 200, Class: ClassOK, Header: http.Header{"Content-Type": {"text/html"}}, Source: "dir:pages"}, "<p>saved")
	add(Exchange{URL: "http://c.example:8080/cut", At: at(10), Proto: "HTTP/1.1", Status: 200, Class: ClassOK, Header: html, Truncated: true, Source: "warc:old.warc"}, "<p>cut off he")
	add(Exchange{URL: "http://c.example:8080/gone", At: at(11), Status: 404, Class: ClassGone, Reason: "gone", Header: http.Header{"Content-Type": {"text/plain"}}, Source: "dir:pages"}, "hello")
	add(Exchange{URL: "http://c.example:8080/long", At: at(12), Proto: "HTTP/1.1", Status: 200, Class: ClassOK, Header: http.Header{"Content-Type": {"text/plain"}, "X-Long": {strings.Repeat("x", 200<<10)}}, RequestHeader: ua}, strings.Repeat("0123456789abcdef", 600<<10))
	return list, bodies
}

func cmpOr(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// storeOf records exchanges in an order, and a 304 after the first one of its request.
func storeOf(t *testing.T, order []int) *kv.Store {
	t.Helper()
	s := memory(t)
	a := openArchive(s)
	if err := a.keepRequest(bodySum([]byte("q=wells")), []byte("q=wells")); err != nil {
		t.Fatal(err)
	}
	list, bodies := odd(t)
	for _, i := range order {
		var body io.Reader
		if bodies[i] != "-" {
			body = strings.NewReader(bodies[i])
		}
		ex, err := a.record(t.Context(), list[i], body)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			confirmed := ex
			confirmed.At, confirmed.Status, confirmed.SameAs = ex.At.Add(24*time.Hour), http.StatusNotModified, ex.ID()
			confirmed.Header = withValidators(ex.Header, http.Header{"Etag": {`"2"`}})
			record(t, a, confirmed, nil)
		}
	}
	return s
}

func TestArchiveHoldsEveryKindOfExchange(t *testing.T) {
	inOrder := make([]int, 12)
	for i := range inOrder {
		inOrder[i] = i
	}
	s := storeOf(t, inOrder)
	data, captures := archived(t, s)
	back, report, err := unarchived(t, data)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(exchangesOf(t, s), exchangesOf(t, back)); d != "" {
		t.Errorf("exchanges (-stored +read back):\n%s", d)
	}
	if d := cmp.Diff(answersIn(t, s), answersIn(t, back)); d != "" {
		t.Errorf("answers (-stored +read back):\n%s", d)
	}
	if report.Stored != 13 || report.Types["revisit"] != 3 || report.Types["resource"] != 1 || report.Types["metadata"] != 1 || report.Types["request"] != 10 {
		t.Errorf("report %+v", report)
	}
	if n := len(captures); n != 12 {
		t.Errorf("%d captures, want 12: an attempt without an answer is none", n)
	}

	// What is read back is archived as it was, and reading it twice adds nothing.
	again, _ := archived(t, back)
	if !bytes.Equal(data, again) {
		t.Error("the archive of what was read back is another one")
	}
	r, err := ReadArchive(t.Context(), back, "x.warc.gz", bytes.NewReader(data), ignore)
	if err != nil || r.Stored != 0 || r.Present != 13 {
		t.Errorf("read twice: %+v, %v", r, err)
	}

	// The order of arrival leaves no trace.
	rng := rand.New(rand.NewPCG(1, 2))
	for range 3 {
		order := rng.Perm(12)
		if other, _ := archived(t, storeOf(t, order)); !bytes.Equal(data, other) {
			t.Errorf("arrived in the order %v, the archive is another one", order)
		}
	}

	// Others read it as any WARC file.
	foreign := memory(t)
	fr, err := ImportWARC(t.Context(), foreign, "x.warc.gz", bytes.NewReader(data), time.Now())
	if err != nil || len(fr.Notes) > 0 {
		t.Fatalf("as a foreign file: %+v, %v", fr, err)
	}
	want := stored(t, s, "https://a.example/", "https://a.example/same", "https://a.example/gz", "http://c.example:8080/saved")
	if d := cmp.Diff(want, stored(t, foreign, "https://a.example/", "https://a.example/same", "https://a.example/gz", "http://c.example:8080/saved")); d != "" {
		t.Errorf("as a foreign file (-ours +theirs):\n%s", d)
	}
}

// A field that is added to Exchange travels, or is one of those that WARC tells by itself.
func TestEveryFieldOfAnExchangeTravels(t *testing.T) {
	elsewhere := []string{"Method", "URL", "RequestHeader", "Header"} // in request line, header and heads
	again := []string{"Seq", "SameAs"}                                // by order and body; Confirms for a 304
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Exchange]()) {
		if slices.Contains(elsewhere, f.Name) || slices.Contains(again, f.Name) {
			continue
		}
		if _, ok := reflect.TypeFor[told]().FieldByName(f.Name); !ok {
			t.Errorf("Exchange.%s is not archived", f.Name)
		}
	}
}

// A capture's place is that of a member that can be read by itself.
func TestCapturesCanBeReadWhereTheyLie(t *testing.T) {
	data, captures := archived(t, storeOf(t, []int{0, 1, 3, 8}))
	for _, c := range captures {
		in := newWARCReader(bytes.NewReader(data[c.Offset : c.Offset+c.Length]))
		rec, err := in.next()
		if err != nil || rec.get("WARC-Target-URI") != c.URL {
			t.Errorf("%s at %d: %v, %v", c.URL, c.Offset, rec, err)
		}
		if _, err := in.next(); !errors.Is(err, io.EOF) {
			t.Errorf("%s at %d is more than one record", c.URL, c.Offset)
		}
	}
}

// Wherever an archive is cut or changed, what is whole is stored, and the rest is told.
func TestDamagedArchives(t *testing.T) {
	whole := storeOf(t, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10})
	data, captures := archived(t, whole)
	known := exchangesOf(t, whole)
	check := func(name string, data []byte, least int) {
		t.Helper()
		s, r, err := unarchived(t, data)
		if !errors.Is(err, ErrDamaged) || len(r.Notes) == 0 {
			t.Errorf("%s: %v, notes %q", name, err, r.Notes)
			return
		}
		got := exchangesOf(t, s)
		for _, ex := range got {
			if !slices.Contains(known, ex) {
				t.Errorf("%s: an exchange that never was: %s", name, ex)
			}
		}
		if len(got) < least {
			t.Errorf("%s: %d exchanges are left, want %d at least", name, len(got), least)
		}
	}
	for i, c := range captures {
		check(fmt.Sprintf("cut inside %s", c.URL), data[:c.Offset+c.Length/2], i)
		flipped := bytes.Clone(data)
		flipped[c.Offset+c.Length/2] ^= 0x55
		check(fmt.Sprintf("a byte of %s", c.URL), flipped, len(captures)-3) // it, and what confirms or repeats it
	}

	// A WARC file that was unpacked has no checksums but its digests.
	plain, err := io.ReadAll(newGunzip(t, data))
	if err != nil {
		t.Fatal(err)
	}
	if s, _, err := unarchived(t, plain); err != nil || len(exchangesOf(t, s)) != len(known) {
		t.Errorf("unpacked: %v", err)
	}
	check("a changed letter", bytes.Replace(plain, []byte("<p>saved"), []byte("<p>saveD"), 1), len(known)-1)
	check("another digest", bytes.Replace(plain, []byte("Assay-Exchange: {"), []byte("Assay-Exchange: ["), 1), len(known)-4)
	check("a lost request", bytes.ReplaceAll(plain, []byte("\nAccept: application/json"), []byte("\nAccept: application/JSON")), len(known)-1)
	if _, _, err := unarchived(t, nil); err == nil || errors.Is(err, ErrDamaged) {
		t.Errorf("nothing at all: %v", err)
	}
}

func newGunzip(t testing.TB, data []byte) io.Reader {
	t.Helper()
	r, err := decodeContent(http.Header{"Content-Encoding": {"gzip"}}, "", bytes.NewReader(data), 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.NewReader(r)
}

// A body that is not what its name says is an error, never an archive.
func TestArchiveRefusesDamagedBodies(t *testing.T) {
	s := storeOf(t, []int{0})
	a := openArchive(s)
	ex, _, err := a.usable("GET https://a.example/")
	if err != nil {
		t.Fatal(err)
	}
	for name, harm := range map[string]func() error{
		"another body": func() error { return a.bodies.Put(bodyKey(ex.Body, 0), []byte("HELLO")) },
		"another size": func() error { return a.bodies.Put(bodyKey(ex.Body, 0), []byte("hello there")) },
		"no body":      func() error { return a.bodies.Delete(bodyKey(ex.Body, 0)) },
	} {
		if err := harm(); err != nil {
			t.Fatal(err)
		}
		err := WriteExchanges(t.Context(), s, NewWARCWriter(io.Discard), func(Capture) error { return nil })
		if err == nil || !strings.Contains(err.Error(), "a.example") {
			t.Errorf("%s: %v", name, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := WriteExchanges(ctx, s, NewWARCWriter(io.Discard), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := ReadArchive(ctx, s, "x", strings.NewReader("WARC/1.1\r\n"), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// Memory grows neither with a body nor with the file.
func TestArchiveIsStreamed(t *testing.T) {
	s := memory(t)
	a := openArchive(s)
	const size = 64 << 20
	ex := Exchange{URL: "http://a.example/feed", At: day, Proto: "HTTP/1.1", Status: 200, Class: ClassOK, Source: SourceNetwork, Header: http.Header{"Content-Type": {"text/xml"}}}
	record(t, a, ex, &zeros{size})
	limit := new(peakWriter)
	if err := WriteExchanges(t.Context(), s, NewWARCWriter(limit), func(Capture) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if grown := int64(limit.peak) - int64(limit.first); grown > 40<<20 {
		t.Errorf("%d MiB more memory for a body of %d MiB", grown>>20, size>>20)
	}
}

// A peakWriter looks at the heap at every write.
type peakWriter struct{ first, peak uint64 }

func (p *peakWriter) Write(b []byte) (int, error) {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	if p.first == 0 {
		p.first = m.HeapAlloc
	}
	p.peak = max(p.peak, m.HeapAlloc)
	return len(b), nil
}

func TestSURT(t *testing.T) {
	// As the Python library surt 0.3.1 gives them.
	for address, want := range map[string]string{
		"http://a.example/":                     "example,a)/",
		"https://www.a.example:443":             "example,a)/",
		"http://www2.A.example:8080/B/../C//d/": "example,a:8080)/c/d",
		"http://a.example/x?b=2&a=1&a":          "example,a)/x?a&a=1&b=2",
		"http://a.example/%7Euser/%2541/%C3%A9": "example,a)/~user/a/%c3%a9",
		"http://a.example/x?":                   "example,a)/x",
		"http://a.example?q=A%20b":              "example,a)/?q=a%20b",
		"http://user:pw@a.example/#frag":        "example,a)/",
		"http://[2001:db8::1]:81/x":             "2001:db8::1:81)/x",
		"http://192.0.2.1/":                     "1,2,0,192)/",
	} {
		if got := SURT(address); got != want {
			t.Errorf("SURT(%s) = %q, want %q", address, got, want)
		}
	}
}

// The index is sorted by bytes, also where it does not fit into memory.
func TestCDXJ(t *testing.T) {
	lines := func(spillAfter int) string {
		x := NewCDXJ("data.warc.gz")
		defer x.Close()
		for i := range 50 {
			n := i * 37 % 50
			if err := x.Add(Capture{URL: fmt.Sprintf("http://h%d.example/%d?<&>", n%7, n), At: day, Status: 200, MIME: "text/html", Digest: "sha256:00", Placed: Placed{int64(n), 10}}); err != nil {
				t.Fatal(err)
			}
			if spillAfter > 0 && i%spillAfter == spillAfter-1 {
				if err := x.spill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		var b strings.Builder
		if _, err := x.WriteTo(&b); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	want := lines(0)
	list := strings.SplitAfter(strings.TrimSuffix(want, "\n"), "\n")
	if len(list) != 50 || !slices.IsSorted(list) {
		t.Errorf("%d lines, sorted: %v", len(list), slices.IsSorted(list))
	}
	if first := `example,h0)/0?%3C`; strings.Contains(want, first) {
		t.Errorf("printable ASCII is escaped in %s", list[0])
	}
	for _, n := range []int{1, 7, 25} {
		if got := lines(n); got != want {
			t.Errorf("in runs of %d the lines differ", n)
		}
	}
}
