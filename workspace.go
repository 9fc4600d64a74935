package assay

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"assay/annotate"
	analysis "assay/annotate/evidence"
	"assay/corpus"
	"assay/fetch"
	"assay/index"
	"assay/kv"
	"assay/llm"
	"assay/pipeline"
	"assay/planner"
	"assay/scrapers"
)

// Version is what the User-Agent and assay version say.
const Version = "0.1.0"

// A Workspace is an open folder: its configuration, its store and the clients over it. One process
// at a time holds it; another one asks the holder through its socket (see Dial).
type Workspace struct {
	Dir      string
	Config   Config
	Settings []Setting
	Log      *slog.Logger

	store   *kv.Store
	tables  tables
	fetch   *fetch.Client
	llm     *llm.Client
	index   *index.Index
	reddit  *planner.Reddit
	arctic  *planner.ArcticShift
	searxng *planner.SearXNG
	prompts map[string]string
	prices  llm.PriceTable
	models  llm.Options // of llm

	// engine is the one that runs now; the clients tell it what they answered.
	engine struct {
		sync.RWMutex
		*pipeline.Engine
	}
	environ  []string // what the configuration was read with
	leads    sync.Map // lead keys written in this process
	readers  slots
	corrupt  corruptions
	memory   memory
	replays  bool // models answer from the store alone
	replayed bool // nobody is asked, by a build that a dry run foresees either
	now      func() time.Time
	watch    watch
}

// OpenOptions says how a workspace is opened.
type OpenOptions struct {
	Replay    bool // nothing leaves the machine
	Offline   bool // no client is asked for anything: a contact is not needed
	Batch     bool // model calls are ordered from batch APIs where there are some
	Online    bool // something is asked for whatever the recipe says
	Look      bool // a folder that may not be written is looked at as it is
	Environ   []string
	Overrides []Override
	Log       *slog.Logger

	Now   func() time.Time                           // nil means time.Now
	Sleep func(context.Context, time.Duration) error // nil means a timer
}

// stateDir holds everything that is not for people's eyes.
const stateDir = ".assay"

// Open opens a workspace. A workspace that another process holds is a *kv.LockedError.
func Open(ctx context.Context, dir string, o OpenOptions) (_ *Workspace, err error) {
	config, settings, err := LoadConfig(dir, o.Environ, o.Overrides...)
	if err != nil {
		return nil, err
	}
	w := &Workspace{Dir: dir, Config: config, Settings: settings, Log: o.Log, environ: o.Environ, now: o.Now}
	if w.now == nil {
		w.now = time.Now
	}
	if w.Log == nil {
		w.Log = slog.New(slog.DiscardHandler)
	}
	if w.prompts, err = readPrompts(filepath.Join(dir, "prompts")); err != nil {
		return nil, err
	}
	if w.prices, _, err = readPrices(dir); err != nil {
		return nil, err
	}
	state := filepath.Join(dir, stateDir)
	if err := os.MkdirAll(state, 0o755); err != nil {
		return nil, fmt.Errorf("open workspace: %w", err)
	}
	w.store, err = kv.Open(filepath.Join(state, "store"), kv.Options{
		Reserve: config.Runtime.ReserveMiB << 20,
		Holder:  socketPath(dir),
		Look:    o.Look,
		Warn:    func(s string) { w.Log.Warn(s) },
	})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.Close())
		}
	}()
	w.tables = openTables(w.store)
	if err := w.openClients(o); err != nil {
		return nil, err
	}
	if w.store.ReadOnly() {
		return w, w.openIndexToLook(filepath.Join(state, "index"))
	}
	if w.index, err = index.Open(filepath.Join(state, "index")); err != nil {
		return nil, fmt.Errorf("open workspace: %w", err)
	}
	w.index.Answered = w.answered
	return w, w.index.CatchUp(ctx, w.arrivals(w.index.Position()))
}

// openIndexToLook opens the index as it is, and says so where it is behind the imports.
func (w *Workspace) openIndexToLook(dir string) (err error) {
	if w.index, err = index.OpenToLook(dir); err != nil {
		return fmt.Errorf("open workspace: %w", err)
	}
	w.index.Answered = w.answered
	for _, err := range w.arrivals(w.index.Position()) {
		if err != nil {
			return err
		}
		w.Log.Warn("the search index lacks documents that were imported, and may not be written: searches are told as stale", "index", dir)
		break
	}
	return nil
}

