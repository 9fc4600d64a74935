package kv

import (
	"encoding/json"
	"fmt"

	"github.com/dgraph-io/badger/v4"
)

// schemaKey starts with 0x00, so no bucket can hold it and it is the first record of all.
const schemaKey = "\x00schema"

// A schema is a version of the store's layout: what lies under which key in which encoding. Another
// minor version is reached by migrating in place, another major version by backup and rebuilding.
type schema struct {
	Major int `json:"major"`
	Minor int `json:"minor"`
	// migrate[m] turns minor version m into m+1. It may run again after a kill, on a store that it
	// changed in part.
	migrate map[int]func(*Store) error
}

// Minor version 1 has small records that are not compressed beside those of version 0, which are.
var current = schema{Major: 1, Minor: 1, migrate: map[int]func(*Store) error{0: func(*Store) error { return nil }}}

func (v schema) String() string { return fmt.Sprintf("%d.%d", v.Major, v.Minor) }

func (v schema) op() Op {
	b, err := json.Marshal(v)
	return Op{key: []byte(schemaKey), value: b, err: err}
}

// checkSchema reads the marker of an open store, migrates an older minor version, and refuses what
// this program cannot read.
func (s *Store) checkSchema(want schema) error {
	have, ok, err := s.schema()
	if err != nil {
		return err
	}
	refuse := func(hint string) error {
		e := &SchemaError{Dir: s.dir, Want: want.String(), Hint: hint}
		if ok {
			e.Have = have.String()
		}
		return e
	}
	switch {
	case !ok:
		return refuse("this folder holds no store of this program; name another folder or restore a backup")
	case have.Major > want.Major || have.Major == want.Major && have.Minor > want.Minor:
		return refuse("a newer program wrote it; use that one")
	case have.Major < want.Major:
		return refuse("an older program wrote it; make a backup with that program and build a fresh store from an archive")
	}
	for m := have.Minor; m < want.Minor; m++ {
		step := want.migrate[m]
		if step == nil {
			return refuse("there is no way from the older version; make a backup with the older program and build a fresh store from an archive")
		}
		if err := step(s); err != nil {
			return fmt.Errorf("migrate store %s from schema %d.%d: %w", s.dir, want.Major, m, err)
		}
		if err := s.Write(schema{Major: want.Major, Minor: m + 1}.op()); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) schema() (v schema, ok bool, err error) {
	b, ok, err := s.get([]byte(schemaKey))
	if err == nil && ok {
		err = json.Unmarshal(b, &v)
	}
	if err != nil {
		return v, false, fmt.Errorf("read schema of store %s: %w", s.dir, err)
	}
	return v, ok, nil
}

// schemaIn reads the marker inside a transaction.
func schemaIn(txn *badger.Txn) (v schema, err error) {
	item, err := txn.Get([]byte(schemaKey))
	if err != nil {
		return v, err
	}
	err = item.Value(func(b []byte) error { return json.Unmarshal(b, &v) })
	return v, err
}
