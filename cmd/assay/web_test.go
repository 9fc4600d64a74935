package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html/template"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"assay/corpus"
)

// A web plays every host of a test on one port of loopback, and keeps who was asked for what and when.
// Hosts end in .example, which nobody can own; runtime.resolve leads to them.
type web struct {
	server *httptest.Server

	mu     sync.Mutex
	routes map[string]http.HandlerFunc // by host and path with query, by host and path, or by host
	visits []visit
}

// A visit is one request that reached the web.
type visit struct {
	host, path string
	at         time.Time
}

func newWeb(t interface{ Cleanup(func()) }) *web {
	w := &web{routes: map[string]http.HandlerFunc{}}
	w.server = httptest.NewServer(w)
	t.Cleanup(w.server.Close)
	return w
}

func (w *web) addr() string { return w.server.Listener.Addr().String() }

// on answers an address without scheme: host, host/path or host/path?query.
func (w *web) on(address string, h http.HandlerFunc) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.routes[address] = h
}

func (w *web) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	w.mu.Lock()
	w.visits = append(w.visits, visit{host, r.URL.RequestURI(), time.Now()})
	answer := http.NotFound
	for _, key := range []string{host, host + r.URL.Path, host + r.URL.RequestURI()} {
		if h := w.routes[key]; h != nil {
			answer = h
		}
	}
	w.mu.Unlock()
	answer(rw, r)
}

// asked lists the requests to a host by path, without those for robots.txt, in order of arrival.
func (w *web) asked(host string) []visit {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []visit
	for _, v := range w.visits {
		if v.host == host && v.path != "/robots.txt" {
			out = append(out, v)
		}
	}
	return out
}

// times is how often an address without scheme was asked for.
func (w *web) times(address string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, v := range w.visits {
		if v.host+v.path == address {
			n++
		}
	}
	return n
}

// total is how many requests came, robots.txt included.
func (w *web) total() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.visits)
}

// says answers with a body of a type.
func says(kind, body string) http.HandlerFunc {
	return func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", kind)
		fmt.Fprint(rw, body)
	}
}

func shows(page string) http.HandlerFunc { return says("text/html; charset=utf-8", page) }

// leads answers with a redirect.
func leads(status int, to string) http.HandlerFunc {
	return func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Location", to)
		rw.WriteHeader(status)
	}
}

// A factCheck is a page of an invented fact-checker in PolitiFact's markup. Path is that of the page
// below /factchecks/: year/month/day/speaker/slug/.
type factCheck struct {
	Path, Claim, Rating string
	Canonical           string // the address that the page calls its own; "" leaves it out
}

func (f factCheck) address(host string) string { return host + "/factchecks/" + f.Path }

// Speaker is the speaker's slug in a path.
func (f factCheck) Speaker() string { return strings.Split(f.Path, "/")[3] }

var pages = template.Must(template.New("").Parse(`
{{define "box"}}<article class="m-statement m-statement--is-{{.Size}}"><div class="m-statement__meta">
<a href="/personalities/{{.Speaker}}/" class="m-statement__name" title="{{.Speaker}}">{{.Speaker}}</a>
<div class="m-statement__desc">stated on March 9, 2023 in a council meeting:</div></div>
<div class="m-statement__quote">{{if .Href}}<a href="{{.Href}}">{{.Claim}}</a>{{else}}{{.Claim}}{{end}}</div>
<div class="m-statement__meter"><img src="/x-th.jpg" alt="true"><picture><img src="/x.jpg" class="c-image__original" alt="{{.Rating}}"></picture></div>
</article>{{end}}
{{define "claim"}}<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>Fact-check</title>
{{with .Canonical}}<link rel="canonical" href="{{.}}">{{end}}</head><body><main>
{{template "box" .}}
<div class="m-author__content">By <a href="/staff/">Tessa Brandt</a> <span class="m-author__date">March 14, 2023</span></div>
<h2 class="c-title c-title--subline">What the figures say</h2>
<article class="m-textblock"><p>We asked for the figures and counted them ourselves, twice, on two days of the same week.</p></article>
</main></body></html>{{end}}
{{define "list"}}<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>Latest</title></head><body>
<ul class="o-listicle">{{range .Items}}<li>{{template "box" .}}</li>{{end}}</ul>
{{with .Next}}<a class="c-button c-button--hollow" href="{{.}}">Next</a>{{end}}</body></html>{{end}}
{{define "news"}}<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{{.Title}}</title></head><body>
<header><a href="/">The Averil News</a></header><main><article><h1>{{.Title}}</h1>
{{range .Paragraphs}}<p>{{.}}</p>{{end}}</article></main></body></html>{{end}}
`))

