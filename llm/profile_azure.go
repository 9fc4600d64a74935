package llm

import (
	"net/url"
	"strings"
)

// azure fits Azure OpenAI under both of its addresses. The base address is
//
//	https://NAME.openai.azure.com/openai/v1                    the model is the deployment's name
//	https://NAME.openai.azure.com?api-version=2024-10-21       likewise; the address is completed
//	https://NAME.services.ai.azure.com/models?api-version=...  anything with a path is kept
//
// Files and batches are the resource's, whatever deployment the address names; the model that a line of a file asks is
// the name of a deployment of a batch type. A file is pending until the service has read it.
//
// A prompt that its filter withholds is a 400, an answer a 200 without a message; both are outcomes.
var azure = Profile{
	Name:       "azure",
	Doc:        "Azure OpenAI, deployment or /openai/v1 addresses: api-key header, both filter forms",
	Proven:     "captured",
	Reference:  "recorded replies of deployments and of /models; learn.microsoft.com/azure/ai-services/openai/reference",
	TokenField: MaxCompletionTokensField,
	Sampling:   takesTemperature,
	Schema:     SchemaJSON,
	Seed:       true,
	Batch:      &BatchAPI{Requests: 100_000, Bytes: 200_000_000, URL: "/chat/completions", Discount: 0.5, Reads: true},
	KeyHeader:  "api-key",
	Mind:       "api-versions before 2024-09 want token_field: max_tokens; a deployment that hides a reasoning model behind another name takes no temperature; --batch wants the name of a deployment of a batch type (Global-Batch) as model, and an api-version from 2024-10 on",
	Address:    azureAddress,
}

func azureAddress(base url.URL, model, path string) url.URL {
	ordering := strings.HasPrefix(path, "/files") || strings.HasPrefix(path, "/batches")
	if at, _, deployed := strings.Cut(base.Path, "/deployments/"); deployed && ordering {
		base.Path = at
	}
	if p := strings.Trim(base.Path, "/"); p == "" || p == "openai" {
		base.Path = "/openai/v1"
		if base.Query().Has("api-version") {
			base.Path = "/openai"
			if path != modelsPath && !ordering {
				base.Path += "/deployments/" + model
			}
		}
	}
	return below(base, path)
}
