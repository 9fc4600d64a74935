// Package llm is the one client for language models. It renders a prompt template, asks an endpoint
// by its name in the Recipe, keeps what came back, reads the answer out of it and says how that went.
//
// A request passes a chain of wrappers, outermost first, one file each:
//
//	lock + cache -> retry -> budget -> limit -> record -> provider
//
// The cache is outermost, so a stored answer is free; a key is locked while it is being paid for, so
// that many workers that ask the same thing buy it once. Every attempt passes the budget and the
// limits, and every attempt that left the machine is recorded. Providers are any OpenAI-compatible
// endpoint, the builtin model inside the binary, and, in replay mode, none at all.
//
// What is persisted, by bucket:
//
//	llm.raw     (request key, attempt) => body of a reply, written before anybody reads it
//	llm.call    (request key, attempt) => Record
//	llm.answer  (request key) => which attempt answers this key, and the sum of that answer
//	llm.order, llm.order.body, llm.batch, llm.quota  what is ordered from batch APIs (see OrderBatches)
//	llm.canary  (endpoint, model, profile) => what the endpoint was found to do (see Probe)
//
// The request key is the SHA-256 of the endpoint's name, the sample index and the very bytes that are
// sent. It never holds an address, a time or a secret. Whoever collects garbage keeps llm.call whole,
// because what was spent is the sum of its records, and the other two for the request keys in use.
//
// The package decides nothing about claims and documents; it does not choose prompts, and nothing
// outside it needs to know which provider answered.
package llm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"assay/kv"
)

// Message is one message of a conversation.
type Message struct {
	Content string `json:"content"`
	Role    string `json:"role"` // system, user or assistant
}

// Request is one question to a model.
type Request struct {
	Role        string // what the answer is for: keywords, annotate, zero, ...; kept in the record
	Endpoint    string // name of an entry of Options.Endpoints
	Model       string // as the endpoint names it
	Template    *Template
	Vars        any       // what the template and its Builtin read
	Temperature *float64  // nil: the endpoint's own default; 0 is sent as 0
	TopP        *float64  // nil: the endpoint's own default
	Seed        *int      // nil: none
	MaxTokens   int       // upper bound of the answer, thoughts included; 0 means DefaultMaxTokens
	Sample      int       // index among repeated samples of the same request
	Follow      []Message // appended after the rendered messages
}

// DefaultMaxTokens bounds an answer when a request names no bound, since some servers know none.
const DefaultMaxTokens = 1024

// Outcome says how a call ended. Only OutcomeAnswered carries an answer.
type Outcome string

// The values of Outcome.
const (
	OutcomeAnswered    Outcome = "answered"
	OutcomeRefused     Outcome = "refused"      // the model declined
	OutcomeFiltered    Outcome = "filtered"     // the provider withheld prompt or answer
	OutcomeTruncated   Outcome = "truncated"    // the token bound was reached, also with a larger one
	OutcomeParseFailed Outcome = "parse_failed" // no rung of the ladder could read it, nor the repair
)

// Reply is what came of a Request.
type Reply struct {
	Raw     string          // the message as it came
	Text    string          // the same without thoughts
	JSON    json.RawMessage // valid under the template's schema; nil for templates without one
	Outcome Outcome
	Parse   ParseStatus // the rung that read the answer
	Call    string      // id of the record that the outcome comes from
	Calls   []string    // ids of every call that led to it, Call included, in order
	Usage   Usage       // of all Calls
	Model   string      // as the endpoint names itself
}

// Usage counts tokens as the endpoint bills them.
type Usage struct {
	Prompt     int `json:"prompt,omitzero"`
	Completion int `json:"completion,omitzero"`
	Cached     int `json:"cached,omitzero"`    // part of Prompt
	Reasoning  int `json:"reasoning,omitzero"` // part of Completion, where the endpoint tells
	Total      int `json:"total,omitzero"`     // as told; more than the sum where thoughts are hidden in it
}

// Add returns the sum of two usages.
func (u Usage) Add(v Usage) Usage {
	return Usage{u.Prompt + v.Prompt, u.Completion + v.Completion, u.Cached + v.Cached, u.Reasoning + v.Reasoning, u.Total + v.Total}
}

