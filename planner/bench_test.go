package planner

import (
	"bytes"
	"io"
	"testing"
)

// BenchmarkReadDump reads the captured archive lines again and again.
func BenchmarkReadDump(b *testing.B) {
	data, err := io.ReadAll(capture(b, "reddit/pushshift-submissions.ndjson"))
	if err != nil {
		b.Fatal(err)
	}
	data = bytes.Repeat(append(data, '\n'), 20)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		for _, err := range ReadDump("a.ndjson", bytes.NewReader(data)) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}
