package fetch

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/net/html/charset"
)

// in writes text in a charset.
func in(t testing.TB, name, text string) []byte {
	t.Helper()
	enc, _ := charset.Lookup(name)
	if enc == nil {
		t.Fatalf("no charset %q", name)
	}
	b, err := enc.NewEncoder().Bytes([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Sentences that we wrote, long enough for a guess.
const (
	russian = "Проверка показала, что новый мост через реку открыли весной, а не осенью, как утверждал глава города на встрече с жителями."
	french  = "Le pont a été rouvert à l'été, après plusieurs années de travaux financés par la région où naît la rivière."
	chinese = "据本报了解，新建的大桥在春天通车，而不是市长在会上所说的秋天，居民们对此感到十分惊讶。"
	korean  = "새로 지은 다리는 시장이 말한 것처럼 가을이 아니라 봄에 개통되었다고 주민들이 전했다."
	japan   = "新しい橋は市長が言ったように秋ではなく春に開通したと住民が伝えた。"
)

func meta(name, text string) string {
	return `<html><head><meta http-equiv="Content-Type" content="text/html; charset=` + name + `"><title>t</title></head><body><p>` + text + `</p></body></html>`
}

func TestCharset(t *testing.T) {
	stray := "<p>" + strings.Repeat(french+" ", 50) + "<!-- d\xe9but -->"
	for _, c := range []struct {
		name, kind string
		body       []byte
		charset    string
		from       string
		contains   string
	}{
		{"UTF-8, undeclared", "text/html", []byte("<p>" + french), "utf-8", fromGuess, french},
		{"ASCII, undeclared", "text/html", []byte("<p>bridge"), "utf-8", fromGuess, "bridge"},
		{"UTF-8 by header", "text/html; charset=UTF-8", []byte("<p>" + french), "utf-8", fromHeader, french},
		{"UTF-8 by meta", "text/html", []byte(meta("utf-8", french)), "utf-8", fromMeta, french},
		{"short meta", "text/html", in(t, "koi8-r", `<meta charset=koi8-r><p>`+russian), "koi8-r", fromMeta, russian},
		{"XML declaration", "application/rss+xml", in(t, "windows-1251", `<?xml version="1.0" encoding="windows-1251"?><rss>`+russian), "windows-1251", fromMeta, russian},
		{"header before meta", "text/html; charset=windows-1251", in(t, "windows-1251", meta("koi8-r", russian)), "windows-1251", fromHeader, russian},
		{"header in quotes", `text/html; charset="windows-1251"`, in(t, "windows-1251", "<p>"+russian), "windows-1251", fromHeader, russian},
		{"header badly written", `text/html; ; charset=windows-1251; =`, in(t, "windows-1251", "<p>"+russian), "windows-1251", fromHeader, russian},
		{"unknown charset in the header", "text/html; charset=none", in(t, "windows-1251", meta("windows-1251", russian)), "windows-1251", fromMeta, russian},
		{"header says UTF-8, page is GB2312", "text/html; charset=utf-8", in(t, "gbk", meta("gb2312", chinese)), "gbk", fromMeta, chinese},
		{"script of an archive says UTF-8", "text/html", in(t, "gbk", `<script src="/a.js" charset="utf-8"></script>`+meta("gb2312", chinese)), "gbk", fromMeta, chinese},
		{"charset in a comment", "text/html", in(t, "gbk", `<!-- <meta charset=utf-8> -->`+meta("gb2312", chinese)), "gbk", fromMeta, chinese},
		{"GB2312 that uses characters of GB18030", "text/html", in(t, "gb18030", meta("gb2312", chinese+"𠮷")), "gbk", fromMeta, "𠮷"},
		{"Shift_JIS declared, UTF-8 inside", "text/html", []byte(meta("shift_jis", japan)), "utf-8", fromGuess, japan},
		{"Latin-1 by header, UTF-8 by meta and inside", "text/html; charset=iso-8859-1", []byte(meta("utf-8", french)), "utf-8", fromMeta, french},
		{"Latin-1 declared, one UTF-8 letter inside", "text/html; charset=iso-8859-1", []byte("<p>caf\u00e9"), "utf-8", fromGuess, "café"},
		{"Latin-1 declared and right", "text/html; charset=iso-8859-1", in(t, "windows-1252", "<p>"+french), "windows-1252", fromHeader, french},
		{"Latin-1 page with quotes of windows-1252", "text/html; charset=iso-8859-1", []byte("<p>\x93yes\x94"), "windows-1252", fromHeader, "“yes”"},
		{"one Latin-1 byte in a UTF-8 page", "text/html; charset=utf-8", []byte(stray), "utf-8", fromHeader, french},
		{"one Latin-1 byte in an undeclared UTF-8 page", "text/html", []byte(stray), "utf-8", fromGuess, french},
		{"one Latin-1 byte in a UTF-8 page that says so itself", "text/html", []byte(meta("utf-8", french) + "<!-- d\xe9but -->"), "utf-8", fromMeta, french},
		{"one Latin-1 byte in a UTF-8 page that says Latin-1", "text/html", []byte(meta("iso-8859-1", strings.Repeat(french, 5)) + "\xe9"), "utf-8", fromGuess, french},
		{"one Latin-1 byte in a UTF-8 feed that says Latin-1", "application/xml", []byte(`<?xml version="1.0" encoding="iso-8859-1"?>` + strings.Repeat(french, 5) + "\xe9"), "utf-8", fromGuess, french},
		{"one Latin-1 byte, Latin-1 by header, UTF-8 by meta", "text/html; charset=iso-8859-1", []byte(meta("utf-8", strings.Repeat(french, 5)) + "\xe9"), "utf-8", fromMeta, french},
		{"one byte of another code page in a UTF-8 page that says GB2312", "text/html", []byte(meta("gb2312", chinese) + "\x80"), "utf-8", fromGuess, chinese},
		{"as many stray bytes as a UTF-8 page may have", "text/html", []byte(meta("iso-8859-1", strings.Repeat("\u00e9", 2*strayBytes)+"\xe9\xe9")), "utf-8", fromGuess, "éé"},
		{"one more", "text/html", []byte(meta("iso-8859-1", strings.Repeat("\u00e9", 2*strayBytes)+"\xe9\xe9\xe9")), "windows-1252", fromMeta, "Ã©ééé"},
		{"Latin-1 declared, one letter in all", "text/html", []byte(meta("iso-8859-1", "caf\xe9")), "windows-1252", fromMeta, "café"},
		{"UTF-8 declared, Latin-1 inside", "text/html; charset=utf-8", in(t, "windows-1252", "<p>"+french), "windows-1252", fromGuess, french},
		{"undeclared Latin-1", "text/html", in(t, "windows-1252", "<p>"+strings.Repeat(french, 3)), "windows-1252", fromGuess, french},
		{"undeclared, one letter", "text/html", []byte("<p>caf\xe9"), "windows-1252", fromGuess, "café"},
		{"undeclared Cyrillic", "text/html", in(t, "windows-1251", "<p>"+strings.Repeat(russian, 3)), "windows-1251", fromGuess, russian},
		{"undeclared Chinese", "text/html", in(t, "gbk", "<p>"+strings.Repeat(chinese, 3)), "gb18030", fromGuess, chinese},
		{"undeclared Korean", "text/html", in(t, "euc-kr", "<p>"+strings.Repeat(korean, 3)), "euc-kr", fromGuess, korean},
		{"escaped Japanese", "text/html; charset=iso-2022-jp", in(t, "iso-2022-jp", "<p>"+japan), "iso-2022-jp", fromHeader, japan},
		{"UTF-16 by mark", "text/html", in(t, "utf-16le", "\ufeff<p>"+french), "utf-16le", fromBOM, french},
		{"UTF-16 by mark, other order, other header", "text/html; charset=utf-8", in(t, "utf-16be", "\ufeff<p>"+french), "utf-16be", fromBOM, french},
		{"UTF-16 by header", "text/html; charset=utf-16le", in(t, "utf-16le", "<p>"+french), "utf-16le", fromHeader, french},
		{"UTF-16 without a word", "text/html", in(t, "utf-16be", "<p>"+french), "utf-16be", fromGuess, french},
		{"UTF-16 declared, which cannot be", "text/html", []byte(meta("utf-16", french)), "utf-8", fromMeta, french},
		{"JSON that holds a page", "application/json", []byte(`{"html": "<meta charset=windows-1251>", "text": "` + french + `"}`), "utf-8", fromGuess, french},
		{"gzip type of what is text when decoded", "application/gzip", in(t, "windows-1252", `<?xml version="1.0" encoding="iso-8859-1"?><p>`+french), "windows-1252", fromMeta, french},
		{"picture", "image/png", []byte("\x89PNG\r\n\x1a\n\x00\x00\xff"), "", "", "PNG"},
		{"document", "application/pdf", []byte("%PDF-1.4 \xff\xfe\xfd"), "", "", "PDF"},
		{"nothing", "text/html", nil, "utf-8", fromGuess, ""},
	} {
		p, err := NewPage("https://a.example/", http.Header{"Content-Type": {c.kind}}, c.body, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		if name, from := p.Charset(); name != c.charset || from != c.from || !strings.Contains(p.Text(), c.contains) {
			t.Errorf("%s: charset %q from %q, text %.80q; want %q from %q", c.name, name, from, p.Text(), c.charset, c.from)
		}
		if !utf8.ValidString(p.Text()) {
			t.Errorf("%s: the text is not UTF-8", c.name)
		}
	}
}

// The kind: a page's charset is guessed although it is declared. The two pages of the trial; by other
// routes the declaration of a feed and of a page that an archive wraps; the boundary is a declaration
// that comes as late as it may.
func TestHD01DeclaredCharset(t *testing.T) {
	late := strings.Repeat("<!-- filler of a tag manager -->\n", metaWindow/33-10)
	word := "Проверка"
	for _, c := range []struct {
		name, kind string
		body       string
		charset    string
		from       string
		title      string
		text       string
	}{
		{"meta alone", "text/html", `<html><head><meta charset="windows-1251"><title>` + "\xcf\xf0\xee\xe2\xe5\xf0\xea\xe0" + `</title></head><body><article><p>` +
			"\xd3\xf2\xe2\xe5\xf0\xe6\xe4\xe5\xed\xe8\xe5 \xeb\xee\xe6\xed\xee" + `</p></article></body></html>`, "windows-1251", fromMeta, word, "Утверждение ложно"},
		{"mark against header", "text/html; charset=iso-8859-1", "\ufeff<html><head><title>" + word + "</title></head><body><p>Утверждение ложно", "utf-8", fromBOM, word, "Утверждение ложно"},
		{"declaration after much", "text/html", string(in(t, "windows-1251", late+meta("windows-1251", word))), "windows-1251", fromMeta, "t", word},
		{"header against a guess", "text/html; charset=koi8-r", string(in(t, "koi8-r", "<title>"+word+"</title><p>Да")), "koi8-r", fromHeader, word, "Да"},
		{"mark and meta that disagree", "text/html", "\ufeff" + meta("koi8-r", word), "utf-8", fromBOM, "t", word},
	} {
		p, err := NewPage("https://a.example/", http.Header{"Content-Type": {c.kind}}, []byte(c.body), time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		if name, from := p.Charset(); name != c.charset || from != c.from {
			t.Errorf("%s: charset %q from %q, want %q from %q", c.name, name, from, c.charset, c.from)
		}
		doc, err := p.Doc()
		if err != nil {
			t.Fatal(err)
		}
		if got := textIn(doc, "title"); got != c.title {
			t.Errorf("%s: title %q, want %q", c.name, got, c.title)
		}
		if got := textIn(doc, "p"); got != c.text {
			t.Errorf("%s: paragraph %q, want %q", c.name, got, c.text)
		}
		if strings.Contains(p.Text(), "\ufffd") || strings.HasPrefix(p.Text(), "\ufeff") {
			t.Errorf("%s: the text has replacement characters or starts with a mark", c.name)
		}
	}
}

// textIn returns the text of the first element with a name.
func textIn(doc *html.Node, name string) string {
	for n := range doc.Descendants() {
		if n.Type == html.ElementNode && n.Data == name {
			text, _ := textOf(n, nil, 1000)
			return text
		}
	}
	return ""
}

// Every captured page decodes to what its collector saw, with no header, and with one that says UTF-8
// of everything.
func TestCharsetCaptures(t *testing.T) {
	dir := realDir(t)
	for _, r := range index(t, dir, "encodings/") {
		for _, kind := range []string{"text/html", "text/html; charset=utf-8"} {
			p, err := NewPage("https://a.example/"+filepath.Base(r.file), http.Header{"Content-Type": {kind}}, r.body(t, dir), time.Time{})
			if err != nil {
				t.Fatal(err)
			}
			doc, err := p.Doc()
			if err != nil {
				t.Fatal(err)
			}
			all, _ := textOf(doc, nil, 1<<20)
			name, from := p.Charset()
			for _, field := range []string{"title", "body_contains", "first_item_title"} {
				want := strings.Join(strings.Fields(r.text(field)), " ")
				if !strings.Contains(all, want) {
					t.Errorf("%s as %s, charset %s from %s: no %s %q", r.file, kind, name, from, field, want)
				}
			}
			if n := strings.Count(p.Text(), "\ufffd"); n > 1 {
				t.Errorf("%s as %s: %d replacement characters", r.file, kind, n)
			}
		}
	}
}

func FuzzCharset(f *testing.F) {
	f.Add("text/html; charset=koi8-r", in(f, "koi8-r", russian))
	f.Add("text/html", in(f, "gbk", meta("gb2312", chinese)))
	f.Add("text/html", in(f, "utf-16le", "\ufeff<p>x"))
	f.Add("text/html; charset=iso-2022-jp", []byte("\x1b$B\x1b(B<!--"))
	f.Fuzz(func(t *testing.T, kind string, body []byte) {
		name, from := findCharset(kind, body)
		text := decodeText(name, body)
		if !utf8.ValidString(text) || strings.HasPrefix(text, "\ufeff") {
			t.Errorf("findCharset = %q from %q: text %q is not UTF-8, or has a mark", name, from, text)
		}
		if again, _ := findCharset(kind, body); again != name {
			t.Errorf("findCharset = %q, then %q", name, again)
		}
	})
}
