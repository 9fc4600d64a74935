package planner

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"assay/corpus"
	"assay/llm"
)

//go:embed prompts
var prompts embed.FS

// MaxVariants is how many keyword variants of a claim are written at most.
const MaxVariants = 5

// Bounds of a keyword variant (methods 3.1, stage 2). A name of several words is one keyword.
const (
	minWords  = 2
	maxWords  = 6
	maxLength = 2 * maxWords // in words, names counted out
)

// KeywordVars is what the keywords template and its builtin answer read.
type KeywordVars struct {
	Claim    string `json:"claim"`
	Speaker  string `json:"speaker,omitzero"`
	Date     string `json:"date,omitzero"`
	Variants int    `json:"variants"`
	MinWords int    `json:"min_words"`
	MaxWords int    `json:"max_words"`
}

type keywordReply struct {
	Variants []string `json:"variants"`
}

// Keywords asks for search queries. Its answer is cleaned by Variants.
var Keywords = llm.MustLoadTemplate(prompts, llm.Template{
	Name:    "keywords",
	Version: 1,
	Schema: json.RawMessage(`{"type":"object","properties":{"variants":{"type":"array","items":{"type":"string"},` +
		`"description":"search queries of two to six keywords"}},"required":["variants"],"additionalProperties":false}`),
	Builtin:        builtinKeywords,
	BuiltinVersion: 1,
})

// Templates lists the prompts of this package.
func Templates() []*llm.Template { return []*llm.Template{Act, Keywords} }

// An OutcomeError means that the model gave no queries. The claim waits for a person or another
// model; it is never searched for by other words than the recipe says.
type OutcomeError struct {
	ClaimID string
	Outcome string // of the reply, or no_variants where an answer held none
	Call    string // id of the call record
}

func (e *OutcomeError) Error() string {
	return fmt.Sprintf("write queries for %s: the model's reply is %s (call %s)", e.ClaimID, e.Outcome, e.Call)
}

// FailureClass is permanent: the reply is stored, and asking again gives it again.
func (e *OutcomeError) FailureClass() string { return "permanent" }

// FailureReason is the outcome of the reply.
func (e *OutcomeError) FailureReason() string { return e.Outcome }

// A Model answers requests; *llm.Client is one.
type Model interface {
	Complete(ctx context.Context, q llm.Request) (llm.Reply, error)
}

// queries returns the words to search a claim by, and the call that wrote them.
func queries(ctx context.Context, m Model, s Settings, c corpus.Claim) (texts []string, call string, err error) {
	if s.Variants == 0 {
		return []string{corpus.Space(c.Text)}, "", nil
	}
	if m == nil {
		return nil, "", errors.New("write queries: there is no model to ask")
	}
	reply, err := m.Complete(ctx, llm.Request{
		Role: "keywords", Endpoint: s.Endpoint, Model: s.Model, Template: Keywords,
		Vars: KeywordVars{
			Claim: corpus.Space(c.Text), Speaker: corpus.Space(c.Speaker), Date: c.StatedDate,
			Variants: s.Variants, MinWords: minWords, MaxWords: maxWords,
		},
		Temperature: s.Temperature, TopP: s.TopP, Seed: s.Seed, MaxTokens: s.MaxTokens,
	})
	if err != nil {
		return nil, "", fmt.Errorf("write queries for %s: %w", c.ID, err)
	}
	if reply.Outcome != llm.OutcomeAnswered {
		return nil, reply.Call, &OutcomeError{c.ID, string(reply.Outcome), reply.Call}
	}
	var answer keywordReply
	if err := json.Unmarshal(reply.JSON, &answer); err != nil {
		return nil, reply.Call, fmt.Errorf("read queries for %s: %w", c.ID, err) // unreachable: it fits the schema
	}
	texts = Variants(answer.Variants, c.Text, s.Variants)
	if len(texts) == 0 {
		return nil, reply.Call, &OutcomeError{c.ID, "no_variants", reply.Call}
	}
	return texts, reply.Call, nil
}

var (
	operator = regexp.MustCompile(`(?i)\b(?:site|inurl|intitle|subreddit|author|url|title|self|selftext|flair):\S*`)
	boolean  = regexp.MustCompile(`\b(?:AND|OR|NOT)\b`)
	phrases  = regexp.MustCompile(`(?i)\b(?:fact[- ]?check(?:ed|ing|er|ers|s)?|pants on fire|fake news|(?:is|was|are) (?:it|this|that) true|true or false)\b`)
)

