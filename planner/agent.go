package planner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"assay/annotate/evidence"
	"assay/corpus"
	"assay/llm"
)

// PolicyAgent is the agentic search of GPE (III-B): at each step a model looks at what is known and
// chooses the next tool and query, until the evidence suffices or the caps end.
const PolicyAgent = "gpe"

// Agent is the part of Settings that the agentic search reads. All of it shapes the data.
type Agent struct {
	Tools   []string          `json:"tools,omitzero"`   // names in Tools; empty means all that can be used
	Engines map[string]string `json:"engines,omitzero"` // backend by tool; "*" for those that are not named

	// Caps (methods 3.13). 0 means the default that stands behind each.
	MaxActions   int `json:"max_actions,omitzero"`   // of a claim: 8
	PerSubclaim  int `json:"per_subclaim,omitzero"`  // of those, searches for one subclaim: 4
	PerAction    int `json:"per_action,omitzero"`    // results of one search: 5
	MaxDocuments int `json:"max_documents,omitzero"` // of a claim: 30
	MaxTokens    int `json:"max_tokens,omitzero"`    // of all model calls for a claim, prompt and reply: 60,000

	Newsrooms    []string   `json:"newsrooms,omitzero"`     // registrable domains of the news tool; empty means BBC and NBC
	FactCheckers []string   `json:"fact_checkers,omitzero"` // of the factcheck tool; empty means PolitiFact
	FactChecks   FactChecks `json:"fact_checks,omitzero"`
	Mirrors      []string   `json:"mirrors,omitzero"` // registrable domains that republish corpora; never evidence
	Late         Late       `json:"late,omitzero"`
	Gone         Gone       `json:"gone,omitzero"`
	FollowLinks  bool       `json:"follow_links,omitzero"` // what a link post leads to is a document too
	Comments     int        `json:"comments,omitzero"`     // of a thread of Reddit, first ones with a usable body, that are documents beside its post: 0

	Analysis evidence.Settings `json:"analysis"`
}

// FactChecks says what becomes of articles that give a verdict on claims. They settle a claim by the
// answer that a verifier is later asked for.
type FactChecks string

// The values of FactChecks.
const (
	FactChecksFlag FactChecks = ""     // they are evidence and flagged
	FactChecksDrop FactChecks = "drop" // they are none
)

// Late says what becomes of documents that bear a date after the claim's as-of date.
type Late string

// The values of Late. A date of low confidence flags, whatever is set.
const (
	LateDrop Late = ""     // they are no evidence
	LateFlag Late = "flag" // they are evidence and flagged
)

// Gone says what takes the place of a page that is gone: answered with 404 or 410, or on a host that no
// name server knows any more. A refusal (403, 451, a paywall) is respected.
type Gone string

// The values of Gone.
const (
	GoneNothing Gone = ""        // nothing
	GoneWayback Gone = "wayback" // its last capture in the Wayback Machine up to the as-of date

	// The last capture up to then in the newest crawls of Common Crawl that begin before it.
	GoneCommonCrawl Gone = "commoncrawl"
)

// Reasons of an exclusion that Env.Read gives, as far as the search reacts to them.
const (
	ReasonPageGone = "gone"      // 404, 410 and the like
	ReasonHostGone = "host_gone" // no name server knows the host
	ReasonLegal    = "legal"     // 451: withheld for legal reasons
)

// Reasons why a result of a tool is not kept.
const (
	DropKnown     = "known"                // another step found it
	DropLate      = "after_as_of"          // published after the claim's as-of date; followed by the date and what told it
	DropFactCheck = "leak: fact_check"     // gives the verdict
	DropMirror    = "leak: dataset_mirror" // republishes corpora
	DropOwnSource = "leak: own_source"     // the claim was taken from it
	DropOwnCheck  = "leak: own_fact_check" // the review that the claim's own verdict is from
	DropUnread    = "unread: "             // followed by why its page gives no document
	DropFull      = "cap: documents of the claim"
	DropOther     = "irrelevant" // about something else, whichever statement it was read for
)

