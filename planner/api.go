package planner

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"assay/corpus"
	"assay/fetch"
)

// A Web asks interfaces; *fetch.Client is one.
type Web interface {
	Call(ctx context.Context, c fetch.Call) (*fetch.Reply, error)
	Batch(ctx context.Context, calls []fetch.Call, most int, join func(places []int) fetch.Call, split func(body []byte, places []int) ([][]byte, error)) error
	HTTP() *http.Client // reaches token endpoints, of which nothing is stored
}

// A PostReader reads posts and comments of Reddit by their ids.
type PostReader interface {
	// Document reads one thing by its fullname, t3_... or t1_.... What was deleted, removed or is not to be
	// seen is an exclusion. Beside are fullnames that will be asked for next: where they can be had with
	// the same request, they are.
	Document(ctx context.Context, fullname string, beside []string) (corpus.Document, error)
	// Request is what Document asks for one thing by itself. Its answer is of the class gone where the thing
	// is known to be deleted or removed.
	Request(fullname string) fetch.Call
}

// PostVersion is that of PostReader.Document; a new one reads every post again.
const PostVersion = 1

// ValidSubreddit reports whether a text can be the name of a subreddit.
func ValidSubreddit(name string) bool { return subredditName.MatchString(name) }

// Flags of a document that was read by its id: who answered.
const (
	FlagRedditAPI   = "read_from_reddit_api"
	FlagArcticShift = "read_from_arctic_shift" // an archive that keeps what Reddit shows no more
)

// Reasons of an APIError.
const (
	ReasonGone          = "gone"           // deleted, banned, or withheld for legal reasons
	ReasonPrivate       = "private"        // its subreddit is for members
	ReasonQuarantined   = "quarantined"    // its subreddit asks for an opt-in, which a program has no business to give
	ReasonForbidden     = "forbidden"      // refused without a word: private, quarantined, or not for this account
	ReasonCredentials   = "credentials"    // no valid ones; ends the run
	ReasonScope         = "scope"          // the credentials are not for this; ends the run
	ReasonNotConfigured = "not_configured" // ends the run
	ReasonRateLimit     = "rate_limit"
	ReasonUnavailable   = "unavailable" // 5xx, or a query that takes the interface too long
	ReasonBadReply      = "bad_reply"   // no JSON, or not what was asked for
	ReasonBadRequest    = "bad_request"
	ReasonQuota         = "quota"                // the account or its plan has no searches left; ends the run
	ReasonIncomplete    = "incomplete"           // some of the results that it announced never came
	ReasonEngines       = "unresponsive_engines" // nothing was found because nobody looked
)

// An APIError says why an interface gave no answer.
type APIError struct {
	API    string // of whom
	Asked  string // for what
	Reason string // one of the Reason constants
	Detail string // for a person
	Status int    // 0 if there was none
	Tries  int

	thing bool // one post or comment was asked for: that it is not to be had is an outcome
}

// Error names who was asked for what.
func (e *APIError) Error() string {
	text := fmt.Sprintf("ask %s for %s: %s", e.API, e.Asked, e.Reason)
	if e.Status != 0 {
		text += fmt.Sprintf(" (status %d)", e.Status)
	}
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	return text
}

// Excluded is the reason where a post or comment is known not to be had.
func (e *APIError) Excluded() string {
	switch e.Reason {
	case ReasonGone, ReasonPrivate, ReasonQuarantined, ReasonForbidden:
		if e.thing {
			return e.Reason
		}
	}
	return ""
}

// FailureClass tells whether another run may succeed.
func (e *APIError) FailureClass() string {
	switch e.Reason {
	case ReasonRateLimit, ReasonUnavailable, ReasonBadReply, ReasonEngines, ReasonIncomplete:
		return "transient"
	case ReasonQuota:
		return "budget"
	}
	return "permanent"
}

// StopsRun reports whether every other request would fail alike.
func (e *APIError) StopsRun() bool {
	switch e.Reason {
	case ReasonCredentials, ReasonScope, ReasonNotConfigured, ReasonQuota:
		return true
	}
	return false
}

// Attempts returns how many requests were sent.
func (e *APIError) Attempts() int { return e.Tries }

// A remark is what interfaces write into a reply that is a refusal. Both names are loose: error is a
// number with Reddit's interface, a word at its token endpoint, a sentence with the archives.
type remark struct {
	Error       any    `json:"error"`
	Message     any    `json:"message"`
	Reason      string `json:"reason"`
	Description string `json:"error_description"`
}

// remarkOf reads what can be read of a refusal; HTML and an empty body say nothing.
func remarkOf(body []byte) remark {
	var r remark
	if json.Unmarshal(body, &r) != nil {
		return remark{}
	}
	return r
}

// said is the remark in one line.
func (r remark) said() string {
	var parts []string
	for _, v := range []any{r.Reason, r.Message, r.Error, r.Description} {
		if s, ok := v.(string); ok && s != "" && !slices.Contains(parts, s) {
			parts = append(parts, s)
		}
	}
	return clip(strings.Join(parts, ": "))
}

