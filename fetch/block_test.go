package fetch

import (
	"archive/tar"
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/ulikunitz/xz"
)

// realDir is the folder of captures; the test is skipped where there is none.
func realDir(t testing.TB) string {
	t.Helper()
	dir := os.Getenv("ASSAY_REAL")
	if dir == "" {
		t.Skip("skipped: ASSAY_REAL is not set")
	}
	return dir
}

// A captureRow is one line of the index of captures.
type captureRow struct {
	file, kind, url string
	want            map[string]any
}

func (r captureRow) text(field string) string { s, _ := r.want[field].(string); return s }

// index reads the index of captures below a folder of it, all of it for "".
func index(t testing.TB, dir, below string) []captureRow {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, "INDEX.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var rows []captureRow
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		cols := strings.Split(lines.Text(), "\t")
		if len(cols) < 8 || cols[0] == "file" || !strings.HasPrefix(cols[0], below) {
			continue
		}
		r := captureRow{file: cols[0], kind: cols[1], url: cols[6]}
		if cols[7] != "" {
			if err := json.Unmarshal([]byte(cols[7]), &r.want); err != nil {
				t.Fatalf("%s: %v", r.file, err)
			}
		}
		rows = append(rows, r)
	}
	if len(rows) == 0 {
		t.Fatalf("no captures below %q", below)
	}
	return rows
}

// body reads a capture, without the gzip that holds some of them.
func (r captureRow) body(t testing.TB, dir string) []byte {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, r.file))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var in io.Reader = f
	if strings.HasSuffix(r.file, ".gz") {
		if in, err = gzip.NewReader(f); err != nil {
			t.Fatal(err)
		}
	}
	b, err := io.ReadAll(in)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// eachBulkPage reads the archives of PolitiFact pages.
func eachBulkPage(t testing.TB, dir string, page func(name string, body []byte)) {
	t.Helper()
	archives, err := filepath.Glob(filepath.Join(dir, "politifact", "bulk", "*.tar.xz"))
	if err != nil || len(archives) == 0 {
		t.Fatalf("no archives of pages: %v", err)
	}
	for _, name := range archives {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		z, err := xz.NewReader(bufio.NewReader(f))
		if err != nil {
			t.Fatal(err)
		}
		files := tar.NewReader(z)
		for {
			h, err := files.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if h.Typeflag != tar.TypeReg {
				continue
			}
			body, err := io.ReadAll(files)
			if err != nil {
				t.Fatal(err)
			}
			page(h.Name, body)
		}
	}
}

var htmlType = http.Header{"Content-Type": {"text/html; charset=utf-8"}}

func TestClassifyStatus(t *testing.T) {
	page := "<html><head><title>Harbour news</title></head><body><p>" + strings.Repeat("The ferry to the island sails again this week. ", 20) + "</p></body></html>"
	for _, c := range []struct {
		name   string
		status int
		header http.Header
		body   string
		class  Class
		reason string
	}{
		{"page", 200, htmlType, page, ClassOK, ""},
		{"page without a type", 200, nil, page, ClassOK, ""},
		{"redirect", 301, http.Header{"Location": {"/new"}}, "", ClassOK, ""},
		{"redirect to nowhere", 302, nil, "", ClassFailed, "status_302"},
		{"unchanged", 304, nil, "", ClassOK, ""},
		{"not found", 404, htmlType, page, ClassGone, "status_404"},
		{"gone", 410, htmlType, "", ClassGone, "status_410"},
		{"withheld", 451, htmlType, page, ClassGone, "status_451"},
		{"password", 401, htmlType, "", ClassBlocked, "status_401"},
		{"forbidden without a word", 403, htmlType, "", ClassBlocked, "status_403"},
		{"forbidden in JSON", 403, http.Header{"Content-Type": {"application/json"}}, `{"error": 403}`, ClassBlocked, "status_403"},
		{"limit", 429, htmlType, page, ClassThrottled, "rate-limit"},
		{"busy", 503, http.Header{"Retry-After": {"30"}}, "", ClassThrottled, "status_503"},
		{"down", 503, htmlType, "<h1>Service unavailable</h1>", ClassFailed, "status_503"},
		{"broken", 500, htmlType, page, ClassFailed, "status_500"},
		{"bad request", 400, htmlType, "", ClassFailed, "status_400"},
		{"challenge by header", 403, http.Header{"Cf-Mitigated": {"challenge"}}, "", ClassBlocked, "cloudflare-js"},
		{"challenge of a firewall", 202, http.Header{"X-Amzn-Waf-Action": {"challenge"}}, "", ClassBlocked, "captcha"},
		{"empty page", 200, htmlType, " \n", ClassBlocked, "empty"},
		{"empty feed", 200, http.Header{"Content-Type": {"application/rss+xml"}}, "", ClassOK, ""},
		{"empty robots", 200, http.Header{"Content-Type": {"text/plain"}}, "", ClassOK, ""},
		{"JSON that speaks of robots", 200, http.Header{"Content-Type": {"application/json"}}, `{"title": "Access Denied", "text": "too many requests"}`, ClassOK, ""},
		{"error page that offers to log in", 500, htmlType, `<form><input type="password"></form>`, ClassFailed, "status_500"},
	} {
		class, reason := classify(c.status, c.header, []byte(c.body))
		if class != c.class || reason != c.reason {
			t.Errorf("%s: classify = %s %q, want %s %q", c.name, class, reason, c.class, c.reason)
		}
	}
}

