package planner

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"assay/corpus"
	"assay/llm"
)

// ActVars is what the act template and its builtin answer read: what the planner sees of a search
// (methods 3.13).
type ActVars struct {
	Claim     string         `json:"claim"`
	Speaker   string         `json:"speaker,omitzero"`
	Date      string         `json:"date,omitzero"`
	Category  string         `json:"category,omitzero"`
	Whole     bool           `json:"whole"` // the claim was not taken apart yet
	Subclaims []ActSubclaim  `json:"subclaims"`
	Sources   map[string]int `json:"sources"` // kept documents by class of source
	Gaps      []string       `json:"gaps"`
	Last      []ActTrial     `json:"last"` // the last ten actions, oldest first
	Answers   []string       `json:"answers"`
	Tools     []ActTool      `json:"tools"`
	Left      int            `json:"actions_left"`
}

// ActSubclaim is one statement with what is known about it.
type ActSubclaim struct {
	ID       string `json:"id"`
	Text     string `json:"text"`
	Status   string `json:"status"` // open, resolved, or spent: no search is left for it
	Supports int    `json:"supports"`
	Refutes  int    `json:"refutes"`
	Neutral  int    `json:"neutral"`
}

// ActTrial is an action that was taken.
type ActTrial struct {
	Action   string `json:"action"`
	Query    string `json:"query,omitzero"`
	Subclaim string `json:"subclaim_id,omitzero"`
}

// ActTool is a tool that may be used now.
type ActTool struct {
	Name   string        `json:"name"`
	Doc    string        `json:"doc"`
	Source string        `json:"source,omitzero"`
	Side   corpus.Stance `json:"side,omitzero"`
	Used   int           `json:"used"`
}

// A choice is what to do next.
type choice struct {
	Action   string `json:"action"`
	Query    string `json:"query"`
	Subclaim string `json:"subclaim_id"`
	Why      string `json:"why"`
}

// Act asks for the next action.
var Act = llm.MustLoadTemplate(prompts, llm.Template{
	Name:    "act",
	Version: 2,
	Schema: json.RawMessage(`{"type":"object","properties":{"action":{"type":"string","enum":["` + strings.Join(toolNames(), `","`) + `"]},"query":{"type":"string"},"subclaim_id":{"type":"string"},"why":{"type":"string"}},` +
		`"required":["action","query","subclaim_id","why"],"additionalProperties":false}`),
	Builtin:        builtinAct,
	BuiltinVersion: 2,
})

// toolNames are the actions that a reply may name: an endpoint that constrains replies gives no other.
func toolNames() []string {
	names := make([]string, len(Tools))
	for i, t := range Tools {
		names[i] = t.Name
	}
	return names
}

func builtinAct(vars any) (json.RawMessage, error) {
	v, ok := vars.(ActVars)
	if !ok {
		return nil, fmt.Errorf("choose an action: variables are %T", vars)
	}
	c, found := recommend(v)
	if !found {
		c = choice{Action: stopTool.Name, Why: "no tool is left that could find more"}
	}
	return json.Marshal(c)
}

// choose asks the model. A reply that is no answer chooses nothing, and the guard goes on.
func (a *agent) choose(ctx context.Context, view ActVars) (choice, string, error) {
	reply, err := a.env.model(&a.st).Complete(ctx, llm.Request{
		Role: "plan", Endpoint: a.s.Endpoint, Model: a.s.Model, Template: Act, Vars: view,
		Temperature: a.s.Temperature, TopP: a.s.TopP, Seed: a.s.Seed, MaxTokens: a.s.MaxTokens,
	})
	if err != nil {
		return choice{}, "", fmt.Errorf("choose an action: %w", err)
	}
	if reply.Outcome != llm.OutcomeAnswered {
		return choice{Action: "reply: " + string(reply.Outcome)}, reply.Call, nil
	}
	var c choice
	if err := json.Unmarshal(reply.JSON, &c); err != nil {
		return choice{}, reply.Call, fmt.Errorf("choose an action: %w", err) // unreachable: it fits the schema
	}
	c.Action, c.Query = strings.TrimSpace(c.Action), corpus.Space(c.Query)
	switch c.Action {
	case stopTool.Name, decomposeTool.Name, todayTool.Name: // are about the claim
		c.Subclaim = ""
	default:
		if c.Subclaim == "" && len(a.st.subclaims) == 1 {
			c.Subclaim = a.st.subclaims[0].ID
		}
	}
	return c, reply.Call, nil
}

