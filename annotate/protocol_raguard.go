package annotate

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"slices"

	"assay/corpus"
	"assay/llm"
)

//go:embed prompts/*.txt
var prompts embed.FS

// RAGuard labels a pair by an exam on the claim with this one document (methods 3.1, stage 3): the
// model answers true, false or unrelated, and the label follows from the answer and the verdict. The
// model is never asked whether a document misleads.
var RAGuard = Protocol{
	Name:       raguard,
	Version:    2,
	Doc:        "an exam on one claim and one document; supporting, misleading or unrelated by answer and verdict",
	Annotate:   annotateRAGuard,
	Zero:       zeroContext,
	Prompt:     raguardPrompt,
	ZeroPrompt: zeroTemplate,
}

const raguard = "raguard"

// Exam is what the prompts of the RAGuard protocol and their builtin answers read.
type Exam struct {
	Claim   string `json:"claim"`
	Title   string `json:"title,omitzero"`
	Source  string `json:"source,omitzero"`
	Address string `json:"address,omitzero"`
	Text    string `json:"text,omitzero"`
}

// examReply is the answer to an exam. In compat form Quote and Reason are empty.
type examReply struct {
	Quote  string        `json:"quote"`
	Reason string        `json:"reason"`
	Answer corpus.Answer `json:"answer"`
}

// Longest quote and reason that a label keeps, in characters (methods 3.1).
const (
	quoteChars  = 300
	reasonChars = 400
)

// spellings of unrelated that models are known to use instead.
var spellings = map[string]string{"not_related": "unrelated", "irrelevant": "unrelated", "neither": "unrelated"}

var raguardTemplate = llm.MustLoadTemplate(prompts, llm.Template{
	Name:    "raguard",
	Version: 1,
	Schema: json.RawMessage(`{"type":"object","properties":{"quote":{"type":"string"},"reason":{"type":"string"},` +
		`"answer":{"type":"string","enum":["true","false","unrelated"]}},"required":["quote","reason","answer"],"additionalProperties":false}`),
	Labels:         llm.Labels{Field: "answer", Aliases: spellings},
	Builtin:        builtinExam,
	BuiltinVersion: 1,
})

var raguardCompatTemplate = llm.MustLoadTemplate(prompts, llm.Template{
	Name:    "raguard_compat",
	Version: 1,
	Schema: json.RawMessage(`{"type":"object","properties":{"answer":{"type":"string","enum":["true","false","unrelated"]}},` +
		`"required":["answer"],"additionalProperties":false}`),
	Labels:         llm.Labels{Field: "answer", Aliases: spellings},
	Builtin:        builtinExamCompat,
	BuiltinVersion: 1,
})

// builtinExam reads the document as the prompt asks a model to.
func builtinExam(vars any) (json.RawMessage, error) {
	v, ok := vars.(Exam)
	if !ok {
		return nil, fmt.Errorf("read exam: variables are %T", vars)
	}
	r := llm.Read(v.Claim, v.Title, v.Text)
	return json.Marshal(examReply{Quote: r.Quote, Reason: r.Reason, Answer: corpus.Answer(r.Answer)})
}

func builtinExamCompat(vars any) (json.RawMessage, error) {
	v, ok := vars.(Exam)
	if !ok {
		return nil, fmt.Errorf("read exam: variables are %T", vars)
	}
	return json.Marshal(zeroReply{Answer: llm.Read(v.Claim, v.Title, v.Text).Answer})
}

func raguardPrompt(s Settings) *llm.Template {
	if s.Mode == ModeCompat {
		return raguardCompatTemplate
	}
	return raguardTemplate
}

// annotateRAGuard labels one pair, by one sample or by the majority of several.
func annotateRAGuard(ctx context.Context, m Model, s Settings, in Input) (corpus.Label, error) {
	if s.Samples <= 1 {
		return examine(ctx, m, s, in, 0)
	}
	return majority(ctx, s.Samples, func(ctx context.Context, sample int) (corpus.Label, error) {
		return examine(ctx, m, s, in, sample)
	})
}

