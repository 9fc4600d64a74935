package scrapers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// reviewCaptures returns the rows of the index that say something about ClaimReview markup: those that
// count it, whatever site they are from.
func reviewCaptures(t *testing.T, dir string) []capture {
	t.Helper()
	index, err := os.ReadFile(filepath.Join(dir, "INDEX.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, line := range strings.Split(string(index), "\n") {
		if strings.Contains(line, `"claimreviews": `) {
			kinds = append(kinds, strings.Split(line, "\t")[1])
		}
	}
	return slices.DeleteFunc(captures(t, dir, kinds...), func(c capture) bool { _, ok := c.want["claimreviews"]; return !ok })
}

func TestRealClaimReviews(t *testing.T) {
	dir := realFolder(t)
	y := &tally{right: map[string]int{}, total: map[string]int{}}
	rows := reviewCaptures(t, dir)
	if len(rows) != 34 {
		t.Errorf("%d rows count reviews, want 34", len(rows))
	}
	labels := 0
	for _, c := range rows {
		var got []Review
		if c.kind == "claimreview-feed-item" {
			for r, err := range ReadClaimFeed(bytes.NewReader(c.body)) {
				if err != nil {
					t.Errorf("%s: %v", c.file, err)
				}
				got = append(got, r)
			}
		} else {
			if c.url == "" { // a fragment that somebody kept without its address
				c.url = "https://example.org/"
			}
			found, err := ClaimReviews(realPage(t, c.url, c.body))
			if err != nil || len(found.Bad) > 0 {
				t.Errorf("%s: %v, %v", c.file, found.Bad, err)
			}
			got = found.Items
		}
		n, _ := c.str("claimreviews")
		y.check("claimreviews", c.file, fmt.Sprint(len(got)), n)
		if n == "0" || len(got) == 0 {
			continue
		}
		r := got[0]
		if len(r.Notes) > 0 {
			t.Errorf("%s: notes %q", c.file, r.Notes)
		}
		if _, ok := r.Label(); ok {
			labels++
		}
		for field, value := range map[string]string{
			"claim": r.Claim, "rating": r.RatingRaw, "rating_value": r.Value, "date": r.Published.Date.Day, "claimant": r.Claimant(),
			"claim_date": r.Claimed.Date.Day, "review_author": r.Author(), "url": r.URLPrinted,
			"publisher": r.Author(), "date_created": r.Created.Printed, // of the feed's item
		} {
			want, ok := c.str(field)
			if !ok || field == "publisher" && c.kind != "claimreview-feed-item" {
				continue
			}
			var list []string
			if json.Unmarshal(c.want[field], &list) == nil {
				want = strings.Join(list, "; ")
			}
			y.check(field, c.file, value, want)
		}
		if start, ok := c.str("claim_starts"); ok {
			y.check("claim", c.file, r.Claim[:min(len(r.Claim), len(start))], start)
		}
	}
	if labels != 20 {
		t.Errorf("%d of the ratings are labels, want 20: all but two sentences", labels)
	}
	for _, field := range []string{"claimreviews", "claim", "rating", "rating_value", "date", "claimant", "claim_date", "review_author", "url"} {
		t.Logf("%-13s %2d of %2d", field, y.right[field], y.total[field])
	}
	for _, s := range y.short {
		t.Errorf("falls short: %s", s)
	}
}

// The pages on which our reader of PolitiFact does not depend still show how the widget of a third
// party writes microdata.
func TestRealMicrodata(t *testing.T) {
	dir := realFolder(t)
	for _, c := range captures(t, dir, "politifact-flip", "politifact-claim") {
		if !strings.HasSuffix(c.file, "flip-2018-trump.html") {
			continue
		}
		found, err := ClaimReviews(realPage(t, c.url, c.body))
		if err != nil || len(found.Items) != 1 {
			t.Fatalf("%s: %d reviews, %v", c.file, len(found.Items), err)
		}
		r := found.Items[0]
		got := []string{r.Rating, r.Value, r.Best, r.Worst, r.Published.Date.Value, r.Claimed.Date.Value, r.Claimant(), r.Author()}
		want := []string{"Full Flop", "9", "7", "1", "2018-06-21T11:21:59Z", "2018-06-15", "Donald Trump", "PolitiFact"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.file, diff)
		}
		if at, ok := r.Position(); ok {
			t.Errorf("9 on a scale from 1 to 7 lies at %v", at)
		}
		return
	}
	t.Error("no page with the widget")
}

