package scrapers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"assay/corpus"
	"assay/fetch"

	"github.com/PuerkitoBio/goquery"
	"github.com/google/go-cmp/cmp"
)

func TestPolitiFactRecognise(t *testing.T) {
	const mirror = "http://127.0.0.1:8080"
	tests := []struct {
		base, address string
		want          bool
	}{
		{"", "https://www.politifact.com/factchecks/2021/jun/09/ada-quill/ferry-fares/", true},
		{"", "https://www.politifact.com/factchecks/2021/jun/09/ada-quill/ferry-fares", true},
		{"", "http://www.politifact.com/factchecks/2021/jun/09/ada-quill/ferry-fares/?fbclid=x#top", true},
		{"", "HTTPS://PolitiFact.com:443/factchecks/2021/jun/09/ada-quill/ferry-fares/", true},
		{"", "https://www.politifact.com/truth-o-meter/statements/2010/jan/29/ada-quill/bridge/", true},
		{"", "https://www.politifact.com/west-virginia/statements/2019/nov/18/ada-quill/bridge/", true},
		{"", "https://www.politifact.com/factchecks/", false},
		{"", "https://www.politifact.com/factchecks/list/?page=2&", false},
		{"", "https://www.politifact.com/factchecks/2021/jun/09/", false},
		{"", "https://www.politifact.com/factchecks/2021/jun/09/ada-quill/ferry-fares/comments/", false},
		{"", "https://www.politifact.com/article/2021/jun/10/five-things/", false},
		{"", "https://www.politifact.com/truth-o-meter/article/2009/apr/20/prize/", false},
		{"", "https://www.politifact.com/personalities/ada-quill/", false},
		{"", "https://www.politifact.com.evil.example/factchecks/2021/jun/09/a/b/", false},
		{"", "https://static.politifact.com/factchecks/2021/jun/09/a/b/", false},
		{"", mirror + "/factchecks/2021/jun/09/a/b/", false},
		{mirror, mirror + "/factchecks/2021/jun/09/a/b/", true},
		{mirror + "/", mirror + "/factchecks/2021/jun/09/a/b/", true},
		{mirror, "http://127.0.0.1:8081/factchecks/2021/jun/09/a/b/", false},
		{mirror, "https://www.politifact.com/factchecks/2021/jun/09/a/b/", true},
		{mirror, mirror + "/factchecks/list/?page=1", false},
		{"", "factchecks/2021/jun/09/a/b/", false},
		{"", "", false},
	}
	for _, tt := range tests {
		if got := politifact.Recognise(tt.base, tt.address); got != tt.want {
			t.Errorf("Recognise(%q, %q) = %v, want %v", tt.base, tt.address, got, tt.want)
		}
	}
}

func TestPolitiFactStart(t *testing.T) {
	tests := []struct {
		base     string
		speakers []string
		want     []string
	}{
		{"", nil, []string{"https://www.politifact.com/factchecks/list/?page=1&category=truth-o-meter"}},
		{"", []string{"joe-biden", "al-gore"}, []string{
			"https://www.politifact.com/factchecks/list/?page=1&category=truth-o-meter&speaker=joe-biden",
			"https://www.politifact.com/factchecks/list/?page=1&category=truth-o-meter&speaker=al-gore",
		}},
		{"http://politifact.example:8080/", []string{"a&b=c"}, []string{
			"http://politifact.example:8080/factchecks/list/?page=1&category=truth-o-meter&speaker=a%26b%3Dc",
		}},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, politifact.Start(tt.base, tt.speakers)); diff != "" {
			t.Errorf("Start(%q, %q) (-want +got):\n%s", tt.base, tt.speakers, diff)
		}
	}
}

