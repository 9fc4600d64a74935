package assay

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"assay/kv"
	"assay/scrapers"
)

const pairsConfig = `recipe:
  discover: [imported]
  evidence: [pairs]
`

// A folder is a workspace of imported pairs that a test opens again and again.
type folder struct {
	t   *testing.T
	dir string
}

func newFolder(t *testing.T, dir string) folder {
	t.Helper()
	f := folder{t, dir}
	f.write(ConfigName, pairsConfig)
	return f
}

func (f folder) write(name, text string) string {
	f.t.Helper()
	path := filepath.Join(f.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		f.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		f.t.Fatal(err)
	}
	return path
}

// with opens the workspace for one piece of work.
func (f folder) with(do func(w *Workspace) error) {
	f.t.Helper()
	w, err := Open(f.t.Context(), f.dir, OpenOptions{Replay: true})
	if err != nil {
		f.t.Fatal(err)
	}
	if err := do(w); err != nil {
		f.t.Error(err)
	}
	if err := w.Close(); err != nil {
		f.t.Fatal(err)
	}
}

func (f folder) load(kind string, paths ...string) {
	f.t.Helper()
	f.with(func(w *Workspace) error {
		for _, path := range paths {
			if _, err := w.Import(f.t.Context(), kind, path, ImportOptions{}); err != nil {
				return err
			}
		}
		return nil
	})
}

func (f folder) build() (rep BuildReport) {
	f.t.Helper()
	f.with(func(w *Workspace) (err error) {
		rep, err = w.Build(f.t.Context(), BuildOptions{})
		return err
	})
	if rep.Release == nil {
		f.t.Fatal("no release")
	}
	return rep
}

// pairLine is a line of an import of pairs: the nth post on the nth toll.
func pairLine(n int, verdict string) string {
	return fmt.Sprintf(`{"claim":"The toll of bridge %[1]d doubled in 2020.","title":"Toll of bridge %[1]d","text":"The toll of bridge %[1]d doubled in 2020, as the accounts of the county show to everybody who reads them.","url":"https://www.reddit.com/r/tolls/comments/b%03[1]d/","label":"supporting","verdict":%[2]q}`+"\n", n, verdict)
}

// Lines of one number in two files are two pairs.
func TestPairsOfTwoFilesStandBesideEachOther(t *testing.T) {
	f := newFolder(t, t.TempDir())
	line := `{"claim":"The toll doubled in 2020.","title":"Post %[1]d","text":"The toll doubled in 2020, as the accounts of the county show, writes number %[1]d of the readers.","url":"https://news%[1]d.example/","label":"supporting","verdict":"true"}` + "\n"
	for n := range 2 {
		path := f.write(fmt.Sprintf("%d.jsonl", n), fmt.Sprintf(line, n))
		f.load("pairs", path, path)
	}
	if got := f.build().Release.Counts; got["claims"] != 1 || got["pairs"] != 2 {
		t.Errorf("release of %v, want both pairs of the one claim", got)
	}
}

// Two tables that hold one claim and one document give one row, whoever of the workers comes first.
func TestReleaseOfOnePairInTwoTables(t *testing.T) {
	f := newFolder(t, t.TempDir())
	claims := "Claim ID,Claim,Verdict,Document IDs,Document Labels,Original Verdict\n"
	documents, lines := "Document ID,Title,Full Text,Claim ID,Document Label,Link\n", ""
	for n := 1; n <= 40; n++ {
		claims += fmt.Sprintf("%[1]d,The toll of bridge %[1]d doubled in 2020.,True,[%[1]d],['supporting'],true\n", n)
		documents += fmt.Sprintf("%[1]d,Toll of bridge %[1]d,\"The toll of bridge %[1]d doubled in 2020, as the accounts of the county show to everybody who reads them.\",%[1]d,supporting,https://www.reddit.com/r/tolls/comments/b%03[1]d/\n", n)
		lines += pairLine(n, "true")
	}
	f.load("claims-table", f.write("claims.csv", claims))
	f.load("pairs", f.write("documents.csv", documents), f.write("lines.jsonl", lines))
	first := f.build().Release
	if first.Counts["pairs"] != 40 {
		t.Fatalf("release of %v", first.Counts)
	}
	f.with(func(w *Workspace) error {
		for range 4 {
			r, err := w.Release(t.Context(), "")
			if err != nil {
				return err
			}
			if r.ID != first.ID {
				t.Errorf("release %s, then %s of the same store", first.ID, r.ID)
			}
		}
		return nil
	})
}

