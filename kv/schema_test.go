package kv

import (
	"errors"
	"strings"
	"testing"

	"github.com/dgraph-io/badger/v4"
	"github.com/google/go-cmp/cmp"
)

func TestSchema(t *testing.T) {
	boom := errors.New("boom")
	add := func(text string) func(*Store) error {
		return func(s *Store) error {
			b := In[string](s, "log", 1)
			v, _, err := b.Get("steps")
			if err != nil {
				return err
			}
			return b.Put("steps", v+text)
		}
	}
	for name, c := range map[string]struct {
		have, want schema
		hint       string // of the SchemaError
		steps      string
		err        error
	}{
		"same":              {have: schema{Major: 2, Minor: 3}, want: schema{Major: 2, Minor: 3}},
		"newer minor":       {have: schema{Major: 2, Minor: 4}, want: schema{Major: 2, Minor: 3}, hint: "a newer program"},
		"newer major":       {have: schema{Major: 3}, want: schema{Major: 2, Minor: 3}, hint: "a newer program"},
		"older major":       {have: schema{Major: 1, Minor: 9}, want: schema{Major: 2}, hint: "make a backup with that program"},
		"older minor":       {have: schema{Major: 2, Minor: 1}, want: schema{Major: 2, Minor: 3, migrate: map[int]func(*Store) error{1: add("a"), 2: add("b")}}, steps: "ab"},
		"no step":           {have: schema{Major: 2, Minor: 1}, want: schema{Major: 2, Minor: 3, migrate: map[int]func(*Store) error{2: add("b")}}, hint: "no way from the older version"},
		"a step that fails": {have: schema{Major: 2}, want: schema{Major: 2, Minor: 1, migrate: map[int]func(*Store) error{0: func(*Store) error { return boom }}}, err: boom},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s, err := open(dir, Options{}, c.have)
			if err != nil {
				t.Fatal(err)
			}
			put(t, In[string](s, "b", 1), "a", "1")
			closeTest(t, s)

			s, err = open(dir, Options{}, c.want)
			var refused *SchemaError
			switch {
			case c.err != nil:
				if !errors.Is(err, c.err) {
					t.Errorf("Open = %v, want %v", err, c.err)
				}
			case c.hint != "":
				if !errors.As(err, &refused) || !strings.Contains(refused.Hint, c.hint) || refused.Have != c.have.String() || refused.Want != c.want.String() || !refused.StopsRun() {
					t.Errorf("Open = %v, want a *SchemaError that says %q", err, c.hint)
				}
			case err != nil:
				t.Errorf("Open = %v", err)
			default:
				if got, _, err := In[string](s, "log", 1).Get("steps"); got != c.steps || err != nil {
					t.Errorf("steps = %q, %v, want %q", got, err, c.steps)
				}
				closeTest(t, s)
				s, err = open(dir, Options{}, c.want) // now there is nothing to do
				if err != nil {
					t.Fatal(err)
				}
				if got, _, err := In[string](s, "log", 1).Get("steps"); got != c.steps || err != nil {
					t.Errorf("steps after reopening = %q, %v, want %q", got, err, c.steps)
				}
				closeTest(t, s)
			}
			// What was refused is as it was, and no lock is left.
			if err == nil {
				return
			}
			s, err = open(dir, Options{}, c.have)
			if err != nil {
				t.Fatalf("Open with the older program: %v", err)
			}
			if diff := cmp.Diff([]string{"a=1"}, contents(In[string](s, "b", 1), "", "")); diff != "" {
				t.Errorf("records (-want +got):\n%s", diff)
			}
			closeTest(t, s)
		})
	}
}

func TestForeignBadger(t *testing.T) {
	dir := t.TempDir()
	db, err := badger.Open(badger.DefaultOptions(dataDir(dir, 1)).WithLogger(nil))
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(txn *badger.Txn) error { return txn.Set([]byte("x"), []byte("y")) })
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	var refused *SchemaError
	if _, err := Open(dir, Options{}); !errors.As(err, &refused) || !strings.Contains(err.Error(), "unknown") {
		t.Errorf("Open of a store without a marker = %v, want a *SchemaError", err)
	}
}
