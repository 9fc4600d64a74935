package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"assay/scrapers"
)

// A newsroom with a new design stops a night as a fact-checker's does, although its pages can still be read; and the
// report names the pages, what was looked for and what they have.
func TestRefreshStopsAtDriftOfANewsroom(t *testing.T) {
	t.Parallel()
	w := newWeb(t)
	w.on("check.example/robots.txt", says("text/plain", "User-agent: *\nAllow: /\n"))
	w.checks("check.example", wells(1)...)
	const pages = 12
	serve := func(class, head string) {
		var items strings.Builder
		for i := range pages {
			path := fmt.Sprintf("/news/item/%02d-03-2023-wells", i+1)
			fmt.Fprintf(&items, "<item><title>Wells %d</title><link>http://news.example%s</link><pubDate>Tue, 07 Mar 2023 10:00:00 Z</pubDate></item>", i, path)
			w.on("news.example"+path, shows(fmt.Sprintf(`<html><head><title>Wells</title>%s</head><body><main><h1>Wells of Averil, part %d</h1><div class="%s">`+
				`<p>The village of Averil has %d wells, the office of the district says in its report of the spring, and one of them is dry.</p>`+
				`<p>The office counted the wells of four villages, and will count those of the others before the next session of the council.</p></div></main></body></html>`, head, i, class, i+2)))
		}
		w.on("news.example/rss-feeds/news-english.xml", says("application/rss+xml", `<?xml version="1.0" encoding="utf-8"?>
<rss version="2.0"><channel><title>News</title><link>http://news.example</link>`+items.String()+`</channel></rss>`))
	}
	serve("sf-detail-body-wrapper", `<meta property="article:published_time" content="2023-03-07T10:00:00Z">`)
	s := setup{"recipe.sites": `[{name: politifact, base: "http://check.example"}, {name: who, base: "http://news.example"}]`}
	for k, v := range everyNight {
		s[k] = v
	}
	s["publish"] = "{changed: 1, gone: 0.5, failed: 0.5, least: 2}"
	l := newSite(t, w, []string{"news.example"}, s)
	if _, said := l.must(0, "build"); strings.Contains(said, "drift: ") {
		t.Errorf("pages as expected:\n%s", said)
	}
	l.env = []string{clockEnv + "=25h"}
	serve("of-a-new-design", "")
	out, said := l.must(6, "refresh", "--json")
	for _, part := range []string{"who: it does not look as its scraper expects", "assay refresh --accept who", "nothing was released"} {
		if !strings.Contains(said, part) {
			t.Errorf("the message lacks %q:\n%s", part, said)
		}
	}
	var r struct {
		Build struct{ Alarms []scrapers.Alarm }
	}
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err)
	}
	named, fields := map[string]bool{}, map[string]bool{}
	for _, a := range r.Build.Alarms {
		if a.URL == "" {
			fields[a.Field] = true
		} else if a.Site == "who" && strings.Contains(a.Want, ".sf-detail-body-wrapper p") && a.Has != "" {
			named[a.URL] = true
		}
	}
	if len(named) != pages || !fields["body"] || !fields["date"] {
		t.Errorf("alarms %+v; want one for each of %d pages, and for body and date of all", r.Build.Alarms, pages)
	}
	l.must(0, "refresh", "--accept", "who")
}
