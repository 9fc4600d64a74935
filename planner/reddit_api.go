package planner

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"assay/corpus"
	"assay/fetch"
)

// Where Reddit's interface is. Its data is to be had by approved credentials alone.
const (
	RedditBase  = "https://oauth.reddit.com"
	RedditToken = "https://www.reddit.com/api/v1/access_token"
)

const (
	redditName  = "Reddit"
	redditGap   = 600 * time.Millisecond // 100 requests a minute per client id
	redditBatch = 100                    // ids of one /api/info
	tokenMargin = time.Minute            // a token that ends so soon is not used any more
	tokenPause  = time.Minute            // how long a failed token request is not repeated
)

// RedditUserAgent is the form in which Reddit wants to be told who asks.
var RedditUserAgent = regexp.MustCompile(`^[^\s:]+:[^\s:]+:[^\s:]+ \(by /?u/[0-9A-Za-z_-]{2,32}\)$`)

// RedditOptions say how Reddit's interface is asked.
type RedditOptions struct {
	Web          Web
	ClientID     string              // name of the environment variable that holds the client's id
	ClientSecret string              // name of the one that holds its secret
	UserAgent    string              // see RedditUserAgent
	Base         string              // empty for RedditBase
	Token        string              // address of the token endpoint; empty for RedditToken
	Getenv       func(string) string // reads the environment
	Now          func() time.Time    // nil means time.Now
}

// A Reddit asks Reddit's interface with the credentials of an approved client. Id, secret and token
// live in memory alone. All methods may be called from many goroutines.
type Reddit struct {
	o     RedditOptions
	turn  chan struct{} // held by who asks for a token
	more  chan struct{} // held by who unfolds a thread: Reddit wants one such request at a time
	token string
	ends  time.Time // of the token
	fault error     // of the last token request, if it may pass
	pause time.Time // until when it is not repeated
}

// NewReddit makes a client; nothing is asked for, and no variable read, before the first request.
func NewReddit(o RedditOptions) *Reddit {
	o.Base = strings.TrimSuffix(cmp.Or(o.Base, RedditBase), "/")
	o.Token = cmp.Or(o.Token, RedditToken)
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Reddit{o: o, turn: make(chan struct{}, 1), more: make(chan struct{}, 1)}
}

// Document reads a post or comment by /api/info.
func (r *Reddit) Document(ctx context.Context, fullname string, beside []string) (corpus.Document, error) {
	ids := wanted(fullname, beside)
	calls := make([]fetch.Call, len(ids))
	for i, id := range ids {
		calls[i] = r.Request(id)
	}
	join := func(places []int) fetch.Call {
		some := make([]string, len(places))
		for i, place := range places {
			some[i] = ids[place]
		}
		return r.info(strings.Join(some, ","))
	}
	split := func(body []byte, places []int) ([][]byte, error) {
		children, err := childrenByName(body)
		out := make([][]byte, len(places))
		for i, place := range places {
			out[i] = fmt.Appendf(nil, `{"kind":"Listing","data":{"children":[%s]}}`, children[ids[place]])
		}
		return out, err
	}
	if err := r.o.Web.Batch(ctx, calls, redditBatch, join, split); err != nil && ends(ctx, err) {
		return corpus.Document{}, err
	} // any other error comes back when the thing is asked for by itself
	asked := "post " + fullname
	reply, err := r.ask(ctx, r.Request(fullname), asked, true)
	if err != nil {
		return corpus.Document{}, err
	}
	for d, err := range rawListing(reply) {
		if err != nil {
			return corpus.Document{}, &APIError{API: redditName, Asked: asked, Reason: ReasonBadReply, Detail: clip(err.Error()), Status: reply.Status, Tries: reply.Tries}
		}
		if d.ID == corpus.RedditID(fullname) {
			return seen(d, FlagRedditAPI)
		}
	}
	return corpus.Document{}, &APIError{API: redditName, Asked: asked, Reason: ReasonGone, Detail: "it knows no such thing: deleted, private, or never there", Status: reply.Status, Tries: reply.Tries, thing: true}
}

