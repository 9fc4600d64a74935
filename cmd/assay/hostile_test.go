package main

import (
	"encoding/json"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/text/encoding/charmap"
)

// A hostileWeb is what a site and a newspaper serve, byte by byte, and how it came to a workspace.
type hostileWeb struct {
	checks []savedPage // of the fact-checker, each listed in its feed
	news   []savedPage
	posts  []post
}

// setup is that of a workspace which finds pages in the feed (listing), or among what is stored.
func (h hostileWeb) setup(discover string) setup {
	return setup{"recipe.discover": "[" + discover + "]", "recipe.sites": `[{name: lupa, base: "http://check.example"}]`, "recipe.models": stubbed, "recipe.label": "{zero_context: false}", "recipe.planner": "{variants: 0, follow_links: true, per_variant: 20, keep: 20}"}
}

func (h hostileWeb) serve(t *testing.T) *web {
	t.Helper()
	w := newWeb(t)
	var feed strings.Builder
	for _, p := range append(slices.Clone(h.checks), h.news...) {
		w.on(strings.TrimPrefix(p.url, "http://"), says(p.kind, p.body))
	}
	for _, p := range h.checks {
		fmt.Fprintf(&feed, "<item><title>Verificamos</title><link>%s</link><pubDate>Wed, 09 Jun 2021 17:22:16 -0300</pubDate></item>", p.url)
	}
	w.on("check.example/lupa/feed/?paged=1", says("application/rss+xml", "<?xml version=\"1.0\"?><rss version=\"2.0\"><channel><title>Lupa</title>"+feed.String()+"</channel></rss>"))
	return w
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// dump imports the posts, if there are any.
func (h hostileWeb) dump(l *lab) {
	if len(h.posts) > 0 {
		l.posts(h.posts...)
	}
}

// live reads the pages over the network.
func (h hostileWeb) live(t *testing.T) *lab {
	l := newSite(t, h.serve(t), []string{"news.example"}, h.setup("listing"))
	h.dump(l)
	return l
}

// hostileRoutes are the ways by which pages come into a workspace: each gives one that is ready to build.
var hostileRoutes = map[string]func(t *testing.T, h hostileWeb) (l *lab, build []string){
	"crawl": func(t *testing.T, h hostileWeb) (*lab, []string) { return h.live(t), nil },
	"refresh": func(t *testing.T, h hostileWeb) (*lab, []string) {
		l := h.live(t)
		_, l.refreshed = l.must(0, "refresh")
		return l, nil
	},
	"folder": func(t *testing.T, h hostileWeb) (*lab, []string) {
		l := newSite(t, h.serve(t), []string{"news.example"}, h.setup("stored")) // a wall is asked again
		h.dump(l)
		l.saved(append(slices.Clone(h.checks), h.news...)...)
		return l, nil
	},
	"web archive": func(t *testing.T, h hostileWeb) (*lab, []string) {
		l := newSite(t, h.serve(t), []string{"news.example"}, h.setup("stored")) // a wall is asked again
		h.dump(l)
		pages := append(slices.Clone(h.checks), h.news...)
		for i := range pages {
			pages[i].at = "2024-01-02"
		}
		l.must(0, "import", "warc", l.write(filepath.Join(t.TempDir(), "pages.warc"), warc(pages...)))
		return l, nil
	},
	"our archive": func(t *testing.T, h hostileWeb) (*lab, []string) {
		first := h.live(t)
		first.build(0)
		to := filepath.Join(t.TempDir(), "all.wacz")
		first.must(0, "archive", to)
		l := &lab{t: t, dir: t.TempDir(), model: first.model}
		l.write(filepath.Join(l.dir, "assay.yaml"), string(must(os.ReadFile(filepath.Join(first.dir, "assay.yaml")))))
		l.must(0, "import", "archive", to)
		return l, []string{"--replay"}
	},
}

// byEveryRoute builds a hostile web by every route; check looks at the build.
func byEveryRoute(t *testing.T, h hostileWeb, check func(t *testing.T, l *lab, r report, said string)) {
	for name, route := range hostileRoutes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, args := route(t, h)
			said, _ := l.must(0, append([]string{"build", "--json"}, args...)...)
			var r report
			if err := json.Unmarshal([]byte(said), &r); err != nil {
				t.Fatalf("report: %v\n%s", err, said)
			}
			check(t, l, r, said)
		})
	}
}

// balsa is a page of Lupa's with some scripts of ld+json, and what it prints itself.
type balsa struct {
	slug    string
	scripts []string
	claim   string // printed, unless ""
	rating  string // printed, unless ""
	date    string // as printed for machines
	charset string // declared by the page, unless ""
}

