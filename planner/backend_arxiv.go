package planner

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"assay/corpus"
	"assay/fetch"
)

// arxiv searches papers, whose abstracts are documents.
var arxiv = Backend{
	Name:      "arxiv",
	Version:   1,
	Doc:       "abstracts of papers on arXiv, whose metadata are CC0; one request in 3 s",
	Proven:    "captured",
	Reference: "recorded Atom feeds of 2017 to 2022 with their errors",
	Access:    &Access{Base: "https://export.arxiv.org"},
	Dates:     true,
	Search:    arxivSearch,

	Document:        arxivDocument,
	DocumentVersion: 1,
}

const (
	arxivName    = "arxiv"
	arxivPage    = 100 // papers of one request
	arxivLicence = "CC0 1.0 (metadata)"
)

// arxivVersion is what follows the id of a paper.
var arxivVersion = regexp.MustCompile(`v([0-9]+)$`)

// An atom is a feed of arXiv's.
type atom struct {
	XMLName xml.Name `xml:"http://www.w3.org/2005/Atom feed"`
	Total   int      `xml:"http://a9.com/-/spec/opensearch/1.1/ totalResults"`
	Entries []struct {
		ID        string `xml:"id"`
		Title     string `xml:"title"`
		Summary   string `xml:"summary"`
		Published string `xml:"published"`
	} `xml:"entry"`
}

// A paper is an entry with its id taken apart.
type paper struct {
	id, version, title, summary, published string
}

// readAtom reads a feed. An error of the interface is a feed too, with one entry that tells it.
func readAtom(body []byte) (papers []paper, total int, err error) {
	text := bytes.TrimSpace(body)
	if len(text) == 0 {
		return nil, 0, errors.New("the reply is empty")
	}
	var feed atom
	if err := xml.Unmarshal(text, &feed); err != nil {
		return nil, 0, fmt.Errorf("no Atom feed: %w", err)
	}
	for _, e := range feed.Entries {
		if strings.Contains(e.ID, "/api/errors") {
			return nil, 0, &arxivError{strings.Join(strings.Fields(e.Summary), " ")}
		}
		_, id, ok := strings.Cut(e.ID, "/abs/")
		if !ok || id == "" {
			return nil, 0, fmt.Errorf("an entry without an id of arXiv's: %s", clip(e.ID))
		}
		p := paper{id: id, title: strings.Join(strings.Fields(e.Title), " "), summary: strings.Join(strings.Fields(e.Summary), " "), published: dayOf(e.Published)}
		if m := arxivVersion.FindStringSubmatchIndex(id); m != nil {
			p.id, p.version = id[:m[0]], id[m[0]:]
		}
		papers = append(papers, p)
	}
	return papers, feed.Total, nil
}

// An arxivError is what the interface says in the place of a paper.
type arxivError struct{ said string }

func (e *arxivError) Error() string { return e.said }

// arxivEngine takes a feed without papers for a hiccup and asks again, a few times: the interface is known
// for empty pages before and between full ones.
var arxivEngine = engine{
	name: arxivName, title: "arXiv", open: true, gap: 3 * time.Second,
	read: func(body []byte) (page, error) {
		_, _, err := readAtom(body)
		return page{}, err
	},
	hear: func(r fetch.Reply) fault {
		papers, _, err := readAtom(r.Body)
		var told *arxivError
		switch {
		case errors.As(err, &told):
			return fault{reason: ReasonBadRequest, detail: told.said}
		case err == nil && r.Status == 200 && len(papers) == 0:
			return fault{reason: ReasonIncomplete, detail: "a page without papers"}
		}
		return fault{}
	},
}

