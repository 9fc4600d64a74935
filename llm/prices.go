package llm

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Price is what a model costs, in USD per million tokens.
type Price struct {
	Input  float64 `yaml:"input" json:"input"`
	Cached float64 `yaml:"cached" json:"cached"` // of input tokens that the endpoint had cached; as Input where YAML does not tell
	Output float64 `yaml:"output" json:"output"`
	Date   string  `yaml:"date,omitempty" json:"date,omitzero"` // of the price, 2006-01-02; empty: that of its table

	Batch *BatchPrice `yaml:"batch,omitempty" json:"batch,omitempty"` // of answers ordered from a batch API; nil: what the endpoint's profile takes off
}

// BatchPrice is what a model costs through a batch API, in USD per million tokens.
type BatchPrice struct {
	Input  float64 `yaml:"input" json:"input"`
	Output float64 `yaml:"output" json:"output"`
}

// InBatch is the price of an answer from a batch API: the one that is named, or a share of the usual one.
// What the endpoint had cached costs its share of the input.
func (p Price) InBatch(share float64) Price {
	if b := p.Batch; b != nil {
		cached := b.Input
		if p.Input > 0 {
			cached = b.Input * p.Cached / p.Input
		}
		return Price{Input: b.Input, Cached: cached, Output: b.Output, Date: p.Date}
	}
	return Price{Input: p.Input * share, Cached: p.Cached * share, Output: p.Output * share, Date: p.Date}
}

// UnmarshalYAML reads a price. An unknown key is an error.
func (p *Price) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind != yaml.MappingNode {
		return fmt.Errorf("line %d: a price is {input: X, cached: X, output: X}, in USD per million tokens", n.Line)
	}
	for i := 0; i < len(n.Content); i += 2 {
		if key := n.Content[i]; !slices.Contains([]string{"input", "cached", "output", "date", "batch"}, key.Value) {
			return fmt.Errorf("line %d: a price has no %q; it has input, cached, output, date and batch", key.Line, key.Value)
		}
	}
	var said struct {
		Input, Cached, Output *float64
		Date                  string
		Batch                 *struct{ Input, Output *float64 }
	}
	if err := n.Decode(&said); err != nil {
		return err
	}
	if said.Input == nil || said.Output == nil {
		return fmt.Errorf("line %d: a price needs input and output", n.Line)
	}
	if said.Cached == nil {
		said.Cached = said.Input
	}
	*p = Price{Input: *said.Input, Cached: *said.Cached, Output: *said.Output, Date: said.Date}
	if b := said.Batch; b != nil {
		if b.Input == nil || b.Output == nil {
			return fmt.Errorf("line %d: the price of a batch needs input and output", n.Line)
		}
		p.Batch = &BatchPrice{*b.Input, *b.Output}
	}
	return nil
}

// check reports a price that is none.
func (p Price) check() error {
	all := []float64{p.Input, p.Cached, p.Output}
	if p.Batch != nil {
		all = append(all, p.Batch.Input, p.Batch.Output)
	}
	for _, v := range all {
		if !(v >= 0 && v <= dearest) {
			return fmt.Errorf("%g USD per million tokens is no price", v)
		}
	}
	return checkDate(p.Date)
}

// dearest is beyond what anybody asks for a million tokens.
const dearest = 1e6

func checkDate(s string) error {
	if s == "" {
		return nil
	}
	if _, err := time.Parse(time.DateOnly, s); err != nil {
		return fmt.Errorf("%q is no date such as 2026-06-01", s)
	}
	return nil
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
	Source string           `yaml:"source,omitempty" json:"source,omitzero"` // where they were read, for people
	Models map[string]Price `yaml:"models" json:"models"`
}

//go:embed prices.yaml
var pricesYAML []byte

// DefaultPrices returns the table inside the binary.
func DefaultPrices() (PriceTable, error) { return ParsePrices(pricesYAML) }

// ParsePrices reads a table in the format of prices.yaml, the one inside the binary or a workspace's
// own. An unknown key is an error, and so is a table without a date.
func ParsePrices(b []byte) (PriceTable, error) {
	var t PriceTable
	d := yaml.NewDecoder(bytes.NewReader(b))
	d.KnownFields(true)
	if err := d.Decode(&t); err != nil {
		return PriceTable{}, fmt.Errorf("read price table: %w", err)
	}
	if t.Date == "" {
		return PriceTable{}, errors.New(`read price table: it needs a date, e.g. date: "2026-06-01"`)
	}
	if err := checkDate(t.Date); err != nil {
		return PriceTable{}, fmt.Errorf("read price table: date: %w", err)
	}
	for name, p := range t.Models {
		if err := p.check(); err != nil {
			return PriceTable{}, fmt.Errorf("read price table: %s: %w", name, err)
		}
		if p.Date == "" {
			p.Date = t.Date
			t.Models[name] = p
		}
	}
	return t, nil
}

// Over returns a table with the prices of t, and those of below for every other model. Each keeps the
// date of the table that it comes from.
func (t PriceTable) Over(below PriceTable) PriceTable {
	models := maps.Clone(below.Models)
	if models == nil {
		models = map[string]Price{}
	}
	maps.Copy(models, t.Models)
	t.Models = models
	return t
}

// YAML writes a table in the format that ParsePrices reads, one line a model, by name.
func (t PriceTable) YAML() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# USD per million tokens. A model that is named here has this price; any other, that of the table inside\n# the program. date, beside a price, is the day of that price where it is not the table's.\n")
	fmt.Fprintf(&b, "date: %q\n", t.Date)
	if t.Source != "" {
		fmt.Fprintf(&b, "source: %q\n", t.Source)
	}
	b.WriteString("models:\n")
	for _, name := range slices.Sorted(maps.Keys(t.Models)) {
		p := t.Models[name]
		fmt.Fprintf(&b, "  %q: {input: %g, cached: %g, output: %g", name, p.Input, p.Cached, p.Output)
		if p.Date != "" && p.Date != t.Date {
			fmt.Fprintf(&b, ", date: %q", p.Date)
		}
		if p.Batch != nil {
			fmt.Fprintf(&b, ", batch: {input: %g, output: %g}", p.Batch.Input, p.Batch.Output)
		}
		b.WriteString("}\n")
	}
	return b.Bytes()
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
