package scrapers

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"assay/corpus"
)

// records reads the captures of some kinds with a site and hands over each with its documents. A capture
// without an address gets one of the site's.
func records(t *testing.T, site Site, visit func(c capture, docs []corpus.Document), kinds ...string) {
	t.Helper()
	for _, c := range captures(t, realFolder(t), kinds...) {
		if strings.HasSuffix(c.file, ".gz") {
			zr, err := gzip.NewReader(bytes.NewReader(c.body))
			if err != nil {
				t.Fatal(err)
			}
			if c.body, err = io.ReadAll(zr); err != nil {
				t.Fatal(err)
			}
		}
		if c.url == "" {
			c.url = site.Start("", nil)[0]
		}
		if !site.Recognise("", c.url) {
			t.Errorf("%s: Recognise(%s) = false", c.file, c.url)
		}
		docs, err := site.Read(realPage(t, c.url, c.body))
		if err != nil {
			t.Errorf("%s: %v", c.file, err)
			continue
		}
		ids := map[string]bool{}
		for _, d := range docs {
			if d.ID != corpus.DocumentID(d.URL) || ids[d.ID] || d.Title == "" || d.Text == "" || d.URL != corpus.CanonicalURL(d.URL) {
				t.Errorf("%s: document %+v has no id, address, title or text of its own", c.file, d)
			}
			ids[d.ID] = true
		}
		visit(c, docs)
	}
}

// firstOf returns the expected values of the first record.
func (c capture) first(t *testing.T) map[string]any {
	t.Helper()
	var want map[string]any
	if raw, ok := c.want["first"]; ok {
		if err := json.Unmarshal(raw, &want); err != nil {
			t.Fatal(err)
		}
	}
	return want
}

func TestRealUSGS(t *testing.T) {
	total := 0
	records(t, usgs, func(c capture, docs []corpus.Document) {
		total += len(docs)
		want := c.first(t)
		if c.kind == "usgs-event" {
			want = map[string]any{}
			for k, raw := range c.want {
				var v any
				if err := json.Unmarshal(raw, &v); err != nil {
					t.Fatal(err)
				}
				want[k] = v
			}
		} else if n, _ := c.str("features"); n != fmt.Sprint(len(docs)) {
			t.Errorf("%s: %d documents, want %s", c.file, len(docs), n)
		}
		if len(docs) == 0 {
			return
		}
		d := docs[0]
		if !strings.HasSuffix(d.URL, "/eventpage/"+want["id"].(string)) {
			t.Errorf("%s: address %s, want that of %v", c.file, d.URL, want["id"])
		}
		for _, part := range []string{fmt.Sprintf("magnitude %v ", want["mag"]), want["place"].(string)} {
			if !strings.Contains(d.Text, part) {
				t.Errorf("%s: %q is not in %q", c.file, part, d.Text)
			}
		}
		if at, err := (corpus.DateForm{Unix: 1e6}).Read(fmt.Sprintf("%.0f", want["time"])); err != nil || d.PublishedAt != at.Value {
			t.Errorf("%s: published %s, want %s (%v)", c.file, d.PublishedAt, at.Value, err)
		}
	}, "usgs-geojson", "usgs-event")
	t.Logf("%d events", total)

	for _, c := range captures(t, realFolder(t), "usgs-count") {
		if docs, err := usgs.Read(realPage(t, c.url, c.body)); err == nil || usgs.Recognise("", c.url) {
			t.Errorf("%s: a count is read as %d documents", c.file, len(docs))
		}
	}
}

func TestRealNOAA(t *testing.T) {
	dated, undated := 0, 0
	records(t, noaa, func(c capture, docs []corpus.Document) {
		if n, _ := c.str("features"); n != fmt.Sprint(len(docs)) {
			t.Errorf("%s: %d documents, want %s", c.file, len(docs), n)
		}
		for _, d := range docs {
			if d.PublishedAt != "" {
				dated++
				continue
			}
			undated++
			if !corpus.HasFlag(d.Flags, corpus.FlagDateUnread) {
				t.Errorf("%s: %s has no date and does not say why", c.file, d.URL)
			}
		}
		d, want := docs[0], c.first(t)
		got := map[string]any{"id": d.URL[strings.LastIndex(d.URL, "/")+1:], "event": d.Tags[0], "headline": d.Title, "senderName": d.Authors[0], "severity": d.Tags[1]}
		for field, v := range got {
			if v != want[field] {
				t.Errorf("%s: %s = %v, want %v", c.file, field, v, want[field])
			}
		}
		if c.file == "agencies/nws-alerts-zone-flood-2019.json" && d.PublishedAt != "2019-12-20T21:34:00Z" {
			t.Errorf("%s: published %s", c.file, d.PublishedAt)
		}
	}, "nws-alerts")
	t.Logf("%d alerts with a date, %d without", dated, undated)
}

