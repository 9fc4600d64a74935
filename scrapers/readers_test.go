package scrapers

import (
	"strings"
	"testing"

	"assay/corpus"
)

// Zone names are no UTC, and a time in a zone that nobody knows is a day (HD-06).
func TestHD06Articles(t *testing.T) {
	for printed, want := range map[string]string{
		"Tue, 03 Jun 2025 21:30:00 EDT": "2025-06-04T01:30:00Z",
		"Wed, 15 Jan 2025 23:10:00 PST": "2025-01-16T07:10:00Z",
		"Sat, 01 Mar 2025 08:00:00 XQT": "2025-03-01",
		"date:now +30 seconds":          "",
	} {
		d := dated(corpus.Document{}, []string{printed})
		if d.PublishedAt != want || corpus.HasFlag(d.Flags, corpus.FlagZoneUnknown) != strings.Contains(printed, "XQT") ||
			corpus.HasFlag(d.Flags, corpus.FlagDateUnread) != (want == "") {
			t.Errorf("%q is kept as %q with flags %q, want %q", printed, d.PublishedAt, d.Flags, want)
		}
	}
}

// A record whose fields have other names is no document without words: the reply is a failure that names it.
func TestRecordsThatSayNothing(t *testing.T) {
	for _, tt := range []struct {
		site Site
		body string
	}{
		{usgs, `{"type":"FeatureCollection","features":[{"type":"Feature","id":"xx1","traits":{"place":"Averil","mag":4.1}}]}`},
		{usgs, `{"type":"Feature","id":"xx1","properties":{"where":"Averil","magnitude":4.1}}`},
		{noaa, `{"type":"FeatureCollection","features":[{"id":"urn:oid:1","traits":{"event":"Flood Watch"}}]}`},
		{noaa, `{"type":"Feature","id":"urn:oid:1","properties":{"kind":"Flood Watch"}}`},
	} {
		address := tt.site.Start("", nil)[0]
		docs, err := tt.site.Read(fixture{"x.reply", address, []byte(tt.body)}.page(t))
		if m := asMarkupError(err); m == nil || docs != nil || !strings.Contains(m.Want, "properties.") || m.URL != address {
			t.Errorf("%s: %s is read as %v, %v", tt.site.Name, tt.body, docs, err)
		}
	}
}
