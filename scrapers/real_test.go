package scrapers

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"assay/corpus"
	"assay/fetch"

	"github.com/google/go-cmp/cmp"
	"github.com/ulikunitz/xz"
)

// realFolder returns the folder of captures, or skips the test.
func realFolder(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("ASSAY_REAL")
	if dir == "" {
		t.Skip("skipped: ASSAY_REAL is not set")
	}
	return dir
}

// A capture is one row of the folder's INDEX.tsv, with the bytes of the file.
type capture struct {
	file, kind, url string
	want            map[string]json.RawMessage
	body            []byte
}

// str returns an expected value that is a string; ok is false where the index claims nothing.
func (c capture) str(key string) (string, bool) {
	raw, ok := c.want[key]
	if !ok {
		return "", false
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return string(raw), true
	}
	return s, true
}

// captures reads the rows of some kinds, with the files they name.
func captures(t *testing.T, dir string, kinds ...string) []capture {
	t.Helper()
	index, err := os.ReadFile(filepath.Join(dir, "INDEX.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	var out []capture
	for _, line := range strings.Split(strings.TrimRight(string(index), "\n"), "\n")[1:] {
		f := strings.Split(line, "\t")
		if !slices.Contains(kinds, f[1]) {
			continue
		}
		c := capture{file: f[0], kind: f[1], url: f[6]}
		if err := json.Unmarshal([]byte(f[7]), &c.want); err != nil {
			t.Fatalf("%s: %v", c.file, err)
		}
		if c.body, err = os.ReadFile(filepath.Join(dir, c.file)); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(c.file, ".html.gz") {
			zr, err := gzip.NewReader(bytes.NewReader(c.body))
			if err != nil {
				t.Fatal(err)
			}
			if c.body, err = io.ReadAll(zr); err != nil {
				t.Fatal(err)
			}
		}
		out = append(out, c)
	}
	return out
}

// bulkPages calls visit with every page of the packed archives and its row of expected values.
func bulkPages(t *testing.T, dir string, visit func(url string, body []byte, want map[string]string)) {
	t.Helper()
	archives, err := filepath.Glob(filepath.Join(dir, "politifact", "bulk", "pf-*.tar.xz"))
	if err != nil || len(archives) == 0 {
		t.Fatalf("no archives in %s: %v", dir, err)
	}
	for _, archive := range archives {
		expected, err := os.ReadFile(strings.TrimSuffix(archive, ".tar.xz") + ".expected.tsv")
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimRight(string(expected), "\n"), "\n")
		columns := strings.Split(lines[0], "\t")
		want := map[string]map[string]string{}
		for _, line := range lines[1:] {
			row := map[string]string{}
			for i, v := range strings.Split(line, "\t") {
				row[columns[i]] = v
			}
			want[row["page"]] = row
		}
		f, err := os.Open(archive)
		if err != nil {
			t.Fatal(err)
		}
		x, err := xz.NewReader(f)
		if err != nil {
			t.Fatal(err)
		}
		for tr := tar.NewReader(x); ; {
			h, err := tr.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", archive, err)
			}
			if h.Typeflag != tar.TypeReg {
				continue
			}
			body, err := io.ReadAll(tr)
			if err != nil {
				t.Fatalf("%s: %v", archive, err)
			}
			name := strings.TrimPrefix(h.Name, "./")
			row, ok := want[name]
			if !ok {
				t.Errorf("%s holds %s, which has no expected values", archive, name)
				continue
			}
			delete(want, name)
			visit(politifactBase+"/"+strings.TrimSuffix(name, ".html")+"/", body, row)
		}
		for name := range want {
			t.Errorf("%s does not hold %s", archive, name)
		}
		f.Close()
	}
}

// A tally counts how many pages give the expected value of each field, and keeps the ones that do not.
type tally struct {
	right, total map[string]int
	short        []string
}

func (y *tally) check(field, url, got, want string) {
	y.total[field]++
	if got == want {
		y.right[field]++
		return
	}
	y.short = append(y.short, fmt.Sprintf("%s of %s\n    got  %q\n    want %q", field, url, got, want))
}

func realPage(t *testing.T, url string, body []byte) *fetch.Page {
	t.Helper()
	p, err := fetch.NewPage(url, http.Header{"Content-Type": {"text/html; charset=utf-8"}}, body, time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC))
	if err != nil {
		t.Fatalf("page %s: %v", url, err)
	}
	return p
}