func (b balsa) url() string { return "http://check.example/lupa/2021/06/09/" + b.slug + "/" }

func (b balsa) page() string {
	var head, body strings.Builder
	if b.charset != "" {
		fmt.Fprintf(&head, "<meta charset=%q>", b.charset)
	}
	for _, s := range b.scripts {
		fmt.Fprintf(&head, "<script type=\"application/ld+json\">%s</script>", s)
	}
	if b.claim != "" {
		fmt.Fprintf(&body, "<p><b>“%s”</b></p>", html.EscapeString(b.claim))
	}
	if b.rating != "" {
		fmt.Fprintf(&body, "<div class=\"etiqueta\">%s</div>", b.rating)
	}
	date := b.date
	if date == "" {
		date = "2021-06-09T17:22:16-03:00"
	}
	return `<!DOCTYPE html><html lang="pt"><head>` + head.String() + `<title>Lupa</title><meta property="og:title" content="#Verificamos"><meta property="article:published_time" content="` + date + `"></head>
<body><div class="wrapper"><h2 class="bloco-title">#Verificamos</h2><div class="bloco-autor"><span>Por</span><strong><a href="/x">Ana Junco</a></strong></div>
<div class="column-main"><div class="post-inner"><p>Circula uma foto da balsa e da ponte, que a reportagem conferiu.</p>` + body.String() + `</div></div></div></body></html>`
}

func (b balsa) saved(kind string) savedPage {
	return savedPage{url: b.url(), kind: kind, body: b.page()}
}

// told are the claims of a release: text, rating and flags.
func told(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, row := range released(t, dir, "claims") {
		out[fmt.Sprint(row["text"])] = fmt.Sprint(row["rating_raw"], " ", row["flags"])
	}
	return out
}

// HD-02 by every route: broken markup gives its claims or gives way to what the page prints, the page that
// was given up is named, and the run ends well.
func TestHD02BrokenMarkupByEveryRoute(t *testing.T) {
	t.Parallel()
	review := func(claim, rating string) string {
		return fmt.Sprintf(`{"@context":"http://schema.org","@type":"ClaimReview","claimReviewed":"%s","reviewRating":{"@type":"Rating","alternateName":"%s"}}`, claim, rating)
	}
	pages := []balsa{
		{slug: "two", scripts: []string{review("Bridge tolls\ndoubled\tovernight", "Falso") + ";", review("Tolls fell", "Verdadeiro")}},
		{slug: "cut", scripts: []string{review("Never read", "Falso")[:40]}, claim: "A balsa leva bicicletas", rating: "FALSO"},
		{slug: "list", scripts: []string{"[" + review("The ferry\r\nruns", "Falso") + ",]"}},
		{slug: "short", scripts: []string{strings.TrimSuffix(review("Never read", "Falso"), "}")}, claim: "A ponte caiu", rating: "VERDADEIRO"},
	}
	h := hostileWeb{}
	for _, p := range pages {
		h.checks = append(h.checks, p.saved("text/html; charset=utf-8"))
	}
	byEveryRoute(t, h, func(t *testing.T, l *lab, r report, said string) {
		want := map[string]string{
			"Bridge tolls doubled overnight": "Falso [markup_repaired]", "Tolls fell": "Verdadeiro []", "The ferry runs": "Falso [markup_repaired]",
			"“A balsa leva bicicletas”": "FALSO [markup_bad]", "“A ponte caiu”": "VERDADEIRO [markup_bad]",
		}
		if diff := cmp.Diff(want, told(t, r.Release.Dir)); diff != "" {
			t.Errorf("claims (-want +got):\n%s", diff)
		}
		bad := []string{pages[1].url(), pages[3].url()}
		if strings.HasSuffix(t.Name(), "/refresh") {
			for _, p := range bad { // the refresh read them, and named them
				if !strings.Contains(l.refreshed, "bad markup: "+p) {
					t.Errorf("the refresh does not name %s:\n%s", p, l.refreshed)
				}
			}
			bad = []string{}
		}
		if diff := cmp.Diff(bad, r.BadMarkup); diff != "" {
			t.Errorf("bad markup (-want +got):\n%s", diff)
		}
	})
}

