package assay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"assay/corpus"
	"assay/fetch"
	"assay/pipeline"
	"assay/planner"
)

// Values of PlannerRecipe.Posts.
const (
	PostsPool        = "pool"         // imported posts; any other is read as the page at its address
	PostsOAuth       = "oauth"        // Reddit's interface, by the credentials of runtime.reddit
	PostsArcticShift = "arctic_shift" // the archive at runtime.arctic_shift
)

// RedditAccess is how Reddit's interface is asked. It takes the credentials of a client that Reddit
// approved; they are named here and stand in the environment.
type RedditAccess struct {
	ClientIDEnv     string `yaml:"client_id_env" json:"client_id_env"`         // environment variable that holds the client's id
	ClientSecretEnv string `yaml:"client_secret_env" json:"client_secret_env"` // the one that holds its secret
	UserAgent       string `yaml:"user_agent" json:"user_agent"`               // <platform>:<app id>:<version> (by /u/<name>)
	Base            string `yaml:"base" json:"base"`
	TokenURL        string `yaml:"token_url" json:"token_url"`
}

// InterfaceAddress is where an interface without credentials is.
type InterfaceAddress struct {
	Base string `yaml:"base" json:"base"`
}

// SearXNGAccess is where your own SearXNG is.
type SearXNGAccess struct {
	Base   string `yaml:"base" json:"base"`
	AtOnce int    `yaml:"at_once" json:"at_once"` // searches that it takes at once; 0 for one
}

// asksReddit reports whether a build by this recipe needs the credentials of runtime.reddit.
func (r Recipe) asksReddit() bool {
	return slices.Contains(r.engines(), "reddit") || r.Planner.Posts == PostsOAuth
}

func (r Recipe) searches() bool { return slices.Contains(r.Evidence, EvidenceSearch) }

// asksInterfaces reports whether a build by this recipe may ask one of the planner's interfaces.
func (r Recipe) asksInterfaces() bool {
	return slices.ContainsFunc(r.engines(), func(e string) bool { return e != "local" }) || r.Planner.Posts != PostsPool
}

// checkInterfaces refuses settings of the planner's interfaces that cannot work, where they are used.
func (c *Config) checkInterfaces(bad func(key, format string, args ...any)) {
	r, rt := c.Recipe, c.Runtime
	for _, s := range r.Planner.Subreddits {
		if !planner.ValidSubreddit(s) {
			bad("recipe.planner.subreddits", "%q is no name of a subreddit, which is written without r/", s)
		}
	}
	if l := r.Planner.Language; l != "" && !planner.ValidLanguage(l) {
		bad("recipe.planner.language", "%q is no language like en", l)
	}
	if r.asksReddit() {
		c.checkReddit(bad)
	}
	if r.Planner.Posts == PostsArcticShift || slices.Contains(r.engines(), "arctic_shift") {
		checkBase("runtime.arctic_shift.base", rt.ArcticShift.Base, rt, bad)
	}
	if slices.Contains(r.engines(), "arctic_shift") && len(r.Planner.Subreddits) == 0 {
		bad("recipe.planner.subreddits", "the archive is searched in named subreddits alone, and none is named")
	}
	if slices.Contains(r.engines(), "searxng") {
		checkBase("runtime.searxng.base", rt.SearXNG.Base, rt, bad)
	}
	c.checkSearch(bad)
}

