package assay

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	analysis "assay/annotate/evidence"
	"assay/corpus"
	"assay/fetch"
	"assay/pipeline"
	"assay/planner"
)

// AgentRecipe is how the agentic search goes about (methods 3.13); it counts under policy gpe alone.
// An empty list or a zero means the default that the planner's documentation gives.
type AgentRecipe struct {
	Tools   []string          `yaml:"tools" json:"tools"`     // assay list tools; empty means all that have an engine
	Engines map[string]string `yaml:"engines" json:"engines"` // backend by tool; "*" for those that are not named, "" for none

	MaxActions   int `yaml:"max_actions" json:"max_actions"`
	PerSubclaim  int `yaml:"per_subclaim" json:"per_subclaim"`
	PerAction    int `yaml:"per_action" json:"per_action"`
	MaxDocuments int `yaml:"max_documents" json:"max_documents"`
	MaxTokens    int `yaml:"max_tokens" json:"max_tokens"`

	Newsrooms    []string `yaml:"newsrooms" json:"newsrooms"`
	FactCheckers []string `yaml:"fact_checkers" json:"fact_checkers"`
	FactChecks   string   `yaml:"fact_checks" json:"fact_checks"` // flag or drop: what becomes of articles that give a verdict
	Mirrors      []string `yaml:"mirrors" json:"mirrors"`
	Late         string   `yaml:"late" json:"late,omitzero"`         // drop or flag: what becomes of documents that bear a date after as_of; empty means drop
	Gone         string   `yaml:"gone" json:"gone,omitzero"`         // wayback or commoncrawl: whose last capture up to as_of is read where a page is gone; empty reads nothing
	Comments     int      `yaml:"comments" json:"comments,omitzero"` // of a thread of Reddit, first usable ones, as documents beside its post; needs posts: oauth
	AsOf         string   `yaml:"as_of" json:"as_of"`                // none, claim, review or collected: the day after which nothing is evidence
}

// Values of AgentRecipe.AsOf (methods, decision 3).
const (
	AsOfNone      = "none"
	AsOfClaim     = "claim"     // when it was made
	AsOfReview    = "review"    // when it was checked
	AsOfCollected = "collected" // when its page was first retrieved; for imported rows, when it was checked
)

// agentic reports whether a build by this recipe searches step by step.
func (r Recipe) agentic() bool { return r.searches() && r.Planner.Policy == planner.PolicyAgent }

// asksRole reports whether a build by this recipe may ask the model of a role. Of those that come with every
// profile, that is not so of the one that writes queries: where none are written, or another role directs the search.
func (r Recipe) asksRole(name string) bool {
	_, directed := r.Models["plan"]
	switch {
	case name != "keywords":
		return true
	case r.agentic():
		return !directed
	}
	return r.searches() && r.Planner.Variants > 0
}

// role is the model of a role. The search that goes step by step is directed by the model that writes
// queries, and reads documents by the one that annotates, unless the recipe names others.
func (r Recipe) role(name string) Role {
	m, ok := r.Models[name]
	switch {
	case ok:
	case name == "plan":
		return r.Models["keywords"]
	case name == "analyse":
		return r.Models["annotate"]
	}
	return m
}

// checkAgent refuses settings of the agentic search that cannot work.
func (c *Config) checkAgent(bad func(key, format string, args ...any), oneOf func(key, value string, known ...string)) {
	a := c.Recipe.Planner.Agent
	oneOf("recipe.planner.agent.fact_checks", a.FactChecks, "flag", "drop")
	oneOf("recipe.planner.agent.as_of", a.AsOf, AsOfNone, AsOfClaim, AsOfReview, AsOfCollected)
	oneOf("recipe.planner.agent.late", cmp.Or(a.Late, "drop"), "drop", "flag")
	oneOf("recipe.planner.agent.gone", cmp.Or(a.Gone, string(planner.GoneWayback)), string(planner.GoneWayback), string(planner.GoneCommonCrawl))
	if a.Comments > 0 && c.Recipe.agentic() && c.Recipe.Planner.Posts != PostsOAuth {
		bad("recipe.planner.agent.comments", "threads are read from Reddit's interface: set recipe.planner.posts to %s, or comments to 0", PostsOAuth)
	}
	for key, domains := range map[string][]string{"newsrooms": a.Newsrooms, "fact_checkers": a.FactCheckers, "mirrors": a.Mirrors} {
		for _, d := range domains {
			if corpus.Host("https://"+d) != d || corpus.RegistrableDomain(d) != d || !strings.Contains(d, ".") {
				bad("recipe.planner.agent."+key, "%q is no domain like bbc.co.uk, without www and path: no address would be on it", d)
			}
		}
	}
	tools := names(planner.Tools, func(t planner.Tool) string { return t.Name })
	for _, t := range a.Tools {
		oneOf("recipe.planner.agent.tools", t, tools...)
	}
	for _, tool := range sortedKeys(a.Engines) {
		if tool != "*" {
			oneOf("recipe.planner.agent.engines", tool, tools...)
		}
		if engine := a.Engines[tool]; engine != "" {
			if why := planner.Retired(engine); why != "" {
				bad("recipe.planner.agent.engines."+tool, "%q cannot be asked any more: %s", engine, why)
			}
			oneOf("recipe.planner.agent.engines."+tool, engine, names(planner.Backends, func(b planner.Backend) string { return b.Name })...)
		}
	}
	for _, cap := range []struct {
		key     string
		n, most int
	}{
		{"max_actions", a.MaxActions, 1000}, {"per_subclaim", a.PerSubclaim, 1000}, {"per_action", a.PerAction, 100}, {"max_documents", a.MaxDocuments, 10_000},
		{"max_tokens", a.MaxTokens, 100_000_000}, {"comments", a.Comments, 500},
	} {
		if cap.n < 0 || cap.n > cap.most {
			bad("recipe.planner.agent."+cap.key, "%d is not between 0 and %d", cap.n, cap.most)
		}
	}
	if c.Recipe.agentic() {
		c.checkSearches(bad)
	}
}