// answering is a Fetcher of one reply with a status of its own.
type answering struct {
	status int
	header http.Header
	body   []byte
}

func (a answering) HTTP() *http.Client { return &http.Client{Transport: a} }

func (a answering) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: a.status, Header: a.header, Body: io.NopCloser(bytes.NewReader(a.body)), Request: req}, nil
}

func TestRealFDA(t *testing.T) {
	records(t, fda, func(c capture, docs []corpus.Document) {
		if n, _ := c.str("results"); n != fmt.Sprint(len(docs)) {
			t.Errorf("%s: %d documents, want %s", c.file, len(docs), n)
		}
		d, want := docs[0], c.first(t)
		for field, v := range want {
			text := v.(string)
			if field == "recall_initiation_date" {
				text = spokenDay(text)
			}
			if !strings.Contains(d.Text, text) {
				t.Errorf("%s: %s %q is not in %q", c.file, field, text, d.Text)
			}
		}
		l, err := fda.Discover(t.Context(), answering{status: 200, body: c.body}, corpus.CanonicalURL(c.url))
		if err != nil || len(l.Refs) != 1 {
			t.Errorf("%s: listing %+v, %v", c.file, l, err)
		}
		if more := strings.HasSuffix(c.file, "-p1.json"); more != (l.Next != "") {
			t.Errorf("%s: next %q", c.file, l.Next)
		}
	}, "openfda-food", "openfda-drugsfda")
	for _, c := range captures(t, realFolder(t), "openfda-error") {
		want := struct{ Code, Message string }{}
		if err := json.Unmarshal(c.want["error"], &want); err != nil {
			t.Fatal(err)
		}
		status := map[string]int{"NOT_FOUND": 404, "BAD_REQUEST": 400}[want.Code]
		l, err := fda.Discover(t.Context(), answering{status: status, body: c.body}, corpus.CanonicalURL(c.url))
		var refused *StatusError
		switch {
		case status == 404 && (err != nil || len(l.Refs) > 0):
			t.Errorf("%s: %v, %v, want an empty listing", c.file, l, err)
		case status == 400 && (!errors.As(err, &refused) || !strings.Contains(err.Error(), want.Message)):
			t.Errorf("%s: %v, want status 400 and %q", c.file, err, want.Message)
		}
	}
}

func TestRealCPSC(t *testing.T) {
	counts := map[string]int{}
	records(t, cpsc, func(c capture, docs []corpus.Document) {
		counts[c.kind] = len(docs)
		d := docs[0]
		var want struct {
			RecallID                                        int
			RecallNumber, RecallDate, Title, URL            string
			Hazards                                         []string
			Number                                          string   `json:"recall_number"`
			Date                                            string   `json:"recall_date"`
			Address                                         string   `json:"recall_url"`
			Makers                                          []string `json:"manufacturers"`
			No                                              string   `json:"recallNo"`
			RecDate                                         string   `json:"recDate"`
			Maker, Type, Prname, Hazard, Recdate, RecallNoC string
		}
		if err := json.Unmarshal(c.want["first"], &want); err != nil {
			t.Fatal(err)
		}
		values := c.first(t)
		if want.URL != "" && d.URL != corpus.CanonicalURL(want.URL) || want.Address != "" && d.URL != corpus.CanonicalURL(want.Address) {
			t.Errorf("%s: address %s", c.file, d.URL)
		}
		if want.Title != "" && d.Title != want.Title {
			t.Errorf("%s: title %q", c.file, d.Title)
		}
		for _, s := range append(append([]string{}, want.Hazards...), append(want.Makers, want.Maker, want.Type, want.Prname, want.Hazard)...) {
			if s = corpus.Space(s); !strings.Contains(d.Text+strings.Join(d.Tags, " "), strings.TrimSuffix(s, ".")) {
				t.Errorf("%s: %q is not in %q", c.file, s, d.Text)
			}
		}
		for _, key := range []string{"RecallNumber", "recall_number", "recallNo", "RecallNo"} {
			if v, ok := values[key].(string); ok && !strings.Contains(d.Text, "recall "+v+" ") {
				t.Errorf("%s: number %s is not in %q", c.file, v, d.Text)
			}
		}
		for _, key := range []string{"RecallDate", "recall_date", "recDate", "Recdate"} {
			if v, ok := values[key].(string); ok && d.PublishedAt != v[:10] {
				t.Errorf("%s: published %s, want %s", c.file, d.PublishedAt, v)
			}
		}
		for key, n := range map[string]int{"recalls": len(docs), "results": len(docs)} {
			if s, ok := c.str(key); ok && s != fmt.Sprint(n) && c.kind != "cpsc-xml" { // two rows are one recall there
				t.Errorf("%s: %d documents, want %s", c.file, n, s)
			}
		}
	}, "cpsc-recall", "cpsc-xml", "cpsc-csv", "recalls-api")
	t.Logf("documents: %v", counts)
}