// Reasons why a choice is not followed.
const (
	RefusedReply    = "no_answer"         // the model gave none, or named a tool that there is not
	RefusedTool     = "unusable_tool"     // one that cannot be used now
	RefusedSubclaim = "unknown_subclaim"  // or one that is spent
	RefusedEmpty    = "no_query"          // a search for nothing
	RefusedRepeat   = "repeated_query"    // searched before, in these or nearly these words
	RefusedEarly    = "evidence_too_thin" // stop before the evidence suffices and a side was never searched
	RefusedSums     = "no_expression"     // calc without anything to calculate
	RefusedLong     = "query_too_long"    // a query that no engine takes
	RefusedAgain    = "answered_before"   // a tool that answers by itself gave its answer
	RefusedEnough   = "evidence_suffices" // a search when every subclaim is resolved and no gap is left
	maxRepeats      = 1                   // a second repetition ends the search
	maxQueryChars   = 300                 // more than any engine reads
	sameQuery       = 0.9                 // likeness from which two queries are one (methods 3.13)
)

// refuse says why a choice is not to be followed, or "".
func (a *agent) refuse(c choice) string {
	if strings.HasPrefix(c.Action, "reply: ") {
		return RefusedReply
	}
	at := slices.IndexFunc(a.tools, func(t Tool) bool { return t.Name == c.Action })
	if at < 0 || a.st.broken[c.Action] {
		return RefusedTool
	}
	switch t := a.tools[at]; {
	case t.Name == stopTool.Name:
		if !a.st.sufficient() && a.canSearch() {
			return RefusedEarly
		}
		return ""
	case t.Name == decomposeTool.Name:
		if a.st.decomposed {
			return RefusedAgain
		}
		return ""
	case !t.searches() && a.st.calls(t.Name) > 0 && (t.Name != calcTool.Name || a.repeats(t, c.Query)):
		return RefusedAgain
	case t.Name == todayTool.Name:
		return ""
	case t.Name == calcTool.Name:
		if !strings.ContainsAny(c.Query, "0123456789") {
			return RefusedSums
		}
		return ""
	case c.Query == "":
		return RefusedEmpty
	case len([]rune(c.Query)) > maxQueryChars:
		return RefusedLong
	case a.repeats(t, c.Query):
		return RefusedRepeat
	case !slices.ContainsFunc(a.st.subclaims, func(s corpus.Subclaim) bool { return s.ID == c.Subclaim }),
		a.st.searches(c.Subclaim) >= a.s.Agent.PerSubclaim:
		return RefusedSubclaim
	}
	return ""
}

// recommended is the choice by rule that repeats nothing. The planner sees the last actions alone, the guard all of them.
func (a *agent) recommended(view ActVars) (choice, bool) {
	for {
		own, found := recommend(view)
		if !found {
			return own, false
		}
		if refused := a.refuse(own); refused != RefusedRepeat && refused != RefusedAgain {
			return own, true
		}
		view.Tools = slices.DeleteFunc(slices.Clone(view.Tools), func(t ActTool) bool { return t.Name == own.Action })
	}
}

// repeats reports whether a tool was asked this before, or nearly this.
func (a *agent) repeats(t Tool, query string) bool { return askedBefore(a.st.tried, t.Name, query) }

func askedBefore(tried []trial, tool, query string) bool {
	var want []float32
	for i := range tried {
		b := &tried[i]
		if b.tool.Name != tool {
			continue
		}
		if strings.EqualFold(b.query, query) {
			return true
		}
		if want == nil {
			want = llm.HashEmbed(query, 0)
		}
		if b.vector == nil {
			b.vector = llm.HashEmbed(b.query, 0)
		}
		likeness := 0.0
		for i, v := range b.vector {
			likeness += float64(v) * float64(want[i])
		}
		if likeness > sameQuery {
			return true
		}
	}
	return false
}

// canSearch reports whether a search is left for a subclaim whose evidence does not suffice.
func (a *agent) canSearch() bool {
	return slices.ContainsFunc(a.st.subclaims, func(s corpus.Subclaim) bool {
		return !a.st.resolved(s.ID) && a.st.searches(s.ID) < a.s.Agent.PerSubclaim
	}) && slices.ContainsFunc(a.tools, func(t Tool) bool { return t.searches() && !a.st.broken[t.Name] })
}

