package llm

// vllm fits vLLM's server. The schema goes into response_format, since the guided_* fields of older
// versions are ignored without a word by newer ones.
var vllm = Profile{
	Name:       "vllm",
	Doc:        "vLLM's server: json_schema in response_format (never guided_*), seed",
	Proven:     "captured",
	Reference:  "recorded replies (plain, json_schema behind a host, vectors); docs.vllm.ai/en/latest/features/structured_outputs",
	TokenField: MaxTokensField,
	Schema:     SchemaJSON,
	Seed:       true,
	Mind:       "a model can write white space without end inside an object, so max_tokens matters; thoughts need the server's --reasoning-parser, or they stand in the answer",
}