// clip bounds a text that somebody else wrote.
func clip(s string) string {
	if len(s) > 200 {
		s = strings.ToValidUTF8(s[:200], "") + "..."
	}
	return s
}

// judgeJSON is fetch.Call.Judge for interfaces that answer in JSON: anything else is no answer,
// whatever its status, and asked for again by the next run.
func judgeJSON(r fetch.Reply) fetch.Judgement {
	if r.Class == fetch.ClassOK && r.Status/100 == 2 && !json.Valid(r.Body) {
		reason := "bad_json"
		if bytes.HasPrefix(bytes.TrimSpace(r.Body), []byte("<")) {
			reason = "html"
		}
		return fetch.Judgement{Class: fetch.ClassFailed, Reason: reason}
	}
	return fetch.Judgement{}
}

// maxReset bounds what a rate-limit header may ask for; no window of an interface we ask is longer.
const maxReset = 10 * time.Minute

// leftAlone reads X-Ratelimit-Remaining and -Reset, which are decimal numbers: when no request is
// left, or the interface refused one, the time until there are some again.
func leftAlone(r fetch.Reply) time.Duration {
	reset, err := strconv.ParseFloat(strings.TrimSpace(r.Header.Get("X-Ratelimit-Reset")), 64)
	if err != nil || math.IsNaN(reset) || reset <= 0 {
		return 0
	}
	remaining, err := strconv.ParseFloat(strings.TrimSpace(r.Header.Get("X-Ratelimit-Remaining")), 64)
	if r.Class != fetch.ClassThrottled && (err != nil || !(remaining < 1)) {
		return 0
	}
	if reset > 1e9 { // an instant; in seconds, unless that would be in the far future
		if reset > 1e11 {
			reset /= 1000
		}
		reset -= float64(r.Retrieved.UnixMilli()) / 1000
	}
	return time.Duration(min(max(reset, 0), maxReset.Seconds()) * float64(time.Second))
}

// refusal explains a reply that is no answer. It knows what every interface's statuses mean alike.
func refusal(api, asked string, r *fetch.Reply) *APIError {
	said := remarkOf(r.Body)
	e := &APIError{API: api, Asked: asked, Status: r.Status, Tries: r.Tries, Detail: said.said()}
	switch status := r.Status; {
	case r.Class == fetch.ClassThrottled:
		e.Reason, e.Detail = ReasonRateLimit, cmp.Or(e.Detail, "it asks to slow down")
	case status == http.StatusUnauthorized:
		e.Reason = ReasonCredentials
	case status == http.StatusForbidden && strings.Contains(r.Header.Get("Www-Authenticate"), "insufficient_scope"):
		e.Reason, e.Detail = ReasonScope, "the credentials are not for this"
	case status == http.StatusForbidden && said.Reason == "private":
		e.Reason = ReasonPrivate
	case status == http.StatusForbidden && said.Reason == "quarantined":
		e.Reason = ReasonQuarantined
	case status == http.StatusForbidden:
		e.Reason, e.Detail = ReasonForbidden, cmp.Or(e.Detail, "no reason given: it may be private, quarantined, or closed to this account")
	case status == http.StatusUnavailableForLegalReasons:
		e.Reason, e.Detail = ReasonGone, cmp.Or(e.Detail, "withheld for legal reasons")
	case status == http.StatusNotFound, status == http.StatusGone, status/100 == 3:
		e.Reason = ReasonGone
	case status == http.StatusPaymentRequired:
		e.Reason, e.Detail = ReasonQuota, cmp.Or(e.Detail, "it wants to be paid")
	case status >= 500, status == http.StatusRequestTimeout:
		e.Reason = ReasonUnavailable
	case status/100 == 2:
		e.Reason, e.Detail = ReasonBadReply, cmp.Or(e.Detail, r.Reason)
	default:
		e.Reason = ReasonBadRequest
	}
	return e
}

// seen excludes a document that was taken away since somebody wrote it; nothing of it goes on.
func seen(d corpus.Document, flag string) (corpus.Document, error) {
	switch d.BodyStatus {
	case corpus.BodyDeleted:
		return corpus.Document{}, corpus.Exclude(ReasonDeleted, "by its author: "+d.ID)
	case corpus.BodyRemoved:
		return corpus.Document{}, corpus.Exclude(ReasonRemoved, "by a moderator or the site: "+d.ID)
	}
	d.Flags = corpus.AddFlag(d.Flags, flag)
	return d, nil
}

// query writes parameters in the given order, each escaped.
func query(pairs ...string) string {
	var parts []string
	for i := 0; i+1 < len(pairs); i += 2 {
		value := strings.ReplaceAll(url.QueryEscape(pairs[i+1]), "%2C", ",") // lists stay readable
		parts = append(parts, pairs[i]+"="+value)
	}
	return strings.Join(parts, "&")
}

// wanted returns the one that is needed and those beside it of its kind, once each.
func wanted(fullname string, beside []string) []string {
	ids := []string{fullname}
	for _, id := range beside {
		if strings.HasPrefix(id, fullname[:3]) && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}