func TestRealMalformedMarkup(t *testing.T) {
	dir := realFolder(t)
	rows := captures(t, dir, "jsonld-malformed")
	for _, c := range rows {
		p := realPage(t, "https://example.org/", c.body)
		found, err := ClaimReviews(p)
		if err != nil || len(found.Bad) > 0 || len(found.Items) > 0 {
			t.Errorf("%s: %+v, %v", c.file, found, err)
		}
		_, script, _ := strings.Cut(p.Text(), `application/ld+json">`)
		script, _, _ = strings.Cut(script, "</script>")
		values, repaired, err := readMarkup(script)
		if err != nil || !repaired || len(values) != 1 {
			t.Errorf("%s: %d values, repaired %v, %v", c.file, len(values), repaired, err)
		}
	}
	if len(rows) != 2 {
		t.Errorf("%d malformed captures, want 2", len(rows))
	}
}

func TestRealClaimSearch(t *testing.T) {
	dir := realFolder(t)
	for _, c := range captures(t, dir, "google-factcheck-response") {
		got, err := ReadClaimSearch(bytes.NewReader(c.body))
		if err != nil {
			t.Fatalf("%s: %v", c.file, err)
		}
		if next, _ := c.str("nextPageToken"); got.Next != next {
			t.Errorf("next = %q, want %q", got.Next, next)
		}
		undated, ratings := 0, map[string]int{}
		for _, r := range got.Reviews {
			ratings[r.RatingRaw]++
			if r.Published.Printed == "" {
				undated++
			}
			if r.Claim == "" || r.URL == "" || len(r.Notes) > 0 {
				t.Errorf("review %+v", r)
			}
		}
		var wantRatings map[string]int
		var wantFirst map[string]string
		for field, into := range map[string]any{"ratings": &wantRatings, "first": &wantFirst} {
			if err := json.Unmarshal(c.want[field], into); err != nil {
				t.Fatal(err)
			}
		}
		n, _ := c.str("reviews")
		without, _ := c.str("without_reviewDate")
		if fmt.Sprint(len(got.Reviews)) != n || fmt.Sprint(undated) != without {
			t.Errorf("%d reviews, %d without a date, want %s and %s", len(got.Reviews), undated, n, without)
		}
		if diff := cmp.Diff(wantRatings, ratings); diff != "" {
			t.Errorf("ratings (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(wantFirst, searchFields(got.Reviews[0], wantFirst)); diff != "" {
			t.Errorf("first review (-want +got):\n%s", diff)
		}
	}
	for _, c := range captures(t, dir, "google-factcheck-item") {
		got, err := ReadClaimSearch(strings.NewReader(`{"claims":[` + string(c.body) + `]}`))
		if err != nil || len(got.Reviews) != 1 {
			t.Fatalf("%s: %d reviews, %v", c.file, len(got.Reviews), err)
		}
		want := map[string]string{}
		for field := range c.want {
			want[field], _ = c.str(field)
		}
		if diff := cmp.Diff(want, searchFields(got.Reviews[0], want)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.file, diff)
		}
	}
}

// searchFields returns the fields of a review under the names of the index, those of want alone.
func searchFields(r Review, want map[string]string) map[string]string {
	all := map[string]string{
		"claim": r.Claim, "claimant": r.Claimant(), "claim_date": r.Claimed.Printed, "rating": r.RatingRaw, "publisher": r.Publisher,
		"publisher_site": r.PublisherSite, "review_date": r.Published.Printed, "lang": r.Lang, "url": r.URLPrinted,
	}
	out := map[string]string{}
	for field := range want {
		out[field] = all[field]
	}
	return out
}
