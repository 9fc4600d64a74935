package fetch

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
)

// RecordPage makes the page of one response record of a WARC file, as archives give single records out:
// the bytes of the record, gzipped or not. The page was retrieved when the archive captured it. A record
// of anything but a page that was answered with status 200 is an error.
func RecordPage(record []byte) (*Page, error) {
	w := newWARCReader(bytes.NewReader(record))
	rec, err := w.next()
	if err != nil {
		return nil, fmt.Errorf("read a WARC record: %w", err)
	}
	address := rec.get("WARC-Target-URI")
	if rec.kind != "response" || address == "" {
		return nil, fmt.Errorf("read a WARC record: it is a %s of %q and no answer", rec.kind, address)
	}
	in := bufio.NewReader(rec.block)
	first, header, err := readHead(in)
	if err != nil {
		return nil, fmt.Errorf("read the WARC record of %s: %w", address, err)
	}
	if fields := strings.Fields(first); len(fields) < 2 || fields[1] != "200" {
		return nil, fmt.Errorf("read the WARC record of %s: its answer begins with %q", address, first)
	}
	at, err := parseTime(rec.get("WARC-Date"))
	if err != nil {
		return nil, fmt.Errorf("read the WARC record of %s: %w", address, err)
	}
	body, err := io.ReadAll(io.LimitReader(in, maxDecompressed))
	if err != nil {
		return nil, fmt.Errorf("read the WARC record of %s: %w", address, err)
	}
	short := rec.block.short()
	if _, err := w.next(); err != nil && !errors.Is(err, io.EOF) || short || w.damaged(rec) {
		return nil, fmt.Errorf("read the WARC record of %s: it is cut or damaged", address)
	}
	p, err := NewPage(address, header, body, at)
	if err != nil {
		return nil, err
	}
	p.truncated = rec.get("WARC-Truncated") != ""
	return p, nil
}
