package planner

import (
	"context"
	"fmt"
)

// memoryTool looks among the documents that earlier runs kept for other claims. They are read again for
// this one; as evidence they count as recalled, never as a primary source, until another tool finds them.
var memoryTool = Tool{
	Name:    "memory",
	Version: 1,
	Doc:     "documents that earlier searches kept for other claims; what it finds is no primary source",
	Source:  sourceMemory,

	Proven: "documented", Reference: "GPE, III-B; it reads this workspace alone",

	Ready: func(e Env, _ Settings) bool { return e.Memory.Len(e.Snapshot.Number) > 0 },
	Run: func(_ context.Context, env Env, s Settings, a Ask) (Observation, error) {
		found := env.Memory.Search(env.Snapshot.Number, a.Query, s.Agent.PerAction)
		return Observation{Results: found, Answer: fmt.Sprintf("%d of the %d documents that snapshot %s remembers", len(found), env.Memory.Len(env.Snapshot.Number), env.Snapshot.ID)}, nil
	},
}

// sourceMemory is the class of documents that the memory alone knows.
const sourceMemory = "memory"
