package scrapers

import (
	"fmt"
	"strings"
	"time"

	"assay/corpus"
	"assay/fetch"
)

// noaa reads the alerts of the National Weather Service as api.weather.gov gives them. Ids changed from
// short ones (2019) to urn:oid; an alert whose times cannot be read is kept without a date.
var noaa = Site{
	Name:      "noaa",
	Version:   1,
	Doc:       "National Weather Service: active alerts, one document each",
	Host:      "api.weather.gov",
	Proven:    "captured",
	Reference: "captures of a zone's alerts (2019) and of the national list (2026, times altered by whoever kept it)",
	Delay:     time.Second,
	Recognise: func(base, address string) bool {
		path, _, ok := pathOf(base, address, noaaBase)
		return ok && strings.HasPrefix(path, "/alerts")
	},
	Start: func(base string, _ []string) []string {
		return []string{mirrored(base, noaaBase, "/alerts/active?status=actual")}
	},
	Discover: discoverReplies("noaa", func(r response) (int, string, error) {
		list, err := noaaAlerts("discover", r.address, r.body)
		next := ""
		if list.Pagination.Next != "" {
			next = corpus.ResolveURL(r.address, list.Pagination.Next)
		}
		return len(list.Features), next, err
	}),
	Read:     noaaRead,
	Tells:    []string{"title*", "text*", "date", "authors", "tags"},
	Category: corpus.Science,
}

const noaaBase = "https://api.weather.gov"

type noaaList struct {
	Type       string        `json:"type"`
	Features   []noaaFeature `json:"features"`
	Pagination struct {
		Next string `json:"next"`
	} `json:"pagination"`
}

type noaaFeature struct {
	ID         string `json:"id"` // its address
	Type       string `json:"type"`
	Properties struct {
		Address     string `json:"@id"`
		ID          string `json:"id"`
		Area        string `json:"areaDesc"`
		Sent        string `json:"sent"`
		Effective   string `json:"effective"`
		Status      string `json:"status"`
		Severity    string `json:"severity"`
		Event       string `json:"event"`
		Sender      string `json:"senderName"`
		Headline    string `json:"headline"`
		Description string `json:"description"`
		Instruction string `json:"instruction"`
	} `json:"properties"`
}

func noaaAlerts(doing, address string, body []byte) (noaaList, error) {
	var list noaaList
	if err := decodeReply(doing, address, body, &list); err != nil {
		return list, err
	}
	switch list.Type {
	case "FeatureCollection":
		return list, nil
	case "Feature": // an alert at its own address
		var one noaaFeature
		err := decodeReply(doing, address, body, &one)
		list.Features = []noaaFeature{one}
		return list, err
	}
	return list, noRecords(doing, address, "a GeoJSON feature", body)
}

func noaaRead(p *fetch.Page) ([]corpus.Document, error) {
	list, err := noaaAlerts("read", p.Final, p.Bytes())
	if err != nil {
		return nil, err
	}
	out := make([]corpus.Document, 0, len(list.Features))
	for i, f := range list.Features {
		if f.Properties.Event == "" && f.Properties.Headline == "" {
			return nil, noRecords("read", p.Final, fmt.Sprintf("properties.event or properties.headline in feature %d", i), p.Bytes())
		}
		out = append(out, noaaDocument(p, f))
	}
	return out, nil
}

func noaaDocument(p *fetch.Page, f noaaFeature) corpus.Document {
	a := f.Properties
	address := f.ID
	if !strings.Contains(address, "://") {
		address = a.Address
	}
	if !strings.Contains(address, "://") {
		address = noaaBase + "/alerts/" + a.ID
	}
	title := a.Headline
	if title == "" {
		title = joined(a.Event, sentence("for %s", a.Area))
	}
	d := record(p, address, title,
		sentence("%s issued this alert: %s.", a.Sender, a.Event), unwrapped(a.Description), unwrapped(a.Instruction), sentence("Area: %s.", a.Area))
	d.Authors, d.Tags = distinct([]string{a.Sender}), distinct([]string{a.Event, a.Severity})
	if a.Status == "Test" || a.Status == "Exercise" {
		d.Flags = corpus.AddFlag(d.Flags, corpus.FlagSiteTest)
	}
	return dated(d, distinct([]string{a.Sent, a.Effective})).Seal()
}
