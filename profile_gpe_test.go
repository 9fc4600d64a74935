package assay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"assay/corpus"
	"assay/output"
	"assay/scrapers"

	"golang.org/x/tools/txtar"
)

// sitePages puts the fixtures of all sites into a folder, as assay import dir takes them.
func sitePages(t *testing.T, dir string) string {
	t.Helper()
	var rows strings.Builder
	put := func(site, file, address string, body []byte) {
		kind := "text/html; charset=utf-8"
		switch start := bytes.TrimSpace(body); {
		case bytes.HasPrefix(start, []byte("{")), bytes.HasPrefix(start, []byte("[")):
			kind = "application/json"
		case bytes.HasPrefix(start, []byte("<?xml")):
			kind = "application/xml"
		}
		name := site + "-" + file
		if err := os.WriteFile(filepath.Join(dir, name), body, 0o644); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&rows, "%s\t%s\t200\t%s\t2026-11-01T00:00:00Z\n", name, address, kind)
	}
	read := func(path string) []byte {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	for _, s := range scrapers.All {
		at := filepath.Join("scrapers", "testdata", s.Name)
		if web, err := txtar.ParseFile(at + ".web"); err == nil {
			for _, f := range web.Files {
				file, address, _ := strings.Cut(f.Name, " ")
				put(s.Name, file, address, f.Data)
			}
			continue
		}
		for line := range strings.Lines(string(read(filepath.Join(at, "pages.tsv")))) {
			if file, address, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok && file != "file" {
				put(s.Name, file, address, read(filepath.Join(at, file)))
			}
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "urls.tsv"), []byte(rows.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Profile gpe takes every source in: each fact-checker gives claims, each newsroom and institution documents; claims of
// the six categories are searched for step by step, and what is released tells of every document where and when.
func TestProfileGPEOverEverySite(t *testing.T) {
	f := newFolder(t, t.TempDir())
	f.write(ConfigName, fmt.Sprintf(`recipe:
  profile: gpe
  discover: [stored]
  sites: [%s]
  speakers: []
  dates: {from: "", to: ""}
  judge: gpe
  extract: {extractor: claims}
  category_by: [rule, model]
  planner: {agent: {engines: {"*": local}, tools: [web_support, web_refute, factcheck, news, calc, decompose, stop]}}
`, strings.Join(names(scrapers.All, func(s scrapers.Site) string { return s.Name }), ", ")))
	f.load("dir", sitePages(t, t.TempDir()))
	var rep BuildReport
	f.with(func(w *Workspace) (err error) {
		rep, err = w.Build(t.Context(), BuildOptions{})
		return err
	})
	stages := map[string]int{} // items with an output
	for _, s := range rep.Pipeline.Stages {
		stages[s.Name] = s.Ran - s.Failed - s.Excluded
	}
	for _, s := range scrapers.All {
		stage := KindParse + "/" + s.Name
		if s.Read != nil {
			stage = KindRead + "/" + s.Name
		}
		if stages[stage] == 0 {
			t.Errorf("%s gives nothing", stage)
		}
	}
	claims := released[output.ClaimRow](t, rep.Release.Dir, "claims")
	sources := map[string]bool{}
	for _, c := range claims {
		sources[c.Source] = true
		if !slices.Contains(corpus.Categories, corpus.Category(c.Category)) || c.CategoryFrom == "" || c.Verdict6 == "" || c.VerdictStatus != "source" {
			t.Errorf("claim %+v", c)
		}
	}
	if len(sources) < 4 || stages["plan/gpe"] != len(claims) || stages["judge/gpe"] == 0 {
		t.Errorf("%d claims of %d sources, %d searches, %d drafts", len(claims), len(sources), stages["plan/gpe"], stages["judge/gpe"])
	}
	documents := map[string]output.DocumentRow{}
	for _, d := range released[output.DocumentRow](t, rep.Release.Dir, "documents") {
		documents[d.ID] = d
		if d.Title == "" || d.URL == "" || d.Source == "" || d.PublishedAt == "" && d.Kind != corpus.KindFactCheck || d.RetrievedAt == "" || d.SHA256 == "" {
			t.Errorf("document %+v", d)
		}
	}
	for _, v := range released[output.VerdictRow](t, rep.Release.Dir, "verdicts") {
		if v.VerdictStatus != "llm_draft" || v.Rationale == "" {
			t.Errorf("verdict %+v", v)
		}
		for _, e := range v.Evidence {
			if documents[e.DocumentID].URL != e.URL {
				t.Errorf("claim %s: evidence %+v is not among the documents", v.ClaimID, e)
			}
		}
	}
	f.with(func(w *Workspace) error {
		open, err := w.List(t.Context(), ListQuery{Stage: "candidates", State: "waiting"})
		if len(open) == 0 {
			t.Error("newsrooms and institutions give no candidate for a person to decide about")
		}
		return err
	})
}

// released reads a table of a release.
func released[T any](t *testing.T, dir, name string) (rows []T) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "data", name+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		var row T
		if err := json.Unmarshal(line, &row); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
	return rows
}
