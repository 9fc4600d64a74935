package llm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/template"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Template is a prompt with the shape of its answer and the builtin model's way to answer it. It must
// not change once it has been used.
//
// System and User are text/template over the request's Vars; a variable that is missing is an error.
// User may call
//
//	{{fence .Text}}
//	{{fence "title" .Title "source" .Source "text" .Text}}
//
// which puts material between an opening and a closing line that carry a marker. The marker is derived
// from the salt, the template's name and the material, so that the same input gives the same prompt
// and a document cannot know its own marker. Whatever comes from outside belongs into a fence; System
// cannot fence, so that instructions and material never share a message.
type Template struct {
	Name    string // [a-z0-9_]+, the name of its prompt file
	Version int
	System  string
	User    string
	Schema  json.RawMessage // of the answer, in the portable subset (see CheckSchema); nil: free text
	Labels  Labels          // how a bare label is read; zero: not at all
	Salt    string          // set by the client

	// Builtin answers for the builtin model, from the same Vars. It must be pure, and its answer must
	// fit Schema. BuiltinVersion is part of the request key: raise it when Builtin answers differently.
	Builtin        func(vars any) (json.RawMessage, error)
	BuiltinVersion int
}

// Labels tells the ladder which property of an answer is the label and what else it may be called.
type Labels struct {
	Field   string            // property that holds the label
	Allowed []string          // the labels; empty: the enum of Field in the schema
	Aliases map[string]string // normalised spelling (see NormaliseLabel) => label
}

// ParsePrompt reads the text of a prompt file:
//
//	# notes for people, up to the first separator
//	--- system
//	what the model shall do
//	--- user
//	{{fence "text" .Text}}
//
// The system part may be missing, the user part may not. Line ends are made uniform and blank lines
// around a part are dropped, so that an editor's habits do not change a request key.
func ParsePrompt(text string) (system, user string, err error) {
	parts := map[string]*strings.Builder{}
	var part *strings.Builder
	for i, line := range strings.Split(strings.ReplaceAll(strings.TrimPrefix(text, "\ufeff"), "\r\n", "\n"), "\n") {
		if name, ok := strings.CutPrefix(line, "--- "); ok {
			name = strings.TrimSpace(name)
			if name != "system" && name != "user" {
				return "", "", fmt.Errorf("line %d: part %q is neither system nor user", i+1, name)
			}
			if parts[name] != nil {
				return "", "", fmt.Errorf("line %d: a second %s part", i+1, name)
			}
			part = &strings.Builder{}
			parts[name] = part
			continue
		}
		if part == nil {
			if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
				return "", "", fmt.Errorf("line %d: text before the first part; notes start with #", i+1)
			}
			continue
		}
		part.WriteString(line + "\n")
	}
	if parts["user"] == nil {
		return "", "", errors.New("no user part")
	}
	if parts["system"] != nil {
		system = strings.TrimSpace(parts["system"].String())
	}
	return system, strings.TrimSpace(parts["user"].String()), nil
}

// LoadTemplate fills the texts of t from prompts/<name>.txt.
func LoadTemplate(fsys fs.FS, t Template) (*Template, error) {
	text, err := fs.ReadFile(fsys, "prompts/"+t.Name+".txt")
	if err != nil {
		return nil, fmt.Errorf("load template %s: %w", t.Name, err)
	}
	if t.System, t.User, err = ParsePrompt(string(text)); err != nil {
		return nil, fmt.Errorf("load template %s: %w", t.Name, err)
	}
	return &t, nil
}

// MustLoadTemplate is LoadTemplate for embedded files, whose absence is a mistake in the program.
func MustLoadTemplate(fsys fs.FS, t Template) *Template {
	loaded, err := LoadTemplate(fsys, t)
	if err != nil {
		panic(err)
	}
	return loaded
}

// Hash names the template's wording, schema and labels: SHA-256 in hex. The salt and Builtin are not in it.
func (t *Template) Hash() string {
	parts := []string{t.Name, strconv.Itoa(t.Version), t.System, t.User, string(t.Schema), t.Labels.Field, strconv.Itoa(len(t.Labels.Allowed))}
	parts = append(parts, t.Labels.Allowed...)
	for _, k := range slices.Sorted(maps.Keys(t.Labels.Aliases)) {
		parts = append(parts, k, t.Labels.Aliases[k])
	}
	return hashParts(parts...)
}

// Render returns the messages for some variables.
func (t *Template) Render(vars any) ([]Message, error) {
	ct, err := t.compile()
	if err != nil {
		return nil, err
	}
	return ct.render(vars)
}

// Parse reads a reply by the local rungs of the ladder: valid JSON and the rung, or nil and ParseFailed.
func (t *Template) Parse(raw string) (json.RawMessage, ParseStatus, error) {
	ct, err := t.compile()
	if err != nil {
		return nil, ParseFailed, err
	}
	b, status := ct.parse(raw)
	return b, status, nil
}

var templateName = regexp.MustCompile(`^[a-z0-9_]+$`)