func TestRealPolitiFactPages(t *testing.T) {
	dir := realFolder(t)
	y := &tally{right: map[string]int{}, total: map[string]int{}}
	truth, flips := 0, 0
	var tests []string
	ids := map[string]string{}

	parse := func(url string, body []byte, alt string) (corpus.Claim, bool) {
		claims, err := politifact.Parse(realPage(t, url, body))
		if flip := strings.Contains(alt, "fl"); flip {
			flips++
			var ex *corpus.ExcludedError
			if !errors.As(err, &ex) || ex.Reason != "flip_o_meter" {
				t.Errorf("Parse(%s) = %v, %v, want the exclusion flip_o_meter", url, claims, err)
			}
			return corpus.Claim{}, false
		}
		truth++
		if err != nil || len(claims) != 1 {
			t.Errorf("Parse(%s) = %d claims, %v", url, len(claims), err)
			return corpus.Claim{}, false
		}
		c := claims[0]
		if corpus.HasFlag(c.Flags, corpus.FlagSiteTest) {
			tests = append(tests, url)
		}
		if other, ok := ids[c.ID]; ok {
			t.Errorf("%s and %s share the id %s", other, url, c.ID)
		}
		ids[c.ID] = url
		if c.ReviewURL != url || !politifact.Recognise("", url) {
			t.Errorf("review address %s of %s, recognised %v", c.ReviewURL, url, politifact.Recognise("", url))
		}
		if slug, _ := politifactPath(url); c.SpeakerSlug != slug || c.Verdict6 == "" || c.Status != corpus.StatusSource {
			t.Errorf("%s: slug %s, verdict %q, status %q", url, c.SpeakerSlug, c.Verdict6, c.Status)
		}
		return c, true
	}

	for _, cap := range captures(t, dir, "politifact-claim") {
		alt, _ := cap.str("rating_alt")
		c, ok := parse(cap.url, cap.body, alt)
		if !ok {
			continue
		}
		label, _ := cap.str("rating")
		if alt == "" { // the old markup prints the label itself
			alt = label
		}
		y.check("rating", cap.url, c.RatingRaw+" "+c.Rating, alt+" "+corpus.Slug(label))
		for field, got := range map[string]string{
			"claim": c.Text, "speaker": c.Speaker, "stated_date": c.StatedDate, "medium": c.Medium, "date": c.ReviewDate, "title": c.Title,
		} {
			want, _ := cap.str(field) // a page without medium or review date has no entry for it
			y.check(field, cap.url, got, want)
		}
		if _, all := cap.want["authors"]; !all {
			first, _ := cap.str("author")
			y.check("authors", cap.url, strings.Join(c.Authors[:min(1, len(c.Authors))], ""), first)
		}
		for field, got := range map[string][]string{"authors": c.Authors, "tags": c.Tags} {
			if raw, ok := cap.want[field]; ok {
				var want []string
				if err := json.Unmarshal(raw, &want); err != nil {
					t.Fatal(err)
				}
				y.check(field, cap.url, strings.Join(got, "; "), strings.Join(want, "; "))
			}
		}
	}
	bulkPages(t, dir, func(url string, body []byte, want map[string]string) {
		c, ok := parse(url, body, want["rating_alt"])
		if !ok {
			return
		}
		y.check("rating", url, c.RatingRaw+" "+c.Rating, want["rating_alt"]+" "+corpus.Slug(want["rating"]))
		for field, got := range map[string]string{
			"claim": c.Text, "speaker": c.Speaker, "stated_date": c.StatedDate, "medium": c.Medium, "date": c.ReviewDate, "title": c.Title,
			"authors": strings.Join(c.Authors, "; "),
		} {
			y.check(field, url, got, want[field])
		}
	})

	if truth != 1008 || flips != 9 {
		t.Errorf("parsed %d truth-rated pages and %d flip-o-meter pages, want 1008 and 9", truth, flips)
	}
	if len(tests) != 1 || !strings.Contains(strings.Join(tests, " "), "yes-really-test") {
		t.Errorf("pages flagged as the site's own test = %v, want yes-really-test alone", tests)
	}
	var fields []string
	for f := range y.total {
		fields = append(fields, f)
	}
	sort.Strings(fields)
	for _, f := range fields {
		share := float64(y.right[f]) / float64(y.total[f])
		t.Logf("%-12s %5d of %5d  %6.2f %%", f, y.right[f], y.total[f], 100*share)
		if share < 0.995 || f == "rating" && share < 1 {
			t.Errorf("%s falls below the bar: %d of %d", f, y.right[f], y.total[f])
		}
	}
	sort.Strings(y.short)
	for _, s := range y.short {
		t.Logf("falls short: %s", s)
	}
	t.Logf("%d truth-rated pages gave %d claims", truth, len(ids))
}

