package llm

import (
	"context"
	"fmt"
	"sync"
)

// budgeter keeps a run within its caps. Every attempt, repairs too, reserves the worst it can cost
// before it is made and is settled from the record that it left.
type budgeter struct {
	budget *budget
	prices PriceTable
	next   caller
}

func (b *budgeter) call(ctx context.Context, c *call) (*result, error) {
	worst := 0.0
	if b.budget.maxUSD > 0 {
		price, ok := c.price(b.prices)
		if !ok {
			e := c.fail(ReasonNoPrice, fmt.Sprintf("a cap of $%g is set, and the price table of %s does not know the model; name it in prices.yaml of the workspace (assay import prices), give the endpoint a price (runtime.endpoints.%s.price: {input: 0, output: 0}, USD per million tokens) or drop the cap", b.budget.maxUSD, b.prices.Date, c.route.name))
			e.unsent = true
			return nil, e
		}
		worst = price.Cost(c.reserve())
	}
	if err := b.budget.reserve(ctx, worst, 1); err != nil {
		return nil, err
	}
	var res *result
	defer func() {
		if res == nil {
			b.budget.settle(worst, 1, 0, 0)
			return
		}
		spent := 0.0
		if res.record.USD != nil {
			spent = *res.record.USD
		}
		b.budget.settle(worst, 1, spent, 1)
	}()
	var err error
	res, err = b.next.call(ctx, c)
	return res, err
}

// Reserve holds money of the run for a request that is no call of a model, such as a paid search, and
// settle says what it cost in the end; settle must be called. The error is a *BudgetError where the
// worst case would break the cap.
func (c *Client) Reserve(ctx context.Context, worst float64) (settle func(usd float64), err error) {
	if err := c.purse.reserve(ctx, worst, 0); err != nil {
		return nil, err
	}
	return func(usd float64) { c.purse.settle(worst, 0, usd, 0) }, nil
}

// price is the price of the model that is asked. The builtin model is free, and so is one without a known
// price at a server of one's own, which may also be a proxy of models that somebody bills.
func (c *call) price(t PriceTable) (Price, bool) {
	if c.route.at.Provider == ProviderBuiltin {
		return Price{}, true
	}
	p, ok := Price{}, true
	if own := c.route.at.Price; own != nil {
		p = *own
	} else if p, ok = t.Lookup(c.model); !ok && c.route.at.Own {
		return Price{}, true
	}
	if api := c.route.profile.Batch; c.batch && api != nil {
		p = p.InBatch(api.Discount)
	}
	return p, ok
}

// unbilled reports whether a call costs nothing only because nobody names a price for what runs here.
func (c *call) unbilled(t PriceTable) bool {
	at := c.route.at
	_, known := t.Lookup(c.model)
	return at.Own && at.Provider != ProviderBuiltin && at.Price == nil && !known
}

// budget is what this run has spent and what its calls in flight may cost.
type budget struct {
	maxUSD   float64
	maxCalls int

	mu      sync.Mutex
	usd     float64 // of what is settled
	calls   int
	heldUSD float64
	held    int           // calls in flight
	open    int           // reservations
	changed chan struct{} // closed when one settles
}

func newBudget(usd float64, calls int) *budget {
	return &budget{maxUSD: usd, maxCalls: calls, changed: make(chan struct{})}
}

// reserve holds money for one request, and places for its calls. Where only what is in flight stands in
// the way it waits for that, since it will cost less than its worst case.
func (b *budget) reserve(ctx context.Context, worst float64, calls int) error {
	for {
		b.mu.Lock()
		if over := b.over(worst, calls, 0, 0); over != nil {
			b.mu.Unlock()
			return over
		}
		if b.over(worst, calls, b.heldUSD, b.held) == nil {
			b.heldUSD += worst
			b.held += calls
			b.open++
			b.mu.Unlock()
			return nil
		}
		changed := b.changed
		b.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("wait for budget: %w", ctx.Err())
		}
	}
}

// over says which cap a request would break on top of what is spent and held. Sums of many small prices
// may miss a cap by a rounding error, which is not overspending.
func (b *budget) over(worst float64, calls int, heldUSD float64, held int) error {
	const rounding = 1e-9
	switch {
	case calls > 0 && b.maxCalls > 0 && b.calls+held+calls > b.maxCalls:
		return &BudgetError{MaxUSD: b.maxUSD, SpentUSD: b.usd, NextUSD: worst, MaxCalls: b.maxCalls, Calls: b.calls}
	case b.maxUSD > 0 && b.usd+heldUSD+worst > b.maxUSD+rounding:
		return &BudgetError{MaxUSD: b.maxUSD, SpentUSD: b.usd, NextUSD: worst}
	}
	return nil
}

// settle replaces a reservation by what the request left in its record.
func (b *budget) settle(worst float64, held int, usd float64, calls int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.heldUSD -= worst
	b.held -= held
	if b.open--; b.open == 0 {
		b.heldUSD = 0 // no rounding error outlives its requests
	}
	b.usd += usd
	b.calls += calls
	close(b.changed)
	b.changed = make(chan struct{})
}
