package planner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"assay/corpus"
	"assay/fetch"
)

// found is the candidate with an address.
func found(t *testing.T, trace corpus.Trace, url string) corpus.Candidate {
	t.Helper()
	for _, c := range trace.Candidates {
		if c.URL == url {
			return c
		}
	}
	t.Fatalf("nothing was found at %s: %+v", url, trace.Candidates)
	return corpus.Candidate{}
}

// exploresIn is explores with an environment that the caller completes.
func (l *library) exploresIn(t *testing.T, complete func(*Env), change func(*Agent)) corpus.Trace {
	t.Helper()
	was := Backends
	Backends = append(slices.Clone(Backends), Backend{Name: "library", Search: l.search})
	defer func() { Backends = was }()
	caps := Agent{Engines: map[string]string{"*": "library", "x": ""}, PerAction: 20}
	change(&caps)
	env := l.env(&director{})
	complete(&env)
	trace, err := Plan(t.Context(), env, Settings{Policy: PolicyAgent, Agent: &caps}, corpus.Claim{ID: "c_1", Text: bridge, StatedDate: "2021-06-01"})
	if err != nil {
		t.Fatal(err)
	}
	return trace
}

// A page's own date decides, as far as it is to be believed; the trace says what told it.
func TestAgentHoldsPagesToTheirDate(t *testing.T) {
	l := bridgeLibrary().add("https://late.example/marsh", "Later", "The Marsh Bridge in Ostrow was closed for 14 months, as we all remember from those days of detours.")
	late := &l.docs[len(l.docs)-1]
	for _, c := range []struct {
		date, by, confidence string
		late                 Late
		reason, flag         string
	}{
		{"2022-03-04T05:06:07Z", "json_ld", "high", LateDrop, DropLate + ": published 2022-03-04 by json_ld, confidence high", ""},
		{"2022-03-04", "url", "medium", LateDrop, DropLate + ": published 2022-03-04 by url, confidence medium", ""},
		{"2022-03-04", "http", "low", LateDrop, "", FlagLate},
		{"2022-03-04", "meta", "high", LateFlag, "", FlagLate},
		{"2021-12-31T23:59:59Z", "meta", "high", LateDrop, "", ""},
		{"", "", "", LateDrop, "", FlagUndated},
	} {
		late.PublishedAt, late.PublishedBy, late.Confidence = c.date, c.by, c.confidence
		trace := l.explores(t, &director{}, bridge, func(a *Agent) { a.Late, a.PerAction = c.late, 20 })
		got := found(t, trace, late.URL)
		if got.Kept != (c.reason == "") || got.Reason != c.reason {
			t.Errorf("%+v: kept %v, %q", c, got.Kept, got.Reason)
		}
		for _, e := range trace.Evidence {
			if e.DocumentID != late.ID {
				continue
			}
			for _, flag := range []string{FlagLate, FlagUndated} {
				if corpus.HasFlag(e.Flags, flag) != (flag == c.flag) {
					t.Errorf("%+v: flags %v", c, e.Flags)
				}
			}
			if e.Title != late.Title || e.URL != late.URL || e.Source != late.Source || e.PublishedAt != c.date || e.PublishedBy != c.by {
				t.Errorf("the evidence does not say what it is: %+v", e)
			}
		}
	}
	l.dates = map[string]string{late.URL: "2022-07-01"}
	late.PublishedAt = ""
	if got := found(t, l.explores(t, &director{}, bridge, func(a *Agent) { a.PerAction = 20 }), late.URL); got.Reason != DropLate+": the engine says 2022-07-01" {
		t.Errorf("a hit that is too late: %+v", got)
	}
}

