package fetch

import (
	"bufio"
	"cmp"
	"container/heap"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A CDXJ collects the index of a WARC file: a line a capture, as `SURT timestamp {json}`, in byte order.
// Lines wait in runs on disk, so memory does not grow with their number. Close it.
type CDXJ struct {
	warc  string // name of the WARC file in the index
	lines []string
	bytes int
	runs  []*os.File
}

// cdxjMemory is how many bytes of lines are sorted at once.
const cdxjMemory = 16 << 20

// NewCDXJ makes the index of the file warc.
func NewCDXJ(warc string) *CDXJ { return &CDXJ{warc: warc} }

// cdxjFields are the fields of a line, as pywb and replay programs read them: numbers are strings.
type cdxjFields struct {
	URL      string `json:"url"`
	MIME     string `json:"mime,omitzero"`
	Status   string `json:"status,omitzero"`
	Digest   string `json:"digest"`
	Length   string `json:"length"` // of the gzip member
	Offset   string `json:"offset"`
	Filename string `json:"filename"`
}

// Add adds a capture.
func (x *CDXJ) Add(c Capture) error {
	f := cdxjFields{
		URL: c.URL, MIME: c.MIME, Digest: c.Digest, Length: strconv.FormatInt(c.Length, 10), Offset: strconv.FormatInt(c.Offset, 10), Filename: x.warc,
	}
	if c.Status != 0 {
		f.Status = strconv.Itoa(c.Status)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s ", SURT(c.URL), c.At.UTC().Format("20060102150405"))
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(f); err != nil {
		return fmt.Errorf("index %s: %w", c.URL, err)
	}
	x.lines = append(x.lines, b.String())
	if x.bytes += b.Len(); x.bytes < cdxjMemory {
		return nil
	}
	return x.spill()
}

// spill puts the lines that are held into a sorted run.
func (x *CDXJ) spill() error {
	f, err := os.CreateTemp("", "assay-cdxj-*")
	if err != nil {
		return fmt.Errorf("sort the index: %w", err)
	}
	x.runs = append(x.runs, f)
	slices.Sort(x.lines)
	w := bufio.NewWriter(f)
	for _, line := range x.lines {
		if _, err := w.WriteString(line); err != nil {
			return fmt.Errorf("sort the index: %w", err)
		}
	}
	x.lines, x.bytes = nil, 0
	if err := w.Flush(); err != nil {
		return fmt.Errorf("sort the index: %w", err)
	}
	return nil
}

// WriteTo writes all lines in order.
func (x *CDXJ) WriteTo(out io.Writer) (n int64, err error) {
	slices.Sort(x.lines)
	runs := &runHeap{{next: func() (string, error) {
		if len(x.lines) == 0 {
			return "", io.EOF
		}
		line := x.lines[0]
		x.lines = x.lines[1:]
		return line, nil
	}}}
	for _, f := range x.runs {
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return n, err
		}
		r := bufio.NewReader(f)
		*runs = append(*runs, &run{next: func() (string, error) { return r.ReadString('\n') }})
	}
	var open runHeap
	for _, r := range *runs {
		switch r.line, err = r.next(); {
		case err == nil:
			open = append(open, r)
		case !errors.Is(err, io.EOF):
			return n, err
		}
	}
	heap.Init(&open)
	for len(open) > 0 {
		first := open[0]
		m, err := io.WriteString(out, first.line)
		n += int64(m)
		if err != nil {
			return n, err
		}
		switch first.line, err = first.next(); {
		case err == nil:
			heap.Fix(&open, 0)
		case errors.Is(err, io.EOF):
			heap.Pop(&open)
		default:
			return n, err
		}
	}
	return n, nil
}

// Close removes the runs.
func (x *CDXJ) Close() error {
	var errs []error
	for _, f := range x.runs {
		errs = append(errs, f.Close(), os.Remove(f.Name()))
	}
	x.runs = nil
	return errors.Join(errs...)
}

// A run is a sorted list of lines and its first one.
type run struct {
	line string
	next func() (string, error)
}

type runHeap []*run

func (h runHeap) Len() int           { return len(h) }
func (h runHeap) Less(i, j int) bool { return h[i].line < h[j].line }
func (h runHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *runHeap) Push(x any)        { *h = append(*h, x.(*run)) }
func (h *runHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

var numberedWWW = regexp.MustCompile(`^www\d*\.`)

// SURT returns the key that an address has in indexes of web archives, as the canonicalizer of the
// Internet Archive makes it but for session ids, which stay: host reversed and without www, everything in
// lower case, parameters sorted, no slash at the end.
func SURT(address string) string {
	scheme, rest, ok := strings.Cut(address, "://")
	if !ok {
		return address
	}
	rest, _, _ = strings.Cut(rest, "#")
	authority, path := rest, ""
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		authority, path = rest[:i], rest[i:]
	}
	authority = authority[strings.LastIndexByte(authority, '@')+1:]
	host, port := authority, ""
	if i := strings.LastIndexByte(authority, ':'); i >= 0 && !strings.HasSuffix(authority, "]") {
		host, port = authority[:i], authority[i:]
	}
	if scheme == "http" && port == ":80" || scheme == "https" && port == ":443" {
		port = ""
	}
	if v6, ok := strings.CutPrefix(host, "["); ok {
		host = strings.TrimSuffix(v6, "]")
	}
	labels := strings.Split(numberedWWW.ReplaceAllString(strings.ToLower(host), ""), ".")
	slices.Reverse(labels)
	path, query, _ := strings.Cut(path, "?")
	path = strings.ToLower(escapedOnce(cleanPath(unescaped(path))))
	if len(path) > 1 {
		path = strings.TrimSuffix(path, "/")
	}
	if query = strings.ToLower(escapedOnce(unescaped(query))); query != "" {
		query = "?" + sortedQuery(query)
	}
	return strings.Join(labels, ",") + port + ")" + path + query
}

// unescaped undoes percent escapes until there are none.
func unescaped(s string) string {
	for {
		var b strings.Builder
		for i := 0; i < len(s); i++ {
			if i+2 < len(s) && s[i] == '%' {
				if plain, err := url.PathUnescape(s[i : i+3]); err == nil {
					b.WriteString(plain)
					i += 2
					continue
				}
			}
			b.WriteByte(s[i])
		}
		if b.Len() == len(s) {
			return s
		}
		s = b.String()
	}
}

// escapedOnce escapes what is no printable ASCII, the percent sign and the number sign.
func escapedOnce(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if c := s[i]; c <= ' ' || c >= 0x7f || c == '%' || c == '#' {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// cleanPath resolves dots and drops empty segments.
func cleanPath(path string) string {
	if path == "" {
		return "/"
	}
	var kept []string
	segments := strings.Split(path, "/")[1:]
	for _, s := range segments {
		switch {
		case s == ".":
		case s == ".." && len(kept) > 0:
			kept = kept[:len(kept)-1]
		default:
			kept = append(kept, s)
		}
	}
	var b strings.Builder
	b.WriteByte('/')
	for i, s := range kept {
		switch {
		case i == len(kept)-1:
			b.WriteString(s)
		case s != "":
			b.WriteString(s + "/")
		}
	}
	return b.String()
}

// sortedQuery sorts the parameters of a query by name, then by value.
func sortedQuery(query string) string {
	params := strings.Split(query, "&")
	slices.SortFunc(params, func(a, b string) int {
		an, av, ahas := strings.Cut(a, "=")
		bn, bv, bhas := strings.Cut(b, "=")
		if ahas != bhas && an == bn {
			return map[bool]int{true: 1, false: -1}[ahas]
		}
		return cmp.Or(strings.Compare(an, bn), strings.Compare(av, bv))
	})
	return strings.Join(params, "&")
}
