package planner

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"net/http"
	"regexp"
	"strings"
	"time"

	"assay/fetch"
)

// Access is how the interface of a backend is reached. The key stands in the environment; its place is
// named here.
type Access struct {
	Base     string `yaml:"base" json:"base"`                              // address without path
	KeyEnv   string `yaml:"key_env,omitempty" json:"key_env,omitzero"`     // environment variable that holds the key; empty for interfaces that take none
	EngineID string `yaml:"engine_id,omitempty" json:"engine_id,omitzero"` // of google_cse: which programmable engine (cx)
	On       bool   `yaml:"on,omitempty" json:"on,omitzero"`               // of backends that are off by default
	AtOnce   int    `yaml:"at_once,omitempty" json:"at_once,omitzero"`     // requests at once that the plan you pay for takes; 0 for one

	// What the interface bills: USD for 1,000 requests (of x: posts read), as published on a day.
	USDPer1000 float64 `yaml:"usd_per_1000,omitempty" json:"usd_per_1000,omitzero"`
	PriceDate  string  `yaml:"price_date,omitempty" json:"price_date,omitzero"` // 2006-01-02
}

// price is what one unit costs, in USD.
func (a Access) price() float64 { return a.USDPer1000 / 1000 }

// Accesses are the settings with which the backends come, by name.
func Accesses() map[string]Access {
	out := map[string]Access{}
	for _, b := range Backends {
		if b.Access != nil {
			out[b.Name] = *b.Access
		}
	}
	return out
}

// An engine is an interface that answers a query page by page.
type engine struct {
	name  string // of the backend
	title string // for errors
	gap   time.Duration

	// speaks reports whether a reply whose status says otherwise is an answer; nil for an interface without.
	speaks func(r fetch.Reply) bool

	open                bool   // it takes no key
	keyHeader, keyQuery string // where the key goes; both empty: Authorization: Bearer

	// request makes the request for page n, from 0: its path with the query, and a body to be sent by POST,
	// or nil. Next is what the page before gave. It is false for a page that the interface does not have.
	request func(at Access, q Query, n int, next string) (path string, body any, ok bool)
	// read reads a reply of status 200. Its error says that this is no page of results: nothing was
	// searched, which is no evidence for there being nothing.
	read func(body []byte) (page, error)
	// hear understands the interface's own words; nil, or an empty reason, leaves it to the status.
	hear func(r fetch.Reply) fault
	// rest is for how long the interface's headers ask to be left alone; nil for one without.
	rest func(r fetch.Reply) time.Duration
	// worst is what a request may cost at most, in units of the price, and cost what it did cost; nil is one
	// unit for an answer of status 200.
	worst func(q Query) float64
	cost  func(r fetch.Reply) float64
}

// A page is one page of results; more says that there may be another, and next names it where the
// interface does.
type page struct {
	results []Result
	more    bool
	next    string
}

// A fault says why a reply is no answer.
type fault struct {
	reason string // one of the Reason constants; "" for an answer
	detail string
	wait   time.Duration // after which it may be another
	final  bool          // asking again at once is no use, whatever the reason
}

// class is what fetch makes of a reply with this fault.
func (f fault) class() fetch.Class {
	switch {
	case f.reason == "":
		return fetch.ClassOK
	case f.reason == ReasonQuota, f.reason == ReasonCredentials, f.reason == ReasonForbidden, f.final:
		return fetch.ClassBlocked
	case f.reason == ReasonRateLimit, f.reason == ReasonIncomplete:
		return fetch.ClassThrottled
	}
	return fetch.ClassFailed
}

