package fetch

import (
	"bytes"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/klippa-app/go-pdfium"
	pdferrors "github.com/klippa-app/go-pdfium/errors"
	"github.com/klippa-app/go-pdfium/references"
	"github.com/klippa-app/go-pdfium/requests"
	"github.com/klippa-app/go-pdfium/webassembly"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"golang.org/x/text/unicode/norm"

	"assay/corpus"
)

// Reasons why a PDF gives no text. Each is an outcome: the file is known and says nothing that we read.
const (
	ReasonPDFEncrypted = "pdf_encrypted" // it opens with a password alone
	ReasonPDFScanned   = "pdf_scanned"   // pages without any text: pictures of pages
	ReasonPDFBroken    = "pdf_broken"    // no PDF, cut, or damaged beyond repair
	ReasonPDFTooMuch   = "pdf_too_much"  // more time or memory than a reader is given
)

const (
	maxPDFPages  = 200              // read of one file; the rest makes it partial
	maxPDFText   = 4 << 20          // bytes of text of one file; the rest makes it partial
	maxPDFMemory = 256 << 20        // bytes that a reader may hold
	maxPDFTime   = 60 * time.Second // of one file; a page takes about a tenth of a second
	pdfPage      = 64 << 10         // unit of a reader's memory
)

// isPDF reports whether a body is a PDF: by its first bytes, which may follow some others, or by what its
// server calls it.
func isPDF(kind string, body []byte) bool {
	return kind == "application/pdf" || kind == "application/x-pdf" || bytes.Contains(body[:min(len(body), 1024)], []byte("%PDF-")) && !strings.Contains(kind, "html")
}

// pdfReaders are PDFium, compiled to WebAssembly: a file from anywhere is read in a sandbox, with bounds on
// memory and time, and whatever it does to its reader ends there. It is compiled once per process, and the
// outcome kept in the user's cache folder for the next.
var pdfReaders = sync.OnceValues(func() (pdfium.Pool, error) {
	config := wazero.NewRuntimeConfig().
		WithCoreFeatures(api.CoreFeaturesV2 | experimental.CoreFeaturesExceptionHandling).
		WithMemoryLimitPages(maxPDFMemory / pdfPage).
		WithCloseOnContextDone(true)
	if dir, err := os.UserCacheDir(); err == nil {
		// Without a cache every process compiles anew, which is slow and nothing else.
		if cache, err := wazero.NewCompilationCacheWithDir(filepath.Join(dir, "assay", "pdf")); err == nil {
			config = config.WithCompilationCache(cache)
		}
	}
	pool, err := webassembly.Init(webassembly.Config{
		MaxIdle: 1, MaxTotal: runtime.GOMAXPROCS(0), RuntimeConfig: config,
		FSConfig: wazero.NewFSConfig(), // it sees no file
		Stdout:   io.Discard, Stderr: io.Discard,
	})
	if err != nil {
		return nil, fmt.Errorf("start the reader of PDFs: %w", err)
	}
	return pool, nil
})

// pdfArticle reads the text of a PDF. What gives none is a *corpus.ExcludedError with one of the reasons above.
func (p *Page) pdfArticle(within time.Duration) (Article, error) {
	pool, err := pdfReaders()
	if err != nil {
		return Article{}, err
	}
	reader, err := pool.GetInstance(10 * maxPDFTime) // as many wait as there are readers
	if err != nil {
		return Article{}, fmt.Errorf("read the PDF %s: %w", p.Final, err)
	}
	var killed sync.WaitGroup
	killed.Add(1)
	late := time.AfterFunc(within, func() {
		defer killed.Done()
		_ = reader.Kill() // whatever it was doing ends with an error
	})
	a, err := readPDF(reader, p.body)
	if late.Stop() {
		if cerr := reader.Close(); cerr != nil && err == nil {
			err = corpus.Exclude(ReasonPDFBroken, cerr.Error())
		}
	} else {
		killed.Wait()
		err = corpus.Exclude(ReasonPDFTooMuch, fmt.Sprintf("it was not read within %s", within))
	}
	if err != nil {
		return Article{}, fmt.Errorf("read the PDF %s: %w", p.Final, err)
	}
	a.Partial = a.Partial || p.truncated
	return a, nil
}

