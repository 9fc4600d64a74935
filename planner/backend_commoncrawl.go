package planner

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"assay/corpus"
	"assay/fetch"
)

// commoncrawl finds what Common Crawl has captured of an address. A query is an address, not words. Its
// captures are documents by the places of their records.
var commoncrawl = Backend{
	Name:      "commoncrawl",
	Version:   1,
	Doc:       "captures of one address in the newest three crawls of Common Crawl, newest first; its dates are when a page was captured, and a query is an address",
	Proven:    "captured",
	Reference: "a recorded list of crawls, a page of the index of 2025 and its two refusals",
	Access:    &Access{Base: commoncrawl0},
	Dates:     true,
	Search:    commoncrawlSearch,

	Document:        commoncrawlDocument,
	DocumentVersion: 2,
}

const (
	commoncrawlName = "commoncrawl"
	commoncrawl0    = "https://index.commoncrawl.org"
	commoncrawlData = "https://data.commoncrawl.org"
	crawlsAsked     = 3 // of one search: each is a request, and the index is one server
	largestRecord   = 8 << 20
)

// FlagCommonCrawl marks a document that was read from a capture of Common Crawl's.
const FlagCommonCrawl = "read_from_common_crawl"

// A crawl is one of the collections.
type crawl struct {
	ID   string `json:"id"`
	From string `json:"from"` // 2006-01-02T15:04:05, UTC; missing of the oldest
	To   string `json:"to"`
}

// A capturedPage is one line of the index.
type capturedPage struct {
	Timestamp string `json:"timestamp"`
	URL       string `json:"url"`
	Status    string `json:"status"`
	Filename  string `json:"filename"`
	Offset    string `json:"offset"`
	Length    string `json:"length"`
}

// crawlsEngine reads the list of crawls.
var crawlsEngine = engine{
	name: commoncrawlName, title: "Common Crawl", open: true, gap: time.Second,
	read: func(body []byte) (page, error) {
		var crawls []crawl
		if err := readJSON(body, &crawls); err != nil {
			return page{}, err
		}
		if len(crawls) == 0 || crawls[0].ID == "" {
			return page{}, errors.New("it names no crawls")
		}
		return page{}, nil
	},
}

// commoncrawlEngine reads the index of one crawl. That there is nothing is said with status 404.
var commoncrawlEngine = engine{
	name: commoncrawlName, title: "Common Crawl", open: true, gap: time.Second,
	speaks: func(r fetch.Reply) bool {
		return r.Status == http.StatusNotFound && strings.HasPrefix(wordsOf(r.Body), "No Captures found")
	},
	read: func(body []byte) (page, error) {
		if strings.HasPrefix(wordsOf(body), "No Captures found") {
			return page{}, nil
		}
		var p page
		for line := range bytes.Lines(bytes.TrimSpace(body)) {
			var c capturedPage
			if err := readJSON(line, &c); err != nil {
				return page{}, err
			}
			at, err := time.Parse("20060102150405", c.Timestamp)
			id := c.id()
			if err != nil || c.URL == "" || !recordPlace.MatchString(id) {
				return page{}, errors.New("a capture lacks its time, address or place")
			}
			if c.Status == "200" { // a capture of a redirect or a refusal is no page
				p.results = append(p.results, Result{DocumentID: id, URL: corpus.CanonicalURL(c.URL), Seen: at.Format(time.RFC3339)})
			}
		}
		if p.results == nil && len(bytes.TrimSpace(body)) == 0 {
			return page{}, errors.New("the reply is empty")
		}
		return p, nil
	},
}

func (c capturedPage) id() string {
	return commoncrawlName + ":" + c.Offset + "+" + c.Length + ":" + c.Filename
}

// recordPlace is a document's id: offset and length of the record, and the file it is in.
var recordPlace = regexp.MustCompile(`^commoncrawl:([0-9]{1,15})\+([0-9]{1,10}):(crawl-data/[A-Za-z0-9._/-]+\.warc\.gz)$`)