// search reads pages until there are enough results, and no page twice.
func (e engine) search(ctx context.Context, env Env, q Query) ([]Result, error) {
	asked := fmt.Sprintf("results about %q", q.Text)
	at, err := env.access(e.name, e.title, asked)
	if err != nil {
		return nil, err
	}
	var out []Result
	known := map[string]bool{}
	next := ""
	for n := 0; len(out) < q.K; n++ {
		path, body, ok := e.request(at, q, n, next)
		if !ok {
			break
		}
		call, err := e.call(env, at, q, path, body)
		if err != nil {
			return nil, err
		}
		reply, err := e.ask(ctx, env, call, asked)
		if err != nil {
			return nil, err
		}
		got, err := e.read(reply.Body)
		if err != nil {
			return nil, err // unreachable: ask has read it
		}
		before := len(out)
		for _, r := range got.results {
			key := cmp.Or(r.DocumentID, r.URL)
			if len(out) < q.K && key != "" && !known[key] {
				known[key] = true
				out = append(out, r)
			}
		}
		if !got.more || len(out) == before {
			break
		}
		next = got.next
	}
	return out, nil
}

// call makes a request to a path of the interface.
func (e engine) call(env Env, at Access, q Query, path string, body any) (fetch.Call, error) {
	c := fetch.Call{URL: strings.TrimSuffix(at.Base, "/") + path, Gap: e.gap, AtOnce: at.AtOnce, Judge: e.judge}
	if body != nil {
		var err error
		if c.Body, err = json.Marshal(body); err != nil {
			return c, fmt.Errorf("ask %s: %w", e.title, err) // unreachable: plain values
		}
	}
	if at.KeyEnv != "" {
		c.Token, c.TokenHeader, c.TokenQuery = env.key(e.title, at.KeyEnv), e.keyHeader, e.keyQuery
	}
	if price := at.price(); price > 0 {
		units := 1.0
		if e.worst != nil {
			units = e.worst(q)
		}
		c.Charge = &fetch.Charge{Worst: units * price, Date: at.PriceDate}
		if e.cost != nil {
			c.Charge.Of = func(r fetch.Reply) float64 { return e.cost(r) * price }
		}
	}
	return c, nil
}

// ask sends a request. A reply that is no answer is an *APIError, and comes beside it.
func (e engine) ask(ctx context.Context, env Env, c fetch.Call, asked string) (*fetch.Reply, error) {
	reply, err := env.Web.Call(ctx, c)
	if err != nil {
		return nil, err
	}
	if f := e.listen(*reply); f.reason != "" {
		return reply, &APIError{API: e.title, Asked: asked, Reason: f.reason, Detail: clip(f.detail), Status: reply.Status, Tries: reply.Tries}
	}
	return reply, nil
}

// judge is fetch.Call.Judge.
func (e engine) judge(r fetch.Reply) fetch.Judgement {
	f := e.listen(r)
	j := fetch.Judgement{Class: f.class(), Reason: f.reason, Wait: f.wait}
	if e.rest != nil && j.Wait == 0 {
		r.Class = j.Class
		j.Wait = e.rest(r)
	}
	return j
}

// listen says whether a reply is an answer: by the interface's own words, its status, and what it holds.
func (e engine) listen(r fetch.Reply) fault {
	if e.hear != nil {
		if f := e.hear(r); f.reason != "" {
			return f
		}
	}
	if f := ofStatus(r, e.title); f.reason != "" && (e.speaks == nil || !e.speaks(r)) {
		if e.open && f.reason == ReasonCredentials {
			f = fault{reason: ReasonForbidden, detail: cmp.Or(wordsOf(r.Body), "no reason given")}
		}
		return f
	}
	if _, err := e.read(r.Body); err != nil {
		return fault{reason: ReasonBadReply, detail: err.Error()}
	}
	return fault{}
}

// ofStatus explains a reply by its status alone.
func ofStatus(r fetch.Reply, title string) fault {
	said := wordsOf(r.Body)
	switch status := r.Status; {
	case status == http.StatusTooManyRequests, r.Class == fetch.ClassThrottled:
		return fault{reason: ReasonRateLimit, detail: cmp.Or(said, "it asks to slow down")}
	case status == http.StatusOK:
		return fault{}
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return fault{reason: ReasonCredentials, detail: cmp.Or(said, "it does not take the key")}
	case status == http.StatusPaymentRequired:
		return fault{reason: ReasonQuota, detail: cmp.Or(said, "it wants to be paid")}
	case status >= 500, status == http.StatusRequestTimeout:
		return fault{reason: ReasonUnavailable, detail: said}
	case status == http.StatusNotFound, status == http.StatusGone, status/100 == 3:
		return fault{reason: ReasonBadRequest, detail: cmp.Or(said, "there is no interface of "+title+" at "+r.URL)}
	}
	return fault{reason: ReasonBadRequest, detail: said}
}

