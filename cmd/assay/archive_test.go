package main

import (
	"compress/gzip"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// fromArchive is a new workspace made from an archive of this one alone.
func (l *lab) fromArchive(name string) *lab {
	l.t.Helper()
	out := filepath.Join(l.t.TempDir(), name)
	l.must(0, "archive", out)
	again := &lab{t: l.t, dir: filepath.Join(l.t.TempDir(), "again"), model: l.model, env: l.env}
	again.must(0, "init", again.dir)
	again.must(0, "import", "archive", out)
	return again
}

// unpacked is the text of an archive.
func (l *lab) unpacked() string {
	l.t.Helper()
	out := filepath.Join(l.t.TempDir(), "x.warc.gz")
	l.must(0, "archive", out)
	f, err := os.Open(out)
	if err != nil {
		l.t.Fatal(err)
	}
	defer f.Close()
	r, err := gzip.NewReader(f)
	if err != nil {
		l.t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		l.t.Fatal(err)
	}
	return string(text)
}

// packed is a text as gzip.
func packed(t *testing.T, text string) string {
	t.Helper()
	var b strings.Builder
	z := gzip.NewWriter(&b)
	if _, err := io.WriteString(z, text); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

const labKey = "sk-lab-0123456789abcdef"

// Whatever a release rests on travels, and replay makes it again without asking anybody.
func TestArchiveIsEnoughToBuildAgain(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(t *testing.T) (l *lab, w *web, code int){
		// Listings, claim pages, articles, a page that is gone, posts, and a model in every role.
		"crawl": func(t *testing.T) (*lab, *web, int) {
			c := newCorpus(t, nil)
			config := filepath.Join(c.dir, "assay.yaml")
			text, err := os.ReadFile(config)
			if err != nil {
				t.Fatal(err)
			}
			c.write(config, strings.Replace(string(text), "concurrency: 4}", "concurrency: 4, key_env: LAB_KEY}", 1))
			c.env = append(c.env, "LAB_KEY="+labKey)
			return c.lab, c.web, 0
		},
		// Pages that fail in every way, a redirect, two pages that tell one claim, and one that robots.txt forbids.
		"odd": func(t *testing.T) (*lab, *web, int) {
			w, host := newWeb(t), "check.example"
			list := wells(8)
			list[5].Claim = list[4].Claim
			w.checks(host, list...)
			w.on(list[0].address(host), leads(http.StatusMovedPermanently, "http://check.example/factchecks/"+list[1].Path))
			w.on(list[2].address(host), func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusGone) })
			w.on(list[3].address(host), says("text/html; charset=iso-8859-1", "<p>No statement, caf\xe9"))
			w.on(list[6].address(host), func(rw http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) })
			w.on(host+"/robots.txt", says("text/plain", "User-agent: *\nDisallow: /factchecks/"+list[7].Path+"\n"))
			l := newSite(t, w, nil, setup{"recipe.models": stubbed})
			l.posts(wellPost(1), wellPost(4))
			l.model.set(func(m *modelStub) { m.reply = knowing })
			return l, w, 3
		},
		// Imported pairs, answered by a model that refuses, breaks off, writes prose and fails.
		"pairs": func(t *testing.T) (*lab, *web, int) {
			l := newLab(t, 12, "")
			l.model.set(func(m *modelStub) {
				m.reply = func(body string) (int, string, string) {
					switch {
					case strings.Contains(body, "number 3 "):
						return http.StatusOK, "", "content_filter"
					case strings.Contains(body, "number 4 "):
						return http.StatusOK, `{"quote":"`, "length"
					case strings.Contains(body, "number 6 "):
						return http.StatusBadRequest, `{"error":{"message":"these words are not taken"}}`, ""
					case strings.Contains(body, "number 7 "):
						return http.StatusBadGateway, "down", ""
					case strings.Contains(body, "number 5 "):
						return http.StatusOK, "I would rather talk about the weather.", "stop"
					}
					return http.StatusOK, `{"quote":"","reason":"counted","answer":"true"}`, "stop"
				}
			})
			return l, newWeb(t), 3
		},
		// What others saved: a folder and web archives with bodies that are packed and that repeat.
		"saved": func(t *testing.T) (*lab, *web, int) {
			l := newSite(t, newWeb(t), nil, setup{"recipe.discover": "[stored]"})
			list := wells(4)
			const host = "http://check.example/factchecks/"
			body := packed(t, list[1].page())
			l.saved(savedPage{url: host + list[0].Path, body: list[0].page(), at: "2024-02-01"}, savedPage{url: host + list[1].Path, body: body, packed: true, at: "2024-02-02"})
			file := l.write(filepath.Join(t.TempDir(), "old.warc"), warc(
				savedPage{url: host + list[2].Path, body: list[2].page(), at: "2023-01-01"},
				savedPage{url: host + list[0].Path, body: list[0].page(), at: "2023-01-02"},
				savedPage{url: host + list[3].Path, body: "gone", status: 410, at: "2023-01-03"}))
			l.must(0, "import", "warc", file)
			l.posts(wellPost(0), wellPost(1), wellPost(2))
			return l, newWeb(t), 0
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, w, code := prepare(t)
			first := l.build(code)
			pages := w.total()
			calls, _ := l.model.requests()
			for _, file := range []string{"x.warc.gz", "x.wacz"} {
				again := l.fromArchive(file)
				r := again.build(code, "--replay")
				if r.Fetch.Requests != 0 || r.LLM.Calls != 0 || w.total() != pages {
					t.Errorf("%s: %d requests, %d calls", file, r.Fetch.Requests, r.LLM.Calls)
				}
				if n, _ := l.model.requests(); n != calls {
					t.Errorf("%s: %d more calls reached the model", file, n-calls)
				}
				if d := cmp.Diff(filesOf(t, first.Release.Dir), filesOf(t, r.Release.Dir)); d != "" {
					t.Errorf("%s: release %s\nwithheld %v and %v", file, d, withheld(t, first.Release.Dir), withheld(t, r.Release.Dir))
				}
			}
			text := l.unpacked()
			if strings.Contains(text, labKey) {
				t.Error("the archive holds the key of the model")
			}
			if !strings.Contains(text, "urn:assay:end") || !strings.Contains(text, "recipe:") {
				t.Error("the archive is not what this test takes it for")
			}
		})
	}
}
