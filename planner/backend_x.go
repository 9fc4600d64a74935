package planner

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"assay/fetch"
)

// xPosts searches the posts of a week on X.
var xPosts = Backend{
	Name:      "x",
	Version:   1,
	Doc:       "posts of the last seven days on X, $5 for 1,000 posts read; off unless runtime.search.x.on is true, since only ids may be published",
	Proven:    "captured",
	Reference: "recorded replies of 2021 and 2022; X's description of its prices and errors, 2026; no live account",
	Access:    &Access{Base: "https://api.x.com", KeyEnv: "X_BEARER_TOKEN", USDPer1000: 5, PriceDate: "2026-11-30"},
	Dates:     true,
	Off:       true,
	Search: func(ctx context.Context, env Env, q Query) ([]Result, error) {
		if len(q.Domains) > 0 && !slices.Contains(q.Domains, "x.com") {
			return nil, &APIError{API: xEngine.title, Asked: fmt.Sprintf("posts about %q", q.Text), Reason: ReasonNotConfigured, Detail: "its posts are on x.com alone, and the search is kept to " + strings.Join(q.Domains, ", ") + " (recipe.planner.domains)"}
		}
		q.Domains = nil
		return xEngine.search(ctx, env, q)
	},
}

// One request reads 10 to 100 posts, each of which is paid for.
const (
	xLeast = 10
	xMost  = 100
)

func xCount(q Query) int { return min(max(q.K, xLeast), xMost) }

// xReply is what we read of a reply.
type xReply struct {
	Data []struct {
		ID      string `json:"id"`
		Text    string `json:"text"`
		Created string `json:"created_at"`
	} `json:"data"` // none where nothing was found
	Meta *struct {
		Next  string `json:"next_token"`
		Count *int   `json:"result_count"` // missing where posts are counted, or looked up by their ids
	} `json:"meta"`
}

var xEngine = engine{
	name: "x", title: "X",
	request: func(_ Access, q Query, n int, next string) (string, any, bool) {
		params := []string{"query", q.Text, "max_results", fmt.Sprint(xCount(q)), "tweet.fields", "created_at"}
		if q.From != "" {
			params = append(params, "start_time", q.From+"T00:00:00Z")
		}
		if q.To != "" {
			params = append(params, "end_time", q.To+"T23:59:59Z")
		}
		if next != "" {
			params = append(params, "next_token", next)
		}
		return "/2/tweets/search/recent?" + query(params...), nil, n == 0 || next != ""
	},
	read: func(body []byte) (page, error) {
		var r xReply
		if err := readJSON(body, &r); err != nil {
			return page{}, err
		}
		if r.Meta == nil || r.Meta.Count == nil {
			return page{}, errors.New("it does not say how many posts there are")
		}
		if *r.Meta.Count != len(r.Data) {
			return page{}, fmt.Errorf("it announces %d posts and holds %d", *r.Meta.Count, len(r.Data))
		}
		p := page{more: r.Meta.Next != "", next: r.Meta.Next}
		for _, post := range r.Data {
			if post.ID != "" {
				p.results = append(p.results, Result{URL: "https://x.com/i/web/status/" + post.ID, Text: post.Text, Published: dayOf(post.Created)})
			}
		}
		return p, nil
	},
	hear: func(r fetch.Reply) fault {
		said := wordsOf(r.Body)
		spent := slices.ContainsFunc([]string{"usagecap", "usage cap", "creditsdepleted", "credits"}, func(s string) bool {
			return strings.Contains(strings.ToLower(string(r.Body[:min(len(r.Body), 2000)])), s)
		})
		if spent && (r.Status == http.StatusTooManyRequests || r.Status == http.StatusPaymentRequired || r.Status == http.StatusForbidden) {
			return fault{reason: ReasonQuota, detail: said}
		}
		return fault{}
	},
	rest:  xRest,
	worst: func(q Query) float64 { return float64(xCount(q)) },
	cost: func(r fetch.Reply) float64 {
		var got xReply
		if r.Status != http.StatusOK || readJSON(r.Body, &got) != nil {
			return 0
		}
		return float64(len(got.Data))
	},
}

// xRest reads x-rate-limit-remaining and -reset, an instant in seconds: once nothing is left of a
// window, or a request was refused, the time to its end.
func xRest(r fetch.Reply) time.Duration {
	reset, err := strconv.ParseFloat(r.Header.Get("X-Rate-Limit-Reset"), 64)
	left, leftErr := strconv.ParseFloat(r.Header.Get("X-Rate-Limit-Remaining"), 64)
	if err != nil || math.IsNaN(reset) || r.Class != fetch.ClassThrottled && (leftErr != nil || !(left < 1)) {
		return 0
	}
	wait := reset - float64(r.Retrieved.UnixMilli())/1000
	return time.Duration(min(max(wait, 0), (24*time.Hour).Seconds()) * float64(time.Second))
}
