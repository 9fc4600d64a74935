package llm

import (
	"fmt"
	"maps"
	"sync"
)

// Stats is what this run did with models: what it bought, and what stored answers spared it.
type Stats struct {
	Spend
	Tokens      int     `json:"tokens"`       // of Calls
	Hits        int     `json:"hits"`         // answers that came from the store
	SavedTokens int     `json:"saved_tokens"` // what the hits cost when they were bought
	SavedUSD    float64 `json:"saved_usd"`

	Stages map[string]int `json:"stages,omitempty"` // Calls by the stage that asked, as Options.Stage tells; of batches nobody knows it
}

// Tokens is the number of tokens that a usage stands for.
func (u Usage) Tokens() int { return max(u.Total, u.Prompt+u.Completion) }

// ledger adds up the records that this run wrote or used.
type ledger struct {
	mu    sync.Mutex
	stats Stats
	used  map[string]bool // ids that this run bought or was spared
	fresh map[string]bool // ids that a batch delivered in this run and nobody has read yet
}

// use notes an id; the caller holds the lock.
func (l *ledger) use(id string) {
	if l.used == nil {
		l.used = map[string]bool{}
	}
	l.used[id] = true
}

func (l *ledger) bought(rec Record, stage string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.use(rec.ID)
	l.stats.add(rec)
	l.stats.Tokens += rec.Usage.Tokens()
	if stage != "" {
		if l.stats.Stages == nil {
			l.stats.Stages = map[string]int{}
		}
		l.stats.Stages[stage]++
	}
}

// delivered enters what a batch brought: it is bought by this run, and reading it spares nothing.
func (l *ledger) delivered(rec Record) {
	l.bought(rec, "")
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fresh == nil {
		l.fresh = map[string]bool{}
	}
	l.fresh[rec.ID] = true
}

func (l *ledger) hit(rec Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.use(rec.ID)
	if l.fresh[rec.ID] {
		return
	}
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
	out := c.ledger.stats
	out.Stages = maps.Clone(out.Stages)
	return out
}

// Saved counts calls as hits that this run did not even ask for, because the items that they are
// recorded in are fresh. It passes over ids that this run bought, was answered or has counted, so the
// caller may name every call that its items rest on.
func (c *Client) Saved(ids ...string) error {
	for _, id := range ids {
		if c.ledger.knows(id) {
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

func (l *ledger) knows(id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.used[id]
}
