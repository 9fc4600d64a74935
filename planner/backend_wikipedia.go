package planner

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"assay/corpus"
	"assay/fetch"
)

// wikipedia searches an encyclopedia, whose articles are documents by their page ids.
var wikipedia = Backend{
	Name:      "wikipedia",
	Version:   2,
	Doc:       "articles of Wikipedia in recipe.planner.language, under CC BY-SA 4.0, with their revision; pages that tell meanings apart are dropped, and English titles lead to other languages by Wikidata",
	Proven:    "captured",
	Reference: "recorded replies of MediaWiki's interface, of both its formats, and of Wikidata's",
	Access:    &Access{Base: "https://wikipedia.org"},
	Search:    wikipediaSearch,

	Document:        wikipediaDocument,
	DocumentVersion: 1,
}

// DropDisambiguation is why a page that tells meanings of a word apart is no evidence.
const DropDisambiguation = "disambiguation"

const (
	wikiName    = "wikipedia"
	wikiLicence = "CC BY-SA 4.0"
	wikiBatch   = 50                     // titles or ids of one request
	wikiGap     = 300 * time.Millisecond // 200 requests a minute for who says who asks
)

// ValidLanguage reports whether a text can be the language of an encyclopedia.
func ValidLanguage(code string) bool { return wikiLanguage.MatchString(code) }

var wikiLanguage = regexp.MustCompile(`^[a-z]{2,3}(-[a-z]{2,10}){0,2}$`)

var wikiEngine = engine{
	name: wikiName, title: "Wikipedia", open: true, gap: wikiGap,
	read: func(body []byte) (page, error) {
		_, err := readWiki(body)
		return page{}, err
	},
	// Errors come with a good status.
	hear: func(r fetch.Reply) fault {
		got, err := readWiki(r.Body)
		if err != nil || got.Error == nil {
			return fault{}
		}
		f := fault{reason: ReasonBadRequest, detail: got.Error.Code + ": " + got.Error.Info}
		switch code := got.Error.Code; {
		case code == "maxlag", code == "ratelimited":
			f.reason = ReasonRateLimit
		case code == "readonly", strings.HasPrefix(code, "internal_api_error"), strings.HasPrefix(code, "cirrussearch"), code == "search-error":
			f.reason = ReasonUnavailable
		}
		return f
	},
}

// A wikiReply is a reply of MediaWiki's action=query, in format version 1 or 2.
type wikiReply struct {
	Error *struct {
		Code string `json:"code"`
		Info string `json:"info"`
	} `json:"error"`
	Batch    json.RawMessage            `json:"batchcomplete"`
	Continue map[string]json.RawMessage `json:"continue"`
	Query    *struct {
		Normalized []wikiMove      `json:"normalized"`
		Redirects  []wikiMove      `json:"redirects"`
		Pages      json.RawMessage `json:"pages"`
		Search     []struct {
			ID      int    `json:"pageid"`
			Title   string `json:"title"`
			Snippet string `json:"snippet"`
		} `json:"search"`
	} `json:"query"`
	pages []wikiArticle
}

// A wikiMove leads from one title to another.
type wikiMove struct {
	From    string `json:"from"`
	To      string `json:"to"`
	Section string `json:"tofragment"`
}

type wikiArticle struct {
	ID         int             `json:"pageid"`
	Namespace  int             `json:"ns"`
	Title      string          `json:"title"`
	Missing    json.RawMessage `json:"missing"`
	Invalid    json.RawMessage `json:"invalid"`
	URL        string          `json:"canonicalurl"`
	Extract    string          `json:"extract"`
	Properties map[string]any  `json:"pageprops"`
	Revisions  []struct {
		ID int       `json:"revid"`
		At time.Time `json:"timestamp"`
	} `json:"revisions"`
}

// there reports whether the page is an article. What is true stands as an empty text in version 1.
func (p wikiArticle) there() bool {
	return p.ID > 0 && p.Namespace == 0 && p.Missing == nil && p.Invalid == nil
}

// ambiguous reports whether the page tells meanings apart: the property is there, and empty.
func (p wikiArticle) ambiguous() bool {
	_, ok := p.Properties["disambiguation"]
	return ok
}

func readWiki(body []byte) (wikiReply, error) {
	var r wikiReply
	if err := readJSON(body, &r); err != nil {
		return r, err
	}
	if r.Error == nil && r.Query == nil && r.Batch == nil {
		return r, errors.New("it is no reply of MediaWiki")
	}
	if r.Query == nil || r.Query.Pages == nil {
		return r, nil
	}
	if json.Unmarshal(r.Query.Pages, &r.pages) == nil {
		return r, nil
	}
	byID := map[string]wikiArticle{} // version 1
	if err := json.Unmarshal(r.Query.Pages, &byID); err != nil {
		return r, fmt.Errorf("its pages cannot be read: %w", err)
	}
	for _, p := range byID {
		r.pages = append(r.pages, p)
	}
	slices.SortFunc(r.pages, func(a, b wikiArticle) int { return a.ID - b.ID })
	return r, nil
}

