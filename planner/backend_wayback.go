package planner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"assay/corpus"
	"assay/fetch"
)

// wayback finds what the Wayback Machine has kept of an address. A query is an address, not words.
var wayback = Backend{
	Name:      "wayback",
	Version:   1,
	Doc:       "captures of one address in the Wayback Machine, newest first; its dates are when a page was captured, and a query is an address",
	Proven:    "captured",
	Reference: "recorded lists of captures and the refusal of an excluded site",
	Access:    &Access{Base: "https://web.archive.org"},
	Dates:     true,
	Search: func(ctx context.Context, env Env, q Query) ([]Result, error) {
		if corpus.Host(q.Text) == "" || !strings.HasPrefix(q.Text, "http") {
			return nil, &APIError{API: waybackEngine.title, Asked: fmt.Sprintf("captures of %q", q.Text), Reason: ReasonNotConfigured, Detail: "it is asked for captures of an address, and this is none: choose another recipe.planner.backend to search for words"}
		}
		return waybackEngine.search(ctx, env, q)
	},
}

var waybackEngine = engine{
	name: "wayback", title: "the Wayback Machine", open: true,
	gap: 2500 * time.Millisecond, // who asks for more than 30 lists a minute is shut out
	request: func(_ Access, q Query, n int, _ string) (string, any, bool) {
		// A negative limit takes the last ones.
		params := []string{"url", q.Text, "output", "json", "filter", "statuscode:200", "collapse", "digest", "limit", fmt.Sprint(-q.K)}
		day := strings.NewReplacer("-", "")
		if q.From != "" {
			params = append(params, "from", day.Replace(q.From))
		}
		if q.To != "" {
			params = append(params, "to", day.Replace(q.To)+"235959")
		}
		return "/cdx/search/cdx?" + query(params...), nil, n == 0
	},
	read: func(body []byte) (page, error) {
		var rows [][]string
		if err := readJSON(body, &rows); err != nil {
			return page{}, err
		}
		if rows == nil {
			return page{}, errors.New("it holds no list of captures")
		}
		if len(rows) == 0 {
			return page{}, nil
		}
		at, original, status := slices.Index(rows[0], "timestamp"), slices.Index(rows[0], "original"), slices.Index(rows[0], "statuscode")
		if at < 0 || original < 0 || status < 0 {
			return page{}, errors.New("the list of captures does not name its columns")
		}
		var p page
		for _, row := range rows[1:] {
			if len(row) != len(rows[0]) {
				return page{}, errors.New("a capture lacks columns")
			}
			seen, err := time.Parse("20060102150405", row[at])
			if err != nil || row[status] != "200" { // a revisit has none, and a capture of a refusal is no page
				continue
			}
			p.results = append(p.results, Result{URL: "https://web.archive.org/web/" + row[at] + "id_/" + row[original], Seen: seen.Format(time.RFC3339)})
		}
		slices.Reverse(p.results)
		return p, nil
	},
	hear: func(r fetch.Reply) fault {
		switch text := string(r.Body[:min(len(r.Body), 1000)]); {
		case strings.Contains(text, "AdministrativeAccessControlException"), strings.Contains(text, "has been excluded from the Wayback Machine"):
			return fault{reason: ReasonForbidden, detail: "the site is excluded from the archive"}
		case r.Status == 429 && r.Header.Get("Retry-After") == "":
			return fault{reason: ReasonRateLimit, detail: "it asks to slow down", wait: time.Minute}
		}
		return fault{}
	},
}
