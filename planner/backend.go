package planner

import (
	"context"
	"fmt"
	"strings"
	"time"

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
	Access    *Access // how it comes; nil for a backend with settings of its own
	Dates     bool    // it keeps to Query.From and To
	Off       bool    // asked only where Access.On is set
	Ends      string  // day from which its owner answers no more, 2006-01-02; "" if none is known
	Search    func(ctx context.Context, env Env, q Query) ([]Result, error)

	// Document reads one of the backend's own documents, whose ids begin with its name and a colon; nil for
	// one that knows addresses alone. What is not to be had is an exclusion. Beside are ids that will be
	// asked for next: where they can be had with the same request, they are.
	Document        func(ctx context.Context, env Env, id string, beside []string) (corpus.Document, error)
	DocumentVersion int // a new one reads every document again
}

// Backends lists the search engines by name.
var Backends = []Backend{
	arcticShift,
	arxiv,
	brave,
	commoncrawl,
	factCheckTools,
	gdelt,
	googleCSE,
	local,
	reddit,
	searxng,
	serpapi,
	serper,
	tavily,
	wayback,
	wikipedia,
	xPosts,
}

// Find searches, where the backend may be asked, and for what. A query with dates is refused by one
// that cannot keep to them.
func (b Backend) Find(ctx context.Context, env Env, q Query) ([]Result, error) {
	refuse := func(reason, detail string) ([]Result, error) {
		return nil, &APIError{API: b.Name, Asked: fmt.Sprintf("results about %q", q.Text), Reason: reason, Detail: detail}
	}
	switch {
	case b.Off && !env.Access[b.Name].On:
		return refuse(ReasonNotConfigured, "it is off unless runtime.search."+b.Name+".on is true, which is for those who know what it costs and allows")
	case b.Ended(env.now()):
		return refuse(ReasonNotConfigured, "it ended on "+b.Ends+": choose another backend")
	case q.From+q.To != "" && !b.Dates:
		return refuse(ReasonBadRequest, "it cannot be kept to dates")
	}
	return b.Search(ctx, env, q)
}

// Ended reports whether the owner of the interface answers no more.
func (b Backend) Ended(now time.Time) bool {
	return b.Ends != "" && now.UTC().Format(time.DateOnly) >= b.Ends
}

// Retired says why an engine that people still name cannot be asked, "" for any other name.
func Retired(name string) string {
	switch strings.ToLower(name) {
	case "bing", "bing_v7", "azure_bing":
		return "Bing's search interface was retired on 2025-08-11"
	case "google_cse_siterestrict":
		return "the site-restricted form of Google Custom Search was retired in January 2025"
	}
	return ""
}

// SourceOf finds the backend that reads the document with an id.
func SourceOf(id string) (Backend, bool) {
	for _, b := range Backends {
		if b.Document != nil && strings.HasPrefix(id, b.Name+":") {
			return b, true
		}
	}
	return Backend{}, false
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
	if why := Retired(name); why != "" {
		return Backend{}, fmt.Errorf("search engine %q is no more: %s; known are %s", name, why, strings.Join(known, ", "))
	}
	return Backend{}, fmt.Errorf("search engine %q is unknown; known are %s", name, strings.Join(known, ", "))
}

// Env is what a plan reaches the world through.
type Env struct {
	Model Model        // writes queries; may be nil where Settings.Variants is 0
	Index *index.Index // what the local backend searches

	// Document returns a document that is stored already; nil knows none. Settings.Gate reads it.
	Document func(id string) (corpus.Document, bool, error)

	// AsOf is the day as of which the claim is checked, 2006-01-02; "" for no bound (methods, decision 3).
	AsOf string

	// Read returns a document wherever it is, by its id and address, for the agentic search. One that
	// cannot be evidence (gone, blocked, no text) is a corpus.ExcludedError.
	Read func(ctx context.Context, id, url string) (corpus.Document, error)

	// Thread returns the thread of a post by the document id of the post; nil where nobody is asked for it.
	Thread func(ctx context.Context, id string) (Thread, error)

	// Memory is what earlier runs kept for other claims, and Snapshot how much of it the claim may know
	// (methods, decision 4).
	Memory   *Memory
	Snapshot Snapshot

	// The interfaces that the other backends ask; nil for one that is not set up.
	Reddit      *Reddit
	ArcticShift *ArcticShift
	SearXNG     *SearXNG

	// What the backends with an Access ask.
	Web    Web
	Access map[string]Access   // by backend
	Getenv func(string) string // reads the environment
	Now    func() time.Time    // nil means time.Now
}

// A Query is one search.
type Query struct {
	Text    string
	Domains []string // registrable domains that a result must be on; empty means everywhere
	Kinds   []string // kinds of documents, for backends that know them; empty means all
	K       int      // results wanted

	Subreddits []string // where backends that know them search; empty means everywhere
	Language   string   // of an encyclopedia, e.g. de; empty means en

	// Days between which a result was published, or first seen where a backend knows no more, both ends
	// included, 2006-01-02; an empty end is open. See Backend.Dates.
	From, To string
}

// A Result is one line of a search engine's answer. The first is the best.
type Result struct {
	DocumentID string // where the engine knows our documents, else ""
	URL        string

	// What the engine says besides, "" where it says nothing.
	Title     string
	Text      string // a snippet, or what it takes for the page's text
	Published string // RFC 3339, or a date, as far as the engine tells it in such a form
	Seen      string // when the engine first met it, RFC 3339; this is no date of publication
	Via       string // the title that led here, where that is not the document's own
	Drop      string // why it is no evidence, "" if it may be
}
