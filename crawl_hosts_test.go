package assay

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"assay/corpus"
	"assay/fetch"
	"assay/scrapers"
)

// A crowd is many hosts of one site on one port of loopback. Each has a robots.txt that closes a part of
// it, listings of ten items, and pages; it notes when it was asked for what, by its own clock.
type crowd struct {
	hosts, pages int // pages of each host that may be read; one in ten more may not
	server       *httptest.Server
	now          func() time.Time

	mu     sync.Mutex
	visits map[string][]crowdVisit // by host
	parsed map[string]int          // by address
}

type crowdVisit struct {
	path string
	at   time.Time
}

const crowdListing = 10

func newCrowd(t testing.TB, hosts, pages int, now func() time.Time) *crowd {
	c := &crowd{hosts: hosts, pages: pages, now: now, visits: map[string][]crowdVisit{}, parsed: map[string]int{}}
	c.server = httptest.NewServer(c)
	t.Cleanup(c.server.Close)
	site, err := scrapers.SiteNamed("politifact")
	if err != nil {
		t.Fatal(err)
	}
	parse := site.Parse
	site.Name = "zz_crowd"
	site.Layouts = nil // looking for drift reads a page once more, from the same tree
	site.Parse = func(p *fetch.Page) ([]corpus.Claim, error) {
		c.mu.Lock()
		c.parsed[p.URL]++
		c.mu.Unlock()
		return parse(p)
	}
	before := scrapers.All
	scrapers.All = append(slices.Clone(before), site)
	t.Cleanup(func() { scrapers.All = before })
	return c
}

func crowdHost(i int) string { return fmt.Sprintf("crowd%02d.example", i) }

func (c *crowd) path(n int) string {
	month := "mar"
	if n >= c.pages {
		month = "feb" // which robots.txt closes
	}
	return fmt.Sprintf("/factchecks/2023/%s/%02d/mara-quill/wells-%d/", month, n%28+1, n)
}

func (c *crowd) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	c.visits[r.Host] = append(c.visits[r.Host], crowdVisit{r.URL.RequestURI(), c.now()})
	c.mu.Unlock()
	box := func(size string, n int) string {
		return fmt.Sprintf(`<article class="m-statement m-statement--is-%s"><div class="m-statement__meta"><a href="/personalities/mara-quill/" class="m-statement__name" title="Mara Quill">Mara Quill</a>
<div class="m-statement__desc">stated on March 9, 2023 in a speech:</div></div><div class="m-statement__quote"><a href="%s">Village %d of %s has %d wells.</a></div>
<div class="m-statement__meter"><picture><img src="/x.jpg" class="c-image__original" alt="false"></picture></div></article>`, size, c.path(n), n, r.Host, n+2)
	}
	var body strings.Builder
	switch {
	case r.URL.Path == "/robots.txt":
		rw.Header().Set("Content-Type", "text/plain")
		fmt.Fprint(rw, "User-agent: *\nDisallow: /factchecks/2023/feb/\n")
		return
	case r.URL.Path == "/factchecks/list/":
		page, _ := strconv.Atoi(r.URL.Query().Get("page"))
		all := c.pages + c.pages/10
		for n := (page - 1) * crowdListing; n < min(page*crowdListing, all); n++ {
			body.WriteString(box("medium", n))
		}
		if page*crowdListing < all {
			fmt.Fprintf(&body, `<a class="c-button" href="?page=%d&category=truth-o-meter">Next</a>`, page+1)
		}
	default:
		n, err := strconv.Atoi(strings.Trim(r.URL.Path[strings.LastIndex(r.URL.Path, "wells-")+len("wells-"):], "/"))
		if err != nil {
			http.NotFound(rw, r)
			return
		}
		body.WriteString(box("xlarge", n) + `<div class="m-author__content">By <a href="/staff/">Tessa Brandt</a> <span class="m-author__date">March 14, 2023</span></div>`)
	}
	rw.Header().Set("Content-Type", "text/html; charset=utf-8")
	fmt.Fprintf(rw, "<!DOCTYPE html><html><head><title>Wells</title></head><body><main class=\"o-listicle\">%s</main></body></html>", &body)
}