// HD-01 by every route: what a page declares is what it is read by, a mark before it beats its header, and
// no claim or document holds a replacement character.
func TestHD01CharsetsByEveryRoute(t *testing.T) {
	t.Parallel()
	const claim, text = "Утверждение ложно, пишет мост", "Проверка моста показала, что он стоит, и что по нему ездят каждый день."
	b := balsa{slug: "meta", claim: claim, rating: "Falso", charset: "windows-1251"}
	encoded := func(b balsa) string { return must(charmap.Windows1251.NewEncoder().String(b.page())) }
	meta := savedPage{url: b.url(), kind: "text/html", body: encoded(b)}
	b.slug, b.claim, b.charset = "mark", "Проверка", ""
	mark := savedPage{url: b.url(), kind: "text/html; charset=iso-8859-1", body: "\ufeff" + b.page()}
	b.slug, b.claim = "header", "Мост стоит"
	header := savedPage{url: b.url(), kind: "text/html; charset=windows-1251", body: encoded(b)}
	b.slug, b.claim, b.charset = "late", "Паром ходит", "windows-1251" // the boundary: the declaration is the last that counts
	late := savedPage{url: b.url(), kind: "text/html", body: strings.Replace(encoded(b), "<meta charset", strings.Repeat("<!-- tag manager -->", 45)+"<meta charset", 1)}
	article := must(charmap.KOI8R.NewEncoder().String(strings.Replace(news("Мост", text), `charset="utf-8"`, `charset="koi8-r"`, 1)))
	h := hostileWeb{
		checks: []savedPage{meta, mark, header, late},
		news:   []savedPage{{url: "http://news.example/most", kind: "text/html", body: article}},
		posts:  []post{{id: "ch1", title: claim, link: "http://news.example/most"}},
	}
	byEveryRoute(t, h, func(t *testing.T, l *lab, r report, _ string) {
		want := map[string]string{"“" + claim + "”": "Falso []", "“Проверка”": "Falso []", "“Мост стоит”": "Falso []", "“Паром ходит”": "Falso []"}
		if diff := cmp.Diff(want, told(t, r.Release.Dir)); diff != "" {
			t.Errorf("claims (-want +got):\n%s", diff)
		}
		docs := column(t, r.Release.Dir, "documents", "text")
		if len(docs) == 0 || !strings.Contains(docs[0], text) {
			t.Errorf("documents: %q", docs)
		}
		for _, d := range append(docs, column(t, r.Release.Dir, "claims", "text")...) {
			if strings.Contains(d, "\ufffd") || strings.HasPrefix(d, "\ufeff") {
				t.Errorf("broken text %q", d)
			}
		}
	})
}

// HD-06 by every route: days follow the zone that a page names, and where nobody knows it the printed day
// stays; the machine's own zone counts for nothing.
func TestHD06DatesByEveryRoute(t *testing.T) {
	t.Parallel()
	h := hostileWeb{}
	want := map[string]string{}
	for printed, day := range map[string]string{
		"Tue, 03 Jun 2025 21:30:00 EDT": "2025-06-03", "Wed, 15 Jan 2025 23:10:00 PST": "2025-01-15", "Sat, 01 Mar 2025 08:00:00 XQT": "2025-03-01",
		"2025-12-31T23:59:59-03:00": "2025-12-31", "2025-01-01": "2025-01-01",
	} {
		b := balsa{slug: "d" + fmt.Sprint(len(want)), claim: "A ponte abriu no dia " + fmt.Sprint(len(want)), rating: "Falso", date: printed}
		h.checks = append(h.checks, b.saved("text/html; charset=utf-8"))
		want["“"+b.claim+"”"] = day
	}
	article := func(path, printed string) savedPage {
		return savedPage{url: "http://news.example/" + path, kind: "text/html; charset=utf-8", body: strings.Replace(news("Ponte", "A ponte abriu no dia da festa."), "</head>", `<meta property="article:published_time" content="`+printed+`"></head>`, 1)}
	}
	h.news = []savedPage{article("edt", "Tue, 03 Jun 2025 21:30:00 EDT"), article("pst", "Wed, 15 Jan 2025 23:10:00 PST"), article("xqt", "Sat, 01 Mar 2025 08:00:00 XQT")}
	for i, p := range h.news {
		h.posts = append(h.posts, post{id: fmt.Sprint("dt", i), title: fmt.Sprint("A ponte abriu no dia ", i), link: p.url})
	}
	byEveryRoute(t, h, func(t *testing.T, l *lab, r report, _ string) {
		got := map[string]string{}
		for _, row := range released(t, r.Release.Dir, "claims") {
			got[row["text"].(string)] = fmt.Sprint(row["review_date"])
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("days (-want +got):\n%s", diff)
		}
		instants := map[string]string{}
		for _, row := range released(t, r.Release.Dir, "documents") {
			instants[strings.TrimPrefix(row["url"].(string), "http://news.example/")] = fmt.Sprint(row["published_at"])
		}
		if diff := cmp.Diff(map[string]string{"edt": "2025-06-04T01:30:00Z", "pst": "2025-01-16T07:10:00Z", "xqt": "2025-03-01"}, instants); diff != "" {
			t.Errorf("instants (-want +got):\n%s", diff)
		}
		// Elsewhere on earth, and without zone data, the same store gives the same release.
		l.env = []string{"TZ=Asia/Tokyo", "ZONEINFO=/nonexistent"}
		l.must(0, "verify", "--rebuild", r.Release.Dir)
	})
}

