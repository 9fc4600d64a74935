package planner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"assay/fetch"
)

// serpapi searches Google through SerpApi.
var serpapi = Backend{
	Name:      "serpapi",
	Version:   1,
	Doc:       "Google's results by SerpApi, $25 for 1,000 searches on its smallest plan (runtime.search.serpapi)",
	Proven:    "captured",
	Reference: "a recorded reply of 2018 and an error; SerpApi's description of statuses and account, 2026; no live account",
	Access:    &Access{Base: "https://serpapi.com", KeyEnv: "SERPAPI_API_KEY", USDPer1000: 25, PriceDate: "2026-11-30"},
	Dates:     true,
	Search:    serpapiSearch,
}

var serpapiEngine = engine{
	name: "serpapi", title: "SerpApi", keyQuery: "api_key",
	request: func(_ Access, q Query, n int, _ string) (string, any, bool) {
		params := []string{"engine", "google", "q", q.Text + onDomains(q.Domains), "start", fmt.Sprint(10 * n)}
		if dates := googleDates(q); dates != "" {
			params = append(params, "tbs", dates)
		}
		return "/search.json?" + query(params...), nil, n < 10
	},
	read: func(body []byte) (page, error) {
		r, err := readSerpapi(body)
		if err != nil {
			return page{}, err
		}
		if r.Organic == nil && !r.nothing() {
			return page{}, errors.New("it holds no results and does not say that there are none")
		}
		var p page
		for _, hit := range r.Organic {
			p.results = append(p.results, Result{URL: hit.Link, Title: hit.Title, Text: hit.Snippet})
		}
		p.more = len(p.results) > 0
		return p, nil
	},
	hear: func(r fetch.Reply) fault {
		got, err := readSerpapi(r.Body)
		said := got.said()
		lower := strings.ToLower(said)
		switch {
		case r.Status == http.StatusTooManyRequests && r.Header.Get("Retry-After") == "":
			// Too many in this hour, or none left at all: the account tells which.
			return fault{reason: ReasonRateLimit, detail: said, final: true}
		case err != nil || said == "" || got.nothing():
			return fault{}
		case strings.Contains(lower, "run out of searches"), strings.Contains(lower, "credit"), strings.Contains(lower, "have run out"):
			return fault{reason: ReasonQuota, detail: said}
		case strings.Contains(lower, "api key"):
			return fault{reason: ReasonCredentials, detail: said}
		case r.Status == http.StatusOK:
			return fault{reason: ReasonUnavailable, detail: said}
		}
		return fault{}
	},
	// A search that failed is not counted.
	cost: func(r fetch.Reply) float64 {
		if r.Class == fetch.ClassOK {
			return 1
		}
		return 0
	},
}

// serpapiReply is what we read of a reply. It comes with a good status for a search that went wrong.
type serpapiReply struct {
	Error    string `json:"error"`
	Metadata struct {
		Status string `json:"status"`
	} `json:"search_metadata"`
	Organic []struct {
		Title   string `json:"title"`
		Link    string `json:"link"`
		Snippet string `json:"snippet"`
	} `json:"organic_results"`
}

func readSerpapi(body []byte) (serpapiReply, error) {
	var r serpapiReply
	err := readJSON(body, &r)
	return r, err
}

// nothing reports whether the reply says that Google found nothing, which stands where errors do.
func (r serpapiReply) nothing() bool {
	return strings.Contains(r.Error, "hasn't returned any results")
}

func (r serpapiReply) said() string {
	if r.Error == "" && strings.EqualFold(r.Metadata.Status, "error") {
		return "the search ended in an error"
	}
	return r.Error
}

// serpapiSearch searches; where it is told that there were too many requests, the account says whether
// another hour helps.
func serpapiSearch(ctx context.Context, env Env, q Query) ([]Result, error) {
	out, err := serpapiEngine.search(ctx, env, q)
	var refused *APIError
	if !errors.As(err, &refused) || refused.Status != http.StatusTooManyRequests {
		return out, err
	}
	left, err := serpapiAccount(ctx, env)
	switch {
	case err != nil && ends(ctx, err):
		return nil, err
	case err != nil:
		return nil, refused
	case left == 0:
		refused.Reason, refused.Detail = ReasonQuota, "the account has no searches left"
	default:
		refused.Detail = fmt.Sprintf("the searches of this hour are used up; %d are left in the account", left)
	}
	return nil, refused
}

// serpapiAccount asks how many searches are left. It costs nothing, and parks the host for the rest of
// the hour where that is what is used up.
func serpapiAccount(ctx context.Context, env Env) (left int, err error) {
	type account struct {
		Left   *int `json:"total_searches_left"`
		Hour   int  `json:"this_hour_searches"`
		Hourly int  `json:"account_rate_limit_per_hour"`
	}
	e := engine{name: "serpapi", title: "SerpApi", keyQuery: "api_key",
		read: func(body []byte) (page, error) {
			var a account
			if err := readJSON(body, &a); err != nil {
				return page{}, err
			}
			if a.Left == nil {
				return page{}, errors.New("it does not say how many searches are left")
			}
			return page{}, nil
		},
		rest: func(r fetch.Reply) time.Duration {
			var a account
			if json.Unmarshal(r.Body, &a) != nil || a.Left == nil || *a.Left == 0 || a.Hourly == 0 || a.Hour < a.Hourly {
				return 0
			}
			return r.Retrieved.Truncate(time.Hour).Add(time.Hour).Sub(r.Retrieved)
		},
	}
	at, err := env.access(e.name, e.title, "the account")
	if err != nil {
		return 0, err
	}
	at.USDPer1000 = 0
	call, err := e.call(env, at, Query{}, "/account.json", nil)
	if err != nil {
		return 0, err
	}
	reply, err := e.ask(fetch.AskAgain(ctx, env.now()), env, call, "the account")
	if err != nil {
		return 0, err
	}
	var a account
	if err := json.Unmarshal(reply.Body, &a); err != nil {
		return 0, err // unreachable: ask has read it
	}
	return *a.Left, nil
}
