package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"assay"
	"assay/corpus"
	"assay/kv"
)

// surroundings are what a run may differ in without a trace in the release.
var surroundings = [][]string{
	{"ASSAY_RUNTIME_WORKERS=1", "TZ=UTC", "LANG=C", "LC_ALL=C"},
	{"ASSAY_RUNTIME_WORKERS=4", "TZ=Asia/Tokyo", "LANG=de_DE.UTF-8", "LC_ALL=de_DE.UTF-8"},
	{"ASSAY_RUNTIME_WORKERS=16", "TZ=Asia/Tokyo", "LANG=C", "LC_ALL=C"},
	{"ASSAY_RUNTIME_WORKERS=16", "TZ=UTC", "LANG=de_DE.UTF-8", "LC_ALL=de_DE.UTF-8"},
}

// demoPages are the pages of the demo's web as an archive holds them.
func demoPages(t *testing.T) (pages []savedPage, dump string) {
	t.Helper()
	demo, err := assay.LoadDemoWeb()
	if err != nil {
		t.Fatal(err)
	}
	posts, err := demo.Dump()
	if err != nil {
		t.Fatal(err)
	}
	const checks, stories = "http://" + assay.DemoFactCheckHost, "http://" + assay.DemoNewsHost
	addresses := []string{checks + "/robots.txt", stories + "/robots.txt", checks + "/factchecks/list/?page=1&category=truth-o-meter"}
	for n := range 5 {
		addresses = append(addresses, fmt.Sprintf("%s/factchecks/list/?page=%d&", checks, n+2))
	}
	for _, c := range slices.Concat(demo.Claims, demo.Oddities) {
		addresses = append(addresses, checks+"/factchecks/"+c.Path+"/")
	}
	for _, p := range demo.Pages {
		addresses = append(addresses, stories+p.Path)
	}
	for i, a := range addresses {
		r := httptest.NewRecorder()
		demo.ServeHTTP(r, httptest.NewRequest(http.MethodGet, a, nil))
		pages = append(pages, savedPage{url: a, status: r.Code, kind: r.Header().Get("Content-Type"), at: fmt.Sprintf("2024-02-%02d", i%28+1), body: r.Body.String()})
	}
	return pages, string(posts)
}

// demoFromArchive is a workspace that holds the demo's web as files.
func demoFromArchive(t *testing.T, pages []savedPage, dump string) *lab {
	t.Helper()
	l := &lab{t: t, dir: t.TempDir()}
	l.write(filepath.Join(l.dir, assay.ConfigName), string(assay.DemoConfig()))
	l.saved(pages...)
	l.must(0, "import", "reddit", l.write(filepath.Join(t.TempDir(), "posts.ndjson"), dump))
	return l
}

// The number of workers, the time zone and the locale leave no trace: on the demo's web from an archive,
// on the demo as it runs, and on a workspace of pairs.
func TestReleaseDoesNotDependOnSurroundings(t *testing.T) {
	t.Parallel()
	if _, err := time.LoadLocation("Asia/Tokyo"); err != nil {
		t.Fatalf("this machine knows no time zones, so the test would show nothing: %v", err)
	}
	pages, dump := demoPages(t)
	for name, build := range map[string]func(t *testing.T, env []string) map[string]string{
		"archive": func(t *testing.T, env []string) map[string]string {
			l := demoFromArchive(t, pages, dump)
			l.env = env
			return filesOf(t, l.build(3, "--replay").Release.Dir)
		},
		"pairs": func(t *testing.T, env []string) map[string]string {
			l := newLab(t, 40, "")
			l.env = env
			return filesOf(t, l.build(0).Release.Dir)
		},
		// When a page was fetched is a fact of the fetch: it is in the table of documents and nowhere else.
		"live": func(t *testing.T, env []string) map[string]string {
			l := &lab{t: t, dir: t.TempDir(), env: env}
			out, _ := l.must(0, "--json", "demo", l.dir)
			var r report
			if err := json.Unmarshal([]byte(out), &r); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			files := filesOf(t, r.Release.Dir)
			for _, dependent := range []string{"data/documents.jsonl", "manifest.json", "SHA256SUMS"} {
				delete(files, dependent)
			}
			for _, row := range released(t, r.Release.Dir, "documents") {
				if row["kind"] == corpus.KindLinkedArticle {
					row["retrieved_at"] = nil
				}
				files[fmt.Sprint(row["id"])] = fmt.Sprint(row)
			}
			return files
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := build(t, surroundings[0])
			others := surroundings[1:]
			if testing.Short() {
				others = others[:1]
			}
			for _, env := range others {
				if d := cmp.Diff(want, build(t, env)); d != "" {
					t.Errorf("%v: %s", env, d)
				}
			}
		})
	}
}

