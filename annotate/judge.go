package annotate

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"assay/corpus"
	"assay/llm"
)

// A Judge is one way to draft a verdict out of the evidence for a claim.
type Judge struct {
	Name    string
	Version int    // raise it when the same replies give other drafts
	Doc     string // one sentence for assay list

	// Judge drafts the verdict of one claim. The draft depends on Settings, State and the model's replies
	// alone. An error with a FailureClass is this claim's; see JudgeFailure.
	Judge func(context.Context, Model, ExtractSettings, State) (corpus.Draft, error)

	// Prompt is the template that Judge uses; a stage has its hash in its Recipe.
	Prompt *llm.Template
}

// Judges lists the judges by name.
var Judges = []Judge{GPE}

// GPE weighs the evidence state that the agentic search left (GPE, III-B): by stance, relevance,
// reliability, time, attribution and independence, and by what stayed open, never by counts.
var GPE = Judge{
	Name:    gpeName,
	Version: 2,
	Doc:     "a six-way verdict with rationale, doubts and labels of the subclaims, over analysed evidence; a draft for people, never gold",
	Judge:   judgeGPE,
	Prompt:  judgeTemplate,
}

const gpeName = "gpe"

// State is the evidence state that a verdict is drafted from: E_T of the paper, with what its documents
// are. It holds no verdict.
type State struct {
	Claim     corpus.Claim      `json:"claim"` // id, text, speaker and stated date
	AsOf      string            `json:"as_of,omitzero"`
	Subclaims []corpus.Subclaim `json:"subclaims"`
	Items     []corpus.Evidence `json:"items"` // in the order in which they were found
	Sources   []Source          `json:"sources"`
	Answers   []string          `json:"answers,omitzero"` // of tools that compute: calc 50 - 40 = 10
	Ended     string            `json:"ended,omitzero"`   // why the search ended
}

// A Source is what a judge is told of a document beside its analysis.
type Source struct {
	DocumentID string `json:"document_id"`
	URL        string `json:"url,omitzero"`
	Title      string `json:"title,omitzero"`
	Source     string `json:"source,omitzero"`
	Published  string `json:"published,omitzero"` // 2006-01-02
}

// A Docket is what the prompt of the judge and its builtin answer read.
type Docket struct {
	Claim      string      `json:"claim"`
	Speaker    string      `json:"speaker,omitzero"`
	Date       string      `json:"date,omitzero"`
	AsOf       string      `json:"as_of,omitzero"`
	Statements []Statement `json:"statements"`
	Answers    string      `json:"answers,omitzero"` // a line each
	Ended      string      `json:"ended,omitzero"`
	Unread     int         `json:"unread,omitzero"` // documents that no model could read
}

// A Statement is one subclaim with what was found on it.
type Statement struct {
	ID       string  `json:"id"`
	Text     string  `json:"text"`
	Open     string  `json:"open,omitzero"` // why it is unresolved, in words
	Origins  int     `json:"origins"`       // independent ones that take a side
	Silent   int     `json:"silent,omitzero"`
	Exhibits []Paper `json:"exhibits,omitzero"`
}

// A Paper is one document as it is shown for one statement. Documents of one origin with one stance stand
// together behind the strongest of them.
type Paper struct {
	ID          string             `json:"id"` // E1, the same for every statement
	Stance      corpus.Stance      `json:"stance"`
	Relevance   int                `json:"relevance"`
	Credibility int                `json:"credibility"`
	Class       string             `json:"class"`
	Fit         corpus.TemporalFit `json:"temporal_fit"`
	Event       string             `json:"event,omitzero"`
	Attribution corpus.Attribution `json:"attribution"`
	Origin      string             `json:"origin"`          // id of the first document that is shown of it
	Copies      string             `json:"copies,omitzero"` // ids of the others, joined by commas
	Cautions    string             `json:"cautions,omitzero"`

	Title     string `json:"title,omitzero"`
	Source    string `json:"source,omitzero"`
	Published string `json:"published,omitzero"`
	Quote     string `json:"quote,omitzero"`
}

type judgeReply struct {
	Rationale   string      `json:"rationale"`
	Evidence    []string    `json:"evidence"`
	Uncertainty string      `json:"uncertainty"`
	Subclaims   []judgePart `json:"subclaims"`
	Label       string      `json:"label"`
}

type judgePart struct {
	ID    string `json:"id"`
	Label string `json:"label"`
}

const sixWay = `{"type":"string","enum":["true","mostly_true","half_true","mostly_false","false","uncertain"]}`

