package assay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"assay/corpus"
	"assay/kv"
	"assay/scrapers"
)

// A Voice is the page or row that speaks for a claim which several tell: with another verdict,
// speaker or date they would overwrite each other's labels for ever. It is the one of lowest rank.
type Voice struct {
	Rank  string `json:"rank"`
	Stage string `json:"stage"` // of the item that tells the claim
	Key   string `json:"key"`
}

// voices says, within a walk, who speaks for each claim. While a claim is walked its voice is held,
// so that the one who speaks in the end has the last word.
type voices struct {
	mu  sync.Mutex
	all map[string]*voice
}

type voice struct {
	mu sync.Mutex
	Voice
}

func (v *voices) of(claimID string) *voice {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.all == nil {
		v.all = map[string]*voice{}
	}
	if v.all[claimID] == nil {
		v.all[claimID] = &voice{}
	}
	return v.all[claimID]
}

// speak reports whether ref speaks for a claim, and if so holds the claim until done is called.
func (k *walk) speak(ref corpus.Ref, c corpus.Claim) (done func(), ok bool, err error) {
	me := Voice{Rank: claimRank(ref, c), Stage: KindParse + "/" + ref.Source, Key: ref.URL + ref.Row}
	v := k.voices.of(c.ID)
	v.mu.Lock()
	defer func() {
		if !ok || err != nil {
			v.mu.Unlock()
		}
	}()
	known, has, err := k.w.tables.Voices.Get(c.ID)
	if corrupt := (*kv.CorruptError)(nil); errors.As(err, &corrupt) {
		has, err = false, nil
	}
	if err != nil {
		return nil, false, err
	}
	if has && known.Rank != me.Rank {
		still, err := k.tells(known, c.ID)
		if err != nil {
			return nil, false, err
		}
		if still && known.Rank < me.Rank {
			return nil, false, nil
		}
	}
	if v.Rank != "" && v.Rank < me.Rank {
		if !k.explain {
			err = k.w.tables.Voices.Put(c.ID, v.Voice)
		}
		return nil, false, err
	}
	if !k.explain && (v.Rank != "" && v.Rank != me.Rank || has && known != me) {
		if err := k.w.tables.Voices.Put(c.ID, me); err != nil {
			return nil, false, err
		}
	}
	v.Voice = me
	return v.mu.Unlock, true, nil
}

// tells reports whether the item of a voice still tells the claim.
func (k *walk) tells(v Voice, claimID string) (bool, error) {
	item, ok, err := k.e.Item(v.Stage, v.Key)
	if corrupt := (*kv.CorruptError)(nil); errors.As(err, &corrupt) {
		return false, nil
	}
	if err != nil || !ok || item.State() != "done" {
		return false, err
	}
	var claims []corpus.Claim
	if err := json.Unmarshal(item.Out, &claims); err != nil {
		return false, nil //nolint:nilerr // an unreadable output tells nothing
	}
	return slices.ContainsFunc(claims, func(c corpus.Claim) bool { return c.ID == claimID }), nil
}

// rowsOf maps the claims that imported rows with pairs tell to these rows, lowest rank first. Which row speaks
// for a claim decides about its verdict, not about its evidence: the pairs of all its rows are one list.
func (k *walk) rowsOf(ctx context.Context) (map[string][]string, error) {
	type teller struct{ rank, row string }
	tellers := map[string][]teller{}
	last := ""
	for key, err := range k.w.tables.Links.Keys("", "") {
		if err != nil {
			return nil, fmt.Errorf("read pairs: %w", err)
		}
		row := kv.Parts(key)[0]
		if row == last {
			continue
		}
		last = row
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		claims, err := k.toldBy(row)
		if err != nil {
			return nil, err
		}
		for _, c := range claims {
			tellers[c.ID] = append(tellers[c.ID], teller{claimRank(corpus.Ref{Row: row}, c), row})
		}
	}
	out := make(map[string][]string, len(tellers))
	for id, list := range tellers {
		slices.SortFunc(list, func(a, b teller) int { return strings.Compare(a.rank, b.rank) })
		for _, t := range list {
			out[id] = append(out[id], t.row)
		}
	}
	return out, nil
}

// toldBy returns the claims of an imported row by its name in links, none where there is no such row or it
// cannot be read: the walk of the rows says so.
func (k *walk) toldBy(row string) ([]corpus.Claim, error) {
	name, key, _ := strings.Cut(row, "/")
	table, err := scrapers.TableNamed(name)
	if err != nil {
		return nil, nil //nolint:nilerr // pairs of a table that this program does not know
	}
	stored, ok, err := k.w.tables.Rows.Get(kv.Key(name, key))
	if corrupt := (*kv.CorruptError)(nil); errors.As(err, &corrupt) || !ok && err == nil {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read row %s: %w", row, err)
	}
	claims, err := table.Parse(stored)
	if err != nil {
		return nil, nil //nolint:nilerr // an item that fails is told by its own stage
	}
	return claims, nil
}

// pairs joins the imported pairs of a claim: those of the row that is walked, then those of the other rows that
// tell the claim, by rank.
func (k *walk) pairs(row, claimID string) ([]corpus.Link, error) {
	out, err := k.w.links(row)
	if err != nil {
		return nil, err
	}
	for _, other := range k.rowsWithPairs[claimID] {
		if other == row {
			continue
		}
		more, err := k.w.links(other)
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	return out, nil
}
