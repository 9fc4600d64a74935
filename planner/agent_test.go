package planner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay/annotate/evidence"
	"assay/corpus"
	"assay/llm"
)

// A director answers act requests as it is told, and everything else by the builtin functions.
type director struct {
	says  func(ActVars) (string, llm.Outcome) // "" goes to the builtin function, too
	reads func(evidence.AnalyseVars)          // hears of each document that is read; may be nil
	long  func(evidence.AnalyseVars) bool     // which documents are longer than the model reads; nil: none
	asks  int
}

func (d *director) Complete(_ context.Context, q llm.Request) (llm.Reply, error) {
	d.asks++
	reply := llm.Reply{Outcome: llm.OutcomeAnswered, Call: fmt.Sprintf("%s-%d", q.Role, d.asks), Usage: llm.Usage{Prompt: 100, Completion: 20}}
	text := ""
	if v, ok := q.Vars.(ActVars); ok && d.says != nil {
		var outcome llm.Outcome
		if text, outcome = d.says(v); outcome != "" {
			reply.Outcome = outcome
			return reply, nil
		}
	}
	if v, ok := q.Vars.(evidence.AnalyseVars); ok && d.reads != nil {
		d.reads(v)
	}
	if v, ok := q.Vars.(evidence.AnalyseVars); ok && d.long != nil && d.long(v) {
		return llm.Reply{}, &llm.Error{Endpoint: "small", Model: "tiny-1", Reason: llm.ReasonContext, Status: 400, Detail: "4097 tokens"}
	}
	if text == "" {
		b, err := q.Template.Builtin(q.Vars)
		if err != nil {
			return llm.Reply{}, err
		}
		text = string(b)
	}
	parsed, _, err := q.Template.Parse(text)
	if err != nil {
		return llm.Reply{}, err
	}
	if reply.JSON = parsed; parsed == nil {
		reply.Outcome = llm.OutcomeParseFailed
	}
	return reply, nil
}

// A library is a small web: an engine that answers by words, and the documents behind it.
type library struct {
	docs   []corpus.Document
	fails  error
	empty  bool
	unread map[string]string // exclusions by address
	hidden map[string]bool   // ids that no search finds
	dates  map[string]string // that the engine tells, by address
}

func (l *library) add(url, title, text string) *library {
	d := corpus.Document{ID: corpus.DocumentID(url), URL: url, Title: title, Text: text, Kind: "page", Source: corpus.Host(url), PublishedAt: "2021-05-01"}
	l.docs = append(l.docs, d.Seal())
	return l
}

func (l *library) search(_ context.Context, _ Env, q Query) ([]Result, error) {
	if l.fails != nil || l.empty {
		return nil, l.fails
	}
	var out []Result
	want := map[string]bool{}
	for w := range strings.FieldsSeq(strings.ToLower(q.Text)) {
		want[strings.Trim(w, ".,")] = true
	}
	for _, d := range l.docs {
		hits := 0
		for w := range strings.FieldsSeq(strings.ToLower(d.Title + " " + d.Text)) {
			if want[strings.Trim(w, ".,")] {
				hits++
			}
		}
		if hits >= 2 && !l.hidden[d.ID] && within(corpus.RegistrableDomain(corpus.Host(d.URL)), q.Domains) {
			out = append(out, Result{URL: d.URL, Published: l.dates[d.URL]})
		}
	}
	return out, nil
}

func (l *library) env(m Model) Env {
	return Env{Model: m, AsOf: "2021-12-31", Read: func(_ context.Context, id, url string) (corpus.Document, error) {
		if reason := l.unread[url]; reason != "" {
			return corpus.Document{}, corpus.Exclude(reason, url)
		}
		for _, d := range l.docs {
			if d.ID == id {
				return d, nil
			}
		}
		return corpus.Document{}, corpus.Exclude("gone", url)
	}}
}

// explores runs the agentic search over the library.
func (l *library) explores(t *testing.T, m Model, claim string, change func(*Agent)) corpus.Trace {
	t.Helper()
	trace, err := l.explore(t, m, claim, change)
	if err != nil {
		t.Fatal(err)
	}
	return trace
}

func (l *library) explore(t *testing.T, m Model, claim string, change func(*Agent)) (corpus.Trace, error) {
	was := Backends
	Backends = append(slices.Clone(Backends), Backend{Name: "library", Search: l.search})
	defer func() { Backends = was }()
	caps := Agent{Engines: map[string]string{"*": "library", "x": ""}}
	if change != nil {
		change(&caps)
	}
	return Plan(t.Context(), l.env(m), Settings{Policy: PolicyAgent, Agent: &caps}, corpus.Claim{ID: "c_1", Text: claim, StatedDate: "2021-06-01"})
}