var judgeTemplate = llm.MustLoadTemplate(prompts, llm.Template{
	Name:    "judge",
	Version: 1,
	Schema: json.RawMessage(`{"type":"object","properties":{"rationale":{"type":"string"},"evidence":{"type":"array","items":{"type":"string"}},"uncertainty":{"type":"string"},` +
		`"subclaims":{"type":"array","items":{"type":"object","properties":{"id":{"type":"string"},"label":` + sixWay + `},"required":["id","label"],"additionalProperties":false}},` +
		`"label":` + sixWay + `},"required":["rationale","evidence","uncertainty","subclaims","label"],"additionalProperties":false}`),
	Labels:         llm.Labels{Field: "label", Aliases: llm.VerdictAliases},
	Builtin:        builtinJudge,
	BuiltinVersion: 1,
})

// Longest notes and quotes that a draft keeps or a judge is shown, in characters.
const (
	noteChars    = 1200
	exhibitChars = 400
)

// ReasonNoRationale is the reason of a JudgeFailure for a label that came without a word: nobody could
// check it, and it would sway the person who rules.
const ReasonNoRationale = "no_rationale"

// JudgeFailure says that a claim has no draft, because the model gave none.
type JudgeFailure struct {
	ClaimID string
	Reason  string // ReasonNoRationale, or one of the reasons of Failure
	Call    string
	Calls   []string
}

func (e *JudgeFailure) Error() string {
	return fmt.Sprintf("judge %s: %s (call %s)", e.ClaimID, e.Reason, e.Call)
}

// FailureClass is permanent: the reply is stored, so asking again would give it again.
func (e *JudgeFailure) FailureClass() string { return "permanent" }

// FailureReason is the reason slug.
func (e *JudgeFailure) FailureReason() string { return e.Reason }

// judgeGPE drafts a verdict. Without anything to weigh no model is asked: all that it could go by would be
// what it believes.
func judgeGPE(ctx context.Context, m Model, s ExtractSettings, st State) (corpus.Draft, error) {
	docket, exhibits := docketOf(st)
	weighed := weigh(docket)
	d := corpus.Draft{ClaimID: st.Claim.ID, Judge: gpeName, Status: corpus.StatusDraft, Weighed: weighed.verdict, Exhibits: exhibits}
	for i, stmt := range docket.Statements {
		d.Parts = append(d.Parts, corpus.DraftPart{ID: stmt.ID, Text: stmt.Text, Weighed: weighed.parts[i].verdict, Open: weighed.parts[i].open,
			Origins: stmt.Origins, Silent: stmt.Silent})
	}
	if !weighed.any && docket.Answers == "" {
		return unevidenced(d, docket), nil
	}
	reply, err := m.Complete(ctx, s.request("judge", judgeTemplate, docket))
	if err != nil {
		return corpus.Draft{}, fmt.Errorf("judge %s: %w", st.Claim.ID, err)
	}
	d.Call, d.Calls = reply.Call, slices.Clone(reply.Calls)
	if reply.Outcome != llm.OutcomeAnswered {
		return corpus.Draft{}, &JudgeFailure{ClaimID: st.Claim.ID, Reason: failed("", reply, nil).Reason, Call: reply.Call, Calls: d.Calls}
	}
	var answer judgeReply
	if err := json.Unmarshal(reply.JSON, &answer); err != nil {
		return corpus.Draft{}, fmt.Errorf("judge %s: %w", st.Claim.ID, err) // unreachable: the reply fits the schema
	}
	if strings.TrimSpace(answer.Rationale) == "" {
		return corpus.Draft{}, &JudgeFailure{ClaimID: st.Claim.ID, Reason: ReasonNoRationale, Call: reply.Call, Calls: d.Calls}
	}
	d.By = corpus.DraftByModel
	d.Verdict6 = corpus.Verdict(answer.Label)
	d.Rationale, d.Uncertainty = first(corpus.Space(answer.Rationale), noteChars), first(corpus.Space(answer.Uncertainty), noteChars)
	takeParts(&d, answer.Subclaims)
	takeCitations(&d, answer.Evidence)
	if distant(d.Verdict6, d.Weighed) {
		d.Flags = corpus.AddFlag(d.Flags, corpus.FlagDiffersFromWeights)
	}
	if sum, ok := sumOf(d.Parts); ok && distant(d.Verdict6, sum) {
		d.Flags = corpus.AddFlag(d.Flags, corpus.FlagPartsDisagree)
	}
	if dictatesVerdict(docket, reply) {
		d.Flags = corpus.AddFlag(d.Flags, corpus.FlagInjection)
	}
	return d, nil
}