// spoolDir is where a walk keeps rows for a while.
func (w *Workspace) spoolDir() string {
	if w.store.ReadOnly() {
		return os.TempDir()
	}
	return filepath.Join(w.Dir, stateDir)
}

func (w *Workspace) openClients(o OpenOptions) (err error) {
	rt, limits := w.Config.Runtime, w.Config.Recipe.Limits
	mode := fetch.Live
	asks := o.Online || w.Config.Recipe.asksTheWeb()
	if !asks {
		if asks, err = w.linksToPages(); err != nil {
			return err
		}
	}
	if o.Replay || o.Offline || !asks {
		mode = fetch.Replay
	}
	if mode == fetch.Live && rt.Contact == "" {
		return fmt.Errorf("%s: runtime.contact is empty: a build that fetches tells sites who asks, so put a mail address or a page there (or build with --replay)", ConfigName)
	}
	w.fetch, err = fetch.New(fetch.Options{
		Store: w.store, Mode: mode, Version: Version, Contact: rt.Contact,
		Delay: gap(rt.Delay), HostDelay: hostDelays(w.Config), RetryAfterCap: rt.RetryAfterCap,
		AllowPrivate: rt.AllowPrivate, Resolve: rt.Resolve, Unstored: []string{rt.Reddit.TokenURL},
		Limits: fetch.Limits{PageBytes: limits.Page, DecompressedBytes: limits.Decompressed, FeedBytes: limits.Feed, Redirects: limits.Redirects},
		Now:    o.Now, Sleep: o.Sleep, Answered: w.answered, Credentials: w.Config.factCheckKey(),
		// One purse for models and searches.
		Reserve: func(ctx context.Context, usd float64) (func(float64), error) { return w.llm.Reserve(ctx, usd) },
	})
	if err != nil {
		return fmt.Errorf("open workspace: %w", err)
	}
	w.openInterfaces(o)
	return w.openModels(o)
}

// openModels makes the client of the models.
func (w *Workspace) openModels(o OpenOptions) (err error) {
	rt := w.Config.Runtime
	w.replays, w.replayed = o.Replay || o.Offline, o.Replay
	endpoints := map[string]llm.Endpoint{}
	for name, e := range rt.Endpoints {
		endpoints[name] = llm.Endpoint{
			Provider: e.Provider, BaseURL: e.BaseURL, KeyEnv: e.KeyEnv, Profile: e.Profile, Schema: e.Schema, TokenField: e.TokenField,
			Concurrency: e.Concurrency, RPM: e.RPM, TPM: e.TPM, Timeout: e.Timeout, Price: e.Price,
			Own: onThisMachine(e.BaseURL),
		}
	}
	w.models = llm.Options{
		Store: w.store, Endpoints: endpoints, Salt: w.Config.Recipe.Salt, Prompts: w.prompts, Prices: w.prices,
		Replay: w.replays, Batch: o.Batch && !w.replays, MaxUSD: rt.MaxUSD, MaxCalls: rt.MaxCalls, RetryAfterCap: rt.RetryAfterCap,
		Now: o.Now, Sleep: o.Sleep, Answered: w.answered, Stage: pipeline.StageOf, Retried: pipeline.Retried, Corrupt: w.corrupt.add,
	}
	w.llm, err = llm.New(w.models)
	if err != nil {
		return fmt.Errorf("open workspace: %w", err)
	}
	return nil
}

