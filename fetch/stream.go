package fetch

import (
	"context"
	"net/http"
	"time"
)

// A Stream is a stored body that is read in pieces. Whoever opened it closes it.
type Stream struct {
	URL       string // where it was found, after redirects
	Header    http.Header
	Retrieved time.Time
	Length    int64 // bytes as sent, content coding kept

	*contentReader
}

// Stream is Get for what is too large to be held in memory, such as a feed: it goes by the limits of feeds,
// and returns once the whole body is stored. Content codings are undone; characters are left as they are.
func (c *Client) Stream(ctx context.Context, r Request) (*Stream, error) {
	r.Large = true
	ans, call, hops, err := c.follow(ctx, r, true)
	if err != nil {
		return nil, err
	}
	if failed := ans.ex.failure(); failed != nil {
		failed.Tries = ans.tries
		return nil, from(hops[0], failed)
	}
	if err := c.archive.alias(call.url, hops[:len(hops)-1]); err != nil {
		return nil, err
	}
	body, err := c.archive.body(ans.ex)
	if err != nil {
		return nil, err
	}
	_, limit := c.limitsOf(true)
	in, err := openContent(ans.ex.Header, ans.ex.URL, body, limit)
	if err != nil {
		return nil, from(hops[0], err)
	}
	return &Stream{URL: call.url, Header: ans.ex.Header, Retrieved: ans.ex.At, Length: ans.ex.Length, contentReader: in}, nil
}
