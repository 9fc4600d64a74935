package scrapers

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"regexp"
	"strings"
	"unicode/utf8"
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
	if err := searchError(reply); err != nil {
		return ClaimSearch{}, fmt.Errorf("read reply of claims:search: %w", err)
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

// searchError is the error that a reply is, nil if it is none.
func searchError(reply node) error {
	if e, ok := reply["error"].(node); ok {
		return fmt.Errorf("the service says %s %s: %s", scalar(e["code"]), scalar(e["status"]), scalar(e["message"]))
	}
	return nil
}

// ReadClaimFeed yields the reviews of a ClaimReview feed: a DataFeed as Data Commons publishes it, a
// list of its items, or items one after the other. An item that is no item is an error that names its
// place, and the next one follows. So it is where the JSON itself is broken and the items can be told apart
// in it, see brokenFeed; elsewhere the error is the last.
func ReadClaimFeed(r io.Reader) iter.Seq2[Review, error] {
	return func(yield func(Review, error) bool) {
		for item, err := range feedItems(r) {
			if err != nil {
				if !yield(Review{}, err) {
					return
				}
				continue
			}
			for _, review := range item.reviews() {
				if !yield(review, nil) {
					return
				}
			}
		}
	}
}

// A feedItem is one item of a feed: a DataFeedItem or a bare ClaimReview.
type feedItem struct {
	at  int // from 1
	raw json.RawMessage
	n   node

	mended bool // its JSON was broken
}

// reviews returns the reviews of an item, none where its list of them is null, as in some.
func (i feedItem) reviews() []Review {
	m := markup{base: scalar(i.n["url"]), ids: map[string]node{}}
	m.index(i.n)
	var out []Review
	var notes []string
	if i.mended {
		notes = []string{NoteRepaired}
	}
	m.find(i.n, func(found node) { out = append(out, m.reviews(found, notes)...) })
	if !isType(i.n, "ClaimReview") {
		for k := range out {
			out[k].Created = out[k].stamp("dateCreated", i.n["dateCreated"])
		}
	}
	return out
}

// feedItems yields the items of a feed.
func feedItems(r io.Reader) iter.Seq2[feedItem, error] {
	return func(yield func(feedItem, error) bool) {
		head, err := io.ReadAll(io.LimitReader(r, recordBytes))
		if err != nil {
			yield(feedItem{}, fmt.Errorf("read claim feed after item 0: %w", &EndError{err}))
			return
		}
		if len(head) < recordBytes && !wellFormed(head) {
			if items, end, ok := brokenFeed(string(head)); ok {
				mendItems(items, end, yield)
				return
			}
		}
		g := &gauge{r: io.MultiReader(bytes.NewReader(head), r), left: recordBytes}
		f := claimFeed{gauge: g, d: json.NewDecoder(g), yield: yield}
		for {
			switch err := f.value(); {
			case errors.Is(err, io.EOF) && f.depth == 0, errors.Is(err, errStopped):
				return
			case err != nil:
				if errors.Is(err, io.EOF) {
					err = io.ErrUnexpectedEOF
				}
				yield(feedItem{}, fmt.Errorf("read claim feed after item %d: %w", f.items, &EndError{err}))
				return
			}
		}
	}
}

// wellFormed reports whether a text is values of JSON, one after the other.
func wellFormed(text []byte) bool {
	d := json.NewDecoder(bytes.NewReader(text))
	for {
		var v json.RawMessage
		if err := d.Decode(&v); err != nil {
			return errors.Is(err, io.EOF)
		}
	}
}

var (
	itemLine = regexp.MustCompile(`(?m)^\{"`)
	itemList = regexp.MustCompile(`^\s*(?:\{[^\[\]]*"dataFeedElement"\s*:\s*)?\[`)
)

// brokenFeed tells the items of broken JSON apart: by the lines on which they start, where each has its own,
// or by their brackets, which needs strings that end. End is the error of a list that breaks off; ok is
// false for what is neither lines nor a list.
func brokenFeed(text string) (items []string, end error, ok bool) {
	if starts := itemLine.FindAllStringIndex(text, -1); len(starts) > 1 && strings.TrimSpace(text[:starts[0][0]]) == "" {
		for i, at := range starts {
			next := len(text)
			if i+1 < len(starts) {
				next = starts[i+1][0]
			}
			items = append(items, text[at[0]:next])
		}
		return items, nil, true
	}
	head := itemList.FindString(text)
	if head == "" {
		return nil, nil, false
	}
	depth, from := 0, len(head)
	add := func(to int) {
		if item := strings.Trim(text[from:to], " \t\r\n;,"); item != "" {
			items = append(items, item)
		}
		from = to + 1
	}
	for i := from; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			n, _ := mendString(text[i:])
			if n == 0 {
				return items, io.ErrUnexpectedEOF, true
			}
			i += n - 1
		case c == '{' || c == '[':
			depth++
		case (c == '}' || c == ']') && depth > 0:
			depth--
		case c == ',' && depth == 0:
			add(i)
		case c == ']':
			add(i)
			return items, nil, true
		}
	}
	if depth == 0 {
		add(len(text))
	}
	return items, io.ErrUnexpectedEOF, true
}

