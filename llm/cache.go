package llm

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"

	"assay/kv"
)

// cacher answers from the store, and lets one caller at a time pay for a key. It is the outermost
// link: a hit passes no budget and no limit.
type cacher struct {
	c     *Client
	locks *keyLocks
	next  caller
}

func (k *cacher) call(ctx context.Context, c *call) (*result, error) {
	if at, ok := ctx.Value(forecastKey{}).(foreseeing); ok {
		return k.foresee(ctx, c, at)
	}
	unlock, err := k.locks.lock(ctx, c.id)
	if err != nil {
		return nil, fmt.Errorf("wait for call %s: %w", c.id, err)
	}
	defer unlock()
	res, err := k.stored(c)
	if err != nil {
		return nil, err
	}
	if res == nil {
		if err := k.ordered(ctx, c); err != nil {
			return nil, err
		}
		if res, err = k.next.call(ctx, c); err != nil {
			return nil, err
		}
	}
	k.c.answered(ctx, c.id, res.sum)
	return res, nil
}

// stored returns the answer that the store holds, or nil. It also finds out how many attempts the key
// has had.
func (k *cacher) stored(c *call) (*result, error) {
	a, ok, err := k.c.answers.Get(kv.Key(c.id))
	if err = k.readable(c, err); err != nil {
		return nil, err
	}
	if ok && (a.served() || k.c.o.Replay) {
		rec, found, err := k.c.calls.Get(recordKey(c.id, a.Attempt))
		if err = k.readable(c, err); err != nil {
			return nil, err
		}
		if found {
			return k.hit(c, a, rec)
		}
	}
	return k.unfinished(c, ok && !a.served())
}

// readable passes over records that can be rebuilt.
func (k *cacher) readable(c *call, err error) error {
	if err = k.c.rebuildable(err); err != nil {
		return c.storeError("read a stored answer", err)
	}
	return nil
}

// hit reads a stored message again, since the ladder may have learned since it was written.
func (k *cacher) hit(c *call, a answer, rec Record) (*result, error) {
	res := &result{record: rec, json: rec.Parsed, sum: a.Sum}
	if c.template != nil && (rec.Outcome == OutcomeAnswered || rec.Outcome == OutcomeParseFailed) {
		outcome, parsed, status := c.template.read(rec.Raw)
		res.json = parsed
		if outcome != rec.Outcome || status != rec.Parse {
			if err := k.correct(c, a, res, outcome, status); err != nil {
				return nil, err
			}
		}
	}
	k.c.ledger.hit(res.record)
	return res, nil
}

func (k *cacher) correct(c *call, a answer, res *result, outcome Outcome, status ParseStatus) error {
	res.record.Outcome, res.record.Parse, res.record.Parsed = outcome, status, res.json
	a.Sum = sumOf(res.record, nil)
	res.sum = a.Sum
	rec, err := k.c.calls.PutOp(recordKey(c.id, a.Attempt), res.record)
	if err != nil {
		return c.storeError("correct a call record", err)
	}
	ans, err := k.c.answers.PutOp(kv.Key(c.id), a)
	if err != nil {
		return c.storeError("correct a call record", err)
	}
	if err := k.c.o.Store.Write(rec, ans); err != nil {
		return c.storeError("correct a call record", err)
	}
	return nil
}

// unfinished looks for a reply that was kept but not read before the process ended, or whose record
// can no longer be decoded, and reads it. It was paid for, so it is not asked for again.
func (k *cacher) unfinished(c *call, again bool) (*result, error) {
	had, err := k.asked(c)
	if err != nil || !had {
		return nil, err
	}
	bodies, err := k.attempts(k.c.raw.Keys, c)
	if err != nil {
		return nil, err
	}
	records, err := k.attempts(k.c.calls.Keys, c)
	if err != nil {
		return nil, err
	}
	for _, n := range append(bodies, records...) {
		c.attempts = max(c.attempts, n)
	}
	if again {
		return nil, nil
	}
	for _, n := range slices.Backward(bodies) {
		res, err := k.reread(c, n)
		if res != nil || err != nil {
			return res, err
		}
	}
	return nil, nil
}

// asked reports whether the key has had any attempt. Attempts are numbered from 1, so two look-ups
// tell it, where listing would cost every new call two scans.
func (k *cacher) asked(c *call) (bool, error) {
	first := recordKey(c.id, 1)
	raw, err := k.c.raw.Has(first)
	if err == nil && !raw {
		raw, err = k.c.calls.Has(first)
	}
	if err != nil {
		return false, c.storeError("look for earlier attempts", err)
	}
	return raw, nil
}

func (k *cacher) reread(c *call, n int) (*result, error) {
	rec, found, err := k.c.calls.Get(recordKey(c.id, n))
	if err = k.readable(c, err); err != nil {
		return nil, err
	}
	if found && rec.Outcome == "" {
		return nil, nil // it was read, and it is no answer
	}
	body, ok, err := k.c.raw.Get(recordKey(c.id, n))
	if err = k.readable(c, err); err != nil || !ok {
		return nil, err
	}
	seen := rec.Seen
	seen.Attempt = n
	res, err := k.c.settle(c, &result{status: 200, body: body}, seen)
	var e *Error
	if errors.As(err, &e) && e.Reason != ReasonStore {
		return nil, nil // it is recorded as a failed attempt now
	}
	if err != nil {
		return nil, err
	}
	k.c.ledger.hit(res.record)
	return res, nil
}

func (k *cacher) attempts(keys func(prefix, after string) iter.Seq2[string, error], c *call) ([]int, error) {
	var found []int
	for key, err := range keys(kv.Prefix(c.id), "") {
		if err != nil {
			return nil, c.storeError("list attempts", err)
		}
		found = append(found, attemptOf(key))
	}
	return found, nil
}

// keyLocks lets one goroutine at a time into a key.
type keyLocks struct {
	mu   sync.Mutex
	held map[string]*keyLock
}

type keyLock struct {
	turn    chan struct{}
	waiting int
}

func (l *keyLocks) lock(ctx context.Context, key string) (unlock func(), err error) {
	l.mu.Lock()
	k := l.held[key]
	if k == nil {
		k = &keyLock{turn: make(chan struct{}, 1)}
		l.held[key] = k
	}
	k.waiting++
	l.mu.Unlock()
	leave := func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if k.waiting--; k.waiting == 0 {
			delete(l.held, key)
		}
	}
	select {
	case k.turn <- struct{}{}:
		return func() { <-k.turn; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
}
