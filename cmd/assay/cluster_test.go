package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay"
)

// One statement checked thrice, by two pages and a table, is a cluster of three claims that keep their verdicts;
// the same statement with another number stays out of it.
func TestClustersAndConflicts(t *testing.T) {
	w := newWeb(t)
	checks := []factCheck{
		{Path: "2023/mar/01/mara-quill/lakeford-toll/", Claim: "The toll of the Lakeford bridge doubled in 2022.", Rating: "true"},
		{Path: "2023/mar/02/tom-ford/lakeford-toll-again/", Claim: "Says the toll of the Lakeford Bridge “doubled” in 2022.", Rating: "mostly-true"},
		{Path: "2023/mar/03/mara-quill/lakeford-toll-2021/", Claim: "The toll of the Lakeford bridge doubled in 2021.", Rating: "false"},
		{Path: "2023/mar/04/mara-quill/wells/", Claim: "The village of Averil has seven wells, more than any other.", Rating: "true"},
		{Path: "2023/mar/05/tom-ford/wells-again/", Claim: "The village of Averil has 7 wells, more than any other.", Rating: "half-true"},
	}
	w.checks("check.example", checks...)
	l := newSite(t, w, nil, setup{"recipe.discover": "[listing, imported]"})
	if out, errs := l.must(1, "ls", "conflicts"); !strings.Contains(errs, "assay build --until cluster") {
		t.Errorf("conflicts before a build: %s%s", out, errs)
	}
	l.must(0, "import", "claims-table", l.write(l.dir+"/table.csv", "claim,verdict\nThe toll of the Lakeford bridge has doubled in 2022.,false\n"))
	first := l.build(0)

	clusters := map[string][]string{}
	for _, c := range released(t, first.Release.Dir, "claims") {
		if id := c["cluster"].(string); id != "" {
			clusters[id] = append(clusters[id], c["id"].(string))
		}
	}
	if len(clusters) != 2 || first.Release.Counts["claims"] != 6 || first.Release.Counts["clusters"] != 2 || first.Release.Counts["conflicts"] != 2 {
		t.Errorf("clusters %v, counts %v", clusters, first.Release.Counts)
	}
	for id, members := range clusters {
		if id != members[0] {
			t.Errorf("cluster %s is not named by the smallest of %v", id, members)
		}
	}

	conflicts := func(args ...string) (list []assay.Listed) {
		t.Helper()
		out, _ := l.must(0, append([]string{"ls", "--json"}, args...)...)
		if err := json.Unmarshal([]byte(out), &list); err != nil {
			t.Fatal(err)
		}
		return list
	}
	type told struct{ Kind, Verdicts, Speakers, Addresses string }
	var got []told
	for _, c := range conflicts("conflicts") {
		one := told{Kind: c.Reason}
		for _, r := range c.Claims {
			one.Verdicts += r.Verdict6 + " "
			one.Speakers += r.Speaker + " "
			one.Addresses += r.ReviewURL + " "
			if r.ID == "" || r.Text == "" || r.Source == "" || r.ReviewURL != "" && (r.ReviewDate != "2023-03-14" || r.StatedDate != "2023-03-09") {
				t.Errorf("review %+v lacks something", r)
			}
		}
		got = append(got, one)
	}
	sortBy := func(s string) string { f := strings.Fields(s); slices.Sort(f); return strings.Join(f, " ") }
	for i := range got {
		got[i].Verdicts, got[i].Speakers, got[i].Addresses = sortBy(got[i].Verdicts), sortBy(got[i].Speakers), sortBy(got[i].Addresses)
	}
	want := []told{
		{"binary", "false mostly_true true", "mara-quill tom-ford", "http://" + checks[0].address("check.example") + " http://" + checks[1].address("check.example")},
		{"six_way", "half_true true", "mara-quill tom-ford", "http://" + checks[3].address("check.example") + " http://" + checks[4].address("check.example")},
	}
	if len(got) == 2 && got[0].Kind > got[1].Kind {
		got[0], got[1] = got[1], got[0]
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("conflicts (-want +got):\n%s", d)
	}
	if n := len(conflicts("conflicts", "--reason", "binary")); n != 1 {
		t.Errorf("%d binary conflicts", n)
	}
	if n := len(conflicts("clusters")); n != 2 {
		t.Errorf("%d clusters", n)
	}
	text, _ := l.must(0, "ls", "conflicts")
	for _, part := range []string{"true (mostly_true, mostly-true) 2023-03-14, tom-ford:", "false (false, false) , nobody named:", "http://" + checks[1].address("check.example")} {
		if !strings.Contains(strings.Join(strings.Fields(text), " "), strings.Join(strings.Fields(part), " ")) {
			t.Errorf("ls conflicts does not show %q:\n%s", part, text)
		}
	}

	second := l.build(0)
	if second.Pipeline.Ran != 0 || second.Release.ID != first.Release.ID {
		t.Errorf("a second build ran %v", second.ranStages())
	}
	// Where both reviews come to agree, there is a cluster and no conflict.
	checks[4].Rating = "true"
	again := newWeb(t)
	again.checks("check.example", checks...)
	m := newSite(t, again, nil, nil)
	m.build(0, "--until", "cluster")
	if out, _ := m.must(0, "ls", "conflicts"); strings.Contains(out, "Averil") {
		t.Errorf("conflicts after a corrected verdict:\n%s", out)
	}
	// A release without a cluster stage before it makes its clusters itself.
	n := newSite(t, w, nil, nil)
	n.build(0, "--until", "label")
	out, _ := n.must(0, "release", "--json")
	if !strings.Contains(out, `"clusters": 2`) {
		t.Errorf("release: %s", out)
	}
}
