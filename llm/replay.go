package llm

import "context"

// replayProvider stands where the network would be. The cache is outermost, so what gets this far has
// no stored answer. A call that is known to fail for good fails as it did; any other is one that a live
// run would make.
type replayProvider struct{ c *Client }

func (p replayProvider) call(_ context.Context, c *call) (*result, error) {
	if c.attempts > 0 {
		rec, ok, err := p.c.calls.Get(recordKey(c.id, c.attempts))
		if err = p.c.rebuildable(err); err != nil {
			return nil, c.storeError("read a stored failure", err)
		}
		if why := reasons[rec.Failure]; ok && why.class == "permanent" && !why.stops {
			e := c.fail(rec.Failure, rec.Detail)
			e.Status, e.unsent = rec.Status, true
			return nil, e
		}
	}
	e := c.fail(ReasonNotStored, "replay mode answers from the store alone, and this call is not in it")
	e.unsent = true
	return nil, e
}
