package fetch

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// A purse is the money of a run, as a model client keeps it.
type purse struct{ left, held float64 }

var errPoor = errors.New("no money left")

func (p *purse) reserve(_ context.Context, usd float64) (func(float64), error) {
	if usd > p.left {
		return nil, errPoor
	}
	p.left -= usd
	p.held += usd
	return func(spent float64) { p.held -= usd; p.left += usd - spent }, nil
}

func TestCharge(t *testing.T) {
	w := newWeb(t)
	store := memory(t)
	w.pages["api.example/ok"] = jsonReply(200, `{}`)
	w.pages["api.example/refused"] = jsonReply(400, `{}`)
	w.pages["api.example/twice"] = inTurn(jsonReply(503, `{}`), jsonReply(200, `{"n":3}`))
	w.pages["api.example/cut"] = func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(rw, "{") // and no more
	}
	money := &purse{left: 1}
	c := w.client(t, store, func(o *Options) { o.Reserve = money.reserve; o.Retries = 1 })
	price := &Charge{Worst: 0.25, Date: "2026-01-01"}
	perItem := &Charge{Worst: 0.25, Of: func(r Reply) float64 { return float64(strings.Count(string(r.Body), "3")) * 0.0625 }}
	spent := 0.0
	for _, tt := range []struct {
		path   string
		charge *Charge
		usd    float64
	}{
		{"/ok", price, 0.25},
		{"/ok", price, 0}, // from the store
		{"/refused", price, 0},
		{"/twice", perItem, 0.0625},
		{"/cut", perItem, 0.5}, // nobody knows what two broken answers cost
		{"/ok?free", nil, 0},
		{"/ok?poor", price, -1},
	} {
		_, err := c.Call(t.Context(), Call{URL: "http://api.example" + tt.path, Charge: tt.charge})
		if tt.usd < 0 {
			if !errors.Is(err, errPoor) || len(w.seen("api.example"+tt.path)) != 0 {
				t.Errorf("%s beyond the money of the run: %v", tt.path, err)
			}
			continue
		}
		if tt.path != "/cut" && err != nil {
			t.Fatal(err)
		}
		spent += tt.usd
		if left := 1 - spent; money.left != left || money.held != 0 || c.Stats().USD != spent {
			t.Errorf("%s: $%g left and $%g held, $%g in the stats, want $%g left", tt.path, money.left, money.held, c.Stats().USD, left)
		}
	}
	got, err := w.client(t, store).Spend() // the records are enough
	if want := (Spend{Requests: 4, USD: spent, Estimated: 2}); err != nil || got != want {
		t.Errorf("spend %+v, %v; want %+v", got, err, want)
	}
	replay := w.client(t, store, func(o *Options) { o.Mode = Replay; o.Reserve = (&purse{}).reserve })
	if _, err := replay.Call(t.Context(), Call{URL: "http://api.example/ok", Charge: price}); err != nil || replay.Stats().USD != 0 {
		t.Errorf("replay pays: %v", err)
	}
	if ex, err := c.Exchanges("http://api.example/ok"); err != nil || ex[0].USD != 0.25 || ex[0].PriceDate != "2026-01-01" {
		t.Errorf("exchange %+v, %v", ex, err)
	}
	if _, err := c.Call(t.Context(), Call{URL: "http://api.example/odd", Charge: &Charge{Worst: -1}}); err == nil {
		t.Error("a negative price")
	}
	kept, err := Keep(store, func(func(string) bool) {}) // nothing rests on any answer
	if err != nil || !kept(bucketPayment, "x") {
		t.Errorf("payments are garbage: %v", err)
	}
}

// A request that we hang up on may be billed.
func TestChargeInterrupted(t *testing.T) {
	w := newWeb(t)
	ctx, cancel := context.WithCancel(t.Context())
	w.pages["api.example"] = func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	}
	money := &purse{left: 1}
	c := w.client(t, memory(t), func(o *Options) { o.Reserve = money.reserve })
	_, err := c.Call(ctx, Call{URL: "http://api.example/slow", Charge: &Charge{Worst: 0.25}})
	spend, sumErr := c.Spend()
	if !errors.Is(err, context.Canceled) || sumErr != nil || spend != (Spend{1, 0.25, 1}) || money.left != 0.75 || money.held != 0 {
		t.Errorf("%v, spend %+v, %v, money %+v", err, spend, sumErr, money)
	}
}

// A body is sent by POST, and one body is one question; the token stands where the interface wants it,
// and nowhere in the store.
func TestCallBodyAndToken(t *testing.T) {
	w := newWeb(t)
	store := memory(t)
	const secret = "key-0123456789"
	var got []string
	w.pages["api.example"] = func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = append(got, r.Method+" "+r.URL.RawQuery+" "+r.Header.Get("X-Key")+" "+r.Header.Get("Authorization")+" "+string(body))
		if len(got) == 1 {
			jsonReply(503, `{}`)(rw, r)
			return
		}
		jsonReply(200, `{"echo":"`+r.URL.Query().Get("key")+r.Header.Get("X-Key")+`"}`)(rw, r)
	}
	c := w.client(t, store)
	token := func(context.Context, string) (string, error) { return secret, nil }
	for _, call := range []Call{
		{URL: "http://api.example/search", Body: []byte(`{"q":"a"}`), Token: token, TokenHeader: "X-Key"},
		{URL: "http://api.example/search", Body: []byte(`{"q":"b"}`), Token: token, TokenHeader: "X-Key"},
		{URL: "http://api.example/search", Body: []byte(`{"q":"a"}`), Token: token, TokenHeader: "X-Key"},
		{URL: "http://api.example/search?q=a", Token: token, TokenQuery: "key"},
	} {
		if r, err := c.Call(t.Context(), call); err != nil || r.Status != 200 || strings.Contains(string(r.Body), secret) {
			t.Errorf("%s: %+v, %v", call.Body, r, err)
		}
	}
	want := []string{
		`POST  ` + secret + `  {"q":"a"}`, `POST  ` + secret + `  {"q":"a"}`, `POST  ` + secret + `  {"q":"b"}`,
		`GET q=a&key=` + secret + `   `,
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if strings.Contains(everything(t, store), secret) {
		t.Error("the store holds a key")
	}
}

// A good answer that says to be the last for long parks its host; one that asks for a short pause is
// waited for.
func TestCallParksAfterTheLast(t *testing.T) {
	w := newWeb(t)
	w.pages["api.example"] = jsonReply(200, `{}`)
	wait := 10 * time.Minute
	c := w.client(t, memory(t))
	ask := func(path string) error {
		_, err := c.Call(t.Context(), Call{URL: "http://api.example" + path, Judge: func(Reply) Judgement { return Judgement{Wait: wait} }})
		return err
	}
	if err := errors.Join(ask("/1"), ask("/2")); err != nil {
		t.Fatal(err)
	}
	if at := w.seen("api.example/2")[0].at; at.Sub(w.seen("api.example/1")[0].at) < wait {
		t.Errorf("asked again at %v", at)
	}
	wait = 3 * 24 * time.Hour
	if err := ask("/3"); err != nil {
		t.Errorf("the answer is lost: %v", err)
	}
	if e := wantReason(t, ask("/4"), ReasonParked); e.Wait > longestPark || e.FailureClass() != "transient" {
		t.Errorf("%v", e)
	}
}