// Endpoint says where and how a model is reached. Only its name in Options.Endpoints is part of a
// request key.
type Endpoint struct {
	Provider    string        // "openai" (any compatible server) or "builtin"
	BaseURL     string        // e.g. https://api.openai.com/v1
	KeyEnv      string        // environment variable that holds the key; empty: no key is sent
	Profile     string        // name in Profiles; empty means generic
	Schema      SchemaMode    // overrides the profile's
	TokenField  string        // overrides the profile's
	Concurrency int           // calls in flight; 0 means 16
	RPM, TPM    int           // requests and tokens a minute; 0 means no limit of ours
	Timeout     time.Duration // of one attempt; 0 means 5 minutes
	Price       *Price        // of every model here; nil means what the price table says
	Own         bool          // a server of one's own: what the price table does not know costs nothing here
}

// Options configures a Client. Store is required.
type Options struct {
	Store     *kv.Store
	Endpoints map[string]Endpoint
	Salt      string            // of the Recipe; enters the fence markers
	Prompts   map[string]string // prompt file texts that override templates, by template name
	Prices    PriceTable        // zero means the table inside the binary
	Batch     bool              // calls to endpoints with a batch API are collected instead of made, see OrderBatches
	Replay    bool              // a miss is an error; builtin still computes

	MaxUSD        float64       // what this run may spend; 0 means no cap
	MaxCalls      int           // requests this run may send; 0 means no cap
	Retries       int           // further attempts after a transient failure; 0 means 5, negative none
	RetryAfterCap time.Duration // longest wait that a server may ask for; 0 means 5 minutes

	HTTP     *http.Client // nil means one of our own without a global timeout
	Now      func() time.Time
	Sleep    func(context.Context, time.Duration) error
	Getenv   func(string) string
	Answered func(ctx context.Context, key string, sum [32]byte) // told of every answer used
	Stage    func(ctx context.Context) string                    // the stage that asks in ctx, for Stats; nil means nobody knows
	Retried  func(ctx context.Context) bool                      // whether what asks in ctx failed for good before; nil means never
	Corrupt  func(error)                                         // told of records that cannot be read and are rebuilt
}

// Client asks models. It may be used from many goroutines.
type Client struct {
	o         Options
	endpoints map[string]*route
	calls     kv.Bucket[Record]
	raw       kv.Bucket[[]byte]
	answers   kv.Bucket[answer]
	canaries  kv.Bucket[Canary]
	orders    orders
	asked     sync.Map // request keys collected by this run
	http      *http.Client
	own       *http.Transport // nil when Options.HTTP was given
	compiled  sync.Map        // template name => the *compiled used last, template hash => *compiled
	ledger    ledger
	purse     *budget
}

// route is an endpoint with its profile and its chain.
type route struct {
	name    string
	at      Endpoint
	profile Profile
	chain   caller

	answered, silent atomic.Int64 // calls of this run that brought a reply, and that brought none at last
}

// caller is one link of the chain. A result may come with an error: then it holds the record of the
// failed attempt, which the budget settles from.
type caller interface {
	call(context.Context, *call) (*result, error)
}

// call is a request on its way through the chain.
type call struct {
	id        string // request key, hex
	role      string
	route     *route
	model     string
	params    Params
	sample    int
	template  *compiled // nil for embeddings
	builtin   func(any) (json.RawMessage, error)
	vars      any
	texts     []string // of an embedding request
	messages  []Message
	input     string // SHA-256 of what was rendered, hex
	body      []byte // the bytes that are sent
	maxTokens int
	batch     bool        // it is answered by a batch API, at its price
	attempts  int         // attempts stored under id so far; guarded by the key's lock
	release   func()      // gives the endpoint's slot back; set by the limiter
	header    http.Header // of the last reply, whatever it was; nil where there was none
}

// reserve is the worst case in tokens: no tokenizer makes more than a token of three bytes on average.
func (c *call) reserve() Usage {
	u := Usage{Prompt: len(c.body)/3 + 1, Completion: c.maxTokens}
	u.Total = u.Prompt + u.Completion
	return u
}

// result is what the chain hands back.
type result struct {
	record Record
	status int
	header http.Header
	body   []byte // of the reply; nil for a stored answer until somebody needs it
	json   json.RawMessage
	sum    [32]byte
}

