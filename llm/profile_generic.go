package llm

// generic fits what most servers have in common: vLLM, llama.cpp, Ollama, LiteLLM, Mistral, Groq,
// OpenRouter, Together, Gemini's and Azure's compatible endpoints. A server that takes json_object
// alone (DeepSeek), or no response_format, is told so by its endpoint's Schema.
var generic = Profile{
	Name:       "generic",
	Doc:        "any OpenAI-compatible server: max_tokens, temperature, json_schema, seed",
	Proven:     "captured",
	Reference:  "recorded replies of twelve services; requests as their documentation has them",
	TokenField: MaxTokensField,
	Schema:     SchemaJSON,
	Seed:       true,
}
