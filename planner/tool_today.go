package planner

import (
	"context"
	"errors"
)

// todayTool tells the day that the search stands on. It is the claim's as-of date, pinned and stored with
// the claim, and never the clock (methods, decision 3).
var todayTool = Tool{
	Name:      "today",
	Version:   1,
	Doc:       "the date as of which the statement is checked, for statements that say now, today, this year or since",
	Proven:    "documented",
	Reference: "methods of this program: the date that the claim is checked as of; it asks nobody",
	Run: func(_ context.Context, _ Env, _ Settings, a Ask) (Observation, error) {
		if a.AsOf == "" {
			return Observation{}, &ToolError{Tool: "today", Reason: "no_as_of", Err: errors.New("this recipe pins no date")}
		}
		return Observation{Answer: a.AsOf}, nil
	},
}
