package planner

import (
	"context"

	"assay/llm"
)

// builtinModel answers by the template's own function, without the client around it.
type builtinModel struct{}

func (builtinModel) Complete(_ context.Context, q llm.Request) (llm.Reply, error) {
	raw, err := q.Template.Builtin(q.Vars)
	return llm.Reply{Raw: string(raw), JSON: raw, Outcome: llm.OutcomeAnswered, Call: "call-1"}, err
}

// canned answers with one reply and remembers what it was asked.
type canned struct {
	reply llm.Reply
	err   error
	asked []llm.Request
}

func (c *canned) Complete(_ context.Context, q llm.Request) (llm.Reply, error) {
	c.asked = append(c.asked, q)
	return c.reply, c.err
}