// words returns n words of text that is about nothing a wall speaks of.
func words(n int) string {
	list := strings.Fields("the council of the harbour town voted on tuesday to rebuild its old bridge before winter because boats could no longer pass below it at high water and three of its arches had moved")
	var b strings.Builder
	for i := range n {
		b.WriteString(list[i%len(list)] + " ")
	}
	return b.String()
}

func TestClassifyWalls(t *testing.T) {
	for _, c := range []struct{ name, want, page string }{
		{"script challenge", "cloudflare-js", `<title>Just a moment...</title><p>One moment, please</p><script>window._cf_chl_opt={cvId:'2'}</script>`},
		{"challenge with a box to tick", "cloudflare-turnstile", `<title>Just a moment...</title><h1>Show that you are human</h1><div class="cf-turnstile"></div>`},
		{"captcha service", "captcha", `<title>shop.example</title><p>Please enable JS</p><script src="https://geo.captcha-delivery.com/c.js"></script>`},
		{"captcha in words", "captcha", `<title>Hold on</title><p>Please confirm that you are not a robot</p><form action="/captcha"></form>`},
		{"limit in words", "rate-limit", `<title>Error</title><p>Too many requests. Try later.</p>`},
		{"refusal", "denied", `<title>Access Denied</title><h1>Access Denied</h1><p>You don't have permission to access this page.</p>`},
		{"refusal with a typographic apostrophe", "denied", `<h1>Sorry</h1><p>You don’t have permission to access “/x” on this server.</p>`},
		{"forbidden", "forbidden", `<html><head><title>403 Forbidden</title></head><body><center><h1>403 Forbidden</h1></center><hr>nginx</body></html>`},
		{"wants a script", "enablejs", `<title>Mail</title><p>Please enable JavaScript to use this site.</p><script src="a.js"></script>`},
		{"script shell", "js-shell", `<title>An app</title><noscript>You need to enable JavaScript to run this app.</noscript><div id="root"></div><script src="main.js"></script>`},
		{"shell that waits", "js-shell", `<title>An app</title><div id="app">Loading…</div><script type="module" src="main.js"></script>`},
		{"not found by title", "soft_404", `<title>Page not found | Harbour Times</title><h1>Oops</h1><p>` + words(30)},
		{"not found by heading", "soft_404", `<title>Harbour Times</title><h1>Sorry, this page isn't available.</h1><p>` + words(30)},
		{"not found by number", "soft_404", `<title>Error 404</title><p>` + words(30)},
		{"not found in German", "soft_404", `<title>404 - Seite nicht gefunden</title><p>Zur Startseite`},
		{"not found in full on a long page", "soft_404", `<title>Page not found - Harbour Times</title><p>` + words(900)},

		{"article", "", `<title>Bridge to be rebuilt</title><h1>Bridge</h1><p>` + words(60)},
		{"article about the status code", "", `<title>HTTP 404 - Wikipedia</title><p>The error 404 or page not found code means ` + words(900)},
		{"article about robots", "", `<title>You are not a robot: how a test works</title><p>Captcha tests ask whether you are not a robot. ` + words(400)},
		{"article about refused visas", "", `<title>Access denied: travellers tell</title><p>` + words(120)},
		{"article with a script shell's words", "", `<title>News</title><p>Many sites say please enable JavaScript. ` + words(120) + `<script>1</script>`},
		{"article with a contact form", "", `<title>Contact us</title><p>` + words(60) + `<form><textarea></textarea><div class="g-recaptcha"></div></form>`},
		{"article that a vendor's script counts", "", `<title>Budget</title><p>` + words(80) + `<script src="/_Incapsula_Resource?x"></script>`},
		{"forum index with a log-in line", "", `<form><input type="password"></form>` + strings.Repeat("<p><a href=/t>"+words(12)+"</a>", 20)},
		{"short recipe with a banner", "", `<title>Oat cookies</title><div class="oat-cookie-recipe"><p>These cookies are our favourite. Mix flour, oats and butter, form twenty cookies and bake them for a quarter of an hour at low heat.</p><p>Cookies keep for a week in a tin; put a slice of apple in the tin, and the cookies stay soft until the last one.</p></div><div class="cookie-banner">This website uses cookies for analytics.<button>OK</button></div>`},
		{"one line of text", "", `<p>Ship arrived.`},
		{"data for machines in a shell", "", `<script type="application/ld+json">{"@type":"ClaimReview","claimReviewed":"x"}</script><div id="root"></div><script src="m.js"></script>`},
		{"frames", "", `<frameset><frame src="a.html"></frameset><script>1</script>`},
		{"page that hides itself until a script ran", "", `<body style="display:none"><p>` + words(60) + `<script>show()</script>`},
		{"Japanese article", "", `<title>橋の再建</title><p>` + strings.Repeat("町議会は火曜日に古い橋の再建を決めた。", 6) + `<script>1</script>`},
	} {
		class, reason := classify(200, htmlType, []byte(c.page))
		if reason != c.want || (class == ClassOK) != (c.want == "") {
			t.Errorf("%s: classify = %s %q, want %q", c.name, class, reason, c.want)
		}
	}
}

