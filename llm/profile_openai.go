package llm

import (
	"regexp"
	"strings"
)

// openaiProfile fits api.openai.com. Its reasoning models reject max_tokens and any temperature.
var openaiProfile = Profile{
	Name:       "openai",
	Doc:        "api.openai.com: max_completion_tokens; no temperature for reasoning models",
	Proven:     "captured",
	Reference:  "recorded replies, among them the rejection of max_tokens; platform.openai.com/docs/api-reference/chat",
	TokenField: MaxCompletionTokensField,
	Sampling:   takesTemperature,
	Schema:     SchemaJSON,
	Seed:       true,
	Batch:      &BatchAPI{Requests: 50_000, Bytes: 200_000_000, URL: "/v1/chat/completions", Discount: 0.5},
}

var reasoningModel = regexp.MustCompile(`^(o[134]|gpt-[5-9])`)

// takesTemperature tells OpenAI's models apart by name: reasoning models take no sampling settings,
// their chat variants do.
func takesTemperature(model string) bool {
	return !reasoningModel.MatchString(model) || strings.Contains(model, "-chat")
}
