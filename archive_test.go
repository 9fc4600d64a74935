package assay

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay/fetch"
	"assay/kv"
)

// Every bucket is carried by an archive, or its reason not to be is written at carried.
func TestEveryBucketIsArchivedOrNot(t *testing.T) {
	source, err := os.ReadFile("archive.go")
	if err != nil {
		t.Fatal(err)
	}
	_, comment, _ := strings.Cut(string(source), "// carried lists every table")
	comment, _, _ = strings.Cut(comment, "func carried")
	said := strings.FieldsFunc(comment, func(r rune) bool { return strings.ContainsRune(" \n,:;/", r) })
	for i := range said {
		said[i] = strings.TrimSuffix(said[i], ".")
	}
	for _, c := range carried() {
		name, _, _ := strings.Cut(c.name, ":")
		said = append(said, name)
	}
	said = append(said, "fetch.exchange") // by WriteExchanges

	w, _ := herringWorkspace(t, t.TempDir(), newRedditWeb(t).config("backend: local"))
	if _, err := w.Import(t.Context(), "reddit", writeDump(t), ImportOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Build(t.Context(), BuildOptions{}); err != nil {
		t.Fatal(err)
	}
	buckets := w.store.Buckets()
	v := reflect.ValueOf(w.tables)
	for i := range v.NumField() {
		buckets = append(buckets, v.Field(i).Interface().(interface{ Name() string }).Name())
	}
	if len(buckets) < 20 {
		t.Fatalf("only %v", buckets)
	}
	for _, name := range buckets {
		if !slices.Contains(said, name) {
			t.Errorf("nothing is said of the bucket %q in an archive: put it into carried, or into its comment with the reason", name)
		}
	}
}

func writeDump(t *testing.T) string {
	path := filepath.Join(t.TempDir(), "posts.ndjson")
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(herring["aa1"], "\n", " ")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// An archive that cannot be finished leaves nothing behind, and what was there before stays.
func TestArchiveIsWholeOrAbsent(t *testing.T) {
	w, _ := herringWorkspace(t, t.TempDir(), newRedditWeb(t).config("backend: local"))
	dir := t.TempDir()
	for _, name := range []string{"x.warc.gz", "x.wacz"} {
		out := filepath.Join(dir, name)
		if err := os.WriteFile(out, []byte("before"), 0o644); err != nil {
			t.Fatal(err)
		}
		cancelled, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := w.Archive(cancelled, out, ArchiveOptions{Force: true}); !errors.Is(err, context.Canceled) {
			t.Errorf("%s, cancelled: %v", name, err)
		}
		reserve := w.Config.Runtime.ReserveMiB
		w.Config.Runtime.ReserveMiB = 1 << 40
		if _, err := w.Archive(t.Context(), out, ArchiveOptions{Force: true}); !errors.Is(err, kv.ErrDiskFull) {
			t.Errorf("%s, no room: %v", name, err)
		}
		w.Config.Runtime.ReserveMiB = reserve
		if data, err := os.ReadFile(out); err != nil || string(data) != "before" {
			t.Errorf("%s is %q, %v", name, data, err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 2 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// What an archive says that this program cannot take in is refused by name.
func TestArchivesOfOtherLayouts(t *testing.T) {
	w, _ := herringWorkspace(t, t.TempDir(), newRedditWeb(t).config("backend: local"))
	info := "software: assay/9\r\n" + archiveLine + ": "
	record := func(kind, uri, block string) fetch.Record {
		return fetch.Record{Type: kind, URI: uri, ContentType: "text/plain", Head: []byte(block)}
	}
	begin := record("warcinfo", "", info+"1\r\n")
	end := record("metadata", urnEnd, "{}")
	for _, c := range []struct {
		name    string
		records []fetch.Record
		want    string // of the error, or of a problem
	}{
		{"newer layout", []fetch.Record{record("warcinfo", "", info+"2\r\n"), end}, "it has layout 2, and this program reads 1"},
		{"table of a newer version", []fetch.Record{begin, record("resource", urnTable+"rows:9:000001", "{}"), end}, "no such table in this version"},
		{"table without a name", []fetch.Record{begin, record("resource", urnTable+"rows", "{}"), end}, "no such table in this version"},
		{"lines that are none", []fetch.Record{begin, record("resource", urnTable+"rows:1:000001", `{"key":["pairs","1"],"value":3}`), end}, "read table rows:1:000001: read a record of rows"},
		{"a document under another id", []fetch.Record{begin, record("resource", urnTable+"pool:1:000001", `{"key":["x"],"value":{"id":"y"}}`), end}, `the id "y" under the key ["x"]`},
		{"a file elsewhere", []fetch.Record{begin, record("metadata", urnFile+"../../assay-outside", "x"), end}, `a file "../../assay-outside", which no workspace has`},
		{"a prompt of another name", []fetch.Record{begin, record("metadata", urnFile+"prompts/other.txt", "x"), end}, "which no workspace has"},
		{"an unknown record", []fetch.Record{begin, record("metadata", "urn:assay:other", "x"), end}, "none that this program knows"},
		{"a record less", []fetch.Record{begin, record("metadata", urnEnd, `{"records":2}`)}, "1 records where 2 were written"},
		{"an exchange less", []fetch.Record{begin, record("metadata", urnEnd, `{"records":1,"exchanges":3}`)}, "0 exchanges where 3 were written"},
		{"lines less", []fetch.Record{begin, record("metadata", urnEnd, `{"records":1,"tables":{"rows:1":4}}`)}, "0 lines of table rows:1 where 4 were written"},
		{"lines more", []fetch.Record{begin, record("resource", urnTable+"notes:1:000001", `{"key":["x"],"value":["y"]}`), record("metadata", urnEnd, `{"records":2,"tables":null}`)}, "1 lines of table notes:1 where 0 were written"},
		{"an end that is none", []fetch.Record{begin, record("metadata", urnEnd, "[]")}, "read its end"},
		{"no end", []fetch.Record{begin}, "cut off after 1 records"},
		{"another program's", []fetch.Record{record("warcinfo", "", "software: x\r\n"), end}, "assay import warc takes files of other programs"},
	} {
		path := filepath.Join(t.TempDir(), "x.warc.gz")
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		out := fetch.NewWARCWriter(f)
		for _, r := range c.records {
			if _, err := out.Write(r); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		r, err := w.Import(t.Context(), "archive", path, ImportOptions{})
		told := strings.Join(r.Problems, "\n")
		if err != nil {
			told += err.Error()
		}
		if !strings.Contains(told, c.want) {
			t.Errorf("%s: %s", c.name, told)
		}
	}
	if _, err := os.Stat(filepath.Join(w.Dir, "..", "..", "assay-outside")); err == nil {
		t.Error("a file was written outside")
	}
}

// TestArchiveTellsWhomItsConfigurationAsks imports what somebody else wrote into a workspace that nobody changed: whom a
// build would ask by it, and with whose keys, is told before there is one. What every profile asks is not.
func TestArchiveTellsWhomItsConfigurationAsks(t *testing.T) {
	w, _ := herringWorkspace(t, t.TempDir(), newRedditWeb(t).config("backend: local"))
	plain, err := InitConfig("raguard")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, config string
		want         []Asked
		hint         string
	}{
		{"addresses", `recipe: {profile: raguard}
runtime:
  contact: a@b.example
  endpoints:
    far: {provider: openai, base_url: "https://gather.example/v1", key_env: OPENAI_API_KEY}
    own: {provider: builtin}
  reddit: {token_url: "https://gather.example/token"}
  search: {brave: {base: "https://gather.example"}, serper: {key_env: AWS_SECRET_ACCESS_KEY}}
  allow_private: ["169.254.169.254:80"]
  resolve: {www.politifact.com: "10.0.0.7:80"}
`, []Asked{
			{Setting: "runtime.endpoints.far", Address: "https://gather.example/v1", Keys: []string{"OPENAI_API_KEY"}},
			{Setting: "runtime.reddit.token_url", Address: "https://gather.example/token", Keys: []string{"REDDIT_CLIENT_ID", "REDDIT_CLIENT_SECRET"}},
			{Setting: "runtime.search.brave", Address: "https://gather.example", Keys: []string{"BRAVE_API_KEY"}},
			{Setting: "runtime.search.serper", Address: "https://google.serper.dev", Keys: []string{"AWS_SECRET_ACCESS_KEY"}},
			{Setting: "runtime.allow_private", Address: "169.254.169.254:80"},
			{Setting: "runtime.resolve.www.politifact.com", Address: "10.0.0.7:80"},
		}, "with the addresses above: look at it before you build without --replay"},
		{"none", "recipe: {profile: raguard, name: other}\n", nil, ""},
		{"no configuration", "recipe: {profile: [}\n", nil, "cannot be used by itself"},
	} {
		if err := os.WriteFile(filepath.Join(w.Dir, ConfigName), plain, 0o600); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "x.warc.gz")
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		out := fetch.NewWARCWriter(f)
		for _, r := range []fetch.Record{
			{Type: "warcinfo", ContentType: "text/plain", Head: []byte(archiveLine + ": 1\r\n")},
			{Type: "metadata", URI: urnFile + ConfigName, ContentType: "text/plain", Head: []byte(c.config)},
			{Type: "metadata", URI: urnEnd, ContentType: "text/plain", Head: []byte(`{"records":2}`)},
		} {
			if _, err := out.Write(r); err != nil {
				t.Fatal(err)
			}
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		r, err := w.Import(t.Context(), "archive", path, ImportOptions{})
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if diff := cmp.Diff(c.want, r.Asks); diff != "" || !strings.Contains(r.Hint, c.hint) || (r.Hint == "") != (c.hint == "") {
			t.Errorf("%s: hint %q, asks (-want +got)\n%s", c.name, r.Hint, diff)
		}
		again, err := w.Import(t.Context(), "archive", path, ImportOptions{})
		if err != nil || again.Asks != nil {
			t.Errorf("%s: a configuration that is there already is told as new: %v, %v", c.name, again.Asks, err)
		}
	}
}