// Flags of evidence that an agentic search kept.
const (
	FlagFactCheck = "fact_check_article" // it gives a verdict on claims
	FlagUndated   = "undated"            // nothing tells whether it is older than the as-of date
	FlagLate      = "after_as_of"        // it bears a date after the as-of date, and is kept by policy or since the date is a weak one

	flagUnread = corpus.FlagUnread
)

// Reasons why a search ended.
const (
	StopSufficient = "sufficient"       // every subclaim has two independent usable items, and both sides were searched
	StopActions    = "max_actions"      // a cap
	StopDocuments  = "max_documents"    // a cap
	StopTokens     = "max_tokens"       // a cap
	StopRepeats    = "repeated_queries" // the model asked twice for what was searched already
	StopNothing    = "nothing_left"     // no tool is left that could find more
)

// engine is the backend that a tool searches with, "" for none.
func (a *Agent) engine(tool string) string {
	if a == nil {
		return ""
	}
	if e, ok := a.Engines[tool]; ok {
		return e
	}
	return a.Engines["*"]
}

// mirrors republish fact-checks and corpora made of them.
var mirrors = []string{"huggingface.co", "kaggle.com", "paperswithcode.com", "zenodo.org", "figshare.com"}

// MostCalls is how many calls of models a search under these settings takes at most: for what is chosen, read, and
// taken apart, without answers that are asked for again.
func (a Agent) MostCalls() int {
	a.complete()
	return a.MaxActions*(1+a.PerAction) + 1
}

func (a *Agent) complete() {
	for _, n := range []struct {
		value *int
		usual int
	}{{&a.MaxActions, 8}, {&a.PerSubclaim, 4}, {&a.PerAction, 5}, {&a.MaxDocuments, 30}, {&a.MaxTokens, 60_000}} {
		if *n.value <= 0 {
			*n.value = n.usual
		}
	}
	for _, l := range []struct {
		value *[]string
		usual []string
	}{{&a.Newsrooms, []string{"bbc.com", "bbc.co.uk", "nbcnews.com"}}, {&a.FactCheckers, []string{"politifact.com"}}, {&a.Mirrors, mirrors}} {
		if len(*l.value) == 0 {
			*l.value = l.usual
		}
	}
}

// A ToolError says that a tool could not do what it was asked. It is an outcome of the step.
type ToolError struct {
	Tool   string
	Reason string
	Err    error
}

func (e *ToolError) Error() string { return fmt.Sprintf("use %s: %v", e.Tool, e.Err) }

// Unwrap returns the cause.
func (e *ToolError) Unwrap() error { return e.Err }

// An UnansweredError says that no engine answered any search for a claim.
type UnansweredError struct {
	First corpus.Step // the first search
}

func (e *UnansweredError) Error() string {
	return "no search was answered; the first: " + e.First.Answer
}

// FailureClass tells that another run may succeed, once the engine is mended.
func (e *UnansweredError) FailureClass() string { return "transient" }

// A TooLongError says that the model refused every document that was found for a claim as longer than it reads. A claim
// must not end without evidence because its model is too small.
type TooLongError struct {
	Documents int
	First     error // of the first document; it names model and endpoint
}

func (e *TooLongError) Error() string {
	return fmt.Sprintf("each of the %d documents that were found is too long for the model that reads them: let recipe.models.analyse be one that reads more, "+
		"or let its server read more and build with --retry-failed; the first: %v", e.Documents, e.First)
}

// Unwrap returns the first refusal.
func (e *TooLongError) Unwrap() error { return e.First }

// FailureClass is permanent: the same request is refused again.
func (e *TooLongError) FailureClass() string { return "permanent" }

// FailureReason is the outcome of each document.
func (e *TooLongError) FailureReason() string { return evidence.TooLong }

// outcomeFailed begins the outcome of a step that failed; what follows says how.
const outcomeFailed = "failed: "