// Request asks for one post or comment. That Reddit knows no such thing means that it is deleted.
func (r *Reddit) Request(fullname string) fetch.Call {
	c := r.info(fullname)
	c.Judge = func(reply fetch.Reply) fetch.Judgement {
		return judgeThing(judgeReddit(reply), reply, fullname, rawListing, ReasonGone)
	}
	return c
}

// judgeThing adds to a judgement whether the one thing that was asked for was deleted or removed since
// somebody wrote it. Missing is what it means that the reply does not hold it, "" for nothing.
func judgeThing(j fetch.Judgement, r fetch.Reply, fullname string, read func(*fetch.Reply) func(func(corpus.Document, error) bool), missing string) fetch.Judgement {
	if j.Class != "" || r.Class != fetch.ClassOK || r.Status/100 != 2 {
		return j
	}
	for d, err := range read(&r) {
		if err != nil {
			return j // Document says what is wrong with it
		}
		if d.ID != corpus.RedditID(fullname) {
			continue
		}
		switch d.BodyStatus {
		case corpus.BodyDeleted:
			j.Class, j.Reason = fetch.ClassGone, ReasonDeleted
		case corpus.BodyRemoved:
			j.Class, j.Reason = fetch.ClassGone, ReasonRemoved
		}
		return j
	}
	if missing != "" {
		j.Class, j.Reason = fetch.ClassGone, missing
	}
	return j
}

func (r *Reddit) info(ids string) fetch.Call {
	return r.call("/api/info?"+query("id", ids, "raw_json", "1"), nil)
}

// Search finds posts, best first, in some subreddits or everywhere. A listing ends at about a thousand.
func (r *Reddit) Search(ctx context.Context, text string, subreddits []string, k int) ([]Result, error) {
	path := "/search?"
	if len(subreddits) > 0 {
		path = "/r/" + strings.Join(subreddits, "+") + "/search?"
	}
	asked := fmt.Sprintf("posts about %q", text)
	var out []Result
	known := map[string]bool{}
	for after := ""; ; {
		params := []string{"q", text, "type", "link", "sort", "relevance", "limit", fmt.Sprint(min(k, 100)), "raw_json", "1"}
		if len(subreddits) > 0 {
			params = append(params, "restrict_sr", "true")
		}
		if after != "" {
			params = append(params, "after", after)
		}
		reply, err := r.ask(ctx, r.call(path+query(params...), judgeSearch), asked, false)
		if err != nil {
			return nil, err
		}
		before := len(out)
		for d, err := range rawListing(reply) {
			if err != nil {
				return nil, &APIError{API: redditName, Asked: asked, Reason: ReasonBadReply, Detail: clip(err.Error()), Status: reply.Status, Tries: reply.Tries}
			}
			if d.Kind == corpus.KindRedditPost && !known[d.ID] {
				known[d.ID] = true
				out = append(out, Result{DocumentID: d.ID, URL: d.URL})
			}
		}
		var page struct {
			Data struct {
				After string `json:"after"`
			} `json:"data"`
		}
		bad := json.Unmarshal(reply.Body, &page) != nil // rawListing has read its things
		if bad || page.Data.After == "" || page.Data.After == after || len(out) >= k || len(out) == before {
			return out[:min(len(out), k)], nil
		}
		after = page.Data.After
	}
}

// call makes a request to a path of the interface, with its query.
func (r *Reddit) call(path string, judge func(fetch.Reply) fetch.Judgement) fetch.Call {
	if judge == nil {
		judge = judgeReddit
	}
	return fetch.Call{URL: r.o.Base + path, UserAgent: r.o.UserAgent, Gap: redditGap, Token: r.bearer, Judge: judge}
}

// judgeReddit knows that Reddit's answers are JSON objects or arrays, that a refusal may come with a
// good status, and how Reddit says that the requests of a window are used up.
func judgeReddit(r fetch.Reply) fetch.Judgement {
	j := judgeJSON(r)
	if j.Class == "" && r.Class == fetch.ClassOK && r.Status/100 == 2 {
		switch status, ok := remarkOf(r.Body).Error.(float64); {
		case ok && status == http.StatusTooManyRequests:
			j = fetch.Judgement{Class: fetch.ClassThrottled, Reason: "rate-limit"}
			r.Class = j.Class
		case remarkOf(r.Body).Error != nil:
			j = fetch.Judgement{Class: fetch.ClassFailed, Reason: "error in a good reply"}
		}
	}
	j.Wait = leftAlone(r)
	return j
}

