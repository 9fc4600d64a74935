package fetch

import (
	"bytes"
	"compress/zlib"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"assay/corpus"
)

// pdfOf writes a PDF of one page per content stream, with an encoding that names a ligature, the way the
// standard's own example is built. The cross-reference table is right, so a cut one is a broken one.
func pdfOf(trailer string, contents ...string) []byte {
	var b bytes.Buffer
	var at []int
	object := func(body string) {
		at = append(at, b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", len(at), body)
	}
	b.WriteString("%PDF-1.4\n")
	kids := ""
	for i := range contents {
		kids += fmt.Sprintf("%d 0 R ", 5+2*i)
	}
	object("<< /Type /Catalog /Pages 2 0 R >>")
	object(fmt.Sprintf("<< /Type /Pages /Kids [%s] /Count %d >>", kids, len(contents)))
	object("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding << /BaseEncoding /WinAnsiEncoding /Differences [31 /f_f_i] >> >>")
	object("<< /Title (Harbor tolls of Eastvale) /Author (Port Office) /CreationDate (D:20240305101500+01'00') >>")
	for i, c := range contents {
		object(fmt.Sprintf("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >> /Contents %d 0 R >>", 6+2*i))
		object(fmt.Sprintf("<< /Length %d >>\nstream\n%s\nendstream", len(c), c))
	}
	start := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", len(at)+1)
	for _, n := range at {
		fmt.Fprintf(&b, "%010d 00000 n \n", n)
	}
	fmt.Fprintf(&b, "trailer\n<< /Size %d /Root 1 0 R /Info 4 0 R %s >>\nstartxref\n%d\n%%%%EOF\n", len(at)+1, trailer, start)
	return b.Bytes()
}

// lines writes a content stream of some lines.
func lines(text ...string) string {
	out := "BT /F1 11 Tf 14 TL 72 720 Td "
	for _, l := range text {
		out += "(" + l + ") Tj T* "
	}
	return out + "ET"
}

func pdfPageOf(t testing.TB, kind string, body []byte) *Page {
	t.Helper()
	p, err := NewPage("https://port.example/tolls.pdf", http.Header{"Content-Type": {kind}}, body, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPDF(t *testing.T) {
	body := pdfOf("", lines("The tolls of the harbor were raised by a third, says the o\x1fce of the port, which is why", "ships went else-", "where in that year and the next one."), lines("A second page tells what came of it."))
	for _, kind := range []string{"application/pdf", "application/octet-stream", ""} {
		a, err := pdfPageOf(t, kind, body).Article()
		if err != nil {
			t.Fatal(err)
		}
		want := "The tolls of the harbor were raised by a third, says the office of the port, which is why ships went elsewhere in that year and the next one.\n\nA second page tells what came of it."
		if a.Text != want || a.Title != "Harbor tolls of Eastvale" || a.Byline != "Port Office" || a.Published != "2024-03-05T09:15:00Z" || a.Partial {
			t.Errorf("%q: %+v\nwant %q", kind, a, want)
		}
	}
	if address, err := pdfPageOf(t, "application/pdf", body).Address(); err != nil || address != "https://port.example/tolls.pdf" {
		t.Errorf("%s, %v", address, err)
	}
}

// What a PDF cannot give is an outcome with a reason, never an empty article.
func TestPDFOutcomes(t *testing.T) {
	whole := pdfOf("", lines("Some words of a page that is whole."))
	encrypted := pdfOf("/Encrypt << /Filter /Standard /V 1 /R 2 /O <"+strings.Repeat("28", 32)+"> /U <"+strings.Repeat("13", 32)+"> /P -4 >> /ID [<00112233445566778899aabbccddeeff> <00112233445566778899aabbccddeeff>]", lines("Secret words."))
	cycle := bytes.Replace(pdfOf("", ""), []byte("/Kids [5 0 R ]"), []byte("/Kids [2 0 R ]"), 1)
	for name, c := range map[string]struct {
		body []byte
		want string
	}{
		"encrypted":         {encrypted, ReasonPDFEncrypted},
		"a scan":            {pdfOf("", "0 0 m 100 100 l S"), ReasonPDFScanned},
		"nothing":           {nil, ReasonPDFBroken},
		"not one":           {[]byte("<p>no such file"), ReasonPDFBroken},
		"its first line":    {whole[:9], ReasonPDFBroken},
		"a page tree cycle": {cycle, ReasonPDFBroken},
		"no pages":          {pdfOf(""), ReasonPDFBroken},
	} {
		a, err := pdfPageOf(t, "application/pdf", c.body).Article()
		var excluded *corpus.ExcludedError
		if !errors.As(err, &excluded) || excluded.Reason != c.want {
			t.Errorf("%s: %q, %v, want %s", name, a.Text, err, c.want)
		}
	}
	many := make([]string, maxPDFPages+1)
	for i := range many {
		many[i] = lines(fmt.Sprintf("This is page number %d of the report.", i+1))
	}
	a, err := pdfPageOf(t, "application/pdf", pdfOf("", many...)).Article()
	if err != nil || !a.Partial || !strings.Contains(a.Text, "page number 200 of") || strings.Contains(a.Text, "page number 201 of") {
		t.Errorf("%v, partial %v", err, a.Partial)
	}
}

// A small file that unpacks to very much ends within its bounds and leaves the next reader alone.
func TestPDFBomb(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine alone, and long: nothing for -short")
	}
	var packed bytes.Buffer
	w := zlib.NewWriter(&packed)
	for range 400 {
		if _, err := w.Write(bytes.Repeat([]byte("q "), 1<<17)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	body := bytes.Replace(pdfOf("", "@"), []byte("<< /Length 1 >>\nstream\n@\n"), []byte(fmt.Sprintf("<< /Length %d /Filter /FlateDecode >>\nstream\n%s\n", packed.Len(), packed.Bytes())), 1)
	a, err := pdfPageOf(t, "application/pdf", body).Article()
	var excluded *corpus.ExcludedError
	if !errors.As(err, &excluded) {
		t.Errorf("%d bytes became %q, %v", len(body), a.Text, err)
	}
	if _, err := pdfPageOf(t, "application/pdf", body).pdfArticle(20 * time.Millisecond); !errors.As(err, &excluded) || excluded.Reason != ReasonPDFTooMuch {
		t.Errorf("out of time: %v", err)
	}
	if _, err := pdfPageOf(t, "application/pdf", pdfOf("", lines("Some words after the flood of them."))).Article(); err != nil {
		t.Error(err)
	}
}

// Recorded files contain the sentence that their index expects; one of pictures says so.
func TestRealPDF(t *testing.T) {
	root := os.Getenv("ASSAY_REAL")
	if root == "" {
		t.Skip("ASSAY_REAL names no folder of captures")
	}
	index, err := os.ReadFile(filepath.Join(root, "INDEX.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	for line := range strings.Lines(string(index)) {
		f := strings.Split(line, "\t")
		if len(f) < 8 || f[1] != "pdf" {
			continue
		}
		var want struct {
			Contains  []string
			TextChars *int `json:"text_chars"`
		}
		if err := json.Unmarshal([]byte(f[7]), &want); err != nil {
			t.Fatal(err)
		}
		body, err := os.ReadFile(filepath.Join(root, f[0]))
		if err != nil {
			t.Fatal(err)
		}
		read++
		a, err := pdfPageOf(t, "application/pdf", body).Article()
		if want.TextChars != nil && *want.TextChars == 0 {
			var excluded *corpus.ExcludedError
			if !errors.As(err, &excluded) || excluded.Reason != ReasonPDFScanned {
				t.Errorf("%s: %v", f[0], err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", f[0], err)
		}
		for _, sentence := range want.Contains {
			if !strings.Contains(a.Text, sentence) {
				t.Errorf("%s: no %q in\n%s", f[0], sentence, a.Text)
			}
		}
		if strings.ContainsRune(a.Text, utf8.RuneError) {
			t.Errorf("%s: letters without a name", f[0])
		}
	}
	if read == 0 {
		t.Error("the index has no PDF")
	}
}

// Whatever a body is, reading it ends in an article with text or in an outcome.
func FuzzPDF(f *testing.F) {
	whole := pdfOf("", lines("The tolls of the harbor were raised by a third."))
	for _, seed := range [][]byte{whole, whole[:len(whole)/2], bytes.ReplaceAll(whole, []byte("/Count 1"), []byte("/Count 99999999")), []byte("%PDF-1.7\n1 0 obj<</Type/ObjStm/N 9/First 99/Length 9>>stream\nxxxxxxxxx\nendstream"), pdfOf("/Prev 9")} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		a, err := pdfPageOf(t, "application/pdf", body).Article()
		var excluded *corpus.ExcludedError
		if err == nil && (strings.TrimSpace(a.Text) == "" || !utf8.ValidString(a.Text)) {
			t.Errorf("an article of %q", a.Text)
		}
		if err != nil && !errors.As(err, &excluded) {
			t.Error(err)
		}
	})
}
