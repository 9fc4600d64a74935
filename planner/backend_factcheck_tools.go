package planner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"assay/corpus"
)

// factCheckTools searches the reviews of claims that Google knows from the markup of fact-checkers' pages. Its results
// are these pages, for the tool factcheck above all.
var factCheckTools = Backend{
	Name:      "factcheck_tools",
	Version:   1,
	Doc:       "reviews of claims by Google's Fact Check Tools, free with a key: pages of fact-checkers, for the tool factcheck (runtime.search.factcheck_tools)",
	Proven:    "captured",
	Reference: "a recorded reply of 2022; no live account",
	Access:    &Access{Base: "https://factchecktools.googleapis.com", KeyEnv: "GOOGLE_FACT_CHECK_KEY"},
	Search: func(ctx context.Context, env Env, q Query) ([]Result, error) {
		found, err := factCheckEngine.search(ctx, env, q)
		for i, r := range found { // it keeps to one publisher at most
			if len(q.Domains) > 0 && !within(corpus.RegistrableDomain(corpus.Host(r.URL)), q.Domains) {
				found[i].Drop = DropElsewhere
			}
		}
		return found, err
	},
}

// factCheckCount is how many claims a page has at most. Pages go on until one gives no token of the next, and all
// of them must be asked for in the same words.
const factCheckCount = 50

var factCheckEngine = engine{
	name: "factcheck_tools", title: "Google Fact Check Tools", keyQuery: "key",
	request: func(_ Access, q Query, n int, next string) (string, any, bool) {
		params := []string{"query", q.Text, "pageSize", fmt.Sprint(min(max(q.K, 1), factCheckCount))}
		if len(q.Domains) == 1 { // of several it can be asked for none
			params = append(params, "reviewPublisherSiteFilter", q.Domains[0])
		}
		if q.Language != "" {
			params = append(params, "languageCode", q.Language)
		}
		if next != "" {
			params = append(params, "pageToken", next)
		}
		return "/v1alpha1/claims:search?" + query(params...), nil, n == 0 || next != ""
	},
	read: func(body []byte) (page, error) {
		var r struct {
			Claims *[]struct {
				Text    string `json:"text"`
				Reviews []struct {
					URL   string `json:"url"`
					Title string `json:"title"`
					Day   string `json:"reviewDate"`
				} `json:"claimReview"`
			} `json:"claims"`
			Next string `json:"nextPageToken"`
		}
		if err := readJSON(body, &r); err != nil {
			return page{}, err
		}
		if r.Claims == nil {
			var empty map[string]json.RawMessage // an object without anything is how it says that it found nothing
			if err := json.Unmarshal(body, &empty); err != nil || empty == nil || len(empty) > 0 {
				return page{}, errors.New("it holds no list of claims")
			}
			return page{}, nil
		}
		p := page{more: r.Next != "", next: r.Next}
		for _, c := range *r.Claims {
			for _, review := range c.Reviews {
				// The claim alone: what the review makes of it stands on its page.
				p.results = append(p.results, Result{URL: review.URL, Title: review.Title, Text: corpus.Space(c.Text), Published: dayOf(review.Day)})
			}
		}
		return p, nil
	},
	hear: hearGoogle,
}