func TestPolitiFactContext(t *testing.T) {
	tests := []struct{ in, date, medium string }{
		{"stated on November 29, 2020 in an interview:", "2020-11-29", "an interview"},
		{"stated on July 10, 2012:", "2012-07-10", ""},
		{"stated on May 3, 2016 in in an interview on CNN:", "2016-05-03", "in an interview on CNN"},
		{"stated on February 5, 2021 in an article", "2021-02-05", "an article"},
		{"stated on April 26, 2007 in Stratham, N.H.:", "2007-04-26", "Stratham, N.H."},
		{"stated on July 19, 2007 in a YouTube video.:", "2007-07-19", "a YouTube video."},
		{"stated on Jan. 5, 2020 in a note: part two:", "2020-01-05", "a note: part two"},
		{"on Sunday, October 13th, 2019 in an article in a local newspaper", "2019-10-13", "an article in a local newspaper"},
		{"on Wednesday, May 2nd, 2018", "2018-05-02", ""},
		{"on Thursday, February 29th, 2018 in a speech", "", "a speech"},
		{"stated on some day in spring:", "", "spring"},
		{"stated in a letter of March 3, 2001:", "2001-03-03", "a letter of March 3, 2001"},
		{"", "", ""},
	}
	for _, tt := range tests {
		if date, medium := politifactContext(tt.in); date != tt.date || medium != tt.medium {
			t.Errorf("politifactContext(%q) = %q, %q, want %q, %q", tt.in, date, medium, tt.date, tt.medium)
		}
	}
}

// HD-06: a day that a page prints stays that day, whatever the zone of the machine, of the page, or of
// an hour printed beside it.
func TestHD06DaysStayAsPrinted(t *testing.T) {
	before := time.Local
	defer func() { time.Local = before }()
	for _, zone := range []*time.Location{time.UTC, time.FixedZone("Asia/Tokyo", 9*3600), time.FixedZone("Pacific/Honolulu", -10*3600)} {
		time.Local = zone
		for in, want := range map[string]string{
			"June 3, 2025": "2025-06-03",
			"on Wednesday, January 15th, 2025 at 11:10 p.m.": "2025-01-15",
			"Saturday, March 1st, 2025 at 12:01 a.m.":        "2025-03-01",
			"December 31, 2024":                              "2024-12-31",
			"June 31, 2025":                                  "",
		} {
			if got := politifactDay(in); got != want {
				t.Errorf("%s: politifactDay(%q) = %q, want %q", zone, in, got, want)
			}
		}
	}
}

func TestPolitiFactMeter(t *testing.T) {
	tests := []struct{ name, class, original, want string }{
		{"the original wins over thumb, class and file", "m-statement--true", `src="/rulings/meter-true.jpg" alt="pants-fire"`, "pants-fire"},
		{"class without alt", "m-statement--is-xlarge m-statement--mostly-false", `src="/rulings/meter-true.jpg"`, "mostly-false"},
		{"class word fire", "m-statement--fire", `alt=" "`, "fire"},
		{"file without alt and class", "m-statement--boxed m-statement--", `src="https://static.example/politifact/rulings/meter-half-flip.jpg?v=2"`, "half-flip"},
		{"thumb file", "", `src="/img/meter-barely-true-th.jpg"`, "barely-true"},
		{"abbreviated file", "", `src="/rulings/tom_ruling_pof.png"`, "pants-fire"},
		{"words run together", "", `src="/rulings/tom-mostlytrue.png"`, "mostlytrue"},
		{"another picture", "", `src="/mugs/quill.jpg"`, ""},
		{"unknown words are printed as they are", "m-statement--true", `alt="mostly-murky"`, "mostly-murky"},
	}
	for _, tt := range tests {
		doc, err := goquery.NewDocumentFromReader(strings.NewReader(fmt.Sprintf(
			`<article class="m-statement %s"><div class="m-statement__author"><picture><img class="c-image__original" alt="false"></picture></div>
			<div class="m-statement__meter"><img class="c-image__thumb" alt="true"><picture><img class="c-image__original " %s></picture></div></article>`,
			tt.class, tt.original)))
		if err != nil {
			t.Fatal(err)
		}
		if got := politifactMeter(doc.Find("article")); got != tt.want {
			t.Errorf("%s: meter = %q, want %q", tt.name, got, tt.want)
		}
	}
	for word, want := range map[string]string{"mostlytrue": "mostly_true", "pantsonfire": "pants_on_fire", "barelytrue": "mostly_false", "fullflop": "full_flop", "murky": "", "": ""} {
		if r, ok := politifactRating(word); r.Slug != want || ok != (want != "") {
			t.Errorf("politifactRating(%q) = %v, %v, want %q", word, r, ok, want)
		}
	}
}

