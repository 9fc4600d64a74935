package planner

import (
	"context"
	"fmt"
	"strings"

	"assay/corpus"
)

// A Tool is one action of the agentic search (GPE, III-B). A tool either searches, and gives results, or
// answers by itself.
type Tool struct {
	Name    string
	Version int
	Doc     string // what it is good for; the model that chooses reads it

	Proven    string // captured, where recorded replies of its engines drive it, or documented
	Reference string

	// Side is the stance that the tool looks for; neutral for one that takes what comes.
	Side corpus.Stance
	// Source is the kind of source that it searches, by which sources complement each other; "" for a tool
	// that answers by itself.
	Source string

	// Ready reports whether the tool can be used under these settings; nil means always.
	Ready func(Env, Settings) bool
	// Run takes the action. A failing engine is an error and never an empty answer.
	Run func(context.Context, Env, Settings, Ask) (Observation, error)
}

// Tools lists the tools of the agentic search by name.
var Tools = []Tool{
	arxivTool,
	calcTool,
	decomposeTool,
	factcheckTool,
	memoryTool,
	newsTool,
	redditTool,
	stopTool,
	todayTool,
	webRefuteTool,
	webSupportTool,
	wikipediaTool,
	xTool,
}

// ToolNamed finds a tool; the error names the known ones.
func ToolNamed(name string) (Tool, error) {
	var known []string
	for _, t := range Tools {
		if t.Name == name {
			return t, nil
		}
		known = append(known, t.Name)
	}
	return Tool{}, fmt.Errorf("tool %q is unknown; known are %s", name, strings.Join(known, ", "))
}

// Computes reports whether a tool answers with a fact that it works out by itself: a sum, a date.
func Computes(name string) bool { return name == calcTool.Name || name == todayTool.Name }

// searches reports whether a tool gives results.
func (t Tool) searches() bool { return t.Source != "" }

// An Ask is what a tool is asked.
type Ask struct {
	Claim corpus.Claim
	Query string
	AsOf  string // 2006-01-02; "" for none
}

// An Observation is what a tool gave back.
type Observation struct {
	Results []Result
	Answer  string
}

// searchWith returns the Run of a tool that searches with an engine, restricted to domains or kinds of
// documents.
func searchWith(tool string, shape func(Settings, *Query)) func(context.Context, Env, Settings, Ask) (Observation, error) {
	return func(ctx context.Context, env Env, s Settings, a Ask) (Observation, error) {
		engine, err := BackendNamed(s.Agent.engine(tool))
		if err != nil {
			return Observation{}, fmt.Errorf("use %s: %w", tool, err)
		}
		q := Query{Text: a.Query, K: s.Agent.PerAction, Subreddits: s.Subreddits, Language: s.Language}
		shape(s, &q)
		if engine.Dates {
			q.To = a.AsOf // other engines' results are held against it when they are read
		}
		found, err := engine.Find(ctx, env, q)
		if err != nil {
			return Observation{}, fmt.Errorf("use %s with %q: %w", tool, a.Query, err)
		}
		return Observation{Results: found[:min(len(found), s.Agent.PerAction)]}, nil
	}
}

// hasEngine is the Ready of a tool that needs an engine.
func hasEngine(tool string) func(Env, Settings) bool {
	return func(_ Env, s Settings) bool { return s.Agent.engine(tool) != "" }
}
