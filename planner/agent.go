package planner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

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

// Reasons why a result of a tool is not kept.
const (
	DropKnown     = "known"                // another step found it
	DropLate      = "after_as_of"          // published after the claim's as-of date
	DropFactCheck = "leak: fact_check"     // gives the verdict
	DropMirror    = "leak: dataset_mirror" // republishes corpora
	DropUnread    = "unread: "             // followed by why its page gives no document
	DropFull      = "cap: documents of the claim"
	DropOther     = "irrelevant" // about something else, whichever statement it was read for
)

// Flags of evidence that an agentic search kept.
const (
	FlagFactCheck = "fact_check_article" // it gives a verdict on claims
	FlagUndated   = "undated"            // nothing tells whether it is older than the as-of date

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

// An agent is one search under way.
type agent struct {
	env   Env
	s     Settings
	claim corpus.Claim
	tools []Tool // that may be used
	st    state
	trace corpus.Trace
}

// explore searches for a claim's evidence step by step. It is a function of the claim, the settings and
// what model and engines answer: run again over stored answers it takes the same steps and pays nothing.
func explore(ctx context.Context, env Env, s Settings, c corpus.Claim) (corpus.Trace, error) {
	if model, read := env.Model, env.Read; model == nil || read == nil {
		return corpus.Trace{}, fmt.Errorf("plan %s: the agentic search needs a model and a reader of documents", c.ID)
	}
	a := &agent{env: env, s: s, claim: c}
	a.trace = corpus.Trace{ClaimID: c.ID, Policy: s.Policy, AsOf: env.AsOf, Queries: []string{}, Candidates: []corpus.Candidate{}}
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
	a.trace.Subclaims = a.st.subclaims
	a.trace.Evidence = a.st.items
	a.trace.Candidates = a.candidates()
	return a.trace, nil
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
	own, found := recommend(view)
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
	if refused := a.refuse(wanted); refused != "" {
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
		parts, call, err := evidence.Subclaims(ctx, a.env.model(&a.st), a.s.Agent.Analysis, a.claim)
		if err = a.outcome(&s, err); err != nil {
			return err
		}
		a.pay(call)
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
		find, err := a.find(ctx, tool, *s, r, corpus.Hit{Variant: len(a.trace.Queries) - 1, Rank: i + 1, Source: a.s.Agent.engine(tool.Name)})
		if err != nil {
			return err
		}
		s.Results = append(s.Results, find)
	}
	return nil
}

// find reads one result for the subclaim of the step, unless it is to be dropped.
func (a *agent) find(ctx context.Context, tool Tool, s corpus.Step, r Result, hit corpus.Hit) (corpus.Find, error) {
	id, address, reason := canonical(r, nil)
	hit.Via = r.Via
	f := corpus.Find{DocumentID: id, URL: address, Reason: cmp.Or(r.Drop, reason)}
	if f.Reason == "" {
		f.Reason = a.leak(tool, address)
	}
	if f.Reason != "" {
		a.st.note(f, hit)
		return f, nil
	}
	doc, known := a.st.document(id)
	if !known {
		if len(a.st.documents) >= a.s.Agent.MaxDocuments {
			f.Reason = DropFull
			a.st.note(f, hit)
			return f, nil
		}
		var err error
		if doc, err = a.env.Read(ctx, id, address); err != nil {
			var excluded *corpus.ExcludedError
			if !errors.As(err, &excluded) {
				return f, fmt.Errorf("read %s: %w", id, err)
			}
			f.Reason = DropUnread + excluded.Reason
			a.st.note(f, hit)
			return f, nil
		}
		if f.Reason = a.unfit(doc); f.Reason != "" {
			a.st.note(f, hit)
			return f, nil
		}
	}
	a.st.add(doc, hit)
	item, err := evidence.Read(ctx, a.env.model(&a.st), a.s.Agent.Analysis, a.st.matter(s.Subclaim), doc)
	var failed *evidence.Failure
	switch {
	case errors.As(err, &failed):
		item = corpus.Evidence{DocumentID: doc.ID, SubclaimID: s.Subclaim, Stance: corpus.Neutral, Attribution: corpus.AttributionNone,
			Temporal: corpus.FitUnknown, SourceClass: evidence.ClassOf(doc).Name, Flags: []string{flagUnread + failed.Outcome}, Call: failed.Call}
	case err != nil:
		return f, err
	}
	a.pay(item.Call)
	if item.SourceClass == factChecker {
		item.Flags = corpus.AddFlag(item.Flags, FlagFactCheck)
	}
	if a.trace.AsOf != "" && doc.PublishedAt == "" {
		item.Flags = corpus.AddFlag(item.Flags, FlagUndated)
	}
	a.st.read(item)
	f.Kept = true
	if known {
		f.Reason = DropKnown
	}
	return f, nil
}

// unread reports whether the model gave no analysis of a document: nobody knows what it says.
func unread(e corpus.Evidence) bool {
	return slices.ContainsFunc(e.Flags, func(f string) bool { return strings.HasPrefix(f, flagUnread) })
}

// leak drops addresses that give the answer away.
func (a *agent) leak(tool Tool, address string) string {
	domain := corpus.RegistrableDomain(corpus.Host(address))
	switch {
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
	if a.trace.AsOf != "" && d.PublishedAt != "" && d.PublishedAt[:min(len(d.PublishedAt), len(a.trace.AsOf))] > a.trace.AsOf {
		return DropLate
	}
	return ""
}

// outcome turns an error of one action into the outcome of its step. What may pass by itself fails the
// claim, which is then tried again by the next build: a claim must not end with less evidence because an
// engine was down. What ends the run does.
func (a *agent) outcome(s *corpus.Step, err error) error {
	var class interface{ FailureClass() string }
	var bad *ToolError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &bad):
		s.Outcome = "failed: " + bad.Reason
		s.Answer = bad.Err.Error()
		return nil
	case errors.As(err, &class) && (class.FailureClass() == "permanent" || class.FailureClass() == "blocked"):
		s.Outcome = "failed: " + class.FailureClass()
		s.Answer = err.Error()
		return nil
	}
	return err
}

func (a *agent) pay(call string) {
	if call != "" && !slices.Contains(a.trace.Calls, call) {
		a.trace.Calls = append(a.trace.Calls, call)
	}
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

// metered counts the tokens of a claim's calls.
type metered struct {
	Model
	st *state
}

func (m metered) Complete(ctx context.Context, q llm.Request) (llm.Reply, error) {
	reply, err := m.Model.Complete(ctx, q)
	m.st.tokens += reply.Usage.Prompt + reply.Usage.Completion
	return reply, err
}

func (env Env) model(st *state) Model { return metered{env.Model, st} }
