package planner

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"assay/fetch"
)

// googleCSE searches through a Programmable Search Engine of Google's.
var googleCSE = Backend{
	Name:      "google_cse",
	Version:   1,
	Doc:       "Google's Custom Search JSON API, for those who had it before it closed to new customers; it ends on 2027-01-01 (runtime.search.google_cse, with engine_id)",
	Proven:    "captured",
	Reference: "recorded pages of 2012 to 2024 and a quota error; no live account",
	Access:    &Access{Base: "https://www.googleapis.com", KeyEnv: "GOOGLE_API_KEY", USDPer1000: 5, PriceDate: "2026-11-30"},
	Dates:     true,
	Ends:      "2027-01-01",
	Search: func(ctx context.Context, env Env, q Query) ([]Result, error) {
		if at, err := env.access("google_cse", googleEngine.title, "results"); err == nil && at.EngineID == "" {
			return nil, &APIError{API: googleEngine.title, Asked: "results", Reason: ReasonNotConfigured, Detail: "runtime.search.google_cse.engine_id is empty: it names the programmable engine (cx)"}
		}
		return googleEngine.search(ctx, env, q)
	},
}

// One request gives at most 10 results, and no result beyond the hundredth.
const (
	googleCount = 10
	googleLast  = 100
)

var googleEngine = engine{
	name: "google_cse", title: "Google Custom Search", keyQuery: "key",
	request: func(at Access, q Query, n int, _ string) (string, any, bool) {
		count := min(q.K, googleCount)
		start := n*count + 1
		params := []string{"cx", at.EngineID, "q", q.Text + onDomains(q.Domains), "num", fmt.Sprint(count), "start", fmt.Sprint(start)}
		if q.From+q.To != "" {
			day := strings.NewReplacer("-", "")
			params = append(params, "sort", "date:r:"+day.Replace(q.From)+":"+day.Replace(q.To))
		}
		return "/customsearch/v1?" + query(params...), nil, start+count-1 <= googleLast
	},
	read: func(body []byte) (page, error) {
		var r struct {
			Kind    string `json:"kind"`
			Queries struct {
				Next []struct {
					Start int `json:"startIndex"`
				} `json:"nextPage"`
			} `json:"queries"`
			Items []struct {
				Title   string `json:"title"`
				Link    string `json:"link"`
				Snippet string `json:"snippet"`
			} `json:"items"` // none where nothing was found
		}
		if err := readJSON(body, &r); err != nil {
			return page{}, err
		}
		if r.Kind != "customsearch#search" {
			return page{}, errors.New("it does not say that it is a page of results")
		}
		p := page{more: len(r.Queries.Next) > 0}
		for _, hit := range r.Items {
			p.results = append(p.results, Result{URL: hit.Link, Title: hit.Title, Text: plain(hit.Snippet)})
		}
		return p, nil
	},
	hear: hearGoogle,
}

// hearGoogle tells a quota of the day, which is parked until it begins anew, from one of the minute,
// and a key that is not good from both. Google says each with more than one status.
func hearGoogle(r fetch.Reply) fault {
	var e struct {
		Error struct {
			Message string `json:"message"`
			Status  string `json:"status"`
			Errors  []struct {
				Reason string `json:"reason"`
			} `json:"errors"`
			Details []struct {
				Reason   string `json:"reason"`
				Metadata struct {
					Limit string `json:"quota_limit"`
				} `json:"metadata"`
			} `json:"details"`
		} `json:"error"`
	}
	if json.Unmarshal(r.Body, &e) != nil || e.Error.Message == "" && e.Error.Status == "" {
		return fault{}
	}
	said := []string{e.Error.Status}
	daily := strings.Contains(e.Error.Message, "per day")
	for _, x := range e.Error.Errors {
		said = append(said, x.Reason)
	}
	for _, x := range e.Error.Details {
		said = append(said, x.Reason)
		daily = daily || strings.Contains(x.Metadata.Limit, "PerDay")
	}
	has := func(words ...string) bool {
		return slices.ContainsFunc(said, func(s string) bool { return slices.Contains(words, s) })
	}
	f := fault{detail: cmp.Or(e.Error.Message, e.Error.Status)}
	switch {
	case has("dailyLimitExceeded", "dailyLimitExceeded402", "quotaExceeded"), daily && has("RESOURCE_EXHAUSTED", "rateLimitExceeded", "RATE_LIMIT_EXCEEDED"):
		f.reason, f.wait = ReasonRateLimit, nextPacificDay(r.Retrieved)
	case has("RESOURCE_EXHAUSTED", "rateLimitExceeded", "userRateLimitExceeded", "RATE_LIMIT_EXCEEDED"):
		f.reason, f.wait = ReasonRateLimit, time.Minute
	case has("API_KEY_INVALID", "keyInvalid", "keyExpired", "accessNotConfigured", "SERVICE_DISABLED", "PERMISSION_DENIED", "forbidden") || strings.Contains(e.Error.Message, "API key"):
		f.reason = ReasonCredentials
	default:
		return fault{}
	}
	return f
}

// nextPacificDay is the time until Google's day begins: midnight in California, which is 7 or 8 hours
// after that of UTC; the later one is always right.
func nextPacificDay(now time.Time) time.Duration {
	now = now.UTC()
	next := time.Date(now.Year(), now.Month(), now.Day(), 8, 0, 0, 0, time.UTC)
	if !next.After(now) {
		next = next.AddDate(0, 0, 1)
	}
	return next.Sub(now)
}