// ask sends a request of the interface's; empty is true where it holds to an empty page.
func (q arxivQuery) ask(ctx context.Context, env Env) (papers []paper, total int, at time.Time, empty bool, err error) {
	access, err := env.access(arxivName, arxivEngine.title, q.asked)
	if err != nil {
		return nil, 0, at, false, err
	}
	call, err := arxivEngine.call(env, access, Query{}, "/api/query?"+query(q.params...), nil)
	if err != nil {
		return nil, 0, at, false, err
	}
	call.Accept = "application/atom+xml"
	reply, err := arxivEngine.ask(ctx, env, call, q.asked)
	var refused *APIError
	if errors.As(err, &refused) && refused.Reason == ReasonIncomplete {
		_, total, _ := readAtom(reply.Body) // it could be read, or it would be another reason
		return nil, total, at, true, err
	} else if err != nil {
		return nil, 0, at, false, err
	}
	papers, total, err = readAtom(reply.Body)
	return papers, total, reply.Retrieved, false, err
}

type arxivQuery struct {
	asked  string
	params []string
}

// arxivSearch finds papers, best first, each once whatever its versions. A list that ends before what it
// announced is a failure: it is asked for again by the next run.
func arxivSearch(ctx context.Context, env Env, q Query) ([]Result, error) {
	asked := fmt.Sprintf("papers about %q", q.Text)
	words := strings.FieldsFunc(q.Text, func(r rune) bool { return strings.ContainsRune(" \t\n\"():[]", r) })
	if len(words) == 0 {
		return nil, &APIError{API: arxivEngine.title, Asked: asked, Reason: ReasonBadRequest, Detail: "the query holds no words"}
	}
	text := "all:(" + strings.Join(words, " ") + ")"
	if q.From+q.To != "" {
		day := strings.NewReplacer("-", "")
		from, to := q.From, q.To
		if from == "" {
			from = "1991-01-01"
		}
		if to == "" {
			to = env.now().UTC().Format(time.DateOnly)
		}
		text += " AND submittedDate:[" + day.Replace(from) + "0000 TO " + day.Replace(to) + "2359]"
	}
	var out []Result
	known := map[string]bool{}
	for start, total := 0, 1; start < total && len(out) < q.K; start += arxivPage {
		papers, n, _, empty, err := arxivQuery{asked, []string{"search_query", text, "start", fmt.Sprint(start), "max_results", fmt.Sprint(min(q.K, arxivPage))}}.ask(ctx, env)
		var refused *APIError
		switch {
		case empty && start == 0 && n == 0:
			return nil, nil // it was asked often enough
		case empty && errors.As(err, &refused):
			refused.Detail = fmt.Sprintf("%d of %d", len(out), max(n, total))
			return nil, refused
		case err != nil:
			return nil, err
		}
		total = n
		for _, p := range papers {
			id := arxivName + ":" + p.id
			if !known[id] && len(out) < q.K {
				known[id] = true
				out = append(out, Result{DocumentID: id, URL: arxivAddress(p.id), Title: p.title, Text: p.summary, Published: p.published})
			}
		}
	}
	return out, nil
}

func arxivAddress(id string) string { return "https://arxiv.org/abs/" + id }

// arxivDocument reads a paper's abstract by its id, arxiv:<id without version>.
func arxivDocument(ctx context.Context, env Env, id string, _ []string) (corpus.Document, error) {
	name := strings.TrimPrefix(id, arxivName+":")
	papers, total, at, empty, err := arxivQuery{"paper " + id, []string{"id_list", name, "max_results", "1"}}.ask(ctx, env)
	if empty && total == 0 {
		return corpus.Document{}, corpus.Exclude(ReasonGone, "arXiv has no paper "+name)
	} else if err != nil {
		return corpus.Document{}, err
	}
	for _, p := range papers {
		if p.id == name {
			d := corpus.Document{
				ID: id, Kind: corpus.KindPage, Title: p.title, Text: p.summary, URL: arxivAddress(p.id), Source: "arxiv.org",
				PublishedAt: p.published, Revision: p.version, Licence: arxivLicence, BodyStatus: BodyStatusOf("", p.summary, ""),
			}
			return stamped(d, at).Seal(), nil
		}
	}
	return corpus.Document{}, &APIError{API: arxivEngine.title, Asked: "paper " + id, Reason: ReasonBadReply, Detail: "it gave another paper"}
}