// An agent is one search under way.
type agent struct {
	env   Env
	s     Settings
	claim corpus.Claim
	tools []Tool // that may be used
	st    state
	trace corpus.Trace

	tooLong error // of the first document that the model refused as too long
}

// explore searches for a claim's evidence step by step. It is a function of the claim, the settings and
// what model and engines answer: run again over stored answers it takes the same steps and pays nothing.
func explore(ctx context.Context, env Env, s Settings, c corpus.Claim) (corpus.Trace, error) {
	if model, read := env.Model, env.Read; model == nil || read == nil {
		return corpus.Trace{}, fmt.Errorf("plan %s: the agentic search needs a model and a reader of documents", c.ID)
	}
	a := &agent{env: env, s: s, claim: c}
	a.trace = corpus.Trace{ClaimID: c.ID, Policy: s.Policy, AsOf: env.AsOf, Memory: env.Snapshot.ID, Queries: []string{}, Candidates: []corpus.Candidate{}}
	a.st = newState(c, env.AsOf)
	for _, t := range Tools {
		if (len(s.Agent.Tools) == 0 || slices.Contains(s.Agent.Tools, t.Name)) && (t.Ready == nil || t.Ready(env, s)) {
			a.tools = append(a.tools, t)
		}
	}
	for {
		if a.trace.Stop = a.over(); a.trace.Stop != "" {
			break
		}
		if err := a.step(ctx); err != nil {
			return corpus.Trace{}, fmt.Errorf("plan %s: %w", c.ID, err)
		}
		if a.trace.Stop != "" {
			break
		}
	}
	if err := cmp.Or(a.unanswered(), a.outgrown()); err != nil {
		return corpus.Trace{}, fmt.Errorf("plan %s: %w", c.ID, err)
	}
	a.trace.Subclaims = a.st.subclaims
	a.trace.Evidence = a.st.exhibits()
	a.trace.Candidates = a.candidates()
	a.trace.Calls = a.st.paid
	return a.trace, nil
}

// unanswered is the error of a search all of whose engines refused to search. That they found nothing says nothing
// about the claim.
func (a *agent) unanswered() error {
	if failed, searches := FailedSearches(a.trace); len(failed) > 0 && len(failed) == searches {
		return &UnansweredError{failed[0]}
	}
	return nil
}

// outgrown is the error of a search whose model refused every document as too long.
func (a *agent) outgrown() error {
	for _, e := range a.st.items {
		if !corpus.HasFlag(e.Flags, flagUnread+evidence.TooLong) {
			return nil
		}
	}
	if a.tooLong == nil {
		return nil
	}
	return &TooLongError{Documents: len(a.st.documents), First: a.tooLong}
}

// FailedSearches tells which searches of a trace were refused by their engines, and of how many.
func FailedSearches(t corpus.Trace) (failed []corpus.Step, searches int) {
	for _, s := range t.Steps {
		if tool, err := ToolNamed(s.Action); err != nil || !tool.searches() {
			continue
		}
		if searches++; strings.HasPrefix(s.Outcome, outcomeFailed) {
			failed = append(failed, s)
		}
	}
	return failed, searches
}

// over says why the search has to end before another step is taken, or "".
func (a *agent) over() string {
	switch caps := a.s.Agent; {
	case len(a.trace.Steps) >= caps.MaxActions:
		return StopActions
	case len(a.st.documents) >= caps.MaxDocuments:
		return StopDocuments
	case a.st.tokens >= caps.MaxTokens:
		return StopTokens
	}
	return ""
}

