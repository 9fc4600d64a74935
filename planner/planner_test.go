package planner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"

	"assay/corpus"
	"assay/index"
	"assay/kv"
	"assay/llm"

	"github.com/google/go-cmp/cmp"
)

func TestBackends(t *testing.T) {
	checkListed(t, "backend", len(Backends), func(i int) (string, string, string) {
		return Backends[i].Name, Backends[i].Proven, Backends[i].Reference
	})
	if _, err := BackendNamed("elsewhere"); err == nil || !strings.Contains(err.Error(), "known are arctic_shift, ") {
		t.Errorf("BackendNamed = %v", err)
	}
}

func filled(t *testing.T, docs ...corpus.Document) *index.Index {
	t.Helper()
	x, err := index.OpenMemory()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	})
	err = x.CatchUp(t.Context(), func(yield func(index.Sequenced, error) bool) {
		for i, d := range docs {
			if !yield(index.Sequenced{Seq: uint64(i + 1), Doc: d}, nil) {
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func redditPost(id, title, text string) corpus.Document {
	return corpus.Document{ID: "reddit:t3_" + id, Kind: corpus.KindRedditPost, Title: title, Text: text, URL: "https://www.reddit.com/r/harborville/comments/" + id + "/"}
}

var tollDocs = []corpus.Document{
	redditPost("aa1", "Harbor tolls", "The board raised the harbor tolls."),
	redditPost("aa2", "Ferry prices", "Ferry tickets are dearer since the harbor tolls rose."),
	redditPost("aa3", "Herring", "Nothing but herring."),
	{ID: "raguard:7", Kind: corpus.KindRedditPost, Title: "Tolls of the harbor board", Text: "[Link Post]"},
	{ID: "reddit:t1_cc1", Kind: corpus.KindRedditComment, Text: "harbor tolls harbor tolls", URL: "https://www.reddit.com/r/harborville/comments/aa1/_/cc1/"},
	{ID: corpus.DocumentID("https://news.example.org/tolls"), Kind: corpus.KindPage, Title: "Harbor tolls", Text: "Harbor tolls.", URL: "https://news.example.org/tolls"},
}

func answered(variants ...string) llm.Reply {
	raw, err := json.Marshal(keywordReply{variants})
	if err != nil {
		panic(err)
	}
	return llm.Reply{Raw: string(raw), JSON: raw, Outcome: llm.OutcomeAnswered, Call: "call-1"}
}

func TestPlan(t *testing.T) {
	x := filled(t, tollDocs...)
	model := &canned{reply: answered("harbor tolls", "ferry prices tolls", "harbor board")}
	temperature := 0.1
	claim := corpus.Claim{ID: "c_1", Text: "The harbor board\nraised tolls.", Speaker: "Ada Quill", StatedDate: "2019-03-18"}
	s := Settings{Variants: 3, Keep: 2, Endpoint: "main", Model: "m", Temperature: &temperature, MaxTokens: 300}
	got, err := Plan(t.Context(), Env{Model: model, Index: x}, s, claim)
	if err != nil {
		t.Fatal(err)
	}
	hits := func(ranks ...int) (out []corpus.Hit) {
		for variant, rank := range ranks {
			out = append(out, corpus.Hit{Variant: variant, Rank: rank, Source: "local"})
		}
		return out
	}
	want := corpus.Trace{
		ClaimID: "c_1", Policy: "raguard", Call: "call-1",
		Queries: []string{"harbor tolls", "ferry prices tolls", "harbor board"},
		Candidates: []corpus.Candidate{
			{DocumentID: "reddit:t3_aa1", URL: "https://www.reddit.com/r/harborville/comments/aa1/", Hits: hits(1, 2, 2), Score: 1./61 + 2./62, Kept: true},
			{DocumentID: "raguard:7", Hits: hits(2, 3, 1), Score: 1./62 + 1./63 + 1./61, Kept: true},
			{DocumentID: "reddit:t3_aa2", URL: "https://www.reddit.com/r/harborville/comments/aa2/", Hits: hits(3, 1, 3), Score: 2./63 + 1./61, Reason: DropBelowCut},
		},
	}
	near := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-12 })
	if diff := cmp.Diff(want, got, near); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	ask := model.asked[0]
	wantVars := KeywordVars{Claim: "The harbor board raised tolls.", Speaker: "Ada Quill", Date: "2019-03-18", Variants: 3, MinWords: 2, MaxWords: 6}
	if diff := cmp.Diff(any(wantVars), ask.Vars); diff != "" || len(model.asked) != 1 || ask.Role != "keywords" || ask.Endpoint != "main" || *ask.Temperature != 0.1 {
		t.Errorf("asked %d times, %+v (-want +got):\n%s", len(model.asked), ask, diff)
	}
}

func TestPlanWithoutModel(t *testing.T) {
	x := filled(t, tollDocs...)
	got, err := Plan(t.Context(), Env{Index: x}, Settings{}, corpus.Claim{ID: "c_1", Text: "The  harbor board raised tolls."})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"The harbor board raised tolls."}, got.Queries); diff != "" || got.Call != "" || len(got.Kept()) != 3 {
		t.Errorf("call %q, %d kept: %s", got.Call, len(got.Kept()), diff)
	}
	none, err := Plan(t.Context(), Env{Index: x}, Settings{}, corpus.Claim{ID: "c_2", Text: "Zeppelins."})
	if err != nil || none.Candidates == nil || len(none.Candidates) != 0 {
		t.Errorf("nothing to find: %+v, %v", none, err)
	}
	comments, err := Plan(t.Context(), Env{Index: x}, Settings{Kinds: []string{corpus.KindRedditComment}}, corpus.Claim{Text: "harbor tolls"})
	if err != nil || len(comments.Kept()) != 1 || comments.Kept()[0].DocumentID != "reddit:t1_cc1" {
		t.Errorf("comments: %+v, %v", comments, err)
	}
}

