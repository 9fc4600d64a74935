package planner

import (
	"strings"

	"assay/corpus"
)

// webRefuteTool searches everywhere for what speaks against a statement.
var webRefuteTool = Tool{
	Name:      "web_refute",
	Version:   1,
	Doc:       "open web search for documents that may refute the statement, or correct it",
	Proven:    "captured",
	Reference: "recorded replies of Brave, Google, Serper, SerpApi, Tavily and SearXNG",
	Side:      corpus.Refutes,
	Source:    "web",
	Ready:     hasEngine("web_refute"),
	Run: searchWith("web_refute", func(_ Settings, q *Query) {
		// Whoever contradicts a statement uses its words and one of these.
		lower := strings.ToLower(q.Text)
		for _, w := range []string{"false", "denied", "wrong", "not true", "correction"} {
			if strings.Contains(lower, w) {
				return
			}
		}
		q.Text += " false wrong denied"
	}),
}
