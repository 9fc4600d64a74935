package assay

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay/corpus"
	"assay/fetch"
	"assay/scrapers"
)

const versionsConfig = `recipe:
  discover: [listing, stored]
  sites: [{name: politifact, base: "http://one.example"}, {name: mirror, base: "http://two.example"}]
  speakers: []
  dates: {from: "", to: ""}
  planner: {variants: 0}
`

// versionsPage is a claim page of an invented fact-checker.
func versionsPage(claim string) string {
	return `<!DOCTYPE html><html><head><title>Fact-check</title></head><body><article class="m-statement m-statement--is-xlarge">
<a href="/personalities/mara-quill/" class="m-statement__name">Mara Quill</a><div class="m-statement__desc">stated on March 9, 2023 in a speech:</div>
<div class="m-statement__quote">` + claim + `</div><div class="m-statement__meter"><picture><img class="c-image__original" alt="true"></picture></div></article>
<h2 class="c-title">What the figures say</h2><p>We asked for the figures and counted them ourselves.</p></body></html>`
}

// A new version of a site's code parses the pages of that site again; what lies below runs again only
// where it reads something else now.
func TestBumpedVersionRerunsThatSiteOnly(t *testing.T) {
	all := scrapers.All
	t.Cleanup(func() { scrapers.All = all })
	site, err := scrapers.SiteNamed("politifact")
	if err != nil {
		t.Fatal(err)
	}
	mirror := site
	mirror.Name = "mirror"
	use := func(s scrapers.Site) { scrapers.All = []scrapers.Site{s, site} }
	use(mirror)

	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(ConfigName, versionsConfig)
	var table, posts strings.Builder
	for _, host := range []string{"one.example", "two.example"} {
		var items string
		for i := range 3 {
			place := []string{"Averil", "Brenwick", "Holm"}[i]
			path := fmt.Sprintf("/factchecks/2023/mar/1%d/mara-quill/wells-of-%s/", i, strings.ToLower(place))
			items += `<article class="m-statement"><a class="m-statement__name" href="/personalities/mara-quill/">Mara Quill</a><div class="m-statement__quote"><a href="` + path + `">A claim</a></div></article>`
			name := host + strings.ReplaceAll(path, "/", "_") + ".html"
			write("pages/"+name, versionsPage(fmt.Sprintf("The village of %s near %s has %d wells.", place, host[:3], i+2)))
			fmt.Fprintf(&table, "%s\thttp://%s%s\n", name, host, path)
			fmt.Fprintf(&posts, `{"id":"%s%d","title":"Wells of %s","selftext":"I counted the wells in the village of %s near %s on Sunday, there were %d of them.","created_utc":1678406400,"subreddit":"wells"}`+"\n", host[:3], i, place, place, host[:3], i+2)
		}
		write("pages/"+host+".html", `<html><head><title>Latest</title></head><body><div class="o-listicle">`+items+`</div></body></html>`)
		fmt.Fprintf(&table, "%s.html\thttp://%s/factchecks/list/?page=1&category=truth-o-meter\n", host, host)
	}
	write("pages/urls.tsv", table.String())
	write("posts.ndjson", posts.String())

	// run opens the workspace, does something with it, builds, and says how many items of a stage ran.
	run := func(before func(*Workspace)) (map[string]int, BuildReport) {
		t.Helper()
		w, err := Open(t.Context(), dir, OpenOptions{Replay: true})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		if before != nil {
			before(w)
		}
		rep, err := w.Build(t.Context(), BuildOptions{})
		if err != nil {
			t.Fatal(err)
		}
		ran := map[string]int{}
		for _, s := range rep.Pipeline.Stages {
			if s.Ran > 0 {
				ran[s.Name] = s.Ran
			}
		}
		return ran, rep
	}
	ran, first := run(func(w *Workspace) {
		for kind, path := range map[string]string{"dir": "pages", "reddit": "posts.ndjson"} {
			if _, err := w.Import(t.Context(), kind, filepath.Join(dir, path), ImportOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	})
	if first.Release.Counts["claims"] != 6 || first.Release.Counts["pairs"] == 0 {
		t.Fatalf("release %v, ran %v", first.Release.Counts, ran)
	}
	if again, _ := run(nil); len(again) != 0 {
		t.Fatalf("a second build ran %v", again)
	}

	// The same answers under a new version: the wave stops at once.
	bumped := mirror
	bumped.Version++
	use(bumped)
	ran, second := run(nil)
	if d := cmp.Diff(map[string]int{"discover/mirror": 1, "parse/mirror": 3}, ran); d != "" {
		t.Errorf("a new version ran %s", d)
	}
	if d := cmp.Diff(first.Labels, second.Labels); d != "" {
		t.Errorf("labels %s", d)
	}

	// A new version that reads one page otherwise: one claim is searched and labelled anew.
	bumped.Version++
	parse := bumped.Parse
	bumped.Parse = func(p *fetch.Page) ([]corpus.Claim, error) {
		claims, err := parse(p)
		for i := range claims {
			if strings.Contains(claims[i].Text, "Holm") {
				claims[i].Text = strings.Replace(claims[i].Text, "wells", "deep wells", 1)
				claims[i].ID = corpus.ClaimID(claims[i].Text, claims[i].Speaker, claims[i].ReviewURL, "")
			}
		}
		return claims, err
	}
	use(bumped)
	ran, third := run(nil)
	labels := ran["label/raguard"]
	delete(ran, "label/raguard")
	if d := cmp.Diff(map[string]int{"discover/mirror": 1, "parse/mirror": 3, "plan/raguard": 1, "zero/raguard": 1, "cluster/claims": 1}, ran); d != "" || labels == 0 || labels > 10 {
		t.Errorf("a new version that reads one page otherwise ran %s, and %d labels", d, labels)
	}
	if third.Release.ID == second.Release.ID || third.Release.Counts["claims"] != 6 {
		t.Errorf("release %+v", third.Release)
	}

	// The other site's version concerns the other site.
	site.Version++
	use(bumped)
	if ran, _ = run(nil); !slices.Equal(sortedKeys(ran), []string{"discover/politifact", "parse/politifact"}) {
		t.Errorf("a new version of the other site ran %v", ran)
	}
}

// Every pass over the stored items sees the version that they ran with, so that status tells what a
// new program would run before it does.
func TestStatusTellsOfANewVersion(t *testing.T) {
	all := scrapers.All
	t.Cleanup(func() { scrapers.All = all })
	dir := t.TempDir()
	for name, text := range map[string]string{
		ConfigName:       "recipe:\n  discover: [stored]\n  speakers: []\n  evidence: []\n",
		"pages/a.html":   versionsPage("The village of Averil has 2 wells."),
		"pages/urls.tsv": "a.html\thttps://www.politifact.com/factchecks/2023/mar/11/mara-quill/wells/\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	w, err := Open(t.Context(), dir, OpenOptions{Replay: true})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if _, err := w.Import(t.Context(), "dir", filepath.Join(dir, "pages"), ImportOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Build(t.Context(), BuildOptions{}); err != nil {
		t.Fatal(err)
	}
	reasons := func(ctx context.Context) map[string]int {
		s, err := w.Status(ctx)
		if err != nil {
			t.Fatal(err)
		}
		out := map[string]int{}
		for _, stage := range s.Stages {
			for reason, n := range stage.Reasons {
				out[stage.Name+" "+string(reason)] = n
			}
		}
		return out
	}
	if d := cmp.Diff(map[string]int{"parse/politifact fresh": 1, "cluster/claims fresh": 1}, reasons(t.Context())); d != "" {
		t.Errorf("status after a build: %s", d)
	}
	scrapers.All = slices.Clone(all)
	for i := range scrapers.All {
		scrapers.All[i].Version++
	}
	if d := cmp.Diff(map[string]int{"parse/politifact version-changed": 1, "cluster/claims fresh": 1}, reasons(t.Context())); d != "" {
		t.Errorf("status under a new version: %s", d)
	}
}
