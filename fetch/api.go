package fetch

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"assay/corpus"
)

// A Call is a request to an interface that its owner offers to programs. It differs from a Get of
// a page: robots.txt, which is for crawlers, is not asked, a redirect is not followed, and an answer of
// any status is returned, because an interface says in its own words what a refusal means. Delays,
// limits, guard, retries and store are those of every request.
type Call struct {
	URL       string
	Body      []byte        // JSON, sent by POST; nil for a GET. The interface only reads it: it may be sent twice
	Accept    string        // media types; empty for application/json
	Range     string        // part of what is there, e.g. bytes=0-99; empty for all of it
	UserAgent string        // where the interface prescribes a form; empty for the client's own
	Gap       time.Duration // least time between two requests to the host, if the configuration asks for less
	AtOnce    int           // requests to the host at once, where its owner takes more than Options.PerHost; 0 for no more

	// Token gives the bearer token to send; rejected is the one that the host has just refused, "" at
	// first. It is called only for a request that leaves the machine, before that request queues for
	// its host, at most twice. The token is sent over https, or to hosts of AllowPrivate and Resolve, and
	// never stored.
	Token func(ctx context.Context, rejected string) (string, error)
	// TokenHeader or TokenQuery is where the token goes instead of an Authorization header with Bearer: a
	// header of this name, or a parameter of the query, which is added to what leaves the machine alone.
	TokenHeader, TokenQuery string
	// Charge says what the interface bills, nil for nothing.
	Charge *Charge
	// Judge says what an answer means in the interface's own words; nil goes by status and content. It
	// must say the same of the same answer, because what it says is stored.
	Judge func(Reply) Judgement
}

// A Judgement is what an interface's own words add to an answer. Only an answer of ClassOK or ClassGone
// is used again; one of ClassThrottled is asked for again at once, at the pace of its host.
type Judgement struct {
	Class  Class         // empty leaves what status and content say
	Reason string        // of a class that is not ok
	Wait   time.Duration // for which the host wants to be left alone; 0 is no wish
}

// A Reply is an interface's answer of any status.
type Reply struct {
	URL       string
	Status    int
	Header    http.Header
	Body      []byte // decoded, without a byte order mark (RFC 8259: it may be passed over)
	Class     Class
	Reason    string
	Retrieved time.Time
	Tries     int // requests sent, 0 for a stored answer
}

// Call asks an interface. The error is one of the way there (network, guard, a parked host, nothing
// stored in replay), or of Token.
func (c *Client) Call(ctx context.Context, r Call) (*Reply, error) {
	call, err := c.apiCall(r)
	if err != nil {
		return nil, err
	}
	ans, err := c.ask(ctx, call)
	if err != nil {
		return nil, err
	}
	return c.reply(ctx, call, ans)
}

// Batch asks for several calls in one request and stores what split makes of the answer as the answer
// to each of them: later, each is asked for by itself and found. It is a matter of speed alone. The
// request is for the first call and those of the others that have to be asked for, most of them in all;
// where the first has not, or there is no other, and in replay, nothing is sent, and
// where the request fails, nothing is stored. Answered is told nothing. join makes the request for some
// of the calls, by their places; split returns as many bodies, in that order.
func (c *Client) Batch(ctx context.Context, calls []Call, most int, join func(places []int) Call, split func(body []byte, places []int) ([][]byte, error)) error {
	if c.mode != Live {
		return nil
	}
	var places []int
	parts := map[int]*call{}
	for i, r := range calls {
		part, err := c.apiCall(r)
		if err != nil {
			return err
		}
		ask, err := c.asks(ctx, part.key)
		if err != nil {
			return err
		}
		if ask {
			places, parts[i] = append(places, i), part
		} else if i == 0 {
			return nil
		}
		if len(places) == most {
			break
		}
	}
	if len(places) < 2 {
		return nil
	}
	call, err := c.apiCall(join(places))
	if err != nil {
		return err
	}
	ans, err := c.send(ctx, call)
	if err != nil {
		return err
	}
	if askedAgain(ctx, ans.checked) {
		return nil // it could not be confirmed
	}
	whole, err := c.reply(ctx, call, ans)
	if err != nil || whole.Class != ClassOK || whole.Status != http.StatusOK {
		return err
	}
	bodies, err := split(whole.Body, places)
	if err != nil {
		return fmt.Errorf("take %s apart: %w", call.url, err)
	}
	for n, i := range places {
		part := parts[i]
		ex := Exchange{
			Method: part.method, URL: part.url, RequestHeader: flat(part.header), Credential: ans.ex.Credential, At: ans.checked,
			Proto: ans.ex.Proto, Status: whole.Status, Header: http.Header{"Content-Type": {"application/json"}}, Class: ClassOK,
			Detail: "a part of " + ans.ex.ID(), Source: SourceNetwork,
		}
		part.judged(&ex, bodies[n])
		ex.USD, ex.PriceDate = 0, "" // the whole was paid for
		if _, err := c.archive.record(ctx, ex, bytes.NewReader(bodies[n])); err != nil {
			return err
		}
	}
	return nil
}

// asks reports whether a request would be sent.
func (c *Client) asks(ctx context.Context, key string) (bool, error) {
	h, _, err := c.archive.head(key)
	if err != nil {
		return false, err
	}
	_, have := h.usable()
	return !have || askedAgain(ctx, h.Latest.At), nil
}