// judgeSearch knows that a search answers with a listing. Any other reply says nothing about what there is.
func judgeSearch(r fetch.Reply) fetch.Judgement {
	j := judgeReddit(r)
	if j.Class == "" && r.Class == fetch.ClassGone {
		j.Class, j.Reason = fetch.ClassFailed, "no search there" // it says nothing about posts
	}
	var got struct {
		Data *struct {
			Children *[]json.RawMessage `json:"children"`
		} `json:"data"`
	}
	if j.Class == "" && r.Class == fetch.ClassOK && r.Status/100 == 2 && (json.Unmarshal(r.Body, &got) != nil || got.Data == nil || got.Data.Children == nil) {
		j.Class, j.Reason = fetch.ClassFailed, "no listing in the reply"
	}
	return j
}

// maxMoves bounds how often a request follows a subreddit that was renamed.
const maxMoves = 3

// ask sends a request. A redirect within the interface is a renamed subreddit and followed with the
// parameters that were asked with; any other leads to a page of Reddit's, which is no answer.
func (r *Reddit) ask(ctx context.Context, c fetch.Call, asked string, thing bool) (*fetch.Reply, error) {
	if r.o.UserAgent == "" {
		return nil, &APIError{API: redditName, Asked: asked, Reason: ReasonNotConfigured, Detail: "there is no User-Agent for it"}
	}
	for move := 0; ; move++ {
		reply, err := r.o.Web.Call(ctx, c)
		if err != nil {
			return nil, err
		}
		next, ok := r.moved(c.URL, reply)
		if !ok || move == maxMoves {
			if (reply.Class == fetch.ClassOK || reply.Class == fetch.ClassGone) && reply.Status/100 == 2 {
				return reply, nil
			}
			e := refusal(redditName, asked, reply)
			e.thing = thing
			return nil, e
		}
		c.URL = next
	}
}

// renamed is a path that Reddit sends requests for a subreddit to.
var renamed = regexp.MustCompile(`^/(?:r|t)/[^/]+(?:/|$)`)

// moved returns where a redirect within the interface leads, with the parameters of the request.
func (r *Reddit) moved(from string, reply *fetch.Reply) (string, bool) {
	if reply.Status/100 != 3 {
		return "", false
	}
	asked, err := url.Parse(from)
	if err != nil {
		return "", false
	}
	to, err := asked.Parse(reply.Header.Get("Location"))
	if err != nil || to.Scheme != asked.Scheme || to.Host != asked.Host || !renamed.MatchString(to.Path) {
		return "", false
	}
	to.RawQuery = asked.RawQuery
	return to.String(), to.String() != from
}

// bearer is fetch.Call.Token: the token in use, or a new one where it ended or was rejected.
func (r *Reddit) bearer(ctx context.Context, rejected string) (string, error) {
	select {
	case r.turn <- struct{}{}:
		defer func() { <-r.turn }()
	case <-ctx.Done():
		return "", ctx.Err()
	}
	now := r.o.Now()
	switch {
	case r.token != "" && r.token != rejected && now.Before(r.ends):
		return r.token, nil
	case r.fault != nil && now.Before(r.pause):
		return "", r.fault
	}
	r.token, r.fault = "", nil
	token, life, err := r.newToken(ctx)
	if err != nil {
		if ctx.Err() == nil {
			r.fault, r.pause = err, r.o.Now().Add(tokenPause)
		}
		return "", err
	}
	r.token, r.ends = token, r.o.Now().Add(life-tokenMargin)
	return token, nil
}

// maxToken bounds a reply of the token endpoint.
const maxToken = 64 << 10

