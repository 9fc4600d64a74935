package llm

// deepseek fits api.deepseek.com. It knows json_object alone and wants the word json in the prompt,
// which the written schema brings. An empty answer is repaired like any other that cannot be read.
var deepseek = Profile{
	Name:       "deepseek",
	Doc:        "api.deepseek.com: json_object with the schema in the prompt, no seed; answers can be empty",
	Proven:     "captured",
	Reference:  "recorded replies (thoughts, context error); requests by api-docs.deepseek.com/guides/json_mode",
	TokenField: MaxTokensField,
	Schema:     SchemaObject,
}