func TestSpoolTakesNoHeedOfTheOrder(t *testing.T) {
	rows := []string{"one", "two", "three", "four"}
	var want string
	for i := range rows {
		s, err := newSpool[string](t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range slices.Concat(rows[i:], rows[:i]) {
			if err := s.add("key", "rank", row); err != nil {
				t.Fatal(err)
			}
		}
		got, err := s.get("key")
		if err != nil {
			t.Fatal(err)
		}
		if want == "" {
			want = got
		}
		if got != want {
			t.Errorf("from %q on: %q, want %q", rows[i], got, want)
		}
		if err := s.close(); err != nil {
			t.Fatal(err)
		}
	}
}

// What a release cites outlives gc, wherever the workspace lies.
func TestGCKeepsWhatReleasesCiteUnderAnyPath(t *testing.T) {
	f := newFolder(t, filepath.Join(t.TempDir(), "corpus [2024] *"))
	f.load("pairs", f.write("lines.jsonl", pairLine(1, "true")))
	cited, err := os.ReadFile(filepath.Join(f.build().Release.Dir, "data", "annotations.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	f.write(ConfigName, pairsConfig+"  label: {mode: compat}\n")
	f.build() // nothing live rests on the first answers any more
	f.with(func(w *Workspace) error {
		if _, err := w.GC(t.Context()); err != nil {
			return err
		}
		for line := range bytes.Lines(cited) {
			id := string(line[len(`{"id":"`):][:64])
			if _, ok, err := w.llm.Body(id); err != nil || !ok {
				t.Errorf("the reply of %s is gone: %v", id, err)
			}
		}
		return nil
	})
}

// A killed rebuild leaves nothing behind for ever.
func TestRebuildClearsWhatAKilledOneLeft(t *testing.T) {
	f := newFolder(t, t.TempDir())
	f.load("pairs", f.write("lines.jsonl", pairLine(1, "true")))
	dir := f.build().Release.Dir
	f.write(filepath.Join(stateDir, rebuildPrefix+"123", "release", "data", "claims.jsonl"), "half a release")
	f.with(func(w *Workspace) error {
		differences, err := w.Rebuild(t.Context(), dir)
		if len(differences) > 0 {
			t.Errorf("differences %q", differences)
		}
		return err
	})
	left, err := filepath.Glob(filepath.Join(f.dir, stateDir, rebuildPrefix+"*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left over: %q %v", left, err)
	}
}

// A restore that is refused changes nothing, since somebody may be at work here.
func TestRefusedRestoreLeavesTheIndex(t *testing.T) {
	f := newFolder(t, t.TempDir())
	f.load("pairs", f.write("lines.jsonl", pairLine(1, "true")))
	var backup bytes.Buffer
	f.with(func(w *Workspace) error { _, err := w.Backup(t.Context(), &backup); return err })
	list := func() []string {
		files, err := filepath.Glob(filepath.Join(f.dir, stateDir, "index", "bleve", "*"))
		if err != nil || len(files) == 0 {
			t.Fatalf("index: %q %v", files, err)
		}
		return files
	}
	before := list()
	if _, err := Restore(t.Context(), f.dir, bytes.NewReader(backup.Bytes())); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("Restore over a store = %v", err)
	}
	if diff := cmp.Diff(before, list()); diff != "" {
		t.Errorf("index (-before +after):\n%s", diff)
	}
}

// A page may print whatever it likes as its rating; no key of the store grows with it.
func TestEndlessRatingWaitsForAPerson(t *testing.T) {
	f := newFolder(t, t.TempDir())
	f.load("pairs", f.write("lines.jsonl", pairLine(1, "true")))
	f.with(func(w *Workspace) error {
		row := scrapers.PairsRow("The toll doubled in 2020.", strings.Repeat("very ", 20_000)+"true", "", "")
		return w.tables.Rows.Put(kv.Key("pairs", row.Key), row)
	})
	if rep := f.build(); rep.Release.Withheld["claim: rating unmapped, queued"] != 1 {
		t.Errorf("withheld %v", rep.Release.Withheld)
	}
	f.with(func(w *Workspace) error {
		if n, err := w.tables.Ratings.Count(""); n != 1 || err != nil {
			t.Errorf("%d ratings wait, %v", n, err)
		}
		return nil
	})
}

// What a person is shown names no verdict that could be copied by mistake, and asks nothing about a page
// that printed no rating.
func TestRatingsThatWait(t *testing.T) {
	f := newFolder(t, t.TempDir())
	f.with(func(w *Workspace) error {
		for _, raw := range []string{"", " ", "no idea"} {
			if err := w.tables.Ratings.Put(kv.Key("politifact", raw), QueuedRating{Source: "politifact", Raw: raw, Example: "The toll doubled."}); err != nil {
				return err
			}
		}
		list, err := w.listRatings(ListQuery{})
		if err != nil || len(list) != 1 || list[0].Key != "politifact/no idea" || !strings.Contains(list[0].Summary, `{"no idea": <verdict>}`) {
			t.Errorf("%+v, %v", list, err)
		}
		return nil
	})
}

// Processes that reach a workspace by different links meet at one socket.
func TestSocketIsOneForEveryLink(t *testing.T) {
	root := t.TempDir()
	long := filepath.Join(root, strings.Repeat("d", 100))
	if err := os.Mkdir(long, 0o755); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(root, "link")
	if err := os.Symlink(long, link); err != nil {
		t.Fatal(err)
	}
	if a, b := socketPath(long), socketPath(link); a != b || len(a) > maxSocketPath {
		t.Errorf("sockets %s and %s", a, b)
	}
}

// A record that nobody can have written is named, and the others are read.
func TestImportsRefuseEndlessTexts(t *testing.T) {
	long := strings.Repeat("water ", maxDocument/6+1)
	for kind, text := range map[string]string{
		"reddit":       `{"id":"aaa1","title":"Wells","selftext":"` + long + `"}` + "\n" + `{"id":"aaa2","title":"Wells","selftext":"Short."}` + "\n",
		"pairs":        strings.Replace(pairLine(1, "true"), "as the accounts", long, 1) + pairLine(2, "true"),
		"claims-table": "claim,verdict\n" + long + ",true\nWells are deep.,true\n",
	} {
		f := newFolder(t, t.TempDir())
		path := f.write("file", text)
		f.with(func(w *Workspace) error {
			r, err := w.Import(t.Context(), kind, path, ImportOptions{})
			if r.Counts["problems"] != 1 || r.Counts["posts"]+r.Counts["pairs"]+r.Counts["rows stored"] != 1 {
				t.Errorf("%s: %v %q", kind, r.Counts, r.Problems)
			}
			return err
		})
	}
}