// open makes a workspace that reads the crowd, with a gap between requests, another for the first host.
func (c *crowd) open(t testing.TB, gap, first time.Duration, o OpenOptions) *Workspace {
	t.Helper()
	var b strings.Builder
	b.WriteString("recipe:\n  name: crowd\n  discover: [listing]\n  speakers: []\n  dates: {from: \"\", to: \"\"}\n  evidence: []\n  sites:\n")
	for i := range c.hosts {
		fmt.Fprintf(&b, "    - {name: zz_crowd, base: \"http://%s\"}\n", crowdHost(i))
	}
	fmt.Fprintf(&b, "runtime:\n  contact: crowd@crowd.example\n  delay: %v\n  host_delay: {%s: %v}\n  workers: 4\n  resolve:\n", gap, crowdHost(0), first)
	for i := range c.hosts {
		fmt.Fprintf(&b, "    %s: %q\n", crowdHost(i), c.server.Listener.Addr())
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, ConfigName), []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	w, err := Open(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// requests is what a host is asked for in a whole crawl: robots.txt, listings, and pages that are open.
func (c *crowd) requests() int {
	all := c.pages + c.pages/10
	return 1 + (all+crowdListing-1)/crowdListing + c.pages
}

// A crawl of fifty hosts keeps every host's gap, as the hosts measure it, reads nothing that robots.txt
// closes, and parses each page once; the next day asks for the newest items alone. Time is made up: it
// passes when somebody waits.
func TestCrawlOfManyHosts(t *testing.T) {
	pages := 100
	if testing.Short() {
		pages = 10
	}
	clock := newCalendar()
	c := newCrowd(t, 50, pages, clock.now)
	const gap, first = time.Second, 3 * time.Second
	w := c.open(t, gap, first, OpenOptions{Now: clock.now, Sleep: clock.sleep})
	defer closed(t, w)
	rep, err := w.Build(t.Context(), BuildOptions{Until: KindParse})
	if err != nil {
		t.Fatal(err)
	}
	parse := stageOf(t, rep, "parse/zz_crowd")
	if total := 50 * (pages + pages/10); parse.Ran != total || parse.Failed > 0 || parse.Exclusions["robots"] != 50*(pages/10) || parse.Excluded != 50*(pages/10) {
		t.Errorf("pages: %+v; want %d, a tenth of %d closed", parse, total, 50*pages)
	}
	for i := range c.hosts {
		list := c.visits[crowdHost(i)]
		least := gap
		if i == 0 {
			least = first
		}
		if len(list) != c.requests() {
			t.Errorf("%s was asked %d times, want %d", crowdHost(i), len(list), c.requests())
		}
		for k, v := range list {
			if strings.Contains(v.path, "/feb/") {
				t.Errorf("%s was asked for %s, which its robots.txt closes", crowdHost(i), v.path)
			}
			if k > 0 && v.at.Sub(list[k-1].at) < least {
				t.Errorf("%s was asked for %s %v after the request before it", crowdHost(i), v.path, v.at.Sub(list[k-1].at))
			}
		}
	}
	if len(c.parsed) != 50*pages {
		t.Errorf("%d pages parsed, want %d", len(c.parsed), 50*pages)
	}
	for address, n := range c.parsed {
		if n != 1 {
			t.Errorf("%s was parsed %d times", address, n)
		}
	}
	// The next night: the newest three listings of each host show thirty known items; no page is due.
	clock.pass(24 * time.Hour)
	again := refreshed(t, w, RefreshOptions{})
	if want := 50 * (1 + min(3, (pages+pages/10+crowdListing-1)/crowdListing)); again.Requests.Total != want || again.Requests.Again != 0 {
		t.Errorf("the next night: %+v, want %d for robots.txt and listings", again.Requests, want)
	}
	for address, n := range c.parsed {
		if n != 1 {
			t.Errorf("%s was parsed %d times, after a refresh that changed nothing", address, n)
		}
	}
}

// BenchmarkCrawlOfManyHosts is how long a crawl of fifty hosts takes against the slowest host's politeness,
// which no crawler can beat: its requests times its gap.
//
//	wall-x-polite  bar: at most 1.10
func BenchmarkCrawlOfManyHosts(b *testing.B) {
	pages, gap, first := 100, 100*time.Millisecond, 180*time.Millisecond
	if testing.Short() {
		pages = 20
	}
	var each []float64
	for b.Loop() {
		c := newCrowd(b, 50, pages, time.Now)
		w := c.open(b, gap, first, OpenOptions{})
		began := time.Now()
		rep, err := w.Build(b.Context(), BuildOptions{Until: KindParse})
		if err != nil || rep.Pipeline.Failed > 0 {
			b.Fatalf("%v, %d failed", err, rep.Pipeline.Failed)
		}
		polite := time.Duration(c.requests()-1) * first
		each = append(each, time.Since(began).Seconds()/polite.Seconds())
		if err := w.Close(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(median(each), "wall-x-polite")
	b.ReportMetric(0, "ns/op")
}