// verdicts are words that judge a claim; a query with them finds fact-checks instead of posts.
var verdicts = map[string]bool{
	"true": true, "false": true, "fake": true, "hoax": true, "lie": true, "lies": true, "lied": true, "lying": true, "liar": true,
	"debunk": true, "debunked": true, "debunking": true, "misleading": true, "myth": true, "disinformation": true, "misinformation": true,
	"factcheck": true, "politifact": true, "snopes": true, "untrue": true, "incorrect": true, "inaccurate": true, "accurate": true, "verdict": true,
	"verified": true, "unverified": true,
}

// Variants holds a model to the rules for queries: at most n of them, none twice, each of at most six
// words, without quotes, operators and words that judge the claim, unless the claim itself has them
// (the False Claims Act is a name). What is left of a query that is nothing but such words is dropped.
func Variants(written []string, claim string, n int) []string {
	own := map[string]bool{}
	for _, w := range words(claim) {
		own[strings.ToLower(w)] = true
	}
	lower := strings.ToLower(corpus.Fold(claim))
	seen := map[string]bool{}
	var out []string
	for _, text := range written {
		text = operator.ReplaceAllString(corpus.Fold(text), " ")
		text = boolean.ReplaceAllString(text, " ")
		text = phrases.ReplaceAllStringFunc(text, func(p string) string {
			if strings.Contains(lower, strings.ToLower(p)) {
				return p
			}
			return " "
		})
		var kept []string
		for _, w := range words(text) {
			if l := strings.ToLower(w); !verdicts[l] || own[l] {
				kept = append(kept, w)
			}
		}
		q := strings.Join(shortened(kept), " ")
		if q == "" || seen[strings.ToLower(q)] {
			continue
		}
		seen[strings.ToLower(q)] = true
		if out = append(out, q); len(out) == n {
			break
		}
	}
	return out
}

// units belong to the number before them.
var units = map[string]bool{"hundred": true, "thousand": true, "million": true, "billion": true, "trillion": true, "percent": true}

// shortened cuts a query after its last keyword that may stand. A name of several words with
// capitals is one, and so is a number with its unit.
func shortened(words []string) []string {
	keywords, name, number := 0, false, false
	for i, w := range words {
		first, _ := utf8.DecodeRuneInString(w)
		capital := unicode.IsUpper(first)
		if !(capital && name) && !(number && units[strings.ToLower(w)]) {
			keywords++
		}
		name, number = capital, strings.IndexFunc(w, unicode.IsNumber) >= 0
		if keywords > maxWords || i == maxLength {
			return words[:i]
		}
	}
	return words
}

// builtinKeywords answers from the claim's own words.
func builtinKeywords(vars any) (json.RawMessage, error) {
	v, ok := vars.(KeywordVars)
	if !ok {
		return nil, fmt.Errorf("keywords: variables are %T", vars)
	}
	reply := keywordReply{Variants: []string{}}
	// A keyword of the claim may be a name or amount of several words, so one less than may be.
	for _, k := range llm.Keywords(v.Claim, v.Variants, v.MaxWords-1) {
		reply.Variants = append(reply.Variants, strings.Join(k, " "))
	}
	return json.Marshal(reply)
}

// words splits a text at blanks and takes quotes and outer punctuation off, but what belongs to a
// number or name: $3.5, 12%, U.S., COVID-19.
func words(text string) []string {
	var out []string
	for _, w := range strings.Fields(text) {
		w = strings.TrimLeftFunc(w, func(r rune) bool {
			return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsSymbol(r) && r != '#' && r != '@'
		})
		w = strings.TrimRightFunc(w, func(r rune) bool {
			return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsSymbol(r) && r != '%' && r != '.'
		})
		if strings.Count(w, ".") == 1 {
			w = strings.TrimSuffix(w, ".")
		}
		w = strings.Map(func(r rune) rune {
			if r == '"' {
				return -1
			}
			return r
		}, w)
		if strings.IndexFunc(w, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }) >= 0 {
			out = append(out, w)
		}
	}
	return out
}
