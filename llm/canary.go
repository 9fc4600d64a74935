package llm

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"assay/kv"
)

// BucketCanaries holds what endpoints were found to do: (endpoint, model, profile) => Canary. A
// canary that is lost is probed again.
const BucketCanaries = "llm.canary"

// RoleCanary is the role of the calls that a probe makes.
const RoleCanary = "canary"

// Canary is what an endpoint did with two tiny requests. Whatever it says, every answer is checked
// here; a canary tells how many answers will fail that check, and which setting to change.
type Canary struct {
	Endpoint string `json:"endpoint"`
	Model    string `json:"model"`
	Profile  string `json:"profile"`
	Returned string `json:"model_returned,omitzero"` // as the endpoint names itself

	Schema      SchemaMode `json:"schema,omitzero"`      // what was sent, after anything that the endpoint rejected
	TokenField  string     `json:"token_field,omitzero"` // likewise
	Temperature bool       `json:"temperature"`          // whether a temperature of 0 was sent and taken

	Constrains Finding `json:"constrains"` // whether an answer fits the schema when the prompt asks for prose
	Ordered    Finding `json:"ordered"`    // whether the answer's fields have the schema's order
	Steady     Finding `json:"steady"`     // whether the same question twice, at temperature 0, has one answer

	Failure string    `json:"failure,omitzero"` // why there is no finding
	Reason  string    `json:"reason,omitzero"`  // that of the error which Failure tells, if it was one
	Calls   []string  `json:"calls,omitzero"`
	Probed  time.Time `json:"probed"`
	Round   int       `json:"round"` // how many probes there were before
}

// Finding is the answer to a question about an endpoint; "" means that it was not found out.
type Finding string

// The values of Finding.
const (
	FindingYes Finding = "yes"
	FindingNo  Finding = "no"
)

func finding(yes bool) Finding {
	if yes {
		return FindingYes
	}
	return FindingNo
}

// canaryTemplate asks for prose that no schema fits, so that only a server which constrains gives an
// object. Its fields are not in the order of their names, and an invented name is something that a
// sampled answer hardly gives twice.
var canaryTemplate = &Template{
	Name: "canary", Version: 1,
	User: "Invent a name for a village and tell in one short sentence where it lies. Write plain prose.",
	Schema: json.RawMessage(`{"type":"object","properties":{"zone":{"type":"string","enum":["north","south"]},"name":{"type":"string"}},` +
		`"required":["zone","name"],"additionalProperties":false}`),
}

// canaryTokens bounds an answer; a model that thinks needs some.
const canaryTokens = 400

// Probe asks an endpoint the two questions of a canary and keeps what came of it. What the endpoint
// rejects (the token field, a temperature, the schema) is left out or exchanged, and asked again. An
// error means that nothing could be kept, or that the run ends; an endpoint that does not answer is a
// Canary with a Failure. The builtin model is not probed.
func (c *Client) Probe(ctx context.Context, endpoint, model string) (Canary, error) {
	r, ok := c.endpoints[endpoint]
	if !ok {
		return Canary{}, &Error{Endpoint: endpoint, Model: model, Reason: ReasonNoEndpoint, Detail: "the endpoint is not configured"}
	}
	if r.at.Provider == ProviderBuiltin {
		return Canary{}, errors.New("probe endpoint " + endpoint + ": the builtin model needs none")
	}
	before, found, err := c.Canary(endpoint, model)
	if err != nil {
		return Canary{}, err
	}
	k := Canary{Endpoint: endpoint, Model: model, Profile: r.profile.Name, Probed: c.o.Now().UTC().Truncate(time.Second)}
	if found {
		k.Round = before.Round + 1
	}
	if err := c.probe(ctx, r, &k); err != nil {
		return k, err
	}
	if err := c.canaries.Put(canaryKey(k.Endpoint, k.Model, k.Profile), k); err != nil {
		return k, fmt.Errorf("keep the canary of endpoint %s: %w", endpoint, err)
	}
	return k, nil
}

// Canary returns what the last probe of an endpoint found, under its present profile.
func (c *Client) Canary(endpoint, model string) (Canary, bool, error) {
	r, ok := c.endpoints[endpoint]
	if !ok {
		return Canary{}, false, nil
	}
	k, ok, err := c.canaries.Get(canaryKey(endpoint, model, r.profile.Name))
	return k, ok && err == nil, c.rebuildable(err)
}

func canaryKey(endpoint, model, profile string) string { return kv.Key(endpoint, model, profile) }

// probe fills in a canary. Temperature, token field and schema are settled by the first question.
func (c *Client) probe(ctx context.Context, r *route, k *Canary) error {
	p := r.profile
	zero := 0.0
	q := Request{Role: RoleCanary, Endpoint: k.Endpoint, Model: k.Model, Template: canaryTemplate, Temperature: &zero, MaxTokens: canaryTokens}
	given := map[string]bool{}
	var first Reply
	for {
		var err error
		first, err = c.canaryCall(ctx, r, p, q, 2*k.Round, k)
		if err == nil {
			break
		}
		var e *Error
		if !errors.As(err, &e) || e.StopsRun() && e.Reason != ReasonCredentials {
			return err
		}
		if e.Reason != ReasonRejected || !giveWay(&p, &q, e, given) {
			k.Failure, k.Reason = e.Error(), e.Reason
			return ctx.Err()
		}
	}
	k.Returned, k.Schema, k.TokenField = first.Model, p.Schema, p.TokenField
	k.Temperature = q.Temperature != nil && (p.Sampling == nil || p.Sampling(k.Model))
	k.judge(first)
	if !k.Temperature || answerText(first.Raw) == "" {
		return nil
	}
	second, err := c.canaryCall(ctx, r, p, q, 2*k.Round+1, k)
	var e *Error
	switch {
	case errors.As(err, &e) && !e.StopsRun():
		return ctx.Err() // the first answer says enough
	case err != nil:
		return err
	}
	k.Steady = finding(answerText(first.Raw) == answerText(second.Raw))
	return nil
}

