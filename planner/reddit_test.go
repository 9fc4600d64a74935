package planner

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"assay/corpus"

	"github.com/google/go-cmp/cmp"
)

// one reads a single object as each format would hold it, and expects the same document of all.
func one(t *testing.T, kind, object string) corpus.Document {
	t.Helper()
	forms := map[string]string{
		"line":    object,
		"array":   "[" + object + "]",
		"archive": `{"data":[` + object + `],"error":null}`,
		"listing": `{"kind":"Listing","data":{"after":null,"children":[{"kind":"` + kind + `","data":` + object + `}]}}`,
		"thread":  `[{"kind":"Listing","data":{"children":[]}},{"kind":"Listing","data":{"children":[{"kind":"` + kind + `","data":` + object + `}]}}]`,
		"alone":   `{"kind":"` + kind + `","data":` + object + `}`,
	}
	var want corpus.Document
	for _, form := range []string{"line", "array", "archive", "listing", "thread", "alone"} {
		entries, faults, end := readAll(form, strings.NewReader(forms[form]))
		docs := documents(entries)
		if len(docs) != 1 || len(faults) != 0 || end != nil {
			t.Fatalf("%s: %d documents, faults %q, end %v of %s", form, len(docs), faults, end, forms[form])
		}
		if want.ID == "" {
			want = docs[0]
		}
		if diff := cmp.Diff(want, docs[0]); diff != "" {
			t.Errorf("%s (-line +%s):\n%s", form, form, diff)
		}
	}
	return want
}

func TestEscaping(t *testing.T) {
	for _, c := range []struct{ name, fields, title, text string }{
		{"escaped", `"title":"R&amp;D","selftext":"1 &lt; 2 &amp;&amp; 3 &gt; 2"`, "R&D", "1 < 2 && 3 > 2"},
		{"escaped once, not twice", `"title":"how to write &amp;lt;","selftext":"&amp;amp; and &amp;#x200B;"`, "how to write &lt;", "&amp; and &#x200B;"},
		{"quotes", `"title":"&quot;free&quot; &#39;tolls&#39;","selftext":""`, `"free" 'tolls'`, ""},
		{"raw by a bare character", `"title":"R&D and how to write &amp;lt;","selftext":"&gt; quoted"`, "R&D and how to write &amp;lt;", "&gt; quoted"},
		{"raw by a bare character elsewhere", `"title":"how to write &lt;","selftext":"1 < 2"`, "how to write &lt;", "1 < 2"},
		{"raw by its HTML", `"title":"write &amp;","selftext":"x","selftext_html":"<div>x</div>"`, "write &amp;", "x"},
		{"escaped by its HTML", `"title":"write &amp;amp;","selftext":"x","selftext_html":"&lt;div&gt;x&lt;/div&gt;"`, "write &amp;", "x"},
		{"raw by its address", `"title":"write &amp;","selftext":"","url":"https://news.example.org/?a=1&b=2"`, "write &amp;", ""},
		{"a reference of Markdown", `"title":"a &nbsp; b &amp; c","selftext":""`, "a &nbsp; b &amp; c", ""},
		{"nothing to tell", `"title":"plain","selftext":"words"`, "plain", "words"},
		{"a bare & before an escape", `"title":"a & &lt;b","selftext":""`, "a & &lt;b", ""},
	} {
		d := one(t, "t3", `{"id":"aa1",`+c.fields+`,"created_utc":1552908000}`)
		if d.Title != c.title || d.Text != c.text {
			t.Errorf("%s: title %q, text %q, want %q, %q", c.name, d.Title, d.Text, c.title, c.text)
		}
	}
}

// What one reply tells of its escaping holds for the things after it that tell nothing.
func TestEscapingOfReply(t *testing.T) {
	reply := `{"kind":"Listing","data":{"children":[
		{"kind":"t3","data":{"id":"aa1","title":"R&D","selftext":""}},
		{"kind":"t3","data":{"id":"aa2","title":"write &amp;","selftext":""}}]}}`
	entries, _, _ := readAll("a", strings.NewReader(reply))
	if got := entries[1].Document.Title; got != "write &amp;" {
		t.Errorf("title %q was unescaped", got)
	}
}

