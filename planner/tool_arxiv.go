package planner

// arxivTool searches papers.
var arxivTool = Tool{
	Name:      "arxiv",
	Version:   1,
	Doc:       "scientific papers on arXiv, for statements about science, medicine, computing or measurement",
	Proven:    "captured",
	Reference: "recorded feeds of arXiv, through the backend arxiv",
	Source:    "preprint",
	Ready:     hasEngine("arxiv"),
	Run:       searchWith("arxiv", func(_ Settings, q *Query) { q.Domains = []string{"arxiv.org"} }),
}