// apiCall makes the call that goes through the chain.
func (c *Client) apiCall(r Call) (*call, error) {
	url := corpus.CanonicalURL(r.URL)
	if err := checkAddress(url); err != nil {
		return nil, err
	}
	if slices.Contains(c.unstored, url) {
		return nil, &Error{URL: url, Reason: ReasonBadURL, Detail: "it is configured as never stored"}
	}
	if r.Token != nil && !strings.HasPrefix(url, "https:") && !c.guard.listed(hostOf(url), hostPort(url)) {
		return nil, &Error{URL: url, Reason: ReasonBadScheme, Detail: "a token is sent over https, or to a host of the allow-list"}
	}
	if r.Charge != nil {
		if err := r.Charge.check(); err != nil {
			return nil, fmt.Errorf("ask %s: %w", url, err)
		}
	}
	call := c.newCall(http.MethodGet, url)
	call.header.Set("Accept", cmp.Or(r.Accept, "application/json"))
	if r.Range != "" {
		call.header.Set("Range", r.Range)
	}
	if r.Body != nil {
		call.method, call.body, call.harmless = http.MethodPost, r.Body, true
		call.header.Set("Content-Type", "application/json")
	}
	call.key = keyOf(call)
	call.api, call.userAgent = &r, r.UserAgent
	if r.Gap > 0 {
		c.limiter.setGap(hostOf(url), r.Gap)
	}
	if r.AtOnce > 0 {
		c.limiter.setRoom(hostGroup(url), r.AtOnce)
	}
	return call, nil
}

// reply reads the answer of a call, whatever its class. An exchange without a whole body is an error.
func (c *Client) reply(ctx context.Context, call *call, ans answer) (*Reply, error) {
	if failed := ans.ex.failure(); failed != nil {
		switch {
		case ans.ex.Status == 0, ans.ex.Truncated, failed.Reason == ReasonTooLarge, failed.Reason == ReasonTruncated, failed.Reason == ReasonTimeout:
			failed.Tries = ans.tries
			return nil, failed
		}
	}
	class, reason := ans.ex.Class, ans.ex.Reason
	body := ans.decoded
	if body == nil {
		readable := ans
		readable.ex.Class = ClassOK
		var err error
		if body, readable, err = c.content(ctx, call, readable); err != nil {
			return nil, err
		}
		ans.ex.Header, ans.ex.At = readable.ex.Header, readable.ex.At
	}
	status := ans.ex.Status
	if status == http.StatusNotModified && ans.ex.SameAs != "" {
		status = http.StatusOK
	}
	return &Reply{URL: call.url, Status: status, Header: ans.ex.Header, Body: unmarked(body), Class: class, Reason: reason, Retrieved: ans.ex.At, Tries: ans.tries}, nil
}

func unmarked(body []byte) []byte { return bytes.TrimPrefix(body, []byte("\ufeff")) }

// judged applies the words of the interface to an exchange that was just read.
func (c *call) judged(ex *Exchange, body []byte) {
	if c.api == nil {
		return
	}
	r := Reply{URL: c.url, Status: ex.Status, Header: ex.Header, Body: unmarked(body), Class: ex.Class, Reason: ex.Reason, Retrieved: ex.At}
	if c.api.Judge != nil {
		j := c.api.Judge(r)
		if j.Class != "" {
			ex.Class, ex.Reason = j.Class, j.Reason
			r.Class, r.Reason = j.Class, j.Reason
		}
		c.wait = j.Wait
	}
	if c.api.Charge != nil {
		ex.USD, ex.PriceDate, ex.Estimated = c.api.Charge.of(r), c.api.Charge.Date, false
	}
}

// An authorizer gets the token of a call before the call queues for its host: asking for a token may
// mean to ask that same host. A host that says the token is no longer valid (RFC 6750) gets another
// one, once.
type authorizer struct{ next sender }

func (a *authorizer) send(ctx context.Context, c *call) (answer, error) {
	if c.api == nil || c.api.Token == nil {
		return a.next.send(ctx, c)
	}
	if err := c.authorize(ctx, ""); err != nil {
		return answer{}, err
	}
	ans, err := a.next.send(ctx, c)
	if err != nil || ans.ex.Status != http.StatusUnauthorized || !strings.Contains(ans.ex.Header.Get("Www-Authenticate"), "invalid_token") {
		return ans, err
	}
	tries := ans.tries
	if err := c.authorize(ctx, c.token); err != nil {
		return answer{}, err
	}
	ans, err = a.next.send(ctx, c)
	ans.tries += tries
	return ans, err
}

func (c *call) authorize(ctx context.Context, rejected string) error {
	token, err := c.api.Token(ctx, rejected)
	if err != nil {
		return err
	}
	if len(token) < shortestSecret {
		return &Error{URL: c.url, Reason: ReasonBlocked, Detail: fmt.Sprintf("its token is shorter than %d bytes and could not be masked", shortestSecret)}
	}
	c.token = token
	return nil
}

// secret is the credential that a token makes, nil without one.
func (c *call) secret() *Credential {
	switch {
	case c.token == "":
		return nil
	case c.api.TokenHeader != "":
		return &Credential{Name: "token", Header: c.api.TokenHeader, Secret: c.token}
	case c.api.TokenQuery != "":
		return &Credential{Name: "token", Query: c.api.TokenQuery, Secret: c.token}
	}
	return &Credential{Name: "token", Header: "Authorization", Prefix: "Bearer ", Secret: c.token}
}
