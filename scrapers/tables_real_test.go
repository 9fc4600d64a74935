package scrapers

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"assay/corpus"

	"github.com/google/go-cmp/cmp"
)

// A realTable is what the index says of one captured file, in the words of our rows and claims.
type realTable struct {
	table     string
	rows      int
	refused   int
	left      map[string]int // claims left out, by reason
	unmapped  int            // claims whose rating waits for a person
	notes     int
	duplicate int // rows whose key another row has; all say the same, or are refused by an import
}

var realTables = map[string]realTable{
	"datasets/averitec-dev-500.json.gz":                   {table: "averitec", rows: 500},
	"datasets/buzzfeed-facebook-fact-check.csv":           {table: "buzzfeed", rows: 2282, left: map[string]int{"no_claim": 2282}},
	"datasets/claimskg-afpfactcheck.csv":                  {table: "claimskg", rows: 54, unmapped: 15, duplicate: 5},
	"datasets/claimskg-fullfact.csv":                      {table: "claimskg", rows: 44, left: map[string]int{"no_verdict": 13}, duplicate: 10},
	"datasets/claimskg-politifact.csv":                    {table: "claimskg", rows: 30},
	"datasets/claimskg-snopes.csv":                        {table: "claimskg", rows: 33, unmapped: 10, duplicate: 8},
	"datasets/claimskg-truthorfiction.csv":                {table: "claimskg", rows: 30, unmapped: 12},
	"datasets/liar-valid.tsv":                             {table: "liar", rows: 1284},
	"datasets/notnews-politifacts.csv":                    {table: "politifact_scrape", rows: 3859, left: map[string]int{"no_claim": 3859}},
	"datasets/politifact-2021-jsonl.json":                 {table: "politifact_scrape", rows: 10},
	"datasets/politifact-5085-listing-items-2020.json.gz": {table: "politifact_scrape", rows: 5085, left: map[string]int{"flip_o_meter": 72}},
	"datasets/politifact-7470-claims-2025.csv.gz":         {table: "politifact_scrape", rows: 7470, left: map[string]int{"flip_o_meter": 39}, duplicate: 2},
	"datasets/snopes-2018-samples.csv":                    {table: "snopes_scrape", rows: 126, unmapped: 23},
	"datasets/snopes-mostly-true-unescaped-quotes.json":   {table: "snopes_scrape", rows: 272, refused: 3, notes: 16}, /* three statements are empty */
	"claimreview/datacommons-feed-item.json":              {table: "claimreview", rows: 1, left: map[string]int{"no_verdict": 1}},
	"claimreview/gesis-claimskg-item.json":                {table: "claimskg_gesis", rows: 1, left: map[string]int{"no_verdict": 1}},
	"claimreview/google-factcheck-claim-urdu.json":        {table: "factcheck_tools", rows: 1},
	"claimreview/google-factcheck-claims-search.json":     {table: "factcheck_tools", rows: 10, notes: 1},
}