// checkSearches refuses an agentic search that could look nowhere.
func (c *Config) checkSearches(bad func(key, format string, args ...any)) {
	a := c.Recipe.Planner.Agent
	var searching []string
	chosen, engine := len(a.Tools) == 0, false
	for _, t := range planner.Tools {
		if t.Source == "" || t.Name == "memory" { // which knows what others found
			continue
		}
		searching = append(searching, t.Name)
		if len(a.Tools) > 0 && !slices.Contains(a.Tools, t.Name) {
			continue
		}
		chosen = true
		e, own := a.Engines[t.Name]
		if !own {
			e = a.Engines["*"]
		}
		engine = engine || e != ""
	}
	switch {
	case !chosen:
		bad("recipe.planner.agent.tools", "%s search nothing: name at least one of %s, or none for all", strings.Join(a.Tools, ", "), strings.Join(searching, ", "))
	case !engine:
		bad("recipe.planner.agent.engines", "no tool has an engine, so nothing is searched: give \"*\", or one of %s, one of %s", strings.Join(searching, ", "),
			strings.Join(names(planner.Backends, func(b planner.Backend) string { return b.Name }), ", "))
	}
}

// engines are the backends that a build by this recipe may ask.
func (r Recipe) engines() []string {
	if !r.searches() {
		return nil
	}
	if !r.agentic() {
		return []string{r.Planner.Backend}
	}
	var out []string
	for _, tool := range sortedKeys(r.Planner.Agent.Engines) {
		if e := r.Planner.Agent.Engines[tool]; e != "" && !slices.Contains(out, e) {
			out = append(out, e)
		}
	}
	if gone := r.Planner.Agent.Gone; gone != "" && !slices.Contains(out, gone) {
		out = append(out, gone)
	}
	return out
}

// agentSettings is the planner's part of the recipe for the agentic search.
func (w *Workspace) agentSettings() planner.Settings {
	r := w.Config.Recipe
	a, m, reads := r.Planner.Agent, r.role("plan"), r.role("analyse")
	checks := planner.FactChecksFlag
	if a.FactChecks == "drop" {
		checks = planner.FactChecksDrop
	}
	checkers := a.FactCheckers
	if r.consults() { // whatever the list is for engines on the web
		checkers = slices.Concat(checkers, r.checkers())
		slices.Sort(checkers)
		checkers = slices.Compact(checkers)
	}
	late := planner.LateDrop
	if a.Late == "flag" {
		late = planner.LateFlag
	}
	return planner.Settings{
		Policy: r.Planner.Policy, Subreddits: r.Planner.Subreddits, Language: r.Planner.Language,
		Endpoint: m.Endpoint, Model: m.Model, Temperature: m.Temperature, TopP: m.TopP, Seed: m.Seed, MaxTokens: m.MaxTokens,
		Agent: &planner.Agent{
			Tools: a.Tools, Engines: a.Engines,
			MaxActions: a.MaxActions, PerSubclaim: a.PerSubclaim, PerAction: a.PerAction, MaxDocuments: a.MaxDocuments, MaxTokens: a.MaxTokens,
			Newsrooms: a.Newsrooms, FactCheckers: checkers, FactChecks: checks, Mirrors: a.Mirrors,
			Late: late, Gone: planner.Gone(a.Gone), FollowLinks: r.Planner.FollowLinks, Comments: a.Comments,
			Analysis: analysis.Settings{
				Endpoint: reads.Endpoint, Model: reads.Model, Temperature: reads.Temperature, TopP: reads.TopP, Seed: reads.Seed, MaxTokens: reads.MaxTokens,
			},
		},
	}
}

