package output

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
)

// formatJSONL writes each table as JSON lines: UTF-8, one object a line, every column in every row,
// line ends \n. Characters that some readers take for a line end (U+0085, U+2028, U+2029) are escaped.
var formatJSONL = Format{
	Name: "jsonl",
	Doc:  "claims, documents, pairs and annotations as JSON lines; verdicts, mentions, events and controls where the recipe asks for them",
	Write: func(ctx context.Context, d *Dir, t Tables) error {
		if err := writeLines(ctx, d, "data/claims.jsonl", t.Claims, encode[ClaimRow]); err != nil {
			return err
		}
		if err := writeLines(ctx, d, "data/documents.jsonl", t.Documents, encode[DocumentRow]); err != nil {
			return err
		}
		if err := writeLines(ctx, d, "data/pairs.jsonl", t.Pairs, encode[PairRow]); err != nil {
			return err
		}
		if err := errors.Join(
			writeIfAny(ctx, d, "data/verdicts.jsonl", t.Verdicts), writeIfAny(ctx, d, "data/mentions.jsonl", t.Mentions), writeIfAny(ctx, d, "data/events.jsonl", t.Events),
		); err != nil {
			return err
		}
		if t.Controls != nil {
			if err := writeLines(ctx, d, "data/controls.jsonl", t.Controls, encode[ControlRow]); err != nil {
				return err
			}
		}
		return writeLines(ctx, d, "data/annotations.jsonl", t.Annotations, func(b *bytes.Buffer, c Call) error {
			if err := json.Compact(b, c.JSON); err != nil {
				return fmt.Errorf("call %s: %w", c.ID, err)
			}
			b.WriteByte('\n')
			return nil
		})
	},
}

// writeIfAny writes a table that a release need not have.
func writeIfAny[T any](ctx context.Context, d *Dir, path string, rows iter.Seq2[T, error]) error {
	if rows == nil {
		return nil
	}
	return writeLines(ctx, d, path, rows, encode[T])
}

func writeLines[T any](ctx context.Context, d *Dir, path string, rows iter.Seq2[T, error], enc func(*bytes.Buffer, T) error) (err error) {
	w, err := d.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	var line bytes.Buffer
	return each(ctx, rows, func(row T) error {
		line.Reset()
		if err := enc(&line, row); err != nil {
			return err
		}
		w.Rows++
		_, err := w.Write(escapeLineEnds(line.Bytes()))
		return err
	})
}

func encode[T any](b *bytes.Buffer, row T) error {
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)
	return e.Encode(row)
}

var lineEnds = []struct{ raw, escaped []byte }{
	{[]byte("\u0085"), []byte(`\u0085`)},
	{[]byte("\u2028"), []byte(`\u2028`)},
	{[]byte("\u2029"), []byte(`\u2029`)},
}

// escapeLineEnds is safe on encoded JSON: outside strings these characters cannot occur.
func escapeLineEnds(line []byte) []byte {
	for _, c := range lineEnds {
		if bytes.Contains(line, c.raw) {
			line = bytes.ReplaceAll(line, c.raw, c.escaped)
		}
	}
	return line
}
