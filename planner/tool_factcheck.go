package planner

import "assay/corpus"

// FactCheckTool is the name of the tool that searches what fact-checkers wrote.
const FactCheckTool = "factcheck"

// factcheckTool searches what fact-checkers wrote. Under a policy that keeps their verdicts out of the
// evidence its results are dropped again, see Agent.FactChecks.
var factcheckTool = Tool{
	Name:      FactCheckTool,
	Version:   1,
	Doc:       "search of fact-checkers' own articles",
	Proven:    "captured",
	Reference: "recorded replies of Google's Fact Check Tools, and of the web searches that it is kept to fact-checkers with",
	Source:    "fact_checker",
	Ready: func(e Env, s Settings) bool {
		return s.Agent.FactChecks != FactChecksDrop && hasEngine(FactCheckTool)(e, s)
	},
	Run: searchWith(FactCheckTool, func(s Settings, q *Query) {
		q.Domains, q.Kinds = s.Agent.FactCheckers, []string{corpus.KindFactCheck, corpus.KindPage, corpus.KindLinkedArticle}
	}),
}