// mendItems yields the items of a broken feed: mended where only one reading is possible, as an error that
// names its place otherwise.
func mendItems(items []string, end error, yield func(feedItem, error) bool) {
	f := claimFeed{yield: yield}
	for _, text := range items {
		raw, err := text, error(nil)
		if f.mended = !json.Valid([]byte(text)); f.mended {
			raw, err = mend(strings.TrimSpace(text))
		}
		if err == nil && !json.Valid([]byte(raw)) {
			err = errors.New("only a guess would mend it")
		}
		if err != nil {
			f.items++
			if !yield(feedItem{}, fmt.Errorf("read claim feed: item %d is broken JSON: %w: %.60q", f.items, err, text)) {
				return
			}
			continue
		}
		if f.item(json.RawMessage(raw)) != nil {
			return
		}
	}
	if end != nil {
		yield(feedItem{}, fmt.Errorf("read claim feed after item %d: %w", f.items, &EndError{end}))
	}
}

// errStopped says that the reader of the feed has had enough.
var errStopped = errors.New("stopped")

// feedDepth is more than any feed has: the feed, its list, the item.
const feedDepth = 8

type claimFeed struct {
	gauge *gauge
	d     *json.Decoder
	yield func(feedItem, error) bool
	items int
	depth int // of the containers that are open

	mended bool // the JSON of the item at hand was
}

// value reads one value at the top: the feed, a list of items, or an item.
func (f *claimFeed) value() error {
	f.gauge.left = recordBytes
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
	return f.item(nil)
}

// list reads items up to the end of an open list.
func (f *claimFeed) list() error {
	f.depth++
	for f.d.More() {
		f.gauge.left = recordBytes
		var raw json.RawMessage
		if err := f.d.Decode(&raw); err != nil {
			return err
		}
		if err := f.item(raw); err != nil {
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
	rest, feed := map[string]json.RawMessage{}, false
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
		var raw json.RawMessage
		if err := f.d.Decode(&raw); err != nil {
			return err
		}
		rest[key] = raw
	}
	if _, err := f.d.Token(); err != nil {
		return err
	}
	f.depth--
	if feed {
		return nil
	}
	raw, err := json.Marshal(rest)
	if err != nil {
		return err
	}
	return f.item(raw)
}

// item yields one item.
func (f *claimFeed) item(raw json.RawMessage) error {
	f.items++
	n, err := nodeOf(raw)
	if _, has := n["item"]; err == nil && !has && !isType(n, "ClaimReview") {
		err = errors.New("is neither a DataFeedItem nor a ClaimReview")
	}
	if err != nil {
		err = fmt.Errorf("read claim feed: item %d %w", f.items, err)
	}
	if !f.yield(feedItem{at: f.items, raw: raw, n: n, mended: f.mended}, err) {
		return errStopped
	}
	return nil
}

// nodeOf reads an object, numbers as they are written.
func nodeOf(raw []byte) (node, error) {
	if !utf8.Valid(raw) {
		return nil, errNotUTF8
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, errors.New("is no object")
	}
	n, _ := v.(node)
	return n, nil
}