// HD-03 by every route: twelve pages of one notice and one that asks to log in are no documents, cost no
// call and are counted; the article under the same notice is one, without the notice.
func TestHD03NoticesByEveryRoute(t *testing.T) {
	t.Parallel()
	const notice = `This site and its 42 partners store cookies on your device to measure visits and show advertising. You can change your choice at any time below.`
	const overlay = `<div class="overlay"><p>` + notice + `</p><button>Accept</button> <button>Decline</button></div>`
	h := hostileWeb{checks: []savedPage{balsa{slug: "p", claim: "The village of Averil has 2 wells", rating: "Falso"}.saved("text/html; charset=utf-8")}}
	add := func(path, page string) {
		h.news = append(h.news, savedPage{url: "http://news.example/" + path, kind: "text/html; charset=utf-8", body: page})
		h.posts = append(h.posts, post{id: fmt.Sprintf("nt%02d", len(h.posts)), title: fmt.Sprintf("Wells in the village of Averil, part %d", len(h.posts)), link: "http://news.example/" + path})
	}
	for n := range 12 {
		add(fmt.Sprint("notice-", n), fmt.Sprintf(`<html><head><title>Story number %d of the day</title></head><body>%s</body></html>`, n, overlay))
	}
	add("login", `<html><head><title>Harbour Times</title></head><body><form action="/login"><label>Email</label><input name="u"><label>Password</label><input type="password" name="p"><button>Sign in</button></form><p>Hotline: 01234 567890</p></body></html>`)
	add("article", strings.Replace(news("Wells of Averil", "The village of Averil has 2 wells, says the office."), "<body>", "<body>"+overlay, 1))
	byEveryRoute(t, h, func(t *testing.T, l *lab, r report, _ string) {
		docs := released(t, r.Release.Dir, "documents")
		if len(docs) != 1 || docs[0]["url"] != "http://news.example/article" {
			t.Fatalf("documents: %v", docs)
		}
		text := docs[0]["text"].(string)
		for words, want := range map[string]bool{"The council of the district met": true, "behind the church.": true, "cookies": false, "partners": false, "Accept": false} {
			if strings.Contains(text, words) != want {
				t.Errorf("the article holds %q: %v\n%s", words, !want, text)
			}
		}
		for _, body := range l.model.sent() {
			if strings.Contains(body, "cookies") || strings.Contains(body, "Hotline") {
				t.Errorf("a notice was sent to the model: %s", body)
			}
		}
		told := map[string]int{}
		for _, i := range l.ls("document", "--state", "excluded") {
			told[i.Reason]++
		}
		if diff := cmp.Diff(map[string]int{"blocked": 13}, told); diff != "" {
			t.Errorf("excluded pages by reason (-want +got):\n%s", diff)
		}
		counted := 0
		for _, s := range r.Pipeline.Stages {
			if s.Name == "document/page" {
				counted = s.Exclusions["blocked"]
			}
		}
		if left := withheld(t, r.Release.Dir); counted != 13 || left["document: blocked"] != 13 {
			t.Errorf("the report counts %d such pages, the manifest %v", counted, left)
		}
	})
}

// An endpoint that answers under several names may have asked several models: run and release say so.
func TestModelOfSeveralNames(t *testing.T) {
	l := newLab(t, 4, "")
	r := l.build(0)
	card := func() string {
		text, err := os.ReadFile(filepath.Join(r.Release.Dir, "README.md"))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if strings.Contains(card(), "several names") || strings.Contains(card(), "under the names") {
		t.Errorf("of one name the card says:\n%s", card())
	}
	l = newLab(t, 4, "")
	l.model.names = []string{"stub-1-2026", "other-9"}
	_, told := l.must(0, "build")
	r = l.build(0)
	for _, want := range []string{"answered under several names", "other-9 (", "stub-1-2026 ("} {
		if !strings.Contains(told, want) || !strings.Contains(card(), want) {
			t.Errorf("%q is not told by the run:\n%s\nor not by the card:\n%s", want, told, card())
		}
	}
	l.must(0, "verify", r.Release.Dir)
}