// What is no answer fails the item with the outcome as reason; nothing is searched in its place.
func TestPlanFails(t *testing.T) {
	x := filled(t, tollDocs...)
	x.Answered = func(context.Context, string, [32]byte) { t.Error("the index was asked") }
	claim := corpus.Claim{ID: "c_1", Text: "The harbor board raised tolls."}
	for _, outcome := range []llm.Outcome{llm.OutcomeRefused, llm.OutcomeFiltered, llm.OutcomeTruncated, llm.OutcomeParseFailed} {
		_, err := Plan(t.Context(), Env{Model: &canned{reply: llm.Reply{Outcome: outcome, Call: "call-9"}}, Index: x}, Settings{Variants: 3}, claim)
		var e *OutcomeError
		if !errors.As(err, &e) || e.Outcome != string(outcome) || e.FailureReason() != string(outcome) || e.FailureClass() != "permanent" || !strings.Contains(err.Error(), string(outcome)) {
			t.Errorf("%s: %v", outcome, err)
		}
	}
	var e *OutcomeError
	if _, err := Plan(t.Context(), Env{Model: &canned{reply: answered("hoax", "")}, Index: x}, Settings{Variants: 3}, claim); !errors.As(err, &e) || e.Outcome != "no_variants" {
		t.Errorf("only verdict words: %v", err)
	}
	spent := fmt.Errorf("ask: %w", llm.ErrBudget)
	if _, err := Plan(t.Context(), Env{Model: &canned{err: spent}, Index: x}, Settings{Variants: 3}, claim); !errors.Is(err, llm.ErrBudget) {
		t.Errorf("no money: %v", err)
	}
	for name, c := range map[string]struct {
		s    Settings
		env  Env
		want string
	}{
		"policy":   {Settings{Policy: "other"}, Env{Index: x}, `policy "other" is unknown`},
		"backend":  {Settings{Backend: "web"}, Env{Index: x}, `search engine "web" is unknown`},
		"variants": {Settings{Variants: 6}, Env{Index: x}, "6 variants"},
		"negative": {Settings{Keep: -1}, Env{Index: x}, "cannot be negative"},
		"no model": {Settings{Variants: 3}, Env{Index: x}, "no model"},
		"no index": {Settings{}, Env{}, "no index"},
	} {
		if _, err := Plan(t.Context(), c.env, c.s, claim); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// The whole way through the real client and its builtin model.
func TestPlanByBuiltin(t *testing.T) {
	store, err := kv.OpenMemory()
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	client, err := llm.New(llm.Options{Store: store, Endpoints: map[string]llm.Endpoint{"main": {Provider: llm.ProviderBuiltin}}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	x := filled(t, tollDocs...)
	var traces []corpus.Trace
	for range 2 {
		trace, err := Plan(t.Context(), Env{Model: client, Index: x}, Settings{Variants: 3, Endpoint: "main", Model: "builtin"}, corpus.Claim{ID: "c_1", Text: "The harbor board of Harborville raised ferry tolls."})
		if err != nil {
			t.Fatal(err)
		}
		traces = append(traces, trace)
	}
	if diff := cmp.Diff(traces[0], traces[1]); diff != "" || len(traces[0].Kept()) != 3 || traces[0].Call == "" {
		t.Errorf("%+v\n%s", traces[0], diff)
	}
}

func TestFusion(t *testing.T) {
	hit := func(variant, rank int) corpus.Hit { return corpus.Hit{Variant: variant, Rank: rank, Source: "local"} }
	f := fusion{k: 60, byID: map[string]int{}}
	f.add("b", "", "", hit(0, 1))
	f.add("page", "", DropWikiPage, hit(0, 2))
	f.add("a", "", "", hit(0, 3))
	f.add("b", "", "", hit(0, 4)) // a second address of the same post
	f.add("c", "", "", hit(1, 1))
	f.add("a", "", "", hit(1, 3))
	f.add("page", "", DropWikiPage, hit(1, 4))
	f.add("d", "", "", hit(1, 5))
	got := f.ranked(3)
	want := []corpus.Candidate{
		{DocumentID: "a", Hits: []corpus.Hit{hit(0, 3), hit(1, 3)}, Score: 2. / 63, Kept: true},
		{DocumentID: "b", Hits: []corpus.Hit{hit(0, 1), hit(0, 4)}, Score: 1. / 61, Kept: true},
		{DocumentID: "c", Hits: []corpus.Hit{hit(1, 1)}, Score: 1. / 61, Kept: true},
		{DocumentID: "d", Hits: []corpus.Hit{hit(1, 5)}, Score: 1. / 65, Reason: DropBelowCut},
		{DocumentID: "page", Hits: []corpus.Hit{hit(0, 2), hit(1, 4)}, Score: 1./62 + 1./64, Reason: DropWikiPage},
	}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-12 })); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestGateSpendsNoPlaceOnUnusableDocuments(t *testing.T) {
	docs := map[string]corpus.Document{
		"full": {Title: "t", Text: "a body with more than thirty letters in it, enough to judge", BodyStatus: corpus.BodyFull},
		"link": {Title: "t", BodyStatus: corpus.BodyMissing, Outbound: "https://news.example/a"},
		"gone": {Title: "t", Text: "[removed]", BodyStatus: corpus.BodyRemoved},
	}
	for _, c := range []struct {
		gate Gate
		want []string // kept, of two places
	}{
		{GateOpen, []string{"gone", "link"}},
		{GateBody, []string{"full", "unknown"}},
		{GateBodyOrLink, []string{"link", "full"}},
	} {
		f := fusion{k: 60, byID: map[string]int{}}
		for rank, id := range []string{"gone", "link", "full", "unknown"} {
			f.add(id, "", "", corpus.Hit{Rank: rank + 1})
		}
		if err := f.gate(c.gate, func(id string) (corpus.Document, bool, error) { d, ok := docs[id]; return d, ok, nil }); err != nil {
			t.Fatal(err)
		}
		var kept []string
		for _, cand := range (corpus.Trace{Candidates: f.ranked(2)}).Kept() {
			kept = append(kept, cand.DocumentID)
		}
		if diff := cmp.Diff(c.want, kept); diff != "" {
			t.Errorf("gate %q keeps (-want +got):\n%s", c.gate, diff)
		}
	}
	f := fusion{k: 60, byID: map[string]int{}}
	f.add("x", "", "", corpus.Hit{Rank: 1})
	if err := f.gate(GateBody, func(string) (corpus.Document, bool, error) { return corpus.Document{}, false, io.ErrUnexpectedEOF }); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a store that cannot be read: %v", err)
	}
}

func TestCanonical(t *testing.T) {
	reddit := []string{"reddit.com"}
	for _, c := range []struct {
		name        string
		r           Result
		id, address string
		reason      string
	}{
		{"a document of ours", Result{DocumentID: "raguard:7"}, "raguard:7", "", ""},
		{"post", Result{URL: "https://www.reddit.com/r/x/comments/aa1/title/?utm_source=share"}, "reddit:t3_aa1", "https://www.reddit.com/r/x/comments/aa1/title/", ""},
		{"old", Result{URL: "http://old.reddit.com/r/x/comments/AA1/"}, "reddit:t3_aa1", "https://www.reddit.com/r/x/comments/aa1/", ""},
		{"comment leads to its post", Result{URL: "https://www.reddit.com/r/x/comments/aa1/title/cc1/"}, "reddit:t3_aa1", "https://www.reddit.com/r/x/comments/aa1/title/", ""},
		{"post on a personal page", Result{URL: "https://www.reddit.com/user/invented_author/comments/aa1/t/"}, "reddit:t3_aa1", "https://www.reddit.com/comments/aa1/t/", ""},
		{"gallery", Result{URL: "https://www.reddit.com/gallery/aa1"}, "reddit:t3_aa1", "https://www.reddit.com/gallery/aa1", ""},
		{"short", Result{URL: "https://redd.it/aa1"}, "reddit:t3_aa1", "https://redd.it/aa1", ""},
		{"user", Result{URL: "https://www.reddit.com/user/invented_author/"}, "", "", DropUserPage},
		{"user's comments", Result{URL: "https://www.reddit.com/u/invented_author/comments/"}, "", "", DropUserPage},
		{"subreddit", Result{URL: "https://www.reddit.com/r/x/"}, "", "https://www.reddit.com/r/x/", DropSubredditPage},
		{"subreddit, sorted", Result{URL: "https://www.reddit.com/r/x/top/?t=year"}, "", "https://www.reddit.com/r/x/top/?t=year", DropSubredditPage},
		{"wiki", Result{URL: "https://www.reddit.com/r/x/wiki/index/tolls"}, "", "https://www.reddit.com/r/x/wiki/index/tolls", DropWikiPage},
		{"wiki of the site", Result{URL: "https://www.reddit.com/wiki/faq"}, "", "https://www.reddit.com/wiki/faq", DropWikiPage},
		{"front page", Result{URL: "https://www.reddit.com/"}, "", "https://www.reddit.com/", DropNoPost},
		{"elsewhere", Result{URL: "https://news.example.org/tolls"}, "", "https://news.example.org/tolls", DropElsewhere},
		{"a host that only looks like it", Result{URL: "https://reddit.com.example.org/r/x/comments/aa1/"}, "", "https://reddit.com.example.org/r/x/comments/aa1/", DropElsewhere},
		{"picture host", Result{URL: "https://i.redd.it/aa1.jpeg"}, "", "https://i.redd.it/aa1.jpeg", DropElsewhere},
		{"no address", Result{URL: "see below"}, "", "see below", DropBadAddress},
		{"a password", Result{URL: "https://ida:hush@www.reddit.com/r/x/comments/aa1/"}, "", "https://***@www.reddit.com/r/x/comments/aa1/", DropUserInfo},
		{"a password elsewhere", Result{URL: "https:\\\\ida:hush@news.example.org?x"}, "", "https://***@news.example.org/?x", DropUserInfo},
		{"a token", Result{URL: "http://hush@news.example.org/a@b"}, "", "http://***@news.example.org/a@b", DropUserInfo},
		{"a password in no address", Result{URL: "ftp//ida:hush@files.example.org"}, "", "***@files.example.org", DropBadAddress},
		{"a sign that is none", Result{URL: "https://news.example.org/@ida"}, "", "https://news.example.org/@ida", DropElsewhere},
	} {
		id, address, reason := canonical(c.r, reddit)
		if c.id != "" && id != c.id || address != c.address || reason != c.reason {
			t.Errorf("%s: canonical = %q, %q, %q, want %q, %q, %q", c.name, id, address, reason, c.id, c.address, c.reason)
		}
	}
	if id, _, reason := canonical(Result{URL: "https://news.example.org/tolls"}, nil); reason != "" || id != corpus.DocumentID("https://news.example.org/tolls") {
		t.Errorf("without domains: %q, %q", id, reason)
	}
}

func TestRecallAt(t *testing.T) {
	trace := corpus.Trace{Candidates: []corpus.Candidate{{DocumentID: "a", Kept: true}, {DocumentID: "b", Kept: true}, {DocumentID: "c", Kept: true}, {DocumentID: "d", Reason: dropUnusable + ReasonLinkPost}, {DocumentID: "page", Reason: DropWikiPage}}}
	for _, c := range []struct {
		own  []string
		k    int
		want float64
		ok   bool
	}{
		{[]string{"a", "c"}, 10, 1, true},
		{[]string{"a", "c"}, 2, 0.5, true},
		{[]string{"a", "a", "x"}, 1, 0.5, true},
		{[]string{"d"}, 10, 1, true}, // found, whatever its body is worth
		{[]string{"d"}, 3, 0, true},
		{[]string{"page"}, 10, 0, true}, // no document
		{[]string{"a"}, 0, 0, true},
		{nil, 10, 0, false},
	} {
		if got, ok := RecallAt(trace, c.own, c.k); got != c.want || ok != c.ok {
			t.Errorf("RecallAt(%v, %d) = %v, %v, want %v, %v", c.own, c.k, got, ok, c.want, c.ok)
		}
	}
}