// folderFetcher serves bodies by address, so that Discover runs through colly without a network.
type folderFetcher map[string][]byte

func (f folderFetcher) HTTP() *http.Client { return &http.Client{Transport: f} }

func (f folderFetcher) RoundTrip(r *http.Request) (*http.Response, error) {
	body, ok := f[r.URL.String()]
	status := http.StatusOK
	if !ok {
		status = http.StatusNotFound
	}
	return &http.Response{
		StatusCode: status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header:        http.Header{"Content-Type": {"text/html; charset=utf-8"}},
		Body:          io.NopCloser(bytes.NewReader(body)),
		ContentLength: int64(len(body)),
	}, nil
}

func TestRealPolitiFactListings(t *testing.T) {
	dir := realFolder(t)
	for _, cap := range captures(t, dir, "politifact-list", "politifact-list-item", "politifact-home") {
		t.Run(cap.file, func(t *testing.T) {
			url := corpus.CanonicalURL(cap.url)
			if url == "" {
				url = politifactBase + "/"
			}
			got, err := politifact.Discover(t.Context(), folderFetcher{url: cap.body}, url)
			if err != nil {
				t.Fatal(err)
			}
			first, _ := cap.str("first_href")
			if first == "" {
				first, _ = cap.str("href")
			}
			if len(got.Refs) == 0 || got.Refs[0].URL != politifactBase+first {
				t.Fatalf("first of %d refs = %v, want %s", len(got.Refs), got.Refs, first)
			}
			if n, ok := cap.str("items"); ok && n != fmt.Sprint(len(got.Refs)) {
				t.Errorf("%d refs, want %s", len(got.Refs), n)
			}
			if last, ok := cap.str("last_href"); ok && got.Refs[len(got.Refs)-1].URL != politifactBase+last {
				t.Errorf("last ref = %s, want %s", got.Refs[len(got.Refs)-1].URL, last)
			}
			next, ok := cap.str("next")
			if ok {
				next = corpus.ResolveURL(url, next)
			}
			if got.Next != next {
				t.Errorf("next = %q, want %q", got.Next, next)
			}

			doc, _, err := listingPage(t.Context(), folderFetcher{url: cap.body}, url)
			if err != nil {
				t.Fatal(err)
			}
			ratings := map[string]int{}
			var cards []politifactStatement
			for _, node := range doc.Find("article.m-statement").EachIter() {
				s := politifactCard(node)
				if node.Find(".m-statement__meter").Length() == 0 {
					continue
				}
				cards = append(cards, s)
				if r, ok := corpus.PolitiFactRatings.Map(s.rating); ok {
					ratings[r.Slug]++
				} else {
					t.Errorf("rating %q of %s is unmapped", s.rating, s.href)
				}
			}
			check := func(key, got string) {
				if want, ok := cap.str(key); ok && got != want {
					t.Errorf("%s = %q, want %q", key, got, want)
				}
			}
			stated, medium := politifactContext(cards[0].context)
			check("first_claim", cards[0].claim)
			check("first_speaker", cards[0].speaker)
			check("first_stated_date", stated)
			check("stated_date", stated)
			check("medium", medium)
			check("last_claim", cards[len(cards)-1].claim)
			check("statements_with_meter", fmt.Sprint(len(cards)))
			if label, ok := cap.str("first_rating"); ok {
				if r, _ := corpus.PolitiFactRatings.Map(cards[0].rating); r.Slug != corpus.Slug(label) {
					t.Errorf("first rating = %s, want %s", r.Slug, label)
				}
			}
			if raw, ok := cap.want["ratings"]; ok {
				labels, want := map[string]int{}, map[string]int{}
				if err := json.Unmarshal(raw, &labels); err != nil {
					t.Fatal(err)
				}
				for l, n := range labels {
					want[corpus.Slug(l)] = n
				}
				if diff := cmp.Diff(want, ratings); diff != "" {
					t.Errorf("ratings (-want +got):\n%s", diff)
				}
			}
		})
	}
}