// canaryCall sends one question through the endpoint's chain, without repair and without more tokens.
func (c *Client) canaryCall(ctx context.Context, r *route, p Profile, q Request, sample int, k *Canary) (Reply, error) {
	q.Sample = sample
	cl, err := c.prepareFor(r, p, q)
	if err != nil {
		return Reply{}, err
	}
	reply, err := c.ask(ctx, cl, Reply{})
	if err == nil {
		k.Calls = append(k.Calls, reply.Call)
	}
	return reply, err
}

// giveWay drops or exchanges the setting that an endpoint rejects, each once, and reports whether there
// was one left.
func giveWay(p *Profile, q *Request, e *Error, given map[string]bool) bool {
	said := strings.ToLower(e.Detail)
	first := func(setting string) bool {
		was := given[setting]
		given[setting] = true
		return !was
	}
	switch {
	case strings.Contains(said, "temperature") && first("temperature"):
		q.Temperature = nil
	case (strings.Contains(said, MaxTokensField) || strings.Contains(said, MaxCompletionTokensField)) && first("tokens"):
		if p.TokenField == MaxTokensField {
			p.TokenField = MaxCompletionTokensField
		} else {
			p.TokenField = MaxTokensField
		}
	case (strings.Contains(said, "response_format") || strings.Contains(said, "schema")) && first(string(p.Schema)):
		switch p.Schema {
		case SchemaJSON:
			p.Schema = SchemaObject
		case SchemaObject:
			p.Schema = SchemaNone
		default:
			return false
		}
	default:
		return false
	}
	return true
}

// judge reads the first answer. Where the schema stands in the prompt, an answer that fits it shows
// that the model follows, which is as good.
func (k *Canary) judge(r Reply) {
	text := answerText(r.Raw)
	switch {
	case r.Outcome == OutcomeAnswered:
		k.Constrains = FindingYes
		zone, name := strings.Index(text, `"zone"`), strings.Index(text, `"name"`)
		k.Ordered = finding(zone >= 0 && zone < name)
	case r.Outcome == OutcomeTruncated && text == "":
		k.Failure = fmt.Sprintf("all %d tokens went into thoughts", canaryTokens)
	case r.Outcome == OutcomeTruncated && strings.HasPrefix(text, "{"):
		k.Constrains = FindingYes
	case r.Outcome == OutcomeParseFailed || r.Outcome == OutcomeTruncated:
		k.Constrains = FindingNo
	default:
		k.Failure = "the reply is no answer: " + string(r.Outcome)
	}
}

// Text is a canary in a line.
func (k Canary) Text() string {
	if k.Failure != "" && k.Constrains == "" {
		return "not found out: " + k.Failure
	}
	var parts []string
	switch {
	case k.Constrains == FindingYes && k.Schema == SchemaJSON:
		parts = append(parts, "constrains to the schema")
	case k.Constrains == FindingYes:
		parts = append(parts, "follows the schema in the prompt")
	case k.Schema == SchemaJSON:
		parts = append(parts, "IGNORES the schema")
	default:
		parts = append(parts, "does not follow the schema in the prompt")
	}
	if k.Ordered == FindingNo {
		parts = append(parts, "changes the order of fields")
	}
	switch {
	case !k.Temperature:
		parts = append(parts, "takes no temperature")
	case k.Steady == FindingNo:
		parts = append(parts, "takes temperature 0 and still answers differently")
	case k.Steady == FindingYes:
		parts = append(parts, "takes temperature 0")
	}
	return strings.Join(append(parts, "bounded by "+k.TokenField), ", ")
}

// Change says which settings of the endpoint to change after what it rejected; "" for none.
func (c *Client) Change(k Canary) string {
	r, ok := c.endpoints[k.Endpoint]
	if !ok || k.TokenField == "" {
		return ""
	}
	var parts []string
	if k.TokenField != r.profile.TokenField {
		parts = append(parts, "token_field: "+k.TokenField)
	}
	if k.Schema != r.profile.Schema {
		parts = append(parts, "schema: "+string(k.Schema))
	}
	return strings.Join(parts, ", ")
}

// EndpointNames lists the configured endpoints by name.
func (c *Client) EndpointNames() []string { return slices.Sorted(maps.Keys(c.endpoints)) }

// Inside reports whether an endpoint is answered inside this process: then there is nothing to reach,
// to pay or to probe.
func (c *Client) Inside(endpoint string) bool {
	r, ok := c.endpoints[endpoint]
	return ok && r.at.Provider == ProviderBuiltin
}

// ProfileOf is the profile of an endpoint, with the endpoint's own settings applied.
func (c *Client) ProfileOf(endpoint string) (Profile, bool) {
	r, ok := c.endpoints[endpoint]
	if !ok {
		return Profile{}, false
	}
	return r.profile, true
}

// Canaries lists what every probe found, the last of each endpoint, model and profile.
func (c *Client) Canaries() ([]Canary, error) {
	var all []Canary
	for e, err := range c.canaries.Scan("", "") {
		if err != nil {
			if err := c.rebuildable(err); err != nil {
				return nil, fmt.Errorf("list canaries: %w", err)
			}
			continue
		}
		all = append(all, e.Value)
	}
	slices.SortFunc(all, func(a, b Canary) int { return cmp.Compare(a.Endpoint+"\x00"+a.Model, b.Endpoint+"\x00"+b.Model) })
	return all, nil
}