// view is the search as the planner sees it.
func (a *agent) view() ActVars {
	items := a.st.items
	v := ActVars{
		Claim: corpus.Space(a.claim.Text), Speaker: corpus.Space(a.claim.Speaker), Date: a.claim.StatedDate, Category: string(a.claim.Category),
		Whole: !a.st.decomposed, Sources: map[string]int{}, Gaps: []string{}, Last: []ActTrial{},
		Answers: append([]string{}, a.st.answers...), Left: a.s.Agent.MaxActions - len(a.trace.Steps),
	}
	for _, c := range a.st.subclaims {
		s := ActSubclaim{ID: c.ID, Text: c.Text, Status: "open",
			Supports: independent(items, c.ID, corpus.Supports), Refutes: independent(items, c.ID, corpus.Refutes)}
		for _, e := range items {
			if e.SubclaimID == c.ID && !e.Usable() {
				s.Neutral++
			}
		}
		switch {
		case a.st.resolved(c.ID):
			s.Status = "resolved"
		case a.st.searches(c.ID) >= a.s.Agent.PerSubclaim:
			s.Status = "spent"
		}
		v.Subclaims = append(v.Subclaims, s)
		v.Gaps = append(v.Gaps, a.gaps(items, s)...)
	}
	primary := false
	for _, d := range a.st.documents {
		for _, e := range items {
			if e.DocumentID == d.ID {
				v.Sources[e.SourceClass]++
				primary = primary || e.Attribution == corpus.AttributionPrimary || e.SourceClass == "official"
				break
			}
		}
	}
	if !primary && len(a.st.documents) > 0 {
		v.Gaps = append(v.Gaps, "no primary source yet")
	}
	for _, t := range a.st.tried[max(0, len(a.st.tried)-10):] {
		v.Last = append(v.Last, ActTrial{t.tool.Name, t.query, t.subclaim})
	}
	for _, t := range a.tools {
		if a.st.broken[t.Name] || t.Name == decomposeTool.Name && a.st.decomposed || t.Name == todayTool.Name && (a.st.asOf == "" || a.st.calls(t.Name) > 0) {
			continue
		}
		v.Tools = append(v.Tools, ActTool{t.Name, t.Doc, t.Source, t.Side, a.st.calls(t.Name)})
	}
	return v
}

// gaps says what is missing for a subclaim.
func (a *agent) gaps(items []corpus.Evidence, s ActSubclaim) []string {
	var out []string
	if s.Status == "resolved" {
		return nil
	}
	if !a.st.attempted(s.ID, corpus.Supports) {
		out = append(out, s.ID+": support was not searched for")
	}
	if !a.st.attempted(s.ID, corpus.Refutes) {
		out = append(out, s.ID+": refutation was not searched for")
	}
	switch {
	case s.Supports > 0 && s.Refutes == 0:
		out = append(out, s.ID+": one-sided, nothing refutes it yet")
	case s.Refutes > 0 && s.Supports == 0:
		out = append(out, s.ID+": one-sided, nothing supports it yet")
	}
	if n := independent(items, s.ID, ""); n < enough {
		out = append(out, fmt.Sprintf("%s: %d of %d independent items", s.ID, n, enough))
	}
	return out
}

var (
	// relativeTime is what only a date makes sense of.
	relativeTime = regexp.MustCompile(`(?i)\b(?:today|now|currently|this (?:year|month|week)|so far|right now|at the moment|to date|last (?:year|month|week))\b`)
	compound     = regexp.MustCompile(`(?i)(?:;|\band\b|\bbut\b|\bwhile\b|\bwhereas\b|[.!?] +\p{Lu})`)
	learned      = regexp.MustCompile(`(?i)\b(?:study|studies|vaccin\w*|virus\w*|cancer|climate|warming|carbon|species|planet|genetic\w*|protein\w*|drug|dose|doses|trial|scientists?|researchers?|emissions?|radiation|molecul\w*)\b`)
	shareOf      = regexp.MustCompile(`(?i)(\d[\d,.]*) ?(?:%|percent) of (?:the |its |his |her |their |all )?(\d[\d,.]*(?: (?:thousand|million|billion|trillion))?)`)
	fromTo       = regexp.MustCompile(`(?i)from \$?(\d[\d,.]*(?: (?:thousand|million|billion|trillion))?)(?: \p{L}+){0,3} to \$?(\d[\d,.]*(?: (?:thousand|million|billion|trillion))?)`)
	outOf        = regexp.MustCompile(`(?i)(\d[\d,.]*) (?:out of|of every|in every) (\d[\d,.]*)`)
	timesSum     = regexp.MustCompile(`(\d[\d,.]*) ?(?:times|x|×) ?(\d[\d,.]*)`)
)

