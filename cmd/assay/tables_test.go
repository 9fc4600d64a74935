package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A tableFile is a claims table that somebody published, and what its import has to say.
type tableFile struct {
	name, text string
	args       []string          // beside the path
	code       int               // of the import
	problems   []string          // each names one thing that is broken
	told       map[string]string // of the claims
}

// importTables imports tables into a new workspace in some environment, and builds it.
func importTables(t *testing.T, env []string, files []tableFile) (*lab, report) {
	t.Helper()
	l := newSite(t, newWeb(t), nil, setup{"recipe.discover": "[imported]", "recipe.evidence": "[pairs]"})
	l.env = env
	for _, f := range files {
		out, errs := l.must(f.code, append([]string{"import", "claims-table", l.write(filepath.Join(t.TempDir(), f.name), f.text)}, f.args...)...)
		for _, p := range f.problems {
			if !strings.Contains(out+errs, p) {
				t.Errorf("%s: %q is not told:\n%s%s", f.name, p, out, errs)
			}
		}
		if n := strings.Count(out, "problem:"); f.code != 1 && n != len(f.problems) {
			t.Errorf("%s: %d problems, want %d:\n%s", f.name, n, len(f.problems), out)
		}
	}
	return l, l.build(0)
}

func claimReview(claim, rating, date string) string {
	slug := strings.ReplaceAll(strings.ToLower(strings.Fields(claim)[0]+strings.Fields(claim)[1]), ".", "")
	return fmt.Sprintf(`{"@context":"http://schema.org","@type":"ClaimReview","claimReviewed":"%s","datePublished":"%s","url":"https://checks.example/%s/","reviewRating":{"@type":"Rating","alternateName":"%s"}}`, claim, date, slug, rating)
}

// HD-02 by imported tables: broken items of a ClaimReview dump are mended where only one reading is
// possible, and named and counted where none is; the others are taken, and rows of other tables likewise.
func TestHD02BrokenTables(t *testing.T) {
	t.Parallel()
	broken := func(n int) string {
		return claimReview(fmt.Sprintf("Bridge%d tolls\ndoubled\tovernight", n), "False", "")
	}
	plain := func(n int) string { return claimReview(fmt.Sprintf("Ferry%d tolls fell", n), "True", "") }
	feed := func(items ...string) string {
		return `{"@context":"http://schema.org","@type":"DataFeed","dataFeedElement":[{"@type":"DataFeedItem","item":[` + strings.Join(items, `]},{"@type":"DataFeedItem","item":[`) + `]}],"dateModified":"2025"}`
	}
	claims := func(n int) map[string]string {
		return map[string]string{fmt.Sprintf("Bridge%d tolls doubled overnight", n): "False [markup_repaired]", fmt.Sprintf("Ferry%d tolls fell", n): "True []"}
	}
	files := []tableFile{
		{name: "lines.jsonl", text: broken(1) + ";\n" + plain(1)[:40] + "\n" + plain(1) + "\n", code: 3, problems: []string{"item 2 is broken JSON"}, told: claims(1)},
		{name: "list.json", text: "[" + broken(2) + ",\n" + plain(2) + ",]", told: claims(2)},
		{name: "feed.json", text: feed(broken(3), plain(3)), told: claims(3)},
		{name: "quotes.json", text: "[" + broken(4) + "," + claimReview(`A "b" c`, "True", "") + "," + plain(4) + "]", code: 3, problems: []string{"item 2 is broken JSON"}, told: claims(4)},
		// The boundary: a list that ends in the middle of an item gives what stands before it, and ends the import.
		{name: "cut.json", text: "[" + broken(5) + "," + plain(5) + "," + plain(6)[:40], code: 1, problems: []string{"after item 2: unexpected EOF; nothing after it is read"}, told: claims(5)},
		{name: "rows.csv", text: "statement,label\nOne row.,true\nTwo rows.,true,false\nThree rows.,true\n", args: []string{"--map", "claim=statement,rating=label"}, code: 3, problems: []string{"row 2"},
			told: map[string]string{"One row.": "true []", "Three rows.": "true []"}},
		{name: "rows.jsonl", text: `{"statement":"Four rows.","label":"true"}` + "\n" + `{"statement":"Five` + "\n" + `{"statement":"Six rows.","label":"true"}` + "\n", args: []string{"--map", "claim=statement,rating=label"}, code: 3, problems: []string{"row 2"},
			told: map[string]string{"Four rows.": "true []", "Six rows.": "true []"}},
	}
	l, r := importTables(t, nil, files)
	want := map[string]string{}
	for _, f := range files {
		for claim, said := range f.told {
			want[claim] = said
		}
	}
	if diff := cmp.Diff(want, told(t, r.Release.Dir)); diff != "" {
		t.Errorf("claims (-want +got):\n%s", diff)
	}
	l.must(0, "verify", r.Release.Dir)
}