// A text service refuses in a line of plain text, with status 200.
func TestClassifyPlainText(t *testing.T) {
	h := http.Header{"Content-Type": {"text/plain"}}
	for body, want := range map[string]Class{
		"Please limit requests to one in ten seconds.":                ClassThrottled,
		"User-agent: *\nDisallow: /search":                            ClassOK,
		"The harbour office wrote: too many requests. " + words(2000): ClassOK,
	} {
		if class, reason := classify(200, h, []byte(body)); class != want {
			t.Errorf("classify(%.40q) = %s %q, want %s", body, class, reason, want)
		}
	}
}

// The kind: a page whose only text is a notice or a form is saved as an article. Twelve pages with
// one notice, one with the notice over an article, one that asks to sign in; the same by other routes,
// and the boundary: an article shorter than its notice.
func TestHD03NotAnArticle(t *testing.T) {
	notice := `This site and its 42 partners store cookies on your device to measure visits and show advertising. You can change your choice at any time below.`
	buttons := `<button>Accept</button> <button>Decline</button>`
	article := "<article><h1>Bridge to be rebuilt</h1><p>The first sentence tells of a bridge.</p><p>" + words(390) + "</p><p>The last sentence tells of a ferry.</p></article>"
	type test struct{ name, want, page string }
	tests := []test{
		{"notice in an overlay over an article", "", `<title>Bridge</title><div class="overlay" id="cb"><p>` + notice + `</p>` + buttons + `</div>` + article},
		{"sign-in form and a hotline", "login", `<title>Harbour Times</title><form action="/login"><label>Email</label><input name="u"><label>Password</label><input type="password" name="p"><button>Sign in</button></form><p>Hotline: 01234 567890</p>`},
		{"sign-in without a password yet", "login", `<title>Log in - Harbour Times</title><h1>Log in</h1><form><input name="email"><button>Next</button></form>`},
		{"notice in a dialog with links", "consent", `<title>Ferry</title><div role="dialog" aria-label="cookie consent"><p>` + notice + `</p><a href="#">Accept all</a><a href="#">Reject all</a></div>`},
		{"notice under a header", "consent", `<title>Ferry</title><header><a href="/">Harbour Times</a></header><section id="onetrust-banner"><p>` + notice + `</p>` + buttons + `</section>`},
		{"notice in German", "consent", `<title>Fähre</title><div><p>Wir verwenden Cookies, um Inhalte zu messen und Werbung zu zeigen. Näheres steht in der Datenschutzerklärung.</p><button>Akzeptieren</button><button>Ablehnen</button></div>`},
		{"article shorter than its notice", "", `<title>Ferry</title><div class="cookie-bar">` + notice + buttons + `</div><p>` + words(45) + `</p>`},
	}
	for i := range 12 {
		tests = append(tests, test{fmt.Sprintf("notice alone %d", i+1), "consent",
			fmt.Sprintf(`<html><head><title>Story number %d of the day</title></head><body><div class="box"><p>%s</p>%s</div></body></html>`, i+1, notice, buttons)})
	}
	for _, c := range tests {
		class, reason := classify(200, htmlType, []byte(c.page))
		if reason != c.want || (class == ClassOK) != (c.want == "") {
			t.Errorf("%s: classify = %s %q, want %q", c.name, class, reason, c.want)
		}
	}
	for _, overlay := range []string{
		`<div class="overlay"><p>` + notice + `</p>` + buttons + `</div>`,
		`<div><div><p>` + notice + `</p></div><div><a role="button">Accept all</a><a role="button">Settings</a></div></div>`,
		`<form><p>` + notice + `</p><input type="submit" value="Accept"></form>`,
	} {
		for _, page := range []string{overlay + article, "<div>" + article + overlay + "</div>"} {
			p, err := NewPage("https://news.example/bridge", htmlType, []byte("<title>Bridge</title>"+page), time.Time{})
			if err != nil {
				t.Fatal(err)
			}
			a, err := p.Article()
			if err != nil {
				t.Fatal(err)
			}
			for text, want := range map[string]bool{"The first sentence tells of a bridge.": true, "The last sentence tells of a ferry.": true, "cookies": false, "partners": false, "Accept": false} {
				if strings.Contains(a.Text, text) != want {
					t.Errorf("article of %.60s...: contains %q = %v, want %v", page, text, !want, want)
				}
			}
		}
	}
}