// commoncrawlSearch asks the newest crawls within the query's days, one after the other.
func commoncrawlSearch(ctx context.Context, env Env, q Query) ([]Result, error) {
	asked := fmt.Sprintf("captures of %q", q.Text)
	if corpus.Host(q.Text) == "" || !strings.HasPrefix(q.Text, "http") {
		return nil, &APIError{API: commoncrawlEngine.title, Asked: asked, Reason: ReasonNotConfigured, Detail: "it is asked for captures of an address, and this is none: choose another recipe.planner.backend to search for words"}
	}
	at, err := env.access(commoncrawlName, commoncrawlEngine.title, asked)
	if err != nil {
		return nil, err
	}
	call, err := crawlsEngine.call(env, at, q, "/collinfo.json", nil)
	if err != nil {
		return nil, err
	}
	reply, err := crawlsEngine.ask(ctx, env, call, "the list of crawls")
	if err != nil {
		return nil, err
	}
	var crawls []crawl
	if err := json.Unmarshal(reply.Body, &crawls); err != nil {
		return nil, err // unreachable: ask has read it
	}
	var out []Result
	n := 0
	for _, c := range crawls {
		if n == crawlsAsked || len(out) >= q.K {
			break
		}
		if c.From == "" || q.To != "" && c.From[:min(len(c.From), 10)] > q.To || q.From != "" && c.To != "" && c.To[:min(len(c.To), 10)] < q.From {
			continue
		}
		n++
		call, err := commoncrawlEngine.call(env, at, q, "/"+c.ID+"-index?"+query("url", q.Text, "output", "json", "filter", "=status:200"), nil)
		if err != nil {
			return nil, err
		}
		reply, err := commoncrawlEngine.ask(ctx, env, call, asked)
		if err != nil {
			return nil, err
		}
		found, err := commoncrawlEngine.read(reply.Body)
		if err != nil {
			return nil, err // unreachable: ask has read it
		}
		for i := len(found.results) - 1; i >= 0; i-- { // the index has the oldest first
			r := found.results[i]
			day := r.Seen[:10]
			if len(out) < q.K && (q.From == "" || day >= q.From) && (q.To == "" || day <= q.To) {
				out = append(out, r)
			}
		}
	}
	return out, nil
}

// commoncrawlDocument reads the page of a capture, by the place of its record.
func commoncrawlDocument(ctx context.Context, env Env, id string, _ []string) (corpus.Document, error) {
	asked := "capture " + id
	place := recordPlace.FindStringSubmatch(id)
	if place == nil {
		return corpus.Document{}, &APIError{API: commoncrawlEngine.title, Asked: asked, Reason: ReasonBadRequest, Detail: "its id is not like commoncrawl:120+3400:crawl-data/....warc.gz"}
	}
	at, err := env.access(commoncrawlName, commoncrawlEngine.title, asked)
	if err != nil {
		return corpus.Document{}, err
	}
	if at.Base == commoncrawl0 {
		at.Base = commoncrawlData
	}
	from, _ := strconv.ParseInt(place[1], 10, 64)
	length, _ := strconv.ParseInt(place[2], 10, 64) // both are digits
	if length < 1 || length > largestRecord {
		return corpus.Document{}, corpus.Exclude(fetch.ReasonTooLarge, fmt.Sprintf("a record of %d bytes", length))
	}
	e := engine{name: commoncrawlName, title: commoncrawlEngine.title, open: true, gap: time.Second,
		speaks: func(r fetch.Reply) bool { return r.Status == http.StatusPartialContent },
		read: func(body []byte) (page, error) {
			_, err := fetch.RecordPage(body)
			return page{}, err
		},
		hear: func(r fetch.Reply) fault {
			if r.Status == http.StatusOK {
				return fault{reason: ReasonBadReply, detail: "it gave the whole file where a part was asked for"}
			}
			return fault{}
		},
	}
	call, err := e.call(env, at, Query{}, "/"+place[3], nil)
	if err != nil {
		return corpus.Document{}, err
	}
	call.Range, call.Accept = fmt.Sprintf("bytes=%d-%d", from, from+length-1), "*/*"
	reply, err := e.ask(ctx, env, call, asked)
	if err != nil {
		return corpus.Document{}, err
	}
	p, err := fetch.RecordPage(reply.Body)
	if err != nil {
		return corpus.Document{}, err // unreachable: ask has read it
	}
	if wall := p.Wall(); wall != "" {
		return corpus.Document{}, corpus.Exclude(fetch.ReasonBlocked, "the capture is a "+wall+" page")
	}
	d, err := PageDocument(p)
	if err != nil {
		return corpus.Document{}, err
	}
	d.ID, d.Flags = id, corpus.AddFlag(d.Flags, FlagCommonCrawl)
	d.Via, d.CapturedAt = corpus.ViaCommonCrawl, d.RetrievedAt
	return d.Seal(), nil
}