// step lets the model choose, holds the choice against the rules, and takes the action.
func (a *agent) step(ctx context.Context) error {
	view := a.view()
	own, found := a.recommended(view)
	if !found {
		a.trace.Stop = StopNothing
		if a.st.sufficient() {
			a.trace.Stop = StopSufficient
		}
		return nil
	}
	wanted, call, err := a.choose(ctx, view)
	if err != nil {
		return err
	}
	done := corpus.Step{Action: wanted.Action, Query: wanted.Query, Subclaim: wanted.Subclaim, Why: wanted.Why, By: "model", Call: call}
	refused := a.refuse(wanted)
	if tool, err := ToolNamed(wanted.Action); refused == "" && err == nil && tool.searches() && own.Action == stopTool.Name && a.st.sufficient() && len(view.Gaps) == 0 {
		refused = RefusedEnough
	}
	if refused != "" {
		if refused == RefusedRepeat {
			if a.st.repeats++; a.st.repeats > maxRepeats {
				a.trace.Stop = StopRepeats
				return nil
			}
		}
		done = corpus.Step{Action: own.Action, Query: own.Query, Subclaim: own.Subclaim, Why: own.Why, By: "guard", Call: call,
			Wanted: strings.TrimSpace(wanted.Action + " " + wanted.Query), Refused: refused}
	}
	return a.take(ctx, done)
}

// take takes one action and keeps it in the trace.
func (a *agent) take(ctx context.Context, s corpus.Step) error {
	s.Outcome = "done"
	switch s.Action {
	case stopTool.Name:
		a.trace.Stop = StopSufficient
		if !a.st.sufficient() {
			a.trace.Stop = StopNothing
		}
	case decomposeTool.Name:
		parts, _, err := evidence.Subclaims(ctx, a.env.model(&a.st), a.s.Agent.Analysis, a.claim)
		if err = a.outcome(&s, err); err != nil {
			return err
		}
		a.st.decompose(parts)
		s.Answer = fmt.Sprintf("%d statements", len(a.st.subclaims))
	default:
		if err := a.use(ctx, &s); err != nil {
			return err
		}
	}
	a.trace.Steps = append(a.trace.Steps, s)
	return a.st.settle()
}

// use runs a tool and reads what it found.
func (a *agent) use(ctx context.Context, s *corpus.Step) error {
	tool, err := ToolNamed(s.Action)
	if err != nil {
		return err // unreachable: the guard let it through
	}
	seen, err := tool.Run(ctx, a.env, a.s, Ask{Claim: a.claim, Query: s.Query, AsOf: a.trace.AsOf})
	a.st.used(tool, s.Subclaim, s.Query)
	if err != nil {
		failed := a.outcome(s, err)
		if failed == nil {
			a.st.broken[tool.Name] = true
		}
		return failed
	}
	s.Answer = seen.Answer
	if !tool.searches() {
		a.st.answers = append(a.st.answers, s.Action+": "+s.Answer)
		return nil
	}
	a.trace.Queries = append(a.trace.Queries, s.Query)
	if len(seen.Results) == 0 {
		s.Outcome = "empty"
	}
	for i, r := range seen.Results {
		finds, err := a.find(ctx, tool, *s, r, corpus.Hit{Variant: len(a.trace.Queries) - 1, Rank: i + 1, Source: a.source(tool)})
		if err != nil {
			return err
		}
		s.Results = append(s.Results, finds...)
	}
	return nil
}

// source names what a tool searches.
func (a *agent) source(tool Tool) string {
	if tool.Name == memoryTool.Name {
		return sourceMemory
	}
	return a.s.Agent.engine(tool.Name)
}

// A located document is one with the address at which it can be read again, or why it cannot be read.
type located struct {
	doc     corpus.Document
	address string
	reason  string
}

