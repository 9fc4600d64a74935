package planner

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sort"
	"strings"
	"time"

	"assay/corpus"
	"assay/fetch"
)

// ArcticShiftBase is where the archive Arctic Shift answers. It is run by a volunteer, who promises
// nothing and asks for a few requests a second at most; who needs much takes the monthly dumps.
const ArcticShiftBase = "https://arctic-shift.photon-reddit.com"

const (
	arcticName  = "Arctic Shift"
	arcticGap   = 500 * time.Millisecond
	arcticBatch = 500 // ids of one request
	arcticLimit = 100 // results of one search, beyond which the server chooses up to a thousand
)

// An ArcticShift asks the archive Arctic Shift, which keeps posts that Reddit shows no more: it tells
// of a deletion that it knows of, and no others. All methods may be called from many goroutines.
type ArcticShift struct {
	web  Web
	base string
}

// NewArcticShift makes a client; an empty base is ArcticShiftBase.
func NewArcticShift(web Web, base string) *ArcticShift {
	return &ArcticShift{web, strings.TrimSuffix(cmp.Or(base, ArcticShiftBase), "/")}
}

// Document reads a post or comment by its id.
func (a *ArcticShift) Document(ctx context.Context, fullname string, beside []string) (corpus.Document, error) {
	ids := wanted(fullname, beside)
	calls := make([]fetch.Call, len(ids))
	for i, id := range ids {
		calls[i] = a.Request(id)
	}
	join := func(places []int) fetch.Call {
		some := make([]string, len(places))
		for i, place := range places {
			some[i] = ids[place]
		}
		return a.ids(some...)
	}
	split := func(body []byte, places []int) ([][]byte, error) {
		things, err := thingsByName(body)
		out := make([][]byte, len(places))
		for i, place := range places {
			out[i] = fmt.Appendf(nil, `{"data":[%s]}`, things[ids[place]])
		}
		return out, err
	}
	if err := a.web.Batch(ctx, calls, arcticBatch, join, split); err != nil && ends(ctx, err) {
		return corpus.Document{}, err
	} // any other error comes back when the thing is asked for by itself
	asked := "post " + fullname
	reply, err := a.ask(ctx, a.Request(fullname), asked, true)
	if err != nil {
		return corpus.Document{}, err
	}
	docs, err := archived(reply, asked)
	if err != nil {
		return corpus.Document{}, err
	}
	for _, d := range docs {
		if d.ID == corpus.RedditID(fullname) {
			return seen(d, FlagArcticShift)
		}
	}
	return corpus.Document{}, &APIError{API: arcticName, Asked: asked, Reason: ReasonGone, Detail: "it is not in the archive", Status: reply.Status, Tries: reply.Tries, thing: true}
}

// Request asks for one post or comment. That it is not in the archive says nothing about Reddit.
func (a *ArcticShift) Request(fullname string) fetch.Call {
	c := a.ids(fullname)
	c.Judge = func(reply fetch.Reply) fetch.Judgement {
		return judgeThing(judgeArctic(reply), reply, fullname, dumped, "")
	}
	return c
}

// dumped reads the things of a reply in the form of dumps.
func dumped(reply *fetch.Reply) func(yield func(corpus.Document, error) bool) {
	return func(yield func(corpus.Document, error) bool) {
		for e, err := range redditPushshift.Read("reply", bytes.NewReader(reply.Body)) {
			if !yield(stamped(e.Document, reply.Retrieved), err) {
				return
			}
		}
	}
}

// ids asks for things of one kind.
func (a *ArcticShift) ids(fullnames ...string) fetch.Call {
	path := "/api/posts/ids?"
	if strings.HasPrefix(fullnames[0], "t1_") {
		path = "/api/comments/ids?"
	}
	return a.call(path + query("ids", strings.Join(fullnames, ",")))
}

