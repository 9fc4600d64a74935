package evidence

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"assay/corpus"
	"assay/llm"
)

// DecomposeVars is what the decompose template and its builtin answer read.
type DecomposeVars struct {
	Claim   string `json:"claim"`
	Speaker string `json:"speaker,omitzero"`
	Date    string `json:"date,omitzero"`
	Most    int    `json:"most"`
}

type decomposeReply struct {
	Subclaims []string `json:"subclaims"`
}

// Decompose asks for the parts of a claim that can be checked each by itself.
var Decompose = llm.MustLoadTemplate(prompts, llm.Template{
	Name:    "decompose",
	Version: 1,
	Schema: json.RawMessage(`{"type":"object","properties":{"subclaims":{"type":"array","items":{"type":"string"}}},` +
		`"required":["subclaims"],"additionalProperties":false}`),
	Builtin:        builtinDecompose,
	BuiltinVersion: 1,
})

// Subclaims takes a claim apart. A claim with one part is its own only subclaim, and so is one whose
// parts the model made up: each must share words with the claim, and together they must keep its numbers.
// The call is that of the reply.
func Subclaims(ctx context.Context, m Model, s Settings, c corpus.Claim) (parts []corpus.Subclaim, call string, err error) {
	s = s.complete()
	text := corpus.Space(c.Text)
	reply, err := m.Complete(ctx, s.request("decompose", Decompose, DecomposeVars{Claim: text, Speaker: corpus.Space(c.Speaker), Date: c.StatedDate, Most: s.Subclaims}))
	if err != nil {
		return nil, "", fmt.Errorf("decompose %s: %w", c.ID, err)
	}
	if reply.Outcome != llm.OutcomeAnswered {
		return nil, reply.Call, &Failure{Doing: "decompose " + c.ID, Outcome: string(reply.Outcome), Call: reply.Call}
	}
	var answer decomposeReply
	if err := json.Unmarshal(reply.JSON, &answer); err != nil {
		return nil, reply.Call, fmt.Errorf("decompose %s: %w", c.ID, err) // unreachable: it fits the schema
	}
	for _, t := range faithful(text, answer.Subclaims, s.Subclaims) {
		parts = append(parts, corpus.Subclaim{ID: fmt.Sprintf("s%d", len(parts)+1), Text: t})
	}
	return parts, reply.Call, nil
}

// faithful holds the parts against the claim and returns the claim alone if they do not hold.
func faithful(claim string, parts []string, most int) []string {
	whole := []string{claim}
	if len(parts) < 2 || len(parts) > most {
		return whole
	}
	own, missing := map[string]bool{}, map[string]bool{}
	for _, w := range content(claim) {
		own[w.Lower] = true
		if w.Number {
			missing[w.Lower] = true
		}
	}
	seen := map[string]bool{}
	var out []string
	for _, p := range parts {
		p = corpus.Space(p)
		shared, words := 0, content(p)
		for _, w := range words {
			if own[w.Lower] {
				shared++
			} else if w.Number {
				return whole // a figure of the model's own
			}
			delete(missing, w.Lower)
		}
		if 2*shared < len(words) || shared == 0 {
			return whole
		}
		if key := strings.ToLower(corpus.Fold(p)); !seen[key] {
			seen[key] = true
			out = append(out, p)
		}
	}
	if len(missing) > 0 || len(out) < 2 {
		return whole
	}
	return out
}

// content are the words of a text that say something by themselves.
func content(text string) []llm.Word {
	var out []llm.Word
	for _, s := range llm.Sentences(text) {
		for _, w := range s.Words {
			if !w.Mark && (!w.Stop || w.Number) {
				out = append(out, w)
			}
		}
	}
	return out
}

// joints are the places where a sentence may hold two statements.
var joints = regexp.MustCompile(`(?i)(?:;|,? (?:and|but|while|whereas)(?: that)?) `)

// verbs that a clause turns on, for the builtin reading; a past form that endings do not show and a word
// in -ed or -s behind a name are the others.
var verbs = wordSet(`is are was were be been has have had does do did will would can could may might must shall should voted says said wants
costs cost paid pays spends spent made makes causes caused kills killed banned bans raised cut signed passed won lost grew fell rose`)

func wordSet(words string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(words) {
		m[w] = true
	}
	return m
}

// builtinDecompose parts a claim at conjunctions between clauses. A clause without a subject of its own
// takes that of the first.
func builtinDecompose(vars any) (json.RawMessage, error) {
	v, ok := vars.(DecomposeVars)
	if !ok {
		return nil, fmt.Errorf("decompose: variables are %T", vars)
	}
	reply := decomposeReply{Subclaims: []string{}}
	for _, s := range llm.Sentences(v.Claim) {
		reply.Subclaims = append(reply.Subclaims, clauses(strings.TrimRight(v.Claim[s.Start:s.End], ".!;"))...)
	}
	if len(reply.Subclaims) > v.Most {
		reply.Subclaims = []string{v.Claim}
	}
	return json.Marshal(reply)
}

func clauses(sentence string) []string {
	var parts []string
	rest := sentence
	for {
		at := joint(rest)
		if at == nil {
			parts = append(parts, rest)
			break
		}
		parts = append(parts, rest[:at[0]])
		rest = rest[at[1]:]
	}
	subject := subjectOf(parts[0])
	for i, p := range parts {
		p = strings.TrimSpace(p)
		if i > 0 && subject != "" && subjectOf(p) == "" {
			p = subject + " " + p
		}
		parts[i] = p
	}
	return parts
}

// joint finds a conjunction with a clause on either side.
func joint(s string) []int {
	for _, at := range joints.FindAllStringIndex(s, -1) {
		if hasVerb(s[:at[0]]) && startsClause(s[at[1]:]) {
			return at
		}
	}
	return nil
}

func hasVerb(s string) bool { return verbAt(s) >= 0 }

// startsClause reports whether a verb stands among the first words.
func startsClause(s string) bool {
	at := verbAt(s)
	return at >= 0 && len(strings.Fields(s[:at])) <= 5 && len(content(s)) >= 2
}

// verbAt is where the first verb of a clause stands, -1 for none.
func verbAt(s string) int {
	for _, sentence := range llm.Sentences(s) {
		for i, w := range sentence.Words {
			switch {
			case w.Mark || w.Name:
			case verbs[w.Lower] || w.Finite, i > 0 && strings.HasSuffix(w.Lower, "ed"):
				return w.Start
			}
		}
	}
	return -1
}

// subjectOf is what stands before the verb of a clause; "" where the verb comes first or the subject
// stands for something else.
func subjectOf(clause string) string {
	at := verbAt(clause)
	if at <= 0 {
		return ""
	}
	subject := strings.TrimSpace(clause[:at])
	switch strings.ToLower(subject) {
	case "he", "she", "it", "they", "then", "also", "never", "always", "not":
		return ""
	}
	return subject
}