// A page that is gone is read from its last capture up to the as-of date; one that is refused is not.
func TestAgentReadsCapturesOfGonePages(t *testing.T) {
	const gone, walled, never = "https://gone.example/marsh", "https://walled.example/marsh", "https://never.example/marsh"
	const text = "The Marsh Bridge in Ostrow was closed for 14 months, wrote the paper that is no more."
	at := "https://web.archive.org/web/20211105102030id_/" + gone
	l := bridgeLibrary().add(gone, "Marsh Bridge", text).add(walled, "Marsh Bridge", text).add(never, "Marsh Bridge", text)
	var reasons = map[string]string{gone: ReasonPageGone, walled: "blocked", never: ReasonHostGone}
	l.unread = reasons
	page, err := fetch.NewPage(at, http.Header{"Content-Type": {"text/html"}, "Last-Modified": {"Tue, 01 Feb 2022 00:00:00 GMT"}},
		[]byte("<!doctype html><title>Marsh Bridge</title><article><p>"+text+" It went on for a while about ferries, tolls, and the brass band that played when all was done.</p></article>"), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	capture, err := PageDocument(page)
	if err != nil {
		t.Fatal(err)
	}
	if capture.URL != gone || capture.Source != "gone.example" || capture.Via != corpus.ViaWayback || capture.CapturedAt != "2021-11-05T10:20:30Z" || capture.PublishedAt != "" || capture.ID == corpus.DocumentID(gone) {
		t.Errorf("a capture is %+v", capture)
	}
	l.docs = append(l.docs, capture)
	l.hidden = map[string]bool{capture.ID: true}
	var asked []string
	o := newOutside(t, func(rw http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Query().Get("url")+" to "+r.URL.Query().Get("to"))
		if strings.Contains(r.URL.Query().Get("url"), "never") {
			reply(rw, 200, `[]`)
			return
		}
		reply(rw, 200, `[["urlkey","timestamp","original","mimetype","statuscode","digest","length"],["x","20211105102030","`+gone+`","text/html","200","X","9"]]`)
	})
	web := o.engines(fetch.Live)
	withWeb := func(e *Env) { e.Web, e.Access, e.Getenv = web.Web, web.Access, web.Getenv }
	trace := l.exploresIn(t, withWeb, func(a *Agent) { a.Gone = GoneWayback })
	if got := found(t, trace, at); !got.Kept || got.DocumentID != capture.ID {
		t.Errorf("the capture: %+v", got)
	}
	if got := found(t, trace, walled); got.Kept || got.Reason != DropUnread+"blocked" {
		t.Errorf("a refusal: %+v", got)
	}
	if got := found(t, trace, never); got.Kept || got.Reason != DropUnread+"host_gone, and no capture of it" {
		t.Errorf("never captured: %+v", got)
	}
	for _, e := range trace.Evidence {
		if e.DocumentID == capture.ID && (e.Via != corpus.ViaWayback || e.CapturedAt != capture.CapturedAt || corpus.HasFlag(e.Flags, FlagUndated)) {
			t.Errorf("evidence of a capture: %+v", e)
		}
	}
	slices.Sort(asked)
	if got := strings.Join(slices.Compact(asked), "\n"); got != gone+" to 20211231235959\n"+never+" to 20211231235959" {
		t.Errorf("the archive was asked for\n%s", got)
	}
	asked = nil
	trace = l.exploresIn(t, withWeb, func(*Agent) {})
	if got := found(t, trace, gone); got.Kept || got.Reason != DropUnread+ReasonPageGone || asked != nil {
		t.Errorf("not asked for: %+v, %v", got, asked)
	}
	// What the archive leads on to may be later than what it listed.
	l.docs[len(l.docs)-1].CapturedAt = "2022-01-02T00:00:00Z"
	trace = l.exploresIn(t, withWeb, func(a *Agent) { a.Gone = GoneWayback })
	if got := found(t, trace, at); got.Kept || got.Reason != DropLate+": captured 2022-01-02T00:00:00Z" {
		t.Errorf("a late capture: %+v", got)
	}
}

