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
	if err := b.budget.reserve(ctx, worst); err != nil {
		return nil, err
	}
	var res *result
	defer func() { b.budget.settle(worst, res) }()
	var err error
	res, err = b.next.call(ctx, c)
	return res, err
}

// price is the price of the model that is asked. The builtin model is free.
func (c *call) price(t PriceTable) (Price, bool) {
	if c.route.at.Provider == ProviderBuiltin {
		return Price{}, true
	}
	if p := c.route.at.Price; p != nil {
		return *p, true
	}
	return t.Lookup(c.model)
}

// budget is what this run has spent and what its calls in flight may cost.
type budget struct {
	maxUSD   float64
	maxCalls int

	mu      sync.Mutex
	usd     float64 // of settled calls
	calls   int
	heldUSD float64
	held    int
	changed chan struct{} // closed when a call settles
}

func newBudget(usd float64, calls int) *budget {
	return &budget{maxUSD: usd, maxCalls: calls, changed: make(chan struct{})}
}

// reserve holds money for one call. Where only the calls in flight stand in the way it waits for
// them, since they will cost less than their worst case.
func (b *budget) reserve(ctx context.Context, worst float64) error {
	for {
		b.mu.Lock()
		if over := b.over(worst, 1, 0, 0); over != nil {
			b.mu.Unlock()
			return over
		}
		if b.over(worst, 1, b.heldUSD, b.held) == nil {
			b.heldUSD += worst
			b.held++
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

// over says which cap a call would break on top of what is spent and held. Sums of many small prices
// may miss a cap by a rounding error, which is not overspending.
func (b *budget) over(worst float64, calls int, heldUSD float64, held int) error {
	const rounding = 1e-9
	if (b.maxCalls > 0 && b.calls+held+calls > b.maxCalls) || (b.maxUSD > 0 && b.usd+heldUSD+worst > b.maxUSD+rounding) {
		return &BudgetError{MaxUSD: b.maxUSD, SpentUSD: b.usd, NextUSD: worst, MaxCalls: b.maxCalls, Calls: b.calls}
	}
	return nil
}

// settle replaces a reservation by what the call left in its record; nothing when it left none.
func (b *budget) settle(worst float64, res *result) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.heldUSD -= worst
	b.held--
	if b.held == 0 {
		b.heldUSD = 0 // no rounding error outlives its calls
	}
	if res != nil {
		b.calls++
		if res.record.USD != nil {
			b.usd += *res.record.USD
		}
	}
	close(b.changed)
	b.changed = make(chan struct{})
}
