package planner

import "assay/corpus"

// webSupportTool searches everywhere for what speaks for a statement.
var webSupportTool = Tool{
	Name:      "web_support",
	Version:   1,
	Doc:       "open web search for documents that may support the statement",
	Proven:    "captured",
	Reference: "recorded replies of Brave, Google, Serper, SerpApi, Tavily and SearXNG",
	Side:      corpus.Supports,
	Source:    "web",
	Ready:     hasEngine("web_support"),
	Run:       searchWith("web_support", func(Settings, *Query) {}),
}
