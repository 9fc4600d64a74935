package llm

// litellm fits a LiteLLM proxy, which forwards to whatever stands behind it.
var litellm = Profile{
	Name:       "litellm",
	Doc:        "a LiteLLM proxy: max_tokens, json_schema and seed as the server behind it takes them",
	Proven:     "captured",
	Reference:  "a recorded reply with its headers; docs.litellm.ai/docs/completion",
	TokenField: MaxTokensField,
	Schema:     SchemaJSON,
	Seed:       true,
	Mind:       "with drop_params: true the proxy removes what the server behind it lacks, temperature and schema too, without a word; set it to false",
}