// checkSearch refuses settings of runtime.search that cannot work: names, secrets and prices of all, the
// rest of the one that is searched through.
func (c *Config) checkSearch(bad func(key, format string, args ...any)) {
	known := planner.Accesses()
	for name, at := range c.Runtime.Search {
		key := "runtime.search." + name
		if _, ok := known[name]; !ok {
			bad(key, "%q is no backend with settings here; known are %s", name, strings.Join(sortedKeys(known), ", "))
			continue
		}
		if at.KeyEnv != "" && !variableName.MatchString(at.KeyEnv) {
			bad(key+".key_env", "it names the environment variable that holds the key, e.g. %s; if this is the key, take it out of the file", cmp.Or(known[name].KeyEnv, "SEARCH_API_KEY"))
		}
		if !(at.USDPer1000 >= 0 && at.USDPer1000 <= maxPrice) {
			bad(key+".usd_per_1000", "a price is between 0 and %d", int(maxPrice))
		}
		if at.AtOnce < 0 || at.AtOnce > maxWorkers {
			bad(key+".at_once", "%d is not between 0 and %d", at.AtOnce, maxWorkers)
		}
		if _, err := time.Parse(time.DateOnly, at.PriceDate); at.PriceDate != "" && err != nil {
			bad(key+".price_date", "%q is no date like 2026-11-30", at.PriceDate)
		}
	}
	for _, name := range c.Recipe.engines() {
		c.checkEngine(name, bad)
	}
}

// checkEngine refuses settings of a backend that the recipe searches with.
func (c *Config) checkEngine(name string, bad func(key, format string, args ...any)) {
	at, ok := c.Runtime.Search[name]
	b, err := planner.BackendNamed(name)
	if !ok || err != nil {
		return
	}
	key := "runtime.search." + name
	if checkBase(key+".base", at.Base, c.Runtime, bad) && at.KeyEnv != "" && !strings.HasPrefix(at.Base, "https://") && !listed(at.Base, c.Runtime) {
		bad(key+".base", "keys are sent over https alone, or to a host of runtime.allow_private")
	}
	switch {
	case b.Off && !at.On:
		bad(key+".on", "this backend is off unless it is true, which is for those who know what it costs and allows: %s", b.Doc)
	case b.Access.KeyEnv != "" && at.KeyEnv == "":
		bad(key+".key_env", "it names the environment variable that holds the key")
	case name == "google_cse" && at.EngineID == "":
		bad(key+".engine_id", "it names the programmable search engine (cx) to ask")
	}
}

func (c *Config) checkReddit(bad func(key, format string, args ...any)) {
	access := c.Runtime.Reddit
	for key, name := range map[string]string{"client_id_env": access.ClientIDEnv, "client_secret_env": access.ClientSecretEnv} {
		if name == "" {
			bad("runtime.reddit."+key, "it names the environment variable that holds what Reddit gave your approved client")
		}
	}
	if !planner.RedditUserAgent.MatchString(access.UserAgent) {
		bad("runtime.reddit.user_agent", "%q is not what Reddit asks for: <platform>:<app id>:<version> (by /u/<your name there>), e.g. linux:org.example.assay:1.0 (by /u/example)", access.UserAgent)
	}
	for key, address := range map[string]string{"runtime.reddit.base": access.Base, "runtime.reddit.token_url": access.TokenURL} {
		if checkBase(key, address, c.Runtime, bad) && !strings.HasPrefix(address, "https://") && !listed(address, c.Runtime) {
			bad(key, "secrets are sent over https alone, or to a host of runtime.allow_private")
		}
	}
}

// checkBase refuses what is no address, or one on this machine or network that the guard would refuse. What
// carries a secret is checkCredentials' to tell, and not repeated here.
func checkBase(key, address string, rt Runtime, bad func(key, format string, args ...any)) bool {
	if credential(address) != "" {
		return false
	}
	host := corpus.Host(address)
	if host == "" || !strings.HasPrefix(address, "http") {
		bad(key, "%q is no address like https://search.example", address)
		return false
	}
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	if (host == "localhost" || err == nil && (ip.IsLoopback() || ip.IsPrivate())) && !listed(address, rt) {
		bad(key, "%s is on this machine or network: name its host:port in runtime.allow_private too", address)
		return false
	}
	return true
}

// listed reports whether an address is one of runtime.allow_private or runtime.resolve.
func listed(address string, rt Runtime) bool {
	if _, ok := rt.Resolve[corpus.Host(address)]; ok {
		return true
	}
	_, rest, _ := strings.Cut(corpus.CanonicalURL(address), "://")
	hostPort, _, _ := strings.Cut(rest, "/")
	return slices.Contains(rt.AllowPrivate, hostPort)
}

