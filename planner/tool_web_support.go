package planner

import "assay/corpus"

// webSupportTool searches everywhere for what speaks for a statement.
var webSupportTool = Tool{
	Name:    "web_support",
	Version: 1,
	Doc:     "open web search for documents that may support the statement",
	Side:    corpus.Supports,
	Source:  "web",
	Ready:   hasEngine("web_support"),
	Run:     searchWith("web_support", func(Settings, *Query) {}),
}
