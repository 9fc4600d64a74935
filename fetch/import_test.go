package fetch

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// folder writes files with one time.
func folder(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "site")
	when := time.Date(2026, 2, 3, 10, 0, 0, 0, time.UTC)
	for name, text := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(file, when, when); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestImportDir(t *testing.T) {
	page := func(text string) string { return "<title>Page</title><p>" + text }
	table := folder(t, map[string]string{"map.tsv": "path\turl\nin.html\thttps://elsewhere.example/in\n"})
	for _, c := range []struct {
		name  string
		files map[string]string
		o     DirOptions
		want  ImportReport
		pages map[string]string
	}{
		{
			"base", map[string]string{"index.html": page("home"), "a/index.htm": page("a"), "a/b.html": page("b"), "c d.html": page("c"), "q.php?id=1": page("q"), "index.html?p=2": page("p"), "x#y.html": page("x"), "z.html.gz": string(encode(t, "gzip", []byte(page("z"))))},
			DirOptions{Base: "https://base.example/site/"}, ImportReport{Records: 8, Responses: 8, Stored: 8},
			map[string]string{"https://base.example/site/": "home", "https://base.example/site/a/": "a", "https://base.example/site/a/b.html": "b", "https://base.example/site/c%20d.html": "c",
				"https://base.example/site/q.php?id=1": "q", "https://base.example/site/?p=2": "p", "https://base.example/site/x%23y.html": "x", "https://base.example/site/z.html": "z"},
		},
		{
			"folders named by host", map[string]string{"www.example.com/index.html": page("home"), "www.example.com/a/b/index.html": page("b"), "other.example:8080/x.html": page("x"), "readme.html": page("r"), "notes/y.html": page("y")},
			DirOptions{}, ImportReport{Records: 5, Responses: 5, Stored: 3, Skipped: map[string]int{"unmapped": 2}, Notes: []string{"unmapped: notes/y.html: no address: say with --base or in urls.tsv where it was", "unmapped: readme.html: no address: say with --base or in urls.tsv where it was"}},
			map[string]string{"https://www.example.com/": "home", "https://www.example.com/a/b/": "b", "https://other.example:8080/x.html": "x"},
		},
		{
			"table in the folder", map[string]string{
				"urls.tsv": "\ufeffpath\turl\tstatus\ttype\tretrieved\r\n# a comment\r\n\r\np/1.html\thttps://t.example/one\r\n./2.dat\thttps://t.example/two\t200\ttext/html; charset=utf-8\t2026-01-02\n3.html\thttps://t.example/three\t404\n4.html\thttps://t.example/four\t\t\t2026-01-02T03:04:05+01:00\nnone.html\thttps://t.example/none\n5.gz\thttps://t.example/five\n",
				"p/1.html": page("one"), "2.dat": page("two"), "3.html": page("three"), "4.html": page("four"), "5.gz": string(encode(t, "gzip", []byte(page("five")))), "6.html": page("six"), "www.host.example/7.html": page("seven"),
			},
			DirOptions{}, ImportReport{Records: 7, Responses: 8, Stored: 5, Skipped: map[string]int{"unmapped": 2, "missing": 1}, Notes: []string{
				"unmapped: 6.html: no address: say with --base or in urls.tsv where it was", "unmapped: www.host.example/7.html: no address: say with --base or in urls.tsv where it was", "missing: none.html: in urls.tsv but not in the folder"}},
			map[string]string{"https://t.example/one": "one", "https://t.example/two": "two", "https://t.example/three": "error gone", "https://t.example/four": "four", "https://t.example/five": "five"},
		},
		{
			"table and base", map[string]string{"in.html": page("in"), "out.html": page("out")},
			DirOptions{Base: "https://base.example", Table: filepath.Join(table, "map.tsv")}, ImportReport{Records: 2, Responses: 2, Stored: 2},
			map[string]string{"https://elsewhere.example/in": "in", "https://base.example/out.html": "out"},
		},
		{"walls and empty files", map[string]string{"wall.html": "<title>Just a moment...</title>", "empty.html": ""}, DirOptions{Base: "https://base.example"}, ImportReport{Records: 2, Responses: 2, Stored: 2},
			map[string]string{"https://base.example/wall.html": "error blocked", "https://base.example/empty.html": "error blocked"}},
		{"hidden files", map[string]string{".git/config": "x", ".git/HEAD": "x", "a/.DS_Store": "x", ".well-known/a.html": page("a")}, DirOptions{Base: "https://base.example"},
			ImportReport{Records: 1, Responses: 3, Stored: 1, Skipped: map[string]int{"hidden": 2}, Notes: []string{"hidden: .git: its name starts with a dot", "hidden: a/.DS_Store: its name starts with a dot"}},
			map[string]string{"https://base.example/.well-known/a.html": "a"}},
		{"bad lines", map[string]string{
			"urls.tsv": "a.html\tnowhere\nb.html\thttps://t.example/b\tfine\nc.html\thttps://t.example/c\t42\nd.html\thttps://t.example/d\t200\t\tyesterday\ne.html\nf.html\thttps://\ng.html\thttps://t.example/g\t200\t\t2199-01-01\n" +
				"h.html\thttps://t.example/h\nh.html\thttps://t.example/other\nnone.html\tx\ni.html\thttps://t.example/i\ni.html\thttps://t.example/i\n\thttps://t.example/j\n",
			"a.html": page("a"), "b.html": page("b"), "c.html": page("c"), "d.html": page("d"), "e.html": page("e"), "f.html": page("f"), "g.html": page("g"), "h.html": page("h"), "i.html": page("i"),
		}, DirOptions{}, ImportReport{Records: 9, Responses: 11, Stored: 1, Skipped: map[string]int{"bad line": 10}, Notes: []string{
			"bad line: a.html: urls.tsv line 1: \"nowhere\" is no address of a page: it has no scheme",
			`bad line: b.html: urls.tsv line 2: "fine" is no status`,
			`bad line: c.html: urls.tsv line 3: "42" is no status`,
			`bad line: d.html: urls.tsv line 4: "yesterday" is no time`,
			"bad line: e.html: urls.tsv line 5: \"\" is no address of a page: it has no scheme",
			"bad line: f.html: urls.tsv line 6: \"https://\" is no address of a page: it is no address",
			`bad line: g.html: urls.tsv line 7: "2199-01-01" has not come yet`,
			"bad line: h.html: urls.tsv line 9: it is in line 8 too, with something else",
			"bad line: line 13: urls.tsv line 13: it names no file",
			"bad line: none.html: urls.tsv line 10: \"x\" is no address of a page: it has no scheme",
		}}, map[string]string{"https://t.example/i": "i", "https://t.example/h": "error not_stored", "https://t.example/other": "error not_stored", "https://t.example/c": "error not_stored"}},
		{"a bad line and a base", map[string]string{"urls.tsv": "a.html\tnowhere\n", "a.html": page("a"), "b.html": page("b")}, DirOptions{Base: "https://base.example"},
			ImportReport{Records: 2, Responses: 2, Stored: 1, Skipped: map[string]int{"bad line": 1}, Notes: []string{"bad line: a.html: urls.tsv line 1: \"nowhere\" is no address of a page: it has no scheme"}},
			map[string]string{"https://base.example/b.html": "b", "https://base.example/a.html": "error not_stored"}},
		{"nothing", map[string]string{"urls.tsv": ""}, DirOptions{}, ImportReport{}, nil},
	} {
		dir, s := folder(t, c.files), memory(t)
		got, err := ImportDir(t.Context(), s, dir, c.o)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if diff := cmp.Diff(c.want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(ImportReport{}, "Classes")); diff != "" {
			t.Errorf("%s: report (-want +got):\n%s", c.name, diff)
		}
		pages := map[string]string{}
		for url := range c.pages {
			pages[url] = stored(t, s, url)[0]
		}
		if diff := cmp.Diff(c.pages, pages, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: pages (-want +got):\n%s", c.name, diff)
		}
		again, err := ImportDir(t.Context(), s, dir, c.o)
		if err != nil || again.Stored != 0 || again.Present != got.Stored {
			t.Errorf("%s, imported again: %+v, %v; want nothing new", c.name, again, err)
		}
	}
}