func TestRedditDocument(t *testing.T) {
	long := "The harbor board voted to raise the tolls in March."
	post := func(fields string) string {
		return `{"id":"aa1","title":"Tolls","subreddit":"harborville","author":"invented_author","created_utc":1552908000,` + fields + `}`
	}
	base := corpus.Document{
		ID: "reddit:t3_aa1", Kind: corpus.KindRedditPost, Title: "Tolls", Text: long, URL: "https://www.reddit.com/r/harborville/comments/aa1/",
		Source: "reddit.com/r/harborville", PublishedAt: "2019-03-18T11:20:00Z", BodyStatus: corpus.BodyFull,
	}
	with := func(change func(*corpus.Document)) corpus.Document {
		d := base
		change(&d)
		return d
	}
	text := fmt.Sprintf(`"selftext":%q`, long)
	for _, c := range []struct {
		name, kind, object string
		want               corpus.Document
	}{
		{"no permalink", "t3", post(text), base},
		{"permalink", "t3", post(text + `,"permalink":"/r/harborville/comments/aa1/tolls_rise/?ref=search_posts"`),
			with(func(d *corpus.Document) { d.URL += "tolls_rise/" })},
		{"permalink of another post", "t3", post(text + `,"permalink":"/r/harborville/comments/zz9/other/"`), base},
		{"seconds as text", "t3", strings.Replace(post(text), "1552908000", `"1552908000"`, 1), base},
		{"seconds with a fraction", "t3", strings.Replace(post(text), "1552908000", `1552908000.75`, 1), base},
		{"seconds in scientific form", "t3", strings.Replace(post(text), "1552908000", `1.552908e9`, 1), base},
		{"no time", "t3", strings.Replace(post(text), "1552908000", `null`, 1), with(func(d *corpus.Document) { d.PublishedAt = "" })},
		{"an impossible time", "t3", strings.Replace(post(text), "1552908000", `1e300`, 1), with(func(d *corpus.Document) { d.PublishedAt = "" })},
		{"id in capitals with prefix", "t3", strings.Replace(post(text), `"aa1"`, `"t3_AA1"`, 1), base},
		{"a number as id", "t3", strings.Replace(post(text), `"aa1"`, `87`, 1),
			with(func(d *corpus.Document) {
				d.ID, d.URL = "reddit:t3_87", "https://www.reddit.com/r/harborville/comments/87/"
			})},
		{"text post that links to itself", "t3", post(text + `,"is_self":true,"url":"https://www.reddit.com/r/harborville/comments/aa1/tolls_rise/"`),
			with(func(d *corpus.Document) { d.URL += "tolls_rise/" })},
		{"link post", "t3", post(`"selftext":"","is_self":false,"url":"https://news.example.org/tolls?a=1&amp;b=2#top"`),
			with(func(d *corpus.Document) {
				d.Text, d.BodyStatus, d.Outbound = "", corpus.BodyMissing, "https://news.example.org/tolls?a=1&b=2"
			})},
		{"link post with words", "t3", post(text + `,"is_self":false,"url":"https://news.example.org/tolls"`),
			with(func(d *corpus.Document) { d.Outbound = "https://news.example.org/tolls" })},
		{"picture", "t3", post(`"selftext":"","is_self":false,"url":"https://i.redd.it/abc.jpeg","url_overridden_by_dest":"https://i.redd.it/abc.jpeg"`),
			with(func(d *corpus.Document) {
				d.Text, d.BodyStatus, d.Outbound = "", corpus.BodyMissing, "https://i.redd.it/abc.jpeg"
			})},
		{"gallery", "t3", post(`"selftext":"","is_self":false,"is_gallery":true,"url":"https://www.reddit.com/gallery/aa1"`),
			with(func(d *corpus.Document) { d.Text, d.BodyStatus = "", corpus.BodyMissing })},
		{"crosspost", "t3", post(`"selftext":"","is_self":false,"url":"/r/other/comments/pp1/x/","crosspost_parent":"t3_pp1","crosspost_parent_list":[{"id":"pp1","permalink":"/r/other/comments/pp1/x/","subreddit":"other","selftext":"the text"}]`),
			with(func(d *corpus.Document) {
				d.Text, d.BodyStatus, d.Outbound = "", corpus.BodyMissing, "https://www.reddit.com/r/other/comments/pp1/x/"
			})},
		{"crosspost of a parent we know by id", "t3", post(`"selftext":"","crosspost_parent":"t3_pp1"`),
			with(func(d *corpus.Document) {
				d.Text, d.BodyStatus, d.Outbound = "", corpus.BodyMissing, "https://www.reddit.com/comments/pp1/"
			})},
		{"crosspost from a personal page", "t3", post(`"selftext":"","crosspost_parent":"t3_pp1","crosspost_parent_list":[{"id":"pp1","permalink":"/user/invented_author/comments/pp1/x/","subreddit":"u_invented_author"}]`),
			with(func(d *corpus.Document) {
				d.Text, d.BodyStatus, d.Outbound = "", corpus.BodyMissing, "https://www.reddit.com/comments/pp1/x/"
			})},
		{"on a personal page", "t3", strings.Replace(post(text+`,"permalink":"/r/u_invented_author/comments/aa1/tolls/"`), "harborville", "u_invented_author", 1),
			with(func(d *corpus.Document) { d.URL, d.Source = "https://www.reddit.com/comments/aa1/tolls/", "reddit.com" })},
		{"a subreddit that is none", "t3", strings.Replace(post(text), "harborville", "a/b?c", 1),
			with(func(d *corpus.Document) { d.URL, d.Source = "https://www.reddit.com/comments/aa1/", "reddit.com" })},
		{"text under a script's name", "t3", post(fmt.Sprintf(`"text":%q`, long)), base},
		{"removed by a moderator", "t3", post(`"selftext":"[removed]","removed_by_category":"moderator"`),
			with(func(d *corpus.Document) { d.Text, d.BodyStatus = "", corpus.BodyRemoved })},
		{"removed, text still there", "t3", post(text + `,"removed_by_category":"moderator"`),
			with(func(d *corpus.Document) { d.Text, d.BodyStatus = "", corpus.BodyRemoved })},
		{"retrieved", "t3", post(text + `,"retrieved_on":1553000000`), with(func(d *corpus.Document) { d.RetrievedAt = "2019-03-19T12:53:20Z" })},
		{"comment", "t1", fmt.Sprintf(`{"id":"c1","body":%q,"link_id":"t3_aa1","subreddit":"harborville","created_utc":1552908000,"author":"invented_author"}`, long),
			with(func(d *corpus.Document) {
				d.ID, d.Kind, d.Title, d.URL = "reddit:t1_c1", corpus.KindRedditComment, "", "https://www.reddit.com/r/harborville/comments/aa1/_/c1/"
			})},
		{"comment with permalink", "t1", fmt.Sprintf(`{"id":"c1","name":"t1_c1","body":%q,"link_id":"t3_aa1","subreddit":"harborville","created_utc":1552908000,"permalink":"/r/harborville/comments/aa1/tolls_rise/c1/","link_title":"Tolls"}`, long),
			with(func(d *corpus.Document) {
				d.ID, d.Kind, d.Title, d.URL = "reddit:t1_c1", corpus.KindRedditComment, "", "https://www.reddit.com/r/harborville/comments/aa1/tolls_rise/c1/"
			})},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := one(t, c.kind, c.object)
			if diff := cmp.Diff(c.want.Seal(), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if raw, _ := json.Marshal(got); strings.Contains(string(raw), "invented_author") {
				t.Errorf("an author's name is kept: %s", raw)
			}
		})
	}
}

