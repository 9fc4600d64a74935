package llm

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"time"

	"assay/kv"
)

// Buckets of this package; see the package comment. The first part of every key is the request key.
const (
	BucketRaw     = "llm.raw"
	BucketCalls   = "llm.call"
	BucketAnswers = "llm.answer"

	BucketVersion = 1 // of the records of all of them, and of BucketCanaries
)

// Record is what is known about one attempt to get an answer. What happened at run time, and would
// differ between two runs over the same replies, is in Seen alone.
type Record struct {
	ID              string          `json:"id"` // request key; failed attempts share it with the answer
	Role            string          `json:"role"`
	Endpoint        string          `json:"endpoint"`
	Provider        string          `json:"provider"`
	Model           string          `json:"model"`
	Returned        string          `json:"model_returned,omitzero"` // as the endpoint names itself
	Fingerprint     string          `json:"system_fingerprint,omitzero"`
	Params          Params          `json:"params"`
	Sample          int             `json:"sample"`
	Template        string          `json:"template,omitzero"`
	TemplateVersion int             `json:"template_version,omitzero"`
	TemplateHash    string          `json:"template_sha256,omitzero"`
	Input           string          `json:"input_sha256"` // of the messages as rendered
	Outcome         Outcome         `json:"outcome,omitzero"`
	Finish          string          `json:"finish_reason,omitzero"`
	Raw             string          `json:"raw,omitzero"` // the message as it came, or the refusal
	Parsed          json.RawMessage `json:"parsed,omitzero"`
	Parse           ParseStatus     `json:"parse,omitzero"`
	Usage           Usage           `json:"usage"`
	Estimated       bool            `json:"estimated,omitzero"` // Usage is the worst case: the endpoint told none
	USD             *float64        `json:"usd,omitempty"`      // nil: the model has no known price
	PriceDate       string          `json:"price_date,omitzero"`
	Unbilled        bool            `json:"unbilled,omitzero"` // USD is 0 since no price is known and the server is one's own
	Failure         string          `json:"failure,omitzero"`  // reason of a failed attempt, which has no Outcome
	Status          int             `json:"status,omitzero"`   // HTTP status of a failed attempt
	Detail          string          `json:"detail,omitzero"`
	Batch           string          `json:"batch,omitzero"` // id of the batch that answered, at the price of batches
	Seen            Seen            `json:"seen,omitzero"`
}

// Seen is what only this attempt saw.
type Seen struct {
	Started time.Time     `json:"started,omitzero"`
	Latency time.Duration `json:"latency,omitzero"`
	Attempt int           `json:"attempt,omitzero"` // from 1, over all runs
}

// answer says which attempt answers a key. Again marks an answer that is not served from the cache,
// because asking again may help: a reply whose tokens went into thoughts alone. It is Held for what asked first, which may
// be killed, or come back in a later run for what a batch answered, until what failed by it is tried again.
type answer struct {
	Attempt int  `json:"attempt"`
	Again   bool `json:"again,omitzero"`
	Held    bool `json:"held,omitzero"`
	Sum     sum  `json:"sum"`
}

// served reports whether the answer is given to whoever asks for it.
func (a answer) served() bool { return !a.Again || a.Held }

// sum is a hash that is stored as hex.
type sum [32]byte

// MarshalText writes the hash as hex.
func (s sum) MarshalText() ([]byte, error) { return []byte(hex.EncodeToString(s[:])), nil }

// UnmarshalText reads hex.
func (s *sum) UnmarshalText(b []byte) error {
	if hex.DecodedLen(len(b)) != len(s) {
		return fmt.Errorf("read sum: %d digits", len(b))
	}
	_, err := hex.Decode(s[:], b)
	return err
}

// recordKey orders the attempts of a key by number.
func recordKey(id string, attempt int) string {
	return kv.Key(id, fmt.Sprintf("%06d", attempt))
}

// attemptOf reads the number back.
func attemptOf(key string) int {
	parts := kv.Parts(key)
	if len(parts) != 2 {
		return 0
	}
	n, _ := strconv.Atoi(parts[1]) // 0 for a key that recordKey did not make
	return n
}

// recorder keeps every attempt that left the machine: the body first, then what it says.
type recorder struct {
	c    *Client
	next caller
}