// What a claim's page must have is named when it is not there.
func TestPolitiFactMissingParts(t *testing.T) {
	const address = "https://www.politifact.com/factchecks/2021/jun/09/ada-quill/ferry-fares-lower-wend/"
	var page string
	for _, f := range fixtures(t, "politifact") {
		if f.file == "claim-new.html" {
			page = string(f.body)
		}
	}
	tests := []struct{ name, old, with, want string }{
		{"claim", `"m-statement__quote"`, `"quote"`, ".m-statement__quote"},
		{"speaker", `"m-statement__name"`, `"name"`, "a.m-statement__name"},
		{"rating", `"m-statement__meter"`, `"meter"`, ""}, // the class still tells it
		{"box", "m-statement--is-xlarge", "m-statement--is-huge", "article.m-statement.m-statement--is-xlarge"},
	}
	for _, tt := range tests {
		doc, err := goquery.NewDocumentFromReader(strings.NewReader(strings.ReplaceAll(page, tt.old, tt.with)))
		if err != nil {
			t.Fatal(err)
		}
		_, err = politifactClaim(address, doc)
		if tt.want == "" {
			if err != nil {
				t.Errorf("without %s: %v", tt.name, err)
			}
			continue
		}
		var markup *MarkupError
		if !errors.As(err, &markup) || markup.URL != address || !strings.Contains(markup.Want, tt.want) || markup.FailureClass() != "permanent" {
			t.Errorf("without %s: %v, want a markup error about %s", tt.name, err, tt.want)
		}
	}
	bare := `<article class="m-statement m-statement--is-xlarge"><div class="m-statement__quote">x</div><a class="m-statement__name" href="/personalities/a/">A</a></article>`
	doc, err := goquery.NewDocumentFromReader(strings.NewReader(bare))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := politifactClaim(address, doc); err == nil || !strings.Contains(err.Error(), "c-image__original[alt]") || !strings.Contains(err.Error(), "no title") {
		t.Errorf("without any rating: %v", err)
	}
}

