package planner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"assay/corpus"
	"assay/fetch"
)

// FlagParentMissing is on a comment that answers one which is not there: its thread does not hold it, or
// nothing that was imported does.
const FlagParentMissing = "parent_missing"

// How often a comment that a thread names is asked for, how many one request may name, and what a
// thread may cost.
const (
	moreAsks       = 2
	moreBatch      = 100
	threadRequests = 100
	threadFaults   = 3 // requests that may fail
)

// A Thread is a post with the comments that could be read. Of one that was deleted or removed it holds
// that it is gone, and no word.
type Thread struct {
	Post       corpus.Document   // its body may be gone: see BodyStatus
	Comments   []corpus.Document // those with a body, as the thread has them; unfolded ones come last
	Gone       []corpus.Document // those that were deleted or removed, without any text
	Total      int               // comments as Reddit counts them, gone ones included
	Deleted    int               // by their authors
	Removed    int               // by a moderator or the site
	Empty      int               // without a body for no reason given
	Unreadable int               // entries that are no comments
	Unresolved []string          // fullnames of comments that were asked for in vain, sorted
	Branches   []string          // fullnames of comments whose branch goes on and could not be had, sorted
	Requests   int               // that it took, also those that the store answered
	Faults     []string          // what was said when a part of the thread could not be had
}

// Complete reports whether every comment that Reddit counts was met.
func (t Thread) Complete() bool {
	met := len(t.Comments) + t.Deleted + t.Removed + t.Empty
	return len(t.Unresolved) == 0 && len(t.Branches) == 0 && t.Unreadable == 0 && met >= t.Total
}

// Record says in a line how much of the thread was read: bodies, of the comments that Reddit counts.
func (t Thread) Record() string {
	yes := "no"
	if t.Complete() {
		yes = "yes"
	}
	return fmt.Sprintf("complete: %s, %d of %d", yes, len(t.Comments), max(t.Total, len(t.Comments)))
}

// Told is the record with what was taken away.
func (t Thread) Told() string {
	return fmt.Sprintf("%s; %d deleted, %d removed", t.Record(), t.Deleted, t.Removed)
}

// Thread reads a post with its comments: the thread itself, then what its "more" entries stand for,
// with one request at a time. A comment is asked for at most twice, and a part that cannot be had makes
// the thread incomplete, not an error: that is for a thread which cannot be read at all.
func (r *Reddit) Thread(ctx context.Context, fullname string) (Thread, error) {
	id, ok := strings.CutPrefix(strings.ToLower(fullname), "t3_")
	if !ok || !base36.MatchString(id) {
		return Thread{}, &APIError{API: redditName, Asked: "thread " + clip(fullname), Reason: ReasonBadRequest, Detail: "a thread is named by its post, t3_..."}
	}
	u := newUnfolding(id)
	asked := "thread t3_" + id
	reply, err := r.ask(ctx, r.call("/comments/"+id+"?"+query("limit", "500", "sort", "confidence", "raw_json", "1"), nil), asked, true)
	if err != nil {
		return Thread{}, err
	}
	u.thread.Requests++
	if err := u.page(reply.Body); err != nil {
		return Thread{}, &APIError{API: redditName, Asked: asked, Reason: ReasonBadReply, Detail: clip(err.Error()), Status: reply.Status, Tries: reply.Tries}
	}
	if u.thread.Post.ID != corpus.RedditID("t3_"+id) {
		return Thread{}, &APIError{API: redditName, Asked: asked, Reason: ReasonBadReply, Detail: "the reply is another thread", Status: reply.Status, Tries: reply.Tries}
	}
	u.thread.Post = stamped(u.thread.Post, reply.Retrieved)
	for u.thread.Requests < threadRequests && len(u.thread.Faults) < threadFaults {
		call, read, asked, ok := u.next(r)
		if !ok {
			break
		}
		if err := r.unfold(ctx, call, read, asked, &u.thread); err != nil {
			return Thread{}, err
		}
	}
	t := u.done()
	for _, list := range [][]corpus.Document{t.Comments, t.Gone} {
		for i, c := range list {
			list[i] = stamped(c, reply.Retrieved)
		}
	}
	return t, nil
}

// unfold asks for a part of a thread. An error ends the thread only if it would end anything.
func (r *Reddit) unfold(ctx context.Context, c fetch.Call, read func([]byte) error, asked string, t *Thread) error {
	select {
	case r.more <- struct{}{}:
		defer func() { <-r.more }()
	case <-ctx.Done():
		return ctx.Err()
	}
	t.Requests++
	reply, err := r.ask(ctx, c, asked, false)
	var refused *APIError
	switch {
	case err != nil && ends(ctx, err):
		return err
	case errors.As(err, &refused) && refused.Detail == noComments && refused.Reason == ReasonBadReply:
		return nil // its ids are asked for again, or given up
	case err != nil:
		t.Faults = append(t.Faults, clip(err.Error()))
		return nil
	}
	if err := read(reply.Body); err != nil {
		t.Faults = append(t.Faults, clip(fmt.Sprintf("%s: %v", asked, err)))
	}
	return nil
}

