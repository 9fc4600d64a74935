package scrapers

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"assay/corpus"

	"github.com/google/go-cmp/cmp"
)

const feedAt = "https://check.example/feed/"

// Feeds as their makers write them. Each line of want is address, found, title, published, modified.
func TestReadFeed(t *testing.T) {
	tests := []struct {
		name, body, kind string
		want             []string
		notes            string
	}{
		{"rss without a declaration, CDATA padded with blanks, guid no permalink",
			"<rss version=\"2.0\">\n<channel><title>\n<![CDATA[ Mill News ]]></title><image><title>Logo</title><link>https://check.example/</link></image>" +
				"<item><title><![CDATA[ Weir & lock ]]></title><link>https://check.example/a</link><guid isPermaLink=\"false\">https://check.example/a#1</guid><pubDate>Tue, 22 Jun 2021 16:52 EDT</pubDate></item>" +
				"<item><guid isPermaLink=\"false\">https://check.example/b#0</guid><title>No link</title></item>" +
				"<item><guid>https://check.example/c</guid><title>Permalink</title></item></channel></rss>",
			FeedRSS, []string{
				"https://check.example/a||Weir & lock|2021-06-22T20:52:00Z|",
				"https://check.example/c||Permalink||",
			}, `entry 2 ("No link") leads nowhere`},
		{"blank lines before the declaration, undeclared and bare entities, stray tags, control characters",
			"\n\n <?xml version=\"1.0\" encoding=\"ISO-8859-1\"?><rss><channel><title>Mill&reg; &amp; Weir</title><item><title>Salt & pepper &nope; caf&eacute;&#8;\x08</title>" +
				"<description>one<br>two</b> three <p>four</description><link>/x?a=1&b=2</link></item></channel></rss>",
			FeedRSS, []string{"https://check.example/x?a=1&b=2||Salt & pepper &nope; café||"}, ""},
		{"Latin-1 without a declaration",
			"<rss><channel><title>\xdaltimas not\xedcias do moinho e da ponte</title><item><title>Elei\xe7\xe3o</title><link>https://check.example/e</link></item></channel></rss>",
			FeedRSS, []string{"https://check.example/e||Eleição||"}, ""},
		{"RDF, Dublin Core, media titles beside the title",
			`<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/" xmlns:dc="http://purl.org/dc/elements/1.1/"><channel><title>T</title></channel>` +
				`<item><media:title xmlns:media="http://search.yahoo.com/mrss/">not this</media:title><title>this</title><link>https://check.example/r</link><dc:date>2021-06-09</dc:date></item></rdf:RDF>`,
			FeedRSS, []string{"https://check.example/r||this|2021-06-09|"}, ""},
		{"FeedBurner hides the address, Atom link inside RSS",
			`<rss xmlns:feedburner="x" xmlns:atom="y"><channel><item><link>https://feeds.example/~r/1</link><feedburner:origLink>https://check.example/o</feedburner:origLink></item>` +
				`<item><title>l</title><atom:link href="https://check.example/l"/></item></channel></rss>`,
			FeedRSS, []string{"https://check.example/o||||", "https://check.example/l||l||"}, ""},
		{"Atom with a base, relations, redirects and XHTML titles",
			`<feed xmlns="http://www.w3.org/2005/Atom" xml:base="https://check.example/de/"><title>T</title><entry><id>tag:1</id><title type="xhtml"><div>Two <b>parts</b></div></title>` +
				`<link rel="enclosure" href="a.mp3"/><link rel="alternate" href="claims/1"/><published>2021-06-09T01:02:03+02:00</published><updated>2021-06-10T00:00:00Z</updated></entry>` +
				`<entry><title>&lt;b&gt;w&lt;/b&gt;</title><link href="https://www.google.com/url?rct=j&amp;url=https://check.example/w%3Fid%3D7&amp;usg=A"/></entry></feed>`,
			FeedAtom, []string{
				"https://check.example/de/claims/1||Two parts|2021-06-08T23:02:03Z|2021-06-10T00:00:00Z",
				"https://check.example/w?id=7|https://www.google.com/url?rct=j&url=https://check.example/w%3Fid%3D7&usg=A|<b>w</b>||",
			}, ""},
		{"Atom with a prefix on every element",
			`<a:feed xmlns:a="http://www.w3.org/2005/Atom"><a:title>T</a:title><a:entry><a:title>p</a:title><a:link href="https://check.example/p"/></a:entry></a:feed>`,
			FeedAtom, []string{"https://check.example/p||p||"}, ""},
		{"an empty news sitemap", `<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"/>`, FeedURLs, nil, ""},
		{"a sitemap with images and news",
			` <?xml version="1.0"?><urlset xmlns:image="i" xmlns:news="n"><url><loc> https://check.example/s </loc><lastmod>2022-03-28</lastmod><image:image><image:loc>https://check.example/i.png</image:loc></image:image></url>` +
				`<url><loc>HTTPS://CHECK.example:443/n#x</loc><news:news><news:publication><news:name>M</news:name></news:publication><news:publication_date>2022-03-29T10:00:00Z</news:publication_date><news:title>Tru</news:title></news:news></url>` +
				`<url><loc>mailto:a@check.example</loc></url></urlset>`,
			FeedURLs, []string{"https://check.example/s||||2022-03-28", "https://check.example/n|HTTPS://CHECK.example:443/n#x|Tru|2022-03-29T10:00:00Z|"},
			`entry 3 ("mailto:a@check.example") leads nowhere`},
		{"posts behind the remarks of a viewer", "// 2022\n// https://check.example/wp-json\n" +
			`[{"id":7,"date":"2021-06-09T23:30:00","date_gmt":"2021-06-10T03:30:00","modified_gmt":"2021-06-11T00:00:00","link":"https:\/\/check.example\/p7","title":{"rendered":"Weir &#8217;s <em>end<\/em>"}},` +
			`{"id":8,"date":"2021-06-09T23:30:00","date_gmt":"0000-00-00T00:00:00","link":"https://check.example/p8","title":{"rendered":""}},{"id":9}]`,
			FeedPosts, []string{"https://check.example/p7||Weir ’s end|2021-06-10T03:30:00Z|2021-06-11T00:00:00Z", "https://check.example/p8|||2021-06-09|"},
			`entry 3 ("") leads nowhere`},
		{"JSON feed", `{"version":"https://jsonfeed.org/version/1","title":"T","items":[{"id":"1","url":"/j","title":"j","date_published":"2021-10-29T01:02:03-04:00"}]}`,
			FeedJSON, []string{"https://check.example/j||j|2021-10-29T05:02:03Z|"}, ""},
		{"a date that is none", `<rss><channel><item><link>/d</link><pubDate>yesterday</pubDate></item></channel></rss>`,
			FeedRSS, []string{"https://check.example/d||||"}, `entry 1: read date "yesterday": no known form`},
	}
	for _, tt := range tests {
		got, err := ReadFeed(feedAt, http.Header{}, []byte(tt.body))
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		var lines []string
		for _, e := range got.Entries {
			lines = append(lines, strings.Join([]string{e.URL, e.Found, e.Title, e.Published.Date.Value, e.Modified.Date.Value}, "|"))
		}
		if diff := cmp.Diff(tt.want, lines); diff != "" || got.Kind != tt.kind || strings.Join(got.Notes, "; ") != tt.notes {
			t.Errorf("%s: kind %s, notes %q, entries (-want +got):\n%s", tt.name, got.Kind, got.Notes, diff)
		}
	}
}

