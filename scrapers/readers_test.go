package scrapers

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"assay/corpus"

	"github.com/google/go-cmp/cmp"
)

// articles calls visit with every fixture of an article, of every site that reads documents.
func articles(t *testing.T, visit func(t *testing.T, site Site, f fixture, want corpus.Document)) {
	for _, site := range All {
		if site.Read == nil {
			continue
		}
		for _, f := range fixtures(t, site.Name) {
			if filepath.Ext(f.file) != ".html" {
				continue
			}
			docs, err := site.Read(f.page(t))
			if err != nil {
				continue // the broken page
			}
			t.Run(site.Name+"/"+f.file, func(t *testing.T) { visit(t, site, f, docs[0]) })
		}
	}
}

// Slightly broken markup takes no article away (HD-02): control characters in strings and a semicolon
// are mended, a script that is cut off is passed over.
func TestHD02Articles(t *testing.T) {
	articles(t, func(t *testing.T, site Site, f fixture, want corpus.Document) {
		cut := `<script type="application/ld+json">{"@type":"NewsArticle","datePublished":"19</script>`
		body := bytes.Replace(f.body, []byte("</head>"), []byte(cut+"</head>"), 1)
		body = bytes.ReplaceAll(body, []byte(`}</script>`), []byte("};\n</script>"))
		body = bytes.ReplaceAll(body, []byte(`"headline":"`), []byte("\"headline\":\"\t"))
		f.body = body
		docs, err := site.Read(f.page(t))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, docs[0]); diff != "" {
			t.Errorf("the document (-sound +broken):\n%s", diff)
		}
	})
}

// Zone names are no UTC, and a time in a zone that nobody knows is a day (HD-06).
func TestHD06Articles(t *testing.T) {
	for printed, want := range map[string]string{
		"Tue, 03 Jun 2025 21:30:00 EDT": "2025-06-04T01:30:00Z",
		"Wed, 15 Jan 2025 23:10:00 PST": "2025-01-16T07:10:00Z",
		"Sat, 01 Mar 2025 08:00:00 XQT": "2025-03-01",
		"date:now +30 seconds":          "",
	} {
		d := dated(corpus.Document{}, []string{printed})
		if d.PublishedAt != want || corpus.HasFlag(d.Flags, corpus.FlagZoneUnknown) != strings.Contains(printed, "XQT") ||
			corpus.HasFlag(d.Flags, corpus.FlagDateUnread) != (want == "") {
			t.Errorf("%q is kept as %q with flags %q, want %q", printed, d.PublishedAt, d.Flags, want)
		}
	}
}

// However an article was reached it is one document (HD-08).
func TestHD08Articles(t *testing.T) {
	articles(t, func(t *testing.T, site Site, f fixture, want corpus.Document) {
		scheme, rest, _ := strings.Cut(f.address, "://")
		host, path, _ := strings.Cut(rest, "/")
		port := map[string]string{"http": ":80", "https": ":443"}[scheme]
		for _, lead := range []string{
			f.address + "?ref=rss", f.address + "?utm_source=x&fbclid=abc", f.address + "#verdict",
			strings.ToUpper(scheme) + "://" + strings.ToUpper(host) + port + "/" + path,
		} {
			f.address = lead
			docs, err := site.Read(f.page(t))
			if err != nil || docs[0].ID != want.ID || docs[0].URL != want.URL || !site.Recognise("", lead) {
				t.Errorf("%s gives %+v, %v, want the document %s", lead, docs, err, want.ID)
			}
		}
	})
}