// New makes a client over a store. It reaches nothing yet.
func New(o Options) (*Client, error) {
	if o.Store == nil {
		return nil, errors.New("open model client: no store")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Sleep == nil {
		o.Sleep = sleep
	}
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	if o.Retries == 0 {
		o.Retries = 5
	}
	if o.RetryAfterCap == 0 {
		o.RetryAfterCap = 5 * time.Minute
	}
	if o.Prices.Models == nil {
		table, err := DefaultPrices()
		if err != nil {
			return nil, err
		}
		o.Prices = table
	}
	for name, text := range o.Prompts {
		if _, _, err := ParsePrompt(text); err != nil {
			return nil, fmt.Errorf("read prompt override %s: %w", name, err)
		}
	}
	c := &Client{
		o:         o,
		endpoints: map[string]*route{},
		calls:     kv.In[Record](o.Store, BucketCalls, BucketVersion),
		raw:       kv.In[[]byte](o.Store, BucketRaw, BucketVersion),
		answers:   kv.In[answer](o.Store, BucketAnswers, BucketVersion),
		canaries:  kv.In[Canary](o.Store, BucketCanaries, BucketVersion),
	}
	var err error
	if c.orders, err = openOrders(o.Store); err != nil {
		return nil, fmt.Errorf("open model client: %w", err)
	}
	return c, c.connect()
}

// connect builds the chain of every endpoint. Locks and budget are shared, limits are not.
func (c *Client) connect() error {
	conns := 0
	for name, at := range c.o.Endpoints {
		r, err := newRoute(name, at)
		if err != nil {
			return err
		}
		c.endpoints[name] = r
		conns += r.at.Concurrency
	}
	c.http = c.httpClient(conns)
	locks := &keyLocks{held: map[string]*keyLock{}}
	c.purse = newBudget(c.o.MaxUSD, c.o.MaxCalls)
	for _, r := range c.endpoints {
		var p caller
		switch {
		case r.at.Provider == ProviderBuiltin:
			p = builtinProvider{}
		case c.o.Replay:
			p = replayProvider{c}
		default:
			p = &openaiProvider{client: c.http, getenv: c.o.Getenv}
		}
		p = &recorder{c: c, next: p}
		p = &limiter{gate: newGate(r.at, c.o.RetryAfterCap, c.o.Now, c.o.Sleep), next: p}
		p = &budgeter{budget: c.purse, prices: c.o.Prices, next: p}
		p = &retrier{retries: c.o.Retries, patience: c.o.RetryAfterCap, sleep: c.o.Sleep, next: p}
		r.chain = &cacher{c: c, locks: locks, next: p}
	}
	return nil
}

func newRoute(name string, at Endpoint) (*route, error) {
	if at.Concurrency <= 0 {
		at.Concurrency = 16
	}
	if at.Timeout <= 0 {
		at.Timeout = 5 * time.Minute
	}
	if at.Profile == "" {
		at.Profile = "generic"
	}
	r := &route{name: name, at: at}
	switch at.Provider {
	case ProviderBuiltin:
		r.profile = Profile{Name: "builtin", TokenField: MaxTokensField, Schema: SchemaJSON, Seed: true}
		return r, nil
	case ProviderOpenAI:
	default:
		return nil, fmt.Errorf("open endpoint %s: provider %q is neither %s nor %s", name, at.Provider, ProviderOpenAI, ProviderBuiltin)
	}
	if u, err := url.Parse(at.BaseURL); err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, fmt.Errorf("open endpoint %s: base address %q is no http address", name, at.BaseURL)
	}
	i := slices.IndexFunc(Profiles, func(p Profile) bool { return p.Name == at.Profile })
	if i < 0 {
		return nil, fmt.Errorf("open endpoint %s: no profile is called %q", name, at.Profile)
	}
	r.profile = Profiles[i]
	switch at.Schema {
	case "":
	case SchemaJSON, SchemaObject, SchemaNone:
		r.profile.Schema = at.Schema
	default:
		return nil, fmt.Errorf("open endpoint %s: schema %q is none of %s, %s, %s", name, at.Schema, SchemaJSON, SchemaObject, SchemaNone)
	}
	switch at.TokenField {
	case "":
	case MaxTokensField, MaxCompletionTokensField:
		r.profile.TokenField = at.TokenField
	default:
		return nil, fmt.Errorf("open endpoint %s: token field %q is neither %s nor %s", name, at.TokenField, MaxTokensField, MaxCompletionTokensField)
	}
	return r, nil
}

// httpClient gives each endpoint as many idle connections as it has calls in flight; the default of
// two makes a third of all calls dial again. Redirects are answers: a repeated POST would be paid twice.
func (c *Client) httpClient(conns int) *http.Client {
	hc := http.Client{}
	if c.o.HTTP != nil {
		hc = *c.o.HTTP
	} else {
		c.own = http.DefaultTransport.(*http.Transport).Clone()
		c.own.MaxIdleConns = 0
		c.own.MaxIdleConnsPerHost = max(conns, 16)
		hc.Transport = c.own
	}
	hc.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &hc
}

