package planner

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"assay/fetch"
)

const (
	searxngName  = "SearXNG"
	searxngPages = 5 // of results that one search reads at most
)

// A SearXNG asks an instance of the metasearch engine SearXNG, which asks others. All methods may be
// called from many goroutines.
type SearXNG struct {
	// AtOnce is how many searches the instance takes at once, if more than one.
	AtOnce int

	web  Web
	base string
}

// NewSearXNG makes a client of the instance at an address.
func NewSearXNG(web Web, base string) *SearXNG {
	return &SearXNG{web: web, base: strings.TrimSuffix(base, "/")}
}

// searxngReply is what we read of a page of results.
type searxngReply struct {
	Results []struct {
		URL       string `json:"url"`
		Title     string `json:"title"`
		Text      string `json:"content"`
		Published string `json:"publishedDate"` // an instant without a zone, of engines that tell one
	} `json:"results"`
	Unresponsive []json.RawMessage `json:"unresponsive_engines"` // pairs of name and reason
}

// engines names the engines that did not answer, with what they said.
func (r searxngReply) engines() string {
	var names []string
	for _, raw := range r.Unresponsive {
		var pair []string
		var name string
		if json.Unmarshal(raw, &pair) == nil {
			name = strings.Join(pair, ": ")
		} else if json.Unmarshal(raw, &name) != nil {
			name = "one without a name"
		}
		names = append(names, name)
	}
	return clip(strings.Join(names, ", "))
}

// Search finds addresses on some domains, best first. An instance whose engines gave no answer has not
// searched: that is a failure, and no evidence for there being nothing.
func (s *SearXNG) Search(ctx context.Context, text string, domains []string, k int) ([]Result, error) {
	asked := fmt.Sprintf("results about %q", text)
	var out []Result
	known := map[string]bool{}
	for page := 1; page <= searxngPages && len(out) < k; page++ {
		reply, err := s.web.Call(ctx, fetch.Call{
			URL:    s.base + "/search?" + query("q", text+onDomains(domains), "format", "json", "pageno", fmt.Sprint(page)),
			AtOnce: s.AtOnce, Judge: judgeSearXNG,
		})
		if err != nil {
			return nil, err
		}
		var got searxngReply
		bad := json.Unmarshal(reply.Body, &got)
		if reply.Class != fetch.ClassOK || reply.Status != http.StatusOK || bad != nil {
			if page > 1 && bad == nil && reply.Status == http.StatusOK {
				break // the engines gave what they had before
			}
			return nil, s.refused(asked, reply, got)
		}
		before := len(out)
		for _, r := range got.Results {
			if len(out) < k && r.URL != "" && !known[r.URL] {
				known[r.URL] = true
				out = append(out, Result{URL: r.URL, Title: r.Title, Text: r.Text, Published: dayOf(r.Published)})
			}
		}
		if len(out) == before {
			break
		}
	}
	return out, nil
}

// onDomains restricts a query in the words that most engines know. They keep to it as they like, so
// results are looked at again.
func onDomains(domains []string) string {
	var sites []string
	for _, d := range domains {
		sites = append(sites, "site:"+d)
	}
	switch len(sites) {
	case 0:
		return ""
	case 1:
		return " " + sites[0]
	}
	return " (" + strings.Join(sites, " OR ") + ")"
}

// judgeSearXNG keeps what is a page of results, also an empty one, but not one that is empty because
// no engine answered.
func judgeSearXNG(r fetch.Reply) fetch.Judgement {
	if r.Class == fetch.ClassThrottled {
		return fetch.Judgement{}
	}
	failed := func(reason string) fetch.Judgement { return fetch.Judgement{Class: fetch.ClassFailed, Reason: reason} }
	if r.Status != http.StatusOK {
		if r.Class == fetch.ClassBlocked {
			return fetch.Judgement{}
		}
		return failed(fmt.Sprintf("status_%d", r.Status))
	}
	if j := judgeJSON(fetch.Reply{Status: r.Status, Class: fetch.ClassOK, Body: r.Body}); j.Class != "" {
		return j
	}
	var got searxngReply
	switch err := json.Unmarshal(r.Body, &got); {
	case err != nil || got.Results == nil:
		return failed("no results in the reply")
	case len(got.Results) == 0 && len(got.Unresponsive) > 0:
		return failed(ReasonEngines)
	}
	return fetch.Judgement{Class: fetch.ClassOK}
}

// refused explains a reply that is no page of results, with the way out where there is one.
func (s *SearXNG) refused(asked string, r *fetch.Reply, got searxngReply) *APIError {
	e := refusal(searxngName, asked, r)
	switch {
	case e.Reason == ReasonQuota: // a proxy before it wants to be paid
	case r.Status == http.StatusForbidden:
		e.Reason = ReasonForbidden
		e.Detail = "the instance gives no JSON: add json to search.formats in its settings.yml (formats: [html, json]) and restart it; or its limiter takes us for a robot"
	case r.Reason == ReasonEngines:
		e.Reason, e.Detail = ReasonEngines, "nothing was found, but these did not answer: "+got.engines()
	case r.Status == http.StatusNotFound:
		e.Reason, e.Detail = ReasonBadRequest, "there is no SearXNG at "+s.base
	case r.Class == fetch.ClassFailed && r.Reason == "html", r.Class == fetch.ClassBlocked:
		e.Reason, e.Detail = ReasonBadReply, cmp.Or(e.Detail, r.Reason)+" where JSON was asked for: add json to search.formats in its settings.yml"
	case e.Reason == ReasonCredentials, e.Reason == ReasonScope, e.Reason == ReasonGone:
		e.Reason = ReasonForbidden
	}
	return e
}