// find reads one result for the subclaim of the step, unless it is to be dropped, and what it brings along.
func (a *agent) find(ctx context.Context, tool Tool, s corpus.Step, r Result, hit corpus.Hit) ([]corpus.Find, error) {
	id, address, reason := canonical(r, nil)
	hit.Via = r.Via
	drop := func(reason string) ([]corpus.Find, error) {
		f := corpus.Find{DocumentID: id, URL: address, Reason: reason}
		a.st.note(f, hit)
		return []corpus.Find{f}, nil
	}
	if reason = cmp.Or(r.Drop, reason, a.leak(tool, address)); reason != "" {
		return drop(reason)
	}
	if a.s.Agent.Late == LateDrop && a.after(r.Published) {
		return drop(DropLate + ": the engine says " + r.Published)
	}
	if doc, known := a.st.document(id); known {
		f, err := a.weigh(ctx, s, located{doc: doc, address: address}, hit)
		return []corpus.Find{f}, err
	}
	if len(a.st.documents) >= a.s.Agent.MaxDocuments {
		return drop(DropFull)
	}
	main, err := a.reach(ctx, id, address)
	if err != nil {
		return nil, err
	}
	if main.reason != "" {
		return drop(main.reason)
	}
	beside, thread, err := a.beside(ctx, tool, main.doc)
	if err != nil {
		return nil, err
	}
	var out []corpus.Find
	for _, l := range append([]located{main}, beside...) {
		f, err := a.weigh(ctx, s, l, hit)
		if err != nil {
			return nil, err
		}
		out = append(out, f)
	}
	out[0].Thread = thread
	return out, nil
}

// reach reads the document at an address, or a capture of it where it is gone and the policy asks for one. The
// capture is a document by itself: two claims with different as-of dates may see different ones.
func (a *agent) reach(ctx context.Context, id, address string) (located, error) {
	var excluded *corpus.ExcludedError
	doc, err := a.env.Read(ctx, id, address)
	switch {
	case err == nil:
		return located{doc: doc, address: address}, nil
	case !errors.As(err, &excluded):
		return located{}, fmt.Errorf("read %s: %w", id, err)
	}
	lost := located{doc: corpus.Document{ID: id}, address: address, reason: DropUnread + excluded.Reason}
	if a.s.Agent.Gone == GoneNothing || excluded.Reason != ReasonPageGone && excluded.Reason != ReasonHostGone || !strings.HasPrefix(address, "http") {
		return lost, nil
	}
	archive := wayback
	if a.s.Agent.Gone == GoneCommonCrawl {
		archive = commoncrawl
	}
	captures, err := archive.Find(ctx, a.env, Query{Text: address, K: 1, To: a.trace.AsOf})
	var class interface{ FailureClass() string }
	switch {
	case errors.As(err, &class) && class.FailureClass() == "permanent":
		lost.reason += ", and no capture: the archive gives none of this site"
		return lost, nil
	case err != nil:
		return lost, fmt.Errorf("find a capture of %s: %w", address, err)
	case len(captures) == 0:
		lost.reason += ", and no capture of it"
		return lost, nil
	}
	capture := corpus.CanonicalURL(captures[0].URL)
	doc, err = a.env.Read(ctx, cmp.Or(captures[0].DocumentID, corpus.DocumentID(capture)), capture)
	switch {
	case err == nil:
		return located{doc: doc, address: capture}, nil
	case errors.As(err, &excluded):
		lost.reason += ", and its capture is unread: " + excluded.Reason
		return lost, nil
	case errors.As(err, &class) && class.FailureClass() == "permanent":
		lost.reason += ", and its capture cannot be read: " + err.Error()
		return lost, nil
	}
	return lost, fmt.Errorf("read the capture %s: %w", capture, err)
}

// beside are the documents that come with one: the article that a link post leads to, and the first comments
// of a thread, as the policy wants them, with what is told of the thread.
func (a *agent) beside(ctx context.Context, tool Tool, d corpus.Document) (out []located, told string, err error) {
	if target, reason := maskedUser(corpus.CanonicalURL(d.Outbound)); a.s.Agent.FollowLinks && d.Outbound != "" {
		id := corpus.DocumentID(target)
		if name, post := corpus.RedditFullname(target); post {
			id = corpus.RedditID(name)
		}
		l := located{doc: corpus.Document{ID: id}, address: target, reason: cmp.Or(reason, a.leak(tool, target))}
		if l.reason == "" {
			if l, err = a.reach(ctx, id, target); err != nil {
				return nil, "", err
			}
		}
		out = append(out, l)
	}
	if d.Kind != corpus.KindRedditPost || a.s.Agent.Comments == 0 || a.env.Thread == nil {
		return out, "", nil
	}
	thread, err := a.env.Thread(ctx, d.ID)
	var excluded interface{ Excluded() string }
	switch {
	case errors.As(err, &excluded) && excluded.Excluded() != "":
		return out, "", nil // its post was there a moment ago, from somewhere else
	case err != nil:
		return nil, "", fmt.Errorf("read the comments of %s: %w", d.ID, err)
	}
	n := 0
	for _, c := range thread.Comments {
		if ok, _ := Usable(c); ok && n < a.s.Agent.Comments {
			out = append(out, located{doc: c, address: c.URL})
			n++
		}
	}
	return out, thread.Told(), nil
}

