package llm

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Listing is what an endpoint answers when it is asked for its models.
type Listing struct {
	Models []string      // ids, in the endpoint's order
	Date   time.Time     // the endpoint's clock; zero if it does not tell
	Took   time.Duration // of the request
}

// listingTimeout bounds the question for models; a server that answers no sooner is not there.
const listingTimeout = 20 * time.Second

// Models asks an endpoint for its models, which costs nothing and leaves no record. Some services have
// no such list: then the error's Status tells that a server is there all the same, and the Listing its
// clock. The builtin model lists itself.
func (c *Client) Models(ctx context.Context, endpoint string) (Listing, error) {
	r, ok := c.endpoints[endpoint]
	if !ok {
		return Listing{}, &Error{Endpoint: endpoint, Reason: ReasonNoEndpoint, Detail: "the endpoint is not configured"}
	}
	if r.at.Provider == ProviderBuiltin {
		return Listing{Models: []string{ProviderBuiltin}}, nil
	}
	started := c.o.Now()
	res, err := c.get(ctx, r, modelsPath)
	if err != nil {
		return Listing{}, err
	}
	l := Listing{Took: c.o.Now().Sub(started)}
	if date, err := http.ParseTime(res.header.Get("Date")); err == nil {
		l.Date = date
	}
	if res.status < 200 || res.status >= 300 {
		return l, res.asError(r, c.o.Now())
	}
	l.Models, err = ReadModels(res.body)
	return l, err
}

// ReadModels reads a list of models: data of OpenAI's kind, or models of Ollama's and Google's own.
func ReadModels(body []byte) ([]string, error) {
	type entry struct {
		ID   string `json:"id"`
		Name string `json:"name"`
	}
	var list struct {
		Data   []entry `json:"data"`
		Models []entry `json:"models"`
	}
	if err := json.Unmarshal(body, &list); err != nil {
		return nil, fmt.Errorf("read list of models: %w", err)
	}
	if list.Data == nil && list.Models == nil {
		return nil, fmt.Errorf("read list of models: there is none in %s", glimpse(body))
	}
	if list.Data == nil {
		list.Data = list.Models
	}
	ids := make([]string, 0, len(list.Data))
	for _, m := range list.Data {
		if m.ID == "" {
			m.ID = m.Name
		}
		ids = append(ids, m.ID)
	}
	return ids, nil
}

// get asks an endpoint for something that it has, outside the chain: nothing is bought.
func (c *Client) get(ctx context.Context, r *route, path string) (*result, error) {
	asked := &call{route: r}
	if c.o.Replay {
		return replayProvider{}.call(ctx, asked)
	}
	key, e := keyOf(asked, c.o.Getenv)
	if e != nil {
		return nil, e
	}
	to, err := r.address("", path)
	if err != nil {
		return nil, fmt.Errorf("read the address of endpoint %s: %w", r.name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, min(r.at.Timeout, listingTimeout))
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, to.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("ask endpoint %s: %w", r.name, err)
	}
	req.Header.Set("Accept", "application/json")
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	if name := r.profile.KeyHeader; name != "" && key != "" {
		req.Header.Del("Authorization")
		req.Header.Set(name, key)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, asked.fail(ReasonNetwork, mask(err.Error(), key))
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxReply))
	if err != nil {
		return nil, asked.fail(ReasonNetwork, mask(err.Error(), key))
	}
	return &result{status: resp.StatusCode, header: resp.Header, body: []byte(mask(string(body), key))}, nil
}

// asError reads an error reply.
func (r *result) asError(at *route, now time.Time) *Error {
	c := &call{route: at}
	if _, e := c.failed(r, now); e != nil {
		return e
	}
	e := c.fail(ReasonRejected, glimpse(r.body))
	e.Status = r.status
	return e
}
