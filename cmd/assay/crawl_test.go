package main

import (
	"net/http"
	"testing"
)

// A page that is reached through redirects is one claim and one document, whatever was asked first; a
// redirect that leads back to itself is one failure and ends.
func TestHD04RedirectsThroughTheCommands(t *testing.T) {
	t.Parallel()
	w := newWeb(t)
	list := wells(2)
	final, other := list[0], list[1]
	w.checks("check.example", final, other)
	old := factCheck{Path: "2023/jan/01/mara-quill/old/"}
	a, b, loop := factCheck{Path: "2023/jan/02/mara-quill/a/"}, factCheck{Path: "2023/jan/03/mara-quill/b/"}, factCheck{Path: "2023/jan/04/mara-quill/loop/"}
	w.on(old.address("check.example"), leads(http.StatusMovedPermanently, "/factchecks/"+final.Path))
	w.on(a.address("check.example"), leads(http.StatusFound, "/factchecks/"+b.Path))
	w.on(b.address("check.example"), leads(http.StatusFound, "/factchecks/"+a.Path))
	w.on("check.example/factchecks/list/", shows(listing("", hrefs(loop, a, old, final, other)...)))
	l := newSite(t, w, nil, nil)
	r := l.build(3)
	t.Log(r.Release.Counts, r.Pipeline)
	t.Logf("%+v", l.ls("parse"))
	t.Logf("%+v", l.show(column(t, r.Release.Dir, "claims", "id")[0]))
}
