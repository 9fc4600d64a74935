package planner

import (
	"errors"

	"assay/fetch"
)

// tavily searches the web through Tavily.
var tavily = Backend{
	Name:      "tavily",
	Version:   1,
	Doc:       "web search by Tavily, $8 for 1,000 credits (runtime.search.tavily)",
	Proven:    "captured",
	Reference: "recorded replies of 2024 and 2026; descriptions of its errors; no live account",
	Access:    &Access{Base: "https://api.tavily.com", KeyEnv: "TAVILY_API_KEY", USDPer1000: 8, PriceDate: "2026-11-30"},
	Dates:     true,
	Search:    tavilyEngine.search,
}

// tavilyMost is how many results there are at most: there is no second page.
const tavilyMost = 20

type tavilyRequest struct {
	Query   string   `json:"query"`
	Most    int      `json:"max_results"`
	Depth   string   `json:"search_depth"` // basic costs one credit
	Domains []string `json:"include_domains,omitzero"`
	From    string   `json:"start_date,omitzero"`
	To      string   `json:"end_date,omitzero"`
}

var tavilyEngine = engine{
	name: "tavily", title: "Tavily",
	request: func(_ Access, q Query, n int, _ string) (string, any, bool) {
		return "/search", tavilyRequest{q.Text, min(q.K, tavilyMost), "basic", q.Domains, q.From, q.To}, n == 0
	},
	read: func(body []byte) (page, error) {
		var r struct {
			Results []struct {
				Title     string `json:"title"`
				URL       string `json:"url"`
				Content   string `json:"content"`
				Published string `json:"published_date"` // of news alone
			} `json:"results"`
		}
		if err := readJSON(body, &r); err != nil {
			return page{}, err
		}
		if r.Results == nil {
			return page{}, errors.New("it holds no list of results")
		}
		var p page
		for _, hit := range r.Results {
			p.results = append(p.results, Result{URL: hit.URL, Title: hit.Title, Text: hit.Content, Published: dayOf(hit.Published)})
		}
		return p, nil
	},
	hear: func(r fetch.Reply) fault {
		switch r.Status {
		case 432:
			return fault{reason: ReasonQuota, detail: "the searches of the plan are used up: " + wordsOf(r.Body)}
		case 433:
			return fault{reason: ReasonQuota, detail: "the limit of pay-as-you-go is reached: " + wordsOf(r.Body)}
		}
		return fault{}
	},
}