func TestReadFeedFailures(t *testing.T) {
	tests := []struct{ name, body, want string }{
		{"nothing", " \n", "the page has no element"},
		{"a page", "<!DOCTYPE html><html><body>Mill</body></html>", "the page has root element html"},
		{"cut off", "<rss><channel><item><link>/a</link></item><item><link>/b", "breaks off after entry 1: link is not closed"},
		{"two roots", "<urlset><url><loc>/a</loc></url></urlset><urlset></urlset>", "breaks off after entry 1: a second root"},
		{"WordPress refuses", `{"code":"rest_forbidden","message":"Sorry","data":{"status":401}}`, "the error rest_forbidden: Sorry"},
		{"another object", `{"a":1}`, "a JSON object without items"},
		{"JSON that breaks off", `[{"id":1},`, "JSON that breaks off"},
	}
	for _, tt := range tests {
		_, err := ReadFeed(feedAt, http.Header{}, []byte(tt.body))
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), feedAt) {
			t.Errorf("%s: %v, want %q of %s", tt.name, err, tt.want, feedAt)
		}
	}
}

// HD-06: names of zones in feeds move no item, whatever the zone of the machine.
func TestHD06FeedDates(t *testing.T) {
	before := time.Local
	defer func() { time.Local = before }()
	feed := "<rss><channel>"
	for i, d := range []string{"Tue, 03 Jun 2025 21:30:00 EDT", "Wed, 15 Jan 2025 23:10:00 PST", "Sat, 01 Mar 2025 08:00:00 XQT"} {
		feed += fmt.Sprintf("<item><link>/%d</link><pubDate>%s</pubDate></item>", i, d)
	}
	feed += "</channel></rss>"
	for _, zone := range []*time.Location{time.UTC, time.FixedZone("Asia/Tokyo", 9*3600)} {
		time.Local = zone
		got, err := ReadFeed(feedAt, http.Header{}, []byte(feed))
		if err != nil {
			t.Fatal(err)
		}
		var dates []string
		for _, e := range got.Entries {
			d := e.Published.Date
			dates = append(dates, fmt.Sprintf("%s %s unknown zone %v", d.Value, d.Precision, d.ZoneUnknown))
		}
		want := []string{"2025-06-04T01:30:00Z instant unknown zone false", "2025-01-16T07:10:00Z instant unknown zone false", "2025-03-01 day unknown zone true"}
		if diff := cmp.Diff(want, dates); diff != "" {
			t.Errorf("in %s (-want +got):\n%s", zone, diff)
		}
	}
}