// A wiki is one language of the encyclopedia.
type wiki struct {
	env      Env
	at       Access
	language string
}

func wikiIn(env Env, language, asked string) (wiki, error) {
	at, err := env.access(wikiName, wikiEngine.title, asked)
	if err == nil && !ValidLanguage(language) {
		err = &APIError{API: wikiEngine.title, Asked: asked, Reason: ReasonBadRequest, Detail: fmt.Sprintf("%q is no language like en", language)}
	}
	if at.Base == wikipedia0 {
		at.Base = "https://" + language + ".wikipedia.org"
	}
	return wiki{env, at, language}, err
}

// wikipedia0 is the address that stands for every language's.
const wikipedia0 = "https://wikipedia.org"

// Requirements of a reply. One that leaves out what was asked for says nothing about what there is.
func wikiPages(r wikiReply, first bool) error {
	if first && len(r.pages) == 0 {
		return errors.New("it says nothing about the pages that were asked for")
	}
	return nil
}

func wikiList(r wikiReply, _ bool) error {
	if r.Query == nil || r.Query.Search == nil {
		return errors.New("it holds no list of what was found")
	}
	return nil
}

// query asks with some parameters, and again with what each reply wants to be continued with, all of it,
// until take is false or nothing is left.
func (w wiki) query(ctx context.Context, asked string, need func(r wikiReply, first bool) error, take func(*fetch.Reply, wikiReply) bool, params ...string) error {
	params = append([]string{"action", "query", "format", "json", "formatversion", "2", "maxlag", "5"}, params...)
	var more []string
	for {
		e, first := wikiEngine, more == nil
		e.read = func(body []byte) (page, error) {
			r, err := readWiki(body)
			if err == nil && r.Error == nil {
				err = need(r, first)
			}
			return page{}, err
		}
		call, err := e.call(w.env, w.at, Query{}, "/w/api.php?"+query(append(slices.Clone(params), more...)...), nil)
		if err != nil {
			return err
		}
		reply, err := e.ask(ctx, w.env, call, asked)
		if err != nil {
			return err
		}
		got, err := readWiki(reply.Body)
		if err != nil {
			return err // unreachable: ask has read it
		}
		if !take(reply, got) || len(got.Continue) == 0 {
			return nil
		}
		before := strings.Join(more, "\n")
		more = nil
		for _, name := range sorted(got.Continue) {
			value := string(got.Continue[name])
			var text string
			if json.Unmarshal(got.Continue[name], &text) == nil {
				value = text
			}
			more = append(more, name, value)
		}
		if strings.Join(more, "\n") == before {
			return &APIError{API: wikiEngine.title, Asked: asked, Reason: ReasonBadReply, Detail: "it goes on with what it went on with before", Status: reply.Status, Tries: reply.Tries}
		}
	}
}

