package llm

// gemini fits the compatible endpoint under generativelanguage.googleapis.com/v1beta/openai. Errors
// come in a one-element array, the wait stands in their details, and thoughts are hidden in the total.
var gemini = Profile{
	Name:       "gemini",
	Doc:        "Gemini's compatible endpoint: json_schema, no seed; errors in an array",
	Proven:     "captured",
	Reference:  "recorded replies (plain, tool call, native quota error); ai.google.dev/gemini-api/docs/openai",
	TokenField: MaxTokensField,
	Schema:     SchemaJSON,
	Mind:       "it may give an object's fields in another order than the schema, so that a reason can come after the answer; thoughts count as output",
}
