package assay

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"assay/annotate"
	"assay/corpus"
	"assay/fetch"
	"assay/llm"
	"assay/scrapers"

	"github.com/ulikunitz/xz"
)

// builtinModel answers by the function beside a prompt, as the builtin endpoint does.
type builtinModel struct{}

func (builtinModel) Complete(_ context.Context, q llm.Request) (llm.Reply, error) {
	answer, err := q.Template.Builtin(q.Vars)
	return llm.Reply{JSON: answer, Raw: string(answer), Outcome: llm.OutcomeAnswered, Call: "builtin"}, err
}

// TestRealCategories measures rule and builtin model on captured claims with a hand-made key: which
// category each address is of. It prints accuracy and confusion and fails when they get worse.
func TestRealCategories(t *testing.T) {
	dir := os.Getenv("ASSAY_REAL")
	if dir == "" {
		t.Skip("skipped: ASSAY_REAL is not set")
	}
	raw, err := os.ReadFile("testdata/categories.tsv")
	if err != nil {
		t.Fatal(err)
	}
	key := map[string]corpus.Category{}
	for _, line := range strings.Split(strings.TrimSpace(string(raw)), "\n")[1:] {
		address, name, _ := strings.Cut(line, "\t")
		if key[address], err = corpus.CategoryNamed(name); err != nil {
			t.Fatal(err)
		}
	}
	if len(key) < 60 {
		t.Fatalf("the key names %d claims", len(key))
	}
	confusion := map[string]map[string]int{}
	right := map[string]int{}
	asked, decided := 0, map[string]int{} // by tags, by what the source is about
	count := func(how string, want, got corpus.Category) {
		if got == want {
			right[how]++
		}
		row := how + " " + string(want)
		if confusion[row] == nil {
			confusion[row] = map[string]int{}
		}
		confusion[row][string(got)]++
	}
	seen := map[string]bool{}
	keyed := func(address string) bool { return key[address] != "" && !seen[address] }
	capturedPages(t, dir, keyed, func(address string, body []byte) {
		c := capturedClaim(t, address, body)
		seen[address] = true
		want := key[address]
		c = ruled(c)
		count("rule", want, c.Category)
		if c.Category != "" {
			how := "tags"
			if c.CategoryConfidence == corpus.RuleConfidence(false) {
				how = "source"
			}
			decided[how]++
			if c.Category == want {
				right[how]++
			}
		}
		byModel, err := annotate.Categorise(t.Context(), builtinModel{}, annotate.ExtractSettings{}, c)
		if err != nil {
			t.Fatal(err)
		}
		count("builtin", want, byModel.Category)
		if c.Category == "" {
			asked++
			c.Category = byModel.Category
		}
		count("rule+builtin", want, c.Category)
		if c.Category != want {
			t.Logf("%s is %s, want %s (builtin: %s)", address, c.Category, want, byModel.Category)
		}
	})
	for address := range key {
		if !seen[address] {
			t.Errorf("no capture has the address %s", address)
		}
	}
	for _, how := range []string{"rule", "builtin", "rule+builtin"} {
		t.Logf("%s: %d of %d right", how, right[how], len(seen))
		for _, want := range corpus.Categories {
			t.Logf("    %-12s %v", want, confusion[how+" "+string(want)])
		}
	}
	t.Logf("no rule decides on %d; right by tags %d of %d, by source %d of %d", asked, right["tags"], decided["tags"], right["source"], decided["source"])
	for how, by := range map[string]bool{"tags": true, "source": false} {
		// The release says how sure a rule is; it must not say more than was measured.
		if measured := float64(right[how]) / float64(decided[how]); measured < corpus.RuleConfidence(by) {
			t.Errorf("by %s the rule is right for %.2f of what it decides, and says %.2f", how, measured, corpus.RuleConfidence(by))
		}
	}
	for how, least := range map[string]float64{"rule": 0.48, "builtin": 0.48, "rule+builtin": 0.56} {
		if share := float64(right[how]) / float64(len(seen)); share < least {
			t.Errorf("%s is right for %.2f of the claims, want at least %.2f", how, share, least)
		}
	}
}

// capturedClaim reads the claim of a captured page: by its site, else from ClaimReview markup.
func capturedClaim(t *testing.T, address string, body []byte) corpus.Claim {
	t.Helper()
	p, err := fetch.NewPage(address, http.Header{"Content-Type": {"text/html; charset=utf-8"}}, body, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	for _, site := range scrapers.All {
		if site.Parse == nil || !site.Recognise("", address) {
			continue
		}
		if claims, err := site.Parse(p); err == nil && len(claims) > 0 {
			return claims[0]
		}
	}
	found, err := scrapers.ClaimReviews(p)
	if err != nil || len(found.Items) == 0 {
		t.Fatalf("%s has no claim: %v", address, err)
	}
	return corpus.Claim{ID: "c_" + address, Text: found.Items[0].Claim, Title: found.Items[0].Title}
}

// capturedPages calls visit with the captured pages whose address is wanted.
func capturedPages(t *testing.T, dir string, wanted func(string) bool, visit func(address string, body []byte)) {
	t.Helper()
	index, err := os.ReadFile(filepath.Join(dir, "INDEX.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(strings.TrimRight(string(index), "\n"), "\n")[1:] {
		f := strings.Split(line, "\t")
		if !wanted(f[6]) || !json.Valid([]byte(f[7])) {
			continue
		}
		body, err := os.ReadFile(filepath.Join(dir, f[0]))
		if err == nil && strings.HasSuffix(f[0], ".gz") {
			var zr *gzip.Reader
			if zr, err = gzip.NewReader(bytes.NewReader(body)); err == nil {
				body, err = io.ReadAll(zr)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		visit(f[6], body)
	}
	archives, err := filepath.Glob(filepath.Join(dir, "politifact", "bulk", "pf-*.tar.xz"))
	if err != nil {
		t.Fatal(err)
	}
	for _, archive := range archives {
		if err := eachInArchive(archive, func(name string, r io.Reader) error {
			address := "https://www.politifact.com/" + strings.TrimSuffix(strings.TrimPrefix(name, "./"), ".html") + "/"
			if !wanted(address) {
				return nil
			}
			body, err := io.ReadAll(r)
			if err == nil {
				visit(address, body)
			}
			return err
		}); err != nil {
			t.Fatal(fmt.Errorf("%s: %w", archive, err))
		}
	}
}

func eachInArchive(path string, visit func(name string, r io.Reader) error) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	x, err := xz.NewReader(f)
	if err != nil {
		return err
	}
	for tr := tar.NewReader(x); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := visit(h.Name, tr); err != nil {
			return err
		}
	}
}
