package llm

import (
	"fmt"
	"sync"
)

// Stats is what this run did with models: what it bought, and what stored answers spared it.
type Stats struct {
	Calls       int     `json:"calls"` // requests that were sent
	Hits        int     `json:"hits"`  // answers that came from the store
	Usage       Usage   `json:"usage"`
	Tokens      int     `json:"tokens"` // of Calls
	USD         float64 `json:"usd"`
	Unpriced    int     `json:"unpriced,omitzero"` // calls of models without a known price
	SavedTokens int     `json:"saved_tokens"`      // what the hits cost when they were bought
	SavedUSD    float64 `json:"saved_usd"`
}

// Tokens is the number of tokens that a usage stands for.
func (u Usage) Tokens() int { return max(u.Total, u.Prompt+u.Completion) }

// ledger adds up the records that this run wrote or used.
type ledger struct {
	mu    sync.Mutex
	stats Stats
	saved map[string]bool // ids counted by Saved
}

func (l *ledger) bought(rec Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := Spend{Calls: l.stats.Calls, Usage: l.stats.Usage, USD: l.stats.USD, Unpriced: l.stats.Unpriced}
	s.add(rec)
	l.stats.Calls, l.stats.Usage, l.stats.USD, l.stats.Unpriced = s.Calls, s.Usage, s.USD, s.Unpriced
	l.stats.Tokens += rec.Usage.Tokens()
}

func (l *ledger) hit(rec Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stats.Hits++
	l.stats.SavedTokens += rec.Usage.Tokens()
	if rec.USD != nil {
		l.stats.SavedUSD += *rec.USD
	}
}

// Stats returns what this run did so far.
func (c *Client) Stats() Stats {
	c.ledger.mu.Lock()
	defer c.ledger.mu.Unlock()
	return c.ledger.stats
}

// Saved counts calls that this run did not even ask for, because the items that they are recorded in
// are fresh, as hits. Each id counts once, however many items name it.
func (c *Client) Saved(ids ...string) error {
	for _, id := range ids {
		if !c.ledger.first(id) {
			continue
		}
		rec, ok, err := c.Record(id)
		if err != nil {
			return fmt.Errorf("read call %s: %w", id, err)
		}
		if ok {
			c.ledger.hit(rec)
		}
	}
	return nil
}

func (l *ledger) first(id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.saved == nil {
		l.saved = map[string]bool{}
	}
	was := l.saved[id]
	l.saved[id] = true
	return !was
}