// readPDF reads a file with one reader, which is of no use after a panic.
func readPDF(reader pdfium.Pdfium, body []byte) (a Article, err error) {
	defer func() {
		if r := recover(); r != nil {
			a, err = Article{}, corpus.Exclude(ReasonPDFBroken, fmt.Sprint("its reader gave up: ", r))
		}
	}()
	opened, err := reader.OpenDocument(&requests.OpenDocument{File: &body})
	if err != nil {
		return a, unopened(err)
	}
	doc := opened.Document
	count, err := reader.FPDF_GetPageCount(&requests.FPDF_GetPageCount{Document: doc})
	if err != nil || count.PageCount == 0 {
		return a, corpus.Exclude(ReasonPDFBroken, "it has no pages")
	}
	letters := glyphNames(body)
	var pages []string
	size, unread := 0, 0
	for i := range min(count.PageCount, maxPDFPages) {
		text, err := reader.GetPageText(&requests.GetPageText{Page: requests.Page{ByIndex: &requests.PageByIndex{Document: doc, Index: i}}})
		if err != nil {
			unread++
			continue
		}
		if size += len(text.Text); size > maxPDFText {
			a.Partial = true
			break
		}
		if lines := pdfLines(text.Text, letters); lines != "" {
			pages = append(pages, lines)
		}
	}
	a.Text = strings.Join(pages, "\n\n")
	switch {
	case a.Text == "" && unread > 0:
		return a, corpus.Exclude(ReasonPDFBroken, fmt.Sprintf("none of its %d pages can be read", count.PageCount))
	case a.Text == "":
		return a, corpus.Exclude(ReasonPDFScanned, fmt.Sprintf("%d pages without text", count.PageCount))
	}
	a.Partial = a.Partial || unread > 0 || count.PageCount > maxPDFPages
	a.Title = pdfTitle(pdfMeta(reader, doc, "Title"))
	a.Byline = corpus.Space(pdfMeta(reader, doc, "Author"))
	a.Published = pdfDate(pdfMeta(reader, doc, "CreationDate"))
	return a, nil
}

// unopened says why a file cannot be opened.
func unopened(err error) error {
	switch {
	case errors.Is(err, pdferrors.ErrPassword), errors.Is(err, pdferrors.ErrSecurity):
		return corpus.Exclude(ReasonPDFEncrypted, "it opens with a password alone")
	case errors.Is(err, pdferrors.ErrFile), errors.Is(err, pdferrors.ErrFormat), errors.Is(err, pdferrors.ErrPage), errors.Is(err, pdferrors.ErrUnexpected), errors.Is(err, pdferrors.ErrUnknown):
		return corpus.Exclude(ReasonPDFBroken, err.Error())
	}
	return corpus.Exclude(ReasonPDFTooMuch, err.Error()) // the sandbox stopped it
}

func pdfMeta(reader pdfium.Pdfium, doc references.FPDF_DOCUMENT, tag string) string {
	got, err := reader.FPDF_GetMetaText(&requests.FPDF_GetMetaText{Document: doc, Tag: tag})
	if err != nil {
		return ""
	}
	return got.Value
}

// pdfTitle is a title that a person gave. Most files bear the name under which a program wrote them.
func pdfTitle(title string) string {
	title = corpus.Space(title)
	if !strings.Contains(title, " ") || strings.HasPrefix(title, "Microsoft Word - ") || strings.HasSuffix(strings.ToLower(title), ".pdf") {
		return ""
	}
	return title
}

// pdfDateForm is D:YYYYMMDDHHmmSSOHH'mm', of which all after the year may be missing (ISO 32000-1, 7.9.4).
var pdfDateForm = regexp.MustCompile(`^(?:D:)?(\d{4})(\d\d)(\d\d)(?:(\d\d)(\d\d)(\d\d)?)?(Z|[+-]\d\d(?:'?\d\d)?)?`)

// pdfDate is when a file says that it was made: RFC 3339, a date where it tells no time or no zone, or "".
func pdfDate(s string) string {
	m := pdfDateForm.FindStringSubmatch(strings.TrimSpace(s))
	if m == nil {
		return ""
	}
	day := m[1] + "-" + m[2] + "-" + m[3]
	if _, err := time.Parse(time.DateOnly, day); err != nil || m[1] < "1980" {
		return ""
	}
	if m[4] == "" || m[7] == "" {
		return day
	}
	zone := strings.NewReplacer("'", "").Replace(m[7])
	if zone == "Z" {
		zone = "+0000"
	}
	if len(zone) == 3 {
		zone += "00"
	}
	if m[6] == "" {
		m[6] = "00"
	}
	t, err := time.Parse("2006-01-02150405-0700", day+m[4]+m[5]+m[6]+zone)
	if err != nil {
		return day
	}
	return dateOrTime(t)
}

// hyphenated is how PDFium writes a hyphen at the end of a line that divides a word.
const hyphenated = '\x02'

