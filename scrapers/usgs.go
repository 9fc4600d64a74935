package scrapers

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"assay/corpus"
	"assay/fetch"
)

// usgs reads the earthquakes of the US Geological Survey: its GeoJSON summaries, the replies of the
// event service, and single events.
var usgs = Site{
	Name:      "usgs",
	Version:   1,
	Doc:       "US Geological Survey: significant earthquakes of the last month, one document each",
	Host:      "earthquake.usgs.gov",
	Proven:    "captured",
	Reference: "captures of four replies of the event service (none, one, 109 events, a single event); the summaries have the same form by their documentation",
	Delay:     time.Second,
	Recognise: usgsRecognise,
	Start:     func(base string, _ []string) []string { return []string{mirrored(base, usgsBase, usgsSummary)} },
	Discover: discoverReplies("usgs", func(r response) (int, string, error) {
		features, err := usgsFeatures("discover", r.address, r.body)
		return len(features), "", err
	}),
	Read:     usgsRead,
	Tells:    []string{"title*", "text*", "date", "tags*"},
	Category: corpus.Science,
}

const (
	usgsBase    = "https://earthquake.usgs.gov"
	usgsSummary = "/earthquakes/feed/v1.0/summary/significant_month.geojson"
)

func usgsRecognise(base, address string) bool {
	path, query, ok := pathOf(base, address, usgsBase)
	return ok && (strings.HasPrefix(path, "/earthquakes/feed/") && strings.HasSuffix(path, ".geojson") ||
		path == "/fdsnws/event/1/query" && query.Get("format") == "geojson")
}

type usgsFeature struct {
	ID         string `json:"id"`
	Properties struct {
		Mag     *float64    `json:"mag"`
		MagType string      `json:"magType"`
		Place   string      `json:"place"`
		Time    json.Number `json:"time"` // milliseconds since 1970
		URL     string      `json:"url"`
		Felt    *int        `json:"felt"`
		Tsunami int         `json:"tsunami"`
		Alert   string      `json:"alert"`
		Status  string      `json:"status"`
		Type    string      `json:"type"`
		Title   string      `json:"title"`
	} `json:"properties"`
	Geometry struct {
		Coordinates []float64 `json:"coordinates"` // longitude, latitude, depth in km
	} `json:"geometry"`
}

// usgsFeatures reads a collection, which may be empty, or a single event.
func usgsFeatures(doing, address string, body []byte) ([]usgsFeature, error) {
	var all struct {
		Type     string        `json:"type"`
		Features []usgsFeature `json:"features"`
	}
	if err := decodeReply(doing, address, body, &all); err != nil {
		return nil, err
	}
	switch all.Type {
	case "FeatureCollection":
		return all.Features, nil
	case "Feature":
		var one usgsFeature
		err := decodeReply(doing, address, body, &one)
		return []usgsFeature{one}, err
	}
	return nil, noRecords(doing, address, "a GeoJSON feature", body)
}

func usgsRead(p *fetch.Page) ([]corpus.Document, error) {
	features, err := usgsFeatures("read", p.Final, p.Bytes())
	if err != nil {
		return nil, err
	}
	out := make([]corpus.Document, 0, len(features))
	for i, f := range features {
		if f.Properties.Title == "" && f.Properties.Place == "" {
			return nil, noRecords("read", p.Final, fmt.Sprintf("properties.title or properties.place in feature %d", i), p.Bytes())
		}
		out = append(out, usgsDocument(p, f))
	}
	return out, nil
}

func usgsDocument(p *fetch.Page, f usgsFeature) corpus.Document {
	q := f.Properties
	address := q.URL
	if address == "" {
		address = usgsBase + "/earthquakes/eventpage/" + f.ID
	}
	when, err := (corpus.DateForm{Unix: time.Millisecond}).Read(q.Time.String())
	day, clock := "", ""
	if at, perr := time.Parse(time.RFC3339, when.Value); err == nil && perr == nil {
		day, clock = at.Format("January 2, 2006"), at.Format("15:04:05")
	}
	mag, kind := "", q.Type
	if q.Mag != nil {
		mag = strconv.FormatFloat(*q.Mag, 'f', -1, 64)
	}
	if kind == "" {
		kind = "earthquake"
	}
	depth, felt := "", ""
	if c := f.Geometry.Coordinates; len(c) > 2 {
		depth = strconv.FormatFloat(c[2], 'f', -1, 64)
	}
	if q.Felt != nil {
		felt = strconv.Itoa(*q.Felt)
	}
	first := sentence("The US Geological Survey recorded a magnitude %s %s at %s on %s at %s UTC.", mag, kind, q.Place, day, clock)
	if first == "" {
		first = sentence("The US Geological Survey recorded the event %s.", q.Title)
	}
	d := record(p, address, q.Title, joined(first,
		sentence("Its depth was %s kilometers.", depth),
		sentence("People sent the US Geological Survey %s reports that they felt it.", felt),
		sentence("The status of the record is %s.", q.Status)))
	d.Tags = distinct([]string{kind})
	if err == nil {
		d.PublishedAt = when.Value
	} else {
		d.Flags = corpus.AddFlag(d.Flags, corpus.FlagDateUnread)
	}
	return d.Seal()
}
