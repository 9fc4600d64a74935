package assay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"assay/llm"
)

// PricesName is the file of a workspace that says what models cost.
const PricesName = "prices.yaml"

// maxPrices bounds a list of prices; the longest published one is a tenth of it.
const maxPrices = 64 << 20

// readPrices reads what models cost: a workspace's own table, where it has one, over the one inside the
// program.
func readPrices(dir string) (_ llm.PriceTable, own bool, err error) {
	shipped, err := llm.DefaultPrices()
	if err != nil {
		return llm.PriceTable{}, false, err
	}
	b, err := os.ReadFile(filepath.Join(dir, PricesName))
	if errors.Is(err, fs.ErrNotExist) {
		return shipped, false, nil
	} else if err != nil {
		return llm.PriceTable{}, false, err
	}
	table, err := llm.ParsePrices(b)
	if err != nil {
		return llm.PriceTable{}, true, fmt.Errorf("%s: %w", filepath.Join(dir, PricesName), err)
	}
	return table.Over(shipped), true, nil
}

// importPrices writes the prices of a file into the workspace's own table, over what that says.
func importPrices(ctx context.Context, w *Workspace, path string, _ ImportOptions) (*ImportReport, error) {
	r := newImportReport("prices", path)
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(until(ctx, f), maxPrices+1))
	if err != nil {
		return nil, err
	}
	if len(b) > maxPrices {
		return nil, fmt.Errorf("more than %d bytes are no list of prices", maxPrices)
	}
	at, err := f.Stat()
	if err != nil {
		return nil, err
	}
	table, err := pricesOf(b, at, r)
	if err != nil {
		return r, err
	}
	target := filepath.Join(w.Dir, PricesName)
	before, err := os.ReadFile(target)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return r, err
	default:
		have, err := llm.ParsePrices(before)
		if err != nil {
			return r, fmt.Errorf("%s, which the file would be added to: %w", target, err)
		}
		table = table.Over(have)
	}
	r.Counts["models in "+PricesName] = len(table.Models)
	r.Table = map[string]string{"date": table.Date, "source": table.Source}
	return r, writeWhole(target, table.YAML())
}

// pricesOf reads either form of a list. What has no date of its own has the file's.
func pricesOf(b []byte, file fs.FileInfo, r *ImportReport) (llm.PriceTable, error) {
	if !bytes.HasPrefix(bytes.TrimLeft(b, "\ufeff \t\r\n"), []byte("{")) {
		table, err := llm.ParsePrices(b)
		r.Counts["models"] = len(table.Models)
		return table, err
	}
	models, skipped, problems, err := llm.ReadLiteLLMPrices(bytes.TrimPrefix(b, []byte("\ufeff")))
	r.Counts["models"] = len(models)
	for why, n := range skipped {
		r.Counts["skipped: "+why] = n
	}
	for _, p := range problems {
		r.problem("%s", p)
	}
	date := file.ModTime().UTC().Format(time.DateOnly)
	for name, p := range models {
		p.Date = date
		models[name] = p
	}
	return llm.PriceTable{Date: date, Source: "LiteLLM, " + file.Name(), Models: models}, err
}