// Type, status and time come from the table, or else from the file.
func TestImportDirExchange(t *testing.T) {
	s := memory(t)
	dir := folder(t, map[string]string{"urls.tsv": "a.bin\thttps://t.example/a\t203\ttext/html; charset=koi8-r\t2026-01-02\n", "a.bin": "<p>\xf0\xd2\xcf\xd7\xc5\xd2\xcb\xc1"})
	if _, err := ImportDir(t.Context(), s, dir, DirOptions{}); err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 9, 9, 0, 0, 0, 0, time.UTC)
	undated := folder(t, map[string]string{"f.xml": "<rss/>", "g": "<!doctype html><p>x", "h.pdf": "%PDF-1.4", "late.txt": "x"})
	if err := os.Chtimes(filepath.Join(undated, "late.txt"), now, now.AddDate(1, 0, 0)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"f.xml", "g"} {
		if err := os.Chtimes(filepath.Join(undated, name), time.Unix(0, 0), time.Unix(0, 0)); err != nil {
			t.Fatal(err)
		}
	}
	got, err := ImportDir(t.Context(), s, undated, DirOptions{Base: "https://u.example", Now: func() time.Time { return now }})
	if diff := cmp.Diff([]string{"late.txt: its time 2027-09-09T00:00:00Z has not come yet: taken as retrieved now"}, got.Notes); err != nil || diff != "" {
		t.Fatalf("ImportDir: %v, notes (-want +got):\n%s", err, diff)
	}
	c, err := New(Options{Store: s, Mode: Replay, Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for url, want := range map[string]struct {
		status  int
		kind    string
		at      time.Time
		charset string
	}{
		"https://t.example/a":        {203, "text/html; charset=koi8-r", time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC), "koi8-r"},
		"https://u.example/f.xml":    {200, "application/xml", now, "utf-8"},
		"https://u.example/g":        {200, "text/html", now, "utf-8"},
		"https://u.example/late.txt": {200, "text/plain", now, "utf-8"},
		"https://u.example/h.pdf":    {200, "application/pdf", time.Date(2026, 2, 3, 10, 0, 0, 0, time.UTC), ""},
	} {
		p, err := c.Get(t.Context(), Request{URL: url})
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		charset, _ := p.Charset()
		if p.Status != want.status || p.Header.Get("Content-Type") != want.kind || !p.Retrieved.Equal(want.at) || charset != want.charset || p.Source != "dir:site" {
			t.Errorf("%s: status %d, type %q, retrieved %s, charset %q, source %q; want %+v", url, p.Status, p.Header.Get("Content-Type"), p.Retrieved, charset, p.Source, want)
		}
	}
}