// A corpusLab has all that a corpus grows from: two pages of listings, claim pages, articles, posts, and a
// model that answers in every role.
type corpusLab struct {
	*lab
	web    *web
	checks []factCheck
}

const corpusClaims = 8

func newCorpus(t *testing.T, s setup) *corpusLab {
	t.Helper()
	c := &corpusLab{web: newWeb(t), checks: wells(corpusClaims)}
	c.serve()
	usual := setup{
		"recipe.models":  stubbed,
		"recipe.planner": "{variants: 2, per_variant: 3, keep: 3, follow_links: true}",
	}
	maps.Copy(usual, s)
	c.lab = newSite(t, c.web, []string{"news.example"}, usual)
	c.model.set(func(m *modelStub) { m.reply = knowing })
	var posts []post
	for i := range c.checks {
		posts = append(posts, wellPost(i))
	}
	c.posts(append(posts,
		post{id: "lk1", title: "Wells of Averil in the news", link: "http://news.example/averil"},
		post{id: "lk2", title: "Wells of Holm in the news", link: "http://news.example/holm"})...)
	return c
}

// serve puts the corpus on the web: the last claims on the first listing, as sites do.
func (c *corpusLab) serve() {
	host := "check.example"
	for _, f := range c.checks {
		c.web.on(f.address(host), shows(f.page()))
	}
	half := len(c.checks) / 2
	c.web.on(host+"/factchecks/list/", shows(listing("?page=2", hrefs(c.checks[half:]...)...)))
	c.web.on(host+"/factchecks/list/?page=2", shows(listing("", hrefs(c.checks[:half]...)...)))
	c.web.on("news.example/averil", shows(news("Wells of Averil", "The village of Averil has 2 wells, the office says.")))
	c.web.on("news.example/holm", func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusGone) })
}

var fencedPlace = regexp.MustCompile(`The village of ([A-Za-z ]+) has (\d+) wells`)

// knowing answers in every role, from the prompt alone.
func knowing(body string) (int, string, string) {
	claim := fencedPlace.FindStringSubmatch(body)
	switch {
	case claim == nil:
		return http.StatusOK, `{"quote":"","reason":"no village","answer":"unrelated"}`, "stop"
	case strings.Contains(body, "You prepare searches"):
		return http.StatusOK, fmt.Sprintf(`{"variants":["wells in the village of %s counted","%s wells council water"]}`, claim[1], claim[1]), "stop"
	case strings.Contains(body, "You are given one claim and nothing else"):
		return http.StatusOK, `{"answer":"true"}`, "stop"
	case strings.Contains(body, "wells in the village of "+claim[1]+" on Sunday and there were "+claim[2]):
		return http.StatusOK, `{"quote":"there were ` + claim[2] + ` of them","reason":"somebody counted","answer":"true"}`, "stop"
	}
	return http.StatusOK, `{"quote":"","reason":"another village","answer":"unrelated"}`, "stop"
}

// built is a build that is expected to end with a code, and the requests that reached web and model.
func (c *corpusLab) built(code int, args ...string) (r report, pages, calls int) {
	c.t.Helper()
	pages = c.web.total()
	calls, _ = c.model.requests()
	r = c.build(code, args...)
	after, _ := c.model.requests()
	return r, c.web.total() - pages, after - calls
}

// pairsOf names the pairs of a release.
func pairsOf(t *testing.T, r report) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, row := range released(t, r.Release.Dir, "pairs") {
		out[fmt.Sprint(row["claim_id"], " ", row["document_id"])] = fmt.Sprint(row["label"])
	}
	return out
}

func TestSecondBuildDoesNothingAndSaysSo(t *testing.T) {
	t.Parallel()
	c := newCorpus(t, nil)
	first, pages, calls := c.built(0)
	if first.Release.Counts["claims"] != corpusClaims || first.Labels["supporting"] == 0 || first.Labels["misleading"] == 0 || pages == 0 || calls == 0 {
		t.Fatalf("the corpus is no corpus: %+v, %d pages, %d calls", first, pages, calls)
	}
	again, pages, calls := c.built(0)
	if pages != 0 || calls != 0 || again.Fetch.Requests != 0 || again.LLM.Calls != 0 || len(again.ranStages()) != 0 {
		t.Errorf("%d requests, %d calls; the report says %d and %d and ran %v", pages, calls, again.Fetch.Requests, again.LLM.Calls, again.ranStages())
	}
	if again.LLM.Hits != first.LLM.Calls {
		t.Errorf("%d answers were reused, %d were paid for", again.LLM.Hits, first.LLM.Calls)
	}
	out, errs := c.must(0, "build")
	if !strings.Contains(errs, "\n0 requests, 0 calls") || !strings.Contains(out, "(unchanged)") {
		t.Errorf("a build that does nothing says:\n%s%s", errs, out)
	}
	if all, err := os.ReadDir(filepath.Join(c.dir, "release")); err != nil || len(all) != 1 {
		t.Errorf("%d releases, %v", len(all), err)
	}
}

