package llm

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tiktoken-go/tokenizer"

	"assay/kv"
)

// A Range is what a forecast knows of a number: at least Low, at most High.
type Range struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// Exactly is a range of one number.
func Exactly(n float64) Range { return Range{n, n} }

// Add returns the sum of two ranges.
func (r Range) Add(o Range) Range { return Range{r.Low + o.Low, r.High + o.High} }

// Times returns a range so many times.
func (r Range) Times(n float64) Range { return Range{r.Low * n, r.High * n} }

// Foreseen is what the calls of one stage to one model come to, none of which was made.
type Foreseen struct {
	Stage    string `json:"stage"`
	Role     string `json:"role"`
	Endpoint string `json:"endpoint"`
	Model    string `json:"model"`
	Calls    int    `json:"calls"`    // requests whose words are known and that the store does not answer
	Unsure   int    `json:"unsure"`   // more of them, of items whose input may still come out as it was
	Hits     int    `json:"hits"`     // requests that the store answers
	Prompt   int    `json:"prompt"`   // tokens of Calls, as counted here
	Maybe    int    `json:"maybe"`    // tokens of Unsure
	Longest  int    `json:"longest"`  // bound of an answer, in tokens
	Embedded bool   `json:"embedded"` // they ask for vectors, which have no tokens of an answer
}

// A Forecast collects the calls that a run would make. Under a context of With no call is made, nothing
// is written and no key is read: what the store does not answer is counted and comes back as a
// *WaitingError. It may be used from many goroutines.
type Forecast struct {
	mu    sync.Mutex
	found map[string]*Foreseen
	known map[string]bool // request keys counted
	fixed map[string]int  // tokens of texts that come again and again, such as a system message
	codec map[tokenizer.Encoding]tokenizer.Codec
}

// NewForecast makes an empty forecast.
func NewForecast() *Forecast {
	return &Forecast{found: map[string]*Foreseen{}, known: map[string]bool{}, fixed: map[string]int{}, codec: map[tokenizer.Encoding]tokenizer.Codec{}}
}

type forecastKey struct{}

type foreseeing struct {
	forecast *Forecast
	stage    string
	sure     bool
}

// With returns a context in which calls are foreseen instead of made. Sure says that the item which
// asks will run; otherwise what lies above it may come out as it was.
func (f *Forecast) With(ctx context.Context, stage string, sure bool) context.Context {
	return context.WithValue(ctx, forecastKey{}, foreseeing{f, stage, sure})
}

// Found lists what was collected, by stage, role, endpoint and model.
func (f *Forecast) Found() []Foreseen {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []Foreseen
	for _, x := range f.found {
		out = append(out, *x)
	}
	slices.SortFunc(out, func(a, b Foreseen) int {
		return cmp.Or(cmp.Compare(a.Stage, b.Stage), cmp.Compare(a.Role, b.Role), cmp.Compare(a.Endpoint, b.Endpoint), cmp.Compare(a.Model, b.Model))
	})
	return out
}

// foresee answers from the store, or counts a call.
func (k *cacher) foresee(ctx context.Context, c *call, at foreseeing) (*result, error) {
	a, ok, err := k.c.answers.Get(kv.Key(c.id))
	if err = k.readable(c, err); err != nil {
		return nil, err
	}
	if ok && a.served() && !(a.Held && k.c.retried(ctx)) {
		rec, found, err := k.c.calls.Get(recordKey(c.id, a.Attempt))
		if err = k.readable(c, err); err != nil {
			return nil, err
		}
		if found {
			at.forecast.hit(at, c)
			res := &result{record: rec, json: rec.Parsed, sum: a.Sum}
			if c.template != nil && (rec.Outcome == OutcomeAnswered || rec.Outcome == OutcomeParseFailed) {
				res.record.Outcome, res.json, res.record.Parse = c.template.read(rec.Raw)
			}
			return res, nil
		}
	}
	if err := at.forecast.count(at, c); err != nil {
		return nil, err
	}
	if c.route.at.Provider == ProviderBuiltin {
		return k.c.computed(ctx, c) // it costs nothing to know
	}
	return nil, &WaitingError{Endpoint: c.route.name, Model: c.model, Job: ""}
}

