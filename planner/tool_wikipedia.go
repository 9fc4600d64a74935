package planner

// wikipediaTool looks background up.
var wikipediaTool = Tool{
	Name:      "wikipedia",
	Version:   1,
	Doc:       "background on people, places, terms and events from Wikipedia",
	Proven:    "captured",
	Reference: "recorded replies of MediaWiki and Wikidata, through the backend wikipedia",
	Source:    "encyclopedia",
	Ready:     hasEngine("wikipedia"),
	Run:       searchWith("wikipedia", func(_ Settings, q *Query) { q.Domains = []string{"wikipedia.org"} }),
}
