package scrapers

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"assay/corpus"
)

// firstWant is what the index says of the first entry of a feed.
type firstWant struct {
	ID, Title, Link, GUID, PubDate, Updated, Loc, Date, Name, Lang string
}

func TestRealFeeds(t *testing.T) {
	dir := realFolder(t)
	seen := map[string]int{}
	for _, cap := range captures(t, dir, "rss", "rss-bad", "atom", "arxiv-atom", "sitemap-index", "sitemap-urlset", "sitemap-news", "jsonfeed", "rss2json") {
		t.Run(cap.file, func(t *testing.T) {
			address := corpus.CanonicalURL(cap.url)
			if !strings.HasPrefix(address, "http") {
				address = "https://feeds.example/list"
			}
			got, err := ReadFeed(address, http.Header{}, cap.body)
			if err != nil {
				t.Fatal(err)
			}
			seen[got.Kind]++
			check := func(key, got string) {
				t.Helper()
				if want, ok := cap.str(key); ok && got != corpus.Space(want) {
					t.Errorf("%s = %q, want %q", key, got, want)
				}
			}
			check("root", got.Kind)
			entries := got.Entries
			if got.Kind == FeedIndex {
				entries = got.Maps
			}
			for _, key := range []string{"items", "entries", "locs", "urls"} {
				check(key, fmt.Sprint(len(entries)))
			}
			if want, ok := cap.str("channel"); ok && got.Title != want {
				t.Errorf("channel = %q, want %q", got.Title, want)
			}
			check("feed", got.Title)
			if got.Kind == FeedJSON {
				check("title", got.Title)
			}
			for _, note := range got.Notes {
				t.Log(note)
			}
			if len(entries) == 0 {
				return
			}
			first, last := entries[0], entries[len(entries)-1]
			check("first_title", first.Title)
			check("first_url", written(first))
			check("first_link", written(first))
			check("first_pubDate", first.Published.Printed)
			check("first_lastmod", first.Modified.Printed)
			check("last", written(last))
			check("last_loc", written(last))
			check("last_title", last.Title)
			without := 0
			for _, e := range entries {
				if e.URL != corpus.CanonicalURL(e.URL) || strings.Contains(e.URL, "google.com/url") {
					t.Errorf("address %s", e.URL)
				}
				if e.Modified.Printed == "" {
					without++
				}
				for _, s := range []Stamp{e.Published, e.Modified} {
					if s.Printed != "" && s.Date.Value == "" {
						t.Errorf("date %q of %s is not read", s.Printed, e.URL)
					}
				}
			}
			check("without_lastmod", fmt.Sprint(without))
			var want firstWant
			if raw, ok := cap.want["first"]; ok && raw[0] == '"' {
				check("first", written(first))
			} else if ok {
				if err := json.Unmarshal(raw, &want); err != nil {
					t.Fatal(err)
				}
			}
			title := strings.TrimSuffix(strings.TrimPrefix(want.Title, "<![CDATA["), "]]>")
			for _, f := range []struct{ field, got, want string }{
				{"id", first.ID, want.ID + want.GUID}, {"title", first.Title, title}, {"link", written(first), want.Link + want.Loc},
				{"published", first.Published.Printed, want.PubDate + want.Date}, {"updated", first.Modified.Printed, want.Updated},
				{"name", first.Publisher, want.Name}, {"lang", first.Lang, want.Lang},
			} {
				if f.want != "" && f.got != f.want {
					t.Errorf("first %s = %q, want %q", f.field, f.got, f.want)
				}
			}
		})
	}
	t.Logf("feeds by kind: %v", seen)
}

// written returns an entry's address as the feed has it.
func written(e Entry) string {
	if e.Found != "" {
		return e.Found
	}
	return e.URL
}

// A redirect of Google Alerts is undone; what it leads to is a page, and the feed's own word is kept.
func TestRealAlertsLeadToPages(t *testing.T) {
	for _, cap := range captures(t, realFolder(t), "atom") {
		if !strings.Contains(cap.file, "google-alerts") {
			continue
		}
		got, err := ReadFeed("https://www.google.com/alerts/feeds/1/2", http.Header{}, cap.body)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range got.Entries {
			if corpus.Host(e.URL) == "www.google.com" || !strings.HasPrefix(e.Found, "https://www.google.com/url?") {
				t.Errorf("entry %q leads to %s, found as %s", e.Title, e.URL, e.Found)
			}
		}
		if want := "https://www.aglobalmarketresearch.com/"; !strings.HasPrefix(got.Entries[0].URL, want) {
			t.Errorf("first leads to %s, want a page of %s", got.Entries[0].URL, want)
		}
	}
}
