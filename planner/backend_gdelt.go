package planner

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"assay/fetch"
)

// gdelt searches the news that GDELT has seen.
var gdelt = Backend{
	Name:      "gdelt",
	Version:   1,
	Doc:       "news since 2017 by GDELT's DOC 2.0 interface, free, one request in 5 s, often refused; its dates are when an article was seen",
	Proven:    "captured",
	Reference: "recorded lists of articles of 2020 and its throttle text",
	Access:    &Access{Base: "https://api.gdeltproject.org"},
	Dates:     true,
	Search:    gdeltEngine.search,
}

// gdeltMost is how many articles one request gives; there is no second page.
const gdeltMost = 250

var gdeltEngine = engine{
	name: "gdelt", title: "GDELT", open: true, gap: 5 * time.Second,
	request: func(_ Access, q Query, n int, _ string) (string, any, bool) {
		// Quotes, brackets and colons are its operators.
		text := strings.Join(strings.FieldsFunc(q.Text, func(r rune) bool { return strings.ContainsRune(" \t\n\"“”():", r) }), " ")
		params := []string{"query", text + gdeltDomains(q.Domains), "mode", "artlist", "format", "json", "maxrecords", fmt.Sprint(min(q.K, gdeltMost)), "sort", "hybridrel"}
		day := strings.NewReplacer("-", "")
		if q.From != "" {
			params = append(params, "startdatetime", day.Replace(q.From)+"000000")
		}
		if q.To != "" {
			params = append(params, "enddatetime", day.Replace(q.To)+"235959")
		}
		return "/api/v2/doc/doc?" + query(params...), nil, n == 0
	},
	read: func(body []byte) (page, error) {
		var r struct {
			Articles []struct {
				URL   string `json:"url"`
				Title string `json:"title"`
				Seen  string `json:"seendate"`
			} `json:"articles"`
		}
		var whole map[string]json.RawMessage
		if err := readJSON(body, &r); err != nil {
			return page{}, err
		}
		// Nothing but an empty object says that nothing was found: it answers in other forms too.
		if err := json.Unmarshal(body, &whole); err != nil || whole == nil || r.Articles == nil && len(whole) > 0 {
			return page{}, errors.New("it holds no list of articles")
		}
		var p page
		for _, a := range r.Articles {
			seen := ""
			if at, err := time.Parse("20060102T150405Z", a.Seen); err == nil {
				seen = at.Format(time.RFC3339)
			}
			p.results = append(p.results, Result{URL: a.URL, Title: a.Title, Seen: seen})
		}
		return p, nil
	},
	// It says everything but lists of articles in plain text, often with a good status.
	hear: func(r fetch.Reply) fault {
		text := bytes.TrimSpace(r.Body)
		if len(text) == 0 || text[0] == '<' || json.Valid(text) {
			return fault{}
		}
		said := strings.ToLower(string(text[:min(len(text), 500)]))
		switch {
		case strings.Contains(said, "limit requests"), strings.Contains(said, "too many requests"), strings.Contains(said, "try again"):
			return fault{reason: ReasonRateLimit, detail: string(text)}
		case r.Status == 200 && (strings.Contains(said, "query") || strings.Contains(said, "phrase") || strings.Contains(said, "keyword") || strings.Contains(said, "invalid")):
			return fault{reason: ReasonBadRequest, detail: string(text)}
		}
		return fault{}
	},
}

func gdeltDomains(domains []string) string {
	var list []string
	for _, d := range domains {
		list = append(list, "domain:"+d)
	}
	if len(list) > 1 {
		return " (" + strings.Join(list, " OR ") + ")"
	}
	return strings.Join(append([]string{""}, list...), " ")
}
