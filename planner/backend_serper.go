package planner

import (
	"encoding/json"
	"errors"
	"strings"

	"assay/fetch"
)

// serper searches Google through Serper.
var serper = Backend{
	Name:      "serper",
	Version:   1,
	Doc:       "Google's results by Serper, $1 for 1,000 credits (runtime.search.serper)",
	Proven:    "captured",
	Reference: "a recorded reply of 2023; clients of Serper for its errors; no live account",
	Access:    &Access{Base: "https://google.serper.dev", KeyEnv: "SERPER_API_KEY", USDPer1000: 1, PriceDate: "2026-11-30"},
	Dates:     true,
	Search:    serperEngine.search,
}

// More than ten results of one request cost a second credit.
const serperCount = 10

type serperRequest struct {
	Query string `json:"q"`
	Num   int    `json:"num"`
	Page  int    `json:"page"`
	TBS   string `json:"tbs,omitzero"` // Google's own parameter for dates
}

var serperEngine = engine{
	name: "serper", title: "Serper", keyHeader: "X-Api-Key",
	request: func(_ Access, q Query, n int, _ string) (string, any, bool) {
		return "/search", serperRequest{q.Text + onDomains(q.Domains), serperCount, n + 1, googleDates(q)}, n < 10
	},
	read: func(body []byte) (page, error) {
		var r struct {
			Parameters json.RawMessage `json:"searchParameters"`
			Organic    []struct {
				Title   string `json:"title"`
				Link    string `json:"link"`
				Snippet string `json:"snippet"`
			} `json:"organic"`
		}
		if err := readJSON(body, &r); err != nil {
			return page{}, err
		}
		if r.Parameters == nil {
			return page{}, errors.New("it does not say what was searched")
		}
		p := page{more: len(r.Organic) > 0}
		for _, hit := range r.Organic {
			p.results = append(p.results, Result{URL: hit.Link, Title: hit.Title, Text: hit.Snippet})
		}
		return p, nil
	},
	hear: func(r fetch.Reply) fault {
		if said := wordsOf(r.Body); r.Status >= 400 && strings.Contains(strings.ToLower(said), "credit") {
			return fault{reason: ReasonQuota, detail: said}
		}
		return fault{}
	},
	worst: func(Query) float64 { return 2 },
	cost: func(r fetch.Reply) float64 {
		var said struct {
			Credits float64 `json:"credits"`
		}
		if r.Status != 200 {
			return 0
		}
		if json.Unmarshal(r.Body, &said) == nil && said.Credits > 0 {
			return said.Credits
		}
		return 1 // replies of earlier years tell no credits
	},
}

// googleDates is a range of days in the form of Google's own search.
func googleDates(q Query) string {
	if q.From+q.To == "" {
		return ""
	}
	day := func(date string) string { // month/day/year
		p := strings.Split(date, "-")
		if len(p) != 3 {
			return ""
		}
		return strings.TrimPrefix(p[1], "0") + "/" + strings.TrimPrefix(p[2], "0") + "/" + p[0]
	}
	return "cdr:1,cd_min:" + day(q.From) + ",cd_max:" + day(q.To)
}
