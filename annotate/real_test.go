package annotate

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"assay/corpus"
	"assay/stats"
)

// realPair is a pair of the published sample with its published label.
type realPair struct {
	in     Input
	label  corpus.StanceLabel
	usable bool
}

func realPairs(t *testing.T) []realPair {
	t.Helper()
	dir := os.Getenv("ASSAY_REAL")
	if dir == "" {
		t.Skip("skipped: ASSAY_REAL is not set")
	}
	data, err := os.ReadFile(filepath.Join(dir, "raguard", "sample-20-claims.json"))
	if err != nil {
		t.Fatal(err)
	}
	var claims []struct {
		ID        string `json:"claim_id"`
		Claim     string `json:"claim"`
		Verdict   string `json:"verdict"`
		Documents []struct {
			ID    string             `json:"Document ID"`
			Title string             `json:"Title"`
			Text  string             `json:"Full Text"`
			Label corpus.StanceLabel `json:"Document Label"`
			Link  string             `json:"Link"`
		} `json:"documents"`
	}
	if err := json.Unmarshal(data, &claims); err != nil {
		t.Fatal(err)
	}
	link := regexp.MustCompile(`https?://\S+`)
	var pairs []realPair
	for _, c := range claims {
		for _, d := range c.Documents {
			letters := 0
			for _, r := range link.ReplaceAllString(d.Text, "") {
				if unicode.IsLetter(r) || unicode.IsDigit(r) {
					letters++
				}
			}
			text := strings.TrimSpace(d.Text)
			pairs = append(pairs, realPair{
				in: Input{
					Claim:    corpus.Claim{ID: "c_" + c.ID, Text: c.Claim},
					Gold:     c.Verdict == "True",
					Document: corpus.Document{ID: "raguard:" + d.ID, Title: d.Title, Text: d.Text, URL: d.Link},
				},
				label:  d.Label,
				usable: letters >= 30 && text != "[Link Post]" && text != "[deleted]" && text != "[removed]",
			})
		}
	}
	return pairs
}

// TestRealAgreement prints how far the builtin model agrees with the published labels. It is a number
// to watch: most published answers draw on what GPT-4 knows, and builtin knows nothing.
func TestRealAgreement(t *testing.T) {
	pairs := realPairs(t)
	for _, tt := range []struct {
		mode     string
		n        int
		majority string
	}{{ModeCompat, 111, "82.0 %"}, {ModeNormal, 74, "83.8 %"}} {
		settings := onBuiltin
		settings.Mode = tt.mode
		c := client(t, nil, nil)
		var theirs, ours []string
		for _, p := range pairs {
			if tt.mode == ModeNormal && !p.usable {
				continue
			}
			l, err := RAGuard.Annotate(context.Background(), c, settings, p.in)
			if err != nil {
				t.Fatalf("%s, %s: %v", p.in.Claim.ID, p.in.Document.ID, err)
			}
			if l.Status == corpus.LabelHeld || corpus.HasFlag(l.Flags, corpus.FlagQuoteUnverified) {
				t.Errorf("%s, %s: flags %v, quote %q", p.in.Claim.ID, p.in.Document.ID, l.Flags, l.Quote)
			}
			theirs, ours = append(theirs, string(p.label)), append(ours, string(l.Label))
		}
		if len(ours) != tt.n {
			t.Errorf("%s: %d pairs, want %d", tt.mode, len(ours), tt.n)
		}
		a := stats.Kappa(theirs, ours, "supporting", "misleading", "unrelated").WithInterval(rand.New(rand.NewPCG(1, 2)), 1000, 0.95)
		t.Logf("%s, %d pairs, always unrelated %s: %s\n%s", tt.mode, len(ours), tt.majority, a, a.Confusion)
	}
}