func sorted(m map[string]json.RawMessage) []string {
	var names []string
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// wikipediaSearch finds articles: the one that bears the query as its title or that redirects from it,
// then what the search finds. What the search suggests instead is never taken.
func wikipediaSearch(ctx context.Context, env Env, q Query) ([]Result, error) {
	asked := fmt.Sprintf("articles about %q", q.Text)
	w, err := wikiIn(env, cmp.Or(q.Language, "en"), asked)
	if err != nil {
		return nil, err
	}
	out, err := w.titled(ctx, asked, q.Text)
	if err == nil && len(out) == 0 && w.language != "en" && isTitle(q.Text) {
		var title, thing string
		if title, thing, err = w.titleIn(ctx, asked, q.Text); err == nil && title != "" {
			out, err = w.titled(ctx, asked, title)
			for i := range out {
				out[i].Via = q.Text + " (" + thing + ")"
			}
		}
	}
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for _, r := range out {
		known[r.DocumentID] = true
	}
	var ids []string
	found := map[string]Result{}
	err = w.query(ctx, asked, wikiList, func(_ *fetch.Reply, r wikiReply) bool {
		for _, hit := range r.Query.Search {
			id := strconv.Itoa(hit.ID)
			if doc := w.id(hit.ID); hit.ID > 0 && !known[doc] && len(out)+len(ids) < q.K {
				known[doc] = true
				ids = append(ids, id)
				found[id] = Result{DocumentID: doc, Title: hit.Title, Text: plain(hit.Snippet)}
			}
		}
		return len(out)+len(ids) < q.K && len(r.Query.Search) > 0
	}, "list", "search", "srsearch", q.Text, "srnamespace", "0", "srlimit", fmt.Sprint(min(q.K, wikiBatch)), "srinfo", "totalhits", "srprop", "snippet")
	if err != nil {
		return nil, err
	}
	for batch := range slices.Chunk(ids, wikiBatch) {
		pages := map[int]wikiArticle{}
		err := w.query(ctx, asked, wikiPages, func(_ *fetch.Reply, r wikiReply) bool {
			for _, p := range r.pages {
				pages[p.ID] = joined(pages[p.ID], p)
			}
			return true
		}, "pageids", strings.Join(batch, "|"), "prop", "info|pageprops", "inprop", "url", "ppprop", "disambiguation")
		if err != nil {
			return nil, err
		}
		for _, id := range batch {
			r := found[id]
			n, _ := strconv.Atoi(id) // it was written by Itoa
			if p := pages[n]; p.there() {
				r.URL = p.URL
				if p.ambiguous() {
					r.Drop = DropDisambiguation
				}
				out = append(out, r)
			} // else it vanished since it was indexed
		}
	}
	return out[:min(len(out), q.K)], nil
}

// joined adds what another reply says of a page.
func joined(a, b wikiArticle) wikiArticle {
	if a.Properties == nil {
		a.Properties = b.Properties
	}
	b.Properties = a.Properties
	b.URL, b.Extract = cmp.Or(b.URL, a.URL), cmp.Or(b.Extract, a.Extract)
	if b.Revisions == nil {
		b.Revisions = a.Revisions
	}
	return b
}

// noTitle are characters that no title has.
const noTitle = "#<>[]{}|\n\t"

func isTitle(s string) bool {
	return s != "" && len(s) <= 255 && !strings.ContainsAny(s, noTitle)
}

// titled finds the article with a title, or to which the title redirects.
func (w wiki) titled(ctx context.Context, asked, title string) ([]Result, error) {
	if !isTitle(title) {
		return nil, nil
	}
	var out []Result
	err := w.query(ctx, asked, wikiPages, func(_ *fetch.Reply, r wikiReply) bool {
		for _, p := range r.pages {
			if !p.there() || len(out) > 0 {
				continue
			}
			hit := Result{DocumentID: w.id(p.ID), URL: p.URL, Title: p.Title}
			for _, m := range r.Query.Redirects {
				if m.To == p.Title {
					hit.Via = strings.TrimSuffix(m.From+"#"+m.Section, "#")
				}
			}
			if p.ambiguous() {
				hit.Drop = DropDisambiguation
			}
			out = append(out, hit)
		}
		return true
	}, "titles", title, "redirects", "1", "prop", "info|pageprops", "inprop", "url", "ppprop", "disambiguation")
	return out, err
}

func (w wiki) id(page int) string { return fmt.Sprintf("%s:%s:%d", wikiName, w.language, page) }

// wikipediaDocument reads an article by its id, wikipedia:<language>:<page id>.
func wikipediaDocument(ctx context.Context, env Env, id string, _ []string) (corpus.Document, error) {
	asked := "article " + id
	parts := strings.Split(id, ":")
	if len(parts) != 3 {
		return corpus.Document{}, &APIError{API: wikiEngine.title, Asked: asked, Reason: ReasonBadRequest, Detail: "its id is not like wikipedia:en:8091"}
	}
	w, err := wikiIn(env, parts[1], asked)
	if err != nil {
		return corpus.Document{}, err
	}
	var p wikiArticle
	var at time.Time
	told := false
	err = w.query(ctx, asked, wikiPages, func(reply *fetch.Reply, r wikiReply) bool {
		for _, got := range r.pages {
			if strconv.Itoa(got.ID) == parts[2] {
				p, at, told = joined(p, got), reply.Retrieved, true
			}
		}
		return true
	}, "pageids", parts[2], "prop", "extracts|info|pageprops|revisions", "explaintext", "1", "inprop", "url", "ppprop", "disambiguation", "rvprop", "ids|timestamp")
	switch {
	case err != nil:
		return corpus.Document{}, err
	case !told:
		return corpus.Document{}, &APIError{API: wikiEngine.title, Asked: asked, Reason: ReasonBadReply, Detail: "it says nothing about the article"}
	case !p.there():
		return corpus.Document{}, corpus.Exclude(ReasonGone, "it has no article "+id)
	case p.ambiguous():
		return corpus.Document{}, corpus.Exclude(DropDisambiguation, p.Title)
	}
	d := corpus.Document{
		ID: id, Kind: corpus.KindPage, Title: p.Title, Text: strings.TrimSpace(p.Extract), URL: p.URL,
		Source: w.language + ".wikipedia.org", Licence: wikiLicence, BodyStatus: BodyStatusOf("", p.Extract, ""),
	}
	if len(p.Revisions) > 0 {
		d.Revision, d.PublishedAt = strconv.Itoa(p.Revisions[0].ID), p.Revisions[0].At.UTC().Format(time.RFC3339)
	}
	return stamped(d, at).Seal(), nil
}
