package planner

// newsTool searches named newsrooms; the host of every result is checked again.
var newsTool = Tool{
	Name:      "news",
	Version:   1,
	Doc:       "reports of the newsrooms that the recipe names",
	Proven:    "captured",
	Reference: "recorded replies of the web searches that it is kept to newsrooms with, and lists of articles of GDELT",
	Source:    "news",
	Ready:     hasEngine("news"),
	Run:       searchWith("news", func(s Settings, q *Query) { q.Domains = s.Agent.Newsrooms }),
}