func render(name string, data any) string {
	var b bytes.Buffer
	if err := pages.ExecuteTemplate(&b, name, data); err != nil {
		return err.Error()
	}
	return b.String()
}

// box is what the template of a statement reads.
type box struct {
	factCheck
	Size, Href string
}

func (f factCheck) page() string { return render("claim", box{factCheck: f, Size: "xlarge"}) }

// listing is a listing page with links as they are given, and where its button leads.
func listing(next string, hrefs ...string) string {
	var items []box
	for _, h := range hrefs {
		items = append(items, box{factCheck{Path: "///mara-quill/", Claim: "A statement.", Rating: "true"}, "medium", h})
	}
	return render("list", struct {
		Items []box
		Next  string
	}{items, next})
}

// hrefs are the links of a host's listing to its checks.
func hrefs(list ...factCheck) []string {
	var out []string
	for _, f := range list {
		out = append(out, "/factchecks/"+f.Path)
	}
	return out
}

const firstListing = "/factchecks/list/?category=truth-o-meter&page=1"

// checks serves the pages of a fact-checker and a listing of them.
func (w *web) checks(host string, list ...factCheck) {
	for _, f := range list {
		w.on(f.address(host), shows(f.page()))
	}
	w.on(host+"/factchecks/list/", shows(listing("", hrefs(list...)...)))
}

// wells are n different checks whose claims share words with the posts of wellPost.
func wells(n int) []factCheck {
	var out []factCheck
	for i := range n {
		out = append(out, factCheck{
			Path:   fmt.Sprintf("2023/mar/%02d/mara-quill/wells-of-village-%d/", i%27+1, i),
			Claim:  fmt.Sprintf("The village of %s has %d wells.", places[i%len(places)], i+2),
			Rating: []string{"true", "false"}[i%2],
		})
	}
	return out
}

var places = []string{"Averil", "Brenwick", "Lakeford", "Holm", "Tarnby", "Ostrava Hill", "Quillmoor", "Feltzburg", "Sandeby", "Norrick", "Ulvik", "Corrin"}

// A post is one line of a Reddit dump.
type post struct{ id, title, text, link string }

// wellPost talks about the i-th claim of wells.
func wellPost(i int) post {
	place := places[i%len(places)]
	return post{
		id: fmt.Sprintf("wp%03d", i), title: "Wells of " + place,
		text: fmt.Sprintf("I counted the wells in the village of %s on Sunday and there were %d of them, not one more.", place, i+2),
	}
}

// news is an article that is long enough to be taken for one.
func news(title, said string) string {
	return render("news", struct {
		Title      string
		Paragraphs []string
	}{title, []string{
		"The council of the district met on Tuesday evening and heard a report on water, roads and the fair in the spring.",
		said,
		"Two members of the council asked for the figures of the last ten years, which the office will send them before the next session.",
		"The session ended late. The next one is planned for the first week of the month, in the hall behind the church.",
	}})
}

// A setup is what a workspace sets beside the usual: key => YAML.
type setup map[string]string

