package fetch

import (
	"bufio"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// interopDir is the folder in which make interop leaves questions for us and finds our answers.
func interopDir(t *testing.T) string {
	dir := os.Getenv("ASSAY_INTEROP")
	if dir == "" {
		t.Skip("ASSAY_INTEROP is not set: make interop compares us with reference libraries")
	}
	return dir
}

func readJSON(t *testing.T, path string, v any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, v)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func writeJSON(t *testing.T, path string, v any) {
	t.Helper()
	data, err := json.Marshal(v)
	if err == nil {
		err = os.WriteFile(path, data, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestInteropArchives writes an archive of exchanges of every kind, for WARC readers of others.
func TestInteropArchives(t *testing.T) {
	dir := interopDir(t)
	s := storeOf(t, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11})
	data, _ := archived(t, s)
	if err := os.WriteFile(filepath.Join(dir, "odd.warc.gz"), data, 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(dir, "odd.wacz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	out := bufio.NewWriter(f)
	w, err := NewWACZ(out, WACZOptions{Title: "odd", Software: "assay/test", Created: day})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Discard()
	if err := WriteExchanges(t.Context(), s, NewWARCWriter(w.WARC), w.Add); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := out.Flush(); err != nil {
		t.Fatal(err)
	}
}

// TestInteropKeys answers with the index keys of addresses.
func TestInteropKeys(t *testing.T) {
	dir := interopDir(t)
	var addresses []string
	readJSON(t, filepath.Join(dir, "addresses.json"), &addresses)
	keys := map[string]string{}
	for _, a := range addresses {
		keys[a] = SURT(a)
	}
	writeJSON(t, filepath.Join(dir, "keys.json"), keys)
}

// TestInteropCharsets answers with the charset of pages, where its name came from, and the text.
func TestInteropCharsets(t *testing.T) {
	dir := interopDir(t)
	var cases []struct{ File, Type string }
	readJSON(t, filepath.Join(dir, "pages.json"), &cases)
	type decision struct{ Charset, From, Text string }
	out := make([]decision, len(cases))
	for i, c := range cases {
		body, err := os.ReadFile(c.File)
		if err != nil {
			t.Fatal(err)
		}
		p, err := NewPage("https://page.example/"+strconv.Itoa(i), http.Header{"Content-Type": {c.Type}}, body, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		out[i].Charset, out[i].From = p.Charset()
		out[i].Text = p.Text()
	}
	writeJSON(t, filepath.Join(dir, "charsets.json"), out)
}