const (
	bridge     = "The Marsh Bridge in Ostrow was closed for 14 months."
	twoParts   = "The Marsh Bridge in Ostrow was closed for 14 months and Mayor Ida Quist resigned in 2020."
	levy       = "The levy rose from 40 to 50 crowns."
	bridgeNow  = "The Marsh Bridge in Ostrow is closed right now."
	bridgeStop = "https://blog.example/marsh"
)

func bridgeLibrary() *library {
	return new(library).
		add("https://roads.ostrow.gov/marsh", "Marsh Bridge closure", "The Marsh Bridge in Ostrow was closed for 14 months. Works ended in March.").
		add("https://www.bbc.com/news/ostrow", "Ostrow bridge", "Ferries ran while repairs went on. The Marsh Bridge in Ostrow was closed for 14 months, the road office said.").
		add(bridgeStop, "No closure", "People forget it: the Marsh Bridge in Ostrow was never closed for 14 months.").
		add("https://en.wikipedia.org/wiki/Marsh_Bridge", "Marsh Bridge", "The Marsh Bridge in Ostrow is a road bridge of iron, painted green, with two lanes and a walkway.")
}

func actions(t corpus.Trace) string {
	var out []string
	for _, s := range t.Steps {
		out = append(out, s.Action)
	}
	return strings.Join(out, " ")
}

func TestAgentFindsBothSides(t *testing.T) {
	trace := bridgeLibrary().explores(t, &director{}, bridge, nil)
	if trace.Stop != StopSufficient {
		t.Errorf("it ends with %s after %s", trace.Stop, actions(trace))
	}
	sides := map[corpus.Stance]int{}
	for _, e := range trace.Evidence {
		sides[e.Stance]++
	}
	if sides[corpus.Supports] < 2 || sides[corpus.Refutes] != 1 {
		t.Errorf("stances %v in %+v", sides, trace.Evidence)
	}
	if !strings.Contains(actions(trace), "web_support") || !strings.Contains(actions(trace), "web_refute") {
		t.Errorf("it takes %s", actions(trace))
	}
	again := bridgeLibrary().explores(t, &director{}, bridge, nil)
	if diff := cmp.Diff(trace, again); diff != "" {
		t.Errorf("a second search differs (-first +second):\n%s", diff)
	}
}

// TestAgentFollowsTheEvidence takes the refuting document away, and nothing else: what comes next changes.
func TestAgentFollowsTheEvidence(t *testing.T) {
	search := func(without ...string) corpus.Trace {
		l := bridgeLibrary()
		l.docs = slices.DeleteFunc(l.docs, func(d corpus.Document) bool { return slices.Contains(without, d.URL) })
		return l.explores(t, &director{}, bridge, nil)
	}
	const report = "https://www.bbc.com/news/ostrow"
	with, without := search(report), search(report, bridgeStop)
	if got := actions(with); got != "web_support web_refute stop" || with.Stop != StopSufficient {
		t.Errorf("with a document of either side it takes %s and ends with %s", got, with.Stop)
	}
	if got := actions(without); got != "web_support web_refute web_refute factcheck stop" || without.Steps[2].Why != "the evidence is one-sided" || without.Stop != StopNothing {
		t.Errorf("without the refuting document it takes %s and ends with %s", got, without.Stop)
	}
}

func TestAgentTools(t *testing.T) {
	sum := new(library).explores(t, &director{}, "The levy rose from 40 to 50 crowns, a rise of 25 percent.", nil)
	if s := sum.Steps[0]; s.Action != "calc" || s.Answer != "change from 40 to 50 = 25%" {
		t.Errorf("an arithmetic claim begins with %+v", s)
	}
	now := bridgeLibrary().explores(t, &director{}, bridgeNow, nil)
	if s := now.Steps[0]; s.Action != "today" || s.Answer != "2021-12-31" {
		t.Errorf("a claim about now begins with %+v", s)
	}
	two := bridgeLibrary().explores(t, &director{}, twoParts, nil)
	if two.Steps[0].Action != "decompose" || len(two.Subclaims) != 2 {
		t.Errorf("a claim of two statements begins with %+v and has %v", two.Steps[0], two.Subclaims)
	}
	searched := map[string]bool{}
	for _, s := range two.Steps[1:] {
		searched[s.Subclaim] = true
	}
	if !searched["s1"] || !searched["s2"] {
		t.Errorf("statements searched for: %v", searched)
	}
	paper := new(library).explores(t, &director{}, "A study found that vaccines reduced infections by 60 percent.", nil)
	if !strings.Contains(actions(paper), "arxiv") {
		t.Errorf("a claim about a study takes %s", actions(paper))
	}
	if strings.Contains(actions(two), "arxiv") {
		t.Errorf("a claim about a bridge takes %s", actions(two))
	}
}