// openInterfaces makes the clients of the planner's interfaces. Nothing is asked before it is needed.
func (w *Workspace) openInterfaces(o OpenOptions) {
	rt := w.Config.Runtime
	w.reddit = planner.NewReddit(planner.RedditOptions{
		Web: w.fetch, ClientID: rt.Reddit.ClientIDEnv, ClientSecret: rt.Reddit.ClientSecretEnv, UserAgent: rt.Reddit.UserAgent,
		Base: rt.Reddit.Base, Token: rt.Reddit.TokenURL, Getenv: os.Getenv, Now: o.Now,
	})
	w.arctic = planner.NewArcticShift(w.fetch, rt.ArcticShift.Base)
	if rt.SearXNG.Base != "" {
		w.searxng = planner.NewSearXNG(w.fetch, rt.SearXNG.Base)
		w.searxng.AtOnce = rt.SearXNG.AtOnce
	}
}

// planEnv is what a plan reaches the world through.
func (w *Workspace) planEnv() planner.Env {
	env := planner.Env{
		Model: w.llm, Index: w.index, Document: w.pooled, Read: w.readDocument, Reddit: w.reddit, ArcticShift: w.arctic, SearXNG: w.searxng,
		Web: w.fetch, Access: w.Config.Runtime.Search, Getenv: os.Getenv, Now: w.now,
	}
	if w.reddit != nil && w.Config.Recipe.Planner.Posts == PostsOAuth {
		env.Thread = w.thread
	}
	return env
}

// postReader reads the posts that are not imported; nil where they are not read by their ids.
func (w *Workspace) postReader() planner.PostReader {
	switch w.Config.Recipe.Planner.Posts {
	case PostsOAuth:
		return w.reddit
	case PostsArcticShift:
		return w.arctic
	}
	return nil
}

// post reads a post or comment of Reddit by its fullname. Beside are those that will be read next; they
// change nothing but the number of requests.
func (s stages) post(beside []string) pipeline.Stage[string, corpus.Document] {
	return pipeline.Stage[string, corpus.Document]{
		Name: KindDocument + "/reddit", Version: planner.PostVersion, Recipe: s.w.Config.Recipe.Planner.Posts,
		Do: func(ctx context.Context, fullname string) (corpus.Document, error) {
			return s.w.postReader().Document(ctx, fullname, beside)
		},
	}
}

// withdrawn reports whether Reddit's interface, or the archive that is asked in its place, was asked about
// an imported post and says that it is deleted or removed.
func (w *Workspace) withdrawn(id string) (bool, error) {
	fullname, ok := redditFullname(id)
	if reader := w.postReader(); ok && reader != nil {
		s, err := w.fetch.CallStanding(reader.Request(fullname))
		if err != nil {
			return false, fmt.Errorf("read what is known of %s: %w", id, err)
		}
		return s.Gone(), nil
	}
	return false, nil
}

// source reads a document of a backend that has its own, by its id.
func (s stages) source(b planner.Backend) pipeline.Stage[string, corpus.Document] {
	return pipeline.Stage[string, corpus.Document]{
		Name: KindDocument + "/" + b.Name, Version: b.DocumentVersion,
		Do: func(ctx context.Context, id string) (corpus.Document, error) {
			return b.Document(ctx, s.w.planEnv(), id, nil)
		},
	}
}

// redditFullname is the fullname inside the id of a document of Reddit's.
func redditFullname(id string) (string, bool) { return strings.CutPrefix(id, corpus.RedditID("")) }

// documentAt is the id of the document that a link leads to.
func documentAt(address string) string {
	if fullname, ok := corpus.RedditFullname(address); ok {
		return corpus.RedditID(fullname)
	}
	return corpus.DocumentID(address)
}