// examine asks one sample of the exam.
func examine(ctx context.Context, m Model, s Settings, in Input, sample int) (corpus.Label, error) {
	pair := corpus.PairID(in.Claim.ID, in.Document.ID)
	l := corpus.Label{ID: pair, ClaimID: in.Claim.ID, DocumentID: in.Document.ID, Protocol: raguard, Zero: in.Zero, Status: corpus.LabelDone}
	exam, cut := examOf(s, in)
	if cut {
		l.Flags = corpus.AddFlag(l.Flags, corpus.FlagTruncated)
	}
	question := sampled(s.request("annotate", raguardPrompt(s), exam), sample)
	reply, err := m.Complete(ctx, question)
	if err != nil {
		return corpus.Label{}, fmt.Errorf("label %s: %w", pair, err)
	}
	l.Call, l.Calls = reply.Call, slices.Clone(reply.Calls)
	dictated := dictates(exam, in.Document, reply)
	if reply.Outcome != llm.OutcomeAnswered {
		if !dictated {
			return corpus.Label{}, failed(pair, reply, l.Calls)
		}
		// The model repeated the document instead of answering. That is no label, and a person has to
		// see it: the pair is held without one.
		return hold(l), nil
	}
	answer, err := readExam(reply)
	if err != nil {
		return corpus.Label{}, fmt.Errorf("label %s: %w", pair, err) // unreachable: the reply fits the schema
	}
	if s.Mode != ModeCompat && !s.NoQuoteCheck && !quoted(exam, answer) {
		second, err := m.Complete(ctx, askAgain(question, reply))
		if err != nil {
			return corpus.Label{}, fmt.Errorf("label %s: ask for the quote again: %w", pair, err)
		}
		l.Calls = append(l.Calls, second.Calls...)
		dictated = dictated || dictates(exam, in.Document, second)
		if second.Outcome == llm.OutcomeAnswered {
			if answer, err = readExam(second); err != nil {
				return corpus.Label{}, fmt.Errorf("label %s: %w", pair, err) // unreachable: as above
			}
			l.Call = second.Call
		}
		if !quoted(exam, answer) {
			l.Flags = corpus.AddFlag(l.Flags, corpus.FlagQuoteUnverified)
		}
	}
	l.Answer, l.Reason = answer.Answer, first(answer.Reason, reasonChars)
	if answer.Answer != corpus.AnswerUnrelated {
		l.Quote = first(answer.Quote, quoteChars)
	}
	l.Label = corpus.LabelOf(answer.Answer, in.Gold)
	l.Effect = corpus.EffectOf(in.Zero, answer.Answer, in.Gold)
	if dictated {
		return hold(l), nil
	}
	return l, nil
}

// hold keeps a label from leaving the house until a person decides (methods, decision 19).
func hold(l corpus.Label) corpus.Label {
	l.Flags = corpus.AddFlag(l.Flags, corpus.FlagInjection)
	l.Status = corpus.LabelHeld
	return l
}

// examOf lays the question out. The document is cut at the end of a sentence; the bool tells of it.
func examOf(s Settings, in Input) (Exam, bool) {
	chars := s.DocumentChars
	if chars <= 0 {
		chars = DefaultDocumentChars
	}
	e := Exam{Claim: corpus.Space(in.Claim.Text), Source: in.Document.Source, Address: in.Document.URL}
	var title, text bool
	e.Title, title = llm.CutSentences(in.Document.Title, chars)
	e.Text, text = llm.CutSentences(in.Document.Text, chars)
	return e, title || text
}

func readExam(r llm.Reply) (examReply, error) {
	var answer examReply
	err := json.Unmarshal(r.JSON, &answer)
	return answer, err
}

// quoted reports whether the quote of an answer occurs in what the model was shown (decision 18). An
// answer that nothing decides needs none.
func quoted(e Exam, a examReply) bool {
	if a.Answer == corpus.AnswerUnrelated {
		return true
	}
	return holds(e.Title, a.Quote) || holds(e.Text, a.Quote) || holds(e.Title+"\n\n"+e.Text, a.Quote)
}

// askAgain is the one further request for a quote that occurs in the document. It holds the reply that
// is rejected.
func askAgain(q llm.Request, rejected llm.Reply) llm.Request {
	q.Follow = append(slices.Clone(q.Follow),
		llm.Message{Role: "assistant", Content: rejected.Raw},
		llm.Message{Role: "user", Content: "The text in \"quote\" does not occur in the document. Give the whole object once more, by the same rules: " +
			"copy the deciding words exactly from the document's title or text, without changing, adding or leaving out anything. " +
			"If no words of the document decide, the answer is \"unrelated\" and the quote is empty."})
	return q
}

// first returns the first n characters of s.
func first(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}