// Every captured wall is told for what it is, and no other captured page is taken for one.
func TestClassifyCaptures(t *testing.T) {
	dir := realDir(t)
	notPages := map[string]string{ // captures outside blocks/ that are walls, too
		"serp/google-html-captcha.html":           "captcha",
		"serp/searx-bot-check.html":               "captcha",
		"serp/gdelt-throttle.txt":                 "rate-limit",
		"archive/wayback-memento-blocked.html.gz": "excluded-site",
		"encodings/w3c-utf16le-bom.html":          "js-shell", // a test page that only a script writes to
	}
	types := map[string]string{".html": "text/html", ".xml": "application/xml", ".txt": "text/plain", ".json": "application/json"}
	walls, pages := 0, 0
	for _, r := range index(t, dir, "") {
		kind := types[filepath.Ext(strings.TrimSuffix(r.file, ".gz"))]
		if kind == "" {
			continue
		}
		status := 200
		if s, ok := r.want["status"].(float64); ok {
			status = int(s)
		}
		want := notPages[r.file]
		if r.kind == "block-page" {
			want = r.text("block")
			if strings.Contains(fmt.Sprint(r.want["markers"]), "_Incapsula_Resource") {
				want = "incapsula"
			}
		}
		if status != 200 && want == "" {
			continue
		}
		class, reason := classify(status, http.Header{"Content-Type": {kind}}, r.body(t, dir))
		if want != "" {
			walls++
		} else {
			pages++
		}
		if reason != want || (class == ClassOK) != (want == "") {
			t.Errorf("%s: classify = %s %q, want %q", r.file, class, reason, want)
		}
	}
	eachBulkPage(t, dir, func(name string, body []byte) {
		pages++
		if class, reason := classify(200, htmlType, body); class != ClassOK {
			t.Errorf("%s: classify = %s %q, want ok", name, class, reason)
		}
	})
	t.Logf("%d walls and %d pages", walls, pages)
}

// Header sets of real answers, with the judgement of their collectors: 0 to 0.5 is no page.
func TestClassifyCapturedHeaders(t *testing.T) {
	f, err := os.Open(filepath.Join(realDir(t), "blocks", "gov-response-headers-quality.ndjson"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := json.NewDecoder(f); lines.More(); {
		var r struct {
			URL, Title string
			Status     int
			Quality    float64
			Headers    map[string]string
		}
		if err := lines.Decode(&r); err != nil {
			t.Fatal(err)
		}
		h := http.Header{}
		for name, v := range r.Headers {
			h.Set(name, v)
		}
		body := "<html><head><title>" + r.Title + "</title></head><body>"
		if r.Quality == 1 {
			body += words(900)
		}
		class, reason := classify(r.Status, h, []byte(body))
		if good := class == ClassOK || class == ClassGone; good != (r.Quality == 1) {
			t.Errorf("%s, status %d, %q: classify = %s %q, quality %v", r.URL, r.Status, r.Title, class, reason, r.Quality)
		}
	}
}

func FuzzClassify(f *testing.F) {
	f.Add([]byte(`<title>Just a moment...</title><script>_cf_chl_opt</script>`))
	f.Add([]byte(`<div class="cookie-banner">This site uses cookies <button>OK</button></div><!-- a --><p hidden>b`))
	f.Add([]byte("\xff\xfe<\x00p\x00>\x00"))
	f.Fuzz(func(t *testing.T, body []byte) {
		class, reason := classify(200, htmlType, body)
		if (class == ClassOK) != (reason == "") {
			t.Errorf("classify = %s %q", class, reason)
		}
		if again, _ := classify(200, htmlType, body); again != class {
			t.Errorf("classify = %s, then %s", class, again)
		}
	})
}

func BenchmarkClassify(b *testing.B) {
	page := []byte("<html><head><title>Bridge</title><script>" + strings.Repeat("var a = 1;\n", 2000) + "</script></head><body>" + strings.Repeat("<p>"+words(60)+"</p>\n", 100) + "</body></html>")
	b.SetBytes(int64(len(page)))
	for b.Loop() {
		classify(200, htmlType, page)
	}
}
