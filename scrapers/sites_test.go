package scrapers

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"assay/corpus"
	"assay/fetch"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

var update = flag.Bool("update", false, "write the golden files anew")

// An outcome is what a site makes of one fixture: the golden file beside it.
type outcome struct {
	Claims    []corpus.Claim    `json:"claims,omitempty"`
	Documents []corpus.Document `json:"documents,omitempty"`
	Listing   *Listing          `json:"listing,omitempty"`
	Excluded  string            `json:"excluded,omitempty"`
	Error     string            `json:"error,omitempty"`
}

func outcomeOf(claims []corpus.Claim, listing *Listing, err error) outcome {
	var ex *corpus.ExcludedError
	switch {
	case errors.As(err, &ex):
		return outcome{Excluded: ex.Reason}
	case err != nil:
		return outcome{Error: err.Error()}
	}
	return outcome{Claims: claims, Listing: listing}
}

// A fixture is a page of testdata/<site>, under the address that pages.tsv gives it.
type fixture struct {
	file, address string
	body          []byte
}

func (f fixture) listing() bool { return strings.HasPrefix(f.file, "listing") }

func (f fixture) page(t *testing.T) *fetch.Page {
	t.Helper()
	kind := map[string]string{".xml": "application/xml", ".reply": "application/json"}[filepath.Ext(f.file)]
	if kind == "" {
		kind = "text/html"
	}
	p, err := fetch.NewPage(f.address, http.Header{"Content-Type": {kind + "; charset=utf-8"}}, f.body, time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC))
	if err != nil {
		t.Fatalf("page %s: %v", f.file, err)
	}
	return p
}

func fixtures(t *testing.T, site string) []fixture {
	t.Helper()
	if web, err := txtar.ParseFile(filepath.Join("testdata", site+".web")); err == nil {
		return webFixtures(t, site, web)
	}
	dir := filepath.Join("testdata", site)
	rows, err := os.ReadFile(filepath.Join(dir, "pages.tsv"))
	if err != nil {
		t.Fatalf("site %s has no fixtures: %v", site, err)
	}
	var out []fixture
	for _, line := range strings.Split(strings.TrimSpace(string(rows)), "\n")[1:] {
		file, address, ok := strings.Cut(line, "\t")
		if !ok {
			t.Fatalf("%s: row %q is not file and address", dir, line)
		}
		body, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, fixture{file, address, body})
	}
	var pages []string
	for _, pattern := range []string{"*.html", "*.xml", "*.reply"} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, found...)
	}
	for _, page := range pages {
		if !slices.ContainsFunc(out, func(f fixture) bool { return f.file == filepath.Base(page) }) {
			t.Errorf("%s has no address in pages.tsv", page)
		}
	}
	return out
}

// webFixtures reads a small web, an archive whose files are named by file and address.
func webFixtures(t *testing.T, site string, web *txtar.Archive) (out []fixture) {
	t.Helper()
	for _, f := range web.Files {
		file, address, ok := strings.Cut(f.Name, " ")
		if !ok {
			t.Fatalf("testdata/%s.web: %q is not file and address", site, f.Name)
		}
		out = append(out, fixture{file: file, address: address, body: f.Data})
	}
	return out
}