// Search finds posts in subreddits, the newest first: the archive ranks by nothing else, and searches
// nowhere but in a subreddit.
func (a *ArcticShift) Search(ctx context.Context, text string, subreddits []string, k int) ([]Result, error) {
	limit := fmt.Sprint(k)
	if k > arcticLimit {
		limit = "auto"
	}
	var found []corpus.Document
	for _, subreddit := range subreddits {
		asked := fmt.Sprintf("posts about %q in r/%s", text, subreddit)
		call := a.call("/api/posts/search?" + query("subreddit", subreddit, "query", text, "sort", "desc", "limit", limit))
		call.Judge = judgeArcticSearch
		reply, err := a.ask(ctx, call, asked, false)
		if err != nil {
			return nil, err
		}
		docs, err := archived(reply, asked)
		if err != nil {
			return nil, err
		}
		found = append(found, docs...)
	}
	sort.SliceStable(found, func(i, j int) bool {
		if found[i].PublishedAt != found[j].PublishedAt {
			return found[i].PublishedAt > found[j].PublishedAt
		}
		return found[i].ID < found[j].ID
	})
	var out []Result
	known := map[string]bool{}
	for _, d := range found {
		if len(out) < k && !known[d.ID] {
			known[d.ID] = true
			out = append(out, Result{DocumentID: d.ID, URL: d.URL})
		}
	}
	return out, nil
}

func (a *ArcticShift) call(path string) fetch.Call {
	return fetch.Call{URL: a.base + path, Gap: arcticGap, Judge: judgeArctic}
}

// judgeArctic knows what the archive says when a query takes it too long. It says so with several
// statuses, and a second try often finds what the first one has warmed up.
func judgeArctic(r fetch.Reply) fetch.Judgement {
	j := judgeJSON(r)
	said, _ := remarkOf(r.Body).Error.(string)
	said = strings.ToLower(said)
	switch {
	case j.Class != "":
	case strings.Contains(said, "timed out"), strings.Contains(said, "timeout"), strings.Contains(said, "slow down"):
		j = fetch.Judgement{Class: fetch.ClassThrottled, Reason: "query timed out"}
		r.Class = j.Class
	case said != "" && r.Class == fetch.ClassOK:
		j = fetch.Judgement{Class: fetch.ClassFailed, Reason: "error in a good reply"}
	case r.Class == fetch.ClassGone && said == "":
		// An address that the archive does not know says nothing about a post.
		j = fetch.Judgement{Class: fetch.ClassFailed, Reason: "no interface there"}
	}
	j.Wait = leftAlone(r)
	return j
}

// judgeArcticSearch knows that a search answers with a list. Any other reply says nothing about what there is.
func judgeArcticSearch(r fetch.Reply) fetch.Judgement {
	j := judgeArctic(r)
	var got struct {
		Data *[]json.RawMessage `json:"data"`
	}
	if j.Class == "" && r.Class == fetch.ClassOK && r.Status/100 == 2 && (json.Unmarshal(r.Body, &got) != nil || got.Data == nil) {
		j.Class, j.Reason = fetch.ClassFailed, "no list in the reply"
	}
	return j
}

func (a *ArcticShift) ask(ctx context.Context, c fetch.Call, asked string, thing bool) (*fetch.Reply, error) {
	reply, err := a.web.Call(ctx, c)
	if err != nil {
		return nil, err
	}
	if (reply.Class == fetch.ClassOK || reply.Class == fetch.ClassGone) && reply.Status/100 == 2 {
		return reply, nil
	}
	e := refusal(arcticName, asked, reply)
	if reply.Class == fetch.ClassThrottled && reply.Status != http.StatusTooManyRequests {
		e.Reason = ReasonUnavailable
	}
	if e.Reason == ReasonCredentials || e.Reason == ReasonScope || e.Reason == ReasonGone && reply.Class == fetch.ClassFailed {
		e.Reason = ReasonBadRequest // it takes no credentials; an address without an interface is ours to mend
	}
	// A refusal is about us, not about a post.
	e.thing = thing && e.Reason == ReasonGone
	return nil, e
}

// archived reads the things of a reply. One that cannot be read is an error: nothing is passed over.
func archived(reply *fetch.Reply, asked string) ([]corpus.Document, error) {
	var docs []corpus.Document
	for d, err := range dumped(reply) {
		if err != nil {
			return nil, &APIError{API: arcticName, Asked: asked, Reason: ReasonBadReply, Detail: clip(err.Error()), Status: reply.Status, Tries: reply.Tries}
		}
		docs = append(docs, d)
	}
	return docs, nil
}

// thingsByName cuts a reply into its things.
func thingsByName(body []byte) (map[string]json.RawMessage, error) {
	var reply struct {
		Data []json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(body, &reply); err != nil {
		return nil, errSplit
	}
	out := map[string]json.RawMessage{}
	for _, raw := range reply.Data {
		t, err := parseThing(raw)
		if err != nil {
			continue // it is asked for by itself, and its error told then
		}
		if kind, id, err := t.fullname(""); err == nil {
			out[kind+"_"+id] = raw
		}
	}
	return out, nil
}
