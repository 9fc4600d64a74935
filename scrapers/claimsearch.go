package scrapers

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"assay/fetch"
)

// FactCheckToolsBase is where Google's Fact Check Tools are.
const FactCheckToolsBase = "https://factchecktools.googleapis.com"

// A Caller asks interfaces; *fetch.Client is one.
type Caller interface {
	Call(ctx context.Context, c fetch.Call) (*fetch.Reply, error)
}

// A ClaimQuery is what claims:search is asked for: claims about something, or the reviews of a publisher,
// or both.
type ClaimQuery struct {
	Query      string
	Publisher  string // site of the publisher, e.g. politifact.com
	Language   string // BCP 47
	MaxAgeDays int    // 0 is no bound
}

const (
	searchPage  = 100    // claims of one reply
	searchPages = 10_000 // no query has so many; it bounds a service whose pages never end
)

// address is the address of one page of a query. All pages are asked for with the same parameters. The key
// is added where the request leaves the machine.
func (q ClaimQuery) address(base, token string) string {
	v := url.Values{}
	for name, value := range map[string]string{"query": q.Query, "reviewPublisherSiteFilter": q.Publisher, "languageCode": q.Language, "pageToken": token} {
		if value != "" {
			v.Set(name, value)
		}
	}
	if q.MaxAgeDays > 0 {
		v.Set("maxAgeDays", strconv.Itoa(q.MaxAgeDays))
	}
	v.Set("pageSize", strconv.Itoa(searchPage))
	return strings.TrimSuffix(base, "/") + "/v1alpha1/claims:search?" + v.Encode()
}

// String names the query in reports.
func (q ClaimQuery) String() string { return q.address("", "") }

// Reasons of a ServiceError.
const (
	ReasonQuota       = "quota"
	ReasonCredentials = "credentials" // ends the run: every other request would fail alike
	ReasonBadRequest  = "bad_request"
	ReasonUnavailable = "unavailable"
	ReasonBadReply    = "bad_reply"
)

// A ServiceError says why Fact Check Tools gave no answer.
type ServiceError struct {
	Asked  string
	Reason string // one of the Reason constants
	Detail string // in the service's words
	Status int
	Tries  int
}

func (e *ServiceError) Error() string {
	return fmt.Sprintf("ask Fact Check Tools for %s: %s (status %d): %s", e.Asked, e.Reason, e.Status, e.Detail)
}

// FailureClass tells whether another run may succeed.
func (e *ServiceError) FailureClass() string {
	switch e.Reason {
	case ReasonQuota, ReasonUnavailable, ReasonBadReply:
		return "transient"
	}
	return "permanent"
}

// StopsRun reports whether every other request would fail alike.
func (e *ServiceError) StopsRun() bool { return e.Reason == ReasonCredentials }

// Attempts returns how many requests were sent.
func (e *ServiceError) Attempts() int { return e.Tries }

// SearchClaims asks for every page of a query and yields its rows as a file of its replies would give
// them. A row that cannot be read is an error that is a row's alone; a *ServiceError, or one of the way to
// the service, is the last thing yielded.
func SearchClaims(ctx context.Context, web Caller, base string, q ClaimQuery) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		at, seen := 0, map[string]bool{}
		for token := ""; ; {
			reply, err := web.Call(ctx, fetch.Call{URL: q.address(base, token), Judge: judgeSearch})
			if err == nil {
				err = searchRefusal(q, reply)
			}
			var page struct {
				Next string `json:"nextPageToken"`
			}
			if err == nil && json.Unmarshal(reply.Body, &page) != nil {
				err = &ServiceError{Asked: q.String(), Reason: ReasonBadReply, Status: reply.Status, Tries: reply.Tries, Detail: "it is no JSON object"}
			}
			if err != nil {
				yield(Row{}, &EndError{err})
				return
			}
			for row, err := range searchRows(reply.Body, &at) {
				row.Notes = nil // of pages that follow, and they do
				if !yield(row, err) {
					return
				}
			}
			if page.Next == "" {
				return
			}
			seen[token] = true
			if token = page.Next; seen[token] || len(seen) >= searchPages {
				yield(Row{}, &EndError{&ServiceError{Asked: q.String(), Reason: ReasonBadReply, Status: reply.Status, Detail: "its pages do not end: " + token}})
				return
			}
		}
	}
}

// A serviceStatus is the error that a reply of a Google service may hold.
type serviceStatus struct {
	Error *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
		Status  string `json:"status"`
		Details []struct {
			Reason string `json:"reason"`
		} `json:"details"`
	} `json:"error"`
}

// judgeSearch knows that an answer is a JSON object which is no error, and that a spent quota is the
// service's wish to be left alone.
func judgeSearch(r fetch.Reply) fetch.Judgement {
	var s serviceStatus
	bad := json.Unmarshal(r.Body, &s) != nil
	switch {
	case s.Error != nil && s.Error.Status == "RESOURCE_EXHAUSTED", r.Status == http.StatusTooManyRequests:
		return fetch.Judgement{Class: fetch.ClassThrottled, Reason: "quota"}
	case r.Class == fetch.ClassOK && (bad || s.Error != nil):
		return fetch.Judgement{Class: fetch.ClassFailed, Reason: "no answer"}
	}
	return fetch.Judgement{}
}

// searchRefusal says why a reply is no answer, nil if it is one.
func searchRefusal(q ClaimQuery, r *fetch.Reply) error {
	if r.Class == fetch.ClassOK && r.Status == http.StatusOK {
		return nil
	}
	e := &ServiceError{Asked: q.String(), Reason: ReasonBadReply, Status: r.Status, Tries: r.Tries, Detail: r.Reason}
	var s serviceStatus
	status, details := "", ""
	if json.Unmarshal(r.Body, &s) == nil && s.Error != nil {
		status, e.Detail = s.Error.Status, strings.TrimSpace(s.Error.Status+" "+clipped(s.Error.Message))
		for _, d := range s.Error.Details {
			details += " " + d.Reason
		}
	}
	switch {
	case status == "RESOURCE_EXHAUSTED", r.Status == http.StatusTooManyRequests:
		e.Reason = ReasonQuota
	case r.Status == http.StatusUnauthorized, r.Status == http.StatusForbidden, strings.Contains(details, "API_KEY"), strings.Contains(e.Detail, "API key"):
		e.Reason = ReasonCredentials
	case r.Status == http.StatusBadRequest, r.Status == http.StatusNotFound:
		e.Reason = ReasonBadRequest
	case r.Status >= http.StatusInternalServerError:
		e.Reason = ReasonUnavailable
	}
	return e
}

// clipped bounds a text that somebody else wrote.
func clipped(s string) string {
	const most = 300
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "..."
}
