package scrapers

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"assay/fetch"

	"github.com/PuerkitoBio/goquery"
	"github.com/google/go-cmp/cmp"
)

func TestClaimReviewPages(t *testing.T) {
	for _, f := range fixtures(t, "claimreview") {
		t.Run(f.file, func(t *testing.T) {
			got, err := ClaimReviews(f.page(t))
			if err != nil {
				t.Fatal(err)
			}
			if again, err := ClaimReviews(f.page(t)); err != nil || !cmp.Equal(got, again) {
				t.Errorf("a second reading differs, %v:\n%s", err, cmp.Diff(got, again))
			}
			golden(t, filepath.Join("testdata", "claimreview", strings.TrimSuffix(f.file, ".html")+".json"), got)
		})
	}
}

// reviewPage is a page with some scripts of markup and what a site prints itself.
func reviewPage(t *testing.T, scripts ...string) *fetch.Page {
	t.Helper()
	body := "<!DOCTYPE html><title>Tolls</title>\n"
	for _, s := range scripts {
		body += `<script type="application/ld+json">` + s + "</script>\n"
	}
	body += `<h1>Tolls</h1><p class="claim">Tolls are paid in shells</p><p class="rating">Satire</p>`
	return realPage(t, "https://toll.example/checks/1", []byte(body))
}

// claimsOf reads a page as a site that has both would: by its markup, and where that yields nothing,
// by its selectors. It counts bad markup by address.
func claimsOf(t *testing.T, p *fetch.Page, bad map[string]int) [][2]string {
	t.Helper()
	found, err := ClaimReviews(p)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range found.Bad {
		bad[b.URL]++
	}
	var out [][2]string
	for _, r := range found.Items {
		label, _ := r.Label()
		out = append(out, [2]string{r.Claim, label})
	}
	if len(out) > 0 {
		return out
	}
	root, err := p.Doc()
	if err != nil {
		t.Fatal(err)
	}
	doc := goquery.NewDocumentFromNode(root)
	return [][2]string{{text(doc.Find(".claim")), text(doc.Find(".rating"))}}
}