// A changed word of a prompt reruns what asks with it, and what lies below only where the answer changed.
func TestChangedPromptReruns(t *testing.T) {
	t.Parallel()
	c := newCorpus(t, nil)
	first, _, _ := c.built(0)
	labels := 0
	for _, n := range first.Labels {
		labels += n
	}
	reword := func(file, old, changed string) {
		text, err := os.ReadFile(filepath.Join("../..", file))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), old) {
			t.Fatalf("%s holds no %q", file, old)
		}
		c.write(filepath.Join(c.dir, "prompts", filepath.Base(file)), strings.Replace(string(text), old, changed, 1))
	}
	for _, step := range []struct {
		file, old, changed string
		ran                map[string]int
		calls              int
	}{
		{"annotate/prompts/raguard.txt", "reading exam", "reading test", map[string]int{"label/raguard": first.ran("label/raguard")}, labels},
		{"annotate/prompts/zero.txt", "hold more likely", "think more likely", map[string]int{"zero/raguard": corpusClaims}, corpusClaims},
		{"planner/prompts/keywords.txt", "Make the queries different", "Make the search queries different", map[string]int{"plan/raguard": corpusClaims}, corpusClaims},
		{"annotate/prompts/raguard_compat.txt", "claim", "statement", map[string]int{}, 0}, // nobody asks with it
	} {
		reword(step.file, step.old, step.changed)
		r, pages, calls := c.built(0)
		if d := cmp.Diff(step.ran, r.ranStages()); d != "" || pages != 0 || calls != step.calls {
			t.Errorf("%s: ran %s; %d requests, %d calls, want 0 and %d", step.file, d, pages, calls, step.calls)
		}
		if d := cmp.Diff(pairsOf(t, first), pairsOf(t, r)); d != "" {
			t.Errorf("%s: pairs %s", step.file, d)
		}
	}
}

// A listing that shows a new item, and a new dump, run again what reads them and what is new below.
func TestNewListingsAndDumpsReachWhatReadsThem(t *testing.T) {
	t.Parallel()
	c := newCorpus(t, nil)
	before, _, _ := c.built(0)
	fresh := factCheck{Path: "2024/jan/05/mara-quill/wells-of-corrin/", Claim: "The village of Corrin has 40 wells.", Rating: "false"}
	c.web.on(fresh.address("check.example"), shows(fresh.page()))
	half := corpusClaims / 2
	c.saved(savedPage{url: "http://check.example" + firstListing, body: listing("?page=2", hrefs(append([]factCheck{fresh}, c.checks[half:]...)...)...)})
	if why, _ := c.must(0, "status", "--why", "http://check.example"+"/factchecks/list/?page=1&category=truth-o-meter"); !strings.Contains(why, "fresh") {
		t.Errorf("the listing under another address is stale:\n%s", why)
	}
	c.saved(savedPage{url: "http://check.example/factchecks/list/?page=1&category=truth-o-meter", body: listing("?page=2", hrefs(append([]factCheck{fresh}, c.checks[half:]...)...)...)})
	if why, _ := c.must(0, "status", "--why", "http://check.example/factchecks/list/?page=1&category=truth-o-meter"); !strings.Contains(why, "answer-changed") {
		t.Errorf("the listing is not stale:\n%s", why)
	}
	r, pages, calls := c.built(0)
	added := newPairs(t, before, r)
	want := map[string]int{"discover/politifact": 1, "parse/politifact": 1, "plan/raguard": 1, "zero/raguard": 1, "cluster/claims": 1}
	if d := cmp.Diff(want, withoutLabels(t, r, len(added))); d != "" || pages != 1 || calls != 2+len(added) || len(added) == 0 {
		t.Errorf("a new item: ran %s; %d requests, %d calls for %d new pairs", d, pages, calls, len(added))
	}
	if got := c.web.asked("check.example"); got[len(got)-1].path != "/factchecks/"+fresh.Path {
		t.Errorf("the last request was for %s", got[len(got)-1].path)
	}

	// A dump that concerns nothing: every search is made again over the grown index, by the stored queries,
	// and finds what it found.
	before = r
	c.posts(post{id: "zz1", title: "Lighthouse keeper wanted", text: "Somebody who likes the sea, owns a warm coat and reads at night may write to the harbour master."})
	r, pages, calls = c.built(0)
	if d := cmp.Diff(map[string]int{"plan/raguard": corpusClaims + 1}, r.ranStages()); d != "" || pages != 0 || calls != 0 {
		t.Errorf("a dump that concerns nothing: ran %s; %d requests, %d calls", d, pages, calls)
	}
	if d := cmp.Diff(filesOf(t, before.Release.Dir), filesOf(t, r.Release.Dir)); d != "" {
		t.Errorf("a dump that concerns nothing: release %s", d)
	}

	// One that concerns a claim: its new pairs are labelled and nothing else.
	c.posts(post{id: "zz2", title: "Corrin", text: "We looked at Corrin on a map from 1911 and found forty, then walked through Corrin and found them all."})
	r, pages, calls = c.built(0)
	added = newPairs(t, before, r)
	if d := cmp.Diff(map[string]int{"plan/raguard": corpusClaims + 1}, withoutLabels(t, r, len(added))); d != "" || pages != 0 || calls != len(added) || len(added) == 0 || len(added) > corpusClaims+1 {
		t.Errorf("a dump that concerns a claim: ran %s; %d requests, %d calls for %d new pairs", d, pages, calls, len(added))
	}
	// The same dump again is no news.
	c.posts(post{id: "zz2", title: "Corrin", text: "We looked at Corrin on a map from 1911 and found forty, then walked through Corrin and found them all."})
	if r, _, _ := c.built(0); len(r.ranStages()) != 0 {
		t.Errorf("the same dump again: ran %v", r.ranStages())
	}
}