// notJSON says what a reply is instead.
func notJSON(body []byte) error {
	switch text := bytes.TrimSpace(body); {
	case len(text) == 0:
		return errors.New("the reply is empty")
	case text[0] == '<':
		return errors.New("HTML where JSON was asked for")
	case !json.Valid(text):
		return fmt.Errorf("no JSON: %s", clip(strings.Join(strings.Fields(string(text)), " ")))
	}
	return nil
}

// readJSON decodes a reply.
func readJSON(body []byte, into any) error {
	if err := notJSON(body); err != nil {
		return err
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("a JSON that is no page of results: %w", err)
	}
	return nil
}

// wordsOf finds what a refusal says, wherever interfaces put it.
func wordsOf(body []byte) string {
	var loose struct {
		Error   json.RawMessage `json:"error"`
		Errors  json.RawMessage `json:"errors"`
		Detail  json.RawMessage `json:"detail"`
		Message json.RawMessage `json:"message"`
		Title   json.RawMessage `json:"title"`
	}
	if json.Unmarshal(body, &loose) != nil {
		return ""
	}
	for _, raw := range []json.RawMessage{loose.Error, loose.Detail, loose.Message, loose.Errors, loose.Title} {
		var s string
		var list []json.RawMessage
		switch {
		case raw == nil:
			continue
		case json.Unmarshal(raw, &s) == nil && s != "":
			return s
		case json.Unmarshal(raw, &list) == nil && len(list) > 0:
			if s = wordsOf(list[0]); s != "" {
				return s
			}
		default:
			if s = wordsOf(raw); s != "" {
				return s
			}
		}
	}
	return ""
}

// access returns the settings of a backend.
func (env Env) access(name, title, asked string) (Access, error) {
	at, ok := env.Access[name]
	if !ok || env.Web == nil {
		return at, &APIError{API: title, Asked: asked, Reason: ReasonNotConfigured, Detail: "it is not set up"}
	}
	return at, nil
}

func (env Env) now() time.Time {
	if env.Now == nil {
		return time.Now()
	}
	return env.Now()
}

// shortestKey is the shortest key that fetch can mask where a reply echoes it.
const shortestKey = 8

// key is fetch.Call.Token for a key of the environment.
func (env Env) key(title, name string) func(context.Context, string) (string, error) {
	return func(_ context.Context, rejected string) (string, error) {
		value := ""
		if env.Getenv != nil {
			value = strings.TrimSpace(env.Getenv(name))
		}
		detail := ""
		switch {
		case value == "":
			detail = fmt.Sprintf("the environment variable %s, which is to hold the key, is empty", name)
		case len(value) < shortestKey:
			detail = fmt.Sprintf("what the environment variable %s holds is too short for a key", name)
		case value == rejected:
			detail = fmt.Sprintf("it does not take the key in the environment variable %s", name)
		default:
			return value, nil
		}
		return "", &APIError{API: title, Asked: "results", Reason: ReasonCredentials, Detail: detail}
	}
}

var tag = regexp.MustCompile(`<[^<>]{1,100}>`)

// plain takes the marks out of a snippet.
func plain(snippet string) string {
	return strings.Join(strings.Fields(html.UnescapeString(tag.ReplaceAllString(snippet, ""))), " ")
}

// dayOf reads when something was published: an instant, or the day where its zone is not told; "" for
// what is in words.
func dayOf(s string) string {
	for _, layout := range []string{time.RFC3339, time.RFC1123, time.RFC1123Z} {
		if t, err := time.Parse(layout, s); err == nil {
			return t.UTC().Format(time.RFC3339)
		}
	}
	for _, layout := range []string{"2006-01-02T15:04:05", time.DateOnly} {
		if t, err := time.Parse(layout, s); err == nil {
			return t.Format(time.DateOnly)
		}
	}
	return ""
}