// Check reports what a shipped template must not lack: a sound name, texts that parse, a portable
// schema that knows the label field, and a builtin answer.
func (t *Template) Check() error {
	if !templateName.MatchString(t.Name) {
		return fmt.Errorf("check template %q: the name must be lower-case letters, digits and underscores", t.Name)
	}
	ct, err := t.compile()
	if err != nil {
		return err
	}
	if t.Schema != nil {
		if err := CheckSchema(t.Schema); err != nil {
			return fmt.Errorf("check template %s: %w", t.Name, err)
		}
	}
	if t.Labels.Field != "" && len(ct.allowed) == 0 {
		return fmt.Errorf("check template %s: no labels are known for field %q", t.Name, t.Labels.Field)
	}
	if t.Builtin == nil {
		return fmt.Errorf("check template %s: it has no builtin answer", t.Name)
	}
	return nil
}

// compiled is a template that has been parsed.
type compiled struct {
	name    string
	version int
	salt    string
	hash    string
	system  *template.Template // nil without a system part
	user    *template.Template
	raw     json.RawMessage // the schema, compact
	schema  *jsonschema.Schema
	shape   shape
	labels  Labels
	allowed []string
	line    *regexp.Regexp // a last line that is a label and nothing else
	from    Template       // what the client compiled
}

// same reports whether a template reads as it did. Texts that are shared with the other are equal at
// a glance.
func (t *Template) same(u *Template) bool {
	return t.Name == u.Name && t.Version == u.Version && t.System == u.System && t.User == u.User && bytes.Equal(t.Schema, u.Schema) &&
		t.Labels.Field == u.Labels.Field && slices.Equal(t.Labels.Allowed, u.Labels.Allowed) && maps.Equal(t.Labels.Aliases, u.Labels.Aliases)
}

// structured reports whether the answer has a form that a repair could restore.
func (t *compiled) structured() bool { return t.schema != nil || t.labels.Field != "" }

func (t *Template) compile() (*compiled, error) {
	ct := &compiled{name: t.Name, version: t.Version, salt: t.Salt, hash: t.Hash(), labels: t.Labels}
	parse := func(part, text string, funcs template.FuncMap) (*template.Template, error) {
		p, err := template.New(t.Name + "." + part).Option("missingkey=error").Funcs(funcs).Parse(text)
		if err != nil {
			return nil, fmt.Errorf("parse template %s: %w", t.Name, err)
		}
		return p, nil
	}
	var err error
	if t.System != "" {
		noFence := func(...any) (string, error) { return "", errors.New("fence belongs into the user part") }
		if ct.system, err = parse("system", t.System, template.FuncMap{"fence": noFence}); err != nil {
			return nil, err
		}
	}
	if ct.user, err = parse("user", t.User, template.FuncMap{"fence": ct.fence}); err != nil {
		return nil, err
	}
	if t.Schema != nil {
		if ct.raw, ct.schema, ct.shape, err = compileSchema(t.Schema); err != nil {
			return nil, fmt.Errorf("parse template %s: %w", t.Name, err)
		}
	}
	ct.allowed = t.Labels.Allowed
	if len(ct.allowed) == 0 && t.Labels.Field != "" {
		ct.allowed = ct.shape.enum[t.Labels.Field]
	}
	if t.Labels.Field != "" {
		ct.line = labelLine(t.Labels.Field)
	}
	return ct, nil
}

// render fills in the variables.
func (t *compiled) render(vars any) ([]Message, error) {
	var messages []Message
	for _, p := range []struct {
		role string
		text *template.Template
	}{{"system", t.system}, {"user", t.user}} {
		if p.text == nil {
			continue
		}
		var b bytes.Buffer
		if err := p.text.Execute(&b, vars); err != nil {
			return nil, fmt.Errorf("render template %s: %w", t.name, err)
		}
		messages = append(messages, Message{Role: p.role, Content: strings.ToValidUTF8(b.String(), "\ufffd")})
	}
	return messages, nil
}

// fence puts material between two lines that carry its marker. One argument is the material itself;
// more are names and values in turn, of which the empty ones are left out.
func (t *compiled) fence(args ...any) (string, error) {
	text := make([]string, len(args))
	for i, a := range args {
		if a == nil {
			return "", fmt.Errorf("argument %d of fence is nil", i+1)
		}
		text[i] = strings.ToValidUTF8(fmt.Sprint(a), "\ufffd")
	}
	var body string
	switch {
	case len(text) == 1:
		body = text[0]
	case len(text) == 0 || len(text)%2 != 0:
		return "", errors.New("fence takes the material, or names and values in turn")
	default:
		var lines []string
		for i := 0; i < len(text); i += 2 {
			switch name, value := text[i], text[i+1]; {
			case value == "":
			case strings.Contains(value, "\n"):
				lines = append(lines, name+":\n"+value)
			default:
				lines = append(lines, name+": "+value)
			}
		}
		body = strings.Join(lines, "\n")
	}
	m := marker(t.salt, t.name, body)
	return "[material " + m + "]\n" + body + "\n[end of material " + m + "]", nil
}

// marker is the first 12 hex digits of SHA-256 over the length-prefixed salt, template name and text,
// and as many more as it takes until the text does not contain it (methods, decision 1).
func marker(salt, name, text string) string {
	return unused(hashParts(salt, name, text), text)
}

// unused returns the shortest prefix of digits, from 12 on, that text does not contain.
func unused(digits, text string) string {
	n := 12
	for n < len(digits) && strings.Contains(text, digits[:n]) {
		n++
	}
	return digits[:n]
}