// unevidenced is the draft of a claim on which nothing takes a side: uncertain, which the scale has for
// evidence that is insufficient (GPE, III-A).
func unevidenced(d corpus.Draft, docket Docket) corpus.Draft {
	d.By, d.Verdict6 = corpus.DraftByRule, corpus.Uncertain
	d.Rationale = "No document that was read takes a side, so no model was asked."
	silent := docket.Unread
	for i, s := range docket.Statements {
		d.Parts[i].Verdict6 = corpus.Uncertain
		silent += s.Silent
	}
	d.Uncertainty = "Nothing was found that could be weighed."
	if silent > 0 {
		d.Uncertainty = fmt.Sprintf("What was found says nothing either way; %d documents that no model could read may.", docket.Unread)
		if docket.Unread == 0 {
			d.Uncertainty = "What was found says nothing either way."
		}
	}
	return d
}

// takeParts takes over the labels of the subclaims that there are, once each.
func takeParts(d *corpus.Draft, given []judgePart) {
	at, twice := map[string]int{}, map[string]bool{}
	for i, p := range d.Parts {
		at[p.ID] = i
	}
	for _, g := range given {
		i, known := at[strings.TrimSpace(g.ID)]
		if !known {
			d.Flags = corpus.AddFlag(d.Flags, corpus.FlagSubclaimExtra)
			continue
		}
		if have := d.Parts[i].Verdict6; have != "" && have != corpus.Verdict(g.Label) {
			twice[d.Parts[i].ID] = true
		}
		d.Parts[i].Verdict6 = corpus.Verdict(g.Label)
	}
	for i, p := range d.Parts {
		if twice[p.ID] {
			d.Parts[i].Verdict6 = ""
			d.Flags = corpus.AddFlag(d.Flags, corpus.FlagSubclaimRepeated)
		} else if p.Verdict6 == "" {
			d.Flags = corpus.AddFlag(d.Flags, corpus.FlagSubclaimMissing)
		}
	}
}

var exhibitID = regexp.MustCompile(`E[0-9]+`)

// takeCitations marks the documents that the model names among its grounds. [E1], E1 and "E1, E2" are ways
// to write it.
func takeCitations(d *corpus.Draft, given []string) {
	cited := false
	for _, g := range given {
		ids := exhibitID.FindAllString(g, -1)
		if len(ids) == 0 && strings.TrimSpace(g) != "" {
			d.Flags = corpus.AddFlag(d.Flags, corpus.FlagCitationUnknown)
		}
		for _, id := range ids {
			i := slices.IndexFunc(d.Exhibits, func(e corpus.Exhibit) bool { return e.ID == id })
			if i < 0 {
				d.Flags = corpus.AddFlag(d.Flags, corpus.FlagCitationUnknown)
				continue
			}
			d.Exhibits[i].Cited, cited = true, true
		}
	}
	if !cited && d.Verdict6 != corpus.Uncertain {
		d.Flags = corpus.AddFlag(d.Flags, corpus.FlagUncited)
	}
}

// distant reports whether two verdicts are at least two steps apart, or only one of them decides.
func distant(a, b corpus.Verdict) bool {
	x, decided := a.Ordinal()
	y, other := b.Ordinal()
	if !decided || !other {
		return decided != other
	}
	return x-y >= 2 || y-x >= 2
}

// sumOf is what labels of the subclaims add up to; ok is false where one is missing, or where the claim is
// its only subclaim and may be told in words that the label qualifies.
func sumOf(parts []corpus.DraftPart) (corpus.Verdict, bool) {
	var labels []corpus.Verdict
	for _, p := range parts {
		if p.Verdict6 == "" {
			return "", false
		}
		labels = append(labels, p.Verdict6)
	}
	return together(labels), len(labels) > 0
}

// dictatesVerdict reports whether the part of a reply that bears its verdict stands in what was shown of
// documents: one of them may have told the model what to reply (decision 2), whatever stands around that.
func dictatesVerdict(d Docket, r llm.Reply) bool {
	var shown []string
	for _, s := range d.Statements {
		for _, e := range s.Exhibits {
			shown = append(shown, e.Title, e.Source, e.Quote)
		}
	}
	return repeats(shown, r, labelField)
}