// newSite makes a workspace that reads the web's host check.example, with delay 0, without search
// variants and with the builtin model, unless the setup says otherwise. Resolve names further hosts.
func newSite(t *testing.T, w *web, resolve []string, s setup) *lab {
	t.Helper()
	l := &lab{t: t, dir: t.TempDir(), model: newModelStub(t)}
	var hosts []string
	for _, h := range append([]string{"check.example"}, resolve...) {
		hosts = append(hosts, fmt.Sprintf("%s: %q", h, w.addr()))
	}
	usual := setup{
		"recipe.name":            "crawl",
		"recipe.discover":        "[listing]",
		"recipe.sites":           `[{name: politifact, base: "http://check.example"}]`,
		"recipe.speakers":        "[]",
		"recipe.dates":           `{from: "", to: ""}`,
		"recipe.evidence":        "[search]",
		"recipe.planner":         "{variants: 0, follow_links: true}",
		"runtime.contact":        "crawl@check.example",
		"runtime.workers":        "4",
		"runtime.delay":          "0s",
		"runtime.resolve":        "{" + strings.Join(hosts, ", ") + "}",
		"runtime.endpoints.stub": fmt.Sprintf("{provider: openai, base_url: %q, concurrency: 4}", l.model.server.URL+"/v1"),
	}
	maps.Copy(usual, s)
	l.set(usual)
	return l
}

// stubbed are the models of a workspace that asks the counting stub.
const stubbed = "{annotate: {endpoint: stub, model: stub-1, max_tokens: 200}, keywords: {endpoint: stub, model: stub-1, max_tokens: 200}, zero: {endpoint: stub, model: stub-1, max_tokens: 200}}"

// set writes assay.yaml.
func (l *lab) set(s setup) {
	l.t.Helper()
	var b strings.Builder
	section := []string{"", ""}
	for _, key := range slices.Sorted(maps.Keys(s)) {
		parts := strings.Split(key, ".")
		for depth, name := range parts[:len(parts)-1] {
			if section[depth] != name {
				fmt.Fprintf(&b, "%s%s:\n", strings.Repeat("  ", depth), name)
				section[depth] = name
			}
		}
		fmt.Fprintf(&b, "%s%s: %s\n", strings.Repeat("  ", len(parts)-1), parts[len(parts)-1], s[key])
	}
	l.write(filepath.Join(l.dir, "assay.yaml"), b.String())
}

// write puts a file down.
func (l *lab) write(path, text string) string {
	l.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		l.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		l.t.Fatal(err)
	}
	return path
}

// posts imports a dump with these posts.
func (l *lab) posts(list ...post) {
	l.t.Helper()
	l.must(0, "import", "reddit", l.write(filepath.Join(l.t.TempDir(), "posts.ndjson"), dump(list...)))
}

func dump(list ...post) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	for _, p := range list {
		link := "https://www.reddit.com/r/wells/comments/" + p.id + "/x/"
		if p.link != "" {
			link = p.link
		}
		if err := e.Encode(map[string]any{
			"id": p.id, "name": "t3_" + p.id, "subreddit": "wells", "title": p.title, "selftext": p.text, "author": "invented",
			"created_utc": 1678406400, "retrieved_on": 1678579200, "permalink": "/r/wells/comments/" + p.id + "/x/", "url": link, "is_self": p.link == "",
		}); err != nil {
			return err.Error()
		}
	}
	return b.String()
}

// A savedPage is a response that somebody else stored.
type savedPage struct {
	url    string
	status int
	at     string // RFC 3339; "" means now
	kind   string // media type; "" means text/html
	body   string
	packed bool // the body is gzip
}

// saved imports a folder of pages.
func (l *lab) saved(list ...savedPage) string {
	l.t.Helper()
	out, _ := l.must(0, "import", "dir", l.savedDir(list...))
	return out
}

