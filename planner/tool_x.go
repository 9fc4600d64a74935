package planner

// xTool searches public posts. It costs money by the post, so no profile uses it unasked.
var xTool = Tool{
	Name:      "x",
	Version:   1,
	Doc:       "public posts on X, for who said what first",
	Proven:    "captured",
	Reference: "recorded replies of X of 2021 and 2022",
	Source:    "posts",
	Ready:     hasEngine("x"),
	Run:       searchWith("x", func(_ Settings, q *Query) { q.Domains = []string{"x.com", "twitter.com"} }),
}
