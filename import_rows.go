package assay

import (
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"assay/corpus"
	"assay/kv"
	"assay/scrapers"
)

// A write holds so many rows, or so many bytes of them: a sync for each row would be the slowest part of an
// import.
const (
	rowBatch      = 500
	rowBatchBytes = 2 << 20
)

// rowWriter stores the rows of one file. What it holds for each is where its key stood; the rows
// themselves are held until the next write.
type rowWriter struct {
	w       *Workspace
	table   string
	pages   bool // links are the table's alone
	r       *ImportReport
	seed    maphash.Seed
	seen    map[uint64]int32 // by hash of the key: place in the file
	pending map[string]scrapers.Row
	ops     []kv.Op
	bytes   int
}

func (w *Workspace) newRows(table scrapers.Table, r *ImportReport) *rowWriter {
	for _, name := range []string{"rows read", "rows stored", "rows refused"} {
		r.Counts[name] += 0 // an import says so of nothing too
	}
	return &rowWriter{w: w, table: table.Name, pages: table.Pages, r: r, seed: maphash.MakeSeed(), seen: map[uint64]int32{}, pending: map[string]scrapers.Row{}}
}

func size(fields map[string]string) (n int) {
	for _, v := range fields {
		n += len(v)
	}
	return n
}

// refuse records a row that cannot be read. What is known to be no claim is counted by its reason.
func (rows *rowWriter) refuse(err error) {
	rows.r.Counts["rows read"]++
	if ex := (*corpus.ExcludedError)(nil); errors.As(err, &ex) {
		rows.r.Counts["rows left out: "+ex.Reason]++
		return
	}
	rows.r.Counts["rows refused"]++
	rows.r.problem("%v", err)
}

// add stores a row unless the store has it. A row that stands twice in one file with different content is
// refused, because nobody knows which of the two holds.
func (rows *rowWriter) add(row scrapers.Row) error {
	n := size(row.Fields)
	if n > maxDocument {
		rows.refuse(fmt.Errorf("row %d: %d bytes are no claim's", row.At, n))
		return nil
	}
	key := kv.Key(rows.table, row.Key)
	hash := maphash.String(rows.seed, key)
	first, again := rows.seen[hash]
	known, has := rows.pending[key]
	if !has {
		var err error
		if known, has, err = rows.w.tables.Rows.Get(key); err != nil {
			if corrupt := (*kv.CorruptError)(nil); !errors.As(err, &corrupt) {
				return fmt.Errorf("read row %s of %s: %w", row.Key, rows.table, err)
			}
			has = false // this import makes it again
		}
	}
	if has && !again {
		var contradicts string
		if row, contradicts = rows.agree(known, row); contradicts != "" {
			rows.r.Counts["rows read"]++
			rows.r.Counts["rows refused"]++
			rows.r.conflict(rows.table, row, contradicts)
			return nil
		}
	}
	same := has && known.Number == row.Number && maps.Equal(known.Fields, row.Fields)
	if again && has {
		if differ := differing(known.Fields, row.Fields); len(differ) > 0 {
			rows.refuse(fmt.Errorf("row %d: it is row %d of the file again, with another %s", row.At, first, strings.Join(differ, ", ")))
			return nil
		}
	}
	for _, note := range row.Notes {
		what, _, _ := strings.Cut(note, ":")
		rows.r.Counts["note: "+what]++
	}
	rows.r.Counts["rows read"]++
	rows.r.Counts["links"] += len(row.Links)
	switch {
	case again && has:
		rows.r.Counts["rows repeated"]++
		return nil
	case same:
		rows.seen[hash] = int32(row.At)
		rows.r.Counts["rows known"]++
		return nil
	case has:
		rows.r.Counts["rows changed"]++
	}
	rows.seen[hash] = int32(row.At)
	if err := rows.put(key, row, has); err != nil {
		return err
	}
	if rows.bytes += n; len(rows.pending) >= rowBatch || rows.bytes >= rowBatchBytes {
		return rows.flush()
	}
	return nil
}

