package assay

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"assay/annotate"
	"assay/corpus"
	"assay/pipeline"
	"assay/planner"
)

// judges reports whether a build by this recipe drafts verdicts. They rest on the evidence state that the
// agentic search leaves, so there are none without it.
func (r Recipe) judges() bool { return r.Judge != "" && r.agentic() }

// judge drafts the verdict of a claim from what the search for it found.
func (k *walk) judge(ctx context.Context, c corpus.Claim, t corpus.Trace, docs []sourced) error {
	stage := k.stages.judge()
	k.e.Expect(stage.Name, 1)
	d, err := pipeline.Run(ctx, k.e, stage, c.ID, judgeState(c, t, docs))
	_, ok, err := k.settled(ctx, "verdict draft", err)
	if err != nil || !ok {
		return err
	}
	if k.visit.calls != nil && len(d.Calls) > 0 {
		if err := k.visit.calls(d.Calls...); err != nil {
			return err
		}
	}
	if corpus.HasFlag(d.Flags, corpus.FlagInjection) {
		if err := k.withhold("verdict draft", c.ID, "held for a person"); err != nil {
			return err
		}
	}
	if k.visit.draft != nil {
		return k.visit.draft(c, d, docs)
	}
	return nil
}

// judgeState holds what the judge reads and nothing else, so that a new retrieval time drafts nothing again.
// The claim's verdict is not in it.
func judgeState(c corpus.Claim, t corpus.Trace, docs []sourced) annotate.State {
	st := annotate.State{
		Claim: corpus.Claim{ID: c.ID, Text: corpus.Wording(c.Text), Speaker: c.Speaker, StatedDate: c.StatedDate},
		AsOf:  t.AsOf, Subclaims: t.Subclaims, Items: slices.Clone(t.Evidence), Ended: t.Stop,
	}
	read := map[string]corpus.Document{}
	for _, s := range docs {
		read[s.doc.ID] = s.doc
	}
	for i, e := range st.Items {
		st.Items[i].Call = "" // who analysed it is no evidence
		if slices.ContainsFunc(st.Sources, func(s annotate.Source) bool { return s.DocumentID == e.DocumentID }) {
			continue
		}
		s := annotate.Source{DocumentID: e.DocumentID}
		if d, ok := read[e.DocumentID]; ok {
			s.URL, s.Title, s.Source = d.URL, d.Title, d.Source
			s.Published, _, _ = strings.Cut(d.PublishedAt, "T")
		} else if at := slices.IndexFunc(t.Candidates, func(c corpus.Candidate) bool { return c.DocumentID == e.DocumentID }); at >= 0 {
			s.URL, s.Source = t.Candidates[at].URL, corpus.Host(t.Candidates[at].URL)
		}
		st.Sources = append(st.Sources, s)
	}
	for _, step := range t.Steps {
		if planner.Computes(step.Action) && step.Outcome == "done" && step.Answer != "" {
			st.Answers = append(st.Answers, step.Action+" "+step.Answer)
		}
	}
	return st
}

func (s stages) judge() pipeline.Stage[annotate.State, corpus.Draft] {
	j := s.w.judgeInUse()
	settings := s.w.askSettings("judge", j.Prompt.Name)
	return pipeline.Stage[annotate.State, corpus.Draft]{
		Name: KindJudge + "/" + j.Name, Version: j.Version, Recipe: settings,
		Do: func(ctx context.Context, st annotate.State) (corpus.Draft, error) {
			return j.Judge(ctx, s.w.llm, settings, st)
		},
	}
}

func (w *Workspace) judgeInUse() annotate.Judge {
	for _, j := range annotate.Judges {
		if j.Name == w.Config.Recipe.Judge {
			return j
		}
	}
	return annotate.Judges[0]
}

// ruledText tells whose verdict a claim has, as a line, "" for none: its source's, or that of the people who accepted it
// from a source that rates nothing.
func ruledText(c corpus.Claim, decided []corpus.Decision) string {
	switch {
	case c.Verdict6 == "":
		return ""
	case c.Status != corpus.StatusHuman && c.Status != corpus.StatusAdjudicated:
		return fmt.Sprintf("%s says: %s\n", c.Source, c.Verdict6)
	}
	who := "people"
	if r := corpus.Resolve(decided); len(r.People) > 0 {
		who = strings.Join(r.People, ", ") + " on " + r.By.At[:min(len(r.By.At), len(time.DateOnly))]
	}
	return fmt.Sprintf("ruled %s by %s (verdict_status %s); taken from %s, which rates nothing\n", c.Verdict6, who, c.Status, c.Source)
}

// WriteDraft writes the drafted verdict of a claim, out of what Show gave, for people.
func WriteDraft(w io.Writer, id string, shown json.RawMessage) error {
	var p struct {
		Claim     *corpus.Claim     `json:"claim"`
		Decisions []corpus.Decision `json:"decisions"`
		Draft     *corpus.Draft     `json:"draft"`
		Trace     *corpus.Trace     `json:"trace"`
	}
	if err := json.Unmarshal(shown, &p); err != nil {
		return fmt.Errorf("show %s: %w", id, err)
	}
	if p.Draft == nil || p.Claim == nil {
		return fmt.Errorf("show %s: no verdict is drafted for it; a claim (c_...) has a draft once a build with recipe.judge judged it, and assay status --why %s says why there is none", id, id)
	}
	d, items := *p.Draft, map[string][]corpus.Evidence{}
	if p.Trace != nil {
		for _, e := range p.Trace.Evidence {
			items[e.DocumentID] = append(items[e.DocumentID], e)
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", d.ClaimID, corpus.Space(p.Claim.Text))
	by := "drafted by a model"
	if d.By == corpus.DraftByRule {
		by = "by rule, without a model"
	}
	fmt.Fprintf(&b, "draft: %s (%s; fixed weights say %s). A person rules.\n", d.Verdict6, by, d.Weighed)
	b.WriteString(ruledText(*p.Claim, p.Decisions))
	if len(d.Flags) > 0 {
		fmt.Fprintf(&b, "mind: %s\n", strings.Join(d.Flags, ", "))
	}
	fmt.Fprintf(&b, "why: %s\n", d.Rationale)
	if d.Uncertainty != "" {
		fmt.Fprintf(&b, "open: %s\n", d.Uncertainty)
	}
	for _, s := range d.Parts {
		label := string(s.Verdict6)
		if label == "" {
			label = "no label"
		}
		fmt.Fprintf(&b, "  %s %s: %s", s.ID, label, s.Text)
		if s.Open != "" {
			fmt.Fprintf(&b, " (open: %s)", strings.ReplaceAll(s.Open, "_", " "))
		}
		b.WriteString("\n")
	}
	for _, e := range d.Exhibits {
		cited := ""
		if e.Cited {
			cited = ", cited"
		}
		fmt.Fprintf(&b, "  [%s] %s %s%s\n", e.ID, e.DocumentID, e.URL, cited)
		for _, item := range items[e.DocumentID] {
			fmt.Fprintf(&b, "       %s %s: relevance %d, credibility %d (%s), time %s, attribution %s", item.SubclaimID, item.Stance, item.Relevance,
				item.Credibility, item.SourceClass, item.Temporal, item.Attribution)
			if item.Match != "" {
				fmt.Fprintf(&b, ", of origin %s", item.Origin)
			}
			b.WriteString("\n")
			if item.Quote != "" {
				fmt.Fprintf(&b, "       %q\n", item.Quote)
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
