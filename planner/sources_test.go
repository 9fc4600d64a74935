package planner

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"assay/corpus"
	"assay/fetch"

	"github.com/google/go-cmp/cmp"
)

// playWiki plays an encyclopedia with invented articles: a title, a page of meanings, and a page to
// whose section another title redirects.
func playWiki(rw http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	articles := map[string]string{
		"11": `{"pageid": 11, "ns": 0, "title": "Marl", "canonicalurl": "https://en.wikipedia.org/wiki/Marl", "extract": "Marl is an earthy material, rich in lime, that farmers once spread on fields.", "revisions": [{"revid": 77, "timestamp": "2026-01-02T03:04:05Z"}]}`,
		"12": `{"pageid": 12, "ns": 0, "title": "Mars", "canonicalurl": "https://en.wikipedia.org/wiki/Mars", "extract": "Mars is a planet with two moons."}`,
		"13": `{"pageid": 13, "ns": 0, "title": "Mercury", "canonicalurl": "https://en.wikipedia.org/wiki/Mercury", "pageprops": {"disambiguation": ""}}`,
		"14": `{"pageid": 14, "ns": 0, "title": "Vaccination in Britain", "canonicalurl": "https://en.wikipedia.org/wiki/Vaccination_in_Britain", "extract": "It began in winter."}`,
	}
	titles := map[string]string{"Marl": "11", "Mercury": "13", "UK jab rollout": "14", "British jab rollout": "14"}
	switch {
	case q.Get("titles") != "":
		title := q.Get("titles")
		id, ok := titles[title]
		moves := ""
		if id == "14" {
			moves = fmt.Sprintf(`"redirects": [{"from": %q, "to": "Vaccination in Britain"}], `, title)
			if strings.HasPrefix(title, "UK") {
				moves = strings.Replace(moves, `"}]`, `", "tofragment": "Rollout"}]`, 1)
			}
		}
		page := articles[id]
		if !ok {
			page = fmt.Sprintf(`{"ns": 0, "title": %q, "missing": true}`, title)
		}
		reply(rw, 200, `{"batchcomplete": true, "query": {`+moves+`"pages": [`+page+`]}}`)
	case q.Get("list") == "search":
		reply(rw, 200, `{"batchcomplete": true, "query": {"searchinfo": {"totalhits": 0, "suggestion": "mars"}, "search": []}}`)
	case articles[q.Get("pageids")] != "":
		reply(rw, 200, `{"batchcomplete": true, "query": {"pages": [`+articles[q.Get("pageids")]+`]}}`)
	default:
		reply(rw, 200, `{"batchcomplete": true, "query": {"pages": [{"pageid": 99, "missing": true}]}}`)
	}
}

// The kind of HD-12: the title that was asked for is taken, a page of meanings never, and two titles of
// one article lead to one document, with the titles noted.
func TestHD12Wikipedia(t *testing.T) {
	o := newOutside(t, playWiki)
	env := o.engines(fetch.Live)
	kept := map[string]string{} // document => via
	for _, title := range []string{"Marl", "Mercury", "UK jab rollout", "British jab rollout", "Nowhere at all"} {
		trace, err := Plan(t.Context(), env, Settings{Backend: "wikipedia"}, corpus.Claim{ID: "c_1", Text: title})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range trace.Candidates {
			if c.Kept {
				kept[c.DocumentID] += "|" + c.Hits[0].Via
			} else if c.Reason != DropDisambiguation || title != "Mercury" {
				t.Errorf("%s: %+v", title, c)
			}
		}
	}
	want := map[string]string{"wikipedia:en:11": "|", "wikipedia:en:14": "|UK jab rollout#Rollout|British jab rollout"}
	if diff := cmp.Diff(want, kept); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
	d, err := wikipedia.Document(t.Context(), env, "wikipedia:en:11", nil)
	if err != nil || d.Title != "Marl" || d.Revision != "77" || d.Licence != "CC BY-SA 4.0" || d.PublishedAt != "2026-01-02T03:04:05Z" || d.BodyStatus != corpus.BodyFull || d.Source != "en.wikipedia.org" {
		t.Errorf("%+v, %v", d, err)
	}
	for id, want := range map[string]string{"wikipedia:en:13": DropDisambiguation, "wikipedia:en:99": ReasonGone} {
		_, err := wikipedia.Document(t.Context(), env, id, nil)
		var x *corpus.ExcludedError
		if !errors.As(err, &x) || x.Excluded() != want {
			t.Errorf("%s: %v", id, err)
		}
	}
	if _, err := wikipedia.Document(t.Context(), env, "wikipedia:e/n:13", nil); err == nil {
		t.Error("a language that is none")
	}
}

