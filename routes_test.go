package assay

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"assay/corpus"
	"assay/fetch"
	"assay/scrapers"
)

// routesTo are ways that lead to a page of check.example: other spellings, other shapes, redirects that hold
// its address, redirects by the server, and other addresses whose page names it.
func routesTo(path string) []string {
	page := "http://check.example" + path
	news := append(binary.AppendUvarint([]byte{0x08, 0x13, 0x22}, uint64(len(page))), page...)
	return []string{
		page,
		"HTTP://Check.example:80" + path + "#verdict",
		page + "?utm_source=feed&fbclid=abc&ref=rss",
		page + "?amp=1",
		page + "amp/",
		"http://m.check.example" + path,
		"http://amp.check.example" + path,
		"http://www.check.example" + path,
		"http://check.example/old" + path,
		"http://check.example/?p=" + strings.Trim(path[strings.LastIndexByte(path, '-')+1:], "/"),
		"https://www.google.com/url?rct=j&sa=t&url=" + page + "&ct=ga&cd=x",
		"https://news.google.com/rss/articles/" + base64.RawURLEncoding.EncodeToString(news) + "?oc=5",
		"https://check-example.cdn.ampproject.org/c/check.example" + path + "?amp_js_v=0.1",
		"https://www.google.com/amp/check.example" + path,
		"https://l.facebook.com/l.php?u=" + url.QueryEscape(page) + "&h=AT0",
	}
}

// A page that is reached by fifteen ways, in any order, as a claim's and as evidence, is one claim and one document.
func TestAPageIsOneWhateverWayLeadsToIt(t *testing.T) {
	all := scrapers.All
	t.Cleanup(func() { scrapers.All = all })
	for seed := range uint64(4) {
		rng := rand.New(rand.NewPCG(seed, 1))
		const path = "/2023/wells-of-averil-40721/"
		routes := routesTo(path)
		rng.Shuffle(len(routes), func(i, j int) { routes[i], routes[j] = routes[j], routes[i] })
		w, closed := routesWorkspace(t, path, routes)
		rep, err := w.Build(t.Context(), BuildOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if rep.Pipeline.Failed != 0 {
			t.Errorf("order %d: %d items failed: %s", seed, rep.Pipeline.Failed, rep.Pipeline.Text())
		}
		again, err := w.Build(t.Context(), BuildOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if again.Pipeline.Ran != 0 || again.Fetch.Requests != rep.Fetch.Requests {
			t.Errorf("order %d: the second build ran %d items with %d requests", seed, again.Pipeline.Ran, again.Fetch.Requests-rep.Fetch.Requests)
		}
		claims, articles := releasedRoutes(t, rep.Release.Dir)
		want := []string{corpus.ClaimID("The village of Averil has 7 wells.", "Mara Quill", "http://check.example"+path, "") + " http://check.example" + path}
		if !slices.Equal(claims, want) {
			t.Errorf("order %d: claims %q, want %q", seed, claims, want)
		}
		want = []string{corpus.DocumentID("http://check.example"+path) + " http://check.example" + path}
		if !slices.Equal(articles, want) {
			t.Errorf("order %d: linked articles %q, want %q", seed, articles, want)
		}
		closed()
	}
}

// releasedRoutes lists the claims and the linked articles of a release, by id and address.
func releasedRoutes(t *testing.T, dir string) (claims, articles []string) {
	t.Helper()
	type row struct {
		ID     string `json:"id"`
		Kind   string `json:"kind"`
		URL    string `json:"url"`
		Review string `json:"review_url"`
	}
	if err := eachRow(filepath.Join(dir, "data", "claims.jsonl"), func(r row) { claims = append(claims, r.ID+" "+r.Review) }); err != nil {
		t.Fatal(err)
	}
	if err := eachRow(filepath.Join(dir, "data", "documents.jsonl"), func(r row) {
		if r.Kind == corpus.KindLinkedArticle {
			articles = append(articles, r.ID+" "+r.URL)
		}
	}); err != nil {
		t.Fatal(err)
	}
	return claims, articles
}

func routesWorkspace(t *testing.T, path string, routes []string) (w *Workspace, closed func()) {
	t.Helper()
	page := versionsPage("The village of Averil has 7 wells.")
	page = strings.Replace(page, "</head>", `<link rel="canonical" href="http://check.example`+path+`"></head>`, 1)
	page = strings.Replace(page, "</body>", "<article><h1>Wells of Averil</h1>"+strings.Repeat("<p>We counted the wells of the village of Averil ourselves on a Sunday, and there were seven of them, as the council says in its report of the spring.</p>", 4)+"</article></body>", 1)
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/robots.txt":
			http.NotFound(rw, r)
		case strings.HasSuffix(r.URL.Path, path), strings.HasSuffix(r.URL.Path, path+"amp/"):
			rw.Header().Set("Content-Type", "text/html; charset=utf-8")
			fmt.Fprint(rw, page)
		case r.URL.Query().Get("p") == "40721":
			http.Redirect(rw, r, path, http.StatusMovedPermanently)
		default:
			http.NotFound(rw, r)
		}
	}))
	t.Cleanup(server.Close)
	scrapers.All = []scrapers.Site{{
		Name: "routes", Version: 1, Host: "check.example",
		Start: func(string, []string) []string { return []string{"http://check.example/list"} },
		Discover: func(context.Context, scrapers.Fetcher, string) (scrapers.Listing, error) {
			var l scrapers.Listing
			for _, r := range routes {
				l.Refs = append(l.Refs, corpus.Ref{Source: "routes", URL: corpus.CanonicalURL(r), Found: r})
			}
			return l, nil
		},
		Recognise: func(string, string) bool { return false },
		Parse: func(p *fetch.Page) ([]corpus.Claim, error) {
			address, err := p.Address()
			if err != nil {
				return nil, err
			}
			c := corpus.Claim{Text: "The village of Averil has 7 wells.", Speaker: "Mara Quill", Rating: "true", RatingRaw: "true", Verdict6: "true", Status: corpus.StatusSource, ReviewURL: address, Source: "routes"}
			c.ID = corpus.ClaimID(c.Text, c.Speaker, c.ReviewURL, "")
			return []corpus.Claim{c}, nil
		},
	}}
	dir := t.TempDir()
	var resolve []string
	for _, host := range []string{"", "www.", "m.", "amp."} {
		resolve = append(resolve, fmt.Sprintf("%scheck.example: %q", host, server.Listener.Addr().String()))
	}
	write := func(name, text string) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return name
	}
	write(ConfigName, `recipe:
  name: routes
  discover: [listing]
  sites: [{name: routes}]
  speakers: []
  dates: {from: "", to: ""}
  evidence: [search]
  planner: {variants: 0, follow_links: true, per_variant: 20, keep: 20}
runtime:
  contact: crawl@check.example
  delay: 0s
  resolve: {`+strings.Join(resolve, ", ")+`}
`)
	var posts strings.Builder
	for i, r := range routes {
		fmt.Fprintf(&posts, `{"id":"rt%02d","title":"The village of Averil has 7 wells %d","selftext":"","url":%q,"is_self":false,"created_utc":1678406400,"subreddit":"wells"}`+"\n", i, i, r)
	}
	w, err := Open(t.Context(), dir, OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Import(t.Context(), "reddit", write("posts.ndjson", posts.String()), ImportOptions{}); err != nil {
		t.Fatal(err)
	}
	return w, func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
}