// onThisMachine reports whether an address leads to loopback.
func onThisMachine(address string) bool {
	host := corpus.Host(address)
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// asksTheWeb reports whether a build by this recipe may have to fetch.
func (r Recipe) asksTheWeb() bool {
	return slices.Contains(r.Discover, DiscoverListing) || slices.Contains(r.Discover, DiscoverStored) || len(r.Feeds) > 0 || r.Planner.FollowLinks || r.agentic() || r.asksInterfaces()
}

// linksToPages reports whether imported claims have pages for evidence, which a build by this recipe reads.
func (w *Workspace) linksToPages() (bool, error) {
	r := w.Config.Recipe
	if !slices.Contains(r.Discover, DiscoverImported) || !slices.Contains(r.Evidence, EvidencePairs) {
		return false, nil
	}
	for _, table := range scrapers.Tables {
		if !table.Pages {
			continue
		}
		for _, err := range w.tables.Links.Keys(table.Name+"/", "") {
			return err == nil, err
		}
	}
	return false, nil
}

// hostDelays are the least gaps between requests to one host: what the configuration says, and for hosts of
// the recipe's sites that it does not name, what the site asks for where that is more than the general gap.
// A general gap of none is meant for all of them.
func hostDelays(c Config) map[string]time.Duration {
	out := maps.Clone(c.Runtime.HostDelay)
	for _, sr := range c.Recipe.Sites {
		site, err := scrapers.SiteNamed(sr.Name)
		if err != nil || sr.Base != "" || c.Runtime.Delay == 0 || site.Delay <= c.Runtime.Delay {
			continue
		}
		for _, host := range siteHosts(site, "") {
			_, named := out[host]
			if _, domain := out[corpus.RegistrableDomain(host)]; named || domain {
				continue
			}
			if out == nil {
				out = map[string]time.Duration{}
			}
			out[host] = site.Delay
		}
	}
	return out
}

// gap is the least time between two requests as fetch reads it: there, 0 asks for the default.
func gap(d time.Duration) time.Duration {
	if d == 0 {
		return -1
	}
	return d
}

// Close ends the workspace; the store is safe without it too.
func (w *Workspace) Close() error {
	var errs []error
	if w.index != nil {
		errs = append(errs, w.index.Close())
	}
	if w.llm != nil {
		errs = append(errs, w.llm.Close())
	}
	if w.fetch != nil {
		w.fetch.Close()
	}
	if w.store != nil {
		errs = append(errs, w.store.Close())
	}
	return errors.Join(errs...)
}

// answered hands what a client answered to the engine that runs.
func (w *Workspace) answered(ctx context.Context, key string, sum [32]byte) {
	w.engine.RLock()
	defer w.engine.RUnlock()
	if w.engine.Engine != nil {
		w.engine.Answered(ctx, key, sum)
	}
}

// current says what a recorded question answers now: its first part names who answers.
func (w *Workspace) current(ctx context.Context, key string) (pipeline.Sum, bool, error) {
	who, _, _ := strings.Cut(key, "/")
	switch who {
	case "fetch":
		return w.fetch.Current(ctx, key)
	case "llm":
		return w.llm.Current(ctx, key)
	case "index":
		return w.index.Current(ctx, key)
	case "decision":
		return w.decisionSum(key)
	case "pool":
		return w.pooledSum(key)
	}
	return pipeline.Sum{}, false, nil
}

// newEngine makes an engine over the workspace's store.
func (w *Workspace) newEngine(o pipeline.Options) *pipeline.Engine {
	o.Store, o.Workers, o.Current, o.Corrupt = w.store, w.workers(), w.current, w.corrupt.add
	for _, s := range Stages() {
		o.Order = append(o.Order, s.Kind)
	}
	return pipeline.New(o)
}

// runs makes e the engine that the clients report to, until the returned func is called.
func (w *Workspace) runs(e *pipeline.Engine) (done func()) {
	w.engine.Lock()
	defer w.engine.Unlock()
	w.engine.Engine = e
	return func() {
		w.engine.Lock()
		defer w.engine.Unlock()
		w.engine.Engine = nil
	}
}

func (w *Workspace) workers() int {
	if n := w.Config.Runtime.Workers; n > 0 {
		return n
	}
	return defaultWorkers
}

// defaultWorkers is how many claims are worked on at once. Nearly all of them wait for a host, a model
// or the disk, and the more of them wait for the disk together the fewer syncs it takes; what holds
// the processor and the memory, reading a page, has slots of its own.
const defaultWorkers = 64

// slots bound how many pages are read at once: a tree is many times the size of its page, and more
// readers than processors finish none of them sooner.
type slots struct {
	once sync.Once
	free chan struct{}
}

// take waits for a slot; the func gives it back.
func (s *slots) take(ctx context.Context) (func(), error) {
	s.once.Do(func() { s.free = make(chan struct{}, 2*runtime.GOMAXPROCS(0)) })
	select {
	case s.free <- struct{}{}:
		return func() { <-s.free }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (w *Workspace) protocol() annotate.Protocol {
	for _, p := range annotate.Protocols {
		if p.Name == w.Config.Recipe.Label.Protocol {
			return p
		}
	}
	return annotate.Protocols[0] // unreachable: the configuration was checked
}

// pooled returns a document of the pool.
func (w *Workspace) pooled(id string) (corpus.Document, bool, error) {
	p, ok, err := w.tables.Pool.Get(id)
	return p.Document, ok, err
}

// orphaned reports whether a comment of the pool answers one that is not there.
func (w *Workspace) orphaned(d corpus.Document) (bool, error) {
	if !strings.HasPrefix(d.Parent, corpus.RedditID("t1_")) {
		return false, nil // nor is the thread of a comment missed, which its address names
	}
	has, err := w.tables.Pool.Has(d.Parent)
	return !has, err
}

// planSettings is the planner's part of the recipe.
func (w *Workspace) planSettings() planner.Settings {
	if w.Config.Recipe.agentic() {
		return w.agentSettings()
	}
	p, m := w.Config.Recipe.Planner, w.Config.Recipe.Models["keywords"]
	gate := planner.GateBody
	switch {
	case w.Config.Recipe.Label.Mode == annotate.ModeCompat:
		gate = planner.GateOpen
	case p.FollowLinks:
		gate = planner.GateBodyOrLink
	}
	return planner.Settings{
		Gate:   gate,
		Policy: p.Policy, Variants: p.Variants, PerVariant: p.PerVariant, Keep: p.Keep, K: p.RRF, Backend: p.Backend, Domains: p.Domains, Subreddits: p.Subreddits, Language: p.Language,
		Endpoint: m.Endpoint, Model: m.Model, Temperature: m.Temperature, TopP: m.TopP, Seed: m.Seed, MaxTokens: m.MaxTokens,
	}
}

// labelSettings is the protocol's part of the recipe.
func (w *Workspace) labelSettings() annotate.Settings {
	s := w.roleSettings("annotate")
	s.PromptHash = w.promptHash(w.protocol().Prompt(s).Name)
	return s
}

// zeroSettings is the part of the recipe that the zero-context control reads.
func (w *Workspace) zeroSettings() annotate.Settings {
	s := w.roleSettings("zero")
	return w.withoutDocument(s)
}

func (w *Workspace) withoutDocument(s annotate.Settings) annotate.Settings {
	s.Mode, s.NoQuoteCheck, s.DocumentChars, s.Samples = "", false, 0, 0
	s.PromptHash = w.promptHash(w.protocol().ZeroPrompt.Name)
	return s
}

func (w *Workspace) roleSettings(role string) annotate.Settings {
	l, m := w.Config.Recipe.Label, w.Config.Recipe.Models[role]
	samples := l.Samples
	if samples == 1 {
		samples = 0 // the settings of a label are then those that they always were
	}
	return annotate.Settings{
		Samples: samples,
		Mode:    l.Mode, NoQuoteCheck: !l.QuoteCheck, DocumentChars: l.DocumentChars,
		Endpoint: m.Endpoint, Model: m.Model, Temperature: m.Temperature, TopP: m.TopP, Seed: m.Seed, MaxTokens: m.MaxTokens,
	}
}

// arrivals yields the pool after a position, for the index.
func (w *Workspace) arrivals(after uint64) iter.Seq2[index.Sequenced, error] {
	return func(yield func(index.Sequenced, error) bool) {
		for entry, err := range w.tables.Arrivals.Scan("", seqKey(after)) {
			if err != nil {
				yield(index.Sequenced{}, err)
				return
			}
			pooled, ok, err := w.tables.Pool.Get(entry.Value)
			if err != nil {
				yield(index.Sequenced{}, err)
				return
			}
			seq := seqOf(entry.Key)
			if ok && pooled.Seq != seq {
				continue // replaced since; the later arrival counts
			}
			if !ok { // taken off
				pooled.Document.ID = entry.Value
			}
			if !yield(index.Sequenced{Seq: seq, Doc: pooled.Document}, nil) {
				return
			}
		}
	}
}

func seqKey(n uint64) string {
	if n == 0 {
		return ""
	}
	return kv.Key(fmt.Sprintf("%020d", n))
}

func seqOf(key string) uint64 {
	var n uint64
	if _, err := fmt.Sscanf(kv.Parts(key)[0], "%d", &n); err != nil {
		return 0 // unreachable: seqKey wrote it
	}
	return n
}

// noteLeads records where pages were found, once for every spelling of their addresses, in one write.
func (w *Workspace) noteLeads(on string, refs []corpus.Ref) error {
	var ops []kv.Op
	for _, ref := range refs {
		address := cmp.Or(ref.Found, ref.URL)
		key := kv.Key(shortened(corpus.IdentityURL(address)), shortened(address))
		if _, known := w.leads.LoadOrStore(key, true); known {
			continue
		}
		if has, err := w.tables.Leads.Has(key); err != nil {
			return err
		} else if has {
			continue
		}
		op, err := w.tables.Leads.PutOp(key, Lead{Address: address, On: on})
		if err != nil {
			return err
		}
		ops = append(ops, op)
	}
	if len(ops) == 0 {
		return nil
	}
	return w.store.Write(ops...)
}

// shortened keeps what hostile pages call an address, or a rating, within a key of the store.
func shortened(name string) string {
	const most = 4096
	if len(name) <= most {
		return name
	}
	return fmt.Sprintf("%s#%x", name[:most-65], sha256.Sum256([]byte(name)))
}

// storedAs is the address that a lead is fetched by: without what tells how the page was reached, unless
// an archive holds the page only as somebody else reached it.
func (w *Workspace) storedAs(address string) (string, error) {
	clean, found := corpus.CleanURL(address), corpus.CanonicalURL(address)
	if clean == found {
		return clean, nil
	}
	for _, u := range []string{clean, found} {
		if ex, err := w.fetch.Exchanges(u); err != nil || len(ex) > 0 {
			return u, err
		}
	}
	return clean, nil
}

// queueRating puts a rating that no map names where a person finds it.
func (w *Workspace) queueRating(c corpus.Claim) error {
	key := kv.Key(c.Source, shortened(corpus.Slug(c.RatingRaw)))
	if has, err := w.tables.Ratings.Has(key); err != nil || has {
		return err
	}
	return w.tables.Ratings.Put(key, QueuedRating{Source: c.Source, Raw: c.RatingRaw, Example: c.ReviewURL})
}

// links returns the imported pairs of a row, by rank.
func (w *Workspace) links(row string) ([]corpus.Link, error) {
	if row == "" {
		return nil, nil
	}
	var out []corpus.Link
	for entry, err := range w.tables.Links.Scan(kv.Prefix(row), "") {
		if err != nil {
			return nil, fmt.Errorf("read pairs of %s: %w", row, err)
		}
		out = append(out, entry.Value)
	}
	sortLinks(out)
	return out, nil
}

// readPrompts reads the prompt files with which a workspace overrides the shipped ones.
func readPrompts(dir string) (map[string]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("read prompts: %w", err)
	}
	known := Prompts()
	out := map[string]string{}
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".txt")
		if !ok || e.IsDir() {
			continue
		}
		if known[name] == nil {
			return nil, fmt.Errorf("read prompts: %s overrides no shipped prompt; known are %s", filepath.Join(dir, e.Name()), strings.Join(sortedKeys(known), ", "))
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, fmt.Errorf("read prompts: %w", err)
		}
		out[name] = string(text)
	}
	return out, nil
}

