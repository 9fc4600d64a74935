package llm

// llamaCPP fits llama.cpp's own server. It turns the schema into a grammar, so an answer either fits or
// reaches the token bound.
var llamaCPP = Profile{
	Name:       "llama_cpp",
	Doc:        "llama.cpp's server: json_schema as a grammar, seed, no key unless it was started with one",
	Proven:     "captured",
	Reference:  "recorded replies; requests tried on a running server (make e2e-model); tools/server/README.md of llama.cpp",
	TokenField: MaxTokensField,
	Schema:     SchemaJSON,
	Seed:       true,
	Mind:       "its context is shared by its slots: start it with --ctx-size at least --parallel times (document_chars / 3 + 2000)",
}