// computed is what the builtin model answers, not stored.
func (c *Client) computed(ctx context.Context, cl *call) (*result, error) {
	res, err := builtinProvider{}.call(ctx, cl)
	if err != nil {
		return nil, err
	}
	f, failed := cl.interpret(res, c.o.Now())
	if failed != nil {
		return nil, failed
	}
	rec := cl.record(Seen{})
	rec.Returned, rec.Raw, rec.Outcome = f.model, f.text, f.outcome
	if f.outcome == "" {
		rec.Outcome, rec.Parsed, rec.Parse = cl.template.read(f.text)
	}
	return &result{record: rec, body: res.body, json: rec.Parsed, sum: sumOf(rec, f.vectors)}, nil
}

func (f *Forecast) of(at foreseeing, c *call) *Foreseen {
	key := strings.Join([]string{at.stage, c.role, c.route.name, c.model}, "\x00")
	x := f.found[key]
	if x == nil {
		x = &Foreseen{Stage: at.stage, Role: c.role, Endpoint: c.route.name, Model: c.model, Embedded: c.template == nil}
		f.found[key] = x
	}
	return x
}

func (f *Forecast) hit(at foreseeing, c *call) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.known[c.id] {
		f.known[c.id] = true
		f.of(at, c).Hits++
	}
}