func TestPolitiFactTestEntry(t *testing.T) {
	tests := []struct {
		name, claim, context, body string
		want                       bool
	}{
		{"in the claim", `"This is a TEST of the fact-checking widget."`, "stated on May 1, 2013 in a note:", "A body.", true},
		{"in the medium", "Anything.", "stated on May 1, 2013 in a test of the fact-checking widget:", "A body.", true},
		{"filler as body", "Anything.", "stated on May 1, 2013:", "Lorem ipsum  dolor sit amet.", true},
		{"filler quoted", "Anything.", "stated on May 1, 2013:", "The leaflet was filled with lorem ipsum dolor sit amet.", false},
		{"a claim about tests", "The test of the water failed.", "stated on May 1, 2013 in a test:", "A body.", false},
	}
	for _, tt := range tests {
		doc, err := goquery.NewDocumentFromReader(strings.NewReader(`<article class="m-textblock"><html><body><p>` + tt.body + `</p></body></html></article>`))
		if err != nil {
			t.Fatal(err)
		}
		if got := politifactIsTest(politifactStatement{claim: tt.claim, context: tt.context}, doc); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

// clientFetcher hands an ordinary client to Discover.
type clientFetcher struct{ *http.Client }

func (f clientFetcher) HTTP() *http.Client { return f.Client }

// movingList is a list of items, newest first, three a page. After each page it is served, as many
// new items as push says appear on top.
type movingList struct {
	mu    sync.Mutex
	items []int
	push  int
}

func (m *movingList) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	page := pageNumber(r.URL.String())
	from, to := min(3*(page-1), len(m.items)), min(3*page, len(m.items))
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	fmt.Fprint(w, `<div class="o-listicle"><ul>`)
	for _, n := range m.items[from:to] {
		fmt.Fprintf(w, `<li class="o-listicle__item"><article class="m-statement"><div class="m-statement__quote"><a href="/factchecks/2021/jun/09/s-%d/item-%d/">x</a></div></article></li>`, n, n)
	}
	fmt.Fprint(w, `</ul></div>`)
	if to < len(m.items) {
		fmt.Fprintf(w, `<a class="c-button" href="?page=%d&amp;">Next</a>`, page+1)
	}
	for range m.push {
		m.items = append([]int{len(m.items) + 1}, m.items...)
	}
}

func TestPolitiFactListingThatShifts(t *testing.T) {
	for push := range 3 {
		list := &movingList{push: push}
		for n := 10; n > 0; n-- {
			list.items = append(list.items, n)
		}
		server := httptest.NewServer(list)
		seen, repeats := map[string]int{}, 0
		address := politifact.Start(server.URL, nil)[0]
		for pages := 0; address != "" && pages < 40; pages++ {
			l, err := politifact.Discover(t.Context(), clientFetcher{server.Client()}, address)
			if err != nil {
				t.Fatal(err)
			}
			for _, ref := range l.Refs {
				if !politifact.Recognise(server.URL, ref.URL) {
					t.Errorf("ref %s is not recognised under %s", ref.URL, server.URL)
				}
				if id := corpus.IdentityURL(ref.URL); seen[id] > 0 {
					repeats++
				} else {
					seen[id]++
				}
			}
			address = l.Next
		}
		server.Close()
		for n := range 10 {
			id := corpus.IdentityURL(fmt.Sprintf("%s/factchecks/2021/jun/09/s-%d/item-%d/", server.URL, n+1, n+1))
			if seen[id] != 1 {
				t.Errorf("with %d new items a page, item %d is found %d times", push, n+1, seen[id])
			}
		}
		if push > 0 && repeats == 0 {
			t.Errorf("with %d new items a page no item shows twice; the list does not shift", push)
		}
	}
}

func TestDiscoverFailures(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/gone/list/":
			w.WriteHeader(http.StatusNotFound)
		case "/busy/list/":
			w.WriteHeader(http.StatusServiceUnavailable)
		case "/closed/list/":
			w.WriteHeader(http.StatusForbidden)
		case "/limit/list/":
			w.WriteHeader(http.StatusTooManyRequests)
		case "/loop/list/":
			fmt.Fprintf(w, `<article class="m-statement"></article><a class="c-button" href="?page=%s&amp;utm_source=pager">Next</a>`, r.URL.Query().Get("page"))
		case "/away/list/":
			fmt.Fprint(w, `<article class="m-statement"></article><a class="c-button" href="http://elsewhere.example/list/?page=2">Next</a>`)
		case "/moved/list/":
			http.Redirect(w, r, "/checks/latest/?page=4", http.StatusMovedPermanently)
		case "/checks/latest/":
			fmt.Fprint(w, `<article class="m-statement"></article><a class="c-button" href="/suggest/">Suggest</a><a class="c-button" href="?page=5&amp;"> next </a>`)
		}
	}))
	defer server.Close()
	tests := []struct {
		name, path string
		class      string // of the failure, "" for none
		next       string
	}{
		{"first page gone", "/gone/list/?page=1", "permanent", ""},
		{"no page number, gone", "/gone/list/", "permanent", ""},
		{"a later page gone ends the list", "/gone/list/?page=7", "", ""},
		{"busy", "/busy/list/?page=7", "transient", ""},
		{"limited", "/limit/list/?page=1", "transient", ""},
		{"closed", "/closed/list/?page=1", "blocked", ""},
		{"empty answer", "/nothing/list/?page=1", "permanent", ""},
		{"next leads back", "/loop/list/?page=3", "", ""},
		{"next leads to another site", "/away/list/?page=1", "", ""},
		{"next counts from where the list was found", "/moved/list/?page=3", "", "/checks/latest/?page=5&"},
	}
	for _, tt := range tests {
		l, err := politifact.Discover(t.Context(), clientFetcher{server.Client()}, server.URL+tt.path)
		var class interface{ FailureClass() string }
		switch {
		case tt.class == "" && err != nil:
			t.Errorf("%s: %v", tt.name, err)
		case tt.class != "" && (!errors.As(err, &class) || class.FailureClass() != tt.class):
			t.Errorf("%s: %v, want a failure of class %s", tt.name, err, tt.class)
		case tt.class != "" && !strings.Contains(err.Error(), server.URL+tt.path):
			t.Errorf("%s: error %q does not name the address", tt.name, err)
		case tt.next == "" && l.Next != "" || tt.next != "" && l.Next != server.URL+tt.next:
			t.Errorf("%s: next = %q, want %q", tt.name, l.Next, tt.next)
		}
	}
	if _, err := politifact.Discover(t.Context(), clientFetcher{server.Client()}, "http://[broken"); err == nil {
		t.Error("an address that does not parse gives no error")
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := politifact.Discover(cancelled, clientFetcher{server.Client()}, server.URL+"/loop/list/?page=1"); !errors.Is(err, context.Canceled) {
		t.Errorf("after cancellation: %v", err)
	}
}