// withoutLabels is what ran beside labelling, which must have met so many new pairs, some of which may
// have been left out, and no old one.
func withoutLabels(t *testing.T, r report, added int) map[string]int {
	t.Helper()
	ran := r.ranStages()
	for _, s := range r.Pipeline.Stages {
		if s.Name != "label/raguard" {
			continue
		}
		for reason := range s.Reasons {
			if reason != "fresh" && reason != "missing" {
				t.Errorf("%d labels ran because: %s", s.Reasons[reason], reason)
			}
		}
	}
	if ran["label/raguard"] < added {
		t.Errorf("%d labels ran for %d new pairs", ran["label/raguard"], added)
	}
	delete(ran, "label/raguard")
	return ran
}

// newPairs lists the pairs that only the later release has.
func newPairs(t *testing.T, before, after report) (added []string) {
	t.Helper()
	old := pairsOf(t, before)
	for p := range pairsOf(t, after) {
		if _, had := old[p]; !had {
			added = append(added, p)
		}
	}
	return added
}

// gone are captures of a page that is gone, one after the other, each a day after the one before.
func (c *corpusLab) gone(address string, statuses ...int) (list []savedPage) {
	first := time.Now().UTC() // later than whatever was retrieved
	for i, status := range statuses {
		list = append(list, savedPage{url: address, status: status, at: first.AddDate(0, 0, i).Format(time.RFC3339Nano), body: "gone"})
	}
	return list
}

