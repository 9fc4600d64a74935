package llm

// generic fits what most servers have in common, Mistral, Groq, OpenRouter and Together among them. A
// server that takes json_object alone, or no response_format, or the newer token field, is told so by
// the settings of its endpoint.
var generic = Profile{
	Name:       "generic",
	Doc:        "any OpenAI-compatible server: max_tokens, temperature, json_schema, seed",
	Proven:     "captured",
	Reference:  "recorded replies of twelve services; requests as their documentation has them",
	TokenField: MaxTokensField,
	Schema:     SchemaJSON,
	Seed:       true,
}
