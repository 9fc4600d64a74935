package llm

// anthropic fits the compatible endpoint of api.anthropic.com/v1. It drops response_format and seed
// without a word, so the schema is written into the system message, and it brings a temperature above
// 1 down to 1, so that is what is sent and recorded.
var anthropic = Profile{
	Name:       "anthropic",
	Doc:        "api.anthropic.com/v1: no response_format, no seed, temperature up to 1",
	Proven:     "documented",
	Reference:  "docs.anthropic.com/en/api/openai-sdk; of its replies only a native error is recorded",
	TokenField: MaxTokensField,
	Hottest:    1,
	Schema:     SchemaNone,
	Mind:       "nothing but the prompt makes its answers fit the schema; what does not fit is repaired or fails",
}