func (r *recorder) call(ctx context.Context, c *call) (*result, error) {
	started := r.c.o.Now()
	res, err := r.next.call(ctx, c)
	seen := Seen{Started: started.UTC().Round(0), Latency: r.c.o.Now().Sub(started), Attempt: c.attempts + 1}
	var e *Error
	if err != nil && (!errors.As(err, &e) || e.unsent) {
		return nil, err
	}
	c.attempts++
	if e != nil {
		res, err = r.c.keepFailure(c, seen, e)
	} else {
		res, err = r.c.keepReply(c, seen, res)
	}
	if res != nil {
		r.c.ledger.bought(res.record, r.c.stageOf(ctx))
	}
	return res, err
}

// keepReply puts a reply on disk before anybody reads it. Error replies cost nothing and are kept
// with what they are found to say. A reply that is on disk is in flight no more, so its slot is free
// for the next call while it is read; that of an error is kept until the gate has learnt from it.
func (c *Client) keepReply(cl *call, seen Seen, res *result) (*result, error) {
	if res.status < 300 {
		if err := c.raw.Put(recordKey(cl.id, seen.Attempt), res.body); err != nil {
			return nil, cl.storeError("keep a reply", err)
		}
		cl.release()
	}
	return c.settle(cl, res, seen)
}

// settle reads a reply that is already kept, and writes its record and the answer together.
func (c *Client) settle(cl *call, res *result, seen Seen) (*result, error) {
	rec, a, failed := c.reckon(cl, res, seen)
	if failed != nil {
		return c.keepFailure(cl, seen, failed)
	}
	key := recordKey(cl.id, seen.Attempt)
	ops := make([]kv.Op, 0, 3)
	put, err := c.calls.PutOp(key, rec)
	if err == nil {
		ops = append(ops, put)
		put, err = c.answers.PutOp(kv.Key(cl.id), a)
		ops = append(ops, put)
	}
	if err == nil && res.status >= 300 {
		put, err = c.raw.PutOp(key, res.body)
		ops = append(ops, put)
	}
	if err == nil {
		err = c.o.Store.Write(ops...)
	}
	if err != nil {
		return nil, cl.storeError("keep a call record", err)
	}
	return &result{record: rec, body: res.body, json: rec.Parsed, sum: a.Sum}, nil
}

// reckon reads a reply into its record, and into what the key answers from now on.
func (c *Client) reckon(cl *call, res *result, seen Seen) (Record, answer, *Error) {
	f, failed := cl.interpret(res, c.o.Now())
	if failed != nil {
		return Record{}, answer{}, failed
	}
	rec := cl.record(seen)
	rec.Returned, rec.Fingerprint, rec.Finish, rec.Raw = f.model, f.fingerprint, f.finish, f.text
	rec.Outcome = f.outcome
	if f.outcome == "" {
		rec.Outcome, rec.Parsed, rec.Parse = cl.template.read(f.text)
	}
	rec.Usage = f.usage
	if f.usage == (Usage{}) && cl.route.at.Provider != ProviderBuiltin {
		rec.Usage, rec.Estimated = estimate(cl, f.text), true
	}
	c.price(cl, &rec)
	thoughts := rec.Outcome == OutcomeTruncated && answerText(f.text) == ""
	return rec, answer{Attempt: seen.Attempt, Sum: sumOf(rec, f.vectors), Again: thoughts, Held: thoughts}, nil
}

// estimate is a usage for replies that tell none.
func estimate(cl *call, text string) Usage {
	u := Usage{Prompt: len(cl.body)/3 + 1, Completion: (len(text) + 2) / 3}
	u.Total = u.Prompt + u.Completion
	return u
}

// keepFailure records an attempt that brought no reply, with its worst case if it may be billed.
func (c *Client) keepFailure(cl *call, seen Seen, e *Error) (*result, error) {
	rec := c.failure(cl, seen, e)
	if err := c.calls.Put(recordKey(cl.id, seen.Attempt), rec); err != nil {
		return nil, cl.storeError("keep a call record", err)
	}
	return &result{record: rec}, e
}

// failure is the record of an attempt that brought no reply.
func (c *Client) failure(cl *call, seen Seen, e *Error) Record {
	rec := cl.record(seen)
	rec.Failure, rec.Status, rec.Detail, rec.Usage = e.Reason, e.Status, e.Detail, e.usage
	if e.charged && rec.Usage == (Usage{}) {
		rec.Usage, rec.Estimated = cl.reserve(), true
	}
	c.price(cl, &rec)
	return rec
}

