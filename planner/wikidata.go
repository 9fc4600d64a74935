package planner

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"assay/fetch"
)

// Wikidata knows which articles of which encyclopedias are about one thing. A statement in English finds
// the article of another language by it, as a redirect would lead to it, and by the title alone: what is
// merely like it is never taken.

const wikidata0 = "https://www.wikidata.org"

// An entity is what we read of a thing of Wikidata's.
type entity struct {
	ID      string          `json:"id"`
	Missing json.RawMessage `json:"missing"` // there, and empty, for one that is deleted or was never made
	Labels  map[string]struct {
		Value string `json:"value"`
	} `json:"labels"`
	Sitelinks map[string]struct {
		Title string `json:"title"`
	} `json:"sitelinks"` // by encyclopedia, e.g. dewiki
}

// readEntities reads a reply of wbgetentities, or an entity's own page of data, which has the same form.
func readEntities(body []byte) (map[string]entity, error) {
	var r struct {
		Error    json.RawMessage            `json:"error"`
		Entities map[string]json.RawMessage `json:"entities"`
	}
	if err := readJSON(body, &r); err != nil {
		return nil, err
	}
	if r.Error == nil && r.Entities == nil {
		return nil, errors.New("it is no reply of Wikidata")
	}
	out := map[string]entity{}
	for id, raw := range r.Entities {
		// What is empty stands as a list, in both formats.
		raw = []byte(strings.NewReplacer(`"labels":[]`, `"labels":{}`, `"sitelinks":[]`, `"sitelinks":{}`).Replace(string(raw)))
		var e entity
		if err := json.Unmarshal(raw, &e); err != nil {
			return nil, err
		}
		out[id] = e
	}
	return out, nil
}

var wikidataEngine = engine{
	name: wikiName, title: "Wikidata", open: true, gap: wikiGap,
	read: func(body []byte) (page, error) {
		_, err := readEntities(body)
		return page{}, err
	},
	hear: func(r fetch.Reply) fault {
		if r.Status != http.StatusOK {
			return fault{}
		}
		return wikiEngine.hear(r) // errors have the same words
	},
}

// titleIn finds the title in this language of what has a title in English, "" where there is none, and
// the id of the thing.
func (w wiki) titleIn(ctx context.Context, asked, title string) (local, id string, err error) {
	at := w.at
	if w.env.Access[wikiName].Base == wikipedia0 {
		at.Base = wikidata0
	}
	site := strings.ReplaceAll(w.language, "-", "_") + "wiki"
	call, err := wikidataEngine.call(w.env, at, Query{}, "/w/api.php?"+query("action", "wbgetentities", "format", "json", "formatversion", "2", "maxlag", "5",
		"sites", "enwiki", "titles", title, "redirects", "yes", "props", "sitelinks", "sitefilter", site), nil)
	if err != nil {
		return "", "", err
	}
	reply, err := wikidataEngine.ask(ctx, w.env, call, asked)
	if err != nil {
		return "", "", err
	}
	entities, err := readEntities(reply.Body)
	if err != nil {
		return "", "", err // unreachable: ask has read it
	}
	for name, e := range entities {
		if link := e.Sitelinks[site]; len(entities) == 1 && e.Missing == nil && link.Title != "" {
			return link.Title, cmp.Or(e.ID, name), nil
		}
	}
	return "", "", nil
}