// TestAgentGuard has twelve states with three replies each: one that obeys the rules, one that does not,
// and one that is no answer. The guard wins over the last two.
func TestAgentGuard(t *testing.T) {
	did := func(action, query, subclaim string) choice {
		return choice{Action: action, Query: query, Subclaim: subclaim}
	}
	const long = 80
	for name, tt := range map[string]struct {
		claim   string
		before  []choice
		per     int // searches for a subclaim
		obeys   choice
		breaks  choice
		refused string
		guard   string // the action that the guard takes instead
	}{
		"nothing was done":        {bridge, nil, 0, did("wikipedia", "Marsh Bridge", "s1"), did("stop", "", ""), RefusedEarly, "web_support"},
		"an unknown tool":         {bridge, nil, 0, did("news", "Marsh Bridge", "s1"), did("shell", "rm -rf /", "s1"), RefusedReply, "web_support"},
		"a tool without engine":   {bridge, nil, 0, did("reddit", "Marsh Bridge", "s1"), did("x", "Marsh Bridge", "s1"), RefusedTool, "web_support"},
		"support was searched":    {bridge, []choice{did("web_support", "Marsh Bridge closed", "s1")}, 0, did("web_refute", "Marsh Bridge", "s1"), did("web_support", "marsh bridge closed", "s1"), RefusedRepeat, "web_refute"},
		"nearly the same words":   {bridge, []choice{did("web_support", "Marsh Bridge Ostrow closed months", "s1")}, 0, did("web_support", "ferry traffic detour", "s1"), did("web_support", "Marsh Bridge Ostrow closed month", "s1"), RefusedRepeat, "web_refute"},
		"refutation was searched": {bridge, []choice{did("web_refute", "Marsh Bridge", "s1")}, 0, did("factcheck", "Marsh Bridge", "s1"), did("stop", "", ""), RefusedEarly, "web_support"},
		"a search for nothing":    {bridge, nil, 0, did("web_support", "Ostrow", "s1"), did("web_support", " ", "s1"), RefusedEmpty, "web_support"},
		"a statement of nobody":   {twoParts, []choice{did("decompose", "", "")}, 0, did("web_support", "Ida Quist", "s2"), did("web_support", "Ida Quist", "s7"), RefusedSubclaim, "web_support"},
		"taken apart before":      {twoParts, []choice{did("decompose", "", "")}, 0, did("web_refute", "Ida Quist", "s2"), did("decompose", "", ""), RefusedAgain, "web_support"},
		"a sum":                   {levy, nil, 0, did("calc", "50 / 40", "s1"), did("calc", "the levy", "s1"), RefusedSums, "calc"},
		"the day was told":        {bridgeNow, []choice{did("today", "", "")}, 0, did("web_support", "Marsh Bridge", "s1"), did("today", "", ""), RefusedAgain, "web_support"},
		"a book for a query":      {bridge, nil, 0, did("web_support", "Marsh", "s1"), did("web_support", strings.Repeat("marsh ", long), "s1"), RefusedLong, "web_support"},
		"its searches are spent":  {bridge, []choice{did("web_support", "Marsh Bridge", "s1")}, 1, did("stop", "", ""), did("web_refute", "Ostrow", "s1"), RefusedSubclaim, "stop"},
	} {
		for kind, reply := range map[string]string{"obeys": jsonOf(t, tt.obeys), "breaks": jsonOf(t, tt.breaks), "malformed": "I would search the web, I think."} {
			t.Run(name+", "+kind, func(t *testing.T) {
				asked := 0
				d := &director{says: func(ActVars) (string, llm.Outcome) {
					if asked++; asked <= len(tt.before) {
						return jsonOf(t, tt.before[asked-1]), ""
					}
					return reply, ""
				}}
				trace := (&library{empty: true}).explores(t, d, tt.claim, func(a *Agent) { a.MaxActions, a.PerSubclaim = len(tt.before)+1, tt.per })
				if len(trace.Steps) != len(tt.before)+1 {
					t.Fatalf("it takes %q and ends with %s", actions(trace), trace.Stop)
				}
				got := trace.Steps[len(tt.before)]
				switch kind {
				case "obeys":
					if got.By != "model" || got.Action != tt.obeys.Action {
						t.Errorf("step %+v, want the model's %+v", got, tt.obeys)
					}
				case "breaks":
					if got.By != "guard" || got.Refused != tt.refused || got.Action != tt.guard {
						t.Errorf("step %+v, want the guard's %s because of %s", got, tt.guard, tt.refused)
					}
				default:
					if got.By != "guard" || got.Refused != RefusedReply || got.Action != tt.guard {
						t.Errorf("step %+v, want the guard's %s", got, tt.guard)
					}
				}
			})
		}
	}
}