// found is the document with an id: of the pool, by its id where the recipe reads posts so, or the page
// at its address. Beside are ids of documents that will be asked for next.
func (k *walk) found(ctx context.Context, id, url string, beside []string) (corpus.Document, bool, error) {
	if k.visit.document != nil {
		if err := k.visit.document(id, url); err != nil {
			return corpus.Document{}, false, err
		}
	}
	d, ok, err := k.w.pooled(id)
	if err != nil {
		return d, false, fmt.Errorf("read document %s: %w", id, err)
	}
	if ok {
		// What Reddit says of a post since it was imported counts more than the import.
		gone, err := k.w.withdrawn(id)
		if err != nil || !gone {
			return d, err == nil, err
		}
		return d, false, k.withhold("document", id, fetch.ReasonGone)
	}
	if fullname, ok := redditFullname(id); ok && k.w.postReader() != nil {
		stage := k.stages.post(beside)
		k.e.Expect(stage.Name, 1)
		d, err := pipeline.Run(ctx, k.e, stage, fullname, fullname)
		_, ok, err := k.settled(ctx, "document", err)
		return d, ok, err
	}
	if b, ok := planner.SourceOf(id); ok {
		stage := k.stages.source(b)
		k.e.Expect(stage.Name, 1)
		d, err := pipeline.Run(ctx, k.e, stage, id, id)
		_, ok, err := k.settled(ctx, "document", err)
		return d, ok, err
	}
	if url == "" {
		return d, false, k.withhold("document", id, "not imported")
	}
	return k.fetched(ctx, url)
}

// unread are the fullnames of found posts that are not imported, in order.
func (k *walk) unread(found []evidence) ([]string, error) {
	var out []string
	if k.w.postReader() == nil {
		return nil, nil
	}
	for _, ev := range found {
		fullname, ok := redditFullname(ev.documentID)
		if !ok {
			continue
		}
		if has, err := k.w.tables.Pool.Has(ev.documentID); err != nil {
			return nil, fmt.Errorf("read document %s: %w", ev.documentID, err)
		} else if !has {
			out = append(out, fullname)
		}
	}
	return out, nil
}

// importThread reads a thread of Reddit by the id or address of its post.
func importThread(ctx context.Context, w *Workspace, name string, _ ImportOptions) (*ImportReport, error) {
	r := newImportReport("thread", name)
	fullname := strings.ToLower(name)
	if strings.Contains(name, "/") {
		var ok bool
		if fullname, ok = corpus.RedditFullname(name); !ok {
			return r, fmt.Errorf("%s names no post of Reddit", name)
		}
	} else if !strings.HasPrefix(fullname, "t3_") {
		fullname = "t3_" + fullname
	}
	var problems []string
	w.Config.checkReddit(func(key, format string, args ...any) {
		problems = append(problems, ConfigName+": "+key+": "+fmt.Sprintf(format, args...))
	})
	if len(problems) > 0 {
		slices.Sort(problems)
		return r, errors.New(strings.Join(problems, "\n"))
	}
	p, err := w.newPool(r)
	if err != nil {
		return r, err
	}
	t, err := w.reddit.Thread(ctx, fullname)
	if err != nil {
		return r, err
	}
	for _, d := range slices.Concat([]corpus.Document{t.Post}, t.Comments, t.Gone) { // what is gone takes the place of what an older dump brought
		if err := p.add(ctx, d); err != nil {
			return r, err
		}
	}
	if err := p.done(); err != nil {
		return r, err
	}
	r.Counts["posts"], r.Counts["comments"] = 1, len(t.Comments)
	r.Counts["comments deleted"], r.Counts["comments removed"] = t.Deleted, t.Removed
	if !t.Complete() {
		r.Counts["comments unresolved"] = len(t.Unresolved)
		r.problem("thread %s: %s", fullname, t.Record())
	}
	for _, fault := range t.Faults {
		r.problem("thread %s: %s", fullname, fault)
	}
	return r, w.note(t.Post.ID, t.Record())
}

// note writes a remark beside a document of the pool; it replaces the one before.
func (w *Workspace) note(id, remark string) error {
	pooled, ok, err := w.tables.Pool.Get(id)
	if err != nil || !ok {
		return err
	}
	pooled.Notes = []string{remark}
	return w.tables.Pool.Put(id, pooled)
}