// Deleted and removed bodies are no text, whatever holds them; what only speaks of a deletion is.
func TestHD11DeletedBodiesAreNoText(t *testing.T) {
	thread := `[{"kind":"Listing","data":{"children":[{"kind":"t3","data":{"id":"p1","title":"A thread","selftext":"","num_comments":7,"is_self":true}}]}},
	{"kind":"Listing","data":{"children":[
	{"kind":"t1","data":{"id":"c1","body":"[deleted]","author":null,"link_id":"t3_p1","replies":{"kind":"Listing","data":{"children":[
		{"kind":"t1","data":{"id":"c3","body":"A real remark on the harbor board and its tolls.","link_id":"t3_p1","replies":""}},
		{"kind":"more","data":{"count":2,"children":["c5","c6"]}}]}}}},
	{"kind":"t1","data":{"id":"c2","body":"[removed]","author":"[deleted]","link_id":"t3_p1","replies":null}},
	{"kind":"more","data":{"count":0,"id":"_","children":[]}}]}}]`
	type row struct {
		ID, Text string
		Status   corpus.BodyStatus
		More     int
	}
	entries, faults, end := readAll("a", strings.NewReader(thread))
	if len(faults) != 0 || end != nil {
		t.Fatalf("faults %q, end %v", faults, end)
	}
	var got []row
	for _, e := range entries {
		got = append(got, row{e.Document.ID, e.Document.Text, e.Document.BodyStatus, e.More})
	}
	want := []row{
		{ID: "reddit:t3_p1", Status: corpus.BodyMissing},
		{ID: "reddit:t1_c1", Status: corpus.BodyDeleted},
		{ID: "reddit:t1_c3", Text: "A real remark on the harbor board and its tolls.", Status: corpus.BodyFull},
		{More: 2},
		{ID: "reddit:t1_c2", Status: corpus.BodyRemoved},
		{},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("thread (-want +got):\n%s", diff)
	}

	remark := "I wonder why the minutes say [removed] where the toll table was."
	for _, c := range []struct {
		name, kind, object string
		status             corpus.BodyStatus
		content            string
	}{
		{"post", "t3", `{"id":"p2","title":"Tolls","selftext":"[deleted]"}`, corpus.BodyDeleted, "Tolls"},
		{"post with the site's grounds", "t3", `{"id":"p2","title":"Tolls","selftext":"[ Removed by Reddit in response to a copyright notice. ]"}`, corpus.BodyRemoved, "Tolls"},
		{"post with a deleted title", "t3", `{"id":"p2","title":"[deleted by user]","selftext":"[removed]"}`, corpus.BodyRemoved, ""},
		{"escaped placeholder", "t1", `{"id":"c7","body":"&amp;#91;deleted&amp;#93;","link_id":"t3_p2"}`, corpus.BodyDeleted, ""},
		{"archive kept what its author deleted", "t1", `{"id":"c7","body":"Kept words about the harbor board and its tolls.","link_id":"t3_p2","_meta":{"was_deleted_later":true}}`, corpus.BodyDeleted, ""},
		{"archive kept a whole post", "t3", `{"id":"p2","title":"Kept title","selftext":"Kept words about the harbor board and its tolls.","url":"https://news.example.org/","_meta":{"was_deleted_later":true,"removal_type":"moderator"}}`, corpus.BodyRemoved, ""},
		{"the source says who removed it", "t3", `{"id":"p2","title":"Tolls","selftext":"Kept words about the harbor board and its tolls.","removed_by_category":"deleted"}`, corpus.BodyDeleted, "Tolls"},
		{"boundary: an account deleted, the words stand", "t1", `{"id":"c7","author":"[deleted]","body":"` + remark + `","link_id":"t3_p2"}`, corpus.BodyFull, remark},
		{"boundary: restored", "t3", `{"id":"p2","title":"Tolls","selftext":"` + remark + `","removed_by_category":"automod_filtered","_meta":{"was_initially_deleted":true}}`, corpus.BodyFull, "Tolls\n\n" + remark},
	} {
		d := one(t, c.kind, c.object)
		if d.BodyStatus != c.status || d.Content() != c.content || d.Outbound != "" {
			t.Errorf("%s: status %q, content %q, outbound %q, want %q, %q", c.name, d.BodyStatus, d.Content(), d.Outbound, c.status, c.content)
		}
		if ok, _ := Usable(d); ok != (c.status == corpus.BodyFull) {
			t.Errorf("%s: usable %v", c.name, ok)
		}
	}
}

func TestDeepReplies(t *testing.T) {
	nest := func(depth int) string {
		b := `""`
		for i := depth; i > 0; i-- {
			b = fmt.Sprintf(`{"kind":"Listing","data":{"children":[{"kind":"t1","data":{"id":"c%d","body":"b","link_id":"t3_p1","replies":%s}}]}}`, i, b)
		}
		return b
	}
	entries, faults, end := readAll("a", strings.NewReader(nest(maxDepth)))
	if len(entries) != maxDepth || len(faults) != 0 || end != nil {
		t.Errorf("depth %d: %d entries, faults %q, end %v", maxDepth, len(entries), faults, end)
	}
	entries, faults, end = readAll("a", strings.NewReader(nest(maxDepth+50)))
	if len(entries) != maxDepth+1 || len(faults) != 1 || !strings.Contains(faults[0], "deeper than 100") || end != nil {
		t.Errorf("depth %d: %d entries, faults %q, end %v", maxDepth+50, len(entries), faults, end)
	}
}