// Close drops idle connections. The store stays open; it belongs to the caller.
func (c *Client) Close() error {
	if c.own != nil {
		c.own.CloseIdleConnections()
	}
	return nil
}

// Complete returns what the model says to a request. Refused, filtered, truncated and unreadable
// replies are outcomes, not errors; an error (*Error, or one that is ErrBudget) means that there is no
// reply. An answer that reached the token bound is asked for once more with a larger one; an answer
// that the ladder cannot read is shown to the model once, with the schema, for repair.
func (c *Client) Complete(ctx context.Context, q Request) (Reply, error) {
	cl, err := c.prepare(q)
	if err != nil {
		return Reply{}, err
	}
	larger := q
	larger.MaxTokens = max(4*cl.maxTokens, 2048)
	if c.retried(ctx) && ctx.Value(forecastKey{}) == nil {
		if err := c.letGo(cl, larger); err != nil {
			return Reply{}, err
		}
	}
	reply, err := c.ask(ctx, cl, Reply{})
	if err != nil {
		return Reply{}, err
	}
	if reply.Outcome == OutcomeTruncated && cl.route.at.Provider != ProviderBuiltin {
		if cl, err = c.prepare(larger); err != nil {
			return Reply{}, err
		}
		if reply, err = c.ask(ctx, cl, reply); err != nil {
			return Reply{}, err
		}
		q = larger
	}
	if reply.Outcome == OutcomeParseFailed && cl.template.structured() {
		return c.repair(ctx, q, cl.template, reply)
	}
	return reply, nil
}

func (c *Client) stageOf(ctx context.Context) string {
	if c.o.Stage == nil {
		return ""
	}
	return c.o.Stage(ctx)
}

func (c *Client) retried(ctx context.Context) bool { return c.o.Retried != nil && c.o.Retried(ctx) }

// letGo lets a request and the one with the larger bound be asked again, where they were answered with thoughts alone. It
// is called when what failed by these answers is tried again, and not by what goes on where it was.
func (c *Client) letGo(first *call, larger Request) error {
	second, err := c.prepare(larger)
	if err != nil {
		return err
	}
	for _, cl := range []*call{first, second} {
		a, ok, err := c.answers.Get(kv.Key(cl.id))
		if err = c.rebuildable(err); err != nil {
			return cl.storeError("read a stored answer", err)
		}
		if !ok || !a.Held {
			continue
		}
		a.Held = false
		if err := c.answers.Put(kv.Key(cl.id), a); err != nil {
			return cl.storeError("let an answer go", err)
		}
	}
	return nil
}

// ask sends one request through the chain and continues an earlier reply's list of calls.
func (c *Client) ask(ctx context.Context, cl *call, before Reply) (Reply, error) {
	res, err := cl.route.chain.call(ctx, cl)
	if err != nil {
		return Reply{}, err
	}
	rec := res.record
	return Reply{
		Raw:     rec.Raw,
		Text:    answerText(rec.Raw),
		JSON:    res.json,
		Outcome: rec.Outcome,
		Parse:   rec.Parse,
		Call:    rec.ID,
		Calls:   append(slices.Clone(before.Calls), rec.ID),
		Usage:   before.Usage.Add(rec.Usage),
		Model:   rec.Returned,
	}, nil
}

// repair shows the model its own words and the schema. Whatever comes of it, it happens once.
func (c *Client) repair(ctx context.Context, q Request, t *compiled, bad Reply) (Reply, error) {
	q.Follow = append(slices.Clone(q.Follow), t.repairMessages(bad.Text)...)
	cl, err := c.prepare(q)
	if err != nil {
		return Reply{}, err
	}
	fixed, err := c.ask(ctx, cl, bad)
	if err != nil {
		return Reply{}, err
	}
	if fixed.Outcome != OutcomeAnswered {
		bad.Calls, bad.Usage, bad.Parse = fixed.Calls, fixed.Usage, ParseFailed
		return bad, nil
	}
	fixed.Parse = ParseRepaired
	return fixed, nil
}

// prepare renders a request and computes its key.
func (c *Client) prepare(q Request) (*call, error) {
	r, ok := c.endpoints[q.Endpoint]
	if !ok {
		return nil, &Error{Endpoint: q.Endpoint, Model: q.Model, Reason: ReasonNoEndpoint, Detail: "the endpoint is not configured"}
	}
	return c.prepareFor(r, r.profile, q)
}

