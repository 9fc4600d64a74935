package fetch

import "context"

// Allowed reports whether the robots.txt of a host lets us request an address, asking for the file if
// it is not known: nil, or an *Error that says why not.
func (c *Client) Allowed(ctx context.Context, url string) error { return c.robots.check(ctx, url) }