// What a list goes on with is sent back whole, a server that lags is waited for, and errors with a good
// status are failures.
func TestWikipediaReplies(t *testing.T) {
	hit := func(from, to int) string {
		var list []string
		for i := from; i < to; i++ {
			list = append(list, fmt.Sprintf(`{"ns": 0, "pageid": %d, "title": "P%d", "snippet": "a <span class=\"searchmatch\">toll</span>"}`, i, i))
		}
		return strings.Join(list, ",")
	}
	lags := 2
	o := newOutside(t, nil)
	o.serve = func(rw http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		switch {
		case q.Get("titles") == "readonly" || q.Get("titles") == "badvalue" || q.Get("titles") == "ratelimited":
			reply(rw, 200, `{"error": {"code": "`+q.Get("titles")+`", "info": "no"}}`)
		case q.Get("titles") != "":
			reply(rw, 200, `{"batchcomplete": "", "query": {"pages": {"-1": {"ns": 0, "title": "x", "missing": ""}}}}`)
		case q.Get("list") != "" && lags > 0:
			lags--
			reply(rw, 200, `{"error": {"code": "maxlag", "info": "Waiting for a host: 7 seconds lagged", "lag": 7}}`, "Retry-After", "5")
		case q.Get("sroffset") == "50" && q.Get("continue") == "-||":
			reply(rw, 200, `{"batchcomplete": true, "query": {"search": [`+hit(49, 70)+`]}}`)
		case q.Get("list") != "":
			reply(rw, 200, `{"batchcomplete": true, "continue": {"sroffset": 50, "continue": "-||"}, "query": {"search": [`+hit(1, 51)+`]}}`)
		default:
			var pages []string
			for _, id := range strings.Split(q.Get("pageids"), "|") {
				pages = append(pages, fmt.Sprintf(`{"pageid": %s, "ns": 0, "title": "P%s", "canonicalurl": "https://en.wikipedia.org/wiki/P%s"}`, id, id, id))
			}
			if q.Get("ppcontinue") == "" {
				reply(rw, 200, `{"continue": {"ppcontinue": "2", "continue": "||info"}, "query": {"pages": [`+strings.Join(pages, ",")+`]}}`)
				return
			}
			reply(rw, 200, `{"batchcomplete": true, "query": {"pages": [{"pageid": 2, "ns": 0, "title": "P2", "pageprops": {"disambiguation": ""}}]}}`)
		}
	}
	env := o.engines(fetch.Live)
	got, err := wikipedia.Find(t.Context(), env, Query{Text: "harbor tolls", K: 60})
	if err != nil || len(got) != 60 || got[0].DocumentID != "wikipedia:en:1" || got[0].Text != "a toll" || got[1].Drop != DropDisambiguation || got[2].Drop != "" || got[59].URL == "" {
		t.Fatalf("%d results, %v: %+v", len(got), err, got)
	}
	if wait := o.at[3].Sub(o.at[1]); wait < 10*time.Second {
		t.Errorf("a server that lags was asked three times in %v", wait)
	}
	for title, reason := range map[string]string{"readonly": ReasonUnavailable, "badvalue": ReasonBadRequest, "ratelimited": ReasonRateLimit} {
		_, err := wikipedia.Find(t.Context(), env, Query{Text: title, K: 5})
		wantError(t, err, reason)
	}
	if _, err := wikipedia.Find(t.Context(), env, Query{Text: "x", K: 5, From: "2020-01-01"}); err == nil {
		t.Error("dates were let pass")
	}
}