// refuser is a transport that answers as the polite client does when it will not fetch.
type refuser struct{}

func (refuser) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, corpus.Exclude("robots", "Disallow: /")
}

func TestDiscoverKeepsTheClientsReasons(t *testing.T) {
	_, err := politifact.Discover(t.Context(), clientFetcher{&http.Client{Transport: refuser{}}}, "https://www.politifact.com/factchecks/list/?page=1")
	var ex *corpus.ExcludedError
	if !errors.As(err, &ex) || ex.Reason != "robots" {
		t.Errorf("Discover = %v, want the exclusion robots", err)
	}
}

// colly's own settings, and variables that change them, must not reach a listing.
func TestDiscoverIsOurs(t *testing.T) {
	for name, value := range map[string]string{
		"COLLY_MAX_BODY_SIZE": "100", "COLLY_USER_AGENT": "someone", "COLLY_IGNORE_ROBOTSTXT": "no", "COLLY_ALLOWED_DOMAINS": "nowhere.example",
		"COLLY_DISALLOWED_DOMAINS": "127.0.0.1", "COLLY_CACHE_DIR": t.TempDir(), "COLLY_MAX_REQUESTS": "1", "COLLY_PARSE_HTTP_ERROR_RESPONSE": "no",
		"COLLY_DETECT_CHARSET": "yes", "COLLY_TRACE_HTTP": "yes",
	} {
		t.Setenv(name, value)
	}
	var mu sync.Mutex
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, fmt.Sprintf("%s agent %q accept %q cookie %q", r.URL, r.UserAgent(), r.Header.Get("Accept"), r.Header.Get("Cookie")))
		http.SetCookie(w, &http.Cookie{Name: "a", Value: "b"})
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Write(bytes.Repeat([]byte("<!-- a long page -->\n"), 11<<20/21))
		fmt.Fprint(w, `<article class="m-statement"><div class="m-statement__quote"><a href="/factchecks/2021/jun/09/a/caf%C3%A9/">é</a></div></article>`)
	}))
	defer server.Close()
	client := server.Client()
	for range 2 { // the same address may be asked for again
		l, err := politifact.Discover(t.Context(), clientFetcher{client}, server.URL+"/list/?page=1")
		if err != nil {
			t.Fatal(err)
		}
		want := []corpus.Ref{{Source: "politifact", URL: server.URL + "/factchecks/2021/jun/09/a/caf%C3%A9/", Speaker: "a"}}
		if diff := cmp.Diff(want, l.Refs); diff != "" {
			t.Errorf("refs behind 11 MiB (-want +got):\n%s", diff)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	line := `/list/?page=1 agent "Go-http-client/1.1" accept "" cookie ""`
	if diff := cmp.Diff([]string{line, line}, asked); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if client.Jar != nil || client.CheckRedirect != nil {
		t.Error("Discover changed the client it was given")
	}
}

// A page that was redirected to another host tells no claim of this site.
func TestParsePageOfAnotherHost(t *testing.T) {
	body, err := os.ReadFile("testdata/politifact/claim-new.html")
	if err != nil {
		t.Fatal(err)
	}
	const asked = "https://www.politifact.com/factchecks/2021/jun/09/ada-quill/ferry-fares-lower-wend/"
	for final, want := range map[string]string{
		asked: "",
		"https://politifact.com/factchecks/2021/jun/09/ada-quill/ferry-fares-lower-wend/":    "",
		"https://elsewhere.example/factchecks/2021/jun/09/ada-quill/ferry-fares-lower-wend/": "redirected_elsewhere",
	} {
		p, err := fetch.NewPage(asked, http.Header{"Content-Type": {"text/html; charset=utf-8"}}, body, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		p.Final = final
		_, err = politifactParse(p)
		var excluded *corpus.ExcludedError
		if got := errors.As(err, &excluded); got != (want != "") || got && excluded.Reason != want {
			t.Errorf("redirected to %s: %v, want exclusion %q", final, err, want)
		}
	}
}