// TestHD02: broken markup is repaired where that takes no guess; where it does, it is counted under its
// address and the page's own text is asked.
func TestHD02(t *testing.T) {
	const (
		scriptA = "{\"@context\":\"http://schema.org\",\"@type\":\"ClaimReview\",\"claimReviewed\":\"Bridge tolls\ndoubled\tovernight\",\"reviewRating\":{\"@type\":\"Rating\",\"alternateName\":\"False\"}};"
		scriptB = `{"@context":"http://schema.org","@type":"ClaimReview","claimReviewed":"Tolls fell","reviewRating":{"@type":"Rating","alternateName":"True"}}`
	)
	both := [][2]string{{"Bridge tolls doubled overnight", "False"}, {"Tolls fell", "True"}}
	printed := [][2]string{{"Tolls are paid in shells", "Satire"}}
	inGraph := `{"@context":"http://schema.org","@graph":[{"@type":"WebPage"},` + strings.TrimSuffix(scriptA, ";") + `,],}`
	tests := []struct {
		name     string
		scripts  []string
		want     [][2]string
		repaired int // of the reviews
		bad      int
	}{
		{"the named page", []string{scriptA, scriptB}, both, 1, 0},
		{"the second named page", []string{scriptB[:40]}, printed, 0, 1},

		{"a list in CDATA", []string{"/* <![CDATA[ */\n[" + strings.TrimSuffix(scriptA, ";") + ",\n" + scriptB + ",]; // end\n/* ]]> */"}, both, 2, 0},
		{"a graph with a comma too many", []string{inGraph, scriptB}, both, 1, 0},
		{"escaped as text", []string{strings.ReplaceAll(scriptA, `"`, "&quot;"), scriptB}, both, 1, 0},
		{"every control character", []string{strings.Replace(scriptA, "\t", "\x01\x0b\x0c\x1f\r\n", 1), scriptB}, both, 1, 0},

		{"cut before the last bracket", []string{scriptB[:len(scriptB)-1]}, printed, 0, 1},
		{"cut after it", []string{scriptB[:len(scriptB)-1] + "}"}, both[1:], 0, 0},
		{"cut inside a string that has a line break", []string{"{\"@type\":\"ClaimReview\",\"claimReviewed\":\"Bridge\ntolls"}, printed, 0, 1},
		{"a quote inside a string", []string{strings.Replace(scriptB, "Tolls fell", `Tolls "fell"`, 1)}, printed, 0, 1},
		{"one bad script beside a good one", []string{scriptB[:40], scriptA}, both[:1], 1, 1},
		{"two bad scripts", []string{scriptB[:40], scriptA[:60]}, printed, 0, 2},
		{"an empty script", []string{" \n "}, printed, 0, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := reviewPage(t, tt.scripts...)
			bad := map[string]int{}
			if diff := cmp.Diff(tt.want, claimsOf(t, p, bad)); diff != "" {
				t.Errorf("claims (-want +got):\n%s", diff)
			}
			want := map[string]int{}
			if tt.bad > 0 {
				want["https://toll.example/checks/1"] = tt.bad
			}
			if diff := cmp.Diff(want, bad); diff != "" {
				t.Errorf("bad markup (-want +got):\n%s", diff)
			}
			found, err := ClaimReviews(p)
			if err != nil {
				t.Fatal(err)
			}
			repaired := 0
			for _, r := range found.Items {
				for _, n := range r.Notes {
					if n == "markup repaired" {
						repaired++
					}
				}
			}
			if repaired != tt.repaired {
				t.Errorf("%d reviews are noted as repaired, want %d", repaired, tt.repaired)
			}
		})
	}
	found, err := ClaimReviews(reviewPage(t, scriptA, scriptB[:40]))
	if err != nil || len(found.Bad) != 1 || found.Bad[0].String() != "bad markup on https://toll.example/checks/1: ld+json script 2: the JSON ends too early" {
		t.Errorf("bad = %v, %v", found.Bad, err)
	}
}

