package planner

import "context"

// calcTool does sums.
var calcTool = Tool{
	Name:      "calc",
	Version:   1,
	Doc:       "exact arithmetic on the numbers of the statement: + - * / ^, brackets, percentages (15% of 80, change from 40 to 50), units (26.2 mi in km); the query is the expression",
	Proven:    "documented",
	Reference: "exact arithmetic of its own; units by the definitions of the SI and of 1959",
	Run: func(_ context.Context, _ Env, _ Settings, a Ask) (Observation, error) {
		result, err := Calc(a.Query)
		if err != nil {
			return Observation{}, &ToolError{Tool: "calc", Reason: "bad_expression", Err: err}
		}
		return Observation{Answer: a.Query + " = " + result}, nil
	},
}