// judgeMore knows that an answer without a comment is no answer to keep: the same ids may be there the
// next time.
func judgeMore(r fetch.Reply) fetch.Judgement {
	j := judgeReddit(r)
	if j.Class == "" && r.Class == fetch.ClassOK && r.Status/100 == 2 {
		if things, err := moreThings(r.Body); err != nil || len(things) == 0 {
			j.Class, j.Reason = fetch.ClassFailed, noComments
		}
	}
	return j
}

// noComments is what judgeMore calls an empty answer.
const noComments = "no comments"

// moreThings are the entries of a reply of /api/morechildren. Errors in it name no comment.
func moreThings(body []byte) ([]json.RawMessage, error) {
	var reply struct {
		JSON struct {
			Data struct {
				Things []json.RawMessage `json:"things"`
			} `json:"data"`
		} `json:"json"`
	}
	err := json.Unmarshal(body, &reply)
	return reply.JSON.Data.Things, err
}

// An unfolding is a thread on its way: what was met and what is still to be asked for.
type unfolding struct {
	thread  Thread
	post    string
	met     map[string]bool // ids of comments
	asks    map[string]int  // by id that a "more" names
	queue   []string        // ids that are to be asked for, in order
	stubs   []string        // ids of comments whose branch goes on, not yet asked for
	stubbed map[string]bool
	open    map[string]bool // branches that were asked for: whether in vain
}

func newUnfolding(post string) *unfolding {
	return &unfolding{post: post, met: map[string]bool{}, asks: map[string]int{}, stubbed: map[string]bool{}, open: map[string]bool{}}
}

// next gives the next request that the thread needs, with what reads its answer: comments that a "more"
// names, then branches that go on behind their last comment. It is false where there is none.
func (u *unfolding) next(r *Reddit) (c fetch.Call, read func([]byte) error, asked string, ok bool) {
	if ids := u.batch(); len(ids) > 0 {
		path := "/api/morechildren?" + query("api_type", "json", "link_id", "t3_"+u.post, "children", strings.Join(ids, ","), "limit_children", "false", "sort", "confidence", "raw_json", "1")
		return r.call(path, judgeMore), u.more, fmt.Sprintf("%d comments of t3_%s", len(ids), u.post), true
	}
	if len(u.stubs) > 0 {
		at := u.stubs[0]
		u.stubs = u.stubs[1:]
		path := "/comments/" + u.post + "?" + query("comment", at, "limit", "500", "sort", "confidence", "raw_json", "1")
		u.open[at] = true
		return r.call(path, nil), func(body []byte) error {
			err := u.page(body)
			u.open[at] = err != nil
			return err
		}, fmt.Sprintf("the branch under t1_%s", at), true
	}
	return c, nil, "", false
}

// batch takes ids from the queue and notes that they are asked for. Those that were never asked for go
// first, so that one which does not come holds up nothing.
func (u *unfolding) batch() []string {
	for round := range moreAsks {
		var ids []string
		for _, id := range u.queue {
			if !u.met[id] && u.asks[id] == round && len(ids) < moreBatch {
				ids = append(ids, id)
			}
		}
		if len(ids) > 0 {
			for _, id := range ids {
				u.asks[id]++
			}
			return ids
		}
	}
	return nil
}

// page reads a reply to /comments: two listings, the post's and the comments'.
func (u *unfolding) page(body []byte) error {
	var listings []child
	if err := json.Unmarshal(body, &listings); err != nil {
		return fmt.Errorf("a thread is two listings: %w", err)
	}
	if len(listings) != 2 || listings[0].Kind != "Listing" || listings[1].Kind != "Listing" {
		return fmt.Errorf("a thread is two listings, not %d", len(listings))
	}
	if u.thread.Post.ID == "" {
		if err := u.first(listings[0]); err != nil {
			return err
		}
	}
	u.node(listings[1], "t3_"+u.post, 0)
	return nil
}

// first reads the post of a thread.
func (u *unfolding) first(listing child) error {
	var data struct {
		Children []child `json:"children"`
	}
	if err := json.Unmarshal(listing.Data, &data); err != nil || len(data.Children) != 1 || data.Children[0].Kind != "t3" {
		return errors.Join(errors.New("its first listing is not one post"), err)
	}
	t, err := parseThing(data.Children[0].Data)
	if err != nil {
		return fmt.Errorf("its post: %w", err)
	}
	var counted struct {
		Total loose `json:"num_comments"`
	}
	if err := json.Unmarshal(data.Children[0].Data, &counted); err != nil {
		return fmt.Errorf("its post: %w", err)
	}
	total, err := strconv.ParseFloat(string(counted.Total), 64)
	if err == nil && total > 0 && total < 1e9 {
		u.thread.Total = int(total)
	}
	u.thread.Post, err = t.document("t3", escapedNot)
	return err
}