// A claim whose page is gone, or says something else now, leaves the release with all that hangs on it.
func TestVanishedClaimsLeave(t *testing.T) {
	t.Parallel()
	c := newCorpus(t, nil)
	before, _, _ := c.built(0)
	ids := map[string]string{}
	for _, row := range released(t, before.Release.Dir, "claims") {
		ids[row["text"].(string)] = row["id"].(string)
	}
	address := func(i int) string { return "http://" + c.checks[i].address("check.example") }
	edited := c.checks[2]
	edited.Claim = "The village of Lakeford has 17 wells."
	c.saved(c.gone(address(0), http.StatusGone, http.StatusGone)...)
	c.saved(c.gone(address(1), http.StatusGone, http.StatusNotFound)...)
	c.saved(savedPage{url: address(2), body: edited.page()})
	r, pages, _ := c.built(0)
	if pages != 0 || r.ran("parse/politifact") != 3 {
		t.Errorf("%d requests, %d pages parsed; want 0 and 3", pages, r.ran("parse/politifact"))
	}
	claims := column(t, r.Release.Dir, "claims", "id")
	gone := []string{ids[c.checks[0].Claim], ids[c.checks[1].Claim], ids[c.checks[2].Claim]}
	for _, id := range gone {
		if slices.Contains(claims, id) || slices.Contains(column(t, r.Release.Dir, "pairs", "claim_id"), id) {
			t.Errorf("%s is still released", id)
		}
		for name := range filesOf(t, r.Release.Dir) {
			data, err := os.ReadFile(filepath.Join(r.Release.Dir, name))
			if err != nil {
				t.Fatal(err)
			}
			// The claim in its place names the one whose text was edited.
			data = bytes.ReplaceAll(data, []byte(`"supersedes":"`+ids[c.checks[2].Claim]+`"`), nil)
			if bytes.Contains(data, []byte(id)) {
				t.Errorf("%s still names %s", name, id)
			}
		}
	}
	if !slices.Contains(column(t, r.Release.Dir, "claims", "text"), edited.Claim) || len(claims) != corpusClaims-2 {
		t.Errorf("claims: %q", column(t, r.Release.Dir, "claims", "text"))
	}
	if n := withheld(t, r.Release.Dir)["page: gone"]; n != 2 {
		t.Errorf("withheld: %v", withheld(t, r.Release.Dir))
	}
	// No document is left that only a vanished claim led to.
	used := map[string]bool{}
	for _, id := range column(t, r.Release.Dir, "pairs", "document_id") {
		used[id] = true
	}
	for _, id := range column(t, r.Release.Dir, "documents", "id") {
		if !used[id] {
			t.Errorf("the document %s hangs on nothing", id)
		}
	}
	// Pages that come back bring their claims back, with their labels, for nothing.
	returned := time.Now().UTC().AddDate(0, 0, 1).Format(time.RFC3339Nano) // after the page was gone
	c.saved(
		savedPage{url: address(0), at: returned, body: c.checks[0].page()},
		savedPage{url: address(1), at: returned, body: c.checks[1].page()},
		savedPage{url: address(2), at: returned, body: c.checks[2].page()})
	back, pages, calls := c.built(0)
	if d := cmp.Diff(filesOf(t, before.Release.Dir), filesOf(t, back.Release.Dir)); d != "" || pages != 0 || calls != 0 {
		t.Errorf("after they came back: %s; %d requests, %d calls", d, pages, calls)
	}
}

// The order in which files were imported, and repeats among them, leave no trace.
func TestReleaseDoesNotDependOnOrderOfImports(t *testing.T) {
	t.Parallel()
	pages, dump := demoPages(t)
	lines := strings.SplitAfter(strings.TrimSpace(dump), "\n")
	// Another dump repeats posts: with more text, with less, deleted since, and as it was.
	var other []string
	for i, line := range lines[:12] {
		var p map[string]any
		if err := json.Unmarshal([]byte(line), &p); err != nil {
			t.Fatal(err)
		}
		switch text, _ := p["selftext"].(string); i % 4 {
		case 0:
			p["selftext"] = text + " Edit: thank you all."
		case 1:
			p["selftext"] = text[:len(text)/2]
		case 2:
			p["selftext"] = "[deleted]"
		}
		data, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		other = append(other, string(data)+"\n")
	}
	// The same pages as another crawler met them: earlier or later, and under addresses that tell of the way.
	var again []savedPage
	for i, p := range pages {
		if p.status != http.StatusOK || i%2 == 0 {
			continue
		}
		p.at = fmt.Sprintf("2024-0%d-11", 1+i%3)
		again = append(again, p)
		if strings.Contains(p.url, "/20") {
			p.url += "?utm_source=feed&fbclid=x" + fmt.Sprint(i)
			again = append(again, p)
		}
	}
	build := func(backward bool) map[string]string {
		l := &lab{t: t, dir: t.TempDir()}
		l.write(filepath.Join(l.dir, assay.ConfigName), string(assay.DemoConfig()))
		l.env = []string{"ASSAY_RECIPE_DISCOVER=[listing, stored]"}
		first, second := slices.Clone(pages), slices.Clone(again)
		one, two := slices.Clone(lines), slices.Clone(other)
		steps := []func(){
			func() { l.saved(first...) },
			func() { l.saved(second...) },
			func() {
				l.must(0, "import", "reddit", l.write(filepath.Join(t.TempDir(), "one.ndjson"), strings.Join(one, "")))
			},
			func() {
				l.must(0, "import", "reddit", l.write(filepath.Join(t.TempDir(), "two.ndjson"), strings.Join(two, "")))
			},
			func() { l.saved(first[:5]...) },
		}
		if backward {
			slices.Reverse(steps)
			slices.Reverse(first)
			slices.Reverse(second)
			slices.Reverse(one)
			slices.Reverse(two)
			one[0], one[len(one)-1] = one[0]+"\n", strings.TrimSpace(one[len(one)-1])
		}
		for _, step := range steps {
			step()
		}
		return filesOf(t, l.build(3, "--replay").Release.Dir)
	}
	if d := cmp.Diff(build(false), build(true)); d != "" {
		t.Errorf("in reverse order: %s", d)
	}
}

