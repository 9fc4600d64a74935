package planner

import "context"

// arcticShift searches an archive of Reddit.
var arcticShift = Backend{
	Name:      "arctic_shift",
	Version:   1,
	Doc:       "posts of named subreddits (recipe.planner.subreddits) in the archive Arctic Shift, newest first",
	Proven:    "documented",
	Reference: "the archive's own description of its interface, 2026; recorded Pushshift replies, which have its form",
	Search: func(ctx context.Context, env Env, q Query) ([]Result, error) {
		asked := "posts about \"" + q.Text + "\""
		if env.ArcticShift == nil {
			return nil, &APIError{API: arcticName, Asked: asked, Reason: ReasonNotConfigured, Detail: "it is not set up"}
		}
		if len(q.Subreddits) == 0 {
			return nil, &APIError{API: arcticName, Asked: asked, Reason: ReasonNotConfigured, Detail: "it searches in named subreddits alone: recipe.planner.subreddits is empty"}
		}
		return env.ArcticShift.Search(ctx, q.Text, q.Subreddits, q.K)
	},
}