// feed is a page of arXiv's.
func feed(total, from, to int) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<?xml version="1.0" encoding="UTF-8"?><feed xmlns="http://www.w3.org/2005/Atom"><title>x</title><opensearch:totalResults xmlns:opensearch="http://a9.com/-/spec/opensearch/1.1/">%d</opensearch:totalResults>`, total)
	for i := from; i < to; i++ {
		fmt.Fprintf(&b, `<entry><id>http://arxiv.org/abs/2601.%05dv2</id><title>Tolls %d</title><published>2026-01-01T00:00:00Z</published><summary> On the tolls
 of an invented harbor and of its herring fleet.</summary></entry>`, i, i)
	}
	return b.String() + `</feed>`
}

// The kind of HD-13: an empty page in the middle is asked for again, an error that stands as a paper is
// one, and a list that never becomes whole is no finished search.
func TestHD13Arxiv(t *testing.T) {
	empties := 2
	o := newOutside(t, nil)
	o.serve = func(rw http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		text, start := q.Get("search_query"), q.Get("start")
		body := feed(0, 0, 0)
		switch {
		case strings.Contains(text, "broken"):
			body = `<feed xmlns="http://www.w3.org/2005/Atom"><entry><id>http://arxiv.org/api/errors#x</id><title>Error</title><summary>incorrect query</summary></entry></feed>`
		case strings.Contains(text, "nothing"):
		case start == "0":
			body = feed(250, 0, 100)
		case start == "100" && strings.Contains(text, "endless"):
		case start == "100" && empties > 0:
			empties--
		case start == "100":
			body = feed(250, 95, 195) // five stand on both pages
		case start == "200":
			body = feed(250, 195, 245)
		}
		reply(rw, 200, body, "Content-Type", "application/atom+xml; charset=utf-8")
	}
	env := o.engines(fetch.Live)
	got, err := arxiv.Find(t.Context(), env, Query{Text: "harbor tolls", K: 300})
	if err != nil || len(got) != 245 || len(o.visits) != 5 || got[0].DocumentID != "arxiv:2601.00000" || got[0].URL != "https://arxiv.org/abs/2601.00000" {
		t.Fatalf("%d papers after %d requests, %v", len(got), len(o.visits), err)
	}
	for i := 1; i < len(o.at); i++ {
		if gap := o.at[i].Sub(o.at[i-1]); gap < 3*time.Second {
			t.Errorf("asked again after %v", gap)
		}
	}
	_, err = arxiv.Find(t.Context(), env, Query{Text: "broken", K: 300})
	if e := wantError(t, err, ReasonBadRequest); e.Detail != "incorrect query" {
		t.Error(err)
	}
	for range 2 { // the second run tries again
		before := len(o.visits)
		_, err = arxiv.Find(t.Context(), env, Query{Text: "endless", K: 300})
		e := wantError(t, err, ReasonIncomplete)
		asked := slices.DeleteFunc(slices.Clone(o.visits[before:]), func(v string) bool { return !strings.Contains(v, "start=100") })
		if e.FailureClass() != "transient" || e.Detail != "100 of 250" || len(asked) != 4 {
			t.Errorf("%v after %d requests for the page", err, len(asked))
		}
	}
	before := len(o.visits)
	if got, err = arxiv.Find(t.Context(), env, Query{Text: "nothing", K: 300}); err != nil || len(got) != 0 || len(o.visits)-before != 4 {
		t.Errorf("nothing: %v, %v after %d requests", got, err, len(o.visits)-before)
	}
	if got, err = arxiv.Find(t.Context(), o.engines(fetch.Replay), Query{Text: "nothing", K: 300}); err != nil || len(got) != 0 {
		t.Errorf("replayed: %v, %v", got, err)
	}
	if _, err = arxiv.Find(t.Context(), env, Query{Text: "dated", K: 1, To: "2025-01-31"}); err != nil || !strings.Contains(o.visits[len(o.visits)-1], "submittedDate%3A%5B199101010000+TO+202501312359%5D") {
		t.Errorf("%v, %s", err, o.visits[len(o.visits)-1])
	}
}

// Recorded feeds are read as their index says.
func TestRealArxiv(t *testing.T) {
	for _, tp := range tapes(t, "arxiv-atom") {
		t.Run(tp.file, func(t *testing.T) {
			var want struct {
				Entries, TotalResults int
				First                 struct {
					ID, Title, Published string
					Summary              string `json:"summary_start"`
				}
			}
			tp.expect(t, &want)
			o := newOutside(t, func(rw http.ResponseWriter, r *http.Request) { reply(rw, 200, tp.body) })
			env := o.engines(fetch.Live)
			got, err := arxiv.Find(t.Context(), env, Query{Text: "recorded", K: min(max(want.Entries, 1), 100)})
			if strings.Contains(want.First.ID, "/errors") {
				wantError(t, err, ReasonBadRequest)
				return
			}
			if err != nil || len(got) != want.Entries {
				t.Fatalf("%d papers, %v", len(got), err)
			}
			if want.Entries == 0 {
				if _, err := arxiv.Document(t.Context(), env, "arxiv:0000.0000", nil); err == nil {
					t.Error("a paper that is not there")
				}
				return
			}
			id := arxivVersion.ReplaceAllString(want.First.ID[strings.Index(want.First.ID, "/abs/")+5:], "")
			if r := got[0]; r.DocumentID != "arxiv:"+id || r.Title != want.First.Title || r.Published != want.First.Published || !strings.HasPrefix(r.Text, strings.Join(strings.Fields(want.First.Summary), " ")) {
				t.Errorf("first %+v, want %+v", r, want.First)
			}
			d, err := arxiv.Document(t.Context(), env, "arxiv:"+id, nil)
			if err != nil || d.ID != "arxiv:"+id || d.Licence == "" || !strings.HasSuffix(want.First.ID, id+d.Revision) {
				t.Errorf("%+v, %v", d, err)
			}
		})
	}
}

