package llm

import "context"

// replayProvider stands where the network would be. The cache is outermost, so what gets this far is
// not stored.
type replayProvider struct{}

func (replayProvider) call(_ context.Context, c *call) (*result, error) {
	e := c.fail(ReasonNotStored, "replay mode answers from the store alone, and this call is not in it")
	e.unsent = true
	return nil, e
}
