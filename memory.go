package assay

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"assay/corpus"
	"assay/kv"
	"assay/planner"
)

// memorised is what is remembered of a claim. A claim reads the snapshot before the commit of the run that
// first met it, always: a later run finds the same, whatever was remembered since.
type memorised struct {
	Met       uint64                 `json:"met"`  // commit of the run that first met the claim
	Kept      uint64                 `json:"kept"` // commit of the run that finished its search; 0 if none did
	Documents []planner.Recollection `json:"documents,omitzero"`
}

// A commit closes what one run remembered.
type commit struct {
	ID     string `json:"id"` // of everything up to it
	Claims int    `json:"claims"`
}

// remembers reports whether searches by this recipe may look things up in the memory.
func (r Recipe) remembers() bool {
	return r.agentic() && (len(r.Planner.Agent.Tools) == 0 || slices.Contains(r.Planner.Agent.Tools, "memory"))
}

// memory reads and commits what searches keep. The store is read at the first search that wants it.
type memory struct {
	mu      sync.Mutex
	read    bool
	commits []planner.Snapshot // the nth has number n; 0 is that of nothing
	found   *planner.Memory    // nil until a search wants it
	open    bool               // this run memorises
}

// latest reads the commits; the caller holds the lock.
func (m *memory) latest(t tables) (planner.Snapshot, error) {
	if !m.read {
		m.commits = []planner.Snapshot{{}}
		for e, err := range t.Commits.Scan("", "") {
			if err != nil {
				return planner.Snapshot{}, fmt.Errorf("read what is remembered: %w", err)
			}
			if number := seqOf(e.Key); number == uint64(len(m.commits)) {
				m.commits = append(m.commits, planner.Snapshot{Number: number, ID: e.Value.ID})
			}
		}
		m.read = true
	}
	return m.commits[len(m.commits)-1], nil
}

// snapshot is what the search for a claim may remember.
func (w *Workspace) snapshot(claim string) (planner.Snapshot, error) {
	m := &w.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	last, err := m.latest(w.tables)
	if err != nil || last.Number == 0 {
		return last, err
	}
	have, ok, err := w.tables.Memories.Get(claim)
	if err != nil {
		return last, fmt.Errorf("read what is remembered of %s: %w", claim, err)
	}
	if ok && have.Met <= last.Number {
		return m.commits[have.Met-1], nil
	}
	return last, nil
}

// recollections are all that is remembered, for a search over them.
func (w *Workspace) recollections() (*planner.Memory, error) {
	m := &w.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	last, err := m.latest(w.tables)
	if err != nil || last.Number == 0 || m.found != nil {
		return m.found, err
	}
	byCommit := make([][]planner.Recollection, last.Number+1)
	for e, err := range w.tables.Memories.Scan("", "") {
		if err != nil {
			return nil, fmt.Errorf("read what is remembered: %w", err)
		}
		if kept := e.Value.Kept; kept > 0 && kept <= last.Number {
			byCommit[kept] = append(byCommit[kept], e.Value.Documents...)
		}
	}
	m.found = planner.NewMemory()
	for number, list := range byCommit[1:] {
		m.found.Add(uint64(number)+1, list)
	}
	return m.found, nil
}

// memorise keeps what the search for a claim found, nil for a claim whose search is not finished, until the
// run commits it.
func (w *Workspace) memorise(claim string, t *corpus.Trace) error {
	w.memory.mu.Lock()
	last, err := w.memory.latest(w.tables)
	w.memory.mu.Unlock()
	if err != nil {
		return err
	}
	have, ok, err := w.tables.Memories.Get(claim)
	if err != nil {
		return fmt.Errorf("read what is remembered of %s: %w", claim, err)
	}
	met := ok && have.Met <= last.Number
	if met && (t == nil || have.Kept > 0 && have.Kept <= last.Number) {
		return nil
	}
	if err := w.openMemory(last); err != nil {
		return err
	}
	next := memorised{Met: last.Number + 1}
	if met {
		next.Met = have.Met
	}
	if t != nil {
		next.Kept, next.Documents = last.Number+1, planner.Recollect(*t)
	}
	if err := w.tables.Memories.Put(claim, next); err != nil {
		return fmt.Errorf("remember %s: %w", claim, err)
	}
	return nil
}

// openMemory throws away what a killed run left without a commit, before this run writes the first.
func (w *Workspace) openMemory(last planner.Snapshot) error {
	m := &w.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.open {
		return nil
	}
	for e, err := range w.tables.Memories.Scan("", "") {
		if err != nil {
			return fmt.Errorf("read what is remembered: %w", err)
		}
		switch have := e.Value; {
		case have.Met > last.Number:
			err = w.tables.Memories.Delete(e.Key)
		case have.Kept > last.Number:
			err = w.tables.Memories.Put(e.Key, memorised{Met: have.Met})
		}
		if err != nil {
			return fmt.Errorf("forget what a run left that was killed: %w", err)
		}
	}
	m.open = true
	return nil
}

// commitMemories makes what the run memorised a snapshot for the runs after it.
func (w *Workspace) commitMemories() error {
	m := &w.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.open {
		return nil
	}
	last, err := m.latest(w.tables)
	if err != nil {
		return err
	}
	next, fresh := commit{}, false
	sum := sha256.New()
	sum.Write([]byte(last.ID))
	for e, err := range w.tables.Memories.Scan("", "") {
		if err != nil {
			return fmt.Errorf("read what is remembered: %w", err)
		}
		fresh = fresh || e.Value.Met > last.Number || e.Value.Kept > last.Number
		if e.Value.Kept != last.Number+1 {
			continue
		}
		next.Claims++
		line, err := json.Marshal(e)
		if err != nil {
			return fmt.Errorf("name what is remembered: %w", err)
		}
		sum.Write(line)
	}
	m.open = false
	if !fresh {
		return nil
	}
	next.ID = fmt.Sprintf("m_%x", sum.Sum(nil)[:8])
	if err := w.tables.Commits.Put(kv.Key(fmt.Sprintf("%020d", last.Number+1)), next); err != nil {
		return fmt.Errorf("commit what is remembered: %w", err)
	}
	m.read, m.found = false, nil
	return nil
}
