package scrapers

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
)

// A ClaimSearch is one reply of Google's Fact Check Tools (claims:search).
type ClaimSearch struct {
	Reviews []Review `json:"reviews"`
	Next    string   `json:"next,omitzero"` // pageToken of the next request; "" on the last page
}

// ReadClaimSearch reads a reply of claims:search: a review for each publisher of each claim. Nearly
// everything may be missing, a rating is free text in any language, and {} means that nothing was
// found. The error of a reply that is an error says what the service said; a claim that is no object is
// an error that names its place, beside the reviews of the others.
func ReadClaimSearch(r io.Reader) (ClaimSearch, error) {
	d := json.NewDecoder(r)
	d.UseNumber()
	var reply node
	if err := d.Decode(&reply); err != nil {
		return ClaimSearch{}, fmt.Errorf("read reply of claims:search: %w", err)
	}
	if e, ok := reply["error"].(node); ok {
		return ClaimSearch{}, fmt.Errorf("read reply of claims:search: the service says %s %s: %s", scalar(e["code"]), scalar(e["status"]), scalar(e["message"]))
	}
	var failed []error
	out := ClaimSearch{Reviews: []Review{}, Next: scalar(reply["nextPageToken"])}
	m := markup{}
	for i, c := range listed(reply["claims"]) {
		claim, ok := c.(node)
		if !ok {
			failed = append(failed, fmt.Errorf("read reply of claims:search: claim %d is no object", i+1))
			continue
		}
		for _, one := range m.nodes(claim["claimReview"]) {
			review := Review{
				Claim:      plain(scalar(claim["text"])),
				Claimants:  distinct([]string{plain(scalar(claim["claimant"]))}),
				RatingRaw:  decodeOnce(scalar(one["textualRating"])),
				Rating:     plain(scalar(one["textualRating"])),
				URLPrinted: decodeOnce(m.address(one["url"])),
				Title:      plain(scalar(one["title"])),
				Lang:       scalar(one["languageCode"]),
			}
			review.URL = m.resolve(review.URLPrinted)
			if publisher, ok := one["publisher"].(node); ok {
				review.Publisher, review.PublisherSite = plain(scalar(publisher["name"])), scalar(publisher["site"])
			}
			review.Claimed = review.stamp("claimDate", claim["claimDate"])
			review.Published = review.stamp("reviewDate", one["reviewDate"])
			out.Reviews = append(out.Reviews, review)
		}
	}
	return out, errors.Join(failed...)
}

// ReadClaimFeed yields the reviews of a ClaimReview feed: a DataFeed as Data Commons publishes it, a
// list of its items, or items one after the other. It holds one item at a time. An item that is no
// item is an error that names its place, and the next one follows; where the JSON itself is broken,
// the error is the last.
func ReadClaimFeed(r io.Reader) iter.Seq2[Review, error] {
	return func(yield func(Review, error) bool) {
		d := json.NewDecoder(r)
		d.UseNumber()
		f := claimFeed{d: d, yield: yield}
		for {
			switch err := f.value(); {
			case errors.Is(err, io.EOF) && f.depth == 0, errors.Is(err, errStopped):
				return
			case err != nil:
				if errors.Is(err, io.EOF) {
					err = io.ErrUnexpectedEOF
				}
				yield(Review{}, fmt.Errorf("read claim feed after item %d: %w", f.items, err))
				return
			}
		}
	}
}

// errStopped says that the reader of the feed has had enough.
var errStopped = errors.New("stopped")

// feedDepth is more than any feed has: the feed, its list, the item.
const feedDepth = 8

type claimFeed struct {
	d     *json.Decoder
	yield func(Review, error) bool
	items int
	depth int // of the containers that are open
}

// value reads one value at the top: the feed, a list of items, or an item.
func (f *claimFeed) value() error {
	t, err := f.d.Token()
	if err != nil {
		return err
	}
	switch t {
	case json.Delim('['):
		return f.list()
	case json.Delim('{'):
		return f.object()
	}
	return f.item(t)
}

// list reads items up to the end of an open list.
func (f *claimFeed) list() error {
	f.depth++
	for f.d.More() {
		var v any
		if err := f.d.Decode(&v); err != nil {
			return err
		}
		if err := f.item(v); err != nil {
			return err
		}
	}
	if _, err := f.d.Token(); err != nil {
		return err
	}
	f.depth--
	return nil
}

// object reads an open object: of a feed only the elements count, of anything else everything.
func (f *claimFeed) object() error {
	if f.depth++; f.depth > feedDepth {
		return errors.New("feeds lie inside feeds")
	}
	rest, feed := node{}, false
	for f.d.More() {
		t, err := f.d.Token()
		if err != nil {
			return err
		}
		key, _ := t.(string)
		if strings.EqualFold(key, "dataFeedElement") {
			if t, err = f.d.Token(); err != nil {
				return err
			}
			feed = true
			switch t {
			case json.Delim('['):
				err = f.list()
			case json.Delim('{'):
				err = f.object()
			}
			if err != nil {
				return err
			}
			continue
		}
		var v any
		if err := f.d.Decode(&v); err != nil {
			return err
		}
		rest[key] = v
	}
	if _, err := f.d.Token(); err != nil {
		return err
	}
	f.depth--
	if feed {
		return nil
	}
	return f.item(rest)
}

// item yields the reviews of one item. Items whose list of reviews is null are in the feed too.
func (f *claimFeed) item(v any) error {
	f.items++
	n, ok := v.(node)
	if _, has := n["item"]; !ok || !has && !isType(n, "ClaimReview") {
		if !f.yield(Review{}, fmt.Errorf("read claim feed: item %d is neither a DataFeedItem nor a ClaimReview", f.items)) {
			return errStopped
		}
		return nil
	}
	m := markup{base: scalar(n["url"]), ids: map[string]node{}}
	m.index(n)
	var reviews []Review
	m.find(n, func(found node) { reviews = append(reviews, m.reviews(found, nil)...) })
	for _, r := range reviews {
		if !isType(n, "ClaimReview") {
			r.Created = r.stamp("dateCreated", n["dateCreated"])
		}
		if !f.yield(r, nil) {
			return errStopped
		}
	}
	return nil
}