// newToken asks for a token. Neither the request nor the reply is stored.
func (r *Reddit) newToken(ctx context.Context) (string, time.Duration, error) {
	fault := func(reason, detail string, status int) error {
		return &APIError{API: redditName, Asked: "a token", Reason: reason, Detail: detail, Status: status, Tries: 1}
	}
	id, secret := r.o.Getenv(r.o.ClientID), r.o.Getenv(r.o.ClientSecret)
	for name, value := range map[string]string{r.o.ClientID: id, r.o.ClientSecret: secret} {
		if name == "" || value == "" {
			return "", 0, fault(ReasonCredentials, fmt.Sprintf("the environment variable %q, which is to hold the approved client's id or secret, is empty", name), 0)
		}
	}
	body := strings.NewReader(url.Values{"grant_type": {"client_credentials"}}.Encode())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.o.Token, body)
	if err != nil {
		return "", 0, fault(ReasonNotConfigured, "its token endpoint has no valid address", 0)
	}
	req.SetBasicAuth(id, secret)
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", r.o.UserAgent)
	client := *r.o.Web.HTTP()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := client.Do(req)
	if err != nil {
		var own *fetch.Error // without the wrapping of net/http, which quotes the request
		if errors.As(err, &own) {
			return "", 0, fmt.Errorf("ask Reddit for a token: %w", own)
		}
		return "", 0, fmt.Errorf("ask Reddit for a token: %w", err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxToken))
	if err != nil {
		return "", 0, fault(ReasonUnavailable, "the reply breaks off", resp.StatusCode)
	}
	var got struct {
		Token   string  `json:"access_token"`
		Seconds float64 `json:"expires_in"`
	}
	bad := json.Unmarshal(data, &got)
	said := masked(remarkOf(data).said(), id, secret)
	switch status := resp.StatusCode; {
	case status == http.StatusOK && bad == nil && got.Token != "":
		life := time.Duration(min(max(got.Seconds, 0), 7*24*3600) * float64(time.Second))
		if life <= tokenMargin {
			life = time.Hour // the shortest that Reddit ever gave
		}
		return got.Token, life, nil
	case status == http.StatusTooManyRequests:
		return "", 0, fault(ReasonRateLimit, cmp.Or(said, "it asks to slow down"), status)
	case status >= 500:
		return "", 0, fault(ReasonUnavailable, said, status)
	case status == http.StatusOK && (bad != nil || remarkOf(data).Error == nil):
		return "", 0, fault(ReasonBadReply, "the reply holds no token", status)
	default: // a refusal, also one with a good status
		return "", 0, fault(ReasonCredentials, cmp.Or(said, "it does not take the approved client's id and secret"), status)
	}
}

// masked takes secrets out of a text that somebody else wrote.
func masked(text string, secrets ...string) string {
	for _, s := range secrets {
		text = strings.ReplaceAll(text, s, "***")
	}
	return text
}

// ends reports whether an error is not about the one thing that was asked for.
func ends(ctx context.Context, err error) bool {
	var own *APIError
	var web *fetch.Error
	return ctx.Err() != nil || errors.As(err, &own) && own.StopsRun() || !errors.As(err, &own) && !errors.As(err, &web) && !errors.Is(err, errSplit)
}

var errSplit = errors.New("the reply is no listing")

// childrenByName cuts a listing into its things.
func childrenByName(body []byte) (map[string]json.RawMessage, error) {
	var listing struct {
		Data *struct {
			Children []json.RawMessage `json:"children"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &listing); err != nil || listing.Data == nil {
		return nil, errSplit
	}
	out := map[string]json.RawMessage{}
	for _, raw := range listing.Data.Children {
		var c child
		if json.Unmarshal(raw, &c) != nil {
			continue // it is asked for by itself, and its error told then
		}
		t, err := parseThing(c.Data)
		if err != nil {
			continue
		}
		if kind, id, err := t.fullname(c.Kind); err == nil {
			out[kind+"_"+id] = raw
		}
	}
	return out, nil
}

// rawListing reads the posts and comments of a reply to a request with raw_json=1.
func rawListing(reply *fetch.Reply) func(yield func(corpus.Document, error) bool) {
	return func(yield func(corpus.Document, error) bool) {
		rec := newRecords("reply", bytes.NewReader(reply.Body), func(e Entry, err error) bool {
			if err == nil && e.Skipped != "" {
				return true
			}
			return yield(stamped(e.Document, reply.Retrieved), err)
		})
		rec.seen, rec.raw = escapedNot, true
		rec.end(rec.replies())
	}
}

// stamped notes when a document was read, where its source does not say.
func stamped(d corpus.Document, at time.Time) corpus.Document {
	d.RetrievedAt = cmp.Or(d.RetrievedAt, at.UTC().Format(time.RFC3339))
	return d
}