// TestRealTables reads every captured data set, found as any file is, and holds it against its index.
func TestRealTables(t *testing.T) {
	dir := realFolder(t)
	kinds := []string{
		"dataset-averitec", "dataset-buzzfeed", "dataset-claimskg", "dataset-liar", "dataset-politifact", "dataset-politifact-json",
		"dataset-snopes", "dataset-snopes-badjson", "claimreview-feed-item", "claimskg-item", "google-factcheck-item", "google-factcheck-response",
	}
	files := captures(t, dir, kinds...)
	if len(files) != len(realTables) {
		t.Errorf("%d captures, want %d", len(files), len(realTables))
	}
	for _, c := range files {
		t.Run(c.file, func(t *testing.T) {
			want, ok := realTables[c.file]
			if !ok {
				t.Fatal("nothing is said about it")
			}
			body := io.Reader(bytes.NewReader(c.body))
			if strings.HasSuffix(c.file, ".gz") {
				z, err := gzip.NewReader(body)
				if err != nil {
					t.Fatal(err)
				}
				body = z
			}
			table, whole, err := DetectReader(body)
			if err != nil || table.Name != want.table {
				t.Fatalf("DetectReader = %q, %v; want %q", table.Name, err, want.table)
			}
			got := realTable{table: table.Name, left: map[string]int{}}
			var claims []corpus.Claim
			var rows []Row
			keys := map[string]bool{}
			for row, err := range table.Read(c.file, whole) {
				if err != nil {
					got.refused++
					t.Logf("%v", err)
					continue
				}
				got.rows++
				got.notes += len(row.Notes)
				if keys[row.Key] {
					got.duplicate++
				}
				keys[row.Key] = true
				rows = append(rows, row)
				made, err := table.Parse(row)
				if ex := (*corpus.ExcludedError)(nil); errors.As(err, &ex) {
					got.left[ex.Reason]++
				} else if err != nil {
					t.Errorf("row %d: %v", row.At, err)
				}
				for _, c := range made {
					if corpus.HasFlag(c.Flags, corpus.FlagUnmapped) {
						got.unmapped++
					} else if c.Verdict6 == "" {
						t.Errorf("row %d: a claim without a verdict: %+v", row.At, c)
					}
				}
				claims = append(claims, made...)
			}
			if want.left == nil {
				want.left = map[string]int{}
			}
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(realTable{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			checkIndexed(t, c, rows, claims, got.refused)
			t.Logf("%d rows, %d claims, %d keys twice, %d notes, ratings %v", got.rows, len(claims), got.duplicate, got.notes, ratingsOf(claims))
		})
	}
}

func ratingsOf(claims []corpus.Claim) map[string]int {
	out := map[string]int{}
	for _, c := range claims {
		out[c.RatingRaw+" > "+string(c.Verdict6)]++
	}
	return out
}

// checkIndexed holds what was read against the expected values of the index.
func checkIndexed(t *testing.T, c capture, rows []Row, claims []corpus.Claim, refused int) {
	t.Helper()
	number := func(key string) (n int, ok bool) {
		raw, ok := c.want[key]
		return n, ok && json.Unmarshal(raw, &n) == nil
	}
	for _, key := range []string{"rows", "objects", "claims"} {
		if n, ok := number(key); ok && n != len(rows)+refused {
			t.Errorf("%d rows, the index has %d %s", len(rows), n, key)
		}
	}
	columns := len(rows[0].Fields)
	if c.kind == "dataset-claimskg" {
		columns++ // the one without a name is no field
	}
	if n, ok := number("columns"); ok && columns != n {
		t.Errorf("%d columns, the index has %d", columns, n)
	}
	var keys []string
	if json.Unmarshal(c.want["keys"], &keys) == nil && len(keys) > 0 {
		slices.Sort(keys)
		if have := slices.Sorted(maps.Keys(rows[0].Fields)); !slices.Equal(have, keys) {
			t.Errorf("keys %q, the index has %q", have, keys)
		}
	}
	var labels map[string]int
	if json.Unmarshal(c.want["labels"], &labels) != nil {
		labels = nil
	}
	if c.want["ratings"] != nil && json.Unmarshal(c.want["ratings"], &labels) != nil {
		t.Error("ratings of the index cannot be read")
	}
	have := map[string]int{}
	for _, claim := range claims {
		have[claim.RatingRaw]++
	}
	if labels != nil && !maps.Equal(have, labels) {
		t.Errorf("ratings %v, the index has %v", have, labels)
	}
	first := map[string]any{}
	if raw, ok := c.want["first"]; ok {
		if err := json.Unmarshal(raw, &first); err != nil {
			t.Fatal(err)
		}
	} else { // an item that the index describes by itself
		for k, raw := range c.want {
			var v any
			if json.Unmarshal(raw, &v) == nil {
				first[k] = v
			}
		}
	}
	// What the index calls a value, where that is no column of the file.
	claim := corpus.Claim{}
	if len(claims) > 0 {
		claim = claims[0]
	}
	row := rows[0].Fields
	values := map[string]string{
		"claim": claim.Text, "text": claim.Text, "speaker": claim.Speaker, "claimant": claim.Speaker, "rating": claim.RatingRaw, "rating_alt": claim.RatingRaw,
		"publisher": strings.Join(claim.Authors, ""), "author": strings.Join(claim.Authors, ""), "stated": row["meta_description"], "date": row["date_posted"], "id": row["id"], "title": claim.Title, "url": claim.ReviewURL,
	}
	var review Review
	if item := row[claimreviewItem]; item != "" {
		if s, err := searchReview([]byte(item)); err == nil {
			review = s
		} else if n, err := nodeOf([]byte(item)); err == nil {
			review = feedItem{n: n}.reviews()[0]
		}
		maps.Copy(values, map[string]string{
			"claim": review.Claim, "claim_starts": review.Claim, "rating": review.RatingRaw, "url": review.URLPrinted, "date": review.Published.Printed, "claimant": review.Claimant(),
			"publisher": review.Publisher, "publisher_site": review.PublisherSite, "review_date": review.Published.Printed, "claim_date": review.Claimed.Printed,
			"lang": review.Lang, "date_created": review.Created.Printed,
		})
		if review.Publisher == "" {
			values["publisher"] = review.Author()
		}
	}
	checked := 0
	for key, want := range first {
		if key == "claimreviews" || key == "claims" || key == "rows" || key == "objects" {
			continue
		}
		text, isText := want.(string)
		if want == nil {
			text, isText = "", true
		}
		if !isText {
			continue
		}
		got, isColumn := row[key]
		if v, ok := values[key]; ok && (!isColumn || review.Claim != "") {
			got = v
		}
		if got != text && !(strings.HasPrefix(got, text) && (key == "claim_starts" || len(text) >= 100)) {
			t.Errorf("%s of the first row is %q, the index has %q", key, got, text)
		}
		checked++
	}
	if checked == 0 {
		t.Error("nothing of the first row was checked")
	}
	if raw, ok := c.want["last_claim"]; ok {
		var last string
		if err := json.Unmarshal(raw, &last); err != nil || corpus.Space(last) != claims[len(claims)-1].Text {
			t.Errorf("the last claim is %q, the index has %q", claims[len(claims)-1].Text, last)
		}
	}
}
