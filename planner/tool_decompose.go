package planner

// decomposeTool takes the claim apart; the loop itself does it, once.
var decomposeTool = Tool{
	Name:      "decompose",
	Version:   1,
	Doc:       "take a claim that makes several statements apart, so that each is searched for by itself; no query",
	Proven:    "documented",
	Reference: "GPE, III-B; it asks the model alone",
}