// Recorded replies of MediaWiki, of both formats: lists, titles that lead to others, pages of meanings,
// texts, and what is missing.
func TestRealWikipedia(t *testing.T) {
	for _, tp := range tapes(t, "mediawiki-query", "mediawiki-extract", "mediawiki-missing", "mediawiki-search", "mediawiki-error") {
		t.Run(tp.file, func(t *testing.T) {
			var want struct {
				Results, Search, Pages int
				PageID                 *int `json:"pageid"`
				First                  struct {
					PageID, NS int
					Title      string
				}
				FirstPageID int `json:"first_pageid"`
				Missing     any
				Length      int               `json:"extract_len"`
				Chars       int               `json:"extract_chars"`
				Properties  map[string]string `json:"pageprops"`
				Error       struct{ Code string }
				Redirects   []wikiMove
			}
			tp.expect(t, &want)
			r, err := readWiki([]byte(tp.body))
			if err != nil {
				t.Fatal(err)
			}
			listed := 0
			if r.Query != nil {
				listed = len(r.Query.Search)
			}
			if n := max(want.Results, want.Search); listed != n || n > 0 && r.Query.Search[0].ID != max(want.FirstPageID, want.First.PageID) {
				t.Errorf("%d are listed, want %d", listed, n)
			}
			if len(r.pages) != want.Pages && want.Pages > 0 {
				t.Errorf("%d pages, want %d", len(r.pages), want.Pages)
			}
			if len(want.Redirects) > 0 && !cmp.Equal(want.Redirects, r.Query.Redirects) {
				t.Errorf("redirects %+v, want %+v", r.Query.Redirects, want.Redirects)
			}
			if _, ambiguous := want.Properties["disambiguation"]; len(r.pages) > 0 && r.pages[0].ambiguous() != ambiguous {
				t.Errorf("ambiguous: %t", !ambiguous)
			}
			o := newOutside(t, func(rw http.ResponseWriter, r *http.Request) {
				if r.URL.Query().Get("continue") != "" { // two were recorded with a list that goes on for ever
					reply(rw, 200, `{"batchcomplete": true}`)
					return
				}
				reply(rw, 200, tp.body, "Retry-After", "5")
			})
			env := o.engines(fetch.Live)
			if want.Error.Code == "maxlag" {
				_, err := wikipedia.Find(t.Context(), env, Query{Text: "recorded", K: 5})
				if wantError(t, err, ReasonRateLimit); len(o.at) != 4 || o.at[3].Sub(o.at[0]) < 15*time.Second {
					t.Errorf("asked at %v", o.at)
				}
				return
			}
			if n := max(want.Length, want.Chars); n > 0 {
				id := want.First.PageID
				if want.PageID != nil {
					id = *want.PageID
				}
				d, err := wikipedia.Document(t.Context(), env, "wikipedia:en:"+strconv.Itoa(id), nil)
				if r.pages[0].ambiguous() {
					var x *corpus.ExcludedError
					if !errors.As(err, &x) || x.Excluded() != DropDisambiguation {
						t.Errorf("a page of meanings: %v", err)
					}
				} else if err != nil || len([]rune(d.Text)) < n-2 || len([]rune(d.Text)) > n {
					t.Errorf("%d characters, want %d: %v", len([]rune(d.Text)), n, err)
				}
			}
			if len(r.pages) == 1 && !r.pages[0].there() {
				if got, err := (wiki{env, env.Access[wikiName], "en"}).titled(t.Context(), "x", "recorded"); err != nil || len(got) != 0 {
					t.Errorf("what is missing was found: %v, %v", got, err)
				}
			}
		})
	}
}