// pdfLines makes paragraphs of the lines of a page: words that a line divides are joined, and so are the
// lines of running text. Rows of a table stay lines.
func pdfLines(text string, letters map[rune]string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == hyphenated, r == '\u00ad', r == 0:
			// The rest of the word follows.
		case r == '\r':
		case letters[r] != "":
			b.WriteString(letters[r])
		case r != '\n' && r != '\t' && unicode.IsControl(r):
			b.WriteRune(utf8.RuneError) // a letter that the font does not name
		case r >= 0xfb00 && r <= 0xfb06: // ligatures
			b.WriteString(norm.NFKC.String(string(r)))
		default:
			b.WriteRune(r)
		}
	}
	var lines []string
	longest := 0
	for line := range strings.Lines(b.String()) {
		if line = corpus.Space(line); line != "" {
			lines = append(lines, line)
			longest = max(longest, utf8.RuneCountInString(line))
		}
	}
	var out []string
	var open strings.Builder
	for i, line := range lines {
		if open.Len() > 0 {
			open.WriteByte(' ')
		}
		open.WriteString(line)
		if i+1 == len(lines) || !runsOn(line, lines[i+1], longest) {
			out = append(out, open.String())
			open.Reset()
		}
	}
	return strings.Join(out, "\n\n")
}

// runsOn reports whether a line of running text goes on in the next.
func runsOn(line, next string, longest int) bool {
	if !prose(line) {
		return false
	}
	first, _ := utf8.DecodeRuneInString(next)
	last, _ := utf8.DecodeLastRuneInString(line)
	full := 10*utf8.RuneCountInString(line) >= 7*longest
	switch {
	case unicode.IsLower(first):
		return true
	case !unicode.IsLetter(first) && !unicode.IsDigit(first) && first != '(' && first != '"' && first != '“':
		return false // a bullet or a rule
	case strings.ContainsRune(".!?:;", last):
		return full && prose(next)
	}
	return full
}

// prose reports whether a line is of words rather than numbers.
func prose(line string) bool {
	letters, words := 0, len(strings.Fields(line))
	for _, r := range line {
		if unicode.IsLetter(r) {
			letters++
		}
	}
	return words >= 4 && 10*letters >= 6*(utf8.RuneCountInString(line)-words)
}

var (
	differences = regexp.MustCompile(`/Differences\s*\[([^\]]+)\]`)
	pdfStream   = regexp.MustCompile(`/ObjStm\b[^>]{0,400}>>\s*stream\r?\n`)
)

// glyphNames maps codes that PDFium leaves alone to the letters that the file's fonts name them by. It knows
// no names of several letters, f_f_i (Adobe Glyph List Specification, section 2), and these are what ligatures
// are called. A code that fonts name differently is not mapped.
func glyphNames(body []byte) map[rune]string {
	out, unsure := map[rune]string{}, map[rune]bool{}
	note := func(code int, name string) {
		if code < 1 || code >= ' ' {
			return
		}
		letters := expandName(name)
		r := rune(code)
		if had, ok := out[r]; letters == "" || ok && had != letters {
			unsure[r] = true
		}
		out[r] = letters
	}
	read := func(objects []byte) {
		for _, m := range differences.FindAllSubmatch(objects, 1000) {
			code := 0
			for _, f := range strings.Fields(strings.ReplaceAll(string(m[1]), "/", " /")) {
				if name, ok := strings.CutPrefix(f, "/"); ok {
					note(code, name)
					code++
				} else if n, err := strconv.Atoi(f); err == nil && n >= 0 && n < math.MaxUint8 {
					code = n
				}
			}
		}
	}
	read(body)
	for _, at := range pdfStream.FindAllIndex(body, 1000) {
		in, err := zlib.NewReader(bytes.NewReader(body[at[1]:]))
		if err != nil {
			continue // coded in another way
		}
		objects, _ := io.ReadAll(io.LimitReader(in, 4<<20)) // what could be read of it counts
		read(objects)
	}
	for r := range unsure {
		delete(out, r)
	}
	return out
}

// expandName gives the letters of a glyph's name that is made of letters, "" for any other.
func expandName(name string) string {
	name, _, _ = strings.Cut(name, ".")
	switch name {
	case "ff", "fi", "fl", "ffi", "ffl", "st":
		return name
	}
	parts := strings.Split(name, "_")
	if len(parts) < 2 {
		return ""
	}
	for _, p := range parts {
		if len(p) != 1 || !unicode.IsLetter(rune(p[0])) {
			return ""
		}
	}
	return strings.Join(parts, "")
}