// weigh reads a document for the subclaim of the step and keeps it, unless it cannot be evidence.
func (a *agent) weigh(ctx context.Context, s corpus.Step, l located, hit corpus.Hit) (corpus.Find, error) {
	doc := l.doc
	f := corpus.Find{DocumentID: doc.ID, URL: l.address, Reason: l.reason}
	_, known := a.st.document(doc.ID)
	if f.Reason == "" && !known {
		if f.Reason = a.unfit(doc); f.Reason == "" && len(a.st.documents) >= a.s.Agent.MaxDocuments {
			f.Reason = DropFull
		}
	}
	if f.Reason != "" {
		a.st.note(f, hit)
		return f, nil
	}
	recalled := a.st.recalled(doc.ID)
	a.st.add(doc, l.address, hit)
	if known && a.st.analysed(doc.ID, s.Subclaim) && (hit.Source == sourceMemory || !recalled) {
		// What was read for this statement is not read again, but for a recollection that is found on its own now.
		f.Kept, f.Reason = true, DropKnown
		return f, nil
	}
	item, err := evidence.Read(ctx, a.env.model(&a.st), a.s.Agent.Analysis, a.st.matter(s.Subclaim), doc)
	var failed *evidence.Failure
	switch {
	case errors.As(err, &failed):
		if failed.Outcome == evidence.TooLong {
			a.tooLong = cmp.Or(a.tooLong, err)
		}
		item = corpus.Evidence{DocumentID: doc.ID, SubclaimID: s.Subclaim, Stance: corpus.Neutral, Attribution: corpus.AttributionNone,
			Temporal: corpus.FitUnknown, SourceClass: evidence.ClassOf(doc).Name, Flags: []string{flagUnread + failed.Outcome}, Call: failed.Call}
	case err != nil:
		return f, err
	}
	if item.SourceClass == factChecker {
		item.Flags = corpus.AddFlag(item.Flags, FlagFactCheck)
	}
	switch {
	case a.trace.AsOf == "" || doc.CapturedAt != "" && !a.after(doc.CapturedAt):
	case doc.PublishedAt == "":
		item.Flags = corpus.AddFlag(item.Flags, FlagUndated)
	case a.after(doc.PublishedAt):
		item.Flags = corpus.AddFlag(item.Flags, FlagLate)
	}
	if a.st.recalled(doc.ID) {
		item.SourceClass = sourceMemory
		if item.Attribution == corpus.AttributionPrimary {
			item.Attribution = corpus.AttributionNone
		}
	}
	a.st.read(item)
	f.Kept = true
	if known {
		f.Reason = DropKnown
	}
	return f, nil
}

// after reports whether a date is after the as-of date. One that tells the year alone is held against the
// year.
func (a *agent) after(date string) bool {
	asOf := a.trace.AsOf
	n := min(len(date), len(asOf))
	return asOf != "" && date != "" && date[:n] > asOf[:n]
}

// unread reports whether the model gave no analysis of a document: nobody knows what it says.
func unread(e corpus.Evidence) bool {
	return slices.ContainsFunc(e.Flags, func(f string) bool { return strings.HasPrefix(f, flagUnread) })
}

