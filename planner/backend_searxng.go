package planner

import "context"

// searxng searches the web through an instance of SearXNG.
var searxng = Backend{
	Name:      "searxng",
	Version:   1,
	Doc:       "web search through your own SearXNG (runtime.searxng.base), kept to the recipe's domains",
	Proven:    "captured",
	Reference: "recorded replies of a SearXNG of 2026, with an engine that answered, throttled and was suspended",
	Search: func(ctx context.Context, env Env, q Query) ([]Result, error) {
		if env.SearXNG == nil {
			return nil, &APIError{API: searxngName, Asked: "results about \"" + q.Text + "\"", Reason: ReasonNotConfigured, Detail: "it is not set up"}
		}
		return env.SearXNG.Search(ctx, q.Text, q.Domains, q.K)
	},
}
