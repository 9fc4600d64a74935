package fetch

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"time"

	"assay/kv"
)

// A Charge says what an interface bills for a Call. What is served from the store costs nothing.
type Charge struct {
	Worst float64 // USD that one request may cost
	// Of is what a request with this answer cost, in USD and at most Worst; nil takes Worst for status 200
	// and nothing for any other. A request whose answer never came whole is counted at Worst.
	Of   func(Reply) float64
	Date string // of the price, 2006-01-02
}

func (c Charge) check() error {
	if !(c.Worst >= 0) || math.IsInf(c.Worst, 0) {
		return fmt.Errorf("its price is $%g, which is none", c.Worst)
	}
	return nil
}

func (c Charge) of(r Reply) float64 {
	switch {
	case c.Of != nil:
		return min(max(c.Of(r), 0), c.Worst)
	case r.Status == http.StatusOK:
		return c.Worst
	}
	return 0
}

// A Payment is the record of one paid request. It is written with its exchange and outlives it: what
// was spent is the sum of these.
type Payment struct {
	Key       string    `json:"key"` // of the request
	At        time.Time `json:"at"`
	USD       float64   `json:"usd"`
	PriceDate string    `json:"price_date,omitzero"`
	Estimated bool      `json:"estimated,omitzero"` // the answer never came whole: counted at its worst
}

const bucketPayment = "fetch.payment" // [request key, number of its exchange, or instant] => Payment

func (a *archive) paymentOp(which string, p Payment) (kv.Op, error) {
	op, err := a.payments.PutOp(kv.Key(p.Key, which), p)
	if err != nil {
		return op, fmt.Errorf("record what %s cost: %w", p.Key, err)
	}
	return op, nil
}

// priced puts the worst case on an exchange whose request has left the machine; judged corrects it.
func (c *call) priced(ex *Exchange) {
	if c.api != nil && c.api.Charge != nil {
		ex.USD, ex.PriceDate, ex.Estimated = c.api.Charge.Worst, c.api.Charge.Date, true
	}
}

// A payer keeps paid requests within the money of the run. Every attempt reserves its worst case
// before it queues for its host, and is settled from its record.
type payer struct {
	client  *Client
	reserve func(ctx context.Context, usd float64) (settle func(usd float64), err error)
	next    sender
}

func (p *payer) send(ctx context.Context, c *call) (answer, error) {
	if c.api == nil || c.api.Charge == nil || c.api.Charge.Worst == 0 {
		return p.next.send(ctx, c)
	}
	settle, err := p.reserve(ctx, c.api.Charge.Worst)
	if err != nil {
		return answer{}, err
	}
	spent := 0.0
	defer func() { settle(spent) }()
	c.sent = time.Time{}
	ans, err := p.next.send(ctx, c)
	spent = ans.ex.USD
	if err != nil && !c.sent.IsZero() { // we hung up on it; it may be billed
		spent = c.api.Charge.Worst
		op, opErr := p.client.archive.paymentOp("cut "+c.sent.UTC().Format(time.RFC3339Nano), Payment{Key: c.key, At: c.sent.UTC(), USD: spent, PriceDate: c.api.Charge.Date, Estimated: true})
		if opErr == nil {
			opErr = p.client.archive.store.Write(op)
		}
		err = errors.Join(err, opErr)
	}
	p.client.stats.paid(spent)
	return ans, err
}

// Spend is what paid requests cost, summed over their records.
type Spend struct {
	Requests  int     `json:"requests"`
	USD       float64 `json:"usd"`
	Estimated int     `json:"estimated,omitzero"` // of Requests: counted at their worst
}

// Spend sums the records of the whole store, whichever run made them.
func (c *Client) Spend() (Spend, error) {
	var s Spend
	for e, err := range c.archive.payments.Scan("", "") {
		if err != nil {
			return s, fmt.Errorf("sum what requests cost: %w", err)
		}
		s.Requests++
		s.USD += e.Value.USD
		if e.Value.Estimated {
			s.Estimated++
		}
	}
	return s, nil
}
