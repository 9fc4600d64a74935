package llm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// SchemaMode says how an endpoint is told the shape of an answer. The answer is checked here whatever
// the endpoint promises.
type SchemaMode string

// The values of SchemaMode. With object and none the schema is written into the system message.
const (
	SchemaJSON   SchemaMode = "json_schema" // response_format with the schema, enforced by most servers
	SchemaObject SchemaMode = "json_object" // response_format that asks for some object
	SchemaNone   SchemaMode = "none"        // no response_format
)

// shape is what the ladder must know about a schema's top level.
type shape struct {
	required []string
	empty    map[string]string   // property => its empty value as JSON, where it has one
	enum     map[string][]string // property => its allowed strings
}

// node is the part of a schema that we read.
type node struct {
	Type                 any              `json:"type"`
	Properties           map[string]*node `json:"properties"`
	Required             []string         `json:"required"`
	AdditionalProperties any              `json:"additionalProperties"`
	Items                *node            `json:"items"`
	Enum                 []any            `json:"enum"`
}

// types lists the types that a node allows.
func (n *node) types() []string {
	switch t := n.Type.(type) {
	case string:
		return []string{t}
	case []any:
		var all []string
		for _, v := range t {
			if s, ok := v.(string); ok {
				all = append(all, s)
			}
		}
		return all
	}
	return nil
}

// compileSchema prepares a schema for validation. It loads nothing from elsewhere.
func compileSchema(schema json.RawMessage) (json.RawMessage, *jsonschema.Schema, shape, error) {
	var compact bytes.Buffer
	if err := json.Compact(&compact, schema); err != nil {
		return nil, nil, shape{}, fmt.Errorf("read schema: %w", err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(compact.Bytes()))
	if err != nil {
		return nil, nil, shape{}, fmt.Errorf("read schema: %w", err)
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	if err := c.AddResource(schemaURL, doc); err != nil {
		return nil, nil, shape{}, fmt.Errorf("read schema: %w", err)
	}
	sch, err := c.Compile(schemaURL)
	if err != nil {
		return nil, nil, shape{}, fmt.Errorf("read schema: %w", err)
	}
	var root node
	if err := json.Unmarshal(compact.Bytes(), &root); err != nil {
		return nil, nil, shape{}, fmt.Errorf("read schema: %w", err)
	}
	return compact.Bytes(), sch, shapeOf(root), nil
}

// schemaURL names a schema to the compiler; a relative name would become a path of this machine.
const schemaURL = "mem:///answer.json"

type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("a schema may not refer to %s", url)
}

func shapeOf(root node) shape {
	s := shape{required: root.Required, empty: map[string]string{}, enum: map[string][]string{}}
	for name, p := range root.Properties {
		for _, v := range p.Enum {
			if label, ok := v.(string); ok {
				s.enum[name] = append(s.enum[name], label)
			}
		}
		types := p.types()
		switch {
		case slices.Contains(types, "null"):
			s.empty[name] = "null"
		case slices.Contains(types, "string"):
			s.empty[name] = `""`
		case slices.Contains(types, "array"):
			s.empty[name] = "[]"
		}
	}
	return s
}

// portable lists the keywords that every schema-enforcing server understands alike.
var portable = []string{"additionalProperties", "description", "enum", "items", "properties", "required", "title", "type"}

// CheckSchema reports the first thing in a schema that some endpoints reject or ignore: anything but
// an object whose properties are all required, nothing beside them allowed, and none of minimum,
// pattern, format, $ref and the like.
func CheckSchema(schema json.RawMessage) error {
	if err := checkNode("", schema, true); err != nil {
		return fmt.Errorf("check schema: %w", err)
	}
	_, _, _, err := compileSchema(schema)
	return err
}

func checkNode(path string, raw json.RawMessage, top bool) error {
	at := func(format string, args ...any) error {
		where := "top level"
		if path != "" {
			where = path
		}
		return fmt.Errorf("%s: %w", where, fmt.Errorf(format, args...))
	}
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(raw, &keys); err != nil {
		return at("it is no object")
	}
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		if !slices.Contains(portable, k) {
			return at("keyword %q is not portable", k)
		}
	}
	var n node
	if err := json.Unmarshal(raw, &n); err != nil {
		return at("%w", err)
	}
	types := n.types()
	if len(types) == 0 {
		return at("no type")
	}
	if top && !slices.Equal(types, []string{"object"}) {
		return at("the type must be object")
	}
	if slices.Contains(types, "object") {
		if n.AdditionalProperties != false {
			return at("additionalProperties must be false")
		}
		var props map[string]json.RawMessage
		if err := json.Unmarshal(keys["properties"], &props); err != nil {
			return at("no properties")
		}
		for _, name := range slices.Sorted(maps.Keys(props)) {
			if !slices.Contains(n.Required, name) {
				return at("property %q must be required", name)
			}
			if err := checkNode(strings.TrimPrefix(path+"."+name, "."), props[name], false); err != nil {
				return err
			}
		}
	}
	if slices.Contains(types, "array") {
		if keys["items"] == nil {
			return at("an array must say what its items are")
		}
		return checkNode(path+"[]", keys["items"], false)
	}
	return nil
}