// HD-06 by imported tables: the day of a claim or review follows the zone that a table names, the printed
// day stays where nobody knows it, and neither the machine's zone nor its zone data count for anything.
func TestHD06DatesOfTables(t *testing.T) {
	t.Parallel()
	printed := []string{"Tue, 03 Jun 2025 21:30:00 EDT", "Wed, 15 Jan 2025 23:10:00 PST", "Sat, 01 Mar 2025 08:00:00 XQT", "2025-12-31T23:59:59-03:00", "2025-01-01"}
	days := []string{"2025-06-03", "2025-01-15", "2025-03-01", "2025-12-31", "2025-01-01"}
	const none = "Tue, 32 Jun 2025 21:30:00 EDT"
	want := map[string]string{}
	// rows are the dates as rows of a table, and one that is no date among them.
	rows := func(table string, row func(claim, date string) string) (out []string) {
		for i, date := range append(slices.Clone(printed), none) {
			claim := fmt.Sprintf("Toll %d of %s rose.", i, table)
			out = append(out, row(claim, date))
			if date != none {
				want[claim] = days[i]
			}
		}
		return out
	}
	csv := func(name, head, form string, args ...string) tableFile {
		return tableFile{name: name + ".csv", text: head + "\n" + strings.Join(rows(name, func(claim, date string) string { return fmt.Sprintf(form, claim, date) }), "\n") + "\n",
			args: args, code: 3, problems: []string{"row 6"}}
	}
	lines := rows("feed", func(claim, date string) string { return claimReview(claim, "False", date) })
	search := rows("search", func(claim, date string) string {
		return fmt.Sprintf(`{"text":%q,"claimReview":[{"publisher":{"name":"Checks","site":"checks.example"},"url":"https://checks.example/search/","reviewDate":%q,"textualRating":"False"}]}`, claim, date)
	})
	mapped := rows("lines", func(claim, date string) string { return fmt.Sprintf(`{"s":%q,"l":"false","d":%q}`, claim, date) })
	files := []tableFile{
		{name: "feed.jsonl", text: strings.Join(lines, "\n")},
		{name: "search.json", text: `{"claims":[` + strings.Join(search, ",") + `]}`},
		{name: "lines.jsonl", text: strings.Join(mapped, "\n"), args: []string{"--map", "claim=s,rating=l,review_date=d"}, code: 3, problems: []string{"row 6"}},
		csv("mapped", "s,l,d", `%s,false,"%s"`, "--map", "claim=s,rating=l,review_date=d"),
		csv("claimskg", "claimReview_claimReviewed,rating_alternateName,claimReview_url,creativeWork_datePublished,claimReview_datePublished,extra_title,extra_tags", `%s,FALSE,,,"%s",,`),
		csv("snopes", "date,title,claim,verasity,url,category", `"%[2]s",,%[1]s,False,,`),
		csv("politifact", "Statement,Speaker,Rating,Date", `%s,Ada Quill,false,"%s"`),
	}
	var dirs []string
	for _, env := range [][]string{{"TZ=UTC"}, {"TZ=Asia/Tokyo", "ZONEINFO=/nonexistent"}} {
		l, r := importTables(t, env, files)
		got := map[string]string{}
		for _, row := range released(t, r.Release.Dir, "claims") {
			if day := fmt.Sprint(row["review_date"]); day != "" {
				got[row["text"].(string)] = day
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: days (-want +got):\n%s", env, diff)
		}
		l.must(0, "verify", r.Release.Dir)
		dirs = append(dirs, r.Release.Dir)
	}
	if diff := cmp.Diff(filesOf(t, dirs[0]), filesOf(t, dirs[1])); diff != "" {
		t.Errorf("release (-UTC +Tokyo):\n%s", diff)
	}
}