// docketOf lays a state out for the judge: by subclaim, documents of one origin and one stance once, with
// what is known of each. A document has one id wherever it stands.
func docketOf(st State) (Docket, []corpus.Exhibit) {
	d := Docket{Claim: corpus.Space(st.Claim.Text), Speaker: corpus.Space(st.Claim.Speaker), Date: st.Claim.StatedDate, AsOf: st.AsOf,
		Answers: strings.Join(st.Answers, "\n"), Ended: strings.ReplaceAll(st.Ended, "_", " ")}
	sources := map[string]Source{}
	for _, s := range st.Sources {
		sources[s.DocumentID] = s
	}
	exhibits, id, originOf := []corpus.Exhibit{}, map[string]string{}, map[string]string{}
	for _, e := range st.Items {
		if unread(e) {
			d.Unread++
		}
		if id[e.DocumentID] != "" || !shown(e) {
			continue
		}
		id[e.DocumentID] = fmt.Sprintf("E%d", len(exhibits)+1)
		exhibits = append(exhibits, corpus.Exhibit{ID: id[e.DocumentID], DocumentID: e.DocumentID, URL: sources[e.DocumentID].URL})
		if originOf[origin(e)] == "" {
			originOf[origin(e)] = id[e.DocumentID]
		}
	}
	for _, sub := range st.Subclaims {
		s := Statement{ID: sub.ID, Text: sub.Text}
		place, strongest, sides := map[string]int{}, map[string]float64{}, map[string]bool{}
		for _, e := range st.Items {
			if e.SubclaimID != sub.ID || unread(e) || e.Relevance == 0 {
				continue
			}
			if !shown(e) {
				s.Silent++
				continue
			}
			if e.Stance == corpus.Neutral {
				s.Silent++
			} else {
				sides[origin(e)] = true
			}
			p := paperOf(e, sources[e.DocumentID])
			p.ID, p.Origin = id[e.DocumentID], originOf[origin(e)]
			group := origin(e) + " " + string(e.Stance)
			at, copied := place[group]
			if !copied {
				place[group], strongest[group] = len(s.Exhibits), strength(p)
				s.Exhibits = append(s.Exhibits, p)
				continue
			}
			first := &s.Exhibits[at]
			if w := strength(p); w > strongest[group] {
				strongest[group] = w
				p.Copies = listed(first.Copies, first.ID)
				*first = p
			} else {
				first.Copies = listed(first.Copies, p.ID)
			}
		}
		s.Origins = len(sides)
		d.Statements = append(d.Statements, s)
	}
	for i, w := range weigh(d).parts {
		d.Statements[i].Open = openWords[w.open]
	}
	return d, exhibits
}

var openWords = map[string]string{
	corpus.OpenNoEvidence:  "nothing that was read takes a side",
	corpus.OpenWeak:        "what takes a side is weak",
	corpus.OpenOutOfTime:   "what takes a side speaks of another time",
	corpus.OpenConflicting: "both sides have weight",
}

func listed(list, id string) string {
	if list == "" {
		return id
	}
	return list + ", " + id
}

// shown reports whether a judge is shown an item: it takes a side, or it says something on the matter.
func shown(e corpus.Evidence) bool {
	return !unread(e) && e.Relevance > 0 && (e.Stance != corpus.Neutral || e.Relevance >= 2 && e.Quote != "")
}

// unread reports whether no model could analyse the document.
func unread(e corpus.Evidence) bool {
	return slices.ContainsFunc(e.Flags, func(f string) bool { return strings.HasPrefix(f, corpus.FlagUnread) })
}

// origin names the cluster of an item; one that nobody looked at stands alone.
func origin(e corpus.Evidence) string {
	if e.Origin == "" {
		return e.DocumentID
	}
	return e.Origin
}

// cautions are what the flags of an item mean to a reader.
var cautions = map[string]string{
	corpus.FlagQuoteUnverified: "the words said to decide do not stand in the document",
	flagAttributionUnverified:  "the words said to name its source do not stand in the document",
	flagDateUnverified:         "the date said to be the event's does not stand in the document",
	flagUndated:                "undated, so it may be later than the claim allows",
	flagFactCheck:              "an article that gives a verdict",
}

// Flags of evidence that change its weight, as packages that may not be imported here name them.
const (
	flagAttributionUnverified = "attribution_unverified"
	flagDateUnverified        = "event_date_unverified"
	flagUndated               = "undated"
	flagFactCheck             = "fact_check_article"
)

func paperOf(e corpus.Evidence, s Source) Paper {
	p := Paper{
		Stance: e.Stance, Relevance: e.Relevance, Credibility: e.Credibility, Class: strings.ReplaceAll(e.SourceClass, "_", " "),
		Fit: e.Temporal, Event: e.EventDate, Attribution: e.Attribution,
		Title: corpus.Space(s.Title), Source: s.Source, Published: s.Published, Quote: first(corpus.Space(e.Quote), exhibitChars),
	}
	var words []string
	for _, f := range e.Flags {
		if w := cautions[f]; w != "" {
			words = append(words, w)
		}
	}
	p.Cautions = strings.Join(words, "; ")
	return p
}