func (l *lab) savedDir(list ...savedPage) string {
	l.t.Helper()
	dir := filepath.Join(l.t.TempDir(), "pages")
	var table strings.Builder
	for i, p := range list {
		name := fmt.Sprintf("%04d.html", i)
		if p.packed {
			name += ".gz"
		}
		kind := p.kind
		if kind == "" {
			kind = "text/html; charset=utf-8"
		}
		l.write(filepath.Join(dir, name), p.body)
		fmt.Fprintf(&table, "%s\t%s\t%d\t%s\t%s\n", name, p.url, max(p.status, 0), kind, p.at)
	}
	l.write(filepath.Join(dir, "urls.tsv"), strings.ReplaceAll(table.String(), "\t0\t", "\t200\t"))
	return dir
}

// warc writes pages as a web archive.
func warc(list ...savedPage) string {
	var b strings.Builder
	for i, p := range list {
		status, coding, kind := max(p.status, 200), "", cmp.Or(p.kind, "text/html; charset=utf-8")
		if p.packed {
			coding = "Content-Encoding: gzip\r\n"
		}
		message := fmt.Sprintf("HTTP/1.1 %d %s\r\nContent-Type: %s\r\n%sContent-Length: %d\r\n\r\n%s", status, http.StatusText(status), kind, coding, len(p.body), p.body)
		fmt.Fprintf(&b, "WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: %s\r\nWARC-Date: %sT00:00:00Z\r\nWARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-%012d>\r\n"+
			"Content-Type: application/http; msgtype=response\r\nContent-Length: %d\r\n\r\n%s\r\n\r\n", p.url, p.at, i, len(message), message)
	}
	return b.String()
}

// shown is what tests read of assay show.
type shown struct {
	Claim *struct {
		ID, Text  string
		ReviewURL string `json:"review_url"`
	}
	Document *struct{ ID, URL string }
	Trace    *corpus.Trace
	Items    []struct {
		Stage, Key string
		Excl       *struct{ Reason, Detail string }
		Fail       *struct {
			Class, Reason string
			Attempts      int
		}
	}
	Exchanges []struct {
		URL, Class, Reason, Detail string
		Status, Attempt            int
		Waited                     time.Duration
	}
	Leads []struct{ Address, On string }
}

func (l *lab) show(id string) (s shown) {
	l.t.Helper()
	out, _ := l.must(0, "show", id)
	if err := json.Unmarshal([]byte(out), &s); err != nil {
		l.t.Fatalf("show %s: %v\n%s", id, err, out)
	}
	return s
}

// A listed is a line of assay ls.
type listed struct{ Stage, Key, State, Class, Reason, Label, Summary string }

func (l *lab) ls(args ...string) (list []listed) {
	l.t.Helper()
	out, _ := l.must(0, append([]string{"ls", "--json"}, args...)...)
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		l.t.Fatalf("ls: %v\n%s", err, out)
	}
	return list
}

// reasons maps the keys of a listing to what became of them.
func reasons(list []listed) map[string]string {
	out := map[string]string{}
	for _, i := range list {
		out[i.Key] = i.Reason
	}
	return out
}

// filesOf hashes every file of a release.
func filesOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		sum := sha256.Sum256(data)
		out[filepath.ToSlash(rel)] = hex.EncodeToString(sum[:])
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(out) < 6 {
		t.Fatalf("%s holds %d files", dir, len(out))
	}
	return out
}

// column lists a column of a release's table.
func column(t *testing.T, dir, table, name string) []string {
	t.Helper()
	out := []string{}
	for _, row := range released(t, dir, table) {
		out = append(out, fmt.Sprint(row[name]))
	}
	return out
}

// withheld reads what a release's manifest says was left out.
func withheld(t *testing.T, dir string) map[string]int {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	var m struct {
		Facts struct{ Withheld map[string]int }
	}
	if err := json.Unmarshal(data, &m); err != nil {
		t.Fatal(err)
	}
	return m.Facts.Withheld
}

// ranStages is how many items of each stage ran, where any did.
func (r report) ranStages() map[string]int {
	out := map[string]int{}
	for _, s := range r.Pipeline.Stages {
		if s.Ran > 0 {
			out[s.Name] = s.Ran
		}
	}
	return out
}
