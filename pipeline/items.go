package pipeline

import (
	"fmt"
	"iter"
	"strings"
	"time"

	"assay/kv"
)

// An ItemInfo is a line about a stored item: all of it but its output.
type ItemInfo struct {
	Stage    string        `json:"stage"`
	Key      string        `json:"key"`
	State    string        `json:"state"`            // see Item.State
	Class    string        `json:"class,omitzero"`   // of a failure
	Reason   string        `json:"reason,omitzero"`  // of a failure or an exclusion
	Version  int           `json:"version"`          // of the stage when it ran
	Bytes    int           `json:"bytes"`            // of the output as JSON
	Deps     int           `json:"deps"`             // how many answers it rests on
	Started  time.Time     `json:"started,omitzero"` // when it ran the last time
	Duration time.Duration `json:"duration_ns"`
	Attempts int           `json:"attempts"` // how often it ran
}

// Items yields the stored items of a stage ("parse/politifact"), of a kind ("parse") or, for "",
// of all stages, by kind, plugin and key. It tells what is recorded, not whether it is fresh. A
// record that cannot be read is yielded as an error, with stage and key, and the scan goes on.
func (e *Engine) Items(stage string) iter.Seq2[ItemInfo, error] {
	return func(yield func(ItemInfo, error) bool) {
		for entry, err := range e.items.Scan(stagePrefix(stage), "") {
			name, key := ItemName(entry.Key)
			if err != nil {
				if !yield(ItemInfo{Stage: name, Key: key}, fmt.Errorf("list items of %q: %w", stage, err)) {
					return
				}
				continue
			}
			if !yield(info(name, key, entry.Value.item()), nil) {
				return
			}
		}
	}
}

// Count returns how many items of a stage, a kind or all stages ("") are stored.
func (e *Engine) Count(stage string) (int, error) {
	n, err := e.items.Count(stagePrefix(stage))
	if err != nil {
		return 0, fmt.Errorf("count items of %q: %w", stage, err)
	}
	return n, nil
}

// Item returns the stored record of one item, and whether there is one.
func (e *Engine) Item(stage, key string) (Item, bool, error) {
	rec, ok, err := e.items.Get(itemKey(stage, key))
	if err != nil {
		return Item{}, false, fmt.Errorf("read %s %s: %w", stage, key, err)
	}
	return rec.item(), ok, nil
}

func stagePrefix(stage string) string {
	switch kind, plugin, exact := strings.Cut(stage, "/"); {
	case stage == "":
		return ""
	case exact:
		return kv.Prefix(kind, plugin)
	default:
		return kv.Prefix(kind)
	}
}

// ItemName tells stage and key of a record of Bucket by the record's key.
func ItemName(id string) (stage, key string) {
	parts := kv.Parts(id)
	if len(parts) != 3 {
		return "", id // unreachable unless the store is corrupt
	}
	if parts[1] == "" {
		return parts[0], parts[2]
	}
	return parts[0] + "/" + parts[1], parts[2]
}

func info(stage, key string, it Item) ItemInfo {
	i := ItemInfo{
		Stage: stage, Key: key, State: it.State(), Version: it.Version, Bytes: len(it.Out), Deps: len(it.Deps),
		Started: it.Seen.Started, Duration: it.Seen.Duration, Attempts: it.Seen.Attempts,
	}
	switch {
	case it.Fail != nil:
		i.Class, i.Reason = it.Fail.Class, it.Fail.Reason
	case it.Excl != nil:
		i.Reason = it.Excl.Reason
	}
	return i
}