// Prompts lists the shipped prompt templates by name.
func Prompts() map[string]*llm.Template {
	out := map[string]*llm.Template{}
	for _, list := range [][]*llm.Template{annotate.Templates, analysis.Templates, planner.Templates()} {
		for _, t := range list {
			out[t.Name] = t
		}
	}
	return out
}

// promptHash names a template as this workspace words it, with the version of its builtin answer.
func (w *Workspace) promptHash(name string) string {
	t := Prompts()[name]
	hash, err := w.llm.TemplateHash(t)
	if err != nil {
		return "unreadable" // unreachable: llm.New read every override
	}
	return fmt.Sprintf("%s/%d", hash, t.BuiltinVersion)
}

// promptTexts gives every prompt as a prompt file, as this workspace words it.
func (w *Workspace) promptTexts() map[string]string {
	out := map[string]string{}
	for name, t := range Prompts() {
		out[name] = "--- system\n" + t.System + "\n--- user\n" + t.User + "\n"
		if text, ok := w.prompts[name]; ok {
			out[name] = text
		}
	}
	return out
}

// corruptions collects records that could not be read and were made again.
type corruptions struct {
	sync.Mutex
	list []string
}

func (c *corruptions) add(err error) {
	c.Lock()
	defer c.Unlock()
	c.list = append(c.list, err.Error())
}

func (c *corruptions) all() []string {
	c.Lock()
	defer c.Unlock()
	return append([]string{}, c.list...)
}