func jsonOf(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestAgentIsBounded(t *testing.T) {
	never := &director{says: func(ActVars) (string, llm.Outcome) {
		return `{"action":"web_support","query":"Marsh Bridge closed","subclaim_id":"s1","why":""}`, ""
	}}
	if trace := bridgeLibrary().explores(t, never, bridge, nil); trace.Stop != StopRepeats || len(trace.Steps) > 3 {
		t.Errorf("endless repeats end with %s after %s", trace.Stop, actions(trace))
	}
	_, err := (&library{fails: &APIError{API: "library", Reason: ReasonBadRequest, Detail: "no such thing"}}).explore(t, &director{}, bridge, nil)
	var unanswered *UnansweredError
	if !errors.As(err, &unanswered) || unanswered.First.Action != webSupportTool.Name || !strings.Contains(err.Error(), "no search was answered; the first: use web_support with \"Marsh Bridge Ostrow closed 14 months\": ask library for : bad_request: no such thing") {
		t.Errorf("where every tool always fails: %v", err)
	}
	refuses := &director{says: func(ActVars) (string, llm.Outcome) { return "", llm.OutcomeRefused }}
	if trace := bridgeLibrary().explores(t, refuses, bridge, nil); trace.Stop != StopSufficient {
		t.Errorf("a model that refuses every time ends with %s after %s", trace.Stop, actions(trace))
	}
	for want, change := range map[string]func(*Agent){
		StopActions:   func(a *Agent) { a.MaxActions = 1 },
		StopDocuments: func(a *Agent) { a.MaxDocuments = 1 },
		StopTokens:    func(a *Agent) { a.MaxTokens = 130 },
	} {
		if trace := bridgeLibrary().explores(t, &director{}, bridge, change); trace.Stop != want {
			t.Errorf("the cap ends with %s, want %s", trace.Stop, want)
		}
	}
}

// TestAgentFails has what may pass by itself fail the claim: it is never finished with less evidence.
func TestAgentFails(t *testing.T) {
	was := Backends
	defer func() { Backends = was }()
	for name, cause := range map[string]error{
		"an engine that is down":    &APIError{API: "library", Reason: ReasonUnavailable},
		"an engine that gives HTML": &APIError{API: "library", Reason: ReasonBadReply, Detail: "html where JSON was asked for"},
		"an engine that throttles":  &APIError{API: "library", Reason: ReasonRateLimit},
		"an engine without a key":   &APIError{API: "library", Reason: ReasonCredentials},
		"an engine not set up":      &APIError{API: "library", Reason: ReasonNotConfigured},
		"no money":                  llm.ErrBudget,
	} {
		l := &library{fails: cause}
		Backends = append(slices.Clone(was), Backend{Name: "library", Search: l.search})
		_, err := Plan(t.Context(), l.env(&director{}), Settings{Policy: PolicyAgent, Agent: &Agent{Engines: map[string]string{"*": "library"}}}, corpus.Claim{ID: "c_1", Text: bridge})
		if !errors.Is(err, cause) {
			t.Errorf("%s gives %v", name, err)
		}
	}
	if _, err := Plan(t.Context(), Env{}, Settings{Policy: PolicyAgent}, corpus.Claim{ID: "c_1", Text: bridge}); err == nil {
		t.Error("a search without a model and a reader is no error")
	}
	if _, err := Plan(t.Context(), Env{}, Settings{Policy: PolicyAgent, Agent: &Agent{Tools: []string{"telepathy"}}}, corpus.Claim{}); err == nil || !strings.Contains(err.Error(), "known are") {
		t.Errorf("an unknown tool gives %v", err)
	}
}

// TestAgentLeavesUnreadWhatIsTooLong has the model refuse documents as longer than it reads: the search goes on without
// what they say, and only where none is left does the claim fail, which no small model may end in silence.
func TestAgentLeavesUnreadWhatIsTooLong(t *testing.T) {
	trace := bridgeLibrary().explores(t, &director{long: func(v evidence.AnalyseVars) bool { return v.Source == "www.bbc.com" }}, bridge, nil)
	unread, read := 0, 0
	for _, e := range trace.Evidence {
		if corpus.HasFlag(e.Flags, corpus.FlagUnread+"too_long") != (e.Source == "www.bbc.com") {
			t.Errorf("evidence of %s has the flags %v", e.Source, e.Flags)
		}
		if e.Source != "www.bbc.com" {
			read++
		} else if unread++; e.Relevance != 0 || e.Stance != corpus.Neutral || e.Quote != "" {
			t.Errorf("of what no model read it says %+v", e)
		}
	}
	var shown strings.Builder
	if err := WriteTrace(&shown, trace); err != nil || unread != 1 || read < 2 || !strings.Contains(shown.String(), "analysis_too_long") {
		t.Errorf("%d unread and %d read documents, %v, in\n%s", unread, read, err, &shown)
	}
	if !slices.ContainsFunc(trace.Kept(), func(c corpus.Candidate) bool { return strings.Contains(c.URL, "bbc") }) {
		t.Error("a document that nobody read is dropped")
	}
	_, err := bridgeLibrary().explore(t, &director{long: func(evidence.AnalyseVars) bool { return true }}, bridge, nil)
	var failed *TooLongError
	if !errors.As(err, &failed) || failed.FailureClass() != "permanent" || failed.FailureReason() != "too_long" || failed.Documents == 0 ||
		!strings.Contains(err.Error(), "tiny-1 at small") {
		t.Errorf("where every document is too long, it fails with %v", err)
	}
}

func TestAgentDrops(t *testing.T) {
	l := bridgeLibrary().
		add("https://www.politifact.com/factchecks/2021/jul/01/x/marsh/", "Marsh Bridge in Ostrow", "We rate the claim that the Marsh Bridge in Ostrow was closed for 14 months mostly true, and here is why we do so.").
		add("https://huggingface.co/datasets/claims/marsh", "Claims", "The Marsh Bridge in Ostrow was closed for 14 months; label true; another row of the table follows here.").
		add("https://late.example/marsh", "Later", "The Marsh Bridge in Ostrow was closed for 14 months, as we all remember from those days of detours.").
		add("https://short.example/marsh", "Marsh Bridge in Ostrow closed", "Yes.").
		add("https://wall.example/marsh", "Marsh Bridge in Ostrow closed", "The Marsh Bridge in Ostrow was closed for 14 months.")
	for i, d := range l.docs {
		if strings.Contains(d.URL, "late.example") {
			l.docs[i].PublishedAt = "2022-01-01T00:00:00Z"
		}
	}
	l.unread = map[string]string{"https://wall.example/marsh": "blocked"}
	trace := l.explores(t, &director{}, bridge, func(a *Agent) { a.FactChecks, a.PerAction = FactChecksDrop, 20 })
	got := map[string]string{}
	for _, c := range trace.Candidates {
		if !c.Kept {
			got[corpus.Host(c.URL)] = c.Reason
		}
	}
	want := map[string]string{"www.politifact.com": DropFactCheck, "huggingface.co": DropMirror, "late.example": DropLate + ": published 2022-01-01 by its source",
		"short.example": dropUnusable + ReasonShort, "wall.example": DropUnread + "blocked"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("dropped (-want +got):\n%s", diff)
	}
	flagged := l.explores(t, &director{}, bridge, func(a *Agent) { a.PerAction = 20 })
	if !slices.ContainsFunc(flagged.Kept(), func(c corpus.Candidate) bool { return strings.Contains(c.URL, "politifact") }) {
		t.Error("a fact-check is dropped where the recipe keeps it")
	}
	if !slices.ContainsFunc(flagged.Evidence, func(e corpus.Evidence) bool { return corpus.HasFlag(e.Flags, FlagFactCheck) }) {
		t.Error("a fact-check is not flagged")
	}
	for i := range l.docs {
		l.docs[i].PublishedAt = ""
	}
	for _, e := range l.explores(t, &director{}, bridge, nil).Evidence {
		if !corpus.HasFlag(e.Flags, FlagUndated) {
			t.Errorf("evidence without a date is not flagged: %+v", e)
		}
	}
}

// TestAgentTakesNoClaimForItsOwnEvidence has the article that a claim was taken from found by another form of its
// address, by a redirect and as a capture: the claim's own words are no evidence for it.
func TestAgentTakesNoClaimForItsOwnEvidence(t *testing.T) {
	const own, moved, captured = "https://www.bbc.com/news/ostrow", "https://short.example/x1", "https://web.archive.org/web/20210601000000id_/https://www.bbc.com/news/ostrow"
	l := bridgeLibrary().add(own+"?utm_source=feed#top", "Marsh Bridge closed", bridge).add(captured, "Marsh Bridge closed", bridge).add(moved, "Marsh Bridge closed", bridge)
	l.docs[len(l.docs)-1].URL = own
	was := Backends
	defer func() { Backends = was }()
	Backends = append(slices.Clone(Backends), Backend{Name: "library", Search: func(ctx context.Context, e Env, q Query) ([]Result, error) {
		out, err := l.search(ctx, e, q)
		if err == nil && within("short.example", q.Domains) {
			out = append(out, Result{URL: moved})
		}
		return out, err
	}})
	env := l.env(&director{})
	env.Read = func(_ context.Context, id, _ string) (corpus.Document, error) {
		return l.docs[slices.IndexFunc(l.docs, func(d corpus.Document) bool { return d.ID == id })], nil
	}
	trace, err := Plan(t.Context(), env, Settings{Policy: PolicyAgent, Agent: &Agent{Engines: map[string]string{"*": "library"}, PerAction: 20}},
		corpus.Claim{ID: "c_1", Text: bridge, StatedDate: "2021-06-01", StatedURL: own})
	if err != nil {
		t.Fatal(err)
	}
	dropped := map[string]bool{}
	for _, c := range trace.Candidates {
		if c.Reason == DropOwnSource {
			dropped[c.URL] = true
		} else if strings.Contains(c.URL, "bbc.com") || c.URL == moved {
			t.Errorf("%s: kept %v, %q", c.URL, c.Kept, c.Reason)
		}
	}
	if len(dropped) != 3 || slices.ContainsFunc(trace.Evidence, func(e corpus.Evidence) bool { return strings.Contains(e.URL, "bbc.com") }) {
		t.Errorf("dropped %v, evidence %+v", dropped, trace.Evidence)
	}
	if len(trace.Evidence) == 0 {
		t.Error("what others wrote is no evidence either")
	}
}

func TestAgentCountsOriginsOnce(t *testing.T) {
	const report = "The Marsh Bridge in Ostrow was closed for 14 months. It opened again on a rainy Friday in March with a brass band and a ribbon."
	l := new(library).add("https://a.example/1", "One", report).add("https://b.example/2", "Two", report+" Copied from elsewhere.").add("https://c.example/3", "Three", report)
	trace := l.explores(t, &director{}, bridge, nil)
	origins := map[string]bool{}
	for _, e := range trace.Evidence {
		origins[e.Origin] = true
		if e.Match != evidence.MatchText {
			t.Errorf("evidence %+v", e)
		}
	}
	if len(origins) != 1 || trace.Stop == StopSufficient {
		t.Errorf("three copies of a report are %d origins, and the search ends with %s", len(origins), trace.Stop)
	}
}

// TestAgentReadsWhatChanged has two searches find the same documents: what was read for a statement is not read for it
// again, and costs no tokens a second time.
func TestAgentReadsWhatChanged(t *testing.T) {
	read := map[string]int{}
	choices := []string{`{"action":"web_support","query":"Marsh Bridge closed","subclaim_id":"s1","why":""}`, `{"action":"web_refute","query":"Marsh Bridge closed","subclaim_id":"s1","why":""}`,
		`{"action":"factcheck","query":"Ostrow Bridge closed","subclaim_id":"s1","why":""}`}
	n := 0
	d := &director{says: func(ActVars) (string, llm.Outcome) { n++; return choices[n-1], "" }}
	d.reads = func(v evidence.AnalyseVars) { read[v.Statement+" in "+v.Title]++ }
	l := bridgeLibrary()
	l.docs = l.docs[1:] // without a primary source the search goes on
	trace := l.explores(t, d, bridge, func(a *Agent) { a.MaxActions, a.FactCheckers = len(choices), []string{"bbc.com"} })
	if got := actions(trace); got != "web_support web_refute factcheck" || len(read) != 3 {
		t.Fatalf("it takes %s and reads %v", got, read)
	}
	for what, times := range read {
		if times != 1 {
			t.Errorf("%s is read %d times", what, times)
		}
	}
	for _, s := range trace.Steps[1:] {
		for _, f := range s.Results {
			if !f.Kept || f.Reason != DropKnown {
				t.Errorf("%s, found again: %+v", s.Action, f)
			}
		}
	}
}

// TestAgentStopsWhenItIsEnough has a model that would search for ever. Once every statement is resolved the guard ends
// the search, unless a primary source is still missing, which is worth another one.
func TestAgentStopsWhenItIsEnough(t *testing.T) {
	queries := []choice{{Action: "web_support", Query: "Marsh Bridge closed"}, {Action: "web_refute", Query: "Marsh Bridge Ostrow"}, {Action: "wikipedia", Query: "Marsh Bridge road"},
		{Action: "news", Query: "Marsh Bridge repairs"}, {Action: "reddit", Query: "Ostrow ferries"}, {Action: "factcheck", Query: "Ostrow bridge"}}
	search := func(l *library) corpus.Trace {
		n := 0
		return l.explores(t, &director{says: func(ActVars) (string, llm.Outcome) {
			n++
			c := queries[n-1]
			c.Subclaim = "s1"
			return jsonOf(t, c), ""
		}}, bridge,
			func(a *Agent) { a.MaxActions, a.PerSubclaim = 5, 5 })
	}
	trace := search(bridgeLibrary())
	last := trace.Steps[len(trace.Steps)-1]
	if got := actions(trace); got != "web_support web_refute stop" || trace.Stop != StopSufficient || last.By != "guard" || last.Refused != RefusedEnough || last.Wanted != "wikipedia Marsh Bridge road" {
		t.Errorf("it takes %s and ends with %s; the last: %+v", got, trace.Stop, last)
	}
	l := bridgeLibrary()
	l.docs = l.docs[1:] // the record of the road office
	if trace := search(l); len(trace.Steps) != 5 || trace.Stop != StopActions {
		t.Errorf("without a primary source it takes %s and ends with %s", actions(trace), trace.Stop)
	}
}

// TestAgentGuardRepeatsNothing has more actions than the planner sees: what the guard takes was not taken before either.
func TestAgentGuardRepeatsNothing(t *testing.T) {
	for _, claim := range []string{levy, bridge, twoParts} {
		trace := (&library{empty: true}).explores(t, &director{}, claim, func(a *Agent) { a.MaxActions, a.PerSubclaim = 40, 30 })
		taken := map[string]bool{}
		for _, s := range trace.Steps {
			if key := s.Action + " " + s.Query; taken[key] {
				t.Errorf("%q takes %q twice: %s", claim, key, actions(trace))
			} else {
				taken[key] = true
			}
		}
		if trace.Stop != StopNothing && trace.Stop != StopRepeats {
			t.Errorf("%q ends with %s after %d steps", claim, trace.Stop, len(trace.Steps))
		}
	}
}

func TestWriteTrace(t *testing.T) {
	trace := bridgeLibrary().explores(t, &director{says: func(v ActVars) (string, llm.Outcome) {
		if len(v.Last) == 0 {
			return `{"action":"stop","query":"","subclaim_id":"","why":"I know it"}`, ""
		}
		return "", ""
	}}, bridge, nil)
	var b strings.Builder
	if err := WriteTrace(&b, trace); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"search for c_1 by policy gpe, as of 2021-12-31\n  s1  " + bridge,
		`1. web_support "Marsh Bridge Ostrow closed 14 months" for s1 -> done, `,
		"      the model wanted \"stop\", refused: evidence_too_thin (the evidence does not suffice, and more can be searched for)\n      why (guard): support was not searched for\n",
		"evidence:\n  s1  2 independent items support it, 1 refute it\n",
		"kept    " + corpus.DocumentID(bridgeStop) + " " + bridgeStop + "\n",
		"(known)", "s1 refutes ", "never closed for 14 months.\"\n", "ended: sufficient (every statement has two independent items that bear on it, and either side was searched for) after 3 steps\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, b.String())
		}
	}
	b.Reset()
	plain := corpus.Trace{ClaimID: "c_2", Policy: PolicyRAGuard, Queries: []string{"harbor tolls"}, Candidates: []corpus.Candidate{{DocumentID: "d_1", URL: "https://a.example/", Reason: DropBelowCut}}}
	if err := WriteTrace(&b, plain); err != nil || b.String() != "search for c_2 by policy raguard\n 1. \"harbor tolls\"\n      dropped d_1 https://a.example/ (below_cut)\n" {
		t.Errorf("%q, %v", b.String(), err)
	}
}

