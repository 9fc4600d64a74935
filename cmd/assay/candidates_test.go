package main

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What is found in a document waits: it is no claim, is searched for by nobody and stands in no release, until a
// person says yes. A no, of whichever person, keeps it out. Decisions travel in an archive.
func TestCandidatesWaitForAPerson(t *testing.T) {
	t.Parallel()
	w := newWeb(t)
	check := wells(1)[0]
	w.checks("check.example", check)
	const article = "http://news.example/news/item/07-03-2023-ferry-of-averil"
	w.on("news.example/rss-feeds/news-english.xml", says("application/rss+xml", `<?xml version="1.0" encoding="utf-8"?>
<rss version="2.0"><channel><title>News</title><link>http://news.example</link>
<item><title>The ferry</title><link>`+article+`</link><pubDate>Tue, 07 Mar 2023 10:00:00 Z</pubDate></item></channel></rss>`))
	page := news("The ferry of Averil", "The ferry of Averil carried 41,000 people in 2022, more than ever before. "+
		"“The ferry cost the town 2.3 million crowns,” said Mayor Ilse Brandt. Tomas Holm opened the first bakery of Averil in 1987.")
	w.on(article[len("http://"):], shows(strings.Replace(page, "</head>", `<meta property="article:published_time" content="2023-03-07T10:00:00Z"></head>`, 1)))
	l := newSite(t, w, []string{"news.example"}, setup{
		"recipe.sites":   `[{name: politifact, base: "http://check.example"}, {name: who, base: "http://news.example"}]`,
		"recipe.extract": "{extractor: claims}",
	})
	texts := func(r report) map[string]bool {
		out := map[string]bool{}
		for _, row := range released(t, r.Release.Dir, "claims") {
			out[row["text"].(string)] = true
		}
		return out
	}
	states := func() map[string]string {
		out := map[string]string{}
		for _, i := range l.ls("candidates") {
			out[i.Key] = i.State
		}
		return out
	}

	r := l.build(0)
	if d := cmp.Diff(map[string]bool{check.Claim: true}, texts(r)); d != "" {
		t.Errorf("claims before anybody decided (-want +got):\n%s", d)
	}
	type candidate struct {
		ID, Text, Quote, Speaker, Date, URL string
		Span                                struct{ Start, End int }
	}
	type seen struct {
		Candidate candidate
		Document  struct{ Text string }
	}
	found := map[string]candidate{} // by text
	for id, state := range states() {
		out, _ := l.must(0, "show", id)
		var s seen
		if err := json.Unmarshal([]byte(out), &s); err != nil {
			t.Fatal(err)
		}
		c := s.Candidate
		if state != "waiting" || c.ID != id || c.URL != article || c.Date != "2023-03-07" || string([]rune(s.Document.Text)[c.Span.Start:c.Span.End]) != c.Quote {
			t.Errorf("%s, %s: %+v", id, state, s)
		}
		found[c.Text] = c
	}
	ferry, cost, bakery := found["The ferry of Averil carried 41,000 people in 2022, more than ever before."], found["The ferry cost the town 2.3 million crowns."], found["Tomas Holm opened the first bakery of Averil in 1987."]
	if len(found) != 4 || ferry.ID == "" || cost.Speaker != "Mayor Ilse Brandt" || bakery.ID == "" {
		t.Fatalf("candidates %+v", found)
	}

	l.must(0, "decide", "accept-claim", ferry.ID, "--verdict", "mostly_true", "--by", "Ada Quill")
	l.must(0, "decide", "accept-claim", cost.ID, "--no", "--by", "Ada Quill")
	l.must(1, "decide", "accept-claim", "k_0000000000000000", "--verdict", "true", "--by", "Ada Quill")
	r = l.build(0)
	if d := cmp.Diff(map[string]bool{check.Claim: true, ferry.Text: true}, texts(r)); d != "" {
		t.Errorf("claims after a yes and a no (-want +got):\n%s", d)
	}
	for _, row := range released(t, r.Release.Dir, "claims") {
		if row["text"] != ferry.Text {
			continue
		}
		if row["verdict6"] != "mostly_true" || row["verdict_status"] != "human" || row["stated_url"] != article || int(row["stated_start"].(float64)) != ferry.Span.Start || int(row["stated_end"].(float64)) != ferry.Span.End {
			t.Errorf("the accepted claim is %v", row)
		}
	}
	decided := states()
	maps.DeleteFunc(decided, func(id, _ string) bool { return id != ferry.ID && id != cost.ID && id != bakery.ID })
	if d := cmp.Diff(map[string]string{ferry.ID: "done", cost.ID: "excluded", bakery.ID: "waiting"}, decided); d != "" {
		t.Errorf("states (-want +got):\n%s", d)
	}
	if d := cmp.Diff(filesOf(t, r.Release.Dir), filesOf(t, l.fromArchive("all.warc.gz").build(0, "--replay").Release.Dir)); d != "" {
		t.Errorf("from the archive (-want +got):\n%s", d)
	}

	// One no is a no, also against an earlier yes.
	l.must(0, "decide", "accept-claim", ferry.ID, "--no", "--by", "Bo Holm")
	if d := cmp.Diff(map[string]bool{check.Claim: true}, texts(l.build(0))); d != "" {
		t.Errorf("claims after another person's no (-want +got):\n%s", d)
	}
}
