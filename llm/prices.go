package llm

import (
	"bytes"
	_ "embed"
	"fmt"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Price is what a model costs, in USD per million tokens.
type Price struct {
	Input  float64 `yaml:"input" json:"input"`
	Cached float64 `yaml:"cached" json:"cached"` // of input tokens that the endpoint had cached
	Output float64 `yaml:"output" json:"output"`
}

// Cost is the price of a usage in USD. Tokens that are in the total alone are thoughts, which are
// billed as output.
func (p Price) Cost(u Usage) float64 {
	output := max(u.Completion, u.Total-u.Prompt)
	return (float64(u.Prompt-u.Cached)*p.Input + float64(u.Cached)*p.Cached + float64(output)*p.Output) / 1e6
}

// PriceTable is a list of prices as they were published on one day.
type PriceTable struct {
	Date   string           `yaml:"date" json:"date"`
	Models map[string]Price `yaml:"models" json:"models"`
}

//go:embed prices.yaml
var pricesYAML []byte

// DefaultPrices returns the table inside the binary.
func DefaultPrices() (PriceTable, error) { return ParsePrices(pricesYAML) }

// ParsePrices reads a table in the format of prices.yaml. An unknown key is an error.
func ParsePrices(b []byte) (PriceTable, error) {
	var t PriceTable
	d := yaml.NewDecoder(bytes.NewReader(b))
	d.KnownFields(true)
	if err := d.Decode(&t); err != nil {
		return PriceTable{}, fmt.Errorf("read price table: %w", err)
	}
	for name, p := range t.Models {
		if p.Input < 0 || p.Cached < 0 || p.Output < 0 {
			return PriceTable{}, fmt.Errorf("read price table: %s has a negative price", name)
		}
	}
	return t, nil
}

// snapshot matches the date that pins a model's version: gpt-4o-2024-08-06, claude-haiku-4-5-20251001.
var snapshot = regexp.MustCompile(`-20\d\d-?\d\d-?\d\d$`)

// Lookup finds the price of a model: by its name, without the date of a snapshot, and without the
// vendor that routers put in front. A model that is not in the table has no price, never a guessed one.
func (t PriceTable) Lookup(model string) (Price, bool) {
	names := []string{model, snapshot.ReplaceAllString(model, "")}
	if _, name, ok := strings.Cut(model, "/"); ok {
		names = append(names, name, snapshot.ReplaceAllString(name, ""))
	}
	for _, name := range names {
		if p, ok := t.Models[name]; ok {
			return p, true
		}
	}
	return Price{}, false
}
