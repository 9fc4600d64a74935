package assay

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// row is one line of the import table in ARCHITECTURE.md.
type row struct {
	layer   int
	may     []string
	library []string
}

var (
	codeSpan = regexp.MustCompile("`([^`]+)`")
	tableRow = regexp.MustCompile(`^\| (\d) \| (.+?) \| (.*?) \| (.*?) \|$`)
)

// readTable reads the import table out of ARCHITECTURE.md: the document is the test.
func readTable(t *testing.T) map[string]row {
	t.Helper()
	data, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	table := map[string]row{}
	for _, line := range strings.Split(string(data), "\n") {
		m := tableRow.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		layer, err := strconv.Atoi(m[1])
		if err != nil {
			t.Fatal(err)
		}
		r := row{layer: layer}
		for _, c := range codeSpan.FindAllStringSubmatch(m[3], -1) {
			r.may = append(r.may, c[1])
		}
		for _, c := range codeSpan.FindAllStringSubmatch(m[4], -1) {
			r.library = append(r.library, c[1])
		}
		for _, name := range codeSpan.FindAllStringSubmatch(m[2], -1) {
			table[name[1]] = r
		}
	}
	if len(table) < 5 {
		t.Fatalf("ARCHITECTURE.md has %d rows in its import table; the form of the table changed?", len(table))
	}
	return table
}

// imports lists the imports of every package's files, tests left out.
func imports(t *testing.T) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	err := filepath.WalkDir(".", func(file string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() && file != "." && (strings.HasPrefix(e.Name(), ".") || e.Name() == "testdata") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		pkg := filepath.ToSlash(filepath.Dir(file))
		if pkg == "." {
			pkg = "assay"
		}
		out[pkg] = append(out[pkg], []string{}...)
		for _, spec := range parsed.Imports {
			name, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			out[pkg] = append(out[pkg], name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestImportTable(t *testing.T) {
	table, got := readTable(t), imports(t)
	fenced := map[string][]string{} // library -> packages that may import it
	for pkg, r := range table {
		if _, ok := got[pkg]; !ok {
			t.Errorf("ARCHITECTURE.md has a row for %s, which does not exist", pkg)
		}
		for _, lib := range r.library {
			fenced[lib] = append(fenced[lib], pkg)
		}
		for _, other := range r.may {
			if o, ok := table[other]; ok && o.layer >= r.layer {
				t.Errorf("the row of %s (layer %d) allows %s (layer %d); imports point to lower layers", pkg, r.layer, other, o.layer)
			}
		}
	}
	for pkg, list := range got {
		r, ok := table[pkg]
		if !ok {
			t.Errorf("package %s has no row in the import table of ARCHITECTURE.md", pkg)
			continue
		}
		for _, name := range list {
			if ours, ok := strings.CutPrefix(name, "assay/"); ok || name == "assay" {
				if !ok {
					ours = "assay"
				}
				if !slices.Contains(r.may, ours) && !slices.Contains(r.may, "everything above") {
					t.Errorf("%s imports %s, which its row does not allow", pkg, ours)
				}
				continue
			}
			for lib, owners := range fenced {
				if (name == lib || strings.HasPrefix(name, lib+"/")) && !slices.Contains(owners, pkg) {
					t.Errorf("%s imports %s, which only %s may", pkg, name, strings.Join(owners, ", "))
				}
			}
		}
	}
}

// A file named *_js.go or *_windows.go is left out of the build on other systems without a word.
func TestNoFileNameIsABuildTag(t *testing.T) {
	tags := regexp.MustCompile(`_(js|wasm|windows|linux|darwin|unix|plan9|android|ios|amd64|arm64|386|arm)\.go$`)
	err := filepath.WalkDir(".", func(file string, _ fs.DirEntry, err error) error {
		if err == nil && tags.MatchString(path.Base(filepath.ToSlash(file))) {
			t.Errorf("%s: its suffix is a build tag", file)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