// Addresses that carry a password, of a result and of a link in a post, are masked in all that is kept of a search, and
// nothing is read from them.
func TestAgentKeepsNoPassword(t *testing.T) {
	const words = "The Marsh Bridge in Ostrow was closed for 14 months, said the road office on Friday."
	l := new(library)
	l.docs = append(l.docs, corpus.Document{ID: "reddit:t3_abc12", Kind: corpus.KindRedditPost, URL: "https://www.reddit.com/r/ostrow/comments/abc12/marsh/", Title: "Marsh Bridge in Ostrow closed for 14 months",
		Source: "reddit.com/r/ostrow", PublishedAt: "2021-05-01", BodyStatus: corpus.BodyMissing, Outbound: "https://ida:hush@paper.example/marsh"}.Seal())
	l.add("https://ida:hush@roads.example/marsh", "The bridge", words)
	trace := l.exploresIn(t, func(*Env) {}, func(a *Agent) { a.FollowLinks = true })
	kept, err := json.Marshal(trace)
	var shown strings.Builder
	if err := errors.Join(err, WriteTrace(&shown, trace)); err != nil || strings.Contains(string(kept)+shown.String(), "hush") {
		t.Errorf("%v, %s\n%s", err, kept, &shown)
	}
	for _, url := range []string{"https://***@roads.example/marsh", "https://***@paper.example/marsh"} {
		if got := found(t, trace, url); got.Kept || got.Reason != DropUserInfo {
			t.Errorf("%s: %+v", url, got)
		}
	}
}

// A link post without a body leads to its article, and a thread brings as many comments as the policy wants.
func TestAgentReadsWhatPostsBring(t *testing.T) {
	const post, target = "https://www.reddit.com/r/ostrow/comments/abc12/marsh_bridge_in_ostrow_closed/", "https://paper.example/marsh"
	l := new(library)
	l.docs = append(l.docs, corpus.Document{ID: "reddit:t3_abc12", Kind: corpus.KindRedditPost, URL: post, Title: "Marsh Bridge in Ostrow closed for 14 months", Source: "reddit.com/r/ostrow",
		PublishedAt: "2021-05-01", BodyStatus: corpus.BodyMissing, Outbound: target}.Seal())
	l.add(target, "The bridge", "The Marsh Bridge in Ostrow was closed for 14 months, said the road office on Friday.")
	l.hidden = map[string]bool{corpus.DocumentID(target): true}
	var comments []corpus.Document
	for i := range 4 {
		c := corpus.Document{ID: fmt.Sprintf("reddit:t1_c%d", i), Kind: corpus.KindRedditComment, URL: fmt.Sprint(post, "c", i, "/"), Source: "reddit.com/r/ostrow", PublishedAt: "2021-05-02",
			Text: fmt.Sprintf("Comment %d: the Marsh Bridge in Ostrow was never closed for 14 months, I drove there.", i), BodyStatus: corpus.BodyFull}
		if i == 0 {
			c.Text = "lol"
		}
		comments = append(comments, c.Seal())
	}
	asked := 0
	env := func(e *Env) {
		e.Thread = func(_ context.Context, id string) (Thread, error) {
			asked++
			if id != "reddit:t3_abc12" {
				t.Errorf("asked for the comments of %s", id)
			}
			return Thread{Comments: comments, Total: 7, Deleted: 1, Removed: 1}, nil
		}
	}
	trace := l.exploresIn(t, env, func(a *Agent) { a.FollowLinks, a.Comments = true, 2 })
	if got := found(t, trace, post); got.Kept || got.Reason != dropUnusable+ReasonLinkPost {
		t.Errorf("the link post: %+v", got)
	}
	if got := trace.Steps[0].Results[0]; got.URL != post || got.Thread != "complete: no, 4 of 7; 1 deleted, 1 removed" {
		t.Errorf("its thread: %+v", got)
	}
	if got := found(t, trace, target); !got.Kept || got.DocumentID != corpus.DocumentID(target) {
		t.Errorf("its article: %+v", got)
	}
	kept := ""
	for _, c := range trace.Kept() {
		kept += " " + c.DocumentID
	}
	if asked == 0 || !strings.Contains(kept, "t1_c1") || !strings.Contains(kept, "t1_c2") || strings.Contains(kept, "t1_c0") || strings.Contains(kept, "t1_c3") {
		t.Errorf("kept%s after %d questions", kept, asked)
	}
	if trace = l.exploresIn(t, env, func(*Agent) {}); len(trace.Kept()) != 0 {
		t.Errorf("without asking for it: %+v", trace.Kept())
	}
}
