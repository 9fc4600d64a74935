package fetch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"assay/kv"
)

// versionsPrefix begins, after depPrefix, the keys under which Versions reports.
const versionsPrefix = "versions "

// pastSum is the answer to "what was there before".
func pastSum(h head) [32]byte {
	if h.Past == "" {
		return absentSum
	}
	sum, err := hex.DecodeString(h.Past)
	if err != nil || len(sum) != sha256.Size {
		return absentSum
	}
	return [32]byte(sum)
}

// Versions returns what stood at the addresses of a page before it, oldest first, each change once.
// Answered is told of the question, so that an older capture that is imported later counts. A version
// whose body is no longer there is left out.
func (c *Client) Versions(ctx context.Context, page *Page) ([]*Page, error) {
	if h := page.head; h != nil && h.Past == "" {
		c.answered(ctx, depPrefix+versionsPrefix+requestKey("", page.URL, "", "", "", ""), pastSum(*h))
		return nil, nil
	}
	past, err := c.Changed(ctx, page.Addresses...)
	if err != nil || !past {
		return nil, err
	}
	all, err := c.Past(page.Addresses...)
	if err != nil {
		return nil, err
	}
	// The last one is the page itself, or was there before it at another of its addresses.
	if n := len(all); n > 0 && all[n-1].Sum() == page.Sum() {
		all = all[:n-1]
	}
	return all, nil
}

// Changed reports whether any of some addresses ever answered otherwise than it does. Answered is told of
// the question, and whatever rests on it keeps the earlier answers from being collected as garbage.
func (c *Client) Changed(ctx context.Context, addresses ...string) (bool, error) {
	past := false
	for _, address := range addresses {
		key := requestKey("", address, "", "", "", "")
		h, _, err := c.archive.head(key)
		if err != nil {
			return false, err
		}
		c.answered(ctx, depPrefix+versionsPrefix+key, pastSum(h))
		past = past || h.Past != ""
	}
	return past, nil
}

// Past returns what was ever retrieved from some addresses of one page, oldest first, each change once:
// the last one is what is there now, or was when the page was last seen.
func (c *Client) Past(addresses ...string) ([]*Page, error) {
	var list []Exchange
	for _, address := range addresses {
		of, _, err := c.archive.list(requestKey("", address, "", "", "", ""))
		if err != nil {
			return nil, err
		}
		for _, ex := range of {
			if ex.Class == ClassOK && ex.Status == http.StatusOK {
				list = append(list, ex)
			}
		}
	}
	slices.SortStableFunc(list, Exchange.compare)
	list = slices.CompactFunc(list, func(a, b Exchange) bool { return a.Body == b.Body })
	var pages []*Page
	for _, ex := range list {
		body, err := c.decode(ex, c.limits.DecompressedBytes)
		var corrupt *kv.CorruptError
		if errors.As(err, &corrupt) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read what %s was on %s: %w", ex.URL, ex.At.Format(time.DateOnly), err)
		}
		page, err := newPage(ex, body, nil)
		if err != nil {
			return nil, err
		}
		pages = append(pages, page)
	}
	return pages, nil
}

// A Standing is what the store knows about a request without asking anybody.
type Standing struct {
	Asked  time.Time // when it was last asked for; zero if it never was
	Latest Class     // of the newest exchange
	Status int       // of the newest exchange, 0 if there was no HTTP answer
	Reason string    // of the newest exchange, where it is not ok

	Answer    Class     // of what answers, "" where nothing does
	Retrieved time.Time // what answers
	GoneSince time.Time // first of the latest answers that say gone; zero if the latest does not
}

// Gone reports whether it is gone and that is believed: by what answers or, where nothing was ever
// there for us, by two answers GoneAfter apart.
func (s Standing) Gone() bool {
	return s.Answer == ClassGone && s.Asked.Sub(s.GoneSince) >= GoneAfter
}

// Leaving reports whether the newest answer says gone, and that is not believed yet.
func (s Standing) Leaving() bool { return s.Latest == ClassGone && s.Answer == ClassOK }

// Kept reports whether an older answer stands because the newest exchange brought none.
func (s Standing) Kept() bool { return s.Answer == ClassOK && s.Latest != "" && !s.Latest.answers() }

// Standing tells what is known about a page: of the last address that its stored redirects lead to, asked
// for when the first one was.
func (c *Client) Standing(url string) (Standing, error) {
	var first time.Time
	seen := map[string]bool{}
	for {
		key := requestKey("", url, "", "", "", "")
		s, next, err := c.standing(key)
		if err != nil {
			return s, err
		}
		if first.IsZero() || s.Asked.Before(first) {
			first = s.Asked
		}
		seen[url] = true
		if next == "" || seen[next] || len(seen) > c.limits.Redirects {
			s.Asked = first
			return s, nil
		}
		url = next
	}
}

// CallStanding tells what is known about a call to an interface.
func (c *Client) CallStanding(r Call) (Standing, error) {
	call, err := c.apiCall(r)
	if err != nil {
		return Standing{}, err
	}
	s, _, err := c.standing(call.key)
	return s, err
}

func (c *Client) standing(key string) (s Standing, next string, err error) {
	h, ok, err := c.archive.head(key)
	if err != nil || !ok {
		return s, "", err
	}
	s = Standing{Asked: h.Latest.At, Latest: h.Latest.Class, Status: h.Latest.Status, GoneSince: h.GoneSince}
	if !h.Latest.Class.answers() || h.Latest.Class == ClassGone {
		s.Reason = h.Latest.Reason
	}
	if ex, ok := h.usable(); ok {
		s.Answer, s.Retrieved, next = ex.Class, ex.At, redirectOf(ex)
	}
	return s, next, nil
}