func TestSites(t *testing.T) {
	if !slices.IsSortedFunc(All, func(a, b Site) int { return strings.Compare(a.Name, b.Name) }) {
		t.Error("All is not sorted by name")
	}
	for _, site := range All {
		t.Run(site.Name, func(t *testing.T) {
			if site.Version < 1 || site.Doc == "" || site.Host == "" || site.Reference == "" {
				t.Errorf("version, doc, host or reference is missing: %+v", site)
			}
			if !slices.Contains([]string{"captured", "documented", "unproven"}, site.Proven) {
				t.Errorf("proven = %q", site.Proven)
			}
			if (site.Parse == nil) == (site.Read == nil) {
				t.Fatal("exactly one of Parse and Read has to be set")
			}
			if _, err := corpus.CategoryNamed(string(site.Category)); site.Category != "" && err != nil {
				t.Error(err)
			}
			seen := map[string]bool{}
			var documents []corpus.Document
			outcomes := map[string]outcome{} // of a site whose fixtures are one file
			for _, f := range fixtures(t, site.Name) {
				t.Run(f.file, func(t *testing.T) {
					got := run(t, site, f)
					if again := run(t, site, f); !cmp.Equal(got, again) {
						t.Errorf("a second reading differs:\n%s", cmp.Diff(got, again))
					}
					if dir := filepath.Join("testdata", site.Name); isDir(dir) {
						golden(t, filepath.Join(dir, strings.TrimSuffix(f.file, filepath.Ext(f.file))+".json"), got)
					} else {
						outcomes[f.file] = got
					}
					conforms(t, site, f, got)
					documents = append(documents, got.Documents...)
					seen["claim"] = seen["claim"] || got.Claims != nil
					seen["reply"] = seen["reply"] || filepath.Ext(f.file) == ".reply"
					seen["document"] = seen["document"] || got.Documents != nil
					seen["excluded page"] = seen["excluded page"] || got.Excluded != "" && !f.listing()
					seen["broken page"] = seen["broken page"] || got.Error != "" && !f.listing()
					seen["listing with a next page"] = seen["listing with a next page"] || got.Listing != nil && (got.Listing.Next != "" || got.Listing.More != nil)
					seen["listing"] = seen["listing"] || got.Listing != nil && len(got.Listing.Refs) > 0
					seen["last listing"] = seen["last listing"] || got.Listing != nil && len(got.Listing.Refs) > 0 && got.Listing.Next == ""
				})
			}
			if len(outcomes) > 0 {
				golden(t, filepath.Join("testdata", site.Name+".json"), outcomes)
			}
			kinds := []string{"claim", "excluded page", "broken page", "listing with a next page", "last listing"}
			if site.Read != nil {
				kinds = []string{"document", "broken page", "listing"}
			}
			for _, kind := range kinds {
				if !seen[kind] {
					t.Errorf("testdata/%s has no %s", site.Name, kind)
				}
			}
			fieldsAreTold(t, site, documents)
			for _, body := range []string{"", "<p>hello", "{}", "\x00\xff"} {
				f := fixture{"none.html", "https://" + site.Host + "/nothing/here", []byte(body)}
				if got := readItem(site, f.page(t)); got.Error == "" && got.Excluded == "" {
					t.Errorf("reading %q = %+v without an error", body, got)
				}
			}
			for _, start := range append(site.Start("", nil), site.Start("http://mirror.example:8080", []string{"a b"})...) {
				// The reply of an interface is listing and item in one.
				item := site.Recognise("", start) || site.Recognise("http://mirror.example:8080", start)
				if start != corpus.CanonicalURL(start) || item && !seen["reply"] {
					t.Errorf("start address %s is not canonical, or taken for an item", start)
				}
			}
		})
	}
}

