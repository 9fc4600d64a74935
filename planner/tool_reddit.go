package planner

import "assay/corpus"

// redditTool searches discussions.
var redditTool = Tool{
	Name:      "reddit",
	Version:   1,
	Doc:       "discussions on Reddit, for what people say and link to",
	Proven:    "captured",
	Reference: "recorded searches and listings of Reddit",
	Source:    "social",
	Ready:     hasEngine("reddit"),
	Run: searchWith("reddit", func(_ Settings, q *Query) {
		q.Domains, q.Kinds = []string{"reddit.com"}, []string{corpus.KindRedditPost}
	}),
}
