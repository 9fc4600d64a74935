package planner

// xTool searches public posts. It costs money by the post, so no profile uses it unasked.
var xTool = Tool{
	Name:    "x",
	Version: 1,
	Doc:     "public posts on X, for who said what first",
	Source:  "posts",
	Ready:   hasEngine("x"),
	Run:     searchWith("x", func(_ Settings, q *Query) { q.Domains = []string{"x.com", "twitter.com"} }),
}