func TestImportDirErrors(t *testing.T) {
	dir := folder(t, map[string]string{"a.html": "<p>a"})
	for name, o := range map[string]DirOptions{"table": {Table: filepath.Join(dir, "none.tsv")}, "base": {Base: "not an address"}} {
		if _, err := ImportDir(t.Context(), memory(t), dir, o); err == nil {
			t.Errorf("%s that is none: no error", name)
		}
	}
	if _, err := ImportDir(t.Context(), memory(t), filepath.Join(dir, "none"), DirOptions{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("folder that is not there: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := ImportDir(ctx, memory(t), dir, DirOptions{Base: "https://a.example"}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	// A link is not followed: it could lead anywhere.
	if err := os.Symlink(filepath.Join(dir, "a.html"), filepath.Join(dir, "link.html")); err != nil {
		t.Skip("skipped: no symbolic links here")
	}
	got, err := ImportDir(t.Context(), memory(t), dir, DirOptions{Base: "https://a.example"})
	if diff := cmp.Diff([]string{"unreadable: link.html: not a regular file"}, got.Notes); diff != "" || err != nil || got.Stored != 1 {
		t.Errorf("folder with a link: %+v, %v", got, err)
	}
}

// A file that may not be read is named and left out.
func TestImportDirUnreadable(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("skipped: root reads everything")
	}
	dir := folder(t, map[string]string{"a.html": "<p>a", "sub/b.html": "<p>b", "c.html": "<p>c"})
	for _, name := range []string{"a.html", "sub"} {
		if err := os.Chmod(filepath.Join(dir, name), 0); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(dir, "sub"), 0o755) })
	got, err := ImportDir(t.Context(), memory(t), dir, DirOptions{Base: "https://a.example"})
	if err != nil || got.Stored != 1 || got.Skipped["unreadable"] != 2 || len(got.Notes) != 2 {
		t.Errorf("ImportDir = %+v, %v; want one page and two unreadable names", got, err)
	}
}

func TestImportFile(t *testing.T) {
	dir, s := folder(t, map[string]string{"a.html": "<title>Page</title><p>a"}), memory(t)
	for i := range 2 {
		got, err := ImportFile(t.Context(), s, "https://a.example/", filepath.Join(dir, "a.html"), time.Time{})
		if err != nil || got.Stored != 1-i || got.Present != i {
			t.Errorf("ImportFile = %+v, %v", got, err)
		}
	}
	if diff := cmp.Diff([]string{"a"}, stored(t, s, "https://a.example/")); diff != "" {
		t.Errorf("page (-want +got):\n%s", diff)
	}
	for name, args := range map[string][2]string{"no file": {"https://a.example/", filepath.Join(dir, "none.html")}, "a folder": {"https://a.example/", dir}, "no address": {"a.example", filepath.Join(dir, "a.html")}} {
		if _, err := ImportFile(t.Context(), s, args[0], args[1], time.Time{}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
