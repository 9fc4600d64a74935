package llm

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
)

// The builtin model goes through the chain as all others do, costs nothing and says what it is.
func TestBuiltin(t *testing.T) {
	calls := 0
	tmpl := exam()
	tmpl.Builtin = func(vars any) (json.RawMessage, error) {
		calls++
		return json.RawMessage(`{"label":"supporting","why":` + string(encode(vars.(examVars).Claim)) + `}`), nil
	}
	c := client(t, nil, Options{MaxUSD: 0.001})
	q := ask(1)
	q.Endpoint, q.Model, q.Template = "inside", "builtin", tmpl
	for range 2 {
		r := complete(t, c, q)
		if r.Outcome != OutcomeAnswered || r.Parse != ParseStrict || string(r.JSON) != `{"label":"supporting","why":"claim 1"}` || r.Model != "builtin" {
			t.Errorf("got %+v", r)
		}
	}
	rec := records(t, c)[0]
	if calls != 1 || rec.Provider != "builtin" || rec.Returned != "builtin" || rec.USD == nil || *rec.USD != 0 || rec.Usage != (Usage{}) || rec.Estimated || rec.PriceDate != "" {
		t.Errorf("%d computations, record %+v", calls, rec)
	}
	if st := c.Stats(); st.Calls != 1 || st.Hits != 1 || st.Tokens != 0 || st.Unpriced != 0 {
		t.Errorf("stats %+v", st)
	}
	// It reads the variables, not the prose, and its answers are stored under both.
	reworded := *tmpl
	reworded.System = "Other words."
	q.Template = &reworded
	if r := complete(t, c, q); string(r.JSON) != `{"label":"supporting","why":"claim 1"}` || calls != 2 {
		t.Errorf("reworded: %s after %d computations", r.JSON, calls)
	}
	newer := *tmpl
	newer.BuiltinVersion++
	q.Template = &newer
	if complete(t, c, q); calls != 3 {
		t.Errorf("a newer builtin answer was not computed")
	}
}

func TestBuiltinRefuses(t *testing.T) {
	for name, b := range map[string]func(any) (json.RawMessage, error){
		"absent":     nil,
		"fails":      func(any) (json.RawMessage, error) { return nil, errors.New("broken") },
		"misfits":    func(any) (json.RawMessage, error) { return json.RawMessage(`{"label":"maybe","why":""}`), nil },
		"no object":  func(any) (json.RawMessage, error) { return json.RawMessage(`supporting`), nil },
		"no content": func(any) (json.RawMessage, error) { return nil, nil },
	} {
		c := client(t, nil, Options{})
		q := ask(1)
		q.Endpoint, q.Template.Builtin = "inside", b
		_, err := c.Complete(t.Context(), q)
		var e *Error
		if !errors.As(err, &e) || e.Reason != ReasonNoBuiltin || len(records(t, c)) != 0 {
			t.Errorf("%s: got %v and %d records, want no_builtin and none", name, err, len(records(t, c)))
		}
	}
}

// Every profile file is in the slice, in order, and tells what it rests on.
func TestProfiles(t *testing.T) {
	var files []string
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if name, ok := strings.CutPrefix(e.Name(), "profile_"); ok && !strings.HasSuffix(name, "_test.go") {
			files = append(files, strings.TrimSuffix(name, ".go"))
		}
	}
	var names []string
	for _, p := range Profiles {
		names = append(names, p.Name)
		if p.Doc == "" || p.Reference == "" || !slices.Contains([]string{"captured", "documented", "unproven"}, p.Proven) {
			t.Errorf("profile %s does not say what it rests on: %+v", p.Name, p)
		}
		if p.TokenField != MaxTokensField && p.TokenField != MaxCompletionTokensField {
			t.Errorf("profile %s bounds answers by %q", p.Name, p.TokenField)
		}
	}
	if !slices.IsSorted(names) || !slices.Equal(names, files) {
		t.Errorf("profiles %v, files %v", names, files)
	}
}