// agree compares a row with the stored one of its key, where nothing but a contradiction can make them
// differ: a number of RAGuard is one claim for ever, and a wording is the same claim in every file. A row
// that its table names by an id or an address may have a newer edition, which replaces it.
func (rows *rowWriter) agree(stored, row scrapers.Row) (_ scrapers.Row, contradicts string) {
	switch {
	case rows.table == "raguard" || rows.table == "pairs":
		return agree(stored, row)
	case rows.table == "mapped" && row.Fields["id"] == "" && row.Fields["url"] == "":
		was, is := stored.Fields["rating"], row.Fields["rating"]
		if was != "" && is != "" && !sameWords(was, is) {
			return row, fmt.Sprintf("its rating is %.80q, not %.80q", was, is)
		}
	}
	return row, ""
}

// differing names the fields in which two rows differ. Two spellings of one wording do not.
func differing(a, b map[string]string) []string {
	var out []string
	for name, v := range a {
		if w, ok := b[name]; !ok || w != v && corpus.Wording(w) != corpus.Wording(v) {
			out = append(out, fmt.Sprintf("%q", name))
		}
	}
	for name := range b {
		if _, ok := a[name]; !ok {
			out = append(out, fmt.Sprintf("%q", name))
		}
	}
	slices.Sort(out)
	return out
}

// put adds a row and its links to the next write. A link whose document is known under a better id keeps
// it; of a row that replaces another, pages that it no longer links to go.
func (rows *rowWriter) put(key string, row scrapers.Row, replaces bool) error {
	links := row.Links
	row.Links = nil
	op, err := rows.w.tables.Rows.PutOp(key, row)
	if err != nil {
		return err
	}
	rows.ops = append(rows.ops, op)
	rows.pending[key] = row
	now := map[string]bool{}
	for _, l := range links {
		l.Row = rows.table + "/" + row.Key
		key := linkKey(l)
		now[key] = true
		stored, has, err := rows.w.tables.Links.Get(key)
		if corrupt := (*kv.CorruptError)(nil); err != nil && !errors.As(err, &corrupt) {
			return err
		}
		if has && err == nil {
			if l.Label == "" || l.Label == stored.Label {
				continue
			}
			rows.contradicted(row, l, stored.Label)
			l = stored
			l.Label = "" // nobody knows which of the two holds
		}
		op, err := rows.w.tables.Links.PutOp(key, l)
		if err != nil {
			return err
		}
		rows.ops = append(rows.ops, op)
	}
	if !replaces || !rows.pages {
		return nil // links may have come as pairs, before their row
	}
	for key, err := range rows.w.tables.Links.Keys(kv.Prefix(rows.table+"/"+row.Key), "") {
		if err != nil {
			return err
		}
		if !now[key] {
			rows.ops = append(rows.ops, rows.w.tables.Links.DeleteOp(key))
		}
	}
	return nil
}

// contradicted names a pair to which the table gives another label than the import of pairs that came before.
func (rows *rowWriter) contradicted(row scrapers.Row, l corpus.Link, before corpus.StanceLabel) {
	rows.r.Counts["conflicts"]++
	was := "has no label because imports contradicted each other"
	if before != "" {
		was = "is " + string(before) + " in the one imported before"
	}
	rows.r.problem("row %d of %s: the pair of claim %s and %s is %s here and %s; neither label is used", row.At, filepath.Base(rows.r.Path), row.Key, l.DocumentID, l.Label, was)
}

func (rows *rowWriter) flush() error {
	if len(rows.ops) == 0 {
		return nil
	}
	if err := rows.w.store.Write(rows.ops...); err != nil {
		return fmt.Errorf("store rows: %w", err)
	}
	rows.r.Counts["rows stored"] += len(rows.pending)
	rows.ops, rows.bytes = rows.ops[:0], 0
	clear(rows.pending)
	return nil
}