// HD-08: leads from a feed, a sitemap and shared links that mean one page share an identity and keep
// what was written.
func TestHD08LeadsOfFeeds(t *testing.T) {
	leads := []string{
		"https://check.example/claims/bridge?ref=rss", "https://check.example/claims/bridge?utm_source=x&amp;fbclid=abc",
		"HTTPS://CHECK.example:443/claims/bridge#verdict", "https://check.example/claims/bridge",
		"https://check.example/claims/view?id=7", "https://check.example/claims/view?id=8",
	}
	rss, sitemap := "<rss><channel>", "<urlset>"
	for _, l := range leads {
		rss += "<item><link>" + l + "</link></item>"
		sitemap = strings.Replace(sitemap, "<urlset>", "<urlset><url><loc>"+l+"</loc></url>", 1) // in reverse
	}
	for _, body := range []string{rss + "</channel></rss>", sitemap + "</urlset>"} {
		l, err := feedListing(t.Context(), folderFetcher{feedAt: []byte(body)}, "x", feedAt, func(string) bool { return true }, nil)
		if err != nil || len(l.Refs) != len(leads) {
			t.Fatalf("%d refs, %v", len(l.Refs), err)
		}
		ids, written := map[string]int{}, map[string]bool{}
		for _, r := range l.Refs {
			ids[corpus.IdentityURL(r.URL)]++
			written[r.URL+" "+r.Found] = true
		}
		want := map[string]int{"https://check.example/claims/bridge": 4, "https://check.example/claims/view?id=7": 1, "https://check.example/claims/view?id=8": 1}
		if diff := cmp.Diff(want, ids); diff != "" || len(written) != len(leads) {
			t.Errorf("identities (-want +got), %d ways of writing:\n%s", len(written), diff)
		}
	}
}