// What gc drops nobody needs: a replay afterwards asks nobody and gives the same release.
func TestGCKeepsWhatReplayNeeds(t *testing.T) {
	t.Parallel()
	c := newCorpus(t, nil)
	c.built(0)
	// Leave something behind to drop: a claim that is gone, labels under another prompt.
	c.saved(c.gone("http://"+c.checks[0].address("check.example"), http.StatusGone, http.StatusGone)...)
	kept, _, _ := c.built(0)
	want := filesOf(t, kept.Release.Dir)
	if err := os.RemoveAll(filepath.Join(c.dir, "release")); err != nil {
		t.Fatal(err)
	}
	out, _ := c.must(0, "gc")
	if !regexp.MustCompile(`dropped [1-9]`).MatchString(out) {
		t.Errorf("gc dropped nothing: %s", out)
	}
	r, pages, calls := c.built(0, "--replay")
	if d := cmp.Diff(want, filesOf(t, r.Release.Dir)); d != "" || pages != 0 || calls != 0 || len(r.ranStages()) != 0 || r.Fetch.Requests != 0 {
		t.Errorf("after gc: %s; %d requests, %d calls, ran %v", d, pages, calls, r.ranStages())
	}
	// And with every item made again from the answers alone.
	c.env = append(c.env, "ASSAY_RECIPE_LABEL_DOCUMENT_CHARS=11999")
	if r, pages, calls = c.built(0, "--replay"); pages != 0 || calls != 0 || r.ran("label/raguard") == 0 {
		t.Errorf("labels made again after gc: %d requests, %d calls, ran %v", pages, calls, r.ranStages())
	}
	if live, pages, calls := c.built(0); pages != 0 || calls != 0 {
		t.Errorf("a live build after gc: %d requests, %d calls, ran %v", pages, calls, live.ranStages())
	}
}

// A backup that is taken while a build runs becomes a workspace that ends in the same release.
func TestBackupWhileBuilding(t *testing.T) {
	t.Parallel()
	calm := newLab(t, 40, "")
	want := filesOf(t, calm.build(0).Release.Dir)
	l := newLab(t, 40, "")
	copyOf := &lab{t: t, dir: t.TempDir(), model: l.model}
	copyOf.configure("")
	// After 15 answers the model takes its time until the backup is made.
	half, done := make(chan struct{}), make(chan struct{})
	reach, release, good := sync.OnceFunc(func() { close(half) }), sync.OnceFunc(func() { close(done) }), l.model.reply
	t.Cleanup(release) // the stub's server waits for its answers
	var asked atomic.Int64
	reply := func(body string) (int, string, string) {
		if asked.Add(1) > 15 {
			reach()
			<-done
		}
		return good(body)
	}
	l.model.set(func(m *modelStub) { m.reply = reply })
	cmd := l.command("build")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, half)
	backup := filepath.Join(t.TempDir(), "while.backup")
	l.must(0, "backup", backup)
	if running, _ := l.must(0, "status"); !strings.Contains(running, "a build is running") {
		t.Errorf("status while a build runs:\n%s", running)
	}
	release()
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	copyOf.must(0, "restore", backup)
	before, _ := l.model.requests()
	r := copyOf.build(0)
	if d := cmp.Diff(want, filesOf(t, r.Release.Dir)); d != "" {
		t.Errorf("restored: %s", d)
	}
	// The answers that were on disk are in the backup; of the first 15 at most the 4 in flight were not.
	if all, _ := l.model.requests(); all-before > 29 || all == before || r.LLM.Calls != all-before {
		t.Errorf("%d calls of 40 were made again, at least 11 answers were in the backup", all-before)
	}
}