// record starts a record with what was asked.
func (c *call) record(seen Seen) Record {
	rec := Record{
		ID: c.id, Role: c.role, Endpoint: c.route.name, Provider: c.route.at.Provider, Model: c.model,
		Params: c.params, Sample: c.sample, Input: c.input, Seen: seen,
	}
	if c.template != nil {
		rec.Template, rec.TemplateVersion, rec.TemplateHash = c.template.name, c.template.version, c.template.hash
	}
	return rec
}

// price says what a record cost.
func (c *Client) price(cl *call, rec *Record) {
	if p, ok := cl.price(c.o.Prices); ok {
		usd := p.Cost(rec.Usage)
		rec.USD = &usd
		rec.Unbilled = cl.unbilled(c.o.Prices)
		if cl.route.at.Provider != ProviderBuiltin {
			rec.PriceDate = p.Date
			if cl.route.at.Price == nil && !rec.Unbilled {
				rec.PriceDate = cmp.Or(p.Date, c.o.Prices.Date)
			}
		}
	}
}

// sumOf is what a dependency on this answer looks at: how it ended and what was said, not the ids and
// times that an endpoint puts around it.
func sumOf(rec Record, vectors [][]float32) [32]byte {
	b := []byte(hashParts(string(rec.Outcome), rec.Returned, rec.Raw))
	for _, v := range vectors {
		b, _ = binary.Append(b, binary.LittleEndian, v) // no error: float32 has a fixed size
	}
	return sha256.Sum256(b)
}

// Calls yields the record of every attempt in key order, failed ones (without Outcome) too. A record
// that cannot be read is an error of its own, and the walk goes on.
func (c *Client) Calls() iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for e, err := range c.calls.Scan("", "") {
			if !yield(e.Value, err) {
				return
			}
		}
	}
}

// Record returns the record that answers a request key.
func (c *Client) Record(id string) (Record, bool, error) {
	a, ok, err := c.answers.Get(kv.Key(id))
	if err != nil || !ok {
		return Record{}, false, err
	}
	return c.calls.Get(recordKey(id, a.Attempt))
}

// Body returns the body of the reply behind a request key, as it came over the wire.
func (c *Client) Body(id string) ([]byte, bool, error) {
	a, ok, err := c.answers.Get(kv.Key(id))
	if err != nil || !ok {
		return nil, false, err
	}
	return c.raw.Get(recordKey(id, a.Attempt))
}

// Spend is what calls cost, summed over their records.
type Spend struct {
	Calls        int     `json:"calls"`
	Usage        Usage   `json:"usage"`
	USD          float64 `json:"usd"`
	Unpriced     int     `json:"unpriced,omitzero"`      // calls of models without a known price; USD lacks them
	Estimated    int     `json:"estimated,omitzero"`     // calls whose endpoint told no usage, counted at their worst
	EstimatedUSD float64 `json:"estimated_usd,omitzero"` // part of USD
	Corrupt      int     `json:"corrupt,omitzero"`       // records that cannot be read, reported to Options.Corrupt

	Unbilled []string `json:"unbilled,omitempty"` // models without a known price that a server of one's own answered for, sorted; USD has 0 for them
}

func (s *Spend) add(rec Record) {
	s.Calls++
	s.Usage = s.Usage.Add(rec.Usage)
	if rec.Estimated {
		s.Estimated++
	}
	if rec.USD == nil {
		s.Unpriced++
		return
	}
	s.USD += *rec.USD
	if i, known := slices.BinarySearch(s.Unbilled, rec.Model); rec.Unbilled && !known {
		s.Unbilled = slices.Insert(slices.Clone(s.Unbilled), i, rec.Model) // a copy: Stats gives the list away
	}
	if rec.Estimated {
		s.EstimatedUSD += *rec.USD
	}
}

// Spend sums the records of the whole store, whichever run made them.
func (c *Client) Spend() (Spend, error) {
	var s Spend
	for rec, err := range c.Calls() {
		var corrupt *kv.CorruptError
		switch {
		case errors.As(err, &corrupt):
			s.Corrupt++
			_ = c.rebuildable(err) // reports it
		case err != nil:
			return s, fmt.Errorf("sum call records: %w", err)
		default:
			s.add(rec)
		}
	}
	return s, nil
}