// TestAgentRemembers lets a search look things up in what earlier runs kept for another claim.
func TestAgentRemembers(t *testing.T) {
	l := bridgeLibrary()
	earlier := l.explores(t, &director{}, bridge, nil)
	m := NewMemory()
	m.Add(1, Recollect(earlier))
	m.Add(2, []Recollection{{DocumentID: corpus.DocumentID(bridgeStop), URL: bridgeStop, Words: hashWords("Marsh Bridge closed")}})
	if m.Len(0) != 0 || m.Len(1) != 4 || m.Len(2) != 5 || m.Len(7) != 5 || (*Memory)(nil).Len(1) != 0 {
		t.Errorf("it remembers %d, %d and %d documents", m.Len(0), m.Len(1), m.Len(2))
	}
	if got := m.Search(1, "Marsh Bridge closed", 2); len(got) != 2 {
		t.Errorf("two documents are %+v", got)
	}
	if got := m.Search(2, "Marsh Bridge closed", 9); len(got) != 4 { // one document, kept for two claims, once
		t.Errorf("all documents are %+v", got)
	}
	for query, n := range map[string]int{"ferry timetable": 0, "bridge of paper clips and glue": 0, "": 0, "the of it": 0} {
		if got := m.Search(2, query, 9); len(got) != n {
			t.Errorf("%q finds %+v", query, got)
		}
	}
	first := true
	asks := &director{says: func(ActVars) (string, llm.Outcome) {
		if first {
			first = false
			return `{"action":"memory","query":"Marsh Bridge closed","subclaim_id":"s1","why":"it was asked before"}`, ""
		}
		return "", ""
	}}
	was := Backends
	Backends = append(slices.Clone(Backends), Backend{Name: "library", Search: l.search})
	defer func() { Backends = was }()
	search := func(snapshot Snapshot, d *director, actions int) corpus.Trace {
		t.Helper()
		env := l.env(d)
		env.Memory, env.Snapshot = m, snapshot
		trace, err := Plan(t.Context(), env, Settings{Policy: PolicyAgent, Agent: &Agent{Engines: map[string]string{"*": "library"}, MaxActions: actions}},
			corpus.Claim{ID: "c_2", Text: bridge, StatedDate: "2021-06-01"})
		if err != nil {
			t.Fatal(err)
		}
		return trace
	}
	trace := search(Snapshot{1, "m_1"}, asks, 1)
	if trace.Memory != "m_1" || trace.Steps[0].Answer != "4 of the 4 documents that snapshot m_1 remembers" || len(trace.Evidence) != 4 {
		t.Errorf("memory %q, step %+v, %d items", trace.Memory, trace.Steps[0], len(trace.Evidence))
	}
	for _, e := range trace.Evidence {
		if e.SourceClass != sourceMemory || e.Attribution == corpus.AttributionPrimary {
			t.Errorf("what was recalled counts as %s, %s", e.SourceClass, e.Attribution)
		}
	}
	first = true
	for _, e := range search(Snapshot{1, "m_1"}, asks, 8).Evidence { // the web finds them by itself
		if e.SourceClass == sourceMemory {
			t.Errorf("what was found again counts as recalled: %+v", e)
		}
	}
	first = true
	if s := search(Snapshot{}, asks, 1).Steps[0]; s.Refused != RefusedTool {
		t.Errorf("without anything to remember the tool gives %+v", s)
	}
}

