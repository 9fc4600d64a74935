package llm

// Profile is how a family of OpenAI-compatible endpoints differs from its relatives.
type Profile struct {
	Name       string
	Doc        string
	Proven     string // captured, documented or unproven
	Reference  string
	TokenField string                  // name of the field that bounds an answer
	Sampling   func(model string) bool // whether temperature and top_p are taken; nil: always
	Schema     SchemaMode
	Seed       bool // whether seed is taken
}

// Names of the field that bounds an answer. Some servers ignore the newer one without a word, some
// models reject the older one.
const (
	MaxTokensField           = "max_tokens"
	MaxCompletionTokensField = "max_completion_tokens"
)

// Profiles lists every profile, sorted by name: one file each.
var Profiles = []Profile{
	generic,
	openaiProfile,
}
