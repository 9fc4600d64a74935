package planner

import "context"

// reddit searches Reddit itself.
var reddit = Backend{
	Name:      "reddit",
	Version:   1,
	Doc:       "Reddit's own search, by the credentials of an approved client (runtime.reddit)",
	Proven:    "captured",
	Reference: "search, listing and error replies recorded from 2015 to 2021; no live account",
	Search: func(ctx context.Context, env Env, q Query) ([]Result, error) {
		if env.Reddit == nil {
			return nil, &APIError{API: redditName, Asked: "posts about \"" + q.Text + "\"", Reason: ReasonNotConfigured, Detail: "it is not set up"}
		}
		return env.Reddit.Search(ctx, q.Text, q.Subreddits, q.K)
	},
}
