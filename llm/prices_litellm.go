package llm

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
)

// ReadLiteLLMPrices reads the list of models that the LiteLLM project publishes
// (model_prices_and_context_window.json): one object of entries by model, with USD per token in
// input_cost_per_token, output_cost_per_token and cache_read_input_token_cost. Models that are billed
// by anything but tokens of text are counted by their mode in skipped. Prices of batches are read too;
// others, for priority or very long prompts, are not. An entry that cannot be read is a problem; the
// error says that the whole is no such list. The list has no date of its own.
func ReadLiteLLMPrices(b []byte) (models map[string]Price, skipped map[string]int, problems []string, err error) {
	var list map[string]json.RawMessage
	if err := json.Unmarshal(b, &list); err != nil {
		return nil, nil, nil, fmt.Errorf("read LiteLLM's list of prices: %w", err)
	}
	models, skipped = map[string]Price{}, map[string]int{}
	for name, raw := range list {
		if name == "sample_spec" { // its fields say what they mean in words
			continue
		}
		p, why, err := litellmPrice(raw)
		switch {
		case err != nil:
			problems = append(problems, fmt.Sprintf("%q: %v", name, err))
		case why != "":
			skipped[why]++
		default:
			models[name] = p
		}
	}
	slices.Sort(problems)
	if len(models) == 0 {
		return nil, skipped, problems, fmt.Errorf("read LiteLLM's list of prices: none of its %d entries has a price by token", len(list))
	}
	return models, skipped, problems, nil
}

// litellmPrice reads one entry; why says what else it is where it is no text model with a price.
func litellmPrice(raw json.RawMessage) (p Price, why string, err error) {
	var e struct {
		Mode     string   `json:"mode"`
		Input    *float64 `json:"input_cost_per_token"`
		Output   *float64 `json:"output_cost_per_token"`
		Cached   *float64 `json:"cache_read_input_token_cost"`
		InBatch  *float64 `json:"input_cost_per_token_batches"`
		OutBatch *float64 `json:"output_cost_per_token_batches"`
	}
	if err := json.Unmarshal(raw, &e); err != nil {
		return p, "", err
	}
	switch e.Mode {
	case "chat", "completion", "responses":
	case "embedding":
		if e.Output == nil {
			e.Output = new(float64)
		}
	case "":
		return p, "no mode", nil
	default:
		return p, "mode " + e.Mode, nil
	}
	if e.Input == nil || e.Output == nil {
		return p, "no price by token", nil
	}
	p.Input, p.Cached, p.Output = perMillion(*e.Input), perMillion(*e.Input), perMillion(*e.Output)
	if e.Cached != nil {
		p.Cached = perMillion(*e.Cached)
	}
	if e.InBatch != nil && e.OutBatch != nil {
		p.Batch = &BatchPrice{perMillion(*e.InBatch), perMillion(*e.OutBatch)}
	}
	return p, "", p.check()
}

// perMillion turns USD per token into USD per million tokens, without the noise of the last binary digits.
func perMillion(perToken float64) float64 { return math.Round(perToken*1e15) / 1e9 }