// A build that is interrupted says so, keeps what it has, and goes on.
func TestInterruptedBuildsGoOn(t *testing.T) {
	t.Parallel()
	calm := newCorpus(t, nil)
	whole, _, _ := calm.built(0)
	want := pairsOf(t, whole)
	_, distinct := calm.model.requests()
	for name, arm := range map[string]func(c *corpusLab, interrupt func()){
		"while fetching": func(c *corpusLab, interrupt func()) {
			page := c.checks[6].page()
			c.web.on(c.checks[6].address("check.example"), func(rw http.ResponseWriter, r *http.Request) {
				interrupt()
				shows(page)(rw, r)
			})
		},
		"while labelling": func(c *corpusLab, interrupt func()) {
			hook := func(n int) {
				if n >= distinct/2 {
					interrupt()
				}
			}
			c.model.set(func(m *modelStub) { m.delay, m.onAnswer = 5*time.Millisecond, hook })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCorpus(t, nil)
			cmd := c.command("build")
			var out bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &out
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			arm(c, sync.OnceFunc(func() { cmd.Process.Signal(syscall.SIGINT) }))
			err := cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); code != 130 || !strings.Contains(out.String(), "run the same command to go on") {
				t.Errorf("exit %d (%v), want 130\n%s", code, err, out.String())
			}
			if exists(filepath.Join(c.dir, "release")) {
				t.Error("an interrupted build left a release")
			}
			r, _, _ := c.built(0)
			if d := cmp.Diff(want, pairsOf(t, r)); d != "" {
				t.Errorf("after an interruption: %s", d)
			}
			if all, n := c.model.requests(); n != distinct || all-n > 4 {
				t.Errorf("%d requests of which %d differ; want %d, and at most the 4 in flight again", all, n, distinct)
			}
			for _, f := range c.checks {
				if n := c.web.times(f.address("check.example")); n == 0 || n > 2 {
					t.Errorf("%s was fetched %d times", f.Path, n)
				}
			}
		})
	}
}

// Limits of a run stop it with 4, before they are passed, and the next run goes on.
func TestLimitedBuildsGoOn(t *testing.T) {
	t.Parallel()
	calm := newLab(t, 30, "")
	want := filesOf(t, calm.build(0).Release.Dir)
	t.Run("calls", func(t *testing.T) {
		t.Parallel()
		l := newLab(t, 30, "")
		for _, code := range []int{4, 4, 0} {
			before, _ := l.model.requests()
			_, errs := l.must(code, "build", "--max-calls", "13")
			if n, _ := l.model.requests(); n-before > 13 || code == 4 && (n-before != 13 || !strings.Contains(errs, "13 of 13 calls")) {
				t.Errorf("%d calls with a limit of 13\n%s", n-before, errs)
			}
		}
		r := l.build(0)
		if d := cmp.Diff(want, filesOf(t, r.Release.Dir)); d != "" {
			t.Errorf("in three runs: %s", d)
		}
		if all, distinct := l.model.requests(); all != 30 || distinct != 30 {
			t.Errorf("%d calls, %d different; want 30", all, distinct)
		}
	})
	t.Run("time", func(t *testing.T) {
		t.Parallel()
		l := newLab(t, 30, "")
		l.model.set(func(m *modelStub) { m.delay = 100 * time.Millisecond })
		_, errs := l.must(4, "build", "--max-duration", "300ms")
		if !strings.Contains(errs, "--max-duration") {
			t.Errorf("a build whose time is up says:\n%s", errs)
		}
		l.model.set(func(m *modelStub) { m.delay = 0 })
		r := l.build(0, "--max-duration", "10m")
		if d := cmp.Diff(want, filesOf(t, r.Release.Dir)); d != "" {
			t.Errorf("in two runs: %s", d)
		}
		if all, distinct := l.model.requests(); distinct != 30 || all > 34 {
			t.Errorf("%d calls, %d different; want 30 and at most the 4 in flight again", all, distinct)
		}
	})
}