// TestAgentIsNotFooled has models and engines that never behave: every search ends, and tells how.
func TestAgentIsNotFooled(t *testing.T) {
	n := 0
	for name, says := range map[string]func(ActVars) (string, llm.Outcome){
		"a model that never stops": func(v ActVars) (string, llm.Outcome) {
			n++
			return fmt.Sprintf(`{"action":"web_support","query":"%s","subclaim_id":"s1","why":"more"}`, strings.Repeat(string(rune('a'+n%26)), 5+n)), ""
		},
		"a model that invents tools": func(ActVars) (string, llm.Outcome) {
			return `{"action":"shell","query":"rm -rf /","subclaim_id":"s1","why":"why not"}`, ""
		},
		"a model that wants calc for ever": func(ActVars) (string, llm.Outcome) {
			n++
			return fmt.Sprintf(`{"action":"calc","query":"%d + 1","subclaim_id":"s1","why":"more"}`, n), ""
		},
		"a model that writes a page of HTML": func(ActVars) (string, llm.Outcome) { return "<html><body>502 Bad Gateway</body></html>", "" },
		"a model that writes half an object": func(ActVars) (string, llm.Outcome) { return `{"action":"web_support","query":"Mar`, "" },
		"a model that takes it apart for ever": func(ActVars) (string, llm.Outcome) {
			return `{"action":"decompose","query":"","subclaim_id":"","why":""}`, ""
		},
		"a model that speaks of other statements": func(ActVars) (string, llm.Outcome) {
			return `{"action":"web_support","query":"x y","subclaim_id":"s99","why":""}`, ""
		},
		"a model whose calls are cut off": func(ActVars) (string, llm.Outcome) { return "", llm.OutcomeTruncated },
	} {
		for _, l := range []*library{bridgeLibrary(), {empty: true}, {fails: &APIError{API: "library", Reason: ReasonBadRequest}}} {
			d := &director{says: says}
			trace, err := l.explore(t, d, bridge, nil)
			var unanswered *UnansweredError
			if l.fails != nil && errors.As(err, &unanswered) && d.asks <= 8+30 {
				continue
			}
			if err != nil || trace.Stop == "" || len(trace.Steps) > 8 || d.asks > 8+30 {
				t.Errorf("%s ends with %q, %v after %d steps and %d calls", name, trace.Stop, err, len(trace.Steps), d.asks)
			}
			for _, s := range trace.Steps {
				if s.Outcome == "" || s.By == "guard" && s.Refused == "" {
					t.Errorf("%s: step without an outcome or a reason: %+v", name, s)
				}
			}
		}
	}
}
