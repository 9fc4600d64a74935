package planner

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"assay/fetch"
)

// brave searches Brave's own index of the web.
var brave = Backend{
	Name:      "brave",
	Version:   1,
	Doc:       "web search by Brave's interface, $5 for 1,000 requests (runtime.search.brave)",
	Proven:    "captured",
	Reference: "a recorded page of results of 2024; Brave's description of its errors and rate headers, 2026; no live account",
	Access:    &Access{Base: "https://api.search.brave.com", KeyEnv: "BRAVE_API_KEY", USDPer1000: 5, PriceDate: "2026-11-30"},
	Dates:     true,
	Search: func(ctx context.Context, env Env, q Query) ([]Result, error) {
		// Brave wants both ends of a range; there was no web before the one.
		if q.From+q.To != "" {
			q.From, q.To = cmp.Or(q.From, "1990-01-01"), cmp.Or(q.To, env.now().UTC().Format(time.DateOnly))
		}
		return braveEngine.search(ctx, env, q)
	},
}

// One request gives at most 20 results, and the offset counts pages, of which there are ten.
const (
	braveCount = 20
	bravePages = 10
)

var braveEngine = engine{
	name: "brave", title: "Brave", keyHeader: "X-Subscription-Token",
	request: func(_ Access, q Query, n int, _ string) (string, any, bool) {
		params := []string{"q", q.Text + onDomains(q.Domains), "count", fmt.Sprint(min(q.K, braveCount))}
		if n > 0 {
			params = append(params, "offset", fmt.Sprint(n))
		}
		if q.From != "" {
			params = append(params, "freshness", q.From+"to"+q.To)
		}
		return "/res/v1/web/search?" + query(params...), nil, n < bravePages
	},
	read: func(body []byte) (page, error) {
		var r struct {
			Query *struct {
				More bool `json:"more_results_available"`
			} `json:"query"`
			Web struct {
				Results []struct {
					Title       string `json:"title"`
					URL         string `json:"url"`
					Description string `json:"description"`
					PageAge     string `json:"page_age"` // an instant without a zone
				} `json:"results"`
			} `json:"web"`
		}
		if err := readJSON(body, &r); err != nil {
			return page{}, err
		}
		if r.Query == nil {
			return page{}, errors.New("it does not say what was searched")
		}
		p := page{more: r.Query.More}
		for _, hit := range r.Web.Results {
			p.results = append(p.results, Result{URL: hit.URL, Title: plain(hit.Title), Text: plain(hit.Description), Published: dayOf(hit.PageAge)})
		}
		return p, nil
	},
	hear: func(r fetch.Reply) fault {
		var e struct {
			Error struct {
				Code   string `json:"code"`
				Detail string `json:"detail"`
			} `json:"error"`
		}
		if json.Unmarshal(r.Body, &e) != nil {
			return fault{}
		}
		switch code := strings.ToUpper(e.Error.Code); {
		case strings.Contains(code, "TOKEN"), strings.Contains(code, "SUBSCRIPTION"):
			return fault{reason: ReasonCredentials, detail: cmp.Or(e.Error.Detail, code)}
		case strings.Contains(code, "QUOTA"):
			return fault{reason: ReasonQuota, detail: cmp.Or(e.Error.Detail, code)}
		}
		return fault{}
	},
	rest: braveRest,
}

// braveRest reads X-RateLimit-Remaining and -Reset, lists with a number for each window: of a second,
// and of a month. A window without requests is waited for; that of the month parks the host.
func braveRest(r fetch.Reply) time.Duration {
	left := strings.Split(r.Header.Get("X-Ratelimit-Remaining"), ",")
	resets := strings.Split(r.Header.Get("X-Ratelimit-Reset"), ",")
	var wait time.Duration
	for i := range min(len(left), len(resets)) {
		n, err := strconv.Atoi(strings.TrimSpace(left[i]))
		seconds, resetErr := strconv.Atoi(strings.TrimSpace(resets[i]))
		if err == nil && resetErr == nil && n < 1 && seconds > 0 {
			wait = max(wait, time.Duration(min(seconds, 366*24*3600))*time.Second)
		}
	}
	return wait
}