// An account without money and a key that is refused end a run at once, and no secret is ever kept or
// shown, even where a server repeats it.
func TestAccountsAndSecrets(t *testing.T) {
	t.Parallel()
	const secret = "sk-test-4f1c0ffee4f1c0ffee4f1c0ffee"
	newKeyed := func(t *testing.T) *lab {
		l := newLab(t, 20, "")
		path := filepath.Join(l.dir, assay.ConfigName)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		l.write(path, strings.Replace(string(text), "concurrency: 4}", "concurrency: 4, key_env: STUB_SECRET}", 1))
		l.env = []string{"STUB_SECRET=" + secret}
		return l
	}
	for _, tt := range []struct {
		name         string
		status, code int
		body         string
		says         []string
	}{
		{"no money", http.StatusTooManyRequests, 4, `{"error":{"message":"You exceeded your current quota (key ` + secret + `).","type":"insufficient_quota","code":"insufficient_quota"}}`, []string{"quota"}},
		{"no money, by its status", http.StatusPaymentRequired, 4, `{"error":{"message":"Insufficient credits"}}`, []string{"quota"}},
		{"key refused", http.StatusUnauthorized, 1, `{"error":{"message":"Incorrect API key provided: ` + secret + `","code":"invalid_api_key"}}`, []string{"STUB_SECRET"}},
		{"key not allowed", http.StatusForbidden, 1, `{"error":{"message":"no access for Bearer ` + secret + `"}}`, []string{"STUB_SECRET"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := newKeyed(t)
			good := l.model.reply
			l.model.set(func(m *modelStub) { m.reply = func(string) (int, string, string) { return tt.status, tt.body, "" } })
			out, errs := l.must(tt.code, "build")
			if n, _ := l.model.requests(); n == 0 || n > 4 {
				t.Errorf("%d requests; the run should end at once, with at most the 4 in flight", n)
			}
			for _, s := range tt.says {
				if !strings.Contains(errs, s) {
					t.Errorf("the message names no %s:\n%s", s, errs)
				}
			}
			if strings.Contains(out+errs, secret) {
				t.Errorf("the secret is shown:\n%s%s", out, errs)
			}
			l.model.set(func(m *modelStub) { m.reply = good })
			if r := l.build(0); r.Labels["unrelated"] != 20 {
				t.Errorf("after the account is in order: %v", r.Labels)
			}
			noSecret(t, l, secret)
		})
	}
	t.Run("no key", func(t *testing.T) {
		t.Parallel()
		l := newKeyed(t)
		l.env = []string{"STUB_SECRET="}
		_, errs := l.must(1, "build")
		if n, _ := l.model.requests(); n != 0 || !strings.Contains(errs, "STUB_SECRET") {
			t.Errorf("%d requests; %s", n, errs)
		}
	})
	t.Run("repeated in replies", func(t *testing.T) {
		t.Parallel()
		l := newKeyed(t)
		var sent atomic.Bool
		front := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.Header.Get("Authorization"), secret) {
				sent.Store(true)
			}
			rw.Header().Set("X-Debug", "auth="+secret)
			l.model.ServeHTTP(rw, r)
		}))
		t.Cleanup(front.Close)
		l.env = append(l.env, "ASSAY_RUNTIME_ENDPOINTS_STUB_BASE_URL="+front.URL+"/v1")
		reply := func(body string) (int, string, string) {
			if strings.Contains(body, "number 3 has") { // not JSON: it is shown to the model once more
				return http.StatusOK, "Your key is " + secret + ", the answer is open.", "stop"
			}
			return http.StatusOK, `{"quote":"","reason":"I know your key, ` + secret + `","answer":"unrelated"}`, "stop"
		}
		l.model.set(func(m *modelStub) { m.reply = reply })
		r := l.build(3)
		if !sent.Load() || r.Labels["unrelated"] != 19 {
			t.Fatalf("the key was not sent, or the labels are others: %v", r.Labels)
		}
		shown, _ := l.must(0, "show", l.ls("label", "--state", "done")[0].Key)
		if !strings.Contains(shown, "I know your key") {
			t.Errorf("the reply is not shown: %s", shown)
		}
		noSecret(t, l, secret)
	})
}

// noSecret looks for a secret in every file of a workspace, in every record of its store as it reads when
// unpacked, and in a backup.
func noSecret(t *testing.T, l *lab, secret string) {
	t.Helper()
	if out, errs := l.must(0, "config", "show"); strings.Contains(out+errs, secret) {
		t.Error("config show shows the secret")
	}
	backup, errs := l.must(0, "backup", "-")
	if strings.Contains(backup+errs, secret) {
		t.Error("the backup holds the secret")
	}
	err := filepath.WalkDir(l.dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		data, err := io.ReadAll(f)
		if bytes.Contains(data, []byte(secret)) {
			t.Errorf("%s holds the secret", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	s, err := kv.Open(filepath.Join(l.dir, ".assay", "store"), kv.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	records, known := 0, false
	for _, bucket := range s.Buckets() {
		for entry, err := range kv.In[[]byte](s, bucket, 1).Scan("", "") {
			if err != nil {
				t.Fatalf("%s %q: %v", bucket, entry.Key, err)
			}
			records++
			known = known || bytes.Contains(entry.Value, []byte("the wells of village number"))
			if strings.Contains(entry.Key, secret) || bytes.Contains(entry.Value, []byte(secret)) {
				t.Errorf("%s %q holds the secret: %.300s", bucket, entry.Key, entry.Value)
			}
		}
	}
	if records < 40 || !known {
		t.Errorf("the search for the secret saw %d records, and what is known to be there: %v", records, known)
	}
}