// planPrompts names the wording of everything that a search asks a model.
func (w *Workspace) planPrompts() string {
	if !w.Config.Recipe.agentic() {
		return w.promptHash(planner.Keywords.Name)
	}
	return w.promptHash(planner.Act.Name) + " " + w.promptHash(analysis.Decompose.Name) + " " + w.promptHash(analysis.Analyse.Name)
}

// asOf is the day after which the agentic search takes nothing for evidence of a claim, "" for none.
func (w *Workspace) asOf(ref corpus.Ref, c corpus.Claim) (string, error) {
	switch w.Config.Recipe.Planner.Agent.AsOf {
	case AsOfClaim:
		return c.StatedDate, nil
	case AsOfReview:
		return c.ReviewDate, nil
	case AsOfCollected:
		list, err := w.fetch.Exchanges(ref.URL)
		if err != nil || len(list) == 0 {
			return c.ReviewDate, err
		}
		return list[0].At.UTC().Format(time.DateOnly), nil
	}
	return "", nil
}

// readDocument is the document with an id: of the pool, by its id where the recipe reads posts so, or the
// page at its address. What cannot be had is an exclusion. A failure that says nothing about the page (it
// is not stored and nobody may be asked, its host wants to be left alone) is an error instead.
func (w *Workspace) readDocument(ctx context.Context, id, url string) (corpus.Document, error) {
	if p, ok, err := w.tables.Pool.Get(id); err != nil {
		return p.Document, err
	} else if ok {
		d := p.Document
		if p.Read {
			w.answered(ctx, poolDep+id, pipeline.SumOf(d))
		}
		// What Reddit says of a post since it was imported counts more than the import.
		if gone, err := w.withdrawn(id); err != nil || gone {
			return corpus.Document{}, cmp.Or(err, corpus.Exclude(fetch.ReasonGone, id))
		}
		return d, nil
	}
	if name, post := redditFullname(id); post && w.postReader() != nil {
		d, err := w.postReader().Document(ctx, name, nil)
		return d, unreadAs(err)
	}
	if b, ok := planner.SourceOf(id); ok {
		d, err := b.Document(ctx, w.planEnv(), id, nil)
		return d, unreadAs(err)
	}
	page, err := w.fetch.Get(ctx, fetch.Request{URL: url})
	if err != nil {
		return corpus.Document{}, unreadAs(goneAs(err))
	}
	free, err := w.readers.take(ctx)
	if err != nil {
		return corpus.Document{}, err
	}
	defer free()
	d, err := planner.PageDocument(page)
	return d, unreadAs(err)
}

// goneAs tells the pages that are gone by how: by their host, which no name server knows, or by a law, which
// is no reason to look elsewhere.
func goneAs(err error) error {
	var failed *fetch.Error
	if !errors.As(err, &failed) {
		return err
	}
	switch {
	case failed.Status == http.StatusUnavailableForLegalReasons:
		return corpus.Exclude(planner.ReasonLegal, err.Error())
	case failed.Reason == fetch.ReasonNoHost:
		return corpus.Exclude(planner.ReasonHostGone, err.Error())
	}
	return err
}

// thread reads a thread by the document id of its post.
func (w *Workspace) thread(ctx context.Context, id string) (planner.Thread, error) {
	name, _ := redditFullname(id)
	return w.reddit.Thread(ctx, name)
}

// unreadAs turns what a page or post is into an exclusion.
func unreadAs(err error) error {
	var excluded interface{ Excluded() string }
	var failed *fetch.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &excluded) && excluded.Excluded() != "":
		return corpus.Exclude(excluded.Excluded(), err.Error())
	case errors.As(err, &failed):
		switch failed.Reason {
		case fetch.ReasonNotStored, fetch.ReasonParked, fetch.ReasonHostDown, fetch.ReasonNoContact:
			return err
		}
		if failed.Err != nil && (errors.Is(failed.Err, context.Canceled) || errors.Is(failed.Err, context.DeadlineExceeded)) {
			return err
		}
		return corpus.Exclude(failed.Reason, err.Error())
	}
	return err
}

// WriteTrace writes the search of a claim, out of what Show gave, for people.
func WriteTrace(w io.Writer, id string, shown json.RawMessage) error {
	var p struct {
		Trace *corpus.Trace `json:"trace"`
		Items []struct {
			Stage string            `json:"stage"`
			Fail  *pipeline.Failure `json:"fail"`
		} `json:"items"`
	}
	if err := json.Unmarshal(shown, &p); err != nil {
		return fmt.Errorf("show %s: %w", id, err)
	}
	for _, item := range p.Items {
		if p.Trace == nil && kindOf(item.Stage) == KindPlan && item.Fail != nil {
			return fmt.Errorf("show %s: its search failed (%s): %s", id, item.Fail.Class, item.Fail.Reason)
		}
	}
	if p.Trace == nil {
		return fmt.Errorf("show %s: no search is stored for it; a claim (c_...) has one once a build planned it", id)
	}
	return planner.WriteTrace(w, *p.Trace)
}
