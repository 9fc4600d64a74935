package llm

import (
	"net/url"
	"strings"
)

// Profile is how a family of OpenAI-compatible endpoints differs from its relatives.
type Profile struct {
	Name       string
	Doc        string
	Proven     string // captured, documented or unproven
	Reference  string
	TokenField string                  // name of the field that bounds an answer
	Sampling   func(model string) bool // whether temperature and top_p are taken; nil: always
	Hottest    float64                 // a higher temperature is sent as this one; 0: no bound
	Schema     SchemaMode
	Seed       bool   // whether seed is taken
	KeyHeader  string // header that carries the key; empty: Authorization, as a bearer token
	Mind       string // what whoever runs such an endpoint should see to; shown by assay doctor

	Batch *BatchAPI // how requests are ordered in files; nil: the endpoints have no batch API that we know

	// Address completes the base address for a path such as /chat/completions; nil appends the path.
	Address func(base url.URL, model, path string) url.URL
}

// BatchAPI is the Files and Batches interface of OpenAI as one family of endpoints has it.
type BatchAPI struct {
	Requests int     // most requests in one file
	Bytes    int64   // most bytes of one file
	URL      string  // that a line of the file names
	Discount float64 // share of the usual price that is paid, where the price table names none
	Reads    bool    // the service reads a file before a batch can be made of it, and its status is waited for
}

// Names of the field that bounds an answer. Some servers ignore the newer one without a word, some
// models reject the older one.
const (
	MaxTokensField           = "max_tokens"
	MaxCompletionTokensField = "max_completion_tokens"
)

// Profiles lists every profile, sorted by name: one file each.
var Profiles = []Profile{
	anthropic,
	azure,
	deepseek,
	gemini,
	generic,
	litellm,
	llamaCPP,
	ollama,
	openaiProfile,
	vllm,
}

// address is where a path of the endpoint is. A query in the base address stays in every request.
func (r *route) address(model, path string) (*url.URL, error) {
	u, err := url.Parse(r.at.BaseURL)
	if err != nil {
		return nil, err
	}
	to := below
	if r.profile.Address != nil {
		to = func(base url.URL, path string) url.URL { return r.profile.Address(base, model, path) }
	}
	*u = to(*u, path)
	return u, nil
}

// below appends a path to an address.
func below(base url.URL, path string) url.URL {
	base.Path, base.RawPath = strings.TrimRight(base.Path, "/")+path, ""
	return base
}