// fieldsAreTold holds that what a site is listed to tell is what its fixtures do: a field with a star is in
// every document, and one that is not listed in none.
func fieldsAreTold(t *testing.T, site Site, documents []corpus.Document) {
	t.Helper()
	if len(site.FieldNames()) == 0 || site.Read == nil && site.Tells != nil {
		t.Errorf("fields %q, tells %q", site.FieldNames(), site.Tells)
	}
	if site.Read == nil {
		return // the fields of Layouts, which Parse looks up
	}
	for name, told := range map[string]func(d corpus.Document) bool{
		"title":   func(d corpus.Document) bool { return d.Title != "" },
		"text":    func(d corpus.Document) bool { return d.Text != "" },
		"date":    func(d corpus.Document) bool { return d.PublishedAt != "" },
		"authors": func(d corpus.Document) bool { return len(d.Authors) > 0 },
		"tags":    func(d corpus.Document) bool { return len(d.Tags) > 0 },
	} {
		n := 0
		for _, d := range documents {
			if told(d) {
				n++
			}
		}
		some, every := slices.Contains(site.FieldNames(), name), slices.Contains(site.FieldNames(), name+"*")
		if every && n < len(documents) || !some && !every && n > 0 {
			t.Errorf("%s stands in %d of %d documents, against fields %q", name, n, len(documents), site.FieldNames())
		}
	}
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// run reads a fixture as the engine would: a listing through colly, an item page by Parse.
func run(t *testing.T, site Site, f fixture) outcome {
	t.Helper()
	if f.listing() {
		address := corpus.CanonicalURL(f.address)
		l, err := site.Discover(t.Context(), folderFetcher{address: f.body}, address)
		return outcomeOf(nil, &l, err)
	}
	return readItem(site, f.page(t))
}

// readItem reads an item page by whichever reader its site has.
func readItem(site Site, p *fetch.Page) outcome {
	if site.Read == nil {
		claims, err := site.Parse(p)
		return outcomeOf(claims, nil, err)
	}
	docs, err := site.Read(p)
	out := outcomeOf(nil, nil, err)
	if err == nil {
		out.Documents = docs
	}
	return out
}

// conforms holds what is true of every site.
func conforms(t *testing.T, site Site, f fixture, got outcome) {
	t.Helper()
	reply := filepath.Ext(f.file) == ".reply"
	if item := site.Recognise("", f.address); item && f.listing() && !reply || !item && (got.Claims != nil || got.Documents != nil) {
		t.Errorf("Recognise(%s) = %v", f.address, item)
	}
	for i, d := range got.Documents {
		if d.ID != corpus.DocumentID(d.URL) || d.URL != corpus.CanonicalURL(d.URL) || d.Title == "" || d.Text == "" || d.Source == "" || d.BodyStatus == "" || d.SHA256 != d.Seal().SHA256 {
			t.Errorf("document %d lacks something: %+v", i, d)
		}
	}
	if got.Error != "" && !strings.Contains(got.Error, corpus.CanonicalURL(f.address)) {
		t.Errorf("error %q does not name %s", got.Error, f.address)
	}
	for i, c := range got.Claims {
		if c.ID != corpus.ClaimID(c.Text, c.Speaker, c.ReviewURL, c.StatedDate) || c.Source != site.Name || c.Position != i {
			t.Errorf("claim %d has id %s, source %s, position %d", i, c.ID, c.Source, c.Position)
		}
		if c.Text == "" || c.RatingRaw == "" && site.Ratings != nil || c.ReviewURL == "" || c.Text != corpus.Space(c.Text) {
			t.Errorf("claim %d lacks text, rating or review: %+v", i, c)
		}
		unmapped := corpus.HasFlag(c.Flags, corpus.FlagUnmapped)
		if unmapped != (c.Verdict6 == "") || unmapped != (c.Rating == "") || unmapped != (c.Status == "") {
			t.Errorf("claim %d: flags %q with rating %q, verdict %q, status %q", i, c.Flags, c.Rating, c.Verdict6, c.Status)
		}
		for _, day := range []string{c.StatedDate, c.ReviewDate} {
			if _, err := time.Parse(time.DateOnly, day); day != "" && err != nil {
				t.Errorf("claim %d: date %q", i, day)
			}
		}
	}
	if got.Listing == nil {
		return
	}
	for _, ref := range got.Listing.Refs {
		if ref.Source != site.Name || ref.URL != corpus.CanonicalURL(ref.URL) || !site.Recognise("", ref.URL) {
			t.Errorf("ref %+v is no canonical item address of %s", ref, site.Name)
		}
	}
	if next := got.Listing.Next; next != corpus.CanonicalURL(next) || next != "" && site.Recognise("", next) && !reply {
		t.Errorf("next = %q", next)
	}
}

// What a site takes for an item is found among stored pages by Host and Hosts alone, so these name every host
// that Recognise knows.
func TestHostsNameWhatIsRecognised(t *testing.T) {
	ways := map[string][]string{ // items by site, beside the fixtures' with www and without
		"ap":           {"https://hosted.ap.org/berkshireeagle/article/6486944b076b4df99a583a3a7c85574d/unpredictable-sondland-faces-questions-about-trump-ukraine"},
		"bbc":          {"http://www.bbc.co.uk/news/health-34744858", "https://bbc.co.uk/news/health-34744858"},
		"reuters_news": {"http://uk.reuters.com/article/2014/12/29/uk-health-ebola-britain-idUKKBN0K71C820141229"},
	}
	for _, site := range All {
		for _, address := range ways[site.Name] {
			if !site.Recognise("", address) {
				t.Errorf("%s does not take %s for an item", site.Name, address)
			}
		}
		items := ways[site.Name]
		for _, f := range fixtures(t, site.Name) {
			bare := strings.Replace(f.address, "://www.", "://", 1)
			items = append(items, f.address, bare, strings.Replace(bare, "://", "://www.", 1))
		}
		for _, address := range items {
			host := corpus.Host(address)
			if site.Recognise("", address) && !slices.ContainsFunc(append([]string{site.Host}, site.Hosts...), func(h string) bool {
				return host == h || strings.HasSuffix(host, "."+h)
			}) {
				t.Errorf("%s takes %s for an item; its hosts are %s and %q", site.Name, address, site.Host, site.Hosts)
			}
		}
	}
}

// golden compares a value with its file, or writes the file under -update.
func golden[T any](t *testing.T, file string, got T) {
	t.Helper()
	if *update {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		if err := e.Encode(got); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var want T
	if err := json.Unmarshal(raw, &want); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

// unlisted compares the files of the folder with the two slices and says what is in one place alone.
func unlisted(files []string, sites, tables []string) []string {
	shared := []string{"site.go", "table.go", "claimreview.go", "claimreview_feed.go", "claimreview_json.go", "feed.go", "sitemap.go", "wordpress.go",
		"article.go", "news.go", "records.go", "tablefile.go", "review_page.go", "review_list.go", "drift.go", "ratings.go", "claimsearch.go"}
	var out []string
	for _, f := range files {
		if !strings.HasSuffix(f, ".go") || strings.HasSuffix(f, "_test.go") || slices.Contains(shared, f) {
			continue
		}
		name := strings.TrimSuffix(f, ".go")
		if table, ok := strings.CutPrefix(name, "table_"); ok {
			if !slices.Contains(tables, table) {
				out = append(out, f+" is not in Tables")
			}
		} else if !slices.Contains(sites, name) {
			out = append(out, f+" is not in All")
		}
	}
	for _, s := range sites {
		if !slices.Contains(files, s+".go") {
			out = append(out, s+" has no file of its name")
		}
	}
	for _, s := range tables {
		if !slices.Contains(files, "table_"+s+".go") {
			out = append(out, s+" has no file table_"+s+".go")
		}
	}
	return out
}

func TestEveryFileIsListed(t *testing.T) {
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var files, sites, tables []string
	for _, e := range entries {
		files = append(files, e.Name())
	}
	for _, s := range All {
		sites = append(sites, s.Name)
	}
	for _, s := range Tables {
		tables = append(tables, s.Name)
	}
	for _, problem := range unlisted(files, sites, tables) {
		t.Error(problem)
	}

	got := unlisted([]string{"site.go", "table.go", "a.go", "a_test.go", "b_js.go", "table_c.go", "README.md"}, []string{"a", "d"}, []string{"e"})
	want := []string{"b_js.go is not in All", "table_c.go is not in Tables", "d has no file of its name", "e has no file table_e.go"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("unlisted (-want +got):\n%s", diff)
	}
}

func TestNamed(t *testing.T) {
	for _, s := range All {
		if got, err := SiteNamed(s.Name); err != nil || got.Name != s.Name {
			t.Errorf("SiteNamed(%q) = %q, %v", s.Name, got.Name, err)
		}
	}
	if _, err := SiteNamed("politifcat"); err == nil || !strings.Contains(err.Error(), "politifact") {
		t.Errorf("SiteNamed of an unknown name = %v; want the known ones", err)
	}
	for _, s := range Tables {
		if got, err := TableNamed(s.Name); err != nil || got.Name != s.Name {
			t.Errorf("TableNamed(%q) = %q, %v", s.Name, got.Name, err)
		}
	}
	if _, err := TableNamed("raguardian"); err == nil || !strings.Contains(err.Error(), "raguard") {
		t.Errorf("TableNamed of an unknown name = %v; want the known ones", err)
	}
}

func TestAsFound(t *testing.T) {
	const address = "https://check.example/claims/bridge?ref=rss"
	for href, want := range map[string]string{
		address:                  "",
		"/claims/bridge?ref=rss": "",
		" bridge?ref=rss\n":      "",
		"/claims/bridge#verdict": address + "#verdict",
		address + "#verdict":     address + "#verdict",
		"HTTPS://CHECK.example:443/claims/bridge?ref=rss": "HTTPS://CHECK.example:443/claims/bridge?ref=rss",
	} {
		if got := asFound(address, href); got != want {
			t.Errorf("asFound(%q) = %q, want %q", href, got, want)
		}
	}
}
