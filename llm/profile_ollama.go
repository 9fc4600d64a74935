package llm

// ollama fits Ollama's /v1. It ignores max_completion_tokens without a word, and so bounds nothing.
var ollama = Profile{
	Name:       "ollama",
	Doc:        "Ollama's /v1: max_tokens alone, json_schema, seed, no key",
	Proven:     "captured",
	Reference:  "recorded replies (object, tool call, vectors, context error); docs.ollama.com/api/openai-compatibility",
	TokenField: MaxTokensField,
	Schema:     SchemaJSON,
	Seed:       true,
	Mind:       "its context is short by default and long documents are cut without a word: set OLLAMA_CONTEXT_LENGTH (num_ctx) to at least document_chars / 3 + 2000; loading a model can take minutes, see timeout",
}