func TestReadMarkup(t *testing.T) {
	tests := []struct {
		script   string
		want     string // fmt of the values; "" where the script is given up
		repaired bool
	}{
		{`{"a":1}`, `[map[a:1]]`, false},
		{"\ufeff{\"a\":1}\u00a0", `[map[a:1]]`, false},
		{`[]`, `[[]]`, false},
		{`"a"`, `[a]`, false},
		{`{"a":"b // c /* d */ <!-- e --> ,} ;"}`, `[map[a:b // c /* d */ <!-- e --> ,} ;]]`, false},
		{``, `[]`, false},
		{`{"a":"b // c /* d */ <!-- e --> ,} ;"};`, `[map[a:b // c /* d */ <!-- e --> ,} ;]]`, true},
		{`{"a":1,}`, `[map[a:1]]`, true},
		{`{"a":[1,2 , ] /* x */ , // y` + "\n}", `[map[a:[1 2]]]`, true},
		{`{"a":1}{"b":2}`, `[map[a:1] map[b:2]]`, true},
		{`{"a":1},{"b":2};`, `[map[a:1] map[b:2]]`, true},
		{`// note`, `[]`, true},
		{`/* note`, `[]`, true},
		{`<!-- note -->{"a":1}`, `[map[a:1]]`, true},
		{`<!--{"a":1}-->`, `[map[a:1]]`, true},
		{`<!--` + "\n" + `{"a":1}`, `[map[a:1]]`, true},
		{`//<!--` + "\n" + `{"a":1}` + "\n" + `//-->`, `[map[a:1]]`, true},
		{`//<![CDATA[{"a":1}//]]>`, `[map[a:1]]`, true},
		{`<![CDATA[{"a":[[1]]}]]>`, `[map[a:[[1]]]]`, true},
		{"// <![CDATA[\n{\"a\":1}\n// ]]&gt;", `[map[a:1]]`, true},
		{"{\"a\":\u00a0\"b\"\u2028,\u200b\"c\":true,\ufeff}", `[map[a:b c:true]]`, true},
		{"{\"a\":\"b\x00\x1f\"}", "[map[a:b\x00\x1f]]", true},
		{"{\"a\":\"b\\\r\nc\\\nd\\\re\"}", `[map[a:bcde]]`, true},
		{`{"a":"\'\q\u00e9\u12\\\"\/",}`, `[map[a:'\qé\u12\"/]]`, true},
		{`{&quot;a&quot;:&quot;b &amp;amp; c&quot;}`, `[map[a:b &amp;amp; c]]`, true},
		{`[ {&#34;a&#34;:[&#x22;&lt;b&gt;&#x22;]}]`, `[[map[a:[&lt;b&gt;]]]]`, true},
		{`"{\"a\":\"b\"}"`, `[map[a:b]]`, true},
		{`{\"a\":\"b \\\"c\\\"\"}`, `[map[a:b "c"]]`, true},

		{`{"a":1`, ``, false},
		{`{"a":"b`, ``, false},
		{`{"a":"b\`, ``, false},
		{`{"a":"b"c"}`, ``, false},
		{`{'a':'b'}`, ``, false},
		{`{"a":1;"b":2}`, ``, false},
		{`{"a":1}}`, ``, false},
		{`[,1]`, ``, false},
		{`var x = {"a":1}`, ``, false},
		{`{"a":NaN}`, ``, false},
		{`{\"a\":\"b}`, ``, false},
		{strings.Repeat("[", 20000), ``, false},
	}
	for _, tt := range tests {
		values, repaired, err := readMarkup(tt.script)
		if tt.want == "" {
			if err == nil {
				t.Errorf("readMarkup(%.60q) = %v, want an error", tt.script, values)
			}
			continue
		}
		if got := fmt.Sprint(values); err != nil || got != tt.want || repaired != tt.repaired {
			t.Errorf("readMarkup(%q) = %s, repaired %v, %v; want %s, %v", tt.script, got, repaired, err, tt.want, tt.repaired)
		}
	}
	// What came whole before the break is kept.
	values, _, err := readMarkup(`{"a":1}{"b":"`)
	if err == nil || fmt.Sprint(values) != `[map[a:1]]` {
		t.Errorf("values before the break = %v, %v", values, err)
	}
}

func TestReviewLabel(t *testing.T) {
	tests := []struct {
		rating string
		want   bool
	}{
		{"False", true}, {"Falso.", true}, {"錯誤", true}, {"Correct Attribution", true}, {"really_false", true}, {"Größtenteils falsch", true},
		{strings.Repeat("é", 40), true}, {strings.Repeat("é", 41), false}, {"one two three four five", true}, {"one two three four five six", false},
		{"", false}, {"There is no record of such a bridge.", false},
	}
	for _, tt := range tests {
		if label, ok := (Review{Rating: tt.rating}).Label(); ok != tt.want || ok && label != tt.rating || !ok && label != "" {
			t.Errorf("Label of %q = %q, %v, want %v", tt.rating, label, ok, tt.want)
		}
	}
}

func TestReviewPosition(t *testing.T) {
	tests := []struct {
		value, best, worst string
		want               float64
		ok                 bool
	}{
		{"1", "5", "1", 0, true}, {"5", "5", "1", 1, true}, {"3", "5", "1", 0.5, true}, {"1", "5", "0", 0.2, true}, {"2.5", "5", "0", 0.5, true},
		{"1", "1", "5", 1, true}, // a scale that counts down
		{"1", "2", "1", 0, true},
		{"4", "6", "", 0, false}, {"1", "", "1", 0, false}, {"1", "", "", 0, false}, {"", "5", "1", 0, false}, {"", "", "", 0, false},
		{"-1", "-1", "-1", 0, false}, {"-1", "5", "1", 0, false}, {"9", "7", "1", 0, false}, {"0", "5", "1", 0, false},
		{"Half true", "5", "1", 0, false}, {"NaN", "5", "1", 0, false}, {"1", "Infinity", "0", 0, false}, {"1", "1e308", "-1e308", 0, false},
		{"0x1", "5", "1", 0, false}, {"1", "1,5", "0", 0, false},
	}
	for _, tt := range tests {
		got, ok := (Review{Value: tt.value, Best: tt.best, Worst: tt.worst}).Position()
		if got != tt.want || ok != tt.ok {
			t.Errorf("Position of %q between %q and %q = %v, %v, want %v, %v", tt.value, tt.worst, tt.best, got, ok, tt.want, tt.ok)
		}
	}
}

func TestPlain(t *testing.T) {
	tests := []struct{ in, want string }{
		{"Rishi&#039;s", "Rishi's"},
		{"A &amp; B, AT&T, R&D;", "A & B, AT&T, R&D;"},
		{"A &amp;amp; B", "A &amp; B"},
		{"&lt;b&gt; &copy 2 &notin; &#8217;&#x2019;", "<b> &copy 2 ∉ ’’"},
		{"<p>One</p><p>two<br/>three</p>", "One two three"},
		{"<span class=\"x\">a</span><b>b</b> < c > d <5% <unknown>", "ab < c > d <5% <unknown>"},
		{"a<!-- b\n -->c", "ac"},
		{" a\u00a0\t\r\n b\x00c ", "a b c"},
	}
	for _, tt := range tests {
		if got := plain(tt.in); got != tt.want {
			t.Errorf("plain(%q) = %q, want %q", tt.in, got, tt.want)
		}
	}
}

// Markup that leads in circles, or repeats its own text at every level, ends with the budget.
func TestMicrodataOutOfBounds(t *testing.T) {
	ids := "a b c d e f g h i j k l"
	circle := `<div itemscope itemtype="https://schema.org/ClaimReview" itemref="` + ids + `"><p itemprop="claimReviewed">Round and round</p></div>`
	for id := range strings.FieldsSeq(ids) {
		circle += `<div id="` + id + `"><div itemprop="itemReviewed" itemscope itemref="` + ids + `"><b itemprop="text">x</b></div></div>`
	}
	nested := `<div itemscope itemtype="https://schema.org/ClaimReview"><p itemprop="claimReviewed">Deep</p>` +
		strings.Repeat(`<div itemprop="description">`, 300) + strings.Repeat("words ", 20_000) + strings.Repeat("</div>", 300) + `</div>`
	for name, body := range map[string]string{"Round and round": circle, "Deep": nested} {
		found, err := ClaimReviews(realPage(t, "https://example.org/", []byte(body)))
		if err != nil || len(found.Items) != 1 || found.Items[0].Claim != name {
			t.Errorf("%s: %d reviews, %v", name, len(found.Items), err)
		}
	}
}

func TestReadClaimSearch(t *testing.T) {
	reply := `{"claims":[
		{"text":"Tolls doubled &amp; more","claimant":"A driver","claimDate":"2024-05-01T00:00:00Z","claimReview":[
			{"publisher":{"name":"Toll Desk","site":"toll.example"},"url":"https://toll.example/1","title":"No, tolls ...","reviewDate":"2024-05-03T10:00:00Z","textualRating":"False","languageCode":"en"},
			{"publisher":{"site":"other.example"},"url":"https://other.example/9","textualRating":"Tolls have been the same since the bridge was opened.","languageCode":"en"}]},
		"not a claim",
		{"text":"No review yet"},
		{"text":"Shells","claimReview":[{"url":"https://toll.example/2","textualRating":"ఇది అబద్ధం","reviewDate":"yesterday"}]}
	],"nextPageToken":"CAo"}`
	got, err := ReadClaimSearch(strings.NewReader(reply))
	if err == nil || err.Error() != "read reply of claims:search: claim 2 is no object" {
		t.Errorf("error = %v", err)
	}
	var seen []string
	for _, r := range got.Reviews {
		seen = append(seen, fmt.Sprintf("%s|%s|%s|%s|%s|%s|%s|%s", r.Claim, r.Claimant(), r.Claimed.Date.Value, r.Rating, r.Publisher, r.PublisherSite, r.Published.Date.Value, r.URL))
	}
	want := []string{
		"Tolls doubled & more|A driver|2024-05-01T00:00:00Z|False|Toll Desk|toll.example|2024-05-03T10:00:00Z|https://toll.example/1",
		"Tolls doubled & more|A driver|2024-05-01T00:00:00Z|Tolls have been the same since the bridge was opened.||other.example||https://other.example/9",
		"Shells|||ఇది అబద్ధం||||https://toll.example/2",
	}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("reviews (-want +got):\n%s", diff)
	}
	if got.Next != "CAo" || len(got.Reviews[2].Notes) != 1 {
		t.Errorf("next = %q, notes %q", got.Next, got.Reviews[2].Notes)
	}
	if got, err := ReadClaimSearch(strings.NewReader(`{}`)); err != nil || len(got.Reviews) != 0 || got.Next != "" {
		t.Errorf("nothing found = %+v, %v", got, err)
	}
	for reply, want := range map[string]string{
		`{"error":{"code":403,"message":"API key not valid.","status":"PERMISSION_DENIED"}}`: "the service says 403 PERMISSION_DENIED: API key not valid.",
		`<html>`:      "invalid character '<'",
		`{"claims":[`: "unexpected EOF",
		``:            "EOF",
	} {
		if _, err := ReadClaimSearch(strings.NewReader(reply)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ReadClaimSearch(%q): %v, want %q", reply, err, want)
		}
	}
}

func TestReadClaimFeed(t *testing.T) {
	review := func(claim string) string {
		return `{"@type":"ClaimReview","claimReviewed":"` + claim + `","reviewRating":{"alternateName":"False"}}`
	}
	item := func(items string) string {
		return `{"@type":"DataFeedItem","dateCreated":"2019-12-09T15:11:25.619782+00:00","item":` + items + `,"url":"https://toll.example/1"}`
	}
	tests := []struct{ feed, want string }{
		{`{"@context":"http://schema.org","@type":"DataFeed","dataFeedElement":[` + item("["+review("a")+","+review("b")+"]") + `,` + item("null") + `,` + item(review("c")) + `],"dateModified":"2020"}`, "a 2019-12-09; b 2019-12-09; c 2019-12-09"},
		{`{"dataFeedElement":[]}`, ""},
		{`{"dataFeedElement":null}`, ""},
		{`{"dataFeedElement":` + item("["+review("a")+"]") + `}`, "a 2019-12-09"},
		{item("[" + review("a") + "]"), "a 2019-12-09"},
		{review("a"), "a "},
		{`[` + review("a") + `,` + review("b") + `]`, "a ; b "},
		{review("a") + "\n" + item("["+review("b")+"]") + "\n", "a ; b 2019-12-09"},
		{``, ""},
		{`{"dataFeedElement":[7,{"name":"x"},` + item("["+review("a")+"]") + `]}`, "error: read claim feed: item 1 is neither a DataFeedItem nor a ClaimReview; error: read claim feed: item 2 is neither a DataFeedItem nor a ClaimReview; a 2019-12-09"},
		{`{"dataFeedElement":[` + item("["+review("a")+"]") + `,{"@ty`, "a 2019-12-09; error: read claim feed after item 1: unexpected EOF; nothing after it is read"},
		{`{"dataFeedElement":[` + item("["+review("a")+"]"), "a 2019-12-09; error: read claim feed after item 1: unexpected EOF; nothing after it is read"},
		{`<html>`, "error: read claim feed after item 0: invalid character '<' looking for beginning of value; nothing after it is read"},
		// Broken JSON: what has one reading is mended, and what has none keeps no other item away.
		{item("["+review("a\n\tb")+"]") + ";\n" + review("c") + "\n" + review("d")[:40] + "\n" + review("e"), "a b 2019-12-09; c ; error: read claim feed: item 3 is broken JSON: a string does not end: \"{\\\"@type\\\":\\\"ClaimReview\\\",\\\"claimReviewed\\\":\\\"\\n\"; e "},
		{`[` + review("a\nb") + `;,` + review(`c "d" e`) + `,` + review("f") + `,]`, "a b ; error: read claim feed: item 2 is broken JSON: only a guess would mend it: \"{\\\"@type\\\":\\\"ClaimReview\\\",\\\"claimReviewed\\\":\\\"c \\\"d\\\" e\\\",\\\"reviewRati\"; f "},
		{`{"@type":"DataFeed","dataFeedElement":[` + item("["+review("a\x01b")+",]") + `,` + item(review("c")) + `,],"dateModified":"2020"}`, "a b 2019-12-09; c 2019-12-09"},
		{`[` + review("a\nb") + `,` + review("c")[:50], "a b ; error: read claim feed after item 1: unexpected EOF; nothing after it is read"},
		{strings.Repeat(`{"dataFeedElement":`, 5000), "error: read claim feed after item 0: feeds lie inside feeds; nothing after it is read"},
	}
	for _, tt := range tests {
		var got []string
		for r, err := range ReadClaimFeed(strings.NewReader(tt.feed)) {
			if err != nil {
				got = append(got, "error: "+err.Error())
				continue
			}
			got = append(got, r.Claim+" "+r.Created.Date.Day)
		}
		if diff := cmp.Diff(tt.want, strings.Join(got, "; ")); diff != "" {
			t.Errorf("ReadClaimFeed(%.80s) (-want +got):\n%s", tt.feed, diff)
		}
	}
	n := 0
	for range ReadClaimFeed(strings.NewReader(`[` + review("a") + `,` + review("b") + `,` + review("c") + `]`)) {
		if n++; n == 2 {
			break
		}
	}
	if n != 2 {
		t.Errorf("%d reviews before the break", n)
	}
	broken := errors.New("line is down")
	for _, err := range ReadClaimFeed(failingReader{broken}) {
		if !errors.Is(err, broken) {
			t.Errorf("error = %v", err)
		}
	}
}

type failingReader struct{ err error }

func (r failingReader) Read([]byte) (int, error) { return 0, r.err }

func FuzzClaimReview(f *testing.F) {
	pages, err := filepath.Glob(filepath.Join("testdata", "claimreview", "*.html"))
	if err != nil || len(pages) == 0 {
		f.Fatalf("no seeds: %v", err)
	}
	for _, page := range pages {
		b, err := os.ReadFile(page)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte(`<script type=application/ld+json>{"@type":"ClaimReview","claimReviewed":"a` + "\n" + `",};`))
	f.Add([]byte(`<div itemscope itemtype=ClaimReview itemref=a id=a><p itemprop=claimReviewed>x`))
	f.Fuzz(func(t *testing.T, body []byte) {
		p := realPage(t, "https://example.org/", body)
		got, err := ClaimReviews(p)
		if err != nil {
			return
		}
		if again, err := ClaimReviews(p); err != nil || !cmp.Equal(got, again) {
			t.Errorf("a second reading differs, %v:\n%s", err, cmp.Diff(got, again))
		}
		for _, r := range got.Items {
			if r.Claim != plain(r.Claim) && !strings.ContainsAny(r.Claim, "<&") {
				t.Errorf("claim %q is not plain", r.Claim)
			}
			if r.URL != "" && !strings.HasPrefix(r.URL, "http") {
				t.Errorf("address %q", r.URL)
			}
			if at, ok := r.Position(); ok && (r.Best == "" || r.Worst == "" || at < 0 || at > 1) {
				t.Errorf("position %v of %q between %q and %q", at, r.Value, r.Worst, r.Best)
			}
			if label, ok := r.Label(); ok && (label == "" || len(label) > 4*labelRunes) {
				t.Errorf("label %q", label)
			}
		}
		for _, b := range got.Bad {
			if b.URL == "" || b.Script < 1 || b.Reason == "" {
				t.Errorf("bad markup %+v", b)
			}
		}
	})
}