// leak drops addresses that give the answer away, or are where the claim is from.
func (a *agent) leak(tool Tool, address string) string {
	domain := corpus.RegistrableDomain(corpus.Host(address))
	captured := address
	if _, original, ok := captureOf(address); ok {
		captured = original
	}
	switch {
	case a.claim.TakenFrom(captured):
		return DropOwnSource
	case a.claim.ReviewedAt(captured):
		return DropOwnCheck
	case slices.Contains(a.s.Agent.Mirrors, domain):
		return DropMirror
	case a.s.Agent.FactChecks == FactChecksDrop && evidence.ClassOf(corpus.Document{URL: address}).Name == factChecker:
		return DropFactCheck
	case tool.Name == newsTool.Name && !within(domain, a.s.Agent.Newsrooms):
		return DropElsewhere
	}
	return ""
}

// factChecker is the class of sources that give verdicts.
const factChecker = "fact_checker"

// unfit says why a document that was read cannot be evidence.
func (a *agent) unfit(d corpus.Document) string {
	if ok, reason := Usable(d); !ok {
		return dropUnusable + reason
	}
	switch {
	case a.claim.TakenFrom(d.URL): // its address led on to it
		return DropOwnSource
	case a.claim.ReviewedAt(d.URL):
		return DropOwnCheck
	case a.after(d.CapturedAt):
		return DropLate + ": captured " + d.CapturedAt // the archive led on to another capture
	case !a.after(d.PublishedAt), a.s.Agent.Late == LateFlag, d.Confidence == corpus.ConfidenceLow:
		return ""
	}
	told := "its source"
	if d.PublishedBy != "" {
		told = fmt.Sprintf("%s, confidence %s", d.PublishedBy, d.Confidence)
	}
	return fmt.Sprintf("%s: published %s by %s", DropLate, d.PublishedAt[:min(len(d.PublishedAt), len(time.DateOnly))], told)
}

// outcome turns an error of one action into the outcome of its step. What may pass by itself fails the
// claim, which is then tried again by the next build: a claim must not end with less evidence because an
// engine was down. What ends the run does.
func (a *agent) outcome(s *corpus.Step, err error) error {
	var class interface{ FailureClass() string }
	var stops interface{ StopsRun() bool }
	var bad *ToolError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &stops) && stops.StopsRun(): // no key, no account, no settings
		return err
	case errors.As(err, &bad):
		s.Outcome = outcomeFailed + bad.Reason
		s.Answer = bad.Err.Error()
		return nil
	case errors.As(err, &class) && (class.FailureClass() == "permanent" || class.FailureClass() == "blocked"):
		s.Outcome = outcomeFailed + class.FailureClass()
		s.Answer = err.Error()
		return nil
	}
	return err
}

// candidates lists what was found, kept documents first, each in the order in which it came up.
func (a *agent) candidates() []corpus.Candidate {
	relevant := map[string]bool{}
	for _, e := range a.st.items {
		relevant[e.DocumentID] = relevant[e.DocumentID] || e.Relevance > 0 || unread(e)
	}
	for i, c := range a.st.found {
		if c.Kept && !relevant[c.DocumentID] {
			a.st.found[i].Kept, a.st.found[i].Reason = false, DropOther
		}
	}
	out := []corpus.Candidate{}
	for _, kept := range []bool{true, false} {
		for _, c := range a.st.found {
			if c.Kept == kept {
				out = append(out, c)
			}
		}
	}
	return out
}

// metered counts the tokens of a claim's calls, and names every one that was paid for.
type metered struct {
	Model
	st *state
}

func (m metered) Complete(ctx context.Context, q llm.Request) (llm.Reply, error) {
	reply, err := m.Model.Complete(ctx, q)
	m.st.tokens += reply.Usage.Prompt + reply.Usage.Completion
	for _, call := range reply.Calls {
		if !slices.Contains(m.st.paid, call) {
			m.st.paid = append(m.st.paid, call)
		}
	}
	return reply, err
}

func (env Env) model(st *state) Model { return metered{env.Model, st} }
