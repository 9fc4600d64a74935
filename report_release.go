package assay

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"assay/annotate"
	"assay/corpus"
	"assay/output"
	"assay/output/report"
)

// ReportOfRelease collects what the files of a release tell: no workspace is needed, and nothing is asked or
// written. What a release does not hold is named. It reads the files as they are; assay verify checks them.
func ReportOfRelease(ctx context.Context, dir string) (d report.Data, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("report of the release %s: %w", dir, err)
		}
	}()
	var m output.Manifest
	data, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return d, errors.New("it has no manifest.json: this folder is no release")
	}
	if err == nil {
		err = json.Unmarshal(data, &m)
	}
	if err != nil {
		return d, err
	}
	table := func(name string) string { return filepath.Join(dir, "data", name+".jsonl") }
	if _, err := os.Stat(table("pairs")); errors.Is(err, fs.ErrNotExist) {
		return d, errors.New("it has no data/pairs.jsonl, which the report is read from; a build whose recipe.formats has jsonl writes it")
	}
	count, claims := newTallying(), map[string]claimTold{}
	told := map[string]corpus.Claim{}
	if err := lines(ctx, table("claims"), func(r output.ClaimRow) error {
		claims[r.ID] = claimTold{r.Text, r.VerdictBinary}
		told[r.ID] = corpus.Claim{ID: r.ID, Verdict6: corpus.Verdict(r.Verdict6), Category: corpus.Category(r.Category), Source: r.Source}
		return nil
	}); err != nil {
		return d, err
	}
	if err := lines(ctx, table("pairs"), func(r output.PairRow) error {
		claim, ok := told[r.ClaimID]
		if !ok || !slices.Contains(stanceNames(), r.Label) || !slices.Contains(verdictColumns, claims[r.ClaimID].binary) {
			return fmt.Errorf("pair %s %s: no claim that is true or false, or no label of ours; see assay verify", r.ClaimID, r.DocumentID)
		}
		l := corpus.Label{
			ID: corpus.PairID(r.ClaimID, r.DocumentID), ClaimID: r.ClaimID, DocumentID: r.DocumentID, Label: corpus.StanceLabel(r.Label),
			Answer: corpus.Answer(r.Answer), Zero: corpus.Answer(r.ZeroAnswer), Effect: corpus.Effect(r.Effect), Flags: r.Flags,
		}
		if r.Margin != nil {
			l.Stability = &corpus.Stability{Samples: r.Samples, Margin: *r.Margin}
		}
		binary := claims[r.ClaimID].binary
		count.asked[l.ID] = askedPair{claim: claim, binary: binary, doc: corpus.Document{ID: r.DocumentID}, label: l, outcome: outcomeLabelled}
		if len(r.Panel) > 0 {
			count.panel[l.ID] = panelled{pair: labelled{Label: l, Binary: binary}, annotations: r.Panel, consensus: corpus.StanceLabel(r.Consensus)}
		}
		return nil
	}); err != nil {
		return d, err
	}
	if err := lines(ctx, table("controls"), func(r output.ControlRow) error {
		binary := claims[r.ClaimID].binary
		if r.Outcome == outcomeLabelled && (!slices.Contains(verdictColumns, binary) || !slices.Contains(answerNames(), r.Answer)) {
			return fmt.Errorf("control %s %s: no claim that is true or false, or no answer of ours; see assay verify", r.ClaimID, r.DocumentID)
		}
		count.control[corpus.PairID(r.ClaimID, r.DocumentID)] = controlled{
			pair: annotate.Input{Claim: corpus.Claim{ID: r.ClaimID}, Zero: corpus.Answer(r.ZeroAnswer)}, binary: binary,
			label: corpus.Label{Answer: corpus.Answer(r.Answer), Effect: corpus.Effect(r.Effect)}, outcome: r.Outcome,
		}
		return nil
	}); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return d, err
	}
	d = count.report(claims)
	d.Name, d.Strata = m.Facts.Name, nil // a release holds pairs that have a label, and no others
	d.Missing = missingInRelease(d, m)
	return d, nil
}

// missingInRelease says of each section what the files of a release do not tell.
func missingInRelease(d report.Data, m output.Manifest) map[string][]string {
	out := map[string][]string{}
	lacks := func(section string, there bool, what string) {
		if !there {
			out[section] = append(out[section], what)
		}
	}
	known := d.Zero.Total() > 0
	lacks("agreement", false, "A release does not hold the labels that imported tables published; the report of its workspace compares with them.")
	lacks("panel", d.Panel != nil, "No pair of this release has a panel: its recipe names nobody under recipe.label.panel.annotators, or the panel was not asked when it was made.")
	lacks("controls", known, "No pair of this release has an answer without a document (recipe.label.zero_context: true).")
	lacks("controls", d.Control != nil, "This release has no table controls: recipe.label.shuffled: 200 asks about 200 claims with documents of other claims.")
	lacks("stability", d.Stability != nil, "Every pair of this release was asked about once; recipe.label.samples: 5 asks five times.")
	lacks("effects", known, "Without an answer to the claim alone the effect of a document is not known (recipe.label.zero_context: true).")
	var withheld []string
	for _, reason := range sortedKeys(m.Facts.Withheld) {
		if strings.HasPrefix(reason, "pair: ") {
			withheld = append(withheld, fmt.Sprintf("%s: %d", strings.TrimPrefix(reason, "pair: "), m.Facts.Withheld[reason]))
		}
	}
	what := "A release holds the pairs that have a label; the report of its workspace tells by stratum what came of asking about the others."
	if len(withheld) > 0 {
		what += " Left out of this one were: " + strings.Join(withheld, ", ") + "."
	}
	lacks("strata", false, what)
	lacks("cost", false, "A release does not hold what its calls cost; the report of its workspace does.")
	return out
}

// lines reads the rows of a table of a release.
func lines[T any](ctx context.Context, path string, row func(T) error) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	r := bufio.NewReader(f)
	for n := 1; ; n++ {
		line, err := r.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("%s: %w", path, err)
		}
		if len(line) > 0 {
			var v T
			if err := json.Unmarshal(line, &v); err != nil {
				return fmt.Errorf("%s line %d: %w", path, n, err)
			}
			if err := row(v); err != nil {
				return fmt.Errorf("%s line %d: %w", path, n, err)
			}
		}
		if err != nil {
			return ctx.Err()
		}
	}
}

// WriteReportOfRelease writes the report of a release into a folder, and returns its files.
func WriteReportOfRelease(ctx context.Context, release, dir string) ([]string, error) {
	d, err := ReportOfRelease(ctx, release)
	if err != nil {
		return nil, err
	}
	return writeReport(dir, d)
}

// writeReport writes a report anywhere but in a release, whatever path leads there: its files are hashed.
func writeReport(dir string, d report.Data) ([]string, error) {
	at, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	for ; ; at = filepath.Dir(at) {
		real, err := filepath.EvalSymlinks(at)
		if errors.Is(err, fs.ErrNotExist) && at != filepath.Dir(at) {
			continue // it is made when the report is written
		}
		if err != nil {
			return nil, fmt.Errorf("write report: %w", err)
		}
		at = real
		break
	}
	for ; ; at = filepath.Dir(at) {
		if output.IsRelease(at) {
			return nil, fmt.Errorf("%s lies in the release %s, whose files are hashed; name another folder with --to", dir, at)
		}
		if at == filepath.Dir(at) {
			return report.Write(dir, d)
		}
	}
}
