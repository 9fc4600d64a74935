package annotate

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"assay/corpus"
	"assay/llm"
)

// Question is what the prompt without a document and its builtin answer read.
type Question struct {
	Claim string `json:"claim"`
}

type zeroReply struct {
	Answer string `json:"answer"`
}

// zeroTemplate asks for true or false. Its schema leaves the answer open, for what is neither is an
// outcome to count and not one to suggest.
var zeroTemplate = llm.MustLoadTemplate(prompts, llm.Template{
	Name:           "zero",
	Version:        1,
	Schema:         json.RawMessage(`{"type":"object","properties":{"answer":{"type":"string"}},"required":["answer"],"additionalProperties":false}`),
	Labels:         llm.Labels{Field: "answer", Allowed: []string{"true", "false", "unknown"}},
	Builtin:        builtinZero,
	BuiltinVersion: 1,
})

// builtinZero knows nothing but what it reads, and there is nothing to read.
func builtinZero(vars any) (json.RawMessage, error) {
	if _, ok := vars.(Question); !ok {
		return nil, fmt.Errorf("read question: variables are %T", vars)
	}
	return json.Marshal(zeroReply{Answer: string(corpus.AnswerUnknown)})
}

// zeroContext asks about a claim alone (methods, decision 17). Whatever is neither true nor false is
// unknown: the control never costs a pair its label.
func zeroContext(ctx context.Context, m Model, s Settings, c corpus.Claim) (Zero, error) {
	reply, err := m.Complete(ctx, s.request("zero", zeroTemplate, Question{Claim: corpus.Space(c.Text)}))
	if err != nil {
		return Zero{}, fmt.Errorf("ask about %s without a document: %w", c.ID, err)
	}
	z := Zero{ClaimID: c.ID, Answer: corpus.AnswerUnknown, Call: reply.Call, Calls: slices.Clone(reply.Calls)}
	var answer zeroReply
	if reply.Outcome == llm.OutcomeAnswered && json.Unmarshal(reply.JSON, &answer) == nil {
		if a := corpus.Answer(answer.Answer); a == corpus.AnswerTrue || a == corpus.AnswerFalse {
			z.Answer = a
		}
	}
	return z, nil
}
