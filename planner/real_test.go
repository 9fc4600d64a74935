package planner

import (
	"errors"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay/corpus"
	"assay/index"
)

// capture opens a captured file; the test is skipped where there are none.
func capture(t testing.TB, name string) io.Reader {
	t.Helper()
	dir := os.Getenv("ASSAY_REAL")
	if dir == "" {
		t.Skip("skipped: ASSAY_REAL is not set")
	}
	f, err := os.Open(filepath.Join(dir, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// tally is what a dump holds.
type tally struct {
	Posts, Comments, More, MoreIDs, Other, Broken int
	First, Last                                   string
}

func count(t testing.TB, entries iter.Seq2[Entry, error]) (n tally, docs []corpus.Document) {
	t.Helper()
	for e, err := range entries {
		var broken *RecordError
		switch {
		case errors.As(err, &broken):
			n.Broken++
			t.Log(err)
			continue
		case err != nil:
			t.Fatal(err)
		case e.Skipped == "more":
			n.More++
			n.MoreIDs += e.More
			continue
		case e.Skipped != "":
			n.Other++
			continue
		case e.Document.Kind == corpus.KindRedditPost:
			n.Posts++
		case e.Document.Kind == corpus.KindRedditComment:
			n.Comments++
		}
		if n.First == "" {
			n.First = e.Document.ID
		}
		n.Last = e.Document.ID
		docs = append(docs, e.Document)
	}
	return n, docs
}

// Every capture of posts and comments gives the numbers that its index gives.
func TestRealDumps(t *testing.T) {
	for name, want := range map[string]tally{
		"info-posts-comments-subreddits.json":         {Posts: 1, Comments: 1, Other: 1, Last: "reddit:t1_g05v931"},
		"listing-27-posts-2018.json":                  {Posts: 27, First: "reddit:t3_7ep14i", Last: "reddit:t3_7yqok1"},
		"politics-top-posts-2023-2024.json":           {Posts: 500, First: "reddit:t3_1d4emcb"},
		"post-with-comments.json":                     {Posts: 1, Comments: 2, First: "reddit:t3_testpost"},
		"praw-askreddit-thread-removed.json":          {Posts: 1, Comments: 200, More: 192, MoreIDs: 2859, First: "reddit:t3_6wmniq"},
		"praw-continue-thread-branch.json":            {Posts: 1, Comments: 3, First: "reddit:t3_3hahrw"},
		"praw-crosspost.json":                         {Posts: 1, First: "reddit:t3_6vx8n0"},
		"praw-deleted-comment-thread.json":            {Posts: 1, First: "reddit:t3_52o2fl"},
		"praw-empty-listing.json":                     {},
		"praw-gallery.json":                           {Posts: 1, First: "reddit:t3_huw6vs"},
		"praw-info-empty.json":                        {},
		"praw-info-of-comment-missing-in-thread.json": {Comments: 1, First: "reddit:t1_dma3mi5"},
		"praw-quarantined-listing.json":               {Posts: 101, First: "reddit:t3_2qbhs9"},
		"praw-redditor-comments-new.json":             {Comments: 100, First: "reddit:t1_d0iaye9", Last: "reddit:t1_cu2fcv5"},
		"praw-submission-comments.json":               {Posts: 1, Comments: 2, First: "reddit:t3_2gmzqe"},
		"praw-subreddit-search.json":                  {Posts: 6, First: "reddit:t3_3gpbiu", Last: "reddit:t3_4at068"},
		"praw-thread-476-comments-more.json.gz":       {Posts: 1, Comments: 476, More: 18, MoreIDs: 24, First: "reddit:t3_3hahrw"},
		"pushshift-api-comments-science.json":         {Comments: 100, First: "reddit:t1_haflpmt", Last: "reddit:t1_hafi5h1"},
		"pushshift-api-submissions.json":              {Posts: 10, First: "reddit:t3_ztksvq", Last: "reddit:t3_ztkj4p"},
		"pushshift-comments.ndjson":                   {Comments: 27, First: "reddit:t1_kod0bkd", Last: "reddit:t1_c63fp23"},
		"pushshift-submissions.ndjson":                {Posts: 31, First: "reddit:t3_1afwvv8", Last: "reddit:t3_abdn5a"},
		"search-posts.json":                           {Posts: 2, First: "reddit:t3_hybow9", Last: "reddit:t3_hmwhd7"},
		"subreddit-posts.json":                        {Posts: 2, First: "reddit:t3_agi5zf", Last: "reddit:t3_hyhquk"},
	} {
		t.Run(name, func(t *testing.T) {
			got, docs := count(t, ReadDump(name, capture(t, "reddit/"+name)))
			if want.First == "" {
				got.First = ""
			}
			if want.Last == "" {
				got.Last = ""
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-index +read):\n%s", diff)
			}
			for _, d := range docs {
				checkDocument(t, d)
			}
		})
	}
}

// checkDocument holds for every document that comes from Reddit.
func checkDocument(t *testing.T, d corpus.Document) {
	t.Helper()
	if d.URL == "" || d.URL != corpus.CanonicalURL(d.URL) || !strings.HasPrefix(d.URL, "https://www.reddit.com/") {
		t.Errorf("%s: address %q is not canonical", d.ID, d.URL)
	}
	if name, ok := corpus.RedditFullname(d.URL); !ok || corpus.RedditID(name) != d.ID && strings.Contains(d.URL, "/r/") {
		t.Errorf("%s: address %q names %q", d.ID, d.URL, name)
	}
	if d.PublishedAt == "" || d.SHA256 != d.Seal().SHA256 || !strings.HasPrefix(d.Source, "reddit.com") {
		t.Errorf("%s: published %q, source %q, sum %q", d.ID, d.PublishedAt, d.Source, d.SHA256)
	}
	if d.BodyStatus == "" || placeholder(d.Text) != "" && d.Text != "" {
		t.Errorf("%s: status %q, text %.60q", d.ID, d.BodyStatus, d.Text)
	}
}

// pool reads the sample of RAGuard's claims with their documents.
func pool(t testing.TB) (pairs []Pair) {
	t.Helper()
	for p, err := range ReadPairs("sample-20-claims.json", capture(t, "raguard/sample-20-claims.json")) {
		if err != nil {
			t.Fatal(err)
		}
		pairs = append(pairs, p)
	}
	return pairs
}

func TestRealPairs(t *testing.T) {
	type numbers struct {
		Claims, Pairs, Documents int
		Labels, Usable           map[corpus.StanceLabel]int
		UsablePairs              int
		Reasons                  map[string]int
		Ids                      map[string]int
	}
	got := numbers{Labels: map[corpus.StanceLabel]int{}, Usable: map[corpus.StanceLabel]int{}, Reasons: map[string]int{}, Ids: map[string]int{}}
	claims, documents := map[string]bool{}, map[string]bool{}
	for _, p := range pool(t) {
		claims[p.RowKey()], documents[p.Document.ID] = true, true
		got.Pairs++
		got.Labels[p.Label]++
		kind, _, _ := strings.Cut(p.Document.ID, ":")
		got.Ids[kind]++
		if ok, reason := Usable(p.Document); ok {
			got.UsablePairs++
			got.Usable[p.Label]++
		} else {
			got.Reasons[reason]++
		}
		if p.ClaimText == "" || p.Verdict == "" || p.Rank == 0 || len(p.Notes) != 0 {
			t.Errorf("row %d is not complete: %+v", p.Row, p)
		}
	}
	got.Claims, got.Documents = len(claims), len(documents)
	want := numbers{
		Claims: 20, Pairs: 111, Documents: 110, // one post stands under two claims
		Labels:      map[corpus.StanceLabel]int{corpus.Unrelated: 91, corpus.Supporting: 14, corpus.Misleading: 6},
		UsablePairs: 74,
		Usable:      map[corpus.StanceLabel]int{corpus.Unrelated: 62, corpus.Supporting: 6, corpus.Misleading: 6},
		Reasons:     map[string]int{ReasonLinkPost: 33, ReasonDeleted: 3, ReasonShort: 1},
		Ids:         map[string]int{"reddit": 79, "raguard": 32},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Search over the pool, each claim against the documents of all: a number to watch.
func TestRealRecall(t *testing.T) {
	pairs := pool(t)
	x, err := index.OpenMemory()
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	var claims []corpus.Claim
	own := map[string][]string{}
	err = x.CatchUp(t.Context(), func(yield func(index.Sequenced, error) bool) {
		for i, p := range pairs {
			if own[p.RowKey()] == nil {
				claims = append(claims, corpus.Claim{ID: p.RowKey(), Text: p.ClaimText})
			}
			own[p.RowKey()] = append(own[p.RowKey()], p.Document.ID)
			if !yield(index.Sequenced{Seq: uint64(i + 1), Doc: p.Document}, nil) {
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, variants := range []int{0, 1, 2, 3, 4, 5} {
		var sum float64
		for _, c := range claims {
			trace, err := Plan(t.Context(), Env{Model: builtinModel{}, Index: x}, Settings{Variants: variants}, c)
			if err != nil {
				t.Fatal(err)
			}
			r, ok := RecallAt(trace, own[c.ID], 10)
			if !ok {
				t.Errorf("%s has no documents", c.ID)
			}
			sum += r
		}
		recall := sum / float64(len(claims))
		t.Logf("%d variants: recall@10 %.3f over %d claims and %d documents", variants, recall, len(claims), x.Len())
		if variants == 3 && recall < 0.4 {
			t.Errorf("recall@10 with 3 variants fell to %.3f", recall)
		}
	}
}
