package planner

// factcheckTool searches what fact-checkers wrote. Under a policy that keeps their verdicts out of the
// evidence its results are dropped again, see Agent.FactChecks.
var factcheckTool = Tool{
	Name:      "factcheck",
	Version:   1,
	Doc:       "search of fact-checkers' own articles",
	Proven:    "captured",
	Reference: "recorded replies of Google's Fact Check Tools, and of the web searches that it is kept to fact-checkers with",
	Source:    "fact_checker",
	Ready: func(e Env, s Settings) bool {
		return s.Agent.FactChecks != FactChecksDrop && hasEngine("factcheck")(e, s)
	},
	Run: searchWith("factcheck", func(s Settings, q *Query) { q.Domains = s.Agent.FactCheckers }),
}