// count adds a call, once for each request key: two items that ask the same thing buy it once.
func (f *Forecast) count(at foreseeing, c *call) error {
	f.mu.Lock()
	if f.known[c.id] {
		f.mu.Unlock()
		return nil
	}
	f.known[c.id] = true
	f.mu.Unlock()
	tokens := 0
	if c.route.at.Provider != ProviderBuiltin { // which bills none
		var err error
		if tokens, err = f.tokens(c); err != nil {
			return err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	x := f.of(at, c)
	x.Longest = max(x.Longest, c.maxTokens)
	if at.sure {
		x.Calls++
		x.Prompt += tokens
	} else {
		x.Unsure++
		x.Maybe += tokens
	}
	return nil
}

// Tokens that a chat puts around each message, and before the answer.
const (
	perMessage = 4
	perAnswer  = 3
)

// tokens counts a prompt with the public vocabulary that fits the model, or the newest one where none is
// known to. A schema that is sent beside the messages counts as its text.
func (f *Forecast) tokens(c *call) (int, error) {
	codec, err := f.vocabulary(c.model)
	if err != nil {
		return 0, fmt.Errorf("count tokens: %w", err)
	}
	count := func(text string, again bool) (int, error) {
		if again {
			f.mu.Lock()
			n, ok := f.fixed[codec.GetName()+text]
			f.mu.Unlock()
			if ok {
				return n, nil
			}
		}
		n, err := codec.Count(text)
		if err == nil && again {
			f.mu.Lock()
			f.fixed[codec.GetName()+text] = n
			f.mu.Unlock()
		}
		return n, err
	}
	total := 0
	add := func(text string, again bool) error {
		n, err := count(text, again)
		total += n
		return err
	}
	for _, text := range c.texts {
		if err := add(text, false); err != nil {
			return 0, err
		}
	}
	if c.template == nil {
		return total, nil
	}
	for _, m := range c.messages {
		total += perMessage
		if err := add(m.Content, m.Role == "system"); err != nil {
			return 0, err
		}
	}
	if c.params.Schema == SchemaJSON {
		if err := add(string(c.template.raw), true); err != nil {
			return 0, err
		}
	}
	return total + perAnswer, nil
}

// vocabulary is the tokenizer of a model; the older models of OpenAI have one of their own.
func (f *Forecast) vocabulary(model string) (tokenizer.Codec, error) {
	name := tokenizer.O200kBase
	if strings.HasPrefix(model, "gpt-4-") || model == "gpt-4" || strings.HasPrefix(model, "gpt-3.5") {
		name = tokenizer.Cl100kBase
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if c, ok := f.codec[name]; ok {
		return c, nil
	}
	c, err := tokenizer.Get(name)
	if err == nil {
		f.codec[name] = c
	}
	return c, err
}

// Counted is how far a count of tokens by public vocabularies may be off: little for OpenAI's own models,
// more for others, whose vocabularies differ.
func Counted(model string) Range {
	if openaiModel(model) {
		return Range{0.95, 1.03}
	}
	return Range{0.8, 1.3}
}

func openaiModel(model string) bool {
	return strings.HasPrefix(model, "gpt-") || reasoningModel.MatchString(model)
}

// Past is what stored calls of a role to a model were like.
type Past struct {
	Calls   int
	Prompt  float64       // mean tokens
	Answers Range         // tokens of an answer: nine in ten lie between the ends
	Latency time.Duration // mean
}

// enoughPast is how many calls make a past that a forecast rests on.
const enoughPast = 20

// Enough reports whether there are calls enough to judge others by.
func (p Past) Enough() bool { return p.Calls >= enoughPast }

// PastKey names what Pasts tells apart.
type PastKey struct{ Role, Endpoint, Model string }

// Pasts reads the stored calls.
func (c *Client) Pasts() (map[PastKey]Past, error) {
	type seen struct {
		prompt  int
		latency time.Duration
		answers []int
	}
	all := map[PastKey]*seen{}
	for rec, err := range c.Calls() {
		if err = c.rebuildable(err); err != nil {
			return nil, fmt.Errorf("read call records: %w", err)
		}
		if rec.Outcome == "" || rec.Estimated {
			continue
		}
		key := PastKey{rec.Role, rec.Endpoint, rec.Model}
		s := all[key]
		if s == nil {
			s = &seen{}
			all[key] = s
		}
		s.prompt += rec.Usage.Prompt
		s.latency += rec.Seen.Latency
		s.answers = append(s.answers, max(rec.Usage.Completion, rec.Usage.Total-rec.Usage.Prompt))
	}
	out := map[PastKey]Past{}
	for key, s := range all {
		slices.Sort(s.answers)
		n := len(s.answers)
		out[key] = Past{
			Calls: n, Prompt: float64(s.prompt) / float64(n), Latency: s.latency / time.Duration(n),
			Answers: Range{float64(s.answers[n/20]), float64(s.answers[min(n-1, int(math.Ceil(float64(n)*0.95)))])},
		}
	}
	return out, nil
}

// Rates are an endpoint's, as configured.
type Rates struct {
	Builtin     bool
	Concurrency int
	RPM, TPM    int
}

// RatesOf returns the rates of an endpoint.
func (c *Client) RatesOf(endpoint string) (Rates, bool) {
	r, ok := c.endpoints[endpoint]
	if !ok {
		return Rates{}, false
	}
	return Rates{Builtin: r.at.Provider == ProviderBuiltin, Concurrency: r.at.Concurrency, RPM: r.at.RPM, TPM: r.at.TPM}, true
}

// Wall is the least time that so many calls and tokens take, each call taking latency.
func (r Rates) Wall(calls, tokens float64, latency time.Duration) time.Duration {
	if r.Builtin {
		return 0
	}
	wall := time.Duration(calls * float64(latency) / float64(max(r.Concurrency, 1)))
	if r.RPM > 0 {
		wall = max(wall, time.Duration(calls/float64(r.RPM)*float64(time.Minute)))
	}
	if r.TPM > 0 {
		wall = max(wall, time.Duration(tokens/float64(r.TPM)*float64(time.Minute)))
	}
	return wall
}

// Unbilled reports whether a model has no known price and counts as 0 because its endpoint is one's own.
func (c *Client) Unbilled(endpoint, model string) bool {
	r, ok := c.endpoints[endpoint]
	return ok && (&call{route: r, model: model}).unbilled(c.o.Prices)
}

// PriceOf is the price of a model at an endpoint; batch asks for that of the endpoint's batch API.
func (c *Client) PriceOf(endpoint, model string, batch bool) (Price, bool) {
	r, ok := c.endpoints[endpoint]
	if !ok {
		return Price{}, false
	}
	if batch && r.profile.Batch == nil {
		return Price{}, false
	}
	return (&call{route: r, model: model, batch: batch}).price(c.o.Prices)
}
