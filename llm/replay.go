package llm

import "context"

// replayProvider stands where the network would be. The cache is outermost, so what gets this far has
// no stored answer. A call that is known to fail for good fails as it did; any other is one that a live
// run would make.
type replayProvider struct{ c *Client }

func (p replayProvider) call(_ context.Context, c *call) (*result, error) {
	e, err := p.c.failedBefore(c)
	if err != nil {
		return nil, err
	}
	if e == nil {
		e = c.fail(ReasonNotStored, "replay mode answers from the store alone, and this call is not in it")
		e.unsent = true
	}
	return nil, e
}

// failedBefore is how the last attempt of a call failed for good, nil if it did not.
func (c *Client) failedBefore(cl *call) (*Error, error) {
	if cl.attempts == 0 {
		return nil, nil
	}
	rec, ok, err := c.calls.Get(recordKey(cl.id, cl.attempts))
	if err = c.rebuildable(err); err != nil {
		return nil, cl.storeError("read a stored failure", err)
	}
	why := reasons[rec.Failure]
	if !ok || why.class != "permanent" || why.stops {
		return nil, nil
	}
	e := cl.fail(rec.Failure, rec.Detail)
	e.Status, e.unsent = rec.Status, true
	return e, nil
}