// prepareFor is prepare under a profile that may not be the endpoint's own.
func (c *Client) prepareFor(r *route, p Profile, q Request) (*call, error) {
	refuse := func(err error) (*call, error) {
		return nil, &Error{Endpoint: q.Endpoint, Model: q.Model, Reason: ReasonBadRequest, Err: err}
	}
	if q.Template == nil {
		return refuse(errors.New("the request has no template"))
	}
	t, err := c.compile(q.Template)
	if err != nil {
		return refuse(err)
	}
	messages, err := t.render(q.Vars)
	if err != nil {
		return refuse(err)
	}
	for _, v := range []*float64{q.Temperature, q.TopP} {
		if v != nil && (math.IsNaN(*v) || math.IsInf(*v, 0)) {
			return refuse(fmt.Errorf("%v is no sampling setting", *v))
		}
	}
	if q.MaxTokens <= 0 {
		q.MaxTokens = DefaultMaxTokens
	}
	cl := &call{role: q.Role, route: r, model: q.Model, sample: q.Sample, template: t, builtin: q.Template.Builtin, vars: q.Vars, maxTokens: q.MaxTokens}
	body := chatBody(p, q, t, append(messages, q.Follow...), &cl.params)
	if r.at.Provider == ProviderBuiltin {
		if body.Builtin, err = builtinInput(q.Template, q.Vars); err != nil {
			return refuse(err)
		}
	}
	cl.messages = body.Messages
	cl.input = hashMessages(body.Messages)
	cl.body = encode(body)
	cl.id = requestKey(r.name, q.Sample, cl.body)
	return cl, nil
}

// Render returns the messages that Complete sends for a template, overrides and salt applied.
func (c *Client) Render(t *Template, vars any) ([]Message, error) {
	ct, err := c.compile(t)
	if err != nil {
		return nil, err
	}
	return ct.render(vars)
}

// TemplateHash is the hash of a template as this client uses it, overrides applied. A stage whose
// output depends on a prompt carries it in its part of the Recipe.
func (c *Client) TemplateHash(t *Template) (string, error) {
	ct, err := c.compile(t)
	if err != nil {
		return "", err
	}
	return ct.hash, nil
}

// compile applies an override and parses. The result is kept, since a template is used thousands of
// times: by name for the usual case, by hash for templates that share a name.
func (c *Client) compile(t *Template) (*compiled, error) {
	if kept, ok := c.compiled.Load(t.Name); ok && kept.(*compiled).from.same(t) {
		return kept.(*compiled), nil
	}
	key := "hash " + t.Hash()
	if kept, ok := c.compiled.Load(key); ok {
		c.compiled.Store(t.Name, kept)
		return kept.(*compiled), nil
	}
	eff := *t
	eff.Salt = c.o.Salt
	if text, ok := c.o.Prompts[t.Name]; ok {
		var err error
		if eff.System, eff.User, err = ParsePrompt(text); err != nil {
			return nil, fmt.Errorf("read prompt override %s: %w", t.Name, err)
		}
	}
	ct, err := eff.compile()
	if err != nil {
		return nil, err
	}
	ct.from = *t
	c.compiled.Store(key, ct)
	c.compiled.Store(t.Name, ct)
	return ct, nil
}

// Current says what a dependency key answers now. The key is "llm/" and a request key; false means
// that nothing is stored under it.
func (c *Client) Current(_ context.Context, key string) ([32]byte, bool, error) {
	id, ok := strings.CutPrefix(key, DepPrefix)
	if !ok {
		return [32]byte{}, false, nil
	}
	a, ok, err := c.answers.Get(kv.Key(id))
	return a.Sum, ok, c.rebuildable(err)
}

// rebuildable reports a record that cannot be decoded and passes over it, since it can be made again
// from the reply; any other failure of the store stays one.
func (c *Client) rebuildable(err error) error {
	var corrupt *kv.CorruptError
	if !errors.As(err, &corrupt) {
		return err
	}
	if c.o.Corrupt != nil {
		c.o.Corrupt(err)
	}
	return nil
}

// DepPrefix starts the dependency keys of this package.
const DepPrefix = "llm/"

// answered tells the engine what this call answered.
func (c *Client) answered(ctx context.Context, id string, sum [32]byte) {
	if c.o.Answered != nil {
		c.o.Answered(ctx, DepPrefix+id, sum)
	}
}

// sleep waits for a time or for the end of ctx.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