// more reads a reply of /api/morechildren: a flat list, each with its parent.
func (u *unfolding) more(body []byte) error {
	things, err := moreThings(body)
	if err != nil {
		return err
	}
	for _, raw := range things {
		var c child
		if json.Unmarshal(raw, &c) != nil {
			u.thread.Unreadable++
			continue
		}
		u.node(c, "", 0)
	}
	return nil
}

// node takes in one entry of a thread and what hangs on it.
func (u *unfolding) node(c child, parent string, depth int) {
	switch {
	case depth > maxDepth:
		u.thread.Unreadable++
	case c.Kind == "Listing":
		var listing struct {
			Children []child `json:"children"`
		}
		if json.Unmarshal(c.Data, &listing) != nil {
			u.thread.Unreadable++
			return
		}
		for _, c := range listing.Children {
			u.node(c, parent, depth)
		}
	case c.Kind == "more":
		u.fold(c.Data)
	case c.Kind == "t1":
		u.comment(c.Data, parent, depth)
	default:
		u.thread.Unreadable++
	}
}

// fold notes what a "more" stands for: comments by id, or, where it names none, the rest of the branch
// under its parent.
func (u *unfolding) fold(data json.RawMessage) {
	var more struct {
		Parent   loose   `json:"parent_id"`
		Children []loose `json:"children"`
	}
	if json.Unmarshal(data, &more) != nil {
		u.thread.Unreadable++
		return
	}
	named := false
	for _, id := range more.Children {
		id := strings.TrimPrefix(strings.ToLower(string(id)), "t1_")
		if !base36.MatchString(id) {
			continue
		}
		named = true
		if _, known := u.asks[id]; !known && !u.met[id] {
			u.asks[id] = 0
			u.queue = append(u.queue, id)
		}
	}
	at, ok := strings.CutPrefix(strings.ToLower(string(more.Parent)), "t1_")
	if named || !ok || !base36.MatchString(at) || u.stubbed[at] {
		return // under the post itself there is nothing more to ask for than the thread
	}
	u.stubbed[at] = true
	u.stubs = append(u.stubs, at)
}

func (u *unfolding) comment(data json.RawMessage, parent string, depth int) {
	t, err := parseThing(data)
	var d corpus.Document
	if err == nil {
		d, err = t.document("t1", escapedNot)
	}
	if err != nil {
		u.thread.Unreadable++
		return
	}
	id := strings.TrimPrefix(d.ID, corpus.RedditID("t1_"))
	if !u.met[id] {
		u.met[id] = true
		if d.Parent == "" && parent != "" {
			d.Parent = corpus.RedditID(parent)
		}
		switch {
		case d.BodyStatus == corpus.BodyDeleted:
			u.thread.Deleted++
			u.thread.Gone = append(u.thread.Gone, d)
		case d.BodyStatus == corpus.BodyRemoved:
			u.thread.Removed++
			u.thread.Gone = append(u.thread.Gone, d)
		case d.Text == "":
			u.thread.Empty++
		default:
			d.Flags = corpus.AddFlag(d.Flags, FlagRedditAPI)
			u.thread.Comments = append(u.thread.Comments, d)
		}
	}
	if len(t.Replies) == 0 || t.Replies[0] != '{' {
		return // an empty string where nobody answered
	}
	var replies child
	if json.Unmarshal(t.Replies, &replies) != nil {
		u.thread.Unreadable++
		return
	}
	u.node(replies, "t1_"+id, depth+1)
}

// done closes a thread: what did not come is listed, and a comment whose parent the thread does not
// hold says so.
func (u *unfolding) done() Thread {
	t := u.thread
	for _, id := range u.queue {
		if !u.met[id] {
			t.Unresolved = append(t.Unresolved, "t1_"+id)
		}
	}
	for at, vain := range u.open {
		if vain {
			u.stubs = append(u.stubs, at)
		}
	}
	for _, at := range u.stubs { // in vain, or not at all: the thread took too many requests
		t.Branches = append(t.Branches, "t1_"+at)
	}
	slices.Sort(t.Unresolved)
	slices.Sort(t.Branches)
	for i, c := range t.Comments {
		if up, ok := strings.CutPrefix(c.Parent, corpus.RedditID("t1_")); ok && !u.met[up] {
			t.Comments[i].Flags = corpus.AddFlag(c.Flags, FlagParentMissing)
		}
	}
	if t.Post.BodyStatus != corpus.BodyDeleted && t.Post.BodyStatus != corpus.BodyRemoved {
		t.Post.Flags = corpus.AddFlag(t.Post.Flags, FlagRedditAPI)
	}
	return t
}