func TestFeedListing(t *testing.T) {
	item := func(u string) bool { return strings.Contains(u, "/claims/") }
	web := folderFetcher{
		"https://check.example/sitemap_index.xml": []byte(`<sitemapindex><sitemap><loc>/post-sitemap.xml</loc><lastmod>2022-01-03</lastmod></sitemap><sitemap><loc>/page-sitemap.xml</loc></sitemap></sitemapindex>`),
		"https://check.example/post-sitemap.xml":  []byte(`<urlset><url><loc>/claims/a</loc><lastmod>2022-01-02T03:04:05+02:00</lastmod></url><url><loc>/about/</loc></url><url><loc>/claims/b</loc></url></urlset>`),
		"https://check.example/feed/?paged=2":     []byte(`<rss><channel><item><link>/claims/c</link></item></channel></rss>`),
		"https://check.example/feed/?paged=9":     []byte(`<rss><channel></channel></rss>`),
	}
	tests := []struct {
		address string
		want    Listing
	}{
		{"https://check.example/sitemap_index.xml", Listing{Refs: []corpus.Ref{}, More: []string{"https://check.example/post-sitemap.xml"}, Modified: map[string]string{"https://check.example/post-sitemap.xml": "2022-01-03"}, Unsorted: true}},
		{"https://check.example/post-sitemap.xml", Listing{
			Refs:     []corpus.Ref{{Source: "x", URL: "https://check.example/claims/a"}, {Source: "x", URL: "https://check.example/claims/b"}},
			Modified: map[string]string{"https://check.example/claims/a": "2022-01-02T01:04:05Z"}, Unsorted: true,
		}},
		{"https://check.example/feed/?paged=2", Listing{Refs: []corpus.Ref{{Source: "x", URL: "https://check.example/claims/c"}}, Next: "https://check.example/feed/?paged=3"}},
		{"https://check.example/feed/?paged=9", Listing{Refs: []corpus.Ref{}}},
		{"https://check.example/feed/?paged=10", Listing{Refs: []corpus.Ref{}}}, // gone: past the end
	}
	for _, tt := range tests {
		got, err := feedListing(t.Context(), web, "x", tt.address, item, func(u string) bool { return strings.Contains(u, "post-") })
		if err != nil {
			t.Errorf("%s: %v", tt.address, err)
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.address, diff)
		}
	}
	var status *StatusError
	if _, err := feedListing(t.Context(), web, "x", "https://check.example/feed/?paged=1", item, nil); !errors.As(err, &status) {
		t.Errorf("a first page that is gone: %v", err)
	}
}

func TestWordPressPosts(t *testing.T) {
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Query().Get("page")+" after "+r.URL.Query().Get("modified_after"))
		w.Header().Set("Content-Type", "application/json; charset=UTF-8")
		if strings.HasPrefix(r.URL.Path, "/counted/") {
			w.Header().Set("X-WP-TotalPages", "2")
		}
		page := pageNumber(r.URL.String())
		if page > 2 {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"code":"rest_post_invalid_page_number","message":"larger than the number of pages","data":{"status":400}}`)
			return
		}
		fmt.Fprint(w, "[")
		for i := range 100 {
			fmt.Fprintf(w, `%s{"id":%d,"link":"/claims/%d-%d","date":"2021-01-01T00:00:00"}`, strings.Repeat(",", min(i, 1)), i, page, i)
		}
		fmt.Fprint(w, "]")
	}))
	defer server.Close()
	for _, tt := range []struct {
		path string
		want []string
	}{
		{"/counted", []string{"1 after 2021-02-03T04:05:06", "2 after 2021-02-03T04:05:06"}},
		{"/uncounted", []string{"1 after 2021-02-03T04:05:06", "2 after 2021-02-03T04:05:06", "3 after 2021-02-03T04:05:06"}},
	} {
		asked = nil
		refs := 0
		for next := WordPressPosts(server.URL+tt.path, time.Date(2021, 2, 3, 4, 5, 6, 0, time.UTC)); next != ""; {
			l, err := feedListing(t.Context(), clientFetcher{server.Client()}, "x", next, func(string) bool { return true }, nil)
			if err != nil {
				t.Fatal(err)
			}
			refs += len(l.Refs)
			next = l.Next
		}
		if diff := cmp.Diff(tt.want, asked); diff != "" || refs != 200 {
			t.Errorf("%s: %d refs, requests (-want +got):\n%s", tt.path, refs, diff)
		}
	}
	if got := WordPressPosts("https://check.example/", time.Time{}); strings.Contains(got, "modified_after") || got != corpus.CanonicalURL(got) {
		t.Errorf("address %s", got)
	}
}
