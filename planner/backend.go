package planner

import (
	"context"
	"fmt"
	"strings"

	"assay/corpus"
	"assay/index"
)

// A Backend is a search engine.
type Backend struct {
	Name      string
	Version   int
	Doc       string
	Proven    string // captured, documented or unproven
	Reference string
	Search    func(ctx context.Context, env Env, q Query) ([]Result, error)
}

// Backends lists the search engines by name.
var Backends = []Backend{
	arcticShift,
	local,
	reddit,
	searxng,
}

// BackendNamed finds a backend; the error names the known ones.
func BackendNamed(name string) (Backend, error) {
	var known []string
	for _, b := range Backends {
		if b.Name == name {
			return b, nil
		}
		known = append(known, b.Name)
	}
	return Backend{}, fmt.Errorf("search engine %q is unknown; known are %s", name, strings.Join(known, ", "))
}

// Env is what a plan reaches the world through.
type Env struct {
	Model Model        // writes queries; may be nil where Settings.Variants is 0
	Index *index.Index // what the local backend searches

	// Document returns a document that is stored already; nil knows none. Settings.Gate reads it.
	Document func(id string) (corpus.Document, bool, error)

	// The interfaces that the other backends ask; nil for one that is not set up.
	Reddit      *Reddit
	ArcticShift *ArcticShift
	SearXNG     *SearXNG
}

// A Query is one search.
type Query struct {
	Text    string
	Domains []string // registrable domains that a result must be on; empty means everywhere
	Kinds   []string // kinds of documents, for backends that know them; empty means all
	K       int      // results wanted

	Subreddits []string // where backends that know them search; empty means everywhere
}

// A Result is one line of a search engine's answer. The first is the best.
type Result struct {
	DocumentID string // where the engine knows our documents, else ""
	URL        string
}