// expression finds arithmetic that a statement makes, "" for none.
func expression(text string) string {
	trim := func(s string) string { return strings.TrimRight(s, ".,") }
	if m := fromTo.FindStringSubmatch(text); m != nil {
		return "change from " + trim(m[1]) + " to " + trim(m[2])
	}
	if m := shareOf.FindStringSubmatch(text); m != nil {
		return trim(m[1]) + "% of " + trim(m[2])
	}
	if m := outOf.FindStringSubmatch(text); m != nil {
		return trim(m[1]) + " / " + trim(m[2]) + " in %"
	}
	if m := timesSum.FindStringSubmatch(text); m != nil {
		return trim(m[1]) + " * " + trim(m[2])
	}
	return ""
}

// recommend is the choice by rule: what the guard takes where the model's may not be followed, and what
// the builtin model answers. It prefers sources that were not asked yet, looks for the side that is
// missing, and goes on with the first statement whose evidence does not suffice.
func recommend(v ActVars) (choice, bool) {
	usable := map[string]ActTool{}
	for _, t := range v.Tools {
		usable[t.Name] = t
	}
	has := func(name string) bool { _, ok := usable[name]; return ok }
	taken := func(action, query string) bool {
		return slices.ContainsFunc(v.Last, func(t ActTrial) bool { return t.Action == action && strings.EqualFold(t.Query, query) })
	}
	if v.Whole && has(decomposeTool.Name) && len(v.Last) == 0 && compound.MatchString(strings.TrimRight(v.Claim, ".!? ")) {
		return choice{Action: decomposeTool.Name, Why: "it may make several statements"}, true
	}
	if has(todayTool.Name) && relativeTime.MatchString(v.Claim) {
		return choice{Action: todayTool.Name, Why: "it speaks of a time that only a date makes sense of"}, true
	}
	open, spent := 0, 0
	for _, s := range v.Subclaims {
		if s.Status == "resolved" {
			continue
		}
		if e := expression(s.Text); e != "" && has(calcTool.Name) && !taken(calcTool.Name, e) {
			return choice{calcTool.Name, e, s.ID, "its numbers can be checked against each other"}, true
		}
		if s.Status == "spent" {
			spent++
			continue
		}
		open++
		if c, ok := search(v, s); ok {
			return c, true
		}
	}
	if open == 0 && has(stopTool.Name) {
		why := "every statement is resolved"
		if spent > 0 {
			why = "no search is left for what is open"
		}
		return choice{Action: stopTool.Name, Why: why}, true
	}
	return choice{}, false
}

// search picks the tool that a statement needs most.
func search(v ActVars, s ActSubclaim) (choice, bool) {
	asked := func(side corpus.Stance) bool {
		return slices.ContainsFunc(v.Last, func(t ActTrial) bool {
			return t.Subclaim == s.ID && slices.ContainsFunc(v.Tools, func(u ActTool) bool { return u.Name == t.Action && u.Side == side })
		})
	}
	type scored struct {
		tool  ActTool
		score int
		why   string
	}
	var best scored
	for _, t := range v.Tools {
		if t.Source == "" {
			continue
		}
		c := scored{tool: t, score: 10 - 4*t.Used, why: "a source that was not asked yet"}
		switch {
		case t.Side == corpus.Supports && !asked(t.Side):
			c.score += 7
			c.why = "support was not searched for"
		case t.Side == corpus.Refutes && !asked(t.Side):
			c.score += 6
			c.why = "refutation was not searched for"
		case t.Side == corpus.Refutes && s.Supports > s.Refutes, t.Side == corpus.Supports && s.Refutes > s.Supports:
			c.score += 5
			c.why = "the evidence is one-sided"
		}
		if t.Name == arxivTool.Name {
			if !learned.MatchString(s.Text) && v.Category != "science" && v.Category != "medical" {
				continue
			}
			c.score += 3
			c.why = "papers may settle it"
		}
		if v.Sources[t.Source] == 0 {
			c.score++
		}
		if query := queryFor(v, s, t); best.tool.Name == "" && query != "" || c.score > best.score && query != "" {
			best = c
		}
	}
	if best.tool.Name == "" {
		return choice{}, false
	}
	return choice{best.tool.Name, queryFor(v, s, best.tool), s.ID, best.why}, true
}

// queryFor writes the query of a tool that was used so many times: first the statement's own keywords,
// then other ones; "" if no other words are left.
func queryFor(v ActVars, s ActSubclaim, t ActTool) string {
	var tried []trial
	for _, l := range v.Last {
		tried = append(tried, trial{tool: Tool{Name: l.Action}, query: l.Query})
	}
	for _, words := range llm.Keywords(s.Text, MaxVariants, maxWords-1) {
		if q := strings.Join(words, " "); q != "" && !askedBefore(tried, t.Name, q) {
			return q
		}
	}
	return ""
}
