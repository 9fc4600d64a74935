package planner

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"assay/fetch"
)

func TestWayback(t *testing.T) {
	o := newOutside(t, nil)
	o.serve = func(rw http.ResponseWriter, r *http.Request) {
		switch address := r.URL.Query().Get("url"); {
		case strings.Contains(address, "excluded"):
			reply(rw, 403, "org.archive.wayback.exception.AdministrativeAccessControlException: Blocked Site Error", "Content-Type", "text/plain")
		case strings.Contains(address, "busy"):
			reply(rw, 429, "slow down", "Content-Type", "text/html")
		case strings.Contains(address, "never"):
			reply(rw, 200, `[]`)
		default:
			reply(rw, 200, `[["urlkey", "timestamp", "original", "mimetype", "statuscode", "digest", "length"],
				["example,a)/", "20240102030405", "http://a.example/", "text/html", "200", "X", "9"],
				["example,a)/", "20250102030405", "http://a.example/", "warc/revisit", "-", "X", "9"],
				["example,a)/", "20260102030405", "https://a.example/", "text/html", "200", "Y", "9"]]`)
		}
	}
	env := o.engines(fetch.Live)
	got, err := wayback.Find(t.Context(), env, Query{Text: "https://a.example/", K: 5, To: "2026-02-01"})
	if err != nil || len(got) != 2 || got[0].URL != "https://web.archive.org/web/20260102030405id_/https://a.example/" || got[0].Seen != "2026-01-02T03:04:05Z" || got[0].Published != "" {
		t.Errorf("%+v, %v", got, err)
	}
	if !strings.HasSuffix(o.visits[0], "limit=-5&to=20260201235959") {
		t.Errorf("asked %s", o.visits[0])
	}
	if got, err = wayback.Find(t.Context(), env, Query{Text: "https://never.example/", K: 5}); err != nil || len(got) != 0 {
		t.Errorf("never captured: %v, %v", got, err)
	}
	before := len(o.at)
	_, err = wayback.Find(t.Context(), env, Query{Text: "https://busy.example/", K: 5})
	if wantError(t, err, ReasonRateLimit); o.at[before+1].Sub(o.at[before]) < time.Minute {
		t.Errorf("asked at %v", o.at[before:])
	}
	_, err = wayback.Find(t.Context(), env, Query{Text: "https://excluded.example/", K: 5})
	if e := wantError(t, err, ReasonForbidden); e.StopsRun() || e.FailureClass() != "permanent" {
		t.Error(err)
	}
	_, err = wayback.Find(t.Context(), env, Query{Text: "harbor tolls", K: 5})
	wantError(t, err, ReasonNotConfigured)
}

// Recorded lists of captures are read as their index says; an excluded site is a refusal.
func TestRealWayback(t *testing.T) {
	for _, tp := range tapes(t, "wayback-cdx-json") {
		var want struct{ Rows int }
		tp.expect(t, &want)
		rows := strings.Count(tp.body, `"200"`)
		o := newOutside(t, func(rw http.ResponseWriter, _ *http.Request) { reply(rw, 200, tp.body) })
		got, err := wayback.Find(t.Context(), o.engines(fetch.Live), Query{Text: "http://recorded.example/", K: 100})
		if err != nil || len(got) != rows || rows > want.Rows || rows == 0 {
			t.Errorf("%s: %d captures, want %d of %d rows: %v", tp.file, len(got), rows, want.Rows, err)
		}
	}
	for _, tp := range tapes(t, "wayback-error") {
		o := newOutside(t, func(rw http.ResponseWriter, _ *http.Request) { reply(rw, 403, tp.body, "Content-Type", "text/plain") })
		_, err := wayback.Find(t.Context(), o.engines(fetch.Live), Query{Text: "http://recorded.example/", K: 100})
		wantError(t, err, ReasonForbidden)
	}
}
